/* SPDX-License-Identifier: MIT */
/* What tenon/base.h and base/status.h promise about failing. */
#include "harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/status.h"

static tn_status try_it(tn_status status)
{
    TN_TRY(status);
    return TN_OK;
}

static tn_status check_it(int n)
{
    TN_CHECK(n == 4, TN_VALUE, "n is %d, wanted 4", n);
    return TN_OK;
}

static tn_status require_it(bool holds)
{
    TNI_REQUIRE(holds);
    return TN_OK;
}

TEST(every_status_has_a_name_and_an_exception)
{
    EXPECT_STR(tn_status_name(TN_OK), "OK");
    EXPECT_STR(tn_status_name(TN_RECURSION), "RECURSION");
    EXPECT_STR(tn_status_exception(TN_OK), "");
    EXPECT_STR(tn_status_exception(TN_INDEX), "IndexError");
    EXPECT_STR(tn_status_exception(TN_UNSUPPORTED), "NotImplementedError");
    EXPECT_STR(tn_status_name((tn_status)77), "UNKNOWN");
    EXPECT_STR(tn_status_name((tn_status)-1), "UNKNOWN");
    for (int i = 0; i <= TN_LINALG; i++)
        EXPECT(strcmp(tn_status_name((tn_status)i), "UNKNOWN") != 0);
}

TEST(a_thread_without_a_failure_has_an_empty_record)
{
    EXPECT_STR(tn_last_error(), "");
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    EXPECT_STR(tn_last_error_op(), "");
    EXPECT_STR(tn_last_error_where(), "");
}

TEST(failing_fills_the_record_and_returns_the_status)
{
    EXPECT_FAIL(TN_VALUE, "n is 3, wanted 4", check_it(3));
    EXPECT_STR(tn_last_error(), "n is 3, wanted 4");
    EXPECT_CONTAINS(tn_last_error_where(), "test_status.c:");
    EXPECT_FAIL(TN_TYPE, "seven 7", tn_fail(TN_TYPE, "seven %d", 7));
    EXPECT_STR(tn_last_error_where(), "");
}

TEST(success_does_not_touch_the_record)
{
    EXPECT_FAIL(TN_VALUE, "n is 3", check_it(3));
    EXPECT_EQ_INT(check_it(4), TN_OK);
    EXPECT_EQ_INT(try_it(TN_OK), TN_OK);
    EXPECT_STR(tn_last_error(), "n is 3, wanted 4");
    EXPECT_EQ_INT(tn_last_status(), TN_VALUE);
}

TEST(passing_a_status_on_does_not_touch_the_record)
{
    EXPECT_FAIL(TN_VALUE, "n is 3", check_it(3));
    EXPECT_EQ_INT(try_it(TN_INDEX), TN_INDEX);
    EXPECT_EQ_INT(tn_last_status(), TN_VALUE);
}

TEST(clearing_forgets_the_failure)
{
    EXPECT_FAIL(TN_VALUE, "n is 3", check_it(3));
    tn_clear_error();
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    EXPECT_STR(tn_last_error(), "");
    EXPECT_STR(tn_last_error_where(), "");
}

TEST(a_broken_invariant_is_reported_and_does_not_abort)
{
    EXPECT_EQ_INT(require_it(true), TN_OK);
    EXPECT_FAIL(TN_INTERNAL, "internal error: holds does not hold", require_it(false));
}

TEST(failing_never_succeeds)
{
    EXPECT_FAIL(TN_INTERNAL, "no failure", tn_fail(TN_OK, "no failure"));
    EXPECT_FAIL(TN_INTERNAL, "no status", tn_fail((tn_status)77, "no status"));
}

TEST(where_names_the_file_below_src_and_not_the_machine)
{
    EXPECT_FAIL(TN_VALUE, "x", tni_fail(TN_VALUE, "/home/me/src/tenon/src/base/pool.c:12", "x"));
    EXPECT_STR(tn_last_error_where(), "src/base/pool.c:12");
    EXPECT_FAIL(TN_VALUE, "x", tni_fail(TN_VALUE, "src/base/pool.c:12", "x"));
    EXPECT_STR(tn_last_error_where(), "src/base/pool.c:12");
    EXPECT_FAIL(TN_VALUE, "x", tni_fail(TN_VALUE, "/build/gen/op_wrap.c:7", "x"));
    EXPECT_STR(tn_last_error_where(), "op_wrap.c:7");
    EXPECT_FAIL(TN_VALUE, "x", tni_fail(TN_VALUE, "mysrc/a.c:7", "x"));
    EXPECT_STR(tn_last_error_where(), "a.c:7");
}

static const char *running_op(void)
{
    return "aten::mm";
}

TEST(the_record_names_the_operator_that_runs)
{
    tni_set_current_op_fn(running_op);
    EXPECT_FAIL(TN_VALUE, "n is", check_it(1));
    EXPECT_STR(tn_last_error_op(), "aten::mm");
    tni_set_current_op_fn(NULL);
    EXPECT_STR(tn_last_error_op(), "aten::mm");
    EXPECT_FAIL(TN_VALUE, "n is", check_it(1));
    EXPECT_STR(tn_last_error_op(), "");
}

