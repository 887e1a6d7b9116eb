/* SPDX-License-Identifier: MIT */
/* composite/rnn_cell.c: one step of a recurrent network, and the operators that take one step.
 *
 * All gates of a step are one addmm onto the input's part, which holds the biases already. The
 * pieces of its fresh result are made by unsafe_split, so that they may be written in place. */
#include "composite/rnn.h"
#include "gen/composites.h"
#include "tenon/ops.h"

static const int gates_of[] = {
    [TNI_RNN_TANH] = 1, [TNI_RNN_RELU] = 1, [TNI_RNN_GRU] = 3, [TNI_RNN_LSTM] = 4};

typedef struct pieces {
    tn_tensor **at;
    int64_t n;
} pieces;

static void pieces_free(pieces *p)
{
    if (p->at)
        tn_tensor_list_free(p->at, p->n);
}

#define PIECES __attribute__((cleanup(pieces_free))) pieces

/* ---- a step ---- */

tn_status tni_rnn_begin(tni_rnn_kind kind, const tni_rnn_weights *w, tn_tensor *input,
                        tni_rnn_cell *cell, tn_tensor **inputs)
{
    TN_AUTO(tn_tensor) bias = NULL;
    *cell = (tni_rnn_cell){.kind = kind};
    /* A GRU multiplies the state's part by a gate before it adds the input's. */
    if (kind != TNI_RNN_GRU && w->b_ih && w->b_hh)
        TN_TRY(tn_add(w->b_ih, w->b_hh, tn_int(1), &bias));
    else if (kind != TNI_RNN_GRU)
        bias = tn_tensor_ref(w->b_ih ? w->b_ih : w->b_hh);
    else
        bias = tn_tensor_ref(w->b_ih);
    tn_status status = tn_t(w->w_hh, &cell->w_hh);
    if (status == TN_OK && w->w_hr)
        status = tn_t(w->w_hr, &cell->w_hr);
    if (kind == TNI_RNN_GRU)
        cell->b_hh = tn_tensor_ref(w->b_hh);
    if (status == TN_OK)
        status = tn_linear(input, w->w_ih, bias, inputs);
    if (status != TN_OK)
        tni_rnn_end(cell);
    return status;
}

void tni_rnn_end(tni_rnn_cell *cell)
{
    tn_tensor_unref(cell->w_hh);
    tn_tensor_unref(cell->w_hr);
    tn_tensor_unref(cell->b_hh);
    *cell = (tni_rnn_cell){0};
}

void tni_rnn_state_clear(tni_rnn_state *s)
{
    tn_tensor_unref(s->h);
    tn_tensor_unref(s->c);
    *s = (tni_rnn_state){0};
}

/* @p t in @p dtype; a new reference. */
static tn_status in_dtype(tn_tensor *t, tn_dtype dtype, tn_tensor **out)
{
    if (t->dtype == dtype) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    return tn_to_dtype(t, dtype, false, false, TN_FORMAT_NONE, out);
}

tn_status tni_rnn_widen(tn_tensor *c, tn_tensor **out)
{
    bool half = c && (c->dtype == TN_DTYPE_F16 || c->dtype == TN_DTYPE_BF16);
    if (half)
        return in_dtype(c, TN_DTYPE_F32, out);
    *out = tn_tensor_ref(c);
    return TN_OK;
}

tn_status tni_rnn_narrow(const tn_tensor *given, tn_tensor **c)
{
    tn_tensor *narrow;
    if (!given)
        return TN_OK;
    TN_TRY(in_dtype(*c, (tn_dtype)given->dtype, &narrow));
    tn_tensor_unref(*c);
    *c = narrow;
    return TN_OK;
}

static tn_status plain_step(const tni_rnn_cell *cell, tn_tensor *gates, tn_tensor *h,
                            tn_tensor **out)
{
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_addmm(gates, h, cell->w_hh, tn_int(1), tn_int(1), &sum));
    return cell->kind == TNI_RNN_RELU ? tn_relu(sum, out) : tn_tanh(sum, out);
}

