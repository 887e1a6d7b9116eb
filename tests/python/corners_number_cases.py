# SPDX-License-Identifier: MIT
"""Numeric corners of reductions, order, division, powers, casts, sums, ranges and complex numbers. Which corner has which test:

reductions of nothing
    sum, prod, any, all, mean, var, median, norms       reductions_of_nothing_have_their_identity_or_nan
    max, min, amax, amin                                extremes_of_nothing_need_a_dimension
    argmax, argmin                                      places_of_extremes_of_nothing_are_an_index_error
    aminmax, quantile                                   aminmax_and_quantile_of_nothing_are_refused
    over a dimension of size 0                          extremes_over_an_empty_dimension_are_an_index_error
    over another dimension                              extremes_over_another_dimension_of_nothing_are_empty
    norms without an identity                           norms_of_nothing_without_an_identity_are_refused
    sort, cumsum, softmax                               sort_cumsum_and_softmax_of_nothing_are_empty
NaN order
    extremes and median                                 extremes_and_median_propagate_nan_and_report_its_first_place
    fmax, fmin, nanmedian                               fmax_fmin_and_nanmedian_ignore_nan
    sort, topk, kthvalue                                nan_sorts_as_the_largest
    unique                                              unique_keeps_every_nan
ties
    max, min, argmax, argmin, max_pool                  the_first_of_equal_extremes_is_reported
    mode, median                                        mode_gives_the_last_place_and_median_the_lower_middle
    stable sort                                         a_stable_sort_keeps_the_order_of_equals
variance
    the divisor                                         variance_without_degrees_of_freedom_is_nan_or_infinite_and_warns
    an infinity                                         variance_of_an_infinity_is_nan
division
    / of integers                                       true_division_of_integers_is_float
    floor, trunc, None                                  rounding_modes_round_down_toward_zero_or_not_at_all
    an integer by zero                                  integer_division_by_zero_is_an_error_and_writes_nothing
    floats by zero and infinity                         float_division_by_zero_and_infinity_follows_ieee
    signs                                               remainder_has_the_divisors_sign_and_fmod_the_dividends
    1.0 // 0.1                                          floor_division_of_floats_comes_from_fmod
    the most negative integer by -1                     the_most_negative_integer_by_minus_one_is_defined
pow
    integers to negative powers                         integers_to_negative_powers
    0**0, NaN**0, 1**NaN                                powers_of_zero_one_and_nan
    wrapping                                            integer_powers_wrap
    0.5, 2, 3, -1, -2, -0.5                             simple_exponents_have_the_bits_of_their_direct_forms
casts
    float to integer                                    floats_become_integers_by_truncation
    to bool                                             whatever_is_not_zero_is_true
    small integers                                      small_integers_wrap
    to half                                             floats_too_large_for_half_are_infinite
    complex to real                                     complex_to_real_warns_and_drops_the_imaginary_part
    round                                               round_goes_to_even
sums
    cascade                                             a_long_sum_of_floats_keeps_its_digits
    half, bfloat16                                      sums_of_halves_accumulate_in_float
    the 2-norm                                          the_two_norm_is_not_scaled
arange
    length                                              arange_has_the_length_of_its_quotient_rounded_up
    integers                                            arange_of_integers_is_int64
    refusals                                            arange_refuses_steps_and_bounds_that_lead_nowhere
    an integer step of 0 by truncation                  arange_of_integers_by_a_fraction_is_refused
mm with beta = 0, without a common dimension            products_over_nothing_are_zero_and_beta_zero_hides_nan
complex
    gradients                                           gradients_of_complex_numbers_are_conjugate_wirtinger
    real inputs                                         a_real_input_takes_the_real_part_of_a_complex_gradient
    order                                               ordering_complex_numbers_is_refused
    sgn                                                 sgn_of_zero_is_zero
small facts
    sign, sgn                                           sign_of_nan_is_zero
    sqrt, log, rsqrt, reciprocal                        roots_logarithms_and_reciprocals_at_their_edges
    logical_not                                         logical_not_of_nan_is_false
    isclose                                             nan_is_close_to_nothing_and_infinity_to_itself
    logaddexp                                           logaddexp_of_equal_infinities_is_that_infinity
    lerp                                                lerp_from_a_half_on_counts_back_from_its_end
    linspace                                            linspace_of_one_no_and_negative_steps
    cat                                                 cat_skips_legacy_empty_tensors
    where                                               where_sends_back_the_nan_of_the_branch_not_taken
    nan_to_num                                          nan_to_num_maps_infinities_to_the_largest_numbers
    addcdiv                                             addcdiv_of_integers_is_refused
"""

