/* SPDX-License-Identifier: MIT */
/* tests/core/test_peer.c: what tenon/tensor.h promises about a tensor's object in another language,
 * and about numbers that become tensors. */
#include "harness/test.h"

#include "tenon/ops.h"
#include "tenon/tensor.h"

#include <pthread.h>

static tn_tensor *make(void)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tn_tensor_from_scalar(tn_float(1.5), TN_DTYPE_F32, &t));
    return t;
}

static int released;
static void *last;
static void on_release(void *peer)
{
    released++;
    last = peer;
}

TEST(a_tensor_without_a_peer_says_so)
{
    tn_tensor *t = make();
    EXPECT(tn_tensor_peer(t) == NULL);
    EXPECT(tn_tensor_peer(NULL) == NULL);
    tn_tensor_set_peer(NULL, &released, NULL);
    tn_tensor_unref(t);
}

TEST(a_peer_that_owns_the_tensor_is_only_remembered)
{
    released = 0;
    tn_tensor *t = make();
    tn_tensor_set_peer(t, &released, NULL);
    EXPECT(tn_tensor_peer(t) == &released);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(released, 0);
}

TEST(a_peer_that_the_tensor_owns_is_released_with_the_last_reference)
{
    released = 0;
    tn_tensor *t = make();
    tn_tensor_set_peer(t, &last, on_release);
    tn_tensor_ref(t);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(released, 0);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(released, 1);
    EXPECT(last == &last);
}

TEST(a_peer_can_be_taken_back)
{
    released = 0;
    tn_tensor *t = make();
    tn_tensor_set_peer(t, &last, on_release);
    tn_tensor_set_peer(t, &last, NULL);
    EXPECT(tn_tensor_peer(t) == &last);
    tn_tensor_set_peer(t, NULL, NULL);
    EXPECT(tn_tensor_peer(t) == NULL);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(released, 0);
}

TEST(results_and_views_have_no_peer)
{
    tn_tensor *t = make(), *view = NULL, *sum = NULL;
    tn_tensor_set_peer(t, &last, NULL);
    ASSERT_OK(tn_alias(t, &view));
    ASSERT_OK(tn_add(t, t, tn_int(1), &sum));
    EXPECT(tn_tensor_peer(view) == NULL && tn_tensor_peer(sum) == NULL);
    tn_tensor_unref(sum);
    tn_tensor_unref(view);
    tn_tensor_unref(t);
}

static void *drop(void *t)
{
    tn_tensor_unref(t);
    return NULL;
}

TEST(the_thread_that_drops_the_last_reference_releases)
{
    released = 0;
    tn_tensor *t = make();
    tn_tensor_set_peer(t, &last, on_release);
    pthread_t thread;
    ASSERT_EQ_INT(pthread_create(&thread, NULL, drop, t), 0);
    pthread_join(thread, NULL);
    EXPECT_EQ_INT(released, 1);
}

/* ---- numbers ---- */

TEST(a_number_takes_part_by_its_kind_alone)
{
    const struct {
        tn_scalar number;
        tn_dtype beside, want;
    } cases[] = {
        {tn_float(0.1), TN_DTYPE_F16, TN_DTYPE_F16},
        {tn_float(0.1), TN_DTYPE_F64, TN_DTYPE_F64},
        {tn_float(0.1), TN_DTYPE_I64, TN_DTYPE_F32},
        {tn_int(2), TN_DTYPE_U8, TN_DTYPE_U8},
        {tn_int(2), TN_DTYPE_BOOL, TN_DTYPE_I64},
        {tn_bool(true), TN_DTYPE_I8, TN_DTYPE_I8},
        {tn_complex(0, 1), TN_DTYPE_F64, TN_DTYPE_C128},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tn_tensor *number = NULL, *x = NULL, *sum = NULL;
        tn_tensor_opts opts = tn_opts(cases[i].beside, TN_CPU);
        ASSERT_OK(tn_tensor_from_number(cases[i].number, &number));
        ASSERT_OK(tn_ones((int64_t[]){3}, 1, &opts, &x));
        ASSERT_OK(tn_add(x, number, tn_int(1), &sum));
        EXPECT_EQ_INT(tn_tensor_dtype(sum), cases[i].want);
        tn_tensor_unref(sum);
        tn_tensor_unref(x);
        tn_tensor_unref(number);
    }
}

TEST(a_number_keeps_all_its_digits)
{
    tn_tensor *number = NULL, *x = NULL, *sum = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_tensor_from_number(tn_float(0.1), &number));
    ASSERT_OK(tn_zeros((int64_t[]){3}, 1, &opts, &x));
    ASSERT_OK(tn_add(x, number, tn_int(1), &sum));
    EXPECT(((double *)tn_tensor_data(sum))[2] == 0.1);
    tn_tensor_unref(sum);
    ASSERT_OK(tn_mul(number, number, &sum));
    EXPECT_EQ_INT(tn_tensor_ndim(sum), 0);
    tn_tensor_unref(sum);
    tn_tensor_unref(x);
    tn_tensor_unref(number);
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_tensor_from_number(tn_int(1), NULL));
}

TEST(a_number_that_is_no_number_of_the_library_is_refused)
{
    tn_tensor *t = NULL;
    EXPECT_FAIL(TN_TYPE, "is not a dtype", tn_tensor_from_number((tn_scalar){.kind = 7}, &t));
}

TEST(making_a_number_survives_every_failed_allocation)
{
    tn_status rc = TN_INTERNAL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *t = NULL;
        rc = tn_tensor_from_number(tn_float(2.5), &t);
        EXPECT(rc == TN_OK || (rc == TN_NOMEM && t == NULL));
        tn_tensor_unref(t);
    }
}
