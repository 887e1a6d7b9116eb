/* SPDX-License-Identifier: MIT */
/* tests/core/test_tensor.c: what tenon/tensor.h and core/tensor.h promise about making, asking,
 * aliasing and changing tensors. */
#include "harness/test.h"

#include "core/tensor.h"

#include <string.h>

static tn_tensor *make(int ndim, const int64_t *sizes, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(ndim, sizes, NULL, dtype, TN_CPU, &t));
    return t;
}

TEST(a_fresh_tensor_is_contiguous_and_knows_itself)
{
    tn_tensor *t = make(3, (int64_t[]){2, 3, 4}, TN_DTYPE_F64);
    EXPECT_EQ_INT(tn_tensor_ndim(t), 3);
    EXPECT_EQ_INT(tn_tensor_sizes(t)[2], 4);
    EXPECT_EQ_INT(tn_tensor_strides(t)[0], 12);
    EXPECT_EQ_INT(tn_tensor_strides(t)[2], 1);
    EXPECT_EQ_INT(tn_tensor_numel(t), 24);
    EXPECT_EQ_INT(tn_tensor_nbytes(t), 192);
    EXPECT_EQ_INT(tn_tensor_storage_nbytes(t), 192);
    EXPECT_EQ_INT(tn_tensor_storage_offset(t), 0);
    EXPECT_EQ_INT(tn_tensor_dtype(t), TN_DTYPE_F64);
    EXPECT_EQ_INT(tn_tensor_layout(t), TN_LAYOUT_STRIDED);
    EXPECT(tn_tensor_device(t).type == TN_DEVICE_CPU && tn_tensor_device(t).index == -1);
    EXPECT(tn_tensor_keys(t) == tni_tensor_keys_for(0, false));
    EXPECT(tn_tensor_is_contiguous(t, TN_FORMAT_NONE) && !tn_tensor_requires_grad(t));
    EXPECT_EQ_INT((uintptr_t)tn_tensor_data(t) % 64, 0);
    EXPECT_EQ_INT(tn_tensor_use_count(t), 1);
    EXPECT(tn_tensor_ref(t) == t && tn_tensor_use_count(t) == 2);
    tn_tensor_unref(t);
    int64_t size = -1;
    EXPECT_OK(tn_tensor_size(t, -1, &size));
    EXPECT_EQ_INT(size, 4);
    EXPECT_FAIL(TN_INDEX, "expected to be in range of [-3, 2], but got 3",
                tn_tensor_size(t, 3, &size));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_tensor_size(t, 0, NULL));
    EXPECT_FAIL(TN_INVALID, "t is NULL", tn_tensor_size(NULL, 0, &size));
    EXPECT_EQ_INT(size, 4);
    tn_tensor_unref(t);
    t = make(0, NULL, TN_DTYPE_BOOL);
    EXPECT_FAIL(TN_INDEX, "Dimension specified as 0 but tensor has no dimensions",
                tn_tensor_size(t, 0, &size));
    EXPECT_EQ_INT(tn_tensor_numel(t), 1);
    tn_tensor_unref(t);
}

TEST(null_is_answered_not_followed)
{
    EXPECT(tn_tensor_ref(NULL) == NULL);
    tn_tensor_unref(NULL);
    tn_tensor_list_free(NULL, 3);
    EXPECT(tn_tensor_ndim(NULL) == 0 && tn_tensor_numel(NULL) == 0 && tn_tensor_nbytes(NULL) == 0);
    EXPECT(tn_tensor_sizes(NULL) == NULL && tn_tensor_strides(NULL) == NULL);
    EXPECT(tn_tensor_data(NULL) == NULL && tn_tensor_keys(NULL) == 0);
    EXPECT(tn_tensor_dtype(NULL) == TN_DTYPE_NONE && tn_tensor_layout(NULL) == TN_LAYOUT_NONE);
    EXPECT(tn_tensor_device(NULL).type == TN_DEVICE_NONE && tn_tensor_use_count(NULL) == 0);
    EXPECT(tn_tensor_storage_nbytes(NULL) == 0 && tn_tensor_storage_offset(NULL) == 0);
    EXPECT(!tn_tensor_is_contiguous(NULL, TN_FORMAT_CONTIGUOUS) && !tn_tensor_requires_grad(NULL));
    EXPECT(!tn_tensor_is_non_overlapping_and_dense(NULL));
    EXPECT(!tn_tensor_shares_storage(NULL, NULL));
    uint32_t version;
    EXPECT_FAIL(TN_INVALID, "t is NULL", tn_tensor_version(NULL, &version));
    EXPECT_FAIL(TN_INVALID, "t is NULL", tn_tensor_set_requires_grad(NULL, true));
}

