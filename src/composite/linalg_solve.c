/* SPDX-License-Identifier: MIT */
/* composite/linalg_solve.c: systems of equations: by Cholesky, LU and triangles, and inverses. */
#include <stdio.h>
#include <string.h>
#include "base/warn.h"
#include "composite/linalg.h"
#include "gen/composites.h"
#include "shape/expand.h"

/* A failure of "FROM: …" as that of @p name, which called it. */
static tn_status as(const char *name, const char *from, tn_status status)
{
    const char *text = tn_last_error();
    size_t n = strlen(from);
    if (status == TN_OK || strncmp(text, from, n) != 0 || text[n] != ':')
        return status;
    TN_FAIL(status, "%s%s", name, text + n);
}

/* ---- Cholesky ---- */

tn_status tni_composite_linalg_cholesky(tn_tensor *self, bool upper, tn_tensor **out)
{
    TN_AUTO(tn_tensor) info = NULL;
    return as("linalg.cholesky", "linalg.cholesky_ex",
              tn_linalg_cholesky_ex(self, upper, true, out, &info));
}

tn_status tni_composite_cholesky(tn_tensor *self, bool upper, tn_tensor **out)
{
    TNI_WARN_ONCE("torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be "
                  "removed in a future PyTorch release.\nL = torch.cholesky(A)\nshould be replaced "
                  "with\nL = torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, upper=True)\n"
                  "should be replaced with\nU = torch.linalg.cholesky(A).mH\nThis transform will "
                  "produce equivalent results for all valid (symmetric positive definite) inputs.");
    return as("cholesky", "linalg.cholesky", tn_linalg_cholesky(self, upper, out));
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
    TN_TRY(tni_linalg_check_dtype("cholesky_solve_cpu", input2));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *first = upper ? tni_linalg_adjoint(input2) : input2,
              *second = upper ? input2 : tni_linalg_adjoint(input2);
    tn_tensor *y = tnx_linalg_solve_triangular(first, self, false, true, false);
    return tni_leave(scope, tnx_linalg_solve_triangular(second, y, true, true, false), out);
}

/* A factor with a zero on its diagonal has no inverse. */
static tn_status check_factor(tn_tensor *self)
{
    TN_AUTO(tn_tensor) diagonal = NULL;
    TN_AUTO(tn_tensor) zero = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) plain = NULL;
    if (tni_is_meta(self))
        return TN_OK;
    TN_TRY(tn_detach(self, &plain));
    TN_TRY(tn_diagonal(plain, 0, -2, -1, &diagonal));
    TN_TRY(tn_eq_scalar(diagonal, tn_int(0), &zero));
    TN_TRY(tn_nonzero(zero, &places));
    if (places->sizes[0] == 0)
        return TN_OK;
    char text[64] = "";
    tn_scalar at;
    int64_t which = 0;
    for (int d = 0; d < zero->ndim; d++) {
        TN_AUTO(tn_tensor) row = NULL;
        TN_AUTO(tn_tensor) number = NULL;
        TN_TRY(tn_select(places, 0, 0, &row));
        TN_TRY(tn_select(row, 0, d, &number));
        TN_TRY(tn_item(number, &at));
        if (d < zero->ndim - 1)
            which = which * zero->sizes[d] + at.v.i;
    }
    if (zero->ndim > 1)
        snprintf(text, sizeof text, "(Batch element %lld): ", (long long)which);
    TN_FAIL(TN_LINALG,
            "cholesky_inverse: %sThe diagonal element %lld is zero, the inversion could not be "
            "completed because the input matrix is singular.",
            text, (long long)at.v.i + 1);
}

tn_status tni_composite_cholesky_inverse(tn_tensor *self, bool upper, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_linalg_check_square("cholesky_inverse", self));
    TN_TRY(tni_linalg_check_dtype("cholesky_inverse_out_cpu", self));
    TN_TRY(check_factor(self));
    TN_TRY(tn_scope_enter(&scope));
    return tni_leave(scope, tnx_cholesky_solve(tni_linalg_identity_like(self), self, upper), out);
}

