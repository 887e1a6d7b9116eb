/* SPDX-License-Identifier: MIT */
/* fake/gate.h: plain calls on fake tensors, without boxes: see Note [Gates] in dispatch/gate.h. */
#ifndef TNI_FAKE_GATE_H
#define TNI_FAKE_GATE_H

#include "dispatch/gate.h"

/* Of the Fake key: passes calls whose tensors are fake, of one mode, on one device and of unknown
 * values, to operators of ours that have a typed Meta kernel. What it does is what tni_fake_kernel
 * does with them. */
extern const tni_gate tni_fake_gate;

#endif
