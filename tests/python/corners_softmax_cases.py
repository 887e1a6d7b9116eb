# SPDX-License-Identifier: MIT
"""Numeric corners of softmax and its kin, attention, normalisation and activations. Which corner has which test:

softmax
    the row's maximum is subtracted                     softmax_of_large_numbers_does_not_overflow
    a row of -inf                                       softmax_of_a_row_of_minus_infinities_is_nan
    +inf or NaN in a row                                softmax_of_a_row_with_infinity_or_nan_is_nan
    0-dim, no elements                                  softmax_of_a_number_is_one_and_of_nothing_is_empty
    integers, bool                                      softmax_of_integers_needs_a_dtype
    dtype=                                              softmax_converts_before_it_computes
    half, bfloat16                                      softmax_of_halves_adds_up_in_float
log_softmax
    its form                                            log_softmax_is_not_the_logarithm_of_softmax
    -inf, +inf, NaN                                     log_softmax_of_infinities_and_nan
    -inf beside finite numbers                          log_softmax_keeps_a_minus_infinity_beside_finite_numbers
logsumexp
    infinities                                          logsumexp_of_infinities_is_their_limit
    nothing, NaN                                        logsumexp_of_nothing_is_minus_infinity_and_of_nan_is_nan
_safe_softmax
    a row of -inf, of NaN                               safe_softmax_gives_zeros_for_a_masked_row_and_keeps_nan
scaled_dot_product_attention
    the default scale, a negative one                   attention_scales_by_the_root_of_the_head_size
    boolean and float masks                             attention_adds_a_float_mask_and_attends_where_a_boolean_one_is_true
    is_causal with a mask                               attention_with_a_mask_and_is_causal
    causal where L != S                                 the_causal_mask_is_aligned_at_the_top_left
    a masked row                                        attention_of_a_masked_row_is_zero_and_so_is_its_gradient
    no keys                                             attention_without_keys_is_zero
    half, bfloat16                                      attention_of_halves_computes_in_float
    grouped heads                                       attention_repeats_grouped_heads_that_divide
    dropout                                             attention_drops_weights_after_softmax
    texts                                               attention_refuses_mixed_dtypes_masks_of_integers_and_vectors
layer_norm
    the biased variance, mean and rstd                  layer_norm_has_the_biased_variance_and_keeps_its_statistics
    two passes                                          layer_norm_of_shifted_numbers_keeps_its_digits
    half, bfloat16                                      layer_norm_of_halves_has_statistics_of_the_inputs_dtype
    texts                                               layer_norm_refuses_shapes_that_do_not_fit
    no rows                                             layer_norm_of_no_rows_has_zero_gradients
    one element                                         layer_norm_of_one_element_is_zero
batch_norm
    batch and running variance                          batch_norm_is_biased_and_its_running_variance_is_not
    evaluation                                          batch_norm_in_evaluation_takes_running_statistics
    one value a channel                                 batch_norm_in_training_needs_two_values_a_channel
    no statistics, wrong sizes                          batch_norm_refuses_missing_or_misfit_statistics
group_norm
    divisible, at least two dimensions                  group_norm_refuses_channels_that_do_not_divide
    the biased variance                                 group_norm_has_the_biased_variance
activations
    gelu at -inf, large numbers                         gelu_of_minus_infinity_is_nan_and_large_numbers_do_not_overflow
    silu, mish, hardswish                               silu_mish_and_hardswish_of_minus_infinity_are_nan
    softplus, elu, sigmoid, tanh                        softplus_elu_sigmoid_and_tanh_take_their_limits
    relu                                                relu_keeps_nan_and_the_sign_of_zero
    hardtanh, relu6, threshold, leaky_relu              hardtanh_relu6_threshold_and_leaky_relu_keep_nan
clamp
    NaN, NaN bounds                                     clamp_keeps_nan_and_a_nan_bound_gives_nan
    min > max                                           clamp_gives_the_maximum_where_bounds_cross
    tensor bounds                                       clamp_broadcasts_tensor_bounds
    no bound, mixed bounds                              clamp_needs_a_bound_and_bounds_of_one_kind
"""

from corner_kit import corner, inf, nan


def rows(torch, *values, dtype=None):
    return torch.tensor(list(values), dtype=dtype or torch.float32)


@corner
def softmax_of_large_numbers_does_not_overflow(torch, log):
    log.add(torch.softmax(rows(torch, [1e4, 1e4, -1e4], [3e38, 0.0, -3e38], [-3e38, -3e38, -3e38]), 1))
    log.add(torch.softmax(rows(torch, 1e300, 1e300, dtype=torch.float64), 0))


