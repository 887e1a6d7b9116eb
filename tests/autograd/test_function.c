/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_function.c: functions with a gradient of their own. */
#include "kit.h"

#include "autograd/inplace.h"
#include "tenon/function.h"

#include <stdio.h>

static const char *const in_custom_function =
    " This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function.";

/* ---- exp, which saves its result ---- */

static tn_status exp_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                             int n_out)
{
    (void)n_in;
    (void)n_out;
    EXPECT(!tn_grad_enabled());
    EXPECT(tn_function_needs_input_grad(ctx, 0) == tn_tensor_requires_grad(in[0]));
    tn_status status = tn_exp(in[0], &out[0]);
    return status == TN_OK ? tn_function_save(ctx, out, 1) : status;
}

static tn_status exp_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                              tn_tensor **out, int n_out)
{
    EXPECT_EQ_INT(n_grads, 1);
    EXPECT_EQ_INT(n_out, 1);
    EXPECT(tn_function_needs_input_grad(ctx, 0) && !tn_function_needs_input_grad(ctx, 1));
    EXPECT_EQ_INT(tn_function_saved_count(ctx), 1);
    tn_tensor *y = NULL, *none = NULL;
    tn_status status = tn_function_saved(ctx, 0, &y);
    if (status != TN_OK)
        return status;
    EXPECT_FAIL(TN_INDEX, "there is no saved tensor 1: ExpBackward saved 1",
                tn_function_saved(ctx, 1, &none));
    EXPECT_STR(kit_node_name(y), "ExpBackward");
    status = tn_mul(grads[0], y, &out[0]);
    tn_tensor_unref(y);
    return status;
}

static const tn_function exp_function = TN_FUNCTION_INIT("Exp", exp_forward, exp_backward);

TEST(a_function_has_the_gradient_that_it_says)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_tensor *x = kit_leaf(3, 0.5f), *y = NULL;
    ASSERT_OK(tn_function_apply(&exp_function, NULL, &x, 1, &y, 1));
    EXPECT_STR(kit_node_name(y), "ExpBackward");
    EXPECT(tn_tensor_requires_grad(y));
    tn_backward_opts keep = TN_BACKWARD_OPTS_INIT;
    keep.retain_graph = TN_BOOL_TRUE;
    EXPECT_OK(kit_backward_with(y, 2, &keep));
    EXPECT_NEAR(kit_grad(x, 1), 2 * 1.6487212707, 1e-6);
    EXPECT_OK(kit_backward_with(y, 1, NULL));
    EXPECT_NEAR(kit_grad(x, 2), 3 * 1.6487212707, 1e-6);
    EXPECT_FAIL(TN_INVALID, kit_second_time, kit_backward_with(y, 1, NULL));
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(nothing_is_recorded_without_need)
{
    tn_tensor *x = kit_leaf(3, 1), *plain = kit_vector(3, 1), *y = NULL;
    ASSERT_OK(tn_function_apply(&exp_function, NULL, &plain, 1, &y, 1));
    EXPECT(!tn_tensor_requires_grad(y));
    tn_tensor_unref(y);
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_function_apply(&exp_function, NULL, &x, 1, &y, 1));
    tn_set_grad_enabled(true);
    EXPECT(!tn_tensor_requires_grad(y));
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    tn_tensor_unref(plain);
}

TEST(a_saved_result_that_was_written_is_noticed)
{
    tn_tensor *x = kit_leaf(3, 1), *y = NULL;
    ASSERT_OK(tn_function_apply(&exp_function, NULL, &x, 1, &y, 1));
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_zero_(y));
    tn_set_grad_enabled(true);
    EXPECT_FAIL(TN_INVALID,
                "one of the variables needed for gradient computation has been modified by an "
                "inplace operation: [torch.FloatTensor [3]], which is output 0 of ExpBackward, is "
                "at version 1; expected version 0 instead. Hint: enable anomaly detection to find "
                "the operation that failed to compute its gradient, with "
                "torch.autograd.set_detect_anomaly(True, check_nan=False).",
                kit_backward_with(y, 1, NULL));
    tn_tensor_unref(y);
    tn_tensor_unref(x);
}

