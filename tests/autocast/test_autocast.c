/* SPDX-License-Identifier: MIT */
/* Autocast: which calls compute in which dtype, gradients through casts, kept casts. The dtypes are
 * those that PyTorch 2.11 gives on the CPU. */
#include "harness/test.h"

#include "tenon/autocast.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"

static tn_tensor *matrix(tn_dtype dtype, double value)
{
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_full((int64_t[]){2, 2}, 2, tn_float(value), &opts, &t));
    return t;
}

static tn_tensor *parameter(double value)
{
    tn_tensor *t = matrix(TN_DTYPE_F32, value);
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    return t;
}

static tn_autocast_guard enter(bool on, tn_dtype dtype)
{
    tn_autocast_guard guard;
    ASSERT_OK(tn_autocast_enter(TN_DEVICE_CPU, on, dtype, true, &guard));
    return guard;
}

static tn_dtype mm_dtype(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *out = NULL;
    ASSERT_OK(tn_mm(a, b, &out));
    tn_dtype dtype = tn_tensor_dtype(out);
    tn_tensor_unref(out);
    return dtype;
}

TEST(products_compute_in_the_regions_dtype)
{
    tn_tensor *x = matrix(TN_DTYPE_F32, 1), *w = matrix(TN_DTYPE_F32, 2);
    EXPECT_EQ_INT(mm_dtype(x, w), TN_DTYPE_F32);
    tn_autocast_guard outer = enter(true, TN_DTYPE_NONE);
    EXPECT(tn_autocast_enabled(TN_DEVICE_CPU) && !tn_autocast_enabled(TN_DEVICE_CUDA));
    EXPECT_EQ_INT(mm_dtype(x, w), TN_DTYPE_BF16);
    tn_autocast_guard inner = enter(true, TN_DTYPE_F16);
    EXPECT_EQ_INT(mm_dtype(x, w), TN_DTYPE_F16);
    tn_autocast_guard off = enter(false, TN_DTYPE_NONE);
    EXPECT_EQ_INT(mm_dtype(x, w), TN_DTYPE_F32);
    tn_autocast_leave(off);
    EXPECT_EQ_INT(mm_dtype(x, w), TN_DTYPE_F16);
    tn_autocast_leave(inner);
    EXPECT_EQ_INT(mm_dtype(x, w), TN_DTYPE_BF16);
    tn_autocast_leave(outer);
    EXPECT_EQ_INT(mm_dtype(x, w), TN_DTYPE_F32);
    EXPECT_EQ_INT(tn_autocast_nesting(0), 0);
    tn_tensor_unref(x);
    tn_tensor_unref(w);
}

TEST(what_is_not_marked_and_float64_are_left_alone)
{
    tn_tensor *x = matrix(TN_DTYPE_F32, 1), *d = matrix(TN_DTYPE_F64, 1), *out = NULL;
    tn_autocast_guard guard = enter(true, TN_DTYPE_NONE);
    EXPECT_EQ_INT(mm_dtype(d, d), TN_DTYPE_F64);
    ASSERT_OK(tn_add(x, x, tn_int(1), &out));
    EXPECT_EQ_INT(tn_tensor_dtype(out), TN_DTYPE_F32);
    tn_tensor_unref(out);
    tn_autocast_leave(guard);
    tn_tensor_unref(x);
    tn_tensor_unref(d);
}

TEST(losses_compute_in_float32_and_cat_in_the_widest)
{
    tn_tensor *h = matrix(TN_DTYPE_BF16, 1), *x = matrix(TN_DTYPE_F32, 3), *out = NULL;
    tn_autocast_guard guard = enter(true, TN_DTYPE_NONE);
    ASSERT_OK(tn_mse_loss(h, h, 1, &out));
    EXPECT_EQ_INT(tn_tensor_dtype(out), TN_DTYPE_F32);
    tn_tensor_unref(out);
    tn_tensor *both[] = {h, x}, *low[] = {h, h};
    ASSERT_OK(tn_cat(both, 2, 0, &out));
    EXPECT_EQ_INT(tn_tensor_dtype(out), TN_DTYPE_F32);
    tn_tensor_unref(out);
    ASSERT_OK(tn_cat(low, 2, 0, &out));
    EXPECT_EQ_INT(tn_tensor_dtype(out), TN_DTYPE_BF16);
    tn_tensor_unref(out);
    tn_autocast_leave(guard);
    tn_tensor_unref(h);
    tn_tensor_unref(x);
}

/* A composite operator is cast once, as a whole. */
TEST(gradients_come_back_in_the_dtype_of_the_parameter)
{
    tn_tensor *x = matrix(TN_DTYPE_F32, 1), *w = parameter(2), *y = NULL, *sum = NULL;
    tn_autocast_guard guard = enter(true, TN_DTYPE_NONE);
    ASSERT_OK(tn_linear(x, w, NULL, &y));
    EXPECT_EQ_INT(tn_tensor_dtype(y), TN_DTYPE_BF16);
    tn_autocast_leave(guard);
    ASSERT_OK(tn_sum(y, TN_DTYPE_F32, &sum));
    ASSERT_OK(tn_tensor_backward(sum));
    tn_tensor *grad = tn_tensor_grad(w);
    ASSERT(grad);
    EXPECT_EQ_INT(tn_tensor_dtype(grad), TN_DTYPE_F32);
    EXPECT(((const float *)tn_tensor_data(grad))[3] == 2);
    tn_tensor_unref(sum);
    tn_tensor_unref(y);
    tn_tensor_unref(w);
    tn_tensor_unref(x);
}

