/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_select.c: slices at places that an index says, where the result is so large that
 * it is written past the caches, or nearly so: right for rows of any length, and for any number of
 * threads. */
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

enum { ROWS = 300 };

static tn_tensor *made(int ndim, const int64_t *sizes, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_empty(sizes, ndim, &opts, TN_FORMAT_NONE, &t));
    return t;
}

/* Rows of which no two are alike. */
static tn_tensor *numbered(int64_t width)
{
    tn_tensor *t = made(2, (const int64_t[]){ROWS, width}, TN_DTYPE_F32);
    float *x = t->data;
    for (int64_t i = 0; i < ROWS * width; i++)
        x[i] = (float)i;
    return t;
}

static bool are_rows(const tn_tensor *out, const tn_tensor *table, const tn_tensor *index,
                     int64_t width)
{
    const float *o = out->data, *x = table->data;
    const int64_t *at = index->data;
    for (int64_t i = 0; i < index->numel; i++) {
        if (memcmp(o + i * width, x + at[i] * width, (size_t)width * sizeof *o) != 0)
            return false;
    }
    return true;
}

/* Widths that are whole lines, that are none, that are a few bytes, and that are many; results that
 * some processors keep in their last cache, and that none does. */
TEST(large_selections_are_right_for_rows_of_any_length)
{
    static const int64_t widths[] = {768, 1001, 67, 5000, 1001}, megabytes[] = {9, 9, 9, 9, 34};
    int threads = tn_num_threads();
    for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
        const int64_t width = widths[w], n = (megabytes[w] << 20) / (width * 4);
        tn_tensor *table = numbered(width), *index = made(1, &n, TN_DTYPE_I64);
        int64_t *at = index->data;
        for (int64_t i = 0; i < n; i++)
            at[i] = (int64_t)(test_random() % ROWS);
        for (int t = 1; t <= 3; t++) {
            tn_tensor *selected = NULL, *embedded = NULL;
            test_note("width %lld, %d threads", (long long)width, t);
            ASSERT_OK(tn_set_num_threads(t));
            ASSERT_OK(tn_index_select(table, 0, index, &selected));
            ASSERT_OK(tn_embedding(table, index, -1, false, false, &embedded));
            EXPECT(are_rows(selected, table, index, width));
            EXPECT(are_rows(embedded, table, index, width));
            tn_tensor_unref(selected);
            tn_tensor_unref(embedded);
        }
        tn_tensor_unref(table);
        tn_tensor_unref(index);
    }
    ASSERT_OK(tn_set_num_threads(threads));
}

/* Along the last but one of three dimensions: there are runs inside of runs. */
TEST(large_selections_inside_of_a_tensor_are_right)
{
    const int64_t n = 700, width = 200;
    tn_tensor *x = made(3, (const int64_t[]){16, ROWS, width}, TN_DTYPE_F32);
    tn_tensor *index = made(1, &n, TN_DTYPE_I64), *out = NULL;
    float *value = x->data;
    int64_t *at = index->data;
    for (int64_t i = 0; i < x->numel; i++)
        value[i] = (float)i;
    for (int64_t i = 0; i < n; i++)
        at[i] = (int64_t)(test_random() % ROWS);
    ASSERT_OK(tn_index_select(x, 1, index, &out));
    const float *o = out->data;
    for (int64_t k = 0; k < 16; k++) {
        for (int64_t i = 0; i < n; i++)
            EXPECT(memcmp(o + (k * n + i) * width, value + (k * ROWS + at[i]) * width,
                          (size_t)width * sizeof *o) == 0);
    }
    tn_tensor_unref(out);
    tn_tensor_unref(x);
    tn_tensor_unref(index);
}

