/* SPDX-License-Identifier: MIT */
/* The thread pool: one loop at a time, shared out in chunks.
 *
 * Note [The gate]
 * Workers and the caller meet at one word: how many seats are open for workers, how many workers
 * sit, and whether the pool is closing. The caller describes its loop, then opens seats. A worker
 * that takes a seat (one compare-and-swap that moves a count from "open" to "seated") takes part in
 * the loop; one that finds no open seat has no part in it and reads nothing of it. When the chunks
 * are used up the caller takes the open seats back and waits until nobody sits. So the loop may
 * live on the caller's stack, a worker that wakes late does no harm, and the caller never waits for
 * a worker to wake.
 *
 * Note [Shares]
 * Each thread begins with a share of its own, a run of chunks, and helps the others when it is
 * done: a loop over the same data as the last finds it in the caches of the same processors. Any
 * thread takes from the front of a share. A chunk above one that failed is not run, every chunk
 * below it is, so the lowest failing one is the one that would fail in a serial loop. */
#define _GNU_SOURCE /* pthread_setname_np, sched_getcpu */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/env.h"
#include "base/futex.h"
#include "base/mark.h"
#include "base/patience.h"

enum { MAX_THREADS = 1024 };
enum { TIMED = 8 }; /* of so many loops one is timed: that takes some 40 ns */

#define SEAT_OPEN         UINT32_C(1)
#define SEAT_TAKEN        (UINT32_C(1) << 15)
#define CLOSING           (UINT32_C(1) << 31)
#define OPEN_SEATS(gate)  ((gate) & (SEAT_TAKEN - 1))
#define TAKEN_SEATS(gate) (((gate) & ~CLOSING) / SEAT_TAKEN)

/* Who sleeps on the gate. */
enum { WORKERS = 1, CALLER = 2 };

typedef struct loop {
    int64_t n, grain, nchunks;
    tni_pool_fn fn;
    void *arg;
    int seats;
    uint32_t caller;              /* its thread number, for marks */
    uint32_t forks;               /* pool.forks when it began */
    int cpu;                      /* where the caller began it */
    uint64_t opened;              /* when; 0: not timed */
    _Atomic bool beside;          /* a worker runs on that very processor */
    _Atomic int64_t failed_chunk; /* the lowest that did */
    pthread_mutex_t lock; /* of the error and of setting the above; never held while a chunk runs */
    tni_error error;
} loop;

/* A run of chunks that nobody has taken yet. */
typedef struct share {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} share;

static struct {
    _Atomic uint32_t gate;
    _Atomic uint32_t sleepers;  /* workers that sleep or are about to */
    _Atomic bool caller_sleeps; /* or is about to */
    loop *loop;
    /* What callers alone write: its line stays with their processor. */
    _Alignas(64) _Atomic bool busy; /* a caller owns the loop, the shares and what follows */
    int nworkers;
    uint32_t loops;          /* so far; some are timed */
    tni_patience patience;   /* of callers */
    _Atomic int wishes;      /* for a worker, in quick succession, while they sleep */
    _Atomic uint64_t wished; /* when last */
    _Atomic uint32_t doubts; /* how often to hand over took too long, see Note [Handing over] */
    /* What is seldom written. */
    _Alignas(64) _Atomic uint32_t forks; /* how often the workers were forgotten: Note [Forks] */
    _Atomic int process;                 /* whose workers these are */
    _Atomic bool room;                   /* there are workers, and each may have a processor */
    _Atomic uint32_t handoff_ns; /* until a worker that looks for a loop begins it, lately */
    pthread_t workers[MAX_THREADS];
    share shares[MAX_THREADS]; /* of the loop, one for each thread */
} pool;

/* Memory that the system clears in every child, a page of it: whether these are the workers of this
 * process. Stays false where there is no such memory. */
enum { PAGE = 4096 };
static union {
    _Atomic bool ours;
    char page[PAGE];
} wiped_by_fork __attribute__((aligned(PAGE)));

static _Atomic int num_threads; /* 0: not asked for yet */

static _Thread_local bool inside;
static _Thread_local int thread_index;

int tn_num_threads(void)
{
    int n = atomic_load_explicit(&num_threads, memory_order_relaxed);
    if (n)
        return n;
    int cpus = tni_cpu_count();
    cpus = cpus < MAX_THREADS ? cpus : MAX_THREADS;
    int wanted = (int)tni_env_int("TENON_NUM_THREADS", 1, MAX_THREADS, cpus);
    /* tn_set_num_threads may have come in between: then its number stands. */
    return atomic_compare_exchange_strong(&num_threads, &n, wanted) ? wanted : n;
}

