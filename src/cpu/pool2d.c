/* SPDX-License-Identifier: MIT */
/* cpu/pool2d.c: pooling over two dimensions and its gradients. Planes are shared out to threads;
 * each is computed as a contiguous one of float32, float64 or int64, whatever the tensors are. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "shape/pool.h"

#define GRAIN 16384

typedef struct pool_job {
    tni_pool2d p;
    bool adaptive, include_pad;
    int64_t divisor; /* 0: by the window */
    const void *x;
    void *out;
    int64_t *indices;       /* written by max */
    const int64_t *sources; /* read by its backward */
    tn_dtype dtype;
} pool_job;

/* One window along one dimension: elements [begin, end) of the input, and its length with padding.
 */
typedef struct window {
    int64_t begin, end, length;
} window;

static window average_window(const pool_job *j, int i, int64_t o)
{
    const tni_pool2d *p = &j->p;
    window w;
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

static window max_window(const tni_pool2d *p, int i, int64_t o)
{
    window w;
    w.begin = o * p->stride[i] - p->padding[i];
    w.end = w.begin + (p->kernel[i] - 1) * p->dilation[i] + 1;
    w.end = w.end > p->in[i] ? p->in[i] : w.end;
    w.length = 0;
    if (w.begin < 0)
        w.begin += (-w.begin + p->dilation[i] - 1) / p->dilation[i] * p->dilation[i];
    return w;
}

static int64_t divisor_of(const pool_job *j, window h, window w)
{
    if (j->divisor)
        return j->divisor;
    return j->include_pad ? h.length * w.length : (h.end - h.begin) * (w.end - w.begin);
}

/* A NaN wins, the last one; of equal numbers the first. */
#define DEFINE(T, name, lowest)                                                       \
    static void max_##name(const pool_job *j, int64_t plane)                          \
    {                                                                                 \
        const tni_pool2d *p = &j->p;                                                  \
        const T *x = (const T *)j->x + plane * p->in[0] * p->in[1];                   \
        T *out = (T *)j->out + plane * p->out[0] * p->out[1];                         \
        int64_t *places = j->indices + plane * p->out[0] * p->out[1];                 \
        for (int64_t oh = 0; oh < p->out[0]; oh++) {                                  \
            window h = max_window(p, 0, oh);                                          \
            for (int64_t ow = 0; ow < p->out[1]; ow++) {                              \
                window w = max_window(p, 1, ow);                                      \
                T best = lowest;                                                      \
                int64_t place = h.begin * p->in[1] + w.begin;                         \
                for (int64_t r = h.begin; r < h.end; r += p->dilation[0]) {           \
                    for (int64_t c = w.begin; c < w.end; c += p->dilation[1]) {       \
                        T v = x[r * p->in[1] + c];                                    \
                        if (v > best || v != v) {                                     \
                            best = v;                                                 \
                            place = r * p->in[1] + c;                                 \
                        }                                                             \
                    }                                                                 \
                }                                                                     \
                *out++ = best;                                                        \
                *places++ = place;                                                    \
            }                                                                         \
        }                                                                             \
    }                                                                                 \
    static void average_##name(const pool_job *j, int64_t plane)                      \
    {                                                                                 \
        const tni_pool2d *p = &j->p;                                                  \
        const T *x = (const T *)j->x + plane * p->in[0] * p->in[1];                   \
        T *out = (T *)j->out + plane * p->out[0] * p->out[1];                         \
        for (int64_t oh = 0; oh < p->out[0]; oh++) {                                  \
            window h = average_window(j, 0, oh);                                      \
            for (int64_t ow = 0; ow < p->out[1]; ow++) {                              \
                window w = average_window(j, 1, ow);                                  \
                T sum = 0;                                                            \
                for (int64_t r = h.begin; r < h.end; r++) {                           \
                    for (int64_t c = w.begin; c < w.end; c++)                         \
                        sum = ADD_##name(sum, x[r * p->in[1] + c]);                   \
                }                                                                     \
                bool inside = h.begin < h.end && w.begin < w.end;                     \
                *out++ = inside ? DIV_##name(sum, divisor_of(j, h, w)) : 0;           \
            }                                                                         \
        }                                                                             \
    }                                                                                 \
    static void average_backward_##name(const pool_job *j, int64_t plane)             \
    {                                                                                 \
        const tni_pool2d *p = &j->p;                                                  \
        const T *grad = (const T *)j->x + plane * p->out[0] * p->out[1];              \
        T *out = (T *)j->out + plane * p->in[0] * p->in[1];                           \
        for (int64_t oh = 0; oh < p->out[0]; oh++) {                                  \
            window h = average_window(j, 0, oh);                                      \
            for (int64_t ow = 0; ow < p->out[1]; ow++) {                              \
                window w = average_window(j, 1, ow);                                  \
                T g = *grad++;                                                        \
                if (h.begin >= h.end || w.begin >= w.end)                             \
                    continue;                                                         \
                g = DIV_##name(g, divisor_of(j, h, w));                               \
                for (int64_t r = h.begin; r < h.end; r++) {                           \
                    for (int64_t c = w.begin; c < w.end; c++)                         \
                        out[r * p->in[1] + c] = ADD_##name(out[r * p->in[1] + c], g); \
                }                                                                     \
            }                                                                         \
        }                                                                             \
    }                                                                                 \
    static void max_backward_##name(const pool_job *j, int64_t plane)                 \
    {                                                                                 \
        int64_t n = j->p.out[0] * j->p.out[1];                                        \
        const T *grad = (const T *)j->x + plane * n;                                  \
        const int64_t *places = j->sources + plane * n;                               \
        T *out = (T *)j->out + plane * j->p.in[0] * j->p.in[1];                       \
        for (int64_t i = 0; i < n; i++)                                               \
            out[places[i]] = ADD_##name(out[places[i]], grad[i]);                     \
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
DEFINE(int64_t, i64, INT64_MIN)

typedef void (*plane_fn)(const pool_job *j, int64_t plane);

typedef struct plane_job {
    pool_job job;
    plane_fn f32, f64, i64;
    int64_t cost; /* of a plane */
} plane_job;

static tn_status some_planes(int64_t begin, int64_t end, void *arg)
{
    const plane_job *a = arg;
    plane_fn fn = a->job.dtype == TN_DTYPE_F32   ? a->f32
                  : a->job.dtype == TN_DTYPE_F64 ? a->f64
                                                 : a->i64;
    for (int64_t i = begin; i < end; i++)
        fn(&a->job, i);
    return TN_OK;
}

/* Where a result is computed: itself, or a fresh contiguous tensor of @p dtype. */
static tn_status work_of(tn_tensor *out, tn_dtype dtype, tn_tensor **work)
{
    if (out->dtype == dtype && (out->flags & TNI_CONTIGUOUS)) {
        *work = tn_tensor_ref(out);
        return TN_OK;
    }
    return tni_tensor_new(out->ndim, out->sizes, NULL, dtype, out->device, work);
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
    TN_TRY(work_of(out, a->job.dtype, &work));
    if (places) {
        TN_TRY(work_of(places, TN_DTYPE_I64, &work_places));
        a->job.indices = work_places->data;
    }
    if (zero)
        memset(work->data, 0, (size_t)work->numel * tni_itemsize(work));
    a->job.x = ready->data;
    a->job.out = work->data;
    int64_t grain = a->cost > 0 && a->cost < GRAIN ? GRAIN / a->cost : 1;
    TN_TRY(tni_pool_for(a->job.p.planes, grain, some_planes, a));
    if (work != out)
        TN_TRY(tni_copy_cpu(out, work));
    return places && work_places != places ? tni_copy_cpu(places, work_places) : TN_OK;
}

/* ---- operators ---- */

tn_status tni_cpu_max_pool2d(tn_tensor *self, const int64_t *kernel_size, int64_t kernel_size_n,
                             const int64_t *stride, int64_t stride_n, const int64_t *padding,
                             int64_t padding_n, const int64_t *dilation, int64_t dilation_n,
                             bool ceil_mode, tn_tensor *out0, tn_tensor *out1)
{
    plane_job a = {.f32 = max_f32, .f64 = max_f64, .i64 = max_i64};
    tni_pool2d_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,
                          stride_n,    padding_n, dilation_n, ceil_mode};
    TN_TRY(tni_pool2d_check("max_pool2d", self, &l, &a.job.p));
    a.cost = a.job.p.out[0] * a.job.p.out[1];
    return run(&a, self, out0, out1, false);
}

tn_status tni_cpu_max_pool2d_backward(tn_tensor *grad_output, tn_tensor *self,
                                      const int64_t *kernel_size, int64_t kernel_size_n,
                                      const int64_t *stride, int64_t stride_n,
                                      const int64_t *padding, int64_t padding_n,
                                      const int64_t *dilation, int64_t dilation_n, bool ceil_mode,
                                      tn_tensor *indices, tn_tensor *out)
{
    plane_job a = {.f32 = max_backward_f32, .f64 = max_backward_f64, .i64 = max_backward_i64};
    tni_pool2d_lists l = {kernel_size, stride,    padding,    dilation, kernel_size_n,
                          stride_n,    padding_n, dilation_n, ceil_mode};
    TN_TRY(tni_pool2d_check("max_pool2d", self, &l, &a.job.p));
    TN_AUTO(tn_tensor) places = NULL;
    TN_TRY(tni_ready(indices, TN_DTYPE_I64, &places));
    a.job.sources = places->data;
    a.cost = a.job.p.out[0] * a.job.p.out[1];
    int64_t limit = a.job.p.in[0] * a.job.p.in[1];
    for (int64_t i = 0; i < places->numel; i++)
        TN_CHECK(a.job.sources[i] >= 0 && a.job.sources[i] < limit, TN_INVALID,
                 "max_pool2d_with_indices_backward: index %lld is out of range for planes of %lld "
                 "elements",
                 (long long)a.job.sources[i], (long long)limit);
    return run(&a, grad_output, out, NULL, true);
}

tn_status tni_cpu_avg_pool2d(tn_tensor *self, const int64_t *kernel_size, int64_t kernel_size_n,
                             const int64_t *stride, int64_t stride_n, const int64_t *padding,
                             int64_t padding_n, bool ceil_mode, bool count_include_pad,
                             tn_opt_int divisor_override, tn_tensor *out)
{
    plane_job a = {.f32 = average_f32, .f64 = average_f64, .i64 = average_i64};
    tni_pool2d_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,
                          stride_n,    padding_n, 0,       ceil_mode};
    TN_TRY(tni_pool2d_check("avg_pool2d", self, &l, &a.job.p));
    a.job.include_pad = count_include_pad;
    a.job.divisor = divisor_override.has ? divisor_override.value : 0;
    a.cost = a.job.p.out[0] * a.job.p.out[1];
    return run(&a, self, out, NULL, false);
}

