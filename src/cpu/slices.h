/* SPDX-License-Identifier: MIT */
/* cpu/slices.h: slices of a tensor that lie at given places, read, written or added to.
 *
 * One side, `a`, has its slices at places that an index says; the other, `b`, has them in order.
 * All of a slice's dimensions are walked alike on both sides. Indexing, embeddings, index_add and
 * their kin are this walk with different places. */
#ifndef TNI_CPU_SLICES_H
#define TNI_CPU_SLICES_H

#include "cpu/pick.h"

typedef enum tni_slices_what {
    TNI_SLICES_READ,    /* b = a */
    TNI_SLICES_WRITE,   /* a = b; of equal places the last one wins */
    TNI_SLICES_COMBINE, /* a = a op b, in the order of slices */
} tni_slices_what;

/* All strides and places are in bytes. */
typedef struct tni_slices {
    tni_slices_what what;
    tni_combination op; /* for COMBINE */
    tn_dtype dtype;
    size_t itemsize;
    char *a;
    const int64_t *a_at; /* where slice i of `a` begins */
    char *b;
    const int64_t *b_at; /* where slice i of `b` begins; NULL: at i * b_step */
    int64_t b_step;
    int64_t n; /* slices */
    int ndim;  /* of a slice; filled by tni_slices_dim */
    int64_t sizes[TN_MAX_DIMS], a_strides[TN_MAX_DIMS], b_strides[TN_MAX_DIMS];
} tni_slices;

/* Slices of @p a at the places @p at, and of @p b one after the other; they have no dimensions yet,
 * and `b_step` is for the caller to say. */
static inline tni_slices tni_slices_of(tni_slices_what what, tn_tensor *a, const tn_tensor *at,
                                       tn_tensor *b)
{
    tni_slices r;
    r.what = what;
    r.op = TNI_COMBINE_ADD;
    r.dtype = (tn_dtype)a->dtype;
    r.itemsize = tni_itemsize(a);
    r.a = a->data;
    r.a_at = at->data;
    r.b = b->data;
    r.b_at = NULL;
    r.n = at->numel;
    r.ndim = 0;
    return r;
}

/* Add a dimension to the slices. */
void tni_slices_dim(tni_slices *r, int64_t size, int64_t a_stride, int64_t b_stride);
/* Do it. The result does not depend on the number of threads. */
TN_NODISCARD tn_status tni_slices_run(tni_slices *r);

/* Places i * stride of n indices. @retval false  one is out of [0, size), or of [-size, size) when
 * negative ones count from the end; *bad is the first of them */
bool tni_slices_places(const int64_t *index, int64_t n, int64_t size, int64_t stride, bool wrap,
                       int64_t *at, int64_t *bad);

#endif
