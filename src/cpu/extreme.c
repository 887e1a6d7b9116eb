/* SPDX-License-Identifier: MIT */
/* cpu/extreme.c: the largest and smallest elements and where they are; running sums and products.
 * An extreme is found by the vector loops of reductions, and then looked for. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "cpu/lines.h"
#include "cpu/reduce.h"
#include "gen/cpu.h"

#define ALL (~UINT64_C(0))

tn_status tni_cpu_max(tn_tensor *self, tn_tensor *out)
{
    return tni_reduce(TNI_REDUCE_MAX, self, ALL, out);
}

tn_status tni_cpu_min(tn_tensor *self, tn_tensor *out)
{
    return tni_reduce(TNI_REDUCE_MIN, self, ALL, out);
}

/* ---- places ---- */

typedef struct extreme_job {
    tni_block_fn block;
    tn_dtype dtype;
    size_t size;
    int64_t n;
} extreme_job;

/* Where the first element equal to @p best is. Blocks are compared without leaving early, so that
 * the comparisons become vectors. */
#define FIND(S, T, MATCH)                                                    \
    static int64_t find_##S(const void *line, const void *wanted, int64_t n) \
    {                                                                        \
        const T *x = line;                                                   \
        T best = *(const T *)wanted;                                         \
        int64_t i = 0;                                                       \
        for (; i + 64 <= n; i += 64) {                                       \
            int found = 0;                                                   \
            for (int l = 0; l < 64; l++) {                                   \
                T v = x[i + l];                                              \
                found |= (MATCH);                                            \
            }                                                                \
            if (found)                                                       \
                break;                                                       \
        }                                                                    \
        for (; i < n; i++) {                                                 \
            T v = x[i];                                                      \
            if (MATCH)                                                       \
                return i;                                                    \
        }                                                                    \
        return 0;                                                            \
    }
FIND(8, uint8_t, v == best)
FIND(bool, uint8_t, tni_truth(v) == best)
FIND(16, uint16_t, v == best)
FIND(32, uint32_t, v == best)
FIND(64, uint64_t, v == best)
FIND(f32, float, v == best)
FIND(f64, double, v == best)
FIND(nan_f32, float, v != v && best != best)
FIND(nan_f64, double, v != v && best != best)

static int64_t find(tn_dtype dtype, size_t size, const void *line, const void *best, int64_t n)
{
    if (dtype == TN_DTYPE_F32)
        return (isnan(*(const float *)best) ? find_nan_f32 : find_f32)(line, best, n);
    if (dtype == TN_DTYPE_F64)
        return (isnan(*(const double *)best) ? find_nan_f64 : find_f64)(line, best, n);
    if (dtype == TN_DTYPE_BOOL)
        return find_bool(line, best, n);
    switch (size) {
    case 1:
        return find_8(line, best, n);
    case 2:
        return find_16(line, best, n);
    case 4:
        return find_32(line, best, n);
    default:
        return find_64(line, best, n);
    }
}

static tn_status extreme_line(void *const *line, void *scratch, void *ctx)
{
    const extreme_job *j = ctx;
    _Alignas(16) char best[16];
    (void)scratch;
    j->block(best, line[2], j->n);
    int64_t at = find(j->dtype, j->size, line[2], best, j->n);
    *(int64_t *)line[1] = at;
    if (line[0])
        memcpy(line[0], (const char *)line[2] + (size_t)at * j->size, j->size);
    return TN_OK;
}

static tn_status extreme(bool largest, const tn_tensor *self, uint64_t dims, tn_tensor *values,
                         tn_tensor *indices)
{
    const tni_reduce_table *k = tni_cpu_kernels()->reduce;
    tn_dtype dtype = tni_compute_dtype((tn_dtype)self->dtype);
    extreme_job j = {.block = (largest ? k->max_block : k->min_block)[dtype],
                     .dtype = dtype,
                     .size = tni_dtype_size(dtype),
                     .n = tni_line_length(self, dims)};
    tni_line lines[] = {{values, dtype, TNI_LINE_WRITE},
                        {indices, TN_DTYPE_NONE, TNI_LINE_WRITE},
                        {self, dtype, TNI_LINE_READ}};
    return tni_lines(self, dims, lines, 3, 0, extreme_line, &j);
}