TEST(a_meta_tensor_has_no_data_and_the_right_byte_count)
{
    tn_tensor *t = NULL;
    int64_t sizes[] = {INT64_C(1) << 30, INT64_C(1) << 25};
    ASSERT_OK(tni_tensor_new(2, sizes, NULL, TN_DTYPE_F32, TN_META, &t));
    EXPECT(tn_tensor_data(t) == NULL && tni_is_meta(t));
    EXPECT_EQ_INT(tn_tensor_storage_nbytes(t), INT64_C(1) << 57);
    EXPECT(tn_tensor_keys(t) == UINT64_C(0x2800018000));
    tn_tensor_unref(t);
}

TEST(many_dimensions_and_large_data_work)
{
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < TN_MAX_DIMS; d++)
        sizes[d] = d % 8 == 0 ? 2 : 1;
    for (int n = 0; n <= TN_MAX_DIMS; n++) {
        tn_tensor *t = make(n, sizes, TN_DTYPE_C128), *alias = NULL;
        EXPECT_EQ_INT(tn_tensor_numel(t), INT64_C(1) << ((n + 7) / 8));
        ASSERT_OK(tni_tensor_alias(t, n, t->sizes, t->strides, 0, &alias));
        EXPECT(alias->flags == t->flags && alias->data == t->data);
        EXPECT(memcmp(alias->sizes, t->sizes, 2 * (size_t)n * sizeof(int64_t)) == 0);
        memset(tn_tensor_data(t), 1, tn_tensor_nbytes(t));
        tn_tensor_unref(t);
        tn_tensor_unref(alias);
    }
    for (int64_t nbytes = 1; nbytes < 3000; nbytes += 31) {
        tn_tensor *t = make(1, &nbytes, TN_DTYPE_U8);
        EXPECT_EQ_INT((uintptr_t)tn_tensor_data(t) % 64, 0);
        memset(tn_tensor_data(t), 0x5a, (size_t)nbytes);
        tn_tensor_unref(t);
    }
}

