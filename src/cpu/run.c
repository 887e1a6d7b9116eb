/* SPDX-License-Identifier: MIT */
/* cpu/run.c: a loop over operands of any strides and dtypes. Loops only know runs of one dtype;
 * what is not such a run goes through buffers of a few kilobytes, a block at a time: gathered,
 * converted, computed, converted back, scattered. */
#include "cpu/run.h"

#include <stdatomic.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/copy.h"
#include "cpu/move.h"

#if defined(TN_STRESS) && TN_STRESS
#    define BLOCK_BYTES 1024
#else
#    define BLOCK_BYTES 4096
#endif
/* Below this many elements in the fastest dimension, blocks are gathered across its ends. */
#define SHORT_ROW 64
/* What is streamed goes in blocks of so many bytes: longer ones make memory turn from reading to
 * writing and back, which takes it a tenth of the time. */
#define STREAM_BLOCK 1024
/* Bytes before their turn at which operands are fetched meanwhile. */
#define STREAM_AHEAD 4096
/* Results smaller than this are never streamed. */
#if defined(TN_STRESS) && TN_STRESS
#    define STREAM_BYTES 4096
#    define CACHE_BYTES  0
#else
#    define STREAM_BYTES (INT64_C(8) << 20)
/* What operands may have together and still be found in the last cache afterwards: what one core
 * reaches of it. Systems report anything from a slice to the sum over all sockets. */
#    define CACHE_BYTES  (INT64_C(40) << 20)
#endif

typedef enum how {
    AS_IT_IS, /* the loop works on the operand's own memory */
    ONE_VALUE,
    ONE_ROW, /* the fastest dimension, again and again: a buffer of several, filled once */
    BY_BLOCK,
    PAST_CACHES, /* a large result that nobody reads soon: computed in a buffer, streamed out */
} how;

typedef struct operand {
    const char *data;
    const int64_t *strides;
    tn_dtype have, want;
    how how;
    bool linear;    /* element i of the walk is at data + i * itemsize */
    bool via_dtype; /* is rounded to the common dtype on the way */
} operand;

typedef struct job {
    const tni_iter *it;
    const tni_kernels *kernels;
    tni_loop_fn fn;
    const void *ctx;
    operand out, in[TNI_ITER_INPUTS];
    int n;           /* inputs */
    int64_t block;   /* most elements at a time */
    bool whole_rows; /* a block ends with the fastest dimension */
} job;

/* Where the walk is. */
typedef struct place {
    int64_t linear;
    int64_t index[TN_MAX_DIMS];
} place;

static void place_at(const tni_iter *it, int64_t linear, place *p)
{
    p->linear = linear;
    for (int d = 0; d < it->ndim; d++) {
        p->index[d] = linear % it->sizes[d];
        linear /= it->sizes[d];
    }
}

static inline void place_advance(const tni_iter *it, place *p, int64_t n)
{
    p->linear += n;
    int d = 0;
    p->index[0] += n;
    while (p->index[d] >= it->sizes[d] && d + 1 < it->ndim) {
        int64_t carry = p->index[d] == it->sizes[d] ? 1 : p->index[d] / it->sizes[d];
        p->index[d] -= carry * it->sizes[d];
        p->index[++d] += carry;
    }
}

static inline int64_t offset_of(const tni_iter *it, const int64_t *strides, const place *p)
{
    int64_t offset = 0;
    for (int d = 0; d < it->ndim; d++)
        offset += p->index[d] * strides[d];
    return offset;
}

/* n elements from the walk's place, gathered or scattered row by row. */
static void move_rows(const tni_iter *it, const operand *o, const place *start, int64_t n,
                      char *buffer, bool gather)
{
    place p = {.linear = start->linear};
    memcpy(p.index, start->index, (size_t)it->ndim * sizeof p.index[0]);
    size_t itemsize = tni_dtype_size(o->have);
    while (n > 0) {
        int64_t m = it->sizes[0] - p.index[0];
        if (m > n)
            m = n;
        char *at = (char *)(uintptr_t)o->data + offset_of(it, o->strides, &p);
        if (gather)
            tni_gather(buffer, at, m, o->strides[0], itemsize);
        else
            tni_scatter(at, buffer, m, o->strides[0], itemsize);
        buffer += (size_t)m * itemsize;
        n -= m;
        place_advance(it, &p, m);
    }
}

