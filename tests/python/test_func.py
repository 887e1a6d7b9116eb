# SPDX-License-Identifier: MIT
"""Transforms of functions. Values are closed forms; the promises were seen to hold of PyTorch 2.11 too."""

import copy
import unittest

import harness
import tenon
from tenon.func import (functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize,
                        replace_all_batch_norm_modules_, stack_module_state, vjp, vmap)


def close(test, a, b):
    test.assertEqual(tuple(a.shape), tuple(b.shape))
    test.assertTrue(tenon.allclose(a, b), "%s is not %s" % (a, b))


class Gradients(unittest.TestCase):
    def test_grad(self):
        x = tenon.tensor([1.0, 2.0])
        g = grad(lambda x: (x ** 3).sum())(x)
        close(self, g, 3 * x * x)
        self.assertFalse(g.requires_grad or x.requires_grad)
        self.assertIsNone(x.grad)

    def test_grad_of_chosen_arguments_and_structures(self):
        a, b = tenon.tensor(2.0), tenon.tensor(3.0)
        ga, gb = grad(lambda a, b: a * a * b, argnums=(0, 1))(a, b)
        self.assertEqual((ga.item(), gb.item()), (12.0, 4.0))
        made = grad(lambda p, x: (p["w"] * x + p["b"]).sum())({"w": a, "b": b}, tenon.ones(3))
        self.assertEqual({k: v.item() for k, v in made.items()}, {"w": 3.0, "b": 3.0})
        g, (value, aux) = grad_and_value(lambda a: (a * a, a + 1), has_aux=True)(a)
        self.assertEqual((g.item(), value.item(), aux.item()), (4.0, 4.0, 3.0))
        with self.assertRaisesRegex(RuntimeError, "to return a scalar Tensor, got tensor with 1 dims"):
            grad(lambda x: x)(tenon.ones(2))

    def test_arguments_are_chosen_once_and_by_number(self):
        x, y = tenon.tensor(2.0), tenon.tensor(3.0)
        for transform in (grad, grad_and_value, jacrev, jacfwd, hessian):
            for chosen, text in (((0, 0), "argnums elements must be unique, got \\(0, 0\\)"), ((0, -2), "must be unique"), (
                    [0], "argnums must be int or Tuple\\[int, ...\\], got: <class 'list'>"), (("0",), "argnum must be int, got")):
                with self.assertRaisesRegex(RuntimeError, text):
                    transform(tenon.mul, argnums=chosen)(x, y)

    def test_functions_return_tensors_and_at_least_one(self):
        x = tenon.ones(2)
        calls = (("vjp\\(f, \\*primals\\)", lambda f, **k: vjp(f, x, **k)), ("vjp\\(f, \\*primals\\)", lambda f, **k: jacrev(f, **k)(x)),
                 ("jvp\\(f, primals, tangents\\)", lambda f, **k: jvp(f, (x,), (x,), **k)),
                 ("jvp\\(f, primals, tangents\\)", lambda f, **k: jacfwd(f, **k)(x)))
        for what, call in calls:
            for nothing, shown in (((), "\\[\\]"), (None, "\\[None\\]")):
                with self.assertRaisesRegex(RuntimeError, what + ": Expected f to be a function that has non-empty output "
                                            "\\(got output = " + shown + "\\)"):
                    call(lambda x: nothing)
            for aux in 1, "a", [x, 1.0]:
                with self.assertRaisesRegex(RuntimeError, "Expected tensors, got unsupported type <class '(int|str|float)'>"):
                    call(lambda x: (x.sin(), aux), has_aux=True)
        with self.assertRaisesRegex(RuntimeError, "Expected tensors, got unsupported type <class 'int'>"):
            grad(lambda x: (x.sum(), 1), has_aux=True)(x)

    def test_vectors_have_the_structure_of_what_they_are_for(self):
        x = tenon.ones(2)
        back = vjp(lambda x: (x, (x, x)), x)[1]
        with self.assertRaisesRegex(RuntimeError, "^Expected pytree structure of cotangents to be the same as pytree structure"):
            back((x, x, x))
        for primals, tangents in (((x,), x), ((x,), [x]), (((x, x), x), (x, (x, x)))):
            with self.assertRaisesRegex(RuntimeError, "Expected primals and tangents to have the same python structure"):
                jvp(lambda *a: x, primals, tangents)
        for nothing in (), ((),):
            with self.assertRaisesRegex(RuntimeError, "Expected primals to contain at least one Tensor."):
                jvp(tenon.sin, nothing, nothing)

    def test_strict_products_want_results_that_depend_on_the_inputs(self):
        x, y = tenon.ones(2), tenon.zeros(2)
        self.assertEqual(jvp(lambda x: (x, y), (x,), (x,))[1][1].tolist(), [0.0, 0.0])
        for f in (lambda x: (x, y), lambda x: jvp(lambda z: (z, y), (x,), (x,), strict=True)):
            with self.assertRaisesRegex(RuntimeError, r"^jvp\(f, primals, tangents, strict=True\): The output of f is independent "
                                        r"of the inputs\. This is not allowed with strict=True\.$"):
                jvp(f, (x,), (x,), strict=True)
        close(self, jvp(lambda x: x * 2, (x,), (x,), strict=True)[1], 2 * x)

    def test_parameters_that_are_stacked_all_require_grad_or_none(self):
        models = [tenon.nn.Linear(2, 2) for _ in range(3)]
        models[0].weight.requires_grad_(False)
        with self.assertRaisesRegex(RuntimeError, "^Expected weight from each model to have the same .requires_grad$"):
            stack_module_state(models)

    def test_nested(self):
        x = tenon.tensor(2.0)
        self.assertEqual(grad(grad(grad(lambda x: x ** 4)))(x).item(), 48.0)
        y = tenon.tensor(5.0)
        self.assertEqual(grad(lambda y: grad(lambda x: x * x * y)(x))(y).item(), 4.0)

    def test_gradients_go_through_from_outside(self):
        w = tenon.tensor(3.0, requires_grad=True)
        g = grad(lambda x: x * x * w)(tenon.tensor(2.0))
        g.backward()
        self.assertEqual(w.grad.item(), 4.0)

    def test_nothing_of_an_inner_transform_outlives_the_outer_one(self):
        x, w = tenon.tensor(2.0), tenon.tensor(3.0, requires_grad=True)
        inner = lambda x: grad(lambda y: x * y * y)(x.detach())  # noqa: E731: the gradient by y is 2 x y, of which y is constant
        found = grad(inner)(x)
        self.assertEqual((found.item(), found.requires_grad), (4.0, False))
        out, fn = vjp(inner, x)
        self.assertEqual((out.requires_grad, fn(x)[0].item(), fn(x)[0].requires_grad), (False, 8.0, False))
        for make in (jacrev, jacfwd):
            found = make(inner)(x)
            self.assertEqual((found.item(), found.requires_grad), (4.0, False))
        by_w = grad(lambda x: w * inner(x))(x)
        by_w.backward()
        self.assertEqual((by_w.item(), w.grad.item()), (12.0, 4.0))

    def test_gradients_of_tangents_keep_no_history(self):
        x, y = tenon.tensor([0.3, 0.7]), tenon.tensor([1.3, 0.4])
        for f in (tenon.pow, tenon.hypot, tenon.mul, tenon.atan2):  # the first two have no formula of their tangents
            g = grad(lambda a, b, f=f: jvp(lambda a, b: f(a, b).sum(), (a, b), (b, a))[1])(x, y)
            self.assertFalse(g.requires_grad, f)
            close(self, g, grad(lambda a, b, f=f: (grad(lambda a, b: f(a, b).sum(), argnums=(0, 1))(a, b)[0] * y).sum()
                                + (grad(lambda a, b: f(a, b).sum(), argnums=(0, 1))(a, b)[1] * a).sum())(x, y))

    def test_products(self):
        x, v = tenon.tensor([1.0, 2.0]), tenon.tensor([1.0, 10.0])
        out, fn = vjp(lambda x: x * x, x)
        close(self, out, x * x)
        close(self, fn(v)[0], 2 * x * v)
        close(self, fn(2 * v)[0], 4 * x * v)
        out, made = jvp(lambda x: x * x, (x,), (v,))
        close(self, made, 2 * x * v)
        (a, b), (ta, tb) = jvp(lambda x, y: (x * y, x + y), (x, x), (v, v))
        close(self, ta, 2 * x * v)
        close(self, tb, 2 * v)

    def test_matrices(self):
        x = tenon.tensor([1.0, 2.0, 3.0])
        for make in (jacrev, jacfwd):
            close(self, make(lambda x: x.sin())(x), tenon.diag(x.cos()))
            a, b = make(lambda x, y: x * y, argnums=(0, 1))(x, x + 1)
            close(self, a, tenon.diag(x + 1))
            close(self, b, tenon.diag(x))
        close(self, hessian(lambda x: (x ** 3).sum())(x), tenon.diag(6 * x))
        close(self, jacfwd(jacrev(lambda x: (x ** 3).sum()))(x), tenon.diag(6 * x))


    def test_matrices_are_of_real_functions(self):
        from tenon.func import hessian, jacfwd, jacrev
        x, z = tenon.ones(2), tenon.ones(2, dtype=tenon.complex64)
        for f, into, out in ((jacrev, "jacrev", "jacrev"), (jacfwd, "jacfwd", "jacfwd"),
                             (hessian, "jacfwd", "jacrev")):
            for call, text in (
                    (lambda: f(lambda z: z * z)(z), into + ": Expected all inputs to be real but received complex "
                                                           "tensor at flattened input idx: 0"),
                    (lambda: f(lambda d: d["b"].abs())({"a": x, "b": z}), "flattened input idx: 1"),
                    (lambda: f(lambda x, z: (x * z).abs())(x, z), "flattened input idx: 1"),
                    (lambda: f(lambda x: tenon.complex(x, x))(x), out + ": Expected all outputs to be real but "
                                                                        "received complex tensor at flattened input "
                                                                        "idx: 0")):
                with self.assertRaisesRegex(RuntimeError, text):
                    call()

    def test_numbers_are_no_tensors(self):
        from tenon.func import grad, grad_and_value, jacrev, jvp, vjp
        for call in (lambda: grad(lambda a: a * 2)(2.), lambda: grad(lambda a: a[0] * 2)([2.]),
                     lambda: grad_and_value(lambda a: a * 2)(2.), lambda: vjp(lambda a: a * 2, 2.),
                     lambda: jacrev(lambda a: a * 2)(2.)):
            with self.assertRaisesRegex(ValueError, "Thing passed to transform API must be Tensor, got <class 'float'>"):
                call()
        with self.assertRaisesRegex(RuntimeError, "Expected primals to only contain Tensors, got <class 'float'>"):
            jvp(lambda a: a * 2, (2.,), (1.,))

    def test_linearized(self):
        calls = []

        def f(d):
            calls.append(1)
            return {"r": (d["a"] * d["b"]).sin(), "n": 3}
        point = {"a": tenon.tensor(0.3), "b": tenon.tensor(2.0)}
        out, moves = linearize(f, point)
        self.assertAlmostEqual(out["r"].item(), 0.5646, 4)
        for da, db, wanted in ((1.0, 0.0, 1.6507), (0.0, 1.0, 0.2476)):
            made = moves({"a": tenon.tensor(da), "b": tenon.tensor(db)})
            self.assertAlmostEqual(made["r"].item(), wanted, 4)
        self.assertEqual(len(calls), 1)
        with self.assertRaisesRegex(RuntimeError, r"tangent:0 with shape .*\[2\]\) in flattened pytree"):
            linearize(lambda x: x * x, tenon.ones(3))[1](tenon.ones(2))

    def test_what_is_linearized_is_differentiated_again(self):
        x, t = tenon.tensor([0.3, 0.7]), tenon.tensor([1.0, 2.0])

        def f(a):
            return a.sin() * a
        slope, bend = x.cos() * x + x.sin(), 2 * x.cos() - x.sin() * x
        close(self, grad(lambda a: linearize(f, a)[0].sum())(x), slope)
        close(self, grad(lambda a: linearize(f, a)[1](t).sum())(x), bend * t)
        _, moves = linearize(f, x)
        close(self, grad(lambda u: moves(u).sum())(t), slope)
        close(self, jacrev(moves)(t), tenon.diag(slope))
        close(self, vmap(moves)(tenon.stack([t, x])), tenon.stack([slope * t, slope * x]))
        close(self, vmap(grad(lambda u: moves(u).sum()))(tenon.stack([t, x])), tenon.stack([slope, slope]))
        x.requires_grad_()
        out, moves = linearize(f, x)
        for _ in range(2):
            close(self, tenon.autograd.grad(moves(t).sum(), x)[0], (bend * t).detach())
        close(self, tenon.autograd.grad(out.sum(), x)[0], slope.detach())

    def test_what_is_linearized_stays_the_same_function(self):
        x, t = tenon.ones(50), tenon.ones(50)
        _, moves = linearize(lambda a: a * tenon.rand(50), x)
        close(self, grad(lambda u: moves(u).sum())(t), moves(t))
        x.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            grad(lambda u: moves(u).sum())(t)

    def test_slices_inside_slices_that_come_later(self):
        x = tenon.tensor([[0.3, 0.7, 0.2], [0.9, 0.4, 1.1]])
        for inner in (lambda a: vmap(lambda t: t.sin())(a).sum(0), lambda a: vmap(lambda t: (t * t.sin()).sum(), 1)(a),
                      lambda a: vmap(lambda s: vmap(lambda t: t.sin() * s.cos())(a))(a).sum((0, 1))):
            plain = jacrev(jacrev(inner))(x).sum((0, 1, 2))
            for outer in (jacfwd, jacrev):
                close(self, grad(lambda b, outer=outer, inner=inner: outer(inner)(b).sum())(x), plain)
        one = grad(lambda b: jacfwd(lambda a: vmap(lambda t: t.sin())(a).sum(0))(b).sum())(x)
        self.assertIs(type(one), tenon.Tensor)
        close(self, one, -x.sin())

    def test_batch_norms_without_statistics(self):
        net = tenon.nn.Sequential(tenon.nn.BatchNorm1d(3))
        self.assertIsNone(replace_all_batch_norm_modules_(net)[0].running_mean)
        self.assertEqual(net(tenon.rand(4, 3)).shape, (4, 3))

    def test_tangents_do_not_ask_whether_something_is_recorded(self):
        x, t = tenon.tensor([0.25, 0.5]), tenon.tensor([1.0, 2.0])

        def quiet(func):
            def call(x):
                with tenon.no_grad():
                    return func(x)
            return call

        def doubled(x):
            y = x.clone()
            with tenon.no_grad():
                y.mul_(2)
            return y

        self.assertEqual([x.tolist() for x in jvp(doubled, (x,), (t,))], [[0.5, 1.0], [2.0, 4.0]])
        for func, value, pushed, columns in ((quiet(lambda x: x[:1]), [0.25], [1.0], [[1.0, 0.0]]),
                                             (quiet(lambda x: x[:1] * 2), [0.5], [2.0], [[2.0, 0.0]]),
                                             (lambda x: x[1:], None, [2.0], [[0.0, 1.0]])):
            primal, tangent = jvp(func, (x,), (t,))
            self.assertEqual((primal.tolist(), tangent.tolist()), (value or [0.5], pushed))
            self.assertFalse(primal.requires_grad or tangent.requires_grad)
            self.assertEqual(jacfwd(func)(x).tolist(), columns)
            primal, push = linearize(func, x)
            self.assertEqual((primal.tolist(), push(t).tolist()), (value or [0.5], pushed))
        with tenon.autograd.forward_ad.dual_level():
            dual = quiet(lambda x: x[:1] * 2)(tenon.autograd.forward_ad.make_dual(x, t))
            self.assertEqual(tenon.autograd.forward_ad.unpack_dual(dual).tangent.tolist(), [2.0])


    def test_a_function_has_the_tangent_that_it_says(self):
        class Square(tenon.autograd.Function):
            @staticmethod
            def forward(x):
                return x * x

            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.save_for_backward(*inputs)
                ctx.save_for_forward(*inputs)

            @staticmethod
            @tenon.autograd.function.once_differentiable
            def backward(ctx, grad):
                return 2 * ctx.saved_tensors[0] * grad

            @staticmethod
            def jvp(ctx, tangent):
                return 2 * ctx.saved_tensors[0] * tangent

        x = tenon.tensor([0.5, 1.5])
        self.assertEqual(jvp(lambda x: Square.apply(x) * x, (x,), (tenon.ones(2),))[1].tolist(), (3 * x * x).tolist())
        self.assertEqual(jacfwd(Square.apply)(x).tolist(), [[1.0, 0.0], [0.0, 3.0]])
        self.assertEqual(linearize(Square.apply, x)[1](x).tolist(), [0.5, 4.5])
        self.assertEqual(jacfwd(jacfwd(Square.apply))(x).sum(-1).tolist(), [[2.0, 0.0], [0.0, 2.0]])
        with self.assertRaisesRegex(RuntimeError, "once_differentiable"):  # there is one dual level: the inner one is recorded
            jvp(jacfwd(Square.apply), (x,), (x,))
        self.assertEqual(jacrev(Square.apply)(x).tolist(), [[1.0, 0.0], [0.0, 3.0]])

    def test_hooks_do_not_touch_tangents_and_counts_have_none(self):
        def hooked(x):
            y = x * 2
            if y.requires_grad:
                y.register_hook(lambda g: g * 5)
            return y

        x = tenon.tensor([0.5, 1.5])
        self.assertEqual(jvp(hooked, (x,), (x,))[1].tolist(), [1.0, 3.0])
        value, tangent = jvp(lambda x: x > 1, (x,), (x,))
        self.assertEqual((value.tolist(), tangent.tolist()), ([False, True], [False, False]))


