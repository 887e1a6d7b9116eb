/* SPDX-License-Identifier: MIT */
/* autograd/saved.c: keeping tensors for the backward pass, and giving them back unchanged. */
#include "autograd/saved.h"
#include "autograd/forward.h"
#include "tenon/ops.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "autograd/anomaly.h"
#include "autograd/inplace.h"
#include "autograd/meta.h"
#include "autograd/saved_hooks.h"
#include "autograd/view.h"
#include "core/device.h"
#include "core/scope.h"
#include "core/state.h"

/* ---- texts ---- */

static TNI_COLD tn_status inference_tensor(void)
{
    TN_FAIL(TN_INVALID,
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make "
            "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
            "instead of `torch.inference_mode()`.");
}

tn_status tni_freed_error(void)
{
    TN_FAIL(TN_INVALID,
            "Trying to backward through the graph a second time (or directly access saved tensors "
            "after they have already been freed). Saved intermediate values of the graph are freed "
            "when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
            "to backward through the graph a second time or if you need to access saved tensors "
            "after calling backward.");
}

static TNI_COLD tn_status detached_in_place(void)
{
    TN_FAIL(TN_INVALID,
            "Trying to use a saved tensor that has been detached in-place, i.e. with "
            ".detach_().This is not supported, please use out-of-place `.detach()` instead");
}

/* "torch.FloatTensor", "MetaDoubleType", "CPUBoolType": the last of dtypes that are younger than
 * the names with "Tensor" in them. */
static const char *type_name(const tn_tensor *t, char *buffer, size_t n)
{
    const char *dtype = tni_dtype_text((tn_dtype)t->dtype);
    const char *device = tni_device_type_name(t->device.type);
    bool old = t->dtype <= TN_DTYPE_F64; /* uint8 to float64 */
    if (t->device.type == TN_DEVICE_CPU)
        snprintf(buffer, n, old ? "torch.%sTensor" : "CPU%sType", dtype);
    else if (t->device.type == TN_DEVICE_CUDA)
        snprintf(buffer, n, old ? "torch.cuda.%sTensor" : "CUDA%sType", dtype);
    else
        snprintf(buffer, n, "%c%s%sType", toupper((unsigned char)device[0]), device + 1, dtype);
    return buffer;
}

tn_status tni_written_error(const tn_tensor *t, const tni_node *fn, uint32_t output, uint32_t now,
                            uint32_t then)
{
    char type[64], sizes[TNI_SIZES_TEXT], from[192] = "";
    if (fn) /* two have their names from C++ in the reference */
        snprintf(from, sizeof from, ", which is output %u of %s%s,", output,
                 strcmp(fn->cls->name, "CopySlices") == 0 ||
                         strcmp(fn->cls->name, "CopyBackwards") == 0
                     ? "torch::autograd::"
                     : "",
                 fn->cls->name);
    TN_FAIL(TN_INVALID,
            "one of the variables needed for gradient computation has been modified by an inplace "
            "operation: [%s %s]%s is at version %u; expected version %u instead.%s",
            type_name(t, type, sizeof type),
            tni_format_sizes(t->ndim, t->sizes, sizes, sizeof sizes), from, now, then,
            tni_anomaly()
                ? " Hint: the backtrace further above shows the operation that failed to "
                  "compute its gradient. The variable in question was changed in there or "
                  "anywhere later. Good luck!"
                : " Hint: enable anomaly detection to find the operation that failed to "
                  "compute its gradient, with torch.autograd.set_detect_anomaly(True, "
                  "check_nan=False).");
}

/* ---- saving ---- */

