/* SPDX-License-Identifier: MIT */
/* cpu/kern/bessel.c: modified Bessel functions of orders 0 and 1. Scaled by exp(-x) or exp(x) they
 * are smooth: polynomials in pieces that grow with x, and in powers of 1 / x beyond. Near 0, I by
 * its power series, whose terms are positive, and K by the series with a logarithm, whose parts are
 * positive up to 1. */
#include <math.h>
#include "cpu/kern/fits_bessel.h"
#include "cpu/kern/maths.h"
#include "cpu/kern/rare.h"

#define EULER 0.57721566490153286061

#define TERMS     15 /* of a piece, and the first coefficient's second part */
#define FAR_TERMS 11

/* c[0] + c[1] x + … */
static double polynomial(const double *c, int n, double x)
{
    double s = x * x, p = c[n - 1], q = c[n - 2];
    for (int i = n - 3; i >= 0; i -= 2) {
        p = p * s + c[i];
        if (i > 0)
            q = q * s + c[i - 1];
    }
    return n % 2 ? p + q * x : p * x + q;
}

/* What is less than the first coefficient last, where its errors are seen least. @p t: x + less,
 * from 1 to 32. */
static double in_pieces(const double (*c)[TERMS], double t, double x, double less)
{
    uint64_t bits = bits_f64(t);
    int i = (int)(bits >> 50) - 0x3ff * 4;
    double middle = from_bits_f64((bits & 0xfffc000000000000u) | 0x0002000000000000u) - less;
    double u = i == 0 && less > 0.0 ? x : x - middle;
    return c[i][0] + (u * polynomial(c[i] + 2, TERMS - 2, u) + c[i][1]);
}

/* 1 + z / (1 (1 + order)) + …, for z = x^2 / 4 up to 1/4, from the smallest term on. */
static double power_series(double x, int order)
{
    double z = 0.25 * x * x, sum = 0.0;
    for (int k = 10; k >= 1; k--)
        sum = (1.0 + sum) * (z / (double)(k * (k + order)));
    return 1.0 + sum;
}

/* ---- I ---- */

static double i_scaled(double a, int order)
{
    if (isinf(a))
        return 0.0;
    if (a < 31.0)
        return order ? a * in_pieces(fit_i1, a + 1.0, a, 1.0) : in_pieces(fit_i0, a + 1.0, a, 1.0);
    return polynomial(order ? fit_i1_far : fit_i0_far, FAR_TERMS, 1.0 / a) / sqrt(a);
}

static double i_whole(double a, int order)
{
    if (isinf(a))
        return a;
    if (a < 1.0)
        return (order ? 0.5 * a : 1.0) * power_series(a, order);
    double s = i_scaled(a, order);
    /* Where the factor alone would overflow too early it is applied in two steps. */
    return a < 700.0 ? s * exp(a) : s * exp(0.5 * a) * exp(0.5 * a);
}

double tni_i0e(double x)
{
    return isnan(x) ? x : i_scaled(fabs(x), 0);
}

double tni_i1e(double x)
{
    return isnan(x) ? x : copysign(i_scaled(fabs(x), 1), x);
}

double tni_i0(double x)
{
    return isnan(x) ? x : i_whole(fabs(x), 0);
}

double tni_i1(double x)
{
    return isnan(x) ? x : copysign(i_whole(fabs(x), 1), x);
}

/* ---- K ---- */

/* Of x below 1. */
static double k0_near(double x)
{
    double z = 0.25 * x * x, term = 1.0, harmonic = 0.0, sum = 0.0;
    for (int k = 1; k < 11; k++) {
        harmonic += 1.0 / k;
        term *= z / ((double)k * k);
        sum += term * harmonic;
    }
    return -(log(0.5 * x) + EULER) * power_series(x, 0) + sum;
}

static double k1_near(double x)
{
    double z = 0.25 * x * x, term = 1.0, psi = 1.0 - 2.0 * EULER, sum = psi;
    for (int k = 1; k < 11; k++) {
        psi += 1.0 / k + 1.0 / (k + 1.0);
        term *= z / ((double)k * (k + 1.0));
        sum += term * psi;
    }
    return 1.0 / x + (log(0.5 * x) * (0.5 * x * power_series(x, 1)) - 0.25 * x * sum);
}

static double k_scaled(double x, int order)
{
    if (!(x > 0.0))
        return x == 0.0 ? (double)INFINITY : (double)NAN;
    if (isinf(x))
        return 0.0;
    if (x < 1.0)
        return exp(x) * (order ? k1_near(x) : k0_near(x));
    if (x < 32.0)
        return in_pieces(order ? fit_k1 : fit_k0, x, x, 0.0);
    return polynomial(order ? fit_k1_far : fit_k0_far, FAR_TERMS, 1.0 / x) / sqrt(x);
}

double tni_k0e(double x)
{
    return k_scaled(x, 0);
}

double tni_k1e(double x)
{
    return k_scaled(x, 1);
}

double tni_k0(double x)
{
    return x > 0.0 && x < 1.0 ? k0_near(x) : k_scaled(x, 0) * exp(-x);
}

double tni_k1(double x)
{
    return x > 0.0 && x < 1.0 ? k1_near(x) : k_scaled(x, 1) * exp(-x);
}
