/* SPDX-License-Identifier: MIT */
/* shape/upsample.c: what upsampling looks like, and what it refuses. */
#include "shape/upsample.h"
#include <stdio.h>
#include "gen/shapes.h"

/* "H: 4, W: 5" of the last @p n of three numbers. */
static const char *named(const int64_t *x, int n, char text[96])
{
    static const char axes[] = "DHW";
    int at = 0;
    for (int i = 3 - n; i < 3; i++)
        at += snprintf(text + at, 96 - (size_t)at, "%s%c: %lld", at ? ", " : "", axes[i],
                       (long long)x[i]);
    return text;
}

tn_status tni_upsample_check(const tni_upsample_args *a, const int64_t *sizes, int64_t ndim,
                             tni_upsample *u)
{
    char in[96], out[96];
    TN_CHECK(a->output_size_n == a->spatial, TN_INVALID,
             "It is expected output_size equals to %d, but got size %lld", a->spatial,
             (long long)a->output_size_n);
    TN_CHECK(ndim == a->spatial + 2, TN_INVALID,
             "It is expected input_size equals to %d, but got size %lld", a->spatial + 2,
             (long long)ndim);
    *u = (tni_upsample){.mode = a->mode,
                        .align = a->align,
                        .spatial = a->spatial,
                        .batch = sizes[0],
                        .channels = sizes[1]};
    bool some = true, fits = true;
    for (int i = 0; i < 3; i++) {
        int d = i - (3 - a->spatial);
        u->in[i] = d < 0 ? 1 : sizes[2 + d];
        u->out[i] = d < 0 ? 1 : a->output_size[d];
        u->scale[i] = d < 0 || !a->scale[d].has ? 0 : a->scale[d].value;
        some = some && u->in[i] > 0 && u->out[i] > 0;
        fits = fits && u->in[i] <= INT32_MAX && u->out[i] <= INT32_MAX;
    }
    TN_CHECK(some, TN_INVALID,
             "Input and output sizes should be greater than 0, but got input (%s) %soutput (%s)",
             named(u->in, a->spatial, in), a->spatial == 1 ? "and " : "",
             named(u->out, a->spatial, out));
    TN_CHECK(fits, TN_INVALID, "integer out of range");
    return TN_OK;
}

/* Sizes [batch, channels, @p last...] in the order in memory that @p like has. */
static tn_status result(tni_geometry *g, const tn_tensor *like, const tni_upsample *u,
                        const int64_t *last, bool keeps_order)
{
    g->ndim = u->spatial + 2;
    g->dtype = (tn_dtype)like->dtype;
    g->device = like->device;
    g->offset = 0;
    g->sizes[0] = u->batch;
    g->sizes[1] = u->channels;
    for (int d = 0; d < u->spatial; d++)
        g->sizes[2 + d] = last[3 - u->spatial + d];
    int64_t elements;
    TN_CHECK(tni_numel(g->ndim, g->sizes, &elements), TN_INVALID,
             "upsampling: a size of the result is too large");
    tn_memory_format format = keeps_order ? tni_suggest_format(like) : TN_FORMAT_CONTIGUOUS;
    g->has_strides = format != TN_FORMAT_CONTIGUOUS;
    if (g->has_strides)
        TN_TRY(tni_format_strides(format, g->ndim, g->sizes, g->strides));
    return TN_OK;
}