/* n elements of @p dtype, rounded to the common dtype, which is narrower. */
static void round_elements(const job *j, tn_dtype dtype, void *elements, int64_t n)
{
    uint32_t narrow[256];
    const size_t itemsize = tni_dtype_size(dtype);
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        char *x = (char *)elements + (size_t)i * itemsize;
        tni_convert(j->kernels, j->it->dtype, narrow, dtype, x, m);
        tni_convert(j->kernels, dtype, x, j->it->dtype, narrow, m);
    }
}

static void convert_input(const job *j, const operand *o, void *to, const void *from, int64_t n)
{
    tni_convert(j->kernels, o->want, to, o->have, from, n);
    if (o->via_dtype)
        round_elements(j, o->want, to, n);
}

/* The input's next n elements as a run of what the loop wants. */
static const void *ready(const job *j, const operand *o, const place *p, int64_t n, char *buffer,
                         char *raw)
{
    size_t itemsize = tni_dtype_size(o->have);
    if (o->how == ONE_VALUE || o->how == ONE_ROW)
        return buffer; /* filled once */
    if (o->how == AS_IT_IS)
        return o->data +
               (o->linear ? p->linear * (int64_t)itemsize : offset_of(j->it, o->strides, p));
    const char *from;
    if (o->linear) {
        from = o->data + p->linear * (int64_t)itemsize;
    } else if (j->whole_rows && o->strides[0] == (int64_t)itemsize) {
        from = o->data + offset_of(j->it, o->strides, p);
    } else {
        char *to = o->have == o->want && !o->via_dtype ? buffer : raw;
        move_rows(j->it, o, p, n, to, true);
        from = to;
    }
    if (from != buffer)
        convert_input(j, o, buffer, from, n);
    return buffer;
}

/* Where the result's next elements are, when they are a run; or NULL. */
static char *run_at(const job *j, const place *p)
{
    const operand *o = &j->out;
    int64_t itemsize = (int64_t)tni_dtype_size(o->have);
    char *data = (char *)(uintptr_t)o->data;
    if (o->linear)
        return data + p->linear * itemsize;
    return j->whole_rows && o->strides[0] == itemsize ? data + offset_of(j->it, o->strides, p)
                                                      : NULL;
}

static tn_status run_range(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    const tni_iter *it = j->it;
    _Alignas(64) char buffers[TNI_ITER_INPUTS][BLOCK_BYTES];
    _Alignas(64) char result[BLOCK_BYTES];
    _Alignas(64) char raw[BLOCK_BYTES];
    const void *in[TNI_ITER_INPUTS] = {NULL};
    place p;
    place_at(it, begin, &p);
    int64_t most = end - begin < j->block ? end - begin : j->block;
    for (int i = 0; i < j->n; i++) {
        const operand *o = &j->in[i];
        if (o->how == ONE_VALUE) {
            _Alignas(16) char value[16];
            convert_input(j, o, value, o->data, 1);
            tni_splat(buffers[i], value, most, tni_dtype_size(o->want));
        } else if (o->how == ONE_ROW) { /* a block is as long as whole rows are */
            bool converts = o->have != o->want || o->via_dtype;
            move_rows(it, o, &p, most, converts ? raw : buffers[i], true);
            if (converts)
                convert_input(j, o, buffers[i], raw, most);
        }
    }
    while (p.linear < end) {
        int64_t n = end - p.linear < most ? end - p.linear : most;
        if (j->whole_rows && n > it->sizes[0] - p.index[0])
            n = it->sizes[0] - p.index[0];
        for (int i = 0; i < j->n; i++)
            in[i] = ready(j, &j->in[i], &p, n, buffers[i], raw);
        if (j->out.how == AS_IT_IS) {
            int64_t offset = j->out.linear ? p.linear * (int64_t)tni_dtype_size(j->out.have)
                                           : offset_of(it, j->out.strides, &p);
            j->fn((char *)(uintptr_t)j->out.data + offset, in, n, j->ctx);
        } else if (j->out.how == PAST_CACHES) {
            size_t itemsize = tni_dtype_size(j->out.have);
            const void *next[TNI_ITER_INPUTS];
            int count = 0;
            for (int i = 0; i < j->n; i++)
                if (j->in[i].how == AS_IT_IS && tni_dtype_size(j->in[i].have) == itemsize)
                    next[count++] = (const char *)in[i] + STREAM_AHEAD;
            j->fn(result, in, n, j->ctx);
            tni_stream((char *)(uintptr_t)j->out.data + (size_t)p.linear * itemsize, result,
                       (size_t)n * itemsize, next, count);
        } else {
            j->fn(result, in, n, j->ctx);
            if (j->out.via_dtype)
                round_elements(j, j->out.want, result, n);
            char *from = result, *run = run_at(j, &p);
            if (j->out.have != j->out.want) {
                from = run ? run : raw;
                tni_convert(j->kernels, j->out.have, from, j->out.want, result, n);
            }
            if (from != run)
                move_rows(it, &j->out, &p, n, from, false);
        }
        place_advance(it, &p, n);
    }
    if (j->out.how == PAST_CACHES)
        tni_stream_end();
    return TN_OK;
}

