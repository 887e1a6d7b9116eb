/* SPDX-License-Identifier: MIT */
/* cpu/pick.h: elements at given places: reading, writing, and combining with what is there. Places
 * are byte offsets. */
#ifndef TNI_CPU_PICK_H
#define TNI_CPU_PICK_H

#include "core/tensor.h"

/* to[i] = *(from + at[i]), for elements of @p itemsize bytes: 1, 2, 4, 8 or 16. */
void tni_pick(void *to, const char *from, const int64_t *at, int64_t n, size_t itemsize);
/* *(to + at[i]) = from[i], in order: of equal places the last one wins. */
void tni_place(char *to, const int64_t *at, const void *from, int64_t n, size_t itemsize);

typedef enum tni_combination {
    TNI_COMBINE_ADD,
    TNI_COMBINE_MUL,
    TNI_COMBINE_MAX, /* NaN wins; not for complex numbers */
    TNI_COMBINE_MIN,
    TNI_COMBINE_LIMIT,
} tni_combination;

/* *(to + at[i]) = *(to + at[i]) op from[i], in order. Integers wrap, bool adds as "or"; halves are
 * computed in float and rounded each time. NULL: there is none. */
typedef void (*tni_combine_fn)(char *to, const int64_t *at, const void *from, int64_t n);
tni_combine_fn tni_combine_find(tni_combination op, tn_dtype dtype);

/* The values of an index tensor (int32 or int64) as a contiguous int64 tensor: itself, or a copy.
 */
TN_NODISCARD tn_status tni_index_run(tn_tensor *index, TN_OWNED tn_tensor **out);

#endif
