/* SPDX-License-Identifier: MIT */
/* composite/products.c: products of several tensors, covariances and norms in terms of other
 * operators. */
#include <math.h>
#include "base/warn.h"
#include "composite/leave.h"
#include "core/at_hand.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* ---- vectors ---- */

tn_status tni_composite_vdot(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    TN_AUTO(tn_tensor) turned = NULL;
    TN_TRY(tn_conj(self, &turned));
    return tn_dot(turned, other, out);
}

tn_status tni_composite_linalg_vecdot(tn_tensor *x, tn_tensor *y, int64_t dim, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)x->dtype, true), TN_INVALID,
             "linalg.vecdot: Expected a floating point or complex tensor as input. Got %s",
             tni_dtype_text((tn_dtype)x->dtype));
    TN_CHECK(x->dtype == y->dtype, TN_INVALID,
             "linalg.vecdot: Expected x and y to have the same dtype, but found x of type %s and y "
             "of type %s instead",
             tni_dtype_text((tn_dtype)x->dtype), tni_dtype_text((tn_dtype)y->dtype));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *product = tnx_mul(tnx_conj(x), y);
    return tni_leave(scope, tnx_sum_dim(product, &dim, 1, false, TN_DTYPE_NONE), out);
}

tn_status tni_composite_dist(tn_tensor *self, tn_tensor *other, tn_scalar p, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    return tni_leave(scope, tnx_norm(tnx_sub(self, other, tn_int(1)), p), out);
}

tn_status tni_composite_linalg_cross(tn_tensor *self, tn_tensor *other, int64_t dim,
                                     tn_tensor **out)
{
    int d;
    tn_scope *scope;
    TN_CHECK(self->ndim == other->ndim, TN_INVALID,
             "linalg.cross: inputs must have the same number of dimensions.");
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(self->ndim && self->sizes[d] == 3 && other->sizes[d] == 3, TN_INVALID,
             "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld",
             (long long)dim, (long long)(self->ndim ? self->sizes[d] : 0),
             (long long)(other->ndim ? other->sizes[d] : 0));
    TN_CHECK(self->dtype != TN_DTYPE_BOOL || other->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"cross\" not implemented for 'Bool'");
    TN_CHECK(self->dtype == other->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)other->dtype));
    TN_TRY(tn_scope_enter(&scope));
    /* Counted modulo 3, a[i] b[i+1] - a[i+1] b[i] is element i - 1 of the product. */
    const int64_t along = d, next = -1;
    tn_tensor *a = tnx_roll(self, &next, 1, &along, 1), *b = tnx_roll(other, &next, 1, &along, 1);
    tn_tensor *turned = tnx_sub(tnx_mul(self, b), tnx_mul(a, other), tn_int(1));
    return tni_leave(scope, tnx_roll(turned, &next, 1, &along, 1), out);
}

tn_status tni_composite_cross(tn_tensor *self, tn_tensor *other, tn_opt_int dim, tn_tensor **out)
{
    if (dim.has)
        return tn_linalg_cross(self, other, dim.value, out);
    TNI_WARN_ONCE("Using torch.cross without specifying the dim arg is deprecated.\nPlease either "
                  "pass the dim explicitly or simply use torch.linalg.cross.\nThe default value of "
                  "dim will change to agree with that of linalg.cross in a future release.");
    for (int d = 0; d < self->ndim; d++)
        if (self->sizes[d] == 3)
            return tn_linalg_cross(self, other, d, out);
    TN_FAIL(TN_INVALID, "no dimension of size 3 in input");
}

/* ---- matrices ---- */

tn_status tni_composite_addbmm(tn_tensor *self, tn_tensor *batch1, tn_tensor *batch2,
                               tn_scalar beta, tn_scalar alpha, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(batch1->ndim == 3 && batch2->ndim == 3, TN_INVALID, "%s must be a 3D tensor",
             batch1->ndim == 3 ? "batch2" : "batch1");
    TN_CHECK(batch1->sizes[0] == batch2->sizes[0], TN_INVALID,
             "batch1 and batch2 must have same number of batches, got %lld and %lld",
             (long long)batch1->sizes[0], (long long)batch2->sizes[0]);
    TN_CHECK(batch1->sizes[2] == batch2->sizes[1], TN_INVALID,
             "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)",
             (long long)batch1->sizes[1], (long long)batch1->sizes[2], (long long)batch2->sizes[1],
             (long long)batch2->sizes[2]);
    TN_TRY(tn_scope_enter(&scope));
    /* A sum of products is the product of what is written side by side. */
    int64_t b = batch1->sizes[0], n = batch1->sizes[1], m = batch1->sizes[2], p = batch2->sizes[2];
    const int64_t order[] = {1, 0, 2};
    tn_tensor *left = tnx_reshape(tnx_permute(batch1, order, 3), (const int64_t[]){n, b * m}, 2);
    tn_tensor *right = tnx_reshape(batch2, (const int64_t[]){b * m, p}, 2);
    return tni_leave(scope, tnx_addmm(self, left, right, beta, alpha), out);
}

