/* SPDX-License-Identifier: MIT */
/* What base/ref.h and base/auto.h promise. */
#include "harness/test.h"

#include <stdatomic.h>
#include "base/alloc.h"
#include "base/auto.h"
#include "base/ref.h"

typedef struct thing {
    tni_object header;
    int *payload;
} thing;

static _Atomic int released, destroyed;

static void thing_release(void *object)
{
    thing *t = object;
    atomic_fetch_add(&released, 1);
    tni_free(t->payload);
    t->payload = NULL;
}

static void thing_destroy(void *object)
{
    atomic_fetch_add(&destroyed, 1);
    tni_block_free(object, sizeof(thing));
}

static const tni_type thing_type = {"thing", thing_release, thing_destroy, NULL};
static const tni_type plain_type = {"plain", NULL, thing_destroy, NULL};

static thing *thing_new(const tni_type *type)
{
    thing *t = tni_block_alloc(sizeof *t);
    ASSERT(t);
    tni_object_init(&t->header, type);
    t->payload = tni_alloc(sizeof(int));
    ASSERT(t->payload);
    *t->payload = 42;
    return t;
}

static void reset(void)
{
    atomic_store(&released, 0);
    atomic_store(&destroyed, 0);
}

TEST(the_last_strong_reference_releases_and_destroys)
{
    reset();
    thing *t = thing_new(&thing_type);
    EXPECT_EQ_INT(tni_strong_count(&t->header), 1);
    tni_ref(&t->header);
    tni_ref(&t->header);
    EXPECT_EQ_INT(tni_strong_count(&t->header), 3);
    tni_unref(&t->header);
    tni_unref(&t->header);
    EXPECT_EQ_INT(released, 0);
    EXPECT_EQ_INT(tni_strong_count(&t->header), 1);
    tni_unref(&t->header);
    EXPECT_EQ_INT(released, 1);
    EXPECT_EQ_INT(destroyed, 1);
}

TEST(a_weak_reference_keeps_the_memory_and_not_the_contents)
{
    reset();
    thing *t = thing_new(&thing_type);
    tni_weak_ref(&t->header);
    tni_unref(&t->header);
    EXPECT_EQ_INT(released, 1);
    EXPECT_EQ_INT(destroyed, 0);
    EXPECT(t->payload == NULL);
    EXPECT_EQ_INT(tni_strong_count(&t->header), 0);
    EXPECT(!tni_weak_lock(&t->header));
    tni_weak_unref(&t->header);
    EXPECT_EQ_INT(destroyed, 1);
}

TEST(a_weak_reference_becomes_strong_while_the_object_lives)
{
    reset();
    thing *t = thing_new(&thing_type);
    tni_weak_ref(&t->header);
    EXPECT(tni_weak_lock(&t->header));
    EXPECT_EQ_INT(tni_strong_count(&t->header), 2);
    tni_unref(&t->header);
    tni_unref(&t->header);
    EXPECT_EQ_INT(released, 1);
    EXPECT_EQ_INT(destroyed, 0);
    tni_weak_unref(&t->header);
    EXPECT_EQ_INT(destroyed, 1);
}

TEST(weak_references_may_go_first)
{
    reset();
    thing *t = thing_new(&thing_type);
    tni_weak_ref(&t->header);
    tni_weak_unref(&t->header);
    EXPECT_EQ_INT(released + destroyed, 0);
    tni_unref(&t->header);
    EXPECT_EQ_INT(released, 1);
    EXPECT_EQ_INT(destroyed, 1);
}

TEST(a_type_needs_no_release)
{
    reset();
    for (int weak = 0; weak < 2; weak++) {
        thing *t = thing_new(&plain_type);
        tni_free(t->payload);
        if (weak)
            tni_weak_ref(&t->header);
        tni_unref(&t->header);
        if (weak)
            tni_weak_unref(&t->header);
    }
    EXPECT_EQ_INT(destroyed, 2);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void share(int i, void *arg)
{
    thing *t = arg;
    for (int k = 0; k < ROUNDS; k++) {
        if ((i + k) % 2) {
            tni_ref(&t->header);
            EXPECT(*t->payload == 42);
            tni_unref(&t->header);
        } else {
            tni_weak_ref(&t->header);
            if (tni_weak_lock(&t->header)) {
                EXPECT(*t->payload == 42);
                tni_unref(&t->header);
            } else {
                EXPECT(!"the object was alive");
            }
            tni_weak_unref(&t->header);
        }
    }
    tni_unref(&t->header); /* the one that the thread was given */
}

TEST(counts_hold_on_many_threads)
{
    reset();
    for (int round = 0; round < 20; round++) {
        thing *t = thing_new(&thing_type);
        for (int i = 1; i < THREADS; i++)
            tni_ref(&t->header);
        run_threads(THREADS, share, t);
    }
    EXPECT_EQ_INT(released, 20);
    EXPECT_EQ_INT(destroyed, 20);
}

static void race_for_it(int i, void *arg)
{
    thing *t = arg;
    if (i == 0) {
        tni_unref(&t->header); /* the only strong one */
        return;
    }
    if (tni_weak_lock(&t->header)) {
        EXPECT(*t->payload == 42);
        tni_unref(&t->header);
    }
    tni_weak_unref(&t->header);
}

TEST(locking_races_with_the_last_release_safely)
{
    reset();
    enum { N = 300 };
    for (int round = 0; round < N; round++) {
        thing *t = thing_new(&thing_type);
        for (int i = 1; i < THREADS; i++)
            tni_weak_ref(&t->header);
        run_threads(THREADS, race_for_it, t);
    }
    EXPECT_EQ_INT(released, N);
    EXPECT_EQ_INT(destroyed, N);
}

static void thing_unref(thing *t)
{
    tni_unref(&t->header);
}
TNI_DEFINE_AUTO(thing, thing_unref)

static thing *make(bool keep)
{
    TN_AUTO(thing) t = thing_new(&thing_type);
    TN_AUTO(thing) none = NULL;
    (void)none;
    return keep ? TN_MOVE(t) : NULL;
}

TEST(a_scope_releases_what_was_not_moved_out)
{
    reset();
    EXPECT(make(false) == NULL);
    EXPECT_EQ_INT(destroyed, 1);
    thing *t = make(true);
    EXPECT_EQ_INT(destroyed, 1);
    thing_unref(t);
    EXPECT_EQ_INT(destroyed, 2);
}
