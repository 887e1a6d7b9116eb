/* SPDX-License-Identifier: MIT */
/* What golden cases of gradients cannot say: lists that nodes keep are watched and released, and
 * derivatives are those of the function where a formula could go wrong. */
#include "kit.h"
#include "tenon/gradcheck.h"
#include "tenon/saved_hooks.h"

static tn_tensor *places(int64_t n, int64_t value)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    ASSERT_OK(tn_full(&n, 1, tn_int(value), &opts, &t));
    return t;
}

TEST(an_index_written_after_it_was_used_fails_the_pass)
{
    tn_tensor *x = kit_leaf(4, 2), *index = places(2, 1), *y = NULL, *sum = NULL;
    ASSERT_OK(tn_index(x, &index, 1, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &sum));
    ASSERT_OK(tn_fill_(index, tn_int(3)));
    EXPECT_FAIL(TN_INVALID, "modified by an inplace operation", tn_tensor_backward(sum));
    tn_tensor *all[] = {x, index, y, sum};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

TEST(a_list_that_a_node_kept_goes_with_the_pass_and_not_again)
{
    tn_tensor *x = kit_leaf(4, 2), *index = places(2, 1), *y = NULL, *sum = NULL;
    ASSERT_OK(tn_index(x, &index, 1, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &sum));
    ASSERT_OK(tn_tensor_backward(sum));
    EXPECT_NEAR(kit_grad(x, 1), 2, 0);
    EXPECT_NEAR(kit_grad(x, 0), 0, 0);
    EXPECT_FAIL(TN_INVALID, "a second time", tn_tensor_backward(sum));
    tn_tensor *all[] = {x, index, y, sum};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

TEST(lists_leak_nothing_when_an_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(4, 2), *index = places(2, 1);
    tn_tensor *none[] = {NULL, index}, *parts[] = {x, x, x, x, x, x};
    tn_tensor *matrix = NULL;
    ASSERT_OK(tn_stack_tensors(parts, 2, 0, &matrix));
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *y = NULL, *z = NULL;
        rc = tn_index(matrix, none, 2, &y);
        if (rc == TN_OK)
            rc = tn_cat(parts, 6, 0, &z);
        tn_tensor_unref(y);
        tn_tensor_unref(z);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    tn_tensor *all[] = {x, index, matrix};
    for (int i = 0; i < 3; i++)
        tn_tensor_unref(all[i]);
}

static tn_status products(void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                          tn_tensor **outputs, int64_t *n_outputs)
{
    const int64_t at[] = {1, 1, 0, 1}, n = 4;
    TN_AUTO(tn_tensor) index = NULL;
    (void)n_inputs;
    TN_TRY(tn_tensor_from_data(at, 1, &n, TN_DTYPE_I64, &index));
    TN_TRY(tn_scatter_reduce(inputs[0], 0, index, inputs[1], "prod", ctx != NULL, &outputs[0]));
    *n_outputs = 1;
    return TN_OK;
}

TEST(a_product_with_two_zeros_is_differentiated_again)
{
    const double self[] = {0.7, 1.3}, src[] = {0, 0, 0.4, 0.9};
    tn_tensor *inputs[] = {NULL, NULL};
    ASSERT_OK(tn_tensor_from_data(self, 1, (const int64_t[]){2}, TN_DTYPE_F64, &inputs[0]));
    ASSERT_OK(tn_tensor_from_data(src, 1, (const int64_t[]){4}, TN_DTYPE_F64, &inputs[1]));
    for (int i = 0; i < 2; i++)
        ASSERT_OK(tn_tensor_set_requires_grad(inputs[i], true));
    for (int with_self = 0; with_self < 2; with_self++) {
        EXPECT_OK(tn_gradcheck(products, with_self ? inputs : NULL, inputs, 2, NULL));
        EXPECT_OK(tn_gradgradcheck(products, with_self ? inputs : NULL, inputs, 2, NULL, NULL));
    }
    tn_tensor_unref(inputs[0]);
    tn_tensor_unref(inputs[1]);
}

static tn_status prelu_backward(void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                                tn_tensor **outputs, int64_t *n_outputs)
{
    (void)ctx, (void)n_inputs;
    TN_TRY(tn__prelu_kernel_backward(inputs[0], inputs[1], inputs[2], &outputs[0], &outputs[1]));
    *n_outputs = 2;
    return TN_OK;
}

TEST(both_gradients_of_prelu_have_the_sizes_of_all_their_arguments)
{
    const double numbers[] = {0.7, -1.3, 0.4, -0.9};
    const int64_t sizes[][2] = {{1, 1}, {1, 2}, {2, 1}, {2, 2}};
    for (int i = 0; i < 64; i++) {
        tn_tensor *inputs[3];
        int64_t wanted[2] = {1, 1};
        for (int k = 0, of = i; k < 3; k++, of /= 4) {
            const int64_t *size = sizes[of % 4];
            ASSERT_OK(tn_tensor_from_data(numbers, 2, size, TN_DTYPE_F64, &inputs[k]));
            ASSERT_OK(tn_tensor_set_requires_grad(inputs[k], true));
            for (int d = 0; d < 2; d++)
                wanted[d] = size[d] > wanted[d] ? size[d] : wanted[d];
        }
        tn_tensor *both[2];
        ASSERT_OK(tn__prelu_kernel_backward(inputs[0], inputs[1], inputs[2], &both[0], &both[1]));
        for (int k = 0; k < 2; k++) {
            EXPECT_EQ_INT(tn_tensor_sizes(both[k])[0], wanted[0]);
            EXPECT_EQ_INT(tn_tensor_sizes(both[k])[1], wanted[1]);
            tn_tensor_unref(both[k]);
        }
        EXPECT_OK(tn_gradcheck(prelu_backward, NULL, inputs, 3, NULL));
        for (int k = 0; k < 3; k++)
            tn_tensor_unref(inputs[k]);
    }
}

static tn_status ctc_of_scores(void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                               tn_tensor **outputs, int64_t *n_outputs)
{
    const int64_t in[] = {5, 3}, counts[] = {2, 1};
    TN_AUTO(tn_tensor) log_probs = NULL;
    (void)n_inputs;
    TN_TRY(tn_log_softmax(inputs[0], 2, TN_DTYPE_NONE, &log_probs));
    TN_TRY(tn_ctc_loss(log_probs, ctx, in, 2, counts, 2, 0, 0, false, &outputs[0]));
    *n_outputs = 1;
    return TN_OK;
}

TEST(the_gradient_of_a_sequence_loss_is_that_of_normalised_scores)
{
    const int64_t sizes[] = {5, 2, 4}, rows[] = {2, 2}, labels[] = {1, 2, 3, 3};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    tn_tensor *x = NULL, *targets = NULL;
    tn_manual_seed(3);
    ASSERT_OK(tn_randn(sizes, 3, &opts, &x));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_tensor_from_data(labels, 2, rows, TN_DTYPE_I64, &targets));
    EXPECT_OK(tn_gradcheck(ctc_of_scores, targets, &x, 1, NULL));
    tn_tensor_unref(x);
    tn_tensor_unref(targets);
}

/* ---- what has no gradient says so, or has one of zeros ---- */

TEST(a_derivative_that_nobody_has_is_refused_in_the_words_of_the_reference)
{
    tn_tensor *x = kit_leaf(4, 2), *plain = kit_vector(4, 3), *y = NULL, *m = NULL, *tau = NULL,
              *copy = NULL;
    EXPECT_FAIL(TN_UNSUPPORTED, "the derivative for 'nextafter' is not implemented.",
                tn_nextafter(x, plain, &y));
    EXPECT_FAIL(TN_UNSUPPORTED, "the derivative for 'nextafter' is not implemented.",
                tn_nextafter(plain, x, &y));
    ASSERT_OK(kit_scale(x, &copy));
    EXPECT_FAIL(TN_UNSUPPORTED, "the derivative for 'nextafter' is not implemented.",
                tn_nextafter_(copy, plain));
    ASSERT_OK(tn_view(x, (const int64_t[]){2, 2}, 2, &m));
    EXPECT_FAIL(TN_UNSUPPORTED, "the derivative for 'geqrf' is not implemented.",
                tn_geqrf(m, &y, &tau));
    EXPECT_FAIL(TN_UNSUPPORTED, "the derivative for 'zeta' is not implemented.",
                tn_special_zeta(x, plain, &y));
    EXPECT_FAIL(TN_UNSUPPORTED, "derivative for aten::heaviside is not implemented",
                tn_heaviside(x, plain, &y));
    EXPECT(!strstr(tn_last_error(), "the derivative for"));
    EXPECT(!y && !tau);
    EXPECT_OK(tn_special_zeta(plain, x, &y)); /* by this argument there is one */
    EXPECT(tn_tensor_requires_grad(y));
    tn_tensor_unref(y);
    tn_tensor_unref(m);
    tn_tensor_unref(copy);
    tn_tensor_unref(x);
    tn_tensor_unref(plain);
}

TEST(elements_that_are_replaced_lose_no_gradient_silently)
{
    tn_tensor *x = kit_leaf(2, 1), *y = NULL, *plain = kit_vector(2, 3);
    ASSERT_OK(kit_scale(x, &y));
    EXPECT_FAIL(TN_INVALID, "a leaf Variable that requires grad", tn_set_tensor_(x, plain));
    EXPECT_FAIL(TN_UNSUPPORTED, "derivative for aten::set_ is not implemented",
                tn_set_tensor_(y, plain));
    EXPECT_FAIL(TN_UNSUPPORTED, "derivative for aten::set_ is not implemented",
                tn_set_tensor_(plain, x));
    bool grad = tn_set_grad_enabled(false);
    EXPECT_OK(tn_set_tensor_(x, plain));
    tn_set_grad_enabled(grad);
    EXPECT_NEAR(kit_at(x, 0), 3, 0);
    EXPECT(tn_tensor_requires_grad(x));
    tn_tensor_unref(y);
    tn_tensor_unref(x);
    tn_tensor_unref(plain);
}

TEST(random_numbers_have_a_gradient_of_zeros_in_mean_and_deviation)
{
    tn_tensor *mean = kit_leaf(3, 1), *std = kit_leaf(1, 2), *y = NULL, *total = NULL;
    ASSERT_OK(tn_normal_tensor_tensor(mean, std, NULL, &y));
    EXPECT(tn_tensor_requires_grad(y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &total));
    EXPECT_OK(tn_tensor_backward(total));
    EXPECT_NEAR(kit_grad(mean, 2), 0, 0);
    EXPECT_NEAR(kit_grad(std, 0), 0, 0);
    tn_tensor *all[] = {mean, std, y, total};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}

/* A list is written whole or not at all. */
TEST(a_leaf_in_a_list_is_refused_before_the_others_are_written)
{
    tn_tensor *x = kit_leaf(2, 1), *y = NULL;
    ASSERT_OK(kit_scale(x, &y));
    tn_tensor *list[] = {y, x};
    EXPECT_FAIL(TN_INVALID, "a leaf Variable that requires grad is being used",
                tn__foreach_mul_(list, 2, tn_float(5)));
    EXPECT_NEAR(kit_at(y, 0), 2, 0);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

/* As in the reference, whatever the order of arguments: who is told that a saved value was written
 * learns of the same one. */
TEST(saved_arguments_are_kept_by_name)
{
    tn_tensor *x = kit_leaf(2, 1), *y = kit_leaf(2, 1), *z = NULL;
    tn_node *node = NULL;
    ASSERT_OK(tn_mul(x, y, &z));
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    EXPECT_STR(tn_node_saved_name(node, 0), "other");
    EXPECT_STR(tn_node_saved_name(node, 1), "self");
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}
