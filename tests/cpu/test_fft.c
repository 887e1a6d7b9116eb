/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_fft.c: Fourier transforms of every kind of length, beside the sum that defines
 * them, and the same bits however lines are dealt out. */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

static tn_tensor *random_lines(int64_t lines, int64_t n, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    tn_manual_seed(11);
    ASSERT_OK(tn_randn((int64_t[]){lines, n}, 2, &opts, &t));
    return t;
}

/* Number k of the transform of a line, by its definition. */
static double complex number(const double complex *x, int64_t n, int64_t k, int sign)
{
    long double complex sum = 0;
    for (int64_t i = 0; i < n; i++) {
        long double angle = 6.283185307179586476925L * (long double)(i * k % n) / (long double)n;
        sum += x[i] * CMPLXL(cosl(angle), sign * sinl(angle));
    }
    return (double complex)sum;
}

static const int64_t lengths[] = {1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  12,  15,  16, 20,
                                  21, 24, 25, 27, 30, 31, 32, 36,  37,  38,  45,  49,  60, 62,
                                  64, 74, 77, 81, 94, 97, 98, 100, 121, 125, 128, 148, 210};

/* All of it for one dtype of real numbers; @p most: errors, in units of the largest number. */
static void check(tn_dtype dtype, double most)
{
    const int64_t last = 1, lines = 18;
    for (size_t c = 0; c < sizeof lengths / sizeof lengths[0]; c++) {
        int64_t n = lengths[c];
        tn_tensor *x = random_lines(lines, n, dtype), *wide = NULL, *z = NULL, *half = NULL;
        tn_tensor *all = NULL, *back = NULL, *real = NULL, *w = NULL;
        ASSERT_OK(tn_make_complex(x, x, &z));
        ASSERT_OK(tn__fft_r2c(x, &last, 1, 0, true, &half));
        ASSERT_OK(tn__fft_c2c(z, &last, 1, 0, true, &all));
        ASSERT_OK(tn__fft_c2c(all, &last, 1, 2, false, &back));
        ASSERT_OK(tn__fft_c2r(half, &last, 1, 2, n, &real));
        ASSERT_OK(tn_to_dtype(x, TN_DTYPE_F64, false, true, TN_FORMAT_NONE, &wide));
        for (int64_t l = 0; l < lines; l += lines - 1) {
            double complex line[256];
            const double *from = (const double *)wide->data + l * n;
            for (int64_t i = 0; i < n; i++)
                line[i] = from[i];
            for (int64_t k = 0; k < n; k++) {
                tn_scalar at;
                double complex want = number(line, n, k, -1);
                tn_tensor *one = NULL;
                ASSERT_OK(tn_select(all, 0, l, &w));
                ASSERT_OK(tn_select(w, 0, k, &one));
                ASSERT_OK(tn_item(one, &at));
                /* The transform of x + i x is (1 + i) times that of x. */
                double complex both = want * CMPLX(1, 1);
                EXPECT_NEAR(at.v.f, creal(both), most * sqrt((double)n));
                EXPECT_NEAR(at.imag, cimag(both), most * sqrt((double)n));
                tn_tensor_unref(one);
                tn_tensor_unref(w);
                if (k > n / 2)
                    continue;
                ASSERT_OK(tn_select(half, 0, l, &w));
                ASSERT_OK(tn_select(w, 0, k, &one));
                ASSERT_OK(tn_item(one, &at));
                EXPECT_NEAR(at.v.f, creal(want), most * sqrt((double)n));
                EXPECT_NEAR(at.imag, cimag(want), most * sqrt((double)n));
                tn_tensor_unref(one);
                tn_tensor_unref(w);
            }
        }
        bool close = false;
        ASSERT_OK(tn_allclose(real, x, 0, most, false, &close));
        EXPECT(close);
        ASSERT_OK(tn_allclose(back, z, 0, most, false, &close));
        EXPECT(close);
        tn_tensor *const used[] = {x, wide, z, half, all, back, real};
        for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
            tn_tensor_unref(used[i]);
    }
}

TEST(float32_lines_of_every_kind_of_length_are_transformed)
{
    check(TN_DTYPE_F32, 1e-5);
}

TEST(float64_lines_of_every_kind_of_length_are_transformed)
{
    check(TN_DTYPE_F64, 1e-13);
}

/* One line of a long tensor of lines, alone and among them, in another layout, on one thread and on
 * four, with each instruction set. */
