/* SPDX-License-Identifier: MIT */
/* tests/observe/profile_kit.h: recordings to look at, and finding events in them. */
#ifndef OBSERVE_PROFILE_KIT_H
#define OBSERVE_PROFILE_KIT_H

#include <string.h>

#include "harness/test.h"
#include "tenon/ops.h"
#include "tenon/profiler.h"

#define UNUSED __attribute__((unused))

UNUSED static tn_tensor *tensor(tn_device device, int ndim, const int64_t *sizes)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(sizes, ndim, &opts, &t));
    return t;
}

UNUSED static tn_tensor *matrix(tn_device device, int64_t rows, int64_t columns)
{
    const int64_t sizes[] = {rows, columns};
    return tensor(device, 2, sizes);
}

UNUSED static void stop_quietly(void)
{
    (void)!tn_profiler_stop(NULL);
}

UNUSED static void start(bool shapes, bool memory, bool stack)
{
    tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
    o.shapes = shapes;
    o.memory = memory;
    o.stack = stack;
    ASSERT_OK(tn_profiler_start(&o));
    test_at_end(stop_quietly);
}

UNUSED static tn_profile *stop(void)
{
    tn_profile *p = NULL;
    ASSERT_OK(tn_profiler_stop(&p));
    return p;
}

UNUSED static tn_profile_event event(const tn_profile *p, size_t i)
{
    tn_profile_event e = {.size = sizeof e};
    ASSERT_OK(tn_profile_get_event(p, i, &e));
    return e;
}

/* The first event of this name, from @p from on. */
UNUSED static size_t find(const tn_profile *p, const char *name, size_t from)
{
    for (size_t i = from; i < tn_profile_num_events(p); i++) {
        if (strcmp(event(p, i).name, name) == 0)
            return i;
    }
    test_wrong(__FILE__, __LINE__, "no event %s", name);
    test_end();
}

#endif
