/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_distance.c: Euclidean distances of many rows, which a matrix product gives, beside
 * those of the differences, computed here in float64. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

/* @p batch matrices of normal numbers, times @p scale, plus @p offset. */
static tn_tensor *points(int64_t batch, int64_t rows, int64_t width, tn_dtype dtype, double scale,
                         double offset)
{
    tn_tensor *t = NULL, *moved = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_randn((int64_t[]){batch, rows, width}, 3, &opts, &t));
    ASSERT_OK(tn_mul_scalar(t, tn_float(scale), &moved));
    tn_tensor_unref(t);
    ASSERT_OK(tn_add_scalar(moved, tn_float(offset), tn_int(1), &t));
    tn_tensor_unref(moved);
    return t;
}

static double at(const tn_tensor *t, int64_t i)
{
    return t->dtype == TN_DTYPE_F64 ? ((const double *)t->data)[i]
                                    : (double)((const float *)t->data)[i];
}

/* All distances of @p a and @p b are right to @p most of themselves. */
static void check(tn_tensor *a, tn_tensor *b, tn_opt_int mode, double most)
{
    tn_tensor *d = NULL;
    int64_t rows = a->sizes[1], others = b->sizes[1], width = a->sizes[2];
    ASSERT_OK(tn_cdist(a, b, 2, mode, &d));
    ASSERT_EQ_INT(d->numel, a->sizes[0] * rows * others);
    for (int64_t i = 0; i < d->numel; i++) {
        int64_t batch = i / others / rows, row = i / others, other = i % others;
        long double sum = 0;
        for (int64_t c = 0; c < width; c++) {
            long double x = at(a, row * width + c);
            long double y = at(b, ((b->sizes[0] > 1 ? batch : 0) * others + other) * width + c);
            sum += (x - y) * (x - y);
        }
        double want = (double)sqrtl(sum);
        EXPECT_NEAR(at(d, i), want, isfinite(want) ? most * want : 0);
    }
    tn_tensor_unref(d);
}

TEST(distances_of_many_rows_have_nearly_all_digits)
{
    const struct {
        int64_t rows, others, width;
        double scale, offset;
    } cases[] = {
        {26, 3, 1, 1, 0},     {3, 26, 5, 1, 0},      {40, 61, 17, 1, 0},   {33, 47, 64, 1, 2},
        {30, 30, 9, 1, 1000}, {30, 30, 9, 1e-30, 0}, {30, 30, 9, 1e25, 0},
    };
    tn_manual_seed(3);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int wide = 0; wide < 2; wide++) {
            tn_dtype dtype = wide ? TN_DTYPE_F64 : TN_DTYPE_F32;
            double most = (wide ? DBL_EPSILON : (double)FLT_EPSILON) * 64;
            tn_tensor *a =
                points(2, cases[c].rows, cases[c].width, dtype, cases[c].scale, cases[c].offset);
            tn_tensor *b =
                points(1, cases[c].others, cases[c].width, dtype, cases[c].scale, cases[c].offset);
            test_note("case %zu, %s", c, wide ? "float64" : "float32");
            check(a, b, (tn_opt_int){0}, most);
            check(a, a, tn_some_int(1), most);
            tn_tensor_unref(a);
            tn_tensor_unref(b);
        }
}

TEST(a_row_has_the_distance_0_from_itself_and_all_from_nothing)
{
    tn_manual_seed(4);
    tn_tensor *a = points(1, 50, 7, TN_DTYPE_F32, 1, 10), *d = NULL;
    tn_tensor *none = points(1, 50, 0, TN_DTYPE_F32, 1, 0);
    ASSERT_OK(tn_cdist(a, a, 2, (tn_opt_int){0}, &d));
    for (int64_t i = 0; i < 50; i++)
        EXPECT_NEAR(at(d, i * 51), 0, 0);
    tn_tensor_unref(d);
    ASSERT_OK(tn_cdist(none, none, 2, (tn_opt_int){0}, &d));
    for (int64_t i = 0; i < d->numel; i++)
        EXPECT_NEAR(at(d, i), 0, 0);
    tn_tensor_unref(d);
    tn_tensor_unref(a);
    tn_tensor_unref(none);
}

