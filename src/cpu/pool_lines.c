/* SPDX-License-Identifier: MIT */
/* cpu/pool_lines.c: the largest elements, or the averages, of the windows of a plane of float32,
 * for many windows of a line at once: each place in the window is looked at in all of them before
 * the next one is. What is larger cannot be guessed, and one window at a time is a branch an
 * element. */
#include <math.h>
#include <string.h>
#include "cpu/places.h"
#include "cpu/pool_window.h"

#define SOME 64 /* windows at once */

/* What windows have gathered. */
typedef struct gathered {
    float number[SOME]; /* largest, or sum */
    int32_t place[SOME];
} gathered;

/* Look at, or add up, what windows of line @p line of the input see, of which @p n begin with
 * window
 * @p begin. */
static void look_at(const tni_pool *p, const float *x, int64_t line, int64_t begin, int64_t n,
                    bool adds, gathered *g)
{
    const tni_places_table *loops = tni_cpu_kernels()->places;
    int64_t stride = p->stride[2];
    for (int64_t k = 0; k < p->kernel[2]; k++) {
        int64_t first = begin * stride - p->padding[2] + k * p->dilation[2]; /* of window begin */
        int64_t from = first < 0 ? (-first + stride - 1) / stride : 0;
        int64_t to = first < p->in[2] ? (p->in[2] - 1 - first) / stride + 1 : 0;
        to = to > n ? n : to;
        int64_t at = line * p->in[2] + first; /* may lie before the line: no window looks there */
        if (from >= to)
            continue;
        /* From the first that is there, so that no address outside is computed. */
        const float *there = x + (at + from * stride);
        if (adds)
            loops->add(g->number + from, there, stride, to - from);
        else
            loops->look(g->number + from, g->place + from, there, stride,
                        (int32_t)(at + from * stride), to - from);
    }
}

/* Where windows begin, beside padding. */
static void begin_places(const tni_pool_job *j, int64_t top, int64_t begin, int64_t n, int32_t *at)
{
    const tni_pool *p = &j->p;
    int64_t first = top + begin * p->stride[2] - p->padding[2];
    for (int64_t o = 0; o < n; o++)
        at[o] = (int32_t)(first + o * p->stride[2]);
    for (int64_t o = 0; o < n && (begin + o) * p->stride[2] < p->padding[2]; o++)
        at[o] = (int32_t)(top + tni_max_window(j, 2, begin + o).begin);
}

void tni_pool_max_plane(const tni_pool_job *j, int64_t plane)
{
    const tni_pool *p = &j->p;
    const float *x = (const float *)j->x + plane * p->in[0] * p->in[1] * p->in[2];
    int64_t lines = p->out[0] * p->out[1];
    float *out = (float *)j->out + plane * lines * p->out[2];
    int64_t *places = j->indices + plane * lines * p->out[2];
    gathered g;
    for (int64_t line = 0; line < lines; line++) {
        const tni_window w[2] = {tni_max_window(j, 0, line / p->out[1]),
                                 tni_max_window(j, 1, line % p->out[1])};
        int64_t top = (w[0].begin * p->in[1] + w[1].begin) * p->in[2];
        for (int64_t begin = 0; begin < p->out[2]; begin += SOME) {
            int64_t n = p->out[2] - begin < SOME ? p->out[2] - begin : SOME;
            for (int64_t o = 0; o < n; o++)
                g.number[o] = -INFINITY;
            begin_places(j, top, begin, n, g.place);
            TNI_EACH_LINE(w, p->dilation[0], p->dilation[1])
            {
                look_at(p, x, s * p->in[1] + r, begin, n, false, &g);
            }
            memcpy(out, g.number, (size_t)n * sizeof *out);
            for (int64_t o = 0; o < n; o++)
                places[o] = g.place[o];
            out += n;
            places += n;
        }
    }
}

/* Sums of windows [@p begin, @p begin + @p n) of a line, whose first two dimensions are @p w, over
 * their divisors. Windows that do not touch padding have the same. */
static void divide(const tni_pool_job *j, tni_window *w, int64_t begin, int64_t n,
                   const float *sums, float *out)
{
    const tni_pool *p = &j->p;
    float whole = 0;
    for (int64_t o = 0; o < n; o++) {
        int64_t at = (begin + o) * p->stride[2] - p->padding[2];
        bool inside = at >= 0 && at + p->kernel[2] <= p->in[2];
        float divisor = whole;
        if (!inside || divisor == 0) {
            w[2] = tni_average_window(j, 2, begin + o);
            if (!tni_window_some(w)) {
                out[o] = 0;
                continue;
            }
            divisor = (float)tni_window_divisor(j, w);
            whole = inside ? divisor : whole;
        }
        out[o] = sums[o] / divisor;
    }
}

void tni_pool_average_plane(const tni_pool_job *j, int64_t plane)
{
    const tni_pool *p = &j->p;
    const float *x = (const float *)j->x + plane * p->in[0] * p->in[1] * p->in[2];
    int64_t lines = p->out[0] * p->out[1];
    float *out = (float *)j->out + plane * lines * p->out[2];
    gathered g;
    for (int64_t line = 0; line < lines; line++) {
        tni_window w[3] = {tni_average_window(j, 0, line / p->out[1]),
                           tni_average_window(j, 1, line % p->out[1])};
        for (int64_t begin = 0; begin < p->out[2]; begin += SOME) {
            int64_t n = p->out[2] - begin < SOME ? p->out[2] - begin : SOME;
            memset(g.number, 0, sizeof g.number);
            TNI_EACH_LINE(w, 1, 1)
            {
                look_at(p, x, s * p->in[1] + r, begin, n, true, &g);
            }
            divide(j, w, begin, n, g.number, out);
            out += n;
        }
    }
}
