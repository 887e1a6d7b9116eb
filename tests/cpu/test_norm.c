/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_norm.c: softmax, normalisation, losses and sorting: what they write besides their
 * results, and that threads, instruction sets and layouts change nothing. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

static tn_tensor *uniform(int ndim, const int64_t *sizes)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_manual_seed(7);
    ASSERT_OK(tn_rand(sizes, ndim, &opts, &t));
    return t;
}

static tn_tensor *filled(int64_t n, double value)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tn_full(&n, 1, tn_float(value), NULL, &t));
    return t;
}

static void drop(tn_tensor **list, int n)
{
    for (int i = 0; i < n; i++) {
        tn_tensor_unref(list[i]);
        list[i] = NULL;
    }
}

TEST(batch_norm_moves_running_statistics_by_momentum_with_the_unbiased_variance)
{
    const int64_t sizes[] = {2, 1, 2};
    const float values[] = {1, 2, 3, 6}; /* mean 3, squared deviations 14 */
    tn_tensor *x = uniform(3, sizes), *out[3] = {NULL};
    memcpy(x->data, values, sizeof values);
    tn_tensor *mean = filled(1, 10), *var = filled(1, 20);
    ASSERT_OK(tn_native_batch_norm(x, NULL, NULL, mean, var, true, 0.25, 1e-5, &out[0], &out[1],
                                   &out[2]));
    EXPECT_NEAR(*(float *)mean->data, 0.75 * 10 + 0.25 * 3, 1e-5);
    EXPECT_NEAR(*(float *)var->data, 0.75 * 20 + 0.25 * 14.0 / 3, 1e-5);
    drop(out, 3);
    ASSERT_OK(tn_native_batch_norm(x, NULL, NULL, mean, var, false, 0.25, 1e-5, &out[0], &out[1],
                                   &out[2]));
    EXPECT_NEAR(*(float *)mean->data, 8.25, 1e-5); /* evaluation writes nothing */
    drop(out, 3);
    uint32_t version = 0;
    ASSERT_OK(tn__native_batch_norm_legit(x, NULL, NULL, mean, var, true, 0.25, 1e-5, &out[0],
                                          &out[1], &out[2]));
    ASSERT_OK(tn_tensor_version(mean, &version));
    EXPECT_EQ_INT(version, 1);
    drop(out, 3);
    tn_tensor_unref(x);
    tn_tensor_unref(mean);
    tn_tensor_unref(var);
}

TEST(instance_norm_gives_running_statistics_the_mean_over_samples)
{
    const int64_t sizes[] = {2, 1, 2};
    const float values[] = {1, 3, 5, 9}; /* means 2 and 7 */
    tn_tensor *x = uniform(3, sizes), *out = NULL, *mean = filled(1, 0), *var = filled(1, 1);
    memcpy(x->data, values, sizeof values);
    ASSERT_OK(tn_instance_norm(x, NULL, NULL, mean, var, true, 0.5, 1e-5, false, &out));
    EXPECT_NEAR(*(float *)mean->data, 0.5 * (2 + 7) / 2, 1e-5);
    EXPECT_NEAR(*(float *)var->data, 0.5 + 0.5 * (2 + 8) / 2, 1e-5);
    tn_tensor_unref(out);
    tn_tensor_unref(x);
    tn_tensor_unref(mean);
    tn_tensor_unref(var);
}

TEST(a_target_out_of_range_leaves_the_given_outputs_as_they_were)
{
    const int64_t sizes[] = {2, 3}, n = 2;
    tn_tensor *x = uniform(2, sizes), *target = NULL, *out = filled(2, 5), *total = filled(1, 6);
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    ASSERT_OK(tn_zeros(&n, 1, &opts, &target));
    ((int64_t *)target->data)[1] = 3;
    EXPECT_FAIL(TN_INDEX, "Target 3 is out of bounds.",
                tn_nll_loss_forward_out(x, target, NULL, 0, -100, out, total));
    EXPECT(((float *)out->data)[0] == 5 && ((float *)out->data)[1] == 5);
    tn_tensor_unref(x);
    tn_tensor_unref(target);
    tn_tensor_unref(out);
    tn_tensor_unref(total);
}

TEST(sorting_many_equal_numbers_is_stable)
{
    const int64_t n = 5000;
    tn_tensor *x = uniform(1, &n), *values = NULL, *places = NULL;
    for (int64_t i = 0; i < n; i++)
        ((float *)x->data)[i] = (float)(int)(((float *)x->data)[i] * 7);
    for (int descending = 0; descending < 2; descending++) {
        ASSERT_OK(tn_sort(x, 0, descending, &values, &places));
        const float *v = values->data;
        const int64_t *p = places->data;
        for (int64_t i = 1; i < n; i++) {
            bool ordered = descending ? v[i - 1] > v[i] : v[i - 1] < v[i];
            EXPECT(ordered || (v[i - 1] == v[i] && p[i - 1] < p[i]));
        }
        tn_tensor_unref(values);
        tn_tensor_unref(places);
    }
    tn_tensor_unref(x);
}

