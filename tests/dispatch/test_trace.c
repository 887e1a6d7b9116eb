/* SPDX-License-Identifier: MIT */
/* What somebody who watches gets: the trace and the stage lines letter by letter, and the events of
 * observers. */
#define _GNU_SOURCE /* program_invocation_name */
#include "dispatch/kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "dispatch/call.h"
#include "gen/redispatch.h"
#include "dispatch/stages.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"

/* ---- stderr ---- */

static int real_stderr = -1;
static FILE *caught;

static void release_stderr(void)
{
    if (real_stderr < 0)
        return;
    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    real_stderr = -1;
    tn_set_dispatch_trace(false);
    (void)!tn_set_dispatch_debug(NULL);
}

static void catch_stderr(void)
{
    caught = tmpfile();
    ASSERT(caught != NULL);
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    dup2(fileno(caught), STDERR_FILENO);
    test_at_end(release_stderr);
}

/* What was written since catch_stderr. */
static const char *caught_text(void)
{
    static char text[262144];
    release_stderr();
    rewind(caught);
    size_t n = fread(text, 1, sizeof text - 1, caught);
    text[n] = '\0';
    fclose(caught);
    return text;
}

static const char mark_begin[] = "[DEBUG TENON] version " TN_VERSION_STRING ", process ";

/* The same behind the mark that stage lines begin with. */
static const char *caught_stages(void)
{
    const char *text = caught_text();
    if (!*text)
        return text;
    EXPECT_EQ_INT(strncmp(text, mark_begin, sizeof mark_begin - 1), 0);
    const char *end = strchr(text, '\n');
    return end ? end + 1 : text;
}

/* ---- kernels of aten::neg on a device: every convention once ---- */

static tn_keyset below(tn_call *call)
{
    tn_keyset ks = tn_call_keys(call);
    return ks & tn_keyset_full_after(tn_keyset_highest(ks));
}

static tn_status redispatch_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    return tni_re_neg(call, below(call), self, out);
}

static tn_status redispatch_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    return tn_call_redispatch(call, below(call), args, rets);
}

/* Calls t::inner boxed. */
static tn_status backend(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    tn_value arg = tn_value_tensor(self), ret;
    (void)call;
    tn_key_guard guard =
        tn_exclude_keys(tn_keyset_of(TN_KEY_TRACER) | tn_keyset_of(TN_KEY_AUTOGRAD_FUNCTIONALITY));
    tn_status st = tn_op_call(kit_op("t::inner"), &arg, 1, &ret);
    tn_keys_restore(guard);
    if (st == TN_OK)
        *out = ret.u.tensor;
    return st;
}

typedef struct stack_of_layers {
    kit k;
    tn_library *aten;
    tn_tensor *t;
} stack_of_layers;

/* Tracer passes on boxed, AutogradPrivateUse1 typed, PrivateUse1 calls t::inner, which has a kernel
 * for PrivateUse1. */
static stack_of_layers layers_open(void)
{
    stack_of_layers l = {.k = kit_open()};
    tn_kernel tracer = TN_KERNEL_INIT(redispatch_boxed);
    tn_kernel autograd = tn_kernel_neg(redispatch_typed, "x.c", 1);
    tn_kernel device = tn_kernel_neg(backend, "x.c", 2);
    kit_def(&l.k, "inner(Tensor x) -> Tensor");
    kit_impl(&l.k, "inner", TN_KEY_PRIVATE1, "i");
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, "x.c", 1, &l.aten));
    ASSERT_OK(tn_library_impl(l.aten, "neg", TN_KEY_TRACER, &tracer, NULL));
    ASSERT_OK(tn_library_impl(l.aten, "neg", TN_KEY_AUTOGRAD_PRIVATE1, &autograd, NULL));
    ASSERT_OK(tn_library_impl(l.aten, "neg", TN_KEY_PRIVATE1, &device, NULL));
    l.t = kit_tensor(kit_keys(TN_KEY_PRIVATE1) | tn_keyset_of(TN_KEY_TRACER) |
                     tn_keyset_of(TN_KEY_AUTOGRAD_PRIVATE1));
    return l;
}

