/* SPDX-License-Identifier: MIT */
/* composite/linalg.c: linear algebra by its usual names, in terms of factorisations. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/expand.h"
#include "tenon/ops.h"

static tn_status check_matrices(const char *op, const tn_tensor *t)
{
    TN_CHECK(t->ndim >= 2, TN_INVALID, "%s: The input tensor A must have at least 2 dimensions.",
             op);
    return TN_OK;
}

static tn_status check_square(const char *op, const tn_tensor *t)
{
    TN_TRY(check_matrices(op, t));
    TN_CHECK(t->sizes[t->ndim - 1] == t->sizes[t->ndim - 2], TN_INVALID,
             "%s: A must be batches of square matrices, but they are %lld by %lld matrices", op,
             (long long)t->sizes[t->ndim - 2], (long long)t->sizes[t->ndim - 1]);
    return TN_OK;
}

static bool is_computed(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_F32 || t->dtype == TN_DTYPE_F64 ||
           tn_dtype_is_complex((tn_dtype)t->dtype);
}

static tn_status check_dtype(const char *kernel, const tn_tensor *t)
{
    TN_CHECK(is_computed(t), TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", kernel,
             tni_dtype_text((tn_dtype)t->dtype));
    return TN_OK;
}

/* Tolerances are known of these alone. */
static tn_status check_epsilon(const tn_tensor *t)
{
    TN_CHECK(is_computed(t), TN_INVALID,
             "This function doesn't handle types other than float and double");
    return TN_OK;
}

static tn_status check_pinv(const tn_tensor *t)
{
    char sizes[TNI_SIZES_TEXT];
    TN_CHECK(t->ndim >= 2 && is_computed(t), TN_INVALID,
             "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, double, "
             "cfloat or cdouble types",
             tni_dtype_text((tn_dtype)t->dtype),
             tni_format_sizes(t->ndim, t->sizes, sizes, sizeof sizes));
    return TN_OK;
}

static tn_tensor *adjoint(tn_tensor *t)
{
    return tnx_conj(tnx_transpose(t, -2, -1));
}

/* @p t, column by column in memory. */
static tn_tensor *by_columns(tn_tensor *t)
{
    return tnx_transpose(tnx_contiguous(tnx_transpose(t, -2, -1), TN_FORMAT_CONTIGUOUS), -2, -1);
}

/* Ones on the diagonal, in the sizes of @p t. */
static tn_tensor *identity_like(tn_tensor *t)
{
    tn_tensor *ones = tnx_new_full(t, t->sizes, t->ndim - 1, tn_int(1), NULL);
    return tnx_diag_embed(ones, 0, -2, -1);
}

/* ---- Cholesky ---- */

tn_status tni_composite_linalg_cholesky(tn_tensor *self, bool upper, tn_tensor **out)
{
    TN_AUTO(tn_tensor) info = NULL;
    return tn_linalg_cholesky_ex(self, upper, true, out, &info);
}

tn_status tni_composite_cholesky_solve(tn_tensor *self, tn_tensor *input2, bool upper,
                                       tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "b should have at least 2 dimensions, but has %d dimensions instead", self->ndim);
    TN_CHECK(input2->ndim >= 2, TN_INVALID,
             "u should have at least 2 dimensions, but has %d dimensions instead", input2->ndim);
    TN_CHECK(self->dtype == input2->dtype, TN_INVALID,
             "Expected b and A to have the same dtype, but found b of type %s and A of type %s "
             "instead.",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)input2->dtype));
    int64_t n = input2->sizes[input2->ndim - 1], rows = self->sizes[self->ndim - 2];
    TN_CHECK(input2->sizes[input2->ndim - 2] == n, TN_INVALID,
             "A must be batches of square matrices, but they are %lld by %lld matrices",
             (long long)input2->sizes[input2->ndim - 2], (long long)n);
    TN_CHECK(n == rows, TN_INVALID,
             "Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by %lld but each "
             "b matrix is %lld by %lld",
             (long long)n, (long long)n, (long long)rows, (long long)self->sizes[self->ndim - 1]);
    TN_TRY(check_dtype("cholesky_solve_cpu", input2));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *first = upper ? adjoint(input2) : input2, *second = upper ? input2 : adjoint(input2);
    tn_tensor *y = tnx_linalg_solve_triangular(first, self, false, true, false);
    return tni_leave(scope, tnx_linalg_solve_triangular(second, y, true, true, false), out);
}

tn_status tni_composite_cholesky_inverse(tn_tensor *self, bool upper, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(check_square("cholesky_inverse", self));
    TN_TRY(check_dtype("cholesky_inverse_out_cpu", self));
    TN_TRY(tn_scope_enter(&scope));
    return tni_leave(scope, tnx_cholesky_solve(identity_like(self), self, upper), out);
}

