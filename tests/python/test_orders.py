# SPDX-License-Identifier: MIT
"""Derivatives of high order and in both modes, beside difference quotients of the derivative one order lower; gradients where
a formula by an inverse has no answer; and what cannot be differentiated again, which fails there and not before."""
import math
import unittest

import harness
import tenon
import tenon.nn.functional as F
from tenon.autograd import forward_ad


def numbers(*sizes, seed=1):
    """Values in [-1, 1] that no two of are equal, of no generator."""
    count = math.prod(sizes)
    made = [math.sin(1.7 * k * k + 0.9 * seed + 0.3) for k in range(count)]
    return tenon.tensor(made, dtype=tenon.float64).reshape(sizes)


def complexes(*sizes, seed=1):
    return tenon.complex(numbers(*sizes, seed=seed), numbers(*sizes, seed=seed + 7))


def inner(a, b):
    """The real part of the sum of products."""
    return (tenon.view_as_real(a) * tenon.view_as_real(b)).sum() if a.is_complex() else (a * b).sum()


def like(x, seed):
    return (complexes if x.is_complex() else numbers)(*x.shape, seed=seed)


def lower(function, inputs, seed):
    """A number that is linear in the gradients of `function`, which has one number as result; recorded."""
    inputs = [x if x.requires_grad else x.detach().requires_grad_() for x in inputs]
    grads = tenon.autograd.grad(function(*inputs), inputs, create_graph=True, allow_unused=True)
    return sum(inner(g, like(g, seed + i)) for i, g in enumerate(grads) if g is not None)


def quotient(function, inputs, along):
    step = 1e-5
    ahead = function(*(x + step * t for x, t in zip(inputs, along)))
    behind = function(*(x - step * t for x, t in zip(inputs, along)))
    return float(ahead.detach() - behind.detach()) / (2 * step)


