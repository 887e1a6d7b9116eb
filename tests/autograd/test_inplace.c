/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_inplace.c: writing while gradients are recorded: what is refused, what
 * becomes of histories, and that gradients are the reference's. */
#include "kit.h"

#include "autograd/saved.h"
#include "core/state.h"

#include <math.h>
#include <stdio.h>

static tn_tensor *numbers(int ndim, const int64_t *sizes, double first, double step)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_zeros(sizes, ndim, &opts, &t));
    double *v = tn_tensor_data(t);
    for (int64_t i = 0; i < tn_tensor_numel(t); i++)
        v[i] = first + step * (double)i;
    return t;
}

static uint32_t version(const tn_tensor *t)
{
    uint32_t v = 0;
    ASSERT_OK(tn_tensor_version(t, &v));
    return v;
}

/* ---- the graphs of make_inplace.py ---- */

static tn_tensor *part(tn_tensor *t, int64_t from, int64_t to)
{
    return tnx_slice(t, 0, tn_some_int(from), tn_some_int(to), 1);
}

static tn_tensor *weigh(tn_tensor *t)
{
    if (!t)
        return NULL;
    return tnx_sum(tnx_mul(t, tn_scope_own(numbers(tn_tensor_ndim(t), tn_tensor_sizes(t), 1, 1))),
                   TN_DTYPE_NONE);
}

static tn_tensor *plus(tn_tensor *a, tn_tensor *b)
{
    return tnx_add(a, b, tn_int(1));
}

static tn_tensor *twice(tn_tensor *x)
{
    return tnx_mul_scalar(x, tn_int(2));
}

static tn_tensor *write_a_view(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *a = twice(x);
    (void)tnx_mul_(part(a, 1, 3), w);
    return weigh(a);
}

static tn_tensor *write_a_view_twice(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *a = twice(x), *v = part(a, 1, 3);
    (void)tnx_mul_(v, w);
    (void)tnx_exp_(v);
    return plus(weigh(a), weigh(v));
}

/* Views of @p t that nobody keeps: what was saved of them has no history of its own any more. */
static void write_and_forget(tn_tensor *t, int64_t from, int64_t to,
                             tn_status (*write)(tn_tensor *))
{
    tn_tensor *view = NULL;
    ASSERT_OK(tn_slice(t, 0, tn_some_int(from), tn_some_int(to), 1, &view));
    ASSERT_OK(write(view));
    tn_tensor_unref(view);
}

static tn_tensor *write_a_view_that_goes(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *a = tnx_mul_scalar(x, tn_float(0.5));
    write_and_forget(a, 1, 3, tn_exp_);
    tn_tensor *b = tnx_mul(w, tnx_select(a, 0, 0));
    write_and_forget(b, 0, 1, tn_tanh_);
    return plus(weigh(a), weigh(b));
}

static tn_tensor *write_the_base(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *a = twice(x), *v = tnx_t(a);
    (void)tnx_mul_(part(a, 1, 3), w);
    (void)tnx_sigmoid_(a);
    return weigh(v);
}

static tn_tensor *write_through_two_views(tn_tensor *x, tn_tensor *w)
{
    (void)w;
    tn_tensor *a = twice(x), *v = tnx_t(a), *u = part(tnx_view(a, (int64_t[]){12}, 1), 2, 8);
    (void)tnx_add_(tnx_mul_(tnx_select(v, 0, 1), tnx_select(tnx_detach(x), 1, 2)),
                   tnx_select(x, 1, 3), tn_int(1));
    (void)tnx_mul_scalar_(u, tn_int(3));
    (void)tnx_relu_(part(v, 0, 2));
    return plus(plus(weigh(a), weigh(u)), weigh(v));
}

static tn_tensor *write_a_view_of_a_plain_base(tn_tensor *x, tn_tensor *w)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    tn_tensor *b = tnx_zeros((int64_t[]){3, 4}, 2, &opts), *v = tnx_select(b, 0, 0);
    (void)tnx_copy_(tnx_select(b, 0, 1), tnx_select(w, 0, 0), false);
    (void)tnx_copy_(tnx_select(b, 0, 2), tnx_mul(tnx_select(x, 0, 1), tnx_select(x, 0, 2)), false);
    return plus(weigh(b), weigh(v));
}

