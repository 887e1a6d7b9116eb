/* SPDX-License-Identifier: MIT */
/* observe/words.c: the words in which a record is told: stages, waits, tensors, keys,
 * kernels, threads. */
#include <string.h>

#include "tenon/dispatch.h"
#include "core/device.h"
#include "core/keys.h"
#include "observe/verdict.h"

/* The words of the table of last lines in the report of a hang: docs/user/diagnose.md. */
static const char *const stages[TNI_STAGE_LIMIT] = {
    [TNI_STAGE_ENDED] = "ended",
    [TNI_STAGE_ENTERING] = "entering the dispatcher",
    [TNI_STAGE_LOOKUP] = "in lookup",
    [TNI_STAGE_CHECK] = "in the validity check",
    [TNI_STAGE_INVOKE] = "in kernel invocation",
    [TNI_STAGE_BOXED] = "between boxed call and kernel",
    [TNI_STAGE_INSIDE] = "inside the kernel",
    [TNI_STAGE_MISSING] = "reporting a missing kernel",
};

void tni_add_missing(tni_str *s, const tni_seen *seen)
{
    const char *before = ": ";
    if (seen->head.nbytes > seen->nbytes)
        tni_str_addf(s, "the record is cut (%llu of its %llu bytes are here)",
                     (unsigned long long)seen->nbytes, (unsigned long long)seen->head.nbytes);
    else
        tni_str_add(s, "the record is damaged");
    if (seen->n_lost) {
        tni_str_addf(s, "%s%u thread%s could not be read", before, seen->n_lost,
                     seen->n_lost == 1 ? "" : "s");
        before = ", ";
    }
    if (seen->n_cut) {
        tni_str_addf(s, "%sthe calls of %u thread%s are missing", before, seen->n_cut,
                     seen->n_cut == 1 ? "" : "s");
        before = ", ";
    }
    if (seen->lost_names)
        tni_str_addf(s, "%snames are missing", before);
    else if (before[0] == ':')
        tni_str_add(s, ", nothing is missing that was in use");
}

const char *tni_stage_name(unsigned stage)
{
    return stage < TNI_STAGE_LIMIT ? stages[stage] : "in an unknown stage";
}

const char *tni_frame_stage(const tni_flight_frame *f)
{
    if (f->stage == TNI_STAGE_BOXED && tni_slot_key(f->slot) == TN_KEY_META)
        return "between boxed call and meta kernel";
    return tni_stage_name(f->stage);
}

static const char *const waits[TNI_WAIT_LIMIT] = {
    [TNI_WAIT_NONE] = "nothing",
    [TNI_WAIT_LOCK] = "lock",
    [TNI_WAIT_ONCE] = "initialisation",
    [TNI_WAIT_POOL] = "pool workers",
    [TNI_WAIT_IDLE] = "work",
    [TNI_WAIT_SPIN] = "spin lock",
    [TNI_WAIT_INTERPRETER] = "interpreter lock",
    [TNI_WAIT_THREAD] = "thread",
    [TNI_WAIT_EVENT] = "event",
};

const char *tni_wait_name(unsigned kind)
{
    return kind < TNI_WAIT_LIMIT ? waits[kind] : "something unknown";
}

static const char *const callouts[TNI_CALLOUT_LIMIT] = {
    [TNI_CALLOUT_NONE] = "",
    [TNI_CALLOUT_OBSERVER] = "an observer callback",
    [TNI_CALLOUT_PACK_HOOK] = "a saved-tensor hook (pack)",
    [TNI_CALLOUT_UNPACK_HOOK] = "a saved-tensor hook (unpack)",
    [TNI_CALLOUT_TENSOR_HOOK] = "a tensor hook",
    [TNI_CALLOUT_NODE_HOOK] = "a node hook",
    [TNI_CALLOUT_CALLBACK] = "a callback at the end of backward",
    [TNI_CALLOUT_LISTENER] = "a registration listener",
    [TNI_CALLOUT_INTERRUPT] = "the interrupt check",
};

const char *tni_callout_name(unsigned kind)
{
    return kind < TNI_CALLOUT_LIMIT ? callouts[kind] : "";
}

