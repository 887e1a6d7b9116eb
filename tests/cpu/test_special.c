/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_special.c: the less common functions of a float32: within 2 units in the last
 * place of the C library's widest type, and the same bits in every instruction set. */
#include <math.h>
#include <string.h>
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

enum { N = 4096, STEP = 16381 };

typedef struct special {
    const char *name;
    tni_loop loop;
    long double (*exact)(long double);
} special;

static long double expm1_wide(long double x)
{
    return expm1l(x);
}

static long double lgamma_wide(long double x)
{
    int sign;
    return lgammal_r(x, &sign);
}

static const special functions[] = {
    {"sin", TNI_LOOP_SIN, sinl},           {"cos", TNI_LOOP_COS, cosl},
    {"tan", TNI_LOOP_TAN, tanl},           {"asin", TNI_LOOP_ASIN, asinl},
    {"acos", TNI_LOOP_ACOS, acosl},        {"atan", TNI_LOOP_ATAN, atanl},
    {"sinh", TNI_LOOP_SINH, sinhl},        {"cosh", TNI_LOOP_COSH, coshl},
    {"asinh", TNI_LOOP_ASINH, asinhl},     {"acosh", TNI_LOOP_ACOSH, acoshl},
    {"atanh", TNI_LOOP_ATANH, atanhl},     {"log1p", TNI_LOOP_LOG1P, log1pl},
    {"expm1", TNI_LOOP_EXPM1, expm1_wide}, {"log2", TNI_LOOP_LOG2, log2l},
    {"log10", TNI_LOOP_LOG10, log10l},     {"exp2", TNI_LOOP_EXP2, exp2l},
    {"erf", TNI_LOOP_ERF, erfl},           {"lgamma", TNI_LOOP_LGAMMA, lgamma_wide},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static double error(float got, long double wanted)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got) ? 0 : (double)INFINITY;
    float rounded = (float)wanted;
    if (isinf(rounded) || isinf(got))
        return rounded == got ? 0 : (double)INFINITY;
    if (rounded == 0 && got == 0)
        return signbit(rounded) == signbit(got) ? 0 : (double)INFINITY;
    int exponent;
    frexpl(wanted, &exponent);
    int unit = exponent - 24 > -149 ? exponent - 24 : -149;
    return (double)(fabsl((long double)got - wanted) / ldexpl(1.0L, unit));
}

static void put(float *x, uint64_t begin)
{
    for (int i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)(begin + (uint64_t)i * STEP);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

TEST(special_functions_of_a_float32_are_within_2_ulp)
{
    static float x[N], y[N];
    const void *in[] = {x};
    tni_cpu_use(TNI_ISA_AVX512);
    for (size_t f = 0; f < FUNCTIONS; f++) {
        double worst = 0;
        float at = 0;
        for (uint64_t begin = 0; begin < (UINT64_C(1) << 32); begin += (uint64_t)N * STEP) {
            put(x, begin);
            tni_loop_find(tni_cpu_kernels(), functions[f].loop, TN_DTYPE_F32)(y, in, N, NULL);
            for (int i = 0; i < N; i++) {
                double e = error(y[i], functions[f].exact((long double)x[i]));
                if (e > worst) {
                    worst = e;
                    at = x[i];
                }
            }
        }
        test_note("%s at %a: %g", functions[f].name, (double)at, worst);
        EXPECT(worst <= 2.0);
    }
}

TEST(a_power_of_a_float32_is_within_2_ulp)
{
    static float x[N], y[N], z[N];
    const void *in[] = {x, y};
    double worst = 0;
    int at = 0;
    tni_cpu_use(TNI_ISA_AVX512);
    for (int run = 0; run < 40; run++) {
        for (int i = 0; i < N; i++) {
            uint32_t bits = (uint32_t)test_random();
            memcpy(&x[i], &bits, sizeof bits);
            y[i] =
                (float)((double)(test_random() >> 40) * 0x1p-24 - 0.5) * (run % 2 ? 8.0f : 40.0f);
            if (run % 4 == 3)
                y[i] = rintf(y[i]);
        }
        tni_loop_find(tni_cpu_kernels(), TNI_LOOP_POW, TN_DTYPE_F32)(z, in, N, NULL);
        for (int i = 0; i < N; i++) {
            double e = error(z[i], powl((long double)x[i], (long double)y[i]));
            if (e > worst) {
                worst = e;
                at = i;
            }
        }
    }
    test_note("%a to %a: %g", (double)x[at], (double)y[at], worst);
    EXPECT(worst <= 2.0);
}

/* Each corner stands alone, and among ordinary numbers. */
TEST(corners_of_special_functions_are_those_of_the_c_library)
{
    static const float corners[] = {0.0f,       -0.0f,     1.0f,         -1.0f,         INFINITY,
                                    -INFINITY,  NAN,       0x1p-149f,    -0x1p-149f,    0x1p-126f,
                                    -0x1p-126f, 0x1p-127f, 0x1.fep+127f, -0x1.fep+127f, 2.0f,
                                    -2.0f,      400.0f,    0x1.9p+8f,    128.0f,        -149.0f,
                                    -150.0f,    -151.0f,   4.0f,         -4.5f,         0x1p+19f};
    enum { AMONG = 64 + 3 };
    static const special more[] = {
        {"exp", TNI_LOOP_EXP, expl}, {"log", TNI_LOOP_LOG, logl}, {"tanh", TNI_LOOP_TANH, tanhl}};
    for (size_t f = 0; f < FUNCTIONS + 3; f++) {
        const special *s = f < FUNCTIONS ? &functions[f] : &more[f - FUNCTIONS];
        for (size_t c = 0; c < sizeof corners / sizeof corners[0]; c++)
            for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
                float alone, x[AMONG], y[AMONG];
                const void *in_alone[] = {&corners[c]}, *in[] = {x};
                tni_cpu_use((tni_isa)isa);
                tni_loop_fn loop = tni_loop_find(tni_cpu_kernels(), s->loop, TN_DTYPE_F32);
                loop(&alone, in_alone, 1, NULL);
                for (int i = 0; i < AMONG; i++)
                    x[i] = i % 66 == 7 ? corners[c] : 0.01f * (float)i;
                loop(y, in, AMONG, NULL);
                test_note("%s of %a: %a, %a", s->name, (double)corners[c], (double)alone,
                          (double)y[7]);
                EXPECT(error(alone, s->exact((long double)corners[c])) <= 2.0);
                EXPECT(memcmp(&alone, &y[7], sizeof alone) == 0 || (isnan(alone) && isnan(y[7])));
            }
    }
}