/* r, z = sigmoid(input + state); n = tanh(input + r * state); h' = n + z * (h - n) */
static tn_status gru_step(const tni_rnn_cell *cell, tn_tensor *gates, tn_tensor *h, tn_tensor **out)
{
    const int64_t width = h->sizes[1], parts[] = {2 * width, width}, halves[] = {width, width};
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) fresh = NULL;
    PIECES mine = {0}, theirs = {0}, rz = {0};
    if (cell->b_hh)
        TN_TRY(tn_addmm(cell->b_hh, h, cell->w_hh, tn_int(1), tn_int(1), &sum));
    else
        TN_TRY(tn_mm(h, cell->w_hh, &sum));
    TN_TRY(tn_unsafe_split_with_sizes(gates, parts, 2, 1, &theirs.at, &theirs.n));
    TN_TRY(tn_unsafe_split_with_sizes(sum, parts, 2, 1, &mine.at, &mine.n));
    TN_TRY(tn_add_(mine.at[0], theirs.at[0], tn_int(1)));
    TN_TRY(tn_sigmoid_(mine.at[0]));
    TN_TRY(tn_unsafe_split_with_sizes(mine.at[0], halves, 2, 1, &rz.at, &rz.n));
    TN_TRY(tn_addcmul(theirs.at[1], rz.at[0], mine.at[1], tn_int(1), &fresh));
    TN_TRY(tn_tanh_(fresh));
    if (fresh->dtype == h->dtype)
        return tn_lerp_tensor(fresh, h, rz.at[1], out);
    /* In a region of autocast the gates are narrower than the state, and lerp takes one dtype. */
    TN_AUTO(tn_tensor) next = NULL;
    TN_TRY(tn_sub(h, fresh, tn_int(1), &next));
    TN_TRY(tn_mul_(next, rz.at[1]));
    TN_TRY(tn_add_(next, fresh, tn_int(1)));
    *out = TN_MOVE(next);
    return TN_OK;
}

/* i, f, o = sigmoid, g = tanh; c' = f * c + i * g; h' = o * tanh(c'), projected if so wanted. In
 * the dtype of c from the sums on: six roundings to halves in each step, of which c keeps two for
 * the steps that follow, made the error of a bfloat16 sequence three times that of rounding it. */
static tn_status lstm_step(const tni_rnn_cell *cell, tn_tensor *gates, const tni_rnn_state *state,
                           tni_rnn_state *out)
{
    const int64_t width = state->c->sizes[1], parts[] = {2 * width, width, width};
    const int64_t halves[] = {width, width};
    TN_AUTO(tn_tensor) rounded = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) c = NULL;
    TN_AUTO(tn_tensor) squashed = NULL;
    TN_AUTO(tn_tensor) wide_h = NULL;
    TN_AUTO(tn_tensor) h = NULL;
    PIECES all = {0}, i_f = {0};
    TN_TRY(tn_addmm(gates, state->h, cell->w_hh, tn_int(1), tn_int(1), &rounded));
    TN_TRY(in_dtype(rounded, (tn_dtype)state->c->dtype, &sum));
    TN_TRY(tn_unsafe_split_with_sizes(sum, parts, 3, 1, &all.at, &all.n));
    TN_TRY(tn_sigmoid_(all.at[0]));
    TN_TRY(tn_tanh_(all.at[1]));
    TN_TRY(tn_sigmoid_(all.at[2]));
    TN_TRY(tn_unsafe_split_with_sizes(all.at[0], halves, 2, 1, &i_f.at, &i_f.n));
    TN_TRY(tn_mul(i_f.at[1], state->c, &c));
    TN_TRY(tn_addcmul_(c, i_f.at[0], all.at[1], tn_int(1)));
    TN_TRY(tn_tanh(c, &squashed));
    TN_TRY(tn_mul(all.at[2], squashed, &wide_h));
    TN_TRY(in_dtype(wide_h, (tn_dtype)state->h->dtype, &h));
    if (cell->w_hr) {
        TN_AUTO(tn_tensor) projected = NULL;
        TN_TRY(tn_mm(h, cell->w_hr, &projected));
        *out = (tni_rnn_state){TN_MOVE(projected), TN_MOVE(c)};
        return TN_OK;
    }
    *out = (tni_rnn_state){TN_MOVE(h), TN_MOVE(c)};
    return TN_OK;
}

static tn_status check_step(const tni_rnn_cell *cell, const tn_tensor *gates,
                            const tni_rnn_state *state)
{
    const tn_tensor *width_of = state->c ? state->c : state->h;
    TN_CHECK(gates->ndim == 2 && state->h->ndim == 2 && width_of->ndim == 2, TN_INVALID,
             "Expected the input and the hidden state of a step to have 2 dimensions, but they "
             "have %d and %d",
             gates->ndim, state->h->ndim);
    TN_CHECK(state->h->sizes[0] == gates->sizes[0] && width_of->sizes[0] == gates->sizes[0],
             TN_INVALID,
             "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton "
             "dimension 0",
             (long long)state->h->sizes[0], (long long)gates->sizes[0]);
    TN_CHECK(gates->sizes[1] == gates_of[cell->kind] * width_of->sizes[1], TN_INVALID,
             "weight_ih first dim must be %d * hidden_size = %lld, but got %lld",
             gates_of[cell->kind], (long long)(gates_of[cell->kind] * width_of->sizes[1]),
             (long long)gates->sizes[1]);
    return TN_OK;
}