@corner
def softmax_of_a_row_of_minus_infinities_is_nan(torch, log):
    x = rows(torch, [-inf, -inf, -inf], [-inf, 0, 1])
    log.add(torch.softmax(x, 1), torch.softmax(x, 0), torch.softmax(x.half(), 1), torch.softmax(x.double(), 1))
    log.add(torch.softmax(torch.full((40,), -inf), 0).isnan().all())


@corner
def softmax_of_a_row_with_infinity_or_nan_is_nan(torch, log):
    x = rows(torch, [inf, 0, 1], [nan, 0, 1], [inf, inf, -inf], [nan, -inf, inf])
    log.add(torch.softmax(x, 1), torch.softmax(x.t().contiguous(), 0))
    for n in (5, 33, 100):
        y = torch.zeros(2, n)
        y[0, n - 1], y[1, n // 2] = inf, nan
        log.add(torch.softmax(y, 1).isnan().all())


@corner
def softmax_of_a_number_is_one_and_of_nothing_is_empty(torch, log):
    log.add(torch.softmax(torch.tensor(3.0), 0), torch.softmax(torch.tensor(-7.0), -1), torch.log_softmax(torch.tensor(3.0), 0))
    for shape, dim in (((0,), 0), ((2, 0), 1), ((2, 0), 0), ((0, 2), 1)):
        log.add(torch.softmax(torch.zeros(shape), dim), torch.log_softmax(torch.zeros(shape), dim))
    log.tries(torch.softmax, torch.tensor(3.0), 1)


@corner
def softmax_of_integers_needs_a_dtype(torch, log):
    for dtype in (torch.int64, torch.int32, torch.uint8, torch.bool):
        x = torch.tensor([0, 1], dtype=dtype)
        log.tries(torch.softmax, x, 0)
        log.tries(torch.log_softmax, x, 0)
        log.tries(torch.softmax, x, 0, dtype=torch.float32)


@corner
def softmax_converts_before_it_computes(torch, log):
    x = rows(torch, 10.0, 0.0, -10.0, dtype=torch.float16)
    log.add(torch.softmax(x, 0, dtype=torch.float32), torch.softmax(x, 0, dtype=torch.float64), torch.softmax(x, 0))
    log.add(torch.softmax(rows(torch, 1e30, 0.0), 0, dtype=torch.float16))


@corner
def softmax_of_halves_adds_up_in_float(torch, log):
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.zeros(4096, dtype=dtype)
        log.add(torch.softmax(x, 0)[:2], torch.log_softmax(x, 0)[:2])


@corner
def log_softmax_is_not_the_logarithm_of_softmax(torch, log):
    log.add(torch.log_softmax(rows(torch, 0.0, -200.0), 0), torch.log_softmax(rows(torch, 1e30, 0.0), 0))
    log.add(torch.log_softmax(rows(torch, 0.0, -1e4, dtype=torch.float64), 0))


@corner
def log_softmax_of_infinities_and_nan(torch, log):
    x = rows(torch, [-inf, -inf, -inf], [inf, 0, 1], [nan, 0, 1], [inf, inf, -inf])
    log.add(torch.log_softmax(x, 1), torch.log_softmax(x.t().contiguous(), 0), torch.log_softmax(x.bfloat16(), 1))


@corner
def log_softmax_keeps_a_minus_infinity_beside_finite_numbers(torch, log):
    x = rows(torch, [-inf, 0, 1], [0, -inf, -inf])
    log.add(torch.log_softmax(x, 1), torch.log_softmax(x.double(), 1))


@corner
def logsumexp_of_infinities_is_their_limit(torch, log):
    x = rows(torch, [-inf, -inf], [inf, -inf], [inf, inf], [-inf, 3], [inf, 3])
    log.add(torch.logsumexp(x, 1), torch.logsumexp(x, (0, 1)), torch.logsumexp(x.half(), 1))


@corner
def logsumexp_of_nothing_is_minus_infinity_and_of_nan_is_nan(torch, log):
    log.add(torch.logsumexp(torch.zeros(0), 0), torch.logsumexp(torch.zeros(2, 0), 1), torch.logsumexp(torch.zeros(2, 0), 0))
    log.add(torch.logsumexp(rows(torch, [nan, 1], [nan, inf], [nan, -inf]), 1))


@corner
def safe_softmax_gives_zeros_for_a_masked_row_and_keeps_nan(torch, log):
    x = rows(torch, [-inf, -inf], [nan, -inf], [nan, nan], [0, -inf], [inf, 0])
    log.add(torch._safe_softmax(x, 1), torch._safe_softmax(x.half(), 1), torch._safe_softmax(x, 0))


def heads(torch, *shape):
    n = 1
    for s in shape:
        n *= s
    return ((torch.arange(n, dtype=torch.float32) * 7 % 11 - 5) / 4).reshape(shape)


def attend(torch, *args, **kwargs):
    return torch.nn.functional.scaled_dot_product_attention(*args, **kwargs)


@corner
def attention_scales_by_the_root_of_the_head_size(torch, log):
    q, k, v = heads(torch, 1, 1, 2, 4), heads(torch, 1, 1, 3, 4) + 0.25, heads(torch, 1, 1, 3, 4)
    log.add(attend(torch, q, k, v), attend(torch, q, k, v, scale=0.5), attend(torch, q, k, v, scale=-1.0), attend(torch, q, k, v, scale=0.0))
    log.add(attend(torch, q[0, 0], k[0, 0], v[0, 0], scale=-1.0))


@corner
def attention_adds_a_float_mask_and_attends_where_a_boolean_one_is_true(torch, log):
    q, k, v = heads(torch, 1, 2, 2, 4), heads(torch, 1, 2, 3, 4), heads(torch, 1, 2, 3, 4)
    yes = torch.tensor([[True, False, True], [False, False, True]])
    added = torch.tensor([[0.0, -1.0, 2.0], [-inf, 0.0, 0.5]])
    log.add(attend(torch, q, k, v, attn_mask=yes), attend(torch, q, k, v, attn_mask=added))
    log.add(attend(torch, q[0, 0], k[0, 0], v[0, 0], attn_mask=yes), attend(torch, q[0, 0], k[0, 0], v[0, 0], attn_mask=added))


@corner
def attention_with_a_mask_and_is_causal(torch, log):
    q, k, v = heads(torch, 1, 1, 3, 4), heads(torch, 1, 1, 3, 4), heads(torch, 1, 1, 3, 4)
    mask = torch.tensor([[0.0, -1.0, 2.0], [0.0, 0.0, 0.5], [-inf, 0.0, 1.0]])
    log.tries(attend, torch, q, k, v, attn_mask=mask, is_causal=True)
    log.tries(attend, torch, q[0, 0], k[0, 0], v[0, 0], attn_mask=mask, is_causal=True)


@corner
def the_causal_mask_is_aligned_at_the_top_left(torch, log):
    for L, S in ((2, 4), (4, 2), (3, 3)):
        q, k, v = heads(torch, 1, 1, L, 4), heads(torch, 1, 1, S, 4), heads(torch, 1, 1, S, 4)
        log.add(attend(torch, q, k, v, is_causal=True), attend(torch, q[0, 0], k[0, 0], v[0, 0], is_causal=True))


@corner
def attention_of_a_masked_row_is_zero_and_so_is_its_gradient(torch, log):
    for mask in (torch.tensor([[False, False, False], [True, True, False]]), torch.tensor([[-inf, -inf, -inf], [0, 0, -inf]])):
        for cut in (lambda t: t, lambda t: t[0, 0]):
            q = cut(heads(torch, 1, 1, 2, 4)).clone().requires_grad_()
            k, v = cut(heads(torch, 1, 1, 3, 4)), cut(heads(torch, 1, 1, 3, 4))
            out = attend(torch, q, k, v, attn_mask=mask)
            out.sum().backward()
            log.add(out, q.grad)


@corner
def attention_without_keys_is_zero(torch, log):
    q, k, v = heads(torch, 1, 1, 2, 4), torch.zeros(1, 1, 0, 4), torch.zeros(1, 1, 0, 4)
    log.add(attend(torch, q[0, 0], k[0, 0], v[0, 0]))


@corner
def attention_of_halves_computes_in_float(torch, log):
    for dtype in (torch.float16, torch.bfloat16):
        q, k = torch.ones(512, 2, dtype=dtype), torch.ones(512, 2, dtype=dtype)
        v = torch.full((512, 2), 3.0, dtype=dtype)
        log.add(attend(torch, q, k, v)[:2], attend(torch, q * 100, k * 100, v)[:1])


@corner
def attention_repeats_grouped_heads_that_divide(torch, log):
    q, k, v = heads(torch, 1, 4, 2, 4), heads(torch, 1, 2, 3, 4), heads(torch, 1, 2, 3, 4)
    log.tries(attend, torch, q, k, v, enable_gqa=True)
    three = heads(torch, 1, 3, 3, 4)
    log.tries(attend, torch, q, three, three, enable_gqa=True)


@corner
def attention_drops_weights_after_softmax(torch, log):
    q, k, v = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 64, 4), torch.ones(1, 1, 64, 4)
    out = attend(torch, q, k, v, dropout_p=0.5)
    # Each weight is 1/64 and either 0 or doubled: the sum is a multiple of 1/32, which need not be 1.
    log.add((out * 32).round().eq(out * 32).all(), attend(torch, q, k, v, dropout_p=1.0))


