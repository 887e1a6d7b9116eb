/* SPDX-License-Identifier: MIT */
/* autograd/formula.h: what formulas written by hand share. See formula.c. */
#ifndef TNI_AUTOGRAD_FORMULA_H
#define TNI_AUTOGRAD_FORMULA_H

#include "core/tensor.h"

/* What was reduced over @p dim, as if with keepdim: the reduced dimensions put back with size 1. No
 * dimensions: all were reduced, and a 0-dim tensor broadcasts as it is. */
TN_BORROWED tn_tensor *tni_restore_dims(tn_tensor *t, int64_t ndim, const int64_t *dim,
                                        int64_t dim_n, bool keepdim);
/* How many elements each result of a reduction over @p dim is made of; no dimensions: all. */
int64_t tni_count_reduced(const int64_t *sizes, int64_t ndim, const int64_t *dim, int64_t dim_n);
/* Whether the elements of @p t can be looked at, to choose between formulas: not where there are
 * none, and not where Python stands for them … */
static inline bool tni_can_look(const tn_tensor *t)
{
    return !tni_is_meta(t) && !(t->keys & (TNI_FBIT(TN_KEY_FAKE) | TNI_FBIT(TN_KEY_PYTHON)));
}
/* … as for all slices of a vmap at once: then both cases may be there. */
static inline bool tni_stands_for_others(const tn_tensor *t)
{
    const tn_keyset either = TNI_FBIT(TN_KEY_FAKE) | TNI_FBIT(TN_KEY_PYTHON);
    return (t->keys & either) == TNI_FBIT(TN_KEY_PYTHON);
}
static inline int64_t tni_wrapped(int64_t dim, int64_t ndim)
{
    return dim < 0 ? dim + ndim : dim;
}

#endif
