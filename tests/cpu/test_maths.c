/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_maths.c: exp, log and relatives: within 2 units in the last place of the C
 * library's wider type, and the same bits in every instruction set. */
#include <math.h>
#include <string.h>
#include "cpu/loops.h"
#include "harness/test.h"

enum { N = 4096 };
static const tni_loop loops[] = {TNI_LOOP_SQRT, TNI_LOOP_RSQRT,   TNI_LOOP_EXP,
                                 TNI_LOOP_LOG,  TNI_LOOP_SIGMOID, TNI_LOOP_TANH};
static const char *const names[] = {"sqrt", "rsqrt", "exp", "log", "sigmoid", "tanh"};

static long double exact(tni_loop loop, long double x)
{
    switch (loop) {
    case TNI_LOOP_SQRT:
        return sqrtl(x);
    case TNI_LOOP_RSQRT:
        return 1 / sqrtl(x);
    case TNI_LOOP_EXP:
        return expl(x);
    case TNI_LOOP_LOG:
        return logl(x);
    case TNI_LOOP_SIGMOID:
        return 1 / (1 + expl(-x));
    default:
        return tanhl(x);
    }
}

/* Units in the last place between a result of @p digits binary digits and the exact one. @p
 * smallest is the exponent of the smallest subnormal number. */
static double error(double got, long double wanted, int digits, int smallest)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got) ? 0 : INFINITY;
    double rounded = digits == 24 ? (double)(float)wanted : (double)wanted;
    if (isinf(rounded) || isinf(got))
        return rounded == got ? 0 : INFINITY;
    int exponent;
    frexpl(wanted, &exponent);
    int unit = exponent - digits > smallest ? exponent - digits : smallest;
    return (double)(fabsl((long double)got - wanted) / ldexpl(1.0L, unit));
}

static tni_isa best(void)
{
    return tni_cpu_use(TNI_ISA_AVX512);
}

/* Every 4099th of all floats, in runs of N. */
TEST(float32_maths_is_within_2_ulp)
{
    static float x[N], y[N];
    best();
    for (size_t f = 0; f < 6; f++) {
        double worst = 0;
        float at = 0;
        for (uint64_t begin = 0; begin < (UINT64_C(1) << 32); begin += (uint64_t)N * 4099) {
            for (int i = 0; i < N; i++) {
                uint32_t bits = (uint32_t)(begin + (uint64_t)i * 4099);
                memcpy(&x[i], &bits, sizeof bits);
            }
            const void *in[] = {x};
            tni_loop_find(tni_cpu_kernels(), loops[f], TN_DTYPE_F32)(y, in, N, NULL);
            for (int i = 0; i < N; i++) {
                /* Below, 1 + exp(-x) is infinite: the result is 0, as in the reference. */
                if (loops[f] == TNI_LOOP_SIGMOID && x[i] < -88.0f)
                    continue;
                double e = error((double)y[i], exact(loops[f], (long double)x[i]), 24, -149);
                if (e > worst) {
                    worst = e;
                    at = x[i];
                }
            }
        }
        test_note("%s at %a", names[f], (double)at);
        EXPECT(worst <= 2.0);
    }
}

TEST(float64_maths_is_within_2_ulp)
{
    static double x[N], y[N];
    best();
    for (size_t f = 0; f < 6; f++) {
        double worst = 0, at = 0;
        for (int run = 0; run < 40; run++) {
            for (int i = 0; i < N; i++) {
                uint64_t bits = test_random();
                if (run % 2) /* numbers of ordinary size, else any bits */
                    x[i] = ((double)(bits >> 11) * 0x1p-53 - 0.5) * (run % 4 == 1 ? 1500.0 : 4.0);
                else
                    memcpy(&x[i], &bits, sizeof bits);
            }
            const void *in[] = {x};
            tni_loop_find(tni_cpu_kernels(), loops[f], TN_DTYPE_F64)(y, in, N, NULL);
            for (int i = 0; i < N; i++) {
                if (loops[f] == TNI_LOOP_SIGMOID && x[i] < -709.0)
                    continue;
                double e = error(y[i], exact(loops[f], (long double)x[i]), 53, -1074);
                if (e > worst) {
                    worst = e;
                    at = x[i];
                }
            }
        }
        test_note("%s at %a", names[f], at);
        EXPECT(worst <= 2.0);
    }
}

