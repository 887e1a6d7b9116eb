/* SPDX-License-Identifier: MIT */
#include "dispatch/kit.h"

#include <stdio.h>
#include <string.h>

_Thread_local char kit_log[256];

void kit_log_clear(void)
{
    kit_log[0] = '\0';
}

/* The open kit; a test that ended early has left its own. */
static kit open_kit;

kit kit_open(void)
{
    kit k = {0};
    kit_close(&open_kit);
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "t", TN_KEY_NONE, "defs.c", 10, &k.defs));
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "t", TN_KEY_NONE, "impls.c", 20, &k.impls));
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "_", TN_KEY_NONE, "fallbacks.c", 30, &k.fallbacks));
    kit_log_clear();
    return open_kit = k;
}

void kit_close(kit *k)
{
    tn_library_close(k->fallbacks);
    tn_library_close(k->impls);
    tn_library_close(k->defs);
    *k = open_kit = (kit){0};
}

tn_op *kit_op(const char *name)
{
    tn_op *op = NULL;
    ASSERT_OK(tn_op_find(name, &op));
    return op;
}

tn_op *kit_def(kit *k, const char *schema)
{
    return kit_def_with(k, schema, NULL, NULL);
}

tn_op *kit_def_with(kit *k, const char *schema, tn_boxed_fn fn, void *ctx)
{
    char name[128];
    tn_kernel kernel = TN_KERNEL_INIT(fn);
    kernel.ctx = ctx;
    ASSERT_OK(tn_library_def(k->defs, schema, fn ? &kernel : NULL, NULL));
    snprintf(name, sizeof name, "t::%.*s", (int)strcspn(schema, "("), schema);
    return kit_op(name);
}

int kit_refs(const tn_tensor *t)
{
    return (int)(uint32_t)t->object.counts;
}

tn_tensor *kit_tensor(tn_keyset keys)
{
    tni_storage *s = NULL;
    tn_tensor *t = NULL;
    const int64_t one[] = {1};
    ASSERT_OK(tni_storage_new(TN_CPU, 4, &s));
    ASSERT_OK(tni_tensor_over(s, 1, one, one, 0, TN_DTYPE_F32, keys, TN_CPU, &t));
    tni_storage_unref(s);
    return t;
}

tn_keyset kit_keys(tn_key backend)
{
    return tn_keyset_of(backend);
}

tn_keyset kit_keys_grad(tn_key backend)
{
    int component = tni_key_backend(backend);
    tn_key autograd = component < 0 || tni_key_functionality(backend) != TN_KEY_DENSE
                          ? TN_KEY_AUTOGRAD_OTHER
                          : tni_backend_autograd_key(component);
    return tn_keyset_of(backend) | tn_keyset_of(TN_KEY_ADINPLACE_OR_VIEW) | tn_keyset_of(autograd);
}

static tn_status log_letter(tn_call *call, const tn_value *args, tn_value *rets)
{
    const char *letter = tn_call_context(call);
    size_t n = strlen(kit_log);
    snprintf(kit_log + n, sizeof kit_log - n, "%s", letter);
    for (int i = 0; i < tn_call_num_returns(call); i++) {
        tn_status st = tn_value_copy(&args[0], &rets[i]);
        if (st != TN_OK)
            return st;
    }
    return TN_OK;
}

static tn_status log_and_redispatch(tn_call *call, const tn_value *args, tn_value *rets)
{
    size_t n = strlen(kit_log);
    snprintf(kit_log + n, sizeof kit_log - n, "%s", (const char *)tn_call_context(call));
    tn_keyset ks = tn_call_keys(call);
    return tn_call_redispatch(call, ks & tn_keyset_full_after(tn_keyset_highest(ks)), args, rets);
}

tn_kernel kit_kernel(const char *letter)
{
    tn_kernel k = TN_KERNEL_INIT(log_letter);
    k.ctx = (void *)(uintptr_t)letter;
    k.name = letter;
    return k;
}

tn_kernel kit_redispatching(const char *letter)
{
    tn_kernel k = TN_KERNEL_INIT(log_and_redispatch);
    k.ctx = (void *)(uintptr_t)letter;
    k.name = letter;
    return k;
}

void kit_impl(kit *k, const char *op, tn_key key, const char *letter)
{
    tn_kernel kernel = kit_kernel(letter);
    ASSERT_OK(tn_library_impl(k->impls, op, key, &kernel, NULL));
}

tn_registration *kit_impl_handle(kit *k, const char *op, tn_key key, const char *letter)
{
    tn_registration *r = NULL;
    tn_kernel kernel = kit_kernel(letter);
    ASSERT_OK(tn_library_impl(k->impls, op, key, &kernel, &r));
    return r;
}

tn_status kit_call(const char *op, tn_keyset keys)
{
    tn_op *handle = NULL;
    tn_tensor *t = kit_tensor(keys);
    tn_value arg = tn_value_tensor(t), ret = tn_value_none();
    kit_log_clear();
    tn_status st = tn_op_find(op, &handle);
    if (st == TN_OK)
        st = tn_op_call(handle, &arg, 1, &ret);
    tn_value_clear(&ret);
    tn_tensor_unref(t);
    return st;
}

const char *kit_slot(const char *op, tn_key key)
{
    tn_op *handle = NULL;
    tn_slot_info info = {0};
    if (tn_op_find(op, &handle) != TN_OK || tn_op_slot(handle, tni_key_slot(key), &info) != TN_OK)
        return "?";
    return info.valid ? info.name : "-";
}

/* ---- a device without memory ---- */

static tn_status no_alloc(void *ctx, tn_device device, size_t nbytes, void **out)
{
    (void)ctx;
    (void)device;
    (void)nbytes;
    (void)out;
    return tn_fail(TN_NOMEM, "this device has no memory");
}
static void no_free(void *ctx, tn_device device, void *ptr, size_t nbytes)
{
    (void)ctx;
    (void)device;
    (void)ptr;
    (void)nbytes;
}
static tn_status no_copy_out(void *ctx, tn_device device, void *host, const void *ptr, size_t n)
{
    (void)ctx;
    (void)device;
    (void)host;
    (void)ptr;
    (void)n;
    return TN_OK;
}
static tn_status no_copy_in(void *ctx, tn_device device, void *ptr, const void *host, size_t n)
{
    return no_copy_out(ctx, device, ptr, host, n);
}

tn_device_vtable kit_no_memory(void)
{
    return (tn_device_vtable){
        sizeof(tn_device_vtable), 0, no_alloc, no_free, no_copy_out, no_copy_in, NULL};
}
