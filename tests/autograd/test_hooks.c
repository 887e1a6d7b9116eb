/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_hooks.c: which hooks run, in which order, and what they may change. */
#include "kit.h"

#include <string.h>

/* What happened, a letter each. */
static char events[64];

static void note(char what)
{
    size_t n = strlen(events);
    if (n + 1 < sizeof events)
        events[n] = what;
}

static void begin(void)
{
    memset(events, 0, sizeof events);
}

/* The context of a hook that notes a letter. */
static void *letter(char c)
{
    static char all[128];
    all[(unsigned char)c & 127] = c;
    return &all[(unsigned char)c & 127];
}

static tn_status on_grad(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad;
    (void)out;
    note(*(const char *)ctx);
    return TN_OK;
}

static tn_status twice(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    note(*(const char *)ctx);
    return tn_mul_scalar(grad, tn_int(2), out);
}

static tn_status pre(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n, tn_tensor **out)
{
    EXPECT(node == tn_current_node());
    EXPECT(n == 1 && grads[0] && !out[0]);
    note(*(const char *)ctx);
    return TN_OK;
}

static tn_status post(void *ctx, tn_node *node, tn_tensor *const *results, int64_t n_results,
                      tn_tensor *const *grads, int64_t n_grads, tn_tensor **out)
{
    (void)results;
    (void)out;
    EXPECT(node && n_grads == 1 && grads[0] && n_results == tn_node_num_edges(node));
    note(*(const char *)ctx);
    return TN_OK;
}

static tn_status accumulated(void *ctx, tn_tensor *t)
{
    EXPECT(tn_tensor_grad(t) != NULL);
    note(*(const char *)ctx);
    return TN_OK;
}

static tn_status done(void *ctx)
{
    note(*(const char *)ctx);
    return TN_OK;
}

static void count_release(void *ctx)
{
    ++*(int *)ctx;
}

TEST(hooks_of_one_node_run_in_the_documented_order)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *z = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_scale(a, &z));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(a, &node));
    ASSERT_OK(tn_node_add_post_hook(node, post, letter('4'), NULL, NULL));
    ASSERT_OK(tn_node_add_pre_hook(node, pre, letter('3'), NULL, NULL));
    ASSERT_OK(tn_tensor_retain_grad(a));
    ASSERT_OK(tn_tensor_add_hook(a, on_grad, letter('1'), NULL, NULL));
    ASSERT_OK(tn_tensor_add_hook(a, twice, letter('2'), NULL, NULL));
    tn_node *leaf = tn_node_edge(node, 0, NULL);
    ASSERT_OK(tn_node_add_post_hook(leaf, post, letter('8'), NULL, NULL));
    ASSERT_OK(tn_node_add_pre_hook(leaf, pre, letter('6'), NULL, NULL));
    ASSERT_OK(tn_tensor_add_accumulated_hook(x, accumulated, letter('7'), NULL, NULL));
    ASSERT_OK(tn_tensor_add_hook(x, on_grad, letter('5'), NULL, NULL));
    begin();
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_STR(events, "12345678");
    EXPECT_NEAR(kit_grad(a, 0), 4, 0); /* kept after the hooks that change it */
    EXPECT_NEAR(kit_grad(x, 0), 8, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(z);
}

static tn_status nothing_comes(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                               tn_tensor **out)
{
    EXPECT(node && n == 1 && grads[0]);
    out[0] = TN_NO_GRADIENT;
    return *(const tn_status *)ctx;
}

static tn_status nothing_leaves(void *ctx, tn_node *node, tn_tensor *const *results,
                                int64_t n_results, tn_tensor *const *grads, int64_t n_grads,
                                tn_tensor **out)
{
    (void)ctx;
    EXPECT(node && n_results == 2 && n_grads == 1 && grads[0] && results[0] && results[1]);
    out[1] = TN_NO_GRADIENT;
    return TN_OK;
}

