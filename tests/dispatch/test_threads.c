/* SPDX-License-Identifier: MIT */
/* Calling, registering and undoing at once, from many threads, across fork() and at the end of
 * threads: nobody waits for ever, and nothing is freed while it is in use. Run it under the thread
 * and the address sanitizer. */
#define _GNU_SOURCE /* sched_yield, pthread_barrier_t */
#include "dispatch/kit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/alloc.h"
#include "core/state.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"

static int rounds(int n)
{
    return test_sanitized() ? n / 4 : n;
}

/* ---- contexts that know whether they are in use ---- */

enum { ALIVE = 0x600D, POISONED = 0xDEAD };

typedef struct context {
    _Atomic int magic;
    _Atomic int inside;
} context;

static _Atomic int made, destroyed;
static bool in_child; /* has lost threads that were inside */

static context *context_new(void)
{
    context *c = malloc(sizeof *c);
    ASSERT(c != NULL);
    atomic_init(&c->magic, ALIVE);
    atomic_init(&c->inside, 0);
    made++;
    return c;
}

static void context_destroy(void *ctx)
{
    context *c = ctx;
    EXPECT_EQ_INT(c->magic, ALIVE);
    EXPECT(in_child || c->inside == 0);
    c->magic = POISONED;
    destroyed++;
    free(c);
}

static void use(tn_call *call)
{
    context *c = tn_call_context(call);
    c->inside++;
    EXPECT_EQ_INT(c->magic, ALIVE);
    if ((c->inside & 3) == 1)
        sched_yield();
    EXPECT_EQ_INT(c->magic, ALIVE);
    c->inside--;
}

static tn_status use_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    use(call);
    (void)args;
    for (int i = 0; i < tn_call_num_returns(call); i++)
        rets[i] = tn_value_int(1);
    return TN_OK;
}

static tn_status use_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    use(call);
    *out = tn_tensor_ref(self);
    return TN_OK;
}

static tn_status use_and_redispatch(tn_call *call, const tn_value *args, tn_value *rets)
{
    use(call);
    tn_keyset ks = tn_call_keys(call);
    tn_status st =
        tn_call_redispatch(call, ks & tn_keyset_full_after(tn_keyset_highest(ks)), args, rets);
    use(call);
    return st;
}

static tn_kernel context_kernel(tn_kernel kernel)
{
    kernel.ctx = context_new();
    kernel.destroy = context_destroy;
    return kernel;
}

static tn_kernel boxed_kernel(tn_boxed_fn fn)
{
    tn_kernel k = TN_KERNEL_INIT(fn);
    return context_kernel(k);
}

/* ---- calling while others register and undo ---- */

static struct {
    kit k;
    tn_library *aten;
    tn_tensor *t;
    tn_op *op, *come_and_go;
    _Atomic bool stop;
    _Atomic int running;
    _Atomic long calls, served;
} all;

/* OK, or that there was no kernel or no definition at that moment. */
static void expect_served_or_missing(tn_status st)
{
    all.calls++;
    if (st == TN_OK)
        all.served++;
    else if (st != TN_UNSUPPORTED && !strstr(tn_last_error(), "Could not find schema") &&
             !strstr(tn_last_error(), "definition was undone"))
        EXPECT_OK(st);
}

static void call_until_stopped(void)
{
    tn_tensor *t = all.t;
    tn_value arg = tn_value_tensor(t), ret, rets[3];
    while (!all.stop) {
        tn_tensor *out = NULL;
        tn_status st = tn_op_call(all.op, &arg, 1, &ret);
        expect_served_or_missing(st);
        EXPECT(st != TN_OK || ret.u.i == 1);
        tn_set_key_excluded(TN_KEY_TRACER, true);
        st = tn_neg(t, &out);
        tn_set_key_excluded(TN_KEY_TRACER, false);
        expect_served_or_missing(st);
        EXPECT(st == TN_OK ? out == t : out == NULL);
        tn_tensor_unref(out);
        expect_served_or_missing(tn_op_call(all.come_and_go, &arg, 1, rets));
    }
}

