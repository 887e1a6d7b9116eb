/* SPDX-License-Identifier: MIT */
/* Storages as handles, and set_: a tensor becomes another name for elements elsewhere; streams that
 * use memory. */
#include "harness/test.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"
#include "tenon/storage.h"

static tn_tensor *range(int64_t n)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_status rc = tn_arange(tn_int(n), &opts, &t);
    EXPECT(rc == TN_OK);
    return t;
}

static float at(const tn_tensor *t, int64_t i)
{
    return ((const float *)tn_tensor_data(t))[i];
}

TEST(a_handle_keeps_the_memory)
{
    tn_tensor *t = range(6);
    tn_storage *s = tn_tensor_storage(t);
    EXPECT_EQ_INT(tn_storage_nbytes(s), 24);
    EXPECT_EQ_INT(tn_storage_use_count(s), 2);
    EXPECT(tn_storage_data(s) == tn_tensor_data(t));
    EXPECT(tn_storage_device(s).type == TN_DEVICE_CPU && tn_storage_resizable(s));
    tn_tensor_unref(t);
    EXPECT(((const float *)tn_storage_data(s))[5] == 5);
    tn_storage_unref(tn_storage_ref(s));
    tn_storage_unref(s);
    EXPECT(tn_tensor_storage(NULL) == NULL && tn_storage_nbytes(NULL) == 0);
    tn_storage_unref(NULL);
}

TEST(a_storage_grows_while_no_tensor_uses_it)
{
    tn_storage *s = NULL;
    ASSERT_OK(tn_storage_new(TN_CPU, 8, &s));
    ((char *)tn_storage_data(s))[7] = 42;
    ASSERT_OK(tn_storage_resize(s, 100000));
    EXPECT(tn_storage_nbytes(s) == 100000 && ((char *)tn_storage_data(s))[7] == 42);
    tn_tensor *t = range(2);
    ASSERT_OK(tn_set_storage_part_(t, s, 0, (int64_t[]){2}, 1, NULL, 0));
    ASSERT_OK(tn_storage_resize(s, 0));
    ASSERT_OK(tn_storage_resize(s, 100000));
    EXPECT_FAIL(TN_INVALID, "would move away", tn_storage_resize(s, 200000));
    EXPECT_FAIL(TN_INVALID, "NULL", tn_storage_resize(NULL, 1));
    EXPECT_FAIL(TN_INVALID, "no device", tn_storage_new(TN_NO_DEVICE, 1, &s));
    tn_tensor_unref(t);
    tn_storage_unref(s);
}

TEST(set_shares_what_it_is_given)
{
    tn_tensor *a = range(6), *b = range(1), *c = range(1);
    tn_storage *s = tn_tensor_storage(a);
    uint32_t before, after;
    ASSERT_OK(tn_tensor_version(b, &before));
    ASSERT_OK(tn_set_storage_part_(b, s, 1, (int64_t[]){2, 2}, 2, (int64_t[]){2, 1}, 2));
    ASSERT_OK(tn_tensor_version(b, &after));
    EXPECT_EQ_INT(after, before + 1);
    EXPECT(tn_tensor_shares_storage(a, b) && at(b, 3) == 4 && tn_tensor_numel(b) == 4);
    ASSERT_OK(tn_set_storage_(c, s));
    EXPECT(tn_tensor_numel(c) == 6 && tn_tensor_data(c) == tn_tensor_data(a));
    ASSERT_OK(tn_set_tensor_(c, b));
    EXPECT(tn_tensor_ndim(c) == 2 && tn_tensor_data(c) == tn_tensor_data(b));
    ASSERT_OK(tn_set_tensor_part_(c, b, 4, (int64_t[]){1}, 1, NULL, 0)); /* from where b begins */
    EXPECT(at(c, 0) == 5);
    ASSERT_OK(tn_set_empty_(c));
    EXPECT(tn_tensor_ndim(c) == 1 && tn_tensor_numel(c) == 0 && !tn_tensor_shares_storage(a, c));
    tn_storage_unref(s);
    tn_tensor_unref(a);
    EXPECT(at(b, 0) == 1);
    tn_tensor_unref(b);
    tn_tensor_unref(c);
}

