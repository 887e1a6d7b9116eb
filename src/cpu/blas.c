/* SPDX-License-Identifier: MIT */
/* cpu/blas.c: OpenBLAS, single-threaded: the pool above it cuts the work. */
#include "cpu/blas.h"

#if TN_WITH_OPENBLAS
#    include <cblas.h>
#    include <limits.h>
#    include "base/once.h"

/* A threaded build starts threads of its own, which would fight with the pool's and not survive
 * fork. */
static tn_status stay_on_this_thread(void)
{
    if (openblas_get_parallel() != OPENBLAS_SEQUENTIAL)
        openblas_set_num_threads(1);
    return TN_OK;
}

static bool ready(void)
{
    static tni_once once = TNI_ONCE_INIT;
    return tni_once_done(&once) || tni_once_run(&once, stay_on_this_thread, "OpenBLAS") == TN_OK;
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
        cblas_sgemm(CblasRowMajor, a.order, b.order, m, n, k, *(const float *)alpha, g->a.data,
                    a.lead, g->b.data, b.lead, beta ? *(const float *)beta : 0, to, c.lead);
        return true;
    case TN_DTYPE_F64:
        cblas_dgemm(CblasRowMajor, a.order, b.order, m, n, k, *(const double *)alpha, g->a.data,
                    a.lead, g->b.data, b.lead, beta ? *(const double *)beta : 0, to, c.lead);
        return true;
    case TN_DTYPE_C64:
        cblas_cgemm(CblasRowMajor, a.order, b.order, m, n, k, alpha, g->a.data, a.lead, g->b.data,
                    b.lead, beta ? beta : zero, to, c.lead);
        return true;
    case TN_DTYPE_C128:
        cblas_zgemm(CblasRowMajor, a.order, b.order, m, n, k, alpha, g->a.data, a.lead, g->b.data,
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
