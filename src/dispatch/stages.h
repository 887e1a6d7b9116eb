/* SPDX-License-Identifier: MIT */
/* dispatch/stages.h: stage lines, for the files of this layer whose stages they tell. Kernels use
 * dispatch/debug.h. */
#ifndef TNI_DISPATCH_STAGES_H
#define TNI_DISPATCH_STAGES_H

#include "dispatch/call.h"

/* tni_begin for an operator whose stages are wanted: every step says so when it is taken. */
tn_call *tni_begin_in_stages(tn_call *caller, tn_op *op, tn_keyset ks, tn_event_kind kind,
                             const tn_value *args, int nargs, tn_status *status);
/* The kernel of a frame with TNI_FRAME_STAGES returned. */
void tni_tell_return(const tn_call *call);

/* Registering: a slot of the operator's table is about to be computed, and by which rule it was. */
void tni_tell_slot(const tn_op *op, unsigned slot);
void tni_tell_path(const tni_kernel *kernel, tni_provenance why);

/* " [call] op=[aten::mm], key=[AutogradMeta]", as the reference prints it. */
void tni_trace_line(const tn_op *op, tn_event_kind kind, unsigned slot, int depth);
/* Somebody begins to watch: see Note [Marks]. */
void tni_mark_forget(void);

/* Whether @p filter, patterns with commas between them, names the operator. */
bool tni_stages_wanted(const char *filter, const char *op_name);

/* Around fork(): nobody is inside the filter then. */
void tni_stages_lock(void);
void tni_stages_unlock(void);

#endif
