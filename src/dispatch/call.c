/* SPDX-License-Identifier: MIT */
/* dispatch/call.c: the cold half of the call path: refusals, missing kernels, boxed kernels. */
#include <stdio.h>
#include <string.h>

#include "base/stack.h"
#include "base/str.h"
#include "dispatch/debug.h"
#include "dispatch/explain.h"

/* ---- refusals ---- */

static void describe_frame(tni_str *s, const tn_call *c)
{
    const tni_record *r = c->kernel->record;
    tni_str_addf(s, "%s [%s]", c->op->name, tn_key_name(tni_slot_key(c->slot)));
    if (r && r->name[0])
        tni_str_addf(s, " in %s", r->name);
    if (r && r->file[0])
        tni_str_addf(s, " (%s:%d)", r->file, r->line);
}

static bool same_hop(const tn_call *a, const tn_call *b)
{
    return a->op == b->op && a->slot == b->slot;
}

/* Length of the cycle that the innermost frames run through, 0 if they do not repeat. */
static uint32_t cycle_length(const tn_call *frames, uint32_t depth)
{
    for (uint32_t period = 1; period <= depth / 3 && period <= 64; period++) {
        bool repeats = true;
        for (uint32_t i = 0; repeats && i < 2 * period; i++)
            repeats = same_hop(&frames[depth - 1 - i], &frames[depth - 1 - i - period]);
        if (repeats)
            return period;
    }
    return 0;
}

/* The innermost @p shown frames, one a line. */
static void describe_frames(tni_str *text, const tn_call *frames, uint32_t depth, uint32_t shown)
{
    for (uint32_t i = depth - shown; i < depth; i++) {
        tni_str_add(text, "\n  ");
        describe_frame(text, &frames[i]);
        if (i + 1 < depth)
            tni_str_add(text, " ->");
    }
}

int tn_dispatch_cycle(char *text, size_t room)
{
    const tni_state *s = &tni_tls;
    uint32_t period = s->limit ? cycle_length(s->frames, s->depth) : 0;
    tni_str found = TNI_STR_INIT;
    if (period)
        describe_frames(&found, s->frames, s->depth, period);
    const char *lines = tni_str_get(&found); /* "" when there was no memory for it */
    snprintf(text, room, "%s", lines[0] ? lines + 1 : "");
    tni_str_clear(&found);
    return (int)period;
}

tn_status tni_call_admit(tn_op *op)
{
    tni_state *s = &tni_tls;
    if (s->limit == 0)
        return tni_ready();
    enum { LEAST_ROOM = 64 * 1024 }; /* for a kernel, and for the message below */
    uint32_t depth = s->depth;
    size_t left = tni_stack_left();
    bool within_limit = depth < s->record->limit;
    if (within_limit && left >= LEAST_ROOM)
        return TN_OK;
    uint32_t period = cycle_length(s->frames, depth), shown = period ? period : 12;
    char why[96] = "the limit of this thread";
    if (within_limit)
        snprintf(why, sizeof why, "and %zu KiB are left of this thread's stack", left / 1024);
    tni_str text = TNI_STR_INIT;
    describe_frames(&text, s->frames, depth, shown);
    tn_status st = tni_fail(
        TN_RECURSION, TNI_WHERE, "%s: dispatches are nested %u deep, %s. %s%s\n%s", op->name, depth,
        why, period ? "They go round in this cycle:" : "The innermost are:", tni_str_get(&text),
        period ? "A kernel must go on with a redispatch to a lower key, not by calling its own "
                 "operator again."
        : within_limit
            ? "If such depth is meant, give the thread a larger stack (ulimit -s, "
              "pthread_attr_setstacksize)."
            : "If such depth is meant, raise it with tn_set_dispatch_depth_limit before the "
              "thread first dispatches.");
    tni_str_clear(&text);
    return st;
}

