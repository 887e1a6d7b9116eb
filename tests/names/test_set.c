/* SPDX-License-Identifier: MIT */
/* Naming dimensions: what is taken and refused, and what becomes of names when the tensor changes.
 * The texts are PyTorch 2.11's. */
#include "kit.h"

#include "tenon/fake.h"

static tn_tensor *plain(int ndim)
{
    const int64_t twos[] = {2, 2, 2, 2};
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(twos, ndim, NULL, &t));
    return t;
}

static void expect_name(const tn_tensor *t, int64_t dim, const char *wanted)
{
    const char *name = tn_tensor_name(t, dim);
    EXPECT((name == NULL) == (wanted == NULL));
    if (name && wanted)
        EXPECT_STR(name, wanted);
}

TEST(a_name_is_found_by_its_place_and_its_place_by_the_name)
{
    tn_tensor *t = plain(3);
    int at = -7;
    EXPECT(!tn_tensor_has_names(t) && !tn_tensor_has_names(NULL));
    expect_name(t, 0, NULL);
    ASSERT_OK(tn_tensor_set_names(t, (const char *[]){"batch", NONE, "_w1"}, 3));
    EXPECT(tn_tensor_has_names(t));
    expect_name(t, 0, "batch");
    expect_name(t, 1, NULL);
    expect_name(t, -1, "_w1");
    expect_name(t, 3, NULL);
    expect_name(t, -4, NULL);
    ASSERT_OK(tn_tensor_find_name(t, "_w1", &at));
    EXPECT_EQ_INT(at, 2);
    expect_refused(tn_tensor_find_name(t, "w", &at),
                   "Name 'w' not found in Tensor['batch', None, '_w1'].");
    EXPECT_EQ_INT(at, 2);
    tn_tensor_unref(t);
}

TEST(what_is_no_name_is_refused_and_the_old_ones_stay)
{
    tn_tensor *t = named("NC"), *none = plain(0);
    static const char *const bad[] = {"", "1a", "a b", "\xc3\xa9", "..."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        expect_refused(tn_tensor_set_names(t, (const char *[]){"A", bad[i]}, 2),
                       "Invalid name: a valid identifier contains only digits, alphabetical "
                       "characters, and/or "
                       "underscore and starts with a non-digit. got: '");
    expect_refused(tn_tensor_set_names(t, (const char *[]){"A", "A"}, 2),
                   "Cannot construct a tensor with duplicate names. Got names: ['A', 'A'].");
    expect_refused(tn_tensor_set_names(t, (const char *[]){"A"}, 1),
                   "Number of names (1) and number of dimensions in tensor (2) do not match. "
                   "Attempted to create a "
                   "tensor with names ['A']");
    expect_refused(tn_tensor_set_names(none, (const char *[]){"A"}, 1), "Number of names (1)");
    expect_refused(tn_tensor_set_names(NULL, NULL, 0), "t is NULL");
    EXPECT_STR(names_of(t), "NC");
    ASSERT_OK(tn_tensor_set_names(none, NULL, 0));
    UNREF(t, none);
}

TEST(names_are_taken_away_and_replaced)
{
    int64_t before = tni_test_live;
    tn_tensor *t = named("NC");
    ASSERT_OK(tn_tensor_set_names(t, (const char *[]){"W", "H"}, 2));
    EXPECT_STR(names_of(t), "WH");
    ASSERT_OK(tn_tensor_set_names(t, (const char *[]){NONE, NONE}, 2));
    EXPECT(!tn_tensor_has_names(t) && !tn_keyset_has(tn_tensor_keys(t), TN_KEY_NAMED));
    ASSERT_OK(tn_tensor_set_names(t, (const char *[]){"W", NONE}, 2));
    ASSERT_OK(tn_tensor_set_names(t, NULL, 0));
    EXPECT(!tn_tensor_has_names(t));
    tn_tensor_unref(t);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(naming_survives_every_allocation_failing)
{
    tn_tensor *t = plain(2);
    tn_status rc;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_tensor_set_names(t, (const char *[]){"N", "C"}, 2);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !tn_tensor_has_names(t));
    }
    EXPECT(tni_test_live > before);
    EXPECT_STR(names_of(t), "NC");
    tn_tensor_unref(t);
}

