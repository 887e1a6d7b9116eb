/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_conv.c: convolutions of more than one block against plain loops, their gradients
 * against the definition of a gradient, and that threads change nothing. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

typedef struct shape {
    int64_t batch, in, out, h, w, kh, kw, stride, padding, dilation, groups;
    bool transposed, last;
} shape;

static const shape shapes[] = {
    {2, 40, 21, 17, 19, 3, 3, 1, 1, 1, 1, false, false},
    {1, 70, 33, 9, 7, 3, 3, 1, 1, 1, 1, false, true},
    {2, 6, 10, 40, 37, 5, 4, 2, 2, 1, 2, false, false},
    {2, 6, 10, 40, 37, 5, 4, 2, 2, 1, 2, false, true},
    {1, 12, 9, 23, 21, 3, 3, 1, 2, 3, 3, false, false},
    {3, 33, 18, 11, 13, 1, 1, 2, 0, 1, 1, false, false},
    {3, 33, 18, 11, 13, 1, 1, 2, 0, 1, 3, false, true},
    {2, 16, 24, 12, 12, 1, 1, 3, 0, 1, 1, false, true},
    {3, 64, 65, 11, 13, 1, 1, 1, 0, 1, 1, false, false},
    {3, 64, 65, 11, 13, 1, 1, 1, 0, 1, 1, false, true},
    {2, 24, 24, 20, 35, 3, 3, 1, 1, 1, 24, false, false},
    {2, 24, 48, 20, 35, 5, 3, 3, 1, 2, 24, false, true},
    {2, 20, 30, 13, 9, 4, 4, 2, 1, 1, 1, true, false},
    {2, 20, 30, 13, 9, 4, 4, 2, 1, 1, 1, true, true},
    {1, 12, 12, 9, 9, 3, 2, 3, 0, 2, 12, true, false},
    {1, 8, 6, 9, 9, 2, 2, 3, 0, 1, 2, true, false},
    {1, 16, 300, 6, 5, 3, 3, 1, 1, 1, 1, true, true},
    {2, 24, 24, 20, 35, 3, 3, 1, 1, 1, 24, false, true},
    {3, 37, 37, 13, 9, 3, 3, 2, 1, 1, 37, false, true},
    {1, 70, 70, 15, 14, 7, 7, 1, 3, 1, 70, false, true},
    {1, 16, 16, 12, 11, 2, 3, 1, 0, 2, 16, false, true},
    {1, 12, 12, 9, 9, 3, 2, 3, 0, 2, 12, true, true},
    {2, 40, 40, 8, 7, 4, 4, 2, 1, 1, 40, true, true},
    {1, 9, 9, 5, 6, 2, 2, 3, 0, 1, 9, true, true},
    {9, 13, 7, 4, 5, 4, 5, 2, 0, 1, 1, false, false},
    {9, 13, 1, 4, 5, 4, 5, 1, 0, 1, 1, false, true},
    {8, 12, 6, 3, 3, 3, 3, 1, 0, 1, 2, false, false},
    {9, 13, 7, 1, 1, 4, 5, 2, 0, 1, 1, true, false},
    {9, 13, 7, 1, 1, 4, 5, 1, 0, 1, 1, true, true},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static tn_tensor *random_of(int64_t a, int64_t b, int64_t c, int64_t d, tn_dtype dtype, bool last)
{
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    tn_tensor *t = NULL, *turned = NULL;
    ASSERT_OK(tn_randn((int64_t[]){a, b, c, d}, 4, &opts, &t));
    if (!last)
        return t;
    ASSERT_OK(tn_contiguous(t, TN_FORMAT_CHANNELS_LAST, &turned));
    tn_tensor_unref(t);
    return turned;
}

static double at(const tn_tensor *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t *s = t->strides;
    return ((const double *)t->data)[a * s[0] + b * s[1] + c * s[2] + d * s[3]];
}

/* sum of a * b, both of the same sizes. */
static double dot(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *product = NULL, *sum = NULL;
    ASSERT_OK(tn_mul(a, b, &product));
    ASSERT_OK(tn_sum(product, TN_DTYPE_F64, &sum));
    double value = *(const double *)sum->data;
    tn_tensor_unref(product);
    tn_tensor_unref(sum);
    return value;
}

typedef struct made {
    tn_tensor *x, *w, *b, *y, *g, *dx, *dw, *db;
} made;

static void run(const shape *s, tn_dtype dtype, made *m)
{
    int64_t stride[] = {s->stride}, padding[] = {s->padding}, dilation[] = {s->dilation};
    int64_t more[] = {0}, each = s->groups;
    const bool all[] = {true, true, true};
    tn_manual_seed(11);
    m->x = random_of(s->batch, s->in, s->h, s->w, dtype, s->last);
    m->w = s->transposed ? random_of(s->in, s->out / each, s->kh, s->kw, dtype, false)
                         : random_of(s->out, s->in / each, s->kh, s->kw, dtype, false);
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_randn(&s->out, 1, &opts, &m->b));
    ASSERT_OK(tn_convolution(m->x, m->w, m->b, stride, 1, padding, 1, dilation, 1, s->transposed,
                             more, 1, s->groups, &m->y));
    const int64_t *n = m->y->sizes;
    m->g = random_of(n[0], n[1], n[2], n[3], dtype, s->last);
    ASSERT_OK(tn_convolution_backward(m->g, m->x, m->w, &s->out, 1, stride, 1, padding, 1, dilation,
                                      1, s->transposed, more, 1, s->groups, all, 3, &m->dx, &m->dw,
                                      &m->db));
}

