/* SPDX-License-Identifier: MIT */
/* autograd/formula_norm.c: derivatives of normalisation, most of them second ones, written by hand.
 * See formula.c.
 *
 * All three norms are one calculation on rows: x' = (x - mean) rstd, y = x' w + b, where mean and
 * rstd belong to the dimensions that a row spans. The backward operators give
 *   dx = P(g w), dw = sum(g x'), db = sum(g)        P(v) = rstd (v - mean(v) - x' mean(v x')).
 * Here G, V and B are the gradients of dx, dw and db. Mean and rstd are no constants: they follow
 * the input, and the gradient of the input says so. */
#include "autograd/meta.h"
#include "core/state.h"
#include "gen/gradients.h"

#include <string.h>
#include "tenon/ops.h"

/* Everything in the shape of the rows, or one that broadcasts to it; NULL: absent. */
typedef struct rows {
    tn_tensor *x, *g, *mean, *rstd, *w;
    tn_tensor *G, *V, *B;
    const int64_t *dims; /* what a row spans */
    int64_t n_dims;
    bool constant; /* mean and rstd are constants */
} rows;

static tn_tensor *row_mean(const rows *r, tn_tensor *t)
{
    return tnx_mean_dim(t, r->dims, r->n_dims, true, TN_DTYPE_NONE);
}

/* a + b, where either may be absent. */
static tn_tensor *sum_of(tn_tensor *a, tn_tensor *b)
{
    return a && b ? tnx_add(a, b, tn_int(1)) : a ? a : b;
}

static tn_tensor *by_weight(const rows *r, tn_tensor *t)
{
    return r->w ? tnx_mul(t, r->w) : t;
}

/* P(v) */
static tn_tensor *project(const rows *r, tn_tensor *v, tn_tensor *normal)
{
    if (r->constant)
        return tnx_mul(v, r->rstd);
    tn_tensor *centred = tnx_sub(v, row_mean(r, v), tn_int(1));
    tn_tensor *along = tnx_mul(normal, row_mean(r, tnx_mul(v, normal)));
    return tnx_mul(tnx_sub(centred, along, tn_int(1)), r->rstd);
}

/* The gradient of x. With A what reaches x' directly,
 *   A = g V - rstd (G mean(g w x') + g w mean(G x')):  P(A) - rstd x' mean(G dx),
 * the last term through rstd. */
static tn_tensor *for_input(const rows *r, tn_tensor *normal)
{
    tn_tensor *direct = r->V ? tnx_mul(r->g, r->V) : NULL;
    if (!r->G || r->constant)
        return direct ? project(r, direct, normal) : NULL;
    tn_tensor *gw = by_weight(r, r->g);
    tn_tensor *pull = tnx_add(tnx_mul(r->G, row_mean(r, tnx_mul(gw, normal))),
                              tnx_mul(gw, row_mean(r, tnx_mul(r->G, normal))), tn_int(1));
    direct = sum_of(direct, tnx_neg(tnx_mul(pull, r->rstd)));
    tn_tensor *scale = row_mean(r, tnx_mul(r->G, project(r, gw, normal)));
    return tnx_sub(project(r, direct, normal), tnx_mul(tnx_mul(normal, scale), r->rstd), tn_int(1));
}

static bool same_sizes(const tn_tensor *a, const tn_tensor *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof a->sizes[0]) == 0;
}

/* @p t in the shape of what it belongs to. */
static tn_tensor *shaped(tn_tensor *t, const tn_tensor *as)
{
    return t && !same_sizes(t, as) ? tnx_reshape(t, as->sizes, as->ndim) : t;
}

/* Where this is recorded, to be differentiated once more, mean and rstd are computed again, so that
 * the next derivative goes through them. What the variance was raised by is taken from rstd. */
static void follow_input(rows *r)
{
    if (r->constant || !tni_recording || tni_scope_failed() || !tni_requires_grad(r->x))
        return;
    tn_tensor *old = tnx_detach(r->rstd);
    r->mean = tnx_mean_dim(r->x, r->dims, r->n_dims, true, (tn_dtype)r->mean->dtype);
    tn_tensor *apart = tnx_sub(r->x, r->mean, tn_int(1));
    tn_tensor *variance = row_mean(r, tnx_mul(apart, apart));
    tn_tensor *raised = tnx_sub(tnx_reciprocal(tnx_mul(old, old)), tnx_detach(variance), tn_int(1));
    r->rstd = tnx_rsqrt(tnx_add(variance, raised, tn_int(1)));
}

