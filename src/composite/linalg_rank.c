/* SPDX-License-Identifier: MIT */
/* composite/linalg_rank.c: pseudo-inverses, ranks, least squares and condition numbers. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "composite/linalg.h"
#include "core/at_hand.h"
#include "gen/composites.h"
#include "gen/kernels.h"

/* Tolerances are known of these alone. */
static tn_status check_epsilon(const tn_tensor *t)
{
    TN_CHECK(tni_linalg_is_computed(t), TN_INVALID,
             "This function doesn't handle types other than float and double");
    return TN_OK;
}

static tn_status check_pinv(const tn_tensor *t)
{
    char sizes[TNI_SIZES_TEXT];
    TN_CHECK(t->ndim >= 2 && tni_linalg_is_computed(t), TN_INVALID,
             "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, double, "
             "cfloat or cdouble types",
             tni_dtype_text((tn_dtype)t->dtype),
             tni_format_sizes(t->ndim, t->sizes, sizes, sizeof sizes));
    return TN_OK;
}

/* ---- ranks and pseudo-inverses ---- */

/* What `hermitian` says of @p t: its lower triangle is all that counts. Gradients go to the whole
 * of it, as if it had been given so. */
static tn_status mirrored(tn_tensor *t, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tni_linalg_check_square("linalg.eigh", t));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *plain = tnx_detach(t), *below = tnx_tril(plain, -1);
    tn_tensor *middle = tnx_diag_embed(tnx_real(tnx_diagonal(plain, 0, -2, -1)), 0, -2, -1);
    tn_tensor *whole =
        tnx_add(tnx_add(below, tni_linalg_adjoint(below), tn_int(1)), middle, tn_int(1));
    return tni_leave(scope, tnx_add(t, tnx_sub(whole, plain, tn_int(1)), tn_int(1)), out);
}

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

/* Of the values in @p s those that @p counts says. */
static tn_tensor *inverse_of(tn_tensor *u, tn_tensor *s, tn_tensor *vh, tn_tensor *counts)
{
    tn_tensor *inverse = tnx_where_scalarother(counts, tnx_reciprocal(s), tn_int(0));
    tn_tensor *v = tnx_mul(tni_linalg_adjoint(vh), tnx_unsqueeze(inverse, -2));
    return tnx_matmul(v, tni_linalg_adjoint(u));
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
    return tni_leave(scope, inverse_of(u, s, vh, counts), out);
}

tn_status tni_composite_linalg_pinv_float(tn_tensor *self, tn_opt_float atol, tn_opt_float rtol,
                                          bool hermitian, tn_tensor **out)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_TRY(check_pinv(self));
    if (hermitian)
        TN_TRY(mirrored(self, &whole));
    return tn_pinv(hermitian ? whole : self, atol.has ? atol.value : 0.0,
                   tolerance_of(self, atol, rtol), out);
}

tn_status tni_composite_linalg_pinv(tn_tensor *self, double rcond, bool hermitian, tn_tensor **out)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_TRY(check_pinv(self));
    if (hermitian)
        TN_TRY(mirrored(self, &whole));
    return tn_pinv(hermitian ? whole : self, 0.0, rcond, out);
}

/* ---- a tolerance for each matrix ---- */

static tn_status check_tolerance(const char *op, const char *name, const tn_tensor *t)
{
    TN_CHECK(!t || !tn_dtype_is_complex((tn_dtype)t->dtype), TN_INVALID,
             "%s: %s tensor of complex type is not supported. Got %s", op, name,
             tni_dtype_text((tn_dtype)t->dtype));
    return TN_OK;
}

/* Below what each singular value in @p S of @p A counts for nothing: [..., 1]. */
static tn_tensor *least_values(tn_tensor *A, tn_tensor *S, tn_tensor *atol, tn_tensor *rtol)
{
    const int64_t last = -1;
    double usual = tolerance_of(A, (tn_opt_float){0}, (tn_opt_float){0});
    if (!rtol && atol) /* the usual one, where nothing else is said */
        rtol = tnx_where_scalarself(tnx_le_scalar(atol, tn_int(0)), tn_float(usual),
                                    tnx_zeros_like(atol, NULL, TN_FORMAT_NONE));
    tn_tensor *largest = tnx_amax(S, &last, 1, true);
    tn_tensor *relative =
        rtol ? tnx_mul(tnx_unsqueeze(rtol, -1), largest) : tnx_mul_scalar(largest, tn_float(usual));
    return atol ? tnx_maximum(tnx_unsqueeze(atol, -1), relative) : relative;
}

