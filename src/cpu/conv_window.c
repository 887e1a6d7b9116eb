/* SPDX-License-Identifier: MIT */
/* cpu/conv_window.c: what a convolution reads of its input, see Note [Windows] in cpu/conv.h, and
 * where a product of matrices finds it. */
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/conv.h"
#include "cpu/move.h"

/* Rounds down. @p b is positive. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* ---- phases ---- */

/* The window's range, in places of the input. */
static void measure(tni_window *w)
{
    const tni_conv *c = w->c;
    for (int i = 0; i < 3; i++) {
        int64_t reach = c->dilation[i] * (c->kernel[i] - 1), high;
        if (c->transposed) {
            w->low[i] = floor_div(c->padding[i] - reach, c->stride[i]);
            high = floor_div(c->out[i] - 1 + c->padding[i], c->stride[i]);
        } else {
            w->low[i] = -c->padding[i];
            high = (c->out[i] - 1) * c->stride[i] + reach - c->padding[i];
        }
        w->size[i] = high - w->low[i] + 1;
    }
    w->split = c->transposed || c->channels_last ? 1 : c->stride[2];
    if (w->split > w->size[2])
        w->split = w->size[2];
    w->run = (w->size[2] + w->split - 1) / w->split;
    /* That this fits is seen when memory is asked for. */
    w->places = (int64_t)((uint64_t)w->size[0] * (uint64_t)w->size[1] *
                          ((uint64_t)w->split * (uint64_t)w->run));
    w->channel = c->channels_last ? 1 : w->places;
    w->place = c->channels_last ? c->in_channels : 1;
}

/* Which places see kernel element @p k of dimension @p i, when the convolution is transposed. */
static int64_t residue(const tni_conv *c, int i, int64_t k)
{
    int64_t r = (k * c->dilation[i] - c->padding[i]) % c->stride[i];
    return r < 0 ? r + c->stride[i] : r;
}

/* Kernel element @p k of a phase that begins at place @p first, in the window. */
static int64_t offset_of(const tni_window *w, const int64_t *first, const int64_t *k)
{
    const tni_conv *c = w->c;
    int64_t u[3];
    for (int i = 0; i < 3; i++)
        u[i] = c->transposed
                   ? (first[i] + c->padding[i] - k[i] * c->dilation[i]) / c->stride[i] - w->low[i]
                   : k[i] * c->dilation[i];
    int64_t at = (u[0] * w->size[1] + u[1]) * w->split * w->run;
    at += w->split == 1 ? u[2] : u[2] % w->split * w->run + u[2] / w->split;
    return at * w->place;
}

static tni_phase *phase_for(tni_window *w, const int64_t *first)
{
    const tni_conv *c = w->c;
    for (int64_t f = 0; f < w->phases; f++) {
        if (memcmp(w->phase[f].first, first, sizeof w->phase[f].first) == 0)
            return &w->phase[f];
    }
    tni_phase *phase = &w->phase[w->phases];
    *phase = (tni_phase){.places = 1};
    for (int i = 0; i < 3; i++) {
        int64_t step = c->transposed ? c->stride[i] : 1;
        phase->first[i] = first[i];
        phase->count[i] = first[i] < c->out[i] ? (c->out[i] - first[i] + step - 1) / step : 0;
        phase->places *= phase->count[i];
    }
    w->phases += phase->places > 0;
    return phase;
}

/* Every kernel element belongs to one phase: find the phases, then list their elements. */
static void list_phases(tni_window *w)
{
    const tni_conv *c = w->c;
    int64_t covered = 0, listed = 0;
    for (int pass = 0; pass < 2; pass++) {
        int64_t k[3], at = 0;
        for (k[0] = 0; k[0] < c->kernel[0]; k[0]++) {
            for (k[1] = 0; k[1] < c->kernel[1]; k[1]++) {
                for (k[2] = 0; k[2] < c->kernel[2]; k[2]++, at++) {
                    int64_t first[3] = {0, 0, 0};
                    for (int i = 0; i < 3 && c->transposed; i++)
                        first[i] = residue(c, i, k[i]);
                    tni_phase *phase = phase_for(w, first);
                    if (phase->places == 0)
                        continue;
                    if (pass == 1) {
                        int64_t t = phase->first_tap + phase->taps;
                        w->kernel[t] = at;
                        w->offset[t] = offset_of(w, first, k);
                    }
                    phase->taps++;
                }
            }
        }
        for (int64_t f = 0; pass == 0 && f < w->phases; f++) {
            w->phase[f].first_tap = listed;
            listed += w->phase[f].taps;
            covered += w->phase[f].places;
            w->phase[f].taps = 0;
        }
    }
    w->gaps = covered < w->out_places;
}

