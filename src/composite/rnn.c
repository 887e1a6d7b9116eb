/* SPDX-License-Identifier: MIT */
/* composite/rnn.c: recurrent layers: steps through time, forwards and backwards, stacked, over
 * sequences of one length or packed ones. The steps are those of rnn_cell.c. */
#include "core/at_hand.h"
#include "core/fake.h"
#include "composite/rnn.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* Tensors that belong to the list; of a fixed capacity. */
typedef struct list {
    tn_tensor **at;
    int64_t n;
} list;

static void list_free(list *l)
{
    if (l->at)
        tn_tensor_list_free(l->at, l->n);
    *l = (list){0};
}

#define LIST __attribute__((cleanup(list_free))) list

static tn_status list_make(int64_t room, list *out)
{
    size_t nbytes;
    bool fits = tni_size_mul((size_t)room, sizeof(tn_tensor *), &nbytes);
    out->at = fits ? tni_alloc(nbytes) : NULL;
    TN_CHECK(out->at, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)room);
    out->n = 0;
    return TN_OK;
}

static void list_reverse(list *l)
{
    for (int64_t i = 0, j = l->n - 1; i < j; i++, j--) {
        tn_tensor *kept = l->at[i];
        l->at[i] = l->at[j];
        l->at[j] = kept;
    }
}

/* One call. */
typedef struct rnn {
    tni_rnn_kind kind;
    tn_tensor *const *params;
    int64_t params_n;
    int64_t each; /* parameters of one layer in one direction */
    bool biases, projected;
    int64_t layers, directions;
    double dropout;
    bool train;
    const int64_t *batch_sizes; /* of packed sequences; NULL: all steps have the whole batch */
    int64_t steps;
} rnn;

static tni_rnn_weights weights_of(const rnn *r, int64_t which)
{
    tn_tensor *const *p = r->params + which * r->each;
    tni_rnn_weights w = {.w_ih = p[0], .w_hh = p[1]};
    if (r->biases) {
        w.b_ih = p[2];
        w.b_hh = p[3];
    }
    if (r->projected)
        w.w_hr = p[r->each - 1];
    return w;
}

/* ---- one layer in one direction ---- */

/* Rows [start, start + n) of a state. */
static tn_status state_rows(const tni_rnn_state *s, int64_t start, int64_t n, tni_rnn_state *out)
{
    TN_AUTO(tn_tensor) h = NULL;
    TN_AUTO(tn_tensor) c = NULL;
    TN_TRY(tn_narrow(s->h, 0, start, n, &h));
    if (s->c)
        TN_TRY(tn_narrow(s->c, 0, start, n, &c));
    *out = (tni_rnn_state){TN_MOVE(h), TN_MOVE(c)};
    return TN_OK;
}

/* @p s becomes @p s over @p more; more is cleared. */
static tn_status state_join(tni_rnn_state *s, tni_rnn_state *more)
{
    TN_AUTO(tn_tensor) h = NULL;
    TN_AUTO(tn_tensor) c = NULL;
    tn_status status = tn_cat((tn_tensor *[]){s->h, more->h}, 2, 0, &h);
    if (status == TN_OK && s->c)
        status = tn_cat((tn_tensor *[]){s->c, more->c}, 2, 0, &c);
    tni_rnn_state_clear(more);
    TN_TRY(status);
    tni_rnn_state_clear(s);
    *s = (tni_rnn_state){TN_MOVE(h), TN_MOVE(c)};
    return TN_OK;
}

/* What runs through the steps. A sequence that is over leaves its state in `done`: those are the
 * last rows, and the earlier one ends the later its rows come. */
typedef struct walk {
    tni_rnn_state state; /* of the sequences that go on */
    tni_rnn_state done;
    const tni_rnn_state *given;
    list outputs;
} walk;

static void walk_clear(walk *w)
{
    tni_rnn_state_clear(&w->state);
    tni_rnn_state_clear(&w->done);
    list_free(&w->outputs);
}

/* Before a step with @p batch rows: sequences end, or, backwards, begin. */
static tn_status change_batch(walk *w, int64_t batch)
{
    int64_t before = w->state.h->sizes[0];
    tni_rnn_state part = {0};
    if (batch > before) {
        TN_TRY(state_rows(w->given, before, batch - before, &part));
        return state_join(&w->state, &part);
    }
    if (batch == before)
        return TN_OK;
    TN_TRY(state_rows(&w->state, batch, before - batch, &part));
    if (w->done.h) {
        tn_status status = state_join(&part, &w->done);
        if (status != TN_OK) {
            tni_rnn_state_clear(&part);
            return status;
        }
    }
    w->done = part;
    part = (tni_rnn_state){0};
    TN_TRY(state_rows(&w->state, 0, batch, &part));
    tni_rnn_state_clear(&w->state);
    w->state = part;
    return TN_OK;
}