TEST(every_instruction_set_gives_the_same_bits)
{
    static uint64_t x[N];
    static char wanted[N * 16], got[N * 16];
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64};
    for (int i = 0; i < N; i++)
        x[i] = test_random();
    for (size_t f = 0; f < 6; f++)
        for (int d = 0; d < 2; d++)
            for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
                if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
                    continue;
                const void *in[] = {x};
                int64_t n = d ? N - 1 : 2 * N - 3; /* an odd end */
                tni_loop_find(tni_cpu_kernels(), loops[f], dtypes[d])(isa ? got : wanted, in, n,
                                                                      NULL);
                test_note("%s %s %s", names[f], tn_dtype_name(dtypes[d]),
                          tni_isa_name((tni_isa)isa));
                for (int64_t i = 0; isa && i < n; i++) {
                    double a = d ? ((double *)wanted)[i] : (double)((float *)wanted)[i];
                    double b = d ? ((double *)got)[i] : (double)((float *)got)[i];
                    if (!(isnan(a) && isnan(b)) && memcmp(&a, &b, sizeof a) != 0) {
                        EXPECT_EQ_INT(i, -1);
                        break;
                    }
                }
            }
    best();
}

/* Numbers of ordinary size take the short way where they stand together. */
static void fill_ordinary(float *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = ((float)(test_random() >> 40) * 0x1p-24f - 0.5f) * (i % 3 ? 8.0f : 160.0f);
}

TEST(exp_of_an_element_does_not_depend_on_those_beside_it)
{
    static float x[N], y[N];
    fill_ordinary(x, N);
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        tni_loop_fn loop = tni_loop_find(tni_cpu_kernels(), TNI_LOOP_EXP, TN_DTYPE_F32);
        loop(y, (const void *const[]){x}, N, NULL);
        for (int i = 0; i < N; i++) {
            float alone, beside[64], among[64];
            loop(&alone, (const void *const[]){&x[i]}, 1, NULL);
            for (int k = 0; k < 64; k++)
                beside[k] = k == i % 64 ? x[i] : k % 2 ? INFINITY : -100.0f;
            loop(among, (const void *const[]){beside}, 64, NULL);
            test_note("%s exp(%a)", tni_isa_name((tni_isa)isa), (double)x[i]);
            EXPECT(memcmp(&alone, &y[i], sizeof alone) == 0);
            EXPECT(memcmp(&among[i % 64], &y[i], sizeof alone) == 0);
        }
    }
    best();
}

TEST(exp_of_ordinary_numbers_has_the_same_bits_in_every_instruction_set)
{
    static float x[N], wanted[N], got[N];
    fill_ordinary(x, N);
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        tni_loop_find(tni_cpu_kernels(), TNI_LOOP_EXP,
                      TN_DTYPE_F32)(isa ? got : wanted, (const void *const[]){x}, N, NULL);
        EXPECT(!isa || memcmp(got, wanted, sizeof got) == 0);
    }
    best();
}

static void check_past(tni_loop loop, tn_dtype dtype, const void *x, const void *y, size_t itemsize)
{
    static _Alignas(64) char wanted[N * 8], got[N * 8 + 256];
    tni_loop_fn past = tni_loop_past(tni_cpu_kernels(), loop, dtype);
    if (!past)
        return; /* this instruction set has no such loop, and none is used */
    const void *in[] = {x, y};
    tni_loop_find(tni_cpu_kernels(), loop, dtype)(wanted, in, N, NULL);
    for (size_t at = 0; at < 16; at += 5)
        for (int n = 0; n <= N; n = n < 200 ? n + 1 : 2 * n) {
            char *begin = got + at * itemsize;
            memset(got, 0x11, sizeof got);
            past(begin, in, n, NULL);
            test_note("loop %d, %d elements from %zu on", (int)loop, n, at);
            EXPECT(memcmp(begin, wanted, (size_t)n * itemsize) == 0);
            EXPECT_EQ_INT(begin[(size_t)n * itemsize], 0x11); /* nothing behind it … */
            EXPECT(at == 0 || begin[-1] == 0x11);             /* … and nothing before */
        }
}

TEST(loops_past_the_caches_have_the_same_bits)
{
    static float x[N], y[N];
    static double a[N], b[N];
    static const tni_loop two[] = {TNI_LOOP_ADD, TNI_LOOP_SUB, TNI_LOOP_MUL};
    fill_ordinary(x, N);
    x[N / 2] = NAN;
    x[N / 3] = INFINITY;
    for (int i = 0; i < N; i++) {
        y[i] = x[N - 1 - i] * 0.7f;
        a[i] = (double)x[i] * 1.1;
        b[i] = (double)y[i] * 1.3;
    }
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        check_past(TNI_LOOP_EXP, TN_DTYPE_F32, x, NULL, sizeof *x);
        for (int i = 0; i < 3; i++) {
            check_past(two[i], TN_DTYPE_F32, x, y, sizeof *x);
            check_past(two[i], TN_DTYPE_F64, a, b, sizeof *a);
        }
    }
    best();
}
