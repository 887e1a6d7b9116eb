/* SPDX-License-Identifier: MIT */
/* cpu/gemm_rows.c: large products of floats: which part of one is whose.
 *
 * A is read as it lies where its rows are contiguous: to copy it takes as long as to copy B, and
 * what was copied is fetched once more. Some rows of it stay in the first-level cache while they go
 * over a block of B. That block is copied by the thread that uses it and stays in its second-level
 * cache, so nobody waits for anybody. Kernels of narrow vectors copy A as well: see
 * kern/gemm_panels.inc.
 *
 * The sum over k runs in blocks of the same depth however the product is cut, so the cut may depend
 * on the number of threads. */
#include <stdatomic.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/gemm_cut.h"
#include "cpu/gemm_packed.h"

/* A block of B fills at most three fifths of the second-level cache; its bytes where the system
 * does not say. */
#define SECOND_CACHE INT64_C(1048576)
#define MOST_COLUMNS INT64_C(1536)
/* Rows of a piece, at most. Rows and columns below which none is cut for want of pieces: what was
 * copied must be used. Rows that pieces with the same copy of B are left with when they are cut so
 * that threads end together, and bytes up to which such a copy is kept. */
#define ROWS     INT64_C(2048)
#define FEWEST   INT64_C(64)
#define FEW_ROWS INT64_C(96)
#define KEPT     INT64_C(4194304)
/* Pieces for each thread from which on it does not matter that one has one more: eleven for two
 * threads are a twelfth of the time in which one waits for the other. */
#define MANY 16
/* Bytes of operands that are more than a last cache keeps for one process. What the system says of
 * that cache cannot be relied on: the C library knows of 384 MB where two processors have 32. */
#define FAR INT64_C(33554432)

/* What a thread has copied: it may do the next rows with it. */
typedef struct holder {
    _Alignas(64) void *room;
    size_t nbytes;
    int64_t block; /* which columns of which entry */
} holder;
enum { HOLDERS = 32 };