static tn_tensor *fill_a_view(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *a = tnx_mul(x, tnx_sum(w, TN_DTYPE_NONE));
    (void)tnx_zero_(tnx_select(a, 0, 1));
    (void)tnx_fill_(tnx_select(a, 0, 2), tn_int(2));
    return weigh(tnx_mul(a, a));
}

static tn_tensor *view_in_place(tn_tensor *x, tn_tensor *w)
{
    (void)w;
    tn_tensor *a = twice(x), *v = part(a, 1, 3);
    (void)tnx_t_(v);
    (void)tnx_mul_scalar_(v, tn_int(2));
    return plus(weigh(v), weigh(a));
}

static tn_tensor *strided_square(tn_tensor *a, int n, const int64_t *size, const int64_t *stride,
                                 int64_t offset)
{
    return weigh(tnx_pow_tensor_scalar(tnx_as_strided(a, size, n, stride, n, tn_some_int(offset)),
                                       tn_int(2)));
}

static tn_tensor *overlapping(tn_tensor *x, tn_tensor *w)
{
    (void)w;
    return strided_square(tnx_mul_scalar(x, tn_int(1)), 3, (int64_t[]){3, 4, 2},
                          (int64_t[]){2, 1, 1}, 1);
}

static tn_tensor *expanded_input(tn_tensor *x, tn_tensor *w)
{
    (void)w;
    tn_tensor *a =
        tnx_expand(tnx_mul_scalar(part(x, 0, 1), tn_int(1)), (int64_t[]){3, 4}, 2, false);
    return strided_square(a, 2, (int64_t[]){2, 3}, (int64_t[]){1, 1}, 0);
}

static tn_tensor *repeated_rows(tn_tensor *x, tn_tensor *w)
{
    (void)w;
    return strided_square(tnx_mul_scalar(x, tn_int(1)), 2, (int64_t[]){3, 2}, (int64_t[]){0, 2}, 1);
}

static const struct {
    const char *name;
    tn_tensor *(*loss)(tn_tensor *x, tn_tensor *w);
    double value, dx[12], dw[8], ddx[12], ddw[8];
} cases[] = {
#include "inplace_reference.inc"
};

static void expect_all(const char *what, const tn_tensor *t, const double *wanted, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double found = t ? ((const double *)tn_tensor_data(t))[i] : 0;
        double tolerance = 1e-9 * (1 + fabs(wanted[i]));
        if (!(fabs(found - wanted[i]) <= tolerance))
            test_wrong(__FILE__, __LINE__, "%s[%lld] is %.12g, wanted %.12g", what, (long long)i,
                       found, wanted[i]);
    }
}

static void run_case(size_t i)
{
    tn_tensor *x = numbers(2, (int64_t[]){3, 4}, 0.25, 0.25);
    tn_tensor *w = numbers(2, (int64_t[]){2, 4}, 0.5, 0.125);
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_tensor_set_requires_grad(w, true));
    tn_tensor *in[] = {x, w}, *d[2] = {NULL, NULL}, *dd[2] = {NULL, NULL};
    tn_scope *scope = NULL;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *loss = cases[i].loss(x, w);
    ASSERT_OK(tn_scope_status(scope));
    expect_all("loss", loss, &cases[i].value, 1);
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    opts.allow_unused = TN_BOOL_TRUE;
    ASSERT_OK(tn_grad(&loss, 1, in, 2, NULL, &opts, d));
    for (int k = 0; k < 2; k++) {
        tn_tensor *dense = d[k] ? tnx_contiguous(d[k], TN_FORMAT_CONTIGUOUS) : NULL;
        expect_all(k ? "dw" : "dx", dense, k ? cases[i].dw : cases[i].dx, k ? 8 : 12);
    }
    tn_tensor *total = weigh(d[0]);
    if (d[1])
        total = total ? plus(total, weigh(d[1])) : weigh(d[1]);
    if (tn_tensor_requires_grad(total)) {
        opts.create_graph = TN_BOOL_FALSE;
        ASSERT_OK(tn_grad(&total, 1, in, 2, NULL, &opts, dd));
    }
    for (int k = 0; k < 2; k++) {
        tn_tensor *dense = dd[k] ? tnx_contiguous(dd[k], TN_FORMAT_CONTIGUOUS) : NULL;
        expect_all(k ? "ddw" : "ddx", dense, k ? cases[i].ddw : cases[i].ddx, k ? 8 : 12);
    }
    EXPECT_OK(tn_scope_leave(scope));
    for (int k = 0; k < 2; k++) {
        tn_tensor_unref(d[k]);
        tn_tensor_unref(dd[k]);
        tn_tensor_unref(in[k]);
    }
}

