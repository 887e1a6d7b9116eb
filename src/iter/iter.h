/* SPDX-License-Identifier: MIT */
/* iter/iter.h: one elementwise operation, planned: sizes by broadcasting, dtype by promotion,
 * layout of the result, overlap checks; then how to walk the operands' memory.
 *
 *   tni_iter it;
 *   TN_TRY(tni_iter_begin(&it, &attr, operands, n, given, mode));
 *   tn_status status = tni_cpu_add(&it, alpha);   // a backend's loops; Meta has none
 *   return tni_iter_end(&it, status, &out);
 *
 * Backends share begin and end, so Meta says what the CPU would. Rules: Note [Elementwise rules].
 */
#ifndef TNI_ITER_ITER_H
#define TNI_ITER_ITER_H

#include "core/tensor.h"
#include "shape/number.h"
#include "shape/structured.h"

#define TNI_ITER_INPUTS 3

/* An input: a tensor, or, where @p tensor is NULL, a bare number, which promotes weakly. */
typedef struct tni_operand {
    tn_tensor *tensor;
    tn_scalar scalar;
} tni_operand;

/* How the dtype follows from the inputs. */
enum {
    TNI_PW_PROMOTE = 0,   /* the common dtype */
    TNI_PW_FLOAT = 1,     /* the common dtype, the default float for integers and bool */
    TNI_PW_BOOL = 2,      /* computed in the common dtype, the result is bool */
    TNI_PW_SAME = 3,      /* all inputs must have one dtype */
    TNI_PW_WHERE = 4,     /* input 0 is a condition and has no say */
    TNI_PW_MAGNITUDE = 5, /* the common dtype; of complex numbers the result is real */
};

/* Which common dtypes an operator takes, as bits. */
#define TNI_PW_BIT(dtype) (1u << (TN_DTYPE_##dtype))
#define TNI_PW_FLOATS     (TNI_PW_BIT(F16) | TNI_PW_BIT(BF16) | TNI_PW_BIT(F32) | TNI_PW_BIT(F64))
#define TNI_PW_COMPLEX    (TNI_PW_BIT(C64) | TNI_PW_BIT(C128))
#define TNI_PW_INTEGERS \
    (TNI_PW_BIT(U8) | TNI_PW_BIT(I8) | TNI_PW_BIT(I16) | TNI_PW_BIT(I32) | TNI_PW_BIT(I64))
/* Of the dtypes that few operators take. */
#define TNI_PW_UNSIGNED (TNI_PW_BIT(U16) | TNI_PW_BIT(U32) | TNI_PW_BIT(U64))
#define TNI_PW_FLOAT8 \
    (TNI_PW_BIT(F8E5M2) | TNI_PW_BIT(F8E4M3) | TNI_PW_BIT(F8E5M2UZ) | TNI_PW_BIT(F8E4M3UZ))
#define TNI_PW_INEXACT (TNI_PW_FLOATS | TNI_PW_COMPLEX)
#define TNI_PW_REALS   (TNI_PW_FLOATS | TNI_PW_INTEGERS)
#define TNI_PW_BITS    (TNI_PW_INTEGERS | TNI_PW_BIT(BOOL))
#define TNI_PW_ORDERED (TNI_PW_REALS | TNI_PW_BIT(BOOL))
#define TNI_PW_NUMBERS (TNI_PW_REALS | TNI_PW_COMPLEX)

/* Where the result goes. */
enum {
    TNI_ITER_NEW = 0,     /* a fresh tensor */
    TNI_ITER_INPLACE = 1, /* the given tensor, whose sizes stay: mostly input 0 as well */
    TNI_ITER_OUT = 2,     /* the given tensor, resized when its sizes differ */
};

/* Whether the memory of the output and of all tensors among the inputs is one run each, in one
 * order. */
enum {
    TNI_NOT_FLAT = 0,
    TNI_FLAT = 1,
    TNI_FLAT_SAME = 2,    /* and all inputs are tensors of it->dtype (but for a bool condition) */
    TNI_FLAT_NUMBERS = 3, /* and all inputs are such tensors or bare numbers */
};