/* ---- systems ---- */

tn_status tni_composite_linalg_inv(tn_tensor *A, tn_tensor **out)
{
    TN_AUTO(tn_tensor) info = NULL;
    return tn_linalg_inv_ex(A, true, out, &info);
}

/* Both with the batch dimensions of both. */
static tn_status same_batch(tn_tensor *A, tn_tensor *B, tn_tensor **a, tn_tensor **b)
{
    int64_t sizes[TN_MAX_DIMS];
    int ndim = 0;
    TN_TRY(tni_broadcast_sizes(A->ndim - 2, A->sizes, B->ndim - 2, B->sizes, &ndim, sizes));
    for (int i = 0; i < 2; i++) {
        tn_tensor *t = i ? B : A;
        sizes[ndim] = t->sizes[t->ndim - 2];
        sizes[ndim + 1] = t->sizes[t->ndim - 1];
        TN_TRY(tn_expand(t, sizes, ndim + 2, false, i ? b : a));
    }
    return TN_OK;
}

static tn_status check_fit(const char *op, const tn_tensor *A, const tn_tensor *B, bool left)
{
    int64_t n = A->sizes[A->ndim - 1], have = B->sizes[left ? B->ndim - 2 : B->ndim - 1];
    TN_CHECK(n == have, TN_INVALID,
             "%s: Incompatible shapes of A and B for the equation %s (%lldx%lld and %lldx%lld)", op,
             left ? "AX = B" : "XA = B", (long long)A->sizes[A->ndim - 2], (long long)n,
             (long long)B->sizes[B->ndim - 2], (long long)B->sizes[B->ndim - 1]);
    return TN_OK;
}

/* Whether B is a batch of vectors. */
static bool of_vectors(const tn_tensor *A, const tn_tensor *B)
{
    bool same = A->ndim - 1 == B->ndim;
    for (int d = 0; same && d < B->ndim; d++)
        same = A->sizes[d] == B->sizes[d];
    return B->ndim == 1 || same;
}

tn_status tni_composite_linalg_solve_ex(tn_tensor *A, tn_tensor *B, bool left, bool check_errors,
                                        tn_tensor **result, tn_tensor **info)
{
    TN_AUTO(tn_tensor) column = NULL;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) turned_a = NULL;
    TN_AUTO(tn_tensor) turned_b = NULL;
    TN_TRY(check_square("linalg.solve", A));
    bool vectors = of_vectors(A, B);
    TN_CHECK(left || !vectors, TN_INVALID,
             "linalg.solve: Vector broadcasting of the left hand side is not supported for "
             "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)");
    if (vectors)
        TN_TRY(tn_unsqueeze(B, -1, &column));
    else
        TN_CHECK(B->ndim >= 2, TN_INVALID,
                 "linalg.solve: The input tensor B must have at least 2 dimensions.");
    tn_tensor *right = vectors ? column : B;
    TN_TRY(check_fit("linalg.solve", A, right, left));
    if (!left) { /* X A = B is A^T X^T = B^T */
        TN_TRY(tn_transpose(A, -2, -1, &turned_a));
        TN_TRY(tn_transpose(B, -2, -1, &turned_b));
    }
    TN_TRY(same_batch(left ? A : turned_a, left ? right : turned_b, &a, &b));
    TN_AUTO(tn_tensor) failures = NULL;
    TN_TRY(tn_solve_square(a, b, check_errors, &x, &failures));
    if (vectors && x->ndim > 2) { /* the vectors, too, are columns */
        tn_scope *scope;
        TN_TRY(tn_scope_enter(&scope));
        TN_TRY(tni_leave(scope, by_columns(tnx_squeeze_dim(x, -1)), result));
    } else if (vectors)
        TN_TRY(tn_squeeze_dim(x, -1, result));
    else if (!left)
        TN_TRY(tn_transpose(x, -2, -1, result));
    else
        *result = TN_MOVE(x);
    *info = TN_MOVE(failures);
    return TN_OK;
}

tn_status tni_composite_linalg_solve(tn_tensor *A, tn_tensor *B, bool left, tn_tensor **out)
{
    TN_AUTO(tn_tensor) info = NULL;
    return tn_linalg_solve_ex(A, B, left, true, out, &info);
}