TEST(a_mask_of_any_dimensions_takes_what_it_covers)
{
    const int64_t shapes[][4] = {
        {1, 1, 1, 1}, {3, 1, 5, 2}, {2, 7, 1, 3}, {4, 3, 2, 1}, {1, 30, 9, 4}};
    for (size_t s = 0; s < 5; s++)
        for (int ndim = 1; ndim <= 3; ndim++) {
            const int64_t *sizes = shapes[s];
            int64_t covered = 1, each = 1, found = 0;
            for (int d = 0; d < 4; d++)
                *(d < ndim ? &covered : &each) *= sizes[d];
            tn_tensor *flat = NULL, *t = NULL, *mask = NULL, *out = NULL;
            tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU),
                           flags = tn_opts(TN_DTYPE_BOOL, TN_CPU);
            ASSERT_OK(tn_arange(tn_int(covered * each), &opts, &flat));
            ASSERT_OK(tn_view(flat, sizes, 4, &t));
            ASSERT_OK(tn_zeros(sizes, ndim, &flags, &mask));
            for (int64_t i = 0; i < covered; i++)
                ((uint8_t *)mask->data)[i] = i % 3 == 1 || i + 1 == covered;
            ASSERT_OK(tn_index(t, &mask, 1, &out));
            const int64_t *x = out->data;
            for (int64_t i = 0; i < covered; i++)
                for (int64_t k = 0; ((uint8_t *)mask->data)[i] && k < each; k++, found++)
                    EXPECT(found < out->numel && x[found] == i * each + k);
            EXPECT(found == out->numel);
            tn_tensor *all[] = {flat, t, mask, out};
            for (size_t i = 0; i < 4; i++)
                tn_tensor_unref(all[i]);
        }
}

TEST(rows_of_halves_are_added_in_float32_and_rounded_once)
{
    const int64_t widths[] = {1, 3, 64, 300, 2000}, dim = 0;
    const tn_dtype dtypes[] = {TN_DTYPE_BF16, TN_DTYPE_F16};
    for (size_t k = 0; k < 5; k++)
        for (size_t d = 0; d < 2; d++) {
            const int64_t sizes[] = {4, widths[k]}, n = 4;
            tn_tensor_opts opts = tn_opts(dtypes[d], TN_CPU), whole = tn_opts(TN_DTYPE_I64, TN_CPU);
            tn_tensor *t = NULL, *source = NULL, *at = NULL, *out = NULL;
            tn_manual_seed(3);
            ASSERT_OK(tn_randn(sizes, 2, &opts, &t));
            ASSERT_OK(tn_randn(sizes, 2, &opts, &source));
            ASSERT_OK(tn_zeros(&n, 1, &whole, &at));
            for (int64_t i = 0; i < 4; i++)
                ((int64_t *)at->data)[i] = (int64_t[]){2, 0, 2, 3}[i];
            ASSERT_OK(tn_index_add(t, dim, at, source, tn_int(1), &out));
            /* The same in float32, and rounded. */
            tn_tensor *wide = NULL, *terms = NULL, *want = NULL;
            ASSERT_OK(tn_to_dtype(t, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &wide));
            ASSERT_OK(tn_to_dtype(source, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &terms));
            for (int64_t i = 0; i < 4 * widths[k]; i++)
                ((float *)wide
                     ->data)[((int64_t *)at->data)[i / widths[k]] * widths[k] + i % widths[k]] +=
                    ((float *)terms->data)[i];
            ASSERT_OK(tn_to_dtype(wide, dtypes[d], false, false, TN_FORMAT_NONE, &want));
            EXPECT(!memcmp(out->data, want->data, (size_t)(4 * widths[k]) * 2));
            tn_tensor *all[] = {t, source, at, out, wide, terms, want};
            for (size_t i = 0; i < 7; i++)
                tn_tensor_unref(all[i]);
        }
}

TEST(small_elements_are_read_backwards_whatever_their_number)
{
    const tn_dtype dtypes[] = {TN_DTYPE_U8, TN_DTYPE_I16};
    const int64_t dim = 1;
    for (size_t d = 0; d < 2; d++)
        for (int64_t n = 0; n < 40; n++) {
            const int64_t sizes[] = {3, n};
            tn_tensor_opts opts = tn_opts(dtypes[d], TN_CPU);
            tn_tensor *flat = NULL, *t = NULL, *out = NULL;
            ASSERT_OK(tn_arange(tn_int(3 * n), &opts, &flat));
            ASSERT_OK(tn_view(flat, sizes, 2, &t));
            ASSERT_OK(tn_flip(t, &dim, 1, &out));
            for (int64_t r = 0; r < 3; r++)
                for (int64_t c = 0; c < n; c++) {
                    int64_t i = r * n + c, want = r * n + (n - 1 - c);
                    int64_t got = d ? ((int16_t *)out->data)[i] : ((uint8_t *)out->data)[i];
                    EXPECT(got == want);
                }
            tn_tensor_unref(flat);
            tn_tensor_unref(t);
            tn_tensor_unref(out);
        }
}