static tn_status check_square(const char *op, const tn_tensor *t)
{
    TN_CHECK(t->ndim >= 2, TN_INVALID, "%s: The input tensor A must have at least 2 dimensions.",
             op);
    TN_CHECK(t->sizes[t->ndim - 1] == t->sizes[t->ndim - 2], TN_INVALID,
             "%s: A must be batches of square matrices, but they are %lld by %lld matrices", op,
             (long long)t->sizes[t->ndim - 2], (long long)t->sizes[t->ndim - 1]);
    return TN_OK;
}

/* Ones on the diagonal, in the sizes of @p t. */
static tn_tensor *identity_like(tn_tensor *t)
{
    tn_tensor *ones = tnx_new_full(t, t->sizes, t->ndim - 1, tn_int(1), NULL);
    return tnx_diag_embed(ones, 0, -2, -1);
}

/* The largest sum of a column's absolute values, of all matrices; 0 where there are no values. */
static tn_status largest_column(tn_tensor *t, double *out)
{
    tn_scope *scope;
    TN_AUTO(tn_tensor) norm = NULL;
    *out = 0.0;
    if (tni_is_hollow(t) || t->numel == 0)
        return TN_OK;
    TN_TRY(tn_scope_enter(&scope));
    const int64_t rows = -2;
    tn_tensor *sums = tnx_sum_dim(tnx_abs(tnx_detach(t)), &rows, 1, false, TN_DTYPE_NONE);
    TN_TRY(tni_leave(scope, tnx_amax(sums, NULL, 0, false), &norm));
    tn_scalar s;
    TN_TRY(tn_item(norm, &s));
    *out = s.v.f;
    return TN_OK;
}

/* Four terms of the series of exp from x^first on, divided by x^first: @p power has 1, x, x^2, x^3.
 * @p factor: 1 / first! */
static tn_tensor *four_terms(tn_tensor *const *power, int first, double factor)
{
    tn_tensor *sum = tnx_mul_scalar(power[0], tn_float(factor));
    for (int i = 1; i < 4; i++) {
        factor /= first + i;
        sum = tnx_add(sum, power[i], tn_float(factor));
    }
    return sum;
}

/* The series of exp for a matrix divided by a power of 2, then squared as often. In powers of x^4
 * six products make the 16 terms of which the next, 2^-17 / 17!, is below a double's last bit;
 * for a float, five and 12. */
tn_status tni_composite_linalg_matrix_exp(tn_tensor *self, tn_tensor **out)
{
    double norm, factor[5] = {1.0}; /* 1 / (4 k)! */
    tn_scope *scope;
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype) ||
                 tn_dtype_is_complex((tn_dtype)self->dtype),
             TN_INVALID,
             "linalg.matrix_exp: Expected a floating point or complex tensor as input. "
             "Got %s",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_TRY(check_square("linalg.matrix_exp", self));
    TN_TRY(largest_column(self, &norm));
    int halvings = 0;
    if (isfinite(norm) && norm > 0.5)
        halvings = (int)ceil(log2(norm)) + 1;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = tnx_mul_scalar(self, tn_float(ldexp(1.0, -halvings)));
    int fours = self->dtype == TN_DTYPE_F64 || self->dtype == TN_DTYPE_C128 ? 4 : 3;
    for (int k = 0; k < fours; k++)
        factor[k + 1] = factor[k] / ((4 * k + 1) * (4 * k + 2) * (4 * k + 3) * (4 * k + 4));
    tn_tensor *square = tnx_matmul(x, x), *fourth = tnx_matmul(square, square);
    tn_tensor *const power[] = {identity_like(self), x, square, tnx_matmul(square, x)};
    tn_tensor *sum = tnx_add(four_terms(power, 4 * (fours - 1), factor[fours - 1]), fourth,
                             tn_float(factor[fours]));
    for (int k = fours - 2; k >= 0; k--)
        sum = tnx_add(four_terms(power, 4 * k, factor[k]), tnx_matmul(fourth, sum), tn_int(1));
    for (int i = 0; i < halvings; i++)
        sum = tnx_matmul(sum, sum);
    return tni_leave(scope, sum, out);
}

