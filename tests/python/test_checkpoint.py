# SPDX-License-Identifier: MIT
"""utils.checkpoint: both forms give the gradients of the plain call, and the texts of what is refused."""
import contextlib
import gc
import unittest
import warnings
import weakref

import harness
from leaves import leaf
import tenon
from tenon.utils.checkpoint import (CheckpointError, CheckpointPolicy, checkpoint, checkpoint_sequential,
                                    create_selective_checkpoint_contexts)


class Both(unittest.TestCase):
    def test_gradients_are_those_of_the_plain_call(self):
        calls = []

        def f(x, w):
            calls.append(1)
            h = (x * w).tanh()
            return (h * h).exp()

        def plain():
            x, w = leaf(0.1, -0.2, 0.3), leaf(1.0, 2.0, 3.0)
            f(x, w).sum().backward()
            return x.grad, w.grad

        wanted = plain()
        for reentrant in (True, False):
            del calls[:]
            x, w = leaf(0.1, -0.2, 0.3), leaf(1.0, 2.0, 3.0)
            checkpoint(f, x, w, use_reentrant=reentrant).sum().backward()
            self.assertEqual(len(calls), 2)
            self.assertTrue(tenon.equal(x.grad, wanted[0]))
            self.assertTrue(tenon.equal(w.grad, wanted[1]))

    def test_random_numbers_are_the_same_again(self):
        for reentrant in (True, False):
            seen = []

            def f(x):
                noise = tenon.rand(3)
                seen.append(noise)
                return (x * noise).exp()

            x = leaf(1.0, 2.0, 3.0)
            y = checkpoint(f, x, use_reentrant=reentrant)
            tenon.rand(5)
            y.sum().backward()
            self.assertTrue(tenon.equal(seen[0], seen[1]))

    def test_without_a_choice_there_is_a_warning(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = checkpoint(lambda x: x.exp(), leaf(1.0))
        self.assertIn("the use_reentrant parameter should be passed explicitly", str(caught[0].message))
        self.assertEqual(y.grad_fn.name(), "CheckpointFunctionBackward")

    def test_sequences(self):
        parts = [lambda x: x * 2, lambda x: x.exp(), lambda x: x + 1, lambda x: x.sin(), lambda x: x * x]
        plain = leaf(0.1, 0.2)
        y = plain
        for part in parts:
            y = part(y)
        y.sum().backward()
        for reentrant in (True, False):
            for segments in (1, 2, 3):
                x = leaf(0.1, 0.2)
                checkpoint_sequential(parts, segments, x, use_reentrant=reentrant).sum().backward()
                self.assertTrue(tenon.allclose(x.grad, plain.grad))

    def test_exceptions_come_through(self):
        for reentrant in (True, False):
            runs = []

            def f(x):
                runs.append(1)
                if len(runs) == 2:
                    raise LookupError("the second time")
                return x.exp().exp()

            y = checkpoint(f, leaf(1.0), use_reentrant=reentrant)
            with self.assertRaisesRegex(LookupError, "the second time"):
                y.sum().backward()


class Reentrant(unittest.TestCase):
    def test_inputs_and_grad_are_refused(self):
        x = leaf(1.0)
        y = checkpoint(lambda x: x.exp(), x, use_reentrant=True)
        with self.assertRaisesRegex(RuntimeError, "When use_reentrant=True, torch.utils.checkpoint is incompatible with"):
            tenon.autograd.grad(y.sum(), x)

    def test_no_input_requires_grad(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            checkpoint(lambda x: x.exp(), tenon.ones(1), use_reentrant=True)
        self.assertIn("None of the inputs have requires_grad=True. Gradients will be None", str(caught[0].message))

    def test_keywords_are_refused(self):
        with self.assertRaisesRegex(ValueError, "Unexpected keyword arguments: n"):
            checkpoint(lambda x, n: x, leaf(1.0), use_reentrant=True, n=2)
        with self.assertRaisesRegex(ValueError, "Passing `context_fn` or `debug` is only supported when use_reentrant=False."):
            checkpoint(lambda x: x, leaf(1.0), use_reentrant=True, debug=True)


class Again(unittest.TestCase):
    def test_grad_closures_keywords_and_nested_results(self):
        w = leaf(3.0)

        def f(pair, *, scale):
            a, b = pair
            return {"y": (a * b * w).exp() * scale, "n": 7}

        a, b = leaf(0.1), leaf(0.2)
        out = checkpoint(f, (a, b), use_reentrant=False, scale=tenon.tensor([2.0]))
        self.assertEqual(out["n"], 7)
        got = tenon.autograd.grad(out["y"].sum(), [a, b, w])
        y = (a * b * w).exp() * 2
        wanted = tenon.autograd.grad(y.sum(), [a, b, w])
        for g, e in zip(got, wanted):
            self.assertTrue(tenon.allclose(g, e))

    def test_twice_differentiated(self):
        x = leaf(0.5)
        y = checkpoint(lambda x: (x ** 3).sin(), x, use_reentrant=False)
        (g,) = tenon.autograd.grad(y.sum(), x, create_graph=True)
        (gg,) = tenon.autograd.grad(g.sum(), x)
        z = (x ** 3).sin()
        (h,) = tenon.autograd.grad(z.sum(), x, create_graph=True)
        (hh,) = tenon.autograd.grad(h.sum(), x)
        self.assertTrue(tenon.allclose(gg, hh))
        y = checkpoint(lambda x: (x ** 3).sin(), x, use_reentrant=True)
        with self.assertRaisesRegex(RuntimeError, "use_reentrant=True.* incompatible with create_graph=True"):
            y.sum().backward(create_graph=True)
        self.assertIsNone(x.grad)

    def test_nested(self):
        runs = {"inner": 0, "outer": 0}

        def inner(x):
            runs["inner"] += 1
            return x.exp().sin()

        def outer(x):
            runs["outer"] += 1
            return checkpoint(inner, x.tanh(), use_reentrant=False).exp()

        x, p = leaf(0.3), leaf(0.3)
        checkpoint(outer, x, use_reentrant=False).sum().backward()
        p.tanh().exp().sin().exp().sum().backward()
        self.assertTrue(tenon.allclose(x.grad, p.grad))
        self.assertEqual(runs["outer"], 2)

    def test_nested_over_leaves_and_over_views_without_history(self):
        def f(x):
            return checkpoint(lambda y: y.sin().exp(), x, use_reentrant=False) * 2

        x = leaf(0.5, 1.0)
        checkpoint(f, x, use_reentrant=False).sum().backward()
        w = x.detach().requires_grad_()
        (w.sin().exp() * 2).sum().backward()
        self.assertTrue(tenon.equal(x.grad, w.grad))
        with tenon.no_grad():
            view = x.view(2)
        y = checkpoint(f, view, use_reentrant=False)
        y.sum().backward()
        self.assertTrue(tenon.equal(x.grad, w.grad))  # it leads nowhere

    def test_running_again_stops_when_all_is_there(self):
        steps = []

        def f(x):
            y = x.exp()
            steps.append("saved")
            y = y + 1
            steps.append("after")
            return y

        checkpoint(f, leaf(1.0), use_reentrant=False).sum().backward()
        self.assertEqual(steps, ["saved", "after"])  # the second run ended inside exp

    def test_passes_inside_the_piece(self):
        def slope(x):
            y = x.sin().exp().sin()
            a, = tenon.autograd.grad(y.sum(), x, create_graph=True)
            b, = tenon.autograd.grad(x.cos().sum(), x, create_graph=True)
            return a * b.exp()
        x = leaf(0.5, -2.0)
        wanted, = tenon.autograd.grad(slope(x).sum(), x)
        for stop in (True, False):
            y = checkpoint(slope, x, use_reentrant=False, early_stop=stop)
            self.assertEqual(tenon.autograd.grad(y.sum(), x)[0].tolist(), wanted.tolist())
            y = checkpoint(lambda x, stop=stop: checkpoint(slope, x, use_reentrant=False, early_stop=stop), x,
                           use_reentrant=False, early_stop=stop)
            self.assertEqual(tenon.autograd.grad(y.sum(), x)[0].tolist(), wanted.tolist())

    def test_what_a_pass_inside_the_piece_saves_can_be_seen_in_it(self):
        seen = []

        def slope(x):
            y = x.exp()

            def look(g):
                made = g * g.exp()
                seen.append(made.grad_fn._saved_self.tolist())
            y.register_hook(look)
            return tenon.autograd.grad((y * y).sum(), x, create_graph=True)[0]
        x = leaf(0.0, 0.0)
        y = checkpoint(slope, x, use_reentrant=False, early_stop=False)
        self.assertEqual(y.tolist(), [2.0, 2.0])
        self.assertEqual(seen[-1], [2.0, 2.0])

    def test_the_context_says_more_than_the_argument(self):
        from tenon.utils.checkpoint import set_checkpoint_early_stop

        def count(**told):
            calls = [0]

            def function(x):
                y = x.sin()
                calls[0] += 1 if y.requires_grad else 0
                return y * 1
            checkpoint(function, leaf(1.0), use_reentrant=False, **told).sum().backward()
            return calls[0]
        self.assertEqual((count(), count(early_stop=False)), (1, 2))
        with set_checkpoint_early_stop(True):
            self.assertEqual(count(early_stop=False), 1)
            with set_checkpoint_early_stop(False):
                self.assertEqual(count(early_stop=True), 2)

    def test_what_fails_while_a_run_stops_early_comes_through(self):
        # Ctrl+C that came then was lost
        for failure in (KeyboardInterrupt, ZeroDivisionError("on the way out")):
            runs = []

            def f(x):
                runs.append(1)
                try:
                    return x.exp().sin()
                finally:
                    if len(runs) == 2:
                        raise failure

            x = leaf(0.5)
            y = checkpoint(f, x, use_reentrant=False)
            with self.assertRaises(KeyboardInterrupt if failure is KeyboardInterrupt else ZeroDivisionError):
                y.sum().backward()
            self.assertIsNone(x.grad)
            checkpoint(f, x, use_reentrant=False).sum().backward()
            self.assertEqual(len(runs), 4)
            self.assertTrue(tenon.allclose(x.grad, x.detach().exp() * x.detach().exp().cos()))

    def test_differences_are_found(self):
        runs = []

        def f(x):
            runs.append(1)
            if len(runs) == 1:
                return x.exp().sin()
            return x.reshape(2, 1).exp().sin()

        y = checkpoint(f, leaf(1.0, 2.0), use_reentrant=False)
        with self.assertRaisesRegex(CheckpointError, "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass."):
            y.sum().backward()
        del runs[:]

        def fewer(x):
            runs.append(1)
            return x.exp().sin() if len(runs) == 1 else x.exp()

        y = checkpoint(fewer, leaf(1.0, 2.0), use_reentrant=False)
        with self.assertRaisesRegex(CheckpointError, "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation."):
            y.sum().backward()
        with self.assertRaisesRegex(ValueError, "determinism_check should be one of"):
            checkpoint(f, leaf(1.0), use_reentrant=False, determinism_check="strict")

    def test_contexts(self):
        order = []

        @contextlib.contextmanager
        def note(name):
            order.append(name)
            yield

        y = checkpoint(lambda x: x.exp(), leaf(1.0), use_reentrant=False,
                       context_fn=lambda: (note("first"), note("again")))
        self.assertEqual(order, ["first"])
        y.sum().backward()
        self.assertEqual(order, ["first", "again"])

    def test_autocast_is_the_same_again(self):
        seen = []

        def f(x):
            y = x @ x
            seen.append(y.dtype)
            return y.float().exp().exp()

        x = tenon.ones(2, 2, requires_grad=True)
        with tenon.autocast("cpu", dtype=tenon.bfloat16):
            y = checkpoint(f, x, use_reentrant=False)
        y.sum().backward()
        self.assertEqual(seen, [tenon.bfloat16, tenon.bfloat16])

    def test_what_is_computed_is_let_go(self):
        kept = []

        def f(x):
            h = x.exp()
            kept.append(weakref.ref(h))
            return h.sin()

        y = checkpoint(f, leaf(1.0), use_reentrant=False)
        gc.collect()
        self.assertIsNone(kept[0]())
        y.sum().backward()
        del y
        gc.collect()
        self.assertIsNone(kept[1]())

    def test_without_recording_it_is_a_plain_call(self):
        with tenon.no_grad():
            self.assertFalse(checkpoint(lambda x: x.exp(), leaf(1.0), use_reentrant=False).requires_grad)


class Selective(unittest.TestCase):
    def operators_of_the_pass(self, choice):
        from tenon.utils._python_dispatch import TorchDispatchMode
        ran = []

        class Log(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                ran.append(func._opname)
                return func(*args, **(kwargs or {}))

        def f(x, w):
            return tenon.sigmoid(tenon.mm(tenon.sin(x), w)).sum()

        x, w = tenon.randn(3, 3, requires_grad=True), tenon.randn(3, 3, requires_grad=True)
        out = checkpoint(f, x, w, use_reentrant=False,
                                    context_fn=lambda: create_selective_checkpoint_contexts(choice))
        with Log():
            out.backward()
        wanted = tenon.autograd.grad(f(x, w), (x, w))
        self.assertTrue(tenon.equal(x.grad, wanted[0]) and tenon.equal(w.grad, wanted[1]))
        return [name for name in ran if name in ("sin", "mm", "sigmoid")]

    def test_results_of_chosen_operators_are_not_computed_again(self):
        aten, Policy = tenon.ops.aten, CheckpointPolicy
        self.assertEqual(self.operators_of_the_pass([]), ["sin", "mm", "sigmoid", "mm", "mm"])
        self.assertEqual(self.operators_of_the_pass([aten.mm.default]), ["sin", "sigmoid", "mm", "mm"])
        self.assertEqual(self.operators_of_the_pass(lambda ctx, op, *args, **kwargs: Policy.MUST_SAVE), ["mm", "mm"])

    def test_what_is_no_choice_is_refused(self):
        with self.assertRaisesRegex(TypeError, "must be either a function or a list of ops"):
            create_selective_checkpoint_contexts(3)
        with self.assertRaisesRegex(ValueError, "change it to `torch.ops.aten.mm.default`"):
            create_selective_checkpoint_contexts([tenon.ops.aten.mm])

    def test_a_kept_result_that_was_written_is_found_out(self):
        def f(x):
            y = tenon.mm(x, x)
            z = y.sin()
            with tenon.no_grad():
                y.add_(1)
            return z.sum()

        def run(allowed):
            x = tenon.randn(2, 2, requires_grad=True)
            checkpoint(f, x, use_reentrant=False, context_fn=lambda: (
                create_selective_checkpoint_contexts([tenon.ops.aten.mm.default], allowed))).backward()
        with self.assertRaisesRegex(RuntimeError, "has been mutated"):
            run(False)
        run(True)


class Wrappers(unittest.TestCase):
    """Modules whose forward is checkpointed: names stay, the backward pass calls them again."""

    def block(self):
        class Block(tenon.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear, self.calls = tenon.nn.Linear(3, 3), 0

            def forward(self, x, scale=1.0):
                self.calls += 1
                return tenon.relu(self.linear(x)) * scale
        return Block()

    def test_modules_inside_a_model_are_wrapped(self):
        from tenon.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
        net = tenon.nn.Sequential(self.block(), tenon.nn.Linear(3, 1))
        state = {name: value.clone() for name, value in net.state_dict().items()}
        x = tenon.ones(2, 3, requires_grad=True)
        wanted = tenon.autograd.grad(net(x).sum(), x)[0]
        net[0].calls = 0
        apply_activation_checkpointing(net, check_fn=lambda module: hasattr(module, "calls"))
        self.assertEqual(list(net.state_dict()), list(state))
        net.load_state_dict(state)
        net(x).sum().backward()
        self.assertEqual(net[0].calls, 2)
        self.assertTrue(tenon.equal(x.grad, wanted))

    def test_both_forms_and_memory_of_the_cpu(self):
        from tenon.distributed.algorithms._checkpoint.checkpoint_wrapper import (CheckpointImpl, checkpoint_wrapper,
                                                                                 offload_wrapper)
        for made, calls in ((checkpoint_wrapper(self.block(), CheckpointImpl.REENTRANT), 2),
                            (checkpoint_wrapper(self.block()), 2), (offload_wrapper(self.block()), 1)):
            made(tenon.ones(2, 3, requires_grad=True), scale=2.0).sum().backward()
            self.assertEqual((made.calls, list(made.state_dict())), (calls, ["linear.weight", "linear.bias"]))
            self.assertIsNotNone(made.linear.weight.grad)


if __name__ == "__main__":
    harness.main()
