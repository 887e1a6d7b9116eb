/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_grid_sample.c: many places of several channels, beside the four elements around
 * each, and gradients beside differences. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

#define N      2
#define H      9
#define W      11
#define ROWS   13
#define PLACES (ROWS * 17)

enum { LINEAR, NEAREST, BICUBIC, MODES };

static double random_between(double low, double high)
{
    return low + (high - low) * (double)(test_random() % 100003) / 100002;
}

static tn_tensor *filled(const int64_t *sizes, double low, double high)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_empty(sizes, 4, &opts, TN_FORMAT_CONTIGUOUS, &t));
    for (int64_t i = 0; i < t->numel; i++)
        ((double *)t->data)[i] = random_between(low, high);
    return t;
}

static tn_tensor *as(tn_tensor *t, tn_dtype dtype)
{
    tn_tensor *out = NULL;
    ASSERT_OK(tn_to_dtype(t, dtype, false, true, TN_FORMAT_NONE, &out));
    return out;
}

static tn_tensor *input_of(int64_t channels)
{
    return filled((int64_t[]){N, channels, H, W}, -2, 2);
}

/* Places inside, at the edge and outside. */
static tn_tensor *grid_of(void)
{
    return filled((int64_t[]){N, ROWS, PLACES / ROWS, 2}, -1.3, 1.3);
}

/* What lies at a place: nothing outside. */
static double element(const double *plane, int64_t y, int64_t x)
{
    return y < 0 || y >= H || x < 0 || x >= W ? 0 : plane[y * W + x];
}

static double between(const double *plane, double gx, double gy)
{
    double y = ((gy + 1) * H - 1) / 2, x = ((gx + 1) * W - 1) / 2;
    int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
    double b = y - floor(y), r = x - floor(x);
    return (1 - b) * ((1 - r) * element(plane, top, left) + r * element(plane, top, left + 1)) +
           b * ((1 - r) * element(plane, top + 1, left) + r * element(plane, top + 1, left + 1));
}

TEST(samples_lie_between_the_four_elements_around_a_place)
{
    for (int64_t channels = 1; channels <= 9; channels++)
        for (int wide = 0; wide < 2; wide++) {
            tn_dtype dtype = wide ? TN_DTYPE_F64 : TN_DTYPE_F32;
            tn_tensor *x = input_of(channels), *grid = grid_of(), *out = NULL;
            tn_tensor *own_x = as(x, dtype), *own_grid = as(grid, dtype);
            ASSERT_OK(tn_grid_sampler_2d(own_x, own_grid, LINEAR, 0, false, &out));
            tn_tensor *got = as(out, TN_DTYPE_F64);
            test_note("%d channels", (int)channels);
            for (int64_t i = 0; i < got->numel; i++) {
                int64_t place = i % PLACES, plane = i / PLACES, s = plane / channels;
                const double *g = (const double *)grid->data + (s * PLACES + place) * 2;
                double want = between((const double *)x->data + plane * H * W, g[0], g[1]);
                EXPECT_NEAR(((const double *)got->data)[i], want, wide ? 1e-13 : 2e-5);
            }
            tn_tensor *const used[] = {x, grid, own_x, own_grid, out, got};
            for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
                tn_tensor_unref(used[i]);
        }
}

TEST(samples_do_not_depend_on_threads_or_other_channels)
{
    const int threads = tn_num_threads();
    for (int mode = 0; mode < MODES; mode++)
        for (int padding = 0; padding < 3; padding++) {
            tn_tensor *wide = input_of(7), *x = as(wide, TN_DTYPE_F32), *places = grid_of();
            tn_tensor *grid = as(places, TN_DTYPE_F32), *one = NULL, *many = NULL, *alone = NULL;
            ASSERT_OK(tn_set_num_threads(1));
            ASSERT_OK(tn_grid_sampler_2d(x, grid, mode, padding, true, &one));
            ASSERT_OK(tn_set_num_threads(4));
            ASSERT_OK(tn_grid_sampler_2d(x, grid, mode, padding, true, &many));
            test_note("mode %d, padding %d", mode, padding);
            EXPECT(memcmp(one->data, many->data, (size_t)one->numel * sizeof(float)) == 0);
            for (int64_t c = 0; c < 7; c++) {
                tn_tensor *channel = NULL, *same = NULL;
                bool equal = false;
                ASSERT_OK(tn_narrow(x, 1, c, 1, &channel));
                ASSERT_OK(tn_grid_sampler_2d(channel, grid, mode, padding, true, &alone));
                ASSERT_OK(tn_narrow(one, 1, c, 1, &same));
                ASSERT_OK(tn_equal(alone, same, &equal));
                EXPECT(equal);
                tn_tensor_unref(channel);
                tn_tensor_unref(same);
                tn_tensor_unref(alone);
            }
            tn_tensor *const used[] = {wide, x, places, grid, one, many};
            for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
                tn_tensor_unref(used[i]);
        }
    ASSERT_OK(tn_set_num_threads(threads));
}

