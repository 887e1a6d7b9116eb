/* SPDX-License-Identifier: MIT */
/* composite/window.c: window functions, frequencies and ranges: factories in terms of arange. */
#include <math.h>
#include "composite/leave.h"
#include "composite/out.h"
#include "composite/range.h"
#include "core/tensor.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

#define PI 3.14159265358979323846

static tn_tensor_opts floating(const tn_tensor_opts *opts)
{
    tn_tensor_opts o = opts ? *opts : (tn_tensor_opts)TN_TENSOR_OPTS_INIT;
    if (o.dtype == TN_DTYPE_NONE)
        o.dtype = tn_default_dtype();
    return o;
}

/* ---- windows ---- */

/* a - b cos(t) + c cos(2 t) over a full turn, or a tent (b NAN). */
static tn_status window(const char *name, int64_t length, bool periodic, double a, double b,
                        double c, const tn_tensor_opts *opts, tn_tensor **out)
{
    tn_scope *scope;
    tn_tensor_opts o = floating(opts);
    TN_CHECK(tn_dtype_is_floating(o.dtype) || tn_dtype_is_complex(o.dtype), TN_INVALID,
             "%s expects floating point dtypes, got: TensorOptions(dtype=%s, device=cpu, "
             "layout=Strided (default), "
             "requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))",
             name, tni_dtype_cpp(o.dtype));
    TN_CHECK(length >= 0, TN_INVALID,
             "%s requires non-negative window_length, got window_length=%lld", name,
             (long long)length);
    if (length <= 1)
        return tn_full(&length, 1, tn_int(1), &o, out);
    double steps = (double)(periodic ? length : length - 1);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = tnx_arange(tn_int(length), &o);
    if (isnan(b)) {
        x = tnx_mul_scalar(x, tn_float(2.0 / steps));
        tn_tensor *fall = tnx_rsub_scalar(x, tn_int(2), tn_int(1));
        return tni_leave(scope, tnx_minimum(x, fall), out);
    }
    x = tnx_mul_scalar(x, tn_float(2.0 * PI / steps));
    tn_tensor *w = tnx_add_scalar(tnx_mul_scalar(tnx_cos(x), tn_float(-b)), tn_float(a), tn_int(1));
    if (c != 0.0)
        w = tnx_add(w, tnx_mul_scalar(tnx_cos(tnx_mul_scalar(x, tn_int(2))), tn_float(c)),
                    tn_int(1));
    return tni_leave(scope, w, out);
}

#define WINDOW(name, a, b, c)                                                                \
    tn_status tni_kernel_##name##_window_periodic(tn_call *call, int64_t window_length,      \
                                                  bool periodic, const tn_tensor_opts *opts, \
                                                  tn_tensor **out)                           \
    {                                                                                        \
        (void)call;                                                                          \
        return window(#name "_window", window_length, periodic, a, b, c, opts, out);         \
    }                                                                                        \
    tn_status tni_kernel_##name##_window(tn_call *call, int64_t window_length,               \
                                         const tn_tensor_opts *opts, tn_tensor **out)        \
    {                                                                                        \
        return tni_kernel_##name##_window_periodic(call, window_length, true, opts, out);    \
    }
WINDOW(hann, 0.5, 0.5, 0.0)
WINDOW(hamming, 0.54, 0.46, 0.0)
WINDOW(blackman, 0.42, 0.5, 0.08)
WINDOW(bartlett, 0.0, (double)NAN, 0.0)

tn_status tni_kernel_hamming_window_alpha_beta(tn_call *call, int64_t window_length, bool periodic,
                                               double alpha, double beta,
                                               const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return window("hamming_window", window_length, periodic, alpha, beta, 0.0, opts, out);
}

tn_status tni_kernel_hamming_window_alpha(tn_call *call, int64_t window_length, bool periodic,
                                          double alpha, const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_kernel_hamming_window_alpha_beta(call, window_length, periodic, alpha, 0.46, opts,
                                                out);
}