TEST(wrong_geometry_is_refused_with_the_references_words)
{
    tn_tensor *t = NULL;
    tn_dtype f32 = TN_DTYPE_F32;
    EXPECT_FAIL(TN_INVALID, "Trying to create tensor with negative dimension -1: [-1]",
                tni_tensor_new(1, (int64_t[]){-1}, NULL, f32, TN_CPU, &t));
    EXPECT_FAIL(TN_INVALID, "Trying to create tensor with negative dimension -5: [0, -5]",
                tni_tensor_new(2, (int64_t[]){0, -5}, NULL, f32, TN_META, &t));
    EXPECT_FAIL(TN_INVALID,
                "Storage size calculation overflowed with sizes=[4611686018427387904, 2]",
                tni_tensor_new(2, (int64_t[]){INT64_C(1) << 62, 2}, NULL, f32, TN_META, &t));
    EXPECT_FAIL(TN_INVALID, "overflowed with sizes=[2305843009213693952]",
                tni_tensor_new(1, (int64_t[]){INT64_C(1) << 61}, NULL, f32, TN_META, &t));
    EXPECT_FAIL(TN_INVALID, "overflowed with sizes=[0, 4611686018427387904, 4]",
                tni_tensor_new(3, (int64_t[]){0, INT64_C(1) << 62, 4}, NULL, f32, TN_META, &t));
    EXPECT_FAIL(TN_INVALID,
                "Storage size calculation overflowed with sizes=[3] and "
                "strides=[9223372036854775807]",
                tni_tensor_new(1, (int64_t[]){3}, (int64_t[]){INT64_MAX}, f32, TN_META, &t));
    EXPECT_FAIL(TN_INVALID, "Negative strides are not supported at the moment, got strides: [-1]",
                tni_tensor_new(1, (int64_t[]){3}, (int64_t[]){-1}, f32, TN_META, &t));
    EXPECT_FAIL(TN_INVALID, "65 dimensions", tni_tensor_new(65, NULL, NULL, f32, TN_CPU, &t));
    EXPECT_FAIL(TN_INVALID, "-1 dimensions", tni_tensor_new(-1, NULL, NULL, f32, TN_CPU, &t));
    EXPECT_FAIL(TN_INVALID, "sizes is NULL", tni_tensor_new(1, NULL, NULL, f32, TN_CPU, &t));
    EXPECT_FAIL(TN_TYPE, "8 is not a dtype",
                tni_tensor_new(0, NULL, NULL, (tn_dtype)8, TN_CPU, &t));
    EXPECT_FAIL(TN_TYPE, "-1 is not a dtype",
                tni_tensor_new(0, NULL, NULL, TN_DTYPE_NONE, TN_CPU, &t));
    int64_t one[] = {1}, minus[] = {-2}, huge[] = {INT64_MAX, 2, INT64_MAX};
    tn_tensor *base = make(1, one, f32);
    EXPECT_FAIL(TN_INVALID, "negative dimension -2", tni_tensor_alias(base, 1, minus, one, 0, &t));
    EXPECT_FAIL(TN_INVALID, "negative dimension -2", tni_tensor_alias(base, 1, minus, NULL, 0, &t));
    EXPECT_FAIL(TN_INVALID, "overflowed",
                tni_tensor_alias(base, 3, huge, (int64_t[]){0, 0, 0}, 0, &t));
    EXPECT_FAIL(TN_INVALID, "70 dimensions", tni_tensor_alias(base, 70, NULL, NULL, 0, &t));
    EXPECT_FAIL(TN_INVALID, "negative dimension -2",
                tni_tensor_set_geometry(base, 1, minus, NULL, 0));
    EXPECT_FAIL(TN_INVALID, "negative dimension -2", tni_tensor_resize(base, 1, minus));
    EXPECT_FAIL(TN_INVALID, "overflowed", tni_tensor_resize(base, 1, (int64_t[]){INT64_MAX}));
    EXPECT(t == NULL && tn_tensor_numel(base) == 1);
    EXPECT_EQ_INT(tni_strong_count(&base->storage->object), 1);
    tn_tensor_unref(base);
}

TEST(making_leaks_nothing_whichever_allocation_fails)
{
    static const int64_t sizes[8] = {3, 1, 1, 1, 1, 1, 1, 1000};
    static const int64_t strides[8] = {1000, 7, 7, 7, 7, 7, 7, 1};
    for (int n = 1; n <= 8; n += 7) {
        for (int strided = 0; strided < 2; strided++) {
            tn_tensor *t = NULL;
            tn_status rc = TN_INTERNAL;
            int64_t before = tni_test_live;
            WITH_EACH_ALLOCATION_FAILING(rc)
            {
                rc = tni_tensor_new(n, sizes, strided ? strides : NULL, TN_DTYPE_F32, TN_CPU, &t);
                if (rc != TN_OK)
                    EXPECT(rc == TN_NOMEM && t == NULL && tni_test_live == before);
            }
            tn_tensor *alias = NULL;
            before = tni_test_live;
            WITH_EACH_ALLOCATION_FAILING(rc)
            {
                rc = tni_tensor_alias(t, n, sizes, strides, 0, &alias);
                if (rc != TN_OK)
                    EXPECT(rc == TN_NOMEM && alias == NULL && tni_test_live == before &&
                           tni_strong_count(&t->storage->object) == 1);
            }
            tn_tensor_unref(alias);
            tn_tensor_unref(t);
        }
    }
}