@corner
def attention_refuses_mixed_dtypes_masks_of_integers_and_vectors(torch, log):
    q = heads(torch, 1, 1, 2, 4)
    log.tries(attend, torch, q, q.double(), q)
    log.tries(attend, torch, q, q, q, attn_mask=torch.zeros(2, 2, dtype=torch.int64))
    log.tries(attend, torch, torch.zeros(3), torch.zeros(3), torch.zeros(3))


@corner
def layer_norm_has_the_biased_variance_and_keeps_its_statistics(torch, log):
    x = rows(torch, [1.0, 2, 3, 4], [0, 0, 4, 4])
    log.add(torch.native_layer_norm(x, [4], None, None, 0.0), torch.native_layer_norm(x.reshape(2, 2, 2), [2, 2], None, None, 1e-5))
    log.add(torch.nn.functional.layer_norm(x, [4], torch.full((4,), 2.0), torch.ones(4)))


@corner
def layer_norm_of_shifted_numbers_keeps_its_digits(torch, log):
    x = torch.arange(64.0) + 1e5
    log.add(torch.native_layer_norm(x, [64], None, None, 1e-5)[2], torch.native_layer_norm(x, [64], None, None, 1e-5)[1])


@corner
def layer_norm_of_halves_has_statistics_of_the_inputs_dtype(torch, log):
    for dtype in (torch.float16, torch.bfloat16):
        x = rows(torch, [1.0, 2, 3, 4]).to(dtype)
        log.add([t.dtype for t in torch.native_layer_norm(x, [4], None, None, 1e-5)])
        w = torch.ones(4)
        log.add([t.dtype for t in torch.native_layer_norm(x, [4], w, w, 1e-5)])
        log.add([t.dtype for t in torch.native_group_norm(x.reshape(1, 2, 2), None, None, 1, 2, 2, 1, 1e-5)])
        log.add([t.dtype for t in torch.native_batch_norm(x.reshape(2, 2), None, None, None, None, True, 0.1, 1e-5)])
        many = torch.full((4096,), 1.5, dtype=dtype)
        log.add(torch.native_layer_norm(many, [4096], None, None, 1e-5)[1])


