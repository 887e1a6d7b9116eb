/* SPDX-License-Identifier: MIT */
/* autograd/checkpoint_again.c: checkpointing by saved-tensor hooks: what operators of the piece
 * save is a number; the first time that a backward pass asks for one, the piece runs again and what
 * its operators save then is handed out by number. */
#include <stdio.h>
#include <string.h>
#include "autograd/checkpoint.h"
#include "autograd/engine.h"
#include "base/str.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"
#include "tenon/saved_hooks.h"

/* One saved value, as its operator saved it. */
typedef struct value {
    tn_tensor *tensor; /* strong; NULL: not there yet, or handed out */
    uint32_t version;
} value;

static uint32_t version_of(const tn_tensor *t)
{
    return t->versions ? atomic_load_explicit(t->versions, memory_order_relaxed) : 0;
}

/* What one pass computed again. */
typedef struct tni_again {
    tni_object object;
    struct tni_again *next; /* of the same piece; guarded by its lock */
    uint32_t pass;
    uint32_t n, n_seen; /* how many were saved the first time, and this time */
    bool early_stop, stopped, too_many;
    bool whole; /* those were all: the first run had ended */
    value values[];
} tni_again;

static void again_release(void *object)
{
    tni_again *again = object;
    for (uint32_t i = 0; i < again->n; i++)
        tn_tensor_unref(again->values[i].tensor);
}

static void again_destroy(void *object)
{
    tni_free(object);
}

static const tni_type again_type = {"recomputed tensors", again_release, again_destroy, NULL};

static void again_unref(tni_again *again)
{
    tni_unref(&again->object);
}
TNI_DEFINE_AUTO(tni_again, again_unref)

static tn_status again_new(const tni_piece *piece, uint32_t pass, tni_again **out)
{
    tni_again *again = tni_calloc(sizeof *again + piece->n * sizeof(value));
    TN_CHECK(again, TN_NOMEM, "cannot allocate what a checkpoint computes again");
    tni_object_init(&again->object, &again_type);
    again->pass = pass;
    again->n = piece->n;
    again->early_stop = piece->early_stop;
    again->whole = piece->ran;
    *out = again;
    return TN_OK;
}

/* ---- running again ---- */

static const char all_there[] = "all that a checkpoint needs was computed again";

