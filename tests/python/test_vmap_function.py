# SPDX-License-Identifier: MIT
"""vmap over a user's Function: its static method vmap is called with whole tensors, and a gradient inside or outside the
mapped function is right. Values are worked out by hand; messages are PyTorch 2.11's."""
import unittest

import harness
import tenon
from tenon.autograd import Function
from tenon.func import grad, jacrev, vmap

X = tenon.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=tenon.float64)
W = tenon.tensor([7.0, 8.0, 9.0], dtype=tenon.float64)


def function(rule=None, **attributes):
    """Twice its argument, with a rule or without."""
    class Twice(Function):
        @staticmethod
        def forward(x, y=None):
            return x * 2

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def backward(ctx, g):
            return g * 2, None
    if rule:
        Twice.vmap = staticmethod(rule)
    for name, value in attributes.items():
        setattr(Twice, name, value)
    return Twice


class Product(Function):
    """A product by NumPy, which can be given no slice that stands for all."""
    calls = []

    @staticmethod
    def forward(x, w):
        return tenon.from_numpy(x.detach().numpy() * w.detach().numpy())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        return Product.apply(g, w), Product.apply(g, x)

    @staticmethod
    def vmap(info, in_dims, x, w):
        Product.calls.append((info.batch_size, in_dims))
        x, w = (t if d is None else t.movedim(d, 0) for t, d in zip((x, w), in_dims))
        return Product.apply(*tenon.broadcast_tensors(x, w)), 0


class Rule(unittest.TestCase):
    def test_it_is_called_once_with_whole_tensors(self):
        seen = []

        def rule(info, in_dims, x, y):
            seen.append((info.batch_size, info.randomness, in_dims, tuple(x.shape), y))
            return x * 100, in_dims[0]
        twice = function(rule)
        self.assertEqual(vmap(lambda x: twice.apply(x, 7))(X).tolist(), (X * 100).tolist())
        self.assertEqual(vmap(twice.apply, in_dims=1, out_dims=1)(X).tolist(), (X * 100).tolist())
        self.assertEqual(seen, [(2, "error", (0, None), (2, 3), 7), (3, "error", (1, None), (2, 3), None)])

    def test_results_are_where_it_says(self):
        def rule(info, in_dims, x, y):
            return (x * 2, x.t() * 3, x.sum()), (0, 1, None)
        a, b, c = vmap(function(rule).apply)(X)
        self.assertEqual((a.tolist(), b.tolist(), c.tolist()), ((X * 2).tolist(), (X * 3).tolist(), [21.0, 21.0]))

    def test_it_is_not_called_where_no_argument_is_mapped(self):
        def rule(*args):
            raise AssertionError("called")
        twice = function(rule)
        self.assertEqual(vmap(lambda x: twice.apply(W) + x)(X).tolist(), (X + 2 * W).tolist())

    def test_nested_maps_call_it_for_the_inner_one(self):
        seen = []

        def rule(info, in_dims, x, y):
            seen.append((info.batch_size, tuple(x.shape)))
            return x * 100, in_dims[0]
        made = vmap(vmap(function(rule).apply))(tenon.ones(2, 3, 4))
        self.assertEqual(made.tolist(), (tenon.ones(2, 3, 4) * 100).tolist())
        self.assertEqual(seen, [(3, (3, 4))])

    def test_a_function_that_generates_its_rule_takes_slices(self):
        self.assertEqual(vmap(function(generate_vmap_rule=True).apply)(X).tolist(), (X * 2).tolist())

    def test_its_exception_comes_out(self):
        def rule(info, in_dims, x, y):
            raise KeyError("mine")
        with self.assertRaisesRegex(KeyError, "mine"):
            vmap(function(rule).apply)(X)


