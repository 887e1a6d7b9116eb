# SPDX-License-Identifier: MIT
"""TorchDispatchMode: what a mode sees, in which order, and what it gives. The lists of operators are what PyTorch 2.11
logs for the same programs, but for the `detach` of a result that is saved, which is no call here."""

import threading
import unittest
import warnings

import harness
import tenon
from tenon._subclasses import FakeTensor, FakeTensorMode
from tenon.utils._mode_utils import no_dispatch
from tenon.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode

aten = tenon.ops.aten


class Log(TorchDispatchMode):
    def __init__(self, name="", log=None):
        super().__init__()
        self.name = name
        self.log = [] if log is None else log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(self.name + str(func))
        return func(*args, **(kwargs or {}))


class Modes(unittest.TestCase):
    def test_fresh_tensors_are_lifted(self):
        class Calls(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                self.log.append((func._opname, {k: str(v) for k, v in (kwargs or {}).items()}))
                return func(*args, **(kwargs or {}))

        def as_new(x):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return tenon.tensor(x)

        lift, x = ("lift_fresh", {}), tenon.ones(2, 2)
        at = {"device": "cpu", "pin_memory": "False"}
        cases = [(lambda: tenon.tensor([1., 2.]), [lift]), (lambda: tenon.tensor(5), [lift]),
                 (lambda: tenon.tensor([1], dtype=tenon.float16), [lift]), (lambda: tenon.tensor(1., requires_grad=True), [lift]),
                 (lambda: tenon.tensor([1.], device="meta"), []), (lambda: tenon.as_tensor([1.]), [lift]), (lambda: tenon.as_tensor(x), []),
                 (lambda: tenon.asarray([1.]), [lift]), (lambda: tenon.Tensor([1.]), [lift]), (lambda: x.new_tensor([1]), [lift]),
                 (lambda: as_new(x), [("detach", {}), ("_to_copy", {"dtype": "tenon.float32", "device": "cpu"})]),
                 (lambda: x[[0, 1]], [lift, ("index", {})]),
                 (lambda: x.__setitem__(0, 1.5), [lift, ("select", {}), ("fill_", {})]),
                 (lambda: x.__setitem__((0, 0), 2), [lift, ("select", {}), ("select", {}), ("copy_", {})]),
                 (lambda: x.__setitem__([0], 2), [lift, lift, ("index_put_", {})]),
                 (lambda: tenon.scalar_tensor(1), [("scalar_tensor", at)]), (lambda: tenon.zeros(2), [("zeros", at)]),
                 (lambda: tenon.randperm(3), [("randperm", at)]), (lambda: tenon.full((2,), 1, device="meta"), [("full", {**at, "device": "meta"})]),
                 (lambda: tenon.zeros_like(x), [("zeros_like", {"pin_memory": "False"})]), (lambda: repr(x), [])]
        try:
            import numpy
            cases += [(lambda: tenon.from_numpy(numpy.ones(2)), [lift]), (lambda: tenon.as_tensor(numpy.ones(2)), [lift]),
                      (lambda: tenon.tensor(numpy.float32(1)), [lift]),
                      (lambda: tenon.tensor(numpy.ones(2)), [lift, ("_to_copy", {"dtype": "tenon.float64", "device": "cpu"})])]
        except ImportError:
            pass
        for i, (call, wanted) in enumerate(cases):
            mode = Calls()
            mode.log = []
            with mode:
                made = call()
            self.assertEqual((i, mode.log), (i, wanted))
            if isinstance(made, tenon.Tensor):
                self.assertFalse(made._is_view() and i < 3)
        self.assertEqual(x.tolist(), [[2, 2], [1, 1]])

    def test_keeping_the_class_of_a_result_is_no_call(self):
        class Kept(tenon.Tensor):
            pass

        class Told(tenon.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return super().__torch_function__(func, types, args, kwargs)

        x = tenon.ones(2)
        with Log() as mode:
            for cls in (Kept, Told):
                self.assertIs(type(-x.as_subclass(cls)), cls)
        self.assertEqual(mode.log, ["aten.neg.default"] * 2)

    def test_an_argument_like_its_default_that_is_another_number_is_shown(self):
        with Log():
            self.assertEqual(tenon.arange(0, 3, 1.).dtype, tenon.float32)

    def test_a_fake_mode_takes_what_other_modes_were_shown(self):
        log = Log()
        with FakeTensorMode(), log:
            x = tenon.tensor([1., 2.])
            self.assertIsInstance(x, FakeTensor)
            self.assertIsInstance(tenon.tensor(3, device="cuda"), FakeTensor)
        self.assertEqual(log.log[:2], ["aten.lift_fresh.default"] * 2)

    def test_a_mode_sees_operators_below_autograd(self):
        x = tenon.ones(2, 3, requires_grad=True)
        w = tenon.ones(4, 3)
        with Log() as mode:
            y = tenon.nn.functional.linear(x, w).relu()
        self.assertEqual(mode.log, ["aten.t.default", "aten.mm.default", "aten.relu.default"])
        self.assertEqual(type(y.grad_fn).__name__, "ReluBackward0")
        with Log() as mode:
            y.sum().backward()
        self.assertIn("aten.threshold_backward.default", mode.log)
        self.assertTrue(tenon.equal(x.grad, tenon.full((2, 3), 4.)))

    def test_arguments_come_as_they_were_called(self):
        seen = []

        class Show(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append((func, types, args, kwargs))
                return func(*args, **(kwargs or {}))

        x = tenon.ones(2, 2)
        with Show():
            x.sum(0)
            tenon.add(x, x, alpha=2)
            tenon.zeros(2, dtype=tenon.int64)
        self.assertEqual(seen[0], (aten.sum.dim_IntList, (), (x, [0]), {}))
        self.assertIs(seen[1][0], aten.add.Tensor)
        self.assertEqual(seen[1][3], {"alpha": 2})
        self.assertEqual(seen[2][2], ([2],))
        self.assertEqual(seen[2][3]["dtype"], tenon.int64)

    def test_modes_nest_the_innermost_first(self):
        log = []
        x = tenon.ones(2)
        with Log("a:", log) as a, Log("b:", log) as b:
            self.assertIs(_get_current_dispatch_mode(), b)
            x.neg()
        self.assertEqual(log, ["b:aten.neg.default", "a:aten.neg.default"])
        self.assertIsNone(_get_current_dispatch_mode())
        self.assertIs(a.log, log)

    def test_a_mode_may_give_something_else(self):
        class Double(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                out = func(*args, **(kwargs or {}))
                return out * 2 if func is aten.mul.Tensor else out

        x = tenon.full((2,), 3.)
        with Double():
            self.assertEqual((x * x).tolist(), [18., 18.])
        self.assertEqual((x * x).tolist(), [9., 9.])

    def test_exceptions_travel_out_and_the_mode_is_left(self):
        class Bad(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                raise KeyError("no " + str(func))

        x = tenon.ones(2)
        with self.assertRaisesRegex(KeyError, "no aten.neg.default"):
            with Bad():
                x.neg()
        self.assertEqual(x.neg().tolist(), [-1., -1.])

    def test_in_place_and_out_give_the_argument(self):
        x, out = tenon.ones(2), tenon.empty(2)
        with Log() as mode:
            self.assertIs(x.add_(1), x)
            self.assertIs(tenon.neg(x, out=out), out)
        self.assertEqual(mode.log, ["aten.add_.Tensor", "aten.neg.out"])
        self.assertEqual((x.tolist(), out.tolist()), ([2., 2.], [-2., -2.]))

    def test_modes_can_be_switched_off(self):
        x = tenon.ones(2)
        with Log() as mode:
            with _disable_current_modes() as off:
                x.neg()
            with no_dispatch():
                x.neg()
            self.assertEqual(mode.log, [])
            x.neg()
        self.assertEqual(off, [mode])
        self.assertEqual(mode.log, ["aten.neg.default"])

    def test_a_mode_belongs_to_its_thread(self):
        with Log() as mode:
            thread = threading.Thread(target=lambda: tenon.ones(2).neg())
            thread.start()
            thread.join()
        self.assertEqual(mode.log, [])

    def test_inside_a_fake_mode_calls_on_fake_tensors_are_seen(self):
        with FakeTensorMode():
            x = tenon.ones(2)
            with Log() as mode:
                y = x + x
        self.assertEqual(mode.log, ["aten.add.Tensor"])
        self.assertIsInstance(y, FakeTensor)

    def test_a_number_beside_a_fake_tensor_is_the_number(self):
        seen = []

        class Arguments(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append([a for a in args if not isinstance(a, tenon.Tensor)])
                return func(*args, **(kwargs or {}))

        with FakeTensorMode():
            x = tenon.ones(2)
            with Arguments():
                results = [x + 1, 2 * x, x.mul(2.5), x * True, x / (1 + 2j), x.add_(1)]
        self.assertEqual(seen, [[1], [2], [2.5], [True], [1 + 2j], [1]])
        self.assertTrue(all(isinstance(r, FakeTensor) for r in results))

    def test_a_mode_that_declines_is_on_while_classes_answer(self):
        class Wrapped(tenon.Tensor):
            @staticmethod
            def __new__(cls, inner):
                return tenon.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

            def __init__(self, inner):
                self.inner = inner

            __torch_function__ = tenon._C._disabled_torch_function_impl

            @classmethod
            def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
                return cls(func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {})))

        seen = []

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append((str(func), [cls.__name__ for cls in types]))
                return NotImplemented if Wrapped in types else func(*args, **(kwargs or {}))

        wrapped = Wrapped(tenon.ones(2))
        with Mode():
            made = wrapped + 1
        self.assertEqual(seen, [("aten.add.Tensor", ["Wrapped"]), ("aten.add.Tensor", [])])
        self.assertEqual(made.inner.tolist(), [2.0, 2.0])
        self.assertEqual(tenon.utils._python_dispatch._get_current_dispatch_mode(), None)

    def test_a_mode_that_declines_is_an_error(self):
        class No(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                return NotImplemented

        with self.assertRaisesRegex(TypeError, "Multiple dispatch failed for '[a-z]+._ops.aten.neg.default'; all "
                                               "__torch_dispatch__ handlers returned NotImplemented"):
            with No():
                X.neg()


X = tenon.ones(2)

if __name__ == "__main__":
    harness.main()
