/* SPDX-License-Identifier: MIT */
/* cpu/attention_backward.c: the gradient of attention. The weights are computed again, block by
 * block, from the logarithms of their sums.
 *
 * With P = exp(S - lse) and delta = sum(dO * O):
 *     dV = P^T dO,   dS = P * (dO V^T - delta),   dQ = scale dS K,   dK = scale dS^T Q.
 * A block of keys meets all blocks of queries of all heads that share it. One piece of work is the
 * blocks of keys of one head; where there are few heads, they are dealt out to several pieces, each
 * with a dQ of its own, added up in order at the end. How many depends on the sizes alone. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/attention.h"
#include "gen/cpu.h"

/* So many pieces of work there should be, if the keys are enough. */
#define PIECES 8

typedef struct backward {
    tni_attention a;
    const tn_tensor *grad, *query, *key, *value, *out, *lse;
    tn_tensor *d_query, *d_key, *d_value;
    int64_t pieces; /* of one head of keys */
    char *partial;  /* NULL, or [pieces][batch][heads][queries][width] of dQ */
    bool copies;
} backward;

typedef struct scratch {
    void *block;
    size_t nbytes;
    char *scores, *score_grads; /* [q_block][k_block] */
    char *k_turned, *v_turned;  /* [width][k_block] */
    char *d_key, *d_value;      /* [k_block][width] */
    char *lse, *delta;          /* [heads that share a key][queries] */
    char *keys, *values;        /* tiles, where they must be copied */
    char *queries, *grads;
    char *mask; /* [q_block][k_block] */
    char *room;
} scratch;

static tn_status scratch_make(const backward *w, scratch *s)
{
    const tni_attention *a = &w->a;
    const int64_t q = a->q_block, k = a->k_block, n = a->width;
    const int64_t rows = a->heads / a->kv_heads * a->queries, copied = w->copies ? n : 0;
    const tni_attention_part parts[] = {
        {&s->scores, q * k},
        {&s->score_grads, q * k},
        {&s->k_turned, n * k},
        {&s->v_turned, n * k},
        {&s->d_key, k * n},
        {&s->d_value, k * n},
        {&s->lse, rows},
        {&s->delta, rows},
        {&s->keys, copied * k},
        {&s->values, copied * k},
        {&s->queries, copied * q},
        {&s->grads, copied * q},
        {&s->mask, a->mask ? q * k : 0},
    };
    return tni_attention_scratch(a, parts, sizeof parts / sizeof parts[0], &s->room, &s->block,
                                 &s->nbytes);
}

/* Where dQ of a head gathers: rows from @p q on. */
static tni_matrix gathered(const backward *w, int64_t piece, int64_t b, int64_t h, int64_t q)
{
    const tni_attention *a = &w->a;
    if (w->partial) {
        int64_t at = ((piece * a->batch + b) * a->heads + h) * a->queries + q;
        return (tni_matrix){w->partial + at * a->width * a->itemsize, a->width, 1, 0};
    }
    const int64_t *s = w->d_query->strides;
    char *data = w->d_query->data;
    if (data)
        data += (b * s[0] + h * s[1] + q * s[2]) * a->itemsize;
    return (tni_matrix){data, s[2], 1, 0};
}

/* Fill lse and delta of the queries of head @p h, which is number @p i of those that share keys. */
static void begin_head(const backward *w, const scratch *s, int64_t b, int64_t h, int64_t i)
{
    const tni_attention *a = &w->a;
    const int64_t *at = w->lse->strides;
    for (int64_t q = 0; q < a->queries; q += a->q_block) {
        int64_t nq = a->queries - q < a->q_block ? a->queries - q : a->q_block;
        int64_t to = (i * a->queries + q) * a->itemsize;
        tni_tile grads = tni_attention_tile(a, w->grad, b, h, q, nq, s->grads);
        tni_tile out = tni_attention_tile(a, w->out, b, h, q, nq, s->queries);
        a->loops->dots(s->delta + to, grads.data, grads.ld, out.data, out.ld, nq, a->width);
        for (int64_t r = 0; r < nq; r++) {
            int64_t from = b * at[0] + h * at[1] + (q + r) * at[2];
            memcpy(s->lse + to + r * a->itemsize, (const char *)w->lse->data + from * a->itemsize,
                   (size_t)a->itemsize);
        }
    }
}

static void clear_rows(const tni_attention *a, tni_matrix x, int64_t rows)
{
    for (int64_t i = 0; x.data && i < rows; i++)
        memset((char *)(uintptr_t)x.data + i * x.row * a->itemsize, 0,
               (size_t)(a->width * a->itemsize));
}

static void product(const backward *w, const scratch *s, int64_t m, int64_t n, int64_t k,
                    tni_matrix x, tni_matrix y, tni_matrix z, double alpha, bool add)
{
    tni_gemm_args g = {.m = m, .n = n, .k = k, .batch = 1, .a = x, .b = y, .c = z, .d = z};
    tni_attention_gemm(&w->a, &g, alpha, add, s->room);
}

