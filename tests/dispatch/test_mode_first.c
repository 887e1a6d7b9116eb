/* SPDX-License-Identifier: MIT */
/* The first mode of a process: registering its kernel frees what others left, which runs their
 * code. A program of its own: it happens once. */
#include "dispatch/kit.h"
#include "tenon/mode.h"

#include <pthread.h>

static pthread_barrier_t meet;
static _Atomic int pushed;

static tn_status go_on(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)ctx;
    return tn_call_mode_go_on(call, args, rets);
}

static void push_and_pop(void)
{
    tn_call_mode *mode = NULL;
    ASSERT_OK(tn_call_mode_new(go_on, NULL, NULL, &mode));
    ASSERT_OK(tn_call_mode_push(mode));
    tn_call_mode_unref(tn_call_mode_pop());
    tn_call_mode_unref(mode);
}

static void *on_a_thread(void *arg)
{
    (void)arg;
    push_and_pop();
    return NULL;
}

/* Pushes a mode itself, and waits for a thread that does. */
static void destroy(void *ctx)
{
    (void)ctx;
    push_and_pop();
    pthread_t thread;
    ASSERT(pthread_create(&thread, NULL, on_a_thread, NULL) == 0);
    pthread_join(thread, NULL);
    pushed++;
}

static tn_status stay(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    pthread_barrier_wait(&meet); /* inside */
    pthread_barrier_wait(&meet); /* until its library was closed */
    return TN_OK;
}

static void *calls(void *arg)
{
    EXPECT_OK(tn_op_call(arg, NULL, 0, NULL));
    pthread_barrier_wait(&meet); /* outside, and still there */
    pthread_barrier_wait(&meet);
    return NULL;
}

TEST(a_destructor_that_runs_while_the_first_mode_is_pushed_may_push_one)
{
    pthread_barrier_init(&meet, NULL, 2);
    tn_library *library = NULL;
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "first", TN_KEY_NONE, __FILE__, __LINE__, &library));
    tn_kernel kernel = TN_KERNEL_INIT(stay);
    kernel.destroy = destroy;
    ASSERT_OK(tn_library_def(library, "stay() -> ()", &kernel, NULL));
    pthread_t thread;
    ASSERT(pthread_create(&thread, NULL, calls, kit_op("first::stay")) == 0);
    pthread_barrier_wait(&meet);
    tn_library_close(library); /* the kernel is running: its context is kept */
    EXPECT_EQ_INT(pushed, 0);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    EXPECT_WITHIN_SECONDS(60, { push_and_pop(); });
    EXPECT_EQ_INT(pushed, 1);
    pthread_barrier_wait(&meet);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&meet);
}
