/* SPDX-License-Identifier: MIT */
/* fake/constant.c: operators on fake tensors whose values are all known are run for real, on the
 * CPU, and give fake tensors with known values; see Note [Fake tensors] in core/fake.h. */
#include "fake/constant.h"

#include <string.h>

#include "base/alloc.h"

/* ---- which operators ---- */

enum { MOST_ELEMENTS = 64 }; /* of an argument: one element may be repeated without end */

static bool is_small(const tn_value *v)
{
    uint32_t at = 0;
    for (const tn_tensor *t; (t = tni_next_tensor(v, &at)) != NULL;)
        if (t->numel > MOST_ELEMENTS)
            return false;
    return true;
}

/* Random results are not known; where sizes change, or the caller gives the tensor that becomes the
 * result, fake and real tensors would part; and what goes to another device stays unknown. */
bool tni_fake_may_compute(const tni_fake_inputs *in)
{
    const tn_op *op = in->call->op;
    if (tni_fake_has_tag(op, "nondeterministic_seeded") || tni_fake_has_tag(op, "inplace_view"))
        return false;
    for (int i = 0; i < in->schema->nargs; i++) {
        const tn_value *v = &in->args[i];
        if (in->schema->args[i].is_out || v->tag == TN_TAG_LIST || !is_small(v))
            return false;
        if (v->tag == TN_TAG_DEVICE && v->u.device.type != TN_DEVICE_CPU)
            return false;
    }
    return in->schema->nrets > 0;
}

/* ---- fake to real ---- */

/* The known values of @p t, as a real tensor over them. */
static tn_status known_values(const tn_tensor *t, tn_tensor **out)
{
    TN_TRY(tni_tensor_over(tni_fake_side_of(t->storage)->constant, t->ndim, t->sizes, t->strides,
                           t->offset, (tn_dtype)t->dtype,
                           tni_tensor_keys_for(TN_DEVICE_CPU, tni_keys_are_inference(t->keys)),
                           TN_CPU, out));
    (*out)->flags |= t->flags & TNI_WRAPPED_NUMBER;
    return TN_OK;
}

static tn_status real_tensor(tn_tensor *t, tn_tensor **out)
{
    if (t && tni_is_fake(t))
        return known_values(t, out);
    *out = tn_tensor_ref(t);
    return TN_OK;
}

