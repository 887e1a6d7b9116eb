/* SPDX-License-Identifier: MIT */
/* observe/sleepers.c: whom the threads of a process sleep for, also those that never called Tenon:
 * by what lies where a thread sleeps in a futex.
 *
 * Note [What lies at a futex]
 * The system says at which address a thread sleeps, and lets its user read what lies there. Some
 * things are known by their looks, and only by all of them; of anything else nothing is said.
 *   A mutex of glibc: the lock word, a count, the number of the thread that has it, how many use
 *   it, its kind. Someone waits (2, or the owner's number with the waiters' bit for robust and
 *   priority-inheriting ones), it is used at least once, the kind is one that there is.
 *   The number of a thread inside glibc's description of it, at which pthread_join sleeps: the
 *   description has its own address in two places before that.
 *   A semaphore of glibc that is not shared: nothing to take, and somebody waits.
 *   A Python interpreter's lock: see Note [Python's lock].
 * The number of the owner is one that the thread gave itself: in a container not ours. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "observe/proc.h"
#include "observe/watchdog.h"

typedef struct mutex_words {
    uint32_t lock, count, owner, n_users, kind;
} mutex_words;

/* The process that is asked about. */
typedef struct process {
    int pid;
    bool other_numbers; /* its threads call themselves otherwise than we do */
    int patience;       /* how often to look again at one that runs */
} process;

static bool is_there(const process *p, uint32_t tid)
{
    char path[96];
    if (p->other_numbers)
        return tni_proc_our_number(p->pid, tid) != 0;
    snprintf(path, sizeof path, "/proc/%d/task/%u", p->pid, tid);
    return access(path, F_OK) == 0;
}

