/* SPDX-License-Identifier: MIT */
/* cpu/random.c: random fills. Element i of a tensor, in row-major order, comes from word i of the
 * generator's stream (two words for float64), so the values depend neither on threads nor on
 * strides. Normal numbers come in pairs, from the words of two elements. */
#include <math.h>
#include "base/pool.h"
#include "core/generator.h"
#include "cpu/move.h"
#include "cpu/ready.h"
#include "gen/kernels.h"
#include "iter/random.h"

#define GRAIN 16384 /* a multiple of PIECE */
#define PIECE 512   /* elements at a time, a multiple of what one block of words gives */

typedef struct random_job {
    const tni_kernels *kernels;
    tn_generator_state state;
    tn_dtype dtype; /* real: a complex tensor is a run of twice as many reals */
    char *data;
    tni_random_scale scale;
    bool normal;
} random_job;

static void numbers_f64(const random_job *j, int64_t begin, int64_t n)
{
    uint32_t w[2 * PIECE];
    double last[2], *out = (double *)j->data + begin;
    const tni_random_table *r = j->kernels->random;
    r->words(w, j->state.seed, j->state.counter + (uint64_t)(begin / 2), (n + 1) / 2);
    if (!j->normal) {
        r->uniform_f64(out, w, n, &j->scale);
        return;
    }
    r->normal_f64(out, w, n & ~INT64_C(1), &j->scale);
    if (n & 1) {
        r->normal_f64(last, w + 2 * (n - 1), 2, &j->scale);
        out[n - 1] = last[0];
    }
}

static void numbers_f32(const random_job *j, int64_t begin, int64_t n)
{
    uint32_t w[PIECE];
    float x[PIECE];
    const tni_random_table *r = j->kernels->random;
    r->words(w, j->state.seed, j->state.counter + (uint64_t)(begin / 4), (n + 3) / 4);
    if (j->normal)
        r->normal_f32(x, w, (n + 1) & ~INT64_C(1), &j->scale);
    else
        r->uniform_f32(x, w, n, &j->scale);
    tni_convert(j->kernels, j->dtype, j->data + (size_t)begin * tni_dtype_size(j->dtype),
                TN_DTYPE_F32, x, n);
}

static tn_status random_run(int64_t begin, int64_t end, void *arg)
{
    const random_job *j = arg;
    for (int64_t i = begin; i < end; i += PIECE) {
        int64_t n = end - i < PIECE ? end - i : PIECE;
        if (j->dtype == TN_DTYPE_F64)
            numbers_f64(j, i, n);
        else
            numbers_f32(j, i, n);
    }
    return TN_OK;
}

/* Where uniform numbers end, in the dtype they are computed in. */
static tni_random_scale scale_of(tn_dtype dtype, double low, double range)
{
    tni_random_scale s = {.low = low, .range = range};
    s.digits = dtype == TN_DTYPE_F16 ? 11 : dtype == TN_DTYPE_BF16 ? 8 : 24;
    s.high_f64 = low + range;
    s.high_f32 = (float)s.high_f64;
    /* An empty range has one number in it: its end. */
    s.below_f64 = range > 0 ? nextafter(s.high_f64, low) : low;
    s.below_f32 = range > 0 ? nextafterf(s.high_f32, (float)low) : (float)low;
    return s;
}

/* Fill @p self; takes words from the generator last, when nothing can fail any more. */
static tn_status fill_random(tn_tensor *self, double low, double range, bool normal,
                             tn_generator *generator)
{
    if (self->numel == 0)
        return TN_OK;
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(tni_work_of(self, (tn_dtype)self->dtype, &run));
    bool complex = tn_dtype_is_complex((tn_dtype)self->dtype);
    tn_dtype dtype = tni_dtype_to_real((tn_dtype)self->dtype);
    if (complex && normal) /* the variance is that of both parts together */
        range *= 0.70710678118654752440;
    random_job j = {.kernels = tni_cpu_kernels(),
                    .dtype = dtype,
                    .data = run->data,
                    .scale = scale_of(dtype, low, range),
                    .normal = normal};
    int64_t n = complex ? 2 * run->numel : run->numel;
    int64_t each = dtype == TN_DTYPE_F64 ? 2 : 4;
    j.state = tni_generator_take(generator, (uint64_t)((n + each - 1) / each));
    TN_TRY(tni_pool_for(n, GRAIN, random_run, &j));
    return tni_work_back(self, run);
}

tn_status tni_kernel_uniform_(tn_call *call, tn_tensor *self, double from, double to,
                              tn_generator *generator)
{
    (void)call;
    TN_TRY(tni_check_uniform(self, from, to));
    return fill_random(self, from, to - from, false, generator);
}

tn_status tni_kernel_normal_(tn_call *call, tn_tensor *self, double mean, double std,
                             tn_generator *generator)
{
    (void)call;
    TN_TRY(tni_check_normal(self, std));
    return fill_random(self, mean, std, true, generator);
}