/* A tensor whose calls go to a handler is more than its metadata: the handler detaches it. */
static TNI_COLD tn_status detached_by_handler(const tn_tensor *t, tn_tensor **out)
{
    tni_state *s = &tni_tls;
    uint64_t excluded = tni_exclude(s, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tn_detach((tn_tensor *)(uintptr_t)t, out);
    s->excluded_xor = excluded;
    if (status == TN_OK && *out != t && t->versions)
        tni_tensor_share_version(*out, t);
    return status;
}

tn_status tni_detached(const tn_tensor *t, tn_tensor **out)
{
    if (TNI_UNLIKELY(t->keys & TNI_FBIT(TN_KEY_PYTHON)))
        return detached_by_handler(t, out);
    TN_TRY(tni_tensor_alias(t, t->ndim, t->sizes, t->strides, t->offset, out));
    if (TNI_LIKELY(t->versions != NULL))
        tni_tensor_share_version(*out, t);
    (*out)->flags |= t->flags & TNI_WRAPPED_NUMBER;
    return TN_OK;
}

tn_status tni_ordinary(const tn_tensor *t, tn_tensor **out)
{
    const tn_keyset recorded = TNI_KS_AUTOGRAD | TNI_KS_ADINPLACE_OR_VIEW;
    tn_keyset keys = t->keys | (tni_tensor_keys_for(t->device.type, false) & recorded);
    TN_TRY(tni_tensor_over(t->storage, t->ndim, t->sizes, t->strides, t->offset, (tn_dtype)t->dtype,
                           keys, t->device, out));
    (*out)->flags |= t->flags & TNI_WRAPPED_NUMBER;
    return TN_OK;
}

/* A function that is differentiated as a whole may be given inference tensors, and its caller asked
 * for the derivative with them: an alias is kept. Elsewhere they are left out of recording. */
static TNI_COLD tn_status fill_inference(tni_saved *saved, const tn_tensor *t)
{
    TN_AUTO(tn_tensor) alias = NULL;
    if (!tni_differentiating || (t->keys & TNI_FBIT(TN_KEY_PYTHON)))
        return inference_tensor();
    TN_TRY(tni_ordinary(t, &alias));
    return tni_saved_fill(saved, alias, false, false);
}

static tn_status fill_result(tni_saved *saved, tn_tensor *t, bool on_view)
{
    tni_node *fn = NULL;
    TN_TRY(tni_grad_fn(t, &fn, &saved->output));
    TN_TRY(tni_detached(t, &saved->tensor));
    saved->flags |= TNI_SAVED_IS_RESULT;
    if (on_view && fn) {
        tni_weak_ref(&fn->object);
        saved->view_fn = fn;
    }
    return TN_OK;
}

tn_status tni_saved_fill(tni_saved *saved, tn_tensor *t, bool is_result, bool on_view)
{
    if (!t)
        return TN_OK;
    if (TNI_UNLIKELY(!t->versions))
        return fill_inference(saved, t);
    bool leaf = !(t->flags & TNI_HAS_GRAD_FN);
    uint32_t version = atomic_load_explicit(t->versions, memory_order_relaxed);
    uint8_t flags = TNI_SAVED_DEFINED | (leaf ? TNI_SAVED_IS_LEAF : 0);
    if (is_result && !leaf) {
        TN_TRY(fill_result(saved, t, on_view));
        flags |= TNI_SAVED_IS_RESULT;
    }
    saved->version = version;
    saved->flags = flags;
    if (TNI_UNLIKELY(tni_hook_stack && tni_hook_stack->top && !(t->flags & TNI_WRAPPED_NUMBER)))
        return tni_saved_pack(saved, t);
    if (!saved->tensor)
        saved->tensor = tn_tensor_ref(t);
    return TN_OK;
}

void tni_saved_clear(tni_saved *saved)
{
    tn_tensor *t = TN_MOVE(saved->tensor);
    tni_saved_hooked *hooked = TN_MOVE(saved->hooked);
    tni_node *view_fn = TN_MOVE(saved->view_fn);
    tn_tensor_unref(t);
    if (TNI_UNLIKELY(hooked != NULL))
        tni_saved_hooked_unref(hooked);
    if (TNI_UNLIKELY(view_fn != NULL))
        tni_weak_unref(&view_fn->object);
}

/* ---- giving back ---- */

/* What unpacking needs of a saved value, with references: another pass may release it meanwhile. */
typedef struct taken {
    tn_tensor *tensor;
    tni_saved_hooked *hooked;
    tni_node *view_fn;
} taken;

static taken take(tni_node *owner, const tni_saved *saved)
{
    tni_spin_lock(&owner->lock);
    taken it = {tn_tensor_ref(saved->tensor), saved->hooked, saved->view_fn};
    if (TNI_UNLIKELY(it.hooked != NULL))
        tni_ref(&it.hooked->object);
    if (TNI_UNLIKELY(it.view_fn != NULL) && !tni_weak_lock(&it.view_fn->object))
        it.view_fn = NULL;
    tni_spin_unlock(&owner->lock);
    return it;
}

/* A saved result again as what it was: result `output` of the node that saved it. */
static tn_status as_result(tni_node *fn, const tni_saved *saved, const tn_tensor *kept,
                           tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tni_detached(kept, &t));
    TN_TRY(tni_set_grad_fn(t, fn, saved->output));
    if (TNI_UNLIKELY(kept->flags & TNI_HAS_TANGENT))
        TN_TRY(tni_tangent_set(t, tni_meta(kept)->tangent));
    *out = TN_MOVE(t);
    return TN_OK;
}

