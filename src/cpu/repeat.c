/* SPDX-License-Identifier: MIT */
/* cpu/repeat.c: repeat_interleave: each number i as often as the i-th count says. */
#include "cpu/copy.h"
#include "cpu/pick.h"
#include "gen/kernels.h"

static tn_status check_repeats(const tn_tensor *repeats)
{
    TN_CHECK(repeats->dtype == TN_DTYPE_I64 || repeats->dtype == TN_DTYPE_I32, TN_UNSUPPORTED,
             "\"repeat_interleave_cpu\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)repeats->dtype));
    TN_CHECK(repeats->ndim == 1, TN_INVALID, "repeat_interleave only accept 1D vector as repeat");
    return TN_OK;
}

tn_status tni_kernel_repeat_interleave(tn_call *call, tn_tensor *repeats, tn_opt_int output_size,
                                       tn_tensor **out)
{
    (void)call;
    TN_TRY(check_repeats(repeats));
    TN_AUTO(tn_tensor) counts = NULL;
    TN_AUTO(tn_tensor) numbers = NULL;
    int64_t n = 0;
    if (tni_is_meta(repeats)) {
        TN_CHECK(output_size.has, TN_INVALID,
                 "cannot repeat_interleave a meta tensor without output_size");
        return tni_tensor_new(1, &output_size.value, NULL, (tn_dtype)repeats->dtype,
                              repeats->device, out);
    }
    TN_CHECK(!output_size.has || output_size.value >= 0, TN_INVALID,
             "Trying to create tensor with negative dimension %lld: [%lld]",
             (long long)output_size.value, (long long)output_size.value);
    TN_TRY(tni_index_run(repeats, &counts));
    const int64_t *count = counts->data;
    for (int64_t i = 0; i < counts->numel; i++) {
        TN_CHECK(count[i] >= 0, TN_INVALID, "repeats can not be negative");
        TN_CHECK(tni_i64_add(n, count[i], &n), TN_INVALID,
                 "repeat_interleave: the counts add up to more than 64 bits hold");
    }
    TN_CHECK(!output_size.has || output_size.value == n, TN_INVALID,
             "allocated size does not match required size");
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &numbers));
    int64_t *o = numbers->data;
    for (int64_t i = 0; i < counts->numel; i++)
        for (int64_t k = 0; k < count[i]; k++)
            *o++ = i;
    if (repeats->dtype == TN_DTYPE_I64) {
        *out = TN_MOVE(numbers);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) same = NULL;
    TN_TRY(tni_tensor_new(1, &n, NULL, (tn_dtype)repeats->dtype, TN_CPU, &same));
    TN_TRY(tni_copy_cpu(same, numbers));
    *out = TN_MOVE(same);
    return TN_OK;
}
