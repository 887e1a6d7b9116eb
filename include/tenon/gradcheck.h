/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/gradcheck.h
 * @brief Checking gradients against differences: is what a backward pass computes the derivative of
 *        what the function computes?
 *
 * For the derivatives of operators and of functions of one's own. Slow by nature: the function runs
 * twice for each number that goes in, a backward pass for each number that comes out. Everything
 * runs on the calling thread.
 */
#ifndef TN_GRADCHECK_H
#define TN_GRADCHECK_H

#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Room for results of a function that is checked. */
#define TN_GRADCHECK_MAX_OUTPUTS 64

/**
 * A function to check: computes outputs[0 … *n_outputs - 1], each owned by the caller then, from
 * its inputs, with operators that record, *n_outputs at most TN_GRADCHECK_MAX_OUTPUTS. It must not
 * write its inputs, and must give the same results each time. Of results that were made before a
 * failure it takes care itself.
 */
typedef tn_status (*tn_gradcheck_fn)(void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                                     TN_OWNED tn_tensor **outputs, int64_t *n_outputs);

/** Options of both checks. Start from TN_GRADCHECK_OPTS_INIT; NULL means the same. */
typedef struct tn_gradcheck_opts {
    uint32_t size;     /**< sizeof(tn_gradcheck_opts) */
    int32_t undefined; /**< tn_opt_bool: with several results, one whose gradient is undefined
                            must act as one whose gradient is zero; NONE: check it */
    double eps;        /**< half of the difference that an input is moved by; above 0 */
    double atol,
        rtol; /**< gradient and difference quotient are within atol + rtol * abs(quotient) */
    double nondeterminism; /**< how far two backward passes may differ */
} tn_gradcheck_opts;

/* clang-format off */
#define TN_GRADCHECK_OPTS_INIT {sizeof(tn_gradcheck_opts), TN_BOOL_NONE, 1e-6, 1e-5, 1e-3, 0.0}
/* clang-format on */

/**
 * Compare the gradients of @p fn with central differences.
 *
 * All results that require grad are checked for all inputs that do, element by element, complex
 * ones in both directions; that a zero gradient gives zeros; that a second backward pass gives the
 * same; undefined gradients (see opts). When no result requires grad, the differences must be zero.
 *
 * @param inputs  those that require grad: float64 or complex128, on the CPU, each element at a
 * place of its own in memory
 * @retval TN_INVALID  they differ: the message names result, input, elements and both values. Or an
 *                     input is not fit, or nothing requires grad, or recording is off; or an
 *                     option is out of range; or a result is not a tensor on the CPU
 */
TN_API TN_NODISCARD tn_status tn_gradcheck(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs,
                                           int64_t n_inputs, const tn_gradcheck_opts *opts);

/**
 * The same for the gradients of the gradients of @p fn: tn_gradcheck of its backward pass, as a
 * function of the inputs and of the gradients of its results.
 *
 * @param grad_outputs  one for each result that requires grad, of its shape and dtype; NULL: made
 * up
 */
TN_API TN_NODISCARD tn_status tn_gradgradcheck(tn_gradcheck_fn fn, void *ctx,
                                               tn_tensor *const *inputs, int64_t n_inputs,
                                               tn_tensor *const *grad_outputs,
                                               const tn_gradcheck_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
