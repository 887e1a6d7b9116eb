/* SPDX-License-Identifier: MIT */
/* cpu/lines.c: walk the lines of tensors; gather, convert and scatter those that are not runs of
 * what the function wants. Where neighbouring lines lie side by side in memory, a tile of them is
 * gathered at a time, so that a cache line is read once. */
#include "cpu/lines.h"

#include "base/pool.h"
#include "cpu/move.h"

#define GRAIN       16384 /* elements that a piece of work has at least */
#define STACK_BYTES 16384 /* buffers up to here need no allocation */
#define ALIGN       64
#define LONG        4096   /* elements: fewer are gathered in no time, whatever their order */
#define MOST_LINES  32     /* of a tile */
#define TILE_BYTES  524288 /* of its buffers */

typedef struct operand {
    char *data;
    tn_dtype have, want;
    size_t have_size, want_size;
    int64_t length;
    int axes; /* of the line, fastest first, merged */
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    int64_t kept[TN_MAX_DIMS];
    bool there, in, out, direct, converted;
    bool side_by_side;  /* neighbouring lines are neighbours in memory */
    size_t buffer, raw; /* where its buffers are, in bytes */
} operand;

typedef struct lines_job {
    const tni_kernels *kernels;
    operand operands[TNI_LINES_MOST];
    int n;
    int kept; /* dimensions, fastest first */
    int64_t sizes[TN_MAX_DIMS];
    size_t bytes, scratch; /* buffers of one line; of the function's own */
    int64_t tile;          /* lines that are gathered together */
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

/* The dimensions of a line from the last to the first; of a long one whose order does not matter,
 * from the closest elements on, as sums are taken (cpu/reduce.c). */
static int order_of(const tn_tensor *t, bool any, int *order)
{
    int n = 0;
    any = any && t->numel >= LONG;
    for (int d = t->ndim - 1; d >= 0; d--) {
        int at = n++;
        for (; any && at > 0 && t->strides[d] < t->strides[order[at - 1]]; at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
    return n;
}

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
    o->there = true;
    o->have = (tn_dtype)t->dtype;
    o->want = line->want == TN_DTYPE_NONE ? o->have : line->want;
    o->have_size = tni_dtype_size(o->have);
    o->want_size = tni_dtype_size(o->want);
    o->out = line->use == TNI_LINE_WRITE || line->use == TNI_LINE_UPDATE;
    o->in = line->use != TNI_LINE_WRITE;
    o->length = 1;
    o->axes = 0;
    bool same = t->ndim == shape->ndim;
    int at = t->ndim - 1, kept = 0;
    o->kept[0] = 0; /* without dimensions that are kept there is one line */
    for (int d = shape->ndim - 1; d >= 0; d--) {
        bool along = dims & (UINT64_C(1) << d);
        int own = same ? d : at;
        if (!along && shape->sizes[d] != 1)
            o->kept[kept++] = t->strides[own] * (int64_t)o->have_size;
        at -= !along;
    }
    int order[TN_MAX_DIMS], n = same ? order_of(t, line->use == TNI_LINE_READ_ANY, order) : 0;
    for (int i = 0; i < n; i++)
        if (dims & (UINT64_C(1) << order[i]))
            add_axis(o, t->sizes[order[i]], t->strides[order[i]] * (int64_t)o->have_size);
    bool run = o->axes == 0 || (o->axes == 1 && o->strides[0] == (int64_t)o->have_size);
    o->converted = o->have != o->want;
    o->direct = run && !o->converted;
    if (!o->direct) {
        o->buffer = reserve(j, o->length, o->want_size);
        o->raw = !run && o->converted ? reserve(j, o->length, o->have_size) : o->buffer;
        if (run)
            o->axes = 0;
    }
    o->side_by_side = !o->direct && o->axes > 0 && kept > 0 &&
                      o->kept[0] == (int64_t)o->have_size && o->strides[0] != (int64_t)o->have_size;
}

/* ---- moving ---- */

/* n elements of each of m neighbouring lines, to or from runs that are @p apart. */
#define MOVE_SIDE_BY_SIDE(T)                                                    \
    for (int64_t e = 0; e < n; e++) {                                           \
        T *from = (T *)(void *)(at + e * stride);                               \
        T *to = (T *)(void *)(run + (size_t)e * sizeof(T));                     \
        for (int64_t t = 0; t < m; t++, to = (T *)(void *)((char *)to + apart)) \
            if (gather)                                                         \
                *to = from[t];                                                  \
            else                                                                \
                from[t] = *to;                                                  \
    }

static void move_side_by_side(const operand *o, char *at, char *run, int64_t m, size_t apart,
                              bool gather)
{
    int64_t n = o->sizes[0], stride = o->strides[0];
    switch (o->have_size) {
    case 1:
        MOVE_SIDE_BY_SIDE(uint8_t)
        break;
    case 2:
        MOVE_SIDE_BY_SIDE(uint16_t)
        break;
    case 4:
        MOVE_SIDE_BY_SIDE(uint32_t)
        break;
    case 8:
        MOVE_SIDE_BY_SIDE(uint64_t)
        break;
    default:
        for (int64_t t = 0; t < m; t++) {
            char *line = at + (size_t)t * o->have_size;
            if (gather)
                tni_gather(run + (size_t)t * apart, line, n, stride, o->have_size);
            else
                tni_scatter(line, run + (size_t)t * apart, n, stride, o->have_size);
        }
    }
}

/* m lines to or from runs of their own dtype, which are @p apart. */
static void move_lines(const operand *o, char *at, char *run, int64_t m, size_t apart, bool gather)
{
    int64_t index[TN_MAX_DIMS] = {0}, n = o->sizes[0];
    for (int64_t done = 0; done < o->length; done += n) {
        char *from = at;
        for (int d = 1; d < o->axes; d++)
            from += index[d] * o->strides[d];
        if (m > 1 && o->side_by_side)
            move_side_by_side(o, from, run, m, apart, gather);
        else
            for (int64_t t = 0; t < m; t++) {
                if (gather)
                    tni_gather(run + (size_t)t * apart, from + t * o->kept[0], n, o->strides[0],
                               o->have_size);
                else
                    tni_scatter(from + t * o->kept[0], run + (size_t)t * apart, n, o->strides[0],
                                o->have_size);
            }
        run += (size_t)n * o->have_size;
        for (int d = 1; d < o->axes && ++index[d] == o->sizes[d]; d++)
            index[d] = 0;
    }
}

static void bring(const lines_job *j, const operand *o, char *at, int64_t m, char *buffers)
{
    if (o->axes && o->length > 0)
        move_lines(o, at, buffers + o->raw, m, j->bytes, true);
    for (int64_t t = 0; o->converted && t < m; t++) {
        char *own = buffers + (size_t)t * j->bytes;
        const char *from = o->axes ? own + o->raw : at + (m > 1 ? t * o->kept[0] : 0);
        tni_convert(j->kernels, o->want, own + o->buffer, o->have, from, o->length);
    }
}

static void take_back(const lines_job *j, const operand *o, char *at, int64_t m, char *buffers)
{
    for (int64_t t = 0; o->converted && t < m; t++) {
        char *own = buffers + (size_t)t * j->bytes;
        char *to = o->axes ? own + o->raw : at + (m > 1 ? t * o->kept[0] : 0);
        tni_convert(j->kernels, o->have, to, o->want, own + o->buffer, o->length);
    }
    if (o->axes && o->length > 0)
        move_lines(o, at, buffers + o->raw, m, j->bytes, false);
}

/* ---- walking ---- */

/* m neighbouring lines, which begin at @p at. */
static tn_status some_lines(const lines_job *j, char *const *at, int64_t m, char *buffers)
{
    void *line[TNI_LINES_MOST] = {NULL};
    for (int k = 0; k < j->n; k++) {
        const operand *o = &j->operands[k];
        if (at[k] && !o->direct && o->in)
            bring(j, o, at[k], m, buffers);
    }
    for (int64_t t = 0; t < m; t++) {
        for (int k = 0; k < j->n; k++) {
            const operand *o = &j->operands[k];
            line[k] = !o->there    ? NULL
                      : !o->direct ? buffers + (size_t)t * j->bytes + o->buffer
                      : t == 0     ? at[k]
                                   : at[k] + t * o->kept[0];
        }
        TN_TRY(j->fn(line, buffers + (size_t)j->tile * j->bytes, j->ctx));
    }
    for (int k = 0; k < j->n; k++) {
        const operand *o = &j->operands[k];
        if (at[k] && !o->direct && o->out)
            take_back(j, o, at[k], m, buffers);
    }
    return TN_OK;
}

static tn_status walk(const lines_job *j, int64_t begin, int64_t end, char *buffers)
{
    int64_t index[TN_MAX_DIMS], rest = begin;
    char *at[TNI_LINES_MOST];
    for (int d = 0; d < j->kept; d++) {
        index[d] = rest % j->sizes[d];
        rest /= j->sizes[d];
    }
    for (int k = 0; k < j->n; k++) {
        at[k] = j->operands[k].data;
        for (int d = 0; at[k] && d < j->kept; d++)
            at[k] += index[d] * j->operands[k].kept[d];
    }
    for (int64_t i = begin, m; i < end; i += m) {
        m = j->kept && j->sizes[0] - index[0] < j->tile ? j->sizes[0] - index[0] : j->tile;
        m = end - i < m ? end - i : m;
        TN_TRY(some_lines(j, at, m, buffers));
        for (int d = 0; d < j->kept; d++) {
            int64_t by = d == 0 ? m : 1;
            index[d] += by;
            bool over = index[d] == j->sizes[d];
            for (int k = 0; k < j->n; k++)
                if (at[k])
                    at[k] += (over ? by - j->sizes[d] : by) * j->operands[k].kept[d];
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
    size_t bytes = (size_t)j->tile * j->bytes + j->scratch;
    if (bytes <= STACK_BYTES) {
        _Alignas(ALIGN) char buffers[STACK_BYTES];
        return walk(j, begin, end, buffers);
    }
    char *block = tni_alloc(bytes + ALIGN);
    TN_CHECK(block, TN_NOMEM, "cannot allocate %zu bytes for lines of elements", bytes);
    char *buffers = block + (ALIGN - (uintptr_t)block % ALIGN) % ALIGN;
    tn_status status = walk(j, begin, end, buffers);
    tni_free(block);
    return status;
}

/* Tiles where they help. Their buffers are not a power of two apart, which caches do not like. */
static void plan_tile(lines_job *j)
{
    bool helps = false;
    j->tile = 1;
    for (int k = 0; k < j->n; k++)
        helps |= j->operands[k].there && j->operands[k].side_by_side;
    if (!helps || j->sizes[0] < 4)
        return;
    j->bytes += ALIGN;
    j->tile = TILE_BYTES / (int64_t)j->bytes;
    j->tile = j->tile < 1 ? 1 : j->tile > MOST_LINES ? MOST_LINES : j->tile;
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
    bool nothing = shape->numel == 0; /* then there may be more lines than one could ever visit */
    for (int k = 0; nothing && k < n; k++)
        nothing = !lines[k].tensor || lines[k].tensor->numel == 0;
    if (count == 0 || nothing)
        return TN_OK;
    for (int k = 0; k < n; k++) {
        operand *o = &j.operands[k];
        if (!lines[k].tensor) {
            o->data = NULL;
            o->there = o->direct = o->side_by_side = false;
            continue;
        }
        plan_operand(&j, o, &lines[k], shape, dims);
        if (o->length > longest)
            longest = o->length;
    }
    plan_tile(&j);
    int64_t grain = longest < GRAIN ? GRAIN / longest : 1;
    if (grain < j.tile)
        grain = j.tile;
    return count <= grain ? run_lines(0, count, &j) : tni_pool_for(count, grain, run_lines, &j);
}
