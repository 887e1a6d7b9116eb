/* SPDX-License-Identifier: MIT */
/* core/fake.h: what a fake tensor is made of. The layer that runs operators on them is fake/.
 *
 * Note [Fake tensors]
 * A fake tensor looks like a tensor of some device and has no memory: the key Fake in its set, that
 * device in its `device` field, the device's other keys as any tensor of it has them, and a meta
 * storage. Behind the storage's header stands whose it is: the fake mode, which all tensors over
 * one storage have in common, and its constant.
 *
 * A constant is the memory that the fake storage stands for, where its values are known: a real CPU
 * storage of the same size. The constant of any tensor over the fake storage is the tensor of the
 * same geometry over the real one, so that views see a known write to their base, and dropping it
 * (an unknown write) makes all of them forget at once. */
#ifndef TNI_CORE_FAKE_H
#define TNI_CORE_FAKE_H

#include "core/state.h"
#include "core/tensor.h"

typedef struct tni_fake_side {
    tni_object *mode;      /* strong */
    tni_storage *constant; /* strong; NULL: values are not known */
} tni_fake_side;

static inline tni_fake_side *tni_fake_side_of(const tni_storage *s)
{
    TNI_ASSERT(s->side == TNI_SIDE_FAKE);
    return (tni_fake_side *)(uintptr_t)(s + 1);
}

/* Switch this thread to another state around a kernel, and back. */
typedef struct tni_fake_switch {
    uint64_t included_xor, excluded_xor;
    tni_object *mode;
    uint8_t faking;
} tni_fake_switch;

static inline tni_fake_switch tni_fake_remember(const tni_state *s)
{
    return (tni_fake_switch){s->included_xor, s->excluded_xor, s->fake_mode, s->faking};
}
static inline void tni_fake_return(tni_state *s, tni_fake_switch before)
{
    s->included_xor = before.included_xor;
    s->excluded_xor = before.excluded_xor;
    s->fake_mode = before.mode;
    s->faking = before.faking;
}

/* Bytes that a constant may have: one element of any dtype. */
#define TNI_CONSTANT_NBYTES 16

/* A storage of @p nbytes that @p mode (takes a reference of its own) pretends. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_storage_fake(tni_object *mode, size_t nbytes,
                                        TN_OWNED tni_storage **out);
/* For core/storage.c: let go of what stands behind the header. */
void tni_fake_release(tni_storage *s);
/* A fresh fake tensor, with the checks of tni_tensor_new but that the device need not exist. */
TN_NODISCARD tn_status tni_tensor_new_fake(tni_object *mode, int ndim, const int64_t *sizes,
                                           const int64_t *strides, tn_dtype dtype, tn_device device,
                                           TN_OWNED tn_tensor **out);
/* tni_tensor_new that is never fake. */
TN_NODISCARD tn_status tni_tensor_new_real(int ndim, const int64_t *sizes, const int64_t *strides,
                                           tn_dtype dtype, tn_device device,
                                           TN_OWNED tn_tensor **out);
#define TNI_DEPENDS_ON_VALUES "depends on values, which a fake tensor does not have"
/* Fail: what @p op ("aten.nonzero.default") gives depends on values that are not there. For those
 * who would otherwise read the data of a tensor. */
TNI_COLD tn_status tni_fake_needs_values(const char *op);
/* The same for an operator whose result has a size that only values tell. */
TNI_COLD tn_status tni_fake_needs_sizes(const char *op);
/* A fresh fake tensor that looks like the real CPU tensor @p real and, when that has at most one
 * element and its storage no more, remembers its values: they share that storage from now on. */
TN_NODISCARD tn_status tni_fake_constant(tni_object *mode, const tn_tensor *real,
                                         TN_OWNED tn_tensor **out);

#endif