tn_status tni_composite_linalg_solve_triangular(tn_tensor *self, tn_tensor *B, bool upper,
                                                bool left, bool unitriangular, tn_tensor **out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) turned_a = NULL;
    TN_AUTO(tn_tensor) turned_b = NULL;
    TN_TRY(check_square("linalg.solve_triangular", self));
    TN_CHECK(B->ndim >= 2, TN_INVALID,
             "linalg.solve_triangular: The input tensor B must have at least 2 dimensions.");
    TN_TRY(check_fit("linalg.solve_triangular", self, B, left));
    if (!left) {
        TN_TRY(tn_transpose(self, -2, -1, &turned_a));
        TN_TRY(tn_transpose(B, -2, -1, &turned_b));
    }
    TN_TRY(same_batch(left ? self : turned_a, left ? B : turned_b, &a, &b));
    if (left)
        return tn_solve_triangle(a, b, upper, unitriangular, out);
    TN_AUTO(tn_tensor) rows = NULL;
    TN_TRY(tn_solve_triangle(a, b, !upper, unitriangular, &x));
    TN_TRY(tn_contiguous(x, TN_FORMAT_CONTIGUOUS, &rows));
    return tn_transpose(rows, -2, -1, out);
}

tn_status tni_composite_triangular_solve(tn_tensor *self, tn_tensor *A, bool upper, bool transpose,
                                         bool unitriangular, tn_tensor **solution,
                                         tn_tensor **cloned_coefficient)
{
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) copy = NULL;
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has %d "
             "dimensions instead",
             self->ndim);
    TN_CHECK(self->dtype == A->dtype, TN_INVALID,
             "Expected b and A to have the same dtype, but found b of type %s and A of type %s "
             "instead.",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)A->dtype));
    TN_TRY(check_square("triangular_solve", A));
    if (transpose)
        TN_TRY(tn_transpose(A, -2, -1, &turned));
    TN_TRY(tn_linalg_solve_triangular(transpose ? turned : A, self, transpose ? !upper : upper,
                                      true, unitriangular, &x));
    tn_scope *scope;
    int64_t sizes[TN_MAX_DIMS];
    memcpy(sizes, x->sizes, (size_t)x->ndim * sizeof *sizes);
    sizes[x->ndim - 1] = sizes[x->ndim - 2];
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *whole = tnx_expand(A, sizes, x->ndim, false);
    TN_TRY(tni_leave(
        scope, tnx_transpose(tnx_clone(tnx_transpose(whole, -2, -1), TN_FORMAT_CONTIGUOUS), -2, -1),
        &copy));
    *solution = TN_MOVE(x);
    *cloned_coefficient = TN_MOVE(copy);
    return TN_OK;
}

tn_status tni_composite_linalg_lu_factor(tn_tensor *A, bool pivot, tn_tensor **LU,
                                         tn_tensor **pivots)
{
    TN_AUTO(tn_tensor) info = NULL;
    return tn_linalg_lu_factor_ex(A, pivot, true, LU, pivots, &info);
}

tn_status tni_composite_linalg_lu(tn_tensor *A, bool pivot, tn_tensor **P, tn_tensor **L,
                                  tn_tensor **U)
{
    TN_AUTO(tn_tensor) lu = NULL;
    TN_AUTO(tn_tensor) pivots = NULL;
    TN_AUTO(tn_tensor) info = NULL;
    char text[TNI_SIZES_TEXT];
    TN_CHECK(A->ndim >= 2, TN_INVALID,
             "linalg.lu: Expected tensor with 2 or more dimensions. Got size: %s instead",
             tni_format_sizes(A->ndim, A->sizes, text, sizeof text));
    TN_TRY(tn_linalg_lu_factor_ex(A, pivot, false, &lu, &pivots, &info));
    return tn_lu_unpack(lu, pivots, true, true, P, L, U);
}

