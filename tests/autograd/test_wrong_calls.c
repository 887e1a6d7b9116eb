/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_wrong_calls.c: every public function of autograd, called with what no caller
 * should give it. */
#include "kit.h"

#include "core/state.h"
#include "tenon/checkpoint.h"
#include "tenon/forward.h"
#include "tenon/function.h"
#include "tenon/saved_hooks.h"

#define FAILS(call)               \
    do {                          \
        EXPECT((call) != TN_OK);  \
        EXPECT(*tn_last_error()); \
        tn_clear_error();         \
    } while (0)

static tn_status any_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx, (void)grad, (void)out;
    return TN_OK;
}

static tn_status any_accumulated(void *ctx, tn_tensor *t)
{
    (void)ctx, (void)t;
    return TN_OK;
}

static tn_status any_pre(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                         tn_tensor **out)
{
    (void)ctx, (void)node, (void)grads, (void)n, (void)out;
    return TN_OK;
}

static tn_status any_post(void *ctx, tn_node *node, tn_tensor *const *results, int64_t n_results,
                          tn_tensor *const *grads, int64_t n_grads, tn_tensor **out)
{
    (void)ctx, (void)node, (void)results, (void)n_results, (void)grads, (void)n_grads, (void)out;
    return TN_OK;
}

TEST(passes_refuse_wrong_counts_and_nothing)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL, *none = NULL, *out = NULL;
    ASSERT_OK(kit_scale(x, &z));
    FAILS(tn_tensor_backward(NULL));
    FAILS(tn_backward(NULL, 1, NULL, NULL));
    FAILS(tn_backward(&none, 1, NULL, NULL));
    FAILS(tn_backward(&z, -1, NULL, NULL));
    FAILS(tn_backward(&z, INT64_MAX, NULL, NULL));
    tn_backward_opts b = TN_BACKWARD_OPTS_INIT;
    b.inputs = &x;
    FAILS(tn_backward(&z, 1, NULL, &b));
    b.n_inputs = -5;
    FAILS(tn_backward(&z, 1, NULL, &b));
    b.n_inputs = INT64_MAX;
    FAILS(tn_backward(&z, 1, NULL, &b));
    b.inputs = &none;
    b.n_inputs = 1;
    FAILS(tn_backward(&z, 1, NULL, &b));
    b.inputs = NULL;
    FAILS(tn_backward(&z, 1, NULL, &b));
    b.size = 1;
    FAILS(tn_backward(&z, 1, NULL, &b));
    FAILS(tn_grad(NULL, 1, &x, 1, NULL, NULL, &out));
    FAILS(tn_grad(&z, 1, NULL, 1, NULL, NULL, &out));
    FAILS(tn_grad(&z, 1, &x, 0, NULL, NULL, &out));
    FAILS(tn_grad(&z, 1, &x, -3, NULL, NULL, &out));
    FAILS(tn_grad(&z, 1, &x, INT64_MAX, NULL, NULL, &out));
    FAILS(tn_grad(&z, -1, &x, 1, NULL, NULL, &out));
    FAILS(tn_grad(&z, 1, &x, 1, NULL, NULL, NULL));
    FAILS(tn_grad(&none, 1, &x, 1, NULL, NULL, &out));
    FAILS(tn_grad(&z, 1, &none, 1, NULL, NULL, &out));
    FAILS(tn_grad(&z, 0, &x, 1, NULL, NULL, &out));
    EXPECT(out == NULL && tn_tensor_grad(x) == NULL);
    FAILS(tn_queue_callback(NULL, NULL, NULL));
    EXPECT_OK(tn_tensor_backward(z));
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(seeds_of_another_kind_are_refused_or_brought_into_form)
{
    tn_tensor *x = kit_leaf(2, 3), *z = NULL, *seed = NULL;
    ASSERT_OK(kit_scale(x, &z));
    int64_t two = 2;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_META);
    ASSERT_OK(tn_ones(&two, 1, &opts, &seed));
    EXPECT_FAIL(TN_INVALID, "expected device cpu but got meta", tn_backward(&z, 1, &seed, NULL));
    tn_tensor_unref(seed);
    opts = tn_opts(TN_DTYPE_C64, TN_CPU);
    ASSERT_OK(tn_ones(&two, 1, &opts, &seed));
    FAILS(tn_backward(&z, 1, &seed, NULL));
    tn_tensor_unref(seed);
    opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    ASSERT_OK(tn_ones(&two, 1, &opts, &seed));
    EXPECT_OK(tn_backward(&z, 1, &seed, NULL)); /* cast, as any gradient */
    EXPECT_NEAR(kit_grad(x, 1), 2, 0);
    tn_tensor_unref(seed);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(questions_about_nothing_give_nothing)
{
    tn_node *node = NULL;
    tn_tensor *t = NULL;
    uint32_t input = 7;
    EXPECT(tn_tensor_grad(NULL) == NULL);
    EXPECT(tn_tensor_grad_ref(NULL) == NULL);
    EXPECT_EQ_INT(tn_tensor_output_nr(NULL), 0);
    (void)tn_tensor_is_leaf(NULL);
    EXPECT(tn_tensor_base(NULL) == NULL && !tn_tensor_is_view(NULL));
    EXPECT(!tn_tensor_retains_grad(NULL) && !tn_tensor_requires_grad(NULL));
    EXPECT(tn_node_ref(NULL) == NULL && tn_node_try_ref(NULL) == NULL);
    tn_node_unref(NULL);
    EXPECT(tn_node_name(NULL) == NULL || tn_node_name(NULL));
    EXPECT_EQ_INT((int64_t)tn_node_sequence_nr(NULL), 0);
    EXPECT_EQ_INT(tn_node_topological_nr(NULL), 0);
    EXPECT_EQ_INT(tn_node_num_edges(NULL), 0);
    EXPECT(tn_node_edge(NULL, 0, &input) == NULL);
    EXPECT_EQ_INT(tn_node_num_inputs(NULL), 0);
    EXPECT_EQ_INT(tn_node_num_saved(NULL), 0);
    EXPECT(tn_node_variable(NULL) == NULL);
    EXPECT(!tn_pass_runs(NULL));
    EXPECT_STR(tn_node_made_at(NULL), "");
    EXPECT(tn_node_saved_name(NULL, 0) == NULL);
    EXPECT_EQ_INT(tn_node_function_saved_count(NULL), 0);
    EXPECT(tn_node_function_state(NULL, NULL) == NULL);
    tn_hook_remove(NULL);
    tn_hook_unref(NULL);
    EXPECT(!tn_hook_in_pass(NULL));
    EXPECT(tn_tensor_own_node(NULL) == NULL);
    EXPECT(tn_tensor_visit_hooks(NULL, NULL, NULL, NULL) == 0);
    tn_tensor_clear_hooks(NULL);
    tn_node_input info = {.size = sizeof info};
    FAILS(tn_node_get_input(NULL, 0, &info));
    FAILS(tn_node_saved(NULL, 0, &t));
    FAILS(tn_node_function_saved(NULL, 0, &t));
    FAILS(tn_node_saved_register_hooks(NULL, 0, NULL));
    FAILS(tn_node_function_saved_register_hooks(NULL, 0, NULL));
    FAILS(tn_tensor_at_edge(NULL, 0, &t));
    FAILS(tn_tensor_grad_fn(NULL, &node));
    FAILS(tn_tensor_gradient_edge(NULL, &node, &input));
    FAILS(tn_tensor_set_grad(NULL, NULL));
    FAILS(tn_tensor_data_alias(NULL, &t));
    FAILS(tn_tensor_set_data(NULL, NULL));
    FAILS(tn_tensor_bump_version(NULL));
    FAILS(tn_tensor_retain_grad(NULL));
    FAILS(tn_tensor_add_hook(NULL, any_hook, NULL, NULL, NULL));
    FAILS(tn_tensor_add_accumulated_hook(NULL, any_accumulated, NULL, NULL, NULL));
    FAILS(tn_node_add_pre_hook(NULL, any_pre, NULL, NULL, NULL));
    FAILS(tn_node_add_post_hook(NULL, any_post, NULL, NULL, NULL));
    FAILS(tn_saved_hooks_push(NULL));
    FAILS(tn_saved_hooks_pop());
    EXPECT(t == NULL && node == NULL);
}