/* ---- the copy ---- */

typedef struct filling {
    const tni_window *w;
    const char *input;
} filling;

/* The usual case of split_line, elements of four bytes, every second one: what is the same for all
 * lines. Element p of a line goes to p - low, so to one half or the other by that number's last
 * bit. */
typedef struct halves {
    int64_t begin, end; /* elements of the line that are in the window */
    int64_t skip[2];    /* zeros before them, in each half */
    bool odd;           /* the first goes to the second half */
} halves;

static halves split_plan(const tni_window *w)
{
    int64_t n = w->c->in[2], low = w->low[2];
    halves h = {.begin = low > 0 ? low : 0, .end = low + 2 * w->run < n ? low + 2 * w->run : n};
    if (h.begin >= h.end)
        return (halves){.skip = {w->run, w->run}}; /* nothing but padding */
    h.odd = (h.begin - low) % 2;
    h.skip[0] = (h.begin - low + 1) / 2;
    h.skip[1] = (h.begin - low) / 2;
    return h;
}

typedef uint32_t four __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint32_t two __attribute__((vector_size(8), aligned(4), may_alias));

/* One or two, mostly: a call of memset, which compilers make of such a loop, would take longer. */
static inline void zeros(uint32_t *from, const uint32_t *to)
{
    for (; from < to; from++) {
        *from = 0;
        __asm__("" : "+r"(from));
    }
}

static inline void split_in_two(const halves *h, int64_t run, uint32_t *to, const uint32_t *from)
{
    uint32_t *half[2] = {to + h->skip[0], to + run + h->skip[1]};
    uint32_t *a_to = half[h->odd], *b_to = half[!h->odd];
    int64_t p = h->begin;
    zeros(to, half[0]);
    zeros(to + run, half[1]);
    for (; p + 8 <= h->end; p += 8, a_to += 4, b_to += 4) {
        four a = *(const four *)(from + p), b = *(const four *)(from + p + 4);
        __builtin_prefetch(from + p + 256); /* lines lie one after the other */
        *(four *)a_to = __builtin_shufflevector(a, b, 0, 2, 4, 6);
        *(four *)b_to = __builtin_shufflevector(a, b, 1, 3, 5, 7);
    }
    if (p + 4 <= h->end) {
        two a = *(const two *)(from + p), b = *(const two *)(from + p + 2);
        *(two *)a_to = __builtin_shufflevector(a, b, 0, 2);
        *(two *)b_to = __builtin_shufflevector(a, b, 1, 3);
        p += 4;
        a_to += 2;
        b_to += 2;
    }
    for (; p < h->end; p += 2) {
        *a_to++ = from[p];
        if (p + 1 < h->end)
            *b_to++ = from[p + 1];
    }
    zeros(a_to, to + (h->odd ? 2 : 1) * run);
    zeros(b_to, to + (h->odd ? 1 : 2) * run);
}

static void split_line(const tni_window *w, char *to, const char *from)
{
    int64_t size = w->itemsize, n = w->c->in[2];
    for (int64_t r = 0; r < w->split; r++, to += w->run * size) {
        memset(to, 0, (size_t)(w->run * size));
        /* Elements u = r + q * split of the line are input u + low. */
        int64_t q = w->low[2] + r >= 0 ? 0 : (-w->low[2] - r + w->split - 1) / w->split;
        int64_t p = r + q * w->split + w->low[2];
        if (p >= n || q >= w->run)
            continue;
        int64_t count = (n - p + w->split - 1) / w->split;
        if (count > w->run - q)
            count = w->run - q;
        tni_gather(to + q * size, from + p * size, count, w->split * size, (size_t)size);
    }
}

