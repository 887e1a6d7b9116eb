/* SPDX-License-Identifier: MIT */
/* What base/pool.h promises. */
#include "harness/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/env.h"
#include "base/pool.h"

enum { N = 10000 };

typedef struct marks {
    _Atomic int hits[N];
    int64_t n, grain;
    _Atomic int chunks, bad_chunks, bad_indices, outside;
    _Atomic uint32_t threads_seen;
} marks;

static tn_status mark(int64_t begin, int64_t end, void *arg)
{
    marks *m = arg;
    int index = tni_pool_thread_index();
    atomic_fetch_add(&m->chunks, 1);
    if (begin % m->grain || end != (m->n - begin < m->grain ? m->n : begin + m->grain))
        atomic_fetch_add(&m->bad_chunks, 1);
    if (index < 0 || index >= tn_num_threads())
        atomic_fetch_add(&m->bad_indices, 1);
    else
        atomic_fetch_or(&m->threads_seen, UINT32_C(1) << index);
    if (!tni_pool_inside())
        atomic_fetch_add(&m->outside, 1);
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add(&m->hits[i], 1);
    return TN_OK;
}

/* Run a loop over @p n elements that marks each. */
static tn_status mark_all(marks *m, int64_t n, int64_t grain)
{
    memset(m, 0, sizeof *m);
    m->n = n;
    m->grain = grain;
    return tni_pool_for(n, grain, mark, m);
}

static void expect_all_marked(const marks *m, int64_t n, int64_t grain)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < N; i++)
        wrong += m->hits[i] != (i < n);
    EXPECT_EQ_INT(wrong, 0);
    EXPECT_EQ_INT(m->chunks, (n + grain - 1) / grain);
    EXPECT_EQ_INT(m->bad_chunks, 0);
    EXPECT_EQ_INT(m->bad_indices, 0);
    EXPECT_EQ_INT(m->outside, 0);
}

static int default_is(void *arg)
{
    const char *const *text_and_number = arg;
    if (text_and_number[0])
        setenv("TENON_NUM_THREADS", text_and_number[0], 1);
    else
        unsetenv("TENON_NUM_THREADS");
    EXPECT_EQ_INT(tn_num_threads(),
                  text_and_number[1] ? atoi(text_and_number[1]) : tni_cpu_count());
    unsetenv("TENON_NUM_THREADS"); /* asked for once */
    EXPECT_EQ_INT(tn_num_threads(),
                  text_and_number[1] ? atoi(text_and_number[1]) : tni_cpu_count());
    return 0;
}

/* Stands first: the variable is read when the number is first asked for. */
TEST(the_default_number_of_threads_comes_from_the_environment)
{
    static const char *cases[][2] = {{"3", "3"},   {"1", "1"},  {NULL, NULL}, {"0", NULL},
                                     {"-2", NULL}, {"x", NULL}, {"", NULL},   {"9999999", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_note("TENON_NUM_THREADS=%s", cases[i][0] ? cases[i][0] : "(unset)");
        EXPECT_EQ_INT(run_in_child(default_is, cases[i], 10), 0);
    }
}

TEST(the_number_of_threads_can_be_changed)
{
    EXPECT(tn_num_threads() >= 1);
    EXPECT_OK(tn_set_num_threads(3));
    EXPECT_EQ_INT(tn_num_threads(), 3);
    EXPECT_FAIL(TN_VALUE, "n is 0", tn_set_num_threads(0));
    EXPECT_FAIL(TN_VALUE, "n is -4", tn_set_num_threads(-4));
    EXPECT_FAIL(TN_VALUE, "n is 1000000", tn_set_num_threads(1000000));
    EXPECT_EQ_INT(tn_num_threads(), 3);
}

TEST(every_element_is_visited_once_in_the_promised_chunks)
{
    static const int64_t sizes[] = {0, 1, 2, 99, 100, 101, 5000, N};
    static const int64_t grains[] = {1, 7, 100, N, INT64_MAX};
    static marks m;
    for (int threads = 1; threads <= 5; threads++) {
        ASSERT_OK(tn_set_num_threads(threads));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            for (size_t k = 0; k < sizeof grains / sizeof *grains; k++) {
                int64_t n = sizes[i], grain = grains[k];
                test_note("%d threads, n %lld, grain %lld", threads, (long long)n,
                          (long long)grain);
                ASSERT_OK(mark_all(&m, n, grain));
                expect_all_marked(&m, n, grain == INT64_MAX ? N : grain);
                EXPECT(!tni_pool_inside());
                EXPECT_EQ_INT(tni_pool_thread_index(), 0);
            }
        }
    }
}

