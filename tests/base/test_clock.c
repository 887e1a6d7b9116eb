/* SPDX-License-Identifier: MIT */
/* What base/clock.h promises. */
#include "harness/test.h"

#include <sys/auxv.h>
#include "base/clock.h"

static uint64_t library_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Between two readings of the C library's clock. */
static bool agrees(void)
{
    uint64_t before = library_ns(), ours = tni_coarse_ns(), after = library_ns();
    return before <= ours && ours <= after;
}

TEST(the_coarse_clock_is_the_c_librarys_before_and_after_it_is_found)
{
    EXPECT(agrees());
    tni_clock_find();
    for (int i = 0; i < 1000; i++)
        EXPECT(agrees());
}

TEST(the_kernels_function_is_found_where_there_is_one)
{
    if (getauxval(AT_SYSINFO_EHDR) == 0)
        SKIP("the kernel maps no functions into this process");
    tni_clock_find();
    EXPECT(atomic_load(&tni_clock) != clock_gettime);
}