/* The rule that key j is hidden from queries before it, for rows [q, q + nq). */
static void hide(const tni_attention *a, char *scores, int64_t q, int64_t nq, int64_t k, int64_t nk)
{
    for (int64_t i = 0; i < nq; i++) {
        int64_t j = q + i + 1 - k;
        j = j < 0 ? 0 : j;
        if (j >= nk)
            return;
        tni_attention_hide(a, scores + (i * a->k_block + j) * a->itemsize, nk - j);
    }
}

typedef struct block {
    int64_t b, h, shared; /* head h, number `shared` of those that share keys */
    int64_t q, nq, k, nk;
    tni_tile keys;
    tni_matrix d_query, d_key, d_value;
    bool first_of_query; /* nothing has gathered there yet */
    bool first_of_key;
} block;

static void one_block(const backward *w, const scratch *s, const block *x)
{
    const tni_attention *a = &w->a;
    const int64_t nq = x->nq, nk = x->nk, n = a->width, ld = a->k_block;
    tni_tile queries = tni_attention_tile(a, w->query, x->b, x->h, x->q, nq, s->queries);
    tni_tile grads = tni_attention_tile(a, w->grad, x->b, x->h, x->q, nq, s->grads);
    const tni_matrix q = {queries.data, queries.ld, 1, 0}, g = {grads.data, grads.ld, 1, 0};
    const tni_matrix p = {s->scores, ld, 1, 0}, p_turned = {s->scores, 1, ld, 0};
    const tni_matrix ds = {s->score_grads, ld, 1, 0}, ds_turned = {s->score_grads, 1, ld, 0};
    const int64_t at = (x->shared * a->queries + x->q) * a->itemsize;
    product(w, s, nq, nk, n, q, (tni_matrix){s->k_turned, ld, 1, 0}, p, a->scale, false);
    if (a->mask) {
        tni_attention_mask(a, x->b, x->h, x->q, nq, x->k, nk, s->mask);
        a->loops->add(s->scores, ld, s->mask, nk, nq, nk);
    }
    if (a->causal)
        hide(a, s->scores, x->q, nq, x->k, nk);
    a->loops->weights(s->scores, nq, nk, ld, s->lse + at);
    product(w, s, nk, n, nq, p_turned, g, x->d_value, 1, !x->first_of_key);
    product(w, s, nq, nk, n, g, (tni_matrix){s->v_turned, ld, 1, 0}, ds, 1, false);
    a->loops->score_grad(s->score_grads, s->scores, nq, nk, ld, s->delta + at);
    product(w, s, nq, n, nk, ds, (tni_matrix){x->keys.data, x->keys.ld, 1, 0}, x->d_query, a->scale,
            !x->first_of_query);
    product(w, s, nk, n, nq, ds_turned, q, x->d_key, a->scale, !x->first_of_key);
}

/* Where rows of dK or dV gather: in their place, or in @p room. */
static tni_matrix gathering(const backward *w, const tn_tensor *t, int64_t b, int64_t kv, int64_t k,
                            const char *room)
{
    const tni_tile own = tni_attention_own(&w->a, t, b, kv, k);
    return own.data ? (tni_matrix){own.data, own.ld, 1, 0} : (tni_matrix){room, w->a.width, 1, 0};
}

/* Keys [k, k + nk) of a head, and every query that sees one of them. The last queries come first:
 * they see the most, so that what the first product writes is all that there is. */
static void block_of_keys(const backward *w, const scratch *s, int64_t piece, int64_t b, int64_t kv,
                          int64_t k)
{
    const tni_attention *a = &w->a;
    const int64_t nk = a->keys - k < a->k_block ? a->keys - k : a->k_block;
    const int64_t shared = a->heads / a->kv_heads;
    const int64_t last = (a->queries - 1) / a->q_block * a->q_block;
    const int64_t most = tni_attention_seen(a, a->queries) - k;
    tni_tile keys = tni_attention_tile(a, w->key, b, kv, k, nk, s->keys);
    tni_tile values = tni_attention_tile(a, w->value, b, kv, k, nk, s->values);
    a->loops->turn(s->k_turned, a->k_block, keys.data, keys.ld, nk, a->width);
    a->loops->turn(s->v_turned, a->k_block, values.data, values.ld, nk, a->width);
    block x = {.b = b,
               .k = k,
               .keys = keys,
               .d_key = gathering(w, w->d_key, b, kv, k, s->d_key),
               .d_value = gathering(w, w->d_value, b, kv, k, s->d_value),
               .first_of_query = k == piece * a->k_block,
               .first_of_key = true};
    if (most < nk) { /* keys that nobody sees */
        clear_rows(a, x.d_key, nk);
        clear_rows(a, x.d_value, nk);
    }
    for (x.shared = 0; x.shared < shared; x.shared++) {
        x.h = kv * shared + x.shared;
        for (x.q = last; x.q >= 0; x.q -= a->q_block) {
            x.nq = a->queries - x.q < a->q_block ? a->queries - x.q : a->q_block;
            x.d_query = gathered(w, piece, b, x.h, x.q);
            const int64_t seen = tni_attention_seen(a, x.q + x.nq) - k;
            x.nk = seen < nk ? seen : nk;
            if (seen > 0) {
                one_block(w, s, &x);
                x.first_of_key = false;
            } else if (x.first_of_query) {
                clear_rows(a, x.d_query, x.nq);
            }
        }
    }
    if (x.d_key.data == s->d_key)
        tni_attention_put(a, w->d_key, b, kv, k, nk, s->d_key);
    if (x.d_value.data == s->d_value)
        tni_attention_put(a, w->d_value, b, kv, k, nk, s->d_value);
}

