/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_batch_norm.c: batch normalisation where channels are the fastest dimension:
 * against sums in long double, forward and backward, whatever the dtype, instruction set and number
 * of threads. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

enum { ROWS = 700, CHANNELS = 71, NUMEL = ROWS * CHANNELS };

/* [7, CHANNELS, 20, 5], channels last, of numbers around the mean. */
static tn_tensor *made(tn_dtype dtype, uint64_t seed, double mean)
{
    const int64_t sizes[] = {7, 20, 5, CHANNELS}, order[] = {0, 3, 1, 2};
    tn_tensor *wide = NULL, *moved = NULL, *narrow = NULL, *x = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    tn_manual_seed(seed);
    ASSERT_OK(tn_randn(sizes, 4, &opts, &wide));
    ASSERT_OK(tn_add_scalar(wide, tn_float(mean), tn_int(1), &moved));
    ASSERT_OK(tn_to_dtype(moved, dtype, false, false, TN_FORMAT_PRESERVE, &narrow));
    ASSERT_OK(tn_permute(narrow, order, 4, &x));
    tn_tensor_unref(wide);
    tn_tensor_unref(moved);
    tn_tensor_unref(narrow);
    return x;
}

static tn_tensor *per_channel(tn_dtype dtype, uint64_t seed)
{
    const int64_t n = CHANNELS;
    tn_tensor *t = NULL, *narrow = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    tn_manual_seed(seed);
    ASSERT_OK(tn_rand(&n, 1, &opts, &t));
    ASSERT_OK(tn_to_dtype(t, dtype, false, true, TN_FORMAT_PRESERVE, &narrow));
    tn_tensor_unref(t);
    return narrow;
}

/* As doubles, in the order of memory. */
static void read_all(tn_tensor *t, double *to)
{
    tn_tensor *wide = NULL;
    ASSERT_OK(tn_to_dtype(t, TN_DTYPE_F64, false, false, TN_FORMAT_PRESERVE, &wide));
    memcpy(to, wide->data, (size_t)wide->numel * sizeof *to);
    tn_tensor_unref(wide);
}

typedef struct results {
    double out[NUMEL], dx[NUMEL];
    double mean[CHANNELS], var[CHANNELS], dweight[CHANNELS], dbias[CHANNELS];
} results;

static void expect_close(tn_tensor *t, const double *wanted, double off)
{
    static double got[NUMEL];
    read_all(t, got);
    for (int64_t i = 0; i < t->numel; i++)
        EXPECT(fabs(got[i] - wanted[i]) <= off * (1 + fabs(wanted[i])));
}

/* Of rows x and g, weights w and b, and running statistics, which it moves. */
static void exact(bool train, const double *x, const double *g, const double *w, const double *b,
                  double momentum, double eps, results *r)
{
    for (int c = 0; c < CHANNELS; c++) {
        long double sum = 0, squares = 0, dot = 0, total = 0;
        for (int i = 0; i < ROWS; i++)
            sum += (long double)x[i * CHANNELS + c];
        long double mean = train ? sum / ROWS : (long double)r->mean[c];
        for (int i = 0; i < ROWS; i++) {
            long double d = (long double)x[i * CHANNELS + c] - mean;
            squares += d * d;
            dot += d * (long double)g[i * CHANNELS + c];
            total += (long double)g[i * CHANNELS + c];
        }
        long double var = train ? squares / ROWS : (long double)r->var[c];
        long double rstd = 1 / sqrtl(var + (long double)eps), scale = rstd * (long double)w[c];
        for (int i = 0; i < ROWS; i++) {
            int at = i * CHANNELS + c;
            long double d = (long double)x[at] - mean, dx = (long double)g[at];
            if (train)
                dx -= total / ROWS + d * rstd * rstd * dot / ROWS;
            r->out[at] = (double)(d * scale + (long double)b[c]);
            r->dx[at] = (double)(dx * scale);
        }
        r->dweight[c] = (double)(dot * rstd);
        r->dbias[c] = (double)total;
        if (train) {
            r->mean[c] = (1 - momentum) * r->mean[c] + momentum * (double)mean;
            r->var[c] = (1 - momentum) * r->var[c] + momentum * (double)(squares / (ROWS - 1));
        }
    }
}

