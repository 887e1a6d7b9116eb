/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_ulp.c: errors of functions of one number, in units in the last place, against
 * MPFR, in each instruction set. The limits are those of docs/user/accuracy.md. */
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>
#include "cpu/loops.h"
#include "harness/test.h"

enum { N = 2000, DIGITS = 200 };

typedef int (*exact_fn)(mpfr_t, const mpfr_t, mpfr_rnd_t);

static int gelu(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    mpfr_t t;
    mpfr_init2(t, DIGITS);
    mpfr_set_d(t, 0.5, round);
    mpfr_sqrt(t, t, round);
    mpfr_mul(t, t, x, round);
    mpfr_neg(t, t, round);
    mpfr_erfc(t, t, round); /* 1 + erf(x / sqrt 2) */
    mpfr_mul(t, t, x, round);
    mpfr_div_ui(y, t, 2, round);
    mpfr_clear(t);
    return 0;
}

static int sigmoid(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    mpfr_neg(y, x, round);
    mpfr_exp(y, y, round);
    mpfr_add_ui(y, y, 1, round);
    return mpfr_ui_div(y, 1, y, round);
}

/* The loop clamps to its parameter and 1 less it: here to nothing. */
static const double no_clamp[TNI_LOOP_PARAMETERS] = {-1};
static int logit(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    mpfr_ui_sub(y, 1, x, round);
    mpfr_div(y, x, y, round);
    return mpfr_log(y, y, round);
}

static int log_gamma(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    int sign;
    return mpfr_lgamma(y, &sign, x, round);
}

/* Newton's method from below: erf is concave there, so each step stays below and comes closer. */
static int inverse_erf(mpfr_t y, const mpfr_t x, mpfr_rnd_t round)
{
    mpfr_t root, step, slope;
    mpfr_inits2(DIGITS, root, step, slope, (mpfr_ptr)NULL);
    mpfr_const_pi(root, round);
    mpfr_sqrt(root, root, round);
    mpfr_div_ui(root, root, 2, round);
    mpfr_abs(y, x, round);
    mpfr_mul(y, y, root, round);
    do {
        mpfr_erf(step, y, round);
        mpfr_abs(slope, x, round);
        mpfr_sub(step, slope, step, round);
        mpfr_sqr(slope, y, round);
        mpfr_exp(slope, slope, round);
        mpfr_mul(step, step, slope, round);
        mpfr_mul(step, step, root, round);
        mpfr_add(y, y, step, round);
    } while (!mpfr_zero_p(step) && mpfr_get_exp(step) > mpfr_get_exp(y) - 80);
    mpfr_copysign(y, y, x, round);
    mpfr_clears(root, step, slope, (mpfr_ptr)NULL);
    return 0;
}

/* The modified Bessel functions by their power series, in so many digits that those of K, which is
 * exp(2x) times smaller than its parts, are left. */
enum { SERIES_DIGITS = 320 };
typedef struct bessel {
    mpfr_t i0, i1, k0, k1;
} bessel;