tn_status tn_set_num_threads(int n)
{
    TN_CHECK(n >= 1 && n <= MAX_THREADS, TN_VALUE,
             "tn_set_num_threads: n is %d, wanted a number from 1 to %d", n, MAX_THREADS);
    atomic_store_explicit(&num_threads, n, memory_order_relaxed);
    return TN_OK;
}

bool tni_pool_inside(void)
{
    return inside;
}
int tni_pool_thread_index(void)
{
    return thread_index;
}

/* --- chunks -------------------------------------------------------------------------------------
 */

static tn_status run_chunk(int64_t chunk, int64_t n, int64_t grain, tni_pool_fn fn, void *arg)
{
    int64_t begin = chunk * grain;
    int64_t end = n - begin > grain ? begin + grain : n;
    tn_status status = fn(begin, end, arg);
    if (TNI_UNLIKELY(status != TN_OK && tn_last_status() != status))
        TN_FAIL(status, "a part of a loop returned %s and gave no message", tn_status_name(status));
    return status;
}

static void keep_error(loop *job, int64_t chunk)
{
    if (atomic_load(&pool.forks) != job->forks) {
        /* The lock may have been held by a thread that the child does not have. */
        atomic_store_explicit(&job->failed_chunk, -1, memory_order_relaxed);
        return;
    }
    tni_mutex_lock(&job->lock, "the errors of a loop");
    if (chunk < atomic_load_explicit(&job->failed_chunk, memory_order_relaxed)) {
        tni_error_drop(&job->error);
        tni_error_take(&job->error);
        atomic_store_explicit(&job->failed_chunk, chunk, memory_order_relaxed);
    } else {
        tn_clear_error();
    }
    tni_mutex_unlock(&job->lock);
}

/* Take chunks of a share until there are no more, or none that is still wanted. */
static void empty_share(loop *job, share *own)
{
    for (;;) {
        int64_t chunk = atomic_fetch_add_explicit(&own->next, 1, memory_order_relaxed);
        if (chunk >= own->end ||
            chunk > atomic_load_explicit(&job->failed_chunk, memory_order_relaxed))
            return;
        if (run_chunk(chunk, job->n, job->grain, job->fn, job->arg) != TN_OK)
            keep_error(job, chunk);
    }
}

/* @p first: the share to begin with. */
static void work(loop *job, int index, int first)
{
    bool was_inside = inside;
    int old_index = thread_index;
    inside = true;
    thread_index = index;
    for (int i = 0; i <= job->seats; i++) {
        share *s = &pool.shares[(first + i) % (job->seats + 1)];
        if (atomic_load_explicit(&s->next, memory_order_relaxed) < s->end)
            empty_share(job, s);
    }
    inside = was_inside;
    thread_index = old_index;
}

static void make_shares(const loop *job)
{
    int64_t threads = job->seats + 1, each = job->nchunks / threads;
    int64_t more = job->nchunks % threads, at = 0; /* the first ones have one more */
    for (int i = 0; i < threads; i++) {
        atomic_store_explicit(&pool.shares[i].next, at, memory_order_relaxed);
        at += each + (i < more);
        pool.shares[i].end = at;
    }
}

static tn_status run_serially(int64_t nchunks, int64_t n, int64_t grain, tni_pool_fn fn, void *arg)
{
    bool was_inside = inside;
    int old_index = thread_index;
    inside = true;
    thread_index = 0;
    tn_status status = TN_OK;
    for (int64_t chunk = 0; chunk < nchunks && status == TN_OK; chunk++)
        status = run_chunk(chunk, n, grain, fn, arg);
    inside = was_inside;
    thread_index = old_index;
    return status;
}

/* --- workers ------------------------------------------------------------------------------------
 */

static bool is_called(uint32_t gate)
{
    return OPEN_SEATS(gate) || gate & CLOSING;
}

/* How long it took this worker to get here, if that was timed and nobody had its processor. */
static void note_handoff(const loop *job)
{
    enum { TAKEN_AWAY_NS = 5000 };
    if (!job->opened)
        return;
    int64_t seen = (int64_t)(tni_patience_now() - job->opened);
    int64_t old = atomic_load_explicit(&pool.handoff_ns, memory_order_relaxed);
    if (seen < TAKEN_AWAY_NS)
        atomic_store_explicit(&pool.handoff_ns, (uint32_t)(old + (seen - old) / 4),
                              memory_order_relaxed);
}