tn_status tni_composite_linalg_lu_solve(tn_tensor *LU, tn_tensor *pivots, tn_tensor *B, bool left,
                                        bool adjoint_, tn_tensor **out)
{
    TN_AUTO(tn_tensor) P = NULL;
    TN_AUTO(tn_tensor) L = NULL;
    TN_AUTO(tn_tensor) U = NULL;
    tn_scope *scope;
    tn_dtype dtype = (tn_dtype)LU->dtype;
    TN_CHECK(!tn_dtype_is_integral(dtype, true), TN_INVALID,
             "torch.linalg.lu_solve: Expected a floating point or complex tensor as input. Got %s",
             tni_dtype_text(dtype));
    TN_CHECK(
        LU->dtype == B->dtype, TN_INVALID,
        "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type %s and "
        "B of type %s instead",
        tni_dtype_text(dtype), tni_dtype_text((tn_dtype)B->dtype));
    TN_TRY(check_square("torch.linalg.lu_solve", LU));
    TN_CHECK(B->ndim >= 2, TN_INVALID,
             "linalg.lu_solve: The input tensor B must have at least 2 dimensions.");
    char sizes[TNI_SIZES_TEXT];
    bool alike = pivots->ndim == LU->ndim - 1;
    for (int d = 0; alike && d < pivots->ndim; d++)
        alike = pivots->sizes[d] == LU->sizes[d];
    TN_CHECK(alike, TN_INVALID,
             "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got "
             "pivots with shape %s instead",
             tni_format_sizes(pivots->ndim, pivots->sizes, sizes, sizeof sizes));
    TN_TRY(check_fit("linalg.lu_solve", LU, B, left));
    TN_TRY(tn_lu_unpack(LU, pivots, true, true, &P, &L, &U));
    TN_TRY(tn_scope_enter(&scope));
    /* A = P L U, where the inverse of P is its adjoint; X A = B is A^H X^H = B^H. */
    tn_tensor *b = left ? B : adjoint(B), *x;
    if (adjoint_ == left) {
        x = tnx_linalg_solve_triangular(adjoint(U), b, false, true, false);
        x = tnx_linalg_solve_triangular(adjoint(L), x, true, true, true);
        x = by_columns(tnx_matmul(P, x));
    } else {
        x = tnx_linalg_solve_triangular(L, tnx_matmul(adjoint(P), b), false, true, true);
        x = tnx_linalg_solve_triangular(U, x, true, true, false);
    }
    return tni_leave(scope, left ? x : adjoint(x), out);
}

tn_status tni_composite_lu_solve(tn_tensor *self, tn_tensor *LU_data, tn_tensor *LU_pivots,
                                 tn_tensor **out)
{
    return tn_linalg_lu_solve(LU_data, LU_pivots, self, true, false, out);
}

tn_status tni_composite_logdet(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) sign = NULL;
    TN_AUTO(tn_tensor) size = NULL;
    tn_scope *scope;
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_CHECK(!tn_dtype_is_integral(dtype, true), TN_INVALID,
             "logdet: Expected a floating point or complex tensor as input. Got %s",
             tni_dtype_text(dtype));
    TN_TRY(check_square("logdet", self));
    TN_CHECK(is_computed(self), TN_INVALID, "logdet: Low precision dtypes not supported. Got %s",
             tni_dtype_text(dtype));
    TN_TRY(tn_linalg_slogdet(self, &sign, &size));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *made;
    if (tn_dtype_is_complex((tn_dtype)self->dtype))
        made = tnx_add(tnx_log(sign), size, tn_int(1));
    else
        made = tnx_masked_fill(size, tnx_lt_scalar(sign, tn_int(0)), tn_float((double)NAN));
    return tni_leave(scope, made, out);
}

/* ---- values ---- */

tn_status tni_composite_linalg_eigh(tn_tensor *self, const char *UPLO, tn_tensor **eigenvalues,
                                    tn_tensor **eigenvectors)
{
    return tn__linalg_eigh(self, UPLO, true, eigenvalues, eigenvectors);
}

/* Whether a derivative may be asked for, which needs the vectors. */
static bool needs_vectors(const tn_tensor *t)
{
    return (t->flags & TNI_HAS_TANGENT) || (tn_grad_enabled() && tn_tensor_requires_grad(t));
}

tn_status tni_composite_linalg_eigvalsh(tn_tensor *self, const char *UPLO, tn_tensor **out)
{
    TN_AUTO(tn_tensor) vectors = NULL;
    return tn__linalg_eigh(self, UPLO, needs_vectors(self), out, &vectors);
}

tn_status tni_composite_linalg_eigvals(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) vectors = NULL;
    TN_TRY(check_square("linalg.eigvals", self));
    return tn_linalg_eig(self, out, &vectors);
}

tn_status tni_composite_linalg_svd(tn_tensor *A, bool full_matrices, const char *driver,
                                   tn_tensor **U, tn_tensor **S, tn_tensor **Vh)
{
    return tn__linalg_svd(A, full_matrices, true, driver, U, S, Vh);
}

tn_status tni_composite_linalg_svdvals(tn_tensor *A, const char *driver, tn_tensor **out)
{
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    return tn__linalg_svd(A, false, needs_vectors(A), driver, &u, out, &vh);
}

