/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_checkpoint.c: computing again in backward instead of keeping. */
#include "kit.h"

#include "autograd/saved.h"
#include "tenon/checkpoint.h"
#include "tenon/forward.h"
#include "tenon/saved_hooks.h"

typedef struct piece {
    int runs, destroyed;
    int other; /* from this run on it does something else; 0: never */
    int how;   /* what */
    tn_checkpoint_opts inner;
} piece;

static void destroy(void *ctx)
{
    ((piece *)ctx)->destroyed++;
}

/* ((x * x) * y) * noise, where the noise is random; outputs that and, when asked for, x * x. */
static tn_status run(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    piece *p = ctx;
    EXPECT_EQ_INT(n_in, 2);
    bool other = ++p->runs >= p->other && p->other;
    tn_tensor *a = NULL, *b = NULL, *noise = NULL, *wide = NULL;
    tn_status status = tn_rand_like(in[0], NULL, TN_FORMAT_NONE, &noise);
    if (status == TN_OK)
        status = kit_mul(in[0], in[0], &a);
    if (status == TN_OK && !(other && p->how == 1))
        status = kit_mul(a, in[1], &b);
    if (status == TN_OK && other && p->how == 2)
        status = tn_to_dtype(noise, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide);
    if (status == TN_OK)
        status = kit_mul(b ? b : a, wide ? wide : noise, &out[0]);
    if (status == TN_OK && other && p->how == 3) {
        tn_tensor *more = NULL;
        status = kit_mul(a, a, &more);
        tn_tensor_unref(more);
    }
    if (status == TN_OK && n_out > 1)
        out[1] = tn_tensor_ref(a);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(noise);
    tn_tensor_unref(wide);
    return status;
}

static tn_checkpoint_opts options(bool reentrant)
{
    tn_checkpoint_opts opts = TN_CHECKPOINT_OPTS_INIT;
    opts.reentrant = reentrant;
    opts.destroy = destroy;
    return opts;
}

TEST(gradients_are_those_of_the_piece_itself_random_numbers_included)
{
    for (int reentrant = 0; reentrant < 2; reentrant++) {
        test_note("reentrant %d", reentrant);
        kit_warm_up();
        int64_t before = tni_test_live;
        piece p = {0}, q = {0};
        tn_checkpoint_opts opts = options(reentrant);
        tn_tensor *x = kit_leaf(4, 3), *y = kit_leaf(4, 5), *in[] = {x, y}, *z = NULL;
        tn_tensor *seed = kit_vector(4, 1), *plain = NULL;
        tn_manual_seed(7);
        ASSERT_OK(run(&q, in, 2, &plain, 1));
        EXPECT_OK(tn_backward(&plain, 1, &seed, NULL));
        tn_tensor *dx = tn_tensor_ref(tn_tensor_grad(x)), *dy = tn_tensor_ref(tn_tensor_grad(y));
        ASSERT_OK(tn_tensor_set_grad(x, NULL));
        ASSERT_OK(tn_tensor_set_grad(y, NULL));
        tn_manual_seed(7);
        ASSERT_OK(tn_checkpoint(run, &p, in, 2, &z, 1, &opts));
        tn_manual_seed(8); /* what happens between does not matter */
        tn_generator_state state = tn_generator_get_state(NULL);
        EXPECT_OK(tn_backward(&z, 1, &seed, NULL));
        EXPECT(tn_generator_get_state(NULL).counter == state.counter);
        EXPECT_EQ_INT(p.runs, 2);
        for (int i = 0; i < 4; i++) {
            EXPECT_NEAR(kit_at(z, i), kit_at(plain, i), 0);
            EXPECT_NEAR(kit_grad(x, i), kit_at(dx, i), 0);
            EXPECT_NEAR(kit_grad(y, i), kit_at(dy, i), 0);
        }
        EXPECT_EQ_INT(p.destroyed, reentrant ? 0 : 1); /* nothing is left that could need it */
        tn_tensor *all[] = {x, y, z, seed, plain, dx, dy};
        for (int i = 0; i < 7; i++)
            tn_tensor_unref(all[i]);
        EXPECT_EQ_INT(p.destroyed, 1);
        EXPECT_EQ_INT(tni_test_live, before);
    }
}

