/* SPDX-License-Identifier: MIT */
/* tests/observe/test_verdict.c: what is said about threads that did not move between two looks, by
 * what the system tells about them: made up here, because no test can ask for a crowded machine. */
#include <string.h>

#include "harness/test.h"
#include "observe/verdict.h"
#include "tenon/dispatch.h"

enum { SECOND = 1000000000 };

/* A program of two threads, both in a kernel since a second ago, neither has moved. */
typedef struct program {
    tni_seen seen;
    tni_seen_thread threads[2];
    tni_flight_frame frames[2];
} program;

static void stands(program *p, int i, char state, double cpu)
{
    tni_seen_thread *t = &p->threads[i];
    p->frames[i].stage = TNI_STAGE_INSIDE;
    p->frames[i].kind = TN_EVENT_CALL;
    p->frames[i].stamp = 100 * (uint64_t)SECOND;
    t->block.tid = 10 + (uint32_t)i;
    t->depth = t->n_frames = 1;
    t->frames = &p->frames[i];
    t->alive = true;
    t->state = state;
    t->cpu = cpu;
}

static void begin(program *p)
{
    memset(p, 0, sizeof *p);
    p->seen.pid = 1;
    p->seen.process_state = 'S';
    p->seen.now = 101 * (uint64_t)SECOND;
    p->seen.threads = p->threads;
    p->seen.n_threads = 2;
    stands(p, 0, 'S', 0);
    stands(p, 1, 'S', 0);
}

static void expect_verdict(const program *p, tni_verdict_kind kind, const char *words)
{
    tni_verdict v;
    tni_judge(&p->seen, true, &v);
    test_note("%s: %s", tni_verdict_name(v.kind), tni_str_get(&v.text));
    EXPECT_EQ_INT(v.kind, kind);
    EXPECT_CONTAINS(tni_str_get(&v.text), words);
    EXPECT(v.next.n > 0);
    tni_verdict_clear(&v);
}

TEST(a_thread_that_sleeps_in_a_kernel_is_blocked)
{
    program p;
    begin(&p);
    strcpy(p.threads[0].wchan, "futex_do_wait");
    expect_verdict(&p, TNI_VERDICT_BLOCKED, "thread 10 sleeps in futex_do_wait, inside the kernel");
}

TEST(a_thread_that_runs_in_a_kernel_is_busy_also_where_it_gets_a_part_of_a_processor)
{
    program p;
    begin(&p);
    stands(&p, 0, 'R', 0.9);
    expect_verdict(&p, TNI_VERDICT_SPINNING, "thread 10 is busy, inside the kernel");
    stands(&p, 0, 'R', 0.1);
    expect_verdict(&p, TNI_VERDICT_SPINNING, "thread 10 is busy, inside the kernel");
}

TEST(a_thread_that_is_busy_in_a_kernel_of_tenon_computes)
{
    program p;
    begin(&p);
    tni_flight_name kernel = {.address = 7, .kind = TNI_NAME_KERNEL};
    p.seen.n_threads = 1;
    p.seen.names = &kernel;
    p.seen.n_names = 1;
    stands(&p, 0, 'R', 0.9);
    p.frames[0].kernel = 7;
    p.frames[0].tensors = 1;
    p.frames[0].tensor[0] = (tni_flight_tensor){.ndim = 1, .dtype = TN_DTYPE_F32, .sizes = {9}};
    expect_verdict(&p, TNI_VERDICT_COMPUTING, ", on float32[9], for 1.00 s");
    kernel.room = 64; /* one that can be taken away again: the program's */
    expect_verdict(&p, TNI_VERDICT_SPINNING, "thread 10 is busy, inside the kernel");
    kernel.room = 0;
    p.threads[0].block.marks.callout = 1;
    expect_verdict(&p, TNI_VERDICT_CALLOUT, "thread 10 is busy");
}

TEST(a_sleep_that_has_just_begun_is_not_what_a_thread_is_stuck_on)
{
    program before, p;
    begin(&before);
    begin(&p);
    before.seen.knows_sleepers = p.seen.knows_sleepers = true;
    p.threads[0].sleep = (tni_sleep){.kind = TNI_SLEEP_LOCK, .of = 11, .at = 64};
    p.threads[1].sleep = (tni_sleep){.kind = TNI_SLEEP_LOCK, .of = 10, .at = 128};
    before.threads[0].sleep = p.threads[0].sleep;
    before.threads[1].sleep = p.threads[1].sleep;
    tni_seen_compare(&before.seen, &p.seen, SECOND);
    expect_verdict(&p, TNI_VERDICT_DEADLOCK, "waits for a lock that thread 11 holds; thread 11");
    before.threads[1].sleep.at = 256;
    tni_seen_compare(&before.seen, &p.seen, SECOND);
    expect_verdict(&p, TNI_VERDICT_LOCK, "waits for a lock that another thread holds");
}

