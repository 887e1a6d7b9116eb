# SPDX-License-Identifier: MIT
"""Numeric corners of indexing, embedding, losses, dropout, convolution and pooling. Which corner has which test:

index, index_put
    negative indices                                    negative_indices_wrap
    out of range                                        an_index_out_of_range_names_itself_and_writes_nothing
    a tensor without elements                           an_index_into_nothing_is_out_of_range
    dtypes                                              indices_are_integers_or_masks
    masks                                               a_mask_selects_as_many_dimensions_as_it_has_and_must_fit
    too many, shapes that do not broadcast              indices_that_are_too_many_or_do_not_broadcast_are_refused
    values that do not broadcast                        values_that_do_not_broadcast_to_the_indexed_are_refused
    where the indexed dimensions go                     adjacent_indices_keep_their_place_and_separated_ones_go_first
    accumulate                                          accumulating_counts_every_duplicate_once
    x[idx] += 1                                         adding_through_repeated_indices_counts_once
scatter, gather
    sizes                                               scatter_and_gather_do_not_broadcast
    out of range                                        scatter_and_gather_do_not_wrap_and_write_nothing
    dtypes of the index                                 scatter_and_gather_take_int32_and_int64
    duplicates                                          scatter_add_sums_duplicates
    index_select                                        index_select_does_not_wrap
embedding
    out of range                                        embedding_of_an_index_out_of_range_is_an_index_error
    float indices                                       embedding_of_float_indices_is_refused
    padding_idx                                         the_padding_row_has_zero_gradient_and_its_own_value
cross_entropy
    the class dimension                                 the_class_dimension_is_the_second_or_the_only_one
    indices or probabilities                            cross_entropy_takes_classes_or_probabilities
    ignore_index                                        ignored_targets_contribute_nothing_and_all_ignored_is_nan
    the mean                                            the_mean_divides_by_the_weights_of_kept_targets
    an empty batch                                      cross_entropy_of_no_rows_is_nan_or_zero
    label smoothing                                     label_smoothing_mixes_in_the_weighted_uniform_term
    texts                                               cross_entropy_refuses_bad_classes_sizes_dtypes_and_weights
binary_cross_entropy
    log clamped at -100                                 binary_cross_entropy_clamps_its_logarithms
    outside [0, 1]                                      binary_cross_entropy_refuses_numbers_outside_its_range
    sizes                                               binary_cross_entropy_needs_equal_sizes
    with_logits                                         binary_cross_entropy_with_logits_is_stable_and_infinities_are_nan
dropout
    p = 0, evaluation                                   dropout_of_nothing_returns_its_input
    p = 1                                               dropout_of_all_multiplies_by_zero
    p outside [0, 1]                                    dropout_refuses_what_is_no_probability
    native_dropout(train=False)                         native_dropout_without_training_keeps_all
convolution
    the output's size                                   the_output_of_a_convolution_has_the_size_of_the_formula
    negative padding, stride, groups, dilation          convolution_refuses_padding_strides_groups_and_dilations_below_their_range
    dimensions                                          convolution_refuses_inputs_of_other_dimensions
    groups                                              convolution_refuses_groups_that_do_not_divide
    channels, bias                                      convolution_refuses_channels_and_biases_that_do_not_fit
    a kernel larger than the input                      a_kernel_larger_than_the_padded_input_is_refused
    mixed dtypes                                        convolution_of_mixed_dtypes_is_refused
    padding='same'                                      padding_same_needs_a_stride_of_one
    unbatched                                           an_unbatched_input_is_squeezed_back
    N = 0                                               convolution_of_no_images_is_empty_with_zero_gradients
    gradients                                           gradients_of_a_strided_convolution_have_the_inputs_size
    channels-last                                       channels_last_input_or_weight_gives_channels_last_output
    integers                                            convolution_of_integers_works
pooling
    NaN                                                 max_pool_lets_nan_win_and_reports_its_place
    padding                                             pooling_refuses_padding_beyond_half_the_kernel
    stride 0, sizes too small, divisor 0                pooling_refuses_zero_strides_small_inputs_and_zero_divisors
    ceil_mode                                           ceil_mode_drops_windows_that_start_in_the_padding
    count_include_pad                                   avg_pool_counts_padding_or_not_and_cut_windows_by_what_is_inside
"""

from corner_kit import corner, inf, nan


def table(torch):
    return torch.arange(12.0).reshape(3, 4)


