/* SPDX-License-Identifier: MIT */
/* composite/attention.c: scaled dot product attention: by the kernel that works in blocks where it
 * can, else by matrix products. Meta takes the CPU's way, so that both give the same strides. */
#include <math.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* ---- what every call is checked for ---- */

static bool same_type(const tn_tensor *a, const tn_tensor *b)
{
    return a->device.type == b->device.type;
}

static tn_status check(const tn_tensor *q, const tn_tensor *k, const tn_tensor *v,
                       const tn_tensor *mask)
{
    TN_CHECK(q->dtype == k->dtype && q->dtype == v->dtype, TN_INVALID,
             "Expected query, key, and value to have the same dtype, but got query.dtype: %s "
             "key.dtype: %s and value.dtype: %s instead.",
             tni_dtype_cpp((tn_dtype)q->dtype), tni_dtype_cpp((tn_dtype)k->dtype),
             tni_dtype_cpp((tn_dtype)v->dtype));
    char a[32], b[32], c[32];
    TN_CHECK(same_type(q, k) && same_type(q, v), TN_INVALID,
             "Expected query, key, and value to have the same device type, but got query.device: "
             "%s key.device: %s and value.device: %s instead.",
             tn_device_format(q->device, a, sizeof a), tn_device_format(k->device, b, sizeof b),
             tn_device_format(v->device, c, sizeof c));
    TN_CHECK(q->ndim >= 2 && k->ndim >= 2 && v->ndim >= 2, TN_INVALID,
             "Expected query, key, and value to all be  at least 2 dimensional, but got "
             "query.dim: %d key.dim: %d and value.dim: %d instead.",
             q->ndim, k->ndim, v->ndim);
    TN_CHECK(!mask || mask->dtype == TN_DTYPE_BOOL || mask->dtype == q->dtype ||
                 mask->dtype == TN_DTYPE_F32,
             TN_INVALID,
             "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
             "attn_mask.dtype: %s and  query.dtype: %s instead.",
             tni_dtype_cpp((tn_dtype)mask->dtype), tni_dtype_cpp((tn_dtype)q->dtype));
    return TN_OK;
}

/* ---- which way ---- */

static bool sizes_suit(const tn_tensor *q, const tn_tensor *k, const tn_tensor *v, bool gqa)
{
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4)
        return false;
    const int64_t *a = q->sizes, *b = k->sizes, *c = v->sizes;
    bool heads = a[1] == b[1] || (gqa && b[1] > 0 && a[1] % b[1] == 0);
    return a[0] == b[0] && a[0] == c[0] && heads && b[1] == c[1] && a[3] == b[3] && a[3] == c[3] &&
           b[2] == c[2] && a[2] > 0 && b[2] > 0;
}

static bool mask_suits(const tn_tensor *q, const tn_tensor *k, const tn_tensor *mask)
{
    if (!mask)
        return true;
    if ((mask->ndim != 2 && mask->ndim != 4) || tn_tensor_requires_grad(mask))
        return false;
    const int64_t wanted[4] = {q->sizes[0], q->sizes[1], q->sizes[2], k->sizes[2]};
    for (int i = 0; i < mask->ndim; i++) {
        int64_t size = mask->sizes[i];
        if (size != 1 && size != wanted[i + 4 - mask->ndim])
            return false;
    }
    return true;
}

/* The reference's conditions for the kernel that works in blocks. */
static bool goes_in_blocks(const tn_tensor *q, const tn_tensor *k, const tn_tensor *v,
                           const tn_tensor *mask, double dropout_p, bool gqa)
{
    if (q->device.type != TN_DEVICE_CPU && q->device.type != TN_DEVICE_META)
        return false;
    if (!tn_dtype_is_floating((tn_dtype)q->dtype) || dropout_p > 0 || !sizes_suit(q, k, v, gqa))
        return false;
    return mask_suits(q, k, mask) && q->strides[3] == 1 && k->strides[3] == 1 && v->strides[3] == 1;
}

/* ---- masks ---- */

