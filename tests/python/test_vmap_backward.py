# SPDX-License-Identifier: MIT
"""Gradients of what was computed under vmap, taken outside of it, and writes through views of slices. The numbers are PyTorch's 2.11 unless it is said."""
import unittest

import harness
import tenon
from tenon.autograd import forward_ad
from tenon.autograd import grad as backward
from tenon.func import grad, jvp, vmap


def tensor(rows):
    return tenon.tensor(rows, dtype=tenon.float64)


# Products with no zero, with one and with two.
X = tensor([[1., 2., 2., 4.], [2., 1.5, 0., 3.], [.7, 0., 1., 0.]])
SCALES = tensor([.5, 1., 2.])
GROUPS = tenon.tensor([0, 0, 1, 1])
PRODUCTS = {
    "prod": (lambda x: x.prod(), [[16., 8., 8., 4.], [0., 0., 9., 0.], [0., 0., 0., 0.]], [68., 9., 0.]),
    "prod of rows": (lambda x: x.view(2, 2).prod(1), [[2., 1., 4., 2.], [1.5, 2., 3., 0.], [0., .7, 0., 1.]],
                     [[5., 14.], [6.5, 3.], [.7, 1.]]),
    "cumprod": (lambda x: x.cumprod(0), [[23., 11., 10., 4.], [2.5, 2., 12., 0.], [1., 1.4, 0., 0.]],
                [[1.5, 5., 14., 68.], [2., 6.5, 3., 9.], [1.35, .7, .7, 0.]]),
    "scatter_reduce": (lambda x: x.scatter_reduce(0, GROUPS, x, "prod"),
                       [[4., 9., 9., 5.], [6., 4., 5.5, 1.], [0., .49, 1., 1.]], None),
}
SECOND = {  # of sin of the gradient of the sum of sines
    "prod": [[-68.3812, -26.3577, -26.3577, -14.2848], [-4.1001, -5.4668, 13.5, -2.7334], [0., .7, 0., .7]],
    "cumprod": [[-7.2344, -15.5991, -14.2344, -5.5235], [6.0234, 7.4339, -2.1291, 2.5316], [-.1249, 2.843, .119, .119]],
    "scatter_reduce": [[2.5088, -8.3472, -8.7658, -4.4469], [3.1425, 7.8453, -1.4732, .9856],
                       [1.2353, 1.9403, -.7216, .8823]],
}


class Near(unittest.TestCase):
    def near(self, got, want, tolerance=1e-12):
        want = want if isinstance(want, tenon.Tensor) else tensor(want)
        self.assertEqual(tuple(got.shape), tuple(want.shape))
        self.assertLessEqual(float((got.detach() - want).abs().max()), tolerance)


class TestVmapBackward(Near):
    def test_formulas_that_would_look_at_elements_do_without(self):
        for name, (f, slopes, moved) in PRODUCTS.items():
            with self.subTest(name):
                x = X.clone().requires_grad_()
                self.near(backward(vmap(f)(x).sum(), x)[0], slopes)
                self.near(grad(lambda y: vmap(f)(y).sum())(X), slopes)
                if moved is not None:
                    self.near(jvp(vmap(f), (X,), (X * .5 + 1,))[1], moved)
                    with forward_ad.dual_level():
                        dual = forward_ad.make_dual(X, X * .5 + 1)
                        self.near(forward_ad.unpack_dual(vmap(f)(dual)).tangent, moved)

    def test_their_gradients_have_gradients(self):
        for name, wanted in SECOND.items():
            with self.subTest(name):
                x = X.clone().requires_grad_()
                first, = backward(vmap(PRODUCTS[name][0])(x).sin().sum(), x, create_graph=True)
                self.near(backward(first.sin().sum(), x)[0], wanted, 1e-4)

    def test_a_gradient_that_is_the_same_for_all_slices_takes_others(self):
        y = tenon.arange(24., dtype=tenon.float64).reshape(2, 3, 4) / 7

        def twice(f, y):
            y = y.clone().requires_grad_()
            first, = backward(f(y).sum(), y, create_graph=True)
            return backward(first.sum(), y)[0]
        for f in (lambda y: tenon.nn.functional.pad(y, (1, 1), mode="reflect").sin().sum(),
                  lambda y: tenon.nn.functional.max_pool1d(y, 2).sin().sum()):
            self.near(twice(vmap(f), y), tenon.stack([twice(f, part) for part in y]))

    def test_a_determinant_of_a_singular_slice_has_its_cofactors(self):
        x = X.clone().requires_grad_()  # by hand: PyTorch's gradient of the singular ones is 0
        made, = backward(vmap(lambda y: tenon.det(y.view(2, 2)))(x).sum(), x)
        self.near(made, [[4., -2., -2., 1.], [3., 0., -1.5, 2.], [0., -1., 0., .7]])

    def test_what_maps_in_maps_share_gets_the_sum_over_both(self):
        x = tensor([1., 3., 2.5, 4.]).requires_grad_()
        made = vmap(lambda k: vmap(tenon.sin)(tenon.stack([x * k, x])))(SCALES)
        self.near(backward((made * made).sum(), x)[0], [2.5443, -2.1202, -4.6245, 3.0032], 1e-4)
        made = vmap(lambda k: vmap(lambda m: x * k * m)(SCALES))(SCALES)
        self.near(backward(made.sum(), x)[0], [12.25] * 4)

    def test_a_pass_leaves_the_gradients_that_it_was_given_alone(self):
        x = X[:2, :3].clone().requires_grad_()
        ones = lambda: tenon.ones(2, 3, dtype=tenon.float64)
        given = [ones(), ones()]
        made = vmap(lambda y: (y.view_as(y), y.view(3)))(x)
        for _ in range(2):
            self.near(backward(made, x, given, retain_graph=True)[0], 2 * ones())
            self.near(given[0], ones())
            self.near(given[1], ones())
        whole = vmap(lambda y: y + y * 1)(x)
        self.near(backward(whole, x, given[0])[0], 2 * ones())
        self.near(given[0], ones())

    def test_sums_of_gradients_that_repeat_one_slice(self):
        x = tensor([.3, .5, .7])
        made = grad(lambda x: vmap(lambda k: grad(lambda a: (tenon.outer(a, a).diagonal() + a * k).sum())(x))(SCALES).sum())(x)
        self.near(made, [6.0] * 3)


