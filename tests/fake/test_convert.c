/* SPDX-License-Identifier: MIT */
/* Real tensors become fake ones: what is kept, what is shared, what is remembered, and that nothing
 * leaks when there is no memory. */
#include <string.h>

#include "kit.h"
#include "base/alloc.h"
#include "core/tensor.h"
#include "fake/history.h"
#include "fake/mode.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"

static tn_tensor *fake_of(tn_fake_mode *mode, tn_tensor *real)
{
    tn_tensor *f = NULL;
    ASSERT_OK(tn_fake_from_real(mode, real, &f));
    return f;
}

static uint32_t version_of(const tn_tensor *t)
{
    uint32_t v = 0;
    EXPECT_OK(tn_tensor_version(t, &v));
    return v;
}

static void expect_alike(const tn_tensor *fake, const tn_tensor *real)
{
    EXPECT(tn_is_fake(fake) && tn_tensor_data(fake) == NULL);
    EXPECT_EQ_INT(fake->ndim, real->ndim);
    EXPECT(memcmp(fake->sizes, real->sizes, sizeof(int64_t) * (size_t)real->ndim) == 0);
    EXPECT(memcmp(fake->strides, real->strides, sizeof(int64_t) * (size_t)real->ndim) == 0);
    EXPECT_EQ_INT(fake->offset, real->offset);
    EXPECT_EQ_INT(fake->dtype, real->dtype);
    EXPECT_EQ_INT(fake->device.type, real->device.type);
    EXPECT_EQ_INT(fake->flags, real->flags);
    EXPECT(fake->keys == (real->keys | TNI_KS_FAKE));
    EXPECT_EQ_INT(tn_tensor_storage_nbytes(fake), tn_tensor_storage_nbytes(real));
}

TEST(a_fake_looks_like_its_tensor)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *a = ones(3, TN_CPU), *b = NULL, *c = NULL, *meta = ones(2, TN_META);
    ASSERT_OK(tn_transpose(a, 0, 2, &b));
    ASSERT_OK(tn_slice(b, 1, tn_some_int(1), tn_no_int(), 1, &c));
    ASSERT_OK(tn_zero_(b));
    ASSERT_OK(tn_tensor_set_requires_grad(a, true));
    tn_tensor *all[] = {a, b, c, meta};
    for (int i = 0; i < 4; i++) {
        test_note("tensor %d", i);
        tn_tensor *f = fake_of(mode, all[i]);
        expect_alike(f, all[i]);
        EXPECT_EQ_INT(version_of(f), version_of(all[i]));
        tn_tensor_unref(f);
    }
    UNREF(a, b, c, meta);
    tn_fake_mode_unref(mode);
}

TEST(an_inference_tensor_stays_one)
{
    tn_fake_mode *mode = new_mode(false);
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *a = ones(1, TN_CPU);
    tn_inference_leave(guard);
    tn_tensor *f = fake_of(mode, a);
    uint32_t v;
    EXPECT(tn_tensor_is_inference(f));
    EXPECT_FAIL(TN_INVALID, "Inference tensors do not track version counter.",
                tn_tensor_version(f, &v));
    UNREF(a, f);
    tn_fake_mode_unref(mode);
}

TEST(asking_again_gives_the_same_tensor_while_it_lives)
{
    tn_fake_mode *mode = new_mode(false), *other = new_mode(false);
    tn_tensor *a = ones(1, TN_CPU), *f = fake_of(mode, a), *g = fake_of(mode, a);
    tn_tensor *own = fake_of(mode, f), *foreign = fake_of(other, f);
    EXPECT(f == g && own == f);
    EXPECT(foreign != f && tn_fake_mode_of(foreign) == other);
    UNREF(own, foreign, g);
    EXPECT_EQ_INT(tn_tensor_use_count(f), 1);
    EXPECT_EQ_INT(tn_tensor_use_count(a), 1);
    UNREF(f);
    f = fake_of(mode, a); /* the old one is gone; nothing dangles */
    expect_alike(f, a);
    UNREF(a, f);
    tn_fake_mode_unref(mode);
    tn_fake_mode_unref(other);
}