TEST(a_piece_keeps_its_inputs_alone)
{
    piece p = {0};
    tn_checkpoint_opts opts = options(false);
    tn_tensor *x = kit_leaf(4, 3), *y = kit_leaf(4, 5), *in[] = {x, y}, *out[2];
    ASSERT_OK(tn_checkpoint(run, &p, in, 2, out, 2, &opts));
    EXPECT_EQ_INT(tn_tensor_use_count(out[1]), 1);
    tn_tensor_unref(out[0]);
    tn_tensor_unref(out[1]);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(each_pass_runs_the_piece_again_once)
{
    piece p = {0};
    tn_checkpoint_opts opts = options(false);
    tn_tensor *x = kit_leaf(4, 3), *y = kit_leaf(4, 5), *in[] = {x, y}, *out[2], *dx[2];
    tn_tensor *seed = kit_vector(4, 1), *seeds[] = {seed, seed};
    ASSERT_OK(tn_checkpoint(run, &p, in, 2, out, 2, &opts));
    tn_grad_opts keep = TN_GRAD_OPTS_INIT;
    keep.retain_graph = TN_BOOL_TRUE;
    ASSERT_OK(tn_grad(out, 2, in, 2, seeds, &keep, dx)); /* unlike the other form */
    EXPECT_EQ_INT(p.runs, 2);
    tn_tensor_unref(dx[0]);
    tn_tensor_unref(dx[1]);
    ASSERT_OK(tn_grad(out, 2, in, 2, seeds, &keep, dx));
    EXPECT_EQ_INT(p.runs, 3);
    tn_tensor_unref(dx[0]);
    tn_tensor_unref(dx[1]);
    tn_node *node = NULL;
    tn_tensor *saved = NULL;
    ASSERT_OK(tn_tensor_grad_fn(out[1], &node)); /* outside any pass too */
    ASSERT_OK(tn_node_saved(node, 0, &saved));
    EXPECT_EQ_INT(p.runs, 4);
    EXPECT_NEAR(kit_at(saved, 0), 3, 0);
    tn_tensor_unref(saved);
    tn_tensor_unref(out[0]);
    tn_tensor_unref(out[1]);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
}

static tn_status backward_of(int how, bool early_stop, bool reentrant)
{
    piece p = {.other = 2, .how = how};
    tn_checkpoint_opts opts = options(reentrant);
    opts.early_stop = early_stop;
    tn_tensor *x = kit_leaf(4, 3), *y = kit_leaf(4, 5), *in[] = {x, y}, *z = NULL;
    tn_tensor *seed = kit_vector(4, 1);
    ASSERT_OK(tn_checkpoint(run, &p, in, 2, &z, 1, &opts));
    tn_status status = tn_backward(&z, 1, &seed, NULL);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
    EXPECT_EQ_INT(p.destroyed, 1);
    return status;
}

TEST(a_piece_that_does_something_else_is_found_out)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    EXPECT_FAIL(TN_INVALID,
                "torch.utils.checkpoint: A different number of tensors was saved during the "
                "original forward and recomputation.\nNumber of tensors saved during forward: "
                "6\nNumber of tensors saved during recomputation: 4.",
                backward_of(1, true, false));
    EXPECT_FAIL(TN_INVALID,
                "torch.utils.checkpoint: Recomputed values for the following tensors have "
                "different metadata than during the forward pass.\ntensor at position 5:\nsaved "
                "metadata: {'shape': torch.Size([4]), 'dtype': torch.float32, 'device': "
                "device(type='cpu')}\nrecomputed metadata: {'shape': torch.Size([4]), 'dtype': "
                "torch.float64, 'device': device(type='cpu')}\n.",
                backward_of(2, true, false));
    EXPECT_OK(backward_of(3, true, false)); /* it was stopped before */
    EXPECT_FAIL(TN_INVALID,
                "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                "during the original forward pass.",
                backward_of(3, false, false));
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(the_reentrant_form_wants_a_whole_pass)
{
    piece p = {0};
    tn_checkpoint_opts opts = options(true);
    tn_tensor *x = kit_leaf(4, 3), *y = kit_leaf(4, 5), *in[] = {x, y}, *z = NULL, *dx = NULL;
    tn_tensor *seed = kit_vector(4, 1);
    ASSERT_OK(tn_checkpoint(run, &p, in, 2, &z, 1, &opts));
    EXPECT_FAIL(TN_INVALID,
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument.",
                tn_grad(&z, 1, &x, 1, &seed, NULL, &dx));
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
}

TEST(the_reentrant_form_cannot_be_differentiated_twice)
{
    piece p = {0};
    tn_checkpoint_opts opts = options(true);
    tn_tensor *x = kit_leaf(4, 3), *y = kit_leaf(4, 5), *in[] = {x, y}, *z = NULL;
    tn_tensor *seed = kit_vector(4, 1);
    ASSERT_OK(tn_checkpoint(run, &p, in, 2, &z, 1, &opts));
    tn_backward_opts again = TN_BACKWARD_OPTS_INIT;
    again.create_graph = TN_BOOL_TRUE;
    EXPECT_FAIL(TN_INVALID,
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with "
                "create_graph=True",
                tn_backward(&z, 1, &seed, &again));
    EXPECT(tn_tensor_grad(x) == NULL);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(seed);
}

static tn_status no_gradient(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    (void)ctx;
    (void)n_in;
    (void)n_out;
    return tni_detached(in[0], &out[0]);
}

TEST(the_reentrant_form_wants_something_to_differentiate)
{
    tn_checkpoint_opts opts = TN_CHECKPOINT_OPTS_INIT;
    opts.reentrant = true;
    tn_tensor *x = kit_leaf(4, 3), *z = NULL, *seed = kit_vector(4, 1);
    ASSERT_OK(tn_checkpoint(no_gradient, NULL, &x, 1, &z, 1, &opts));
    EXPECT_FAIL(TN_INVALID,
                "none of output has requires_grad=True, this checkpoint() is not necessary",
                tn_backward(&z, 1, &seed, NULL));
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(seed);
}

/* ---- any order ---- */

/* exp(x * y) written over a view of its own: operators that save arguments, results and views. */
static tn_status smooth(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    (void)n_in;
    (void)n_out;
    ++*(int *)ctx;
    tn_scope *scope = NULL;
    tn_status status = tn_scope_enter(&scope);
    if (status != TN_OK)
        return status;
    tn_tensor *a = tnx_mul(in[0], in[1]);
    (void)tnx_exp_(tnx_slice(a, 0, tn_some_int(0), tn_some_int(1), 1));
    tn_tensor *result = tn_scope_keep(tnx_mul(tnx_sum(tnx_tanh(a), TN_DTYPE_NONE), in[0]));
    status = tn_scope_leave(scope);
    if (status == TN_OK)
        out[0] = result;
    return status;
}

static void second_order(bool checkpointed, int *runs, float *out)
{
    tn_tensor *x = kit_leaf(2, 0.3f), *y = kit_leaf(2, 0.7f), *in[] = {x, y}, *z = NULL;
    tn_tensor *seed = kit_vector(2, 1), *d[2], *dd[2];
    if (checkpointed)
        ASSERT_OK(tn_checkpoint(smooth, runs, in, 2, &z, 1, NULL));
    else
        ASSERT_OK(smooth(runs, in, 2, &z, 1));
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    ASSERT_OK(tn_grad(&z, 1, in, 2, &seed, &opts, d));
    ASSERT_OK(tn_grad(&d[0], 1, in, 2, &seed, NULL, dd));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            out[4 * i + k] = kit_at(d[i], k);
            out[4 * i + 2 + k] = kit_at(dd[i], k);
        }
    tn_tensor *all[] = {x, y, z, seed, d[0], d[1], dd[0], dd[1]};
    for (int i = 0; i < 8; i++)
        tn_tensor_unref(all[i]);
}

