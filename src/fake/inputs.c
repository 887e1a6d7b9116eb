/* SPDX-License-Identifier: MIT */
/* fake/inputs.c: mode and device of a call on fake tensors, by the reference's rules. */
#include "fake/inputs.h"

#include <string.h>

#include "core/device.h"
#include "fake/text.h"

/* ---- rules for single operators ---- */

/* The result is where self is; the others may be anywhere. */
static const char *const self_decides[] = {
    "aten::copy_",         "aten::index.Tensor",     "aten::index_put",
    "aten::index_put_",    "aten::_index_put_impl_", "aten::slice_scatter",
    "aten::index_put.out", "aten::index.Tensor_out", "aten::slice_scatter.out",
    "aten::copy",          "aten::copy.out",
};
/* A 0-dim CPU tensor is like any other. */
static const char *const no_exemption[] = {"aten::nextafter", "aten::nextafter_",
                                           "aten::nextafter.out"};

#define IS_ONE_OF(op, names) is_one_of((op)->name, names, sizeof(names) / sizeof((names)[0]))

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

bool tni_fake_has_tag(const tn_op *op, const char *tag)
{
    const char *tags = op->builtin ? op->builtin->tags : op->tags;
    size_t n = strlen(tag);
    for (const char *at = tags; at && (at = strstr(at, tag)) != NULL; at += n)
        if ((at == tags || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* ---- meeting a tensor ---- */

static bool is_cpu_number(const tn_tensor *t)
{
    return t->ndim == 0 && t->device.type == TN_DEVICE_CPU;
}

static TNI_COLD tn_status two_devices(const tni_fake_inputs *in, const tn_tensor *t)
{
    char name[TNI_FAKE_NAME], a[32], b[32];
    TN_FAIL(TN_INVALID,
            "Unhandled FakeTensor Device Propagation for %s, found two different devices %s, %s",
            tni_fake_op_name(in->call->op, name), tn_device_format(in->device, a, sizeof a),
            tn_device_format(t->device, b, sizeof b));
}

/* @p t is on another device than those before it. */
static __attribute__((noinline)) tn_status other_device(tni_fake_inputs *in, const tn_tensor *t)
{
    in->mixed = true;
    if (IS_ONE_OF(in->call->op, self_decides))
        return TN_OK;
    bool exempt = !IS_ONE_OF(in->call->op, no_exemption);
    if (exempt && is_cpu_number(t))
        return TN_OK;
    if (!exempt || !in->device_is_weak)
        return two_devices(in, t);
    in->device = t->device;
    in->device_is_weak = false;
    return TN_OK;
}

static inline tn_status meet(tni_fake_inputs *in, const tn_tensor *t)
{
    if (TNI_UNLIKELY(!tni_is_fake(t))) {
        if (!(t->flags & TNI_WRAPPED_NUMBER) && !in->real)
            in->real = t;
        return TN_OK;
    }
    const tni_fake_side *side = tni_fake_side_of(t->storage);
    tn_fake_mode *mode = (tn_fake_mode *)side->mode;
    if (TNI_UNLIKELY(in->mode != mode)) {
        TN_CHECK(!in->mode, TN_INVALID, "Mixing fake modes NYI");
        in->mode = mode;
    }
    in->fakes++;
    in->constants += side->constant != NULL;
    if (in->device.type == TN_DEVICE_NONE) {
        in->device = t->device;
        in->device_is_weak = is_cpu_number(t);
    } else if (TNI_UNLIKELY(!tni_device_equal(in->device, t->device))) {
        return other_device(in, t);
    } else if (in->device_is_weak) {
        in->device_is_weak = is_cpu_number(t);
    }
    return TN_OK;
}

tn_status tni_fake_look(tni_fake_inputs *in)
{
    in->mode = (tn_fake_mode *)tni_tls.fake_mode;
    in->real = NULL;
    in->fakes = in->constants = 0;
    in->device = TN_NO_DEVICE;
    in->device_is_weak = in->mixed = false;
    for (uint64_t bits = in->schema->tensor_args; bits; bits &= bits - 1) {
        uint32_t at = 0;
        const tn_value *v = &in->args[__builtin_ctzll(bits)];
        for (const tn_tensor *t; (t = tni_next_tensor(v, &at)) != NULL;)
            TN_TRY(meet(in, t));
    }
    TN_CHECK(in->mode, TN_INVALID,
             "%s: the key Fake is included, but this thread is in no fake mode: use tn_fake_enter",
             in->call->op->name);
    return TN_OK;
}

/* ---- going on ---- */

/* The common way: nobody watches, and the kernel is a typed one of ours, whose results its adaptor
 * has made. */
static inline tn_status run_plain(tn_call *next, const tni_schema *schema, const tn_value *args,
                                  tn_value *rets)
{
    for (int i = 0; i < schema->nrets; i++)
        rets[i] = tn_value_none();
    tn_status status = next->kernel->boxed(next, args, rets);
    for (int i = 0; TNI_UNLIKELY(status != TN_OK) && i < schema->nrets; i++)
        tn_value_clear(&rets[i]);
    return tni_redispatch_end(next, status);
}

tn_status tni_fake_go_on(tn_call *call, const tni_schema *schema, tn_keyset keys,
                         const tn_value *args, tn_value *rets)
{
    tni_begun begun = tni_redispatch_begin(call, call->op, keys);
    if (TNI_LIKELY(begun.typed && call->op->builtin))
        return run_plain(begun.call, schema, args, rets);
    tn_status status = TN_OK;
    tn_call *next = begun.call;
    if (!next)
        next = tni_begin(call, call->op, keys, TN_EVENT_REDISPATCH_BOXED, args, schema->nargs,
                         &status);
    if (TNI_UNLIKELY(!next))
        return status;
    next->schema = schema;
    return tni_call_end(next, tni_run_kernel(next, schema, args, rets));
}

/* ---- what else must agree ---- */

static TNI_COLD tn_status check_index_put(const tni_fake_inputs *in)
{
    char name[TNI_FAKE_NAME], a[32], b[32];
    if (in->args[0].tag != TN_TAG_TENSOR || in->args[2].tag != TN_TAG_TENSOR)
        return TN_OK;
    const tn_tensor *self = in->args[0].u.tensor, *values = in->args[2].u.tensor;
    if (!self || !values || values->ndim == 0 || tni_device_equal(self->device, values->device))
        return TN_OK;
    TN_FAIL(TN_INVALID, "Mismatching %s device between self (%s) and values (%s)",
            tni_fake_op_name(in->call->op, name), tn_device_format(self->device, a, sizeof a),
            tn_device_format(values->device, b, sizeof b));
}

static tn_status check_written(const tni_fake_inputs *in)
{
    char a[32], b[32];
    for (int i = 0; i < in->schema->nargs; i++) {
        uint32_t at = 0;
        if (!in->schema->args[i].is_write)
            continue;
        for (const tn_tensor *t; (t = tni_next_tensor(&in->args[i], &at)) != NULL;)
            TN_CHECK(tni_device_equal(t->device, in->device), TN_INVALID,
                     "FakeTensor is wrapped to wrong device, found %s, expected %s",
                     tn_device_format(t->device, a, sizeof a),
                     tn_device_format(in->device, b, sizeof b));
    }
    return TN_OK;
}

tn_status tni_fake_check_devices(const tni_fake_inputs *in)
{
    if (strncmp(in->call->op->name, "aten::index_put", strlen("aten::index_put")) == 0 ||
        strcmp(in->call->op->name, "aten::_index_put_impl_") == 0)
        return check_index_put(in);
    return check_written(in);
}
