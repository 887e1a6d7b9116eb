/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_sample.c: samples have the distribution that they are named after, are the same
 * for any number of threads, and meta tensors take none. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

static tn_tensor *empty(int64_t n, tn_dtype dtype, tn_device device)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, device);
    ASSERT_OK(tn_empty(&n, 1, &opts, TN_FORMAT_NONE, &t));
    return t;
}

enum { COINS, WHOLES, EXPONENTIALS, KINDS };

static void fill(tn_tensor *t, int kind)
{
    tn_manual_seed(11);
    if (kind == COINS)
        ASSERT_OK(tn_bernoulli_(t, 0.3, NULL));
    else if (kind == WHOLES)
        ASSERT_OK(tn_random_from_(t, -3, tn_some_int(4), NULL));
    else
        ASSERT_OK(tn_exponential_(t, 2, NULL));
}

TEST(values_depend_neither_on_threads_nor_on_the_instruction_set)
{
    for (int kind = 0; kind < KINDS; kind++) {
        tn_tensor *wanted = empty(100003, TN_DTYPE_F32, TN_CPU);
        tn_tensor *got = empty(100003, TN_DTYPE_F32, TN_CPU);
        ASSERT_OK(tn_set_num_threads(1));
        tni_cpu_use(TNI_ISA_BASE);
        fill(wanted, kind);
        for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
            if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
                continue;
            ASSERT_OK(tn_set_num_threads(3));
            fill(got, kind);
            EXPECT(memcmp(got->data, wanted->data, 100003 * sizeof(float)) == 0);
        }
        tn_tensor_unref(wanted);
        tn_tensor_unref(got);
    }
    tni_cpu_use(TNI_ISA_AVX512);
    ASSERT_OK(tn_set_num_threads(2));
}

TEST(meta_tensors_take_nothing_from_the_generator)
{
    tn_tensor *t = empty(1000, TN_DTYPE_F32, TN_META), *made = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_META);
    tn_manual_seed(5);
    ASSERT_OK(tn_bernoulli_(t, 0.5, NULL));
    ASSERT_OK(tn_random_from_(t, 0, tn_some_int(5), NULL));
    ASSERT_OK(tn_exponential_(t, 1, NULL));
    ASSERT_OK(tn_randperm(50, &opts, &made));
    tn_tensor_unref(made);
    ASSERT_OK(tn_multinomial(t, 3, false, NULL, &made));
    tn_tensor_unref(made);
    ASSERT_OK(tn_dropout(t, 0.5, true, &made));
    tn_tensor_unref(made);
    EXPECT_EQ_INT(tn_generator_get_state(NULL).counter, 0);
    tn_tensor_unref(t);
}

TEST(means_are_those_of_the_distributions)
{
    const double wanted[KINDS] = {0.3, 0.0, 0.5}, deviation[KINDS] = {0.46, 2.0, 0.5};
    const int64_t n = 200000;
    for (int kind = 0; kind < KINDS; kind++) {
        tn_tensor *t = empty(n, TN_DTYPE_F64, TN_CPU);
        fill(t, kind);
        const double *x = t->data;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            sum += x[i];
            EXPECT(kind == COINS ? x[i] == 0 || x[i] == 1 : kind == WHOLES || x[i] >= 0);
            EXPECT(kind != WHOLES || (x[i] >= -3 && x[i] < 4 && x[i] == floor(x[i])));
        }
        EXPECT(fabs(sum / (double)n - wanted[kind]) < 5 * deviation[kind] / sqrt((double)n));
        tn_tensor_unref(t);
    }
}