/* ---- state, arguments, several results ---- */

typedef struct pair_state {
    double factor;
    int *destroyed;
} pair_state;

static void pair_destroy(void *state)
{
    ++*((pair_state *)state)->destroyed;
}

/* a*factor, an integer, and b*factor which has no gradient. */
static tn_status pair_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    EXPECT_EQ_INT(n_in, 2);
    EXPECT_EQ_INT(n_out, 4);
    pair_state *state = tn_function_state(ctx);
    EXPECT(state->factor == 0); /* zeroed */
    *state = *(pair_state *)tn_function_args(ctx);
    tn_status status = tn_mul_scalar(in[0], tn_float(state->factor), &out[0]);
    if (status == TN_OK)
        status = tn_gt_scalar(in[0], tn_float(0), &out[1]);
    if (status == TN_OK)
        status = tn_mul_scalar(in[0], tn_float(state->factor), &out[2]);
    return status == TN_OK ? tn_function_mark_non_differentiable(ctx, &out[2], 1) : status;
}

static bool seen_zeros, seen_null;

static tn_status pair_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                               tn_tensor **out, int n_out)
{
    EXPECT_EQ_INT(n_grads, 4);
    EXPECT_EQ_INT(n_out, 2);
    pair_state *state = tn_function_state(ctx);
    EXPECT(tn_function_args(ctx) == NULL);
    seen_zeros = grads[2] && kit_at(grads[2], 0) == 0.f && grads[1] &&
                 tn_tensor_dtype(grads[1]) == TN_DTYPE_BOOL && grads[3] == NULL;
    seen_null = !grads[1] && !grads[2] && !grads[3];
    return tn_mul_scalar(grads[0], tn_float(state->factor), &out[0]);
}

TEST(each_call_has_a_state_and_gradients_that_did_not_come_are_zeros)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    int destroyed = 0;
    pair_state args = {3, &destroyed};
    tn_function pair = TN_FUNCTION_INIT("Pair", pair_forward, pair_backward);
    pair.state_size = sizeof(pair_state);
    pair.state_destroy = pair_destroy;
    tn_tensor *x = kit_leaf(2, 1), *in[] = {x, NULL}, *out[4];
    ASSERT_OK(tn_function_apply(&pair, &args, in, 2, out, 4));
    EXPECT(tn_tensor_requires_grad(out[0]) && !tn_tensor_requires_grad(out[1]) &&
           !tn_tensor_requires_grad(out[2]) && out[3] == NULL);
    EXPECT_OK(kit_backward_with(out[0], 1, NULL));
    EXPECT(seen_zeros);
    EXPECT_NEAR(kit_grad(x, 0), 3, 0);
    EXPECT_OK(kit_backward_with(out[0], 1, NULL)); /* it saved nothing: a second time is fine */
    EXPECT_EQ_INT(destroyed, 0);
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(out[i]);
    EXPECT_EQ_INT(destroyed, 1);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

static tn_status null_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    tn_function_set_materialize_grads(ctx, false);
    return pair_forward(ctx, in, n_in, out, n_out);
}

TEST(gradients_that_did_not_come_stay_none_when_that_is_wanted)
{
    int destroyed = 0;
    pair_state args = {3, &destroyed};
    tn_function pair = TN_FUNCTION_INIT("Pair", null_forward, pair_backward);
    pair.state_size = sizeof(pair_state);
    tn_tensor *x = kit_leaf(2, 1), *in[] = {x, NULL}, *out[4];
    ASSERT_OK(tn_function_apply(&pair, &args, in, 2, out, 4));
    EXPECT_OK(kit_backward_with(out[0], 1, NULL));
    EXPECT(seen_null);
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(out[i]);
    tn_tensor_unref(x);
}

