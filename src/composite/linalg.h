/* SPDX-License-Identifier: MIT */
/* composite/linalg.h: what the composites of linear algebra share: checks of matrices and their
 * dtypes, and small steps. The steps are to be called in a scope, which owns what they return. */
#ifndef TNI_COMPOSITE_LINALG_H
#define TNI_COMPOSITE_LINALG_H

#include "composite/leave.h"
#include "core/tensor.h"
#include "tenon/ops.h"

TN_NODISCARD static inline tn_status tni_linalg_check_matrices(const char *op, const tn_tensor *t)
{
    TN_CHECK(t->ndim >= 2, TN_INVALID, "%s: The input tensor A must have at least 2 dimensions.",
             op);
    return TN_OK;
}

TN_NODISCARD static inline tn_status tni_linalg_check_square(const char *op, const tn_tensor *t)
{
    TN_TRY(tni_linalg_check_matrices(op, t));
    TN_CHECK(t->sizes[t->ndim - 1] == t->sizes[t->ndim - 2], TN_INVALID,
             "%s: A must be batches of square matrices, but they are %lld by %lld matrices", op,
             (long long)t->sizes[t->ndim - 2], (long long)t->sizes[t->ndim - 1]);
    return TN_OK;
}

static inline bool tni_linalg_is_computed(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_F32 || t->dtype == TN_DTYPE_F64 ||
           tn_dtype_is_complex((tn_dtype)t->dtype);
}

TN_NODISCARD static inline tn_status tni_linalg_check_dtype(const char *kernel, const tn_tensor *t)
{
    TN_CHECK(tni_linalg_is_computed(t), TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
             tni_dtype_text((tn_dtype)t->dtype));
    return TN_OK;
}

/* Whether a derivative may be asked for. */
static inline bool tni_linalg_has_derivative(const tn_tensor *t)
{
    return (t->flags & TNI_HAS_TANGENT) || (tn_grad_enabled() && tn_tensor_requires_grad(t));
}

static inline tn_tensor *tni_linalg_adjoint(tn_tensor *t)
{
    return tnx_conj(tnx_transpose(t, -2, -1));
}

/* @p t, column by column in memory. */
static inline tn_tensor *tni_linalg_by_columns(tn_tensor *t)
{
    return tnx_transpose(tnx_contiguous(tnx_transpose(t, -2, -1), TN_FORMAT_CONTIGUOUS), -2, -1);
}

/* Ones on the diagonal, in the sizes of @p t. */
static inline tn_tensor *tni_linalg_identity_like(tn_tensor *t)
{
    tn_tensor *ones = tnx_new_full(t, t->sizes, t->ndim - 1, tn_int(1), NULL);
    return tnx_diag_embed(ones, 0, -2, -1);
}

/* Whether B is a batch of vectors. */
static inline bool tni_linalg_of_vectors(const tn_tensor *A, const tn_tensor *B)
{
    bool same = A->ndim - 1 == B->ndim;
    for (int d = 0; same && d < B->ndim; d++)
        same = A->sizes[d] == B->sizes[d];
    return B->ndim == 1 || same;
}

#endif
