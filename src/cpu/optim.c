/* SPDX-License-Identifier: MIT */
/* cpu/optim.c: steps of optimisers over lists of tensors, shared out over threads as if all
 * elements of all tensors stood in one row. Tensors whose lists do not lie alike are computed on
 * copies.
 *
 * In that row the first parts of all large tensors come first, then their second parts, one part
 * for each thread: so a thread gets the part of a gradient that it computed, as in an operator on
 * one tensor. A step of SGD over 2.7 MB that two threads of Zen 5 had just computed takes 85 us;
 * with one tensor after the other in the row it took 125. */
#include "cpu/optim.h"
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "core/scalar.h"
#include "cpu/copy.h"
#include "cpu/move.h"
#include "gen/kernels.h"
#include "iter/iter.h"
#include "shape/optim.h"

#define GRAIN 32768
#define PIECE 512
/* Elements of a part of a tensor, at least; parts begin at multiples of LINE. */
#define FEWEST 4096
#define LINE   16

/* One parameter with its gradient and states. */
typedef struct entry {
    int64_t n;
    tn_dtype dtype;
    void *at[TNI_OPTIM_LISTS];
    tn_tensor *copies[TNI_OPTIM_LISTS]; /* owned, where the tensors do not lie alike; or NULL */
    tni_optim_step step;
} entry;

/* A part of one. */
typedef struct part {
    int64_t begin; /* its first element in the row of all */
    int64_t first, n;
    const entry *of;
} part;

typedef struct job {
    const tni_optim_lists *lists;
    bool adam;
    const tni_kernels *k;
    entry *entries;
    part *parts; /* n_parts, in the order of the row */
    int64_t n, n_parts, total;
} job;

/* ---- one run ---- */

static void run(const job *j, const entry *e, void *const *at, int64_t n)
{
    const tni_optim_table *table = e->dtype == TN_DTYPE_F64 ? &tni_optim_f64 : j->k->optim;
    (j->adam ? table->adam : table->sgd)(&e->step, at, n);
}

/* float16 and bfloat16, in pieces of float32. */
static void run_half(const job *j, const entry *e, int64_t first, int64_t n)
{
    float piece[TNI_OPTIM_LISTS][PIECE];
    void *at[TNI_OPTIM_LISTS];
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t some = n - i < PIECE ? n - i : PIECE;
        for (int k = 0; k < j->lists->n; k++) {
            at[k] = piece[k];
            tni_convert(j->k, TN_DTYPE_F32, piece[k], e->dtype,
                        (const char *)e->at[k] + (first + i) * 2, some);
        }
        run(j, e, at, some);
        for (int k = 0; k < j->lists->n; k++)
            if (k != 1 || e->step.scaled) /* gradients are only written when they were scaled */
                tni_convert(j->k, e->dtype, (char *)e->at[k] + (first + i) * 2, TN_DTYPE_F32,
                            piece[k], some);
    }
}

static void run_part(const job *j, const entry *e, int64_t first, int64_t n)
{
    int64_t size = (int64_t)tni_dtype_size(e->dtype);
    void *at[TNI_OPTIM_LISTS] = {NULL};
    if (size == 2) {
        run_half(j, e, first, n);
        return;
    }
    for (int k = 0; k < j->lists->n; k++)
        at[k] = (char *)e->at[k] + first * size;
    run(j, e, at, n);
}

/* Elements [begin, end) of the row of all. */
static tn_status some_elements(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t low = 0, high = j->n_parts - 1;
    while (low < high) { /* the last part that begins at or before */
        int64_t middle = (low + high + 1) / 2;
        if (j->parts[middle].begin <= begin)
            low = middle;
        else
            high = middle - 1;
    }
    for (const part *p = &j->parts[low]; begin < end; p++) {
        int64_t stop = p->begin + p->n < end ? p->begin + p->n : end;
        if (stop > begin)
            run_part(j, p->of, p->first + begin - p->begin, stop - begin);
        begin = stop > begin ? stop : begin;
    }
    return TN_OK;
}

/* ---- entries ---- */

