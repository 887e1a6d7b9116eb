/* SPDX-License-Identifier: MIT */
/* dispatch/boxed.c: calling operators with boxed values: arrays and stacks. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "dispatch/arguments.h"
#include "dispatch/debug.h"

tn_keyset tni_keys_of_values(const tni_schema *schema, const tn_value *args)
{
    tn_keyset ks = 0;
    for (uint64_t bits = schema->tensor_args; bits; bits &= bits - 1) {
        const tn_value *v = &args[__builtin_ctzll(bits)];
        if (v->tag == TN_TAG_TENSOR)
            ks |= v->u.tensor ? tni_keys(v->u.tensor) : 0;
        else if (v->tag == TN_TAG_TENSOR_LIST)
            ks |= tni_keys_of_list(v->u.tensors, v->count);
        else if (v->tag == TN_TAG_LIST) {
            for (uint32_t i = 0; i < v->count; i++) {
                const tn_value *e = &v->u.values[i];
                ks |= e->tag == TN_TAG_TENSOR && e->u.tensor ? tni_keys(e->u.tensor) : 0;
            }
        }
    }
    for (uint64_t bits = schema->generator_args; bits; bits &= bits - 1) {
        const tn_value *v = &args[__builtin_ctzll(bits)];
        ks |= v->tag == TN_TAG_GENERATOR ? tni_generator_keys(v->u.generator) : 0;
    }
    return ks;
}

/* One boxed call, however it came. The functions that take it are inlined into the public calls,
 * which know most of it. */
typedef struct request {
    tn_call *caller; /* whose kernel goes on; NULL for a call from outside */
    tn_op *op;
    tn_keyset keys;       /* of a redispatch */
    tn_key key;           /* that this key's kernel is to run, whatever the table says; else NONE */
    const tn_value *args; /* given in an array … */
    int nargs;
    tn_value *rets;
    tn_stack *stack; /* … or on a stack */
    const tni_schema *schema;
} request;

#define INLINE static inline __attribute__((always_inline))

/* The kernel of q->key instead of the table's. The frame was begun first: from then on nothing that
 * the registry names can be freed under us. */
static tn_status take_kernel_of_key(tn_call *call, tn_key key)
{
    tn_op *op = call->op;
    tni_lock();
    const tni_record *r = tni_records_newest(op->records, key);
    if (!r && tni_key_is_runtime(key))
        r = tni_registry_.fallbacks[tni_key_slot(key)];
    if (r)
        call->kernel = &r->kernel;
    if (r && tni_key_is_runtime(key)) /* the one that runs, also for what it redispatches to */
        call->slot = (uint16_t)tni_key_slot(key);
    tni_unlock();
    TN_CHECK(r, TN_UNSUPPORTED, "%s has no kernel registered to %s, and that key has no fallback",
             op->name, tn_key_name(key));
    TN_CHECK(!tni_is_fallthrough(&r->kernel), TN_UNSUPPORTED,
             "%s: the kernel registered to %s falls through; there is nothing to run", op->name,
             tn_key_name(key));
    return TN_OK;
}

static TNI_COLD tn_status redefined(const tn_op *op)
{
    TN_FAIL(TN_INVALID, "%s: its definition was undone while it was being called", op->name);
}

INLINE tn_status run(const request *q, tn_keyset arg_keys, const tn_value *args, tn_value *rets)
{
    tn_status st = TN_OK;
    const tni_schema *schema = q->schema;
    tn_event_kind kind = q->caller ? TN_EVENT_REDISPATCH_BOXED : TN_EVENT_CALL_BOXED;
    tn_keyset ks = q->caller ? q->keys : arg_keys;
    /* Watchers are told what the table says; a call by key does not ask it. */
    tn_call *call = q->key == TN_KEY_NONE
                        ? tni_begin(q->caller, q->op, ks, kind, args, schema->nargs, &st)
                        : tni_begin_unwatched(NULL, q->op, ks, kind, args, schema->nargs, &st);
    if (TNI_UNLIKELY(!call))
        return st;
    call->schema = schema;
    /* When another thread defined the operator anew after we read the schema, the kernel may expect
     * other arguments. A definition goes before its table changes, so looking again is enough. */
    if (TNI_UNLIKELY(atomic_load_explicit(&q->op->schema, memory_order_acquire) != schema))
        st = redefined(q->op);
    else if (q->key != TN_KEY_NONE)
        st = take_kernel_of_key(call, q->key);
    if (TNI_LIKELY(st == TN_OK))
        st = tni_run_kernel(call, schema, args, rets);
    return tni_call_end(call, st);
}

