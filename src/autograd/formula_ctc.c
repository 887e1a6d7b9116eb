/* SPDX-License-Identifier: MIT */
/* autograd/formula_ctc.c: the gradient of the gradient of the loss of sequences without an
 * alignment, written by hand. See formula.c.
 *
 * The states of a sequence are its labels with blanks around them, as in cpu/ctc.c. The backward
 * operator gives g (exp(p) - m), where m is what the alignments, weighed by their probability,
 * spend at each time in each class. For the gradient v of that, the gradient of p is
 *   g (v exp(p) - dm),
 * where dm is how m moves when p moves along v: m's derivative is symmetric, as a second
 * derivative is. With the logarithms of the forward and backward variables, alpha and beta, and
 * how these move, a and b, the share of a state is softmax(alpha + beta), which moves along a + b;
 * and what sums exponentials moves as the mean, by the summands' shares, of how these move.
 *
 * All of this is made of operators, in float64, so that it differentiates again. What cannot be is
 * a number so small that its exponential is 0, and not -inf, of which no derivative is a number. */
#include "gen/gradients.h"

#include <math.h>
#include "base/alloc.h"
#include "base/status.h"
#include "core/scope.h"
#include "tenon/ops.h"

#define NEVER (-1e30)
enum { WAYS = 3 }; /* into a state: from itself, the one before, the one before that */

typedef struct sequences {
    tn_device device;
    int64_t time, batch, states;
    tn_tensor *in, *count;     /* lengths of sequences and of their targets: [batch, 1] */
    tn_tensor *labels;         /* of states: [batch, states] */
    tn_tensor *index;          /* labels at all times: [time, batch, states] */
    tn_tensor *before, *after; /* which ways there are: [WAYS, batch, states] */
    tn_tensor *last;           /* beta at the end */
    tn_tensor *p, *v;          /* of states: [time, batch, states] */
} sequences;

static tn_tensor *range(const sequences *s, int64_t n)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, s->device);
    return tnx_arange(tn_int(n), &opts);
}

/* @p t moved by @p by states, 0 where there was none. */
static tn_tensor *moved(tn_tensor *t, int64_t by)
{
    const int64_t pad[] = {by, -by};
    return tnx_constant_pad_nd(t, pad, 2, tn_int(0));
}

/* ---- targets ---- */

/* [batch, longest]; what is beyond a target's length is blank. */
static tn_tensor *target_rows(const sequences *s, tn_tensor *targets, int64_t longest,
                              int64_t blank)
{
    const int64_t sizes[] = {s->batch, longest}, all = s->batch * longest, first = 0;
    tn_tensor *at = range(s, longest);
    if (targets->ndim == 1) { /* one after the other */
        tn_tensor *start = tnx_sub(tnx_cumsum(s->count, first, TN_DTYPE_NONE), s->count, tn_int(1));
        tn_tensor *where = tnx_clamp_max(tnx_add(start, at, tn_int(1)), tn_int(targets->numel - 1));
        targets = tnx_index_select(targets, 0, tnx_reshape(where, &all, 1));
        targets = tnx_reshape(targets, sizes, 2);
    } else {
        targets = tnx_narrow(targets, 1, 0, longest);
    }
    targets = tnx_to_dtype(targets, TN_DTYPE_I64, false, false, TN_FORMAT_NONE);
    return tnx_where_scalarother(tnx_lt(at, s->count), targets, tn_int(blank));
}