@corner
def layer_norm_refuses_shapes_that_do_not_fit(torch, log):
    norm = torch.nn.functional.layer_norm
    log.tries(norm, torch.zeros(2, 3), [4])
    log.tries(norm, torch.zeros(2, 3), [3], torch.ones(4))
    log.tries(norm, torch.zeros(2, 3), [3], torch.ones(3), torch.ones(4))
    log.tries(norm, torch.zeros(2, 3), [])


@corner
def layer_norm_of_no_rows_has_zero_gradients(torch, log):
    w, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    torch.nn.functional.layer_norm(torch.zeros(0, 3), [3], w, b).sum().backward()
    log.add(w.grad, b.grad)


@corner
def layer_norm_of_one_element_is_zero(torch, log):
    log.add(torch.nn.functional.layer_norm(rows(torch, [5.0], [-3.0]), [1]), torch.nn.functional.layer_norm(rows(torch, 7.0), [1]))


@corner
def batch_norm_is_biased_and_its_running_variance_is_not(torch, log):
    x, mean, var = rows(torch, [1.0, 0], [2, 0], [6, 3]), torch.zeros(2), torch.ones(2)
    log.add(torch.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.25, eps=1e-9), mean, var)


@corner
def batch_norm_in_evaluation_takes_running_statistics(torch, log):
    x, mean, var = rows(torch, [1.0, 0], [2, 0]), torch.tensor([1.0, 2.0]), torch.tensor([4.0, 1.0])
    log.add(torch.nn.functional.batch_norm(x, mean, var, eps=1e-9), mean, var)
    layer = torch.nn.BatchNorm1d(2, track_running_stats=False, eps=1e-9).eval()
    log.add(layer(rows(torch, [1.0, 0], [2, 4])))


@corner
def batch_norm_in_training_needs_two_values_a_channel(torch, log):
    for shape in ((1, 3), (1, 3, 1)):
        log.tries(torch.nn.functional.batch_norm, torch.zeros(shape), torch.zeros(3), torch.ones(3), training=True)
    log.add(torch.native_batch_norm(torch.ones(1, 3), None, None, None, None, True, 0.1, 1e-4))


