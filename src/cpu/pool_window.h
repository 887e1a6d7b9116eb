/* SPDX-License-Identifier: MIT */
/* cpu/pool_window.h: what the files of pooling share: a job, and the windows of its results. */
#ifndef TNI_CPU_POOL_WINDOW_H
#define TNI_CPU_POOL_WINDOW_H

#include "shape/pool.h"

typedef struct tni_pool_job {
    tni_pool p;
    bool adaptive, include_pad;
    int64_t divisor; /* 0: by the window */
    int64_t lowest;  /* the maximum of no whole numbers */
    const void *x;
    void *out;
    int64_t *indices;       /* written by max */
    const int64_t *sources; /* read by its backward */
    tn_dtype dtype;
} tni_pool_job;

/* One window along one dimension: elements [begin, end) of the input, and its length with padding.
 */
typedef struct tni_window {
    int64_t begin, end, length;
} tni_window;

static inline tni_window tni_average_window(const tni_pool_job *j, int i, int64_t o)
{
    const tni_pool *p = &j->p;
    tni_window w;
    if (j->adaptive) {
        w.begin = o * p->in[i] / p->out[i];
        w.end = ((o + 1) * p->in[i] + p->out[i] - 1) / p->out[i];
        w.length = w.end - w.begin;
        return w;
    }
    w.begin = o * p->stride[i] - p->padding[i];
    w.end = w.begin + p->kernel[i];
    if (w.end > p->in[i] + p->padding[i])
        w.end = p->in[i] + p->padding[i];
    w.length = w.end - w.begin;
    w.begin = w.begin < 0 ? 0 : w.begin;
    w.end = w.end > p->in[i] ? p->in[i] : w.end;
    return w;
}

static inline tni_window tni_max_window(const tni_pool_job *j, int i, int64_t o)
{
    const tni_pool *p = &j->p;
    if (j->adaptive)
        return tni_average_window(j, i, o);
    tni_window w;
    w.begin = o * p->stride[i] - p->padding[i];
    w.end = w.begin + (p->kernel[i] - 1) * p->dilation[i] + 1;
    w.end = w.end > p->in[i] ? p->in[i] : w.end;
    w.length = 0;
    if (w.begin < 0)
        w.begin += (-w.begin + p->dilation[i] - 1) / p->dilation[i] * p->dilation[i];
    return w;
}

static inline int64_t tni_window_divisor(const tni_pool_job *j, const tni_window *w)
{
    if (j->divisor)
        return j->divisor;
    int64_t n = 1;
    for (int i = 0; i < 3; i++)
        n *= j->include_pad ? w[i].length : w[i].end - w[i].begin;
    return n;
}

static inline bool tni_window_some(const tni_window *w)
{
    return w[0].begin < w[0].end && w[1].begin < w[1].end && w[2].begin < w[2].end;
}

/* Where the lines of a window lie: for each of its rows, of each of its slices. */
#define TNI_EACH_LINE(w, d0, d1)                              \
    for (int64_t s = (w)[0].begin; s < (w)[0].end; s += (d0)) \
        for (int64_t r = (w)[1].begin; r < (w)[1].end; r += (d1))

/* ---- channels last: pool_rows.c ---- */

/* Whether these have their channels last in memory, and @p x is of float32 or a half of it. One
 * image of three dimensions has none: its second dimension are no channels. */
bool tni_pool_has_rows(const tni_pool_job *j, const tn_tensor *x, const tn_tensor *out);
/* As planes give it, to the bit. x and out have rows. */
TN_NODISCARD tn_status tni_pool_max_rows(const tni_pool_job *j, tn_tensor *x, tn_tensor *out,
                                         tn_tensor *places);
TN_NODISCARD tn_status tni_pool_average_rows(const tni_pool_job *j, tn_tensor *x, tn_tensor *out);
/* The gradient @p out, which has rows, of maxima at @p places, which were checked, or of averages
 * when that is NULL. */
TN_NODISCARD tn_status tni_pool_back_rows(const tni_pool_job *j, tn_tensor *grad, tn_tensor *places,
                                          tn_tensor *out);

/* ---- pool_lines.c ---- */

/* One plane of float32, of a job that is not adaptive; its elements are counted by an int32. */
void tni_pool_max_plane(const tni_pool_job *j, int64_t plane);
void tni_pool_average_plane(const tni_pool_job *j, int64_t plane);

#endif
