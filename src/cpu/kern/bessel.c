/* SPDX-License-Identifier: MIT */
/* cpu/kern/bessel.c: modified Bessel functions of orders 0 and 1. I by its power series, whose
 * terms are positive, and by its asymptotic series from 30 on; K by the series with a logarithm up
 * to 2 and by Temme's continued fraction beyond. */
#include <float.h>
#include <math.h>
#include "cpu/kern/rare.h"

#define EULER 0.57721566490153286061
#define PI    3.14159265358979323846
#define FAR   30.0

/* Sum of (x/2)^(2k) / (k! (k + order)!), for order 0 or 1; times x/2 for order 1. */
static double power_series(double x, int order)
{
    double z = 0.25 * x * x, term = 1.0, sum = 1.0;
    for (int k = 1; k < 200 && term > 0.25 * DBL_EPSILON * sum; k++) {
        term *= z / ((double)k * (k + order));
        sum += term;
    }
    return order ? 0.5 * x * sum : sum;
}

/* I(x) exp(-x) for large x. */
static double asymptotic(double x, int order)
{
    double mu = order ? 4.0 : 0.0, term = 1.0, sum = 1.0;
    for (int k = 1; k < 30; k++) {
        double odd = 2.0 * k - 1.0;
        term *= -(mu - odd * odd) / (k * 8.0 * x);
        sum += term;
        if (fabs(term) < 0.25 * DBL_EPSILON)
            break;
    }
    return sum / (sqrt(2.0 * PI) * sqrt(x)); /* twice pi times x may overflow */
}

double tni_i0e(double x)
{
    double a = fabs(x);
    if (isinf(a))
        return 0.0;
    return a < FAR ? power_series(a, 0) * exp(-a) : asymptotic(a, 0);
}

double tni_i1e(double x)
{
    double a = fabs(x);
    if (isinf(a))
        return copysign(0.0, x);
    return copysign(a < FAR ? power_series(a, 1) * exp(-a) : asymptotic(a, 1), x);
}

/* exp(a) s, where the first factor alone would overflow too early. */
static double grown(double a, double s)
{
    return s * exp(0.5 * a) * exp(0.5 * a);
}

double tni_i0(double x)
{
    double a = fabs(x);
    if (isinf(a))
        return a;
    return a < FAR ? power_series(a, 0) : grown(a, asymptotic(a, 0));
}

double tni_i1(double x)
{
    double a = fabs(x);
    if (isinf(a))
        return x;
    return copysign(a < FAR ? power_series(a, 1) : grown(a, asymptotic(a, 1)), x);
}

/* ---- K ---- */

static double k0_near(double x)
{
    double z = 0.25 * x * x, term = 1.0, harmonic = 0.0, sum = 0.0;
    for (int k = 1; k < 40; k++) {
        harmonic += 1.0 / k;
        term *= z / ((double)k * k);
        sum += term * harmonic;
    }
    return -(log(0.5 * x) + EULER) * power_series(x, 0) + sum;
}

static double k1_near(double x)
{
    double z = 0.25 * x * x, term = 1.0, psi = 1.0 - 2.0 * EULER, sum = psi;
    for (int k = 1; k < 40; k++) {
        psi += 1.0 / k + 1.0 / (k + 1.0);
        term *= z / ((double)k * (k + 1.0));
        sum += term * psi;
    }
    return 1.0 / x + log(0.5 * x) * power_series(x, 1) - 0.25 * x * sum;
}

/* exp(x) K0 and exp(x) K1 for x >= 2: Steed's way through the second continued fraction. */
static void far(double x, double *k0, double *k1)
{
    double b = 2.0 * (1.0 + x), d = 1.0 / b, h = d, delta = d, q1 = 0.0, q2 = 1.0;
    double a = -0.25, q = 0.25, c = 0.25, s = 1.0 + q * delta;
    for (int i = 2; i < 500; i++) {
        a -= 2.0 * (i - 1);
        c = -a * c / i;
        double qn = (q1 - b * q2) / a;
        q1 = q2;
        q2 = qn;
        q += c * qn;
        b += 2.0;
        d = 1.0 / (b + a * d);
        delta = (b * d - 1.0) * delta;
        h += delta;
        double step = q * delta;
        s += step;
        if (fabs(step / s) < 0.25 * DBL_EPSILON)
            break;
    }
    *k0 = sqrt(PI / (2.0 * x)) / s;
    *k1 = *k0 * (0.5 + x - 0.25 * h) / x;
}

static double scaled(double x, int order)
{
    if (!(x > 0.0))
        return x == 0.0 ? (double)INFINITY : (double)NAN;
    if (isinf(x))
        return 0.0;
    if (x <= 2.0)
        return exp(x) * (order ? k1_near(x) : k0_near(x));
    double k0, k1;
    far(x, &k0, &k1);
    return order ? k1 : k0;
}

double tni_k0e(double x)
{
    return scaled(x, 0);
}

double tni_k1e(double x)
{
    return scaled(x, 1);
}

double tni_k0(double x)
{
    return x > 0.0 && x <= 2.0 ? k0_near(x) : scaled(x, 0) * exp(-x);
}

double tni_k1(double x)
{
    return x > 0.0 && x <= 2.0 ? k1_near(x) : scaled(x, 1) * exp(-x);
}
