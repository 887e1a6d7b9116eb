/* SPDX-License-Identifier: MIT */
/* core/shape.c: arithmetic on sizes and strides: contiguity, memory formats, element and byte
 * counts. What an operator makes of its inputs' shapes is the shape layer's business. */
#include "core/tensor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- flags ---- */

/* Walk dimensions from the fastest to the slowest: each that is longer than 1 must have the stride
 * that the faster ones fill. Products wrap instead of overflowing; a wrapped one matches no real
 * stride. */
static bool is_packed(int n, const int8_t *order, const int64_t *sizes, const int64_t *strides)
{
    uint64_t expected = 1;
    for (int i = 0; i < n; i++) {
        int d = order[i];
        if (sizes[d] == 1)
            continue;
        if ((uint64_t)strides[d] != expected)
            return false;
        expected *= (uint64_t)sizes[d];
    }
    return true;
}

static const int8_t channels_last_2d[4] = {1, 3, 2, 0};
static const int8_t channels_last_3d[5] = {1, 4, 3, 2, 0};

/* Sort by stride, then walk: dense and without overlap when each stride is the product of the
 * faster sizes. Dimensions of size 1 do not matter; size 0 is contiguous and does not come here. */
static bool is_dense(int ndim, const int64_t *sizes, const int64_t *strides)
{
    int8_t order[TN_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < ndim; d++) {
        if (sizes[d] < 2)
            continue;
        int at = n++;
        for (; at > 0 && strides[order[at - 1]] > strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = (int8_t)d;
    }
    return is_packed(n, order, sizes, strides);
}

uint32_t tni_geometry_flags(int ndim, const int64_t *sizes, const int64_t *strides)
{
    bool contiguous = true, empty = false;
    uint64_t expected = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        if (sizes[d] == 1)
            continue;
        contiguous &= (uint64_t)strides[d] == expected;
        empty |= sizes[d] == 0;
        expected *= (uint64_t)sizes[d];
    }
    uint32_t flags = contiguous || empty ? TNI_CONTIGUOUS | TNI_DENSE : 0;
    if (ndim == 4 && is_packed(4, channels_last_2d, sizes, strides))
        flags |= TNI_CHANNELS_LAST | TNI_DENSE;
    else if (ndim == 5 && is_packed(5, channels_last_3d, sizes, strides))
        flags |= TNI_CHANNELS_LAST_3D | TNI_DENSE;
    if (!(flags & TNI_DENSE) && is_dense(ndim, sizes, strides))
        flags |= TNI_DENSE;
    return flags;
}

/* ---- formats ---- */

void tni_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides)
{
    int64_t stride = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride = (int64_t)((uint64_t)stride * (uint64_t)(sizes[d] > 1 ? sizes[d] : 1));
    }
}

tn_status tni_format_strides(tn_memory_format format, int ndim, const int64_t *sizes,
                             int64_t *strides)
{
    if (format == TN_FORMAT_CONTIGUOUS) {
        tni_contiguous_strides(ndim, sizes, strides);
        return TN_OK;
    }
    bool last_3d = format == TN_FORMAT_CHANNELS_LAST_3D;
    TN_CHECK(last_3d || format == TN_FORMAT_CHANNELS_LAST, TN_INVALID,
             "unsupported memory format option %d", (int)format);
    TN_CHECK(last_3d || ndim == 4, TN_INVALID,
             "required rank 4 tensor to use channels_last format");
    TN_CHECK(!last_3d || ndim == 5, TN_INVALID,
             "required rank 5 tensor to use channels_last_3d format");
    const int8_t *order = last_3d ? channels_last_3d : channels_last_2d;
    uint64_t stride = 1;
    for (int i = 0; i < ndim; i++) { /* here a size 0 makes all slower strides 0 */
        strides[order[i]] = (int64_t)stride;
        stride *= (uint64_t)sizes[order[i]];
    }
    return TN_OK;
}

/* Which of two dimensions is faster: negative p, positive q, 0 undecided. A stride of 0 decides
 * nothing; of equal strides the shorter dimension is the faster one. */
static int compare_dims(const tn_tensor *t, int p, int q)
{
    int64_t sp = t->strides[p], sq = t->strides[q];
    if (sp == 0 || sq == 0)
        return 0;
    if (sp != sq)
        return sp < sq ? -1 : 1;
    return t->sizes[p] > t->sizes[q] ? 1 : 0;
}