bool tni_proc_memory(int pid, uint64_t at, void *to, size_t n)
{
    struct iovec here = {to, n}, there = {NULL, n};
    memcpy(&there.iov_base, &at, sizeof there.iov_base);
    return process_vm_readv(pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

/* A thread of another process, which may share a lock with this one. */
static bool is_elsewhere(const process *p, uint32_t tid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%u", tid); /* threads have one, too */
    return !p->other_numbers && access(path, F_OK) == 0;
}

/* See Note [What lies at a futex]. */
static bool is_mutex(const mutex_words *m, uint32_t wanted)
{
    const uint32_t robust = 16, inherits = 32, most_users = 1u << 20, most_tids = 1u << 22;
    uint32_t kind = m->kind & 127;
    if (!m->owner || m->owner >= most_tids || !m->n_users || m->n_users > most_users ||
        (kind & 15) > 3 || kind > 127 || m->kind >> 10)
        return false;
    if (kind & (robust | inherits))
        return (m->lock & FUTEX_TID_MASK) == m->owner;
    return m->lock == 2 && wanted == 2 && m->count < most_users;
}

/* Whether the word at @p at is the number of a thread, in what glibc keeps of that. */
static bool is_in_thread(int pid, uint64_t at, uint32_t tid)
{
    enum { BEFORE = 1024, SELF = 2 };
    uint64_t words[BEFORE / 8];
    uint32_t now;
    if (!tni_proc_memory(pid, at, &now, sizeof now) || now != tid || at < BEFORE ||
        !tni_proc_memory(pid, (at & ~(uint64_t)7) - BEFORE, words, sizeof words))
        return false;
    for (uint32_t i = 0; i + SELF < BEFORE / 8; i++) {
        uint64_t address = (at & ~(uint64_t)7) - BEFORE + 8 * (uint64_t)i;
        if (words[i] == address && words[i + SELF] == address)
            return true;
    }
    return false;
}

static bool is_semaphore(int pid, uint64_t at, uint32_t wanted)
{
    const uint32_t most_users = 1u << 20;
    uint32_t words[3]; /* how many may pass, how many wait, whether it is shared */
    return wanted == 0 && at % 8 == 0 && tni_proc_memory(pid, at, words, sizeof words) &&
           words[0] == 0 && words[1] > 0 && words[1] < most_users && words[2] == 0;
}

static void look_at_futex(const process *p, const char *call, tni_sleep *out)
{
    long number;
    unsigned long at, op, wanted, limit;
    if (sscanf(call, "%ld 0x%lx 0x%lx 0x%lx 0x%lx", &number, &at, &op, &wanted, &limit) != 5 ||
        number != SYS_futex)
        return;
    unsigned long command = op & (unsigned long)FUTEX_CMD_MASK;
    bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET,
         inherits = command == FUTEX_LOCK_PI || command == 13, /* FUTEX_LOCK_PI2 */
        is_private = op & FUTEX_PRIVATE_FLAG;
    if (!waits && !inherits)
        return;
    *out = (tni_sleep){.kind = TNI_SLEEP_FUTEX, .at = at, .for_good = is_private && !limit};
    if (at % 4)
        return;
    mutex_words m;
    uint32_t tid = (uint32_t)wanted;
    if (waits && !is_private && is_there(p, tid) && is_in_thread(p->pid, at, tid)) {
        out->kind = TNI_SLEEP_JOIN;
        out->of = tid;
        out->for_good = !limit;
    } else if (tni_proc_memory(p->pid, at, &m, sizeof m) && is_mutex(&m, (uint32_t)wanted)) {
        out->kind = is_there(p, m.owner)                      ? TNI_SLEEP_LOCK
                    : !is_private && is_elsewhere(p, m.owner) ? TNI_SLEEP_ELSEWHERE
                                                              : TNI_SLEEP_LOST;
        out->of = m.owner;
    } else if (waits && is_private && limit &&
               tni_proc_interpreter(p->pid, at, &out->of, &out->turn)) {
        out->kind = TNI_SLEEP_INTERPRETER;
        out->at = 0; /* one lock, two words at which a thread may sleep */
    } else {
        out->of = 0;
        out->is_semaphore = waits && is_semaphore(p->pid, at, (uint32_t)wanted);
    }
}

/* Of the thread that we call @p ours. */
static void look_at_sleep(process *p, uint32_t ours, const char *wchan, tni_sleep *out)
{
    char path[96], text[256];
    unsigned long long runs = 0;
    /* First: who sleeps then and has not run when this is read again has slept all the time. */
    snprintf(path, sizeof path, "/proc/%d/task/%u/schedstat", p->pid, ours);
    if (tni_proc_read(path, text, sizeof text))
        (void)!sscanf(text, "%*u %*u %llu", &runs);
    snprintf(path, sizeof path, "/proc/%d/task/%u/syscall", p->pid, ours);
    memset(out, 0, sizeof *out);
    bool may = tni_proc_read(path, text, sizeof text) && text[0];
    /* Who waits for an interpreter looks for it every few milliseconds, and may be about to. */
    for (; may && text[0] == 'r' && p->patience > 0; p->patience--) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        may = tni_proc_read(path, text, sizeof text) && text[0];
    }
    if (may && isdigit((unsigned char)text[0]))
        look_at_futex(p, text, out);
    else if (!may && strstr(wchan, "futex"))
        out->kind = TNI_SLEEP_FUTEX;
    out->runs = runs;
    out->for_good = out->for_good && runs;
}

/* A thread of a program that has several copies of the library has a place in each of them. */
static bool look_at_places(process *p, uint32_t own, uint32_t ours, tni_seen *seen)
{
    const tni_seen_thread *known = NULL;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        tni_seen_thread *t = &seen->threads[i];
        if (t->block.tid != own)
            continue;
        if (known)
            t->sleep = known->sleep;
        else
            look_at_sleep(p, ours, t->wchan, &t->sleep);
        known = t;
    }
    return known != NULL;
}

