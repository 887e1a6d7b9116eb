/* SPDX-License-Identifier: MIT */
/* autograd/forward_call.c: one call with dual tensors: the call itself, then the tangents of its
 * results by the operator's rule. Arguments are boxed, so that rules are data. */
#include "autograd/forward_push.h"

#include <stdio.h>
#include <string.h>
#include "base/alloc.h"

/* ---- what is to be done ---- */

static bool has_tangent(const tn_tensor *t)
{
    return tni_has_tangent(t);
}

static const tni_forward_rule *find_rule(const tn_op *op)
{
    const ptrdiff_t wanted = op - tni_builtin_ops;
    int low = 0, high = tni_forward_n_rules;
    while (low < high) {
        int middle = (low + high) / 2;
        if (tni_forward_rules[middle].op < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    const tni_forward_rule *rule = &tni_forward_rules[low];
    return rule->kind != TNI_JVP_NONE && rule->op == wanted ? rule : NULL;
}

/* A tangent that no rule takes would be lost without a word. */
static tn_status refuse_tangent(const tni_push *p, int i)
{
    tn_tensor *const *list;
    int64_t n = tni_value_tensors(&p->args[i], &list);
    for (int64_t k = 0; k < n; k++) {
        if (!list[k] || !tni_has_tangent(list[k]))
            continue;
        const char *colon = strstr(p->schema->name, "::");
        TN_FAIL(TN_INVALID,
                "The function '%s' is not differentiable with respect to argument '%s'. This input "
                "cannot have a tangent.",
                colon ? colon + 2 : p->schema->name, p->schema->args[i].name);
    }
    return TN_OK;
}

static tn_status find_tangents(tni_push *p)
{
    for (uint64_t bits = p->rule->without; bits; bits &= bits - 1)
        TN_TRY(refuse_tangent(p, __builtin_ctzll(bits)));
    for (uint64_t bits = p->rule->edges; bits; bits &= bits - 1) {
        int i = __builtin_ctzll(bits);
        if (p->args[i].tag == TN_TAG_TENSOR && p->args[i].u.tensor)
            TN_TRY(tni_tangent(p->args[i].u.tensor, &p->tangents[i]));
    }
    return TN_OK;
}

/* ---- linear: the operator, of the tangents ---- */

static tn_status tangent_or_zeros(tn_tensor *t, tn_tensor **out)
{
    TN_TRY(tni_tangent(t, out));
    return *out ? TN_OK : tni_push_zeros(t, out);
}

static tn_status list_of_tangents(const tn_value *arg, tn_value *out)
{
    tn_tensor **list = tni_calloc((arg->count + 1u) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %u tangents", arg->count);
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < arg->count && status == TN_OK; k++)
        if (arg->u.tensors[k])
            status = tangent_or_zeros(arg->u.tensors[k], &list[k]);
    if (status != TN_OK) {
        tn_tensor_list_free(list, arg->count);
        return status;
    }
    *out = tn_value_take_tensors(list, arg->count);
    return TN_OK;
}

/* @p args becomes the arguments with tangents in place of tensors; those are owned. */
static tn_status replace_by_tangents(const tni_push *p, tn_value *args)
{
    for (uint64_t bits = p->rule->edges; bits; bits &= bits - 1) {
        int i = __builtin_ctzll(bits);
        if (p->args[i].tag == TN_TAG_TENSOR_LIST)
            TN_TRY(list_of_tangents(&p->args[i], &args[i]));
        if (p->args[i].tag != TN_TAG_TENSOR || !p->args[i].u.tensor)
            continue;
        tn_tensor *t = tn_tensor_ref(p->tangents[i]);
        if (!t)
            TN_TRY(tni_push_zeros(p->args[i].u.tensor, &t));
        args[i] = tn_value_take_tensor(t);
    }
    return TN_OK;
}

static tn_status linear(const tni_push *p)
{
    tn_value args[TNI_PUSH_MOST], tangents[TNI_PUSH_MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    TN_TRY(tni_push_call(p, p->args, p->rets));
    tn_status status = replace_by_tangents(p, args);
    if (status == TN_OK)
        status = tni_push_call(p, args, tangents);
    if (status == TN_OK)
        status = tni_push_attach(p, tangents);
    tni_push_clear(args, p->schema->nargs);
    tni_push_clear(tangents, p->schema->nrets);
    if (status != TN_OK)
        tni_push_clear(p->rets, p->schema->nrets);
    return status;
}

/* ---- explicit formulas ---- */

static tn_status run_formula(const tni_push *p, tn_tensor **tangent)
{
    tni_forward f = {p->args, p->rets, p->tangents};
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(tni_push_leave(scope, TN_OK, p->rule->formula(&f), tangent));
    return p->schema->is_view ? TN_OK : tni_push_own(tangent);
}

static tn_status formula(const tni_push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    TN_TRY(tni_push_call(p, p->args, p->rets));
    tn_status status = run_formula(p, &tangent);
    if (status == TN_OK && tangent && tni_push_differentiable(tni_push_first(p)))
        status = tni_push_give(tni_push_first(p), tangent);
    if (status != TN_OK)
        tni_push_clear(p->rets, p->schema->nrets);
    return status;
}

/* Run the call, which writes @p self, and give that its tangent, whose place is made before. */
static tn_status write_with(const tni_push *p, tn_tensor *self, tn_tensor **tangent)
{
    bool given;
    TN_TRY(tni_tangent_prepare(self, tangent, &given));
    tn_status status = tni_push_call(p, p->args, p->rets);
    if (TNI_UNLIKELY(status != TN_OK)) {
        if (given)
            tni_tangent_unprepare(self);
        return status;
    }
    status = tni_push_give_written(self, *tangent);
    if (status != TN_OK)
        tni_push_clear(p->rets, p->schema->nrets);
    return status;
}

/* The formula of an operator that writes its first argument: of the arguments as they were, for the
 * tangent must be there before anything is written. */
static tn_status formula_written(const tni_push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_tensor *self = p->args[0].u.tensor;
    TN_TRY(run_formula(p, &tangent));
    return tni_push_differentiable(self) ? write_with(p, self, &tangent)
                                         : tni_push_call(p, p->args, p->rets);
}

/* ---- operators that write their first argument ---- */

/* A copy of @p t with the same tangent: what the twin computes with stays as it is. */
static tn_status copy_of(tn_tensor *t, tn_tensor **out)
{
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(t, TN_FORMAT_NONE, &copy));
    TN_TRY(tni_tangent_copy(t, copy));
    *out = TN_MOVE(copy);
    return TN_OK;
}

static tn_status make_push(tn_op *op, const tn_value *args, tn_value *rets);

static tn_status written(const tni_push *p)
{
    TN_AUTO(tn_tensor) copy = NULL;
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_tensor *self = p->args[0].u.tensor;
    tn_value args[TNI_PUSH_MOST], rets[TNI_PUSH_MOST] = {{0}};
    TN_TRY(copy_of(self, &copy));
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    for (int i = 0; i < p->schema->nargs; i++)
        if (args[i].tag == TN_TAG_TENSOR && args[i].u.tensor == self)
            args[i] = tn_value_tensor(copy);
    TN_TRY(make_push(&tni_builtin_ops[p->rule->twin], args, rets));
    tn_status status =
        rets[0].tag == TN_TAG_TENSOR ? tni_tangent(rets[0].u.tensor, &tangent) : TN_OK;
    tni_push_clear(rets, tni_op_get_schema(&tni_builtin_ops[p->rule->twin])->nrets);
    if (status == TN_OK)
        status = tni_push_own(&tangent);
    return status == TN_OK ? write_with(p, self, &tangent) : status;
}

/* The operator, of a copy of the tangent of what it writes, before it writes. */
static tn_status follow(const tni_push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_tensor *self = p->args[0].u.tensor;
    tn_value args[TNI_PUSH_MOST], made[TNI_PUSH_MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    tn_status status = p->tangents[0] ? tn_clone(p->tangents[0], TN_FORMAT_NONE, &tangent)
                                      : tni_push_zeros(self, &tangent);
    if (status == TN_OK)
        status = replace_by_tangents(p, args);
    if (status == TN_OK) {
        tn_value_clear(&args[0]);
        args[0] = tn_value_tensor(tangent);
        status = tni_push_call(p, args, made);
    }
    tni_push_clear(args, p->schema->nargs);
    tni_push_clear(made, p->schema->nrets);
    return status == TN_OK ? write_with(p, self, &tangent) : status;
}

/* The view of the tangent that the twin's rule says, owned. */
static tn_status view_of_tangent(const tni_push *p, tn_tensor **out)
{
    tn_op *twin = &tni_builtin_ops[p->rule->twin];
    tni_push q = {twin,    tni_op_get_schema(twin), find_rule(twin), p->args,
                  p->rets, {p->tangents[0]}};
    if (!q.schema)
        return tn_last_status();
    if (q.rule->kind == TNI_JVP_FORMULA)
        return run_formula(&q, out);
    tn_value args[TNI_PUSH_MOST], made[TNI_PUSH_MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    args[0] = tn_value_tensor(p->tangents[0]);
    TN_TRY(tn_op_call(twin, args, p->schema->nargs, made));
    *out = made[0].u.tensor;
    return TN_OK;
}

/* What changes sizes alone: the tangent's are another view of it, made before. */
static tn_status moved(const tni_push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    TN_TRY(view_of_tangent(p, &tangent));
    TN_TRY(tni_push_call(p, p->args, p->rets));
    tni_tangent_moved(p->args[0].u.tensor, tangent);
    return TN_OK;
}

/* ---- by gradients of gradients ---- */

static tn_status twice(const tni_push *p)
{
    tn_tensor *made[TNI_PUSH_MOST] = {NULL};
    tn_status status = tni_forward_twice(p->op, p->args, p->tangents, p->rets, made);
    for (int k = 0; k < p->schema->nrets; k++) {
        if (status == TN_OK && made[k])
            status = tni_push_own(&made[k]);
        if (status == TN_OK && made[k])
            status = tni_push_give(p->rets[k].u.tensor, made[k]);
        tn_tensor_unref(made[k]);
    }
    if (status != TN_OK)
        tni_push_clear(p->rets, p->schema->nrets);
    return status;
}

/* ---- operators without a rule ---- */

static TNI_COLD tn_status refuse(const tni_push *p)
{
    char name[128];
    const char *colon = strstr(p->schema->name, "::");
    snprintf(name, sizeof name, "%s", colon ? colon + 2 : p->schema->name);
    for (int i = 0; i < p->schema->nargs; i++)
        TN_CHECK(!p->schema->args[i].is_out, TN_UNSUPPORTED,
                 "Trying to use forward AD with %s_out that does not support it because it is an "
                 "out= function",
                 name);
    TN_FAIL(TN_UNSUPPORTED,
            "Trying to use forward AD with %s that does not support it because it has not been "
            "implemented yet.",
            name);
}

static tn_status without_rule(const tni_push *p)
{
    if (p->schema->is_mutable)
        return refuse(p);
    TN_TRY(tni_push_call(p, p->args, p->rets));
    for (int i = 0; i < p->schema->nrets; i++) {
        tn_tensor *const *results;
        int64_t n = tni_value_tensors(&p->rets[i], &results);
        for (int64_t k = 0; k < n; k++)
            if (tni_push_differentiable(results[k])) {
                tni_push_clear(p->rets, p->schema->nrets);
                return refuse(p);
            }
    }
    return TN_OK;
}

/* ---- all of them ---- */

static tn_status by_rule(tni_push *p)
{
    if (!p->rule)
        return without_rule(p);
    TN_TRY(find_tangents(p));
    switch (p->rule->kind) {
    case TNI_JVP_LINEAR:
        return linear(p);
    case TNI_JVP_FOLLOW:
        return follow(p);
    case TNI_JVP_MOVED:
        return moved(p);
    case TNI_JVP_ELEMENT_WISE:
        return tni_push_element_wise(p);
    case TNI_JVP_WRITTEN:
        return written(p);
    case TNI_JVP_TWICE:
        return twice(p);
    default:
        return p->schema->args[0].is_write ? formula_written(p) : formula(p);
    }
}

static tn_status make_push(tn_op *op, const tn_value *args, tn_value *rets)
{
    tni_push p = {op, tni_op_get_schema(op), find_rule(op), args, rets, {NULL}};
    if (!p.schema)
        return tn_last_status();
    for (int i = 0; i < p.schema->nrets; i++)
        rets[i] = tn_value_none();
    uint8_t old = tni_tls.no_forward_grad;
    tni_tls.no_forward_grad = TNI_FORWARD_PAUSED;
    tn_status status = by_rule(&p);
    tni_tls.no_forward_grad = old;
    for (int i = 0; i < p.schema->nargs; i++)
        tn_tensor_unref(p.tangents[i]);
    return status;
}

/* Neither tangents nor gradients: on to what is below. */
static tn_status go_on(tn_call *c, const tni_schema *schema, const tn_value *args, tn_value *rets)
{
    bool passes = schema->is_mutable || schema->is_view;
    uint64_t saved =
        tni_exclude(&tni_tls, passes ? TNI_BELOW_AUTOGRAD : TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tn_call_redispatch(c, c->keys & TNI_KS_AFTER_AUTOGRAD, args, rets);
    tni_tls.excluded_xor = saved;
    return status;
}

bool tni_forward_call(tn_call *c, const tn_value *args, tn_value *rets, tn_status *status)
{
    const tni_schema *schema = tni_op_get_schema(c->op);
    *status = schema ? TN_OK : tn_last_status();
    if (!schema)
        return true;
    if (!tni_tls.no_forward_grad && tni_push_any(schema, args, has_tangent))
        *status = make_push(c->op, args, rets);
    else if (tni_recording && tni_push_any(schema, args, tni_requires_grad))
        return false;
    else
        *status = go_on(c, schema, args, rets);
    return true;
}
