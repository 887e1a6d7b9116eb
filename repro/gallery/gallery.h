/* SPDX-License-Identifier: MIT */
/* repro/gallery/gallery.h: what the planted faults share: an operator to plant one in, and a word
 * on stdout that says that the program has come to its fault. Programs end by themselves after a
 * while, so that nothing is left behind when nobody watches. */
#ifndef GALLERY_H
#define GALLERY_H

#ifndef _GNU_SOURCE
#    define _GNU_SOURCE /* gettid */
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"

#define UNUSED __attribute__((unused))

UNUSED static void must(tn_status status)
{
    if (status == TN_OK)
        return;
    fprintf(stderr, "%s\n", tn_last_error());
    exit(1);
}

/* "ready PID": the reader may look now. */
UNUSED static void ready(void)
{
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
}

/* The call was refused with an error instead of hanging: that is the verdict. */
UNUSED static int refused(tn_status status)
{
    printf("refused %s: %s\n", tn_status_name(status), tn_last_error());
    return status == TN_OK;
}

UNUSED static tn_tensor *ones(int64_t n, tn_device device)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t;
    must(tn_ones(&n, 1, &opts, &t));
    return t;
}

/* Define gallery::NAME(Tensor x) -> Tensor with one kernel for @p key. */
UNUSED static tn_op *plant(const char *name, tn_key key, tn_boxed_fn fn, const char *kernel_name,
                           int line)
{
    static tn_library *lib;
    char schema[128], full[128];
    if (!lib)
        must(tn_library_open(TN_LIBRARY_DEF, "gallery", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    snprintf(schema, sizeof schema, "%s(Tensor x) -> Tensor", name);
    snprintf(full, sizeof full, "gallery::%s", name);
    must(tn_library_def(lib, schema, NULL, NULL));
    tn_kernel kernel = TN_KERNEL_INIT(fn);
    kernel.name = kernel_name;
    kernel.file = "gallery.c";
    kernel.line = line;
    must(tn_library_impl(lib, name, key, &kernel, NULL));
    tn_op *op;
    must(tn_op_find(full, &op));
    return op;
}

UNUSED static tn_status call(tn_op *op, tn_tensor *x)
{
    tn_value arg = tn_value_tensor(x), ret;
    tn_status status = tn_op_call(op, &arg, 1, &ret);
    if (status == TN_OK)
        tn_value_clear(&ret);
    return status;
}

/* Nothing here runs longer than that. */
UNUSED static void limit_life(void)
{
    alarm(300);
}

#endif
