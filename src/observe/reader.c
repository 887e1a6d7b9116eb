/* SPDX-License-Identifier: MIT */
/* observe/reader.c: copying a record out of a file that may be anything: see reader.h. */
#define _GNU_SOURCE
#include "observe/reader.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/alloc.h"
#include "tenon/dispatch.h"

enum { TRIES = 6, MOST_DEPTH = 1 << 20 };

typedef struct source {
    int fd;
    uint64_t nbytes;
} source;

/* Whether the file goes that far. The program may just have made it longer: it does so before it
 * writes what lies there. */
static bool reaches(source *s, uint64_t at, uint64_t n)
{
    struct stat st;
    if (at <= s->nbytes && n <= s->nbytes - at)
        return true;
    if (fstat(s->fd, &st) == 0 && st.st_size > 0)
        s->nbytes = (uint64_t)st.st_size;
    return at <= s->nbytes && n <= s->nbytes - at;
}

/* True when all of it could be read. */
static bool get(source *s, uint64_t at, void *to, size_t n)
{
    if (!reaches(s, at, n))
        return false;
    char *p = to;
    while (n) {
        ssize_t got = pread(s->fd, p, n, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        p += got;
        at += (uint64_t)got;
        n -= (size_t)got;
    }
    return true;
}

static bool header_is_sane(const tni_flight_header *h)
{
    return memcmp(h->magic, TNI_FLIGHT_MAGIC, sizeof h->magic) == 0 &&
           h->version == TNI_FLIGHT_VERSION && h->header_nbytes == sizeof *h &&
           h->frame_nbytes == sizeof(tni_flight_frame) &&
           h->thread_nbytes == sizeof(tni_flight_thread) &&
           h->pass_nbytes == sizeof(tni_flight_pass) && h->ring == TNI_FLIGHT_RING;
}

/* How many bytes the character at @p p has in UTF-8; 0 when it is none, or one that a terminal
 * obeys. */
static size_t plain_character(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80)
        return (p[0] && p[0] < 0x20) || p[0] == 0x7f ? 0 : 1;
    size_t nbytes = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < nbytes)
        return 0;
    uint32_t code = p[0] & (0x7fu >> nbytes);
    for (size_t i = 1; i < nbytes; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (p[i] & 0x3fu);
    }
    bool is_longer_than_needed = nbytes > 2 && code < (nbytes == 3 ? 0x800u : 0x10000u);
    bool is_half = code >= 0xd800 && code < 0xe000;
    return code < 0xa0 || is_longer_than_needed || is_half || code > 0x10ffff ? 0 : nbytes;
}

void tni_plain_text(char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t nbytes = plain_character((const unsigned char *)text + i, n - i);
        if (!nbytes)
            text[i] = '?';
        i += nbytes ? nbytes : 1;
    }
}

static void end_text(char *text, size_t n)
{
    text[n - 1] = '\0';
    tni_plain_text(text, n);
}

/* ---- names ---- */

/* As much as there is: a file may have been cut. */
static uint64_t available(source *s, uint64_t at, uint64_t wanted)
{
    if (reaches(s, at, wanted))
        return wanted;
    return at >= s->nbytes ? 0 : s->nbytes - at;
}

static tn_status read_names(source *s, tni_seen *seen)
{
    const tni_flight_header *h = &seen->head;
    uint32_t n = h->n_names < TNI_FLIGHT_NAMES ? h->n_names : TNI_FLIGHT_NAMES;
    uint64_t fits = available(s, h->names_at, n * sizeof *seen->names) / sizeof *seen->names;
    seen->lost_names |= fits < h->n_names;
    n = (uint32_t)fits;
    uint32_t nbytes = h->text_nbytes < TNI_FLIGHT_TEXT ? h->text_nbytes : TNI_FLIGHT_TEXT;
    uint32_t text_fits = (uint32_t)available(s, h->text_at, nbytes);
    seen->lost_names |= text_fits < h->text_nbytes;
    seen->damaged |= seen->lost_names;
    seen->names = tni_alloc(n * sizeof *seen->names);
    seen->text = tni_alloc((size_t)text_fits + 1);
    TN_CHECK(seen->names && seen->text, TN_NOMEM, "cannot allocate the names of a record");
    if (get(s, h->names_at, seen->names, n * sizeof *seen->names))
        seen->n_names = n;
    if (get(s, h->text_at, seen->text, text_fits))
        seen->text_nbytes = text_fits;
    seen->text[seen->text_nbytes] = '\0';
    tni_plain_text(seen->text, seen->text_nbytes);
    return TN_OK;
}