/* Keep up to eight kernels registered and undo them in any order. */
static void register_kernels(unsigned seed, int n)
{
    tn_registration *handles[8] = {0};
    for (int i = 0; i < n; i++) {
        unsigned at = (unsigned)rand_r(&seed) % 8;
        if (handles[at]) {
            tn_registration_undo(handles[at]);
            handles[at] = NULL;
            continue;
        }
        tn_kernel k;
        tn_status st;
        switch ((unsigned)rand_r(&seed) % 4) {
        case 0:
            k = boxed_kernel(use_and_redispatch);
            st = tn_library_impl(all.k.impls, "op", TN_KEY_TRACER, &k, &handles[at]);
            break;
        case 1:
            k = boxed_kernel(use_boxed);
            st = tn_library_impl(all.k.impls, "op", TN_KEY_PRIVATE1, &k, &handles[at]);
            break;
        case 2:
            k = context_kernel(tn_kernel_neg(use_typed, __FILE__, __LINE__));
            st = tn_library_impl(all.aten, "neg", TN_KEY_PRIVATE1, &k, &handles[at]);
            break;
        default:
            k = boxed_kernel(use_boxed);
            st = tn_library_impl(all.k.impls, "come_and_go", TN_KEY_COMPOSITE_IMPLICIT, &k,
                                 &handles[at]);
        }
        EXPECT_OK(st);
    }
    for (int i = 0; i < 8; i++)
        tn_registration_undo(handles[i]);
}

static void register_fallbacks(unsigned seed, int n)
{
    for (int i = 0; i < n; i++) {
        tn_registration *handle;
        tn_kernel through = tn_kernel_fallthrough("x.c", 1);
        tn_kernel k = rand_r(&seed) % 2 ? boxed_kernel(use_and_redispatch) : through;
        EXPECT_OK(tn_library_fallback(all.k.fallbacks, TN_KEY_TRACER, &k, &handle));
        sched_yield();
        tn_registration_undo(handle);
    }
}

/* Schemas with different numbers of arguments and results. */
static void define_and_undo(unsigned seed, int n)
{
    for (int i = 0; i < n; i++) {
        tn_registration *handle;
        tn_library *lib;
        bool large = rand_r(&seed) % 2;
        tn_kernel k = boxed_kernel(use_boxed);
        const char *schema = large ? "come_and_go(Tensor x, int a=1, int b=2) -> (int, int, int)"
                                   : "come_and_go(Tensor x) -> int";
        EXPECT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "t", TN_KEY_NONE, "x.c", 1, &lib));
        EXPECT_OK(tn_library_def(lib, schema, &k, &handle));
        sched_yield();
        if (rand_r(&seed) % 2)
            tn_registration_undo(TN_MOVE(handle));
        tn_library_close(lib);
        tn_registration_undo(handle);
    }
}

static void hammer(int i, void *arg)
{
    (void)arg;
    if (i < 4) {
        call_until_stopped();
        return;
    }
    if (i < 6) {
        do /* until a caller had a processor while there was a kernel */
            register_kernels((unsigned)i, rounds(1200));
        while (!all.served);
    } else if (i == 6) {
        register_fallbacks((unsigned)i, rounds(16)); /* each recomputes every table */
    } else {
        define_and_undo((unsigned)i, rounds(300));
    }
    if (--all.running == 0)
        all.stop = true;
}

static void open_all(void)
{
    all.k = kit_open();
    all.t = kit_tensor(kit_keys(TN_KEY_PRIVATE1) | tn_keyset_of(TN_KEY_TRACER));
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, "x.c", 1, &all.aten));
    all.op = kit_def(&all.k, "op(Tensor x) -> int");
    kit_def(&all.k, "come_and_go(Tensor x) -> int"); /* makes the name */
    all.come_and_go = kit_op("t::come_and_go");
    tn_library_close(TN_MOVE(all.k.defs));
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "t", TN_KEY_NONE, "x.c", 1, &all.k.defs));
    kit_def(&all.k, "op(Tensor x) -> int");
    EXPECT_EQ_INT(tn_op_num_returns(kit_op("aten::neg")), 1); /* parses its schema, once */
    all.calls = all.served = 0;
    all.stop = false;
    made = destroyed = 0;
}

static void close_all(void)
{
    tn_tensor_unref(all.t);
    tn_library_close(all.aten);
    kit_close(&all.k);
}

