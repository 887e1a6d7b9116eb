/* SPDX-License-Identifier: MIT */
/* cpu/gemm_kernels.h: the table of product kernels. kern/gemm.c is compiled once for each
 * instruction set and defines one such table each time. */
#ifndef TNI_CPU_GEMM_KERNELS_H
#define TNI_CPU_GEMM_KERNELS_H

#include "cpu/gemm.h"
#include "cpu/loops.h"

/* One entry of the batch, on one thread; columns of C and of D are contiguous (col 1). @p alpha and
 * @p beta point to elements; a NULL beta is 0. @p room is scratch memory, 64-byte aligned, of
 * tni_gemm_room bytes. */
typedef void (*tni_gemm_fn)(const tni_gemm_args *g, const void *alpha, const void *beta,
                            void *room);
/* The same for a large product: any strides of A, B may be gathered; @p room has tni_gemm_deep_room
 * bytes. */
typedef enum tni_gemm_copies {
    TNI_GEMM_COPY,      /* a block at a time */
    TNI_GEMM_COPY_KEEP, /* all of B, to stay in the room */
    TNI_GEMM_KEPT,      /* it is there: a call with the same B left it */
} tni_gemm_copies;
typedef enum tni_gemm_reads {                   /* of rows of A that are contiguous */
                              TNI_GEMM_LIES,    /* as they lie */
                              TNI_GEMM_FETCHES, /* the same, and the next ones are fetched meanwhile
                                                 */
                              TNI_GEMM_SPREADS, /* copied further apart before use, and the next
                                                   ones fetched */
} tni_gemm_reads;
typedef void (*tni_gemm_large_fn)(const tni_gemm_args *g, const void *alpha, const void *beta,
                                  void *room, tni_gemm_copies copies, tni_gemm_reads reads);
typedef struct tni_gemm_large {
    tni_gemm_large_fn run;
    int mr;        /* rows of a strip of C */
    bool copies_a; /* always, unless B is used as it lies; see kern/gemm_panels.inc */
} tni_gemm_large;
/* One column: n is 1, B is contiguous (row 1); C and D may have any stride. */
typedef void (*tni_gemv_fn)(const tni_gemm_args *g, const void *alpha, const void *beta);

/* Terms of such a product at most. */
#define TNI_GEMM_PACKED_DEPTH 1024
/* The transposed product of few rows, over a copy of them that all tiles share: A is read as it
 * lies, B was copied into panels of `nr` columns, [p][nr] each, filled up with zeros. What are rows
 * here are columns of the result. */
typedef struct tni_gemm_packed {
    int64_t m, n, k;
    const void *a; /* its rows are contiguous, */
    int64_t a_row; /* so far apart */
    bool spreads;  /* they are copied further apart before use */
    const void *b;
    tni_matrix c, d;          /* columns contiguous */
    const void *alpha, *beta; /* beta NULL: 0 */
} tni_gemm_packed;

/* Copies @p k rows of @p n columns of B from @p from. */
typedef void (*tni_gemm_copy_fn)(void *to, const void *from, int64_t row, int64_t col, int64_t n,
                                 int64_t k);
typedef struct tni_gemm_packed_kernels {
    int mr, nr;
    tni_gemm_copy_fn copy_b;
    /* Rows i0 to i1 of the product, the first of a panel. */
    void (*tile)(const tni_gemm_packed *x, int64_t i0, int64_t i1);
} tni_gemm_packed_kernels;

/* C = A @ B of contiguous matrices, m x k and k x n, that stay in the first-level cache: what a
 * call costs is as much as a product of 8 x 8. Sizes are at least 1. */
typedef void (*tni_gemm_tiny_fn)(int64_t m, int64_t n, int64_t k, const void *a, const void *b,
                                 void *c);
#define TNI_GEMM_TINY  32
#define TNI_GEMM_ALONE (INT64_C(1) << 17) /* multiply-adds that are not worth another thread */
static inline bool tni_gemm_is_tiny(int64_t m, int64_t n, int64_t k)
{
    /* At least two rows and columns, else it is one of a vector. No sum of sizes overflows. */
    return (((uint64_t)m - 2) | ((uint64_t)n - 2) | ((uint64_t)k - 1)) < TNI_GEMM_TINY;
}

typedef struct tni_gemm_table {
    tni_gemm_fn gemm[TNI_LOOP_DTYPES]; /* NULL for halves and bool */
    tni_gemv_fn gemv[TNI_LOOP_DTYPES];
    const tni_gemm_packed_kernels *packed[TNI_LOOP_DTYPES]; /* float and double */
    tni_gemm_large large[TNI_LOOP_DTYPES];                  /* the same */
    /* A B that is used as it lies, see tni_gemm_is_small */
    tni_gemv_fn small[TNI_LOOP_DTYPES];
    tni_gemm_tiny_fn tiny[TNI_LOOP_DTYPES]; /* NULL but for float and double */
    /* A and B are contiguous along k (col 1, row 1), n is at most TNI_GEMM_THIN; C and D may have
     * any strides. */
    tni_gemv_fn thin[TNI_LOOP_DTYPES];
} tni_gemm_table;

/* A product of rows with rows, few on one side, is done without a copy of B. At the end lanes are
 * added up, once for each element of C: that is worth it where sums are long; sooner where the few
 * would leave lanes of a vector unused. */
#define TNI_GEMM_THIN 16
static inline bool tni_gemm_is_thin(const tni_gemm_args *g)
{
    const int64_t few = g->m < g->n ? g->m : g->n;
    return few <= TNI_GEMM_THIN && g->k >= 192 && g->k >= (few <= 12 ? 24 : 64) * few;
}