tn_status tni_redispatch_refuse(const tn_call *caller, const tn_op *op, tn_keyset ks)
{
    char from_set[512], to_set[512];
    tni_str from = TNI_STR_INIT;
    describe_frame(&from, caller);
    tn_status st = tni_fail(
        TN_RECURSION, TNI_WHERE,
        "redispatch does not lower the key: the kernel of %s was called with %s and went on to %s "
        "with %s, whose highest key %s is not below its own key %s. It would loop: %s -> %s [%s]. "
        "Pass tn_call_keys(call) & tn_keyset_full_after(own key).",
        caller->op->name, tn_keyset_format(caller->keys, from_set, sizeof from_set), op->name,
        tn_keyset_format(ks, to_set, sizeof to_set), tn_key_name(tni_keyset_highest(ks)),
        tn_key_name(tni_slot_key(caller->slot)), tni_str_get(&from), op->name,
        tn_key_name(tni_keyset_highest(ks)));
    tni_str_clear(&from);
    return st;
}

/* ---- kernels that are not there, or must not be run ---- */

tn_status tni_fallthrough_fn(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)args;
    (void)rets;
    TN_FAIL(TN_INTERNAL, "%s: a fallthrough kernel was executed; please report this",
            call->op->name);
}

tn_kernel tn_kernel_fallthrough(const char *file, int line)
{
    tn_kernel k = TN_KERNEL_INIT(tni_fallthrough_fn);
    k.name = "fallthrough";
    k.file = file;
    k.line = line;
    return k;
}

tn_status tni_ambiguous_fn(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)args;
    (void)rets;
    TN_FAIL(TN_UNSUPPORTED,
            "%s has kernels registered to both CompositeImplicitAutograd and a backend mapped to "
            "AutogradOther. This makes the backend kernel unreachable; the dispatcher will always "
            "prefer the CompositeImplicitAutograd lowering. If you want to override "
            "CompositeImplicitAutograd, give the backend a dedicated Autograd dispatch key. If you "
            "only want to run inference instead of training, use inference mode "
            "(tn_inference_enter).",
            call->op->name);
}

tn_status tni_missing_kernel(tn_call *call)
{
    const tn_op *op = call->op;
    tni_stage(call, TNI_STAGE_MISSING);
    tni_str usable = TNI_STR_INIT, table = TNI_STR_INIT;
    tni_lock();
    tni_describe_backends(op, &usable);
    tni_describe_table(op, &table);
    tni_unlock();
    tn_key key = tni_slot_key(call->slot);
    tn_status st;
    if (key == TN_KEY_UNDEFINED) {
        st = tni_fail(TN_UNSUPPORTED, TNI_WHERE,
                      "There were no tensor arguments to this function (e.g., you passed an empty "
                      "list of Tensors), but no fallback function is registered for schema %s. "
                      "This usually means that this function requires a non-empty list of Tensors, "
                      "or that you (the operator writer) forgot to register a fallback function. "
                      "Available functions are [%s].\n\n%s",
                      op->name, tni_str_get(&usable), tni_str_get(&table));
    } else {
        st = tni_fail(TN_UNSUPPORTED, TNI_WHERE,
                      "Could not run '%s' with arguments from the '%s' backend. This could be "
                      "because the operator doesn't exist for this backend. Register a kernel for "
                      "it with tn_library_impl(lib, \"%s\", key of '%s', …), or a fallback for the "
                      "whole key with tn_library_fallback. '%s' is only available for these "
                      "backends: [%s].\n\n%s",
                      op->name, tn_key_name(key), op->name, tn_key_name(key), op->name,
                      tni_str_get(&usable), tni_str_get(&table));
    }
    tni_str_clear(&usable);
    tni_str_clear(&table);
    return st;
}

/* ---- boxed kernels ---- */

/* The layer falls through, but the set was given by hand (a redispatch), or the table was patched
 * while we looked: go to the next lower key. */