TEST(threads_that_ran_between_two_looks_may_have_woken_each_other)
{
    const tni_sleep sleep = {.kind = TNI_SLEEP_FUTEX, .at = 64, .runs = 7, .for_good = true};
    program before, p;
    begin(&before);
    begin(&p);
    before.seen.knows_sleepers = p.seen.knows_sleepers = true;
    before.seen.others_asleep = p.seen.others_asleep = true;
    for (int i = 0; i < 2; i++)
        before.threads[i].sleep = p.threads[i].sleep = sleep;
    tni_seen_compare(&before.seen, &p.seen, SECOND);
    expect_verdict(&p, TNI_VERDICT_DEADLOCK, "sleeps at a lock or a condition, for 1.00 s; no thr");
    p.threads[1].sleep.runs = 8;
    tni_seen_compare(&before.seen, &p.seen, SECOND);
    expect_verdict(&p, TNI_VERDICT_BLOCKED, "thread 10 sleeps, inside the kernel");
    p.threads[1].sleep = sleep;
    p.seen.n_others = 1;
    tni_seen_compare(&before.seen, &p.seen, SECOND);
    expect_verdict(&p, TNI_VERDICT_BLOCKED, "thread 10 sleeps, inside the kernel");
}

TEST(who_has_an_interpreters_lock_is_named_when_the_lock_stays_where_it_is)
{
    const tni_sleep sleep = {.kind = TNI_SLEEP_INTERPRETER, .of = 11, .turn = 5};
    program before, p;
    begin(&before);
    begin(&p);
    before.seen.knows_sleepers = p.seen.knows_sleepers = true;
    before.threads[0].sleep = p.threads[0].sleep = sleep;
    strcpy(p.threads[1].wchan, "hrtimer_nanosleep");
    tni_seen_compare(&before.seen, &p.seen, SECOND);
    expect_verdict(&p, TNI_VERDICT_INTERPRETER,
                   "waits for the interpreter lock, which another thread holds, for 1.00 s: thread "
                   "11");
    p.threads[0].depth = p.threads[0].n_frames = p.threads[1].depth = p.threads[1].n_frames = 0;
    expect_verdict(&p, TNI_VERDICT_INTERPRETER, "thread 10, outside of operators, waits for the");
    p.threads[1].state = 'R'; /* it may give the lock back every moment */
    expect_verdict(&p, TNI_VERDICT_IDLE, "idle");
    stands(&p, 0, 'S', 0);
    stands(&p, 1, 'S', 0);
    p.threads[0].sleep.turn = 6;
    tni_seen_compare(&before.seen, &p.seen, SECOND);
    expect_verdict(&p, TNI_VERDICT_BLOCKED, "thread 10 sleeps");
}

TEST(functions_that_call_themselves_are_a_recursion)
{
    program p;
    begin(&p);
    p.seen.n_threads = 1;
    p.threads[0].depth = p.threads[0].n_frames = 0;
    tni_thread_marks *m = &p.threads[0].block.marks;
    m->n_held = 30;
    for (int i = 0; i < TNI_MARK_HELD; i++) {
        m->held[i].kind = TNI_HELD_CODE;
        strcpy(m->held[i].text, i % 2 ? "G.forward (f.py:9)" : "F.forward (f.py:5)");
    }
    expect_verdict(&p, TNI_VERDICT_RECURSION,
                   "thread 10 nests F.forward (f.py:5) -> G.forward (f.py:9) 30 deep");
    strcpy(m->held[7].text, "H.forward (f.py:12)");
    expect_verdict(&p, TNI_VERDICT_CALLOUT, "sleeps, outside of operators, in H.forward");
    strcpy(m->held[7].text, "G.forward (f.py:9)");
    m->n_held = 6;
    expect_verdict(&p, TNI_VERDICT_CALLOUT, "sleeps, outside of operators, in G.forward");
}

TEST(a_thread_that_is_ready_and_gets_no_processor_does_not_hang)
{
    program p;
    begin(&p);
    p.seen.n_threads = 1;
    stands(&p, 0, 'R', 0.01);
    p.threads[0].starved = true;
    expect_verdict(&p, TNI_VERDICT_STARVED, "thread 10 is ready to run, and others have the");
}

TEST(a_thread_that_sleeps_beside_one_that_cannot_run_may_wait_for_it)
{
    program p;
    begin(&p);
    strcpy(p.threads[0].wchan, "futex_do_wait");
    p.threads[1].moved = true;
    p.threads[1].crowded = true;
    p.threads[1].block.calls = 7;
    expect_verdict(&p, TNI_VERDICT_PROGRESS, "thread 11 makes progress");
    p.threads[1].moved = false;
    stands(&p, 1, 'R', 0.01);
    p.threads[1].starved = true;
    expect_verdict(&p, TNI_VERDICT_STARVED, "thread 10 sleeps in futex_do_wait, inside the kernel");
    expect_verdict(&p, TNI_VERDICT_STARVED,
                   "it may wait for thread 11, which is ready to run, and others have");
}

TEST(a_thread_that_sleeps_for_long_hangs_also_on_a_crowded_machine)
{
    program p;
    begin(&p);
    stands(&p, 1, 'R', 0.01);
    p.threads[1].starved = p.threads[1].crowded = true;
    p.seen.now += 10 * (uint64_t)SECOND;
    expect_verdict(&p, TNI_VERDICT_BLOCKED, "thread 10 sleeps, inside the kernel");
}

