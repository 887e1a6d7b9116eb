/* SPDX-License-Identifier: MIT */
/* composite/numbers.c: functions of numbers, and questions about them, in terms of other operators.
 */
#include <math.h>
#include "composite/leave.h"
#include "composite/out.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "iter/iter.h"
#include "tenon/ops.h"

#define PI 3.14159265358979323846

static bool is_complex(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

static bool is_floating(const tn_tensor *t)
{
    return tn_dtype_is_floating((tn_dtype)t->dtype);
}

static tn_tensor *as_dtype(tn_tensor *t, tn_dtype dtype)
{
    return tnx_to_dtype(t, dtype, false, false, TN_FORMAT_NONE);
}

/* ---- angles ---- */

tn_status tni_composite_angle(tn_tensor *self, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    if (is_complex(self)) { /* row-major, whatever the layout of self */
        tn_tensor *made = tnx_atan2(tnx_imag(self), tnx_real(self));
        return tni_leave(scope, tnx_contiguous(made, TN_FORMAT_CONTIGUOUS), out);
    }
    tn_tensor *x = is_floating(self) ? self : as_dtype(self, tn_default_dtype());
    /* Each element is replaced, NaN too, so that the gradient is zero everywhere. */
    x = tnx_where_scalarself(tnx_ge_scalar(x, tn_int(0)), tn_float(0), x);
    x = tnx_where_scalarself(tnx_lt_scalar(x, tn_int(0)), tn_float(PI), x);
    return tni_leave(scope, tnx_where_scalarself(tnx_isnan(x), tn_float(NAN), x), out);
}

tn_status tni_composite_deg2rad(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(!is_complex(self), TN_INVALID, "deg2rad is not supported for complex tensors.");
    return tn_mul_scalar(self, tn_float(PI / 180.0), out);
}

tn_status tni_composite_rad2deg(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(!is_complex(self), TN_INVALID, "rad2deg is not supported for complex tensors.");
    return tn_mul_scalar(self, tn_float(180.0 / PI), out);
}

tn_status tni_composite_positive(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "The `+` operator, on a bool tensor is not supported.");
    *out = tn_tensor_ref(self);
    return TN_OK;
}

/* ---- complex numbers ---- */

static tn_status check_parts(const tn_tensor *a, const tn_tensor *b)
{
    const uint64_t known = 1ULL << TN_DTYPE_F16 | 1ULL << TN_DTYPE_F32 | 1ULL << TN_DTYPE_F64;
    TN_CHECK((known >> a->dtype & 1) && (known >> b->dtype & 1), TN_INVALID,
             "Expected both inputs to be Half, Float or Double tensors but got %s and %s",
             tni_dtype_text((tn_dtype)a->dtype), tni_dtype_text((tn_dtype)b->dtype));
    TN_CHECK(a->dtype == b->dtype, TN_INVALID,
             "Expected object of scalar type %s but got scalar type %s for second argument",
             tni_dtype_text((tn_dtype)a->dtype), tni_dtype_text((tn_dtype)b->dtype));
    return TN_OK;
}

