/* SPDX-License-Identifier: MIT */
/* tests/ops/test_grad_allocations.c: whatever allocation fails while a call is recorded or its
 * backward pass runs, the call or the pass says so and nothing leaks: one golden case of each
 * operator. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/test.h"
#include "ops/golden.h"

enum { MOST = 4096 };

static char seen[MOST][96];
static int n_seen;

/* The first small case of each operator; not those that write, whose argument would change. */
static bool is_wanted(const golden_case *c)
{
    size_t n = strcspn(c->op, ".");
    if (!c->grad || c->exception || c->op[n - 1] == '_' || strlen(c->values) > 1500)
        return false;
    for (int i = 0; i < n_seen; i++)
        if (strcmp(seen[i], c->op) == 0)
            return false;
    if (n_seen < MOST)
        snprintf(seen[n_seen++], sizeof seen[0], "%s", c->op);
    return true;
}

static tn_status run(const golden_case *c, const golden_call *call)
{
    tn_value rets[8];
    memset(rets, 0, sizeof rets);
    tn_status status = tn_op_call(call->op, call->args, call->schema->nargs, rets);
    if (status == TN_OK)
        status = golden_gradients(c, call, rets, tn_op_num_returns(call->op), &rets[7]);
    for (int i = 0; i < 8; i++)
        tn_value_clear(&rets[i]);
    return status;
}

static void fail_each(const golden_case *c, const golden_call *call)
{
    tn_status rc = TN_INTERNAL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = run(c, call);
        if (rc != TN_OK)
            EXPECT_EQ_INT(rc, TN_NOMEM);
    }
}

static void check_case(const golden_file *file, const golden_case *c)
{
    golden_call call;
    if (golden_call_make(file, c, false, &call)) {
        test_note("%s(%s)", c->op, c->arguments);
        EXPECT_OK(run(c, &call)); /* what is made once is made now */
        fail_each(c, &call);      /* what is made where something failed, too */
        int64_t before = tni_test_live;
        fail_each(c, &call);
        EXPECT_EQ_INT(tni_test_live, before);
    }
    golden_call_clear(&call);
}

static void check_file(const char *folder, const char *name)
{
    char path[2048];
    golden_file file;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (golden_open(path, &file))
        for (int i = 0; i < file.n_cases; i++)
            if (is_wanted(&file.cases[i]))
                check_case(&file, &file.cases[i]);
    golden_close(&file);
}

TEST(each_allocation_failing_in_any_gradient_leaks_nothing)
{
    char folder[1024];
    const char *root = getenv("TENON_SOURCE_DIR");
    snprintf(folder, sizeof folder, "%s/tests/golden/data", root ? root : ".");
    DIR *dir = opendir(folder);
    ASSERT(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, "grad_", 5) == 0)
            check_file(folder, entry->d_name);
    closedir(dir);
    printf("%d operators\n", n_seen);
    EXPECT(n_seen > 300);
}