static tn_status reserve(tn_stack *stack, size_t n)
{
    if (n <= stack->capacity)
        return TN_OK;
    size_t capacity = n < 16 ? 16 : 2 * n;
    tn_value *values =
        tni_realloc(stack->values, stack->n * sizeof *values, capacity * sizeof *values);
    TN_CHECK(values, TN_NOMEM, "cannot grow a stack to %zu values", capacity);
    stack->values = values;
    stack->capacity = capacity;
    return TN_OK;
}

/* The arguments on top of the stack, with room for the results in their place. */
INLINE tn_status find_on_stack(request *q)
{
    size_t nargs = (size_t)q->schema->nargs, nrets = (size_t)q->schema->nrets;
    tn_stack *stack = q->stack;
    TN_CHECK(stack->n >= nargs, TN_INVALID,
             "%s: takes %zu arguments, but the stack holds %zu values", q->op->name, nargs,
             stack->n);
    TN_TRY(reserve(stack, stack->n - nargs + nrets));
    q->args = nargs ? stack->values + (stack->n - nargs) : NULL;
    q->nargs = q->schema->nargs;
    return TN_OK;
}

/* The kernel has succeeded: only now are results written and do arguments leave the stack. */
INLINE void deliver(const request *q, const tn_value *rets)
{
    int nrets = q->schema->nrets;
    tn_value *to = q->rets;
    if (q->stack) {
        tn_stack_drop(q->stack, (size_t)q->schema->nargs);
        to = q->stack->values + q->stack->n;
        q->stack->n += (size_t)nrets;
    }
    for (int i = 0; i < nrets; i++)
        to[i] = rets[i];
}

/* Some arguments are missing, or not in the form that the schema says. */
static __attribute__((noinline)) tn_status settle_and_run(const request *q, tn_value *room)
{
    tni_arguments args = {.room = room};
    tn_status st = tni_arguments_take(&args, q->op, q->schema, q->args, q->nargs);
    if (st == TN_OK)
        st = run(q, tni_keys_of_values(q->schema, args.values), args.values,
                 room + q->schema->nargs);
    tni_arguments_done(&args);
    return st;
}

/* @p room has a place for each argument, and then each result. */
INLINE tn_status perform(request *q, tn_value *room)
{
    const tni_schema *schema = q->schema;
    if (q->stack)
        TN_TRY(find_on_stack(q));
    else
        TN_CHECK(q->rets || schema->nrets == 0, TN_INVALID, "%s: 'rets' must not be NULL",
                 q->op->name);
    tn_value *rets = room + schema->nargs;
    tn_keyset arg_keys = 0;
    tn_status st;
    if (TNI_LIKELY(q->nargs == schema->nargs && tni_arguments_fit(schema, q->args, &arg_keys))) {
        st = run(q, arg_keys, q->args, rets);
    } else {
        request copy = *q; /* so that *q itself can stay in registers */
        st = settle_and_run(&copy, room);
    }
    if (TNI_LIKELY(st == TN_OK))
        deliver(q, rets);
    return st;
}

/* Calls nest deeply: an operator of usual size takes little of the C stack. */
enum { USUAL_ROOM = 12 };

static __attribute__((noinline)) tn_status perform_large(request *q)
{
    tn_value room[2 * TNI_SCHEMA_MAX_ARGS];
    return perform(q, room);
}

INLINE tn_status perform_any(request *q)
{
    if (TNI_UNLIKELY(q->schema->nargs + q->schema->nrets > USUAL_ROOM)) {
        request copy = *q;
        return perform_large(&copy);
    }
    tn_value room[USUAL_ROOM];
    return perform(q, room);
}

INLINE tn_status call_from_outside(request *q)
{
    tni_state *s = &tni_tls;
    if (TNI_UNLIKELY(s->limit == 0))
        TN_TRY(tni_ready());
    bool entered = tni_epoch_open(s);
    q->schema = atomic_load_explicit(&q->op->schema, memory_order_acquire);
    if (TNI_UNLIKELY(!q->schema))
        q->schema = tni_op_get_schema(q->op);
    tn_status st = q->schema ? perform_any(q) : tn_last_status();
    if (entered)
        tni_epoch_close(s);
    return st;
}

/* A built-in operator's schema stays; any other is the one that the kernel was called with. */
static inline const tni_schema *schema_of_call(const tn_call *call)
{
    return call->op->builtin ? tni_op_get_schema(call->op) : call->schema;
}

INLINE tn_status call_from_kernel(request *q)
{
    q->op = q->caller->op;
    q->schema = schema_of_call(q->caller);
    if (TNI_UNLIKELY(!q->schema))
        return tn_last_status();
    q->nargs = q->schema->nargs; /* all of them, as a kernel has them */
    TN_CHECK(q->args || q->stack || q->nargs == 0, TN_INVALID, "%s: 'args' must not be NULL",
             q->op->name);
    return perform_any(q);
}