static tn_status both_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                               tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)n_grads;
    for (int i = 0; i < n_out; i++)
        out[i] = tn_tensor_ref(grads[0]);
    return TN_OK;
}

TEST(a_gradient_for_no_input_is_refused)
{
    int destroyed = 0;
    pair_state args = {3, &destroyed};
    tn_function bad = TN_FUNCTION_INIT("Bad", pair_forward, both_backward);
    bad.state_size = sizeof(pair_state);
    tn_tensor *x = kit_leaf(2, 1), *in[] = {x, NULL}, *out[4];
    ASSERT_OK(tn_function_apply(&bad, &args, in, 2, out, 4));
    EXPECT_FAIL(TN_INVALID,
                "function BadBackward returned a gradient different than None at position 2, but "
                "the corresponding forward input was not a Variable",
                kit_backward_with(out[0], 1, NULL));
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(out[i]);
    tn_tensor_unref(x);
}

/* ---- inputs that come back ---- */

static tn_status same_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    (void)ctx;
    (void)n_in;
    (void)n_out;
    out[0] = tn_tensor_ref(in[0]);
    return TN_OK;
}

static tn_status triple_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                                 tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)n_grads;
    (void)n_out;
    return tn_mul_scalar(grads[0], tn_float(3), &out[0]);
}

TEST(an_input_that_is_returned_is_a_view_with_the_gradient_of_the_function)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_function same = TN_FUNCTION_INIT("Id", same_forward, triple_backward);
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *y = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(tn_function_apply(&same, NULL, &a, 1, &y, 1));
    EXPECT(y != a && tn_tensor_is_view(y) && tn_tensor_base(y) == a);
    EXPECT_STR(kit_node_name(y), "IdBackward");
    EXPECT_STR(kit_node_name(a), "KitScale");
    char text[1024];
    snprintf(text, sizeof text, "Output 0 of IdBackward is a view and is being modified inplace.%s",
             in_custom_function);
    EXPECT_FAIL(TN_INVALID, text, tni_check_inplace(y));
    EXPECT_OK(kit_backward_with(y, 1, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 6, 0);
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_zero_(a));
    tn_set_grad_enabled(true);
    tn_node *node = NULL;
    snprintf(text, sizeof text,
             "Output 0 of IdBackward is a view and its base or another view of its base has been "
             "modified inplace.%s",
             in_custom_function);
    EXPECT_FAIL(TN_INVALID, text, tn_tensor_grad_fn(y, &node));
    tn_tensor_unref(y);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

static tn_status halves_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in,
                                tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)n_in;
    (void)n_out;
    tn_status status = tn_slice(in[0], 0, tn_some_int(0), tn_some_int(1), 1, &out[0]);
    return status == TN_OK ? tn_slice(in[0], 0, tn_some_int(1), tn_some_int(2), 1, &out[1])
                           : status;
}

TEST(several_views_of_an_input_cannot_be_written)
{
    tn_function halves = TN_FUNCTION_INIT("Halves", halves_forward, both_backward);
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *y[2];
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(tn_function_apply(&halves, NULL, &a, 1, y, 2));
    EXPECT_FAIL(TN_INVALID,
                "Output 1 of HalvesBackward is a view and is being modified inplace. This view is "
                "the output of a function that returns multiple views. Such functions do not allow "
                "the output views to be modified inplace. You should replace the inplace operation "
                "by an out-of-place one.",
                tni_check_inplace(y[1]));
    tn_tensor_unref(y[0]);
    tn_tensor_unref(y[1]);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

/* ---- inputs that are written ---- */

/* Writes input `*args` and returns it, and a copy when there is room. */
static tn_status write_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in,
                               tn_tensor **out, int n_out)
{
    (void)n_in;
    int which = *(int *)tn_function_args(ctx);
    tn_status status = tn_add_scalar_(in[which], tn_float(1), tn_float(1));
    if (status != TN_OK)
        return status;
    out[0] = tn_tensor_ref(in[which]);
    if (n_out > 1)
        status = tn_clone(in[which], TN_FORMAT_NONE, &out[1]);
    return status == TN_OK ? tn_function_mark_dirty(ctx, &in[which], 1) : status;
}

