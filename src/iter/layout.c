/* SPDX-License-Identifier: MIT */
/* iter/layout.c: in which order the dimensions of an elementwise operation are walked, which
 * decides the strides of a fresh result. */
#include "iter/layout.h"

#include <string.h>

/* Whether dimension p should be walked after q: 1 yes, -1 no, 0 nobody says. The operands are asked
 * in order, the output first when its strides are given. */
static int compare(const tni_iter *it, int p, int q, int first_row)
{
    for (int row = first_row; row <= it->n; row++) {
        int64_t s = it->strides[row][p], t = it->strides[row][q];
        if (s == 0 || t == 0)
            continue;
        if (s != t)
            return s < t ? -1 : 1;
        if (it->sizes[p] > it->sizes[q])
            return 1;
    }
    return 0;
}

bool tni_iter_order(tni_iter *it, bool has_out_strides, uint8_t *perm)
{
    int ndim = it->ndim;
    for (int d = 0; d < ndim; d++)
        perm[d] = (uint8_t)(ndim - 1 - d);
    for (int i = 1; i < ndim; i++) {
        int at = i;
        for (int j = i - 1; j >= 0; j--) {
            int c = compare(it, perm[j], perm[at], has_out_strides ? 0 : 1);
            if (c > 0) {
                uint8_t moved = perm[j];
                perm[j] = perm[at];
                perm[at] = moved;
                at = j;
            } else if (c < 0) {
                break;
            }
        }
    }
    for (int d = 0; d < ndim; d++)
        if (perm[d] != ndim - 1 - d)
            return false;
    return true;
}

void tni_iter_permute(tni_iter *it, const uint8_t *perm, bool has_out_strides)
{
    int64_t old[TN_MAX_DIMS];
    size_t nbytes = (size_t)it->ndim * sizeof(int64_t);
    memcpy(old, it->sizes, nbytes);
    for (int d = 0; d < it->ndim; d++)
        it->sizes[d] = old[perm[d]];
    for (int row = has_out_strides ? 0 : 1; row <= it->n; row++) {
        memcpy(old, it->strides[row], nbytes);
        for (int d = 0; d < it->ndim; d++)
            it->strides[row][d] = old[perm[d]];
    }
}

void tni_iter_coalesce(tni_iter *it)
{
    int last = -1; /* the dimension that others are merged into */
    for (int d = 0; d < it->ndim; d++) {
        if (it->sizes[d] == 1)
            continue;
        bool merge = last >= 0;
        for (int row = 0; merge && row <= it->n; row++)
            merge = it->strides[row][d] == it->strides[row][last] * it->sizes[last];
        if (merge) {
            it->sizes[last] *= it->sizes[d];
            continue;
        }
        last++;
        it->sizes[last] = it->sizes[d];
        for (int row = 0; row <= it->n; row++)
            it->strides[row][last] = it->strides[row][d];
    }
    it->ndim = last + 1;
}