tn_status tni_cpu_avg_pool2d_backward(tn_tensor *grad_output, tn_tensor *self,
                                      const int64_t *kernel_size, int64_t kernel_size_n,
                                      const int64_t *stride, int64_t stride_n,
                                      const int64_t *padding, int64_t padding_n, bool ceil_mode,
                                      bool count_include_pad, tn_opt_int divisor_override,
                                      tn_tensor *out)
{
    plane_job a = {
        .f32 = average_backward_f32, .f64 = average_backward_f64, .i64 = average_backward_i64};
    tni_pool2d_lists l = {kernel_size, stride,    padding, NULL,     kernel_size_n,
                          stride_n,    padding_n, 0,       ceil_mode};
    TN_TRY(tni_pool2d_check("avg_pool2d", self, &l, &a.job.p));
    a.job.include_pad = count_include_pad;
    a.job.divisor = divisor_override.has ? divisor_override.value : 0;
    a.cost = a.job.p.in[0] * a.job.p.in[1];
    return run(&a, grad_output, out, NULL, true);
}

static void adaptive_job(plane_job *a, const tn_tensor *whole, const tn_tensor *pooled)
{
    int n = whole->ndim;
    a->job.adaptive = true;
    a->job.p.planes = whole->sizes[n - 3] * (n == 4 ? whole->sizes[0] : 1);
    for (int i = 0; i < 2; i++) {
        a->job.p.in[i] = whole->sizes[n - 2 + i];
        a->job.p.out[i] = pooled->sizes[n - 2 + i];
    }
    a->cost = a->job.p.in[0] * a->job.p.in[1];
}

tn_status tni_cpu_adaptive_avg_pool2d(tn_tensor *self, const int64_t *output_size,
                                      int64_t output_size_n, tn_tensor *out)
{
    plane_job a = {.f32 = average_f32, .f64 = average_f64, .i64 = average_i64};
    (void)output_size;
    (void)output_size_n;
    adaptive_job(&a, self, out);
    return run(&a, self, out, NULL, false);
}

tn_status tni_cpu_adaptive_avg_pool2d_backward(tn_tensor *grad_output, tn_tensor *self,
                                               tn_tensor *out)
{
    plane_job a = {
        .f32 = average_backward_f32, .f64 = average_backward_f64, .i64 = average_backward_i64};
    (void)self;
    adaptive_job(&a, out, grad_output);
    return run(&a, grad_output, out, NULL, true);
}