TEST(gradients_through_views_and_writes_are_the_references)
{
    kit_warm_up();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_note("%s", cases[i].name);
        int64_t before = tni_test_live;
        run_case(i);
        EXPECT_EQ_INT(tni_test_live, before);
    }
}

/* ---- what is refused ---- */

static const char *const multi =
    " This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one.";
static const char *const no_grad =
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the no_grad block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked).";
static const char *const inference =
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the inference_mode block (if "
    "you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked).";

/* The message is exactly @p head and @p tail. */
static void expect_refused(const char *head, const char *tail, tn_status status, int line)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s", head, tail);
    test_eq_int(status, TN_INVALID, "status", "TN_INVALID", __FILE__, line);
    test_str(tn_last_error(), text, "message", __FILE__, line);
}
#define EXPECT_REFUSED(head, tail, expression) \
    expect_refused((head), (tail), (expression), __LINE__)

TEST(leaves_and_their_views_cannot_be_written)
{
    tn_tensor *x = kit_leaf(4, 1), *v = NULL, *plain = kit_vector(4, 1), *mine = NULL;
    EXPECT_REFUSED("a leaf Variable that requires grad is being used in an in-place operation.", "",
                   tn_zero_(x));
    ASSERT_OK(tn_slice(x, 0, tn_some_int(0), tn_some_int(2), 1, &v));
    EXPECT_REFUSED(
        "a view of a leaf Variable that requires grad is being used in an in-place operation.", "",
        tn_zero_(v));
    EXPECT_EQ_INT(version(x), 0);
    EXPECT_NEAR(kit_at(x, 0), 1, 0);
    /* a view of a plain tensor that was made a leaf */
    ASSERT_OK(tn_slice(plain, 0, tn_some_int(0), tn_some_int(2), 1, &mine));
    ASSERT_OK(tn_tensor_set_requires_grad(mine, true));
    EXPECT_REFUSED(
        "a view of a leaf Variable that requires grad is being used in an in-place operation.", "",
        tn_zero_(mine));
    tn_set_grad_enabled(false); /* unrecorded, all of this may be written */
    EXPECT_OK(tn_zero_(x));
    EXPECT_OK(tn_zero_(v));
    EXPECT_OK(tn_zero_(mine));
    tn_set_grad_enabled(true);
    EXPECT_EQ_INT(version(x), 2);
    tn_tensor_unref(mine);
    tn_tensor_unref(v);
    tn_tensor_unref(x);
    /* and a plain tensor becomes a result of what was written to it */
    x = kit_leaf(4, 3);
    EXPECT_OK(tn_copy_(plain, x, false));
    EXPECT(!tn_tensor_is_leaf(plain) && tn_tensor_requires_grad(plain));
    EXPECT_CONTAINS(kit_node_name(plain), "CopyBackward");
    tn_tensor_unref(plain);
    tn_tensor_unref(x);
}

