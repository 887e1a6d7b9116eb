/* SPDX-License-Identifier: MIT */
/* base/mark.c: writing marks: see base/mark.h. A mark's kind is written last when it begins and
 * first when it ends, so that a reader never sees one half made. */
#include "base/mark.h"

#include <string.h>

__attribute__((tls_model("initial-exec"))) _Thread_local tni_thread_marks *tni_my_marks;

static _Atomic(tni_marks_fn) find_place;
static _Atomic(tni_still_fn) is_still_there;

void tni_set_marks_fn(tni_marks_fn fn, tni_still_fn still)
{
    atomic_store_explicit(&is_still_there, still, memory_order_release);
    atomic_store_explicit(&find_place, fn, memory_order_release);
}

tni_thread_marks *tni_marks_self(void)
{
    if (TNI_LIKELY(tni_my_marks != NULL))
        return tni_my_marks;
    tni_marks_fn fn = atomic_load_explicit(&find_place, memory_order_acquire);
    return fn ? fn() : NULL;
}

static void write_mark(tni_mark *m, tni_wait_kind kind, uint64_t what, const char *text, bool stamp)
{
    m->kind = TNI_WAIT_NONE;
    atomic_thread_fence(memory_order_release);
    size_t n = text ? strnlen(text, TNI_MARK_TEXT - 1) : 0;
    memcpy(m->text, text ? text : "", n);
    m->text[n] = '\0';
    m->what = what;
    m->since = stamp ? tni_coarse_ns() : 0;
    atomic_thread_fence(memory_order_release);
    m->kind = kind;
}

void tni_wait_begin(tni_wait_kind kind, uint64_t what, const char *text, bool stamp)
{
    tni_thread_marks *m = tni_marks_self();
    if (!m)
        return;
    write_mark(&m->wait, kind, what, text, stamp);
}

void tni_wait_end(void)
{
    if (tni_my_marks)
        tni_my_marks->wait.kind = TNI_WAIT_NONE;
}

void tni_hold_begin(tni_wait_kind kind, uint64_t what, const char *text)
{
    tni_thread_marks *m = tni_marks_self();
    if (!m)
        return;
    if (m->n_held < TNI_MARK_HELD)
        write_mark(&m->held[m->n_held], kind, what, text, true);
    m->n_held++;
}

void tni_hold_end(tni_wait_kind kind, uint64_t what)
{
    tni_thread_marks *m = tni_my_marks;
    if (!m || m->n_held == 0)
        return;
    uint32_t n = m->n_held < TNI_MARK_HELD ? m->n_held : TNI_MARK_HELD;
    for (uint32_t i = n; i-- > 0;) {
        if (m->held[i].kind != (uint32_t)kind || m->held[i].what != what)
            continue;
        for (; i + 1 < n; i++)
            m->held[i] = m->held[i + 1];
        m->held[n - 1].kind = TNI_WAIT_NONE;
        m->n_held--;
        return;
    }
    if (m->n_held > TNI_MARK_HELD)
        m->n_held--; /* one of those that found no place */
}

_Atomic bool tni_waits_can_end;
_Atomic int tni_interrupts;

bool tni_take_interrupt(void)
{
    tni_thread_marks *m = tni_my_marks;
    if (!m || !atomic_load_explicit(&m->interrupt, memory_order_relaxed))
        return false;
    uint64_t request = atomic_exchange(&m->interrupt, 0);
    if (request == 0)
        return false;
    atomic_fetch_sub(&tni_interrupts, 1);
    tni_still_fn still = atomic_load_explicit(&is_still_there, memory_order_acquire);
    return !still || still(request);
}

void tni_mutex_lock(pthread_mutex_t *mutex, const char *text)
{
    if (pthread_mutex_trylock(mutex) != 0) {
        tni_wait_begin(TNI_WAIT_LOCK, (uintptr_t)mutex, text, true);
        pthread_mutex_lock(mutex);
        tni_wait_end();
    }
    tni_hold_begin(TNI_WAIT_LOCK, (uintptr_t)mutex, text);
}

void tni_mutex_lock_known(pthread_mutex_t *mutex, const char *text)
{
    if (tni_my_marks)
        tni_mutex_lock(mutex, text);
    else
        pthread_mutex_lock(mutex);
}

void tni_mutex_unlock(pthread_mutex_t *mutex)
{
    tni_hold_end(TNI_WAIT_LOCK, (uintptr_t)mutex);
    pthread_mutex_unlock(mutex);
}
