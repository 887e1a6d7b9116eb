/* SPDX-License-Identifier: MIT */
/* autograd/formula_linalg.c: gradients of factorisations and solutions, written by hand. See
 * formula.c. An undefined gradient is NULL, and stands for zeros. */
#include "core/scope.h"
#include "core/tensor.h"
#include "gen/gradients.h"

#include "tenon/ops.h"

static tn_tensor *adjoint(tn_tensor *t)
{
    return tni_grad_adjoint(t);
}

static tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return a && b ? tnx_add(a, b, tn_int(1)) : a ? a : b;
}

static tn_tensor *minus(tn_tensor *a, tn_tensor *b)
{
    return tnx_sub(a, b, tn_int(1));
}

static tn_tensor *skew(tn_tensor *t)
{
    return minus(t, adjoint(t));
}

/* a b c */
static tn_tensor *chain(tn_tensor *a, tn_tensor *b, tn_tensor *c)
{
    return tnx_matmul(a, tnx_matmul(b, c));
}

static tn_tensor *refused(const char *text)
{
    return tni_scope_result(tni_fail(TN_INVALID, TNI_WHERE, "%s", text), NULL);
}

static bool is_complex(const tn_tensor *t)
{
    return t && tn_dtype_is_complex((tn_dtype)t->dtype);
}

/* The diagonal of @p t times @p factor. */
static tn_tensor *scaled_diagonal(tn_tensor *t, double factor)
{
    tn_tensor *d = tnx_mul_scalar(tnx_diagonal(t, 0, -2, -1), tn_float(factor));
    return tnx_diag_embed(d, 0, -2, -1);
}

/* Zeros as an undefined gradient: complex ones need the dtype of the matrix. */
static tn_tensor *as_type(tn_tensor *t, const tn_tensor *like)
{
    if (!t || !like || t->dtype == like->dtype)
        return t;
    return tnx_to_dtype(t, (tn_dtype)like->dtype, false, false, TN_FORMAT_NONE);
}

/* ---- inverses and systems ---- */

tn_tensor *tni_grad_inverse_gradient(tn_tensor *grad, tn_tensor *inverse)
{
    tn_tensor *turned = adjoint(inverse);
    return tnx_neg(chain(turned, grad, turned));
}

/* X of A^H X = grad. */
tn_tensor *tni_grad_solve_adjoint(tn_tensor *A, tn_tensor *grad)
{
    return tnx_linalg_solve(adjoint(A), grad, true);
}

tn_tensor *tni_grad_solve_matrix(tn_tensor *A, tn_tensor *grad, tn_tensor *result)
{
    return tnx_neg(tnx_matmul(tni_grad_solve_adjoint(A, grad), adjoint(result)));
}

tn_tensor *tni_grad_triangle_adjoint(tn_tensor *A, tn_tensor *grad, bool upper, bool unitriangular)
{
    return tnx_linalg_solve_triangular(adjoint(A), grad, !upper, true, unitriangular);
}

static tn_tensor *triangle_of(tn_tensor *t, bool upper, bool unitriangular)
{
    int64_t offset = unitriangular ? (upper ? 1 : -1) : 0;
    return upper ? tnx_triu(t, offset) : tnx_tril(t, offset);
}

tn_tensor *tni_grad_triangle_matrix(tn_tensor *A, tn_tensor *grad, tn_tensor *result, bool upper,
                                    bool unitriangular)
{
    tn_tensor *side = tni_grad_triangle_adjoint(A, grad, upper, unitriangular);
    tn_tensor *whole = tnx_neg(tnx_matmul(side, adjoint(result)));
    return triangle_of(whole, upper, unitriangular);
}

/* The part of @p t that counts, times @p by. */
tn_tensor *tni_grad_triangle_product(tn_tensor *t, tn_tensor *by, bool upper, bool unitriangular)
{
    return tnx_matmul(triangle_of(t, upper, unitriangular), by);
}

/* ---- Cholesky and LU ---- */

/* 1/2 L^-H S L^-1, where S is the lower triangle of L^H G, and the upper one is its adjoint. A
 * diagonal that is not real stays as it is, as the reference has it. */
