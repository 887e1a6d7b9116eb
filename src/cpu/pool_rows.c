/* SPDX-License-Identifier: MIT */
/* cpu/pool_rows.c: pooling of float32 whose channels are last in memory: a window is computed for
 * some channels at once, which lie side by side. Lines of the result are shared out to threads. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/pool_window.h"

#define GRAIN 16384
#define SOME  64 /* channels at once: what is kept of them stays in the first cache */

typedef struct rows_job {
    const tni_pool_job *j;
    const float *x;
    float *out;
    int64_t *places;
    int64_t channels;
} rows_job;

static bool has_rows(const tn_tensor *t, tn_dtype dtype)
{
    return t->dtype == dtype && (t->flags & (TNI_CHANNELS_LAST | TNI_CHANNELS_LAST_3D));
}

bool tni_pool_has_rows(const tn_tensor *x, const tn_tensor *out, const tn_tensor *places)
{
    return has_rows(x, TN_DTYPE_F32) && !(x->flags & TNI_CONTIGUOUS) &&
           has_rows(out, TN_DTYPE_F32) && (!places || has_rows(places, TN_DTYPE_I64)) &&
           x->numel > 0 && x->numel / (x->sizes[0] * x->sizes[1]) <= INT32_MAX;
}

/* Windows along the first two dimensions of line @p line of all results, and where its image
 * begins. */
static const float *line_of(const rows_job *a, int64_t line,
                            tni_window (*of)(const tni_pool_job *, int, int64_t), tni_window *w)
{
    const tni_pool *p = &a->j->p;
    int64_t image = line / (p->out[0] * p->out[1]), rest = line % (p->out[0] * p->out[1]);
    w[0] = of(a->j, 0, rest / p->out[1]);
    w[1] = of(a->j, 1, rest % p->out[1]);
    return a->x + image * p->in[0] * p->in[1] * p->in[2] * a->channels;
}

/* Channels [@p from, @p from + @p n) of one window. */
static void max_some(const rows_job *a, const float *image, const tni_window *w, int64_t from,
                     int64_t n, float *out, int64_t *places)
{
    const tni_pool *p = &a->j->p;
    float best[SOME];
    int32_t place[SOME];
    int32_t first = (int32_t)((w[0].begin * p->in[1] + w[1].begin) * p->in[2] + w[2].begin);
    for (int64_t i = 0; i < n; i++) {
        best[i] = -INFINITY;
        place[i] = first;
    }
    TNI_EACH_LINE(w, p->dilation[0], p->dilation[1])
    {
        int64_t line = (s * p->in[1] + r) * p->in[2];
        for (int64_t c = w[2].begin; c < w[2].end; c += p->dilation[2]) {
            const float *x = image + (line + c) * a->channels + from;
            int32_t here = (int32_t)(line + c);
            for (int64_t i = 0; i < n; i++) {
                bool take = (x[i] > best[i]) | (x[i] != x[i]);
                best[i] = take ? x[i] : best[i];
                place[i] = take ? here : place[i];
            }
        }
    }
    memcpy(out + from, best, (size_t)n * sizeof *best);
    for (int64_t i = 0; i < n; i++)
        places[from + i] = place[i];
}

static tn_status max_lines(int64_t begin, int64_t end, void *arg)
{
    const rows_job *a = arg;
    int64_t width = a->j->p.out[2], channels = a->channels;
    tni_window w[3];
    for (int64_t line = begin; line < end; line++) {
        const float *image = line_of(a, line, tni_max_window, w);
        for (int64_t o = 0; o < width; o++) {
            int64_t at = (line * width + o) * channels;
            w[2] = tni_max_window(a->j, 2, o);
            for (int64_t c = 0; c < channels; c += SOME)
                max_some(a, image, w, c, channels - c < SOME ? channels - c : SOME, a->out + at,
                         a->places + at);
        }
    }
    return TN_OK;
}

static tn_status average_lines(int64_t begin, int64_t end, void *arg)
{
    const rows_job *a = arg;
    const tni_pool *p = &a->j->p;
    int64_t channels = a->channels;
    tni_window w[3];
    for (int64_t line = begin; line < end; line++) {
        const float *image = line_of(a, line, tni_average_window, w);
        for (int64_t o = 0; o < p->out[2]; o++) {
            float *out = a->out + (line * p->out[2] + o) * channels;
            w[2] = tni_average_window(a->j, 2, o);
            memset(out, 0, (size_t)channels * sizeof *out);
            if (!tni_window_some(w))
                continue;
            TNI_EACH_LINE(w, 1, 1)
            {
                for (int64_t c = w[2].begin; c < w[2].end; c++) {
                    const float *x = image + ((s * p->in[1] + r) * p->in[2] + c) * channels;
                    for (int64_t i = 0; i < channels; i++)
                        out[i] += x[i];
                }
            }
            float divisor = (float)tni_window_divisor(a->j, w);
            for (int64_t i = 0; i < channels; i++)
                out[i] /= divisor;
        }
    }
    return TN_OK;
}

static tn_status run(rows_job *a, const tni_pool_job *j, const tn_tensor *x, tn_tensor *out,
                     tni_pool_fn lines)
{
    if (out->numel == 0)
        return TN_OK;
    const tni_pool *p = &j->p;
    a->j = j;
    a->x = x->data;
    a->out = out->data;
    a->channels = x->sizes[1];
    int64_t n = x->sizes[0] * p->out[0] * p->out[1];
    int64_t cost = x->numel / n + out->numel / n;
    return tni_pool_for(n, cost < GRAIN ? GRAIN / (cost + 1) + 1 : 1, lines, a);
}

tn_status tni_pool_max_rows(const tni_pool_job *j, const tn_tensor *x, tn_tensor *out,
                            tn_tensor *places)
{
    rows_job a = {.places = places->data};
    return run(&a, j, x, out, max_lines);
}

tn_status tni_pool_average_rows(const tni_pool_job *j, const tn_tensor *x, tn_tensor *out)
{
    rows_job a = {0};
    return run(&a, j, x, out, average_lines);
}