TEST(a_hook_of_a_node_can_make_a_gradient_undefined)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *z = NULL;
    tn_node *node = NULL;
    ASSERT_OK(tn_mul(x, y, &z));
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    ASSERT_OK(tn_node_add_post_hook(node, nothing_leaves, NULL, NULL, NULL));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_NEAR(kit_grad(x, 0), 5, 0);
    EXPECT(tn_tensor_grad(y) == NULL);
    tn_tensor_unref(z);
    ASSERT_OK(tn_mul(y, y, &z));
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    tn_status said = TN_OK;
    ASSERT_OK(tn_node_add_pre_hook(node, nothing_comes, &said, NULL, NULL));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT(tn_tensor_grad(y) == NULL);
    tn_tensor_unref(z);
    ASSERT_OK(tn_mul(y, y, &z));
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    said = TN_INVALID; /* what a hook that fails has set is dropped */
    ASSERT_OK(tn_node_add_pre_hook(node, nothing_comes, &said, NULL, NULL));
    EXPECT(tn_tensor_backward(z) == TN_INVALID);
    EXPECT(tn_tensor_grad(y) == NULL);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(hooks_of_a_requested_input_change_what_grad_gives)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *z = NULL, *out[2];
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_scale(a, &z));
    ASSERT_OK(tn_tensor_add_hook(a, twice, letter('a'), NULL, NULL));
    ASSERT_OK(tn_tensor_add_hook(x, twice, letter('x'), NULL, NULL));
    tn_tensor *inputs[] = {a, x};
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    begin();
    EXPECT_OK(tn_grad(&z, 1, inputs, 2, NULL, &opts, out));
    EXPECT_STR(events, "ax");
    EXPECT_NEAR(kit_at(out[0], 0), 4, 0);
    EXPECT_NEAR(kit_at(out[1], 0), 16, 0);
    tn_tensor_unref(out[0]);
    tn_tensor_unref(out[1]);
    begin();
    EXPECT_OK(tn_grad(&z, 1, &a, 1, NULL, &opts, out)); /* its node does not run, its hook does */
    EXPECT_STR(events, "a");
    EXPECT_NEAR(kit_at(out[0], 0), 4, 0);
    tn_tensor_unref(out[0]);
    tn_tensor_unref(x);
    tn_tensor_unref(a);
    tn_tensor_unref(z);
}

TEST(kept_gradients_are_copies_and_then_sums)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *z = NULL;
    EXPECT_OK(tn_tensor_retain_grad(x)); /* a leaf has its gradient anyway */
    EXPECT(!tn_tensor_retains_grad(x));
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_scale(a, &z));
    ASSERT_OK(tn_tensor_retain_grad(a));
    ASSERT_OK(tn_tensor_retain_grad(a)); /* twice is once */
    EXPECT(tn_tensor_retains_grad(a));
    EXPECT_OK(tn_tensor_backward(z));
    tn_tensor *first = tn_tensor_ref(tn_tensor_grad(a));
    EXPECT_NEAR(kit_at(first, 0), 2, 0);
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_NEAR(kit_at(first, 0), 2, 0);
    EXPECT_NEAR(kit_grad(a, 0), 4, 0);
    EXPECT(tn_tensor_grad(a) != first);
    tn_tensor_unref(first);
    tn_tensor *plain = kit_vector(1, 1);
    EXPECT_FAIL(TN_INVALID, "can't retain_grad on Tensor that has requires_grad=False",
                tn_tensor_retain_grad(plain));
    tn_tensor_unref(plain);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
    tn_tensor_unref(a);
}

TEST(a_new_history_takes_kept_gradients_along_and_leaves_hooks_behind)
{
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *a = NULL, *old = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_scale(a, &old)); /* of the value that a was */
    ASSERT_OK(tn_tensor_retain_grad(a));
    ASSERT_OK(tn_tensor_add_hook(a, on_grad, letter('h'), NULL, NULL));
    ASSERT_OK(kit_record(&kit_scale_class, &y, 1, a));
    begin();
    EXPECT_OK(tn_tensor_backward(a));
    EXPECT_STR(events, "");
    EXPECT_NEAR(kit_grad(a, 0), 1, 0);
    EXPECT_NEAR(kit_grad(y, 0), 2, 0);
    EXPECT_OK(tn_tensor_backward(old));
    EXPECT_STR(events, "h");
    EXPECT_NEAR(kit_grad(a, 0), 1, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(a);
    tn_tensor_unref(old);
}

/* ---- removing ---- */