static tn_status take_step(const tni_rnn_cell *cell, walk *w, tn_tensor *gates)
{
    tni_rnn_state next;
    TN_TRY(tni_rnn_step(cell, gates, &w->state, &next));
    tni_rnn_state_clear(&w->state);
    w->state = next;
    w->outputs.at[w->outputs.n++] = tn_tensor_ref(next.h);
    return TN_OK;
}

static tn_status walk_even(const rnn *r, const tni_rnn_cell *cell, tn_tensor *inputs, bool back,
                           walk *w)
{
    LIST gates = {0};
    TN_TRY(tn_unbind(inputs, 0, &gates.at, &gates.n));
    w->state = (tni_rnn_state){tn_tensor_ref(w->given->h), tn_tensor_ref(w->given->c)};
    for (int64_t i = 0; i < r->steps; i++)
        TN_TRY(take_step(cell, w, gates.at[back ? r->steps - 1 - i : i]));
    return TN_OK;
}

static tn_status walk_packed(const rnn *r, const tni_rnn_cell *cell, tn_tensor *inputs, bool back,
                             walk *w)
{
    int64_t at = back ? inputs->sizes[0] : 0;
    TN_TRY(state_rows(w->given, 0, r->batch_sizes[back ? r->steps - 1 : 0], &w->state));
    for (int64_t i = 0; i < r->steps; i++) {
        int64_t batch = r->batch_sizes[back ? r->steps - 1 - i : i];
        TN_AUTO(tn_tensor) gates = NULL;
        at -= back ? batch : 0;
        TN_TRY(change_batch(w, batch));
        TN_TRY(tn_narrow(inputs, 0, at, batch, &gates));
        TN_TRY(take_step(cell, w, gates));
        at += back ? 0 : batch;
    }
    return w->done.h ? state_join(&w->state, &w->done) : TN_OK;
}

/* All steps: the results of each, and the last state. */
static tn_status one_direction(const rnn *r, int64_t which, bool back, tn_tensor *input,
                               const tni_rnn_state *given, tn_tensor **out, tni_rnn_state *last)
{
    tni_rnn_cell cell;
    const tni_rnn_weights weights = weights_of(r, which);
    TN_AUTO(tn_tensor) inputs = NULL;
    TN_AUTO(tn_tensor) c = NULL;
    TN_TRY(tni_rnn_widen(given->c, &c));
    const tni_rnn_state begin = {given->h, c};
    walk w = {.given = &begin};
    TN_TRY(tni_rnn_begin(r->kind, &weights, input, &cell, &inputs));
    tn_status status = list_make(r->steps, &w.outputs);
    if (status == TN_OK)
        status = r->batch_sizes ? walk_packed(r, &cell, inputs, back, &w)
                                : walk_even(r, &cell, inputs, back, &w);
    if (back)
        list_reverse(&w.outputs);
    if (status == TN_OK)
        status = r->batch_sizes ? tn_cat(w.outputs.at, w.outputs.n, 0, out)
                                : tn_stack_tensors(w.outputs.at, w.outputs.n, 0, out);
    if (status == TN_OK)
        status = tni_rnn_narrow(given->c, &w.state.c);
    if (status == TN_OK) {
        *last = w.state;
        w.state = (tni_rnn_state){0};
    }
    walk_clear(&w);
    tni_rnn_end(&cell);
    return status;
}

/* ---- layers ---- */

typedef struct states {
    list h, c; /* one for each layer and direction; c only of an LSTM */
} states;

static void states_free(states *s)
{
    list_free(&s->h);
    list_free(&s->c);
}

static tn_status one_layer(const rnn *r, int64_t layer, tn_tensor *input, const states *given,
                           states *last, tn_tensor **out)
{
    tn_tensor *ways[2] = {NULL, NULL};
    tn_status status = TN_OK;
    for (int64_t d = 0; d < r->directions && status == TN_OK; d++) {
        int64_t which = layer * r->directions + d;
        tni_rnn_state begin = {given->h.at[which], given->c.at ? given->c.at[which] : NULL},
                      end = {0};
        status = one_direction(r, which, d == 1, input, &begin, &ways[d], &end);
        if (status == TN_OK) {
            last->h.at[last->h.n++] = end.h;
            if (end.c)
                last->c.at[last->c.n++] = end.c;
        }
    }
    if (status == TN_OK && r->directions == 2)
        status = tn_cat(ways, 2, -1, out);
    else if (status == TN_OK)
        *out = TN_MOVE(ways[0]);
    tn_tensor_unref(ways[0]);
    tn_tensor_unref(ways[1]);
    return status;
}