TEST(infinities_and_nan_stay_with_their_rows)
{
    tn_manual_seed(5);
    tn_tensor *a = points(1, 30, 6, TN_DTYPE_F32, 1, 0), *b = points(1, 30, 6, TN_DTYPE_F32, 1, 0);
    ((float *)a->data)[3 * 6 + 2] = INFINITY;
    ((float *)a->data)[4 * 6 + 1] = NAN;
    ((float *)b->data)[7 * 6 + 2] = INFINITY;
    ((float *)b->data)[8 * 6] = -INFINITY;
    check(a, b, (tn_opt_int){0}, (double)FLT_EPSILON * 64);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(distances_do_not_depend_on_threads)
{
    const int threads = tn_num_threads();
    tn_manual_seed(6);
    tn_tensor *a = points(2, 150, 40, TN_DTYPE_F32, 1, 0);
    tn_tensor *b = points(2, 170, 40, TN_DTYPE_F32, 1, 0);
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        tn_tensor *one = NULL, *many = NULL;
        if ((int)tni_cpu_use((tni_isa)isa) != isa)
            continue;
        ASSERT_OK(tn_set_num_threads(1));
        ASSERT_OK(tn_cdist(a, b, 2, (tn_opt_int){0}, &one));
        ASSERT_OK(tn_set_num_threads(4));
        ASSERT_OK(tn_cdist(a, b, 2, (tn_opt_int){0}, &many));
        EXPECT(memcmp(one->data, many->data, (size_t)one->numel * sizeof(float)) == 0);
        check(a, b, (tn_opt_int){0}, (double)FLT_EPSILON * 64);
        tn_tensor_unref(one);
        tn_tensor_unref(many);
    }
    tni_cpu_use(TNI_ISA_AVX512);
    ASSERT_OK(tn_set_num_threads(threads));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(each_failing_allocation_of_a_product_is_reported)
{
    tn_tensor *a = points(1, 30, 6, TN_DTYPE_BF16, 1, 0), *d = NULL;
    ASSERT_OK(tn_cdist(a, a, 2, (tn_opt_int){0}, &d)); /* what is made once is made now */
    tn_tensor_unref(d);
    d = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_cdist(a, a, 2, (tn_opt_int){0}, &d);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !d && tni_test_live == before);
    }
    tn_tensor_unref(d);
    tn_tensor_unref(a);
}

TEST(gradients_of_euclidean_distances_are_those_of_the_differences)
{
    const double offsets[] = {0, 100};
    for (int far = 0; far < 2; far++)
        for (int half = 0; half < 2; half++) {
            const tn_dtype dtype = half ? TN_DTYPE_F64 : TN_DTYPE_F32;
            tn_tensor *a = points(2, 5, 7, dtype, 1, offsets[far]), *d = NULL, *g = NULL;
            tn_tensor *b = points(2, 30, 7, dtype, 1, offsets[far]), *out = NULL;
            if (dtype == TN_DTYPE_F32) /* a distance of 0 has no slope */
                memcpy(a->data, b->data, 7 * sizeof(float));
            ASSERT_OK(tn__cdist_forward(a, b, 2, (tn_opt_int){0}, &d));
            ASSERT_OK(tn_cos(d, &g));
            ASSERT_OK(tn__cdist_backward(g, a, b, 2, d, &out));
            for (int64_t i = 0; i < 10; i++)
                for (int64_t c = 0; c < 7; c++) {
                    double want = 0;
                    for (int64_t k = 0; k < 30; k++) {
                        double dist = at(d, i * 30 + k);
                        double by = at(a, i * 7 + c) - at(b, (i / 5 * 30 + k) * 7 + c);
                        want += dist == 0 ? 0 : at(g, i * 30 + k) * by / dist;
                    }
                    EXPECT_NEAR(at(out, i * 7 + c), want, 1e-5);
                }
            tn_tensor *all[] = {a, b, d, g, out};
            for (size_t i = 0; i < 5; i++)
                tn_tensor_unref(all[i]);
        }
}
