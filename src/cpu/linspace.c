/* SPDX-License-Identifier: MIT */
/* cpu/linspace.c: numbers at equal distances. The first half is counted from the start, the second
 * from the end, so that both ends are exact. */
#include "cpu/copy.h"
#include "gen/kernels.h"
#include "iter/iter.h"

#include <math.h>
#include <string.h>

/* Real parts to x[2 * i], imaginary ones to x[2 * i + 1]. */
static void count(double start, double end, int64_t n, double *x)
{
    double step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    for (int64_t i = 0; i < n; i++)
        x[2 * i] = i < n / 2 || n == 1 ? fma(step, (double)i, start)
                                       : fma(-step, (double)(n - 1 - i), end);
}

/* fmaf, which the C library is slow at where processors lack it. In double the product is exact;
 * the sum is rounded to odd, so that rounding it again to float32 is as if it were the first time.
 */
static inline float multiply_add(float a, float b, float c)
{
    double p = (double)a * (double)b, s = p + (double)c, back = s - p;
    double lost = (p - (s - back)) + ((double)c - back);
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    uint64_t down = (lost < 0) != (s < 0); /* what was lost pulls towards zero */
    bits = (lost != 0) & !(bits & 1) ? bits - down + !down : bits;
    memcpy(&s, &bits, sizeof s);
    return (float)s;
}

/* As PyTorch counts in float32: the step is rounded, each number once more. A sampling grid lies on
 * pixels or a hair beside them by these bits, and gradients jump there. */
static void count_f32(float start, float end, int64_t n, float *x)
{
    float step = n > 1 ? (end - start) / (float)(n - 1) : 0;
    int64_t half = n == 1 ? 1 : n / 2;
    if (!isfinite(step) || !isfinite(start) || !isfinite(end)) {
        for (int64_t i = 0; i < n; i++)
            x[i] = i < half ? fmaf(step, (float)i, start) : fmaf(-step, (float)(n - 1 - i), end);
        return;
    }
    for (int64_t i = 0; i < half; i++)
        x[i] = multiply_add(step, (float)i, start);
    for (int64_t i = half; i < n; i++)
        x[i] = multiply_add(-step, (float)(n - 1 - i), end);
}

/* A number as an element of the dtype would hold it: integers lose their fraction first. */
static double as_element(tn_scalar s, tn_dtype dtype)
{
    return tn_dtype_is_integral(dtype, false) ? (double)tn_scalar_to_int(s)
                                              : tn_scalar_to_double(s);
}

tn_status tni_kernel_linspace_out(tn_call *call, tn_scalar start, tn_scalar end, int64_t steps,
                                  tn_tensor *out)
{
    (void)call;
    tn_dtype dtype = (tn_dtype)out->dtype;
    bool complex = tn_dtype_is_complex(dtype);
    TN_CHECK(steps >= 0, TN_INVALID, "number of steps must be non-negative");
    TN_CHECK(dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED, "\"linspace_cpu\" not implemented for 'Bool'");
    if (steps > 0) {
        TN_TRY(tni_check_number(start, dtype));
        TN_TRY(tni_check_number(end, dtype));
    }
    TN_TRY(tni_check_internal_overlap(out));
    if (out->numel != steps)
        TN_TRY(tni_tensor_resize(out, 1, &steps));
    if (tni_is_meta(out) || steps == 0)
        return TN_OK;
    TN_AUTO(tn_tensor) run = NULL;
    TN_AUTO(tn_tensor) parts = NULL;
    TN_AUTO(tn_tensor) seen = NULL;
    if (dtype == TN_DTYPE_F32) {
        float first = (float)tn_scalar_to_double(start), last = (float)tn_scalar_to_double(end);
        if (out->flags & TNI_CONTIGUOUS) {
            count_f32(first, last, steps, out->data);
            return TN_OK;
        }
        TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F32, TN_CPU, &seen));
        count_f32(first, last, steps, seen->data);
        return tni_copy_cpu(out, seen);
    }
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_C128, TN_CPU, &run));
    double *x = run->data;
    count(as_element(start, dtype), as_element(end, dtype), steps, x);
    count(start.kind == TN_SCALAR_COMPLEX ? start.imag : 0,
          end.kind == TN_SCALAR_COMPLEX ? end.imag : 0, steps, x + 1);
    if (complex)
        return tni_copy_cpu(out, run);
    int64_t strides[TN_MAX_DIMS];
    for (int d = 0; d < run->ndim; d++)
        strides[d] = run->strides[d] * 2;
    TN_TRY(tni_tensor_over(run->storage, run->ndim, run->sizes, strides, 0, TN_DTYPE_F64, run->keys,
                           TN_CPU, &parts));
    /* Halves are rounded once to float32 first, as everywhere. */
    if (dtype != TN_DTYPE_F16 && dtype != TN_DTYPE_BF16)
        return tni_copy_cpu(out, parts);
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F32, TN_CPU, &seen));
    TN_TRY(tni_copy_cpu(seen, parts));
    return tni_copy_cpu(out, seen);
}