@corner
def negative_indices_wrap(torch, log):
    x = table(torch)
    log.add(x[-1], x[torch.tensor([-1, -3])], x[:, torch.tensor([-4])], x[-1, -1])
    y = table(torch)
    y[torch.tensor([-1])] = 0.0
    log.add(y)


@corner
def an_index_out_of_range_names_itself_and_writes_nothing(torch, log):
    x = table(torch)
    log.tries(lambda: x[torch.tensor([0, 3])])
    log.tries(lambda: x[torch.tensor([-4])])
    log.tries(lambda: x[:, torch.tensor([9])])
    log.tries(lambda: x[torch.tensor([0]), torch.tensor([7])])
    log.tries(lambda: x[5])
    log.tries(lambda: x.index_put_((torch.tensor([0, 3]),), torch.tensor(1.0)))
    log.tries(lambda: x.index_put_((torch.tensor([0, 3]),), torch.tensor(1.0), accumulate=True))
    if torch.__name__ == "tenon":  # the reference has written the first
        assert x.equal(table(torch))


@corner
def an_index_into_nothing_is_out_of_range(torch, log):
    log.tries(lambda: torch.zeros(0, 3)[torch.tensor([0])])
    log.add(torch.zeros(0, 3)[torch.zeros(0, dtype=torch.int64)])


@corner
def indices_are_integers_or_masks(torch, log):
    x = table(torch)
    for dtype in (torch.float32, torch.int16, torch.int8):
        log.tries(lambda: x[torch.tensor([1], dtype=dtype)])
    log.add(x[torch.tensor([1], dtype=torch.int32)], x[torch.tensor([True, False, True])])


@corner
def a_mask_selects_as_many_dimensions_as_it_has_and_must_fit(torch, log):
    x = table(torch)
    log.add(x[x > 8], x[torch.tensor([False, True, False])], x[:, torch.tensor([True, False, False, True])])
    log.tries(lambda: x[torch.tensor([True, False])])
    log.tries(lambda: x[torch.ones(3, 3, dtype=torch.bool)])


@corner
def indices_that_are_too_many_or_do_not_broadcast_are_refused(torch, log):
    x, i = table(torch), torch.tensor([0])
    log.tries(lambda: x[i, i, i])
    log.tries(lambda: x[torch.tensor([0, 1]), torch.tensor([0, 1, 2])])


@corner
def values_that_do_not_broadcast_to_the_indexed_are_refused(torch, log):
    x = table(torch)

    def assign(index, value):
        x[index] = value

    log.tries(assign, torch.tensor([0, 1]), torch.zeros(3))
    log.add(x)


@corner
def adjacent_indices_keep_their_place_and_separated_ones_go_first(torch, log):
    x, i = torch.arange(24.0).reshape(2, 3, 4), torch.tensor([0, 1])
    log.add(x[:, i, i], x[i, :, i], x[0, :, i], x[:, i], x[:, 0, i], x[i, :, 0])


@corner
def accumulating_counts_every_duplicate_once(torch, log):
    i = torch.tensor([1, 1, 0, 1])
    for dtype in (torch.float32, torch.int64, torch.float16):
        x = torch.zeros(3, dtype=dtype)
        log.add(x.index_put((i,), torch.tensor([1, 2, 4, 8], dtype=dtype), accumulate=True), x.index_put((i,), torch.tensor([1, 2, 4, 8], dtype=dtype)))
    log.add(torch.zeros(2).index_put((torch.zeros(5000, dtype=torch.int64),), torch.ones(5000), accumulate=True))


@corner
def adding_through_repeated_indices_counts_once(torch, log):
    x = torch.zeros(3)
    x[torch.tensor([1, 1, 1])] += 1
    log.add(x)


@corner
def scatter_and_gather_do_not_broadcast(torch, log):
    x = table(torch)
    log.tries(torch.gather, x, 0, torch.zeros(1, 9, dtype=torch.int64))
    log.tries(lambda: x.scatter(0, torch.zeros(1, 2, dtype=torch.int64), torch.zeros(1, 1)))
    log.tries(torch.gather, x, 0, torch.zeros(3, dtype=torch.int64))
    log.tries(lambda: x.scatter(0, torch.zeros(3, dtype=torch.int64), torch.zeros(3)))
    log.add(torch.gather(x, 0, torch.tensor([[2, 1]])), x.scatter(0, torch.tensor([[2, 1]]), torch.full((2, 2), 9.0)))


