/* SPDX-License-Identifier: MIT */
/* core/scope.h: what the generated tnx_ functions do with their scope. */
#ifndef TNI_CORE_SCOPE_H
#define TNI_CORE_SCOPE_H

#include "tenon/tensor.h"

/* True when a tnx_ function must return at once: an earlier failure sticks, or no scope is open.
 * The latter makes "no scope is open" this thread's error (TN_INVALID). */
bool tni_scope_failed(void);
/* The end of a tnx_ function. On TN_OK @p t becomes the innermost scope's and is returned; else, or
 * when there is no memory to note it, the error sticks, @p t is released and NULL returned. */
TN_BORROWED tn_tensor *tni_scope_result(tn_status status, TN_STOLEN tn_tensor *t);

#endif
