/* SPDX-License-Identifier: MIT */
/* dispatch/boxed.c: calling operators with boxed values: arrays and stacks. */
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
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

static inline bool fits(const tn_value *v, const tni_schema_arg *a)
{
    if (TNI_LIKELY(v->tag == TN_TAG_TENSOR && a->type->kind == TNI_TYPE_TENSOR))
        return v->u.tensor != NULL;
    return tni_arg_fits(v, a);
}

static tn_status check_arguments(const tn_op *op, const tni_schema *schema, const tn_value *args)
{
    for (int i = 0; i < schema->nargs; i++) {
        if (TNI_LIKELY(fits(&args[i], &schema->args[i])))
            continue;
        tni_str wanted = TNI_STR_INIT;
        tni_schema_type_print(schema->args[i].type, &wanted);
        tn_status st = tni_fail(
            TN_TYPE, TNI_WHERE, "%s: argument '%s' (position %d) must be %s, not %s", op->name,
            schema->args[i].name, i, tni_str_get(&wanted), tn_tag_name((tn_tag)args[i].tag));
        tni_str_clear(&wanted);
        return st;
    }
    return TN_OK;
}

/* Run with all arguments there and checked. */
static tn_status run(tn_call *caller, tn_op *op, tn_keyset ks, const tni_schema *schema,
                     const tn_value *args, tn_value *rets)
{
    tn_status st = TN_OK;
    tn_event_kind kind = caller ? TN_EVENT_REDISPATCH_BOXED : TN_EVENT_CALL_BOXED;
    tn_call *call = tni_begin(caller, op, ks, kind, args, schema->nargs, &st);
    if (!call)
        return st;
    return tni_call_end(call, tni_run_boxed(call, args, schema->nargs, rets, schema->nrets));
}

static tn_status run_array(tn_call *caller, tn_op *op, tn_keyset ks, const tn_value *args,
                           int nargs, tn_value *rets)
{
    const tni_schema *schema = tni_op_get_schema(op);
    if (!schema)
        return tn_last_status();
    TN_CHECK(nargs >= 0 && nargs <= schema->nargs, TN_INVALID,
             "%s: takes %d arguments, but %d were given", op->name, schema->nargs, nargs);
    TN_CHECK(rets || schema->nrets == 0, TN_INVALID, "%s: 'rets' must not be NULL", op->name);
    tn_value all[TNI_SCHEMA_MAX_ARGS];
    if (nargs < schema->nargs) {
        memcpy(all, args, (size_t)nargs * sizeof *all);
        args = all;
    }
    for (int i = nargs; i < schema->nargs; i++) {
        const tni_schema_arg *a = &schema->args[i];
        TN_CHECK(a->has_default, TN_INVALID, "%s: missing value for argument '%s' (position %d)",
                 op->name, a->name, i);
        all[i] = a->default_value;
        all[i].flags = 0;
    }
    TN_TRY(check_arguments(op, schema, args));
    if (!caller)
        ks = tni_keys_of_values(schema, args);
    return run(caller, op, ks, schema, args, rets);
}

tn_status tn_op_call(tn_op *op, const tn_value *args, int nargs, tn_value *rets)
{
    TN_CHECK(op && (args || nargs == 0), TN_INVALID, "tn_op_call: '%s' must not be NULL",
             op ? "args" : "op");
    TN_TRY(tni_ready());
    bool entered = tni_epoch_enter();
    tn_status st = run_array(NULL, op, 0, args, nargs, rets);
    tni_epoch_leave(entered);
    return st;
}

