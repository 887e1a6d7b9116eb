/* SPDX-License-Identifier: MIT */
/* cpu/gemm_rows.c: large products of floats whose A is read as it lies.
 *
 * To copy A takes as long as to copy B, a fortieth of a product of 1024³, and what was copied is
 * fetched once more. Read as it lies it need not be: some rows of it stay in the first-level cache
 * while they go over a block of B. That block is made by the thread that uses it and stays in its
 * second-level cache, so nobody waits for anybody.
 *
 * The sum over k runs in blocks of the same depth however the product is cut, so the cut may depend
 * on the number of threads. */
#include <stdatomic.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/gemm_cut.h"
#include "cpu/gemm_packed.h"

/* Columns of a piece: at most so many that its block of B fills three fifths of the second-level
 * cache. */
#define FEW_COLUMNS    INT64_C(256)
#define FEWEST_COLUMNS INT64_C(64)
/* Rows of a piece: a block of B is copied again for each, which is a fortieth of the time at 1024
 * rows and an eighth at 192. */
#define ROWS        INT64_C(2048)
#define FEWEST_ROWS INT64_C(192)

typedef struct pieces {
    tni_gemm_fn kernel;
    const tni_gemm_args *g;
    const void *alpha, *beta;
    size_t itemsize;
    int64_t down, across;
} pieces;

static void move_to(tni_matrix *x, int64_t entry, int64_t row, int64_t column, size_t itemsize)
{
    int64_t by = entry * x->batch + row * x->row + column * x->col;
    x->data = (const char *)x->data + by * (int64_t)itemsize;
}

/* Where piece @p i of @p count begins: a whole number of panels each. */
static int64_t begin_of(int64_t n, int64_t panel, int64_t i, int64_t count)
{
    int64_t begin = tni_pieces_of(n, panel) * i / count * panel;
    return begin < n ? begin : n;
}

static tn_status run_piece(const pieces *w, int64_t entry, int64_t i, int64_t j)
{
    tni_gemm_args g = *w->g;
    g.batch = 1;
    /* Panels of any instruction set: 24 rows are two of twelve or four of six. */
    int64_t row = begin_of(g.m, 24, i, w->down);
    int64_t column = begin_of(g.n, TNI_GEMM_PANEL, j, w->across);
    g.m = begin_of(g.m, 24, i + 1, w->down) - row;
    g.n = begin_of(g.n, TNI_GEMM_PANEL, j + 1, w->across) - column;
    move_to(&g.a, entry, row, 0, w->itemsize);
    move_to(&g.b, entry, 0, g.gather_b ? 0 : column, w->itemsize);
    move_to(&g.c, entry, row, column, w->itemsize);
    move_to(&g.d, entry, row, column, w->itemsize);
    g.gather_first += g.gather_b ? column : 0;
    size_t nbytes = tni_gemm_deep_room(g.n, g.k, w->itemsize);
    void *room = tni_block_alloc(nbytes);
    TN_CHECK(room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             nbytes);
    w->kernel(&g, w->alpha, w->beta, room);
    tni_block_free(room, nbytes);
    return TN_OK;
}

static tn_status run_pieces(int64_t begin, int64_t end, void *arg)
{
    const pieces *w = arg;
    for (int64_t i = begin; i < end; i++)
        TN_TRY(run_piece(w, i / (w->down * w->across), i / w->across % w->down, i % w->across));
    return TN_OK;
}

static int64_t most_columns(void)
{
    static _Atomic int64_t most; /* asked once: a virtual machine takes microseconds to answer */
    int64_t n = atomic_load_explicit(&most, memory_order_relaxed);
    if (n == 0) {
        int64_t nbytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
        n = nbytes > 0 ? nbytes / 5 * 3 / TNI_GEMM_DEEP(1) : FEW_COLUMNS;
        n = n < 128 ? 128 : n > 384 ? 384 : n;
        atomic_store_explicit(&most, n, memory_order_relaxed);
    }
    return n;
}

/* Two for each thread or more, and a whole number for each where they are few. */
static void choose_pieces(pieces *w)
{
    const int64_t m = w->g->m, n = w->g->n, threads = tn_num_threads(), wanted = 2 * threads;
    const int64_t batch = w->g->batch;
    w->across = tni_pieces_of(n, most_columns());
    w->down = tni_pieces_of(m, ROWS);
    while (batch * w->across * w->down < wanted && n / (w->across + 1) >= FEW_COLUMNS)
        w->across++;
    while (batch * w->across * w->down < wanted && m / (w->down + 1) >= FEWEST_ROWS)
        w->down++;
    while (batch * w->across * w->down < wanted && n / (w->across + 1) >= FEWEST_COLUMNS)
        w->across++;
    int64_t all = batch * w->across * w->down, even = tni_pieces_of(w->across, threads) * threads;
    if (all % threads && all < 4 * wanted && n / even >= FEWEST_COLUMNS)
        w->across = even;
}

tn_status tni_gemm_run_by_rows(tni_gemm_fn kernel, const tni_gemm_args *g, const void *alpha,
                               const void *beta, size_t itemsize)
{
    pieces w = {kernel, g, alpha, beta, itemsize, 1, 1};
    choose_pieces(&w);
    return tni_pool_for(g->batch * w.down * w.across, 1, run_pieces, &w);
}