static tn_status forward(tni_geometry *g, const tn_tensor *self, const tni_upsample_args *a)
{
    static const char *const kinds[] = {"nearest", "nearest", "linear", "cubic"};
    tni_upsample u;
    char text[TNI_SIZES_TEXT];
    TN_TRY(tni_upsample_check(a, self->sizes, self->ndim, &u));
    TN_CHECK(u.channels > 0, TN_INVALID,
             "Non-empty %dD data tensor expected but got a tensor with sizes %s", self->ndim,
             tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    bool smooth = a->mode >= TNI_UPSAMPLE_SMOOTH_LINEAR;
    bool bytes = a->mode <= TNI_UPSAMPLE_NEAREST_EXACT || smooth || a->spatial == 2;
    bool fits =
        (bytes && self->dtype == TN_DTYPE_U8) || tn_dtype_is_floating((tn_dtype)self->dtype);
    TN_CHECK(fits || !smooth, TN_UNSUPPORTED,
             "\"compute_index_ranges_weights\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    if (!fits && a->spatial == 2 && a->mode != TNI_UPSAMPLE_CUBIC)
        TN_FAIL(TN_UNSUPPORTED, "\"upsample_%s2d_channels_last\" not implemented for '%s'",
                a->mode == TNI_UPSAMPLE_LINEAR ? "bilinear" : "nearest",
                tni_dtype_text((tn_dtype)self->dtype));
    TN_CHECK(fits, TN_UNSUPPORTED, "\"compute_indices_weights_%s\" not implemented for '%s'",
             kinds[a->mode], tni_dtype_text((tn_dtype)self->dtype));
    return result(g, self, &u, u.out, a->spatial > 1);
}

static tn_status backward(tni_geometry *g, const tn_tensor *grad, const int64_t *input_size,
                          int64_t input_size_n, const tni_upsample_args *a)
{
    tni_upsample u;
    TN_TRY(tni_upsample_check(a, input_size, input_size_n, &u));
    int n = a->spatial + 2;
    TN_CHECK(u.batch >= 0 && u.channels >= 0, TN_INVALID,
             "input_size must not be negative, but begins with %lld, %lld", (long long)u.batch,
             (long long)u.channels);
    TN_CHECK(grad->ndim == n || n == 3, TN_INVALID,
             "Expected grad_output to be a tensor of dimension %d but got: dimension %d", n,
             grad->ndim);
    for (int d = 0; d < n; d++) {
        int64_t want = d < 2 ? input_size[d] : a->output_size[d - 2];
        long long size = d < grad->ndim ? (long long)grad->sizes[d] : 0;
        TN_CHECK((grad->ndim == n && size == want) || n != 3, TN_INVALID,
                 "Expected a tensor of dimension %d and tensor.size[%d] == %lld but got: dimension "
                 "%d and tensor.size[%d] = %lld",
                 n, d, (long long)want, grad->ndim, d, size);
        TN_CHECK(size == want, TN_INVALID,
                 "Expected grad_output to have the same shape as output; output.size(%d) = %lld "
                 "but got grad_output.size(%d) = %lld",
                 d, (long long)want, d, size);
    }
    TN_CHECK(tn_dtype_is_floating((tn_dtype)grad->dtype), TN_UNSUPPORTED,
             "\"%s_backward\" not implemented for '%s'", a->name,
             tni_dtype_text((tn_dtype)grad->dtype));
    /* Some kernels of the reference do not keep the order. */
    bool cubic = a->mode == TNI_UPSAMPLE_CUBIC || a->mode == TNI_UPSAMPLE_SMOOTH_CUBIC;
    bool keeps = a->spatial == 2 ? !cubic : a->spatial == 3 && a->mode == TNI_UPSAMPLE_LINEAR;
    return result(g, grad, &u, u.in, keeps);
}

/* The operators: NAME is what follows "upsample_", ALIGN the argument that plain copies lack. */
#define ARGS(lead, n, mode_, align_, ...)                                          \
    {                                                                              \
        .mode = TNI_UPSAMPLE_##mode_, .spatial = n, .name = lead, .align = align_, \
        .output_size = output_size, .output_size_n = output_size_n, .scale = {     \
            __VA_ARGS__                                                            \
        }                                                                          \
    }
#define UPSAMPLE(lead, name_, n, mode_, ALIGN, align_, SCALES, ...)                           \
    tn_status tni_shape_upsample_##name_(tni_geometry *g, tn_tensor *self,                    \
                                         const int64_t *output_size, int64_t output_size_n,   \
                                         ALIGN SCALES)                                        \
    {                                                                                         \
        tni_upsample_args a = ARGS(lead #name_, n, mode_, align_, __VA_ARGS__);               \
        return forward(g, self, &a);                                                          \
    }                                                                                         \
    tn_status tni_shape_upsample_##name_##_backward(                                          \
        tni_geometry *g, tn_tensor *grad_output, const int64_t *output_size,                  \
        int64_t output_size_n, const int64_t *input_size, int64_t input_size_n, ALIGN SCALES) \
    {                                                                                         \
        tni_upsample_args a = ARGS(lead #name_, n, mode_, align_, __VA_ARGS__);               \
        return backward(g, grad_output, input_size, input_size_n, &a);                        \
    }

#define ONE     tn_opt_float scales
#define TWO     tn_opt_float scales_h, tn_opt_float scales_w
#define THREE   tn_opt_float scales_d, tn_opt_float scales_h, tn_opt_float scales_w
#define CORNERS bool align_corners,

UPSAMPLE("upsample_", nearest1d, 1, NEAREST, , false, ONE, scales)
UPSAMPLE("upsample_", nearest2d, 2, NEAREST, , false, TWO, scales_h, scales_w)
UPSAMPLE("upsample_", nearest3d, 3, NEAREST, , false, THREE, scales_d, scales_h, scales_w)
UPSAMPLE("_upsample_", nearest_exact1d, 1, NEAREST_EXACT, , false, ONE, scales)
UPSAMPLE("_upsample_", nearest_exact2d, 2, NEAREST_EXACT, , false, TWO, scales_h, scales_w)
UPSAMPLE("_upsample_", nearest_exact3d, 3, NEAREST_EXACT, , false, THREE, scales_d, scales_h,
         scales_w)
UPSAMPLE("upsample_", linear1d, 1, LINEAR, CORNERS, align_corners, ONE, scales)
UPSAMPLE("upsample_", bilinear2d, 2, LINEAR, CORNERS, align_corners, TWO, scales_h, scales_w)
UPSAMPLE("upsample_", trilinear3d, 3, LINEAR, CORNERS, align_corners, THREE, scales_d, scales_h,
         scales_w)
UPSAMPLE("upsample_", bicubic2d, 2, CUBIC, CORNERS, align_corners, TWO, scales_h, scales_w)
UPSAMPLE("upsample_", bilinear2d_aa, 2, SMOOTH_LINEAR, CORNERS, align_corners, TWO, scales_h,
         scales_w)
UPSAMPLE("upsample_", bicubic2d_aa, 2, SMOOTH_CUBIC, CORNERS, align_corners, TWO, scales_h,
         scales_w)
