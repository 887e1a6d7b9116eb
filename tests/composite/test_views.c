/* SPDX-License-Identifier: MIT */
/* tests/composite/test_views.c: what views share with what they are views of. Their geometry is
 * checked against the reference in tests/golden. */
#include "harness/test.h"
#include "tenon/ops.h"

static tn_tensor *ones(int ndim, const int64_t *sizes)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_ones(sizes, ndim, &opts, &t));
    return t;
}

static uint32_t version(const tn_tensor *t)
{
    uint32_t v = 0;
    ASSERT_OK(tn_tensor_version(t, &v));
    return v;
}

TEST(a_view_and_its_base_count_writes_together)
{
    tn_tensor *base = ones(2, (int64_t[]){2, 3}), *view = NULL, *again = NULL, *detached = NULL;
    ASSERT_OK(tn_view(base, (int64_t[]){6}, 1, &view));
    ASSERT_OK(tn_slice(view, 0, tn_some_int(1), tn_no_int(), 2, &again));
    ASSERT_OK(tn_detach(again, &detached));
    EXPECT_EQ_INT(version(again), 0);
    ASSERT_OK(tn_zero_(again));
    ASSERT_OK(tn_zero_(detached));
    EXPECT_EQ_INT(version(base), 2);
    EXPECT_EQ_INT(version(view), 2);
    EXPECT_EQ_INT(version(detached), 2);
    tn_tensor_unref(base); /* the counter outlives the tensor that it began in */
    ASSERT_OK(tn_zero_(view));
    EXPECT_EQ_INT(version(again), 3);
    tn_tensor_unref(view);
    tn_tensor_unref(again);
    tn_tensor_unref(detached);
}

TEST(every_piece_of_a_split_counts_writes_with_its_base)
{
    tn_tensor *base = ones(2, (int64_t[]){5, 2}), **list = NULL;
    int64_t n = 0;
    for (int how = 0; how < 4; how++) {
        uint32_t before = version(base);
        if (how == 0)
            ASSERT_OK(tn_split(base, 2, 0, &list, &n));
        else if (how == 1)
            ASSERT_OK(tn_split_with_sizes(base, (int64_t[]){1, 4}, 2, 0, &list, &n));
        else if (how == 2)
            ASSERT_OK(tn_unbind(base, 1, &list, &n));
        else
            ASSERT_OK(tn_chunk(base, 2, 0, &list, &n));
        EXPECT_EQ_INT(n, how == 0 ? 3 : 2);
        for (int64_t i = 0; i < n; i++) {
            EXPECT(tn_tensor_shares_storage(base, list[i]));
            ASSERT_OK(tn_zero_(list[i]));
        }
        EXPECT_EQ_INT(version(base), before + (uint32_t)n);
        tn_tensor_list_free(list, n);
    }
    tn_tensor_unref(base);
}

TEST(an_unsafe_view_shares_memory_and_counts_on_its_own)
{
    tn_tensor *base = ones(2, (int64_t[]){2, 3}), *view = NULL;
    ASSERT_OK(tn__unsafe_view(base, (int64_t[]){6}, 1, &view));
    EXPECT(tn_tensor_shares_storage(base, view));
    ASSERT_OK(tn_zero_(view));
    EXPECT_EQ_INT(version(view), 1);
    EXPECT_EQ_INT(version(base), 0);
    tn_tensor_unref(base);
    tn_tensor_unref(view);
}

TEST(views_in_place_count_as_writes_but_detaching_does_not)
{
    tn_tensor *t = ones(2, (int64_t[]){1, 3});
    ASSERT_OK(tn_t_(t));
    EXPECT_EQ_INT(version(t), 1);
    ASSERT_OK(tn_transpose_(t, 0, 1));
    ASSERT_OK(tn_squeeze_(t));
    ASSERT_OK(tn_squeeze_(t)); /* also when nothing changes */
    ASSERT_OK(tn_unsqueeze_(t, 0));
    EXPECT_EQ_INT(version(t), 5);
    ASSERT_OK(tn_detach_(t));
    EXPECT_EQ_INT(version(t), 5);
    ASSERT_OK(tn_resize_(t, (int64_t[]){1, 3}, 2, TN_FORMAT_NONE));
    EXPECT_EQ_INT(version(t), 5); /* nothing changed */
    ASSERT_OK(tn_resize_(t, (int64_t[]){3}, 1, TN_FORMAT_NONE));
    EXPECT_EQ_INT(version(t), 6);
    tn_tensor_unref(t);
}

TEST(a_view_that_changes_nothing_is_a_new_tensor)
{
    tn_tensor *t = ones(2, (int64_t[]){2, 3}), *u = NULL;
    ASSERT_OK(tn_view(t, (int64_t[]){2, 3}, 2, &u));
    EXPECT(u != t);
    tn_tensor_unref(u);
    ASSERT_OK(tn_reshape(t, (int64_t[]){2, 3}, 2, &u));
    EXPECT(u != t && tn_tensor_shares_storage(t, u));
    tn_tensor_unref(u);
    ASSERT_OK(tn_squeeze(t, &u));
    EXPECT(u != t);
    tn_tensor_unref(u);
    ASSERT_OK(tn_flatten(t, 1, 1, &u)); /* but for this one, as in the reference */
    EXPECT(u == t);
    tn_tensor_unref(u);
    tn_tensor_unref(t);
}

