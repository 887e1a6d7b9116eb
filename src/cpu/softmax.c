/* SPDX-License-Identifier: MIT */
/* cpu/softmax.c: softmax, log_softmax and their gradients. Contiguous rows go straight to the
 * loops, everything else line by line. */
#include "base/pool.h"
#include "cpu/lines.h"
#include "cpu/rows.h"
#include "gen/cpu.h"

#define GRAIN 16384

typedef void (*one_fn)(void *out, const void *x, int64_t rows, int64_t n);
typedef void (*two_fn)(void *out, const void *grad, const void *y, int64_t rows, int64_t n);

typedef struct softmax_job {
    one_fn one;
    two_fn two; /* instead of `one`, for gradients */
    char *out;
    const char *a, *b;
    int64_t n;
    int64_t row_bytes;
} softmax_job;

static tn_status some_rows(int64_t begin, int64_t end, void *arg)
{
    const softmax_job *j = arg;
    int64_t at = begin * j->row_bytes;
    if (j->one)
        j->one(j->out + at, j->a + at, end - begin, j->n);
    else
        j->two(j->out + at, j->a + at, j->b + at, end - begin, j->n);
    return TN_OK;
}

static tn_status one_line(void *const *line, void *scratch, void *ctx)
{
    const softmax_job *j = ctx;
    (void)scratch;
    if (j->one)
        j->one(line[0], line[1], 1, j->n);
    else
        j->two(line[0], line[1], line[2], 1, j->n);
    return TN_OK;
}

static tn_status run(softmax_job *j, const tn_tensor *a, const tn_tensor *b, int64_t dim,
                     tn_tensor *out)
{
    if (out->numel == 0)
        return TN_OK;
    int d = (int)(dim < 0 ? dim + (a->ndim ? a->ndim : 1) : dim); /* in range: the shape was made */
    j->n = a->ndim ? a->sizes[d] : 1;
    tn_dtype dtype = (tn_dtype)a->dtype, compute = tni_compute_dtype(dtype);
    uint32_t contiguous = out->flags & a->flags & (b ? b->flags : TNI_CONTIGUOUS);
    if (d >= a->ndim - 1 && (contiguous & TNI_CONTIGUOUS) && dtype == compute) {
        int64_t rows = 1; /* no division: it would be a tenth of a small call */
        for (int i = 0; i < d; i++)
            rows *= a->sizes[i];
        j->out = out->data;
        j->a = a->data;
        j->b = b ? b->data : NULL;
        j->row_bytes = j->n * (int64_t)tni_dtype_size(dtype);
        if (a->numel <= GRAIN)
            return some_rows(0, rows, j);
        return tni_pool_for(rows, j->n < GRAIN ? GRAIN / j->n : 1, some_rows, j);
    }
    tni_line lines[] = {
        {out, compute, TNI_LINE_WRITE}, {a, compute, TNI_LINE_READ}, {b, compute, TNI_LINE_READ}};
    return tni_lines(a, UINT64_C(1) << d, lines, b ? 3 : 2, 0, one_line, j);
}

static const tni_rows_loops *loops_for(const tn_tensor *t)
{
    return tni_rows_of(tni_cpu_kernels(), (tn_dtype)t->dtype);
}

tn_status tni_cpu__softmax(tn_tensor *self, int64_t dim, bool half_to_float, tn_tensor *out)
{
    (void)half_to_float;
    softmax_job j = {.one = loops_for(self)->softmax};
    return run(&j, self, NULL, dim, out);
}

tn_status tni_cpu__log_softmax(tn_tensor *self, int64_t dim, bool half_to_float, tn_tensor *out)
{
    (void)half_to_float;
    softmax_job j = {.one = loops_for(self)->log_softmax};
    return run(&j, self, NULL, dim, out);
}

tn_status tni_cpu__softmax_backward_data(tn_tensor *grad_output, tn_tensor *output, int64_t dim,
                                         tn_dtype input_dtype, tn_tensor *out)
{
    (void)input_dtype;
    softmax_job j = {.two = loops_for(output)->softmax_backward};
    return run(&j, grad_output, output, dim, out);
}

tn_status tni_cpu__log_softmax_backward_data(tn_tensor *grad_output, tn_tensor *output, int64_t dim,
                                             tn_dtype input_dtype, tn_tensor *out)
{
    (void)input_dtype;
    softmax_job j = {.two = loops_for(output)->log_softmax_backward};
    return run(&j, grad_output, output, dim, out);
}
