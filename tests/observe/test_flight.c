/* SPDX-License-Identifier: MIT */
/* tests/observe/test_flight.c: what the recorder writes: frames, stages, tensors, recent calls,
 * names, marks; over fork(), and into files. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/test.h"
#include "dispatch/call.h"
#include "observe/reader.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

static tn_tensor *ones(int ndim, const int64_t *sizes)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(sizes, ndim, &opts, &t));
    return t;
}

/* This thread as the record has it. */
static const tni_seen_thread *myself(const tni_seen *seen)
{
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        if (seen->threads[i].block.tid == (uint32_t)gettid())
            return &seen->threads[i];
    }
    return NULL;
}

/* Where in the record this thread's block lies. */
static uint64_t my_place(void)
{
    return (uint64_t)((char *)tni_flight_self() - (char *)tni_flight_head());
}

static tni_seen inside; /* what a kernel saw of itself */

static tn_status looks_at_itself(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_OK(tni_seen_read(tni_flight_fd(), true, &inside));
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

static tn_op *look_op(void)
{
    static tn_op *op;
    if (op)
        return op;
    tn_library *lib = NULL;
    tn_kernel kernel = TN_KERNEL_INIT(looks_at_itself);
    kernel.name = "looks_at_itself";
    kernel.file = "somewhere.c";
    kernel.line = 7;
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "look", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_def(lib, "look(Tensor x, Tensor y) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(lib, "look", TN_KEY_CPU, &kernel, NULL));
    ASSERT_OK(tn_op_find("look::look", &op));
    return op;
}

static void look(tn_tensor *x, tn_tensor *y)
{
    tn_value args[2] = {tn_value_tensor(x), tn_value_tensor(y)}, ret;
    ASSERT_OK(tn_op_call(look_op(), args, 2, &ret));
    tn_value_clear(&ret);
}

TEST(a_frame_says_operator_stage_key_kernel_tensors_and_when)
{
    const int64_t s2[] = {2, 3}, s6[] = {1, 2, 1, 2, 1, 2};
    tn_tensor *x = ones(2, s2), *y = ones(6, s6);
    look(x, y);
    const tni_seen_thread *t = myself(&inside);
    ASSERT(t != NULL);
    EXPECT(!t->torn && !inside.damaged);
    ASSERT(t->depth >= 1 && t->n_frames == t->depth);
    const tni_flight_frame *outer = &t->frames[0], *inner = &t->frames[t->depth - 1];
    char room[24];
    EXPECT_STR(tni_seen_name(&inside, TNI_NAME_OP, inner->op, room), "look::look");
    EXPECT_EQ_INT(inner->stage, TNI_STAGE_INSIDE);
    EXPECT_EQ_INT(inner->slot, tni_key_slot(TN_KEY_CPU));
    const tni_flight_name *kernel = tni_seen_entry(&inside, TNI_NAME_KERNEL, inner->kernel);
    ASSERT(kernel != NULL);
    EXPECT_STR(tni_seen_text(&inside, kernel->text), "looks_at_itself");
    EXPECT_STR(tni_seen_text(&inside, kernel->file), "somewhere.c");
    EXPECT_EQ_INT(kernel->line, 7);
    EXPECT_EQ_INT(outer->tensors, 3);
    EXPECT_EQ_INT(outer->tensor[0].ndim, 2);
    EXPECT_EQ_INT(outer->tensor[0].dtype, TN_DTYPE_F32);
    EXPECT_EQ_INT(outer->tensor[0].sizes[1], 3);
    EXPECT_EQ_INT(outer->tensor[1].ndim, 6);
    EXPECT_EQ_INT(outer->tensor[1].sizes[5], 2);
    uint64_t now = tni_coarse_ns();
    EXPECT(outer->stamp <= now && now - outer->stamp < UINT64_C(3600000000000));
    tni_seen_clear(&inside);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(typed_calls_and_their_redispatches_are_there_while_they_run)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2), *y = NULL;
    ASSERT_OK(tn_add(x, x, tn_int(1), &y));
    tni_seen seen;
    ASSERT_OK(tni_seen_read(tni_flight_fd(), true, &seen));
    const tni_seen_thread *t = myself(&seen);
    ASSERT(t && t->n_recent >= 1);
    EXPECT_EQ_INT(t->depth, 0);
    const tni_flight_frame *last = &t->frames[t->n_frames];
    char room[24];
    EXPECT_STR(tni_seen_name(&seen, TNI_NAME_OP, last->op, room), "aten::add.Tensor");
    EXPECT_EQ_INT(last->stage, TNI_STAGE_ENDED);
    EXPECT_EQ_INT(last->status, TN_OK);
    EXPECT_EQ_INT(last->tensors, 3);
    EXPECT_EQ_INT(last->tensor[0].sizes[0], 2);
    tni_seen_clear(&seen);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(recent_calls_are_kept_newest_first_with_how_they_ended)
{
    const int64_t s2[] = {2}, s3[] = {3};
    tn_tensor *x = ones(1, s2), *z = ones(1, s3), *y = NULL;
    for (int i = 0; i < 40; i++) {
        ASSERT_OK(tn_add(x, x, tn_int(1), &y));
        tn_tensor_unref(y);
    }
    EXPECT(tn_mul(x, z, &y) != TN_OK);
    tni_seen seen;
    ASSERT_OK(tni_seen_read(tni_flight_fd(), true, &seen));
    const tni_seen_thread *t = myself(&seen);
    ASSERT(t && t->n_recent == TNI_SEEN_RECENT);
    char room[24];
    const tni_flight_frame *recent = &t->frames[t->n_frames];
    EXPECT_STR(tni_seen_name(&seen, TNI_NAME_OP, recent[0].op, room), "aten::mul.Tensor");
    EXPECT(recent[0].status != TN_OK);
    EXPECT_STR(tni_seen_name(&seen, TNI_NAME_OP, recent[7].op, room), "aten::add.Tensor");
    tni_seen_clear(&seen);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(switched_off_nothing_is_stamped_and_stages_stay)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    EXPECT(tn_recorder_on());
    ASSERT_OK(tn_recorder_set(false));
    EXPECT(!tn_recorder_on());
    look(x, x);
    ASSERT_OK(tn_recorder_set(true));
    const tni_seen_thread *t = myself(&inside);
    ASSERT(t && t->depth >= 1);
    EXPECT_EQ_INT(t->frames[0].stamp, 0);
    EXPECT_EQ_INT(t->frames[0].tensors, 0);
    EXPECT_EQ_INT(t->frames[t->depth - 1].stage, TNI_STAGE_INSIDE);
    EXPECT_EQ_INT(inside.head.on, 0);
    tni_seen_clear(&inside);
    tn_tensor_unref(x);
}

TEST(marks_say_what_a_thread_waits_for_and_holds)
{
    int lock = 0;
    ASSERT_OK(tn_recorder_set(true));
    tn_hold_begin(TN_WAIT_LOCK, &lock, "a");
    tn_hold_begin(TN_WAIT_LOCK, &lock + 1, "b");
    tn_hold_end(TN_WAIT_LOCK, &lock); /* in any order */
    tn_wait_begin(TN_WAIT_INTERPRETER, NULL,
                  "a name that is longer than there is room for it here");
    tni_seen seen;
    ASSERT_OK(tni_seen_read(tni_flight_fd(), true, &seen));
    const tni_seen_thread *t = myself(&seen);
    ASSERT(t != NULL);
    EXPECT_EQ_INT(t->block.marks.n_held, 1);
    EXPECT_STR(t->block.marks.held[0].text, "b");
    EXPECT_EQ_INT(t->block.marks.wait.kind, TNI_WAIT_INTERPRETER);
    EXPECT_EQ_INT(t->block.marks.wait.since, 0); /* no clock */
    EXPECT_EQ_INT(strlen(t->block.marks.wait.text), TNI_MARK_TEXT - 1);
    tni_seen_clear(&seen);
    tn_wait_end();
    tn_hold_end(TN_WAIT_LOCK, &lock + 1);
}

static void call_and_end(int i, void *arg)
{
    (void)i;
    tn_tensor *y = NULL;
    EXPECT_OK(tn_neg(arg, &y));
    tn_tensor_unref(y);
}

TEST(a_thread_that_ends_gives_its_place_to_the_next)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    run_threads(4, call_and_end, x);
    uint32_t places = tni_flight_head()->n_threads;
    for (int i = 0; i < 20; i++)
        run_threads(4, call_and_end, x);
    EXPECT(tni_flight_head()->n_threads <= places + 4);
    tn_tensor_unref(x);
}

static int child_writes_its_own(void *parent)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    look(x, x);
    EXPECT_EQ_INT(inside.head.pid, getpid());
    EXPECT(inside.head.pid != *(const uint32_t *)parent);
    const tni_seen_thread *t = myself(&inside);
    EXPECT(t != NULL && t->depth >= 1);
    EXPECT_EQ_INT(inside.n_threads, 1);
    tni_seen_clear(&inside);
    tn_tensor_unref(x);
    return 0;
}