TEST(runs_of_equal_numbers_become_one_with_their_length)
{
    const float numbers[] = {2, 2, 2, 5, 7, 7, 2, 2};
    const float wanted[] = {2, 5, 7, 2};
    const int64_t lengths[] = {3, 1, 2, 2}, places[] = {0, 0, 0, 1, 2, 2, 3, 3}, n = 8;
    tn_tensor *t = NULL, *values = NULL, *inverse = NULL, *counts = NULL;
    ASSERT_OK(tn_zeros(&n, 1, NULL, &t));
    memcpy(t->data, numbers, sizeof numbers);
    ASSERT_OK(tn_unique_consecutive(t, true, true, (tn_opt_int){0}, &values, &inverse, &counts));
    ASSERT(values->numel == 4 && inverse->numel == 8 && counts->numel == 4);
    EXPECT(!memcmp(values->data, wanted, sizeof wanted));
    EXPECT(!memcmp(inverse->data, places, sizeof places));
    EXPECT(!memcmp(counts->data, lengths, sizeof lengths));
    tn_tensor *all[] = {t, values, inverse, counts};
    for (size_t i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

/* Few slices of a large table, each named more than once, along either dimension of a table and of
 * a transposed one: small whole numbers, so that every sum is exact. */
TEST(sums_of_halves_into_few_slices_of_a_table_leave_the_others_alone)
{
    enum { DOWN = 260, ACROSS = 270, N = 6 }; /* so large that it is not widened whole */
    static const int64_t named[N] = {7, 21, 7, 0, 21, 7};
    const tn_dtype dtypes[] = {TN_DTYPE_BF16, TN_DTYPE_F16};
    const int64_t n = N;
    const tn_tensor_opts longs = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *index = NULL;
    ASSERT_OK(tn_zeros(&n, 1, &longs, &index));
    memcpy(index->data, named, sizeof named);
    for (int which = 0; which < 2 * 2 * 2 * 3; which++) {
        const tn_tensor_opts opts = tn_opts(dtypes[which % 2], TN_CPU);
        const int dim = which / 2 % 2, turned = which / 4 % 2, how = which / 8;
        const int64_t sizes[] = {turned ? ACROSS : DOWN, turned ? DOWN : ACROSS};
        int64_t of_terms[] = {dim ? DOWN : N, dim ? N : ACROSS};
        tn_tensor *flat = NULL, *made = NULL, *whole = NULL, *table = NULL, *terms = NULL;
        tn_tensor *line = NULL, *across = NULL, *copied = NULL, *got = NULL, *wide = NULL;
        test_note("which %d", which);
        ASSERT_OK(tn_arange(tn_int(DOWN * ACROSS), &longs, &flat));
        ASSERT_OK(tn_remainder_scalar(flat, tn_int(50), &made));
        ASSERT_OK(tn_view(made, sizes, 2, &whole));
        ASSERT_OK(tn_to_dtype(whole, dtypes[which % 2], false, false, TN_FORMAT_NONE, &copied));
        ASSERT_OK(turned ? tn_t(copied, &table) : tn_alias(copied, &table));
        ASSERT_OK(tn_ones(of_terms, 2, &opts, &terms));
        if (how == 0) {
            ASSERT_OK(tn_index_add_(table, dim, index, terms, tn_int(2)));
            got = tn_tensor_ref(table);
        } else {
            ASSERT_OK(tn_unsqueeze(index, !dim, &line));
            ASSERT_OK(tn_expand(line, of_terms, 2, false, &across));
            if (how == 2) {
                tn_tensor *apart = NULL;
                ASSERT_OK(tn_contiguous(across, TN_FORMAT_CONTIGUOUS, &apart));
                tn_tensor_unref(across);
                across = apart;
            }
            ASSERT_OK(tn_scatter_add(table, dim, across, terms, &got));
        }
        ASSERT_OK(tn_to_dtype(got, TN_DTYPE_F32, false, false, TN_FORMAT_CONTIGUOUS, &wide));
        for (int64_t i = 0; i < DOWN * ACROSS; i++) {
            const int64_t row = i / ACROSS, column = i % ACROSS, at = dim ? column : row;
            int64_t wanted = (turned ? column * DOWN + row : i) % 50;
            for (int k = 0; k < N; k++)
                wanted += named[k] == at ? (how == 0 ? 2 : 1) : 0;
            EXPECT_NEAR(((float *)wide->data)[i], (double)wanted, 0);
        }
        tn_tensor *all[] = {flat, made, whole, table, terms, line, across, copied, got, wide};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            tn_tensor_unref(all[i]);
    }
    tn_tensor_unref(index);
}

TEST(sums_of_halves_into_few_slices_leak_nothing_whichever_allocation_fails)
{
    const int64_t sizes[] = {1024, 80}, few[] = {3, 80}, n = 3;
    const tn_tensor_opts opts = tn_opts(TN_DTYPE_BF16, TN_CPU);
    const tn_tensor_opts longs = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *table = NULL, *terms = NULL, *index = NULL, *got = NULL;
    ASSERT_OK(tn_zeros(sizes, 2, &opts, &table));
    ASSERT_OK(tn_ones(few, 2, &opts, &terms));
    ASSERT_OK(tn_zeros(&n, 1, &longs, &index));
    ASSERT_OK(tn_index_add(table, 0, index, terms, tn_int(1), &got));
    tn_tensor_unref(got);
    got = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_index_add(table, 0, index, terms, tn_int(1), &got);
        EXPECT(rc == TN_OK || (rc == TN_NOMEM && !got && tni_test_live == before));
    }
    tn_tensor_unref(got);
    EXPECT(tni_test_live == before);
    tn_tensor_unref(table);
    tn_tensor_unref(terms);
    tn_tensor_unref(index);
}

/* A thousand ones for each of two places: bfloat16 alone would stop at 256. PyTorch 2.11 gives the
 * same numbers: 1000, and for means that count what was there, 1000 / 1001, rounded to 1. */
TEST(many_halves_for_one_place_are_added_in_float32_and_rounded_once)
{
    enum { TERMS = 1000, WIDTH = 8 };
    const int64_t into[] = {2, WIDTH}, terms[] = {TERMS * 2, WIDTH}, n = TERMS * 2;
    const tn_dtype dtypes[] = {TN_DTYPE_BF16, TN_DTYPE_F16};
    const tn_tensor_opts longs = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *index = NULL, *column = NULL, *across = NULL, *whole = NULL;
    ASSERT_OK(tn_zeros(&n, 1, &longs, &index));
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)index->data)[i] = i % 2;
    ASSERT_OK(tn_unsqueeze(index, 1, &column));
    ASSERT_OK(tn_expand(column, terms, 2, false, &across));
    ASSERT_OK(tn_contiguous(across, TN_FORMAT_CONTIGUOUS, &whole));
    for (int d = 0; d < 2; d++) {
        const tn_tensor_opts opts = tn_opts(dtypes[d], TN_CPU);
        tn_tensor *zeros = NULL, *ones = NULL, *sum[4] = {0};
        ASSERT_OK(tn_zeros(into, 2, &opts, &zeros));
        ASSERT_OK(tn_ones(terms, 2, &opts, &ones));
        ASSERT_OK(tn_scatter_add(zeros, 0, across, ones, &sum[0]));
        ASSERT_OK(tn_scatter_add(zeros, 0, whole, ones, &sum[1]));
        ASSERT_OK(tn_index_add(zeros, 0, index, ones, tn_int(1), &sum[2]));
        ASSERT_OK(tn_scatter_reduce(zeros, 0, across, ones, "mean", true, &sum[3]));
        for (int k = 0; k < 4; k++) {
            tn_tensor *wide = NULL;
            ASSERT_OK(tn_to_dtype(sum[k], TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
            test_note("dtype %d, sum %d", d, k);
            for (int64_t i = 0; i < wide->numel; i++)
                EXPECT_NEAR(((double *)wide->data)[i], k < 3 ? 1000 : 1, k < 3 ? 0 : 1.0 / 256);
            tn_tensor_unref(wide);
            tn_tensor_unref(sum[k]);
        }
        tn_tensor_unref(zeros);
        tn_tensor_unref(ones);
    }
    tn_tensor_unref(index);
    tn_tensor_unref(column);
    tn_tensor_unref(across);
    tn_tensor_unref(whole);
}