class Captured(unittest.TestCase):
    """A function that is transformed as a whole writes what it is given and what it makes, nothing else."""
    X = tenon.tensor([1.0, 2.0, 3.0])

    def transforms(self, x):
        return {
            "grad": lambda f: grad(f)(x),
            "grad_and_value": lambda f: grad_and_value(f)(x),
            "vjp": lambda f: vjp(f, x),
            "jvp": lambda f: jvp(f, (x,), (x,)),
            "jacrev": lambda f: jacrev(f)(x),
            "jacfwd": lambda f: jacfwd(f)(x),
            "hessian": lambda f: hessian(f)(x),
            "linearize": lambda f: linearize(f, x),
            "inner": lambda f: grad(lambda y: grad(f)(y).sum())(x),
            "in vmap": lambda f: vmap(grad(f))(tenon.stack([x, x])),
        }

    def test_writes_of_captured_tensors_are_refused(self):
        def in_no_grad(b, x):
            with tenon.no_grad():
                b.add_(1)

        writes = [("add_.Tensor", lambda b, x: b.add_(x)), ("fill_.Scalar", lambda b, x: b.fill_(3)),
                  ("copy_", lambda b, x: b.copy_(x)), ("copy_", lambda b, x: b.__setitem__(0, x[0])),
                  ("mul_.Tensor", lambda b, x: b[1:].mul_(x[1:])), ("add_.Tensor", in_no_grad),
                  ("uniform_", lambda b, x: b.uniform_()), ("resize_", lambda b, x: b.resize_(5))]
        for how, transform in self.transforms(self.X).items():
            for name, write in writes:
                with self.subTest(how=how, name=name):
                    b = tenon.zeros(3)

                    def f(x):
                        write(b, x)
                        return (x * x).sum() + b.sum()

                    with self.assertRaisesRegex(RuntimeError, r"During a grad \(vjp, jvp, grad, etc\) transform, the function "
                                                r"provided attempted to call in-place operation \(aten::%s\)" % name):
                        transform(f)
                    self.assertFalse(b.requires_grad)
                    self.assertEqual((b.tolist(), b._version), ([0] * 3, 0))
        b.add_(1)  # outside it may be written again

    def test_what_a_function_makes_or_is_given_may_be_written(self):
        def made(x):
            c = tenon.zeros(3)
            c.add_(x)
            c[0] = x[1]
            return (c * c).sum()

        def copied(x):
            return (self.X.clone().mul_(x)).sum()

        for f in made, copied:
            for how, transform in self.transforms(self.X).items():
                with self.subTest(how=how, f=f.__name__):
                    transform(f)
        self.assertEqual(grad(made)(self.X).tolist(), [0, 8, 6])
        buffer = tenon.zeros(3)
        grad(lambda x, b: (b.add_(1), (x * x).sum())[1])(self.X, buffer)
        grad(lambda x, b: (b.add_(1), (x * x).sum())[1])(self.X, b=buffer)
        self.assertEqual(buffer.tolist(), [2] * 3)
        with self.assertRaisesRegex(RuntimeError, "captured Tensor"):  # given to another call
            grad(lambda x: (buffer.add_(1), x.sum())[1])(self.X)

    def test_a_function_may_write_what_it_is_pushed_forward_through(self):
        def f(a):
            a.mul_(2)
            a[0] = 5
            return a * a

        for x in (tenon.arange(6.0), tenon.arange(12.0)[::2], tenon.arange(6.0).reshape(3, 2).t()):
            y = x.clone()
            value, tangent = jvp(f, (y,), (tenon.ones_like(y),))
            wanted = x.clone().mul_(2)
            wanted[0] = 5
            slope = 4 * wanted
            slope[0] = 0
            self.assertEqual((y.tolist(), value.tolist(), tangent.tolist()),
                             (wanted.tolist(), (wanted * wanted).tolist(), slope.tolist()))
            self.assertFalse(y.requires_grad)

        def overwritten(a):
            b = a * 1
            made = (b * b).sum()
            b.add_(1)
            return made

        value, tangent = jvp(overwritten, (tenon.ones(3),), (tenon.ones(3),))
        self.assertEqual((value.item(), tangent.item()), (3.0, 6.0))
        self.assertEqual(jacfwd(overwritten)(tenon.ones(3)).tolist(), [2.0, 2.0, 2.0])

    def test_inner_functions_are_made_of_outer_ones(self):
        def outer(x):
            c = tenon.zeros(3)
            return grad(lambda y: (c.add_(y), (y * x).sum())[1])(x).sum()

        with self.assertRaisesRegex(RuntimeError, "captured Tensor"):
            grad(outer)(self.X)

        def after(x):
            c = grad(lambda y: (y**3).sum())(x)
            c.mul_(x)  # made in a transform that is over
            return c.sum()

        self.assertEqual(grad(after)(self.X).tolist(), [9, 36, 81])

    def test_passes_add_to_gradients_that_were_there(self):
        w = tenon.ones(3, requires_grad=True)
        (w * 2).sum().backward()

        def f(x):
            (w * 3).sum().backward()
            return (x * x).sum()

        grad(f)(self.X)
        self.assertEqual(w.grad.tolist(), [5] * 3)

    def test_functions_that_are_transformed_make_no_leaves(self):
        x = tenon.ones(2)
        leaf = (r"^You are attempting to call Tensor\.requires_grad_\(\) \(or perhaps using torch\.autograd\.functional\.\* APIs\) "
                r"inside of a function being transformed by a functorch transform\. This is unsupported, please attempt to use the "
                r"functorch transforms \(e\.g\. grad, vjp, jacrev, jacfwd, hessian\) or call requires_grad_\(\) outside of a "
                r"function being transformed instead\.$")
        keep = r"^You are attempting to call Tensor\.retain_grad\(\) inside of a function being transformed by a functorch"

        def makes(x):
            return (x.requires_grad_(), (x * x).sum())[1]

        for call in (lambda: grad(makes)(x), lambda: vjp(makes, x), lambda: jvp(makes, (x,), (x,)), lambda: hessian(makes)(x),
                     lambda: jacrev(makes)(x), lambda: vmap(makes)(tenon.ones(2, 2)), lambda: vmap(grad(makes))(tenon.ones(2, 2)),
                     lambda: grad(lambda y: (y.requires_grad_(False), y.sum())[1])(x),
                     lambda: grad(lambda y: (tenon.ones(2).requires_grad_(), y.sum())[1])(x)):
            with self.assertRaisesRegex(RuntimeError, leaf):
                call()
        with self.assertRaisesRegex(RuntimeError, keep):
            grad(lambda y: ((y * 2).retain_grad(), y.sum())[1])(x)
        self.assertFalse(x.requires_grad)
        self.assertTrue(tenon.ones(2).requires_grad_().requires_grad)  # that is over
        self.assertEqual(grad(lambda y: (tenon.nn.Parameter(tenon.ones(2)) * y).sum())(x).tolist(), [1, 1])
        self.assertEqual(grad(lambda y: grad(lambda z: (z ** 3).sum())(y).sum())(x).tolist(), [6, 6])

    def test_an_out_that_all_slices_share_is_refused(self):
        x, out = tenon.ones(2, 2), tenon.zeros(2)
        for name, call in (("add.out", lambda x: tenon.add(x, x, out=out)), ("exp.out", lambda x: tenon.exp(x, out=out)),
                           ("sum.IntList_out", lambda x: tenon.sum(x, 0, out=out))):
            with self.assertRaisesRegex(RuntimeError, r"^Batching rule not implemented for aten::%s; the fallback path doesn't work "
                                        r"on out= or view ops\.$" % name.replace(".", r"\.")):
                vmap(call)(x)
        with self.assertRaisesRegex(RuntimeError, r"aten::cat\.out\. We could not generate a fallback\.$"):
            vmap(lambda x: tenon.cat([x, x], out=out))(x)
        self.assertEqual(out.tolist(), [0, 0])
        self.assertEqual(vmap(lambda x: tenon.add(x, x, out=tenon.empty(2)))(x).tolist(), [[2, 2], [2, 2]])  # its own

    def test_slices_are_not_written_into_what_all_share(self):
        two = tenon.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        arithmetic = (r"vmap: inplace arithmetic\(self, \*extra_args\) is not possible because there exists a Tensor `other` in "
                      r"extra_args that has more elements than `self`. This happened due to `other` being vmapped over but "
                      r"`self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of inplace "
                      r"arithmetic.")
        for text, write in (
                (r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]", lambda b, x: b.add_(x)),
                (r"output with shape \[3\] doesn't match the broadcast shape \[2, 3\]", lambda b, x: b.add_(x.sum())),
                (arithmetic, lambda b, x: b.mul_(x)), (arithmetic, lambda b, x: b.copy_(x)),
                (arithmetic, lambda b, x: b.__setitem__(0, x[0])),
                (r"vmap: fill_\(self, .* in a vmap", lambda b, x: b.fill_(x.sum())),
                (r"vmap: aten::pow_\(self, .* at level 1", lambda b, x: b.pow_(x))):
            b = tenon.zeros(3)
            with self.assertRaisesRegex(RuntimeError, text):
                vmap(lambda x: (write(b, x), x)[1])(two)
            self.assertEqual(b.tolist(), [0] * 3)
        b = tenon.zeros(3)
        vmap(lambda x: (b.add_(1), x)[1])(two)  # no slice goes in
        self.assertEqual(b.tolist(), [1] * 3)


