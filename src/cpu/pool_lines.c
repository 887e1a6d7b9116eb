/* SPDX-License-Identifier: MIT */
/* cpu/pool_lines.c: the largest elements of the windows of a plane of float32, for many windows of
 * a line at once: each place in the window is looked at in all of them before the next one is. What
 * is larger cannot be guessed, and one window at a time is a branch an element. */
#include <math.h>
#include <string.h>
#include "cpu/pool_window.h"

#define SOME 64 /* windows at once */

/* Windows [@p from, @p to) of a part look at x[o * stride], and @p here + o * stride is its place.
 */
static inline void look(const float *x, int64_t stride, int32_t here, int64_t from, int64_t to,
                        float *best, int32_t *place)
{
    for (int64_t o = from; o < to; o++) {
        float v = x[o * stride];
        bool take = (v > best[o]) | (v != v);
        best[o] = take ? v : best[o];
        place[o] = take ? here + (int32_t)(o * stride) : place[o];
    }
}

/* The same for windows of line @p line, of which @p n begin with window @p begin. */
static void look_at(const tni_pool *p, const float *x, int64_t line, int64_t begin, int64_t n,
                    float *best, int32_t *place)
{
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
        int32_t here = (int32_t)(at + from * stride);
        if (stride == 1)
            look(there, 1, here, 0, to - from, best + from, place + from);
        else if (stride == 2)
            look(there, 2, here, 0, to - from, best + from, place + from);
        else
            look(there, stride, here, 0, to - from, best + from, place + from);
    }
}

void tni_pool_max_plane(const tni_pool_job *j, int64_t plane)
{
    const tni_pool *p = &j->p;
    const float *x = (const float *)j->x + plane * p->in[0] * p->in[1] * p->in[2];
    int64_t lines = p->out[0] * p->out[1];
    float *out = (float *)j->out + plane * lines * p->out[2];
    int64_t *places = j->indices + plane * lines * p->out[2];
    float best[SOME];
    int32_t place[SOME];
    for (int64_t line = 0; line < lines; line++) {
        const tni_window w[2] = {tni_max_window(j, 0, line / p->out[1]),
                                 tni_max_window(j, 1, line % p->out[1])};
        int64_t top = (w[0].begin * p->in[1] + w[1].begin) * p->in[2];
        for (int64_t begin = 0; begin < p->out[2]; begin += SOME) {
            int64_t n = p->out[2] - begin < SOME ? p->out[2] - begin : SOME;
            for (int64_t o = 0; o < n; o++) {
                best[o] = -INFINITY;
                place[o] = (int32_t)(top + tni_max_window(j, 2, begin + o).begin);
            }
            TNI_EACH_LINE(w, p->dilation[0], p->dilation[1])
            {
                look_at(p, x, s * p->in[1] + r, begin, n, best, place);
            }
            memcpy(out, best, (size_t)n * sizeof *best);
            for (int64_t o = 0; o < n; o++)
                places[o] = place[o];
            out += n;
            places += n;
        }
    }
}
