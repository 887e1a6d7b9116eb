/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_views.c: what is recorded of views, and what becomes of their history when
 * their base is written. */
#include "harness/test.h"

#include "autograd/view.h"
#include "core/state.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

static tn_tensor *ones(int ndim, const int64_t *sizes)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_ones(sizes, ndim, &opts, &t));
    return t;
}

/* All of @p base again, as a view kernel returns it: nothing is recorded yet. */
static tn_tensor *raw_alias(tn_tensor *base)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_alias(base, base->ndim, base->sizes, base->strides, base->offset, &t));
    return t;
}

/* ---- the record ---- */

TEST(a_view_of_a_view_is_a_view_of_the_root)
{
    tn_tensor *base = ones(1, (int64_t[]){4}), *a = raw_alias(base), *b = raw_alias(a);
    ASSERT_OK(tni_tensor_bump_version(base));
    ASSERT_OK(tni_view_made(base, a));
    ASSERT_OK(tni_tensor_bump_version(a));
    ASSERT_OK(tni_view_made(a, b));
    EXPECT(base->view_base == NULL);
    EXPECT(a->view_base == base && b->view_base == base);
    EXPECT_EQ_INT(a->view_version, 1);
    EXPECT_EQ_INT(b->view_version, 2);
    EXPECT_EQ_INT(tn_tensor_use_count(base), 3);
    EXPECT_EQ_INT(tn_tensor_use_count(a), 1);
    tn_tensor_unref(a);
    EXPECT_EQ_INT(tn_tensor_use_count(base), 2);
    tn_tensor_unref(base); /* the view keeps it */
    EXPECT_EQ_INT(tn_tensor_use_count(b->view_base), 1);
    tn_tensor_unref(b);
}

TEST(a_view_of_what_requires_grad_requires_grad_and_a_detached_alias_does_not)
{
    tn_tensor *base = ones(1, (int64_t[]){4}), *view = raw_alias(base), *alias = raw_alias(base);
    ASSERT_OK(tni_view_made(base, view));
    ASSERT_OK(tni_alias_made(base, alias));
    EXPECT(!tn_tensor_requires_grad(view));
    ASSERT_OK(tn_tensor_set_requires_grad(base, true));
    EXPECT(tn_tensor_requires_grad(view));
    EXPECT(!tn_tensor_requires_grad(alias));
    EXPECT(alias->view_base == NULL);
    ASSERT_OK(tni_tensor_bump_version(base));
    uint32_t version = 0;
    ASSERT_OK(tn_tensor_version(alias, &version));
    EXPECT_EQ_INT(version, 1);
    tn_tensor_unref(alias);
    tn_tensor_unref(view);
    tn_tensor_unref(base);
}

static uint32_t made_as(tn_tensor *base, bool multi)
{
    tn_tensor *view = raw_alias(base);
    ASSERT_OK(multi ? tni_multi_view_made(base, view) : tni_view_made(base, view));
    uint32_t flags = view->flags & TNI_VIEW_CREATION;
    tn_tensor_unref(view);
    return flags;
}

static tn_tensor *kind(tn_tensor *base, int how)
{
    tn_tensor *view = raw_alias(base);
    bool grad = tn_grad_enabled();
    tn_inference_guard guard;
    if (how == 1)
        tn_set_grad_enabled(false);
    if (how == 2)
        guard = tn_inference_enter(true);
    ASSERT_OK(how == 3 ? tni_multi_view_made(base, view) : tni_view_made(base, view));
    if (how == 2)
        tn_inference_leave(guard);
    tn_set_grad_enabled(grad);
    return view;
}

TEST(how_a_view_was_made_is_remembered_and_passed_on)
{
    tn_tensor *base = ones(1, (int64_t[]){4});
    EXPECT_EQ_INT(made_as(base, false), 0);
    EXPECT_EQ_INT(made_as(base, true), TNI_VIEW_MULTI_OUTPUT);
    static const uint32_t own[] = {0, TNI_VIEW_NO_GRAD, TNI_VIEW_INFERENCE, TNI_VIEW_MULTI_OUTPUT};
    for (int first = 0; first < 4; first++)
        for (int then = 0; then < 4; then++) {
            test_note("first %d, then %d", first, then);
            tn_tensor *a = kind(base, first), *b = kind(a, then);
            EXPECT_EQ_INT(a->flags & TNI_VIEW_CREATION, own[first]);
            EXPECT_EQ_INT(b->flags & TNI_VIEW_CREATION,
                          then == 0 || first == 2 ? own[first] : own[then]);
            tn_tensor_unref(b);
            tn_tensor_unref(a);
        }
    tn_tensor_unref(base);
}