class Vmap(unittest.TestCase):
    def test_dimensions(self):
        x, y = tenon.rand(3, 4), tenon.rand(4, 3)
        close(self, vmap(tenon.dot)(x, x), (x * x).sum(1))
        close(self, vmap(tenon.dot, in_dims=(0, 1))(x, y), (x * y.t()).sum(1))
        close(self, vmap(lambda a: a * 2, out_dims=1)(x), 2 * x.t())
        close(self, vmap(tenon.dot, in_dims=(0, None))(x, x[0]), x @ x[0])
        a, b = vmap(lambda a: (a.sum(), a))(x)
        close(self, a, x.sum(1))
        close(self, b, x)
        close(self, vmap(vmap(lambda a, b: a * b), in_dims=(0, None))(x, x[0]), x * x[0])
        close(self, vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": x[0]}), x + x[0])

    def test_gradients_of_samples(self):
        w, x = tenon.rand(4), tenon.rand(3, 4)
        made = vmap(grad(lambda w, x: (w * x).sum() ** 2), in_dims=(None, 0))(w, x)
        close(self, made, 2 * (x @ w).reshape(3, 1) * x)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(ValueError, "Expected all tensors to have the same size in the mapped dimension"):
            vmap(lambda a, b: a + b)(tenon.ones(2), tenon.ones(3))
        with self.assertRaisesRegex(RuntimeError, "Only allowed values for randomness are"):
            vmap(lambda a: a, randomness="some")(tenon.ones(2))

        def f(x):
            return x
        x = tenon.ones(2, 3)
        for wanted, call in (
                (r"vmap\(f, in_dims=5, ...\)\(<inputs>\): Got in_dim=5 for some input, but that input is a Tensor of "
                 r"dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2.", lambda: vmap(f, in_dims=5)(x)),
                (r"in_dims has structure TreeSpec\(tuple, None, \[\*,\n  \*\]\) but inputs has structure "
                 r"TreeSpec\(tuple, None, \[\*\]\)", lambda: vmap(f, in_dims=(0, 0))(x)),
                (r"Expected at least one Tensor to vmap over", lambda: vmap(f, in_dims=(None,))(x)),
                (r"got no inputs", lambda: vmap(f)()),
                (r"We cannot vmap over non-Tensor arguments", lambda: vmap(f)(3)),
                (r"`f` can not return a BatchedTensor when out_dim is None",
                 lambda: vmap(f, out_dims=None)(tenon.arange(3))),
                (r"must only return Tensors, got type <class 'int'>. Did you mean", lambda: vmap(lambda x: 3)(x)),
                (r"`out_dims` must be an int, None or a python collection", lambda: vmap(f, out_dims="a")(x)),
                (r"chunk_size should be None or greater than 0. \(got 0\)", lambda: vmap(f, chunk_size=0))):
            with self.assertRaisesRegex(ValueError, wanted):
                call()

    def test_keyword_arguments_are_given_whole(self):
        made = vmap(lambda x, y: x + y)(tenon.arange(2), y=tenon.tensor([10, 20]))
        self.assertEqual(made.tolist(), [[10, 20], [11, 21]])

    def test_sizes_that_change_in_place_are_those_of_slices(self):
        x = tenon.arange(24.0).reshape(2, 3, 4)

        def through_a_view(a):
            a = a.clone()
            a.view(-1)[2:4].mul_(10)
            return a
        for f in (lambda a: a.clone().resize_(2), lambda a: a.clone().resize_as_(tenon.ones(2, 2)), through_a_view,
                  lambda a: a.clone().unsqueeze(0).squeeze_((0, 1))):
            for d in range(3):
                self.assertEqual(vmap(f, d)(x).tolist(), tenon.stack([f(a) for a in x.unbind(d)]).tolist())

    def test_no_slice_has_the_shape_of_one(self):
        self.assertEqual(vmap(lambda x: x.sum(), out_dims=0)(tenon.ones(0, 3)).shape, (0,))

    def test_random_numbers(self):
        same = vmap(lambda x: x + tenon.rand(2), randomness="same")(tenon.zeros(3))
        close(self, same[0], same[2])
        other = vmap(lambda x: x + tenon.rand(2), randomness="different")(tenon.zeros(3))
        self.assertFalse(tenon.equal(other[0], other[2]))
        state = tenon.get_rng_state()
        for call in (lambda x: x + tenon.rand(2), lambda x: tenon.nn.functional.dropout(x), lambda x: x.normal_()):
            with self.assertRaisesRegex(RuntimeError, "called random operation while in randomness error mode"):
                vmap(call)(tenon.zeros(3))
        self.assertTrue(tenon.equal(state, tenon.get_rng_state()))
        with self.assertRaisesRegex(RuntimeError, "called random operation"):
            vmap(vmap(lambda x: x + tenon.rand(())), randomness="different")(tenon.zeros(2, 3))


class Modules(unittest.TestCase):
    def test_functional_call_and_ensembles(self):
        models = [tenon.nn.Linear(3, 2) for _ in range(4)]
        x = tenon.rand(5, 3)
        params = {"weight": tenon.ones(2, 3), "bias": tenon.zeros(2)}
        close(self, functional_call(models[0], params, (x,)), x.sum(1, keepdim=True).expand(5, 2))
        self.assertFalse(tenon.equal(models[0].weight, params["weight"]))
        params, buffers = stack_module_state(models)
        made = vmap(lambda p, b, x: functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
        close(self, made[3], models[3](x))
        g = grad(lambda p: functional_call(models[0], p, (x,)).sum())(dict(models[0].named_parameters()))
        close(self, g["bias"], tenon.full((2,), 5.0))


class Containers(unittest.TestCase):
    def test_a_container_that_cuts_itself_is_mapped(self):
        class Pair:
            def __init__(self, a, b):
                self.a, self.b = a, b

            def _add_batch_dim(self, *args):
                raise AssertionError

            def dim(self):
                return 1

            shape = property(lambda self: self.a.shape[:1])

            def unbind(self, dim):
                return [Pair(x, y) for x, y in zip(self.a.unbind(dim), self.b.unbind(dim))]

        out = tenon.vmap(lambda p, k: p.a * k + p.b)(Pair(tenon.arange(3.0), tenon.ones(3)), tenon.tensor([1.0, 2.0, 3.0]))
        self.assertEqual(out.tolist(), [1, 3, 7])


class Statistics(unittest.TestCase):
    def test_layers_that_keep_statistics_can_be_transformed(self):
        """They write what the function captured, as their kernels do; a program's own writes are refused."""
        nn = tenon.nn
        for make, x in ((lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 2)), tenon.randn(4, 3)),
                        (lambda: nn.utils.spectral_norm(nn.Linear(3, 2)), tenon.randn(4, 3)),
                        (lambda: nn.InstanceNorm1d(3, affine=True, track_running_stats=True), tenon.randn(2, 3, 4))):
            one = make().double()
            other = copy.deepcopy(one)
            x = x.double()
            given = {k: v.detach() for k, v in one.named_parameters()}
            grads = tenon.func.grad(lambda p: (tenon.func.functional_call(one, p, (x,)) ** 2).sum())(given)
            (other(x) ** 2).sum().backward()
            for name, p in other.named_parameters():
                tenon.testing.assert_close(grads[name], p.grad)
            for mine, its in zip(one.buffers(), other.buffers()):
                tenon.testing.assert_close(mine, its)

    def test_refusals_say_what_was_given_and_what_was_wanted(self):
        x = tenon.ones(2)
        with self.assertRaisesRegex(RuntimeError, r"outputs to the function. cotangents: \*, primal output: \(\*, \*\)"):
            vjp(lambda y: (y, y * 2), x)[1](x)
        with self.assertRaisesRegex(RuntimeError, r"Got primals with structure TreeSpec\(tuple, None, \[\*\]\) and tangents"):
            jvp(tenon.sin, (x,), (x, x))
        with self.assertRaisesRegex(RuntimeError, "'error', 'different', or 'same'. Got some"):
            jacfwd(tenon.sin, randomness="some")(x)

    def test_tangents_where_a_formula_chooses_are_the_gradients(self):
        x, one = tenon.tensor([-.5, 0., .2, 1., 1.5], dtype=tenon.float64), tenon.ones(5, dtype=tenon.float64)
        inf, nan = float("inf"), float("nan")
        for eps, wanted in ((None, [nan, inf, 6.25, inf, nan]), (.1, [0., 0., 6.25, 0., 0.]), (.5, [0.] * 5)):
            for f in (lambda y: tenon.logit(y, eps), lambda y: (y * 1).logit_(eps)):
                for made in (jvp(f, (x,), (one,))[1], grad(lambda y: f(y).sum())(x)):
                    tenon.testing.assert_close(made, tenon.tensor(wanted, dtype=tenon.float64), equal_nan=True)
        base, exponent = (tenon.tensor(v, dtype=tenon.float64) for v in ([0., 0., 0., 2., -1.], [0., 1., 2., 0., 0.]))
        for f in (tenon.pow, tenon.float_power, lambda a, b: (a * 1).pow_(b)):
            tangent = jvp(lambda a: f(a, exponent), (base,), (one,))[1]
            tenon.testing.assert_close(tangent, tenon.tensor([0., 1., 0., 0., 0.], dtype=tenon.float64))


