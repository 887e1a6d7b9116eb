/* SPDX-License-Identifier: MIT */
/* cpu/gemm.c: how a matrix product is done: which kernel, cut into which tiles, over which copies.
 * float16 and bfloat16 are in gemm_half.c. */
#include <string.h>
#include "base/pool.h"
#include "core/scalar.h"
#include "cpu/blas.h"
#include "cpu/gemm_half.h"
#include "cpu/gemm_packed.h"
#include "cpu/loops.h"
#include "cpu/move.h"

/* Multiply-adds up to which a product stays on one thread: a microsecond or so where other threads
 * are at hand, see Note [Handing over]; 25 where they would have to be woken. How many a chunk of
 * tiles has at least. About how many a tile has; less where there would be fewer than FEWEST_TILES.
 */
#define ALONE        TNI_GEMM_ALONE
#define SERIAL       (INT64_C(1) << 17)
#define WAKE         (INT64_C(1) << 21)
#define TILE         (INT64_C(1) << 23)
#define FEWEST_TILES 4
#define BLAS_TILE    (INT64_C(1) << 26)
/* Multiply-adds of one entry from which a gathered B is copied in blocks as deep as a large
 * product's. */
#define GATHERED (INT64_C(1) << 23)
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
    bool blas;
    int64_t itemsize;
    const void *alpha, *beta; /* beta NULL: 0 */
    const tni_gemm_table *kernels;
    int64_t tiles_m, tiles_n;
} product;

/* Tiles begin at multiples of these. */
#define UNIT_M INT64_C(16)
#define UNIT_N INT64_C(32)

static bool is_float(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F32 || dtype == TN_DTYPE_F64;
}

static void *written(const tni_matrix *x)
{
    return (void *)(uintptr_t)x->data;
}

/* Let a matrix begin at another entry, row and column. NULL stays: there is nothing to read. */
static void move_to(tni_matrix *x, int64_t entry, int64_t row, int64_t column, int64_t itemsize)
{
    if (x->data)
        x->data =
            (const char *)x->data + (entry * x->batch + row * x->row + column * x->col) * itemsize;
}

static tni_gemm_args entry_of(const product *p, int64_t entry)
{
    tni_gemm_args g = p->g;
    g.batch = 1;
    move_to(&g.a, entry, 0, 0, p->itemsize);
    move_to(&g.b, entry, 0, 0, p->itemsize);
    move_to(&g.c, entry, 0, 0, p->itemsize);
    move_to(&g.d, entry, 0, 0, p->itemsize);
    return g;
}

/* ---- one tile ---- */

/* A BLAS adds to C: put D there. */
static void put_d(const product *p, const tni_gemm_args *g)
{
    if (!p->beta || g->d.data == g->c.data)
        return;
    for (int64_t i = 0; i < g->m; i++)
        memcpy((char *)written(&g->c) + i * g->c.row * p->itemsize,
               (const char *)g->d.data + i * g->d.row * p->itemsize, (size_t)(g->n * p->itemsize));
}

static tn_status run_kernel(const product *p, const tni_gemm_args *g)
{
    if (p->blas) {
        put_d(p, g);
        if (tni_blas_gemm(p->dtype, g, p->alpha, p->beta))
            return TN_OK;
    }
    tni_gemm_fn kernel = p->kernels->gemm[p->dtype];
    if (!is_float(p->dtype) || !tni_gemm_blocked(g)) {
        kernel(g, p->alpha, p->beta, NULL);
        return TN_OK;
    }
    size_t nbytes = tni_gemm_room(g, (size_t)p->itemsize);
    void *room = tni_block_alloc(nbytes);
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             nbytes);
    kernel(g, p->alpha, p->beta, room);
    tni_block_free(room, nbytes);
    return TN_OK;
}

/* Where tile @p i of @p tiles begins: they are of equal size but for one unit. */
static int64_t tile_begin(int64_t n, int64_t unit, int64_t i, int64_t tiles)
{
    int64_t units = (n + unit - 1) / unit, begin = units / tiles * i + units % tiles * i / tiles;
    return i == tiles ? n : begin * unit;
}

