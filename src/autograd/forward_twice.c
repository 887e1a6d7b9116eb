/* SPDX-License-Identifier: MIT */
/* autograd/forward_twice.c: tangents from gradient formulas alone. The gradient of an operator is
 * linear in what comes in, u -> J^H u, and the gradient of that map, for the tangents of the
 * arguments, is J t: what forward mode wants. It takes an operator whose gradient is
 * differentiable, makes the call and gives the tangents of all its results. */
#include <string.h>
#include "autograd/accumulate.h"
#include "autograd/forward.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

enum { MOST = TNI_SCHEMA_MAX_ARGS };

typedef struct twice {
    tn_op *op;
    const tni_schema *schema;
    tn_value args[MOST];      /* those that are ours are marked as owned */
    tn_tensor *inputs[MOST];  /* borrowed from args: what has a tangent */
    tn_tensor *along[MOST];   /* borrowed: their tangents */
    tn_tensor *outputs[MOST]; /* borrowed: results that depend on them */
    tn_tensor *seeds[MOST];   /* owned: u, zeros; the map is linear */
    tn_tensor *grads[MOST];   /* owned: J^H u; NULL where an input has none */
    int place[MOST];          /* which result each output is */
    int64_t n_inputs, n_outputs;
    bool recorded;
} twice;

static bool is_tensor(const tn_value *v)
{
    return v->tag == TN_TAG_TENSOR && v->u.tensor;
}

/* The same tensor under a name of its own: with its history when the call is recorded, else, or
 * when it has none, a leaf. */
static tn_status apart(const twice *t, tn_tensor *x, bool leaf, tn_tensor **out)
{
    if (t->recorded && tni_requires_grad(x))
        return tn_alias(x, out);
    TN_TRY(tni_detached(x, out));
    if (leaf)
        (*out)->flags |= TNI_REQUIRES_GRAD;
    return TN_OK;
}

static tn_status lay_out(twice *t, const tn_value *args, tn_tensor *const *tangents)
{
    memcpy(t->args, args, (size_t)t->schema->nargs * sizeof *args);
    for (int i = 0; i < t->schema->nargs; i++)
        t->args[i].flags &= (uint8_t)~TN_VALUE_OWNED;
    for (int i = 0; i < t->schema->nargs; i++) {
        tn_tensor *made = NULL;
        if (!is_tensor(&args[i]) || (!tangents[i] && t->recorded) || t->schema->args[i].is_write)
            continue;
        TN_TRY(apart(t, args[i].u.tensor, tangents[i] != NULL, &made));
        t->args[i] = tn_value_take_tensor(made);
        /* What the call saves of it has the tangent, for a pass that pushes tangents forward. */
        if (tangents[i] && t->recorded)
            TN_TRY(tni_tangent_set(made, tangents[i]));
        if (tangents[i]) {
            t->inputs[t->n_inputs] = made;
            t->along[t->n_inputs++] = tangents[i];
        }
    }
    return TN_OK;
}

static tn_status find_outputs(twice *t, const tn_value *rets)
{
    for (int k = 0; k < t->schema->nrets; k++) {
        tn_tensor *r = is_tensor(&rets[k]) ? rets[k].u.tensor : NULL;
        if (!r || !tni_requires_grad(r))
            continue;
        TN_TRY(tn_zeros_like(r, NULL, TN_FORMAT_NONE, &t->seeds[t->n_outputs]));
        TN_TRY(tn_tensor_set_requires_grad(t->seeds[t->n_outputs], true));
        t->place[t->n_outputs] = k;
        t->outputs[t->n_outputs++] = r;
    }
    return TN_OK;
}

/* @p made: tangents of the results, owned, by their place. */
static tn_status differentiate(twice *t, tn_tensor **made)
{
    tn_tensor *maps[MOST], *along[MOST], *found[MOST] = {NULL};
    int64_t n = 0;
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.allow_unused = TN_BOOL_TRUE;
    opts.create_graph = opts.retain_graph = TN_BOOL_TRUE;
    TN_TRY(tn_grad(t->outputs, t->n_outputs, t->inputs, t->n_inputs, t->seeds, &opts, t->grads));
    bool again = t->recorded;
    for (int64_t i = 0; i < t->n_inputs; i++) {
        again = again || tni_requires_grad(t->along[i]);
        if (!t->grads[i] || !tni_requires_grad(t->grads[i]))
            continue;
        maps[n] = t->grads[i];
        along[n++] = t->along[i];
    }
    if (n == 0)
        return TN_OK;
    opts.create_graph = again ? TN_BOOL_TRUE : TN_BOOL_FALSE;
    TN_TRY(tn_grad(maps, n, t->seeds, t->n_outputs, along, &opts, found));
    for (int64_t k = 0; k < t->n_outputs; k++)
        made[t->place[k]] = found[k];
    return TN_OK;
}

/* What was recorded may hold our leaves on: no pass has a gradient for them. */
static void let_go(tn_value *arg)
{
    if (!(arg->u.tensor->flags & TNI_HAS_GRAD_FN))
        arg->u.tensor->flags &= ~(uint32_t)TNI_REQUIRES_GRAD;
    tn_value_clear(arg);
}

tn_status tni_forward_twice(tn_op *op, const tn_value *args, tn_tensor *const *tangents,
                            tn_value *rets, tn_tensor **made)
{
    twice t = {.op = op, .schema = tni_op_get_schema(op)};
    for (int i = 0; i < t.schema->nargs; i++)
        t.recorded = t.recorded ||
                     (tni_recording && is_tensor(&args[i]) && tni_requires_grad(args[i].u.tensor));
    tn_status status = lay_out(&t, args, tangents);
    uint8_t old = tni_tls.no_grad;
    tni_tls.no_grad = 0;
    if (status == TN_OK)
        status = tn_op_call(op, t.args, t.schema->nargs, rets);
    if (status == TN_OK)
        status = find_outputs(&t, rets);
    if (status == TN_OK && t.n_outputs && t.n_inputs)
        status = differentiate(&t, made);
    tni_tls.no_grad = old;
    for (int64_t k = 0; !t.recorded && k < t.n_outputs; k++)
        tni_clear_history(t.outputs[k]);
    for (int k = 0; k < t.schema->nrets; k++)
        tn_tensor_unref(t.seeds[k]);
    for (int64_t i = 0; i < t.n_inputs; i++)
        tn_tensor_unref(t.grads[i]);
    for (int i = 0; i < t.schema->nargs; i++)
        if (t.args[i].flags & TN_VALUE_OWNED)
            let_go(&t.args[i]);
    return status;
}
