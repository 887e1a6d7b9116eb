/* SPDX-License-Identifier: MIT */
/* core/overlap.c: whether writing a tensor disturbs itself, or what must lie apart from it. */
#include "core/tensor.h"

#include "base/status.h"

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Two dimensions alone reach one place twice: i * s == j * t for some 0 < i < n, 0 < j < m. A
 * stride of 0 reaches it at once. The reference only looks for strides of 0. */
int tni_repeating_dim(const tn_tensor *t)
{
    if (t->flags & TNI_DENSE)
        return -1;
    for (int p = 0; p < t->ndim; p++) {
        if (t->sizes[p] < 2)
            continue;
        if (t->strides[p] == 0)
            return p;
        for (int q = 0; q < p; q++) {
            if (t->sizes[q] < 2)
                continue;
            int64_t g = gcd(t->strides[p], t->strides[q]);
            if (t->strides[q] / g < t->sizes[p] && t->strides[p] / g < t->sizes[q])
                return t->sizes[p] < t->sizes[q] ? p : q;
        }
    }
    return -1;
}

tn_status tni_check_internal_overlap(const tn_tensor *t)
{
    TN_CHECK(
        t->numel == 0 || tni_repeating_dim(t) < 0, TN_INVALID,
        "unsupported operation: more than one element of the written-to tensor refers to a single "
        "memory location. Please clone() the tensor before performing the operation.");
    return TN_OK;
}

tn_status tni_check_apart(const tn_tensor *written, const tn_tensor *input)
{
    bool shared = written == input;
    if (!shared && written->numel > 0 && input->numel > 0 &&
        (written->flags & input->flags & TNI_DENSE)) {
        /* Dense: elements fill their range. Meta tensors have no addresses, but offsets. */
        bool placed = written->data && input->data;
        int64_t a = placed ? (int64_t)(intptr_t)written->data
                           : written->offset * (int64_t)tni_itemsize(written);
        int64_t b =
            placed ? (int64_t)(intptr_t)input->data : input->offset * (int64_t)tni_itemsize(input);
        shared = (placed || written->storage == input->storage) &&
                 a < b + input->numel * (int64_t)tni_itemsize(input) &&
                 b < a + written->numel * (int64_t)tni_itemsize(written);
    }
    TN_CHECK(
        !shared, TN_INVALID,
        "unsupported operation: some elements of the input tensor and the written-to tensor refer "
        "to a single memory location. Please clone() the tensor before performing the operation.");
    return TN_OK;
}