static void step_below_fallthrough(tn_call *call)
{
    const tni_table *t = tni_op_table(call->op);
    while (tni_is_fallthrough(call->kernel) && call->slot) {
        tn_key functionality = tni_key_functionality(tni_slot_key(call->slot));
        call->keys = tni_keyset_minus(call->keys, tni_key_set(functionality));
        call->slot = (uint16_t)tni_keyset_slot(call->keys);
        call->kernel = atomic_load_explicit(&((tni_table *)(uintptr_t)t)->slots[call->slot],
                                            memory_order_acquire);
    }
}

/* A written argument that the schema returns: the caller's own reference is the result. */
static tn_status settle_identities(const tn_call *call, const tni_schema *schema,
                                   const tn_value *args, tn_value *rets)
{
    for (int i = 0; i < schema->nrets; i++) {
        const tni_alias *alias = schema->rets[i].type->alias;
        if (!alias || !alias->write)
            continue;
        for (int a = 0; a < schema->nargs; a++) {
            const tni_alias *from = schema->args[a].type->alias;
            if (!from || !from->write || strcmp(from->before, alias->before) != 0 ||
                args[a].tag != TN_TAG_TENSOR)
                continue;
            if (rets[i].tag == TN_TAG_NONE) {
                rets[i] = tn_value_take_tensor(tn_tensor_ref(args[a].u.tensor));
            } else if (rets[i].tag != TN_TAG_TENSOR || rets[i].u.tensor != args[a].u.tensor) {
                TN_FAIL(TN_INVALID,
                        "%s: the kernel returned another value than its written argument '%s'; "
                        "return that argument, or leave the result None",
                        call->op->name, schema->args[a].name);
            }
            break;
        }
    }
    return TN_OK;
}

/* The usual result: a tensor that is the caller's now, or a number, which needs no copy. A built-in
 * operator may also give no tensor: a gradient that was not asked for. */
static inline bool is_settled(const tn_call *call, tn_value *r, tni_type_kind kind)
{
    static const uint8_t number_tags[] = {[TNI_TYPE_INT] = TN_TAG_INT,
                                          [TNI_TYPE_FLOAT] = TN_TAG_FLOAT,
                                          [TNI_TYPE_BOOL] = TN_TAG_BOOL};
    if (kind == TNI_TYPE_TENSOR)
        return r->tag == TN_TAG_TENSOR &&
               (r->u.tensor ? (r->flags & TN_VALUE_OWNED) != 0 : call->op->builtin != NULL);
    if (kind > TNI_TYPE_BOOL || r->tag == TN_TAG_NONE || r->tag != number_tags[kind])
        return false;
    r->flags = TN_VALUE_OWNED;
    return true;
}

/* "No gradient" from a kernel that has no way to say "no tensor": of a built-in operator that is
 * told by `output_mask` which of its results are wanted. */
static bool is_left_out(const tn_call *call, const tni_schema *schema, tn_value *r)
{
    if (r->tag != TN_TAG_NONE || !call->op->builtin)
        return false;
    for (int a = 0; a < schema->nargs; a++)
        if (strcmp(schema->args[a].name, "output_mask") == 0) {
            *r = tn_value_tensor(NULL);
            return true;
        }
    return false;
}

static tn_status check_results(const tn_call *call, const tni_schema *schema, const tn_value *args,
                               tn_value *rets)
{
    if (schema->is_mutable)
        TN_TRY(settle_identities(call, schema, args, rets));
    for (int i = 0; i < schema->nrets; i++) {
        tn_value *r = &rets[i];
        if (is_settled(call, r, schema->rets[i].type->kind) ||
            (schema->rets[i].type->kind == TNI_TYPE_TENSOR && is_left_out(call, schema, r)))
            continue;
        TN_CHECK(tni_arg_fits(r, &schema->rets[i]), TN_TYPE,
                 "%s: the kernel's result %d is %s, which does not fit the schema", call->op->name,
                 i, tn_tag_name((tn_tag)r->tag));
        if (r->flags & TN_VALUE_OWNED)
            continue;
        tn_value owned; /* a kernel that handed back something borrowed */
        TN_TRY(tn_value_copy(r, &owned));
        *r = owned;
    }
    return TN_OK;
}