static void lay_out(sequences *s, tn_tensor *targets, int64_t states, int64_t blank)
{
    const int64_t longest = states / 2, one[] = {s->batch, 1};
    /* Two labels that are blanks where there is none: states after the last change nothing. */
    s->states = longest > 0 ? 2 * longest + 1 : 3;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, s->device);
    tn_tensor *space = tnx_full(one, 2, tn_int(blank), &opts);
    tn_tensor *rows = longest > 0 ? target_rows(s, targets, longest, blank) : space;
    tn_tensor *pairs[] = {rows, tnx_full_like(rows, tn_int(blank), NULL, TN_FORMAT_NONE)};
    if (tni_scope_failed())
        return;
    const int64_t flat[] = {s->batch, s->states - 1};
    tn_tensor *parts[] = {space, tnx_reshape(tnx_stack_tensors(pairs, 2, 2), flat, 2)};
    if (tni_scope_failed())
        return;
    s->labels = tnx_cat(parts, 2, 1);
    const int64_t sizes[] = {s->time, s->batch, s->states};
    s->index = tnx_expand(tnx_unsqueeze(s->labels, 0), sizes, 3, false);
    /* A label may follow the label before it unless they are equal. */
    tn_tensor *state = tnx_expand_as(range(s, s->states), s->labels);
    tn_tensor *skip =
        tnx_logical_and(tnx_ne(s->labels, moved(s->labels, 2)), tnx_ge_scalar(state, tn_int(2)));
    tn_tensor *always = tnx_ge_scalar(state, tn_int(0));
    tn_tensor *before[] = {always, tnx_ge_scalar(state, tn_int(1)), skip};
    tn_tensor *after[] = {always, tnx_lt_scalar(state, tn_int(s->states - 1)), moved(skip, -2)};
    if (tni_scope_failed())
        return;
    s->before = tnx_stack_tensors(before, WAYS, 0);
    s->after = tnx_stack_tensors(after, WAYS, 0);
    tn_tensor *end = tnx_mul_scalar(s->count, tn_int(2));
    tn_tensor *ends = tnx_logical_and(tnx_ge(state, tnx_sub_scalar(end, tn_int(1), tn_int(1))),
                                      tnx_le(state, end));
    s->last = tnx_where_scalar(ends, tn_float(0), tn_float(NEVER));
    s->last = tnx_to_dtype(s->last, TN_DTYPE_F64, false, false, TN_FORMAT_NONE);
}

/* ---- variables ---- */

typedef struct variable {
    tn_tensor *value, *slope; /* a logarithm, and how it moves */
} variable;

/* The three that lead to each state: those @p step states before, and twice that. */
static tn_tensor *ways(tn_tensor *t, int64_t step)
{
    tn_tensor *each[] = {t, moved(t, step), moved(t, 2 * step)};
    return tni_scope_failed() ? NULL : tnx_stack_tensors(each, WAYS, 0);
}

static variable summed(variable from, int64_t step, tn_tensor *open)
{
    const int64_t dim = 0;
    tn_tensor *each = tnx_where_scalarother(open, ways(from.value, step), tn_float(NEVER));
    tn_tensor *total = tnx_logsumexp(each, &dim, 1, false);
    tn_tensor *shares = tnx_exp(tnx_sub(each, total, tn_int(1)));
    tn_tensor *mean =
        tnx_sum_dim(tnx_mul(shares, ways(from.slope, step)), &dim, 1, false, TN_DTYPE_NONE);
    return (variable){total, mean};
}

static variable at_time(const sequences *s, int64_t t)
{
    return (variable){tnx_select(s->p, 0, t), tnx_select(s->v, 0, t)};
}

static variable sum_of(variable a, variable b)
{
    return (variable){tnx_add(a.value, b.value, tn_int(1)), tnx_add(a.slope, b.slope, tn_int(1))};
}

/* What the first @p t + 1 times give each state. */
static variable forward(const sequences *s, int64_t t, variable was)
{
    variable now = at_time(s, t);
    if (t > 0)
        return sum_of(now, summed(was, 1, s->before));
    tn_tensor *start = tnx_lt_scalar(range(s, s->states), tn_int(2));
    now.value = tnx_where_scalarother(start, now.value, tn_float(NEVER));
    return now;
}

/* What the times after @p t give each state; @p later: the same for the time after it. */
static variable backward(const sequences *s, int64_t t, variable later)
{
    tn_tensor *ends = tnx_eq_scalar(s->in, tn_int(t + 1)),
              *zeros = tnx_zeros_like(s->last, NULL, TN_FORMAT_NONE);
    if (t + 1 == s->time)
        return (variable){tnx_where_scalarother(ends, s->last, tn_float(NEVER)), zeros};
    variable now = summed(sum_of(at_time(s, t + 1), later), -1, s->after);
    return (variable){tnx_where(ends, s->last, now.value), tnx_where(ends, zeros, now.slope)};
}

/* How the share of each state at a time moves. */
static tn_tensor *turned(variable alpha, variable beta)
{
    const int64_t dim = 1;
    variable both = sum_of(alpha, beta);
    tn_tensor *shares = tnx_softmax(both.value, dim, TN_DTYPE_NONE);
    tn_tensor *mean = tnx_sum_dim(tnx_mul(shares, both.slope), &dim, 1, true, TN_DTYPE_NONE);
    return tnx_mul(shares, tnx_sub(both.slope, mean, tn_int(1)));
}

/* The same at all times: [time, batch, states]. alpha and each: room for as many. */
static tn_tensor *turned_at_all_times(const sequences *s, variable *alpha, tn_tensor **each)
{
    for (int64_t t = 0; t < s->time; t++)
        alpha[t] = forward(s, t, t > 0 ? alpha[t - 1] : (variable){NULL, NULL});
    variable beta = {NULL, NULL};
    for (int64_t t = s->time - 1; t >= 0; t--) {
        beta = backward(s, t, beta);
        each[t] = turned(alpha[t], beta);
    }
    return tni_scope_failed() ? NULL : tnx_stack_tensors(each, s->time, 0);
}

