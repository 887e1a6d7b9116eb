/* SPDX-License-Identifier: MIT */
/* tests/core/test_scope.c: scopes own results, and the first failure sticks. */
#include "harness/test.h"

#include "core/scope.h"
#include "core/state.h"
#include "core/tensor.h"

#include <string.h>

/* What a generated tnx_ function does. */
static tn_tensor *tnx_make(int64_t n)
{
    if (tni_scope_failed())
        return NULL;
    tn_tensor *t = NULL;
    tn_status status = tni_tensor_new(1, &n, NULL, TN_DTYPE_F32, TN_CPU, &t);
    return tni_scope_result(status, t);
}

TEST(a_scope_releases_what_was_made_in_it)
{
    int64_t before = tni_test_live;
    tn_scope *scope = NULL;
    ASSERT_OK(tn_scope_enter(&scope));
    for (int i = 0; i < 100; i++)
        EXPECT(tnx_make(i) != NULL);
    EXPECT_EQ_INT(tn_scope_status(scope), TN_OK);
    EXPECT_OK(tn_scope_leave(scope));
    EXPECT_EQ_INT(tni_test_live, before);
    EXPECT(tni_tls.scope == NULL);
}

TEST(the_first_failure_sticks_and_leaving_reports_it)
{
    int64_t before = tni_test_live;
    tn_scope *scope = NULL;
    ASSERT_OK(tn_scope_enter(&scope));
    EXPECT(tnx_make(1) != NULL);
    EXPECT(tnx_make(-1) == NULL);
    EXPECT_EQ_INT(tn_scope_status(scope), TN_INVALID);
    EXPECT(tnx_make(2) == NULL);                                /* at once */
    (void)tn_fail(TN_TYPE, "a later failure of somebody else"); /* does not replace it */
    EXPECT(tni_scope_result(TN_TYPE, NULL) == NULL);
    EXPECT_FAIL(TN_INVALID, "negative dimension -1", tn_scope_leave(scope));
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(a_failure_without_a_message_is_reported_too)
{
    for (int before = 0; before < 2; before++) { /* another failure must not be taken for it */
        tn_scope *scope = NULL;
        ASSERT_OK(tn_scope_enter(&scope));
        tn_clear_error();
        if (before)
            (void)tn_fail(TN_INVALID, "an earlier one");
        EXPECT(tni_scope_result(TN_DEVICE, NULL) == NULL);
        EXPECT_FAIL(TN_DEVICE, "failed with DEVICE and left no message", tn_scope_leave(scope));
    }
}

TEST(a_long_message_survives_the_scope)
{
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    int64_t before = tni_test_live;
    tn_scope *scope = NULL;
    ASSERT_OK(tn_scope_enter(&scope));
    EXPECT(tni_scope_result(tn_fail(TN_VALUE, "%s!", text), NULL) == NULL);
    EXPECT_FAIL(TN_VALUE, "xx!", tn_scope_leave(scope));
    EXPECT_EQ_INT(strlen(tn_last_error()), 4000);
    tn_clear_error();
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(without_a_scope_nothing_is_made)
{
    int64_t before = tni_test_live;
    tn_clear_error();
    EXPECT(tnx_make(1) == NULL);
    EXPECT_EQ_INT(tn_last_status(), TN_INVALID);
    EXPECT_CONTAINS(tn_last_error(), "no scope is open");
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(0, NULL, NULL, TN_DTYPE_F32, TN_CPU, &t));
    tn_clear_error();
    EXPECT(tn_scope_own(t) == NULL); /* released */
    EXPECT_CONTAINS(tn_last_error(), "no scope is open");
    EXPECT_EQ_INT(tni_test_live, before);
    EXPECT(tn_scope_own(NULL) == NULL && tn_scope_keep(NULL) == NULL);
    EXPECT_EQ_INT(tn_scope_status(NULL), TN_OK);
}

TEST(keeping_takes_a_tensor_out_of_its_scope)
{
    int64_t before = tni_test_live;
    tn_scope *outer = NULL, *inner = NULL;
    ASSERT_OK(tn_scope_enter(&outer));
    tn_tensor *of_outer = tnx_make(1);
    ASSERT_OK(tn_scope_enter(&inner));
    tn_tensor *first = tnx_make(2), *second = tnx_make(3);
    tn_tensor *kept = tn_scope_keep(first); /* moved: no reference more */
    EXPECT(kept == first && tn_tensor_use_count(first) == 1);
    tn_tensor *from_outer = tn_scope_keep(of_outer); /* the outer scope goes on to own it */
    EXPECT_EQ_INT(tn_tensor_use_count(of_outer), 2);
    EXPECT_EQ_INT(tn_tensor_use_count(second), 1);
    EXPECT_OK(tn_scope_leave(inner));
    EXPECT_EQ_INT(tn_tensor_use_count(kept), 1);
    EXPECT(tn_scope_own(kept) == kept); /* now the outer's */
    EXPECT_OK(tn_scope_leave(outer));
    EXPECT_EQ_INT(tn_tensor_use_count(from_outer), 1);
    tn_tensor *alone = tn_scope_keep(from_outer); /* of no scope: one reference more */
    EXPECT_EQ_INT(tn_tensor_use_count(alone), 2);
    tn_tensor_unref(alone);
    tn_tensor_unref(from_outer);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(an_inner_failure_does_not_reach_the_outer_scope)
{
    tn_scope *outer = NULL, *inner = NULL;
    ASSERT_OK(tn_scope_enter(&outer));
    ASSERT_OK(tn_scope_enter(&inner));
    EXPECT(tnx_make(-1) == NULL);
    EXPECT_FAIL(TN_INVALID, "negative dimension", tn_scope_leave(inner));
    EXPECT(tnx_make(1) != NULL);
    EXPECT_OK(tn_scope_leave(outer));
}

TEST(leaving_an_outer_scope_leaves_the_forgotten_inner_ones)
{
    int64_t before = tni_test_live;
    tn_scope *outer = NULL, *inner = NULL;
    ASSERT_OK(tn_scope_enter(&outer));
    ASSERT_OK(tn_scope_enter(&inner));
    EXPECT(tnx_make(2) != NULL);
    EXPECT(tnx_make(-1) == NULL);
    EXPECT_FAIL(TN_INVALID, "negative dimension", tn_scope_leave(outer));
    EXPECT(tni_tls.scope == NULL);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(a_scope_that_is_not_open_here_is_refused)
{
    tn_scope *scope = NULL;
    ASSERT_OK(tn_scope_enter(&scope));
    EXPECT_FAIL(TN_INVALID, "not open on this thread", tn_scope_leave((tn_scope *)&scope));
    EXPECT_FAIL(TN_INVALID, "not open on this thread", tn_scope_leave(NULL));
    EXPECT_OK(tn_scope_leave(scope));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_scope_enter(NULL));
}

TEST(a_scope_leaks_nothing_whichever_allocation_fails)
{
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_scope *scope = NULL;
        rc = tn_scope_enter(&scope);
        if (rc == TN_OK) {
            for (int i = 0; i < 40; i++)
                (void)tnx_make(i);
            tn_tensor *t = NULL;
            int64_t n = 1;
            if (tni_tensor_new(1, &n, NULL, TN_DTYPE_F32, TN_CPU, &t) == TN_OK)
                (void)tn_scope_own(t);
            rc = tn_scope_leave(scope);
        }
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM || tn_last_status() == TN_NOMEM);
        EXPECT_EQ_INT(tni_test_live, before);
    }
}
