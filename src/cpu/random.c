/* SPDX-License-Identifier: MIT */
/* cpu/random.c: random numbers. Element i of a tensor, in row-major order, comes from word i of the
 * generator's stream (two words for float64), so the values depend neither on threads nor on
 * strides. Normal numbers come in pairs, by Box and Muller, from two elements' words. */
#include <math.h>
#include "base/pool.h"
#include "core/generator.h"
#include "core/half.h"
#include "core/philox.h"
#include "cpu/copy.h"
#include "cpu/move.h"
#include "gen/kernels.h"
#include "iter/random.h"

#define GRAIN 8192 /* a multiple of what one block of words gives */

typedef struct random_job {
    tn_generator_state state;
    tn_dtype dtype; /* real: a complex tensor is a run of twice as many reals */
    char *data;
    double low, range; /* uniform: low + range * u; normal: mean and standard deviation */
    bool normal;
} random_job;

/* The words of two neighbouring elements of a normal distribution, one pair. */
static void normal_pair_f32(const random_job *j, uint32_t a, uint32_t b, float *out)
{
    float u = 1.0f - tni_uniform_float(a); /* (0, 1]: its logarithm is finite */
    float radius = sqrtf(-2.0f * logf(u)), angle = 6.28318530717958647692f * tni_uniform_float(b);
    out[0] = (float)(j->low + j->range * (double)(radius * cosf(angle)));
    out[1] = (float)(j->low + j->range * (double)(radius * sinf(angle)));
}

static void normal_pair_f64(const random_job *j, const uint32_t *word, double *out)
{
    double u = 1.0 - tni_uniform_double(word[0], word[1]);
    double radius = sqrt(-2.0 * log(u));
    double angle = 6.28318530717958647692 * tni_uniform_double(word[2], word[3]);
    out[0] = j->low + j->range * (radius * cos(angle));
    out[1] = j->low + j->range * (radius * sin(angle));
}

/* Uniform numbers are taken from as many bits as the dtype has digits, so that none rounds up to
 * the upper end. */
static float uniform_f32(const random_job *j, uint32_t word)
{
    int digits = j->dtype == TN_DTYPE_F16 ? 11 : j->dtype == TN_DTYPE_BF16 ? 8 : 24;
    float u = (float)(word >> (32 - digits)) * ldexpf(1.0f, -digits);
    float x = (float)(j->low + j->range * (double)u);
    float high = (float)(j->low + j->range);
    return x < high || j->range == 0 ? x : nextafterf(high, (float)j->low);
}

/* Four elements of a block of float32, two of float64. */
static int block_of(const random_job *j, uint64_t block, double *out)
{
    tni_philox_block words = tni_philox(j->state.seed, j->state.counter + block, 0);
    if (j->dtype == TN_DTYPE_F64) {
        if (j->normal)
            normal_pair_f64(j, words.word, out);
        else
            for (int i = 0; i < 2; i++) {
                double x = j->low +
                           j->range * tni_uniform_double(words.word[2 * i], words.word[2 * i + 1]);
                double high = j->low + j->range;
                out[i] = x < high || j->range == 0 ? x : nextafter(high, j->low);
            }
        return 2;
    }
    for (int i = 0; i < 4; i += 2) {
        float pair[2];
        if (j->normal) {
            normal_pair_f32(j, words.word[i], words.word[i + 1], pair);
        } else {
            pair[0] = uniform_f32(j, words.word[i]);
            pair[1] = uniform_f32(j, words.word[i + 1]);
        }
        out[i] = (double)pair[0];
        out[i + 1] = (double)pair[1];
    }
    return 4;
}

static void put(const random_job *j, int64_t i, double value)
{
    switch (j->dtype) {
    case TN_DTYPE_F32:
        ((float *)j->data)[i] = (float)value;
        break;
    case TN_DTYPE_F64:
        ((double *)j->data)[i] = value;
        break;
    case TN_DTYPE_F16:
        ((tni_f16 *)j->data)[i] = tni_f16_from_float((float)value);
        break;
    default:
        ((tni_bf16 *)j->data)[i] = tni_bf16_from_float((float)value);
    }
}

static tn_status random_run(int64_t begin, int64_t end, void *arg)
{
    const random_job *j = arg;
    int each = j->dtype == TN_DTYPE_F64 ? 2 : 4;
    for (int64_t i = begin; i < end; i += each) {
        double values[4];
        block_of(j, (uint64_t)(i / each), values);
        for (int k = 0; k < each && i + k < end; k++)
            put(j, i + k, values[k]);
    }
    return TN_OK;
}

/* Fill @p self; takes words from the generator last, when nothing can fail any more. */
static tn_status fill_random(tn_tensor *self, double low, double range, bool normal,
                             tn_generator *generator)
{
    if (self->numel == 0)
        return TN_OK;
    TN_AUTO(tn_tensor) run = NULL;
    if (self->flags & TNI_CONTIGUOUS)
        run = tn_tensor_ref(self);
    else
        TN_TRY(tni_tensor_new(self->ndim, self->sizes, NULL, (tn_dtype)self->dtype, TN_CPU, &run));
    bool complex = tn_dtype_is_complex((tn_dtype)self->dtype);
    random_job j = {.dtype = tni_dtype_to_real((tn_dtype)self->dtype),
                    .data = run->data,
                    .low = low,
                    .range = complex && normal ? range * 0.70710678118654752440 : range,
                    .normal = normal};
    int64_t n = complex ? 2 * run->numel : run->numel;
    int64_t each = j.dtype == TN_DTYPE_F64 ? 2 : 4;
    j.state = tni_generator_take(generator, (uint64_t)((n + each - 1) / each));
    TN_TRY(tni_pool_for(n, GRAIN, random_run, &j));
    return run == self ? TN_OK : tni_copy_cpu(self, run);
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
