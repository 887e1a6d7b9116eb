/* SPDX-License-Identifier: MIT */
/* Gradients of fake tensors: a backward pass through every sample of every declaration looks like
 * the one through real tensors; and what conversion makes of a graph. */
#include <string.h>

#include "kit.h"
#include "base/alloc.h"
#include "core/tensor.h"
#include "gen/samples.h"
#include "op/schema.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"

enum { MOST = TNI_SCHEMA_MAX_ARGS };

static tn_tensor *fake_of(tn_fake_mode *mode, tn_tensor *real)
{
    tn_tensor *f = NULL;
    ASSERT_OK(tn_fake_from_real(mode, real, &f));
    return f;
}

/* ---- by hand ---- */

/* A layer and its loss on whatever device; gives the loss. */
static tn_tensor *loss_of(tn_tensor *x, tn_tensor *w, tn_tensor *b, tn_tensor *target)
{
    tn_tensor *y = NULL, *h = NULL, *loss = NULL;
    ASSERT_OK(tn_linear(x, w, b, &y));
    ASSERT_OK(tn_relu(y, &h));
    ASSERT_OK(tn_cross_entropy_loss(h, target, NULL, 1, -100, 0, &loss));
    UNREF(y, h);
    return loss;
}

static void run_backward(bool inside)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor_opts ids = tn_opts(TN_DTYPE_I64, cuda(0));
    tn_tensor *x = ones(2, cuda(0)), *w = ones(2, cuda(0)), *b = ones(1, cuda(0)), *target = NULL;
    ASSERT_OK(tn_zeros((int64_t[]){2}, 1, &ids, &target));
    ASSERT_OK(tn_tensor_set_requires_grad(w, true));
    ASSERT_OK(tn_tensor_set_requires_grad(b, true));
    if (!inside)
        tn_fake_leave(guard);
    tn_tensor *loss = loss_of(x, w, b, target);
    EXPECT(tn_tensor_requires_grad(loss) && tn_is_fake(loss));
    for (int i = 0; i < 2; i++) { /* the second adds up */
        EXPECT_OK(tn_tensor_backward(loss));
        EXPECT(tn_is_fake(tn_tensor_grad(w)) && tn_is_fake(tn_tensor_grad(b)));
        expect_device(tn_tensor_grad(w), "cuda:0");
        EXPECT_EQ_INT(tn_tensor_ndim(tn_tensor_grad(b)), 1);
        UNREF(loss);
        loss = loss_of(x, w, b, target);
    }
    UNREF(x, w, b, target, loss);
    if (inside)
        tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(a_backward_pass_runs_on_fake_tensors)
{
    run_backward(true);
}

TEST(a_backward_pass_runs_outside_the_mode_too)
{
    run_backward(false);
}

TEST(a_converted_view_of_a_result_goes_through_its_converted_base)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *leaf = ones(2, TN_CPU), *t = NULL, *view = NULL, *sum = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    ASSERT_OK(tn_mul(leaf, leaf, &t));
    ASSERT_OK(tn_view(t, (int64_t[]){4}, 1, &view));
    tn_tensor *fv = fake_of(mode, view), *ft = fake_of(mode, t);
    tn_node *node = NULL;
    EXPECT(tn_tensor_base(fv) == ft && !tn_tensor_is_leaf(fv));
    EXPECT_OK(tn_tensor_grad_fn(fv, &node));
    EXPECT_STR(tn_node_name(node), "AsStridedBackward0");
    tn_fake_guard guard = tn_fake_enter(mode);
    ASSERT_OK(tn_sum(fv, TN_DTYPE_NONE, &sum));
    EXPECT_FAIL(TN_INVALID, "Internal error: Tried to backward() through example input",
                tn_tensor_backward(sum));
    tn_fake_leave(guard);
    UNREF(leaf, t, view, fv, ft, sum);
    tn_fake_mode_unref(mode);
}

