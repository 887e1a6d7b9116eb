/* SPDX-License-Identifier: MIT */
/* observe/flight.c: the record's memory: mapping it, growing it, giving threads their blocks,
 * asking one of them to stop, and what fork() does to it. See Note [The record] in flight.h. */
#define _GNU_SOURCE /* memfd_create, gettid, program_invocation_short_name */
#include "observe/flight.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "base/alloc.h"
#include "base/env.h"
#include "core/device.h"
#include "core/keys.h"
#include "observe/layout.h"
#include "observe/reader.h"
#include "observe/record_file.h"
#include "observe/watchdog.h"
#include "tenon/dispatch.h"

static struct {
    pthread_mutex_t lock; /* of what follows, the directory, the names; nothing is called inside */
    char *base;           /* NULL: there is no record */
    int fd;
    bool in_file; /* a file that TENON_RECORD named */
    bool tried;
    bool ready;          /* it is mapped, and its header is written */
    bool is_child;       /* the file that TENON_RECORD names is the parent's */
    uint32_t forked_by;  /* the thread that forks, … */
    uint32_t n_forked;   /* … and how many threads there are then */
    _Atomic int process; /* whose record this is; 0: nobody's yet; -1: being put right */
    uint64_t used;       /* bytes handed out */
    dev_t device; /* of the file, with its number: a program that closes what it did not open may
                     have another file under our number by now */
    ino_t inode;
    bool key_made;
    pthread_key_t key;
} record = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* The block of this thread. */
static __attribute__((tls_model("initial-exec"))) _Thread_local tni_flight_thread *mine;

#define HEAD ((tni_flight_header *)(void *)record.base)

static uint64_t round_up(uint64_t n)
{
    return (n + TNI_FLIGHT_PAGE - 1) & ~(uint64_t)(TNI_FLIGHT_PAGE - 1);
}

/* ---- memory ---- */

static bool still_ours(void)
{
    struct stat st;
    return fstat(record.fd, &st) == 0 && st.st_dev == record.device && st.st_ino == record.inode;
}

static void remember_file(void)
{
    struct stat st;
    memset(&st, 0, sizeof st);
    (void)!fstat(record.fd, &st);
    record.device = st.st_dev;
    record.inode = st.st_ino;
}

/* Let file @p fd reach @p nbytes; 0 or an errno. A file on a disk gets its blocks now: were the
 * disk full later, a store would end the program. */
static int reserve(int fd, uint64_t nbytes)
{
    if (!tni_record_file_may_have(nbytes))
        return EFBIG;
    return record.in_file                      ? posix_fallocate(fd, 0, (off_t)nbytes)
           : ftruncate(fd, (off_t)nbytes) == 0 ? 0
                                               : errno;
}

static bool grow(uint64_t nbytes)
{
    if (nbytes > TNI_FLIGHT_MOST || !still_ours() || reserve(record.fd, nbytes) != 0)
        return false;
    __atomic_store_n(&HEAD->nbytes, nbytes, __ATOMIC_RELEASE); /* the watchdog may be saving */
    return true;
}

/* Fresh zeroed bytes of the record; 0 when there are none. Locked. */
static uint64_t take(uint64_t nbytes)
{
    nbytes = round_up(nbytes);
    if (!record.base || nbytes > TNI_FLIGHT_MOST - record.used || !grow(record.used + nbytes))
        return 0;
    uint64_t at = record.used;
    record.used += nbytes;
    return at;
}

static int open_file(void)
{
    int fd = tni_record_file_open(record.is_child);
    record.in_file = fd >= 0;
    return fd >= 0 ? fd : memfd_create(TNI_FLIGHT_NAME, MFD_CLOEXEC);
}

void tni_flight_publish(void)
{
    if (record.in_file && tni_record_file_unnamed() && still_ours())
        tni_record_file_publish(record.fd);
}

