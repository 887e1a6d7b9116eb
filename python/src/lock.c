/* SPDX-License-Identifier: MIT */
/* lock.c: the interpreter lock. C code never waits for it in order to free something: what a thread
 * without the lock lets go of is queued, and released by the next one that has it. */
#include "tnpy.h"

#include <stdatomic.h>

#include "tenon/recorder.h"

/* Set while this thread has given the lock away by tnpy_unlock. */
static _Thread_local bool unlocked;
static _Atomic(tnpy_tensor_object *) waiting;
/* Threads between tnpy_unlock and tnpy_lock. Changed with the lock alone. */
static int n_unlocked;

PyThreadState *tnpy_unlock(void)
{
    n_unlocked++;
    PyThreadState *state = PyEval_SaveThread();
    unlocked = true;
    return state;
}

bool tnpy_all_locked(void)
{
    return n_unlocked == 0;
}

void tnpy_lock(PyThreadState *state)
{
    unlocked = false;
    tn_wait_begin(TN_WAIT_INTERPRETER, NULL, ""); /* some stores; no look at the clock */
    PyEval_RestoreThread(state);
    n_unlocked--;
    tn_wait_end();
    tnpy_drain();
}

PyGILState_STATE tnpy_lock_any(void)
{
    bool waits = !tnpy_has_lock();
    if (waits)
        tn_wait_begin(TN_WAIT_INTERPRETER, NULL, "");
    PyGILState_STATE state = PyGILState_Ensure();
    if (waits)
        tn_wait_end();
    unlocked = false;
    return state;
}

void tnpy_unlock_any(PyGILState_STATE state)
{
    unlocked = state == PyGILState_UNLOCKED;
    PyGILState_Release(state);
}

int tnpy_has_lock(void)
{
    return !unlocked && Py_IsInitialized() && PyGILState_GetThisThreadState() != NULL;
}

void tnpy_drain(void)
{
    if (TNPY_LIKELY(atomic_load_explicit(&waiting, memory_order_relaxed) == NULL))
        return;
    tnpy_tensor_object *o = atomic_exchange_explicit(&waiting, NULL, memory_order_acquire);
    while (o) {
        tnpy_tensor_object *next = o->next;
        o->next = NULL;
        Py_DECREF((PyObject *)o);
        o = next;
    }
}

static int drain_later(void *ctx)
{
    (void)ctx;
    tnpy_drain();
    return 0;
}

void tnpy_release(PyObject *o)
{
    if (tnpy_has_lock()) {
        Py_DECREF(o);
        return;
    }
    if (!Py_IsInitialized())
        return; /* the interpreter is gone, and took its objects with it */
    tnpy_tensor_object *t = (tnpy_tensor_object *)(void *)o;
    tnpy_tensor_object *head = atomic_load_explicit(&waiting, memory_order_relaxed);
    do {
        t->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&waiting, &head, t, memory_order_release,
                                                    memory_order_relaxed));
    if (!head)
        (void)Py_AddPendingCall(drain_later,
                                NULL); /* when its table is full, others drain as well */
}
