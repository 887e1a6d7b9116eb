/* SPDX-License-Identifier: MIT */
/* cpu/nll.c: negative log likelihood losses and their gradients. One element a target is read and
 * written, so there is nothing to make fast here but not to touch more than that. */
#include <math.h>
#include <string.h>
#include "core/scalar.h"
#include "core/tensor.h"
#include "gen/cpu.h"

/* Targets as an array of N x H x W, and where their classes are: strides are in elements. */
typedef struct nll_job {
    const tn_tensor *x, *target, *weight;
    int64_t n, h, w, classes;
    int64_t x_strides[3], class_stride, target_strides[3], weight_stride;
    int64_t ignore;
} nll_job;

static double load(const tn_tensor *t, int64_t at)
{
    switch (t->dtype) {
    case TN_DTYPE_F32:
        return (double)((const float *)t->data)[at];
    case TN_DTYPE_F64:
        return ((const double *)t->data)[at];
    default:
        return tni_scalar_load((tn_dtype)t->dtype,
                               (const char *)t->data + (size_t)at * tni_itemsize(t))
            .v.f;
    }
}

static void store(tn_tensor *t, int64_t at, double value)
{
    if (t->dtype == TN_DTYPE_F32) {
        ((float *)t->data)[at] = (float)value;
        return;
    }
    tni_scalar_store(tn_float(value), (tn_dtype)t->dtype,
                     (char *)t->data + (size_t)at * tni_itemsize(t));
}

static nll_job job_of(const tn_tensor *x, const tn_tensor *target, const tn_tensor *weight,
                      int64_t ignore)
{
    nll_job j = {.x = x, .target = target, .weight = weight, .ignore = ignore, .h = 1, .w = 1};
    int class_dim = x->ndim == 1 ? 0 : 1;
    j.n = x->ndim == 1 ? 1 : x->sizes[0];
    j.classes = x->sizes[class_dim];
    j.class_stride = x->strides[class_dim];
    j.x_strides[0] = x->ndim == 1 ? 0 : x->strides[0];
    j.target_strides[0] = target->ndim ? target->strides[0] : 0;
    if (x->ndim == 4) {
        j.h = x->sizes[2];
        j.w = x->sizes[3];
        for (int d = 1; d < 3; d++) {
            j.x_strides[d] = x->strides[d + 1];
            j.target_strides[d] = target->strides[d];
        }
    }
    j.weight_stride = weight && weight->ndim == 1 ? weight->strides[0] : 1;
    return j;
}

/* Where a walk over the targets is: in their array, in the tensor of the target and in x. */
typedef struct walk {
    int64_t h, w, at, x;
} walk;

/* The class of the target, and where element 0 of its classes is; on to the next. There are no
 * divisions, which would take longer than all the rest. */
static inline int64_t next_target(const nll_job *j, walk *k, int64_t *x_at)
{
    int64_t at = k->at;
    *x_at = k->x;
    k->at += j->target_strides[2];
    k->x += j->x_strides[2];
    if (++k->w == j->w) {
        k->w = 0;
        k->at += j->target_strides[1] - j->w * j->target_strides[2];
        k->x += j->x_strides[1] - j->w * j->x_strides[2];
        if (++k->h == j->h) {
            k->h = 0;
            k->at += j->target_strides[0] - j->h * j->target_strides[1];
            k->x += j->x_strides[0] - j->h * j->x_strides[1];
        }
    }
    return j->target->dtype == TN_DTYPE_U8 ? ((const uint8_t *)j->target->data)[at]
                                           : ((const int64_t *)j->target->data)[at];
}

static int64_t count(const nll_job *j)
{
    return j->n * j->h * j->w;
}

/* Before anything is written. */
static tn_status check_targets(const nll_job *j)
{
    walk k = {0};
    for (int64_t i = 0, n = count(j); i < n; i++) {
        int64_t unused, t = next_target(j, &k, &unused);
        TN_CHECK(t == j->ignore || (t >= 0 && t < j->classes), TN_INDEX,
                 "Target %lld is out of bounds.", (long long)t);
    }
    return TN_OK;
}

static double weight_of(const nll_job *j, int64_t t)
{
    return j->weight ? load(j->weight, t * j->weight_stride) : 1.0;
}

