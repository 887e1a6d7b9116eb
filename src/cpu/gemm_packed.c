/* SPDX-License-Identifier: MIT */
/* cpu/gemm_packed.c: large products of floats over copies that all tiles share.
 *
 * A tile that makes its own copies makes them again for every row of tiles: at a hundred rows that
 * is a fifth of its time. Here each element of an operand is copied once. The sum over k runs in
 * blocks of the same depth whatever the tile, so that results depend on sizes alone. */
#include "cpu/gemm_packed.h"
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/gemm_cut.h"

/* Multiply-adds from which shared copies pay for the second start of the pool. */
#define LARGE  (INT64_C(1) << 23)
#define TURNED (INT64_C(1) << 20)
/* A part of a product that is copied at once: rows, columns, and terms of the sums. The copies are
 * small enough to be kept for the next product, see Note [Large blocks]. */
#define PART_ROWS    INT64_C(1024)
#define PART_COLUMNS INT64_C(2048)
#define PART_DEPTH   INT64_C(1024)
/* A tile of C and the blocks it is made of stay in the second-level cache. */
#define TILE_ROWS    INT64_C(192)
#define TILE_COLUMNS INT64_C(512)
#define FEWEST_TILES 16
/* Panels that are copied as one piece of work: about this many elements. */
#define COPY_ELEMENTS INT64_C(65536)

tni_gemm_way tni_gemm_choose_way(const tni_gemm_args *g, const void *beta)
{
    if (g->batch != 1 || g->gather_a || g->gather_b || g->m < 8 || g->n < 16 || g->k < 16)
        return TNI_GEMM_TILES;
    /* No overflow: C exists, and k is at most what an operand has in a row. */
    double work = (double)g->m * (double)g->n * (double)g->k;
    bool turns = g->b.row == 1 && g->b.col != 1 && g->a.col == 1 && g->c.col == 1 &&
                 (!beta || g->d.col == 1);
    if (g->m <= TNI_GEMM_FEW_ROWS)
        return turns && g->n >= 2 * g->m && work >= (double)TURNED ? TNI_GEMM_PACKED_TURNED
                                                                   : TNI_GEMM_TILES;
    bool copies = work >= (double)LARGE && !(tni_gemm_is_near(g) && g->a.col == 1);
    if (g->n < 64 || !copies)
        return TNI_GEMM_TILES;
    return g->a.col == 1 ? TNI_GEMM_BY_ROWS : TNI_GEMM_PACKED;
}

/* ---- copying ---- */

typedef struct copy {
    const tni_gemm_packed *x;
    tni_gemm_copy_fn fn;
    tni_matrix from;
    void *to;
    int64_t along, across; /* from one term of the sums to the next; one row of A, column of B */
    int64_t all, room;     /* rows of A, columns of B; with the last panel filled up */
    int64_t each, pieces;  /* of them in a piece; pieces of a block */
    int64_t itemsize;
} copy;

static tn_status copy_pieces(int64_t begin, int64_t end, void *arg)
{
    const copy *w = arg;
    for (int64_t i = begin; i < end; i++) {
        int64_t pc = i / w->pieces * w->x->depth, first = i % w->pieces * w->each;
        int64_t kc = tni_at_most(w->x->depth, w->x->k - pc);
        w->fn((char *)w->to + (pc * w->room + first * kc) * w->itemsize,
              (const char *)w->from.data + (pc * w->along + first * w->across) * w->itemsize,
              w->from.row, w->from.col, tni_at_most(w->each, w->all - first), kc);
    }
    return TN_OK;
}

static tn_status copy_operand(copy *w, int64_t panel)
{
    w->each = tni_round_up(COPY_ELEMENTS / w->x->depth + 1, panel);
    w->pieces = (w->all + w->each - 1) / w->each;
    int64_t blocks = (w->x->k + w->x->depth - 1) / w->x->depth;
    return tni_pool_for(blocks * w->pieces, 1, copy_pieces, w);
}