class Orders(unittest.TestCase):
    def check(self, call, *inputs, orders=3):
        def first(*xs):
            made = call(*xs)
            return inner(made, like(made, 3))

        along = [like(x, 11 + i) for i, x in enumerate(inputs)]
        function = first
        for order in range(1, orders + 1):
            leaves = [x.clone().requires_grad_() for x in inputs]
            grads = tenon.autograd.grad(function(*leaves), leaves, allow_unused=True)
            found = float(sum(inner(g, t) for g, t in zip(grads, along) if g is not None))
            self.near(found, quotient(function, inputs, along), "order %d" % order)
            before, seed = function, 20 * order
            function = lambda *xs, before=before, seed=seed: lower(before, xs, seed)

        def tangent(*xs):
            with forward_ad.dual_level():
                return forward_ad.unpack_dual(first(*(forward_ad.make_dual(x, t) for x, t in zip(xs, along)))).tangent

        self.near(float(tangent(*inputs)), quotient(first, inputs, along), "tangent")
        leaves = [x.clone().requires_grad_() for x in inputs]
        grads = tenon.autograd.grad(tangent(*leaves), leaves, allow_unused=True)
        found = float(sum(inner(g, t) for g, t in zip(grads, along) if g is not None))
        self.near(found, quotient(tangent, inputs, along), "gradient of the tangent")

    def near(self, a, b, what):
        self.assertLessEqual(abs(a - b), 2e-4 * (1 + abs(a) + abs(b)), "%s: %g is not %g" % (what, a, b))

    def test_products_of_complex_numbers_at_an_index(self):
        index = tenon.tensor([[0, 1, 1, 2]] * 3)
        tenon.manual_seed(0)
        x, y = (tenon.randn(3, 4, dtype=tenon.complex128, requires_grad=True) for _ in range(2))
        for reduce in ("sum", "prod", "mean"):
            def reduced(x, y):
                return x.scatter_reduce(0, index, y, reduce)
            self.assertTrue(tenon.autograd.gradcheck(reduced, (x, y), check_forward_ad=True), reduce)
            self.assertTrue(tenon.autograd.gradgradcheck(reduced, (x, y)), reduce)

    def test_norms_follow_their_input_in_every_order(self):
        x, w, b = numbers(3, 4), numbers(4, seed=5), numbers(4, seed=6)
        self.check(lambda x: F.layer_norm(x, [4]), x)
        self.check(lambda x, w, b: F.layer_norm(x, [4], w, b), x, w, b)
        self.check(lambda x: F.batch_norm(x, None, None, training=True), x)
        self.check(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), x, w, b)
        self.check(lambda x, w, b: F.group_norm(x, 2, w, b), numbers(2, 4, 3), w, b)
        self.check(lambda x: F.instance_norm(x), numbers(2, 2, 4))

    def test_running_sums_of_exponentials(self):
        self.check(lambda x: tenon.logcumsumexp(x, 1), numbers(2, 4))
        self.check(lambda x: tenon.logcumsumexp(x, 0), complexes(4))
        self.check(lambda x: tenon.logcumsumexp(x, 0), numbers(1030) * 3, orders=2)
        x, t = numbers(2, 4), numbers(2, 4, seed=5)
        step = 1e-6
        wanted = (tenon.logcumsumexp(x + step * t, 1) - tenon.logcumsumexp(x - step * t, 1)) / (2 * step)
        for jvp in (tenon.autograd.functional.jvp, lambda f, x, t: tenon.func.jvp(f, (x,), (t,))):
            found = jvp(lambda x: tenon.logcumsumexp(x, 1), x, t)[1]
            self.assertTrue(tenon.allclose(found, wanted, rtol=1e-6), found)
        self.assertEqual(tenon.autograd.functional.jvp(lambda x: tenon.logcumsumexp(x, 1), x, t * 0)[1].tolist(), [[0] * 4] * 2)

    def test_distances(self):
        x, y = numbers(3, 2), numbers(2, 2, seed=4)
        for p in (0.0, 0.7, 1.0, 1.5, 2.0, 3.0, math.inf):
            self.check(lambda x, y: tenon.cdist(x, y, p) ** 2, x, y)
            self.check(lambda x, y: tenon.cdist(x, y, p) ** 2, numbers(2, 1, 3, 2), numbers(3, 2, 2, seed=4))
            self.check(lambda x: tenon.pdist(x, p) ** 2, x)

    def test_distances_of_equal_rows(self):
        """The slope there is taken as 0, with all that follows from it."""
        for p in (0.5, 1.5, 2.0, 3.0):
            x = tenon.tensor([[1.0, 2], [1, 2], [1, 3]], dtype=tenon.float64, requires_grad=True)
            for made in (tenon.cdist(x, x.detach(), p), tenon.pdist(x, p)):
                grad, = tenon.autograd.grad(made.sum(), x, create_graph=True)
                second, = tenon.autograd.grad((grad * grad).sum(), x, create_graph=True)
                third, = tenon.autograd.grad((second * second).sum() + second.sum(), x)
                self.assertTrue((grad.isfinite() & second.isfinite() & third.isfinite()).all())

    def test_the_gradient_of_distances_as_an_operator(self):
        x, y, seed = numbers(3, 2), numbers(2, 2, seed=3), numbers(3, 2, seed=6)
        for p in (1.5, 2.0, 3.0):
            self.check(lambda g, x, y: tenon.ops.aten._cdist_backward(g, x, y, p, tenon.cdist(x, y, p)), seed, x, y)
            self.check(lambda g, x: tenon.ops.aten._pdist_backward(g, x, p, tenon.pdist(x, p)), numbers(3, seed=6), x)

    def test_samples_of_a_grid(self):
        """Inside, across the border and far outside, for each mode, padding and meaning of the corners."""
        for n, modes in ((2, ("bilinear", "nearest", "bicubic")), (3, ("bilinear", "nearest"))):
            image, grid = numbers(2, 2, 3, 4, 2)[..., 0] if n == 2 else numbers(1, 2, 3, 2, 3), numbers(2 if n == 2 else 1, *[2] * n, n, seed=3) * 1.7
            for mode in modes:
                for padding in ("zeros", "border", "reflection"):
                    for align in (False, True):
                        with self.subTest(n=n, mode=mode, padding=padding, align=align):
                            call = lambda a, b: F.grid_sample(a, b, mode=mode, padding_mode=padding, align_corners=align)
                            self.check(lambda a, b: call(a, b) ** 2, image, grid)
                            self.check(lambda a: call(a, grid) ** 2, image)
                            self.check(lambda b: call(image, b) ** 2, grid)
                            # The gradient that can be differentiated is the gradient, to the bit.
                            x, y = image.clone().requires_grad_(), grid.clone().requires_grad_()
                            made = call(x, y)
                            seed = like(made, 5).requires_grad_()
                            for one, other in zip(tenon.autograd.grad(made, (x, y), seed, retain_graph=True),
                                                  tenon.autograd.grad(made, (x, y), seed, create_graph=True)):
                                self.assertTrue(tenon.equal(one, other))

    def test_places_of_a_grid_that_are_none(self):
        """No NaN in derivatives of the others, of any order. Where nothing is there, there are none; where a sample is NaN, as
        PyTorch's is, so is the derivative by its own place."""
        image = numbers(1, 1, 3, 3).requires_grad_()
        for mode in ("bilinear", "nearest", "bicubic"):
            for padding in ("zeros", "border", "reflection"):
                grid = tenon.tensor([[[0.2, 0.3], [math.nan, 0.1], [math.inf, 0.1], [0.1, -math.inf], [1e30, 0.2]]], dtype=tenon.float64)
                grid = grid[None].requires_grad_()
                made = F.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=False)
                some = tenon.isfinite(made)[0, 0, 0]
                own = mode == "bicubic" or (mode, padding) == ("bilinear", "zeros")
                self.assertEqual(some.tolist(), [True, not own, not own, not own, True])
                loss, orders = (made[..., some] ** 2).sum(), []
                for create_graph in (True, True, False):
                    by_image, by_grid = tenon.autograd.grad(loss, (image, grid), create_graph=create_graph)
                    orders += [by_image, by_grid[:, :, some]]
                    loss = sum((g * g).sum() for g in orders[-2:])
                for g in orders:
                    self.assertTrue(tenon.isfinite(g).all(), (mode, padding, g))

    def test_samples_of_a_grid_in_few_digits(self):
        for dtype in (tenon.float32, tenon.bfloat16):
            wanted = found = None
            for one in (tenon.float64, dtype):
                x = numbers(1, 2, 3, 3).to(dtype).to(one).requires_grad_()
                y = (numbers(1, 2, 2, 2, seed=3) * 0.6).to(dtype).to(one).requires_grad_()
                grads = tenon.autograd.grad((F.grid_sample(x, y, align_corners=False) ** 2).sum(), (x, y), create_graph=True)
                found = tenon.autograd.grad(sum((g * g).sum() for g in grads), (x, y))
                self.assertEqual([g.dtype for g in found], [one] * 2)
                wanted = wanted or found
            for one, other in zip(found, wanted):
                bound = float(other.abs().max()) * (1e-5 if dtype == tenon.float32 else 0.1)
                self.assertLess(float((one.double() - other).abs().max()), bound)

    def test_alignments(self):
        """Repeated labels, sequences and targets of several lengths, targets in rows and in a row, another blank."""
        scores, rows = numbers(6, 3, 4), tenon.tensor([[1, 2, 2], [3, 3, -9], [1, -9, -9]])
        line = tenon.tensor([1, 2, 2, 3, 3, 1])
        for targets in (rows, rows.int(), line):
            for lengths in (([6, 4, 3], [3, 2, 1]), (tenon.tensor([6, 4, 3]), tenon.tensor([3, 2, 1]))):
                self.check(lambda x: F.ctc_loss(x.log_softmax(2), targets, *lengths, reduction="none"), scores)
        self.check(lambda x: F.ctc_loss(x.log_softmax(2), rows - 1, [6, 4, 3], [2, 1, 1], blank=3), scores)
        self.check(lambda x: F.ctc_loss(x.log_softmax(1), tenon.tensor([2, 1]), [6], [2], reduction="sum"), scores[:, 0])
        self.check(lambda x: F.ctc_loss(x.log_softmax(2), rows, [6, 4, 1], [0, 2, 0], reduction="none"), scores)
        self.check(lambda x: F.ctc_loss(x.log_softmax(2), rows[:, :0], [6, 4, 1], [0, 0, 0], reduction="none"), scores)

    def test_alignments_that_are_not_likely(self):
        """Numbers whose exponentials are 0, labels that are ruled out, and a target that no alignment has."""
        targets = tenon.tensor([[1, 2], [1, 1], [2, 1]])
        for dtype in (tenon.float64, tenon.float32):
            x = (numbers(4, 3, 4) * 2000).to(dtype)
            x[1, 0, 3] = x[2, 0, 2] = -math.inf
            x.requires_grad_()
            loss = F.ctc_loss(x.log_softmax(2), targets, [4, 2, 4], [2, 2, 2], reduction="none")
            self.assertEqual(loss.isinf().tolist(), [False, True, False])
            grad, = tenon.autograd.grad(loss[0] + loss[2], x, create_graph=True)
            second, = tenon.autograd.grad((grad * grad).sum() + grad.sum(), x, create_graph=True)
            third, = tenon.autograd.grad((second * second).sum() + (second * like(second, 3)).sum(), x)
            for g in (grad, second, third):
                self.assertTrue(g.isfinite().all(), g)
        # Far from certain, where single steps are certain enough to underflow: as many digits as in double.
        found = []
        for dtype in (tenon.float64, tenon.float32):
            x = (numbers(40, 3, 4) * 30).to(tenon.float32).to(dtype).requires_grad_()
            loss = F.ctc_loss(x.log_softmax(2), targets, [40] * 3, [2] * 3)
            grad, = tenon.autograd.grad(loss, x, create_graph=True)
            found.append(tenon.autograd.grad((grad * numbers(40, 3, 4, seed=5).to(dtype)).sum(), x)[0].double())
        self.assertLess(float((found[0] - found[1]).abs().max()), 1e-4 * float(found[0].abs().max()))

    def test_the_gradient_of_alignments_is_the_one_that_can_be_differentiated(self):
        logs = numbers(5, 2, 4).log_softmax(2).requires_grad_()
        loss = F.ctc_loss(logs, tenon.tensor([[1, 2], [1, 3]]), [5, 5], [2, 2])
        plain, = tenon.autograd.grad(loss, logs, retain_graph=True)
        self.assertTrue(tenon.equal(plain, tenon.autograd.grad(loss, logs, create_graph=True)[0]))

    def test_products_with_zeros(self):
        at = tenon.tensor([[1, 1, 0, 1], [0, 0, 0, 2]])
        src = tenon.tensor([[0.0, 0.0, 0.4, 0.9], [0.0, 0.3, 0.0, 0.0]], dtype=tenon.float64)
        for include in (True, False):
            self.check(lambda x, y: x.scatter_reduce(1, at, y, "prod", include_self=include), numbers(2, 3), src)
            self.check(lambda x, y: x.scatter_reduce(0, at.T, y, "prod", include_self=include), tenon.zeros(3, 2, dtype=src.dtype), src.T)

    def test_embeddings_by_frequency(self):
        at = tenon.tensor([[1, 2, 1], [1, 0, 3]])
        self.check(lambda g: tenon.ops.aten.embedding_dense_backward(g, at, 5, 3, True) ** 2, numbers(2, 3, 2))
        w, g = numbers(5, 2).requires_grad_(), numbers(2, 3, 2, seed=4).requires_grad_()
        grad, = tenon.autograd.grad(F.embedding(at, w, scale_grad_by_freq=True), w, g, create_graph=True)
        back, = tenon.autograd.grad(grad, g, w.detach())
        counts = tenon.tensor([1.0, 3, 1, 1, 1], dtype=w.dtype)
        self.assertTrue(tenon.allclose(back, (w.detach() / counts[:, None])[at]))

    def test_bags_of_embeddings(self):
        at, starts = tenon.tensor([1, 2, 1, 0, 3, 1]), tenon.tensor([0, 2, 2, 5])
        w, scale = numbers(5, 2), numbers(6, seed=4)
        for mode in ("sum", "mean", "max"):
            for padding in (None, 1):
                self.check(lambda w: F.embedding_bag(at, w, starts, mode=mode, padding_idx=padding) ** 2, w)
        self.check(lambda w, s: F.embedding_bag(at, w, starts, mode="sum", per_sample_weights=s) ** 2, w, scale)

    def test_tangents_of_gradients_where_tangents_are_gradients_of_gradients(self):
        rows = numbers(3, 3, seed=5)
        halves = tenon.tensor([0, 0, 1])
        for f in (lambda x: x.cumprod(0), lambda x: tenon.cdist(x.reshape(1, 3), rows, p=3.), tenon.vander,
                  lambda x: tenon.ones(2, dtype=x.dtype).scatter_reduce(0, halves, x, "prod"),
                  lambda x: tenon.ones(2, dtype=x.dtype).index_reduce(0, halves, x, "prod"),
                  lambda x: F.layer_norm(x.reshape(1, 3), (3,)) * x.exp(),
                  lambda x: F.conv1d(x.reshape(1, 1, 3), x.reshape(1, 1, 3)[..., :2]) ** 2):
            def slope(x, **options):
                return tenon.autograd.grad(f(x).sum(), x, **options)[0]

            leaf, along = (numbers(3) + 2).requires_grad_(), numbers(3, seed=3)
            wanted, = tenon.autograd.grad(slope(leaf, create_graph=True), leaf, along)
            for options in ({}, {"create_graph": True}):
                with forward_ad.dual_level():  # the Hessian is its own transpose
                    made = forward_ad.unpack_dual(slope(forward_ad.make_dual(leaf, along), **options)).tangent
                self.assertTrue(tenon.allclose(made, wanted))
            nested = tenon.func.jacfwd(tenon.func.jacfwd(lambda x: f(x).sum()))(leaf.detach())
            self.assertTrue(tenon.allclose(nested @ along, wanted))

    def test_a_factor_that_is_dual_and_one_that_is_recorded(self):
        x, w, along = numbers(1, 1, 4).requires_grad_(), numbers(1, 1, 2, seed=2), numbers(1, 1, 2, seed=3)
        with forward_ad.dual_level():
            grad, = tenon.autograd.grad(F.conv1d(x, forward_ad.make_dual(w, along)).square().sum(), x)
            made = forward_ad.unpack_dual(grad).tangent
        step = 1e-6
        ends = [tenon.autograd.grad(F.conv1d(x, w + h * along).square().sum(), x)[0] for h in (step, -step)]
        self.assertTrue(tenon.allclose(made, (ends[0] - ends[1]) / (2 * step), atol=1e-7))

    def test_quotients_with_a_hole_at_zero(self):
        def derivatives(f, at, n):
            x = tenon.tensor(at, dtype=tenon.float64, requires_grad=True)
            made = [f(x)]
            for _ in range(n):
                made.append(tenon.autograd.grad(made[-1], x, create_graph=True)[0])
            return [float(y) for y in made[1:]]

        def near(made, wanted):
            for a, b in zip(made, wanted):
                self.assertAlmostEqual(a, b, delta=1e-7 * max(1., abs(b)))

        pi = math.pi
        for at in (0., 1e-30, -1e-9, 1e-6):
            near(derivatives(tenon.special.i1, at, 5), [1 / 2, 3 / 8 * at, 3 / 8, 5 / 16 * at, 5 / 16])
            near(derivatives(tenon.sinc, at, 4), [-pi ** 2 / 3 * at, -pi ** 2 / 3, pi ** 4 / 5 * at, pi ** 4 / 5])
        near(derivatives(tenon.special.i1e, 0., 3), [1 / 2, 0., 3 / 8])  # the slope of abs at 0 counts as 0
        near(derivatives(tenon.special.i1e, 1e-12, 3), [1 / 2, -1., 15 / 8])
        around = tenon.tensor([-3., -.26, -.24, -.126, -.124, 0.01, .2, .3, 2.], dtype=tenon.float64, requires_grad=True)
        for f in (tenon.special.i1, tenon.special.i1e, tenon.sinc):
            self.assertTrue(tenon.autograd.gradcheck(f, around, check_forward_ad=True))
            self.assertTrue(tenon.autograd.gradgradcheck(f, around))
        far = tenon.tensor([1e10, -1e7, 300.], requires_grad=True)
        for f in (tenon.special.i1e, tenon.sinc):  # where powers of what is far away overflow
            grad, = tenon.autograd.grad(f(far).sum(), far, create_graph=True)
            self.assertTrue(tenon.autograd.grad(grad.sum(), far)[0].isfinite().all())
        corner = tenon.tensor([0, .1 + .05j, 1e-8j, .2 + .3j], dtype=tenon.complex128, requires_grad=True)
        self.assertTrue(tenon.autograd.gradcheck(tenon.sinc, corner) and tenon.autograd.gradgradcheck(tenon.sinc, corner))

    def test_the_logarithm_of_the_normal_distribution_far_out(self):
        for dtype, rounding in ((tenon.float32, 1e-3), (tenon.float64, 1e-9)):
            x = tenon.tensor([14., 40., 1e30, 10., 1., -1., -10.], dtype=dtype, requires_grad=True)
            grad, = tenon.autograd.grad(tenon.special.log_ndtr(x).sum(), x, create_graph=True)
            second, = tenon.autograd.grad(grad.sum(), x)
            self.assertTrue(tenon.allclose(second, -grad * (x + grad), atol=rounding))
            self.assertEqual(second[1:3].tolist(), [0., 0.])

    def test_incomplete_gamma_functions(self):
        a, x = numbers(4).abs() + 0.4, numbers(4, seed=3).abs() + 0.3
        for scale in (1, 20):
            self.check(tenon.special.gammainc, a * scale, x * scale)
            self.check(tenon.special.gammaincc, a * scale, x * scale)
        self.check(lambda x: tenon.special.zeta(a + 2, x), x)
        with forward_ad.dual_level(), self.assertRaisesRegex(RuntimeError, "with respect to argument 'self'"):
            tenon.special.zeta(forward_ad.make_dual(a + 2, a), x)
        a = a.detach().requires_grad_()
        tenon.special.gammainc(a, tenon.tensor([0.0, 1, 2, 1e5], dtype=tenon.float32)).sum().backward()
        self.assertTrue(a.grad.isfinite().all())

    def test_factors_and_systems(self):
        la, x, y = tenon.linalg, numbers(3, 3), numbers(3, 2, seed=4)
        for upper in (True, False):
            for one in (True, False):
                self.check(lambda a, b: la.solve_triangular(a + 2 * tenon.eye(3, dtype=a.dtype), b, upper=upper, unitriangular=one), x, y)
        for a in (x, numbers(4, 2), numbers(2, 4), complexes(3, 3), complexes(2, 3), complexes(4, 2), numbers(2, 3, 2)):
            self.check(lambda a: la.qr(a)[1], a, orders=2)
            self.check(lambda a: la.qr(a)[0], a, orders=2)
            self.check(lambda a: la.lu_factor(a)[0], a, orders=2)
            self.check(lambda a: la.pinv(a), a, orders=2)
        self.check(lambda a, b: la.lstsq(a, b)[0], numbers(4, 2), numbers(4, 2, seed=9), orders=2)
        self.check(lambda a, b: tenon.cholesky_solve(b, a.tril() + 3 * tenon.eye(3, dtype=a.dtype)), x, y, orders=2)
        self.check(lambda a, b: la.lu_solve(*la.lu_factor(a), b), x, y, orders=2)
        self.check(lambda a: la.eigvalsh(a + a.mT), x)

    def test_complex_convolutions(self):
        self.check(lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1, groups=2), complexes(1, 4, 4), complexes(2, 2, 2), complexes(2))
        self.check(lambda x, w: F.conv2d(x, w, dilation=2), complexes(1, 1, 3, 3), complexes(1, 1, 2, 2))
        self.check(lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1), complexes(1, 2, 2, 1), complexes(2, 1, 2, 2))
        self.check(lambda x, w: F.conv3d(x, w), complexes(1, 1, 2, 2, 2), complexes(1, 1, 1, 2, 1))


