/* SPDX-License-Identifier: MIT */
/* cpu/distribution.c: random numbers whose distribution depends on an element's own parameters, by
 * rejection: Poisson, binomial, gamma and Dirichlet. How many words a number needs is not known
 * before, so element i has a stretch of the generator's stream of its own, far longer than any
 * number will ever use; the values then depend neither on threads nor on strides. */
#include <float.h>
#include <math.h>
#include "base/pool.h"
#include "core/generator.h"
#include "cpu/move.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

#define GRAIN 1024
#define REACH 256 /* blocks of four words that are an element's own */

/* ---- words ---- */

typedef struct supply {
    const tni_kernels *kernels;
    uint64_t seed, counter;
    uint32_t words[8];
    int left; /* pairs of them */
} supply;

static supply supply_of(const tni_kernels *kernels, tn_generator_state state, int64_t element)
{
    return (supply){.kernels = kernels,
                    .seed = state.seed,
                    .counter = state.counter + (uint64_t)element * REACH};
}

/* Uniform in (0, 1): neither end. */
static double uniform(supply *s)
{
    if (s->left == 0) {
        s->kernels->random->words(s->words, s->seed, s->counter, 2);
        s->counter += 2;
        s->left = 4;
    }
    const uint32_t *w = s->words + 2 * --s->left;
    return ((double)(((uint64_t)w[0] << 32 | w[1]) >> 11) + 0.5) * 0x1p-53;
}

static double normal(supply *s)
{
    double radius = sqrt(-2 * log(uniform(s)));
    return radius * cos(6.28318530717958647693 * uniform(s));
}

static double log_factorial(double k)
{
    int sign;
    return lgamma_r(k + 1, &sign);
}

/* ---- distributions ---- */

/* Small rates: how many exponential waiting times fit into one unit. Others: Hörmann's transformed
 * rejection with squeeze, PTRS (1993). */
static double draw_poisson(double rate, supply *s)
{
    if (!(rate > 0) || isinf(rate))
        return rate;
    if (rate < 10) {
        double end = exp(-rate), product = uniform(s), k = 0;
        for (; product > end; k++)
            product *= uniform(s);
        return k;
    }
    double b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b, log_rate = log(rate);
    double inverse = 1.1239 + 1.1328 / (b - 3.4), quick = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        double u = uniform(s) - 0.5, v = uniform(s), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= quick)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v * inverse / (a / (us * us) + b)) <= k * log_rate - rate - log_factorial(k))
            return k;
    }
}

/* Few successes: the waiting times between them are geometric. Others: Hörmann's BTRS (1993). The
 * probability is at most 1/2. */
static double successes(double n, double p, supply *s)
{
    if (n * p < 10) {
        double k = 0, at = 0, scale = 1 / log1p(-p);
        for (;; k++) {
            at += ceil(log(uniform(s)) * scale);
            if (at > n)
                return k;
        }
    }
    double deviation = sqrt(n * p * (1 - p)), b = 1.15 + 2.53 * deviation;
    double a = -0.0873 + 0.0248 * b + 0.01 * p, c = n * p + 0.5, quick = 0.92 - 4.2 / b;
    double alpha = (2.83 + 5.1 / b) * deviation, log_odds = log(p / (1 - p));
    double mode = floor((n + 1) * p), top = log_factorial(mode) + log_factorial(n - mode);
    for (;;) {
        double u = uniform(s) - 0.5, v = uniform(s), us = 0.5 - fabs(u);
        double k = floor((2 * a / us + b) * u + c);
        if (k < 0 || k > n)
            continue;
        if (us >= 0.07 && v <= quick)
            return k;
        if (log(v * alpha / (a / (us * us) + b)) <=
            top - log_factorial(k) - log_factorial(n - k) + (k - mode) * log_odds)
            return k;
    }
}

static double draw_binomial(double n, double p, supply *s)
{
    if (isnan(n) || isnan(p))
        return (double)NAN;
    if (n <= 0 || p <= 0)
        return 0;
    if (p >= 1 || isinf(n))
        return n;
    n = floor(n);
    return p <= 0.5 ? successes(n, p, s) : n - successes(n, 1 - p, s);
}

/* Marsaglia and Tsang (2000); below 1 from a number of concentration + 1. */
static double draw_gamma(double alpha, supply *s)
{
    double scale = 1;
    if (!(alpha > 0) || isinf(alpha))
        return alpha < 0 ? 0 : alpha;
    if (alpha < 1)
        scale = pow(uniform(s), 1 / alpha++);
    double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(s), y = 1 + c * x, v = y * y * y, u = uniform(s);
        if (y <= 0)
            continue;
        if (u < 1 - 0.0331 * x * x * x * x || log(u) < 0.5 * x * x + d * (1 - v + log(v)))
            return scale * d * v;
    }
}

