/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_random.c: random fills are a function of seed, counter and index alone, and have
 * the distribution that they are named after. */
#include <math.h>
#include <string.h>
#include "core/philox.h"
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

static tn_tensor *empty(int64_t n, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_empty(&n, 1, &opts, TN_FORMAT_NONE, &t));
    return t;
}

TEST(words_are_the_blocks_of_philox)
{
    const int64_t counts[] = {1, 7, 16, 33};
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        for (int c = 0; c < 4; c++) {
            uint32_t w[33 * 4 + 1];
            uint64_t seed = UINT64_C(0x123456789abcdef0), first = UINT64_C(0xfffffffe);
            w[4 * counts[c]] = 42;
            tni_cpu_kernels()->random->words(w, seed, first, counts[c]);
            for (int64_t i = 0; i < counts[c]; i++) {
                tni_philox_block b = tni_philox(seed, first + (uint64_t)i, 0);
                EXPECT(memcmp(b.word, w + 4 * i, sizeof b.word) == 0);
            }
            EXPECT_EQ_INT(w[4 * counts[c]], 42);
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
}

static void fill(tn_tensor *t, bool normal)
{
    tn_manual_seed(3);
    if (normal)
        ASSERT_OK(tn_normal_(t, 1, 2, NULL));
    else
        ASSERT_OK(tn_uniform_(t, -1, 3, NULL));
}

TEST(values_depend_neither_on_threads_nor_on_the_instruction_set)
{
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_F16, TN_DTYPE_BF16,
                               TN_DTYPE_C64};
    for (int d = 0; d < 5; d++)
        for (int normal = 0; normal < 2; normal++) {
            tn_tensor *wanted = empty(100001, dtypes[d]), *got = empty(100001, dtypes[d]);
            ASSERT_OK(tn_set_num_threads(1));
            tni_cpu_use(TNI_ISA_BASE);
            fill(wanted, normal);
            for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
                if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
                    continue;
                ASSERT_OK(tn_set_num_threads(3));
                fill(got, normal);
                test_note("%s, normal %d, %s", tn_dtype_name(dtypes[d]), normal,
                          tni_isa_name((tni_isa)isa));
                EXPECT(memcmp(wanted->data, got->data, tn_tensor_nbytes(got)) == 0);
            }
            tn_tensor_unref(wanted);
            tn_tensor_unref(got);
        }
}

TEST(strided_tensors_get_the_values_of_contiguous_ones)
{
    const int64_t sizes[] = {37, 53};
    for (int normal = 0; normal < 2; normal++) {
        tn_tensor *flat = empty(37 * 53, TN_DTYPE_F32), *rows = NULL, *cols = NULL, *back = NULL;
        ASSERT_OK(tn_view(flat, sizes, 2, &rows));
        tn_tensor *other = empty(37 * 53, TN_DTYPE_F32);
        const int64_t strides[] = {1, 37};
        ASSERT_OK(tn_as_strided(other, sizes, 2, strides, 2, tn_no_int(), &cols));
        fill(rows, normal);
        fill(cols, normal);
        ASSERT_OK(tn_contiguous(cols, TN_FORMAT_CONTIGUOUS, &back));
        EXPECT(memcmp(flat->data, back->data, tn_tensor_nbytes(flat)) == 0);
        tn_tensor_unref(flat);
        tn_tensor_unref(rows);
        tn_tensor_unref(cols);
        tn_tensor_unref(back);
        tn_tensor_unref(other);
    }
}

TEST(a_tensor_takes_as_many_blocks_as_it_has_elements)
{
    static const struct {
        tn_dtype dtype;
        int64_t n;
        uint64_t blocks;
    } cases[] = {
        {TN_DTYPE_F32, 9, 3}, {TN_DTYPE_F64, 9, 5}, {TN_DTYPE_C64, 9, 5}, {TN_DTYPE_F32, 0, 0}};
    for (size_t i = 0; i < 4; i++) {
        tn_tensor *t = empty(cases[i].n, cases[i].dtype);
        tn_manual_seed(3);
        ASSERT_OK(tn_uniform_(t, 0, 1, NULL));
        EXPECT_EQ_INT(tn_generator_get_state(NULL).counter, cases[i].blocks);
        tn_tensor_unref(t);
    }
}

TEST(meta_tensors_and_refusals_take_nothing_from_the_generator)
{
    const int64_t n = 8;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_META);
    tn_tensor *meta = NULL, *cpu = empty(8, TN_DTYPE_F32), *whole = empty(8, TN_DTYPE_I64);
    tn_manual_seed(3);
    ASSERT_OK(tn_randn(&n, 1, &opts, &meta));
    ASSERT_OK(tn_uniform_(meta, 0, 1, NULL));
    EXPECT_FAIL(TN_INVALID, "from=2 > to=1", tn_uniform_(cpu, 2, 1, NULL));
    EXPECT_FAIL(TN_INVALID, "std -1", tn_normal_(cpu, 0, -1, NULL));
    EXPECT_FAIL(TN_UNSUPPORTED, "not implemented for 'Long'", tn_normal_(whole, 0, 1, NULL));
    EXPECT_EQ_INT(tn_generator_get_state(NULL).counter, 0);
    tn_tensor_unref(meta);
    tn_tensor_unref(cpu);
    tn_tensor_unref(whole);
}

TEST(uniform_numbers_fill_the_range_and_stay_below_its_end)
{
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_F16, TN_DTYPE_BF16};
    const double ranges[][2] = {{0, 1}, {-1, 3}, {1, 1.0078125}, {0, 0}, {100, 101}};
    for (int d = 0; d < 4; d++)
        for (int r = 0; r < 5; r++) {
            tn_tensor *t = empty(60000, dtypes[d]), *wide = NULL;
            double low = ranges[r][0], high = ranges[r][1], sum = 0, most = -INFINITY;
            tn_manual_seed(11);
            ASSERT_OK(tn_uniform_(t, low, high, NULL));
            ASSERT_OK(tn_to_dtype(t, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
            const double *x = wide->data;
            bool inside = true;
            for (int64_t i = 0; i < 60000; i++) {
                inside &= x[i] >= low && (x[i] < high || low == high || d >= 2);
                most = x[i] > most ? x[i] : most;
                sum += x[i];
            }
            test_note("%s [%g, %g)", tn_dtype_name(dtypes[d]), low, high);
            EXPECT(inside);
            EXPECT_NEAR(sum / 60000, (low + high) / 2, (high - low) * 0.01 + (d >= 2 ? 0.5 : 0));
            EXPECT(most <= high);
            tn_tensor_unref(t);
            tn_tensor_unref(wide);
        }
}

TEST(normal_numbers_have_their_moments)
{
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64};
    for (int d = 0; d < 2; d++) {
        tn_tensor *t = empty(400000, dtypes[d]), *wide = NULL;
        double m[4] = {0};
        tn_manual_seed(5);
        ASSERT_OK(tn_normal_(t, 1, 2, NULL));
        ASSERT_OK(tn_to_dtype(t, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
        for (int64_t i = 0; i < 400000; i++) {
            double z = (((double *)wide->data)[i] - 1) / 2;
            m[0] += z / 400000;
            m[1] += z * z / 400000;
            m[2] += z * z * z / 400000;
            m[3] += z * z * z * z / 400000;
        }
        EXPECT_NEAR(m[0], 0, 0.01);
        EXPECT_NEAR(m[1], 1, 0.01);
        EXPECT_NEAR(m[2], 0, 0.03);
        EXPECT_NEAR(m[3], 3, 0.06);
        tn_tensor_unref(t);
        tn_tensor_unref(wide);
    }
}
