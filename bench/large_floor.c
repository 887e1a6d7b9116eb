/* SPDX-License-Identifier: MIT */
/* Floors: what the machine's memory gives, and what the libraries give when called directly; of a
 * training step, its matrix products. With OpenMP threads, as these libraries are meant to be run.
 */
#define BENCH_SAMPLES   5
#define BENCH_SAMPLE_NS 2e7
#define BENCH_FIRST     1
#include "timer.h"

#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#if BENCH_OPENBLAS
#    include <cblas.h>
#endif
#if BENCH_ONEDNN
#    include <oneapi/dnnl/dnnl.h>
#endif

enum { N = 4194304 };

static float *numbers(size_t n)
{
    float *p = aligned_alloc(64, n * sizeof *p);
    if (!p)
        exit(1);
    for (size_t i = 0; i < n; i++)
        p[i] = (float)(i % 1000) * 0.001f;
    return p;
}

/* out = a + b past the caches, SSE alone: memory is what limits it. */
static void add_stream(const float *a, const float *b, float *out)
{
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < N; i += 4)
        _mm_stream_ps(out + i, _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i)));
    _mm_sfence();
}

static float sum(const float *a)
{
    float total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
    for (size_t i = 0; i < N; i += 32) {
        __m128 s0 = _mm_load_ps(a + i), s1 = _mm_load_ps(a + i + 4);
        __m128 s2 = _mm_load_ps(a + i + 8), s3 = _mm_load_ps(a + i + 12);
        s0 = _mm_add_ps(s0, _mm_load_ps(a + i + 16));
        s1 = _mm_add_ps(s1, _mm_load_ps(a + i + 20));
        s2 = _mm_add_ps(s2, _mm_load_ps(a + i + 24));
        s3 = _mm_add_ps(s3, _mm_load_ps(a + i + 28));
        s0 = _mm_add_ps(_mm_add_ps(s0, s1), _mm_add_ps(s2, s3));
        total += s0[0] + s0[1] + s0[2] + s0[3];
    }
    return total;
}

static volatile float sink;

/* ---- the matrix products of a training step, and nothing else of it ---- */

#if BENCH_ONEDNN
/* out[m, n] = a[m, k] b[k, n] */
static void product(const float *a, const float *b, float *out, int64_t m, int64_t n, int64_t k)
{
    dnnl_sgemm('N', 'N', m, n, k, 1, a, k, b, n, 0, out, n);
}

/* A linear layer, forward and backward; the first layer needs no gradient of its input. */
static void linear(const float *a, const float *b, float *c, int64_t rows, int64_t in, int64_t out,
                   int first)
{
    product(a, b, c, rows, out, in);
    product(a, b, c, out, in, rows);
    if (!first)
        product(a, b, c, rows, in, out);
}

static void mlp_step(const float *a, const float *b, float *c)
{
    linear(a, b, c, 64, 784, 512, 1);
    linear(a, b, c, 64, 512, 512, 0);
    linear(a, b, c, 64, 512, 10, 0);
}

/* 4 texts of 256 tokens, 6 layers, 384 wide, 6 heads of 64. Attention: two products forward and
 * four backward a head, of the half of the scores that a causal mask leaves. */
static void gpt_step(const float *a, const float *b, float *c)
{
    enum { TOKENS = 4 * 256, WIDE = 384, HEADS = 4 * 6 };
    for (int layer = 0; layer < 6; layer++) {
        linear(a, b, c, TOKENS, WIDE, 3 * WIDE, 0);
        linear(a, b, c, TOKENS, WIDE, WIDE, 0);
        linear(a, b, c, TOKENS, WIDE, 4 * WIDE, 0);
        linear(a, b, c, TOKENS, 4 * WIDE, WIDE, 0);
        for (int head = 0; head < 3 * HEADS; head++) {
            product(a, b, c, 256, 128, 64);
            product(a, b, c, 256, 64, 128);
        }
    }
    linear(a, b, c, TOKENS, WIDE, 65, 0);
}
#endif

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    float *a = numbers(N), *b = numbers(N), *c = numbers(N);
    BENCH("add_4M@memory", add_stream(a, b, c););
    BENCH("sum_4M@memory", sink = sum(a););
    static const int sizes[] = {16, 64, 256, 1024, 2048};
    for (int i = 0; i < 5; i++) {
        char name[48];
        int n = sizes[i];
        (void)name, (void)n;
#if BENCH_OPENBLAS
        snprintf(name, sizeof name, "mm_%d@openblas", n);
        BENCH(name, cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1, a, n, b, n,
                                0, c, n););
#endif
#if BENCH_ONEDNN
        snprintf(name, sizeof name, "mm_%d@onednn", n);
        BENCH(name, dnnl_sgemm('N', 'N', n, n, n, 1, a, n, b, n, 0, c, n););
#endif
    }
#if BENCH_ONEDNN
    BENCH("mlp_train_step_B64@onednn", mlp_step(a, b, c););
    BENCH("char_gpt_train_step@onednn", gpt_step(a, b, c););
#endif
    return 0;
}