tn_tensor *tni_grad_cholesky_gradient(tn_tensor *grad, tn_tensor *factor, bool upper)
{
    tn_tensor *L = upper ? adjoint(factor) : factor;
    tn_tensor *G = upper ? adjoint(grad) : grad;
    tn_tensor *S = tnx_matmul(adjoint(L), G);
    tn_tensor *both = plus(tnx_tril(S, 0), adjoint(tnx_tril(S, -1)));
    tn_tensor *left = tnx_linalg_solve_triangular(adjoint(L), both, true, true, false);
    tn_tensor *whole = tnx_linalg_solve_triangular(L, left, false, false, false);
    return tnx_mul_scalar(whole, tn_float(0.5));
}

/* L^-H (lower(L^H gL) + upper(gU U^H)) U^-H, of square factors; what came for one of them may be
 * NULL. */
static tn_tensor *square_lu(tn_tensor *grad_l, tn_tensor *grad_u, tn_tensor *L, tn_tensor *U)
{
    tn_tensor *lower = grad_l ? tnx_tril(tnx_matmul(adjoint(L), grad_l), -1) : NULL;
    tn_tensor *upper = grad_u ? tnx_triu(tnx_matmul(grad_u, adjoint(U)), 0) : NULL;
    tn_tensor *left = tnx_linalg_solve_triangular(adjoint(L), plus(lower, upper), true, true, true);
    return tnx_linalg_solve_triangular(adjoint(U), left, false, false, false);
}

/* A wide matrix has A = P L [U1 U2], where U2 = L^-1 P^T A2 depends on L, too: L gets
 * -L^-H gU2 U2^H of it. A high one has A = P [L1; L2] U, with L2 = (P^T A)2 U^-1, and U gets
 * -L2^H gL2 U^-H. What is left is the square part. */
static tn_tensor *lu_rows(tn_tensor *grad, tn_tensor *L, tn_tensor *U)
{
    int64_t m = L->sizes[L->ndim - 2], n = U->sizes[U->ndim - 1], k = m < n ? m : n;
    tn_tensor *grad_l = tnx_tril(tnx_narrow(grad, -1, 0, k), -1);
    tn_tensor *grad_u = tnx_triu(tnx_narrow(grad, -2, 0, k), 0);
    if (m < n) {
        tn_tensor *rest = tnx_narrow(grad_u, -1, k, n - k), *u = tnx_narrow(U, -1, 0, k);
        rest = tnx_linalg_solve_triangular(adjoint(L), rest, true, true, true);
        tn_tensor *others = tnx_matmul(rest, adjoint(tnx_narrow(U, -1, k, n - k)));
        tn_tensor *square = square_lu(minus(grad_l, others), tnx_narrow(grad_u, -1, 0, k), L, u);
        return tnx_cat((tn_tensor *[]){square, rest}, 2, -1);
    }
    if (m > n) {
        tn_tensor *rest = tnx_narrow(grad_l, -2, k, m - k), *l = tnx_narrow(L, -2, 0, k);
        rest = tnx_linalg_solve_triangular(adjoint(U), rest, false, false, false);
        tn_tensor *others = tnx_matmul(adjoint(tnx_narrow(L, -2, k, m - k)), rest);
        tn_tensor *square = square_lu(tnx_narrow(grad_l, -2, 0, k), minus(grad_u, others), l, U);
        return tnx_cat((tn_tensor *[]){square, rest}, 2, -2);
    }
    return square_lu(grad_l, grad_u, L, U);
}

tn_tensor *tni_grad_lu_gradient(tn_tensor *grad, tn_tensor *LU, tn_tensor *pivots)
{
    tn_tensor *P = NULL, *L = NULL, *U = NULL;
    if (tni_scope_failed() || !LU)
        return NULL;
    tn_status status = tn_lu_unpack(LU, pivots, true, true, &P, &L, &U);
    P = tni_scope_result(status, P);
    L = tni_scope_result(status, L);
    U = tni_scope_result(status, U);
    return tni_scope_failed() ? NULL : tnx_matmul(P, lu_rows(grad, L, U));
}