tn_status tni_composite_svd(tn_tensor *self, bool some, bool compute_uv, tn_tensor **U,
                            tn_tensor **S, tn_tensor **V)
{
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_TRY(tn__linalg_svd(self, !some, true, NULL, &u, &s, &vh));
    if (!compute_uv) {
        TN_AUTO(tn_tensor) none_u = NULL;
        TN_AUTO(tn_tensor) none_v = NULL;
        int64_t m = self->sizes[self->ndim - 2], n = self->sizes[self->ndim - 1];
        int64_t sizes[TN_MAX_DIMS];
        memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
        sizes[self->ndim - 1] = m;
        TN_TRY(tn_new_zeros(self, sizes, self->ndim, NULL, &none_u));
        sizes[self->ndim - 2] = sizes[self->ndim - 1] = n;
        TN_TRY(tn_new_zeros(self, sizes, self->ndim, NULL, &turned));
        TN_TRY(tn_transpose(turned, -2, -1, &none_v));
        *U = TN_MOVE(none_u);
        *S = TN_MOVE(s);
        *V = TN_MOVE(none_v);
        return TN_OK;
    }
    TN_TRY(tn_transpose(vh, -2, -1, &turned));
    TN_TRY(tn_conj(turned, V));
    *U = TN_MOVE(u);
    *S = TN_MOVE(s);
    return TN_OK;
}

tn_status tni_composite_qr(tn_tensor *self, bool some, tn_tensor **Q, tn_tensor **R)
{
    return tn_linalg_qr(self, some ? "reduced" : "complete", Q, R);
}

/* (1 - tau v v^H) for each reflector v, the last one first, of the first columns of the identity.
 */
tn_status tni_composite_householder_product(tn_tensor *input, tn_tensor *tau, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(input->ndim >= 2, TN_INVALID,
             "torch.linalg.householder_product: input must have at least 2 dimensions.");
    int64_t m = input->sizes[input->ndim - 2], n = input->sizes[input->ndim - 1];
    TN_CHECK(m >= n, TN_INVALID,
             "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
             "input.shape[-1]");
    TN_CHECK(
        tau->ndim == input->ndim - 1, TN_INVALID,
        "torch.linalg.householder_product: Expected tau to have one dimension less than input, "
        "but got tau.ndim equal to %d and input.ndim is equal to %d",
        tau->ndim, input->ndim);
    int64_t k = tau->sizes[tau->ndim - 1];
    TN_CHECK(tau->dtype == input->dtype, TN_INVALID,
             "torch.linalg.householder_product: tau dtype %s does not match input dtype %s",
             tni_dtype_text((tn_dtype)tau->dtype), tni_dtype_text((tn_dtype)input->dtype));
    TN_CHECK(k <= n, TN_INVALID,
             "torch.linalg.householder_product: input.shape[-1] must be greater than or equal to "
             "tau.shape[-1]");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *one =
        tnx_constant_pad_nd(tnx_diag_embed(tnx_new_full(tau, &n, 1, tn_int(1), NULL), 0, -2, -1),
                            (const int64_t[]){0, 0, 0, m - n}, 4, tn_int(0));
    tn_tensor *v = tnx_add(tnx_tril(input, -1), one, tn_int(1));
    tn_tensor *q = tnx_expand(one, input->sizes, input->ndim, false);
    if (k == 0)
        q = tnx_clone(q, TN_FORMAT_CONTIGUOUS);
    for (int64_t i = k - 1; i >= 0; i--) {
        tn_tensor *x = tnx_narrow(v, -1, i, 1);
        tn_tensor *factor = tnx_unsqueeze(tnx_narrow(tau, -1, i, 1), -1);
        tn_tensor *part = tnx_matmul(x, tnx_matmul(adjoint(x), q));
        q = tnx_sub(q, tnx_mul(factor, part), tn_int(1));
    }
    return tni_leave(scope, by_columns(q), out);
}

static tn_status check_ormqr(const tn_tensor *self, const tn_tensor *tau, const tn_tensor *other,
                             bool left)
{
    const tn_tensor *both[] = {tau, other};
    TN_CHECK(self->ndim >= 2, TN_INVALID, "torch.ormqr: input must have at least 2 dimensions.");
    TN_CHECK(other->ndim >= 2, TN_INVALID, "torch.ormqr: other must have at least 2 dimensions.");
    int64_t rows = other->sizes[other->ndim - (left ? 2 : 1)], k = self->sizes[self->ndim - 1];
    TN_CHECK(rows == self->sizes[self->ndim - 2], TN_INVALID,
             "torch.ormqr: other.shape[%d] must be equal to input.shape[-2]", left ? -2 : -1);
    TN_CHECK(tau->ndim == self->ndim - 1, TN_INVALID,
             "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim "
             "equal to %d and input.ndim is equal to %d",
             tau->ndim, self->ndim);
    TN_CHECK(tau->sizes[tau->ndim - 1] == (rows < k ? rows : k), TN_INVALID,
             "torch.ormqr: tau.shape[-1] must be equal to min(other.shape[%d], input.shape[-1])",
             left ? -2 : -1);
    for (int i = 0; i < 2; i++)
        TN_CHECK(both[i]->dtype == self->dtype, TN_INVALID,
                 "torch.ormqr: Expected input and %s to have the same dtype, but input has dtype%s "
                 "and %s has dtype %s",
                 i ? "other" : "tau", tni_dtype_text((tn_dtype)self->dtype), i ? "other" : "tau",
                 tni_dtype_text((tn_dtype)both[i]->dtype));
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_CHECK(tn_dtype_is_complex(dtype) || dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64,
             TN_UNSUPPORTED, "\"ormqr_cpu\" not implemented for '%s'", tni_dtype_text(dtype));
    return TN_OK;
}

