/* SPDX-License-Identifier: MIT */
/* fake/kernel.c: any operator on fake tensors: Note [Running a fake call].
 *
 * Note [Running a fake call]
 * The key Fake sits below autograd and ADInplaceOrView, so that gradients, views and versions are
 * tracked before a call comes here, and above the backends, so that no backend sees a tensor that
 * has no memory. What happens here, in this order:
 *
 *  - a mode that was pushed inside the fake mode, or a handled tensor, goes first;
 *  - a composite operator goes on to its body, which comes back with the operators it calls;
 *  - the arguments must belong to one mode; real ones are refused or converted (inputs.c);
 *  - the arguments must agree on a device (inputs.c);
 *  - when all values are known, and the results are small, the operator is computed (constant.c);
 *  - the Meta kernel is run, with the thread set so that every tensor it makes is fake: it pretends
 *    the device that the operator gave it, which the shape function took from the arguments;
 *  - where it could not answer because an answer depends on values, the failure says so. */
#include "fake/kernel.h"

#include <string.h>

#include "core/device.h"
#include "dispatch/mode.h"
#include "fake/constant.h"
#include "fake/convert.h"
#include "fake/text.h"

/* ---- composite operators ---- */

static bool is_composite(const tn_op *op)
{
    tni_table *table = (tni_table *)(uintptr_t)tni_op_table(op);
    const tni_kernel *k =
        atomic_load_explicit(&table->slots[1 + TN_DEVICE_META], memory_order_acquire);
    return k->record && k->record->key == TN_KEY_COMPOSITE_IMPLICIT;
}

static tni_object *mode_of_arguments(const tni_schema *schema, const tn_value *args)
{
    for (uint64_t bits = schema->tensor_args; bits; bits &= bits - 1) {
        uint32_t at = 0;
        for (const tn_tensor *t; (t = tni_next_tensor(&args[__builtin_ctzll(bits)], &at)) != NULL;)
            if (tni_is_fake(t))
                return tni_fake_side_of(t->storage)->mode;
    }
    return NULL;
}

/* Its body makes tensors of its own: they must be fake also when the caller is outside the mode. */
static tn_status run_composite(tn_call *call, const tni_schema *schema, const tn_value *args,
                               tn_value *rets)
{
    tni_state *s = &tni_tls;
    tni_fake_switch before = tni_fake_remember(s);
    if (!s->fake_mode)
        s->fake_mode = mode_of_arguments(schema, args);
    if (s->fake_mode)
        tni_include(s, TNI_KS_FAKE);
    tn_keyset keys = tni_keyset_minus(call->keys & TNI_KS_AFTER(TN_KEY_FAKE),
                                      TNI_FBIT(TN_KEY_BACKEND_SELECT) | TNI_KS_PYTHON);
    tn_status status = tni_fake_go_on(call, schema, keys, args, rets);
    tni_fake_return(s, before);
    return status;
}

/* ---- real tensors among the arguments ---- */

static TNI_COLD tn_status meet_real(const tni_fake_inputs *in)
{
    if (tni_fake_has_tag(in->call->op, "inplace_view"))
        return tni_fake_refuse_call(in->call->op, in->schema, in->args,
                                    "Can't call metadata mutating ops on non-Fake Tensor inputs.");
    if (!in->mode->allow_non_fake_inputs)
        return tni_fake_refuse_call(
            in->call->op, in->schema, in->args,
            "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
            "'allow_non_fake_inputs'.");
    for (int i = 0; i < in->schema->nargs; i++) {
        uint32_t at = 0;
        if (!in->schema->args[i].is_write)
            continue;
        for (const tn_tensor *t; (t = tni_next_tensor(&in->args[i], &at)) != NULL;)
            if (!tni_is_fake(t))
                return tni_fake_refuse_call(
                    in->call->op, in->schema, in->args,
                    "A real tensor cannot be written from inside a fake mode: nothing would be "
                    "computed. Convert it with tn_fake_from_real first.");
    }
    return TN_OK;
}

