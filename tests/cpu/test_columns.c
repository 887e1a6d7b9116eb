/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_columns.c: windows as columns, and columns as planes, element by element as they
 * are defined, for windows that lie inside, over an edge and outside. */
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

#define H 6
#define W 7

typedef struct windows {
    int64_t kernel[2], dilation[2], padding[2], stride[2];
    int64_t places[2]; /* of windows */
} windows;

/* The next of many windows; false when they do not fit. */
static bool choose(windows *w)
{
    const int64_t sizes[2] = {H, W};
    bool fits = true;
    for (int d = 0; d < 2; d++) {
        w->kernel[d] = 1 + (int64_t)(test_random() % 4);
        w->dilation[d] = 1 + (int64_t)(test_random() % 3);
        w->padding[d] = (int64_t)(test_random() % 9);
        w->stride[d] = 1 + (int64_t)(test_random() % 4);
        int64_t room = sizes[d] + 2 * w->padding[d] - w->dilation[d] * (w->kernel[d] - 1) - 1;
        w->places[d] = room / w->stride[d] + 1;
        fits = fits && room >= 0;
    }
    return fits;
}

/* Where element @p i of the columns of a plane lies in it, or -1. */
static int64_t source(const windows *w, int64_t i)
{
    int64_t x = i % w->places[1], y = i / w->places[1] % w->places[0];
    int64_t tap = i / w->places[1] / w->places[0];
    int64_t row = y * w->stride[0] - w->padding[0] + tap / w->kernel[1] * w->dilation[0];
    int64_t column = x * w->stride[1] - w->padding[1] + tap % w->kernel[1] * w->dilation[1];
    return row < 0 || row >= H || column < 0 || column >= W ? -1 : row * W + column;
}

/* 1, 2, … of @p sizes and @p dtype; every number has few digits. */
static tn_tensor *counted(const int64_t *sizes, int ndim, tn_dtype dtype)
{
    tn_tensor *t = NULL, *own = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_empty(sizes, ndim, &opts, TN_FORMAT_CONTIGUOUS, &t));
    for (int64_t i = 0; i < t->numel; i++)
        ((double *)t->data)[i] = (double)(i % 13 + 1);
    ASSERT_OK(tn_to_dtype(t, dtype, false, true, TN_FORMAT_NONE, &own));
    tn_tensor_unref(t);
    return own;
}

/* As real numbers of float64. */
static tn_tensor *numbers(tn_tensor *t)
{
    tn_tensor *wide = NULL, *out = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_C128, TN_CPU);
    ASSERT_OK(tn_empty(t->sizes, t->ndim, &opts, TN_FORMAT_CONTIGUOUS, &wide));
    ASSERT_OK(tn_copy_(wide, t, false));
    ASSERT_OK(tn_real(wide, &out));
    tn_tensor_unref(wide);
    ASSERT_OK(tn_clone(out, TN_FORMAT_CONTIGUOUS, &wide));
    tn_tensor_unref(out);
    return wide;
}

static const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_BF16, TN_DTYPE_C64,
                                  TN_DTYPE_C128};

TEST(columns_are_the_elements_of_windows_and_zeros_outside)
{
    for (int round = 0; round < 400; round++) {
        windows w;
        tn_tensor *columns = NULL;
        if (!choose(&w))
            continue;
        tn_dtype dtype = dtypes[round % 5];
        tn_tensor *x = counted((int64_t[]){2, 3, H, W}, 4, dtype);
        ASSERT_OK(tn_im2col(x, w.kernel, 2, w.dilation, 2, w.padding, 2, w.stride, 2, &columns));
        int64_t each = w.kernel[0] * w.kernel[1] * w.places[0] * w.places[1];
        ASSERT_EQ_INT(columns->numel, 6 * each);
        tn_tensor *got = numbers(columns), *from = numbers(x);
        test_note("round %d", round);
        for (int64_t i = 0; i < 6 * each; i++) {
            int64_t at = source(&w, i % each);
            double want = at < 0 ? 0 : ((const double *)from->data)[i / each * H * W + at];
            EXPECT_NEAR(((const double *)got->data)[i], want, 0);
        }
        tn_tensor *const used[] = {x, columns, got, from};
        for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
            tn_tensor_unref(used[i]);
    }
}

TEST(planes_are_the_sums_of_what_columns_have_for_each_place)
{
    for (int round = 0; round < 400; round++) {
        windows w;
        double want[6 * H * W] = {0};
        tn_tensor *x = NULL;
        if (!choose(&w))
            continue;
        tn_dtype dtype = dtypes[round % 2]; /* sums that are exact */
        int64_t taps = w.kernel[0] * w.kernel[1], each = taps * w.places[0] * w.places[1];
        tn_tensor *columns = counted((int64_t[]){2, 3 * taps, w.places[0] * w.places[1]}, 3, dtype);
        ASSERT_OK(tn_col2im(columns, (int64_t[]){H, W}, 2, w.kernel, 2, w.dilation, 2, w.padding, 2,
                            w.stride, 2, &x));
        tn_tensor *got = numbers(x), *from = numbers(columns);
        test_note("round %d", round);
        for (int64_t i = 0; i < 6 * each; i++) {
            int64_t at = source(&w, i % each);
            if (at >= 0)
                want[i / each * H * W + at] += ((const double *)from->data)[i];
        }
        ASSERT_EQ_INT(got->numel, 6 * H * W);
        for (int64_t i = 0; i < 6 * H * W; i++)
            EXPECT_NEAR(((const double *)got->data)[i], want[i], 0);
        tn_tensor *const used[] = {x, columns, got, from};
        for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
            tn_tensor_unref(used[i]);
    }
}
