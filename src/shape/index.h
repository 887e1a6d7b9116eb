/* SPDX-License-Identifier: MIT */
/* shape/index.h: checks and geometry that operators with index tensors share. */
#ifndef TNI_SHAPE_INDEX_H
#define TNI_SHAPE_INDEX_H

#include "core/tensor.h"

/* A fresh row-major result; the sizes are the caller's to fill. */
static inline void tni_geometry_fresh(tni_geometry *g, const tn_tensor *like, int ndim)
{
    g->ndim = ndim;
    g->dtype = (tn_dtype)like->dtype;
    g->device = like->device;
    g->has_strides = false;
    g->offset = 0;
}
/* The same with the sizes of @p like. */
static inline void tni_geometry_sizes_of(tni_geometry *g, const tn_tensor *like)
{
    tni_geometry_fresh(g, like, like->ndim);
    for (int i = 0; i < like->ndim; i++)
        g->sizes[i] = like->sizes[i];
}

/* @retval TN_INVALID  "Expected all tensors to be on the same device, but found at least two
 * devices, cpu and meta!" */
TN_NODISCARD tn_status tni_same_device(const tn_tensor *a, const tn_tensor *b);
/* A `bool[3]` has as many elements as its type says.
 * @retval TN_INVALID  "Tried to convert a List with 1 elements to a fixed-size array of size 3" */
TN_NODISCARD tn_status tni_check_mask_length(int64_t n, int64_t wanted);

/* What `index` means, once masks are gone: which dimensions of self are indexed, and how the result
 * is put together. Index i of dimension d is indices[k] with dims[k] == d. */
typedef struct tni_index_plan {
    int n;                 /* index tensors */
    int dims[TN_MAX_DIMS]; /* the dimension each of them indexes */
    int ndim;              /* of what the indices are broadcast to */
    int64_t sizes[TN_MAX_DIMS];
    int first;  /* where these dimensions begin in the result */
    int rest_n; /* dimensions of self that are not indexed, in order */
    int rest[TN_MAX_DIMS];
} tni_index_plan;

/* Plan self[indices]; none of them is a mask, NULL entries take the whole dimension.
 * @retval TN_INDEX  the reference's texts */
TN_NODISCARD tn_status tni_index_plan_make(const tn_tensor *self, tn_tensor *const *indices,
                                           int64_t n, tni_index_plan *out);
/* What self[indices] looks like. Strides follow the rules of elementwise operators, with self and
 * the indices as operands. */
void tni_index_geometry(const tni_index_plan *plan, const tn_tensor *self,
                        tn_tensor *const *indices, tni_geometry *g);
/* Sizes alone; returns how many. */
int tni_index_sizes(const tni_index_plan *plan, const tn_tensor *self, int64_t *sizes);
/* Whether these are indices at all, and not too many.
 * @retval TN_INDEX  "tensors used as indices must be long, int, byte or bool tensors" */
TN_NODISCARD tn_status tni_check_indices(const tn_tensor *self, tn_tensor *const *indices,
                                         int64_t n);
/* True for bool and uint8, which stand for the places where they are not 0. */
static inline bool tni_is_mask(const tn_tensor *t)
{
    return t && (t->dtype == TN_DTYPE_BOOL || t->dtype == TN_DTYPE_U8);
}

#endif