const char *tni_seen_text(const tni_seen *seen, uint32_t at)
{
    return at && at < seen->text_nbytes ? seen->text + at : "";
}

const tni_flight_name *tni_seen_entry(const tni_seen *seen, int kind, uint64_t address)
{
    const tni_flight_name *best = NULL;
    for (uint32_t i = 0; address && i < seen->n_names; i++) {
        const tni_flight_name *e = &seen->names[i];
        if (e->address == address && e->kind == kind && (!best || e->serial > best->serial))
            best = e;
    }
    return best;
}

const char *tni_seen_name(const tni_seen *seen, int kind, uint64_t address, char room[24])
{
    const tni_flight_name *e = tni_seen_entry(seen, kind, address);
    const char *text = e ? tni_seen_text(seen, e->text) : "";
    if (text[0])
        return text;
    snprintf(room, 24, "0x%llx", (unsigned long long)address);
    return room;
}

/* ---- threads ---- */

static uint64_t slot_at(const tni_flight_thread *t, uint64_t i)
{
    return t->slots_at + i * sizeof(tni_flight_frame);
}

/* Whether frame @p depth of the call that began at slot @p base is live. The thread may have gone
 * on meanwhile: then other calls use these slots, with their frames at other depths. */
static bool is_live(source *s, const tni_flight_thread *t, uint64_t base, uint32_t depth)
{
    tni_flight_frame f;
    size_t known = offsetof(tni_flight_frame, stage) + sizeof f.stage;
    return get(s, slot_at(t, base + depth), &f, known) && f.stage != TNI_STAGE_ENDED &&
           f.depth == depth;
}

/* How many frames are live: they are those before the first that is not. */
static uint32_t find_depth(source *s, const tni_flight_thread *t, uint64_t base)
{
    uint32_t most = t->limit < MOST_DEPTH ? t->limit : MOST_DEPTH;
    if (most == 0 || !is_live(s, t, base, 0))
        return 0;
    uint32_t low = 0, high = 1; /* low is live; high is not, or is the end */
    while (high < most && is_live(s, t, base, high)) {
        low = high;
        high = high < most / 2 ? 2 * high : most;
    }
    while (low + 1 < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_live(s, t, base, middle))
            low = middle;
        else
            high = middle;
    }
    return low + 1;
}

/* The frames from slot @p first on. Nothing is missing when there are none. */
static void copy_last(source *s, tni_seen_thread *t, uint64_t first)
{
    const tni_flight_thread *b = &t->block;
    uint64_t end = b->slots_nbytes / sizeof *t->last;
    while (t->n_last < TNI_SEEN_LAST && first + t->n_last < end &&
           get(s, slot_at(b, first + t->n_last), &t->last[t->n_last], sizeof *t->last))
        t->n_last++;
}

static bool copy_thread(source *s, uint64_t at, tni_seen_thread *t)
{
    if (!get(s, at, &t->block, sizeof t->block))
        return false;
    t->depth = t->n_frames = t->n_recent = t->n_last = 0;
    t->cut = false;
    memset(t->frames, 0, (TNI_SEEN_OUTER + TNI_SEEN_INNER + TNI_SEEN_RECENT) * sizeof *t->frames);
    const tni_flight_thread *b = &t->block;
    if (!b->limit)
        return true; /* a thread that has not dispatched */
    t->cut = !reaches(s, b->slots_at, 0) || !reaches(s, b->slots_nbytes, 0);
    if (t->cut)
        return true; /* or nothing to be trusted */
    uint64_t base = b->calls % TNI_FLIGHT_RING;
    t->depth = find_depth(s, b, base);
    t->cut = t->depth < b->limit && t->depth < MOST_DEPTH &&
             !reaches(s, slot_at(b, base + t->depth), sizeof *t->frames);
    bool whole = t->depth <= TNI_SEEN_OUTER + TNI_SEEN_INNER;
    uint32_t outer = whole ? t->depth : TNI_SEEN_OUTER, inner = whole ? 0 : TNI_SEEN_INNER;
    if (!get(s, slot_at(b, base), t->frames, outer * sizeof *t->frames) ||
        !get(s, slot_at(b, base + t->depth - inner), t->frames + outer, inner * sizeof *t->frames))
        return true;
    t->n_frames = outer + inner;
    if (t->depth)
        copy_last(s, t, base + t->depth);
    uint64_t n = b->calls < TNI_SEEN_RECENT ? b->calls : TNI_SEEN_RECENT;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t slot = (b->calls - 1 - i) % TNI_FLIGHT_RING;
        /* Slots above the base serve nested frames of later calls too. */
        if (slot >= base && slot < base + t->depth)
            break;
        if (!get(s, slot_at(b, slot), &t->frames[t->n_frames + i], sizeof *t->frames))
            break;
        t->n_recent++;
    }
    return true;
}

