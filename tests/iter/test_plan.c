/* SPDX-License-Identifier: MIT */
/* tests/iter/test_plan.c: what iter/iter.h promises of plans. What a result looks like is compared
 * with the reference in tests/ops/test_golden.c; here it is what that does not see. */
#include "base/alloc.h"
#include "core/scalar.h"
#include "harness/test.h"
#include "iter/iter.h"

static const tni_pointwise_attr promote = {"op", TNI_PW_PROMOTE, TNI_LAYOUT_OPERANDS, 0, "op"};
static const tni_pointwise_attr to_float = {"op", TNI_PW_FLOAT, TNI_LAYOUT_OPERANDS, 0, "op"};
static const tni_pointwise_attr to_bool = {"op", TNI_PW_BOOL, TNI_LAYOUT_OPERANDS, 0, "op"};
static const tni_pointwise_attr same = {"op", TNI_PW_SAME, TNI_LAYOUT_OPERANDS, 0, "op"};

static tn_tensor *tensor(int ndim, const int64_t *sizes, const int64_t *strides, tn_dtype dtype,
                         tn_device device)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(ndim, sizes, strides, dtype, device, &t));
    return t;
}

static tn_tensor *vector(int64_t n, tn_dtype dtype)
{
    return tensor(1, &n, NULL, dtype, TN_CPU);
}

/* Plan, and end without loops. */
static tn_status plan(tni_iter *it, const tni_pointwise_attr *attr, tn_tensor *a, tn_tensor *b,
                      tn_tensor *given, int mode, tn_tensor **out)
{
    const tni_operand in[] = {{.tensor = a}, {.tensor = b}};
    TN_TRY(tni_iter_begin(it, attr, in, b ? 2 : 1, given, mode));
    return tni_iter_end(it, TN_OK, out);
}

TEST(tensors_alike_are_one_run_of_one_dtype)
{
    tni_iter it;
    tn_tensor *a = vector(5, TN_DTYPE_F32), *b = vector(5, TN_DTYPE_F32), *out = NULL;
    ASSERT_OK(plan(&it, &promote, a, b, NULL, TNI_ITER_NEW, &out));
    EXPECT(it.flat == TNI_FLAT_SAME);
    EXPECT_EQ_INT(it.numel, 5);
    EXPECT(it.in_data[0] == a->data && it.in_data[1] == b->data && it.out_data == out->data);
    EXPECT(it.dtype == TN_DTYPE_F32 && it.out_dtype == TN_DTYPE_F32);
    tn_tensor_unref(out);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(a_number_beside_a_tensor_stays_one_run)
{
    static const struct {
        tn_dtype dtype;
        tn_scalar number;
        tn_dtype result;
        int flat;
    } cases[] = {
        {TN_DTYPE_F32, {.kind = TN_SCALAR_FLOAT, .v.f = 1.5}, TN_DTYPE_F32, TNI_FLAT_NUMBERS},
        {TN_DTYPE_I8, {.kind = TN_SCALAR_INT, .v.i = 3}, TN_DTYPE_I8, TNI_FLAT_NUMBERS},
        {TN_DTYPE_I8, {.kind = TN_SCALAR_FLOAT, .v.f = 3}, TN_DTYPE_F32, TNI_NOT_FLAT},
        {TN_DTYPE_BOOL, {.kind = TN_SCALAR_INT, .v.i = 3}, TN_DTYPE_I64, TNI_NOT_FLAT},
        {TN_DTYPE_F32, {.kind = TN_SCALAR_COMPLEX, .v.f = 3}, TN_DTYPE_C64, TNI_NOT_FLAT},
        {TN_DTYPE_C64, {.kind = TN_SCALAR_COMPLEX, .v.f = 3}, TN_DTYPE_C64, TNI_FLAT_NUMBERS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_iter it;
        tn_tensor *a = vector(3, cases[i].dtype), *out = NULL;
        const tni_operand in[] = {{.tensor = a}, {.scalar = cases[i].number}};
        test_note("case %zu", i);
        ASSERT_OK(tni_iter_begin(&it, &promote, in, 2, NULL, TNI_ITER_NEW));
        ASSERT_OK(tni_iter_end(&it, TN_OK, &out));
        EXPECT(it.flat == cases[i].flat);
        EXPECT(it.dtype == cases[i].result && out->dtype == cases[i].result);
        EXPECT(it.numbers == 2);
        tn_tensor_unref(out);
        tn_tensor_unref(a);
    }
}

TEST(a_failed_loop_gives_its_status_and_no_result)
{
    tni_iter it;
    tn_tensor *a = vector(5, TN_DTYPE_F32), *out = NULL;
    const tni_operand in[] = {{.tensor = a}};
    int64_t before = tni_test_live;
    ASSERT_OK(tni_iter_begin(&it, &promote, in, 1, NULL, TNI_ITER_NEW));
    EXPECT(tni_iter_end(&it, TN_UNSUPPORTED, &out) == TN_UNSUPPORTED);
    EXPECT(out == NULL);
    EXPECT(tni_test_live == before);
    tn_tensor_unref(a);
}

TEST(a_failing_allocation_leaves_nothing_behind)
{
    const int64_t sizes[] = {3, 4}, strides[] = {1, 3};
    tn_tensor *a = tensor(2, sizes, strides, TN_DTYPE_F32, TN_CPU);
    tn_tensor *b = tensor(2, sizes, NULL, TN_DTYPE_F64, TN_CPU);
    tn_tensor *small = vector(0, TN_DTYPE_F64);
    tni_iter it;
    for (int given = 0; given < 2; given++) {
        tn_status rc = TN_INTERNAL;
        tn_tensor *out = NULL;
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = plan(&it, &promote, a, b, given ? small : NULL,
                      given ? TNI_ITER_OUT : TNI_ITER_NEW, &out);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && out == NULL && tni_test_live == before &&
                       small->ndim == 1 && small->numel == 0);
        }
        tn_tensor_unref(out);
    }
    EXPECT(small->ndim == 2 && small->numel == 12);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(small);
}

