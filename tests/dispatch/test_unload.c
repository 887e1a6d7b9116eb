/* SPDX-License-Identifier: MIT */
/* A program that loads the shared library, uses it on a thread and closes it while that thread
 * still runs: the thread's end must find what it needs. */
#include "harness/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "tenon/dispatch.h"

static void *library;
static pthread_barrier_t meeting;

static void *use_and_wait(void *arg)
{
    tn_status (*find)(const char *, tn_op **);
    int (*arguments)(const tn_op *);
    tn_op *op = NULL;
    *(void **)&find = dlsym(library, "tn_op_find");
    *(void **)&arguments = dlsym(library, "tn_op_num_arguments");
    bool good = find && arguments && find("aten::mm", &op) == TN_OK && arguments(op) == 2 &&
                find("no::such", &op) != TN_OK;
    *(bool *)arg = good;
    pthread_barrier_wait(&meeting); /* used */
    pthread_barrier_wait(&meeting); /* closed */
    return NULL;
}

static int close_under_a_thread(void *path)
{
    pthread_t thread;
    bool good = false;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return 1;
    }
    pthread_barrier_init(&meeting, NULL, 2);
    ASSERT_EQ_INT(pthread_create(&thread, NULL, use_and_wait, &good), 0);
    pthread_barrier_wait(&meeting);
    EXPECT_EQ_INT(dlclose(library), 0);
    pthread_barrier_wait(&meeting);
    pthread_join(thread, NULL);
    EXPECT(good);
    return 0;
}

TEST(a_thread_may_end_after_the_library_was_closed)
{
    const char *folder = getenv("TENON_BUILD_DIR");
    char path[1024];
    if (!folder || test_sanitized())
        SKIP("needs TENON_BUILD_DIR, and a build without sanitizers");
    snprintf(path, sizeof path, "%s/libtenon.so", folder);
    EXPECT_EQ_INT(run_in_child(close_under_a_thread, path, 20), 0);
}
