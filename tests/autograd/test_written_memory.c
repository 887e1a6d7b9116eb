/* SPDX-License-Identifier: MIT */
/* Writes for which memory runs out: a call that fails has written nothing, and gradients are those
 * of before; or it has, and a backward pass that comes there is refused. Never is a gradient given
 * that leaves a write out. The same for tangents: written with the primal, or neither is. */
#include <string.h>

#include "autograd/kit.h"
#include "tenon/forward.h"
#include "tenon/function.h"

enum { N = 4 };

/* ---- what is written, by whom ---- */

typedef tn_status (*writer)(tn_tensor *t, tn_tensor *w);

static tn_status by_mul(tn_tensor *t, tn_tensor *w)
{
    return tn_mul_(t, w);
}
static tn_status by_itself(tn_tensor *t, tn_tensor *w)
{
    (void)w;
    return tn_mul_(t, t);
}
static tn_status by_copy(tn_tensor *t, tn_tensor *w)
{
    return tn_copy_(t, w, false);
}
static tn_status by_exp(tn_tensor *t, tn_tensor *w) /* keeps its result */
{
    (void)w;
    return tn_exp_(t);
}
static tn_status by_fill(tn_tensor *t, tn_tensor *w)
{
    (void)w;
    return tn_fill_(t, tn_int(7));
}
static tn_status by_zero(tn_tensor *t, tn_tensor *w)
{
    (void)w;
    return tn_zero_(t);
}
static tn_status by_add(tn_tensor *t, tn_tensor *w)
{
    return tn_add_(t, w, tn_int(2));
}
static tn_status by_addcmul(tn_tensor *t, tn_tensor *w)
{
    return tn_addcmul_(t, w, w, tn_int(1));
}
static tn_status by_cumprod(tn_tensor *t, tn_tensor *w)
{
    (void)w;
    return tn_cumprod_(t, 0, TN_DTYPE_NONE);
}

/* A function of a user that writes its first input. */
static tn_status scale_forward(tn_function_ctx *ctx, tn_tensor *const *inputs, int n,
                               tn_tensor **outputs, int n_outputs)
{
    (void)n;
    (void)n_outputs;
    TN_TRY(tn_function_mark_dirty(ctx, inputs, 1));
    TN_TRY(tn_mul_scalar_(inputs[0], tn_int(3)));
    outputs[0] = tn_tensor_ref(inputs[0]);
    return TN_OK;
}
static tn_status scale_backward(tn_function_ctx *ctx, tn_tensor *const *grads, int n,
                                tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)n;
    (void)n_out;
    return tn_mul_scalar(grads[0], tn_int(3), &out[0]);
}
static const tn_function scale = {
    .size = sizeof scale, .name = "Scale", .forward = scale_forward, .backward = scale_backward};

static tn_status by_function(tn_tensor *t, tn_tensor *w)
{
    (void)w;
    tn_tensor *out = NULL;
    tn_status status = tn_function_apply(&scale, NULL, &t, 1, &out, 1);
    tn_tensor_unref(out);
    return status;
}

static const struct {
    const char *name;
    writer write;
} writers[] = {{"mul_", by_mul},         {"mul_ by itself", by_itself},
               {"copy_", by_copy},       {"exp_", by_exp},
               {"fill_", by_fill},       {"zero_", by_zero},
               {"add_", by_add},         {"addcmul_", by_addcmul},
               {"cumprod_", by_cumprod}, {"a function", by_function}};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

/* ---- gradients ---- */

typedef enum target { WHOLE, VIEW, PART } target;

typedef struct scene {
    tn_tensor *x, *w; /* leaves */
    tn_tensor *y, *t; /* twice x; what of it is written */
} scene;

static tn_status set_up(scene *s, target which)
{
    TN_TRY(tn_mul_scalar(s->x, tn_int(2), &s->y));
    if (which == WHOLE)
        s->t = tn_tensor_ref(s->y);
    else if (which == VIEW)
        return tn_view(s->y, (int64_t[]){N}, 1, &s->t);
    else
        return tn_slice(s->y, 0, tn_some_int(0), tn_some_int(2), 1, &s->t);
    return TN_OK;
}

/* The sum of what @p of shows, backward. */
static tn_status go_back(tn_tensor *of)
{
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_sum(of, TN_DTYPE_NONE, &sum));
    return tn_tensor_backward(sum);
}

static void expect_refused(const char *name, tn_tensor *of)
{
    if (go_back(of) == TN_OK || !strstr(tn_last_error(), "the gradient of that write is not known"))
        test_wrong(__FILE__, __LINE__, "%s: the lost write was not told of: %s", name,
                   tn_last_error());
}