static void layers_close(stack_of_layers *l)
{
    tn_tensor_unref(l->t);
    tn_library_close(l->aten);
    kit_close(&l->k);
}

static tn_status negate(const stack_of_layers *l)
{
    tn_tensor *out = NULL;
    tn_status st = tn_neg(l->t, &out);
    tn_tensor_unref(out);
    return st;
}

/* ---- the trace ---- */

static const char expected_trace[] =
    " [call] op=[aten::neg], key=[Tracer]\n"
    "  [redispatchBoxed] op=[aten::neg], key=[AutogradPrivateUse1]\n"
    "   [redispatch] op=[aten::neg], key=[PrivateUse1]\n"
    "    [callBoxed] op=[t::inner], key=[PrivateUse1]\n";

TEST(the_trace_has_the_references_format_and_an_indent_for_each_nested_hop)
{
    stack_of_layers l = layers_open();
    catch_stderr();
    tn_set_dispatch_trace(true);
    EXPECT_OK(negate(&l));
    EXPECT_STR(caught_text(), expected_trace);
    layers_close(&l);
}

TEST(the_last_line_names_operator_and_key_also_when_the_kernel_is_missing)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    catch_stderr();
    tn_set_dispatch_trace(true);
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run", kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    EXPECT_STR(caught_text(), " [callBoxed] op=[t::op], key=[CUDA]\n");
    kit_close(&k);
}

TEST(nothing_is_printed_when_nobody_watches)
{
    stack_of_layers l = layers_open();
    catch_stderr();
    EXPECT_OK(negate(&l));
    tn_set_dispatch_trace(true);
    tn_set_dispatch_trace(false);
    EXPECT_OK(tn_set_dispatch_debug("neg"));
    EXPECT_OK(tn_set_dispatch_debug(""));
    EXPECT_OK(negate(&l));
    EXPECT_STR(caught_text(), "");
    layers_close(&l);
}

TEST(a_call_by_key_is_not_traced)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, tn_value_take_tensor(kit_tensor(kit_keys(TN_KEY_CPU)))));
    catch_stderr();
    tn_set_dispatch_trace(true);
    EXPECT_OK(tn_op_call_for_key(op, TN_KEY_CPU, &stack));
    EXPECT_STR(caught_text(), "");
    tn_stack_clear(&stack);
    kit_close(&k);
}

/* Only when the test below starts this program again. */
TEST(helper_that_is_traced_by_its_environment)
{
    if (!getenv("TEST_TRACE_HELPER"))
        SKIP("runs as a part of the_environment_switches_the_trace_on");
    stack_of_layers l = layers_open();
    EXPECT_OK(negate(&l));
    layers_close(&l);
}

static void expect_of_environment(const char *settings, const char *wanted)
{
    char command[256], text[4096];
    snprintf(command, sizeof command,
             "TEST_TRACE_HELPER=1 %s %s helper_that_is_traced 2>&1 >/dev/null", settings,
             program_invocation_name);
    FILE *pipe = popen(command, "r");
    ASSERT(pipe != NULL);
    size_t n = fread(text, 1, sizeof text - 1, pipe);
    text[n] = '\0';
    EXPECT_EQ_INT(pclose(pipe), 0);
    test_note("%s", settings);
    EXPECT_STR(text, wanted);
}

TEST(the_environment_switches_the_trace_on)
{
    expect_of_environment("TENON_SHOW_DISPATCH_TRACE=1", expected_trace);
    expect_of_environment("TORCH_SHOW_DISPATCH_TRACE=1", expected_trace);
    expect_of_environment("TENON_SHOW_DISPATCH_TRACE=0 TORCH_SHOW_DISPATCH_TRACE=1", "");
    expect_of_environment("TENON_SHOW_DISPATCH_TRACE=yes", expected_trace);
    expect_of_environment("TENON_SHOW_DISPATCH_TRACE=perhaps",
                          "tenon: TENON_SHOW_DISPATCH_TRACE=perhaps is not understood: it takes 1, "
                          "true, on, yes, 0, false, off or no; it counts as 0\n");
    expect_of_environment("TENON_DISPATCH_DEBUG=0", "");
    expect_of_environment("TENON_DISPATCH_DEBUG=nothing_like_it", "");
}

