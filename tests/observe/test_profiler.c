/* SPDX-License-Identifier: MIT */
/* The profiler: what an event says, what belongs together, what is dropped, and what other threads
 * do meanwhile. */
#define _GNU_SOURCE /* gettid */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/tally.h"
#include "dispatch/call.h"
#include "profile_kit.h"
#include "observe/profile.h"
#include "tenon/autograd.h"
#include "tenon/function.h"
#include "tenon/ops.h"
#include "tenon/profiler.h"

static void expect_nested(const tn_profile *p)
{
    uint64_t end_of[64] = {0};
    for (size_t i = 0; i < tn_profile_num_events(p); i++) {
        tn_profile_event e = event(p, i);
        EXPECT(e.self_ns <= e.duration_ns);
        EXPECT((e.parent < 0) == (e.depth == 0));
        if (e.parent >= 0) {
            tn_profile_event parent = event(p, (size_t)e.parent);
            EXPECT(e.parent < (int64_t)i);
            EXPECT(parent.thread == e.thread && parent.depth == e.depth - 1);
            EXPECT(e.start_ns >= parent.start_ns);
            EXPECT(e.start_ns + e.duration_ns <= parent.start_ns + parent.duration_ns);
        } else if (e.thread < 64) {
            EXPECT(e.start_ns >= end_of[e.thread]); /* nothing overlaps on a thread */
            end_of[e.thread] = e.start_ns + e.duration_ns;
        }
    }
}

/* ---- what an event says ---- */

TEST(calls_nest_as_they_were_made)
{
    const int64_t three[] = {2, 4, 16};
    tn_tensor *a = tensor(TN_META, 3, three), *b = matrix(TN_META, 16, 16), *out = NULL;
    start(true, false, false);
    EXPECT(tn_profiler_running());
    ASSERT_OK(tn_matmul(a, b, &out));
    tn_profile *p = stop();
    EXPECT(!tn_profiler_running());
    static const struct {
        const char *name, *shapes;
        int depth;
    } wanted[] = {
        {"aten::matmul", "float32[2, 4, 16], float32[16, 16]", 0},
        {"aten::reshape", "float32[2, 4, 16]", 1},
        {"aten::view", "float32[2, 4, 16]", 2},
        {"aten::mm", "float32[8, 16], float32[16, 16]", 1},
        {"aten::_unsafe_view", "float32[8, 16]", 1},
    };
    ASSERT_EQ_INT(tn_profile_num_events(p), sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        tn_profile_event e = event(p, i);
        EXPECT_STR(e.name, wanted[i].name);
        EXPECT_STR(e.shapes, wanted[i].shapes);
        EXPECT_EQ_INT(e.depth, wanted[i].depth);
        EXPECT_EQ_INT(e.kind, TN_PROFILE_CALL);
        EXPECT_STR(e.key, "AutogradMeta");
        EXPECT_STR(e.kernel, "");
        EXPECT(!e.unfinished && e.status == TN_OK && e.sequence == -1 && e.forward == -1);
    }
    expect_nested(p);
    EXPECT(tn_profile_duration_ns(p) >= event(p, 0).duration_ns);
    EXPECT_EQ_INT(tn_profile_dropped(p), 0);
    tn_profile_free(p);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(out);
}

TEST(with_the_stack_each_redispatch_says_which_kernel_it_reached)
{
    tn_tensor *a = matrix(TN_META, 2, 3), *b = matrix(TN_META, 3, 2), *out = NULL;
    start(false, false, true);
    ASSERT_OK(tn_mm(a, b, &out));
    tn_profile *p = stop();
    ASSERT_EQ_INT(tn_profile_num_events(p), 2);
    EXPECT_STR(event(p, 0).key, "AutogradMeta");
    EXPECT_CONTAINS(event(p, 0).kernel, "tni_autograd_mm (ops/linalg.op:");
    EXPECT_EQ_INT(event(p, 1).kind, TN_PROFILE_REDISPATCH);
    EXPECT_STR(event(p, 1).key, "Meta");
    EXPECT_CONTAINS(event(p, 1).kernel, "tni_gen_meta_mm (ops/linalg.op:");
    EXPECT_STR(event(p, 1).shapes, "");
    expect_nested(p);
    tn_profile_free(p);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(out);
}

