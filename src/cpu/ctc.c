/* SPDX-License-Identifier: MIT */
/* cpu/ctc.c: the loss of connectionist temporal classification and its gradient, by the forward
 * and backward variables of Graves et al. (2006), as logarithms in float64.
 *
 * The states of a sequence are its labels with a blank before, between and after them. A state is
 * reached from itself, from the one before, and from the one before that when this skips a blank
 * between two labels that differ. */
#include <math.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/ready.h"
#include "gen/cpu.h"

typedef struct job {
    const double *log_probs, *grad, *nll, *given; /* given: the forward variables */
    double *loss, *alpha, *out;
    const int64_t *targets, *inputs, *lengths;
    int64_t step; /* between rows of targets; 0: one after the other */
    int64_t time, batch, classes, states, blank;
} job;

static double log_add(double a, double b)
{
    double top = a > b ? a : b, low = a > b ? b : a;
    return top == -(double)INFINITY ? top : top + log1p(exp(low - top));
}

/* The labels of sequence @p b. */
static const int64_t *labels_of(const job *j, int64_t b)
{
    int64_t at = b * j->step;
    for (int64_t i = 0; j->step == 0 && i < b; i++)
        at += j->lengths[i];
    return j->targets + at;
}

static int64_t label(const job *j, const int64_t *labels, int64_t state)
{
    return state % 2 ? labels[state / 2] : j->blank;
}

static const double *probs_at(const job *j, int64_t t, int64_t b)
{
    return j->log_probs + (t * j->batch + b) * j->classes;
}

/* A label may follow the label before it unless they are equal. */
static bool may_skip(const int64_t *labels, int64_t state)
{
    return state >= 3 && state % 2 && labels[state / 2] != labels[state / 2 - 1];
}

static tn_status forward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t b = begin; b < end; b++) {
        const int64_t *labels = labels_of(j, b);
        int64_t states = 2 * j->lengths[b] + 1, time = j->inputs[b];
        double *alpha = j->alpha + b * j->time * j->states;
        for (int64_t i = 0; i < j->time * j->states; i++)
            alpha[i] = -(double)INFINITY;
        if (time == 0) {
            j->loss[b] = states > 1 ? (double)INFINITY : 0;
            continue;
        }
        for (int64_t s = 0; s < states && s < 2; s++)
            alpha[s] = probs_at(j, 0, b)[label(j, labels, s)];
        for (int64_t t = 1; t < time; t++) {
            const double *was = alpha + (t - 1) * j->states, *p = probs_at(j, t, b);
            double *now = alpha + t * j->states;
            for (int64_t s = 0; s < states; s++) {
                double sum = s ? log_add(was[s], was[s - 1]) : was[s];
                if (may_skip(labels, s))
                    sum = log_add(sum, was[s - 2]);
                now[s] = sum + p[label(j, labels, s)];
            }
        }
        const double *last = alpha + (time - 1) * j->states;
        j->loss[b] = -(states > 1 ? log_add(last[states - 1], last[states - 2]) : last[0]);
    }
    return TN_OK;
}

/* The gradient of one sequence; @p beta has room for its states, @p joint for the classes. */
static void backward_one(const job *j, int64_t b, double *beta, double *joint)
{
    const int64_t *labels = labels_of(j, b);
    int64_t states = 2 * j->lengths[b] + 1, time = j->inputs[b];
    const double *alpha = j->given + b * j->time * j->states;
    double nll = j->nll[b], none = -(double)INFINITY;
    bool lost = isinf(nll) && nll > 0;
    for (int64_t t = j->time - 1; t >= 0; t--) {
        const double *p = probs_at(j, t, b);
        double *out = j->out + (t * j->batch + b) * j->classes;
        if (t >= time || lost) { /* nothing leads to what cannot be */
            for (int64_t c = 0; c < j->classes; c++)
                out[c] = 0;
            continue;
        }
        for (int64_t c = 0; c < j->classes; c++)
            joint[c] = none;
        for (int64_t s = 0; s < states; s++) {
            if (t == time - 1)
                beta[s] = s >= states - 2 ? 0 : none;
            else { /* beta[s + 1] and beta[s + 2] are still those of the step after */
                if (s + 1 < states)
                    beta[s] = log_add(beta[s], beta[s + 1]);
                if (s + 2 < states && may_skip(labels, s + 2))
                    beta[s] = log_add(beta[s], beta[s + 2]);
            }
        }
        for (int64_t s = 0; s < states; s++) {
            int64_t c = label(j, labels, s);
            beta[s] += p[c];
            joint[c] = log_add(joint[c], alpha[t * j->states + s] + beta[s]);
        }
        for (int64_t c = 0; c < j->classes; c++) {
            double share = joint[c] == none ? 0 : exp(joint[c] + nll - p[c]);
            out[c] = (exp(p[c]) - share) * j->grad[b];
        }
    }
}

