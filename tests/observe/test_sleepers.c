/* SPDX-License-Identifier: MIT */
/* tests/observe/test_sleepers.c: who holds a lock that nobody has marked, and whose end is waited
 * for: known by what lies where a thread sleeps. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kit.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t first;

static tn_status takes_lock(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    kit_ready();
    pthread_mutex_lock(&lock);
    return TN_OK;
}

static void calls_with_lock(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    (void)!kit_call(kit_op("takes", TN_KEY_CPU, takes_lock), kit_ones(TN_CPU));
}

TEST(a_thread_that_waits_for_a_lock_that_its_caller_took_is_a_deadlock)
{
    kit_expect(calls_with_lock, "waits for a lock that it holds itself (a caller took it)",
               "\"kind\": \"deadlock\"");
}

static void *holds(void *arg)
{
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(arg);
    kit_stay();
    return NULL;
}

static void calls_beside_holder(void *arg)
{
    (void)arg;
    pthread_t thread;
    pthread_barrier_t both;
    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&thread, NULL, holds, &both) != 0)
        _exit(1);
    pthread_barrier_wait(&both);
    (void)!kit_call(kit_op("takes", TN_KEY_CPU, takes_lock), kit_ones(TN_CPU));
}

TEST(the_holder_of_a_lock_is_named_also_when_it_never_called_tenon)
{
    kit_expect(calls_beside_holder, "waits for a lock that another thread holds",
               "\"kind\": \"lock\"");
    kit_expect(calls_beside_holder, "without Tenon, which sleeps", "\"kind\": \"lock\"");
    kit_expect(calls_beside_holder, " without Tenon, ", "\"others\": ");
}

/* From GCC 13 on the sanitizers abort where the first thread is joined, which they do not know. */
#if (defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__) && __GNUC__ >= 13
enum { FIRST_MAY_BE_JOINED = 0 };
#else
enum { FIRST_MAY_BE_JOINED = 1 };
#endif

static void *waits_for_first(void *arg)
{
    (void)arg;
    pthread_join(first, NULL);
    return NULL;
}

static void *wants_lock(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    return NULL;
}

static void *(*inner)(void *);

static tn_status waits_for_thread(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    pthread_t thread;
    if (pthread_create(&thread, NULL, inner, NULL) != 0)
        _exit(1);
    kit_ready();
    pthread_join(thread, NULL);
    return TN_OK;
}

static void calls_what_joins(void *arg)
{
    (void)arg;
    first = pthread_self();
    pthread_mutex_lock(&lock);
    (void)!kit_call(kit_op("joins", TN_KEY_CPU, waits_for_thread), kit_ones(TN_CPU));
}

TEST(threads_that_wait_for_each_other_are_a_deadlock_of_both)
{
    inner = waits_for_first;
    if (FIRST_MAY_BE_JOINED)
        kit_expect(calls_what_joins, "without Tenon, waits for the end of thread ",
                   "\"kind\": \"deadlock\"");
    inner = wants_lock;
    kit_expect(calls_what_joins, "without Tenon, waits for a lock that thread ",
               "\"kind\": \"deadlock\"");
}

static pthread_mutex_t *shared;

static tn_status takes_shared(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    kit_ready();
    pthread_mutex_lock(shared);
    return TN_OK;
}

static void calls_beside_another_process(void *arg)
{
    (void)arg;
    (void)!kit_call(kit_op("shared", TN_KEY_CPU, takes_shared), kit_ones(TN_CPU));
}

TEST(a_lock_that_another_process_holds_is_told_as_such)
{
    pthread_mutexattr_t how;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(shared != MAP_FAILED);
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(shared, &how);
    pthread_mutex_lock(shared); /* this process is the other one */
    char wanted[96];
    snprintf(wanted, sizeof wanted, ", waits for a lock that thread %d of another process holds, ",
             (int)gettid());
    kit_expect(calls_beside_another_process, wanted, "\"kind\": \"lock\"");
    pthread_mutex_unlock(shared);
    munmap(shared, sizeof *shared);
}

/* What forks reads the number of the child here. */
static int numbers[2];

static void forks_beside_holder(void *arg)
{
    (void)arg;
    pthread_t thread;
    pthread_barrier_t both;
    tn_tensor *x = kit_ones(TN_CPU); /* there is a record now */
    pthread_barrier_init(&both, NULL, 2);
    if (pthread_create(&thread, NULL, holds, &both) != 0)
        _exit(1);
    pthread_barrier_wait(&both);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)!kit_call(kit_op("takes", TN_KEY_CPU, takes_lock), x);
        _exit(0);
    }
    (void)!write(numbers[1], &child, sizeof child);
    kit_stay();
}

TEST(in_a_child_of_fork_a_lock_of_a_thread_that_only_the_parent_had_is_told)
{
    pid_t grandchild = 0;
    ASSERT(pipe(numbers) == 0);
    pid_t child = kit_begin(forks_beside_holder, NULL);
    ASSERT(read(numbers[0], &grandchild, sizeof grandchild) == sizeof grandchild);
    const char *wanted =
        kit_may_read(grandchild) ? "which is not there" : "this is a child of fork()";
    KIT_EXPECT_ALL(grandchild, false, wanted, "this is a child of fork(); its parent had ",
                   "; a lock that one of them held then is never given back",
                   "inside the kernel of kit::takes");
    kill(grandchild, SIGKILL);
    kit_end(child);
    close(numbers[0]);
    close(numbers[1]);
}

static void *calls_once(void *arg)
{
    tn_tensor *y = NULL;
    if (tn_neg(arg, &y) == TN_OK)
        tn_tensor_unref(y);
    return NULL;
}

static void starts_short_threads(void *arg)
{
    (void)arg;
    tn_tensor *x = kit_ones(TN_CPU);
    kit_ready();
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, calls_once, x) == 0)
            pthread_join(thread, NULL);
    }
}

TEST(calls_of_threads_that_have_ended_are_progress)
{
    kit_expect(starts_short_threads, "make", "\"kind\": \"progress\"");
}

static tn_op *again;

static void *calls_again(void *arg)
{
    (void)arg;
    (void)!kit_call(again, kit_ones(TN_CPU));
    return NULL;
}

/* Five deep, where the last stays. */
static tn_status calls_itself_elsewhere(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    static _Atomic int depth;
    pthread_t thread;
    if (++depth == 5) {
        kit_ready();
        kit_stay();
    }
    if (pthread_create(&thread, NULL, calls_again, NULL) != 0)
        _exit(1);
    pthread_join(thread, NULL);
    return TN_OK;
}

static void calls_in_new_threads(void *arg)
{
    again = kit_op("again", TN_KEY_CPU, calls_itself_elsewhere);
    (void)calls_again(arg);
}

TEST(an_operator_that_waits_for_itself_in_other_threads_is_told_with_the_last_of_them)
{
    kit_expect(calls_in_new_threads, "; the last of these 5 is thread ", "\"kind\": \"");
    kit_expect(calls_in_new_threads,
               "; kit::again is called again and again, each time in a new "
               "thread that the call before waits for",
               "kit::again must not be called by what it waits for");
}