TEST(a_filter_names_operators)
{
    static const struct {
        const char *filter, *name;
        bool wanted;
    } cases[] = {
        {"mm", "aten::mm", true},
        {"mm", "aten::mm.out", true},
        {"mm", "aten::addmm", true},
        {"mm", "aten::addmm_", true},
        {"mm", "aten::bmm", true},
        {"mm", "my::mm", true},
        {"mm", "aten::hamming_window", false},
        {"mm", "aten::lgamma", false},
        {"mm", "aten::matmul", false},
        {"mm", "aten::mm_backward", false},
        {"mm", "m", false},
        {"aten::mm", "aten::mm", true},
        {"aten::mm", "aten::mm.out", true},
        {"aten::mm", "aten::addmm", false},
        {"aten::mm", "my::mm", false},
        {"aten::mm", "xaten::mm", false},
        {"aten::mm.out", "aten::mm.out", true},
        {"aten::mm.out", "aten::mm", false},
        {"add_", "aten::add_.Tensor", true},
        {"add_", "aten::add.Tensor", false},
        {"*mm*", "aten::hamming_window", true},
        {"aten::conv*", "aten::convolution_backward", true},
        {"aten::conv*", "my::conv2d", false},
        {"conv?d", "aten::conv2d", true},
        {"conv?d", "aten::conv_tbc", false},
        {"my::*", "my::step", true},
        {"1", "aten::relu", true},
        {"all", "aten::relu", true},
        {"*", "aten::relu", true},
        {"mm,relu", "aten::relu", true},
        {"mm, relu", "aten::relu", true},
        {"mm,relu", "aten::tanh", false},
        {",", "aten::relu", false},
        {"a*b*c*d", "x::aabbccd", true},
        {"a*b*c*d", "x::aabbcce", false},
        {"", "aten::relu", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_note("%s and %s", cases[i].filter, cases[i].name);
        EXPECT(tni_stages_wanted(cases[i].filter, cases[i].name) == cases[i].wanted);
    }
}

/* ---- a listening observer ---- */

enum { MOST_EVENTS = 64 };
static struct {
    tn_event events[MOST_EVENTS];
    tn_keyset first_arg[MOST_EVENTS];
    int n;
} seen;

static void observe(void *ctx, const tn_event *event)
{
    EXPECT(ctx == &seen);
    EXPECT_EQ_INT(event->size, sizeof *event);
    if (seen.n == MOST_EVENTS)
        return;
    seen.first_arg[seen.n] = event->n_args ? event->arg_keys[0] : 0;
    seen.events[seen.n++] = *event;
}

static void stop_observing(void)
{
    (void)!tn_observe_thread(NULL, NULL);
}

static void start_observing(tn_observer_fn fn)
{
    seen.n = 0;
    ASSERT_OK(tn_observe_thread(fn, &seen));
    test_at_end(stop_observing);
}

/* ---- stage lines ---- */

#define ALL_KEYS   "DispatchKeySet(PrivateUse1, AutogradPrivateUse1, Tracer)"
#define LOWER_KEYS "DispatchKeySet(PrivateUse1, AutogradPrivateUse1)"

static const char expected_stages[] =
    "[DEBUG Dispatcher::call] op=aten::neg\n"
    "[DEBUG Dispatcher::call] dispatchKeySet=" ALL_KEYS "\n"
    "[DEBUG Dispatcher::call] About to call lookup()\n"
    "[DEBUG OperatorEntry::lookup] op=aten::neg, keyset=" ALL_KEYS "\n"
    "[DEBUG OperatorEntry::lookup] highest priority key=Tracer\n"
    "[DEBUG OperatorEntry::lookup] dispatch table index=114\n"
    "[DEBUG OperatorEntry::lookup] kernel.isValid=1, isValidUnboxed=0\n"
    "[DEBUG OperatorEntry::lookup] Returning kernel, about to call it\n"
    "[DEBUG Dispatcher::call] lookup() returned\n"
    "[DEBUG Dispatcher::call] About to call kernel.call<>() [fast path]\n"
    "[DEBUG KernelFunction::callBoxed] About to call boxed_kernel_func_.callBoxed()\n"
    "[DEBUG BoxedKernel::callBoxed] About to invoke (*boxed_kernel_func_)(...)\n"
    "[DEBUG Dispatcher::redispatchBoxed] op=aten::neg\n"
    "[DEBUG Dispatcher::redispatchBoxed] dispatchKeySet=" LOWER_KEYS "\n"
    "[DEBUG Dispatcher::redispatchBoxed] About to call entry.lookup()\n"
    "[DEBUG OperatorEntry::lookup] op=aten::neg, keyset=" LOWER_KEYS "\n"
    "[DEBUG OperatorEntry::lookup] highest priority key=AutogradPrivateUse1\n"
    "[DEBUG OperatorEntry::lookup] dispatch table index=109\n"
    "[DEBUG OperatorEntry::lookup] kernel.isValid=1, isValidUnboxed=1\n"
    "[DEBUG OperatorEntry::lookup] Returning kernel, about to call it\n"
    "[DEBUG Dispatcher::redispatchBoxed] lookup() returned\n"
    "[DEBUG Dispatcher::redispatchBoxed] About to call kernel.callBoxed() [fast path]\n"
    "[DEBUG KernelFunction::callBoxed] About to call boxed_kernel_func_.callBoxed()\n"
    "[DEBUG BoxedKernel::callBoxed] About to invoke (*boxed_kernel_func_)(...)\n"
    "[DEBUG Dispatcher::redispatch] op=aten::neg\n"
    "[DEBUG Dispatcher::redispatch] dispatchKeySet=DispatchKeySet(PrivateUse1)\n"
    "[DEBUG Dispatcher::redispatch] About to call entry.lookup()\n"
    "[DEBUG OperatorEntry::lookup] op=aten::neg, keyset=DispatchKeySet(PrivateUse1)\n"
    "[DEBUG OperatorEntry::lookup] highest priority key=PrivateUse1\n"
    "[DEBUG OperatorEntry::lookup] dispatch table index=13\n"
    "[DEBUG OperatorEntry::lookup] kernel.isValid=1, isValidUnboxed=1\n"
    "[DEBUG OperatorEntry::lookup] Returning kernel, about to call it\n"
    "[DEBUG Dispatcher::redispatch] lookup() returned\n"
    "[DEBUG Dispatcher::redispatch] About to call kernel.call<>() [fast path]\n"
    "[DEBUG Dispatcher::redispatch] kernel.call<>() RETURNED [fast path]\n"
    "[DEBUG BoxedKernel::callBoxed] (*boxed_kernel_func_)() RETURNED!\n"
    "[DEBUG KernelFunction::callBoxed] boxed_kernel_func_.callBoxed() RETURNED\n"
    "[DEBUG Dispatcher::redispatchBoxed] kernel.callBoxed() RETURNED [fast path]\n"
    "[DEBUG BoxedKernel::callBoxed] (*boxed_kernel_func_)() RETURNED!\n"
    "[DEBUG KernelFunction::callBoxed] boxed_kernel_func_.callBoxed() RETURNED\n"
    "[DEBUG Dispatcher::call] kernel.call<>() RETURNED [fast path]\n";

TEST(stage_lines_tell_each_stage_of_the_operators_that_the_filter_names)
{
    stack_of_layers l = layers_open();
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("aten::neg"));
    EXPECT_OK(negate(&l));
    EXPECT_STR(caught_stages(), expected_stages);
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("t::no_such"));
    EXPECT_OK(negate(&l));
    EXPECT_STR(caught_text(), "");
    layers_close(&l);
}

