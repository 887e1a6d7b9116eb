/* SPDX-License-Identifier: MIT */
/* cpu/columns.c: windows as columns, and columns added up at the places of their windows. */
#include <complex.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

/* A plane [h, w] and its columns [kh * kw, oh * ow]; planes are channels of samples, all alike. */
typedef struct job {
    char *image, *columns;
    int64_t h, w, oh, ow;
    const int64_t *kernel, *dilation, *padding, *stride;
    size_t size;
    tn_dtype dtype;
} job;

/* The windows along a line of @p size elements, of @p windows, whose element at @p offset from
 * their first one lies in it: [*begin, *end). */
static void inside(int64_t offset, int64_t stride, int64_t size, int64_t windows, int64_t *begin,
                   int64_t *end)
{
    *end = offset < size ? (size - 1 - offset) / stride + 1 : 0;
    *end = *end < windows ? *end : windows;
    *begin = offset < 0 ? (stride - 1 - offset) / stride : 0;
    *begin = *begin < *end ? *begin : *end;
}

/* Calls BODY for each line of a column: its elements [begin, end) from `to` on lie in the plane,
 * the first at `at`, each `step` behind the last. */
#define EACH_LINE(BODY)                                                                           \
    const int64_t step = j->stride[1], width = j->ow;                                             \
    int64_t to = 0;                                                                               \
    for (int64_t r = 0; r < j->kernel[0]; r++)                                                    \
        for (int64_t c = 0; c < j->kernel[1]; c++) {                                              \
            const int64_t offset = c * j->dilation[1] - j->padding[1];                            \
            int64_t begin, end, top, bottom;                                                      \
            inside(r * j->dilation[0] - j->padding[0], j->stride[0], j->h, j->oh, &top, &bottom); \
            for (int64_t y = 0; y < j->oh; y++, to += width) {                                    \
                int64_t line = y * j->stride[0] - j->padding[0] + r * j->dilation[0];             \
                begin = end = 0;                                                                  \
                if (y >= top && y < bottom)                                                       \
                    inside(offset, step, j->w, width, &begin, &end);                              \
                const int64_t at = line * j->w + begin * step + offset;                           \
                BODY;                                                                             \
            }                                                                                     \
        }

/* Elements @p step apart, of SIZE bytes, side by side. */
#define GATHER(SIZE)                                                                   \
    case SIZE:                                                                         \
        for (int64_t i = 0; i < n; i++)                                                \
            memcpy(to + (size_t)i * (SIZE), from + (size_t)(i * step) * (SIZE), SIZE); \
        break

static void copy_line(char *to, const char *from, int64_t n, int64_t step, size_t size)
{
    if (step == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    switch (size) {
        GATHER(1);
        GATHER(2);
        GATHER(4);
        GATHER(8);
        GATHER(16);
    }
}

static tn_status take(int64_t begin_plane, int64_t end_plane, void *arg)
{
    const job *j = arg;
    const size_t size = j->size, plane = (size_t)(j->h * j->w) * size;
    const size_t block = (size_t)(j->kernel[0] * j->kernel[1] * j->oh * j->ow) * size;
    for (int64_t i = begin_plane; i < end_plane; i++) {
        const char *from = j->image + (size_t)i * plane;
        char *columns = j->columns + (size_t)i * block;
        EACH_LINE({
            char *out = columns + (size_t)to * size;
            memset(out, 0, (size_t)begin * size);
            if (begin < end)
                copy_line(out + (size_t)begin * size, from + (size_t)at * size, end - begin, step,
                          size);
            memset(out + (size_t)end * size, 0, (size_t)(width - end) * size);
        })
    }
    return TN_OK;
}

#define ADD(T, NAME)                                                        \
    static void add_##NAME(const job *j, int64_t i)                         \
    {                                                                       \
        int64_t block = j->kernel[0] * j->kernel[1] * j->oh * j->ow;        \
        T *image = (T *)(void *)j->image + i * j->h * j->w;                 \
        const T *columns = (const T *)(const void *)j->columns + i * block; \
        EACH_LINE(for (int64_t x = begin; x < end; x++) {                   \
            T *place = image + at + (x - begin) * step;                     \
            *place = *place + columns[to + x];                              \
        })                                                                  \
    }
ADD(float, f32)
ADD(double, f64)
ADD(float complex, c64)
ADD(double complex, c128)

static tn_status add(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i++)
        switch (j->dtype) {
        case TN_DTYPE_F32:
            add_f32(j, i);
            break;
        case TN_DTYPE_F64:
            add_f64(j, i);
            break;
        case TN_DTYPE_C64:
            add_c64(j, i);
            break;
        default:
            add_c128(j, i);
        }
    return TN_OK;
}

static int64_t windows(const job *j, int i, int64_t size)
{
    return (size + 2 * j->padding[i] - (j->dilation[i] * (j->kernel[i] - 1) + 1)) / j->stride[i] +
           1;
}

static int64_t planes_of(const tn_tensor *image)
{
    int n = image->ndim;
    return image->sizes[n - 3] * (n == 4 ? image->sizes[0] : 1);
}

static void fill_job(job *j, const tn_tensor *image)
{
    j->h = image->sizes[image->ndim - 2];
    j->w = image->sizes[image->ndim - 1];
    j->oh = windows(j, 0, j->h);
    j->ow = windows(j, 1, j->w);
}

tn_status tni_cpu_im2col(tn_tensor *self, const int64_t *kernel_size, int64_t kernel_size_n,
                         const int64_t *dilation, int64_t dilation_n, const int64_t *padding,
                         int64_t padding_n, const int64_t *stride, int64_t stride_n, tn_tensor *out)
{
    job j = {.kernel = kernel_size, .dilation = dilation, .padding = padding, .stride = stride};
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    (void)kernel_size_n;
    (void)dilation_n;
    (void)padding_n;
    (void)stride_n;
    if (out->numel == 0)
        return TN_OK;
    fill_job(&j, self);
    TN_TRY(tni_ready(self, (tn_dtype)self->dtype, &x));
    TN_TRY(tni_work_of(out, (tn_dtype)out->dtype, &work));
    j.image = x->data;
    j.columns = work->data;
    j.size = tni_itemsize(self);
    TN_TRY(tni_pool_for(planes_of(self), 1, take, &j));
    return tni_work_back(out, work);
}

tn_status tni_cpu_col2im(tn_tensor *self, const int64_t *output_size, int64_t output_size_n,
                         const int64_t *kernel_size, int64_t kernel_size_n, const int64_t *dilation,
                         int64_t dilation_n, const int64_t *padding, int64_t padding_n,
                         const int64_t *stride, int64_t stride_n, tn_tensor *out)
{
    job j = {.kernel = kernel_size, .dilation = dilation, .padding = padding, .stride = stride};
    tn_dtype own = (tn_dtype)self->dtype;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    (void)output_size;
    (void)output_size_n;
    (void)kernel_size_n;
    (void)dilation_n;
    (void)padding_n;
    (void)stride_n;
    if (out->numel == 0)
        return TN_OK;
    fill_job(&j, out);
    j.dtype = tn_dtype_is_complex(own) || own == TN_DTYPE_F64 ? own : TN_DTYPE_F32;
    TN_TRY(tni_ready(self, j.dtype, &x));
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, j.dtype, TN_CPU, &work));
    if (work->numel)
        memset(work->data, 0, (size_t)work->numel * tni_itemsize(work));
    j.image = work->data;
    j.columns = x->data;
    TN_TRY(tni_pool_for(planes_of(out), 1, add, &j));
    return tni_copy_cpu(out, work);
}
