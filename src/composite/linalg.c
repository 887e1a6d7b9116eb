/* SPDX-License-Identifier: MIT */
/* composite/linalg.c: linear algebra by its usual names: determinants, powers, tensors as matrices.
 */
#include <math.h>
#include "composite/linalg.h"
#include "composite/out.h"
#include "gen/composites.h"
#include "shape/structured.h"

tn_status tni_composite_logdet(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) sign = NULL;
    TN_AUTO(tn_tensor) size = NULL;
    tn_scope *scope;
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_CHECK(!tn_dtype_is_integral(dtype, true), TN_INVALID,
             "logdet: Expected a floating point or complex tensor as input. Got %s",
             tni_dtype_text(dtype));
    TN_TRY(tni_linalg_check_square("logdet", self));
    TN_CHECK(tni_linalg_is_computed(self), TN_INVALID,
             "logdet: Low precision dtypes not supported. Got %s", tni_dtype_text(dtype));
    TN_TRY(tn_linalg_slogdet(self, &sign, &size));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *made;
    if (tn_dtype_is_complex((tn_dtype)self->dtype))
        made = tnx_add(tnx_log(sign), size, tn_int(1));
    else
        made = tnx_masked_fill(size, tnx_lt_scalar(sign, tn_int(0)), tn_float((double)NAN));
    return tni_leave(scope, made, out);
}

/* ---- determinants, with what they were computed from ---- */

/* The reference factors a transposed matrix where that is the one it can read by columns. */
static tn_status factors_of(tn_tensor *A, tn_tensor **LU, tn_tensor **pivots)
{
    TN_AUTO(tn_tensor) plain = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) info = NULL;
    TN_TRY(tn_detach(A, &plain));
    bool turn =
        A->ndim >= 2 && (A->flags & TNI_CONTIGUOUS) && !tn_dtype_is_complex((tn_dtype)A->dtype);
    if (turn)
        TN_TRY(tn_transpose(plain, -2, -1, &turned));
    return tn_linalg_lu_factor_ex(turn ? turned : plain, true, false, LU, pivots, &info);
}

tn_status tni_composite__linalg_det(tn_tensor *A, tn_tensor **result, tn_tensor **LU,
                                    tn_tensor **pivots)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_linalg_det(A, &made));
    TN_TRY(factors_of(A, LU, pivots));
    *result = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_composite__linalg_slogdet(tn_tensor *A, tn_tensor **sign, tn_tensor **logabsdet,
                                        tn_tensor **LU, tn_tensor **pivots)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_AUTO(tn_tensor) size = NULL;
    TN_TRY(tn_linalg_slogdet(A, &made, &size));
    TN_TRY(factors_of(A, LU, pivots));
    *sign = TN_MOVE(made);
    *logabsdet = TN_MOVE(size);
    return TN_OK;
}

tn_status tni_composite__linalg_solve_ex(tn_tensor *A, tn_tensor *B, bool left, bool check_errors,
                                         tn_tensor **result, tn_tensor **LU, tn_tensor **pivots,
                                         tn_tensor **info)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) failures = NULL;
    TN_AUTO(tn_tensor) plain = NULL;
    TN_AUTO(tn_tensor) same = NULL;
    TN_TRY(tn_linalg_solve_ex(A, B, left, check_errors, &x, &failures));
    TN_TRY(tn_detach(A, &plain)); /* the factors have no gradient */
    TN_TRY(tn_linalg_lu_factor_ex(plain, true, false, LU, pivots, &same));
    *result = TN_MOVE(x);
    *info = TN_MOVE(failures);
    return TN_OK;
}

/* ---- tensors as matrices ---- */