TEST(a_line_does_not_depend_on_its_company)
{
    const int64_t sizes[] = {8, 96, 1000, 2048, 37}, first = 0, last = 1;
    const int threads = tn_num_threads();
    for (size_t c = 0; c < sizeof sizes / sizeof sizes[0]; c++) {
        int64_t n = sizes[c], lines = 70;
        tn_tensor *x = random_lines(lines, n, TN_DTYPE_C64), *want = NULL;
        ASSERT_OK(tn_set_num_threads(1));
        tni_cpu_use(TNI_ISA_BASE);
        ASSERT_OK(tn__fft_c2c(x, &last, 1, 1, true, &want));
        for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
            tn_tensor *all = NULL, *line = NULL, *one = NULL, *turned = NULL, *rows = NULL;
            tn_tensor *copy = NULL, *ours = NULL, *back = NULL;
            bool same = false;
            ASSERT_OK(tn_set_num_threads(4));
            tni_cpu_use((tni_isa)isa);
            ASSERT_OK(tn__fft_c2c(x, &last, 1, 1, true, &all));
            ASSERT_OK(tn_equal(all, want, &same));
            EXPECT(same);
            ASSERT_OK(tn_select(x, 0, 17, &line));
            ASSERT_OK(tn__fft_c2c(line, &first, 1, 1, true, &one));
            ASSERT_OK(tn_select(want, 0, 17, &ours));
            ASSERT_OK(tn_equal(one, ours, &same));
            EXPECT(same);
            ASSERT_OK(tn_t(x, &turned));
            ASSERT_OK(tn_clone(turned, TN_FORMAT_CONTIGUOUS, &copy));
            ASSERT_OK(tn__fft_c2c(copy, &first, 1, 1, true, &rows));
            ASSERT_OK(tn_t(rows, &back));
            ASSERT_OK(tn_equal(back, want, &same));
            EXPECT(same);
            tn_tensor *const used[] = {all, line, one, turned, rows, copy, ours, back};
            for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
                tn_tensor_unref(used[i]);
        }
        tn_tensor_unref(x);
        tn_tensor_unref(want);
    }
    tni_cpu_use(TNI_ISA_AVX512);
    ASSERT_OK(tn_set_num_threads(threads));
}

TEST(a_line_that_is_not_a_number_stays_alone)
{
    const int64_t last = 1;
    for (int64_t n = 30; n <= 37; n++) {
        tn_tensor *x = random_lines(9, n, TN_DTYPE_F32), *half = NULL;
        ((float *)x->data)[4 * n + 3] = NAN;
        ASSERT_OK(tn__fft_r2c(x, &last, 1, 0, true, &half));
        const float *h = half->data;
        for (int64_t i = 0; i < half->numel; i++)
            EXPECT(i / (n / 2 + 1) == 4 || (isfinite(h[2 * i]) && isfinite(h[2 * i + 1])));
        tn_tensor_unref(x);
        tn_tensor_unref(half);
    }
}

/* Of real numbers, and of the same ones as complex numbers; along a dimension of any stride. */
TEST(whole_spectra_of_real_lines_are_those_of_complex_ones)
{
    for (size_t c = 0; c < 4 * sizeof lengths / sizeof lengths[0]; c++) {
        const tn_dtype dtype = c % 2 ? TN_DTYPE_F64 : TN_DTYPE_F32;
        const int64_t n = lengths[c / 4], across = c / 2 % 2;
        tn_tensor *x = random_lines(21, n, dtype), *turned = NULL, *zero = NULL, *z = NULL;
        tn_tensor *real = NULL, *whole = NULL, *apart = NULL, *sizes = NULL, *most = NULL;
        tn_scalar largest;
        ASSERT_OK(tn_transpose(x, across ? 0 : 1, 1, &turned));
        ASSERT_OK(tn_zeros_like(turned, NULL, TN_FORMAT_PRESERVE, &zero));
        ASSERT_OK(tn_make_complex(turned, zero, &z));
        ASSERT_OK(tn__fft_r2c(turned, &across, 1, 1, false, &real));
        ASSERT_OK(tn__fft_c2c(z, &across, 1, 1, true, &whole));
        ASSERT_OK(tn_sub(real, whole, tn_int(1), &apart));
        ASSERT_OK(tn_abs(apart, &sizes));
        ASSERT_OK(tn_amax(sizes, NULL, 0, false, &most));
        ASSERT_OK(tn_item(most, &largest));
        test_note("%d numbers: %g", (int)n, tn_scalar_to_double(largest));
        EXPECT(tn_scalar_to_double(largest) < (dtype == TN_DTYPE_F64 ? 2e-14 : 1e-5));
        tn_tensor *all[] = {x, turned, zero, z, real, whole, apart, sizes, most};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            tn_tensor_unref(all[i]);
    }
}