TEST(a_negative_size_does_nothing_and_a_grain_below_one_is_refused)
{
    static marks m;
    EXPECT_OK(tni_pool_for(-5, 1, mark, &m));
    EXPECT_EQ_INT(m.chunks, 0);
    EXPECT_FAIL(TN_INTERNAL, "grain >= 1", tni_pool_for(5, 0, mark, &m));
}

/* Wait until `wanted` threads are in a chunk: fails to end unless they really run at once. */
typedef struct meeting {
    _Atomic int present;
    int wanted;
} meeting;

static tn_status meet(int64_t begin, int64_t end, void *arg)
{
    (void)begin, (void)end;
    meeting *m = arg;
    atomic_fetch_add(&m->present, 1);
    for (int i = 0; i < 200000 && atomic_load(&m->present) < m->wanted; i++)
        usleep(1000);
    TN_CHECK(atomic_load(&m->present) >= m->wanted, TN_INVALID, "only %d came", m->present);
    return TN_OK;
}

TEST(as_many_threads_as_configured_work_at_once)
{
    for (int threads = 1; threads <= 6; threads++) {
        ASSERT_OK(tn_set_num_threads(threads));
        meeting m = {.wanted = threads};
        EXPECT_OK(tni_pool_for(threads, 1, meet, &m));
    }
}

static tn_status loop_inside(int64_t begin, int64_t end, void *arg)
{
    (void)begin, (void)end;
    pthread_t self = pthread_self();
    int index = tni_pool_thread_index();
    _Atomic int *total = arg;
    EXPECT(tni_pool_inside());
    for (int round = 0; round < 3; round++) {
        marks *m = calloc(1, sizeof *m);
        EXPECT_OK(mark_all(m, 100, 10));
        expect_all_marked(m, 100, 10);
        EXPECT_EQ_INT(m->threads_seen, 1); /* index 0 alone: it ran here */
        free(m);
        atomic_fetch_add(total, 1);
    }
    EXPECT(pthread_equal(self, pthread_self()));
    EXPECT(tni_pool_inside());
    EXPECT_EQ_INT(tni_pool_thread_index(), index);
    return TN_OK;
}

TEST(a_loop_inside_a_loop_runs_serially)
{
    ASSERT_OK(tn_set_num_threads(4));
    _Atomic int total = 0;
    EXPECT_OK(tni_pool_for(8, 1, loop_inside, &total));
    EXPECT_EQ_INT(total, 24);
    EXPECT(!tni_pool_inside());
}

static tn_status slow_chunk(int64_t begin, int64_t end, void *arg)
{
    _Atomic uint32_t *seen = arg;
    (void)begin, (void)end;
    atomic_fetch_or(seen, UINT32_C(1) << tni_pool_thread_index());
    usleep(500); /* time for a worker to come, were there one */
    return TN_OK;
}

static tn_status slow_loop(int64_t begin, int64_t end, void *arg)
{
    (void)begin, (void)end;
    return tni_pool_for(8, 1, slow_chunk, arg);
}

TEST(a_loop_inside_a_loop_of_one_chunk_runs_serially_too)
{
    ASSERT_OK(tn_set_num_threads(4));
    _Atomic uint32_t seen = 0;
    EXPECT_OK(tni_pool_for(1, 1, slow_loop, &seen));
    EXPECT_EQ_INT(seen, 1);
}

/* --- failing ------------------------------------------------------------------------------------
 */

typedef struct failing {
    int64_t first, second; /* elements whose chunk fails */
    _Atomic int ran;
    const char *text;
} failing;

static tn_status fail_there(int64_t begin, int64_t end, void *arg)
{
    failing *f = arg;
    atomic_fetch_add(&f->ran, 1);
    for (int64_t i = begin; i < end; i++) {
        if (i == f->first)
            usleep(500); /* the later one is likely to fail earlier */
        TN_CHECK(i != f->first && i != f->second, TN_INDEX, "element %lld%s", (long long)i,
                 f->text);
    }
    return TN_OK;
}

TEST(the_error_of_a_chunk_moves_to_the_caller)
{
    char *text = malloc(5001);
    memset(text, 'e', 5000);
    text[5000] = '\0';
    for (int threads = 1; threads <= 4; threads++) {
        ASSERT_OK(tn_set_num_threads(threads));
        for (int64_t at = 0; at < 100; at += 9) {
            failing f = {.first = at, .second = -1, .text = at % 2 ? text : ""};
            char wanted[40];
            snprintf(wanted, sizeof wanted, "element %lld", (long long)at);
            EXPECT_FAIL(TN_INDEX, wanted, tni_pool_for(100, 1, fail_there, &f));
            EXPECT_EQ_INT(strlen(tn_last_error()), strlen(wanted) + strlen(f.text));
            EXPECT_CONTAINS(tn_last_error_where(), "test_pool.c");
        }
    }
    free(text);
}

