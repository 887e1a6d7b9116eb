/* SPDX-License-Identifier: MIT */
/* shape/attention.c: what attention in blocks gives, and what it refuses. Checks that the reference
 * makes have its texts; those it leaves out, and then reads beyond its operands, have ours. */
#include "gen/shapes.h"
#include "shape/geometry.h"

#define NAME "scaled_dot_product_attention_flash_attention: "

static tn_status check_dtypes(const tn_tensor *query, const tn_tensor *const *others, int n)
{
    for (int i = 0; i < n; i++)
        TN_CHECK(others[i]->dtype == query->dtype, TN_INVALID,
                 "expected scalar type %s but found %s", tni_dtype_text((tn_dtype)query->dtype),
                 tni_dtype_text((tn_dtype)others[i]->dtype));
    return TN_OK;
}

static tn_status check_devices(const tn_tensor *query, const tn_tensor *const *others, int n)
{
    char have[32], want[32];
    for (int i = 0; i < n; i++)
        TN_CHECK(!others[i] || (others[i]->device.type == query->device.type &&
                                others[i]->device.index == query->device.index),
                 TN_INVALID,
                 NAME "Expected all tensors to be on the same device, but found %s and %s",
                 tn_device_format(query->device, want, sizeof want),
                 tn_device_format(others[i]->device, have, sizeof have));
    return TN_OK;
}

static tn_status check_mask(const tn_tensor *query, const tn_tensor *key, const tn_tensor *mask)
{
    TN_CHECK(mask->dtype == query->dtype || mask->dtype == TN_DTYPE_F32, TN_INVALID,
             NAME "Attention mask is the same data type as query");
    TN_CHECK(mask->ndim == 2 || mask->ndim == 4, TN_INVALID, NAME "Attention mask dim in {2, 4}");
    const int64_t wanted[4] = {query->sizes[0], query->sizes[1], query->sizes[2], key->sizes[2]};
    int64_t sizes[4] = {1, 1}, target[4];
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    for (int i = 0; i < mask->ndim; i++)
        sizes[i + 4 - mask->ndim] = mask->sizes[i];
    for (int i = 0; i < 4; i++)
        target[i] = i < 2 && sizes[i] == 1 ? 1 : wanted[i];
    for (int i = 3; i >= 0; i--)
        TN_CHECK(sizes[i] == 1 || sizes[i] == target[i], TN_INVALID,
                 "The expanded size of the tensor (%lld) must match the existing size (%lld) at "
                 "non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                 (long long)target[i], (long long)sizes[i], i,
                 tni_format_sizes(4, target, a, sizeof a), tni_format_sizes(4, sizes, b, sizeof b));
    return TN_OK;
}

static tn_status check_sizes(const tn_tensor *query, const tn_tensor *key, const tn_tensor *value)
{
    char q[TNI_SIZES_TEXT], k[TNI_SIZES_TEXT], v[TNI_SIZES_TEXT];
    bool fits = key->sizes[0] == query->sizes[0] && value->sizes[0] == query->sizes[0] &&
                key->sizes[1] == value->sizes[1] && key->sizes[2] == value->sizes[2] &&
                (key->sizes[1] == query->sizes[1] ||
                 (key->sizes[1] > 0 && query->sizes[1] % key->sizes[1] == 0));
    TN_CHECK(fits, TN_INVALID,
             NAME "Expected key and value of one size, with query's batch and a number of heads "
                  "that divides query's, but got query %s, key %s and value %s",
             tni_format_sizes(4, query->sizes, q, sizeof q),
             tni_format_sizes(4, key->sizes, k, sizeof k),
             tni_format_sizes(4, value->sizes, v, sizeof v));
    return TN_OK;
}