/* Tile number @p i: the batch is the outermost, then rows, then columns. */
static tn_status run_tile(const product *p, int64_t i)
{
    int64_t tiles = p->tiles_m * p->tiles_n;
    int64_t entry = i / tiles, down = i % tiles / p->tiles_n, across = i % tiles % p->tiles_n;
    tni_gemm_args g = p->g;
    int64_t row = tile_begin(g.m, UNIT_M, down, p->tiles_m);
    int64_t column = tile_begin(g.n, UNIT_N, across, p->tiles_n);
    g.m = tile_begin(g.m, UNIT_M, down + 1, p->tiles_m) - row;
    g.n = tile_begin(g.n, UNIT_N, across + 1, p->tiles_n) - column;
    move_to(&g.a, entry, row, 0, p->itemsize);
    move_to(&g.b, entry, 0, column, p->itemsize);
    move_to(&g.c, entry, row, column, p->itemsize);
    move_to(&g.d, entry, row, column, p->itemsize);
    if (g.gather_a || g.gather_b)
        g.gather_first += g.gather_a ? row : column;
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
    if (p->g.gather_b) { /* dear to pack: for as many rows as leave pieces for all threads */
        while (n > 128 && times(times(m, n), k) > TILE)
            n = (n / 2 + UNIT_N - 1) / UNIT_N * UNIT_N;
        int64_t pieces = p->g.batch * ((p->g.n + n - 1) / n);
        while (m > 512 || (m > 64 && pieces * ((p->g.m + m - 1) / m) < 4))
            m = (m / 2 + UNIT_M - 1) / UNIT_M * UNIT_M;
    }
    while (!p->g.gather_b) {
        int64_t work = times(times(m, n), k);
        int64_t tiles = p->g.batch * ((p->g.m + m - 1) / m) * ((p->g.n + n - 1) / n);
        bool large = work > TILE && (m > 128 || n > 128);
        if (!large && (tiles >= FEWEST_TILES || work <= SERIAL || (m <= 32 && n <= 64)))
            break;
        if (m >= n)
            m = (m / 2 + UNIT_M - 1) / UNIT_M * UNIT_M;
        else
            n = (n / 2 + UNIT_N - 1) / UNIT_N * UNIT_N;
    }
    p->tiles_m = (p->g.m + m - 1) / m;
    p->tiles_n = (p->g.n + n - 1) / n;
    /* An even number is shared out evenly among two threads, and better among more. */
    int64_t all = p->g.batch * p->tiles_m * p->tiles_n;
    if (all > 1 && all % 2 && n > UNIT_N)
        p->tiles_n++;
}

/* Whether a product of a few microseconds, which works in one piece on one thread, is shared out.
 * That depends on what other threads do, so nothing else may: the sum over k is one block however
 * it is cut. */
static inline bool is_shared(tn_dtype dtype, int64_t k, int64_t work)
{
    enum { PER_NS = 128 }; /* multiply-adds of float, of the fastest processors that were seen */
    return is_float(dtype) && k <= TNI_GEMM_KC((int64_t)tni_dtype_size(dtype)) &&
           tni_pool_is_near(work / PER_NS);
}

static tn_status run(product *p)
{
    int64_t work = times(times(p->g.m, p->g.n), p->g.k);
    if (p->g.batch == 1 && (work <= ALONE || (work <= WAKE && !is_shared(p->dtype, p->g.k, work))))
        return run_kernel(p, &p->g);
    choose_tiles(p);
    int64_t tiles = p->tiles_m * p->tiles_n, each = work / tiles;
    int64_t grain = each >= SERIAL ? 1 : SERIAL / (each > 0 ? each : 1);
    return tni_pool_for(p->g.batch * tiles, grain, run_tiles, p);
}

/* ---- copies ---- */

/* A copy with contiguous rows; @p x becomes the copy. */
static tn_status copy_matrix(tni_matrix *x, int64_t rows, int64_t columns, int64_t itemsize,
                             void **out, size_t *out_nbytes)
{
    size_t nbytes = (size_t)(rows * columns * itemsize);
    char *to = tni_block_alloc(nbytes);
    TN_CHECK(to, TN_NOMEM, "cannot allocate %zu bytes for a contiguous copy of a matrix", nbytes);
    for (int64_t i = 0; i < rows; i++)
        tni_gather(to + i * columns * itemsize, (const char *)x->data + i * x->row * itemsize,
                   columns, x->col * itemsize, (size_t)itemsize);
    *out = to;
    *out_nbytes = nbytes;
    *x = (tni_matrix){to, columns, 1, 0};
    return TN_OK;
}

