/* SPDX-License-Identifier: MIT */
/* autograd/accumulate.c: the node at the end of every path, which adds to `.grad` of a leaf.
 *
 * A leaf refers to its accumulator weakly, the accumulator to its leaf strongly: it lives while a
 * graph leads to it. */
#include "autograd/accumulate.h"
#include "tenon/autograd.h"
#include "autograd/extra.h"
#include "autograd/validate.h"
#include "core/state.h"

#include <string.h>
#include "tenon/ops.h"

typedef struct accumulator {
    tn_tensor *variable; /* strong */
} accumulator;

/* ---- what `.grad` becomes ---- */

/* Note [Layout of gradients]
 * The gradient of a dense tensor has its strides, so that an optimizer walks both alike; that of
 * any other tensor is contiguous. */
static bool fits_layout(const tn_tensor *variable, const tn_tensor *grad)
{
    if (!(variable->flags & TNI_DENSE))
        return grad->flags & TNI_CONTIGUOUS;
    if (grad->ndim > variable->ndim) /* fewer or more: its data was set to something else since */
        return false;
    for (int d = 0; d < grad->ndim; d++) {
        if (grad->sizes[d] != 1 ? grad->strides[d] != variable->strides[d] : grad->strides[d] == 0)
            return false;
    }
    return true;
}

static bool same_sizes(const tn_tensor *a, const tn_tensor *b)
{
    return a->ndim == b->ndim &&
           memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes) == 0;
}

/* Note [Gradients without memory]
 * What a program handles itself may have no memory to add to: a sparse gradient, when an ordinary
 * one comes, would have to become dense. So the sum of the two is a new tensor, `new + .grad`, of
 * the kind that its handler decides; and a copy of one is what its handler copies. */
bool tni_is_shell(const tn_tensor *t)
{
    return (t->keys & TNI_FBIT(TN_KEY_PYTHON)) && t->device.type != TN_DEVICE_META &&
           t->numel > 0 && !tn_tensor_data(t);
}

/* That of a dense tensor was written once, as its counter says: its place was made first. */
static tn_status copy_to_layout(const tn_tensor *variable, tn_tensor *grad, tn_tensor **out)
{
    TN_AUTO(tn_tensor) copy = NULL;
    if (!(variable->flags & TNI_DENSE))
        return tn_clone(grad, TN_FORMAT_CONTIGUOUS, out);
    if (TNI_UNLIKELY(tni_is_shell(grad) && !tni_tls.no_grad))
        return tn_clone(grad, TN_FORMAT_NONE, out);
    if ((variable->flags & TNI_CONTIGUOUS) && variable->numel > 0 && tni_tls.no_grad &&
        same_sizes(variable, grad)) {
        TN_TRY(tn_clone(grad, TN_FORMAT_CONTIGUOUS, &copy));
        TN_TRY(tni_tensor_bump_version(copy));
        *out = TN_MOVE(copy);
        return TN_OK;
    }
    tn_tensor_opts opts = tn_opts((tn_dtype)grad->dtype, grad->device);
    TN_TRY(tn_empty_strided(variable->sizes, variable->ndim, variable->strides, variable->ndim,
                            &opts, &copy));
    TN_TRY(tn_copy_(copy, grad, false));
    *out = TN_MOVE(copy);
    return TN_OK;
}

bool tni_is_alone_with_base(const tn_tensor *t)
{
    const tn_tensor *base = t->view_base;
    return base && base->storage == t->storage && base->numel == t->numel &&
           tni_strong_count(&t->storage->object) == 2 && tni_strong_count(&base->object) == 1;
}

/* The first gradient. One that nobody else has, tensor or memory, is taken as it is. */
static tn_status first_gradient(const tn_tensor *variable, tn_tensor *grad, tn_tensor **out)
{
    if (tni_tls.no_grad && tni_is_alone(grad) && fits_layout(variable, grad)) {
        if (grad->autograd || grad->view_base || (grad->flags & TNI_REQUIRES_GRAD))
            return tn_detach(grad, out);
        *out = tn_tensor_ref(grad);
        return TN_OK;
    }
    return copy_to_layout(variable, grad, out);
}