TEST(a_written_input_gets_the_history_of_the_function)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_function write = TN_FUNCTION_INIT("Inc", write_forward, triple_backward);
    int which = 0;
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *y = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(tn_function_apply(&write, &which, &a, 1, &y, 1));
    EXPECT(y == a);
    uint32_t writes = 0;
    ASSERT_OK(tn_tensor_version(a, &writes));
    EXPECT_EQ_INT(writes, 2); /* the write, and that it was said to be one */
    EXPECT_STR(kit_node_name(a), "IncBackward");
    EXPECT_OK(kit_backward_with(a, 1, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 6, 0);
    tn_tensor_unref(y);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(leaves_and_views_that_must_not_be_written_are_refused)
{
    tn_function write = TN_FUNCTION_INIT("Inc", write_forward, triple_backward);
    int which = 0;
    tn_tensor *x = kit_leaf(2, 1), *v = NULL, *a = NULL, *y[2] = {NULL, NULL}, **list = NULL;
    int64_t n = 0;
    EXPECT_FAIL(TN_INVALID,
                "a leaf Variable that requires grad has been used in an in-place operation.",
                tn_function_apply(&write, &which, &x, 1, y, 1));
    ASSERT_OK(tn_slice(x, 0, tn_some_int(0), tn_some_int(1), 1, &v));
    EXPECT_FAIL(TN_INVALID,
                "a view of a leaf Variable that requires grad is being used in an in-place "
                "operation.",
                tn_function_apply(&write, &which, &v, 1, y, 1));
    tn_tensor_unref(v);
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(tn_slice(a, 0, tn_some_int(0), tn_some_int(1), 1, &v));
    EXPECT_FAIL(TN_INVALID,
                "If your Function modifies inplace an input that is a view of another Tensor, your "
                "Function cannot return more than one Tensor. This is not supported by the current "
                "autograd engine. You should either make sure the input is not a view (using "
                ".clone() for example) or make your Function only return one Tensor (potentially "
                "splitting it into two Functions: one doing the inplace that returns a single "
                "Tensor and a second one that does the other operations). You can ask on the forum "
                "https://discuss.pytorch.org/ if you need help to do this change.",
                tn_function_apply(&write, &which, &v, 1, y, 2));
    ASSERT_OK(tn_unbind(a, 0, &list, &n));
    EXPECT_FAIL(TN_INVALID, "Output 0 of UnbindBackward0 is a view and is being modified inplace.",
                tn_function_apply(&write, &which, &list[0], 1, y, 1));
    EXPECT(y[0] == NULL && y[1] == NULL);
    tn_tensor_list_free(list, n);
    tn_tensor_unref(v);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

static tn_status lost_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    (void)n_in;
    (void)n_out;
    tn_status status = tn_clone(in[0], TN_FORMAT_NONE, &out[0]);
    return status == TN_OK ? tn_function_mark_dirty(ctx, in, 1) : status;
}

TEST(a_written_input_must_be_returned)
{
    tn_function lost = TN_FUNCTION_INIT("Lost", lost_forward, triple_backward);
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *y = NULL;
    ASSERT_OK(kit_scale(x, &a));
    EXPECT_FAIL(TN_INVALID,
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function.",
                tn_function_apply(&lost, NULL, &a, 1, &y, 1));
    EXPECT(y == NULL);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

static tn_status second_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                                 tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)n_grads;
    EXPECT_EQ_INT(n_out, 2);
    tn_status status = tn_mul_scalar(grads[0], tn_float(5), &out[0]);
    return status == TN_OK ? tn_mul_scalar(grads[0], tn_float(3), &out[1]) : status;
}