TEST(answers_without_a_place_are_refused)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(kit_scale(x, &z));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    FAILS(tn_tensor_grad_fn(z, NULL));
    FAILS(tn_tensor_gradient_edge(z, NULL, NULL));
    FAILS(tn_tensor_data_alias(z, NULL));
    FAILS(tn_tensor_set_data(z, NULL));
    FAILS(tn_tensor_at_edge(node, 0, NULL));
    FAILS(tn_tensor_at_edge(node, 99, NULL));
    FAILS(tn_node_get_input(node, 0, NULL));
    tn_node_input info = {.size = 3};
    FAILS(tn_node_get_input(node, 0, &info));
    info.size = sizeof info;
    FAILS(tn_node_get_input(node, UINT32_MAX, &info));
    FAILS(tn_node_saved(node, 0, NULL));
    tn_tensor *t = NULL;
    FAILS(tn_node_saved(node, UINT32_MAX, &t));
    FAILS(tn_node_saved_register_hooks(node, 0, NULL));
    FAILS(tn_node_saved_register_hooks(node, UINT32_MAX, NULL));
    FAILS(tn_node_function_saved(node, -1, &t));
    EXPECT(tn_node_edge(node, UINT32_MAX, NULL) == NULL);
    FAILS(tn_tensor_add_hook(z, NULL, NULL, NULL, NULL));
    FAILS(tn_tensor_add_accumulated_hook(x, NULL, NULL, NULL, NULL));
    FAILS(tn_tensor_add_accumulated_hook(z, any_accumulated, NULL, NULL, NULL));
    FAILS(tn_node_add_pre_hook(node, NULL, NULL, NULL, NULL));
    FAILS(tn_node_add_post_hook(node, NULL, NULL, NULL, NULL));
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(hooks_of_a_kind_that_cannot_be_used_are_refused)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    int64_t two = 2;
    tn_tensor *whole = NULL, *plain = kit_vector(2, 1);
    ASSERT_OK(tn_ones(&two, 1, &opts, &whole));
    FAILS(tn_tensor_set_requires_grad(whole, true));
    FAILS(tn_tensor_add_hook(whole, any_hook, NULL, NULL, NULL));
    FAILS(tn_tensor_add_accumulated_hook(plain, any_accumulated, NULL, NULL, NULL));
    FAILS(tn_tensor_retain_grad(plain));
    FAILS(tn_tensor_set_grad(plain, plain));
    FAILS(tn_tensor_set_grad(plain, whole));
    tn_tensor *x = kit_leaf(2, 1);
    FAILS(tn_tensor_set_data(x, whole));
    tn_saved_hooks hooks = {.size = sizeof hooks};
    FAILS(tn_saved_hooks_push(&hooks));
    hooks.size = 1;
    FAILS(tn_saved_hooks_push(&hooks));
    char *old = NULL;
    EXPECT_OK(tn_saved_hooks_disable(NULL, &old));
    EXPECT(old == NULL);
    tn_tensor_unref(x);
    tn_tensor_unref(whole);
    tn_tensor_unref(plain);
}

