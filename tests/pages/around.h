/* SPDX-License-Identifier: MIT */
/* tests/pages/around.h: what the fragments of C in docs/user take for granted: headers, small
 * tensors by the names that the pages use, and functions of their readers. */
#ifndef TESTS_PAGES_AROUND_H
#define TESTS_PAGES_AROUND_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenon/autograd.h>
#include <tenon/dispatch.h>
#include <tenon/fake.h>
#include <tenon/kernels.h>
#include <tenon/mode.h>
#include <tenon/ops.h>
#include <tenon/profiler.h>
#include <tenon/recorder.h>

static tn_tensor *a, *b, *x, *w, *y, *loss, *target, *weights;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static tn_tensor *ones(int ndim, int64_t n, int64_t m)
{
    tn_tensor *t;
    if (tn_ones((int64_t[]){n, m}, ndim, NULL, &t) != TN_OK)
        abort();
    return t;
}

/* @p page and @p number: which fragment. */
static void begin(const char *page, int number)
{
    const int is_mm = page[0] == 'c' && number == 0; /* two that do not fit */
    a = ones(2, 2, 3);
    b = is_mm ? ones(2, 4, 5) : ones(1, 4, 1);
    x = ones(2, 2, 3);
    w = ones(2, 4, 3);
    target = ones(2, 2, 4);
    weights = ones(2, 768, 768);
    if (tn_tensor_set_requires_grad(w, true) != TN_OK)
        abort();
    tn_clear_error();
}

static tn_status squash_cpu(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

static void train(void)
{
    tn_tensor *z;
    if (tn_mm(a, target, &z) == TN_OK) /* does not fit: the page prints what failed */
        abort();
    tn_clear_error();
}

#endif
