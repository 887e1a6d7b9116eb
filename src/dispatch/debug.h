/* SPDX-License-Identifier: MIT */
/* dispatch/debug.h: the dispatch trace and the stage lines. A line is printed by the stage that it
 * names, when that stage really happens, to stderr, flushed. */
#ifndef TNI_DISPATCH_DEBUG_H
#define TNI_DISPATCH_DEBUG_H

#include "dispatch/call.h"

/* True when stage lines are wanted for this operator ("aten::mm"). */
bool tni_debug_on(const char *op_name);
/* Print "[DEBUG <label>] <text>\n". */
void tni_debug_line(const char *label, const char *format, ...) TN_PRINTF(2, 3);
/* " [call] op=[aten::mm], key=[AutogradMeta]", as the reference prints it. */
void tni_trace_line(const tn_call *call, int depth);
/* Read TENON_SHOW_DISPATCH_TRACE, TORCH_SHOW_DISPATCH_TRACE and TENON_DISPATCH_DEBUG. */
TN_NODISCARD tn_status tni_debug_from_environment(void);
/* Switch one TNI_WATCH_… bit. */
void tni_watch(uint32_t bit, bool on);
/* Around fork(): nobody is inside the filter then. */
void tni_watch_lock(void);
void tni_watch_unlock(void);
/* Everything that watching does before a kernel runs, and after it returned. @p mask is the
 * operator's; all ones for a redispatch. */
void tni_announce(tn_call *call, tn_keyset mask, const tn_value *args, int nargs);

#endif
