/* SPDX-License-Identifier: MIT */
/* cpu/hit_rows.h: the few slices of a large table that an index names.
 *
 * Sums of halves are made in float32 and rounded once. To widen a whole table for a few slices of
 * it takes longer than the sums do: so those alone are widened, added to, and brought back. */
#ifndef TNI_CPU_HIT_ROWS_H
#define TNI_CPU_HIT_ROWS_H

#include "core/tensor.h"

/* The slices of @p self along @p dim that @p index names, each once, as float32.
 *
 * @param rows   which they are
 * @param ranks  the index, that counts among them instead; as large
 * @param sums   the slices; all three are left alone where the table is small or the index large,
 *               where it names more than half of the table, or what is not in it */
TN_NODISCARD tn_status tni_hit_rows_read(tn_tensor *self, int dim, tn_tensor *index,
                                         TN_OWNED tn_tensor **rows, TN_OWNED tn_tensor **ranks,
                                         TN_OWNED tn_tensor **sums);
/* Bring @p sums, rounded, to the places in @p out that @p rows says. */
TN_NODISCARD tn_status tni_hit_rows_write(const tn_tensor *rows, tn_tensor *sums, int dim,
                                          tn_tensor *out);

#endif
