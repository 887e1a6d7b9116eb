/* SPDX-License-Identifier: MIT */
/* cpu/gemm_half.c: products of float16 and bfloat16, computed in float32. */
#include "base/pool.h"
#include "core/half.h"
#include "cpu/copy.h"
#include "cpu/gemm_half.h"
#include "cpu/halves.h"
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

/* Rows and columns of a result. */
typedef struct tile {
    int64_t row, column, rows, columns;
} tile;

/* C = sums + beta * D, rounded once; rows of sums are @p sums_row apart. */
static void round_into(const tni_kernels *k, const half_product *p, int64_t entry, const tile *t,
                       const float *sums, int64_t sums_row)
{
    const tni_gemm_args *g = p->g;
    const float beta = (float)tn_scalar_to_double(p->beta);
    float piece[PIECE];
    tni_f16 rounded[PIECE];
    for (int64_t i = t->row; i < t->row + t->rows; i++, sums += sums_row) {
        tni_f16 *c = (tni_f16 *)(uintptr_t)entry_of(&g->c, entry) + i * g->c.row;
        for (int64_t j = t->column; j < t->column + t->columns; j += PIECE) {
            int64_t rest = t->column + t->columns - j, n = rest < PIECE ? rest : PIECE;
            const float *from = sums + j - t->column;
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
    round_into(k, p, entry, &(tile){0, 0, g->m, g->n}, c, g->n);
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

/* ---- rows with rows ---- */

#define TILE_ROWS    48
#define TILE_COLUMNS 64
#define DOTS_GRAIN   (1 << 19) /* products of two numbers */
#define LONG         192       /* sums that are worth adding up lanes at their end */
#define THIN         16

/* Both operands have rows of k elements: B is the transposed one. */
typedef struct dots_job {
    const half_product *p;
    tni_halves_fn fn;
    const uint16_t *a, *b;
    int64_t a_row, b_row, a_batch, b_batch;
    int64_t down, across; /* tiles of an entry */
} dots_job;

/* A kernel where there is one that pays: for pairs always, else where few rows meet many, which to
 * widen takes longer than to multiply. */
static tni_halves_fn dots_for(tn_dtype dtype, const tni_gemm_args *g)
{
    const tni_halves_table *table = tni_cpu_kernels()->halves;
    if (g->k < LONG)
        return NULL;
    tni_halves_fn pairs = dtype == TN_DTYPE_BF16 ? table->bf16_pairs() : NULL;
    if (pairs)
        return pairs;
    bool thin = g->m <= THIN || g->n <= THIN;
    return !thin ? NULL : dtype == TN_DTYPE_BF16 ? table->bf16 : table->f16;
}

static tn_status dot_tiles(int64_t begin, int64_t end, void *arg)
{
    const dots_job *j = arg;
    const tni_gemm_args *g = j->p->g;
    const tni_kernels *k = tni_cpu_kernels();
    const float alpha = (float)tn_scalar_to_double(j->p->alpha);
    _Alignas(64) float sums[TILE_ROWS * TILE_COLUMNS];
    for (int64_t u = begin; u < end; u++) {
        int64_t entry = u / (j->down * j->across), rest = u % (j->down * j->across);
        tile t = {.row = rest / j->across * TILE_ROWS, .column = rest % j->across * TILE_COLUMNS};
        t.rows = g->m - t.row < TILE_ROWS ? g->m - t.row : TILE_ROWS;
        t.columns = g->n - t.column < TILE_COLUMNS ? g->n - t.column : TILE_COLUMNS;
        j->fn(&(tni_row_products){.sums = sums,
                                  .sums_row = TILE_COLUMNS,
                                  .a = j->a + entry * j->a_batch + t.row * j->a_row,
                                  .b = j->b + entry * j->b_batch + t.column * j->b_row,
                                  .a_row = j->a_row,
                                  .b_row = j->b_row,
                                  .m = t.rows,
                                  .n = t.columns,
                                  .k = g->k});
        for (int64_t i = 0; alpha != 1 && i < t.rows * TILE_COLUMNS; i++)
            sums[i] *= alpha;
        round_into(k, j->p, entry, &t, sums, TILE_COLUMNS);
    }
    return TN_OK;
}

/* Rows of k elements that lie otherwise are copied: n rows, @p row and @p step elements apart. */
static tn_status rows_of(const tni_gemm_args *g, const tni_matrix *x, int64_t n, int64_t row,
                         int64_t step, uint16_t **copy)
{
    int64_t nbytes;
    bool fits = tni_i64_mul(n, g->k, &nbytes) && tni_i64_mul(nbytes, g->batch * 2, &nbytes);
    *copy = fits ? tni_block_alloc((size_t)nbytes) : NULL;
    TN_CHECK(*copy, TN_NOMEM, "cannot allocate memory for a matrix product of halves");
    const tni_strided c = {3,
                           (const int64_t[]){g->batch, n, g->k},
                           (const int64_t[]){n * g->k * 2, g->k * 2, 2},
                           (const int64_t[]){x->batch * 2, row * 2, step * 2},
                           *copy,
                           x->data,
                           TN_DTYPE_I16,
                           TN_DTYPE_I16};
    return tni_copy_strided(&c);
}

static tn_status by_dots(const half_product *p, tni_halves_fn fn)
{
    const tni_gemm_args *g = p->g;
    uint16_t *a = NULL, *b = NULL;
    dots_job j = {.p = p,
                  .fn = fn,
                  .a = g->a.data,
                  .b = g->b.data,
                  .a_row = g->a.row,
                  .b_row = g->b.col,
                  .a_batch = g->a.batch,
                  .b_batch = g->b.batch,
                  .down = (g->m + TILE_ROWS - 1) / TILE_ROWS,
                  .across = (g->n + TILE_COLUMNS - 1) / TILE_COLUMNS};
    tn_status status = TN_OK;
    if (g->a.col != 1) {
        status = rows_of(g, &g->a, g->m, g->a.row, g->a.col, &a);
        j.a = a;
        j.a_row = g->k;
        j.a_batch = g->m * g->k;
    }
    if (status == TN_OK && g->b.row != 1) {
        status = rows_of(g, &g->b, g->n, g->b.col, g->b.row, &b);
        j.b = b;
        j.b_row = g->k;
        j.b_batch = g->n * g->k;
    }
    int64_t work =
        (g->m < TILE_ROWS ? g->m : TILE_ROWS) * (g->n < TILE_COLUMNS ? g->n : TILE_COLUMNS) * g->k;
    if (status == TN_OK)
        status = tni_pool_for(g->batch * j.down * j.across,
                              work < DOTS_GRAIN ? DOTS_GRAIN / work : 1, dot_tiles, &j);
    tni_block_free(a, (size_t)(g->batch * g->m * g->k * 2));
    tni_block_free(b, (size_t)(g->batch * g->n * g->k * 2));
    return status;
}

tn_status tni_gemm_half(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha, tn_scalar beta)
{
    half_product p = {dtype, g, alpha, beta};
    tni_halves_fn dots = dots_for(dtype, g);
    if (dots)
        return by_dots(&p, dots);
    if (g->batch == 1) /* then the product itself may use the pool */
        return multiply_some(0, 1, &p);
    int64_t work, grain = 1;
    if (tni_i64_mul(g->m * g->n, g->k + 1, &work) && work < (INT64_C(1) << 16))
        grain = (INT64_C(1) << 16) / work;
    return tni_pool_for(g->batch, grain, multiply_some, &p);
}
