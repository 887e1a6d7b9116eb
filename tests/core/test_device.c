/* SPDX-License-Identifier: MIT */
/* tests/core/test_device.c: devices as text, and out-of-tree devices under their own names. Each
 * test of registering runs in a child, because a claim lasts as long as the process. */
#include "harness/test.h"

#include "core/device.h"
#include "core/keys.h"
#include "core/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void parses_to(const char *text, int type, int index)
{
    tn_device d = {77, 77};
    test_note("'%s'", text);
    EXPECT_OK(tn_device_parse(text, &d));
    EXPECT(d.type == type && d.index == index);
}

static void does_not_parse(const char *text, const char *message)
{
    tn_device d = {77, 77};
    test_note("'%s'", text);
    EXPECT_FAIL(TN_INVALID, message, tn_device_parse(text, &d));
    EXPECT(d.type == 77 && d.index == 77);
}

TEST(devices_parse_and_wrong_ones_are_named)
{
    parses_to("cpu", TN_DEVICE_CPU, -1);
    parses_to("cpu:0", TN_DEVICE_CPU, 0);
    parses_to("meta", TN_DEVICE_META, -1);
    parses_to("cuda", TN_DEVICE_CUDA, -1);
    parses_to("cuda:31", TN_DEVICE_CUDA, 31);
    parses_to("cuda:32767", TN_DEVICE_CUDA, 32767);
    parses_to("mps", 4, -1); /* none here, but programs compare against it */
    parses_to("hip:1", 2, 1);
    does_not_parse(
        "xyz",
        "Expected one of cpu, cuda, hip, xla, mps, ipu, xpu, hpu, ve, lazy, mtia, maia, meta "
        "device type at start of device string: xyz");
    does_not_parse("privateuseone", "Expected one of");
    does_not_parse("xyz:1", "device string: xyz:1");
    does_not_parse("", "Device string must not be empty");
    does_not_parse(":0", "Invalid device string: ':0'");
    does_not_parse("cuda:", "Invalid device string: 'cuda:'");
    does_not_parse("cuda:-1", "Invalid device string: 'cuda:-1'");
    does_not_parse("cuda:01", "Invalid device string: 'cuda:01'");
    does_not_parse("cuda:1a", "Invalid device string: 'cuda:1a'");
    does_not_parse("cuda:1:2", "Invalid device string: 'cuda:1:2'");
    does_not_parse("cuda 1", "Invalid device string: 'cuda 1'");
    does_not_parse("cuda:99999999999999999999", "Could not parse device index "
                                                "'99999999999999999999' in device string");
    does_not_parse("cuda:32768", "Could not parse device index '32768'");
    does_not_parse("cpu:1", "CPU device index must be -1 or zero, got 1");
    tn_device d;
    EXPECT_FAIL(TN_INVALID, "text is NULL", tn_device_parse(NULL, &d));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_device_parse("cpu", NULL));
}

TEST(devices_are_written_as_they_are_read)
{
    char text[32];
    EXPECT_STR(tn_device_format(TN_CPU, text, sizeof text), "cpu");
    EXPECT_STR(tn_device_format(TN_DEVICE_INIT(TN_DEVICE_CUDA, 3), text, sizeof text), "cuda:3");
    EXPECT_STR(tn_device_format(TN_META, text, sizeof text), "meta");
    EXPECT_STR(tn_device_format(TN_NO_DEVICE, text, sizeof text), "invalid");
    EXPECT_STR(tn_device_format(TN_DEVICE_INIT(99, 32767), text, sizeof text), "invalid:32767");
    EXPECT_STR(tn_device_format(TN_DEVICE_INIT(TN_DEVICE_CUDA, 32767), text, 6), "cuda:");
    EXPECT(tn_device_format(TN_CPU, NULL, 0) == NULL);
}

/* ---- a device of our own: memory with a prefix, so that mixing it up with the CPU's shows ---- */

enum { PREFIX = 64 };
static int live;
static bool refuse;

static tn_status my_alloc(void *ctx, tn_device device, size_t nbytes, void **out)
{
    (void)device;
    if (refuse)
        return tn_fail(TN_DEVICE, "the device %s is busy", (const char *)ctx);
    char *p = malloc(nbytes + PREFIX);
    if (!p)
        return tn_fail(TN_NOMEM, "no memory");
    live++;
    *out = p + PREFIX;
    return TN_OK;
}

