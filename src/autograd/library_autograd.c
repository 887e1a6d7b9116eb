/* SPDX-License-Identifier: MIT */
/* autograd/library_autograd.c: gradients for operators from outside: their autograd kernel records
 * a node whose backward part is the user's. */
#include <stdio.h>
#include <string.h>
#include "autograd/forward.h"
#include "autograd/function.h"
#include "core/state.h"
#include "dispatch/call.h"
#include "dispatch/library.h"

/* What was registered. Nodes hold it too: they may outlive the library. */
typedef struct formula {
    tni_object object;
    tn_autograd_formula it;
    char name[96]; /* "ns::op" */
} formula;

static void formula_release(void *object)
{
    formula *f = object;
    if (f->it.destroy)
        f->it.destroy(f->it.ctx);
}

static void formula_destroy(void *object)
{
    tni_free(object);
}

static const tni_type formula_type = {"formula", formula_release, formula_destroy, NULL};

static void formula_unref(void *ctx)
{
    tni_unref(&((formula *)ctx)->object);
}

/* ---- tensors among boxed values ---- */

/* One place for each tensor that the type names, also for one that is None. */
static bool is_tensor(const tni_schema_type *type)
{
    if (type->kind == TNI_TYPE_OPTIONAL)
        type = type->children[0];
    return type->kind == TNI_TYPE_TENSOR;
}

/* @p out NULL: only count. */
static int list_tensors(const tni_schema_arg *kinds, const tn_value *values, int n, tn_tensor **out)
{
    int at = 0;
    for (int i = 0; i < n; i++) {
        const tn_value *v = &values[i];
        if (v->tag == TN_TAG_TENSOR_LIST) {
            for (uint32_t k = 0; k < v->count; k++, at++)
                if (out)
                    out[at] = v->u.tensors[k];
        } else if (is_tensor(kinds[i].type)) {
            if (out)
                out[at] = v->tag == TN_TAG_TENSOR ? v->u.tensor : NULL;
            at++;
        }
    }
    return at;
}

/* ---- the kernel ---- */

static tn_status below(tn_call *call, const tn_value *args, tn_value *rets)
{
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status =
        tn_call_redispatch(call, tn_call_keys(call) & TNI_KS_AFTER_AUTOGRAD, args, rets);
    tni_tls.excluded_xor = saved;
    return status;
}

static tn_status tie_results(const formula *f, tni_node *node, tn_tensor *const *inputs,
                             tn_tensor *const *results, int n)
{
    for (int i = 0; i < n; i++) {
        tn_tensor *t = results[i];
        if (!t)
            continue;
        /* Its own history would become that of this call. */
        for (uint32_t k = 0; k < node->n_edges; k++)
            TN_CHECK(inputs[k] != t, TN_INVALID,
                     "%s returned its argument %u: an operator with an autograd formula returns "
                     "tensors of its own, for example a clone",
                     f->name, k);
        TN_TRY(tni_node_set_input(node, (uint32_t)i, t));
        if (tni_dtype_is_inexact((tn_dtype)t->dtype))
            TN_TRY(tni_set_grad_fn(t, node, (uint32_t)i));
    }
    return TN_OK;
}

static tn_status set_up(formula *f, tni_node *node, tn_tensor *const *inputs, const tn_value *args,
                        int n_args, const tn_value *rets, int n_rets)
{
    tn_function_ctx ctx = {.node = node, .fn = node->data, .args = f->it.ctx, .inputs = inputs};
    bool grad = tn_set_grad_enabled(false);
    tn_status status = f->it.setup ? f->it.setup(&ctx, args, n_args, rets, n_rets) : TN_OK;
    tn_set_grad_enabled(grad);
    if (status == TN_OK)
        status = tni_function_save_all(&ctx);
    tni_marks_clear(&ctx.save);
    tni_marks_clear(&ctx.dirty);
    tni_marks_clear(&ctx.plain);
    return status;
}

