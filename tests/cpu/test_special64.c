/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_special64.c: functions of float64: corners are those of the C library, and an
 * element's bits depend neither on the instruction set, nor on its place, nor on what stands beside
 * it. How exact they are is tested in test_ulp.c. */
#include <math.h>
#include <string.h>
#include "cpu/loops.h"
#include "harness/test.h"

enum { N = 4096 };

typedef struct function {
    const char *name;
    tni_loop loop;
    int inputs;
    double (*one)(double);
    double (*two)(double, double);
} function;

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}
static double erf_inverse(double x)
{
    return x == 0.0            ? x
           : fabs(x) == 1.0    ? copysign((double)INFINITY, x)
           : fabs(x) < 0x1p-30 ? x * 0.88622692545275801365
                               : (double)NAN; /* of the corners below */
}
static double gelu(double x)
{
    return x * (0.5 * erfc(-x * 0.70710678118654752440));
}
static double silu(double x)
{
    return x / (1.0 + exp(-x));
}
static double log_sigmoid(double x)
{
    return isnan(x) ? x : fmin(x, 0.0) - log1p(exp(-fabs(x)));
}
static double remainder_signed(double x, double y)
{
    double r = fmod(x, y);
    return r != 0 && (y < 0) != (r < 0) ? r + y : r;
}
static double xlogy(double x, double y)
{
    return isnan(y) ? y : x == 0.0 ? 0.0 : x * log(y);
}
static double logaddexp(double x, double y)
{
    if (isinf(x) && x == y)
        return x;
    return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y) + log1p(exp(-fabs(x - y)));
}

static const function functions[] = {
    {"exp", TNI_LOOP_EXP, 1, exp, NULL},
    {"exp2", TNI_LOOP_EXP2, 1, exp2, NULL},
    {"expm1", TNI_LOOP_EXPM1, 1, expm1, NULL},
    {"log", TNI_LOOP_LOG, 1, log, NULL},
    {"log2", TNI_LOOP_LOG2, 1, log2, NULL},
    {"log10", TNI_LOOP_LOG10, 1, log10, NULL},
    {"log1p", TNI_LOOP_LOG1P, 1, log1p, NULL},
    {"sin", TNI_LOOP_SIN, 1, sin, NULL},
    {"cos", TNI_LOOP_COS, 1, cos, NULL},
    {"tan", TNI_LOOP_TAN, 1, tan, NULL},
    {"asin", TNI_LOOP_ASIN, 1, asin, NULL},
    {"acos", TNI_LOOP_ACOS, 1, acos, NULL},
    {"atan", TNI_LOOP_ATAN, 1, atan, NULL},
    {"sinh", TNI_LOOP_SINH, 1, sinh, NULL},
    {"cosh", TNI_LOOP_COSH, 1, cosh, NULL},
    {"tanh", TNI_LOOP_TANH, 1, tanh, NULL},
    {"asinh", TNI_LOOP_ASINH, 1, asinh, NULL},
    {"acosh", TNI_LOOP_ACOSH, 1, acosh, NULL},
    {"atanh", TNI_LOOP_ATANH, 1, atanh, NULL},
    {"erf", TNI_LOOP_ERF, 1, erf, NULL},
    {"erfc", TNI_LOOP_ERFC, 1, erfc, NULL},
    {"erfinv", TNI_LOOP_ERFINV, 1, erf_inverse, NULL},
    {"sigmoid", TNI_LOOP_SIGMOID, 1, sigmoid, NULL},
    {"gelu", TNI_LOOP_GELU, 1, gelu, NULL},
    {"silu", TNI_LOOP_SILU, 1, silu, NULL},
    {"log_sigmoid", TNI_LOOP_LOG_SIGMOID, 1, log_sigmoid, NULL},
    {"pow", TNI_LOOP_POW, 2, NULL, pow},
    {"atan2", TNI_LOOP_ATAN2, 2, NULL, atan2},
    {"hypot", TNI_LOOP_HYPOT, 2, NULL, hypot},
    {"fmod", TNI_LOOP_FMOD, 2, NULL, fmod},
    {"remainder", TNI_LOOP_REMAINDER, 2, NULL, remainder_signed},
    {"xlogy", TNI_LOOP_XLOGY, 2, NULL, xlogy},
    {"logaddexp", TNI_LOOP_LOGADDEXP, 2, NULL, logaddexp},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static tni_loop_fn loop_of(const function *f)
{
    return tni_loop_find(tni_cpu_kernels(), f->loop, TN_DTYPE_F64);
}
static int same(double a, double b)
{
    return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}
/* Within some units in the last place, and with the same sign where it is 0. */
static int close_to(double got, double wanted)
{
    if (isnan(wanted) || isinf(wanted) || wanted == 0.0 || isnan(got) || isinf(got))
        return same(got, wanted);
    double unit = nextafter(fabs(wanted), (double)INFINITY) - fabs(wanted);
    return fabs(got - wanted) <= 4.0 * unit;
}

static const double corners[] = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 (double)INFINITY,
                                 -(double)INFINITY,
                                 (double)NAN,
                                 0x1p-1074,
                                 -0x1p-1074,
                                 0x1p-1022,
                                 -0x1p-1022,
                                 0x1.8p-1030,
                                 0x1p-60,
                                 -0x1p-60,
                                 0x1.fp+1023,
                                 -0x1.fp+1023,
                                 0.5,
                                 -0.5,
                                 2.0,
                                 -2.0,
                                 3.0,
                                 -3.0,
                                 1e300,
                                 -1e300,
                                 0x1p+53,
                                 -0x1p+53,
                                 65536.0,
                                 65537.0,
                                 -1e6,
                                 0x1p+1000,
                                 709.0,
                                 709.782,
                                 710.0,
                                 -745.1,
                                 -746.0,
                                 -708.4,
                                 0x1.fffffffffffffp-1,
                                 0x1.0000000000001p+0,
                                 1024.0,
                                 -1074.0,
                                 -1075.0,
                                 27.3,
                                 -40.0};
