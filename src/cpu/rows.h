/* SPDX-License-Identifier: MIT */
/* cpu/rows.h: loops over contiguous rows of float32 or float64, compiled for each instruction set
 * (kern/rows.c). Other dtypes are converted first, see cpu/lines.h. */
#ifndef TNI_CPU_ROWS_H
#define TNI_CPU_ROWS_H

#include "cpu/loops.h"

/* Lines of n > 0 elements, @p stride apart, of which @p width lie side by side; out may be an
 * input. */
typedef struct tni_across_loops {
    void (*softmax)(void *out, const void *x, int64_t n, int64_t stride, int64_t width);
    void (*log_softmax)(void *out, const void *x, int64_t n, int64_t stride, int64_t width);
    void (*softmax_backward)(void *out, const void *grad, const void *y, int64_t n, int64_t stride,
                             int64_t width);
    void (*log_softmax_backward)(void *out, const void *grad, const void *y, int64_t n,
                                 int64_t stride, int64_t width);
    /* out: one row */
    void (*log_sum_exp)(void *out, const void *x, int64_t n, int64_t stride, int64_t width);
} tni_across_loops;

/* n rows of @p width columns each, one after the other but where a stride is given; what is known
 * of a column is in arrays of the rows' type. Sums are added to what is there, in double precision.
 */
typedef struct tni_column_loops {
    void (*sums)(double *sum, const void *x, int64_t n, int64_t stride, int64_t width);
    /* of (x - mean)^2 */
    void (*squares)(double *sum, const void *x, const void *mean, int64_t n, int64_t width);
    /* of grad * (x - mean) */
    void (*moments)(double *sum, const void *grad, const void *x, const void *mean, int64_t n,
                    int64_t width);
    /* out = (x - mean) * scale + shift; out may be x */
    void (*affine)(void *out, const void *x, const void *mean, const void *scale, const void *shift,
                   int64_t n, int64_t width);
    /* out = grad * a - b - (x - mean) * c; out may be an input */
    void (*blend)(void *out, const void *grad, const void *x, const void *mean, const void *a,
                  const void *b, const void *c, int64_t n, int64_t width);
} tni_column_loops;

typedef struct tni_rows_loops {
    /* rows of n > 0 elements each, one after the other; out may be x. */
    void (*softmax)(void *out, const void *x, int64_t rows, int64_t n);
    void (*log_softmax)(void *out, const void *x, int64_t rows, int64_t n);
    void (*softmax_backward)(void *out, const void *grad, const void *y, int64_t rows, int64_t n);
    void (*log_softmax_backward)(void *out, const void *grad, const void *y, int64_t rows,
                                 int64_t n);
    /* Mean and sum of squared deviations of n numbers. */
    void (*moments)(const void *x, int64_t n, double *mean, double *m2);
    /* out = (x - mean) * rstd * weight + bias, where NULL for weight or bias leaves it out. */
    void (*scale_shift)(void *out, const void *x, const void *weight, const void *bias, int64_t n,
                        double mean, double rstd);
    void (*layer_norm)(void *out, void *mean, void *rstd, const void *x, const void *weight,
                       const void *bias, int64_t rows, int64_t n, double eps);
    /* The gradient of one normalised row; weight may be NULL. @p out is none of the inputs. */
    void (*norm_backward_row)(void *out, const void *grad, const void *x, const void *weight,
                              int64_t n, double mean, double rstd);
    /* dweight += grad * (x - mean) * rstd, dbias += grad; either may be NULL. */
    void (*norm_backward_params)(void *dweight, void *dbias, const void *grad, const void *x,
                                 int64_t n, double mean, double rstd);
    /* The sums of grad and of grad * (x - mean). */
    void (*dots)(const void *grad, const void *x, int64_t n, double mean, double *sum,
                 double *moment);
    /* out = (x - mean) * scale + shift; out may be x. */
    void (*affine)(void *out, const void *x, int64_t n, double mean, double scale, double shift);
    /* out = grad * abc[0] - abc[1] - (x - mean) * abc[2] */
    void (*blend)(void *out, const void *grad, const void *x, int64_t n, double mean,
                  const double *abc);
    /* The sum of x * x, added in the dtype of x. */
    double (*squares)(const void *x, int64_t n);
    double (*log_sum_exp)(const void *x, int64_t n);
    tni_across_loops across;
    tni_column_loops columns;
} tni_rows_loops;

typedef struct tni_rows_table {
    const tni_rows_loops *f32, *f64;
} tni_rows_table;

/* @p dtype is float32 or float64. */
static inline const tni_rows_loops *tni_rows_of(const tni_kernels *k, tn_dtype dtype)
{
    return dtype == TN_DTYPE_F64 ? k->rows->f64 : k->rows->f32;
}

#define X(isa) extern const tni_rows_table tni_rows_##isa;
TNI_KERN_LIST(X)
#undef X

#endif