TEST(a_call_that_fails_says_how)
{
    tn_tensor *a = matrix(TN_META, 2, 3), *b = matrix(TN_META, 4, 2), *out = NULL;
    start(false, false, true);
    EXPECT_FAIL(TN_INVALID, "cannot be multiplied", tn_mm(a, b, &out));
    tn_profile *p = stop();
    ASSERT_EQ_INT(tn_profile_num_events(p), 2);
    EXPECT_EQ_INT(event(p, 0).status, TN_INVALID);
    EXPECT_EQ_INT(event(p, 1).status, TN_INVALID);
    tn_profile_free(p);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

/* t::op, an operator of the user's with this kernel; gone when the library is closed. */
static tn_library *define_op(const tn_kernel *kernel, tn_op **op)
{
    tn_library *lib;
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "t", TN_KEY_NONE, "x.c", 1, &lib));
    ASSERT_OK(tn_library_def(lib, "op(Tensor x) -> Tensor", kernel, NULL));
    ASSERT_OK(tn_op_find("t::op", op));
    return lib;
}

static tn_status users_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(a_kernel_that_is_gone_keeps_its_name_in_the_profile)
{
    tn_kernel kernel = TN_KERNEL_INIT(users_kernel);
    tn_op *op;
    tn_library *lib = define_op(&kernel, &op);
    tn_tensor *a = matrix(TN_CPU, 1, 1);
    tn_value arg = tn_value_tensor(a), ret;
    start(false, false, true);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(tn_op_call(op, &arg, 1, &ret));
        tn_value_clear(&ret);
    }
    tn_library_close(lib);
    tn_profile *p = stop();
    ASSERT_EQ_INT(tn_profile_num_events(p), 3);
    for (size_t i = 0; i < 3; i++)
        EXPECT_CONTAINS(event(p, i).kernel, "users_kernel (");
    tn_profile_free(p);
    tn_tensor_unref(a);
}

TEST(memory_is_what_a_call_took_and_gave_back)
{
    const int64_t sizes[] = {1000, 10};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *a = NULL, *b = NULL;
    start(false, true, false);
    ASSERT_OK(tn_empty(sizes, 2, &opts, TN_FORMAT_NONE, &a));
    ASSERT_OK(tn_profiler_range_begin("let go"));
    tn_tensor_unref(a);
    ASSERT_OK(tn_profiler_range_end());
    const int64_t few[] = {3};
    ASSERT_OK(tn_empty(few, 1, &opts, TN_FORMAT_NONE, &b)); /* header and bytes in one block */
    ASSERT_OK(tn_profiler_range_begin("let go of little"));
    tn_tensor_unref(b);
    ASSERT_OK(tn_profiler_range_end());
    tn_profile *p = stop();
    EXPECT_EQ_INT(event(p, 0).allocated, 40000);
    EXPECT_EQ_INT(event(p, 0).freed, 0);
    EXPECT_EQ_INT(event(p, find(p, "let go", 0)).freed, 40000);
    EXPECT_EQ_INT(event(p, 2).allocated, 12);
    EXPECT_EQ_INT(event(p, find(p, "let go of little", 0)).freed, 12);
    EXPECT(!atomic_load(&tni_tallying));
    tn_profile_free(p);
}

TEST(meta_tensors_take_no_memory)
{
    tn_tensor *a = matrix(TN_META, 100, 100), *out = NULL;
    start(false, true, false);
    ASSERT_OK(tn_neg(a, &out));
    tn_profile *p = stop();
    EXPECT_EQ_INT(event(p, 0).allocated, 0);
    tn_profile_free(p);
    tn_tensor_unref(a);
    tn_tensor_unref(out);
}

