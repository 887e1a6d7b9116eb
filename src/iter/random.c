/* SPDX-License-Identifier: MIT */
/* iter/random.c: see random.h. */
#include "iter/random.h"

#include "iter/iter.h"
#include "shape/expand.h"
#include "shape/index.h"

tn_status tni_check_uniform(const tn_tensor *self, double from, double to)
{
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_UNSUPPORTED,
             "\"check_uniform_bounds\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    tn_dtype dtype = tni_dtype_to_real((tn_dtype)self->dtype);
    double limit = tni_dtype_largest(dtype);
    TN_CHECK(from >= -limit && from <= limit, TN_INVALID, "from is out of bounds for %s",
             tni_dtype_cpp(dtype));
    TN_CHECK(to >= -limit && to <= limit, TN_INVALID, "to is out of bounds for %s",
             tni_dtype_cpp(dtype));
    TN_CHECK(from <= to, TN_INVALID,
             "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    TN_CHECK(
        to - from <= limit, TN_INVALID,
        "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g "
        "which result in to-from to exceed the limit",
        tni_dtype_text(dtype), to, from);
    return tni_check_internal_overlap(self);
}

tn_status tni_check_normal(const tn_tensor *self, double std)
{
    TN_CHECK(std >= 0, TN_INVALID, "normal expects std >= 0.0, but found std %g", std);
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_UNSUPPORTED,
             "\"normal_kernel_cpu\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    return tni_check_internal_overlap(self);
}

/* ---- bernoulli ---- */

static tn_status check_flips(const tn_tensor *self, const char *loop)
{
    TN_TRY(tni_check_internal_overlap(self));
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", loop, tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

tn_status tni_check_bernoulli(const tn_tensor *self, double p)
{
    TN_CHECK(p >= 0 && p <= 1, TN_INVALID, "bernoulli_ expects p to be in [0, 1], but got p=%g", p);
    return check_flips(self, "bernoulli_scalar_cpu_");
}

tn_status tni_check_bernoulli_tensor(const tn_tensor *self, const tn_tensor *p)
{
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    TN_TRY(tni_same_device(self, p));
    TN_TRY(tni_expand(p, self->ndim, self->sizes, sizes, strides));
    TN_TRY(check_flips(self, "bernoulli_tensor_cpu_self_"));
    TN_CHECK(tn_dtype_is_floating((tn_dtype)p->dtype), TN_UNSUPPORTED,
             "\"bernoulli_tensor_cpu_p_\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)p->dtype));
    return TN_OK;
}

/* ---- exponential ---- */

tn_status tni_check_exponential(const tn_tensor *self, double lambd)
{
    TN_CHECK(lambd > 0, TN_INVALID, "exponential_ expects lambda > 0.0, but found lambda=%g",
             lambd);
    TN_TRY(tni_check_internal_overlap(self));
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_INVALID,
             "Exponential distribution is a continuous probability distribution. dtype must be a "
             "floating point but you specified %s",
             tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

/* ---- whole numbers ---- */

/* The largest and the smallest whole number of a dtype; of a floating one, as far as int64 goes. */
static double most(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_BOOL:
        return 1;
    case TN_DTYPE_U8:
        return UINT8_MAX;
    case TN_DTYPE_I8:
        return INT8_MAX;
    case TN_DTYPE_I16:
        return INT16_MAX;
    case TN_DTYPE_I32:
        return INT32_MAX;
    case TN_DTYPE_U16:
        return UINT16_MAX;
    case TN_DTYPE_U32:
        return UINT32_MAX;
    case TN_DTYPE_I64:
    case TN_DTYPE_U64: /* bounds are int64 */
        return 0x1p63;
    default:
        return tni_dtype_largest(dtype);
    }
}

static double least(tn_dtype dtype)
{
    if (dtype == TN_DTYPE_BOOL || dtype == TN_DTYPE_U8 || dtype == TN_DTYPE_U16 ||
        dtype == TN_DTYPE_U32 || dtype == TN_DTYPE_U64)
        return 0;
    return tn_dtype_is_integral(dtype, false) ? -most(dtype) - (dtype != TN_DTYPE_I64)
                                              : -most(dtype);
}

/* One more than the largest number that random_ gives when nothing is said. */
static uint64_t default_end(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F16:
        return (UINT64_C(1) << 11) + 1;
    case TN_DTYPE_BF16:
        return (UINT64_C(1) << 8) + 1;
    case TN_DTYPE_F32:
        return (UINT64_C(1) << 24) + 1;
    case TN_DTYPE_F64:
        return (UINT64_C(1) << 53) + 1;
    case TN_DTYPE_I64:
    case TN_DTYPE_U64:
        return UINT64_C(1) << 63;
    default:
        return (uint64_t)most(dtype) + 1;
    }
}

tn_status tni_check_random_all(const tn_tensor *self, tni_whole_range *out)
{
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_TRY(tni_check_internal_overlap(self));
    TN_CHECK(!tn_dtype_is_complex(dtype), TN_UNSUPPORTED,
             "\"random_kernel_cpu\" not implemented for '%s'", tni_dtype_text(dtype));
    *out = (tni_whole_range){0, default_end(dtype)};
    return TN_OK;
}

tn_status tni_check_random(const tn_tensor *self, int64_t from, tn_opt_int to, tni_whole_range *out)
{
    tn_dtype dtype = (tn_dtype)self->dtype;
    TN_TRY(tni_check_internal_overlap(self));
    TN_CHECK(!tn_dtype_is_complex(dtype), TN_INVALID,
             "%s handles only integral, floating-point and boolean types",
             to.has ? "check_random_bounds" : "random_from_to_impl");
    TN_CHECK(!to.has || from < to.value, TN_INVALID,
             "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld",
             (long long)from, (long long)to.value);
    TN_CHECK((double)from >= least(dtype) && (double)from <= most(dtype), TN_INVALID,
             "from is out of bounds for %s", tni_dtype_cpp(dtype));
    out->from = from;
    if (to.has) {
        double last = (double)(to.value - 1);
        TN_CHECK(last >= least(dtype) && last <= most(dtype), TN_INVALID,
                 "to - 1 is out of bounds for %s", tni_dtype_cpp(dtype));
        out->range = (uint64_t)to.value - (uint64_t)from;
    } else {
        uint64_t end = dtype == TN_DTYPE_I64 ? UINT64_C(1) << 63 : default_end(dtype);
        out->range = end - (uint64_t)from;
        TN_CHECK(from < 0 || (uint64_t)from < end, TN_INVALID,
                 "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%llu",
                 (long long)from, (unsigned long long)end);
    }
    return TN_OK;
}
