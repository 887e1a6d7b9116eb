/* SPDX-License-Identifier: MIT */
/* cpu/kern/rare.c: loops over special functions. All are computed in double, one by one: they are
 * seldom what a program waits for, so they are compiled once. */
#include "cpu/kern/rare.h"
#include <complex.h>
#include <stdlib.h>
#include "cpu/kern/loop.h"

#define PI 3.14159265358979323846

/* ---- short ones ---- */

static double sinc(double x)
{
    return x == 0.0 ? 1.0 : sin(PI * x) / (PI * x);
}

static double complex sinc_complex(double complex x)
{
    return creal(x) == 0.0 && cimag(x) == 0.0 ? 1.0 : csin(PI * x) / (PI * x);
}

static double entr(double x)
{
    return x > 0.0 ? -x * log(x) : x == 0.0 ? 0.0 : x < 0.0 ? -(double)INFINITY : x;
}

static double spherical_j0(double x)
{
    if (isinf(x))
        return 0.0;
    return fabs(x) < 1e-4 ? 1.0 - x * x / 6.0 : sin(x) / x;
}

static double xlog1py(double x, double y)
{
    return isnan(y) ? y : x == 0.0 ? 0.0 : x * log1p(y);
}

static double logaddexp2(double x, double y)
{
    if (isinf(x) && x == y)
        return x;
    if (isnan(x) || isnan(y))
        return (double)NAN;
    return (x > y ? x : y) + 1.44269504088896340736 * log1p(exp2(-fabs(x - y)));
}

/* ---- polynomials of degree n: p and q are those of the two degrees before ---- */

enum { T, U, V, W };

/* No more steps than this are taken, whatever degree is asked for: some milliseconds. */
enum { MANY_STEPS = 1 << 20 };

static int64_t whole_degree(double degree)
{
    return fabs(degree) < 0x1p63 ? (int64_t)degree : -1;
}

/* Of a high degree outside [-1, 1]. What overflows is NaN, as the steps would come to inf - inf. */
static double chebyshev_outside(double x, int64_t n, int kind)
{
    double t = acosh(fabs(x)), m = (double)n, q;
    int mirrored = x > 0.0 || kind < V ? kind : V + W - kind;
    switch (mirrored) {
    case T:
        q = cosh(m * t);
        break;
    case U:
        q = sinh((m + 1.0) * t) / sinh(t);
        break;
    case V:
        q = cosh((m + 0.5) * t) / cosh(0.5 * t);
        break;
    default:
        q = sinh((m + 0.5) * t) / sinh(0.5 * t);
    }
    return !isfinite(q) ? (double)NAN : x > 0.0 || n % 2 == 0 ? q : -q;
}

static double chebyshev(double x, double degree, int kind)
{
    int64_t n = whole_degree(degree);
    if (n < 0)
        return 0.0;
    double p = 1.0, q = kind == T   ? x
                        : kind == U ? 2.0 * x
                        : kind == V ? 2.0 * x - 1.0
                                    : 2.0 * x + 1.0;
    if (n > 8 && fabs(x) < 1.0) {
        double t = acos(x), half = 0.5 * t, m = (double)n;
        switch (kind) {
        case T:
            return cos(m * t);
        case U:
            return sin((m + 1.0) * t) / sin(t);
        case V:
            return cos((m + 0.5) * t) / cos(half);
        default:
            return sin((m + 0.5) * t) / sin(half);
        }
    }
    if (fabs(x) == 1.0) {
        double many = kind == U ? (double)n + 1.0 : 2.0 * (double)n + 1.0;
        bool steep = kind == U || (kind == V && x < 0.0) || (kind == W && x > 0.0);
        return (x > 0.0 || n % 2 == 0 ? 1.0 : -1.0) * (steep ? many : 1.0);
    }
    if (n > MANY_STEPS)
        return chebyshev_outside(x, n, kind);
    for (int64_t k = 2; k <= n && !isnan(q); k++) {
        double r = 2.0 * x * q - p;
        p = q;
        q = r;
    }
    return n == 0 ? 1.0 : q;
}

