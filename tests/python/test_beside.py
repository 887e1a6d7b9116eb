# SPDX-License-Identifier: MIT
"""What compare_operators.py found beside PyTorch once: layouts, defaults and gradients that a script can see.
Strides and numbers are PyTorch 2.11's."""

import unittest

import harness
import tenon


def strides(results):
    return [t.stride() for t in (results if isinstance(results, tuple) else (results,))]


class Layouts(unittest.TestCase):
    def setUp(self):
        self.square = tenon.tensor([[4., 1., 0.], [1., 3., 1.], [0., 1., 2.]])
        self.tall = tenon.arange(10.).reshape(5, 2).sin()

    def test_factors_are_stored_by_columns(self):
        for found in (tenon.linalg.inv(self.square), tenon.linalg.cholesky(self.square), tenon.linalg.lu_factor(self.square)[0],
                      tenon.linalg.eigh(self.square)[1], tenon.linalg.solve(self.square, self.square)):
            self.assertEqual(found.stride(), (1, 3))
        self.assertEqual(strides(tenon.linalg.qr(self.tall)), [(1, 5), (1, 2)])
        self.assertEqual(strides(tenon.linalg.svd(self.tall)), [(1, 5), (1,), (1, 2)])
        self.assertEqual(strides(tenon.linalg.lu(self.tall)), [(5, 1), (2, 1), (2, 1)])
        self.assertEqual(tenon.linalg.lstsq(self.tall, self.tall).solution.stride(), (1, 5))
        batch = tenon.stack([self.square, self.square])
        self.assertEqual(tenon.linalg.inv(batch).stride(), (9, 1, 3))
        self.assertEqual(tenon.linalg.solve(batch, tenon.ones(2, 3)).stride(), (1, 2))
        self.assertEqual(tenon.linalg.solve(self.square, tenon.ones(2, 3), left=False).stride(), (3, 1))
        self.assertEqual(tenon.linalg.solve_triangular(self.square, tenon.ones(2, 3), upper=True, left=False).stride(), (1, 2))

    def test_a_result_that_is_given_keeps_its_strides_and_one_that_is_resized_does_not(self):
        kept, resized = tenon.empty(3, 3), tenon.empty(0)
        tenon.linalg.inv_ex(self.square, out=(kept, tenon.empty(0, dtype=tenon.int32)))
        tenon.linalg.inv_ex(self.square, out=(resized, tenon.empty(0, dtype=tenon.int32)))
        self.assertEqual((kept.stride(), resized.stride()), ((3, 1), (1, 3)))
        self.assertTrue(tenon.equal(kept, resized))

    def test_meta_says_the_same(self):
        meta = self.tall.to("meta")
        self.assertEqual(strides(tenon.linalg.qr(meta)), [(1, 5), (1, 2)])
        self.assertEqual(tenon.fft.fftn(meta, dim=(0,)).stride(), (1, 5))

    def test_what_a_transform_went_over_lies_innermost(self):
        x = tenon.ones(2, 3, 4)
        self.assertEqual(tenon.fft.fftn(x, dim=(0, 2)).stride(), (4, 8, 1))
        self.assertEqual(tenon.fft.rfftn(x, dim=(0, 2)).stride(), (3, 6, 1))
        self.assertEqual(tenon.fft.ihfftn(x).stride(), (3, 1, 6))

    def test_places_of_nonzero_elements_lie_by_dimension(self):
        self.assertEqual(tenon.nonzero(tenon.ones(3, 4), out=tenon.empty(0, dtype=tenon.int64)).stride(), (1, 12))


