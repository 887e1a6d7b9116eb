/* SPDX-License-Identifier: MIT */
/* cpu/pool.c: pooling over two and three dimensions, and its gradients. Planes are shared out to
 * threads; each is computed as a contiguous one of float32, float64 or int64, whatever the tensors
 * are. Where channels are last, pool_rows.c computes what is no wider than float32. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/pool_window.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

#define GRAIN 16384

/* The windows of all three dimensions at place @p o of a plane of the result; those of depth and
 * height change with the line alone. */
static void windows_at(const tni_pool_job *j, int64_t o,
                       tni_window (*of)(const tni_pool_job *, int, int64_t), tni_window *w)
{
    int64_t line = o / j->p.out[2];
    if (o % j->p.out[2] == 0) {
        w[0] = of(j, 0, line / j->p.out[1]);
        w[1] = of(j, 1, line % j->p.out[1]);
    }
    w[2] = of(j, 2, o % j->p.out[2]);
}

static int64_t ins(const tni_pool_job *j)
{
    return j->p.in[0] * j->p.in[1] * j->p.in[2];
}

static int64_t outs(const tni_pool_job *j)
{
    return j->p.out[0] * j->p.out[1] * j->p.out[2];
}

/* A NaN wins, the last one; of equal numbers the first. */
#define DEFINE(T, name, lowest)                                                           \
    static void max_##name(const tni_pool_job *j, int64_t plane)                          \
    {                                                                                     \
        const tni_pool *p = &j->p;                                                        \
        const T *x = (const T *)j->x + plane * ins(j);                                    \
        T *out = (T *)j->out + plane * outs(j);                                           \
        int64_t *places = j->indices + plane * outs(j);                                   \
        const int64_t *d = p->dilation;                                                   \
        tni_window w[3] = {{0}};                                                          \
        for (int64_t o = 0; o < outs(j); o++) {                                           \
            windows_at(j, o, tni_max_window, w);                                          \
            T best = lowest;                                                              \
            int64_t place = (w[0].begin * p->in[1] + w[1].begin) * p->in[2] + w[2].begin; \
            TNI_EACH_LINE(w, d[0], d[1])                                                  \
            {                                                                             \
                int64_t line = (s * p->in[1] + r) * p->in[2];                             \
                for (int64_t c = w[2].begin; c < w[2].end; c += d[2]) {                   \
                    T v = x[line + c];                                                    \
                    if (v > best || v != v) {                                             \
                        best = v;                                                         \
                        place = line + c;                                                 \
                    }                                                                     \
                }                                                                         \
            }                                                                             \
            *out++ = best;                                                                \
            *places++ = place;                                                            \
        }                                                                                 \
    }                                                                                     \
    static void average_##name(const tni_pool_job *j, int64_t plane)                      \
    {                                                                                     \
        const tni_pool *p = &j->p;                                                        \
        const T *x = (const T *)j->x + plane * ins(j);                                    \
        T *out = (T *)j->out + plane * outs(j);                                           \
        tni_window w[3] = {{0}};                                                          \
        for (int64_t o = 0; o < outs(j); o++) {                                           \
            windows_at(j, o, tni_average_window, w);                                      \
            T sum = 0;                                                                    \
            TNI_EACH_LINE(w, 1, 1)                                                        \
            {                                                                             \
                const T *line = x + (s * p->in[1] + r) * p->in[2];                        \
                for (int64_t c = w[2].begin; c < w[2].end; c++)                           \
                    sum = ADD_##name(sum, line[c]);                                       \
            }                                                                             \
            *out++ = tni_window_some(w) ? DIV_##name(sum, tni_window_divisor(j, w)) : 0;  \
        }                                                                                 \
    }                                                                                     \
    static void average_backward_##name(const tni_pool_job *j, int64_t plane)             \
    {                                                                                     \
        const tni_pool *p = &j->p;                                                        \
        const T *grad = (const T *)j->x + plane * outs(j);                                \
        T *out = (T *)j->out + plane * ins(j);                                            \
        tni_window w[3] = {{0}};                                                          \
        for (int64_t o = 0; o < outs(j); o++) {                                           \
            windows_at(j, o, tni_average_window, w);                                      \
            if (!tni_window_some(w))                                                      \
                continue;                                                                 \
            T g = DIV_##name(grad[o], tni_window_divisor(j, w));                          \
            TNI_EACH_LINE(w, 1, 1)                                                        \
            {                                                                             \
                T *line = out + (s * p->in[1] + r) * p->in[2];                            \
                for (int64_t c = w[2].begin; c < w[2].end; c++)                           \
                    line[c] = ADD_##name(line[c], g);                                     \
            }                                                                             \
        }                                                                                 \
    }                                                                                     \
    static void max_backward_##name(const tni_pool_job *j, int64_t plane)                 \
    {                                                                                     \
        int64_t n = outs(j);                                                              \
        const T *grad = (const T *)j->x + plane * n;                                      \
        const int64_t *places = j->sources + plane * n;                                   \
        T *out = (T *)j->out + plane * ins(j);                                            \
        for (int64_t i = 0; i < n; i++)                                                   \
            out[places[i]] = ADD_##name(out[places[i]], grad[i]);                         \
    }