static uint64_t real_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void write_header(tni_flight_header *h)
{
    h->version = TNI_FLIGHT_VERSION;
    h->header_nbytes = sizeof *h;
    h->pid = (uint32_t)getpid();
    h->on = 1;
    h->began = tni_coarse_ns();
    h->began_real = real_ns();
    h->frame_nbytes = sizeof(tni_flight_frame);
    h->thread_nbytes = sizeof(tni_flight_thread);
    h->pass_nbytes = sizeof(tni_flight_pass);
    h->ring = TNI_FLIGHT_RING;
    h->threads_at = TNI_AT_THREADS;
    h->names_at = TNI_AT_NAMES;
    h->text_at = TNI_AT_TEXT;
    h->text_nbytes = 1; /* offset 0: no text */
    snprintf(h->program, sizeof h->program, "%s", program_invocation_short_name);
    snprintf(h->library, sizeof h->library, "%s", TN_VERSION_STRING);
    for (int i = 0; i < TNI_NUM_BACKENDS; i++) {
        if (strcmp(tni_device_type_name(i), tni_device_builtin_name(i)) != 0)
            snprintf(h->backends[i], sizeof h->backends[i], "%s", tni_device_type_name(i));
    }
    atomic_thread_fence(memory_order_release);
    memcpy(h->magic, TNI_FLIGHT_MAGIC, sizeof h->magic);
}

