/* SPDX-License-Identifier: MIT */
/* core/scalar.h: bare numbers as elements of a tensor, and back. */
#ifndef TNI_CORE_SCALAR_H
#define TNI_CORE_SCALAR_H

#include "tenon/dtype.h"

/* What a bare number alone becomes: int64, the default dtype, bool, or the default's complex type.
 */
tn_dtype tni_scalar_dtype(tn_scalar scalar);
/* Not zero; NaN is true. */
bool tni_scalar_is_true(tn_scalar scalar);
/* The value as a uint64; a negative number wraps. */
uint64_t tni_scalar_to_unsigned(tn_scalar scalar);
/* Write @p scalar as one element of a valid dtype; @p to is aligned for it. Integers wrap. Of a
 * complex number a real type takes the real part; whether that is allowed is for the operator to
 * say. */
void tni_scalar_store(tn_scalar scalar, tn_dtype dtype, void *to);
/* Read one element of a valid dtype. */
tn_scalar tni_scalar_load(tn_dtype dtype, const void *from);

#endif