TEST(calls_go_on_while_kernels_fallbacks_and_definitions_come_and_go)
{
    open_all();
    all.running = 4;
    run_threads(8, hammer, NULL);
    close_all();
    EXPECT_OK(tn_check_invariants());
    EXPECT(made > 100);
    EXPECT_EQ_INT(destroyed, made);
    EXPECT(all.served > 0);
}

static void register_without_memory(int i, void *arg)
{
    (void)arg;
    if (i < 3) {
        EXPECT_EQ_INT(tn_op_num_returns(all.op), 1); /* this thread is known, and needs no memory */
        all.running++;
        call_until_stopped();
        return;
    }
    while (all.running < 3)
        sched_yield();
    for (int n = 0; n < rounds(2000); n++) {
        tn_registration *handle;
        tn_kernel through = tn_kernel_fallthrough("x.c", 1);
        tn_kernel k = n % 3 == 0   ? through
                      : n % 3 == 1 ? boxed_kernel(use_and_redispatch)
                                   : boxed_kernel(use_boxed);
        tn_key key = n % 3 == 2 ? TN_KEY_PRIVATE1 : TN_KEY_TRACER;
        EXPECT_OK(tn_library_impl(all.k.impls, "op", key, &k, &handle));
        tni_alloc_watch(0, true); /* the table in use is patched */
        tn_registration_undo(handle);
        tni_alloc_unwatch();
    }
    all.stop = true;
}

TEST(calls_go_on_while_tables_are_patched_for_lack_of_memory)
{
    open_all();
    tn_kernel always = boxed_kernel(use_boxed);
    ASSERT_OK(tn_library_impl(all.k.impls, "op", TN_KEY_PRIVATE1, &always, NULL));
    all.running = 0;
    run_threads(4, register_without_memory, NULL);
    EXPECT_OK(tn_check_invariants());
    close_all();
    EXPECT_EQ_INT(destroyed, made);
}

/* ---- one thread inside a kernel, another changes the registry ---- */

static pthread_barrier_t meeting;

static tn_status wait_inside(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)args;
    use(call);
    pthread_barrier_wait(&meeting); /* we are inside */
    pthread_barrier_wait(&meeting); /* the other is done */
    use(call);
    rets[0] = tn_value_int(1);
    return TN_OK;
}

static tn_status wait_and_redispatch(tn_call *call, const tn_value *args, tn_value *rets)
{
    pthread_barrier_wait(&meeting);
    pthread_barrier_wait(&meeting);
    return tn_call_redispatch(call, tn_keyset_of(TN_KEY_CPU), args, rets);
}

typedef struct visit {
    tn_op *op;
    tn_status wanted;
    const char *text;
} visit;

/* Thread 0 calls; thread 1 meets it inside and does @p change. */
static void (*change)(void);

static void visit_or_change(int i, void *arg)
{
    const visit *v = arg;
    if (i == 1) {
        pthread_barrier_wait(&meeting);
        change();
        pthread_barrier_wait(&meeting);
        return;
    }
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU) | tn_keyset_of(TN_KEY_TRACER));
    tn_value arg0 = tn_value_tensor(t), ret[2] = {tn_value_int(0), tn_value_int(42)};
    if (v->wanted == TN_OK)
        EXPECT_OK(tn_op_call(v->op, &arg0, 1, ret));
    else
        EXPECT_FAIL(v->wanted, v->text, tn_op_call(v->op, &arg0, 1, ret));
    EXPECT_EQ_INT(ret[0].u.i, v->wanted == TN_OK);
    EXPECT_EQ_INT(ret[1].u.i, 42); /* there was room for one */
    tn_tensor_unref(t);
}

static void meet(const visit *v, void (*what)(void))
{
    visit copy = *v;
    change = what;
    pthread_barrier_init(&meeting, NULL, 2);
    run_threads(2, visit_or_change, &copy);
    pthread_barrier_destroy(&meeting);
}

static kit shared_kit;
static tn_library *shared_library;

static void close_shared_library(void)
{
    tn_library_close(TN_MOVE(shared_library));
    EXPECT_EQ_INT(destroyed, 0); /* a call is inside */
}