static void drop(made *m)
{
    tn_tensor *all[] = {m->x, m->w, m->b, m->y, m->g, m->dx, m->dw, m->db};
    for (int i = 0; i < 8; i++)
        tn_tensor_unref(all[i]);
    *m = (made){0};
}

/* The result at one place, by the definition. */
static double expected(const shape *s, const made *m, int64_t n, int64_t o, int64_t y, int64_t x)
{
    int64_t in_each = s->in / s->groups, out_each = s->out / s->groups, group = o / out_each;
    double sum = ((const double *)m->b->data)[o];
    for (int64_t i = 0; i < in_each; i++) {
        int64_t c = group * in_each + i;
        for (int64_t ky = 0; ky < s->kh; ky++) {
            for (int64_t kx = 0; kx < s->kw; kx++) {
                int64_t py, px;
                if (s->transposed) {
                    py = y + s->padding - ky * s->dilation;
                    px = x + s->padding - kx * s->dilation;
                    if (py % s->stride || px % s->stride)
                        continue;
                    py /= s->stride;
                    px /= s->stride;
                } else {
                    py = y * s->stride - s->padding + ky * s->dilation;
                    px = x * s->stride - s->padding + kx * s->dilation;
                }
                if (py < 0 || py >= s->h || px < 0 || px >= s->w)
                    continue;
                double w =
                    s->transposed ? at(m->w, c, o % out_each, ky, kx) : at(m->w, o, i, ky, kx);
                sum += w * at(m->x, n, c, py, px);
            }
        }
    }
    return sum;
}

TEST(a_convolution_is_the_sum_over_channels_and_kernel)
{
    for (int i = 0; i < SHAPES; i++) {
        made m = {0};
        run(&shapes[i], TN_DTYPE_F64, &m);
        double worst = 0;
        for (int64_t n = 0; n < m.y->sizes[0]; n++) {
            for (int64_t o = 0; o < m.y->sizes[1]; o++) {
                for (int64_t y = 0; y < m.y->sizes[2]; y++) {
                    for (int64_t x = 0; x < m.y->sizes[3]; x++)
                        worst = fmax(worst, fabs(at(m.y, n, o, y, x) -
                                                 expected(&shapes[i], &m, n, o, y, x)));
                }
            }
        }
        if (!(worst < 1e-11))
            test_note("shape %d", i);
        EXPECT_NEAR(worst, 0, 1e-11);
        drop(&m);
    }
}