TEST(a_loop_whose_worker_gets_no_processor_is_not_stuck_in_it)
{
    program p;
    begin(&p);
    p.threads[0].block.marks.wait.kind = TNI_WAIT_POOL;
    p.threads[0].block.marks.wait.since = 100 * (uint64_t)SECOND;
    p.threads[1].depth = p.threads[1].n_frames = 0;
    p.threads[1].block.marks.is_worker = 1;
    p.threads[1].block.marks.works_for = 10;
    expect_verdict(&p, TNI_VERDICT_POOL, "thread 11 has not finished its part and sleeps");
    p.threads[1].state = 'R';
    p.threads[1].cpu = 0.2;
    expect_verdict(&p, TNI_VERDICT_POOL, "thread 11 has not finished its part and is busy");
    p.threads[1].cpu = 0.02;
    p.threads[1].starved = true;
    expect_verdict(&p, TNI_VERDICT_STARVED, "thread 11, which is ready to run, and others have");
}

TEST(a_wait_is_over_when_the_thread_is_ready_to_run)
{
    program p;
    begin(&p);
    p.seen.n_threads = 1;
    p.threads[0].block.marks.wait.kind = TNI_WAIT_EVENT;
    expect_verdict(&p, TNI_VERDICT_WAIT, "thread 10, inside the kernel");
    p.threads[0].state = 'R';
    p.threads[0].starved = true;
    expect_verdict(&p, TNI_VERDICT_STARVED, "thread 10 is ready to run, and others have the");
}

/* ---- how often to look ---- */

TEST(what_seems_to_hang_is_looked_at_again_until_it_is_old_enough)
{
    program p;
    begin(&p);
    EXPECT(tni_must_look_again(&p.seen, 2 * (uint64_t)SECOND));
    EXPECT(!tni_must_look_again(&p.seen, SECOND / 2));
    p.frames[0].stamp = 0; /* nobody knows how old */
    EXPECT(tni_must_look_again(&p.seen, SECOND / 2));
    p.threads[0].moved = true;
    EXPECT(!tni_must_look_again(&p.seen, SECOND / 2));
    p.threads[1].moved = true;
    EXPECT(!tni_must_look_again(&p.seen, 2 * (uint64_t)SECOND));
}

TEST(the_system_says_who_had_to_stand_in_line)
{
    const struct {
        char before, now;
        uint64_t cpu, queued;
        bool starved, crowded;
    } cases[] = {
        {'S', 'S', 0, 0, false, false},         {'S', 'R', 0, 0, true, false},
        {'R', 'R', 0, 0, true, true},           {'R', 'R', SECOND / 10, 0, false, false},
        {'R', 'S', 0, SECOND / 2, false, true}, {'R', 'R', SECOND / 2, SECOND / 2, false, true},
        {'R', 'R', SECOND, 0, false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        program a, b;
        begin(&a);
        begin(&b);
        a.threads[0].state = cases[i].before;
        b.threads[0].state = cases[i].now;
        b.threads[0].cpu_ns = cases[i].cpu;
        b.threads[0].queued_ns = cases[i].queued;
        tni_seen_compare(&a.seen, &b.seen, SECOND);
        test_note("case %d", (int)i);
        EXPECT_EQ_INT(b.threads[0].starved, cases[i].starved);
        EXPECT_EQ_INT(b.threads[0].crowded, cases[i].crowded);
        EXPECT(!b.threads[0].moved);
    }
}

TEST(backward_passes_inside_each_other_are_a_recursion)
{
    program p;
    begin(&p);
    p.threads[0].depth = p.threads[0].n_frames = 0;
    p.threads[0].block.n_passes = 40;
    p.threads[0].moved = true;
    p.threads[1].moved = true;
    expect_verdict(&p, TNI_VERDICT_RECURSION, "thread 10 nests backward passes 40 deep");
}

TEST(a_thread_that_runs_outside_of_operators_is_not_idle_on_a_busy_machine)
{
    program p;
    begin(&p);
    stands(&p, 0, 'R', 0.2);
    for (int i = 0; i < 2; i++)
        p.threads[i].depth = p.threads[i].n_frames = 0;
    expect_verdict(&p, TNI_VERDICT_BETWEEN, "thread 10 is busy between two calls");
}

TEST(who_may_hold_an_interpreters_lock_is_named)
{
    program p;
    begin(&p);
    stands(&p, 0, 'R', 0); /* it looks for the lock now and then */
    p.threads[0].depth = p.threads[0].n_frames = 0;
    p.threads[0].starved = true;
    p.threads[0].block.marks.wait.kind = TNI_WAIT_INTERPRETER;
    p.threads[1].depth = p.threads[1].n_frames = 0;
    strcpy(p.threads[1].wchan, "hrtimer_nanosleep");
    expect_verdict(&p, TNI_VERDICT_INTERPRETER,
                   "thread 11 may hold it: it sleeps in hrtimer_nanosleep");
    strcpy(p.threads[1].wchan, "futex_do_wait");
    expect_verdict(&p, TNI_VERDICT_INTERPRETER, "nobody that the record knows holds it");
}