@corner
def scatter_and_gather_do_not_wrap_and_write_nothing(torch, log):
    x = table(torch)
    for bad in (5, -1):
        i = torch.tensor([[0, bad]])
        log.tries(torch.gather, x, 0, i)
        log.tries(lambda: x.scatter_(0, i, torch.ones(1, 2)))
        log.tries(lambda: x.scatter_(0, i, 7.0))
        log.tries(lambda: x.scatter_add_(0, i, torch.ones(1, 2)))
        log.tries(lambda: x.scatter_reduce_(0, i, torch.ones(1, 2), "prod"))
    log.tries(lambda: x.index_add_(0, torch.tensor([0, 3]), torch.ones(2, 4)))
    if torch.__name__ == "tenon":  # the reference has written some
        assert x.equal(table(torch))


@corner
def scatter_and_gather_take_int32_and_int64(torch, log):
    x = table(torch)
    for dtype in (torch.int32, torch.int64, torch.int16, torch.float32):
        i = torch.tensor([[1]]).to(dtype)
        log.tries(torch.gather, x, 0, i)
        log.tries(lambda: x.scatter(0, i, torch.ones(1, 1)))


@corner
def scatter_add_sums_duplicates(torch, log):
    i = torch.tensor([0, 1, 0, 0])
    log.add(torch.zeros(3).scatter_add(0, i, torch.tensor([1.0, 2, 4, 8])), torch.zeros(2, dtype=torch.int64).index_add(0, i, torch.arange(4)))
    log.add(torch.zeros(1).scatter_add(0, torch.zeros(3000, dtype=torch.int64), torch.ones(3000)))


@corner
def index_select_does_not_wrap(torch, log):
    x = table(torch).t()  # contiguous tensors have another text in the reference
    for bad in (4, -1):
        log.tries(torch.index_select, x, 0, torch.tensor([0, bad]))
    log.add(torch.index_select(x, 1, torch.tensor([2, 0], dtype=torch.int32)))


@corner
def embedding_of_an_index_out_of_range_is_an_index_error(torch, log):
    w = torch.zeros(3, 2)
    for bad in (3, -1):
        log.tries(torch.nn.functional.embedding, torch.tensor([0, bad]), w)


@corner
def embedding_of_float_indices_is_refused(torch, log):
    log.tries(torch.nn.functional.embedding, torch.tensor([0.0]), torch.zeros(3, 2))
    log.add(torch.nn.functional.embedding(torch.tensor([2], dtype=torch.int32), torch.arange(6.0).reshape(3, 2)))


@corner
def the_padding_row_has_zero_gradient_and_its_own_value(torch, log):
    w = torch.arange(6.0).reshape(3, 2).requires_grad_()
    out = torch.nn.functional.embedding(torch.tensor([0, 1, 1]), w, padding_idx=1)
    out.sum().backward()
    log.add(out, w.grad, torch.nn.Embedding(3, 2, padding_idx=1).weight[1])


def logits(torch, *shape):
    n = 1
    for s in shape:
        n *= s
    return ((torch.arange(n, dtype=torch.float32) * 5 % 7 - 3) / 2).reshape(shape)


@corner
def the_class_dimension_is_the_second_or_the_only_one(torch, log):
    ce = torch.nn.functional.cross_entropy
    log.add(ce(logits(torch, 3), torch.tensor(1)), ce(logits(torch, 2, 3), torch.tensor([1, 2])))
    log.add(ce(logits(torch, 2, 3, 2), torch.tensor([[0, 1], [2, 0]]), reduction="none"))


@corner
def cross_entropy_takes_classes_or_probabilities(torch, log):
    ce, x, p = torch.nn.functional.cross_entropy, logits(torch, 2, 3), torch.tensor([[0.5, 0.5, 0], [0.25, 0, 0.75]])
    for reduction in ("none", "mean", "sum"):
        log.add(ce(x, p, reduction=reduction), ce(x, torch.tensor([2, 0]), reduction=reduction))
    w = torch.tensor([1.0, 2, 4])
    log.add(ce(x, p, w), ce(x, p, w, reduction="sum"))


@corner
def ignored_targets_contribute_nothing_and_all_ignored_is_nan(torch, log):
    ce, x = torch.nn.functional.cross_entropy, logits(torch, 3, 3)
    for reduction in ("none", "mean", "sum"):
        log.add(ce(x, torch.tensor([1, -100, 2]), reduction=reduction), ce(x, torch.tensor([1, 2, 2]), ignore_index=2, reduction=reduction))
        log.add(ce(x, torch.tensor([-100, -100, -100]), reduction=reduction))
    y = x.clone().requires_grad_()
    ce(y, torch.tensor([1, -100, 2])).backward()
    log.add(y.grad)


