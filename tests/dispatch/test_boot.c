/* SPDX-License-Identifier: MIT */
/* The very first use of the library, in a process that has done nothing else. */
#include "harness/test.h"
#include "base/alloc.h"
#include "core/state.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"

/* The first call of a process registers everything; it may be tried again when memory ran out. */
static int boot_with_failures(void *arg)
{
    (void)arg;
    const int64_t sizes[] = {2, 2};
    int tries = 0;
    for (int64_t fail_at = 0;; fail_at += 1 + fail_at / 8) {
        tn_tensor *t = NULL;
        tni_alloc_watch(fail_at, true);
        tn_status st = tn_zeros(sizes, 2, NULL, &t);
        tni_alloc_unwatch();
        tries++;
        if (st == TN_OK) {
            tn_tensor_unref(t);
            break;
        }
        EXPECT_EQ_INT(st, TN_NOMEM);
        if (tries > 1000)
            return 1;
    }
    EXPECT(tries > 5);
    EXPECT_OK(tn_check_invariants());
    return 0;
}

TEST(the_first_call_of_a_process_can_be_tried_again)
{
    ASSERT_EQ_INT(tni_tls.limit, 0); /* nobody has dispatched here */
    EXPECT_EQ_INT(run_in_child(boot_with_failures, NULL, 60), 0);
}

static void first_call(int i, void *arg)
{
    (void)i;
    (void)arg;
    const int64_t sizes[] = {2, 2};
    tn_tensor *a = NULL, *b = NULL;
    EXPECT_OK(tn_ones(sizes, 2, NULL, &a));
    EXPECT_OK(tn_mm(a, a, &b));
    EXPECT(b && ((const float *)tn_tensor_data(b))[0] == 2.0F);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(sixty_four_threads_may_make_it_together)
{
    run_threads(64, first_call, NULL);
    EXPECT_OK(tn_check_invariants());
}
