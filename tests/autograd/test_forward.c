/* SPDX-License-Identifier: MIT */
/* Forward mode: the level, dual tensors, how tangents go through views and writes, what is refused.
 * Every operator's tangents are checked in test_gradcheck.c. */
#include <math.h>
#include <string.h>

#include "autograd/duals.h"
#include "tenon/function.h"

#define EXPECT_REFUSED(call, code, text)               \
    do {                                               \
        EXPECT_EQ_INT((call), code);                   \
        EXPECT(strstr(tn_last_error(), text) != NULL); \
    } while (0)

/* ---- the level ---- */

TEST(there_is_one_level)
{
    EXPECT(!tn_forward_entered());
    EXPECT_REFUSED(tn_forward_leave(), TN_INVALID, "no level was entered");
    ASSERT_OK(tn_forward_enter());
    EXPECT(tn_forward_entered());
    EXPECT_REFUSED(tn_forward_enter(), TN_INVALID,
                   "Nested forward mode AD is not supported at the moment");
    ASSERT_OK(tn_forward_leave());
    EXPECT(!tn_forward_entered());
}

TEST(leaving_drops_all_tangents)
{
    tn_tensor *x = kit_vector(2, 3), *y = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 1);
    ASSERT_OK(tn_mul(d, d, &y));
    EXPECT(slope(y, 0) == 6);
    ASSERT_OK(tn_forward_leave());
    EXPECT(isnan(slope(d, 0)));
    EXPECT(isnan(slope(y, 0)));
    EXPECT(!(y->flags & TNI_HAS_TANGENT));
    drop2(d, y);
    tn_tensor_unref(x);
}

TEST(a_dual_tensor_is_a_view_and_the_primal_is_left_alone)
{
    tn_tensor *x = kit_leaf(2, 3), *primal = NULL, *tangent = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 5);
    EXPECT(d->storage == x->storage && tn_tensor_requires_grad(d));
    EXPECT(isnan(slope(x, 0)));
    ASSERT_OK(tn_unpack_dual(d, &primal, &tangent));
    EXPECT(primal->storage == x->storage && isnan(slope(primal, 0)));
    EXPECT(kit_at(tangent, 1) == 5);
    drop2(primal, tangent);
    ASSERT_OK(tn_unpack_dual(x, &primal, &tangent));
    EXPECT(tangent == NULL);
    tn_tensor_unref(primal);
    ASSERT_OK(tn_forward_leave());
    drop2(d, x);
}

TEST(a_primal_has_no_tangent_and_neither_have_its_views)
{
    tn_tensor *x = kit_vector(2, 3), *y = NULL, *primal = NULL, *tangent = NULL, *part = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 1);
    ASSERT_OK(tn_mul(d, d, &y));
    ASSERT_OK(tn_unpack_dual(y, &primal, &tangent));
    EXPECT(kit_at(tangent, 0) == 6 && slope(y, 0) == 6);
    EXPECT(isnan(slope(primal, 0)));
    ASSERT_OK(tn_select(primal, 0, 1, &part));
    EXPECT(isnan(slope(part, 0)));
    tn_tensor_unref(part);
    ASSERT_OK(tn_mul(primal, primal, &part));
    EXPECT(kit_at(part, 0) == 81 && isnan(slope(part, 0)));
    tn_tensor_unref(part);
    ASSERT_OK(tn_select(y, 0, 1, &part)); /* views of the dual one have it */
    EXPECT(slope(part, 0) == 6);
    tn_tensor_unref(part);
    ASSERT_OK(tn_forward_leave());
    drop2(primal, tangent);
    drop2(d, x);
    tn_tensor_unref(y);
}