/* i0(beta sqrt(1 - t^2)) / i0(beta), t from -1 to 1. */
tn_status tni_kernel_kaiser_window_beta(tn_call *call, int64_t window_length, bool periodic,
                                        double beta, const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    tn_scope *scope;
    tn_tensor_opts o = floating(opts);
    TN_CHECK(tn_dtype_is_floating(o.dtype), TN_INVALID,
             "kaiser_window expects floating point dtypes, got: TensorOptions(dtype=%s, "
             "device=cpu, layout=Strided (default), "
             "requires_grad=false (default), pinned_memory=false, memory_format=(nullopt))",
             tni_dtype_cpp(o.dtype));
    TN_CHECK(window_length >= 0, TN_INVALID,
             "kaiser_window requires non-negative window_length, got window_length=%lld",
             (long long)window_length);
    if (window_length <= 1)
        return tn_full(&window_length, 1, tn_int(1), &o, out);
    double steps = (double)(periodic ? window_length : window_length - 1);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = tnx_arange(tn_int(window_length), &o);
    tn_tensor *t = tnx_sub_scalar(tnx_mul_scalar(x, tn_float(2.0 / steps)), tn_int(1), tn_int(1));
    tn_tensor *inside = tnx_rsub_scalar(tnx_mul(t, t), tn_int(1), tn_int(1));
    tn_tensor *top =
        tnx_i0(tnx_mul_scalar(tnx_sqrt(tnx_clamp_min(inside, tn_int(0))), tn_float(beta)));
    tn_tensor *most = tnx_i0(tnx_full(NULL, 0, tn_float(beta), &o));
    return tni_leave(scope, tnx_div(top, most), out);
}

tn_status tni_kernel_kaiser_window_periodic(tn_call *call, int64_t window_length, bool periodic,
                                            const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_kernel_kaiser_window_beta(call, window_length, periodic, 12.0, opts, out);
}

tn_status tni_kernel_kaiser_window(tn_call *call, int64_t window_length, const tn_tensor_opts *opts,
                                   tn_tensor **out)
{
    return tni_kernel_kaiser_window_periodic(call, window_length, true, opts, out);
}

/* ---- frequencies ---- */

/* 0, 1, …, and, where all are wanted, the negative ones after them, over n d. */
static tn_status frequencies(int64_t n, double d, bool half, const tn_tensor_opts *opts,
                             tn_tensor **out)
{
    tn_scope *scope;
    tn_tensor_opts o = floating(opts);
    TN_CHECK(tn_dtype_is_floating(o.dtype) || tn_dtype_is_complex(o.dtype), TN_INVALID,
             "%s requires a floating point or complex dtype", half ? "rfftfreq" : "fftfreq");
    int64_t count = half ? n / 2 + 1 : n;
    TN_CHECK(count >= 0, TN_INVALID, "Trying to create tensor with negative dimension %lld: [%lld]",
             (long long)count, (long long)count);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = tnx_arange(tn_int(count), &o);
    if (!half) {
        tn_tensor *low = tnx_sub_scalar(x, tn_int(n), tn_int(1));
        x = tnx_where(tnx_lt_scalar(x, tn_int(n / 2 + n % 2)), x, low);
    }
    return tni_leave(scope, tnx_mul_scalar(x, tn_float(1.0 / ((double)n * d))), out);
}

tn_status tni_kernel_fft_fftfreq(tn_call *call, int64_t n, double d, const tn_tensor_opts *opts,
                                 tn_tensor **out)
{
    (void)call;
    return frequencies(n, d, false, opts, out);
}

tn_status tni_kernel_fft_rfftfreq(tn_call *call, int64_t n, double d, const tn_tensor_opts *opts,
                                  tn_tensor **out)
{
    (void)call;
    return frequencies(n, d, true, opts, out);
}

/* ---- ranges ---- */

