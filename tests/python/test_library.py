# SPDX-License-Identifier: MIT
"""tenon.library: operators, kernels, gradients and fake kernels from Python."""

import gc
import threading
import unittest
from typing import List, Optional, Tuple

import harness
import tenon
from tenon import library
from tenon._subclasses import FakeTensorMode
from tenon.utils._python_dispatch import TorchDispatchMode


@library.custom_op("testlib::scale", mutates_args=())
def scale(x: tenon.Tensor, factor: float = 2.0) -> tenon.Tensor:
    return tenon.from_numpy(x.detach().numpy() * factor).to(x.dtype)


@scale.register_fake
def _(x, factor=2.0):
    return tenon.empty_like(x)


def _setup(ctx, inputs, output):
    ctx.factor = inputs[1] if len(inputs) > 1 else 2.0


scale.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=_setup)


class Libraries(unittest.TestCase):
    def test_a_library_defines_and_implements_and_undoes(self):
        lib = library.Library("testdef", "DEF")
        lib.define("twice(Tensor x, *, int n=2) -> Tensor")
        lib.impl("twice", lambda x, n=2: x * n, "CompositeExplicitAutograd")
        op = tenon.ops.testdef.twice
        self.assertEqual(op(tenon.ones(2)).tolist(), [2., 2.])
        self.assertEqual(op.default(tenon.ones(2), n=5).tolist(), [5., 5.])
        self.assertEqual(str(op.default._schema), "testdef::twice(Tensor x, *, int n=2) -> Tensor")
        lib._destroy()
        with self.assertRaisesRegex(AttributeError, "'_OpNamespace' 'testdef' object has no attribute 'twice'"):
            tenon.ops.testdef.twice
        again = library.Library("testdef", "DEF")
        again.define("twice(Tensor x) -> Tensor")
        again.impl("twice", lambda x: x + x, "CPU")
        self.assertEqual(tenon.ops.testdef.twice(tenon.ones(1)).tolist(), [2.])
        with self.assertRaises(NotImplementedError):
            tenon.ops.testdef.twice(tenon.ones(1, device="meta"))
        del again
        gc.collect()
        with self.assertRaises(Exception):
            tenon.ops.testdef.twice(tenon.ones(1))

    def test_a_composite_kernel_has_gradients_by_itself(self):
        library.define("testlib2::cube", "(Tensor x) -> Tensor")
        library.impl("testlib2::cube", "CompositeImplicitAutograd", lambda x: x * x * x)
        x = tenon.tensor([2., 3.], requires_grad=True)
        tenon.ops.testlib2.cube(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [12., 27.])

    def test_a_custom_operator_has_a_schema_a_gradient_and_a_fake_kernel(self):
        self.assertEqual(repr(scale), "<CustomOpDef(testlib::scale)>")
        self.assertEqual(str(tenon.ops.testlib.scale.default._schema),
                         "testlib::scale(Tensor x, float factor=2.) -> Tensor")
        x = tenon.tensor([1., 2.], requires_grad=True)
        y = scale(x, 3.0)
        self.assertEqual(y.tolist(), [3., 6.])
        y.sum().backward()
        self.assertEqual(x.grad.tolist(), [3., 3.])
        with FakeTensorMode():
            self.assertEqual(repr(scale(tenon.ones(4))), "FakeTensor(..., size=(4,))")
        self.assertEqual(scale(tenon.ones(3, device="meta")).shape, (3,))

    def test_what_was_not_registered_says_so(self):
        @library.custom_op("testlib::plain", mutates_args=())
        def plain(x: tenon.Tensor) -> tenon.Tensor:
            return x.clone()

        x = tenon.ones(2, requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "Trying to backward through <CustomOpDef\\(testlib::plain\\)> but no "
                                                  "autograd formula was registered."):
            plain(x).sum().backward()
        with self.assertRaisesRegex(RuntimeError, "There was no fake impl registered for "
                                                  "<CustomOpDef\\(testlib::plain\\)>."):
            with FakeTensorMode():
                plain(tenon.ones(2))

    def test_an_operator_may_write_its_argument(self):
        @library.custom_op("testlib::fill", mutates_args={"x"})
        def fill(x: tenon.Tensor, value: float) -> None:
            x.fill_(value)

        x = tenon.zeros(2)
        version = x._version
        self.assertIsNone(fill(x, 3.0))
        self.assertEqual(x.tolist(), [3., 3.])
        self.assertGreater(x._version, version)

    def test_schemas_come_from_annotations(self):
        def f(x: tenon.Tensor, ys: List[tenon.Tensor], n: int, s: str = "a", b: Optional[float] = None, *,
              flag: bool = False) -> Tuple[tenon.Tensor, int]:
            pass

        self.assertEqual(library.infer_schema(f, mutates_args=()),
                         '(Tensor x, Tensor[] ys, SymInt n, str s="a", float? b=None, *, bool flag=False) -> '
                         '(Tensor, SymInt)')
        self.assertEqual(library.infer_schema(f, mutates_args={"x"}).split(",")[0], "(Tensor(a0!) x")
        with self.assertRaisesRegex(ValueError, "Parameter x must have a type annotation"):
            library.infer_schema(lambda x: None, mutates_args=())

    def test_exceptions_of_kernels_travel_out(self):
        @library.custom_op("testlib::fails", mutates_args=())
        def fails(x: tenon.Tensor) -> tenon.Tensor:
            raise KeyError("inside")

        with self.assertRaisesRegex(KeyError, "inside"):
            fails(tenon.ones(1))

    def test_a_mode_sees_custom_operators(self):
        seen = []

        class Log(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        x = tenon.ones(2)
        with Log():
            scale(x)
        self.assertEqual(seen[0], "testlib.scale.default")

    def test_kernels_run_on_any_thread(self):
        results = []
        threads = [threading.Thread(target=lambda: results.append(scale(tenon.ones(20000)).sum().item()))
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [40000.] * 4)


class Checks(unittest.TestCase):
    def made(self, name, fn, fake=None):
        op = tenon.library.custom_op("checks::" + name, fn, mutates_args=(), schema="(Tensor x) -> Tensor")
        op.register_fake(fake or tenon.empty_like)
        return op

    def test_an_operator_that_keeps_its_word_passes(self):
        good = self.made("good", lambda x: x * 2)
        good.register_autograd(lambda ctx, g: g * 2)
        for x in (tenon.randn(3), tenon.randn(3, requires_grad=True)):
            self.assertEqual(tenon.library.opcheck(good, (x,)), dict.fromkeys(
                ("test_schema", "test_autograd_registration", "test_faketensor"), "SUCCESS"))

    def test_one_that_does_not_is_found_out(self):
        def writes(x):
            x.add_(1)
            return x.clone()
        for name, fn, fake, text in (
                ("writes", writes, None, "test_schema failed with Argument x is not defined as mutable but was mutated"),
                ("same", lambda x: x, None, "test_schema failed with Argument x is not defined to alias output"),
                ("fake", lambda x: x * 2, lambda x: x.new_empty(x.shape[0] + 1),
                 r"test_faketensor failed with .* Shapes .*\[3\]\) and .*\[4\]\) are not equal!")):
            op = self.made(name, fn, fake)
            with self.assertRaisesRegex(tenon._opcheck.OpCheckError, text):
                tenon.library.opcheck(op, (tenon.randn(3),))
        lib = tenon.library.Library("checks_lib", "FRAGMENT")
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x.sin(), "CPU")
        found = tenon.library.opcheck(tenon.ops.checks_lib.f.default, (tenon.randn(3, requires_grad=True),),
                                      test_utils="test_autograd_registration", raise_exception=False)
        self.assertRegex(str(found["test_autograd_registration"]), "does not have an autograd kernel")
        lib._destroy()
        with self.assertRaisesRegex(ValueError, "expected test_utils to be subset of"):
            tenon.library.opcheck(op, (tenon.ones(1),), test_utils="nope")

    def test_autocast_of_an_operator(self):
        op = self.made("cast", lambda x: x.clone())
        op.register_autocast("cpu", tenon.bfloat16)
        with tenon.autocast("cpu"):
            self.assertEqual(op(tenon.ones(2)).dtype, tenon.bfloat16)
            self.assertEqual(op(tenon.ones(2, dtype=tenon.int64)).dtype, tenon.int64)
        self.assertEqual(op(tenon.ones(2)).dtype, tenon.float32)

    def test_triton_is_not_here(self):
        op = tenon.library.triton_op("checks::tri", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
        self.assertEqual(op(tenon.ones(1)).item(), 2)
        with self.assertRaisesRegex(RuntimeError, "wrap_triton only works on functions annotated with"):
            tenon.library.wrap_triton(lambda x: x)


if __name__ == "__main__":
    harness.main()
