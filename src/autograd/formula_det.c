/* SPDX-License-Identifier: MIT */
/* autograd/formula_det.c: gradients of determinants, written by hand. See formula.c.
 *
 * The gradient of det(A) is det(A) A^-H, which says nothing where A has no inverse. There it is the
 * matrix of cofactors: determinants of A without a row and a column, which differentiate again. */
#include <float.h>
#include <math.h>
#include "autograd/formula.h"
#include "autograd/meta.h"
#include "core/scope.h"
#include "core/state.h"
#include "gen/gradients.h"

#include "tenon/ops.h"

enum { MOST_COFACTORS = 32 }; /* rows of a matrix: beyond, all its minors are too much memory */

/* A number a matrix, as matrices of one element. */
static tn_tensor *wide(tn_tensor *number)
{
    return tnx_unsqueeze(tnx_unsqueeze(number, -1), -1);
}

/* The adjoint of the inverse, times a number a matrix. Where it is to be differentiated again a
 * matrix without an inverse is refused. */
static tn_tensor *inverse_times(tn_tensor *A, tn_tensor *number)
{
    if (tni_scope_failed())
        return NULL;
    int64_t sizes[TN_MAX_DIMS] = {0};
    for (int d = 0; d < A->ndim - 1; d++)
        sizes[d] = A->sizes[d];
    tn_tensor *line = tnx_expand(tnx_unsqueeze(number, -1), sizes, A->ndim - 1, false);
    if (tni_recording)
        return tnx_linalg_solve(tni_grad_adjoint(A), tnx_diag_embed(line, 0, -2, -1), true);
    tn_tensor *inverse = NULL, *info = NULL;
    tn_status status = tn_linalg_inv_ex(A, false, &inverse, &info);
    tn_tensor_unref(info);
    inverse = tni_scope_result(status, inverse);
    tn_tensor *rows = tnx_contiguous(inverse, TN_FORMAT_CONTIGUOUS);
    return tnx_mul(wide(number), tni_grad_adjoint(rows)); /* by columns, as solutions are */
}

/* Whether some matrix has hardly an inverse, by the pivots of its LU factors; where they cannot be
 * looked at, it may. */
static bool some_singular(tn_tensor *A)
{
    tn_tensor *LU = NULL, *pivots = NULL, *info = NULL;
    tn_scalar found = tn_int(0);
    const int64_t last = -1;
    if (tni_scope_failed() || A->numel == 0 || !tni_can_look(A))
        return A && A->numel > 0 && tni_stands_for_others(A);
    tn_status status = tn_linalg_lu_factor_ex(tnx_detach(A), true, false, &LU, &pivots, &info);
    tn_tensor_unref(pivots);
    tn_tensor_unref(info);
    tn_tensor *sizes = tnx_abs(tnx_diagonal(tni_scope_result(status, LU), 0, -2, -1));
    /* The relative error of an inverse is about this over the ratio of the pivots. */
    double epsilon =
        A->dtype == TN_DTYPE_F64 || A->dtype == TN_DTYPE_C128 ? DBL_EPSILON : (double)FLT_EPSILON;
    double small = sqrt(epsilon) * (double)A->sizes[A->ndim - 1];
    tn_tensor *least = tnx_amin(sizes, &last, 1, false), *most = tnx_amax(sizes, &last, 1, false);
    tn_tensor *low = tnx_le(least, tnx_mul_scalar(most, tn_float(small)));
    tn_tensor *any = tnx_any(low);
    if (!tni_scope_failed())
        (void)tni_scope_result(tn_item(any, &found), NULL);
    return !tni_scope_failed() && found.v.i != 0;
}

/* For each of 0 to n - 1 the others, and in @p signs alternating ones of n x n. */
static void others(int64_t n, int64_t *places, double *signs)
{
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0, at = 0; j < n; j++)
            if (j != i)
                places[i * (n - 1) + at++] = j;
        for (int64_t j = 0; j < n; j++)
            signs[i * n + j] = (i + j) % 2 ? -1.0 : 1.0;
    }
}