static tn_status backward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    double *room = tni_alloc((size_t)(j->states + j->classes) * sizeof *room);
    TN_CHECK(room, TN_NOMEM, "cannot allocate memory for the states of a sequence");
    for (int64_t b = begin; b < end; b++)
        backward_one(j, b, room, room + j->states);
    tni_free(room);
    return TN_OK;
}

/* The arguments, and that each label that counts is a class. */
static tn_status describe(const tn_tensor *log_probs, const tn_tensor *targets,
                          const int64_t *inputs, const int64_t *lengths, int64_t blank, job *j)
{
    *j = (job){.log_probs = log_probs->data,
               .targets = targets->data,
               .inputs = inputs,
               .lengths = lengths,
               .step = targets->ndim == 2 ? targets->sizes[1] : 0,
               .time = log_probs->sizes[0],
               .batch = log_probs->sizes[1],
               .classes = log_probs->sizes[2],
               .blank = blank};
    for (int64_t b = 0; b < j->batch; b++) {
        const int64_t *labels = labels_of(j, b);
        for (int64_t i = 0; i < lengths[b]; i++)
            TN_CHECK(labels[i] >= 0 && labels[i] < j->classes, TN_INVALID,
                     "ctc_loss: target %lld is out of bounds for %lld classes",
                     (long long)labels[i], (long long)j->classes);
    }
    return TN_OK;
}

tn_status tni_cpu_ctc_loss(tn_tensor *log_probs, tn_tensor *targets, const int64_t *input_lengths,
                           int64_t input_lengths_n, const int64_t *target_lengths,
                           int64_t target_lengths_n, int64_t blank, bool zero_infinity,
                           tn_tensor *out0, tn_tensor *out1)
{
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) labels = NULL;
    TN_AUTO(tn_tensor) loss = NULL;
    TN_AUTO(tn_tensor) alpha = NULL;
    job j;
    (void)input_lengths_n;
    (void)target_lengths_n;
    (void)zero_infinity;
    TN_TRY(tni_ready(log_probs, TN_DTYPE_F64, &p));
    TN_TRY(tni_ready(targets, TN_DTYPE_I64, &labels));
    TN_TRY(describe(p, labels, input_lengths, target_lengths, blank, &j));
    TN_TRY(tni_tensor_new(1, out0->sizes, NULL, TN_DTYPE_F64, TN_CPU, &loss));
    TN_TRY(tni_tensor_new(3, out1->sizes, NULL, TN_DTYPE_F64, TN_CPU, &alpha));
    j.states = out1->sizes[2];
    j.loss = loss->data;
    j.alpha = alpha->data;
    TN_TRY(tni_pool_for(j.batch, 1, forward, &j));
    TN_TRY(tni_copy_cpu(out0, loss));
    return tni_copy_cpu(out1, alpha);
}

tn_status tni_cpu_ctc_loss_backward(tn_tensor *grad, tn_tensor *log_probs, tn_tensor *targets,
                                    const int64_t *input_lengths, int64_t input_lengths_n,
                                    const int64_t *target_lengths, int64_t target_lengths_n,
                                    tn_tensor *neg_log_likelihood, tn_tensor *log_alpha,
                                    int64_t blank, bool zero_infinity, tn_tensor *out)
{
    TN_AUTO(tn_tensor) p = NULL;
    TN_AUTO(tn_tensor) labels = NULL;
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) nll = NULL;
    TN_AUTO(tn_tensor) alpha = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    job j;
    (void)input_lengths_n;
    (void)target_lengths_n;
    (void)zero_infinity;
    TN_TRY(tni_ready(log_probs, TN_DTYPE_F64, &p));
    TN_TRY(tni_ready(targets, TN_DTYPE_I64, &labels));
    TN_TRY(tni_ready(grad, TN_DTYPE_F64, &g));
    TN_TRY(tni_ready(neg_log_likelihood, TN_DTYPE_F64, &nll));
    TN_TRY(tni_ready(log_alpha, TN_DTYPE_F64, &alpha));
    TN_TRY(describe(p, labels, input_lengths, target_lengths, blank, &j));
    TN_TRY(tni_tensor_new(3, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &made));
    j.states = log_alpha->sizes[2];
    j.grad = g->data;
    j.nll = nll->data;
    j.given = alpha->data;
    j.out = made->data;
    TN_TRY(tni_pool_for(j.batch, 1, backward, &j));
    return tni_copy_cpu(out, made);
}