/* Integers wrap. */
#define ADD_f32(a, b) ((a) + (b))
#define ADD_f64(a, b) ((a) + (b))
#define ADD_i64(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define DIV_f32(a, n) ((a) / (float)(n))
#define DIV_f64(a, n) ((a) / (double)(n))
#define DIV_i64(a, n) ((n) == -1 ? (int64_t)(0 - (uint64_t)(a)) : (a) / (n))
DEFINE(float, f32, -INFINITY)
DEFINE(double, f64, (double)-INFINITY)
DEFINE(int64_t, i64, j->lowest)

typedef void (*plane_fn)(const tni_pool_job *j, int64_t plane);

typedef struct plane_job {
    tni_pool_job job;
    plane_fn f32, f64, i64;
    int64_t cost; /* of a plane */
    bool zero;    /* the result is added to: it is cleared first */
} plane_job;

static tn_status some_planes(int64_t begin, int64_t end, void *arg)
{
    const plane_job *a = arg;
    plane_fn fn = a->job.dtype == TN_DTYPE_F32   ? a->f32
                  : a->job.dtype == TN_DTYPE_F64 ? a->f64
                                                 : a->i64;
    size_t bytes = (size_t)ins(&a->job) * tni_dtype_size(a->job.dtype);
    for (int64_t i = begin; i < end; i++) {
        if (a->zero)
            memset((char *)a->job.out + (size_t)i * bytes, 0, bytes);
        fn(&a->job, i);
    }
    return TN_OK;
}

/* Compute @p out, and @p places when there are some, from @p x. @p zero: it is added to. */
static tn_status run(plane_job *a, tn_tensor *x, tn_tensor *out, tn_tensor *places, bool zero)
{
    if (out->numel == 0)
        return TN_OK;
    tn_dtype dtype = (tn_dtype)x->dtype;
    a->job.dtype = dtype == TN_DTYPE_F64         ? TN_DTYPE_F64
                   : tn_dtype_is_floating(dtype) ? TN_DTYPE_F32
                                                 : TN_DTYPE_I64;
    TN_AUTO(tn_tensor) ready = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_AUTO(tn_tensor) work_places = NULL;
    TN_TRY(tni_ready(x, a->job.dtype, &ready));
    TN_TRY(tni_work_of(out, a->job.dtype, &work));
    if (places) {
        TN_TRY(tni_work_of(places, TN_DTYPE_I64, &work_places));
        a->job.indices = work_places->data;
    }
    a->zero = zero;
    a->job.x = ready->data;
    a->job.out = work->data;
    int64_t grain = a->cost > 0 && a->cost < GRAIN ? GRAIN / a->cost : 1;
    TN_TRY(tni_pool_for(a->job.p.planes, grain, some_planes, a));
    TN_TRY(tni_work_back(out, work));
    return places ? tni_work_back(places, work_places) : TN_OK;
}

/* ---- what operators do ---- */

/* The least of whole numbers of @p dtype. */
static int64_t lowest_of(tn_dtype dtype)
{
    return dtype == TN_DTYPE_U8 ? 0 : (int64_t)(UINT64_MAX << (8 * tni_dtype_size(dtype) - 1));
}

static tn_status max_forward(plane_job *a, tn_tensor *self, tn_tensor *out, tn_tensor *places)
{
    a->f32 = max_f32;
    a->f64 = max_f64;
    a->i64 = max_i64;
    a->cost = ins(&a->job);
    a->job.lowest = lowest_of((tn_dtype)self->dtype);
    if (tni_pool_has_rows(&a->job, self, out))
        return tni_pool_max_rows(&a->job, self, out, places);
    if (!a->job.adaptive && ins(&a->job) <= INT32_MAX)
        a->f32 = tni_pool_max_plane;
    return run(a, self, out, places, false);
}

/* Whether windows along dimension @p i may have no element: with dilation all of one can lie in
 * padding. */