tn_status tni_kernel_pinv_tensor(tn_call *call, tn_tensor *self, tn_tensor *atol, tn_tensor *rtol,
                                 tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) u = NULL;
    TN_AUTO(tn_tensor) s = NULL;
    TN_AUTO(tn_tensor) vh = NULL;
    tn_scope *scope;
    TN_TRY(check_pinv(self));
    if (self->numel == 0)
        return tn_pinv(self, 0.0, 0.0, out);
    TN_TRY(tn__linalg_svd(self, false, true, NULL, &u, &s, &vh));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *counts = tnx_gt(s, least_values(self, s, atol, rtol));
    return tni_leave(scope, inverse_of(u, s, vh, counts), out);
}

tn_status tni_composite_linalg_pinv_tensor(tn_tensor *self, tn_tensor *atol, tn_tensor *rtol,
                                           bool hermitian, tn_tensor **out)
{
    TN_TRY(check_pinv(self));
    TN_TRY(check_tolerance("torch.linalg.pinv", "atol", atol));
    TN_TRY(check_tolerance("torch.linalg.pinv", "rtol", rtol));
    TN_AUTO(tn_tensor) whole = NULL;
    if (hermitian) {
        TN_TRY(mirrored(self, &whole));
        self = whole;
    }
    return tn_pinv_tensor(self, atol, rtol, out);
}

tn_status tni_composite_linalg_pinv_rcond(tn_tensor *self, tn_tensor *rcond, bool hermitian,
                                          tn_tensor **out)
{
    TN_TRY(check_pinv(self));
    TN_TRY(check_tolerance("torch.linalg.pinv", "rcond", rcond));
    return tni_composite_linalg_pinv_tensor(self, NULL, rcond, hermitian, out);
}

/* ---- ranks ---- */

static tn_status check_rank(const tn_tensor *input)
{
    TN_CHECK(input->ndim >= 2, TN_INVALID,
             "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.");
    return TN_OK;
}

/* Singular values, without a gradient. */
static tn_status values_to_count(tn_tensor *input, bool hermitian, tn_tensor **out)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) plain = NULL;
    TN_TRY(check_epsilon(input));
    TN_TRY(hermitian ? mirrored(input, &whole) : tn_detach(input, &whole));
    TN_TRY(tn_detach(whole, &plain));
    return tn_linalg_svdvals(plain, NULL, out);
}

static tn_tensor *count_last(tn_tensor *flags)
{
    const int64_t last = -1;
    return tnx_sum_dim(flags, &last, 1, false, TN_DTYPE_I64);
}

tn_status tni_composite_linalg_matrix_rank_tensor(tn_tensor *input, tn_tensor *atol,
                                                  tn_tensor *rtol, bool hermitian, tn_tensor **out)
{
    TN_AUTO(tn_tensor) s = NULL;
    tn_scope *scope;
    TN_TRY(check_rank(input));
    TN_TRY(check_tolerance("torch.linalg.matrix_rank", "atol", atol));
    TN_TRY(check_tolerance("torch.linalg.matrix_rank", "rtol", rtol));
    TN_TRY(values_to_count(input, hermitian, &s));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *large = s->numel ? tnx_gt(s, least_values(input, s, atol, rtol)) : s;
    return tni_leave(scope, count_last(large), out);
}

tn_status tni_composite_linalg_matrix_rank_tol(tn_tensor *input, tn_tensor *tol, bool hermitian,
                                               tn_tensor **out)
{
    TN_AUTO(tn_tensor) none = NULL;
    TN_TRY(tn_zeros_like(tol, NULL, TN_FORMAT_NONE, &none));
    return tni_composite_linalg_matrix_rank_tensor(input, tol, none, hermitian, out);
}

tn_status tni_composite_pinverse(tn_tensor *self, double rcond, tn_tensor **out)
{
    return tn_pinv(self, 0.0, rcond, out);
}

tn_status tni_composite_linalg_matrix_rank_float(tn_tensor *self, tn_opt_float atol,
                                                 tn_opt_float rtol, bool hermitian, tn_tensor **out)
{
    TN_AUTO(tn_tensor) s = NULL;
    tn_scope *scope;
    TN_TRY(check_rank(self));
    TN_TRY(values_to_count(self, hermitian, &s));
    TN_TRY(tn_scope_enter(&scope));
    double absolute = atol.has ? atol.value : 0.0, relative = tolerance_of(self, atol, rtol);
    tn_tensor *large = s->numel ? tnx_gt(s, least_value(s, absolute, relative)) : s;
    return tni_leave(scope, count_last(large), out);
}