static tn_status record(tn_call *call, formula *f, tn_tensor **inputs, int n_inputs,
                        const tn_value *args, tn_value *rets)
{
    tni_function_spec spec = {.name = f->name,
                              .backward = f->it.backward,
                              .state_size = f->it.state_size,
                              .state_destroy = f->it.state_destroy,
                              .flags = f->it.flags,
                              .keeper = &f->object,
                              .args = f->it.ctx};
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_function_node(&spec, inputs, n_inputs, 0, true, &node));
    TN_TRY(below(call, args, rets));
    int n_args = tn_call_num_arguments(call), n_rets = tn_call_num_returns(call);
    int n_results = list_tensors(call->schema->rets, rets, n_rets, NULL);
    tn_tensor **results = tni_alloc((size_t)n_results * sizeof *results);
    tn_status status = TN_OK;
    if (!results)
        status = tni_fail(TN_NOMEM, TNI_WHERE, "cannot list %d results of %s", n_results, f->name);
    if (status == TN_OK)
        status = tie_results(f, node, inputs, results,
                             list_tensors(call->schema->rets, rets, n_rets, results));
    tni_free(results);
    if (status == TN_OK)
        status = set_up(f, node, inputs, args, n_args, rets, n_rets);
    for (int i = 0; i < n_rets && status != TN_OK; i++)
        tn_value_clear(&rets[i]);
    return status;
}

static tn_status formula_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    formula *f = tn_call_context(call);
    int n_args = tn_call_num_arguments(call);
    int n = list_tensors(call->schema->args, args, n_args, NULL);
    if ((tni_tls.no_grad && !tni_forward_on) || n == 0)
        return below(call, args, rets);
    tn_tensor **inputs = tni_alloc((size_t)n * sizeof *inputs);
    TN_CHECK(inputs, TN_NOMEM, "cannot list %d arguments of %s", n, f->name);
    list_tensors(call->schema->args, args, n_args, inputs);
    bool any = false, pushes = false;
    for (int i = 0; i < n; i++) {
        any = any || (tni_recording && tni_requires_grad(inputs[i]));
        pushes = pushes || tni_pushes_tangent(inputs[i]);
    }
    tn_status status;
    if (pushes)
        status = tni_fail(TN_UNSUPPORTED, TNI_WHERE,
                          "Trying to use forward AD with %s that does not support it because it "
                          "has not been implemented yet.",
                          f->name);
    else
        status = any ? record(call, f, inputs, n, args, rets) : below(call, args, rets);
    tni_free(inputs);
    return status;
}

/* ---- registering ---- */

static tn_status check_functional(const char *name)
{
    tn_op *op;
    char *schema;
    TN_TRY(tn_op_find(name, &op));
    TN_TRY(tn_op_schema(op, &schema));
    bool aliases = strstr(schema, "Tensor(") != NULL;
    tn_status status = TN_OK;
    if (aliases)
        status = tni_fail(TN_INVALID, TNI_WHERE,
                          "Cannot register autograd formula for non-functional operator %s with "
                          "schema %s. Please create a functional operator and register an autograd "
                          "formula for that.",
                          name, schema);
    tn_string_free(schema);
    return status;
}

tn_status tn_library_autograd(tn_library *lib, const char *name, const tn_autograd_formula *f,
                              tn_registration **out)
{
    TN_CHECK(lib && name, TN_INVALID, "tn_library_autograd: lib or name is NULL");
    TN_CHECK(f && f->size == sizeof *f && f->backward, TN_INVALID,
             "a formula needs `size` and `backward`");
    formula *made = tni_calloc(sizeof *made);
    TN_CHECK(made, TN_NOMEM, "cannot allocate the formula of %s", name);
    tni_object_init(&made->object, &formula_type);
    made->it = *f;
    snprintf(made->name, sizeof made->name, "%s::%s", lib->ns, name);
    tn_status status = check_functional(made->name);
    if (status == TN_OK) {
        tn_kernel kernel = TN_KERNEL_INIT(formula_kernel);
        kernel.file = lib->file;
        kernel.line = lib->line;
        kernel.ctx = made;
        kernel.destroy = formula_unref;
        status = tn_library_impl(lib, name, TN_KEY_AUTOGRAD, &kernel, out);
    }
    if (status != TN_OK)
        tni_free(made); /* what it was made from is still the caller's */
    return status;
}