TEST(a_removed_hook_runs_no_more_and_is_released)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(kit_scale(x, &z));
    tn_hook *on_leaf = NULL, *on_result = NULL, *forgotten = NULL;
    int released = 0;
    begin();
    ASSERT_OK(tn_tensor_add_hook(x, twice, letter('x'), NULL, &on_leaf));
    ASSERT_OK(tn_tensor_add_hook(z, twice, letter('z'), NULL, &on_result));
    ASSERT_OK(tn_tensor_add_hook(x, on_grad, &released, count_release, &forgotten));
    released = '-';
    tn_hook_unref(forgotten);
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_STR(events, "zx-");
    tn_hook_remove(on_leaf);
    tn_hook_remove(on_result);
    begin();
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_STR(events, "-");
    tn_hook_remove(NULL);
    tn_hook_unref(NULL);
    tn_tensor_unref(z);
    EXPECT_EQ_INT(released, '-');
    tn_tensor_unref(x);
    EXPECT_EQ_INT(released, '-' + 1);
    EXPECT_EQ_INT(tni_test_live, before);
}

static tn_hook *to_remove;
static tn_status remove_it(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad;
    (void)out;
    note(*(const char *)ctx);
    tn_hook_remove(to_remove);
    to_remove = NULL;
    return TN_OK;
}

TEST(a_hook_may_remove_itself_and_others_while_it_runs)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(kit_scale(x, &z));
    ASSERT_OK(tn_tensor_add_hook(x, remove_it, letter('s'), NULL, &to_remove));
    begin();
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_STR(events, "s");
    ASSERT_OK(tn_tensor_add_hook(x, remove_it, letter('r'), NULL, NULL));
    ASSERT_OK(tn_tensor_add_hook(x, on_grad, letter('v'), NULL, &to_remove));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_STR(events, "sr"); /* v was removed before its turn */
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(a_handle_outlives_what_the_hook_was_on)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(kit_scale(x, &z));
    tn_hook *on_leaf = NULL, *on_result = NULL;
    ASSERT_OK(tn_tensor_add_hook(x, twice, letter('x'), NULL, &on_leaf));
    ASSERT_OK(tn_tensor_add_hook(z, twice, letter('z'), NULL, &on_result));
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_hook_remove(on_leaf);
    tn_hook_remove(on_result);
}

/* ---- what is refused ---- */

static tn_status other_shape(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    (void)grad;
    *out = kit_vector(2, 1);
    return TN_OK;
}

static tn_status other_type(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    return tn_to_dtype(grad, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, out);
}

TEST(a_hook_cannot_change_what_kind_of_tensor_a_gradient_is)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(kit_scale(x, &z));
    tn_hook *hook = NULL;
    ASSERT_OK(tn_tensor_add_hook(x, other_shape, NULL, NULL, &hook));
    EXPECT_FAIL(TN_INVALID, "has changed the size of value", tn_tensor_backward(z));
    tn_hook_remove(hook);
    ASSERT_OK(tn_tensor_add_hook(z, other_type, NULL, NULL, &hook));
    EXPECT_FAIL(TN_INVALID, "has changed the type of value (was float32 got float64)",
                tn_tensor_backward(z));
    tn_hook_remove(hook);
    EXPECT(tn_tensor_grad(x) == NULL);
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_NEAR(kit_grad(x, 0), 2, 0);
    EXPECT_FAIL(TN_INVALID, "post accumulate grad hooks cannot be registered on non-leaf tensors",
                tn_tensor_add_accumulated_hook(z, accumulated, NULL, NULL, NULL));
    tn_tensor *plain = kit_vector(1, 1);
    EXPECT_FAIL(TN_INVALID, "cannot register a hook on a tensor that doesn't require gradient",
                tn_tensor_add_hook(plain, on_grad, NULL, NULL, NULL));
    tn_tensor_unref(plain);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
    tn_clear_error();
    EXPECT_EQ_INT(tni_test_live, before);
}

/* ---- callbacks ---- */

static tn_status queue_two(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    (void)grad;
    (void)out;
    EXPECT(!tn_grad_enabled());
    TN_TRY(tn_queue_callback(done, letter('1'), NULL));
    return tn_queue_callback(done, letter('2'), NULL);
}

