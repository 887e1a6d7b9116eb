/* SPDX-License-Identifier: MIT */
/* cpu/kern/special64.c: loops over functions of float64. */
#include "cpu/kern/special64.h"
#define LOOP_LINKAGE
#include "cpu/kern/erf64.h"
#include "cpu/kern/loop.h"
#include "cpu/kern/pow64.h"
#include "cpu/kern/trig64.h"

LOOP1_64(LOOP_64(exp), exp_64)
LOOP1_64(LOOP_64(exp2), exp2_64)
LOOP1_64(LOOP_64(expm1), expm1_64)
LOOP1_64_USUAL(LOOP_64(log), log_usual, log_usual_64, log_64)
LOOP1_64_USUAL(LOOP_64(log2), log_usual, log2_usual_64, log2_64)
LOOP1_64_USUAL(LOOP_64(log10), log_usual, log10_usual_64, log10_64)
LOOP1_64(LOOP_64(log1p), log1p_64)
LOOP1_64_REACH(LOOP_64(sin), trig_within, sin_64, sin)
LOOP1_64_REACH(LOOP_64(cos), trig_within, cos_64, cos)
LOOP1_64_REACH(LOOP_64(tan), trig_within, tan_64, tan)
LOOP1_64(LOOP_64(asin), asin_64)
LOOP1_64(LOOP_64(acos), acos_64)
LOOP1_64(LOOP_64(atan), atan_64)
LOOP1_64(LOOP_64(sinh), sinh_64)
LOOP1_64(LOOP_64(cosh), cosh_64)
LOOP1_64(LOOP_64(tanh), tanh_64)
LOOP1_64(LOOP_64(asinh), asinh_64)
LOOP1_64(LOOP_64(acosh), acosh_64)
LOOP1_64(LOOP_64(atanh), atanh_64)
LOOP1_64(LOOP_64(erf), erf_64)
LOOP1_64(LOOP_64(erfc), erfc_64)
LOOP1_64(LOOP_64(erfinv), erfinv_64)
LOOP1_64(LOOP_64(sigmoid), sigmoid_64)
LOOP2_64(LOOP_64(pow), pow_64)
LOOP2_64(LOOP_64(atan2), atan2_64)
LOOP2_64(LOOP_64(hypot), hypot_64)
LOOP2_64(LOOP_64(logaddexp), logaddexp_64)
LOOP2_64(LOOP_64(xlogy), xlogy_64)

LOOP2_64_REACH(LOOP_64(fmod), fmod_within, fmod_64, fmod)
static double remainder_any(double x, double y)
{
    double r = fmod(x, y);
    return (r != 0) & ((y < 0) != (r < 0)) ? r + y : r;
}
LOOP2_64_REACH(LOOP_64(remainder), fmod_within, remainder_64, remainder_any)

static inline vd logit_64(vd x)
{
    return log_64(x / (1.0 - x));
}
#undef LOOP_LINKAGE
#define LOOP_LINKAGE static
LOOP1_64(logit_plain, logit_64)
/* Between eps and 1 - eps, when eps is not negative; 256 at a time. */
void LOOP_64(logit)(void *out, const void *const *in, int64_t n, const void *ctx)
{
    double eps = *(const double *)ctx, low = eps, high = 1.0 - eps, near[256];
    double *o = out;
    const double *a = in[0];
    if (eps < 0.0) {
        logit_plain(out, in, n, NULL);
        return;
    }
    for (int64_t begin = 0; begin < n; begin += 256) {
        int64_t m = n - begin < 256 ? n - begin : 256;
        INDEPENDENT for (int64_t i = 0; i < m; i++)
        {
            double x = a[begin + i];
            near[i] = x < low ? low : x > high ? high : x;
        }
        logit_plain(o + begin, (const void *const[]){near}, m, NULL);
    }
}