static tn_status again_pack(void *ctx, tn_tensor *t, void **out)
{
    tni_again *again = ctx;
    uint32_t i = again->n_seen++;
    if (i >= again->n &&
        !again->whole) /* a pass inside the first run, which will save this later */
        return tni_detached(t, (tn_tensor **)out);
    if (i >= again->n) {
        again->too_many = true;
        TN_FAIL(TN_INVALID,
                "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                "during the original forward pass.");
    }
    TN_TRY(tni_detached(t, &again->values[i].tensor));
    again->values[i].version = version_of(t);
    if (again->early_stop && again->n_seen == again->n) {
        again->stopped = true;
        TN_FAIL(TN_INTERNAL, "%s", all_there);
    }
    *out = tn_tensor_ref(again->values[i].tensor);
    return TN_OK;
}

static tn_status again_unpack(void *ctx, void *packed, tn_tensor **out)
{
    (void)ctx;
    *out = tn_tensor_ref(packed);
    return TN_OK;
}

static void again_drop(void *ctx, void *packed)
{
    (void)ctx;
    tn_tensor_unref(packed);
}

static void again_done(void *ctx)
{
    again_unref(ctx);
}

static tn_status run_hooked(tni_piece *piece, tni_again *again, tn_tensor *const *inputs,
                            tn_tensor **outputs)
{
    tn_saved_hooks hooks = {sizeof hooks, 0,     again_pack, again_unpack,
                            again_drop,   again, again_done};
    tni_ref(&again->object);
    tn_status status = tn_saved_hooks_push(&hooks);
    if (status != TN_OK) {
        again_unref(again);
        return status;
    }
    status = tni_piece_run(piece, inputs, outputs);
    tni_error error = {.code = TN_OK};
    if (status != TN_OK)
        tni_error_take(&error);
    tn_status popped = tn_saved_hooks_pop();
    /* Only our own failure is none: on its way out the piece may have failed by itself, or been
     * interrupted. */
    if (status != TN_OK && again->stopped && strstr(error.message, all_there)) {
        tni_error_drop(&error);
        return popped;
    }
    if (status != TN_OK) {
        (void)tni_error_raise(&error);
        return status;
    }
    return popped;
}

static tn_status run_again(tni_piece *piece, tni_again *again)
{
    int n_in = piece->n_inputs, n_out = piece->n_outputs;
    tn_tensor **list = tni_calloc((size_t)(n_in + n_out) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot list the inputs of a checkpoint");
    tn_status status = tni_piece_inputs(piece, list);
    if (status == TN_OK) {
        status = run_hooked(piece, again, list, list + n_in);
        for (int i = 0; i < n_in + n_out; i++)
            tn_tensor_unref(list[i]);
    }
    tni_free(list);
    return status;
}

/* ---- was it the same? ---- */

static bool looks_like(const tni_look *look, const tn_tensor *t)
{
    return look->dtype == t->dtype && look->ndim == t->ndim &&
           look->device.type == t->device.type && look->device.index == t->device.index &&
           (look->ndim == 0 || memcmp(look->sizes, t->sizes, t->ndim * sizeof *t->sizes) == 0);
}

static void describe(tni_str *text, const char *what, tn_dtype dtype, tn_device device, int ndim,
                     const int64_t *sizes)
{
    char shape[TNI_SIZES_TEXT], name[32];
    tn_device type = {device.type, -1};
    tn_device_format(type, name, sizeof name);
    tni_str_addf(text,
                 "%s metadata: {'shape': torch.Size(%s), 'dtype': torch.%s, 'device': "
                 "device(type='%s'",
                 what, tni_format_sizes(ndim, sizes, shape, sizeof shape), tn_dtype_name(dtype),
                 name);
    if (device.index >= 0)
        tni_str_addf(text, ", index=%d", device.index);
    tni_str_add(text, ")}\n");
}

static tn_status check(const tni_piece *piece, const tni_again *again)
{
    TN_CHECK(again->n_seen == again->n || (!again->whole && again->n_seen > again->n), TN_INVALID,
             "torch.utils.checkpoint: A different number of tensors was saved during the original "
             "forward and recomputation.\nNumber of tensors saved during forward: %u\nNumber of "
             "tensors saved during recomputation: %u.",
             again->n, again->n_seen);
    tni_str text = TNI_STR_INIT;
    bool same = true;
    for (uint32_t i = 0; i < again->n && piece->check; i++) {
        const tn_tensor *t = again->values[i].tensor;
        const tni_look *look = &piece->looks[i];
        if (looks_like(look, t))
            continue;
        same = false;
        tni_str_addf(&text, "tensor at position %u:\n", i);
        describe(&text, "saved", (tn_dtype)look->dtype, look->device, look->ndim, look->sizes);
        describe(&text, "recomputed", (tn_dtype)t->dtype, t->device, t->ndim, t->sizes);
    }
    tn_status status = TN_OK;
    if (!same)
        status = tni_fail(TN_INVALID, TNI_WHERE,
                          "torch.utils.checkpoint: Recomputed values for the following tensors "
                          "have different metadata than during the forward pass.\n%s.",
                          tni_str_get(&text));
    tni_str_clear(&text);
    return status;
}

/* ---- finding what a pass computed again ---- */

static tni_again *find(tni_piece *piece, uint32_t pass)
{
    tni_spin_lock(&piece->lock);
    tni_again *again = piece->again;
    while (again && again->pass != pass)
        again = again->next;
    if (again)
        tni_ref(&again->object);
    tni_spin_unlock(&piece->lock);
    return again;
}

static tni_again *unlink_again(tni_piece *piece, uint32_t pass)
{
    tni_spin_lock(&piece->lock);
    tni_again **at = &piece->again, *found;
    while (*at && (*at)->pass != pass)
        at = &(*at)->next;
    found = *at;
    if (found)
        *at = found->next;
    tni_spin_unlock(&piece->lock);
    return found;
}

void tni_again_free_all(tni_piece *piece)
{
    while (piece->again) {
        tni_again *again = piece->again;
        piece->again = again->next;
        again_unref(again);
    }
}

typedef struct pass_end {
    tni_piece *piece;
    uint32_t pass;
} pass_end;

static tn_status nothing(void *ctx)
{
    (void)ctx;
    return TN_OK;
}

static void forget(void *ctx)
{
    pass_end *end = ctx;
    tni_again *again = unlink_again(end->piece, end->pass);
    if (again)
        again_unref(again);
    tni_piece_unref(end->piece);
    tni_free(end);
}

/* What the pass does not ask for goes when it ends. */
static tn_status keep_for_pass(tni_piece *piece, tni_again *again)
{
    tni_again *old = unlink_again(piece, again->pass);
    if (!old) {
        pass_end *end = tni_alloc(sizeof *end);
        TN_CHECK(end, TN_NOMEM, "cannot note the end of a pass");
        *end = (pass_end){piece, again->pass};
        tni_ref(&piece->object);
        tn_status status = tn_queue_callback(nothing, end, forget);
        if (status != TN_OK) {
            tni_piece_unref(piece);
            tni_free(end);
            return status;
        }
    } else {
        again_unref(old);
    }
    tni_ref(&again->object);
    tni_spin_lock(&piece->lock);
    again->next = piece->again;
    piece->again = again;
    tni_spin_unlock(&piece->lock);
    return TN_OK;
}

/* ---- the hooks of the first run ---- */

static tn_status grow(tni_piece *piece)
{
    uint32_t capacity = piece->capacity ? 2 * piece->capacity : 8;
    tni_look *looks =
        tni_realloc(piece->looks, piece->capacity * sizeof *looks, capacity * sizeof *looks);
    TN_CHECK(looks, TN_NOMEM, "cannot note %u saved tensors of a checkpoint", capacity);
    piece->looks = looks;
    piece->capacity = capacity;
    return TN_OK;
}

static tn_status first_pack(void *ctx, tn_tensor *t, void **out)
{
    tni_piece *piece = ctx;
    if (piece->n == piece->capacity)
        TN_TRY(grow(piece));
    size_t nbytes = t->ndim * sizeof *t->sizes;
    tni_look look = {t->dtype, t->ndim, t->device, NULL};
    if (t->ndim) {
        look.sizes = tni_alloc(nbytes);
        TN_CHECK(look.sizes, TN_NOMEM, "cannot note the sizes of a saved tensor");
        memcpy(look.sizes, t->sizes, nbytes);
    }
    piece->looks[piece->n] = look;
    *out = (void *)(uintptr_t)piece->n++;
    return TN_OK;
}

static tn_status first_unpack(void *ctx, void *packed, tn_tensor **out)
{
    tni_piece *piece = ctx;
    uint32_t i = (uint32_t)(uintptr_t)packed, pass = tni_current_pass();
    TN_AUTO(tni_again) again = pass ? find(piece, pass) : NULL;
    if (!again || i >= again->n ||
        !again->values[i].tensor) { /* saved since, inside the first run */
        if (again)
            again_unref(TN_MOVE(again));
        TN_TRY(again_new(piece, pass, &again));
        TN_TRY(run_again(piece, again));
        TN_TRY(check(piece, again));
        if (pass)
            TN_TRY(keep_for_pass(piece, again));
    }
    /* The piece may have gone on to overwrite it: an operator that saved it without a checkpoint
     * would find that, too. */
    value *v = &again->values[i];
    uint32_t now = version_of(v->tensor);
    if (TNI_UNLIKELY(now != v->version))
        return tni_written_error(v->tensor, NULL, 0, now, v->version);
    /* Asked for once in nearly every pass: handing it out lets go of it. */
    *out = TN_MOVE(v->tensor);
    return TN_OK;
}

static void first_done(void *ctx)
{
    tni_piece_unref(ctx);
}

tn_status tni_piece_push_hooks(tni_piece *piece)
{
    tn_saved_hooks hooks = {sizeof hooks, 0, first_pack, first_unpack, NULL, piece, first_done};
    tni_ref(&piece->object);
    tn_status status = tn_saved_hooks_push(&hooks);
    if (status != TN_OK)
        tni_piece_unref(piece);
    return status;
}
