/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_optim.c: steps of optimisers: strides, threads and small floats change nothing,
 * what fails writes nothing, and lists of numbers survive boxing at any length. */
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"

enum { LISTS = 4 };

static tn_tensor *uniform(int64_t rows, int64_t columns, tn_dtype dtype)
{
    tn_tensor *t = NULL, *wide = NULL;
    ASSERT_OK(tn_rand((const int64_t[]){rows, columns}, 2, NULL, &wide));
    ASSERT_OK(tn_to_dtype(wide, dtype, false, true, TN_FORMAT_NONE, &t));
    tn_tensor_unref(wide);
    return t;
}

static void drop(tn_tensor **list, int n)
{
    for (int i = 0; i < n; i++)
        tn_tensor_unref(list[i]);
}

static tn_status adam(tn_tensor **t, tn_tensor *step, double decay)
{
    return tn__fused_adamw_(&t[0], 1, &t[1], 1, &t[2], 1, &t[3], 1, NULL, 0, &step, 1, 0.1, 0.9,
                            0.99, decay, 1e-8, false, false, NULL, NULL);
}

static tn_status sgd(tn_tensor **t)
{
    return tn__fused_sgd_(&t[0], 1, &t[1], 1, &t[2], 1, 0.1, 0.9, 0.1, 0, false, false, false, NULL,
                          NULL);
}

static tn_tensor *one(double value)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tn_full(NULL, 0, tn_float(value), NULL, &t));
    return t;
}

static void same_values(tn_tensor *a, tn_tensor *b)
{
    bool same = false;
    ASSERT_OK(tn_equal(a, b, &same));
    EXPECT(same);
}

TEST(small_floats_are_stepped_in_float32_and_rounded_once)
{
    const tn_dtype small[] = {TN_DTYPE_BF16, TN_DTYPE_F16};
    for (int d = 0; d < 2; d++) {
        for (int which = 0; which < 2; which++) {
            tn_tensor *t[LISTS], *wide[LISTS], *step = one(3);
            tn_manual_seed(1);
            for (int i = 0; i < LISTS; i++) {
                t[i] = uniform(40, 33, small[d]);
                ASSERT_OK(tn_to_dtype(t[i], TN_DTYPE_F32, false, true, TN_FORMAT_NONE, &wide[i]));
            }
            ASSERT_OK(which ? adam(t, step, 0.1) : sgd(t));
            ASSERT_OK(which ? adam(wide, step, 0.1) : sgd(wide));
            for (int i = 0; i < LISTS; i++) {
                tn_tensor *rounded = NULL;
                ASSERT_OK(tn_to_dtype(wide[i], small[d], false, true, TN_FORMAT_NONE, &rounded));
                same_values(t[i], rounded);
                tn_tensor_unref(rounded);
            }
            drop(t, LISTS);
            drop(wide, LISTS);
            tn_tensor_unref(step);
        }
    }
}

TEST(strides_and_threads_change_nothing)
{
    tn_tensor *plain[LISTS], *mixed[LISTS], *turned = NULL, *step = one(2);
    tn_manual_seed(2);
    for (int i = 0; i < LISTS; i++) {
        plain[i] = uniform(300, 257, TN_DTYPE_F32);
        ASSERT_OK(tn_clone(plain[i], TN_FORMAT_CONTIGUOUS, &mixed[i]));
    }
    /* The parameter lies the other way round; the gradient is one row, repeated. */
    ASSERT_OK(tn_transpose(mixed[0], 0, 1, &turned));
    tn_tensor_unref(mixed[0]);
    ASSERT_OK(tn_clone(turned, TN_FORMAT_CONTIGUOUS, &mixed[0]));
    tn_tensor_unref(turned);
    ASSERT_OK(tn_transpose(mixed[0], 0, 1, &turned));
    tn_tensor_unref(mixed[0]);
    mixed[0] = turned;
    tn_tensor *row = NULL, *rows = NULL;
    ASSERT_OK(tn_narrow(mixed[1], 0, 0, 1, &row));
    ASSERT_OK(tn_expand(row, (const int64_t[]){300, 257}, 2, false, &rows));
    ASSERT_OK(tn_copy_(plain[1], rows, false));
    tn_tensor_unref(mixed[1]);
    mixed[1] = rows;
    ASSERT_OK(tn_set_num_threads(1));
    ASSERT_OK(adam(plain, step, 0.1));
    ASSERT_OK(tn_set_num_threads(3));
    ASSERT_OK(adam(mixed, step, 0.1));
    for (int i = 0; i < LISTS; i++)
        same_values(plain[i], mixed[i]);
    uint32_t version = 0;
    ASSERT_OK(tn_tensor_version(mixed[2], &version));
    EXPECT_EQ_INT(version, 1);
    drop(plain, LISTS);
    drop(mixed, LISTS);
    tn_tensor_unref(row);
    tn_tensor_unref(step);
}

