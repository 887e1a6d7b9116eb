/* SPDX-License-Identifier: MIT */
/* autograd/forward_call.c: one call with dual tensors: the call itself, then the tangents of its
 * results by the operator's rule. Arguments are boxed, so that rules are data. */
#include "autograd/forward.h"

#include <stdio.h>
#include <string.h>
#include "autograd/accumulate.h"
#include "autograd/copy_slices.h"
#include "base/alloc.h"
#include "gen/gradients.h"
#include "tenon/ops.h"

enum { MOST = TNI_SCHEMA_MAX_ARGS };

/* ---- what is to be done ---- */

/* Elements of a boxed argument that are tensors; NULLs among them. */
static int64_t tensors_of(const tn_value *v, tn_tensor *const **out)
{
    if (v->tag == TN_TAG_TENSOR) {
        *out = &v->u.tensor;
        return 1;
    }
    *out = v->tag == TN_TAG_TENSOR_LIST ? v->u.tensors : NULL;
    return v->tag == TN_TAG_TENSOR_LIST ? v->count : 0;
}

static bool any(const tni_schema *schema, const tn_value *args, bool (*is)(const tn_tensor *t))
{
    for (uint64_t bits = schema->tensor_args; bits; bits &= bits - 1) {
        tn_tensor *const *list;
        int64_t n = tensors_of(&args[__builtin_ctzll(bits)], &list);
        for (int64_t i = 0; i < n; i++)
            if (is(list[i]))
                return true;
    }
    return false;
}

static bool requires_grad(const tn_tensor *t)
{
    return tni_requires_grad(t);
}

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

/* ---- a call in the making ---- */

typedef struct push {
    tn_op *op;
    const tni_schema *schema;
    const tni_forward_rule *rule;
    const tn_value *args;
    tn_value *rets;
    tn_tensor *tangents[MOST]; /* owned; of the arguments that are single tensors and have one */
} push;

static bool differentiable(const tn_tensor *t)
{
    return t && tni_dtype_is_inexact((tn_dtype)t->dtype);
}