/* The value of the gate once it has an open seat or closes. @p beside: the caller of the last loop
 * waits for this very processor. @p slept: whether it did. See Note [Patience]. */
static uint32_t wait_for_seat(tni_patience *patience, bool beside, bool *slept)
{
    uint32_t gate = 0;
    for (int i = 0; i < (beside ? 1 : TNI_PATIENCE_SPINS); i++) {
        gate = atomic_load_explicit(&pool.gate, memory_order_acquire);
        if (is_called(gate))
            return gate;
        tni_pause();
    }
    tni_wait_begin(TNI_WAIT_IDLE, 0, "", false);
    tni_patience_begin(patience, !beside && atomic_load_explicit(&pool.room, memory_order_relaxed));
    do {
        gate = atomic_load_explicit(&pool.gate, memory_order_acquire);
    } while (!is_called(gate) && tni_patience_lasts(patience));
    while (!is_called(gate)) {
        *slept = true;
        /* The caller opens seats and then looks for sleepers; we do it the other way round. */
        atomic_fetch_add(&pool.sleepers, 1);
        tni_futex_wait(&pool.gate, gate, WORKERS);
        atomic_fetch_sub(&pool.sleepers, 1);
        gate = atomic_load_explicit(&pool.gate, memory_order_acquire);
    }
    tni_patience_end(patience);
    tni_wait_end();
    return gate;
}

/* Leave processor @p cpu, on which the caller runs, for another one. The system moves threads when
 * it next looks, milliseconds later, and until then two take as long as one; a virtual machine's
 * leaves them there for 20 ms and more. @p moved: when this thread last did so. */
