/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_pool_rows.c: pooling where channels are last gives what it gives where they are
 * not, which has outside values (tests/golden). */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

typedef struct window {
    int64_t kernel, stride, padding, to; /* `to` above 0: adaptive */
} window;

static tn_tensor *laid(tn_tensor *t, bool last)
{
    tn_tensor *out = NULL;
    ASSERT_OK(tn_contiguous(t, last ? TN_FORMAT_CHANNELS_LAST : TN_FORMAT_CONTIGUOUS, &out));
    return out;
}

static void expect_same(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *x = laid(a, false), *y = laid(b, false);
    ASSERT(x->numel == y->numel && x->dtype == y->dtype);
    EXPECT(x->numel == 0 || !memcmp(x->data, y->data, (size_t)x->numel * tni_itemsize(x)));
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

/* The result, where the maxima are (or NULL), and the gradient. */
static void pool(bool max, const window *w, tn_tensor *x, tn_tensor **out, bool last)
{
    const int64_t one = 1;
    tn_tensor *g = NULL;
    memset(out, 0, 3 * sizeof *out);
    if (w->to && max)
        ASSERT_OK(tn_adaptive_max_pool2d(x, (int64_t[]){w->to, w->to}, 2, &out[0], &out[1]));
    else if (w->to)
        ASSERT_OK(tn__adaptive_avg_pool2d(x, (int64_t[]){w->to, w->to}, 2, &out[0]));
    else if (max)
        ASSERT_OK(tn_max_pool2d_with_indices(x, &w->kernel, 1, &w->stride, 1, &w->padding, 1, &one,
                                             1, false, &out[0], &out[1]));
    else
        ASSERT_OK(tn_avg_pool2d(x, &w->kernel, 1, &w->stride, 1, &w->padding, 1, true, false,
                                (tn_opt_int){0}, &out[0]));
    ASSERT_OK(tn_mul(out[0], out[0], &g));
    tn_tensor *grad = laid(g, last);
    if (w->to && max)
        ASSERT_OK(tn_adaptive_max_pool2d_backward(grad, x, out[1], &out[2]));
    else if (w->to)
        ASSERT_OK(tn__adaptive_avg_pool2d_backward(grad, x, &out[2]));
    else if (max)
        ASSERT_OK(tn_max_pool2d_with_indices_backward(grad, x, &w->kernel, 1, &w->stride, 1,
                                                      &w->padding, 1, &one, 1, false, out[1],
                                                      &out[2]));
    else
        ASSERT_OK(tn_avg_pool2d_backward(grad, x, &w->kernel, 1, &w->stride, 1, &w->padding, 1,
                                         true, false, (tn_opt_int){0}, &out[2]));
    tn_tensor_unref(g);
    tn_tensor_unref(grad);
}

TEST(pooling_with_channels_last_gives_the_bits_of_planes)
{
    const window windows[] = {{2, 2, 0, 0}, {3, 2, 1, 0}, {3, 1, 1, 0}, {0, 0, 0, 1}, {0, 0, 0, 4}};
    const int64_t channels[] = {2, 7, 16, 63, 64, 65, 130};
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_BF16, TN_DTYPE_F16};
    for (int threads = 1; threads <= 3; threads += 2) {
        ASSERT_OK(tn_set_num_threads(threads));
        for (size_t c = 0; c < 7; c++)
            for (size_t d = 0; d < 3; d++) {
                const int64_t sizes[] = {3, channels[c], 9, 11};
                tn_tensor_opts opts = tn_opts(dtypes[d], TN_CPU);
                tn_tensor *t = NULL;
                tn_manual_seed(5);
                ASSERT_OK(tn_randn(sizes, 4, &opts, &t));
                tn_tensor *last = laid(t, true);
                for (size_t k = 0; k < 5; k++)
                    for (int max = 0; max < 2; max++) {
                        tn_tensor *a[3], *b[3];
                        pool(max, &windows[k], t, a, false);
                        pool(max, &windows[k], last, b, k % 2);
                        for (int i = 0; i < 3; i++) {
                            test_note("channels %lld, window %zu, max %d, result %d",
                                      (long long)channels[c], k, max, i);
                            if (a[i])
                                expect_same(a[i], b[i]);
                            tn_tensor_unref(a[i]);
                            tn_tensor_unref(b[i]);
                        }
                    }
                tn_tensor_unref(t);
                tn_tensor_unref(last);
            }
    }
}

TEST(a_nan_wins_whatever_lies_last)
{
    const int64_t sizes[] = {1, 20, 4, 4}, two = 2, none = 0, one = 1;
    tn_tensor *t = NULL;
    ASSERT_OK(tn_zeros(sizes, 4, NULL, &t));
    ((float *)t->data)[16 * 3 + 5] = NAN; /* channel 3, row 1, column 1 */
    tn_tensor *last = laid(t, true), *out = NULL, *places = NULL;
    ASSERT_OK(tn_max_pool2d_with_indices(last, &two, 1, &two, 1, &none, 1, &one, 1, false, &out,
                                         &places));
    tn_tensor *y = laid(out, false), *p = laid(places, false);
    for (int i = 0; i < 80; i++)
        EXPECT((bool)isnan(((float *)y->data)[i]) == (i == 12));
    EXPECT(((int64_t *)p->data)[12] == 5);
    tn_tensor *all[] = {t, last, out, places, y, p};
    for (size_t i = 0; i < 6; i++)
        tn_tensor_unref(all[i]);
}

/* A kernel of 2 with dilation 3 over a row of 2 elements with one of padding on each side: the
 * window is {-1, 2}. */
TEST(a_window_of_nothing_but_padding_has_no_gradient)
{
    const int64_t sizes[] = {1, 2, 4, 2}, kernel[] = {1, 2}, stride = 1;
    const int64_t padding[] = {0, 1}, dilation[] = {1, 3};
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(sizes, 4, NULL, &t));
    for (int last = 0; last < 2; last++) {
        tn_tensor *x = laid(t, last), *out = NULL, *places = NULL, *grad = NULL, *back = NULL;
        ASSERT_OK(tn_max_pool2d_with_indices(x, kernel, 2, &stride, 1, padding, 2, dilation, 2,
                                             false, &out, &places));
        ASSERT(out->numel == 8);
        ASSERT_OK(tn_ones_like(out, NULL, TN_FORMAT_PRESERVE, &grad));
        tn_status rc = TN_INTERNAL;
        int64_t before = test_live();
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = tn_max_pool2d_with_indices_backward(grad, x, kernel, 2, &stride, 1, padding, 2,
                                                     dilation, 2, false, places, &back);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && !back && test_live() <= before);
        }
        ASSERT_OK(rc);
        for (int i = 0; i < 16; i++)
            EXPECT(((float *)back->data)[i] == 0);
        tn_tensor *all[] = {x, out, places, grad, back};
        for (size_t i = 0; i < 5; i++)
            tn_tensor_unref(all[i]);
    }
    tn_tensor_unref(t);
}
