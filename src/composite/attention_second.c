/* SPDX-License-Identifier: MIT */
/* composite/attention_second.c: the gradient of attention's gradient, by matrix products, so that
 * it differentiates again.
 *
 * With S = scale Q K^T + mask, P = softmax(S), dP = G V^T and D = sum(P * dP) along rows, the
 * gradient of attention is dQ = scale dS K, dK = scale dS^T Q and dV = P^T G with dS = P (dP - D).
 * Given the gradients a, b and c of these three, that of dS is X = scale (a K^T + Q b^T). */
#include <math.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* ---- small steps, in a scope; NULL stands for zeros ---- */

static tn_tensor *turned(tn_tensor *t)
{
    return tnx_transpose(t, -2, -1);
}

static tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return !a ? b : !b ? a : tnx_add(a, b, tn_int(1));
}

static tn_tensor *times(tn_tensor *a, tn_tensor *b, double scale)
{
    tn_tensor *product = tnx_matmul(a, b);
    return scale == 1 ? product : tnx_mul_scalar(product, tn_float(scale));
}

/* The sum of a * b along rows. */
static tn_tensor *row_dots(tn_tensor *a, tn_tensor *b)
{
    const int64_t last = -1;
    return tnx_sum_dim(tnx_mul(a, b), &last, 1, true, TN_DTYPE_NONE);
}

static tn_tensor *through_softmax(tn_tensor *grad, tn_tensor *weights, tn_dtype dtype)
{
    return tnx__softmax_backward_data(grad, weights, -1, dtype);
}

/* ---- operands ---- */

typedef struct operands {
    tn_dtype dtype; /* that is computed in */
    int64_t shared; /* heads of query that share one of key and value */
    double scale;
    tn_tensor *a, *b, *c; /* NULL: zeros */
    tn_tensor *g, *q, *k, *v;
    tn_tensor *weights;
} operands;

static tn_tensor *widened(const operands *o, tn_tensor *t)
{
    return t && t->dtype != (int)o->dtype ? tnx_to_dtype(t, o->dtype, false, false, TN_FORMAT_NONE)
                                          : t;
}

/* One head for each head of query. */
static tn_tensor *repeated(const operands *o, tn_tensor *t)
{
    t = widened(o, t);
    return t && o->shared > 1
               ? tnx_repeat_interleave_self_int(t, o->shared, tn_some_int(1), tn_no_int())
               : t;
}

static tn_tensor *weights_of(const operands *o, const tn_tensor *query, const tn_tensor *key,
                             bool causal, tn_tensor *mask)
{
    tn_tensor *scores = times(o->q, turned(o->k), o->scale);
    if (mask)
        scores = tnx_add(scores, mask, tn_int(1));
    if (causal) {
        const int64_t sizes[] = {query->sizes[2], key->sizes[2]};
        tn_tensor_opts opts = tn_opts(TN_DTYPE_BOOL, TN_NO_DEVICE);
        tn_tensor *hidden = tnx_logical_not(tnx_tril(tnx_new_ones(o->q, sizes, 2, &opts), 0));
        scores = tnx_masked_fill(scores, hidden, tn_float(-INFINITY));
    }
    return tnx__safe_softmax(scores, -1, TN_DTYPE_NONE);
}

/* ---- results ---- */

/* In the sizes and dtype of @p like: heads that share one add up. */
static tn_tensor *settled(const operands *o, tn_tensor *t, tn_tensor *like, bool is_shared)
{
    const int64_t *s = like->sizes, apart[] = {s[0], s[1], o->shared, s[2], s[3]}, dim = 2;
    if (!t)
        return tnx_zeros_like(like, NULL, TN_FORMAT_NONE);
    if (is_shared && o->shared > 1)
        t = tnx_sum_dim(tnx_reshape(t, apart, 5), &dim, 1, false, TN_DTYPE_NONE);
    return like->dtype != (int)o->dtype
               ? tnx_to_dtype(t, (tn_dtype)like->dtype, false, false, TN_FORMAT_NONE)
               : t;
}

