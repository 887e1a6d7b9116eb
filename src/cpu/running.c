/* SPDX-License-Identifier: MIT */
/* cpu/running.c: running extremes and logarithms of sums; both extremes at once. Lines are float64,
 * int64 or complex128, whatever the tensors are. */
#include <complex.h>
#include <math.h>
#include "cpu/lines.h"
#include "cpu/reduce.h"
#include "gen/cpu.h"

typedef struct job {
    int64_t n;
    bool largest, floating, imaginary;
} job;

/* An equal element comes after those before it; NaN is never overtaken. */
#define EXTREME(T, IS_NAN)                                    \
    do {                                                      \
        const T *x = line[2];                                 \
        T *o = line[0];                                       \
        int64_t *at = line[1];                                \
        int64_t best = 0;                                     \
        for (int64_t i = 0; i < j->n; i++) {                  \
            T b = x[best];                                    \
            bool better = j->largest ? x[i] >= b : x[i] <= b; \
            if (IS_NAN(x[i]) || (better && !IS_NAN(b)))       \
                best = i;                                     \
            o[i] = x[best];                                   \
            at[i] = best;                                     \
        }                                                     \
    } while (0)
#define NEVER(x) false

static tn_status extreme_line(void *const *line, void *scratch, void *ctx)
{
    const job *j = ctx;
    (void)scratch;
    if (j->floating)
        EXTREME(double, isnan);
    else
        EXTREME(int64_t, NEVER);
    return TN_OK;
}

static tn_status extreme(bool largest, const tn_tensor *self, int64_t dim, tn_tensor *values,
                         tn_tensor *indices)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    uint64_t dims = UINT64_C(1) << d;
    bool floating = tn_dtype_is_floating((tn_dtype)self->dtype);
    tn_dtype want = floating ? TN_DTYPE_F64 : TN_DTYPE_I64;
    job j = {.n = tni_line_length(self, dims), .largest = largest, .floating = floating};
    tni_line lines[] = {{values, want, TNI_LINE_WRITE},
                        {indices, TN_DTYPE_I64, TNI_LINE_WRITE},
                        {self, want, TNI_LINE_READ}};
    return tni_lines(self, dims, lines, 3, 0, extreme_line, &j);
}

tn_status tni_cpu_cummax(tn_tensor *self, int64_t dim, tn_tensor *values, tn_tensor *indices)
{
    return extreme(true, self, dim, values, indices);
}

tn_status tni_cpu_cummin(tn_tensor *self, int64_t dim, tn_tensor *values, tn_tensor *indices)
{
    return extreme(false, self, dim, values, indices);
}

/* ---- logcumsumexp ---- */

static double log_add(double a, double b)
{
    double low = a < b ? a : b, high = a < b ? b : a;
    if (isnan(a) || isnan(b))
        return a + b;
    return low == high && isinf(low) ? low : high + log1p(exp(low - high));
}

/* log(1 + z) where |z| is at most 1, and may be small. */
static double complex log1p_inside(double complex z)
{
    double re = creal(z), im = cimag(z), more = re * (re + 2.0) + im * im;
    double size = more > -0.5 ? 0.5 * log1p(more) : log(hypot(1.0 + re, im));
    return CMPLX(size, atan2(im, 1.0 + re));
}

static double complex log_add_complex(double complex a, double complex b)
{
    bool ordered = creal(a) < creal(b);
    double complex low = ordered ? a : b, high = ordered ? b : a;
    if (isnan(creal(a)) || isnan(cimag(a)) || isnan(creal(b)) || isnan(cimag(b)))
        return CMPLX((double)NAN, (double)NAN);
    if (isinf(creal(low)) && creal(low) == creal(high))
        return creal(low) < 0 ? low : clog(cexp(low) + cexp(high));
    return high + log1p_inside(cexp(low - high));
}

static tn_status log_line(void *const *line, void *scratch, void *ctx)
{
    const job *j = ctx;
    (void)scratch;
    if (j->imaginary) {
        const double complex *x = line[1];
        double complex *o = line[0], sum = CMPLX(-(double)INFINITY, 0.0); /* 0 has no angle */
        for (int64_t i = 0; i < j->n; i++)
            o[i] = sum = log_add_complex(x[i], sum);
    } else {
        const double *x = line[1];
        double *o = line[0];
        for (int64_t i = 0; i < j->n; i++)
            o[i] = i ? log_add(o[i - 1], x[i]) : x[i];
    }
    return TN_OK;
}

tn_status tni_cpu_logcumsumexp(tn_tensor *self, int64_t dim, tn_tensor *out)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    uint64_t dims = UINT64_C(1) << d;
    bool complex_line = tn_dtype_is_complex((tn_dtype)self->dtype);
    tn_dtype want = complex_line ? TN_DTYPE_C128 : TN_DTYPE_F64;
    job j = {.n = tni_line_length(self, dims), .imaginary = complex_line};
    tni_line lines[] = {{out, want, TNI_LINE_WRITE}, {self, want, TNI_LINE_READ}};
    return tni_lines(self, dims, lines, 2, 0, log_line, &j);
}

/* ---- aminmax ---- */

tn_status tni_cpu_aminmax(tn_tensor *self, tn_opt_int dim, bool keepdim, tn_tensor *min,
                          tn_tensor *max)
{
    uint64_t dims = ~UINT64_C(0);
    (void)keepdim;
    if (dim.has) {
        int d;
        TN_TRY(tni_wrap_dim(dim.value, self->ndim, &d));
        dims = UINT64_C(1) << d;
    }
    if (min->numel == 0)
        return TN_OK;
    TN_TRY(tni_reduce(TNI_REDUCE_MIN, self, dims, min));
    return tni_reduce(TNI_REDUCE_MAX, self, dims, max);
}
