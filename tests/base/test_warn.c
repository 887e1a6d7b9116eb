/* SPDX-License-Identifier: MIT */
/* tests/base/test_warn.c: what tn_set_warnings promises: one listener, told on the thread of the
 * call; its refusal is the call's. */
#include <pthread.h>
#include <string.h>
#include "base/warn.h"
#include "harness/test.h"

typedef struct heard {
    int n;
    char text[1200];
    pthread_t thread;
} heard;

static tn_status hear(void *ctx, const char *text)
{
    heard *h = ctx;
    h->n++;
    h->thread = pthread_self();
    strcpy(h->text, text);
    return TN_OK;
}

static tn_status refuse(void *ctx, const char *text)
{
    (void)ctx;
    return tn_fail(TN_VALUE, "not with me: %s", text);
}

static tn_status told_once(void)
{
    TNI_WARN_ONCE("once %d", 1);
    return TN_OK;
}

TEST(without_a_listener_a_warning_is_nothing)
{
    EXPECT_OK(tni_warn("nobody hears %d", 1));
    EXPECT(!tni_somebody_listens());
}

TEST(a_listener_is_told_on_the_thread_of_the_call)
{
    heard h = {0};
    const tn_warnings to = {.size = sizeof to, .tell = hear, .ctx = &h};
    ASSERT_OK(tn_set_warnings(&to));
    EXPECT_OK(tni_warn("shape %s is %d", "[2]", 3));
    ASSERT_OK(tn_set_warnings(NULL));
    EXPECT_OK(tni_warn("after it"));
    EXPECT_EQ_INT(h.n, 1);
    EXPECT_STR(h.text, "shape [2] is 3");
    EXPECT(pthread_equal(h.thread, pthread_self()));
}

TEST(what_is_said_once_waits_for_somebody_who_listens)
{
    heard h = {0};
    const tn_warnings to = {.size = sizeof to, .tell = hear, .ctx = &h};
    EXPECT_OK(told_once());
    ASSERT_OK(tn_set_warnings(&to));
    EXPECT_OK(told_once());
    EXPECT_OK(told_once());
    ASSERT_OK(tn_set_warnings(NULL));
    EXPECT_EQ_INT(h.n, 1);
}

TEST(a_listener_that_refuses_makes_the_call_fail)
{
    const tn_warnings to = {.size = sizeof to, .tell = refuse};
    ASSERT_OK(tn_set_warnings(&to));
    EXPECT_FAIL(TN_VALUE, "not with me: so", tni_warn("so"));
    ASSERT_OK(tn_set_warnings(NULL));
}

TEST(a_long_warning_is_cut)
{
    heard h = {0};
    const tn_warnings to = {.size = sizeof to, .tell = hear, .ctx = &h};
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    ASSERT_OK(tn_set_warnings(&to));
    EXPECT_OK(tni_warn("%s", text));
    ASSERT_OK(tn_set_warnings(NULL));
    EXPECT_EQ_INT(strlen(h.text), 1023);
}

TEST(a_listener_without_a_function_or_a_size_is_refused)
{
    const tn_warnings none = {.size = sizeof none}, small = {.size = 8, .tell = hear};
    EXPECT_FAIL(TN_INVALID, "size and tell", tn_set_warnings(&none));
    EXPECT_FAIL(TN_INVALID, "size and tell", tn_set_warnings(&small));
    EXPECT(!tni_somebody_listens());
}
