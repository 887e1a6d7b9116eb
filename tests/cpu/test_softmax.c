/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_softmax.c: softmax and log_softmax where lines lie side by side or are turned, and
 * their gradients: against sums in long double, whatever the layout, dtype, instruction set and
 * number of threads. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

enum { MOST = 60000 };

typedef struct sample {
    int64_t sizes[4];
    int64_t dim;
    int order[4]; /* of dimensions in memory, slowest first */
} sample;

static const sample samples[] = {
    {{3, 70, 5, 33}, 1, {0, 1, 2, 3}}, /* lines side by side, a strip and a rest of one */
    {{3, 70, 5, 33}, 1, {0, 2, 3, 1}}, /* channels last: lines are rows */
    {{3, 70, 5, 33}, 0, {0, 1, 2, 3}},  {{2, 300, 2, 4}, 1, {0, 1, 2, 3}},
    {{2, 300, 1, 3}, 1, {0, 1, 2, 3}}, /* too few side by side */
    {{3, 7, 5, 129}, 3, {3, 0, 1, 2}}, /* turned */
    {{1, 9, 20, 64}, 3, {0, 1, 2, 3}},  {{1, 9, 20, 64}, 2, {1, 0, 2, 3}},
    {{1, 1, 2, 5000}, 3, {0, 1, 2, 3}}, /* rows too long for a buffer of halves */
    {{1, 1, 5000, 9}, 2, {0, 1, 2, 3}}, {{4, 1, 6, 3}, 1, {0, 1, 2, 3}},
};
enum { SAMPLES = sizeof samples / sizeof samples[0] };

/* Normal numbers in the order of memory that the sample wants. */
static tn_tensor *made(const sample *s, tn_dtype dtype, uint64_t seed)
{
    int64_t sizes[4], back[4];
    tn_tensor *base = NULL, *turned = NULL, *x = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    for (int i = 0; i < 4; i++) {
        sizes[i] = s->sizes[s->order[i]];
        back[s->order[i]] = i;
    }
    tn_manual_seed(seed);
    ASSERT_OK(tn_randn(sizes, 4, &opts, &base));
    ASSERT_OK(tn_to_dtype(base, dtype, false, false, TN_FORMAT_PRESERVE, &turned));
    ASSERT_OK(tn_permute(turned, back, 4, &x));
    tn_tensor_unref(base);
    tn_tensor_unref(turned);
    return x;
}

/* As doubles, in the order of dimensions. */
static void read_all(tn_tensor *t, double *to)
{
    tn_tensor *wide = NULL, *flat = NULL;
    ASSERT_OK(tn_to_dtype(t, TN_DTYPE_F64, false, false, TN_FORMAT_PRESERVE, &wide));
    ASSERT_OK(tn_contiguous(wide, TN_FORMAT_CONTIGUOUS, &flat));
    ASSERT(flat->numel <= MOST);
    memcpy(to, flat->data, (size_t)flat->numel * sizeof *to);
    tn_tensor_unref(wide);
    tn_tensor_unref(flat);
}

typedef struct results {
    double value[MOST], log_value[MOST], slope[MOST], log_slope[MOST];
} results;

static void exact(const sample *s, const double *x, const double *g, results *r)
{
    int64_t n = s->sizes[s->dim], inner = 1, numel = 1;
    for (int64_t d = 0; d < 4; d++) {
        numel *= s->sizes[d];
        inner *= d > s->dim ? s->sizes[d] : 1;
    }
    for (int64_t line = 0; line < numel / n; line++) {
        int64_t first = line / inner * n * inner + line % inner;
        long double sum = 0, dot = 0, total = 0;
        for (int64_t i = 0; i < n; i++)
            sum += expl((long double)x[first + i * inner]);
        for (int64_t i = 0; i < n; i++) {
            int64_t at = first + i * inner;
            long double y = expl((long double)x[at]) / sum;
            r->value[at] = (double)y;
            r->log_value[at] = (double)logl(y);
            dot += y * (long double)g[at];
            total += (long double)g[at];
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t at = first + i * inner;
            long double y = expl((long double)x[at]) / sum;
            r->slope[at] = (double)(((long double)g[at] - dot) * y);
            r->log_slope[at] = (double)((long double)g[at] - y * total);
        }
    }
}

static void expect_close(tn_tensor *t, const double *wanted, double off)
{
    static double got[MOST];
    read_all(t, got);
    for (int64_t i = 0; i < t->numel; i++)
        EXPECT(fabs(got[i] - wanted[i]) <= off * (1 + fabs(wanted[i])));
    tn_tensor_unref(t);
}