class Determinants(unittest.TestCase):
    """Of matrices without an inverse: cofactors."""

    def test_gradients_and_tangents(self):
        for rows, cofactors in (([[1, 2], [2, 4]], [[4, -2], [-2, 1]]), ([[0]], [[1]]), ([[0, 0], [0, 0]], [[0, 0], [0, 0]]),
                                ([[1, 2, 3], [4, 5, 6], [5, 7, 9]], [[3, -6, 3], [3, -6, 3], [-3, 6, -3]])):
            for dtype in (tenon.float64, tenon.complex128):
                x = tenon.tensor(rows, dtype=dtype, requires_grad=True)
                wanted = tenon.tensor(cofactors, dtype=dtype)
                det = tenon.linalg.det(x)
                grad, = tenon.autograd.grad(det.real if det.is_complex() else det, x)
                self.assertTrue(tenon.allclose(grad, wanted), grad)
                with forward_ad.dual_level():
                    t = like(x.detach(), 4)
                    found = forward_ad.unpack_dual(tenon.linalg.det(forward_ad.make_dual(x.detach(), t))).tangent
                self.assertTrue(tenon.allclose(found, (wanted * t).sum()), found)

    def test_second_derivatives(self):
        x = tenon.zeros(2, 2, dtype=tenon.float64, requires_grad=True)
        grad, = tenon.autograd.grad(tenon.det(x), x, create_graph=True)
        second, = tenon.autograd.grad(grad[0, 0], x)
        self.assertEqual(second.tolist(), [[0, 0], [0, 1]])

    def test_of_many_rows(self):
        values = tenon.arange(1.0, 41.0, dtype=tenon.float64) / 20
        values[3] = 0
        x = tenon.diag(values).requires_grad_()
        grad, = tenon.autograd.grad(tenon.det(x), x)
        wanted = tenon.zeros(40, 40, dtype=tenon.float64)
        wanted[3, 3] = math.prod(v for v in values.tolist() if v)
        self.assertTrue(tenon.allclose(grad, wanted))

    def test_one_of_a_batch(self):
        x = tenon.tensor([[[1.0, 2], [2, 4]], [[1, 2], [3, 5]]], requires_grad=True)
        grad, = tenon.autograd.grad(tenon.det(x).sum(), x)
        self.assertEqual(grad.tolist(), [[[4, -2], [-2, 1]], [[5, -3], [-2, 1]]])

    def test_a_logarithm_is_refused_where_it_is_differentiated_again(self):
        x = tenon.tensor([[1.0, 2], [2, 4]], requires_grad=True)
        with self.assertRaisesRegex(RuntimeError, "torch.linalg.solve: The solver failed because the input matrix is singular."):
            tenon.autograd.grad(tenon.linalg.slogdet(x)[1], x, create_graph=True)