/* ---- functions and checkpoints ---- */

static tn_status pass_on(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                         int n_out)
{
    (void)ctx, (void)n_in;
    for (int i = 0; i < n_out; i++)
        TN_TRY(tn_mul_scalar(in[0], tn_int(2), &out[i]));
    return TN_OK;
}

static tn_status nothing_back(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                              int n_out)
{
    (void)ctx, (void)in, (void)n_in, (void)out, (void)n_out;
    return TN_OK;
}

/* Asks for everything that is not there. */
static tn_status greedy(tn_function_ctx *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                        int n_out)
{
    tn_tensor *t = NULL, *none = NULL;
    FAILS(tn_function_save(ctx, NULL, 1));
    FAILS(tn_function_save(ctx, in, -1));
    FAILS(tn_function_mark_dirty(ctx, NULL, 1));
    FAILS(tn_function_mark_dirty(ctx, in, -1));
    FAILS(tn_function_mark_non_differentiable(ctx, NULL, 1));
    FAILS(tn_function_mark_non_differentiable(ctx, in, -1));
    FAILS(tn_function_set_outputs(ctx, in, 1));
    FAILS(tn_function_saved(ctx, 0, &t));
    FAILS(tn_function_saved(ctx, -1, &t));
    EXPECT(!tn_function_needs_input_grad(ctx, -1) && !tn_function_needs_input_grad(ctx, 1 << 20));
    EXPECT_OK(tn_function_save(ctx, &none, 1));
    return pass_on(ctx, in, n_in, out, n_out);
}

