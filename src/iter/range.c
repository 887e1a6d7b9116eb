/* SPDX-License-Identifier: MIT */
/* iter/range.c: see range.h. */
#include "iter/range.h"

#include <math.h>
#include "iter/iter.h"

static bool is_whole(tn_scalar s)
{
    return s.kind == TN_SCALAR_INT || s.kind == TN_SCALAR_BOOL;
}

tn_dtype tni_range_dtype(tn_scalar start, tn_scalar end, tn_scalar step)
{
    return is_whole(start) && is_whole(end) && is_whole(step) ? TN_DTYPE_I64 : tn_default_dtype();
}

/* ceil((end - start) / step), without rounding when all are whole. */
static double count_of(tn_scalar start, tn_scalar end, tn_scalar step)
{
    int64_t distance;
    if (is_whole(start) && is_whole(end) && is_whole(step) &&
        !__builtin_sub_overflow(end.v.i, start.v.i, &distance))
        /* Distance and step have one sign, or the distance is 0; -1 is apart because the most
         * negative number has no counterpart. */
        return step.v.i == -1 ? -(double)distance
                              : (double)(distance / step.v.i + (distance % step.v.i != 0));
    return ceil((tn_scalar_to_double(end) - tn_scalar_to_double(start)) /
                tn_scalar_to_double(step));
}

static tn_status check_all(tn_scalar start, tn_scalar end, tn_scalar step, tn_dtype dtype)
{
    TN_TRY(tni_check_number(start, dtype));
    TN_TRY(tni_check_number(end, dtype));
    return tni_check_number(step, dtype);
}

tn_status tni_range_check(tn_scalar start, tn_scalar end, tn_scalar step, tn_dtype dtype,
                          tni_range *out)
{
    double from = tn_scalar_to_double(start), to = tn_scalar_to_double(end);
    double by = tn_scalar_to_double(step);
    TN_TRY(check_all(start, end, step, TN_DTYPE_F64)); /* complex numbers are refused here */
    bool integral = tn_dtype_is_integral(dtype, false);
    TN_CHECK(dtype != TN_DTYPE_BOOL && !tn_dtype_is_complex(dtype), TN_UNSUPPORTED,
             "\"arange_cpu\" not implemented for '%s'", tni_dtype_text(dtype));
    /* For an integer dtype a step that truncates to 0 would never arrive either. */
    TN_CHECK(by != 0 && !isnan(by) && !(integral && fabs(by) < 1), TN_INVALID,
             "step must be nonzero");
    TN_CHECK(isfinite(from) && isfinite(to), TN_INVALID, "unsupported range: %g -> %g", from, to);
    TN_CHECK((by > 0 && to >= from) || (by < 0 && to <= from), TN_INVALID,
             "upper bound and lower bound inconsistent with step sign");
    if (dtype == TN_DTYPE_I64) { /* the reference truncates first; narrower integers later */
        TN_TRY(check_all(start, end, step, dtype));
        start = tn_int(tn_scalar_to_int(start));
        end = tn_int(tn_scalar_to_int(end));
        step = tn_int(tn_scalar_to_int(step));
    }
    double n = count_of(start, end, step);
    TN_CHECK(n >= 0 && n <= 9007199254740992.0, TN_INVALID, "invalid size, possible overflow?");
    /* What the elements are computed in. */
    if (integral || dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16)
        TN_TRY(check_all(start, end, step, integral ? TN_DTYPE_I64 : TN_DTYPE_F32));
    out->n = (int64_t)n;
    out->start_int = tn_scalar_to_int(start);
    out->step_int = tn_scalar_to_int(step);
    out->start = from;
    out->step = by;
    return TN_OK;
}
