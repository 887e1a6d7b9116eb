/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_saved.c: values kept for the backward pass: the same when they come back, or
 * an error that says what happened. */
#include "kit.h"

#include "autograd/saved.h"
#include "core/scope.h"

#include <stdatomic.h>

/* ---- a node that saves one tensor ---- */

static tn_status keep_apply(tni_backward *b)
{
    tn_tensor *t = tni_unpack(b, 0);
    b->results[0] = t ? tnx_mul(b->grads[0], t) : NULL;
    return tni_scope_settle();
}

static const tni_node_class keep_class = {
    .name = "KeepBackward0", .apply = keep_apply, .data_nbytes = sizeof(tni_saved), .n_saved = 1};

static tni_node *keeper(tn_tensor *t)
{
    tni_node *node = NULL;
    ASSERT_OK(tni_node_new(&keep_class, 1, 1, &node));
    if (t)
        ASSERT_OK(tni_saved_fill(node->data, t, false, false));
    return node;
}

/* @p t becomes a result of a node that saves it. */
static tni_node *keeper_of_result(tn_tensor *from, tn_tensor *t)
{
    tni_node *node = keeper(NULL);
    tni_edge edge;
    ASSERT_OK(tni_gradient_edge(from, &edge));
    tni_node_set_edge(node, 0, edge);
    tni_node_unref(edge.node);
    ASSERT_OK(tni_node_set_input(node, 0, t));
    ASSERT_OK(tni_set_grad_fn(t, node, 0));
    ASSERT_OK(tni_saved_fill(node->data, t, true, false));
    return node;
}

static tn_status unpack(tni_node *node, tn_tensor **out)
{
    return tni_saved_unpack(node, node->data, out);
}

static void write_unrecorded(tn_tensor *t)
{
    bool grad = tn_set_grad_enabled(false);
    ASSERT_OK(tn_zero_(t));
    tn_set_grad_enabled(grad);
}

/* The message is exactly this. */
static void expect_message(const char *text, tn_status status, int line)
{
    test_eq_int(status, TN_INVALID, "status", "TN_INVALID", __FILE__, line);
    test_str(tn_last_error(), text, "message", __FILE__, line);
}
#define EXPECT_MESSAGE(text, expression) expect_message((text), (expression), __LINE__)

#define WRITTEN                                                                             \
    "one of the variables needed for gradient computation has been modified by an inplace " \
    "operation: "
#define HINT                                                                                      \
    " Hint: enable anomaly detection to find the operation that failed to compute its gradient, " \
    "with torch.autograd.set_detect_anomaly(True, check_nan=False)."

/* ---- what comes back ---- */