/* In memory when there is no room for the file. */
static int open_with_room(uint64_t nbytes)
{
    int fd = open_file();
    int why = record.in_file ? reserve(fd, nbytes) : 0;
    if (why) {
        tni_record_file_drop(why);
        close(fd);
        record.in_file = false;
        fd = memfd_create(TNI_FLIGHT_NAME, MFD_CLOEXEC);
    }
    if (fd >= 0 && !record.in_file && reserve(fd, nbytes) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool map_record(void)
{
    record.fd = open_with_room(TNI_AT_BLOCKS);
    if (record.fd < 0)
        return false;
    char *base = mmap(NULL, TNI_FLIGHT_MOST, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                      record.fd, 0);
    if (base == MAP_FAILED) {
        if (record.in_file)
            tni_record_file_drop(errno);
        close(record.fd);
        record.fd = -1;
        return false;
    }
    record.base = base;
    record.used = TNI_AT_BLOCKS;
    remember_file();
    HEAD->nbytes = TNI_AT_BLOCKS;
    write_header(HEAD);
    tni_flight_publish();
    record.ready = true;
    return true;
}

static void check_process(void);
static void thread_ends(void *thread);
static tni_thread_marks *find_place(void);
static bool is_still_there(uint64_t request);

/* At exit, also by a library that is never unloaded. */
__attribute__((destructor)) static void program_ends(void)
{
    tni_watchdog_finish();
    if (record.base && HEAD->pid == (uint32_t)getpid())
        tni_flight_ended(1);
}

/* Who asked for a file must not find out when it is wanted. */
static void say_what_is_missing(void)
{
    const char *why, *path = tni_record_file_missing(&why);
    if (path)
        fprintf(stderr, "[tenon recorder] no record in %.200s: %s\n", path, why);
}

void tni_flight_start(void)
{
    check_process();
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    bool first = !record.tried;
    if (first) {
        record.tried = true;
        tni_clock_find();
        atomic_store(&record.process, (int)getpid());
        const char *wanted = tni_env("TENON_RECORDER");
        record.key_made = record.key_made || pthread_key_create(&record.key, thread_ends) == 0;
        if (record.key_made && !(wanted && !tni_env_flag("TENON_RECORDER", true)) && map_record())
            tni_set_marks_fn(find_place, is_still_there);
    }
    tni_mutex_unlock(&record.lock);
    if (first)
        say_what_is_missing();
}

int tni_flight_fd(void)
{
    return record.ready ? record.fd : -1;
}

tni_flight_header *tni_flight_head(void)
{
    return record.ready ? HEAD : NULL;
}

void tni_flight_set_on(bool on)
{
    if (record.base)
        __atomic_store_n(&HEAD->on, on ? 1u : 0u, __ATOMIC_RELAXED);
}

void tni_flight_ended(uint32_t how)
{
    if (!record.base)
        return;
    HEAD->ended_at = tni_coarse_ns();
    HEAD->ended = how;
}

void tni_flight_alive(void)
{
    if (record.base)
        __atomic_store_n(&HEAD->alive_at, tni_coarse_ns(), __ATOMIC_RELAXED);
}

void tni_flight_backend(int backend, const char *name)
{
    if (record.base && backend >= 0 && backend < 16)
        snprintf(HEAD->backends[backend], sizeof HEAD->backends[backend], "%s", name);
}

/* ---- threads ---- */

tni_flight_thread *tni_flight_self(void)
{
    return mine;
}

static bool in_record(const void *p)
{
    const char *at = p;
    return record.base && at >= record.base && at < record.base + TNI_FLIGHT_MOST;
}

static _Atomic uint64_t *directory(void)
{
    return (_Atomic uint64_t *)(void *)(record.base + TNI_AT_THREADS);
}

static void clear_block(tni_flight_thread *t)
{
    uint64_t at = t->slots_at, nbytes = t->slots_nbytes;
    memset(t, 0, sizeof *t);
    t->slots_at = at;
    t->slots_nbytes = nbytes;
}

/* A block that nobody uses, the one whose slots fit @p nbytes best. Locked. */
static tni_flight_thread *find_block(uint64_t nbytes)
{
    tni_flight_thread *best = NULL;
    for (uint32_t i = 0; i < HEAD->n_threads; i++) {
        uint64_t at = atomic_load_explicit(&directory()[i], memory_order_relaxed);
        tni_flight_thread *t = (tni_flight_thread *)(void *)(record.base + at);
        if (t->live)
            continue;
        if (!best || (t->slots_nbytes >= nbytes && best->slots_nbytes < nbytes))
            best = t;
    }
    if (best) {
        clear_block(best);
        return best;
    }
    if (HEAD->n_threads == TNI_FLIGHT_THREADS)
        return NULL;
    uint64_t at = take(sizeof(tni_flight_thread));
    if (!at)
        return NULL;
    atomic_store_explicit(&directory()[HEAD->n_threads], at, memory_order_release);
    HEAD->n_threads++;
    return (tni_flight_thread *)(void *)(record.base + at);
}

/* Room for frames in the record; NULL when there is none. Locked. */
static void *find_slots(tni_flight_thread *t, uint64_t nbytes)
{
    if (t->slots_nbytes < nbytes) {
        uint64_t at = take(nbytes);
        if (!at)
            return NULL;
        t->slots_at = at;
        t->slots_nbytes = round_up(nbytes);
    } else {
        memset(record.base + t->slots_at, 0, TNI_FLIGHT_RING * sizeof(tni_flight_frame));
    }
    return record.base + t->slots_at;
}

static void describe_thread(tni_flight_thread *t)
{
    t->tid = (uint32_t)gettid();
    t->began = tni_coarse_ns();
    if (pthread_getname_np(pthread_self(), t->name, sizeof t->name) != 0)
        t->name[0] = '\0';
}

static uint64_t slots_nbytes(uint32_t limit)
{
    return ((uint64_t)limit + TNI_FLIGHT_RING) * sizeof(tni_flight_frame);
}

/* This thread's block in the record, without frames yet; NULL when there is no room. */
static tni_flight_thread *have_block(uint64_t nbytes)
{
    if (mine)
        return mine;
    check_process();
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    tni_flight_thread *t = record.ready ? find_block(nbytes) : NULL;
    if (t && pthread_setspecific(record.key, t) != 0)
        t = NULL;
    if (t) {
        describe_thread(t);
        atomic_thread_fence(memory_order_release);
        t->live = 1;
    }
    tni_mutex_unlock(&record.lock);
    if (t) {
        mine = t;
        tni_my_marks = &t->marks;
    }
    return t;
}

static tni_thread_marks *find_place(void)
{
    tni_flight_thread *t = have_block(0);
    return t ? &t->marks : NULL;
}

static void count_unplaced(int by)
{
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    if (record.ready && (by > 0 || HEAD->n_unplaced > 0))
        HEAD->n_unplaced += (uint32_t)by;
    tni_mutex_unlock(&record.lock);
}

/* Without a record: block and frames in one piece of the heap. */
static tni_flight_thread *join_on_heap(uint32_t limit, void **slots)
{
    uint64_t at = round_up(sizeof(tni_flight_thread));
    char *block = tni_alloc(at + slots_nbytes(limit));
    if (!block)
        return NULL;
    tni_flight_thread *t = (tni_flight_thread *)(void *)block;
    memset(t, 0, sizeof *t);
    memset(block + at, 0, TNI_FLIGHT_RING * sizeof(tni_flight_frame));
    t->limit = limit;
    *slots = block + at;
    count_unplaced(1);
    return t;
}

tni_flight_thread *tni_flight_join(uint32_t limit, void **slots)
{
    uint64_t nbytes = slots_nbytes(limit);
    tni_flight_thread *t = have_block(nbytes);
    if (!t)
        return join_on_heap(limit, slots);
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    void *at = find_slots(t, nbytes);
    if (at) {
        t->calls = 0;
        atomic_thread_fence(memory_order_release);
        t->limit = limit;
    }
    tni_mutex_unlock(&record.lock);
    if (!at)
        return join_on_heap(limit, slots);
    *slots = at;
    return t;
}

static void free_block(tni_flight_thread *t)
{
    if (mine == t) {
        mine = NULL;
        tni_my_marks = NULL;
    }
    if (atomic_exchange(&t->marks.interrupt, 0))
        atomic_fetch_sub(&tni_interrupts, 1);
    if (record.ready && in_record(t))
        HEAD->ended_calls += t->limit ? t->calls : 0;
    t->limit = 0;
    atomic_thread_fence(memory_order_release);
    t->live = 0;
}

void tni_flight_leave(tni_flight_thread *t)
{
    if (!in_record(t)) {
        tni_free(t);
        count_unplaced(-1);
        return;
    }
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    free_block(t);
    tni_mutex_unlock(&record.lock);
    pthread_setspecific(record.key, NULL);
}

/* A thread that never dispatched; one that did has left when the dispatcher let go of it, or will.
 */
static void thread_ends(void *block)
{
    tni_flight_thread *t = block;
    if (t->limit)
        return;
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    free_block(t);
    tni_mutex_unlock(&record.lock);
}

/* ---- stopping a thread where it is ---- */

static uint32_t mix(uint32_t hash, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (uint32_t)(value >> 8 * i & 0xff)) * 0x01000193u;
    return hash;
}

/* The low half is the depth, so that the thread can find the frame again. */
uint64_t tni_flight_request(const tni_flight_thread *t, const tni_flight_frame *frames, uint32_t n,
                            uint32_t depth)
{
    enum { ENOUGH = 8 };
    const tni_mark *wait = &t->marks.wait;
    uint32_t passes = t->n_passes < TNI_FLIGHT_PASSES ? t->n_passes : TNI_FLIGHT_PASSES;
    uint32_t hash = 0x811c9dc5u;
    if (depth) {
        hash = mix(hash, t->calls);
        for (uint32_t i = 0; i < n && i < ENOUGH; i++) {
            const tni_flight_frame *f = &frames[n - 1 - i];
            bool is_call = f->kind == TN_EVENT_CALL || f->kind == TN_EVENT_CALL_BOXED;
            hash = mix(mix(mix(hash, f->op), f->slot), is_call ? f->stamp : 0);
        }
    } else if (passes) {
        hash = mix(hash, t->passes[passes - 1].id);
    } else {
        hash = mix(mix(mix(hash, wait->kind), wait->what), wait->since);
        for (uint32_t i = 0; i < t->marks.n_held && i < TNI_MARK_HELD; i++) {
            const tni_mark *m = &t->marks.held[i];
            if (m->kind == TNI_HELD_CODE)
                hash = mix(mix(hash, m->what), m->since);
        }
    }
    return (uint64_t)(hash | 1) << 32 | depth;
}

/* On the thread that was asked. */
static bool is_still_there(uint64_t request)
{
    uint32_t depth = (uint32_t)request;
    if (!in_record(mine))
        return true;
    if (!depth)
        return tni_flight_request(mine, NULL, 0, 0) == request;
    const tni_flight_frame *first =
        (const tni_flight_frame *)(void *)(record.base + mine->slots_at) +
        mine->calls % TNI_FLIGHT_RING;
    return depth <= mine->limit && first[depth - 1].stage != TNI_STAGE_ENDED &&
           tni_flight_request(mine, first, depth, depth) == request;
}

/* Locked. NULL: it is not known. */
static tni_flight_thread *find_thread(uint32_t tid)
{
    for (uint32_t i = 0; record.base && i < HEAD->n_threads; i++) {
        uint64_t at = atomic_load_explicit(&directory()[i], memory_order_relaxed);
        tni_flight_thread *t = (tni_flight_thread *)(void *)(record.base + at);
        if (t->live && t->tid == tid)
            return t;
    }
    return NULL;
}

bool tni_flight_interrupt(uint32_t tid, uint64_t request)
{
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    tni_flight_thread *t = find_thread(tid);
    if (t && atomic_exchange(&t->marks.interrupt, request) == 0)
        atomic_fetch_add(&tni_interrupts, 1);
    tni_mutex_unlock(&record.lock);
    return t != NULL;
}

bool tni_flight_is_asked(uint32_t tid)
{
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    tni_flight_thread *t = find_thread(tid);
    bool is_asked = t && atomic_load(&t->marks.interrupt) != 0;
    tni_mutex_unlock(&record.lock);
    return is_asked;
}

/* ---- saving ---- */

tn_status tni_flight_save(const char *path)
{
    TN_CHECK(path && path[0], TN_INVALID, "tn_recorder_save: 'path' must not be empty");
    TN_CHECK(record.base && record.fd >= 0 && still_ours(), TN_UNSUPPORTED,
             "there is no record to save: TENON_RECORDER=0, or the system gave no memory for one");
    return tni_record_file_save(record.fd, __atomic_load_n(&HEAD->nbytes, __ATOMIC_ACQUIRE), path);
}

/* ---- fork ---- */

/* Copy what the child keeps: the header, the names, and this thread's block. The parent goes on and
 * writes meanwhile: what lies beyond record.used, which is as it was at the fork, came later. */
static void copy_kept(char *to)
{
    tni_flight_header *h = (tni_flight_header *)(void *)to;
    uint32_t n_names = HEAD->n_names, n_threads = HEAD->n_threads, text = HEAD->text_nbytes, n = 0;
    memcpy(to, record.base, sizeof *h);
    memcpy(to + TNI_AT_NAMES, record.base + TNI_AT_NAMES, n_names * sizeof(tni_flight_name));
    memcpy(to + TNI_AT_TEXT, record.base + TNI_AT_TEXT, text);
    _Atomic uint64_t *places = (_Atomic uint64_t *)(void *)(to + TNI_AT_THREADS);
    for (uint32_t i = 0; i < n_threads; i++) {
        uint64_t at = atomic_load_explicit(&directory()[i], memory_order_relaxed);
        if (at + sizeof(tni_flight_thread) > record.used)
            continue;
        const tni_flight_thread *t = (const tni_flight_thread *)(void *)(record.base + at);
        tni_flight_thread *copy = (tni_flight_thread *)(void *)(to + at);
        atomic_store_explicit(&places[n++], at, memory_order_relaxed);
        if (t != mine)
            continue; /* free, and without frames: where they are may be changing */
        memcpy(copy, t, sizeof *t);
        if (t->limit)
            memcpy(to + t->slots_at, record.base + t->slots_at, t->slots_nbytes);
        copy->tid = (uint32_t)gettid();
    }
    h->n_names = n_names;
    h->n_threads = n;
    h->n_unplaced = !mine && h->n_unplaced ? 1 : 0;
    h->text_nbytes = text;
}

/* A folder has two names and one for each folder in it: here, for each thread. 0: not known. */
static uint32_t count_threads(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) == 0 && st.st_nlink > 2 ? (uint32_t)st.st_nlink - 2 : 0;
}