TEST(stage_lines_say_that_there_is_no_kernel)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("t::op"));
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run", kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    const char *text = caught_text();
    EXPECT_CONTAINS(text, "[DEBUG OperatorEntry::lookup] kernel.isValid=0, isValidUnboxed=0\n"
                          "[DEBUG OperatorEntry::lookup] No kernel, about to report it\n");
    EXPECT(!strstr(text, "RETURNED"));
    kit_close(&k);
}

TEST(trace_and_stage_lines_together_print_the_whole_set)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    catch_stderr();
    tn_set_dispatch_trace(true);
    EXPECT_OK(tn_set_dispatch_debug("t::op"));
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_CONTAINS(caught_text(),
                    "\n[DEBUG DISPATCHER] op=[t::op], full key set=DispatchKeySet(CPU)\n"
                    "[DEBUG Dispatcher::callBoxed] op=t::op\n");
    kit_close(&k);
}

static tn_status negate_below(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    return tni_re_neg(call, tn_call_keys(call), self, out);
}

TEST(stage_lines_say_that_a_redispatch_was_refused)
{
    kit k = kit_open();
    tn_library *aten;
    tn_kernel kernel = tn_kernel_neg(negate_below, "x.c", 1);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, "x.c", 1, &aten));
    ASSERT_OK(tn_library_impl(aten, "neg", TN_KEY_PRIVATE1, &kernel, NULL));
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_PRIVATE1)), *out = NULL;
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("neg"));
    EXPECT_FAIL(TN_RECURSION, "does not lower the key", tn_neg(t, &out));
    const char *text = caught_stages();
    EXPECT_CONTAINS(text, "[DEBUG OperatorEntry::lookup] dispatch table index=13\n"
                          "[DEBUG Dispatcher::redispatch] Refused: RECURSION\n");
    EXPECT_CONTAINS(text, "[DEBUG Dispatcher::call] kernel.call<>() RETURNED [fast path]\n");
    tn_tensor_unref(t);
    tn_library_close(aten);
    kit_close(&k);
}