@corner
def the_mean_divides_by_the_weights_of_kept_targets(torch, log):
    ce, x, w = torch.nn.functional.cross_entropy, logits(torch, 3, 3), torch.tensor([1.0, 2, 3])
    log.add(ce(x, torch.tensor([1, 2, 2]), w), ce(x, torch.tensor([1, -100, 2]), w), ce(x, torch.tensor([0, 0, 1]), torch.tensor([0.0, 0, 1])))
    log.add(ce(x, torch.tensor([0, 0, 0]), torch.tensor([0.0, 1, 1])))


@corner
def cross_entropy_of_no_rows_is_nan_or_zero(torch, log):
    ce, x, t = torch.nn.functional.cross_entropy, torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)
    log.add(ce(x, t), ce(x, t, reduction="sum"), ce(x, t, reduction="none"))


@corner
def label_smoothing_mixes_in_the_weighted_uniform_term(torch, log):
    ce, x, t = torch.nn.functional.cross_entropy, logits(torch, 3, 3), torch.tensor([1, -100, 2])
    w = torch.tensor([1.0, 2, 4])
    for reduction in ("none", "mean", "sum"):
        log.add(ce(x, t, label_smoothing=0.3, reduction=reduction), ce(x, t, w, label_smoothing=0.3, reduction=reduction))
    log.add(ce(x, torch.softmax(x, 1), label_smoothing=0.5))
    log.tries(ce, x, t, label_smoothing=1.5)


@corner
def cross_entropy_refuses_bad_classes_sizes_dtypes_and_weights(torch, log):
    ce = torch.nn.functional.cross_entropy
    log.tries(ce, logits(torch, 2, 3), torch.tensor([0, 3]))
    log.tries(ce, logits(torch, 2, 3), torch.tensor([0, -1]))
    log.tries(ce, logits(torch, 2, 3), torch.tensor([0, 1, 2]))
    log.tries(ce, logits(torch, 2, 3), torch.tensor([0, 1], dtype=torch.int32))
    log.tries(ce, logits(torch, 2, 3), torch.tensor([0, 1], dtype=torch.uint8))
    log.tries(ce, logits(torch, 2, 4), torch.tensor([0, 1]), torch.ones(3))


@corner
def binary_cross_entropy_clamps_its_logarithms(torch, log):
    bce = torch.nn.functional.binary_cross_entropy
    log.add(bce(torch.tensor([0.0, 1, 0.5]), torch.tensor([1.0, 0, 0.5]), reduction="none"))
    x = torch.tensor([0.0, 1, 0.5], requires_grad=True)
    bce(x, torch.tensor([1.0, 0, 0.5])).backward()
    log.add(x.grad)


@corner
def binary_cross_entropy_refuses_numbers_outside_its_range(torch, log):
    bce, half = torch.nn.functional.binary_cross_entropy, torch.tensor([0.5])
    for bad in (1.5, -0.1, nan, inf):
        log.tries(bce, torch.tensor([bad]), half)
    for bad in (1.5, -0.1):
        log.tries(bce, half, torch.tensor([bad]))


@corner
def binary_cross_entropy_needs_equal_sizes(torch, log):
    log.tries(torch.nn.functional.binary_cross_entropy, torch.tensor([0.5, 0.5]), torch.tensor([0.5]))
    log.tries(torch.nn.functional.binary_cross_entropy_with_logits, torch.tensor([0.5, 0.5]), torch.tensor([0.5]))


@corner
def binary_cross_entropy_with_logits_is_stable_and_infinities_are_nan(torch, log):
    bce = torch.nn.functional.binary_cross_entropy_with_logits
    x, y = torch.tensor([1e4, -1e4, 0.0, 3e38]), torch.tensor([0.0, 1, 0.5, 1])
    log.add(bce(x, y, reduction="none"), bce(x[:3], y[:3], pos_weight=torch.tensor(2.0), reduction="none"))
    log.add(bce(torch.tensor([inf, -inf, inf, -inf]), torch.tensor([1.0, 0, 0, 1]), reduction="none"))