TEST(the_inverse_of_erf_is_infinite_at_1_and_nothing_beyond)
{
    static const float x[] = {1.0f, -1.0f, 1.0000001f, -2.0f, INFINITY, NAN, 0.0f, -0.0f};
    static const float wanted[] = {INFINITY, -INFINITY, NAN, NAN, NAN, NAN, 0.0f, -0.0f};
    enum { CORNERS = sizeof x / sizeof x[0] };
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        float y[CORNERS], block[64] = {0}, of_block[64];
        const void *in[] = {x}, *in_block[] = {block};
        tni_cpu_use((tni_isa)isa);
        tni_loop_fn loop = tni_loop_find(tni_cpu_kernels(), TNI_LOOP_ERFINV, TN_DTYPE_F32);
        loop(y, in, CORNERS, NULL);
        memcpy(block + 5, x, sizeof x);
        loop(of_block, in_block, 64, NULL);
        for (int i = 0; i < CORNERS; i++) {
            test_note("%a: %a, %a", (double)x[i], (double)y[i], (double)of_block[5 + i]);
            if (isnan(wanted[i]))
                EXPECT(isnan(y[i]) && isnan(of_block[5 + i]));
            else
                EXPECT(memcmp(&y[i], &wanted[i], sizeof y[i]) == 0 &&
                       memcmp(&of_block[5 + i], &wanted[i], sizeof y[i]) == 0);
        }
    }
}

/* In reach of the short forms, where arguments mostly are; floats that lie evenly are mostly far
 * larger or smaller. */
TEST(angles_of_ordinary_size_are_within_2_ulp)
{
    static float x[N], y[N];
    const void *in[] = {x};
    tni_cpu_use(TNI_ISA_AVX512);
    for (size_t f = 0; f < 3; f++) {
        double worst = 0, at = 0;
        for (int run = 0; run < 60; run++) {
            for (int i = 0; i < N; i++) /* every third run beside the zeros and the poles */
                x[i] = run % 3 ? (float)(((double)(test_random() >> 11) * 0x1p-53 - 0.5) * 820.0)
                               : (float)((double)(run * N + i - 30 * N) * 1.5707963267948966 / 400);
            tni_loop_find(tni_cpu_kernels(), functions[f].loop, TN_DTYPE_F32)(y, in, N, NULL);
            for (int i = 0; i < N; i++) {
                double e = error(y[i], functions[f].exact((long double)x[i]));
                at = e > worst ? (double)x[i] : at;
                worst = e > worst ? e : worst;
            }
        }
        test_note("%s at %a: %g", functions[f].name, at, worst);
        EXPECT(worst <= 2.0);
    }
}

