/* SPDX-License-Identifier: MIT */
/* observe/report.c: a report for people: the verdict, then each thread with its marks, passes and
 * frames. */
#include "observe/report.h"

#include <time.h>
#include "tenon/dispatch.h"

static const char *state_name(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
        return "sleeping";
    case 'D':
        return "in the kernel (disk or device)";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
        return "ended";
    default:
        return "gone";
    }
}

/* It was killed, or its machine stopped: durations are what is certain, and it may have stood there
 * for much longer. */
static void add_last_sign(tni_str *s, const tni_seen *seen)
{
    char text[64] = "";
    uint64_t ns = seen->head.began_real + (seen->now - seen->head.began);
    time_t seconds = (time_t)(ns / 1000000000u);
    struct tm tm;
    if (localtime_r(&seconds, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %z", &tm);
    tni_str_addf(s, "\nit did not say that it ended (killed?); its last sign of life: %s", text);
}

static void add_head(tni_str *s, const tni_seen *seen)
{
    const tni_flight_header *h = &seen->head;
    if (seen->pid)
        tni_str_addf(s, "process %d (%s)", seen->pid,
                     seen->process_name[0] ? seen->process_name : h->program);
    else
        tni_str_addf(s, "record of %s, process %u", h->program, h->pid);
    tni_str_addf(s, ", Tenon %s, %u thread%s", h->library, seen->n_threads,
                 seen->n_threads == 1 ? "" : "s");
    tni_add_others(s, seen, " and ");
    tni_add_for(s, seen, ", recorded ", h->began);
    if (seen->now_is_least)
        add_last_sign(s, seen);
    if (seen->in_use)
        tni_str_addf(s, "\nits program still writes it: tenon doctor %u tells more", h->pid);
    if (seen->n_copies > 1 || seen->n_unread)
        tni_str_addf(s, "\n%u copies of Tenon are in this process: threads are told for each%s",
                     seen->n_copies + seen->n_unread,
                     seen->n_unread ? " that this command can read" : "");
    tni_str_add(s, h->on ? "\n" : "\nthe recorder is off: no times, no shapes\n");
    if (h->n_unplaced)
        tni_str_addf(s, "%u more threads found no room in the record: they are not told of\n",
                     h->n_unplaced);
    if (seen->damaged) {
        tni_add_missing(s, seen);
        tni_str_add(s, "; this is what could be read\n");
    }
}

static void add_thread_line(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_flight_thread *b = &t->block;
    const char *name = t->comm[0] ? t->comm : b->name;
    tni_str_addf(s, "\nthread %u%s%s%s", b->tid, name[0] ? " \"" : "", name, name[0] ? "\"" : "");
    if (seen->pid)
        tni_str_addf(s, ", %s", state_name(t->state));
    if (t->wchan[0] && t->state != 'R')
        tni_str_addf(s, " in %s", t->wchan);
    if (t->cpu >= 0)
        tni_str_addf(s, ", %.0f %% of a processor", 100 * (t->cpu > 1 ? 1 : t->cpu));
    if (b->marks.is_worker)
        tni_str_add(s, b->marks.works_for ? "" : ", pool worker, idle");
    if (b->marks.is_worker && b->marks.works_for)
        tni_str_addf(s, ", pool worker, works for thread %u", b->marks.works_for);
    if (t->torn)
        tni_str_add(s, ", moving while it was read");
    tni_str_add(s, "\n");
}

static void add_marks(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_thread_marks *m = &t->block.marks;
    if (m->wait.kind && m->wait.kind != TNI_WAIT_IDLE) {
        tni_str_add(s, "  waits for ");
        tni_add_mark(s, &m->wait);
        tni_add_for(s, seen, " ", m->wait.since);
        int holder = tni_find_holder(seen, t);
        if (holder >= 0)
            tni_str_addf(s, ", held up by thread %u", seen->threads[holder].block.tid);
        else if (t->sleep.kind == TNI_SLEEP_INTERPRETER)
            tni_str_addf(s, ", held up by thread %u", t->sleep.of);
        tni_str_add(s, "\n");
    } else if (t->sleep.of || t->sleep.is_semaphore) {
        tni_str_add(s, "  waits for ");
        tni_add_sleep(s, seen, t);
        tni_str_add(s, "\n");
    }
    uint32_t n = m->n_held < TNI_MARK_HELD ? m->n_held : TNI_MARK_HELD;
    for (uint32_t i = 0; i < n; i++) {
        if (m->held[i].kind == TNI_HELD_CODE) {
            tni_str_addf(s, "  in %s", m->held[i].text);
        } else {
            tni_str_add(s, "  holds ");
            tni_add_mark(s, &m->held[i]);
        }
        tni_add_for(s, seen, " ", m->held[i].since);
        tni_str_add(s, "\n");
    }
    const tni_seen_child *child = tni_find_child(seen, t);
    if (child) {
        tni_str_addf(s, "  waits for the end of %s %u (%s)",
                     child->pid == t->child || seen->n_children == 1 ? "its child"
                                                                     : "a child, perhaps",
                     child->pid, child->name);
        tni_str_add(s, child->has_record ? ", which uses Tenon, too\n" : "\n");
    }
    if (m->n_held > n)
        tni_str_addf(s, "  holds %u more, which are not named\n", m->n_held - n);
    if (tni_callout_name(m->callout)[0])
        tni_str_addf(s, "  in %s\n", tni_callout_name(m->callout));
}

/* Which nodes have not run and have an edge to node @p i. */
static void add_waits_of_node(tni_str *s, const tni_seen *seen, const tni_flight_pass *p,
                              uint32_t n, uint32_t i)
{
    char room[24];
    int found = 0;
    for (uint32_t k = 0; k < n; k++) {
        const tni_flight_node *node = &p->nodes[k];
        for (uint32_t e = 0; !node->done && e < node->n_edges; e++) {
            if (node->edges[e] != i)
                continue;
            tni_str_addf(s, "%s%s", found++ ? ", " : " waits for ",
                         tni_seen_name(seen, TNI_NAME_NODE, node->name, room));
            break;
        }
    }
    if (!found)
        tni_str_add(s, " is ready");
}

static void add_passes(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    char room[24];
    uint32_t passes = t->block.n_passes < TNI_FLIGHT_PASSES ? t->block.n_passes : TNI_FLIGHT_PASSES;
    for (uint32_t i = 0; i < passes; i++) {
        const tni_flight_pass *p = &t->block.passes[i];
        if (!p->id)
            continue;
        tni_str_addf(s, "  backward pass %u: %u of %u nodes have run, %u ready", p->id, p->n_done,
                     p->n_nodes, p->n_ready);
        tni_add_for(s, seen, ", ", p->began);
        if (p->running_name)
            tni_str_addf(s, "; in %s", tni_seen_name(seen, TNI_NAME_NODE, p->running_name, room));
        tni_str_add(s, "\n");
        uint32_t n = p->n_nodes < TNI_FLIGHT_NODES ? p->n_nodes : TNI_FLIGHT_NODES, told = 0;
        for (uint32_t k = 0; k < n && told < 8; k++) {
            if (p->nodes[k].done || (p->running_name && k == p->running))
                continue;
            told++;
            tni_str_addf(s, "    %s", tni_seen_name(seen, TNI_NAME_NODE, p->nodes[k].name, room));
            add_waits_of_node(s, seen, p, n, k);
            tni_str_add(s, "\n");
        }
    }
}

static const char *const kinds[] = {"call", "redispatch", "boxed call", "boxed redispatch"};

static void add_frame(tni_str *s, const tni_seen *seen, const tni_seen_thread *t, uint32_t i,
                      uint32_t number)
{
    const tni_flight_frame *f = &t->frames[i];
    char room[24];
    bool is_call = tni_is_call(f);
    tni_str_addf(s, "  #%u %s", number, tni_seen_name(seen, TNI_NAME_OP, f->op, room));
    if (is_call && f->stage >= TNI_STAGE_INVOKE) {
        tni_str_add(s, "(");
        for (int k = 0, some = 0; k < TNI_FLIGHT_TENSORS; k++) {
            if (!(f->tensors & 1u << k))
                continue;
            tni_str_add(s, some++ ? ", " : "");
            tni_add_tensor(s, seen, &f->tensor[k]);
        }
        tni_str_add(s, ")");
    }
    tni_str_addf(s, "  %s", f->kind < 4 ? kinds[f->kind] : "?");
    if (f->stage >= TNI_STAGE_CHECK) {
        tni_str_add(s, ", key ");
        tni_add_key(s, seen, f->slot);
    }
    tni_str_addf(s, ", %s", tni_frame_stage(f));
    uint64_t since = tni_frame_since(t, i);
    if (is_call) {
        tni_add_for(s, seen, ", ", since);
    } else if (since && seen->now && !seen->now_is_least) { /* that of the call around it */
        tni_str_add(s, ", for at most ");
        tni_add_age(s, seen->now, since);
    }
    tni_str_add(s, "\n     ");
    if (f->stage >= TNI_STAGE_LOOKUP)
        tni_add_keys(s, seen, f->keys);
    if (f->stage >= TNI_STAGE_INVOKE) {
        tni_str_add(s, "; ");
        tni_add_kernel(s, seen, f);
    }
    tni_str_add(s, "\n");
}

/* What the innermost of them called last. */
static void add_last(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    const tni_flight_frame *f = tni_last_inside(t);
    char room[24];
    if (!f)
        return;
    tni_str_addf(s, "  called last from there: %s", tni_seen_name(seen, TNI_NAME_OP, f->op, room));
    if (f->status)
        tni_str_addf(s, " (%s)", tn_status_name((tn_status)f->status));
    if (seen->now) {
        tni_str_add(s, seen->now_is_least ? ", begun at least " : ", begun ");
        tni_add_age(s, seen->now, f->stamp);
        tni_str_add(s, " ago");
    }
    tni_str_add(s, "\n");
}

static void add_frames(tni_str *s, const tni_seen *seen, const tni_seen_thread *t)
{
    uint32_t skipped = t->depth - t->n_frames;
    for (uint32_t i = 0; i < t->n_frames; i++) {
        if (t->n_frames > 40 && i == 8) { /* a person needs the ends */
            tni_str_addf(s, "  ... %u frames ...\n", t->depth - 32);
            i = t->n_frames - 24;
        }
        add_frame(s, seen, t, i, i >= TNI_SEEN_OUTER ? i + skipped : i);
    }
    add_last(s, seen, t);
    if (t->cut)
        tni_str_addf(s, "  %s missing: the record is cut\n",
                     t->depth ? "what it calls there is" : "its calls are");
    else if (!t->depth && t->block.limit)
        tni_str_addf(s, "  in no operator, after %llu outermost calls\n",
                     (unsigned long long)t->block.calls);
    if (t->n_recent == 0)
        return;
    char room[24];
    tni_str_add(s, "  recent:");
    for (uint32_t i = 0; i < t->n_recent; i++) {
        const tni_flight_frame *f = &t->frames[t->n_frames + i];
        tni_str_addf(s, "%s %s", i ? "," : "", tni_seen_name(seen, TNI_NAME_OP, f->op, room));
        if (f->status)
            tni_str_addf(s, " (%s)", tn_status_name((tn_status)f->status));
        if (f->stamp && seen->now && i == 0) {
            tni_str_add(s, seen->now_is_least ? " begun at least " : " begun ");
            tni_add_age(s, seen->now, f->stamp);
            tni_str_add(s, " ago");
        }
    }
    tni_str_add(s, "\n");
}

void tni_report_text(tni_str *s, const tni_seen *seen, const tni_verdict *verdict)
{
    add_head(s, seen);
    tni_str_addf(s, "verdict: %s\n", tni_str_get(&verdict->text));
    tni_str_addf(s, "next:    %s\n", tni_str_get(&verdict->next));
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        const tni_seen_thread *t = &seen->threads[i];
        add_thread_line(s, seen, t);
        add_marks(s, seen, t);
        add_passes(s, seen, t);
        add_frames(s, seen, t);
    }
}
