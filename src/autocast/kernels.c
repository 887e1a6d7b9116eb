/* SPDX-License-Identifier: MIT */
/* autocast/kernels.c: one call in a region: its floating arguments in the dtype that its policy
 * says, then the operator below. */
#include "autocast/kernels.h"

#include "autocast/cache.h"
#include "base/alloc.h"
#include "core/state.h"
#include "op/schema.h"
#include "tenon/autocast.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

/* ---- which tensors, to which dtype ---- */

/* float64 is what the user insisted on. */
static bool is_eligible(const tn_tensor *t)
{
    return t && t->device.type == TN_DEVICE_CPU && tn_dtype_is_floating((tn_dtype)t->dtype) &&
           t->dtype != TN_DTYPE_F64;
}

static int64_t tensors_of(const tn_value *v, tn_tensor *const **out)
{
    *out = v->tag == TN_TAG_TENSOR        ? &v->u.tensor
           : v->tag == TN_TAG_TENSOR_LIST ? v->u.tensors
                                          : NULL;
    return v->tag == TN_TAG_TENSOR ? 1 : v->tag == TN_TAG_TENSOR_LIST ? v->count : 0;
}

static tn_dtype widest(const tn_call *call, const tn_value *args)
{
    tn_dtype wide = tn_autocast_dtype(TN_DEVICE_CPU);
    int n_args = tn_call_num_arguments(call);
    for (int a = 0; a < n_args; a++) {
        tn_tensor *const *list;
        int64_t n = tensors_of(&args[a], &list);
        for (int64_t i = 0; i < n; i++)
            if (is_eligible(list[i]))
                wide = tn_promote_types(wide, (tn_dtype)list[i]->dtype);
    }
    return wide;
}

/* ---- casting ---- */

static bool is_parameter(tn_tensor *t)
{
    return t->dtype == TN_DTYPE_F32 && tn_tensor_requires_grad(t) && !tn_tensor_is_view(t) &&
           tn_tensor_is_leaf(t);
}

/* A new reference: @p t itself when there is nothing to do. */
static tn_status cast(tn_tensor *t, tn_dtype dtype, tn_tensor **out)
{
    if (!is_eligible(t) || t->dtype == dtype) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    bool keep = tn_autocast_cache_enabled() && tn_grad_enabled() &&
                dtype == tn_autocast_dtype(TN_DEVICE_CPU) && is_parameter(t);
    if (keep && (*out = tni_cast_cache_get(t, dtype)) != NULL)
        return TN_OK;
    tn_tensor *made = NULL;
    TN_TRY(tn_to_dtype(t, dtype, false, false, TN_FORMAT_NONE, &made));
    if (keep)
        tni_cast_cache_put(t, made);
    *out = made;
    return TN_OK;
}

static tn_status cast_list(const tn_value *from, tn_dtype dtype, tn_value *out)
{
    int64_t n = from->count;
    tn_tensor **list = tni_calloc((size_t)(n ? n : 1) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot cast a list of %lld tensors", (long long)n);
    tn_status status = TN_OK;
    for (int64_t i = 0; i < n && status == TN_OK; i++)
        status = cast(from->u.tensors[i], dtype, &list[i]);
    if (status == TN_OK)
        *out = tn_value_take_tensors(list, n);
    else
        tn_tensor_list_free(list, n);
    return status;
}

static tn_status cast_value(const tn_value *from, tn_dtype dtype, tn_value *out)
{
    if (from->tag == TN_TAG_TENSOR_LIST)
        return cast_list(from, dtype, out);
    if (from->tag != TN_TAG_TENSOR || !from->u.tensor) {
        *out = *from; /* borrowed: the caller's lives longer */
        out->flags = 0;
        return TN_OK;
    }
    tn_tensor *made = NULL;
    TN_TRY(cast(from->u.tensor, dtype, &made));
    *out = tn_value_take_tensor(made);
    return TN_OK;
}

static tn_status run(tn_call *call, const tn_value *args, tn_dtype dtype, tn_value *rets)
{
    tn_value made[TNI_SCHEMA_MAX_ARGS];
    int n = tn_call_num_arguments(call), done = 0;
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_AUTOCAST_CPU));
    tn_status status = TN_OK;
    while (done < n && (status = cast_value(&args[done], dtype, &made[done])) == TN_OK)
        done++;
    if (status == TN_OK)
        status = tn_call_redispatch(
            call, tn_call_keys(call) & tn_keyset_full_after(TN_KEY_AUTOCAST_CPU), made, rets);
    tn_keys_restore(guard);
    while (done > 0)
        tn_value_clear(&made[--done]);
    return status;
}

tn_status tni_autocast_lower(tn_call *call, const tn_value *args, tn_value *rets)
{
    return run(call, args, tn_autocast_dtype(TN_DEVICE_CPU), rets);
}

tn_status tni_autocast_float32(tn_call *call, const tn_value *args, tn_value *rets)
{
    return run(call, args, TN_DTYPE_F32, rets);
}

tn_status tni_autocast_promote(tn_call *call, const tn_value *args, tn_value *rets)
{
    return run(call, args, widest(call, args), rets);
}

/* An LSTM (input, hx, ...) over sequences of one length, as PyTorch's one kernel for it: of
 * float64, which was asked for, and with projections, h being narrower than c, the steps are cast
 * one operator at a time. */
static bool is_cast_whole(const tn_value *args)
{
    const tn_tensor *input = args[0].u.tensor;
    tn_tensor *const *hx = args[1].u.tensors;
    return is_eligible(input) && input->numel > 0 && args[1].count == 2 && hx[0]->ndim > 2 &&
           hx[1]->ndim > 2 && hx[0]->sizes[2] == hx[1]->sizes[2];
}

tn_status tni_autocast_lower_lstm(tn_call *call, const tn_value *args, tn_value *rets)
{
    if (is_cast_whole(args))
        return tni_autocast_lower(call, args, rets);
    return tn_call_redispatch(call, tn_call_keys(call) & tn_keyset_full_after(TN_KEY_AUTOCAST_CPU),
                              args, rets);
}
