/* SPDX-License-Identifier: MIT */
/* Gradients of eigenvectors and singular vectors beside difference quotients. Vectors are known up
 * to a factor, which a decomposition may choose anew for a matrix that moved: what is
 * differentiated here does not depend on it, a function of the matrix, V f(w) V^-1, and its likes.
 * Symmetric and Hermitian matrices are made of free numbers, so that both triangles count. */
#include "kit.h"
#include "tenon/gradcheck.h"

enum { REAL, COMPLEX };

static tn_tensor *numbers(int64_t rows, int64_t columns, int kind)
{
    const int64_t sizes[] = {2, rows, columns};
    tn_tensor_opts opts = tn_opts(kind == REAL ? TN_DTYPE_F64 : TN_DTYPE_C128, TN_CPU);
    tn_tensor *x = NULL;
    tn_manual_seed(17);
    ASSERT_OK(tn_randn(sizes, 3, &opts, &x));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    return x;
}

/* The result of a function that was written in a scope. */
static tn_status leave(tn_scope *scope, tn_tensor *result, tn_tensor **outputs, int64_t *n)
{
    tn_tensor *kept = tn_scope_keep(result);
    tn_status status = tn_scope_leave(scope);
    if (status != TN_OK) {
        tn_tensor_unref(kept);
        return status;
    }
    outputs[(*n)++] = kept;
    return TN_OK;
}

/* left diag(sin(w)) right */
static tn_tensor *of_values(tn_tensor *left, tn_tensor *w, tn_tensor *right)
{
    return tnx_matmul(tnx_mul(left, tnx_unsqueeze(tnx_sin(w), -2)), right);
}

static tn_tensor *adjoint(tn_tensor *t)
{
    return tnx_resolve_conj(tnx_conj(tnx_transpose(t, -2, -1)));
}

static tn_status of_hermitian(void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                              tn_tensor **outputs, int64_t *n_outputs)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    tn_scope *scope;
    (void)n_inputs;
    TN_TRY(tn_scope_enter(&scope));
    a = tn_scope_keep(tnx_add(inputs[0], adjoint(inputs[0]), tn_int(1)));
    TN_TRY(tn_scope_leave(scope));
    TN_TRY(tn_linalg_eigh(a, ctx, &w, &v));
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(leave(scope, of_values(v, w, adjoint(v)), outputs, n_outputs));
    outputs[(*n_outputs)++] = tn_tensor_ref(w);
    return TN_OK;
}

static tn_status of_any(void *ctx, tn_tensor *const *inputs, int64_t n_inputs, tn_tensor **outputs,
                        int64_t *n_outputs)
{
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    tn_scope *scope;
    (void)ctx, (void)n_inputs;
    TN_TRY(tn_linalg_eig(inputs[0], &w, &v));
    TN_TRY(tn_scope_enter(&scope));
    return leave(scope, of_values(v, w, tnx_linalg_inv(v)), outputs, n_outputs);
}

static tn_status of_singular(void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                             tn_tensor **outputs, int64_t *n_outputs)
{
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    tn_scope *scope;
    (void)ctx, (void)n_inputs;
    TN_TRY(tn_linalg_svd(inputs[0], false, NULL, &u, &s, &vh));
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(leave(scope, of_values(u, s, vh), outputs, n_outputs));
    outputs[(*n_outputs)++] = tn_tensor_ref(s);
    return TN_OK;
}

static void check(tn_gradcheck_fn fn, const char *ctx, int64_t rows, int64_t columns)
{
    for (int kind = REAL; kind <= COMPLEX; kind++) {
        tn_tensor *x = numbers(rows, columns, kind);
        test_note("%s %lldx%lld %s", ctx ? ctx : "", (long long)rows, (long long)columns,
                  kind == REAL ? "real" : "complex");
        EXPECT_OK(tn_gradcheck(fn, (void *)(uintptr_t)ctx, &x, 1, NULL));
        EXPECT_OK(tn_gradgradcheck(fn, (void *)(uintptr_t)ctx, &x, 1, NULL, NULL));
        tn_tensor_unref(x);
    }
}

TEST(eigenvectors_of_symmetric_and_hermitian_matrices_have_right_gradients)
{
    check(of_hermitian, "L", 4, 4);
    check(of_hermitian, "U", 3, 3);
}

TEST(eigenvectors_of_any_matrix_have_right_gradients)
{
    check(of_any, NULL, 3, 3);
}

TEST(singular_vectors_have_right_gradients_whatever_the_shape)
{
    check(of_singular, NULL, 3, 3);
    check(of_singular, NULL, 4, 2);
    check(of_singular, NULL, 2, 4);
}