/* ---- tensors ---- */

typedef enum kind { POISSON, BINOMIAL, GAMMA } kind;

typedef struct job {
    kind what;
    const tni_kernels *kernels;
    tn_generator_state state;
    const double *a, *b;
    double *out, least;
} job;

static tn_status draw(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        supply s = supply_of(j->kernels, j->state, i);
        double x = j->what == POISSON    ? draw_poisson(j->a[i], &s)
                   : j->what == BINOMIAL ? draw_binomial(j->a[i], j->b[i], &s)
                                         : draw_gamma(j->a[i], &s);
        j->out[i] = x < j->least ? j->least : x;
    }
    return TN_OK;
}

/* The smallest normal number. */
static double least_of(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_F64   ? DBL_MIN
           : t->dtype == TN_DTYPE_F16 ? 0x1p-14
                                      : (double)FLT_MIN;
}

/* A float64 copy of @p t with the sizes of @p like. */
static tn_status spread(tn_tensor *t, const tn_tensor *like, tn_tensor **out)
{
    TN_TRY(tni_tensor_new(like->ndim, like->sizes, NULL, TN_DTYPE_F64, TN_CPU, out));
    return tni_copy_cpu(*out, t);
}

/* Numbers of the sizes of @p like, float64; words are taken when nothing can fail any more. */
static tn_status sample(job *j, tn_tensor *a, tn_tensor *b, const tn_tensor *like,
                        tn_generator *generator, tn_tensor **out)
{
    TN_AUTO(tn_tensor) first = NULL;
    TN_AUTO(tn_tensor) second = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(spread(a, like, &first));
    if (b)
        TN_TRY(spread(b, like, &second));
    TN_TRY(tni_tensor_new(like->ndim, like->sizes, NULL, TN_DTYPE_F64, TN_CPU, &made));
    j->a = first->data;
    j->b = b ? second->data : NULL;
    j->out = made->data;
    if (j->what == POISSON)
        for (int64_t i = 0; i < like->numel; i++)
            TN_CHECK(j->a[i] >= 0, TN_INVALID,
                     "invalid Poisson rate, expected rate to be non-negative");
    j->kernels = tni_cpu_kernels();
    j->state = tni_generator_take(generator, (uint64_t)like->numel * REACH);
    TN_TRY(tni_pool_for(like->numel, GRAIN, draw, j));
    *out = TN_MOVE(made);
    return TN_OK;
}

static tn_status fill(job *j, tn_tensor *a, tn_tensor *b, tn_generator *generator, tn_tensor *out)
{
    TN_AUTO(tn_tensor) made = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(sample(j, a, b, out, generator, &made));
    return tni_copy_cpu(out, made);
}

tn_status tni_cpu_poisson(tn_tensor *self, tn_generator *generator, tn_tensor *out)
{
    job j = {.what = POISSON};
    return fill(&j, self, NULL, generator, out);
}

tn_status tni_cpu_binomial(tn_tensor *count, tn_tensor *prob, tn_generator *generator,
                           tn_tensor *out)
{
    job j = {.what = BINOMIAL};
    return fill(&j, count, prob, generator, out);
}

tn_status tni_cpu_standard_gamma(tn_tensor *self, tn_generator *generator, tn_tensor *out)
{
    job j = {.what = GAMMA, .least = least_of(out)};
    return fill(&j, self, NULL, generator, out);
}

/* Gamma numbers over their sum, kept inside the open interval. */
tn_status tni_cpu_sample_dirichlet(tn_tensor *self, tn_generator *generator, tn_tensor *out)
{
    TN_AUTO(tn_tensor) made = NULL;
    job j = {.what = GAMMA, .least = DBL_MIN};
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(sample(&j, self, NULL, out, generator, &made));
    int64_t n = out->ndim ? out->sizes[out->ndim - 1] : 1;
    double least = least_of(out);
    double most = 1 - (out->dtype == TN_DTYPE_F64    ? DBL_EPSILON
                       : out->dtype == TN_DTYPE_F16  ? 0x1p-10
                       : out->dtype == TN_DTYPE_BF16 ? 0x1p-7
                                                     : (double)FLT_EPSILON) /
                          2;
    double *x = made->data;
    for (int64_t row = 0; row < out->numel / n; row++, x += n) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        for (int64_t i = 0; i < n; i++) {
            double share = x[i] / sum;
            x[i] = share < least ? least : share > most ? most : share;
        }
    }
    return tni_copy_cpu(out, made);
}