tn_tensor *tni_grad_swap(tni_grad_meta *meta, tn_tensor *grad)
{
    tni_spin_lock(&meta->lock);
    tn_tensor *old = meta->grad;
    meta->grad = grad;
    tni_spin_unlock(&meta->lock);
    return old;
}

static tn_status add_to(tn_tensor *variable, tn_tensor *had, tn_tensor *grad, bool may_write,
                        tn_tensor **out)
{
    if (!had)
        return first_gradient(variable, grad, out);
    if (TNI_UNLIKELY(tni_is_shell(had) && !tni_is_shell(grad)))
        return tn_add(grad, had, tn_int(1), out);
    if (may_write)
        return tn_add_(had, grad, tn_int(1));
    return tn_add(had, grad, tn_int(1), out);
}

static tn_status accumulate(tni_backward *b)
{
    tn_tensor *variable = ((accumulator *)b->node->data)->variable;
    tn_tensor *grad = b->grads[0];
    TN_CHECK(!(variable->flags & TNI_HAS_GRAD_FN), TN_INVALID,
             "leaf variable has been moved into the graph interior");
    if (!grad || !tni_requires_grad(variable))
        return TN_OK;
    TN_TRY(tni_grad_add(variable, grad, add_to, tni_tls.no_grad));
    return tni_run_accumulated_hooks(variable);
}

/* ---- the node ---- */

static void release(tni_node *node)
{
    accumulator *data = node->data;
    tn_tensor_unref(data->variable);
    data->variable = NULL;
}

static const tni_node_class accumulate_class = {
    .name = "AccumulateGrad",
    .apply = accumulate,
    .release = release,
    .data_nbytes = sizeof(accumulator),
    .flags = TNI_CLASS_ACCUMULATES,
};

tn_tensor *tni_accumulator_variable(const tni_node *node)
{
    return node->cls == &accumulate_class ? ((accumulator *)node->data)->variable : NULL;
}

/* Note [Accumulators that come back]
 * A leaf that is used again and again without a graph that stays would have an accumulator made and
 * freed by each call. So what is left of one, which the leaf's weak reference keeps, is made to
 * live again: all that was gone is its reference to the leaf. Not one with hooks, which ended with
 * the graph that they were for. */
void tni_accumulator_unref(tni_node *node)
{
    _Atomic uint64_t *counts = &node->object.counts;
    if (TNI_UNLIKELY(atomic_load_explicit(&node->extra, memory_order_relaxed) != NULL)) {
        tni_node_unref(node);
        return;
    }
    accumulator *data = node->data;
    if (TNI_LIKELY(TNI_ONE_THREAD && !node->inputs[0].heap_sizes) &&
        atomic_load_explicit(counts, memory_order_relaxed) == TNI_COUNTS_FRESH + TNI_WEAK_ONE) {
        /* As below, with one store. The tensor is in use elsewhere too, nearly always. */
        tn_tensor *leaf = TN_MOVE(data->variable);
        atomic_store_explicit(&node->released, 1, memory_order_relaxed);
        atomic_store_explicit(counts, TNI_WEAK_ONE, memory_order_relaxed);
        if (TNI_LIKELY(tni_strong_count(&leaf->object) > 1))
            tni_counts_add(&leaf->object.counts, (uint64_t)0 - TNI_STRONG_ONE,
                           memory_order_relaxed);
        else
            tn_tensor_unref(leaf);
        return;
    }
    uint64_t before = tni_counts_add(counts, (uint64_t)0 - TNI_STRONG_ONE, memory_order_acq_rel);
    if ((uint32_t)before != 1)
        return;
    /* Nobody can take a reference until the weak one that all strong ones held is gone; then a
     * thread that uses the leaf may have it live again at once. */
    tn_tensor *variable = TN_MOVE(data->variable);
    atomic_store_explicit(&node->released, 1, memory_order_relaxed);
    if (TNI_UNLIKELY(node->inputs[0].heap_sizes != NULL))
        tni_free(TN_MOVE(node->inputs[0].heap_sizes));
    /* Who let go just before may have added a hook first. */
    if (TNI_UNLIKELY(atomic_load_explicit(&node->extra, memory_order_relaxed) != NULL))
        tni_node_extra_free(node);
    tni_weak_unref(&node->object);
    tn_tensor_unref(variable);
}