TEST(a_permutation_has_every_number_once_and_depends_on_the_seed)
{
    tn_tensor *a = NULL, *b = NULL;
    bool seen[1000] = {false}, moved = false;
    tn_manual_seed(1);
    ASSERT_OK(tn_randperm(1000, NULL, &a));
    tn_manual_seed(2);
    ASSERT_OK(tn_randperm(1000, NULL, &b));
    const int64_t *x = a->data, *y = b->data;
    for (int i = 0; i < 1000; i++) {
        EXPECT(x[i] >= 0 && x[i] < 1000 && !seen[x[i]]);
        seen[x[i]] = true;
        moved |= x[i] != y[i];
    }
    EXPECT(moved);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(choices_follow_their_weights)
{
    const double weights[] = {1, 0, 2, 5};
    tn_tensor *p = NULL, *t = NULL;
    int64_t counts[4] = {0};
    ASSERT_OK(tn_tensor_from_data(weights, 1, (int64_t[]){4}, TN_DTYPE_F64, &p));
    tn_manual_seed(9);
    ASSERT_OK(tn_multinomial(p, 80000, true, NULL, &t));
    for (int64_t i = 0; i < 80000; i++)
        counts[((const int64_t *)t->data)[i]]++;
    EXPECT(llabs(counts[0] - 10000) < 500);
    EXPECT_EQ_INT(counts[1], 0);
    EXPECT(llabs(counts[3] - 50000) < 800);
    tn_tensor_unref(t);
    /* Without repeats: which comes first follows the weights, and the one without weight is last.
     */
    int64_t first[4] = {0};
    for (int k = 0; k < 8000; k++) {
        ASSERT_OK(tn_multinomial(p, 4, false, NULL, &t));
        const int64_t *x = t->data;
        first[x[0]]++;
        EXPECT_EQ_INT(x[3], 1);
        EXPECT_EQ_INT((1 << x[0]) | (1 << x[1]) | (1 << x[2]), 13);
        tn_tensor_unref(t);
    }
    EXPECT(llabs(first[0] - 1000) < 180);
    EXPECT(llabs(first[3] - 5000) < 250);
    tn_tensor_unref(p);
}

/* ---- distributions with parameters of their own ---- */

enum { POISSON, BINOMIAL, GAMMA, SHARES };

static tn_tensor *draws(int kind, double a, double b, int64_t n)
{
    tn_tensor *first = empty(n, TN_DTYPE_F64, TN_CPU), *second = empty(n, TN_DTYPE_F64, TN_CPU);
    tn_tensor *made = NULL;
    ASSERT_OK(tn_fill_(first, tn_float(a)));
    ASSERT_OK(tn_fill_(second, tn_float(b)));
    tn_manual_seed(23);
    if (kind == POISSON)
        ASSERT_OK(tn_poisson(first, NULL, &made));
    else if (kind == BINOMIAL)
        ASSERT_OK(tn_binomial(first, second, NULL, &made));
    else
        ASSERT_OK(tn__standard_gamma(first, NULL, &made));
    tn_tensor_unref(first);
    tn_tensor_unref(second);
    return made;
}

TEST(moments_are_those_of_the_parameters)
{
    static const struct {
        int kind;
        double a, b, mean, variance;
    } cases[] = {
        {POISSON, 0.7, 0, 0.7, 0.7},     {POISSON, 9.5, 0, 9.5, 9.5},
        {POISSON, 10.5, 0, 10.5, 10.5},  {POISSON, 1000, 0, 1000, 1000},
        {BINOMIAL, 10, 0.3, 3, 2.1},     {BINOMIAL, 10, 0.8, 8, 1.6},
        {BINOMIAL, 1000, 0.4, 400, 240}, {BINOMIAL, 200, 0.9, 180, 18},
        {GAMMA, 0.2, 0, 0.2, 0.2},       {GAMMA, 1, 0, 1, 1},
        {GAMMA, 30, 0, 30, 30},
    };
    const int64_t n = 100000;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tn_tensor *t = draws(cases[c].kind, cases[c].a, cases[c].b, n);
        const double *x = t->data;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - cases[c].mean) * (x[i] - cases[c].mean);
        test_note("case %zu", c);
        /* Five standard errors; the fourth moment is at most some ten times the squared variance.
         */
        EXPECT_NEAR(sum / (double)n, cases[c].mean, 5 * sqrt(cases[c].variance / (double)n));
        EXPECT_NEAR(squares / (double)n, cases[c].variance,
                    5 * cases[c].variance * sqrt(35 / (double)n));
        tn_tensor_unref(t);
    }
}

TEST(shares_of_small_poisson_and_binomial_numbers_are_right)
{
    const int64_t n = 200000;
    for (int kind = POISSON; kind <= BINOMIAL; kind++) {
        tn_tensor *t = draws(kind, kind == POISSON ? 2 : 4, 0.5, n);
        const double *x = t->data;
        double p = kind == POISSON ? exp(-2) : 0.0625;
        for (int k = 0; k < 5; k++) {
            int64_t count = 0;
            for (int64_t i = 0; i < n; i++)
                count += x[i] == k;
            EXPECT_NEAR((double)count / (double)n, p, 5 * sqrt(p / (double)n));
            p *= kind == POISSON ? 2.0 / (k + 1) : (4.0 - k) / (k + 1);
        }
        tn_tensor_unref(t);
    }
}

TEST(numbers_by_rejection_do_not_depend_on_threads)
{
    for (int kind = POISSON; kind < SHARES; kind++) {
        ASSERT_OK(tn_set_num_threads(1));
        tn_tensor *one = draws(kind, 12, 0.5, 5003);
        ASSERT_OK(tn_set_num_threads(3));
        tn_tensor *three = draws(kind, 12, 0.5, 5003);
        EXPECT(memcmp(one->data, three->data, 5003 * sizeof(double)) == 0);
        tn_tensor_unref(one);
        tn_tensor_unref(three);
    }
    ASSERT_OK(tn_set_num_threads(2));
}
