/* SPDX-License-Identifier: MIT */
/* core/scope.c: scopes, in which results need no release and the first failure sticks. */
#include "core/scope.h"

#include <string.h>
#include "base/alloc.h"

tn_status tn_scope_enter(tn_scope **out)
{
    TN_CHECK(out, TN_INVALID, "tn_scope_enter: out is NULL");
    tn_scope *scope = tni_block_alloc(sizeof *scope);
    TN_CHECK(scope, TN_NOMEM, "cannot allocate a scope of %zu bytes", sizeof *scope);
    scope->outer = tni_tls.scope;
    scope->tensors = scope->few;
    scope->n = 0;
    scope->capacity = TNI_SCOPE_FEW;
    scope->fence = false;
    scope->code = TN_OK;
    scope->error = NULL;
    tni_tls.scope = scope;
    *out = scope;
    return TN_OK;
}

tn_status tni_scope_raise(tn_scope *scope)
{
    tn_status status = scope->code;
    scope->code = TN_OK;
    if (scope->error) {
        status = tni_error_raise(scope->error);
        tni_free_unwatched(scope->error);
        scope->error = NULL;
    } else if (status != TN_OK) {
        (void)tni_fail(status, TNI_WHERE,
                       "an operator failed with %s; no memory to keep the message",
                       tn_status_name(status));
    }
    return status;
}

static tn_status leave_innermost(tn_scope *scope)
{
    tni_scope_empty(scope);
    if (scope->tensors != scope->few)
        tni_free(scope->tensors);
    tni_tls.scope = scope->outer;
    tn_status status = tni_scope_raise(scope);
    tni_block_free(scope, sizeof *scope);
    return status;
}

tn_status tni_scope_close_inner(tn_scope *scope)
{
    tn_status inner = TN_OK;
    while (tni_tls.scope != scope) {
        tn_status status = leave_innermost(tni_tls.scope);
        inner = inner == TN_OK ? status : inner;
    }
    return inner;
}

tn_status tn_scope_leave(tn_scope *scope)
{
    const tn_scope *s = tni_tls.scope, *fence = NULL;
    while (s && s != scope) {
        fence = s->fence ? s : fence;
        s = s->outer;
    }
    TN_CHECK(s && scope, TN_INVALID, "tn_scope_leave: the scope is not open on this thread");
    TN_CHECK(!fence, TN_INVALID,
             "tn_scope_leave: the scope is around the backward pass or function that runs");
    /* Scopes inside that were forgotten end too; the failure of an inner one is not lost. */
    tn_status inner = tni_scope_close_inner(scope);
    tn_status status = leave_innermost(scope);
    return status == TN_OK ? inner : status;
}

tn_status tn_scope_status(const tn_scope *scope)
{
    return scope ? scope->code : TN_OK;
}

/* ---- what happens inside ---- */

/* The first failure stays; later ones are forgotten. A kernel of others may fail without saying
 * why. */
static void stick(tn_scope *scope, tn_status status)
{
    if (scope->code != TN_OK)
        return;
    scope->code = status;
    if (tn_last_status() != status) /* what is there is of an earlier failure */
        (void)tni_fail(status, TNI_WHERE, "an operator failed with %s and left no message",
                       tn_status_name(status));
    scope->error = tni_alloc_unwatched(sizeof *scope->error);
    if (scope->error)
        tni_error_take(scope->error);
}

static tn_status add(tn_scope *scope, tn_tensor *t)
{
    if (TNI_UNLIKELY(scope->n == scope->capacity)) {
        size_t capacity = 2 * scope->capacity;
        tn_tensor **tensors = tni_alloc(capacity * sizeof *tensors);
        TN_CHECK(tensors, TN_NOMEM, "cannot note %zu tensors in a scope", capacity);
        memcpy(tensors, scope->tensors, scope->n * sizeof *tensors);
        if (scope->tensors != scope->few)
            tni_free(scope->tensors);
        scope->tensors = tensors;
        scope->capacity = capacity;
    }
    scope->tensors[scope->n++] = t;
    return TN_OK;
}

bool tni_scope_failed(void)
{
    tn_scope *scope = tni_tls.scope;
    if (TNI_UNLIKELY(!scope)) {
        (void)tni_fail(TN_INVALID, TNI_WHERE,
                       "no scope is open: functions named tnx_ need one, see tn_scope_enter");
        return true;
    }
    return scope->code != TN_OK;
}

tn_tensor *tni_scope_result(tn_status status, tn_tensor *t)
{
    tn_scope *scope = tni_tls.scope;
    if (TNI_UNLIKELY(!scope)) {
        tn_tensor_unref(t);
        (void)tni_scope_failed();
        return NULL;
    }
    if (status == TN_OK && t)
        status = add(scope, t);
    if (TNI_UNLIKELY(status != TN_OK)) {
        stick(scope, status);
        tn_tensor_unref(t);
        return NULL;
    }
    return t;
}

tn_tensor *tn_scope_own(tn_tensor *t)
{
    return t ? tni_scope_result(TN_OK, t) : NULL;
}

tn_tensor *tn_scope_keep(tn_tensor *t)
{
    tn_scope *scope = tni_tls.scope;
    if (!t)
        return NULL;
    if (scope) {
        /* What one keeps was usually made last. */
        for (size_t i = scope->n; i-- > 0;) {
            if (scope->tensors[i] != t)
                continue;
            for (size_t j = i; j + 1 < scope->n; j++)
                scope->tensors[j] = scope->tensors[j + 1];
            scope->n--;
            return t;
        }
    }
    return tn_tensor_ref(t);
}