/* See Note [Stages in the record]. */
static TNI_COLD void tell_invocation(tn_call *call, unsigned stage)
{
    tni_debug_line("KernelFunction::callBoxed", "About to call boxed_kernel_func_.callBoxed()");
    tni_stage(call, stage);
    tni_debug_line("BoxedKernel::callBoxed", "About to invoke (*boxed_kernel_func_)(...)");
}

/* Note [Composites from outside]
 * A kernel that somebody registered as made of operators stands where autograd would have its turn,
 * and has the gradients of what it calls. That need not be true of it: it may compute with elements
 * itself. So autograd looks on (composite_guard), at boxed arguments and results: the table has no
 * typed entry for such a record, and its adaptor goes on to the one that was registered. The
 * kernels of the library itself are as they say. */
static bool is_composite_from_outside(const tn_call *call)
{
    const tni_record *r = call->kernel->record;
    return (call->keys & TNI_KS_AUTOGRAD) && r && r->text && r->key == TN_KEY_COMPOSITE_IMPLICIT;
}

/* The boxed entry is the adaptor of a typed kernel, one of ours. */
static bool has_adaptor(const tn_call *call)
{
    const tni_record *r = call->kernel->record;
    return call->op->builtin && r && r->typed;
}

static tn_status invoke(tn_call *call, const tn_value *args, tn_value *rets)
{
    bool debug = tni_observing && tni_debug_on(call->op->name);
    /* The boxed entry of a typed kernel of ours says itself when it enters the kernel. */
    unsigned stage = has_adaptor(call) ? TNI_STAGE_BOXED : TNI_STAGE_INSIDE;
    if (debug)
        tell_invocation(call, stage);
    tni_stage(call, stage);
    tn_boxed_fn run = is_composite_from_outside(call) && tni_registry_.composite_guard
                          ? tni_registry_.composite_guard
                          : call->kernel->boxed;
    tn_status st = run(call, args, rets);
    if (debug) {
        tni_debug_line("BoxedKernel::callBoxed", "(*boxed_kernel_func_)() RETURNED!");
        tni_debug_line("KernelFunction::callBoxed", "boxed_kernel_func_.callBoxed() RETURNED");
    }
    return st;
}

tn_status tni_run_kernel(tn_call *call, const tni_schema *schema, const tn_value *args,
                         tn_value *rets)
{
    const int nrets = schema->nrets;
    for (int i = 0; i < nrets; i++)
        rets[i] = tn_value_none();
    if (TNI_UNLIKELY(tni_is_fallthrough(call->kernel)))
        step_below_fallthrough(call);
    if (TNI_UNLIKELY(!call->kernel->boxed || tni_is_fallthrough(call->kernel)))
        return tni_missing_kernel(call);
    tn_status st = invoke(call, args, rets);
    /* What a typed kernel of a built-in operator returns, its adaptor has made. */
    bool checked = has_adaptor(call);
    if (st == TN_OK && nrets > 0 && !checked)
        st = check_results(call, schema, args, rets);
    if (st != TN_OK) {
        for (int i = 0; i < nrets; i++)
            tn_value_clear(&rets[i]);
    }
    return st;
}

tn_status tni_run_boxed(tn_call *call, const tn_value *args, int nargs, tn_value *rets, int nrets)
{
    const tni_schema *schema = tni_op_get_schema(call->op);
    if (!schema)
        return tn_last_status();
    TNI_ASSERT(schema->nargs == nargs && schema->nrets == nrets);
    (void)nargs;
    (void)nrets;
    call->schema = schema; /* the frame may have been a boxed call of something else before */
    return tni_run_kernel(call, schema, args, rets);
}
