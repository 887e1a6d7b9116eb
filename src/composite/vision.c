/* SPDX-License-Identifier: MIT */
/* composite/vision.c: rearranging channels, grids of affine maps, distances and bags by their usual
 * names. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"
#include <string.h>

/* ---- channels ---- */

/* @p made in the memory format that @p self suggests, also where sizes of 1 leave that open. */
static tn_status like_input(const tn_tensor *self, tn_tensor **made, tn_tensor **out)
{
    tn_memory_format format = tni_suggest_format(self);
    if (format != TN_FORMAT_CONTIGUOUS)
        return tn_clone(*made, format, out);
    *out = TN_MOVE(*made);
    return TN_OK;
}

/* The last three dimensions of @p self taken apart into five, those put in another order, and
 * joined to three again: a dense copy. */
static tn_status rearrange(tn_tensor *self, const int64_t parts[5], const int64_t turned[5],
                           const int64_t joined[3], tn_tensor **out)
{
    int n = self->ndim;
    int64_t sizes[TN_MAX_DIMS], order[TN_MAX_DIMS];
    for (int d = 0; d < n - 3; d++) {
        sizes[d] = self->sizes[d];
        order[d] = d;
    }
    for (int i = 0; i < 5; i++) {
        sizes[n - 3 + i] = parts[i];
        order[n - 3 + i] = n - 3 + turned[i];
    }
    TN_AUTO(tn_tensor) apart = NULL;
    TN_AUTO(tn_tensor) moved = NULL;
    TN_AUTO(tn_tensor) dense = NULL;
    TN_TRY(tn_reshape(self, sizes, n + 2, &apart));
    TN_TRY(tn_permute(apart, order, n + 2, &moved));
    TN_TRY(tn_clone(moved, TN_FORMAT_CONTIGUOUS, &dense));
    TN_AUTO(tn_tensor) made = NULL;
    memcpy(sizes + n - 3, joined, 3 * sizeof *joined);
    TN_TRY(tn_view(dense, sizes, n, &made));
    return like_input(self, &made, out);
}

tn_status tni_composite_pixel_shuffle(tn_tensor *self, int64_t upscale_factor, tn_tensor **out)
{
    int n = self->ndim;
    int64_t r = upscale_factor;
    TN_CHECK(n >= 3, TN_INVALID,
             "pixel_shuffle expects input to have at least 3 dimensions, but got input with %d "
             "dimension(s)",
             n);
    TN_CHECK(r > 0, TN_INVALID, "pixel_shuffle expects a positive upscale_factor, but got %lld",
             (long long)r);
    int64_t square;
    TN_CHECK(!__builtin_mul_overflow(r, r, &square), TN_VALUE,
             "upscale factor is too large, (upscale_factor)^2 overflowed: upscale_factor=%lld",
             (long long)r);
    int64_t c = self->sizes[n - 3], h = self->sizes[n - 2], w = self->sizes[n - 1];
    TN_CHECK(c % (r * r) == 0, TN_INVALID,
             "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
             "of upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
             (long long)c, (long long)(r * r));
    TN_CHECK(n + 2 <= TN_MAX_DIMS, TN_INVALID, "pixel_shuffle: too many dimensions");
    const int64_t parts[] = {c / (r * r), r, r, h, w}, turned[] = {0, 3, 1, 4, 2};
    const int64_t joined[] = {c / (r * r), h * r, w * r};
    return rearrange(self, parts, turned, joined, out);
}

tn_status tni_composite_pixel_unshuffle(tn_tensor *self, int64_t downscale_factor, tn_tensor **out)
{
    int n = self->ndim;
    int64_t r = downscale_factor;
    static const char *const names[] = {"height", "width"};
    TN_CHECK(n >= 3, TN_INVALID,
             "pixel_unshuffle expects input to have at least 3 dimensions, but got input with %d "
             "dimension(s)",
             n);
    TN_CHECK(r > 0, TN_INVALID, "pixel_unshuffle expects a positive downscale_factor, but got %lld",
             (long long)r);
    for (int i = 0; i < 2; i++)
        TN_CHECK(self->sizes[n - 2 + i] % r == 0, TN_INVALID,
                 "pixel_unshuffle expects %s to be divisible by downscale_factor, but "
                 "input.size(%d)=%lld is not divisible by %lld",
                 names[i], i - 2, (long long)self->sizes[n - 2 + i], (long long)r);
    TN_CHECK(n + 2 <= TN_MAX_DIMS, TN_INVALID, "pixel_unshuffle: too many dimensions");
    int64_t c = self->sizes[n - 3], h = self->sizes[n - 2] / r, w = self->sizes[n - 1] / r;
    const int64_t parts[] = {c, h, r, w, r}, turned[] = {0, 2, 4, 1, 3};
    const int64_t joined[] = {c * r * r, h, w};
    return rearrange(self, parts, turned, joined, out);
}

