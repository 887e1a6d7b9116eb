# SPDX-License-Identifier: MIT
"""functional (jacobian, hessian and products), forward mode, gradcheck. Values are closed forms."""
import subprocess
import sys
import unittest
import warnings

import harness
import tenon
from tenon.autograd import forward_ad, functional, gradcheck, gradgradcheck
from tenon.autograd.gradcheck import GradcheckError


def close(test, a, b):
    test.assertEqual(tuple(a.shape), tuple(b.shape))
    test.assertTrue(tenon.allclose(a, b), "%s is not %s" % (a, b))


class Matrices(unittest.TestCase):
    def test_jacobian(self):
        x = tenon.tensor([1.0, 2.0, 3.0])
        close(self, functional.jacobian(lambda x: x * x, x), tenon.tensor([[2.0, 0, 0], [0, 4.0, 0], [0, 0, 6.0]]))
        for strategy in ("reverse-mode", "forward-mode"):
            made = functional.jacobian(lambda a, b: (a * b, a.sum()), (x, x + 1), vectorize=True, strategy=strategy)
            self.assertEqual((len(made), len(made[0])), (2, 2))
            close(self, made[0][0], tenon.diag(x + 1))
            close(self, made[0][1], tenon.diag(x))
            close(self, made[1][0], tenon.ones(3))
            close(self, made[1][1], tenon.zeros(3))

    def test_jacobian_of_matrices_and_history(self):
        x = tenon.rand(2, 3)
        made = functional.jacobian(lambda x: x.exp().sum(1), x)
        self.assertEqual(tuple(made.shape), (2, 2, 3))
        close(self, made[0, 0], x[0].exp())
        close(self, made[0, 1], tenon.zeros(3))
        self.assertFalse(made.requires_grad)
        y = tenon.tensor([2.0], requires_grad=True)
        made = functional.jacobian(lambda y: y ** 3, y, create_graph=True)
        made.sum().backward()
        close(self, y.grad, tenon.tensor([12.0]))

    def test_strict(self):
        x = tenon.ones(2)
        with self.assertRaisesRegex(RuntimeError, "Output 0 of the user-provided function does not require gradients."):
            functional.jacobian(lambda x: tenon.ones(2), x, strict=True)
        with self.assertRaisesRegex(TypeError, "The inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
            functional.jacobian(lambda x: x, 3)

    def test_strict_products_want_derivatives_that_depend_on_inputs(self):
        x, v = tenon.rand(2, requires_grad=True), tenon.rand(2)
        linear, cut = lambda x: x.clone(), lambda x: x.detach().requires_grad_().clone()
        for product in (functional.vjp, functional.jvp):
            with self.subTest(product.__name__):
                with self.assertRaisesRegex(RuntimeError, "^The jacobian of the user-provided function is independent of input 0. "
                                            "This is not allowed in strict mode when create_graph=True.$"):
                    product(linear, x, v, create_graph=True, strict=True)
                with self.assertRaisesRegex(RuntimeError, "^The output of the user-provided function is independent of input 0. "):
                    product(cut, x, v, strict=True)
                close(self, product(linear, x, v, strict=True)[1], v)
                close(self, product(linear, x, v, create_graph=True)[1], v)
        for product in (functional.vhp, functional.hvp):
            with self.subTest(product.__name__):
                with self.assertRaisesRegex(RuntimeError, "found that the jacobian of the user-provided function with respect to input 0 "
                                            "is independent of the input"):
                    product(lambda x: (2 * x).sum(), x, v, strict=True)
                with self.assertRaisesRegex(RuntimeError, "^The output of the user-provided function is independent of input 0. "):
                    product(lambda x: cut(x).sum(), x, v, strict=True)
                with self.assertRaisesRegex(RuntimeError, "^The hessian of the user-provided function is independent of input 0. "
                                            "This is not allowed in strict mode when create_graph=True.$"):
                    product(lambda x: (x * x).sum(), x, v, create_graph=True, strict=True)
                close(self, product(lambda x: (x * x).sum(), x, v, strict=True)[1], 2 * v)

    def test_strict_goes_with_neither_vectorize_nor_forward_mode(self):
        x = tenon.rand(2)
        for call in (lambda: functional.jacobian(lambda x: x * x, x, strict=True, vectorize=True),
                     lambda: functional.jacobian(lambda x: x * x, x, strict=True, strategy="forward-mode", vectorize=True),
                     lambda: functional.hessian(lambda x: (x ** 3).sum(), x, strict=True, vectorize=True)):
            with self.assertRaisesRegex(RuntimeError, "`strict=True` and .* are not supported together"):
                call()

    def test_what_is_said_of_directions_that_do_not_fit(self):
        x = tenon.rand(2)
        for product in (functional.vjp, functional.jvp):
            with self.assertRaisesRegex(RuntimeError, "^The given v should contain a single Tensor.$"):
                product(lambda x: x * x, x, (x, x))
            with self.assertRaisesRegex(RuntimeError, "^v is a tuple of invalid length: should be 1 but got 2.$"):
                product(lambda x: (x * x,), (x,), (x, x))
            with self.assertRaisesRegex(RuntimeError, "^v has invalid size: should be "):
                product(lambda x: x * x, x, x[:1])
            with self.assertRaisesRegex(RuntimeError, "^Entry 0 in v has invalid size: should be "):
                product(lambda x: (x * x,), (x,), (x[:1],))

    def test_strict_wants_derivatives_that_depend_on_inputs(self):
        x, y = tenon.ones(2), tenon.ones(2)
        text = ("The jacobian of the user-provided function is independent of input %d. This is not allowed in strict mode "
                "when create_graph=True.")
        with self.assertRaises(RuntimeError) as caught:
            functional.jacobian(lambda x: x * 2, x, strict=True, create_graph=True)
        self.assertEqual(str(caught.exception), text % 0)
        with self.assertRaises(RuntimeError) as caught:
            functional.jacobian(lambda x: (x * x, x * 2), x, strict=True, create_graph=True)
        self.assertEqual(str(caught.exception), text % 1)
        close(self, functional.jacobian(lambda x: x * 2, x, strict=True), tenon.eye(2) * 2)
        made = functional.jacobian(lambda x: x * x, x, strict=True, create_graph=True)
        close(self, made, tenon.eye(2) * 2)

        text = ("While computing the hessian, found that the jacobian of the user-provided function with respect to input %d "
                "is independent of the input. This is not allowed in strict mode. You should ensure that your function is "
                "twice differentiable and that the jacobian depends on the inputs (this would be violated by a linear "
                "function for example).")
        for create in (False, True):
            for at, func in ((0, lambda x, y: x.sum() + (y * y).sum()), (1, lambda x, y: (x * x).sum() + y.sum()),
                             (1, lambda x, y: (x * x).sum())):
                with self.assertRaises(RuntimeError) as caught:
                    functional.hessian(func, (x, y), strict=True, create_graph=create)
                self.assertEqual(str(caught.exception), text % at)
            with self.assertRaisesRegex(RuntimeError, "Output 0 of the user-provided function does not require gradients."):
                functional.hessian(lambda x: tenon.ones(()), x, strict=True, create_graph=create)
        close(self, functional.hessian(lambda x: (x ** 3).sum(), x, strict=True, create_graph=True), tenon.eye(2) * 6)

    def test_hessian(self):
        x = tenon.tensor([1.0, 2.0])
        close(self, functional.hessian(lambda x: (x ** 3).sum(), x), tenon.tensor([[6.0, 0], [0, 12.0]]))
        made = functional.hessian(lambda a, b: (a * a * b).sum(), (x, x))
        close(self, made[0][0], tenon.diag(2 * x))
        close(self, made[0][1], tenon.diag(2 * x))
        close(self, made[1][0], tenon.diag(2 * x))
        close(self, made[1][1], tenon.zeros(2, 2))
        with self.assertRaisesRegex(RuntimeError, "should contain a single element"):
            functional.hessian(lambda x: x * x, x)


class Products(unittest.TestCase):
    def test_vjp_and_jvp(self):
        x, v = tenon.tensor([1.0, 2.0]), tenon.tensor([1.0, 10.0])
        out, made = functional.vjp(lambda x: x * x, x, v)
        close(self, out, x * x)
        close(self, made, 2 * x * v)
        out, made = functional.jvp(lambda x: x * x, x, v)
        close(self, made, 2 * x * v)
        outs, made = functional.jvp(lambda a, b: (a * b, a + b), (x, x), (v, v))
        self.assertEqual(len(outs), 2)
        close(self, made[0], 2 * x * v)
        close(self, made[1], 2 * v)
        out, made = functional.vjp(lambda x: (x * x).sum(), x)
        close(self, made, 2 * x)

    def test_products_with_the_hessian(self):
        x, v = tenon.tensor([1.0, 2.0]), tenon.tensor([1.0, 10.0])

        def f(x):
            return (x ** 3).sum()

        for product in (functional.vhp, functional.hvp):
            out, made = product(f, x, v)
            close(self, out, tenon.tensor(9.0))
            close(self, made, 6 * x * v)

    def test_directions_that_do_not_fit(self):
        x = tenon.ones(2)
        with self.assertRaisesRegex(RuntimeError, "The vector v can only be None if the user-provided function returns a single Tensor with a single element."):
            functional.vjp(lambda x: x * x, x)
        with self.assertRaisesRegex(RuntimeError, r"v has invalid size: should be \w+.Size\(\[2\]\) but got \w+.Size\(\[3\]\)."):
            functional.vjp(lambda x: x * x, x, tenon.ones(3))


class ForwardMode(unittest.TestCase):
    def test_whether_it_is_on(self):
        self.assertTrue(forward_ad._is_fwd_grad_enabled())
        with forward_ad._set_fwd_grad_enabled(False):
            self.assertFalse(forward_ad._is_fwd_grad_enabled())
        self.assertTrue(forward_ad._is_fwd_grad_enabled())

    def test_tangents(self):
        with forward_ad.dual_level():
            d = forward_ad.make_dual(tenon.tensor([2.0]), tenon.tensor([3.0]))
            y = d * d + d.exp()
            primal, tangent = forward_ad.unpack_dual(y)
            close(self, tangent, tenon.tensor([12.0]) + tenon.tensor([2.0]).exp() * 3)
            self.assertIsNone(forward_ad.unpack_dual(primal).tangent)
            self.assertIsNone(forward_ad.unpack_dual(tenon.ones(1)).tangent)
        self.assertIsNone(forward_ad.unpack_dual(y).tangent)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "no level exists, make sure to enter_dual_level"):
            forward_ad.make_dual(tenon.ones(1), tenon.ones(1))
        with forward_ad.dual_level():
            with self.assertRaisesRegex(RuntimeError, "Nested forward mode AD is not supported at the moment"):
                forward_ad.enter_dual_level()
            with self.assertRaisesRegex(ValueError, "Expected primal to be floating point or complex"):
                forward_ad.make_dual(tenon.ones(1, dtype=tenon.int64), tenon.ones(1))
        with forward_ad.dual_level():
            pass