/* A line of the window; @p from NULL: of the padding. */
static void fill_line(const tni_window *w, char *to, const char *from)
{
    int64_t size = w->itemsize * w->place, n = w->c->in[2];
    if (!from) {
        memset(to, 0, (size_t)(w->split * w->run * size));
        return;
    }
    if (w->split > 1) {
        split_line(w, to, from);
        return;
    }
    int64_t before = w->low[2] < 0 ? -w->low[2] : 0, begin = w->low[2] + before;
    if (before > w->size[2])
        before = w->size[2];
    int64_t count = n - begin;
    if (count > w->size[2] - before)
        count = w->size[2] - before;
    if (count < 0)
        count = 0;
    memset(to, 0, (size_t)(before * size));
    memcpy(to + before * size, from + begin * size, (size_t)(count * size));
    memset(to + (before + count) * size, 0, (size_t)((w->size[2] - before - count) * size));
}

/* A piece: a channel of an image, or a whole image with channels last. */
static tn_status fill_pieces(int64_t begin, int64_t end, void *arg)
{
    const filling *f = arg;
    const tni_window *w = f->w;
    const tni_conv *c = w->c;
    int64_t line = w->split * w->run * w->place * w->itemsize;
    int64_t from_line = c->in[2] * w->place * w->itemsize;
    const bool in_two = w->split == 2 && w->itemsize == 4;
    const halves h = in_two ? split_plan(w) : (halves){0};
    for (int64_t piece = begin; piece < end; piece++) {
        char *to = w->copy + piece * w->places * w->place * w->itemsize;
        const char *from = f->input + piece * w->in_places * w->place * w->itemsize;
        for (int64_t p0 = w->low[0]; p0 < w->low[0] + w->size[0]; p0++) {
            for (int64_t p1 = w->low[1]; p1 < w->low[1] + w->size[1]; p1++, to += line) {
                bool inside = p0 >= 0 && p0 < c->in[0] && p1 >= 0 && p1 < c->in[1];
                const char *line_from = inside ? from + (p0 * c->in[1] + p1) * from_line : NULL;
                if (in_two && inside)
                    split_in_two(&h, w->run, (uint32_t *)(void *)to,
                                 (const uint32_t *)(const void *)line_from);
                else
                    fill_line(w, to, line_from);
            }
        }
    }
    return TN_OK;
}

/* What gathers the window reads a little beyond it. */
static size_t copy_bytes(const tni_window *w)
{
    return (size_t)(w->c->batch * w->c->in_channels * w->places * w->itemsize) + TNI_GATHER_SLACK;
}

static tn_status fill(tni_window *w, const void *input)
{
    const tni_conv *c = w->c;
    int64_t pieces = c->batch * (c->channels_last ? 1 : c->in_channels), nbytes;
    bool counts = tni_i64_mul(w->size[0], w->size[1], &nbytes) &&
                  tni_i64_mul(nbytes, w->split * w->run, &nbytes) &&
                  tni_i64_mul(nbytes, c->batch * c->in_channels, &nbytes) &&
                  tni_i64_mul(nbytes, w->itemsize, &nbytes);
    w->copy = counts && nbytes < INT64_MAX / 2 ? tni_block_alloc(copy_bytes(w)) : NULL;
    TN_CHECK(w->copy, TN_NOMEM, "cannot allocate memory for the padded input of a convolution");
    filling f = {w, input};
    int64_t each = w->places * w->place;
    return tni_pool_for(pieces, each < 32768 ? 32768 / each : 1, fill_pieces, &f);
}