static void my_free(void *ctx, tn_device device, void *ptr, size_t nbytes)
{
    (void)ctx;
    (void)device;
    (void)nbytes;
    live--;
    free((char *)ptr - PREFIX);
}

static tn_status my_to_host(void *ctx, tn_device device, void *host, const void *ptr, size_t nbytes)
{
    (void)ctx;
    (void)device;
    memcpy(host, ptr, nbytes);
    return refuse ? tn_fail(TN_DEVICE, "the copy failed") : TN_OK;
}

static tn_status my_from_host(void *ctx, tn_device device, void *ptr, const void *host,
                              size_t nbytes)
{
    (void)ctx;
    (void)device;
    memcpy(ptr, host, nbytes);
    return TN_OK;
}

static tn_device_vtable my_vtable(void)
{
    static char name[] = "npu";
    return (tn_device_vtable){
        sizeof(tn_device_vtable), 0, my_alloc, my_free, my_to_host, my_from_host, name,
    };
}

static int claim_a_device(void *arg)
{
    (void)arg;
    tn_device_vtable v = my_vtable();
    tn_device_type type = TN_DEVICE_NONE;
    ASSERT_OK(tn_device_register("npu", &v, &type));
    v.alloc = NULL; /* it was copied */
    EXPECT_EQ_INT(type, TN_DEVICE_PRIVATE1);
    EXPECT_STR(tn_key_name(TN_KEY_PRIVATE1), "npu");
    EXPECT_STR(tn_key_name(TN_KEY_AUTOGRAD_PRIVATE1), "Autogradnpu");
    EXPECT_STR(tn_key_name(TN_KEY_AUTOCAST_PRIVATE1), "Autocastnpu");
    EXPECT_STR(tn_key_name(TN_KEY_NESTED_TENSOR_PRIVATE1), "NestedTensornpu");
    EXPECT_STR(tn_key_name(TN_KEY_PRIVATE2), "PrivateUse2");
    tn_key key = TN_KEY_NONE;
    EXPECT_OK(tn_key_parse("Autogradnpu", &key));
    EXPECT_EQ_INT(key, TN_KEY_AUTOGRAD_PRIVATE1);
    EXPECT_OK(tn_key_parse("PrivateUse1", &key)); /* the old name goes on to work */
    EXPECT_EQ_INT(key, TN_KEY_PRIVATE1);
    EXPECT_OK(tn_key_parse("Autocastnpu", &key));
    EXPECT_EQ_INT(key, TN_KEY_AUTOCAST_PRIVATE1);
    char text[128];
    EXPECT_STR(tn_keyset_format(tni_tensor_keys_for(12, false), text, sizeof text),
               "DispatchKeySet(npu, ADInplaceOrView, Autogradnpu, Autocastnpu)");
    parses_to("npu", TN_DEVICE_PRIVATE1, -1);
    parses_to("npu:2", TN_DEVICE_PRIVATE1, 2);
    does_not_parse("xyz", "mtia, maia, npu, meta device type");
    EXPECT_STR(tn_device_format(TN_DEVICE_INIT(type, 2), text, sizeof text), "npu:2");

    tn_tensor *t = NULL;
    int64_t two[] = {2};
    ASSERT_OK(tni_tensor_new(1, two, NULL, TN_DTYPE_F32, TN_DEVICE_INIT(type, -1), &t));
    EXPECT_EQ_INT(live, 1);
    EXPECT_EQ_INT(tn_tensor_device(t).index, 0);
    memcpy(tn_tensor_data(t), (float[]){1, 2}, 8);
    char *printed = NULL;
    ASSERT_OK(tn_tensor_to_string(t, &printed));
    EXPECT_STR(printed, "tensor([1., 2.], device='npu:0')");
    tn_string_free(printed);
    refuse = true;
    EXPECT_FAIL(TN_DEVICE, "the copy failed", tn_tensor_to_string(t, &printed));
    EXPECT_FAIL(TN_DEVICE, "the device npu is busy", tni_tensor_resize(t, 1, (int64_t[]){9}));
    EXPECT_EQ_INT(tn_tensor_numel(t), 2);
    refuse = false;
    EXPECT_OK(tni_tensor_resize(t, 1, (int64_t[]){9}));
    EXPECT(((float *)tn_tensor_data(t))[1] == 2 && live == 1);
    tn_tensor *empty = NULL;
    ASSERT_OK(
        tni_tensor_new(1, (int64_t[]){0}, NULL, TN_DTYPE_F32, TN_DEVICE_INIT(type, 1), &empty));
    EXPECT_EQ_INT(live, 1); /* no bytes, no call */
    tn_tensor_unref(empty);
    tn_tensor_unref(t);
    EXPECT_EQ_INT(live, 0);
    return 0;
}