static void check(tn_dtype dtype, bool train, double off)
{
    static double x[NUMEL], g[NUMEL], w[CHANNELS], b[CHANNELS];
    static results r;
    const bool mask[] = {true, true, true};
    tn_tensor *in = made(dtype, 1, 0.5), *grad = made(dtype, 2, 0.1), *out[3], *back[3];
    tn_tensor *weight = per_channel(dtype, 3), *bias = per_channel(dtype, 4);
    tn_tensor *mean = per_channel(dtype, 5), *var = per_channel(dtype, 6);
    read_all(in, x);
    read_all(grad, g);
    read_all(weight, w);
    read_all(bias, b);
    read_all(mean, r.mean);
    read_all(var, r.var);
    exact(train, x, g, w, b, 0.25, 1e-3, &r);
    ASSERT_OK(tn_native_batch_norm(in, weight, bias, mean, var, train, 0.25, 1e-3, &out[0], &out[1],
                                   &out[2]));
    EXPECT(out[0]->strides[1] == 1);
    expect_close(out[0], r.out, off);
    expect_close(mean, r.mean, off);
    expect_close(var, r.var, off);
    ASSERT_OK(tn_native_batch_norm_backward(grad, in, weight, mean, var, train ? out[1] : NULL,
                                            train ? out[2] : NULL, train, 1e-3, mask, 3, &back[0],
                                            &back[1], &back[2]));
    expect_close(back[0], r.dx, off);
    expect_close(back[1], r.dweight, off * 8); /* sums of 700 */
    expect_close(back[2], r.dbias, off * 8);
    for (int i = 0; i < 3; i++) {
        tn_tensor_unref(out[i]);
        tn_tensor_unref(back[i]);
    }
    tn_tensor *const used[] = {in, grad, weight, bias, mean, var};
    for (int i = 0; i < 6; i++)
        tn_tensor_unref(used[i]);
}

TEST(channels_last_are_normalised_as_the_formula_says)
{
    for (int train = 0; train < 2; train++) {
        test_note(train ? "training" : "evaluation");
        check(TN_DTYPE_F32, train, 1e-5);
        check(TN_DTYPE_F64, train, 1e-13);
        check(TN_DTYPE_BF16, train, 3e-2);
        check(TN_DTYPE_F16, train, 4e-3);
    }
}

TEST(channels_last_depend_neither_on_threads_nor_on_the_instruction_set)
{
    static double first[NUMEL], other[NUMEL];
    tn_tensor *x = made(TN_DTYPE_F32, 8, 3), *out[3];
    int before = tn_num_threads();
    bool have = false;
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        for (int threads = 1; threads <= 3; threads += 2) {
            ASSERT_OK(tn_set_num_threads(threads));
            test_note("%s, %d threads", tni_isa_name((tni_isa)isa), threads);
            ASSERT_OK(tn_native_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5, &out[0],
                                           &out[1], &out[2]));
            read_all(out[0], have ? other : first);
            if (have)
                EXPECT(memcmp(first, other, sizeof first) == 0);
            have = true;
            for (int i = 0; i < 3; i++)
                tn_tensor_unref(out[i]);
        }
    }
    tn_tensor_unref(x);
    tni_cpu_use(TNI_ISA_AVX512);
    ASSERT_OK(tn_set_num_threads(before));
}

TEST(normalising_channels_last_leaks_nothing_whichever_allocation_fails)
{
    tn_tensor *x = made(TN_DTYPE_BF16, 9, 3), *out[3] = {NULL};
    tn_status rc = TN_INTERNAL;
    int64_t before = test_live();
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_native_batch_norm(x, NULL, NULL, NULL, NULL, true, 0.1, 1e-5, &out[0], &out[1],
                                  &out[2]);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !out[0] && !out[1] && !out[2] && test_live() <= before);
    }
    for (int i = 0; i < 3; i++)
        tn_tensor_unref(out[i]);
    EXPECT(test_live() <= before);
    tn_tensor_unref(x);
}

