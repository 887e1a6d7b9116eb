/* SPDX-License-Identifier: MIT */
/* cpu/sort.h: numbers with their places, in order. */
#ifndef TNI_CPU_SORT_H
#define TNI_CPU_SORT_H

#include "tenon/dtype.h"

/* A number as an unsigned integer that orders as it does (NaN last, -0 equal to 0), and where it
 * was. Places are all different, so any way of sorting is stable. */
typedef struct tni_place {
    uint64_t key;
    int64_t at;
} tni_place;

/* What the elements of a line are converted to: int32, int64, float32 or float64. */
tn_dtype tni_sort_dtype(tn_dtype dtype);
/* @p dtype is one that tni_sort_dtype gives; @p descending turns the order of numbers round, not
 * that of places. */
void tni_sort_keys(tni_place *to, const void *line, tn_dtype dtype, int64_t n, bool descending);
/* Sort; @p scratch has room for n as well. */
void tni_sort_places(tni_place *x, tni_place *scratch, int64_t n);
/* Bring the k smallest to the front, in any order. */
void tni_select_places(tni_place *x, int64_t n, int64_t k);

#endif