TEST(views_and_their_base_share_storage_and_versions_in_any_order_of_conversion)
{
    for (int order = 0; order < 2; order++) {
        tn_fake_mode *mode = new_mode(false);
        tn_tensor *base = ones(2, TN_CPU), *view = NULL;
        ASSERT_OK(tn_view(base, (int64_t[]){4}, 1, &view));
        ASSERT_OK(tn_zero_(view));
        tn_tensor *first = fake_of(mode, order ? view : base);
        tn_tensor *second = fake_of(mode, order ? base : view);
        EXPECT(tn_tensor_shares_storage(first, second));
        EXPECT_EQ_INT(version_of(first), 1);
        ASSERT_OK(tn_zero_(second));
        EXPECT_EQ_INT(version_of(first), 2);
        EXPECT_EQ_INT(version_of(base), 1); /* the real one is not touched */
        UNREF(base, view, first, second);
        tn_fake_mode_unref(mode);
    }
}

TEST(a_counter_of_its_own_stays_apart)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *base = ones(2, TN_CPU), *apart = NULL, *view = NULL;
    ASSERT_OK(tn__unsafe_view(base, (int64_t[]){4}, 1, &apart)); /* shares memory, counts alone */
    ASSERT_OK(tn_view(apart, (int64_t[]){2, 2}, 2, &view));      /* counts with `apart` */
    tn_tensor *fv = fake_of(mode, view), *fb = fake_of(mode, base), *fa = fake_of(mode, apart);
    EXPECT(tn_tensor_shares_storage(fv, fb) && tn_tensor_shares_storage(fa, fb));
    ASSERT_OK(tn_zero_(fv));
    EXPECT_EQ_INT(version_of(fa), 1);
    EXPECT_EQ_INT(version_of(fb), 0);
    UNREF(base, apart, view, fv, fb, fa);
    tn_fake_mode_unref(mode);
}

TEST(views_of_a_tensor_that_is_gone_still_count_together)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *base = ones(2, TN_CPU), *apart = NULL, *v = NULL, *w = NULL;
    ASSERT_OK(tn__unsafe_view(base, (int64_t[]){4}, 1, &apart));
    ASSERT_OK(tn_view(apart, (int64_t[]){2, 2}, 2, &v));
    ASSERT_OK(tn_view(apart, (int64_t[]){4, 1}, 2, &w));
    UNREF(apart);
    tn_tensor *fv = fake_of(mode, v), *fw = fake_of(mode, w);
    ASSERT_OK(tn_zero_(fv));
    EXPECT_EQ_INT(version_of(fw), 1);
    UNREF(base, v, w, fv, fw);
    tn_fake_mode_unref(mode);
}

TEST(storages_are_remembered_beyond_the_tensors_over_them)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *a = ones(2, TN_CPU), *b = NULL, *keep = NULL;
    ASSERT_OK(tn_view(a, (int64_t[]){4}, 1, &b));
    tn_tensor *fa = fake_of(mode, a);
    ASSERT_OK(tn_view(fa, (int64_t[]){1, 4}, 2, &keep));
    UNREF(fa); /* its storage lives in `keep` */
    tn_tensor *fb = fake_of(mode, b);
    EXPECT(tn_tensor_shares_storage(fb, keep));
    UNREF(a, b, keep, fb);
    tn_fake_mode_unref(mode);
}

TEST(the_memo_does_not_grow_with_tensors_that_are_gone)
{
    tn_fake_mode *mode = new_mode(false);
    for (int i = 0; i < 3000; i++) {
        tn_tensor *a = ones(1, TN_CPU), *f = fake_of(mode, a);
        UNREF(a, f);
    }
    EXPECT(mode->tensors.capacity <= 64 && mode->storages.capacity <= 64);
    tn_tensor *kept[200], *fakes[200];
    for (int i = 0; i < 200; i++) {
        kept[i] = ones(1, TN_CPU);
        fakes[i] = fake_of(mode, kept[i]);
    }
    for (int i = 0; i < 200; i++) {
        tn_tensor *again = fake_of(mode, kept[i]);
        EXPECT(again == fakes[i]);
        tn_tensor_unref(again);
    }
    unref_all(kept, 200);
    unref_all(fakes, 200);
    tn_fake_mode_unref(mode);
}

