# SPDX-License-Identifier: MIT
"""Backward passes, grad, the graph, hooks and anomaly mode from Python."""
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import warnings
import weakref

import harness
import tenon
from tenon.autograd import graph


def leaf(*values):
    return tenon.tensor(list(values), requires_grad=True)


class Backward(unittest.TestCase):
    def test_gradients_are_added_to_leaves(self):
        x, w = leaf(1.0, 2.0, 3.0), leaf(4.0, 5.0, 6.0)
        (x * w).sum().backward()
        (x * w).sum().backward()
        self.assertEqual(x.grad.tolist(), [8.0, 10.0, 12.0])
        self.assertEqual(w.grad.tolist(), [2.0, 4.0, 6.0])

    def test_grad_is_one_object(self):
        x = leaf(1.0, 2.0)
        x.sum().backward()
        self.assertIs(x.grad, x.grad)
        before = x.grad
        x.sum().backward()
        self.assertIs(x.grad, before)
        self.assertEqual(before.tolist(), [2.0, 2.0])

    def test_grad_can_be_set_and_deleted(self):
        x = leaf(1.0, 2.0)
        g = tenon.ones(2)
        x.grad = g
        self.assertIs(x.grad, g)
        x.grad = None
        self.assertIsNone(x.grad)
        x.grad = g
        del x.grad
        self.assertIsNone(x.grad)
        with self.assertRaisesRegex(TypeError, "assigned grad expected to be a Tensor or None but got grad of type"):
            x.grad = 3
        with self.assertRaisesRegex(RuntimeError, r"attempting to assign a gradient of size '\[3\]' to a tensor of size '\[2\]'"):
            x.grad = tenon.ones(3)

    def test_gradient_argument_and_its_errors(self):
        x = leaf(1.0, 2.0)
        y = x * 3
        with self.assertRaisesRegex(RuntimeError, "grad can be implicitly created only for scalar outputs"):
            y.backward()
        with self.assertRaisesRegex(RuntimeError, r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\)"):
            y.backward(tenon.ones(3))
        with self.assertRaisesRegex(TypeError, "gradients can be either Tensors or None, but got int"):
            y.backward([3])
        with self.assertRaisesRegex(TypeError, "'int' object is not iterable"):
            y.backward(3)
        y.backward(tenon.tensor([1.0, 10.0]))
        self.assertEqual(x.grad.tolist(), [3.0, 30.0])
        with self.assertRaisesRegex(RuntimeError, "element 0 of tensors does not require grad and does not have a grad_fn"):
            tenon.ones(1).backward()

    def test_a_second_pass_needs_retain_graph(self):
        x = leaf(1.0, 2.0)
        y = (x * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        self.assertEqual(x.grad.tolist(), [4.0, 8.0])
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through the graph a second time"):
            y.backward()

    def test_flags_are_numbers(self):
        def twice(flag, value, function):
            x = leaf(1.0)
            y = (x * x).sum()
            for words in ({flag: value}, {}):
                y.backward(**words) if function is None else function(y, x, **words)
            return True

        for function in (None, tenon.autograd.grad):
            self.assertTrue(twice("retain_graph", 77, function))
            with self.assertRaisesRegex(RuntimeError, "a second time"):
                twice("retain_graph", 0, function)
            with self.assertRaisesRegex(RuntimeError, "a second time"):
                twice("retain_graph", None, function)
            for flag in ("retain_graph", "create_graph"):
                for value, kind in ((2.5, "float"), ("a", "str"), ([], "list")) + ((None, "NoneType"),) * (flag != "retain_graph"):
                    with self.assertRaisesRegex(TypeError, "^'%s' object cannot be interpreted as an integer$" % kind):
                        twice(flag, value, function)
        for flag in ("allow_unused", "materialize_grads"):
            with self.assertRaisesRegex(TypeError, "^'str' object cannot be interpreted as an integer$"):
                x = leaf(1.0)
                tenon.autograd.grad((x * x).sum(), [x, leaf(2.0)], **{flag: "a"})

    def test_inputs_restrict_where_gradients_go(self):
        x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
        h = x * w
        h.sum().backward(inputs=[x])
        self.assertEqual(x.grad.tolist(), [3.0, 4.0])
        self.assertIsNone(w.grad)
        with self.assertRaisesRegex(RuntimeError, r"`inputs` argument to `backward\(\)` cannot be empty."):
            (x * w).sum().backward(inputs=[])
        h = x * w
        (h * h).sum().backward(inputs=h)
        self.assertEqual(h.grad.tolist(), [6.0, 16.0])
        self.assertEqual(x.grad.tolist(), [3.0, 4.0])

    def test_create_graph_differentiates_again(self):
        x = leaf(2.0)
        (g,) = tenon.autograd.grad((x ** 3).sum(), x, create_graph=True)
        (gg,) = tenon.autograd.grad(g.sum(), x, create_graph=True)
        (ggg,) = tenon.autograd.grad(gg.sum(), x)
        self.assertEqual([g.item(), gg.item(), ggg.item()], [12.0, 12.0, 6.0])
        self.assertFalse(ggg.requires_grad)

    def test_a_write_to_what_is_saved_is_noticed(self):
        x = leaf(1.0, 2.0)
        y = x.exp()
        y.add_(1)
        with self.assertRaisesRegex(RuntimeError, r"one of the variables needed for gradient computation has been modified "
                                    r"by an inplace operation: \[torch.FloatTensor \[2\]\], which is output 0 of ExpBackward0, "
                                    r"is at version 1; expected version 0 instead"):
            y.sum().backward()

    def test_results_that_are_not_saved_may_be_written(self):
        for function, value, wanted in ((lambda x: tenon.nn.functional.relu6(x, inplace=True), 2.0, 3.0),
                                        (tenon.nn.functional.hardtanh_, 0.5, 3.0), (tenon.nn.functional.hardtanh_, 2.0, 0.0),
                                        (tenon.erfinv, 0.0, 3 * 3.141592653589793 ** 0.5 / 2),
                                        (tenon.Tensor.erfinv_, 0.0, 3 * 3.141592653589793 ** 0.5 / 2)):
            x = leaf(value)
            function(x * 1).mul_(3).sum().backward()
            self.assertAlmostEqual(x.grad.item(), wanted, places=5)

    def test_function_form_takes_several_tensors(self):
        x = leaf(1.0, 2.0)
        tenon.autograd.backward([x.sum(), (x * x).sum()])
        self.assertEqual(x.grad.tolist(), [3.0, 5.0])
        tenon.autograd.backward([x * 1, (x * 2).sum()], [tenon.ones(2), None])
        self.assertEqual(x.grad.tolist(), [6.0, 8.0])
        with self.assertRaisesRegex(RuntimeError, "got 1 tensors and 2 gradients"):
            tenon.autograd.backward([x * 1], [tenon.ones(2), tenon.ones(2)])


class Cycle(unittest.TestCase):
    def test_recorded_gradients_in_leaves_are_warned_of_once(self):
        code = ("import warnings, tenon\n"
                "x = tenon.ones(2, requires_grad=True)\n"
                "with warnings.catch_warnings(record=True) as caught:\n"
                "    warnings.simplefilter('always')\n"
                "    for i in range(2):\n"
                "        (x * x).sum().backward(create_graph=True)\n"
                "print([str(w.message)[:44] for w in caught])")
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.stdout.strip(), "['Using backward() with create_graph=True will']",
                         done.stderr)


