/* SPDX-License-Identifier: MIT */
/* tests/shape/test_number.c: what tn_scalar_check promises. What fits is the reference's rule for
 * filling; the limits are those of C's types. */
#include "harness/test.h"
#include "tenon/dtype.h"

#include <math.h>

TEST(a_number_fits_where_it_is_within_the_limits_of_the_dtype)
{
    EXPECT_OK(tn_scalar_check(tn_int(INT64_MIN), TN_DTYPE_I64));
    EXPECT_OK(tn_scalar_check(tn_int(127), TN_DTYPE_I8));
    EXPECT_OK(tn_scalar_check(tn_float(1.75), TN_DTYPE_I8));
    EXPECT_OK(tn_scalar_check(tn_float(INFINITY), TN_DTYPE_F16));
    EXPECT_OK(tn_scalar_check(tn_complex(2, 0), TN_DTYPE_F32));
    EXPECT_OK(tn_scalar_check(tn_complex(2, 3), TN_DTYPE_C64));
    EXPECT_FAIL(TN_INVALID, "value cannot be converted to type int8_t without overflow",
                tn_scalar_check(tn_int(128), TN_DTYPE_I8));
    EXPECT_FAIL(TN_INVALID, "value cannot be converted to type float without overflow",
                tn_scalar_check(tn_float(1e300), TN_DTYPE_F32));
    EXPECT_FAIL(TN_INVALID, "value cannot be converted to type int64_t without overflow",
                tn_scalar_check(tn_float(NAN), TN_DTYPE_I64));
    EXPECT_FAIL(TN_INVALID, "value cannot be converted to type double without overflow",
                tn_scalar_check(tn_complex(2, 3), TN_DTYPE_F64));
}

TEST(an_unsigned_dtype_takes_the_complement_of_a_negative_integer)
{
    EXPECT_OK(tn_scalar_check(tn_int(-1), TN_DTYPE_U8));
    EXPECT_OK(tn_scalar_check(tn_uint(UINT64_MAX), TN_DTYPE_U64));
    EXPECT_FAIL(TN_INVALID, "type uint8_t", tn_scalar_check(tn_int(-256), TN_DTYPE_U8));
    EXPECT_FAIL(TN_INVALID, "type uint8_t", tn_scalar_check(tn_int(256), TN_DTYPE_U8));
    EXPECT_FAIL(TN_INVALID, "type int64_t", tn_scalar_check(tn_uint(UINT64_MAX), TN_DTYPE_I64));
}

TEST(any_number_fits_bool)
{
    EXPECT_OK(tn_scalar_check(tn_int(1000), TN_DTYPE_BOOL));
    EXPECT_OK(tn_scalar_check(tn_float(NAN), TN_DTYPE_BOOL));
    EXPECT_OK(tn_scalar_check(tn_complex(0, 1), TN_DTYPE_BOOL));
}

TEST(what_is_no_dtype_is_refused)
{
    EXPECT_FAIL(TN_INVALID, "there is no dtype", tn_scalar_check(tn_int(1), TN_DTYPE_NONE));
    EXPECT_FAIL(TN_INVALID, "there is no dtype", tn_scalar_check(tn_int(1), (tn_dtype)1000));
}
