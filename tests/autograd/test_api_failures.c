/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_api_failures.c: whatever allocation fails in a call of the interface, the
 * call says so, nothing leaks, and what was handed over is given back once or not taken. */
#include "kit.h"

#include "tenon/dispatch.h"
#include "tenon/forward.h"
#include "tenon/function.h"
#include "tenon/saved_hooks.h"

/* What the callbacks below were asked; a body that ends leaves taken == given_back. */
static int64_t taken, given_back;

/* A body makes all it needs but @p x and releases it, whatever comes. */
typedef tn_status (*body_fn)(tn_tensor *x);

static void each_allocation_fails(body_fn body)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(3, 0.5f);
    ASSERT_OK(body(x)); /* what is made once is made now */
    for (int round = 0; round < 2; round++) {
        int64_t before = tni_test_live;
        tn_status rc = TN_INTERNAL;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            taken = given_back = 0;
            EXPECT_OK(tn_tensor_set_grad(x, NULL));
            rc = body(x);
            if (rc != TN_OK)
                EXPECT_EQ_INT(rc, TN_NOMEM);
            EXPECT_EQ_INT(given_back, taken);
        }
        EXPECT_OK(tn_tensor_set_grad(x, NULL));
        if (round > 0) /* what is made where something failed was made in the first */
            EXPECT_EQ_INT(tni_test_live, before);
    }
    EXPECT_EQ_INT(tn_tensor_use_count(x), 1);
    tn_tensor_unref(x);
}

static tn_status backward_of_ones(tn_tensor *y)
{
    tn_tensor *ones = NULL;
    tn_status status = tn_ones_like(y, NULL, TN_FORMAT_NONE, &ones);
    if (status == TN_OK)
        status = tn_backward(&y, 1, &ones, NULL);
    tn_tensor_unref(ones);
    return status;
}

/* ---- hooks ---- */

static void give_back(void *ctx)
{
    (void)ctx;
    given_back++;
}

static tn_status twice(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    return tn_mul_scalar(grad, tn_float(2), out);
}

static tn_status hook_of_tensor(tn_tensor *x)
{
    tn_tensor *y = NULL;
    tn_hook *hook = NULL;
    tn_status status = tn_exp(x, &y);
    if (status == TN_OK && (status = tn_tensor_add_hook(y, twice, NULL, give_back, &hook)) == TN_OK)
        taken++;
    if (status == TN_OK)
        status = backward_of_ones(y);
    tn_hook_remove(hook);
    tn_tensor_unref(y);
    return status;
}

static tn_status see_leaf(void *ctx, tn_tensor *t)
{
    (void)ctx;
    return tn_tensor_grad(t) ? TN_OK : TN_INTERNAL;
}

static tn_status hook_of_leaf(tn_tensor *x)
{
    tn_hook *hook = NULL, *accumulated = NULL;
    tn_tensor *y = NULL;
    tn_status status = tn_tensor_add_hook(x, twice, NULL, give_back, &hook);
    taken += status == TN_OK;
    if (status == TN_OK) {
        status = tn_tensor_add_accumulated_hook(x, see_leaf, NULL, give_back, &accumulated);
        taken += status == TN_OK;
    }
    if (status == TN_OK)
        status = tn_exp(x, &y);
    if (status == TN_OK)
        status = backward_of_ones(y);
    tn_tensor_unref(y);
    tn_hook_remove(hook);
    tn_hook_remove(accumulated);
    return status;
}

static tn_status before_turn(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                             tn_tensor **out)
{
    (void)node;
    (void)n;
    return twice(ctx, grads[0], &out[0]);
}

static tn_status after_turn(void *ctx, tn_node *node, tn_tensor *const *results, int64_t n_results,
                            tn_tensor *const *grads, int64_t n_grads, tn_tensor **out)
{
    (void)node;
    (void)n_results;
    (void)grads;
    (void)n_grads;
    return twice(ctx, results[0], &out[0]);
}

static tn_status hooks_of_node(tn_tensor *x)
{
    tn_hook *pre = NULL, *post = NULL;
    tn_tensor *y = NULL;
    tn_node *node = NULL;
    tn_status status = tn_exp(x, &y);
    if (status == TN_OK)
        status = tn_tensor_grad_fn(y, &node);
    if (status == TN_OK) {
        status = tn_node_add_pre_hook(node, before_turn, NULL, give_back, &pre);
        taken += status == TN_OK;
    }
    if (status == TN_OK) {
        status = tn_node_add_post_hook(node, after_turn, NULL, give_back, &post);
        taken += status == TN_OK;
    }
    if (status == TN_OK)
        status = backward_of_ones(y);
    tn_hook_unref(pre);
    tn_tensor_unref(y);
    tn_hook_remove(post);
    return status;
}

