/* SPDX-License-Identifier: MIT */
/* fake/gate.c: most calls on fake tensors have nothing for the kernel of the Fake key to decide:
 * see Note [Running a fake call] in kernel.c, of which this is the last but one step. */
#include "fake/gate.h"

#include "core/device.h"
#include "fake/kernel.h"

/* Whether all tensors agree: on a mode, on a device, and none has a value that is known. */
static inline bool is_plain(tni_passage *p)
{
    p->mode = tni_tls.fake_mode;
    p->device = TN_NO_DEVICE;
    for (int i = 0; i < p->n_tensors; i++) {
        const tn_tensor *t = p->tensors[i];
        if (!t)
            continue;
        if (TNI_UNLIKELY(!tni_is_fake(t))) {
            if (t->flags & TNI_WRAPPED_NUMBER)
                continue;
            return false;
        }
        const tni_fake_side *side = tni_fake_side_of(t->storage);
        if (TNI_UNLIKELY(p->mode != side->mode)) {
            if (p->mode)
                return false;
            p->mode = side->mode;
        }
        if (side->constant)
            return false;
        if (p->device.type == TN_DEVICE_NONE)
            p->device = t->device;
        else if (TNI_UNLIKELY(!tni_device_equal(p->device, t->device)))
            return false;
    }
    return p->device.type != TN_DEVICE_NONE;
}

static tn_typed_fn enter(tni_passage *p)
{
    tn_call *call = p->call;
    if (TNI_UNLIKELY((call->keys & (TNI_KS_PYTHON | TNI_FAKE_LIMITED)) || !call->op->builtin ||
                     !is_plain(p)))
        return NULL;
    tni_begun below = tni_redispatch_begin(call, call->op, TNI_FAKE_META_KEYS);
    if (TNI_UNLIKELY(!below.call))
        return NULL;
    const tni_record *r = below.call->kernel->record;
    if (TNI_UNLIKELY(!below.typed || !r || r->key == TN_KEY_COMPOSITE_IMPLICIT)) {
        tni_redispatch_forget(below.call);
        return NULL;
    }
    tni_stage(call, TNI_STAGE_INSIDE); /* for the recorder: the fallback has begun */
    p->next = below.call;
    p->before = tni_fake_start(&tni_tls, p->mode);
    return below.typed;
}

static bool is_argument(const tni_passage *p, const tn_tensor *t)
{
    for (int i = 0; i < p->n_tensors; i++)
        if (p->tensors[i] == t)
            return true;
    return false;
}

static tn_status leave(tni_passage *p, tn_status status, tn_tensor **result)
{
    tni_redispatch_end(p->next, status);
    tni_fake_return(&tni_tls, p->before);
    if (TNI_UNLIKELY(status != TN_OK))
        return tni_fake_explain_failure(p->call->op, status);
    tn_tensor *t = *result;
    if (TNI_LIKELY(!t || (tni_is_fake(t) && tni_device_equal(t->device, p->device))) ||
        is_argument(p, t))
        return TN_OK;
    status = tni_fake_settle(p->mode, p->device, result);
    if (status != TN_OK)
        tn_tensor_unref(t);
    return status;
}

const tni_gate tni_fake_gate = {enter, leave};