TEST(a_converted_view_of_a_view_that_is_a_leaf_is_no_leaf)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *plain = ones(2, TN_CPU), *leaf = NULL, *view = NULL;
    ASSERT_OK(tn_view(plain, (int64_t[]){4}, 1, &leaf));
    ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    ASSERT_OK(tn_view(leaf, (int64_t[]){2, 2}, 2, &view));
    tn_tensor *f = fake_of(mode, view), *fl = fake_of(mode, leaf), *fp = fake_of(mode, plain);
    EXPECT(tn_tensor_is_leaf(fl) && tn_tensor_requires_grad(fl));
    EXPECT(!tn_tensor_is_leaf(f) && tn_tensor_requires_grad(f));
    EXPECT(!tn_tensor_requires_grad(fp));
    EXPECT(tn_tensor_base(f) == fp && tn_tensor_base(fl) == fp);
    UNREF(plain, leaf, view, f, fl, fp);
    tn_fake_mode_unref(mode);
}

TEST(a_leaf_is_not_written)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *leaf = ones(2, TN_CPU);
    ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    tn_tensor *f = fake_of(mode, leaf);
    EXPECT_FAIL(TN_INVALID,
                "a leaf Variable that requires grad is being used in an in-place operation.",
                tn_mul_(f, f));
    UNREF(leaf, f);
    tn_fake_mode_unref(mode);
}

/* ---- every sample ---- */

typedef struct bundle {
    tn_value v[MOST];
    int n;
} bundle;

static void bundle_clear(bundle *b)
{
    for (int i = 0; i < b->n; i++)
        tn_value_clear(&b->v[i]);
    b->n = 0;
}

static tn_tensor *at(const bundle *b, int i, uint32_t k)
{
    const tn_value *v = &b->v[i];
    if (v->tag == TN_TAG_TENSOR)
        return k == 0 ? v->u.tensor : NULL;
    return v->tag == TN_TAG_TENSOR_LIST && k < v->count ? v->u.tensors[k] : NULL;
}

static uint32_t width(const bundle *b, int i)
{
    const tn_value *v = &b->v[i];
    return v->tag == TN_TAG_TENSOR ? 1 : v->tag == TN_TAG_TENSOR_LIST ? v->count : 0;
}

/* Arguments that require grad wherever they can; false: the operator writes some. */
static bool read_arguments(const tni_sample *s, bundle *out)
{
    tn_op *op;
    tni_schema *schema;
    char *text;
    ASSERT_OK(tn_op_find(s->op, &op));
    ASSERT_OK(tn_op_schema(op, &text));
    ASSERT_OK(tni_schema_parse(text, &schema));
    tn_string_free(text);
    bool reads = !schema->is_mutable;
    if (reads) {
        ASSERT_OK(tni_args_parse(schema, s->args, out->v));
        out->n = schema->nargs;
    }
    for (int i = 0; i < out->n; i++) {
        for (uint32_t k = 0; k < width(out, i); k++) {
            tn_tensor *t = at(out, i, k);
            if (t && tn_dtype_is_floating((tn_dtype)t->dtype) && !(t->flags & TNI_WRAPPED_NUMBER))
                ASSERT_OK(tn_tensor_set_requires_grad(t, true));
        }
    }
    tni_schema_free(schema);
    return reads;
}

static bundle fakes_of(const bundle *real, tn_fake_mode *mode)
{
    bundle b = {.n = real->n};
    for (int i = 0; i < real->n; i++) {
        const tn_value *v = &real->v[i];
        if (v->tag == TN_TAG_TENSOR && v->u.tensor) {
            b.v[i] = tn_value_take_tensor(fake_of(mode, v->u.tensor));
        } else if (v->tag == TN_TAG_TENSOR_LIST) {
            tn_tensor **list = tni_calloc((v->count + 1) * sizeof *list);
            for (uint32_t k = 0; k < v->count; k++)
                list[k] = v->u.tensors[k] ? fake_of(mode, v->u.tensors[k]) : NULL;
            b.v[i] = tn_value_take_tensors(list, v->count);
        } else {
            ASSERT_OK(tn_value_copy(v, &b.v[i]));
        }
    }
    return b;
}

