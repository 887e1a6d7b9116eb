/* SPDX-License-Identifier: MIT */
/* autograd/transform.c: functions that are differentiated as a whole, and what they may write.
 *
 * Note [Captured tensors]
 * The gradient of a function is that of what goes in and comes out. A function that writes a tensor
 * which it was not given, one that was there before, does something else beside: the write would be
 * seen outside, with a history that belongs inside. So in-place operators on such tensors are
 * refused while the function runs. Transforms are numbered, later ones higher, and each storage
 * remembers the transform in which it was made; what the function was given is said to be made in
 * it. A backward pass is no part of the function: it adds to gradients that were there before. */
#include "autograd/inplace.h"
#include "dispatch/call.h"
#include "tenon/autograd.h"

static _Atomic uint32_t last;
_Thread_local uint32_t tni_differentiating;

tn_transform_guard tn_transform_begin(bool differentiates)
{
    tn_transform_guard guard = {0, tni_tls.transform, tni_differentiating};
    do
        guard.number = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    while (guard.number == 0);
    tni_tls.transform = guard.number;
    if (differentiates)
        tni_differentiating = guard.number;
    return guard;
}

void tn_transform_end(tn_transform_guard guard)
{
    tni_tls.transform = guard.outer;
    tni_differentiating = guard.outer_differentiating;
}

uint32_t tn_tensor_set_made_in(tn_tensor *t, uint32_t transform)
{
    if (!t || !t->storage)
        return 0;
    return __atomic_exchange_n(&t->storage->made_in, transform, __ATOMIC_RELAXED);
}

static bool is_older(const tn_tensor *t, uint32_t transform)
{
    return t->storage && __atomic_load_n(&t->storage->made_in, __ATOMIC_RELAXED) < transform;
}

bool tn_tensor_is_captured(const tn_tensor *t)
{
    return t && is_older(t, tni_tls.transform);
}

tn_status tni_refuse_captured(const tn_call *call, const tn_tensor *t)
{
    TN_CHECK(!is_older(t, tni_differentiating), TN_INVALID,
             "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to "
             "call in-place operation (%s) that would mutate a captured Tensor. This is not "
             "supported; please rewrite the function being transformed to explicitly accept the "
             "mutated Tensor(s) as inputs.",
             call->op->name);
    return TN_OK;
}
