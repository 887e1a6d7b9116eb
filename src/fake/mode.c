/* SPDX-License-Identifier: MIT */
/* fake/mode.c: making, entering and leaving fake modes, and asking a tensor for its own. */
#include "fake/mode.h"

#include "base/alloc.h"

static void mode_destroy(void *object)
{
    tn_fake_mode *mode = object;
    tni_memo_clear(&mode->tensors);
    tni_memo_clear(&mode->storages);
    tni_memo_clear(&mode->counters);
    pthread_mutex_destroy(&mode->lock);
    tni_free(mode);
}

static const tni_type mode_type = {"fake mode", NULL, mode_destroy, NULL};

tn_status tn_fake_mode_new(const tn_fake_opts *opts, tn_fake_mode **out)
{
    TN_CHECK(out, TN_INVALID, "tn_fake_mode_new: out is NULL");
    TN_CHECK(!opts || opts->size == sizeof *opts, TN_INVALID,
             "tn_fake_mode_new: opts->size is %u, expected %zu", opts ? opts->size : 0,
             sizeof *opts);
    TN_CHECK(!opts || opts->allow_non_fake_inputs <= 1, TN_INVALID,
             "tn_fake_mode_new: opts->allow_non_fake_inputs is %u, expected 0 or 1",
             opts ? opts->allow_non_fake_inputs : 0);
    tn_fake_mode *mode = tni_calloc(sizeof *mode);
    TN_CHECK(mode, TN_NOMEM, "cannot allocate a fake mode of %zu bytes", sizeof *mode);
    tni_object_init(&mode->object, &mode_type);
    pthread_mutex_init(&mode->lock, NULL);
    mode->allow_non_fake_inputs = opts && opts->allow_non_fake_inputs;
    *out = mode;
    return TN_OK;
}

tn_fake_mode *tn_fake_mode_ref(tn_fake_mode *mode)
{
    if (mode)
        tni_ref(&mode->object);
    return mode;
}

void tn_fake_mode_unref(tn_fake_mode *mode)
{
    if (mode)
        tni_unref(&mode->object);
}

tn_fake_guard tn_fake_enter(tn_fake_mode *mode)
{
    tni_state *s = &tni_tls;
    /* The thread's own reference of the mode it was in moves into the guard. */
    tn_fake_guard guard = {(tn_fake_mode *)s->fake_mode, s->included_xor};
    s->fake_mode = (tni_object *)tn_fake_mode_ref(mode);
    tn_keyset included = tni_included(s) & ~TNI_KS_FAKE;
    s->included_xor = (mode ? included | TNI_KS_FAKE : included) ^ TNI_DEFAULT_INCLUDED;
    return guard;
}

void tn_fake_leave(tn_fake_guard guard)
{
    tni_state *s = &tni_tls;
    tn_fake_mode *left = (tn_fake_mode *)s->fake_mode;
    s->fake_mode = (tni_object *)guard.mode;
    s->included_xor = guard.included;
    tn_fake_mode_unref(left);
}

tn_fake_mode *tn_fake_mode_current(void)
{
    return (tn_fake_mode *)tni_tls.fake_mode;
}

bool tn_is_fake(const tn_tensor *t)
{
    return t && tni_is_fake(t);
}

tn_device tn_fake_device(const tn_tensor *t)
{
    return tn_is_fake(t) ? t->device : TN_NO_DEVICE;
}

tn_fake_mode *tn_fake_mode_of(const tn_tensor *t)
{
    return tn_is_fake(t) ? tni_fake_mode_of(t) : NULL;
}