class Phases(unittest.TestCase):
    """Complex vectors may be turned: what turns with them has no gradient."""

    def test_a_result_that_turns_with_its_vectors_is_refused(self):
        x, la = complexes(3, 3).requires_grad_(), tenon.linalg
        for name, vectors in (("linalg_eig_backward", lambda: la.eig(x)[1]), ("linalg_eigh_backward", lambda: la.eigh(x + x.mH)[1]),
                              ("svd_backward", lambda: la.svd(x)[0])):
            tenon.autograd.grad((vectors().abs() ** 2 * numbers(3, 3)).sum(), x)
            with self.assertRaisesRegex(RuntimeError, name + ": The .* in the complex case are specified up to multiplication by"):
                tenon.autograd.grad((vectors().real * numbers(3, 3)).sum(), x)


class Holes(unittest.TestCase):
    def test_the_tangent_of_a_number_that_does_not_count(self):
        x = tenon.tensor([1.0, math.nan, 2.0])
        for t in (tenon.tensor([3.0, math.nan, 4.0]), tenon.tensor([3.0, 5.0, 4.0])):
            with forward_ad.dual_level():
                self.assertEqual(float(forward_ad.unpack_dual(forward_ad.make_dual(x, t).nansum()).tangent), 7.0)


class Names(unittest.TestCase):
    def test_cdist_takes_its_mode_by_name(self):
        x = numbers(3, 2)
        for mode in ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
            self.assertTrue(tenon.allclose(tenon.cdist(x, x, 2.0, mode), (x[:, None] - x).norm(dim=2)))
        with self.assertRaisesRegex(ValueError, "fast is not a valid value for compute_mode"):
            tenon.cdist(x, x, compute_mode="fast")


