/* SPDX-License-Identifier: MIT */
/* dispatch/mode.c: the stack of modes of a thread, and the kernel of the key Python, which gives
 * calls to them. The kernel is registered when somebody first asks for a mode: until then tables
 * have nothing there. */
#include "dispatch/mode.h"

#include "base/alloc.h"
#include "base/ref.h"
#include "core/fake.h"
#include "dispatch/profile.h"
#include "dispatch/threads.h"

struct tn_call_mode {
    tni_object object;
    tn_call_mode_fn fn;
    void *ctx;
    void (*destroy)(void *ctx);
};

typedef struct entry {
    tn_call_mode *mode;  /* strong */
    struct entry *below; /* the next one out */
    tni_object *fake;    /* the fake mode that was on when it was pushed; only compared */
} entry;

/* The innermost mode that is on. */
static _Thread_local entry *top;
static _Atomic(tn_call_mode_fn) tensor_handler;
static void *_Atomic tensor_handler_ctx;

/* ---- modes ---- */

static void mode_destroy(void *object)
{
    tn_call_mode *mode = object;
    if (mode->destroy)
        mode->destroy(mode->ctx);
    tni_free(mode);
}

static const tni_type mode_type = {"mode", NULL, mode_destroy, NULL};

tn_status tn_call_mode_new(tn_call_mode_fn fn, void *ctx, void (*destroy)(void *ctx),
                           tn_call_mode **out)
{
    TN_CHECK(fn && out, TN_INVALID, "tn_call_mode_new: '%s' must not be NULL", fn ? "out" : "fn");
    tn_call_mode *mode = tni_calloc(sizeof *mode);
    TN_CHECK(mode, TN_NOMEM, "cannot allocate a mode of %zu bytes", sizeof *mode);
    tni_object_init(&mode->object, &mode_type);
    mode->fn = fn;
    mode->ctx = ctx;
    mode->destroy = destroy;
    *out = mode;
    return TN_OK;
}

tn_call_mode *tn_call_mode_ref(tn_call_mode *mode)
{
    if (mode)
        tni_ref(&mode->object);
    return mode;
}

void tn_call_mode_unref(tn_call_mode *mode)
{
    if (mode)
        tni_unref(&mode->object);
}

void *tn_call_mode_context(const tn_call_mode *mode)
{
    return mode ? mode->ctx : NULL;
}

/* ---- the kernel of the key Python ---- */

/* Calls reach the key Python while a mode is on. */
static void include(tni_state *s)
{
    tn_keyset included = tni_included(s) & ~TNI_KS_PYTHON;
    s->included_xor = (top ? included | TNI_KS_PYTHON : included) ^ TNI_DEFAULT_INCLUDED;
}

static tn_status run_mode(tn_call *call, const tn_value *args, tn_value *rets)
{
    entry *mine = top;
    top = mine->below;
    include(&tni_tls);
    tn_status status = mine->mode->fn(mine->mode->ctx, call, args, rets);
    mine->below = top; /* what the handler pushed or popped for good */
    top = mine;
    return status;
}

static tn_status run_handler(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_call_mode_fn fn = atomic_load_explicit(&tensor_handler, memory_order_acquire);
    TN_CHECK(fn, TN_UNSUPPORTED, "%s: calls with such a tensor go to a handler, and there is none",
             call->op->name);
    return fn(atomic_load_explicit(&tensor_handler_ctx, memory_order_acquire), call, args, rets);
}

static tn_status mode_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    tni_state *s = &tni_tls;
    uint64_t included = s->included_xor, excluded = s->excluded_xor;
    const tni_kernel *own = call->kernel;
    tni_exclude(s, TNI_KS_ABOVE_PYTHON);
    tn_status status = top ? run_mode(call, args, rets) : run_handler(call, args, rets);
    call->kernel = own; /* whatever tn_call_set_label made of it */
    s->included_xor = included;
    s->excluded_xor = excluded;
    return status;
}