/* By what a fresh result is laid out. */
enum {
    TNI_LAYOUT_OPERANDS = 0, /* all operands; a bare number is one without dimensions */
    TNI_LAYOUT_TENSORS = 1,  /* the tensors among them: numbers are parameters */
    TNI_LAYOUT_FIRST = 2,    /* the first, as empty_like would, where sizes are the same */
    TNI_LAYOUT_ROWS = 3,     /* row-major */
};

typedef struct tni_pointwise_attr {
    const char *name;  /* "add" */
    int type_rule;     /* TNI_PW_… */
    int layout;        /* TNI_LAYOUT_… */
    uint32_t takes;    /* of the limited dtypes, as bits */
    const char *label; /* in the text that refuses the others: "add_stub" */
} tni_pointwise_attr;

/* A planned operation. Lives on the stack of the kernel and is not zeroed: what lies below `ndim`
 * is only set when `flat` is not. */
typedef struct tni_iter {
    const tni_pointwise_attr *attr;
    tn_tensor *out; /* what is written */
    int64_t numel;
    tn_dtype dtype;     /* the common dtype: what the operation is computed in */
    tn_dtype out_dtype; /* of `out`; differs from dtype for comparisons and a given output */
    int n;              /* inputs */
    uint8_t mode;
    uint8_t flat;       /* TNI_FLAT… */
    uint8_t numbers;    /* bit i: input i has one value for all: a bare number or a 0-dim tensor */
    uint8_t copy_first; /* bit i: input i shares memory with `out` at other places; read it first */
    bool resized;       /* a given output was; `before` says what it was like */
    void *out_data;
    const void *in_data[TNI_ITER_INPUTS];
    int8_t in_dtype[TNI_ITER_INPUTS]; /* of what in_data points to */
    /* The general walk, fastest dimension first. Strides are in bytes; row 0 is the output's, row
     * 1 + i input i's. Broadcast dimensions have stride 0. */
    int ndim;
    int64_t sizes[TN_MAX_DIMS];
    int64_t strides[1 + TNI_ITER_INPUTS][TN_MAX_DIMS];
    tni_geometry before;
    size_t nbytes_before; /* of its storage */
} tni_iter;

/* Plan. @p n from 1 to TNI_ITER_INPUTS. On failure nothing is allocated, written or resized.
 * @retval TN_INVALID  sizes, dtypes, devices or memory do not go together, in the reference's words
 */
TN_NODISCARD tn_status tni_iter_begin(tni_iter *it, const tni_pointwise_attr *attr,
                                      const tni_operand *operands, int n, tn_tensor *given,
                                      int mode);
/* The end, also when the loops failed: @p status comes back. NEW: hands the result over, or
 * releases it. INPLACE, OUT: @p out is not used and may be NULL; a tensor that was resized gets its
 * sizes back when the loops failed. */
TN_NODISCARD tn_status tni_iter_end(tni_iter *it, tn_status status, TN_OWNED tn_tensor **out);

/* Merge dimensions that every operand walks as one; for backends, before a general walk. */
void tni_iter_coalesce(tni_iter *it);

/* Whether an operator that takes @p takes of the limited dtypes may give a result of @p dtype.
 * @retval TN_UNSUPPORTED  "\"sum_cpu\" not implemented for 'UInt16'" */
