/* SPDX-License-Identifier: MIT */
/* Times Tenon where the kernels' own speed counts, on TENON_NUM_THREADS threads. */
#define BENCH_SAMPLES   5
#define BENCH_SAMPLE_NS 2e7
#define BENCH_FIRST     1
#include "timer.h"

#include <stdlib.h>
#include "tenon/ops.h"

static void must(tn_status st)
{
    if (st == TN_OK)
        return;
    fprintf(stderr, "bench: %s\n", tn_last_error());
    exit(1);
}

#define SIZES(...) \
    (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

static tn_tensor *randn(const int64_t *sizes, int64_t ndim)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *t;
    must(tn_randn(sizes, ndim, &opts, &t));
    return t;
}

static tn_tensor *randint(int64_t high, const int64_t *sizes, int64_t ndim)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *t;
    must(tn_randint(high, sizes, ndim, &opts, &t));
    return t;
}

static tn_tensor *r; /* what a timed call made */
#define TIME(name, call) BENCH(name, must(call); tn_tensor_unref(r);)

static void memory(const char *only)
{
    tn_tensor *a = randn(SIZES(4194304)), *b = randn(SIZES(4194304));
    tn_tensor *rows = randn(SIZES(4096, 1024)), *square = randn(SIZES(2048, 2048));
    tn_tensor *weight = randn(SIZES(1024)), *bias = randn(SIZES(1024)), *turned;
    TIME("add_4M", tn_add(a, b, tn_int(1), &r));
    TIME("sum_4M", tn_sum(a, TN_DTYPE_NONE, &r));
    TIME("exp_4M", tn_exp(a, &r));
    TIME("gelu_4M", tn_gelu(a, "none", &r));
    TIME("softmax_4096x1024", tn_softmax(rows, -1, TN_DTYPE_NONE, &r));
    TIME("layer_norm_4096x1024", tn_layer_norm(rows, SIZES(1024), weight, bias, 1e-5, true, &r));
    tn_tensor *logits = randn(SIZES(4096, 1000)), *targets = randint(1000, SIZES(4096));
    TIME("cross_entropy",
         tn_cross_entropy_loss(logits, targets, NULL, 1 /* mean */, -100, 0.0, &r));
    tn_tensor *table = randn(SIZES(50257, 768)), *tokens = randint(50257, SIZES(4, 1024));
    TIME("embedding", tn_embedding(table, tokens, -1, false, false, &r));
    tn_tensor *picks = randint(4096, SIZES(4096));
    TIME("index_select", tn_index_select(rows, 0, picks, &r));
    tn_tensor *const pieces[] = {rows, rows};
    TIME("cat", tn_cat(pieces, 2, 1, &r));
    must(tn_t(square, &turned));
    TIME("transpose_copy_2048", tn_clone(turned, TN_FORMAT_CONTIGUOUS, &r));
}

static void products(const char *only)
{
    static const int64_t sizes[] = {16, 64, 256, 1024, 2048};
    for (int i = 0; i < 5; i++) {
        int64_t n = sizes[i];
        char name[32];
        snprintf(name, sizeof name, "mm_%d", (int)n);
        tn_tensor *a = randn(SIZES(n, n)), *b = randn(SIZES(n, n));
        TIME(name, tn_mm(a, b, &r));
        if (n <= 64) { /* into a result that is there, as the libraries do */
            tn_tensor *there = randn(SIZES(n, n));
            snprintf(name, sizeof name, "mm_%d_out", (int)n);
            BENCH(name, must(tn_mm_out(a, b, there)););
            tn_tensor_unref(there);
        }
        tn_tensor_unref(a);
        tn_tensor_unref(b);
    }
    tn_tensor *a = randn(SIZES(64, 128, 64)), *b = randn(SIZES(64, 64, 128));
    TIME("bmm_64x128x64", tn_bmm(a, b, &r));
    static const struct {
        const char *name;
        int64_t in, out, size, kernel, stride, padding;
    } convs[] = {{"conv2d_resnet_3x3_56", 64, 64, 56, 3, 1, 1},
                 {"conv2d_resnet_1x1_28", 512, 128, 28, 1, 1, 0},
                 {"conv2d_resnet_3x3_14_s2", 256, 256, 28, 3, 2, 1}};
    for (int i = 0; i < 3; i++) {
        tn_tensor *x = randn(SIZES(8, convs[i].in, convs[i].size, convs[i].size));
        tn_tensor *w = randn(SIZES(convs[i].out, convs[i].in, convs[i].kernel, convs[i].kernel));
        const int64_t s[] = {convs[i].stride, convs[i].stride};
        const int64_t p[] = {convs[i].padding, convs[i].padding}, one[] = {1, 1};
        TIME(convs[i].name, tn_conv2d(x, w, NULL, s, 2, p, 2, one, 2, 1, &r));
        tn_tensor_unref(x);
        tn_tensor_unref(w);
    }
}

static void attention(const char *only)
{
    tn_tensor *q = randn(SIZES(1, 12, 1024, 64)), *k = randn(SIZES(1, 12, 1024, 64));
    tn_tensor *v = randn(SIZES(1, 12, 1024, 64));
    TIME("sdpa_causal_T1024",
         tn_scaled_dot_product_attention(q, k, v, NULL, 0.0, true, tn_no_float(), false, &r));
}

static void small(const char *only)
{
    tn_tensor *a = randn(SIZES(8, 16)), *v = randn(SIZES(64));
    tn_tensor *weight = randn(SIZES(16)), *bias = randn(SIZES(16));
    TIME("softmax_8x16", tn_softmax(a, -1, TN_DTYPE_NONE, &r));
    TIME("layer_norm_8x16", tn_layer_norm(a, SIZES(16), weight, bias, 1e-5, true, &r));
    TIME("sum_64", tn_sum(v, TN_DTYPE_NONE, &r));
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    tn_set_grad_enabled(false);
    memory(only);
    products(only);
    attention(only);
    small(only);
    return 0;
}