/* Locked. False: it lives, or somebody still refers to it. */
static inline bool revive(tni_node *node, tn_tensor *t)
{
    enum { FEW = sizeof node->inputs->inline_sizes / sizeof *node->inputs->inline_sizes };
    if (atomic_load_explicit(&node->object.counts, memory_order_acquire) != TNI_WEAK_ONE ||
        t->ndim > FEW)
        return false;
    node->inputs[0].heap_sizes = NULL;
    if (tni_node_set_input(node, 0, t) != TN_OK)
        return false; /* not reached: few dimensions need no memory */
    ((accumulator *)node->data)->variable = t;
    tni_ref(&t->object);
    atomic_store_explicit(&node->claim, 0, memory_order_relaxed);
    atomic_store_explicit(&node->released, 0, memory_order_relaxed);
    atomic_store_explicit(&node->object.counts, TNI_COUNTS_FRESH + TNI_WEAK_ONE,
                          memory_order_release);
    return true;
}

/* The accumulator, a new reference, when it lives, or can live again for @p t (NULL: not); else
 * what is left of it comes out of the meta, and is replaced by @p fresh when given. */
static inline tni_node *live_accumulator(tni_grad_meta *meta, tn_tensor *t, tni_node *fresh)
{
    tni_spin_lock(&meta->lock);
    tni_node *node = meta->accumulator, *dead = NULL;
    if (node && !(t && revive(node, t)) && !tni_weak_lock(&node->object)) {
        dead = node;
        meta->accumulator = node = NULL;
    }
    if (!node && fresh) {
        tni_weak_ref(&fresh->object);
        meta->accumulator = fresh;
    }
    tni_spin_unlock(&meta->lock);
    if (TNI_UNLIKELY(dead != NULL))
        tni_weak_unref(&dead->object);
    return node;
}

tni_node *tni_accumulator_if_any(tn_tensor *t)
{
    tni_grad_meta *meta = tni_meta(t);
    return meta ? live_accumulator(meta, NULL, NULL) : NULL;
}

static TNI_COLD tn_status new_accumulator(tn_tensor *t, tni_node **out)
{
    tni_grad_meta *meta = NULL;
    TN_TRY(tni_meta_get(t, &meta));
    TN_AUTO(tni_node) fresh = NULL;
    TN_TRY(tni_node_new(&accumulate_class, 0, 1, &fresh));
    TN_TRY(tni_node_set_input(fresh, 0, t));
    ((accumulator *)fresh->data)->variable = tn_tensor_ref(t);
    tni_node *faster = live_accumulator(meta, NULL, fresh); /* that of another thread */
    *out = faster ? faster : TN_MOVE(fresh);
    return TN_OK;
}

/* A leaf that set_ gave elements of other sizes while a graph led to it: gradients of the new kind
 * are no sums of the old one. What sets `.data` may set it back before gradients come, and has
 * hooks on the node: that one stays. */
static TNI_COLD tni_node *leave_accumulator(tni_grad_meta *meta, tni_node *node)
{
    if (atomic_load_explicit(&meta->keeps_accumulator, memory_order_relaxed))
        return node;
    tni_spin_lock(&meta->lock);
    tni_node *old = meta->accumulator == node ? TN_MOVE(meta->accumulator) : NULL;
    tni_spin_unlock(&meta->lock);
    if (old)
        tni_weak_unref(&old->object);
    tni_node_unref(node);
    return NULL;
}

tn_status tni_accumulator(tn_tensor *t, tni_node **out)
{
    TNI_REQUIRE(!(t->flags & TNI_HAS_GRAD_FN));
    tni_grad_meta *meta = tni_meta(t);
    tni_node *node = meta ? live_accumulator(meta, t, NULL) : NULL;
    if (TNI_UNLIKELY(node && !tni_gradient_fits(t, &node->inputs[0])))
        node = leave_accumulator(meta, node);
    if (TNI_UNLIKELY(!node))
        return new_accumulator(t, out);
    *out = node;
    return TN_OK;
}
