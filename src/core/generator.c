/* SPDX-License-Identifier: MIT */
/* core/generator.c: random number generators: a seed and a counter of Philox blocks, shared by
 * threads.
 *
 * Note [Generator state]
 * Seed and counter change together when a generator is seeded and must be read together. `epoch` is
 * odd while that happens; who takes blocks reads the seed, adds to the counter, and starts again if
 * the epoch moved meanwhile. So taking blocks never waits for another taker, and a process that
 * forks while some thread takes blocks leaves no lock behind in the child. */
#include "core/generator.h"

#include "base/alloc.h"
#include "base/mark.h"
#include "base/ref.h"

#include <sched.h>

/* What the reference starts with. */
#define DEFAULT_SEED UINT64_C(67280421310721)

struct tn_generator {
    tni_object object;
    _Atomic uint64_t epoch;
    _Atomic uint64_t seed;
    _Atomic uint64_t counter;
};

static void generator_destroy(void *object)
{
    tni_free(object);
}

static const tni_type generator_type = {"generator", NULL, generator_destroy, NULL};

static tn_generator default_generator = {
    .object = {TNI_COUNTS_FRESH, &generator_type},
    .seed = DEFAULT_SEED,
};

tn_generator *tn_default_generator(void)
{
    return &default_generator;
}

tn_status tn_generator_new(uint64_t seed, tn_generator **out)
{
    TN_CHECK(out, TN_INVALID, "tn_generator_new: out is NULL");
    tn_generator *g = tni_alloc(sizeof *g);
    TN_CHECK(g, TN_NOMEM, "cannot allocate a generator of %zu bytes", sizeof *g);
    tni_object_init(&g->object, &generator_type);
    atomic_init(&g->epoch, 0);
    atomic_init(&g->seed, seed);
    atomic_init(&g->counter, 0);
    *out = g;
    return TN_OK;
}

/* The default generator lives for ever: it is not counted. */
tn_generator *tn_generator_ref(tn_generator *g)
{
    if (g && g != &default_generator)
        tni_ref(&g->object);
    return g;
}

void tn_generator_unref(tn_generator *g)
{
    if (g && g != &default_generator)
        tni_unref(&g->object);
}

static tn_generator *or_default(tn_generator *g)
{
    return g ? g : &default_generator;
}

/* ---- see Note [Generator state] ---- */

static uint64_t settled_epoch(tn_generator *g)
{
    uint64_t epoch;
    int tries = 0;
    while ((epoch = atomic_load_explicit(&g->epoch, memory_order_acquire)) & 1) {
        if (tries++ == 64)
            tni_wait_begin(TNI_WAIT_SPIN, (uintptr_t)g, "a generator's state", true);
        sched_yield();
    }
    if (tries > 64)
        tni_wait_end();
    return epoch;
}

tn_generator_state tni_generator_take(tn_generator *g, uint64_t n_blocks)
{
    g = or_default(g);
    for (;;) {
        uint64_t epoch = settled_epoch(g);
        tn_generator_state state;
        state.seed = atomic_load_explicit(&g->seed, memory_order_acquire);
        state.counter = n_blocks
                            ? atomic_fetch_add_explicit(&g->counter, n_blocks, memory_order_acq_rel)
                            : atomic_load_explicit(&g->counter, memory_order_acquire);
        if (atomic_load_explicit(&g->epoch, memory_order_relaxed) == epoch)
            return state;
    }
}

uint64_t tni_generator_reserve(tn_generator *g, uint64_t n_blocks)
{
    return tni_generator_take(g, n_blocks).counter;
}

tn_generator_state tn_generator_get_state(tn_generator *g)
{
    return tni_generator_take(g, 0);
}

void tn_generator_set_state(tn_generator *g, tn_generator_state state)
{
    g = or_default(g);
    uint64_t epoch;
    do
        epoch = settled_epoch(g);
    while (!atomic_compare_exchange_weak_explicit(&g->epoch, &epoch, epoch + 1,
                                                  memory_order_acq_rel, memory_order_relaxed));
    atomic_store_explicit(&g->seed, state.seed, memory_order_release);
    atomic_store_explicit(&g->counter, state.counter, memory_order_release);
    atomic_store_explicit(&g->epoch, epoch + 2, memory_order_release);
}

void tn_generator_seed(tn_generator *g, uint64_t seed)
{
    tn_generator_set_state(g, (tn_generator_state){seed, 0});
}

void tn_manual_seed(uint64_t seed)
{
    tn_generator_seed(NULL, seed);
}

tn_keyset tni_generator_keys(const tn_generator *g)
{
    (void)g;
    return 0;
}
