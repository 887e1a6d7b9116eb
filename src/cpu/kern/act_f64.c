/* SPDX-License-Identifier: MIT */
/* cpu/kern/act_f64.c: activations of float64, compiled once. */
#define LOOP_LINKAGE
#define ACT_PREFIX tni_
#include "cpu/kern/act.h"

static inline double normal_cdf_f64(double x)
{
    return 0.5 * (1.0 + erf(x * 0.70710678118654752440));
}
static inline double gelu_slope_f64(double x)
{
    double density = exp_f64(-0.5 * x * x) * 0.39894228040143267794;
    return normal_cdf_f64(x) + (fabs(x) > 40.0 ? 0.0 : x * density); /* of an infinity too */
}
static inline double expm1_f64(double x)
{
    return expm1(x);
}

ACTIVATIONS(double, f64, fabs, (double)NAN)