TEST(a_saved_argument_comes_back_itself)
{
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *got = NULL;
    ASSERT_OK(kit_scale(x, &a));
    tn_tensor *saved[] = {x, a};
    for (int i = 0; i < 2; i++) {
        tni_node *node = keeper(saved[i]);
        ASSERT_OK(unpack(node, &got));
        EXPECT(got == saved[i]);
        tn_tensor_unref(got);
        ASSERT_OK(unpack(node, &got)); /* any number of times */
        tn_tensor_unref(got);
        tni_node_unref(node);
    }
    tni_node *node = keeper(NULL);
    got = x;
    ASSERT_OK(unpack(node, &got));
    EXPECT(got == NULL);
    tni_node_unref(node);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

TEST(a_saved_result_comes_back_with_its_history_and_makes_no_cycle)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(2, 1), *y = kit_vector(2, 7), *got = NULL;
    tni_node *node = keeper_of_result(x, y);
    ASSERT_OK(unpack(node, &got));
    EXPECT(got != y && tn_tensor_shares_storage(got, y) && !tn_tensor_is_view(got));
    tn_node *fn = NULL;
    ASSERT_OK(tn_tensor_grad_fn(got, &fn));
    EXPECT(fn == node);
    EXPECT(tn_tensor_requires_grad(got));
    tn_tensor_unref(got);
    tni_node_unref(node);
    tn_tensor_unref(y); /* the last one that keeps the node */
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(inference_tensors_cannot_be_saved)
{
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *t = kit_vector(2, 1);
    tn_inference_leave(guard);
    tni_node *node = keeper(NULL);
    EXPECT_MESSAGE("Inference tensors cannot be saved for backward. Please do not use Tensors "
                   "created in inference mode in computation tracked by autograd. To work around "
                   "this, you can make a clone to get a normal tensor and use it in autograd, or "
                   "use `torch.no_grad()` instead of `torch.inference_mode()`.",
                   tni_saved_fill(node->data, t, false, false));
    tni_node_unref(node);
    tn_tensor_unref(t);
}

/* ---- what does not ---- */

TEST(a_saved_value_that_was_written_is_refused)
{
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *y = kit_vector(3, 1), *got = NULL;
    tni_node *node = keeper(x);
    write_unrecorded(x);
    EXPECT_MESSAGE(WRITTEN
                   "[torch.FloatTensor [2]] is at version 1; expected version 0 instead." HINT,
                   unpack(node, &got));
    tni_node_unref(node);
    /* of a result of others: the node that it is a result of now */
    ASSERT_OK(kit_scale(x, &a));
    node = keeper(a);
    write_unrecorded(a);
    write_unrecorded(a);
    EXPECT_MESSAGE(WRITTEN "[torch.FloatTensor [2]], which is output 0 of KitScale, is at version "
                           "2; expected version 0 instead." HINT,
                   unpack(node, &got));
    tni_node_unref(node);
    /* of its own result: itself */
    node = keeper_of_result(x, y);
    write_unrecorded(y);
    EXPECT_MESSAGE(WRITTEN "[torch.FloatTensor [3]], which is output 0 of KeepBackward0, is at "
                           "version 1; expected version 0 instead." HINT,
                   unpack(node, &got));
    EXPECT(got == NULL);
    uint32_t old = tn_set_anomaly_mode(TN_ANOMALY_TRACE);
    EXPECT_MESSAGE(WRITTEN
                   "[torch.FloatTensor [3]], which is output 0 of KeepBackward0, is at "
                   "version 1; expected version 0 instead. Hint: the backtrace further "
                   "above shows the operation that failed to compute its gradient. The "
                   "variable in question was changed in there or anywhere later. Good luck!",
                   unpack(node, &got));
    (void)tn_set_anomaly_mode(old);
    tni_node_unref(node);
    tn_tensor_unref(y);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

TEST(the_message_names_dtype_and_device)
{
    static const struct {
        tn_dtype dtype;
        tn_device device;
        const char *text;
    } kinds[] = {
        {TN_DTYPE_I64, TN_CPU, "[torch.LongTensor [2, 3]] is at"},
        {TN_DTYPE_BF16, TN_CPU, "[CPUBFloat16Type [2, 3]] is at"},
        {TN_DTYPE_BOOL, TN_CPU, "[CPUBoolType [2, 3]] is at"},
        {TN_DTYPE_F64, TN_META, "[MetaDoubleType [2, 3]] is at"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        tn_tensor_opts opts = tn_opts(kinds[i].dtype, kinds[i].device);
        tn_tensor *t = NULL, *got = NULL;
        ASSERT_OK(tn_zeros((int64_t[]){2, 3}, 2, &opts, &t));
        tni_node *node = keeper(t);
        ASSERT_OK(tn_zero_(t));
        EXPECT_FAIL(TN_INVALID, kinds[i].text, unpack(node, &got));
        tni_node_unref(node);
        tn_tensor_unref(t);
    }
}

TEST(a_released_value_is_gone)
{
    tn_tensor *x = kit_leaf(2, 1), *got = NULL;
    tni_node *node = keeper(x);
    tni_node_release(node);
    EXPECT_MESSAGE(kit_second_time, unpack(node, &got));
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    tni_node_unref(node);
    tn_tensor_unref(x);
}

TEST(a_saved_value_that_was_taken_out_of_its_graph_is_refused)
{
    tn_tensor *x = kit_leaf(1, 1), *a = NULL, *got = NULL, *z = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(kit_mul(a, x, &z));
    tni_node *node = keeper(a);
    tni_clear_history(a);
    EXPECT_MESSAGE("Trying to use a saved tensor that has been detached in-place, i.e. with "
                   ".detach_().This is not supported, please use out-of-place `.detach()` instead",
                   tn_tensor_backward(z));
    tn_tensor_unref(z);
    /* To who is no formula it is a tensor without history. */
    EXPECT_OK(unpack(node, &got));
    EXPECT(got == a);
    tn_tensor_unref(got);
    tni_node_unref(node);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

/* A failure sticks to the scope of the turn, and the pass reports it. */
TEST(a_pass_reports_what_could_not_be_unpacked)
{
    tn_tensor *x = kit_leaf(2, 1), *y = kit_vector(2, 1), *seed = kit_vector(2, 1);
    tni_node *node = keeper_of_result(x, y);
    tn_backward_opts keep = TN_BACKWARD_OPTS_INIT;
    keep.retain_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_backward(&y, 1, &seed, &keep));
    EXPECT_NEAR(kit_grad(x, 0), 1, 0);
    write_unrecorded(y);
    EXPECT_FAIL(TN_INVALID, WRITTEN, tn_backward(&y, 1, &seed, &keep));
    tni_node_unref(node);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    tn_tensor_unref(seed);
}

/* ---- threads ---- */

typedef struct race {
    tni_node *node;
    _Atomic int found, gone;
} race;

static void unpack_or_release(int i, void *arg)
{
    race *r = arg;
    for (int k = 0; k < 200; k++) {
        tn_tensor *got = NULL;
        tn_status status = unpack(r->node, &got);
        if (status == TN_OK)
            r->found++;
        else
            r->gone++;
        tn_tensor_unref(got);
        if (i == 0 && k == 100)
            tni_node_release(r->node);
    }
}

TEST(unpacking_while_another_thread_releases_is_safe)
{
    tn_tensor *x = kit_leaf(2, 1);
    race r = {.node = keeper(x)};
    run_threads(8, unpack_or_release, &r);
    EXPECT_EQ_INT(r.found + r.gone, 1600);
    EXPECT(r.found >= 101 && r.gone >= 99);
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    tni_node_unref(r.node);
    tn_tensor_unref(x);
}

TEST(saving_leaks_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(2, 1), *y = kit_vector(2, 1);
    tni_node *node = keeper_of_result(x, y);
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tni_node *other = NULL;
        tn_tensor *got = NULL;
        rc = tni_node_new(&keep_class, 1, 1, &other);
        if (rc == TN_OK)
            rc = tni_saved_fill(other->data, y, true, true);
        if (rc == TN_OK)
            rc = unpack(other, &got);
        tn_tensor_unref(got);
        tni_node_unref(other);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    tni_node_unref(node);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
}
