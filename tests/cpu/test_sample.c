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