TEST(gradients_are_adjoint_to_the_convolution)
{
    /* y is linear in each of x, w and b: <y - b, g> = <x, dx> = <w, dw>, and <b, db> = <b, g>. */
    for (int i = 0; i < SHAPES; i++) {
        made m = {0};
        run(&shapes[i], TN_DTYPE_F64, &m);
        double bias = dot(m.b, m.db), whole = dot(m.y, m.g) - bias;
        double scale = 1e-12 * (fabs(whole) + (double)m.y->numel);
        EXPECT_NEAR(dot(m.x, m.dx), whole, scale);
        EXPECT_NEAR(dot(m.w, m.dw), whole, scale);
        double sum = 0;
        for (int64_t n = 0; n < m.g->sizes[0]; n++) {
            for (int64_t y = 0; y < m.g->sizes[2]; y++) {
                for (int64_t x = 0; x < m.g->sizes[3]; x++)
                    sum += at(m.g, n, 0, y, x);
            }
        }
        EXPECT_NEAR(*(const double *)m.db->data, sum, 1e-10);
        drop(&m);
    }
}

/* Large enough, and float32: by Winograd's algorithm. */
static const shape tiled[] = {
    {2, 20, 24, 33, 31, 3, 3, 1, 1, 1, 1, false, false},
    {1, 17, 19, 40, 39, 3, 3, 1, 0, 1, 1, false, true},
    {3, 16, 40, 18, 18, 3, 3, 1, 2, 1, 1, false, false},
    {2, 24, 16, 20, 22, 3, 3, 1, 1, 1, 1, true, false},
    {16, 18, 16, 5, 7, 3, 3, 1, 0, 1, 1, true, true},
    {20, 32, 36, 7, 7, 3, 3, 1, 1, 1, 1, false, false},
    {20, 33, 32, 7, 7, 3, 3, 1, 1, 1, 1, true, true},
    {5, 64, 67, 31, 29, 3, 3, 2, 1, 1, 1, false, false},
    {7, 66, 64, 28, 28, 3, 3, 2, 1, 1, 1, false, true},
    {4, 65, 96, 40, 37, 3, 3, 2, 0, 1, 1, false, false},
    {4, 64, 64, 37, 38, 3, 3, 2, 2, 1, 1, false, true},
};
enum { TILED = sizeof tiled / sizeof tiled[0], STRIDED = 7 /* the first with strides */ };