TEST(what_cannot_be_dual_is_refused)
{
    tn_tensor *x = kit_vector(2, 3), *three = kit_vector(3, 1), *out = NULL, *wide = NULL;
    tn_tensor *whole = NULL;
    EXPECT_REFUSED(tn_make_dual(x, x, &out), TN_INVALID,
                   "Trying to create a dual Tensor for forward AD but no level exists, make sure "
                   "to enter_dual_level() first.");
    ASSERT_OK(tn_forward_enter());
    EXPECT_REFUSED(tn_make_dual(x, three, &out), TN_INVALID,
                   "Trying to set a forward gradient that has a different size than that of the "
                   "original Tensor, this is not supported. Tensor is of size [2] while the given "
                   "forward gradient is of size [3].");
    ASSERT_OK(tn_to_dtype(x, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
    EXPECT_REFUSED(tn_make_dual(x, wide, &out), TN_INVALID, "float32 on cpu while");
    ASSERT_OK(tn_to_dtype(x, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &whole));
    EXPECT_REFUSED(tn_make_dual(whole, whole, &out), TN_INVALID,
                   "Expected primal to be floating point or complex, but got: torch.int64");
    tn_tensor *d = dual(x, 1);
    EXPECT_REFUSED(tn_make_dual(d, x, &out), TN_INVALID,
                   "Making a dual Tensor based on a Tensor that already has a forward gradient at "
                   "the same level 0 is not supported.");
    EXPECT_REFUSED(tn_make_dual(x, d, &out), TN_INVALID,
                   "Setting a forward grad that itself has a forward gradient at the same level0 "
                   "is not supported.");
    EXPECT(out == NULL);
    EXPECT_REFUSED(tn_make_dual(x, x, NULL), TN_INVALID, "out is NULL");
    ASSERT_OK(tn_forward_leave());
    drop2(x, three);
    drop2(wide, d);
    tn_tensor_unref(whole);
}

TEST(what_has_a_tangent_keeps_its_sizes)
{
    const int64_t size = 2;
    tn_tensor *x = kit_vector(4, 3), *y = NULL, *v = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 1);
    ASSERT_OK(tn_mul(d, d, &y));
    ASSERT_OK(tn_alias(y, &v));
    const char *text = "cannot resize variables that has a forward grad";
    EXPECT_REFUSED(tn_resize_(d, &size, 1, TN_FORMAT_NONE), TN_INVALID, text);
    EXPECT_REFUSED(tn_resize_(v, &size, 1, TN_FORMAT_NONE), TN_INVALID, text);
    EXPECT(d->sizes[0] == 4 && v->sizes[0] == 4 && slope(d, 3) == 1);
    EXPECT_OK(tn_resize_(x, &size, 1, TN_FORMAT_NONE)); /* the primal has none */
    ASSERT_OK(tn_forward_leave());
    EXPECT_OK(tn_resize_(d, &size, 1, TN_FORMAT_NONE));
    drop2(x, d);
    drop2(y, v);
}

TEST(a_tangent_of_another_layout_is_copied)
{
    const int64_t sizes[] = {2, 3};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *x = NULL, *wide = NULL, *t = NULL, *d = NULL, *kept = NULL;
    ASSERT_OK(tn_zeros(sizes, 2, &opts, &x));
    ASSERT_OK(tn_ones((int64_t[]){3, 2}, 2, &opts, &wide));
    ASSERT_OK(tn_t(wide, &t));
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(x, t, &d));
    ASSERT_OK(tn_tensor_tangent(d, &kept));
    EXPECT(kept != t && kept->strides[0] == 3 && kept->strides[1] == 1);
    EXPECT(kit_at(kept, 5) == 1);
    ASSERT_OK(tn_forward_leave());
    drop2(x, wide);
    drop2(t, d);
    tn_tensor_unref(kept);
}

/* ---- calls ---- */