TEST(the_path_with_callbacks_is_the_slow_one)
{
    stack_of_layers l = layers_open();
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("aten::neg"));
    start_observing(observe);
    EXPECT_OK(negate(&l));
    stop_observing();
    const char *text = caught_stages();
    EXPECT_CONTAINS(text, "About to call kernel.call<>() [slow path]\n");
    EXPECT_CONTAINS(text, "kernel.call<>() RETURNED [slow path]\n");
    EXPECT(!strstr(text, "fast path"));
    layers_close(&l);
}

/* The lines about one slot, behind the entry line of @p key. */
static void expect_path(const char *text, const char *key, const char *path)
{
    char wanted[512];
    snprintf(wanted, sizeof wanted,
             "[DEBUG OperatorEntry::computeDispatchTableEntryWithDebug] op=t::op, "
             "dispatch_key=%s\n[DEBUG computeDispatchTableEntry] Path %s",
             key, path);
    EXPECT_CONTAINS(text, wanted);
}

TEST(a_registration_tells_for_each_slot_which_path_it_took)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("t::op"));
    kit_impl(&k, "op", TN_KEY_CPU, "direct");
    const char *text = caught_stages();
    int slots = 0;
    for (const char *at = text; (at = strstr(at, "EntryWithDebug]")); at++)
        slots++;
    EXPECT_EQ_INT(slots, TNI_NUM_SLOTS);
    expect_path(text, "CPU", "1: Direct registration: ");
    expect_path(text, "BackendSelect",
                "3: Backend fallback: tni_fallthrough_fn, registered at "
                "src/runtime/boot.c:");
    expect_path(text, "CUDA", "4: Missing kernel\n");

    static const struct {
        tn_key key;
        const char *slot, *path;
    } composites[] = {
        {TN_KEY_COMPOSITE_IMPLICIT, "Meta", "2.3: CompositeImplicitAutograd: "},
        {TN_KEY_COMPOSITE_EXPLICIT, "Meta", "2.2: CompositeExplicitAutograd: "},
        {TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL, "Meta",
         "2.1: CompositeExplicitAutogradNonFunctional: "},
        {TN_KEY_AUTOGRAD, "AutogradCPU", "2.4: Autograd: "},
        {TN_KEY_FUNCTORCH_BATCHED_DECOMPOSITION, "FuncTorchBatched",
         "2.5: FuncTorchBatchedDecomposition: "},
    };
    for (size_t i = 0; i < sizeof composites / sizeof composites[0]; i++) {
        catch_stderr();
        EXPECT_OK(tn_set_dispatch_debug("t::op"));
        kit_impl(&k, "op", composites[i].key, "composite");
        expect_path(caught_stages(), composites[i].slot, composites[i].path);
    }
    /* Asking is not registering. */
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("t::op"));
    EXPECT_OK(tn_check_invariants());
    EXPECT_STR(caught_text(), "");
    kit_close(&k);
}

