/* SPDX-License-Identifier: MIT */
/* cpu/fill.c: one number to every element, and counting numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "base/warn.h"
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/move.h"
#include "gen/kernels.h"
#include "iter/iter.h"
#include "iter/range.h"

#define GRAIN_BYTES (256 * 1024)

typedef struct run_job {
    char *data;
    const void *value;
    size_t itemsize;
    bool zero;
} run_job;

static tn_status fill_run(int64_t begin, int64_t end, void *arg)
{
    const run_job *j = arg;
    char *to = j->data + (size_t)begin * j->itemsize;
    if (j->zero)
        memset(to, 0, (size_t)(end - begin) * j->itemsize);
    else
        tni_splat(to, j->value, end - begin, j->itemsize);
    return TN_OK;
}

/* Dense memory is one run. Otherwise the value is a 0-dim tensor that is broadcast. */
static tn_status fill(tn_tensor *self, tn_scalar value)
{
    _Alignas(16) char element[16] = {0};
    static const char zeros[16];
    if (self->numel == 0)
        return TN_OK;
    tni_scalar_store(value, (tn_dtype)self->dtype, element);
    if (self->flags & TNI_DENSE) {
        run_job j = {self->data, element, tni_itemsize(self),
                     memcmp(element, zeros, tni_itemsize(self)) == 0};
        int64_t grain = GRAIN_BYTES / (int64_t)j.itemsize;
        return self->numel <= grain ? fill_run(0, self->numel, &j)
                                    : tni_pool_for(self->numel, grain, fill_run, &j);
    }
    TN_AUTO(tn_tensor) number = NULL;
    TN_TRY(tn_tensor_from_scalar(value, (tn_dtype)self->dtype, &number));
    return tni_copy_cpu(self, number);
}

tn_status tni_kernel_fill_(tn_call *call, tn_tensor *self, tn_scalar value)
{
    (void)call;
    TN_TRY(tni_check_number(value, (tn_dtype)self->dtype));
    return fill(self, value);
}

tn_status tni_kernel_fill_tensor_(tn_call *call, tn_tensor *self, tn_tensor *value)
{
    TN_CHECK(value->ndim == 0, TN_INVALID,
             "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.",
             value->ndim);
    TN_CHECK(value->storage->device.type == TN_DEVICE_CPU, TN_UNSUPPORTED,
             "fill_ of a CPU tensor wants a value on the CPU");
    TN_TRY(tni_check_internal_overlap(self));
    TN_AUTO(tn_tensor) cast = NULL;
    if (value->dtype != self->dtype) { /* converted as copy_ does it: a number alone is checked */
        TN_TRY(tn_tensor_from_scalar(tn_int(0), (tn_dtype)self->dtype, &cast));
        TN_TRY(tni_kernel_copy_(call, cast, value, false));
        value = cast;
    }
    return fill(self, tni_scalar_load((tn_dtype)value->dtype, value->data));
}

tn_status tni_kernel_zero_(tn_call *call, tn_tensor *self)
{
    (void)call;
    return fill(self, tn_int(0));
}

/* ---- arange ---- */

typedef struct count_job {
    tni_range range;
    tn_dtype dtype;
    char *data;
    const tni_kernels *kernels;
} count_job;

/* Element i is start + i * step, in int64 for integers, else in double (float32 and halves too: the
 * result is rounded once). */
static tn_status count_run(int64_t begin, int64_t end, void *arg)
{
    const count_job *j = arg;
    size_t itemsize = tni_dtype_size(j->dtype);
    int64_t whole[256];
    double real[256];
    bool integral = tn_dtype_is_integral(j->dtype, false);
    for (int64_t i = begin; i < end; i += 256) {
        int64_t m = end - i < 256 ? end - i : 256;
        for (int64_t k = 0; k < m; k++)
            if (integral)
                whole[k] = (int64_t)((uint64_t)j->range.start_int +
                                     (uint64_t)(i + k) * (uint64_t)j->range.step_int);
            else
                real[k] = j->range.start + (double)(i + k) * j->range.step;
        tni_convert(j->kernels, j->dtype, j->data + (size_t)i * itemsize,
                    integral ? TN_DTYPE_I64 : TN_DTYPE_F64, integral ? (void *)whole : (void *)real,
                    m);
    }
    return TN_OK;
}

static tn_status count(tn_tensor *out, const tni_range *range)
{
    count_job j = {*range, (tn_dtype)out->dtype, out->data, tni_cpu_kernels()};
    int64_t grain = 32768;
    return out->numel <= grain ? count_run(0, out->numel, &j)
                               : tni_pool_for(out->numel, grain, count_run, &j);
}

static tn_status tell_resized(const tn_tensor *out, int64_t n)
{
    char have[TNI_SIZES_TEXT];
    return tni_warn("The number of elements in the out tensor of shape %s is %lld which does not "
                    "match the computed number of elements %lld. Note that this may occur as a "
                    "result of rounding error. The out tensor will be resized to a tensor of shape "
                    "(%lld,).",
                    tni_format_sizes(out->ndim, out->sizes, have, sizeof have),
                    (long long)out->numel, (long long)n, (long long)n);
}

tn_status tni_kernel_arange_out(tn_call *call, tn_scalar start, tn_scalar end, tn_scalar step,
                                tn_tensor *out)
{
    (void)call;
    tni_range range;
    TN_TRY(tni_range_check(start, end, step, (tn_dtype)out->dtype, &range));
    TN_TRY(tni_check_internal_overlap(out));
    if (out->numel != range.n) {
        if (out->numel > 0)
            TN_TRY(tell_resized(out, range.n));
        TN_TRY(tni_tensor_resize(out, 1, &range.n));
    }
    if (tni_is_meta(out) || range.n == 0)
        return TN_OK;
    if (out->flags & TNI_CONTIGUOUS)
        return count(out, &range);
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, (tn_dtype)out->dtype, TN_CPU, &run));
    TN_TRY(count(run, &range));
    return tni_copy_cpu(out, run);
}