TEST(calls_push_tangents_whatever_is_recorded)
{
    tn_tensor *x = kit_vector(2, 3), *w = kit_leaf(2, 4), *y = NULL, *z = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 1);
    /* Nothing requires grad: the result does not either. */
    ASSERT_OK(tn_mul(d, d, &y));
    EXPECT(slope(y, 0) == 6 && !tn_tensor_requires_grad(y));
    /* What has no tangent requires grad: the tangent depends on it. */
    ASSERT_OK(tn_mul(d, w, &z));
    tn_tensor *tangent = NULL;
    ASSERT_OK(tn_tensor_tangent(z, &tangent));
    EXPECT(kit_at(tangent, 0) == 4 && tn_tensor_requires_grad(tangent));
    tn_tensor *sum = NULL;
    ASSERT_OK(tn_sum(tangent, TN_DTYPE_NONE, &sum));
    ASSERT_OK(tn_tensor_backward(sum));
    EXPECT(kit_grad(w, 1) == 1);
    drop2(sum, tangent);
    drop2(y, z);
    bool on = tn_set_grad_enabled(false);
    ASSERT_OK(tn_mul(d, w, &z));
    tn_set_grad_enabled(on);
    EXPECT(slope(z, 1) == 4 && !tn_tensor_requires_grad(z));
    tn_tensor_unref(z);
    /* Told not to. */
    on = tn_set_forward_grad_enabled(false);
    ASSERT_OK(tn_mul(d, w, &z));
    tn_set_forward_grad_enabled(on);
    EXPECT(isnan(slope(z, 0)) && tn_tensor_requires_grad(z));
    ASSERT_OK(tn_forward_leave());
    drop2(z, d);
    drop2(x, w);
}

static tn_tensor *first_two(tn_tensor *d)
{
    tn_tensor *out = NULL;
    ASSERT_OK(tn_slice(d, 0, tn_some_int(0), tn_some_int(2), 1, &out));
    return out;
}

/* Does @p v, of value 3 and slope 2, push its tangent through products and sines? */
static void expect_pushed(tn_tensor *v)
{
    tn_tensor *square = NULL, *sine = NULL;
    ASSERT_OK(tn_mul(v, v, &square));
    ASSERT_OK(tn_sin(v, &sine));
    EXPECT(slope(v, 1) == 2 && slope(square, 0) == 12 && slope(square, 1) == 12);
    EXPECT(fabsf(slope(sine, 1) - 2 * cosf(3)) < 1e-6f);
    drop2(square, sine);
}

TEST(a_view_that_is_made_without_grad_pushes_its_tangent)
{
    for (int leaf = 0; leaf < 2; leaf++) {
        tn_tensor *x = leaf ? kit_leaf(3, 3) : kit_vector(3, 3), *y = NULL;
        ASSERT_OK(tn_forward_enter());
        tn_tensor *d = dual(x, 2);
        bool on = tn_set_grad_enabled(false);
        tn_tensor *v = first_two(d);
        tn_set_grad_enabled(on);
        expect_pushed(v);
        /* Beside one that was made with grad. */
        tn_tensor *w = first_two(d);
        ASSERT_OK(tn_mul(v, w, &y));
        EXPECT(slope(y, 1) == 12);
        drop2(v, w);
        ASSERT_OK(tn_forward_leave());
        drop2(y, d);
        tn_tensor_unref(x);
    }
}

TEST(a_view_of_a_dual_tensor_that_is_made_while_no_tangents_are_pushed_has_one)
{
    tn_tensor *x = kit_leaf(3, 3), *y = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 2);
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *v = first_two(d), *again = first_two(v);
    ASSERT_OK(tn_mul(d, d, &y));
    tn_inference_leave(guard);
    EXPECT(isnan(slope(y, 0)));
    expect_pushed(v);
    expect_pushed(again);
    drop2(v, again);
    bool on = tn_set_forward_grad_enabled(false);
    v = first_two(d);
    tn_set_forward_grad_enabled(on);
    expect_pushed(v);
    ASSERT_OK(tn_forward_leave());
    EXPECT(isnan(slope(v, 0)));
    drop2(v, y);
    drop2(x, d);
}