/* Two chunks that both run when the first of them fails; which one that is, `late` says. */
typedef struct race {
    _Atomic int present;
    int64_t late;
    const char *text;
} race;

static tn_status fail_both(int64_t begin, int64_t end, void *arg)
{
    (void)end;
    race *r = arg;
    atomic_fetch_add(&r->present, 1);
    while (tn_num_threads() > 1 && atomic_load(&r->present) < 2)
        usleep(10);
    if (begin == r->late)
        usleep(2000);
    TN_FAIL(TN_INDEX, "chunk %lld%s", (long long)begin, r->text);
}

TEST(the_lowest_failing_chunk_is_reported_as_in_a_serial_loop)
{
    char text[3000]; /* does not fit the record: one of the two must be freed */
    memset(text, '!', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int threads = 1; threads <= 2; threads++) {
        ASSERT_OK(tn_set_num_threads(threads));
        for (int round = 0; round < 20; round++) {
            race r = {.late = round % 2, .text = text};
            EXPECT_FAIL(TN_INDEX, "chunk 0!!!", tni_pool_for(2, 1, fail_both, &r));
        }
    }
}

TEST(a_failing_chunk_stops_further_chunks)
{
    ASSERT_OK(tn_set_num_threads(4));
    failing f = {.first = 0, .second = -1, .text = ""};
    EXPECT_FAIL(TN_INDEX, "element 0", tni_pool_for(INT64_C(1) << 40, 1, fail_there, &f));
    ASSERT_OK(tn_set_num_threads(1));
    f = (failing){.first = 3, .second = -1, .text = ""};
    EXPECT_FAIL(TN_INDEX, "element 3", tni_pool_for(1000, 1, fail_there, &f));
    EXPECT_EQ_INT(f.ran, 4);
}

static tn_status fail_silently(int64_t begin, int64_t end, void *arg)
{
    (void)end, (void)arg;
    return begin == 5 ? TN_DEVICE : TN_OK;
}

TEST(a_chunk_that_fails_without_a_message_gets_one)
{
    for (int threads = 1; threads <= 3; threads++) {
        ASSERT_OK(tn_set_num_threads(threads));
        (void)tn_fail(TN_VALUE, "an older failure");
        EXPECT_EQ_INT(tni_pool_for(10, 1, fail_silently, NULL), TN_DEVICE);
        EXPECT_EQ_INT(tn_last_status(), TN_DEVICE);
        EXPECT_CONTAINS(tn_last_error(), "DEVICE");
    }
}

TEST(a_loop_that_succeeds_leaves_the_callers_record_alone)
{
    static marks m;
    ASSERT_OK(tn_set_num_threads(4));
    (void)tn_fail(TN_VALUE, "an older failure");
    EXPECT_OK(mark_all(&m, N, 10));
    EXPECT_STR(tn_last_error(), "an older failure");
}

/* --- several callers ----------------------------------------------------------------------------
 */

static void loop_often(int i, void *arg)
{
    (void)arg;
    marks *m = malloc(sizeof *m);
    for (int round = 0; round < 20; round++) {
        int64_t n = 1000 + i * 100, grain = 1 + round * 3;
        if (round % 5 == 4) {
            failing f = {.first = n / 2, .second = -1, .text = "?"};
            EXPECT_FAIL(TN_INDEX, "?", tni_pool_for(n, grain, fail_there, &f));
        }
        EXPECT_OK(mark_all(m, n, grain));
        for (int64_t k = 0; k < n; k++) {
            if (m->hits[k] != 1) {
                EXPECT(!"an element was not visited exactly once");
                break;
            }
        }
    }
    free(m);
}

TEST(several_threads_may_run_loops_at_once)
{
    ASSERT_OK(tn_set_num_threads(4));
    run_threads(6, loop_often, NULL);
}

typedef struct holder {
    _Atomic bool inside, let_go;
    pthread_t caller;
    _Atomic int elsewhere;
} holder;

static tn_status hold(int64_t begin, int64_t end, void *arg)
{
    (void)begin, (void)end;
    holder *h = arg;
    atomic_store(&h->inside, true);
    while (!atomic_load(&h->let_go))
        usleep(100);
    return TN_OK;
}