tn_status tni_composite_linalg_matrix_rank(tn_tensor *self, double tol, bool hermitian,
                                           tn_tensor **out)
{
    tn_opt_float atol = {.value = tol, .has = 1}, rtol = {.value = 0.0, .has = 1};
    return tn_linalg_matrix_rank(self, atol, rtol, hermitian, out);
}

/* Whether one kernel may have it all: nothing is empty, to be repeated or to be derived. */
static bool is_plain(const tn_tensor *A, const tn_tensor *B)
{
    bool plain = tni_linalg_is_computed(A) && A->numel && B->numel && A->ndim == B->ndim &&
                 !tni_linalg_has_derivative(A) && !tni_linalg_has_derivative(B);
    for (int d = 0; plain && d < A->ndim - 1; d++)
        plain = A->sizes[d] == B->sizes[d];
    return plain;
}

/* By the pseudo-inverse: of the least length where several fit. Columns are as long as those of b,
 * which the reference solves in place. */
static tn_status by_inverse(tn_tensor *A, tn_tensor *B, double rtol, tn_tensor **solution,
                            tn_tensor **rank)
{
    TN_AUTO(tn_tensor) inverse = NULL;
    TN_AUTO(tn_tensor) count = NULL;
    tn_scope *scope;
    int64_t m = A->sizes[A->ndim - 2], n = A->sizes[A->ndim - 1];
    TN_TRY(tn_pinv(A, 0.0, rtol, &inverse));
    TN_TRY(tn_linalg_matrix_rank(A, (tn_opt_float){0}, (tn_opt_float){rtol, 1}, false, &count));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *found = tnx_transpose(tnx_matmul(inverse, B), -2, -1);
    if (m > n)
        found = tnx_constant_pad_nd(found, (const int64_t[]){0, m - n}, 2, tn_int(0));
    else
        found = tnx_clone(found, TN_FORMAT_CONTIGUOUS);
    TN_TRY(tni_leave(scope, tnx_transpose(found, -2, -1), solution));
    *rank = TN_MOVE(count);
    return TN_OK;
}

