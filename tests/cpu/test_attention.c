/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_attention.c: attention in blocks against matrix products on sizes of several
 * blocks, its gradient against the formula, hidden rows, and that threads change nothing. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/ops.h"

#define NONE tn_no_float()

static tn_tensor *random_of(int64_t b, int64_t h, int64_t n, int64_t w, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    ASSERT_OK(tn_randn((const int64_t[]){b, h, n, w}, 4, &opts, &t));
    return t;
}

static void drop(tn_tensor **list, int n)
{
    for (int i = 0; i < n; i++) {
        tn_tensor_unref(list[i]);
        list[i] = NULL;
    }
}

/* The largest difference of two tensors of one size. */
static double distance(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *x = NULL, *y = NULL, *d = NULL, *e = NULL, *most = NULL;
    tn_scalar s;
    ASSERT_OK(tn_to_dtype(a, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &x));
    ASSERT_OK(tn_to_dtype(b, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &y));
    ASSERT_OK(tn_sub(x, y, tn_int(1), &d));
    ASSERT_OK(tn_abs(d, &e));
    ASSERT_OK(tn_max(e, &most));
    ASSERT_OK(tn_item(most, &s));
    drop((tn_tensor *[]){x, y, d, e, most}, 5);
    return tn_scalar_to_double(s);
}

typedef struct sizes {
    int64_t b, h, kv, l, s, w;
    bool causal;
    tn_dtype dtype;
    double close;
} sizes;

static const sizes cases[] = {
    {1, 2, 2, 200, 300, 64, false, TN_DTYPE_F32, 1e-5},
    {2, 2, 1, 200, 300, 64, true, TN_DTYPE_F32, 1e-5},
    {1, 1, 1, 300, 130, 40, true, TN_DTYPE_F64, 1e-13},
    {1, 4, 2, 65, 129, 130, true, TN_DTYPE_F32, 1e-5},
    {1, 9, 9, 64, 128, 300, false, TN_DTYPE_F32, 2e-5},
    {2, 6, 3, 70, 200, 32, true, TN_DTYPE_BF16, 2e-2},
    {1, 2, 2, 1, 700, 16, false, TN_DTYPE_F16, 4e-3},
};
enum { CASES = sizeof cases / sizeof cases[0] };

TEST(blocks_give_what_matrix_products_give)
{
    for (int i = 0; i < CASES; i++) {
        const sizes *c = &cases[i];
        tn_manual_seed(3);
        tn_tensor *q = random_of(c->b, c->h, c->l, c->w, c->dtype), *r[4];
        tn_tensor *k = random_of(c->b, c->kv, c->s, c->w, c->dtype);
        tn_tensor *v = random_of(c->b, c->kv, c->s, c->w, c->dtype);
        tn_tensor *mask = random_of(c->b, 1, c->l, c->s, c->dtype);
        for (int masked = 0; masked < 2; masked++) {
            bool causal = c->causal && !masked;
            ASSERT_OK(tn__scaled_dot_product_flash_attention_for_cpu(
                q, k, v, 0, causal, masked ? mask : NULL, NONE, &r[0], &r[1]));
            ASSERT_OK(tn__scaled_dot_product_attention_math(
                q, k, v, masked ? mask : NULL, 0, causal, NULL, NONE, true, &r[2], &r[3]));
            EXPECT_NEAR(distance(r[0], r[2]), 0, c->close);
            drop(r, 4);
        }
        drop((tn_tensor *[]){q, k, v, mask}, 4);
    }
}

/* dS, from the weights: the gradient of a softmax. */
static void by_formula(const sizes *c, tn_tensor *const *x, tn_tensor *weights, tn_tensor **out)
{
    tn_tensor *vt = NULL, *pt = NULL, *dp = NULL, *ds = NULL, *scaled = NULL, *st = NULL;
    ASSERT_OK(tn_transpose(x[3], -2, -1, &vt));
    ASSERT_OK(tn_transpose(weights, -2, -1, &pt));
    ASSERT_OK(tn_matmul(x[0], vt, &dp));
    ASSERT_OK(tn__softmax_backward_data(dp, weights, -1, c->dtype, &ds));
    ASSERT_OK(tn_mul_scalar(ds, tn_float(1 / sqrt((double)c->w)), &scaled));
    ASSERT_OK(tn_transpose(scaled, -2, -1, &st));
    ASSERT_OK(tn_matmul(scaled, x[2], &out[0]));
    ASSERT_OK(tn_matmul(st, x[1], &out[1]));
    ASSERT_OK(tn_matmul(pt, x[0], &out[2]));
    drop((tn_tensor *[]){vt, pt, dp, ds, scaled, st}, 6);
}

/* Add up the gradients of the heads that share one. */
static tn_tensor *shared(const sizes *c, tn_tensor *grad)
{
    tn_tensor *apart = NULL, *sum = NULL;
    const int64_t split[] = {c->b, c->kv, c->h / c->kv, c->s, c->w}, dim = 2;
    ASSERT_OK(tn_reshape(grad, split, 5, &apart));
    ASSERT_OK(tn_sum_dim(apart, &dim, 1, false, TN_DTYPE_NONE, &sum));
    tn_tensor_unref(apart);
    return sum;
}