TEST(from_data_copies_and_checks)
{
    const float data[6] = {1, 2, 3, 4, 5, 6};
    tn_tensor *t = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_tensor_from_data(data, 2, (int64_t[]){2, 3}, TN_DTYPE_F32, &t);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && t == NULL && tni_test_live == before);
    }
    EXPECT(memcmp(tn_tensor_data(t), data, sizeof data) == 0 && tn_tensor_data(t) != data);
    tn_tensor_unref(t);
    t = NULL;
    EXPECT_FAIL(TN_INVALID, "data is NULL, expected 8 bytes",
                tn_tensor_from_data(NULL, 1, (int64_t[]){2}, TN_DTYPE_F32, &t));
    EXPECT_FAIL(TN_TYPE, "is not a dtype",
                tn_tensor_from_data(data, 1, (int64_t[]){2}, (tn_dtype)12, &t));
    EXPECT_FAIL(TN_INVALID, "negative dimension",
                tn_tensor_from_data(data, 1, (int64_t[]){-2}, TN_DTYPE_F32, &t));
    EXPECT_FAIL(TN_INVALID, "out is NULL",
                tn_tensor_from_data(data, 1, (int64_t[]){2}, TN_DTYPE_F32, NULL));
    EXPECT(t == NULL && tni_test_live == before);
    ASSERT_OK(tn_tensor_from_data(NULL, 2, (int64_t[]){2, 0}, TN_DTYPE_F32, &t));
    EXPECT(tn_tensor_data(t) == NULL && tn_tensor_numel(t) == 0);
    tn_tensor_unref(t);
}

static void count_call(void *ctx)
{
    ++*(int *)ctx;
}

TEST(from_blob_looks_at_the_callers_memory_and_releases_it_once)
{
    double data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int64_t sizes[] = {3, 2}, strides[] = {1, 6};
    int released = 0;
    tn_tensor *t = NULL, *view = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_tensor_from_blob(data, 2, sizes, strides, TN_DTYPE_F64, count_call, &released, &t);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && t == NULL && tni_test_live == before && released == 0);
    }
    EXPECT(tn_tensor_data(t) == data && tn_tensor_storage_nbytes(t) == 9 * sizeof(double));
    EXPECT(!tn_tensor_is_contiguous(t, TN_FORMAT_CONTIGUOUS));
    ASSERT_OK(tni_tensor_alias(t, 1, sizes, strides, 6, &view));
    EXPECT(tn_tensor_data(view) == data + 6 && tn_tensor_shares_storage(t, view));
    EXPECT_FAIL(TN_INVALID, "Trying to resize storage that is not resizable",
                tni_tensor_resize(t, 1, (int64_t[]){100}));
    tn_tensor_unref(t);
    EXPECT_EQ_INT(released, 0);
    tn_tensor_unref(view);
    EXPECT_EQ_INT(released, 1);
    t = NULL;
    EXPECT_FAIL(TN_INVALID, "data is NULL, expected 24 bytes",
                tn_tensor_from_blob(NULL, 1, sizes, NULL, TN_DTYPE_F64, count_call, &released, &t));
    EXPECT_FAIL(TN_INVALID, "is not aligned to the 8 bytes that float64 needs",
                tn_tensor_from_blob((char *)data + 4, 1, sizes, NULL, TN_DTYPE_F64, count_call,
                                    &released, &t));
    EXPECT_FAIL(TN_INVALID, "Negative strides",
                tn_tensor_from_blob(data, 1, sizes, (int64_t[]){-1}, TN_DTYPE_F64, count_call,
                                    &released, &t));
    EXPECT_FAIL(
        TN_TYPE, "is not a dtype",
        tn_tensor_from_blob(data, 1, sizes, NULL, TN_DTYPE_NONE, count_call, &released, &t));
    EXPECT_FAIL(
        TN_INVALID, "out is NULL",
        tn_tensor_from_blob(data, 1, sizes, NULL, TN_DTYPE_F64, count_call, &released, NULL));
    EXPECT(t == NULL && released == 1 && tni_test_live == before);
    ASSERT_OK(tn_tensor_from_blob(data, 1, sizes, NULL, TN_DTYPE_F64, NULL, NULL, &t));
    tn_tensor_unref(t);
}

