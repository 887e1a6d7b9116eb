/* SPDX-License-Identifier: MIT */
/* tests/harness/test.h: the test harness.
 *
 *   TEST(empty_keeps_rank_and_sizes)        a sentence that states the promise
 *   {
 *       tn_tensor *t = NULL;
 *       ASSERT_OK(tn_empty(…, &t));         prints the error and ends the test
 *       EXPECT_EQ_INT(tn_tensor_ndim(t), 2);
 *       EXPECT_FAIL(TN_INVALID, "too large", tn_empty(…, &u));
 *   }
 *
 * A failed EXPECT is printed and the test goes on; a failed ASSERT ends it. Both may be used on
 * threads that the test starts. A program of tests takes substrings of names to run, or --list.
 * Each test has TEST_TIMEOUT seconds (60; more under the sanitizers), after which the program ends.
 * The last line is "N passed, N failed", with ", N skipped" when there are any.
 *
 * The first half needs the public library alone; the second, on allocations, needs the static one.
 */
#ifndef TNI_HARNESS_TEST_H
#define TNI_HARNESS_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tenon/base.h"

#define TEST(name)                                                                  \
    static void test_##name(void);                                                  \
    __attribute__((constructor)) static void register_##name(void)                  \
    {                                                                               \
        static test_case the_case = {#name, __FILE__, __LINE__, test_##name, NULL}; \
        test_register(&the_case);                                                   \
    }                                                                               \
    static void test_##name(void)

#define EXPECT(condition) ((void)test_true((condition), #condition, __FILE__, __LINE__))
#define EXPECT_EQ_INT(actual, wanted) \
    ((void)test_eq_int((int64_t)(actual), (int64_t)(wanted), #actual, #wanted, __FILE__, __LINE__))
#define EXPECT_STR(actual, wanted) ((void)test_str((actual), (wanted), #actual, __FILE__, __LINE__))
#define EXPECT_CONTAINS(haystack, needle) \
    ((void)test_contains((haystack), (needle), #haystack, __FILE__, __LINE__))
/* Within @p tolerance of each other, or both NaN, or the same infinity. */
#define EXPECT_NEAR(actual, wanted, tolerance)                                                   \
    ((void)test_near((double)(actual), (double)(wanted), (double)(tolerance), #actual, __FILE__, \
                     __LINE__))
#define EXPECT_OK(expression) ((void)test_ok((expression), #expression, __FILE__, __LINE__))
/* It returns @p status, and this thread's record has that status and a message with @p substring.
 */
#define EXPECT_FAIL(status, substring, expression)                                             \
    do {                                                                                       \
        tn_clear_error();                                                                      \
        (void)test_fail((status), (substring), (expression), #expression, __FILE__, __LINE__); \
    } while (0)
/* The statement is done in time: by the clock, or, where others have the processors, by the time
 * that it had one. When it hangs, the program ends with a message. */
#define EXPECT_WITHIN_SECONDS(seconds, ...)                                          \
    do {                                                                             \
        test_time test_start_ = test_begin_time();                                   \
        __VA_ARGS__;                                                                 \
        (void)test_within(test_start_, (seconds), #__VA_ARGS__, __FILE__, __LINE__); \
    } while (0)

#define ASSERT(condition) \
    (test_true((condition), #condition, __FILE__, __LINE__) ? (void)0 : test_end())
#define ASSERT_EQ_INT(actual, wanted)                                                        \
    (test_eq_int((int64_t)(actual), (int64_t)(wanted), #actual, #wanted, __FILE__, __LINE__) \
         ? (void)0                                                                           \
         : test_end())
#define ASSERT_OK(expression) \
    (test_ok((expression), #expression, __FILE__, __LINE__) ? (void)0 : test_end())
/* End this test, neither passed nor failed; the reason is printed. Not on a thread of the test. */
#define SKIP(...) test_skip(__VA_ARGS__)

/* Said with every failure from here to the end of the test, for tests that loop over cases. */
void test_note(const char *format, ...) TN_PRINTF(1, 2);

/* Start @p n threads that run fn(i, arg), i from 0, all at the same moment, and wait for them. */
void run_threads(int n, void (*fn)(int i, void *arg), void *arg);
/* Run fn(arg) in a child made by fork() and wait. Its return value is the child's exit status; 128
 * + the signal when it was killed, which SIGALRM does when it took much longer than @p seconds,
 * what a quiet machine needs at most. Failed expectations in the child are printed, and fail the
 * test here. */
int run_in_child(int (*fn)(void *arg), void *arg, unsigned seconds);
/* The same, and whatever the child comes to, the test goes on: for what may have to be tried again.
 */
int try_in_child(int (*fn)(void *arg), void *arg, unsigned seconds);
/* The same numbers in every run, unless TEST_SEED says otherwise. Not for several threads. */
uint64_t test_random(void);
/* Built with the address or thread sanitizer. */
bool test_sanitized(void);
bool test_thread_sanitized(void);

/* --- allocations: needs the static library ------------------------------------------------------
 */

/* Blocks that the library holds, counted from the first use in a test to the test's end.
 * Differences alone mean something: see tni_alloc_live. */
#define tni_test_live (test_live())

/* Run the body with allocation 0 failing, then 1, 2, … until it needed none that failed:
 *
 *   WITH_EACH_ALLOCATION_FAILING(rc) {
 *       rc = tn_empty(…, &t);
 *       if (rc != TN_OK)
 *           EXPECT(rc == TN_NOMEM && t == NULL && tni_test_live == before);
 *   }
 *
 * The body must assign rc. Of the allocations behind the first 512 some are left out. The last run
 * has no failing allocation and must give TN_OK. */
#define WITH_EACH_ALLOCATION_FAILING(rc)                        \
    for (test_each_alloc test_each_ = {-1, __FILE__, __LINE__}; \
         test_next_alloc(&test_each_, &(rc));)

/* --- what the macros call -----------------------------------------------------------------------
 */

typedef struct test_case {
    const char *name;
    const char *file;
    int line;
    void (*run)(void);
    struct test_case *next;
} test_case;

typedef struct test_time {
    double wall, cpu;
} test_time;

typedef struct test_each_alloc {
    int64_t failing;
    const char *file;
    int line;
} test_each_alloc;

void test_register(test_case *test);
/* These print what is wrong and return false, or return true. */
bool test_true(bool condition, const char *text, const char *file, int line);
bool test_eq_int(int64_t actual, int64_t wanted, const char *actual_text, const char *wanted_text,
                 const char *file, int line);
bool test_str(const char *actual, const char *wanted, const char *text, const char *file, int line);
bool test_contains(const char *haystack, const char *needle, const char *text, const char *file,
                   int line);
bool test_near(double actual, double wanted, double tolerance, const char *text, const char *file,
               int line);
bool test_ok(tn_status status, const char *text, const char *file, int line);
bool test_fail(tn_status wanted, const char *substring, tn_status status, const char *text,
               const char *file, int line);
bool test_within(test_time start, double seconds, const char *text, const char *file, int line);
bool test_wrong(const char *file, int line, const char *format, ...) TN_PRINTF(3, 4);
test_time test_begin_time(void);
__attribute__((noreturn)) void test_end(void);
__attribute__((noreturn)) void test_skip(const char *format, ...) TN_PRINTF(1, 2);
/* Run @p fn when the present test ends, however it ends. One function at a time. */
void test_at_end(void (*fn)(void));
int64_t test_live(void);
bool test_next_alloc(test_each_alloc *loop, tn_status *rc);

#endif
