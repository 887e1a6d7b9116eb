/* SPDX-License-Identifier: MIT */
/* cpu/stat.c: any, all, prod, logsumexp, variances and norms on the CPU. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "base/warn.h"
#include "cpu/copy.h"
#include "cpu/lines.h"
#include "cpu/move.h"
#include "cpu/reduce.h"
#include "cpu/rows.h"
#include "gen/cpu.h"
#include "iter/iter.h"
#include "tenon/ops.h"

#define ALL   (~UINT64_C(0))
#define GRAIN 16384

static tn_status one_dim(const tn_tensor *self, int64_t dim, uint64_t *dims)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    *dims = UINT64_C(1) << d;
    return TN_OK;
}

/* ---- any, all: the largest and the smallest truth ---- */

static tn_status set_all(tn_tensor *out, double value)
{
    TN_AUTO(tn_tensor) number = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_tensor_new(0, NULL, NULL, TN_DTYPE_F64, TN_CPU, &number));
    *(double *)number->data = value;
    return tni_copy_cpu(out, number);
}

static tn_status truth(tni_reduction what, tn_tensor *self, uint64_t dims, tn_tensor *out)
{
    TN_AUTO(tn_tensor) set = NULL;
    if (tni_line_length(self, dims) == 0)
        return set_all(out, what == TNI_REDUCE_MIN ? 1.0 : 0.0);
    if (self->dtype == TN_DTYPE_BOOL)
        set = tn_tensor_ref(self);
    else
        TN_TRY(tn_ne_scalar(self, tn_int(0), &set));
    if (dims == 0)
        return out->numel ? tni_copy_cpu(out, set) : TN_OK;
    return tni_reduce(what, set, dims, out);
}

tn_status tni_cpu_any(tn_tensor *self, tn_tensor *out)
{
    return truth(TNI_REDUCE_MAX, self, ALL, out);
}

tn_status tni_cpu_all(tn_tensor *self, tn_tensor *out)
{
    return truth(TNI_REDUCE_MIN, self, ALL, out);
}

static tn_status truth_dim(tni_reduction what, tn_tensor *self, int64_t dim, tn_tensor *out)
{
    uint64_t dims;
    TN_TRY(one_dim(self, dim, &dims));
    return truth(what, self, self->ndim ? dims : ALL, out);
}

tn_status tni_cpu_any_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *out)
{
    (void)keepdim;
    return truth_dim(TNI_REDUCE_MAX, self, dim, out);
}

tn_status tni_cpu_all_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor *out)
{
    (void)keepdim;
    return truth_dim(TNI_REDUCE_MIN, self, dim, out);
}

static tn_status truth_dims(tni_reduction what, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                            tn_tensor *out)
{
    uint64_t dims = 0;
    if (!dim || dim_n > 0)
        TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    return truth(what, self, dims, out);
}

tn_status tni_cpu_any_dims(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                           tn_tensor *out)
{
    (void)keepdim;
    return truth_dims(TNI_REDUCE_MAX, self, dim, dim_n, out);
}

tn_status tni_cpu_all_dims(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                           tn_tensor *out)
{
    (void)keepdim;
    return truth_dims(TNI_REDUCE_MIN, self, dim, dim_n, out);
}

/* ---- lines ---- */

typedef struct stat_job {
    const tni_rows_loops *loops;
    tn_dtype dtype; /* of the line */
    int64_t n;
    double correction, ord;
    bool root;
} stat_job;

static tn_status multiply(void *const *line, void *scratch, void *ctx)
{
    const stat_job *j = ctx;
    (void)scratch;
    switch (j->dtype) {
    case TN_DTYPE_F32: /* of nothing; others are reduced (cpu/reduce.c), here and below */
        *(float *)line[0] = 1;
        break;
    case TN_DTYPE_F64:
        *(double *)line[0] = 1;
        break;
    case TN_DTYPE_C128: {
        double complex z = 1;
        for (int64_t i = 0; i < j->n; i++)
            z *= ((const double complex *)line[1])[i];
        *(double complex *)line[0] = z;
        break;
    }
    case TN_DTYPE_BOOL: {
        uint8_t truth = 1;
        for (int64_t i = 0; i < j->n; i++)
            truth &= tni_truth(((const uint8_t *)line[1])[i]);
        *(uint8_t *)line[0] = truth;
        break;
    }
    default:
        *(uint64_t *)line[0] = 1;
    }
    return TN_OK;
}

