/* SPDX-License-Identifier: MIT */
/* autograd/fallback.c: autograd for operators without an autograd kernel: step aside, and see that
 * no gradient is lost. */
#include "autograd/fallback.h"
#include "autograd/record.h"

static bool any(const tn_value *v, bool (*test)(const tn_tensor *t))
{
    if (v->tag == TN_TAG_TENSOR)
        return v->u.tensor && test(v->u.tensor);
    bool found = false;
    for (uint32_t i = 0; v->tag == TN_TAG_TENSOR_LIST && i < v->count; i++)
        found = found || (v->u.tensors[i] && test(v->u.tensors[i]));
    return found;
}

static bool requires_grad(const tn_tensor *t)
{
    return tni_requires_grad(t);
}

/* A result that could have a gradient and has none: the kernel was not made of recorded operators.
 */
static bool lost(const tn_tensor *t)
{
    return tni_dtype_is_inexact((tn_dtype)t->dtype) && !tni_requires_grad(t);
}

static TNI_COLD tn_status refuse(const tn_call *call)
{
    TN_FAIL(
        TN_UNSUPPORTED,
        "derivative for %s is not implemented: give it one with tn_library_autograd, or call it "
        "with tensors that do not require grad (tn_detach)",
        tn_op_name(tn_call_op(call)));
}

/* Run the kernel, *out_touched: it took memory of what recorded operators made, to write there for
 * all we know. Then the history of its results is that of something else. What kernels of operators
 * that it calls do, deeper, is theirs to answer for. */
static tn_status run(tn_call *call, const tn_value *args, tn_value *rets, bool *out_touched)
{
    tni_state *s = &tni_tls;
    uint32_t before = s->touched, own = s->depth + 1;
    s->touched = 0;
    tn_status status =
        tn_call_redispatch(call, tn_call_keys(call) & TNI_KS_AFTER_AUTOGRAD, args, rets);
    *out_touched = s->touched != 0 && s->touched <= own;
    s->touched = before;
    return status;
}

tn_status tni_autograd_fallback(tn_call *call, const tn_value *args, tn_value *rets)
{
    bool recorded = false, gone = false;
    TN_TRY(run(call, args, rets, &gone));
    if (TNI_LIKELY(!tni_recording))
        return TN_OK;
    for (int i = 0; i < tn_call_num_arguments(call) && !recorded; i++)
        recorded = any(&args[i], requires_grad);
    int n = recorded ? tn_call_num_returns(call) : 0;
    for (int i = 0; i < n; i++)
        gone = gone || any(&rets[i], lost);
    if (TNI_LIKELY(!recorded || !gone))
        return TN_OK;
    for (int i = 0; i < n; i++)
        tn_value_clear(&rets[i]);
    return refuse(call);
}
