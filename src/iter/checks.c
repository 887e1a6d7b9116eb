/* SPDX-License-Identifier: MIT */
/* iter/checks.c: what elementwise operators refuse before they are planned, on every backend, in
 * the reference's words. */
#include "gen/shapes.h"
#include "iter/iter.h"

static bool is_complex(const tn_tensor *t)
{
    return t->dtype == TN_DTYPE_C64 || t->dtype == TN_DTYPE_C128;
}

/* ---- alpha ---- */

static TNI_COLD tn_status check_alpha(tn_dtype dtype, tn_scalar alpha)
{
    TN_CHECK(alpha.kind != TN_SCALAR_BOOL || dtype == TN_DTYPE_BOOL, TN_INVALID,
             "Boolean alpha only supported for Boolean results.");
    TN_CHECK(!tn_dtype_is_integral(dtype, true) ||
                 (alpha.kind != TN_SCALAR_FLOAT && alpha.kind != TN_SCALAR_COMPLEX),
             TN_INVALID,
             "For integral input tensors, argument alpha must not be a floating point number.");
    TN_CHECK(tn_dtype_is_complex(dtype) || alpha.kind != TN_SCALAR_COMPLEX, TN_INVALID,
             "For non-complex input tensors, argument alpha must not be a complex number.");
    return tni_check_number(alpha, dtype);
}

static inline bool is_one(tn_scalar s)
{
    return s.kind == TN_SCALAR_INT && s.v.i == 1;
}

tn_status tni_check_add(tn_tensor *self, tn_tensor *other, tn_scalar alpha)
{
    if (TNI_LIKELY(is_one(alpha)))
        return TN_OK;
    tni_operand in[2] = {{.tensor = self}, {.tensor = other}};
    return check_alpha(tni_result_type(in, 2), alpha);
}

tn_status tni_check_add_scalar(tn_tensor *self, tn_scalar other, tn_scalar alpha)
{
    if (TNI_LIKELY(is_one(alpha)))
        return TN_OK;
    tni_operand in[2] = {{.tensor = self}, {.scalar = other}};
    return check_alpha(tni_result_type(in, 2), alpha);
}

static TNI_COLD tn_status no_bools(bool both)
{
    TN_CHECK(
        !both, TN_INVALID,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.");
    TN_FAIL(
        TN_INVALID,
        "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
        "invert a mask, use the `~` or `logical_not()` operator instead.");
}

tn_status tni_check_sub(tn_tensor *self, tn_tensor *other, tn_scalar alpha)
{
    bool a = self->dtype == TN_DTYPE_BOOL, b = other->dtype == TN_DTYPE_BOOL;
    if (TNI_UNLIKELY(a | b))
        return no_bools(a & b);
    return tni_check_add(self, other, alpha);
}

tn_status tni_check_sub_scalar(tn_tensor *self, tn_scalar other, tn_scalar alpha)
{
    bool a = self->dtype == TN_DTYPE_BOOL, b = other.kind == TN_SCALAR_BOOL;
    if (TNI_UNLIKELY(a | b))
        return no_bools(a & b);
    return tni_check_add_scalar(self, other, alpha);
}

/* ---- dtypes without a meaning ---- */

tn_status tni_check_neg(tn_tensor *self)
{
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
             "invert "
             "a mask, use the `~` or `logical_not()` operator instead.");
    return TN_OK;
}

tn_status tni_check_relu(tn_tensor *self)
{
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID, "Boolean inputs not supported for relu");
    TN_CHECK(!is_complex(self), TN_UNSUPPORTED, "clamp is not supported for complex types");
    return TN_OK;
}

tn_status tni_check_abs(tn_tensor *self)
{
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED, "\"abs_cpu\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

tn_status tni_check_maximum(tn_tensor *self, tn_tensor *other)
{
    TN_CHECK(!is_complex(self) && !is_complex(other), TN_INVALID,
             "maximum not implemented for complex tensors.");
    return TN_OK;
}

tn_status tni_check_minimum(tn_tensor *self, tn_tensor *other)
{
    TN_CHECK(!is_complex(self) && !is_complex(other), TN_INVALID,
             "minimum not implemented for complex tensors.");
    return TN_OK;
}

static TNI_COLD tn_status no_order(const char *name, tni_operand self, tni_operand other)
{
    tni_operand in[2] = {self, other};
    TN_TRY(tni_iter_check(in, 2, NULL));
    TN_FAIL(TN_UNSUPPORTED, "\"%s_cpu\" not implemented for '%s'", name,
            tni_dtype_text(tni_result_type(in, 2)));
}

static inline tn_status check_order(const char *name, tn_tensor *self, tn_tensor *other)
{
    if (TNI_LIKELY(!is_complex(self) && !is_complex(other)))
        return TN_OK;
    return no_order(name, (tni_operand){.tensor = self}, (tni_operand){.tensor = other});
}

static inline tn_status check_order_scalar(const char *name, tn_tensor *self, tn_scalar other)
{
    if (TNI_LIKELY(!is_complex(self) && other.kind != TN_SCALAR_COMPLEX))
        return TN_OK;
    return no_order(name, (tni_operand){.tensor = self}, (tni_operand){.scalar = other});
}

tn_status tni_check_lt(tn_tensor *self, tn_tensor *other)
{
    return check_order("lt", self, other);
}
tn_status tni_check_le(tn_tensor *self, tn_tensor *other)
{
    return check_order("le", self, other);
}
tn_status tni_check_gt(tn_tensor *self, tn_tensor *other)
{
    return check_order("gt", self, other);
}
tn_status tni_check_ge(tn_tensor *self, tn_tensor *other)
{
    return check_order("ge", self, other);
}
tn_status tni_check_lt_scalar(tn_tensor *self, tn_scalar other)
{
    return check_order_scalar("lt", self, other);
}
tn_status tni_check_le_scalar(tn_tensor *self, tn_scalar other)
{
    return check_order_scalar("le", self, other);
}
tn_status tni_check_gt_scalar(tn_tensor *self, tn_scalar other)
{
    return check_order_scalar("gt", self, other);
}
tn_status tni_check_ge_scalar(tn_tensor *self, tn_scalar other)
{
    return check_order_scalar("ge", self, other);
}

/* uint8 stands for bool, as it once did. */
tn_status tni_check_where(tn_tensor *condition, tn_tensor *self, tn_tensor *other)
{
    (void)self;
    (void)other;
    TN_CHECK(condition->dtype == TN_DTYPE_BOOL || condition->dtype == TN_DTYPE_U8, TN_INVALID,
             "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
             tni_dtype_text((tn_dtype)condition->dtype));
    return TN_OK;
}

/* A number beside a tensor; what is too large for half a float is infinite. */
static tn_status check_choice(tn_scalar number, tn_tensor *beside)
{
    const tni_operand in[2] = {{.tensor = beside}, {.scalar = number}};
    tn_dtype dtype = tni_result_type(in, 2);
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16 ? TN_OK
                                                           : tni_check_number(number, dtype);
}

tn_status tni_check_where_self(tn_tensor *condition, tn_scalar self, tn_tensor *other)
{
    TN_TRY(tni_check_where(condition, other, other));
    return check_choice(self, other);
}

tn_status tni_check_where_other(tn_tensor *condition, tn_tensor *self, tn_scalar other)
{
    TN_TRY(tni_check_where(condition, self, self));
    return check_choice(other, self);
}

tn_status tni_check_where_numbers(tn_tensor *condition, tn_scalar self, tn_scalar other)
{
    (void)self;
    (void)other;
    return tni_check_where(condition, condition, condition);
}
