/* SPDX-License-Identifier: MIT */
/* What watching costs: a call of an operator that does nothing, and mm on meta, which is two
 * dispatches, with the trace, the stage lines and the profiler. stderr goes nowhere. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/profiler.h"
#include "timer.h"

static void must(tn_status st)
{
    if (st == TN_OK)
        return;
    printf("bench: %s\n", tn_last_error());
    exit(1);
}

static tn_tensor *randn(int ndim, const int64_t *sizes, tn_device device)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t;
    must(tn_randn(sizes, ndim, &opts, &t));
    return t;
}

static void begin(bool shapes, bool memory, bool stack)
{
    tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
    o.shapes = shapes;
    o.memory = memory;
    o.stack = stack;
    o.max_bytes = (size_t)4 << 30;
    must(tn_profiler_start(&o));
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    const int64_t s4[] = {4}, s8[] = {8, 16}, s16[] = {16, 16};
    tn_tensor *a = randn(1, s4, TN_CPU), *b = randn(1, s4, TN_CPU);
    tn_tensor *x = randn(2, s8, TN_META), *w = randn(2, s16, TN_META), *r;

    BENCH("noop_unwatched", must(tn__noop(a, b)););
    begin(false, false, false);
    BENCH("noop_profiled", must(tn__noop(a, b)););
    must(tn_profiler_stop(NULL));

    BENCH("mm_unwatched", must(tn_mm(x, w, &r)); tn_tensor_unref(r););
    begin(false, false, false);
    BENCH("mm_profiled", must(tn_mm(x, w, &r)); tn_tensor_unref(r););
    must(tn_profiler_stop(NULL));
    begin(true, true, true);
    BENCH("mm_profiled_all", must(tn_mm(x, w, &r)); tn_tensor_unref(r););
    must(tn_profiler_stop(NULL));

    int kept = dup(STDERR_FILENO), nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDERR_FILENO);
    tn_set_dispatch_trace(true);
    BENCH("mm_traced", must(tn_mm(x, w, &r)); tn_tensor_unref(r););
    tn_set_dispatch_trace(false);
    must(tn_set_dispatch_debug("mm"));
    BENCH("mm_stages", must(tn_mm(x, w, &r)); tn_tensor_unref(r););
    must(tn_set_dispatch_debug(NULL));
    dup2(kept, STDERR_FILENO);

    tn_tensor *all[] = {a, b, x, w};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_unref(all[i]);
    return 0;
}
