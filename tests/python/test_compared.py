# SPDX-License-Identifier: MIT
"""Calls that a comparison with PyTorch over its own test inputs found to differ. Numbers, classes and texts of errors are those of
PyTorch 2.11 (compare_operators.py and compare_opinfo.py make the comparison)."""

import unittest

import harness
import tenon
import tenon.nn.functional as F


def numbers(*sizes):
    return tenon.arange(1, 1 + tenon.Size(sizes).numel()).reshape(sizes).to(tenon.float32)


class Compared(unittest.TestCase):
    def refuses(self, kind, text, call, *args, **kwargs):
        with self.assertRaises(kind) as caught:
            call(*args, **kwargs)
        self.assertEqual(str(caught.exception).split("\n")[0], text)


class Values(Compared):
    def test_one_number_that_is_summed_up_as_bool_is_true_unless_it_is_zero(self):
        for running in (tenon.cumsum, tenon.cumprod):
            self.assertIs(running(tenon.tensor(-0.94), 0, dtype=tenon.bool).item(), True)
            self.assertIs(running(tenon.tensor(0.25j), 0, dtype=tenon.bool).item(), True)
            self.assertIs(running(tenon.tensor(0.0), 0, dtype=tenon.bool).item(), False)
            self.assertEqual(running(tenon.tensor([]), 0, dtype=tenon.bool).tolist(), [])
            self.refuses(NotImplementedError, '"%s_out_cpu" not implemented for \'Bool\'' % running.__name__,
                         running, tenon.tensor([0.3, 2.5]), 0, dtype=tenon.bool)

    def test_pinv_with_a_tensor_of_tolerances_has_a_gradient_where_singular_values_are_equal(self):
        x = tenon.eye(2, dtype=tenon.float64, requires_grad=True)
        made = tenon.linalg.pinv(x, rtol=tenon.tensor(1e-3))
        (made * made).sum().backward()
        self.assertEqual(x.grad.tolist(), [[-2.0, 0.0], [0.0, -2.0]])
        a = tenon.tensor([[1., 2., 0.5], [0.25, -1., 3.]], dtype=tenon.float64, requires_grad=True)
        made = tenon.linalg.pinv(a, rtol=tenon.tensor(1e-3))
        (grad,) = tenon.autograd.grad((made * made).sum(), [a])
        self.assertEqual(grad.stride(), (1, 2))
        wanted = [-0.0734667242013837, -0.1428086265948064, -0.04463927056595037,
                  -0.007710891379780078, 0.014344278287276482, -0.06090706269632694]
        for one, other in zip(grad.flatten().tolist(), wanted):
            self.assertAlmostEqual(one, other, places=14)

    def test_gradients_of_products_with_a_complex_number_are_as_exact_as_the_tensor(self):
        number = 1 / 3 + 0.1j
        x = tenon.tensor([2 / 3 + 1j / 7], dtype=tenon.complex128, requires_grad=True)
        for made, wanted in ((x * number, number), (x / number, 1 / number), (number / x, -number / x.item() ** 2)):
            (grad,) = tenon.autograd.grad(made, x, tenon.ones_like(made))
            self.assertLess(abs(grad.item() - wanted.conjugate()), 1e-14)

    def test_the_airy_function_has_all_its_digits(self):
        places = tenon.tensor([-12.0, -9.7, -6.6, -2.5, -2.0903121483611695, 0.0, 2.0794157063009298, 5.4, 9.4], dtype=tenon.float64)
        wanted = [-0.06655517505437313, 0.28023750191629776, -0.16352646272772983, -0.11232506769296609, 0.16984612503459398,
                  0.3550280538878172, 0.030922290382873658, 4.2729861694116584e-05, 7.267411770779193e-10]  # its series, in 80 digits
        for found, one in zip(tenon.special.airy_ai(places).tolist(), wanted):
            self.assertLess(abs(found - one), 1e-14 * abs(one))
        self.assertEqual(tenon.special.airy_ai(tenon.tensor([110.0])).item(), 0.0)
        self.assertTrue(tenon.special.airy_ai(tenon.tensor([float("inf"), -float("inf"), float("nan")])).isnan().all())

    def test_norms_but_for_a_dimension_counted_from_the_end(self):
        self.assertEqual(tenon.norm_except_dim(tenon.ones(2, 4), 2, -2).tolist(), [[2.0], [2.0]])
        self.refuses(IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
                     tenon.norm_except_dim, tenon.ones(2, 4), 2, 2)

    def test_products_with_a_number_are_cast_to_the_result_that_is_given(self):
        out = tenon.zeros(2, dtype=tenon.float64)
        self.assertIs(tenon.inner(tenon.tensor(2.0), numbers(2), out=out), out)
        self.assertEqual(out.tolist(), [2.0, 4.0])
        self.refuses(RuntimeError, "tensordot: Expected the output tensor to have dtype Float, but got an output tensor with dtype Double",
                     tenon.inner, numbers(2, 2), numbers(2, 2), out=tenon.zeros(2, 2, dtype=tenon.float64))

    def test_places_in_a_tuple_are_not_written_anywhere(self):
        x, out = tenon.ones(2), tenon.zeros(2, dtype=tenon.int64)
        self.refuses(TypeError, "nonzero(): argument 'out' must be Tensor, not tuple", tenon.nonzero, x, as_tuple=True, out=(out,))
        self.refuses(RuntimeError, "nonzero does not support the out kwarg when as_tuple is True", tenon.nonzero, x, as_tuple=True, out=out)

    def test_normal_numbers_widen_what_is_given(self):
        self.assertEqual(tuple(tenon.normal(tenon.zeros(2, 3), 1.0, out=tenon.zeros(3)).shape), (2, 3))
        self.assertEqual(tuple(tenon.normal(tenon.zeros(3), 1.0, out=tenon.zeros(2, 3)).shape), (2, 3))

    def test_bernoulli_takes_one_probability(self):
        self.assertEqual(tenon.bernoulli(tenon.zeros(2, 3).t(), tenon.tensor(0.5)).stride(), (2, 1))
        with self.assertRaisesRegex(TypeError, r"bernoulli\(\) received an invalid combination of arguments - got \(Tensor, Tensor\)"):
            tenon.bernoulli(tenon.zeros(3, 2), tenon.full((3, 2), 0.5))
        self.assertEqual(tenon.ops.aten.bernoulli.Tensor(tenon.zeros(2, 2), tenon.ones(2)).tolist(), [[1.0, 1.0], [1.0, 1.0]])
        made = tenon.ops.aten.bernoulli.float_out(tenon.zeros(1000), out=tenon.zeros(0))
        self.assertEqual((made.shape, set(made.tolist())), ((1000,), {0.0, 1.0}))
        self.assertEqual(str(tenon.ops.aten.bernoulli.float_out._schema),
                         "aten::bernoulli.float_out(Tensor self, float p=0.5, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)")


    def test_copies_of_pieces_go_where_they_are_told(self):
        x = tenon.arange(6.).reshape(3, 2)
        out = [tenon.zeros(1, 2), tenon.zeros(0)]
        self.assertIsNone(tenon.split_with_sizes_copy(x, [1, 2], out=out))
        self.assertEqual([t.tolist() for t in out], [[[0.0, 1.0]], [[2.0, 3.0], [4.0, 5.0]]])
        out = (tenon.zeros(2, 2), tenon.zeros(1, 2))
        self.assertIsNone(tenon.split_copy(x, 2, out=out))
        self.assertEqual([t.tolist() for t in out], [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]])
        out = (tenon.zeros(2, 2).double(), tenon.zeros(1, 2).long())  # the one of the three that casts, and does not resize
        self.assertIsNone(tenon.split_copy(x, 2, out=out))
        self.assertEqual(out[1].tolist(), [[4, 5]])
        self.refuses(RuntimeError, "The size of tensor a (0) must match the size of tensor b (2) at non-singleton dimension 1",
                     tenon.split_copy, x, 2, out=(tenon.zeros(2, 2), tenon.zeros(0)))
        self.refuses(RuntimeError, "split_copy_Tensor_out() expected an out= argument of size 2, got size 1",
                     tenon.split_copy, x, 2, out=[tenon.zeros(2, 2)])
        out = [tenon.zeros(2) for _ in range(3)]
        self.assertIsNone(tenon.unbind_copy(x, out=out))
        self.assertEqual([t.tolist() for t in out], [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
        self.refuses(RuntimeError, "unbind_copy_int_out expected an out= argument of size 3, got size 1", tenon.unbind_copy, x, out=[tenon.zeros(2)])
        self.refuses(RuntimeError, "Expected out tensor to have dtype float, but got double instead",
                     tenon.split_with_sizes_copy, x, [1, 2], out=[tenon.zeros(1, 2).double(), tenon.zeros(2, 2)])

    def test_older_names_of_division(self):
        x = tenon.tensor([1, 2])
        self.assertEqual(x.__rdiv__(2).tolist(), [2.0, 1.0])
        self.assertEqual(x.__div__(2).tolist(), [0.5, 1.0])
        self.assertIs(x.__rdiv__("a"), NotImplemented)
        y = tenon.ones(2)
        self.assertIs(y.__idiv__(4), y)
        self.assertEqual(y.tolist(), [0.25, 0.25])

    def test_where_one_number_is_not_zero(self):
        self.assertEqual([t.tolist() for t in tenon.tensor(2.0).nonzero(as_tuple=True)], [[0]])
        self.assertEqual([t.tolist() for t in tenon.nonzero(tenon.tensor(0.0), as_tuple=True)], [[]])
        self.assertEqual(tuple(tenon.tensor(0.0).nonzero().shape), (0, 0))

    def test_a_dimension_of_one_is_contracted_with_any(self):
        x = tenon.arange(4.).reshape(2, 1, 2)
        self.assertEqual(tenon.tensordot(tenon.ones(1, 1, 1), x, dims=[[0, 1], [2, 0]]).tolist(), [[6.0]])
        self.assertEqual(tenon.tensordot(tenon.arange(4.).reshape(2, 2, 1), x[:, :, :1], dims=[[0], [2]]).tolist(),
                         [[[[0.0], [4.0]]], [[[0.0], [8.0]]]])
        self.refuses(RuntimeError, "contracted dimensions need to match, but first has size 3 in dim 0 and second has size 2 in dim 0",
                     tenon.tensordot, tenon.ones(3, 2), tenon.ones(2, 2), dims=[[0], [0]])
        self.refuses(RuntimeError, "contracted dimensions need to match, but first has size 3 in dim -1 and second has size 2 in "
                     "dim 0", tenon.tensordot, tenon.ones(3), tenon.ones(2, 3), dims=1)
        self.refuses(RuntimeError, "tensordot expects dims < ndim_a or ndim_b, but got dims=3",
                     tenon.tensordot, tenon.ones(2, 3), tenon.ones(2, 3), dims=3)
        self.assertEqual(tenon.tensordot(tenon.ones(3), tenon.ones(1, 3), dims=1).tolist(), [3.0, 3.0, 3.0])

    def test_no_indices_may_have_any_dtype(self):
        for dtype in (tenon.uint8, tenon.float32, tenon.bool, tenon.int16, tenon.int32):
            none = tenon.zeros(0, dtype=dtype)
            self.assertEqual(tenon.gather(tenon.ones(5), 0, none).tolist(), [])
            self.assertEqual(tenon.scatter(tenon.ones(5), 0, none, 2.0).tolist(), [1.0] * 5)
            self.assertEqual(tenon.scatter_add(tenon.ones(5), 0, none, tenon.ones(0)).tolist(), [1.0] * 5)
        self.refuses(RuntimeError, "gather(): Expected dtype int32/int64 for index", tenon.gather, tenon.ones(5), 0, tenon.zeros(1))

    def test_the_nuclear_norm_fills_what_it_is_given(self):
        out = tenon.empty(0)
        self.assertIs(tenon.norm(tenon.eye(2), "nuc", out=out), out)
        self.assertEqual(out.item(), 2.0)
        self.refuses(RuntimeError, "linalg.matrix_norm expected out tensor dtype Float but got: Double",
                     tenon.norm, tenon.eye(2), "nuc", out=tenon.empty(0).double())

    def test_places_of_elements_lie_beside_each_other(self):
        made = tenon.unravel_index(tenon.tensor([[7, 19], [0, 4]]), (4, 5))
        self.assertEqual([t.tolist() for t in made], [[[1, 3], [0, 0]], [[2, 4], [0, 4]]])
        self.assertEqual([t.stride() for t in made], [(4, 2), (4, 2)])

    def test_a_number_that_is_summed_to_no_sizes_is_a_sum(self):
        self.assertIs(tenon.tensor(True).sum_to_size(()).dtype, tenon.int64)
        self.assertIs(tenon.tensor([True]).sum_to_size(1).dtype, tenon.bool)

    def test_statistics_of_another_dtype(self):
        x = tenon.ones(4, 3, 15, dtype=tenon.float64)
        for stats, wanted in ((tenon.float32, 0.30000001192092896), (tenon.bfloat16, 0.30078125), (tenon.float64, 0.3)):
            mean, var = tenon.zeros(3, dtype=stats), tenon.ones(3, dtype=stats)
            made = F.instance_norm(x, mean, var, None, None, True, 0.3, 0.001)
            self.assertIs(made.dtype, tenon.float64)
            self.assertEqual(mean.tolist(), [wanted] * 3)
        half = F.instance_norm(x.bfloat16(), mean.float() * 0, mean.float(), tenon.ones(3), tenon.ones(3), True, 0.3, 0.001)
        self.assertIs(half.dtype, tenon.bfloat16)
        self.refuses(RuntimeError, "expected scalar type Float but found Double",
                     F.instance_norm, x.float(), mean.float(), var.double(), None, None, True, 0.3, 0.001)
        self.refuses(RuntimeError, "mixed dtype (CPU): all inputs must share same datatype.",
                     F.instance_norm, x, mean, var, tenon.ones(3), None, True, 0.3, 0.001)

    def test_one_variance_along_any_dimension(self):
        x, y = numbers(4, 3), tenon.zeros(4, 3)
        for sizes in ((4, 3), (1, 3), (4, 1), (4,)):
            self.assertEqual(F.gaussian_nll_loss(x, y, tenon.ones(sizes)).item(), F.gaussian_nll_loss(x, y, tenon.ones(4, 3)).item())
        for sizes in ((3,), (1,), (1, 1), (2, 3), (4, 3, 1)):
            self.refuses(ValueError, "var is of incorrect size", F.gaussian_nll_loss, x, y, tenon.ones(sizes))


class Refused(Compared):
    def test_results_that_want_the_very_dtype(self):
        m = tenon.tensor([[2., 1.], [1., 3.]])
        for function, count in ((tenon.linalg.svd, 3), (tenon.qr, 2), (tenon.linalg.eigh, 2), (tenon.linalg.lu_factor, 2)):
            out = tuple(tenon.zeros(t.shape, dtype=tenon.float64) for t in function(m))
            self.assertEqual(len(out), count)
            self.refuses(RuntimeError, "Expected out tensor to have dtype float, but got double instead", function, m, out=out)
        out = tenon.zeros(2, 2, dtype=tenon.float64), tenon.zeros(2, dtype=tenon.float64)
        tenon.geqrf(m, out=out)
        self.assertEqual(out[0].float().tolist(), tenon.geqrf(m)[0].tolist())
        self.refuses(RuntimeError, "expected scalar_type Float but found Double", tenon.cummax, m, 0,
                     out=(tenon.zeros(2, 2).double(), tenon.zeros(2, 2).long()))


    def test_covariances_want_no_negative_weights(self):
        x = numbers(5)
        self.refuses(RuntimeError, "cov(): fweights cannot be negative", tenon.cov, x, fweights=tenon.tensor([1, 2, -1, 0, 3]))
        self.refuses(RuntimeError, "cov(): aweights cannot be negative", tenon.cov, x, aweights=-x)
        self.refuses(RuntimeError, "cov(): aweights cannot be negative", tenon.cov, x, aweights=tenon.full((5,), float("nan")))

    def test_reflectors_and_their_factors_have_the_same_batch(self):
        self.refuses(RuntimeError, "torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], "
                     "but got [1]", tenon.linalg.householder_product, tenon.zeros(4, 3, 2), tenon.zeros(1, 1))

    def test_numbers_that_pooling_wants_one_of(self):
        x = numbers(3, 6)
        self.refuses(RuntimeError, "max_pool1d() stride must be None, an int, list of ints, or tuple of ints of size 1 but got size 2",
                     tenon.max_pool1d, x, [2], [2, 2])
        self.refuses(RuntimeError, "max_pool1d() padding must be an int, list of ints, or tuple of ints of size 1 but got size 2",
                     tenon.max_pool1d, x, [2], [2], [2, 2])
        self.refuses(RuntimeError, "max_pool1d() dilation must be an int, list of ints or tuple of ints of size 1 but got size 0",
                     tenon.max_pool1d, x, [2], [2], [2], [])
        self.refuses(RuntimeError, "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, "
                     "but got:[1, 2, 3, 5, 6]", F.avg_pool2d, tenon.zeros(1, 2, 3, 5, 6), 2)

    def test_what_a_transposed_convolution_of_nothing_says(self):
        self.refuses(RuntimeError, "Only zero batch or zero channel inputs are supported, but got input shape: [1, 4, 5, 0]",
                     tenon.conv_transpose2d, tenon.zeros(1, 4, 5, 0), tenon.zeros(4, 3, 3, 2), None, [2], [1], [1], 2)

    def test_what_nothing_can_be_drawn_from(self):
        for weights, text in (([float("inf"), 1.0], "encountering probability entry = infinity or NaN"),
                              ([float("nan"), 1.0], "encountering probability entry < 0"), ([-1.0, 2.0], "encountering probability entry < 0")):
            self.refuses(RuntimeError, "invalid multinomial distribution (%s)" % text, tenon.multinomial, tenon.tensor(weights), 2, True)
            for several, replacement in ((1, True), (1, False), (2, False)):
                self.refuses(RuntimeError, "probability tensor contains either `inf`, `nan` or element < 0",
                             tenon.multinomial, tenon.tensor(weights), several, replacement)
        self.refuses(RuntimeError, "number of categories cannot exceed 2^24", tenon.multinomial, tenon.zeros(1).expand(2**24 + 1), 3)

    def test_texts(self):
        self.refuses(RuntimeError, "meshgrid expects a non-empty TensorList", tenon.cartesian_prod)
        self.refuses(IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)", tenon.unbind, tenon.tensor(1.0), 1)
        self.refuses(RuntimeError, "start (3) + length (-1) exceeds dimension size (4).", tenon.narrow_copy, tenon.zeros(3, 4), 1, -1, -1)
        self.refuses(IndexError, "start out of range (expected to be in range of [-4, 4], but got 9)",
                     tenon.narrow_copy, tenon.zeros(3, 4), 1, 9, -1)
        self.refuses(RuntimeError, "repeats must have the same size as input along dim, but got repeats.size(0) = 3 and input.size(-1) = 4",
                     tenon.repeat_interleave, tenon.zeros(3, 4), tenon.tensor([1, 1, 1]), -1)
        self.refuses(RuntimeError, "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
                     "operator instead.", F.binary_cross_entropy_with_logits, numbers(2), tenon.tensor([True, False]))
        self.refuses(RuntimeError, "result type Float can't be cast to the desired output type Long",
                     tenon.feature_alpha_dropout, tenon.ones(2, 3, 4, dtype=tenon.bool), 0.5, True)
        self.refuses(RuntimeError, "dimensionality of sizes (1) must match dimensionality of strides (0)",
                     tenon.ops.aten._reshape_alias, tenon.zeros(2, 3), [6], [])
        self.refuses(RuntimeError, "Trying to create tensor with negative dimension -1: [3, -1]",
                     tenon.ops.aten._fft_c2r, tenon.zeros(3, 4, dtype=tenon.complex64), [0, 1], 2, -1)


if __name__ == "__main__":
    harness.main()