static bool same(const tni_seen_thread *a, const tni_seen_thread *b)
{
    return a->depth == b->depth && a->n_frames == b->n_frames &&
           memcmp(&a->block, &b->block, sizeof a->block) == 0 &&
           memcmp(a->frames, b->frames, a->n_frames * sizeof *a->frames) == 0;
}

static void clean(tni_seen_thread *t)
{
    end_text(t->block.name, sizeof t->block.name);
    end_text(t->block.marks.wait.text, TNI_MARK_TEXT);
    for (int i = 0; i < TNI_MARK_HELD; i++)
        end_text(t->block.marks.held[i].text, TNI_MARK_TEXT);
    if (t->block.marks.wait.kind >= TNI_WAIT_LIMIT)
        t->block.marks.wait.kind = TNI_WAIT_NONE;
    for (int i = 0; i < TNI_FLIGHT_PASSES; i++) {
        tni_flight_pass *p = &t->block.passes[i];
        uint32_t n = p->n_nodes < TNI_FLIGHT_NODES ? p->n_nodes : TNI_FLIGHT_NODES;
        for (uint32_t k = 0; k < n; k++) {
            if (p->nodes[k].n_edges > TNI_FLIGHT_EDGES)
                p->nodes[k].n_edges = TNI_FLIGHT_EDGES;
        }
    }
    for (uint32_t i = 0; i < t->n_frames + t->n_recent; i++) {
        tni_flight_frame *f = &t->frames[i];
        for (int k = 0; k < TNI_FLIGHT_TENSORS; k++) {
            if (f->tensor[k].ndim > 64)
                f->tensors &= (uint8_t) ~(1u << k);
        }
    }
}

static tni_flight_frame *room_for_frames(void)
{
    return tni_alloc((TNI_SEEN_OUTER + TNI_SEEN_INNER + TNI_SEEN_RECENT) *
                     sizeof(tni_flight_frame));
}

/* Copy until two copies agree. A thread that never stands still is told from the last copy. */
static tn_status read_thread(source *s, uint64_t at, tni_seen *seen, tni_seen_thread *spare)
{
    tni_seen_thread *t = &seen->threads[seen->n_threads];
    memset(t, 0, sizeof *t);
    t->syscall = -1;
    t->cpu = -1;
    t->frames = room_for_frames();
    TN_CHECK(t->frames, TN_NOMEM, "cannot allocate the frames of a thread");
    bool read = copy_thread(s, at, t), agree = false;
    for (int i = 0; read && !agree && i < TRIES; i++) {
        read = copy_thread(s, at, spare);
        agree = read && same(t, spare);
        if (!agree) {
            tni_flight_frame *frames = t->frames;
            *t = *spare;
            t->syscall = -1;
            t->cpu = -1;
            spare->frames = frames;
        }
    }
    if (!read || !t->block.live) {
        seen->n_lost += read ? 0 : 1;
        tni_free(t->frames);
        return TN_OK;
    }
    t->torn = !agree;
    clean(t);
    seen->n_cut += t->cut;
    seen->n_threads++;
    return TN_OK;
}

static tn_status read_threads(source *s, tni_seen *seen)
{
    uint32_t n = seen->head.n_threads;
    seen->damaged |= n > TNI_FLIGHT_THREADS;
    n = n < TNI_FLIGHT_THREADS ? n : TNI_FLIGHT_THREADS;
    uint64_t at[64];
    seen->threads = tni_calloc((n + 1) * sizeof *seen->threads);
    tni_seen_thread spare = {.frames = room_for_frames()};
    tn_status st = seen->threads && spare.frames
                       ? TN_OK
                       : tni_fail(TN_NOMEM, TNI_WHERE, "cannot allocate the threads of a record");
    for (uint32_t i = 0; st == TN_OK && i < n; i++) {
        if (i % 64 == 0) {
            uint32_t some = n - i < 64 ? n - i : 64;
            if (!get(s, seen->head.threads_at + i * sizeof *at, at, some * sizeof *at)) {
                seen->n_lost += n - i;
                break;
            }
        }
        st = read_thread(s, at[i % 64], seen, &spare);
    }
    tni_free(spare.frames);
    seen->damaged |= seen->n_lost > 0 || seen->n_cut > 0;
    return st;
}