TEST(a_child_has_a_record_of_its_own)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2), *y = NULL;
    ASSERT_OK(tn_neg(x, &y));
    uint32_t pid = (uint32_t)getpid();
    uint64_t calls = tni_tls.record->calls;
    EXPECT_EQ_INT(run_in_child(child_writes_its_own, &pid, 30), 0);
    EXPECT_EQ_INT(tni_flight_head()->pid, pid);
    EXPECT_EQ_INT(tni_tls.record->calls, calls); /* the child's calls are not ours */
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(a_saved_record_can_be_read_and_the_live_one_is_not_overwritten)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    char path[64] = "/tmp/tenon-flight-XXXXXX", live[64];
    int fd = mkstemp(path);
    ASSERT(fd >= 0);
    close(fd);
    ASSERT_OK(tn_recorder_save(path));
    char *text = NULL;
    ASSERT_OK(tn_doctor_file(path, NULL, &text));
    EXPECT_CONTAINS(text, "record of ");
    EXPECT_CONTAINS(text, "aten::ones");
    tn_string_free(text);
    struct stat st;
    EXPECT(stat(path, &st) == 0 && st.st_blocks * 512 < 4 << 20); /* holes stay holes */
    unlink(path);
    snprintf(live, sizeof live, "/proc/self/fd/%d", tni_flight_fd());
    EXPECT_FAIL(TN_INVALID, "live record", tn_recorder_save(live));
    EXPECT_FAIL(TN_INVALID, "cannot write", tn_recorder_save("/nowhere/at/all"));
    EXPECT_FAIL(TN_INVALID, "must not be empty", tn_recorder_save(""));
    tn_tensor_unref(x);
}