/* All lists' tensors fill their memory in the same order. */
static bool lie_alike(const tni_optim_lists *l, int64_t i)
{
    const tn_tensor *p = l->at[0][i];
    if (!(p->flags & TNI_DENSE))
        return false;
    for (int k = 1; k < l->n; k++) {
        const tn_tensor *t = l->at[k][i];
        if ((p->flags & t->flags & TNI_CONTIGUOUS))
            continue;
        for (int d = 0; d < p->ndim; d++) {
            if (t->strides[d] != p->strides[d])
                return false;
        }
    }
    return true;
}

static double number(const tn_tensor *t)
{
    return tn_scalar_to_double(tni_scalar_load((tn_dtype)t->dtype, t->data));
}

static tn_status fill_entry(job *j, int64_t i, const tni_optim_step *step)
{
    const tni_optim_lists *l = j->lists;
    entry *e = &j->entries[i];
    const tn_tensor *p = l->at[0][i];
    *e = (entry){.n = p->numel, .dtype = (tn_dtype)p->dtype, .step = *step};
    j->n = i + 1; /* from here on it is cleared */
    j->total += e->n;
    if (j->adam) {
        double t = number(l->steps[i]);
        e->step.step_size = step->rate / (1 - pow(step->beta1, t));
        e->step.root_correction = sqrt(1 - pow(step->beta2, t));
    }
    bool alike = lie_alike(l, i);
    for (int k = 0; k < l->n; k++) {
        tn_tensor *t = l->at[k][i];
        e->at[k] = t->data;
        if (alike || e->n == 0)
            continue;
        TN_TRY(tni_tensor_new(p->ndim, p->sizes, NULL, e->dtype, TN_CPU, &e->copies[k]));
        TN_TRY(tni_copy_cpu(e->copies[k], t));
        e->at[k] = e->copies[k]->data;
    }
    return TN_OK;
}

static tn_status write_back(const job *j)
{
    for (int64_t i = 0; i < j->n; i++) {
        const entry *e = &j->entries[i];
        for (int k = 0; k < j->lists->n; k++)
            if (e->copies[k] && (k != 1 || e->step.scaled))
                TN_TRY(tni_copy_cpu(j->lists->at[k][i], e->copies[k]));
    }
    return TN_OK;
}

/* Where part @p i of @p parts of an entry begins. A small one is in one part, all of them in turn.
 */
static int64_t part_begin(const entry *e, int64_t number, int64_t i, int64_t parts)
{
    if (e->n < parts * FEWEST)
        return i <= number % parts ? 0 : e->n;
    return i == parts ? e->n : e->n / parts * i / LINE * LINE;
}

static tn_status make_parts(job *j)
{
    const int64_t parts = tn_num_threads();
    size_t nbytes;
    bool fits = tni_size_mul((size_t)j->n * (size_t)parts, sizeof *j->parts, &nbytes);
    j->parts = fits ? tni_alloc(nbytes) : NULL;
    TN_CHECK(j->parts, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)j->n);
    int64_t at = 0;
    for (int64_t i = 0; i < parts; i++) {
        for (int64_t k = 0; k < j->n; k++) {
            const entry *e = &j->entries[k];
            int64_t first = part_begin(e, k, i, parts), n = part_begin(e, k, i + 1, parts) - first;
            if (n == 0)
                continue;
            j->parts[j->n_parts++] = (part){.begin = at, .first = first, .n = n, .of = e};
            at += n;
        }
    }
    return TN_OK;
}

/* Nothing is written before everything that can fail has been done. */
static tn_status take_step(const tni_optim_lists *l, bool adam, tni_optim_step *step)
{
    TN_TRY(tni_optim_check(l));
    if (l->count[0] == 0 || (l->found_inf && number(l->found_inf) == 1))
        return TN_OK;
    if (l->rate)
        step->rate = number(l->rate);
    step->scaled = l->grad_scale != NULL;
    step->grad_scale = l->grad_scale ? number(l->grad_scale) : 1;
    job j = {.lists = l, .adam = adam, .k = tni_cpu_kernels()};
    size_t nbytes;
    bool fits = tni_size_mul((size_t)l->count[0], sizeof *j.entries, &nbytes);
    j.entries = fits ? tni_alloc(nbytes) : NULL;
    TN_CHECK(j.entries, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)l->count[0]);
    tn_status status = TN_OK;
    for (int64_t i = 0; i < l->count[0] && status == TN_OK; i++)
        status = fill_entry(&j, i, step);
    if (status == TN_OK && j.total > 0)
        status = make_parts(&j);
    if (status == TN_OK && j.total > 0)
        status = tni_pool_for(j.total, GRAIN, some_elements, &j);
    if (status == TN_OK)
        status = write_back(&j);
    for (int64_t i = 0; i < j.n; i++) {
        for (int k = 0; k < l->n; k++)
            tn_tensor_unref(j.entries[i].copies[k]);
    }
    tni_free(j.parts);
    tni_free(j.entries);
    return status;
}

