/* SPDX-License-Identifier: MIT */
/* composite/ctc.c: the loss of sequences without an alignment: lengths in tensors, reductions. */
#include "base/alloc.h"
#include "composite/leave.h"
#include "core/at_hand.h"
#include "core/fake.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/index.h"
#include "shape/loss.h"
#include "tenon/ops.h"

/* ---- lengths ---- */

static tn_status check_lengths(const tn_tensor *inputs, const tn_tensor *targets)
{
    TN_CHECK(tn_dtype_is_integral((tn_dtype)inputs->dtype, false), TN_INVALID,
             "input_lengths must be integral");
    TN_CHECK(tn_dtype_is_integral((tn_dtype)targets->dtype, false), TN_INVALID,
             "target_lengths must be integral");
    return TN_OK;
}

/* The numbers of both tensors, in one block to be freed. */
static tn_status lengths(tn_tensor *inputs, tn_tensor *targets, int64_t **out)
{
    tn_tensor *both[] = {inputs, targets};
    TN_TRY(check_lengths(inputs, targets));
    if (tni_is_fake(inputs) || tni_is_fake(targets))
        return tni_fake_needs_sizes("aten._ctc_loss.Tensor");
    TN_CHECK(!tni_is_meta(inputs) && !tni_is_meta(targets), TN_INVALID,
             "Tensor.item() cannot be called on meta tensors");
    int64_t *x = tni_alloc((size_t)(inputs->numel + targets->numel) * sizeof *x + 1), *to = x;
    TN_CHECK(x, TN_NOMEM, "cannot allocate memory for lengths");
    tn_status status = TN_OK;
    for (int i = 0; status == TN_OK && i < 2; i++) {
        tn_tensor *wide = NULL, *dense = NULL;
        status = tn_to_dtype(both[i], TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &wide);
        if (status == TN_OK)
            status = tn_contiguous(wide, TN_FORMAT_CONTIGUOUS, &dense);
        if (status == TN_OK && dense->numel > 0 && !dense->data)
            status = tni_fail(TN_INVALID, TNI_WHERE, TNI_NOT_AT_HAND);
        if (status == TN_OK)
            for (int64_t k = 0; k < dense->numel; k++)
                *to++ = ((const int64_t *)dense->data)[k];
        tn_tensor_unref(wide);
        tn_tensor_unref(dense);
    }
    if (status != TN_OK)
        tni_free(x);
    else
        *out = x;
    return status;
}

tn_status tni_kernel_ctc_loss_tensor(tn_call *call, tn_tensor *log_probs, tn_tensor *targets,
                                     tn_tensor *input_lengths, tn_tensor *target_lengths,
                                     int64_t blank, bool zero_infinity, tn_tensor **out0,
                                     tn_tensor **out1)
{
    int64_t *x;
    (void)call;
    TN_TRY(lengths(input_lengths, target_lengths, &x));
    tn_status status =
        tn__ctc_loss(log_probs, targets, x, input_lengths->numel, x + input_lengths->numel,
                     target_lengths->numel, blank, zero_infinity, out0, out1);
    tni_free(x);
    return status;
}

tn_status tni_kernel_ctc_loss_backward_tensor(tn_call *call, tn_tensor *grad, tn_tensor *log_probs,
                                              tn_tensor *targets, tn_tensor *input_lengths,
                                              tn_tensor *target_lengths,
                                              tn_tensor *neg_log_likelihood, tn_tensor *log_alpha,
                                              int64_t blank, bool zero_infinity, tn_tensor **out)
{
    int64_t *x;
    (void)call;
    TN_TRY(check_lengths(input_lengths, target_lengths));
    if (tni_is_meta(input_lengths) || tni_is_meta(target_lengths)) { /* their values say no size */
        TN_TRY(tni_same_device(log_probs,
                               tni_is_meta(input_lengths) ? input_lengths : target_lengths));
        return tn_empty_like(log_probs, NULL, TN_FORMAT_CONTIGUOUS, out);
    }
    TN_TRY(lengths(input_lengths, target_lengths, &x));
    tn_status status = tn__ctc_loss_backward(
        grad, log_probs, targets, x, input_lengths->numel, x + input_lengths->numel,
        target_lengths->numel, neg_log_likelihood, log_alpha, blank, zero_infinity, out);
    tni_free(x);
    return status;
}

/* ---- the loss ---- */

static tn_tensor *mean_by_length(tn_tensor *loss, const int64_t *targets, int64_t n)
{
    tn_tensor *divisors = tnx_new_empty(loss, &n, 1, NULL);
    for (int64_t b = 0; b < n; b++)
        tnx_fill_(tnx_select(divisors, 0, b), tn_int(targets[b] > 1 ? targets[b] : 1));
    return tnx_mean(tnx_div(loss, divisors), TN_DTYPE_NONE);
}

tn_status tni_composite_ctc_loss(tn_tensor *log_probs, tn_tensor *targets,
                                 const int64_t *input_lengths, int64_t input_lengths_n,
                                 const int64_t *target_lengths, int64_t target_lengths_n,
                                 int64_t blank, int64_t reduction, bool zero_infinity,
                                 tn_tensor **out)
{
    TN_AUTO(tn_tensor) loss = NULL;
    TN_AUTO(tn_tensor) alpha = NULL;
    TN_AUTO(tn_tensor) batch = NULL;
    TN_AUTO(tn_tensor) labels = NULL; /* targets of another dtype, whole */
    tn_scope *scope;
    bool alone = log_probs->ndim == 2;
    TN_TRY(tni_loss_check(reduction));
    if (alone)
        TN_TRY(tn_unsqueeze(log_probs, 1, &batch));
    if (targets->dtype != TN_DTYPE_I64 && targets->dtype != TN_DTYPE_I32)
        TN_TRY(tn_to_dtype(targets, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &labels));
    TN_TRY(tn__ctc_loss(alone ? batch : log_probs, labels ? labels : targets, input_lengths,
                        input_lengths_n, target_lengths, target_lengths_n, blank, zero_infinity,
                        &loss, &alpha));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *result = loss;
    if (zero_infinity)
        result = tnx_where(tnx_eq_scalar(result, tn_float(__builtin_inf())),
                           tnx_zeros_like(result, NULL, TN_FORMAT_NONE), result);
    if (reduction == TNI_LOSS_MEAN)
        result = mean_by_length(result, target_lengths, target_lengths_n);
    else if (reduction == TNI_LOSS_SUM)
        result = tnx_sum(result, TN_DTYPE_NONE);
    else if (alone)
        result = tnx_squeeze_dim(result, 0);
    return tni_leave(scope, result, out);
}

tn_status tni_composite_ctc_loss_tensor(tn_tensor *log_probs, tn_tensor *targets,
                                        tn_tensor *input_lengths, tn_tensor *target_lengths,
                                        int64_t blank, int64_t reduction, bool zero_infinity,
                                        tn_tensor **out)
{
    int64_t *x;
    TN_TRY(lengths(input_lengths, target_lengths, &x));
    tn_status status = tni_composite_ctc_loss(log_probs, targets, x, input_lengths->numel,
                                              x + input_lengths->numel, target_lengths->numel,
                                              blank, reduction, zero_infinity, out);
    tni_free(x);
    return status;
}