TEST(converting_without_memory_leaks_nothing)
{
    tn_tensor *base = ones(2, TN_CPU), *apart = NULL, *view = NULL;
    ASSERT_OK(tn__unsafe_view(base, (int64_t[]){4}, 1, &apart));
    ASSERT_OK(tn_view(apart, (int64_t[]){2, 2}, 2, &view));
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_fake_mode *mode = NULL;
        tn_tensor *f = NULL, *g = NULL;
        rc = tn_fake_mode_new(NULL, &mode);
        if (rc == TN_OK)
            rc = tn_fake_from_real(mode, base, &f);
        if (rc == TN_OK)
            rc = tn_fake_from_real(mode, view, &g);
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
        EXPECT(rc == TN_OK || g == NULL);
        UNREF(f, g);
        tn_fake_mode_unref(mode);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    UNREF(base, apart, view);
}

static tn_status compute(tn_tensor *real)
{
    tn_tensor *x = NULL, *y = NULL, *z = NULL, *known = NULL, *joined = NULL;
    tn_scalar number;
    tn_status rc = tn_tensor_from_scalar(tn_float(3), TN_DTYPE_F32, &x);
    if (rc == TN_OK)
        rc = tn_add_scalar(x, tn_int(1), tn_int(1), &y);
    if (rc == TN_OK)
        rc = tn_item(y, &number);
    if (rc == TN_OK)
        rc = tn_add_(y, x, tn_int(1));
    if (rc == TN_OK)
        rc = tn_fake_constant(y, &known);
    if (rc == TN_OK)
        rc = tn_add(y, real, tn_int(1), &z); /* converts */
    if (rc == TN_OK)
        rc = tn_cat((tn_tensor *[]){z, real}, 2, 0, &joined);
    UNREF(x, y, z, known, joined);
    return rc;
}

TEST(known_values_without_memory_leak_nothing)
{
    tn_fake_mode *mode = new_mode(true);
    tn_tensor *real = ones(1, TN_CPU);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *kept = fake_of(mode, real);
    EXPECT_OK(compute(real)); /* what is made once is made now */
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = compute(real);
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    tn_fake_leave(guard);
    UNREF(real, kept);
    tn_fake_mode_unref(mode);
}

/* ---- gradients ---- */

TEST(a_view_knows_its_base_whichever_is_converted_first)
{
    for (int order = 0; order < 2; order++) {
        tn_fake_mode *mode = new_mode(false);
        tn_tensor *base = ones(2, TN_CPU), *view = NULL, *deeper = NULL;
        ASSERT_OK(tn_transpose(base, 0, 1, &view));
        ASSERT_OK(tn_select(view, 0, 1, &deeper));
        tn_tensor *f = fake_of(mode, order ? deeper : base),
                  *g = fake_of(mode, order ? base : deeper);
        tn_tensor *fb = order ? g : f, *fd = order ? f : g;
        EXPECT(tn_tensor_base(fd) == fb);
        EXPECT(!tn_tensor_is_view(fb));
        expect_alike(fd, deeper);
        EXPECT(tn_tensor_shares_storage(fd, fb));
        UNREF(base, view, deeper, f, g);
        tn_fake_mode_unref(mode);
    }
}

TEST(views_of_another_dtype_keep_their_base_too)
{
    tn_fake_mode *mode = new_mode(false);
    const int64_t size[] = {3, 2};
    tn_tensor_opts complex = tn_opts(TN_DTYPE_C64, TN_CPU);
    tn_tensor *z = NULL, *real = NULL, *part = NULL, *x = NULL, *pairs = NULL, *some = NULL;
    ASSERT_OK(tn_ones(size, 2, &complex, &z));
    ASSERT_OK(tn_view_as_real(z, &real));
    ASSERT_OK(tn_select(real, 0, 1, &part));
    ASSERT_OK(tn_ones(size, 2, NULL, &x));
    ASSERT_OK(tn_view_as_complex(x, &pairs));
    ASSERT_OK(tn_slice(pairs, 0, tn_some_int(1), tn_no_int(), 1, &some));
    tn_tensor *fp = fake_of(mode, part), *fr = fake_of(mode, real), *fz = fake_of(mode, z);
    tn_tensor *fs = fake_of(mode, some), *fc = fake_of(mode, pairs), *fx = fake_of(mode, x);
    expect_alike(fp, part);
    expect_alike(fr, real);
    expect_alike(fs, some);
    expect_alike(fc, pairs);
    EXPECT(tn_tensor_base(fp) == fz && tn_tensor_base(fr) == fz);
    EXPECT(tn_tensor_base(fs) == fx && tn_tensor_base(fc) == fx);
    UNREF(z, real, part, x, pairs, some);
    UNREF(fp, fr, fz, fs, fc, fx);
    tn_fake_mode_unref(mode);
}