enum { HERMITE, HERMITE_E, LAGUERRE, LEGENDRE };

static double polynomial(double x, double degree, int kind)
{
    int64_t n = whole_degree(degree);
    if (n < 0)
        return 0.0;
    if (kind == LAGUERRE && x == 0.0)
        return 1.0;
    if (kind == LEGENDRE && fabs(x) == 1.0)
        return x > 0.0 || n % 2 == 0 ? 1.0 : -1.0;
    if (n > MANY_STEPS)
        return (double)NAN;
    double p = 1.0, q = kind == HERMITE ? 2.0 * x : kind == LAGUERRE ? 1.0 - x : x;
    for (int64_t k = 1; k < n && !isnan(q); k++) {
        double m = (double)k, r;
        switch (kind) {
        case HERMITE:
            r = 2.0 * (x * q - m * p);
            break;
        case HERMITE_E:
            r = x * q - m * p;
            break;
        case LAGUERRE:
            r = ((2.0 * m + 1.0 - x) * q - m * p) / (m + 1.0);
            break;
        default:
            r = ((2.0 * m + 1.0) * x * q - m * p) / (m + 1.0);
        }
        p = q;
        q = r;
    }
    return n == 0 ? 1.0 : q;
}

/* ---- loops ---- */

#define RARE1(name, expression)           \
    LOOP1(name##_f64, double, expression) \
    LOOP_HEAD(name##_f32)                 \
    {                                     \
        float *o = out;                   \
        const float *a = in[0];           \
        (void)ctx;                        \
        for (int64_t i = 0; i < n; i++) { \
            double x = (double)a[i];      \
            o[i] = (float)(expression);   \
        }                                 \
    }
#define RARE2(name, expression)                        \
    LOOP2(name##_f64, double, expression)              \
    LOOP_HEAD(name##_f32)                              \
    {                                                  \
        float *o = out;                                \
        const float *a = in[0], *b = in[1];            \
        (void)ctx;                                     \
        for (int64_t i = 0; i < n; i++) {              \
            double x = (double)a[i], y = (double)b[i]; \
            o[i] = (float)(expression);                \
        }                                              \
    }
#define RARE_ROW(NAME, name) ROW(NAME) = {[TN_DTYPE_F32] = name##_f32, [TN_DTYPE_F64] = name##_f64}

RARE1(digamma, tni_digamma(x))
RARE1(i0, tni_i0(x))
RARE1(i0e, tni_i0e(x))
RARE1(i1, tni_i1(x))
RARE1(i1e, tni_i1e(x))
RARE1(ndtri, tni_ndtri(x))
RARE1(log_ndtr, tni_log_ndtr(x))
RARE1(erfcx, tni_erfcx(x))
RARE1(sinc, sinc(x))
LOOP1(sinc_c64, float complex, (float complex)sinc_complex((double complex)x))
LOOP1(sinc_c128, double complex, sinc_complex(x))
RARE1(entr, entr(x))
RARE1(j0, j0(x))
RARE1(j1, j1(x))
RARE1(y0, y0(x))
RARE1(y1, y1(x))
RARE1(k0, tni_k0(x))
RARE1(k1, tni_k1(x))
RARE1(k0e, tni_k0e(x))
RARE1(k1e, tni_k1e(x))
RARE1(spherical_j0, spherical_j0(x))
RARE1(airy_ai, tni_airy_ai(x))
RARE1(polygamma, tni_polygamma(((const double *)ctx)[0], x))
RARE2(logaddexp2, logaddexp2(x, y))
RARE2(xlog1py, xlog1py(x, y))
RARE2(zeta, tni_zeta(x, y))
RARE2(igamma, tni_igamma(x, y))
RARE2(igammac, tni_igammac(x, y))
RARE2(gamma_slope, tni_gamma_slope(x, y))
RARE2(chebyshev_t, chebyshev(x, y, T))
RARE2(chebyshev_u, chebyshev(x, y, U))
RARE2(chebyshev_v, chebyshev(x, y, V))
RARE2(chebyshev_w, chebyshev(x, y, W))
RARE2(hermite, polynomial(x, y, HERMITE))
RARE2(hermite_e, polynomial(x, y, HERMITE_E))
RARE2(laguerre, polynomial(x, y, LAGUERRE))
RARE2(legendre, polynomial(x, y, LEGENDRE))

LOOP_HEAD(dirichlet_slope_f64)
{
    double *o = out;
    const double *a = in[0], *b = in[1], *c = in[2];
    (void)ctx;
    for (int64_t i = 0; i < n; i++)
        o[i] = tni_dirichlet_slope(a[i], b[i], c[i]);
}
LOOP_HEAD(dirichlet_slope_f32)
{
    float *o = out;
    const float *a = in[0], *b = in[1], *c = in[2];
    (void)ctx;
    for (int64_t i = 0; i < n; i++)
        o[i] = (float)tni_dirichlet_slope((double)a[i], (double)b[i], (double)c[i]);
}

LOOP2(copysign_f32, float, copysignf(x, y))
LOOP2(copysign_f64, double, copysign(x, y))
LOOP2(nextafter_f32, float, nextafterf(x, y))
LOOP2(nextafter_f64, double, nextafter(x, y))

/* On the bits of a half: its numbers are in order, with a sign in front. @p inf: the infinity. */
static uint16_t next_half(uint16_t x, uint16_t y, uint16_t inf)
{
    uint16_t ax = x & 0x7FFF, ay = y & 0x7FFF;
    int sx = x >> 15 ? -(int)ax : ax, sy = y >> 15 ? -(int)ay : ay;
    if (ax > inf || ay > inf)
        return ax > inf ? x : y;
    if (sx == sy)
        return y;
    if (ax == 0)
        return (y & 0x8000) | 1;
    return (uint16_t)((sx < sy) == (sx > 0) ? x + 1 : x - 1);
}
LOOP2(nextafter_f16, uint16_t, next_half(x, y, 0x7C00))
LOOP2(nextafter_bf16, uint16_t, next_half(x, y, 0x7F80))

/* ---- whole numbers ---- */

#define SIGNED(X)   \
    X(i8, int8_t)   \
    X(i16, int16_t) \
    X(i32, int32_t) \
    X(i64, int64_t)
#define WHOLE(X) SIGNED(X) X(u8, uint8_t)
#define EVERY(X) WHOLE(X) X(f32, float) X(f64, double)

static uint64_t magnitude(int64_t x)
{
    return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}
static uint64_t gcd(int64_t x, int64_t y)
{
    uint64_t a = magnitude(x), b = magnitude(y);
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}
static uint64_t lcm(int64_t x, int64_t y)
{
    uint64_t d = gcd(x, y);
    return d ? magnitude(x) / d * magnitude(y) : 0;
}

/* A multiple that is too large wraps in the dtype or, if that is shorter, in 32 bits, and is then
 * made positive: the reference's result. */
#define GCD(S, C)                   \
    LOOP2(gcd_##S, C, (C)gcd(x, y)) \
    LOOP2(lcm_##S, C, (C)(sizeof(C) < 8 ? magnitude((int32_t)lcm(x, y)) : magnitude((C)lcm(x, y))))
WHOLE(GCD)
/* @p y at 0; NaN is no number above 0. */
#define STEP(S, C) LOOP2(heaviside_##S, C, x == 0 ? y : (C)(x > 0))
WHOLE(STEP)
#define BELOW(S, C) LOOP1_TO(signbit_##S, uint8_t, C, x < 0)
SIGNED(BELOW)
LOOP2(heaviside_bool, uint8_t, tni_truth(x | y))
LOOP2(heaviside_f32, float, x == 0.0f ? y : (float)(x > 0.0f))
LOOP2(heaviside_f64, double, x == 0.0 ? y : (double)(x > 0.0))
LOOP1_TO(signbit_f32, uint8_t, float, signbit(x) != 0)
LOOP1_TO(signbit_f64, uint8_t, double, signbit(x) != 0)
LOOP1_TO(signbit_u8, uint8_t, uint8_t, x & 0)

#define WHOLE_ROW(name)                                                                  \
    [TN_DTYPE_I8] = name##_i8, [TN_DTYPE_I16] = name##_i16, [TN_DTYPE_I32] = name##_i32, \
    [TN_DTYPE_I64] = name##_i64, [TN_DTYPE_U8] = name##_u8
#define EVERY_ROW(name)                                                        \
    WHOLE_ROW(name), [TN_DTYPE_F32] = name##_f32, [TN_DTYPE_F64] = name##_f64, \
                     [TN_DTYPE_BOOL] = name##_bool

const tni_loop_table tni_rare = {
    RARE_ROW(DIGAMMA, digamma),
    RARE_ROW(I0, i0),
    RARE_ROW(I0E, i0e),
    RARE_ROW(I1, i1),
    RARE_ROW(I1E, i1e),
    RARE_ROW(NDTRI, ndtri),
    RARE_ROW(LOG_NDTR, log_ndtr),
    RARE_ROW(ERFCX, erfcx),
    RARE_ROW(ENTR, entr),
    RARE_ROW(J0, j0),
    RARE_ROW(J1, j1),
    RARE_ROW(Y0, y0),
    RARE_ROW(Y1, y1),
    ROW(SINC) = {[TN_DTYPE_F32] = sinc_f32,
                 [TN_DTYPE_F64] = sinc_f64,
                 [TN_DTYPE_C64] = sinc_c64,
                 [TN_DTYPE_C128] = sinc_c128},
};

const tni_loop_table tni_rare2 = {
    RARE_ROW(K0, k0),
    RARE_ROW(K1, k1),
    RARE_ROW(K0E, k0e),
    RARE_ROW(K1E, k1e),
    RARE_ROW(SPHERICAL_J0, spherical_j0),
    RARE_ROW(AIRY_AI, airy_ai),
    RARE_ROW(POLYGAMMA, polygamma),
    RARE_ROW(LOGADDEXP2, logaddexp2),
    RARE_ROW(XLOG1PY, xlog1py),
    RARE_ROW(ZETA, zeta),
    RARE_ROW(IGAMMA, igamma),
    RARE_ROW(IGAMMAC, igammac),
    RARE_ROW(GAMMA_SLOPE, gamma_slope),
    RARE_ROW(DIRICHLET_SLOPE, dirichlet_slope),
    ROW(SIGNBIT) = {WHOLE_ROW(signbit), [TN_DTYPE_F32] = signbit_f32, [TN_DTYPE_F64] = signbit_f64,
                    [TN_DTYPE_BOOL] = signbit_u8},
};

const tni_loop_table tni_rare3 = {
    RARE_ROW(CHEBYSHEV_T, chebyshev_t),
    RARE_ROW(CHEBYSHEV_U, chebyshev_u),
    RARE_ROW(CHEBYSHEV_V, chebyshev_v),
    RARE_ROW(CHEBYSHEV_W, chebyshev_w),
    RARE_ROW(HERMITE, hermite),
    RARE_ROW(HERMITE_E, hermite_e),
    RARE_ROW(LAGUERRE, laguerre),
    RARE_ROW(LEGENDRE, legendre),
    RARE_ROW(COPYSIGN, copysign),
    ROW(NEXTAFTER) = {[TN_DTYPE_F16] = nextafter_f16,
                      [TN_DTYPE_BF16] = nextafter_bf16,
                      [TN_DTYPE_F32] = nextafter_f32,
                      [TN_DTYPE_F64] = nextafter_f64},
    ROW(HEAVISIDE) = {EVERY_ROW(heaviside)},
    ROW(GCD) = {WHOLE_ROW(gcd)},
    ROW(LCM) = {WHOLE_ROW(lcm)},
};