TEST(from_scalar_takes_the_numbers_kind)
{
    static const struct {
        tn_scalar value;
        tn_dtype asked, got;
    } cases[] = {
        {{TN_SCALAR_INT, 0, {.i = 3}, 0}, TN_DTYPE_NONE, TN_DTYPE_I64},
        {{TN_SCALAR_FLOAT, 0, {.f = 3}, 0}, TN_DTYPE_NONE, TN_DTYPE_F32},
        {{TN_SCALAR_BOOL, 0, {.i = 1}, 0}, TN_DTYPE_NONE, TN_DTYPE_BOOL},
        {{TN_SCALAR_COMPLEX, 0, {.f = 3}, 4}, TN_DTYPE_NONE, TN_DTYPE_C64},
        {{TN_SCALAR_INT, 0, {.i = 3}, 0}, TN_DTYPE_BF16, TN_DTYPE_BF16},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tn_tensor *t = NULL;
        tn_status rc = TN_INTERNAL;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = tn_tensor_from_scalar(cases[i].value, cases[i].asked, &t);
            EXPECT(rc == TN_OK || (rc == TN_NOMEM && t == NULL));
        }
        EXPECT_EQ_INT(tn_tensor_dtype(t), cases[i].got);
        EXPECT_EQ_INT(tn_tensor_ndim(t), 0);
        tn_tensor_unref(t);
    }
    tn_tensor *t = NULL;
    EXPECT_FAIL(TN_TYPE, "is not a dtype", tn_tensor_from_scalar(tn_int(1), (tn_dtype)99, &t));
    EXPECT_FAIL(TN_TYPE, "is not a dtype",
                tn_tensor_from_scalar((tn_scalar){.kind = 7}, TN_DTYPE_NONE, &t));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_tensor_from_scalar(tn_int(1), TN_DTYPE_NONE, NULL));
    EXPECT(t == NULL);
}

/* ---- versions ---- */

static uint32_t version_of(const tn_tensor *t)
{
    uint32_t version = UINT32_MAX;
    EXPECT_OK(tn_tensor_version(t, &version));
    return version;
}

TEST(views_share_a_version_counter_that_outlives_its_first_tensor)
{
    int64_t before = tni_test_live;
    tn_tensor *base = make(1, (int64_t[]){4}, TN_DTYPE_F32), *a = NULL, *b = NULL, *own = NULL;
    ASSERT_OK(tni_tensor_alias(base, 1, (int64_t[]){2}, (int64_t[]){1}, 2, &a));
    ASSERT_OK(tni_tensor_alias(base, 1, (int64_t[]){4}, NULL, 0, &own));
    EXPECT(a->data == (char *)base->data + 8);
    tni_tensor_share_version(a, base);
    ASSERT_OK(tni_tensor_alias(a, 1, (int64_t[]){1}, (int64_t[]){1}, 2, &b));
    tni_tensor_share_version(b, a);
    EXPECT_OK(tni_tensor_bump_version(b));
    EXPECT_OK(tni_tensor_bump_version(base));
    EXPECT(version_of(a) == 2 && version_of(b) == 2 && version_of(base) == 2);
    EXPECT_EQ_INT(version_of(own), 0);
    tn_tensor_unref(base); /* the header stays for its counter; the storage belongs to the views */
    EXPECT_OK(tni_tensor_bump_version(a));
    EXPECT(version_of(b) == 3);
    tni_tensor_share_version(own, b); /* from its own counter to a shared one */
    EXPECT_EQ_INT(version_of(own), 3);
    tni_tensor_share_version(own, own);
    EXPECT_EQ_INT(version_of(own), 3);
    tn_tensor_unref(a);
    tn_tensor_unref(own);
    EXPECT_EQ_INT(version_of(b), 3);
    tn_tensor_unref(b);
    EXPECT_EQ_INT(tni_test_live, before);
}

/* ---- changing ---- */

