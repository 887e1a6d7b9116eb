# SPDX-License-Identifier: MIT
"""Transforms of functions. Values are closed forms; the promises were seen to hold of PyTorch 2.11 too."""
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

    def test_batch_norms_without_statistics(self):
        net = tenon.nn.Sequential(tenon.nn.BatchNorm1d(3))
        self.assertIsNone(replace_all_batch_norm_modules_(net)[0].running_mean)
        self.assertEqual(net(tenon.rand(4, 3)).shape, (4, 3))


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


if __name__ == "__main__":
    harness.main()