/* ---- ranges ---- */

TEST(ranges_are_around_what_runs_in_them)
{
    tn_tensor *a = matrix(TN_META, 2, 2), *out = NULL;
    char name[] = "epoch 1";
    ASSERT_OK(tn_profiler_range_begin("nobody records")); /* and so it does nothing */
    ASSERT_OK(tn_profiler_range_end());
    start(false, false, false);
    ASSERT_OK(tn_profiler_range_begin(name));
    name[6] = '2'; /* a copy was taken */
    ASSERT_OK(tn_profiler_range_begin("step"));
    ASSERT_OK(tn_neg(a, &out));
    ASSERT_OK(tn_profiler_range_end());
    ASSERT_OK(tn_profiler_range_end());
    EXPECT_FAIL(TN_INVALID, "none at all, not a range", tn_profiler_range_end());
    EXPECT_FAIL(TN_INVALID, "must not be NULL", tn_profiler_range_begin(NULL));
    tn_profile *p = stop();
    ASSERT_EQ_INT(tn_profile_num_events(p), 3);
    EXPECT_STR(event(p, 0).name, "epoch 1");
    EXPECT_EQ_INT(event(p, 0).kind, TN_PROFILE_RANGE);
    EXPECT_STR(event(p, 1).name, "step");
    EXPECT_STR(event(p, 2).name, "aten::neg");
    EXPECT_EQ_INT(event(p, 2).depth, 2);
    expect_nested(p);
    tn_profile_free(p);
    tn_tensor_unref(a);
    tn_tensor_unref(out);
}

static tn_status leaves_a_range_open(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_FAIL(TN_INVALID, "is t::op, not a range", tn_profiler_range_end());
    EXPECT_OK(tn_profiler_range_begin("left open"));
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(a_range_that_is_left_open_ends_with_its_operator)
{
    tn_kernel kernel = TN_KERNEL_INIT(leaves_a_range_open);
    tn_op *op;
    tn_library *lib = define_op(&kernel, &op);
    tn_tensor *a = matrix(TN_CPU, 1, 1);
    tn_value arg = tn_value_tensor(a), ret;
    start(false, false, false);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(tn_op_call(op, &arg, 1, &ret));
        tn_value_clear(&ret);
    }
    tn_profile *p = stop();
    ASSERT_EQ_INT(tn_profile_num_events(p), 4);
    EXPECT_EQ_INT(event(p, 2).depth, 0);
    for (size_t i = 0; i < 4; i++)
        EXPECT(!event(p, i).unfinished);
    expect_nested(p);
    tn_profile_free(p);
    tn_tensor_unref(a);
    tn_library_close(lib);
}

TEST(a_range_that_began_before_the_recording_ends_as_itself)
{
    ASSERT_OK(tn_profiler_range_begin("before"));
    start(false, false, false);
    ASSERT_OK(tn_profiler_range_begin("inside"));
    ASSERT_OK(tn_profiler_range_end());
    ASSERT_OK(tn_profiler_range_end()); /* the one from before */
    EXPECT_FAIL(TN_INVALID, "not a range", tn_profiler_range_end());
    ASSERT_OK(tn_profiler_range_begin("over the end"));
    tn_profile *p = stop();
    ASSERT_EQ_INT(tn_profile_num_events(p), 2);
    EXPECT(event(p, 1).unfinished);
    tn_profile_free(p);
    start(false, false, false);
    ASSERT_OK(tn_profiler_range_begin("of the next"));
    ASSERT_OK(tn_profiler_range_end());
    ASSERT_OK(tn_profiler_range_end()); /* the one that went over the end */
    EXPECT_FAIL(TN_INVALID, "not a range", tn_profiler_range_end());
    p = stop();
    EXPECT_EQ_INT(tn_profile_num_events(p), 1);
    EXPECT_STR(event(p, 0).name, "of the next");
    tn_profile_free(p);
}

