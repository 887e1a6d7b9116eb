/* SPDX-License-Identifier: MIT */
/* cpu/gemm.c: how a matrix product is done: which kernel, cut into which tiles, over which copies.
 * float16 and bfloat16 are in gemm_half.c. */
#include "base/pool.h"
#include "core/scalar.h"
#include "cpu/blas.h"
#include "cpu/gemm_half.h"
#include "cpu/gemm_kernels.h"
#include "cpu/loops.h"
#include "cpu/move.h"

/* Multiply-adds below which a product stays on one thread, and about how many a tile has. */
#define SERIAL (INT64_C(1) << 18)
#define TILE   (INT64_C(1) << 22)
/* Elements of the matrix below which a matrix-vector product stays on one thread. */
#define GEMV_SERIAL (INT64_C(1) << 15)

/* An element of any dtype. */
typedef union element {
    double align;
    unsigned char bytes[16];
} element;

/* One call: everything that its tiles share. */
typedef struct product {
    tni_gemm_args g;
    tn_dtype dtype;
    size_t itemsize;
    const void *alpha, *beta; /* beta NULL: 0 */
    tni_gemm_fn kernel;
    bool blas;
    int64_t a_batch, b_batch, c_batch;
    int64_t tile_m, tile_n, tiles_m, tiles_n;
} product;

static const void *at(const void *base, int64_t elements, size_t itemsize)
{
    return (const char *)base + elements * (int64_t)itemsize;
}

/* ---- one tile ---- */

static tn_status run_kernel(const product *p, const tni_gemm_args *g)
{
    if (p->blas && tni_blas_gemm(p->dtype, g, p->alpha, p->beta))
        return TN_OK;
    bool floats = p->dtype == TN_DTYPE_F32 || p->dtype == TN_DTYPE_F64;
    if (!floats || !tni_gemm_blocked(g)) {
        p->kernel(g, p->alpha, p->beta, NULL);
        return TN_OK;
    }
    size_t nbytes = tni_gemm_room(g, p->itemsize);
    void *room = tni_block_alloc(nbytes);
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             nbytes);
    p->kernel(g, p->alpha, p->beta, room);
    tni_block_free(room, nbytes);
    return TN_OK;
}

/* Tile number @p i: the batch is the outermost, then rows, then columns. */
static tn_status run_tile(const product *p, int64_t i)
{
    int64_t tiles = p->tiles_m * p->tiles_n;
    int64_t entry = i / tiles, rest = i % tiles;
    int64_t row = rest / p->tiles_n * p->tile_m, column = rest % p->tiles_n * p->tile_n;
    tni_gemm_args g = p->g;
    g.m = g.m - row < p->tile_m ? g.m - row : p->tile_m;
    g.n = g.n - column < p->tile_n ? g.n - column : p->tile_n;
    g.a = at(g.a, entry * p->a_batch + row * g.a_row, p->itemsize);
    g.b = at(g.b, entry * p->b_batch + column * g.b_col, p->itemsize);
    g.c = (char *)g.c +
          (entry * p->c_batch + row * g.c_row + column * g.c_col) * (int64_t)p->itemsize;
    return run_kernel(p, &g);
}

static tn_status run_tiles(int64_t begin, int64_t end, void *arg)
{
    for (int64_t i = begin; i < end; i++)
        TN_TRY(run_tile(arg, i));
    return TN_OK;
}

/* a * b, or INT64_MAX. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t result;
    return tni_i64_mul(a, b, &result) ? result : INT64_MAX;
}

/* Halve the larger side until a tile has about TILE multiply-adds, or is too small to be worth it.
 * Never along k: a sum must not depend on where it is cut. */
static void choose_tiles(product *p)
{
    int64_t m = p->g.m, n = p->g.n, k = p->g.k;
    while (times(times(m, n), k) > TILE && (m > 64 || n > 64)) {
        if (m >= n)
            m = (m / 2 + 15) / 16 * 16;
        else
            n = (n / 2 + 31) / 32 * 32;
    }
    p->tile_m = m;
    p->tile_n = n;
    p->tiles_m = (p->g.m + m - 1) / m;
    p->tiles_n = (p->g.n + n - 1) / n;
}