static tn_status all_layers(const rnn *r, tn_tensor *input, const states *given, states *last,
                            tn_tensor **out)
{
    TN_AUTO(tn_tensor) x = tn_tensor_ref(input);
    for (int64_t i = 0; i < r->layers; i++) {
        TN_AUTO(tn_tensor) y = NULL;
        TN_TRY(one_layer(r, i, x, given, last, &y));
        tn_tensor_unref(x);
        x = TN_MOVE(y);
        if (r->dropout != 0 && r->train && i < r->layers - 1) {
            TN_TRY(tn_dropout(x, r->dropout, true, &y));
            tn_tensor_unref(x);
            x = TN_MOVE(y);
        }
    }
    *out = TN_MOVE(x);
    return TN_OK;
}

static tn_status check(rnn *r, const tn_tensor *h, const tn_tensor *c)
{
    int d;
    TN_TRY(tni_wrap_dim(2, h->ndim, &d));
    if (c) {
        TN_TRY(tni_wrap_dim(2, c->ndim, &d));
        r->projected = h->sizes[2] != c->sizes[2];
    }
    r->each = 2 + (r->biases ? 2 : 0) + (r->projected ? 1 : 0);
    TN_CHECK(r->params_n % r->each == 0, TN_INVALID, "got an incorrect number of RNN parameters");
    int64_t have = r->params_n / r->each, states_n = h->sizes[0];
    TN_CHECK(have % r->directions == 0 && states_n % r->directions == 0, TN_INVALID,
             "Odd number of params or hiddens given to a bidirectional RNN");
    TN_CHECK(r->layers == states_n / r->directions && (!c || c->sizes[0] == states_n), TN_INVALID,
             "Expected more hidden states in stacked_rnn");
    TN_CHECK(r->layers == have / r->directions, TN_INVALID, "Expected more weights in stacked_rnn");
    TN_CHECK(r->steps > 0, TN_INVALID, "Expected sequence length to be larger than 0 in RNN");
    return TN_OK;
}

static tn_status run(rnn *r, tn_tensor *input, tn_tensor *h, tn_tensor *c, tn_tensor **out,
                     tn_tensor **out_h, tn_tensor **out_c)
{
    __attribute__((cleanup(states_free))) states given = {0}, last = {0};
    TN_AUTO(tn_tensor) y = NULL;
    TN_AUTO(tn_tensor) last_h = NULL;
    TN_TRY(check(r, h, c));
    TN_TRY(tn_unbind(h, 0, &given.h.at, &given.h.n));
    TN_TRY(list_make(given.h.n, &last.h));
    if (c) {
        TN_TRY(tn_unbind(c, 0, &given.c.at, &given.c.n));
        TN_TRY(list_make(given.c.n, &last.c));
    }
    TN_TRY(all_layers(r, input, &given, &last, &y));
    TN_TRY(tn_stack_tensors(last.h.at, last.h.n, 0, &last_h));
    if (c)
        TN_TRY(tn_stack_tensors(last.c.at, last.c.n, 0, out_c));
    *out = TN_MOVE(y);
    *out_h = TN_MOVE(last_h);
    return TN_OK;
}

/* ---- operators ---- */

/* Sequences of one length: [steps, batch, size], or [batch, steps, size]. */
static tn_status run_even(rnn *r, tn_tensor *input, tn_tensor *h, tn_tensor *c, bool batch_first,
                          tn_tensor **out, tn_tensor **out_h, tn_tensor **out_c)
{
    int d;
    TN_TRY(tni_wrap_dim(input->ndim < 2 ? 1 : 2, input->ndim, &d));
    TN_CHECK(input->ndim == 3, TN_INVALID, "Expected input to have 3 dimensions, but it has %d",
             input->ndim);
    r->steps = input->sizes[batch_first ? 1 : 0];
    if (!batch_first)
        return run(r, input, h, c, out, out_h, out_c);
    TN_AUTO(tn_tensor) turned = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    TN_AUTO(tn_tensor) last_h = NULL;
    TN_AUTO(tn_tensor) last_c = NULL;
    TN_TRY(tn_transpose(input, 0, 1, &turned));
    TN_TRY(run(r, turned, h, c, &result, &last_h, &last_c));
    TN_TRY(tn_transpose(result, 0, 1, out));
    *out_h = TN_MOVE(last_h);
    if (c)
        *out_c = TN_MOVE(last_c);
    return TN_OK;
}

