/* SPDX-License-Identifier: MIT */
/* composite/conv.c: convolutions by their number of dimensions, in terms of convolution. They take
 * one image without a batch too, and paddings by name. */
#include <string.h>
#include "base/warn.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

static const int64_t no_padding[3];

typedef struct conv {
    tn_tensor *weight, *bias;
    const int64_t *stride, *padding, *dilation, *output_padding;
    int64_t stride_n, padding_n, dilation_n, output_padding_n;
    const char *by_name; /* of the padding; then the list is not looked at */
    bool transposed;
    int64_t groups;
} conv;

static tn_status with_padding(tn_tensor *input, const conv *c, const int64_t *padding,
                              int64_t padding_n, tn_tensor **out)
{
    return tn_convolution(input, c->weight, c->bias, c->stride, c->stride_n, padding, padding_n,
                          c->dilation, c->dilation_n, c->transposed, c->output_padding,
                          c->output_padding_n, c->groups, out);
}

/* As much padding as keeps the size; an odd element goes to the right, by a padded copy. */
static tn_status same_padding(tn_tensor *input, const conv *c, tn_tensor **out)
{
    const tn_tensor *w = c->weight;
    int n = w->ndim - 2;
    char wt[TNI_SIZES_TEXT], it[TNI_SIZES_TEXT];
    TN_CHECK(n > 0, TN_INVALID, "weight should have at least three dimensions");
    TN_CHECK(input->ndim == w->ndim, TN_INVALID,
             "Expected %d-dimensional input for %d-dimensional weight%s, but got %d-dimensional "
             "input of size %s instead",
             w->ndim, w->ndim, tni_format_sizes(w->ndim, w->sizes, wt, sizeof wt), input->ndim,
             tni_format_sizes(input->ndim, input->sizes, it, sizeof it));
    TN_CHECK(c->stride_n == n || c->stride_n == 1, TN_INVALID,
             "stride cannot broadcast to %d dimensions", n);
    TN_CHECK(c->dilation_n == n || c->dilation_n == 1, TN_INVALID,
             "dilation cannot broadcast to %d dimensions", n);
    TN_CHECK(n <= 3, TN_INVALID,
             "a convolution has at most three spatial dimensions, but weight has size %s",
             tni_format_sizes(w->ndim, w->sizes, wt, sizeof wt));
    for (int64_t i = 0; i < c->stride_n; i++)
        TN_CHECK(c->stride[i] == 1, TN_INVALID,
                 "padding='same' is not supported for strided convolutions");
    int64_t left[3], extra[6] = {0};
    bool odd = false;
    for (int i = 0; i < n; i++) {
        int64_t d = c->dilation[c->dilation_n == 1 ? 0 : i], k = w->sizes[2 + i], total;
        TN_CHECK(d >= 0, TN_INVALID, "dilation should be greater than zero");
        TN_CHECK(!__builtin_mul_overflow(d, k - 1, &total), TN_INVALID,
                 "convolution: a size of the result is too large");
        TN_CHECK(total >= 0, TN_INVALID, "negative padding is not supported");
        left[i] = total / 2;
        extra[2 * (n - 1 - i) + 1] = total % 2;
        odd |= total % 2;
    }
    if (!odd)
        return with_padding(input, c, left, n, out);
    TNI_WARN_ONCE("Using padding='same' with even kernel lengths and odd dilation may require a "
                  "zero-padded copy of the input be created");
    TN_AUTO(tn_tensor) padded = NULL;
    TN_TRY(tn_constant_pad_nd(input, extra, 2 * n, tn_int(0), &padded));
    return with_padding(padded, c, left, n, out);
}

static tn_status batched(tn_tensor *input, const conv *c, tn_tensor **out)
{
    if (!c->by_name)
        return with_padding(input, c, c->padding, c->padding_n, out);
    if (strcmp(c->by_name, "same") == 0)
        return same_padding(input, c, out);
    TN_CHECK(strcmp(c->by_name, "valid") == 0, TN_INVALID, "Invalid padding string: '%s'",
             c->by_name);
    return with_padding(input, c, no_padding, 1, out);
}