void tni_flight_before_fork(void)
{
    tni_flight_names_lock();
    tni_mutex_lock_known(&record.lock, "the recorder's threads");
    record.forked_by = (uint32_t)gettid();
    record.n_forked = count_threads();
}

void tni_flight_after_fork(void)
{
    tni_mutex_unlock(&record.lock);
    tni_flight_names_unlock();
}

/* Nothing here may allocate or wait: the child has one thread, and it may have come from many. */
static void part_from_parent(void)
{
    int old = still_ours() ? record.fd : -1;
    int fd = open_with_room(record.used); /* the old one is the parent's */
    char *to = MAP_FAILED;
    if (fd >= 0)
        to = mmap(NULL, record.used, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (to == MAP_FAILED) { /* then for itself alone, at least not in the parent's memory */
        if (fd >= 0)
            close(fd);
        fd = -1;
        record.in_file = false;
        to = mmap(NULL, TNI_FLIGHT_MOST, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (to == MAP_FAILED)
            return;
    }
    copy_kept(to);
    tni_flight_header *h = (tni_flight_header *)(void *)to;
    h->pid = (uint32_t)getpid();
    h->nbytes = record.used;
    h->began = tni_coarse_ns();
    h->began_real = real_ns();
    h->alive_at = 0;
    h->ended_calls = 0;
    h->forked = 1;
    h->forked_by = record.forked_by;
    h->forked_from = record.n_forked ? record.n_forked - 1 : 0;
    h->ended = 0;
    if (fd >= 0) {
        munmap(to, record.used);
        if (mmap(record.base, TNI_FLIGHT_MOST, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED)
            return;
    } else if (mremap(to, TNI_FLIGHT_MOST, TNI_FLIGHT_MOST, MREMAP_MAYMOVE | MREMAP_FIXED,
                      record.base) == MAP_FAILED) {
        return;
    }
    if (old >= 0)
        close(old);
    record.fd = fd;
    remember_file();
}

static void become_child(void)
{
    record.is_child = true;
    if (record.ready) {
        part_from_parent();
    } else if (record.tried) { /* it was being made by a thread that is not here */
        record.base = NULL;
        record.fd = -1;
        record.tried = record.in_file = false;
    }
}

void tni_flight_forked(void)
{
    if (atomic_load(&record.process)) {
        become_child();
        atomic_store(&record.process, (int)getpid());
    }
    tni_flight_after_fork();
}

/* A handler that another thread registers while fork() is under way does not run in that child. So
 * whoever comes here first looks whose record it is: see Note [Forks] in base/pool.c. */
static void check_process(void)
{
    int self = (int)getpid(), process = atomic_load(&record.process);
    if (TNI_LIKELY(process == self || process == 0))
        return;
    if (process != -1 && atomic_compare_exchange_strong(&record.process, &process, -1)) {
        pthread_mutex_init(&record.lock, NULL);
        tni_flight_names_forked();
        become_child();
        atomic_store(&record.process, self);
    }
    while (atomic_load(&record.process) == -1)
        sched_yield();
}
