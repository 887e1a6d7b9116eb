/* SPDX-License-Identifier: MIT */
/* cpu/pool_rows.c: pooling, and its gradients, where channels are last in memory: a window is
 * computed for some channels at once, which lie side by side, in float32. Lines of the result are
 * shared out to threads; of gradients, some channels of an image. */
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/ready.h"
#include "cpu/places.h"
#include "cpu/pool_window.h"

#define GRAIN 16384
#define SOME  64 /* channels at once: what is kept of them stays in the first cache */

typedef struct rows_job {
    const tni_pool_job *j;
    const float *x;
    float *out;
    int64_t *places;
    const int64_t *sources;
    int64_t channels;
} rows_job;

static bool has_rows(const tn_tensor *t)
{
    return t->flags & (TNI_CHANNELS_LAST | TNI_CHANNELS_LAST_3D);
}

bool tni_pool_has_rows(const tni_pool_job *j, const tn_tensor *x, const tn_tensor *out)
{
    return has_rows(x) && has_rows(out) && !(x->flags & TNI_CONTIGUOUS) &&
           (x->dtype == TN_DTYPE_F32 || x->dtype == TN_DTYPE_BF16 || x->dtype == TN_DTYPE_F16) &&
           x->numel > 0 && j->p.planes == x->sizes[0] * x->sizes[1] &&
           x->numel / j->p.planes <= INT32_MAX;
}

/* A new tensor of the sizes of @p t with its channels last. */
static tn_status rows_new(const tn_tensor *t, tn_dtype dtype, tn_tensor **out)
{
    int64_t strides[TN_MAX_DIMS], step = t->sizes[1];
    strides[1] = 1;
    for (int d = t->ndim - 1; d >= 2; d--) {
        strides[d] = step;
        step *= t->sizes[d];
    }
    strides[0] = step;
    return tni_tensor_new(t->ndim, t->sizes, strides, dtype, TN_CPU, out);
}

/* @p t itself where it is of @p dtype and has its channels last, or a new one, with what @p t has
 * when @p read. */