class WithoutRecording(unittest.TestCase):
    """What a transform gives under no_grad is a constant to those around it; tangents go through."""

    INSIDE = {
        "grad": lambda x: grad(lambda x: x ** 3)(x),
        "value": lambda x: grad_and_value(lambda x: x ** 3)(x)[1],
        "aux": lambda x: grad(lambda x: (x ** 3, x ** 2), has_aux=True)(x)[1],
        "vjp": lambda x: vjp(lambda x: x ** 3, x)[0],
        "jacrev": lambda x: jacrev(lambda x: x ** 3)(x),
        "hessian": lambda x: hessian(lambda x: x ** 3)(x),
        "jvp": lambda x: jvp(lambda x: x ** 3, (x,), (tenon.ones(()),))[1],
    }

    def test_transforms_around_do_not_see_it(self):
        for name, made in self.INSIDE.items():
            def around(x, made=made):
                with tenon.no_grad():
                    constant = made(x)
                return x ** 2 - constant
            x = tenon.tensor(1.5, requires_grad=True)
            self.assertEqual(grad(around)(x).item(), 3.0, name)
            with tenon.no_grad():
                self.assertFalse(made(x).requires_grad, name)

    def test_tangents_in_the_forward_of_a_function(self):
        class Cos(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return jvp(tenon.sin, (x,), (tenon.ones_like(x),))[1] + jacfwd(tenon.sin)(x)

            @staticmethod
            def backward(ctx, grad):
                return grad
        x = tenon.tensor(0.5, requires_grad=True)
        self.assertAlmostEqual(Cos.apply(x).item(), 2 * x.cos().item(), places=6)


if __name__ == "__main__":
    harness.main()