static tn_tensor *cofactors(tn_tensor *A)
{
    int64_t places[MOST_COFACTORS * (MOST_COFACTORS - 1) + 1], n = A->sizes[A->ndim - 1];
    double signs[MOST_COFACTORS * MOST_COFACTORS];
    int64_t total = A->numel / (n * n), less = n - 1, picked = n * less;
    tn_tensor *at = NULL, *sign = NULL;
    others(n, places, signs);
    tn_status status = tn_tensor_from_data(places, 1, &picked, TN_DTYPE_I64, &at);
    at = tni_scope_result(status, at);
    status = tn_tensor_from_data(signs, 2, (const int64_t[]){n, n}, TN_DTYPE_F64, &sign);
    sign = tni_scope_result(status, sign);
    if (tni_scope_failed())
        return NULL;
    tn_tensor *rows = tnx_index_select(tnx_reshape(A, (const int64_t[]){total, n, n}, 3), 1, at);
    rows = tnx_reshape(rows, (const int64_t[]){total, n, less, n}, 4);
    tn_tensor *both = tnx_index_select(rows, 3, at);
    both = tnx_reshape(both, (const int64_t[]){total, n, less, n, less}, 5);
    tn_tensor *minors = tnx_linalg_det(tnx_permute(both, (const int64_t[]){0, 1, 3, 2, 4}, 5));
    sign = tnx_to_dtype(sign, tni_dtype_to_real((tn_dtype)A->dtype), false, false, TN_FORMAT_NONE);
    return tnx_reshape(tnx_mul(minors, sign), A->sizes, A->ndim);
}

/* The same of large matrices, from singular values: each factor of the product left out in turn. */
static tn_tensor *cofactors_of_values(tn_tensor *A)
{
    tn_tensor *U = NULL, *S = NULL, *Vh = NULL;
    tn_status status = tn_linalg_svd(A, true, NULL, &U, &S, &Vh);
    U = tni_scope_result(status, U);
    S = tni_scope_result(status, S);
    Vh = tni_scope_result(status, Vh);
    if (tni_scope_failed())
        return NULL;
    tn_tensor *phase = tnx_mul(tnx_linalg_det(U), tnx_linalg_det(Vh));
    tn_tensor *ones = tnx_ones_like(S, NULL, TN_FORMAT_NONE);
    tn_tensor *square = tnx_mul(tnx_unsqueeze(S, -2), tnx_unsqueeze(ones, -1));
    tn_tensor *self = tnx_diag_embed(ones, 0, -2, -1);
    square = tnx_where_scalarother(tnx_eq_scalar(self, tn_int(0)), square, tn_int(1));
    tn_tensor *rest = tnx_prod_dim_int(square, -1, false, TN_DTYPE_NONE);
    tn_tensor *joined = tnx_matmul(tnx_mul(U, tnx_unsqueeze(rest, -2)), Vh);
    return tnx_mul(tni_grad_conj(joined), wide(phase));
}

tn_tensor *tni_grad_det_gradient(tn_tensor *grad, tn_tensor *A, tn_tensor *result)
{
    if (!some_singular(A))
        return inverse_times(A, tnx_mul(grad, tni_grad_conj(result)));
    tn_tensor *all =
        A->sizes[A->ndim - 1] <= MOST_COFACTORS ? cofactors(A) : cofactors_of_values(A);
    return tnx_mul(wide(grad), tni_grad_conj(all));
}

/* The sum of cofactors times tangents. */
tn_tensor *tni_grad_det_tangent(tn_tensor *t, tn_tensor *A, tn_tensor *result)
{
    const int64_t both[] = {-2, -1};
    tn_tensor *one = tnx_ones_like(result, NULL, TN_FORMAT_NONE);
    tn_tensor *slope = tni_grad_conj(tni_grad_det_gradient(one, A, result));
    return tnx_sum_dim(tnx_mul(slope, t), both, 2, false, TN_DTYPE_NONE);
}

/* A phase turns with the imaginary part of the trace. */
tn_tensor *tni_grad_slogdet_gradient(tn_tensor *grad_sign, tn_tensor *grad_size, tn_tensor *A,
                                     tn_tensor *sign)
{
    if (sign && !tn_dtype_is_complex((tn_dtype)sign->dtype))
        return grad_size ? inverse_times(A, grad_size) : NULL;
    tn_tensor *number = NULL;
    if (grad_size)
        number = tnx_to_dtype(grad_size, (tn_dtype)sign->dtype, false, false, TN_FORMAT_NONE);
    if (grad_sign) {
        tn_tensor *turn = tnx_neg(tnx_imag(tnx_mul(tni_grad_conj(grad_sign), sign)));
        tn_tensor *zero = tnx_zeros_like(turn, NULL, TN_FORMAT_NONE);
        turn = tnx_make_complex(zero, turn);
        number = number ? tnx_add(number, turn, tn_int(1)) : turn;
    }
    return number ? inverse_times(A, number) : NULL;
}