TEST(second_derivatives_go_through_a_piece)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    int plain = 0, again = 0;
    float wanted[8], found[8];
    second_order(false, &plain, wanted);
    second_order(true, &again, found);
    for (int i = 0; i < 8; i++) {
        EXPECT(wanted[i] != 0);
        EXPECT_NEAR(found[i], wanted[i], 1e-6);
    }
    EXPECT(again >= 2);
    EXPECT_EQ_INT(tni_test_live, before);
}

/* ---- a piece that overwrites what it saved ---- */

/* h = tanh(x * y), written before another operator saves something, where `ctx` says so. */
static tn_status overwrites(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    (void)n_in;
    (void)n_out;
    tn_scope *scope = NULL;
    tn_status status = tn_scope_enter(&scope);
    if (status != TN_OK)
        return status;
    tn_tensor *h = tnx_tanh(tnx_mul(in[0], in[1])), *sum = tnx_sum(h, TN_DTYPE_NONE);
    if (*(const bool *)ctx)
        (void)tnx_mul_scalar_(h, tn_int(2));
    tn_tensor *result = tn_scope_keep(tnx_mul(sum, in[0]));
    status = tn_scope_leave(scope);
    if (status == TN_OK)
        out[0] = result;
    return status;
}

TEST(what_the_piece_wrote_after_it_was_saved_is_not_differentiated)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    for (int early = 0; early < 2; early++) {
        bool writes = true;
        tn_checkpoint_opts opts = TN_CHECKPOINT_OPTS_INIT;
        opts.early_stop = early;
        tn_tensor *x = kit_leaf(2, 0.3f), *y = kit_leaf(2, 0.7f), *in[] = {x, y}, *z = NULL;
        tn_tensor *seed = kit_vector(2, 1);
        ASSERT_OK(tn_checkpoint(overwrites, &writes, in, 2, &z, 1, &opts));
        EXPECT_FAIL(TN_INVALID,
                    "one of the variables needed for gradient computation has been modified by "
                    "an inplace operation: [torch.FloatTensor [2]] is at version 1; expected "
                    "version 0 instead.",
                    tn_backward(&z, 1, &seed, NULL));
        tn_tensor *all[] = {x, y, z, seed};
        for (int i = 0; i < 4; i++)
            tn_tensor_unref(all[i]);
        tn_clear_error();
    }
    EXPECT_EQ_INT(tni_test_live, before);
}