/* ---- chains: the order with the fewest multiplications ---- */

enum { LONGEST = 64 };

typedef struct chain {
    tn_tensor *const *matrices;
    int cut[LONGEST][LONGEST];
} chain;

static tn_tensor *product(const chain *c, int from, int to)
{
    if (from == to)
        return c->matrices[from];
    int k = c->cut[from][to];
    return tnx_mm(product(c, from, k), product(c, k + 1, to));
}

static void plan(chain *c, int n, const int64_t *size)
{
    static const double never = 1e300;
    double cost[LONGEST][LONGEST];
    for (int i = 0; i < n; i++)
        cost[i][i] = 0;
    for (int length = 1; length < n; length++)
        for (int i = 0; i + length < n; i++) {
            int j = i + length;
            cost[i][j] = never;
            for (int k = i; k < j; k++) {
                double all = cost[i][k] + cost[k + 1][j] +
                             (double)size[i] * (double)size[k + 1] * (double)size[j + 1];
                if (all < cost[i][j]) {
                    cost[i][j] = all;
                    c->cut[i][j] = k;
                }
            }
        }
}

tn_status tni_composite_linalg_multi_dot(tn_tensor *const *tensors, int64_t tensors_n,
                                         tn_tensor **out)
{
    tn_scope *scope;
    int n = (int)tensors_n;
    TN_CHECK(tensors_n >= 2, TN_INVALID, "multi_dot(): expected at least 2 tensors but got %lld",
             (long long)tensors_n);
    TN_CHECK(tensors_n <= LONGEST, TN_INVALID, "multi_dot(): at most %d tensors are possible",
             LONGEST);
    bool first = tensors[0]->ndim == 1, last = tensors[n - 1]->ndim == 1;
    for (int i = 0; i < n; i += n - 1)
        TN_CHECK(tensors[i]->ndim == 2 || tensors[i]->ndim == 1, TN_INVALID,
                 "multi_dot(): the %s tensor must be 1D or 2D but got %dD",
                 i == 0 ? "first" : "last", tensors[i]->ndim);
    for (int i = 1; i < n - 1; i++)
        TN_CHECK(tensors[i]->ndim == 2, TN_INVALID, "multi_dot(): tensor %d must be 2D but got %dD",
                 i, tensors[i]->ndim);
    for (int i = 1; i < n; i++)
        TN_CHECK(
            tensors[i]->dtype == tensors[0]->dtype, TN_INVALID,
            "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s and tensor "
            "%d %s",
            tni_dtype_cpp((tn_dtype)tensors[0]->dtype), i,
            tni_dtype_cpp((tn_dtype)tensors[i]->dtype));
    for (int i = 1; i < n; i++) {
        char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
        const tn_tensor *x = tensors[i - 1], *y = tensors[i];
        TN_CHECK(x->sizes[x->ndim - 1] == y->sizes[0], TN_INVALID,
                 "multi_dot(): tensors %d and %d with shapes %s and %s cannot be multiplied", i - 1,
                 i, tni_format_sizes(x->ndim, x->sizes, a, sizeof a),
                 tni_format_sizes(y->ndim, y->sizes, b, sizeof b));
    }
    chain c = {0};
    tn_tensor *matrices[LONGEST];
    int64_t size[LONGEST + 1];
    TN_TRY(tn_scope_enter(&scope));
    for (int i = 0; i < n; i++) {
        const tn_tensor *t = tensors[i];
        matrices[i] = i == 0 && first      ? tnx_unsqueeze(tensors[i], 0)
                      : i == n - 1 && last ? tnx_unsqueeze(tensors[i], -1)
                                           : tensors[i];
        size[i] = t->ndim == 1 ? (i == 0 ? 1 : t->sizes[0]) : t->sizes[0];
        size[i + 1] = t->ndim == 1 ? (i == 0 ? t->sizes[0] : 1) : t->sizes[1];
    }
    c.matrices = matrices;
    plan(&c, n, size);
    tn_tensor *made = product(&c, 0, n - 1);
    if (first)
        made = tnx_squeeze_dim(made, 0);
    if (last)
        made = tnx_squeeze_dim(made, -1);
    return tni_leave(scope, made, out);
}