/* A thread that has no place in the record. The watchdog's own is none of the program's. */
static void add_other(process *p, uint32_t own, uint32_t ours, tni_seen *seen)
{
    char path[96], text[1024];
    tni_seen_other other = {.tid = own};
    snprintf(path, sizeof path, "/proc/%d/task/%u/stat", p->pid, ours);
    const char *rest = tni_proc_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
    if (!rest || sscanf(rest + 1, " %c", &other.state) != 1)
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%u/comm", p->pid, ours);
    if (tni_proc_read(path, text, sizeof text))
        snprintf(other.comm, sizeof other.comm, "%.*s", (int)strcspn(text, "\n"), text);
    tni_plain_text(other.comm, sizeof other.comm);
    if (strcmp(other.comm, TNI_WATCHDOG_NAME) == 0)
        return;
    snprintf(path, sizeof path, "/proc/%d/task/%u/wchan", p->pid, ours);
    if (tni_proc_read(path, text, sizeof text) && strcmp(text, "0") != 0)
        snprintf(other.wchan, sizeof other.wchan, "%.31s", text);
    look_at_sleep(p, ours, other.wchan, &other.sleep);
    seen->others_asleep = seen->others_asleep && other.sleep.for_good;
    seen->others_runs += other.sleep.runs;
    if (seen->n_others < TNI_SEEN_OTHERS)
        seen->others[seen->n_others] = other;
    seen->n_others++;
}

void tni_proc_sleepers(int pid, tni_seen *seen)
{
    process p = {pid, seen->head.pid != (uint32_t)pid, seen->is_python ? 10 : 0};
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    seen->n_others = 0;
    seen->others_runs = 0;
    seen->others_asleep = seen->knows_sleepers = true;
    while (dir && (entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        uint32_t ours = (uint32_t)strtoul(entry->d_name, NULL, 10), own = ours;
        snprintf(path, sizeof path, "/proc/%d/task/%u/status", pid, ours);
        if (p.other_numbers)
            own = tni_proc_own_number(path);
        if (own && !look_at_places(&p, own, ours, seen))
            add_other(&p, own, ours, seen);
    }
    if (dir)
        closedir(dir);
}

static bool is_same_sleep(const tni_sleep *a, const tni_sleep *b)
{
    return a->kind == b->kind && a->of == b->of && a->at == b->at && a->turn == b->turn &&
           a->for_good == b->for_good;
}

static void keep_old_sleep(const tni_sleep *before, tni_sleep *now)
{
    if (is_same_sleep(before, now))
        return;
    now->kind = now->kind ? TNI_SLEEP_FUTEX : TNI_SLEEP_OTHER;
    now->for_good = now->is_semaphore = false;
}

static const tni_sleep *find_sleep(const tni_seen *seen, uint32_t tid)
{
    static const tni_sleep none = {.kind = TNI_SLEEP_OTHER};
    uint32_t n = seen->n_others < TNI_SEEN_OTHERS ? seen->n_others : TNI_SEEN_OTHERS;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        if (seen->threads[i].block.tid == tid)
            return &seen->threads[i].sleep;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (seen->others[i].tid == tid)
            return &seen->others[i].sleep;
    }
    return &none;
}

void tni_compare_sleepers(const tni_seen *before, tni_seen *now)
{
    uint32_t n = now->n_others < TNI_SEEN_OTHERS ? now->n_others : TNI_SEEN_OTHERS, n_threads = 0;
    bool all = now->pid && before->others_asleep && now->others_asleep &&
               before->n_others == now->n_others && before->others_runs == now->others_runs;
    for (uint32_t i = 0; i < now->n_threads; i++) {
        tni_seen_thread *t = &now->threads[i];
        const tni_sleep *old = find_sleep(before, t->block.tid);
        keep_old_sleep(old, &t->sleep);
        n_threads += t->alive;
        all = all && (!t->alive || (t->sleep.for_good && t->sleep.runs == old->runs));
    }
    for (uint32_t i = 0; i < n; i++)
        keep_old_sleep(find_sleep(before, now->others[i].tid), &now->others[i].sleep);
    now->nobody_wakes = all && n_threads > 0;
}