static tn_status note_thread(int64_t begin, int64_t end, void *arg)
{
    (void)begin, (void)end;
    holder *h = arg;
    if (!pthread_equal(pthread_self(), h->caller))
        atomic_fetch_add(&h->elsewhere, 1);
    return TN_OK;
}

static void hold_or_pass(int i, void *arg)
{
    holder *h = arg;
    if (i == 0) {
        EXPECT_OK(tni_pool_for(2, 1, hold, h));
        return;
    }
    while (!atomic_load(&h->inside))
        usleep(100);
    h->caller = pthread_self();
    EXPECT_OK(tni_pool_for(100, 1, note_thread, h)); /* does not wait for the other loop */
    EXPECT_EQ_INT(h->elsewhere, 0);
    atomic_store(&h->let_go, true);
}

TEST(a_second_caller_does_not_wait_for_the_first)
{
    ASSERT_OK(tn_set_num_threads(2));
    holder h = {0};
    EXPECT_WITHIN_SECONDS(20, run_threads(2, hold_or_pass, &h));
}

TEST(many_small_loops_in_a_row_are_right)
{
    ASSERT_OK(tn_set_num_threads(3));
    static marks m;
    int rounds = test_sanitized() ? 300 : 3000;
    for (int round = 0; round < rounds; round++) {
        if (round % 100 == 0)
            usleep(2000); /* let the workers fall asleep */
        ASSERT_OK(mark_all(&m, 64, 3));
        for (int i = 0; i < 64; i++)
            ASSERT(m.hits[i] == 1);
    }
}

/* The last element is slow, and taken by a worker where one comes in time. */
static tn_status end_slowly(int64_t begin, int64_t end, void *arg)
{
    const int64_t *n = arg;
    (void)begin;
    usleep(end == *n ? 3000 : 300);
    return TN_OK;
}

static void wait_for_slow_workers(int i, void *arg)
{
    (void)i;
    for (int round = 0; round < 100; round++)
        *(tn_status *)arg |= tni_pool_for(4, 1, end_slowly, &(int64_t){4});
}

TEST(a_caller_that_sleeps_while_a_worker_works_is_woken)
{
    ASSERT_OK(tn_set_num_threads(2));
    tn_status status = TN_OK;
    EXPECT_WITHIN_SECONDS(20, run_threads(1, wait_for_slow_workers, &status));
    EXPECT_OK(status);
}

static double cpu_seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

TEST(workers_without_work_sleep)
{
    ASSERT_OK(tn_set_num_threads(4));
    static marks m;
    ASSERT_OK(mark_all(&m, N, 10));
    /* They look for the next loop for a while, and longer where they get little of a processor. */
    double used = 1;
    for (int tries = 0; tries < 100 && used >= 0.02; tries++) {
        double before = cpu_seconds();
        usleep(300000);
        used = cpu_seconds() - before;
    }
    EXPECT(used < 0.02);
}

TEST(loops_allocate_nothing)
{
    ASSERT_OK(tn_set_num_threads(5));
    static marks m;
    int64_t before = tni_test_live;
    tni_alloc_watch(0, true);
    EXPECT_OK(mark_all(&m, N, 10));
    EXPECT_EQ_INT(tni_alloc_tried(), 0);
    EXPECT_EQ_INT(tni_test_live, before);
}

/* --- signals, fork, exit ------------------------------------------------------------------------
 */

static _Atomic int signals_on_workers;
static pthread_t signal_target;
static void on_usr1(int number)
{
    (void)number;
    if (!pthread_equal(pthread_self(), signal_target))
        atomic_fetch_add(&signals_on_workers, 1);
}

static tn_status block_and_signal(int64_t begin, int64_t end, void *arg)
{
    (void)begin, (void)end, (void)arg;
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    if (!pthread_equal(pthread_self(), signal_target))
        EXPECT(sigismember(&set, SIGUSR1) == 1 && sigismember(&set, SIGINT) == 1);
    else
        EXPECT(sigismember(&set, SIGUSR1) == 0);
    kill(getpid(), SIGUSR1);
    return TN_OK;
}

TEST(workers_take_no_signals)
{
    ASSERT_OK(tn_set_num_threads(4));
    signal_target = pthread_self();
    signal(SIGUSR1, on_usr1);
    EXPECT_OK(tni_pool_for(50, 1, block_and_signal, NULL));
    signal(SIGUSR1, SIG_DFL);
    EXPECT_EQ_INT(signals_on_workers, 0);
}