static bool has_empty(const tni_pool_job *j, int i)
{
    for (int64_t o = 0; o < j->p.out[i]; o++) {
        tni_window w = tni_max_window(j, i, o);
        if (w.begin >= w.end)
            return true;
    }
    return false;
}

/* A window without elements has no maximum that a gradient could go to, and its index, if it is one
 * of the plane, is that of another window's element: copies of both, with 0 there. */
static tn_status without_empty(const tni_pool_job *j, tn_tensor *grad, tn_tensor *indices,
                               tn_tensor **grad_out, tn_tensor **indices_out)
{
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_TRY(tni_tensor_new(grad->ndim, grad->sizes, NULL, (tn_dtype)grad->dtype, grad->device, &g));
    TN_TRY(tni_tensor_new(indices->ndim, indices->sizes, NULL, TN_DTYPE_I64, indices->device,
                          &places));
    TN_TRY(tni_copy_cpu(g, grad));
    TN_TRY(tni_copy_cpu(places, indices));
    size_t itemsize = tn_dtype_size((tn_dtype)g->dtype);
    int64_t n = outs(j), *place = places->data;
    tni_window w[3] = {{0}};
    for (int64_t i = 0; i < places->numel; i++) {
        windows_at(j, i % n, tni_max_window, w);
        if (tni_window_some(w))
            continue;
        place[i] = 0;
        memset((char *)g->data + (size_t)i * itemsize, 0, itemsize);
    }
    *grad_out = TN_MOVE(g);
    *indices_out = TN_MOVE(places);
    return TN_OK;
}

static tn_status max_backward(const char *name, plane_job *a, tn_tensor *grad, tn_tensor *indices,
                              tn_tensor *out)
{
    a->f32 = max_backward_f32;
    a->f64 = max_backward_f64;
    a->i64 = max_backward_i64;
    a->cost = outs(&a->job);
    TN_AUTO(tn_tensor) some_grad = NULL;
    TN_AUTO(tn_tensor) some_indices = NULL;
    if (has_empty(&a->job, 0) || has_empty(&a->job, 1) || has_empty(&a->job, 2)) {
        TN_TRY(without_empty(&a->job, grad, indices, &some_grad, &some_indices));
        grad = some_grad;
        indices = some_indices;
    }
    TN_AUTO(tn_tensor) places = NULL;
    TN_TRY(tni_ready(indices, TN_DTYPE_I64, &places));
    const int64_t *from = a->job.sources = places->data;
    int64_t limit = ins(&a->job);
    for (int64_t i = 0; i < places->numel; i++)
        TN_CHECK(from[i] >= 0 && from[i] < limit, TN_INVALID,
                 "%s_backward: index %lld is out of range for planes of %lld elements", name,
                 (long long)from[i], (long long)limit);
    if (tni_pool_has_rows(&a->job, out, out))
        return tni_pool_back_rows(&a->job, grad, indices, out);
    return run(a, grad, out, NULL, true);
}

static tn_status average_forward(plane_job *a, tn_tensor *self, tn_tensor *out)
{
    a->f32 = average_f32;
    a->f64 = average_f64;
    a->i64 = average_i64;
    a->cost = ins(&a->job);
    if (tni_pool_has_rows(&a->job, self, out))
        return tni_pool_average_rows(&a->job, self, out);
    if (!a->job.adaptive)
        a->f32 = tni_pool_average_plane;
    return run(a, self, out, NULL, false);
}

static tn_status average_backward(plane_job *a, tn_tensor *grad, tn_tensor *out)
{
    a->f32 = average_backward_f32;
    a->f64 = average_backward_f64;
    a->i64 = average_backward_i64;
    a->cost = ins(&a->job);
    if (tni_pool_has_rows(&a->job, out, out))
        return tni_pool_back_rows(&a->job, grad, NULL, out);
    return run(a, grad, out, NULL, true);
}

static plane_job adaptive(int spatial, const tn_tensor *whole, const tn_tensor *pooled)
{
    plane_job a = {.job.adaptive = true};
    a.job.p = tni_pool_adaptive(spatial, whole, pooled);
    for (int i = 0; i < 3; i++)
        a.job.p.dilation[i] = 1;
    return a;
}

/* ---- operators ---- */