static tn_status rows_of(tn_tensor *t, tn_dtype dtype, bool read, tn_tensor **out)
{
    if (t->dtype == dtype && has_rows(t)) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(rows_new(t, dtype, &made));
    if (read && t->numel)
        TN_TRY(tni_copy_cpu(made, t));
    *out = TN_MOVE(made);
    return TN_OK;
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

/* Most places that a window of a job has: those of its kernel, or, adaptive, of parts of the input.
 */
static int64_t most_places(const tni_pool_job *j)
{
    int64_t n = 1;
    for (int i = 0; i < 3; i++)
        n *= j->adaptive ? j->p.in[i] / j->p.out[i] + 2 : j->p.kernel[i];
    return n;
}

/* The places of a window, in order; returns how many there are. */
static int64_t list_places(const tni_pool *p, const tni_window *w, const int64_t *dilation,
                           int64_t *list)
{
    int64_t n = 0;
    TNI_EACH_LINE(w, dilation[0], dilation[1])
    {
        int64_t line = (s * p->in[1] + r) * p->in[2];
        for (int64_t c = w[2].begin; c < w[2].end; c += dilation[2])
            list[n++] = line + c;
    }
    return n;
}

static int64_t *list_alloc(const rows_job *a)
{
    return tni_alloc((size_t)most_places(a->j) * sizeof(int64_t));
}

static tn_status max_lines(int64_t begin, int64_t end, void *arg)
{
    const rows_job *a = arg;
    const tni_pool *p = &a->j->p;
    const tni_places_table *loops = tni_cpu_kernels()->places;
    int64_t width = p->out[2], channels = a->channels, *list = list_alloc(a);
    tni_window w[3];
    TN_CHECK(list, TN_NOMEM, "cannot allocate memory for a window of pooling");
    for (int64_t line = begin; line < end; line++) {
        const float *image = line_of(a, line, tni_max_window, w);
        for (int64_t o = 0; o < width; o++) {
            int64_t at = (line * width + o) * channels;
            w[2] = tni_max_window(a->j, 2, o);
            int64_t first = (w[0].begin * p->in[1] + w[1].begin) * p->in[2] + w[2].begin;
            loops->largest(a->out + at, a->places + at, image, list,
                           list_places(p, w, p->dilation, list), channels, first);
        }
    }
    tni_free(list);
    return TN_OK;
}

static tn_status average_lines(int64_t begin, int64_t end, void *arg)
{
    const rows_job *a = arg;
    const tni_pool *p = &a->j->p;
    const tni_places_table *loops = tni_cpu_kernels()->places;
    int64_t channels = a->channels, *list = list_alloc(a);
    tni_window w[3];
    TN_CHECK(list, TN_NOMEM, "cannot allocate memory for a window of pooling");
    for (int64_t line = begin; line < end; line++) {
        const float *image = line_of(a, line, tni_average_window, w);
        for (int64_t o = 0; o < p->out[2]; o++) {
            float *out = a->out + (line * p->out[2] + o) * channels;
            w[2] = tni_average_window(a->j, 2, o);
            if (!tni_window_some(w)) {
                memset(out, 0, (size_t)channels * sizeof *out);
                continue;
            }
            loops->average(out, image, list, list_places(p, w, (const int64_t[]){1, 1, 1}, list),
                           channels, (float)tni_window_divisor(a->j, w));
        }
    }
    tni_free(list);
    return TN_OK;
}

static tn_status run(rows_job *a, const tni_pool_job *j, tn_tensor *x, tn_tensor *out,
                     tn_tensor *places, tni_pool_fn lines)
{
    if (out->numel == 0)
        return TN_OK;
    TN_AUTO(tn_tensor) ready = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_AUTO(tn_tensor) found = NULL;
    TN_TRY(rows_of(x, TN_DTYPE_F32, true, &ready));
    TN_TRY(rows_of(out, TN_DTYPE_F32, false, &work));
    if (places) {
        TN_TRY(rows_of(places, TN_DTYPE_I64, false, &found));
        a->places = found->data;
    }
    const tni_pool *p = &j->p;
    a->j = j;
    a->x = ready->data;
    a->out = work->data;
    a->channels = x->sizes[1];
    int64_t n = x->sizes[0] * p->out[0] * p->out[1];
    int64_t cost = x->numel / n + out->numel / n;
    TN_TRY(tni_pool_for(n, cost < GRAIN ? GRAIN / (cost + 1) + 1 : 1, lines, a));
    TN_TRY(tni_work_back(out, work));
    return places ? tni_work_back(places, found) : TN_OK;
}

tn_status tni_pool_max_rows(const tni_pool_job *j, tn_tensor *x, tn_tensor *out, tn_tensor *places)
{
    rows_job a = {0};
    return run(&a, j, x, out, places, max_lines);
}

tn_status tni_pool_average_rows(const tni_pool_job *j, tn_tensor *x, tn_tensor *out)
{
    rows_job a = {0};
    return run(&a, j, x, out, NULL, average_lines);
}

/* ---- gradients ---- */

static int64_t volume(const int64_t *n)
{
    return n[0] * n[1] * n[2];
}

/* Unit @p i is some channels of an image: which ones, where its gradient is and where its result,
 * which is cleared. */
static int64_t unit_of(const rows_job *a, int64_t i, const float **grad, float **out, int64_t *at)
{
    int64_t units = (a->channels + SOME - 1) / SOME, from = i % units * SOME, image = i / units;
    int64_t n = a->channels - from < SOME ? a->channels - from : SOME;
    int64_t in = volume(a->j->p.in);
    *at = image * volume(a->j->p.out) * a->channels + from;
    *grad = a->x + *at;
    *out = a->out + image * in * a->channels + from;
    if (n == a->channels)
        memset(*out, 0, (size_t)(in * n) * sizeof(float));
    for (int64_t k = 0; n < a->channels && k < in; k++)
        memset(*out + k * a->channels, 0, (size_t)n * sizeof(float));
    return n;
}

static tn_status max_back(int64_t begin, int64_t end, void *arg)
{
    const rows_job *a = arg;
    int64_t outs = volume(a->j->p.out), channels = a->channels, at;
    for (int64_t u = begin; u < end; u++) {
        const float *grad;
        float *out;
        int64_t n = unit_of(a, u, &grad, &out, &at);
        const int64_t *places = a->sources + at;
        for (int64_t o = 0; o < outs; o++, grad += channels, places += channels)
            for (int64_t i = 0; i < n; i++)
                out[places[i] * channels + i] += grad[i];
    }
    return TN_OK;
}

static tn_status average_back(int64_t begin, int64_t end, void *arg)
{
    const rows_job *a = arg;
    const tni_pool *p = &a->j->p;
    int64_t channels = a->channels, at;
    for (int64_t u = begin; u < end; u++) {
        const float *grad;
        float *out, share[SOME];
        int64_t n = unit_of(a, u, &grad, &out, &at);
        tni_window w[3];
        for (int64_t o = 0; o < volume(p->out); o++, grad += channels) {
            int64_t line = o / p->out[2];
            w[0] = tni_average_window(a->j, 0, line / p->out[1]);
            w[1] = tni_average_window(a->j, 1, line % p->out[1]);
            w[2] = tni_average_window(a->j, 2, o % p->out[2]);
            if (!tni_window_some(w))
                continue;
            float divisor = (float)tni_window_divisor(a->j, w);
            for (int64_t i = 0; i < n; i++)
                share[i] = grad[i] / divisor;
            TNI_EACH_LINE(w, 1, 1)
            {
                for (int64_t c = w[2].begin; c < w[2].end; c++) {
                    float *to = out + ((s * p->in[1] + r) * p->in[2] + c) * channels;
                    for (int64_t i = 0; i < n; i++)
                        to[i] += share[i];
                }
            }
        }
    }
    return TN_OK;
}

tn_status tni_pool_back_rows(const tni_pool_job *j, tn_tensor *grad, tn_tensor *places,
                             tn_tensor *out)
{
    TN_AUTO(tn_tensor) ready = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_AUTO(tn_tensor) from = NULL;
    TN_TRY(rows_of(grad, TN_DTYPE_F32, true, &ready));
    TN_TRY(rows_of(out, TN_DTYPE_F32, false, &work));
    rows_job a = {.j = j, .x = ready->data, .out = work->data, .channels = out->sizes[1]};
    if (places) {
        TN_TRY(rows_of(places, TN_DTYPE_I64, true, &from));
        a.sources = from->data;
    }
    int64_t units = (a.channels + SOME - 1) / SOME * out->sizes[0];
    TN_TRY(tni_pool_for(units,
                        out->numel / units < GRAIN ? GRAIN / (out->numel / units + 1) + 1 : 1,
                        places ? max_back : average_back, &a));
    return tni_work_back(out, work);
}
