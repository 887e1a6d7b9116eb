# SPDX-License-Identifier: MIT
"""Corners of operators: dtypes of results, indices without elements, halves, results given as lists. Values are PyTorch 2.11's."""
import unittest
import warnings

import harness
import tenon
from tenon._subclasses import FakeTensorMode

aten = tenon.ops.aten


class Indices(unittest.TestCase):
    def test_an_index_without_elements_may_be_of_any_dtype(self):
        x, nothing = tenon.arange(5.0), tenon.zeros(0)
        for dtype in (tenon.uint8, tenon.bool, tenon.float32, tenon.int64):
            index = tenon.zeros(0, dtype=dtype)
            self.assertEqual(x.gather(0, index).shape, (0,))
            self.assertEqual(x.gather(0, index.reshape(2, 0)).shape, (2, 0))
            for made in (x.scatter(0, index, nothing), x.scatter(0, index, 2.0), x.scatter_add(0, index, nothing),
                         x.scatter_reduce(0, index, nothing, "sum")):
                self.assertEqual(made.tolist(), x.tolist())
        with self.assertRaisesRegex(RuntimeError, r"gather\(\): Expected dtype int32/int64 for index"):
            x.gather(0, tenon.zeros(1))

    def test_dimensions_of_an_index_are_looked_at_before_its_dtype(self):
        x, index = tenon.ones(5), tenon.zeros(2, 0)
        with self.assertRaisesRegex(IndexError, r"Index is supposed to be a vector, but got dim: 2 with type: Float"):
            x.index_add(0, index, tenon.zeros(0))
        with self.assertRaisesRegex(RuntimeError, "input and indices should have the same number of dimensions"):
            tenon.take_along_dim(x, index, 0)

    def test_tables_name_the_type_of_wrong_indices_as_the_reference_does(self):
        table = tenon.ones(3, 2)
        for dtype, name in ((tenon.bool, "CPUBoolType"), (tenon.bfloat16, "CPUBFloat16Type"), (tenon.complex64, "CPUComplexFloatType"),
                            (tenon.float16, "torch.HalfTensor"), (tenon.int16, "torch.ShortTensor")):
            index = tenon.zeros(2, dtype=dtype)
            for call, which in ((lambda: tenon.embedding(table, index), "embedding"),  # noqa: B023
                                (lambda: tenon.embedding_bag(table, index, index), "embedding_bag"),  # noqa: B023
                                (lambda: tenon.nn.functional.embedding(index, table, max_norm=1.0), "embedding_renorm_")):  # noqa: B023
                with self.assertRaisesRegex(RuntimeError, r"but got %s instead \(while checking arguments for %s\)" % (name, which)):
                    call()

    def test_rows_of_a_table_are_shortened(self):
        table = tenon.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]])
        self.assertIs(tenon.embedding_renorm_(table, tenon.tensor([0, 1]), 1.0, 2.0), table)
        self.assertTrue(tenon.allclose(table, tenon.tensor([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]])))

    def test_places_in_dimensions_are_int64(self):
        rows, columns = tenon.unravel_index(tenon.tensor([[5, 7], [11, 0]], dtype=tenon.uint8), (3, 4))
        self.assertEqual((rows.dtype, rows.stride(), rows.tolist()), (tenon.int64, (4, 2), [[1, 1], [2, 0]]))
        self.assertEqual(columns.tolist(), [[1, 3], [3, 0]])
        for indices, shape, error, text in (
                (tenon.ones(1), 3, TypeError, "expected 'indices' to be integer dtype, but got torch.float32"),
                (tenon.tensor([1]), 2.5, TypeError, "expected 'shape' to be int or sequence of ints, but got <class 'float'>"),
                (tenon.tensor([1]), (2, 1.5), TypeError, "expected 'shape' sequence to only contain ints, but got <class 'float'>"),
                (tenon.tensor([1]), (2, -1), ValueError, "'shape' cannot have negative values, but got (2, -1)")):
            with self.assertRaises(error) as caught:
                tenon.unravel_index(indices, shape)
            self.assertEqual(str(caught.exception).replace("tenon.", "torch."), text)


class Dtypes(unittest.TestCase):
    def test_a_sum_to_no_dimensions_is_a_sum(self):
        for dtype in (tenon.int32, tenon.uint8, tenon.bool):
            self.assertEqual(tenon.ones((), dtype=dtype).sum_to_size(()).dtype, tenon.int64)
            self.assertEqual(tenon.ones(2, 3, dtype=dtype).sum_to_size(2, 3).dtype, dtype)

    def test_halves_are_rounded_before_their_fraction_is_dropped(self):
        a, b = [7.0, 6.8, 5.0, 3.3], [0.7, 0.1, 0.3, 1.1]
        for dtype in (tenon.float16, tenon.bfloat16):
            x, y = tenon.tensor(a, dtype=dtype), tenon.tensor(b, dtype=dtype)
            self.assertEqual(tenon.div(x, y, rounding_mode="trunc").tolist(), [10, 68, 16, 3])
            self.assertEqual(x.clone().div_(y, rounding_mode="trunc").tolist(), [10, 68, 16, 3])
            out = tenon.empty(0, dtype=dtype)
            tenon.div(x, y, rounding_mode="trunc", out=out)
            self.assertEqual(out.tolist(), [10, 68, 16, 3])
        number = tenon.tensor(0.7, dtype=tenon.float16)
        self.assertEqual(tenon.div(tenon.tensor(a, dtype=tenon.float16), number, rounding_mode="trunc").tolist(), [9, 9, 7, 4])

    def test_a_number_beside_halves_is_rounded_or_not_as_its_operator_does(self):
        x = tenon.tensor([-3.0, 1.5, 2.703125])
        for dtype in (tenon.float16, tenon.bfloat16):
            h, v = x.to(dtype), tenon.tensor(2.1, dtype=dtype)
            for rounds in (tenon.remainder, tenon.fmod, tenon.pow):
                self.assertEqual(str(rounds(h, 2.1).tolist()), str(rounds(h, v).tolist()))
            self.assertEqual(tenon.lerp(h, h + 1, 0.3).tolist(), tenon.lerp(h.float(), (h + 1).float(), 0.3).to(dtype).tolist())
        start, end = tenon.tensor([0.0], dtype=tenon.float16), tenon.tensor([0.1], dtype=tenon.float16)
        self.assertEqual(tenon.lerp(start, end, 70000).tolist(), [7000.0])

    def test_random_numbers_without_a_sign(self):
        tenon.manual_seed(0)
        for dtype, bits in ((tenon.uint16, 16), (tenon.uint32, 32), (tenon.uint64, 63)):
            for args in ((), (0, None)):
                x = tenon.empty(5000, dtype=dtype).random_(*args).to(tenon.float64)
                self.assertTrue(x.max() > 0.9 * 2.0 ** bits and x.min() < 0.1 * 2.0 ** bits)
            with self.assertRaisesRegex(RuntimeError, "from is out of bounds for .*unsigned"):
                tenon.empty(2, dtype=dtype).random_(-1, 5)
        with self.assertRaisesRegex(RuntimeError, "to - 1 is out of bounds for .*unsigned"):
            tenon.randint(0, 2 ** 16 + 1, (2,), dtype=tenon.uint16)

    def test_masked_functions_keep_the_dtype_of_their_input(self):
        mask = tenon.tensor([[True, False, True], [False, True, True]])
        x = tenon.tensor([[3, 1, 2], [4, 6, 5]], dtype=tenon.int32)
        for name, wanted in (("argmax", [0, 1]), ("argmin", [2, 2]), ("cumsum", [[3, 3, 5], [0, 6, 11]]),
                             ("cumprod", [[3, 3, 6], [1, 6, 30]]), ("logsumexp", [3, 6])):
            made = getattr(tenon.masked, name)(x, 1, mask=mask)
            self.assertEqual((made.dtype, made.tolist()), (tenon.int32, wanted), name)
        made = tenon.masked.var(tenon.tensor([1 + 1j, 2, 3j]), 0, mask=tenon.tensor([True, True, False]))
        self.assertEqual((made.dtype, made.item()), (tenon.complex64, 1 + 0j))

    def test_places_and_remainders_of_bfloat16_are_those_of_float32(self):
        x, tiny = tenon.tensor([-8.4375, 3.0]), tenon.tensor(2.0 ** -126)
        for function in (tenon.fmod, tenon.remainder):
            self.assertEqual(function(x.bfloat16(), tiny.bfloat16()).tolist(), [0.0, 0.0])
        image = tenon.arange(200.).reshape(1, 1, 1, 200).bfloat16()
        grid = tenon.stack([tenon.linspace(-1, 1, 333), tenon.zeros(333)], 1).reshape(1, 1, 333, 2).bfloat16()
        for padding in ("zeros", "border", "reflection"):
            options = {"mode": "nearest", "padding_mode": padding, "align_corners": False}
            wanted = tenon.nn.functional.grid_sample(image.float(), grid.float(), **options)
            self.assertEqual(tenon.nn.functional.grid_sample(image, grid, **options).tolist(), wanted.tolist())