static tn_status at_end(void *ctx)
{
    (void)ctx;
    return TN_OK;
}

static tn_status queue_in_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx;
    (void)grad;
    (void)out;
    tn_status status = TN_OK;
    for (int i = 0; i < 20 && status == TN_OK; i++) {
        status = tn_queue_callback(at_end, NULL, give_back);
        taken += status == TN_OK;
    }
    return status;
}

static tn_status callbacks_of_pass(tn_tensor *x)
{
    tn_tensor *y = NULL;
    tn_status status = tn_exp(x, &y);
    if (status == TN_OK)
        status = tn_tensor_add_hook(y, queue_in_hook, NULL, NULL, NULL);
    if (status == TN_OK)
        status = backward_of_ones(y);
    tn_tensor_unref(y);
    return status;
}

TEST(each_allocation_failing_around_a_tensors_hook_leaks_nothing)
{
    each_allocation_fails(hook_of_tensor);
}

TEST(each_allocation_failing_around_hooks_of_a_leaf_leaks_nothing)
{
    each_allocation_fails(hook_of_leaf);
}

TEST(each_allocation_failing_around_hooks_of_a_node_leaks_nothing)
{
    each_allocation_fails(hooks_of_node);
}

TEST(each_allocation_failing_around_callbacks_of_a_pass_leaks_nothing)
{
    each_allocation_fails(callbacks_of_pass);
}

/* ---- tensors and edges ---- */

/* A view whose base was written since: its history is made anew when it is asked for. */
static tn_status written_view(tn_tensor *x, tn_tensor **base, tn_tensor **view)
{
    tn_status status = tn_mul_scalar(x, tn_float(4), base);
    if (status == TN_OK)
        status = tn_select(*base, 0, 1, view);
    return status == TN_OK ? tn_mul_scalar_(*base, tn_float(3)) : status;
}

static tn_status history_made_anew(tn_tensor *x)
{
    tn_tensor *base = NULL, *view = NULL, *at_edge = NULL;
    tn_node *node = NULL, *edge = NULL;
    uint32_t input = 0;
    tn_status status = written_view(x, &base, &view);
    if (status == TN_OK)
        status = tn_tensor_grad_fn(view, &node);
    if (status == TN_OK)
        status = tn_tensor_gradient_edge(view, &edge, &input);
    if (status == TN_OK)
        status = tn_tensor_at_edge(edge, input, &at_edge);
    if (status == TN_OK) {
        tn_node_input like = {sizeof like, TN_DTYPE_NONE, {TN_DEVICE_NONE, -1}, 0, NULL};
        status = tn_node_get_input(edge, input, &like);
        EXPECT(status != TN_OK || like.dtype == TN_DTYPE_F32);
    }
    if (status == TN_OK)
        status = tn_tensor_backward(at_edge);
    if (status == TN_OK) {
        tn_tensor *grad = tn_tensor_grad_ref(x);
        EXPECT_NEAR(kit_at(grad, 1), 12, 0);
        tn_tensor_unref(grad);
    }
    tn_node_unref(edge);
    tn_tensor_unref(at_edge);
    tn_tensor_unref(view);
    tn_tensor_unref(base);
    return status;
}

TEST(each_allocation_failing_while_history_is_made_anew_leaks_nothing)
{
    each_allocation_fails(history_made_anew);
}

static tn_status other_data(tn_tensor *x)
{
    tn_tensor *base = NULL, *view = NULL, *alias = NULL, *fresh = NULL;
    tn_status status = written_view(x, &base, &view);
    if (status == TN_OK)
        status = tn_tensor_data_alias(base, &alias);
    if (status == TN_OK)
        status = tn_tensor_bump_version(alias);
    if (status == TN_OK)
        status = tn_ones((int64_t[]){2, 2, 2, 2, 2, 2, 2}, 7, NULL, &fresh);
    if (status == TN_OK) /* more sizes than fit into a small tensor, and out of its base */
        status = tn_tensor_set_data(view, fresh);
    EXPECT(status != TN_OK || tn_tensor_ndim(view) == 7);
    tn_tensor_unref(fresh);
    tn_tensor_unref(alias);
    tn_tensor_unref(view);
    tn_tensor_unref(base);
    return status;
}

TEST(each_allocation_failing_while_data_is_replaced_leaks_nothing)
{
    each_allocation_fails(other_data);
}

