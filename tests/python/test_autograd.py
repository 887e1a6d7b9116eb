# SPDX-License-Identifier: MIT
"""Backward passes, grad, and what they say, from Python."""
import subprocess
import sys
import unittest

import harness
from leaves import leaf
import tenon


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

    def test_function_form_asks_classes_of_tensors(self):
        seen = []

        class Asked(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                seen.append(func)
                return super().__torch_function__(func, types, args, kwargs)
        x = leaf(1.0, 2.0)
        y = x.as_subclass(Asked).sum()
        seen.clear()
        tenon.autograd.backward(y)
        self.assertEqual(seen, [tenon.autograd.backward])
        self.assertEqual(x.grad.tolist(), [1.0, 1.0])

    def test_function_form_takes_several_tensors(self):
        x = leaf(1.0, 2.0)
        tenon.autograd.backward([x.sum(), (x * x).sum()])
        self.assertEqual(x.grad.tolist(), [3.0, 5.0])
        tenon.autograd.backward([x * 1, (x * 2).sum()], [tenon.ones(2), None])
        self.assertEqual(x.grad.tolist(), [6.0, 8.0])
        with self.assertRaisesRegex(RuntimeError, "got 1 tensors and 2 gradients"):
            tenon.autograd.backward([x * 1], [tenon.ones(2), tenon.ones(2)])


class OtherSizes(unittest.TestCase):
    """A leaf that set_ gives elements of other sizes while a graph still leads to it."""

    def give(self, x, other):
        with tenon.no_grad():
            x.set_(other)

    def test_gradients_are_those_of_the_new_sizes(self):
        for before, after in ((4, 3), (1, 3), (3, 1)):
            x = tenon.ones(before, requires_grad=True)
            seen = []
            x.register_hook(lambda g, seen=seen: seen.append(tuple(g.shape)))
            old = x * 2
            old.sum().backward()
            self.give(x, tenon.ones(after))
            x.grad = None
            (x * 2).sum().backward()
            self.assertEqual(x.grad.tolist(), [2.0] * after)
            self.assertEqual(seen, [(before,), (after,)])

    def test_what_was_recorded_before_gives_what_it_gave(self):
        x = tenon.ones(1, requires_grad=True)
        old = (x * tenon.ones(3)).sum()
        self.give(x, tenon.ones(3))
        new = (x * 2).sum()
        old.backward()
        self.assertEqual(x.grad.tolist(), [3.0])
        x.grad = None
        new.backward()
        self.assertEqual(x.grad.tolist(), [2.0, 2.0, 2.0])


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

    def test_gradcheck_calls_functions_that_take_gradients(self):
        def slope(x):
            self.assertTrue(x.requires_grad)
            return tenon.autograd.grad((x * x * x).sum(), x, create_graph=True)[0]
        x = tenon.tensor([0.5, -2.0], dtype=tenon.float64, requires_grad=True)
        for fast in (False, True):
            self.assertTrue(tenon.autograd.gradcheck(slope, (x,), fast_mode=fast))
            self.assertTrue(tenon.autograd.gradgradcheck(slope, (x,), fast_mode=fast))

    def test_gradcheck_refuses_outputs_that_depend_on_the_place(self):
        x = tenon.ones(1, dtype=tenon.float64, requires_grad=True)
        for what, other in (("shape", lambda x: tenon.cat([x, x])), ("dtype", lambda x: x.to(tenon.float32))):
            for fast in (False, True):
                with self.assertRaisesRegex(AssertionError, "return outputs with the same %s when inputs are perturbed by 1e-06" % what):
                    tenon.autograd.gradcheck(lambda x, other=other: other(x) if bool((x >= 1).all()) else x * 1, (x,), fast_mode=fast)

    def test_a_negative_number_to_a_complex_power(self):
        e = tenon.tensor([0.5 + 1j, 0.2 - 1j], dtype=tenon.complex128, requires_grad=True)
        for base in (-1, -2.5, tenon.tensor(-2.5, dtype=tenon.float64)):
            self.assertTrue(tenon.autograd.gradcheck(lambda e, base=base: tenon.pow(base, e), (e,), check_forward_ad=True))

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
        edge = tenon.autograd.graph.get_gradient_edge(w)
        self.assertEqual(tenon.autograd.grad(x.sum(), [x, edge], materialize_grads=True)[1].tolist(), [0.0])
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
