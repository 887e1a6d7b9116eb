/* SPDX-License-Identifier: MIT */
/* cpu/kern/error.c: inverses and scaled forms of the error function. Inverses start from a short
 * formula and take steps of Halley's method with erf and erfc of the C library. */
#include <math.h>
#include "cpu/kern/rare.h"

#define HALF_ROOT_PI 0.88622692545275801365
#define ROOT_HALF    0.70710678118654752440

/* y with erfc(y) = q, for 0 < q <= 1. */
static double inverse_erfc(double q)
{
    double t = sqrt(-2.0 * log(0.5 * q));
    double y = ROOT_HALF * (t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                                    (1.0 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
    for (int i = 0; i < 3; i++) {
        if (y > 20.0) { /* exp(y^2) comes to its end, and erfc(y) is subnormal before: Newton's
                           steps for the logarithm. */
            double scaled = tni_erfcx(y);
            y += (log(scaled) - y * y - log(q)) * HALF_ROOT_PI * scaled;
            continue;
        }
        /* The error over the slope, both divided by exp(-y^2) so that nothing vanishes. */
        double u = (q - erfc(y)) * HALF_ROOT_PI * exp(y * y);
        y -= u / (1.0 + u * y);
    }
    return y;
}

double tni_erfinv(double x)
{
    double a = fabs(x);
    if (!(a < 1.0))
        return a == 1.0 ? copysign((double)INFINITY, x) : (double)NAN;
    if (a > 0.5)
        return copysign(inverse_erfc(1.0 - a), x);
    double y = x * (HALF_ROOT_PI + x * x * 0.23201366653465444);
    for (int i = 0; i < 3; i++) {
        double u = (erf(y) - x) * HALF_ROOT_PI * exp(y * y);
        y -= u / (1.0 + u * y);
    }
    return y;
}

double tni_ndtri(double p)
{
    if (!(p > 0.0 && p < 1.0))
        return p == 0.0 ? -(double)INFINITY : p == 1.0 ? (double)INFINITY : (double)NAN;
    if (fabs(p - 0.5) < 0.25)
        return 2.0 * ROOT_HALF * tni_erfinv(2.0 * (p - 0.5));
    return 2.0 * ROOT_HALF * (p < 0.5 ? -inverse_erfc(2.0 * p) : inverse_erfc(2.0 * (1.0 - p)));
}

double tni_erfcx(double x)
{
    if (x < 10.0) {
        /* x^2 in two parts: what the first rounds away matters in an exponent. */
        double high = x * x, low = fma(x, x, -high);
        if (high > 708.0 && x < 0.0)
            return (double)INFINITY;
        return exp(high) * (1.0 + low) * erfc(x);
    }
    double z = 1.0 / (2.0 * x * x), term = 1.0, sum = 1.0;
    for (int k = 1; k < 40; k++) {
        term *= -(2.0 * k - 1.0) * z;
        sum += term;
        if (fabs(term) < 1e-17)
            break;
    }
    return sum / (2.0 * HALF_ROOT_PI * x);
}

double tni_log_ndtr(double x)
{
    double t = x * ROOT_HALF;
    if (x < -1.0)
        return log(0.5 * tni_erfcx(-t)) - t * t;
    return log1p(-0.5 * erfc(t));
}
