/* SPDX-License-Identifier: MIT */
/* cpu/divide.c: division with a rounding mode, which also decides the dtype: without one integers
 * give the default float, with one they stay integers. The kernels serve the CPU and Meta. */
#include <string.h>
#include "cpu/run.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

static tn_status loops(tni_iter *it, tni_loop loop)
{
    if (tn_dtype_is_integral(it->dtype, false)) {
        bool has_zero;
        TN_TRY(tni_run_find_zero(it, 1, &has_zero));
        TN_CHECK(!has_zero, TN_INVALID, "ZeroDivisionError");
    }
    return tni_run(it, loop, TNI_RUN_EXACT_SECOND, NULL);
}

/* Halves are rounded to their dtype before their fraction is dropped, unless the divisor is one
 * number: so does the reference, and a quotient next to a whole number is that number. */
static bool rounds_first(const tni_iter *it, tni_operand other)
{
    return (it->dtype == TN_DTYPE_F16 || it->dtype == TN_DTYPE_BF16) && other.tensor &&
           other.tensor->numel != 1;
}

/* The common dtype is known only once the operation is planned, and a refused one must leave a
 * given output as it was; so this looks first. */
static tn_status check_dtype(const char *mode, const tni_operand *operands)
{
    tn_dtype dtype = tni_result_type(operands, 2);
    TN_CHECK(dtype != TN_DTYPE_BOOL && !tn_dtype_is_complex(dtype), TN_UNSUPPORTED,
             "\"div_%s_cpu\" not implemented for '%s'", mode, tni_dtype_text(dtype));
    return TN_OK;
}

static tn_status divide(tn_tensor *self, tni_operand other, const char *mode, tn_tensor *given,
                        int how, tn_tensor **out)
{
    static const tni_pointwise_attr quotient = {"div", TNI_PW_FLOAT, TNI_LAYOUT_OPERANDS, 0,
                                                "div_cpu"};
    bool trunc = mode && strcmp(mode, "trunc") == 0, floor = mode && strcmp(mode, "floor") == 0;
    const tni_pointwise_attr rounded = {"div", TNI_PW_PROMOTE, TNI_LAYOUT_OPERANDS, 0,
                                        trunc ? "div_trunc_cpu" : "div_floor_cpu"};
    TN_CHECK(!mode || trunc || floor, TN_INVALID,
             "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'",
             mode);
    const tni_operand operands[2] = {{.tensor = self}, other};
    if (mode)
        TN_TRY(check_dtype(mode, operands));
    tni_iter it;
    TN_TRY(tni_iter_begin(&it, mode ? &rounded : &quotient, operands, 2, given, how));
    tn_status status = TN_OK;
    bool twice = trunc && rounds_first(&it, other) && !tni_is_meta(it.out);
    if (!tni_is_meta(it.out))
        status = mode && !twice ? loops(&it, trunc ? TNI_LOOP_DIV_TRUNC : TNI_LOOP_DIV_FLOOR)
                                : tni_run(&it, TNI_LOOP_DIV, TNI_RUN_EXACT_SECOND, NULL);
    TN_TRY(tni_iter_end(&it, status, out));
    if (!twice)
        return TN_OK;
    status = tn_trunc_(given ? given : *out);
    if (status != TN_OK && !given)
        tn_tensor_unref(TN_MOVE(*out));
    return status;
}

tn_status tni_kernel_div_mode(tn_call *call, tn_tensor *self, tn_tensor *other,
                              const char *rounding_mode, tn_tensor **out)
{
    (void)call;
    return divide(self, (tni_operand){.tensor = other}, rounding_mode, NULL, TNI_ITER_NEW, out);
}

tn_status tni_kernel_div_mode_(tn_call *call, tn_tensor *self, tn_tensor *other,
                               const char *rounding_mode)
{
    (void)call;
    return divide(self, (tni_operand){.tensor = other}, rounding_mode, self, TNI_ITER_INPLACE,
                  NULL);
}

tn_status tni_kernel_div_mode_out(tn_call *call, tn_tensor *self, tn_tensor *other,
                                  const char *rounding_mode, tn_tensor *out)
{
    (void)call;
    return divide(self, (tni_operand){.tensor = other}, rounding_mode, out, TNI_ITER_OUT, NULL);
}

tn_status tni_kernel_div_scalar_mode(tn_call *call, tn_tensor *self, tn_scalar other,
                                     const char *rounding_mode, tn_tensor **out)
{
    (void)call;
    return divide(self, (tni_operand){.scalar = other}, rounding_mode, NULL, TNI_ITER_NEW, out);
}

tn_status tni_kernel_div_scalar_mode_(tn_call *call, tn_tensor *self, tn_scalar other,
                                      const char *rounding_mode)
{
    (void)call;
    return divide(self, (tni_operand){.scalar = other}, rounding_mode, self, TNI_ITER_INPLACE,
                  NULL);
}

tn_status tni_kernel_div_scalar_mode_out(tn_call *call, tn_tensor *self, tn_scalar other,
                                         const char *rounding_mode, tn_tensor *out)
{
    (void)call;
    return divide(self, (tni_operand){.scalar = other}, rounding_mode, out, TNI_ITER_OUT, NULL);
}