tn_status tni_composite_linalg_tensorinv(tn_tensor *self, int64_t ind, tn_tensor **out)
{
    tn_scope *scope;
    int64_t sizes[TN_MAX_DIMS], left = 1, right = 1;
    TN_CHECK(ind > 0, TN_INVALID, "Expected a strictly positive integer for 'ind', but got %lld",
             (long long)ind);
    int n = self->ndim, k = ind < n ? (int)ind : n;
    for (int d = 0; d < n; d++) {
        sizes[d < k ? n - k + d : d - k] = self->sizes[d];
        if (d < k)
            left *= self->sizes[d];
        else
            right *= self->sizes[d];
    }
    TN_CHECK(left == right, TN_INVALID,
             "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
             "prod(self.shape[:ind]), but got %lld != %lld",
             (long long)right, (long long)left);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *inverse = tnx_linalg_inv(tnx_reshape(self, (const int64_t[]){right, right}, 2));
    return tni_leave(scope, tnx_reshape(inverse, sizes, n), out);
}

tn_status tni_composite_linalg_tensorsolve(tn_tensor *self, tn_tensor *other, const int64_t *dims,
                                           int64_t dims_n, tn_tensor **out)
{
    tn_scope *scope;
    int64_t order[TN_MAX_DIMS], sizes[TN_MAX_DIMS], count = 1;
    int n = 0, left = self->ndim - other->ndim;
    uint64_t moved = 0;
    for (int64_t i = 0; dims && i < dims_n; i++) {
        int d;
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &d));
        moved |= UINT64_C(1) << d;
    }
    for (int d = 0; d < self->ndim; d++)
        if (!(moved >> d & 1))
            order[n++] = d;
    for (int64_t i = 0; dims && i < dims_n && n < self->ndim; i++) {
        int d;
        TN_TRY(tni_wrap_dim(dims[i], self->ndim, &d));
        order[n++] = d;
    }
    TN_CHECK(left >= 0 && n == self->ndim, TN_INVALID,
             "Expected self to have as many dimensions as other at least");
    for (int d = other->ndim; d < self->ndim; d++) {
        sizes[d - other->ndim] = self->sizes[order[d]];
        count *= self->sizes[order[d]];
    }
    TN_CHECK(count == other->numel && self->numel == count * count, TN_INVALID,
             "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
             "prod(self.shape[:other.ndim]), but got %lld != %lld",
             (long long)count, (long long)other->numel);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *a = tnx_reshape(tnx_permute(self, order, n), (const int64_t[]){count, count}, 2);
    tn_tensor *x = tnx_linalg_solve(a, tnx_reshape(other, &count, 1), true);
    return tni_leave(scope, tnx_reshape(x, sizes, left), out);
}

/* ---- powers ---- */

tn_status tni_composite_linalg_matrix_power(tn_tensor *self, int64_t n, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_linalg_check_square("linalg.matrix_power", self));
    TN_TRY(tn_scope_enter(&scope));
    if (n == 0) /* a gradient of zeros, not none */
        return tni_leave(
            scope,
            tnx_copy_(tnx_clone(self, TN_FORMAT_CONTIGUOUS), tni_linalg_identity_like(self), false),
            out);
    if (n == 1)
        return tni_leave(scope, tnx_clone(self, TN_FORMAT_NONE), out);
    tn_tensor *square = n < 0 ? tnx_linalg_inv(self) : self, *made = NULL;
    uint64_t left = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    for (; left; left >>= 1) {
        if (left & 1)
            made = made ? tnx_matmul(made, square) : square;
        if (left > 1)
            square = tnx_matmul(square, square);
    }
    return tni_leave(scope, made, out);
}

tn_status tni_composite_linalg_matrix_power_out(tn_tensor *self, int64_t n, tn_tensor *out)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_linalg_matrix_power(self, n, &made));
    if (n == 0 || n == 1)
        TN_TRY(tni_check_safe(TN_INVALID, (tn_dtype)made->dtype, out,
                              "matrix_power: Expected result to be safely castable from %w dtype, "
                              "but got result with dtype %g"));
    else
        TN_TRY(tni_check_exact((tn_dtype)made->dtype, out,
                               "Expected out tensor to have dtype %W, but got %G instead"));
    return tni_out_take("linalg_matrix_power", made, out);
}

/* ---- L D L^T ---- */

tn_status tni_composite_linalg_ldl_factor(tn_tensor *self, bool hermitian, tn_tensor **LD,
                                          tn_tensor **pivots)
{
    TN_AUTO(tn_tensor) info = NULL;
    return tn_linalg_ldl_factor_ex(self, hermitian, true, LD, pivots, &info);
}
