/* SPDX-License-Identifier: MIT */
/* A random program of libraries, definitions, kernels, fallbacks, listeners, calls and failing
 * allocations, checked against what was done: who is defined, which kernel runs, whose context is
 * alive, what listeners know. TEST_SEED gives another program. */
#include "dispatch/kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

enum { OPS = 4, MOST = 48, LIBRARIES = 3, LISTENERS = 3 };

static const char *const names[OPS] = {"t::a", "t::b", "t::c.x", "t::d"};
static const char *const schemas[OPS] = {"a(Tensor x) -> Tensor", "b(Tensor x, int n=1) -> Tensor",
                                         "c.x(Tensor x) -> Tensor",
                                         "d(Tensor x, float[2] f=0.5) -> Tensor"};

static const tn_key keys[] = {TN_KEY_CPU,
                              TN_KEY_META,
                              TN_KEY_XLA,
                              TN_KEY_SPARSE_CPU,
                              TN_KEY_TRACER,
                              TN_KEY_AUTOGRAD_CPU,
                              TN_KEY_AUTOGRAD_XLA,
                              TN_KEY_AUTOGRAD_OTHER,
                              TN_KEY_AUTOGRAD,
                              TN_KEY_COMPOSITE_IMPLICIT,
                              TN_KEY_COMPOSITE_EXPLICIT,
                              TN_KEY_VMAP_MODE};
enum { KEYS = sizeof keys / sizeof keys[0] };

/* What is registered: the newest last. */
typedef struct entry {
    enum { DEFINITION, KERNEL, FALLBACK } kind;
    int op, library;
    tn_key key;
    tn_registration *handle; /* NULL: only the library can undo it */
    int *alive;              /* of its kernel; NULL when it falls through or has none */
    char letter[12];
} entry;

static struct {
    kit k;
    tn_library *libraries[LIBRARIES]; /* fragments of t */
    tn_library *fallbacks;
    entry entries[MOST];
    int n;
    struct {
        tn_registration *handle;
        bool knows[OPS];
    } listeners[LISTENERS];
    int next_letter;
} world;

static unsigned pick(unsigned n)
{
    return (unsigned)(test_random() % n);
}

static int op_index(const tn_op *op)
{
    for (int i = 0; i < OPS; i++) {
        if (strcmp(tn_op_name(op), names[i]) == 0)
            return i;
    }
    return -1;
}

/* ---- what listeners know ---- */

static void learn(void *ctx, tn_op *op)
{
    bool *knows = ctx;
    int i = op_index(op);
    if (i < 0)
        return;
    EXPECT(!knows[i]);
    EXPECT(tn_op_has_schema(op));
    knows[i] = true;
}

static void forget(void *ctx, tn_op *op)
{
    bool *knows = ctx;
    int i = op_index(op);
    if (i < 0)
        return;
    EXPECT(knows[i]);
    knows[i] = false;
}

static bool is_defined(int op)
{
    for (int i = 0; i < world.n; i++) {
        if (world.entries[i].kind == DEFINITION && world.entries[i].op == op)
            return true;
    }
    return false;
}

static void check_listeners(void)
{
    for (int l = 0; l < LISTENERS; l++) {
        for (int i = 0; world.listeners[l].handle && i < OPS; i++)
            EXPECT_EQ_INT(world.listeners[l].knows[i], is_defined(i));
    }
}

/* ---- steps ---- */

static void die(void *ctx)
{
    int *alive = ctx;
    EXPECT_EQ_INT(*alive, 1);
    *alive = 0;
}

static tn_status run_letter(tn_call *call, const tn_value *args, tn_value *rets)
{
    EXPECT_EQ_INT(*(int *)tn_call_context(call), 1);
    return tn_value_copy(&args[0], &rets[0]);
}

/* Some allocation of the next step fails, or none. */
static bool maybe_fail(void)
{
    if (pick(4) != 0)
        return false;
    tni_alloc_watch(pick(12), pick(2));
    return true;
}

/* The step was refused for lack of memory, and only for that. */
static bool refused(tn_status st, bool failing)
{
    tni_alloc_unwatch();
    if (st == TN_OK)
        return false;
    if (failing)
        EXPECT_EQ_INT(st, TN_NOMEM);
    else
        EXPECT_OK(st);
    return true;
}

static tn_kernel new_kernel(entry *e)
{
    tn_kernel k = TN_KERNEL_INIT(run_letter);
    snprintf(e->letter, sizeof e->letter, "k%d", world.next_letter++);
    e->alive = malloc(sizeof(int));
    ASSERT(e->alive != NULL);
    *e->alive = 1;
    k.ctx = e->alive;
    k.destroy = die;
    k.name = e->letter;
    return k;
}

static void forget_entry(int at)
{
    free(world.entries[at].alive);
    memmove(&world.entries[at], &world.entries[at + 1],
            (size_t)(world.n - at - 1) * sizeof world.entries[0]);
    world.n--;
}

static void expect_dead(const entry *e)
{
    EXPECT(!e->alive || *e->alive == 0);
}

static void add(entry e)
{
    tn_registration **handle = pick(3) ? &e.handle : NULL;
    tn_kernel k = tn_kernel_fallthrough("x.c", 1);
    bool with_kernel = e.kind != DEFINITION || pick(2);
    if (with_kernel && (e.kind == DEFINITION || pick(6)))
        k = new_kernel(&e);
    bool failing = maybe_fail();
    tn_status st = TN_OK;
    if (e.kind == DEFINITION)
        st = tn_library_def(world.libraries[e.library], schemas[e.op], with_kernel ? &k : NULL,
                            handle);
    else if (e.kind == KERNEL)
        st = tn_library_impl(world.libraries[e.library], names[e.op], e.key, &k, handle);
    else
        st = tn_library_fallback(world.fallbacks, e.key, &k, handle);
    if (refused(st, failing)) {
        EXPECT(!e.alive || *e.alive == 1); /* it stays the caller's */
        EXPECT(e.handle == NULL);
        free(e.alive);
        return;
    }
    world.entries[world.n++] = e;
}