#define POOL(n)                                                                                    \
    tn_status tni_cpu_max_pool##n##d(                                                              \
        tn_tensor *self, const int64_t *kernel_size, int64_t kernel_size_n, const int64_t *stride, \
        int64_t stride_n, const int64_t *padding, int64_t padding_n, const int64_t *dilation,      \
        int64_t dilation_n, bool ceil_mode, tn_tensor *out0, tn_tensor *out1)                      \
    {                                                                                              \
        plane_job a = {0};                                                                         \
        tni_pool_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,           \
                            stride_n,    padding_n, dilation_n, ceil_mode};                        \
        TN_TRY(tni_pool_check(n, self, &l, &a.job.p));                                             \
        return max_forward(&a, self, out0, out1);                                                  \
    }                                                                                              \
    tn_status tni_cpu_max_pool##n##d_backward(                                                     \
        tn_tensor *grad_output, tn_tensor *self, const int64_t *kernel_size,                       \
        int64_t kernel_size_n, const int64_t *stride, int64_t stride_n, const int64_t *padding,    \
        int64_t padding_n, const int64_t *dilation, int64_t dilation_n, bool ceil_mode,            \
        tn_tensor *indices, tn_tensor *out)                                                        \
    {                                                                                              \
        plane_job a = {0};                                                                         \
        tni_pool_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,           \
                            stride_n,    padding_n, dilation_n, ceil_mode};                        \
        TN_TRY(tni_pool_check(n, self, &l, &a.job.p));                                             \
        return max_backward("max_pool" #n "d_with_indices", &a, grad_output, indices, out);        \
    }                                                                                              \
    tn_status tni_cpu_avg_pool##n##d(                                                              \
        tn_tensor *self, const int64_t *kernel_size, int64_t kernel_size_n, const int64_t *stride, \
        int64_t stride_n, const int64_t *padding, int64_t padding_n, bool ceil_mode,               \
        bool count_include_pad, tn_opt_int divisor_override, tn_tensor *out)                       \
    {                                                                                              \
        plane_job a = {.job.include_pad = count_include_pad,                                       \
                       .job.divisor = divisor_override.has ? divisor_override.value : 0};          \
        tni_pool_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,              \
                            stride_n,    padding_n, 0,       ceil_mode};                           \
        TN_TRY(tni_pool_check(n, self, &l, &a.job.p));                                             \
        return average_forward(&a, self, out);                                                     \
    }                                                                                              \
    tn_status tni_cpu_avg_pool##n##d_backward(                                                     \
        tn_tensor *grad_output, tn_tensor *self, const int64_t *kernel_size,                       \
        int64_t kernel_size_n, const int64_t *stride, int64_t stride_n, const int64_t *padding,    \
        int64_t padding_n, bool ceil_mode, bool count_include_pad, tn_opt_int divisor_override,    \
        tn_tensor *out)                                                                            \
    {                                                                                              \
        plane_job a = {.job.include_pad = count_include_pad,                                       \
                       .job.divisor = divisor_override.has ? divisor_override.value : 0};          \
        tni_pool_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,              \
                            stride_n,    padding_n, 0,       ceil_mode};                           \
        TN_TRY(tni_pool_check(n, self, &l, &a.job.p));                                             \
        return average_backward(&a, grad_output, out);                                             \
    }                                                                                              \
    tn_status tni_cpu_adaptive_avg_pool##n##d(tn_tensor *self, const int64_t *output_size,         \
                                              int64_t output_size_n, tn_tensor *out)               \
    {                                                                                              \
        plane_job a = adaptive(n, self, out);                                                      \
        (void)output_size;                                                                         \
        (void)output_size_n;                                                                       \
        return average_forward(&a, self, out);                                                     \
    }                                                                                              \
    tn_status tni_cpu_adaptive_avg_pool##n##d_backward(tn_tensor *grad_output, tn_tensor *self,    \
                                                       tn_tensor *out)                             \
    {                                                                                              \
        plane_job a = adaptive(n, self, grad_output);                                              \
        return average_backward(&a, grad_output, out);                                             \
    }                                                                                              \
    tn_status tni_cpu_adaptive_max_pool##n##d(tn_tensor *self, const int64_t *output_size,         \
                                              int64_t output_size_n, tn_tensor *out0,              \
                                              tn_tensor *out1)                                     \
    {                                                                                              \
        plane_job a = adaptive(n, self, out0);                                                     \
        (void)output_size;                                                                         \
        (void)output_size_n;                                                                       \
        return max_forward(&a, self, out0, out1);                                                  \
    }                                                                                              \
    tn_status tni_cpu_adaptive_max_pool##n##d_backward(tn_tensor *grad_output, tn_tensor *self,    \
                                                       tn_tensor *indices, tn_tensor *out)         \
    {                                                                                              \
        plane_job a = adaptive(n, self, grad_output);                                              \
        return max_backward("adaptive_max_pool" #n "d", &a, grad_output, indices, out);            \
    }

POOL(2)
POOL(3)
