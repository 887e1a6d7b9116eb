/* SPDX-License-Identifier: MIT */
/* Products of meta tensors, with and without gradients, of two, three and four dimensions, wherever
 * a call may come from: never more than a second. The shapes are computed by native code alone, no
 * lock is held while a kernel runs, and nothing waits for another thread. */
#include "harness/test.h"

#include <stdatomic.h>
#include "tenon/ops.h"
#include "tenon/saved_hooks.h"

static double second(void)
{
    return test_sanitized() ? 20 : 1;
}

typedef struct product {
    int ndim[2];
    int64_t sizes[2][4];
    int out_ndim;
    int64_t out_sizes[4];
} product;

static const product products[] = {
    {{2, 2}, {{8, 16}, {16, 16}}, 2, {8, 16}},
    {{3, 2}, {{2, 4, 16}, {16, 16}}, 3, {2, 4, 16}}, /* folds to one product of matrices */
    {{3, 3}, {{2, 4, 16}, {2, 16, 5}}, 3, {2, 4, 5}},
    {{4, 2}, {{2, 3, 4, 16}, {16, 16}}, 4, {2, 3, 4, 16}},
    {{4, 4}, {{2, 1, 4, 16}, {1, 3, 16, 5}}, 4, {2, 3, 4, 5}},
    {{4, 1}, {{2, 3, 4, 16}, {16}}, 3, {2, 3, 4}},
};
enum { NUM_PRODUCTS = sizeof products / sizeof *products };

static tn_tensor *leaf(int ndim, const int64_t *sizes, bool requires_grad)
{
    tn_tensor *t = NULL;
    tn_tensor_opts meta = tn_opts(TN_DTYPE_F32, TN_META);
    ASSERT_OK(tn_empty(sizes, ndim, &meta, TN_FORMAT_NONE, &t));
    ASSERT_OK(tn_tensor_set_requires_grad(t, requires_grad));
    return t;
}

static void expect_sizes(const tn_tensor *t, int ndim, const int64_t *sizes)
{
    ASSERT(t != NULL);
    EXPECT_EQ_INT(tn_tensor_device(t).type, TN_DEVICE_META);
    ASSERT_EQ_INT(tn_tensor_ndim(t), ndim);
    for (int d = 0; d < ndim; d++)
        EXPECT_EQ_INT(tn_tensor_sizes(t)[d], sizes[d]);
}

/* One product, and its gradients where there are any. */
static void multiply(const product *p, bool grad_a, bool grad_b)
{
    tn_tensor *a = leaf(p->ndim[0], p->sizes[0], grad_a);
    tn_tensor *b = leaf(p->ndim[1], p->sizes[1], grad_b);
    tn_tensor *out = NULL, *sum = NULL;
    bool recorded = tn_grad_enabled() && (grad_a || grad_b);
    ASSERT_OK(tn_matmul(a, b, &out));
    expect_sizes(out, p->out_ndim, p->out_sizes);
    EXPECT_EQ_INT(tn_tensor_requires_grad(out), recorded);
    if (recorded) {
        ASSERT_OK(tn_sum(out, TN_DTYPE_NONE, &sum));
        ASSERT_OK(tn_tensor_backward(sum));
        if (grad_a)
            expect_sizes(tn_tensor_grad(a), p->ndim[0], p->sizes[0]);
        if (grad_b)
            expect_sizes(tn_tensor_grad(b), p->ndim[1], p->sizes[1]);
    }
    tn_tensor *all[] = {a, b, out, sum};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

static void multiply_all(void)
{
    for (int i = 0; i < NUM_PRODUCTS; i++)
        for (int grads = 0; grads < 4; grads++)
            multiply(&products[i], grads & 1, grads >> 1);
}

TEST(products_of_meta_tensors_take_no_time_with_and_without_gradients)
{
    for (int i = 0; i < NUM_PRODUCTS; i++)
        for (int grads = 0; grads < 4; grads++)
            EXPECT_WITHIN_SECONDS(second(), multiply(&products[i], grads & 1, grads >> 1));
}

TEST(neither_do_they_without_recording_and_in_inference_mode)
{
    bool before = tn_set_grad_enabled(false);
    EXPECT_WITHIN_SECONDS(second(), multiply_all());
    (void)tn_set_grad_enabled(before);
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *x = NULL, *w = NULL, *out = NULL;
    tn_tensor_opts meta = tn_opts(TN_DTYPE_F32, TN_META);
    ASSERT_OK(tn_empty(products[1].sizes[0], 3, &meta, TN_FORMAT_NONE, &x));
    ASSERT_OK(tn_empty(products[1].sizes[1], 2, &meta, TN_FORMAT_NONE, &w));
    EXPECT_WITHIN_SECONDS(second(), ASSERT_OK(tn_matmul(x, w, &out)));
    expect_sizes(out, 3, products[1].out_sizes);
    tn_inference_leave(guard);
    tn_tensor *all[] = {x, w, out};
    for (int i = 0; i < 3; i++)
        tn_tensor_unref(all[i]);
}

TEST(the_case_of_three_dimensions_records_what_it_should)
{
    tn_tensor *x = leaf(3, products[1].sizes[0], false), *w = leaf(2, products[1].sizes[1], true);
    tn_tensor *out = NULL;
    tn_node *node = NULL;
    EXPECT_WITHIN_SECONDS(second(), ASSERT_OK(tn_matmul(x, w, &out)));
    ASSERT_OK(tn_tensor_grad_fn(out, &node));
    EXPECT_STR(tn_node_name(node), "UnsafeViewBackward0");
    tn_node *mm = tn_node_edge(node, 0, NULL);
    EXPECT_STR(tn_node_name(mm), "MmBackward0");
    EXPECT(tn_node_edge(mm, 0, NULL) == NULL); /* x needs none, and w is not saved for it */
    EXPECT_STR(tn_node_name(tn_node_edge(mm, 1, NULL)), "AccumulateGrad");
    tn_tensor *all[] = {x, w, out};
    for (int i = 0; i < 3; i++)
        tn_tensor_unref(all[i]);
}

/* ---- from many threads ---- */

static void on_thread(int i, void *arg)
{
    (void)i;
    (void)arg;
    multiply_all();
}

TEST(sixty_four_threads_multiply_at_once)
{
    EXPECT_WITHIN_SECONDS(second(), run_threads(64, on_thread, NULL));
}

/* ---- inside hooks ---- */

static tn_status in_tensor_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad;
    (void)out;
    (*(int *)ctx)++;
    multiply_all();
    return TN_OK;
}