static int fail_each_allocation(void *arg)
{
    (void)arg;
    tn_device_vtable v = my_vtable();
    tn_device_type type = TN_DEVICE_NONE;
    ASSERT_OK(tn_device_register("npu", &v, &type));
    tn_tensor *t = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_tensor_new(1, (int64_t[]){3}, NULL, TN_DTYPE_I64, TN_DEVICE_INIT(type, 0), &t);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && t == NULL && live == 0 && tni_test_live == before);
    }
    memcpy(tn_tensor_data(t), (int64_t[]){7, 8, 9}, 24);
    int64_t held = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_tensor_resize(t, 1, (int64_t[]){500});
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && t->numel == 3 && live == 1 && tni_test_live == held);
    }
    EXPECT(((int64_t *)tn_tensor_data(t))[2] == 9 && live == 1);
    char *text = NULL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_tensor_to_string(t, &text);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && text == NULL && tni_test_live == held);
    }
    tn_string_free(text);
    tn_tensor_unref(t);
    EXPECT(live == 0 && tni_test_live == before);
    return 0;
}

TEST(memory_of_a_device_does_not_leak_whichever_allocation_fails)
{
    EXPECT_EQ_INT(run_in_child(fail_each_allocation, NULL, 20), 0);
}

TEST(a_claimed_device_has_its_own_name_keys_and_memory)
{
    EXPECT_EQ_INT(run_in_child(claim_a_device, NULL, 20), 0);
}

static int claim_too_many(void *arg)
{
    (void)arg;
    tn_device_vtable v = my_vtable();
    tn_device_type type = TN_DEVICE_NONE;
    ASSERT_OK(tn_device_register("one", &v, &type));
    EXPECT_FAIL(TN_INVALID, "a device named 'one' exists already",
                tn_device_register("one", &v, &type));
    ASSERT_OK(tn_device_register("two", &v, &type));
    ASSERT_OK(tn_device_register("three_3", &v, &type));
    EXPECT_EQ_INT(type, TN_DEVICE_PRIVATE3);
    EXPECT_FAIL(TN_INVALID, "no slot is free for 'four': one, two and three_3 are registered",
                tn_device_register("four", &v, &type));
    EXPECT_EQ_INT(type, TN_DEVICE_PRIVATE3);
    EXPECT_STR(tn_key_name(TN_KEY_SPARSE_CSR_PRIVATE3), "SparseCsrthree_3");
    return 0;
}

TEST(three_devices_fit_and_a_name_is_taken_once)
{
    EXPECT_EQ_INT(run_in_child(claim_too_many, NULL, 20), 0);
}