class Grad(unittest.TestCase):
    def test_gradcheck_is_the_function_whichever_check_was_asked_for_first(self):
        code = "import tenon; tenon.autograd.gradgradcheck; assert callable(tenon.autograd.gradcheck)"
        done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_touches_no_grad(self):
        x = leaf(1.0, 2.0)
        self.assertEqual(tenon.autograd.grad((x * x).sum(), [x])[0].tolist(), [2.0, 4.0])
        self.assertIsNone(x.grad)

    def test_unused_inputs(self):
        x, w = leaf(1.0), leaf(2.0)
        with self.assertRaisesRegex(RuntimeError, "One of the differentiated Tensors appears to not have been used in the graph"):
            tenon.autograd.grad(x.sum(), [x, w])
        self.assertIsNone(tenon.autograd.grad(x.sum(), [x, w], allow_unused=True)[1])
        self.assertEqual(tenon.autograd.grad(x.sum(), [x, w], materialize_grads=True)[1].tolist(), [0.0])
        with self.assertRaisesRegex(ValueError, "Expected allow_unused to be True or not passed"):
            tenon.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)
        with self.assertRaisesRegex(RuntimeError, "One of the differentiated Tensors does not require grad"):
            tenon.autograd.grad(x.sum(), tenon.ones(1))
        with self.assertRaisesRegex(ValueError, "grad requires non-empty inputs."):
            tenon.autograd.grad(x.sum(), [])

    def test_batched_gradients(self):
        x = leaf(1.0, 2.0, 3.0)
        y = x * x
        (rows,) = tenon.autograd.grad(y, x, tenon.eye(3), is_grads_batched=True)
        self.assertEqual(rows.tolist(), [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]])


