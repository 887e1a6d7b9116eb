/* SPDX-License-Identifier: MIT */
/* cpu/conv_whole.c: convolutions whose kernel covers the whole input, as at the end of a
 * discriminator or the begin of a generator.
 *
 * One side, the small one, has one place, and the other as many as the kernel: a transposed
 * convolution has them exchanged. Then with all elements of an image in a row
 *
 *     small = big @ weight.t()    big = small @ weight    weight = small.t() @ big
 *
 * are one product of matrices each, over all images, where windows would make one for each image
 * with a single column. */
#include "cpu/conv.h"
#include "cpu/ready.h"

bool tni_conv_whole(const tni_conv *c)
{
    const int64_t *small = c->transposed ? c->in : c->out, *big = c->transposed ? c->out : c->in;
    int64_t taps = 1;
    for (int i = 0; i < 3; i++) {
        if (small[i] != 1 || big[i] != c->kernel[i] || c->padding[i] != 0)
            return false;
        taps *= c->kernel[i];
    }
    return c->groups == 1 && taps > 1;
}

/* A row of the result that has the bias alone. */
static tn_status bias_row(const tni_conv *c, const tn_tensor *bias, tn_dtype dtype, tn_tensor **out)
{
    int64_t places = c->out[0] * c->out[1] * c->out[2], step = bias->strides[0];
    int64_t first[2] = {c->out_channels, places}, last[2] = {places, c->out_channels};
    TN_AUTO(tn_tensor) spread = NULL;
    TN_TRY(tni_tensor_alias(bias, 2, c->channels_last ? last : first,
                            c->channels_last ? (int64_t[]){0, step} : (int64_t[]){step, 0},
                            bias->offset, &spread));
    return tni_ready(spread, dtype, out);
}

tn_status tni_whole_run(const tni_conv *c, tn_tensor *input, tn_tensor *weight, tn_tensor *bias,
                        tn_tensor *out)
{
    tn_dtype dtype = (tn_dtype)out->dtype;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(tni_conv_ready(c, input, dtype, &x));
    TN_TRY(tni_conv_ready(c, weight, dtype, &w));
    if (bias)
        TN_TRY(bias_row(c, bias, dtype, &b));
    TN_TRY(tni_conv_work(c, out, dtype, &to, &work));
    tni_gemm_args g = {
        .m = c->batch, .n = out->numel / c->batch, .k = x->numel / c->batch, .batch = 1};
    g.a = (tni_matrix){x->data, g.k, 1, 0};
    g.b = c->transposed ? (tni_matrix){w->data, g.n, 1, 0} : (tni_matrix){w->data, 1, g.k, 0};
    g.c = (tni_matrix){work->data, g.n, 1, 0};
    g.d = b ? (tni_matrix){b->data, 0, 1, 0} : g.c;
    TN_TRY(tni_gemm(dtype, &g, tn_int(1), tn_int(b ? 1 : 0)));
    return tni_work_back(to, work);
}

tn_status tni_whole_weight(const tni_conv *c, tn_tensor *input, tn_tensor *grad, tn_tensor *out)
{
    tn_dtype dtype = (tn_dtype)out->dtype;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) y = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(tni_conv_ready(c, input, dtype, &x));
    TN_TRY(tni_conv_ready(c, grad, dtype, &y));
    TN_TRY(tni_conv_work(c, out, dtype, &to, &work));
    tni_gemm_args g = {.m = c->out_channels, .n = x->numel / c->batch, .k = c->batch, .batch = 1};
    g.a = (tni_matrix){y->data, 1, g.m, 0};
    g.b = (tni_matrix){x->data, g.n, 1, 0};
    g.c = g.d = (tni_matrix){work->data, g.n, 1, 0};
    TN_TRY(tni_gemm_plain(dtype, &g));
    return tni_work_back(to, work);
}