class Wrong(tenon.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x


class Gradcheck(unittest.TestCase):
    def double(self, *size):
        return tenon.rand(*size, dtype=tenon.float64, requires_grad=True)

    def test_right_gradients_pass(self):
        x, w = self.double(2, 3), self.double(3, 2)
        self.assertTrue(gradcheck(lambda x, w: (x @ w).tanh(), (x, w)))
        self.assertTrue(gradcheck(lambda x: (x.exp(), x * 2), (x,), check_forward_ad=True))
        self.assertTrue(gradgradcheck(lambda x, w: (x @ w).tanh(), (x, w)))
        self.assertTrue(gradcheck(lambda x: x.argmax(), (x,)))

    def test_inputs_that_stay_have_tangents_of_zero_and_then_none(self):  # as in PyTorch
        class Product(tenon.autograd.Function):
            careful = wrong = False

            @staticmethod
            def forward(ctx, a, b):
                ctx.save_for_forward(a, b)
                ctx.set_materialize_grads(False)
                return a * b

            @staticmethod
            def jvp(ctx, ta, tb):
                a, b = ctx.saved_tensors
                if not Product.careful or ta is not None and tb is not None:
                    return ta * b + tb * a
                return a * 3 if Product.wrong else tb * a if ta is None else ta * b

        inputs = self.double(3), self.double(3)
        for fast in (False, True):
            def check(**options):
                return gradcheck(Product.apply, inputs, check_forward_ad=True, check_backward_ad=False, fast_mode=fast, **options)
            Product.careful = Product.wrong = False
            self.assertTrue(check(check_undefined_grad=False))
            self.assertTrue(check(check_undefined_grad=False, check_batched_forward_grad=True))
            self.assertRaises(TypeError, check)
            Product.careful = True
            self.assertTrue(check())
            Product.wrong = True
            with self.assertRaisesRegex(GradcheckError, "Mismatch in tangent values for output with index: 0 when input"):
                check()

    def test_complex_gradients_pass(self):
        z = tenon.view_as_complex(tenon.rand(3, 2, dtype=tenon.float64)).requires_grad_(True)
        self.assertTrue(gradcheck(lambda z: z * z, (z,)))
        self.assertTrue(gradcheck(lambda z: z.abs(), (z,)))

    def test_wrong_gradients_are_found(self):
        x = self.double(2)
        with self.assertRaisesRegex(GradcheckError, "Jacobian mismatch for output 0 with respect to input 0,"):
            gradcheck(Wrong.apply, (x,))
        self.assertFalse(gradcheck(Wrong.apply, (x,), raise_exception=False))

    def test_a_failure_shows_the_whole_jacobian(self):
        class Thrice(tenon.autograd.Function):
            forward = staticmethod(lambda x: x * x)
            setup_context = staticmethod(lambda ctx, inputs, output: ctx.save_for_backward(*inputs))
            backward = staticmethod(lambda ctx, grad: 2 * ctx.saved_tensors[0].conj() * grad)
            jvp = staticmethod(lambda ctx, tangent: 3 * tangent)
        for values, begins, numerical, analytical in (
                ([1.0, 2.0], "", "[[2., 0.],\n        [0., 4.]]", "[[3., 0.],\n        [0., 3.]]"),
                ([1 + 1j], "While considering the imaginary part of complex inputs only, ", "[[-2.+2.j]]", "[[0.+3.j]]")):
            x = tenon.tensor(values, dtype=tenon.complex128 if begins else tenon.float64, requires_grad=True)
            with self.assertRaises(GradcheckError) as caught:
                gradcheck(Thrice.apply, (x,), eps=2.0 ** -10, check_forward_ad=True)
            dtype = ", dtype=%s)\n" % x.dtype
            self.assertEqual(str(caught.exception), begins + "Jacobian computed with forward mode mismatch for output 0 with respect to "
                             "input 0,\nnumerical:tensor(" + numerical + dtype + "analytical:tensor(" + analytical + dtype)

    def test_the_parts_of_complex_results_are_told_apart(self):
        class Double(tenon.autograd.Function):
            forward = staticmethod(lambda ctx, z: z * 2)
            backward = staticmethod(lambda ctx, grad: grad.real * 2 + grad.imag * 5j)
        z = tenon.tensor([1 + 1j], dtype=tenon.complex128, requires_grad=True)
        with self.assertRaisesRegex(GradcheckError, r"^While considering the imaginary part of complex outputs only, Jacobian mismatch"):
            gradcheck(Double.apply, (z,))

    def test_what_is_checked_must_be_there(self):
        x = self.double(2)
        for options, text in (({"check_rev_over_rev": False}, "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"),
                              ({"check_rev_over_rev": False, "check_fwd_over_rev": True},
                               "Setting check_undefined_grad=True requires check_rev_over_rev to be True")):
            with self.assertRaisesRegex(AssertionError, text):
                gradgradcheck(tenon.sin, (x,), **options)
        with self.assertRaisesRegex(AssertionError, "Setting check_batched_grad=True requires check_backward_ad to be True"):
            gradcheck(tenon.sin, (x,), check_batched_grad=True, check_forward_ad=True, check_backward_ad=False)
        self.assertTrue(gradgradcheck(tenon.sin, (x,), check_fwd_over_rev=True, check_rev_over_rev=False, check_undefined_grad=False))

    def test_importing_the_module_leaves_the_function_its_name(self):
        program = ("import sys, %s as t\n"
                   "from %s.autograd.gradcheck import GradcheckError\n"
                   "assert t.autograd.gradcheck(lambda x: x * x, t.ones(2, dtype=t.float64, requires_grad=True))\n"
                   "from %s.autograd import gradcheck\n"
                   "assert gradcheck is t.autograd.gradcheck is sys.modules[gradcheck.__globals__['__name__']].gradcheck\n")
        for name, before in (("tenon", ""), ("torch", "import tenon.as_torch\ntenon.as_torch.install()\n")):
            with self.subTest(name):
                done = subprocess.run([sys.executable, "-c", before + program % (name, name, name)], capture_output=True,
                                      text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_inputs_that_are_not_fit(self):
        with self.assertRaisesRegex(ValueError, "gradcheck expects at least one input tensor to require gradient"):
            gradcheck(lambda x: x, (tenon.ones(1, dtype=tenon.float64),))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gradcheck(lambda x: x * 2, (tenon.ones(1, requires_grad=True),), eps=1e-2, atol=1e-2)
        self.assertIn("is not a double precision floating point", str(caught[0].message))


if __name__ == "__main__":
    harness.main()