@corner
def batch_norm_refuses_missing_or_misfit_statistics(torch, log):
    norm = torch.nn.functional.batch_norm
    log.tries(norm, torch.zeros(2, 3), None, None)
    log.tries(norm, torch.zeros(2, 3), torch.zeros(4), torch.ones(4))
    log.tries(norm, torch.zeros(2, 3), torch.zeros(3), torch.ones(3), torch.ones(4))
    log.tries(norm, torch.zeros(2, 3), torch.zeros(3), torch.ones(4))


@corner
def group_norm_refuses_channels_that_do_not_divide(torch, log):
    log.tries(torch.nn.functional.group_norm, torch.zeros(2, 4, 3), 3)
    log.tries(torch.nn.functional.group_norm, torch.zeros(4), 2)


@corner
def group_norm_has_the_biased_variance(torch, log):
    x = rows(torch, [[1.0, 2], [3, 6], [0, 0], [0, 4]])
    log.add(torch.nn.functional.group_norm(x, 2, eps=0.0), torch.native_group_norm(x, None, None, 1, 4, 2, 2, 0.0))


@corner
def gelu_of_minus_infinity_is_nan_and_large_numbers_do_not_overflow(torch, log):
    x = rows(torch, -inf, nan, -1e38, -1e4, -0.0, 0.0, 1e4, 1e38)
    gelu = torch.nn.functional.gelu
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        log.add(gelu(x.to(dtype)).abs(), gelu(x.to(dtype), approximate="tanh").abs())


@corner
def silu_mish_and_hardswish_of_minus_infinity_are_nan(torch, log):
    F, x = torch.nn.functional, rows(torch, -inf, inf, nan, -1e30, 1e30)
    log.add(F.silu(x).abs(), F.mish(x).abs(), F.hardswish(x))
    log.add(F.silu(x.double()).abs(), F.mish(x.double()).abs(), F.hardswish(x.double()))


@corner
def softplus_elu_sigmoid_and_tanh_take_their_limits(torch, log):
    F, x = torch.nn.functional, rows(torch, -inf, inf, nan, -1e30, 1e30)
    for dtype in (torch.float32, torch.float64, torch.float16):
        y = x.to(dtype)
        log.add(F.softplus(y), F.elu(y), torch.sigmoid(y), torch.tanh(y), F.selu(y), F.celu(y), F.hardsigmoid(y), F.logsigmoid(y))


@corner
def relu_keeps_nan_and_the_sign_of_zero(torch, log):
    x = rows(torch, nan, -0.0, 0.0, -inf, inf, -1)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        log.add(torch.relu(x.to(dtype)), torch.relu_(x.to(dtype)))
    log.add(torch.relu(x.repeat(7))[-6:], torch.relu(torch.tensor([-1, 0, 5])))


@corner
def hardtanh_relu6_threshold_and_leaky_relu_keep_nan(torch, log):
    F, x = torch.nn.functional, rows(torch, nan, -inf, inf, -1)
    log.add(F.hardtanh(x), F.relu6(x), F.threshold(x, 0, 7), F.leaky_relu(x))


@corner
def clamp_keeps_nan_and_a_nan_bound_gives_nan(torch, log):
    x = rows(torch, nan, -inf, inf, 0.5)
    log.add(x.clamp(-1, 1), x.clamp(min=0), x.clamp(max=0), x.clamp(nan, 1), x.clamp(0, nan))
    log.add(x.clamp(min=torch.tensor(nan)), torch.clamp_min(x, nan), torch.clamp_max(x, nan))


@corner
def clamp_gives_the_maximum_where_bounds_cross(torch, log):
    x = rows(torch, -9.0, 0, 9)
    log.add(x.clamp(5, -5), x.clamp(torch.tensor(5.0), torch.tensor(-5.0)), torch.tensor([-9, 0, 9]).clamp(5, -5))


@corner
def clamp_broadcasts_tensor_bounds(torch, log):
    x = rows(torch, [-9.0, 0, 9], [1, 2, 3])
    log.add(x.clamp(torch.tensor([-1.0, 0, 1]), torch.tensor([[2.0], [1.5]])), x.clamp(max=torch.tensor([[0.0], [1.0]])))
    log.add(torch.tensor([1.0, 5.0]).clamp(min=torch.zeros(3, 1)))


@corner
def clamp_needs_a_bound_and_bounds_of_one_kind(torch, log):
    log.tries(torch.clamp, torch.zeros(2))
    try:
        torch.clamp(torch.zeros(2), 0.0, torch.ones(2))
    except TypeError as e:
        log.add("TypeError", str(e).split("\n")[0].split(" - ")[0])
