/* SPDX-License-Identifier: MIT */
/* core/dtype.h: element sizes without a call, and the names that error texts use. */
#ifndef TNI_CORE_DTYPE_H
#define TNI_CORE_DTYPE_H

#include "tenon/dtype.h"

/* Bytes an element, by dtype number; 0 for a number that is no dtype. */
extern const uint8_t tni_dtype_sizes[TN_DTYPE_LIMIT];

/* For a dtype that is known to be valid. */
static inline size_t tni_dtype_size(tn_dtype dtype)
{
    return tni_dtype_sizes[dtype & (TN_DTYPE_LIMIT - 1)];
}
static inline bool tni_dtype_ok(int dtype)
{
    return (unsigned)dtype < TN_DTYPE_LIMIT && tni_dtype_sizes[dtype] != 0;
}

/* Floating or complex: what can have a gradient. */
static inline bool tni_dtype_is_inexact(tn_dtype dtype)
{
    enum { UINT, INT, FLOAT, COMPLEX, BOOL };
#define X(name, number, bytes, category, py, text, cpp) \
    | ((category == FLOAT || category == COMPLEX ? 1u : 0u) << (number))
    const uint32_t inexact = 0 TN_DTYPE_LIST(X);
#undef X
    return inexact >> (dtype & (TN_DTYPE_LIMIT - 1)) & 1;
}

/* float8: one of the four. */
static inline bool tni_dtype_is_float8(tn_dtype dtype)
{
    return dtype >= TN_DTYPE_F8E5M2 && dtype <= TN_DTYPE_F8E4M3UZ;
}

/* The dtype with loops of its own whose elements are as many bytes: for loops that only move them.
 */
static inline tn_dtype tni_dtype_moved_as(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_U16:
        return TN_DTYPE_I16;
    case TN_DTYPE_U32:
        return TN_DTYPE_I32;
    case TN_DTYPE_U64:
        return TN_DTYPE_I64;
    default:
        return TN_DTYPE_IS_LIMITED(dtype) ? TN_DTYPE_U8 : dtype;
    }
}

/* What an element's address must be a multiple of; a complex number is two reals. */
static inline size_t tni_dtype_align(tn_dtype dtype)
{
    size_t size = tni_dtype_size(dtype);
    return dtype == TN_DTYPE_C64 || dtype == TN_DTYPE_C128 ? size / 2 : size;
}

const char *tni_dtype_text(tn_dtype dtype); /* "Float" */
const char *tni_dtype_cpp(tn_dtype dtype);  /* "float" */
/* What messages call a CPU tensor of this dtype, in @p text: "torch.FloatTensor", "CPUBoolType". */
enum { TNI_TYPE_TEXT = 40 };
const char *tni_type_text(tn_dtype dtype, char text[TNI_TYPE_TEXT]);
/* The error of two dtypes that do not promote. */
TN_NODISCARD tn_status tni_promotion_refused(tn_dtype a, tn_dtype b);
/* The largest finite number of a floating dtype, or of the parts of a complex one. */
double tni_dtype_largest(tn_dtype dtype);
/* float32 -> complex64 and float64 -> complex128; float16 and bfloat16 too give complex64. */
tn_dtype tni_dtype_to_complex(tn_dtype dtype);
/* complex64 -> float32, complex128 -> float64; anything else is its own. */
tn_dtype tni_dtype_to_real(tn_dtype dtype);

#endif