/* Slots serve one call after the other: while a thread is copied, calls that came later may have
 * begun behind the frames that are read. */
TEST(frames_of_later_calls_are_not_taken_for_nested_ones)
{
    char path[] = "/tmp/tenon-test-XXXXXX";
    int fd = mkstemp(path);
    ASSERT(fd >= 0);
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    look(x, x);
    const tni_seen_thread *t = myself(&inside);
    ASSERT(t && t->depth >= 1 && t->depth < 8);
    uint64_t first = t->block.slots_at + t->block.calls % TNI_FLIGHT_RING * sizeof *t->frames;
    ASSERT_OK(tn_recorder_save(path));
    int copy = open(path, O_RDWR | O_CLOEXEC);
    ASSERT(copy >= 0);
    ASSERT(pwrite(copy, &t->block.calls, sizeof t->block.calls,
                  (off_t)(my_place() + offsetof(tni_flight_thread, calls))) > 0);
    for (uint32_t i = 0; i < 16; i++) {
        tni_flight_frame f = t->frames[i < t->depth ? i : 0];
        ASSERT(pwrite(copy, &f, sizeof f, (off_t)(first + i * sizeof f)) == (ssize_t)sizeof f);
    }
    tni_seen seen;
    ASSERT_OK(tni_seen_read(copy, true, &seen));
    const tni_seen_thread *again = myself(&seen);
    ASSERT(again != NULL);
    EXPECT_EQ_INT(again->depth, t->depth);
    EXPECT_EQ_INT(again->n_frames, t->depth);
    tni_seen_clear(&seen);
    tni_seen_clear(&inside);
    close(copy);
    close(fd);
    unlink(path);
    tn_tensor_unref(x);
}

