/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_complex.c: complex numbers: the same bits wherever a number stands in a row and in
 * every instruction set, small powers by products, logarithms beside their branch point. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

enum { COUNT = 131 };

static tn_tensor *empty(tn_dtype dtype, int64_t n)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_empty(&n, 1, &opts, TN_FORMAT_NONE, &t));
    return t;
}

static void set(tn_tensor *t, int64_t i, double complex z)
{
    if (t->dtype == TN_DTYPE_C64)
        ((float complex *)t->data)[i] = (float complex)z;
    else
        ((double complex *)t->data)[i] = z;
}

static double complex get(const tn_tensor *t, int64_t i)
{
    return t->dtype == TN_DTYPE_C64 ? (double complex)((float complex *)t->data)[i]
                                    : ((double complex *)t->data)[i];
}

static double any(void)
{
    return (double)(test_random() % 2000003) / 1000001.0 - 1.0;
}

/* Each number on its own, in the plainest instruction set, against a row of all of them. */
TEST(products_and_quotients_have_the_same_bits_at_every_place_and_in_every_instruction_set)
{
    const tni_isa best = tni_cpu_isa();
    const tn_dtype dtypes[] = {TN_DTYPE_C64, TN_DTYPE_C128};
    for (int k = 0; k < 2; k++) {
        size_t size = tn_dtype_size(dtypes[k]);
        tn_tensor *a = empty(dtypes[k], COUNT), *b = empty(dtypes[k], COUNT);
        tn_tensor *x = empty(dtypes[k], 1), *y = empty(dtypes[k], 1), *one[4], *row[4];
        for (int64_t i = 0; i < COUNT; i++) {
            set(a, i, CMPLX(any(), any()));
            set(b, i, CMPLX(any(), any()));
        }
        for (int isa = TNI_ISA_BASE; isa <= (int)best; isa++) {
            tni_cpu_use((tni_isa)isa);
            ASSERT_OK(tn_mul(a, b, &row[0]));
            ASSERT_OK(tn_div(a, b, &row[1]));
            ASSERT_OK(tn_add(a, b, tn_complex(0.3, 0.7), &row[2]));
            ASSERT_OK(tn_reciprocal(b, &row[3]));
            tni_cpu_use(TNI_ISA_BASE);
            for (int64_t i = 0; i < COUNT; i++) {
                memcpy(x->data, (char *)a->data + (size_t)i * size, size);
                memcpy(y->data, (char *)b->data + (size_t)i * size, size);
                ASSERT_OK(tn_mul(x, y, &one[0]));
                ASSERT_OK(tn_div(x, y, &one[1]));
                ASSERT_OK(tn_add(x, y, tn_complex(0.3, 0.7), &one[2]));
                ASSERT_OK(tn_reciprocal(y, &one[3]));
                for (int j = 0; j < 4; j++) {
                    test_note("operator %d, %s, number %d", j, tni_isa_name((tni_isa)isa), (int)i);
                    EXPECT(memcmp(one[j]->data, (char *)row[j]->data + (size_t)i * size, size) ==
                           0);
                    tn_tensor_unref(one[j]);
                }
            }
            for (int j = 0; j < 4; j++)
                tn_tensor_unref(row[j]);
        }
        tni_cpu_use(best);
        tn_tensor_unref(a);
        tn_tensor_unref(b);
        tn_tensor_unref(x);
        tn_tensor_unref(y);
    }
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void expect_power(tn_dtype dtype, double complex base, double exponent, double complex want)
{
    tn_tensor *x = empty(dtype, 1), *y = NULL;
    set(x, 0, base);
    ASSERT_OK(tn_pow_tensor_scalar(x, tn_float(exponent), &y));
    double complex got = get(y, 0);
    test_note("(%g%+gj) ** %g is %g%+gj", creal(base), cimag(base), exponent, creal(got),
              cimag(got));
    EXPECT(same(creal(got), creal(want)) && same(cimag(got), cimag(want)));
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(small_powers_of_complex_numbers_are_products)
{
    const tn_dtype dtypes[] = {TN_DTYPE_C64, TN_DTYPE_C128};
    for (int k = 0; k < 2; k++) {
        tn_dtype d = dtypes[k];
        expect_power(d, CMPLX(0, 1), 1, CMPLX(0, 1));
        expect_power(d, CMPLX(0, INFINITY), 1, CMPLX(0, INFINITY));
        expect_power(d, CMPLX((double)NAN, 2), 1, CMPLX((double)NAN, 2));
        expect_power(d, CMPLX(0, 1), 2, CMPLX(-1, 0));
        expect_power(d, CMPLX(1, 1), 2, CMPLX(0, 2));
        expect_power(d, CMPLX(0, INFINITY), 2, CMPLX(-INFINITY, (double)NAN));
        expect_power(d, CMPLX(0, 1), 3, CMPLX(0, -1));
        expect_power(d, CMPLX(0, -1.5), 3, CMPLX(0, 3.375));
        expect_power(d, CMPLX(0, 1), -2, CMPLX(-1, 0));
        expect_power(d, CMPLX(0, 2), -1, CMPLX(0, -0.5));
        expect_power(d, CMPLX(-4, 0), 0.5, CMPLX(0, 2));
    }
    expect_power(TN_DTYPE_C64, CMPLX(0, 1e30), 2, CMPLX(-INFINITY, 0)); /* and not inf beside it */
}

TEST(one_to_any_complex_power_is_one)
{
    const double parts[] = {0, -1.5, INFINITY, -INFINITY, (double)NAN};
    tn_tensor *x = empty(TN_DTYPE_C128, 25), *y = NULL;
    for (int i = 0; i < 25; i++)
        set(x, i, CMPLX(parts[i / 5], parts[i % 5]));
    ASSERT_OK(tn_pow_scalar(tn_int(1), x, &y));
    for (int i = 0; i < 25; i++) {
        test_note("1 ** (%g%+gj)", parts[i / 5], parts[i % 5]);
        EXPECT(get(y, i) == 1);
    }
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

/* log(1 + z) where 1 + z is tiny, and where z is: neither loses its digits. */
TEST(log1p_of_complex_numbers_is_right_near_minus_one_and_near_zero)
{
    const struct {
        double complex z, want;
    } cases[] = {
        {CMPLX(-1, 1e-30), CMPLX(-30 * M_LN10, M_PI_2)},
        {CMPLX(-1, -1e-200), CMPLX(-200 * M_LN10, -M_PI_2)},
        {CMPLX(-0.75, 0), CMPLX(-2 * M_LN2, 0)},
        {CMPLX(1e-20, 1e-20), CMPLX(1e-20, 1e-20)},
        {CMPLX(3, 0), CMPLX(2 * M_LN2, 0)},
        {CMPLX(-1, 0), CMPLX(-INFINITY, 0)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_tensor *x = empty(TN_DTYPE_C128, 1), *y = NULL;
        set(x, 0, cases[i].z);
        ASSERT_OK(tn_log1p(x, &y));
        double complex got = get(y, 0), want = cases[i].want;
        test_note("case %d: %.17g%+.17gj", (int)i, creal(got), cimag(got));
        EXPECT(creal(got) == creal(want) ||
               fabs(creal(got) - creal(want)) <= 1e-14 * fabs(creal(want)));
        EXPECT(fabs(cimag(got) - cimag(want)) <= 1e-14 * fabs(cimag(want)));
        tn_tensor_unref(x);
        tn_tensor_unref(y);
    }
}
