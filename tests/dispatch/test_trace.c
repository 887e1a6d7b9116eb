/* SPDX-License-Identifier: MIT */
/* What somebody who watches reads: the trace and the stage lines, letter by letter. */
#define _GNU_SOURCE /* program_invocation_name */
#include "dispatch/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dispatch/call.h"
#include "gen/redispatch.h"
#include "dispatch/stages.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"

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

/* ---- stage lines ---- */

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