/* Whether a copy of A, or of B, must be made before a kernel is any good. The float kernels copy
 * blocks by themselves; the plain ones want rows of B; a BLAS wants one stride of each operand to
 * be 1. */
static bool wants_copy(const product *p, const tni_matrix *x)
{
    if (is_float(p->dtype) || p->g.k == 0 || x->col == 1)
        return false;
    return p->blas ? x->row != 1 : x == &p->g.b;
}

static tn_status run_copied(const product *given)
{
    tn_status status = TN_OK;
    bool copy_a = wants_copy(given, &given->g.a), copy_b = wants_copy(given, &given->g.b);
    for (int64_t i = 0; i < given->g.batch && status == TN_OK; i++) {
        product p = *given;
        void *a = NULL, *b = NULL;
        size_t a_nbytes = 0, b_nbytes = 0;
        p.g = entry_of(given, i);
        if (copy_a)
            status = copy_matrix(&p.g.a, p.g.m, p.g.k, p.itemsize, &a, &a_nbytes);
        if (copy_b && status == TN_OK)
            status = copy_matrix(&p.g.b, p.g.k, p.g.n, p.itemsize, &b, &b_nbytes);
        if (status == TN_OK)
            status = run(&p);
        tni_block_free(a, a_nbytes);
        tni_block_free(b, b_nbytes);
    }
    return status;
}

/* C lies in a way that no kernel writes: compute beside it. */
static tn_status run_beside(const product *given)
{
    tn_status status = TN_OK;
    for (int64_t i = 0; i < given->g.batch && status == TN_OK; i++) {
        product p = *given;
        p.g = entry_of(given, i);
        const tni_matrix c = p.g.c;
        void *beside = NULL;
        size_t nbytes = 0;
        if (p.beta)
            p.g.c = p.g.d;
        TN_TRY(copy_matrix(&p.g.c, p.g.m, p.g.n, p.itemsize, &beside, &nbytes));
        p.g.d = p.g.c;
        status = wants_copy(&p, &p.g.a) || wants_copy(&p, &p.g.b) ? run_copied(&p) : run(&p);
        for (int64_t r = 0; status == TN_OK && r < p.g.m; r++)
            tni_scatter((char *)written(&c) + r * c.row * p.itemsize,
                        (const char *)beside + r * p.g.n * p.itemsize, p.g.n, c.col * p.itemsize,
                        (size_t)p.itemsize);
        tni_block_free(beside, nbytes);
    }
    return status;
}

/* ---- one row or one column ---- */

static tn_status vector_rows(int64_t begin, int64_t end, void *arg)
{
    const product *p = arg;
    tni_gemm_args g = p->g;
    g.m = end - begin;
    move_to(&g.a, 0, begin, 0, p->itemsize);
    move_to(&g.c, 0, begin, 0, p->itemsize);
    move_to(&g.d, 0, begin, 0, p->itemsize);
    p->kernels->gemv[p->dtype](&g, p->alpha, p->beta);
    return TN_OK;
}

/* B of one entry is a column: make it contiguous, then share out the rows. */
static tn_status run_vector(product *p)
{
    element small[64];
    void *copy = NULL;
    size_t nbytes = (size_t)(p->g.k * p->itemsize);
    if (p->g.b.row != 1 && p->g.k > 1) {
        copy = nbytes <= sizeof small ? small : tni_block_alloc(nbytes);
        TN_CHECK(copy, TN_NOMEM, "cannot allocate %zu bytes for a contiguous copy of a vector",
                 nbytes);
        tni_gather(copy, p->g.b.data, p->g.k, p->g.b.row * p->itemsize, (size_t)p->itemsize);
        p->g.b.data = copy;
    }
    p->g.b.row = 1;
    int64_t grain = GEMV_SERIAL / (p->g.k > 0 ? p->g.k : 1);
    if (grain < 4)
        grain = 4;
    tn_status status =
        p->g.m <= grain ? vector_rows(0, p->g.m, p) : tni_pool_for(p->g.m, grain, vector_rows, p);
    if (copy && copy != small)
        tni_block_free(copy, nbytes);
    return status;
}