static tn_status run(product *p, int64_t batch)
{
    int64_t work = times(times(p->g.m, p->g.n), p->g.k);
    if (batch == 1 && work <= SERIAL)
        return run_kernel(p, &p->g);
    choose_tiles(p);
    int64_t tiles = p->tiles_m * p->tiles_n, each = work / tiles;
    int64_t grain = each >= SERIAL ? 1 : SERIAL / (each > 0 ? each : 1);
    return tni_pool_for(batch * tiles, grain, run_tiles, p);
}

/* ---- copies ---- */

/* A contiguous copy of a rows x columns matrix. */
static tn_status copy_matrix(const void *from, int64_t rows, int64_t columns, int64_t row,
                             int64_t column, size_t itemsize, void **out, size_t *out_nbytes)
{
    size_t nbytes = (size_t)(rows * columns) * itemsize;
    char *to = tni_block_alloc(nbytes);
    TN_CHECK(to, TN_NOMEM, "cannot allocate %zu bytes for a contiguous copy of a matrix", nbytes);
    *out = to;
    *out_nbytes = nbytes;
    for (int64_t i = 0; i < rows; i++, to += columns * (int64_t)itemsize)
        tni_gather(to, at(from, i * row, itemsize), columns, column * (int64_t)itemsize, itemsize);
    return TN_OK;
}

/* The plain kernels want rows of B, and a BLAS wants one stride of each operand to be 1: copy what
 * is not so, entry by entry. */
static tn_status run_copied(const product *given, int64_t batch)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < batch && status == TN_OK; i++) {
        product p = *given;
        tni_gemm_args *g = &p.g;
        void *a = NULL, *b = NULL;
        size_t a_nbytes = 0, b_nbytes = 0;
        g->a = at(g->a, i * p.a_batch, p.itemsize);
        g->b = at(g->b, i * p.b_batch, p.itemsize);
        g->c = (char *)g->c + i * p.c_batch * (int64_t)p.itemsize;
        if (p.blas && g->a_col != 1 && g->a_row != 1) {
            status = copy_matrix(g->a, g->m, g->k, g->a_row, g->a_col, p.itemsize, &a, &a_nbytes);
            g->a = a;
            g->a_row = g->k;
            g->a_col = 1;
        }
        if (status == TN_OK && g->b_col != 1 && !(p.blas && g->b_row == 1)) {
            status = copy_matrix(g->b, g->k, g->n, g->b_row, g->b_col, p.itemsize, &b, &b_nbytes);
            g->b = b;
            g->b_row = g->n;
            g->b_col = 1;
        }
        if (status == TN_OK)
            status = run(&p, 1);
        tni_block_free(a, a_nbytes);
        tni_block_free(b, b_nbytes);
    }
    return status;
}

/* C lies in a way that no kernel writes: compute beside it. */
static tn_status run_beside(const product *given, int64_t batch)
{
    product p = *given;
    const tni_gemm_args *g = &given->g;
    void *c = NULL;
    size_t nbytes = 0;
    tn_status status = TN_OK;
    for (int64_t i = 0; i < batch && status == TN_OK; i++) {
        char *to = (char *)g->c + i * p.c_batch * (int64_t)p.itemsize;
        status = copy_matrix(to, g->m, g->n, g->c_row, g->c_col, p.itemsize, &c, &nbytes);
        if (status != TN_OK)
            break;
        p.g.a = at(g->a, i * p.a_batch, p.itemsize);
        p.g.b = at(g->b, i * p.b_batch, p.itemsize);
        p.g.c = c;
        p.g.c_row = g->n;
        p.g.c_col = 1;
        status = run(&p, 1);
        for (int64_t r = 0; status == TN_OK && r < g->m; r++)
            tni_scatter(to + r * g->c_row * (int64_t)p.itemsize, at(c, r * g->n, p.itemsize), g->n,
                        g->c_col * (int64_t)p.itemsize, p.itemsize);
        tni_block_free(c, nbytes);
    }
    return status;
}

