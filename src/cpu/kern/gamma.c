/* SPDX-License-Identifier: MIT */
/* cpu/kern/gamma.c: the gamma function's relatives. Sums by Euler and Maclaurin after the argument
 * was shifted up; incomplete forms by a series, a continued fraction, and an expansion for large
 * parameters. */
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include "cpu/kern/rare.h"

#define PI 3.14159265358979323846

double tni_lgamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double tni_digamma(double x)
{
    if (x == 0.0)
        return copysign((double)INFINITY, -x);
    double sum = 0.0;
    if (x < 0.0) {
        double whole, rest = modf(x, &whole);
        if (rest == 0.0)
            return (double)NAN;
        sum = -PI / tan(PI * rest);
        x = 1.0 - x;
    }
    for (; x < 12.0; x += 1.0)
        sum -= 1.0 / x;
    /* B(2k) / (2k) */
    static const double b[] = {1.0 / 12,  -1.0 / 120,       1.0 / 252, -1.0 / 240,
                               5.0 / 660, -691.0 / 32760.0, 1.0 / 12,  -3617.0 / 8160.0};
    double z = 1.0 / (x * x), tail = 0.0;
    for (int k = 7; k >= 0; k--)
        tail = (tail + b[k]) * z;
    return sum + (log(x) - 0.5 / x - tail);
}

/* The sum over k >= 0 of (q + k)^-s. */
double tni_zeta(double s, double q)
{
    if (s == 1.0)
        return (double)INFINITY;
    if (!(s > 1.0) || isnan(q))
        return (double)NAN;
    if (isinf(q) && q > 0.0)
        return 0.0;
    if (q <= 0.0) {
        if (q == floor(q))
            return (double)INFINITY;
        if (s != floor(s))
            return (double)NAN;
    }
    double sum = 0.0;
    double enough = 12.0 + s;
    for (int k = 0; q < enough && k < 1000000; k++, q += 1.0) {
        double term = pow(q, -s);
        sum += term;
        if (q > 0.0 && term < DBL_EPSILON * 0.01 * sum)
            return sum;
    }
    double power = pow(q, -s), term = s * power / q;
    sum += power * q / (s - 1.0) + 0.5 * power;
    /* B(2k) / (2k)!, each with two more factors s, s + 1, … and two more powers of 1 / q. */
    static const double b[] = {1.0 / 12,
                               -1.0 / 720,
                               1.0 / 30240,
                               -1.0 / 1209600,
                               1.0 / 47900160,
                               -691.0 / 1307674368000.0,
                               1.0 / 74724249600.0,
                               -3617.0 / 10670622842880000.0,
                               43867.0 / 5109094217170944000.0};
    for (int k = 0; k < 9; k++) {
        sum += b[k] * term;
        term *= (s + 2 * k + 1) * (s + 2 * k + 2) / (q * q);
    }
    return sum;
}

double tni_polygamma(double n, double x)
{
    if (n == 0.0)
        return tni_digamma(x);
    if (n == 1.0 && x < 0.5 && (x != floor(x) || isinf(x))) { /* reflection; NaN at -inf */
        double s = sin(PI * (x - floor(x)));
        return PI * PI / (s * s) - tni_zeta(2.0, 1.0 - x);
    }
    double factor = exp(tni_lgamma(n + 1.0));
    return (fmod(n, 2.0) == 0.0 ? -factor : factor) * tni_zeta(n + 1.0, x);
}

/* ---- incomplete ---- */

#define TERMS 100000

/* x^a exp(-x) / gamma(a) */
static double weight(double a, double x)
{
    if (a > 20.0) { /* through Stirling's series, where large numbers cancel before the exponent */
        double d = (x - a) / a, z = 1.0 / (a * a);
        double series = (1.0 / 12 - z * (1.0 / 360 - z * (1.0 / 1260 - z / 1680))) / a;
        return exp(a * (log1p(d) - d) - series) * sqrt(a / (2.0 * PI));
    }
    return exp(a * log(x) - x - tni_lgamma(a));
}