static tn_status fails_half_way(tn_function_ctx *ctx, tn_tensor *const *in, int n_in,
                                tn_tensor **out, int n_out)
{
    TN_TRY(pass_on(ctx, in, n_in, out, n_out));
    return TN_VALUE; /* and says nothing */
}

TEST(functions_refuse_what_is_no_function)
{
    tn_tensor *x = kit_leaf(2, 3), *out[3] = {NULL};
    tn_tensor **any = NULL;
    int n_any = 0;
    tn_function fn = TN_FUNCTION_INIT("Twice", pass_on, nothing_back);
    FAILS(tn_function_apply(NULL, NULL, &x, 1, out, 1));
    FAILS(tn_function_apply(&fn, NULL, NULL, 1, out, 1));
    FAILS(tn_function_apply(&fn, NULL, &x, -1, out, 1));
    FAILS(tn_function_apply(&fn, NULL, &x, 1, NULL, 1));
    FAILS(tn_function_apply(&fn, NULL, &x, 1, out, -1));
    FAILS(tn_function_apply_any(&fn, NULL, &x, 1, NULL, NULL));
    FAILS(tn_function_apply_any(NULL, NULL, &x, 1, &any, &n_any));
    tn_function wrong = fn;
    wrong.size = 2;
    FAILS(tn_function_apply(&wrong, NULL, &x, 1, out, 1));
    wrong = fn;
    wrong.forward = NULL;
    FAILS(tn_function_apply(&wrong, NULL, &x, 1, out, 1));
    wrong = fn;
    wrong.backward = NULL;
    FAILS(tn_function_apply(&wrong, NULL, &x, 1, out, 1));
    wrong = fn;
    wrong.name = NULL;
    if (tn_function_apply(&wrong, NULL, &x, 1, out, 1) == TN_OK)
        tn_tensor_unref(out[0]);
    out[0] = NULL;
    wrong = fn;
    wrong.state_size = SIZE_MAX - 16;
    FAILS(tn_function_apply(&wrong, NULL, &x, 1, out, 1));
    wrong = fn;
    wrong.forward = fails_half_way;
    EXPECT_EQ_INT(tn_function_apply(&wrong, NULL, &x, 1, out, 3), TN_VALUE);
    EXPECT(!out[0] && !out[1] && !out[2]);
    wrong.forward = greedy;
    EXPECT_OK(tn_function_apply(&wrong, NULL, &x, 1, out, 1));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(out[0], &node));
    FAILS(tn_node_function_saved_register_hooks(node, 0, NULL));
    FAILS(tn_node_function_saved_register_hooks(node, -1, NULL));
    FAILS(tn_node_function_saved_register_hooks(node, 1, NULL));
    tn_tensor_unref(out[0]);
    tn_clear_error();
    tn_tensor_unref(x);
}

