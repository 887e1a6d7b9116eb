/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/names.h
 * @brief Named tensors: names of dimensions.
 *
 * A dimension may have a name: "N", "C", "height". Operators check names and give them on, by the
 * rules of PyTorch's named tensors: sums drop those that are summed over, elementwise operators
 * refuse operands whose names do not match from the right, products give the outer ones. An
 * operator that has no rule refuses named tensors and says so. Gradients have no names.
 *
 * Names are letters, digits and underscores, and begin with no digit; those of a tensor differ.
 */
#ifndef TN_NAMES_H
#define TN_NAMES_H

#include "tenon/base.h"
#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Whether any dimension of @p t has a name. */
TN_API bool tn_tensor_has_names(const tn_tensor *t);
/** The name of a dimension (negative: from the end); NULL: it has none, or is not there. Valid as
 *  long as @p t keeps its names. */
TN_API TN_BORROWED const char *tn_tensor_name(const tn_tensor *t, int64_t dim);
/** Which dimension has this name. @retval TN_INVALID  "Name 'C' not found in Tensor['N', None]." */
TN_API TN_NODISCARD tn_status tn_tensor_find_name(const tn_tensor *t, const char *name, int *out);
/**
 * Name the dimensions of @p t itself, a tensor of the CPU or CUDA; a view of it, made by tn_alias,
 * can have others. Nothing is computed, and no gradient notices.
 * @param names  one for each dimension, NULL where it has none; copied. NULL takes all names away
 * @retval TN_INVALID  another number, a name that is none, or one twice; the device has no names
 * @retval TN_NOMEM
 */
TN_API TN_NODISCARD tn_status tn_tensor_set_names(tn_tensor *t, const char *const *names, int n);

#ifdef __cplusplus
}
#endif
#endif