static TNI_COLD void move_away(int cpu, uint64_t *moved)
{
    enum { SELDOM_NS = 5000000 };
    cpu_set_t allowed, others;
    uint64_t now = tni_patience_now();
    if (now - *moved < SELDOM_NS || !atomic_load_explicit(&pool.room, memory_order_relaxed))
        return;
    *moved = now;
    if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    others = allowed;
    CPU_CLR((size_t)cpu, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        (void)sched_setaffinity(0, sizeof allowed, &allowed);
}

static void *worker(void *number)
{
    char name[16];
    snprintf(name, sizeof name, "tenon-%u", (unsigned)(uintptr_t)number);
    pthread_setname_np(pthread_self(), name);
    tni_thread_marks *own = tni_marks_self();
    if (own)
        own->is_worker = 1;
    tni_patience patience = {0};
    bool beside = false;
    uint64_t moved = 0;
    for (;;) {
        bool slept = false;
        uint32_t gate = wait_for_seat(&patience, beside, &slept);
        if (gate & CLOSING)
            return NULL;
        if (!atomic_compare_exchange_weak_explicit(&pool.gate, &gate, gate - SEAT_OPEN + SEAT_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed))
            continue;
        loop *job = pool.loop;
        if (!slept)
            note_handoff(job);
        beside = sched_getcpu() == job->cpu;
        if (TNI_UNLIKELY(beside)) {
            move_away(job->cpu, &moved);
            beside = sched_getcpu() == job->cpu;
            atomic_store_explicit(&job->beside, beside, memory_order_relaxed);
        }
        tni_thread_marks *marks = tni_marks_self();
        if (marks) {
            marks->works_since = tni_coarse_ns();
            marks->works_for = job->caller;
        }
        int index = job->seats - (int)OPEN_SEATS(gate) + 1;
        int own_share = (int)(uintptr_t)number;
        work(job, index, own_share <= job->seats ? own_share : index);
        if (marks)
            marks->works_for = 0;
        if (atomic_load(&pool.forks) != job->forks)
            return NULL; /* a chunk called fork() and came back here in the child */
        gate = atomic_fetch_sub(&pool.gate, SEAT_TAKEN);
        /* The caller says that it sleeps and then looks at the seats; we do it the other way round.
         * To wake nobody would take as long as to begin the next loop. */
        if (TAKEN_SEATS(gate) == 1 && !OPEN_SEATS(gate) && atomic_load(&pool.caller_sleeps))
            tni_futex_wake(&pool.gate, 1, CALLER);
    }
}

/* Note [Forks]
 * A child has one thread, the one that called fork(): the workers and whoever owned the pool are
 * not there. The handler puts the pool right. It is not enough: a handler that another thread
 * registers while fork() is under way does not run in that child. So whoever takes the pool also
 * looks whether it is the pool of this process: by a word that the system clears in every child,
 * since to ask for the number of the process takes 100 ns, a tenth of a short loop. */
static bool can_wipe;
static void forget_workers(void)
{
    atomic_store(&pool.gate, 0);
    atomic_store(&pool.sleepers, 0);
    atomic_store(&pool.caller_sleeps, false);
    atomic_store(&pool.room, false);
    pool.nworkers = 0;
    atomic_fetch_add(&pool.forks, 1);
    atomic_store(&pool.busy, false);
    atomic_store(&pool.process, getpid());
    atomic_store(&wiped_by_fork.ours, can_wipe);
}

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static bool fork_safe;
static void watch_forks(void)
{
    can_wipe = sysconf(_SC_PAGESIZE) == PAGE && madvise(&wiped_by_fork, PAGE, MADV_WIPEONFORK) == 0;
    atomic_store(&pool.process, getpid());
    atomic_store(&wiped_by_fork.ours, can_wipe);
    fork_safe = pthread_atfork(NULL, NULL, forget_workers) == 0;
}

/* Own the pool; false when somebody else does. */
static bool take_pool(void)
{
    pthread_once(&fork_once, watch_forks);
    if (!fork_safe)
        return false;
    if (TNI_UNLIKELY(!atomic_load_explicit(&wiped_by_fork.ours, memory_order_relaxed))) {
        int process = atomic_load(&pool.process);
        /* 0 while one thread puts it right: the others run their loops serially. */
        if (process != getpid()) {
            if (process == 0 || !atomic_compare_exchange_strong(&pool.process, &process, 0))
                return false;
            forget_workers();
        }
    }
    return !atomic_exchange_explicit(&pool.busy, true, memory_order_acquire);
}

/* Have @p wanted workers, or as many as the system gives. They take no signals: those belong to the
 * application's threads; but for the one by which the watchdog asks where they are. */
static int have_workers(int wanted)
{
    if (pool.nworkers < wanted) {
        sigset_t all, old;
        sigfillset(&all);
        sigdelset(&all, TNI_LOOK_SIGNAL);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        while (pool.nworkers < wanted) {
            void *number = (void *)((uintptr_t)pool.nworkers + 1);
            if (pthread_create(&pool.workers[pool.nworkers], NULL, worker, number) != 0)
                break;
            pool.nworkers++;
        }
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        atomic_store(&pool.room, pool.nworkers < tni_cpu_count());
    }
    return pool.nworkers < wanted ? pool.nworkers : wanted;
}

/* At exit and when the library is unloaded: send the workers home. Afterwards the pool stays taken,
 * so that later loops run serially. A pool that is at work is left alone: exit() may have been
 * called from inside a loop. */
__attribute__((destructor)) static void close_pool(void)
{
    if (atomic_load(&pool.process) != getpid() || atomic_exchange(&pool.busy, true))
        return;
    atomic_fetch_or(&pool.gate, CLOSING);
    tni_futex_wake(&pool.gate, INT_MAX, WORKERS);
    tni_wait_begin(TNI_WAIT_EVENT, 0, "the end of pool workers", true);
    for (int i = 0; i < pool.nworkers; i++)
        pthread_join(pool.workers[i], NULL);
    tni_wait_end();
    pool.nworkers = 0;
}

/* --- the loop -----------------------------------------------------------------------------------
 */

static void open_seats(loop *job)
{
    pool.loop = job;
    atomic_store(&pool.gate, (uint32_t)job->seats * SEAT_OPEN);
    uint32_t sleepers = atomic_load(&pool.sleepers);
    if (sleepers)
        tni_futex_wake(&pool.gate, job->seats, WORKERS);
}

/* Take back the seats that nobody took, and wait for those who sit. */
static void clear_seats(const loop *job)
{
    uint32_t gate = atomic_fetch_and_explicit(&pool.gate, ~(SEAT_TAKEN - 1), memory_order_acq_rel);
    gate &= ~(SEAT_TAKEN - 1);
    for (int i = 0; TAKEN_SEATS(gate) && i < TNI_PATIENCE_SPINS; i++) {
        tni_pause();
        gate = atomic_load_explicit(&pool.gate, memory_order_acquire);
    }
    if (!TAKEN_SEATS(gate))
        return;
    tni_wait_begin(TNI_WAIT_POOL, 0, "", true);
    /* A worker that waits for our own processor would not finish any sooner. */
    bool alone = !atomic_load_explicit(&job->beside, memory_order_relaxed);
    tni_patience_begin(&pool.patience,
                       alone && atomic_load_explicit(&pool.room, memory_order_relaxed));
    while (TAKEN_SEATS(gate)) {
        if (!tni_patience_lasts(&pool.patience)) {
            atomic_store(&pool.caller_sleeps, true);
            gate = atomic_load(&pool.gate);
            if (TAKEN_SEATS(gate))
                tni_futex_wait(&pool.gate, gate, CALLER);
        }
        gate = atomic_load_explicit(&pool.gate, memory_order_acquire);
    }
    atomic_store_explicit(&pool.caller_sleeps, false, memory_order_relaxed);
    tni_patience_end(&pool.patience);
    tni_wait_end();
}

/* Note [Handing over]
 * A loop of two pieces begins when a worker sees that, and ends when its caller sees it, and what
 * either has written reaches the other a line at a time: 40 ns each where the two processors share
 * a cache, 250 and more where they do not, and a virtual machine's are one today and the other
 * tomorrow. So some loops are timed, and a short one is shared out where that was quick. */
static bool is_quick(int64_t ns)
{
    return ns > 6 * (int64_t)atomic_load_explicit(&pool.handoff_ns, memory_order_relaxed) + 300;
}

bool tni_pool_is_near(int64_t ns)
{
    enum { MANY = 32, SOON_NS = 20000, DOUBTS = 4096, TRIES = 64 };
    if (inside || tn_num_threads() == 1)
        return false;
    /* Callers that meet here only spoil the counts. */
    if (TNI_UNLIKELY(!is_quick(ns))) { /* alone, but for some that show whether it still is so */
        uint32_t doubts = atomic_load_explicit(&pool.doubts, memory_order_relaxed) + 1;
        atomic_store_explicit(&pool.doubts, doubts, memory_order_relaxed);
        return doubts % DOUBTS < TRIES;
    }
    if (atomic_load_explicit(&pool.room, memory_order_relaxed) &&
        !atomic_load_explicit(&pool.sleepers, memory_order_relaxed))
        return true;
    uint64_t now = tni_patience_now();
    uint64_t last = atomic_exchange_explicit(&pool.wished, now, memory_order_relaxed);
    int wishes = atomic_load_explicit(&pool.wishes, memory_order_relaxed) + 1;
    bool many = now - last < SOON_NS && wishes >= MANY;
    atomic_store_explicit(&pool.wishes, now - last < SOON_NS && !many ? wishes : 0,
                          memory_order_relaxed);
    return many;
}

static tn_status run_shared(loop *job)
{
    make_shares(job);
    open_seats(job);
    work(job, 0, 0);
    if (TNI_UNLIKELY(atomic_load(&pool.forks) != job->forks)) {
        /* A chunk called fork(), and this is the child: the chunks that workers had taken are lost,
         * and forget_workers has already given the pool back. */
        tni_error_drop(&job->error);
        TN_FAIL(
            TN_INVALID,
            "fork() was called inside a parallel loop: the loop cannot be finished in the child");
    }
    clear_seats(job);
    atomic_store_explicit(&pool.busy, false, memory_order_release);
    return tni_error_raise(&job->error);
}

/* This thread's number, asked of the system once. */
static uint32_t own_number(void)
{
    static _Thread_local uint32_t number, of_process;
    uint32_t process = (uint32_t)atomic_load_explicit(&pool.process, memory_order_relaxed);
    if (!number || of_process != process) {
        number = (uint32_t)gettid();
        of_process = process;
    }
    return number;
}

tn_status tni_pool_for(int64_t n, int64_t grain, tni_pool_fn fn, void *arg)
{
    TNI_REQUIRE(grain >= 1);
    if (n <= 0)
        return TN_OK;
    int64_t nchunks = n / grain + (n % grain != 0);
    int threads = nchunks > 1 && !inside ? tn_num_threads() : 1;
    threads = threads < nchunks ? threads : (int)nchunks;
    if (threads <= 1 || !take_pool())
        return run_serially(nchunks, n, grain, fn, arg);
    int seats = have_workers(threads - 1);
    if (seats == 0) {
        atomic_store_explicit(&pool.busy, false, memory_order_release);
        return run_serially(nchunks, n, grain, fn, arg);
    }
    loop job = {
        .n = n,
        .grain = grain,
        .nchunks = nchunks,
        .fn = fn,
        .arg = arg,
        .seats = seats,
        .caller = own_number(),
        .forks = atomic_load(&pool.forks),
        .cpu = sched_getcpu(),
        .opened = pool.loops++ % TIMED == 0 ? tni_patience_now() : 0,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .failed_chunk = INT64_MAX,
    };
    return run_shared(&job);
}
