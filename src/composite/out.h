/* SPDX-License-Identifier: MIT */
/* composite/out.h: `out=` and in-place forms of operators that compute their result by other
 * operators. */
#ifndef TNI_COMPOSITE_OUT_H
#define TNI_COMPOSITE_OUT_H

#include "core/tensor.h"

/* What a write of @p out would refuse: a leaf that requires grad, or a view of one, or one that may
 * not be written, while gradients are recorded. NULL is none. */
TN_NODISCARD tn_status tni_check_leaf(tn_tensor *out);
/* Whether it has a tangent, which would keep its sizes: its own, or as a view its base's. */
static inline bool tni_moves(const tn_tensor *t)
{
    const tn_tensor *base = t->flags & TNI_NO_TANGENT ? NULL : t->view_base;
    return ((t->flags | (base ? base->flags : 0)) & TNI_HAS_TANGENT) != 0;
}
/* No tangent goes into what is given.
 * @retval TN_UNSUPPORTED  "Trying to use forward AD with mm_out that does not support it because it
 * is an out= function" */
TN_NODISCARD tn_status tni_check_still(const char *op, tn_tensor *const *tensors, int64_t n);
/* What is fake cannot be brought to a tensor with memory. */
TN_NODISCARD tn_status tni_check_real(const tn_tensor *made, const tn_tensor *out);
/* Both: for who writes several tensors, and must know of all that they can be written first. */
TN_NODISCARD static inline tn_status tni_check_writable(const tn_tensor *made, tn_tensor *out)
{
    TN_TRY(tni_check_leaf(out));
    return tni_check_real(made, out);
}
/* Bring what operator @p op computed to @p out, which is resized when its sizes differ. Nothing is
 * resized or written when @p out cannot take it.
 *
 * @retval TN_INVALID  "Expected out tensor to have dtype float, but got double instead" */
TN_NODISCARD tn_status tni_out_take(const char *op, tn_tensor *made, tn_tensor *out);
/* The same for an elementwise operator: what is resized lies as the result does. */
TN_NODISCARD tn_status tni_out_take_pointwise(const char *op, tn_tensor *made, tn_tensor *out);
/* The same for a factory, of which nobody is told when @p out is resized. */
TN_NODISCARD tn_status tni_out_take_fresh(const char *op, tn_tensor *made, tn_tensor *out);
/* The same for an operator with @p n results: when one tensor cannot take its own, none is written.
 */
TN_NODISCARD tn_status tni_out_take_all(const char *op, tn_tensor *const *made,
                                        tn_tensor *const *outs, int n);
/* The same for an operator whose result is a list, of the dtypes that it gives. @p form is how the
 * out= form is called in messages.
 *
 * @retval TN_INVALID  "split_copy_Tensor_out() expected an out= argument of size 2, got size 1" */
TN_NODISCARD tn_status tni_out_take_list(const char *op, const char *form, tn_tensor *const *made,
                                         int64_t n, tn_tensor *const *outs, int64_t n_outs);
/* What a function computes with that will be written over @p self: @p self, or a copy while
 * gradients are recorded, which keep what was there before. */
TN_NODISCARD tn_status tni_inplace_begin(tn_tensor *self, tn_tensor **out);
/* The same for what is written in place: sizes must fit, and values must be of a kind that the
 * dtype of @p self can take.
 *
 * @retval TN_INVALID  "result type Float can't be cast to the desired output type Long" */
TN_NODISCARD tn_status tni_inplace_take(tn_tensor *made, tn_tensor *self);

/* @p t is the last step of a computation, a view: it is none any more when nobody else can see what
 * it is a view of. How it came about stays. */
TNI_COLD void tni_leave_own_base(tn_tensor *t);
/* The result of an operator that is declared to give a new tensor. Returns @p status, after which
 * there is one. */
static inline tn_status tni_no_view(tn_status status, tn_tensor *const *made)
{
    if (TNI_UNLIKELY(status == TN_OK && *made && (*made)->view_base))
        tni_leave_own_base(*made);
    return status;
}

#endif