/* ---- operators ---- */

#define SGD(name, RATE, rate_value, rate_tensor)                                                 \
    tn_status tni_kernel_##name(                                                                 \
        tn_call *call, tn_tensor *const *self, int64_t self_n, tn_tensor *const *grads,          \
        int64_t grads_n, tn_tensor *const *momentum_buffer_list, int64_t momentum_buffer_list_n, \
        double weight_decay, double momentum, RATE lr, double dampening, bool nesterov,          \
        bool maximize, bool is_first_step, tn_tensor *grad_scale, tn_tensor *found_inf)          \
    {                                                                                            \
        (void)call;                                                                              \
        tni_optim_lists l =                                                                      \
            tni_sgd_lists(self, self_n, grads, grads_n, momentum_buffer_list,                    \
                          momentum_buffer_list_n, momentum, rate_tensor, grad_scale, found_inf); \
        tni_optim_step s = {.weight_decay = weight_decay,                                        \
                            .maximize = maximize,                                                \
                            .has_momentum = momentum != 0,                                       \
                            .first = is_first_step,                                              \
                            .nesterov = nesterov,                                                \
                            .rate = rate_value,                                                  \
                            .momentum = momentum,                                                \
                            .dampening = dampening};                                             \
        return take_step(&l, false, &s);                                                         \
    }
SGD(fused_sgd, double, lr, NULL)
SGD(fused_sgd_tensor, tn_tensor *, 0, lr)

#define ADAM(name, label, RATE, rate_value, rate_tensor, apart)                                   \
    tn_status tni_kernel_##name(                                                                  \
        tn_call *call, tn_tensor *const *self, int64_t self_n, tn_tensor *const *grads,           \
        int64_t grads_n, tn_tensor *const *exp_avgs, int64_t exp_avgs_n,                          \
        tn_tensor *const *exp_avg_sqs, int64_t exp_avg_sqs_n, tn_tensor *const *max_exp_avg_sqs,  \
        int64_t max_exp_avg_sqs_n, tn_tensor *const *state_steps, int64_t state_steps_n, RATE lr, \
        double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, \
        tn_tensor *grad_scale, tn_tensor *found_inf)                                              \
    {                                                                                             \
        (void)call;                                                                               \
        tn_tensor *const *const lists[] = {self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs};  \
        const int64_t counts[] = {self_n, grads_n, exp_avgs_n, exp_avg_sqs_n, max_exp_avg_sqs_n}; \
        tni_optim_lists l = tni_adam_lists(label, lists, counts, amsgrad, state_steps,            \
                                           state_steps_n, rate_tensor, grad_scale, found_inf);    \
        tni_optim_step s = {.weight_decay = weight_decay,                                         \
                            .maximize = maximize,                                                 \
                            .rate = rate_value,                                                   \
                            .decoupled = apart,                                                   \
                            .amsgrad = amsgrad,                                                   \
                            .beta1 = beta1,                                                       \
                            .beta2 = beta2,                                                       \
                            .eps = eps};                                                          \
        return take_step(&l, true, &s);                                                           \
    }
ADAM(fused_adam, "adam", double, lr, NULL, false)
ADAM(fused_adam_tensor, "adam", tn_tensor *, 0, lr, false)
ADAM(fused_adamw, "adamw", double, lr, NULL, true)
ADAM(fused_adamw_tensor, "adamw", tn_tensor *, 0, lr, true)