/* Of [2, 8, 3], in memory or with the channels last; @p value: the input. A gradient of -0 stays
 * one, as in PyTorch. */
static void expect_scaled_gradient(bool last, float value)
{
    const int64_t sizes[] = {2, 8, 3}, turned[] = {2, 3, 8}, order[] = {0, 2, 1}, channels = 8;
    const bool mask[] = {true, true, true};
    const tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *lies = NULL, *x = NULL, *mean = NULL, *var = NULL, *dx = NULL, *dweight = NULL,
              *dbias = NULL, *grad = NULL, *grad_lies = NULL;
    ASSERT_OK(tn_full(last ? turned : sizes, 3, tn_float((double)value), &opts, &lies));
    ASSERT_OK(tn_full(last ? turned : sizes, 3, tn_float(-0.5), &opts, &grad_lies));
    ASSERT_OK(last ? tn_permute(lies, order, 3, &x) : tn_alias(lies, &x));
    ASSERT_OK(last ? tn_permute(grad_lies, order, 3, &grad) : tn_alias(grad_lies, &grad));
    ((float *)grad->data)[7 * grad->strides[1]] = -0.0f;
    ASSERT_OK(tn_zeros(&channels, 1, &opts, &mean));
    ASSERT_OK(tn_full(&channels, 1, tn_float(0.25), &opts, &var));
    ASSERT_OK(tn_native_batch_norm_backward(grad, x, NULL, mean, var, NULL, NULL, false, 0.0, mask,
                                            3, &dx, &dweight, &dbias));
    for (int64_t i = 0; i < dx->numel; i++) {
        int64_t n = i / 24, c = i / 3 % 8, p = i % 3, *s = dx->strides;
        float got = ((float *)dx->data)[n * s[0] + c * s[1] + p * s[2]];
        EXPECT(n == 0 && c == 7 && p == 0 ? got == 0 && signbit(got) : got == -1);
    }
    EXPECT(!isfinite(((float *)dweight->data)[0]));
    tn_tensor *all[] = {lies, x, mean, var, dx, dweight, dbias, grad, grad_lies};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}

TEST(with_given_statistics_the_gradient_does_not_depend_on_the_input)
{
    for (int last = 0; last < 2; last++) {
        expect_scaled_gradient(last, NAN);
        expect_scaled_gradient(last, INFINITY);
    }
}

/* 2049 is no float16. */
TEST(gradients_of_parameters_have_the_dtype_of_the_statistics_without_a_weight)
{
    const int64_t sizes[] = {1, 1, 2049}, channels = 1;
    const bool mask[] = {true, true, true};
    const tn_tensor_opts half = tn_opts(TN_DTYPE_F16, TN_CPU),
                         single = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *x = NULL, *mean = NULL, *var = NULL, *dx = NULL, *dweight = NULL, *dbias = NULL;
    ASSERT_OK(tn_ones(sizes, 3, &half, &x));
    ASSERT_OK(tn_zeros(&channels, 1, &single, &mean));
    ASSERT_OK(tn_ones(&channels, 1, &single, &var));
    ASSERT_OK(tn_native_batch_norm_backward(x, x, NULL, mean, var, NULL, NULL, false, 0.0, mask, 3,
                                            &dx, &dweight, &dbias));
    EXPECT_EQ_INT(dx->dtype, TN_DTYPE_F16);
    ASSERT(dweight->dtype == TN_DTYPE_F32 && dbias->dtype == TN_DTYPE_F32);
    EXPECT_NEAR(((float *)dweight->data)[0], 2049, 0);
    EXPECT_NEAR(((float *)dbias->data)[0], 2049, 0);
    tn_tensor *all[] = {x, mean, var, dx, dweight, dbias};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}
