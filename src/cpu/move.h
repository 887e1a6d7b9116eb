/* SPDX-License-Identifier: MIT */
/* cpu/move.h: elements from strided memory to runs and back, and from one dtype to another. */
#ifndef TNI_CPU_MOVE_H
#define TNI_CPU_MOVE_H

#include "core/dtype.h"
#include "cpu/loops.h"

/* to[i] = *(from + i * stride), for elements of @p itemsize bytes: 1, 2, 4, 8 or 16. Strides are in
 * bytes; 0 repeats one element. */
void tni_gather(void *to, const void *from, int64_t n, int64_t stride, size_t itemsize);
/* *(to + i * stride) = from[i]. */
void tni_scatter(void *to, const void *from, int64_t n, int64_t stride, size_t itemsize);
/* *(to + i * to_stride) = *(from + i * from_stride). */
void tni_move(void *to, const void *from, int64_t n, int64_t to_stride, int64_t from_stride,
              size_t itemsize);
/* to[i] = from[0] for i < n. */
void tni_splat(void *to, const void *from, int64_t n, size_t itemsize);
/* Convert a run; @p to and @p from do not overlap, unless the dtypes are equal and they are the
 * same. */
void tni_convert(const tni_kernels *k, tn_dtype to_dtype, void *to, tn_dtype from_dtype,
                 const void *from, int64_t n);

/* Copy past the caches, for memory that is larger than they are: plain stores would read each line
 * first. Meanwhile as many bytes are fetched from each of @p count places: beside a stream the
 * processor does not fetch far enough by itself. Call tni_stream_end when all is written. */
void tni_stream(void *to, const void *from, size_t nbytes, const void *const *next, int count);
/* The same for two runs of @p nbytes each, a line of one and a line of the other: the processor
 * waits for memory less. Each has one place to fetch from. */
void tni_stream_pair(void *const *to, const void *const *from, size_t nbytes,
                     const void *const *next);
void tni_stream_end(void);

#endif
