/* SPDX-License-Identifier: MIT */
/* cpu/margin.c: losses of scores with a margin between classes, and their gradients. A row is at
 * most some thousand scores: everything is computed in float64. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "shape/loss.h"

#define GRAIN 64 /* rows */

typedef struct job {
    const double *x, *weight;
    const tn_tensor *grad; /* one for each row, or one for all */
    const int64_t *target;
    const double *flags; /* which classes are targets: given to the gradient */
    double *out, *marks; /* marks: where to say which classes are targets */
    int64_t rows, classes, reduction;
    double margin;
    bool square;
} job;

static job job_of(const tn_tensor *x, const tn_tensor *target, int64_t reduction)
{
    int64_t classes = x->ndim ? x->sizes[x->ndim - 1] : 1;
    return (job){.x = x->data,
                 .target = target->data,
                 .classes = classes,
                 .rows = x->numel / classes,
                 .reduction = reduction};
}

/* The losses of the rows as the result wants them. */
static tn_status reduce(const double *losses, const job *j, tn_tensor *out)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &made));
    double *to = made->data, sum = 0;
    bool each = out->ndim == 1 && j->reduction == TNI_LOSS_EACH;
    for (int64_t r = 0; r < j->rows; r++) {
        if (each)
            to[r] = losses[r];
        sum += losses[r];
    }
    if (!each)
        to[0] = j->reduction == TNI_LOSS_MEAN ? sum / (double)j->rows : sum;
    return out->numel ? tni_copy_cpu(out, made) : TN_OK;
}

/* What a row's loss is multiplied by on the way back. */
static double incoming(const job *j, int64_t row)
{
    const double *g = j->grad->data;
    double one = g[j->grad->numel > 1 ? row : 0];
    return (j->reduction == TNI_LOSS_MEAN ? one / (double)j->rows : one) / (double)j->classes;
}

/* ---- one target a row ---- */

static tn_status check_targets(const job *j)
{
    for (int64_t r = 0; r < j->rows; r++)
        TN_CHECK(j->target[r] >= 0 && j->target[r] < j->classes, TN_INVALID, "target out of range");
    return TN_OK;
}

static tn_status multi_rows(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        const double *x = j->x + r * j->classes;
        int64_t t = j->target[r];
        double sum = 0;
        for (int64_t c = 0; c < j->classes; c++) {
            double z = j->margin - x[t] + x[c];
            if (c != t && z > 0)
                sum += j->square ? z * z : z;
        }
        j->out[r] = sum * (j->weight ? j->weight[t] : 1) / (double)j->classes;
    }
    return TN_OK;
}

static tn_status multi_back(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        const double *x = j->x + r * j->classes;
        double *to = j->out + r * j->classes, down = 0;
        int64_t t = j->target[r];
        double g = incoming(j, r) * (j->weight ? j->weight[t] : 1);
        for (int64_t c = 0; c < j->classes; c++) {
            double z = j->margin - x[t] + x[c];
            to[c] = c != t && z > 0 ? (j->square ? 2 * z * g : g) : 0;
            down += to[c];
        }
        to[t] = -down;
    }
    return TN_OK;
}

tn_status tni_cpu_multi_margin_loss(tn_tensor *self, tn_tensor *target, tn_scalar p,
                                    tn_scalar margin, tn_tensor *weight, int64_t reduction,
                                    tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) losses = NULL;
    TN_TRY(tni_ready(self, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(target, TN_DTYPE_I64, &t));
    TN_TRY(tni_ready(weight, TN_DTYPE_F64, &w));
    job j = job_of(x, t, reduction);
    TN_TRY(tni_tensor_new(1, &j.rows, NULL, TN_DTYPE_F64, TN_CPU, &losses));
    j.weight = w ? w->data : NULL;
    j.margin = tn_scalar_to_double(margin);
    j.square = tn_scalar_to_double(p) == 2;
    j.out = losses->data;
    TN_TRY(check_targets(&j));
    TN_TRY(tni_pool_for(j.rows, GRAIN, multi_rows, &j));
    return reduce(losses->data, &j, out);
}