/* made: the gradients of grad_out, input and weight, owned. */
static tn_status second(rows *r, tn_tensor *grad_out, tn_tensor *input, tn_tensor *weight,
                        const bool *needed, tn_tensor **made)
{
    tn_tensor *results[3] = {NULL, NULL, NULL};
    follow_input(r);
    tn_tensor *normal = tnx_mul(tnx_sub(r->x, r->mean, tn_int(1)), r->rstd);
    tn_tensor *projected = r->G && (needed[0] || needed[2]) ? project(r, r->G, normal) : NULL;
    if (needed[0]) {
        tn_tensor *sum = projected ? by_weight(r, projected) : NULL;
        sum = sum_of(sum, r->V ? tnx_mul(normal, r->V) : NULL);
        sum = sum_of(sum, r->B ? tnx_expand(r->B, r->x->sizes, r->x->ndim, false) : NULL);
        results[0] = shaped(sum, grad_out);
    }
    if (needed[1])
        results[1] = shaped(for_input(r, normal), input);
    if (needed[2] && projected && r->w) {
        tn_tensor *spread = tnx_mul(r->g, projected);
        results[2] = shaped(tni_grad_sum_to_size(spread, r->w->sizes, r->w->ndim), weight);
    }
    TN_TRY(tni_scope_settle());
    for (int i = 0; i < 3; i++)
        made[i] = tn_tensor_ref(results[i]);
    return TN_OK;
}

/* ---- the three of them ---- */

tn_status tni_grad_layer_norm_second(tn_tensor *const *grads, int64_t n, tn_tensor *grad_out,
                                     tn_tensor *input, const int64_t *normalized_shape,
                                     int64_t normalized_n, tn_tensor *mean, tn_tensor *rstd,
                                     tn_tensor *weight, const bool *needed, int64_t needed_n,
                                     tn_tensor **made)
{
    (void)n, (void)normalized_shape, (void)needed_n;
    int64_t dims[TN_MAX_DIMS];
    for (int64_t i = 0; i < normalized_n; i++)
        dims[i] = i - normalized_n;
    rows r = {.x = input,
              .g = grad_out,
              .mean = mean,
              .rstd = rstd,
              .w = weight,
              .G = grads[0],
              .V = grads[1],
              .B = grads[2],
              .dims = dims,
              .n_dims = normalized_n};
    return second(&r, grad_out, input, weight, needed, made);
}

/* [C] as [1, C, 1, …] */
static tn_tensor *channels(tn_tensor *t, int ndim)
{
    if (!t)
        return NULL;
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        sizes[d] = d == 1 ? t->numel : 1;
    return tnx_view(t, sizes, ndim);
}

tn_status tni_grad_batch_norm_second(tn_tensor *const *grads, int64_t n, tn_tensor *grad_out,
                                     tn_tensor *input, tn_tensor *weight, tn_tensor *running_mean,
                                     tn_tensor *running_var, tn_tensor *save_mean,
                                     tn_tensor *save_invstd, bool train, double eps,
                                     const bool *needed, int64_t needed_n, tn_tensor **made)
{
    (void)n, (void)needed_n;
    int64_t dims[TN_MAX_DIMS], count = 0;
    for (int d = 0; d < input->ndim; d++)
        if (d != 1)
            dims[count++] = d;
    tn_tensor *mean = save_mean, *rstd = save_invstd;
    if (!train) {
        mean = running_mean;
        rstd = tnx_rsqrt(tnx_add_scalar(running_var, tn_float(eps), tn_int(1)));
    }
    int ndim = input->ndim;
    rows r = {.x = input,
              .g = grad_out,
              .mean = channels(mean, ndim),
              .rstd = channels(rstd, ndim),
              .w = channels(weight, ndim),
              .G = grads[0],
              .V = channels(grads[1], ndim),
              .B = channels(grads[2], ndim),
              .dims = dims,
              .n_dims = count,
              .constant = !train};
    return second(&r, grad_out, input, weight, needed, made);
}