/* A text of n characters; free() it. */
static char *text_of(size_t n)
{
    char *text = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        text[i] = (char)('a' + i % 26);
    text[n] = '\0';
    return text;
}

TEST(a_long_message_is_kept_whole)
{
    static const size_t sizes[] = {1534, 1535, 1536, 1537, 20000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        test_note("%zu characters", sizes[i]);
        char *text = text_of(sizes[i]);
        EXPECT_EQ_INT(tn_fail(TN_UNSUPPORTED, "%s", text), TN_UNSUPPORTED);
        EXPECT(strcmp(tn_last_error(), text) == 0);
        free(text);
    }
    EXPECT_FAIL(TN_VALUE, "short again", tn_fail(TN_VALUE, "short again"));
    EXPECT_STR(tn_last_error(), "short again");
}

TEST(a_message_may_quote_the_message_before_it)
{
    EXPECT_FAIL(TN_VALUE, "inner", tn_fail(TN_VALUE, "inner"));
    (void)tn_fail(TN_VALUE, "outer: %s", tn_last_error());
    EXPECT_STR(tn_last_error(), "outer: inner");
    char *text = text_of(20000);
    (void)tn_fail(TN_VALUE, "%s", text);
    (void)tn_fail(TN_VALUE, "outer: %s", tn_last_error());
    EXPECT(strncmp(tn_last_error(), "outer: ", 7) == 0);
    EXPECT(strcmp(tn_last_error() + 7, text) == 0);
    free(text);
}

TEST(reporting_does_not_count_as_an_allocation)
{
    char *text = text_of(20000);
    int64_t before = tni_test_live;
    tni_alloc_watch(0, true);
    EXPECT_EQ_INT(tn_fail(TN_NOMEM, "%s", text), TN_NOMEM);
    EXPECT_EQ_INT(tni_alloc_tried(), 0);
    EXPECT(tni_test_live == before);
    EXPECT(strcmp(tn_last_error(), text) == 0);
    free(text);
}

TEST(a_failure_moves_to_another_record_whole)
{
    static const size_t sizes[] = {10, 20000};
    tni_set_current_op_fn(running_op);
    for (size_t i = 0; i < 2; i++) {
        test_note("%zu characters", sizes[i]);
        char *text = text_of(sizes[i]);
        tni_error error;
        (void)tni_fail(TN_INDEX, "src/a.c:1", "%s", text);
        tni_error_take(&error);
        EXPECT_EQ_INT(tn_last_status(), TN_OK);
        EXPECT_STR(tn_last_error(), "");
        EXPECT_EQ_INT(error.code, TN_INDEX);
        (void)tn_fail(TN_VALUE, "something else");
        EXPECT_EQ_INT(tni_error_raise(&error), TN_INDEX);
        EXPECT_EQ_INT(tn_last_status(), TN_INDEX);
        EXPECT(strcmp(tn_last_error(), text) == 0);
        EXPECT_STR(tn_last_error_where(), "src/a.c:1");
        EXPECT_STR(tn_last_error_op(), "aten::mm");
        free(text);
    }
    tni_set_current_op_fn(NULL);
}

TEST(an_error_that_was_taken_can_be_dropped)
{
    char *text = text_of(20000);
    tni_error error;
    (void)tn_fail(TN_INDEX, "%s", text);
    tni_error_take(&error);
    tni_error_drop(&error); /* a leak here is found by the address sanitizer */
    EXPECT(error.long_message == NULL);
    free(text);
}

TEST(raising_no_error_leaves_the_record_alone)
{
    tni_error none = {.code = TN_OK};
    (void)tn_fail(TN_VALUE, "stays");
    EXPECT_EQ_INT(tni_error_raise(&none), TN_OK);
    EXPECT_STR(tn_last_error(), "stays");
    tn_clear_error();
    tni_error_take(&none);
    EXPECT_EQ_INT(none.code, TN_OK);
}

/* More threads than there are static records. */
enum { THREADS = 24 };

static void fail_on_a_thread(int i, void *arg)
{
    (void)arg;
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    for (int round = 0; round < 200; round++) {
        size_t n = round % 2 ? 50 : 3000;
        char *text = text_of(n);
        (void)tn_fail(TN_VALUE, "%d:%d:%s", i, round, text);
        char wanted[4000];
        snprintf(wanted, sizeof wanted, "%d:%d:%s", i, round, text);
        EXPECT_STR(tn_last_error(), wanted);
        free(text);
    }
    /* The thread ends with a long message in its record: freed with the thread. */
    char *text = text_of(5000);
    (void)tn_fail(TN_VALUE, "%s", text);
    free(text);
}

TEST(each_thread_has_its_own_record)
{
    (void)tn_fail(TN_INDEX, "of the main thread");
    run_threads(THREADS, fail_on_a_thread, NULL);
    run_threads(THREADS, fail_on_a_thread, NULL);
    EXPECT_STR(tn_last_error(), "of the main thread");
}

TEST(the_library_says_what_it_is)
{
    EXPECT_STR(tn_version(), TN_VERSION_STRING);
    EXPECT_CONTAINS(tn_build_info(), "tenon " TN_VERSION_STRING "\n");
    EXPECT_CONTAINS(tn_build_info(), "compiler: ");
    const char *info = tn_build_info();
    EXPECT(info[strlen(info) - 1] == '\n');
}