tn_status tni_composite_channel_shuffle(tn_tensor *self, int64_t groups, tn_tensor **out)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(self->ndim > 2, TN_INVALID,
             "channel_shuffle expects input with > 2 dims, but got input with sizes %s",
             tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    int64_t c = self->sizes[1];
    TN_CHECK(groups > 0, TN_INVALID,
             "Number of groups to divide channels in must be positive. Value of groups:%lld",
             (long long)groups);
    TN_CHECK(c % groups == 0, TN_INVALID,
             "Number of channels must be divisible by groups. Got %lld channels and %lld groups.",
             (long long)c, (long long)groups);
    int64_t sizes[] = {self->sizes[0], groups, c / groups, -1};
    TN_AUTO(tn_tensor) apart = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) dense = NULL;
    if (self->numel == 0)
        return tn_alias(self, out);
    TN_TRY(tn_reshape(self, sizes, 4, &apart));
    TN_TRY(tn_transpose(apart, 1, 2, &turned));
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_contiguous(turned, TN_FORMAT_CONTIGUOUS, &dense));
    TN_TRY(tn_reshape(dense, self->sizes, self->ndim, &made));
    return like_input(self, &made, out);
}

/* ---- grids ---- */

tn_status tni_composite_grid_sampler(tn_tensor *input, tn_tensor *grid, int64_t interpolation_mode,
                                     int64_t padding_mode, bool align_corners, tn_tensor **out)
{
    return (input->ndim == 5 ? tn_grid_sampler_3d : tn_grid_sampler_2d)(
        input, grid, interpolation_mode, padding_mode, align_corners, out);
}

/* -1 to 1 in n steps, at the middle of elements or at their corners. */
static tn_status ruler(tn_tensor *theta, int64_t n, bool align_corners, tn_tensor **out)
{
    TN_AUTO(tn_tensor) edges = NULL;
    if (n <= 1)
        return tn_new_zeros(theta, &n, 1, NULL, out);
    TN_TRY(tn_new_empty(theta, &n, 1, NULL, &edges));
    TN_TRY(tn_linspace_out(tn_int(-1), tn_int(1), n, edges));
    if (!align_corners) { /* in two steps, as PyTorch: the bits decide beside which pixel it lies */
        TN_AUTO(tn_tensor) wide = NULL;
        TN_TRY(tn_mul_scalar(edges, tn_int(n - 1), &wide));
        return tn_div_scalar(wide, tn_int(n), out);
    }
    *out = TN_MOVE(edges);
    return TN_OK;
}

/* One coordinate of every place of a grid of @p sizes, which runs along dimension @p d. */
static tn_status coordinate(tn_tensor *theta, const int64_t *sizes, int n, int d,
                            bool align_corners, tn_tensor **out)
{
    TN_AUTO(tn_tensor) line = NULL;
    TN_AUTO(tn_tensor) placed = NULL;
    int64_t along[4], all[4];
    for (int i = 0; i <= n; i++) {
        along[i] = i == d ? sizes[i] : 1;
        all[i] = i < n ? sizes[i] : 1;
    }
    TN_TRY(ruler(theta, sizes[d], align_corners, &line));
    TN_TRY(tn_view(line, along, n + 1, &placed));
    return tn_expand(placed, all, n + 1, false, out);
}