/* ---- setting up ---- */

static bool is_half(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
}

static void operand_set(const tni_iter *it, operand *o, const void *data, int row, tn_dtype have,
                        tn_dtype want)
{
    o->data = data;
    o->strides = it->strides[row];
    o->have = have;
    o->want = want;
    o->via_dtype = false;
    o->linear = true;
    bool one = true;
    int64_t expected = (int64_t)tni_dtype_size(have);
    for (int d = 0; d < it->ndim; d++) {
        o->linear &= o->strides[d] == expected;
        one &= o->strides[d] == 0;
        expected *= it->sizes[d];
    }
    o->how = one && row > 0 ? ONE_VALUE : BY_BLOCK;
}

/* Whether an input repeats its fastest dimension, a short one. */
static bool repeats_row(const tni_iter *it, const operand *o)
{
    for (int d = 1; d < it->ndim; d++)
        if (o->strides[d] != 0)
            return false;
    return it->ndim > 1;
}

/* One run each: the walk has one dimension. */
static void walk_flat(tni_iter *it)
{
    it->ndim = 1;
    it->sizes[0] = it->numel;
    it->strides[0][0] = (int64_t)tni_dtype_size(it->out_dtype);
    for (int i = 0; i < it->n; i++)
        it->strides[1 + i][0] =
            it->numbers & (1u << i) ? 0 : (int64_t)tni_dtype_size((tn_dtype)it->in_dtype[i]);
}

/* Bring the walk into its final form: few dimensions, at least one. */
static void walk_make(tni_iter *it)
{
    if (it->flat) {
        walk_flat(it);
        return;
    }
    tni_iter_coalesce(it);
    if (it->ndim == 0) { /* one element */
        it->ndim = 1;
        it->sizes[0] = 1;
        it->strides[0][0] = (int64_t)tni_dtype_size(it->out_dtype);
        for (int i = 0; i < it->n; i++)
            it->strides[1 + i][0] = (int64_t)tni_dtype_size((tn_dtype)it->in_dtype[i]);
    }
}

/* A large input that is transposed against the walk costs a cache line an element. Squares of it
 * are copied much faster. */
static bool is_crossed(const tni_iter *it, int i)
{
    const int64_t *strides = it->strides[1 + i];
    int64_t itemsize = (int64_t)tni_dtype_size((tn_dtype)it->in_dtype[i]);
    if (it->numel < TNI_GRAIN || it->ndim < 2 || it->sizes[0] < 16 || strides[0] < 64)
        return false;
    for (int d = 1; d < it->ndim; d++)
        if (strides[d] == itemsize && it->sizes[d] >= 16)
            return true;
    return false;
}

/* Read an input whole, in the order of the walk, into a block of its own. */
static tn_status copy_input(tni_iter *it, int i, void *copy)
{
    tn_dtype dtype = (tn_dtype)it->in_dtype[i];
    int64_t dense[TN_MAX_DIMS], stride = (int64_t)tni_dtype_size(dtype);
    for (int d = 0; d < it->ndim; d++) {
        dense[d] = stride;
        stride *= it->sizes[d];
    }
    tni_strided c = {it->ndim, it->sizes,      dense, it->strides[1 + i],
                     copy,     it->in_data[i], dtype, dtype};
    TN_TRY(tni_copy_strided(&c));
    it->in_data[i] = copy;
    memcpy(it->strides[1 + i], dense, (size_t)it->ndim * sizeof dense[0]);
    return TN_OK;
}

/* Inputs that share memory with the output at other places must be read before anything is written;
 * for the others a copy is only faster, and done without when there is no memory. */
static tn_status copy_inputs(tni_iter *it, void **copies)
{
    for (int i = 0; i < it->n; i++) {
        bool must = it->copy_first & (1u << i);
        if (!must && !is_crossed(it, i))
            continue;
        size_t nbytes;
        if (tni_size_mul((size_t)it->numel, tni_dtype_size((tn_dtype)it->in_dtype[i]), &nbytes))
            copies[i] = tni_alloc(nbytes);
        TN_CHECK(copies[i] || !must, TN_NOMEM,
                 "cannot allocate a copy of input %d, which shares memory with the output", i);
        if (copies[i])
            TN_TRY(copy_input(it, i, copies[i]));
    }
    return TN_OK;
}