/* ---- the Meta kernel ---- */

/* Meta kernels check what they can, and say so when they have no data to go on. */
static bool was_about_data(void)
{
    const char *text = tn_last_error();
    return strstr(text, "meta") || strstr(text, "Meta");
}

TNI_COLD tn_status tni_fake_explain_failure(const tn_op *op, tn_status status)
{
    char name[TNI_FAKE_NAME];
    if (status == TN_NOMEM || !was_about_data())
        return status;
    if (tni_fake_has_tag(op, "data_dependent_output"))
        return tni_fake_needs_values(tni_fake_op_name(op, name));
    if (!tni_fake_has_tag(op, "dynamic_output_shape"))
        return status;
    /* Indexing with a mask would have to find its true elements. */
    bool is_index = strncmp(op->name, "aten::index.", strlen("aten::index.")) == 0;
    return tni_fake_needs_sizes(is_index ? "aten.nonzero.default" : tni_fake_op_name(op, name));
}

static tn_status run_meta(tn_call *call, const tni_fake_inputs *in, tn_value *rets)
{
    tni_state *s = &tni_tls;
    tni_fake_switch before = tni_fake_start(s, &in->mode->object);
    tn_keyset keys = TNI_FAKE_META_KEYS | (call->keys & TNI_FAKE_LIMITED);
    tn_status status = tni_fake_go_on(call, in->schema, keys, in->args, rets);
    tni_fake_return(s, before);
    return TNI_LIKELY(status == TN_OK) ? TN_OK : tni_fake_explain_failure(call->op, status);
}

/* ---- results ---- */

static bool names_device(const tni_fake_inputs *in)
{
    for (int i = 0; i < in->schema->nargs; i++)
        if (in->args[i].tag == TN_TAG_DEVICE)
            return true;
    return false;
}

static bool is_argument(const tni_fake_inputs *in, const tn_tensor *t)
{
    for (int i = 0; i < in->schema->nargs; i++) {
        uint32_t at = 0;
        for (const tn_tensor *a; (a = tni_next_tensor(&in->args[i], &at)) != NULL;)
            if (a == t)
                return true;
    }
    return false;
}

__attribute__((noinline)) tn_status tni_fake_settle(tni_object *mode, tn_device device,
                                                    tn_tensor **place)
{
    tn_tensor *t = *place;
    if (tni_is_fake(t) && tn_tensor_use_count(t) == 1 &&
        tni_strong_count(&t->storage->object) == 1) {
        t->device = device;
        t->keys = tni_tensor_keys_for(device.type, tni_keys_are_inference(t->keys)) | TNI_KS_FAKE;
        return TN_OK;
    }
    if (tni_is_fake(t))
        return TN_OK;
    tn_tensor *made = NULL;
    TN_TRY(tni_tensor_new_fake(mode, t->ndim, t->sizes, t->strides, (tn_dtype)t->dtype, device,
                               &made));
    tn_tensor_unref(t);
    *place = made;
    return TN_OK;
}

static __attribute__((noinline)) tn_status settle_other(const tni_fake_inputs *in,
                                                        tn_tensor **place)
{
    if (names_device(in) || is_argument(in, *place))
        return TN_OK;
    tn_device device = in->device.type == TN_DEVICE_NONE ? (*place)->device : in->device;
    return tni_fake_settle(&in->mode->object, device, place);
}

static inline tn_status settle(const tni_fake_inputs *in, tn_tensor **place)
{
    const tn_tensor *t = *place;
    if (!t || TNI_LIKELY(tni_is_fake(t) && (in->device.type == TN_DEVICE_NONE ||
                                            tni_device_equal(t->device, in->device))))
        return TN_OK;
    return settle_other(in, place);
}