/* What the factors got, over each other. */
tn_tensor *tni_grad_unpack_gradient(tn_tensor *grad_l, tn_tensor *grad_u, const int64_t *sizes,
                                    int64_t ndim)
{
    int64_t m = sizes[ndim - 2], n = sizes[ndim - 1], k = m < n ? m : n;
    const int64_t right[] = {0, n - k, 0, 0}, below[] = {0, 0, 0, m - k};
    tn_tensor *l = grad_l ? tnx_constant_pad_nd(tnx_tril(grad_l, -1), right, 4, tn_int(0)) : NULL;
    tn_tensor *u = grad_u ? tnx_constant_pad_nd(tnx_triu(grad_u, 0), below, 4, tn_int(0)) : NULL;
    return plus(l, u);
}

/* ---- QR ---- */

/* (gQ + Q copy(M)) R^-H with M = R gR^H - gQ^H Q and its lower triangle copied to the upper one.
 * The diagonal of R is real, so that of copy(M) is. */
static tn_tensor *high_qr(tn_tensor *grad_q, tn_tensor *grad_r, tn_tensor *Q, tn_tensor *R)
{
    tn_tensor *M = grad_r ? tnx_matmul(R, adjoint(grad_r)) : NULL;
    if (grad_q)
        M = M ? minus(M, tnx_matmul(adjoint(grad_q), Q)) : tnx_neg(tnx_matmul(adjoint(grad_q), Q));
    tn_tensor *low = tnx_tril(M, -1), *middle = tnx_diagonal(M, 0, -2, -1);
    if (is_complex(Q))
        middle = as_type(tnx_real(middle), Q);
    tn_tensor *whole = plus(plus(low, adjoint(low)), tnx_diag_embed(middle, 0, -2, -1));
    tn_tensor *sum = plus(tnx_matmul(Q, whole), grad_q);
    return tnx_linalg_solve_triangular(adjoint(R), sum, false, false, false);
}

/* A wide matrix has A = Q [R1 R2], where R2 = Q^H A2 = Q^H Q R2: Q gets A2 gR2^H of it, A2 gets
 * Q gR2. */
tn_tensor *tni_grad_qr_gradient(tn_tensor *grad_q, tn_tensor *grad_r, tn_tensor *Q, tn_tensor *R)
{
    if (tni_scope_failed() || !Q || !R || (!grad_q && !grad_r))
        return NULL;
    if (Q->ndim != R->ndim)
        return refused("The derivative of linalg.qr depends on Q, which is not computed when "
                       "mode='r'. Please use linalg.qr(A, mode='reduced') if you are going to "
                       "differentiate through linalg.qr.");
    int64_t m = Q->sizes[Q->ndim - 2], n = R->sizes[R->ndim - 1], k = R->sizes[R->ndim - 2];
    if (m > n && k == m)
        return refused("The QR decomposition is not differentiable when mode='complete' and nrows "
                       "> ncols.");
    if (n == k)
        return high_qr(grad_q, grad_r, Q, R);
    tn_tensor *square = tnx_narrow(R, -1, 0, k), *grad_square = NULL, *rest = NULL;
    if (grad_r) {
        rest = tnx_narrow(grad_r, -1, k, n - k);
        grad_square = tnx_narrow(grad_r, -1, 0, k);
        grad_q = plus(grad_q, chain(Q, tnx_narrow(R, -1, k, n - k), adjoint(rest)));
    }
    tn_tensor *left = high_qr(grad_q, grad_square, Q, square);
    if (!rest)
        return tnx_constant_pad_nd(left, (const int64_t[]){0, n - k}, 2, tn_int(0));
    return tnx_cat((tn_tensor *[]){left, tnx_matmul(Q, rest)}, 2, -1);
}

/* ---- eigenvalues ---- */

/* Complex vectors may be turned by any phase: a result that turns with them has no gradient.
 * @p inner: products of vectors with their gradients, NULL for none; @p more: others that turn with
 * them. */