tn_status tni_kernel_range_step(tn_call *call, tn_scalar start, tn_scalar end, tn_scalar step,
                                const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    tn_scope *scope;
    tn_tensor_opts o = floating(opts);
    double a = tn_scalar_to_double(start), b = tn_scalar_to_double(end),
           by = tn_scalar_to_double(step);
    TN_CHECK(!tn_dtype_is_complex(o.dtype) && o.dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED,
             "\"range_cpu\" not implemented for '%s'", tni_dtype_text(o.dtype));
    TN_CHECK(by > 0 || by < 0, TN_INVALID, "step must be nonzero");
    TN_CHECK(isfinite(a) && isfinite(b), TN_INVALID, "unsupported range: %g -> %g", a, b);
    TN_CHECK(by > 0 ? b >= a : b <= a, TN_INVALID,
             "upper bound and lower bound inconsistent with step sign");
    double count = floor((b - a) / by) + 1;
    TN_CHECK(count < 0x1p62, TN_INVALID, "range is too long");
    if (tn_dtype_is_integral(o.dtype, true)) { /* whole numbers, whatever was given */
        int64_t first = tn_scalar_to_int(start), last = tn_scalar_to_int(end);
        start = tn_int(first);
        step = tn_int(tn_scalar_to_int(step));
        TN_CHECK(step.v.i != 0, TN_INVALID, "step must be nonzero");
        if (fabs(a) >= 0x1p53 || fabs(b) >= 0x1p53) /* doubles have not these */
            count = (double)((int64_t)((uint64_t)last - (uint64_t)first) / step.v.i) + 1;
        else
            count = floor((double)(last - first) / (double)step.v.i) + 1;
    }
    tn_tensor_opts wide = o; /* places in a half are few */
    if (tn_dtype_is_floating(o.dtype))
        wide.dtype = TN_DTYPE_F64;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = tnx_arange(tn_int((int64_t)count), &wide);
    x = tnx_add_scalar(tnx_mul_scalar(x, step), start, tn_int(1));
    if (wide.dtype != o.dtype)
        x = tnx_to_dtype(x, o.dtype, false, false, TN_FORMAT_NONE);
    return tni_leave(scope, x, out);
}

/* A given tensor with as many elements keeps its sizes. */
static tn_status line_to(const char *name, tn_tensor *line, tn_tensor *out)
{
    if (out->numel != line->numel || out->ndim == 1)
        return tni_out_take(name, line, out);
    TN_AUTO(tn_tensor) shaped = NULL;
    TN_TRY(tn_view(line, out->sizes, out->ndim, &shaped));
    return tni_out_take(name, shaped, out);
}

tn_status tni_kernel_range(tn_call *call, tn_scalar start, tn_scalar end,
                           const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_kernel_range_step(call, start, end, tn_int(1), opts, out);
}

tn_status tni_kernel_range_out(tn_call *call, tn_scalar start, tn_scalar end, tn_scalar step,
                               tn_tensor *out)
{
    TN_AUTO(tn_tensor) made = NULL;
    const tn_tensor_opts o = tn_opts(tn_tensor_dtype(out), tn_tensor_device(out));
    TN_TRY(tni_kernel_range_step(call, start, end, step, &o, &made));
    return line_to("range", made, out);
}

tn_status tni_kernel_logspace(tn_call *call, tn_scalar start, tn_scalar end, int64_t steps,
                              double base, const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    tn_scope *scope;
    tn_tensor_opts o;
    TN_TRY(tni_range_opts("logspace", start, end, steps, opts, &o));
    o = floating(&o);
    tn_dtype dtype = o.dtype;
    if (tn_dtype_is_integral(dtype, false)) { /* whole ends, but powers between them */
        start = tn_int(tn_scalar_to_int(start));
        end = tn_int(tn_scalar_to_int(end));
        o.dtype = TN_DTYPE_F64;
    }
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = tnx_linspace(start, end, steps, &o);
    tn_tensor *power = tnx_pow_scalar(tn_float(base), x);
    if (o.dtype != dtype)
        power = tnx_to_dtype(power, dtype, false, false, TN_FORMAT_NONE);
    return tni_leave(scope, power, out);
}

tn_status tni_kernel_logspace_out(tn_call *call, tn_scalar start, tn_scalar end, int64_t steps,
                                  double base, tn_tensor *out)
{
    TN_AUTO(tn_tensor) made = NULL;
    const tn_tensor_opts o = tn_opts(tn_tensor_dtype(out), tn_tensor_device(out));
    TN_TRY(tni_kernel_logspace(call, start, end, steps, base, &o, &made));
    return line_to("logspace", made, out);
}
