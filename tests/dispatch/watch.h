/* SPDX-License-Identifier: MIT */
/* tests/dispatch/watch.h: what tests of those who watch share: a call through several layers,
 * stderr caught, and an observer that remembers. */
#ifndef TEST_DISPATCH_WATCH_H
#define TEST_DISPATCH_WATCH_H

#include "dispatch/kit.h"

/* Stderr goes to a file until caught_text, or the end of the test. */
void catch_stderr(void);
/* What was written since catch_stderr. */
const char *caught_text(void);

/* Kernels of aten::neg on a device, every convention once: Tracer passes on boxed,
 * AutogradPrivateUse1 typed, PrivateUse1 calls t::inner, which has a kernel for PrivateUse1. */
typedef struct stack_of_layers {
    kit k;
    tn_library *aten;
    tn_tensor *t;
} stack_of_layers;

stack_of_layers layers_open(void);
void layers_close(stack_of_layers *l);
/* Call aten::neg through all of them. */
tn_status negate(const stack_of_layers *l);

/* Events that `observe` was told of since start_observing; `seen` is its context. */
enum { MOST_EVENTS = 64 };
typedef struct events_seen {
    tn_event events[MOST_EVENTS];
    tn_keyset first_arg[MOST_EVENTS];
    int n;
} events_seen;
extern events_seen seen;
void observe(void *ctx, const tn_event *event);
void start_observing(tn_observer_fn fn);
void stop_observing(void);

#endif
