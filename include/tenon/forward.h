/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/forward.h
 * @brief Forward mode: derivatives along a direction, computed together with the values.
 *
 * A dual tensor is a tensor with a tangent, the direction in which it moves. Operators called with
 * dual tensors return dual tensors: one call of a function gives its value and the product of its
 * Jacobian with the tangents of its arguments. Tangents are made of recorded operators, so that a
 * backward pass may go through them (products with a Hessian).
 *
 * Tangents live while the dual level is entered. The level belongs to the process: threads share
 * it.
 */
#ifndef TN_FORWARD_H
#define TN_FORWARD_H

#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Enter the dual level.
 *  @retval TN_INVALID  it is entered: "Nested forward mode AD is not supported at the moment" */
TN_API TN_NODISCARD tn_status tn_forward_enter(void);
/** Leave it: all tangents are dropped. No other thread may be computing with dual tensors.
 *  @retval TN_INVALID  it was not entered */
TN_API TN_NODISCARD tn_status tn_forward_leave(void);
/** Whether the dual level is entered. */
TN_API bool tn_forward_entered(void);

/**
 * A view of @p primal that carries @p tangent; @p primal itself does not. A tangent whose strides
 * are not those of the primal is copied into its layout, else it is kept as it is: operators that
 * write the dual tensor write it too.
 * @retval TN_INVALID  no level is entered; sizes, dtype or device differ; either has a tangent
 */
TN_API TN_NODISCARD tn_status tn_make_dual(tn_tensor *primal, tn_tensor *tangent,
                                           TN_OWNED tn_tensor **out);
/** A view of @p t without its tangent, and the tangent, NULL when it has none. */
TN_API TN_NODISCARD tn_status tn_unpack_dual(tn_tensor *t, TN_OWNED tn_tensor **out_primal,
                                             TN_OWNED tn_tensor **out_tangent);
/** The tangent alone; NULL when @p t has none. */
TN_API TN_NODISCARD tn_status tn_tensor_tangent(tn_tensor *t, TN_OWNED tn_tensor **out);

/** Whether calls of this thread push tangents forward, as they do unless told otherwise; returns
 *  what it was. Off, results have no tangents. */
TN_API bool tn_set_forward_grad_enabled(bool on);

#ifdef __cplusplus
}
#endif
#endif