void tni_preserve_strides(const tn_tensor *from, int64_t *strides)
{
    int n = from->ndim;
    if (from->flags & TNI_DENSE) {
        memcpy(strides, from->strides, (size_t)n * sizeof *strides);
        return;
    }
    int8_t order[TN_MAX_DIMS];
    for (int i = 0; i < n; i++)
        order[i] = (int8_t)(n - 1 - i);
    /* An insertion sort that keeps looking past undecided neighbours: the result of others depends
     * on exactly this order, so a library sort will not do. */
    for (int i = 1; i < n; i++) {
        int at = i;
        for (int before = i - 1; before >= 0; before--) {
            int c = compare_dims(from, order[before], order[at]);
            if (c < 0)
                break;
            if (c > 0) {
                int8_t moved = order[before];
                order[before] = order[at];
                order[at] = moved;
                at = before;
            }
        }
    }
    int64_t stride = 1;
    for (int i = 0; i < n; i++) {
        strides[order[i]] = stride;
        if (from->sizes[order[i]] > 1)
            stride *= from->sizes[order[i]];
    }
}

static bool looks_like(const tn_tensor *t, int n, const int8_t *order)
{
    if (t->ndim != n || t->strides[1] == 0)
        return false;
    int64_t min = 0;
    for (int i = 0; i < n; i++) {
        int d = order[i];
        if (t->sizes[d] == 0 || t->strides[d] < min)
            return false;
        if (d == 0 && min == t->strides[1]) /* N111 could be either: take contiguous */
            return false;
        min = t->strides[d];
        if (t->sizes[d] > 1)
            min = (int64_t)((uint64_t)min * (uint64_t)t->sizes[d]);
    }
    return true;
}

tn_memory_format tni_suggest_format(const tn_tensor *t)
{
    if (looks_like(t, 4, channels_last_2d))
        return TN_FORMAT_CHANNELS_LAST;
    if (looks_like(t, 5, channels_last_3d))
        return TN_FORMAT_CHANNELS_LAST_3D;
    return TN_FORMAT_CONTIGUOUS;
}

/* ---- counts ---- */

bool tni_numel(int ndim, const int64_t *sizes, int64_t *out)
{
    int64_t product = 1;
    bool empty = false;
    for (int d = 0; d < ndim; d++) {
        empty |= sizes[d] == 0;
        if (sizes[d] > 1 && !tni_i64_mul(product, sizes[d], &product))
            return false;
    }
    *out = empty ? 0 : product;
    return true;
}

bool tni_required_bytes(int ndim, const int64_t *sizes, const int64_t *strides, int64_t offset,
                        size_t itemsize, size_t *out)
{
    int64_t last = offset;
    for (int d = 0; d < ndim; d++) {
        int64_t span;
        if (sizes[d] == 0) {
            *out = 0;
            return true;
        }
        if (!tni_i64_mul(sizes[d] - 1, strides[d], &span) || !tni_i64_add(last, span, &last))
            return false;
    }
    int64_t bytes;
    if (!tni_i64_add(last, 1, &last) || !tni_i64_mul(last, (int64_t)itemsize, &bytes) || bytes < 0)
        return false;
    *out = (size_t)bytes;
    return true;
}

tn_status tni_wrap_dim(int64_t dim, int ndim, int *out)
{
    int64_t n = ndim == 0 ? 1 : ndim; /* a 0-dim tensor counts as one of one dimension */
    TN_CHECK(dim >= -n && dim < n, TN_INDEX,
             "Dimension out of range (expected to be in range of [%" PRId64 ", %" PRId64
             "], but got %" PRId64 ")",
             -n, n - 1, dim);
    *out = (int)(dim < 0 ? dim + n : dim);
    return TN_OK;
}

char *tni_format_sizes(int ndim, const int64_t *sizes, char *buffer, size_t n)
{
    if (n == 0)
        return buffer;
    static const char cut[] = "...]";
    size_t at = (size_t)snprintf(buffer, n, "[");
    for (int d = 0; d < ndim; d++) {
        char piece[32];
        size_t need = (size_t)snprintf(piece, sizeof piece, "%s%" PRId64, d ? ", " : "", sizes[d]);
        /* Leave room for the end, and for the cut unless this was the last. */
        if (at + need + (d + 1 < ndim ? sizeof cut + 2 : 2) > n) {
            snprintf(buffer + at, n - at, "%s%s", d ? ", " : "", cut);
            return buffer;
        }
        memcpy(buffer + at, piece, need);
        at += need;
    }
    snprintf(buffer + at, n - at, "]");
    return buffer;
}