class Texts(unittest.TestCase):
    """The words of PyTorch 2.11."""

    def test_a_written_tensor_is_named_by_its_type(self):
        for mask, shown in ((tenon.tensor([True, False]), "CPUBoolType"), (tenon.tensor([2, 3]), "torch.LongTensor"),
                            (tenon.ones(2, dtype=tenon.bfloat16), "CPUBFloat16Type"),
                            (tenon.ones(2, dtype=tenon.complex64), "CPUComplexFloatType"),
                            (tenon.ones(2, dtype=tenon.float16), "torch.HalfTensor")):
            x = leaf(1.0, 2.0)
            y = tenon.where(mask, x, x * 2) if mask.dtype == tenon.bool else x * mask
            mask.copy_(mask.clone())
            with self.assertRaisesRegex(RuntimeError, r"\[%s \[2\]\] is at version 1" % shown):
                y.sum().abs().backward()

    def test_nodes_show_what_they_keep(self):
        F, x = tenon.nn.functional, tenon.ones(2, 3, 4, 4, requires_grad=True)
        w = tenon.ones(3, 3, 2, 2, requires_grad=True)
        shape = (2, 3, 4, 4)
        for made, expected in (
                (tenon.add(x, x, alpha=3), {"alpha": 3}),
                (x.sum(1, keepdim=True), {"dim": (1,), "keepdim": True, "self_sym_sizes": shape}),
                (x ** 3, {"exponent": 3}), (x.clamp(0, 1), {"min": 0, "max": 1}),
                (x[0], {"dim": 0, "index": 0, "self_sym_sizes": shape}),
                (F.conv2d(x, w, stride=2), {"stride": (2, 2), "padding": (0, 0), "dilation": (1, 1), "groups": 1,
                                            "transposed": False}),
                (F.layer_norm(x, (4,)), {"normalized_shape": (4,)}),
                (F.max_pool2d(x, 2), {"kernel_size": (2, 2), "ceil_mode": False}),
                (F.batch_norm(x, None, None, training=True), {"eps": 1e-05, "training": True}),
                (x.std(), {"dim": None, "correction": None, "keepdim": False}),
                (x.permute(3, 2, 1, 0), {"dims": (3, 2, 1, 0)}), (x.transpose(0, 1), {"dim0": 0, "dim1": 1}),
                (x.split(2)[0], {"dim": 0, "split_size": 2}), (x.tril(1), {"diagonal": 1}),
                (F.leaky_relu(x, .3), {"negative_slope": .3}), (x.lerp(x, .5), {"weight": .5})):
            node = made.grad_fn
            for name, value in expected.items():
                self.assertIn("_saved_" + name, dir(node), node)
                self.assertEqual(getattr(node, "_saved_" + name), value, (node, name))
                self.assertEqual(type(getattr(node, "_saved_" + name)), type(value), (node, name))
        node = x[tenon.tensor([0, 1]), :, tenon.tensor([1, 2])].grad_fn
        self.assertEqual([i if i is None else i.tolist() for i in node._saved_indices], [[0, 1], None, [1, 2]])
        self.assertEqual(x.topk(2)[0].grad_fn._saved_indices.shape, (2, 3, 4, 2))
        loss = F.nll_loss(tenon.ones(2, 3, requires_grad=True), tenon.tensor([0, 1]))
        self.assertEqual((loss.grad_fn._saved_total_weight.item(), loss.grad_fn._saved_ignore_index), (2., -100))
        loss.backward()
        self.assertEqual(loss.grad_fn._saved_reduction, 1)  # numbers stay
        with self.assertRaisesRegex(AttributeError, "no attribute '_saved_reductions'"):
            loss.grad_fn._saved_reductions

    def test_inputs_that_are_no_tensors(self):
        x = leaf(1.0)
        for call in (lambda: tenon.autograd.grad(x.sum(), "w"), lambda: x.sum().backward(inputs="w")):
            with self.assertRaisesRegex(RuntimeError, "all inputs have to be Tensors or GradientEdges, but got str"):
                call()

    def test_passes_have_numbers(self):
        self.assertEqual(tenon._C._current_graph_task_id(), -1)
        seen = []
        for _ in range(2):
            y = leaf(1.0) * 2
            y.register_hook(lambda g: seen.append(tenon._C._current_graph_task_id()))
            y.sum().backward()
        self.assertTrue(0 <= seen[0] < seen[1], seen)
        self.assertEqual(tenon._C._current_graph_task_id(), -1)

    def test_classes_see_backward_and_grad(self):
        seen = []

        class Loud(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append((getattr(func, "__name__", ""), len(args), kwargs))
                return super().__torch_function__(func, types, args, kwargs or {})

        x = leaf(1.0, 2.0).detach().as_subclass(Loud).requires_grad_()
        y = x.sum()
        seen.clear()
        y.backward(retain_graph=True)
        self.assertEqual(seen, [("backward", 1, {"gradient": None, "retain_graph": True, "create_graph": False,
                                                 "inputs": None})])
        seen.clear()
        made, = tenon.autograd.grad(y, x)
        self.assertEqual(seen, [("grad", 2, {
            "grad_outputs": None, "retain_graph": None, "create_graph": False, "only_inputs": True,
            "allow_unused": False, "is_grads_batched": False, "materialize_grads": False})])
        self.assertEqual(made.tolist(), [1.0, 1.0])


class Determinants(unittest.TestCase):
    def test_the_gradient_is_exact_where_a_matrix_has_hardly_an_inverse(self):
        for small in 0, 1e-13, 1e-9, 1e-6, 1:
            x = tenon.tensor([[1., 2, 3], [2, 4, 6 + small], [1, 0, 1]], dtype=tenon.float64, requires_grad=True)
            tenon.det(x).backward()
            (a, b, c), (d, e, f), (g, h, i) = x.tolist()
            cofactors = [[e * i - f * h, f * g - d * i, d * h - e * g], [c * h - b * i, a * i - c * g, b * g - a * h],
                         [b * f - c * e, c * d - a * f, a * e - b * d]]
            for row, wanted in zip(x.grad.tolist(), cofactors):
                for value, number in zip(row, wanted):
                    self.assertAlmostEqual(value, number, delta=1e-13)


class Tangents(unittest.TestCase):
    def test_a_tangent_that_no_rule_takes_is_refused(self):
        """As a gradient is; PyTorch drops it without a word."""
        import tenon.autograd.forward_ad as forward
        F = tenon.nn.functional
        logs, target = tenon.randn(4, 3, dtype=tenon.float64).log_softmax(1), tenon.tensor([0, 2, 1, 1])
        half, weight = tenon.full((4, 3), .5, dtype=tenon.float64), tenon.ones(3, dtype=tenon.float64)
        calls = {"nll_loss_forward": lambda w: F.nll_loss(logs, target, w),
                 "multi_margin_loss": lambda w: F.multi_margin_loss(logs, target, weight=w),
                 "binary_cross_entropy": lambda w: F.binary_cross_entropy(half, half, w),
                 "binary_cross_entropy_with_logits": lambda w: F.binary_cross_entropy_with_logits(logs, half, w)}
        for name, call in calls.items():
            text = "The function '%s' is not differentiable with respect to argument 'weight'. This input cannot have " % name
            with forward.dual_level(), self.assertRaisesRegex(RuntimeError, text + "a tangent"):
                call(forward.make_dual(weight, weight))
            with self.assertRaisesRegex(RuntimeError, text + "requires_grad True"):
                call(weight.clone().requires_grad_())


    def test_the_tangent_of_a_divergence_is_its_gradient_where_a_target_is_0(self):
        import tenon.autograd.forward_ad as forward
        inputs, target = tenon.tensor([-1.0, -0.5]), tenon.tensor([0.0, 0.5])
        divergence = lambda t: tenon.nn.functional.kl_div(inputs, t, reduction="none")  # noqa: E731
        with forward.dual_level():
            primal, tangent = forward.unpack_dual(divergence(forward.make_dual(target, tenon.tensor([0.3, 0.7]))))
        self.assertEqual(primal[0].item(), 0.0)
        x = target.clone().requires_grad_()
        slope, = tenon.autograd.grad(divergence(x).sum(), x)
        self.assertTrue(tangent[0].isnan() and slope[0].isnan())
        self.assertAlmostEqual(tangent[1].item(), 0.7 * slope[1].item(), places=6)


class Graph(unittest.TestCase):
    def test_nodes(self):
        x = leaf(1.0, 2.0)
        y = (x * x).sum()
        fn = y.grad_fn
        self.assertIs(fn, y.grad_fn)
        self.assertEqual(fn.name(), "SumBackward0")
        self.assertEqual(type(fn).__name__, "SumBackward0")
        self.assertRegex(repr(fn), r"^<SumBackward0 object at 0x[0-9a-f]+>$")
        self.assertIsInstance(fn, graph.Node)
        mul, index = fn.next_functions[0]
        self.assertEqual((mul.name(), index), ("MulBackward0", 0))
        self.assertIs(mul.next_functions[0][0], mul.next_functions[1][0])
        accumulator = mul.next_functions[0][0]
        self.assertEqual(accumulator.name(), "torch::autograd::AccumulateGrad")
        self.assertEqual(type(accumulator).__name__, "AccumulateGrad")
        self.assertIs(accumulator.variable, x)
        self.assertIsNone(x.grad_fn)
        with self.assertRaises(AttributeError):
            mul.variable

    def test_saved_values(self):
        x = leaf(1.0, 2.0)
        y = x.exp()
        self.assertEqual(y.grad_fn._saved_result.tolist(), y.tolist())
        z = x * 2 * x
        self.assertIs(z.grad_fn._saved_other, x)
        self.assertIn("_saved_self", dir(z.grad_fn))
        with self.assertRaises(AttributeError):
            z.grad_fn._saved_nothing
        y.sum().backward()
        with self.assertRaisesRegex(RuntimeError, "directly access saved tensors after they have already been freed"):
            y.grad_fn._saved_result

    def test_metadata_lives_as_long_as_the_node(self):
        y = leaf(1.0) * 2
        y.grad_fn.metadata["note"] = "hello"
        gc.collect()
        self.assertEqual(y.grad_fn.metadata, {"note": "hello"})

    def test_versions_bases_and_output_numbers(self):
        x = tenon.zeros(4)
        self.assertEqual(x._version, 0)
        x.add_(1)
        self.assertEqual(x._version, 1)
        graph.increment_version(x)
        self.assertEqual(x._version, 2)
        y = leaf(1.0, 2.0, 3.0, 4.0) * 1
        v = y.view(2, 2)
        self.assertIs(v._base, y)
        self.assertIs(v[0]._base, y)
        self.assertIsNone(y._base)
        a, b = y.split(2)
        self.assertEqual((a.output_nr, b.output_nr), (0, 1))
        self.assertIs(a.grad_fn, b.grad_fn)

    def test_passes_start_and_end_at_edges(self):
        x = tenon.tensor([1.0, 2.0], requires_grad=True)
        y = x * 3
        z = (y ** 2).sum()
        ex, ey, ez = map(graph.get_gradient_edge, (x, y, z))
        del y, z
        by_y, by_x = tenon.autograd.grad(ez, (ey, ex), retain_graph=True)
        self.assertEqual((by_y.tolist(), by_x.tolist()), ([6, 12], [18, 36]))
        self.assertEqual(tenon.autograd.grad(ey, ex, tenon.ones(2), retain_graph=True)[0].tolist(), [3, 3])
        with self.assertRaisesRegex(RuntimeError, "grad can be implicitly created only for scalar outputs"):
            tenon.autograd.grad(ey, x)
        tenon.autograd.backward(ez, inputs=ex)
        self.assertEqual(x.grad.tolist(), [18, 36])

    def test_gradient_edges(self):
        x = leaf(1.0)
        y = x * 2
        edge = graph.get_gradient_edge(y)
        self.assertIs(edge.node, y.grad_fn)
        self.assertEqual(edge.output_nr, 0)
        self.assertEqual(graph.get_gradient_edge(x).node.name(), "torch::autograd::AccumulateGrad")
        with self.assertRaisesRegex(RuntimeError, "It is not possible to get the gradient edge"):
            graph.get_gradient_edge(tenon.ones(1))

    def test_retain_grad(self):
        x = leaf(1.0, 2.0)
        y = x * 3
        self.assertFalse(y.retains_grad)
        y.retain_grad()
        self.assertTrue(y.retains_grad)
        (y * y).sum().backward()
        self.assertEqual(y.grad.tolist(), [6.0, 12.0])
        self.assertIs(y.grad, y.grad)
        x.retain_grad()
        self.assertFalse(x.retains_grad)
        with self.assertRaisesRegex(RuntimeError, "can't retain_grad on Tensor that has requires_grad=False"):
            tenon.ones(1).retain_grad()

    def test_variable_is_a_name_of_tensor(self):
        x = tenon.autograd.Variable(tenon.ones(2), requires_grad=True)
        self.assertIsInstance(x, tenon.autograd.Variable)
        self.assertTrue(x.requires_grad and x.is_leaf)


class Hooks(unittest.TestCase):
    def test_order(self):
        order = []
        x = leaf(1.0)
        y = x * 2
        y.register_hook(lambda g: order.append("tensor y"))
        y.retain_grad()
        y.grad_fn.register_prehook(lambda grads: order.append("pre"))
        y.grad_fn.register_hook(lambda inputs, outputs: order.append("post"))
        x.register_hook(lambda g: order.append("tensor x"))
        x.register_post_accumulate_grad_hook(lambda t: order.append("accumulated %s" % t.grad.tolist()))
        y.sum().backward()
        self.assertEqual(order, ["tensor y", "pre", "post", "tensor x", "accumulated [2.0]"])

    def test_a_hook_replaces_the_gradient(self):
        x = leaf(1.0, 2.0)
        with x.register_hook(lambda g: g * 10):
            x.sum().backward()
        x.sum().backward()
        self.assertEqual(x.grad.tolist(), [11.0, 11.0])

    def test_node_hooks_replace_gradients(self):
        x, w = leaf(1.0), leaf(3.0)
        y = x * w
        y.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
        seen = []
        y.grad_fn.register_hook(lambda ins, outs: seen.append((len(ins), len(outs))) or (ins[0] + 1, None))
        y.sum().backward()
        self.assertEqual((x.grad.item(), w.grad), (7.0, None))
        self.assertEqual(seen, [(2, 1)])

    def test_a_removed_hook_is_not_called(self):
        x, calls = leaf(1.0), []
        handle = x.register_hook(calls.append)
        handle.remove()
        handle.remove()
        x.sum().backward()
        self.assertEqual(calls, [])

    def test_errors(self):
        with self.assertRaisesRegex(RuntimeError, "cannot register a hook on a tensor that doesn't require gradient"):
            tenon.ones(1).register_hook(print)
        x = leaf(1.0)
        with self.assertRaisesRegex(RuntimeError, "post accumulate grad hooks cannot be registered on non-leaf tensors"):
            (x * 1).register_post_accumulate_grad_hook(print)
        with x.register_hook(lambda g: 3):
            with self.assertRaisesRegex(TypeError, "expected Variable, but hook returned 'int'"):
                x.sum().backward()
        with x.register_hook(lambda g: tenon.ones(5)):
            with self.assertRaisesRegex(RuntimeError, "hook .* has changed the size of value"):
                x.sum().backward()
        y = x * leaf(2.0)
        y.grad_fn.register_hook(lambda ins, outs: (1, 2, 3))
        with self.assertRaisesRegex(RuntimeError, r"has returned an incorrect number of values \(got 3, but expected 2\)"):
            y.sum().backward()

    def test_an_exception_comes_out_as_it_was(self):
        class Mine(Exception):
            pass

        error = Mine("from the hook")

        def hook(g):
            raise error

        x = leaf(1.0)
        caught = None
        with x.register_hook(hook):
            try:
                (x * 2).sum().backward()
            except Mine as exception:
                caught = exception
        self.assertIs(caught, error)
        names = []
        trace = caught.__traceback__
        while trace:
            names.append(trace.tb_frame.f_code.co_name)
            trace = trace.tb_next
        self.assertEqual(names[-1], "hook")
        x.sum().backward()
        self.assertEqual(x.grad.tolist(), [1.0])
        with self.assertRaisesRegex(RuntimeError, "grad can be implicitly created"):  # and is not raised again
            (leaf(1.0, 2.0) * 1).backward()

    def test_the_function_of_a_hook_goes_with_the_tensor(self):
        def hook(g):
            return None

        reference = weakref.ref(hook)
        x = leaf(1.0)
        x.register_hook(hook)
        del hook
        gc.collect()
        self.assertIsNotNone(reference())
        del x
        gc.collect()
        self.assertIsNone(reference())

    def test_a_pass_inside_a_hook(self):
        x, w = leaf(2.0), leaf(5.0)

        def hook(g):
            self.assertFalse(tenon.is_grad_enabled())
            with tenon.enable_grad():
                (w * w).sum().backward()
            return g + w.grad

        with x.register_hook(hook):
            x.sum().backward()
        self.assertEqual(x.grad.tolist(), [11.0])

    def test_a_product_of_meta_tensors_inside_a_hook_does_not_hang(self):
        # The call of the mission documents, under a watchdog.
        x = tenon.empty(2, 4, 16, device="meta", requires_grad=True)
        w = tenon.empty(16, 16, device="meta", requires_grad=True)
        y = leaf(1.0)
        shapes = []
        y.register_hook(lambda g: shapes.append(tuple(tenon.matmul(x, w).shape)))
        done = threading.Event()

        def work():
            y.sum().backward()
            tenon.matmul(x, w).sum().backward()
            done.set()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self.assertTrue(done.wait(300), "hangs")
        self.assertEqual(shapes, [(2, 4, 16)])
        self.assertEqual(tuple(w.grad.shape), (16, 16))

    def test_hooks_on_several_gradients(self):
        a, b, c = leaf(1.0), leaf(2.0), leaf(3.0)
        calls = []
        handle = graph.register_multi_grad_hook((a, b, c), lambda grads: calls.append(
            [None if g is None else g.item() for g in grads]))
        (a * b).sum().backward()
        (a + b * c).sum().backward()
        self.assertEqual(calls, [[2.0, 1.0, None], [1.0, 3.0, 2.0]])
        handle.remove()
        a.sum().backward()
        self.assertEqual(len(calls), 2)
        first = []
        with graph.register_multi_grad_hook((a, b), lambda g: first.append(g.item()), mode="any"):
            (a * 5 + b * 5).sum().backward()
        self.assertEqual(first, [5.0])
        with self.assertRaisesRegex(ValueError, "Expects mode to be one of"):
            graph.register_multi_grad_hook((a,), print, mode="some")

    def test_a_callback_at_the_end_of_the_pass(self):
        order = []
        x = leaf(1.0)

        def hook(g):
            tenon.autograd.Variable._execution_engine.queue_callback(lambda: order.append("end"))
            order.append("hook")

        x.register_hook(hook)
        x.register_post_accumulate_grad_hook(lambda t: order.append("leaf"))
        x.sum().backward()
        self.assertEqual(order, ["hook", "leaf", "end"])
        with self.assertRaisesRegex(RuntimeError, "Final callbacks can only be installed during backward pass."):
            tenon.autograd.Variable._execution_engine.queue_callback(print)


class SavedHooks(unittest.TestCase):
    def test_what_is_unpacked_is_used(self):
        packed = []

        def pack(t):
            packed.append(t)
            return t.tolist()

        x = leaf(2.0, 3.0)
        with graph.saved_tensors_hooks(pack, lambda p: tenon.tensor(p) * 10):
            y = (x * x).sum()
        y.backward()
        self.assertEqual(len(packed), 2)
        self.assertEqual(x.grad.tolist(), [40.0, 60.0])

    def test_errors(self):
        x = leaf(2.0)
        with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
            y = x.exp()
        with self.assertRaisesRegex(TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"):
            y.sum().backward()

        def bad(t):
            raise KeyError("pack")

        with graph.saved_tensors_hooks(bad, lambda t: t):
            with self.assertRaises(KeyError):
                x.exp()
            with self.assertRaises(KeyError):
                x * x
        with graph.disable_saved_tensors_hooks("not here"):
            with self.assertRaisesRegex(RuntimeError, "not here"):
                with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    pass
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            x.exp()

    def test_save_on_cpu_and_copies(self):
        x = leaf(1.0, 2.0)
        with graph.save_on_cpu():
            y = x * x
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [2.0, 4.0])
        with graph.allow_mutation_on_saved_tensors():
            h = x * 3
            y = h * h
            h.zero_()
            y.sum().backward()
        self.assertEqual(x.grad.tolist(), [20.0, 40.0])


class Anomaly(unittest.TestCase):
    def test_the_message_has_the_python_line_of_the_forward_call(self):
        x = leaf(-1.0, 4.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tenon.autograd.detect_anomaly():
                y = x.sqrt().sum()  # the line in question
                with self.assertRaises(RuntimeError) as raised:
                    y.backward()
        text = str(raised.exception)
        self.assertIn("Function 'SqrtBackward0' returned nan values in its 0th output.", text)
        self.assertIn("Error detected in SqrtBackward0. Traceback of forward call that caused the error:", text)
        self.assertIn("the line in question", text)
        self.assertIn("Anomaly Detection has been enabled.", str(caught[0].message))
        self.assertFalse(tenon.is_anomaly_enabled())

    def test_a_warning_says_where_as_the_reference_does(self):
        class Fails(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, grad):
                raise ValueError("mine")

        x = leaf(1.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tenon.autograd.set_detect_anomaly(True):
                with self.assertRaisesRegex(ValueError, "mine"):
                    Fails.apply(x).sum().backward()  # that call
        self.assertEqual(len(caught), 1)
        self.assertIn("Error detected in FailsBackward. Traceback of forward call", str(caught[0].message))
        self.assertIn("that call", str(caught[0].message))

    def test_a_node_knows_where_it_was_made(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with tenon.autograd.set_detect_anomaly(True):
                y = leaf(1.0) * 2  # made here
        lines = y.grad_fn.metadata["traceback_"]
        self.assertIsInstance(lines, list)
        self.assertTrue(all(line.startswith("  File ") and line.endswith("\n") for line in lines), lines)
        self.assertIn("made here", lines[-1])
        self.assertNotIn("  in aten", lines[-1])
        self.assertEqual((leaf(1.0) * 2).grad_fn.metadata, {})

    def test_nan_may_pass_when_that_is_wanted(self):
        x = leaf(-1.0)
        with tenon.autograd.set_detect_anomaly(True, check_nan=False):
            self.assertTrue(tenon.is_anomaly_enabled())
            self.assertFalse(tenon.is_anomaly_check_nan_enabled())
            x.sqrt().sum().backward()
        self.assertTrue(x.grad.isnan().all())

    def test_exceptions_of_hooks_keep_their_type(self):
        x = leaf(1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with tenon.autograd.detect_anomaly():
                with self.assertRaises(ZeroDivisionError) as caught:
                    y = x * 3  # noted
                    y.register_hook(lambda g: 1 / 0)
                    y.sum().backward()
        self.assertIn("y = x * 3  # noted", caught.exception.__notes__[0])


    def test_results_of_the_forward_pass_are_looked_at_when_asked(self):
        def inside(**words):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return tenon.autograd.detect_anomaly(**words)

        x = leaf(-1.0, 0.0)
        with inside():
            self.assertTrue(x.sqrt().isnan().any())  # as PyTorch: gradients alone
        with inside(check_forward=True):
            self.assertTrue(x.reciprocal().isinf().any())
            with self.assertRaisesRegex(RuntimeError, "sqrt"):
                x.sqrt()
            with inside():
                x.sqrt()
            with self.assertRaisesRegex(RuntimeError, "sqrt"):
                x.sqrt()  # what was on before is on again
        with inside(check_forward="inf"), self.assertRaisesRegex(RuntimeError, "reciprocal"):
            x.reciprocal()
        x.sqrt(), x.reciprocal()
        with tenon.autograd.set_detect_anomaly(True, check_forward=True):
            with self.assertRaisesRegex(RuntimeError, "sqrt"):
                x.sqrt()
        x.sqrt()
        with self.assertRaisesRegex(ValueError, "check_forward must be False, True, 'nan' or 'inf', got 3"):
            tenon.autograd.set_detect_anomaly(True, check_forward=3)
        self.assertFalse(tenon.is_anomaly_enabled())


class Threads(unittest.TestCase):
    def test_eight_threads_share_leaves(self):
        x, w = tenon.ones(64, requires_grad=True), tenon.ones(64, requires_grad=True)
        errors, rounds = [], 50
        x.register_hook(lambda g: None)

        def work():
            try:
                for _ in range(rounds):
                    (x * w * 2).sum().backward()
                    x.grad
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(600)
        self.assertEqual(errors, [])
        self.assertEqual(x.grad.tolist(), [2.0 * 8 * rounds] * 64)
        self.assertEqual(w.grad.tolist(), [2.0 * 8 * rounds] * 64)

    def test_other_threads_run_during_a_pass(self):
        x = tenon.ones(256, 256, requires_grad=True)
        y = x
        for _ in range(60):
            y = (y @ x) * 0.001
        count, stop = [0], threading.Event()

        def tick():
            while not stop.is_set():
                count[0] += 1
                time.sleep(0)

        t = threading.Thread(target=tick)
        t.start()
        loss, during = y.sum(), 0
        for _ in range(100):  # it may get no processor for a while
            before = count[0]
            loss.backward(retain_graph=True)
            during = count[0] - before
            if during:
                break
        stop.set()
        t.join()
        self.assertGreater(during, 0)

    def test_a_child_of_fork_computes_gradients(self):
        x = leaf(1.0, 2.0)
        (x * x).sum().backward()
        pid = os.fork()
        if pid == 0:
            try:
                (x * x).sum().backward()
                os._exit(0 if x.grad.tolist() == [4.0, 8.0] else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 0)


INTERRUPTED = r"""
import sys, time
import tenon
x = tenon.ones(256, 256, requires_grad=True)
y = x
for _ in range(%d):
    y = (y @ x) * 1e-3
try:
    print("ready", flush=True)
    y.sum().backward()
    print("not interrupted", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
z = (x * 2).sum()
z.backward()
print("usable" if x.grad is not None else "broken", flush=True)
"""


class Interrupt(unittest.TestCase):
    def test_ctrl_c_ends_a_pass_without_python_in_it(self):
        for patience in 0.3, 0.1, 0.03, 0.01:  # a fast machine may be done before the signal comes
            process = subprocess.Popen([sys.executable, "-c", INTERRUPTED % 1500], stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, text=True)
            self.assertEqual(process.stdout.readline().strip(), "ready")
            time.sleep(patience)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=600)
            if "not" not in out:
                break
        self.assertEqual(out.split(), ["interrupted", "usable"], err)


class LikeTheReference(unittest.TestCase):
    """Small things that programs see; each was compared with the reference."""

    def test_a_view_whose_history_must_not_be_rebuilt_is_neither_leaf_nor_not(self):
        base = leaf(1.0, 2.0) * 1
        view = base.unbind()[1]
        base.mul_(2)
        text = "Output 1 of UnbindBackward0 is a view and its base or another view of its base has been modified inplace"
        for ask in (lambda: view.is_leaf, lambda: view.grad_fn,
                    lambda: view.register_post_accumulate_grad_hook(lambda t: None)):
            with self.assertRaisesRegex(RuntimeError, text):
                ask()
        self.assertEqual(view.output_nr, 1)
        self.assertTrue(view.requires_grad)

    def test_requires_grad_of_a_result_is_not_set(self):
        y = leaf(1.0) * 2
        with self.assertRaisesRegex(RuntimeError, "you can only change requires_grad flags of leaf variables.$"):
            y.requires_grad = True
        with self.assertRaisesRegex(RuntimeError, "of leaf variables. If you want to use a computed variable"):
            y.requires_grad = False
        self.assertIs(y.requires_grad_(), y)
        with self.assertRaisesRegex(RuntimeError, "only Tensors of floating point dtype can require gradients$"):
            tenon.ones(2, dtype=tenon.int64).requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "Only Tensors of floating point and complex dtype can require gradients"):
            tenon.nn.Parameter(tenon.ones(2, dtype=tenon.int64))

    def test_hooks_that_change_the_kind_of_a_gradient_are_named(self):
        def wrong(g):
            return g.double()

        def longer(g):
            return tenon.ones(7)

        for hook, text in ((wrong, r"hook 'wrong' has changed the type of value \(was torch.FloatTensor got torch.DoubleTensor\)"),
                           (longer, "hook 'longer' has changed the size of value")):
            x = leaf(1.0, 2.0)
            x.register_hook(hook)
            with self.assertRaisesRegex(RuntimeError, text):
                (x * 2).sum().backward()

    def test_hooks_of_a_node_see_the_results_that_have_gradients(self):
        x, seen = leaf(1.0, 3.0), []
        values, _ = x.max(0)
        values.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
        values.grad_fn.register_hook(lambda made, grads: seen.append((len(made), len(grads))))
        values.backward()
        self.assertEqual(seen, [1, (1, 1)])

    def test_marking_as_dirty_counts_a_write(self):
        class Nothing(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return g

        for x in (tenon.ones(2), leaf(1.0) * 1, tenon.ones(2, dtype=tenon.int64)):
            Nothing.apply(x)
            self.assertEqual(x._version, 1)

    def test_a_function_may_save_what_is_detached_later(self):
        class Times(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            def backward(ctx, g):
                x, y = ctx.saved_tensors
                return g * y, g * x

        x = leaf(3.0)
        y = x * 2
        z = Times.apply(x, y)
        y.detach_()
        z.sum().backward()
        self.assertEqual(x.grad.tolist(), [6.0 + 3.0 * 2])

    def test_the_gradient_of_a_weight_is_not_copied(self):
        m = tenon.nn.Linear(3, 2)
        m(tenon.ones(4, 3)).relu().sum().backward()
        self.assertEqual((m.weight.grad._version, m.bias.grad._version), (0, 0))


if __name__ == "__main__":
    harness.main()
