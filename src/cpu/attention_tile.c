/* SPDX-License-Identifier: MIT */
/* cpu/attention_tile.c: blocks of attention's tensors, read and written in the dtype that is
 * computed in, and products of them. */
#include <math.h>
#include <string.h>
#include "cpu/attention.h"
#include "cpu/move.h"

/* Elements that are converted at a time. */
#define PIECE 256
/* Rows of a block. Between 64 and 256 of either, times differ by a few percent. */
#define Q_BLOCK 64
#define K_BLOCK 128

void tni_attention_begin(tni_attention *a, const tn_tensor *query, const tn_tensor *key,
                         bool causal, const tn_tensor *mask, tn_opt_float scale)
{
    a->k = tni_cpu_kernels();
    a->compute = query->dtype == TN_DTYPE_F64 ? TN_DTYPE_F64 : TN_DTYPE_F32;
    a->loops = a->compute == TN_DTYPE_F64 ? &a->k->attention->f64 : &a->k->attention->f32;
    a->itemsize = (int64_t)tni_dtype_size(a->compute);
    a->batch = query->sizes[0];
    a->heads = query->sizes[1];
    a->kv_heads = key->sizes[1];
    a->queries = query->sizes[2];
    a->keys = key->sizes[2];
    a->width = query->sizes[3];
    a->causal = causal;
    a->scale = scale.has ? scale.value : 1 / sqrt((double)a->width);
    a->mask = mask;
    for (int i = 0; mask && i < 4; i++) {
        int d = i - (4 - mask->ndim);
        a->mask_strides[i] = d >= 0 && mask->sizes[d] != 1 ? mask->strides[d] : 0;
    }
    /* Wide heads get short blocks, so that operands of products are used where they lie. */
    int64_t k_block = K_BLOCK * a->width > TNI_GEMM_DIRECT ? K_BLOCK / 2 : K_BLOCK;
    a->q_block = a->queries < Q_BLOCK ? a->queries : Q_BLOCK;
    a->k_block = a->keys < k_block ? a->keys : k_block;
}

/* A run of elements, converted. */
static void load(const tni_attention *a, void *to, tn_dtype dtype, const char *from, int64_t stride,
                 int64_t n)
{
    unsigned char piece[PIECE * 8];
    const size_t size = tni_dtype_size(dtype);
    if (stride == 1) {
        tni_convert(a->k, a->compute, to, dtype, from, n);
        return;
    }
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t some = n - i < PIECE ? n - i : PIECE;
        tni_gather(piece, from + i * stride * (int64_t)size, some, stride * (int64_t)size, size);
        tni_convert(a->k, a->compute, (char *)to + i * a->itemsize, dtype, piece, some);
    }
}

static char *entry(const tn_tensor *t, int64_t b, int64_t h, int64_t row)
{
    int64_t at = b * t->strides[0] + h * t->strides[1] + row * t->strides[2];
    return (char *)t->data + at * (int64_t)tni_itemsize(t);
}

tni_tile tni_attention_tile(const tni_attention *a, const tn_tensor *t, int64_t b, int64_t h,
                            int64_t row, int64_t rows, void *room)
{
    const tn_dtype dtype = (tn_dtype)t->dtype;
    const int64_t size = (int64_t)tni_itemsize(t);
    if (t->data == NULL) /* a width of 0 */
        return (tni_tile){room, 0};
    const char *from = entry(t, b, h, row);
    if (dtype == a->compute && (t->strides[3] == 1 || a->width == 1))
        return (tni_tile){from, t->strides[2]};
    for (int64_t i = 0; i < rows; i++)
        load(a, (char *)room + i * a->width * a->itemsize, dtype, from + i * t->strides[2] * size,
             t->strides[3], a->width);
    return (tni_tile){room, a->width};
}

tni_tile tni_attention_own(const tni_attention *a, const tn_tensor *t, int64_t b, int64_t h,
                           int64_t row)
{
    if (t->data == NULL || t->dtype != (int)a->compute || (t->strides[3] != 1 && a->width != 1))
        return (tni_tile){NULL, 0};
    return (tni_tile){entry(t, b, h, row), t->strides[2]};
}

