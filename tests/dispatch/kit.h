/* SPDX-License-Identifier: MIT */
/* tests/dispatch/kit.h: what the dispatcher's tests share: a namespace `t`, tensors with chosen
 * keys, and kernels that say that they ran. */
#ifndef TEST_DISPATCH_KIT_H
#define TEST_DISPATCH_KIT_H

#include "harness/test.h"
#include "core/tensor.h"
#include "tenon/dispatch.h"

/* Libraries of one test; closed by kit_close. */
typedef struct kit {
    tn_library *defs;      /* DEF of namespace t */
    tn_library *impls;     /* IMPL of namespace t */
    tn_library *fallbacks; /* IMPL of _ */
} kit;

kit kit_open(void);
void kit_close(kit *k);
/* Define an operator of namespace t by its schema and find it. */
tn_op *kit_def(kit *k, const char *schema);
/* The same with a boxed kernel for every backend. */
tn_op *kit_def_with(kit *k, const char *schema, tn_boxed_fn fn, void *ctx);
/* The operator of this full name. */
tn_op *kit_op(const char *name);

/* A CPU-storage tensor of one element that carries exactly these keys. */
tn_tensor *kit_tensor(tn_keyset keys);
/* Its strong references. */
int kit_refs(const tn_tensor *t);
/* Keys of a plain tensor of this backend key, without and with autograd. */
tn_keyset kit_keys(tn_key backend);
tn_keyset kit_keys_grad(tn_key backend);

/* Kernels append their letter to this thread's log. The kernel returns its first argument, if the
 * operator returns anything. */
extern _Thread_local char kit_log[256];
void kit_log_clear(void);
tn_kernel kit_kernel(const char *letter);
/* The same, but then redispatches with everything below its own key. */
tn_kernel kit_redispatching(const char *letter);
/* Register kit_kernel(letter) for key of t::op, as long as the kit is open. */
void kit_impl(kit *k, const char *op, tn_key key, const char *letter);
/* The same with a handle, which the test must undo. */
tn_registration *kit_impl_handle(kit *k, const char *op, tn_key key, const char *letter);

/* Call an operator with one tensor of these keys; the log says who ran. */
tn_status kit_call(const char *op, tn_keyset keys);
/* Letter of the kernel in the slot of this key, "-" for none. */
const char *kit_slot(const char *op, tn_key key);

/* What registers a device that can allocate nothing. */
tn_device_vtable kit_no_memory(void);

#endif
