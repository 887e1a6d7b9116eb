/* SPDX-License-Identifier: MIT */
/* names/kernel.c: any operator on named tensors: Note [Running a named call].
 *
 * Note [Running a named call]
 * The key Named sits below autograd and ADInplaceOrView: what they record has no names, and what is
 * called here is an operator that computes. Its rule (names/rules.h) says from the names of its
 * arguments what those of its results are, or that they do not match; then the operator runs as if
 * there were none, the key being excluded, and its results get their names. All that can fail is
 * done before anything is written, but for results that are new.
 *
 * A composite operator without a rule goes on to its body, which comes back with the operators that
 * it calls. One with a rule comes here first (tools/opgen/emit_kernels.py), and its body sees no
 * names: as softmax, whose parts know none. */
#include "names/kernel.h"

#include "autograd/meta.h"
#include "dispatch/call.h"
#include "names/rules.h"
#include "names/set.h"

/* Arguments that the call writes and returns. */
static tn_tensor *written(const tni_naming *to, int i)
{
    const tn_value *v = &to->args[i];
    return to->schema->args[i].is_write && v->tag == TN_TAG_TENSOR ? v->u.tensor : NULL;
}

static TNI_COLD tn_status refuse(const tn_op *op)
{
    TN_FAIL(TN_INVALID,
            "%s is not yet supported with named tensors. Please drop names via `tensor = "
            "tensor.rename(None)`, call the op with an unnamed tensor, and set names on the result "
            "of the operation.",
            op->name);
}

/* A tensor that is written either has the names of the result, or none yet. */
static tn_status check_written(const tni_naming *to)
{
    char a[TNI_NAMES_TEXT], b[TNI_NAMES_TEXT];
    tni_grad_meta *meta;
    for (int i = 0; i < to->schema->nargs; i++) {
        tn_tensor *t = written(to, i);
        const tni_names *names = tni_names_of(t);
        if (!t || !names) {
            if (t)
                TN_TRY(tni_meta_get(t, &meta));
            continue;
        }
        if (names->n != to->n)
            continue; /* of another size: it is refused to become another */
        for (int d = 0; d < to->n; d++)
            TN_CHECK(tni_name_equal(names->at[d], to->names[d]), TN_INVALID,
                     "Name mismatch: specified out tensor with names %s are not the same as the "
                     "computed output names %s. Please rename the out tensor's dims with "
                     "`Tensor.rename`.",
                     tni_names_format(names->at, names->n, a),
                     tni_names_format(to->names, to->n, b));
    }
    return TN_OK;
}

/* What was returned as it came, and what was written, may have them already. */
static bool has_names(const tn_tensor *t, const tni_names *names)
{
    const tni_names *old = t->keys & TNI_KS_NAMED ? t->autograd->names : NULL;
    bool equal = old && old->n == names->n;
    for (int i = 0; equal && i < names->n; i++)
        equal = tni_name_equal(old->at[i], names->at[i]);
    return equal;
}

static tn_status name_result(tn_tensor *t, tni_names *names)
{
    tni_grad_meta *meta;
    if (!t || t->ndim != names->n || has_names(t, names))
        return TN_OK;
    TN_TRY(tni_names_check_device(t));
    TN_TRY(tni_meta_get(t, &meta));
    tni_meta_set_names(t, names);
    return TN_OK;
}

static tn_status name_results(const tni_naming *to, tni_names *names, tn_value *rets)
{
    tn_status status = TN_OK;
    for (int i = 0; i < to->schema->nrets && status == TN_OK; i++) {
        if (rets[i].tag == TN_TAG_TENSOR)
            status = name_result(rets[i].u.tensor, names);
        for (uint32_t k = 0; rets[i].tag == TN_TAG_TENSOR_LIST && k < rets[i].count; k++)
            if (status == TN_OK)
                status = name_result(rets[i].u.tensors[k], names);
    }
    for (int i = 0; i < to->schema->nrets && status != TN_OK; i++)
        tn_value_clear(&rets[i]);
    return status;
}

/* The operator below, which sees no names. A composite one is run here and now: modes see what it
 * calls. */
static tn_status run(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_keyset keys = call->keys & TNI_KS_AFTER(TN_KEY_NAMED);
    if (call->op->builtin->flags & TNI_OP_COMPOSITE)
        keys = tni_keyset_minus(keys, TNI_FBIT(TN_KEY_BACKEND_SELECT) | TNI_FBIT(TN_KEY_PYTHON) |
                                          TNI_KS_FAKE);
    uint64_t before = tni_exclude(&tni_tls, TNI_KS_NAMED);
    tn_status status = tn_call_redispatch(call, keys, args, rets);
    tni_tls.excluded_xor = before;
    return status;
}

static tn_status run_named(tn_call *call, tni_naming *to, tn_value *rets)
{
    TN_AUTO(tni_names) names = NULL;
    TN_TRY(tni_name_rules[call->op->builtin->names](to));
    if (to->known) {
        rets[0] = to->result;
        return TN_OK;
    }
    if (to->given) {
        TN_TRY(check_written(to));
        TN_TRY(tni_names_check_distinct(to->names, to->n));
        if (tni_names_any(to->names, to->n))
            TN_TRY(tni_names_new(to->names, to->n, &names));
    }
    TN_TRY(run(call, to->args, rets));
    return names ? name_results(to, names, rets) : TN_OK;
}

static bool is_composite(const tn_call *call)
{
    tni_table *table = (tni_table *)(uintptr_t)tni_op_table(call->op);
    const tni_kernel *k = atomic_load_explicit(
        &table->slots[tni_keyset_slot(call->keys & TNI_KS_AFTER(TN_KEY_BACKEND_SELECT))],
        memory_order_acquire);
    return k->record && k->record->key == TN_KEY_COMPOSITE_IMPLICIT;
}

tn_status tni_named_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    const tni_schema *schema = call->op->builtin ? tni_op_get_schema(call->op) : call->schema;
    if (!schema)
        return tn_last_status();
    if (call->op->builtin && call->op->builtin->names != TNI_NAMES_REFUSED) {
        tni_naming to;
        to.schema = schema;
        to.args = args;
        to.n = 0;
        to.given = to.known = false;
        return run_named(call, &to, rets);
    }
    if (is_composite(call))
        return tn_call_redispatch(call, call->keys & TNI_KS_AFTER(TN_KEY_NAMED), args, rets);
    return refuse(call->op);
}