static tn_status extreme_dim(bool largest, const tn_tensor *self, int64_t dim, tn_tensor *values,
                             tn_tensor *indices)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    return extreme(largest, self, UINT64_C(1) << d, values, indices);
}

tn_status tni_cpu_max_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *values,
                          tn_tensor *indices)
{
    (void)keepdim;
    return extreme_dim(true, self, dim, values, indices);
}

tn_status tni_cpu_min_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *values,
                          tn_tensor *indices)
{
    (void)keepdim;
    return extreme_dim(false, self, dim, values, indices);
}

tn_status tni_cpu_argmax(tn_tensor *self, tn_opt_int dim, bool keepdim, tn_tensor *out)
{
    (void)keepdim;
    return dim.has ? extreme_dim(true, self, dim.value, NULL, out)
                   : extreme(true, self, ALL, NULL, out);
}

tn_status tni_cpu_argmin(tn_tensor *self, tn_opt_int dim, bool keepdim, tn_tensor *out)
{
    (void)keepdim;
    return dim.has ? extreme_dim(false, self, dim.value, NULL, out)
                   : extreme(false, self, ALL, NULL, out);
}

/* ---- running sums and products, in double precision or 64 bits ---- */

typedef struct running_job {
    tn_dtype dtype;
    int64_t n;
    bool product;
} running_job;

#define RUN(T, ACC)                               \
    do {                                          \
        const T *x = line[1];                     \
        T *o = line[0];                           \
        ACC sum = 0, product = 1;                 \
        if (j->product)                           \
            for (int64_t i = 0; i < j->n; i++)    \
                o[i] = (T)(product *= (ACC)x[i]); \
        else                                      \
            for (int64_t i = 0; i < j->n; i++)    \
                o[i] = (T)(sum += (ACC)x[i]);     \
    } while (0)

static tn_status running_line(void *const *line, void *scratch, void *ctx)
{
    const running_job *j = ctx;
    (void)scratch;
    switch (j->dtype) {
    case TN_DTYPE_F32:
        RUN(float, double);
        break;
    case TN_DTYPE_F64:
        RUN(double, double);
        break;
    case TN_DTYPE_C128:
        RUN(double complex, double complex);
        break;
    default:
        RUN(uint64_t, uint64_t);
    }
    return TN_OK;
}

static tn_status running(const tn_tensor *self, int64_t dim, bool product, tn_tensor *out)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    /* Whether one number is 0, for a result of bool, is asked before it is rounded. */
    tn_dtype dtype = (tn_dtype)(out->dtype == TN_DTYPE_BOOL ? self->dtype : out->dtype);
    dtype = dtype == TN_DTYPE_F32         ? TN_DTYPE_F32
            : tn_dtype_is_complex(dtype)  ? TN_DTYPE_C128
            : tn_dtype_is_floating(dtype) ? TN_DTYPE_F64
                                          : TN_DTYPE_I64;
    uint64_t dims = UINT64_C(1) << d;
    TN_AUTO(tn_tensor) rounded = NULL;
    TN_TRY(tni_in_dtype(self, (tn_dtype)out->dtype, dtype, &rounded));
    running_job j = {.dtype = dtype, .n = tni_line_length(self, dims), .product = product};
    tni_line lines[] = {{out, dtype, TNI_LINE_WRITE}, {rounded, dtype, TNI_LINE_READ}};
    return tni_lines(self, dims, lines, 2, 0, running_line, &j);
}

tn_status tni_cpu_cumsum(tn_tensor *self, int64_t dim, tn_dtype dtype, tn_tensor *out)
{
    (void)dtype;
    return running(self, dim, false, out);
}

tn_status tni_cpu_cumprod(tn_tensor *self, int64_t dim, tn_dtype dtype, tn_tensor *out)
{
    (void)dtype;
    return running(self, dim, true, out);
}