/* 0 where @p mask is true, -inf elsewhere. */
static tn_status added_form(tn_tensor *mask, tn_tensor *query, tn_tensor **out)
{
    TN_AUTO(tn_tensor) seen = NULL;
    TN_AUTO(tn_tensor) hidden = NULL;
    TN_TRY(tn_new_full(query, NULL, 0, tn_float(-INFINITY), NULL, &hidden));
    TN_TRY(tn_new_full(query, NULL, 0, tn_float(0), NULL, &seen));
    return tn_where(mask, seen, hidden, out);
}

/* Query i sees keys 0 to i. */
static tn_status causal_mask(tn_tensor *q, const tn_tensor *k, tn_tensor **out)
{
    TN_AUTO(tn_tensor) ones = NULL;
    TN_AUTO(tn_tensor) lower = NULL;
    const int64_t sizes[2] = {q->sizes[q->ndim - 2], k->sizes[k->ndim - 2]};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_BOOL, TN_NO_DEVICE);
    TN_TRY(tn_new_ones(q, sizes, 2, &opts, &ones));
    TN_TRY(tn_tril(ones, 0, &lower));
    return added_form(lower, q, out);
}

/* ---- by matrix products ---- */

static tn_status heads_of(const tn_tensor *t, int64_t *out)
{
    int d;
    TN_TRY(tni_wrap_dim(-3, t->ndim, &d));
    *out = t->sizes[d];
    return TN_OK;
}

/* Repeat the heads of key and value so that each query has its own; new references. */
static tn_status repeat_heads(const tn_tensor *query, tn_tensor *key, tn_tensor *value, bool gqa,
                              tn_tensor **out_key, tn_tensor **out_value)
{
    int64_t q = 1, k = 1, v = 1;
    if (gqa) {
        TN_TRY(heads_of(query, &q));
        TN_TRY(heads_of(key, &k));
        TN_TRY(heads_of(value, &v));
    }
    if (q == k && k == v) {
        *out_key = tn_tensor_ref(key);
        *out_value = tn_tensor_ref(value);
        return TN_OK;
    }
    TN_CHECK(k > 0 && v > 0 && q % k == 0 && q % v == 0, TN_INVALID,
             "Number of heads in key and value must divide the number of heads in ");
    TN_AUTO(tn_tensor) wide = NULL;
    tn_opt_int dim = tn_some_int(-3);
    TN_TRY(tn_repeat_interleave_self_int(key, q / k, dim, tn_no_int(), &wide));
    TN_TRY(tn_repeat_interleave_self_int(value, q / v, dim, tn_no_int(), out_value));
    *out_key = TN_MOVE(wide);
    return TN_OK;
}

/* @p t in float32 where it is of a smaller type; a new reference. */
static tn_status widened(tn_tensor *t, tn_tensor **out)
{
    if (t->dtype != TN_DTYPE_F16 && t->dtype != TN_DTYPE_BF16) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    return tn_to_dtype(t, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, out);
}

/* The weights: softmax of the scaled products, with what the mask adds. */
static tn_status weights(tn_tensor *query, tn_tensor *key, tn_tensor *mask, tn_opt_float scale,
                         tn_tensor **out)
{
    TN_AUTO(tn_tensor) q = NULL;
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) k = NULL;
    TN_AUTO(tn_tensor) scores = NULL;
    double by = scale.has ? scale.value : 1 / sqrt((double)query->sizes[query->ndim - 1]);
    double root = sqrt(fabs(by)); /* on both sides, so that halves do not overflow */
    TN_TRY(tn_mul_scalar(query, tn_float(by < 0 ? -root : root), &q));
    TN_TRY(tn_transpose(key, -2, -1, &turned));
    TN_TRY(tn_mul_scalar(turned, tn_float(root), &k));
    TN_TRY(tn_matmul(q, k, &scores));
    if (mask)
        TN_TRY(tn_add_(scores, mask, tn_int(1)));
    return tn__safe_softmax(scores, -1, TN_DTYPE_NONE, out);
}

