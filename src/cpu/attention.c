/* SPDX-License-Identifier: MIT */
/* cpu/attention.c: attention in blocks, with a softmax that is corrected as larger scores come: the
 * scores are never there as a whole.
 *
 * A block of queries meets one block of keys after the other. Scores are computed transposed, a
 * column for each query, S = K Q^T: then neither keys nor values are copied, and maxima and sums
 * run along vectors. Blocks that the causal rule hides are left out. Each block of queries is one
 * piece of work, so results do not depend on the number of threads. */
#include "cpu/attention.h"
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "gen/cpu.h"

/* Multiply-adds that are worth a piece of work of their own. */
#define GRAIN (INT64_C(1) << 18)

typedef struct forward {
    tni_attention a;
    const tn_tensor *query, *key, *value;
    tn_tensor *out, *lse;
    int64_t blocks; /* of queries, of one head */
    bool copies;    /* tiles may have to be copied */
} forward;

/* Memory of one thread. */
typedef struct scratch {
    void *block;
    size_t nbytes;
    char *turned; /* [width][q_block] of the queries */
    char *scores; /* [k_block][q_block] */
    char *sums;   /* [q_block][width] of the result, where it cannot gather in its own place */
    char *best, *sum, *factor;
    char *tile; /* one of queries, keys or values */
    char *mask; /* [q_block][k_block] */
    char *mask_turned;
    char *room;
} scratch;

static tn_status scratch_make(const forward *f, scratch *s)
{
    const tni_attention *a = &f->a;
    const int64_t q = a->q_block, k = a->k_block, w = a->width, longest = q > k ? q : k;
    const tni_attention_part parts[] = {
        {&s->turned, w * q},
        {&s->scores, k * q},
        {&s->sums, q * w},
        {&s->best, q},
        {&s->sum, q},
        {&s->factor, q},
        {&s->tile, f->copies ? longest * w : 0},
        {&s->mask, a->mask ? q * k : 0},
        {&s->mask_turned, a->mask ? k * q : 0},
    };
    return tni_attention_scratch(a, parts, sizeof parts / sizeof parts[0], &s->room, &s->block,
                                 &s->nbytes);
}

static double get(const tni_attention *a, const char *x, int64_t i)
{
    return a->compute == TN_DTYPE_F64 ? ((const double *)(const void *)x)[i]
                                      : (double)((const float *)(const void *)x)[i];
}

static void set(const tni_attention *a, char *x, int64_t i, double value)
{
    if (a->compute == TN_DTYPE_F64)
        ((double *)(void *)x)[i] = value;
    else
        ((float *)(void *)x)[i] = (float)value;
}

/* Scores of keys [k, k + nk) for queries [q, q + nq), with what the masks add. */
static void score(const forward *f, const scratch *s, int64_t b, int64_t h, int64_t q, int64_t nq,
                  int64_t k, int64_t nk)
{
    const tni_attention *a = &f->a;
    int64_t kv = h / (a->heads / a->kv_heads);
    tni_tile keys = tni_attention_tile(a, f->key, b, kv, k, nk, s->tile);
    tni_gemm_args g = {.m = nk, .n = nq, .k = a->width, .batch = 1};
    g.a = (tni_matrix){keys.data, keys.ld, 1, 0};
    g.b = (tni_matrix){s->turned, a->q_block, 1, 0};
    g.c = g.d = (tni_matrix){s->scores, a->q_block, 1, 0};
    tni_attention_gemm(a, &g, a->scale, false, s->room);
    if (a->mask) {
        tni_attention_mask(a, b, h, q, nq, k, nk, s->mask);
        a->loops->turn(s->mask_turned, a->q_block, s->mask, nk, nq, nk);
        a->loops->add(s->scores, a->q_block, s->mask_turned, a->q_block, nk, nq);
    }
    /* Key k + i is hidden from the queries before it. */
    for (int64_t i = q > k ? q - k : 0; a->causal && i < nk; i++) {
        int64_t hidden = k + i - q < nq ? k + i - q : nq;
        tni_attention_hide(a, s->scores + i * a->q_block * a->itemsize, hidden);
    }
}