TEST(the_tangent_of_a_view_of_other_numbers_is_found)
{
    tn_tensor *x = kit_vector(4, 3), *pairs = NULL, *numbers = NULL, *real = NULL, *y = NULL;
    ASSERT_OK(tn_view(x, (int64_t[]){2, 2}, 2, &pairs));
    ASSERT_OK(tn_forward_enter());
    tn_tensor *flat = dual(x, 2), *d = NULL;
    ASSERT_OK(tn_view(flat, (int64_t[]){2, 2}, 2, &d));
    tn_inference_guard guard = tn_inference_enter(true);
    ASSERT_OK(tn_view_as_complex(d, &numbers));
    ASSERT_OK(tn_view_as_real(numbers, &real));
    tn_inference_leave(guard);
    ASSERT_OK(tn_real(numbers, &y));
    EXPECT(slope(real, 3) == 2 && slope(y, 1) == 2);
    ASSERT_OK(tn_forward_leave());
    drop2(numbers, real);
    drop2(x, pairs);
    drop2(flat, d);
    tn_tensor_unref(y);
}

TEST(results_that_have_no_derivative_have_no_tangent)
{
    tn_tensor *x = kit_vector(2, 3), *y = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 1);
    ASSERT_OK(tn_gt_scalar(d, tn_int(0), &y));
    EXPECT(!(y->flags & TNI_HAS_TANGENT));
    tn_tensor_unref(y);
    ASSERT_OK(tn_detach(d, &y));
    EXPECT(isnan(slope(y, 0)));
    tn_tensor_unref(y);
    ASSERT_OK(tn_mul(d, d, &y));
    ASSERT_OK(tn_detach_(y));
    EXPECT(isnan(slope(y, 0)));
    ASSERT_OK(tn_forward_leave());
    drop2(y, d);
    tn_tensor_unref(x);
}

TEST(operators_without_a_rule_are_refused)
{
    tn_tensor *x = kit_vector(2, 3), *y = NULL, *room = kit_vector(2, 0);
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 1);
    EXPECT_REFUSED(tn_heaviside(d, x, &y), TN_UNSUPPORTED,
                   "Trying to use forward AD with heaviside that does not support it because it "
                   "has not been implemented yet.");
    EXPECT_REFUSED(tn_add_out(d, d, tn_int(1), room), TN_UNSUPPORTED,
                   "Trying to use forward AD with add_out that does not support it because it is "
                   "an out= function");
    EXPECT(y == NULL);
    ASSERT_OK(tn_forward_leave());
    drop2(x, room);
    tn_tensor_unref(d);
}

static tn_status copy_forward(tn_function_ctx *ctx, tn_tensor *const *inputs, int n_inputs,
                              tn_tensor **outputs, int n_outputs)
{
    (void)ctx, (void)n_inputs, (void)n_outputs;
    return tn_clone(inputs[0], TN_FORMAT_NONE, &outputs[0]);
}

static tn_status copy_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n_grads,
                               tn_tensor **out, int n_out)
{
    (void)ctx, (void)n_grads, (void)n_out;
    out[0] = tn_tensor_ref(grads[0]);
    return TN_OK;
}

TEST(functions_with_a_gradient_of_their_own_are_refused)
{
    const tn_function fn = TN_FUNCTION_INIT("Copy", copy_forward, copy_backward);
    tn_tensor *x = kit_vector(2, 3), *y = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 1);
    EXPECT_REFUSED(tn_function_apply(&fn, NULL, &d, 1, &y, 1), TN_UNSUPPORTED,
                   "You must implement the jvp function for custom autograd.Function to use it "
                   "with forward mode AD.");
    EXPECT(y == NULL);
    bool on = tn_set_forward_grad_enabled(false);
    ASSERT_OK(tn_function_apply(&fn, NULL, &d, 1, &y, 1));
    tn_set_forward_grad_enabled(on);
    EXPECT(isnan(slope(y, 0)));
    ASSERT_OK(tn_forward_leave());
    drop2(d, x);
    tn_tensor_unref(y);
}