from corner_kit import corner, inf, nan


@corner
def reductions_of_nothing_have_their_identity_or_nan(torch, log):
    x = torch.zeros(0)
    log.add(x.sum(), x.prod(), x.any(), x.all(), x.mean(), x.nansum(), x.median(), x.count_nonzero(), torch.logsumexp(x, 0))
    log.add(x.norm(), x.norm(0), x.norm(1), torch.linalg.vector_norm(x, 0.5))
    y = torch.zeros(0, 2)
    log.add(y.sum(0), y.prod(0), y.any(0), y.all(0), y.mean(0), y.sum(1), torch.zeros(0, dtype=torch.int64).sum())
    log.add(x.var())


@corner
def extremes_of_nothing_need_a_dimension(torch, log):
    for op in (torch.max, torch.min, torch.amax, torch.amin):
        log.tries(op, torch.zeros(0))
        log.tries(op, torch.zeros(3, 0, dtype=torch.int64))


@corner
def places_of_extremes_of_nothing_are_an_index_error(torch, log):
    log.tries(torch.argmax, torch.zeros(0))
    log.tries(torch.argmin, torch.zeros(0, 2))


@corner
def aminmax_and_quantile_of_nothing_are_refused(torch, log):
    log.tries(torch.aminmax, torch.zeros(0))
    log.tries(torch.quantile, torch.zeros(0), 0.5)


@corner
def extremes_over_an_empty_dimension_are_an_index_error(torch, log):
    x = torch.zeros(3, 0)
    for op in (torch.max, torch.min, torch.amax, torch.amin, torch.argmax, torch.argmin, torch.median, torch.mode):
        log.tries(op, x, 1)
    log.tries(torch.kthvalue, x, 1, 1)
    log.tries(torch.kthvalue, torch.zeros(0), 1, 0)


@corner
def extremes_over_another_dimension_of_nothing_are_empty(torch, log):
    x = torch.zeros(3, 0)
    for op in (torch.max, torch.min, torch.amax, torch.amin, torch.argmax, torch.argmin, torch.median, torch.mode):
        log.add(op(x, 0))
    log.add(torch.kthvalue(x, 1, 0))


@corner
def norms_of_nothing_without_an_identity_are_refused(torch, log):
    for order in (inf, -inf, -1, -0.5):
        log.tries(torch.linalg.vector_norm, torch.zeros(0), order)
        log.tries(torch.linalg.vector_norm, torch.zeros(0, 3), order, dim=0)
        log.tries(torch.linalg.vector_norm, torch.zeros(0, 3), order, dim=1)


@corner
def sort_cumsum_and_softmax_of_nothing_are_empty(torch, log):
    for shape in ((0,), (3, 0), (0, 3)):
        x = torch.zeros(shape)
        log.add(torch.sort(x), torch.cumsum(x, 0), torch.cumprod(x, -1), torch.softmax(x, 0), torch.topk(x[:0], 0, 0))


