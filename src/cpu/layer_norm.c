/* SPDX-License-Identifier: MIT */
/* cpu/layer_norm.c: layer normalisation and its gradients. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/lines.h"
#include "cpu/ready.h"
#include "cpu/rows.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "shape/index.h"
#include "shape/norm.h"

#define GRAIN       16384
#define MOST_CHUNKS 32 /* pieces that weight gradients are added from */

/* ---- forward ---- */

typedef struct norm_job {
    const tni_rows_loops *loops;
    char *out, *mean, *rstd;
    const char *x, *weight, *bias;
    int64_t n;
    int64_t itemsize;
    double eps;
} norm_job;

static tn_status some_rows(int64_t begin, int64_t end, void *arg)
{
    const norm_job *j = arg;
    int64_t at = begin * j->n * j->itemsize;
    j->loops->layer_norm(j->out + at, j->mean + begin * j->itemsize, j->rstd + begin * j->itemsize,
                         j->x + at, j->weight, j->bias, end - begin, j->n, j->eps);
    return TN_OK;
}

static tn_status one_line(void *const *line, void *scratch, void *ctx)
{
    const norm_job *j = ctx;
    (void)scratch;
    j->loops->layer_norm(line[0], line[1], line[2], line[3], j->weight, j->bias, 1, j->n, j->eps);
    return TN_OK;
}

/* Rows of no elements: their mean is NaN. */
static tn_status empty_rows(tn_tensor *mean, tn_tensor *rstd)
{
    tn_tensor *both[] = {mean, rstd};
    for (int k = 0; k < 2; k++) {
        TN_AUTO(tn_tensor) number = NULL;
        TN_TRY(tni_tensor_new(0, NULL, NULL, TN_DTYPE_F64, TN_CPU, &number));
        *(double *)number->data = k ? (double)NAN : 0.0;
        if (both[k]->numel)
            TN_TRY(tni_copy_cpu(both[k], number));
    }
    return TN_OK;
}

tn_status tni_cpu_native_layer_norm(tn_tensor *input, const int64_t *normalized_shape,
                                    int64_t normalized_shape_n, tn_tensor *weight, tn_tensor *bias,
                                    double eps, tn_tensor *out0, tn_tensor *out1, tn_tensor *out2)
{
    (void)normalized_shape;
    if (input->numel == 0)
        return empty_rows(out1, out2);
    tn_dtype dtype = (tn_dtype)input->dtype, compute = tni_compute_dtype(dtype);
    uint64_t dims = ~UINT64_C(0) << (input->ndim - normalized_shape_n);
    norm_job j = {.loops = tni_rows_of(tni_cpu_kernels(), compute), .eps = eps};
    j.n = tni_line_length(input, dims);
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_TRY(tni_ready(weight, compute, &w));
    TN_TRY(tni_ready(bias, compute, &b));
    j.weight = w ? w->data : NULL;
    j.bias = b ? b->data : NULL;
    if (dtype == compute &&
        (input->flags & out0->flags & out1->flags & out2->flags & TNI_CONTIGUOUS)) {
        int64_t rows = input->numel / j.n, grain = j.n < GRAIN ? GRAIN / j.n : 1;
        j.itemsize = (int64_t)tni_dtype_size(dtype);
        j.out = out0->data;
        j.mean = out1->data;
        j.rstd = out2->data;
        j.x = input->data;
        return rows <= grain ? some_rows(0, rows, &j) : tni_pool_for(rows, grain, some_rows, &j);
    }
    tni_line lines[] = {{out0, compute, TNI_LINE_WRITE},
                        {out1, compute, TNI_LINE_WRITE},
                        {out2, compute, TNI_LINE_WRITE},
                        {input, compute, TNI_LINE_READ}};
    return tni_lines(input, dims, lines, 4, 0, one_line, &j);
}

/* ---- backward ---- */

typedef struct backward_job {
    const tni_rows_loops *loops;
    tn_dtype dtype;
    char *dx, *dparams; /* dparams: for each chunk n of dweight, n of dbias */
    const char *dy, *x, *weight, *mean, *rstd;
    int64_t n, rows, chunk_rows;
    int64_t itemsize;
    bool want_weight, want_bias;
} backward_job;

