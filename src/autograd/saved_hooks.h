/* SPDX-License-Identifier: MIT */
/* autograd/saved_hooks.h: what saved-tensor hooks made of a saved value.
 *
 * Note [Hooks of a turn]
 * What a node of a backward pass, or a hook of one, pushes, pops or disables is so for the rest of
 * its turn: each turn begins with the hooks that the pass began with, and so does what follows the
 * pass. Pairs are therefore a list of which the stack, and the marks of passes, hold some place: a
 * pair that is popped stays while a mark has it. */
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
    uint32_t marks; /* that want it to stay */
};
TNI_HIDDEN extern
    __attribute__((tls_model("initial-exec"))) _Thread_local struct tni_hook_stack *tni_hook_stack;

/* The thread's hooks as they were when a pass began; all zero: there were none. */
typedef struct tni_hooks_mark {
    tni_hook_pair *top;
    char *disabled;
    bool set;
} tni_hooks_mark;
/* Where the thread has a stack. */
TN_NODISCARD tn_status tni_hooks_mark_set(tni_hooks_mark *mark);
/* The hooks are again those of the mark.
 * @retval TN_NOMEM  there is no room for the message that is to be given back */
TN_NODISCARD tn_status tni_hooks_mark_return(const tni_hooks_mark *mark);
/* The same, and the mark is gone. */
void tni_hooks_mark_leave(tni_hooks_mark *mark);

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