tn_status tni_window_open(tni_window *w, const tni_conv *c, tn_dtype dtype, const void *input)
{
    *w = (tni_window){.c = c,
                      .itemsize = (int64_t)tn_dtype_size(dtype),
                      .in_each = c->in_channels / c->groups,
                      .out_each = c->out_channels / c->groups,
                      .in_places = c->in[0] * c->in[1] * c->in[2],
                      .out_places = c->out[0] * c->out[1] * c->out[2],
                      .kernel_places = c->kernel[0] * c->kernel[1] * c->kernel[2]};
    measure(w);
    /* One phase more than there are: phase_for tries before it counts. */
    size_t n = (size_t)w->kernel_places;
    size_t nbytes = (n + 1) * sizeof *w->phase + 2 * n * sizeof *w->kernel;
    w->phase = tni_alloc(nbytes);
    TN_CHECK(w->phase, TN_NOMEM, "cannot allocate %zu bytes for a convolution", nbytes);
    w->kernel = (int64_t *)(void *)(w->phase + n + 1);
    w->offset = w->kernel + n;
    list_phases(w);
    tn_status status = fill(w, input);
    if (status != TN_OK)
        tni_window_close(w);
    return status;
}

void tni_window_close(tni_window *w)
{
    tni_block_free(w->copy, copy_bytes(w));
    tni_free(w->phase);
    w->copy = NULL;
    w->phase = NULL;
}

const char *tni_window_at(const tni_window *w, int64_t n, int64_t group)
{
    return w->copy +
           (n * w->c->in_channels * w->places + group * w->in_each * w->channel) * w->itemsize;
}

/* ---- tables ---- */

/* Where place @p at of a phase begins in the window. */
static int64_t start_of(const tni_window *w, const tni_phase *phase, int64_t at)
{
    const tni_conv *c = w->c;
    int64_t q2 = at % phase->count[2], line = at / phase->count[2];
    int64_t q1 = line % phase->count[1], q0 = line / phase->count[1];
    int64_t s0 = c->transposed ? 1 : c->stride[0], s1 = c->transposed ? 1 : c->stride[1];
    int64_t s2 = c->transposed || w->split > 1 ? 1 : c->stride[2];
    return ((q0 * s0 * w->size[1] + q1 * s1) * w->split * w->run + q2 * s2) * w->place;
}

/* Channels first: rows are (channel, tap), lines are those of the result. */
static void tables_first(const tni_window *w, const tni_phase *phase, int64_t *at, int64_t *line)
{
    for (int64_t i = 0; i < w->in_each; i++) {
        for (int64_t t = 0; t < phase->taps; t++)
            *at++ = i * w->channel + w->offset[phase->first_tap + t];
    }
    int64_t image = w->c->in_channels * w->places;
    for (int64_t n = 0; n < w->c->batch; n++) {
        for (int64_t p = 0; p < phase->places; p += phase->count[2])
            *line++ = n * image + start_of(w, phase, p);
    }
}

/* Channels last: rows are places, lines are taps. */
static void tables_last(const tni_window *w, const tni_phase *phase, int64_t *at, int64_t *line)
{
    int64_t image = w->c->in_channels * w->places;
    for (int64_t n = 0; n < w->c->batch; n++) {
        for (int64_t p = 0; p < phase->places; p++)
            *at++ = n * image + start_of(w, phase, p);
    }
    memcpy(line, w->offset + phase->first_tap, (size_t)phase->taps * sizeof *line);
}

tn_status tni_window_tables(const tni_window *w, const tni_phase *phase, tni_gathered *out)
{
    const tni_conv *c = w->c;
    int64_t lines = c->batch * phase->count[0] * phase->count[1];
    int64_t all = w->in_each * phase->taps + lines;
    if (c->channels_last)
        all = c->batch * phase->places + phase->taps;
    int64_t *table = tni_alloc((size_t)all * sizeof *table);
    TN_CHECK(table, TN_NOMEM, "cannot allocate %lld bytes for a convolution", (long long)all * 8);
    int64_t *line;
    if (c->channels_last) {
        line = table + c->batch * phase->places;
        tables_last(w, phase, table, line);
        out->width = w->in_each;
    } else {
        line = table + w->in_each * phase->taps;
        tables_first(w, phase, table, line);
        out->width = phase->count[2];
    }
    out->at = table;
    out->line = line;
    return TN_OK;
}