/* Integers are multiplied in 64 bits, which wrap like fewer bits do. */
static tn_dtype multiply_in(tn_dtype dtype)
{
    if (tn_dtype_is_complex(dtype))
        return TN_DTYPE_C128;
    return tn_dtype_is_integral(dtype, false) ? TN_DTYPE_I64 : tni_compute_dtype(dtype);
}

static tn_status prod(const tn_tensor *self, uint64_t dims, tn_tensor *out)
{
    tn_dtype dtype = multiply_in((tn_dtype)out->dtype);
    stat_job j = {.dtype = dtype, .n = tni_line_length(self, dims)};
    if (j.n > 0 && dtype != TN_DTYPE_C128 && dtype != TN_DTYPE_BOOL)
        return tni_reduce(TNI_REDUCE_PRODUCT, self, dims, out);
    TN_AUTO(tn_tensor) rounded = NULL;
    TN_TRY(tni_in_dtype(self, (tn_dtype)out->dtype, dtype, &rounded));
    tni_line lines[] = {{out, dtype, TNI_LINE_WRITE}, {rounded, dtype, TNI_LINE_READ_ANY}};
    return tni_lines(self, dims, lines, 2, 0, multiply, &j);
}

tn_status tni_cpu_prod(tn_tensor *self, tn_dtype dtype, tn_tensor *out)
{
    (void)dtype;
    return prod(self, ALL, out);
}

tn_status tni_cpu_prod_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_dtype dtype,
                           tn_tensor *out)
{
    uint64_t dims;
    (void)keepdim;
    (void)dtype;
    TN_TRY(one_dim(self, dim, &dims));
    return prod(self, dims, out);
}

static void store_real(const stat_job *j, void *to, double value)
{
    if (j->dtype == TN_DTYPE_F64 || j->dtype == TN_DTYPE_C128)
        *(double *)to = value;
    else
        *(float *)to = (float)value;
}

static tn_status log_sum_exp(void *const *line, void *scratch, void *ctx)
{
    const stat_job *j = ctx;
    (void)scratch;
    store_real(j, line[0], j->n ? j->loops->log_sum_exp(line[1], j->n) : (double)-INFINITY);
    return TN_OK;
}

static tn_status complex_log_sum_exp(void *const *line, void *scratch, void *ctx)
{
    const stat_job *j = ctx;
    const double complex *x = line[1];
    double complex sum = 0;
    double most = (double)-INFINITY;
    (void)scratch;
    for (int64_t i = 0; i < j->n; i++)
        most = creal(x[i]) > most || isnan(creal(x[i])) ? creal(x[i]) : most;
    double shift = isinf(most) ? 0 : most;
    for (int64_t i = 0; i < j->n; i++)
        sum += cexp(x[i] - shift);
    *(double complex *)line[0] = clog(sum) + shift;
    return TN_OK;
}

/* Lines of n elements of which `inner` lie side by side, in strips. */
typedef struct across_job {
    const tni_kernels *kernels;
    const char *x;
    char *out;
    tn_dtype have, compute, result;
    int64_t n, inner, strips;
} across_job;

#define STRIP       64 /* lines side by side that are computed together */
#define STRIP_BYTES 65536
#define FEWEST      8 /* lines side by side for which that pays */

