/* SPDX-License-Identifier: MIT */
/* autograd/hooks.h: hooks and lists of them, between the file that keeps them and the one that
 * runs them. */
#ifndef TNI_AUTOGRAD_HOOKS_H
#define TNI_AUTOGRAD_HOOKS_H

#include "tenon/autograd.h"
#include "autograd/extra.h"

typedef enum tni_hook_kind {
    TNI_HOOK_TENSOR,
    TNI_HOOK_RETAIN, /* keeps the gradient of a tensor, which it refers to weakly */
    TNI_HOOK_PRE,
    TNI_HOOK_POST,
    TNI_HOOK_ACCUMULATED,
} tni_hook_kind;

struct tn_hook {
    tni_object object;
    uint8_t kind; /* tni_hook_kind */
    bool on_node; /* owner is a node, else a tensor */
    _Atomic bool removed;
    uint32_t output; /* of a node: which of its inputs this is about */
    union {
        tn_tensor_hook_fn tensor;
        tn_accumulated_hook_fn accumulated;
        tn_node_pre_hook_fn pre;
        tn_node_post_hook_fn post;
    } fn;
    void *ctx;
    void (*release)(void *ctx);
    tn_tensor *kept;   /* RETAIN: weak */
    tni_object *owner; /* weak: who has this hook in its list */
};

typedef struct tni_hook_list {
    tni_object object;
    uint32_t n;
    tn_hook *hooks[];
} tni_hook_list;

static inline void tni_hook_list_unref(tni_hook_list *list)
{
    if (list)
        tni_unref(&list->object);
}
TNI_DEFINE_AUTO(tni_hook_list, tni_hook_list_unref)

/* The lists as they are now, a new reference; NULL for none. */
TN_OWNED tni_hook_list *tni_node_hooks(tni_node *node);
TN_OWNED tni_hook_list *tni_tensor_hooks(const tn_tensor *t);

#endif