enum { CORNERS = sizeof corners / sizeof corners[0] };

static void expect_corner(const function *f, double x, double y, tni_isa isa)
{
    double wanted = f->inputs == 1 ? f->one(x) : f->two(x, y), alone, a[19], b[19], among[19];
    if (f->loop == TNI_LOOP_ERFINV && isnan(wanted) && fabs(x) < 1.0)
        return; /* test_ulp.c */
    tni_loop_fn loop = loop_of(f);
    loop(&alone, (const void *const[]){&x, &y}, 1, NULL);
    for (int i = 0; i < 19; i++) {
        a[i] = i == 11 ? x : 0.1 * i;
        b[i] = i == 11 ? y : 0.3 * i;
    }
    loop(among, (const void *const[]){a, b}, 19, NULL);
    test_note("%s of %a, %a in %s: %a, %a, not %a", f->name, x, y, tni_isa_name(isa), alone,
              among[11], wanted);
    /* Where the C library's own terms cancel it is no measure. */
    if (f->loop == TNI_LOOP_LOGADDEXP && fabs(wanted) < 0.1)
        EXPECT(fabs(alone - wanted) < 1e-15);
    else if (f->loop == TNI_LOOP_GELU && x < -20.0 && isfinite(x))
        EXPECT(alone <= 0.0 && alone > -1e-80);
    else
        EXPECT(close_to(alone, wanted));
    EXPECT(same(alone, among[11]));
}

TEST(corners_of_functions_of_a_float64_are_those_of_the_c_library)
{
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        for (size_t f = 0; f < FUNCTIONS; f++)
            for (int c = 0; c < CORNERS; c++)
                for (int d = 0; d < (functions[f].inputs == 1 ? 1 : CORNERS); d++)
                    expect_corner(&functions[f], corners[c], corners[d], (tni_isa)isa);
    }
}