class TestVmapWrites(Near):
    def test_writes_through_as_strided_are_written(self):
        y = tenon.arange(18., dtype=tenon.float64).view(2, 3, 3)
        made = vmap(lambda y: (y * 1).fill_diagonal_(5.))(y)
        self.near(made, [[[5., 1., 2.], [3., 5., 5.], [6., 7., 5.]], [[5., 10., 11.], [12., 5., 14.], [15., 16., 5.]]])
        self.near(vmap(vmap(lambda y: (y * 1).fill_diagonal_(5.)))(y[None])[0], made)
        self.near(vmap(grad(lambda y: (y * y).fill_diagonal_(5.).sum()))(y[:1])[0], [[0., 2., 4.], [6., 0., 10.], [12., 14., 0.]])
        self.near(vmap(lambda y: (y * 1)[:, 1:].fill_diagonal_(5.))(y)[0], [[5., 2.], [4., 5.], [7., 8.]])

    def test_writes_through_views_of_numbers_are_written(self):
        def write(y):
            z = y * 1
            z.squeeze(0).mul_(3)
            z.transpose(0, 0).add_(1)
            return z
        self.near(vmap(write)(tensor([0., 1., 2.])), [1., 4., 7.])

        def as_integers(y):
            z = y.float()
            z.view(tenon.int32).zero_()
            return z.double()
        self.near(vmap(as_integers)(X), tenon.zeros_like(X))

    def test_as_strided_of_slices(self):
        y = tenon.arange(9., dtype=tenon.float64).view(3, 3)
        f = lambda y: y.as_strided((2,), (2,))
        self.near(vmap(f)(y), [[0., 2.], [3., 5.], [6., 8.]])
        self.near(grad(lambda x: vmap(f)(x).sin().sum())(y), tenon.cos(y) * tensor([1., 0., 1.]))
        self.near(jvp(vmap(lambda y: f(y).sin()), (y,), (y,))[1], (y * tenon.cos(y))[:, ::2])
        self.near(vmap(lambda y: y[1:].as_strided((2,), (1,)))(y), y[:, 1:])
        for start, offset in ((0, 2), (1, 0), (1, 2)):
            with self.assertRaisesRegex(RuntimeError, "not supported inside of vmap"):
                vmap(lambda y: y[start:].as_strided((2,), (1,), offset))(y)

    def test_gradients_of_writes_through_views_of_strided_memory(self):
        x = tensor([[.3, -.2], [.1, .7]])
        for strides, want in (((1, 2), [[.0108, 0., .0216, 0.], [0., .48, 0., 0.], [.0216, 0., .075, .0056], [0., 0., .0056, 5.8802]]),
                              ((5, 2), [[.0108, 0., .0216, 0.], [0., .2352, 0., -.0448], [.0216, 0., .1362, 0.],
                                        [0., -.0448, 0., 5.8832]])):

            def written(x):
                z = tenon.empty_strided((2, 2), strides, dtype=tenon.float64).copy_((x * x).t() if strides == (1, 2) else x * x)
                z[0].mul_(x[1])
                return (z * z).sum()
            self.near(tenon.func.hessian(written)(x).reshape(4, 4), want)
            at = x.clone().requires_grad_()
            first, = backward(written(at), at, create_graph=True)
            made = vmap(lambda g: backward(first, at, g, retain_graph=True)[0])(tenon.eye(4, dtype=tenon.float64).view(4, 2, 2))
            self.near(made.reshape(4, 4), want)
        part = vmap(lambda x: x.new_empty_strided((2, 3), (4, 1)))(x)
        self.assertEqual((tuple(part.shape), part.stride()), ((2, 2, 3), (7, 4, 1)))

    def test_index_add_of_slices(self):
        y = tenon.arange(6., dtype=tenon.float64).view(2, 3)
        rows = tenon.tensor([0, 2, 2])
        self.near(vmap(lambda y: y.index_add(0, rows, y))(y), [[0., 1., 5.], [6., 4., 14.]])
        self.near(vmap(lambda y: y[:, None].index_add(0, rows, y[:, None], alpha=2))(y)[..., 0], [[0., 1., 8.], [9., 4., 23.]])


if __name__ == "__main__":
    harness.main()