/* The product of the reflectors, or its adjoint, times a matrix, or the other way round: one
 * reflector after the other. */
tn_status tni_composite_ormqr(tn_tensor *self, tn_tensor *tau, tn_tensor *other, bool left,
                              bool transpose, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(check_ormqr(self, tau, other, left));
    int64_t m = self->sizes[self->ndim - 2], n = self->sizes[self->ndim - 1];
    int64_t k = tau->sizes[tau->ndim - 1];
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *one = tnx_new_full(tau, (const int64_t[]){m < n ? m : n}, 1, tn_int(1), NULL);
    one = tnx_constant_pad_nd(tnx_diag_embed(one, 0, -2, -1),
                              (const int64_t[]){0, n > m ? n - m : 0, 0, m > n ? m - n : 0}, 4,
                              tn_int(0));
    tn_tensor *v = tnx_add(tnx_tril(self, -1), one, tn_int(1)), *made = other;
    if (transpose)
        tau = tnx_conj(tau);
    for (int64_t step = 0; step < k; step++) {
        int64_t i = left == transpose ? step : k - 1 - step;
        tn_tensor *x = tnx_narrow(v, -1, i, 1);
        tn_tensor *factor = tnx_unsqueeze(tnx_narrow(tau, -1, i, 1), -1);
        tn_tensor *part = left ? tnx_matmul(x, tnx_matmul(adjoint(x), made))
                               : tnx_matmul(tnx_matmul(made, x), adjoint(x));
        made = tnx_sub(made, tnx_mul(factor, part), tn_int(1));
    }
    return tni_leave(scope, by_columns(k ? made : tnx_clone(made, TN_FORMAT_CONTIGUOUS)), out);
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

/* ---- ranks and pseudo-inverses ---- */

static double epsilon(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_F32 || t->dtype == TN_DTYPE_C64 ? (double)FLT_EPSILON : DBL_EPSILON;
}

/* Below what a singular value counts for nothing. */
static tn_tensor *least_value(tn_tensor *S, double atol, double rtol)
{
    const int64_t last = -1;
    return tnx_clamp_min(tnx_mul_scalar(tnx_amax(S, &last, 1, true), tn_float(rtol)),
                         tn_float(atol));
}

static double tolerance_of(const tn_tensor *A, tn_opt_float atol, tn_opt_float rtol)
{
    int64_t m = A->sizes[A->ndim - 2], n = A->sizes[A->ndim - 1];
    return rtol.has                     ? rtol.value
           : atol.has && atol.value > 0 ? 0.0
                                        : epsilon(A) * (double)(m > n ? m : n);
}

tn_status tni_kernel_pinv(tn_call *call, tn_tensor *self, double atol, double rtol, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    tn_scope *scope;
    TN_TRY(check_pinv(self));
    if (self->numel == 0) {
        int64_t sizes[TN_MAX_DIMS];
        memcpy(sizes, self->sizes, (size_t)self->ndim * sizeof *sizes);
        sizes[self->ndim - 2] = self->sizes[self->ndim - 1];
        sizes[self->ndim - 1] = self->sizes[self->ndim - 2];
        return tn_new_zeros(self, sizes, self->ndim, NULL, out);
    }
    TN_TRY(tn__linalg_svd(self, false, true, NULL, &u, &s, &vh));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *counts = tnx_gt(s, least_value(s, atol, rtol));
    tn_tensor *inverse = tnx_where_scalarother(counts, tnx_reciprocal(s), tn_int(0));
    tn_tensor *v = tnx_mul(adjoint(vh), tnx_unsqueeze(inverse, -2));
    return tni_leave(scope, tnx_matmul(v, adjoint(u)), out);
}

tn_status tni_composite_linalg_pinv_float(tn_tensor *self, tn_opt_float atol, tn_opt_float rtol,
                                          bool hermitian, tn_tensor **out)
{
    TN_TRY(check_pinv(self));
    if (hermitian) /* the same values, found in another way */
        TN_TRY(check_square("linalg.eigh", self));
    return tn_pinv(self, atol.has ? atol.value : 0.0, tolerance_of(self, atol, rtol), out);
}

tn_status tni_composite_linalg_pinv(tn_tensor *self, double rcond, bool hermitian, tn_tensor **out)
{
    TN_TRY(check_pinv(self));
    if (hermitian)
        TN_TRY(check_square("linalg.eigh", self));
    return tn_pinv(self, 0.0, rcond, out);
}

tn_status tni_composite_pinverse(tn_tensor *self, double rcond, tn_tensor **out)
{
    return tn_pinv(self, 0.0, rcond, out);
}

tn_status tni_composite_linalg_matrix_rank_float(tn_tensor *self, tn_opt_float atol,
                                                 tn_opt_float rtol, bool hermitian, tn_tensor **out)
{
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) plain = NULL;
    tn_scope *scope;
    const int64_t last = -1;
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.");
    TN_TRY(check_epsilon(self));
    if (hermitian)
        TN_TRY(check_square("linalg.eigh", self));
    TN_TRY(tn_detach(self, &plain));
    TN_TRY(tn_linalg_svdvals(plain, NULL, &s));
    TN_TRY(tn_scope_enter(&scope));
    if (s->numel == 0)
        return tni_leave(scope, tnx_sum_dim(s, &last, 1, false, TN_DTYPE_I64), out);
    tn_tensor *counts =
        tnx_gt(s, least_value(s, atol.has ? atol.value : 0.0, tolerance_of(self, atol, rtol)));
    return tni_leave(scope, tnx_sum_dim(counts, &last, 1, false, TN_DTYPE_I64), out);
}