void tni_attention_hide(const tni_attention *a, void *to, int64_t n)
{
    float *f32 = to;
    double *f64 = to;
    if (a->compute == TN_DTYPE_F64) {
        for (int64_t i = 0; i < n; i++)
            f64[i] = -(double)INFINITY;
    } else {
        for (int64_t i = 0; i < n; i++)
            f32[i] = -INFINITY;
    }
}

void tni_attention_mask(const tni_attention *a, int64_t b, int64_t h, int64_t q, int64_t nq,
                        int64_t k, int64_t nk, void *room)
{
    const int64_t *s = a->mask_strides, size = (int64_t)tni_itemsize(a->mask);
    const char *from = a->mask->data;
    from += (b * s[0] + h * s[1] + q * s[2] + k * s[3]) * size;
    for (int64_t i = 0; i < nq; i++)
        load(a, (char *)room + i * nk * a->itemsize, (tn_dtype)a->mask->dtype,
             from + i * s[2] * size, s[3], nk);
}

void tni_attention_put(const tni_attention *a, tn_tensor *t, int64_t b, int64_t h, int64_t row,
                       int64_t rows, const void *from)
{
    unsigned char piece[PIECE * 8];
    const tn_dtype dtype = (tn_dtype)t->dtype;
    const int64_t size = (int64_t)tni_itemsize(t), stride = t->strides[3];
    if (t->data == NULL)
        return;
    for (int64_t i = 0; i < rows; i++) {
        char *to = entry(t, b, h, row + i);
        const char *source = (const char *)from + i * a->width * a->itemsize;
        if (stride == 1) {
            tni_convert(a->k, dtype, to, a->compute, source, a->width);
            continue;
        }
        for (int64_t j = 0; j < a->width; j += PIECE) {
            int64_t some = a->width - j < PIECE ? a->width - j : PIECE;
            tni_convert(a->k, dtype, piece, a->compute, source + j * a->itemsize, some);
            tni_scatter(to + j * stride * size, piece, some, stride * size, (size_t)size);
        }
    }
}

void tni_attention_gemm(const tni_attention *a, const tni_gemm_args *g, double alpha, bool add,
                        void *room)
{
    static const float one_f32 = 1;
    static const double one_f64 = 1;
    const float alpha_f32 = (float)alpha;
    const void *factor = a->compute == TN_DTYPE_F64 ? (const void *)&alpha : &alpha_f32;
    const void *one = a->compute == TN_DTYPE_F64 ? (const void *)&one_f64 : &one_f32;
    if (g->n == 1 && g->b.row == 1) /* the scores of one query: a block would be one lane wide */
        a->k->gemm->gemv[a->compute](g, factor, add ? one : NULL);
    else
        a->k->gemm->gemm[a->compute](g, factor, add ? one : NULL, room);
}

static size_t room_for_products(const tni_attention *a)
{
    int64_t longest = a->q_block > a->k_block ? a->q_block : a->k_block;
    if (longest * a->width <= TNI_GEMM_DIRECT)
        return 0;
    return (size_t)(TNI_GEMM_KC(a->itemsize) * (TNI_GEMM_NC + TNI_GEMM_MC) * a->itemsize);
}

/* In whole cache lines. */
static size_t bytes_of(const tni_attention *a, int64_t count)
{
    return ((size_t)(count * a->itemsize) + 63) / 64 * 64;
}

tn_status tni_attention_scratch(const tni_attention *a, const tni_attention_part *parts, int n,
                                char **room, void **out_block, size_t *out_nbytes)
{
    size_t nbytes = room_for_products(a);
    for (int i = 0; i < n; i++)
        nbytes += bytes_of(a, parts[i].count);
    char *at = tni_block_alloc(nbytes);
    TN_CHECK(at, TN_NOMEM, "cannot allocate %zu bytes of scratch memory for attention", nbytes);
    *out_block = at;
    *out_nbytes = nbytes;
    for (int i = 0; i < n; i++) {
        *parts[i].at = at;
        at += bytes_of(a, parts[i].count);
    }
    *room = at;
    return TN_OK;
}
