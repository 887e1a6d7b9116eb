/* SPDX-License-Identifier: MIT */
/* Known values: the programs of golden/make_fake.py, in C, give the reference's answers; and what
 * the reference has no answer for. Sees the public headers alone. */
#include <stdio.h>
#include <string.h>

#include "kit.h"

/* ---- programs: each gives a tensor, whose item() is the answer ---- */

static tn_tensor *scalar(int64_t value)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tn_tensor_from_scalar(tn_int(value), TN_DTYPE_NONE, &t));
    return t;
}

static tn_tensor *list(int64_t n, const int64_t *values)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tn_tensor_from_data(values, 1, &n, TN_DTYPE_I64, &t));
    return t;
}

static tn_tensor *unknown(void)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_empty(NULL, 0, &opts, TN_FORMAT_NONE, &t));
    return t;
}

/* The result of a call that takes @p t, which goes. NULL when the call failed. */
#define AFTER(t, call)                \
    tn_tensor *in = (t), *out = NULL; \
    tn_status st = (call);            \
    tn_tensor_unref(in);              \
    return st == TN_OK ? out : NULL

static tn_tensor *run_scalar(void)
{
    return scalar(3);
}
static tn_tensor *run_one_element(void)
{
    return list(1, (int64_t[]){7});
}
static tn_tensor *run_several_elements(void)
{
    AFTER(list(3, ((int64_t[]){1, 2, 3})), tn_sum(in, TN_DTYPE_NONE, &out));
}
static tn_tensor *run_add(void)
{
    AFTER(scalar(3), tn_add_scalar(in, tn_int(1), tn_int(1), &out));
}
static tn_tensor *run_add_two(void)
{
    tn_tensor *four = scalar(4), *in = scalar(3), *out = NULL;
    EXPECT_OK(tn_add(in, four, tn_int(1), &out));
    UNREF(four, in);
    return out;
}
static tn_tensor *run_less_than(void)
{
    AFTER(scalar(3), tn_lt_scalar(in, tn_int(5), &out));
}
static tn_tensor *run_clone(void)
{
    AFTER(scalar(3), tn_clone(in, TN_FORMAT_NONE, &out));
}
static tn_tensor *run_to_float(void)
{
    AFTER(scalar(3), tn_to_dtype(in, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &out));
}
static tn_tensor *run_to_cuda(void)
{
    AFTER(scalar(3), tn_to_device(in, cuda(0), TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &out));
}
static tn_tensor *run_select(void)
{
    AFTER(list(1, (int64_t[]){3}), tn_select(in, 0, 0, &out));
}
static tn_tensor *run_join_and_sum(void)
{
    tn_tensor *a = list(1, (int64_t[]){3}), *b = list(1, (int64_t[]){4});
    tn_tensor *joined = NULL, *sum = NULL;
    ASSERT_OK(tn_cat((tn_tensor *[]){a, b}, 2, 0, &joined));
    ASSERT_OK(tn_sum(joined, TN_DTYPE_NONE, &sum));
    UNREF(a, b, joined);
    return sum;
}
static tn_tensor *run_ones(void)
{
    return ones(0, TN_CPU);
}
static tn_tensor *run_full(void)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tn_full(NULL, 0, tn_int(3), NULL, &t));
    return t;
}
static tn_tensor *run_with_unknown(void)
{
    tn_tensor *u = unknown(), *in = scalar(3), *out = NULL;
    EXPECT_OK(tn_add(in, u, tn_int(1), &out));
    UNREF(u, in);
    return out;
}
static tn_tensor *run_divide_by_zero(void)
{
    tn_tensor *zero = scalar(0), *in = scalar(3), *out = NULL;
    tn_status st = tn_floor_divide(in, zero, &out);
    UNREF(zero, in);
    return st == TN_OK ? out : NULL;
}
static tn_tensor *run_random(void)
{
    tn_tensor *in = NULL, *out = NULL;
    ASSERT_OK(tn_tensor_from_scalar(tn_float(0.5), TN_DTYPE_F32, &in));
    ASSERT_OK(tn_bernoulli(in, NULL, &out));
    UNREF(in);
    return out;
}
static tn_tensor *run_equal(void)
{
    tn_tensor *a = scalar(1), *b = scalar(1);
    bool same = false;
    EXPECT_OK(tn_equal(a, b, &same));
    UNREF(a, b);
    return scalar(same);
}
static tn_tensor *run_count_nonzero_elements(void)
{
    tn_tensor *in = list(1, (int64_t[]){1}), *found = NULL;
    ASSERT_OK(tn_nonzero(in, &found));
    int64_t n = tn_tensor_sizes(found)[0];
    UNREF(in, found);
    return scalar(n);
}

