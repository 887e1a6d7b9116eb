/* SPDX-License-Identifier: MIT */
/* cpu/blas.c: OpenBLAS, and complex products by it, single-threaded: the pool above it cuts the
 * work.
 *
 * The library is loaded when somebody first wants it, not linked: its threaded builds start
 * threads as soon as they are loaded, which a program that never needs them should not have. Where
 * it is not installed our own kernels do the work. */
#include "cpu/blas.h"

#if TN_WITH_OPENBLAS
#    include <cblas.h>
#    include <dlfcn.h>
#    include <limits.h>
#    include <strings.h>
#    include "base/env.h"
#    include "base/once.h"

static struct {
    void *library; /* NULL: not installed, or one whose threads we cannot keep out */
    bool there;
    __typeof__(&cblas_cgemm) cgemm;
    __typeof__(&cblas_zgemm) zgemm;
} blas;

/* On a processor that is younger than itself the library falls back to kernels without AVX, at a
 * fifth of the speed of ours. @p core is what it takes this processor for. */
static bool knows_this_machine(const char *core)
{
    static const char *const good[] = {"Haswell", "Zen", "SkylakeX", "Cooperlake",
                                       "SapphireRapids"};
    if (tni_cpu_isa() == TNI_ISA_BASE)
        return true;
    for (size_t i = 0; core && i < sizeof good / sizeof good[0]; i++) {
        if (strcasecmp(core, good[i]) == 0)
            return true;
    }
    return false;
}

static tn_status load(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return TN_OK;
    *(void **)&blas.cgemm = dlsym(library, "cblas_cgemm");
    *(void **)&blas.zgemm = dlsym(library, "cblas_zgemm");
    __typeof__(&openblas_set_num_threads) set_threads;
    __typeof__(&openblas_get_corename) core_name;
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&core_name = dlsym(library, "openblas_get_corename");
    if (set_threads)
        set_threads(1); /* others would fight with the pool's, and not survive fork */
    blas.library = set_threads ? library : NULL;
    blas.there =
        blas.cgemm && blas.zgemm && set_threads && core_name && knows_this_machine(core_name());
    return TN_OK;
}

void *tni_blas_library(void)
{
    static tni_once once = TNI_ONCE_INIT;
    if (!tni_once_done(&once) && tni_once_run(&once, load, "loading OpenBLAS") != TN_OK)
        return NULL;
    return blas.library;
}

bool tni_blas_fast(void)
{
    return tni_blas_library() && blas.there;
}

/* Measured, one thread, square products, OpenBLAS 0.3.21; GFLOP/s, ours and the library's:
 *
 *            float32, Zen 4    complex64, Zen 4    float32, Sapphire Rapids
 *      16       97      85         30      54            105      15
 *     128      113     101         66     100            170      30
 *    1024      100     101                               142      31
 *
 * There the library did not know the processor; told of one with AVX-512 it is ahead of ours up to
 * 64 and behind from 128 on (docs/decisions/0009-dependencies.md). So real products stay with our
 * kernels. Complex ones, which are plain loops here, go to the library from about 8 x 8 x 8 on. */
bool tni_blas_wants(tn_dtype dtype, int64_t work)
{
    return tn_dtype_is_complex(dtype) && work >= 512 && tni_blas_fast();
}

typedef struct operand {
    enum CBLAS_TRANSPOSE order;
    blasint lead;
} operand;

/* A matrix can be used as it lies when one stride is 1 and the other reaches over a whole row. */
static bool fits(const tni_matrix *x, int64_t rows, int64_t columns, operand *out)
{
    int64_t lead;
    if (x->col == 1 && x->row >= (columns > 1 ? columns : 1)) {
        out->order = CblasNoTrans;
        lead = x->row;
    } else if (x->row == 1 && x->col >= (rows > 1 ? rows : 1)) {
        out->order = CblasTrans;
        lead = x->col;
    } else {
        return false;
    }
    out->lead = (blasint)lead;
    return lead <= INT_MAX;
}

bool tni_blas_gemm(tn_dtype dtype, const tni_gemm_args *g, const void *alpha, const void *beta)
{
    operand a, b, c;
    if (g->m > INT_MAX || g->n > INT_MAX || g->k > INT_MAX || !fits(&g->a, g->m, g->k, &a) ||
        !fits(&g->b, g->k, g->n, &b) || !fits(&g->c, g->m, g->n, &c) || c.order != CblasNoTrans)
        return false;
    void *to = (void *)(uintptr_t)g->c.data;
    const blasint m = (blasint)g->m, n = (blasint)g->n, k = (blasint)g->k;
    static const double zero[2] = {0, 0};
    switch (dtype) {
    case TN_DTYPE_C64:
        blas.cgemm(CblasRowMajor, a.order, b.order, m, n, k, alpha, g->a.data, a.lead, g->b.data,
                   b.lead, beta ? beta : zero, to, c.lead);
        return true;
    case TN_DTYPE_C128:
        blas.zgemm(CblasRowMajor, a.order, b.order, m, n, k, alpha, g->a.data, a.lead, g->b.data,
                   b.lead, beta ? beta : zero, to, c.lead);
        return true;
    default:
        return false;
    }
}

#else

void *tni_blas_library(void)
{
    return NULL;
}

bool tni_blas_fast(void)
{
    return false;
}

bool tni_blas_wants(tn_dtype dtype, int64_t work)
{
    (void)dtype;
    (void)work;
    return false;
}

bool tni_blas_gemm(tn_dtype dtype, const tni_gemm_args *g, const void *alpha, const void *beta)
{
    (void)dtype;
    (void)g;
    (void)alpha;
    (void)beta;
    return false;
}

#endif