static tn_status run_packed(rnn *r, tn_tensor *data, tn_tensor *batch_sizes, tn_tensor *h,
                            tn_tensor *c, tn_tensor **out, tn_tensor **out_h, tn_tensor **out_c)
{
    if (batch_sizes->ndim == 1 && batch_sizes->dtype == TN_DTYPE_I64 && tni_is_fake(batch_sizes))
        return tni_fake_needs_values("aten._local_scalar_dense.default");
    TN_CHECK(batch_sizes->ndim == 1 && batch_sizes->dtype == TN_DTYPE_I64 &&
                 batch_sizes->storage->device.type == TN_DEVICE_CPU,
             TN_INVALID, "batch_sizes should be a 1D CPU int64 tensor, but got a %dD %s tensor",
             batch_sizes->ndim, tni_dtype_text((tn_dtype)batch_sizes->dtype));
    TN_AUTO(tn_tensor) sizes = NULL;
    TN_TRY(tn_contiguous(batch_sizes, TN_FORMAT_CONTIGUOUS, &sizes));
    TN_CHECK(tni_is_at_hand(sizes), TN_INVALID, TNI_NOT_AT_HAND);
    r->batch_sizes = sizes->data;
    r->steps = sizes->numel;
    int64_t total = 0, most = h->ndim > 1 ? h->sizes[1] : 0;
    TN_CHECK(data->ndim == 2, TN_INVALID, "Expected data to have 2 dimensions, but it has %d",
             data->ndim);
    for (int64_t i = 0; i < r->steps; i++) {
        int64_t size = r->batch_sizes[i];
        TN_CHECK(i > 0 || size == most, TN_INVALID,
                 "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                 "non-singleton dimension 0",
                 (long long)most, (long long)size);
        TN_CHECK(size > 0 && (i == 0 || size <= r->batch_sizes[i - 1]) &&
                     tni_i64_add(total, size, &total),
                 TN_INVALID,
                 "batch_sizes must be positive and never grow, but batch_sizes[%lld] is %lld",
                 (long long)i, (long long)size);
    }
    TN_CHECK(total == data->sizes[0], TN_INVALID,
             "batch_sizes add up to %lld, but data has %lld rows", (long long)total,
             (long long)data->sizes[0]);
    return run(r, data, h, c, out, out_h, out_c);
}

/* What every form of a layer is told. */
#define LAYER(which)                                                                   \
    {                                                                                  \
        .kind = (which), .params = params, .params_n = params_n, .biases = has_biases, \
        .layers = num_layers, .directions = bidirectional ? 2 : 1, .dropout = dropout, \
        .train = train                                                                 \
    }

static tn_status two_states(tn_tensor *const *hx, int64_t hx_n)
{
    (void)hx;
    TN_CHECK(hx_n == 2, TN_INVALID, "lstm expects two hidden states");
    return TN_OK;
}

tn_status tni_composite_lstm_input(tn_tensor *input, tn_tensor *const *hx, int64_t hx_n,
                                   tn_tensor *const *params, int64_t params_n, bool has_biases,
                                   int64_t num_layers, double dropout, bool train,
                                   bool bidirectional, bool batch_first, tn_tensor **out0,
                                   tn_tensor **out1, tn_tensor **out2)
{
    rnn r = LAYER(TNI_RNN_LSTM);
    TN_TRY(two_states(hx, hx_n));
    return run_even(&r, input, hx[0], hx[1], batch_first, out0, out1, out2);
}

tn_status tni_composite_lstm_data(tn_tensor *data, tn_tensor *batch_sizes, tn_tensor *const *hx,
                                  int64_t hx_n, tn_tensor *const *params, int64_t params_n,
                                  bool has_biases, int64_t num_layers, double dropout, bool train,
                                  bool bidirectional, tn_tensor **out0, tn_tensor **out1,
                                  tn_tensor **out2)
{
    rnn r = LAYER(TNI_RNN_LSTM);
    TN_TRY(two_states(hx, hx_n));
    return run_packed(&r, data, batch_sizes, hx[0], hx[1], out0, out1, out2);
}

#define FORMS(name, which)                                                                   \
    tn_status tni_composite_##name##_input(                                                  \
        tn_tensor *input, tn_tensor *hx, tn_tensor *const *params, int64_t params_n,         \
        bool has_biases, int64_t num_layers, double dropout, bool train, bool bidirectional, \
        bool batch_first, tn_tensor **out0, tn_tensor **out1)                                \
    {                                                                                        \
        rnn r = LAYER(which);                                                                \
        return run_even(&r, input, hx, NULL, batch_first, out0, out1, NULL);                 \
    }                                                                                        \
    tn_status tni_composite_##name##_data(                                                   \
        tn_tensor *data, tn_tensor *batch_sizes, tn_tensor *hx, tn_tensor *const *params,    \
        int64_t params_n, bool has_biases, int64_t num_layers, double dropout, bool train,   \
        bool bidirectional, tn_tensor **out0, tn_tensor **out1)                              \
    {                                                                                        \
        rnn r = LAYER(which);                                                                \
        return run_packed(&r, data, batch_sizes, hx, NULL, out0, out1, NULL);                \
    }
FORMS(gru, TNI_RNN_GRU)
FORMS(rnn_tanh, TNI_RNN_TANH)
FORMS(rnn_relu, TNI_RNN_RELU)