static bool is_driver(const char *name)
{
    static const char *const names[] = {"gels", "gelsy", "gelsd", "gelss"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Which singular values count, as a part of the largest: each driver has its own idea of numbers
 * that are no such part, and gels takes the matrix to have full rank. */
static double counts_from(const tn_tensor *self, const char *driver, tn_opt_float rcond)
{
    int64_t m = self->sizes[self->ndim - 2], n = self->sizes[self->ndim - 1];
    bool divides = driver && strcmp(driver, "gelsd") == 0;
    if (driver && strcmp(driver, "gels") == 0)
        return 0;
    if (!rcond.has)
        return epsilon(self) * (double)(m > n ? m : n);
    if (rcond.value < 0 || (divides && (rcond.value == 0 || rcond.value >= 1)))
        return epsilon(self);
    return rcond.value;
}

/* Whether every matrix of the batch has this rank; where nobody knows, yes. */
static tn_status all_have_rank(tn_tensor *rank, int64_t n, bool *out)
{
    tn_scope *scope;
    TN_AUTO(tn_tensor) same = NULL;
    tn_scalar answer;
    *out = true;
    if (tni_is_hollow(rank))
        return TN_OK;
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(tni_leave(scope, tnx_all(tnx_eq_scalar(rank, tn_int(n))), &same));
    TN_TRY(tn_item(same, &answer));
    *out = tn_scalar_to_double(answer) != 0;
    return TN_OK;
}

tn_status tni_composite_linalg_lstsq(tn_tensor *self, tn_tensor *b, tn_opt_float rcond,
                                     const char *driver, tn_tensor **solution,
                                     tn_tensor **residuals, tn_tensor **rank,
                                     tn_tensor **singular_values)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) left = NULL;
    TN_AUTO(tn_tensor) count = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) column = NULL;
    const int64_t none = 0, rows = -2;
    tn_scope *scope;
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "torch.linalg.lstsq: input must have at least 2 dimensions.");
    TN_TRY(tni_linalg_check_matrices("torch.linalg.lstsq", self));
    TN_CHECK(b->ndim >= 1, TN_INVALID, "torch.linalg.lstsq: other must have at least 1 dimension.");
    TN_CHECK(self->dtype == b->dtype, TN_INVALID,
             "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's "
             "dtype %s and other's dtype %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)b->dtype));
    TN_CHECK(!driver || is_driver(driver), TN_INVALID,
             "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
    bool vectors = tni_linalg_of_vectors(self, b) && b->ndim == self->ndim - 1;
    if (vectors)
        TN_TRY(tn_unsqueeze(b, -1, &column));
    tn_tensor *right = vectors ? column : b;
    int64_t m = self->sizes[self->ndim - 2], n = self->sizes[self->ndim - 1];
    TN_CHECK(right->ndim >= 2 && right->sizes[right->ndim - 2] == m, TN_INVALID,
             "torch.linalg.lstsq: input.size(-2) should match other.size(-2)");
    TN_TRY(check_epsilon(self));
    const tn_tensor_opts real = tn_opts(tni_dtype_to_real((tn_dtype)self->dtype), self->device);
    double rtol = counts_from(self, driver, rcond);
    TN_TRY(is_plain(self, right) ? tn_least_squares(self, right, rtol, &whole, &count)
                                 : by_inverse(self, right, rtol, &whole, &count));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *found = tnx_narrow(whole, -2, 0, n);
    TN_TRY(tni_leave(scope, vectors ? tnx_squeeze_dim(found, -1) : found, &x));
    if (driver && strcmp(driver, "gels") == 0) {
        tn_tensor_unref(count);
        count = NULL;
        const tn_tensor_opts whole_numbers = tn_opts(TN_DTYPE_I64, self->device);
        TN_TRY(tn_new_empty(self, &none, 1, &whole_numbers, &count));
    }
    bool spectrum = driver && (strcmp(driver, "gelsd") == 0 || strcmp(driver, "gelss") == 0);
    if (spectrum)
        TN_TRY(tn_linalg_svdvals(self, NULL, &values));
    else
        TN_TRY(tn_new_empty(self, &none, 1, &real, &values));
    bool residual = m > n && driver && strcmp(driver, "gelsy") != 0;
    if (residual && spectrum)
        TN_TRY(all_have_rank(count, n, &residual));
    if (residual) {
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
    TN_TRY(tn_linalg_inv_ex(self, false, &inverse, &info));
    TN_TRY(tn_scope_enter(&scope));
    /* What stands for the inverse of a singular matrix has no singular values. */
    tn_tensor *singular = tnx_gt_scalar(info, tn_int(0));
    tn_tensor *finite =
        tnx_masked_fill(inverse, tnx_unsqueeze(tnx_unsqueeze(singular, -1), -1), tn_float(0.0));
    for (int i = 0; i < 2; i++) {
        tn_tensor *t = i ? finite : self;
        each[i] = p ? tnx_linalg_matrix_norm(t, *p, both, 2, false, TN_DTYPE_NONE)
                    : tnx_linalg_matrix_norm_str_ord(t, name, both, 2, false, TN_DTYPE_NONE);
    }
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
    TN_CHECK(fabs(order) == 2.0 || fabs(order) == 1.0 || isinf(order), TN_INVALID,
             "linalg.cond got an invalid norm type: %g", order);
    if (fabs(order) == 2.0) {
        TN_TRY(tn_scope_enter(&scope));
        tn_tensor *s = tnx_linalg_svdvals(self, NULL);
        tn_tensor *most = tnx_amax(s, &last, 1, false), *least = tnx_amin(s, &last, 1, false);
        return tni_leave(scope, order > 0 ? tnx_div(most, least) : tnx_div(least, most), out);
    }
    char name[64];
    snprintf(name, sizeof name, "linalg.cond(ord=%g)", order);
    TN_TRY(tni_linalg_check_square(name, self));
    return norms(self, p, NULL, out);
}

tn_status tni_composite_linalg_cond_str(tn_tensor *self, const char *p, tn_tensor **out)
{
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "linalg.cond(ord=%s): The input tensor A must have at least 2 dimensions.", p);
    char name[64];
    snprintf(name, sizeof name, "linalg.cond(ord=%s)", p);
    TN_TRY(tni_linalg_check_square(name, self));
    TN_CHECK(strcmp(p, "fro") == 0 || strcmp(p, "nuc") == 0, TN_INVALID,
             "linalg.cond got an invalid norm type: %s", p);
    return self->numel == 0 ? no_condition(self, out) : norms(self, NULL, p, out);
}