/* ---- one in another ---- */

static piece inside;

static tn_status nested(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    (void)n_out;
    piece *p = ctx;
    p->runs++;
    tn_tensor *a = NULL, *b = NULL;
    tn_status status = kit_mul(in[0], in[1], &a);
    tn_tensor *more[] = {a, in[1]};
    if (status == TN_OK)
        status = tn_checkpoint(run, &inside, more, n_in, &b, 1, &p->inner);
    if (status == TN_OK)
        status = kit_mul(b, in[0], &out[0]);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    return status;
}

TEST(pieces_nest)
{
    for (int inner = 0; inner < 2; inner++) {
        for (int outer = 0; outer < 2; outer++) {
            test_note("inner %d, outer %d", inner, outer);
            piece p = {0};
            inside = (piece){0};
            p.inner = options(inner);
            tn_checkpoint_opts opts = options(outer);
            tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *in[] = {x, y}, *z = NULL;
            tn_manual_seed(3);
            ASSERT_OK(tn_checkpoint(nested, &p, in, 2, &z, 1, &opts));
            EXPECT_OK(tn_tensor_backward(z)); /* z = x^3 y^3 n */
            EXPECT_NEAR(kit_grad(x, 0), 3 * kit_at(z, 0) / 3, 1e-3);
            EXPECT_NEAR(kit_grad(y, 0), 3 * kit_at(z, 0) / 5, 1e-3);
            tn_tensor_unref(z);
            tn_tensor_unref(x);
            tn_tensor_unref(y);
            EXPECT_EQ_INT(p.destroyed, 1);
            EXPECT(inside.destroyed > 0);
        }
    }
}

/* What the inner piece gets is used by nobody before: only what it saved leads to the leaves. */
static tn_status nested_alone(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    (void)n_out;
    piece *p = ctx;
    p->runs++;
    tn_tensor *b = NULL;
    tn_status status = tn_checkpoint(run, &inside, in, n_in, &b, 1, &p->inner);
    if (status == TN_OK)
        status = kit_scale(b, &out[0]);
    tn_tensor_unref(b);
    return status;
}

TEST(a_piece_of_leaves_nests)
{
    for (int inner = 0; inner < 2; inner++) {
        for (int outer = 0; outer < 2; outer++) {
            test_note("inner %d, outer %d", inner, outer);
            kit_warm_up();
            int64_t before = tni_test_live;
            piece p = {.inner = options(inner)};
            inside = (piece){0};
            tn_checkpoint_opts opts = options(outer);
            tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *in[] = {x, y}, *z = NULL;
            tn_manual_seed(3);
            ASSERT_OK(tn_checkpoint(nested_alone, &p, in, 2, &z, 1, &opts));
            EXPECT_OK(tn_tensor_backward(z)); /* z = 2 x^2 y n */
            EXPECT_NEAR(kit_grad(x, 0), 2 * kit_at(z, 0) / 3, 1e-4);
            EXPECT_NEAR(kit_grad(y, 0), kit_at(z, 0) / 5, 1e-4);
            tn_tensor_unref(z);
            tn_tensor_unref(x);
            tn_tensor_unref(y);
            tn_clear_error();
            EXPECT_EQ_INT(tni_test_live, before);
        }
    }
}