/* ---- views and writes ---- */

TEST(a_write_updates_the_tangent_in_place)
{
    tn_tensor *x = kit_vector(2, 3), *t = kit_vector(2, 1), *d = NULL;
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(x, t, &d));
    ASSERT_OK(tn_mul_(d, d));
    EXPECT(kit_at(d, 0) == 9 && slope(d, 0) == 6);
    EXPECT(kit_at(t, 0) == 6); /* the very tangent that was given */
    ASSERT_OK(tn_fill_(d, tn_int(1)));
    EXPECT(slope(d, 1) == 0);
    ASSERT_OK(tn_forward_leave());
    drop2(x, t);
    tn_tensor_unref(d);
}

/* x + 1 moves as x does, but with a tangent of its own. */
TEST(tensors_that_move_alike_are_written_apart)
{
    tn_tensor *x = kit_vector(2, 3), *one = kit_vector(2, 1), *copy = kit_vector(2, 0);
    tn_tensor *sum = NULL, *same = NULL;
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 2);
    ASSERT_OK(tn_add(d, one, tn_int(1), &sum));
    ASSERT_OK(tn_mul_scalar_(sum, tn_int(5)));
    EXPECT_NEAR(slope(sum, 1), 10, 0);
    EXPECT_NEAR(slope(d, 1), 2, 0);
    ASSERT_OK(tn_copy_(copy, d, false));
    ASSERT_OK(tn_neg_(copy));
    EXPECT_NEAR(slope(copy, 1), -2, 0);
    EXPECT_NEAR(slope(d, 1), 2, 0);
    ASSERT_OK(tn_sub(d, one, tn_int(1), &same));
    ASSERT_OK(tn_exp_(d)); /* and the other way round */
    EXPECT_NEAR(slope(same, 0), 2, 0);
    ASSERT_OK(tn_forward_leave());
    drop2(x, one);
    drop2(copy, sum);
    drop2(d, same);
}

TEST(writing_a_view_gives_its_base_a_tangent)
{
    tn_tensor *base = kit_vector(4, 2), *view = NULL, *x = kit_vector(2, 3);
    ASSERT_OK(tn_slice(base, 0, tn_some_int(1), tn_some_int(3), 1, &view));
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 5);
    ASSERT_OK(tn_mul_(view, d));
    EXPECT(slope(view, 0) == 10);
    EXPECT(slope(base, 0) == 0 && slope(base, 1) == 10 && slope(base, 2) == 10);
    EXPECT(slope(base, 3) == 0);
    ASSERT_OK(tn_forward_leave());
    drop2(base, view);
    drop2(x, d);
}

TEST(writing_a_base_gives_its_views_tangents)
{
    tn_tensor *base = kit_vector(4, 2), *view = NULL, *x = kit_vector(4, 3), *later = NULL;
    ASSERT_OK(tn_slice(base, 0, tn_some_int(1), tn_some_int(3), 1, &view));
    ASSERT_OK(tn_forward_enter());
    tn_tensor *d = dual(x, 5);
    ASSERT_OK(tn_copy_(base, d, false));
    EXPECT(slope(view, 0) == 5);
    /* The same memory: a write to the one is seen by the other. */
    ASSERT_OK(tn_mul_scalar_(view, tn_int(2)));
    EXPECT(slope(base, 0) == 5 && slope(base, 1) == 10);
    ASSERT_OK(tn_slice(base, 0, tn_some_int(0), tn_some_int(2), 1, &later));
    ASSERT_OK(tn_zero_(later));
    EXPECT(slope(base, 1) == 0 && slope(view, 0) == 0 && slope(view, 1) == 10);
    ASSERT_OK(tn_forward_leave());
    drop2(base, view);
    drop2(x, d);
    tn_tensor_unref(later);
}
