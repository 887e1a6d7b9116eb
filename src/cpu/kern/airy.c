/* SPDX-License-Identifier: MIT */
/* cpu/kern/airy.c: the Airy function Ai. From -9.5 to 9.5 by the Taylor series about the nearest
 * whole number, which its equation Ai'' = x Ai gives from the value and the slope there; beyond by
 * the asymptotic series, whose smallest term is below rounding from there on. */
#include <float.h>
#include <math.h>
#include "cpu/kern/rare.h"

enum { NEAR = 9, TERMS = 40 };

/* Ai and Ai' at -NEAR, …, NEAR, from their power series in 80 decimal digits. */
static const double at_whole[2 * NEAR + 1][2] = {
    {-0.022133721547341403, -0.9756639809263316},
    {-0.0527050503563862, 0.9355609381983065},
    {0.18428083525050565, -0.7710081684101265},
    {-0.3291451736298231, 0.3459354872813429},
    {0.35076100902411433, 0.32719281855444315},
    {-0.07026553294928951, -0.7906285753685813},
    {-0.37881429367765806, 0.3145837692165988},
    {0.22740742820168558, 0.618259020741691},
    {0.5355608832923521, -0.01016056711664521},
    {0.3550280538878172, -0.2588194037928068},
    {0.13529241631288141, -0.1591474412967932},
    {0.03492413042327438, -0.05309038443365363},
    {0.006591139357460719, -0.011912976705951319},
    {0.0009515638512048018, -0.001958640950204179},
    {0.00010834442813607442, -0.0002474138908684625},
    {9.947694360252889e-06, -2.4765200397034955e-05},
    {7.492128863997167e-07, -2.008150894738792e-06},
    {4.6922076160992316e-08, -1.3414392979067865e-07},
    {2.47116843087249e-09, -7.480641389658946e-09},
};

static double taylor(double x)
{
    double whole = nearbyint(x), h = x - whole;
    const double *start = at_whole[(int)whole + NEAR];
    /* Coefficients n - 1, n and n + 1: (n + 1)(n + 2) a[n + 2] = whole a[n] + a[n - 1]. */
    double before = 0.0, a = start[0], next = start[1], power = h, sum = a;
    for (int n = 0; n < TERMS; n++) {
        sum += next * power;
        double after = (whole * a + before) / ((n + 1.0) * (n + 2.0));
        before = a;
        a = next;
        next = after;
        power *= h;
    }
    return sum;
}

/* Sums of every second term of the asymptotic series in 1 / zeta: those of even numbers and of odd
 * ones, the signs of each kind alternating for negative arguments alone. */
static void asymptotic(double zeta, double sign, double sums[2])
{
    double term = 1.0;
    sums[0] = 1.0;
    sums[1] = 0.0;
    for (int k = 1; k < 30; k++) {
        double grown = term * (6.0 * k - 5.0) * (6.0 * k - 1.0) / (72.0 * k * zeta);
        if (grown > term || grown < 0.25 * DBL_EPSILON)
            break;
        term = grown;
        sums[k & 1] += k / 2 % 2 ? sign * term : term;
    }
}

double tni_airy_ai(double x)
{
    if (isinf(x)) /* as the reference has it */
        return (double)NAN;
    if (isnan(x) || fabs(x) <= NEAR + 0.5)
        return isnan(x) ? x : taylor(x);
    double root = sqrt(fabs(x)), zeta = fabs(x) * root / 1.5, sums[2];
    double scale = M_2_SQRTPI / 2.0 / sqrt(root);
    if (x > 0.0) {
        asymptotic(zeta, 1.0, sums);
        return 0.5 * scale * exp(-zeta) * (sums[0] - sums[1]);
    }
    if (isinf(zeta)) /* no digit of the phase is known */
        return (double)NAN;
    asymptotic(zeta, -1.0, sums);
    double phase = zeta - M_PI_4;
    return scale * (cos(phase) * sums[0] + sin(phase) * sums[1]);
}