static tn_status across_strips(int64_t begin, int64_t end, void *arg)
{
    const across_job *j = arg;
    _Alignas(64) char rows[STRIP_BYTES], results[STRIP * sizeof(double)];
    size_t have = tni_dtype_size(j->have), size = tni_dtype_size(j->compute);
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % j->strips * STRIP, at = i / j->strips, stride = j->inner;
        int64_t width = j->inner - first < STRIP ? j->inner - first : STRIP;
        const char *x = j->x + (size_t)(at * j->n * j->inner + first) * have;
        char *out = j->out + (size_t)(at * j->inner + first) * tni_dtype_size(j->result);
        if (j->have != j->compute) {
            for (int64_t r = 0; r < j->n; r++)
                tni_convert(j->kernels, j->compute, rows + (size_t)(r * width) * size, j->have,
                            x + (size_t)(r * stride) * have, width);
            x = rows;
            stride = width;
        }
        bool direct = j->result == j->compute;
        tni_rows_of(j->kernels, j->compute)
            ->across.log_sum_exp(direct ? out : results, x, j->n, stride, width);
        if (!direct)
            tni_convert(j->kernels, j->result, out, j->compute, results, width);
    }
    return TN_OK;
}

/* Whether @p self is a run and the lines of @p dims lie side by side in it: then @p j has them. */
static bool lie_across(const tn_tensor *self, uint64_t dims, const tn_tensor *out, across_job *j)
{
    int64_t outer = 1;
    bool found = false;
    j->n = j->inner = 1;
    for (int d = 0; d < self->ndim; d++) {
        bool along = dims & (UINT64_C(1) << d);
        if (along && found && j->inner > 1)
            return false;
        *(along ? &j->n : found ? &j->inner : &outer) *= self->sizes[d];
        found |= along;
    }
    j->strips = (j->inner + STRIP - 1) / STRIP;
    size_t bytes = (size_t)j->n * STRIP * tni_dtype_size(j->compute);
    return (self->flags & TNI_CONTIGUOUS) && (out->flags & TNI_CONTIGUOUS) && j->n > 0 &&
           j->inner >= FEWEST && (j->have == j->compute || bytes <= STRIP_BYTES);
}

tn_status tni_cpu_logsumexp(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                            tn_tensor *out)
{
    uint64_t dims;
    (void)keepdim;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    bool imaginary = tn_dtype_is_complex((tn_dtype)out->dtype);
    tn_dtype dtype = imaginary ? TN_DTYPE_C128 : tni_compute_dtype((tn_dtype)out->dtype);
    stat_job j = {.loops = imaginary ? NULL : tni_rows_of(tni_cpu_kernels(), dtype),
                  .dtype = dtype,
                  .n = tni_line_length(self, dims)};
    across_job a = {.kernels = tni_cpu_kernels(),
                    .x = self->data,
                    .out = out->data,
                    .have = (tn_dtype)self->dtype,
                    .compute = dtype,
                    .result = (tn_dtype)out->dtype};
    if (!imaginary && out->numel > 0 && lie_across(self, dims, out, &a)) {
        int64_t count = out->numel / a.inner * a.strips, cost = a.n * STRIP;
        return tni_pool_for(count, cost < GRAIN ? GRAIN / cost : 1, across_strips, &a);
    }
    tni_line lines[] = {{out, dtype, TNI_LINE_WRITE}, {self, dtype, TNI_LINE_READ_ANY}};
    return tni_lines(self, dims, lines, 2, 0, imaginary ? complex_log_sum_exp : log_sum_exp, &j);
}

/* ---- variances ---- */

static void complex_moments(const double *x, int64_t n, double *mean, double *m2)
{
    double re = 0, im = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        re += x[2 * i];
        im += x[2 * i + 1];
    }
    re /= (double)n;
    im /= (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += (x[2 * i] - re) * (x[2 * i] - re) + (x[2 * i + 1] - im) * (x[2 * i + 1] - im);
    mean[0] = re;
    mean[1] = im;
    *m2 = squares;
}