static tn_status dual_and_back(tn_tensor *x)
{
    tn_tensor *tangent = NULL, *dual = NULL, *result = NULL, *primal = NULL, *out = NULL;
    tn_status status = tn_forward_enter();
    if (status != TN_OK)
        return status;
    status = tn_ones_like(x, NULL, TN_FORMAT_NONE, &tangent);
    if (status == TN_OK)
        status = tn_make_dual(x, tangent, &dual);
    if (status == TN_OK)
        status = tn_exp(dual, &result);
    if (status == TN_OK)
        status = tn_unpack_dual(result, &primal, &out);
    EXPECT(status != TN_OK || (primal && out));
    EXPECT(status == TN_OK || (!primal && !out));
    tn_tensor_unref(out);
    tn_tensor_unref(primal);
    tn_tensor_unref(result);
    tn_tensor_unref(dual);
    tn_tensor_unref(tangent);
    EXPECT_OK(tn_forward_leave());
    return status;
}

TEST(each_allocation_failing_while_a_dual_tensor_is_taken_apart_leaks_nothing)
{
    each_allocation_fails(dual_and_back);
}

/* ---- saved values ---- */

static tn_status pack(void *ctx, tn_tensor *t, void **out)
{
    (void)ctx;
    *out = tn_tensor_ref(t);
    taken++;
    return TN_OK;
}

static tn_status unpack(void *ctx, void *packed, tn_tensor **out)
{
    (void)ctx;
    return tn_clone(packed, TN_FORMAT_NONE, out);
}

static void drop(void *ctx, void *packed)
{
    (void)ctx;
    tn_tensor_unref(packed);
    given_back++;
}

static const tn_saved_hooks by_reference = {sizeof by_reference, 0, pack, unpack, drop, NULL, NULL};

static tn_status hooks_of_saved(tn_tensor *x)
{
    tn_tensor *y = NULL, *saved = NULL;
    tn_node *node = NULL;
    tn_status status = tn_sin(x, &y);
    if (status == TN_OK)
        status = tn_tensor_grad_fn(y, &node);
    if (status == TN_OK)
        status = tn_node_saved_register_hooks(node, 0, &by_reference);
    if (status == TN_OK)
        status = tn_node_saved(node, 0, &saved);
    tn_tensor_unref(saved);
    if (status == TN_OK)
        status = backward_of_ones(y);
    tn_tensor_unref(y);
    return status;
}

TEST(each_allocation_failing_around_hooks_of_a_saved_value_leaks_nothing)
{
    each_allocation_fails(hooks_of_saved);
}

static tn_status disabled_hooks(tn_tensor *x)
{
    (void)x;
    char *before = NULL, *first = NULL;
    tn_status status = tn_saved_hooks_disable("not here", &before);
    if (status != TN_OK)
        return status;
    EXPECT(before == NULL);
    status = tn_saved_hooks_disable("nor here, and for another reason that takes room", &first);
    EXPECT_STR(status == TN_OK ? first : "not here", "not here");
    tn_string_free(first);
    /* To allow them again needs no memory. */
    EXPECT_OK(tn_saved_hooks_disable(NULL, NULL));
    EXPECT_OK(tn_saved_hooks_push(&by_reference) == TN_OK ? tn_saved_hooks_pop() : TN_OK);
    return status;
}

TEST(each_allocation_failing_while_hooks_are_disabled_leaves_them_as_they_were)
{
    each_allocation_fails(disabled_hooks);
}

/* ---- functions ---- */

/* Doubles its first input in place; gives also a result without a gradient. */
static tn_status double_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in,
                                tn_tensor **out, int n_out)
{
    (void)n_in;
    (void)n_out;
    taken++;
    tn_status status = tn_mul_scalar_(in[0], tn_float(2));
    if (status == TN_OK)
        status = tn_function_mark_dirty(ctx, in, 1);
    out[0] = tn_tensor_ref(in[0]);
    if (status == TN_OK)
        status = tn_sin(in[1], &out[1]);
    if (status == TN_OK)
        status = tn_function_mark_non_differentiable(ctx, &out[1], 1);
    return status == TN_OK ? tn_function_save(ctx, &in[1], 1) : status;
}

static tn_status double_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                                 tn_tensor **out, int n_out)
{
    (void)n_grads;
    (void)n_out;
    tn_tensor *saved = NULL;
    tn_status status = tn_function_saved(ctx, 0, &saved);
    tn_tensor_unref(saved);
    return status == TN_OK ? tn_mul_scalar(grads[0], tn_float(2), &out[0]) : status;
}

static const tn_function double_function = {sizeof double_function, 0, "Double",  double_forward,
                                            double_backward,        8, give_back, NULL};