/* ---- labels ---- */

/* A kernel that stands in a frame for the one that was registered: it says who answers. */
struct tn_call_label {
    tni_record *record;
};

tn_status tn_call_label_new(const char *name, const char *file, int line, tn_call_label **out)
{
    TN_CHECK(name && out, TN_INVALID, "tn_call_label_new: '%s' must not be NULL",
             name ? "out" : "name");
    TN_TRY(tni_ready()); /* there is a record to put the name into */
    tn_kernel shown = TN_KERNEL_INIT(mode_kernel);
    shown.name = name;
    shown.file = file;
    shown.line = line;
    tn_call_label *label = tni_alloc(sizeof *label);
    TN_CHECK(label, TN_NOMEM, "cannot allocate a label of %zu bytes", sizeof *label);
    tn_status status = tni_record_new(&shown, TN_KEY_PYTHON, &label->record);
    if (status != TN_OK) {
        tni_free(label);
        return status;
    }
    *out = label;
    return TN_OK;
}

void tn_call_label_free(tn_call_label *label)
{
    if (!label)
        return;
    tni_record_free_now(label->record);
    tni_free(label);
}

void tn_call_set_label(tn_call *call, const tn_call_label *label)
{
    if (!call || !label || call->kernel->boxed != mode_kernel)
        return;
    call->kernel = &label->record->kernel;
    tni_profile_label(call);
}

/* ---- registering ---- */

static _Atomic bool registered;
static tn_library *_Atomic owner; /* of the kernel; stays for ever */

/* Whether the key Python leads here already. */
static bool is_mine(void)
{
    tni_lock();
    const tni_record *r = tni_registry_.fallbacks[tni_key_slot(TN_KEY_PYTHON)];
    bool mine = r && r->kernel.boxed == mode_kernel;
    tni_unlock_only();
    return mine;
}

/* Registering may run destructors of users, who may push a mode, or wait for one who does. So no
 * lock is held; of two who come at once one registers, and the other finds that. */
static tn_status ready(void)
{
    if (TNI_LIKELY(atomic_load_explicit(&registered, memory_order_acquire)))
        return TN_OK;
    tn_library *library = NULL;
    tn_kernel k = TN_KERNEL_INIT(mode_kernel);
    k.file = "src/dispatch/mode.c"; /* not as the build's folder sees it */
    TN_TRY(tn_library_open(TN_LIBRARY_IMPL, "_", TN_KEY_NONE, k.file, __LINE__, &library));
    tn_status status = tn_library_fallback(library, TN_KEY_PYTHON, &k, NULL);
    if (status != TN_OK) {
        tn_library_close(library);
        if (!is_mine())
            return status;
        tn_clear_error();
    } else {
        atomic_store_explicit(&owner, library, memory_order_release);
    }
    atomic_store_explicit(&registered, true, memory_order_release);
    return TN_OK;
}

bool tni_mode_before_fake(const tni_schema *schema, const tn_value *args)
{
    if (top && top->fake == tni_tls.fake_mode)
        return true;
    return (tni_keys_of_values(schema, args) & TNI_KS_PYTHON) != 0;
}

/* ---- none of it for a while ---- */

void tni_aside_begin(tni_aside *out)
{
    tni_state *s = &tni_tls;
    *out = (tni_aside){s->included_xor, s->excluded_xor, s->fake_mode, top, true};
    s->included_xor = s->excluded_xor = 0;
    s->fake_mode = NULL;
    top = NULL;
    if (s->thread) {
        out->in_observer = s->thread->in_observer;
        s->thread->in_observer = true;
    }
}

void tni_aside_end(const tni_aside *aside)
{
    tni_state *s = &tni_tls;
    s->included_xor = aside->included_xor;
    s->excluded_xor = aside->excluded_xor;
    s->fake_mode = aside->fake_mode;
    top = aside->modes;
    if (s->thread)
        s->thread->in_observer = aside->in_observer;
}