/* A view of a known 3, after @p write. */
static tn_tensor *mutated(tn_status (*write)(tn_tensor *x))
{
    tn_tensor *x = scalar(3), *view = NULL;
    ASSERT_OK(tn_view(x, (int64_t[]){1}, 1, &view));
    EXPECT_OK(write(x));
    UNREF(x);
    return view;
}
static tn_status add_one(tn_tensor *x)
{
    return tn_add_scalar_(x, tn_int(1), tn_int(1));
}
static tn_status fill_nine(tn_tensor *x)
{
    return tn_fill_(x, tn_int(9));
}
static tn_status copy_eight(tn_tensor *x)
{
    tn_tensor *eight = scalar(8);
    tn_status st = tn_copy_(x, eight, false);
    UNREF(eight);
    return st;
}
static tn_status add_unknown(tn_tensor *x)
{
    tn_tensor *u = unknown();
    tn_status st = tn_add_(x, u, tn_int(1));
    UNREF(u);
    return st;
}
static tn_status copy_unknown(tn_tensor *x)
{
    tn_tensor *u = unknown();
    tn_status st = tn_copy_(x, u, false);
    UNREF(u);
    return st;
}
static tn_status fill_random(tn_tensor *x)
{
    return tn_random_(x, NULL);
}
static tn_tensor *run_view_sees_add_(void)
{
    return mutated(add_one);
}
static tn_tensor *run_view_sees_fill_(void)
{
    return mutated(fill_nine);
}
static tn_tensor *run_view_sees_copy_(void)
{
    return mutated(copy_eight);
}
static tn_tensor *run_unknown_add_(void)
{
    return mutated(add_unknown);
}
static tn_tensor *run_unknown_copy_(void)
{
    return mutated(copy_unknown);
}
static tn_tensor *run_random_fill(void)
{
    return mutated(fill_random);
}

/* ---- the reference's answers ---- */

static void expect_item(const char *name, tn_tensor *t, const char *wanted)
{
    tn_scalar number = tn_int(0);
    char text[64];
    test_note("%s", name);
    tn_status st = t ? tn_item(t, &number) : tn_last_status();
    EXPECT(!t || tn_is_fake(t));
    if (strncmp(wanted, "error: ", 7) == 0) {
        EXPECT(st != TN_OK);
        EXPECT_CONTAINS(tn_last_error(), wanted + 7);
    } else {
        EXPECT_OK(st);
        if (number.kind == TN_SCALAR_BOOL)
            snprintf(text, sizeof text, "%s", number.v.i ? "True" : "False");
        else if (number.kind == TN_SCALAR_FLOAT)
            snprintf(text, sizeof text, "%.1f", number.v.f);
        else
            snprintf(text, sizeof text, "%lld", (long long)number.v.i);
        EXPECT_STR(text, wanted);
    }
    tn_tensor_unref(t);
}

TEST(known_values_are_those_of_the_reference)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
#define DEVICES(op, a, b, wanted)
#define CONSTANT(name, wanted) expect_item(#name, run_##name(), wanted);
#include "golden/fake.inc"
#undef DEVICES
#undef CONSTANT
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* ---- what goes beyond ---- */

TEST(a_repeated_constant_is_still_known)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = scalar(3), *y = NULL, *sum = NULL;
    ASSERT_OK(tn_expand(x, (int64_t[]){4}, 1, false, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &sum));
    expect_item("sum of a repeated constant", sum, "12");
    expect_item("the constant itself", x, "3");
    UNREF(y);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(a_constant_that_is_repeated_without_end_is_not_computed_with)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    const int64_t large[] = {1000000, 1000000};
    tn_tensor *x = scalar(3), *wide = NULL, *copy = NULL, *sum = NULL, *found = NULL;
    ASSERT_OK(tn_expand(x, large, 2, false, &wide));
    EXPECT_WITHIN_SECONDS(5, ASSERT_OK(tn_repeat(x, large, 2, &copy)));
    EXPECT_WITHIN_SECONDS(5, ASSERT_OK(tn_sum(wide, TN_DTYPE_NONE, &sum)));
    EXPECT_FAIL(TN_INVALID, "aten.nonzero.default", tn_nonzero(wide, &found));
    expect_item("the sum", sum, "error: aten._local_scalar_dense.default");
    expect_item("the constant", x, "3");
    UNREF(wide, copy);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(a_constant_can_be_read_as_a_real_tensor)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = scalar(3), *u = unknown(), *known = NULL, *none = NULL;
    ASSERT_OK(tn_fake_constant(x, &known));
    EXPECT(known && !tn_is_fake(known));
    EXPECT_EQ_INT(*(int64_t *)tn_tensor_data(known), 3);
    ASSERT_OK(tn_fake_constant(u, &none));
    EXPECT(none == NULL);
    EXPECT_OK(tn_fill_(x, tn_int(5)));
    EXPECT_EQ_INT(*(int64_t *)tn_tensor_data(known), 3); /* a copy */
    tn_fake_leave(guard);
    UNREF(x, u, known);
    tn_fake_mode_unref(mode);
}

TEST(a_write_that_fails_forgets_nothing)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = scalar(3), *wrong = ones(1, TN_CPU);
    EXPECT_FAIL(TN_INVALID, "output with shape []", tn_add_(x, wrong, tn_int(1)));
    expect_item("after a refused write", x, "3");
    UNREF(wrong);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(a_constant_counts_writes_and_shares_memory_with_its_views)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = scalar(3), *view = NULL;
    uint32_t version = 0;
    ASSERT_OK(tn_view(x, (int64_t[]){1}, 1, &view));
    EXPECT(tn_tensor_shares_storage(x, view));
    EXPECT_OK(add_one(x));
    EXPECT_OK(tn_tensor_version(view, &version));
    EXPECT_EQ_INT(version, 1);
    UNREF(x, view);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(values_outside_a_mode_are_real)
{
    tn_tensor *x = scalar(3);
    EXPECT(!tn_is_fake(x) && tn_tensor_data(x) != NULL);
    UNREF(x);
}
