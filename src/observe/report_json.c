/* SPDX-License-Identifier: MIT */
/* observe/report_json.c: the same report as JSON, one object. Text that is no plain ASCII is
 * written in \u form or, where it is no UTF-8 either, as U+FFFD: what is read may be anything. */
#include "observe/report.h"

#include "tenon/dispatch.h"

/* The character at *at, which moves behind it; U+FFFD and one byte where there is none. What comes
 * out of a record has been through tni_plain_text, which leaves whole characters. */
static uint32_t next_character(const unsigned char **at)
{
    const unsigned char *p = *at;
    int more = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : p[0] < 0xf5 ? 3 : 0;
    uint32_t code = more ? p[0] & (0x3fu >> more) : p[0] < 0x80 ? p[0] : 0xfffd;
    for (int i = 1; i <= more; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            *at = p + 1;
            return 0xfffd;
        }
        code = code << 6 | (p[i] & 0x3fu);
    }
    *at = p + 1 + more;
    return (code >= 0xd800 && code < 0xe000) || code > 0x10ffff ? 0xfffd : code;
}

static void add_string(tni_str *s, const char *text)
{
    tni_str_add(s, "\"");
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        uint32_t code = next_character(&p);
        if (code == '"' || code == '\\')
            tni_str_addf(s, "\\%c", (int)code);
        else if (code >= 0x20 && code < 0x7f)
            tni_str_addf(s, "%c", (int)code);
        else if (code < 0x10000)
            tni_str_addf(s, "\\u%04x", code);
        else
            tni_str_addf(s, "\\u%04x\\u%04x", 0xd7c0 + (code >> 10), 0xdc00 + (code & 0x3ff));
    }
    tni_str_add(s, "\"");
}

static void add_key_string(tni_str *s, const char *key, const char *text)
{
    tni_str_addf(s, ", \"%s\": ", key);
    add_string(s, text);
}

static void add_seconds(tni_str *s, const char *key, uint64_t now, uint64_t then)
{
    if (now && then)
        tni_str_addf(s, ", \"%s\": %.3f", key, now > then ? (double)(now - then) / 1e9 : 0.0);
}

static void add_mark_json(tni_str *s, const tni_seen *seen, const tni_mark *m)
{
    tni_str_add(s, "{\"kind\": ");
    add_string(s, tni_wait_name(m->kind));
    add_key_string(s, "name", m->text);
    tni_str_addf(s, ", \"what\": \"0x%llx\"", (unsigned long long)m->what);
    add_seconds(s, "seconds", seen->now, m->since);
    tni_str_add(s, "}");
}

static void add_frame_json(tni_str *s, const tni_seen *seen, const tni_seen_thread *t, uint32_t i)
{
    static const char *const kinds[] = {"call", "redispatch", "callBoxed", "redispatchBoxed"};
    const tni_flight_frame *f = &t->frames[i];
    char room[24];
    bool is_call = tni_is_call(f);
    tni_str text = TNI_STR_INIT;
    tni_str_add(s, "{\"operator\": ");
    add_string(s, tni_seen_name(seen, TNI_NAME_OP, f->op, room));
    add_key_string(s, "kind", f->kind < 4 ? kinds[f->kind] : "?");
    add_key_string(s, "stage", tni_frame_stage(f));
    if (f->stage >= TNI_STAGE_LOOKUP) {
        tni_add_keys(&text, seen, f->keys);
        add_key_string(s, "keys", tni_str_get(&text));
        tni_str_clear(&text);
    }
    if (f->stage >= TNI_STAGE_CHECK) {
        tni_add_key(&text, seen, f->slot);
        add_key_string(s, "key", tni_str_get(&text));
        tni_str_clear(&text);
    }
    const tni_flight_name *e = tni_seen_entry(seen, TNI_NAME_KERNEL, f->kernel);
    if (e && f->stage >= TNI_STAGE_INVOKE) {
        add_key_string(s, "kernel", tni_seen_text(seen, e->text));
        add_key_string(s, "file", tni_seen_text(seen, e->file));
        tni_str_addf(s, ", \"line\": %u", e->line);
    }
    if (is_call && f->stage >= TNI_STAGE_INVOKE) {
        tni_str_add(s, ", \"tensors\": [");
        for (int k = 0, some = 0; k < TNI_FLIGHT_TENSORS; k++) {
            if (!(f->tensors & 1u << k))
                continue;
            tni_add_tensor(&text, seen, &f->tensor[k]);
            tni_str_add(s, some++ ? ", " : "");
            add_string(s, tni_str_get(&text));
            tni_str_clear(&text);
        }
        tni_str_add(s, "]");
    }
    add_seconds(s, "seconds", seen->now, tni_frame_since(t, i));
    tni_str_add(s, "}");
}

