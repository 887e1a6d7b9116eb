/* SPDX-License-Identifier: MIT */
/* fake/mode.h: fake modes, and which one a thread is in. The public half is tenon/fake.h. */
#ifndef TNI_FAKE_MODE_H
#define TNI_FAKE_MODE_H

#include <pthread.h>
#include "tenon/fake.h"
#include "core/fake.h"
#include "core/state.h"
#include "fake/memo.h"

struct tn_fake_mode {
    tni_object object;
    bool allow_non_fake_inputs;
    pthread_mutex_t lock; /* guards the memos; nothing of others runs while it is held */
    tni_memo tensors;     /* real tensor -> its fake */
    tni_memo storages;    /* real storage -> its fake */
    tni_memo counters;    /* real tensor whose header counts writes -> the fake that counts them */
};

static inline tn_fake_mode *tni_fake_mode_of(const tn_tensor *t)
{
    return (tn_fake_mode *)tni_fake_side_of(t->storage)->mode;
}

#endif