void tni_add_mark(tni_str *s, const tni_mark *mark)
{
    const char *kind = tni_wait_name(mark->kind);
    if (mark->kind == TNI_WAIT_THREAD)
        tni_str_addf(s, "the end of thread %llu", (unsigned long long)mark->what);
    else if (mark->kind == TNI_WAIT_POOL || mark->kind == TNI_WAIT_IDLE)
        tni_str_add(s, kind);
    else if (mark->kind == TNI_WAIT_INTERPRETER)
        tni_str_add(s, "the interpreter lock");
    else if (mark->text[0])
        tni_str_addf(s, "%s '%s'", kind, mark->text);
    else
        tni_str_addf(s, "%s at 0x%llx", kind, (unsigned long long)mark->what);
}

void tni_add_age(tni_str *s, uint64_t now, uint64_t then)
{
    if (!now || !then)
        return;
    double age = now > then ? (double)(now - then) / 1e9 : 0;
    if (age < 60)
        tni_str_addf(s, age < 10 ? "%.2f s" : "%.1f s", age);
    else
        tni_str_addf(s, "%.0f min %.0f s", (double)((uint64_t)age / 60),
                     (double)((uint64_t)age % 60));
}

void tni_add_for(tni_str *s, const tni_seen *seen, const char *before, uint64_t then)
{
    if (!seen->now || !then)
        return;
    tni_str_addf(s, "%sfor %s", before, seen->now_is_least ? "at least " : "");
    tni_add_age(s, seen->now, then);
}

void tni_add_tensor(tni_str *s, const tni_seen *seen, const tni_flight_tensor *t)
{
    const char *dtype = tn_dtype_name((tn_dtype)t->dtype);
    tni_str_addf(s, "%s[", dtype ? dtype : "?");
    for (int i = 0; i < t->ndim; i++) {
        if (i >= TNI_FLIGHT_DIMS) {
            tni_str_add(s, ", ...");
            break;
        }
        tni_str_addf(s, "%s%lld", i ? ", " : "", (long long)t->sizes[i]);
    }
    tni_str_add(s, "]");
    unsigned type = (unsigned)t->device_type;
    const char *device = type < TNI_NUM_BACKENDS && seen->head.backends[type][0]
                             ? seen->head.backends[type]
                             : tni_device_builtin_name((int)type);
    if (type != 0)
        tni_str_addf(s, " %s", device);
    if (t->device_index > 0)
        tni_str_addf(s, ":%d", t->device_index);
}

/* Keys go by the names that the other program gave to its backends. */
static const char *key_name(const tni_seen *seen, tn_key key, char room[64])
{
    return tni_key_name_with(key, seen->head.backends, room);
}

void tni_add_keys(tni_str *s, const tni_seen *seen, uint64_t keys)
{
    char room[64];
    unsigned cursor = 0;
    tn_key key;
    tni_str_add(s, "DispatchKeySet(");
    for (bool some = false; tni_keyset_next(keys & TNI_KS_FULL, &cursor, &key); some = true)
        tni_str_addf(s, "%s%s", some ? ", " : "", key_name(seen, key, room));
    tni_str_add(s, ")");
}

void tni_add_key(tni_str *s, const tni_seen *seen, unsigned slot)
{
    char room[64];
    if (slot < TNI_NUM_SLOTS)
        tni_str_add(s, key_name(seen, tni_slot_key(slot), room));
    else
        tni_str_addf(s, "slot %u", slot);
}

void tni_add_kernel(tni_str *s, const tni_seen *seen, const tni_flight_frame *frame)
{
    const tni_flight_name *e = tni_seen_entry(seen, TNI_NAME_KERNEL, frame->kernel);
    if (!e) {
        tni_str_add(s, "a kernel without a name");
        return;
    }
    tni_str_addf(s, "kernel %s", tni_seen_text(seen, e->text));
    const char *file = tni_seen_text(seen, e->file);
    if (file[0])
        tni_str_addf(s, " (%s:%u)", file, e->line);
}

bool tni_is_busy(const tni_seen_thread *t)
{
    return t->cpu > 0.5 || (t->state == 'R' && (t->cpu < 0 || t->cpu > 0.05));
}