TN_NODISCARD static inline tn_status tni_check_limited(tn_dtype dtype, uint32_t takes,
                                                       const char *label)
{
    TN_CHECK(!TN_DTYPE_IS_LIMITED(dtype) || (takes & (1u << dtype)), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", label, tni_dtype_text(dtype));
    return TN_OK;
}

/* The error of inputs of which tni_result_type is none. */
TN_NODISCARD tn_status tni_refuse_promotion(const tni_operand *operands, int n);

/* Whether the sizes of the inputs go together, and @p given, NULL for a fresh result, may be
 * written: what the reference says before it looks for a kernel. */
TN_NODISCARD tn_status tni_iter_check(const tni_operand *in, int n, const tn_tensor *given);

/* Whether the common dtype of the inputs is one of @p allowed. Among dtypes that are allowed
 * promotion finds no other one, so the common case is a look at each input. @p given: see
 * tni_iter_check, whose complaints come first.
 * @retval TN_UNSUPPORTED  "\"kernel\" not implemented for 'Long'" */
TN_NODISCARD tn_status tni_check_common_dtype(const tni_operand *in, int n, int type_rule,
                                              unsigned allowed, const char *kernel,
                                              const tn_tensor *given);
TN_NODISCARD static inline tn_status tni_check_dtypes(const tni_operand *in, int n, int type_rule,
                                                      unsigned allowed, const char *kernel,
                                                      const tn_tensor *given)
{
    unsigned seen = 0;
    for (int i = 0; i < n; i++)
        seen |= in[i].tensor ? 1u << in[i].tensor->dtype : ~0u;
    if (TNI_LIKELY((seen & ~allowed) == 0))
        return TN_OK;
    return tni_check_common_dtype(in, n, type_rule, allowed, kernel, given);
}

/* Whether the result may be written to @p given: the very dtype where @p exact is a text (see
 * tni_check_exact), else one that it can be cast to. Said before the dtypes that an operator
 * computes in. */
TN_NODISCARD tn_status tni_check_given_dtype(const tni_operand *in, int n, int type_rule,
                                             const tn_tensor *given, const char *exact);
TN_NODISCARD static inline tn_status tni_check_written(const tni_operand *in, int n, int type_rule,
                                                       const tn_tensor *given, const char *exact)
{
    bool same = given && type_rule != TNI_PW_BOOL && type_rule != TNI_PW_MAGNITUDE;
    for (int i = 0; same && i < n; i++)
        same = in[i].tensor && in[i].tensor->dtype == given->dtype;
    return TNI_LIKELY(same || !given) ? TN_OK
                                      : tni_check_given_dtype(in, n, type_rule, given, exact);
}

/* Whether all tensors have the dtype of the first.
 * @retval TN_INVALID  "Found dtype Double but expected Float" */
TN_NODISCARD tn_status tni_check_same_dtype(const tni_operand *in, int n);

/* ---- pieces, for operators that are not pointwise ---- */

/* The dtype of joined tensors; of their sizes only what stands before it is checked. */
TN_NODISCARD tn_status tni_cat_dtype(tn_tensor *const *tensors, int64_t n, int64_t dim,
                                     tn_dtype *out);

/* The common dtype of some inputs: see Note [Elementwise rules] in types.c. */
tn_dtype tni_result_type(const tni_operand *operands, int n);
/* "unsupported operation: some elements of the input tensor and the written-to tensor refer to a
 * single memory location. …"; *copy_first is set where the two may share elements and nothing cheap
 * tells: the input must then be read whole before anything is written. */
TN_NODISCARD tn_status tni_check_overlap(const tn_tensor *written, const tn_tensor *input,
                                         bool *copy_first);

/* What combines slices of @p source with those of @p self at @p index: dtypes and sizes, in the
 * words of @p op. @p at: the dimension, counted from 0. */
TN_NODISCARD tn_status tni_check_slices(const char *op, tn_tensor *self, int64_t dim,
                                        tn_tensor *index, tn_tensor *source, int *at);

/* The dimensions that a reduction takes away, as bits. No list, and an empty one: all.
 * @retval TN_INDEX  out of range; @retval TN_INVALID  "dim 1 appears multiple times in the list of
 * dims" */
TN_NODISCARD tn_status tni_reduced_dims(const int64_t *dim, int64_t dim_n, int ndim, uint64_t *out);
/* What is left of @p self without them, row-major; the dtype is the caller's to set. */
void tni_reduced_geometry(tni_geometry *g, const tn_tensor *self, uint64_t dims, bool keepdim);

#endif
