/* SPDX-License-Identifier: MIT */
/* held.c: Python objects that C holds: functions of hooks, what they packed, contexts of Functions.
 * A graph may be freed by a thread that does not have the interpreter lock and must not wait for
 * it: what it drops is queued, and goes when somebody has the lock. */
#include "grad.h"

#include <stdatomic.h>
#include <stdlib.h>

static _Atomic(tnpy_held *) waiting;

tnpy_held *tnpy_hold(PyObject *o)
{
    tnpy_held *held = malloc(sizeof *held);
    if (!held) {
        PyErr_NoMemory();
        return NULL;
    }
    Py_INCREF(o);
    *held = (tnpy_held){o, NULL, 0};
    return held;
}

static void let_go(tnpy_held *held)
{
    PyObject *o = held->object;
    if (!held->in_place)
        free(held);
    Py_DECREF(o);
}

void tnpy_drop_waiting(void)
{
    if (TNPY_LIKELY(atomic_load_explicit(&waiting, memory_order_relaxed) == NULL))
        return;
    tnpy_held *held = atomic_exchange_explicit(&waiting, NULL, memory_order_acquire);
    while (held) {
        tnpy_held *next = held->next;
        let_go(held);
        held = next;
    }
}

static int drop_later(void *ctx)
{
    (void)ctx;
    tnpy_drop_waiting();
    return 0;
}

void tnpy_drop(tnpy_held *held)
{
    if (!held)
        return;
    if (tnpy_has_lock()) {
        let_go(held);
        return;
    }
    if (!Py_IsInitialized())
        return; /* the interpreter took its objects with it */
    tnpy_held *head = atomic_load_explicit(&waiting, memory_order_relaxed);
    do
        held->next = head;
    while (!atomic_compare_exchange_weak_explicit(&waiting, &head, held, memory_order_release,
                                                  memory_order_relaxed));
    if (!head)
        (void)Py_AddPendingCall(drop_later, NULL); /* when that is full: with the next pass */
}

void tnpy_drop_any(void *held)
{
    tnpy_drop(held);
}