static tn_status some_pieces(int64_t begin, int64_t end, void *arg)
{
    const backward *w = arg;
    const tni_attention *a = &w->a;
    const int64_t shared = a->heads / a->kv_heads;
    scratch s;
    TN_TRY(scratch_make(w, &s));
    for (int64_t i = begin; i < end; i++) {
        int64_t piece = i % w->pieces, head = i / w->pieces;
        int64_t b = head / a->kv_heads, kv = head % a->kv_heads;
        for (int64_t j = 0; j < shared; j++)
            begin_head(w, &s, b, kv * shared + j, j);
        for (int64_t k = piece * a->k_block; k < a->keys; k += w->pieces * a->k_block)
            block_of_keys(w, &s, piece, b, kv, k);
    }
    tni_block_free(s.block, s.nbytes);
    return TN_OK;
}

/* Add up what the pieces gathered. */
static tn_status some_sums(int64_t begin, int64_t end, void *arg)
{
    const backward *w = arg;
    const tni_attention *a = &w->a;
    for (int64_t i = begin; i < end; i++) {
        tni_matrix sum = gathered(w, 0, i / a->heads, i % a->heads, 0);
        for (int64_t piece = 1; piece < w->pieces; piece++) {
            tni_matrix more = gathered(w, piece, i / a->heads, i % a->heads, 0);
            a->loops->add((void *)(uintptr_t)sum.data, a->width, more.data, a->width, a->queries,
                          a->width);
        }
        tni_attention_put(a, w->d_query, i / a->heads, i % a->heads, 0, a->queries, sum.data);
    }
    return TN_OK;
}

/* No query or no key: nothing has an effect. */
static tn_status all_zero(const backward *w)
{
    tn_tensor *const grads[] = {w->d_query, w->d_key, w->d_value};
    for (int i = 0; i < 3; i++) {
        if (grads[i]->numel) /* dense, whatever the order of its dimensions */
            memset(grads[i]->data, 0, (size_t)grads[i]->numel * tni_itemsize(grads[i]));
    }
    return TN_OK;
}

static tn_status run(backward *w)
{
    const tni_attention *a = &w->a;
    int64_t heads = a->batch * a->kv_heads, blocks = (a->keys + a->k_block - 1) / a->k_block;
    int64_t wanted = heads < PIECES ? (PIECES + heads - 1) / heads : 1;
    w->pieces = wanted < blocks ? wanted : blocks;
    size_t nbytes = 0;
    if (w->pieces > 1 || w->d_query->dtype != (int)a->compute) {
        nbytes = (size_t)(w->pieces * w->d_query->numel * a->itemsize);
        w->partial = tni_block_alloc(nbytes);
        TN_CHECK(w->partial, TN_NOMEM,
                 "cannot allocate %zu bytes of scratch memory for the gradient of attention",
                 nbytes);
    }
    tn_status status = tni_pool_for(heads * w->pieces, 1, some_pieces, w);
    if (status == TN_OK && w->partial)
        status = tni_pool_for(a->batch * a->heads, 1, some_sums, w);
    tni_block_free(w->partial, nbytes);
    return status;
}

tn_status tni_cpu__scaled_dot_product_flash_attention_for_cpu_backward(
    tn_tensor *grad_out, tn_tensor *query, tn_tensor *key, tn_tensor *value, tn_tensor *out,
    tn_tensor *logsumexp, double dropout_p, bool is_causal, tn_tensor *attn_mask,
    tn_opt_float scale, tn_tensor *grad_query, tn_tensor *grad_key, tn_tensor *grad_value)
{
    (void)dropout_p;
    backward w = {.grad = grad_out,
                  .query = query,
                  .key = key,
                  .value = value,
                  .out = out,
                  .lse = logsumexp,
                  .d_query = grad_query,
                  .d_key = grad_key,
                  .d_value = grad_value};
    if (query->numel == 0 || key->numel == 0)
        return all_zero(&w);
    tni_attention_begin(&w.a, query, key, is_causal, attn_mask, scale);
    const tn_tensor *const read[] = {grad_out, query, key, value, out};
    for (int i = 0; i < 5; i++)
        w.copies |= read[i]->dtype != (int)w.a.compute || read[i]->strides[3] != 1;
    return run(&w);
}