tn_status tni_composite_chain_matmul(tn_tensor *const *matrices, int64_t matrices_n,
                                     tn_tensor **out)
{
    TN_CHECK(matrices_n > 0, TN_INVALID, "chain_matmul(): Expected one or more matrices");
    for (int64_t i = 0; i < matrices_n; i++)
        TN_CHECK(matrices[i]->ndim == 2, TN_INVALID, "Tensor dimension is %d, expected 2 instead.",
                 matrices[i]->ndim);
    if (matrices_n == 1)
        return tn_clone(matrices[0], TN_FORMAT_NONE, out);
    return tn_linalg_multi_dot(matrices, matrices_n, out);
}

/* ---- covariances ---- */

#define NOTHING "cov(): weights sum to zero, can't be normalized"

/* As far as the values are known. */
static tn_status check_sum(tn_tensor *const *weights)
{
    TN_AUTO(tn_tensor) both = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    tn_tensor *w = weights[0] ? weights[0] : weights[1];
    tn_scalar found;
    if (!w || (tni_is_meta(w) && w->numel > 0))
        return TN_OK;
    TN_CHECK(w->numel > 0, TN_INVALID, NOTHING);
    if (weights[0] && weights[1])
        TN_TRY(tn_mul(weights[0], weights[1], &both));
    TN_TRY(tn_sum(both ? both : w, TN_DTYPE_NONE, &sum));
    TN_TRY(tn_item(sum, &found));
    TN_CHECK(tn_scalar_to_double(found) != 0, TN_INVALID, NOTHING);
    return TN_OK;
}

static tn_status check_weights(const char *name, tn_tensor *weights)
{
    if (!weights || weights->numel == 0 || tni_is_meta(weights))
        return TN_OK;
    TN_AUTO(tn_tensor) least = NULL;
    tn_scalar found;
    TN_TRY(tn_amin(weights, NULL, 0, false, &least));
    TN_TRY(tn_item(least, &found));
    TN_CHECK(tn_scalar_to_double(found) >= 0, TN_INVALID, "cov(): %s cannot be negative", name);
    return TN_OK;
}

tn_status tni_composite_cov(tn_tensor *self, int64_t correction, tn_tensor *fweights,
                            tn_tensor *aweights, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(self->ndim <= 2, TN_INVALID,
             "cov(): expected input to have two or fewer dimensions but got an input with %d "
             "dimensions",
             self->ndim);
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "cov(): bool dtype is not supported for input");
    int64_t count = self->ndim == 2 ? self->sizes[1] : self->numel;
    tn_tensor *weights[] = {fweights, aweights};
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "aweights" : "fweights";
        TN_CHECK(!weights[i] || weights[i]->ndim <= 1, TN_INVALID,
                 "cov(): expected %s to have one or fewer dimensions but got %s with %d dimensions",
                 name, name, weights[i] ? weights[i]->ndim : 0);
        bool fits = !weights[i] || (i ? tn_dtype_is_floating((tn_dtype)weights[i]->dtype)
                                      : tn_dtype_is_integral((tn_dtype)weights[i]->dtype, false));
        TN_CHECK(fits, TN_INVALID, "cov(): expected %s to have %s dtype but got %s with %s dtype",
                 name, i ? "floating point" : "integral", name,
                 tni_dtype_text(weights[i] ? (tn_dtype)weights[i]->dtype : TN_DTYPE_NONE));
        TN_CHECK(!weights[i] || weights[i]->numel == count, TN_INVALID,
                 "cov(): expected %s to have the same numel as there are observations in the input "
                 "but got %lld != %lld",
                 name, (long long)(weights[i] ? weights[i]->numel : 0), (long long)count);
        TN_TRY(check_weights(name, weights[i]));
    }
    TN_TRY(check_sum(weights));
    if (!fweights && !aweights && count <= correction)
        TN_TRY(
            tni_warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than "
                     "the number of observations."));
    TN_TRY(tn_scope_enter(&scope));
    const int64_t along = 1;
    tn_tensor *x = self->ndim < 2 ? tnx_reshape(self, (const int64_t[]){1, -1}, 2) : self;
    tn_tensor *w = fweights && aweights ? tnx_mul(fweights, aweights)
                   : fweights           ? fweights
                                        : aweights;
    tn_tensor *sum = w ? tnx_sum(w, TN_DTYPE_NONE) : NULL, *mean, *norm = NULL;
    if (tn_dtype_is_integral((tn_dtype)self->dtype, true) && !aweights)
        x = tnx_to_dtype(x, tn_default_dtype(), false, false, TN_FORMAT_NONE);
    if (w) {
        mean = tnx_div(tnx_sum_dim(tnx_mul(x, w), &along, 1, true, TN_DTYPE_NONE), sum);
        if (correction == 0)
            norm = sum;
        else if (!aweights)
            norm = tnx_sub_scalar(sum, tn_int(correction), tn_int(1));
        else
            norm =
                tnx_sub(sum,
                        tnx_mul_scalar(tnx_div(tnx_sum(tnx_mul(w, aweights), TN_DTYPE_NONE), sum),
                                       tn_int(correction)),
                        tn_int(1));
        norm = tnx_clamp_min(norm, tn_int(0));
    } else {
        mean = tnx_mean_dim(x, &along, 1, true, TN_DTYPE_NONE);
    }
    x = tnx_sub(x, mean, tn_int(1));
    tn_tensor *c = tnx_mm(x, tnx_conj(tnx_t(w ? tnx_mul(x, w) : x)));
    int64_t free = 0;
    if (count > correction && __builtin_sub_overflow(count, correction, &free))
        free = INT64_MAX;
    c = norm ? tnx_div(c, norm) : tnx_div_scalar(c, tn_int(free));
    return tni_leave(scope, tnx_squeeze(c), out);
}

