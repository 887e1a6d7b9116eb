/* SPDX-License-Identifier: MIT */
/* dispatch/gate.h: fallbacks that typed calls pass without boxes.
 *
 * Note [Gates]
 * A fallback takes boxed arguments, since it serves every operator. One that only looks at the
 * tensors of a call, sets the thread, and lets a lower kernel of the same operator do the work need
 * not have them: its gate is shown the tensors and says which typed kernel to go on to, in a frame
 * that it has begun below the call's; the caller, who knows the types, calls that kernel and hands
 * over what came of it. Whatever is out of the ordinary a gate turns away, with nothing done, and
 * the fallback gets its boxes after all. Generated code asks (tools/opgen/emit_calls.py), for
 * operators whose tensors are plain arguments and whose result is one tensor. */
#ifndef TNI_DISPATCH_GATE_H
#define TNI_DISPATCH_GATE_H

#include "core/fake.h"
#include "dispatch/call.h"

typedef struct tni_passage {
    tn_call *call;             /* the frame at the gate */
    tn_call *next;             /* the one below it, to call the kernel in */
    tn_tensor *const *tensors; /* the tensor arguments, NULL for None */
    int n_tensors;
    tn_device device; /* what the gate found, and the thread as it was */
    tni_object *mode; /* borrowed */
    tni_fake_switch before;
} tni_passage;

struct tni_gate {
    /* The typed kernel of p->next; NULL: the call has to go through boxes, and nothing was done.
     * call, tensors and n_tensors are filled in. */
    tn_typed_fn (*enter)(tni_passage *p);
    /* The kernel has ended with @p status: end its frame, and on success settle its result. On
     * failure there is no result. */
    tn_status (*leave)(tni_passage *p, tn_status status, tn_tensor **result);
};

/* The gate of the call's kernel; NULL: it has none, or the call has not begun. */
static inline const tni_gate *tni_gate_of(const tn_call *call)
{
    return call && call->kernel->record ? call->kernel->record->gate : NULL;
}

#endif