/* ---- gradients ---- */

TEST(a_turn_of_the_backward_pass_knows_the_call_that_made_its_node)
{
    tn_tensor *w = matrix(TN_META, 3, 3), *x = matrix(TN_META, 2, 3), *y = NULL, *loss = NULL;
    ASSERT_OK(tn_tensor_set_requires_grad(w, true));
    start(false, false, true);
    ASSERT_OK(tn_mm(x, w, &y));
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &loss));
    ASSERT_OK(tn_tensor_backward(loss));
    tn_profile *p = stop();
    size_t mm = find(p, "aten::mm", 0), sum = find(p, "aten::sum", 0);
    size_t mm_back = find(p, "MmBackward0", 0), sum_back = find(p, "SumBackward0", 0);
    EXPECT_EQ_INT(event(p, mm_back).kind, TN_PROFILE_BACKWARD);
    EXPECT_EQ_INT(event(p, mm_back).forward, mm);
    EXPECT_EQ_INT(event(p, sum_back).forward, sum);
    EXPECT(event(p, mm).sequence >= 0);
    EXPECT_EQ_INT(event(p, mm).sequence, event(p, mm_back).sequence);
    EXPECT(event(p, sum).sequence > event(p, mm).sequence);
    EXPECT_EQ_INT(event(p, find(p, "AccumulateGrad", 0)).forward, -1);
    /* What a turn computes is inside it. */
    size_t inner = find(p, "aten::mm", mm_back);
    EXPECT_EQ_INT(event(p, inner).parent, mm_back);
    expect_nested(p);
    tn_profile_free(p);
    tn_tensor_unref(w);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(loss);
}

/* ---- limits ---- */

TEST(what_does_not_fit_is_dropped_and_counted)
{
    tn_tensor *a = matrix(TN_META, 2, 2), *out = NULL;
    tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
    o.max_bytes = 40000;
    ASSERT_OK(tn_profiler_start(&o));
    test_at_end(stop_quietly);
    enum { CALLS = 3000 };
    for (int i = 0; i < CALLS; i++) {
        ASSERT_OK(tn_profiler_range_begin("step"));
        ASSERT_OK(tn_neg(a, &out));
        tn_tensor_unref(out);
        ASSERT_OK(tn_profiler_range_end());
    }
    tn_profile *p = stop();
    size_t n = tn_profile_num_events(p);
    EXPECT(n > 100 && n < 1000);
    EXPECT_EQ_INT(n + tn_profile_dropped(p), 2 * CALLS);
    tn_profile_thread t = {.size = sizeof t};
    ASSERT_OK(tn_profile_get_thread(p, 0, &t));
    EXPECT_EQ_INT(t.dropped, tn_profile_dropped(p));
    EXPECT_EQ_INT(t.id, gettid());
    char *table = NULL;
    ASSERT_OK(tn_profile_table(p, 0, &table));
    EXPECT_CONTAINS(table, "more events did not fit");
    tn_string_free(table);
    expect_nested(p);
    tn_profile_free(p);
    tn_tensor_unref(a);
}

static uint64_t resident_bytes(void)
{
    unsigned long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ASSERT(file != NULL && fscanf(file, "%lu %lu", &all, &pages) == 2);
    fclose(file);
    return pages * 4096ull;
}

