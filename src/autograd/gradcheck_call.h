/* SPDX-License-Identifier: MIT */
/* autograd/gradcheck_call.h: calling a function that is checked, which may be wrong in any way. */
#ifndef TNI_AUTOGRAD_GRADCHECK_CALL_H
#define TNI_AUTOGRAD_GRADCHECK_CALL_H

#include "tenon/gradcheck.h"

/* Call @p fn with room for TN_GRADCHECK_MAX_OUTPUTS results. On success @p outputs has *n_outputs
 * tensors on the CPU, with memory, owned by the caller; on failure *n_outputs is 0. */
TN_NODISCARD tn_status tni_gradcheck_call(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs,
                                          int64_t n_inputs, tn_tensor **outputs,
                                          int64_t *n_outputs);

#endif