tn_status tni_composite_affine_grid_generator(tn_tensor *theta, const int64_t *size, int64_t size_n,
                                              bool align_corners, tn_tensor **out)
{
    int n = (int)size_n - 2; /* spatial dimensions */
    TN_CHECK((n == 2 || n == 3) && theta->ndim == 3 && theta->sizes[1] == n &&
                 theta->sizes[2] == n + 1,
             TN_INVALID,
             "affine_grid_generator: expected theta [n, 2, 3] and 4 sizes, or [n, 3, 4] and 5, but "
             "got %d dimensions and %lld sizes",
             theta->ndim, (long long)size_n);
    int64_t places = 1, grid[5] = {size[0]}, ones_size[4];
    tn_tensor *parts[4] = {NULL};
    for (int i = 0; i < n; i++) {
        TN_CHECK(tni_i64_mul(places, size[2 + i], &places), TN_INVALID,
                 "affine_grid_generator: more places than 64 bits count");
        grid[1 + i] = ones_size[i] = size[2 + i];
    }
    grid[n + 1] = n;
    ones_size[n] = 1;
    TN_AUTO(tn_tensor) base = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) batch = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) flat = NULL;
    tn_status status = tn_new_ones(theta, ones_size, n + 1, NULL, &parts[n]);
    for (int i = 0; i < n && status == TN_OK; i++) /* the last dimension is the first coordinate */
        status = coordinate(theta, size + 2, n, n - 1 - i, align_corners, &parts[i]);
    if (status == TN_OK)
        status = tn_cat(parts, n + 1, n, &base);
    for (int i = 0; i <= n; i++)
        tn_tensor_unref(parts[i]);
    TN_TRY(status);
    TN_TRY(tn_view(base, (const int64_t[]){1, places, n + 1}, 3, &rows));
    TN_TRY(tn_expand(rows, (const int64_t[]){size[0], places, n + 1}, 3, false, &batch));
    TN_TRY(tn_transpose(theta, 1, 2, &turned));
    TN_TRY(tn_bmm(batch, turned, &flat));
    return tn_view(flat, grid, n + 2, out);
}

/* ---- distances and bags ---- */

tn_status tni_composite_cdist(tn_tensor *x1, tn_tensor *x2, double p, tn_opt_int compute_mode,
                              tn_tensor **out)
{
    TN_CHECK(x1->ndim >= 2, TN_INVALID, "cdist only supports at least 2D tensors, X1 got: %dD",
             x1->ndim);
    TN_CHECK(x2->ndim >= 2, TN_INVALID, "cdist only supports at least 2D tensors, X2 got: %dD",
             x2->ndim);
    return tn__cdist_forward(x1, x2, p, compute_mode, out);
}

tn_status tni_composite_pdist(tn_tensor *self, double p, tn_tensor **out)
{
    TN_AUTO(tn_tensor) dense = NULL;
    TN_CHECK(self->ndim == 2, TN_INVALID, "pdist only supports 2D tensors, got: %dD", self->ndim);
    TN_TRY(tn_contiguous(self, TN_FORMAT_CONTIGUOUS, &dense));
    return tn__pdist_forward(dense, p, out);
}

tn_status tni_composite_embedding_bag(tn_tensor *weight, tn_tensor *indices, tn_tensor *offsets,
                                      bool scale_grad_by_freq, int64_t mode, bool sparse,
                                      tn_tensor *per_sample_weights, bool include_last_offset,
                                      tn_tensor **out0, tn_tensor **out1, tn_tensor **out2,
                                      tn_tensor **out3)
{
    return tn__embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                             per_sample_weights, include_last_offset, -1, out0, out1, out2, out3);
}

tn_status tni_composite_embedding_bag_padding(
    tn_tensor *weight, tn_tensor *indices, tn_tensor *offsets, bool scale_grad_by_freq,
    int64_t mode, bool sparse, tn_tensor *per_sample_weights, bool include_last_offset,
    tn_opt_int padding_idx, tn_tensor **out0, tn_tensor **out1, tn_tensor **out2, tn_tensor **out3)
{
    int64_t n = weight->ndim > 0 ? weight->sizes[0] : 0,
            at = padding_idx.has ? padding_idx.value : -1;
    TN_CHECK(
        !padding_idx.has || (at >= -n && at < n), TN_INVALID,
        "padding_idx must be within the number of embeddings, -%lld through %lld, but got %lld",
        (long long)n, (long long)n - 1, (long long)at);
    if (padding_idx.has && at < 0)
        at += n;
    return tn__embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse,
                             per_sample_weights, include_last_offset, at, out0, out1, out2, out3);
}