static tn_status in_node_hook(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                              tn_tensor **out)
{
    (void)node;
    (void)grads;
    (void)n;
    (void)out;
    (*(int *)ctx)++;
    multiply_all();
    return TN_OK;
}

TEST(a_hook_of_a_backward_pass_multiplies)
{
    int calls = 0;
    tn_tensor *x = leaf(3, products[1].sizes[0], true), *w = leaf(2, products[1].sizes[1], true);
    tn_tensor *out = NULL, *sum = NULL;
    tn_node *node = NULL;
    ASSERT_OK(tn_matmul(x, w, &out));
    ASSERT_OK(tn_tensor_grad_fn(out, &node));
    ASSERT_OK(tn_tensor_add_hook(out, in_tensor_hook, &calls, NULL, NULL));
    ASSERT_OK(tn_tensor_add_hook(w, in_tensor_hook, &calls, NULL, NULL));
    ASSERT_OK(tn_node_add_pre_hook(node, in_node_hook, &calls, NULL, NULL));
    ASSERT_OK(tn_sum(out, TN_DTYPE_NONE, &sum));
    EXPECT_WITHIN_SECONDS(second(), ASSERT_OK(tn_tensor_backward(sum)));
    EXPECT_EQ_INT(calls, 3);
    expect_sizes(tn_tensor_grad(w), 2, products[1].sizes[1]);
    tn_tensor *all[] = {x, w, out, sum};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

/* ---- inside saved-tensor hooks, which would be called for what they record themselves ---- */

static _Thread_local bool packing;

static void multiply_unless_packing(void)
{
    if (packing)
        return;
    packing = true;
    multiply_all();
    packing = false;
}

static tn_status pack(void *ctx, tn_tensor *t, void **out)
{
    (*(int *)ctx)++;
    multiply_unless_packing();
    *out = tn_tensor_ref(t);
    return TN_OK;
}

static tn_status unpack(void *ctx, void *packed, tn_tensor **out)
{
    (*(int *)ctx)++;
    multiply_unless_packing();
    *out = tn_tensor_ref(packed);
    return TN_OK;
}

static void drop(void *ctx, void *packed)
{
    (void)ctx;
    tn_tensor_unref(packed);
}

TEST(a_hook_of_saved_tensors_multiplies)
{
    int calls = 0;
    tn_saved_hooks hooks = {
        .size = sizeof hooks, .pack = pack, .unpack = unpack, .drop = drop, .ctx = &calls};
    ASSERT_OK(tn_saved_hooks_push(&hooks));
    EXPECT_WITHIN_SECONDS(second(), multiply(&products[1], true, true));
    EXPECT_WITHIN_SECONDS(second(), multiply(&products[4], true, true));
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT(calls >= 8); /* two saved tensors each, packed and unpacked */
}

/* ---- after fork ---- */

static int child(void *arg)
{
    (void)arg;
    multiply_all();
    if (!test_thread_sanitized()) /* it takes threads of the child for those the parent had */
        run_threads(8, on_thread, NULL);
    return 0;
}

TEST(a_child_of_fork_multiplies)
{
    multiply_all();
    EXPECT_EQ_INT(run_in_child(child, NULL, (unsigned)second()), 0);
}

static _Atomic bool stop;

/* Thread 0 forks while the others are in the middle of it. */
static void fork_among_them(int i, void *arg)
{
    (void)arg;
    if (i > 0) {
        while (!stop)
            multiply_all();
        return;
    }
    for (int n = 0; n < 5; n++)
        EXPECT_EQ_INT(run_in_child(child, NULL, (unsigned)second()), 0);
    stop = true;
}

TEST(so_does_one_whose_parent_had_threads_in_the_middle_of_it)
{
    if (test_sanitized())
        SKIP("the sanitizers' own allocator does not get over a fork among busy threads");
    stop = false;
    run_threads(5, fork_among_them, NULL);
}
