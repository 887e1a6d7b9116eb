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
/* Read TENON_SHOW_DISPATCH_TRACE, TORCH_SHOW_DISPATCH_TRACE and TENON_DISPATCH_DEBUG. */
TN_NODISCARD tn_status tni_debug_from_environment(void);
/* Switch one TNI_WATCH_… bit. */
void tni_watch(uint32_t bit, bool on);
/* Around fork(): nobody is inside what these guard then. */
void tni_watch_lock(void);
void tni_watch_unlock(void);
/* The recorder: once, before operators are registered; and in a child made by fork(). */
void tni_recorder_boot(void);
void tni_recorder_forked(void);
/* Everything that watching does before a kernel runs, and after it returned. @p mask is the
 * operator's; all ones for a redispatch. @p in_stages: the trace was told already. */
void tni_announce(tn_call *call, tn_keyset mask, const tn_value *args, int nargs, bool in_stages);

#endif
