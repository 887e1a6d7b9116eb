/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_roll.c: lines of every length, rolled by every number, in every size of element,
 * and cross products, which are made of such. */
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

/* Bytes 1, 2, … of @p rows lines of @p n elements. */
static tn_tensor *lines(int64_t rows, int64_t n, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_empty((int64_t[]){rows, n}, 2, &opts, TN_FORMAT_CONTIGUOUS, &t));
    for (size_t i = 0; i < (size_t)t->numel * tni_itemsize(t); i++)
        ((unsigned char *)t->data)[i] = (unsigned char)(test_random() % 251);
    return t;
}

static void check(tn_tensor *t, int64_t shift)
{
    const int64_t last = -1, n = t->sizes[1];
    const size_t size = tni_itemsize(t);
    tn_tensor *rolled = NULL;
    int64_t wrong = 0;
    ASSERT_OK(tn_roll(t, &shift, 1, &last, 1, &rolled));
    ASSERT_EQ_INT(rolled->numel, t->numel);
    for (int64_t i = 0; i < t->numel; i++) {
        int64_t from = i / n * n + ((i % n - shift) % n + n) % n;
        wrong += memcmp((char *)rolled->data + (size_t)i * size,
                        (char *)t->data + (size_t)from * size, size) != 0;
    }
    test_note("%d elements by %d, %d bytes each", (int)n, (int)shift, (int)size);
    EXPECT_EQ_INT(wrong, 0);
    tn_tensor_unref(rolled);
}

TEST(lines_are_rolled_by_any_number)
{
    const tn_dtype dtypes[] = {TN_DTYPE_U8, TN_DTYPE_I16, TN_DTYPE_I32, TN_DTYPE_I64,
                               TN_DTYPE_C128};
    for (size_t c = 0; c < sizeof dtypes / sizeof dtypes[0]; c++)
        for (int64_t n = 1; n <= 18; n++) {
            tn_tensor *t = lines(5, n, dtypes[c]), *one = lines(1, n, dtypes[c]);
            for (int64_t shift = -n - 1; shift <= 2 * n + 1; shift++) {
                check(t, shift);
                check(one, shift);
            }
            tn_tensor_unref(t);
            tn_tensor_unref(one);
        }
}

TEST(many_lines_are_rolled_by_several_threads)
{
    const int threads = tn_num_threads();
    ASSERT_OK(tn_set_num_threads(4));
    for (int64_t n = 2; n <= 5; n++) {
        tn_tensor *t = lines(50001, n, TN_DTYPE_I32);
        for (int64_t shift = 1; shift < n; shift++)
            check(t, shift);
        tn_tensor_unref(t);
    }
    ASSERT_OK(tn_set_num_threads(threads));
}

TEST(cross_products_are_made_of_the_other_two_elements)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    for (int dim = 0; dim < 2; dim++) {
        tn_tensor *a = NULL, *b = NULL, *out = NULL;
        const int64_t sizes[] = {dim ? 7 : 3, dim ? 3 : 7}, one[] = {dim ? 1 : 3, dim ? 3 : 1};
        ASSERT_OK(tn_randn(sizes, 2, &opts, &a));
        ASSERT_OK(tn_randn(one, 2, &opts, &b));
        ASSERT_OK(tn_linalg_cross(a, b, dim, &out));
        ASSERT_EQ_INT(out->numel, 21);
        const double *y = b->data, *z = out->data;
        for (int64_t i = 0; i < 7; i++)
            for (int64_t k = 0; k < 3; k++) {
                int64_t step = dim ? 1 : 7, first = dim ? 3 * i : i;
                const double *x = (const double *)a->data + first;
                int64_t l = (k + 1) % 3, m = (k + 2) % 3;
                EXPECT_NEAR(z[first + k * step], x[l * step] * y[m] - x[m * step] * y[l], 1e-14);
            }
        tn_tensor_unref(a);
        tn_tensor_unref(b);
        tn_tensor_unref(out);
    }
}
