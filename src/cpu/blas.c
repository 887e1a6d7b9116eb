/* SPDX-License-Identifier: MIT */
/* cpu/blas.c: OpenBLAS, single-threaded: the pool above it cuts the work.
 *
 * The library is loaded when a product first wants it, not linked: its threaded builds start
 * threads as soon as they are loaded, which a program that never needs them should not have. Where
 * it is not installed our own kernels do the work. */
#include "cpu/blas.h"

#if TN_WITH_OPENBLAS
#    include <cblas.h>
#    include <dlfcn.h>
#    include <limits.h>
#    include "base/once.h"

static struct {
    bool there;
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&cblas_dgemm) dgemm;
    __typeof__(&cblas_cgemm) cgemm;
    __typeof__(&cblas_zgemm) zgemm;
} blas;

static tn_status load(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return TN_OK;
    *(void **)&blas.sgemm = dlsym(library, "cblas_sgemm");
    *(void **)&blas.dgemm = dlsym(library, "cblas_dgemm");
    *(void **)&blas.cgemm = dlsym(library, "cblas_cgemm");
    *(void **)&blas.zgemm = dlsym(library, "cblas_zgemm");
    __typeof__(&openblas_set_num_threads) set_threads;
    *(void **)&set_threads = dlsym(library, "openblas_set_num_threads");
    blas.there = blas.sgemm && blas.dgemm && blas.cgemm && blas.zgemm && set_threads;
    if (blas.there)
        set_threads(1); /* others would fight with the pool's, and not survive fork */
    return TN_OK;
}

static bool ready(void)
{
    static tni_once once = TNI_ONCE_INIT;
    return (tni_once_done(&once) || tni_once_run(&once, load, "loading OpenBLAS") == TN_OK) &&
           blas.there;
}

/* Measured against our kernels, one thread, square products. Real ones: level from 32 x 32 x 32 to
 * 1024 x 1024 x 1024 with AVX2 and AVX-512; the library is tuned for more processors than we can
 * try, so it gets the large ones. Complex ones: our kernels are plain loops. */
int64_t tni_blas_from(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F32:
    case TN_DTYPE_F64:
        return INT64_C(1) << 30;
    case TN_DTYPE_C64:
    case TN_DTYPE_C128:
        return INT64_C(1) << 9;
    default:
        return INT64_MAX;
    }
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
        !fits(&g->b, g->k, g->n, &b) || !fits(&g->c, g->m, g->n, &c) || c.order != CblasNoTrans ||
        !ready())
        return false;
    void *to = (void *)(uintptr_t)g->c.data;
    const blasint m = (blasint)g->m, n = (blasint)g->n, k = (blasint)g->k;
    static const double zero[2] = {0, 0};
    switch (dtype) {
    case TN_DTYPE_F32:
        blas.sgemm(CblasRowMajor, a.order, b.order, m, n, k, *(const float *)alpha, g->a.data,
                   a.lead, g->b.data, b.lead, beta ? *(const float *)beta : 0, to, c.lead);
        return true;
    case TN_DTYPE_F64:
        blas.dgemm(CblasRowMajor, a.order, b.order, m, n, k, *(const double *)alpha, g->a.data,
                   a.lead, g->b.data, b.lead, beta ? *(const double *)beta : 0, to, c.lead);
        return true;
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

int64_t tni_blas_from(tn_dtype dtype)
{
    (void)dtype;
    return INT64_MAX;
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
