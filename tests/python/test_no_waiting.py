# SPDX-License-Identifier: MIT
"""A program's code that runs inside a backward pass and waits for another thread's pass: modes, kernels,
hooks. Everybody comes to an end, and the sums are exact."""

import os
import threading
import time
import unittest
import warnings

import harness
import tenon
from tenon.utils._python_dispatch import TorchDispatchMode

LIMIT = 600  # seconds: a hang, not a slow machine


class Other:
    """Runs f on another thread and waits for it, so often at most, for the thread that made it alone."""

    def __init__(self, f, at_most=1):
        self.f, self.left, self.runs, self.failed = f, at_most, 0, None
        self.creator = threading.current_thread()

    def run(self):
        try:
            self.f()
        except Exception as e:
            self.failed = e

    def wait(self):
        if threading.current_thread() is not self.creator or self.left == 0:
            return
        self.left -= 1
        self.runs += 1
        thread = threading.Thread(target=self.run, daemon=True)
        thread.start()
        thread.join(LIMIT)
        if thread.is_alive():
            raise AssertionError("the other thread waits for ever")
        if self.failed:
            raise self.failed


class Waiting(TorchDispatchMode):
    def __init__(self, other, name="aten.add_.Tensor"):
        super().__init__()
        self.other, self.name = other, name

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if str(func) == self.name:
            self.other.wait()
        return func(*args, **(kwargs or {}))


