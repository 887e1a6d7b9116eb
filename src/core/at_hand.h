/* SPDX-License-Identifier: MIT */
/* core/at_hand.h: has a tensor numbers, and may what looks at them beside the dispatcher read them
 * where it says? */
#ifndef TNI_CORE_AT_HAND_H
#define TNI_CORE_AT_HAND_H

#include "core/tensor.h"

/* Not where @p t is meta, fake or of another device, nor where a class of its own keeps its numbers
 * elsewhere: a wrapper has no memory. */
static inline bool tni_is_at_hand(const tn_tensor *t)
{
    return t->device.type == TN_DEVICE_CPU && (t->numel == 0 || t->data);
}
/* Has @p t no numbers anywhere? It is meta or fake. A wrapper, whose storage is meta too, has some:
 * operators that are called with it find them. */
static inline bool tni_is_hollow(const tn_tensor *t)
{
    return tni_is_meta(t) && (t->device.type == TN_DEVICE_META || tni_is_fake(t));
}
#define TNI_NOT_AT_HAND "Cannot access data pointer of Tensor that doesn't have storage"

#endif