bool tni_waits(const tni_seen_thread *t)
{
    unsigned kind = t->block.marks.wait.kind;
    return kind != TNI_WAIT_NONE && kind != TNI_WAIT_IDLE && !t->wait_is_new;
}

const tni_flight_frame *tni_innermost(const tni_seen_thread *t)
{
    return t->n_frames ? &t->frames[t->n_frames - 1] : NULL;
}

const tni_flight_pass *tni_inner_pass(const tni_seen_thread *t)
{
    uint32_t n = t->block.n_passes;
    if (n == 0)
        return NULL;
    n = n < TNI_FLIGHT_PASSES ? n : TNI_FLIGHT_PASSES;
    return t->block.passes[n - 1].id ? &t->block.passes[n - 1] : NULL;
}

void tni_add_thread(tni_str *s, const tni_seen_thread *t)
{
    tni_str_addf(s, "thread %u", t->block.tid);
    const char *name = t->comm[0] ? t->comm : t->block.name;
    if (name[0])
        tni_str_addf(s, " (%s)", name);
}

void tni_add_place(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_flight_frame *f = tni_innermost(t);
    const tni_flight_pass *pass = tni_inner_pass(t);
    const tni_mark *code = tni_seen_code(t);
    const char *callout = tni_callout_name(t->block.marks.callout);
    char room[24];
    if (callout[0])
        tni_str_addf(s, "in %s%s", callout, f ? ", " : pass ? " of a backward pass" : "");
    if (f) {
        tni_str_addf(s, "%s of %s", tni_frame_stage(f),
                     tni_seen_name(seen, TNI_NAME_OP, f->op, room));
        if (f->stage >= TNI_STAGE_CHECK) {
            tni_str_add(s, " [");
            tni_add_key(s, seen, f->slot);
            tni_str_add(s, "]");
        }
        if (f->stage >= TNI_STAGE_INVOKE) {
            tni_str_add(s, ", ");
            tni_add_kernel(s, seen, f);
        }
    } else if (pass && pass->running_name && !callout[0]) {
        tni_str_addf(s, "in node %s of a backward pass",
                     tni_seen_name(seen, TNI_NAME_NODE, pass->running_name, room));
    } else if (!callout[0]) {
        tni_str_add(s, code ? "outside of operators, in " : "outside of operators");
        tni_str_add(s, code ? code->text : "");
        return;
    }
    if (code && (!f || (f->stamp && code->since >= f->stamp)))
        tni_str_addf(s, ", in %s", code->text);
}

uint64_t tni_thread_since(const tni_seen_thread *t)
{
    if (tni_waits(t) && t->block.marks.wait.since)
        return t->block.marks.wait.since;
    if (t->n_frames)
        return tni_frame_since(t, t->n_frames - 1);
    const tni_flight_pass *pass = tni_inner_pass(t);
    const tni_mark *code = tni_seen_code(t);
    return code ? code->since : pass ? pass->began : 0;
}

uint64_t tni_frame_since(const tni_seen_thread *t, uint32_t i)
{
    for (;; i--) {
        const tni_flight_frame *f = &t->frames[i];
        bool is_call = tni_is_call(f);
        if (is_call && f->stamp && f->stage >= TNI_STAGE_INVOKE)
            return f->stamp;
        if (i == 0)
            return 0;
    }
}

static bool same_hop(const tni_flight_frame *a, const tni_flight_frame *b)
{
    return a->op == b->op && a->slot == b->slot;
}

uint32_t tni_seen_cycle(const tni_seen_thread *t)
{
    uint32_t n = t->depth > TNI_SEEN_OUTER + TNI_SEEN_INNER ? TNI_SEEN_INNER : t->n_frames;
    const tni_flight_frame *end = t->frames + t->n_frames;
    for (uint32_t period = 1; period <= n / 4 && period <= 32; period++) {
        bool repeats = true;
        for (uint32_t i = 1; repeats && i <= 3 * period; i++)
            repeats = same_hop(end - i, end - i - period);
        if (repeats)
            return period;
    }
    return 0;
}
