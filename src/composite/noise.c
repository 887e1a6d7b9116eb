/* SPDX-License-Identifier: MIT */
/* composite/noise.c: activations with random slopes, and kinds of dropout, in terms of random fills
 * and products. */
#include <math.h>
#include <string.h>
#include "composite/leave.h"
#include "composite/out.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* ---- random slopes ---- */

static tn_status check_sizes(const tn_tensor *self, const tn_tensor *noise)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    bool same = self->ndim == noise->ndim;
    for (int d = 0; same && d < self->ndim; d++)
        same = self->sizes[d] == noise->sizes[d];
    TN_CHECK(
        same, TN_INVALID,
        "noise tensor shape must match self tensor shape. Got self.shape = %s noise.shape = %s",
        tni_format_sizes(self->ndim, self->sizes, a, sizeof a),
        tni_format_sizes(noise->ndim, noise->sizes, b, sizeof b));
    return TN_OK;
}

static tn_status check_noise(const tn_tensor *self, const tn_tensor *noise)
{
    TN_TRY(check_sizes(self, noise));
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"rrelu_with_noise_out_cpu\" not implemented for '%s'",
             tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

/* What a write of @p noise would refuse, before @p self or what stands for it is written. */
static tn_status check_written(const tn_tensor *self, tn_tensor *noise)
{
    TN_TRY(tni_check_leaf(noise));
    TN_TRY(tni_check_real(self, noise));
    TN_TRY(tni_check_real(noise, self));
    TN_CHECK(!tni_is_meta(self) || tni_is_meta(noise), TN_UNSUPPORTED,
             "Cannot copy out of meta tensor; no data!");
    return tni_check_internal_overlap(noise);
}

static bool is_followed(const tn_tensor *t)
{
    return tn_grad_enabled() && tn_tensor_requires_grad(t);
}

/* Zeros that follow from @p self, in the shape of @p like: a derivative that does not depend on it
 * but for jumps still has a gradient for it, which is zero. NULL when nobody asks. */
static tn_tensor *zeros_by(tn_tensor *self, tn_tensor *like)
{
    if (!is_followed(self))
        return NULL;
    tn_tensor *zeros = tnx_zeros_like(like, NULL, TN_FORMAT_NONE);
    return tnx_hardtanh_backward(zeros, self, tn_int(0), tn_int(0));
}

/* A factor for each element; belongs to the scope. */
static tn_tensor *slopes(tn_tensor *self, tn_scalar lower, tn_scalar upper, tn_generator *generator)
{
    tn_tensor *numbers = tnx_empty_like(self, NULL, TN_FORMAT_CONTIGUOUS);
    if (numbers)
        tnx_uniform_(numbers, tn_scalar_to_double(lower), tn_scalar_to_double(upper), generator);
    return tnx_where_scalarself(tnx_gt_scalar(self, tn_int(0)), tn_int(1), numbers);
}

/* The slopes as a factor of @p self: the gradient, a product with them, has a gradient for @p self
 * too, which is zero. */
static tn_tensor *factor_of(tn_tensor *self, tn_tensor *slopes)
{
    tn_tensor *zeros = slopes ? zeros_by(self, slopes) : NULL;
    return zeros ? tnx_add(slopes, zeros, tn_int(1)) : slopes;
}

static tn_scalar middle(tn_scalar lower, tn_scalar upper)
{
    return tn_float((tn_scalar_to_double(lower) + tn_scalar_to_double(upper)) / 2);
}

/* One slope for all; results lie row by row, as the reference's do. */
static tn_status at_rest(tn_tensor *self, tn_scalar lower, tn_scalar upper, tn_tensor **out)
{
    TN_AUTO(tn_tensor) dense = NULL;
    TN_TRY(tn_contiguous(self, TN_FORMAT_CONTIGUOUS, &dense));
    return tn_leaky_relu(dense, middle(lower, upper), out);
}

tn_status tni_composite_rrelu_with_noise_functional(tn_tensor *self, tn_tensor *noise,
                                                    tn_scalar lower, tn_scalar upper, bool training,
                                                    tn_generator *generator, tn_tensor **out,
                                                    tn_tensor **noise_out)
{
    tn_scope *scope;
    TN_TRY(training ? check_noise(self, noise) : check_sizes(self, noise));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *made =
        training ? slopes(self, lower, upper, generator) : tnx_clone(noise, TN_FORMAT_NONE);
    if (training && made &&
        !tn_tensor_is_contiguous(noise, TN_FORMAT_CONTIGUOUS)) /* the copy lies as the noise does */
        made = tnx_copy(noise, made, false);
    tn_tensor *dense = tnx_contiguous(self, TN_FORMAT_CONTIGUOUS);
    tn_tensor *result = training ? tnx_mul(dense, factor_of(self, made))
                                 : tnx_leaky_relu(dense, middle(lower, upper));
    tn_tensor *kept = tn_scope_keep(made);
    TN_AUTO(tn_tensor) y = NULL;
    tn_status status = tni_leave(scope, result, &y);
    if (status != TN_OK) {
        tn_tensor_unref(kept);
        return status;
    }
    *out = TN_MOVE(y);
    *noise_out = kept;
    return TN_OK;
}

tn_status tni_composite_rrelu_with_noise(tn_tensor *self, tn_tensor *noise, tn_scalar lower,
                                         tn_scalar upper, bool training, tn_generator *generator,
                                         tn_tensor **out)
{
    TN_AUTO(tn_tensor) result = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(check_sizes(self, noise));
    if (!training)
        return at_rest(self, lower, upper, out);
    TN_TRY(tni_composite_rrelu_with_noise_functional(self, noise, lower, upper, true, generator,
                                                     &result, &made));
    TN_TRY(tn_copy_(noise, made, false));
    *out = TN_MOVE(result);
    return TN_OK;
}

tn_status tni_composite_rrelu_with_noise_(tn_tensor *self, tn_tensor *noise, tn_scalar lower,
                                          tn_scalar upper, bool training, tn_generator *generator)
{
    TN_AUTO(tn_tensor) old = NULL;
    TN_AUTO(tn_tensor) made = NULL;
    TN_AUTO(tn_tensor) factor = NULL;
    tn_scope *scope;
    TN_TRY(check_sizes(self, noise));
    if (!training)
        return tn_leaky_relu_(self, middle(lower, upper));
    TN_TRY(check_noise(self, noise));
    TN_TRY(tni_check_internal_overlap(self)); /* before either is written */
    TN_TRY(check_written(self, noise));
    TN_TRY(tni_inplace_begin(self, &old));
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(tni_leave(scope, slopes(old, lower, upper, generator), &made));
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(tni_leave(scope, factor_of(old, made), &factor));
    TN_TRY(tn_mul_(self, factor));
    return tn_copy_(noise, made, false);
}

tn_status tni_composite_rrelu_with_noise_out(tn_tensor *self, tn_tensor *noise, tn_scalar lower,
                                             tn_scalar upper, bool training,
                                             tn_generator *generator, tn_tensor *out)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(check_noise(self, noise));
    if (!training)
        return tn_leaky_relu_out(self, middle(lower, upper), out);
    TN_TRY(check_written(self, noise)); /* before out is written */
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(tni_leave(scope, slopes(self, lower, upper, generator), &made));
    TN_TRY(tn_mul_out(self, made, out));
    return tn_copy_(noise, made, false);
}