TEST(a_long_recording_stays_below_its_cap_and_says_what_it_dropped)
{
    enum { CALLS = 400000, CAP = 4 << 20 };
    tn_tensor *a = matrix(TN_META, 2, 2), *out = NULL;
    tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
    o.max_bytes = CAP;
    o.shapes = o.memory = o.stack = true;
    uint64_t before = resident_bytes();
    ASSERT_OK(tn_profiler_start(&o));
    test_at_end(stop_quietly);
    int calls = test_sanitized() || test_thread_sanitized() ? CALLS / 8 : CALLS;
    for (int i = 0; i < calls; i++) {
        ASSERT_OK(tn_neg(a, &out));
        tn_tensor_unref(out);
    }
    uint64_t grown = resident_bytes() - before;
    if (!test_sanitized() && !test_thread_sanitized())
        EXPECT(grown < 2 * CAP); /* all of the events would be six times as many */
    tn_profile *p = stop();
    EXPECT(tn_profile_num_events(p) > 1000 && tn_profile_num_events(p) * 64 <= CAP);
    EXPECT(tn_profile_dropped(p) > (uint64_t)calls / 2);
    char path[] = "/tmp/tenon_profile_XXXXXX.json", text[4096], wanted[64];
    int fd = mkstemps(path, 5);
    ASSERT(fd >= 0);
    ASSERT_OK(tn_profile_write(p, path));
    struct stat st;
    ASSERT(stat(path, &st) == 0);
    EXPECT(st.st_size < 16 * CAP);
    close(fd);
    fd = open(path, O_RDONLY);
    ASSERT(read(fd, text, 400) == 400);
    text[400] = '\0';
    snprintf(wanted, sizeof wanted, "\"dropped\":%llu", (unsigned long long)tn_profile_dropped(p));
    EXPECT_CONTAINS(text, wanted);
    ASSERT(pread(fd, text, 300, st.st_size - 300) == 300);
    text[300] = '\0';
    snprintf(wanted, sizeof wanted, "%llu events dropped",
             (unsigned long long)tn_profile_dropped(p));
    EXPECT_CONTAINS(text, wanted);
    close(fd);
    unlink(path);
    tn_profile_free(p);
    tn_tensor_unref(a);
}

/* ---- switches ---- */

TEST(one_recording_runs_at_a_time)
{
    tn_profile *p = NULL;
    tn_profiler_options o = {.size = 3};
    EXPECT_FAIL(TN_INVALID, "options->size must be", tn_profiler_start(&o));
    EXPECT_FAIL(TN_INVALID, "no recording runs", tn_profiler_stop(&p));
    EXPECT_FAIL(TN_INVALID, "no recording runs", tn_profiler_stop(NULL));
    EXPECT_FAIL(TN_INVALID, "no recording runs", tn_profiler_snapshot(&p));
    EXPECT_FAIL(TN_INVALID, "must not be NULL", tn_profiler_snapshot(NULL));
    EXPECT(p == NULL);
    start(false, false, false);
    EXPECT_FAIL(TN_INVALID, "runs already", tn_profiler_start(NULL));
    tn_profile_free(stop());
    EXPECT(!(tni_watch_bits() & TNI_WATCH_PROFILE)); /* and the common path is taken again */
}

TEST(a_recording_begins_empty)
{
    tn_tensor *a = matrix(TN_META, 2, 2), *out = NULL;
    for (int i = 0; i < 3; i++) {
        start(i == 1, i == 2, i == 1);
        ASSERT_OK(tn_neg(a, &out));
        tn_tensor_unref(out);
        tn_profile *p = stop();
        EXPECT_EQ_INT(tn_profile_num_events(p), i == 1 ? 2 : 1);
        tn_profile_free(p);
    }
    tn_tensor_unref(a);
}

static tn_profile *taken_inside;

static tn_status takes_a_snapshot(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_OK(tn_profiler_snapshot(&taken_inside));
    return tn_value_copy(&args[0], &rets[0]);
}

static tn_status starts_another(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_OK(tn_profiler_stop(NULL));
    EXPECT_OK(tn_profiler_start(NULL));
    tn_tensor *out = NULL;
    EXPECT_OK(tn_neg(args[0].u.tensor, &out));
    tn_tensor_unref(out);
    return tn_value_copy(&args[0], &rets[0]);
}