/* A tangent that no rule takes would be lost without a word. */
static tn_status refuse_tangent(const push *p, int i)
{
    tn_tensor *const *list;
    int64_t n = tensors_of(&p->args[i], &list);
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

static tn_status find_tangents(push *p)
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

static tn_status call(const push *p, const tn_value *args, tn_value *rets)
{
    return tn_op_call(p->op, args, p->schema->nargs, rets);
}

static void clear(tn_value *values, int n)
{
    for (int i = 0; i < n; i++)
        tn_value_clear(&values[i]);
}

/* A node keeps results apart from their history: what it kept of result @p output gets its
 * tangent. */
static tn_status give_saved(tni_node *node, uint32_t output, tn_tensor *tangent)
{
    tni_saved *saved = node ? node->data : NULL;
    for (uint32_t i = 0; node && i < node->cls->n_saved; i++)
        if ((saved[i].flags & TNI_SAVED_IS_RESULT) && saved[i].output == output && saved[i].tensor)
            TN_TRY(tni_tangent_set(saved[i].tensor, tangent));
    return TN_OK;
}

/* A new result, and what its node kept of it. */
static tn_status give(tn_tensor *t, tn_tensor *tangent)
{
    TN_TRY(tni_tangent_set(t, tangent));
    return give_saved(t->grad_fn, t->output, tangent);
}

/* What was written, and its tangent prepared; the node of the call is its own, or inside its
 * root's. When memory runs out here the write is there, but neither its tangent nor the tangent of
 * its gradient: who asks for them is told. */
static tn_status give_written(tn_tensor *t, tn_tensor *tangent)
{
    tni_node *node = t->view_base ? t->view_base->grad_fn : t->grad_fn;
    if (node && t->view_base)
        node = tni_copy_slices_fn(node);
    tn_status status = tni_tangent_commit(t, tangent);
    if (TNI_UNLIKELY(status != TN_OK))
        tni_tangent_lost(t);
    if (status == TN_OK && tangent && node)
        status = give_saved(node, t->view_base ? 0 : t->output, tangent);
    if (TNI_UNLIKELY(status != TN_OK) && node)
        tni_node_break(node);
    return status;
}

/* A formula may give the tangent of an argument itself, and writing the result later would write
 * that one: *tangent (may be NULL) becomes a copy unless it is ours alone. */
static tn_status make_own(tn_tensor **tangent)
{
    if (!*tangent || tni_is_ours(*tangent))
        return TN_OK;
    tn_tensor *copy = NULL;
    TN_TRY(tn_clone(*tangent, TN_FORMAT_NONE, &copy));
    tn_tensor_unref(*tangent);
    *tangent = copy;
    return TN_OK;
}

/* Give each result of the call the tangent that stands at its place. */
static tn_status attach(const push *p, const tn_value *tangents)
{
    for (int i = 0; i < p->schema->nrets; i++) {
        tn_tensor *const *results, *const *list;
        int64_t n = tensors_of(&p->rets[i], &results);
        if (tensors_of(&tangents[i], &list) != n)
            continue;
        for (int64_t k = 0; k < n; k++)
            if (differentiable(results[k]) && list[k])
                TN_TRY(give(results[k], list[k]));
    }
    return TN_OK;
}

static tn_status zeros_of(const tn_tensor *t, tn_tensor **out)
{
    return tn_zeros_like((tn_tensor *)(uintptr_t)t, NULL, TN_FORMAT_PRESERVE, out);
}

/* ---- linear: the operator, of the tangents ---- */

static tn_status tangent_or_zeros(tn_tensor *t, tn_tensor **out)
{
    TN_TRY(tni_tangent(t, out));
    return *out ? TN_OK : zeros_of(t, out);
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
static tn_status replace_by_tangents(const push *p, tn_value *args)
{
    for (uint64_t bits = p->rule->edges; bits; bits &= bits - 1) {
        int i = __builtin_ctzll(bits);
        if (p->args[i].tag == TN_TAG_TENSOR_LIST)
            TN_TRY(list_of_tangents(&p->args[i], &args[i]));
        if (p->args[i].tag != TN_TAG_TENSOR || !p->args[i].u.tensor)
            continue;
        tn_tensor *t = tn_tensor_ref(p->tangents[i]);
        if (!t)
            TN_TRY(zeros_of(p->args[i].u.tensor, &t));
        args[i] = tn_value_take_tensor(t);
    }
    return TN_OK;
}

static tn_status linear(const push *p)
{
    tn_value args[MOST], tangents[MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    TN_TRY(call(p, p->args, p->rets));
    tn_status status = replace_by_tangents(p, args);
    if (status == TN_OK)
        status = call(p, args, tangents);
    if (status == TN_OK)
        status = attach(p, tangents);
    clear(args, p->schema->nargs);
    clear(tangents, p->schema->nrets);
    if (status != TN_OK)
        clear(p->rets, p->schema->nrets);
    return status;
}

/* ---- explicit formulas ---- */

tn_tensor *tni_jvp_tangent(const tni_forward *f, int argument)
{
    tn_tensor *t = f->args[argument].u.tensor;
    if (f->tangents[argument] || !t)
        return f->tangents[argument];
    return tnx_zeros_like(t, NULL, TN_FORMAT_PRESERVE);
}

tn_tensor *tni_jvp_sum(tn_tensor *a, tn_tensor *b)
{
    return a && b ? tnx_add(a, b, tn_int(1)) : b;
}

tn_scalar tni_jvp_scalar(const tn_value *v)
{
    tn_scalar s = tn_int(0);
    return tn_value_to_scalar(v, &s) == TN_OK ? s : tn_int(0);
}

tn_dtype tni_jvp_dtype(const tn_value *v)
{
    return v->tag == TN_TAG_INT ? (tn_dtype)v->u.i : TN_DTYPE_NONE;
}

tn_opt_int tni_jvp_opt_int(const tn_value *v)
{
    return v->tag == TN_TAG_INT ? tn_some_int(v->u.i) : tn_no_int();
}

tn_opt_bool tni_jvp_opt_bool(const tn_value *v)
{
    return v->tag != TN_TAG_BOOL ? TN_BOOL_NONE : v->u.i ? TN_BOOL_TRUE : TN_BOOL_FALSE;
}

const tn_scalar *tni_jvp_opt_scalar(const tn_value *v, tn_scalar *room)
{
    if (v->tag == TN_TAG_NONE)
        return NULL;
    *room = tni_jvp_scalar(v);
    return room;
}

/* The first result, which the formula is about. */
static tn_tensor *first(const push *p)
{
    return p->rets[0].tag == TN_TAG_TENSOR ? p->rets[0].u.tensor : NULL;
}

/* @p t moved out of the scope, which ends. */
static tn_status leave_with(tn_scope *scope, tn_status status, tn_tensor *t, tn_tensor **out)
{
    tn_tensor *kept = status == TN_OK && tni_scope_is_fine(scope) ? tn_tensor_ref(t) : NULL;
    tn_status left = tn_scope_leave(scope);
    status = status == TN_OK ? left : status;
    if (status == TN_OK)
        *out = kept;
    else
        tn_tensor_unref(kept);
    return status;
}

static tn_status run_formula(const push *p, tn_tensor **tangent)
{
    tni_forward f = {p->args, p->rets, p->tangents};
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(leave_with(scope, TN_OK, p->rule->formula(&f), tangent));
    return p->schema->is_view ? TN_OK : make_own(tangent);
}

static tn_status formula(const push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    TN_TRY(call(p, p->args, p->rets));
    tn_status status = run_formula(p, &tangent);
    if (status == TN_OK && tangent && differentiable(first(p)))
        status = give(first(p), tangent);
    if (status != TN_OK)
        clear(p->rets, p->schema->nrets);
    return status;
}

/* The formula of an operator that writes its first argument: of the arguments as they were, for the
 * tangent must be there before anything is written. */
static tn_status formula_written(const push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_tensor *self = p->args[0].u.tensor;
    TN_TRY(run_formula(p, &tangent));
    if (!differentiable(self))
        return call(p, p->args, p->rets);
    TN_TRY(tni_tangent_prepare(self, &tangent));
    TN_TRY(call(p, p->args, p->rets));
    tn_status status = give_written(self, tangent);
    if (status != TN_OK)
        clear(p->rets, p->schema->nrets);
    return status;
}

/* ---- elementwise: the Jacobian is a diagonal, and so its own transpose ---- */

/* Note [Tangents from a node's formulas]
 * The gradient formula of an elementwise argument multiplies with the conjugate of its derivative:
 * of the conjugate of a tangent it gives the conjugate of what is wanted. It is in a node, which
 * keeps what it needs for the edges that are live. When recording the call gives such a node
 * anyway it is used; else the call is made with aliases of the arguments that have tangents, told
 * to require grad for its duration, and what it returns is taken out of that graph again. */

static bool holds(const push *p, int i)
{
    return p->tangents[i] != NULL;
}

/* Whether the recorded call gave @p t a live edge. A view that was made without grad requires grad
 * when its base does, and has none. */
static bool has_edge(const tn_tensor *t)
{
    return (t->flags & TNI_REQUIRES_GRAD) != 0;
}

/* An alias of argument @p i in @p args, which may be told to require grad. */
static tn_status alias_argument(const push *p, int i, tn_value *args)
{
    tn_tensor *alias = NULL, *t = p->args[i].u.tensor;
    TN_TRY(t->versions ? tni_detached(t, &alias) : tni_ordinary(t, &alias));
    if (holds(p, i))
        alias->flags |= TNI_REQUIRES_GRAD;
    args[i] = tn_value_take_tensor(alias);
    return TN_OK;
}

/* Call with aliases of all single tensors (@p all) or of those alone whose tangent would have no
 * live edge. */
static tn_status call_apart(const push *p, bool all, tn_value *args, tn_value *rets)
{
    for (uint64_t bits = p->schema->tensor_args; bits; bits &= bits - 1) {
        int i = __builtin_ctzll(bits);
        if (args[i].tag != TN_TAG_TENSOR || !args[i].u.tensor)
            continue;
        if (all || (holds(p, i) && !has_edge(args[i].u.tensor)))
            TN_TRY(alias_argument(p, i, args));
    }
    uint8_t old = tni_tls.no_grad;
    tni_tls.no_grad = 0;
    tn_status status = call(p, args, rets);
    tni_tls.no_grad = old;
    for (int i = 0; i < p->schema->nargs; i++)
        if (args[i].flags & TN_VALUE_OWNED)
            args[i].u.tensor->flags &= ~(uint32_t)TNI_REQUIRES_GRAD;
    return status;
}

/* A new reference to the node that made @p t. */
static tn_status node_of(tn_tensor *t, tni_node **out)
{
    tni_node *node = NULL;
    if (t)
        TN_TRY(tni_grad_fn(t, &node, NULL));
    *out = tni_node_ref(node);
    return TN_OK;
}

/* Make the call: results go to p->rets. *out: a node with a live edge for each tangent. */
static tn_status call_for_node(const push *p, tni_node **out)
{
    bool recorded = tni_recording && any(p->schema, p->args, requires_grad), missing = false;
    tn_value args[MOST], apart[MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    if (recorded) {
        TN_TRY(call(p, p->args, p->rets)); /* also brings views up to date */
        for (int i = 0; i < p->schema->nargs; i++)
            missing = missing || (holds(p, i) && !has_edge(p->args[i].u.tensor));
        if (!missing)
            return node_of(first(p), out);
    }
    tn_value *rets = recorded ? apart : p->rets;
    tn_status status = call_apart(p, !recorded, args, rets);
    bool one = status == TN_OK && rets[0].tag == TN_TAG_TENSOR;
    if (one)
        status = node_of(rets[0].u.tensor, out);
    if (one && !recorded)
        tni_clear_history(rets[0].u.tensor);
    for (int i = 0; i < p->schema->nargs; i++)
        if (args[i].flags & TN_VALUE_OWNED)
            tn_value_clear(&args[i]);
    clear(apart, p->schema->nrets);
    return status;
}

/* @p tangent as a gradient of @p result: its sizes and dtype, conjugated. Belongs to the scope. */
static tn_tensor *as_gradient(const tn_tensor *result, tn_tensor *tangent)
{
    tn_tensor *t = tni_grad_conj(tangent);
    if (t &&
        tn_dtype_is_complex((tn_dtype)result->dtype) != tn_dtype_is_complex((tn_dtype)t->dtype))
        return tnx_expand(t, result->sizes, result->ndim, false);
    t = tnx_to_dtype(t, (tn_dtype)result->dtype, false, false, TN_FORMAT_NONE);
    return tnx_expand(t, result->sizes, result->ndim, false);
}

/* What the node's formula of edge @p edge gives. Belongs to the scope. */
static tn_tensor *run_edge(tni_node *node, uint32_t edge, tn_tensor *gradient)
{
    tn_tensor *results[MOST] = {NULL}, *grads[MOST] = {gradient};
    bool wanted[MOST] = {false};
    if (tni_scope_failed() || node->n_edges > MOST || node->n_inputs > MOST)
        return NULL;
    wanted[edge] = true;
    tni_backward b = {node, grads, results, wanted};
    tn_status status = node->cls->apply(&b);
    if (status != TN_OK && tni_scope_settle() == TN_OK)
        return tni_scope_result(status, NULL);
    return results[edge];
}

static tn_tensor *sum_of_edges(const push *p, const tn_tensor *result, tni_node *node)
{
    tn_tensor *sum = NULL;
    uint32_t edge = 0;
    for (uint64_t bits = p->rule->edges; bits; bits &= bits - 1, edge++) {
        int i = __builtin_ctzll(bits);
        if (!holds(p, i))
            continue;
        tn_tensor *t = run_edge(node, edge, as_gradient(result, p->tangents[i]));
        if (t)
            sum = tni_jvp_sum(sum, tni_grad_conj(t));
    }
    /* Of a real result a complex tangent has a real part that moves it; the other part is no loss.
     */
    if (sum && !tn_dtype_is_complex((tn_dtype)result->dtype) &&
        tn_dtype_is_complex((tn_dtype)sum->dtype))
        return tnx_real(sum);
    return sum;
}

static bool tangents_require_grad(const push *p)
{
    for (int i = 0; i < p->schema->nargs; i++)
        if (tni_requires_grad(p->tangents[i]))
            return true;
    return false;
}

static tn_status element_wise(const push *p)
{
    TN_AUTO(tni_node) node = NULL;
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_scope *scope;
    tn_status status = call_for_node(p, &node);
    tn_tensor *result = status == TN_OK ? first(p) : NULL;
    uint8_t old = tni_tls.no_grad;
    if (!any(p->schema, p->args, requires_grad) && !tangents_require_grad(p))
        tni_tls.no_grad = 1; /* what the node keeps looks as if it required grad */
    if (status == TN_OK && node && differentiable(result)) {
        status = tn_scope_enter(&scope);
        if (status == TN_OK)
            status = leave_with(scope, TN_OK, sum_of_edges(p, result, node), &tangent);
        if (status == TN_OK)
            status = make_own(&tangent);
        if (status == TN_OK && tangent)
            status = give(result, tangent);
    }
    tni_tls.no_grad = old;
    if (status != TN_OK)
        clear(p->rets, p->schema->nrets);
    return status;
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

/* Run the call, which writes @p self, and give that its tangent, whose place is made before. */
static tn_status write_with(const push *p, tn_tensor *self, tn_tensor **tangent)
{
    TN_TRY(tni_tangent_prepare(self, tangent));
    TN_TRY(call(p, p->args, p->rets));
    tn_status status = give_written(self, *tangent);
    if (status != TN_OK)
        clear(p->rets, p->schema->nrets);
    return status;
}

static tn_status written(const push *p)
{
    TN_AUTO(tn_tensor) copy = NULL;
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_tensor *self = p->args[0].u.tensor;
    tn_value args[MOST], rets[MOST] = {{0}};
    TN_TRY(copy_of(self, &copy));
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    for (int i = 0; i < p->schema->nargs; i++)
        if (args[i].tag == TN_TAG_TENSOR && args[i].u.tensor == self)
            args[i] = tn_value_tensor(copy);
    TN_TRY(make_push(&tni_builtin_ops[p->rule->twin], args, rets));
    tn_status status =
        rets[0].tag == TN_TAG_TENSOR ? tni_tangent(rets[0].u.tensor, &tangent) : TN_OK;
    clear(rets, tni_op_get_schema(&tni_builtin_ops[p->rule->twin])->nrets);
    if (status == TN_OK)
        status = make_own(&tangent);
    return status == TN_OK ? write_with(p, self, &tangent) : status;
}

/* The operator, of a copy of the tangent of what it writes, before it writes. */
static tn_status follow(const push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    tn_tensor *self = p->args[0].u.tensor;
    tn_value args[MOST], made[MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    tn_status status = p->tangents[0] ? tn_clone(p->tangents[0], TN_FORMAT_NONE, &tangent)
                                      : zeros_of(self, &tangent);
    if (status == TN_OK)
        status = replace_by_tangents(p, args);
    if (status == TN_OK) {
        tn_value_clear(&args[0]);
        args[0] = tn_value_tensor(tangent);
        status = call(p, args, made);
    }
    clear(args, p->schema->nargs);
    clear(made, p->schema->nrets);
    return status == TN_OK ? write_with(p, self, &tangent) : status;
}

/* The view of the tangent that the twin's rule says, owned. */
static tn_status view_of_tangent(const push *p, tn_tensor **out)
{
    tn_op *twin = &tni_builtin_ops[p->rule->twin];
    push q = {twin, tni_op_get_schema(twin), find_rule(twin), p->args, p->rets, {p->tangents[0]}};
    if (!q.schema)
        return tn_last_status();
    if (q.rule->kind == TNI_JVP_FORMULA)
        return run_formula(&q, out);
    tn_value args[MOST], made[MOST] = {{0}};
    memcpy(args, p->args, (size_t)p->schema->nargs * sizeof *args);
    args[0] = tn_value_tensor(p->tangents[0]);
    TN_TRY(tn_op_call(twin, args, p->schema->nargs, made));
    *out = made[0].u.tensor;
    return TN_OK;
}

/* What changes sizes alone: the tangent's are another view of it, made before. */
static tn_status moved(const push *p)
{
    TN_AUTO(tn_tensor) tangent = NULL;
    TN_TRY(view_of_tangent(p, &tangent));
    TN_TRY(call(p, p->args, p->rets));
    tni_tangent_moved(p->args[0].u.tensor, tangent);
    return TN_OK;
}

/* ---- by gradients of gradients ---- */

static tn_status twice(const push *p)
{
    tn_tensor *made[MOST] = {NULL};
    tn_status status = tni_forward_twice(p->op, p->args, p->tangents, p->rets, made);
    for (int k = 0; k < p->schema->nrets; k++) {
        if (status == TN_OK && made[k])
            status = make_own(&made[k]);
        if (status == TN_OK && made[k])
            status = give(p->rets[k].u.tensor, made[k]);
        tn_tensor_unref(made[k]);
    }
    if (status != TN_OK)
        clear(p->rets, p->schema->nrets);
    return status;
}

/* ---- operators without a rule ---- */

static TNI_COLD tn_status refuse(const push *p)
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

static tn_status without_rule(const push *p)
{
    if (p->schema->is_mutable)
        return refuse(p);
    TN_TRY(call(p, p->args, p->rets));
    for (int i = 0; i < p->schema->nrets; i++) {
        tn_tensor *const *results;
        int64_t n = tensors_of(&p->rets[i], &results);
        for (int64_t k = 0; k < n; k++)
            if (differentiable(results[k])) {
                clear(p->rets, p->schema->nrets);
                return refuse(p);
            }
    }
    return TN_OK;
}

/* ---- all of them ---- */

static tn_status by_rule(push *p)
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
        return element_wise(p);
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
    push p = {op, tni_op_get_schema(op), find_rule(op), args, rets, {NULL}};
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
    if (!tni_tls.no_forward_grad && any(schema, args, has_tangent))
        *status = make_push(c->op, args, rets);
    else if (tni_recording && any(schema, args, requires_grad))
        return false;
    else
        *status = go_on(c, schema, args, rets);
    return true;
}