tn_status tni_composite_rrelu_with_noise_backward(tn_tensor *grad_output, tn_tensor *self,
                                                  tn_tensor *noise, tn_scalar lower,
                                                  tn_scalar upper, bool training,
                                                  bool self_is_result, tn_tensor **out)
{
    if (training && tn_scalar_to_double(upper) - tn_scalar_to_double(lower) > 1e-6) {
        tn_scope *scope;
        TN_TRY(tn_scope_enter(&scope));
        tn_tensor *product = tnx_mul(noise, grad_output), *zeros = zeros_by(self, product);
        return tni_leave(scope, zeros ? tnx_add(product, zeros, tn_int(1)) : product, out);
    }
    return tn_leaky_relu_backward(grad_output, self, middle(lower, upper), self_is_result, out);
}

tn_status tni_composite_rrelu(tn_tensor *self, tn_scalar lower, tn_scalar upper, bool training,
                              tn_generator *generator, tn_tensor **out)
{
    TN_CHECK(isfinite(tn_scalar_to_double(lower)), TN_INVALID,
             "rrelu: lower bound must be finite, got %g", tn_scalar_to_double(lower));
    TN_CHECK(isfinite(tn_scalar_to_double(upper)), TN_INVALID,
             "rrelu: upper bound must be finite, got %g", tn_scalar_to_double(upper));
    TN_CHECK(tn_scalar_to_double(lower) <= tn_scalar_to_double(upper), TN_INVALID,
             "Lower bound should be less than or equal to the upper bound");
    TN_AUTO(tn_tensor) noise = NULL;
    if (!training)
        return at_rest(self, lower, upper, out);
    TN_TRY(tn_empty_like(self, NULL, TN_FORMAT_CONTIGUOUS, &noise));
    return tn_rrelu_with_noise(self, noise, lower, upper, true, generator, out);
}