static tn_status run_vectors(int64_t begin, int64_t end, void *arg)
{
    for (int64_t i = begin; i < end; i++) {
        product p = *(const product *)arg;
        p.g = entry_of(arg, i);
        TN_TRY(run_vector(&p));
    }
    return TN_OK;
}

/* ---- the entry ---- */

static void swap_matrices(tni_matrix *x, tni_matrix *y)
{
    tni_matrix kept = *x;
    *x = *y;
    *y = kept;
}

static void transpose(tni_matrix *x)
{
    int64_t row = x->row;
    x->row = x->col;
    x->col = row;
}

/* C^T = B^T A^T. */
static void transpose_all(tni_gemm_args *g)
{
    int64_t m = g->m;
    g->m = g->n;
    g->n = m;
    swap_matrices(&g->a, &g->b);
    transpose(&g->a);
    transpose(&g->b);
    transpose(&g->c);
    transpose(&g->d);
}

static bool is_one(tn_scalar s)
{
    return s.kind == TN_SCALAR_COMPLEX ? s.v.f == 1 && s.imag == 0 : tn_scalar_to_double(s) == 1;
}

/* Rows with rows, few on one side. Every element is a sum of its own: the cut changes nothing. */
static bool is_thin(const product *p)
{
    const tni_gemm_args *g = &p->g;
    return is_float(p->dtype) && g->a.col == 1 && g->b.row == 1 && tni_gemm_is_thin(g);
}

static tn_status thin_rows(int64_t begin, int64_t end, void *arg)
{
    const product *p = arg;
    while (begin < end) {
        int64_t entry = begin / p->g.m, row = begin % p->g.m;
        tni_gemm_args g = entry_of(p, entry);
        g.m = g.m - row < end - begin ? g.m - row : end - begin;
        move_to(&g.a, 0, row, 0, p->itemsize);
        move_to(&g.c, 0, row, 0, p->itemsize);
        move_to(&g.d, 0, row, 0, p->itemsize);
        p->kernels->thin[p->dtype](&g, p->alpha, p->beta);
        begin += g.m;
    }
    return TN_OK;
}

static tn_status run_thin(product *p)
{
    if (p->g.n > p->g.m)
        transpose_all(&p->g); /* few columns */
    int64_t grain = SERIAL / times(p->g.n, p->g.k);
    return tni_pool_for(p->g.batch * p->g.m, grain < 4 ? 4 : grain, thin_rows, p);
}

static tn_status run_any(product *p)
{
    tni_gemm_args *g = &p->g;
    if (g->gather_a || g->gather_b) {
        tni_matrix *x = g->gather_a ? &g->a : &g->b;
        x->row = 0; /* the tables say */
        x->col = g->gather_a ? 1 : 0;
        bool large = times(times(g->m, g->n), g->k) >= GATHERED && g->a.col == 1 && g->m >= 32;
        if (g->gather_b && large)
            return tni_gemm_run_by_rows(&p->kernels->large[p->dtype], g, p->alpha, p->beta,
                                        (size_t)p->itemsize);
        return run(p);
    }
    if (g->m == 1 || g->n == 1) {
        if (g->n != 1)
            transpose_all(g);
        if (g->batch == 1) /* then its rows are shared out */
            return run_vector(p);
        int64_t each = times(g->m, g->k + 1);
        return tni_pool_for(g->batch, each < GEMV_SERIAL ? GEMV_SERIAL / each : 1, run_vectors, p);
    }
    if (is_thin(p))
        return run_thin(p);
    if (g->k <= 1) { /* these strides are never walked: take those that suit */
        g->a.col = 1;
        g->b.row = g->n;
        g->b.col = g->k == 0 ? 1 : g->b.col;
    }
    if (g->c.col != 1 && g->c.row == 1)
        transpose_all(g);
    p->blas = tni_blas_wants(p->dtype, times(times(g->m, g->n), g->k));
    if (is_float(p->dtype) && !p->blas && g->c.col == 1 && (!p->beta || g->d.col == 1)) {
        tni_gemm_way way = tni_gemm_choose_way(&p->kernels->large[p->dtype], g, p->beta);
        if (way == TNI_GEMM_BY_ROWS)
            return tni_gemm_run_by_rows(&p->kernels->large[p->dtype], g, p->alpha, p->beta,
                                        (size_t)p->itemsize);
        if (way == TNI_GEMM_TURNED)
            return tni_gemm_run_turned(p->kernels->packed[p->dtype], g, p->alpha, p->beta,
                                       (size_t)p->itemsize);
    }
    if (g->c.col != 1 || (p->beta && g->d.col != 1))
        return run_beside(p);
    return wants_copy(p, &g->a) || wants_copy(p, &g->b) ? run_copied(p) : run(p);
}