TEST(closing_a_library_leaves_the_calls_inside_alone)
{
    kit k = kit_open();
    made = destroyed = 0;
    ASSERT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "t", TN_KEY_NONE, "x.c", 1, &shared_library));
    tn_kernel kernel = boxed_kernel(wait_inside);
    ASSERT_OK(tn_library_def(shared_library, "op(Tensor x) -> int", NULL, NULL));
    ASSERT_OK(tn_library_impl(shared_library, "op", TN_KEY_TRACER, &kernel, NULL));
    visit v = {kit_op("t::op"), TN_OK, ""};
    meet(&v, close_shared_library);
    EXPECT_EQ_INT(destroyed, 1); /* the thread's end has let it go */
    kit_close(&k);
}

static tn_registration *shared_definition;

static void define_with_more_results(void)
{
    tn_registration_undo(TN_MOVE(shared_definition));
    EXPECT_OK(tn_library_def(shared_kit.defs,
                             "op(Tensor x, Tensor y, Tensor z) -> (int, int, int, int, int, int)",
                             NULL, NULL));
}

TEST(a_call_keeps_the_schema_that_it_began_with)
{
    shared_kit = kit_open();
    tn_kernel kernel = boxed_kernel(wait_inside);
    ASSERT_OK(tn_library_def(shared_kit.defs, "op(Tensor x) -> int", NULL, &shared_definition));
    ASSERT_OK(tn_library_impl(shared_kit.impls, "op", TN_KEY_TRACER, &kernel, NULL));
    visit v = {kit_op("t::op"), TN_OK, ""};
    meet(&v, define_with_more_results);
    kit_close(&shared_kit);
}

TEST(a_redispatch_after_the_definition_went_is_refused)
{
    shared_kit = kit_open();
    tn_kernel kernel = TN_KERNEL_INIT(wait_and_redispatch);
    ASSERT_OK(tn_library_def(shared_kit.defs, "op(Tensor x) -> int", NULL, &shared_definition));
    ASSERT_OK(tn_library_impl(shared_kit.impls, "op", TN_KEY_TRACER, &kernel, NULL));
    kit_impl(&shared_kit, "op", TN_KEY_CPU, "c");
    visit v = {kit_op("t::op"), TN_INVALID, "t::op: its definition was undone"};
    meet(&v, define_with_more_results);
    kit_close(&shared_kit);
}

/* ---- callbacks that use the registry ---- */

static _Atomic int callbacks;

static void define_and_undo_here(const char *schema)
{
    tn_library *lib;
    tn_registration *handle;
    tn_kernel kernel = kit_kernel("n");
    callbacks++;
    EXPECT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "nested", TN_KEY_NONE, "x.c", 1, &lib));
    EXPECT_OK(tn_library_def(lib, schema, &kernel, &handle));
    EXPECT_OK(tn_library_impl(lib, "other", TN_KEY_CPU, &kernel, NULL));
    EXPECT_OK(kit_call("nested::op", kit_keys(TN_KEY_CPU)));
    tn_registration_undo(handle);
    tn_library_close(lib);
    EXPECT_OK(tn_check_invariants());
}

static void use_registry(void *ctx)
{
    (void)ctx;
    define_and_undo_here("op(Tensor x) -> Tensor");
}

static void use_registry_for(void *ctx, tn_op *op)
{
    if (strncmp(tn_op_name(op), "t::", 3) == 0)
        use_registry(ctx);
}

static void use_registry_on_event(void *ctx, const tn_event *event)
{
    if (event->depth == 1 && strncmp(tn_op_name(event->op), "t::", 3) == 0)
        use_registry(ctx);
}

static int use_registry_everywhere(void *arg)
{
    (void)arg;
    kit k = kit_open();
    tn_listener l = {sizeof l, 0, use_registry_for, use_registry_for, NULL, NULL};
    tn_registration *listener, *handle;
    tn_kernel kernel = kit_kernel("c");
    kernel.destroy = use_registry;
    ASSERT_OK(tn_add_listener(&l, &listener));
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, &handle));
    EXPECT_EQ_INT(callbacks, 1);
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, NULL));
    ASSERT_OK(tn_observe_thread(use_registry_on_event, NULL));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    ASSERT_OK(tn_observe_thread(NULL, NULL));
    EXPECT_EQ_INT(callbacks, 3); /* before and after */
    tn_registration_undo(handle);
    EXPECT_EQ_INT(callbacks, 4);
    tn_registration_undo(listener);
    kit_close(&k);
    EXPECT_EQ_INT(callbacks, 5); /* the destructor */
    return 0;
}