static void check(const sample *s, tn_dtype dtype, double off)
{
    static double x[MOST], g[MOST];
    static results r;
    tn_tensor *in = made(s, dtype, 3), *grad = made(s, dtype, 4), *y = NULL, *out = NULL;
    read_all(in, x);
    read_all(grad, g);
    exact(s, x, g, &r);
    ASSERT_OK(tn__softmax(in, s->dim, false, &y));
    ASSERT_OK(tn__softmax_backward_data(grad, y, s->dim, dtype, &out));
    expect_close(out, r.slope, off);
    expect_close(y, r.value, off);
    ASSERT_OK(tn__log_softmax(in, s->dim, false, &y));
    ASSERT_OK(tn__log_softmax_backward_data(grad, y, s->dim, dtype, &out));
    expect_close(out, r.log_slope, off * 4); /* a sum of up to thousands of gradients */
    expect_close(y, r.log_value, off);
    tn_tensor_unref(in);
    tn_tensor_unref(grad);
}

TEST(softmax_and_its_gradient_are_right_in_every_layout_and_dtype)
{
    for (int i = 0; i < SAMPLES; i++) {
        test_note("sample %d", i);
        check(&samples[i], TN_DTYPE_F32, 2e-6);
        check(&samples[i], TN_DTYPE_F64, 1e-14);
        check(&samples[i], TN_DTYPE_F16, 2e-3);
        check(&samples[i], TN_DTYPE_BF16, 2e-2);
    }
}

TEST(lines_side_by_side_depend_neither_on_threads_nor_on_the_instruction_set)
{
    static double first[MOST], other[MOST];
    int before = tn_num_threads();
    for (int i = 0; i < SAMPLES; i++) {
        bool have = false;
        tn_tensor *x = made(&samples[i], TN_DTYPE_F32, 5), *out = NULL;
        for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
            if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
                continue;
            for (int threads = 1; threads <= 3; threads += 2) {
                ASSERT_OK(tn_set_num_threads(threads));
                test_note("sample %d, %s, %d threads", i, tni_isa_name((tni_isa)isa), threads);
                ASSERT_OK(tn__log_softmax(x, samples[i].dim, false, &out));
                read_all(out, have ? other : first);
                if (have)
                    EXPECT(memcmp(first, other, (size_t)x->numel * sizeof *first) == 0);
                have = true;
                tn_tensor_unref(out);
            }
        }
        tn_tensor_unref(x);
    }
    tni_cpu_use(TNI_ISA_AVX512);
    ASSERT_OK(tn_set_num_threads(before));
}

/* A line with a NaN, one of infinities, and their neighbours, which have nothing of it. */
TEST(lines_side_by_side_keep_what_is_not_finite_to_themselves)
{
    const sample s = {{1, 1, 20, 12}, 2, {0, 1, 2, 3}};
    tn_tensor *x = made(&s, TN_DTYPE_F32, 6), *out = NULL;
    float *v = x->data;
    v[7 * 12 + 2] = NAN;
    v[3 * 12 + 5] = INFINITY;
    for (int i = 0; i < 20; i++)
        v[i * 12 + 8] = -INFINITY;
    v[4 * 12 + 9] = -INFINITY;
    ASSERT_OK(tn__softmax(x, 2, false, &out));
    const float *o = out->data;
    for (int c = 0; c < 12; c++) {
        float sum = 0;
        for (int i = 0; i < 20; i++)
            sum += o[i * 12 + c];
        if (c == 2 || c == 5 || c == 8)
            EXPECT(isnan(sum));
        else
            EXPECT_NEAR(sum, 1, 1e-5);
    }
    EXPECT(o[4 * 12 + 9] == 0);
    tn_tensor_unref(x);
    tn_tensor_unref(out);
}

TEST(softmax_of_halves_leaks_nothing_whichever_allocation_fails)
{
    const sample s = {{1, 1, 600, 70}, 2, {0, 1, 2, 3}}; /* its strips do not fit on the stack */
    tn_tensor *x = made(&s, TN_DTYPE_BF16, 7), *out = NULL;
    ASSERT_OK(tn__softmax(x, 2, false, &out));
    tn_tensor_unref(out);
    out = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = test_live();
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn__softmax(x, 2, false, &out);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && out == NULL && test_live() <= before);
    }
    tn_tensor_unref(out);
    EXPECT(test_live() <= before);
    tn_tensor_unref(x);
}