TEST(a_wrong_registration_is_refused_and_changes_nothing)
{
    tn_device_vtable v = my_vtable(), w = v;
    tn_device_type type = TN_DEVICE_NONE;
    static const char *const malformed[] = {"", "1a", "_a", "a-b", "a b", "ü", "sixteen_letters_"};
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++)
        EXPECT_FAIL(TN_INVALID, "is malformed", tn_device_register(malformed[i], &v, &type));
    EXPECT_FAIL(TN_INVALID, "name is NULL", tn_device_register(NULL, &v, &type));
    EXPECT_FAIL(TN_INVALID, "exists already", tn_device_register("cpu", &v, &type));
    EXPECT_FAIL(TN_INVALID, "exists already", tn_device_register("privateuseone", &v, &type));
    EXPECT_FAIL(TN_INVALID, "taken by a dispatch key", tn_device_register("CPU", &v, &type));
    EXPECT_FAIL(TN_INVALID, "vtable is NULL", tn_device_register("npu", NULL, &type));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_device_register("npu", &v, NULL));
    w.size = 8;
    EXPECT_FAIL(TN_INVALID, "vtable->size is 8", tn_device_register("npu", &w, &type));
    w = v, w.flags = 1;
    EXPECT_FAIL(TN_INVALID, "vtable->flags is 1", tn_device_register("npu", &w, &type));
    w = v, w.free = NULL;
    EXPECT_FAIL(TN_INVALID, "vtable->free is NULL", tn_device_register("npu", &w, &type));
    w = v, w.alloc = NULL;
    EXPECT_FAIL(TN_INVALID, "vtable->alloc is NULL", tn_device_register("npu", &w, &type));
    w = v, w.to_host = NULL;
    EXPECT_FAIL(TN_INVALID, "vtable->to_host is NULL", tn_device_register("npu", &w, &type));
    w = v, w.from_host = NULL;
    EXPECT_FAIL(TN_INVALID, "vtable->from_host is NULL", tn_device_register("npu", &w, &type));
    EXPECT_EQ_INT(type, TN_DEVICE_NONE);
    EXPECT(tni_device_vtable(TN_DEVICE_INIT(TN_DEVICE_PRIVATE1, 0)) == NULL);
    EXPECT_STR(tn_key_name(TN_KEY_PRIVATE1), "PrivateUse1");
}

static void register_one(int i, void *arg)
{
    _Atomic int *won = arg;
    tn_device_vtable v = my_vtable();
    tn_device_type type = TN_DEVICE_NONE;
    char name[16];
    snprintf(name, sizeof name, "dev%d", i % 2); /* two names for eight threads */
    if (tn_device_register(name, &v, &type) == TN_OK)
        (*won)++;
    EXPECT(tni_device_type_name(TN_DEVICE_PRIVATE1) != NULL);
    EXPECT(tn_key_name(TN_KEY_AUTOGRAD_PRIVATE2) != NULL);
}

static int register_at_once(void *arg)
{
    (void)arg;
    _Atomic int won = 0;
    run_threads(8, register_one, &won);
    EXPECT_EQ_INT(won, 2);
    EXPECT(strncmp(tni_device_type_name(TN_DEVICE_PRIVATE1), "dev", 3) == 0);
    EXPECT(strncmp(tni_device_type_name(TN_DEVICE_PRIVATE2), "dev", 3) == 0);
    EXPECT_STR(tni_device_type_name(TN_DEVICE_PRIVATE3), "privateusethree");
    return 0;
}

TEST(threads_may_register_at_once)
{
    EXPECT_EQ_INT(run_in_child(register_at_once, NULL, 20), 0);
}

static int install_cuda(void *arg)
{
    (void)arg;
    tn_device_vtable v = my_vtable();
    EXPECT(!tni_device_usable(TN_DEVICE_INIT(TN_DEVICE_CUDA, 0)));
    ASSERT_OK(tni_device_install(TN_DEVICE_CUDA, &v));
    EXPECT(tni_device_usable(TN_DEVICE_INIT(TN_DEVICE_CUDA, 0)));
    EXPECT_STR(tni_device_type_name(TN_DEVICE_CUDA), "cuda");
    EXPECT_FAIL(TN_INVALID, "installed already", tni_device_install(TN_DEVICE_CUDA, &v));
    EXPECT_FAIL(TN_INTERNAL, "does not hold", tni_device_install(TN_DEVICE_CPU, &v));
    return 0;
}

TEST(a_backend_of_ours_installs_under_its_own_number)
{
    EXPECT_EQ_INT(run_in_child(install_cuda, NULL, 20), 0);
}

TEST(a_device_that_nobody_provides_makes_no_tensor)
{
    tn_tensor *t = NULL;
    EXPECT_FAIL(TN_DEVICE, "cannot make a tensor on device cuda:1: nothing provides this device",
                tni_tensor_new(0, NULL, NULL, TN_DTYPE_F32, TN_DEVICE_INIT(TN_DEVICE_CUDA, 1), &t));
    EXPECT_FAIL(TN_DEVICE, "invalid",
                tni_tensor_new(0, NULL, NULL, TN_DTYPE_F32, TN_DEVICE_INIT(99, 1), &t));
    EXPECT(t == NULL);
}
