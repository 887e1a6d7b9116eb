/* SPDX-License-Identifier: MIT */
/* cpu/lines.c: walk the lines of tensors; gather, convert and scatter those that are not runs of
 * what the function wants. Neighbouring lines are visited one after the other, so that a gather
 * along a slow dimension finds what the one before it brought into the cache. */
#include "cpu/lines.h"

#include "base/pool.h"
#include "cpu/move.h"

#define GRAIN       16384 /* elements that a piece of work has at least */
#define STACK_BYTES 16384 /* buffers up to here need no allocation */
#define ALIGN       64

typedef struct operand {
    char *data;
    tn_dtype have, want;
    size_t have_size, want_size;
    int64_t length;
    int axes; /* of the line, fastest first, merged */
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    int64_t kept[TN_MAX_DIMS];
    bool in, out, direct, converted;
    size_t buffer, raw; /* where its buffers are, in bytes */
} operand;

typedef struct lines_job {
    const tni_kernels *kernels;
    operand operands[TNI_LINES_MOST];
    int n;
    int kept; /* dimensions, fastest first */
    int64_t sizes[TN_MAX_DIMS];
    size_t bytes, scratch;
    tni_line_fn fn;
    void *ctx;
} lines_job;

int64_t tni_line_length(const tn_tensor *t, uint64_t dims)
{
    int64_t n = 1;
    for (int d = 0; d < t->ndim; d++)
        if (dims & (UINT64_C(1) << d))
            n *= t->sizes[d];
    return n;
}

/* ---- planning ---- */

static void add_axis(operand *o, int64_t size, int64_t stride)
{
    int last = o->axes - 1;
    o->length *= size;
    if (size == 1)
        return;
    if (last >= 0 && stride == o->strides[last] * o->sizes[last]) {
        o->sizes[last] *= size;
        return;
    }
    o->sizes[o->axes] = size;
    o->strides[o->axes++] = stride;
}

