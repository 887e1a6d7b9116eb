/* SPDX-License-Identifier: MIT */
/* tests/core/test_dlpack.c: exchange with other libraries, and what happens to hostile structs. */
#include "harness/test.h"

#include "core/dlpack_abi.h"
#include "core/tensor.h"

#include <string.h>

static int deleted;
static void delete_it(DLManagedTensorVersioned *self)
{
    (void)self;
    deleted++;
}
static void delete_legacy(DLManagedTensor *self)
{
    (void)self;
    deleted++;
}

static _Alignas(64) float data[24];
static int64_t shape[TN_MAX_DIMS + 1] = {2, 3, 4};
static int64_t strides[TN_MAX_DIMS + 1] = {12, 4, 1};

static DLManagedTensorVersioned good(void)
{
    return (DLManagedTensorVersioned){
        .version = {1, 0},
        .deleter = delete_it,
        .dl_tensor = {.data = data,
                      .device = {TNI_DL_CPU, 0},
                      .ndim = 3,
                      .dtype = {TNI_DL_FLOAT, 32, 1},
                      .shape = shape,
                      .strides = strides},
    };
}

TEST(every_dtype_makes_the_round_trip_without_copying)
{
    static const tn_dtype all[] = {
#define X(name, number, bytes, category, py, text, cpp) TN_DTYPE_##name,
        TN_DTYPE_LIST(X)
#undef X
    };
    int64_t before = tni_test_live;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tn_tensor *t = NULL, *view = NULL, *back = NULL;
        ASSERT_OK(tni_tensor_new(2, (int64_t[]){4, 6}, NULL, all[i], TN_CPU, &t));
        ASSERT_OK(tni_tensor_alias(t, 2, (int64_t[]){3, 2}, (int64_t[]){1, 12}, 1, &view));
        DLManagedTensorVersioned *m = NULL;
        tn_status rc = TN_INTERNAL;
        int64_t inner = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = tn_to_dlpack(view, &m);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && m == NULL && tni_test_live == inner);
        }
        EXPECT(m->version.major == 1 && m->flags == 0 && m->dl_tensor.dtype.lanes == 1);
        EXPECT_EQ_INT(m->dl_tensor.dtype.bits, 8 * tn_dtype_size(all[i]));
        tn_tensor_unref(view);
        inner = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = tn_from_dlpack(m, &back);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && back == NULL && tni_test_live == inner);
        }
        EXPECT_EQ_INT(tn_tensor_dtype(back), all[i]);
        EXPECT(tn_tensor_data(back) == (char *)t->data + tn_dtype_size(all[i]));
        EXPECT(back->sizes[0] == 3 && back->sizes[1] == 2 && back->strides[1] == 12);
        EXPECT(tn_tensor_keys(back) == tn_tensor_keys(t));
        tn_tensor_unref(t);
        memset(tn_tensor_data(back), 1, tn_dtype_size(all[i])); /* the memory is still there */
        tn_tensor_unref(back);
        EXPECT_EQ_INT(tni_test_live, before);
    }
}

TEST(what_comes_in_is_deleted_once_by_its_last_tensor)
{
    DLManagedTensorVersioned m = good();
    tn_tensor *t = NULL;
    deleted = 0;
    ASSERT_OK(tn_from_dlpack(&m, &t));
    EXPECT(tn_tensor_data(t) == data && tn_tensor_numel(t) == 24);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(deleted, 1);
    m.deleter = NULL; /* nothing to delete is allowed */
    ASSERT_OK(tn_from_dlpack(&m, &t));
    tn_tensor_unref(t);
    EXPECT_EQ_INT(deleted, 1);
}

TEST(missing_strides_mean_contiguous_and_a_byte_offset_is_followed)
{
    DLManagedTensorVersioned m = good();
    tn_tensor *t = NULL;
    m.dl_tensor.strides = NULL;
    m.dl_tensor.byte_offset = 8;
    m.dl_tensor.ndim = 2; /* 2 x 3 */
    ASSERT_OK(tn_from_dlpack(&m, &t));
    EXPECT(t->strides[0] == 3 && tn_tensor_data(t) == data + 2);
    EXPECT(tn_tensor_is_contiguous(t, TN_FORMAT_CONTIGUOUS));
    tn_tensor_unref(t);
    m.dl_tensor.ndim = 0;
    m.dl_tensor.shape = NULL;
    ASSERT_OK(tn_from_dlpack(&m, &t));
    EXPECT(tn_tensor_ndim(t) == 0 && tn_tensor_data(t) == data + 2);
    tn_tensor_unref(t);
}

