/* SPDX-License-Identifier: MIT */
/* autograd/formula.c: parts of formulas that many operators share, written by hand.
 *
 * All are made of operators, so that they can be differentiated again. Results belong to the scope,
 * where failures stick: a function that is handed NULL after a failure returns NULL. */
#include "autograd/formula.h"
#include "gen/gradients.h"

#include "tenon/ops.h"

static bool is_one(tn_scalar s)
{
    return s.kind == TN_SCALAR_INT ? s.v.i == 1 : s.kind == TN_SCALAR_FLOAT && s.v.f == 1.0;
}

static tn_scalar conj_number(tn_scalar s)
{
    return s.kind == TN_SCALAR_COMPLEX ? tn_complex(s.v.f, -s.imag) : s;
}

/* ---- numbers and conjugates ---- */

tn_tensor *tni_grad_conj(tn_tensor *t)
{
    if (!t || !tn_dtype_is_complex((tn_dtype)t->dtype))
        return t;
    return tnx_conj_physical(t);
}

/* Pairs in any layout as complex numbers. */
tn_tensor *tni_grad_as_complex(tn_tensor *pairs)
{
    return tnx_view_as_complex(tnx_contiguous(pairs, TN_FORMAT_CONTIGUOUS));
}

tn_tensor *tni_grad_mul_conj_number(tn_tensor *grad, tn_scalar number)
{
    return is_one(number) ? grad : tnx_mul_scalar(grad, conj_number(number));
}

tn_tensor *tni_grad_div_conj_number(tn_tensor *grad, tn_scalar number)
{
    return is_one(number) ? grad : tnx_div_scalar(grad, conj_number(number));
}

/* -grad * conj(self / other / other) */
tn_tensor *tni_grad_div_other(tn_tensor *grad, tn_tensor *self, tn_tensor *other)
{
    tn_tensor *slope = tnx_div(tnx_div(self, other), other);
    return tnx_mul(tnx_neg(grad), tni_grad_conj(slope));
}

tn_tensor *tni_grad_where_part(tn_tensor *condition, tn_tensor *grad, bool kept)
{
    return kept ? tnx_where_scalarother(condition, grad, tn_int(0))
                : tnx_where_scalarself(condition, tn_int(0), grad);
}

/* ---- matrix products ---- */

tn_tensor *tni_grad_adjoint(tn_tensor *t)
{
    return tni_grad_conj(tnx_transpose(t, -2, -1));
}

/* The gradient of A in A @ B, in A's own order. */
tn_tensor *tni_grad_mm_left(tn_tensor *grad, tn_tensor *right, bool column_major)
{
    if (column_major)
        return tnx_t(tnx_mm(tni_grad_conj(right), tnx_t(grad)));
    return tnx_mm(grad, tni_grad_adjoint(right));
}

/* The gradient of B in A @ B, in B's own order. */
tn_tensor *tni_grad_mm_right(tn_tensor *grad, tn_tensor *left, bool column_major)
{
    if (column_major)
        return tnx_t(tnx_mm(tnx_t(grad), tni_grad_conj(left)));
    return tnx_mm(tni_grad_adjoint(left), grad);
}

/* ---- reductions ---- */

tn_tensor *tni_restore_dims(tn_tensor *t, int64_t ndim, const int64_t *dim, int64_t dim_n,
                            bool keepdim)
{
    if (keepdim || ndim == 0)
        return t;
    uint64_t reduced = 0;
    for (int64_t i = 0; i < dim_n; i++)
        reduced |= UINT64_C(1) << tni_wrapped(dim[i], ndim);
    for (int64_t d = 0; d < ndim; d++)
        if (reduced >> d & 1)
            t = tnx_unsqueeze(t, d);
    return t;
}

/* @p dim NULL or empty: all were reduced. */
tn_tensor *tni_grad_sum_backward(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                 const int64_t *dim, int64_t dim_n, bool keepdim)
{
    return tnx_expand(tni_restore_dims(grad, ndim, dim, dim_n, keepdim), sizes, ndim, false);
}

int64_t tni_count_reduced(const int64_t *sizes, int64_t ndim, const int64_t *dim, int64_t dim_n)
{
    int64_t n = 1;
    if (dim_n == 0)
        for (int64_t d = 0; d < ndim; d++)
            n *= sizes[d];
    for (int64_t i = 0; i < dim_n && ndim > 0; i++)
        n *= sizes[tni_wrapped(dim[i], ndim)];
    return n;
}

tn_tensor *tni_grad_mean_backward(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                  const int64_t *dim, int64_t dim_n, bool keepdim)
{
    tn_tensor *spread = tni_grad_sum_backward(grad, sizes, ndim, dim, dim_n, keepdim);
    return tnx_div_scalar(spread, tn_int(tni_count_reduced(sizes, ndim, dim, dim_n)));
}

/* Sum over what broadcasting to grad's shape repeated. */
tn_tensor *tni_grad_sum_to_size(tn_tensor *grad, const int64_t *sizes, int64_t ndim)
{
    if (!grad)
        return NULL;
    int64_t dims[TN_MAX_DIMS], n = 0;
    int lead = grad->ndim - (int)ndim;
    for (int d = 0; d < grad->ndim; d++)
        if (d < lead || (sizes[d - lead] == 1 && grad->sizes[d] != 1))
            dims[n++] = d;
    if (n > 0)
        grad = tnx_sum_dim(grad, dims, n, true, TN_DTYPE_NONE);
    return lead > 0 ? tnx_view(grad, sizes, ndim) : grad;
}