static bool turns(tn_tensor *inner, tn_tensor *more)
{
    bool none = true;
    inner = plus(inner, more);
    if (tni_scope_failed() || !is_complex(inner) || tni_is_meta(inner) || tni_is_fake(inner))
        return false;
    tn_tensor *turn = tnx_imag(tnx_diagonal(tnx_detach(inner), 0, -2, -1));
    tn_tensor *zeros = tnx_zeros_like(turn, NULL, TN_FORMAT_NONE);
    if (!tni_scope_failed())
        (void)tni_scope_result(tn_allclose(turn, zeros, 1e-2, 1e-2, false, &none), NULL);
    return !tni_scope_failed() && !none;
}

/* Differences of values, column minus row, with ones on the diagonal. */
static tn_tensor *differences(tn_tensor *values)
{
    tn_tensor *e = minus(tnx_unsqueeze(values, -2), tnx_unsqueeze(values, -1));
    tn_tensor *ones = tnx_ones_like(values, NULL, TN_FORMAT_NONE);
    return plus(e, tnx_diag_embed(ones, 0, -2, -1));
}

tn_tensor *tni_grad_eigh_gradient(tn_tensor *grad_values, tn_tensor *grad_vectors,
                                  tn_tensor *values, tn_tensor *vectors)
{
    if (tni_scope_failed() || (!grad_values && !grad_vectors))
        return NULL;
    if (vectors->ndim != values->ndim + 1)
        return refused("linalg.eigvalsh: eigenvectors are needed for gradients");
    tn_tensor *middle =
        grad_values ? as_type(tnx_diag_embed(grad_values, 0, -2, -1), vectors) : NULL;
    if (grad_vectors) {
        tn_tensor *inner = tnx_matmul(adjoint(vectors), grad_vectors);
        if (turns(inner, NULL))
            return refused("linalg_eigh_backward: The eigenvectors in the complex case are "
                           "specified up to multiplication by e^{i phi}. The specified loss "
                           "function depends on this quantity, so it is ill-defined.");
        inner = skew(inner);
        tn_tensor *off = tnx_mul_scalar(minus(inner, scaled_diagonal(inner, 1.0)), tn_float(0.5));
        middle = plus(middle, tnx_div(off, differences(values)));
    }
    return chain(vectors, middle, adjoint(vectors));
}

/* V^-H (diag(gL) + (V^H gV - V^H V diag(Re(V^H gV))) / conj(E)) V^H */
tn_tensor *tni_grad_eig_gradient(tn_tensor *grad_values, tn_tensor *grad_vectors, tn_tensor *values,
                                 tn_tensor *vectors)
{
    if (tni_scope_failed() || (!grad_values && !grad_vectors))
        return NULL;
    tn_tensor *turned = adjoint(vectors);
    tn_tensor *middle = grad_values ? tnx_diag_embed(grad_values, 0, -2, -1) : NULL;
    if (grad_vectors) {
        tn_tensor *inner = tnx_matmul(turned, grad_vectors);
        if (turns(inner, NULL))
            return refused("linalg_eig_backward: The eigenvectors in the complex case are "
                           "specified up to multiplication by e^{i phi}. The specified loss "
                           "function depends on this quantity, so it is ill-defined.");
        tn_tensor *lengths = as_type(tnx_real(tnx_diagonal(inner, 0, -2, -1)), vectors);
        tn_tensor *free =
            minus(inner, tnx_mul(tnx_matmul(turned, vectors), tnx_unsqueeze(lengths, -2)));
        free = minus(free, scaled_diagonal(free, 1.0));
        middle = plus(middle, tnx_div(free, tni_grad_conj(differences(values))));
    }
    return tnx_linalg_solve(turned, tnx_matmul(middle, turned), true);
}

/* ---- singular values ---- */

