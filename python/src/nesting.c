/* SPDX-License-Identifier: MIT */
/* nesting.c: how deep Python calls go in backward passes inside backward passes.
 *
 * Note [Nested passes and the recursion limit]
 * The interpreter counts calls that are inside each other, and stops at a limit that is meant for
 * runaway recursion. Hooks that run passes are inside each other as deep as the program wants
 * them, on one thread; a limit of 1000 would end them at a few hundred. So a pass that runs inside
 * another moves the limit, for as long as it runs, so that a hook has as many calls left as one of
 * the outermost pass had, and no more: for so many there is stack. How many are left is found out
 * by taking them, some microseconds. From 3.12 on calls of C functions, which are what can be
 * taken, count for themselves, to a limit of the interpreter's own (3.13: 10,000, which ends passes
 * inside passes at some thousands); there the frames since the pass around this one are counted.
 *
 * There is one limit for all threads: it is the highest that one of them needs, and the
 * program's own at least. To see what a thread needs it is set to that for a moment, in which no
 * other runs.
 *
 * The memory that they lie in is the library's business: tn_set_pass_stack_limit. From 3.14 on the
 * interpreter compares stack addresses with those of the thread's own stack, so there it gets no
 * other one. */
#include "grad.h"

#include <unistd.h>

enum { MOST_CALLS = 1000, HIGHEST_LIMIT = 100 * 1000 * 1000 };

/* A thread that runs a pass inside another. */
typedef struct nester {
    struct nester *next;
    int limit;       /* what it needs; 0: not in the list */
    int calls;       /* what hooks of its nested passes have left */
    PyObject *frame; /* from 3.12 on: what called its innermost nested pass; owned */
} nester;

static _Thread_local nester self;
/* The lock guards these. */
static nester *nesters;
static int own_limit, set_limit; /* the program's, and what we set it to */

/* How many calls this thread may be inside more than it is, as far as @p most. */
static int calls_left(int most)
{
    int n = 0;
    while (n < most && Py_EnterRecursiveCall("") == 0)
        n++;
    if (n < most)
        PyErr_Clear();
    for (int i = 0; i < n; i++)
        Py_LeaveRecursiveCall();
    return n;
}

/* How many Python calls lie between @p from (a frame; NULL: none) and @p outer, which is around it.
 */
static int calls_between(PyObject *from, PyObject *outer)
{
    int n = 0;
    Py_XINCREF(from);
    while (from && from != outer && n < MOST_CALLS) {
        PyObject *back = PyObject_GetAttrString(from, "f_back");
        Py_DECREF(from);
        from = back;
        n++;
    }
    Py_XDECREF(from);
    PyErr_Clear();
    return n;
}

/* What the program set meanwhile is its own; and after a fork this thread is alone. */
static void see_own_limit(void)
{
    static pid_t process;
    if (process != getpid()) {
        process = getpid();
        nesters = self.limit ? &self : NULL;
        self.next = NULL;
    }
    int limit = Py_GetRecursionLimit();
    if (!nesters || limit != set_limit)
        own_limit = set_limit = limit;
}

static void set_highest(void)
{
    set_limit = own_limit;
    for (const nester *n = nesters; n; n = n->next)
        if (n->limit > set_limit)
            set_limit = n->limit;
    Py_SetRecursionLimit(set_limit);
}

static void leave_list(void)
{
    nester **at = &nesters;
    while (*at && *at != &self)
        at = &(*at)->next;
    if (*at)
        *at = self.next;
}

void tnpy_pass_begins(tnpy_nesting *n)
{
    n->nested = tn_current_pass() != 0;
    if (TNPY_LIKELY(!n->nested))
        return;
    see_own_limit();
    n->outer_limit = self.limit;
    n->outer_frame = self.frame;
    int limit = self.limit > own_limit ? self.limit : own_limit;
    if (!self.limit) {
        self.calls = MOST_CALLS;
        self.next = nesters;
        nesters = &self;
    }
    int taken = 0; /* since the nested pass around this one */
    if (Py_Version >= 0x030C0000) {
        PyObject *frame = (PyObject *)PyEval_GetFrame();
        if (self.frame)
            taken = calls_between(frame, self.frame);
        self.frame = frame;
        Py_XINCREF(frame);
    } else {
        Py_SetRecursionLimit(limit);
        int left = calls_left(self.calls);
        if (!self.limit)
            self.calls = left;
        taken = self.calls - left;
    }
    self.limit = limit < HIGHEST_LIMIT ? limit + taken : limit;
    set_highest();
}

void tnpy_pass_ended(const tnpy_nesting *n)
{
    if (TNPY_LIKELY(!n->nested))
        return;
    see_own_limit();
    self.limit = n->outer_limit;
    Py_XDECREF(self.frame);
    self.frame = n->outer_frame;
    if (!self.limit)
        leave_list();
    set_highest();
}

void tnpy_set_up_nesting(void)
{
    if (Py_Version >= 0x030E0000)
        tn_set_pass_stack_limit(0);
}