@corner
def extremes_and_median_propagate_nan_and_report_its_first_place(torch, log):
    x = torch.tensor([[1, nan, 3, nan], [nan, 2, inf, 0], [4, 3, 2, -inf]])
    for y in (x, x.double(), x.half(), x.t().contiguous().t()):
        log.add(y.max(1), y.min(1), y.amax(1), y.amin(1), y.argmax(1), y.argmin(1), y.median(1), torch.aminmax(y, dim=1))
    log.add(x.max(), x.min(), x.median(), x.argmax(), x.argmin(), x.cummax(1), x.cummin(1))
    a, b = torch.tensor([nan, 1, nan, -inf]), torch.tensor([1, nan, nan, inf])
    log.add(torch.maximum(a, b), torch.minimum(a, b))
    long = torch.zeros(1000)
    long[[311, 700]] = nan
    log.add(long.max(0), long.min(0), long.argmax(), long.argmin(), long.median(0)[1])


@corner
def fmax_fmin_and_nanmedian_ignore_nan(torch, log):
    a, b = torch.tensor([nan, 1, nan, -inf]), torch.tensor([1, nan, nan, inf])
    log.add(torch.fmax(a, b), torch.fmin(a, b), torch.nanmedian(a), torch.nanmedian(torch.tensor([[3, nan, 1], [nan, nan, nan]]), 1)[0])


@corner
def nan_sorts_as_the_largest(torch, log):
    x = torch.tensor([2, nan, -inf, 1, inf])
    log.add(x.sort(), x.sort(descending=True), x.argmax(), x.topk(2), x.topk(2, largest=False), x.kthvalue(5), x.kthvalue(1), x.msort())


@corner
def unique_keeps_every_nan(torch, log):
    log.add(torch.unique(torch.tensor([nan, 1, nan, 1, 0])), torch.unique(torch.tensor([nan, 1, nan]), return_counts=True)[1])


@corner
def the_first_of_equal_extremes_is_reported(torch, log):
    x = torch.tensor([[2, 1, 2, 1], [1, 1, 1, 1]])
    log.add(x.max(1), x.min(1), x.argmax(1), x.argmin(1), x.argmax(), torch.zeros(1000).argmax(), torch.zeros(1000).max(0))
    log.add(torch.nn.functional.max_pool1d(torch.zeros(1, 1, 4), 2, return_indices=True))
    log.add(torch.nn.functional.max_pool2d(torch.zeros(1, 1, 4, 4), 2, return_indices=True)[1])


@corner
def mode_gives_the_last_place_and_median_the_lower_middle(torch, log):
    log.add(torch.mode(torch.tensor([1, 2, 2, 1, 2, 1])), torch.mode(torch.tensor([3.0, 3, 3])))
    log.add(torch.tensor([4.0, 1, 3, 2]).median(), torch.tensor([5, 1]).median(0)[0], torch.tensor([[4.0, 1, 3, 2]]).median(1))


@corner
def a_stable_sort_keeps_the_order_of_equals(torch, log):
    x = torch.arange(200) % 3
    log.add(torch.sort(x, stable=True)[1], torch.sort(x, stable=True, descending=True)[1], torch.argsort(x.float(), stable=True))


@corner
def variance_without_degrees_of_freedom_is_nan_or_infinite_and_warns(torch, log):
    log.add(torch.tensor([1.0]).var(), torch.tensor([1.0, 2.0]).var(correction=2), torch.tensor([1.0, 2.0, 3.0]).std(correction=5))
    log.add(torch.tensor([2.0, 2.0]).var(correction=2), torch.zeros(0).std(), torch.tensor([1.0, 3.0]).var(correction=0))
    log.add(torch.tensor([[1.0], [2.0]]).var(1), torch.var_mean(torch.tensor([5.0])))


@corner
def variance_of_an_infinity_is_nan(torch, log):
    log.add(torch.tensor([1.0, inf]).var(), torch.tensor([inf, inf]).std(), torch.tensor([-inf, 0, 1]).var(correction=0))