TEST(callbacks_run_after_the_last_node_in_order)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(kit_scale(x, &z));
    ASSERT_OK(tn_tensor_add_hook(z, queue_two, NULL, NULL, NULL));
    ASSERT_OK(tn_tensor_add_hook(x, on_grad, letter('x'), NULL, NULL));
    begin();
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_STR(events, "x12");
    EXPECT(tn_grad_enabled());
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

/* ---- is it on the way of this pass? ---- */

static struct {
    tn_hook *leaf, *result, *elsewhere;
    bool saw_leaf, saw_result, saw_elsewhere;
} asked;

static tn_status ask(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx, (void)grad, (void)out;
    asked.saw_leaf = tn_hook_in_pass(asked.leaf);
    asked.saw_result = tn_hook_in_pass(asked.result);
    asked.saw_elsewhere = tn_hook_in_pass(asked.elsewhere);
    return TN_OK;
}

static tn_status nothing(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx, (void)grad, (void)out;
    return TN_OK;
}

TEST(a_hook_knows_whether_the_pass_comes_by)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = NULL, *c = NULL, *end = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_scale(a, &b));
    ASSERT_OK(kit_scale(x, &c));
    ASSERT_OK(tn_tensor_add_hook(x, nothing, NULL, NULL, &asked.leaf));
    ASSERT_OK(tn_tensor_add_hook(a, nothing, NULL, NULL, &asked.result));
    ASSERT_OK(tn_tensor_add_hook(c, nothing, NULL, NULL, &asked.elsewhere));
    ASSERT_OK(tn_tensor_add_hook(b, ask, NULL, NULL, NULL));
    EXPECT(!tn_hook_in_pass(asked.leaf) && !tn_hook_in_pass(asked.result));
    tn_tensor_unref(a); /* the node stays */
    ASSERT_OK(kit_scale(b, &end));
    ASSERT_OK(tn_tensor_backward(end));
    EXPECT(asked.saw_leaf && asked.saw_result && !asked.saw_elsewhere);
    tn_tensor_unref(end);
    tn_tensor_unref(c);
    tn_tensor_unref(b);
    tn_tensor_unref(x);
    EXPECT(!tn_hook_in_pass(asked.elsewhere));
    tn_hook_unref(asked.leaf);
    tn_hook_unref(asked.result);
    tn_hook_unref(asked.elsewhere);
}

TEST(a_node_is_a_tensors_own_while_nobody_else_holds_either)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = NULL;
    ASSERT_OK(kit_scale(x, &a));
    tn_node *node = tn_tensor_own_node(a);
    EXPECT(node && tn_tensor_own_node(x) == NULL);
    EXPECT(tn_node_ref(node) == node && tn_tensor_own_node(a) == NULL);
    tn_node_unref(node);
    EXPECT(tn_tensor_ref(a) == a && tn_tensor_own_node(a) == NULL);
    tn_tensor_unref(a);
    EXPECT(tn_tensor_own_node(a) == node);
    ASSERT_OK(kit_scale(a, &b)); /* its node leads to ours */
    EXPECT(tn_tensor_own_node(a) == NULL);
    tn_tensor_unref(b);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

typedef struct hung {
    int visited, released;
} hung;

static tn_status hung_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx, (void)grad, (void)out;
    return TN_OK;
}

static tn_status hung_after(void *ctx, tn_tensor *t)
{
    (void)ctx, (void)t;
    return TN_OK;
}

static void hung_release(void *ctx)
{
    ((hung *)ctx)->released++;
}

static int hung_visit(void *ctx, void *arg)
{
    ((hung *)ctx)->visited++;
    return *(int *)arg;
}