static double element(const backward_job *j, const char *at, int64_t i)
{
    return j->dtype == TN_DTYPE_F64 ? ((const double *)(const void *)at)[i]
                                    : (double)((const float *)(const void *)at)[i];
}

static tn_status backward_chunks(int64_t begin, int64_t end, void *arg)
{
    const backward_job *j = arg;
    for (int64_t c = begin; c < end; c++) {
        int64_t last = (c + 1) * j->chunk_rows < j->rows ? (c + 1) * j->chunk_rows : j->rows;
        char *dw = j->dparams ? j->dparams + 2 * c * j->n * j->itemsize : NULL;
        char *db = dw ? dw + j->n * j->itemsize : NULL;
        if (dw)
            memset(dw, 0, (size_t)(2 * j->n * j->itemsize));
        for (int64_t r = c * j->chunk_rows; r < last; r++) {
            int64_t at = r * j->n * j->itemsize;
            double mean = element(j, j->mean, r), rstd = element(j, j->rstd, r);
            if (j->dx)
                j->loops->norm_backward_row(j->dx + at, j->dy + at, j->x + at, j->weight, j->n,
                                            mean, rstd);
            if (dw)
                j->loops->norm_backward_params(j->want_weight ? dw : NULL, j->want_bias ? db : NULL,
                                               j->dy + at, j->x + at, j->n, mean, rstd);
        }
    }
    return TN_OK;
}

/* The chunks' gradients of a parameter, added in order in double precision. */
static void add_chunks(const backward_job *j, int64_t chunks, int which, tn_tensor *out)
{
    for (int64_t i = 0; i < j->n; i++) {
        double sum = 0;
        for (int64_t c = 0; c < chunks; c++)
            sum += element(j, j->dparams, (2 * c + which) * j->n + i);
        if (j->dtype == TN_DTYPE_F64)
            ((double *)out->data)[i] = sum;
        else
            ((float *)out->data)[i] = (float)sum;
    }
}

static tn_status backward_go(backward_job *j, tn_tensor *dx, tn_tensor *dweight, tn_tensor *dbias)
{
    /* Chunks depend on the sizes alone. */
    int64_t least = j->n < GRAIN ? GRAIN / j->n : 1;
    j->chunk_rows = (j->rows + MOST_CHUNKS - 1) / MOST_CHUNKS;
    if (j->chunk_rows < least)
        j->chunk_rows = least;
    int64_t chunks = (j->rows + j->chunk_rows - 1) / j->chunk_rows;
    j->dx = dx ? dx->data : NULL;
    j->want_weight = dweight != NULL;
    j->want_bias = dbias != NULL;
    if (dweight || dbias) {
        size_t nbytes = (size_t)(2 * chunks * j->n * j->itemsize);
        j->dparams = tni_alloc(nbytes);
        TN_CHECK(j->dparams, TN_NOMEM, "cannot allocate %zu bytes for gradients of weights",
                 nbytes);
    }
    tn_status status = tni_pool_for(chunks, 1, backward_chunks, j);
    if (status == TN_OK && dweight)
        add_chunks(j, chunks, 0, dweight);
    if (status == TN_OK && dbias)
        add_chunks(j, chunks, 1, dbias);
    tni_free(j->dparams);
    return status;
}

/* A result of @p like's sizes, or nothing; computed in @p work, which is the result itself unless
 * it has another dtype. */
static tn_status result(bool wanted, int ndim, const int64_t *sizes, tn_dtype dtype,
                        tn_dtype compute, tn_device device, tn_tensor **out, tn_tensor **work)
{
    if (!wanted)
        return TN_OK;
    TN_TRY(tni_tensor_new(ndim, sizes, NULL, dtype, device, out));
    if (dtype == compute || (*out)->storage->device.type == TN_DEVICE_META) {
        *work = tn_tensor_ref(*out);
        return TN_OK;
    }
    return tni_tensor_new(ndim, sizes, NULL, compute, device, work);
}

static tn_status back(tn_tensor *out, tn_tensor *work)
{
    return out && out != work && out->numel ? tni_copy_cpu(out, work) : TN_OK;
}