TEST(the_legacy_struct_works_too)
{
    DLManagedTensorVersioned v = good();
    DLManagedTensor m = {.dl_tensor = v.dl_tensor, .deleter = delete_legacy};
    tn_tensor *t = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    deleted = 0;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_from_dlpack_legacy(&m, &t);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && t == NULL && deleted == 0 && tni_test_live == before);
    }
    tn_tensor_unref(t);
    EXPECT_EQ_INT(deleted, 1);
    m.dl_tensor.ndim = -1;
    EXPECT_FAIL(TN_INVALID, "ndim is -1", tn_from_dlpack_legacy(&m, &t));
    m.deleter = NULL;
    m.dl_tensor.ndim = 1;
    ASSERT_OK(tn_from_dlpack_legacy(&m, &t));
    tn_tensor_unref(t);
    EXPECT_FAIL(TN_INVALID, "m is NULL", tn_from_dlpack_legacy(NULL, &t));
}

static void refused(DLManagedTensorVersioned m, tn_status status, const char *text)
{
    tn_tensor *t = NULL;
    deleted = 0;
    test_note("expecting '%s'", text);
    EXPECT_FAIL(status, text, tn_from_dlpack(&m, &t));
    EXPECT(t == NULL && deleted == 0); /* the struct still belongs to the caller */
}

TEST(hostile_structs_are_refused)
{
    int64_t negative[] = {2, -3, 4}, huge[] = {INT64_MAX, 2, 4}, far[] = {INT64_MAX / 2, 4, 1};
    int64_t before = tni_test_live;
    DLManagedTensorVersioned m = good();
    m.version.major = 2;
    m.dl_tensor.shape = (int64_t *)8; /* not looked at */
    refused(m, TN_UNSUPPORTED, "version 2.0 is not supported, expected 1.x");
    m = good(), m.version.major = 0;
    refused(m, TN_UNSUPPORTED, "version 0.0");
    m = good(), m.flags = TNI_DL_FLAG_READ_ONLY;
    refused(m, TN_UNSUPPORTED, "read-only");
    m = good(), m.dl_tensor.ndim = -1;
    refused(m, TN_INVALID, "ndim is -1, expected 0 to 64");
    m = good(), m.dl_tensor.ndim = INT32_MAX;
    refused(m, TN_INVALID, "ndim is 2147483647");
    m = good(), m.dl_tensor.ndim = TN_MAX_DIMS + 1;
    refused(m, TN_INVALID, "ndim is 65");
    m = good(), m.dl_tensor.shape = NULL;
    refused(m, TN_INVALID, "shape is NULL, expected 3 sizes");
    m = good(), m.dl_tensor.shape = negative;
    refused(m, TN_INVALID, "negative dimension -3");
    m = good(), m.dl_tensor.shape = huge;
    refused(m, TN_INVALID, "overflowed");
    m = good(), m.dl_tensor.shape = huge, m.dl_tensor.strides = NULL;
    refused(m, TN_INVALID, "overflowed");
    m = good(), m.dl_tensor.strides = negative;
    refused(m, TN_UNSUPPORTED, "negative strides are not supported, got -3 for dimension 1");
    m = good(), m.dl_tensor.strides = far;
    refused(m, TN_INVALID, "overflowed");
    m = good(), m.dl_tensor.data = NULL;
    refused(m, TN_INVALID, "data is NULL, expected 96 bytes");
    m = good(), m.dl_tensor.byte_offset = 2;
    refused(m, TN_INVALID, "is not aligned for float32");
    m = good(), m.dl_tensor.byte_offset = UINT64_MAX - 3;
    refused(m, TN_INVALID, "leads out of memory");
    m = good(), m.dl_tensor.data = (void *)(UINTPTR_MAX - 15);
    refused(m, TN_INVALID, "leads out of memory");
    m = good(), m.dl_tensor.dtype.lanes = 4;
    refused(m, TN_UNSUPPORTED, "4 lanes, expected 1");
    m = good(), m.dl_tensor.dtype.lanes = 0;
    refused(m, TN_UNSUPPORTED, "0 lanes");
    m = good(), m.dl_tensor.dtype.bits = 80;
    refused(m, TN_UNSUPPORTED, "code 2 and 80 bits");
    m = good(), m.dl_tensor.dtype.code = 3; /* an opaque handle */
    refused(m, TN_UNSUPPORTED, "code 3 and 32 bits");
    m = good(), m.dl_tensor.dtype = (DLDataType){TNI_DL_UINT, 24, 1};
    refused(m, TN_UNSUPPORTED, "code 1 and 24 bits");
    m = good(), m.dl_tensor.device.device_type = 12;
    refused(m, TN_UNSUPPORTED, "device type 12 number 0 is not supported");
    m = good(), m.dl_tensor.device.device_type = TNI_DL_CUDA;
    refused(m, TN_UNSUPPORTED, "device type 2");
    tn_tensor *t = NULL;
    EXPECT_FAIL(TN_INVALID, "m is NULL", tn_from_dlpack(NULL, &t));
    m = good();
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_from_dlpack(&m, NULL));
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(no_elements_need_no_data)
{
    int64_t none[] = {2, 0};
    DLManagedTensorVersioned m = good();
    m.dl_tensor.data = NULL;
    m.dl_tensor.ndim = 2;
    m.dl_tensor.shape = none;
    m.dl_tensor.strides = NULL;
    m.dl_tensor.byte_offset = 1;
    tn_tensor *t = NULL;
    ASSERT_OK(tn_from_dlpack(&m, &t));
    EXPECT(tn_tensor_data(t) == NULL && tn_tensor_numel(t) == 0);
    DLManagedTensorVersioned *again = NULL;
    ASSERT_OK(tn_to_dlpack(t, &again));
    again->deleter(again);
    tn_tensor_unref(t);
}