/* The bytes of an input that are read: what is broadcast, is read once. */
static int64_t input_bytes(const tni_iter *it, int i)
{
    int64_t bytes = (int64_t)tni_dtype_size((tn_dtype)it->in_dtype[i]);
    for (int d = 0; d < it->ndim; d++)
        if (it->strides[1 + i][d] != 0)
            bytes *= it->sizes[d];
    return bytes;
}

/* A result that is written in place is in the caches anyway: its old value was read. */
static bool wants_stream(const tni_iter *it, const job *j)
{
    int64_t all = it->numel * (int64_t)tni_dtype_size(it->out_dtype);
    if (j->out.how != AS_IT_IS || !j->out.linear || all < STREAM_BYTES)
        return false;
    for (int i = 0; i < it->n; i++) {
        if (it->in_data[i] == it->out_data)
            return false;
        all += input_bytes(it, i);
    }
    return all > CACHE_BYTES;
}

/* @p past: the loop that streams by itself, or NULL. */
static void job_set(job *j, tni_iter *it, tn_dtype compute, unsigned flags, tni_loop_fn past)
{
    tn_dtype result = flags & TNI_RUN_BOOL_RESULT   ? TN_DTYPE_BOOL
                      : flags & TNI_RUN_REAL_RESULT ? tni_dtype_to_real(compute)
                                                    : compute;
    size_t widest = tni_dtype_size(compute);
    operand_set(it, &j->out, it->out_data, 0, it->out_dtype, result);
    /* What is asked for in another dtype is the result that there is without asking. */
    j->out.via_dtype = compute != it->dtype && result == compute && it->out_dtype != it->dtype &&
                       tni_dtype_size(it->dtype) <= sizeof(uint32_t);
    for (int i = 0; i < it->n; i++) {
        operand *o = &j->in[i];
        tn_dtype have = (tn_dtype)it->in_dtype[i];
        tn_dtype want = i == 0 && (flags & TNI_RUN_CONDITION) ? TN_DTYPE_BOOL : compute;
        operand_set(it, o, it->in_data[i], 1 + i, have, want);
        o->via_dtype = (is_half(it->dtype) || tni_dtype_is_float8(it->dtype)) &&
                       have != it->dtype && want == TN_DTYPE_F32 &&
                       !(i == 1 && (flags & TNI_RUN_EXACT_SECOND) && (it->numbers & 2u)) &&
                       !(i == 2 && (flags & TNI_RUN_EXACT_THIRD) && (it->numbers & 4u));
        if (tni_dtype_size(have) > widest)
            widest = tni_dtype_size(have);
    }
    if (tni_dtype_size(it->out_dtype) > widest)
        widest = tni_dtype_size(it->out_dtype);
    int64_t most = BLOCK_BYTES / (int64_t)widest;
    j->whole_rows = it->ndim > 1 && it->sizes[0] >= SHORT_ROW;
    j->block = INT64_MAX;
    for (int i = -1; i < it->n; i++) {
        operand *o = i < 0 ? &j->out : &j->in[i];
        if (o->how == BY_BLOCK && o->have == o->want && !o->via_dtype &&
            (o->linear || (j->whole_rows && o->strides[0] == (int64_t)tni_dtype_size(o->have))))
            o->how = AS_IT_IS;
        else
            j->block = j->block < most ? j->block : most;
        if (i >= 0 && o->how == BY_BLOCK && !j->whole_rows && repeats_row(it, o)) {
            o->how = ONE_ROW;
            j->block = most / it->sizes[0] * it->sizes[0];
        }
    }
    bool streams = wants_stream(it, j);
    bool whole = past && (uintptr_t)j->out.data % tni_dtype_size(it->out_dtype) == 0;
    for (int i = 0; i < it->n; i++)
        whole = whole && j->in[i].how == AS_IT_IS && j->in[i].linear;
    if (streams && whole) {
        j->fn = past;
    } else if (streams) {
        j->out.how = PAST_CACHES;
        int64_t few = STREAM_BLOCK / (int64_t)widest;
        for (int i = 0; i < it->n; i++) /* a block of it ends with a row */
            if (j->in[i].how == ONE_ROW && few % it->sizes[0])
                few -= few % it->sizes[0];
        j->block = j->block < few ? j->block : few;
    }
}

