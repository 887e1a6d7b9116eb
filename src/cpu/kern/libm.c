/* SPDX-License-Identifier: MIT */
/* cpu/kern/libm.c: functions of complex numbers through the C library, and lgamma. Nothing here
 * vectorises, so it is compiled once. Complex float32 is computed in double. */
#include "cpu/kern/libm.h"
#include <complex.h>
#include "cpu/kern/loop.h"
#include "cpu/kern/rare.h"

typedef float complex cf;
typedef double complex cd;

#define EXPORT1(name, T, expression)                                                   \
    void tni_libm_##name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                                  \
        T *o = out;                                                                    \
        const T *a = in[0];                                                            \
        (void)ctx;                                                                     \
        for (int64_t i = 0; i < n; i++) {                                              \
            T x = a[i];                                                                \
            o[i] = (T)(expression);                                                    \
        }                                                                              \
    }
#define EXPORT2(name, T, expression)                                                   \
    void tni_libm_##name(void *out, const void *const *in, int64_t n, const void *ctx) \
    {                                                                                  \
        T *o = out;                                                                    \
        const T *a = in[0], *b = in[1];                                                \
        (void)ctx;                                                                     \
        for (int64_t i = 0; i < n; i++) {                                              \
            T x = a[i], y = b[i];                                                      \
            o[i] = (T)(expression);                                                    \
        }                                                                              \
    }

#define COMMON(f) WITH(f, c##f((cd)x))
#define WITH(name, of_complex)          \
    EXPORT1(name##_c64, cf, of_complex) \
    EXPORT1(name##_c128, cd, of_complex)
COMMON(sin)
COMMON(cos)
COMMON(tan)
COMMON(asin)
COMMON(acos)
COMMON(atan)
COMMON(sinh)
COMMON(cosh)
COMMON(asinh)
COMMON(acosh)
COMMON(atanh)

/* |1 + x|^2 - 1 is small where log1p is needed; near -1 it is the other number that is. The square
 * of a large number may be none. */
static cd log1p_complex(cd x)
{
    if (fabs(creal(x)) > 1e100 || fabs(cimag(x)) > 1e100)
        return clog(1.0 + x);
    double re = creal(x), im = cimag(x), more = re * (re + 2.0) + im * im;
    double size = more > -0.5 ? 0.5 * log1p(more) : log(hypot(1.0 + re, im));
    return CMPLX(size, atan2(im, 1.0 + re));
}
static cd expm1_complex(cd x)
{
    double re = creal(x), im = cimag(x), half = sin(0.5 * im);
    return CMPLX(expm1(re) * cos(im) - 2.0 * half * half, exp(re) * sin(im));
}
static cd scaled(cd x, double by)
{
    return CMPLX(creal(x) * by, cimag(x) * by);
}
WITH(log1p, log1p_complex((cd)x))
WITH(expm1, expm1_complex((cd)x))
WITH(log2, scaled(clog((cd)x), 1.44269504088896340736))
WITH(log10, scaled(clog((cd)x), 4.34294481903251827651e-1))
WITH(exp2, cexp(scaled((cd)x, 6.93147180559945309417e-1)))

/* Anything to the power 0 is 1 and to the power 1 itself, 1 to any power is 1, and 0 to the power
 * of a positive number 0: exactly, also where parts are not finite. */
static cd pow_complex(cd x, cd y)
{
    if ((creal(y) == 0.0 && cimag(y) == 0.0) || (creal(x) == 1.0 && cimag(x) == 0.0))
        return 1.0;
    if (creal(y) == 1.0 && cimag(y) == 0.0)
        return x;
    if (creal(x) == 0.0 && cimag(x) == 0.0 && cimag(y) == 0.0 && creal(y) > 0.0)
        return 0.0;
    return cpow(x, y);
}
EXPORT2(pow_c64, cf, pow_complex((cd)x, (cd)y))
EXPORT2(pow_c128, cd, pow_complex(x, y))

EXPORT1(lgamma_f64, double, tni_lgamma(x))

/* The one with the larger real part, and the logarithm of 1 and what is left of the other. */
static cd logaddexp_complex(cd x, cd y)
{
    cd more = creal(x) >= creal(y) ? x : y, less = creal(x) >= creal(y) ? y : x;
    if (isnan(creal(x)) || isnan(creal(y)) || isnan(cimag(x)) || isnan(cimag(y)))
        return CMPLX((double)NAN, (double)NAN);
    if (isinf(creal(less)) && creal(less) == creal(more))
        return creal(less) < 0 ? less : clog(cexp(less) + cexp(more));
    cd m = cexp(less - more);
    double re = creal(m), im = cimag(m);
    return more + CMPLX(0.5 * log1p(re * (2.0 + re) + im * im), atan2(im, 1.0 + re));
}
EXPORT2(logaddexp_c64, cf, logaddexp_complex((cd)x, (cd)y))
EXPORT2(logaddexp_c128, cd, logaddexp_complex(x, y))