static void negate_on_a_thread(int i, void *arg)
{
    (void)i;
    EXPECT_OK(negate(arg));
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

TEST(a_mark_tells_whose_lines_follow_when_the_thread_changes)
{
    stack_of_layers l = layers_open();
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("aten::neg"));
    EXPECT_OK(negate(&l));
    run_threads(1, negate_on_a_thread, &l);
    EXPECT_OK(negate(&l));
    EXPECT_EQ_INT(count_of(caught_text(), mark_begin), 3);
    /* The trace alone begins as the reference's does. */
    catch_stderr();
    tn_set_dispatch_trace(true);
    EXPECT_OK(negate(&l));
    run_threads(1, negate_on_a_thread, &l);
    const char *text = caught_text();
    EXPECT_EQ_INT(strncmp(text, expected_trace, sizeof expected_trace - 1), 0);
    EXPECT_EQ_INT(count_of(text, mark_begin), 1);
    layers_close(&l);
}

static const char expected_matmul[] =
    "[DEBUG _matmul_impl] About to call at::mm WITHOUT NoGradGuard...\n"
    "[DEBUG _matmul_impl] Calling at::mm(t1_folded, *t2) instead...\n"
    "[DEBUG _matmul_impl] t1_folded.key_set() = DispatchKeySet(Meta, ADInplaceOrView, "
    "AutogradMeta)\n"
    "[DEBUG _matmul_impl] t2->key_set() = DispatchKeySet(Meta, ADInplaceOrView, AutogradMeta)\n"
    "[DEBUG _matmul_impl] t1_folded.has_storage() = 1\n"
    "[DEBUG _matmul_impl] t2->has_storage() = 1\n"
    "[DEBUG _matmul_impl] t1_folded.is_python_dispatch() = 0\n"
    "[DEBUG _matmul_impl] t2->is_python_dispatch() = 0\n"
    "[DEBUG _matmul_impl] GradMode::is_enabled() = 1\n"
    "[DEBUG _matmul_impl] Now calling at::mm...\n"
    "[DEBUG _matmul_impl STDERR] === CALLING at::mm NOW ===\n"
    "[DEBUG Dispatcher::call] op=aten::mm\n"
    "[DEBUG Dispatcher::call] dispatchKeySet=DispatchKeySet(Meta, AutogradMeta)\n"
    "[DEBUG Dispatcher::call] About to call lookup()\n";

TEST(a_folded_matmul_tells_what_it_hands_to_mm)
{
    const int64_t three[] = {2, 4, 16}, two[] = {16, 16}, bad[] = {3, 3};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_META);
    tn_tensor *a, *b, *c, *out = NULL;
    ASSERT_OK(tn_empty(three, 3, &opts, TN_FORMAT_NONE, &a));
    ASSERT_OK(tn_empty(two, 2, &opts, TN_FORMAT_NONE, &b));
    ASSERT_OK(tn_empty(bad, 2, &opts, TN_FORMAT_NONE, &c));
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("mm"));
    EXPECT_OK(tn_matmul(a, b, &out));
    const char *text = caught_stages();
    EXPECT_EQ_INT(strncmp(text, expected_matmul, sizeof expected_matmul - 1), 0);
    EXPECT_CONTAINS(text,
                    "[DEBUG TORCH_META_FUNC(mm)] ========== ENTERED MM META FUNCTION ==========\n"
                    "[DEBUG TORCH_META_FUNC(mm)] self shape: [8, 16]\n"
                    "[DEBUG TORCH_META_FUNC(mm)] mat2 shape: [16, 16]\n"
                    "[DEBUG TORCH_META_FUNC(mm)] Meta function complete\n");
    EXPECT_CONTAINS(text, "[DEBUG _matmul_impl] at::mm RETURNED!\n");
    tn_tensor_unref(out);
    out = NULL;

    bool was = tn_set_grad_enabled(false);
    catch_stderr();
    EXPECT_OK(tn_set_dispatch_debug("mm"));
    EXPECT_FAIL(TN_INVALID, "cannot be multiplied", tn_matmul(a, c, &out));
    tn_set_grad_enabled(was);
    text = caught_stages();
    EXPECT(!strstr(text, "WITHOUT NoGradGuard"));
    EXPECT_CONTAINS(text, "[DEBUG _matmul_impl] Inside NoGradGuard, calling at::mm...\n");
    EXPECT_CONTAINS(text, "[DEBUG _matmul_impl] at::mm RETURNED an error: INVALID\n");
    EXPECT(!strstr(text, "Meta function complete"));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(c);
}

