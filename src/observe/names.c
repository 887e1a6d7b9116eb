/* SPDX-License-Identifier: MIT */
/* observe/names.c: the record's table of names: what operators, kernels and nodes are called, and
 * where they come from. Entries of what can be unregistered have a text of fixed room, so that they
 * can be used again; a reader prefers the newest entry of an address. */
#include "observe/flight.h"

#include <pthread.h>
#include <string.h>
#include "observe/layout.h"

enum { ROOM = 240 }; /* bytes for the texts of a name that may go */

static struct {
    pthread_mutex_t lock;
    uint64_t serial;
    uint32_t free;         /* index + 1 of the first entry that can be used again */
    const char *last_file; /* many kernels of one file come one after the other */
    uint32_t last_file_at;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tni_flight_names_lock(void)
{
    tni_mutex_lock_known(&names.lock, "the recorder's names");
}

void tni_flight_names_unlock(void)
{
    tni_mutex_unlock(&names.lock);
}

void tni_flight_names_forked(void)
{
    pthread_mutex_init(&names.lock, NULL);
}

static tni_flight_name *entries(tni_flight_header *h)
{
    return (tni_flight_name *)(void *)((char *)h + TNI_AT_NAMES);
}

static char *texts(tni_flight_header *h)
{
    return (char *)h + TNI_AT_TEXT;
}

/* Offset of @p n fresh bytes of text, 0 when there are none. */
static uint32_t take_text(tni_flight_header *h, size_t n)
{
    if (n > (size_t)TNI_FLIGHT_TEXT - h->text_nbytes)
        return 0;
    uint32_t at = h->text_nbytes;
    h->text_nbytes += (uint32_t)n;
    return at;
}

static uint32_t keep(tni_flight_header *h, const char *text)
{
    size_t n = strlen(text) + 1;
    uint32_t at = take_text(h, n);
    if (at)
        memcpy(texts(h) + at, text, n);
    return at;
}

static uint32_t keep_file(tni_flight_header *h, const char *file)
{
    if (!file || !file[0])
        return 0;
    if (file != names.last_file) {
        names.last_file_at = keep(h, file);
        names.last_file = file;
    }
    return names.last_file_at;
}

/* An entry whose texts have room; NULL when the table is full. Free ones are chained: `line` is the
 * index + 1 of the next. */
static tni_flight_name *reusable(tni_flight_header *h)
{
    if (names.free) {
        tni_flight_name *e = &entries(h)[names.free - 1];
        names.free = e->line;
        return e;
    }
    uint32_t at = h->n_names < TNI_FLIGHT_NAMES ? take_text(h, ROOM) : 0;
    if (!at)
        return NULL;
    tni_flight_name *e = &entries(h)[h->n_names];
    e->room = ROOM;
    e->text = at;
    atomic_thread_fence(memory_order_release);
    h->n_names++;
    return e;
}

static uint32_t add_for_good(tni_flight_header *h, int kind, const void *address, const char *text,
                             const char *file, int line)
{
    if (h->n_names == TNI_FLIGHT_NAMES)
        return 0;
    tni_flight_name *e = &entries(h)[h->n_names];
    *e = (tni_flight_name){.address = (uintptr_t)address,
                           .text = keep(h, text),
                           .file = keep_file(h, file),
                           .line = (uint32_t)line,
                           .kind = (uint16_t)kind,
                           .serial = ++names.serial};
    if (!e->text)
        return 0;
    atomic_thread_fence(memory_order_release);
    return ++h->n_names;
}

static uint32_t add_for_now(tni_flight_header *h, int kind, const void *address, const char *text,
                            const char *file, int line)
{
    tni_flight_name *e = reusable(h);
    if (!e)
        return 0;
    char *to = texts(h) + e->text;
    size_t n = strnlen(text, ROOM / 2 - 1), rest = ROOM - n - 2;
    memcpy(to, text, n);
    to[n] = '\0';
    e->file = 0;
    if (file && file[0]) {
        size_t all = strlen(file), m = all < rest ? all : rest; /* the end of a path says more */
        memcpy(to + n + 1, file + all - m, m);
        to[n + 1 + m] = '\0';
        e->file = e->text + (uint32_t)n + 1;
    }
    e->line = (uint32_t)line;
    e->kind = (uint16_t)kind;
    e->serial = ++names.serial;
    atomic_thread_fence(memory_order_release);
    e->address = (uintptr_t)address;
    return (uint32_t)(e - entries(h)) + 1;
}

uint32_t tni_flight_name_add_locked(int kind, const void *address, const char *text,
                                    const char *file, int line, bool for_good)
{
    tni_flight_header *h = tni_flight_head();
    if (!h || !text || !text[0])
        return 0;
    return (for_good ? add_for_good : add_for_now)(h, kind, address, text, file, line);
}

uint32_t tni_flight_name_add(int kind, const void *address, const char *text, const char *file,
                             int line, bool for_good)
{
    tni_flight_names_lock();
    uint32_t name = tni_flight_name_add_locked(kind, address, text, file, line, for_good);
    tni_flight_names_unlock();
    return name;
}

void tni_flight_name_drop(uint32_t name)
{
    tni_flight_header *h = tni_flight_head();
    if (!h || !name)
        return;
    tni_flight_names_lock();
    tni_flight_name *e = &entries(h)[name - 1];
    if (e->address && e->room) {
        e->address = 0;
        e->line = names.free;
        names.free = name;
    }
    tni_flight_names_unlock();
}

void tni_flight_know_slow(tni_flight_thread *thread, const char *name)
{
    thread->known_names[(uintptr_t)name >> 3 & 31] = (uintptr_t)name;
    tni_flight_header *h = tni_flight_head();
    if (!h)
        return;
    tni_flight_names_lock();
    bool known = false;
    for (uint32_t i = h->n_names; !known && i-- > 0;) {
        const tni_flight_name *e = &entries(h)[i];
        known = e->address == (uintptr_t)name && e->kind == TNI_NAME_NODE &&
                strncmp(texts(h) + e->text, name, ROOM / 2 - 1) == 0;
    }
    if (!known)
        tni_flight_name_add_locked(TNI_NAME_NODE, name, name, NULL, 0, false);
    tni_flight_names_unlock();
}
