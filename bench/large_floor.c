/* SPDX-License-Identifier: MIT */
/* Floors: what the machine's memory gives, and what the libraries give when called directly. With
 * OpenMP threads, as these libraries are meant to be run. */
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
    return 0;
}