TEST(a_filter_that_is_too_long_is_refused)
{
    char filter[200];
    memset(filter, 'x', sizeof filter - 1);
    filter[sizeof filter - 1] = '\0';
    EXPECT_FAIL(TN_VALUE, "shorter than 128 characters, not 199", tn_set_dispatch_debug(filter));
}

/* ---- observers ---- */

TEST(an_observer_is_told_of_each_hop_and_of_each_return)
{
    stack_of_layers l = layers_open();
    start_observing(observe);
    EXPECT_OK(negate(&l));
    stop_observing();
    static const struct {
        tn_event_kind kind;
        int depth;
        const char *op;
        tn_key key;
        unsigned slot;
    } wanted[] = {
        {TN_EVENT_CALL, 1, "aten::neg", TN_KEY_TRACER, 114},
        {TN_EVENT_REDISPATCH_BOXED, 2, "aten::neg", TN_KEY_AUTOGRAD_PRIVATE1, 109},
        {TN_EVENT_REDISPATCH, 3, "aten::neg", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_CALL_BOXED, 4, "t::inner", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_RETURN, 4, "t::inner", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_RETURN, 3, "aten::neg", TN_KEY_PRIVATE1, 13},
        {TN_EVENT_RETURN, 2, "aten::neg", TN_KEY_AUTOGRAD_PRIVATE1, 109},
        {TN_EVENT_RETURN, 1, "aten::neg", TN_KEY_TRACER, 114},
    };
    ASSERT_EQ_INT(seen.n, sizeof wanted / sizeof wanted[0]);
    for (int i = 0; i < seen.n; i++) {
        const tn_event *e = &seen.events[i];
        test_note("event %d", i);
        EXPECT_EQ_INT(e->kind, wanted[i].kind);
        EXPECT_EQ_INT(e->depth, wanted[i].depth);
        EXPECT_STR(tn_op_name(e->op), wanted[i].op);
        EXPECT_EQ_INT(e->key, wanted[i].key);
        EXPECT_EQ_INT(e->slot, wanted[i].slot);
        EXPECT_EQ_INT(tn_keyset_highest(e->keys), e->key);
        EXPECT_EQ_INT(e->included, tn_included_keys());
        EXPECT_EQ_INT(e->status, TN_OK);
        if (e->kind == TN_EVENT_RETURN)
            continue;
        EXPECT_EQ_INT(e->n_args, 1);
        EXPECT_EQ_INT(seen.first_arg[i], tni_keys(l.t));
        bool call = e->kind == TN_EVENT_CALL || e->kind == TN_EVENT_CALL_BOXED;
        EXPECT(call ? e->keys ==
                          (((tni_keys(l.t) | e->included) & ~(e->excluded & ~TNI_BACKEND_MASK)) &
                           e->mask)
                    : e->mask == TNI_KS_FULL);
    }
    /* ADInplaceOrView is included, and the mask takes it out again. */
    EXPECT(seen.events[0].included & ~seen.events[0].mask & TNI_KS_ADINPLACE_OR_VIEW);
    EXPECT(seen.events[3].excluded & tn_keyset_of(TN_KEY_TRACER)); /* the backend's guard */
    EXPECT(seen.events[7].nanoseconds >= seen.events[4].nanoseconds);
    EXPECT(seen.events[7].nanoseconds < 3600000000000u);
    layers_close(&l);
}