static uint32_t uses_after_mm(tn_tensor *x, tn_tensor *w)
{
    uint32_t before = tn_tensor_use_count(w);
    tn_tensor *out = NULL;
    ASSERT_OK(tn_mm(x, w, &out));
    tn_tensor_unref(out);
    return tn_tensor_use_count(w) - before;
}

TEST(casts_of_parameters_are_kept_while_they_are_good)
{
    tn_tensor *x = matrix(TN_DTYPE_F32, 1), *w = parameter(2), *out = NULL;
    tn_autocast_guard guard = enter(true, TN_DTYPE_NONE);
    tn_set_grad_enabled(false);
    EXPECT_EQ_INT(uses_after_mm(x, w), 0); /* without recording a cast has no history */
    tn_set_grad_enabled(true);
    EXPECT(uses_after_mm(x, w) > 0);
    EXPECT_EQ_INT(uses_after_mm(x, w), 0);
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_fill_(w, tn_int(5)));
    tn_set_grad_enabled(true);
    ASSERT_OK(tn_mm(x, w, &out)); /* written since: cast again */
    tn_tensor *wide = NULL;
    ASSERT_OK(tn_to_dtype(out, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &wide));
    EXPECT(((const float *)tn_tensor_data(wide))[0] == 10);
    tn_tensor_unref(wide);
    tn_tensor_unref(out);
    tn_autocast_leave(guard);
    EXPECT_EQ_INT(tn_tensor_use_count(w), 1); /* all forgotten */
    ASSERT_OK(tn_autocast_enter(TN_DEVICE_CPU, true, TN_DTYPE_NONE, false, &guard));
    EXPECT_EQ_INT(uses_after_mm(x, w), 0);
    EXPECT(!tn_autocast_cache_enabled());
    tn_autocast_leave(guard);
    EXPECT(tn_autocast_cache_enabled());
    tn_tensor_unref(w);
    tn_tensor_unref(x);
}

/* docs/user/autocast.md: a loss of bfloat16 and float32 has no gradient outside of the region. */
TEST(a_loss_inside_of_the_region_has_gradients)
{
    tn_tensor *x = matrix(TN_DTYPE_F32, 1), *w = parameter(2), *target = matrix(TN_DTYPE_F32, 0);
    tn_tensor *y = NULL, *loss = NULL;
    tn_autocast_guard guard = enter(true, TN_DTYPE_BF16);
    ASSERT_OK(tn_linear(x, w, NULL, &y));
    ASSERT_OK(tn_mse_loss(y, target, 1, &loss));
    tn_autocast_leave(guard);
    ASSERT_OK(tn_tensor_backward(loss));
    EXPECT_EQ_INT(tn_tensor_dtype(tn_tensor_grad(w)), TN_DTYPE_F32);
    EXPECT(((const float *)tn_tensor_data(tn_tensor_grad(w)))[0] == 4);
    tn_tensor_unref(loss);

    ASSERT_OK(tn_mse_loss(y, target, 1, &loss));
    EXPECT_FAIL(TN_INVALID, "Found dtype Float but expected BFloat16", tn_tensor_backward(loss));
    tn_tensor *all[] = {loss, y, target, w, x};
    for (int i = 0; i < 5; i++)
        tn_tensor_unref(all[i]);
}

TEST(other_devices_and_dtypes_are_refused)
{
    tn_autocast_guard guard;
    EXPECT_FAIL(TN_INVALID, "autocast is for the CPU and for CUDA, not for device type 15",
                tn_autocast_enter(TN_DEVICE_META, true, TN_DTYPE_NONE, true, &guard));
    EXPECT_FAIL(TN_INVALID, "autocast computes in float16 or bfloat16, not in int64",
                tn_autocast_enter(TN_DEVICE_CPU, true, TN_DTYPE_I64, true, &guard));
    EXPECT(!tn_autocast_enabled(TN_DEVICE_CPU));
    EXPECT_EQ_INT(tn_autocast_dtype(TN_DEVICE_CPU), TN_DTYPE_BF16);
    EXPECT_EQ_INT(tn_autocast_dtype(TN_DEVICE_CUDA), TN_DTYPE_F16);
    EXPECT_EQ_INT(tn_autocast_dtype(TN_DEVICE_META), TN_DTYPE_NONE);
}

TEST(casting_leaks_nothing_whichever_allocation_fails)
{
    tn_tensor *x = matrix(TN_DTYPE_F32, 1), *w = parameter(2), *both[] = {x, w}, *out = NULL;
    tn_autocast_guard guard = enter(true, TN_DTYPE_F16);
    ASSERT_OK(tn_mm(x, w, &out));
    tn_tensor_unref(out);
    tn_autocast_clear_cache();
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        out = NULL;
        rc = tn_mm(x, w, &out);
        tn_tensor_unref(out);
        out = NULL;
        if (rc == TN_OK)
            rc = tn_cat(both, 2, 0, &out);
        tn_tensor_unref(out);
        tn_autocast_clear_cache();
        EXPECT(tni_test_live <= before);
    }
    tn_autocast_leave(guard);
    tn_tensor_unref(w);
    tn_tensor_unref(x);
}