TEST(set_geometry_moves_between_few_and_many_dimensions)
{
    int64_t before = tni_test_live;
    int64_t many[] = {1, 2, 1, 3, 1, 4, 1, 1};
    tn_tensor *t = make(1, (int64_t[]){24}, TN_DTYPE_I32);
    for (int i = 0; i < 24; i++)
        ((int32_t *)t->data)[i] = i;
    ASSERT_OK(tn_tensor_set_requires_grad(t, false));
    t->flags |= TNI_WRAPPED_NUMBER;
    tn_status rc = TN_INTERNAL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_tensor_set_geometry(t, 8, many, NULL, 0);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && t->ndim == 1 && t->sizes[0] == 24);
    }
    EXPECT(t->ndim == 8 && t->numel == 24 && t->strides[1] == 12);
    EXPECT(t->flags == (TNI_CONTIGUOUS | TNI_DENSE | TNI_WRAPPED_NUMBER));
    /* Its own sizes and strides as arguments: a transposition in place. */
    ASSERT_OK(tni_tensor_set_geometry(t, 2, t->sizes + 1, t->strides + 1, 1));
    EXPECT(t->ndim == 2 && t->sizes[0] == 2 && t->sizes[1] == 1 && t->strides[0] == 12);
    EXPECT(*(int32_t *)t->data == 1 && t->offset == 1);
    int64_t swapped_sizes[] = {1, 2}, swapped_strides[] = {12, 12};
    ASSERT_OK(tni_tensor_set_geometry(t, 2, swapped_sizes, swapped_strides, 2));
    EXPECT(!(t->flags & TNI_CONTIGUOUS) && *(int32_t *)t->data == 2);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(resize_keeps_data_and_grows_only_when_needed)
{
    int64_t before = tni_test_live;
    tn_tensor *t = make(2, (int64_t[]){2, 2}, TN_DTYPE_I64);
    for (int i = 0; i < 4; i++)
        ((int64_t *)t->data)[i] = i + 1;
    ASSERT_OK(tni_tensor_resize(t, 1, (int64_t[]){3}));
    EXPECT_EQ_INT(tn_tensor_storage_nbytes(t), 32); /* fewer elements keep the bytes */
    static const int64_t larger[] = {5, 7, 200, 1000, 50};
    for (size_t i = 0; i < sizeof larger / sizeof *larger; i++) {
        int64_t n = larger[i];
        tn_status rc = TN_INTERNAL;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            int64_t old = t->numel;
            rc = tni_tensor_resize(t, 1, &n);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && t->numel == old && ((int64_t *)t->data)[2] == 3);
        }
        EXPECT(t->numel == n && ((int64_t *)t->data)[3] == 4);
        EXPECT_EQ_INT((uintptr_t)t->data % 64, 0);
    }
    EXPECT_EQ_INT(tn_tensor_storage_nbytes(t), 8000);
    /* Many dimensions and more memory: neither half happens alone. */
    int64_t deep[] = {1, 1, 1, 1, 1, 1, 1, 2000};
    tn_status rc = TN_INTERNAL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_tensor_resize(t, 8, deep);
        if (rc != TN_OK)
            EXPECT(t->ndim == 1 && tn_tensor_storage_nbytes(t) == 8000);
    }
    EXPECT(t->ndim == 8 && ((int64_t *)t->data)[3] == 4);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(resizing_to_the_sizes_it_has_keeps_strides)
{
    int64_t sizes[] = {2, 3}, strides[] = {1, 2};
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(2, sizes, strides, TN_DTYPE_F32, TN_CPU, &t));
    ASSERT_OK(tni_tensor_resize(t, 2, sizes));
    EXPECT_EQ_INT(t->strides[1], 2);
    ASSERT_OK(tni_tensor_resize(t, 2, (int64_t[]){3, 2}));
    EXPECT(t->strides[0] == 2 && t->strides[1] == 1 && (t->flags & TNI_CONTIGUOUS));
    tn_tensor_unref(t);
    ASSERT_OK(tni_tensor_new(1, sizes, NULL, TN_DTYPE_F32, TN_META, &t));
    ASSERT_OK(tni_tensor_resize(t, 1, (int64_t[]){1000000}));
    EXPECT(t->data == NULL && tn_tensor_storage_nbytes(t) == 4000000);
    tn_tensor_unref(t);
}