/* Weights after dropout, and what they multiply. A given mask of dropout says which stay. */
static tn_status drop(tn_tensor **attn, tn_tensor **value, double p, tn_tensor *mask)
{
    TN_AUTO(tn_tensor) dropped = NULL;
    if (!(p > 0))
        return TN_OK;
    if (mask) {
        TN_AUTO(tn_tensor) gone = NULL;
        TN_AUTO(tn_tensor) larger = NULL;
        TN_TRY(tn_logical_not(mask, &gone));
        TN_TRY(tn_masked_fill(*attn, gone, tn_float(0), &dropped));
        TN_TRY(tn_mul_scalar(*value, tn_float(1 / (1 - p)), &larger));
        tn_tensor_unref(*value);
        *value = TN_MOVE(larger);
    } else {
        TN_TRY(tn_dropout(*attn, p, true, &dropped));
    }
    tn_tensor_unref(*attn);
    *attn = TN_MOVE(dropped);
    return TN_OK;
}

tn_status tni_composite__scaled_dot_product_attention_math(tn_tensor *query, tn_tensor *key,
                                                           tn_tensor *value, tn_tensor *attn_mask,
                                                           double dropout_p, bool is_causal,
                                                           tn_tensor *dropout_mask,
                                                           tn_opt_float scale, bool enable_gqa,
                                                           tn_tensor **out0, tn_tensor **out1)
{
    TN_CHECK(query->ndim >= 2 && key->ndim >= 2 && value->ndim >= 2, TN_INVALID,
             "Expected query, key, and value to all be  at least 2 dimensional, but got "
             "query.dim: %d key.dim: %d and value.dim: %d instead.",
             query->ndim, key->ndim, value->ndim);
    TN_CHECK(!is_causal || !attn_mask, TN_INVALID,
             "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
             "is_causal=True");
    TN_AUTO(tn_tensor) q = NULL;
    TN_AUTO(tn_tensor) own_k = NULL;
    TN_AUTO(tn_tensor) own_v = NULL;
    TN_AUTO(tn_tensor) k = NULL;
    TN_AUTO(tn_tensor) v = NULL;
    TN_AUTO(tn_tensor) causal = NULL;
    TN_AUTO(tn_tensor) attn = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) rounded = NULL;
    tn_dtype dtype = (tn_dtype)query->dtype;
    TN_TRY(widened(query, &q));
    TN_TRY(widened(key, &own_k));
    TN_TRY(widened(value, &own_v));
    if (is_causal) {
        TN_TRY(causal_mask(q, own_k, &causal));
        attn_mask = causal;
    }
    TN_TRY(repeat_heads(q, own_k, own_v, enable_gqa, &k, &v));
    TN_TRY(weights(q, k, attn_mask, scale, &attn));
    TN_TRY(drop(&attn, &v, dropout_p, dropout_mask));
    TN_TRY(tn_matmul(attn, v, &sum));
    TN_TRY(tn_to_dtype(attn, dtype, false, false, TN_FORMAT_NONE, &rounded));
    TN_TRY(tn_to_dtype(sum, dtype, false, false, TN_FORMAT_NONE, out0));
    *out1 = TN_MOVE(rounded);
    return TN_OK;
}

/* ---- the entry ---- */

tn_status tni_composite_scaled_dot_product_attention(tn_tensor *query, tn_tensor *key,
                                                     tn_tensor *value, tn_tensor *attn_mask,
                                                     double dropout_p, bool is_causal,
                                                     tn_opt_float scale, bool enable_gqa,
                                                     tn_tensor **out)
{
    TN_TRY(check(query, key, value, attn_mask));
    TN_AUTO(tn_tensor) added = NULL;
    TN_AUTO(tn_tensor) rest = NULL;
    bool in_blocks = goes_in_blocks(query, key, value, attn_mask, dropout_p, enable_gqa);
    if (attn_mask && attn_mask->dtype == TN_DTYPE_BOOL) {
        TN_TRY(added_form(attn_mask, query, &added));
        attn_mask = added;
    }
    if (in_blocks)
        return tn__scaled_dot_product_flash_attention_for_cpu(
            query, key, value, dropout_p, is_causal, attn_mask, scale, out, &rest);
    return tn__scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p, is_causal,
                                                 NULL, scale, enable_gqa, out, &rest);
}