TEST(what_is_not_a_number_stays_where_it_is_read)
{
    tn_tensor *x = input_of(5), *grid = grid_of(), *out = NULL;
    ((double *)x->data)[0] = NAN; /* the first corner of the first plane */
    ((double *)x->data)[H * W + 4] = INFINITY;
    ASSERT_OK(tn_grid_sampler_2d(x, grid, LINEAR, 0, false, &out));
    for (int64_t i = 0; i < out->numel; i++) {
        const double *g = (const double *)grid->data + (i / (5 * PLACES) * PLACES + i % PLACES) * 2;
        double px = ((g[0] + 1) * W - 1) / 2, py = ((g[1] + 1) * H - 1) / 2;
        bool first = i < PLACES && fabs(px) < 1 && fabs(py) < 1;
        bool second = i >= PLACES && i < 2 * PLACES && fabs(px - 4) < 1 && fabs(py) < 1;
        EXPECT(isfinite(((const double *)out->data)[i]) == !(first || second));
    }
    tn_tensor *const used[] = {x, grid, out};
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
        tn_tensor_unref(used[i]);
}

static double inner(const tn_tensor *a, const tn_tensor *b)
{
    double sum = 0;
    ASSERT_EQ_INT(a->numel, b->numel);
    for (int64_t i = 0; i < a->numel; i++)
        sum += ((const double *)a->data)[i] * ((const double *)b->data)[i];
    return sum;
}

/* A sampling is linear in its input: <grad, sample(x)> is <gradient for x, x>. For the grid, a
 * difference along some direction. */
TEST(gradients_go_with_samples_in_every_mode)
{
    const bool both[] = {true, true}, grid_alone[] = {false, true};
    for (int mode = 0; mode < MODES; mode++) {
        tn_tensor *x = input_of(6), *grid = grid_of(), *out = NULL, *to_x = NULL, *to_grid = NULL;
        tn_tensor *none = NULL, *again = NULL, *moved = NULL;
        ASSERT_OK(tn_grid_sampler_2d(x, grid, mode, 0, false, &out));
        tn_tensor *grad = filled(out->sizes, -1, 1);
        ASSERT_OK(
            tn_grid_sampler_2d_backward(grad, x, grid, mode, 0, false, both, 2, &to_x, &to_grid));
        test_note("mode %d", mode);
        EXPECT_NEAR(inner(to_x, x), inner(grad, out), 1e-10);
        ASSERT_OK(tn_grid_sampler_2d_backward(grad, x, grid, mode, 0, false, grid_alone, 2, &none,
                                              &again));
        EXPECT(!none);
        EXPECT(memcmp(again->data, to_grid->data, (size_t)again->numel * sizeof(double)) == 0);
        /* One number of the grid after the other; no place is so near to an element that it
         * goes over it, but in the bend of a linear one, where few are left out. */
        const double step = 1e-6;
        int64_t wrong = 0;
        for (int64_t i = 0; i < grid->numel; i += 7) {
            double *at = (double *)grid->data + i, was = *at;
            *at = was + step;
            ASSERT_OK(tn_grid_sampler_2d(x, grid, mode, 0, false, &moved));
            *at = was;
            double slope = (inner(grad, moved) - inner(grad, out)) / step;
            wrong += !(fabs(slope - ((const double *)to_grid->data)[i]) < 1e-2);
            tn_tensor_unref(moved);
        }
        EXPECT(wrong <= 1);
        tn_tensor *const used[] = {x, grid, out, to_x, to_grid, again, grad};
        for (size_t i = 0; i < sizeof used / sizeof used[0]; i++)
            tn_tensor_unref(used[i]);
    }
}