static tn_profile *profile_of(tn_boxed_fn fn)
{
    tn_kernel kernel = TN_KERNEL_INIT(users_kernel);
    kernel.boxed = fn;
    tn_op *op;
    tn_library *lib = define_op(&kernel, &op);
    tn_tensor *a = matrix(TN_CPU, 1, 1);
    tn_value arg = tn_value_tensor(a), ret;
    start(false, false, false);
    ASSERT_OK(tn_op_call(op, &arg, 1, &ret));
    tn_value_clear(&ret);
    tn_tensor_unref(a);
    tn_profile *p = stop();
    tn_library_close(lib);
    return p;
}

TEST(a_snapshot_marks_what_has_not_returned)
{
    tn_profile *p = profile_of(takes_a_snapshot);
    ASSERT_EQ_INT(tn_profile_num_events(taken_inside), 1);
    tn_profile_event e = event(taken_inside, 0);
    EXPECT(e.unfinished);
    EXPECT_EQ_INT(e.start_ns + e.duration_ns, tn_profile_duration_ns(taken_inside));
    EXPECT_EQ_INT(tn_profile_num_events(p), 1);
    EXPECT(!event(p, 0).unfinished);
    tn_profile_free(taken_inside);
    tn_profile_free(p);
}

TEST(a_recording_may_end_and_another_begin_inside_a_call)
{
    tn_profile *p = profile_of(starts_another);
    ASSERT_EQ_INT(tn_profile_num_events(p), 1);
    EXPECT_STR(event(p, 0).name, "aten::neg");
    EXPECT_EQ_INT(event(p, 0).depth, 0);
    tn_profile_free(p);
}

/* ---- threads ---- */

static _Atomic bool go_on;

static void negate_many(int i, void *arg)
{
    tn_tensor *out = NULL;
    (void)i;
    for (int k = 0; k < 200; k++) {
        EXPECT_OK(tn_profiler_range_begin("mine"));
        EXPECT_OK(tn_neg(arg, &out));
        tn_tensor_unref(out);
        EXPECT_OK(tn_profiler_range_end());
    }
}

TEST(every_thread_is_recorded_also_those_that_ended)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2);
    start(true, true, true);
    run_threads(4, negate_many, a);
    negate_many(0, a);
    tn_profile *p = stop();
    ASSERT_EQ_INT(tn_profile_num_threads(p), 5);
    for (size_t i = 0; i < 5; i++) {
        tn_profile_thread t = {.size = sizeof t};
        ASSERT_OK(tn_profile_get_thread(p, i, &t));
        EXPECT_EQ_INT(t.events, 600);
        EXPECT(t.id > 0);
    }
    EXPECT_EQ_INT(tn_profile_num_events(p), 3000);
    expect_nested(p);
    tn_profile_free(p);
    tn_tensor_unref(a);
}

TEST(one_thread_may_be_recorded_alone)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2);
    tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
    o.this_thread_only = true;
    ASSERT_OK(tn_profiler_start(&o));
    test_at_end(stop_quietly);
    run_threads(2, negate_many, a);
    negate_many(0, a);
    tn_profile *p = stop();
    EXPECT_EQ_INT(tn_profile_num_threads(p), 1);
    EXPECT_EQ_INT(tn_profile_num_events(p), 400);
    tn_profile_free(p);
    tn_tensor_unref(a);
}

static void compute_or_record(int i, void *arg)
{
    if (i > 0) {
        while (atomic_load(&go_on))
            negate_many(i, arg);
        return;
    }
    for (int k = 0; k < 30; k++) {
        tn_profile *p = NULL, *half = NULL;
        tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
        o.stack = k % 2;
        o.shapes = k % 3 == 0;
        o.memory = k % 5 == 0;
        EXPECT_OK(tn_profiler_start(&o));
        negate_many(i, arg);
        EXPECT_OK(tn_profiler_snapshot(&half));
        negate_many(i, arg);
        if (k % 4 == 3)
            EXPECT_OK(tn_profiler_stop(NULL));
        else
            EXPECT_OK(tn_profiler_stop(&p));
        EXPECT(!p || tn_profile_num_events(p) >= tn_profile_num_events(half));
        tn_profile_free(p);
        tn_profile_free(half);
    }
    atomic_store(&go_on, false);
}