static tn_status settle_results(const tni_fake_inputs *in, tn_value *rets)
{
    tn_status status = TN_OK;
    for (int i = 0; i < in->schema->nrets && status == TN_OK; i++) {
        tn_value *v = &rets[i];
        if (TNI_LIKELY(v->tag == TN_TAG_TENSOR))
            status = settle(in, &v->u.tensor);
        for (uint32_t k = 0; v->tag == TN_TAG_TENSOR_LIST && k < v->count && status == TN_OK; k++)
            status = settle(in, (tn_tensor **)(uintptr_t)&v->u.tensors[k]);
    }
    for (int i = 0; i < in->schema->nrets && status != TN_OK; i++)
        tn_value_clear(&rets[i]);
    return status;
}

/* ---- whole ---- */

static tn_status run_unknown(tn_call *call, const tni_fake_inputs *in, tn_value *rets)
{
    TN_TRY(run_meta(call, in, rets));
    if (in->schema->is_mutable && in->constants)
        tni_fake_forget_written(in);
    return settle_results(in, rets);
}

/* All values are known. The Meta kernel goes first and says how large the results would be: what is
 * known may be repeated without end, and large results are not kept. It changes nothing yet, since
 * operators that change sizes are not computed. */
static __attribute__((noinline)) tn_status run_known(tn_call *call, const tni_fake_inputs *in,
                                                     tn_value *rets)
{
    if (!tni_fake_may_compute(in))
        return run_unknown(call, in, rets);
    tn_status status = run_meta(call, in, rets);
    if (status == TN_OK) {
        bool small = tni_fake_are_small(rets, in->schema->nrets);
        for (int i = 0; i < in->schema->nrets; i++)
            tn_value_clear(&rets[i]);
        if (!small)
            return run_unknown(call, in, rets);
    } else if (!strstr(tn_last_error(), TNI_DEPENDS_ON_VALUES)) {
        return status;
    }
    return tni_fake_compute(call, in, rets);
}

static tn_status run(tn_call *call, tni_fake_inputs *in, tn_value *rets)
{
    if (TNI_UNLIKELY(in->mixed))
        TN_TRY(tni_fake_check_devices(in));
    if (TNI_UNLIKELY(in->constants && in->constants == in->fakes))
        return run_known(call, in, rets);
    return run_unknown(call, in, rets);
}

/* lift_fresh is what brings real values into the mode. */
static tn_status bring_in(const tni_fake_inputs *in, tn_value *rets)
{
    tn_tensor *made = NULL;
    TN_TRY(tni_fake_constant(&in->mode->object, in->args[0].u.tensor, &made));
    rets[0] = tn_value_take_tensor(made);
    return TN_OK;
}

/* Convert the real arguments, and look again. */
static __attribute__((noinline)) tn_status run_converted(tn_call *call, tni_fake_inputs *in,
                                                         tn_value *rets)
{
    if (strcmp(call->op->name, "aten::lift_fresh") == 0)
        return bring_in(in, rets);
    tn_value converted[TNI_SCHEMA_MAX_ARGS];
    TN_TRY(meet_real(in));
    TN_TRY(tni_fake_convert_arguments(in->mode, in->schema, in->args, converted));
    in->args = converted;
    tn_status status = tni_fake_look(in);
    if (status == TN_OK)
        status = run(call, in, rets);
    for (int i = 0; i < in->schema->nargs; i++)
        tn_value_clear(&converted[i]);
    return status;
}

tn_status tni_fake_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    const tni_schema *schema = call->op->builtin ? tni_op_get_schema(call->op) : call->schema;
    if (TNI_UNLIKELY(!schema))
        return tn_last_status();
    if (TNI_UNLIKELY(call->keys & TNI_KS_PYTHON) && tni_mode_before_fake(schema, args))
        return tni_fake_go_on(call, schema, call->keys & TNI_KS_AFTER(TN_KEY_FAKE), args, rets);
    if (TNI_UNLIKELY(is_composite(call->op)))
        return run_composite(call, schema, args, rets);
    tni_fake_inputs in = {.call = call, .schema = schema, .args = args};
    TN_TRY(tni_fake_look(&in));
    if (TNI_UNLIKELY(in.real != NULL))
        return run_converted(call, &in, rets);
    return run(call, &in, rets);
}
