/* SPDX-License-Identifier: MIT */
/* Second derivatives that formulas written by hand make of many operators: whichever allocation
 * fails, the pass fails and leaves nothing behind. Their values are those of test_gradcheck.c. */
#include "kit.h"

#include <math.h>

typedef tn_status (*function)(tn_tensor *const *inputs, tn_tensor **out);

static tn_tensor *leaf(const int64_t *sizes, int64_t ndim, int seed)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_empty(sizes, ndim, &opts, TN_FORMAT_CONTIGUOUS, &t));
    for (int64_t i = 0; i < t->numel; i++)
        ((double *)t->data)[i] = sin(1.7 * (double)(i * i) + 0.9 * seed + 0.3);
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    return t;
}

/* The sum of the squares of @p n tensors, which this releases. */
static tn_status squares(tn_tensor **list, int n, tn_tensor **out)
{
    tn_status status = TN_OK;
    TN_AUTO(tn_tensor) total = NULL;
    for (int i = 0; i < n; i++) {
        TN_AUTO(tn_tensor) square = NULL;
        TN_AUTO(tn_tensor) sum = NULL;
        TN_AUTO(tn_tensor) one = list[i];
        if (status == TN_OK)
            status = tn_mul(one, one, &square);
        if (status == TN_OK)
            status = tn_sum(square, TN_DTYPE_NONE, &sum);
        if (status == TN_OK && total) {
            tn_tensor *more = NULL;
            status = tn_add(total, sum, tn_int(1), &more);
            tn_tensor_unref(total);
            total = more;
        } else if (status == TN_OK) {
            total = TN_MOVE(sum);
        }
    }
    TN_TRY(status);
    *out = TN_MOVE(total);
    return TN_OK;
}

/* The gradients of the sum of the squares of the gradients of the sum of the squares. */
static tn_status twice(function f, tn_tensor *const *inputs, int n, tn_tensor **second)
{
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) again = NULL;
    tn_tensor *y = NULL, *first[2] = {NULL, NULL};
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    TN_TRY(f(inputs, &y));
    TN_TRY(squares(&y, 1, &sum));
    opts.create_graph = TN_BOOL_TRUE;
    TN_TRY(tn_grad(&sum, 1, inputs, n, NULL, &opts, first));
    TN_TRY(squares(first, n, &again));
    return tn_grad(&again, 1, inputs, n, NULL, NULL, second);
}

/* How much more is alive after each allocation has failed in turn. */
static int64_t left_by_failures(function f, tn_tensor *const *inputs, int n)
{
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *second[2] = {NULL, NULL};
        rc = twice(f, inputs, n, second);
        EXPECT(rc == TN_OK || (rc == TN_NOMEM && !second[0] && !second[1]));
        for (int k = 0; k < n; k++)
            tn_tensor_unref(second[k]);
    }
    return tni_test_live - before;
}

static void fails_cleanly(function f, tn_tensor *const *inputs, int n)
{
    kit_warm_up();
    (void)left_by_failures(f, inputs, n); /* what stays after the first time is for the next */
    EXPECT_EQ_INT(left_by_failures(f, inputs, n), 0);
    for (int k = 0; k < n; k++)
        tn_tensor_unref(inputs[k]);
}

static tn_status sampled(tn_tensor *const *inputs, tn_tensor **out)
{
    return tn_grid_sampler(inputs[0], inputs[1], inputs[0]->ndim == 4 ? 2 : 0, 2, false, out);
}

TEST(samples_of_a_grid_leak_nothing_when_an_allocation_fails)
{
    tn_tensor *plane[] = {leaf((const int64_t[]){1, 1, 2, 2}, 4, 1),
                          leaf((const int64_t[]){1, 1, 1, 2}, 4, 2)};
    fails_cleanly(sampled, plane, 2);
    tn_tensor *volume[] = {leaf((const int64_t[]){1, 1, 2, 2, 2}, 5, 1),
                           leaf((const int64_t[]){1, 1, 1, 1, 3}, 5, 2)};
    fails_cleanly(sampled, volume, 2);
}

static tn_status aligned(tn_tensor *const *inputs, tn_tensor **out)
{
    static const int64_t labels[] = {1, 2, 2}, one[] = {3}, in[] = {3, 1}, counts[] = {2, 1};
    TN_AUTO(tn_tensor) targets = NULL;
    TN_AUTO(tn_tensor) logs = NULL;
    TN_TRY(tn_tensor_from_data(labels, 1, one, TN_DTYPE_I64, &targets));
    TN_TRY(tn_log_softmax(inputs[0], 2, TN_DTYPE_NONE, &logs));
    return tn_ctc_loss(logs, targets, in, 2, counts, 2, 0, 1, false, out);
}

TEST(alignments_leak_nothing_when_an_allocation_fails)
{
    tn_tensor *scores = leaf((const int64_t[]){3, 2, 3}, 3, 1);
    fails_cleanly(aligned, &scores, 1);
}

static tn_status apart(tn_tensor *const *inputs, tn_tensor **out)
{
    return tn_cdist(inputs[0], inputs[1], 3, tn_no_int(), out);
}

static tn_status pairwise(tn_tensor *const *inputs, tn_tensor **out)
{
    return tn_pdist(inputs[0], 3, out);
}

TEST(distances_leak_nothing_when_an_allocation_fails)
{
    tn_tensor *rows[] = {leaf((const int64_t[]){2, 2}, 2, 1), leaf((const int64_t[]){1, 2}, 2, 2)};
    fails_cleanly(apart, rows, 2);
    tn_tensor *all = leaf((const int64_t[]){3, 2}, 2, 1);
    fails_cleanly(pairwise, &all, 1);
}

static tn_status gamma_moved(tn_tensor *const *inputs, tn_tensor **out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_TRY(tn_exp(inputs[0], &a));
    TN_TRY(tn_exp(inputs[1], &x));
    return tn_igamma(a, x, out);
}

static tn_status beta_moved(tn_tensor *const *inputs, tn_tensor **out)
{
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) total = NULL;
    TN_TRY(tn_exp(inputs[0], &a));
    TN_TRY(tn_sigmoid(inputs[1], &x));
    TN_TRY(tn_add_scalar(a, tn_int(1), tn_int(1), &total));
    return tn__dirichlet_grad(x, a, total, out);
}

TEST(samples_leak_nothing_when_an_allocation_fails)
{
    const int64_t n = 2;
    for (int i = 0; i < 2; i++) {
        tn_tensor *inputs[] = {leaf(&n, 1, 1), leaf(&n, 1, 2)};
        fails_cleanly(i ? beta_moved : gamma_moved, inputs, 2);
    }
}
