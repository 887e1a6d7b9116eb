/* SPDX-License-Identifier: MIT */
/* autograd/formula_activation.c: second derivatives of activations, written by hand. See formula.c.
 *
 * A backward operator computes grad_output * f'(self); these give @p grad * f''(self), where grad
 * has been multiplied with grad_output already. */
#include "gen/gradients.h"

#include <math.h>
#include <string.h>
#include "tenon/ops.h"

static const double SQRT_2_OVER_PI = 0.79788456080286535588;
static const double ONE_OVER_SQRT_2_PI = 0.39894228040143267794;

static tn_tensor *plus(tn_tensor *t, double number)
{
    return tnx_add_scalar(t, tn_float(number), tn_int(1));
}

static tn_tensor *times(tn_tensor *t, double number)
{
    return tnx_mul_scalar(t, tn_float(number));
}

static tn_tensor *one_minus(tn_tensor *t)
{
    return tnx_rsub_scalar(t, tn_int(1), tn_int(1));
}

/* With t = tanh(u), u = k (x + a x^3): (1 - t^2) (u' + x u'' / 2 - x t u'^2) */
static tn_tensor *gelu_tanh_second(tn_tensor *x)
{
    const double k = SQRT_2_OVER_PI, a = 0.044715;
    tn_tensor *square = tnx_mul(x, x);
    tn_tensor *t = tnx_tanh(tnx_mul(x, plus(times(square, k * a), k)));
    tn_tensor *first = plus(times(square, 3 * k * a), k);
    tn_tensor *bend = tnx_sub(plus(times(square, 6 * k * a), k),
                              tnx_mul(tnx_mul(x, t), tnx_mul(first, first)), tn_int(1));
    return tnx_mul(one_minus(tnx_mul(t, t)), bend);
}

/* phi(x) (2 - x^2), phi the density of the normal distribution */
static tn_tensor *gelu_exact_second(tn_tensor *x)
{
    tn_tensor *square = tnx_mul(x, x);
    tn_tensor *density = times(tnx_exp(times(square, -0.5)), ONE_OVER_SQRT_2_PI);
    return tnx_mul(density, tnx_rsub_scalar(square, tn_int(2), tn_int(1)));
}

tn_tensor *tni_grad_gelu_second(tn_tensor *grad, tn_tensor *self, const char *approximate)
{
    bool tanh_form = strcmp(approximate, "tanh") == 0;
    /* 0 from there on in every dtype, and powers of what is farther out overflow. */
    tn_scalar low = tn_int(tanh_form ? -10 : -40), high = tn_int(tanh_form ? 10 : 40);
    tn_tensor *x = tnx_clamp(self, &low, &high);
    return tnx_mul(grad, tanh_form ? gelu_tanh_second(x) : gelu_exact_second(x));
}

/* s (1 - s) (2 + x (1 - 2 s)), s = sigmoid(x) */
tn_tensor *tni_grad_silu_second(tn_tensor *grad, tn_tensor *self)
{
    tn_tensor *s = tnx_sigmoid(self);
    tn_tensor *bend = plus(tnx_mul(self, one_minus(times(s, 2))), 2);
    return tnx_mul(tnx_sigmoid_backward(grad, tni_grad_conj(s)), bend);
}

/* With t = tanh(softplus(x)), s = sigmoid(x): t' = (1 - t^2) s, and the second derivative of x t is
 * 2 t' + x t'' = t' (2 + x (1 - s - 2 t s)) */
tn_tensor *tni_grad_mish_second(tn_tensor *grad, tn_tensor *self)
{
    tn_tensor *s = tnx_sigmoid(self);
    tn_tensor *t = tnx_tanh(tnx_softplus(self, tn_int(1), tn_int(20)));
    tn_tensor *inner = tnx_sub(one_minus(s), times(tnx_mul(t, s), 2), tn_int(1));
    return tnx_mul(tnx_mul(tnx_tanh_backward(grad, t), s), plus(tnx_mul(self, inner), 2));
}

/* The backward operator of the negative half is input_scale * (result + alpha * scale). */
tn_tensor *tni_grad_elu_second(tn_tensor *grad, tn_scalar alpha, tn_scalar scale,
                               tn_scalar input_scale, bool is_result, tn_tensor *self_or_result)
{
    tn_tensor *scaled = tnx_mul_scalar(grad, input_scale);
    if (!is_result)
        scaled = tnx_elu_backward(scaled, alpha, scale, input_scale, false, self_or_result);
    return tnx_where_scalarother(tnx_lt_scalar(self_or_result, tn_int(0)), scaled, tn_int(0));
}

tn_tensor *tni_grad_softplus_second(tn_tensor *grad, tn_tensor *self, tn_scalar beta,
                                    tn_scalar threshold)
{
    tn_tensor *x = tnx_mul_scalar(self, beta);
    tn_tensor *slope = tnx_mul_scalar(tnx_sigmoid_backward(grad, tnx_sigmoid(x)), beta);
    return tnx_masked_fill(slope, tnx_ge_scalar(x, threshold), tn_int(0)); /* NaN stays NaN */
}

/* -s (1 - s) */
tn_tensor *tni_grad_log_sigmoid_second(tn_tensor *grad, tn_tensor *self)
{
    return tnx_neg(tnx_sigmoid_backward(grad, tnx_sigmoid(self)));
}

/* ---- glu: a * sigmoid(b) for the halves a and b of self ---- */

typedef struct halves {
    tn_tensor *a, *b;
} halves;

static halves halve(tn_tensor *t, int64_t dim)
{
    if (!t)
        return (halves){NULL, NULL};
    int64_t half = t->sizes[dim < 0 ? dim + t->ndim : dim] / 2;
    return (halves){tnx_narrow(t, dim, 0, half), tnx_narrow(t, dim, half, half)};
}

/* The change of a * sigmoid(b) for a change @p grad of both. */
tn_tensor *tni_grad_glu_tangent(tn_tensor *grad, tn_tensor *self, int64_t dim)
{
    halves x = halve(self, dim), g = halve(grad, dim);
    tn_tensor *s = tnx_sigmoid(x.b);
    return tnx_add(tnx_mul(g.a, s), tnx_mul(tnx_sigmoid_backward(g.b, s), x.a), tn_int(1));
}

tn_tensor *tni_grad_glu_second(tn_tensor *grad, tn_tensor *grad_output, tn_tensor *self,
                               int64_t dim)
{
    halves x = halve(self, dim), g = halve(grad, dim);
    tn_tensor *s = tnx_sigmoid(x.b);
    tn_tensor *first = tnx_sigmoid_backward(grad_output, s);
    tn_tensor *bend = tnx_mul(tnx_mul(g.b, x.a), one_minus(times(s, 2)));
    tn_tensor *pair[] = {tnx_mul(g.b, first), tnx_mul(first, tnx_add(g.a, bend, tn_int(1)))};
    return tni_scope_failed() ? NULL : tnx_cat(pair, 2, dim);
}

/* ---- dropout ---- */

tn_tensor *tni_grad_dropout_gradient(tn_tensor *grad, tn_tensor *kept, double p, tn_opt_bool train)
{
    double scale = train != TN_BOOL_TRUE ? 1.0 : p == 1.0 ? 0.0 : 1.0 / (1.0 - p);
    return tnx_native_dropout_backward(grad, kept, scale);
}

/* In the dtype of the result, which may be another than that of the argument. */
tn_tensor *tni_grad_safe_softmax_gradient(tn_tensor *grad, tn_tensor *result, int64_t dim)
{
    return grad ? tnx__softmax_backward_data(grad, result, dim, (tn_dtype)grad->dtype) : NULL;
}