static tn_status run(const char *name, int n, tn_tensor *input, conv *c, tn_tensor **out)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(input->ndim == n + 1 || input->ndim == n + 2, TN_INVALID,
             "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s",
             n + 1, n + 2, name, tni_format_sizes(input->ndim, input->sizes, text, sizeof text));
    TN_CHECK(c->transposed || c->by_name || !c->bias || c->bias->dtype == input->dtype, TN_INVALID,
             "Input type (%s) and bias type (%s) should be the same",
             tni_dtype_cpp((tn_dtype)input->dtype),
             c->bias ? tni_dtype_cpp((tn_dtype)c->bias->dtype) : "");
    if (!c->output_padding) {
        c->output_padding = no_padding;
        c->output_padding_n = 1;
    }
    if (input->ndim == n + 2)
        return batched(input, c, out);
    TN_AUTO(tn_tensor) one = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_TRY(tn_unsqueeze(input, 0, &one));
    TN_TRY(batched(one, c, &result));
    return tn_squeeze_dim(result, 0, out);
}

#define PLAIN(n)                                                                              \
    tn_status tni_composite_conv##n##d(                                                       \
        tn_tensor *input, tn_tensor *weight, tn_tensor *bias, const int64_t *stride,          \
        int64_t stride_n, const int64_t *padding, int64_t padding_n, const int64_t *dilation, \
        int64_t dilation_n, int64_t groups, tn_tensor **out)                                  \
    {                                                                                         \
        conv c = {.weight = weight,                                                           \
                  .bias = bias,                                                               \
                  .stride = stride,                                                           \
                  .stride_n = stride_n,                                                       \
                  .padding = padding,                                                         \
                  .padding_n = padding_n,                                                     \
                  .dilation = dilation,                                                       \
                  .dilation_n = dilation_n,                                                   \
                  .groups = groups};                                                          \
        return run("conv" #n "d", n, input, &c, out);                                         \
    }

#define BY_NAME(n)                                                                          \
    tn_status tni_composite_conv##n##d_padding(                                             \
        tn_tensor *input, tn_tensor *weight, tn_tensor *bias, const int64_t *stride,        \
        int64_t stride_n, const char *padding, const int64_t *dilation, int64_t dilation_n, \
        int64_t groups, tn_tensor **out)                                                    \
    {                                                                                       \
        conv c = {.weight = weight,                                                         \
                  .bias = bias,                                                             \
                  .stride = stride,                                                         \
                  .stride_n = stride_n,                                                     \
                  .by_name = padding,                                                       \
                  .dilation = dilation,                                                     \
                  .dilation_n = dilation_n,                                                 \
                  .groups = groups};                                                        \
        return run("conv" #n "d", n, input, &c, out);                                       \
    }

#define TRANSPOSED(n)                                                                \
    tn_status tni_composite_conv_transpose##n##d(                                    \
        tn_tensor *input, tn_tensor *weight, tn_tensor *bias, const int64_t *stride, \
        int64_t stride_n, const int64_t *padding, int64_t padding_n,                 \
        const int64_t *output_padding, int64_t output_padding_n, int64_t groups,     \
        const int64_t *dilation, int64_t dilation_n, tn_tensor **out)                \
    {                                                                                \
        conv c = {.weight = weight,                                                  \
                  .bias = bias,                                                      \
                  .stride = stride,                                                  \
                  .stride_n = stride_n,                                              \
                  .padding = padding,                                                \
                  .padding_n = padding_n,                                            \
                  .output_padding = output_padding,                                  \
                  .output_padding_n = output_padding_n,                              \
                  .dilation = dilation,                                              \
                  .dilation_n = dilation_n,                                          \
                  .transposed = true,                                                \
                  .groups = groups};                                                 \
        return run("conv_transpose" #n "d", n, input, &c, out);                      \
    }

PLAIN(1)
PLAIN(2)
PLAIN(3)
BY_NAME(1)
BY_NAME(2)
BY_NAME(3)
TRANSPOSED(1)
TRANSPOSED(2)
TRANSPOSED(3)

/* The same for any number of dimensions, of batches alone. */
tn_status tni_composite__convolution_mode(tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                                          const int64_t *stride, int64_t stride_n,
                                          const char *padding, const int64_t *dilation,
                                          int64_t dilation_n, int64_t groups, tn_tensor **out)
{
    const conv c = {.weight = weight,
                    .bias = bias,
                    .stride = stride,
                    .stride_n = stride_n,
                    .by_name = padding,
                    .output_padding = no_padding,
                    .output_padding_n = 1,
                    .dilation = dilation,
                    .dilation_n = dilation_n,
                    .groups = groups};
    return batched(input, &c, out);
}
