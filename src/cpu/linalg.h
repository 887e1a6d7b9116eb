/* SPDX-License-Identifier: MIT */
/* cpu/linalg.h: what operators on batches of matrices share. A library computes matrices in their
 * own dtype, by columns (lapack.h); we do it by rows in complex doubles (factor.h) or, where that
 * saves work for real numbers, in doubles (factor_real.h), and round once. */
#ifndef TNI_CPU_LINALG_H
#define TNI_CPU_LINALG_H

#include "cpu/factor.h"
#include "cpu/lapack.h"

/* What one operator works on: contiguous tensors, matrices of m by n. */
typedef struct tni_linalg_job {
    tn_status (*one)(const struct tni_linalg_job *j, int64_t b);
    const tni_lapack *lib; /* that computes, or NULL: we do */
    tn_tensor *in[2], *out[3];
    int64_t m, n, k;
    int32_t *pivots, *info;
    bool by_rows; /* a matrix that is read as it lies */
    bool flag, flag2;
} tni_linalg_job;

/* Each of @p count matrices, shared out over threads. */
TN_NODISCARD tn_status tni_linalg_run(tni_linalg_job *j, int64_t count);

/* Whether matrices lie one after the other by columns. */
bool tni_linalg_by_columns(const tn_tensor *t);
/* A new tensor of @p like's sizes, by rows or by columns. */
TN_NODISCARD tn_status tni_linalg_room(const tn_tensor *like, tn_dtype dtype, bool by_columns,
                                       TN_OWNED tn_tensor **out);
TN_NODISCARD tn_status tni_linalg_copy(tn_tensor *t, tn_dtype dtype, bool by_columns,
                                       TN_OWNED tn_tensor **out);
TN_NODISCARD tn_status tni_linalg_take(tn_tensor *to, tn_tensor *from);

/* Which elements count. */
typedef enum tni_linalg_part { TNI_LINALG_ALL, TNI_LINALG_LOWER, TNI_LINALG_UPPER } tni_linalg_part;

typedef struct tni_linalg_form {
    tni_lapack_use use;
    tni_linalg_part part; /* of the matrix as it comes to lie */
    bool turned;          /* lies as its transposed would */
    tn_dtype ours;        /* what we compute in */
} tni_linalg_form;

/* A copy to compute in: for @p lib by columns where the library is to have it and what counts is
 * finite, else by rows, and @p lib is NULL. */
TN_NODISCARD tn_status tni_linalg_start(tni_linalg_form form, tn_tensor *A, const tni_lapack **lib,
                                        TN_OWNED tn_tensor **out);

/* The first batch that failed, 0 when none did. */
int64_t tni_linalg_failed(const int32_t *info, int64_t n, int64_t *which);

static inline int64_t tni_linalg_rows(const tn_tensor *t)
{
    return t->sizes[t->ndim - 2];
}

static inline int64_t tni_linalg_columns(const tn_tensor *t)
{
    return t->sizes[t->ndim - 1];
}

static inline int64_t tni_linalg_batches(const tn_tensor *t)
{
    int64_t n = 1;
    for (int d = 0; d < t->ndim - 2; d++)
        n *= t->sizes[d];
    return n;
}

/* Matrix @p b of a tensor that is its own. */
static inline void *tni_linalg_matrix(const tn_tensor *t, int64_t b)
{
    return (char *)t->data + (size_t)(b * tni_linalg_rows(t) * tni_linalg_columns(t)) *
                                 tn_dtype_size((tn_dtype)t->dtype);
}

/* Vector @p b, of n elements. */
static inline void *tni_linalg_vector(const tn_tensor *t, int64_t b, int64_t n)
{
    return (char *)t->data + (size_t)(b * n) * tn_dtype_size((tn_dtype)t->dtype);
}

#endif