TEST(every_element_of_many_tensors_takes_its_step_once)
{
    static const int64_t sizes[] = {0, 1, 15, 4096, 100001, 8191, 8192, 12288, 3, 65537, 40000};
    enum { N = sizeof sizes / sizeof *sizes };
    const int threads[] = {1, 2, 3, 5, 64};
    const int before = tn_num_threads();
    for (int k = 0; k < 5; k++) {
        tn_tensor *t[N], *grads[N];
        ASSERT_OK(tn_set_num_threads(threads[k]));
        for (int i = 0; i < N; i++) {
            ASSERT_OK(tn_arange(tn_float((double)sizes[i]), NULL, &t[i]));
            ASSERT_OK(tn_ones(&sizes[i], 1, NULL, &grads[i]));
        }
        ASSERT_OK(
            tn__fused_sgd_(t, N, grads, N, NULL, 0, 0, 0, 1, 0, false, false, false, NULL, NULL));
        for (int i = 0; i < N; i++) {
            const float *values = tn_tensor_data(t[i]);
            int64_t wrong = 0;
            for (int64_t at = 0; at < sizes[i]; at++)
                wrong += values[at] != (float)(at - 1);
            EXPECT_EQ_INT(wrong, 0);
        }
        drop(t, N);
        drop(grads, N);
    }
    ASSERT_OK(tn_set_num_threads(before));
}

TEST(what_is_refused_writes_nothing)
{
    tn_tensor *t[LISTS + 1], *step = one(1), *kept = NULL;
    for (int i = 0; i <= LISTS; i++)
        t[i] = uniform(2, 3, TN_DTYPE_F32);
    tn_tensor *wrong = uniform(2, 4, TN_DTYPE_F32);
    ASSERT_OK(tn_clone(t[0], TN_FORMAT_CONTIGUOUS, &kept));
    EXPECT_FAIL(TN_INVALID,
                "Expected a tensor of size [2, 3] in exp_avgs, as in self, but got [2, 4]",
                adam((tn_tensor *[]){t[0], t[1], wrong, t[3]}, step, 0));
    same_values(t[0], kept);
    drop(t, LISTS + 1);
    drop((tn_tensor *[]){step, kept, wrong}, 3);
}

TEST(many_numbers_go_through_boxed_calls)
{
    enum { N = 100 };
    tn_tensor *t[N], **out = NULL;
    tn_scalar numbers[N];
    double floats[N];
    int64_t n = 0;
    for (int i = 0; i < N; i++) {
        t[i] = one(1);
        numbers[i] = i % 2 ? tn_int(i) : tn_float(i);
        floats[i] = i;
    }
    ASSERT_OK(tn__foreach_mul_scalarlist(t, N, numbers, N, &out, &n));
    for (int i = 0; i < N; i++)
        EXPECT(*(float *)out[i]->data == (float)i);
    tn_tensor_list_free(out, n);
    tn_op *op;
    tn_value result;
    ASSERT_OK(tn_op_find("aten::_foreach_mul.ScalarList", &op));
    const tn_value arguments[] = {tn_value_tensors(t, N), tn_value_floats(floats, N)};
    ASSERT_OK(tn_op_call(op, arguments, 2, &result));
    EXPECT_EQ_INT(result.count, N);
    for (int i = 0; i < N; i++)
        EXPECT(*(float *)result.u.tensors[i]->data == (float)i);
    tn_value_clear(&result);
    drop(t, N);
}