/* Sizes of the blocks that the float kernels copy into the order of use: of B KC x NC, of A MC x
 * KC. Panels of a block are at most PANEL wide. A block of B stays in the second-level cache, and
 * scratch memory below what the C library asks the system for anew each time. */
#define TNI_GEMM_KC(itemsize) ((int64_t)(1024 / (itemsize)))
#define TNI_GEMM_NC           64
#define TNI_GEMM_MC           48
#define TNI_GEMM_PANEL        32
/* A B of at most so many elements is used as it lies when its rows are contiguous; of at most so
 * many it is transposed on the stack when they are not. A larger one is used as it lies too, KC
 * rows at a time, when few rows of A would share a copy. */
#define TNI_GEMM_DIRECT   16384
#define TNI_GEMM_TURN     2048
#define TNI_GEMM_FEW_ROWS 96
#define TNI_GEMM_NEAR     131072

/* Whether nothing is copied, and B is small. Sizes are at least 1. */
static inline bool tni_gemm_is_small(const tni_gemm_args *g)
{
    return g->b.col == 1 && (g->a.col == 1 || g->a.row == 1) && !g->gather_a && !g->gather_b &&
           g->n <= TNI_GEMM_DIRECT && g->k <= TNI_GEMM_DIRECT && g->n * g->k <= TNI_GEMM_DIRECT;
}

/* Whether B fits the second-level cache and its rows do not fall on the same lines of it: then it
 * is as good as a copy. */
static inline bool tni_gemm_is_near(const tni_gemm_args *g)
{
    return g->b.col == 1 && g->b.row % 512 != 0 && g->n <= TNI_GEMM_NEAR && g->k <= TNI_GEMM_NEAR &&
           g->n * g->k <= TNI_GEMM_NEAR;
}

/* @p k in equal blocks of at most @p most, each of them a whole number of vectors. */
#define TNI_GEMM_DEPTH(most, k) \
    ((k) <= (most) ? (k) : ((k) / (((k) + (most)-1) / (most)) + 15) / 16 * 16)

/* Rows of B that a large product copies at once, and goes over with all its rows: many, because C
 * is read and written once for each such block. Columns of it lie in panels, the last of them
 * filled up. Where all blocks are kept they lie one behind the other. */
#define TNI_GEMM_DEEP(itemsize) ((int64_t)(4608 / (itemsize)))
/* Terms of a sum up to which a large product reads B as it lies, where its rows are contiguous: to
 * copy so few of them for so many rows of A is not worth it. */
#define TNI_GEMM_SHORT 128
static inline bool tni_gemm_is_short(const tni_gemm_args *g)
{
    return g->k <= TNI_GEMM_SHORT && g->b.col == 1 && !g->gather_b;
}
/* Elements between rows of A that were copied to lie apart: a line. There is room for many more of
 * them than are copied at once. */
#define TNI_GEMM_APART(itemsize) ((int64_t)(64 / (itemsize)))
/* Rows of a block of A, KC deep, that was copied in panels. */
#define TNI_GEMM_PANEL_ROWS 144
static inline size_t tni_gemm_deep_room(const tni_gemm_large *kernel, const tni_gemm_args *g,
                                        bool keeps, tni_gemm_reads reads, size_t itemsize)
{
    int64_t kc = g->k < TNI_GEMM_DEEP(itemsize) ? g->k : TNI_GEMM_DEEP(itemsize);
    int64_t columns = (g->n + TNI_GEMM_PANEL - 1) / TNI_GEMM_PANEL * TNI_GEMM_PANEL;
    int64_t of_a = g->a.col == 1 && reads != TNI_GEMM_SPREADS ? 0 : kc * TNI_GEMM_MC;
    if (kernel->copies_a && !tni_gemm_is_short(g))
        of_a = TNI_GEMM_KC(itemsize) * TNI_GEMM_PANEL_ROWS;
    int64_t of_b = tni_gemm_is_short(g) ? 0 : (keeps ? g->k : kc) * columns;
    return (size_t)(of_a + of_b) * itemsize + TNI_GATHER_SLACK;
}

/* Whether the float kernels copy blocks. */
static inline bool tni_gemm_blocked(const tni_gemm_args *g)
{
    if (g->gather_a || g->gather_b || (g->a.col != 1 && g->a.row != 1))
        return true;
    if (tni_gemm_is_near(g) || (g->b.col == 1 && g->m <= TNI_GEMM_FEW_ROWS))
        return false;
    /* The sizes first: an operand that repeats elements may have more of them than fit a number. */
    return g->n > TNI_GEMM_DIRECT || g->k > TNI_GEMM_DIRECT ||
           g->n * g->k > (g->b.col == 1 ? TNI_GEMM_DIRECT : TNI_GEMM_TURN);
}

/* Columns of a block of B. A gathered A is dear to copy: more columns for each copy. */
static inline int64_t tni_gemm_nc(const tni_gemm_args *g)
{
    return g->gather_a ? 4 * TNI_GEMM_NC : TNI_GEMM_NC;
}

/* Bytes of scratch memory that a kernel needs for these sizes; 0 for kernels that are not blocked.
 */
static inline size_t tni_gemm_room(const tni_gemm_args *g, size_t itemsize)
{
    int64_t kc = g->k < TNI_GEMM_KC(itemsize) ? g->k : TNI_GEMM_KC(itemsize);
    int64_t nc = tni_gemm_nc(g);
    if (g->n < nc)
        nc = (g->n + TNI_GEMM_PANEL - 1) / TNI_GEMM_PANEL * TNI_GEMM_PANEL;
    bool copies_a = g->a.col != 1 || g->gather_a;
    return (size_t)(kc * (nc + (copies_a ? TNI_GEMM_MC : 0))) * itemsize +
           (g->gather_a || g->gather_b ? TNI_GATHER_SLACK : 0);
}

#endif