TEST(an_observer_hears_how_a_call_failed)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    start_observing(observe);
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run", kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    stop_observing();
    EXPECT_EQ_INT(seen.n, 2);
    EXPECT_EQ_INT(seen.events[1].kind, TN_EVENT_RETURN);
    EXPECT_EQ_INT(seen.events[1].status, TN_UNSUPPORTED);
    kit_close(&k);
}

TEST(an_observer_gets_the_keys_of_every_tensor_of_a_list)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x, int n, Tensor?[] ts, Tensor? y) -> ()");
    kit_impl(&k, "op", TN_KEY_META, "m");
    tn_tensor *a = kit_tensor(kit_keys(TN_KEY_CPU)), *b = kit_tensor(kit_keys(TN_KEY_META));
    tn_tensor *const list[] = {b, NULL, a};
    tn_value args[4] = {tn_value_tensor(a), tn_value_int(1), tn_value_tensors(list, 3),
                        tn_value_none()};
    start_observing(observe);
    EXPECT_OK(tn_op_call(op, args, 4, NULL));
    stop_observing();
    EXPECT_EQ_INT(seen.events[0].n_args, 3);
    EXPECT_EQ_INT(seen.first_arg[0], tni_keys(a));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    kit_close(&k);
}

static void call_from_observer(void *ctx, const tn_event *event)
{
    observe(ctx, event);
    int depth = tn_dispatch_depth();
    tn_op *op;
    EXPECT_OK(kit_call("t::other", kit_keys(TN_KEY_CPU)));
    EXPECT_FAIL(TN_INVALID, "no::such", tn_op_find("no::such", &op));
    EXPECT_EQ_INT(tn_dispatch_depth(), depth);
}

TEST(what_an_observer_calls_is_not_observed_and_its_failures_are_its_own)
{
    kit k = kit_open();
    kit_def(&k, "op(Tensor x) -> Tensor");
    kit_def(&k, "other(Tensor x) -> Tensor");
    kit_impl(&k, "other", TN_KEY_CPU, "o");
    start_observing(call_from_observer);
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run 't::op'", kit_call("t::op", kit_keys(TN_KEY_CUDA)));
    tn_clear_error();
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    EXPECT_EQ_INT(tn_last_status(), TN_OK);
    stop_observing();
    EXPECT_EQ_INT(seen.n, 4);
    kit_close(&k);
}

static void leave_at_first_event(void *ctx, const tn_event *event)
{
    observe(ctx, event);
    EXPECT_OK(tn_observe_thread(NULL, NULL));
}

TEST(an_observer_may_leave_inside_an_event)
{
    stack_of_layers l = layers_open();
    start_observing(leave_at_first_event);
    EXPECT_OK(negate(&l));
    EXPECT_EQ_INT(seen.n, 1);
    EXPECT_OK(negate(&l));
    EXPECT_EQ_INT(seen.n, 1);
    layers_close(&l);
}

static tn_status observe_from_here(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_OK(tn_observe_thread(observe, &seen));
    return tn_value_copy(&args[0], &rets[0]);
}

TEST(an_observer_that_comes_inside_a_call_does_not_hear_of_its_return)
{
    kit k = kit_open();
    kit_def_with(&k, "op(Tensor x) -> Tensor", observe_from_here, NULL);
    catch_stderr();
    seen.n = 0;
    tn_set_dispatch_trace(true); /* so that the frame is watched */
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    stop_observing();
    release_stderr();
    fclose(caught);
    EXPECT_EQ_INT(seen.n, 0);
    kit_close(&k);
}

static void observe_and_end(int i, void *arg)
{
    (void)i;
    (void)arg;
    EXPECT_OK(tn_observe_thread(observe, &seen));
}

TEST(a_thread_that_ends_takes_its_observer_with_it)
{
    stack_of_layers l = layers_open();
    seen.n = 0;
    run_threads(1, observe_and_end, NULL);
    EXPECT_OK(negate(&l));
    EXPECT_EQ_INT(seen.n, 0);
    EXPECT_EQ_INT((tni_watching & ~TNI_WATCH_RECORD), 0); /* and the common path is taken again */
    layers_close(&l);
}