class Places(unittest.TestCase):
    def test_a_tensor_that_is_made_to_lie_otherwise_takes_its_tangent_along(self):
        with forward_ad.dual_level():
            base = forward_ad.make_dual(tenon.arange(6.0), tenon.arange(6.0) * 10)
            x = (base * 1)[1:]
            x.as_strided_((2, 2), (2, 1), 1)
            found = forward_ad.unpack_dual(x)
            self.assertEqual(found.primal.tolist(), [[1, 2], [3, 4]])
            self.assertEqual(found.tangent.tolist(), [[10, 20], [30, 40]])
            x.mul_(2)
            self.assertEqual(forward_ad.unpack_dual(x).tangent.tolist(), [[20, 40], [60, 80]])


class RandomNumbers(unittest.TestCase):
    def test_samples_move_to_any_order(self):
        """A sample keeps its place in its distribution: its derivatives are those of the inverse of the distribution function."""
        def quantile(a, u):
            low, high = 0.0, 100.0
            for _ in range(200):
                middle = (low + high) / 2
                low, high = (middle, high) if float(tenon.special.gammainc(tenon.tensor(a, dtype=tenon.float64), tenon.tensor(middle, dtype=tenon.float64))) < u else (low, middle)
            return low

        for a in (0.7, 2.5, 14.0):
            tenon.manual_seed(5)
            leaf = tenon.tensor(a, dtype=tenon.float64, requires_grad=True)
            x = tenon._standard_gamma(leaf)
            first, = tenon.autograd.grad(x, leaf, create_graph=True)
            second, = tenon.autograd.grad(first, leaf, create_graph=True)
            third, = tenon.autograd.grad(second, leaf)
            u, h = float(tenon.special.gammainc(leaf, x).detach()), 0.02 * a
            q = [quantile(a + k * h, u) for k in (-3, -2, -1, 0, 1, 2, 3)]
            wanted = ((-q[0] + 9 * q[1] - 45 * q[2] + 45 * q[4] - 9 * q[5] + q[6]) / (60 * h),
                      (2 * q[0] - 27 * q[1] + 270 * q[2] - 490 * q[3] + 270 * q[4] - 27 * q[5] + 2 * q[6]) / (180 * h * h),
                      (q[0] - 8 * q[1] + 13 * q[2] - 13 * q[4] + 8 * q[5] - q[6]) / (8 * h ** 3))
            for found, one in zip((first, second, third), wanted):
                self.assertLess(abs(float(found) - one), 1e-4 * (abs(one) + 0.01), (a, float(found), one))

    def test_samples_of_few_digits_and_of_none(self):
        a = tenon.tensor([0.5, 3.0], requires_grad=True)
        x = tenon._standard_gamma(a)
        grad, = tenon.autograd.grad(x.sum(), a, create_graph=True)
        self.assertTrue(tenon.autograd.grad(grad.sum(), a)[0].isfinite().all())
        for made in (tenon.ops.aten._standard_gamma_grad(a, tenon.tensor([0.0, 2.0])),
                     tenon.ops.aten._dirichlet_grad(tenon.tensor([0.0, 1.0]), a, a + 1)):
            self.assertTrue(tenon.autograd.grad(made.sum(), a, create_graph=True)[0].isfinite().all())
        none = tenon.zeros(0, requires_grad=True)
        made = tenon.ops.aten._dirichlet_grad(none, none, none)
        self.assertEqual(tenon.autograd.grad(made.sum(), none)[0].shape, (0,))

    def test_the_slopes_of_samples(self):
        check = Orders("check").check
        a, x = numbers(6).abs() * 30 + 0.2, numbers(6, seed=4).abs() * 30 + 0.1
        check(tenon.ops.aten._standard_gamma_grad, a, a * (0.5 + numbers(6, seed=9).abs()))
        a, b = numbers(6).abs() * 9 + 0.3, numbers(6, seed=4).abs() * 9 + 0.3
        x = (a / (a + b)) ** (0.7 + 0.5 * numbers(6, seed=5).abs())
        check(lambda x, a, t: tenon.ops.aten._dirichlet_grad(x, a, t), x, a, a + b)

    def test_points_of_a_simplex_have_a_tangent_that_goes_with_their_gradient(self):
        a, t = numbers(3, 4).abs() + 0.5, numbers(3, 4, seed=5)
        leaf = a.clone().requires_grad_()
        tenon.manual_seed(3)
        x = tenon._sample_dirichlet(leaf)
        seed = numbers(3, 4, seed=8)
        grad, = tenon.autograd.grad(x, leaf, seed)
        tenon.manual_seed(3)
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(tenon._sample_dirichlet(forward_ad.make_dual(a, t))).tangent
        self.assertTrue(tenon.allclose((tangent * seed).sum(), (grad * t).sum()))
        self.assertLess(float(tangent.sum(1).abs().max()), 1e-9)

    def test_normal_numbers_have_a_gradient_of_zero(self):
        mean, std = tenon.zeros(3, requires_grad=True), tenon.ones(3, requires_grad=True)
        for made, wanted in ((tenon.normal(mean, 1.0), (True, False)), (tenon.normal(0.0, std), (False, True)),
                             (tenon.normal(mean, std), (True, True))):
            self.assertTrue(made.requires_grad)
            for grad, has in zip(tenon.autograd.grad(made.sum(), (mean, std), allow_unused=True), wanted):
                self.assertEqual(None if grad is None else grad.tolist(), [0, 0, 0] if has else None)


if __name__ == "__main__":
    harness.main()