class NoWaiting(unittest.TestCase):
    def leaf(self):
        w = tenon.ones(3, requires_grad=True)
        (w * 2).sum().backward()
        return w

    def thrice(self, w):
        return lambda: (w * 3).sum().backward()

    def test_a_mode_waits_for_a_pass_to_the_leaf_that_is_added_to(self):
        w = self.leaf()
        grad, other = w.grad, Other(self.thrice(w), at_most=5)
        y = (w * 4).sum()
        with Waiting(other):
            y.backward()
        self.assertEqual(other.runs, 1)
        self.assertIs(w.grad, grad)
        self.assertEqual(w.grad.tolist(), [9] * 3)

    def test_a_mode_waits_while_the_sum_is_recorded(self):
        w = self.leaf()
        other = Other(self.thrice(w))
        y = (w * 4).sum()
        with Waiting(other, "aten.add.Tensor"):
            y.backward(create_graph=True)
        self.assertEqual(other.runs, 1)
        self.assertEqual(w.grad.tolist(), [9] * 3)
        w.grad = None

    def test_a_mode_waits_for_another_that_clears_or_replaces_the_gradient(self):
        for value in (None, tenon.zeros(3)):
            w = self.leaf()
            other = Other(lambda: setattr(w, "grad", value))
            y = (w * 4).sum()
            with Waiting(other):
                y.backward()
            self.assertEqual(other.runs, 1)
            self.assertEqual(w.grad.tolist(), [4] * 3)  # what comes after is added to it
            self.assertTrue(value is None or w.grad is value)

    def test_an_optimizer_clears_gradients_meanwhile(self):
        w = self.leaf()
        sgd = tenon.optim.SGD([w], lr=1)
        other = Other(lambda: (sgd.step(), sgd.zero_grad(), (w * 3).sum().backward()))
        y = (w * 4).sum()
        with Waiting(other):
            y.backward()
        self.assertEqual(w.grad.tolist(), [3 + 4] * 3)

    def test_what_a_mode_does_to_the_gradient_meanwhile_counts(self):
        """The values are PyTorch's, where it takes the change."""
        def changed(change):
            w = tenon.ones(3, requires_grad=True)
            w.grad = grad = tenon.full((3,), 2.)
            y = (w * 4).sum()

            class Changing(TorchDispatchMode):
                def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                    if str(func) == "aten.add_.Tensor":
                        change(grad)
                    return func(*args, **(kwargs or {}))

            with Changing():
                y.backward()
            return w.grad.tolist(), w.grad is grad

        for change, wanted in ((lambda g: g.mul_(10), 24), (lambda g: g.zero_(), 4), (lambda g: g.numpy().fill(1), 5),
                               (lambda g: setattr(g, "data", tenon.full((3,), 7.)), 11), (lambda g: None, 6)):
            self.assertEqual(changed(change), ([wanted] * 3, True))
        for change in (lambda g: g.resize_(100000), lambda g: setattr(g, "data", tenon.zeros(100000)),
                       lambda g: g.set_(tenon.zeros(50000))):
            with self.assertRaisesRegex(RuntimeError, "must match the size|shape"):
                changed(change)

    def test_a_gradient_with_gaps_is_written_where_it_lies(self):
        class Passing(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        for on in (Passing, lambda: tenon.autograd.profiler.profile(), tenon.autograd.detect_anomaly):
            flat = tenon.zeros(3, 2)
            w = tenon.ones(3, requires_grad=True)
            w.grad = grad = flat[:, 1]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with on():
                    (w * 4).sum().backward()
            self.assertIs(w.grad, grad)
            self.assertEqual(flat.tolist(), [[0, 4]] * 3)

    def test_gradients_of_a_subclass_are_summed_exactly_and_may_wait(self):
        class Wrapped(tenon.Tensor):
            waits = None

            @staticmethod
            def __new__(cls, inner):
                return tenon.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

            def __init__(self, inner):
                self.inner = inner

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                if str(func) == "aten.add_.Tensor":
                    wait, Wrapped.waits = Wrapped.waits, None
                    if wait:
                        wait()
                    args[0].inner.add_(args[1].inner)
                    return args[0]
                result = func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {}))
                return cls(result) if isinstance(result, tenon.Tensor) else result

        w = tenon.zeros(10, requires_grad=True)
        w.grad = grad = Wrapped(tenon.zeros(10))

        def passes(n):
            for _ in range(n):
                (w * 1.).backward(Wrapped(tenon.ones(10)))

        threads = [threading.Thread(target=passes, args=(20,), daemon=True) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(LIMIT)
        self.assertIs(w.grad, grad)
        self.assertEqual(grad.inner.tolist(), [160] * 10)

        def wait():
            is_in.set()
            for t in others:
                t.join(LIMIT)

        # A pass that its own code waits for fails, and says so, instead of waiting for ever.
        errors, is_in, others = [], threading.Event(), []

        def late_pass():
            is_in.wait(LIMIT)
            try:
                passes(1)
            except RuntimeError as e:
                errors.append(str(e))

        others.extend(threading.Thread(target=late_pass, daemon=True) for _ in range(3))
        for t in others:
            t.start()
        Wrapped.waits = staticmethod(wait)
        passes(1)
        self.assertFalse(any(t.is_alive() for t in others))
        self.assertEqual(len(errors), 3)
        self.assertIn("another thread has been adding to the gradient of this tensor for 10 seconds", errors[0])
        self.assertEqual(grad.inner.tolist(), [161] * 10)

        # What took the gradient's place while a thread waited for its turn is added to.
        def replace():
            other = threading.Thread(target=passes, args=(1,), daemon=True)
            other.start()
            time.sleep(.2)
            w.grad = Wrapped(tenon.zeros(10))
            late.append(other)

        late = []
        Wrapped.waits = staticmethod(replace)
        passes(1)
        late[0].join(LIMIT)
        self.assertEqual(grad.inner.tolist(), [162] * 10)
        self.assertEqual(w.grad.inner.tolist(), [1] * 10)

    def test_sparse_gradients_are_summed_exactly(self):
        n = 20000
        w = tenon.zeros(n, 4, dtype=tenon.float64, requires_grad=True)
        index = tenon.arange(n)

        def passes():
            for _ in range(2):
                tenon.nn.functional.embedding(index, w, sparse=True).sum().backward()

        threads = [threading.Thread(target=passes, daemon=True) for _ in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(LIMIT)
        self.assertTrue(w.grad.is_sparse)
        self.assertEqual(w.grad.to_dense().unique().tolist(), [32])

    def test_two_threads_add_to_each_others_leaf(self):
        a, b = self.leaf(), self.leaf()
        meet = threading.Barrier(2, timeout=LIMIT)
        failed = []

        class Cross(TorchDispatchMode):
            def __init__(self, z):
                super().__init__()
                self.z = z

            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                if str(func) == "aten.add_.Tensor" and self.z is not None:
                    z, self.z = self.z, None
                    meet.wait()
                    z.backward()
                    meet.wait()
                return func(*args, **(kwargs or {}))

        def run(x, y):
            try:
                z, own = (y * 3).sum(), (x * 4).sum()
                with Cross(z):
                    own.backward()
            except Exception as e:
                failed.append(e)

        threads = [threading.Thread(target=run, args=p, daemon=True) for p in ((a, b), (b, a))]
        for t in threads:
            t.start()
        for t in threads:
            t.join(LIMIT)
            self.assertFalse(t.is_alive())
        self.assertEqual(failed, [])
        self.assertEqual(a.grad.tolist(), [9] * 3)
        self.assertEqual(b.grad.tolist(), [9] * 3)

    def test_hooks_wait_for_a_pass_over_the_same_graph(self):
        def tensor(x, y, other):
            y.register_hook(lambda g: other.wait())

        def before(x, y, other):
            y.grad_fn.register_prehook(lambda grads: other.wait())

        def after(x, y, other):
            y.grad_fn.register_hook(lambda given, grads: other.wait())

        def accumulated(x, y, other):
            x.register_post_accumulate_grad_hook(lambda p: other.wait())

        for how in (tensor, before, after, accumulated):
            with self.subTest(how.__name__):
                x = tenon.full((2,), 3.0, requires_grad=True)
                y = x * x
                z = (y * y).sum()
                other = Other(lambda: z.backward(retain_graph=True))
                how(x, y, other)
                z.backward(retain_graph=True)
                self.assertEqual(other.runs, 1)
                self.assertEqual(x.grad.tolist(), [216.0, 216.0])

    def test_saved_tensor_hooks_wait_for_a_pass_over_the_same_values(self):
        x = tenon.full((2,), 3.0, requires_grad=True)
        others = []

        def unpack(t):
            for other in others:
                other.wait()
            return t

        with tenon.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            z = (x * x * x).sum()
        others.append(Other(lambda: z.backward(retain_graph=True)))
        z.backward(retain_graph=True)
        self.assertEqual(others[0].runs, 1)
        self.assertEqual(x.grad.tolist(), [54.0, 54.0])

    def test_a_checkpoint_is_computed_again_by_two_at_once(self):
        x = tenon.full((2,), 3.0, requires_grad=True)
        others = []

        def piece(t):
            for other in others:
                other.wait()
            return t * t * t

        z = tenon.utils.checkpoint.checkpoint(piece, x, use_reentrant=False).sum()
        others.append(Other(lambda: z.backward(retain_graph=True)))
        z.backward(retain_graph=True)
        self.assertEqual(others[0].runs, 1)
        self.assertEqual(x.grad.tolist(), [54.0, 54.0])

    def test_a_function_waits_for_a_pass_over_itself(self):
        others = []

        class Cube(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x**3

            @staticmethod
            def backward(ctx, grad):
                for other in others:
                    other.wait()
                return 3 * grad * ctx.saved_tensors[0] ** 2

        x = tenon.full((2,), 3.0, requires_grad=True)
        z = Cube.apply(x).sum()
        others.append(Other(lambda: z.backward(retain_graph=True)))
        z.backward(retain_graph=True)
        self.assertEqual(others[0].runs, 1)
        self.assertEqual(x.grad.tolist(), [54.0, 54.0])

    def test_a_kernel_in_python_waits_for_a_pass_to_the_leaf_that_it_adds_to(self):
        w = self.leaf()
        other = Other(self.thrice(w))

        def add_(a, b, alpha=1):
            other.wait()
            return a.copy_(a + b)

        library = tenon.library.Library("aten", "IMPL")
        library.impl("add_.Tensor", add_, "CPU")
        try:
            (w * 4).sum().backward()
        finally:
            library._destroy()
        self.assertEqual(other.runs, 1)
        self.assertEqual(w.grad.tolist(), [9] * 3)

    def test_a_child_made_in_the_middle_of_a_sum_adds_to_the_same_leaf(self):
        w = self.leaf()
        codes = []

        def fork():
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    (w * 3).sum().backward()
                    code = 0 if w.grad.tolist() == [5] * 3 else 2
                finally:
                    os._exit(code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

        y = (w * 4).sum()
        with Waiting(Other(fork)):
            y.backward()
        self.assertEqual(codes, [0])
        self.assertEqual(w.grad.tolist(), [6] * 3)

    def test_sums_are_exact_when_some_threads_have_modes(self):
        w = tenon.ones(3, requires_grad=True)

        def run(i):
            for _ in range(50):
                y = (w * 2).sum()
                if i % 2:
                    with Waiting(Other(None, at_most=0)):
                        y.backward()
                else:
                    y.backward()

        threads = [threading.Thread(target=run, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(w.grad.tolist(), [800] * 3)


if __name__ == "__main__":
    harness.main()