static tn_tensor *widened(tn_tensor *t)
{
    tn_tensor *wide = NULL;
    ASSERT_OK(tn_to_dtype(t, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
    return wide;
}

/* The largest difference of two tensors; where one is not finite both are the same. */
static double apart(tn_tensor *narrow, tn_tensor *wide)
{
    tn_tensor *x = widened(narrow), *a = NULL, *b = NULL;
    double worst = 0;
    ASSERT_OK(tn_contiguous(x, TN_FORMAT_CONTIGUOUS, &a));
    ASSERT_OK(tn_contiguous(wide, TN_FORMAT_CONTIGUOUS, &b));
    const double *p = a->data, *q = b->data;
    for (int64_t i = 0; i < a->numel; i++) {
        if (isfinite(q[i]))
            worst = fmax(worst, isfinite(p[i]) ? fabs(p[i] - q[i]) : HUGE_VAL);
        else if (isnan(q[i]) ? !isnan(p[i]) : p[i] != q[i])
            worst = HUGE_VAL;
    }
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    return worst;
}

/* The convolution of what @p m has, in double precision. */
static tn_tensor *exact(const shape *s, const made *m)
{
    int64_t stride[] = {s->stride}, padding[] = {s->padding}, dilation[] = {s->dilation};
    int64_t more[] = {0};
    tn_tensor *x = widened(m->x), *w = widened(m->w), *b = widened(m->b), *y = NULL;
    ASSERT_OK(tn_convolution(x, w, b, stride, 1, padding, 1, dilation, 1, s->transposed, more, 1,
                             s->groups, &y));
    tn_tensor_unref(x);
    tn_tensor_unref(w);
    tn_tensor_unref(b);
    return y;
}

TEST(tiles_give_the_results_of_sums)
{
    for (int i = 0; i < TILED; i++) {
        for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
            made m = {0};
            tni_cpu_use((tni_isa)isa);
            run(&tiled[i], TN_DTYPE_F32, &m);
            tn_tensor *y = exact(&tiled[i], &m);
            EXPECT_NEAR(apart(m.y, y), 0, tiled[i].in < 64 ? 3e-5 : 6e-5);
            double whole = dot(m.y, m.g) - dot(m.b, m.db);
            EXPECT_NEAR(dot(m.x, m.dx), whole, 1e-5 * (double)m.y->numel);
            tn_tensor_unref(y);
            drop(&m);
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
}

/* The tiled shape, with one element of the input changed, of which so many places see it. */
static void check_odd(const shape *s, int64_t at, float odd, int64_t places)
{
    made m = {0};
    tn_tensor *again = NULL;
    run(s, TN_DTYPE_F32, &m);
    ((float *)m.x->data)[at] = odd;
    ASSERT_OK(tn_convolution(m.x, m.w, m.b, (int64_t[]){s->stride}, 1, (int64_t[]){s->padding}, 1,
                             (int64_t[]){1}, 1, false, (int64_t[]){0}, 1, 1, &again));
    int64_t other = 0;
    for (int64_t k = 0; k < again->numel; k++)
        other += !isfinite(((const float *)again->data)[k]);
    if (isfinite(odd)) {
        EXPECT(other <= places * s->out);
    } else {
        tn_tensor *y = exact(s, &m);
        EXPECT_NEAR(apart(again, y), 0, s->in < 64 ? 1e-4 : 3e-4);
        EXPECT_EQ_INT(other, places * s->out);
        tn_tensor_unref(y);
    }
    tn_tensor_unref(again);
    drop(&m);
}

TEST(infinities_and_nan_reach_only_the_places_that_see_them)
{
    const float odd[] = {INFINITY, NAN, -INFINITY, 3e38f};
    for (int i = 0; i < 4; i++) {
        check_odd(&tiled[0], 500, odd[i], 9);
        check_odd(&tiled[STRIDED], 5 * 29 + 7, odd[i], 4); /* odd place, odd line */
        check_odd(&tiled[STRIDED], 5 * 29 + 8, odd[i], 2);
        check_odd(&tiled[STRIDED], 6 * 29 + 8, odd[i], 1);
    }
}

TEST(the_number_of_threads_changes_nothing)
{
    int threads = tn_num_threads();
    for (int i = 0; i < SHAPES + TILED; i++) {
        const shape *s = i < SHAPES ? &shapes[i] : &tiled[i - SHAPES];
        made one = {0}, four = {0};
        ASSERT_OK(tn_set_num_threads(1));
        run(s, TN_DTYPE_F32, &one);
        ASSERT_OK(tn_set_num_threads(4));
        run(s, TN_DTYPE_F32, &four);
        tn_tensor *a[] = {one.y, one.dx, one.dw, one.db},
                  *b[] = {four.y, four.dx, four.dw, four.db};
        for (int k = 0; k < 4; k++)
            EXPECT(memcmp(a[k]->data, b[k]->data, (size_t)a[k]->numel * 4) == 0);
        drop(&one);
        drop(&four);
    }
    ASSERT_OK(tn_set_num_threads(threads));
}

TEST(every_instruction_set_gives_the_same_within_rounding)
{
    for (int i = 0; i < SHAPES; i++) {
        made wide = {0};
        run(&shapes[i], TN_DTYPE_F32, &wide);
        for (int isa = TNI_ISA_BASE; isa < TNI_ISA_AVX512; isa++) {
            made m = {0};
            tni_cpu_use((tni_isa)isa);
            run(&shapes[i], TN_DTYPE_F32, &m);
            tni_cpu_use(TNI_ISA_AVX512);
            tn_tensor *a[] = {wide.y, wide.dx, wide.dw}, *b[] = {m.y, m.dx, m.dw};
            for (int k = 0; k < 3; k++) {
                const float *x = a[k]->data, *y = b[k]->data;
                for (int64_t q = 0; q < a[k]->numel; q++)
                    EXPECT_NEAR((double)x[q], (double)y[q], 1e-3);
            }
            drop(&m);
        }
        drop(&wide);
    }
}