/* ---- systems ---- */

tn_status tni_composite_linalg_inv(tn_tensor *A, tn_tensor **out)
{
    TN_AUTO(tn_tensor) info = NULL;
    return as("linalg.inv", "linalg.inv_ex", tn_linalg_inv_ex(A, true, out, &info));
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

/* Where @p A, or its transpose, fails: one number a matrix of its own batch, however often the
 * right side repeats it. */
static tn_status failures_of(tn_tensor *A, bool check_errors, tn_tensor **info)
{
    TN_AUTO(tn_tensor) plain = NULL;
    TN_AUTO(tn_tensor) nothing = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_TRY(tn_detach(A, &plain));
    TN_TRY(tn_narrow(plain, -1, 0, 0, &nothing));
    return tn_solve_square(plain, nothing, check_errors, &x, info);
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
    TN_TRY(tni_linalg_check_square("linalg.solve", A));
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)A->dtype, true), TN_INVALID,
             "linalg.solve: Expected a floating point or complex tensor as input. Got %s",
             tni_dtype_text((tn_dtype)A->dtype));
    TN_CHECK(A->dtype == B->dtype, TN_INVALID,
             "linalg.solve: Expected A and B to have the same dtype, but found A of type %s and B "
             "of type %s instead",
             tni_dtype_text((tn_dtype)A->dtype), tni_dtype_text((tn_dtype)B->dtype));
    bool vectors = tni_linalg_of_vectors(A, B);
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
    bool repeated = a->ndim != A->ndim ||
                    memcmp(a->sizes, A->sizes, sizeof *a->sizes * (size_t)(A->ndim - 2)) != 0;
    TN_AUTO(tn_tensor) of_repeated = NULL;
    if (repeated)
        TN_TRY(failures_of(left ? A : turned_a, check_errors, &failures));
    TN_TRY(
        tn_solve_square(a, b, check_errors && !repeated, &x, repeated ? &of_repeated : &failures));
    if (vectors && x->ndim > 2) { /* the vectors, too, are columns */
        tn_scope *scope;
        TN_TRY(tn_scope_enter(&scope));
        TN_TRY(tni_leave(scope, tni_linalg_by_columns(tnx_squeeze_dim(x, -1)), result));
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
    return as("torch.linalg.solve", "torch.linalg.solve_ex",
              tn_linalg_solve_ex(A, B, left, true, out, &info));
}

tn_status tni_composite_linalg_solve_triangular(tn_tensor *self, tn_tensor *B, bool upper,
                                                bool left, bool unitriangular, tn_tensor **out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) turned_a = NULL;
    TN_AUTO(tn_tensor) turned_b = NULL;
    TN_TRY(tni_linalg_check_square("linalg.solve_triangular", self));
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
    TNI_WARN_ONCE(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be "
        "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments "
        "reversed and does not return a copy of one of the inputs.\nX = torch.triangular_solve(B, "
        "A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B).");
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has %d "
             "dimensions instead",
             self->ndim);
    TN_CHECK(A->ndim >= 2, TN_INVALID,
             "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has %d "
             "dimensions instead",
             A->ndim);
    TN_CHECK(self->dtype == A->dtype, TN_INVALID,
             "Expected b and A to have the same dtype, but found b of type %s and A of type %s "
             "instead.",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)A->dtype));
    const int64_t *a = A->sizes + A->ndim - 2, *b = self->sizes + self->ndim - 2;
    TN_CHECK(a[0] == a[1], TN_INVALID,
             "A must be batches of square matrices, but they are %lld by %lld matrices",
             (long long)a[0], (long long)a[1]);
    TN_CHECK(
        a[0] == b[0], TN_INVALID,
        "Incompatible matrix sizes for triangular_solve: each A matrix is %lld by %lld but each "
        "b matrix is %lld by %lld",
        (long long)a[0], (long long)a[1], (long long)b[0], (long long)b[1]);
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
    return as("torch.linalg.lu_factor", "torch.linalg.lu_factor_ex",
              tn_linalg_lu_factor_ex(A, pivot, true, LU, pivots, &info));
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