TEST(topk_of_many_takes_what_sorting_would)
{
    const int64_t n = 3001;
    tn_tensor *x = uniform(1, &n), *values = NULL, *places = NULL, *top = NULL, *at = NULL;
    ASSERT_OK(tn_sort(x, 0, true, &values, &places));
    for (int64_t k = 1; k <= n; k = k * 3 + 1) {
        ASSERT_OK(tn_topk(x, k, 0, true, true, &top, &at));
        EXPECT(memcmp(top->data, values->data, (size_t)k * sizeof(float)) == 0);
        tn_tensor_unref(top);
        tn_tensor_unref(at);
    }
    tn_tensor_unref(x);
    tn_tensor_unref(values);
    tn_tensor_unref(places);
}

/* Bytes of results, one after the other. */
typedef struct record {
    char bytes[1 << 20];
    size_t n;
} record;

static void take(record *r, tn_tensor *t)
{
    size_t n = (size_t)t->numel * tni_itemsize(t);
    ASSERT(r->n + n <= sizeof r->bytes);
    memcpy(r->bytes + r->n, t->data, n);
    r->n += n;
    tn_tensor_unref(t);
}

static void run_all(record *r)
{
    const int64_t sizes[] = {300, 130}, shape[] = {130}, dim = 0;
    tn_tensor *x = uniform(2, sizes), *w = uniform(1, shape), *o[3] = {NULL};
    const bool mask[] = {true, true, true};
    r->n = 0;
    ASSERT_OK(tn__softmax(x, 1, false, &o[0]));
    take(r, o[0]);
    ASSERT_OK(tn__log_softmax(x, 0, false, &o[0]));
    take(r, o[0]);
    ASSERT_OK(tn_native_layer_norm(x, shape, 1, w, w, 1e-5, &o[0], &o[1], &o[2]));
    take(r, o[0]);
    tn_tensor *mean = o[1], *rstd = o[2];
    ASSERT_OK(tn_native_layer_norm_backward(x, x, shape, 1, mean, rstd, w, w, mask, 3, &o[0], &o[1],
                                            &o[2]));
    for (int i = 0; i < 3; i++)
        take(r, o[i]);
    take(r, mean);
    take(r, rstd);
    ASSERT_OK(tn_native_batch_norm(x, w, w, NULL, NULL, true, 0.1, 1e-5, &o[0], &o[1], &o[2]));
    for (int i = 0; i < 3; i++)
        take(r, o[i]);
    ASSERT_OK(tn_logsumexp(x, &dim, 1, false, &o[0]));
    take(r, o[0]);
    ASSERT_OK(tn_var(x, &dim, 1, NULL, false, &o[0]));
    take(r, o[0]);
    tn_tensor_unref(x);
    tn_tensor_unref(w);
}

TEST(rows_depend_neither_on_threads_nor_on_the_instruction_set)
{
    static record first, other;
    bool have = false;
    int before = tn_num_threads();
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        for (int threads = 1; threads <= 3; threads += 2) {
            ASSERT_OK(tn_set_num_threads(threads));
            test_note("%s, %d threads", tni_isa_name((tni_isa)isa), threads);
            run_all(have ? &other : &first);
            if (have)
                EXPECT(first.n == other.n && memcmp(first.bytes, other.bytes, first.n) == 0);
            have = true;
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
    ASSERT_OK(tn_set_num_threads(before));
}

/* Rows of up to 128 numbers take a way of their own in some instruction sets, several at a time. */
static void expect_short_rows_agree(bool logarithm)
{
    tn_status (*f)(tn_tensor *, int64_t, bool, tn_tensor **) =
        logarithm ? tn__log_softmax : tn__softmax;
    for (int64_t n = 1; n <= 140; n++) {
        const int64_t rows = 6 + n % 13, sizes[] = {rows, n};
        tn_tensor *x = uniform(2, sizes), *wanted = NULL;
        float *row = x->data;
        for (int64_t i = 0; i < n; i++) {
            row[n + i] = row[n + i] * 200 - 100;
            row[2 * n + i] = -INFINITY;
        }
        row[3 * n] = INFINITY;
        row[4 * n + n - 1] = NAN;
        row[5 * n + n / 2] = -INFINITY;
        tni_cpu_use(TNI_ISA_BASE);
        ASSERT_OK(f(x, 1, false, &wanted));
        for (int isa = TNI_ISA_AVX2; isa <= TNI_ISA_AVX512; isa++) {
            tn_tensor *out = NULL;
            if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
                continue;
            test_note("%s, rows of %lld", tni_isa_name((tni_isa)isa), (long long)n);
            ASSERT_OK(f(x, 1, false, &out));
            const float *a = wanted->data, *b = out->data;
            for (int64_t i = 0; i < rows * n; i++)
                EXPECT((isnan(a[i]) && isnan(b[i])) || memcmp(a + i, b + i, sizeof *a) == 0);
            tn_tensor_unref(out);
        }
        tn_tensor_unref(wanted);
        tn_tensor_unref(x);
    }
    tni_cpu_use(TNI_ISA_AVX512);
}

TEST(softmax_of_short_rows_has_the_same_bits_in_every_instruction_set)
{
    expect_short_rows_agree(false);
    expect_short_rows_agree(true);
}