static tn_status function_with_all(tn_tensor *x)
{
    tn_tensor *in[2] = {NULL, x}, *out[2] = {NULL, NULL}, *saved = NULL;
    tn_node *node = NULL;
    tn_status status = tn_mul_scalar(x, tn_float(4), &in[0]);
    if (status == TN_OK)
        status = tn_function_apply(&double_function, NULL, in, 2, out, 2);
    EXPECT(status == TN_OK || (!out[0] && !out[1]));
    if (status == TN_OK)
        status = tn_tensor_grad_fn(out[0], &node);
    if (status == TN_OK)
        status = tn_node_function_saved_register_hooks(node, 0, &by_reference);
    if (status == TN_OK)
        status = tn_node_function_saved(node, 0, &saved);
    tn_tensor_unref(saved);
    if (status == TN_OK)
        status = backward_of_ones(out[0]);
    tn_tensor_unref(out[0]);
    tn_tensor_unref(out[1]);
    tn_tensor_unref(in[0]);
    return status;
}

TEST(each_allocation_failing_in_a_function_that_writes_leaks_nothing)
{
    each_allocation_fails(function_with_all);
}

static tn_status any_forward(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **none,
                             int n_none)
{
    (void)n_in;
    (void)none;
    (void)n_none;
    taken++;
    tn_tensor *both[2] = {NULL, NULL};
    tn_status status = tn_exp(in[0], &both[0]);
    if (status == TN_OK)
        status = tn_function_set_outputs(ctx, both, 1);
    if (status == TN_OK)
        status = tn_sin(in[0], &both[1]);
    if (status == TN_OK) /* a second call replaces the first */
        status = tn_function_set_outputs(ctx, both, 2);
    tn_tensor_unref(both[0]);
    tn_tensor_unref(both[1]);
    return status;
}

static tn_status any_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                              tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)n_grads;
    (void)n_out;
    return tn_add(grads[0], grads[1], tn_int(1), &out[0]);
}

static const tn_function any_function = {sizeof any_function, 0, "Any",     any_forward,
                                         any_backward,        8, give_back, NULL};

static tn_status function_of_any(tn_tensor *x)
{
    tn_tensor **results = NULL;
    int n = 0;
    tn_status status = tn_function_apply_any(&any_function, NULL, &x, 1, &results, &n);
    EXPECT(status != TN_OK || n == 2);
    if (status == TN_OK)
        status = backward_of_ones(results[1]);
    tn_tensor_list_free(results, n);
    return status;
}

TEST(each_allocation_failing_in_a_function_that_names_its_results_leaks_nothing)
{
    each_allocation_fails(function_of_any);
}

/* ---- operators from outside ---- */

static tn_status keep_input(tn_function_ctx *ctx, const tn_value *args, int n_args,
                            const tn_value *rets, int n_rets)
{
    (void)n_args;
    (void)rets;
    (void)n_rets;
    return tn_function_save(ctx, (tn_tensor *const[]){args[0].u.tensor}, 1);
}

static tn_status sine_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *out = NULL;
    tn_status status = tn_sin(args[0].u.tensor, &out);
    if (status == TN_OK)
        rets[0] = tn_value_take_tensor(out);
    return status;
}

static tn_status operator_from_outside(tn_tensor *x)
{
    tn_library *lib = NULL;
    tn_op *op = NULL;
    tn_value ret = tn_value_none(), arg = tn_value_tensor(x);
    tn_kernel kernel = TN_KERNEL_INIT(sine_kernel);
    tn_autograd_formula formula = {.size = sizeof formula,
                                   .setup = keep_input,
                                   .backward = double_backward,
                                   .destroy = give_back};
    tn_status status =
        tn_library_open(TN_LIBRARY_DEF, "failures", TN_KEY_NONE, __FILE__, __LINE__, &lib);
    if (status == TN_OK)
        status = tn_library_def(lib, "sine(Tensor x) -> Tensor", NULL, NULL);
    if (status == TN_OK)
        status = tn_library_impl(lib, "sine", TN_KEY_CPU, &kernel, NULL);
    if (status == TN_OK) {
        status = tn_library_autograd(lib, "sine", &formula, NULL);
        taken += status == TN_OK;
    }
    if (status == TN_OK)
        status = tn_op_find("failures::sine", &op);
    if (status == TN_OK)
        status = tn_op_call(op, &arg, 1, &ret);
    if (status == TN_OK)
        status = backward_of_ones(ret.u.tensor);
    tn_value_clear(&ret);
    tn_library_close(lib);
    return status;
}

TEST(each_allocation_failing_around_an_operator_from_outside_leaks_nothing)
{
    each_allocation_fails(operator_from_outside);
}
