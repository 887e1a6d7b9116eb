/* SPDX-License-Identifier: MIT */
/* cpu/bag.c: sums, means and largest elements of bags of embeddings, in float32 or float64. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/move.h"
#include "cpu/places.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

enum { SUM, MEAN, LARGEST };

#define PIECE 512

typedef struct bags {
    tn_dtype have, want;        /* of the weight, and what is computed in */
    const void *weight, *scale; /* scale NULL: 1 */
    const int64_t *index, *offset;
    int64_t n, count, width, padding, mode;
    void *out;
    int64_t *bag_of, *divisor, *from;
} bags;

static tn_status check(const bags *b, const tn_tensor *offsets, const tn_tensor *weight)
{
    int64_t rows = weight->sizes[0];
    int64_t n = offsets->sizes[0];
    TN_CHECK(n == 0 || b->offset[0] == 0, TN_INVALID,
             "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
             "position 0. However, got %lld",
             (long long)b->offset[0]);
    TN_CHECK(n == 0 || b->offset[n - 1] <= b->n, TN_INVALID,
             "offsets[-1] can not be greater than input's length %lld but got offsets[-1] of %lld",
             (long long)b->n, (long long)b->offset[n - 1]);
    for (int64_t i = 1; i < n; i++)
        TN_CHECK(b->offset[i] >= b->offset[i - 1], TN_INVALID,
                 "offsets must not decrease, but offsets[%lld] is %lld after %lld", (long long)i,
                 (long long)b->offset[i], (long long)b->offset[i - 1]);
    /* The reference has these words where no library does the sum. */
    bool other_words = b->mode == LARGEST || weight->dtype == TN_DTYPE_F64 || b->padding >= 0 ||
                       weight->strides[1] != 1;
    for (int64_t i = 0; other_words && i < b->n; i++)
        TN_CHECK(
            b->index[i] >= 0 && b->index[i] < rows, TN_INVALID,
            "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be %lld",
            (long long)b->index[i]);
    for (int64_t i = 0; i < b->n; i++)
        TN_CHECK(b->index[i] >= 0 && b->index[i] < rows, TN_INVALID,
                 "Index %lld of input takes value %lld which is not in the valid range [0, %lld)",
                 (long long)i, (long long)b->index[i], (long long)rows);
    return TN_OK;
}

/* Columns of a row, from @p first on: where they lie, or, of halves, in @p room as float32. A table
 * is large, and few of its rows are in bags: it is never converted whole. */
static const void *row_of(const bags *b, int64_t row, int64_t first, int64_t n, void *room)
{
    int64_t size = (int64_t)tni_dtype_size(b->have);
    const char *at = (const char *)b->weight + (row * b->width + first) * size;
    if (b->have == b->want)
        return at;
    tni_convert(tni_cpu_kernels(), b->want, room, b->have, at, n);
    return room;
}

/* PIECE columns at a time. */
#define ONE_BAG(name, T, S)                                                       \
    static void name(const bags *b, int64_t bag, int64_t begin, int64_t end)      \
    {                                                                             \
        const tni_mix_loops *loops = &tni_cpu_kernels()->places->S;               \
        const T *scale = b->scale;                                                \
        _Alignas(64) T room[PIECE];                                               \
        int64_t used = 0;                                                         \
        for (int64_t i = begin; i < end; i++) {                                   \
            b->bag_of[i] = bag;                                                   \
            used += b->index[i] != b->padding;                                    \
        }                                                                         \
        for (int64_t first = 0; first < b->width; first += PIECE) {               \
            int64_t n = b->width - first < PIECE ? b->width - first : PIECE;      \
            int64_t *from = b->from + bag * b->width + first;                     \
            T *o = (T *)b->out + bag * b->width + first;                          \
            bool some = false;                                                    \
            for (int64_t i = begin; i < end; i++) {                               \
                if (b->index[i] == b->padding)                                    \
                    continue;                                                     \
                const T *row = row_of(b, b->index[i], first, n, room);            \
                if (b->mode != LARGEST)                                           \
                    loops->add_scaled(o, row, scale ? (double)scale[i] : 1.0, n); \
                for (int64_t c = 0; b->mode == LARGEST && c < n; c++)             \
                    if (!some || row[c] > o[c]) {                                 \
                        o[c] = row[c];                                            \
                        from[c] = b->index[i];                                    \
                    }                                                             \
                some = true;                                                      \
            }                                                                     \
            for (int64_t c = 0; b->mode == MEAN && used && c < n; c++)            \
                o[c] /= (T)used;                                                  \
        }                                                                         \
        /* Sums are divided by nothing. */                                        \
        b->divisor[bag] = b->mode == SUM ? 0 : used;                              \
    }