static tn_status piece(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    (void)ctx, (void)n_in;
    for (int i = 0; i < n_out; i++)
        TN_TRY(tn_mul(in[0], in[0], &out[i]));
    return TN_OK;
}

static tn_status gives_nothing(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out,
                               int n_out)
{
    (void)ctx, (void)in, (void)n_in, (void)out, (void)n_out;
    return TN_OK;
}

TEST(checkpoints_refuse_wrong_pieces)
{
    tn_tensor *x = kit_leaf(1, 3), *out[2] = {NULL};
    FAILS(tn_checkpoint(NULL, NULL, &x, 1, out, 1, NULL));
    FAILS(tn_checkpoint(piece, NULL, NULL, 1, out, 1, NULL));
    FAILS(tn_checkpoint(piece, NULL, &x, -1, out, 1, NULL));
    FAILS(tn_checkpoint(piece, NULL, &x, 1, NULL, 1, NULL));
    FAILS(tn_checkpoint(piece, NULL, &x, 1, out, -1, NULL));
    tn_checkpoint_opts opts = TN_CHECKPOINT_OPTS_INIT;
    opts.size = 3;
    FAILS(tn_checkpoint(piece, NULL, &x, 1, out, 1, &opts));
    for (int reentrant = 0; reentrant < 2; reentrant++) {
        opts = (tn_checkpoint_opts)TN_CHECKPOINT_OPTS_INIT;
        opts.reentrant = reentrant;
        tn_status status = tn_checkpoint(gives_nothing, NULL, &x, 1, out, 2, &opts);
        EXPECT(status != TN_OK || (!out[0] && !out[1]));
        ASSERT_OK(tn_checkpoint(piece, NULL, &x, 1, out, 1, &opts));
        EXPECT_OK(tn_tensor_backward(out[0]));
        FAILS(tn_tensor_backward(out[0])); /* what the piece needs is gone */
        tn_tensor_unref(out[0]);
        out[0] = NULL;
    }
    tn_tensor_unref(x);
}

TEST(forward_mode_refuses_wrong_calls)
{
    tn_tensor *x = kit_vector(2, 3), *other = kit_vector(3, 1), *out = NULL, *tangent = NULL;
    FAILS(tn_make_dual(x, x, &out));
    FAILS(tn_forward_leave());
    ASSERT_OK(tn_forward_enter());
    FAILS(tn_forward_enter());
    FAILS(tn_make_dual(NULL, x, &out));
    FAILS(tn_make_dual(x, NULL, &out));
    FAILS(tn_make_dual(x, x, NULL));
    FAILS(tn_make_dual(x, other, &out));
    FAILS(tn_unpack_dual(NULL, &out, &tangent));
    FAILS(tn_unpack_dual(x, NULL, NULL));
    FAILS(tn_tensor_tangent(NULL, &tangent));
    FAILS(tn_tensor_tangent(x, NULL));
    EXPECT(!out && !tangent);
    EXPECT_OK(tn_tensor_tangent(x, &tangent));
    EXPECT(!tangent);
    ASSERT_OK(tn_forward_leave());
    tn_tensor_unref(x);
    tn_tensor_unref(other);
}

/* ---- hooks that do what they should not ---- */

enum { STRANGE = 6 };
static tn_tensor *strange(int kind)
{
    static const tn_dtype dtypes[STRANGE] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_I64,
                                             TN_DTYPE_C64, TN_DTYPE_F32, TN_DTYPE_F32};
    int64_t size = kind == 0 ? 3 : 2;
    tn_tensor_opts opts = tn_opts(dtypes[kind], kind == 4 ? TN_META : TN_CPU);
    tn_tensor *t = NULL;
    EXPECT_OK(tn_ones(&size, kind == 5 ? 0 : 1, &opts, &t));
    return t;
}

static tn_status give(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad;
    *out = strange(*(int *)ctx);
    return TN_OK;
}

static tn_status give_before(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                             tn_tensor **out)
{
    (void)node, (void)grads, (void)n;
    out[0] = strange(*(int *)ctx);
    return TN_OK;
}

