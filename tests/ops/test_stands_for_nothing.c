/* SPDX-License-Identifier: MIT */
/* tests/ops/test_stands_for_nothing.c: arguments of typed functions that C takes for a dtype, a
 * memory format or a scalar, and that are none. */
#include "harness/test.h"
#include "tenon/ops.h"

TEST(numbers_that_stand_for_nothing_are_refused_by_every_operator)
{
    tn_tensor *x, *out = NULL;
    const int64_t size = 3;
    EXPECT_OK(tn_ones(&size, 1, NULL, &x));
    EXPECT_FAIL(TN_TYPE, "aten::sum: argument 'dtype': 55 is not a dtype",
                tn_sum(x, (tn_dtype)55, &out));
    EXPECT_FAIL(TN_TYPE, "-2 is not a dtype", tn_cumsum(x, 0, (tn_dtype)-2, &out));
    EXPECT_FAIL(TN_INVALID, "argument 'memory_format': unsupported memory format option 77",
                tn_contiguous(x, (tn_memory_format)77, &out));
    EXPECT_FAIL(TN_INVALID, "unsupported memory format option -5",
                tn_clone(x, (tn_memory_format)-5, &out));
    tn_scalar odd = tn_int(1);
    odd.kind = 77;
    EXPECT_FAIL(TN_TYPE, "argument 'other'", tn_add_scalar(x, odd, tn_int(1), &out));
    EXPECT_FAIL(TN_TYPE, "is not a kind of scalar", tn_clamp(x, &odd, NULL, &out));
    EXPECT(out == NULL);
    tn_tensor_unref(x);
}