/* Whether the pivots are such as lu_factor makes, as far as their values are known. */
static tn_status check_pivots(const tn_tensor *LU, tn_tensor *pivots)
{
    char sizes[TNI_SIZES_TEXT];
    TN_CHECK(pivots->ndim > 0, TN_INDEX, "Dimension specified as -1 but tensor has no dimensions");
    TN_CHECK(pivots->sizes[pivots->ndim - 1] == LU->sizes[LU->ndim - 1], TN_INVALID,
             "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the "
             "matrix");
    bool alike = pivots->ndim == LU->ndim - 1;
    for (int d = 0; alike && d < pivots->ndim; d++)
        alike = pivots->sizes[d] == LU->sizes[d];
    TN_CHECK(alike, TN_INVALID,
             "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got "
             "pivots with shape %s instead",
             tni_format_sizes(pivots->ndim, pivots->sizes, sizes, sizeof sizes));
    if (tni_is_meta(pivots) || pivots->numel == 0)
        return TN_OK;
    TN_AUTO(tn_tensor) low = NULL;
    TN_AUTO(tn_tensor) high = NULL;
    tn_scalar least, most;
    TN_TRY(tn_amin(pivots, NULL, 0, false, &low));
    TN_TRY(tn_amax(pivots, NULL, 0, false, &high));
    TN_TRY(tn_item(low, &least));
    TN_TRY(tn_item(high, &most));
    TN_CHECK(least.v.i >= 1, TN_INVALID,
             "Pivots given to lu_solve must all be greater or equal to 1. Did you properly pass "
             "the result of lu_factor?");
    TN_CHECK(most.v.i <= LU->sizes[LU->ndim - 2], TN_INVALID,
             "Pivots given to lu_solve must all be smaller or equal to LU.size(-2). Did you "
             "properly pass the result of lu_factor?");
    return TN_OK;
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
    TN_CHECK(pivots->dtype == TN_DTYPE_I32, TN_INVALID,
             "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
    TN_TRY(tni_linalg_check_square("torch.linalg.lu_solve", LU));
    TN_CHECK(B->ndim >= 2, TN_INVALID,
             "linalg.lu_solve: The input tensor B must have at least 2 dimensions.");
    TN_TRY(check_fit("linalg.lu_solve", LU, B, left));
    TN_TRY(check_pivots(LU, pivots));
    TN_TRY(tn_lu_unpack(LU, pivots, true, true, &P, &L, &U));
    TN_TRY(tn_scope_enter(&scope));
    /* A = P L U, where the inverse of P is its adjoint; X A = B is A^H X^H = B^H. */
    tn_tensor *b = left ? B : tni_linalg_adjoint(B), *x;
    if (adjoint_ == left) {
        x = tnx_linalg_solve_triangular(tni_linalg_adjoint(U), b, false, true, false);
        x = tnx_linalg_solve_triangular(tni_linalg_adjoint(L), x, true, true, true);
        x = tni_linalg_by_columns(tnx_matmul(P, x));
    } else {
        b = tnx_matmul(tni_linalg_adjoint(P), tni_linalg_by_columns(b));
        x = tnx_linalg_solve_triangular(L, b, false, true, true);
        x = tnx_linalg_solve_triangular(U, x, true, true, false);
    }
    return tni_leave(scope, left ? x : tni_linalg_adjoint(x), out);
}

tn_status tni_composite_lu_solve(tn_tensor *self, tn_tensor *LU_data, tn_tensor *LU_pivots,
                                 tn_tensor **out)
{
    TNI_WARN_ONCE("torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be "
                  "removed in a future PyTorch release.\nNote that torch.linalg.lu_solve has its "
                  "arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced "
                  "with\nX = torch.linalg.lu_solve(LU, pivots, B)");
    return tn_linalg_lu_solve(LU_data, LU_pivots, self, true, false, out);
}