/* Call, then go back from every result that has a history, with ones. *ran: there was something to
 * go back from. */
static tn_status there_and_back(const char *name, const bundle *args, bool *ran)
{
    bundle rets = {0};
    tn_op *op;
    tn_tensor *results[64], *seeds[64];
    int64_t n = 0;
    ASSERT_OK(tn_op_find(name, &op));
    tn_status st = tn_op_call(op, args->v, args->n, rets.v);
    rets.n = st == TN_OK ? tn_op_num_returns(op) : 0;
    for (int i = 0; i < rets.n && st == TN_OK; i++) {
        for (uint32_t k = 0; k < width(&rets, i) && n < 64 && st == TN_OK; k++) {
            tn_tensor *t = at(&rets, i, k);
            if (!t || !tn_tensor_requires_grad(t))
                continue;
            st = tn_ones_like(t, NULL, TN_FORMAT_NONE, &seeds[n]);
            if (st == TN_OK)
                results[n++] = t;
        }
    }
    *ran = n > 0;
    if (st == TN_OK && n > 0)
        st = tn_backward(results, n, seeds, NULL);
    unref_all(seeds, (size_t)n);
    bundle_clear(&rets);
    return st;
}

static void compare_gradients(const bundle *real, const bundle *fake)
{
    for (int i = 0; i < real->n; i++) {
        for (uint32_t k = 0; k < width(real, i); k++) {
            const tn_tensor *r = at(real, i, k), *f = at(fake, i, k);
            const tn_tensor *g = r ? tn_tensor_grad(r) : NULL, *h = f ? tn_tensor_grad(f) : NULL;
            EXPECT((g == NULL) == (h == NULL));
            if (!g || !h)
                continue;
            EXPECT(tn_is_fake(h));
            EXPECT_EQ_INT(h->dtype, g->dtype);
            EXPECT_EQ_INT(h->ndim, g->ndim);
            for (int d = 0; h->ndim == g->ndim && d < g->ndim; d++) {
                EXPECT_EQ_INT(h->sizes[d], g->sizes[d]);
                EXPECT_EQ_INT(h->strides[d], g->strides[d]);
            }
        }
    }
}

/* Operators whose gradients have sizes, or take routes, that only values tell. */
static bool goes_back_by_values(const char *op)
{
    static const char *const names[] = {"aten::index_put", "aten::_index_put_impl",
                                        "aten::masked_select_backward"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(op, names[i]) == 0)
            return true;
    return false;
}

TEST(gradients_of_every_sample_look_like_real_ones)
{
    tn_fake_mode *mode = new_mode(false);
    int passes = 0, needed_values = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        bundle real = {0};
        bool ran = false, fake_ran = false;
        if (s->status != TN_OK || strstr(s->args, "meta") || !read_arguments(s, &real))
            continue;
        test_note("%s:%d: %s(%s)", s->file, s->line, s->op, s->args);
        bundle fake = fakes_of(&real, mode);
        tn_status status = there_and_back(s->op, &real, &ran);
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status fake_status = there_and_back(s->op, &fake, &fake_ran);
        tn_fake_leave(guard);
        if (fake_status != TN_OK && strstr(tn_last_error(), "depends on values")) {
            needed_values++;
            EXPECT(!fake_ran || goes_back_by_values(s->op));
        } else {
            EXPECT_EQ_INT(fake_status, status);
            if (fake_status != TN_OK && status == TN_OK)
                EXPECT_OK(fake_status); /* says what is wrong */
            EXPECT(fake_ran == ran);
            passes += ran;
            compare_gradients(&real, &fake);
        }
        bundle_clear(&real);
        bundle_clear(&fake);
    }
    test_note("%d passes, %d needed values", passes, needed_values);
    EXPECT(passes > 300 && needed_values < passes / 10);
    tn_fake_mode_unref(mode);
}