typedef struct pieces {
    const tni_gemm_large *kernel;
    const tni_gemm_args *g;
    const void *alpha, *beta;
    size_t itemsize;
    int64_t down, across;
    bool keeps; /* copies of B, from one piece to the next */
    tni_gemm_reads reads;
    holder holders[HOLDERS];
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

/* Room for a block of the largest size that this product has. */
static tn_status make_room(const pieces *w, holder *h)
{
    tni_gemm_args g = *w->g;
    g.n = tni_pieces_of(tni_pieces_of(g.n, TNI_GEMM_PANEL), w->across) * TNI_GEMM_PANEL;
    h->nbytes = tni_gemm_deep_room(w->kernel, &g, w->keeps, w->reads, w->itemsize);
    h->room = tni_block_alloc(h->nbytes);
    h->block = -1;
    TN_CHECK(h->room, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for a matrix product",
             h->nbytes);
    return TN_OK;
}

static tn_status run_piece(pieces *w, int64_t block, int64_t i)
{
    const int64_t entry = block / w->across, j = block % w->across;
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
    const int thread = tni_pool_thread_index();
    holder own = {0}, *h = thread < HOLDERS ? &w->holders[thread] : &own;
    if (!h->room)
        TN_TRY(make_room(w, h));
    tni_gemm_copies copies = !w->keeps           ? TNI_GEMM_COPY
                             : h->block == block ? TNI_GEMM_KEPT
                                                 : TNI_GEMM_COPY_KEEP;
    w->kernel->run(&g, w->alpha, w->beta, h->room, copies, w->reads);
    h->block = block;
    tni_block_free(own.room, own.nbytes);
    return TN_OK;
}

static tn_status run_pieces(int64_t begin, int64_t end, void *arg)
{
    pieces *w = arg;
    for (int64_t i = begin; i < end; i++)
        TN_TRY(run_piece(w, i / w->down, i % w->down));
    return TN_OK;
}

/* What the system says of a cache, or @p unknown. @p asked keeps the answer: a virtual machine
 * takes microseconds to give it. */
static int64_t ask(int what, int64_t unknown, _Atomic int64_t *asked)
{
    int64_t answer = atomic_load_explicit(asked, memory_order_relaxed);
    if (answer == 0) {
        answer = sysconf(what);
        answer = answer > 0 ? answer : unknown;
        atomic_store_explicit(asked, answer, memory_order_relaxed);
    }
    return answer;
}

/* Columns of a block of B of this depth. */
static int64_t most_columns(int64_t depth)
{
    static _Atomic int64_t asked;
    int64_t nbytes = ask(_SC_LEVEL2_CACHE_SIZE, SECOND_CACHE, &asked);
    nbytes = nbytes / 5 * 3;
    int64_t n = nbytes / depth / TNI_GEMM_PANEL * TNI_GEMM_PANEL;
    return n < 128 ? 128 : n > MOST_COLUMNS ? MOST_COLUMNS : n;
}

bool tni_gemm_rows_collide(int64_t row, int64_t itemsize, int rows)
{
    static _Atomic int64_t size, ways;
    const int64_t of_ways = ask(_SC_LEVEL1_DCACHE_ASSOC, 8, &ways);
    const int64_t way = ask(_SC_LEVEL1_DCACHE_SIZE, 32768, &size) / of_ways;
    return of_ways < rows && way > 0 && row * itemsize % way == 0;
}

/* From the last cache the processor fetches rows by itself in time: to ask for them takes half a
 * hundredth of a product of 1024³, and saves 2 to 5 of 2048³ and 3072³ (Zen 5). */
static bool is_far(const tni_gemm_args *g, int64_t itemsize)
{
    const double elements =
        (double)g->m * (double)g->k + (double)g->k * (double)g->n + (double)g->m * (double)g->n;
    return elements * (double)itemsize > (double)FAR;
}

static tni_gemm_reads choose_reads(const tni_gemm_large *kernel, const tni_gemm_args *g,
                                   int64_t itemsize)
{
    if (g->a.col == 1 && g->m >= FEWEST && tni_gemm_rows_collide(g->a.row, itemsize, kernel->mr))
        return TNI_GEMM_SPREADS;
    return is_far(g, itemsize) ? TNI_GEMM_FETCHES : TNI_GEMM_LIES;
}

/* One for each thread or more, a whole number for each where they are few. A cut along rows copies
 * B once more, one along columns reads A once more, which is less: so pieces should be large both
 * ways, and rather have many rows; but where B is not copied, or A is as well, which takes longer,
 * many columns. */
static void choose_pieces(pieces *w)
{
    const int64_t m = w->g->m, n = w->g->n, threads = tn_num_threads();
    const int64_t deep = TNI_GEMM_DEEP((int64_t)w->itemsize);
    const int64_t depth = TNI_GEMM_DEPTH(deep, w->g->k);
    /* What goes over a copy of A should be wide; elsewhere a block of B stays in a cache. */
    const bool wide = w->kernel->copies_a && !tni_gemm_is_short(w->g);
    w->across = tni_pieces_of(n, wide ? MOST_COLUMNS : most_columns(depth * (int64_t)w->itemsize));
    w->down = tni_pieces_of(m, ROWS);
    for (;;) {
        int64_t blocks = w->g->batch * w->across, all = blocks * w->down;
        if (all % threads == 0 || all >= MANY * threads)
            break;
        int64_t rows = m / (w->down + 1), columns = n / (w->across + 1);
        if (rows < FEWEST && columns < FEWEST)
            break;
        const int64_t even = tni_gemm_is_short(w->g) || wide ? columns / 2 : 2 * columns;
        if (columns < FEWEST || rows > even)
            w->down++;
        else
            w->across++;
    }
    w->keeps = w->g->k <= KEPT / (tni_pieces_of(n, w->across) * (int64_t)w->itemsize);
    while (w->keeps && w->g->batch * w->across * w->down < 4 * threads &&
           m / (2 * w->down) >= FEW_ROWS)
        w->down *= 2;
}

tn_status tni_gemm_run_by_rows(const tni_gemm_large *kernel, const tni_gemm_args *g,
                               const void *alpha, const void *beta, size_t itemsize)
{
    pieces w = {
        .kernel = kernel, .g = g, .alpha = alpha, .beta = beta, .itemsize = itemsize, .down = 1};
    w.reads = choose_reads(kernel, g, (int64_t)itemsize);
    choose_pieces(&w);
    tn_status status = tni_pool_for(g->batch * w.down * w.across, 1, run_pieces, &w);
    for (int i = 0; i < HOLDERS; i++)
        tni_block_free(w.holders[i].room, w.holders[i].nbytes);
    return status;
}