tn_tensor *tni_grad_svd_gradient(tn_tensor *grad_u, tn_tensor *grad_s, tn_tensor *grad_vh,
                                 tn_tensor *U, tn_tensor *S, tn_tensor *Vh)
{
    if (tni_scope_failed() || (!grad_u && !grad_s && !grad_vh))
        return NULL;
    if (U->ndim != S->ndim + 1)
        return refused("linalg.svdvals: singular vectors are needed for gradients");
    int64_t k = S->sizes[S->ndim - 1], m = U->sizes[U->ndim - 2], n = Vh->sizes[Vh->ndim - 1];
    /* Vectors beyond the values are any that fill up the space: nothing well-defined depends on
     * them. */
    if (grad_u)
        grad_u = tnx_narrow(grad_u, -1, 0, k);
    if (grad_vh)
        grad_vh = tnx_narrow(grad_vh, -2, 0, k);
    tn_tensor *u = tnx_narrow(U, -1, 0, k), *vh = tnx_narrow(Vh, -2, 0, k);
    tn_tensor *middle = grad_s ? as_type(tnx_diag_embed(grad_s, 0, -2, -1), U) : NULL;
    if (!grad_u && !grad_vh)
        return chain(u, middle, vh);
    tn_tensor *of_u = grad_u ? tnx_matmul(adjoint(u), grad_u) : NULL;
    tn_tensor *of_v = grad_vh ? tnx_matmul(vh, adjoint(grad_vh)) : NULL;
    if (turns(of_u, of_v))
        return refused("svd_backward: The singular vectors in the complex case are specified up to "
                       "multiplication by e^{i phi}. The specified loss function depends on this "
                       "phase term, making it ill-defined.");
    tn_tensor *squares = tnx_mul(S, S), *gaps = differences(squares);
    tn_tensor *row = tnx_unsqueeze(S, -2), *column = tnx_unsqueeze(S, -1), *whole = NULL;
    if (grad_u) {
        tn_tensor *inner = of_u;
        middle = plus(middle, tnx_mul(tnx_div(skew(inner), gaps), row));
        if (is_complex(U)) { /* the phase that left and right vectors share */
            tn_tensor *turn = tnx_diagonal(skew(inner), 0, -2, -1);
            turn = tnx_div(turn, tnx_mul_scalar(S, tn_int(2)));
            middle = plus(middle, tnx_diag_embed(turn, 0, -2, -1));
        }
        if (m > k)
            whole = tnx_matmul(tnx_div(minus(grad_u, tnx_matmul(u, inner)), row), vh);
    }
    if (grad_vh) {
        tn_tensor *inner = of_v;
        middle = plus(middle, tnx_mul(column, tnx_div(skew(inner), gaps)));
        if (n > k) {
            tn_tensor *rest = minus(grad_vh, chain(grad_vh, adjoint(vh), vh));
            whole = plus(whole, tnx_matmul(u, tnx_div(rest, column)));
        }
    }
    return plus(chain(u, middle, vh), whole);
}

/* ---- pseudo-inverse: Golub and Pereyra ---- */

tn_tensor *tni_grad_pinv_gradient(tn_tensor *grad, tn_tensor *A, tn_tensor *P)
{
    tn_tensor *Ph = adjoint(P), *Gh = adjoint(grad);
    tn_tensor *sum = adjoint(tnx_neg(chain(P, Gh, P)));
    tn_tensor *left = tnx_matmul(Gh, tnx_matmul(P, Ph));
    sum = plus(sum, minus(left, chain(A, P, left)));
    tn_tensor *right = tnx_matmul(tnx_matmul(Ph, P), Gh);
    return plus(sum, minus(right, chain(right, P, A)));
}

/* -P dA P + P P^H dA^H (1 - A P) + (1 - P A) dA^H P^H P */
tn_tensor *tni_grad_pinv_tangent(tn_tensor *t, tn_tensor *A, tn_tensor *P)
{
    tn_tensor *Ph = adjoint(P), *th = adjoint(t);
    tn_tensor *sum = tnx_neg(chain(P, t, P));
    tn_tensor *right = tnx_matmul(tnx_matmul(P, Ph), th);
    sum = plus(sum, minus(right, chain(right, A, P)));
    tn_tensor *left = tnx_matmul(th, tnx_matmul(Ph, P));
    return plus(sum, minus(left, chain(P, A, left)));
}