static int loop_in_the_child(void *arg)
{
    int depth = *(int *)arg;
    meeting meet_all = {.wanted = 4};
    static marks m;
    EXPECT_OK(mark_all(&m, N, 7));
    expect_all_marked(&m, N, 7);
    EXPECT_OK(tni_pool_for(4, 1, meet, &meet_all)); /* with workers of its own */
    if (depth > 0) {
        int next = depth - 1;
        EXPECT_EQ_INT(run_in_child(loop_in_the_child, &next, 20), 0);
    }
    return 0;
}

TEST(a_child_made_after_a_loop_runs_loops_of_its_own)
{
    if (test_thread_sanitized())
        SKIP("the thread sanitizer does not let a child start threads");
    ASSERT_OK(tn_set_num_threads(4));
    static marks m;
    ASSERT_OK(mark_all(&m, N, 7));
    int depth = 1;
    EXPECT_EQ_INT(run_in_child(loop_in_the_child, &depth, 20), 0);
    ASSERT_OK(mark_all(&m, N, 7)); /* and the parent goes on */
}

static void loop_or_fork(int i, void *arg)
{
    (void)arg;
    int depth = 0;
    if (i == 0) {
        for (int round = 0; round < 10; round++)
            EXPECT_EQ_INT(run_in_child(loop_in_the_child, &depth, 20), 0);
    } else {
        marks *m = calloc(1, sizeof *m);
        for (int round = 0; round < 200; round++)
            EXPECT_OK(mark_all(m, N / 10, 1));
        free(m);
    }
}

TEST(a_child_made_during_a_loop_runs_loops_of_its_own)
{
    if (test_sanitized())
        SKIP("the sanitizers' own locks may be held by threads that the child does not have");
    ASSERT_OK(tn_set_num_threads(4));
    run_threads(2, loop_or_fork, NULL);
}

typedef struct forking {
    _Atomic int present;
    pid_t parent, child;
} forking;

static tn_status fork_here(int64_t begin, int64_t end, void *arg)
{
    (void)end;
    forking *f = arg;
    if (begin >= 2)
        return TN_OK;
    /* Both threads sit in a chunk when the caller forks. */
    atomic_fetch_add(&f->present, 1);
    while (atomic_load(&f->present) < 2)
        usleep(100);
    if (tni_pool_thread_index() == 0) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            alarm(300);
        else
            f->child = child;
    }
    return TN_OK;
}

TEST(a_chunk_that_forks_hangs_neither_parent_nor_child)
{
    if (test_thread_sanitized())
        SKIP("the thread sanitizer does not know such children");
    ASSERT_OK(tn_set_num_threads(2));
    forking state = {.parent = getpid()};
    tn_status status = tni_pool_for(10, 1, fork_here, &state);
    if (getpid() != state.parent) {
        /* The child lacks what the worker did: it must be told. And the pool works again. */
        bool told = status == TN_INVALID && strstr(tn_last_error(), "fork()");
        static marks m;
        bool works = mark_all(&m, N, 7) == TN_OK && m.chunks == N / 7 + 1;
        _exit(told && works ? 0 : 1);
    }
    EXPECT_EQ_INT(status, TN_OK);
    int ended = -1;
    EXPECT(waitpid(state.child, &ended, 0) == state.child);
    EXPECT_EQ_INT(ended, 0);
}

static tn_status leave(int64_t begin, int64_t end, void *arg)
{
    (void)end, (void)arg;
    if (begin == 3)
        exit(0);
    usleep(1000);
    return TN_OK;
}

static int exit_from_a_loop(void *arg)
{
    (void)arg;
    (void)!tni_pool_for(100, 1, leave, NULL);
    return 1;
}

TEST(exit_from_inside_a_loop_does_not_hang)
{
    if (test_sanitized())
        SKIP("threads run on while the sanitizer takes its things down");
    ASSERT_OK(tn_set_num_threads(3));
    EXPECT_EQ_INT(run_in_child(exit_from_a_loop, NULL, 10), 0);
}

static void loop_at_exit(void)
{
    static marks m;
    if (mark_all(&m, N, 7) != TN_OK || m.chunks != N / 7 + 1)
        _exit(3);
}

static int exit_after_a_loop(void *arg)
{
    (void)arg;
    static marks m;
    atexit(loop_at_exit);
    EXPECT_OK(mark_all(&m, N, 7));
    exit(0);
}

TEST(loops_work_until_the_very_end)
{
    if (test_sanitized())
        SKIP("the sanitizers look for threads that the child does not have");
    ASSERT_OK(tn_set_num_threads(3));
    EXPECT_EQ_INT(run_in_child(exit_after_a_loop, NULL, 10), 0);
}
