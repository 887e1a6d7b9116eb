/* SPDX-License-Identifier: MIT */
/* tests/autograd/forward_check.h: the product of a function's Jacobian with a vector, three ways.
 */
#ifndef TNI_TEST_AUTOGRAD_FORWARD_CHECK_H
#define TNI_TEST_AUTOGRAD_FORWARD_CHECK_H

#include "tenon/gradcheck.h"

/* Compare what forward mode gives for the first result of @p fn, and for others that get a tangent,
 * with difference quotients and with the backward pass: u · (J v) = (J^T u) · v; once with
 * gradients recorded and once without. Inputs are double precision; those that require grad get
 * tangents.
 * @retval TN_INVALID      they differ: the message says where
 * @retval TN_UNSUPPORTED  an operator has no `jvp` */
TN_NODISCARD tn_status forward_check(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs,
                                     int64_t n_inputs);

#endif