TEST(a_view_of_an_inference_tensor_is_left_alone)
{
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *base = ones(1, (int64_t[]){4});
    tn_inference_leave(guard);
    tn_tensor *view = raw_alias(base);
    ASSERT_OK(tni_view_made(base, view));
    EXPECT(view->view_base == NULL && view->versions == NULL);
    tn_tensor_unref(view);
    tn_tensor_unref(base);
}

TEST(a_view_operator_must_not_return_its_argument)
{
    tn_tensor *t = ones(1, (int64_t[]){4});
    const char *text =
        "View operation returned a tensor that is the same as the input base tensor.";
    EXPECT_FAIL(TN_INTERNAL, text, tni_view_made(t, t));
    EXPECT_FAIL(TN_INTERNAL, text, tni_multi_view_made(t, t));
    EXPECT_FAIL(TN_INTERNAL, text, tni_alias_made(t, t));
    tn_tensor_unref(t);
}

/* ---- elements apart from history ---- */

static uint32_t version(const tn_tensor *t)
{
    uint32_t v = 0;
    ASSERT_OK(tn_tensor_version(t, &v));
    return v;
}

TEST(a_data_alias_shares_elements_and_nothing_else)
{
    tn_tensor *x = ones(1, (int64_t[]){2}), *data = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_tensor_data_alias(x, &data));
    ASSERT_OK(tn_zero_(data));
    EXPECT(tn_tensor_shares_storage(x, data) && !tn_tensor_requires_grad(data));
    EXPECT_EQ_INT(version(data), 1);
    EXPECT_EQ_INT(version(x), 0);
    tn_tensor_unref(x);
    tn_tensor_unref(data);
}

TEST(a_view_that_is_given_other_elements_leaves_its_base)
{
    tn_tensor *x = ones(1, (int64_t[]){2}), *y = ones(1, (int64_t[]){3});
    tn_tensor *middle = NULL, *view = NULL, *total = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_mul(x, x, &middle));
    ASSERT_OK(tn_view(middle, (int64_t[]){2, 1}, 2, &view));
    EXPECT(tn_tensor_base(view) == middle);
    ASSERT_OK(tn_tensor_set_data(view, view)); /* its own elements: nothing happens */
    EXPECT(tn_tensor_base(view) == middle);
    ASSERT_OK(tn_tensor_set_data(view, y));
    EXPECT(!tn_tensor_base(view) && view->ndim == 1 && tn_tensor_requires_grad(view));
    ASSERT_OK(tn_mul_(view, view)); /* is not a write of the old base */
    EXPECT_EQ_INT(version(middle), 0);
    ASSERT_OK(tn_sum(middle, TN_DTYPE_NONE, &total));
    ASSERT_OK(tn_backward(&total, 1, NULL, NULL));
    tn_tensor_unref(total);
    tn_tensor_unref(view);
    tn_tensor_unref(middle);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

/* x.data = x.data: the same memory under a new name. A write is still one of the base, and of what
 * was saved. */
TEST(what_is_given_its_own_memory_is_still_seen_to_be_written)
{
    tn_tensor *x = ones(1, (int64_t[]){4}), *three = ones(0, NULL), *same = NULL;
    tn_tensor *middle = NULL, *view = NULL, *total = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_exp(x, &middle));
    ASSERT_OK(tn_view(middle, (int64_t[]){2, 2}, 2, &view));
    ASSERT_OK(tn_tensor_data_alias(view, &same));
    ASSERT_OK(tn_tensor_set_data(view, same));
    EXPECT(tn_tensor_base(view) == middle);
    ASSERT_OK(tn_add_(three, three, tn_int(2)));
    ASSERT_OK(tn_mul_(view, three));
    EXPECT_EQ_INT(version(middle), 1);
    ASSERT_OK(tn_sum(middle, TN_DTYPE_NONE, &total));
    EXPECT_FAIL(TN_INVALID, "modified by an inplace operation", tn_tensor_backward(total));
    tn_tensor *all[] = {x, three, same, middle, view, total};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}