/* ---- the public calls ---- */

tn_status tn_op_call(tn_op *op, const tn_value *args, int nargs, tn_value *rets)
{
    TN_CHECK(op && (args || nargs == 0), TN_INVALID, "tn_op_call: '%s' must not be NULL",
             op ? "args" : "op");
    request q = {.op = op, .key = TN_KEY_NONE, .args = args, .nargs = nargs, .rets = rets};
    return call_from_outside(&q);
}

tn_status tn_op_call_boxed(tn_op *op, tn_stack *stack)
{
    TN_CHECK(op && stack, TN_INVALID, "tn_op_call_boxed: '%s' must not be NULL",
             op ? "stack" : "op");
    request q = {.op = op, .key = TN_KEY_NONE, .stack = stack};
    return call_from_outside(&q);
}

tn_status tn_op_call_for_key(tn_op *op, tn_key key, tn_stack *stack)
{
    TN_CHECK(op && stack, TN_INVALID, "tn_op_call_for_key: '%s' must not be NULL",
             op ? "stack" : "op");
    TN_CHECK(tni_key_is_runtime(key) || tni_key_is_alias(key), TN_INVALID,
             "tn_op_call_for_key: %d is not a dispatch key", (int)key);
    request q = {.op = op, .key = key, .stack = stack};
    return call_from_outside(&q);
}

tn_status tn_call_redispatch(tn_call *call, tn_keyset ks, const tn_value *args, tn_value *rets)
{
    TN_CHECK(call, TN_INVALID, "tn_call_redispatch: 'call' must not be NULL");
    request q = {.caller = call, .keys = ks, .key = TN_KEY_NONE, .args = args, .rets = rets};
    return call_from_kernel(&q);
}

tn_status tn_op_call_with_keys(tn_op *op, tn_keyset ks, const tn_value *args, int nargs,
                               tn_value *rets)
{
    TN_CHECK(op && (args || nargs == 0), TN_INVALID, "tn_op_call_with_keys: '%s' must not be NULL",
             op ? "args" : "op");
    const tni_state *s = &tni_tls;
    tn_call outside = {.op = op, .slot = UINT16_MAX}; /* above every key */
    tn_call *innermost = s->depth ? &s->frames[s->depth - 1] : NULL;
    request q = {.caller = innermost && innermost->op == op ? innermost : &outside,
                 .op = op,
                 .keys = ks,
                 .key = TN_KEY_NONE,
                 .args = args,
                 .nargs = nargs,
                 .rets = rets};
    return call_from_outside(&q);
}

tn_status tn_op_redispatch_boxed(tn_call *call, tn_keyset ks, tn_stack *stack)
{
    TN_CHECK(call && stack, TN_INVALID, "tn_op_redispatch_boxed: '%s' must not be NULL",
             call ? "stack" : "call");
    request q = {.caller = call, .keys = ks, .key = TN_KEY_NONE, .stack = stack};
    return call_from_kernel(&q);
}

tn_status tn_op_parse_arguments(tn_op *op, const char *const *texts, int n, tn_value *args)
{
    TN_CHECK(op && (texts || n == 0) && n >= 0 && args, TN_INVALID,
             "tn_op_parse_arguments: 'op', 'texts' and 'args' must not be NULL");
    TN_TRY(tni_ready());
    tni_str joined = TNI_STR_INIT;
    for (int i = 0; i < n; i++)
        tni_str_addf(&joined, "%s%s", i ? ", " : "", texts[i] ? texts[i] : "");
    bool entered = tni_epoch_enter();
    const tni_schema *schema = tni_op_get_schema(op);
    tn_status st = joined.failed
                       ? tni_fail(TN_NOMEM, TNI_WHERE, "cannot join the arguments of %s", op->name)
                   : schema ? tni_args_parse(schema, tni_str_get(&joined), args)
                            : tn_last_status();
    tni_epoch_leave(entered);
    tni_str_clear(&joined);
    return st;
}

/* ---- what a kernel may ask ---- */

tn_op *tn_call_op(const tn_call *call)
{
    return call ? call->op : NULL;
}

tn_keyset tn_call_keys(const tn_call *call)
{
    return call ? call->keys : 0;
}

void *tn_call_context(const tn_call *call)
{
    return call ? call->kernel->ctx : NULL;
}

int tn_call_num_arguments(const tn_call *call)
{
    const tni_schema *schema = call ? schema_of_call(call) : NULL;
    return schema ? schema->nargs : 0;
}

int tn_call_num_returns(const tn_call *call)
{
    const tni_schema *schema = call ? schema_of_call(call) : NULL;
    return schema ? schema->nrets : 0;
}
