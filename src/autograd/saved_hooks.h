/* SPDX-License-Identifier: MIT */
/* autograd/saved_hooks.h: what saved-tensor hooks made of a saved value. */
#ifndef TNI_AUTOGRAD_SAVED_HOOKS_H
#define TNI_AUTOGRAD_SAVED_HOOKS_H

#include "autograd/saved.h"
#include "tenon/saved_hooks.h"

/* A pair of hooks; counted: the stack and every packed value hold one. */
typedef struct tni_hook_pair tni_hook_pair;
void tni_hook_pair_unref(tni_hook_pair *pair);
TNI_DEFINE_AUTO(tni_hook_pair, tni_hook_pair_unref)

/* A packed value. Counted, because one backward pass may be unpacking while another releases. */
typedef struct tni_saved_hooked {
    tni_object object;
    tni_hook_pair *pair; /* strong */
    void *packed;        /* the hooks' own */
    tni_node *towards;   /* strong; where the gradient of a saved argument goes */
    uint32_t output;     /* which of its inputs that is */
    uint8_t requires_grad;
} tni_saved_hooked;

/* The thread's hooks; NULL for nearly all threads. */
struct tni_hook_stack {
    tni_hook_pair *top;
    char *disabled; /* the message of tn_saved_hooks_disable */
};
TNI_HIDDEN extern
    __attribute__((tls_model("initial-exec"))) _Thread_local struct tni_hook_stack *tni_hook_stack;

/* Let the topmost pair of this thread pack @p t for @p saved, whose flags say what t is.
 * @retval TN_INVALID  the hook wrote @p t; or what the hook says */
TN_NODISCARD tn_status tni_saved_pack(tni_saved *saved, tn_tensor *t);
/* The value, a fresh tensor with the history of what was saved. */
TN_NODISCARD tn_status tni_saved_unpack_hooked(tni_node *owner, const tni_saved *saved,
                                               tni_saved_hooked *hooked, TN_OWNED tn_tensor **out);
/* Hooks for one saved value alone.
 * @retval TN_INVALID  it has hooks already, was freed, or is nothing: the reference's texts */
TN_NODISCARD tn_status tni_saved_register(tni_node *owner, tni_saved *saved,
                                          const tn_saved_hooks *hooks);
static inline void tni_saved_hooked_unref(tni_saved_hooked *hooked)
{
    tni_unref(&hooked->object);
}
TNI_DEFINE_AUTO(tni_saved_hooked, tni_saved_hooked_unref)

#endif