static tn_status give_after(void *ctx, tn_node *node, tn_tensor *const *results, int64_t n_results,
                            tn_tensor *const *grads, int64_t n_grads, tn_tensor **out)
{
    (void)node, (void)results, (void)n_results, (void)grads, (void)n_grads;
    out[0] = strange(*(int *)ctx);
    return TN_OK;
}

static tn_status give_and_fail(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)give(ctx, grad, out);
    return TN_VALUE;
}

/* A gradient of another kind is refused or brought into form; what a hook gave is not lost. */
TEST(hooks_may_give_anything)
{
    kit_warm_up();
    for (int kind = 0; kind < STRANGE; kind++)
        for (int where = 0; where < 5; where++) {
            int64_t before = tni_test_live;
            tn_tensor *x = kit_leaf(2, 3), *y = NULL, *z = NULL, *seed = kit_vector(2, 1);
            ASSERT_OK(tn_mul(x, x, &y));
            ASSERT_OK(tn_mul(y, y, &z));
            tn_node *node = NULL;
            ASSERT_OK(tn_tensor_grad_fn(y, &node));
            if (where == 0)
                ASSERT_OK(tn_tensor_add_hook(x, give, &kind, NULL, NULL));
            if (where == 1)
                ASSERT_OK(tn_tensor_add_hook(y, give, &kind, NULL, NULL));
            if (where == 2)
                ASSERT_OK(tn_node_add_pre_hook(node, give_before, &kind, NULL, NULL));
            if (where == 3)
                ASSERT_OK(tn_node_add_post_hook(node, give_after, &kind, NULL, NULL));
            if (where == 4)
                ASSERT_OK(tn_tensor_add_hook(y, give_and_fail, &kind, NULL, NULL));
            tn_status status = tn_backward(&z, 1, &seed, NULL);
            EXPECT(where != 4 || status == TN_VALUE);
            tn_tensor *grad = tn_tensor_grad(x);
            EXPECT(!grad || (tn_tensor_ndim(grad) == 1 && tn_tensor_sizes(grad)[0] == 2 &&
                             tn_tensor_dtype(grad) == TN_DTYPE_F32 &&
                             tn_tensor_device(grad).type == TN_DEVICE_CPU));
            if (grad && status != TN_OK)
                EXPECT(!"a gradient of a pass that failed before");
            tn_tensor_unref(x);
            tn_tensor_unref(y);
            tn_tensor_unref(z);
            tn_tensor_unref(seed);
            tn_clear_error();
            EXPECT_EQ_INT(tni_test_live, before);
        }
}

/* A hook that takes the graph from under the pass, as far as it can reach. */
static struct {
    tn_tensor *x, *y, *z;
    tn_hook *hook;
} reach;

static tn_status pull(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx, (void)grad, (void)out;
    tn_tensor_unref(TN_MOVE(reach.z));
    tn_tensor_unref(TN_MOVE(reach.y));
    tn_hook_remove(TN_MOVE(reach.hook));
    TN_TRY(tn_tensor_set_grad(reach.x, NULL));
    return tn_tensor_set_requires_grad(reach.x, false);
}

TEST(hooks_may_let_go_of_the_graph_and_of_themselves)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    reach.x = kit_leaf(1, 3);
    ASSERT_OK(tn_mul(reach.x, reach.x, &reach.y));
    ASSERT_OK(tn_mul(reach.y, reach.y, &reach.z));
    ASSERT_OK(tn_tensor_add_hook(reach.y, pull, NULL, NULL, &reach.hook));
    tn_tensor *z = tn_tensor_ref(reach.z);
    EXPECT_OK(tn_tensor_backward(z)); /* what does not require grad any more gets none */
    EXPECT(tn_tensor_grad(reach.x) == NULL && !reach.y && !reach.z);
    tn_tensor_unref(z);
    tn_tensor_unref(TN_MOVE(reach.x));
    tn_clear_error();
    EXPECT_EQ_INT(tni_test_live, before);
}
