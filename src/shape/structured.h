/* SPDX-License-Identifier: MIT */
/* shape/structured.h: where the results of a structured operator go when the caller gives the
 * tensor.
 *
 * The shape function says what a result must look like (tni_geometry). A kernel for `out=` or an
 * in-place operator then does
 *
 *   TN_AUTO(tn_tensor) beside = NULL;
 *   TN_TRY(tni_out_prepare("mm", &g, out, inputs, n, &beside));   // or tni_inplace_prepare
 *   compute into tni_out_target(out, beside)
 *   TN_TRY(tni_out_finish(out, beside));
 *
 * Nothing is resized or written before all checks have passed. */
#ifndef TNI_SHAPE_STRUCTURED_H
#define TNI_SHAPE_STRUCTURED_H

#include "core/tensor.h"

/* Whether a result of this dtype may be written to a tensor of that one: not complex to real, float
 * to integer, integer to bool. @retval TN_INVALID  "result type Float can't be cast to the desired
 * output type Long" */
TN_NODISCARD tn_status tni_check_cast(tn_dtype from, tn_dtype to);
/* The same in the words of an operator: @p text, in which %w is the dtype of the result ("Float"),
 * %g that of @p out, %W and %G the names that C++ has for them ("float"). exact: @p out, which may
 * be NULL, must have the very dtype; float: a floating one. safe: @p bad is the status of a
 * refusal. */
TN_NODISCARD tn_status tni_check_safe(tn_status bad, tn_dtype from, const tn_tensor *out,
                                      const char *text);
TN_NODISCARD tn_status tni_check_float(tn_dtype from, const tn_tensor *out, const char *text);
TN_NODISCARD tn_status tni_check_exact(tn_dtype from, const tn_tensor *out, const char *text);
/* The checks of tni_out_prepare and of tni_out_prepare_cast alone. An operator with several results
 * makes them for each before it prepares the first. */
TN_NODISCARD tn_status tni_out_check(const char *op, const tni_geometry *g, const tn_tensor *out);
TN_NODISCARD tn_status tni_out_check_cast(const char *op, const tni_geometry *g,
                                          const tn_tensor *out);

/* What a Meta kernel makes or writes has no memory. A result that would have some, because an
 * argument beside the one that says its device is on Meta, could only be left as it lies there.
 * @retval TN_INVALID  "Expected all tensors to be on the same device, but found at least two
 * devices, cpu and meta!" */
TN_NODISCARD tn_status tni_check_meta(const tni_geometry *g, int n);

/* The sizes of a tensor that will be resized: it gets them back when the variable goes, unless the
 * result was computed and .out set to NULL. What a kernel finds wrong only when it looks at values
 * (an index that points nowhere) leaves `out` as it was. */
typedef struct tni_out_kept {
    tn_tensor *out; /* borrowed; NULL: nothing to give back, and the rest is undefined */
    tni_geometry g;
    size_t nbytes; /* of its storage */
} tni_out_kept;
#define TNI_OUT_KEPT __attribute__((cleanup(tni_out_restore))) tni_out_kept
/* Of @p out, which may be NULL, when it will be given geometry @p g. Into a variable, not from a
 * return value: that would be a kilobyte to copy at each call. */
void tni_out_keep(tni_out_kept *kept, tn_tensor *out, const tni_geometry *g);
void tni_out_restore(const tni_out_kept *kept);

/* Several results that are given must not share memory, or be one tensor: the second would
 * overwrite the first. To be asked when they have the sizes of the results. */
TN_NODISCARD tn_status tni_outs_apart(tn_tensor *const *outs, int64_t n);

/* Tells that @p out, which has elements, will be resized (tni_warn). */
TN_NODISCARD tn_status tni_out_tell(const tn_tensor *out, int ndim, const int64_t *sizes);

/* Make @p out ready to take a result of geometry @p g: checks dtype, device and memory, and resizes
 * it when its sizes differ (an out of the right sizes keeps its strides, whatever they are).
 * Computations may not read what they have already written: where @p out shares memory with one of
 * the @p n inputs (NULL entries are skipped), a fresh tensor takes the result instead.
 *
 * @param beside  the fresh tensor; left alone when @p out itself takes the result: to hold a
 *                reference to that would cost as much as the checks
 * @retval TN_INVALID  "Expected out tensor to have dtype float, but got double instead" */
TN_NODISCARD tn_status tni_out_prepare(const char *op, const tni_geometry *g, tn_tensor *out,
                                       tn_tensor *const *inputs, int n,
                                       TN_OWNED tn_tensor **beside);
/* The same for an operator that casts its result to the dtype of @p out: where they differ, *beside
 * is a fresh tensor of the dtype of @p g.
 *
 * @retval TN_INVALID  "result type Float can't be cast to the desired output type Long" */
TN_NODISCARD tn_status tni_out_prepare_cast(const char *op, const tni_geometry *g, tn_tensor *out,
                                            tn_tensor *const *inputs, int n,
                                            TN_OWNED tn_tensor **beside);
/* The same for an operator that overwrites its argument @p self, which must already look like @p g
 * in sizes, dtype and device. @p others are its other inputs.
 *
 * @retval TN_INVALID  "Bad in-place call: input tensor size [1, 5] and output tensor size [2, 5]
 * should match" */
TN_NODISCARD tn_status tni_inplace_prepare(const char *op, const tni_geometry *g, tn_tensor *self,
                                           tn_tensor *const *others, int n,
                                           TN_OWNED tn_tensor **beside);
/* What the result is computed into. */
static inline tn_tensor *tni_out_target(tn_tensor *out, tn_tensor *beside)
{
    return TNI_UNLIKELY(beside != NULL) ? beside : out;
}
/* Bring what was computed into @p beside to @p out: nothing to do when that is NULL. Borrows both.
 */
TN_NODISCARD tn_status tni_out_finish(tn_tensor *out, tn_tensor *beside);

#endif