static tn_status variance_line(void *const *line, void *scratch, void *ctx)
{
    const stat_job *j = ctx;
    double mean[2] = {NAN, 0}, m2 = NAN, freedom = (double)j->n - j->correction;
    (void)scratch;
    if (j->dtype == TN_DTYPE_C128)
        complex_moments(line[2], j->n, mean, &m2);
    else if (j->n > 0)
        j->loops->moments(line[2], j->n, mean, &m2);
    double variance = m2 / (freedom > 0 ? freedom : 0.0);
    store_real(j, line[0], j->root ? sqrt(variance) : variance);
    if (line[1] && j->dtype == TN_DTYPE_C128)
        memcpy(line[1], mean, sizeof mean);
    else if (line[1])
        store_real(j, line[1], mean[0]);
    return TN_OK;
}

static tn_status variance(const char *op, tn_tensor *self, const int64_t *dim, int64_t dim_n,
                          const tn_scalar *correction, bool root, tn_tensor *out, tn_tensor *mean)
{
    uint64_t dims;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    tn_dtype dtype = tni_compute_dtype((tn_dtype)self->dtype), real = dtype;
    if (tn_dtype_is_complex(dtype)) {
        dtype = TN_DTYPE_C128;
        real = TN_DTYPE_F64;
    }
    stat_job j = {.loops = tni_rows_of(tni_cpu_kernels(), real),
                  .dtype = dtype,
                  .n = tni_line_length(self, dims),
                  .correction = correction ? tn_scalar_to_double(*correction) : 1.0,
                  .root = root};
    if (TNI_UNLIKELY((double)j.n - j.correction <= 0))
        TN_TRY(tni_warn("%s(): degrees of freedom is <= 0. Correction should be strictly less than "
                        "the reduction factor (input numel divided by output numel).",
                        op));
    tni_line lines[] = {{out, real, TNI_LINE_WRITE},
                        {mean, dtype, TNI_LINE_WRITE},
                        {self, dtype, TNI_LINE_READ_ANY}};
    return tni_lines(self, dims, lines, 3, 0, variance_line, &j);
}

tn_status tni_cpu_var(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                      const tn_scalar *correction, bool keepdim, tn_tensor *out)
{
    (void)keepdim;
    return variance("var", self, dim, dim_n, correction, false, out, NULL);
}

tn_status tni_cpu_std(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                      const tn_scalar *correction, bool keepdim, tn_tensor *out)
{
    (void)keepdim;
    return variance("std", self, dim, dim_n, correction, true, out, NULL);
}

tn_status tni_cpu_var_mean(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                           const tn_scalar *correction, bool keepdim, tn_tensor *out0,
                           tn_tensor *out1)
{
    (void)keepdim;
    return variance("var_mean", self, dim, dim_n, correction, false, out0, out1);
}

tn_status tni_cpu_std_mean(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                           const tn_scalar *correction, bool keepdim, tn_tensor *out0,
                           tn_tensor *out1)
{
    (void)keepdim;
    return variance("std_mean", self, dim, dim_n, correction, true, out0, out1);
}

/* ---- norms ---- */

static double size_at(const stat_job *j, const void *line, int64_t i)
{
    switch (j->dtype) {
    case TN_DTYPE_F32:
        return (double)fabsf(((const float *)line)[i]);
    case TN_DTYPE_F64:
        return fabs(((const double *)line)[i]);
    case TN_DTYPE_C64:
        return (double)cabsf(((const float complex *)line)[i]);
    default:
        return cabs(((const double complex *)line)[i]);
    }
}

/* The extreme of the sizes; NaN wins. */
static double extreme_size(const stat_job *j, const void *line, bool largest)
{
    double best = size_at(j, line, 0);
    for (int64_t i = 1; i < j->n; i++) {
        double x = size_at(j, line, i);
        if ((largest ? x > best : x < best) || isnan(x))
            best = x;
    }
    return best;
}