static tn_status copy_a(const tni_gemm_packed_kernels *kernels, const tni_gemm_packed *x,
                        const tni_matrix *a, void *to, int64_t itemsize)
{
    copy w = {.x = x,
              .fn = kernels->copy_a,
              .from = *a,
              .to = to,
              .along = a->col,
              .across = a->row,
              .all = x->m,
              .room = x->m_room,
              .itemsize = itemsize};
    return copy_operand(&w, kernels->mr);
}

static tn_status copy_b(const tni_gemm_packed_kernels *kernels, const tni_gemm_packed *x,
                        const tni_matrix *b, void *to, int64_t itemsize)
{
    copy w = {.x = x,
              .fn = kernels->copy_b,
              .from = *b,
              .to = to,
              .along = b->row,
              .across = b->col,
              .all = x->n,
              .room = x->n_room,
              .itemsize = itemsize};
    return copy_operand(&w, kernels->nr);
}

/* ---- tiles ---- */

typedef struct tiles {
    const tni_gemm_packed_kernels *kernels;
    const tni_gemm_packed *x;
    int64_t down, across; /* tiles above and beside each other */
    int64_t panels_a, panels_b;
    size_t room; /* bytes for sums that are not whole yet */
} tiles;

static tn_status run_tiles(int64_t begin, int64_t end, void *arg)
{
    const tiles *w = arg;
    const int64_t mr = w->kernels->mr, nr = w->kernels->nr;
    void *room = NULL;
    if (w->room) {
        room = tni_block_alloc(w->room);
        TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
                 w->room);
    }
    for (int64_t t = begin; t < end; t++) {
        int64_t i = t / w->across, j = t % w->across;
        w->kernels->tile(w->x, w->panels_a * i / w->down * mr,
                         tni_at_most(w->panels_a * (i + 1) / w->down * mr, w->x->m),
                         w->panels_b * j / w->across * nr,
                         tni_at_most(w->panels_b * (j + 1) / w->across * nr, w->x->n), room);
    }
    tni_block_free(room, w->room);
    return TN_OK;
}

/* Tiles are as large as is good for one thread, but so many that several end together, and of
 * equal size but for a panel. */
static tn_status compute(const tni_gemm_packed_kernels *kernels, const tni_gemm_packed *x,
                         size_t itemsize)
{
    int64_t rows = tni_at_most(TILE_ROWS, x->m), columns = tni_at_most(TILE_COLUMNS, x->n);
    tiles w = {.kernels = kernels,
               .x = x,
               .panels_a = tni_pieces_of(x->m, kernels->mr),
               .panels_b = tni_pieces_of(x->n, kernels->nr)};
    for (;;) {
        w.down = tni_pieces_of(w.panels_a, tni_pieces_of(rows, kernels->mr));
        w.across = tni_pieces_of(w.panels_b, tni_pieces_of(columns, kernels->nr));
        if (w.down * w.across >= FEWEST_TILES || (rows <= 48 && columns <= 128))
            break;
        if (columns > 2 * rows)
            columns /= 2;
        else
            rows /= 2;
    }
    if (!x->turned && x->k > x->depth)
        w.room = (size_t)(tni_pieces_of(w.panels_a, w.down) * kernels->mr *
                          tni_pieces_of(w.panels_b, w.across) * kernels->nr) *
                 itemsize;
    return tni_pool_for(w.down * w.across, 1, run_tiles, &w);
}

/* ---- a product ---- */

static tni_matrix turn(const tni_matrix *x)
{
    return (tni_matrix){x->data, x->col, x->row, x->batch};
}

/* A product that is cut into parts, and room for their copies. */
typedef struct large {
    const tni_gemm_packed_kernels *kernels;
    tni_gemm_args g;
    bool turned;
    const void *alpha, *beta, *one;
    int64_t itemsize;
    char *a_room, *b_room;
} large;