/* Who asks: a formula, which may need the history of what it gets, or knows that nobody will ask
 * for that of a result (plain), or somebody else, to whom a tensor that lost its history is a
 * tensor without one. */
typedef enum asker { FORMULA, PLAIN_FORMULA, ANYBODY } asker;

static tn_status unpack(tni_node *owner, tni_saved *saved, asker who, tn_tensor **out)
{
    *out = NULL;
    if (!(saved->flags & TNI_SAVED_DEFINED))
        return TN_OK;
    taken it = take(owner, saved);
    TN_AUTO(tn_tensor) t = it.tensor;
    TN_AUTO(tni_node) view_fn = it.view_fn;
    if (TNI_UNLIKELY(it.hooked != NULL)) {
        TN_AUTO(tni_saved_hooked) hooked = it.hooked;
        return tni_saved_unpack_hooked(view_fn ? view_fn : owner, saved, hooked, out);
    }
    if (TNI_UNLIKELY(!t))
        return tni_freed_error();
    bool is_result = saved->flags & TNI_SAVED_IS_RESULT;
    tni_node *fn = view_fn ? view_fn : owner;
    if (who == ANYBODY && t->view_base && !is_result)
        TN_TRY(tni_view_refresh(t)); /* or it is told that there is no history to be had */
    uint32_t output = saved->output, now = atomic_load_explicit(t->versions, memory_order_relaxed);
    if (TNI_UNLIKELY(!is_result && !(saved->flags & TNI_SAVED_IS_LEAF) &&
                     !(t->flags & TNI_HAS_GRAD_FN) && who != ANYBODY))
        return detached_in_place();
    if (TNI_UNLIKELY(now != saved->version)) {
        if (!is_result)
            TN_TRY(tni_grad_fn(t, &fn, &output));
        return tni_written_error(t, fn, output, now, saved->version);
    }
    if (is_result && who != PLAIN_FORMULA)
        return as_result(fn, saved, t, out);
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_saved_unpack(tni_node *owner, tni_saved *saved, tn_tensor **out)
{
    tn_tensor *t;
    TN_TRY(unpack(owner, saved, ANYBODY, &t));
    *out = t;
    return TN_OK;
}

static tn_tensor *unpack_for_scope(const tni_backward *b, tni_saved *saved)
{
    if (TNI_UNLIKELY(tni_scope_failed()))
        return NULL;
    tn_tensor *t;
    tn_status status = unpack(b->node, saved, tni_tls.no_grad ? PLAIN_FORMULA : FORMULA, &t);
    return status == TN_OK && !t ? NULL : tni_scope_result(status, t);
}

tn_tensor *tni_unpack(const tni_backward *b, uint32_t i)
{
    return unpack_for_scope(b, (tni_saved *)b->node->data + i);
}

int64_t tni_unpack_list(const tni_backward *b, const tni_saved_list *list, tn_tensor **out)
{
    for (int64_t i = 0; i < list->n; i++)
        out[i] = unpack_for_scope(b, &list->v[i]);
    return list->n;
}

void tni_unpack_all(const tni_backward *b)
{
    const tni_node_class *cls = b->node->cls;
    const tni_saved_list *lists = tni_saved_lists(b->node);
    for (uint32_t i = 0; i < cls->n_saved; i++)
        tni_unpack(b, i);
    for (int i = 0; i < cls->n_lists; i++)
        for (int64_t k = 0; k < lists[i].n; k++)
            unpack_for_scope(b, &lists[i].v[k]);
}