typedef struct results {
    tn_tensor *g, *q, *k, *v;
} results;

static results compute(const operands *o)
{
    results r = {0};
    tn_tensor *p = o->weights, *dp = tnx_matmul(o->g, turned(o->v)), *p_grad = NULL, *x = NULL;
    tn_tensor *ds = through_softmax(dp, p, o->dtype);
    if (o->c) {
        p_grad = tnx_matmul(o->g, turned(o->c));
        r.g = tnx_matmul(p, o->c);
    }
    if (o->a)
        x = times(o->a, turned(o->k), o->scale);
    if (o->b)
        x = plus(x, times(o->q, turned(o->b), o->scale));
    if (x) {
        tn_tensor *dp_grad = through_softmax(x, p, o->dtype);
        tn_tensor *centred = tnx_sub(dp, row_dots(p, dp), tn_int(1));
        p_grad = plus(p_grad, tnx_sub(tnx_mul(x, centred), tnx_mul(dp, row_dots(p, x)), tn_int(1)));
        r.g = plus(r.g, tnx_matmul(dp_grad, o->v));
        r.v = tnx_matmul(turned(dp_grad), o->g);
    }
    if (o->a)
        r.k = times(turned(ds), o->a, o->scale);
    if (o->b)
        r.q = times(ds, o->b, o->scale);
    if (p_grad) {
        tn_tensor *s_grad = through_softmax(p_grad, p, o->dtype);
        r.q = plus(r.q, times(s_grad, o->k, o->scale));
        r.k = plus(r.k, times(turned(s_grad), o->q, o->scale));
    }
    return r;
}

tn_status tni_composite__attention_second(tn_tensor *grad_query, tn_tensor *grad_key,
                                          tn_tensor *grad_value, tn_tensor *grad_out,
                                          tn_tensor *query, tn_tensor *key, tn_tensor *value,
                                          bool is_causal, tn_tensor *attn_mask, tn_opt_float scale,
                                          tn_tensor **out0, tn_tensor **out1, tn_tensor **out2,
                                          tn_tensor **out3)
{
    TN_CHECK(query->ndim == 4 && key->ndim == 4 && value->ndim == 4 && key->sizes[1] > 0,
             TN_INVALID,
             "_attention_second: Expected query, key and value to have 4 dimensions, and heads");
    tn_scope *scope;
    operands o = {.dtype = query->dtype == TN_DTYPE_F64 ? TN_DTYPE_F64 : TN_DTYPE_F32,
                  .shared = query->sizes[1] / key->sizes[1],
                  .scale = scale.has ? scale.value : 1 / sqrt((double)query->sizes[3])};
    TN_TRY(tn_scope_enter(&scope));
    o.a = widened(&o, grad_query);
    o.b = repeated(&o, grad_key);
    o.c = repeated(&o, grad_value);
    o.g = widened(&o, grad_out);
    o.q = widened(&o, query);
    o.k = repeated(&o, key);
    o.v = repeated(&o, value);
    o.weights = weights_of(&o, query, key, is_causal, attn_mask);
    results r = compute(&o);
    tn_tensor *made[] = {tn_scope_keep(settled(&o, r.g, grad_out, false)),
                         tn_scope_keep(settled(&o, r.q, query, false)),
                         tn_scope_keep(settled(&o, r.k, key, true)),
                         tn_scope_keep(settled(&o, r.v, value, true))};
    tn_status status = tn_scope_leave(scope);
    if (status != TN_OK) {
        for (int i = 0; i < 4; i++)
            tn_tensor_unref(made[i]);
        return status;
    }
    *out0 = made[0];
    *out1 = made[1];
    *out2 = made[2];
    *out3 = made[3];
    return TN_OK;
}