TEST(without_gradients_the_piece_just_runs)
{
    piece p = {0};
    tn_checkpoint_opts opts = options(false);
    tn_tensor *x = kit_leaf(1, 3), *in[] = {x, x}, *z = NULL;
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_checkpoint(run, &p, in, 2, &z, 1, &opts));
    tn_set_grad_enabled(true);
    EXPECT_EQ_INT(p.runs, 1);
    EXPECT_EQ_INT(p.destroyed, 1);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
}

static tn_status multiply(void *ctx, tn_tensor *const *in, int n_in, tn_tensor **out, int n_out)
{
    piece *p = ctx;
    EXPECT(n_in == 2 && n_out == 1);
    p->runs++;
    return tn_mul(in[0], in[1], out);
}

TEST(without_gradients_inference_tensors_are_taken)
{
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *x = kit_vector(2, 3);
    tn_inference_leave(guard);
    tn_tensor *y = kit_leaf(2, 5), *in[] = {x, y}, *z = NULL, *w = NULL;
    piece p = {0};
    tn_checkpoint_opts opts = options(false);
    bool on = tn_set_grad_enabled(false);
    EXPECT_OK(tn_checkpoint(multiply, &p, in, 2, &z, 1, &opts));
    tn_set_grad_enabled(on);
    guard = tn_inference_enter(true);
    EXPECT_OK(tn_checkpoint(multiply, &p, in, 2, &w, 1, &opts));
    tn_inference_leave(guard);
    EXPECT(p.runs == 2 && p.destroyed == 2);
    ASSERT(z && w);
    EXPECT(kit_at(z, 1) == 15 && kit_at(w, 1) == 15);
    EXPECT(!tn_tensor_requires_grad(z) && !tn_tensor_requires_grad(w));
    /* Where gradients are recorded they cannot be saved. */
    tn_tensor *none = NULL;
    EXPECT_EQ_INT(tn_checkpoint(multiply, &p, in, 2, &none, 1, &opts), TN_INVALID);
    EXPECT_EQ_INT(p.runs, 2);
    tn_tensor *all[] = {x, y, z, w};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}

TEST(in_forward_mode_a_piece_pushes_tangents)
{
    tn_tensor *x = kit_leaf(2, 3), *y = kit_leaf(2, 5), *ones = kit_vector(2, 1), *d = NULL;
    tn_tensor *z = NULL, *tangent = NULL;
    piece p = {0};
    tn_checkpoint_opts opts = options(false);
    ASSERT_OK(tn_forward_enter());
    ASSERT_OK(tn_make_dual(x, ones, &d));
    ASSERT_OK(tn_checkpoint(multiply, &p, (tn_tensor *[]){d, y}, 2, &z, 1, &opts));
    ASSERT_OK(tn_tensor_tangent(z, &tangent));
    EXPECT(tangent && kit_at(tangent, 1) == 5);
    EXPECT_OK(tn_backward(&z, 1, &ones, NULL));
    EXPECT(kit_grad(x, 0) == 5 && kit_grad(y, 1) == 3 && p.runs == 1);
    ASSERT_OK(tn_forward_leave());
    tn_tensor *all[] = {x, y, ones, d, z, tangent};
    for (int i = 0; i < 6; i++)
        tn_tensor_unref(all[i]);
}

TEST(checkpoints_leak_nothing_whichever_allocation_fails)
{
    for (int reentrant = 0; reentrant < 2; reentrant++) {
        test_note("reentrant %d", reentrant);
        kit_warm_up();
        piece p = {0};
        tn_checkpoint_opts opts = options(reentrant);
        tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *in[] = {x, y}, *z = NULL;
        ASSERT_OK(tn_checkpoint(run, &p, in, 2, &z, 1, &opts));
        ASSERT_OK(tn_tensor_backward(z));
        tn_tensor_unref(z);
        ASSERT_OK(tn_tensor_set_grad(x, NULL));
        ASSERT_OK(tn_tensor_set_grad(y, NULL));
        int64_t before = tni_test_live;
        tn_status rc;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            z = NULL;
            rc = tn_checkpoint(run, &p, in, 2, &z, 1, &opts);
            if (rc == TN_OK)
                rc = tn_tensor_backward(z);
            tn_tensor_unref(z);
            tn_status cleared = tn_tensor_set_grad(x, NULL);
            EXPECT(cleared == TN_OK);
            cleared = tn_tensor_set_grad(y, NULL);
            EXPECT(cleared == TN_OK);
            EXPECT(tni_test_live <= before);
        }
        tn_tensor_unref(x);
        tn_tensor_unref(y);
    }
}