TEST(views_say_how_they_were_made_when_they_cannot_be_written)
{
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *v = NULL, *u = NULL, **list = NULL;
    int64_t n = 0;
    ASSERT_OK(tn_mul_scalar(x, tn_int(2), &a));
    ASSERT_OK(tn_unbind(a, 0, &list, &n));
    EXPECT_REFUSED("Output 1 of UnbindBackward0 is a view and is being modified inplace.", multi,
                   tn_zero_(list[1]));
    tn_tensor_list_free(list, n);
    /* of a base without gradients, by a source that has one */
    tn_tensor *plain = kit_vector(2, 1), *one = NULL;
    ASSERT_OK(tn_select(x, 0, 0, &one));
    ASSERT_OK(tn_unbind(plain, 0, &list, &n));
    EXPECT_REFUSED("A view was created in no_grad mode and is being modified inplace with grad "
                   "mode enabled.",
                   multi, tn_copy_(list[0], one, false));
    tn_tensor_list_free(list, n);

    tn_set_grad_enabled(false);
    ASSERT_OK(tn_alias(a, &v));
    tn_set_grad_enabled(true);
    EXPECT_REFUSED("A view was created in no_grad mode and is being modified inplace with grad "
                   "mode enabled.",
                   no_grad, tn_zero_(v));
    ASSERT_OK(tn_alias(v, &u));
    EXPECT(tn_tensor_requires_grad(v) && tn_tensor_is_leaf(v));
    tn_tensor_unref(u);
    tn_tensor_unref(v);

    tn_inference_guard guard = tn_inference_enter(true);
    ASSERT_OK(tn_alias(a, &v));
    tn_inference_leave(guard);
    EXPECT_REFUSED("A view was created in inference mode and is being modified inplace in normal "
                   "mode.",
                   inference, tn_zero_(v));
    /* the base is written: asking for the history of the view is an error */
    ASSERT_OK(tn_zero_(a));
    tn_node *node = NULL;
    EXPECT_REFUSED("A view was created in inference mode and its base or another view of its base "
                   "has been modified inplace in normal mode.",
                   inference, tn_tensor_grad_fn(v, &node));
    tn_tensor_unref(v);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
    tn_tensor_unref(one);
    tn_tensor_unref(plain);
}

TEST(a_view_of_a_view_names_its_own_node)
{
    tn_tensor *x = kit_leaf(2, 1), *a = NULL, *v = NULL, *u = NULL;
    ASSERT_OK(tn_mul_scalar(x, tn_int(2), &a));
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_alias(a, &v));
    tn_set_grad_enabled(true);
    ASSERT_OK(tn_alias(v, &u));
    EXPECT_REFUSED("Output 0 of AliasBackward0 is a view of a view which was created in no_grad "
                   "mode and is being modified inplace with grad mode enabled.",
                   no_grad, tn_zero_(u));
    tn_tensor_unref(u);
    tn_tensor_unref(v);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

/* ---- histories ---- */

