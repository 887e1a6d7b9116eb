/* SPDX-License-Identifier: MIT */
/* cpu/activation.c: activations and their backward operators on the CPU: which loop, with which
 * parameters. Those of two results, and those that read halves of a tensor, serve Meta too. */
#include <string.h>
#include "core/scalar.h"
#include "cpu/run.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "shape/geometry.h"

#define PLAIN(name, LOOP)                             \
    tn_status tni_cpu_##name(tni_iter *it)            \
    {                                                 \
        return tni_run(it, TNI_LOOP_##LOOP, 0, NULL); \
    }
PLAIN(silu, SILU)
PLAIN(silu_backward, SILU_B)
PLAIN(mish, MISH)
PLAIN(mish_backward, MISH_B)
PLAIN(hardswish, HARDSWISH)
PLAIN(hardswish_backward, HARDSWISH_B)
PLAIN(hardsigmoid, HARDSIGMOID)
PLAIN(hardsigmoid_backward, HARDSIGMOID_B)
PLAIN(sigmoid_backward, SIGMOID_B)
PLAIN(tanh_backward, TANH_B)
PLAIN(prelu, PRELU)

static tn_status with(tni_iter *it, tni_loop loop, double a, double b, double c)
{
    const double p[TNI_LOOP_PARAMETERS] = {a, b, c};
    return tni_run(it, loop, 0, p);
}

/* The same, where integers have loops too. */
static tn_status with_numbers(tni_iter *it, tni_loop loop, tn_scalar a, tn_scalar b)
{
    if (!tn_dtype_is_integral(it->dtype, false))
        return with(it, loop, tn_scalar_to_double(a), tn_scalar_to_double(b), 0);
    const int64_t p[TNI_LOOP_PARAMETERS] = {tn_scalar_to_int(a), tn_scalar_to_int(b)};
    return tni_run(it, loop, 0, p);
}

tn_status tni_cpu_gelu(tni_iter *it, const char *approximate)
{
    bool tanh = strcmp(approximate, "tanh") == 0;
    return tni_run(it, tanh ? TNI_LOOP_GELU_TANH : TNI_LOOP_GELU, 0, NULL);
}

tn_status tni_cpu_gelu_backward(tni_iter *it, const char *approximate)
{
    bool tanh = strcmp(approximate, "tanh") == 0;
    return tni_run(it, tanh ? TNI_LOOP_GELU_TANH_B : TNI_LOOP_GELU_B, 0, NULL);
}

tn_status tni_cpu_leaky_relu(tni_iter *it, tn_scalar negative_slope)
{
    return with(it, TNI_LOOP_LEAKY, tn_scalar_to_double(negative_slope), 0, 0);
}

tn_status tni_cpu_leaky_relu_backward(tni_iter *it, tn_scalar negative_slope, bool self_is_result)
{
    (void)self_is_result; /* has the sign of the input */
    return with(it, TNI_LOOP_LEAKY_B, tn_scalar_to_double(negative_slope), 0, 0);
}

tn_status tni_cpu_elu(tni_iter *it, tn_scalar alpha, tn_scalar scale, tn_scalar input_scale)
{
    return with(it, TNI_LOOP_ELU, tn_scalar_to_double(alpha) * tn_scalar_to_double(scale),
                tn_scalar_to_double(scale), tn_scalar_to_double(input_scale));
}

tn_status tni_cpu_elu_backward(tni_iter *it, tn_scalar alpha, tn_scalar scale,
                               tn_scalar input_scale, bool is_result)
{
    return with(it, is_result ? TNI_LOOP_ELU_RESULT_B : TNI_LOOP_ELU_B,
                tn_scalar_to_double(alpha) * tn_scalar_to_double(scale), tn_scalar_to_double(scale),
                tn_scalar_to_double(input_scale));
}

tn_status tni_cpu_softplus(tni_iter *it, tn_scalar beta, tn_scalar threshold)
{
    return with(it, TNI_LOOP_SOFTPLUS, tn_scalar_to_double(beta), tn_scalar_to_double(threshold),
                0);
}

tn_status tni_cpu_softplus_backward(tni_iter *it, tn_scalar beta, tn_scalar threshold)
{
    return with(it, TNI_LOOP_SOFTPLUS_B, tn_scalar_to_double(beta), tn_scalar_to_double(threshold),
                0);
}

tn_status tni_cpu_softshrink(tni_iter *it, tn_scalar lambd)
{
    return with(it, TNI_LOOP_SOFTSHRINK, tn_scalar_to_double(lambd), 0, 0);
}

/* Here lambda is a number of the tensor's dtype, also where that is computed in a wider one. */
tn_status tni_cpu_hardshrink(tni_iter *it, tn_scalar lambd)
{
    _Alignas(16) char value[16];
    tni_scalar_store(lambd, it->dtype, value);
    return with(it, TNI_LOOP_HARDSHRINK, tn_scalar_to_double(tni_scalar_load(it->dtype, value)), 0,
                0);
}

tn_status tni_cpu_hardtanh(tni_iter *it, tn_scalar min_val, tn_scalar max_val)
{
    return with_numbers(it, TNI_LOOP_CLAMP_TO, min_val, max_val);
}

tn_status tni_cpu_hardtanh_backward(tni_iter *it, tn_scalar min_val, tn_scalar max_val)
{
    return with(it, TNI_LOOP_HARDTANH_B, tn_scalar_to_double(min_val), tn_scalar_to_double(max_val),
                0);
}

tn_status tni_cpu_threshold(tni_iter *it, tn_scalar threshold, tn_scalar value)
{
    return with_numbers(it, TNI_LOOP_THRESHOLD, threshold, value);
}

tn_status tni_cpu_threshold_backward(tni_iter *it, tn_scalar threshold)
{
    return with_numbers(it, TNI_LOOP_THRESHOLD_B, threshold, threshold);
}

/* ---- log_sigmoid ---- */

/* Into @p out, of which views may exist: its sizes stay. */
static tn_status into(tn_tensor *out, const char *name, tni_loop loop, const tni_operand *in, int n)
{
    const tni_pointwise_attr attr = {name, TNI_PW_PROMOTE, TNI_LAYOUT_OPERANDS, 0, name};
    const double p[TNI_LOOP_PARAMETERS] = {1.0};
    tni_iter it;
    TN_TRY(tni_iter_begin(&it, &attr, in, n, out, TNI_ITER_INPLACE));
    tn_status status = tni_is_meta(out) ? TN_OK : tni_run(&it, loop, 0, p);
    return tni_iter_end(&it, status, NULL);
}

tn_status tni_cpu_log_sigmoid_forward(tn_tensor *self, tn_tensor *output, tn_tensor *buffer)
{
    const tni_operand in[] = {{.tensor = self}};
    TN_TRY(into(output, "log_sigmoid", TNI_LOOP_LOG_SIGMOID, in, 1));
    return into(buffer, "log_sigmoid", TNI_LOOP_EXP_MINUS_ABS, in, 1);
}

tn_status tni_cpu_log_sigmoid_backward(tni_iter *it)
{
    return with(it, TNI_LOOP_LOG_SIGMOID_B, 1, 0, 0);
}

/* ---- glu ---- */

typedef struct halves {
    tn_tensor *value, *gate; /* views */
} halves;

static void halves_free(halves *h)
{
    tn_tensor_unref(h->value);
    tn_tensor_unref(h->gate);
}

static tn_status halves_of(const tn_tensor *t, int dim, halves *out)
{
    tni_geometry g;
    *out = (halves){0};
    tni_geometry_copy(&g, t);
    g.sizes[dim] /= 2;
    tn_status status = tni_tensor_alias(t, g.ndim, g.sizes, g.strides, g.offset, &out->value);
    if (status == TN_OK)
        status = tni_tensor_alias(t, g.ndim, g.sizes, g.strides,
                                  g.offset + g.sizes[dim] * g.strides[dim], &out->gate);
    if (status != TN_OK)
        halves_free(out);
    return status;
}

static tn_status glu_check(const tn_tensor *self, int64_t dim, int *out)
{
    TN_CHECK(self->ndim > 0, TN_INVALID, "glu does not support 0-dimensional tensors");
    TN_TRY(tni_wrap_dim(dim, self->ndim, out));
    TN_CHECK(self->sizes[*out] % 2 == 0, TN_INVALID,
             "Halving dimension must be even, but dimension %d is size %lld", *out,
             (long long)self->sizes[*out]);
    const tni_operand in[] = {{.tensor = (tn_tensor *)(uintptr_t)self}};
    return tni_check_dtypes(in, 1, TNI_PW_PROMOTE, TNI_PW_FLOATS, "glu_cpu", NULL);
}

static tn_status glu(tn_tensor *self, int64_t dim, tn_tensor *given, int mode, tn_tensor **out)
{
    static const tni_pointwise_attr attr = {"glu", TNI_PW_PROMOTE, TNI_LAYOUT_OPERANDS, 0,
                                            "glu_cpu"};
    int at;
    halves h;
    tni_iter it;
    TN_TRY(glu_check(self, dim, &at));
    TN_TRY(halves_of(self, at, &h));
    const tni_operand in[] = {{.tensor = h.value}, {.tensor = h.gate}};
    tn_status status = tni_iter_begin(&it, &attr, in, 2, given, mode);
    if (status == TN_OK) {
        if (!tni_is_meta(it.out))
            status = tni_run(&it, TNI_LOOP_GLU, 0, NULL);
        status = tni_iter_end(&it, status, out);
    }
    halves_free(&h);
    return status;
}

tn_status tni_kernel_glu(tn_call *call, tn_tensor *self, int64_t dim, tn_tensor **out)
{
    (void)call;
    return glu(self, dim, NULL, TNI_ITER_NEW, out);
}

tn_status tni_kernel_glu_out(tn_call *call, tn_tensor *self, int64_t dim, tn_tensor *out)
{
    (void)call;
    return glu(self, dim, out, TNI_ITER_OUT, NULL);
}

tn_status tni_kernel_glu_backward(tn_call *call, tn_tensor *grad_output, tn_tensor *self,
                                  int64_t dim, tn_tensor **out)
{
    (void)call;
    int at;
    halves h, g;
    TN_AUTO(tn_tensor) made = NULL;
    const tni_operand same[] = {{.tensor = self}, {.tensor = grad_output}};
    TN_TRY(glu_check(self, dim, &at));
    TN_TRY(tni_check_same_dtype(same, 2));
    TN_TRY(
        tni_tensor_new(self->ndim, self->sizes, NULL, (tn_dtype)self->dtype, self->device, &made));
    TN_TRY(halves_of(self, at, &h));
    tn_status status = halves_of(made, at, &g);
    if (status == TN_OK) {
        const tni_operand value[] = {{.tensor = grad_output}, {.tensor = h.gate}};
        const tni_operand gate[] = {
            {.tensor = grad_output}, {.tensor = h.value}, {.tensor = h.gate}};
        status = into(g.gate, "glu_backward", TNI_LOOP_GLU_GATE_B, gate, 3);
        if (status == TN_OK)
            status = into(g.value, "glu_backward", TNI_LOOP_GLU, value, 2);
        halves_free(&g);
    }
    halves_free(&h);
    if (status == TN_OK)
        *out = TN_MOVE(made);
    return status;
}

/* ---- prelu ---- */

tn_status tni_kernel_prelu_backward(tn_call *call, tn_tensor *grad_output, tn_tensor *self,
                                    tn_tensor *weight, tn_tensor **out0, tn_tensor **out1)
{
    (void)call;
    static const tni_pointwise_attr attr = {"prelu_backward", TNI_PW_PROMOTE, TNI_LAYOUT_OPERANDS,
                                            0, "prelu_backward_cpu"};
    const double p[TNI_LOOP_PARAMETERS] = {0};
    /* self comes first: its layout is that of the results. Both have the sizes of all three. */
    const tni_operand in[] = {{.tensor = self}, {.tensor = weight}, {.tensor = grad_output}};
    TN_AUTO(tn_tensor) of_self = NULL;
    TN_AUTO(tn_tensor) of_weight = NULL;
    tni_iter it;
    TN_TRY(tni_check_same_dtype(in, 3));
    TN_TRY(tni_check_dtypes(in, 3, TNI_PW_PROMOTE, TNI_PW_FLOATS, "prelu_backward_cpu", NULL));
    TN_TRY(tni_iter_begin(&it, &attr, in, 3, NULL, TNI_ITER_NEW));
    tn_status status = tni_is_meta(it.out) ? TN_OK : tni_run(&it, TNI_LOOP_PRELU_B, 0, p);
    TN_TRY(tni_iter_end(&it, status, &of_self));
    TN_TRY(tni_iter_begin(&it, &attr, in, 3, NULL, TNI_ITER_NEW));
    status = tni_is_meta(it.out) ? TN_OK : tni_run(&it, TNI_LOOP_PRELU_WEIGHT_B, 0, p);
    TN_TRY(tni_iter_end(&it, status, &of_weight));
    *out0 = TN_MOVE(of_self);
    *out1 = TN_MOVE(of_weight);
    return TN_OK;
}
