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

/* Calls BODY for each element of a column that lies in the plane: `at` there, `to` in the columns.
 */
#define EACH(BODY)                                                                      \
    int64_t row = 0;                                                                    \
    for (int64_t r = 0; r < j->kernel[0]; r++)                                          \
        for (int64_t c = 0; c < j->kernel[1]; c++, row++)                               \
            for (int64_t y = 0; y < j->oh; y++) {                                       \
                int64_t iy = y * j->stride[0] - j->padding[0] + r * j->dilation[0];     \
                if (iy < 0 || iy >= j->h)                                               \
                    continue;                                                           \
                for (int64_t x = 0; x < j->ow; x++) {                                   \
                    int64_t ix = x * j->stride[1] - j->padding[1] + c * j->dilation[1]; \
                    if (ix < 0 || ix >= j->w)                                           \
                        continue;                                                       \
                    int64_t at = iy * j->w + ix, to = (row * j->oh + y) * j->ow + x;    \
                    BODY;                                                               \
                }                                                                       \
            }

static tn_status take(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    size_t plane = (size_t)(j->h * j->w) * j->size;
    size_t block = (size_t)(j->kernel[0] * j->kernel[1] * j->oh * j->ow) * j->size;
    for (int64_t i = begin; i < end; i++) {
        const char *from = j->image + (size_t)i * plane;
        char *out = j->columns + (size_t)i * block;
        memset(out, 0, block);
        EACH(memcpy(out + (size_t)to * j->size, from + (size_t)at * j->size, j->size))
    }
    return TN_OK;
}

#define ADD(T, NAME)                                                        \
    static void add_##NAME(const job *j, int64_t i)                         \
    {                                                                       \
        int64_t block = j->kernel[0] * j->kernel[1] * j->oh * j->ow;        \
        T *image = (T *)(void *)j->image + i * j->h * j->w;                 \
        const T *columns = (const T *)(const void *)j->columns + i * block; \
        EACH(image[at] = image[at] + columns[to])                           \
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
    if (out->flags & TNI_CONTIGUOUS)
        work = tn_tensor_ref(out);
    else
        TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, (tn_dtype)out->dtype, TN_CPU, &work));
    j.image = x->data;
    j.columns = work->data;
    j.size = tni_itemsize(self);
    TN_TRY(tni_pool_for(planes_of(self), 1, take, &j));
    return work == out ? TN_OK : tni_copy_cpu(out, work);
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