/* The dimensions of an elementwise result, slowest first; true when that is their own order. */
static tn_status order_of(tn_tensor *real, tn_tensor *imag, int64_t *order, bool *rows)
{
    TN_AUTO(tn_tensor) like = NULL;
    *rows = (real->flags & imag->flags & TNI_CONTIGUOUS) && real->ndim == imag->ndim;
    for (int d = 0; *rows && d < real->ndim; d++)
        *rows = real->sizes[d] == imag->sizes[d];
    if (*rows)
        return TN_OK;
    TN_TRY(tn_lt(real, imag, &like)); /* the smallest of them, on any device */
    for (int d = 0; d < like->ndim; d++) {
        int at = d;
        for (; at > 0 && like->strides[order[at - 1]] < like->strides[d]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    *rows = like->flags & TNI_CONTIGUOUS;
    return TN_OK;
}

/* Numbers lie in memory as elementwise results do: pairs are made in that order of dimensions. */
static tn_status of_parts(tn_tensor *real, tn_tensor *imag, tn_tensor **out)
{
    tn_tensor *both[2] = {real, imag}, **same;
    int64_t n, order[TN_MAX_DIMS], back[TN_MAX_DIMS];
    bool rows;
    tn_scope *scope;
    TN_TRY(order_of(real, imag, order, &rows));
    TN_TRY(tn_broadcast_tensors(both, 2, &same, &n));
    int ndim = same[0]->ndim;
    tn_status status = tn_scope_enter(&scope);
    if (status == TN_OK) {
        for (int d = 0; d < ndim && !rows; d++)
            back[order[d]] = d;
        for (int i = 0; i < 2; i++)
            both[i] = rows ? same[i] : tnx_permute(same[i], order, ndim);
        tn_tensor *made = tnx_view_as_complex(tnx_stack_tensors(both, 2, -1));
        status = tni_leave(scope, rows ? made : tnx_permute(made, back, ndim), out);
    }
    tn_tensor_list_free(same, n);
    return status;
}

tn_status tni_composite_make_complex(tn_tensor *real, tn_tensor *imag, tn_tensor **out)
{
    TN_TRY(check_parts(real, imag));
    TN_CHECK(real->dtype != TN_DTYPE_F16, TN_UNSUPPORTED,
             "complex() of Half tensors is complex32, which is not implemented");
    return of_parts(real, imag, out);
}

tn_status tni_composite_polar(tn_tensor *abs, tn_tensor *angle, tn_tensor **out)
{
    TN_AUTO(tn_tensor) cosine = NULL;
    TN_AUTO(tn_tensor) sine = NULL;
    TN_AUTO(tn_tensor) real = NULL;
    TN_AUTO(tn_tensor) imag = NULL;
    TN_TRY(check_parts(abs, angle));
    TN_CHECK(abs->dtype != TN_DTYPE_F16, TN_UNSUPPORTED,
             "\"polar_cpu\" not implemented for 'Half'");
    TN_TRY(tn_cos(angle, &cosine));
    TN_TRY(tn_sin(angle, &sine));
    TN_TRY(tn_mul(abs, cosine, &real));
    TN_TRY(tn_mul(abs, sine, &imag));
    return of_parts(real, imag, out);
}

/* ---- powers ---- */

static tn_dtype double_of(bool complex)
{
    return complex ? TN_DTYPE_C128 : TN_DTYPE_F64;
}

tn_status tni_composite_float_power(tn_tensor *self, tn_tensor *exponent, tn_tensor **out)
{
    tn_scope *scope;
    tn_dtype dtype = double_of(is_complex(self) || is_complex(exponent));
    TN_TRY(tn_scope_enter(&scope));
    return tni_leave(scope, tnx_pow(as_dtype(self, dtype), as_dtype(exponent, dtype)), out);
}

tn_status tni_composite_float_power_number(tn_tensor *self, tn_scalar exponent, tn_tensor **out)
{
    tn_scope *scope;
    tn_dtype dtype = double_of(is_complex(self) || exponent.kind == TN_SCALAR_COMPLEX);
    TN_TRY(tn_scope_enter(&scope));
    return tni_leave(scope, tnx_pow_tensor_scalar(as_dtype(self, dtype), exponent), out);
}

static tn_status check_base(const tn_tensor *self, tn_dtype dtype)
{
    TN_CHECK(
        self->dtype == dtype, TN_INVALID,
        "the base given to float_power_ has dtype %s but the operation's result requires dtype "
        "%s",
        tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text(dtype));
    return TN_OK;
}

tn_status tni_composite_float_power_in_place(tn_tensor *self, tn_tensor *exponent)
{
    TN_AUTO(tn_tensor) wide = NULL;
    tn_dtype dtype = double_of(is_complex(self) || is_complex(exponent));
    TN_TRY(check_base(self, dtype));
    TN_TRY(tn_to_dtype(exponent, dtype, false, false, TN_FORMAT_NONE, &wide));
    return tn_pow_(self, wide);
}

tn_status tni_composite_float_power_number_in_place(tn_tensor *self, tn_scalar exponent)
{
    TN_TRY(check_base(self, double_of(is_complex(self) || exponent.kind == TN_SCALAR_COMPLEX)));
    return tn_pow_tensor_scalar_(self, exponent);
}

tn_status tni_composite_float_power_of_number(tn_scalar self, tn_tensor *exponent, tn_tensor **out)
{
    tn_scope *scope;
    tn_dtype dtype = double_of(is_complex(exponent) || self.kind == TN_SCALAR_COMPLEX);
    TN_TRY(tn_scope_enter(&scope));
    return tni_leave(scope, tnx_pow_scalar(self, as_dtype(exponent, dtype)), out);
}

/* Times 2 to whole powers. Shorter numbers in double, where neither the power nor the product can
 * leave the range; double itself in steps, so that a power beyond it does no harm where the result
 * is inside. */
static tn_tensor *times_whole_power(tn_tensor *self, tn_tensor *other)
{
    const tn_scalar least = tn_int(-2200), most = tn_int(2200);
    const tn_scalar down = tn_float(-1000), up = tn_float(1000);
    tn_tensor *x = as_dtype(self, TN_DTYPE_F64);
    tn_tensor *left =
        as_dtype(tnx_clamp(as_dtype(other, TN_DTYPE_I64), &least, &most), TN_DTYPE_F64);
    for (int i = 0; i < (self->dtype == TN_DTYPE_F64 ? 3 : 1); i++) {
        tn_tensor *step = tnx_clamp(left, &down, &up);
        x = tnx_mul(x, tnx_exp2(step));
        left = tnx_sub(left, step, tn_int(1));
    }
    return as_dtype(x, (tn_dtype)self->dtype);
}

/* 2 to a power, which lies as the power does: as one step of pow it would be row-major. */
static tn_tensor *two_to(tn_tensor *power)
{
    return is_complex(power) ? tnx_pow_scalar(tn_float(2.0), power) : tnx_exp2(power);
}

tn_status tni_composite_ldexp(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    tn_scope *scope;
    bool floating = tn_dtype_is_floating((tn_dtype)self->dtype);
    TN_CHECK(!floating || other->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"ldexp_cpu_exp\" not implemented for 'Bool'");
    bool whole = tn_dtype_is_integral((tn_dtype)other->dtype, true);
    TN_TRY(tn_scope_enter(&scope));
    if (whole && floating)
        return tni_leave(scope, times_whole_power(self, other), out);
    if (!whole || !is_complex(self))
        return tni_leave(scope, tnx_mul(self, two_to(other)), out);
    /* The dtype stays, also that of a number beside a tensor of powers. */
    tn_tensor *power = two_to(as_dtype(other, TN_DTYPE_F64));
    return tni_leave(scope, as_dtype(tnx_mul(self, power), (tn_dtype)self->dtype), out);
}

/* The schema names the function's overload, but not that of the in-place form. */
tn_status tni_composite_ldexp_(tn_tensor *self, tn_tensor *other)
{
    TN_AUTO(tn_tensor) old = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_INVALID,
             "ldexp can't be cast to the desired output type %s",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_TRY(tni_inplace_begin(self, &old));
    TN_TRY(tn_ldexp(old, other, &made));
    return tni_inplace_take(made, self);
}

/* Here the tensor comes first. */
tn_status tni_composite_polygamma_(tn_tensor *self, int64_t n)
{
    TN_AUTO(tn_tensor) old = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_inplace_begin(self, &old));
    TN_TRY(tn_polygamma(n, old, &made));
    return tni_inplace_take(made, self);
}

/* ---- infinities ---- */

static tn_status equals(tn_tensor *self, double value, const char *op, tn_tensor **out)
{
    TN_CHECK(!is_complex(self), TN_INVALID, "%s does not support complex inputs.", op);
    /* The layout of the result is that of a function of self alone: a number beside it has no say.
     */
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_isnan(self, &made));
    if (is_floating(self))
        TN_TRY(tn_eq_scalar_out(self, tn_float(value), made));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_composite_isposinf(tn_tensor *self, tn_tensor **out)
{
    return equals(self, (double)INFINITY, "isposinf", out);
}

tn_status tni_composite_isneginf(tn_tensor *self, tn_tensor **out)
{
    return equals(self, -(double)INFINITY, "isneginf", out);
}

tn_status tni_composite_isreal(tn_tensor *self, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *made = NULL;
    if (is_complex(self)) {
        made = tnx_eq_scalar(tnx_imag(self), tn_int(0));
    } else {
        tn_tensor_opts opts = tn_opts(TN_DTYPE_BOOL, self->device);
        made = tnx_ones_like(self, &opts, TN_FORMAT_PRESERVE);
    }
    return tni_leave(scope, made, out);
}

/* ---- distributions ---- */

tn_status tni_composite_special_ndtr(tn_tensor *self, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = tnx_mul_scalar(self, tn_float(-0.70710678118654752440));
    return tni_leave(scope, tnx_mul_scalar(tnx_erfc(x), tn_float(0.5)), out);
}

/* log of pi^(p (p - 1) / 4) times the product over j < p of gamma(x - j / 2). */
tn_status tni_composite_mvlgamma(tn_tensor *self, int64_t p, tn_tensor **out)
{
    tn_scope *scope;
    TN_CHECK(p >= 1, TN_INVALID, "p has to be greater than or equal to 1");
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_INVALID,
             "The input tensor may not be a boolean tensor.");
    TN_CHECK(!is_complex(self), TN_UNSUPPORTED, "\"arange_cpu\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_TRY(tn_scope_enter(&scope));
    /* All terms at once: a p that is too large is refused for its memory, and does not loop. */
    tn_tensor_opts opts = tn_opts(is_floating(self) ? self->dtype : tn_default_dtype(),
                                  (tn_device){TN_DEVICE_NONE, -1});
    tn_tensor *halves = tnx_new_full(self, &p, 1, tn_float(-0.5), &opts);
    tn_tensor *shifts =
        tnx_add_scalar(tnx_cumsum(halves, 0, TN_DTYPE_NONE), tn_float(0.5), tn_int(1));
    const int64_t last = -1;
    tn_tensor *terms = tnx_lgamma(tnx_add(tnx_unsqueeze(self, -1), shifts, tn_int(1)));
    tn_tensor *sum = tnx_sum_dim(terms, &last, 1, false, TN_DTYPE_NONE);
    double constant = (double)p * (double)(p - 1) * 0.25 * log(PI);
    return tni_leave(scope, tnx_add_scalar(sum, tn_float(constant), tn_int(1)), out);
}

/* ---- polynomials of 2 x - 1 ---- */

#define SHIFTED(kind)                                                                          \
    tn_status tni_composite_shifted_##kind(tn_tensor *x, tn_tensor *n, tn_tensor **out)        \
    {                                                                                          \
        tn_scope *scope;                                                                       \
        TN_TRY(tn_scope_enter(&scope));                                                        \
        tn_tensor *y = tnx_sub_scalar(tnx_mul_scalar(x, tn_float(2.0)), tn_int(1), tn_int(1)); \
        return tni_leave(scope, tnx_special_chebyshev_polynomial_##kind(y, n), out);           \
    }
#define SHIFTED_SCALARS(kind)                                                                     \
    tn_status tni_composite_shifted_##kind##_n_scalar(tn_tensor *x, tn_scalar n, tn_tensor **out) \
    {                                                                                             \
        tn_scope *scope;                                                                          \
        TN_TRY(tn_scope_enter(&scope));                                                           \
        tn_tensor *y = tnx_sub_scalar(tnx_mul_scalar(x, tn_float(2.0)), tn_int(1), tn_int(1));    \
        return tni_leave(scope, tnx_special_chebyshev_polynomial_##kind##_n_scalar(y, n), out);   \
    }                                                                                             \
    tn_status tni_composite_shifted_##kind##_x_scalar(tn_scalar x, tn_tensor *n, tn_tensor **out) \
    {                                                                                             \
        return tn_special_chebyshev_polynomial_##kind##_x_scalar(                                 \
            tn_float(2.0 * tn_scalar_to_double(x) - 1.0), n, out);                                \
    }
SHIFTED_SCALARS(t)
SHIFTED_SCALARS(u)
SHIFTED_SCALARS(v)
SHIFTED_SCALARS(w)
SHIFTED(t)
SHIFTED(u)
SHIFTED(v)
SHIFTED(w)

/* ---- questions ---- */

tn_status tni_composite_is_complex(tn_tensor *self, bool *out)
{
    *out = is_complex(self);
    return TN_OK;
}

tn_status tni_composite_is_floating_point(tn_tensor *self, bool *out)
{
    *out = is_floating(self);
    return TN_OK;
}

tn_status tni_composite_is_signed(tn_tensor *self, bool *out)
{
    *out = self->dtype != TN_DTYPE_BOOL && self->dtype != TN_DTYPE_U8 &&
           !(TN_DTYPE_IS_LIMITED(self->dtype) && !is_floating(self));
    return TN_OK;
}

/* Conjugates and negatives are computed at once. */
tn_status tni_composite_is_never(tn_tensor *self, bool *out)
{
    (void)self;
    *out = false;
    return TN_OK;
}

tn_status tni_composite_is_inference(tn_tensor *self, bool *out)
{
    *out = tn_tensor_is_inference(self);
    return TN_OK;
}

tn_status tni_composite_itself(tn_tensor *self, tn_tensor **out)
{
    *out = tn_tensor_ref(self);
    return TN_OK;
}

tn_status tni_composite_is_pinned(tn_tensor *self, tn_device device, bool *out)
{
    (void)self, (void)device;
    *out = false;
    return TN_OK;
}

/* Memory of the CPU is given back by who used it. */
tn_status tni_composite_record_stream(tn_tensor *self, void *s)
{
    (void)self, (void)s;
    return TN_OK;
}

tn_status tni_composite_is_same_size(tn_tensor *self, tn_tensor *other, bool *out)
{
    bool same = self->ndim == other->ndim;
    for (int d = 0; same && d < self->ndim; d++)
        same = self->sizes[d] == other->sizes[d];
    *out = same;
    return TN_OK;
}

tn_status tni_composite_is_nonzero(tn_tensor *self, bool *out)
{
    tn_scalar s;
    TN_CHECK(self->numel != 0, TN_INVALID, "Boolean value of Tensor with no values is ambiguous");
    TN_CHECK(self->numel == 1, TN_INVALID,
             "Boolean value of Tensor with more than one value is ambiguous");
    TN_TRY(tn_item(self, &s));
    *out = s.kind == TN_SCALAR_COMPLEX ? s.v.f != 0 || s.imag != 0
           : s.kind == TN_SCALAR_FLOAT ? s.v.f != 0
                                       : s.v.i != 0;
    return TN_OK;
}

tn_status tni_composite_can_cast(tn_dtype from, tn_dtype to, bool *out)
{
    *out = !(tn_dtype_is_complex(from) && !tn_dtype_is_complex(to)) &&
           !(tn_dtype_is_floating(from) && tn_dtype_is_integral(to, true)) &&
           !(from != TN_DTYPE_BOOL && to == TN_DTYPE_BOOL);
    return TN_OK;
}

tn_status tni_composite_promote_types(tn_dtype type1, tn_dtype type2, tn_dtype *out)
{
    *out = tn_promote_types(type1, type2);
    return *out == TN_DTYPE_NONE ? tni_promotion_refused(type1, type2) : TN_OK;
}

tn_status tni_composite_result_type(tn_tensor *tensor, tn_tensor *other, tn_dtype *out)
{
    const tni_operand in[] = {{.tensor = tensor}, {.tensor = other}};
    *out = tni_result_type(in, 2);
    return *out == TN_DTYPE_NONE ? tni_refuse_promotion(in, 2) : TN_OK;
}

tn_status tni_composite_result_type_scalar(tn_tensor *tensor, tn_scalar other, tn_dtype *out)
{
    const tni_operand in[] = {{.tensor = tensor}, {.scalar = other}};
    *out = tni_result_type(in, 2);
    return *out == TN_DTYPE_NONE ? tni_refuse_promotion(in, 2) : TN_OK;
}

tn_status tni_composite_result_type_scalar_tensor(tn_scalar scalar, tn_tensor *tensor,
                                                  tn_dtype *out)
{
    return tni_composite_result_type_scalar(tensor, scalar, out);
}

tn_status tni_composite_result_type_scalar_scalar(tn_scalar scalar1, tn_scalar scalar2,
                                                  tn_dtype *out)
{
    const tni_operand in[] = {{.scalar = scalar1}, {.scalar = scalar2}};
    *out = tni_result_type(in, 2);
    return *out == TN_DTYPE_NONE ? tni_refuse_promotion(in, 2) : TN_OK;
}