/* Any bits, and numbers of ordinary sizes. */
static void fill(double *x, int n, int kind)
{
    for (int i = 0; i < n; i++) {
        uint64_t bits = test_random();
        if (kind == 0)
            memcpy(&x[i], &bits, sizeof bits);
        else
            x[i] =
                ((double)(bits >> 11) * 0x1p-53 - (kind % 2 ? 0.5 : 0.0)) * (kind < 3   ? 2.0
                                                                             : kind < 5 ? 40.0
                                                                                        : 3000.0);
    }
}

TEST(every_instruction_set_gives_the_same_bits_of_functions_of_a_float64)
{
    static double x[N], y[N], wanted[N], got[N];
    const void *in[] = {x, y};
    for (int kind = 0; kind < 7; kind++) {
        fill(x, N, kind);
        fill(y, N, kind);
        for (size_t f = 0; f < FUNCTIONS; f++)
            for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
                if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
                    continue;
                int n = N - 3; /* an odd end */
                loop_of (&functions[f])(isa ? got : wanted, in, n, NULL);
                for (int i = 0; isa && i < n; i++)
                    if (!same(wanted[i], got[i])) {
                        test_note("%s of %a, %a in %s: %a, not %a", functions[f].name, x[i], y[i],
                                  tni_isa_name((tni_isa)isa), got[i], wanted[i]);
                        EXPECT_EQ_INT(i, -1);
                        break;
                    }
            }
    }
}

TEST(a_float64_has_the_same_bits_in_every_place)
{
    enum { LONG = 200 };
    static double x[LONG], y[LONG], whole[LONG], part[LONG + 1];
    fill(x, LONG, 3);
    fill(y, LONG, 3);
    x[50] = 1e9; /* beyond the reach of the short way */
    x[120] = (double)NAN;
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        for (size_t f = 0; f < FUNCTIONS; f++) {
            tni_loop_fn loop = loop_of(&functions[f]);
            loop(whole, (const void *const[]){x, y}, LONG, NULL);
            for (int first = 0; first < 70; first += 3)
                for (int n = 0; n < 20; n++) {
                    part[n] = 42.0;
                    loop(part, (const void *const[]){x + first, y + first}, n, NULL);
                    test_note("%s of %d from %d on", functions[f].name, n, first);
                    EXPECT(part[n] == 42.0); /* nothing behind it */
                    for (int i = 0; i < n; i++)
                        EXPECT(same(part[i], whole[first + i]));
                }
            /* Into its own operand. */
            memcpy(part, x, sizeof x);
            loop(part, (const void *const[]){part, y}, LONG, NULL);
            int wrong = 0;
            for (int i = 0; i < LONG; i++)
                wrong += !same(part[i], whole[i]);
            EXPECT_EQ_INT(wrong, 0);
        }
    }
}

TEST(fmod_of_float64_is_exact)
{
    static double x[N], y[N], z[N];
    int wrong = 0;
    for (int run = 0; run < 40; run++) {
        for (int i = 0; i < N; i++) {
            double u = (double)(test_random() >> 11) * 0x1p-53;
            double v = (double)(test_random() >> 11) * 0x1p-53;
            y[i] = ldexp(v - 0.5, (int)(test_random() % 40) - 20);
            x[i] = run % 2 ? ldexp(u - 0.5, (int)(test_random() % 80) - 20)
                           : y[i] * (double)(test_random() % 1000000); /* quotients near integers */
        }
        tni_loop_find(tni_cpu_kernels(), TNI_LOOP_FMOD,
                      TN_DTYPE_F64)(z, (const void *const[]){x, y}, N, NULL);
        for (int i = 0; i < N; i++)
            wrong += !same(fmod(x[i], y[i]), z[i]);
    }
    EXPECT_EQ_INT(wrong, 0);
}

TEST(powers_of_two_of_whole_float64_are_exact)
{
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        tni_cpu_use((tni_isa)isa);
        tni_loop_fn loop = tni_loop_find(tni_cpu_kernels(), TNI_LOOP_EXP2, TN_DTYPE_F64);
        for (int k = -1080; k < 1030; k++) {
            double x = k, y;
            loop(&y, (const void *const[]){&x}, 1, NULL);
            EXPECT(y == exp2(x));
        }
    }
}