class Messages(unittest.TestCase):
    def refuses(self, cls, text):
        with self.assertRaises(RuntimeError) as caught:
            vmap(cls.apply)(X)
        self.assertIs(type(caught.exception), RuntimeError)
        self.assertTrue(str(caught.exception).startswith(text), str(caught.exception))

    def test_a_function_without_rule_is_refused(self):
        self.refuses(function(), "You tried to vmap over Twice, but it does not have vmap support. Please override and "
                     "implement the vmap staticmethod or set generate_vmap_rule=True. For more details, please see")

    def test_a_function_with_two_rules_is_refused(self):
        cls = function(lambda info, in_dims, x, y: (x, 0), generate_vmap_rule=True)
        self.refuses(cls, "You tried to vmap over Twice, but it has both generate_vmap_rule=True and an overridden vmap "
                     "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to "
                     "avoid ambiguity. For more details, please see")

    def test_a_function_without_setup_context_is_refused(self):
        class Old(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2
        self.refuses(Old, "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), "
                     "it must override the setup_context staticmethod. For more details, please see")

    def test_a_rule_returns_results_and_dimensions(self):
        head = ("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
                "compatible with the output. ")
        self.refuses(function(lambda info, in_dims, x, y: x), head + "Got a <class ")
        self.refuses(function(lambda info, in_dims, x, y: (x, 0, 0)), head + "Got 3 returns instead")
        self.refuses(function(lambda info, in_dims, x, y: (x, (0, 0))),
                     "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
                     "out_dims=(0, 0) to be compatible with the structure of `output`.")

    def test_backward_and_vjp_together_are_refused(self):
        class Both(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                return g * 3

            @staticmethod
            def vjp(ctx, g):
                return g * 2
        x = X.clone().requires_grad_()
        with self.assertRaisesRegex(RuntimeError, "Implementing both 'backward' and 'vjp' for a custom Function is not allowed"):
            Both.apply(x).sum().backward()


class Gradients(unittest.TestCase):
    def test_inside_the_mapped_function_its_backward_is_used(self):
        def rule(info, in_dims, x, y):
            return x * 100, in_dims[0]
        twice = function(rule)
        self.assertEqual(vmap(grad(lambda x: twice.apply(x).sum()))(X).tolist(), [[2.0] * 3] * 2)

    def test_outside_of_it_what_the_rule_does_is_differentiated(self):
        def rule(info, in_dims, x, y):
            return x * 100, in_dims[0]
        twice = function(rule)
        self.assertEqual(grad(lambda x: vmap(twice.apply)(x).sum())(X).tolist(), [[100.0] * 3] * 2)

    def test_of_what_is_mapped_and_of_what_is_shared(self):
        Product.calls.clear()
        rows = W.expand(2, 3)
        self.assertEqual(vmap(lambda x: Product.apply(x, W))(X).tolist(), (X * W).tolist())
        self.assertEqual(Product.calls, [(2, (0, None))])
        self.assertEqual(vmap(grad(lambda x: Product.apply(x, W).sum()))(X).tolist(), rows.tolist())
        self.assertEqual(vmap(grad(lambda w, x: Product.apply(x, w).sum()), in_dims=(None, 0))(W, X).tolist(), X.tolist())
        self.assertEqual(grad(lambda w: vmap(lambda x: Product.apply(x, w))(X).sum())(W).tolist(), X.sum(0).tolist())
        x = X.clone().requires_grad_()
        vmap(lambda x: Product.apply(x, W))(x).sum().backward()
        self.assertEqual(x.grad.tolist(), rows.tolist())

    def test_of_gradients(self):
        def inner(x):
            return grad(lambda y: (Product.apply(y, y) ** 2).sum())(x).sum()  # y^4: 4 y^3
        self.assertEqual(vmap(grad(inner))(X).tolist(), (12 * X * X).tolist())
        w = W.clone().requires_grad_()
        vmap(grad(lambda x: (Product.apply(x, w) ** 2).sum()))(X).sum().backward()  # 2 x w^2
        self.assertEqual(w.grad.tolist(), (4 * X * W).sum(0).tolist())

    def test_of_jacobians(self):
        diagonal = tenon.diag(W).tolist()
        self.assertEqual(jacrev(lambda x: Product.apply(x, W))(W).tolist(), diagonal)
        self.assertEqual(vmap(jacrev(lambda x: Product.apply(x, W)))(X).tolist(), [diagonal] * 2)


if __name__ == "__main__":
    harness.main()