/* ---- matrix times vector ---- */

typedef struct matvec {
    int64_t m, k;
    const void *a;
    int64_t a_row, a_col;
    const void *x;
    int64_t x_stride;
    void *y;
    int64_t y_stride;
    const void *alpha, *beta;
    tni_gemv_fn kernel;
    size_t itemsize;
} matvec;

static tn_status matvec_rows(int64_t begin, int64_t end, void *arg)
{
    const matvec *v = arg;
    v->kernel(end - begin, v->k, at(v->a, begin * v->a_row, v->itemsize), v->a_row, v->a_col, v->x,
              (char *)v->y + begin * v->y_stride * (int64_t)v->itemsize, v->y_stride, v->alpha,
              v->beta);
    return TN_OK;
}

static tn_status matvec_run(matvec *v)
{
    element small[64];
    void *copy = NULL;
    size_t nbytes = (size_t)v->k * v->itemsize;
    if (v->x_stride != 1 && v->k > 1) {
        copy = nbytes <= sizeof small ? small : tni_block_alloc(nbytes);
        TN_CHECK(copy, TN_NOMEM, "cannot allocate %zu bytes for a contiguous copy of a vector",
                 nbytes);
        tni_gather(copy, v->x, v->k, v->x_stride * (int64_t)v->itemsize, v->itemsize);
        v->x = copy;
    }
    int64_t grain = GEMV_SERIAL / (v->k > 0 ? v->k : 1);
    tn_status status = v->m <= (grain > 4 ? grain : 4)
                           ? matvec_rows(0, v->m, v)
                           : tni_pool_for(v->m, grain > 4 ? grain : 4, matvec_rows, v);
    if (copy && copy != small)
        tni_block_free(copy, nbytes);
    return status;
}

/* A product with one row or one column. */
static tn_status vector_entry(const product *p, int64_t entry)
{
    const tni_gemm_args *g = &p->g;
    const void *a = at(g->a, entry * p->a_batch, p->itemsize);
    const void *b = at(g->b, entry * p->b_batch, p->itemsize);
    matvec v = {.k = g->k,
                .y = (char *)g->c + entry * p->c_batch * (int64_t)p->itemsize,
                .alpha = p->alpha,
                .beta = p->beta,
                .kernel = tni_cpu_kernels()->gemm->gemv[p->dtype],
                .itemsize = p->itemsize};
    if (g->n == 1) {
        v.m = g->m;
        v.a = a;
        v.a_row = g->a_row;
        v.a_col = g->a_col;
        v.x = b;
        v.x_stride = g->b_row;
        v.y_stride = g->c_row;
    } else {
        v.m = g->n;
        v.a = b;
        v.a_row = g->b_col;
        v.a_col = g->b_row;
        v.x = a;
        v.x_stride = g->a_col;
        v.y_stride = g->c_col;
    }
    return matvec_run(&v);
}

static tn_status vector_entries(int64_t begin, int64_t end, void *arg)
{
    for (int64_t i = begin; i < end; i++)
        TN_TRY(vector_entry(arg, i));
    return TN_OK;
}

static tn_status run_vectors(product *p, int64_t batch)
{
    if (batch == 1) /* then its rows are shared out */
        return vector_entry(p, 0);
    int64_t each = times(p->g.m * p->g.n, p->g.k + 1);
    return tni_pool_for(batch, each < GEMV_SERIAL ? GEMV_SERIAL / each : 1, vector_entries, p);
}

/* ---- the entries ---- */

