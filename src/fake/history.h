/* SPDX-License-Identifier: MIT */
/* fake/history.h: what autograd knows of a converted tensor. */
#ifndef TNI_FAKE_HISTORY_H
#define TNI_FAKE_HISTORY_H

#include "core/tensor.h"

/* @p fake stands for a tensor that recorded calls made. Their graph is of real tensors, so that a
 * backward pass which reaches this point fails. */
TN_NODISCARD tn_status tni_fake_give_history(tn_tensor *fake);
/* A view of @p base (fake) that lies as @p like does; recorded, or a leaf. It counts writes with
 * @p base and knows it as its base. */
TN_NODISCARD tn_status tni_fake_view(tn_tensor *base, const tn_tensor *like, bool recorded,
                                     TN_OWNED tn_tensor **out);

#endif