static void add_pass_json(tni_str *s, const tni_seen *seen, const tni_flight_pass *p)
{
    char room[24];
    tni_str_addf(s, "{\"id\": %u, \"nodes\": %u, \"done\": %u, \"ready\": %u", p->id, p->n_nodes,
                 p->n_done, p->n_ready);
    if (p->running_name)
        add_key_string(s, "running", tni_seen_name(seen, TNI_NAME_NODE, p->running_name, room));
    add_seconds(s, "seconds", seen->now, p->began);
    tni_str_add(s, ", \"waiting\": [");
    uint32_t n = p->n_nodes < TNI_FLIGHT_NODES ? p->n_nodes : TNI_FLIGHT_NODES, told = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (p->nodes[k].done || (p->running_name && k == p->running))
            continue;
        tni_str_add(s, told++ ? ", " : "");
        add_string(s, tni_seen_name(seen, TNI_NAME_NODE, p->nodes[k].name, room));
    }
    tni_str_add(s, "]}");
}

static void add_ended_json(tni_str *s, const tni_seen *seen, const tni_flight_frame *f)
{
    char room[24];
    tni_str_add(s, "{\"operator\": ");
    add_string(s, tni_seen_name(seen, TNI_NAME_OP, f->op, room));
    add_key_string(s, "status", tn_status_name((tn_status)f->status));
    add_seconds(s, "begun_seconds_ago", seen->now, f->stamp);
    tni_str_add(s, "}");
}