/* squeeze_ and its kind change how a view looks, not what is in its base. */
TEST(changing_the_sizes_of_a_view_leaves_its_base_alone)
{
    tn_tensor *x = ones(1, (int64_t[]){4}), *y = NULL, *view = NULL, *total = NULL;
    tn_node *before = NULL, *after = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_exp(x, &y));
    ASSERT_OK(tn_view(y, (int64_t[]){1, 4}, 2, &view));
    ASSERT_OK(tn_tensor_grad_fn(y, &before));
    ASSERT_OK(tn_squeeze_(view));
    ASSERT_OK(tn_unsqueeze_(view, 1));
    ASSERT_OK(tn_tensor_grad_fn(y, &after));
    EXPECT(before == after && tn_tensor_base(view) == y);
    ASSERT_OK(tn_mul_(view, view));
    ASSERT_OK(tn_sum(view, TN_DTYPE_NONE, &total));
    EXPECT_FAIL(TN_INVALID, "modified by an inplace operation", tn_tensor_backward(total));
    tn_tensor *all[] = {x, y, view, total};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tn_tensor_unref(all[i]);
}

/* `result new` in a declaration: their last step is a view of what nobody else sees. */
TEST(operators_that_make_new_tensors_give_no_views)
{
    tn_tensor *x = ones(1, (int64_t[]){4}), *index = NULL, *made[4] = {NULL};
    tn_tensor_opts whole = tn_opts(TN_DTYPE_I64, TN_CPU);
    ASSERT_OK(tn_zeros((int64_t[]){1}, 1, &whole, &index));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_make_complex(x, x, &made[0]));
    ASSERT_OK(tn_kron(x, x, &made[1]));
    ASSERT_OK(tn_index_fill(x, 0, index, tn_float(2), &made[2]));
    ASSERT_OK(tn_polar(x, x, &made[3]));
    for (int i = 0; i < 4; i++) {
        EXPECT(!tn_tensor_is_view(made[i]) && !tn_tensor_is_leaf(made[i]));
        EXPECT_OK(tn_detach_(made[i])); /* which views refuse */
        tn_tensor_unref(made[i]);
    }
    tn_tensor_unref(index);
    tn_tensor_unref(x);
}

TEST(a_tensor_can_be_given_other_elements)
{
    tn_tensor *x = ones(1, (int64_t[]){2}), *y = ones(2, (int64_t[]){3, 4}), *view = raw_alias(x);
    ASSERT_OK(tni_tensor_bump_version(x));
    ASSERT_OK(tni_view_made(x, view));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_tensor_set_data(x, y));
    EXPECT(tn_tensor_shares_storage(x, y) && x->ndim == 2 && x->data == y->data);
    EXPECT(tn_tensor_requires_grad(x));
    EXPECT_EQ_INT(version(x), 1); /* its own counter, from where it was */
    ASSERT_OK(tni_tensor_bump_version(y));
    EXPECT_EQ_INT(version(x), 1);
    EXPECT(!tn_tensor_shares_storage(x, view) && view->numel == 2);

    tn_tensor_opts meta = tn_opts(TN_DTYPE_F32, TN_META), whole = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *other = NULL;
    ASSERT_OK(tn_zeros((int64_t[]){2}, 1, &meta, &other));
    EXPECT_FAIL(TN_INVALID,
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                "incompatible tensor type.",
                tn_tensor_set_data(x, other));
    tn_tensor_unref(other);
    ASSERT_OK(tn_zeros((int64_t[]){2}, 1, &whole, &other));
    EXPECT_FAIL(TN_INVALID,
                "data set to a tensor that requires gradients must be floating point or complex "
                "dtype",
                tn_tensor_set_data(x, other));
    tn_tensor_unref(other);
    tn_tensor_unref(view);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}