/* ---- the stack ---- */

tn_status tn_call_mode_push(tn_call_mode *mode)
{
    TN_CHECK(mode, TN_INVALID, "tn_call_mode_push: 'mode' must not be NULL");
    TN_TRY(ready());
    entry *e = tni_alloc(sizeof *e);
    TN_CHECK(e, TN_NOMEM, "cannot push a mode: no memory for %zu bytes", sizeof *e);
    *e = (entry){tn_call_mode_ref(mode), top, tni_tls.fake_mode};
    top = e;
    include(&tni_tls);
    return TN_OK;
}

tn_call_mode *tn_call_mode_pop(void)
{
    entry *e = top;
    if (!e)
        return NULL;
    tn_call_mode *mode = e->mode;
    top = e->below;
    tni_free(e);
    include(&tni_tls);
    return mode;
}

int tn_call_mode_count(void)
{
    int n = 0;
    for (const entry *e = top; e; e = e->below)
        n++;
    return n;
}

tn_call_mode *tn_call_mode_at(int i)
{
    int n = tn_call_mode_count();
    entry *e = top;
    if (i < 0 || i >= n)
        return NULL;
    for (int k = n - 1; k > i; k--)
        e = e->below;
    return e->mode;
}

tn_call_modes_guard tn_call_modes_off(void)
{
    tn_call_modes_guard guard = {top};
    top = NULL;
    include(&tni_tls);
    return guard;
}

void tn_call_modes_restore(tn_call_modes_guard guard)
{
    top = guard.modes;
    include(&tni_tls);
}

tn_status tn_call_mode_go_on(tn_call *call, const tn_value *args, tn_value *rets)
{
    TN_CHECK(call, TN_INVALID, "tn_call_mode_go_on: 'call' must not be NULL");
    return tn_op_call(tn_call_op(call), args, tn_call_num_arguments(call), rets);
}

/* ---- handled tensors ---- */

tn_status tn_set_tensor_handler(tn_call_mode_fn fn, void *ctx)
{
    TN_TRY(ready());
    atomic_store_explicit(&tensor_handler_ctx, ctx, memory_order_release);
    atomic_store_explicit(&tensor_handler, fn, memory_order_release);
    return TN_OK;
}

tn_status tn_tensor_set_handled(tn_tensor *t, bool on)
{
    TN_CHECK(t, TN_INVALID, "tn_tensor_set_handled: 't' must not be NULL");
    TN_TRY(ready());
    t->keys = on ? t->keys | TNI_KS_PYTHON : t->keys & ~TNI_KS_PYTHON;
    return TN_OK;
}

bool tn_tensor_is_handled(const tn_tensor *t)
{
    return t && (t->keys & TNI_KS_PYTHON) != 0;
}

bool tn_tensor_is_number(const tn_tensor *t)
{
    return t && (t->flags & TNI_WRAPPED_NUMBER);
}

enum { SHELL_BACKEND = 9 }; /* Lazy: no kernels are registered for it */

tn_status tn_tensor_new_shell(int ndim, const int64_t *sizes, const int64_t *strides,
                              tn_dtype dtype, tn_device device, tn_tensor **out)
{
    TN_CHECK(out && ndim >= 0 && (sizes || !ndim), TN_INVALID,
             "tn_tensor_new_shell: '%s' must not be NULL", out ? "sizes" : "out");
    TN_TRY(ready());
    tn_tensor *t = NULL;
    TN_TRY(tni_tensor_new_real(ndim, sizes, strides, dtype, TN_META, &t));
    t->device = device.type == TN_DEVICE_NONE ? TN_CPU : device;
    /* Not the keys of its device, whose kernels would look for memory: where nobody handles a shell
     * it has views, and no backend. */
    t->keys = tni_tensor_keys_for(SHELL_BACKEND, tni_keys_are_inference(t->keys)) | TNI_KS_PYTHON;
    *out = t;
    return TN_OK;
}
