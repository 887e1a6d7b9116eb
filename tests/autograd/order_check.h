/* SPDX-License-Identifier: MIT */
/* tests/autograd/order_check.h: derivatives of a high order beside difference quotients. */
#ifndef TNI_TEST_AUTOGRAD_ORDER_CHECK_H
#define TNI_TEST_AUTOGRAD_ORDER_CHECK_H

#include "tenon/gradcheck.h"

/* Differentiate @p fn @p order times, each time along another direction of its inputs, the last of
 * them beside the difference quotient of the derivative one order lower. Inputs are double
 * precision; those that require grad move. A derivative that is constant must have a quotient of 0.
 * @retval TN_INVALID      they differ: the message has both
 * @retval TN_UNSUPPORTED  an operator has no derivative of that order */
TN_NODISCARD tn_status order_check(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs,
                                   int64_t n_inputs, int order);

#endif
