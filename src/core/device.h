/* SPDX-License-Identifier: MIT */
/* core/device.h: the devices that exist, and what each can do with memory. */
#ifndef TNI_CORE_DEVICE_H
#define TNI_CORE_DEVICE_H

#include "tenon/tensor.h"

/* What the device does with memory; NULL for the CPU, for meta and for a device that nobody
 * claimed. Lives for ever. */
const tn_device_vtable *tni_device_vtable(tn_device device);
/* tn_device_register without what the dispatcher adds. @p prepare is asked before the device is
 * published; when it fails nothing is claimed. */
TN_NODISCARD tn_status tni_device_claim(const char *name, const tn_device_vtable *vtable,
                                        tn_status (*prepare)(tn_device_type type),
                                        tn_device_type *out);
/* Give one device type its functions: for backends of our own that sit above this layer (CUDA).
 * Out-of-tree devices take the public door. @retval TN_INVALID  it has some already */
TN_NODISCARD tn_status tni_device_install(tn_device_type type, const tn_device_vtable *vtable);
/* Around fork(): nobody is inside the list then. */
void tni_device_lock(void);
void tni_device_unlock(void);
/* What it is called while nobody has claimed it; "invalid" for a wrong number. */
const char *tni_device_builtin_name(int type);
/* "cpu", "cuda", a claimed name, "privateuseone" for a free one; "invalid" for a wrong number. */
const char *tni_device_type_name(int type);
/* Whether the number is a device type that a tensor can have: CPU, meta, or one with functions. */
bool tni_device_usable(tn_device device);

/* The device as tensors report it: the CPU and meta have no index, others number 0 when none is
 * said. */
static inline tn_device tni_device_normal(tn_device device)
{
    if (device.type == TN_DEVICE_CPU || device.type == TN_DEVICE_META)
        device.index = -1;
    else if (device.index < 0)
        device.index = 0;
    return device;
}

static inline bool tni_device_equal(tn_device a, tn_device b)
{
    return a.type == b.type && a.index == b.index;
}

#endif