TEST(listeners_observers_and_destructors_may_use_the_registry)
{
    EXPECT_EQ_INT(run_in_child(use_registry_everywhere, NULL, test_sanitized() ? 30 : 5), 0);
}

static void listener_told(void *ctx, tn_op *op)
{
    context *c = ctx;
    c->inside++;
    EXPECT_EQ_INT(c->magic, ALIVE);
    if (strncmp(tn_op_name(op), "t::come", 7) == 0)
        sched_yield();
    EXPECT_EQ_INT(c->magic, ALIVE);
    c->inside--;
}

static void define_or_listen(int i, void *arg)
{
    (void)arg;
    if (i < 2) {
        if (i == 0)
            define_and_undo((unsigned)i, rounds(300));
        else
            for (int n = 0; n < rounds(300); n++) {
                tn_registration *handle;
                tn_library *lib;
                EXPECT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "t", TN_KEY_NONE, "x.c", 1, &lib));
                EXPECT_OK(tn_library_def(lib, "come(Tensor x) -> int", NULL, &handle));
                tn_registration_undo(handle);
                tn_library_close(lib);
            }
        if (--all.running == 0)
            all.stop = true;
        return;
    }
    while (!all.stop) {
        tn_registration *handle;
        tn_listener l = {sizeof l, 0, listener_told, listener_told, context_new(), context_destroy};
        EXPECT_OK(tn_add_listener(&l, &handle));
        sched_yield();
        tn_registration_undo(handle);
    }
}

TEST(a_listener_is_destroyed_once_and_never_while_it_is_told)
{
    open_all();
    all.running = 2;
    run_threads(4, define_or_listen, NULL);
    close_all();
    EXPECT_EQ_INT(destroyed, made);
    EXPECT_OK(tn_check_invariants());
}

/* ---- threads end ---- */

static void call_once(int i, void *arg)
{
    (void)i;
    (void)arg;
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
}

TEST(a_thread_gives_back_what_it_had_when_it_ends)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    run_threads(8, call_once, NULL);
    int64_t before = tni_test_live;
    run_threads(8, call_once, NULL);
    EXPECT_EQ_INT(tni_test_live, before);
    kit_close(&k);
}

static pthread_key_t late_key;
static _Atomic int late_calls, late_refusals;

/* Calls an operator each time, as often as the system lets it. */
static void call_at_the_end(void *arg)
{
    tn_value v = tn_value_tensor(all.t), ret = tn_value_none();
    EXPECT_EQ_INT(tn_dispatch_depth(), 0);
    tn_status st = tn_op_call(all.op, &v, 1, &ret);
    if (st == TN_OK)
        late_calls++;
    else if (st == TN_INVALID && strstr(tn_last_error(), "this thread is ending"))
        late_refusals++;
    else
        EXPECT_OK(st);
    tn_value_clear(&ret);
    pthread_setspecific(late_key, arg);
}

static tn_status end_thread(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    pthread_setspecific(late_key, &late_key);
    pthread_exit(NULL); /* in the middle of a dispatch */
}

static void *end_inside(void *arg)
{
    tn_value v = tn_value_tensor(arg), ret;
    (void)!tn_op_call(kit_op("t::end"), &v, 1, &ret);
    return NULL;
}