@corner
def dropout_of_nothing_returns_its_input(torch, log):
    x, F = torch.tensor([1.0, nan]), torch.nn.functional
    log.add(F.dropout(x, 0.0), F.dropout(x, 0.5, training=False), torch.dropout(x, 0.0, True) is x, torch.dropout(x, 0.5, False) is x)


@corner
def dropout_of_all_multiplies_by_zero(torch, log):
    x = torch.tensor([1.0, -2, inf, nan], requires_grad=True)
    out = torch.nn.functional.dropout(x, 1.0)
    log.add(out.abs())
    out[:2].sum().backward()
    log.add(x.grad, torch.native_dropout(torch.ones(3), 1.0, True))


@corner
def dropout_refuses_what_is_no_probability(torch, log):
    for p in (2.0, -0.5):
        log.tries(torch.nn.functional.dropout, torch.ones(2), p)
        log.tries(torch.dropout, torch.ones(2), p, True)


@corner
def native_dropout_without_training_keeps_all(torch, log):
    log.add(torch.native_dropout(torch.tensor([1.0, nan]), 0.5, False))


def image(torch, *shape):
    n = 1
    for s in shape:
        n *= s
    return ((torch.arange(n, dtype=torch.float32) * 3 % 8 - 4) / 2).reshape(shape)


