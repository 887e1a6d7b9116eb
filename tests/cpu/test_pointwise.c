/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_pointwise.c: elementwise operators on sizes that the golden data does not reach:
 * many blocks, many threads, awkward strides. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "core/tensor.h"
#include "cpu/counted.h"
#include "harness/test.h"
#include "tenon/ops.h"

static bool equal(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *x = NULL, *y = NULL;
    ASSERT_OK(tn_contiguous(a, TN_FORMAT_CONTIGUOUS, &x));
    ASSERT_OK(tn_contiguous(b, TN_FORMAT_CONTIGUOUS, &y));
    bool same = x->dtype == y->dtype && x->numel == y->numel &&
                memcmp(x->data, y->data, (size_t)x->numel * tni_itemsize(x)) == 0;
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    return same;
}

/* What a plain loop over indices gives: a[i, j] + b[i, j], as double. */
static void check_sum(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *c = NULL;
    ASSERT_OK(tn_add(a, b, tn_int(1), &c));
    ASSERT(c->ndim == 2 && c->dtype == TN_DTYPE_F32);
    for (int64_t i = 0; i < c->sizes[0]; i++)
        for (int64_t j = 0; j < c->sizes[1]; j++) {
            float x = ((float *)a->data)[i * a->strides[0] + j * a->strides[1]];
            float y = ((float *)b->data)[i * b->strides[0] + j * b->strides[1]];
            float z = ((float *)c->data)[i * c->strides[0] + j * c->strides[1]];
            if (z != x + y) {
                EXPECT_NEAR(z, x + y, 0);
                goto out;
            }
        }
out:
    tn_tensor_unref(c);
}

TEST(transposed_and_broadcast_operands_of_many_blocks_add_up)
{
    const int64_t shapes[][2] = {{700, 300}, {3, 70000}, {70000, 3}, {1, 100000}, {260, 257}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const int64_t *s = shapes[i], back[] = {s[1], s[0]}, column[] = {s[0], 1};
        tn_tensor *a = counted(2, s, TN_DTYPE_F32), *u = counted(2, back, TN_DTYPE_F32), *b = NULL;
        tn_tensor *c = counted(2, column, TN_DTYPE_F32), *wide = NULL;
        test_note("[%d, %d]", (int)s[0], (int)s[1]);
        ASSERT_OK(tn_t(u, &b));
        ASSERT_OK(tn_expand(c, s, 2, false, &wide));
        check_sum(a, b);
        check_sum(b, b);
        check_sum(a, wide);
        check_sum(wide, b);
        tn_tensor_unref(a);
        tn_tensor_unref(u);
        tn_tensor_unref(b);
        tn_tensor_unref(c);
        tn_tensor_unref(wide);
    }
}

TEST(results_do_not_depend_on_the_number_of_threads)
{
    const int64_t sizes[] = {311, 421};
    tn_tensor *a = counted(2, sizes, TN_DTYPE_F32), *t = NULL, *one[4], *many[4];
    ASSERT_OK(tn_t(a, &t));
    for (int threads = 1; threads <= 4; threads += 3) {
        tn_tensor **out = threads == 1 ? one : many;
        ASSERT_OK(tn_set_num_threads(threads));
        ASSERT_OK(tn_sigmoid(a, &out[0]));
        ASSERT_OK(tn_mul_scalar(t, tn_float(0.5), &out[1]));
        ASSERT_OK(tn_lt_scalar(a, tn_int(1000), &out[2]));
        ASSERT_OK(tn_to_dtype(t, TN_DTYPE_F16, false, false, TN_FORMAT_CONTIGUOUS, &out[3]));
    }
    for (int i = 0; i < 4; i++) {
        EXPECT(equal(one[i], many[i]));
        tn_tensor_unref(one[i]);
        tn_tensor_unref(many[i]);
    }
    tn_tensor_unref(a);
    tn_tensor_unref(t);
}

