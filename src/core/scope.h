/* SPDX-License-Identifier: MIT */
/* core/scope.h: what the generated tnx_ functions do with their scope, and scopes that are used
 * many times over: a backward pass empties one after each node. */
#ifndef TNI_CORE_SCOPE_H
#define TNI_CORE_SCOPE_H

#include "core/state.h"
#include "tenon/tensor.h"
#include "base/status.h"

#if defined(TN_STRESS) && TN_STRESS
#    define TNI_SCOPE_FEW 1
#else
#    define TNI_SCOPE_FEW 16
#endif

struct tn_scope {
    tn_scope *outer;
    tn_tensor **tensors; /* `few`, or a block of its own */
    size_t n, capacity;
    bool fence;       /* opened around code of others, who cannot leave what is around it */
    tn_status code;   /* of the first failure, TN_OK while there is none */
    tni_error *error; /* what failed, in words; NULL also when there was no memory to keep that */
    tn_tensor *few[TNI_SCOPE_FEW];
};

/* True when a tnx_ function must return at once: an earlier failure sticks, or no scope is open.
 * The latter makes "no scope is open" this thread's error (TN_INVALID). */
bool tni_scope_failed(void);
/* The end of a tnx_ function. On TN_OK @p t becomes the innermost scope's and is returned; else, or
 * when there is no memory to note it, the error sticks, @p t is released and NULL returned. */
TN_BORROWED tn_tensor *tni_scope_result(tn_status status, TN_STOLEN tn_tensor *t);

/* Innermost on this thread, and nothing failed in it. */
static inline bool tni_scope_is_fine(const tn_scope *scope)
{
    return tni_tls.scope == scope && scope->code == TN_OK;
}
/* What failed in the innermost scope so far; it stays the scope's, which reports it when it ends.
 */
TN_NODISCARD static inline tn_status tni_scope_settle(void)
{
    return tni_tls.scope ? tni_tls.scope->code : TN_OK;
}
/* Move what failed in @p scope to this thread's record; the scope is as before it failed.
 * @retval TN_OK  nothing did, and the record was left alone */
tn_status tni_scope_raise(tn_scope *scope);
/* tn_scope_enter by those who call code of others inside, and keep the scope meanwhile: that code
 * leaves the scopes that it entered alone. */
TN_NODISCARD static inline tn_status tni_scope_enter_fenced(tn_scope **out)
{
    tn_status status = tn_scope_enter(out);
    if (TNI_LIKELY(status == TN_OK))
        (*out)->fence = true;
    return status;
}
/* End the scopes inside @p scope that were forgotten; the first failure of one. */
TN_NODISCARD tn_status tni_scope_close_inner(tn_scope *scope);
/* Release its tensors, newest first; the scope stays open, and keeps its memory. */
static inline void tni_scope_empty(tn_scope *scope)
{
    while (scope->n > 0)
        tn_tensor_unref(scope->tensors[--scope->n]);
}
/* A reference to @p t: the scope's own where it has one, else a new one. Like tn_scope_keep, and
 * order does not matter any more: the scope is about to be emptied. */
TN_OWNED static inline tn_tensor *tni_scope_take(tn_scope *scope, tn_tensor *t)
{
    for (size_t i = scope->n; i-- > 0;) {
        if (scope->tensors[i] == t) {
            scope->tensors[i] = scope->tensors[--scope->n];
            return t;
        }
    }
    return tn_tensor_ref(t);
}

#endif