TEST(the_gradient_is_that_of_the_formula)
{
    for (int i = 0; i < CASES; i++) {
        const sizes *c = &cases[i];
        if (c->dtype != TN_DTYPE_F32 && c->dtype != TN_DTYPE_F64)
            continue;
        tn_manual_seed(5);
        tn_tensor *q = random_of(c->b, c->h, c->l, c->w, c->dtype), *r[4], *got[3], *want[3];
        tn_tensor *k = random_of(c->b, c->kv, c->s, c->w, c->dtype), *wide_k = NULL;
        tn_tensor *v = random_of(c->b, c->kv, c->s, c->w, c->dtype), *wide_v = NULL;
        tn_tensor *g = random_of(c->b, c->h, c->l, c->w, c->dtype);
        ASSERT_OK(tn__scaled_dot_product_flash_attention_for_cpu(q, k, v, 0, c->causal, NULL, NONE,
                                                                 &r[0], &r[1]));
        ASSERT_OK(tn__scaled_dot_product_flash_attention_for_cpu_backward(
            g, q, k, v, r[0], r[1], 0, c->causal, NULL, NONE, &got[0], &got[1], &got[2]));
        tn_opt_int dim = tn_some_int(1);
        ASSERT_OK(tn_repeat_interleave_self_int(k, c->h / c->kv, dim, tn_no_int(), &wide_k));
        ASSERT_OK(tn_repeat_interleave_self_int(v, c->h / c->kv, dim, tn_no_int(), &wide_v));
        ASSERT_OK(tn__scaled_dot_product_attention_math(q, wide_k, wide_v, NULL, 0, c->causal, NULL,
                                                        NONE, false, &r[2], &r[3]));
        by_formula(c, (tn_tensor *[]){g, q, wide_k, wide_v}, r[3], want);
        EXPECT_NEAR(distance(got[0], want[0]), 0, 20 * c->close);
        for (int j = 1; j < 3; j++) {
            tn_tensor *sum = shared(c, want[j]);
            EXPECT_NEAR(distance(got[j], sum), 0, 20 * c->close);
            tn_tensor_unref(sum);
        }
        drop(r, 4);
        drop(got, 3);
        drop(want, 3);
        drop((tn_tensor *[]){q, k, v, g, wide_k, wide_v}, 6);
    }
}

static void run_both(const sizes *c, tn_tensor **x, tn_tensor **r)
{
    ASSERT_OK(tn__scaled_dot_product_flash_attention_for_cpu(x[1], x[2], x[3], 0, c->causal, NULL,
                                                             NONE, &r[0], &r[1]));
    ASSERT_OK(tn__scaled_dot_product_flash_attention_for_cpu_backward(
        x[0], x[1], x[2], x[3], r[0], r[1], 0, c->causal, NULL, NONE, &r[2], &r[3], &r[4]));
}

TEST(any_number_of_threads_gives_the_same_bits)
{
    for (int i = 0; i < CASES; i++) {
        const sizes *c = &cases[i];
        tn_tensor *one[5], *many[5], *x[4];
        tn_manual_seed(9);
        x[0] = random_of(c->b, c->h, c->l, c->w, c->dtype);
        x[1] = random_of(c->b, c->h, c->l, c->w, c->dtype);
        x[2] = random_of(c->b, c->kv, c->s, c->w, c->dtype);
        x[3] = random_of(c->b, c->kv, c->s, c->w, c->dtype);
        ASSERT_OK(tn_set_num_threads(1));
        run_both(c, x, one);
        ASSERT_OK(tn_set_num_threads(3));
        run_both(c, x, many);
        for (int j = 0; j < 5; j++) /* dense, in one order */
            EXPECT(memcmp(one[j]->data, many[j]->data,
                          (size_t)one[j]->numel * tni_itemsize(one[j])) == 0);
        drop(one, 5);
        drop(many, 5);
        drop(x, 4);
    }
}

TEST(a_row_that_sees_nothing_gives_zeros_and_has_gradient_zero)
{
    tn_tensor *q = random_of(1, 1, 3, 8, TN_DTYPE_F32), *k = random_of(1, 1, 150, 8, TN_DTYPE_F32);
    tn_tensor *mask = NULL, *row = NULL, *out = NULL, *lse = NULL, *d[3];
    ASSERT_OK(tn_zeros((const int64_t[]){3, 150}, 2, NULL, &mask));
    ASSERT_OK(tn_select(mask, 0, 1, &row));
    ASSERT_OK(tn_fill_(row, tn_float(-INFINITY)));
    ASSERT_OK(
        tn__scaled_dot_product_flash_attention_for_cpu(q, k, k, 0, false, mask, NONE, &out, &lse));
    ASSERT_OK(tn__scaled_dot_product_flash_attention_for_cpu_backward(
        q, q, k, k, out, lse, 0, false, mask, NONE, &d[0], &d[1], &d[2]));
    for (int i = 8; i < 16; i++) {
        EXPECT(((float *)out->data)[i] == 0);
        EXPECT(((float *)d[0]->data)[i] == 0);
    }
    EXPECT(((float *)lse->data)[1] == 0);
    EXPECT(((float *)d[0]->data)[0] != 0);
    for (int64_t i = 0; i < k->numel; i++)
        EXPECT(isfinite(((float *)d[1]->data)[i]) && isfinite(((float *)d[2]->data)[i]));
    drop(d, 3);
    drop((tn_tensor *[]){q, k, mask, row, out, lse}, 6);
}
