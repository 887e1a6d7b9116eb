/* SPDX-License-Identifier: MIT */
/* cpu/gemm_packed.c: how a large product of floats is done; and the transposed product of few rows,
 * as a layer has them: x @ w.t(), where w is read as it lies and x is copied once for all threads,
 * or by each for itself (gemm_apart.c).
 *
 * The sum over k runs in blocks of the same depth whatever the tile, so that results depend on
 * sizes alone. */
#include "cpu/gemm_packed.h"
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/gemm_cut.h"

/* Multiply-adds from which copies of B pay; from which those of few rows of A do. */
#define LARGE  (INT64_C(1) << 23)
#define TURNED (INT64_C(1) << 20)
/* Terms of the sums that are copied at once. */
#define DEPTH ((int64_t)TNI_GEMM_PACKED_DEPTH)
/* A tile of C and the blocks it is made of stay in the second-level cache. */
#define TILE_ROWS    INT64_C(192)
#define FEWEST_TILES 16
/* Panels that are copied as one piece of work: about this many elements. */
#define COPY_ELEMENTS INT64_C(65536)

tni_gemm_way tni_gemm_choose_way(const tni_gemm_large *kernel, const tni_gemm_args *g,
                                 const void *beta)
{
    if (g->batch != 1 || g->gather_a || g->gather_b || g->m < 8 || g->n < 16 || g->k < 16)
        return TNI_GEMM_TILES;
    /* No overflow: C exists, and k is at most what an operand has in a row. */
    double work = (double)g->m * (double)g->n * (double)g->k;
    bool turns = g->b.row == 1 && g->b.col != 1 && g->a.col == 1 && g->c.col == 1 &&
                 (!beta || g->d.col == 1);
    if (g->m <= TNI_GEMM_FEW_ROWS)
        return turns && g->n >= 2 * g->m && work >= (double)TURNED ? TNI_GEMM_TURNED
                                                                   : TNI_GEMM_TILES;
    /* Nothing need be copied, and kernels that go over copies are no better at it. */
    bool lies = tni_gemm_is_near(g) && g->a.col == 1 && !kernel->copies_a;
    bool copies = work >= (double)LARGE && (tni_gemm_is_short(g) || !lies);
    return g->n < 64 || !copies ? TNI_GEMM_TILES : TNI_GEMM_BY_ROWS;
}

/* ---- copying ---- */

typedef struct copy {
    tni_gemm_copy_fn fn;
    tni_matrix from;
    char *to;
    int64_t n, k;
    int64_t each; /* columns of a piece */
    int64_t itemsize;
} copy;

static tn_status copy_pieces(int64_t begin, int64_t end, void *arg)
{
    const copy *w = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i * w->each;
        w->fn(w->to + first * w->k * w->itemsize,
              (const char *)w->from.data + first * w->from.col * w->itemsize, w->from.row,
              w->from.col, tni_at_most(w->each, w->n - first), w->k);
    }
    return TN_OK;
}

static tn_status copy_b(const tni_gemm_packed_kernels *kernels, const tni_gemm_packed *x,
                        const tni_matrix *b, void *to, int64_t itemsize)
{
    int64_t panels = COPY_ELEMENTS / x->k / kernels->nr + 1;
    copy w = {.fn = kernels->copy_b,
              .from = *b,
              .to = to,
              .n = x->n,
              .k = x->k,
              .each = panels * kernels->nr,
              .itemsize = itemsize};
    return tni_pool_for(tni_pieces_of(x->n, w.each), 1, copy_pieces, &w);
}

/* ---- tiles ---- */

typedef struct tiles {
    const tni_gemm_packed_kernels *kernels;
    const tni_gemm_packed *x;
    int64_t down, panels;
} tiles;

static tn_status run_tiles(int64_t begin, int64_t end, void *arg)
{
    const tiles *w = arg;
    const int64_t mr = w->kernels->mr;
    for (int64_t i = begin; i < end; i++)
        w->kernels->tile(w->x, w->panels * i / w->down * mr,
                         tni_at_most(w->panels * (i + 1) / w->down * mr, w->x->m));
    return TN_OK;
}

/* Tiles are as large as is good for one thread, but so many that several end together, and of
 * equal size but for a panel. */
static tn_status compute(const tni_gemm_packed_kernels *kernels, const tni_gemm_packed *x)
{
    tiles w = {.kernels = kernels, .x = x, .panels = tni_pieces_of(x->m, kernels->mr)};
    for (int64_t rows = TILE_ROWS;; rows /= 2) {
        w.down = tni_pieces_of(w.panels, tni_pieces_of(rows, kernels->mr));
        if (w.down >= FEWEST_TILES || rows <= 48)
            break;
    }
    return tni_pool_for(w.down, 1, run_tiles, &w);
}

/* ---- a product ---- */

static tni_matrix turn(const tni_matrix *x)
{
    return (tni_matrix){x->data, x->col, x->row, x->batch};
}

tn_status tni_gemm_run_turned(const tni_gemm_packed_kernels *kernels, const tni_gemm_args *g,
                              const void *alpha, const void *beta, size_t itemsize)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    const int64_t size = (int64_t)itemsize;
    tni_gemm_packed x = {.m = g->n,
                         .n = g->m,
                         .a_row = g->b.col,
                         .spreads = tni_gemm_rows_collide(g->b.col, size, kernels->mr),
                         .c = turn(&g->c),
                         .d = turn(&g->d),
                         .alpha = alpha,
                         .beta = beta};
    x.k = g->k;
    x.a = g->b.data;
    if (g->k <= DEPTH && tni_gemm_is_apart(&x)) {
        const tni_matrix b = turn(&g->a);
        return tni_gemm_run_apart(kernels, &x, &b, itemsize);
    }
    const int64_t columns = tni_round_up(x.n, kernels->nr);
    const size_t nbytes = (size_t)(columns * tni_at_most(g->k, DEPTH)) * itemsize;
    void *room = tni_block_alloc(nbytes);
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             nbytes);
    tn_status status = TN_OK;
    x.b = room;
    for (int64_t p = 0; p < g->k && status == TN_OK; p += DEPTH) {
        const tni_matrix of_a = tni_matrix_at(&g->a, 0, p, size), b = turn(&of_a);
        x.k = tni_at_most(DEPTH, g->k - p);
        x.a = tni_matrix_at(&g->b, p, 0, size).data;
        status = copy_b(kernels, &x, &b, room, size);
        if (status == TN_OK)
            status = compute(kernels, &x);
        /* Later blocks add to what the first ones left. */
        x.d = x.c;
        x.beta = itemsize == sizeof one_f32 ? (const void *)&one_f32 : &one_f64;
    }
    tni_block_free(room, nbytes);
    return status;
}