tn_status tni_composite_linalg_matrix_rank(tn_tensor *self, double tol, bool hermitian,
                                           tn_tensor **out)
{
    tn_opt_float atol = {.value = tol, .has = 1}, rtol = {.value = 0.0, .has = 1};
    return tn_linalg_matrix_rank(self, atol, rtol, hermitian, out);
}

/* By the pseudo-inverse: of the least length where several fit. */
tn_status tni_composite_linalg_lstsq(tn_tensor *self, tn_tensor *b, tn_opt_float rcond,
                                     const char *driver, tn_tensor **solution,
                                     tn_tensor **residuals, tn_tensor **rank,
                                     tn_tensor **singular_values)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) left = NULL;
    TN_AUTO(tn_tensor) count = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) inverse = NULL;
    TN_AUTO(tn_tensor) column = NULL;
    const int64_t none = 0, rows = -2;
    tn_scope *scope;
    TN_TRY(check_matrices("torch.linalg.lstsq", self));
    TN_CHECK(b->ndim >= 1, TN_INVALID, "torch.linalg.lstsq: other must have at least 1 dimension.");
    TN_CHECK(self->dtype == b->dtype, TN_INVALID,
             "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's "
             "dtype %s and other's dtype %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)b->dtype));
    bool vectors = of_vectors(self, b) && b->ndim == self->ndim - 1;
    if (vectors)
        TN_TRY(tn_unsqueeze(b, -1, &column));
    tn_tensor *right = vectors ? column : b;
    int64_t m = self->sizes[self->ndim - 2], n = self->sizes[self->ndim - 1];
    TN_CHECK(right->ndim >= 2 && right->sizes[right->ndim - 2] == m, TN_INVALID,
             "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
    TN_TRY(check_epsilon(self));
    const tn_tensor_opts real = tn_opts(tni_dtype_to_real((tn_dtype)self->dtype), self->device);
    double rtol = rcond.has ? rcond.value : epsilon(self) * (double)(m > n ? m : n);
    TN_TRY(tn_pinv(self, 0.0, rtol, &inverse));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *found = tnx_transpose(tnx_matmul(inverse, right), -2, -1);
    if (m > n) /* columns as long as those of b, which the reference solves in place */
        found = tnx_narrow(tnx_constant_pad_nd(found, (const int64_t[]){0, m - n}, 2, tn_int(0)),
                           -1, 0, n);
    else
        found = tnx_clone(found, TN_FORMAT_CONTIGUOUS);
    found = tnx_transpose(found, -2, -1);
    TN_TRY(tni_leave(scope, vectors ? tnx_squeeze_dim(found, -1) : found, &x));
    if (driver && strcmp(driver, "gels") == 0)
        TN_TRY(tn_new_empty(self, &none, 1, &(tn_tensor_opts){.dtype = TN_DTYPE_I64}, &count));
    else
        TN_TRY(
            tn_linalg_matrix_rank(self, (tn_opt_float){0}, (tn_opt_float){rtol, 1}, false, &count));
    bool spectrum = driver && (strcmp(driver, "gelsd") == 0 || strcmp(driver, "gelss") == 0);
    if (spectrum)
        TN_TRY(tn_linalg_svdvals(self, NULL, &values));
    else
        TN_TRY(tn_new_empty(self, &none, 1, &real, &values));
    if (m > n && driver && strcmp(driver, "gelsy") != 0) {
        TN_TRY(tn_scope_enter(&scope));
        tn_tensor *error =
            tnx_sub(tnx_matmul(self, vectors ? tnx_unsqueeze(x, -1) : x), right, tn_int(1));
        error = tnx_abs(error);
        TN_TRY(tni_leave(scope, tnx_sum_dim(tnx_mul(error, error), &rows, 1, false, TN_DTYPE_NONE),
                         &left));
    } else {
        TN_TRY(tn_new_empty(self, &none, 1, &real, &left));
    }
    *solution = TN_MOVE(x);
    *residuals = TN_MOVE(left);
    *rank = TN_MOVE(count);
    *singular_values = TN_MOVE(values);
    return TN_OK;
}

/* ---- condition numbers ---- */

/* The norm of @p self times that of its inverse, by number or by name; infinite where there is no
 * inverse. */
static tn_status norms(tn_tensor *self, const tn_scalar *p, const char *name, tn_tensor **out)
{
    tn_scope *scope;
    const int64_t both[] = {-2, -1};
    tn_tensor *each[2];
    TN_AUTO(tn_tensor) inverse = NULL;
    TN_AUTO(tn_tensor) info = NULL;
    TN_TRY(check_square("linalg.cond", self));
    TN_TRY(tn_linalg_inv_ex(self, false, &inverse, &info));
    TN_TRY(tn_scope_enter(&scope));
    for (int i = 0; i < 2; i++) {
        tn_tensor *t = i ? inverse : self;
        each[i] = p ? tnx_linalg_matrix_norm(t, *p, both, 2, false, TN_DTYPE_NONE)
                    : tnx_linalg_matrix_norm_str_ord(t, name, both, 2, false, TN_DTYPE_NONE);
    }
    tn_tensor *singular = tnx_gt_scalar(info, tn_int(0));
    return tni_leave(
        scope, tnx_masked_fill(tnx_mul(each[0], each[1]), singular, tn_float((double)INFINITY)),
        out);
}

/* Matrices without elements have the number 0, whatever their sizes. */
static tn_status no_condition(tn_tensor *self, tn_tensor **out)
{
    const int64_t both[] = {-2, -1};
    return tn_linalg_vector_norm(self, tn_int(2), both, 2, false, TN_DTYPE_NONE, out);
}

tn_status tni_composite_linalg_cond(tn_tensor *self, const tn_scalar *p, tn_tensor **out)
{
    tn_scope *scope;
    const int64_t last = -1;
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "linalg.cond: The input tensor must have at least 2 dimensions.");
    if (self->numel == 0)
        return no_condition(self, out);
    double order = p ? tn_scalar_to_double(*p) : 2.0;
    if (fabs(order) == 2.0) {
        TN_TRY(tn_scope_enter(&scope));
        tn_tensor *s = tnx_linalg_svdvals(self, NULL);
        tn_tensor *most = tnx_amax(s, &last, 1, false), *least = tnx_amin(s, &last, 1, false);
        return tni_leave(scope, order > 0 ? tnx_div(most, least) : tnx_div(least, most), out);
    }
    return norms(self, p, NULL, out);
}

tn_status tni_composite_linalg_cond_str(tn_tensor *self, const char *p, tn_tensor **out)
{
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "linalg.cond: The input tensor must have at least 2 dimensions.");
    return self->numel == 0 ? no_condition(self, out) : norms(self, NULL, p, out);
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
    TN_TRY(check_square("linalg.matrix_power", self));
    TN_TRY(tn_scope_enter(&scope));
    if (n == 0) /* a gradient of zeros, not none */
        return tni_leave(
            scope, tnx_copy_(tnx_clone(self, TN_FORMAT_CONTIGUOUS), identity_like(self), false),
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

/* ---- L D L^T ---- */

tn_status tni_composite_linalg_ldl_factor(tn_tensor *self, bool hermitian, tn_tensor **LD,
                                          tn_tensor **pivots)
{
    TN_AUTO(tn_tensor) info = NULL;
    return tn_linalg_ldl_factor_ex(self, hermitian, true, LD, pivots, &info);
}
