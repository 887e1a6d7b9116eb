/* SPDX-License-Identifier: MIT */
/* repro/repro.h: what the reproducers share: tensors, the clock, and how they say what they found.
 *
 * The documents that report the hang expect [2, 4, 16] from the meta device in less than a
 * millisecond. Every program here makes that call, measures it, and fails when either is not so.
 * Its last line is the one that `tenon repro` prints. */
#ifndef REPRO_H
#define REPRO_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"

enum { LIMIT_NS = 1000 * 1000, CALLS = 200 };

/* What a timeout names as the place where the program stood. */
static const char *volatile repro_step = "start";

static inline void must(tn_status status, const char *what)
{
    if (status == TN_OK)
        return;
    printf("FAIL: %s: %s\n", what, tn_last_error());
    exit(1);
}

static inline void expect(bool holds, const char *what)
{
    if (holds)
        return;
    printf("FAIL: %s\n", what);
    exit(1);
}

static inline tn_tensor *randn(int ndim, const int64_t *sizes, tn_device device)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t = NULL;
    must(tn_randn(sizes, ndim, &opts, &t), "randn");
    return t;
}

static inline uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* "torch.Size([2, 4, 16])" without the class: "[2, 4, 16]". */
static inline const char *shape_text(const tn_tensor *t, char *buffer, size_t n)
{
    size_t at = (size_t)snprintf(buffer, n, "[");
    for (int i = 0; i < tn_tensor_ndim(t) && at < n; i++)
        at += (size_t)snprintf(buffer + at, n - at, "%s%" PRId64, i ? ", " : "",
                               tn_tensor_sizes(t)[i]);
    if (at < n)
        snprintf(buffer + at, n - at, "]");
    return buffer;
}

static inline bool is_2_4_16(const tn_tensor *t)
{
    const int64_t *s = tn_tensor_sizes(t);
    return tn_tensor_ndim(t) == 3 && s[0] == 2 && s[1] == 4 && s[2] == 16;
}

/* One call of something that gives [2, 4, 16]: how long it took at first, and at best. */
typedef struct timing {
    uint64_t first, best;
} timing;

typedef tn_status (*product_fn)(void *ctx, tn_tensor **out);

static inline timing time_product(product_fn fn, void *ctx, const char *what)
{
    timing t = {0, UINT64_MAX};
    for (int i = 0; i < CALLS; i++) {
        tn_tensor *out = NULL;
        uint64_t start = now_ns();
        tn_status status = fn(ctx, &out);
        uint64_t took = now_ns() - start;
        must(status, what);
        expect(is_2_4_16(out), "the result must be [2, 4, 16]");
        tn_tensor_unref(out);
        t.first = i ? t.first : took;
        t.best = took < t.best ? took : t.best;
    }
    return t;
}

/* The last line; the exit status of main. */
static inline int verdict(timing t)
{
    bool fast = t.best < LIMIT_NS;
    printf("%s: [2, 4, 16] in %.2f us (first call %.2f us, wanted under 1 ms)\n",
           fast ? "PASS" : "FAIL", (double)t.best / 1e3, (double)t.first / 1e3);
    return fast ? 0 : 1;
}

#endif