static size_t reserve(lines_job *j, int64_t n, size_t itemsize)
{
    size_t at = j->bytes;
    j->bytes += ((size_t)n * itemsize + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    return at;
}

static void plan_operand(lines_job *j, operand *o, const tni_line *line, const tn_tensor *shape,
                         uint64_t dims)
{
    const tn_tensor *t = line->tensor;
    o->data = t->data;
    o->have = (tn_dtype)t->dtype;
    o->want = line->want == TN_DTYPE_NONE ? o->have : line->want;
    o->have_size = tni_dtype_size(o->have);
    o->want_size = tni_dtype_size(o->want);
    o->out = line->use != TNI_LINE_READ;
    o->in = line->use != TNI_LINE_WRITE;
    o->length = 1;
    o->axes = 0;
    bool same = t->ndim == shape->ndim;
    int at = t->ndim - 1, kept = 0;
    for (int d = shape->ndim - 1; d >= 0; d--) {
        bool along = dims & (UINT64_C(1) << d);
        int own = same ? d : at;
        if (along && same)
            add_axis(o, t->sizes[d], t->strides[d] * (int64_t)o->have_size);
        else if (!along && shape->sizes[d] != 1)
            o->kept[kept++] = t->strides[own] * (int64_t)o->have_size;
        at -= !along;
    }
    bool run = o->axes == 0 || (o->axes == 1 && o->strides[0] == (int64_t)o->have_size);
    o->converted = o->have != o->want;
    o->direct = run && !o->converted;
    if (!o->direct) {
        o->buffer = reserve(j, o->length, o->want_size);
        o->raw = !run && o->converted ? reserve(j, o->length, o->have_size) : o->buffer;
        if (run)
            o->axes = 0;
    }
}

/* ---- moving ---- */

/* A line to or from a run of its own dtype. */
static void move_line(const operand *o, char *at, char *run, bool gather)
{
    int64_t index[TN_MAX_DIMS] = {0}, n = o->sizes[0];
    for (int64_t done = 0; done < o->length; done += n) {
        char *from = at;
        for (int d = 1; d < o->axes; d++)
            from += index[d] * o->strides[d];
        if (gather)
            tni_gather(run, from, n, o->strides[0], o->have_size);
        else
            tni_scatter(from, run, n, o->strides[0], o->have_size);
        run += (size_t)n * o->have_size;
        for (int d = 1; d < o->axes && ++index[d] == o->sizes[d]; d++)
            index[d] = 0;
    }
}

static void bring(const lines_job *j, const operand *o, char *at, char *buffers)
{
    char *raw = o->axes ? buffers + o->raw : at;
    if (o->axes && o->length > 0)
        move_line(o, at, raw, true);
    if (o->converted)
        tni_convert(j->kernels, o->want, buffers + o->buffer, o->have, raw, o->length);
}

static void take_back(const lines_job *j, const operand *o, char *at, char *buffers)
{
    char *raw = o->axes ? buffers + o->raw : at;
    if (o->converted)
        tni_convert(j->kernels, o->have, raw, o->want, buffers + o->buffer, o->length);
    if (o->axes && o->length > 0)
        move_line(o, at, raw, false);
}

static tn_status walk(const lines_job *j, int64_t begin, int64_t end, char *buffers)
{
    int64_t index[TN_MAX_DIMS], rest = begin;
    char *at[TNI_LINES_MOST];
    void *line[TNI_LINES_MOST] = {NULL};
    for (int d = 0; d < j->kept; d++) {
        index[d] = rest % j->sizes[d];
        rest /= j->sizes[d];
    }
    for (int k = 0; k < j->n; k++) {
        at[k] = j->operands[k].data;
        for (int d = 0; at[k] && d < j->kept; d++)
            at[k] += index[d] * j->operands[k].kept[d];
    }
    for (int64_t i = begin; i < end; i++) {
        for (int k = 0; k < j->n; k++) {
            const operand *o = &j->operands[k];
            line[k] = o->direct ? at[k] : o->length < 0 ? NULL : buffers + o->buffer;
            if (!o->direct && o->length >= 0 && o->in)
                bring(j, o, at[k], buffers);
        }
        TN_TRY(j->fn(line, buffers + j->bytes, j->ctx));
        for (int k = 0; k < j->n; k++) {
            const operand *o = &j->operands[k];
            if (!o->direct && o->out && o->length >= 0)
                take_back(j, o, at[k], buffers);
        }
        for (int d = 0; d < j->kept; d++) {
            bool over = ++index[d] == j->sizes[d];
            for (int k = 0; k < j->n; k++)
                if (j->operands[k].length >= 0 && j->operands[k].data)
                    at[k] +=
                        over ? j->operands[k].kept[d] * (1 - j->sizes[d]) : j->operands[k].kept[d];
            if (!over)
                break;
            index[d] = 0;
        }
    }
    return TN_OK;
}

static tn_status run_lines(int64_t begin, int64_t end, void *arg)
{
    const lines_job *j = arg;
    size_t bytes = j->bytes + j->scratch;
    if (bytes <= STACK_BYTES) {
        _Alignas(ALIGN) char buffers[STACK_BYTES];
        return walk(j, begin, end, buffers);
    }
    char *block = tni_alloc(bytes + ALIGN);
    TN_CHECK(block, TN_NOMEM, "cannot allocate %zu bytes for a line of elements", bytes);
    char *buffers = block + (ALIGN - (uintptr_t)block % ALIGN) % ALIGN;
    tn_status status = walk(j, begin, end, buffers);
    tni_free(block);
    return status;
}

tn_status tni_lines(const tn_tensor *shape, uint64_t dims, const tni_line *lines, int n,
                    size_t scratch, tni_line_fn fn, void *ctx)
{
    lines_job j;
    j.kernels = tni_cpu_kernels();
    j.n = n;
    j.kept = 0;
    j.bytes = 0;
    j.scratch = scratch;
    j.fn = fn;
    j.ctx = ctx;
    int64_t count = 1, longest = 1;
    for (int d = shape->ndim - 1; d >= 0; d--)
        if (!(dims & (UINT64_C(1) << d))) {
            count *= shape->sizes[d];
            if (shape->sizes[d] != 1)
                j.sizes[j.kept++] = shape->sizes[d];
        }
    if (count == 0)
        return TN_OK;
    for (int k = 0; k < n; k++) {
        operand *o = &j.operands[k];
        if (!lines[k].tensor) {
            o->data = NULL;
            o->direct = false;
            o->length = -1;
            continue;
        }
        plan_operand(&j, o, &lines[k], shape, dims);
        if (o->length > longest)
            longest = o->length;
    }
    int64_t grain = longest < GRAIN ? GRAIN / longest : 1;
    return count <= grain ? run_lines(0, count, &j) : tni_pool_for(count, grain, run_lines, &j);
}