@corner
def true_division_of_integers_is_float(torch, log):
    for dtype in (torch.uint8, torch.int8, torch.int64, torch.bool):
        a = torch.tensor([1, 0, 1], dtype=dtype)
        log.add(a / a, a / 2, a / torch.tensor(0, dtype=dtype), torch.true_divide(a, 3))


@corner
def rounding_modes_round_down_toward_zero_or_not_at_all(torch, log):
    for a in (torch.tensor([7, -7]), torch.tensor([7.0, -7.0])):
        for mode in (None, "floor", "trunc"):
            log.add(torch.div(a, 2, rounding_mode=mode), torch.div(a, -2, rounding_mode=mode))
        log.add(a // 2, a // -2, torch.floor_divide(a, 2))
    log.tries(torch.div, torch.ones(1), 2, rounding_mode="up")


@corner
def integer_division_by_zero_is_an_error_and_writes_nothing(torch, log):
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        a, b = torch.tensor([5, 6, 7], dtype=dtype), torch.tensor([1, 0, 2], dtype=dtype)
        for call in (lambda: a // b, lambda: a // 0, lambda: torch.div(a, b, rounding_mode="trunc"), lambda: a % b, lambda: a % 0,
                     lambda: torch.fmod(a, b), lambda: torch.fmod(a, 0), lambda: torch.div(a, 0, rounding_mode="floor")):
            log.tries(call)
    # The reference has written what came before the zero.
    a = torch.tensor([5, 6, 7])
    for write in (lambda: a.floor_divide_(0), lambda: a.remainder_(0), lambda: a.fmod_(0)):
        log.tries(write)
        log.add(a)


@corner
def float_division_by_zero_and_infinity_follows_ieee(torch, log):
    a = torch.tensor([-5.0, 5, 1, 0, inf, nan])
    for b in (0.0, -0.0, inf, -inf, nan):
        for x in (a, a.double()):
            log.add(x / b, x // b, x % b, torch.fmod(x, b), torch.div(x, b, rounding_mode="trunc"))


@corner
def remainder_has_the_divisors_sign_and_fmod_the_dividends(torch, log):
    for a in (torch.tensor([-5, 5, -6, 0]), torch.tensor([-5.5, 5.5, -6, -0.0])):
        for b in (3, -3):
            log.add(torch.remainder(a, b), torch.fmod(a, b), a % torch.tensor(b))


@corner
def floor_division_of_floats_comes_from_fmod(torch, log):
    log.add(torch.tensor(1.0) // 0.1, torch.tensor(1.0, dtype=torch.float64) // 0.1, torch.tensor([0.7, -0.7, 6.0]) // torch.tensor([0.1, 0.1, 0.2]))


@corner
def the_most_negative_integer_by_minus_one_is_defined(torch, log):
    for dtype in (torch.int8, torch.int16, torch.int32, torch.int64):
        a = torch.tensor([torch.iinfo(dtype).min, 7], dtype=dtype)
        b = torch.tensor([-1, -1], dtype=dtype)
        log.add(a // b, a % b, torch.fmod(a, b))
    if torch.__name__ == "tenon":  # the reference does not survive this
        a = torch.tensor([-2**63, 7])
        assert torch.div(a, -1, rounding_mode="trunc").tolist() == [-2**63, -7]
        assert torch.div(a, torch.tensor([-1, -1]), rounding_mode="trunc").tolist() == [-2**63, -7]


@corner
def integers_to_negative_powers(torch, log):
    a = torch.tensor([1, -1, 2, 0, -3])
    log.tries(torch.pow, a, -1)
    log.tries(a.pow_, -2)
    log.add(torch.pow(a, torch.tensor(-1)), torch.pow(a, torch.tensor([-1, -2, -3, -1, -1])), torch.pow(2, torch.tensor([-1, 3])), a)


@corner
def powers_of_zero_one_and_nan(torch, log):
    x = torch.tensor([0.0, -0.0, nan, 1, inf, -inf])
    for dtype in (torch.float32, torch.float64, torch.float16):
        y = x.to(dtype)
        log.add(y**0, y**0.0, torch.pow(y, torch.zeros(6, dtype=dtype)), torch.pow(1, y), torch.pow(torch.ones(6, dtype=dtype), y), y**nan)
    log.add(torch.tensor([0, 3])**0, torch.pow(torch.tensor(0), torch.tensor([0])))


@corner
def integer_powers_wrap(torch, log):
    log.add(torch.tensor([3, 2, -2], dtype=torch.int8)**7, torch.tensor([10, 3])**25, torch.tensor([2], dtype=torch.uint8)**9)


@corner
def simple_exponents_have_the_bits_of_their_direct_forms(torch, log):
    base = torch.cat([torch.arange(1, 400, dtype=torch.float64) * 0.37, torch.tensor([0.0, -0.0, inf, -inf, nan, -2.5], dtype=torch.float64)])
    for dtype in (torch.float32, torch.float64):
        x = base.to(dtype)
        pairs = ((0.5, x.sqrt()), (2, x * x), (3, x * x * x), (-1, 1 / x), (-2, 1 / (x * x)), (-0.5, x.rsqrt()))
        bits = torch.int32 if dtype == torch.float32 else torch.int64
        for exponent, wanted in pairs:
            made = x**exponent
            alike = (made.view(bits) == wanted.view(bits)) | (made.isnan() & wanted.isnan())
            log.add(exponent, alike.all(), made[-6:])


@corner
def floats_become_integers_by_truncation(torch, log):
    x = torch.tensor([1.9, -1.9, 0.5, -0.5, 1e9])
    for dtype in (torch.int64, torch.int32):
        log.add(x.to(dtype), torch.tensor([nan, inf, -inf, 1e30], dtype=torch.float64).to(dtype))
    log.add(x[:4].to(torch.int8), torch.tensor([nan]).to(torch.int8), torch.tensor([300.0]).to(torch.uint8))


@corner
def whatever_is_not_zero_is_true(torch, log):
    log.add(torch.tensor([nan, 0.0, -0.0, 1e-40, inf, 0.5]).bool(), torch.tensor([1j, 0j]).bool(), torch.tensor([256, 0, -1]).bool())


@corner
def small_integers_wrap(torch, log):
    u, i = torch.tensor([250, 1], dtype=torch.uint8), torch.tensor([127, -128], dtype=torch.int8)
    log.add(u + 10, u - 2, u * 2, i + 1, i - 1, i * 2, -i, i.abs(), u + 300, torch.tensor([300, -1]).to(torch.uint8))


@corner
def floats_too_large_for_half_are_infinite(torch, log):
    log.add(torch.tensor([65504.0, 65519.9, 65520.0, -1e5, 3e38]).half(), torch.tensor([1e39, -1e39], dtype=torch.float64).float())
    log.add(torch.tensor([60000.0]).half() * 2, torch.tensor([3.4e38]).bfloat16())


@corner
def complex_to_real_warns_and_drops_the_imaginary_part(torch, log):
    log.add(torch.tensor([1 + 2j, -3j]).to(torch.float32))


@corner
def round_goes_to_even(torch, log):
    x = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, 3.5])
    log.add(x.round(), x.double().round(), x.half().round(), torch.tensor([0.125, 2.5]).round(decimals=2), torch.tensor([15.0, 25]).round(decimals=-1))


@corner
def a_long_sum_of_floats_keeps_its_digits(torch, log):
    x = torch.full((1 << 22,), 0.1)
    for made in (x.sum(), x.reshape(4, -1).sum(), x.reshape(-1, 4).sum(0).sum(), x.reshape(2, -1).sum(1).sum(), x.mean() * (1 << 22)):
        log.add(abs(made.item() - 419430.4) < 1.0)


@corner
def sums_of_halves_accumulate_in_float(torch, log):
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.ones(4096, dtype=dtype)
        log.add(x.sum(), x.cumsum(0)[-1], x.mean(), x.reshape(2, -1).sum(1), x.reshape(-1, 2).sum(0))


@corner
def the_two_norm_is_not_scaled(torch, log):
    log.add(torch.tensor([1e30, 1e30]).norm(), torch.tensor([3e-30, 4e-30]).norm(), torch.linalg.vector_norm(torch.tensor([1e30, 1e30])))


@corner
def arange_has_the_length_of_its_quotient_rounded_up(torch, log):
    for args in ((0, 1, 0.1), (0, 1, 0.3), (1, 2.5), (5, 0, -2), (0, 0.9999, 0.3333), (0, 0), (2.0, 2.0, 0.5), (0, 5, 2)):
        log.add(torch.arange(*args))


@corner
def arange_of_integers_is_int64(torch, log):
    log.add(torch.arange(3), torch.arange(3.0), torch.arange(0, 3, 1.0).dtype, torch.arange(2, dtype=torch.int8))


@corner
def arange_refuses_steps_and_bounds_that_lead_nowhere(torch, log):
    for args in ((0, 5, 0), (0, 5, -1), (5, 0, 1), (0, inf), (nan,), (0, -inf, -1)):
        log.tries(torch.arange, *args)


@corner
def arange_of_integers_by_a_fraction_is_refused(torch, log):
    if torch.__name__ == "tenon":  # the reference does not survive this
        try:
            torch.arange(0, 2.5, 0.5, dtype=torch.int64)
        except RuntimeError as e:
            assert "step must be nonzero" in str(e), e
        else:
            raise AssertionError("a step that truncates to 0 was taken")
    log.add(torch.arange(0, 5, 1.5, dtype=torch.int64))


@corner
def products_over_nothing_are_zero_and_beta_zero_hides_nan(torch, log):
    log.add(torch.zeros(2, 0) @ torch.zeros(0, 3), torch.zeros(2, 3, 0) @ torch.zeros(0, 2), torch.zeros(0) @ torch.zeros(0))
    bad, a, b = torch.full((2, 2), nan), torch.ones(2, 3), torch.ones(3, 2)
    log.add(torch.addmm(bad, a, b, beta=0), torch.baddbmm(bad[None], a[None], b[None], beta=0), torch.addmv(bad[0], a, b[:, 0], beta=0))
    log.add(torch.addmm(torch.ones(2, 2), torch.zeros(2, 0), torch.zeros(0, 2), beta=2), torch.addmm(bad, torch.zeros(2, 0), torch.zeros(0, 2), beta=0))


@corner
def gradients_of_complex_numbers_are_conjugate_wirtinger(torch, log):
    z = torch.tensor([1 + 2j, -3j, 0j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    log.add(z.grad)
    for call in (lambda z: z.abs().sum(), lambda z: z.real.sum(), lambda z: z.imag.sum(), lambda z: (z**2).real.sum(), lambda z: z.exp().real.sum()):
        z = torch.tensor([1 + 2j, -3j], requires_grad=True)
        call(z).backward()
        log.add(z.grad)


@corner
def a_real_input_takes_the_real_part_of_a_complex_gradient(torch, log):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * torch.tensor([1 + 2j, 3 - 1j])).abs().sum().backward()
    log.add(x.grad)
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x * (2 + 5j)).backward(torch.tensor([1 + 1j, 1j]))
    log.add(x.grad)


@corner
def ordering_complex_numbers_is_refused(torch, log):
    z = torch.tensor([1 + 2j, 3j])
    for call in (lambda: z < z, lambda: z.max(), lambda: z.max(0), lambda: z.sort(), lambda: z.clamp(0, 1), lambda: z.floor(), lambda: z.ceil(),
                 lambda: torch.maximum(z, z), lambda: z.argmax(), lambda: z.topk(1)):
        log.tries(call)


@corner
def sgn_of_zero_is_zero(torch, log):
    log.add(torch.sgn(torch.tensor([0j, 3 + 4j])), torch.sgn(torch.tensor([0.0, -0.0, -3])), torch.sgn(torch.tensor([0, -5])))


@corner
def sign_of_nan_is_zero(torch, log):
    x = torch.tensor([nan, -inf, inf, 0.0, 2])
    log.add(torch.sign(x), torch.sgn(x), torch.sign(x.double()), torch.sign(x.half()))


@corner
def roots_logarithms_and_reciprocals_at_their_edges(torch, log):
    x = torch.tensor([-1.0, 0.0, -0.0, inf])
    log.add(x.sqrt(), x.log(), x.rsqrt(), x.reciprocal(), 1 / x, x.log1p(), x.log2(), x.double().log())


@corner
def logical_not_of_nan_is_false(torch, log):
    log.add(torch.logical_not(torch.tensor([nan, 0.0, -0.0, 2])), torch.logical_and(torch.tensor(nan), torch.tensor(1)))


@corner
def nan_is_close_to_nothing_and_infinity_to_itself(torch, log):
    a, b = torch.tensor([nan, inf, -inf, inf, 1]), torch.tensor([nan, inf, -inf, -inf, inf])
    log.add(torch.isclose(a, b), torch.isclose(a, b, equal_nan=True), torch.allclose(a[1:3], b[1:3]))


@corner
def logaddexp_of_equal_infinities_is_that_infinity(torch, log):
    a, b = torch.tensor([inf, -inf, inf, nan, 1e30]), torch.tensor([inf, -inf, -inf, inf, 1e30])
    log.add(torch.logaddexp(a, b), torch.logaddexp2(a, b), torch.logaddexp(a.double(), b.double()))


@corner
def lerp_from_a_half_on_counts_back_from_its_end(torch, log):
    one, end = torch.tensor(1.0), torch.tensor(inf)
    log.add(torch.lerp(one, end, 0.5), torch.lerp(one, end, 0.25), torch.lerp(one, torch.tensor(1e8), 1.0))
    a, b = torch.tensor([1.0, 0.1, -3]), torch.tensor([7.0, 1e8, 5])
    for w in (0.5, 0.75, 1.0, 0.4999):
        back = b - (b - a) * (1 - w) if w >= 0.5 else a + w * (b - a)
        log.add(torch.equal(torch.lerp(a, b, w), back))


@corner
def linspace_of_one_no_and_negative_steps(torch, log):
    log.add(torch.linspace(3, 9, 1), torch.linspace(3, 9, 0), torch.linspace(0, 1, 5), torch.linspace(5, 0, 3, dtype=torch.int64))
    log.tries(torch.linspace, 0, 1, -1)


@corner
def cat_skips_legacy_empty_tensors(torch, log):
    log.add(torch.cat([torch.zeros(0), torch.ones(2, 3)]), torch.cat([torch.ones(2, 3), torch.zeros(0)], 1), torch.cat([torch.zeros(0), torch.zeros(0)]))
    log.tries(torch.cat, [torch.zeros(0, 2), torch.ones(2, 3)])


@corner
def where_sends_back_the_nan_of_the_branch_not_taken(torch, log):
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(x > 0, x, (x - 1).sqrt() * 0).sum().backward()
    log.add(x.grad)
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(x > 0, x.log(), torch.zeros(2)).sum().backward()
    log.add(x.grad)


@corner
def nan_to_num_maps_infinities_to_the_largest_numbers(torch, log):
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x = torch.tensor([nan, inf, -inf, 1], dtype=dtype)
        log.add(torch.nan_to_num(x), torch.nan_to_num(x, 7, 8, 9))


@corner
def addcdiv_of_integers_is_refused(torch, log):
    a = torch.ones(2, dtype=torch.int64)
    log.tries(torch.addcdiv, a, a, a)
    log.tries(a.addcdiv_, a, a)