TEST(tensors_without_memory_of_their_own_are_not_exported)
{
    tn_tensor *t = NULL;
    DLManagedTensorVersioned *m = NULL;
    ASSERT_OK(tni_tensor_new(1, shape, NULL, TN_DTYPE_F32, TN_META, &t));
    EXPECT_FAIL(TN_UNSUPPORTED, "cannot export a tensor on device meta", tn_to_dlpack(t, &m));
    t->device = TN_CPU; /* a fake tensor: it says CPU and has no data */
    EXPECT_FAIL(TN_UNSUPPORTED, "cannot export", tn_to_dlpack(t, &m));
    tn_tensor_unref(t);
    ASSERT_OK(tni_tensor_new(1, shape, NULL, TN_DTYPE_F32, TN_CPU, &t));
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    EXPECT_FAIL(TN_UNSUPPORTED, "Can't export tensors that require gradient, use tensor.detach()",
                tn_to_dlpack(t, &m));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_to_dlpack(t, NULL));
    EXPECT_FAIL(TN_INVALID, "t is NULL", tn_to_dlpack(NULL, &m));
    EXPECT(m == NULL);
    tn_tensor_unref(t);
}

/* Random bytes in every field that is not a pointer: it is refused or gives a tensor within bounds.
 */
TEST(random_structs_never_reach_outside_their_memory)
{
    int64_t before = tni_test_live;
    int accepted = 0;
    for (int i = 0; i < 20000; i++) {
        int64_t some_shape[4], some_strides[4];
        for (int d = 0; d < 4; d++) {
            some_shape[d] = (int64_t)(test_random() % 8) - 1;
            some_strides[d] = (int64_t)(test_random() % 10) - 1;
            if (test_random() % 16 == 0)
                some_shape[d] = (int64_t)test_random();
            if (test_random() % 16 == 0)
                some_strides[d] = (int64_t)test_random();
        }
        DLManagedTensorVersioned m = good();
        m.dl_tensor.ndim = (int32_t)(test_random() % 6) - 1;
        m.dl_tensor.shape = test_random() % 16 ? some_shape : NULL;
        m.dl_tensor.strides = test_random() % 4 ? some_strides : NULL;
        m.dl_tensor.byte_offset = test_random() % 8 ? 4 * (test_random() % 4) : test_random();
        if (m.dl_tensor.ndim > 4)
            m.dl_tensor.ndim = 4;
        tn_tensor *t = NULL;
        if (tn_from_dlpack(&m, &t) != TN_OK) {
            ASSERT(t == NULL);
            continue;
        }
        accepted++;
        size_t need = 0;
        ASSERT(tni_required_bytes(t->ndim, t->sizes, t->strides, 0, 4, &need));
        ASSERT(need == t->storage->nbytes);
        tn_tensor_unref(t);
    }
    EXPECT(accepted > 500);
    EXPECT_EQ_INT(tni_test_live, before);
}
