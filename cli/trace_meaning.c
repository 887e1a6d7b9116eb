/* SPDX-License-Identifier: MIT */
/* cli/trace_meaning.c: the table from last lines to meanings. The report that asks for it has one;
 * this is it, corrected by what the code really does between two lines. */
#include "trace_meaning.h"

#include <stddef.h>
#include <string.h>

#define DOCTOR \
    "run `tenon doctor PID` on the process: it says which frame each thread is in, and since when"
#define NATIVE "take native stacks of all threads: gdb -p PID -batch -ex 'thread apply all bt'"
#define PYSPY  "see who holds the interpreter's lock: py-spy dump --pid PID"
#define MORE   "use a filter that matches more operators: TENON_DISPATCH_DEBUG=*"
#define MORE_TORCH                                                                             \
    "let other operators print lines, too: those of the report are printed only where \"mm\" " \
    "is in the name"
#define OUTPUT                                                                                  \
    "make sure that nothing is lost between the program and the file: one stream, unbuffered, " \
    "2>&1"

/* Two readings of one last line. */
typedef struct row {
    const char *where, *document;
    struct {
        const char *reading, *check[3];
    } tenon, torch;
} row;

static const row rows[STAGES] = {
    [STAGE_BEFORE_MM] =
        {"entering the dispatcher",
         "\"Hang is in entering dispatcher\"",
         {"Tenon has nothing to wait for between this line and the dispatcher's first: the "
          "operator's handle is a "
          "constant. Either the thread was stopped just here, or the next lines are filtered away.",
          {DOCTOR, "use a filter that names the operator: TENON_DISPATCH_DEBUG=mm", OUTPUT}},
         {"Between this line and the next lies only the making of the operator's handle, once in "
          "the process. It "
          "waits if another thread is inside that once, or if it calls itself; or the next line "
          "was printed and "
          "not flushed; or the lines are compiled into some of the libraries only.",
          {NATIVE, OUTPUT, "check that every library was rebuilt with the lines"}}},
    [STAGE_ENTERED] = {"entering the dispatcher",
                       "\"Hang is in entering dispatcher\"",
                       {"The key set is being computed: a few instructions on bits, without a "
                        "lock. The thread cannot wait here.",
                        {DOCTOR, OUTPUT, NULL}},
                       {"The key set is being computed: a few instructions on bits, without a "
                        "lock. It cannot wait here.",
                        {OUTPUT, NATIVE, NULL}}},
    [STAGE_BEFORE_LOOKUP] =
        {"in lookup",
         "\"Hang is in lookup function\"",
         {"A lookup reads one slot of a table, without a loop or a lock. It cannot wait.",
          {DOCTOR, OUTPUT, NULL}},
         {"A lookup has no loop and no lock. Only the report of a missing kernel can be slow here: "
          "it computes "
          "and prints a table of 138 rows, and may call Python.",
          {NATIVE, OUTPUT, NULL}}},
    [STAGE_IN_LOOKUP] =
        {"in lookup",
         "\"Hang is in lookup function\"",
         {"A lookup reads one slot of a table, without a loop or a lock. It cannot wait.",
          {DOCTOR, OUTPUT, NULL}},
         {"A lookup has no loop and no lock. It cannot wait between these two lines.",
          {OUTPUT, NATIVE, NULL}}},
    [STAGE_INDEX] = {"in the validity check",
                     "\"Hang is in kernel validity check\"",
                     {"The check is two comparisons of pointers: nothing can wait here. What the "
                      "thread did next printed "
                      "nothing, or was lost.",
                      {DOCTOR, OUTPUT, NULL}},
                     {"Impossible: the check is two comparisons of pointers. The next line was "
                      "lost, or the process was "
                      "stopped from outside.",
                      {OUTPUT, NATIVE, NULL}}},
    [STAGE_CHECKED] = {"between lookup and the kernel",
                       NULL,
                       {"The kernel is found and about to be called. Only an observer of this "
                        "thread can run in between "
                        "([slow path]): it may call anything.",
                        {DOCTOR, "switch the observer off and run again", NULL}},
                       {"The kernel is found. With callbacks of a profiler (slow path) their code "
                        "runs here, and one that takes a "
                        "lock and dispatches again waits for itself.",
                        {"run without the profiler", NATIVE, NULL}}},
    [STAGE_NO_KERNEL] =
        {"reporting a missing kernel",
         NULL,
         {"There is no kernel for this key. The call returns an error that lists those that exist; "
          "it prints no "
          "further line.",
          {"read the error that the call returned", "tenon ops OPERATOR shows its table", NULL}},
         {"There is no kernel for this key; the report that follows computes a table of 138 rows.",
          {"read the exception", NULL, NULL}}},
    [STAGE_REFUSED] = {"refused",
                       NULL,
                       {"The redispatch would not lower the key and would loop: Tenon refused it "
                        "with an error that prints the "
                        "cycle.",
                        {"read the error that the call returned", NULL, NULL}},
                       {"The call was refused.", {"read the exception", NULL, NULL}}},
    [STAGE_BEFORE_KERNEL] = {"inside the kernel",
                             NULL,
                             {"The kernel is running: a typed one is entered by a plain call. It "
                              "is the kernel that has not returned.",
                              {DOCTOR, "see whose kernel it is: tenon ops OPERATOR", NATIVE}},
                             {"The kernel is running. An autograd kernel goes on by a redispatch "
                              "without lines of its own: the "
                              "next line to expect is the next lookup.",
                              {NATIVE, PYSPY, NULL}}},
    [STAGE_BEFORE_BOXED] = {"in kernel invocation",
                            "\"Hang is in kernel invocation\"",
                            {"The boxed kernel is about to be called; between this line and the "
                             "kernel nothing can wait.",
                             {DOCTOR, "see whose kernel it is: tenon ops OPERATOR", NATIVE}},
                            {"A boxed kernel is being called. For Meta in PyTorch that is the "
                             "Python one: it takes the interpreter's "
                             "lock, converts the arguments and runs Python.",
                             {PYSPY, NATIVE,
                              "look for a thread that holds the lock and waits for this one"}}},
    [STAGE_IN_BOXED] =
        {"inside the kernel",
         "\"Hang is inside the kernel itself\"",
         {"A boxed kernel was entered and has not returned: it computes, waits for a lock, or "
          "calls on.",
          {DOCTOR, "see whose kernel it is: tenon ops OPERATOR", NATIVE}},
         {"Right: the kernel was entered and has not returned. Boxed only at Meta means the kernel "
          "registered by "
          "Python, which overrides the C++ one at import: its first act is to wait for the "
          "interpreter's lock. "
          "That no TORCH_META_FUNC line follows is normal then, and says nothing about routing.",
          {PYSPY,
           "look for a thread that holds the lock and waits for this one (a join, a backward pass)",
           NATIVE}}},
    [STAGE_BOXED_RETURNED] =
        {"returning",
         NULL,
         {"The kernel has returned; its results are being checked and arguments released.",
          {DOCTOR, NATIVE, NULL}},
         {"The kernel has returned. What is left is releasing objects: one that Python owns needs "
          "the "
          "interpreter's lock.",
          {PYSPY, NATIVE, NULL}}},
    [STAGE_META_ENTERED] =
        {"inside the meta kernel",
         NULL,
         {"The meta function checks sizes and computes the result's: it cannot wait.",
          {DOCTOR, OUTPUT, NULL}},
         {"Routing worked: the meta function was reached. It only checks sizes and cannot wait.",
          {OUTPUT, NATIVE, NULL}}},
    [STAGE_PYTHON_META] =
        {"inside the meta kernel",
         NULL,
         {"A meta kernel that is written in Python runs: it has the interpreter's lock.",
          {PYSPY, DOCTOR, NATIVE}},
         {"Routing worked, and the interpreter's lock was had: the meta kernel that is written in "
          "Python runs. It only computes sizes; what it calls may wait.",
          {PYSPY, NATIVE, NULL}}},
    [STAGE_META_DONE] = {"after the meta kernel",
                         NULL,
                         {"The shape is known; the result is being made, or the kernel computes.",
                          {DOCTOR, NATIVE, NULL}},
                         {"Routing worked, and the shape is known. What follows is making the "
                          "result and returning.",
                          {NATIVE, NULL, NULL}}},
    [STAGE_CPU_ENTERED] =
        {"inside the CPU kernel",
         NULL,
         {"The product is being computed, by the thread and its pool. It waits where BLAS waits.",
          {DOCTOR, "run with TENON_NUM_THREADS=1", NATIVE}},
         {"The product is being computed. It can wait only in BLAS: a fork with busy threads is "
          "the usual reason.",
          {NATIVE, "run with OMP_NUM_THREADS=1", NULL}}},
    [STAGE_CPU_DONE] = {"after the CPU kernel",
                        NULL,
                        {"The product is there; the call is returning.", {DOCTOR, NATIVE, NULL}},
                        {"The product is there; the call is returning.", {NATIVE, NULL, NULL}}},
    [STAGE_RETURNED] =
        {"in the caller",
         NULL,
         {"What was called has returned. The call around it has not: its kernel goes on without a "
          "line.",
          {DOCTOR, MORE, NATIVE}},
         {"What was called has returned. The call around it has not.",
          {NATIVE, PYSPY, MORE_TORCH}}},
    [STAGE_MM_RETURNED] =
        {"in the caller",
         NULL,
         {"mm has returned to matmul. What it does next prints nothing unless the filter names it.",
          {DOCTOR, MORE, NATIVE}},
         {"mm has returned to matmul: the hang that was reported is not this one.",
          {NATIVE, PYSPY, MORE_TORCH}}},
    [STAGE_REGISTERING] =
        {"registering",
         NULL,
         {"A table is being computed, which happens when kernels are registered, never in a call. "
          "The registry's "
          "lock is held: other registrations wait, calls do not.",
          {"see whether the reader of stderr has stopped", DOCTOR, NULL}},
         {"A table is being computed, which happens when kernels are registered, never in a call. "
          "It waits only "
          "for the global lock of registrations.",
          {"see whether a static constructor or an import registers kernels on another thread",
           NATIVE, NULL}}},
    [STAGE_DISPATCHED] = {"in this dispatch or behind it",
                          NULL,
                          {"The dispatch trace prints a line before a kernel is looked up and none "
                           "when it returns: this call is "
                           "the last that began, and the thread is in it, or in one around it.",
                           {"run again with stage lines, which also tell of returns (with Tenon: "
                            "TENON_DISPATCH_DEBUG=mm)",
                            DOCTOR, NATIVE}},
                          {"The dispatch trace prints a line before a kernel is looked up and none "
                           "when it returns: this call is "
                           "the last that began, and the thread is in it, or in one around it.",
                           {NATIVE, PYSPY, NULL}}},
};

static const trace_meaning at_rest = {
    "outside the dispatcher",
    NULL,
    "Every call that began in this trace has returned. If the program hangs, it hangs outside the "
    "dispatcher, or in "
    "an operator that the filter does not name.",
    {MORE, NATIVE, OUTPUT}};

static const trace_meaning nothing = {
    "not known", NULL, "This thread printed no line that says where it is.", {OUTPUT, NULL, NULL}};

trace_meaning trace_means(const trace *t, const trace_thread *thread)
{
    if (thread->stage == STAGE_NONE)
        return nothing;
    bool torch = t->program == PROGRAM_PYTORCH;
    if (trace_at_rest(thread)) {
        trace_meaning m = at_rest;
        if (torch)
            m.check[0] = MORE_TORCH;
        return m;
    }
    const row *r = &rows[thread->stage];
    trace_meaning m = {.where = r->where,
                       .document = r->document,
                       .reading = torch ? r->torch.reading : r->tenon.reading};
    memcpy(m.check, torch ? r->torch.check : r->tenon.check, sizeof m.check);
    return m;
}