TEST(every_instruction_set_gives_the_same_bits_of_special_functions)
{
    static float x[N], wanted[N], got[N];
    const void *in[] = {x, x};
    for (size_t f = 0; f < FUNCTIONS + 2; f++) {
        tni_loop loop =
            f < FUNCTIONS ? functions[f].loop : (f == FUNCTIONS ? TNI_LOOP_POW : TNI_LOOP_ERFINV);
        for (uint64_t begin = 0; begin < (UINT64_C(1) << 32); begin += (uint64_t)N * STEP * 7) {
            put(x, begin);
            tni_cpu_use(TNI_ISA_BASE);
            tni_loop_find(tni_cpu_kernels(), loop, TN_DTYPE_F32)(wanted, in, N, NULL);
            for (int isa = TNI_ISA_AVX2; isa <= TNI_ISA_AVX512; isa++) {
                tni_cpu_use((tni_isa)isa);
                tni_loop_find(tni_cpu_kernels(), loop, TN_DTYPE_F32)(got, in, N, NULL);
                int same = 1;
                for (int i = 0; i < N; i++)
                    same &= memcmp(&wanted[i], &got[i], sizeof got[i]) == 0 ||
                            (isnan(wanted[i]) && isnan(got[i]));
                test_note("%s", f < FUNCTIONS ? functions[f].name : "pow or erfinv");
                EXPECT(same);
            }
        }
    }
}

/* Of every mantissa with an even and an odd exponent, whatever way there is; and corners. */
TEST(roots_of_a_float32_are_rounded_correctly)
{
    static float x[N], y[N];
    const void *in[] = {x};
    tni_cpu_use(TNI_ISA_AVX512);
    tni_loop_fn loop = tni_loop_find(tni_cpu_kernels(), TNI_LOOP_SQRT, TN_DTYPE_F32);
    int64_t wrong = 0;
    for (uint32_t begin = 0x3f800000u; begin < 0x40800000u; begin += N) {
        for (int i = 0; i < N; i++) {
            uint32_t bits = begin + (uint32_t)i;
            memcpy(&x[i], &bits, sizeof bits);
        }
        loop(y, in, N, NULL);
        for (int i = 0; i < N; i++)
            wrong += y[i] != (float)sqrt((double)x[i]); /* rounded twice, but never otherwise */
    }
    for (uint64_t begin = 0; begin < (UINT64_C(1) << 32); begin += (uint64_t)N * STEP) {
        put(x, begin);
        x[77] = -0.0f;
        loop(y, in, N, NULL);
        for (int i = 0; i < N; i++)
            wrong += error(y[i], sqrtl((long double)x[i])) > 0.5;
    }
    EXPECT_EQ_INT(wrong, 0);
}

TEST(fmod_of_float32_is_exact)
{
    static float x[N], y[N], z[N];
    const void *in[] = {x, y};
    int wrong = 0;
    for (int run = 0; run < 40; run++) {
        for (int i = 0; i < N; i++) {
            uint32_t a = (uint32_t)test_random(), b = (uint32_t)test_random();
            memcpy(&x[i], &a, sizeof a);
            memcpy(&y[i], &b, sizeof b);
            if (run % 4 == 1) { /* ordinary sizes */
                x[i] = (float)((double)(a >> 8) * 0x1p-20);
                y[i] = (float)((double)(b >> 8) * 0x1p-23 - 1.0);
            } else if (run % 4 == 2) { /* quotients near integers */
                y[i] = (float)((double)(b >> 8) * 0x1p-20 + 0.001);
                x[i] = y[i] * (float)(a % 1000);
            } else if (run % 4 == 3) {
                x[i] = (float)(int32_t)(a % 4001) - 2000.0f;
                y[i] = b % 41 ? (float)(int32_t)(b % 41) - 20.0f : INFINITY;
            }
        }
        tni_loop_find(tni_cpu_kernels(), TNI_LOOP_FMOD, TN_DTYPE_F32)(z, in, N, NULL);
        for (int i = 0; i < N; i++) {
            float wanted = fmodf(x[i], y[i]);
            wrong += !(isnan(wanted) ? isnan(z[i]) : memcmp(&wanted, &z[i], sizeof wanted) == 0);
        }
    }
    EXPECT_EQ_INT(wrong, 0);
}