TEST(recordings_come_and_go_while_threads_compute)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2);
    atomic_store(&go_on, true);
    run_threads(4, compute_or_record, a);
    tn_tensor_unref(a);
}

static int in_the_child(void *arg)
{
    tn_tensor *out = NULL;
    if (tn_profiler_running()) /* the recording is the parent's */
        return 1;
    if (tni_watch_bits() & TNI_WATCH_PROFILE)
        return 2;
    if (tn_profiler_start(NULL) != TN_OK || tn_neg(arg, &out) != TN_OK)
        return 3;
    tn_tensor_unref(out);
    tn_profile *p = NULL;
    if (tn_profiler_stop(&p) != TN_OK || tn_profile_num_events(p) != 1)
        return 4;
    tn_profile_free(p);
    return 0;
}

TEST(a_child_begins_without_the_recording_and_may_begin_its_own)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2), *out = NULL;
    start(false, true, false);
    ASSERT_OK(tn_neg(a, &out));
    tn_tensor_unref(out);
    EXPECT_EQ_INT(run_in_child(in_the_child, a, 20), 0);
    tn_profile *p = stop();
    EXPECT_EQ_INT(tn_profile_num_events(p), 1);
    tn_profile_free(p);
    tn_tensor_unref(a);
}

/* ---- allocations ---- */

TEST(allocations_that_fail_lose_events_at_most)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2), *out = NULL;
    tn_status rc;
    char page[64], events[64];
    snprintf(page, sizeof page, "/tmp/tenon_profile_allocations_%d.html", (int)getpid());
    snprintf(events, sizeof events, "/tmp/tenon_profile_allocations_%d.json", (int)getpid());
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_profile *p = NULL;
        char *table = NULL;
        tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
        o.shapes = o.memory = o.stack = true;
        rc = tn_profiler_start(&o);
        EXPECT_OK(rc);
        if (tn_neg(a, &out) == TN_OK)
            tn_tensor_unref(out);
        EXPECT_OK(tn_profiler_range_begin("range"));
        EXPECT_OK(tn_profiler_range_end());
        rc = tn_profiler_stop(&p);
        if (rc != TN_OK) {
            EXPECT(rc == TN_NOMEM && p == NULL && tn_profiler_running());
            EXPECT_OK(tn_profiler_stop(NULL));
            continue;
        }
        rc = tn_profile_table(p, 0, &table);
        EXPECT(rc == TN_OK || (rc == TN_NOMEM && !table));
        tn_string_free(table);
        if (rc == TN_OK)
            rc = tn_profile_write(p, page);
        if (rc == TN_OK)
            rc = tn_profile_write(p, events);
        char *trace = NULL;
        if (rc == TN_OK)
            rc = tn_profile_trace(p, NULL, &trace);
        EXPECT((rc == TN_OK) == (trace != NULL));
        tn_string_free(trace);
        EXPECT(rc == TN_OK || rc == TN_NOMEM);
        tn_profile_free(p);
    }
    unlink(page);
    unlink(events);
    tn_tensor_unref(a);
}

TEST(a_recording_leaves_nothing_behind)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2), *out = NULL;
    int64_t before = 0;
    for (int i = 0; i < 4; i++) {
        if (i == 1)
            before = tni_test_live; /* what is made once has been made */
        start(true, true, true);
        for (int k = 0; k < 1000; k++) {
            ASSERT_OK(tn_neg(a, &out));
            tn_tensor_unref(out);
        }
        tn_profile_free(stop());
    }
    EXPECT_EQ_INT(tni_test_live, before);
    tn_tensor_unref(a);
}