tn_status tn_call_redispatch(tn_call *call, tn_keyset ks, const tn_value *args, tn_value *rets)
{
    TN_CHECK(call, TN_INVALID, "tn_call_redispatch: 'call' must not be NULL");
    const tni_schema *schema = tni_op_get_schema(call->op);
    if (!schema)
        return tn_last_status();
    TN_CHECK((args || schema->nargs == 0) && (rets || schema->nrets == 0), TN_INVALID,
             "tn_call_redispatch: 'args' and 'rets' must not be NULL");
    return run(call, call->op, ks, schema, args, rets);
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

/* ---- stacks ---- */

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

/* The arguments where they lie on the stack, checked, with room for the results in their place. */
static tn_status stack_begin(const tn_op *op, const tni_schema *schema, tn_stack *stack,
                             const tn_value **args)
{
    size_t nargs = (size_t)schema->nargs, nrets = (size_t)schema->nrets;
    TN_CHECK(stack->n >= nargs, TN_INVALID,
             "%s: takes %zu arguments, but the stack holds %zu values", op->name, nargs, stack->n);
    TN_TRY(reserve(stack, stack->n - nargs + nrets));
    *args = stack->values + (stack->n - nargs);
    return check_arguments(op, schema, *args);
}

/* The kernel has succeeded: only now do the arguments go. (On failure the stack is as before.) */
static void stack_end(const tni_schema *schema, tn_stack *stack, const tn_value *rets)
{
    tn_stack_drop(stack, (size_t)schema->nargs);
    for (int i = 0; i < schema->nrets; i++)
        stack->values[stack->n++] = rets[i];
}

static tn_status call_on_stack(tn_op *op, tn_stack *stack)
{
    const tni_schema *schema = tni_op_get_schema(op);
    if (!schema)
        return tn_last_status();
    const tn_value *args;
    tn_value rets[TNI_SCHEMA_MAX_ARGS];
    TN_TRY(stack_begin(op, schema, stack, &args));
    TN_TRY(run(NULL, op, tni_keys_of_values(schema, args), schema, args, rets));
    stack_end(schema, stack, rets);
    return TN_OK;
}

tn_status tn_op_call_boxed(tn_op *op, tn_stack *stack)
{
    TN_CHECK(op && stack, TN_INVALID, "tn_op_call_boxed: '%s' must not be NULL",
             op ? "stack" : "op");
    TN_TRY(tni_ready());
    bool entered = tni_epoch_enter();
    tn_status st = call_on_stack(op, stack);
    tni_epoch_leave(entered);
    return st;
}

tn_status tn_op_redispatch_boxed(tn_call *call, tn_keyset ks, tn_stack *stack)
{
    TN_CHECK(call && stack, TN_INVALID, "tn_op_redispatch_boxed: '%s' must not be NULL",
             call ? "stack" : "call");
    const tni_schema *schema = tni_op_get_schema(call->op);
    if (!schema)
        return tn_last_status();
    const tn_value *args;
    tn_value rets[TNI_SCHEMA_MAX_ARGS];
    TN_TRY(stack_begin(call->op, schema, stack, &args));
    TN_TRY(run(call, call->op, ks, schema, args, rets));
    stack_end(schema, stack, rets);
    return TN_OK;
}

/* ---- one key's kernel, whatever the table says ---- */

/* The frame is begun first: from then on nothing that the registry names can be freed under us. */
static tn_status run_for_key(tn_key key, tn_op *op, const tni_schema *schema, const tn_value *args,
                             tn_value *rets)
{
    tn_status st = TN_OK;
    tn_call *call = tni_begin(NULL, op, tni_keys_of_values(schema, args), TN_EVENT_CALL_BOXED, args,
                              schema->nargs, &st);
    if (!call)
        return st;
    tni_lock();
    const tni_record *r = tni_records_newest(op->records, key);
    if (!r && tni_key_is_runtime(key))
        r = tni_registry_.fallbacks[tni_key_slot(key)];
    if (r)
        call->kernel = &r->kernel;
    tni_unlock();
    if (!r)
        st = tni_fail(TN_UNSUPPORTED, TNI_WHERE,
                      "%s has no kernel registered to %s, and that key has no fallback", op->name,
                      tn_key_name(key));
    else
        st = tni_run_boxed(call, args, schema->nargs, rets, schema->nrets);
    return tni_call_end(call, st);
}

static tn_status call_for_key_on_stack(tn_op *op, tn_key key, tn_stack *stack)
{
    const tni_schema *schema = tni_op_get_schema(op);
    if (!schema)
        return tn_last_status();
    const tn_value *args;
    tn_value rets[TNI_SCHEMA_MAX_ARGS];
    TN_TRY(stack_begin(op, schema, stack, &args));
    TN_TRY(run_for_key(key, op, schema, args, rets));
    stack_end(schema, stack, rets);
    return TN_OK;
}

tn_status tn_op_call_for_key(tn_op *op, tn_key key, tn_stack *stack)
{
    TN_CHECK(op && stack, TN_INVALID, "tn_op_call_for_key: '%s' must not be NULL",
             op ? "stack" : "op");
    TN_CHECK(tni_key_is_runtime(key) || tni_key_is_alias(key), TN_INVALID,
             "tn_op_call_for_key: %d is not a dispatch key", (int)key);
    TN_TRY(tni_ready());
    bool entered = tni_epoch_enter();
    tn_status st = call_for_key_on_stack(op, key, stack);
    tni_epoch_leave(entered);
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
