/* SPDX-License-Identifier: MIT */
/* tests/shape/test_linalg.c: what the reference does not check, or not everywhere: devices that do
 * not go together, on every operator and in either order. */
#include "harness/test.h"
#include "tenon/ops.h"

static tn_tensor *make(int ndim, const int64_t *sizes, tn_device device)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    ASSERT_OK(tn_ones(sizes, ndim, &opts, &t));
    return t;
}

#define REFUSED(name, device, others, op, expression)                                           \
    EXPECT_FAIL(TN_INVALID,                                                                     \
                "Expected all tensors to be on the same device, but got " name " is on " device \
                ", different from other tensors on " others                                     \
                " (when checking argument in method wrapper_" op ")",                           \
                expression)

TEST(products_of_tensors_on_different_devices_are_refused)
{
    const int64_t square[] = {2, 2, 2};
    tn_tensor *out = NULL, *m[2], *b[2], *v[2];
    for (int i = 0; i < 2; i++) {
        tn_device device = i ? TN_META : TN_CPU;
        m[i] = make(2, square, device);
        b[i] = make(3, square, device);
        v[i] = make(1, square, device);
    }
    const tn_scalar one = tn_int(1);
    REFUSED("mat2", "meta", "cpu", "mm", tn_mm(m[0], m[1], &out));
    REFUSED("mat2", "cpu", "meta", "mm", tn_mm(m[1], m[0], &out));
    REFUSED("mat2", "cpu", "meta", "bmm", tn_bmm(b[1], b[0], &out));
    REFUSED("vec", "cpu", "meta", "mv", tn_mv(m[1], v[0], &out));
    REFUSED("tensor", "meta", "cpu", "dot", tn_dot(v[0], v[1], &out));
    REFUSED("mat1", "meta", "cpu", "addmm", tn_addmm(m[0], m[1], m[0], one, one, &out));
    REFUSED("mat2", "meta", "cpu", "addmm", tn_addmm(m[0], m[0], m[1], one, one, &out));
    REFUSED("mat1", "cpu", "meta", "addmm", tn_addmm(m[1], m[0], m[0], one, one, &out));
    REFUSED("batch1", "meta", "cpu", "baddbmm", tn_baddbmm(b[0], b[1], b[0], one, one, &out));
    REFUSED("vec", "meta", "cpu", "addmv", tn_addmv(v[0], m[0], v[1], one, one, &out));
    REFUSED("mat2", "cpu", "meta", "mm", tn_matmul(b[1], m[0], &out));
    REFUSED("mat2", "cpu", "meta", "addmm", tn_linear(m[1], m[0], v[1], &out));
    EXPECT_FAIL(TN_INVALID, "Expected out tensor to have device cpu, but got meta instead",
                tn_mm_out(m[0], m[0], m[1]));
    EXPECT(out == NULL);
    for (int i = 0; i < 2; i++) {
        tn_tensor_unref(m[i]);
        tn_tensor_unref(b[i]);
        tn_tensor_unref(v[i]);
    }
}

TEST(a_factor_must_fit_the_dtype)
{
    const int64_t sizes[] = {2, 2};
    tn_tensor *bytes = NULL, *longs = NULL, *out = NULL;
    tn_tensor_opts u8 = tn_opts(TN_DTYPE_U8, TN_META), i64 = tn_opts(TN_DTYPE_I64, TN_META);
    ASSERT_OK(tn_ones(sizes, 2, &u8, &bytes));
    ASSERT_OK(tn_ones(sizes, 2, &i64, &longs));
    const tn_scalar one = tn_int(1);
    EXPECT_FAIL(TN_INVALID, "value cannot be converted to type uint8_t without overflow",
                tn_addmm(bytes, bytes, bytes, one, tn_int(256), &out));
    EXPECT_FAIL(TN_INVALID, "value cannot be converted to type int64_t without overflow",
                tn_addmm(longs, longs, longs, tn_float(1e19), one, &out));
    EXPECT_FAIL(TN_INVALID, "value cannot be converted to type int64_t without overflow",
                tn_addmm(longs, longs, longs, tn_complex(1, 1), one, &out));
    EXPECT(out == NULL);
    EXPECT_OK(tn_addmm(bytes, bytes, bytes, one, tn_int(-1), &out));
    tn_tensor_unref(out);
    tn_tensor_unref(bytes);
    tn_tensor_unref(longs);
}