/* The reference takes the first input for the view whichever it is. */
TEST(a_written_view_may_be_any_input)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_function write = TN_FUNCTION_INIT("Inc", write_forward, second_backward);
    int which = 1;
    tn_tensor *x = kit_leaf(2, 1), *w = kit_leaf(1, 1), *a = NULL, *v = NULL, *y = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(tn_slice(a, 0, tn_some_int(1), tn_some_int(2), 1, &v));
    tn_tensor *in[] = {w, v};
    ASSERT_OK(tn_function_apply(&write, &which, in, 2, &y, 1));
    EXPECT(y == v);
    EXPECT_STR(kit_node_name(a), "CopySlices");
    EXPECT_STR(kit_node_name(v), "AsStridedBackward0");
    EXPECT_OK(kit_backward_with(a, 1, NULL));
    EXPECT_NEAR(kit_grad(x, 0), 2, 0);
    EXPECT_NEAR(kit_grad(x, 1), 6, 0);
    EXPECT_NEAR(kit_grad(w, 0), 5, 0);
    tn_tensor_unref(y);
    tn_tensor_unref(v);
    tn_tensor_unref(a);
    tn_tensor_unref(w);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

static tn_status exp_written_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in,
                                     tn_tensor **out, int n_out)
{
    (void)n_in;
    (void)n_out;
    tn_status status = tn_exp_(in[0]);
    if (status == TN_OK)
        status = tn_function_mark_dirty(ctx, in, 1);
    if (status == TN_OK)
        status = tn_function_save(ctx, in, 1);
    out[0] = tn_tensor_ref(in[0]);
    return status;
}

static tn_status exp_written_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                                      tn_tensor **out, int n_out)
{
    (void)n_grads;
    (void)n_out;
    tn_tensor *y = NULL;
    tn_status status = tn_function_saved(ctx, 0, &y);
    if (status == TN_OK)
        status = tn_mul(grads[0], y, &out[0]);
    tn_tensor_unref(y);
    return status;
}

/* The node must not keep what keeps it, also where no backward pass lets go. */
TEST(a_written_view_that_is_saved_is_let_go)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    tn_function write = TN_FUNCTION_INIT("Exp", exp_written_forward, exp_written_backward);
    for (int passes = 0; passes < 2; passes++) {
        tn_tensor *x = kit_leaf(3, 1), *a = NULL, *v = NULL, *y = NULL;
        ASSERT_OK(kit_scale(x, &a));
        ASSERT_OK(tn_slice(a, 0, tn_some_int(1), tn_some_int(2), 1, &v));
        ASSERT_OK(tn_function_apply(&write, NULL, &v, 1, &y, 1));
        if (passes) {
            const double value = kit_at(v, 0);
            EXPECT_OK(kit_backward_with(a, 1, NULL));
            EXPECT_NEAR(kit_grad(x, 0), 2, 0);
            EXPECT_NEAR(kit_grad(x, 1), 2 * value, 1e-5 * value);
        }
        tn_tensor_unref(y);
        tn_tensor_unref(v);
        tn_tensor_unref(a);
        tn_tensor_unref(x);
    }
    EXPECT_EQ_INT(tni_test_live, before);
}

/* ---- once ---- */

#define TWICE "trying to differentiate twice a function that was marked with @once_differentiable"

/* The gradient of the sum of @p y by @p x, to be differentiated again. */
static tn_tensor *recorded_grad(tn_tensor *y, tn_tensor *x, tn_tensor *seed)
{
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    tn_tensor *dx = NULL;
    ASSERT_OK(tn_grad(&y, 1, &x, 1, &seed, &opts, &dx));
    return dx;
}

