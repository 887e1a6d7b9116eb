/* SPDX-License-Identifier: MIT */
/* cpu/softmax.c: softmax, log_softmax and their gradients. Contiguous rows go straight to the
 * loops, lines side by side in strips, everything else line by line. */
#include "base/pool.h"
#include "cpu/copy.h"
#include "cpu/lines.h"
#include "cpu/move.h"
#include "cpu/rows.h"
#include "gen/cpu.h"

#define GRAIN       16384
#define STRIP       64    /* lines side by side that are computed together */
#define FEWEST      8     /* lines side by side for which that pays */
#define STACK_BYTES 16384 /* buffers up to here need no allocation */
#define MOST_BYTES                                                                \
    524288 /* of a strip of halves as float32: it stays in the second-level cache \
            */

typedef void (*one_fn)(void *out, const void *x, int64_t rows, int64_t n);
typedef void (*two_fn)(void *out, const void *grad, const void *y, int64_t rows, int64_t n);
typedef void (*one_across_fn)(void *out, const void *x, int64_t n, int64_t stride, int64_t width);
typedef void (*two_across_fn)(void *out, const void *grad, const void *y, int64_t n, int64_t stride,
                              int64_t width);

typedef struct softmax_job {
    one_fn one;
    two_fn two; /* instead of `one`, for gradients */
    one_across_fn one_across;
    two_across_fn two_across;
    char *out;
    const char *a, *b;
    int64_t n;
    int64_t row_bytes;
    /* Of lines side by side: how many are, how many of them make a strip, strips side by side. */
    int64_t inner, strip, strips;
    size_t size; /* of an element */
    tn_dtype have, compute;
    const tni_kernels *kernels;
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

/* Halves, as many rows at a time as the buffers hold; there is one for the second operand too. */
#define BUFFER 4096
static tn_status some_rows_converted(int64_t begin, int64_t end, void *arg)
{
    const softmax_job *j = arg;
    float first[BUFFER], second[BUFFER];
    for (int64_t r = begin, rows; r < end; r += rows) {
        rows = BUFFER / j->n < end - r ? BUFFER / j->n : end - r;
        int64_t at = r * j->row_bytes, n = rows * j->n;
        tni_convert(j->kernels, j->compute, first, j->have, j->a + at, n);
        if (j->one) {
            j->one(first, first, rows, j->n);
        } else {
            tni_convert(j->kernels, j->compute, second, j->have, j->b + at, n);
            j->two(first, first, second, rows, j->n);
        }
        tni_convert(j->kernels, j->have, j->out + at, j->compute, first, n);
    }
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

/* ---- lines side by side ---- */

static void across(const softmax_job *j, char *out, const char *a, const char *b, int64_t stride,
                   int64_t width)
{
    if (j->one_across)
        j->one_across(out, a, j->n, stride, width);
    else
        j->two_across(out, a, b, j->n, stride, width);
}

/* Halves: the strip as float32, computed in place; the second operand in a buffer behind. */
static void across_converted(const softmax_job *j, char *out, const char *a, const char *b,
                             int64_t width, float *buffer)
{
    float *second = buffer + j->n * width;
    int64_t row = j->inner * (int64_t)j->size;
    for (int64_t i = 0; i < j->n; i++) {
        tni_convert(j->kernels, j->compute, buffer + i * width, j->have, a + i * row, width);
        if (b)
            tni_convert(j->kernels, j->compute, second + i * width, j->have, b + i * row, width);
    }
    across(j, (char *)buffer, (const char *)buffer, (const char *)second, width, width);
    for (int64_t i = 0; i < j->n; i++)
        tni_convert(j->kernels, j->have, out + i * row, j->compute, buffer + i * width, width);
}

static void strips(const softmax_job *j, int64_t begin, int64_t end, float *buffer)
{
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % j->strips * j->strip;
        int64_t at = (i / j->strips * j->n * j->inner + first) * (int64_t)j->size;
        int64_t width = j->inner - first < j->strip ? j->inner - first : j->strip;
        const char *b = j->b ? j->b + at : NULL;
        if (buffer)
            across_converted(j, j->out + at, j->a + at, b, width, buffer);
        else
            across(j, j->out + at, j->a + at, b, j->inner, width);
    }
}

static tn_status some_strips(int64_t begin, int64_t end, void *arg)
{
    const softmax_job *j = arg;
    if (j->have == j->compute) {
        strips(j, begin, end, NULL);
        return TN_OK;
    }
    size_t bytes = (size_t)(j->n * j->strip) * sizeof(float) * (j->b ? 2 : 1);
    if (bytes <= STACK_BYTES) {
        float buffer[STACK_BYTES / sizeof(float)];
        strips(j, begin, end, buffer);
        return TN_OK;
    }
    float *buffer = tni_alloc(bytes);
    TN_CHECK(buffer, TN_NOMEM, "cannot allocate %zu bytes for lines of elements", bytes);
    strips(j, begin, end, buffer);
    tni_free(buffer);
    return TN_OK;
}

/* Whether both have the same places for their elements. */
static bool same_places(const tn_tensor *a, const tn_tensor *b)
{
    for (int i = 0; i < a->ndim; i++)
        if (a->strides[i] != b->strides[i] && a->sizes[i] != 1)
            return false;
    return true;
}

/* Elements without gaps, in the same places in each operand: along the line either neighbours, and
 * lines are rows, or `inner` apart, and as many lines lie side by side. */
static bool is_dense(const tn_tensor *a, const tn_tensor *b, const tn_tensor *out)
{
    return (out->flags & a->flags & (b ? b->flags : TNI_DENSE) & TNI_DENSE) &&
           same_places(a, out) && (!b || same_places(a, b));
}

static tn_status run_strips(softmax_job *j, int64_t numel)
{
    j->strip = STRIP < j->inner ? STRIP : j->inner;
    if (j->have != j->compute) {
        int64_t most = MOST_BYTES / (int64_t)sizeof(float) / j->n;
        j->strip = most < FEWEST ? FEWEST : most < j->strip ? most : j->strip;
    }
    j->strips = (j->inner + j->strip - 1) / j->strip;
    int64_t count = numel / (j->n * j->inner) * j->strips, each = j->n * j->strip;
    int64_t grain = each < GRAIN ? GRAIN / each : 1;
    return count <= grain ? some_strips(0, count, j) : tni_pool_for(count, grain, some_strips, j);
}

/* ---- all ---- */

static tn_status run(softmax_job *j, const tn_tensor *a, const tn_tensor *b, int64_t dim,
                     tn_tensor *out)
{
    if (out->numel == 0)
        return TN_OK;
    int d = (int)(dim < 0 ? dim + (a->ndim ? a->ndim : 1) : dim); /* in range: the shape was made */
    j->n = a->ndim ? a->sizes[d] : 1;
    tn_dtype dtype = (tn_dtype)a->dtype, compute = tni_compute_dtype(dtype);
    uint32_t contiguous = out->flags & a->flags & (b ? b->flags : TNI_CONTIGUOUS);
    bool rows = d >= a->ndim - 1 && (contiguous & TNI_CONTIGUOUS);
    j->out = out->data;
    j->a = a->data;
    j->b = b ? b->data : NULL;
    j->size = tni_dtype_size(dtype);
    if (rows && dtype == compute && a->numel <= GRAIN) { /* gradients of few rows */
        int64_t count = 1; /* no division: it would be a tenth of a small call */
        for (int i = 0; i < d; i++)
            count *= a->sizes[i];
        j->row_bytes = j->n * (int64_t)j->size;
        return some_rows(0, count, j);
    }
    j->have = dtype;
    j->compute = compute;
    j->kernels = tni_cpu_kernels();
    if (!rows && !b && (out->flags & TNI_DENSE) && out->dtype == a->dtype && !same_places(a, out)) {
        TN_TRY(tni_copy_cpu(out, a)); /* which knows how to turn tensors */
        a = out;
        j->a = out->data;
        rows = d == a->ndim - 1 && (out->flags & TNI_CONTIGUOUS);
    }
    if (!rows && j->n > 1 && is_dense(a, b, out)) {
        j->inner = a->strides[d];
        rows = j->inner == 1;
        if (j->inner >= FEWEST)
            return run_strips(j, a->numel);
    }
    if (rows && (dtype == compute || j->n <= BUFFER)) {
        int64_t count = a->numel / j->n;
        tni_pool_fn fn = dtype == compute ? some_rows : some_rows_converted;
        j->row_bytes = j->n * (int64_t)j->size;
        if (a->numel <= GRAIN)
            return fn(0, count, j);
        return tni_pool_for(count, j->n < GRAIN ? GRAIN / j->n : 1, fn, j);
    }
    tni_line lines[] = {
        {out, compute, TNI_LINE_WRITE}, {a, compute, TNI_LINE_READ}, {b, compute, TNI_LINE_READ}};
    return tni_lines(a, UINT64_C(1) << d, lines, b ? 3 : 2, 0, one_line, j);
}

static const tni_rows_loops *loops_for(const tn_tensor *t)
{
    return tni_rows_of(tni_cpu_kernels(), (tn_dtype)t->dtype);
}

/* Few rows go straight to the loop: to describe them would take a tenth of the call. */
static inline bool run_few(one_fn one, const tn_tensor *self, int64_t dim, tn_tensor *out)
{
    const int last = self->ndim - 1;
    const tn_dtype dtype = (tn_dtype)self->dtype;
    if (last < 0 || (dim != last && dim != -1) || self->numel == 0 || self->numel > GRAIN ||
        !(out->flags & self->flags & TNI_CONTIGUOUS) || tni_compute_dtype(dtype) != dtype)
        return false;
    int64_t rows = 1;
    for (int i = 0; i < last; i++)
        rows *= self->sizes[i];
    one(out->data, self->data, rows, self->sizes[last]);
    return true;
}

tn_status tni_cpu__softmax(tn_tensor *self, int64_t dim, bool half_to_float, tn_tensor *out)
{
    (void)half_to_float;
    const tni_rows_loops *loops = loops_for(self);
    if (TNI_LIKELY(run_few(loops->softmax, self, dim, out)))
        return TN_OK;
    softmax_job j = {.one = loops->softmax, .one_across = loops->across.softmax};
    return run(&j, self, NULL, dim, out);
}

tn_status tni_cpu__log_softmax(tn_tensor *self, int64_t dim, bool half_to_float, tn_tensor *out)
{
    (void)half_to_float;
    const tni_rows_loops *loops = loops_for(self);
    if (TNI_LIKELY(run_few(loops->log_softmax, self, dim, out)))
        return TN_OK;
    softmax_job j = {.one = loops->log_softmax, .one_across = loops->across.log_softmax};
    return run(&j, self, NULL, dim, out);
}

tn_status tni_cpu__softmax_backward_data(tn_tensor *grad_output, tn_tensor *output, int64_t dim,
                                         tn_dtype input_dtype, tn_tensor *out)
{
    (void)input_dtype;
    const tni_rows_loops *loops = loops_for(output);
    softmax_job j = {.two = loops->softmax_backward, .two_across = loops->across.softmax_backward};
    return run(&j, grad_output, output, dim, out);
}

tn_status tni_cpu__log_softmax_backward_data(tn_tensor *grad_output, tn_tensor *output, int64_t dim,
                                             tn_dtype input_dtype, tn_tensor *out)
{
    (void)input_dtype;
    const tni_rows_loops *loops = loops_for(output);
    softmax_job j = {.two = loops->log_softmax_backward,
                     .two_across = loops->across.log_softmax_backward};
    return run(&j, grad_output, output, dim, out);
}