TEST(nothing_is_resized_when_a_check_fails)
{
    tni_iter it;
    tn_tensor *a = vector(3, TN_DTYPE_F32), *out = vector(2, TN_DTYPE_I64);
    EXPECT_FAIL(TN_INVALID, "result type Float can't be cast to the desired output type Long",
                plan(&it, &promote, a, a, out, TNI_ITER_OUT, NULL));
    EXPECT_EQ_INT(out->numel, 2);
    tn_tensor_unref(a);
    tn_tensor_unref(out);
}

TEST(an_output_that_is_an_input_too_is_not_resized)
{
    tni_iter it;
    tn_tensor *a = vector(1, TN_DTYPE_F32), *b = vector(3, TN_DTYPE_F32);
    EXPECT_FAIL(TN_INVALID, "output with shape [1] doesn't match the broadcast shape [3]",
                plan(&it, &promote, a, b, a, TNI_ITER_OUT, NULL));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(the_rules_decide_the_dtype)
{
    tni_iter it;
    tn_tensor *a = vector(3, TN_DTYPE_I32), *b = vector(3, TN_DTYPE_I64), *out = NULL;
    ASSERT_OK(plan(&it, &to_float, a, b, NULL, TNI_ITER_NEW, &out));
    EXPECT(it.dtype == TN_DTYPE_F32 && out->dtype == TN_DTYPE_F32);
    tn_tensor_unref(out);
    ASSERT_OK(plan(&it, &to_bool, a, b, NULL, TNI_ITER_NEW, &out));
    EXPECT(it.dtype == TN_DTYPE_I64 && it.out_dtype == TN_DTYPE_BOOL &&
           out->dtype == TN_DTYPE_BOOL);
    tn_tensor_unref(out);
    EXPECT_FAIL(TN_INVALID, "Found dtype Int but expected Long",
                plan(&it, &same, a, b, NULL, TNI_ITER_NEW, &out));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(a_wrapped_number_is_weaker_than_a_zero_dim_tensor)
{
    tn_tensor *a = tensor(0, NULL, NULL, TN_DTYPE_F64, TN_CPU);
    tn_tensor *b = vector(2, TN_DTYPE_I32);
    const tni_operand in[] = {{.tensor = a}, {.tensor = b}};
    EXPECT(tni_result_type(in, 2) == TN_DTYPE_F64);
    a->flags |= TNI_WRAPPED_NUMBER;
    EXPECT(tni_result_type(in, 2) == TN_DTYPE_F32);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(meta_beside_the_cpu_is_refused_unless_the_latter_is_a_number)
{
    tni_iter it;
    const int64_t n = 2;
    tn_tensor *cpu = vector(2, TN_DTYPE_F32), *meta = tensor(1, &n, NULL, TN_DTYPE_F32, TN_META);
    tn_tensor *number = tensor(0, NULL, NULL, TN_DTYPE_F64, TN_CPU), *out = NULL;
    EXPECT_FAIL(TN_INVALID, "found at least two devices, meta and cpu!",
                plan(&it, &promote, cpu, meta, NULL, TNI_ITER_NEW, &out));
    EXPECT_FAIL(TN_INVALID, "found at least two devices, meta and cpu!",
                plan(&it, &promote, cpu, meta, cpu, TNI_ITER_INPLACE, NULL));
    EXPECT_FAIL(TN_INVALID, "found at least two devices, meta and cpu!",
                plan(&it, &promote, meta, meta, cpu, TNI_ITER_OUT, NULL));
    ASSERT_OK(plan(&it, &promote, number, meta, NULL, TNI_ITER_NEW, &out));
    EXPECT(tni_is_meta(out) && out->dtype == TN_DTYPE_F32);
    tn_tensor_unref(out);
    tn_tensor_unref(cpu);
    tn_tensor_unref(meta);
    tn_tensor_unref(number);
}

TEST(coalescing_merges_what_all_operands_walk_as_one)
{
    tni_iter it = {.n = 1, .ndim = 4, .sizes = {4, 1, 3, 2}};
    const int64_t out[] = {4, 99, 16, 48}, in[] = {8, 77, 32, 0};
    for (int d = 0; d < 4; d++) {
        it.strides[0][d] = out[d];
        it.strides[1][d] = in[d];
    }
    tni_iter_coalesce(&it);
    EXPECT_EQ_INT(it.ndim, 2);
    EXPECT(it.sizes[0] == 12 && it.sizes[1] == 2);
    EXPECT(it.strides[0][0] == 4 && it.strides[0][1] == 48);
    EXPECT(it.strides[1][0] == 8 && it.strides[1][1] == 0);
}

TEST(a_result_whose_size_overflows_is_refused)
{
    tni_iter it;
    const int64_t a_sizes[] = {INT64_C(1) << 40, 1}, b_sizes[] = {1, INT64_C(1) << 40};
    const int64_t zeros[] = {0, 0};
    tn_tensor *a = tensor(2, a_sizes, zeros, TN_DTYPE_F32, TN_META);
    tn_tensor *b = tensor(2, b_sizes, zeros, TN_DTYPE_F32, TN_META), *out = NULL;
    EXPECT_FAIL(TN_INVALID, "overflow", plan(&it, &promote, a, b, NULL, TNI_ITER_NEW, &out));
    EXPECT(out == NULL);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}