static bool has_fallback(tn_key key)
{
    for (int i = 0; i < world.n; i++) {
        if (world.entries[i].kind == FALLBACK && world.entries[i].key == key)
            return true;
    }
    return false;
}

static void add_something(void)
{
    entry e = {.op = (int)pick(OPS), .library = (int)pick(LIBRARIES), .key = keys[pick(KEYS)]};
    switch (pick(8)) {
    case 0:
        e.kind = FALLBACK;
        e.key = pick(2) ? TN_KEY_TRACER : TN_KEY_VMAP_MODE;
        if (!has_fallback(e.key))
            add(e);
        break;
    case 1:
    case 2:
        e.kind = DEFINITION;
        e.key = TN_KEY_COMPOSITE_IMPLICIT;
        if (!is_defined(e.op))
            add(e);
        break;
    default:
        e.kind = KERNEL;
        add(e);
    }
}

static void undo_something(void)
{
    int at = (int)pick((unsigned)world.n);
    if (!world.entries[at].handle)
        return;
    bool failing = maybe_fail();
    tn_registration_undo(world.entries[at].handle);
    tni_alloc_unwatch();
    (void)failing; /* undoing cannot fail */
    expect_dead(&world.entries[at]);
    forget_entry(at);
}

static void reopen_library(void)
{
    int library = (int)pick(LIBRARIES);
    tn_library_close(world.libraries[library]);
    for (int i = world.n; i-- > 0;) {
        entry *e = &world.entries[i];
        if (e->kind == FALLBACK || e->library != library)
            continue;
        expect_dead(e);
        tn_registration_undo(e->handle); /* outlives its library, and does nothing more */
        forget_entry(i);
    }
    ASSERT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "t", TN_KEY_NONE, "x.c", library,
                              &world.libraries[library]));
}

static void change_listener(void)
{
    int l = (int)pick(LISTENERS);
    tn_registration **handle = &world.listeners[l].handle;
    if (*handle) {
        tn_registration_undo(*handle);
        *handle = NULL;
        return;
    }
    tn_listener listener = {sizeof listener, 0, learn, forget, world.listeners[l].knows, NULL};
    memset(world.listeners[l].knows, 0, sizeof world.listeners[l].knows);
    bool failing = maybe_fail();
    if (refused(tn_add_listener(&listener, handle), failing))
        EXPECT(*handle == NULL);
}

/* The newest kernel registered directly to this key of this operator. */
static const entry *newest(int op, tn_key key)
{
    for (int i = world.n; i-- > 0;) {
        const entry *e = &world.entries[i];
        bool has_kernel = e->kind == KERNEL || (e->kind == DEFINITION && e->alive);
        if (has_kernel && e->op == op && e->key == key)
            return e;
    }
    return NULL;
}

static void call_something(void)
{
    int op = (int)pick(OPS);
    tn_key key = keys[pick(4)];
    tn_op *handle;
    if (tn_op_find(names[op], &handle) != TN_OK)
        return;
    EXPECT_EQ_INT(tn_op_has_schema(handle), is_defined(op));
    tn_status st = kit_call(names[op], kit_keys(key));
    const entry *e = newest(op, key);
    if (!is_defined(op))
        EXPECT_EQ_INT(st, TN_INVALID);
    else if (e && e->alive)
        EXPECT_OK(st);
    else if (st != TN_UNSUPPORTED)
        EXPECT_OK(st);
    if (e) { /* a kernel of its own is always in its slot */
        tn_slot_info info;
        EXPECT_OK(tn_op_slot(handle, tni_key_slot(key), &info));
        EXPECT_STR(info.name, e->alive ? e->letter : "fallthrough");
        EXPECT_EQ_INT(info.fallthrough, !e->alive);
    }
    tn_clear_error();
}

TEST(random_programs_leave_the_registry_as_they_should)
{
    world.k = kit_open();
    tn_library_close(TN_MOVE(world.k.defs)); /* fragments define */
    for (int i = 0; i < LIBRARIES; i++)
        ASSERT_OK(
            tn_library_open(TN_LIBRARY_FRAGMENT, "t", TN_KEY_NONE, "x.c", i, &world.libraries[i]));
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "_", TN_KEY_NONE, "x.c", 9, &world.fallbacks));
    const int steps = test_sanitized() ? 4000 : 20000;
    for (int step = 0; step < steps; step++) {
        test_note("step %d", step);
        unsigned what = pick(100);
        if (what < 30 && world.n < MOST)
            add_something();
        else if (what < 55 && world.n > 0)
            undo_something();
        else if (what < 57)
            reopen_library();
        else if (what < 60)
            change_listener();
        else
            call_something();
        check_listeners();
        if (step % 200 == 0)
            ASSERT_OK(tn_check_invariants());
    }
    for (int i = 0; i < LISTENERS; i++)
        tn_registration_undo(world.listeners[i].handle);
    for (int i = 0; i < LIBRARIES; i++)
        tn_library_close(world.libraries[i]);
    tn_library_close(world.fallbacks);
    while (world.n > 0) {
        expect_dead(&world.entries[0]);
        tn_registration_undo(world.entries[0].handle);
        forget_entry(0);
    }
    kit_close(&world.k);
    char *dangling;
    ASSERT_OK(tn_find_dangling(&dangling));
    EXPECT_STR(dangling, "");
    tn_string_free(dangling);
    EXPECT_OK(tn_check_invariants());
}