tn_status tni_rnn_step(const tni_rnn_cell *cell, tn_tensor *gates, const tni_rnn_state *state,
                       tni_rnn_state *out)
{
    TN_TRY(check_step(cell, gates, state));
    if (cell->kind == TNI_RNN_LSTM)
        return lstm_step(cell, gates, state, out);
    tn_tensor *h = NULL;
    if (cell->kind == TNI_RNN_GRU)
        TN_TRY(gru_step(cell, gates, state->h, &h));
    else
        TN_TRY(plain_step(cell, gates, state->h, &h));
    *out = (tni_rnn_state){h, NULL};
    return TN_OK;
}

/* ---- operators ---- */

static tn_status check_cell(tni_rnn_kind kind, const tn_tensor *input, const tni_rnn_state *state,
                            const tni_rnn_weights *w)
{
    int d;
    const tn_tensor *both[] = {state->h, state->c}, *const matrices[] = {input, w->w_ih, w->w_hh};
    for (int i = 0; i < 3; i++)
        TN_TRY(tni_wrap_dim(1, matrices[i]->ndim, &d));
    TN_CHECK(input->sizes[1] == w->w_ih->sizes[1], TN_INVALID,
             "input has inconsistent input_size: got %lld expected %lld",
             (long long)input->sizes[1], (long long)w->w_ih->sizes[1]);
    int64_t width = w->w_hh->sizes[1];
    for (int i = 0; i < 2 && both[i]; i++) {
        TN_TRY(tni_wrap_dim(0, both[i]->ndim, &d));
        TN_CHECK(both[i]->ndim > 0 && input->sizes[0] == both[i]->sizes[0], TN_INVALID,
                 "Input batch size %lld doesn't match hidden%d batch size %lld",
                 (long long)input->sizes[0], i, (long long)(both[i]->ndim ? both[i]->sizes[0] : 1));
        TN_TRY(tni_wrap_dim(1, both[i]->ndim, &d));
        TN_CHECK(both[i]->sizes[1] == width, TN_INVALID,
                 "hidden%d has inconsistent hidden_size: got %lld, expected %lld", i,
                 (long long)both[i]->sizes[1], (long long)width);
    }
    int64_t wanted = gates_of[kind] * width;
    TN_CHECK(w->w_ih->sizes[0] == wanted, TN_INVALID,
             "weight_ih first dim must be %d * hidden_size = %lld, but got %lld", gates_of[kind],
             (long long)wanted, (long long)w->w_ih->sizes[0]);
    return TN_OK;
}

static tn_status one_step(tni_rnn_kind kind, tn_tensor *input, const tni_rnn_state *state,
                          const tni_rnn_weights *w, tni_rnn_state *out)
{
    tni_rnn_cell cell;
    tni_rnn_state next = {0};
    TN_AUTO(tn_tensor) gates = NULL;
    TN_AUTO(tn_tensor) c = NULL;
    TN_TRY(check_cell(kind, input, state, w));
    TN_TRY(tni_rnn_widen(state->c, &c));
    TN_TRY(tni_rnn_begin(kind, w, input, &cell, &gates));
    tn_status status = tni_rnn_step(&cell, gates, &(tni_rnn_state){state->h, c}, &next);
    tni_rnn_end(&cell);
    if (status == TN_OK)
        status = tni_rnn_narrow(state->c, &next.c);
    if (status != TN_OK) {
        tni_rnn_state_clear(&next);
        return status;
    }
    *out = next;
    return TN_OK;
}

tn_status tni_composite_lstm_cell(tn_tensor *input, tn_tensor *const *hx, int64_t hx_n,
                                  tn_tensor *w_ih, tn_tensor *w_hh, tn_tensor *b_ih,
                                  tn_tensor *b_hh, tn_tensor **out0, tn_tensor **out1)
{
    TN_CHECK(hx_n == 2, TN_INVALID, "lstm_cell expects two hidden states");
    const tni_rnn_state state = {hx[0], hx[1]};
    tni_rnn_state next;
    TN_TRY(one_step(TNI_RNN_LSTM, input, &state, &(tni_rnn_weights){w_ih, w_hh, b_ih, b_hh, NULL},
                    &next));
    *out0 = next.h;
    *out1 = next.c;
    return TN_OK;
}

#define CELL(name, kind)                                                                       \
    tn_status tni_composite_##name##_cell(tn_tensor *input, tn_tensor *hx, tn_tensor *w_ih,    \
                                          tn_tensor *w_hh, tn_tensor *b_ih, tn_tensor *b_hh,   \
                                          tn_tensor **out)                                     \
    {                                                                                          \
        const tni_rnn_state state = {hx, NULL};                                                \
        tni_rnn_state next;                                                                    \
        TN_TRY(one_step(kind, input, &state, &(tni_rnn_weights){w_ih, w_hh, b_ih, b_hh, NULL}, \
                        &next));                                                               \
        *out = next.h;                                                                         \
        return TN_OK;                                                                          \
    }
CELL(gru, TNI_RNN_GRU)
CELL(rnn_tanh, TNI_RNN_TANH)
CELL(rnn_relu, TNI_RNN_RELU)
