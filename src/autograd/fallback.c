/* SPDX-License-Identifier: MIT */
/* autograd/fallback.c: autograd for operators without an autograd kernel: step aside, and see that
 * no gradient is lost. */
#include "autograd/fallback.h"
#include "autograd/record.h"
#include "dispatch/call.h"

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

/* What a kernel did with memory, in its own frame. What kernels of operators that it calls do,
 * deeper, is theirs to answer for. */
typedef struct doings {
    bool touched; /* took memory of what recorded operators made, to write there for all we know:
                     then the history of its results is that of something else */
    bool read;    /* looked at elements that have a gradient */
} doings;

typedef struct watch {
    uint32_t touched, read; /* of the kernels around */
    uint32_t own;           /* the depth at which the kernel runs */
} watch;

static watch begin_watch(uint32_t own)
{
    tni_state *s = &tni_tls;
    watch w = {s->touched, s->read, own};
    s->touched = s->read = 0;
    return w;
}

static doings end_watch(watch w)
{
    tni_state *s = &tni_tls;
    doings seen = {s->touched != 0 && s->touched <= w.own, s->read != 0 && s->read <= w.own};
    s->touched = w.touched;
    s->read = w.read;
    return seen;
}

static bool any_argument_requires_grad(const tn_call *call, const tn_value *args)
{
    bool found = false;
    for (int i = 0; i < tn_call_num_arguments(call) && !found; i++)
        found = any(&args[i], requires_grad);
    return found;
}

/* Something that the call returned or wrote could have a gradient and has none. */
static bool loses(const tn_call *call, const tn_value *args, const tn_value *rets)
{
    bool found = false;
    for (int i = 0; i < tn_call_num_returns(call) && !found; i++)
        found = any(&rets[i], lost);
    const tni_schema *schema = call->schema;
    for (int i = 0; schema && schema->is_mutable && i < schema->nargs && !found; i++)
        found = schema->args[i].is_write && any(&args[i], lost);
    return found;
}

static tn_status refuse_results(const tn_call *call, tn_value *rets)
{
    for (int i = 0; i < tn_call_num_returns(call); i++)
        tn_value_clear(&rets[i]);
    return refuse(call);
}

tn_status tni_autograd_fallback(tn_call *call, const tn_value *args, tn_value *rets)
{
    watch w = begin_watch(tni_tls.depth + 1);
    tn_status status =
        tn_call_redispatch(call, tn_call_keys(call) & TNI_KS_AFTER_AUTOGRAD, args, rets);
    doings seen = end_watch(w);
    TN_TRY(status);
    if (TNI_LIKELY(!tni_recording) || !any_argument_requires_grad(call, args))
        return TN_OK;
    return seen.touched || loses(call, args, rets) ? refuse_results(call, rets) : TN_OK;
}

tn_status tni_autograd_composite(tn_call *call, const tn_value *args, tn_value *rets)
{
    watch w = begin_watch(tni_tls.depth);
    tn_status status = call->kernel->boxed(call, args, rets);
    doings seen = end_watch(w);
    TN_TRY(status);
    if (TNI_LIKELY(!seen.read) || !tni_recording || !any_argument_requires_grad(call, args))
        return TN_OK;
    return seen.touched || loses(call, args, rets) ? refuse_results(call, rets) : TN_OK;
}