tn_status tni_kernel_native_layer_norm_backward(tn_call *call, tn_tensor *grad_out,
                                                tn_tensor *input, const int64_t *normalized_shape,
                                                int64_t normalized_shape_n, tn_tensor *mean,
                                                tn_tensor *rstd, tn_tensor *weight, tn_tensor *bias,
                                                const bool *output_mask, int64_t output_mask_n,
                                                tn_tensor **out0, tn_tensor **out1,
                                                tn_tensor **out2)
{
    (void)call;
    int leading;
    tn_dtype statistics;
    TN_TRY(tni_check_mask_length(output_mask_n, 3));
    TN_TRY(
        tni_check_normalized(input, normalized_shape, normalized_shape_n, weight, bias, &leading));
    TN_TRY(tni_check_norm_dtypes("LayerNormBackwardKernelImpl", input, weight, bias, &statistics));
    TN_TRY(tni_same_device(input, grad_out));
    TN_TRY(tni_same_device(input, mean));
    TN_TRY(tni_same_device(input, rstd));
    bool fits = grad_out->ndim == input->ndim;
    for (int d = 0; fits && d < input->ndim; d++)
        fits = grad_out->sizes[d] == input->sizes[d];
    TN_CHECK(fits && grad_out->dtype == input->dtype, TN_INVALID,
             "grad_out must have the sizes and the dtype of input");
    int64_t n = tni_line_length(input, ~UINT64_C(0) << leading), rows = n ? input->numel / n : 0;
    int64_t leading_rows = tni_line_length(input, ~(~UINT64_C(0) << leading));
    TN_CHECK(mean->numel == leading_rows && rstd->numel == leading_rows, TN_INVALID,
             "mean and rstd must have one element for each of the %lld rows of input",
             (long long)leading_rows);
    tn_dtype x_dtype = (tn_dtype)input->dtype, compute = tni_compute_dtype(x_dtype);
    tn_dtype w_dtype = (tn_dtype)(weight ? weight->dtype : bias ? bias->dtype : input->dtype);
    TN_AUTO(tn_tensor) dx = NULL;
    TN_AUTO(tn_tensor) dw = NULL;
    TN_AUTO(tn_tensor) db = NULL;
    TN_AUTO(tn_tensor) work_x = NULL;
    TN_AUTO(tn_tensor) work_w = NULL;
    TN_AUTO(tn_tensor) work_b = NULL;
    TN_TRY(result(output_mask[0], input->ndim, input->sizes, x_dtype, compute, input->device, &dx,
                  &work_x));
    TN_TRY(result(output_mask[1], (int)normalized_shape_n, normalized_shape, w_dtype, compute,
                  input->device, &dw, &work_w));
    TN_TRY(result(output_mask[2], (int)normalized_shape_n, normalized_shape, w_dtype, compute,
                  input->device, &db, &work_b));
    if (!tni_is_meta(input) && rows > 0) {
        TN_AUTO(tn_tensor) dy = NULL;
        TN_AUTO(tn_tensor) x = NULL;
        TN_AUTO(tn_tensor) w = NULL;
        TN_AUTO(tn_tensor) m = NULL;
        TN_AUTO(tn_tensor) s = NULL;
        TN_TRY(tni_ready(grad_out, compute, &dy));
        TN_TRY(tni_ready(input, compute, &x));
        TN_TRY(tni_ready(weight, compute, &w));
        TN_TRY(tni_ready(mean, compute, &m));
        TN_TRY(tni_ready(rstd, compute, &s));
        backward_job j = {.loops = tni_rows_of(tni_cpu_kernels(), compute),
                          .dtype = compute,
                          .dy = dy->data,
                          .x = x->data,
                          .weight = w ? w->data : NULL,
                          .mean = m->data,
                          .rstd = s->data,
                          .n = n,
                          .rows = rows,
                          .itemsize = (int64_t)tni_dtype_size(compute)};
        TN_TRY(backward_go(&j, work_x, work_w, work_b));
    } else if (!tni_is_meta(input)) {
        if (work_w && work_w->numel)
            memset(work_w->data, 0, (size_t)work_w->numel * tni_itemsize(work_w));
        if (work_b && work_b->numel)
            memset(work_b->data, 0, (size_t)work_b->numel * tni_itemsize(work_b));
    }
    if (!tni_is_meta(input)) {
        TN_TRY(back(dx, work_x));
        TN_TRY(back(dw, work_w));
        TN_TRY(back(db, work_b));
    }
    *out0 = TN_MOVE(dx);
    *out1 = TN_MOVE(dw);
    *out2 = TN_MOVE(db);
    return TN_OK;
}