@corner
def the_output_of_a_convolution_has_the_size_of_the_formula(torch, log):
    for size in (5, 6, 9):
        for k, s, p, d in ((3, 1, 0, 1), (3, 2, 1, 1), (2, 3, 2, 2), (1, 2, 0, 1), (3, 2, 4, 2)):
            out = torch.conv1d(image(torch, 1, 1, size), image(torch, 1, 1, k), stride=s, padding=p, dilation=d)
            log.add(out, out.shape[2] == (size + 2 * p - d * (k - 1) - 1) // s + 1)


def conv2d(torch, *args, **kwargs):
    return torch.nn.functional.conv2d(*args, **kwargs)


@corner
def convolution_refuses_padding_strides_groups_and_dilations_below_their_range(torch, log):
    x, w = torch.zeros(1, 2, 4, 4), torch.zeros(2, 2, 2, 2)
    for kwargs in ({"padding": -1}, {"stride": 0}, {"stride": -1}, {"groups": 0}, {"groups": -1}):
        log.tries(conv2d, torch, x, w, **kwargs)
    log.tries(conv2d, torch, x, w, dilation=0)


@corner
def convolution_refuses_inputs_of_other_dimensions(torch, log):
    w = torch.zeros(2, 2, 2, 2)
    log.tries(conv2d, torch, torch.zeros(2, 4), w)
    log.tries(conv2d, torch, torch.zeros(1, 1, 2, 4, 4), w)
    log.tries(torch.convolution, torch.zeros(2, 4, 4), w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)


@corner
def convolution_refuses_groups_that_do_not_divide(torch, log):
    log.tries(conv2d, torch, torch.zeros(1, 4, 4, 4), torch.zeros(3, 2, 2, 2), groups=2)
    log.tries(conv2d, torch, torch.zeros(1, 4, 4, 4), torch.zeros(1, 2, 2, 2), groups=2)


@corner
def convolution_refuses_channels_and_biases_that_do_not_fit(torch, log):
    w = torch.zeros(2, 2, 2, 2)
    log.tries(conv2d, torch, torch.zeros(1, 3, 4, 4), w)
    log.tries(conv2d, torch, torch.zeros(1, 2, 4, 4), w, torch.zeros(3))
    log.tries(conv2d, torch, torch.zeros(1, 2, 4, 4), w, torch.zeros(2, 1))


@corner
def a_kernel_larger_than_the_padded_input_is_refused(torch, log):
    log.tries(conv2d, torch, torch.zeros(1, 1, 3, 3), torch.zeros(1, 1, 5, 5))
    log.tries(conv2d, torch, torch.zeros(1, 1, 3, 3), torch.zeros(1, 1, 2, 2), dilation=4, padding=0)


@corner
def convolution_of_mixed_dtypes_is_refused(torch, log):
    log.tries(conv2d, torch, torch.zeros(1, 1, 3, 3).double(), torch.zeros(1, 1, 1, 1), None)


@corner
def padding_same_needs_a_stride_of_one(torch, log):
    log.tries(conv2d, torch, torch.zeros(1, 1, 3, 3), torch.zeros(1, 1, 2, 2), padding="same", stride=2)
    log.add(conv2d(torch, image(torch, 1, 1, 3, 3), torch.ones(1, 1, 2, 2), padding="same"))
    log.add(conv2d(torch, image(torch, 1, 1, 3, 3), torch.ones(1, 1, 2, 2), padding="valid"))


@corner
def an_unbatched_input_is_squeezed_back(torch, log):
    log.add(conv2d(torch, image(torch, 1, 3, 3), torch.ones(2, 1, 2, 2)), torch.conv1d(image(torch, 1, 4), torch.ones(1, 1, 2)))


@corner
def convolution_of_no_images_is_empty_with_zero_gradients(torch, log):
    w, b = torch.ones(2, 1, 2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    out = conv2d(torch, torch.zeros(0, 1, 3, 3), w, b)
    out.sum().backward()
    log.add(out, w.grad, b.grad)


@corner
def gradients_of_a_strided_convolution_have_the_inputs_size(torch, log):
    for size in (5, 6):
        x = image(torch, 1, 1, size, size).requires_grad_()
        w, b = image(torch, 1, 1, 2, 2).requires_grad_(), torch.zeros(1, requires_grad=True)
        conv2d(torch, x, w, b, stride=3).sum().backward()
        log.add(x.grad, w.grad, b.grad)


@corner
def channels_last_input_or_weight_gives_channels_last_output(torch, log):
    x, w = torch.ones(2, 3, 5, 5), torch.ones(4, 3, 2, 2)
    last = torch.channels_last
    for a, b in ((x, w), (x.to(memory_format=last), w), (x, w.to(memory_format=last))):
        log.add(conv2d(torch, a, b).is_contiguous(memory_format=last))


@corner
def convolution_of_integers_works(torch, log):
    log.add(torch.conv1d(torch.arange(5).reshape(1, 1, 5), torch.tensor([[[1, -1]]])))
    log.add(conv2d(torch, torch.arange(9).reshape(1, 1, 3, 3), torch.ones(1, 1, 2, 2, dtype=torch.int64)))


@corner
def max_pool_lets_nan_win_and_reports_its_place(torch, log):
    x = torch.tensor([[[1.0, nan, 3, inf, nan, 0]]])
    pool = torch.nn.functional.max_pool1d
    log.add(pool(x, 2, return_indices=True), pool(x, 3, return_indices=True))
    y = torch.tensor([[[[1.0, nan], [nan, 4]]]])
    log.add(torch.nn.functional.max_pool2d(y, 2, return_indices=True))


@corner
def pooling_refuses_padding_beyond_half_the_kernel(torch, log):
    F, x = torch.nn.functional, torch.zeros(1, 1, 4, 4)
    log.tries(F.max_pool2d, x, 2, padding=2)
    log.tries(F.avg_pool2d, x, 2, padding=2)
    log.tries(F.max_pool2d, x, 2, padding=-1)


@corner
def pooling_refuses_zero_strides_small_inputs_and_zero_divisors(torch, log):
    F, x = torch.nn.functional, torch.zeros(1, 1, 4, 4)
    log.tries(F.max_pool2d, x, 2, stride=0)
    log.tries(F.avg_pool2d, x, 2, stride=0)
    log.tries(F.max_pool2d, torch.zeros(1, 1, 1, 1), 2)
    log.tries(F.avg_pool2d, torch.zeros(1, 1, 1, 1), 2)
    log.tries(F.avg_pool2d, x, 2, divisor_override=0)


@corner
def ceil_mode_drops_windows_that_start_in_the_padding(torch, log):
    F = torch.nn.functional
    for size, k, s, p in ((5, 2, 2, 0), (5, 2, 2, 1), (3, 3, 2, 1), (4, 2, 3, 1), (6, 3, 3, 1)):
        x = torch.arange(1.0, size + 1).reshape(1, 1, size)
        log.add(F.max_pool1d(x, k, s, p, ceil_mode=True), F.avg_pool1d(x, k, s, p, ceil_mode=True))


@corner
def avg_pool_counts_padding_or_not_and_cut_windows_by_what_is_inside(torch, log):
    F, x = torch.nn.functional, torch.arange(1.0, 26).reshape(1, 1, 5, 5)
    for ceil in (False, True):
        for count in (False, True):
            log.add(F.avg_pool2d(x, 2, 2, 1, ceil_mode=ceil, count_include_pad=count), F.avg_pool2d(x, 3, 3, 0, ceil_mode=ceil, count_include_pad=count))
    log.add(F.avg_pool2d(x, 2, divisor_override=3))