TEST(a_device_without_memory_has_no_names)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_NONE, TN_META);
    tn_tensor *t = NULL, *here = named("NC");
    ASSERT_OK(tn_ones((int64_t[]){2, 2}, 2, &opts, &t));
    expect_refused(tn_tensor_set_names(t, (const char *[]){"N", "C"}, 2),
                   "NYI: named tensors only support CPU, CUDA, XPU or privateuseone tensors.");
    tn_tensor *moved = NULL;
    expect_refused(tn_to_device(here, TN_META, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &moved),
                   "NYI: named tensors");
    EXPECT(moved == NULL);
    UNREF(t, here);
}

TEST(a_fake_tensor_may_have_names)
{
    tn_fake_opts opts = TN_FAKE_OPTS_INIT;
    tn_fake_guard guard;
    tn_fake_mode *mode = NULL;
    tn_tensor *sum = NULL, *product = NULL, *t, *w;
    ASSERT_OK(tn_fake_mode_new(&opts, &mode));
    guard = tn_fake_enter(mode);
    t = named("NC");
    w = named("CD");
    ASSERT_OK(tn_sum_dim(t, (int64_t[]){0}, 1, false, TN_DTYPE_NONE, &sum));
    EXPECT(tn_is_fake(sum));
    expect_names(TN_OK, sum, "C");
    ASSERT_OK(tn_matmul(t, w, &product));
    expect_names(TN_OK, product, "ND");
    tn_fake_leave(guard);
    UNREF(t, w);
    tn_fake_mode_unref(mode);
}

TEST(a_view_has_names_of_its_own)
{
    tn_tensor *t = named("NC"), *view = NULL;
    uint32_t version;
    ASSERT_OK(tn_alias(t, &view));
    EXPECT_STR(names_of(view), "NC");
    ASSERT_OK(tn_tensor_set_names(view, (const char *[]){"A", "B"}, 2));
    EXPECT_STR(names_of(t), "NC");
    ASSERT_OK(tn_fill_(view, tn_int(3)));
    EXPECT(((const float *)tn_tensor_const_data(t))[3] == 3.0f);
    ASSERT_OK(tn_tensor_version(t, &version));
    EXPECT_EQ_INT(version, 1);
    UNREF(t, view);
}

TEST(the_size_of_a_named_tensor_stays)
{
    tn_tensor *t = named("NC");
    ASSERT_OK(tn_resize_(t, (int64_t[]){2, 2}, 2, TN_FORMAT_NONE));
    expect_refused(tn_resize_(t, (int64_t[]){4, 1}, 2, TN_FORMAT_NONE),
                   "Cannot resize named tensor with resize_ or resize_as_ (tried to resize "
                   "Tensor['N', 'C'] with size "
                   "[2, 2] to [4, 1]). This may be caused by passing a named tensor as an `out=` "
                   "argument; please ensure "
                   "that the sizes are the same. ");
    EXPECT_STR(names_of(t), "NC");
    tn_tensor_unref(t);
}

TEST(data_of_another_tensor_comes_with_its_names)
{
    tn_tensor *t = named("NC"), *other = plain(3), *more, *data = NULL;
    ASSERT_OK(tn_tensor_set_data(t, other));
    EXPECT_EQ_INT(tn_tensor_ndim(t), 3);
    EXPECT(!tn_tensor_has_names(t));
    more = named("AB");
    ASSERT_OK(tn_tensor_set_data(t, more));
    EXPECT_STR(names_of(t), "AB");
    ASSERT_OK(tn_tensor_data_alias(t, &data));
    EXPECT_STR(names_of(data), "AB");
    UNREF(t, other, more, data);
}

TEST(names_are_printed)
{
    tn_tensor *t = named("N-");
    char *text = NULL;
    ASSERT_OK(tn_tensor_to_string(t, &text));
    EXPECT_STR(text, "tensor([[1., 1.],\n        [1., 1.]], names=('N', None))");
    tn_string_free(text);
    tn_tensor_unref(t);
    t = named("N");
    ASSERT_OK(tn_tensor_to_string(t, &text));
    EXPECT_STR(text, "tensor([1., 1.], names=('N',))");
    tn_string_free(text);
    tn_tensor_unref(t);
}