static void bessel_of(bessel *b, const mpfr_t x)
{
    mpfr_t z, term, harmonic, part;
    mpfr_inits2(SERIES_DIGITS, z, term, harmonic, part, b->i0, b->i1, b->k0, b->k1, (mpfr_ptr)NULL);
    mpfr_sqr(z, x, MPFR_RNDN);
    mpfr_div_ui(z, z, 4, MPFR_RNDN);
    mpfr_set_ui(term, 1, MPFR_RNDN);
    mpfr_set_ui(b->i0, 1, MPFR_RNDN);
    mpfr_set_ui(b->i1, 1, MPFR_RNDN);
    mpfr_set_ui(b->k0, 0, MPFR_RNDN);
    mpfr_set_ui(harmonic, 0, MPFR_RNDN);
    for (unsigned long k = 1; k < 40 || mpfr_get_exp(term) > mpfr_get_exp(b->i0) - SERIES_DIGITS;
         k++) {
        mpfr_div_ui(term, term, k * k, MPFR_RNDN);
        mpfr_mul(term, term, z, MPFR_RNDN);
        mpfr_add(b->i0, b->i0, term, MPFR_RNDN);
        mpfr_div_ui(part, term, k + 1, MPFR_RNDN);
        mpfr_add(b->i1, b->i1, part, MPFR_RNDN);
        mpfr_set_ui(part, 1, MPFR_RNDN);
        mpfr_div_ui(part, part, k, MPFR_RNDN);
        mpfr_add(harmonic, harmonic, part, MPFR_RNDN);
        mpfr_mul(part, term, harmonic, MPFR_RNDN);
        mpfr_add(b->k0, b->k0, part, MPFR_RNDN);
    }
    mpfr_mul(b->i1, b->i1, x, MPFR_RNDN);
    mpfr_div_ui(b->i1, b->i1, 2, MPFR_RNDN);
    /* k0 -= (log(x / 2) + gamma) i0; k1 = (1 / x - i1 k0) / i0 */
    mpfr_div_ui(part, x, 2, MPFR_RNDN);
    mpfr_log(part, part, MPFR_RNDN);
    mpfr_const_euler(term, MPFR_RNDN);
    mpfr_add(part, part, term, MPFR_RNDN);
    mpfr_mul(part, part, b->i0, MPFR_RNDN);
    mpfr_sub(b->k0, b->k0, part, MPFR_RNDN);
    mpfr_ui_div(b->k1, 1, x, MPFR_RNDN);
    mpfr_mul(part, b->i1, b->k0, MPFR_RNDN);
    mpfr_sub(b->k1, b->k1, part, MPFR_RNDN);
    mpfr_div(b->k1, b->k1, b->i0, MPFR_RNDN);
    mpfr_clears(z, term, harmonic, part, (mpfr_ptr)NULL);
}
#define EXACT_BESSEL(name, field, scale)                                \
    static int exact_##name(mpfr_t y, const mpfr_t x, mpfr_rnd_t round) \
    {                                                                   \
        bessel b;                                                       \
        mpfr_t factor;                                                  \
        bessel_of(&b, x);                                               \
        mpfr_init2(factor, SERIES_DIGITS);                              \
        mpfr_abs(factor, x, round);                                     \
        mpfr_mul_si(factor, factor, scale, round);                      \
        mpfr_exp(factor, factor, round);                                \
        mpfr_mul(y, b.field, factor, round);                            \
        mpfr_clears(b.i0, b.i1, b.k0, b.k1, factor, (mpfr_ptr)NULL);    \
        return 0;                                                       \
    }
EXACT_BESSEL(i0, i0, 0)
EXACT_BESSEL(i1, i1, 0)
EXACT_BESSEL(i0e, i0, -1)
EXACT_BESSEL(i1e, i1, -1)
EXACT_BESSEL(k0, k0, 0)
EXACT_BESSEL(k1, k1, 0)

/* Errors near a zero of the function are counted in units of `scale`, where there is one. */
typedef struct function {
    const char *name;
    tni_loop loop;
    exact_fn exact;
    double low, high; /* arguments: from low to high */
    double limit32, limit64, scale;
} function;