TEST(set_refuses_what_cannot_be)
{
    tn_tensor *a = range(6), *b = range(3), *view = NULL, *meta = NULL, *grad = range(2);
    tn_storage *s = tn_tensor_storage(a);
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_META);
    ASSERT_OK(tn_empty((int64_t[]){2}, 1, &opts, TN_FORMAT_NONE, &meta));
    ASSERT_OK(tn_slice(b, 0, tn_some_int(1), tn_no_int(), 1, &view));
    ASSERT_OK(tn_tensor_set_requires_grad(grad, true));
    EXPECT_FAIL(TN_INVALID, "out of bounds for storage of size 24",
                tn_set_storage_part_(b, s, 3, (int64_t[]){4}, 1, NULL, 0));
    EXPECT_FAIL(TN_INVALID, "overflowed",
                tn_set_storage_part_(b, s, 0, (int64_t[]){2}, 1, (int64_t[]){INT64_MAX}, 1));
    EXPECT_FAIL(TN_INVALID, "invalid storage offset",
                tn_set_storage_part_(b, s, -1, (int64_t[]){1}, 1, NULL, 0));
    EXPECT_FAIL(TN_INVALID, "negative dimension",
                tn_set_storage_part_(b, s, 0, (int64_t[]){-1}, 1, NULL, 0));
    EXPECT_FAIL(TN_INVALID, "devices must match", tn_set_storage_(meta, s));
    EXPECT_FAIL(TN_INVALID, "a view", tn_set_storage_(view, s));
    EXPECT_FAIL(TN_INVALID, "leaf Variable", tn_set_storage_(grad, s));
    EXPECT_FAIL(TN_INVALID, "must be a storage", tn_set_storage_(b, NULL));
    EXPECT(tn_tensor_numel(b) == 3 && at(b, 2) == 2);
    tn_storage_unref(s);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(view);
    tn_tensor_unref(meta);
    tn_tensor_unref(grad);
}

TEST(a_part_that_begins_beyond_all_numbers_is_refused)
{
    tn_tensor *a = range(6), *b = range(1), *rest = NULL;
    ASSERT_OK(tn_narrow(a, 0, 3, 3, &rest));
    EXPECT_FAIL(TN_INVALID, "Tensor: invalid storage offset 9223372036854775807",
                tn_set_tensor_part_(b, rest, INT64_MAX, (int64_t[]){1}, 1, NULL, 0));
    EXPECT(tn_tensor_numel(b) == 1 && tn_tensor_storage_offset(b) == 0);
    tn_tensor_unref(rest);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(set_leaks_nothing_whichever_allocation_fails)
{
    tn_tensor *a = range(600), *b = range(600);
    tn_storage *s = tn_tensor_storage(a);
    static const int64_t sizes[8] = {2, 1, 1, 1, 1, 1, 1, 3};
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_set_storage_part_(b, s, 1, sizes, 8, NULL, 0);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live == before && tn_tensor_numel(b) == 600);
    }
    EXPECT(tn_tensor_ndim(b) == 8 && at(b, 0) == 1);
    tn_storage *fresh = NULL;
    before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_storage_new(TN_CPU, 1 << 20, &fresh);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && fresh == NULL && tni_test_live == before);
    }
    tn_storage_unref(fresh);
    tn_storage_unref(s);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

/* ---- streams ---- */

static void *told;

static tn_status keep_stream(tn_call *call, tn_tensor *self, void *s)
{
    (void)call, (void)self;
    told = s;
    return TN_OK;
}

TEST(a_stream_uses_memory_where_the_device_says_so)
{
    tn_tensor *t = range(2);
    int stream = 0;
    uint32_t before, after;
    ASSERT_OK(tn_tensor_version(t, &before));
    EXPECT_OK(tn_record_stream(t, &stream));
    EXPECT_OK(tn_record_stream(t, NULL));
    ASSERT_OK(tn_tensor_version(t, &after));
    EXPECT_EQ_INT(after, before);
    tn_library *lib;
    tn_kernel kernel = tn_kernel_record_stream(keep_stream, __FILE__, __LINE__);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_CPU, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_impl(lib, "record_stream", TN_KEY_NONE, &kernel, NULL));
    EXPECT_OK(tn_record_stream(t, &stream));
    EXPECT(told == &stream);
    tn_op *op;
    ASSERT_OK(tn_op_find("aten::record_stream", &op));
    tn_value args[] = {tn_value_tensor(t), {.tag = TN_TAG_POINTER, .u.pointer = t}};
    EXPECT_OK(tn_op_call(op, args, 2, NULL));
    EXPECT(told == t);
    args[1] = tn_value_int(3);
    EXPECT_FAIL(TN_TYPE, "must be Stream, not int", tn_op_call(op, args, 2, NULL));
    tn_library_close(lib);
    tn_tensor_unref(t);
}