TEST(a_thread_may_end_inside_a_kernel_and_its_last_destructors_may_call_operators)
{
    kit k = kit_open();
    pthread_t thread;
    kit_def_with(&k, "end(Tensor x) -> Tensor", end_thread, NULL);
    all.op = kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    late_calls = late_refusals = 0;
    ASSERT_EQ_INT(pthread_key_create(&late_key, call_at_the_end), 0);
    all.t = kit_tensor(kit_keys(TN_KEY_CPU));
    ASSERT_EQ_INT(pthread_create(&thread, NULL, end_inside, all.t), 0);
    pthread_join(thread, NULL);
    pthread_key_delete(late_key);
    EXPECT(late_calls >= 1);
    EXPECT(late_calls + late_refusals >= 3);
    /* The list of threads is sound: registering walks it. */
    made = destroyed = 0;
    tn_kernel kernel = boxed_kernel(use_boxed);
    tn_registration *handle;
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, &handle));
    tn_registration_undo(handle);
    EXPECT_EQ_INT(destroyed, 1);
    tn_tensor_unref(all.t);
    kit_close(&k);
}

/* ---- fork ---- */

/* @p arg: whether the child begins inside a kernel. */
static int use_in_child(void *arg)
{
    tn_library *lib;
    tn_registration *handle;
    int before = destroyed;
    in_child = true;
    tn_kernel kernel = boxed_kernel(use_boxed);
    ASSERT_OK(tn_library_open(TN_LIBRARY_FRAGMENT, "child", TN_KEY_NONE, "x.c", 1, &lib));
    ASSERT_OK(tn_library_def(lib, "op(Tensor x) -> int", NULL, NULL));
    ASSERT_OK(tn_library_impl(lib, "op", TN_KEY_CPU, &kernel, &handle));
    EXPECT_OK(kit_call("child::op", kit_keys(TN_KEY_CPU)));
    tn_registration_undo(handle);
    /* The threads that the child lacks hold nothing back; the kernel that it is in does. */
    EXPECT(arg ? destroyed == before : destroyed > before);
    tn_library_close(lib);
    EXPECT_OK(tn_check_invariants());
    EXPECT_OK(tn_set_dispatch_debug("x"));
    EXPECT_OK(tn_set_dispatch_debug(NULL));
    return 0;
}

static void hammer_or_fork(int i, void *arg)
{
    (void)arg;
    if (i == 0) {
        for (int n = 0; n < rounds(24); n++)
            EXPECT_EQ_INT(run_in_child(use_in_child, NULL, test_sanitized() ? 20 : 1), 0);
        all.stop = true;
    } else if (i < 3) {
        call_until_stopped();
    } else {
        while (!all.stop) {
            register_kernels((unsigned)i, 50);
            define_and_undo((unsigned)i, 10);
            (void)!tn_set_dispatch_debug("nothing");
        }
    }
}

TEST(a_child_may_call_and_register_whatever_other_threads_did_at_fork)
{
    if (test_sanitized() && !test_thread_sanitized())
        SKIP("malloc of the address sanitizer does not survive a fork() of several threads");
    open_all();
    run_threads(4, hammer_or_fork, NULL);
    ASSERT_OK(tn_set_dispatch_debug(NULL));
    close_all();
    EXPECT_EQ_INT(destroyed, made);
}

/* Refused, but only after the list of devices was locked. */
static int ask_for_device(void *arg)
{
    tn_device_vtable v = kit_no_memory();
    tn_device_type type;
    (void)arg;
    EXPECT_FAIL(TN_INVALID, "'cpu'", tn_device_register("cpu", &v, &type));
    return 0;
}

static void ask_or_fork(int i, void *arg)
{
    (void)arg;
    if (i > 0) {
        while (!all.stop)
            ask_for_device(NULL);
        return;
    }
    for (int n = 0; n < rounds(40); n++)
        EXPECT_EQ_INT(run_in_child(ask_for_device, NULL, test_sanitized() ? 20 : 1), 0);
    all.stop = true;
}

TEST(a_child_may_register_devices_whatever_other_threads_did_at_fork)
{
    if (test_sanitized() && !test_thread_sanitized())
        SKIP("malloc of the address sanitizer does not survive a fork() of several threads");
    all.stop = false;
    run_threads(3, ask_or_fork, NULL);
}

static tn_status fork_inside(tn_call *call, const tn_value *args, tn_value *rets)
{
    EXPECT_EQ_INT(run_in_child(use_in_child, call, test_sanitized() ? 20 : 1), 0);
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(a_kernel_may_fork)
{
    kit k = kit_open();
    kit_def_with(&k, "op(Tensor x) -> Tensor", fork_inside, NULL);
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
}