static const function functions[] = {
    {"exp", TNI_LOOP_EXP, mpfr_exp, -700, 700, 1.25, 1.25, 0},
    {"exp2", TNI_LOOP_EXP2, mpfr_exp2, -130, 120, 1.25, 1.25, 0},
    {"log", TNI_LOOP_LOG, mpfr_log, 1e-30, 1e30, 1, 1.25, 0},
    {"log2", TNI_LOOP_LOG2, mpfr_log2, 1e-30, 1e30, 1.25, 1.25, 0},
    {"log2", TNI_LOOP_LOG2, mpfr_log2, 0.5, 2, 1.25, 1.25, 0},
    {"log10", TNI_LOOP_LOG10, mpfr_log10, 1e-30, 1e30, 1, 1.25, 0},
    {"log10", TNI_LOOP_LOG10, mpfr_log10, 0.5, 2, 1, 1.25, 0},
    {"logit", TNI_LOOP_LOGIT, logit, 1e-30, 1 - 0x1p-24, 3, 4, 0.5},
    {"logit", TNI_LOOP_LOGIT, logit, 0.001, 1 - 0x1p-24, 3, 4, 0.5},
    {"tanh", TNI_LOOP_TANH, mpfr_tanh, -30, 30, 1.5, 1.25, 0},
    {"sigmoid", TNI_LOOP_SIGMOID, sigmoid, -80, 80, 2.5, 2.5, 0},
    {"sin", TNI_LOOP_SIN, mpfr_sin, -1e5, 1e5, 1.25, 1, 0},
    {"cos", TNI_LOOP_COS, mpfr_cos, -1e5, 1e5, 1.25, 1, 0},
    {"tan", TNI_LOOP_TAN, mpfr_tan, -1e5, 1e5, 1.5, 1.5, 0},
    {"sin", TNI_LOOP_SIN, mpfr_sin, -20, 20, 1.25, 1, 0},
    {"cos", TNI_LOOP_COS, mpfr_cos, -20, 20, 1.25, 1, 0},
    {"tan", TNI_LOOP_TAN, mpfr_tan, -20, 20, 1.5, 1.5, 0},
    {"atan", TNI_LOOP_ATAN, mpfr_atan, -100, 100, 1.25, 1, 0},
    {"asin", TNI_LOOP_ASIN, mpfr_asin, -1, 1, 1.25, 1.25, 0},
    {"acos", TNI_LOOP_ACOS, mpfr_acos, -1, 1, 1.25, 1.25, 0},
    {"sinh", TNI_LOOP_SINH, mpfr_sinh, -80, 80, 0.75, 1.25, 0},
    {"cosh", TNI_LOOP_COSH, mpfr_cosh, -80, 80, 0.75, 1.25, 0},
    {"asinh", TNI_LOOP_ASINH, mpfr_asinh, -100, 100, 0.75, 1.5, 0},
    {"acosh", TNI_LOOP_ACOSH, mpfr_acosh, 1, 100, 0.75, 2.25, 0},
    {"atanh", TNI_LOOP_ATANH, mpfr_atanh, -1, 1, 0.75, 1.5, 0},
    {"sinh", TNI_LOOP_SINH, mpfr_sinh, -2, 2, 0.75, 1.25, 0},
    {"cosh", TNI_LOOP_COSH, mpfr_cosh, -2, 2, 0.75, 1.25, 0},
    {"tanh", TNI_LOOP_TANH, mpfr_tanh, -1, 1, 1.5, 1.25, 0},
    {"atan", TNI_LOOP_ATAN, mpfr_atan, -3, 3, 1.25, 1, 0},
    {"atanh", TNI_LOOP_ATANH, mpfr_atanh, -0.1, 0.1, 0.75, 1.5, 0},
    {"sinh", TNI_LOOP_SINH, mpfr_sinh, -0.1, 0.1, 0.75, 1.25, 0},
    {"tanh", TNI_LOOP_TANH, mpfr_tanh, -0.1, 0.1, 1.5, 1.25, 0},
    {"expm1", TNI_LOOP_EXPM1, mpfr_expm1, -1, 1, 1.5, 0.75, 0},
    {"log1p", TNI_LOOP_LOG1P, mpfr_log1p, -0.999, 100, 1.5, 1.25, 0},
    {"expm1", TNI_LOOP_EXPM1, mpfr_expm1, -30, 80, 1.5, 0.75, 0},
    {"erf", TNI_LOOP_ERF, mpfr_erf, -6, 6, 1, 1, 0},
    {"erfinv", TNI_LOOP_ERFINV, inverse_erf, -1 + 0x1p-24, 1 - 0x1p-24, 1, 1.25, 0},
    {"erfinv", TNI_LOOP_ERFINV, inverse_erf, 0.99, 1 - 0x1p-24, 1, 1.25, 0}, /* near 1 */
    {"erfc", TNI_LOOP_ERFC, mpfr_erfc, -6, 9, 1, 1.25, 0},
    {"erfc", TNI_LOOP_ERFC, mpfr_erfc, -1, 1, 1, 1.25, 0},
    {"erfc", TNI_LOOP_ERFC, mpfr_erfc, 8.9, 10.2, 1, 1.25, 0}, /* also below normal numbers */
    {"erfc", TNI_LOOP_ERFC, mpfr_erfc, 9, 27.3, 1, 1.25, 0},
    {"gelu", TNI_LOOP_GELU, gelu, -20, 20, 8, 4, 1},
    {"gelu", TNI_LOOP_GELU, gelu, -5.6, -4, 8, 4, 1}, /* where its errors are largest */
    {"lgamma", TNI_LOOP_LGAMMA, log_gamma, 2.5, 1e6, 0.75, 6, 0},
    {"digamma", TNI_LOOP_DIGAMMA, mpfr_digamma, 2, 1e6, 0.75, 8, 0},
    {"i0", TNI_LOOP_I0, exact_i0, -90, 90, 0.75, 4, 0},
    {"i0", TNI_LOOP_I0, exact_i0, -3, 3, 0.75, 4, 0},
    {"i0e", TNI_LOOP_I0E, exact_i0e, -90, 90, 0.75, 3, 0},
    {"i1", TNI_LOOP_I1, exact_i1, -90, 90, 0.75, 4, 0},
    {"i1e", TNI_LOOP_I1E, exact_i1e, -90, 90, 0.75, 3, 0},
    {"k0", TNI_LOOP_K0, exact_k0, 0.001, 40, 0.75, 4, 0},
    {"k0", TNI_LOOP_K0, exact_k0, 0.001, 3, 0.75, 4, 0},
    {"k1", TNI_LOOP_K1, exact_k1, 0.001, 40, 0.75, 4, 0},
    {"k1", TNI_LOOP_K1, exact_k1, 0.001, 3, 0.75, 4, 0},
    {"bessel_j0", TNI_LOOP_J0, mpfr_j0, -50, 50, 0.75, 10, 0.05},
    {"bessel_y1", TNI_LOOP_Y1, mpfr_y1, 0.1, 50, 0.75, 10, 0.05},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

/* The error of @p got in units in the last place of a number of @p digits bits. */
static double error(const function *f, mpfr_t exact, double x, double got, int digits, int least)
{
    mpfr_t at;
    mpfr_init2(at, DIGITS);
    mpfr_set_d(at, x, MPFR_RNDN);
    f->exact(exact, at, MPFR_RNDN);
    mpfr_clear(at);
    double wanted = mpfr_get_d(exact, MPFR_RNDN);
    if (!isfinite(wanted) || !isfinite(got))
        return 0; /* overflow has tests of its own */
    int exponent;
    frexp(fmax(fabs(wanted), f->scale), &exponent);
    int unit = exponent - digits > least ? exponent - digits : least;
    mpfr_sub_d(exact, exact, got, MPFR_RNDN);
    return ldexp(fabs(mpfr_get_d(exact, MPFR_RNDN)), -unit);
}

static double argument(const function *f, int i)
{
    double u = (double)(test_random() >> 11) * 0x1p-53;
    if (f->low > 0 && f->high / f->low > 1e6) /* evenly over the exponents */
        return f->low * pow(f->high / f->low, u);
    if (i % 4 == 0 && f->low < 0) /* near 0 */
        return ldexp(u - 0.5, -(int)(test_random() % 30));
    return f->low + (f->high - f->low) * u;
}

static void check(const function *f, tni_isa isa, bool wide)
{
    static double x[N], y[N];
    static float x32[N], y32[N];
    const void *in[] = {wide ? (const void *)x : (const void *)x32};
    mpfr_t exact;
    mpfr_init2(exact, DIGITS);
    double most = 0, where = 0, limit = wide ? f->limit64 : f->limit32;
    for (int i = 0; i < N; i++) {
        x[i] = argument(f, i);
        if (!wide) {
            x32[i] = (float)fmax(fmin(x[i], f->high), f->low);
            x[i] = (double)x32[i];
        }
    }
    tni_loop_fn loop =
        tni_loop_find(tni_cpu_kernels(), f->loop, wide ? TN_DTYPE_F64 : TN_DTYPE_F32);
    loop(wide ? (void *)y : (void *)y32, in, N, no_clamp);
    for (int i = 0; i < N; i++) {
        double got = wide ? y[i] : (double)y32[i];
        double e =
            wide ? error(f, exact, x[i], got, 53, -1074) : error(f, exact, x[i], got, 24, -149);
        if (e > most) {
            most = e;
            where = x[i];
        }
    }
    mpfr_clear(exact);
    if (isa == TNI_ISA_BASE)
        printf("  %-10s %s %6.3g ulp, at most %g\n", f->name, wide ? "float64" : "float32", most,
               limit);
    test_note("%s in %s, instruction set %d: %g at %a", f->name, wide ? "float64" : "float32",
              (int)isa, most, where);
    EXPECT(most <= limit);
}

/* Functions of two numbers, of float64; powers of float32 are in test_special.c. */
typedef int (*exact2_fn)(mpfr_t, const mpfr_t, const mpfr_t, mpfr_rnd_t);
typedef struct function2 {
    const char *name;
    tni_loop loop;
    exact2_fn exact;
    double low, high, low2, high2, limit;
} function2;

static int exact_xlogy(mpfr_t r, const mpfr_t x, const mpfr_t y, mpfr_rnd_t round)
{
    mpfr_log(r, y, round);
    return mpfr_mul(r, r, x, round);
}

static const function2 functions2[] = {
    {"pow", TNI_LOOP_POW, mpfr_pow, 0.01, 20, -50, 50, 1},
    {"pow", TNI_LOOP_POW, mpfr_pow, 0.999, 1.001, -5e5, 5e5, 1},
    {"pow", TNI_LOOP_POW, mpfr_pow, 0.5, 2, -700, 700, 1},
    {"atan2", TNI_LOOP_ATAN2, mpfr_atan2, -3, 3, -3, 3, 1.25},
    {"hypot", TNI_LOOP_HYPOT, mpfr_hypot, -3, 3, -3, 3, 1.25},
    {"xlogy", TNI_LOOP_XLOGY, exact_xlogy, -5, 5, 0.001, 9, 1.75},
};

static void check2(const function2 *f, tni_isa isa)
{
    static double x[N], y[N], z[N];
    double most = 0;
    int where = 0;
    mpfr_t exact, a, b;
    mpfr_inits2(DIGITS, exact, a, b, (mpfr_ptr)NULL);
    for (int i = 0; i < N; i++) {
        x[i] = f->low + (f->high - f->low) * ((double)(test_random() >> 11) * 0x1p-53);
        y[i] = f->low2 + (f->high2 - f->low2) * ((double)(test_random() >> 11) * 0x1p-53);
    }
    tni_loop_find(tni_cpu_kernels(), f->loop, TN_DTYPE_F64)(z, (const void *const[]){x, y}, N,
                                                            NULL);
    for (int i = 0; i < N; i++) {
        mpfr_set_d(a, x[i], MPFR_RNDN);
        mpfr_set_d(b, y[i], MPFR_RNDN);
        f->exact(exact, a, b, MPFR_RNDN);
        int exponent;
        frexp(mpfr_get_d(exact, MPFR_RNDN), &exponent);
        mpfr_sub_d(exact, exact, z[i], MPFR_RNDN);
        double e = ldexp(fabs(mpfr_get_d(exact, MPFR_RNDN)), 53 - exponent);
        where = e > most ? i : where;
        most = e > most ? e : most;
    }
    mpfr_clears(exact, a, b, (mpfr_ptr)NULL);
    if (isa == TNI_ISA_BASE)
        printf("  %-10s float64 %6.3g ulp, at most %g\n", f->name, most, f->limit);
    test_note("%s, instruction set %d: %g at %a, %a", f->name, (int)isa, most, x[where], y[where]);
    EXPECT(most <= f->limit);
}

TEST(functions_of_two_float64_are_as_exact_as_the_documentation_says)
{
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue; /* this machine lacks it */
        for (size_t f = 0; f < sizeof functions2 / sizeof functions2[0]; f++)
            check2(&functions2[f], (tni_isa)isa);
    }
}

static void check_all(bool wide)
{
    static const tni_isa sets[] = {TNI_ISA_BASE, TNI_ISA_AVX2, TNI_ISA_AVX512};
    tni_loop_fn checked[FUNCTIONS] = {NULL};
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        if (tni_cpu_use(sets[s]) != sets[s])
            continue; /* this machine lacks it */
        for (int f = 0; f < FUNCTIONS; f++) {
            tni_loop_fn loop = tni_loop_find(tni_cpu_kernels(), functions[f].loop,
                                             wide ? TN_DTYPE_F64 : TN_DTYPE_F32);
            if (loop == checked[f])
                continue; /* compiled once for all of them */
            checked[f] = loop;
            check(&functions[f], sets[s], wide);
        }
    }
}

TEST(functions_of_a_float32_are_as_exact_as_the_documentation_says)
{
    check_all(false);
}

TEST(functions_of_a_float64_are_as_exact_as_the_documentation_says)
{
    check_all(true);
}
