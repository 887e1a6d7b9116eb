/* SPDX-License-Identifier: MIT */
/* cpu/lines.h: operators along some dimensions of tensors of any strides and dtypes. A line is what
 * lies along those dimensions at one place of the others, in row-major order; the caller's function
 * sees lines as contiguous runs of the dtype that it wants. */
#ifndef TNI_CPU_LINES_H
#define TNI_CPU_LINES_H

#include "core/tensor.h"
#include "cpu/loops.h"

#define TNI_LINES_MOST 8

enum {
    TNI_LINE_READ = 0,
    TNI_LINE_WRITE = 1, /* need not be read */
    TNI_LINE_UPDATE = 2,
    TNI_LINE_READ_ANY = 3, /* read; many may come in the order of memory: for sums and the like */
};

/* One operand: a tensor with the dimensions of the shape that is walked. Along the line its sizes
 * may be others; a result of a reduction may also lack these dimensions, and has lines of one
 * element. */
typedef struct tni_line {
    const tn_tensor *tensor; /* NULL: its line is NULL */
    tn_dtype want;           /* TN_DTYPE_NONE: the tensor's own */
    uint8_t use;             /* TNI_LINE_… */
} tni_line;

/* @p line has one pointer an operand. @p scratch has the bytes that were asked for, 64-byte
 * aligned. */
typedef tn_status (*tni_line_fn)(void *const *line, void *scratch, void *ctx);

/* Call @p fn for every line of @p shape along the dimensions in @p dims (bits). Lines are shared
 * out to threads; no line is seen twice.
 * @retval TN_NOMEM  a line did not fit into memory; some results may have been written */
TN_NODISCARD tn_status tni_lines(const tn_tensor *shape, uint64_t dims, const tni_line *lines,
                                 int n, size_t scratch, tni_line_fn fn, void *ctx);

/* The elements of a line of @p t along @p dims. */
int64_t tni_line_length(const tn_tensor *t, uint64_t dims);

/* What halves are computed in: float32; any other dtype in itself. */
static inline tn_dtype tni_compute_dtype(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16 ? TN_DTYPE_F32 : dtype;
}

#endif
