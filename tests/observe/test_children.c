/* SPDX-License-Identifier: MIT */
/* tests/observe/test_children.c: a thread that waits for the end of another process: which one is
 * told, whether it uses Tenon or not. */
#define _GNU_SOURCE
#include <sys/prctl.h>
#include <time.h>

#include "kit.h"
#include "observe/proc.h"

static tn_op *stays;

static tn_status only_stays(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    kit_stay();
    return TN_OK;
}

/* What the child of the kernel does: nothing, in another program or in an operator; it ends with
 * its parent. */
static void be_child(bool in_operator)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (in_operator)
        (void)!kit_call(stays, kit_ones(TN_CPU));
    execlp("sleep", "sleep", "1000", (char *)NULL);
    _exit(1);
}

static int grandchildren[2]; /* their numbers, for the test */
static bool uses_tenon, any;

static tn_status waits_for_child(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args, (void)rets;
    pid_t child = fork();
    if (child == 0)
        be_child(uses_tenon);
    (void)!write(grandchildren[1], &child, sizeof child);
    kit_ready();
    while (waitpid(any ? -1 : child, NULL, 0) < 0)
        ;
    return TN_OK;
}

static void run(void *arg)
{
    (void)arg;
    stays = kit_op("stays", TN_KEY_CPU, only_stays);
    tn_op *op = kit_op("waits", TN_KEY_CPU, waits_for_child);
    (void)!kit_call(op, kit_ones(TN_CPU));
}

static void check(const char *next)
{
    char waits[64], asks[64];
    pid_t grandchild = 0;
    ASSERT(pipe(grandchildren) == 0);
    pid_t child = kit_begin(run, NULL);
    ASSERT(read(grandchildren[0], &grandchild, sizeof grandchild) == sizeof grandchild);
    snprintf(asks, sizeof asks, next, (int)grandchild);
    snprintf(waits, sizeof waits, "waits for the end of its child %d", (int)grandchild);
    KIT_EXPECT_ALL(child, false, asks, waits, "inside the kernel of kit::waits");
    KIT_EXPECT_ALL(child, true, "\"waits_for_child\": ");
    kit_end(child);
    close(grandchildren[0]);
    close(grandchildren[1]);
}

TEST(a_kernel_that_waits_for_a_child_names_it)
{
    uses_tenon = any = false;
    check("find out why %d does not end");
}

TEST(a_child_that_uses_tenon_is_to_be_asked_next)
{
    uses_tenon = true;
    any = false;
    check("the child uses Tenon, too: tenon doctor %d");
}

TEST(who_waits_for_any_child_and_has_one_waits_for_that)
{
    uses_tenon = false;
    any = true;
    check("find out why %d does not end");
}

TEST(many_children_are_counted_and_those_in_an_operator_come_first)
{
    enum { CHILDREN = TNI_SEEN_CHILDREN + 4 };
    pid_t pids[CHILDREN];
    int held[2];
    char letter;
    ASSERT(pipe(held) == 0);
    for (int i = 0; i < CHILDREN; i++) {
        pids[i] = fork();
        if (pids[i] == 0) { /* the last two have a record, the last is in an operator */
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (i < CHILDREN - 2)
                execlp("cat", "cat", (char *)NULL);
            tn_tensor_unref(kit_ones(TN_CPU));
            (void)!write(held[1], "r", 1);
            if (i == CHILDREN - 1)
                (void)!kit_call(kit_op("stays", TN_KEY_CPU, only_stays), kit_ones(TN_CPU));
            kit_stay();
        }
    }
    for (int i = 0; i < 2; i++)
        (void)!read(held[0], &letter, 1);
    tni_seen seen;
    bool found = false; /* those that run another program may not have begun to */
    for (int i = 0; !found && i < 600; i++) {
        memset(&seen, 0, sizeof seen);
        tni_proc_children((int)getpid(), &seen);
        found =
            seen.children[0].pid == (uint32_t)pids[CHILDREN - 1] && seen.children[0].in_operator &&
            seen.children[1].pid == (uint32_t)pids[CHILDREN - 2] && !seen.children[1].in_operator &&
            !seen.children[2].has_record && strcmp(seen.children[2].name, "cat") == 0;
        if (!found)
            usleep(100000);
    }
    EXPECT(found);
    EXPECT_EQ_INT(seen.n_children, CHILDREN);
    EXPECT_STR(seen.children[2].name, "cat");
    for (int i = 0; i < CHILDREN; i++)
        kit_end(pids[i]);
    close(held[0]);
    close(held[1]);
}
