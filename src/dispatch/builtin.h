/* SPDX-License-Identifier: MIT */
/* dispatch/builtin.h: how the built-in operators and kernels come in.
 *
 * The dispatcher does not know the kernels: they live in higher layers. The runtime layer, on top
 * of them, defines tni_boot, the one symbol that this layer takes from above; it calls
 * tni_register_builtin with the generated list. */
#ifndef TNI_DISPATCH_BUILTIN_H
#define TNI_DISPATCH_BUILTIN_H

#include "tenon/dispatch.h"

/* One row of gen/register.c: a kernel of a built-in operator. */
typedef struct tni_builtin_kernel {
    uint16_t op;       /* TNI_OP_… */
    int16_t key;       /* tn_key */
    tn_typed_fn typed; /* NULL: boxed only */
    tn_boxed_fn boxed; /* NULL: the adaptor of the typed one */
    const char *name;
    const char *file;
    int line;
} tni_builtin_kernel;

/* A whole-key fallback of the library itself. */
typedef struct tni_builtin_fallback {
    tn_key key;
    tn_boxed_fn boxed;
    const char *name;
    const char *file;
    int line;
    const struct tni_gate *gate; /* NULL: none, see dispatch/gate.h */
} tni_builtin_fallback;

/* The kernels of the library itself, all that tni_boot registers. */
typedef struct tni_builtins {
    const tni_builtin_kernel *kernels;
    size_t n_kernels;
    const tni_builtin_fallback *fallbacks;
    size_t n_fallbacks;
    /* Runs the kernel of a call (call->kernel) that somebody else registered as made of operators,
     * where an autograd key leads to it: the one place where a gradient could get lost unseen. */
    tn_boxed_fn composite_guard;
} tni_builtins;

/* Defined in src/runtime: register everything. Called once, by the first entry into the library. */
TN_NODISCARD tn_status tni_boot(void);
/* Called by tni_boot. All or nothing. */
TN_NODISCARD tn_status tni_register_builtin(const tni_builtins *all);

#endif
