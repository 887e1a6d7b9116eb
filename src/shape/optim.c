/* SPDX-License-Identifier: MIT */
/* shape/optim.c: what the step of an optimiser refuses. */
#include "shape/optim.h"
#include "shape/index.h"

static tn_status check_like(const tni_optim_lists *l, int list, int64_t i)
{
    const tn_tensor *p = l->at[0][i], *t = l->at[list][i];
    char have[TNI_SIZES_TEXT], want[TNI_SIZES_TEXT];
    TN_CHECK(t->dtype == p->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)p->dtype), tni_dtype_text((tn_dtype)t->dtype));
    TN_CHECK(t->device.type == p->device.type && t->device.index == p->device.index, TN_INVALID,
             "Expected the tensors of %s to be on the devices of those of self", l->label[list]);
    bool same = t->ndim == p->ndim;
    for (int d = 0; same && d < p->ndim; d++)
        same = t->sizes[d] == p->sizes[d];
    TN_CHECK(same, TN_INVALID, "Expected a tensor of size %s in %s, as in self, but got %s",
             tni_format_sizes(p->ndim, p->sizes, want, sizeof want), l->label[list],
             tni_format_sizes(t->ndim, t->sizes, have, sizeof have));
    return TN_OK;
}

static tn_status check_number(const char *what, const tn_tensor *t)
{
    TN_CHECK(!t || t->numel == 1, TN_INVALID, "Expected %s to have one element, but it has %lld",
             what, (long long)t->numel);
    return TN_OK;
}

/* A number may be on another device than the tensors, but not without a value where those have
 * some. */
static tn_status check_value(const tn_tensor *p, const tn_tensor *number)
{
    return number && tni_is_meta(number) ? tni_same_device(p, number) : TN_OK;
}

static tn_status check_count(const char *label, int64_t n, int64_t wanted)
{
    TN_CHECK(n == wanted, TN_INVALID, "Expected %s.size() == n_tensors to be true, but got false.",
             label);
    return TN_OK;
}

tn_status tni_optim_check(const tni_optim_lists *l)
{
    int64_t n = l->count[0];
    for (int k = 1; k < l->n; k++)
        TN_TRY(check_count(l->label[k], l->count[k], n));
    for (int k = l->n; k < TNI_OPTIM_LISTS; k++) /* what this step has no use for */
        TN_CHECK(l->count[k] == 0, TN_INVALID, "Expected %s.empty() to be true, but got false.",
                 l->label[k]);
    if (l->steps_n >= 0)
        TN_TRY(check_count("state_steps", l->steps_n, n));
    TN_TRY(check_number("lr", l->rate));
    TN_TRY(check_number("grad_scale", l->grad_scale));
    TN_TRY(check_number("found_inf", l->found_inf));
    for (int64_t i = 0; i < n; i++) {
        tn_dtype dtype = (tn_dtype)l->at[0][i]->dtype;
        TN_CHECK(tn_dtype_is_floating(dtype), TN_UNSUPPORTED,
                 "\"fused_%s_kernel\" not implemented for '%s'", l->name, tni_dtype_text(dtype));
        for (int k = 1; k < l->n; k++)
            TN_TRY(check_like(l, k, i));
        for (int k = 0; k < l->n; k++)
            if (k != 1 || l->grad_scale) /* gradients are written where they are scaled */
                TN_TRY(tni_check_internal_overlap(l->at[k][i]));
        TN_TRY(check_value(l->at[0][i], l->rate));
        TN_TRY(check_value(l->at[0][i], l->grad_scale));
        TN_TRY(check_value(l->at[0][i], l->found_inf));
        if (l->steps_n >= 0) {
            TN_TRY(check_number("each of state_steps", l->steps[i]));
            TN_TRY(check_value(l->at[0][i], l->steps[i]));
        }
    }
    return TN_OK;
}

tni_optim_lists tni_sgd_lists(tn_tensor *const *self, int64_t self_n, tn_tensor *const *grads,
                              int64_t grads_n, tn_tensor *const *buffers, int64_t buffers_n,
                              double momentum, const tn_tensor *rate, const tn_tensor *grad_scale,
                              const tn_tensor *found_inf)
{
    return (tni_optim_lists){.name = "sgd",
                             .n = momentum != 0 ? 3 : 2,
                             .at = {self, grads, buffers},
                             .count = {self_n, grads_n, buffers_n},
                             .label = {"self", "grads", "momentum_buffer_list"},
                             .steps_n = -1,
                             .rate = rate,
                             .grad_scale = grad_scale,
                             .found_inf = found_inf};
}

tni_optim_lists tni_adam_lists(const char *name, tn_tensor *const *const lists[TNI_OPTIM_LISTS],
                               const int64_t counts[TNI_OPTIM_LISTS], bool amsgrad,
                               tn_tensor *const *steps, int64_t steps_n, const tn_tensor *rate,
                               const tn_tensor *grad_scale, const tn_tensor *found_inf)
{
    tni_optim_lists l = {.name = name,
                         .n = amsgrad ? 5 : 4,
                         .label = {"self", "grads", "exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"},
                         .steps = steps,
                         .steps_n = steps_n,
                         .rate = rate,
                         .grad_scale = grad_scale,
                         .found_inf = found_inf};
    for (int i = 0; i < TNI_OPTIM_LISTS; i++) {
        l.at[i] = lists[i];
        l.count[i] = counts[i];
    }
    return l;
}