TEST(views_of_inference_tensors_are_inference_tensors_and_of_normal_ones_normal)
{
    tn_tensor *normal = ones(1, (int64_t[]){4}), *inference = NULL, *view = NULL;
    tn_inference_guard guard = tn_inference_enter(true);
    inference = ones(1, (int64_t[]){4});
    ASSERT_OK(tn_view(normal, (int64_t[]){2, 2}, 2, &view));
    EXPECT(!tn_tensor_is_inference(view));
    ASSERT_OK(tn_zero_(view));
    tn_inference_leave(guard);
    EXPECT_EQ_INT(version(normal), 1);
    tn_tensor_unref(view);
    ASSERT_OK(tn_view(inference, (int64_t[]){2, 2}, 2, &view));
    EXPECT(tn_tensor_is_inference(view));
    EXPECT_FAIL(TN_INVALID,
                "Inplace update to inference tensor outside InferenceMode is not allowed.",
                tn_zero_(view));
    tn_tensor_unref(view);
    tn_tensor_unref(inference);
    tn_tensor_unref(normal);
}

TEST(a_step_or_window_too_large_to_multiply_leaves_one_piece)
{
    tn_tensor *t = ones(2, (int64_t[]){7, 3}), *u = NULL;
    ASSERT_OK(tn_slice(t, 0, tn_some_int(5), tn_no_int(), INT64_C(1) << 62, &u));
    EXPECT_EQ_INT(tn_tensor_sizes(u)[0], 1);
    EXPECT_EQ_INT(tn_tensor_storage_offset(u), 15);
    tn_tensor_unref(u);
    ASSERT_OK(tn_unfold(t, 0, 2, INT64_C(1) << 62, &u));
    EXPECT_EQ_INT(tn_tensor_sizes(u)[0], 1);
    tn_tensor_unref(u);
    ASSERT_OK(tn_diagonal(t, INT64_MIN, 0, 1, &u));
    EXPECT_EQ_INT(tn_tensor_numel(u), 0);
    tn_tensor_unref(u);
    ASSERT_OK(tn_diagonal(t, INT64_MAX, 0, 1, &u));
    EXPECT_EQ_INT(tn_tensor_numel(u), 0);
    tn_tensor_unref(u);
    tn_tensor_unref(t);
}

TEST(resizing_what_requires_grad_is_refused)
{
    tn_tensor *t = ones(1, (int64_t[]){4});
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    EXPECT_FAIL(TN_INVALID, "cannot resize variables that require grad",
                tn_resize_(t, (int64_t[]){2}, 1, TN_FORMAT_NONE));
    EXPECT_EQ_INT(tn_tensor_sizes(t)[0], 4);
    /* Where nothing is ever recorded nobody asks. */
    tn_inference_guard guard = tn_inference_enter(true);
    EXPECT_OK(tn_resize_(t, (int64_t[]){2}, 1, TN_FORMAT_NONE));
    tn_inference_leave(guard);
    EXPECT_EQ_INT(tn_tensor_sizes(t)[0], 2);
    tn_tensor_unref(t);
}

TEST(lists_of_views_leak_nothing_whichever_allocation_fails)
{
    tn_tensor *t = ones(2, (int64_t[]){5, 2}), **list = NULL, *u = NULL;
    int64_t n = 0;
    ASSERT_OK(tn_chunk(t, 3, 0, &list, &n));
    tn_tensor_list_free(list, n);
    list = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_split(t, 2, 0, &list, &n);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && list == NULL && tni_test_live == before);
    }
    tn_tensor_list_free(list, n);
    list = NULL;
    tn_tensor *empty = ones(1, (int64_t[]){0});
    before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_chunk(empty, 3, 0, &list, &n);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && list == NULL && tni_test_live == before);
    }
    tn_tensor_list_free(list, n);
    EXPECT(tni_test_live == before);
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_reshape(t, (int64_t[]){10}, 1, &u);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && u == NULL && tni_test_live == before);
    }
    tn_tensor_unref(u);
    tn_tensor_unref(empty);
    tn_tensor_unref(t);
}

TEST(a_number_that_is_no_dtype_is_nothing_to_view_as)
{
    const int numbers[] = {-1, 31, 99, INT32_MAX, INT32_MIN};
    tn_tensor *x = ones(1, (int64_t[]){4}), *y = NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        EXPECT_FAIL(TN_TYPE, "is not a dtype", tn_view_dtype(x, (tn_dtype)numbers[i], &y));
        EXPECT_FAIL(TN_TYPE, "is not a dtype", tn_view_copy_dtype(x, (tn_dtype)numbers[i], &y));
    }
    EXPECT(!y);
    tn_tensor_unref(x);
}
