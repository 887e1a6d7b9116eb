/* SPDX-License-Identifier: MIT */
/* cpu/arith.c: remainders, interpolation, bits and truth on the CPU: which loop, with which
 * parameters. */
#include "core/scalar.h"
#include "cpu/run.h"
#include "gen/cpu.h"

#define PLAIN(name, LOOP, flags)                          \
    tn_status tni_cpu_##name(tni_iter *it)                \
    {                                                     \
        return tni_run(it, TNI_LOOP_##LOOP, flags, NULL); \
    }
PLAIN(bitwise_and, BIT_AND, 0)
PLAIN(bitwise_or, BIT_OR, 0)
PLAIN(bitwise_xor, BIT_XOR, 0)
PLAIN(bitwise_not, BIT_NOT, 0)
PLAIN(bitwise_left_shift, SHIFT_LEFT, 0)
PLAIN(bitwise_right_shift, SHIFT_RIGHT, 0)
PLAIN(logical_and, LOGICAL_AND, TNI_RUN_BOOL_RESULT)
PLAIN(logical_or, LOGICAL_OR, TNI_RUN_BOOL_RESULT)
PLAIN(logical_xor, LOGICAL_XOR, TNI_RUN_BOOL_RESULT)
PLAIN(isnan, ISNAN, TNI_RUN_BOOL_RESULT)
PLAIN(isinf, ISINF, TNI_RUN_BOOL_RESULT)
PLAIN(lerp, LERP, TNI_RUN_EXACT_THIRD)

/* ---- division ---- */

static tn_status divided(tni_iter *it, tni_loop loop, unsigned flags)
{
    if (tn_dtype_is_integral(it->dtype, false)) {
        bool has_zero;
        TN_TRY(tni_run_find_zero(it, 1, &has_zero));
        TN_CHECK(!has_zero, TN_INVALID, "ZeroDivisionError");
    }
    return tni_run(it, loop, flags, NULL);
}

tn_status tni_cpu_remainder(tni_iter *it)
{
    return divided(it, TNI_LOOP_REMAINDER, 0);
}

tn_status tni_cpu_fmod(tni_iter *it)
{
    return divided(it, TNI_LOOP_FMOD, 0);
}

tn_status tni_cpu_floor_divide(tni_iter *it)
{
    return divided(it, TNI_LOOP_DIV_FLOOR, TNI_RUN_EXACT_SECOND);
}

/* ---- sums ---- */

/* Turn the two inputs round. */
static void exchange(tni_iter *it)
{
    const void *data = it->in_data[0];
    int8_t dtype = it->in_dtype[0];
    it->in_data[0] = it->in_data[1];
    it->in_dtype[0] = it->in_dtype[1];
    it->in_data[1] = data;
    it->in_dtype[1] = dtype;
    it->numbers = (uint8_t)((it->numbers & 1u) << 1 | (it->numbers & 2u) >> 1);
    it->copy_first = (uint8_t)((it->copy_first & 1u) << 1 | (it->copy_first & 2u) >> 1);
    if (it->flat)
        return;
    for (int d = 0; d < it->ndim; d++) {
        int64_t stride = it->strides[1][d];
        it->strides[1][d] = it->strides[2][d];
        it->strides[2][d] = stride;
    }
}

tn_status tni_cpu_rsub(tni_iter *it, tn_scalar alpha)
{
    exchange(it);
    return tni_cpu_sub(it, alpha);
}

static tn_status scaled(tni_iter *it, tni_loop loop, tn_scalar value)
{
    _Alignas(16) char number[16];
    tni_scalar_store(value, tni_run_dtype(it), number);
    return tni_run(it, loop, 0, number);
}

tn_status tni_cpu_addcmul(tni_iter *it, tn_scalar value)
{
    return scaled(it, TNI_LOOP_ADDCMUL, value);
}

tn_status tni_cpu_addcdiv(tni_iter *it, tn_scalar value)
{
    return scaled(it, TNI_LOOP_ADDCDIV, value);
}

/* ---- the larger, the smaller ---- */

tn_status tni_cpu_fmax(tni_iter *it)
{
    bool exact = tn_dtype_is_integral(it->dtype, true);
    return tni_run(it, exact ? TNI_LOOP_MAXIMUM : TNI_LOOP_FMAX, 0, NULL);
}

tn_status tni_cpu_fmin(tni_iter *it)
{
    bool exact = tn_dtype_is_integral(it->dtype, true);
    return tni_run(it, exact ? TNI_LOOP_MINIMUM : TNI_LOOP_FMIN, 0, NULL);
}