static double lower_series(double a, double x)
{
    double term = 1.0 / a, sum = term;
    for (int k = 1; k < TERMS && term > sum * 0.5 * DBL_EPSILON; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum * weight(a, x);
}

/* Lentz's way through the continued fraction. */
static double upper_fraction(double a, double x)
{
    double b = x + 1.0 - a, c = 1.0 / DBL_MIN, d = 1.0 / b, h = d;
    for (int i = 1; i < TERMS; i++) {
        double an = -i * (i - a);
        b += 2.0;
        d = an * d + b;
        d = fabs(d) < DBL_MIN ? DBL_MIN : d;
        c = b + an / c;
        c = fabs(c) < DBL_MIN ? DBL_MIN : c;
        d = 1.0 / d;
        double step = d * c;
        h *= step;
        if (fabs(step - 1.0) < DBL_EPSILON)
            break;
    }
    return h * weight(a, x);
}

#define LARGE 1e8

/* Temme's expansion for a >= LARGE, where series and fraction would be too long: half of erfc, and
 * a small rest. With x = a (1 + m), eta^2 / 2 is m - log(1 + m); beyond a hundredth of m the tail
 * is 0 in every digit. @p side: 1 for what lies above x, -1 for what lies below. */
static double large_parameter(double a, double x, double side)
{
    double m = (x - a) / a;
    if (fabs(m) > 0.01)
        return m * side > 0.0 ? 0.0 : 1.0;
    double sum = 0.0;
    for (int k = 10; k >= 2; k--)
        sum = 1.0 / k - m * sum;
    double eta = m * sqrt(2.0 * sum);
    double rest = -1.0 / 3 + eta * (1.0 / 12 - eta * (2.0 / 135 - eta / 864.0)) - 1.0 / (540.0 * a);
    double density = exp(-0.5 * a * eta * eta) / sqrt(2.0 * PI * a);
    return 0.5 * erfc(side * eta * sqrt(0.5 * a)) + side * density * rest;
}

double tni_igamma(double a, double x)
{
    if (!(x >= 0.0) || !(a >= 0.0))
        return (double)NAN;
    if (a == 0.0)
        return x > 0.0 ? 1.0 : (double)NAN;
    if (x == 0.0)
        return 0.0;
    if (isinf(a))
        return isinf(x) ? (double)NAN : 0.0;
    if (isinf(x))
        return 1.0;
    if (a >= LARGE)
        return large_parameter(a, x, -1.0);
    return x < a + 1.0 ? lower_series(a, x) : 1.0 - upper_fraction(a, x);
}

double tni_igammac(double a, double x)
{
    if (!(x >= 0.0) || !(a >= 0.0))
        return (double)NAN;
    if (a == 0.0)
        return x > 0.0 ? 0.0 : (double)NAN;
    if (x == 0.0)
        return 1.0;
    if (isinf(a))
        return isinf(x) ? (double)NAN : 1.0;
    if (isinf(x))
        return 0.0;
    if (a >= LARGE)
        return large_parameter(a, x, 1.0);
    return x < a + 1.0 ? 1.0 - lower_series(a, x) : upper_fraction(a, x);
}

/* ---- how samples move ---- */

/* dx/da at constant P(a, x) is -(dP/da) / (dP/dx). The series of P is differentiated term by term,
 * and what it is divided by is its own weight: P = w S, dP/dx = w / x. Where the series would be
 * long, the upper form is differentiated by a difference of fourth order. */
double tni_gamma_slope(double a, double x)
{
    if (!(x > 0.0) || !(a > 0.0))
        return x == 0.0 ? 0.0 : (double)NAN;
    if (x < a + 10.0 && a < 1e4) {
        double term = 1.0 / a, slope = -1.0 / a, sum = term, dsum = term * slope;
        for (int k = 1; k < TERMS && term > sum * 0.5 * DBL_EPSILON; k++) {
            term *= x / (a + k);
            slope -= 1.0 / (a + k);
            sum += term;
            dsum += term * slope;
        }
        return -x * ((log(x) - tni_digamma(a)) * sum + dsum);
    }
    double h = 1e-3 * a, density = weight(a, x) / x;
    double d = 8.0 * (tni_igammac(a + h, x) - tni_igammac(a - h, x)) -
               (tni_igammac(a + 2.0 * h, x) - tni_igammac(a - 2.0 * h, x));
    return density > 0.0 ? d / (12.0 * h) / density : 1.0;
}

/* The same for the beta distribution of alpha and total - alpha, divided by 1 - x. With w = x^a
 * (1 - x)^b / B(a, b), the lower tail is w times the sum of (a + b)_k x^k / (a)_(k + 1), and the
 * upper one the same with both sides exchanged: sums of positive terms. The tail that is small at x
 * is the one that is differentiated, term by term; w cancels with the density's. */
double tni_dirichlet_slope(double x, double alpha, double total)
{
    double b = total - alpha;
    if (!(x > 0.0 && x < 1.0) || !(alpha > 0.0) || !(b > 0.0))
        return x == 0.0 || x == 1.0 ? 0.0 : (double)NAN;
    bool lower = x < (alpha + 1.0) / (total + 2.0);
    double own = lower ? alpha : b, ratio = lower ? x : 1.0 - x;
    double term = 1.0 / own, slope = lower ? -term : 0.0, sum = 0.0, moved = 0.0;
    for (int k = 0; k < TERMS; k++) {
        sum += term;
        moved += term * slope;
        double next = term * (total + k) * ratio / (own + k + 1);
        if (next < term && next < 0.5 * DBL_EPSILON * (1.0 - ratio) * sum)
            break;
        slope += 1.0 / (total + k) - (lower ? 1.0 / (own + k + 1) : 0.0);
        term = next;
    }
    double rate = log(x) - tni_digamma(alpha) + tni_digamma(total);
    return (lower ? -1.0 : 1.0) * (rate * sum + moved) * x;
}