static tn_status real_list(const tn_value *v, tn_value *out)
{
    tn_tensor **list = tni_calloc((v->count ? v->count : 1) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %u tensors", v->count);
    for (uint32_t i = 0; i < v->count; i++) {
        tn_status status = real_tensor(v->u.tensors[i], &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = tn_value_take_tensors(list, v->count);
    return TN_OK;
}

static tn_status real_argument(const tn_value *v, tn_value *out)
{
    tn_tensor *t = NULL;
    if (v->tag == TN_TAG_TENSOR_LIST)
        return real_list(v, out);
    if (v->tag != TN_TAG_TENSOR) {
        *out = *v; /* borrowed */
        out->flags &= (uint8_t)~TN_VALUE_OWNED;
        return TN_OK;
    }
    TN_TRY(real_tensor(v->u.tensor, &t));
    *out = tn_value_take_tensor(t);
    return TN_OK;
}

/* ---- real to fake ---- */

/* The fake argument whose known values @p real shares, with the very tensor it stands for when it
 * is that argument itself. */
static tn_tensor *source_of(const tni_fake_inputs *in, const tn_value *reals, const tn_tensor *real,
                            bool *is_itself)
{
    for (int i = 0; i < in->schema->nargs; i++) {
        uint32_t at = 0, real_at = 0;
        for (tn_tensor *t; (t = tni_next_tensor(&in->args[i], &at)) != NULL;) {
            const tn_tensor *r = tni_next_tensor(&reals[i], &real_at);
            if (r && tni_is_fake(t) && r->storage == real->storage) {
                *is_itself = r == real;
                return t;
            }
        }
    }
    return NULL;
}

static tn_status fake_result(const tni_fake_inputs *in, const tn_value *reals,
                             const tn_tensor *real, tn_tensor **out)
{
    bool is_itself = false;
    tn_tensor *source = source_of(in, reals, real, &is_itself);
    if (!source)
        return tni_fake_constant(&in->mode->object, real, out);
    if (is_itself) {
        *out = tn_tensor_ref(source);
        return TN_OK;
    }
    return tni_tensor_over(source->storage, real->ndim, real->sizes, real->strides, real->offset,
                           (tn_dtype)real->dtype, source->keys, source->device, out);
}

static tn_status fake_value(const tni_fake_inputs *in, const tn_value *reals, tn_value *v)
{
    tn_tensor *made = NULL;
    if (v->tag == TN_TAG_TENSOR && v->u.tensor) {
        TN_TRY(fake_result(in, reals, v->u.tensor, &made));
        tn_value_clear(v);
        *v = tn_value_take_tensor(made);
    }
    for (uint32_t i = 0; v->tag == TN_TAG_TENSOR_LIST && i < v->count; i++) {
        tn_tensor **place = (tn_tensor **)(uintptr_t)&v->u.tensors[i];
        if (!*place)
            continue;
        TN_TRY(fake_result(in, reals, *place, &made));
        tn_tensor_unref(*place);
        *place = made;
    }
    return TN_OK;
}

bool tni_fake_are_small(const tn_value *rets, int n)
{
    for (int i = 0; i < n; i++) {
        uint32_t at = 0;
        for (const tn_tensor *t; (t = tni_next_tensor(&rets[i], &at)) != NULL;)
            if (t->numel > 1)
                return false;
    }
    return true;
}

/* ---- whole ---- */

static tn_status run_real(tn_call *call, const tni_schema *schema, const tn_value *reals,
                          tn_value *rets)
{
    tni_state *s = &tni_tls;
    tni_fake_switch before = tni_fake_remember(s);
    s->fake_mode = NULL;
    s->faking = 0;
    tni_exclude(s, TNI_BELOW_ADINPLACE_OR_VIEW | TNI_KS_FAKE);
    tn_status status = tni_fake_go_on(call, schema, tni_key_set(TN_KEY_CPU), reals, rets);
    tni_fake_return(s, before);
    return status;
}

tn_status tni_fake_compute(tn_call *call, const tni_fake_inputs *in, tn_value *rets)
{
    tn_value reals[TNI_SCHEMA_MAX_ARGS];
    int n = 0, nrets = in->schema->nrets;
    tn_status status = TN_OK;
    for (; n < in->schema->nargs && status == TN_OK; n += status == TN_OK)
        status = real_argument(&in->args[n], &reals[n]);
    if (status == TN_OK) {
        status = run_real(call, in->schema, reals, rets);
        for (int i = 0; i < nrets && status == TN_OK; i++)
            status = fake_value(in, reals, &rets[i]);
        for (int i = 0; i < nrets && status != TN_OK; i++)
            tn_value_clear(&rets[i]);
    }
    for (int i = 0; i < n; i++)
        tn_value_clear(&reals[i]);
    return status;
}

void tni_fake_forget_written(const tni_fake_inputs *in)
{
    for (int i = 0; i < in->schema->nargs; i++) {
        uint32_t at = 0;
        if (!in->schema->args[i].is_write)
            continue;
        for (tn_tensor *t; (t = tni_next_tensor(&in->args[i], &at)) != NULL;) {
            if (!tni_is_fake(t))
                continue;
            tni_fake_side *side = tni_fake_side_of(t->storage);
            if (side->constant)
                tni_storage_unref(side->constant);
            side->constant = NULL;
        }
    }
}

tn_status tn_fake_constant(tn_tensor *t, tn_tensor **out)
{
    TN_CHECK(t && out, TN_INVALID, "tn_fake_constant: %s is NULL", t ? "out" : "t");
    TN_CHECK(tni_is_fake(t), TN_INVALID, "tn_fake_constant: t is not a fake tensor");
    const tni_storage *constant = tni_fake_side_of(t->storage)->constant;
    tn_tensor *copy = NULL;
    if (constant) {
        TN_AUTO(tn_tensor) known = NULL;
        TN_TRY(known_values(t, &known));
        TN_TRY(
            tni_tensor_new_real(t->ndim, t->sizes, t->strides, (tn_dtype)t->dtype, TN_CPU, &copy));
        if (copy->data && known->data) /* one element, or one repeated */
            memcpy(copy->data, known->data, tni_itemsize(copy));
    }
    *out = copy;
    return TN_OK;
}