tn_status tni_composite_corrcoef(tn_tensor *self, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(self->ndim <= 2, TN_INVALID,
             "corrcoef(): expected input to have two or fewer dimensions but got an input with %d "
             "dimensions",
             self->ndim);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *c = tnx_cov(self, 1, NULL, NULL);
    if (!c || c->ndim == 0) /* one variable */
        return tni_leave(scope, tnx_div(c, c), out);
    tn_tensor *d = tnx_sqrt(tnx_diagonal(c, 0, 0, 1));
    if (tn_dtype_is_complex((tn_dtype)c->dtype))
        d = tnx_real(d);
    c = tnx_div(tnx_div(c, tnx_unsqueeze(d, 1)), d);
    if (!tn_dtype_is_complex((tn_dtype)self->dtype)) {
        const tn_scalar low = tn_int(-1), high = tn_int(1);
        c = tnx_clamp(c, &low, &high);
    }
    return tni_leave(scope, c, out);
}

/* ---- norms ---- */

tn_status tni_composite_renorm(tn_tensor *self, tn_scalar p, int64_t dim, tn_scalar maxnorm,
                               tn_tensor **out)
{
    int d;
    tn_scope *scope;
    int64_t others[TN_MAX_DIMS], n = 0;
    TN_CHECK(p.kind != TN_SCALAR_COMPLEX, TN_INVALID, "renorm: p must be real-valued");
    TN_CHECK(tn_scalar_to_double(p) > 0, TN_INVALID, "renorm: non-positive-norm not supported");
    TN_CHECK(maxnorm.kind != TN_SCALAR_COMPLEX, TN_INVALID, "renorm: maxnorm must be real-valued");
    double most = tn_scalar_to_double(maxnorm);
    TN_CHECK(most >= 0, TN_INVALID, "renorm: expected maxnorm to be >= 0 but got %g", most);
    TN_CHECK(self->ndim > 1, TN_INVALID,
             "renorm: input needs at least 2 dimensions, got %d dimensions", self->ndim);
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    for (int i = 0; i < self->ndim; i++)
        if (i != d)
            others[n++] = i;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *norm = tnx_linalg_vector_norm(self, p, others, n, true, TN_DTYPE_NONE);
    /* Norms that stay are not divided by: in float16 that gives infinities, which would meet their
     * gradient of 0. */
    tn_tensor *large = tnx_gt_scalar(norm, maxnorm);
    /* A NaN norm is not above anything, but 0 times its slope would be NaN: its place is taken by
     * that of other numbers. */
    if (tn_grad_enabled() && tn_tensor_requires_grad(self))
        norm = tnx_linalg_vector_norm(tnx_masked_fill(self, tnx_isnan(norm), tn_int(1)), p, others,
                                      n, true, TN_DTYPE_NONE);
    norm = tnx_masked_fill(norm, tnx_logical_not(large), tn_int(1));
    tn_tensor *shrink = tnx_reciprocal(tnx_add_scalar(norm, tn_float(1e-7), tn_int(1)));
    tn_tensor *factor =
        tnx_where_scalarother(large, tnx_mul_scalar(shrink, tn_float(most)), tn_int(1));
    return tni_leave(scope, tnx_clone(tnx_mul(self, factor), TN_FORMAT_CONTIGUOUS), out);
}