/* Few elements beside numbers: one run, with each number repeated in a buffer. */
static void run_numbers(const tni_iter *it, const tni_kernels *k, tni_loop_fn fn, const void *ctx)
{
    _Alignas(64) char buffers[TNI_ITER_INPUTS][BLOCK_BYTES];
    const void *in[TNI_ITER_INPUTS];
    for (int i = 0; i < it->n; i++) {
        in[i] = it->in_data[i];
        if (it->numbers & (1u << i)) {
            _Alignas(16) char value[16];
            tni_convert(k, it->dtype, value, (tn_dtype)it->in_dtype[i], it->in_data[i], 1);
            tni_splat(buffers[i], value, it->numel, tni_dtype_size(it->dtype));
            in[i] = buffers[i];
        }
    }
    fn(it->out_data, in, it->numel, ctx);
}

/* Few pieces are as many for each thread. */
static int64_t piece_of(int64_t n)
{
    const int64_t threads = tn_num_threads(), round = threads * TNI_GRAIN;
    if (n <= 2 * TNI_GRAIN)
        return TNI_ALONE / 2;
    if (n >= 8 * round)
        return TNI_GRAIN;
    const int64_t pieces = (n + round - 1) / round * threads, each = (n + pieces - 1) / pieces;
    return (each + 63) / 64 * 64;
}

static tn_status go(job *j)
{
    int64_t n = j->it->numel;
    if (n <= TNI_ALONE || (n <= TNI_GRAIN && !tni_pool_is_near(n / 16)))
        return run_range(0, n, j);
    return tni_pool_for(n, piece_of(n), run_range, j);
}

tn_status tni_run_general(tni_iter *it, tni_loop loop, unsigned flags, const void *ctx)
{
    const tni_kernels *k = tni_cpu_kernels();
    tn_dtype compute = flags & TNI_RUN_RAW ? it->dtype : tni_run_dtype(it);
    tni_loop_fn fn = tni_loop_find(k, loop, tni_dtype_moved_as(compute));
    TN_CHECK(fn, TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", it->attr->name,
             tni_dtype_text(it->dtype));
    if (it->numel == 0)
        return TN_OK;
    if (it->flat == TNI_FLAT_NUMBERS && compute == it->dtype &&
        it->numel <= BLOCK_BYTES / (int64_t)tni_dtype_size(compute)) {
        run_numbers(it, k, fn, ctx);
        return TN_OK;
    }
    walk_make(it);
    void *copies[TNI_ITER_INPUTS] = {NULL};
    tn_status status = copy_inputs(it, copies);
    if (status == TN_OK) {
        job j = {.it = it, .kernels = k, .fn = fn, .ctx = ctx, .n = it->n};
        job_set(&j, it, compute, flags, tni_loop_past(k, loop, compute));
        status = go(&j);
    }
    for (int i = 0; i < it->n; i++)
        tni_free(copies[i]);
    return status;
}

/* ---- looking at the divisor ---- */

typedef struct zero_search {
    size_t itemsize;
    _Atomic bool found;
} zero_search;

/* A loop that writes nothing; its context is where to note what it saw. */
static void find_zero(void *out, const void *const *in, int64_t n, const void *ctx)
{
    zero_search *search = (zero_search *)(uintptr_t)ctx;
    bool found = false;
    (void)out;
    for (int64_t i = 0; i < n; i++)
        switch (search->itemsize) {
        case 1:
            found |= ((const uint8_t *)in[0])[i] == 0;
            break;
        case 2:
            found |= ((const uint16_t *)in[0])[i] == 0;
            break;
        case 4:
            found |= ((const uint32_t *)in[0])[i] == 0;
            break;
        default:
            found |= ((const uint64_t *)in[0])[i] == 0;
        }
    if (found)
        atomic_store_explicit(&search->found, true, memory_order_relaxed);
}

tn_status tni_run_find_zero(tni_iter *it, int i, bool *out)
{
    *out = false;
    if (it->numel == 0)
        return TN_OK;
    walk_make(it);
    zero_search search = {.itemsize = tni_dtype_size(it->dtype)};
    job j = {.it = it, .kernels = tni_cpu_kernels(), .fn = find_zero, .ctx = &search, .n = it->n};
    job_set(&j, it, it->dtype, 0, NULL);
    j.in[0] = j.in[i];
    j.n = 1;
    j.out.how = AS_IT_IS; /* not touched, and no block of it */
    TN_TRY(go(&j));
    *out = atomic_load_explicit(&search.found, memory_order_relaxed);
    return TN_OK;
}