class Numbers(unittest.TestCase):
    def test_slopes_of_gamma_functions_vanish_at_infinity(self):
        ends = tenon.tensor([float("inf"), float("-inf"), 1e30])
        self.assertEqual(repr(tenon.polygamma(1, ends).tolist()), "[0.0, nan, %r]" % float(tenon.tensor(1e-30)))
        self.assertEqual(tenon.polygamma(3, ends[:1]).tolist(), [0.])
        self.assertEqual(tenon.special.zeta(2., ends[:1]).tolist(), [0.])
        x = tenon.tensor([float("inf")], requires_grad=True)
        self.assertEqual(tenon.autograd.grad(tenon.digamma(x), x)[0].tolist(), [0.])

    def test_the_second_derivative_of_softplus_at_nan_is_nan(self):
        x = tenon.tensor([float("nan"), 30.], requires_grad=True)
        grad, = tenon.autograd.grad(tenon.nn.functional.softplus(x).sum(), x, create_graph=True)
        self.assertEqual(repr(tenon.autograd.grad(grad.sum(), x)[0].tolist()), "[nan, 0.0]")

    def test_a_dtype_to_add_in_rounds_each_number_first(self):
        x, half = tenon.full((1000,), 1.003), tenon.float16
        for made in (tenon.sum(x, dtype=tenon.bfloat16), tenon.sum(x, 0, dtype=tenon.bfloat16), tenon.nansum(x, dtype=tenon.bfloat16),
                     tenon.sum(x, 0, out=tenon.zeros((), dtype=tenon.bfloat16)), x.view(10, 100).sum(0, dtype=tenon.bfloat16).sum()):
            self.assertEqual((made.dtype, made.item()), (tenon.bfloat16, 1000.0))
        for made in (tenon.mean(x, dtype=tenon.bfloat16), tenon.mean(x.double(), 0, dtype=tenon.bfloat16),
                     tenon.prod(x, dtype=tenon.bfloat16), tenon.prod(x, 0, dtype=tenon.bfloat16)):
            self.assertEqual(made.item(), 1.0)
        self.assertEqual(tenon.cumsum(x[:3], 0, dtype=tenon.bfloat16).tolist(), [1.0, 2.0, 3.0])
        self.assertEqual(tenon.cumprod(x[:3], 0, dtype=tenon.bfloat16).tolist(), [1.0, 1.0, 1.0])
        self.assertTrue(tenon.sum(tenon.tensor([7e4, -7e4]), dtype=half).isnan())
        self.assertTrue(tenon.prod(tenon.tensor([10 ** 6, 0]), dtype=half).isnan())
        self.assertTrue(tenon.cumprod(tenon.tensor([1e10, 0j]), 0, dtype=half)[1].isnan())
        least = -(2 ** 31)
        self.assertEqual(tenon.sum(tenon.tensor([1e10]), dtype=tenon.int32).item(), least)
        self.assertEqual(tenon.cumsum(tenon.tensor([1e10, 1.0]), 0, dtype=tenon.int32).tolist(), [least, least + 1])

    def test_variances_of_large_numbers_are_numbers(self):
        most, inf = tenon.finfo(tenon.float64).max, float("inf")
        for values in ([most, 0, 0, 0], [1e308, -1e308, 1e308]):
            x = tenon.tensor(values, dtype=tenon.float64)
            self.assertEqual((tenon.var(x).item(), tenon.std(x).item()), (inf, inf))
        self.assertEqual(tenon.var(tenon.tensor([3e38, -3e38, 3e38])).item(), inf)
        self.assertTrue(tenon.var(tenon.tensor([3e38, inf])).isnan())
        same = tenon.full((2, 8), 3e38)
        for made in (tenon.layer_norm(same, (8,)), tenon.group_norm(same, 1)):  # NaN in the reference, and so are those two
            self.assertEqual(made.tolist(), [[0.0] * 8] * 2)
        self.assertEqual([t.tolist() for t in tenon.var_mean(same, 1)], [[0.0, 0.0], same[:, 0].tolist()])

    def test_areas_and_slopes_of_short_whole_numbers_do_not_wrap(self):
        y, x = tenon.tensor([200, 250, 100], dtype=tenon.uint8), tenon.tensor([9, 3, 1], dtype=tenon.uint8)
        self.assertEqual((tenon.trapezoid(y).item(), tenon.trapezoid(y, x).item()), (400.0, -1700.0))
        self.assertEqual(tenon.cumulative_trapezoid(y).tolist(), [225.0, 400.0])
        self.assertEqual(tenon.cumulative_trapezoid(y, x).tolist(), [-1350.0, -1700.0])
        self.assertEqual(tenon.gradient(tenon.tensor([-128, 0, 127], dtype=tenon.int8))[0].tolist(), [128.0, 127.5, 127.0])
        self.assertEqual(tenon.gradient(tenon.tensor([0., 6., 8.]), spacing=(x,))[0].tolist(), [-1.0, -1.0, -1.0])
        last = 2 ** 62
        self.assertEqual(tenon.gradient(tenon.tensor([last, last + 1, last + 3]))[0].tolist(), [1.0, 1.5, 2.0])

    def test_weights_of_observations_promote_whole_numbers(self):
        x, weights = tenon.tensor([1, 2, 5], dtype=tenon.uint8), tenon.tensor([1, .5, 2], dtype=tenon.float16)
        self.assertEqual(tenon.cov(x, aweights=weights).dtype, tenon.float16)
        self.assertEqual(tenon.cov(x).dtype, tenon.float32)

    def test_the_median_of_a_repeated_row_is_that_row(self):
        row = tenon.tensor([1e10, 2., float("inf"), 1., 3.])
        for median in (tenon.median, tenon.nanmedian):
            self.assertEqual(median(row.expand(3, 5), 0)[0].tolist(), row.tolist())

    def test_a_number_with_an_infinite_part_has_an_infinite_norm(self):
        x = tenon.tensor([complex(float("inf"), float("nan")), 1])
        for order in (2, 1, 3, float("inf")):
            self.assertEqual(tenon.linalg.vector_norm(x, order).item(), float("inf"))

    def test_common_multiples_that_wrap_are_positive(self):
        self.assertEqual(tenon.lcm(tenon.tensor([2 ** 62, 2 ** 31 - 1, 100]), tenon.tensor([3, 6, 99])).tolist(), [2 ** 62, 12884901882, 9900])
        for dtype, a, b, wanted in ((tenon.int32, 2 ** 31 - 1, 6, 6), (tenon.int8, 100, 99, -84)):
            self.assertEqual(tenon.lcm(tenon.tensor([a], dtype=dtype), tenon.tensor([b], dtype=dtype)).tolist(), [wanted])

    def test_special_functions_reach_the_ends_of_double_precision(self):
        x = tenon.tensor([2.2250738585072014e-308, 1e-300, 5e-324], dtype=tenon.float64)
        wanted = tenon.tensor([-37.5193793471445, -37.0470962993612, -38.467405617144344], dtype=tenon.float64)
        self.assertTrue(tenon.allclose(tenon.special.ndtri(x), wanted, rtol=1e-14, atol=0))
        far = tenon.tensor([1.7e308, -1.7e308], dtype=tenon.float64)
        for made, sign in ((tenon.special.i0e(far), 1), (tenon.special.i1e(far), -1)):
            self.assertTrue(tenon.allclose(made * 1e154, tenon.tensor([0.3059747616388294, sign * 0.3059747616388294], dtype=tenon.float64)))

    def test_the_norm_of_one_number_is_its_size(self):
        x = tenon.tensor([[1e-30], [1e30], [-3.]])
        for order in (2, 1, 3, .5, -1, float("inf"), -float("inf")):
            self.assertEqual(tenon.linalg.vector_norm(x, order, 1).tolist(), x.abs().flatten().tolist())
        self.assertEqual(tenon.linalg.vector_norm(x * 0, 0, 1).tolist(), [0., 0., 0.])
        self.assertEqual(tenon.linalg.vector_norm(tenon.tensor([[1e30 + 0j], [3 + 4j]]), 2, 1).tolist(), [float(x[1]), 5.])
        self.assertEqual(tenon.nn.functional.normalize(x[1:]).tolist(), [[1.], [-1.]])

    def test_the_slope_of_acosh_is_that_of_its_side_of_the_cut(self):
        below = tenon.tensor([complex(-3, -0.), complex(-.5, -0.), complex(.5, -0.)], dtype=tenon.complex128, requires_grad=True)
        near = tenon.tensor([-3 - 1e-12j, -.5 - 1e-12j, .5 - 1e-12j], dtype=tenon.complex128, requires_grad=True)
        at_cut, beside = (tenon.autograd.grad(tenon.acosh(x).real.sum(), x)[0] for x in (below, near))
        self.assertTrue(tenon.allclose(at_cut, beside))

    def test_rows_that_renorm_leaves_have_the_gradient_of_themselves(self):
        for dtype in (tenon.float16, tenon.bfloat16, tenon.float32):
            x = tenon.tensor([[0., 0.], [.5, .5], [-.1, 0.]], dtype=dtype, requires_grad=True)
            x.renorm(2, 0, 1.).sum().backward()
            self.assertEqual(x.grad.tolist(), [[1., 1.]] * 3)

    def test_gelu_is_straight_far_out(self):
        for approximate in ("none", "tanh"):
            for dtype in (tenon.float16, tenon.bfloat16, tenon.float32, tenon.float64):
                x = tenon.tensor([50., -300., float("inf"), 6e4, 0.], dtype=dtype, requires_grad=True)
                grad, = tenon.autograd.grad(tenon.nn.functional.gelu(x, approximate=approximate).sum(), x, create_graph=True)
                second = tenon.autograd.grad(grad.sum(), x)[0].tolist()
                self.assertEqual([abs(y) for y in second[:4]], [0.] * 4)
                self.assertAlmostEqual(second[4], .79788, delta=5e-3)

    def test_incomplete_gamma_functions_of_large_parameters(self):
        for a in (1e8, 1e10, 1e13, 1e30):
            middle, root = tenon.tensor(a, dtype=tenon.float64), a ** .5
            half = float(tenon.special.gammainc(middle, middle))
            self.assertAlmostEqual(half, .5 + 1 / (3 * (2 * 3.141592653589793) ** .5 * root), delta=1e-12)
            x = middle + tenon.tensor([-2., -.3, 1., 3.], dtype=tenon.float64) * root
            lower, upper = tenon.special.gammainc(middle, x), tenon.special.gammaincc(middle, x)
            self.assertTrue(tenon.allclose(lower + upper, tenon.ones_like(x), rtol=1e-14))
            beyond = tenon.stack([middle / 2, middle * 2])
            self.assertEqual(tenon.special.gammainc(middle, beyond).tolist(), [0., 1.])
            self.assertEqual(tenon.special.gammaincc(middle, beyond).tolist(), [1., 0.])
        a, b = (tenon.tensor(v, dtype=tenon.float64) for v in (99999999., 1e8))  # one way beside the other
        x = b + tenon.tensor([-3., 0., 2.], dtype=tenon.float64) * 1e4
        self.assertTrue(tenon.allclose(tenon.special.gammainc(a, x - 1), tenon.special.gammainc(b, x), rtol=1e-7))

    def test_pairs_in_a_dimension_of_one_may_have_any_stride(self):
        parts = tenon.arange(20.).as_strided((1, 3, 2), (1, 1, 3))
        self.assertEqual(tenon.complex(parts, parts)[0].tolist(), [[0, 3 + 3j], [1 + 1j, 4 + 4j], [2 + 2j, 5 + 5j]])
        self.assertEqual(tenon.polar(parts, parts * 0).shape, (1, 3, 2))
        pairs = tenon.view_as_complex(tenon.arange(20.).as_strided((1, 3, 2), (1, 4, 1)))
        self.assertEqual((pairs.stride(), pairs.tolist()), ((0, 2), [[1j, 4 + 5j, 8 + 9j]]))
        with self.assertRaisesRegex(RuntimeError, "Tensor must have a stride divisible by 2 for all but last dimension"):
            tenon.view_as_complex(tenon.arange(20.).as_strided((2, 2), (3, 1)))


    def test_log1p_of_large_complex_numbers(self):
        for z, wanted in ((1e250 + 1e250j, 575.9928468387914 + 0.7853981633974483j), (-1 + 1e250j, 575.6462732485114 + 1.5707963267948966j),
                          (1e250 + 1e-250j, 575.6462732485114 + 0j), (1e-250 + 2e-250j, 1e-250 + 2e-250j)):
            made = tenon.log1p(tenon.tensor(z, dtype=tenon.complex128)).item()
            self.assertAlmostEqual(made.real / wanted.real, 1.0, places=12)
            self.assertAlmostEqual(made.imag, wanted.imag, places=12)

    def test_running_logarithms_of_complex_numbers_that_are_zero_or_none(self):
        inf, nan = float("inf"), float("nan")
        made = tenon.logcumsumexp(tenon.tensor([complex(-inf, inf), complex(-inf, 1), 1.2 + 2.1j, complex(2.4, inf)]), 0)
        self.assertEqual(made[:2].tolist(), [complex(-inf, 0)] * 2)
        self.assertTrue(tenon.allclose(made[2], tenon.tensor(1.2 + 2.1j)))
        for values in ([1 + 1j, complex(1, nan)], [complex(nan, 1)], [complex(-inf, nan), 1 + 1j]):
            last = tenon.logcumsumexp(tenon.tensor(values), 0)[-1]
            self.assertTrue(last.real.isnan() and last.imag.isnan())
        small = tenon.logcumsumexp(tenon.tensor([1 + 0j, -30 + 0j, -30 + 0j], dtype=tenon.complex128), 0)
        self.assertAlmostEqual((small[2] - 1).real.item() / 6.885106e-14, 1.0, places=2)

    def test_histc_counts_elements_that_are_large_or_all_alike(self):
        most = tenon.finfo(tenon.float32).max
        for value, wanted in ((1e10, [0, 0, 3, 0]), (-1e30, [0, 0, 3, 0]), (most, [0, 0, 0, 3]), (-most, [3, 0, 0, 0]), (3.0, [0, 0, 3, 0])):
            self.assertEqual(tenon.histc(tenon.full((3,), value), bins=4).tolist(), wanted)
        self.assertEqual(tenon.histc(tenon.tensor([-most, most, 0.0]), bins=4).tolist(), [1, 0, 1, 1])

    def test_differences_between_a_tensor_and_itself_joined_to_it(self):
        x = tenon.tensor([1.0, 4.0, 9.0])
        self.assertEqual(tenon.diff(x, prepend=x, append=x).tolist(), [3, 5, -8, 3, 5, -8, 3, 5])
        self.assertEqual(tenon.diff(x, n=8, append=x, prepend=x).shape, (1,))

    def test_slopes_by_complex_distances(self):
        x = tenon.tensor([1.0, 4.0, 9.0])
        self.assertEqual(tenon.gradient(x, spacing=2j)[0].tolist(), [-1.5j, -2j, -2.5j])
        self.assertEqual(tenon.gradient(x * 1j, spacing=[2j], edge_order=2)[0].tolist(), [1, 2, 3])

    def test_integrals_over_nothing_are_nothing(self):
        for shape, dim in (((0, 2), 0), ((2, 0), 1), ((0,), 0), ((1, 2), 0)):
            y, wanted = tenon.ones(shape), [n if d != dim else 0 for d, n in enumerate(shape)]
            self.assertEqual(list(tenon.cumulative_trapezoid(y, dim=dim).shape), wanted)
            self.assertEqual(list(tenon.cumulative_trapezoid(y, y, dim=dim).shape), wanted)

    def test_ranges_of_halves_and_of_whole_numbers(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = tenon.range(-300, 10, dtype=tenon.bfloat16)
            self.assertEqual(made.tolist(), tenon.arange(-300, 11).to(tenon.bfloat16).tolist())
            made = tenon.range(0, 2 ** 52, 2.0 ** 51, dtype=tenon.int64)
            self.assertEqual((made.tolist(), made.dtype), ([0, 2 ** 51, 2 ** 52], tenon.int64))
            self.assertEqual(tenon.range(2 ** 53 + 1, 2 ** 53 + 3, dtype=tenon.int64).tolist(), [2 ** 53 + i for i in (1, 2, 3)])
            self.assertEqual(tenon.range(0.5, 3.5, dtype=tenon.int32).tolist(), [0, 1, 2, 3])
            with self.assertRaisesRegex(RuntimeError, "step must be nonzero"):
                tenon.range(-3, 3, 0.7, dtype=tenon.int32)

    def test_the_condition_of_a_singular_matrix_is_infinite_in_every_norm(self):
        x = tenon.eye(3).repeat(3, 1, 1)
        x[1, 2, 2] = 0
        for p in (1, -1, float("inf"), "fro", "nuc"):
            self.assertTrue(tenon.linalg.cond(x, p)[1].isinf())
        self.assertAlmostEqual(tenon.linalg.cond(x, "nuc")[0].item(), 9.0, places=4)

    def test_einsum_lays_its_result_out_as_it_is_asked_for(self):
        w, x = tenon.ones(5, 3), tenon.ones(2, 3)
        self.assertEqual(tenon.einsum("fd,bd->bf", w, x).stride(), (5, 1))
        self.assertEqual(tenon.einsum("fd,bd->fb", w, x).stride(), (2, 1))
        self.assertEqual(tenon.einsum("bij,bjk->kib", tenon.ones(4, 2, 3), tenon.ones(4, 3, 5)).stride(), (2, 1, 10))
        self.assertEqual(tenon.einsum("dc,fcb->fd", tenon.ones(5, 4), tenon.ones(6, 4, 3)).stride(), (1, 6))

    def test_sizes_and_dtypes_that_are_asked_for(self):
        self.assertIs(type(() + tenon.Size([1])), tenon.Size)
        with self.assertRaisesRegex(TypeError, r"can only concatenate tuple \(not list\) to torch.Size"):
            tenon.Size([1]) + [2]
        truth, small = tenon.ones(2, dtype=tenon.bool), tenon.ones(2, 2, dtype=tenon.uint8)
        self.assertIs(tenon.addr(small, truth, truth).dtype, tenon.uint8)
        self.assertIs(tenon.addr(small > 0, truth, small[0], alpha=2).dtype, tenon.uint8)
        self.assertEqual(tenon.randperm(256, dtype=tenon.uint8).sum().item(), 32640)
        with self.assertRaisesRegex(RuntimeError, "Unknown Complex ScalarType for Long"):
            tenon.int64.to_complex()
        for lost in (lambda x: tenon.linspace(x, 3, 4), lambda x: tenon.logspace(0, x, 4)):
            with self.assertRaisesRegex(RuntimeError, "derivative for aten::l"):
                lost(tenon.tensor(3.0, requires_grad=True))
        last = tenon.ones(2, 3, 4, 5).contiguous(memory_format=tenon.channels_last)
        self.assertEqual(tenon.ones(120).resize_as_(last, memory_format=tenon.preserve_format).stride(), last.stride())

    def test_tangents_of_slopes_of_losses_count_the_elements_of_the_result(self):
        few, many = tenon.tensor([0.5], dtype=tenon.float64), tenon.arange(3, dtype=tenon.float64)
        for op, options in ((tenon.ops.aten.mse_loss, ()), (tenon.ops.aten.smooth_l1_loss, (1, 1.0)), (tenon.ops.aten.huber_loss, (1, 1.0))):
            for first in (True, False):
                slope = tenon.func.grad(lambda x: op(*((x, many) if first else (many, x)), *options))  # noqa: B023
                found = tenon.func.jvp(slope, (few,), (tenon.ones_like(few),))[1]
                self.assertEqual(found.tolist(), [2.0 if op is tenon.ops.aten.mse_loss else 2 / 3])

    def test_whole_powers_of_two_leave_the_dtype_of_a_complex_number(self):
        one = tenon.tensor(1 + 2j, dtype=tenon.complex128)
        for power in (tenon.tensor([1, 200], dtype=tenon.int32), tenon.tensor([1, 200])):
            made = tenon.ldexp(one, power)
            self.assertEqual((made.dtype, made.tolist()), (tenon.complex128, [2 + 4j, 2.0 ** 200 + 2.0 ** 201 * 1j]))
        self.assertEqual(tenon.ldexp(one, tenon.tensor([True])).tolist(), [2 + 4j])

    def test_the_slope_of_powers_of_whole_numbers_has_all_digits(self):
        power = tenon.tensor([0.25, -1.5], dtype=tenon.float64, requires_grad=True)
        made, = tenon.autograd.grad(tenon.pow(tenon.tensor([3, 5]), power).sum(), power)
        wanted = tenon.tensor([1.4458550834263613, 0.14395250311072008], dtype=tenon.float64)
        tenon.testing.assert_close(made, wanted, rtol=1e-15, atol=0)
        power = tenon.tensor([0.25 + 1j, 1 + 1j, 0, -1 + 1j, 1], dtype=tenon.complex128, requires_grad=True)
        made, = tenon.autograd.grad(tenon.pow(tenon.tensor([-2, 0, 0, 0, 0]), power).real.sum(), power)
        self.assertAlmostEqual(made[0].item(), -0.1574794776286286 - 0.050342140711618064j, places=15)
        self.assertEqual(made[[1, 2, 4]].tolist(), [0, 0, 0])
        self.assertTrue(made[3].isnan())

    def test_bounds_of_logit_that_are_none(self):
        inf, nan = tenon.inf, tenon.nan
        for eps, wanted in ((-1, [nan, inf, 6.25, 4.0, inf, nan]), (nan, [-4 / 15, inf, 6.25, 4.0, inf, -4 / 15]),
                            (None, [nan, inf, 6.25, 4.0, inf, nan]), (0.3, [0, 0, 0, 4.0, 0, 0])):
            x = tenon.tensor([-1.5, 0, 0.2, 0.5, 1, 2.5], dtype=tenon.float64, requires_grad=True)
            made, = tenon.autograd.grad(tenon.logit(x, eps).sum(), x)
            tenon.testing.assert_close(made, tenon.tensor(wanted, dtype=tenon.float64), equal_nan=True)
            made = aten.logit_backward(tenon.ones(6, dtype=tenon.float64), x.detach(), eps)
            tenon.testing.assert_close(made, tenon.tensor(wanted, dtype=tenon.float64), equal_nan=True)

    def test_powers_are_summed_in_the_dtype_that_is_asked_for(self):
        for values, dtype, wanted in (([1 + 2j, 3 - 4j], tenon.complex64, 5 + 5 ** 0.5), ([-128, 3], tenon.int8, 131), ([True, False], tenon.bool, 1)):
            made, = tenon._foreach_powsum([tenon.tensor(values, dtype=dtype)], 1, dtype=tenon.float64)
            self.assertEqual(made.dtype, tenon.float64)
            self.assertAlmostEqual(made.item(), wanted, places=6)
        for kwargs, dtype in (({}, tenon.int64), ({"dtype": tenon.int64}, tenon.float32)):
            with self.assertRaisesRegex(NotImplementedError, "\"powsum_cpu\" not implemented for 'Long'"):
                tenon._foreach_powsum([tenon.ones(2, dtype=dtype)], 1, **kwargs)

    def test_a_system_tells_of_each_of_its_own_matrices(self):
        a = tenon.tensor([[1.0, 2], [3, 4]])
        for left, right, options, wanted in ((a, (3, 2, 1), {}, ()), (a.expand(3, 1, 2, 2), (1, 4, 2, 2), {"left": False}, (3, 1)),
                                             (a[None], (0, 2, 2), {}, (1,)), (a[None], (4, 2, 2), {}, (1,))):
            info = tenon.linalg.solve_ex(left, tenon.ones(right), **options).info
            self.assertEqual((info.shape, info.dtype), (wanted, tenon.int32))
            self.assertEqual(aten._linalg_solve_ex(left, tenon.ones(right), **options)[3].shape, wanted)
        with self.assertRaisesRegex(tenon.linalg.LinAlgError, r"torch.linalg.solve_ex: \(Batch element 1\): The solver failed because"):
            tenon.linalg.solve_ex(tenon.stack([a, a * 0])[:, None], tenon.ones(2, 3, 2, 2), check_errors=True)

    def test_the_median_of_nothing_is_what_nan_becomes(self):
        for dtype in (tenon.int64, tenon.int32, tenon.int16, tenon.uint8):
            for call in (tenon.median, tenon.nanmedian):
                made = call(tenon.empty(0, 3, dtype=dtype))
                self.assertEqual((made.dtype, made.item()), (dtype, {tenon.int64: -2 ** 63, tenon.int32: -2 ** 31}.get(dtype, 0)))

    def test_of_no_rows_nothing_is_drawn_whatever_there_is_to_draw(self):
        for categories in (0, 3):
            self.assertEqual(tenon.multinomial(tenon.ones(0, categories), 7, True).shape, (0, 7))
        with self.assertRaisesRegex(RuntimeError, "invalid multinomial distribution"):
            tenon.multinomial(tenon.ones(2, 0), 7, True)

    def test_histograms_of_no_dimensions_count_nothing(self):
        for shape in ((3, 0), (0, 0)):
            self.assertEqual(tenon.histogramdd(tenon.empty(shape), bins=[]).hist.item(), 0.0)


class Refusals(unittest.TestCase):
    def refused(self, text, call):
        with self.assertRaises(RuntimeError) as caught:
            call()
        self.assertEqual(str(caught.exception), text)

    def test_weights_of_covariances_are_not_negative_nor_all_zero(self):
        x = tenon.arange(10.0).view(2, 5)
        self.refused("cov(): fweights cannot be negative", lambda: tenon.cov(x, fweights=tenon.tensor([1, 2, -1, 1, 1])))
        self.refused("cov(): aweights cannot be negative", lambda: tenon.cov(x, aweights=tenon.tensor([1.0, 2, -1, 1, 1])))
        for weights in ({"aweights": tenon.zeros(5)}, {"fweights": tenon.tensor([1, 0, 1, 0, 0]), "aweights": tenon.tensor([0.0, 1, 0, 1, 1])}):
            self.refused("cov(): weights sum to zero, can't be normalized", lambda: tenon.cov(x, **weights))  # noqa: B023
        self.refused("cov(): weights sum to zero, can't be normalized", lambda: tenon.cov(x[:, :0], aweights=tenon.ones(0)))

    def test_what_cannot_be_drawn_is_refused_in_the_words_of_the_way_it_is_drawn(self):
        several, one = "invalid multinomial distribution (encountering probability entry %s)", \
            "probability tensor contains either `inf`, `nan` or element < 0"
        for bad, why in ((-1.0, "< 0"), (tenon.nan, "< 0"), (tenon.inf, "= infinity or NaN")):
            weights = tenon.tensor([1.0, bad, 2.0])
            self.refused(several % why, lambda: tenon.multinomial(weights, 2, True))  # noqa: B023
            self.refused(one, lambda: tenon.multinomial(weights, 1, True))  # noqa: B023
            self.refused(one, lambda: tenon.multinomial(weights, 2))  # noqa: B023
        self.refused("number of categories cannot exceed 2^24", lambda: tenon.multinomial(tenon.ones(1).expand(2**24 + 1), 1))
        self.refused("multinomial expects Long tensor out, got: Float", lambda: tenon.multinomial(tenon.ones(2), 1, out=tenon.zeros(1)))

    def test_a_negative_length_and_an_order_that_is_none(self):
        self.refused("start (0) + length (-1) exceeds dimension size (10).", lambda: tenon.narrow_copy(tenon.ones(10), 0, 0, -1))
        self.refused("Dimension out of range (expected to be between 0 and 0, but got 3 at index 0).  NB: negative dims not currently "
                     "supported; file an issue if you want it.", lambda: tenon.empty_permuted([2], [3]))

    def test_functions_of_elements_are_not_recorded_and_say_so(self):
        x, other = tenon.ones(3, requires_grad=True), tenon.arange(3.)
        made = x.clone()
        for name, call in (("apply_", lambda: made.apply_(lambda a: a * 2)), ("map_", lambda: made.map_(other, max)),
                           ("map_", lambda: other.map_(x, max)), ("map2_", lambda: made.map2_(other, other, max)),
                           ("map2_", lambda: other.map2_(other, x, max))):
            with self.assertRaisesRegex(RuntimeError, r"Can't call %s\(\) on Variable that requires grad. Use "
                                                      r"var.detach\(\).%s\(\) instead." % (name, name)):
                call()
        self.assertEqual((made.tolist(), other.tolist()), ([1.] * 3, [0., 1., 2.]))
        self.assertEqual(other.map2_(tenon.ones(1), x.detach(), lambda a, b, c: a * 10 + b + c).tolist(), [2., 12., 22.])
        self.assertEqual(other.map_(tenon.ones(1), max).apply_(lambda a: -a).tolist(), [-2., -12., -22.])


    def test_norms_of_complex_orders_batches_and_devices_that_do_not_fit(self):
        x = tenon.ones(2, 2, 2)
        with self.assertRaisesRegex(RuntimeError, "Expected a non-complex scalar as the order of norm"):
            tenon.linalg.matrix_norm(x, ord=1 + 2j)
        for tau, other, name in ((2, 1, "tau"), (1, 2, "other")):
            with self.assertRaisesRegex(RuntimeError, r"batch dimensions of %s to be equal to input.shape\[:-2\], but got \[2\]" % name):
                tenon.ormqr(x[:1], tenon.ones(tau, 2), tenon.ones(other, 2, 2))
        with self.assertRaisesRegex(RuntimeError, "meshgrid expects all tensors to have the same device"):
            tenon.meshgrid(tenon.ones(2), tenon.ones(2, device="meta"), indexing="ij")
        with self.assertRaisesRegex(TypeError, "argument 'warn_only' must be bool, not str"):
            tenon.use_deterministic_algorithms(True, warn_only="x")
        with self.assertRaisesRegex(RuntimeError, r"form torch.Tensor\(tensor, device=device\) is not supported"):
            tenon.Tensor(tenon.ones(2), device="cpu")

    def test_histograms_of_whole_numbers(self):
        with self.assertRaisesRegex(RuntimeError, "torch.histc: max must be larger than min"):
            tenon.histc(tenon.tensor([1, 2]), bins=4, min=5, max=1)
        for bins, kernel in ((4, "histogramdd"), (tenon.tensor([0, 1]), "histogram_cpu")):
            with self.assertRaisesRegex(NotImplementedError, "\"%s\" not implemented for 'Long'" % kernel):
                tenon.histogram(tenon.tensor([1, 2]), bins)


class GivenResults(unittest.TestCase):
    def test_a_given_result_of_another_dtype_gets_what_there_is_without_it(self):
        for dtype in (tenon.float16, tenon.bfloat16, tenon.float8_e5m2, tenon.uint16):
            x = tenon.tensor([33000.0, 1.0009765625, 3.001]).to(dtype)
            for given in (tenon.float32, tenon.float64, tenon.complex64):
                for call in ((tenon.add, x, x), (tenon.mul, x, x), (tenon.exp, x), (tenon.div, x, x[2]), (tenon.add, x, 0.1),
                             (tenon.addcmul, x, x, x)):
                    try:
                        wanted = call[0](*call[1:]).to(given)
                    except NotImplementedError:
                        continue
                    self.assertEqual(call[0](*call[1:], out=tenon.empty(0, dtype=given)).tolist(), wanted.tolist(), (call[0].__name__, dtype))
        x = tenon.tensor([33000.0] * 5000, dtype=tenon.float16).reshape(50, 100)
        self.assertTrue(tenon.add(x, x, out=tenon.zeros(100, 50).t()).isinf().all())

    def test_operators_over_lists_write_given_lists(self):
        x = [tenon.ones(2, 3), tenon.ones(4)]
        out = [tenon.zeros(2, 3), tenon.zeros(0)]
        self.assertIsNone(aten._foreach_add.Scalar_out(x, 2, out=out))
        self.assertEqual([t.tolist() for t in out], [[[3.0] * 3] * 2, [3.0] * 4])
        with self.assertRaisesRegex(RuntimeError, "expected an out= argument of size 2, got size 1"):
            aten._foreach_add.Scalar_out(x, 2, out=out[:1])
        kept = [tenon.zeros(5), tenon.zeros(4, dtype=tenon.float64)]
        with self.assertRaisesRegex(RuntimeError, "Expected out tensor to have dtype float, but got double instead"):
            aten._foreach_add.Scalar_out(x, 2, out=kept)
        self.assertEqual([t.tolist() for t in kept], [[0.0] * 5, [0.0] * 4])  # neither resized nor written

    def test_a_given_tensor_with_as_many_elements_keeps_its_sizes(self):
        for make, wanted in ((lambda out: tenon.range(1, 4, out=out), [1, 2, 3, 4]), (lambda out: tenon.logspace(0, 3, 4, base=2, out=out), [1, 2, 4, 8])):
            x = tenon.zeros(2, 3)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(make(x.narrow(1, 1, 2)).tolist(), [wanted[:2], wanted[2:]])
            self.assertEqual(x.tolist(), [[0] + wanted[:2], [0] + wanted[2:]])

    def test_pieces_go_to_given_tensors(self):
        x = tenon.arange(6).view(2, 3)
        out = [tenon.empty(0, dtype=tenon.int64) for _ in range(2)]
        self.assertIsNone(tenon.unbind_copy(x, out=out))
        self.assertEqual([t.tolist() for t in out], [[0, 1, 2], [3, 4, 5]])
        self.assertIsNone(tenon.split_with_sizes_copy(x, [1, 1], out=out[:2]))
        self.assertEqual([t.tolist() for t in out], [[[0, 1, 2]], [[3, 4, 5]]])

    def test_a_result_may_be_given_for_the_input_without_elements(self):
        for shown in (lambda x: x, lambda x: x.detach()):
            x = tenon.zeros(2, 0)
            self.assertEqual(tenon.mv(x, tenon.zeros(0), out=shown(x)).tolist(), [0.0, 0.0])

    def test_results_that_share_memory_are_refused(self):
        text = "some elements of two written-to tensors refer to a single memory location"
        x, one, all_of_it = tenon.tensor([[2.0, 1.0], [0.0, 3.0]]), tenon.zeros(2, 2), tenon.zeros(3, 2)
        nothing = tenon.zeros(100)[:0]
        for call in (lambda: tenon.svd(x, out=(one, one[0], one)), lambda: tenon.svd(x, out=(one, nothing, nothing.detach())),
                     lambda: tenon.linalg.qr(x, out=(all_of_it[:2], all_of_it[1:])),
                     lambda: tenon.aminmax(x, dim=0, out=(one[0], one[0])),
                     lambda: aten.unbind_copy.int_out(x, out=[one[0], one[0]]),
                     lambda: aten.split_copy.Tensor_out(x, 1, out=[one[:1], one[:1]])):
            with self.assertRaisesRegex(RuntimeError, text):
                call()
            self.assertEqual((one.tolist(), all_of_it.tolist(), nothing.shape), ([[0.0] * 2] * 2, [[0.0] * 2] * 3, (0,)))
        tenon.aminmax(x, dim=0, out=(one[0], one[1]))
        self.assertEqual(one.tolist(), [[0.0, 1.0], [2.0, 3.0]])
        beside = tenon.zeros(2, 4)
        tenon.linalg.qr(x, out=(beside[:, :2], beside[:, 2:]))
        self.assertTrue(tenon.allclose(beside[:, :2] @ beside[:, 2:], x))

    def test_what_is_refused_late_leaves_every_result_as_it_was(self):
        x, first = tenon.ones(3, 3), tenon.zeros(2)
        for out in (tenon.zeros(5, requires_grad=True), tenon.zeros(5, requires_grad=True)[1:]):
            with self.assertRaisesRegex(RuntimeError, "leaf Variable that requires grad is being used in an in-place operation"):
                aten.linalg_matrix_power.out(x, 3, out=out)
            self.assertEqual(out.dim(), 1)
        with self.assertRaisesRegex(RuntimeError, "doesn't match the broadcast shape"):
            aten.split_copy.Tensor_out(x[0], 2, out=[first, tenon.zeros(())])
        self.assertEqual(first.tolist(), [0.0, 0.0])
        with self.assertRaisesRegex(NotImplementedError, "Cannot copy out of meta tensor"):
            tenon._foreach_copy_([first, tenon.zeros(2)], [tenon.ones(2), tenon.ones(2, device="meta")])
        self.assertEqual(first.tolist(), [0.0, 0.0])
        with FakeTensorMode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            small, kept = tenon.zeros(2, 2), tenon.zeros(3)[:1]
            with self.assertRaisesRegex(RuntimeError, "it would move away from under the others"):
                tenon.linalg.qr(tenon.ones(3, 3), out=(small, kept))
            self.assertEqual((small.shape, kept.shape), ((2, 2), (1,)))

    def test_eigenvalues_and_vectors_are_cast_to_what_is_given(self):
        x = tenon.tensor([[0.0, 1.0], [-1.0, 0.5]], dtype=tenon.float64)
        wanted = tenon.linalg.eig(x)
        for dtypes in ((tenon.complex64, tenon.complex64), (tenon.complex128, tenon.complex64)):
            out = tuple(tenon.zeros(0, dtype=dtype) for dtype in dtypes)
            tenon.linalg.eig(x, out=out)
            for made, one, dtype in zip(out, wanted, dtypes):
                self.assertTrue(tenon.equal(made, one.to(dtype)))
        with self.assertRaisesRegex(RuntimeError, "can't be cast to the desired output type Double"):
            tenon.linalg.eig(x, out=(tenon.zeros(2, dtype=tenon.float64), tenon.zeros(2, 2, dtype=tenon.complex128)))

    def test_what_is_made_like_a_tensor_goes_to_a_given_one_with_a_warning_where_that_is_resized(self):
        out = tenon.ones(5)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.assertIs(aten.zeros_like.out(tenon.ones(2, 3), out=out), out)
        self.assertEqual(out.tolist(), [[0.0] * 3] * 2)
        self.assertIn("An output with one or more elements was resized since it had shape [5]", str(told[0].message))
        self.assertEqual(aten.full_like.out(tenon.ones(2), 2.5, out=tenon.ones(0, dtype=tenon.int64)).tolist(), [2, 2])
        with self.assertRaisesRegex(RuntimeError, "Expected out tensor to have dtype float, but got double instead"):
            aten.clone.out(tenon.ones(2), out=tenon.ones(2, dtype=tenon.float64))


class Weights(unittest.TestCase):
    def test_weights_of_classes_in_more_dimensions_are_read_in_order(self):
        x, target = tenon.ones(2, 3), tenon.tensor([2, 0])
        weight = tenon.tensor([[2.0, 3.0, 5.0]])
        backward = tenon.ops.aten.nll_loss_backward
        grad = backward(tenon.ones(()), x, target, weight, 2, -100, tenon.ones(()))
        self.assertEqual(grad.tolist(), [[0, 0, -5.0], [-2.0, 0, 0]])
        apart = tenon.zeros(1, 6)[:, ::2]
        with self.assertRaisesRegex(RuntimeError, "either for all or no classes"):
            backward(tenon.ones(()), x, target, apart, 2, -100, tenon.ones(()))


class Angles(unittest.TestCase):
    def test_the_gradient_of_the_angle_of_a_real_number_is_zero_even_at_nan(self):
        for dtype in (tenon.float32, tenon.float64, tenon.bfloat16):
            x = tenon.tensor([1.0, float("nan"), -2.0, -0.0, float("-inf")], dtype=dtype, requires_grad=True)
            y = x.angle()
            self.assertEqual(str(y.float().tolist()), str(tenon.tensor([0, float("nan"), 3.1415927, 0, 3.1415927]).to(dtype).float().tolist()))
            self.assertEqual(tenon.autograd.grad((y * y).sum(), x)[0].tolist(), [0.0] * 5)
        self.assertEqual(tenon.tensor([1, 2], dtype=tenon.uint32).angle().tolist(), [0.0, 0.0])
        self.assertEqual(tenon.zeros(2, 3).t().angle().stride(), (1, 3))


class Places(unittest.TestCase):
    def test_places_of_a_grid_that_are_nowhere_or_far_away(self):
        nan, inf = float("nan"), float("inf")
        x = (tenon.arange(18.0) + 1).view(1, 1, 3, 6)
        grid = tenon.tensor([[nan, 0.3], [0.3, nan], [inf, 0.3], [-inf, 0.3], [1e30, 0.2], [0.2, -1e30]]).view(1, 1, 6, 2)
        wanted = {("bilinear", "zeros"): [nan] * 4 + [0, 0], ("bilinear", "border"): [9.7, 4.4, 14.7, 9.7, 13.8, 4.1],
                  ("nearest", "zeros"): [0] * 6, ("nearest", "border"): [7, 4, 12, 7, 12, 4],
                  ("bicubic", "zeros"): [nan] * 4 + [0, 0], ("bicubic", "border"): [nan] * 4 + [14.335, 4.136]}
        for dtype in (tenon.float32, tenon.float64):
            for (mode, padding), numbers in wanted.items():
                got = tenon.nn.functional.grid_sample(x.to(dtype), grid.to(dtype), mode, padding, False).flatten()
                self.assertTrue(tenon.allclose(got, tenon.tensor(numbers, dtype=dtype), atol=1e-3, equal_nan=True), (mode, padding, got))
        # A sample that is nowhere has no element that could have a gradient.
        y = x.clone().requires_grad_()
        tenon.nn.functional.grid_sample(y, grid[:, :, :1], align_corners=False).sum().backward()
        self.assertEqual(y.grad.abs().sum().item(), 0)

    def test_gradients_of_weights_in_bags_are_rounded_once(self):
        for dtype in (tenon.float16, tenon.bfloat16):
            rows = (tenon.arange(12.0).view(4, 3) * 0.37 - 2).to(dtype)
            grad = tenon.tensor([[1.37, -2.61, 1.234]]).to(dtype)
            ids, starts = tenon.tensor([3, 0, 2, 1]), tenon.zeros(1, dtype=tenon.int64)
            made = aten._embedding_bag_per_sample_weights_backward(grad, rows, ids, starts, tenon.zeros(4, dtype=tenon.int64), 0)
            wanted = (grad.double() * rows.double()[ids]).sum(1).to(dtype)
            self.assertEqual((made.dtype, made.tolist()), (dtype, wanted.tolist()))


class Orders(unittest.TestCase):
    def test_a_difference_the_other_way_round_lies_as_the_other_does(self):
        x, y = tenon.ones(2, 3, 2).transpose(1, 2), tenon.ones(2, 6)[:, ::2]
        self.assertEqual(tenon.rsub(x, y).stride(), (6, 3, 1))
        self.assertEqual(tenon.sub(x, y).stride(), (6, 1, 2))
        with self.assertRaisesRegex(RuntimeError, r"tensor a \(2\) must match the size of tensor b \(3\)"):
            tenon.rsub(tenon.ones(3), tenon.ones(2))

    def test_an_expanded_gradient_of_shrinking_lies_as_its_input(self):
        x, grad = tenon.ones(3, 2).t(), tenon.ones(3).expand(2, 3)
        for op in tenon.ops.aten.softshrink_backward, tenon.ops.aten.hardshrink_backward:
            self.assertEqual((op(grad, x, 0.5).stride(), op(grad.contiguous(), x, 0.5).stride()), ((1, 2), (3, 1)))
            self.assertEqual(op(tenon.ones(2, 6)[:, ::2], x, 0.5).stride(), (3, 1))
            self.assertEqual(op(grad, x, 0.5).tolist(), [[1.0] * 3] * 2)

    def test_dimensions_of_size_1_of_a_product_have_strides_as_of_a_fresh_tensor(self):
        for equation, sizes, strides in (("ij,jk->ik", ((1, 3), (3, 4)), (4, 1)), ("bij,bjk->bik", ((5, 1, 3), (5, 3, 4)), (4, 4, 1)),
                                         ("bhid,bhjd->bhij", ((1, 2, 3, 4), (1, 2, 5, 4)), (30, 15, 5, 1)),
                                         ("bhij,bhjd->bihd", ((1, 2, 3, 4), (1, 2, 4, 5)), (15, 5, 15, 1)),
                                         ("nd,md->nm", ((1, 4), (3, 4)), (3, 1)), ("bij,bjk->bik", ((5, 2, 3), (5, 3, 1)), (2, 1, 1))):
            self.assertEqual(tenon.einsum(equation, *(tenon.ones(size) for size in sizes)).stride(), strides, equation)

    def test_angles_of_complex_numbers_are_row_major(self):
        x = tenon.complex(tenon.arange(6.0).view(3, 2) - 2, tenon.ones(3, 2)).t()
        self.assertEqual((tenon.angle(x).stride(), tenon.angle(x).tolist()), ((3, 1), tenon.angle(x.contiguous()).tolist()))
        self.assertEqual(tenon.angle(x.real).stride(), (1, 2))

    def test_a_gradient_of_cross_entropy_lies_as_a_tensor_like_the_input(self):
        p, one = tenon.full((4,), 0.3), tenon.ones(())
        for x, y, strides in ((p.expand(2, 4), tenon.ones(4, 2).t(), (4, 1)), (p.view(2, 2), tenon.ones(2, 2).t(), (2, 1)),
                              (p.view(2, 2).t(), tenon.ones(2, 2), (1, 2))):
            self.assertEqual(aten.binary_cross_entropy_backward(one, x, y).stride(), strides)
            self.assertEqual(aten.log_sigmoid_backward(x, y, y).stride(), strides)

    def test_a_line_of_one_channel_that_comes_last_gives_channels_that_do(self):
        for call, given, wanted in ((tenon.conv1d, 4, (32, 1, 4)), (tenon.conv_transpose1d, 4, (32, 1, 4)), (tenon.conv1d, 1, (8, 1, 1))):
            weight = tenon.ones(given, 1, 1) if call is tenon.conv1d else tenon.ones(1, given, 1)
            for n in (1, 2):
                x = tenon.arange(8.0 * n).view(n, 8, 1).transpose(1, 2)
                self.assertEqual(call(x, weight).stride(), wanted)
                self.assertEqual(call(x.clone(memory_format=tenon.contiguous_format), weight).tolist(), call(x, weight).tolist())
        self.assertEqual(tenon.conv1d(tenon.ones(2, 1, 8), tenon.ones(4, 1, 1)).stride(), (32, 8, 1))
        self.assertEqual(tenon.conv1d(tenon.ones(2, 8, 3).transpose(1, 2), tenon.ones(4, 3, 1)).stride(), (32, 8, 1))

    def test_a_slope_is_computed_in_the_common_dtype(self):
        x = tenon.tensor([0.3, 0.7])
        made, wanted = (aten.logit_backward(tenon.ones(2, dtype=tenon.float64), x.to(dtype)) for dtype in (tenon.float32, tenon.float64))
        self.assertEqual(made.tolist(), wanted.tolist())


class Means(unittest.TestCase):
    def test_means_of_what_is_scattered_do_not_hang_on_what_fits_the_dtype(self):
        def means(x, index, src, include):
            yield x.scatter_reduce(0, index, src, "mean", include_self=include)
            yield x.index_reduce(0, index, src, "mean", include_self=include)
            yield x.clone().scatter_reduce_(0, index, src, "mean", include_self=include)
            out = tenon.zeros(2, 2, dtype=x.dtype)[:, 0]
            yield tenon.scatter_reduce(x, 0, index, src, "mean", include_self=include, out=out[:1])

        for dtype, value in ((tenon.int8, 100), (tenon.uint8, 200), (tenon.int16, -30000), (tenon.int32, 1 << 30), (tenon.float16, 32768), (tenon.bfloat16, 3)):
            for n in (3, 255, 256, 70000):
                src, index = tenon.full((n,), value, dtype=dtype), tenon.zeros(n, dtype=tenon.int64)
                for include in (True, False):
                    for got in means(tenon.full((1,), value, dtype=dtype), index, src, include):
                        self.assertEqual(got.tolist(), [tenon.tensor(value, dtype=dtype).item()], (dtype, n, include))


    def test_shares_of_a_gradient_do_not_hang_on_what_fits_the_dtype(self):
        for dtype in (tenon.float16, tenon.bfloat16, tenon.float32):
            for reduce in ("mean", "amax"):
                n = 70000
                x, src = tenon.zeros(1, dtype=dtype, requires_grad=True), tenon.zeros(n, dtype=dtype, requires_grad=True)
                y = x.scatter_reduce(0, tenon.zeros(n, dtype=tenon.int64), src, reduce)
                made = tenon.autograd.grad(y, [x, src], tenon.full((1,), 7000.0, dtype=dtype))
                wanted = tenon.tensor(7000.0, dtype=dtype).double().div(n + 1).to(dtype).item()
                self.assertEqual((made[0].dtype, made[0].item()), (dtype, wanted))
                self.assertEqual((made[1].dtype, made[1].unique().tolist()), (dtype, [wanted]))


class Infinities(unittest.TestCase):
    def test_log_sums_of_complex_infinities_are_those_of_their_real_parts(self):
        inf = float("inf")
        wanted = (([complex(-inf, 0), complex(-inf, 1)], complex(-inf, 0)), ([complex(inf, 0), 1 + 1j], complex(inf, 0)),
                  ([complex(-inf, 0), 1 + 1j], 1 + 1j), ([complex(-inf, 2)], complex(-inf, 0)))
        for numbers, sum_ in wanted:
            self.assertEqual(tenon.logsumexp(tenon.tensor(numbers, dtype=tenon.complex128), 0).item(), sum_)

    def test_the_last_nan_of_a_window_wins_in_fractional_pooling_too(self):
        x = tenon.arange(16.0).view(1, 1, 4, 4)
        x[0, 0, 1, 2] = x[0, 0, 0, 0] = float("nan")
        places = tenon.tensor([[[0.3, 0.6]]])
        pool = tenon.nn.functional.fractional_max_pool2d_with_indices
        values, indices = pool(x, 2, output_size=(2, 2), _random_samples=places)
        self.assertEqual((values.isnan().flatten().tolist(), indices.flatten().tolist()), ([True, True, False, False], [0, 6, 13, 15]))
        x[0, 0, 0, 1] = float("nan")
        self.assertEqual(pool(x, 2, output_size=(2, 2), _random_samples=places)[1].flatten().tolist(), [1, 6, 13, 15])


class Sums(unittest.TestCase):
    def test_einsum_of_one_operand_sums_into_int64_whatever_the_sizes(self):
        for dtype, n in ((tenon.bool, 1), (tenon.int32, 1), (tenon.uint8, 2)):
            x = tenon.ones(n, n, dtype=dtype)
            for equation in ("ii", "ij->", "ij->j"):
                self.assertEqual(tenon.einsum(equation, x).dtype, tenon.int64)
            self.assertEqual(tenon.einsum("ij->ji", x).dtype, dtype)
        self.assertEqual(tenon.einsum("i,i->", tenon.ones(1, dtype=tenon.int32), tenon.ones(1, dtype=tenon.int32)).dtype, tenon.int32)


class Layouts(unittest.TestCase):
    def test_rsub_lies_as_what_is_subtracted_from(self):
        x, y = tenon.arange(12.0).view(4, 3).t(), tenon.ones(3, 4)
        self.assertEqual((tenon.rsub(x, y).stride(), tenon.rsub(y, x).stride()), ((4, 1), (1, 3)))
        self.assertEqual(tenon.rsub(x, y, alpha=2).tolist(), (y - 2 * x).tolist())
        self.assertEqual(tenon.rsub(x, y, out=tenon.empty(0)).stride(), (4, 1))
        with self.assertRaisesRegex(RuntimeError, r"The size of tensor a \(3\) must match the size of tensor b \(2\)"):
            tenon.rsub(tenon.ones(2), tenon.ones(3))

    def test_a_given_result_without_elements_lies_as_that_of_the_function(self):
        for dtype in (tenon.float32, tenon.int32):
            x = tenon.ones(24, dtype=dtype).view(2, 3, 4).permute(2, 0, 1)
            for call in (tenon.angle, tenon.deg2rad, tenon.rad2deg, tenon.special.expit):
                self.assertEqual(call(x, out=tenon.empty(0)).stride(), (1, 12, 4))
                self.assertEqual(call(x, out=tenon.empty(4, 2, 3)).stride(), (6, 3, 1))
            self.assertEqual(tenon.float_power(x, 2, out=tenon.empty(0, dtype=tenon.float64)).stride(), (1, 12, 4))
            self.assertEqual(tenon.ldexp(x, tenon.ones(3), out=tenon.empty(0)).stride(), (1, 12, 4))
            self.assertEqual(tenon.isposinf(x, out=tenon.empty(0, dtype=tenon.bool)).stride(), (1, 12, 4))
        self.assertEqual(tenon.ldexp(tenon.ones(5), tenon.ones(4, 10)[:, ::2].t().contiguous().t()).stride(), (1, 4))


class OrderOfRefusals(unittest.TestCase):
    def test_sizes_and_memory_are_refused_before_dtypes(self):
        for device in ("cpu", "meta"):
            number, row, other = tenon.ones((), dtype=tenon.int32, device=device), tenon.ones(3, dtype=tenon.float64, device=device), \
                tenon.ones(2, dtype=tenon.int32, device=device)
            for name in ("add", "fmod", "hypot", "gcd", "atan2", "bitwise_or", "xlogy", "pow", "floor_divide", "remainder", "copysign", "nextafter"):
                call = getattr(tenon.Tensor, name + "_")
                for x, text in ((number, r"output with shape \[\] doesn't match the broadcast shape \[3\]"),
                                (other, r"The size of tensor a \(2\) must match the size of tensor b \(3\)"),
                                (number.expand(3), "more than one element of the written-to tensor"),
                                (other[:1], r"output with shape \[1\]")):
                    with self.assertRaisesRegex(RuntimeError, text, msg=name):
                        call(x, row)


class Masks(unittest.TestCase):
    def test_the_gradient_of_masked_scatter_is_what_was_taken_then_zeros(self):
        grad, mask = tenon.tensor([[1.0, 2, 3], [4, 5, 6]], requires_grad=True), tenon.tensor([[True, False, True], [False, True, True]])
        made = aten.masked_scatter_backward(grad, mask, [3, 2])
        self.assertEqual(made.tolist(), [[1, 3], [5, 6], [0, 0]])
        self.assertEqual(tenon.autograd.grad(made, grad, tenon.arange(6.0).view(3, 2))[0].tolist(), [[0, 0, 1], [0, 2, 3]])
        self.assertEqual(aten.masked_scatter_backward(grad, mask[:, :1], [3]).tolist(), [1, 2, 3])
        with self.assertRaisesRegex(RuntimeError, r"shape '\[2\]' is invalid for input of size 4"):
            aten.masked_scatter_backward(grad, mask, [2])
        for device in ("cpu", "meta"):
            x, source = (tenon.ones(n, device=device, requires_grad=True) for n in (4, 6))
            x.masked_scatter(x.detach() > 0, source).sum().backward()
            self.assertEqual(source.grad.shape, (6,))


class Distributions(unittest.TestCase):
    def test_the_mean_of_geometric_numbers_does_not_hang_on_the_dtype(self):
        for dtype in (tenon.bfloat16, tenon.float16, tenon.float32, tenon.int64):
            tenon.manual_seed(1)
            mean = tenon.empty(1 << 18, dtype=dtype).geometric_(0.3).double().mean().item()
            self.assertAlmostEqual(mean, 1 / 0.3, delta=0.03, msg=dtype)  # five deviations


if __name__ == "__main__":
    harness.main()