TEST(differentiating_twice_what_allows_once_fails)
{
    tn_function once = TN_FUNCTION_INIT("Exp", exp_forward, exp_backward);
    once.flags = TN_FUNCTION_ONCE_DIFFERENTIABLE;
    tn_tensor *x = kit_leaf(2, 1), *y = NULL, *g = kit_leaf(2, 1), *plain = kit_vector(2, 1);
    ASSERT_OK(tn_function_apply(&once, NULL, &x, 1, &y, 1));
    for (int i = 0; i < 2; i++) { /* it depends on x by what it saved, and on the seed */
        tn_tensor *dx = recorded_grad(y, x, i ? g : plain);
        EXPECT(tn_tensor_requires_grad(dx));
        EXPECT_FAIL(TN_INVALID, TWICE, kit_backward_with(dx, 1, NULL));
        tn_tensor_unref(dx);
    }
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    tn_tensor_unref(g);
    tn_tensor_unref(plain);
}

/* Another path to the same input must not hide that one is missing. */
TEST(what_allows_once_is_found_by_a_pass_that_stops_at_inputs)
{
    tn_function once = TN_FUNCTION_INIT("Exp", exp_forward, exp_backward);
    once.flags = TN_FUNCTION_ONCE_DIFFERENTIABLE;
    tn_tensor *x = kit_leaf(2, 1), *w = kit_leaf(2, 3), *y = NULL, *z = NULL, *cube = NULL,
              *sum = NULL, *out = NULL, *seed = kit_vector(2, 1);
    ASSERT_OK(tn_function_apply(&once, NULL, &x, 1, &y, 1));
    ASSERT_OK(tn_mul(y, w, &z)); /* the gradient that comes is w */
    ASSERT_OK(tn_pow_tensor_scalar(x, tn_int(3), &cube));
    tn_tensor *dx = recorded_grad(z, x, seed);
    ASSERT_OK(tn_add(dx, cube, tn_int(1), &sum));
    EXPECT_FAIL(TN_INVALID, TWICE, tn_grad(&sum, 1, &x, 1, &seed, NULL, &out));
    EXPECT_FAIL(TN_INVALID, TWICE, tn_grad(&sum, 1, &w, 1, &seed, NULL, &out));
    tn_tensor *all[] = {x, w, y, z, cube, sum, seed, dx};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}

static tn_status pass_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    (void)ctx, (void)n_in, (void)n_out;
    return tn_sign(in[0], &out[0]);
}

static tn_status pass_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                               tn_tensor **out, int n_out)
{
    (void)ctx, (void)n_grads, (void)n_out;
    out[0] = tn_tensor_ref(grads[0]);
    return TN_OK;
}

TEST(what_allows_once_and_depends_on_nothing_is_a_constant)
{
    tn_function once = TN_FUNCTION_INIT("Pass", pass_forward, pass_backward);
    once.flags = TN_FUNCTION_ONCE_DIFFERENTIABLE;
    tn_tensor *x = kit_leaf(2, 1), *y = NULL, *seed = kit_vector(2, 1);
    ASSERT_OK(tn_function_apply(&once, NULL, &x, 1, &y, 1));
    tn_tensor *dx = recorded_grad(y, x, seed);
    EXPECT(!tn_tensor_requires_grad(dx));
    tn_tensor_unref(dx);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    tn_tensor_unref(seed);
}

/* ---- memory ---- */

TEST(functions_leak_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(2, 1), *seed = kit_vector(2, 1), *y = NULL;
    ASSERT_OK(tn_function_apply(&exp_function, NULL, &x, 1, &y, 1));
    tn_tensor_unref(y);
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        y = NULL;
        rc = tn_function_apply(&exp_function, NULL, &x, 1, &y, 1);
        if (rc == TN_OK)
            rc = tn_backward(&y, 1, &seed, NULL);
        tn_tensor_unref(y);
        tn_status cleared = tn_tensor_set_grad(x, NULL);
        EXPECT(cleared == TN_OK);
        EXPECT(tni_test_live <= before); /* less: what is left of the accumulator before it went */
    }
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
}