class Calls(unittest.TestCase):
    def test_a_reduction_is_cast_to_the_result_that_is_given(self):
        x = tenon.tensor([[1., 2., 4.], [0., -1., 3.]])
        for made, given in ((tenon.max(x, out=tenon.empty((), dtype=tenon.float64)), 4.),
                            (tenon.min(x, out=tenon.empty((), dtype=tenon.float16)), -1.),
                            (tenon.mean(x, out=tenon.empty((), dtype=tenon.float64)), 1.5),
                            (tenon.var(x, 1, out=tenon.empty(0, dtype=tenon.float64)), [7 / 3, 13 / 3]),
                            (tenon.logsumexp(x * 0, 1, out=tenon.empty(2, dtype=tenon.float64)), [1.0986123, 1.0986123])):
            self.assertNotEqual(made.dtype, x.dtype)
            self.assertTrue(tenon.allclose(made.double(), tenon.tensor(given, dtype=tenon.float64), rtol=1e-6))
        with self.assertRaisesRegex(RuntimeError, "result type Float can't be cast to the desired output type Long"):
            tenon.max(x, out=tenon.empty((), dtype=tenon.int64))

    def test_powers_and_frequencies_take_a_result(self):
        self.assertEqual(tenon.logspace(0, 2, 5, dtype=tenon.int64).tolist(), [1, 3, 10, 31, 100])
        self.assertEqual(tenon.logspace(0.5, 2.7, 5, 3., dtype=tenon.int32).tolist(), [1, 1, 3, 5, 9])
        given = tenon.empty(0, dtype=tenon.float64)
        self.assertIs(tenon.logspace(0, 3, 4, 2., out=given), given)
        self.assertEqual(given.tolist(), [1., 2., 4., 8.])
        self.assertEqual(tenon.range(5, 1, -2, out=tenon.empty(3, dtype=tenon.int64)).tolist(), [5, 3, 1])
        self.assertEqual(tenon.fft.fftfreq(4, 0.5, out=given).tolist(), [0., 0.5, -1., -0.5])
        with self.assertRaisesRegex(RuntimeError, "^rfftfreq requires a floating point or complex dtype"):
            tenon.fft.rfftfreq(4, out=tenon.empty(0, dtype=tenon.int64))

    def test_a_loss_that_is_called_without_a_reduction_is_not_reduced(self):
        x, y = tenon.rand(2, 3), tenon.rand(2, 3)
        for loss in (tenon.kl_div, tenon.binary_cross_entropy_with_logits, tenon._C._nn.mse_loss, tenon.hinge_embedding_loss):
            self.assertEqual(tuple(loss(x, y).shape), (2, 3))
        self.assertEqual(tuple(tenon.nn.functional.mse_loss(x, y).shape), ())
        self.assertEqual(tuple(tenon.ops.aten.kl_div(x, y).shape), ())

    def test_einsum_without_operands_is_a_value_error(self):
        with self.assertRaisesRegex(ValueError, "at least one operand"):
            tenon.einsum("i", [])

    def test_masked_fill_writes_an_expanded_tensor(self):
        mask = tenon.tensor([[True, False, False], [False, False, True]])
        self.assertEqual(tenon.zeros(1, 3).expand(2, 3).masked_fill_(mask, 5).tolist(), [[5, 0, 5], [5, 0, 5]])

    def test_next_numbers_of_halves(self):
        x, towards = [1., 0., -0., 1., float("inf")], [2., 1., -1., 1., 0.]
        for dtype, wanted in ((tenon.float16, [1.0009765625, 2.0 ** -24, -2.0 ** -24, 1.0, 65504.0]),
                              (tenon.bfloat16, [1.0078125, 2.0 ** -133, -2.0 ** -133, 1.0, 3.3895313892515355e38])):
            found = tenon.nextafter(tenon.tensor(x, dtype=dtype), tenon.tensor(towards, dtype=dtype))
            self.assertEqual(found.tolist(), wanted)

    def test_cauchy_numbers_have_a_width(self):
        with self.assertRaisesRegex(RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=0"):
            tenon.ones(2).cauchy_(0, 0)


class Gradients(unittest.TestCase):
    def test_means_and_rstds_of_group_norm_have_gradients(self):
        x = tenon.tensor([[[1., 2., 4.], [0., 1., 5.]]], dtype=tenon.float64, requires_grad=True)
        _, mean, rstd = tenon.native_group_norm(x, None, None, 1, 2, 3, 1, 1e-5)
        self.assertTrue(tenon.autograd.gradcheck(lambda t: tenon.native_group_norm(t, None, None, 1, 2, 3, 1, 1e-5), (x,)))
        (mean.sum() + rstd.sum()).backward()
        wanted = 1 / 6 - (rstd.detach() ** 3 / 6).reshape(1, 1, 1) * (x.detach() - mean.detach().reshape(1, 1, 1))
        self.assertTrue(tenon.allclose(x.grad, wanted))

    def test_vectors_that_fill_up_the_space_have_none(self):
        a = tenon.arange(6., dtype=tenon.float64).reshape(3, 2).sin().requires_grad_()
        full, reduced = (tenon.linalg.svd(a, full_matrices=full) for full in (True, False))
        for one, other in ((full[0][:, :2], reduced[0]), (full[2], reduced[2])):
            found, wanted = (tenon.autograd.grad((t ** 3).abs().sum(), a, retain_graph=True)[0] for t in (one, other))
            self.assertTrue(tenon.allclose(found, wanted))

    def test_complex_numbers(self):
        x = tenon.tensor([1 + 2j, -0.5 + 0.25j, 3j], dtype=tenon.complex128, requires_grad=True)
        self.assertTrue(tenon.autograd.gradcheck(lambda t: tenon.logsumexp(t, 0), (x,)))
        self.assertTrue(tenon.autograd.gradcheck(lambda t: tenon.logcumsumexp(t, 0), (x,)))
        a = tenon.tensor([[1 + 2j, 0.5], [-1j, 2], [0.25, 1 - 1j]], dtype=tenon.complex128, requires_grad=True)
        self.assertTrue(tenon.autograd.gradcheck(lambda t: tenon.linalg.svd(t, full_matrices=False)[0].abs(), (a,)))

    def test_the_power_0_has_a_gradient_of_zeros(self):
        a = tenon.ones(2, 2, requires_grad=True)
        tenon.linalg.matrix_power(a, 0).sum().backward()
        self.assertEqual(a.grad.tolist(), [[0, 0], [0, 0]])

    def test_losses_of_two_dtypes(self):
        x, y = tenon.ones(3, dtype=tenon.float64, requires_grad=True), tenon.zeros(3, requires_grad=True)
        tenon.nn.functional.smooth_l1_loss(x, y).backward()
        self.assertEqual((x.grad.dtype, y.grad.dtype), (tenon.float64, tenon.float32))


if __name__ == "__main__":
    harness.main()
