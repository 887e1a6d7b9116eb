/* SPDX-License-Identifier: MIT */
/* cpu/attention.h: what attention and its gradient share: the loops (kern/attention.c, compiled for
 * each instruction set), and tiles of tensors as matrices of the dtype that is computed in. */
#ifndef TNI_CPU_ATTENTION_H
#define TNI_CPU_ATTENTION_H

#include "core/tensor.h"
#include "cpu/gemm_kernels.h"
#include "cpu/loops.h"

/* Loops over float32 or float64; rows lie `ld` elements apart. */
typedef struct tni_attention_loops {
    /* s is [nk][nq], a column for each query. For each: best = the larger of best and its scores;
     * s = exp(s - best); sum = sum * factor + its sum, where factor = exp(old best - best). A
     * column of -inf alone gives zeros. */
    void (*online)(void *s, int64_t nk, int64_t nq, int64_t ld, void *best, void *sum,
                   void *factor);
    /* x[i][] *= factor[i] */
    void (*scale)(void *x, int64_t rows, int64_t n, int64_t ld, const void *factor);
    /* x[i][] += y[i][] */
    void (*add)(void *x, int64_t ld, const void *y, int64_t y_ld, int64_t rows, int64_t n);
    /* s[i][] = exp(s[i][] - lse[i]) */
    void (*weights)(void *s, int64_t rows, int64_t n, int64_t ld, const void *lse);
    /* g[i][] = p[i][] * (g[i][] - delta[i]) */
    void (*score_grad)(void *g, const void *p, int64_t rows, int64_t n, int64_t ld,
                       const void *delta);
    /* out[i] = the sum of a[i][] * b[i][] */
    void (*dots)(void *out, const void *a, int64_t a_ld, const void *b, int64_t b_ld, int64_t rows,
                 int64_t n);
    /* to[j][i] = from[i][j] */
    void (*turn)(void *to, int64_t to_ld, const void *from, int64_t ld, int64_t rows, int64_t n);
} tni_attention_loops;

typedef struct tni_attention_table {
    tni_attention_loops f32, f64;
} tni_attention_table;

#define X(isa) extern const tni_attention_table tni_attention_##isa;
TNI_KERN_LIST(X)
#undef X

/* Rows of a tensor as the loops want them. */
typedef struct tni_tile {
    const void *data;
    int64_t ld; /* from one row to the next, in elements of the compute dtype */
} tni_tile;

/* What every block of one call needs. */
typedef struct tni_attention {
    const tni_kernels *k;
    const tni_attention_loops *loops;
    tn_dtype compute; /* float32, or float64 for float64 */
    int64_t itemsize; /* of compute */
    int64_t batch, heads, kv_heads, queries, keys, width;
    bool causal;
    double scale;
    const tn_tensor *mask; /* NULL, or [batch or 1, heads or 1, queries or 1, keys or 1] or 2-D */
    int64_t mask_strides[4];
    int64_t q_block, k_block; /* rows of a block of queries, of keys */
} tni_attention;

void tni_attention_begin(tni_attention *a, const tn_tensor *query, const tn_tensor *key,
                         bool causal, const tn_tensor *mask, tn_opt_float scale);
/* Entry (b, h) of a 4-D tensor, rows [row, row + rows): where it lies, or a copy in @p room, which
 * has rows * width elements. */
tni_tile tni_attention_tile(const tni_attention *a, const tn_tensor *t, int64_t b, int64_t h,
                            int64_t row, int64_t rows, void *room);
/* Rows [q, q + nq), columns [k, k + nk) of the mask, in @p room, nk columns each. */
void tni_attention_mask(const tni_attention *a, int64_t b, int64_t h, int64_t q, int64_t nq,
                        int64_t k, int64_t nk, void *room);
/* Write rows of the compute dtype, one after the other, to entry (b, h) of a 4-D tensor. */
void tni_attention_put(const tni_attention *a, tn_tensor *t, int64_t b, int64_t h, int64_t row,
                       int64_t rows, const void *from);
/* Where rows from @p row on of entry (b, h) lie, when products may write them there: rows of the
 * compute dtype, each contiguous. NULL data otherwise. */
tni_tile tni_attention_own(const tni_attention *a, const tn_tensor *t, int64_t b, int64_t h,
                           int64_t row);
/* @p n elements, -inf each. */
void tni_attention_hide(const tni_attention *a, void *to, int64_t n);
/* How many keys, counted from the first, queries before @p q_end see. */
static inline int64_t tni_attention_seen(const tni_attention *a, int64_t q_end)
{
    return a->causal && q_end < a->keys ? q_end : a->keys;
}

/* C = alpha * A @ B, plus C where @p add. */
void tni_attention_gemm(const tni_attention *a, const tni_gemm_args *g, double alpha, bool add,
                        void *room);

/* Memory of one thread: parts of so many elements each, and then the room of products. */
typedef struct tni_attention_part {
    char **at;
    int64_t count;
} tni_attention_part;
/* @retval TN_NOMEM */
TN_NODISCARD tn_status tni_attention_scratch(const tni_attention *a,
                                             const tni_attention_part *parts, int n, char **room,
                                             void **out_block, size_t *out_nbytes);

#endif
