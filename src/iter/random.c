/* SPDX-License-Identifier: MIT */
/* iter/random.c: see random.h. */
#include "iter/random.h"

#include <float.h>
#include "iter/iter.h"

static double largest(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_F16:
        return 65504.0;
    case TN_DTYPE_BF16:
        return 0x1.fep+127;
    case TN_DTYPE_F32:
        return (double)FLT_MAX;
    default:
        return DBL_MAX;
    }
}

tn_status tni_check_uniform(const tn_tensor *self, double from, double to)
{
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_UNSUPPORTED,
             "\"check_uniform_bounds\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    tn_dtype dtype = tni_dtype_to_real((tn_dtype)self->dtype);
    double limit = largest(dtype);
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
