/* SPDX-License-Identifier: MIT */
/* autograd/formula_distance.c: gradients of the gradients of distances between rows, written by
 * hand. See formula.c.
 *
 * The slope of the distance D = |d|_p along a coordinate is f = sign(d) |d|^(p-1) / D^(p-1). The
 * backward operators give x1 the sum of g f, over all differences d of its rows and others, which
 * they do not write down. For the gradient v of that, the gradient of
 *   g is v f,  d is v g (p-1) |d|^(p-2) / D^(p-1),  D is -v g (p-1) f / D,
 * summed over coordinates for g and D. Where d or D is 0, so are all of them. They are made of
 * operators on all differences, so that they differentiate again. */
#include <math.h>
#include "gen/gradients.h"

#include "tenon/ops.h"

/* Everything in the shape of the differences, or one that broadcasts to it. */
typedef struct pairs {
    tn_tensor *d, *distance, *g, *v;
    double p;
} pairs;

typedef struct slopes {
    tn_tensor *first;  /* f */
    tn_tensor *second; /* (p-1) |d|^(p-2) / D^(p-1); NULL: 0 */
    tn_tensor *apart;  /* D, and 1 where that is 0 */
} slopes;

/* 0 but where @p condition holds. */
static tn_tensor *only(tn_tensor *condition, tn_tensor *t)
{
    return tnx_where_scalarother(condition, t, tn_int(0));
}

static tn_tensor *power(tn_tensor *t, double exponent)
{
    return exponent == 1 ? t : tnx_pow_tensor_scalar(t, tn_float(exponent));
}

static slopes slopes_of(const pairs *a)
{
    double p = a->p;
    slopes s = {NULL, NULL, NULL};
    if (p == 0)
        s.first = tnx_zeros_like(a->d, NULL, TN_FORMAT_NONE);
    else if (p == 1)
        s.first = tnx_sign(a->d);
    else if (isinf(p))
        s.first = only(tnx_eq(tnx_abs(a->d), a->distance), tnx_sign(a->d));
    if (s.first)
        return s;
    tn_tensor *apart = tnx_gt_scalar(a->distance, tn_int(0)), *size = tnx_abs(a->d);
    s.apart = tnx_where_scalarother(apart, a->distance, tn_int(1));
    if (p == 2) {
        s.first = only(apart, tnx_div(a->d, s.apart));
        s.second = only(apart, tnx_reciprocal(s.apart));
        return s;
    }
    apart = tnx_logical_and(apart, tnx_gt_scalar(size, tn_int(0)));
    size = tnx_where_scalarother(apart, size, tn_int(1));
    tn_tensor *ratio = tnx_div(size, s.apart);
    s.first = only(apart, tnx_mul(tnx_sign(a->d), power(ratio, p - 1)));
    tn_tensor *bend = tnx_div(power(ratio, p - 2), s.apart);
    s.second = only(apart, tnx_mul_scalar(bend, tn_float(p - 1)));
    return s;
}

static tn_tensor *over_coordinates(tn_tensor *t)
{
    const int64_t last = -1;
    return tnx_sum_dim(t, &last, 1, false, TN_DTYPE_NONE);
}

/* The gradients of g, d and D; those that are 0 are NULL. */
static void differentiate(const pairs *a, tn_tensor **for_g, tn_tensor **for_d, tn_tensor **for_D)
{
    slopes s = slopes_of(a);
    tn_tensor *along = tnx_mul(a->v, s.first);
    *for_g = over_coordinates(along);
    *for_d = *for_D = NULL;
    if (!s.second)
        return;
    *for_d = tnx_mul(tnx_mul(a->v, a->g), s.second);
    tn_tensor *pull = over_coordinates(tnx_div(tnx_mul(along, a->g), s.apart));
    *for_D = tnx_mul_scalar(pull, tn_float(1 - a->p));
}

static tn_status settle(tn_tensor *const *results, tn_tensor *const *likes, int n, tn_tensor **made)
{
    tn_tensor *whole[4];
    for (int i = 0; i < n; i++)
        whole[i] = results[i] ? results[i] : tnx_zeros_like(likes[i], NULL, TN_FORMAT_NONE);
    TN_TRY(tni_scope_settle());
    for (int i = 0; i < n; i++)
        made[i] = tn_tensor_ref(whole[i]);
    return TN_OK;
}

/* Of grad, x1, x2 and the distances; leading dimensions that were broadcast are added up. */
tn_status tni_grad_cdist_second(tn_tensor *v, tn_tensor *grad, tn_tensor *x1, tn_tensor *x2,
                                double p, tn_tensor *distance, const bool *needed, int64_t needed_n,
                                tn_tensor **made)
{
    (void)needed, (void)needed_n;
    const int64_t others = -2, rows = -3;
    tn_tensor *likes[] = {grad, x1, x2, distance}, *for_d, *results[4] = {NULL};
    pairs a = {.d = tnx_sub(tnx_unsqueeze(x1, -2), tnx_unsqueeze(x2, -3), tn_int(1)),
               .distance = tnx_unsqueeze(distance, -1),
               .g = tnx_unsqueeze(grad, -1),
               .v = tnx_unsqueeze(v, -2),
               .p = p};
    differentiate(&a, &results[0], &for_d, &results[3]);
    if (for_d) {
        results[1] = tnx_sum_dim(for_d, &others, 1, false, TN_DTYPE_NONE);
        results[2] = tnx_neg(tnx_sum_dim(for_d, &rows, 1, false, TN_DTYPE_NONE));
    }
    return settle(results, likes, 4, made);
}

/* Of grad, the rows and the distances of all pairs of them. */
tn_status tni_grad_pdist_second(tn_tensor *v, tn_tensor *grad, tn_tensor *self, double p,
                                tn_tensor *distance, const bool *needed, int64_t needed_n,
                                tn_tensor **made)
{
    (void)needed, (void)needed_n;
    tn_tensor *likes[] = {grad, self, distance}, *for_d, *results[3] = {NULL};
    if (self->numel == 0)
        return settle(results, likes, 3, made);
    int64_t n = self->sizes[0];
    const tn_tensor_opts ints = tn_opts(TN_DTYPE_I64, self->device);
    tn_tensor *both = tnx_triu_indices(n, n, 1, &ints);
    tn_tensor *one = tnx_select(both, 0, 0), *other = tnx_select(both, 0, 1);
    pairs a = {
        .d = tnx_sub(tnx_index_select(self, 0, one), tnx_index_select(self, 0, other), tn_int(1)),
        .distance = tnx_unsqueeze(distance, -1),
        .g = tnx_unsqueeze(grad, -1),
        .v = tnx_sub(tnx_index_select(v, 0, one), tnx_index_select(v, 0, other), tn_int(1)),
        .p = p};
    differentiate(&a, &results[0], &for_d, &results[2]);
    if (for_d) {
        results[1] = tnx_zeros_like(self, NULL, TN_FORMAT_NONE);
        results[1] = tnx_index_add(results[1], 0, one, for_d, tn_int(1));
        results[1] = tnx_index_add(results[1], 0, other, for_d, tn_int(-1));
    }
    return settle(results, likes, 3, made);
}