static tn_status norm_line(void *const *line, void *scratch, void *ctx)
{
    const stat_job *j = ctx;
    double norm = 0;
    (void)scratch;
    if (isinf(j->ord)) {
        norm = extreme_size(j, line[1], j->ord > 0);
    } else if (j->ord == 2.0) {
        /* Squares in the dtype of the line: they may overflow, as the reference's do. */
        int64_t parts = tn_dtype_is_complex(j->dtype) ? 2 : 1;
        norm = sqrt(j->loops->squares(line[1], parts * j->n));
        if (parts == 2 &&
            isnan(norm)) { /* a number with an infinite part is infinite, whatever the other */
            norm = 0;
            for (int64_t i = 0; i < j->n; i++)
                norm += size_at(j, line[1], i) * size_at(j, line[1], i);
            norm = sqrt(norm);
        }
    } else if (j->ord == 0.0) {
        for (int64_t i = 0; i < j->n; i++)
            norm += size_at(j, line[1], i) != 0.0 ? 1.0 : 0.0;
    } else if (j->ord == 1.0) {
        for (int64_t i = 0; i < j->n; i++)
            norm += size_at(j, line[1], i);
    } else {
        for (int64_t i = 0; i < j->n; i++)
            norm += pow(size_at(j, line[1], i), j->ord);
        norm = pow(norm, 1.0 / j->ord);
    }
    store_real(j, line[0], norm);
    return TN_OK;
}

tn_status tni_cpu_linalg_vector_norm(tn_tensor *self, tn_scalar ord, const int64_t *dim,
                                     int64_t dim_n, bool keepdim, tn_dtype dtype, tn_tensor *out)
{
    uint64_t dims;
    (void)keepdim;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    tn_dtype in = tni_compute_dtype(dtype == TN_DTYPE_NONE ? (tn_dtype)self->dtype : dtype);
    tn_dtype real = in == TN_DTYPE_F64 || in == TN_DTYPE_C128 ? TN_DTYPE_F64 : TN_DTYPE_F32;
    stat_job j = {.loops = tni_rows_of(tni_cpu_kernels(), real),
                  .dtype = in,
                  .n = tni_line_length(self, dims),
                  .ord = tn_scalar_to_double(ord)};
    if (j.n == 1 && j.ord != 0.0) /* the size of that one, which no power takes out of range */
        j.ord = (double)INFINITY;
    if ((j.ord == 2.0 || j.ord == 1.0) && in == real &&
        tni_compute_dtype((tn_dtype)out->dtype) == in)
        return tni_reduce(j.ord == 2.0 ? TNI_REDUCE_SQUARES : TNI_REDUCE_SIZES, self, dims, out);
    tni_line lines[] = {{out, real, TNI_LINE_WRITE}, {self, in, TNI_LINE_READ_ANY}};
    return tni_lines(self, dims, lines, 2, 0, norm_line, &j);
}

/* ---- sums of what counts ---- */

tn_status tni_cpu_nansum(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                         tn_dtype dtype, tn_tensor *out)
{
    uint64_t dims;
    (void)keepdim;
    (void)dtype;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    bool whole = tn_dtype_is_integral((tn_dtype)self->dtype, true) ||
                 tn_dtype_is_integral((tn_dtype)out->dtype, true);
    return tni_reduce(whole ? TNI_REDUCE_SUM : TNI_REDUCE_KNOWN, self, dims, out);
}

static tn_status count(tn_tensor *self, uint64_t dims, tn_tensor *out)
{
    TN_AUTO(tn_tensor) set = NULL;
    TN_TRY(tn_ne_scalar(self, tn_int(0), &set));
    return tni_reduce(TNI_REDUCE_SUM, set, dims, out);
}

tn_status tni_cpu_count_nonzero(tn_tensor *self, tn_opt_int dim, tn_tensor *out)
{
    uint64_t dims = ALL;
    if (dim.has)
        TN_TRY(one_dim(self, dim.value, &dims));
    return count(self, dims, out);
}

tn_status tni_cpu_count_nonzero_dims(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                     tn_tensor *out)
{
    uint64_t dims;
    TN_TRY(tni_reduced_dims(dim, dim_n, self->ndim, &dims));
    return count(self, dims, out);
}
