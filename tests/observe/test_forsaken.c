/* SPDX-License-Identifier: MIT */
/* tests/observe/test_forsaken.c: a program in which every thread sleeps for good is said to be in a
 * deadlock, whatever it sleeps at; one in which something can still end a sleep is not. */
#define _GNU_SOURCE
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kit.h"

static const char forsaken[] = "; no thread is left that could wake it, only a signal could",
                  not_known[] = "what the kernel waits for is not known",
                  deadlock[] = "\"kind\": \"deadlock\"", blocked[] = "\"kind\": \"blocked\"";

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore, *shared;
static tn_op *op;
static tn_tensor *x;
static void (*wait_for_it)(void);

static tn_status waits(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    kit_ready();
    wait_for_it();
    return TN_OK;
}

static void calls(void *arg)
{
    (void)arg;
    (void)!kit_call(kit_op("waits", TN_KEY_CPU, waits), kit_ones(TN_CPU));
}

/* Every thread of such a build sleeps for good but one of the sanitizer's. */
static void expect_deadlock(void (*fn)(void *arg), const char *wanted)
{
#if defined(__SANITIZE_THREAD__)
    (void)fn, (void)wanted, (void)deadlock;
    test_note("the sanitizer has a thread of its own, which never sleeps for good");
#else
    kit_expect(fn, wanted, deadlock);
    kit_expect(fn, forsaken, deadlock);
#endif
}

static void take_rwlock(void)
{
    pthread_rwlock_wrlock(&rwlock);
}

static void calls_with_rwlock(void *arg)
{
    pthread_rwlock_rdlock(&rwlock);
    calls(arg);
}

static void wait_for_semaphore(void)
{
    sem_wait(&semaphore);
}

static void wait_for_condition(void)
{
    pthread_mutex_lock(&mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
}

static void wait_for_barrier(void)
{
    static pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_barrier_wait(&barrier);
}

TEST(a_program_whose_one_thread_sleeps_for_good_is_in_a_deadlock_with_itself)
{
    sem_init(&semaphore, 0, 0);
    wait_for_it = take_rwlock;
    expect_deadlock(calls_with_rwlock, "deadlock with itself: thread ");
    wait_for_it = wait_for_condition;
    expect_deadlock(calls, ", inside the kernel of kit::waits");
    wait_for_it = wait_for_semaphore;
    expect_deadlock(calls, ", sleeps at a semaphore, for ");
    wait_for_it = wait_for_barrier; /* looks like a semaphore but for its place */
    expect_deadlock(calls, ", sleeps at a lock or a condition, for ");
}

static void calls_again(void)
{
    kit_ready();
    (void)!kit_call(op, x);
}

static tn_status runs_once(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    pthread_once(&once, calls_again);
    return TN_OK;
}

static void calls_once(void *arg)
{
    (void)arg;
    op = kit_op("once", TN_KEY_CPU, runs_once);
    x = kit_ones(TN_CPU);
    (void)!kit_call(op, x);
}

TEST(an_initialisation_that_waits_for_itself_is_a_deadlock_without_marks)
{
    expect_deadlock(calls_once, "deadlock with itself: thread ");
}

static void *sleeps_for_good(void *arg)
{
    (void)arg;
    wait_for_semaphore();
    return NULL;
}

static void start(void *(*fn)(void *arg))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, fn, NULL) != 0)
        _exit(1);
}

static void calls_beside_sleepers(void *arg)
{
    for (int i = 0; i < 20; i++) /* more than are described one by one */
        start(sleeps_for_good);
    calls(arg);
}

static void wait_for_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleeps_for_good, NULL) != 0)
        _exit(1);
    pthread_join(thread, NULL);
}

TEST(threads_that_all_sleep_for_good_are_a_deadlock)
{
    sem_init(&semaphore, 0, 0);
    wait_for_it = wait_for_condition;
    expect_deadlock(calls_beside_sleepers, ": all its 21 threads sleep");
    wait_for_it = wait_for_thread;
    expect_deadlock(calls, ", waits for the end of another thread, for ");
}

static void *stays(void *arg)
{
    (void)arg;
    kit_stay();
    return NULL;
}

static void *polls(void *arg)
{
    (void)arg;
    poll(NULL, 0, 1800000);
    return NULL;
}

static void calls_beside_one_that_stays(void *arg)
{
    start(stays);
    calls(arg);
}

static void calls_beside_one_that_polls(void *arg)
{
    start(polls);
    calls(arg);
}

static void wait_for_half_an_hour(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1800;
    sem_timedwait(&semaphore, &until);
}

static void wait_for_shared_semaphore(void)
{
    sem_wait(shared);
}

TEST(a_sleep_that_something_can_end_is_no_deadlock)
{
    sem_init(&semaphore, 0, 0);
    wait_for_it = wait_for_semaphore;
    kit_expect(calls_beside_one_that_stays, not_known, blocked);
    kit_expect(calls_beside_one_that_polls, not_known, blocked);
#if !defined(__SANITIZE_THREAD__)
    kit_expect(calls_beside_one_that_polls, " at a semaphore; nobody can wake it but thread ",
               blocked);
#endif
    wait_for_it = wait_for_half_an_hour;
    kit_expect(calls, not_known, blocked);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(shared != MAP_FAILED);
    sem_init(shared, 1, 0);
    wait_for_it = wait_for_shared_semaphore;
    kit_expect(calls, not_known, blocked);
    munmap(shared, sizeof *shared);
}

static void sleeps_outside(void *arg)
{
    (void)arg;
    tn_tensor_unref(kit_ones(TN_CPU));
    kit_ready();
    wait_for_semaphore();
}

TEST(a_program_that_sleeps_for_good_outside_of_operators_is_in_a_deadlock)
{
    sem_init(&semaphore, 0, 0);
#if defined(__SANITIZE_THREAD__)
    kit_expect(sleeps_outside, "idle: no thread is in an operator", "\"kind\": \"idle\"");
#else
    kit_expect(sleeps_outside,
               "deadlock: all threads sleep, none is left that could wake another, only a signal "
               "could; no thread is in an operator",
               "\"kind\": \"deadlock\"");
#endif
}
