/* SPDX-License-Identifier: MIT */
/* cpu/gemm_half.c: products of float16 and bfloat16, computed in float32. */
#include "base/pool.h"
#include "cpu/gemm_half.h"
#include "core/half.h"
#include "cpu/move.h"

/* Floats that fit on the stack: products of matrices of up to about 32 x 32. */
#define STACK_FLOATS 4096

typedef struct half_product {
    tn_dtype dtype;
    const tni_gemm_args *g;
    tn_scalar alpha, beta;
    int64_t a_batch, b_batch, c_batch;
} half_product;

/* A matrix as floats, in the order in which it lies: by columns when those are contiguous. */
static void widen(const tni_kernels *k, tn_dtype dtype, const void *from, int64_t rows,
                  int64_t columns, int64_t *row, int64_t *column, float *to)
{
    const tni_f16 *half = from; /* both formats are two bytes */
    bool by_columns = *row == 1 && *column != 1;
    int64_t outer = by_columns ? columns : rows, inner = by_columns ? rows : columns;
    int64_t step = by_columns ? *column : *row, stride = by_columns ? *row : *column;
    tni_f16 run[256];
    for (int64_t i = 0; i < outer; i++, half += step, to += inner) {
        if (stride == 1) {
            tni_convert(k, TN_DTYPE_F32, to, dtype, half, inner);
            continue;
        }
        for (int64_t j = 0; j < inner; j += 256) {
            int64_t n = inner - j < 256 ? inner - j : 256;
            tni_gather(run, half + j * stride, n, stride * (int64_t)sizeof *run, sizeof *run);
            tni_convert(k, TN_DTYPE_F32, to + j, dtype, run, n);
        }
    }
    *row = by_columns ? 1 : inner;
    *column = by_columns ? inner : 1;
}

/* C = sums + beta * C, rounded, a piece of a row at a time. */
static void round_into(const tni_kernels *k, const half_product *p, void *c, const float *sums)
{
    const tni_gemm_args *g = p->g;
    bool keeps = tn_scalar_to_double(p->beta) != 0;
    float beta = (float)tn_scalar_to_double(p->beta), piece[256];
    tni_f16 old[256];
    for (int64_t i = 0; i < g->m; i++, sums += g->n) {
        tni_f16 *row = (tni_f16 *)c + i * g->c_row;
        for (int64_t j = 0; j < g->n; j += 256) {
            int64_t n = g->n - j < 256 ? g->n - j : 256;
            tni_f16 *to = row + j * g->c_col;
            const float *from = sums + j;
            if (keeps) {
                tni_gather(old, to, n, g->c_col * (int64_t)sizeof *old, sizeof *old);
                tni_convert(k, TN_DTYPE_F32, piece, p->dtype, old, n);
                for (int64_t q = 0; q < n; q++)
                    piece[q] = from[q] + beta * piece[q];
                from = piece;
            }
            tni_convert(k, p->dtype, old, TN_DTYPE_F32, from, n);
            tni_scatter(to, old, n, g->c_col * (int64_t)sizeof *old, sizeof *old);
        }
    }
}

static tn_status multiply(const half_product *p, int64_t entry, float *room)
{
    const tni_kernels *k = tni_cpu_kernels();
    const tni_gemm_args *g = p->g;
    float *a = room, *b = a + g->m * g->k, *c = b + g->k * g->n;
    tni_gemm_args wide = *g;
    widen(k, p->dtype, (const tni_f16 *)g->a + entry * p->a_batch, g->m, g->k, &wide.a_row,
          &wide.a_col, a);
    widen(k, p->dtype, (const tni_f16 *)g->b + entry * p->b_batch, g->k, g->n, &wide.b_row,
          &wide.b_col, b);
    wide.a = a;
    wide.b = b;
    wide.c = c;
    wide.c_row = g->n;
    wide.c_col = 1;
    TN_TRY(tni_gemm(TN_DTYPE_F32, &wide, p->alpha, tn_int(0), 1, 0, 0, 0));
    round_into(k, p, (tni_f16 *)g->c + entry * p->c_batch, c);
    return TN_OK;
}

static tn_status multiply_some(int64_t begin, int64_t end, void *arg)
{
    const half_product *p = arg;
    const tni_gemm_args *g = p->g;
    int64_t mk, kn, mn, total;
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

tn_status tni_gemm_half(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha, tn_scalar beta,
                        int64_t batch, int64_t a_batch, int64_t b_batch, int64_t c_batch)
{
    half_product p = {dtype, g, alpha, beta, a_batch, b_batch, c_batch};
    if (batch == 1) /* then the product itself may use the pool */
        return multiply_some(0, 1, &p);
    int64_t work, grain = 1;
    if (tni_i64_mul(g->m * g->n, g->k + 1, &work) && work < (INT64_C(1) << 16))
        grain = (INT64_C(1) << 16) / work;
    return tni_pool_for(batch, grain, multiply_some, &p);
}
