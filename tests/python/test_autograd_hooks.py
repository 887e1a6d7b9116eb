# SPDX-License-Identifier: MIT
"""Hooks of tensors, of nodes and of what is saved, from Python."""
import gc
import threading
import unittest
import weakref

import harness
from leaves import leaf
import tenon
from tenon.autograd import graph


class Hooks(unittest.TestCase):
    def test_a_hook_after_accumulating_may_return_its_tensor_and_nothing_else(self):
        for give, error in ((lambda p: p, None), (lambda p: None, None), (lambda p: p.grad, "should return None"),
                            (lambda p: 3, "expected Variable, but hook returned 'int'")):
            x = tenon.ones(2, requires_grad=True)
            x.register_post_accumulate_grad_hook(give)
            if error is None:
                (x * 2).sum().backward()
                self.assertEqual(x.grad.tolist(), [2.0, 2.0])
            else:
                with self.assertRaisesRegex((RuntimeError, TypeError), error):
                    (x * 2).sum().backward()

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

    def test_those_of_a_turn_are_gone_with_it(self):  # as in PyTorch
        def pair():
            return graph.saved_tensors_hooks(lambda t: t, lambda t: t)

        outer, found = pair(), []

        def run(change):
            x = leaf(2.0)
            a = x * 2
            b = a * 3
            b.register_hook(lambda g: change())
            a.register_hook(lambda g: found.append(tenon._C._saved_hooks_on()))
            b.backward()
            found.append(tenon._C._saved_hooks_on())

        run(lambda: pair().__enter__())
        self.assertEqual(found, [False, False])
        with outer:
            run(lambda: outer.__exit__())
        self.assertEqual(found[2:], [True, True])
        run(lambda: graph.disable_saved_tensors_hooks("no").__enter__())
        with outer:
            pass
        run(lambda: tenon.autograd.Variable._execution_engine.queue_callback(lambda: pair().__enter__()))
        self.assertFalse(tenon._C._saved_hooks_on())

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


if __name__ == "__main__":
    harness.main()