/* After a call that failed for want of memory. */
static void expect_whole(const char *name, scene *s, const float *before)
{
    if (memcmp(before, tn_tensor_data(s->y), N * sizeof *before) != 0) {
        expect_refused(name, s->y);
        expect_refused(name, s->t);
        return;
    }
    if (go_back(s->y) == TN_OK) {
        EXPECT(kit_grad(s->x, 0) == 2 && kit_grad(s->x, N - 1) == 2);
    } else if (!strstr(tn_last_error(), "the gradient of that write is not known")) {
        test_wrong(__FILE__, __LINE__, "%s: %s", name, tn_last_error());
    }
}

static void fail_each(int k, target which)
{
    scene s = {.x = kit_leaf(N, 1), .w = kit_leaf(which == PART ? 2 : N, 3)};
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        s.y = s.t = NULL;
        rc = set_up(&s, which);
        if (rc == TN_OK) {
            float before[N];
            memcpy(before, tn_tensor_data(s.y), sizeof before);
            rc = writers[k].write(s.t, s.w);
            if (rc != TN_OK)
                expect_whole(writers[k].name, &s, before);
        }
        tn_tensor_unref(s.y);
        tn_tensor_unref(s.t);
        EXPECT_OK(tn_tensor_set_grad(s.x, NULL));
        EXPECT_OK(tn_tensor_set_grad(s.w, NULL));
    }
    tn_tensor_unref(s.x);
    tn_tensor_unref(s.w);
}

TEST(a_write_that_could_not_be_recorded_is_never_left_out_of_a_gradient)
{
    kit_warm_up();
    for (int k = 0; k < COUNT(writers); k++) {
        fail_each(k, WHOLE);
        fail_each(k, VIEW);
        fail_each(k, PART);
    }
}

/* ---- tangents ---- */

/* One element of the tangent; 0 where there is none, which means the same. */
static float slope(tn_tensor *t)
{
    tn_tensor *tangent = NULL;
    EXPECT_OK(tn_tensor_tangent(t, &tangent));
    float value = tangent ? kit_at(tangent, 0) : 0;
    tn_tensor_unref(tangent);
    return value;
}

/* @p dual: what is written has a tangent already. */
static void fail_each_dual(int k, bool dual, bool on_view)
{
    tn_tensor *x = kit_vector(N, 2), *w = kit_vector(N, 5), *five = kit_vector(N, 11);
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *y = NULL, *t = NULL, *d = NULL, *moving = NULL;
        EXPECT_OK(tn_forward_enter());
        rc = tn_clone(x, TN_FORMAT_NONE, &y);
        if (rc == TN_OK)
            rc = dual ? tn_make_dual(y, five, &d) : TN_OK;
        if (rc == TN_OK && !dual)
            d = tn_tensor_ref(y);
        if (rc == TN_OK)
            rc = tn_make_dual(w, five, &moving);
        if (rc == TN_OK && on_view)
            rc = tn_view(d, (int64_t[]){N}, 1, &t);
        else if (rc == TN_OK)
            t = tn_tensor_ref(d);
        if (rc == TN_OK) {
            double value = (double)kit_at(d, 0), old = (double)slope(d);
            rc = writers[k].write(t, moving);
            double now = (double)kit_at(d, 0), is = (double)slope(d);
            if (rc != TN_OK && (now != value || is != old))
                test_wrong(__FILE__, __LINE__, "%s: value %g was %g, slope %g was %g",
                           writers[k].name, now, value, is, old);
        }
        EXPECT_OK(tn_forward_leave());
        tn_tensor *const all[] = {y, t, d, moving};
        for (int i = 0; i < COUNT(all); i++)
            tn_tensor_unref(all[i]);
    }
    tn_tensor_unref(x);
    tn_tensor_unref(w);
    tn_tensor_unref(five);
}

TEST(a_tangent_is_written_with_its_primal_or_neither_is)
{
    kit_warm_up();
    for (int k = 0; k < COUNT(writers); k++) {
        if (writers[k].write == by_function) /* has no tangents */
            continue;
        for (int i = 0; i < 4; i++)
            fail_each_dual(k, i & 1, i & 2);
    }
}

/* ---- and nothing leaks ---- */

static int64_t left_by_failures(void)
{
    int64_t before = tni_test_live;
    for (int k = 0; k < COUNT(writers); k++)
        fail_each(k, PART);
    return tni_test_live - before;
}

TEST(writes_that_could_not_be_recorded_leak_nothing)
{
    kit_warm_up();
    (void)left_by_failures(); /* what stays after the first time are blocks for the next */
    EXPECT_EQ_INT(left_by_failures(), 0);
}