/* Columns from @p j on, terms of the sums from @p p on: B is copied once for all rows. */
static tn_status run_columns(const large *w, int64_t j, int64_t p)
{
    const tni_gemm_args *g = &w->g;
    const int64_t k = tni_at_most(PART_DEPTH, g->k - p), n = tni_at_most(PART_COLUMNS, g->n - j);
    tni_gemm_packed x = {.n = n,
                         .k = k,
                         .depth = w->turned ? k : TNI_GEMM_DEPTH(TNI_GEMM_KC(w->itemsize), k),
                         .b = w->b_room,
                         .n_room = tni_round_up(n, w->kernels->nr),
                         .turned = w->turned,
                         .alpha = w->alpha,
                         .beta = p > 0 ? w->one : w->beta};
    tni_matrix b = tni_matrix_at(&g->b, p, j, w->itemsize);
    TN_TRY(copy_b(w->kernels, &x, &b, w->b_room, w->itemsize));
    for (int64_t i = 0; i < g->m; i += PART_ROWS) {
        tni_matrix a = tni_matrix_at(&g->a, i, p, w->itemsize);
        x.m = tni_at_most(PART_ROWS, g->m - i);
        x.m_room = tni_round_up(x.m, w->kernels->mr);
        x.c = tni_matrix_at(&g->c, i, j, w->itemsize);
        x.d = p > 0 ? x.c : tni_matrix_at(&g->d, i, j, w->itemsize);
        x.a = w->turned ? a.data : w->a_room;
        x.a_row = w->turned ? a.row : 0;
        if (!w->turned)
            TN_TRY(copy_a(w->kernels, &x, &a, w->a_room, w->itemsize));
        TN_TRY(compute(w->kernels, &x, (size_t)w->itemsize));
    }
    return TN_OK;
}

tn_status tni_gemm_run_packed(const tni_gemm_packed_kernels *kernels, const tni_gemm_args *g,
                              tni_gemm_way way, const void *alpha, const void *beta,
                              size_t itemsize)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    large w = {.kernels = kernels,
               .g = *g,
               .turned = way == TNI_GEMM_PACKED_TURNED,
               .alpha = alpha,
               .beta = beta,
               .one = itemsize == sizeof one_f32 ? (const void *)&one_f32 : &one_f64,
               .itemsize = (int64_t)itemsize};
    if (w.turned)
        w.g = (tni_gemm_args){.m = g->n,
                              .n = g->m,
                              .k = g->k,
                              .a = turn(&g->b),
                              .b = turn(&g->a),
                              .c = turn(&g->c),
                              .d = turn(&g->d)};
    if (w.g.k <= (w.turned ? PART_DEPTH : TNI_GEMM_KC(w.itemsize)) && tni_gemm_is_apart(&w.g))
        return tni_gemm_run_apart(kernels, &w.g, w.turned, alpha, beta, itemsize);
    const int64_t k = tni_at_most(w.g.k, PART_DEPTH);
    size_t of_b =
        (size_t)(tni_round_up(tni_at_most(w.g.n, PART_COLUMNS), kernels->nr) * k) * itemsize;
    size_t of_a = (size_t)(tni_round_up(tni_at_most(w.g.m, PART_ROWS), kernels->mr) * k) * itemsize;
    size_t nbytes = of_b + (w.turned ? 0 : of_a);
    w.b_room = tni_block_alloc(nbytes);
    TN_CHECK(w.b_room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             nbytes);
    w.a_room = w.b_room + of_b;
    tn_status status = TN_OK;
    for (int64_t j = 0; j < w.g.n && status == TN_OK; j += PART_COLUMNS) {
        for (int64_t p = 0; p < w.g.k && status == TN_OK; p += PART_DEPTH)
            status = run_columns(&w, j, p);
    }
    tni_block_free(w.b_room, nbytes);
    return status;
}