TEST(hooks_of_a_leaf_are_its_owners_while_nobody_else_holds_it)
{
    tn_tensor *x = kit_leaf(1, 3), *y = NULL;
    hung a = {0}, b = {0};
    tn_hook *handle = NULL;
    int go_on = 0, stop = 7;
    EXPECT_EQ_INT(tn_tensor_visit_hooks(x, hung_release, hung_visit, &stop), 0);
    tn_tensor_clear_hooks(x);
    ASSERT_OK(tn_tensor_add_hook(x, hung_hook, &a, hung_release, &handle));
    ASSERT_OK(tn_tensor_add_accumulated_hook(x, hung_after, &b, hung_release, NULL));
    ASSERT_OK(tn_tensor_add_hook(x, hung_hook, NULL, NULL, NULL)); /* of another kind */
    EXPECT_EQ_INT(tn_tensor_visit_hooks(x, hung_release, hung_visit, &go_on), 0);
    EXPECT(a.visited == 1 && b.visited == 1);
    EXPECT_EQ_INT(tn_tensor_visit_hooks(x, hung_release, hung_visit, &stop), 7);
    EXPECT(a.visited == 2 && b.visited == 1);
    ASSERT_OK(kit_scale(x, &y)); /* its graph holds the leaf */
    EXPECT_EQ_INT(tn_tensor_visit_hooks(x, hung_release, hung_visit, &stop), 0);
    tn_tensor_clear_hooks(x);
    EXPECT(a.visited == 2 && b.visited == 1 && b.released == 0);
    tn_tensor_unref(y);
    tn_tensor_clear_hooks(x);
    EXPECT(b.released == 1 && a.released == 0);
    EXPECT_EQ_INT(tn_tensor_visit_hooks(x, hung_release, hung_visit, &stop), 0);
    tn_hook_remove(handle);
    EXPECT(a.released == 1 && a.visited == 2 && b.visited == 1);
    tn_tensor_unref(x);
}

static tn_status hung_pre(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                          tn_tensor **out)
{
    (void)ctx, (void)node, (void)grads, (void)n, (void)out;
    return TN_OK;
}

TEST(hooks_of_a_node_are_its_owners_while_nobody_else_holds_it)
{
    tn_tensor *x = kit_leaf(1, 3), *y = NULL;
    hung a = {0}, b = {0};
    tn_hook *handle = NULL;
    tn_node *node = NULL;
    int go_on = 0, stop = 7;
    ASSERT_OK(kit_scale(x, &y));
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    EXPECT_EQ_INT(tn_node_visit_hooks(node, hung_release, hung_visit, &stop), 0);
    tn_node_clear_hooks(node);
    ASSERT_OK(tn_node_add_pre_hook(node, hung_pre, &a, hung_release, &handle));
    ASSERT_OK(tn_tensor_add_hook(y, hung_hook, &b, hung_release, NULL));
    EXPECT_EQ_INT(tn_node_visit_hooks(node, hung_release, hung_visit, &go_on), 0);
    EXPECT(a.visited == 1 && b.visited == 1);
    tn_node_ref(node);
    EXPECT_EQ_INT(tn_node_visit_hooks(node, hung_release, hung_visit, &stop), 0);
    tn_node_clear_hooks(node);
    EXPECT(a.visited == 1 && a.released == 0 && b.released == 0);
    tn_node_unref(node);
    EXPECT_EQ_INT(tn_node_visit_hooks(node, hung_release, hung_visit, &stop), 7);
    tn_node_clear_hooks(node);
    EXPECT(b.released == 1 && a.released == 0);
    tn_hook_remove(handle);
    EXPECT_EQ_INT(a.released, 1);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tn_node_visit_hooks(NULL, hung_release, hung_visit, &stop), 0);
    tn_node_clear_hooks(NULL);
}

/* ---- scopes ---- */

static tn_status leaves_scope(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad;
    tn_scope *mine = NULL;
    tn_status status = tn_scope_enter(&mine);
    if (status != TN_OK)
        return status;
    EXPECT_FAIL(TN_INVALID,
                "tn_scope_leave: the scope is around the backward pass or function that runs",
                tn_scope_leave(ctx));
    *out = tn_scope_keep(tnx_mul_scalar(grad, tn_int(2)));
    return tn_scope_leave(mine);
}

TEST(what_a_pass_calls_leaves_no_scope_around_it)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_scope *around = NULL;
    ASSERT_OK(tn_scope_enter(&around));
    tn_tensor *x = tn_scope_own(kit_leaf(2, 3)), *seed = tn_scope_own(kit_vector(2, 1));
    tn_tensor *y = tnx_mul(x, x);
    ASSERT_OK(tn_tensor_add_hook(y, leaves_scope, around, NULL, NULL));
    EXPECT_OK(tn_backward(&y, 1, &seed, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 12, 0);
    EXPECT_OK(tn_scope_leave(around));
    EXPECT_EQ_INT(tni_test_live, before);
}