/* C^T = B^T A^T. */
static void transpose(product *p)
{
    const tni_gemm_args g = p->g;
    p->g = (tni_gemm_args){.m = g.n,
                           .n = g.m,
                           .k = g.k,
                           .a = g.b,
                           .a_row = g.b_col,
                           .a_col = g.b_row,
                           .b = g.a,
                           .b_row = g.a_col,
                           .b_col = g.a_row,
                           .c = g.c,
                           .c_row = g.c_col,
                           .c_col = g.c_row};
    int64_t batch = p->a_batch;
    p->a_batch = p->b_batch;
    p->b_batch = batch;
}

static bool is_one(tn_scalar s)
{
    return s.kind == TN_SCALAR_COMPLEX ? s.v.f == 1 && s.imag == 0 : tn_scalar_to_double(s) == 1;
}

/* Whether operands must be copied before a kernel can be any good. The float kernels copy by
 * themselves. */
static bool needs_copies(const product *p)
{
    const tni_gemm_args *g = &p->g;
    if (p->dtype == TN_DTYPE_F32 || p->dtype == TN_DTYPE_F64 || g->k == 0)
        return false;
    if (p->blas)
        return (g->a_col != 1 && g->a_row != 1) || (g->b_col != 1 && g->b_row != 1);
    return g->b_col != 1;
}

tn_status tni_gemm(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha, tn_scalar beta,
                   int64_t batch, int64_t a_batch, int64_t b_batch, int64_t c_batch)
{
    if (g->m == 0 || g->n == 0 || batch == 0)
        return TN_OK;
    product p = {.g = *g,
                 .dtype = dtype,
                 .itemsize = tn_dtype_size(dtype),
                 .a_batch = a_batch,
                 .b_batch = b_batch,
                 .c_batch = c_batch};
    if (g->k == 0 || !tni_scalar_is_true(alpha)) {
        if (is_one(beta))
            return TN_OK;
        p.g.k = 0; /* only beta is left to do */
        alpha = tn_int(1);
    }
    if (dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16)
        return tni_gemm_half(dtype, &p.g, alpha, beta, batch, a_batch, b_batch, c_batch);
    p.kernel = tni_cpu_kernels()->gemm->gemm[dtype];
    TN_CHECK(p.kernel, TN_UNSUPPORTED, "\"addmm_impl_cpu_\" not implemented for '%s'",
             tni_dtype_text(dtype));
    element factor, kept;
    tni_scalar_store(alpha, dtype, &factor);
    p.alpha = &factor;
    if (tni_scalar_is_true(beta)) {
        tni_scalar_store(beta, dtype, &kept);
        p.beta = &kept;
    }
    if (p.g.m == 1 || p.g.n == 1)
        return run_vectors(&p, batch);
    if (p.g.k == 1) { /* these strides are never walked: take those that suit */
        p.g.a_col = 1;
        p.g.b_row = p.g.n;
    }
    if (p.g.c_col != 1) {
        if (p.g.c_row != 1)
            return run_beside(&p, batch);
        transpose(&p);
    }
    p.blas = times(times(p.g.m, p.g.n), p.g.k) >= tni_blas_from(dtype);
    return needs_copies(&p) ? run_copied(&p, batch) : run(&p, batch);
}

tn_status tni_gemv(tn_dtype dtype, int64_t m, int64_t k, const void *a, int64_t a_row,
                   int64_t a_col, const void *x, int64_t x_stride, void *y, int64_t y_stride,
                   tn_scalar alpha, tn_scalar beta)
{
    const tni_gemm_args g = {.m = m,
                             .n = 1,
                             .k = k,
                             .a = a,
                             .a_row = a_row,
                             .a_col = a_col,
                             .b = x,
                             .b_row = x_stride,
                             .b_col = 1,
                             .c = y,
                             .c_row = y_stride,
                             .c_col = 1};
    return tni_gemm(dtype, &g, alpha, beta, 1, 0, 0, 0);
}

tn_status tni_dot(tn_dtype dtype, int64_t n, const void *x, int64_t x_stride, const void *y,
                  int64_t y_stride, void *out)
{
    return tni_gemv(dtype, 1, n, x, n, x_stride, y, y_stride, out, 1, tn_int(1), tn_int(0));
}