tn_status tni_composite_frobenius_norm(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                       bool keepdim, tn_tensor **out)
{
    TN_CHECK(dim_n <= 2, TN_INVALID,
             "Expected at most 2 dimensions, but got %lld dimensions instead.", (long long)dim_n);
    return tn_linalg_vector_norm(self, tn_int(2), dim_n ? dim : NULL, dim_n, keepdim, TN_DTYPE_NONE,
                                 out);
}

/* The norm over all dimensions but one. */
tn_status tni_composite_norm_except_dim(tn_tensor *v, int64_t pow, int64_t dim, tn_tensor **out)
{
    int64_t others[TN_MAX_DIMS], n = 0;
    int kept = -1; /* -1 stands for no dimension at all, not for the last */
    TN_CHECK(v->ndim || dim != 0, TN_INDEX,
             "Dimension specified as 0 but tensor has no dimensions");
    if (dim != -1)
        TN_TRY(tni_wrap_dim(dim, v->ndim, &kept));
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)v->dtype, true), TN_INVALID,
             "norm(): input dtype should be either floating point or complex. Got %s instead.",
             tni_dtype_text((tn_dtype)v->dtype));
    for (int i = 0; i < v->ndim; i++)
        if (i != kept)
            others[n++] = i;
    return tn_linalg_vector_norm(v, tn_int(pow), others, n, dim != -1, TN_DTYPE_NONE, out);
}

static tn_status check_directions(const tn_tensor *v)
{
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)v->dtype, true), TN_UNSUPPORTED,
             "\"weight_norm_kernel\" not implemented for '%s'", tni_dtype_text((tn_dtype)v->dtype));
    return TN_OK;
}

/* One length for each direction along the first or the last dimension. */
static tn_status check_lengths(const tn_tensor *v, const tn_tensor *g, int64_t dim)
{
    char text[TNI_SIZES_TEXT];
    bool same = g->ndim == v->ndim;
    for (int d = 0; same && d < v->ndim; d++)
        same = g->sizes[d] == (d == dim ? v->sizes[d] : 1);
    TN_CHECK(same, TN_INVALID,
             "weight_norm: expected g to have %lld elements along dimension %lld and one along "
             "each other of %d, but got sizes %s",
             (long long)(v->ndim ? v->sizes[dim] : 0), (long long)dim, v->ndim,
             tni_format_sizes(g->ndim, g->sizes, text, sizeof text));
    return TN_OK;
}

tn_status tni_composite__weight_norm(tn_tensor *v, tn_tensor *g, int64_t dim, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(check_directions(v));
    if (v->ndim && (dim == 0 || dim == v->ndim - 1))
        TN_TRY(check_lengths(v, g, dim));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *rows = tnx_contiguous(v, TN_FORMAT_CONTIGUOUS);
    return tni_leave(scope, tnx_mul(rows, tnx_div(g, tnx_norm_except_dim(rows, 2, dim))), out);
}

tn_status tni_composite__weight_norm_interface(tn_tensor *v, tn_tensor *g, int64_t dim,
                                               tn_tensor **out0, tn_tensor **out1)
{
    tn_scope *scope;
    TN_AUTO(tn_tensor) norms = NULL;
    TN_CHECK(dim == 0 || dim == v->ndim - 1, TN_INVALID,
             "_weight_norm_interface: dim must be the first or the last of %d, but got %lld",
             v->ndim, (long long)dim);
    TN_TRY(check_directions(v));
    TN_CHECK(v->dtype == g->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)v->dtype), tni_dtype_text((tn_dtype)g->dtype));
    if (v->ndim)
        TN_TRY(check_lengths(v, g, dim));
    tn_dtype dtype = (tn_dtype)v->dtype;
    bool half = dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *rows = tnx_contiguous(v, TN_FORMAT_CONTIGUOUS);
    tn_tensor *wide = half ? tnx_to_dtype(rows, TN_DTYPE_F32, false, false, TN_FORMAT_NONE) : rows;
    norms = tn_scope_keep(tnx_norm_except_dim(wide, 2, dim));
    tn_tensor *w = tnx_mul(wide, tnx_div(g, norms));
    if (half)
        w = tnx_to_dtype(w, dtype, false, false, TN_FORMAT_NONE);
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_leave(scope, w, &made));
    TN_TRY(tn_detach(norms, out1)); /* for the backward pass of the first */
    *out0 = TN_MOVE(made);
    return TN_OK;
}
