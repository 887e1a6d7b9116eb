/* SPDX-License-Identifier: MIT */
/* tests/ops/test_derivatives.c: every operator of tests/ops/derivatives.txt, a list that the
 * reference was asked for, has a derivative: golden data holds gradients of it, which test_golden
 * compares; or, where a leaf cannot be its argument, a gradient of what it gave or wrote arrives at
 * its arguments, and tests/autograd compares it with difference quotients. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/test.h"
#include "ops/golden.h"
#include "ops/sampling.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

/* ---- operators with gradients in golden data ---- */

enum { MOST = 4096 };

static char shown[MOST][96];
static int n_shown;

static bool is_shown(const char *op)
{
    for (int i = 0; i < n_shown; i++)
        if (strcmp(shown[i], op) == 0)
            return true;
    return false;
}

static void read_file(const char *path)
{
    golden_file file;
    if (golden_open(path, &file))
        for (int i = 0; i < file.n_cases; i++) {
            const golden_case *c = &file.cases[i];
            bool tensors = c->grad && !c->exception && strchr(c->results, '[');
            if (tensors && !is_shown(c->op) && n_shown < MOST)
                snprintf(shown[n_shown++], sizeof shown[0], "%s", c->op);
        }
    golden_close(&file);
}

static void read_cases(const char *root)
{
    char folder[1024], path[2048];
    snprintf(folder, sizeof folder, "%s/tests/golden/data", root);
    DIR *dir = opendir(folder);
    if (!dir) {
        test_wrong(folder, 0, "cannot open it; set TENON_SOURCE_DIR");
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, "grad_", 5) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_file(path);
    }
    closedir(dir);
}

/* ---- gradients that arrive ---- */

enum { FEW = 64 };

typedef struct tensors {
    tn_tensor *at[FEW];
    int n;
} tensors;

static void keep(tensors *all, tn_tensor *t)
{
    if (t && all->n < FEW)
        all->at[all->n++] = tn_tensor_ref(t);
}

static void drop(tensors *all)
{
    while (all->n > 0)
        tn_tensor_unref(all->at[--all->n]);
}

/* A result of a call on a new leaf, which may be written. */
static tn_tensor *result_of_leaf(tn_tensor *t, void *leaves)
{
    tn_tensor *leaf = NULL, *result = NULL;
    if (t->device.type != TN_DEVICE_CPU || tn_dtype_is_integral((tn_dtype)t->dtype, true))
        return tn_tensor_ref(t);
    ASSERT_OK(tn_clone(t, TN_FORMAT_CONTIGUOUS, &leaf));
    ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    keep(leaves, leaf);
    ASSERT_OK(tn_clone(leaf, TN_FORMAT_PRESERVE, &result));
    tn_tensor_unref(leaf);
    return result;
}

/* The tensors that a backward pass can begin at. */
static void keep_differentiable(const tn_value *v, tensors *all)
{
    for (uint32_t k = 0; k < (v->tag == TN_TAG_TENSOR_LIST ? v->count : 1u); k++) {
        tn_tensor *t = v->tag == TN_TAG_TENSOR_LIST ? v->u.tensors[k]
                       : v->tag == TN_TAG_TENSOR    ? v->u.tensor
                                                    : NULL;
        if (t && tn_tensor_requires_grad(t))
            keep(all, t);
    }
}

static bool arrives_in(const char *op, const tni_sample *s)
{
    tensors leaves = {.n = 0}, roots = {.n = 0};
    tn_tensor *ones[FEW] = {NULL}, *grads[FEW] = {NULL};
    bundle args = sample_arguments(s), rets = {0};
    bundle_reform(&args, result_of_leaf, &leaves);
    bool arrives = false;
    if (sample_call(op, &args, &rets) == TN_OK) {
        for (int i = 0; i < rets.n; i++)
            keep_differentiable(&rets.v[i], &roots);
        if (rets.n == 0)
            keep_differentiable(&args.v[0], &roots); /* what it wrote */
        for (int i = 0; i < roots.n; i++)
            ASSERT_OK(tn_ones_like(roots.at[i], NULL, TN_FORMAT_PRESERVE, &ones[i]));
        tn_grad_opts opts = TN_GRAD_OPTS_INIT;
        opts.allow_unused = TN_BOOL_TRUE;
        if (roots.n && leaves.n &&
            tn_grad(roots.at, roots.n, leaves.at, leaves.n, ones, &opts, grads) == TN_OK)
            for (int i = 0; i < leaves.n; i++)
                arrives = arrives || grads[i] != NULL;
    }
    for (int i = 0; i < FEW; i++) {
        tn_tensor_unref(ones[i]);
        tn_tensor_unref(grads[i]);
    }
    bundle_clear(&rets);
    bundle_clear(&args);
    drop(&roots);
    drop(&leaves);
    return arrives;
}

static bool arrives(const char *op)
{
    char name[300];
    snprintf(name, sizeof name, "aten::%s", op);
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status == TN_OK && (strcmp(s->op, name) == 0 || strcmp(s->inplace, name) == 0) &&
            arrives_in(name, s))
            return true;
    }
    return false;
}

/* ---- the list ---- */

TEST(what_the_reference_differentiates_is_differentiated)
{
    char path[1024], line[256];
    const char *root = getenv("TENON_SOURCE_DIR");
    root = root ? root : ".";
    read_cases(root);
    snprintf(path, sizeof path, "%s/tests/ops/derivatives.txt", root);
    FILE *f = fopen(path, "r");
    ASSERT(f != NULL);
    int number = 0, wanted = 0, others = 0;
    while (fgets(line, sizeof line, f)) {
        number++;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "grad ", 5) != 0)
            continue;
        wanted++;
        if (is_shown(line + 5))
            continue;
        if (!arrives(line + 5))
            test_wrong(path, number, "%s: no gradient arrives, and none is in golden data",
                       line + 5);
        others++;
    }
    fclose(f);
    printf("%d operators of the list, %d of them not in golden data\n", wanted, others);
    EXPECT(wanted > 300);
}