ONE_BAG(one_bag_f32, float, f32)
ONE_BAG(one_bag_f64, double, f64)

typedef struct bag_job {
    bags bags;
    const tn_tensor *offset;
    bool wide;
} bag_job;

static tn_status some_bags(int64_t begin, int64_t end, void *arg)
{
    const bag_job *j = arg;
    const bags *b = &j->bags;
    for (int64_t i = begin; i < end; i++) {
        int64_t last = i + 1 < j->offset->numel ? b->offset[i + 1] : b->n;
        (j->wide ? one_bag_f64 : one_bag_f32)(b, i, b->offset[i], last);
    }
    return TN_OK;
}

static tn_status zeros(const tn_tensor *like, tn_dtype dtype, tn_tensor **out)
{
    TN_TRY(tni_tensor_new(like->ndim, like->sizes, NULL, dtype, TN_CPU, out));
    if (like->numel)
        memset((*out)->data, 0, (size_t)like->numel * tni_dtype_size(dtype));
    return TN_OK;
}

tn_status tni_cpu_embedding_bag(tn_tensor *weight, tn_tensor *indices, tn_tensor *offsets,
                                bool scale_grad_by_freq, int64_t mode, bool sparse,
                                tn_tensor *per_sample_weights, bool include_last_offset,
                                int64_t padding_idx, tn_tensor *out0, tn_tensor *out1,
                                tn_tensor *out2, tn_tensor *out3)
{
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) scale = NULL;
    TN_AUTO(tn_tensor) index = NULL;
    TN_AUTO(tn_tensor) offset = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_AUTO(tn_tensor) bag_of = NULL;
    TN_AUTO(tn_tensor) divisor = NULL;
    TN_AUTO(tn_tensor) from = NULL;
    (void)scale_grad_by_freq;
    (void)sparse;
    tn_dtype dtype = weight->dtype == TN_DTYPE_F64 ? TN_DTYPE_F64 : TN_DTYPE_F32;
    TN_TRY(tni_ready(weight, (tn_dtype)weight->dtype, &w));
    TN_TRY(tni_ready(per_sample_weights, dtype, &scale));
    TN_TRY(tni_ready(indices, TN_DTYPE_I64, &index));
    TN_TRY(tni_ready(offsets, TN_DTYPE_I64, &offset));
    TN_TRY(zeros(out0, dtype, &result));
    TN_TRY(zeros(out1, TN_DTYPE_I64, &bag_of));
    TN_TRY(zeros(out2, TN_DTYPE_I64, &divisor));
    TN_TRY(zeros(out3, TN_DTYPE_I64, &from));
    bags b = {.have = (tn_dtype)w->dtype,
              .want = dtype,
              .weight = w->data,
              .scale = scale ? scale->data : NULL,
              .index = index->data,
              .offset = offset->data,
              .n = index->numel,
              .count = out0->sizes[0],
              .width = out0->sizes[1],
              .padding = padding_idx,
              .mode = mode,
              .out = result->data,
              .bag_of = bag_of->data,
              .divisor = divisor->data,
              .from = from->data};
    TN_TRY(check(&b, offset, weight));
    bool ends = include_last_offset && offset->numel > b.count;
    for (int64_t i = ends ? b.offset[b.count] : b.n; i < b.n; i++)
        b.bag_of[i] = b.count; /* behind the last bag: in none */
    bag_job j = {b, offset, dtype == TN_DTYPE_F64};
    int64_t work = (b.n / (b.count ? b.count : 1) + 1) * b.width;
    TN_TRY(tni_pool_for(b.count, work < 16384 ? 16384 / (work + 1) + 1 : 1, some_bags, &j));
    if (out0->numel)
        TN_TRY(tni_copy_cpu(out0, result));
    if (out1->numel)
        TN_TRY(tni_copy_cpu(out1, bag_of));
    if (out2->numel)
        TN_TRY(tni_copy_cpu(out2, divisor));
    return out3->numel ? tni_copy_cpu(out3, mode == LARGEST ? from : divisor) : TN_OK;
}