/* ---- dropout ---- */

/* What to multiply by, and what to add; both belong to the scope. */
typedef struct change {
    tn_tensor *factor, *shift; /* factor NULL: nothing changes; shift NULL: nothing to add */
} change;

static tn_status dropped(tn_tensor *input, double p, bool train, bool feature, bool alpha,
                         change *out)
{
    *out = (change){NULL, NULL};
    TN_CHECK(p >= 0 && p <= 1, TN_INVALID,
             "dropout probability has to be between 0 and 1, but got %g", p);
    if (p == 0 || !train || input->numel == 0)
        return TN_OK;
    TN_CHECK(!feature || input->ndim >= 2, TN_INVALID,
             "Feature dropout requires at least 2 dimensions in the input");
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < input->ndim; d++)
        sizes[d] = feature && d >= 2 ? 1 : input->sizes[d];
    if (p == 1) {
        out->factor = tnx_new_zeros(input, sizes, 0, NULL);
        return TN_OK;
    }
    tn_tensor *kept = tnx_new_empty(input, sizes, input->ndim, NULL);
    if (kept)
        tnx_bernoulli_(kept, 1 - p, NULL);
    if (!alpha) {
        out->factor = tnx_div_scalar(kept, tn_float(1 - p));
        return TN_OK;
    }
    const double low = 1.7580993408473766; /* scale * alpha of selu */
    double a = 1 / sqrt((low * low * p + 1) * (1 - p));
    tn_tensor *gone = tnx_add_scalar(kept, tn_int(-1), tn_int(1)); /* -1 where dropped */
    if (gone)
        TN_TRY(tn_mul_scalar_(gone, tn_float(low * a))); /* refuses whole numbers */
    out->shift = tnx_add_scalar(gone, tn_float(low * a * p), tn_int(1));
    out->factor = tnx_mul_scalar(kept, tn_float(a));
    return TN_OK;
}

static tn_status drop(tn_tensor *input, double p, bool train, bool feature, bool alpha,
                      tn_tensor **out)
{
    tn_scope *scope;
    change c;
    TN_TRY(tn_scope_enter(&scope));
    tn_status status = dropped(input, p, train, feature, alpha, &c);
    tn_tensor *result = status == TN_OK && c.factor ? tnx_mul(input, c.factor) : input;
    if (status == TN_OK && c.shift)
        result = tnx_add(result, c.shift, tn_int(1));
    TN_AUTO(tn_tensor) made = NULL;
    tn_status left = tni_leave(scope, result, &made);
    TN_TRY(status != TN_OK ? status : left);
    *out = TN_MOVE(made);
    return TN_OK;
}

static tn_status drop_(tn_tensor *self, double p, bool train, bool feature, bool alpha)
{
    tn_scope *scope;
    change c;
    TN_TRY(tn_scope_enter(&scope));
    tn_status status = dropped(self, p, train, feature, alpha, &c);
    /* In one write: what fails leaves self as it was. A product that does not fit is refused. */
    if (status == TN_OK && c.shift && c.factor && c.factor->dtype == self->dtype) {
        TN_AUTO(tn_tensor) old = NULL;
        status = tni_inplace_begin(self, &old);
        tn_tensor *made = old ? tnx_add(tnx_mul(old, c.factor), c.shift, tn_int(1)) : NULL;
        if (made)
            status = tn_copy_(self, made, false);
    } else if (status == TN_OK && c.factor) {
        status = tn_mul_(self, c.factor);
    }
    tn_status left = tn_scope_leave(scope);
    return status != TN_OK ? status : left;
}