TEST(how_a_view_was_made_is_kept)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *base = ones(2, TN_CPU), *quiet = NULL, **parts = NULL;
    int64_t n = 0;
    bool grad = tn_set_grad_enabled(false);
    ASSERT_OK(tn_view(base, (int64_t[]){4}, 1, &quiet));
    tn_set_grad_enabled(grad);
    ASSERT_OK(tn_unbind(base, 0, &parts, &n));
    parts[1]->flags |= TNI_VIEW_MULTI_OUTPUT;
    tn_tensor *fq = fake_of(mode, quiet), *fp = fake_of(mode, parts[1]);
    EXPECT_EQ_INT(fq->flags & TNI_VIEW_CREATION, TNI_VIEW_NO_GRAD);
    EXPECT_EQ_INT(fp->flags & TNI_VIEW_CREATION, TNI_VIEW_MULTI_OUTPUT);
    EXPECT(tn_tensor_base(fq) == tn_tensor_base(fp));
    UNREF(base, quiet, fq, fp);
    tn_tensor_list_free(parts, n);
    tn_fake_mode_unref(mode);
}

TEST(leaves_stay_leaves_and_their_gradient_comes_along)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *leaf = ones(2, TN_CPU), *grad = ones(2, TN_CPU), *view = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    ASSERT_OK(tn_tensor_set_grad(leaf, grad));
    bool was = tn_set_grad_enabled(false);
    ASSERT_OK(tn_view(leaf, (int64_t[]){4}, 1, &view));
    tn_set_grad_enabled(was);
    tn_tensor *f = fake_of(mode, leaf), *fv = fake_of(mode, view);
    EXPECT(tn_tensor_is_leaf(f) && tn_tensor_requires_grad(f));
    EXPECT(tn_tensor_grad(f) && tn_is_fake(tn_tensor_grad(f)));
    EXPECT(tn_tensor_is_leaf(fv) && tn_tensor_requires_grad(fv)); /* as its base requires it */
    UNREF(leaf, grad, view, f, fv);
    tn_fake_mode_unref(mode);
}

TEST(a_result_of_recorded_calls_has_a_history_that_cannot_be_run)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *t = ones(2, TN_CPU), *view = NULL;
    ASSERT_OK(tni_fake_give_history(t)); /* some history */
    ASSERT_OK(tn_view(t, (int64_t[]){4}, 1, &view));
    tn_tensor *fv = fake_of(mode, view), *f = fake_of(mode, t), *one = NULL;
    tn_node *node = NULL;
    EXPECT(tn_tensor_requires_grad(f) && !tn_tensor_is_leaf(f));
    EXPECT(tn_tensor_base(fv) == f && tn_tensor_requires_grad(fv));
    EXPECT(tn_tensor_is_leaf(fv) == tn_tensor_is_leaf(view));
    EXPECT_OK(tn_tensor_grad_fn(f, &node));
    EXPECT_STR(tn_node_name(node), "Error");
    tn_fake_guard guard = tn_fake_enter(mode);
    one = ones(2, TN_CPU);
    EXPECT_FAIL(TN_INVALID, "Internal error: Tried to backward() through example input",
                tn_backward(&f, 1, &one, NULL));
    tn_fake_leave(guard);
    UNREF(t, view, f, fv, one);
    tn_fake_mode_unref(mode);
}

TEST(converting_views_and_histories_without_memory_leaks_nothing)
{
    tn_tensor *t = ones(2, TN_CPU), *view = NULL, *grad = ones(2, TN_CPU);
    ASSERT_OK(tni_fake_give_history(t));
    ASSERT_OK(tn_view(t, (int64_t[]){4}, 1, &view));
    ASSERT_OK(tn_tensor_set_grad(t, grad));
    tn_fake_mode *warm = new_mode(false); /* what is made once is made now */
    UNREF(fake_of(warm, view));
    tn_fake_mode_unref(warm);
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_fake_mode *mode = NULL;
        tn_tensor *f = NULL;
        rc = tn_fake_mode_new(NULL, &mode);
        if (rc == TN_OK)
            rc = tn_fake_from_real(mode, view, &f);
        EXPECT(rc == TN_OK || (rc == TN_NOMEM && f == NULL));
        UNREF(f);
        tn_fake_mode_unref(mode);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    UNREF(t, view, grad);
}