TEST(an_input_that_overlaps_the_output_is_read_before_it_is_written)
{
    const int64_t n = 200000, half = 99999;
    const int64_t two = 2;
    tn_tensor *all = counted(1, &n, TN_DTYPE_F32), *a = NULL, *b = NULL;
    /* a[i] = all[2 i + 2], b[i] = all[2 i] */
    ASSERT_OK(tn_as_strided(all, &half, 1, &two, 1, tn_some_int(2), &a));
    ASSERT_OK(tn_as_strided(all, &half, 1, &two, 1, tn_some_int(0), &b));
    ASSERT_OK(tn_add_(a, b, tn_int(1)));
    const float *x = all->data;
    for (int64_t i = 0; i < half; i++)
        if (x[2 * i + 2] != (float)(4 * i + 2)) {
            EXPECT_EQ_INT(i, -1);
            break;
        }
    tn_tensor_unref(all);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(integer_division_by_zero_writes_nothing)
{
    const int64_t n = 50000;
    tn_tensor *a = counted(1, &n, TN_DTYPE_I32), *b = NULL, *before = NULL;
    ASSERT_OK(tn_ones_like(a, NULL, TN_FORMAT_NONE, &b));
    ((int32_t *)b->data)[n - 1] = 0;
    ASSERT_OK(tn_clone(a, TN_FORMAT_NONE, &before));
    EXPECT_FAIL(TN_INVALID, "ZeroDivisionError", tn_div_tensor_mode_(a, b, "floor"));
    EXPECT(equal(a, before));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(before);
}

TEST(a_copy_that_cannot_be_allocated_is_reported_and_writes_nothing)
{
    const int64_t n = 400, half = 190, two = 2;
    tn_tensor *all = counted(1, &n, TN_DTYPE_F32), *a = NULL, *b = NULL, *saved = NULL;
    ASSERT_OK(tn_as_strided(all, &half, 1, &two, 1, tn_some_int(2), &a));
    ASSERT_OK(tn_as_strided(all, &half, 1, &two, 1, tn_some_int(0), &b));
    ASSERT_OK(tn_clone(all, TN_FORMAT_NONE, &saved));
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_add_(a, b, tn_int(1));
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live == before &&
                   memcmp(all->data, saved->data, (size_t)n * 4) == 0);
    }
    tn_tensor_unref(all);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(saved);
}

/* f(-0) is -0 for every odd function, and for those that round or keep their argument. */
TEST(odd_functions_keep_the_sign_of_zero)
{
    typedef tn_status function(tn_tensor *, tn_tensor **);
    const struct {
        const char *name;
        function *f;
    } odd[] = {
        {"tanh", tn_tanh},   {"sin", tn_sin},       {"tan", tn_tan},     {"asin", tn_asin},
        {"atan", tn_atan},   {"sinh", tn_sinh},     {"asinh", tn_asinh}, {"atanh", tn_atanh},
        {"erf", tn_erf},     {"expm1", tn_expm1},   {"log1p", tn_log1p}, {"sqrt", tn_sqrt},
        {"floor", tn_floor}, {"ceil", tn_ceil},     {"trunc", tn_trunc}, {"round", tn_round},
        {"relu", tn_relu},   {"erfinv", tn_erfinv},
    };
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_F16, TN_DTYPE_BF16};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        for (int k = 0; k < 4; k++) {
            tn_tensor *x = NULL, *y = NULL, *wide = NULL;
            tn_tensor_opts opts = tn_opts(dtypes[k], TN_CPU);
            ASSERT_OK(tn_full((const int64_t[]){37}, 1, tn_float(-0.0), &opts, &x));
            ASSERT_OK(odd[i].f(x, &y));
            ASSERT_OK(tn_to_dtype(y, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
            test_note("%s of %s", odd[i].name, tn_dtype_name(dtypes[k]));
            const double *got = wide->data;
            for (int j = 0; j < 37; j++)
                EXPECT(got[j] == 0 && signbit(got[j]));
            tn_tensor_unref(x);
            tn_tensor_unref(y);
            tn_tensor_unref(wide);
        }
}