tn_status tni_seen_read(int fd, bool with_names, tni_seen *out)
{
    memset(out, 0, sizeof *out);
    source s = {fd, 0};
    tni_flight_header *h = &out->head;
    TN_CHECK(get(&s, 0, h, sizeof *h), TN_INVALID, "it is too short to be a record");
    TN_CHECK(memcmp(h->magic, TNI_FLIGHT_MAGIC, sizeof h->magic) == 0, TN_INVALID,
             "it is no record of Tenon");
    TN_CHECK(header_is_sane(h), TN_INVALID,
             "it is a record of version %u, or damaged; this program reads version %d", h->version,
             TNI_FLIGHT_VERSION);
    end_text(h->program, sizeof h->program);
    end_text(h->library, sizeof h->library);
    for (int i = 0; i < 16; i++)
        end_text(h->backends[i], sizeof h->backends[i]);
    out->damaged = !reaches(&s, 0, h->nbytes);
    out->nbytes = s.nbytes;
    tn_status status = with_names ? read_names(&s, out) : TN_OK;
    if (status == TN_OK)
        status = read_threads(&s, out);
    out->n_copies = 1;
    if (status != TN_OK)
        tni_seen_clear(out);
    return status;
}

/* Append what @p from has to @p to: addresses are of one process, offsets of texts move. */
static tn_status merge(tni_seen *to, tni_seen *from)
{
    uint32_t n_names = to->n_names + from->n_names, n_threads = to->n_threads + from->n_threads;
    size_t text = (size_t)to->text_nbytes + from->text_nbytes;
    tni_flight_name *names = tni_alloc((n_names + 1) * sizeof *names);
    char *texts = tni_alloc(text + 1);
    tni_seen_thread *threads = tni_alloc((n_threads + 1) * sizeof *threads);
    if (!names || !texts || !threads || text > UINT32_MAX) {
        tni_free(names);
        tni_free(texts);
        tni_free(threads);
        TN_FAIL(TN_NOMEM, "cannot allocate the records of a process");
    }
    memcpy(texts, to->text, to->text_nbytes);
    memcpy(texts + to->text_nbytes, from->text, from->text_nbytes);
    texts[text] = '\0';
    memcpy(names, to->names, to->n_names * sizeof *names);
    for (uint32_t i = 0; i < from->n_names; i++) {
        tni_flight_name *e = &names[to->n_names + i];
        *e = from->names[i];
        e->text = e->text && e->text < from->text_nbytes ? e->text + to->text_nbytes : 0;
        e->file = e->file && e->file < from->text_nbytes ? e->file + to->text_nbytes : 0;
    }
    memcpy(threads, to->threads, to->n_threads * sizeof *threads);
    memcpy(threads + to->n_threads, from->threads, from->n_threads * sizeof *threads);
    for (uint32_t i = to->n_threads; i < n_threads; i++)
        threads[i].copy = to->n_copies;
    for (int i = 0; i < 16; i++) {
        if (!to->head.backends[i][0])
            memcpy(to->head.backends[i], from->head.backends[i], sizeof to->head.backends[i]);
    }
    tni_free(to->names);
    tni_free(to->text);
    tni_free(to->threads);
    to->names = names;
    to->n_names = n_names;
    to->text = texts;
    to->text_nbytes = (uint32_t)text;
    to->threads = threads;
    to->n_threads = n_threads;
    to->n_lost += from->n_lost;
    to->n_cut += from->n_cut;
    to->lost_names |= from->lost_names;
    to->head.n_unplaced += from->head.n_unplaced;
    to->head.ended_calls += from->head.ended_calls;
    to->damaged |= from->damaged;
    to->n_copies++;
    from->n_threads = 0; /* their frames are ours now */
    return TN_OK;
}

tn_status tni_seen_read_all(const tni_process_records *records, tni_seen *out)
{
    TN_TRY(tni_seen_read(records->fd[0], true, out));
    for (int i = 1; i < records->n; i++) {
        tni_seen more;
        tn_status status = tni_seen_read(records->fd[i], true, &more);
        if (status == TN_OK) {
            status = merge(out, &more);
            tni_seen_clear(&more);
        } else if (status == TN_INVALID) { /* one that another version of the library wrote */
            tn_clear_error();
            out->n_unread++;
            status = TN_OK;
        }
        if (status != TN_OK) {
            tni_seen_clear(out);
            return status;
        }
    }
    return TN_OK;
}

void tni_seen_clear(tni_seen *seen)
{
    for (uint32_t i = 0; i < seen->n_threads; i++)
        tni_free(seen->threads[i].frames);
    tni_free(seen->threads);
    tni_free(seen->names);
    tni_free(seen->text);
    memset(seen, 0, sizeof *seen);
}