static bool is_int(tn_scalar s, int64_t value)
{
    return s.kind == TN_SCALAR_INT && s.v.i == value;
}

/* A small product of floats needs no plan. True when it was done. @p keeps: D is added. */
static inline bool run_small(tn_dtype dtype, const tni_gemm_args *g, const bool keeps)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    const void *one = dtype == TN_DTYPE_F32 ? (const void *)&one_f32 : &one_f64;
    if (!is_float(dtype) || g->batch != 1)
        return false;
    if (g->m <= 1 || g->n <= 1 || g->k == 0 || g->c.col != 1 || (keeps && g->d.col != 1))
        return false;
    const tni_gemm_table *kernels = tni_cpu_kernels()->gemm;
    const void *beta = keeps ? one : NULL;
    const bool small = tni_gemm_is_small(g);
    if (!small && tni_gemm_blocked(g))
        return false;
    const int64_t work = times(g->m, times(g->n, g->k));
    if (work > ALONE && (work > WAKE || is_shared(dtype, g->k, work)))
        return false;
    if (small)
        kernels->small[dtype](g, one, beta);
    else
        kernels->gemm[dtype](g, one, beta, NULL);
    return true;
}

/* Nor does a small product of a matrix and a vector. */
static inline bool run_small_vector(tn_dtype dtype, const tni_gemm_args *g)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    if (g->n != 1 || !is_float(dtype) || g->batch != 1 || g->b.row != 1 || g->k < 1 ||
        g->k > GEMV_SERIAL / 4 || g->m > GEMV_SERIAL / g->k)
        return false;
    tni_cpu_kernels()->gemm->gemv[dtype](
        g, dtype == TN_DTYPE_F32 ? (const void *)&one_f32 : &one_f64, NULL);
    return true;
}

tn_status tni_gemm_plain(tn_dtype dtype, const tni_gemm_args *g)
{
    if (TNI_LIKELY(run_small(dtype, g, false)) || run_small_vector(dtype, g))
        return TN_OK;
    return tni_gemm(dtype, g, tn_int(1), tn_int(0));
}

tn_status tni_gemm(tn_dtype dtype, const tni_gemm_args *g, tn_scalar alpha, tn_scalar beta)
{
    if (is_int(alpha, 1) && (is_int(beta, 0) || is_int(beta, 1)) && run_small(dtype, g, beta.v.i))
        return TN_OK;
    if (g->m == 0 || g->n == 0 || g->batch == 0)
        return TN_OK;
    if (dtype == TN_DTYPE_BOOL && g->k == 0) {
        dtype = TN_DTYPE_U8; /* without terms there is nothing that bool could not do … */
        beta = tn_int(tni_scalar_is_true(beta)); /* … but bytes times 2 may be 0 */
    }
    bool keeps = tni_scalar_is_true(beta);
    element factor, kept;
    product p;
    p.g = *g;
    if (g->k == 0 || !tni_scalar_is_true(alpha)) {
        if (is_one(beta) && g->d.data == g->c.data)
            return TN_OK;
        p.g.k = 0; /* only beta is left to do */
        alpha = tn_int(1);
    }
    if (dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16)
        return tni_gemm_half(dtype, &p.g, alpha, beta);
    p.kernels = tni_cpu_kernels()->gemm;
    TN_CHECK(p.kernels->gemm[dtype], TN_UNSUPPORTED, "\"addmm_impl_cpu_\" not implemented for '%s'",
             tni_dtype_text(dtype));
    tni_scalar_store(alpha, dtype, &factor);
    if (keeps)
        tni_scalar_store(beta, dtype, &kept);
    else
        p.g.d = p.g.c;
    p.dtype = dtype;
    p.blas = false;
    p.itemsize = (int64_t)tn_dtype_size(dtype);
    p.alpha = &factor;
    p.beta = keeps ? &kept : NULL;
    return run_any(&p);
}