static int without_a_descriptor(void *arg)
{
    (void)arg;
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    int fd = tni_flight_fd(), other = open("/dev/null", O_RDONLY);
    char path[64] = "/tmp/tenon-other-XXXXXX";
    close(fd); /* as a program does that closes everything */
    int file = mkstemp(path);
    unlink(path);
    EXPECT_EQ_INT(file, fd); /* another file has our number now */
    run_threads(8, call_and_end, x);
    struct stat st;
    EXPECT(fstat(file, &st) == 0 && st.st_size == 0); /* and was left alone */
    EXPECT(tn_recorder_save("/tmp/x") == TN_UNSUPPORTED);
    close(other);
    tn_tensor_unref(x);
    return 0;
}

TEST(a_program_that_closes_all_descriptors_goes_on)
{
    EXPECT_EQ_INT(run_in_child(without_a_descriptor, NULL, 30), 0);
}

static _Atomic bool enough;

static void *calls_all_the_time(void *arg)
{
    while (!atomic_load(&enough))
        call_and_end(0, arg);
    return NULL;
}

TEST(threads_can_be_read_while_they_work)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    pthread_t thread;
    ASSERT(pthread_create(&thread, NULL, calls_all_the_time, x) == 0);
    for (int i = 0; i < 100; i++) {
        tni_seen seen;
        ASSERT_OK(tni_seen_read(tni_flight_fd(), true, &seen));
        EXPECT(!seen.damaged);
        for (uint32_t k = 0; k < seen.n_threads; k++)
            EXPECT(seen.threads[k].depth <= 4);
        tni_seen_clear(&seen);
    }
    atomic_store(&enough, true);
    pthread_join(thread, NULL);
    tn_tensor_unref(x);
}

/* ---- allocations ---- */

static void *dispatches_once(void *arg)
{
    tn_tensor *y = NULL;
    tn_status rc = tn_neg(arg, &y);
    tn_tensor_unref(y);
    return (void *)(uintptr_t)rc;
}

/* What a thread needs to be recorded is made with its first dispatch. */
TEST(a_thread_that_gets_no_memory_fails_cleanly_and_leaves_no_place_behind)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    tn_status rc;
    uint32_t places = 0;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        pthread_t thread;
        void *result = NULL;
        ASSERT(pthread_create(&thread, NULL, dispatches_once, x) == 0);
        pthread_join(thread, &result);
        rc = (tn_status)(uintptr_t)result;
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
        uint32_t now = tni_flight_head()->n_threads;
        EXPECT(places == 0 || now <= places);
        places = places ? places : now;
    }
    tni_seen seen;
    ASSERT_OK(tni_seen_read(tni_flight_fd(), true, &seen));
    EXPECT(myself(&seen) != NULL && !seen.damaged);
    for (uint32_t i = 0; i < seen.n_threads; i++)
        EXPECT_EQ_INT(seen.threads[i].depth, 0);
    tni_seen_clear(&seen);
    tn_tensor_unref(x);
}

TEST(names_and_marks_need_no_memory)
{
    const int64_t s2[] = {2};
    tn_tensor *x = ones(1, s2);
    tn_status rc;
    char path[64];
    snprintf(path, sizeof path, "/tmp/tenon-flight-allocations-%d", (int)getpid());
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        int64_t before = tni_test_live;
        uint32_t name = tni_flight_name_add(TNI_NAME_NODE, &rc, "SomeBackward0", NULL, 0, false);
        EXPECT(name != 0);
        tn_hold_begin(TN_WAIT_LOCK, &rc, "a");
        tn_wait_begin(TN_WAIT_EVENT, &rc, "b");
        tn_wait_end();
        tn_hold_end(TN_WAIT_LOCK, &rc);
        tni_flight_name_drop(name);
        rc = tn_recorder_save(path);
        EXPECT_OK(rc);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    unlink(path);
    tn_tensor_unref(x);
}