/* 1 + erf cancels for negative numbers, so the error is told as it stands, not in units. */
TEST(gelu_of_a_float32_is_within_1e_6)
{
    static float x[N], y[N];
    const void *in[] = {x};
    double worst = 0;
    float at = 0;
    tni_cpu_use(TNI_ISA_AVX512);
    for (uint64_t begin = 0; begin < (UINT64_C(1) << 32); begin += (uint64_t)N * STEP) {
        put(x, begin);
        tni_loop_find(tni_cpu_kernels(), TNI_LOOP_GELU, TN_DTYPE_F32)(y, in, N, NULL);
        for (int i = 0; i < N; i++) {
            if (!isfinite(x[i]))
                continue;
            long double exact = 0.5L * (long double)x[i] * erfcl(-(long double)x[i] / sqrtl(2.0L));
            double e = (double)(fabsl((long double)y[i] - exact) / fmaxl(1.0L, (long double)x[i]));
            if (e > worst) {
                worst = e;
                at = x[i];
            }
        }
    }
    test_note("at %a: %g", (double)at, worst);
    EXPECT(worst <= 1e-6);
}

TEST(the_slope_of_gelu_is_within_1e_6)
{
    static float x[N], y[N], one[N];
    const void *in[] = {one, x};
    double worst = 0;
    float at = 0;
    for (int i = 0; i < N; i++)
        one[i] = 1;
    for (uint64_t begin = 0; begin < (UINT64_C(1) << 32); begin += (uint64_t)N * STEP) {
        put(x, begin);
        tni_loop_find(tni_cpu_kernels(), TNI_LOOP_GELU_B, TN_DTYPE_F32)(y, in, N, NULL);
        for (int i = 0; i < N; i++) {
            if (isnan(x[i]))
                continue;
            long double z = (long double)x[i];
            long double exact = 0.5L * erfcl(-z / sqrtl(2.0L));
            if (isfinite(x[i]))
                exact += z * expl(-0.5L * z * z) / sqrtl(2 * 3.14159265358979323846L);
            double e = isnan(y[i]) ? (double)INFINITY : (double)fabsl((long double)y[i] - exact);
            if (e > worst) {
                worst = e;
                at = x[i];
            }
        }
    }
    test_note("at %a: %g", (double)at, worst);
    EXPECT(worst <= 1e-6);
}

TEST(the_slope_of_gelu_at_infinities_is_one_and_zero)
{
    const float x32[] = {INFINITY, -INFINITY, NAN}, g32[] = {2, 2, 2};
    const double x64[] = {(double)INFINITY, -(double)INFINITY, (double)NAN}, g64[] = {2, 2, 2};
    float y32[3];
    double y64[3];
    tni_loop_find(tni_cpu_kernels(), TNI_LOOP_GELU_B, TN_DTYPE_F32)(y32, (const void *[]){g32, x32},
                                                                    3, NULL);
    tni_loop_find(tni_cpu_kernels(), TNI_LOOP_GELU_B, TN_DTYPE_F64)(y64, (const void *[]){g64, x64},
                                                                    3, NULL);
    EXPECT(y32[0] == 2 && y32[1] == 0 && isnan(y32[2]));
    EXPECT(y64[0] == 2 && y64[1] == 0 && isnan(y64[2]));
}

TEST(powers_of_two_of_whole_numbers_are_exact)
{
    static float x[181], y[181];
    for (int i = 0; i <= 180; i++)
        x[i] = (float)(-i);
    const void *in[] = {x};
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        tni_cpu_use((tni_isa)isa);
        tni_loop_find(tni_cpu_kernels(), TNI_LOOP_EXP2, TN_DTYPE_F32)(y, in, 181, NULL);
        for (int i = 0; i <= 180; i++)
            EXPECT(y[i] == (float)exp2l((long double)x[i]));
    }
}

TEST(softshrink_keeps_the_sign_of_what_becomes_zero)
{
    static const double values[] = {-0.0, 0.0, -0.25, 0.25, -0.5, 0.5, -2.0, 2.0};
    static const double wanted[] = {-0.0, 0.0, -0.0, 0.0, -0.0, 0.0, -1.5, 1.5};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    for (int i = 0; i < 8; i++) {
        tn_tensor *x = NULL, *y = NULL;
        ASSERT_OK(tn_full(NULL, 0, tn_float(values[i]), &opts, &x));
        ASSERT_OK(tn_softshrink(x, tn_float(0.5), &y));
        double got = *(const double *)tn_tensor_data(y);
        EXPECT(got == wanted[i] && !signbit(got) == !signbit(wanted[i]));
        tn_tensor_unref(x);
        tn_tensor_unref(y);
    }
}
