/* SPDX-License-Identifier: MIT */
/* autograd/anomaly.h: anomaly mode: where nodes were made, and the first NaN. */
#ifndef TNI_AUTOGRAD_ANOMALY_H
#define TNI_AUTOGRAD_ANOMALY_H

#include "autograd/node.h"

/* TN_ANOMALY_… bits of the process. */
TNI_HIDDEN extern _Atomic uint32_t tni_anomaly_bits;

static inline uint32_t tni_anomaly(void)
{
    return atomic_load_explicit(&tni_anomaly_bits, memory_order_relaxed);
}

/* Write down where @p node was made, and in whose turn. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_anomaly_note(tni_node *node);
/* Whether this thread calls no tracer, from here on; what it was. */
bool tni_anomaly_hush(bool hushed);
/* @p t is result @p output of a call that @p node records.
 * @retval TN_INVALID  it has what the mode looks for, with the operator's name */
TN_NODISCARD tn_status tni_anomaly_check_forward(const tni_node *node, uint32_t output,
                                                 tn_tensor *t);
/* @retval TN_INVALID  "Function 'MulBackward0' returned nan values in its 0th output." */
TN_NODISCARD tn_status tni_anomaly_check_backward(const tni_node *node, tn_tensor *const *results);
/* @p node failed with @p status: add to this thread's record where it was made. */
void tni_anomaly_explain(const tni_node *node, tn_status status);

#endif
