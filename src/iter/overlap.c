/* SPDX-License-Identifier: MIT */
/* iter/overlap.c: whether writing one tensor disturbs another one. */
#include "iter/iter.h"

/* Bytes from the first to past the last element, without dimension @p skip. */
static int64_t extent(const tn_tensor *t, int skip)
{
    int64_t last = 0;
    for (int d = 0; d < t->ndim; d++)
        last += d == skip ? 0 : (t->sizes[d] - 1) * t->strides[d];
    return (last + 1) * (int64_t)tni_itemsize(t);
}

static bool same_places(const tn_tensor *a, const tn_tensor *b)
{
    if (a->ndim != b->ndim || tni_itemsize(a) != tni_itemsize(b))
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->sizes[d] != b->sizes[d] || (a->sizes[d] > 1 && a->strides[d] != b->strides[d]))
            return false;
    return true;
}

static int longest_stride(const tn_tensor *t)
{
    int best = -1;
    for (int d = 0; d < t->ndim; d++)
        if (t->sizes[d] > 1 && (best < 0 || t->strides[d] > t->strides[best]))
            best = d;
    return best;
}

/* Columns of one matrix: with a common longest stride, what is left of each tensor lies in one
 * period of that stride, and the two do not touch there. @p distance is from a's first byte to b's.
 */
static bool side_by_side(const tn_tensor *a, const tn_tensor *b, int64_t distance)
{
    int p = longest_stride(a), q = longest_stride(b);
    if (p < 0 || q < 0)
        return false;
    int64_t period = a->strides[p] * (int64_t)tni_itemsize(a);
    if (period == 0 || period != b->strides[q] * (int64_t)tni_itemsize(b))
        return false;
    int64_t shift = distance % period;
    if (shift < 0)
        shift += period;
    return extent(a, p) <= shift && shift + extent(b, q) <= period;
}

tn_status tni_check_overlap(const tn_tensor *written, const tn_tensor *input, bool *copy_first)
{
    *copy_first = false;
    if (written == input || written->numel == 0 || input->numel == 0)
        return TN_OK;
    /* Meta tensors have no addresses: there the storage and the offset say where an element is. */
    int64_t from, to;
    if (written->data && input->data) {
        from = (int64_t)(intptr_t)written->data;
        to = (int64_t)(intptr_t)input->data;
    } else if (written->storage == input->storage) {
        from = written->offset * (int64_t)tni_itemsize(written);
        to = input->offset * (int64_t)tni_itemsize(input);
    } else {
        return TN_OK;
    }
    if (from + extent(written, -1) <= to || to + extent(input, -1) <= from)
        return TN_OK;
    if (from == to && same_places(written, input))
        return TN_OK;
    TN_CHECK(
        !(written->flags & input->flags & TNI_DENSE), TN_INVALID,
        "unsupported operation: some elements of the input tensor and the written-to tensor refer "
        "to a single memory location. Please clone() the tensor before performing the operation.");
    *copy_first = !side_by_side(written, input, to - from);
    return TN_OK;
}