TEST(writing_a_view_gives_its_base_a_history_and_the_views_theirs)
{
    tn_tensor *x = kit_leaf(4, 1), *a = NULL, *v = NULL, *u = NULL;
    ASSERT_OK(tn_mul_scalar(x, tn_int(2), &a));
    ASSERT_OK(tn_slice(a, 0, tn_some_int(0), tn_some_int(2), 1, &v));
    ASSERT_OK(tn_view(a, (int64_t[]){2, 2}, 2, &u));
    EXPECT_STR(kit_node_name(v), "SliceBackward0");
    EXPECT_STR(kit_node_name(u), "ViewBackward0");
    ASSERT_OK(tn_mul_scalar_(v, tn_int(3)));
    EXPECT_STR(kit_node_name(a), "CopySlices");
    EXPECT_STR(kit_node_name(v), "AsStridedBackward0");
    EXPECT_STR(kit_node_name(u), "AsStridedBackward0");
    EXPECT_EQ_INT(tn_tensor_output_nr(u), 0);
    /* a write through a detached alias counts too */
    tn_tensor *alias = NULL;
    tn_node *before = NULL, *after = NULL;
    ASSERT_OK(tn_tensor_grad_fn(u, &before));
    tn_node_ref(before);
    ASSERT_OK(tn_detach(a, &alias));
    ASSERT_OK(tn_zero_(alias));
    ASSERT_OK(tn_tensor_grad_fn(u, &after));
    EXPECT(before != after);
    tn_node_unref(before);
    tn_tensor_unref(alias);
    tn_tensor_unref(u);
    tn_tensor_unref(v);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

TEST(a_view_of_a_plain_base_gets_a_history_when_the_base_does)
{
    tn_tensor *x = kit_leaf(2, 5), *b = kit_vector(2, 0), *v = NULL, *s = NULL;
    ASSERT_OK(tn_view(b, (int64_t[]){2, 1}, 2, &v));
    EXPECT(!tn_tensor_requires_grad(v));
    ASSERT_OK(tn_copy_(b, x, false));
    EXPECT(tn_tensor_requires_grad(v) && !tn_tensor_is_leaf(v));
    ASSERT_OK(tn_sum(v, TN_DTYPE_NONE, &s));
    EXPECT_OK(tn_tensor_backward(s));
    EXPECT_NEAR(kit_grad(x, 1), 1, 0);
    tn_tensor_unref(s);
    tn_tensor_unref(v);
    tn_tensor_unref(b);
    tn_tensor_unref(x);
}

TEST(copy_slices_runs_once_unless_the_graph_is_kept)
{
    tn_tensor *x = kit_leaf(2, 5), *a = NULL, *v = NULL, *s = NULL;
    ASSERT_OK(tn_mul_scalar(x, tn_int(2), &a));
    ASSERT_OK(tn_select(a, 0, 0, &v));
    ASSERT_OK(tn_mul_scalar_(v, tn_int(3)));
    ASSERT_OK(tn_sum(a, TN_DTYPE_NONE, &s));
    tn_backward_opts keep = TN_BACKWARD_OPTS_INIT;
    keep.retain_graph = TN_BOOL_TRUE;
    EXPECT_OK(tn_backward(&s, 1, NULL, &keep));
    EXPECT_OK(tn_tensor_backward(s));
    EXPECT_NEAR(kit_grad(x, 0), 12, 0);
    EXPECT_NEAR(kit_grad(x, 1), 4, 0);
    EXPECT_FAIL(TN_INVALID, "Trying to backward through the graph a second time",
                tn_tensor_backward(s));
    tn_tensor_unref(s);
    tn_tensor_unref(v);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

/* Only what leads to the inputs is computed: the weight's gradient does not need the base's. */
TEST(copy_slices_computes_what_is_wanted)
{
    tn_tensor *x = kit_leaf(2, 5), *w = kit_leaf(1, 3), *a = NULL, *v = NULL, *s = NULL, *d = NULL;
    ASSERT_OK(tn_mul_scalar(x, tn_int(2), &a));
    ASSERT_OK(tn_slice(a, 0, tn_some_int(0), tn_some_int(1), 1, &v));
    ASSERT_OK(tn_mul_(v, w));
    ASSERT_OK(tn_sum(a, TN_DTYPE_NONE, &s));
    tn_grad_opts keep = TN_GRAD_OPTS_INIT;
    keep.retain_graph = TN_BOOL_TRUE;
    ASSERT_OK(tn_grad(&s, 1, &w, 1, NULL, &keep, &d));
    EXPECT_NEAR(kit_at(d, 0), 10, 0);
    tn_tensor_unref(d);
    ASSERT_OK(tn_grad(&s, 1, &x, 1, NULL, NULL, &d));
    EXPECT_NEAR(kit_at(d, 0), 6, 0);
    EXPECT_NEAR(kit_at(d, 1), 2, 0);
    tn_tensor_unref(d);
    tn_tensor_unref(s);
    tn_tensor_unref(v);
    tn_tensor_unref(a);
    tn_tensor_unref(w);
    tn_tensor_unref(x);
}

/* ---- detach_ ---- */

TEST(detaching_in_place_takes_a_tensor_out_of_its_graph_and_refuses_views)
{
    static const char *const text =
        "Can't detach views in-place. Use detach() instead. If you are using "
        "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as True, "
        "gradients are views of DDP buckets, and hence detach_() cannot be called on these "
        "gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
        "torch/optim/optimizer.py as the solution.";
    tn_tensor *x = kit_leaf(2, 5), *a = NULL, *v = NULL, *plain = kit_vector(2, 1);
    ASSERT_OK(tn_mul_scalar(x, tn_int(2), &a));
    ASSERT_OK(tn_alias(plain, &v));
    EXPECT_REFUSED(text, "", tn_detach_(v));
    tn_tensor_unref(v);
    ASSERT_OK(tn_alias(a, &v));
    EXPECT_REFUSED(text, "", tn_detach_(v));
    tn_tensor_unref(v);
    EXPECT_OK(tn_detach_(a));
    EXPECT(tn_tensor_is_leaf(a) && !tn_tensor_requires_grad(a));
    EXPECT_EQ_INT(version(a), 0);
    EXPECT_OK(tn_detach_(x));
    EXPECT(!tn_tensor_requires_grad(x));
    tn_tensor_unref(a);
    tn_tensor_unref(x);
    tn_tensor_unref(plain);
}

/* ---- memory ---- */

TEST(writing_views_leaks_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(4, 1), *w = kit_leaf(2, 1), *seed = kit_vector(4, 1);
    tn_status rc = TN_OK;
    for (int pass = 0; pass < 2; pass++) {
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            tn_tensor *a = NULL, *v = NULL;
            rc = tn_mul_scalar(x, tn_int(2), &a);
            if (rc == TN_OK)
                rc = tn_slice(a, 0, tn_some_int(0), tn_some_int(2), 1, &v);
            if (rc == TN_OK)
                rc = tn_mul_(v, w);
            if (rc == TN_OK)
                rc = tn_backward(&a, 1, &seed, NULL);
            tn_tensor_unref(a);
            tn_tensor_unref(v);
            tn_status cleared = tn_tensor_set_grad(x, NULL);
            EXPECT(cleared == TN_OK);
            cleared = tn_tensor_set_grad(w, NULL);
            EXPECT(cleared == TN_OK);
            /* The first time leaves get what they need to have a gradient. */
            EXPECT(pass == 0 || tni_test_live <= before);
        }
    }
    tn_tensor_unref(x);
    tn_tensor_unref(w);
    tn_tensor_unref(seed);
}

/* ---- functions that are differentiated as a whole ---- */

TEST(inside_a_transform_what_was_there_before_is_not_written)
{
    const int64_t sizes[] = {3};
    tn_tensor *before = numbers(1, sizes, 1, 1), *given = numbers(1, sizes, 1, 1), *view = NULL;
    tn_transform_guard outer = tn_transform_begin(true);
    uint32_t was = tn_tensor_set_made_in(given, outer.number);
    EXPECT(was < outer.number);
    tn_tensor *made = numbers(1, sizes, 1, 1);
    const char text[] =
        "attempted to call in-place operation (aten::add_.Tensor) that would mutate a "
        "captured Tensor";
    EXPECT(tn_tensor_is_captured(before) && !tn_tensor_is_captured(made));
    EXPECT_FAIL(TN_INVALID, text, tn_add_(before, made, tn_int(1)));
    ASSERT_OK(tn_select(before, 0, 0, &view));
    EXPECT_FAIL(TN_INVALID, "captured Tensor", tn_add_(view, view, tn_int(1)));
    EXPECT_OK(tn_add_(made, before, tn_int(1)));
    EXPECT_OK(tn_add_(given, before, tn_int(1)));
    tn_transform_guard mapped = tn_transform_begin(false); /* refuses no more than the outer one */
    EXPECT(tn_tensor_is_captured(made));
    EXPECT_OK(tn_add_(made, before, tn_int(1)));
    EXPECT_FAIL(TN_INVALID, text, tn_add_(before, made, tn_int(1)));
    tn_transform_guard inner = tn_transform_begin(true);
    EXPECT_FAIL(TN_INVALID, text, tn_add_(made, before, tn_int(1)));
    tn_tensor *innermost = numbers(1, sizes, 1, 1);
    tn_transform_end(inner);
    tn_transform_end(mapped);
    EXPECT_OK(tn_add_(innermost, before, tn_int(1)));
    tn_transform_end(outer);
    tn_tensor_set_made_in(given, was);
    EXPECT(!tn_tensor_is_captured(before) && tn_transform_begin(true).outer == 0);
    tn_transform_end((tn_transform_guard){0});
    EXPECT_EQ_INT(version(before), 0);
    EXPECT_OK(tn_add_(before, made, tn_int(1)));
    tn_tensor_unref(innermost);
    tn_tensor_unref(made);
    tn_tensor_unref(view);
    tn_tensor_unref(given);
    tn_tensor_unref(before);
}
