/* SPDX-License-Identifier: MIT */
/* autograd/view.h: views as gradients see them.
 *
 * The record of a view is in the tensor itself: what it is at root a view of (view_base, strong),
 * the counter when its history was last right (view_version), and how it was made (the
 * TNI_VIEW_… flags). There is no replay function: the only views of another dtype show complex
 * numbers as pairs of real ones or the other way round, so that sizes, strides and offset say how
 * to make a view again from its root. */
#ifndef TNI_AUTOGRAD_VIEW_H
#define TNI_AUTOGRAD_VIEW_H

#include "autograd/node.h"

/* @p view is the raw result of a view operator on @p base: from now on they count writes together,
 * and @p view is recorded as a view of the root of @p base. A view of an inference tensor is left
 * alone: it counts none.
 * @retval TN_INTERNAL  the kernel returned its own argument */
TN_NODISCARD tn_status tni_view_made(const tn_tensor *base, tn_tensor *view);
/* The same for one of several views that one call returned: while gradients are recorded such views
 * cannot be written. */
TN_NODISCARD tn_status tni_multi_view_made(const tn_tensor *base, tn_tensor *view);
/* The same for a view that takes no part in gradients (detach): they count writes together, and
 * nothing else is recorded. */
TN_NODISCARD tn_status tni_alias_made(const tn_tensor *base, tn_tensor *view);

/* The history of @p t, if it is a view, is right as of now. */
static inline void tni_view_is_current(tn_tensor *t)
{
    if (t->view_base)
        __atomic_store_n(&t->view_version, atomic_load_explicit(t->versions, memory_order_relaxed),
                         __ATOMIC_RELEASE);
}
/* Was the base of view @p t not written since? */
static inline bool tni_view_was_current(const tn_tensor *t)
{
    return __atomic_load_n(&t->view_version, __ATOMIC_ACQUIRE) ==
           atomic_load_explicit(t->versions, memory_order_relaxed);
}
/* Before the history of view @p t is used: when its base was written since, the history is rebuilt
 * from the base's.
 * @retval TN_INVALID  the view was made in a way that forbids this, with the reference's text */
TN_NODISCARD tn_status tni_view_refresh(tn_tensor *t);

/* What was done to a view that cannot be undone: its base or another view of its base was written
 * (@p indirect), or it is itself about to be. TN_OK when it was made in a way that allows that. */
TN_NODISCARD tn_status tni_view_may_be_written(const tn_tensor *view, bool indirect);

/* How a view lies in its root. The first field of a node's data, after its saved values: its class
 * has one list of integers, so that the node frees it. */
typedef struct tni_view_place {
    tni_ints dims; /* sizes and strides of the root, then those of the view */
    int64_t root_offset, view_offset;
    uint8_t root_ndim, view_ndim;
    bool root_as_real, view_as_real; /* it is complex and the other is not: this is how its pairs of
                                        real numbers lie */
} tni_view_place;

TN_NODISCARD tn_status tni_view_place_of(const tn_tensor *view, tni_view_place *out);
static inline const int64_t *tni_root_sizes(const tni_view_place *p)
{
    return p->dims.v;
}
static inline const int64_t *tni_root_strides(const tni_view_place *p)
{
    return p->dims.v + p->root_ndim;
}
static inline const int64_t *tni_view_sizes(const tni_view_place *p)
{
    return p->dims.v + 2 * p->root_ndim;
}
static inline const int64_t *tni_view_strides(const tni_view_place *p)
{
    return p->dims.v + 2 * p->root_ndim + p->view_ndim;
}

#endif