static void add_thread_json(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_flight_thread *b = &t->block;
    tni_str_addf(s, "{\"tid\": %u", b->tid);
    add_key_string(s, "name", t->comm[0] ? t->comm : b->name);
    if (seen->pid) {
        char state[2] = {t->alive ? t->state : 'X', '\0'};
        add_key_string(s, "state", state);
        add_key_string(s, "wchan", t->wchan);
        if (t->syscall >= 0)
            tni_str_addf(s, ", \"syscall\": %lld", (long long)t->syscall);
        if (t->waits_for_child)
            tni_str_addf(s, ", \"waits_for_child\": %u", t->child);
    }
    if (t->cpu >= 0)
        tni_str_addf(s, ", \"cpu\": %.2f", t->cpu);
    tni_str_addf(s, ", \"moved\": %s, \"calls\": %llu, \"depth\": %u", t->moved ? "true" : "false",
                 (unsigned long long)b->calls, t->depth);
    if (b->marks.is_worker)
        tni_str_addf(s, ", \"worker\": true, \"works_for\": %u", b->marks.works_for);
    if (tni_callout_name(b->marks.callout)[0])
        add_key_string(s, "callout", tni_callout_name(b->marks.callout));
    if (tni_seen_code(t))
        add_key_string(s, "code", tni_seen_code(t)->text);
    if (b->marks.wait.kind) {
        tni_str_add(s, ", \"waits_for\": ");
        add_mark_json(s, seen, &b->marks.wait);
        int holder = tni_find_holder(seen, t);
        if (holder >= 0 || t->sleep.kind == TNI_SLEEP_INTERPRETER)
            tni_str_addf(s, ", \"held_up_by\": %u",
                         holder >= 0 ? seen->threads[holder].block.tid : t->sleep.of);
    }
    static const char *const sleeps[] = {
        "", "", "lost lock", "lock of another process", "lock", "thread", "interpreter lock"};
    if (t->sleep.of) {
        add_key_string(s, "sleeps_for", sleeps[t->sleep.kind]);
        tni_str_addf(s, ", \"sleeps_for_thread\": %u", t->sleep.of);
    }
    tni_str_add(s, ", \"holds\": [");
    uint32_t n = b->marks.n_held < TNI_MARK_HELD ? b->marks.n_held : TNI_MARK_HELD;
    for (uint32_t i = 0, told = 0; i < n; i++) {
        if (b->marks.held[i].kind == TNI_HELD_CODE)
            continue;
        tni_str_add(s, told++ ? ", " : "");
        add_mark_json(s, seen, &b->marks.held[i]);
    }
    tni_str_addf(s, "], \"holds_unnamed\": %u, \"passes\": [", b->marks.n_held - n);
    n = b->n_passes < TNI_FLIGHT_PASSES ? b->n_passes : TNI_FLIGHT_PASSES;
    for (uint32_t i = 0; i < n; i++) {
        tni_str_add(s, i ? ", " : "");
        add_pass_json(s, seen, &b->passes[i]);
    }
    tni_str_add(s, "],\n  \"frames\": [");
    for (uint32_t i = 0; i < t->n_frames; i++) {
        tni_str_add(s, i ? ",\n   " : "\n   ");
        add_frame_json(s, seen, t, i);
    }
    tni_str_add(s, "],\n  \"recent\": [");
    for (uint32_t i = 0; i < t->n_recent; i++) {
        tni_str_add(s, i ? ", " : "");
        add_ended_json(s, seen, &t->frames[t->n_frames + i]);
    }
    tni_str_add(s, "]");
    if (tni_last_inside(t)) {
        tni_str_add(s, ", \"called_last\": ");
        add_ended_json(s, seen, tni_last_inside(t));
    }
    tni_str_add(s, "}");
}

void tni_report_json(tni_str *s, const tni_seen *seen, const tni_verdict *verdict)
{
    const tni_flight_header *h = &seen->head;
    tni_str_addf(s, "{\"pid\": %u", seen->pid ? (unsigned)seen->pid : h->pid);
    add_key_string(s, "program", h->program);
    add_key_string(s, "library", h->library);
    tni_str_addf(s, ", \"live\": %s, \"recorder_on\": %s, \"damaged\": %s, \"ended\": %u",
                 seen->pid ? "true" : "false", h->on ? "true" : "false",
                 seen->damaged ? "true" : "false", h->ended);
    tni_str_addf(s, ", \"copies\": %u, \"unplaced\": %u", seen->n_copies + seen->n_unread,
                 h->n_unplaced);
    if (seen->pid)
        tni_str_addf(s, ", \"others\": %u, \"forked\": %s", seen->n_others,
                     h->forked ? "true" : "false");
    if (!seen->pid)
        tni_str_addf(s, ", \"in_use\": %s, \"seconds_are_least\": %s",
                     seen->in_use ? "true" : "false", seen->now_is_least ? "true" : "false");
    tni_str_add(s, ",\n \"verdict\": {\"kind\": ");
    add_string(s, tni_verdict_name(verdict->kind));
    add_key_string(s, "text", tni_str_get(&verdict->text));
    add_key_string(s, "next", tni_str_get(&verdict->next));
    tni_str_addf(s, ", \"thread\": %u},\n \"threads\": [", verdict->tid);
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        tni_str_add(s, i ? ",\n " : "\n ");
        add_thread_json(s, seen, &seen->threads[i]);
    }
    tni_str_add(s, "]}\n");
}