tn_status tni_cpu_multi_margin_loss_backward(tn_tensor *grad_output, tn_tensor *self,
                                             tn_tensor *target, tn_scalar p, tn_scalar margin,
                                             tn_tensor *weight, int64_t reduction, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(self, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(target, TN_DTYPE_I64, &t));
    TN_TRY(tni_ready(weight, TN_DTYPE_F64, &w));
    TN_TRY(tni_ready(grad_output, TN_DTYPE_F64, &g));
    job j = job_of(x, t, reduction);
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &made));
    j.grad = g;
    j.weight = w ? w->data : NULL;
    j.margin = tn_scalar_to_double(margin);
    j.square = tn_scalar_to_double(p) == 2;
    j.out = made->data;
    TN_TRY(check_targets(&j));
    TN_TRY(tni_pool_for(j.rows, GRAIN, multi_back, &j));
    return tni_copy_cpu(out, made);
}

/* ---- several targets a row ---- */

static tn_status check_labels(const job *j)
{
    for (int64_t i = 0; i < j->rows * j->classes; i++)
        TN_CHECK(j->target[i] >= -1 && j->target[i] < j->classes, TN_INVALID,
                 "argument #2 'target' is out of range");
    return TN_OK;
}

static tn_status label_rows(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        const double *x = j->x + r * j->classes;
        const int64_t *t = j->target + r * j->classes;
        double *marks = j->marks + r * j->classes, sum = 0;
        int64_t n = 0;
        for (; n < j->classes && t[n] >= 0; n++)
            marks[t[n]] = 1;
        for (int64_t i = 0; i < n; i++)
            for (int64_t c = 0; c < j->classes; c++) {
                double z = 1 - x[t[i]] + x[c];
                if (marks[c] == 0 && z > 0)
                    sum += z;
            }
        j->out[r] = sum / (double)j->classes;
    }
    return TN_OK;
}

static tn_status label_back(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        const double *x = j->x + r * j->classes, *marks = j->flags + r * j->classes;
        const int64_t *t = j->target + r * j->classes;
        double *to = j->out + r * j->classes;
        double g = incoming(j, r);
        for (int64_t i = 0; i < j->classes && t[i] >= 0; i++)
            for (int64_t c = 0; c < j->classes; c++)
                if (marks[c] == 0 && 1 - x[t[i]] + x[c] > 0) {
                    to[t[i]] -= g;
                    to[c] += g;
                }
    }
    return TN_OK;
}

/* Zeros in float64. */
static tn_status zeros(const tn_tensor *like, tn_tensor **out)
{
    TN_TRY(tni_tensor_new(like->ndim, like->sizes, NULL, TN_DTYPE_F64, TN_CPU, out));
    if (like->numel)
        memset((*out)->data, 0, (size_t)like->numel * sizeof(double));
    return TN_OK;
}

tn_status tni_cpu_multilabel_margin_loss_forward(tn_tensor *self, tn_tensor *target,
                                                 int64_t reduction, tn_tensor *output,
                                                 tn_tensor *is_target)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) losses = NULL;
    TN_AUTO(tn_tensor) marks = NULL;
    TN_TRY(tni_ready(self, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(target, TN_DTYPE_I64, &t));
    TN_TRY(zeros(is_target, &marks));
    job j = job_of(x, t, reduction);
    TN_TRY(tni_tensor_new(1, &j.rows, NULL, TN_DTYPE_F64, TN_CPU, &losses));
    j.out = losses->data;
    j.marks = marks->data;
    TN_TRY(check_labels(&j));
    TN_TRY(tni_pool_for(j.rows, GRAIN, label_rows, &j));
    TN_TRY(reduce(losses->data, &j, output));
    return is_target->numel ? tni_copy_cpu(is_target, marks) : TN_OK;
}

tn_status tni_cpu_multilabel_margin_loss_backward(tn_tensor *grad_output, tn_tensor *self,
                                                  tn_tensor *target, int64_t reduction,
                                                  tn_tensor *is_target, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) g = NULL;
    TN_AUTO(tn_tensor) flags = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(self, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(target, TN_DTYPE_I64, &t));
    TN_TRY(tni_ready(grad_output, TN_DTYPE_F64, &g));
    TN_TRY(tni_ready(is_target, TN_DTYPE_F64, &flags));
    TN_TRY(zeros(out, &made));
    job j = job_of(x, t, reduction);
    j.grad = g;
    j.flags = flags->data;
    j.out = made->data;
    TN_TRY(check_labels(&j));
    TN_TRY(tni_pool_for(j.rows, GRAIN, label_back, &j));
    return tni_copy_cpu(out, made);
}
