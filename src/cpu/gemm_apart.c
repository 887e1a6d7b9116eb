/* SPDX-License-Identifier: MIT */
/* cpu/gemm_apart.c: large products of floats of which each thread makes its own copy of B.
 *
 * What one processor has just written reaches another slowly: a hundred kilobytes take longer than
 * to copy them does. Where B is small beside the rows of A that a thread multiplies by it, as a
 * batch is beside a layer's weights, a copy for each costs less than one that all share, and nobody
 * waits until it is made. */
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/gemm_cut.h"
#include "cpu/gemm_packed.h"

/* Elements of B, and rows of A for each thread, by which copying B pays. */
#define MOST_OF_B    (INT64_C(96) << 10)
#define FEWEST_ROWS  INT64_C(96)
#define MOST_THREADS 64
/* Panels of A in a tile: so few that the threads end together. */
#define TILE_PANELS 2

typedef struct apart {
    const tni_gemm_packed_kernels *kernels;
    const tni_gemm_args *g;
    tni_gemm_packed x; /* what all tiles have in common */
    int64_t tiles, panels;
    int64_t itemsize;
    int threads;
    size_t of_b, nbytes; /* of a thread's copy of B, and of all it copies */
    char *room;          /* nbytes for each thread */
    bool *copied;        /* whether a thread has its B */
} apart;

static void run_tile(const apart *w, int64_t tile, void *b, void *copy)
{
    const tni_gemm_args *g = w->g;
    const int64_t mr = w->kernels->mr, i = w->panels * tile / w->tiles * mr;
    tni_gemm_packed x = w->x;
    tni_matrix a = tni_matrix_at(&g->a, i, 0, w->itemsize);
    x.m = tni_at_most(w->panels * (tile + 1) / w->tiles * mr, g->m) - i;
    x.m_room = tni_round_up(x.m, mr);
    x.b = b;
    x.a = a.data;
    if (!x.turned) {
        w->kernels->copy_a(copy, a.data, a.row, a.col, x.m, g->k);
        x.a = copy;
    }
    x.c = tni_matrix_at(&g->c, i, 0, w->itemsize);
    x.d = tni_matrix_at(&g->d, i, 0, w->itemsize);
    w->kernels->tile(&x, 0, x.m, 0, x.n, NULL);
}

static tn_status run_tiles(int64_t begin, int64_t end, void *arg)
{
    const apart *w = arg;
    const int thread = tni_pool_thread_index();
    /* More threads than there were when room was made: tn_set_num_threads came in between. */
    const bool late = thread >= w->threads;
    char *room = late ? tni_block_alloc(w->nbytes) : w->room + (size_t)thread * w->nbytes;
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             w->nbytes);
    if (late || !w->copied[thread]) {
        const tni_matrix *b = &w->g->b;
        w->kernels->copy_b(room, b->data, b->row, b->col, w->g->n, w->g->k);
        if (!late)
            w->copied[thread] = true;
    }
    for (int64_t tile = begin; tile < end; tile++)
        run_tile(w, tile, room, room + w->of_b);
    if (late)
        tni_block_free(room, w->nbytes);
    return TN_OK;
}

bool tni_gemm_is_apart(const tni_gemm_args *g)
{
    const int threads = tn_num_threads();
    return g->n <= MOST_OF_B / g->k && threads <= MOST_THREADS && g->m >= FEWEST_ROWS * threads;
}

tn_status tni_gemm_run_apart(const tni_gemm_packed_kernels *kernels, const tni_gemm_args *g,
                             bool turned, const void *alpha, const void *beta, size_t itemsize)
{
    const int64_t size = (int64_t)itemsize, panels = tni_pieces_of(g->m, kernels->mr);
    bool copied[MOST_THREADS] = {false};
    apart w = {.kernels = kernels,
               .g = g,
               .x = {.n = g->n,
                     .k = g->k,
                     .depth = g->k,
                     .n_room = tni_round_up(g->n, kernels->nr),
                     .a_row = turned ? g->a.row : 0,
                     .turned = turned,
                     .alpha = alpha,
                     .beta = beta},
               .panels = panels,
               .itemsize = size,
               .threads = tn_num_threads(),
               .copied = copied};
    if (w.threads > MOST_THREADS)
        w.threads = MOST_THREADS;
    /* As many for each thread. */
    w.tiles = tni_round_up(tni_pieces_of(panels, TILE_PANELS), w.threads);
    w.of_b = (size_t)tni_round_up(w.x.n_room * g->k * size, 64);
    size_t of_a = turned ? 0 : (size_t)(TILE_PANELS * kernels->mr * g->k * size);
    /* A page between them: else both would fall on the same lines of the caches. */
    w.nbytes = w.of_b + (size_t)tni_round_up((int64_t)of_a, 64) + 4096 + 64;
    const size_t nbytes = w.nbytes * (size_t)w.threads;
    w.room = tni_block_alloc(nbytes);
    TN_CHECK(w.room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             nbytes);
    tn_status status = tni_pool_for(w.tiles, 1, run_tiles, &w);
    tni_block_free(w.room, nbytes);
    return status;
}