tn_status tni_grad_group_norm_second(tn_tensor *const *grads, int64_t n, tn_tensor *grad_out,
                                     tn_tensor *input, tn_tensor *mean, tn_tensor *rstd,
                                     tn_tensor *weight, int64_t N, int64_t C, int64_t HxW,
                                     int64_t group, const bool *needed, int64_t needed_n,
                                     tn_tensor **made)
{
    (void)n, (void)needed_n;
    static const int64_t dims[] = {2, 3};
    const int64_t whole[] = {N, group, C / group, HxW}, one[] = {1, group, C / group, 1};
    const int64_t each[] = {N, group, 1, 1};
    rows r = {.x = tnx_reshape(input, whole, 4),
              .g = tnx_reshape(grad_out, whole, 4),
              .mean = tnx_reshape(mean, each, 4),
              .rstd = tnx_reshape(rstd, each, 4),
              .w = weight ? tnx_reshape(weight, one, 4) : NULL,
              .G = grads[0] ? tnx_reshape(grads[0], whole, 4) : NULL,
              .V = grads[1] ? tnx_reshape(grads[1], one, 4) : NULL,
              .B = grads[2] ? tnx_reshape(grads[2], one, 4) : NULL,
              .dims = dims,
              .n_dims = 2};
    return second(&r, grad_out, input, weight, needed, made);
}

/* What reaches the input through the means and the rstds, which are results too. Both are computed
 * anew, so that this can be differentiated again. */
static tn_tensor *through_moments(tn_tensor *of_mean, tn_tensor *of_rstd, tn_tensor *input,
                                  int64_t N, int64_t C, int64_t HxW, int64_t group, double eps)
{
    const int64_t whole[] = {N, group, C / group * HxW}, each[] = {N, group, 1}, last = 2;
    int64_t count = whole[2];
    const tn_tensor *like = of_mean ? of_mean : of_rstd;
    tn_tensor *x = tnx_to_dtype(tnx_reshape(input, whole, 3), (tn_dtype)like->dtype, false, false,
                                TN_FORMAT_NONE);
    tn_tensor *sum = of_mean ? tnx_expand(tnx_reshape(of_mean, each, 3), whole, 3, false) : NULL;
    if (of_rstd) {
        tn_tensor *d = tnx_sub(x, tnx_mean_dim(x, &last, 1, true, TN_DTYPE_NONE), tn_int(1));
        tn_tensor *variance = tnx_mean_dim(tnx_mul(d, d), &last, 1, true, TN_DTYPE_NONE);
        tn_tensor *slope = tnx_pow_tensor_scalar(tnx_add_scalar(variance, tn_float(eps), tn_int(1)),
                                                 tn_float(-1.5));
        slope = tnx_neg(tnx_mul(slope, tnx_reshape(of_rstd, each, 3)));
        sum = sum_of(sum, tnx_mul(d, slope));
    }
    sum = tnx_div_scalar(sum, tn_int(count > 0 ? count : 1));
    return tnx_to_dtype(tnx_reshape(sum, input->sizes, input->ndim), (tn_dtype)input->dtype, false,
                        false, TN_FORMAT_NONE);
}

tn_status tni_grad_group_norm_gradient(tn_tensor *const *grads, int64_t n, tn_tensor *input,
                                       tn_tensor *mean, tn_tensor *rstd, tn_tensor *weight,
                                       int64_t N, int64_t C, int64_t HxW, int64_t group, double eps,
                                       const bool *needed, int64_t needed_n, tn_tensor **made)
{
    TN_AUTO(tn_tensor) for_x = NULL;
    TN_AUTO(tn_tensor) for_weight = NULL;
    TN_AUTO(tn_tensor) for_bias = NULL;
    (void)n;
    if (grads[0]) {
        /* Its second derivative knows that they follow the input. */
        mean = tnx_detach(mean);
        rstd = tnx_detach(rstd);
        TN_TRY(tni_scope_settle());
        TN_TRY(tn_native_group_norm_backward(grads[0], input, mean, rstd, weight, N, C, HxW, group,
                                             needed, needed_n, &for_x, &for_weight, &for_bias));
    }
    if (needed[0] && (grads[1] || grads[2])) {
        tn_tensor *more = through_moments(grads[1], grads[2], input, N, C, HxW, group, eps);
        more = sum_of(for_x, more);
        TN_TRY(tni_scope_settle());
        made[0] = tn_tensor_ref(more);
    } else {
        made[0] = TN_MOVE(for_x);
    }
    made[1] = TN_MOVE(for_weight);
    made[2] = TN_MOVE(for_bias);
    return TN_OK;
}