static tn_status check(const tn_tensor *query, const tn_tensor *key, const tn_tensor *value,
                       double dropout_p, const tn_tensor *mask)
{
    const tn_tensor *const others[] = {key, value, mask};
    TN_CHECK(tn_dtype_is_floating((tn_dtype)query->dtype), TN_INVALID,
             NAME "Expected data type in FP32, FP64, BF16, FP16, but got %s instead.",
             tni_dtype_text((tn_dtype)query->dtype));
    TN_CHECK(query->ndim == 4 && key->ndim == 4 && value->ndim == 4, TN_INVALID,
             NAME "Accept only 4 dims inputs shape of {B, H, T, K}");
    TN_CHECK(dropout_p == 0, TN_INVALID, NAME "Currently do not support dropout > 0");
    TN_CHECK(query->sizes[3] == value->sizes[3] && key->sizes[3] == value->sizes[3], TN_INVALID,
             NAME "Q/K/V should have the same head size");
    if (mask)
        TN_TRY(check_mask(query, key, mask));
    TN_TRY(check_dtypes(query, others, 2));
    TN_TRY(check_devices(query, others, 3));
    return check_sizes(query, key, value);
}

tn_status tni_shape__scaled_dot_product_flash_attention_for_cpu(tni_geometry *g, tn_tensor *query,
                                                                tn_tensor *key, tn_tensor *value,
                                                                double dropout_p, bool is_causal,
                                                                tn_tensor *attn_mask,
                                                                tn_opt_float scale)
{
    (void)is_causal;
    (void)scale;
    TN_TRY(check(query, key, value, dropout_p, attn_mask));
    const int64_t *s = query->sizes;
    tni_geometry_like(&g[0], query, 4);
    memcpy(g[0].sizes, s, 4 * sizeof *s);
    tni_preserve_strides(query, g[0].strides);
    g[0].offset = 0;
    tni_geometry_like(&g[1], query, 3);
    g[1].offset = 0;
    g[1].dtype = query->dtype == TN_DTYPE_F64 ? TN_DTYPE_F64 : TN_DTYPE_F32;
    /* In memory the heads of one query lie side by side. */
    memcpy(g[1].sizes, s, 3 * sizeof *s);
    g[1].strides[1] = 1;
    g[1].strides[2] = s[1] > 0 ? s[1] : 1;
    g[1].strides[0] = g[1].strides[2] * (s[2] > 0 ? s[2] : 1);
    return TN_OK;
}

static void turned(tni_geometry *g, const tn_tensor *t)
{
    tni_geometry_like(g, t, 4);
    g->offset = 0;
    int64_t step = 1;
    for (int i = 0; i < 4; i++)
        g->sizes[i] = t->sizes[i];
    static const int order[] = {3, 1, 2, 0};
    for (int i = 0; i < 4; i++) {
        g->strides[order[i]] = step;
        step *= t->sizes[order[i]] > 0 ? t->sizes[order[i]] : 1;
    }
}

static tn_status check_like(const char *what, const tn_tensor *t, const tn_tensor *query, int ndim)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    bool same = t->ndim == ndim;
    for (int i = 0; same && i < ndim; i++)
        same = t->sizes[i] == query->sizes[i];
    TN_CHECK(same, TN_INVALID, NAME "Expected %s of size %s, but got %s", what,
             tni_format_sizes(ndim, query->sizes, b, sizeof b),
             tni_format_sizes(t->ndim, t->sizes, a, sizeof a));
    return TN_OK;
}

tn_status tni_shape__scaled_dot_product_flash_attention_for_cpu_backward(
    tni_geometry *g, tn_tensor *grad_out, tn_tensor *query, tn_tensor *key, tn_tensor *value,
    tn_tensor *out, tn_tensor *logsumexp, double dropout_p, bool is_causal, tn_tensor *attn_mask,
    tn_opt_float scale)
{
    (void)is_causal;
    (void)scale;
    const tn_tensor *const others[] = {grad_out, out, logsumexp};
    TN_TRY(check(query, key, value, dropout_p, attn_mask));
    TN_TRY(check_dtypes(query, others, 2));
    TN_TRY(check_devices(query, others, 3));
    TN_TRY(check_like("grad_out", grad_out, query, 4));
    TN_TRY(check_like("out", out, query, 4));
    TN_TRY(check_like("logsumexp", logsumexp, query, 3));
    tn_dtype wanted = query->dtype == TN_DTYPE_F64 ? TN_DTYPE_F64 : TN_DTYPE_F32;
    TN_CHECK(logsumexp->dtype == (int)wanted, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text(wanted), tni_dtype_text((tn_dtype)logsumexp->dtype));
    turned(&g[0], query);
    turned(&g[1], key);
    turned(&g[2], value);
    return TN_OK;
}
