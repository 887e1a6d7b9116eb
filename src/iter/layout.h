/* SPDX-License-Identifier: MIT */
/* iter/layout.h: the order of dimensions; private to iter/. */
#ifndef TNI_ITER_LAYOUT_H
#define TNI_ITER_LAYOUT_H

#include "iter/iter.h"

/* Fill @p perm with the dimensions, fastest first, while sizes and strides are in logical order.
 * @p has_out_strides: row 0 is set and has the first say. True when the order is the row-major one.
 */
bool tni_iter_order(tni_iter *it, bool has_out_strides, uint8_t *perm);
/* Bring sizes and strides into that order. */
void tni_iter_permute(tni_iter *it, const uint8_t *perm, bool has_out_strides);

#endif
