/* SPDX-License-Identifier: MIT */
/* cpu/gemm_apart.c: transposed products of few rows, of which each thread makes its own copy.
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
    const tni_gemm_packed *x; /* but for its copy of B */
    const tni_matrix *b;
    int64_t tiles, panels;
    int threads;
    size_t nbytes; /* of a thread's copy of B */
    char *room;    /* nbytes for each thread */
    bool *copied;  /* whether a thread has its B */
} apart;

static tn_status run_tiles(int64_t begin, int64_t end, void *arg)
{
    const apart *w = arg;
    const int thread = tni_pool_thread_index();
    const int64_t mr = w->kernels->mr;
    /* More threads than there were when room was made: tn_set_num_threads came in between. */
    const bool late = thread >= w->threads;
    char *room = late ? tni_block_alloc(w->nbytes) : w->room + (size_t)thread * w->nbytes;
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             w->nbytes);
    if (late || !w->copied[thread]) {
        w->kernels->copy_b(room, w->b->data, w->b->row, w->b->col, w->x->n, w->x->k);
        if (!late)
            w->copied[thread] = true;
    }
    tni_gemm_packed x = *w->x;
    x.b = room;
    for (int64_t tile = begin; tile < end; tile++)
        w->kernels->tile(&x, w->panels * tile / w->tiles * mr,
                         tni_at_most(w->panels * (tile + 1) / w->tiles * mr, x.m));
    if (late)
        tni_block_free(room, w->nbytes);
    return TN_OK;
}

bool tni_gemm_is_apart(const tni_gemm_packed *x)
{
    const int threads = tn_num_threads();
    return x->n <= MOST_OF_B / x->k && threads <= MOST_THREADS && x->m >= FEWEST_ROWS * threads;
}

tn_status tni_gemm_run_apart(const tni_gemm_packed_kernels *kernels, const tni_gemm_packed *x,
                             const tni_matrix *b, size_t itemsize)
{
    bool copied[MOST_THREADS] = {false};
    apart w = {.kernels = kernels,
               .x = x,
               .b = b,
               .panels = tni_pieces_of(x->m, kernels->mr),
               .threads = tn_num_threads(),
               .copied = copied};
    if (w.threads > MOST_THREADS)
        w.threads = MOST_THREADS;
    /* As many for each thread. */
    w.tiles = tni_round_up(tni_pieces_of(w.panels, TILE_PANELS), w.threads);
    /* A page between them: else all would fall on the same lines of the caches. */
    const int64_t of_b = tni_round_up(x->n, kernels->nr) * x->k * (int64_t)itemsize;
    w.nbytes = (size_t)tni_round_up(of_b, 64) + 4096 + 64;
    const size_t nbytes = w.nbytes * (size_t)w.threads;
    w.room = tni_block_alloc(nbytes);
    TN_CHECK(w.room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             nbytes);
    tn_status status = tni_pool_for(w.tiles, 1, run_tiles, &w);
    tni_block_free(w.room, nbytes);
    return status;
}