/* A row that saw nothing gives zeros, and 0 as logarithm of its sum, which no score is part of. */
static void finish(const forward *f, const scratch *s, int64_t b, int64_t h, int64_t q, int64_t nq,
                   tni_matrix sums)
{
    const tni_attention *a = &f->a;
    const tn_tensor *lse = f->lse;
    for (int64_t i = 0; i < nq; i++) {
        double sum = get(a, s->sum, i);
        double total = sum == 0 ? 0 : get(a, s->best, i) + log(sum);
        set(a, s->factor, i, sum == 0 ? 0 : 1 / sum);
        set(a, lse->data, b * lse->strides[0] + h * lse->strides[1] + (q + i) * lse->strides[2],
            total);
    }
    a->loops->scale((void *)(uintptr_t)sums.data, nq, a->width, sums.row, s->factor);
    if (sums.data == s->sums)
        tni_attention_put(a, f->out, b, h, q, nq, s->sums);
}

static void one_block(const forward *f, const scratch *s, int64_t b, int64_t h, int64_t q)
{
    const tni_attention *a = &f->a;
    const int64_t nq = a->queries - q < a->q_block ? a->queries - q : a->q_block;
    const int64_t seen = tni_attention_seen(a, q + nq), kv = h / (a->heads / a->kv_heads);
    tni_tile queries = tni_attention_tile(a, f->query, b, h, q, nq, s->tile);
    a->loops->turn(s->turned, a->q_block, queries.data, queries.ld, nq, a->width);
    for (int64_t i = 0; i < nq; i++) {
        set(a, s->best, i, -INFINITY);
        set(a, s->sum, i, 0);
    }
    const tni_tile own = tni_attention_own(a, f->out, b, h, q);
    const tni_matrix sums =
        own.data ? (tni_matrix){own.data, own.ld, 1, 0} : (tni_matrix){s->sums, a->width, 1, 0};
    for (int64_t i = 0; seen == 0 && i < nq; i++)
        memset((char *)(uintptr_t)sums.data + i * sums.row * a->itemsize, 0,
               (size_t)(a->width * a->itemsize));
    for (int64_t k = 0; k < seen; k += a->k_block) {
        int64_t nk = seen - k < a->k_block ? seen - k : a->k_block;
        score(f, s, b, h, q, nq, k, nk);
        a->loops->online(s->scores, nk, nq, a->q_block, s->best, s->sum, s->factor);
        if (k > 0)
            a->loops->scale((void *)(uintptr_t)sums.data, nq, a->width, sums.row, s->factor);
        tni_tile values = tni_attention_tile(a, f->value, b, kv, k, nk, s->tile);
        tni_gemm_args g = {.m = nq, .n = a->width, .k = nk, .batch = 1};
        g.a = (tni_matrix){s->scores, 1, a->q_block, 0};
        g.b = (tni_matrix){values.data, values.ld, 1, 0};
        g.c = g.d = sums;
        tni_attention_gemm(a, &g, 1, k > 0, s->room);
    }
    finish(f, s, b, h, q, nq, sums);
}

static tn_status some_blocks(int64_t begin, int64_t end, void *arg)
{
    const forward *f = arg;
    scratch s;
    TN_TRY(scratch_make(f, &s));
    for (int64_t i = begin; i < end; i++) {
        int64_t head = i / f->blocks;
        one_block(f, &s, head / f->a.heads, head % f->a.heads, i % f->blocks * f->a.q_block);
    }
    tni_block_free(s.block, s.nbytes);
    return TN_OK;
}

tn_status tni_cpu__scaled_dot_product_flash_attention_for_cpu(tn_tensor *query, tn_tensor *key,
                                                              tn_tensor *value, double dropout_p,
                                                              bool is_causal, tn_tensor *attn_mask,
                                                              tn_opt_float scale, tn_tensor *output,
                                                              tn_tensor *logsumexp)
{
    (void)dropout_p;
    forward f = {.query = query, .key = key, .value = value, .out = output, .lse = logsumexp};
    if (logsumexp->numel == 0)
        return TN_OK;
    tni_attention_begin(&f.a, query, key, is_causal, attn_mask, scale);
    f.blocks = (f.a.queries + f.a.q_block - 1) / f.a.q_block;
    const tn_tensor *const read[] = {query, key, value};
    for (int i = 0; i < 3; i++)
        f.copies |= read[i]->dtype != (int)f.a.compute || read[i]->strides[3] != 1;
    int64_t grain = 1;
    if (f.a.keys < GRAIN && f.a.width < GRAIN) {
        int64_t work = f.a.q_block * (f.a.keys + 1) * (f.a.width + 1);
        /* One query reads what it multiplies: it waits for memory, not for arithmetic. */
        int64_t least = f.a.queries == 1 ? GRAIN / 16 : GRAIN;
        grain = work < least ? least / work : 1;
    }
    return tni_pool_for(f.a.batch * f.a.heads * f.blocks, grain, some_blocks, &f);
}