/* ---- the gradient ---- */

static tn_tensor *wide(tn_tensor *t)
{
    return tnx_to_dtype(t, TN_DTYPE_F64, false, false, TN_FORMAT_NONE);
}

static tn_tensor *column(tn_tensor *t, int64_t n)
{
    const int64_t sizes[] = {n, 1};
    return tnx_reshape(tnx_to_dtype(t, TN_DTYPE_I64, false, false, TN_FORMAT_NONE), sizes, 2);
}

/* Where there is something to differentiate: [time, batch, 1]. */
static tn_tensor *counts(const sequences *s, tn_tensor *nll)
{
    const int64_t times[] = {s->time, 1, 1}, each[] = {1, s->batch, 1};
    tn_tensor *in = tnx_lt(tnx_reshape(range(s, s->time), times, 3), tnx_reshape(s->in, each, 3));
    tn_tensor *possible = tnx_lt_scalar(tnx_detach(nll), tn_float((double)INFINITY));
    return tnx_logical_and(in, tnx_reshape(possible, each, 3));
}

tn_tensor *tni_grad_ctc_second(tn_tensor *v, tn_tensor *grad, tn_tensor *log_probs,
                               tn_tensor *targets, tn_tensor *input_lengths,
                               tn_tensor *target_lengths, tn_tensor *nll,
                               const int64_t *alpha_sizes, int64_t alpha_ndim, int64_t blank)
{
    if (tni_scope_failed() || !v)
        return NULL;
    sequences s = {
        .device = log_probs->device, .time = log_probs->sizes[0], .batch = log_probs->sizes[1]};
    if (log_probs->numel == 0)
        return tnx_zeros_like(log_probs, NULL, TN_FORMAT_NONE);
    s.in = column(input_lengths, s.batch);
    s.count = column(target_lengths, s.batch);
    lay_out(&s, targets, alpha_sizes[alpha_ndim - 1], blank);
    tn_tensor *p = tnx_clamp_min(wide(log_probs), tn_float(NEVER));
    v = wide(v);
    s.p = tnx_gather(p, 2, s.index, false);
    s.v = tnx_gather(v, 2, s.index, false);
    size_t time = (size_t)s.time;
    variable *alpha = tni_alloc(time * (sizeof(variable) + sizeof(tn_tensor *)));
    if (!alpha)
        return tni_scope_result(
            tni_fail(TN_NOMEM, TNI_WHERE, "cannot allocate memory for the times of sequences"),
            NULL);
    tn_tensor *moves = turned_at_all_times(&s, alpha, (tn_tensor **)(alpha + time));
    tni_free(alpha);
    moves = tnx_scatter_add(tnx_zeros_like(v, NULL, TN_FORMAT_NONE), 2, s.index, moves);
    moves = tnx_sub(tnx_mul(v, tnx_exp(p)), moves, tn_int(1));
    const int64_t each[] = {1, s.batch, 1};
    tn_tensor *result = tnx_mul(moves, tnx_reshape(wide(grad), each, 3));
    result = tnx_where_scalarother(counts(&s, nll), result, tn_int(0));
    return tnx_to_dtype(result, (tn_dtype)log_probs->dtype, false, false, TN_FORMAT_NONE);
}

tn_tensor *tni_grad_ctc_second_of_ints(tn_tensor *v, tn_tensor *grad, tn_tensor *log_probs,
                                       tn_tensor *targets, const int64_t *input_lengths,
                                       int64_t input_lengths_n, const int64_t *target_lengths,
                                       int64_t target_lengths_n, tn_tensor *nll,
                                       const int64_t *alpha_sizes, int64_t alpha_ndim,
                                       int64_t blank)
{
    if (tni_scope_failed() || !v)
        return NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_NO_DEVICE);
    tn_tensor *in = tnx_new_empty(log_probs, &input_lengths_n, 1, &opts);
    tn_tensor *count = tnx_new_empty(log_probs, &target_lengths_n, 1, &opts);
    for (int64_t b = 0; b < input_lengths_n; b++) {
        tnx_fill_(tnx_select(in, 0, b), tn_int(input_lengths[b]));
        tnx_fill_(tnx_select(count, 0, b), tn_int(target_lengths[b]));
    }
    return tni_grad_ctc_second(v, grad, log_probs, targets, in, count, nll, alpha_sizes, alpha_ndim,
                               blank);
}
