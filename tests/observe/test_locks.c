/* SPDX-License-Identifier: MIT */
/* tests/observe/test_locks.c: whatever a thread of the library can wait for is named, with who
 * holds it. Each test is a program of two threads, one of which holds what the other wants, and the
 * doctor's view of it. That no wait was forgotten: tests/observe/test_waits.py. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>

#include "kit.h"
#include "autograd/accumulate.h"
#include "core/device.h"
#include "dispatch/registry.h"
#include "fake/mode.h"
#include "tenon/autograd.h"

/* Hold what @p holds holds on a thread of its own; then @p wants waits for it. */
typedef struct scene {
    void (*holds)(void);
    void (*wants)(void);
} scene;

static pthread_barrier_t both;

static void *holder(void *arg)
{
    pthread_setname_np(pthread_self(), "holder");
    ((const scene *)arg)->holds();
    pthread_barrier_wait(&both);
    kit_stay();
    return NULL;
}

static void play(void *arg)
{
    const scene *s = arg;
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    tn_tensor_unref(kit_ones(TN_CPU));
    ASSERT(pthread_create(&thread, NULL, holder, arg) == 0);
    pthread_barrier_wait(&both);
    kit_ready();
    s->wants();
}

static void expect_named(void (*holds)(void), void (*wants)(void), const char *what)
{
    scene s = {holds, wants};
    char waits[128], held[128];
    snprintf(waits, sizeof waits, "waits for %s", what);
    snprintf(held, sizeof held, "holds %s", what);
    pid_t child = kit_begin(play, &s);
    KIT_EXPECT_ALL(child, false, waits, held, "it is held up by thread", "(holder)");
    kit_end(child);
}

/* ---- devices ---- */

TEST(the_list_of_devices)
{
    expect_named(tni_device_lock, tni_device_lock, "lock 'the list of devices'");
}

/* ---- the registry ---- */

static void opens_library(void)
{
    tn_library *lib = NULL;
    (void)!tn_library_open(TN_LIBRARY_DEF, "other", TN_KEY_NONE, __FILE__, __LINE__, &lib);
}

TEST(the_registry)
{
    expect_named(tni_lock, opens_library, "lock 'the registry's lock'");
}

/* ---- fake tensors ---- */

static tn_fake_mode *mode;

static void holds_memory_of_mode(void)
{
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    tni_mutex_lock(&mode->lock, "a fake mode's memory");
}

static void converts(void)
{
    tn_tensor *x = kit_ones(TN_CPU), *fake = NULL;
    (void)!tn_fake_from_real(mode, x, &fake);
}

TEST(the_memory_of_a_fake_mode)
{
    expect_named(holds_memory_of_mode, converts, "lock 'a fake mode's memory'");
}

/* ---- gradients ---- */

static tn_tensor *leaf;

static tn_status stays(tn_tensor *t, tn_tensor *had, tn_tensor *grad, bool may_write,
                       tn_tensor **fresh)
{
    (void)t, (void)had, (void)grad, (void)may_write, (void)fresh;
    pthread_barrier_wait(&both); /* in the holder's place */
    kit_stay();
    return TN_OK;
}

static void adds_to_gradient(void)
{
    if (!leaf) {
        leaf = kit_ones(TN_CPU);
        ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    }
    (void)!tni_grad_add(leaf, leaf, stays, false);
}

TEST(a_gradient_that_two_passes_add_to)
{
    expect_named(adds_to_gradient, adds_to_gradient, "lock 'a gradient that is added to'");
}

/* ---- stderr that nobody reads ---- */

static void prints_stages(void)
{
    int ends[2];
    ASSERT(pipe(ends) == 0);
    dup2(ends[1], STDERR_FILENO);
    (void)!fcntl(ends[1], F_SETPIPE_SZ, 4096);
    tn_tensor *x = kit_ones(TN_CPU), *y = NULL;
    ASSERT_OK(tn_set_dispatch_debug("*"));
    for (;;) {
        (void)!tn_neg(x, &y);
        tn_tensor_unref(y);
    }
}

static void holds_nothing(void) {}

TEST(stage_lines_that_nobody_reads)
{
    scene s = {holds_nothing, prints_stages};
    pid_t child = kit_begin(play, &s);
    KIT_EXPECT_ALL(child, false, "waits for event 'room in stderr'", "verdict: thread");
    kit_end(child);
}