TEST(memory_that_tensors_share_never_moves)
{
    tn_tensor *t = make(1, (int64_t[]){600}, TN_DTYPE_I64), *view = NULL;
    ((int64_t *)t->data)[0] = 42;
    ASSERT_OK(tni_tensor_alias(t, 1, (int64_t[]){10}, NULL, 0, &view));
    EXPECT_FAIL(TN_INVALID, "while 2 tensors share it", tni_tensor_resize(t, 1, (int64_t[]){601}));
    EXPECT(t->numel == 600 && view->data == t->data);
    void *data = t->data;
    ASSERT_OK(tni_storage_resize(t->storage, 80)); /* shrinks where it is */
    EXPECT(t->storage->data == data && tn_tensor_storage_nbytes(t) == 80);
    ASSERT_OK(tni_storage_resize(t->storage, 4800)); /* and comes back */
    EXPECT(t->storage->data == data);
    tn_tensor_unref(view);
    ASSERT_OK(tni_storage_resize(t->storage, 16)); /* alone: the memory is given back */
    tni_tensor_refresh_data(t);
    EXPECT(t->data == t->storage->data && *(int64_t *)t->data == 42);
    ASSERT_OK(tni_storage_resize(t->storage, 0));
    EXPECT(t->storage->data == NULL);
    tn_tensor_unref(t);

    tn_tensor *empty = make(1, (int64_t[]){0}, TN_DTYPE_I64), *other = NULL;
    ASSERT_OK(tni_tensor_alias(empty, 1, (int64_t[]){0}, NULL, 0, &other));
    ASSERT_OK(tni_tensor_resize(empty, 1, (int64_t[]){4})); /* nothing to move */
    EXPECT(empty->data && other->data == NULL);
    tn_tensor_unref(other);
    tn_tensor_unref(empty);
}

TEST(requires_grad_needs_numbers_that_have_gradients)
{
    tn_tensor *i = make(0, NULL, TN_DTYPE_I64), *c = make(0, NULL, TN_DTYPE_C64);
    EXPECT_FAIL(TN_INVALID, "only Tensors of floating point dtype can require gradients",
                tn_tensor_set_requires_grad(i, true));
    EXPECT_OK(tn_tensor_set_requires_grad(i, false));
    EXPECT_OK(tn_tensor_set_requires_grad(c, true));
    EXPECT(tn_tensor_requires_grad(c) && !tn_tensor_requires_grad(i));
    EXPECT_OK(tn_tensor_set_requires_grad(c, false));
    EXPECT(!tn_tensor_requires_grad(c));
    tn_tensor_unref(i);
    tn_tensor_unref(c);
}

static int meta_destroyed;
static void destroy_meta(tni_autograd_meta *meta)
{
    (void)meta;
    meta_destroyed++;
}

TEST(a_tensor_lets_go_of_its_autograd_record_once)
{
    tni_autograd_meta meta = {.destroy = destroy_meta};
    tn_tensor *t = make(0, NULL, TN_DTYPE_F32), *view = NULL;
    t->autograd = &meta;
    ASSERT_OK(tni_tensor_alias(t, 0, NULL, NULL, 0, &view));
    tni_tensor_share_version(view, t);
    tn_tensor_unref(t); /* its header stays, for the counter; the record goes now */
    EXPECT_EQ_INT(meta_destroyed, 1);
    tn_tensor_unref(view);
    EXPECT_EQ_INT(meta_destroyed, 1);
}

TEST(a_list_of_tensors_is_freed_with_its_array)
{
    int64_t before = tni_test_live;
    tn_tensor **list = tni_alloc(3 * sizeof *list);
    list[0] = make(0, NULL, TN_DTYPE_F32);
    list[1] = NULL;
    list[2] = make(0, NULL, TN_DTYPE_F32);
    tn_tensor_list_free(list, 3);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(a_geometry_becomes_a_tensor)
{
    tni_geometry g;
    g.ndim = 2, g.dtype = TN_DTYPE_F32, g.device = TN_META, g.has_strides = true, g.offset = 0;
    memcpy(g.sizes, (int64_t[]){2, 3}, 16);
    memcpy(g.strides, (int64_t[]){1, 2}, 16);
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_from_geometry(&g, &t));
    EXPECT(t->strides[1] == 2 && t->flags == TNI_DENSE);
    tn_tensor_unref(t);
    g.has_strides = false;
    ASSERT_OK(tni_tensor_from_geometry(&g, &t));
    EXPECT(t->strides[1] == 1);
    tn_tensor_unref(t);
}