#define DROPOUT(name, feature, alpha)                                                       \
    tn_status tni_composite_##name(tn_tensor *input, double p, bool train, tn_tensor **out) \
    {                                                                                       \
        return drop(input, p, train, feature, alpha, out);                                  \
    }                                                                                       \
    tn_status tni_composite_##name##_(tn_tensor *self, double p, bool train)                \
    {                                                                                       \
        return drop_(self, p, train, feature, alpha);                                       \
    }
DROPOUT(alpha_dropout, false, true)
DROPOUT(feature_dropout, true, false)
DROPOUT(feature_alpha_dropout, true, true)

/* ---- gradients by their own names ---- */

/* @p t with @p value where @p mask holds. It keeps the strides of @p t, which masked_fill does not.
 */
static tn_tensor *zeroed(tn_tensor *t, tn_tensor *mask, tn_scalar value)
{
    if (!t || !mask || t->ndim != mask->ndim ||
        memcmp(t->sizes, mask->sizes, (size_t)t->ndim * sizeof *t->sizes) != 0)
        return tnx_masked_fill(t, mask, value);
    tn_tensor *made = tnx_clone(t, TN_FORMAT_PRESERVE);
    return tnx_masked_fill_(made, mask, value);
}

/* Whether elements are repeated, as in what was expanded. */
static bool is_repeated(const tn_tensor *t)
{
    for (int d = 0; t && d < t->ndim; d++) {
        if (t->strides[d] == 0 && t->sizes[d] > 1)
            return true;
    }
    return false;
}

tn_status tni_composite_shrink_backward(tn_tensor *grad, tn_tensor *self, tn_scalar lambd,
                                        tn_tensor **out)
{
    tn_scope *scope;
    tn_dtype dtype = TN_DTYPE_NONE;
    tn_scalar below = tn_float(-tn_scalar_to_double(lambd));
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)grad->dtype) &&
                 !tn_dtype_is_complex((tn_dtype)self->dtype),
             TN_UNSUPPORTED, "\"shrink_backward_cpu\" not implemented for '%s'",
             tni_dtype_text(tn_promote_types((tn_dtype)grad->dtype, (tn_dtype)self->dtype)));
    TN_TRY(tn_result_type(grad, self, &dtype));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *inside = tnx_logical_and(tnx_ge_scalar(self, below), tnx_le_scalar(self, lambd));
    tn_tensor *wide = tnx_to_dtype(grad, dtype, false, false, TN_FORMAT_NONE);
    tn_tensor *zeros = zeros_by(self, wide);
    tn_tensor *made;
    if (zeros)
        made = tnx_where(inside, zeros, wide);
    else if (is_repeated(wide)) /* then self says how the result lies */
        made = tnx_where_scalarself(inside, tn_int(0), wide);
    else
        made = zeroed(wide, inside, tn_int(0));
    return tni_leave(scope, made, out);
}

tn_status tni_composite_logit_backward(tn_tensor *grad_output, tn_tensor *self, tn_opt_float eps,
                                       tn_tensor **out)
{
    tn_scope *scope;
    eps.has = eps.has && !(eps.value < 0); /* below 0 it is none */
    double low = eps.has ? eps.value : 0, high = 1 - low;
    tn_dtype dtype = TN_DTYPE_NONE;
    TN_TRY(tn_result_type(grad_output, self, &dtype));
    TN_TRY(tn_scope_enter(&scope));
    self = tnx_to_dtype(self, dtype, false, false, TN_FORMAT_NONE);
    tn_tensor *product = tnx_mul(self, tnx_rsub_scalar(self, tn_int(1), tn_int(1)));
    tn_tensor *outside =
        tnx_logical_or(tnx_lt_scalar(self, tn_float(low)), tnx_gt_scalar(self, tn_float(high)));
    tn_tensor *slope = tnx_div(grad_output, product);
    tn_scalar there = eps.has ? tn_int(0) : tn_float((double)NAN);
    return tni_leave(scope, zeroed(slope, outside, there), out);
}
