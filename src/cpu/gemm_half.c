/* SPDX-License-Identifier: MIT */
/* cpu/gemm_half.c: products of float16 and bfloat16, computed in float32. */
#include "base/pool.h"
#include "core/half.h"
#include "cpu/gemm_half.h"
#include "cpu/move.h"

/* Floats that fit on the stack: products of matrices of up to about 32 x 32. */
#define STACK_FLOATS 4096
#define PIECE        256

typedef struct half_product {
    tn_dtype dtype;
    const tni_gemm_args *g;
    tn_scalar alpha, beta;
} half_product;

/* Entry @p i of a matrix. Both formats are two bytes. */
static const tni_f16 *entry_of(const tni_matrix *x, int64_t i)
{
    return (const tni_f16 *)x->data + i * x->batch;
}

/* n elements, @p stride apart, as floats. */
static void widen_run(const tni_kernels *k, tn_dtype dtype, const tni_f16 *from, int64_t stride,
                      int64_t n, float *to)
{
    tni_f16 piece[PIECE];
    if (stride == 1) {
        tni_convert(k, TN_DTYPE_F32, to, dtype, from, n);
        return;
    }
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t some = n - i < PIECE ? n - i : PIECE;
        tni_gather(piece, from + i * stride, some, stride * 2, 2);
        tni_convert(k, TN_DTYPE_F32, to + i, dtype, piece, some);
    }
}

/* A matrix as floats, in the order in which it lies: by columns when those are contiguous. */
static tni_matrix widen(const tni_kernels *k, tn_dtype dtype, const tni_matrix *x, int64_t entry,
                        int64_t rows, int64_t columns, float *to)
{
    const tni_f16 *from = entry_of(x, entry);
    if (x->row == 1 && x->col != 1) {
        for (int64_t j = 0; j < columns; j++)
            widen_run(k, dtype, from + j * x->col, 1, rows, to + j * rows);
        return (tni_matrix){to, 1, rows, 0};
    }
    for (int64_t i = 0; i < rows; i++)
        widen_run(k, dtype, from + i * x->row, x->col, columns, to + i * columns);
    return (tni_matrix){to, columns, 1, 0};
}

/* C = sums + beta * D, rounded once. */
static void round_into(const tni_kernels *k, const half_product *p, int64_t entry,
                       const float *sums)
{
    const tni_gemm_args *g = p->g;
    const float beta = (float)tn_scalar_to_double(p->beta);
    float piece[PIECE];
    tni_f16 rounded[PIECE];
    for (int64_t i = 0; i < g->m; i++, sums += g->n) {
        tni_f16 *c = (tni_f16 *)(uintptr_t)entry_of(&g->c, entry) + i * g->c.row;
        for (int64_t j = 0; j < g->n; j += PIECE) {
            int64_t n = g->n - j < PIECE ? g->n - j : PIECE;
            const float *from = sums + j;
            if (beta != 0) {
                widen_run(k, p->dtype, entry_of(&g->d, entry) + i * g->d.row + j * g->d.col,
                          g->d.col, n, piece);
                for (int64_t q = 0; q < n; q++)
                    piece[q] = from[q] + beta * piece[q];
                from = piece;
            }
            tni_convert(k, p->dtype, rounded, TN_DTYPE_F32, from, n);
            tni_scatter(c + j * g->c.col, rounded, n, g->c.col * 2, 2);
        }
    }
}

static tn_status multiply(const half_product *p, int64_t entry, float *room)
{
    const tni_kernels *k = tni_cpu_kernels();
    const tni_gemm_args *g = p->g;
    float *a = room, *b = a + g->m * g->k, *c = b + g->k * g->n;
    tni_gemm_args wide = {.m = g->m, .n = g->n, .k = g->k, .batch = 1};
    wide.a = widen(k, p->dtype, &g->a, entry, g->m, g->k, a);
    wide.b = widen(k, p->dtype, &g->b, entry, g->k, g->n, b);
    wide.c = wide.d = (tni_matrix){c, g->n, 1, 0};
    TN_TRY(tni_gemm(TN_DTYPE_F32, &wide, p->alpha, tn_int(0)));
    round_into(k, p, entry, c);
    return TN_OK;
}

static tn_status multiply_some(int64_t begin, int64_t end, void *arg)
{
    const half_product *p = arg;
    const tni_gemm_args *g = p->g;
    int64_t mk, kn, mn, total = 0;
    size_t nbytes = 0;
    bool fits = tni_i64_mul(g->m, g->k, &mk) && tni_i64_mul(g->k, g->n, &kn) &&
                tni_i64_mul(g->m, g->n, &mn) && tni_i64_add(mk, kn, &total) &&
                tni_i64_add(total, mn, &total) &&
                tni_size_mul((size_t)total, sizeof(float), &nbytes);
    TN_CHECK(fits, TN_NOMEM, "a matrix product of %s needs more memory than there can be",
             tn_dtype_name(p->dtype));
    float small[STACK_FLOATS], *room = small;
    if (total > STACK_FLOATS)
        room = tni_block_alloc(nbytes);
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes to compute a product of %s in float32",
             nbytes, tn_dtype_name(p->dtype));
    tn_status status = TN_OK;
    for (int64_t i = begin; i < end && status == TN_OK; i++)
        status = multiply(p, i, room);
    if (room != small)
        tni_block_free(room, nbytes);
    return status;
}

tn_status tni_gemm_half(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha, tn_scalar beta)
{
    half_product p = {dtype, g, alpha, beta};
    if (g->batch == 1) /* then the product itself may use the pool */
        return multiply_some(0, 1, &p);
    int64_t work, grain = 1;
    if (tni_i64_mul(g->m * g->n, g->k + 1, &work) && work < (INT64_C(1) << 16))
        grain = (INT64_C(1) << 16) / work;
    return tni_pool_for(g->batch, grain, multiply_some, &p);
}