/* Where the i-th of the targets is in a tensor of their sizes. */
static int64_t place(const nll_job *j, const tn_tensor *t, int64_t i)
{
    if (t->ndim == 0)
        return 0;
    if (t->ndim == 1)
        return i * t->strides[0];
    return i / j->w / j->h * t->strides[0] + i / j->w % j->h * t->strides[1] +
           i % j->w * t->strides[2];
}

static tn_status forward(const tn_tensor *self, const tn_tensor *target, const tn_tensor *weight,
                         int64_t reduction, int64_t ignore, tn_tensor *output, tn_tensor *total)
{
    nll_job j = job_of(self, target, weight, ignore);
    bool each = reduction == 0 && self->ndim != 1;
    double sum = 0, weights = 0;
    TN_TRY(check_targets(&j));
    walk k = {0};
    for (int64_t i = 0, n = count(&j); i < n; i++) {
        int64_t x, t = next_target(&j, &k, &x);
        double w = t == ignore ? 0.0 : weight_of(&j, t), loss = 0;
        if (t != ignore)
            loss = -(load(self, x + t * j.class_stride) * w);
        if (each)
            store(output, place(&j, output, i), loss);
        sum += loss;
        weights += w;
    }
    if (!each)
        store(output, 0, reduction == 1 ? sum / weights : sum);
    store(total, 0, each ? 0.0 : weights);
    return TN_OK;
}

static tn_status clear(tn_tensor *t)
{
    int64_t index[TN_MAX_DIMS] = {0}, at = 0;
    if (t->flags & (TNI_CONTIGUOUS | TNI_DENSE)) {
        if (t->numel)
            memset(t->data, 0, (size_t)t->numel * tni_itemsize(t));
        return TN_OK;
    }
    for (int64_t k = 0; k < t->numel; k++) {
        store(t, at, 0.0);
        for (int d = t->ndim - 1; d >= 0; d--) {
            at += t->strides[d];
            if (++index[d] < t->sizes[d])
                break;
            at -= index[d] * t->strides[d];
            index[d] = 0;
        }
    }
    return TN_OK;
}

static tn_status backward(const tn_tensor *grad, const tn_tensor *self, const tn_tensor *target,
                          const tn_tensor *weight, int64_t reduction, int64_t ignore,
                          const tn_tensor *total, tn_tensor *out)
{
    nll_job j = job_of(self, target, weight, ignore);
    TN_TRY(check_targets(&j));
    TN_TRY(clear(out));
    nll_job o = job_of(out, target, weight, ignore);
    bool each = reduction == 0 && self->ndim != 1;
    double scale = reduction == 1 ? 1.0 / load(total, 0) : 1.0;
    walk k = {0};
    for (int64_t i = 0, n = count(&j); i < n; i++) {
        int64_t x, t = next_target(&o, &k, &x);
        if (t == ignore)
            continue;
        double g = load(grad, each ? place(&j, grad, i) : 0);
        store(out, x + t * o.class_stride, -weight_of(&j, t) * g * scale);
    }
    return TN_OK;
}

tn_status tni_cpu_nll_loss_forward(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                                   int64_t reduction, int64_t ignore_index, tn_tensor *output,
                                   tn_tensor *total_weight)
{
    return forward(self, target, weight, reduction, ignore_index, output, total_weight);
}

tn_status tni_cpu_nll_loss2d_forward(tn_tensor *self, tn_tensor *target, tn_tensor *weight,
                                     int64_t reduction, int64_t ignore_index, tn_tensor *output,
                                     tn_tensor *total_weight)
{
    return forward(self, target, weight, reduction, ignore_index, output, total_weight);
}

tn_status tni_cpu_nll_loss_backward(tn_tensor *grad_output, tn_tensor *self, tn_tensor *target,
                                    tn_tensor *weight, int64_t reduction, int64_t ignore_index,
                                    tn_tensor *total_weight, tn_tensor *out)
{
    return backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out);
}

tn_status tni_cpu_nll_loss2d_backward(tn_tensor *grad_output, tn_tensor *self, tn_tensor *target,
                                      tn_tensor *weight, int64_t reduction, int64_t ignore_index,
                                      tn_tensor *total_weight, tn_tensor *out)
{
    return backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out);
}
