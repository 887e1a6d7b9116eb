/* SPDX-License-Identifier: MIT */
/* composite/sample.c: random factories and dropout, in terms of the fills that a device has. */
#include "composite/out.h"
#include "core/state.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/structured.h"
#include "tenon/ops.h"

/* Nobody has seen a fresh tensor yet: filling it is not counted. */
#define FRESH(expression)                                                     \
    __extension__({                                                           \
        uint64_t saved_ = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW); \
        tn_status status_ = (expression);                                     \
        tni_tls.excluded_xor = saved_;                                        \
        status_;                                                              \
    })

/* ---- whole numbers ---- */

static tn_status randint(int64_t low, int64_t high, tn_generator *generator,
                         TN_STOLEN tn_tensor *fresh, tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = fresh;
    TN_TRY(FRESH(tn_random_from_(t, low, tn_some_int(high), generator)));
    *out = TN_MOVE(t);
    return TN_OK;
}

static tn_tensor_opts whole_by_default(const tn_tensor_opts *opts)
{
    tn_tensor_opts o = opts ? *opts : (tn_tensor_opts)TN_TENSOR_OPTS_INIT;
    if (o.dtype == TN_DTYPE_NONE)
        o.dtype = TN_DTYPE_I64;
    return o;
}

tn_status tni_kernel_randint_low_generator(tn_call *call, int64_t low, int64_t high,
                                           const int64_t *size, int64_t size_n,
                                           tn_generator *generator, const tn_tensor_opts *opts,
                                           tn_tensor **out)
{
    (void)call;
    tn_tensor *t = NULL;
    tn_tensor_opts o = whole_by_default(opts);
    TN_TRY(tn_empty(size, size_n, &o, TN_FORMAT_NONE, &t));
    return randint(low, high, generator, t, out);
}

tn_status tni_kernel_randint_generator(tn_call *call, int64_t high, const int64_t *size,
                                       int64_t size_n, tn_generator *generator,
                                       const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_kernel_randint_low_generator(call, 0, high, size, size_n, generator, opts, out);
}

tn_status tni_kernel_randint_low(tn_call *call, int64_t low, int64_t high, const int64_t *size,
                                 int64_t size_n, const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_kernel_randint_low_generator(call, low, high, size, size_n, NULL, opts, out);
}

tn_status tni_kernel_randint(tn_call *call, int64_t high, const int64_t *size, int64_t size_n,
                             const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_kernel_randint_low(call, 0, high, size, size_n, opts, out);
}

tn_status tni_kernel_randint_like_low_generator(tn_call *call, tn_tensor *self, int64_t low,
                                                int64_t high, tn_generator *generator,
                                                const tn_tensor_opts *opts,
                                                tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    tn_tensor *t = NULL;
    TN_TRY(tn_empty_like(self, opts, memory_format, &t));
    return randint(low, high, generator, t, out);
}

tn_status tni_kernel_randint_like_low(tn_call *call, tn_tensor *self, int64_t low, int64_t high,
                                      const tn_tensor_opts *opts, tn_memory_format memory_format,
                                      tn_tensor **out)
{
    return tni_kernel_randint_like_low_generator(call, self, low, high, NULL, opts, memory_format,
                                                 out);
}

tn_status tni_kernel_randint_like(tn_call *call, tn_tensor *self, int64_t high,
                                  const tn_tensor_opts *opts, tn_memory_format memory_format,
                                  tn_tensor **out)
{
    return tni_kernel_randint_like_low(call, self, 0, high, opts, memory_format, out);
}

tn_status tni_kernel_randint_like_generator(tn_call *call, tn_tensor *self, int64_t high,
                                            tn_generator *generator, const tn_tensor_opts *opts,
                                            tn_memory_format memory_format, tn_tensor **out)
{
    return tni_kernel_randint_like_low_generator(call, self, 0, high, generator, opts,
                                                 memory_format, out);
}

tn_status tni_kernel_randint_like_tensor_generator(tn_call *call, tn_tensor *self, tn_tensor *high,
                                                   tn_generator *generator,
                                                   const tn_tensor_opts *opts,
                                                   tn_memory_format memory_format, tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = NULL;
    tn_scalar s = tn_int(1);
    (void)call;
    TN_TRY(tn_empty_like(self, opts, memory_format, &t));
    /* Where it has no value, no numbers are drawn either. */
    TN_CHECK(high->ndim == 0 &&
                 (tni_is_meta(high) ? tni_is_meta(t) : high->device.type == TN_DEVICE_CPU),
             TN_INVALID, "high must be a scalar tensor and on CPU");
    if (!tni_is_meta(high))
        TN_TRY(tn_item(high, &s));
    return randint(0, tn_scalar_to_int(s), generator, TN_MOVE(t), out);
}

tn_status tni_kernel_randint_like_tensor(tn_call *call, tn_tensor *self, tn_tensor *high,
                                         const tn_tensor_opts *opts, tn_memory_format memory_format,
                                         tn_tensor **out)
{
    return tni_kernel_randint_like_tensor_generator(call, self, high, NULL, opts, memory_format,
                                                    out);
}

tn_status tni_kernel_randperm_generator(tn_call *call, int64_t n, tn_generator *generator,
                                        const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) t = NULL;
    tn_tensor_opts o = whole_by_default(opts);
    TN_TRY(tn_empty(&n, 1, &o, TN_FORMAT_NONE, &t));
    TN_TRY(FRESH(tn_randperm_generator_out(n, generator, t)));
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_kernel_randperm(tn_call *call, int64_t n, const tn_tensor_opts *opts, tn_tensor **out)
{
    return tni_kernel_randperm_generator(call, n, NULL, opts, out);
}

tn_status tni_kernel_randperm_out(tn_call *call, int64_t n, tn_tensor *out)
{
    (void)call;
    return tn_randperm_generator_out(n, NULL, out);
}

/* ---- bernoulli ---- */

tn_status tni_kernel_bernoulli(tn_call *call, tn_tensor *self, tn_generator *generator,
                               tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tn_empty_like(self, NULL, TN_FORMAT_CONTIGUOUS, &t));
    TN_TRY(FRESH(tn_bernoulli_tensor_(t, self, generator)));
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_kernel_bernoulli_out(tn_call *call, tn_tensor *self, tn_generator *generator,
                                   tn_tensor *out)
{
    (void)call;
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) cast = NULL;
    TN_TRY(tni_kernel_bernoulli(call, self, generator, &t));
    TN_TRY(FRESH(tn_to_dtype(t, (tn_dtype)out->dtype, false, false, TN_FORMAT_NONE, &cast)));
    return tni_out_take("bernoulli", cast, out);
}

tn_status tni_kernel_bernoulli_p(tn_call *call, tn_tensor *self, double p, tn_generator *generator,
                                 tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tn_empty_like(self, NULL, TN_FORMAT_CONTIGUOUS, &t));
    TN_TRY(FRESH(tn_bernoulli_(t, p, generator)));
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_kernel_bernoulli_p_out(tn_call *call, tn_tensor *self, double p,
                                     tn_generator *generator, tn_tensor *out)
{
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tni_kernel_bernoulli_p(call, self, p, generator, &t));
    return tni_out_take("bernoulli", t, out);
}

tn_status tni_kernel_bernoulli_tensor(tn_call *call, tn_tensor *self, tn_tensor *p,
                                      tn_generator *generator, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tn_empty_like(self, NULL, TN_FORMAT_NONE, &t));
    TN_TRY(FRESH(tn_bernoulli_tensor_(t, p, generator)));
    *out = TN_MOVE(t);
    return TN_OK;
}

/* ---- dropout ---- */

tn_status tni_kernel_native_dropout(tn_call *call, tn_tensor *input, double p, tn_opt_bool train,
                                    tn_tensor **out0, tn_tensor **out1)
{
    (void)call;
    tn_tensor_opts flags = tn_opts(TN_DTYPE_BOOL, input->device);
    TN_AUTO(tn_tensor) mask = NULL;
    TN_AUTO(tn_tensor) result = NULL;
    if (train == TN_BOOL_FALSE) {
        TN_TRY(tn_ones_like(input, &flags, TN_FORMAT_NONE, &mask));
        TN_TRY(tn_clone(input, TN_FORMAT_NONE, &result));
    } else {
        double kept = 1 - p, scale = kept == 0 ? 0 : 1 / kept;
        TN_TRY(tn_empty_like(input, &flags, TN_FORMAT_NONE, &mask));
        TN_TRY(FRESH(tn_bernoulli_(mask, kept, NULL)));
        TN_TRY(tn_mul(input, mask, &result));
        TN_TRY(FRESH(tn_mul_scalar_(result, tn_float(scale))));
    }
    *out0 = TN_MOVE(result);
    *out1 = TN_MOVE(mask);
    return TN_OK;
}

tn_status tni_kernel_native_dropout_backward(tn_call *call, tn_tensor *grad_output, tn_tensor *mask,
                                             double scale, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) kept = NULL;
    TN_TRY(tn_mul(grad_output, mask, &kept));
    return tn_mul_scalar(kept, tn_float(scale), out);
}

/* What to multiply by; NULL where nothing is dropped. */
static tn_status noise(tn_tensor *input, double p, bool train, tn_tensor **out)
{
    TN_CHECK(p >= 0 && p <= 1, TN_INVALID,
             "dropout probability has to be between 0 and 1, but got %g", p);
    *out = NULL;
    if (p == 0 || !train || input->numel == 0)
        return TN_OK;
    TN_AUTO(tn_tensor) t = NULL;
    if (p == 1)
        return tn_new_zeros(input, NULL, 0, NULL, out);
    TN_TRY(tn_empty_like(input, NULL, TN_FORMAT_NONE, &t));
    TN_TRY(tn_bernoulli_(t, 1 - p, NULL));
    TN_TRY(tn_div_scalar_(t, tn_float(1 - p)));
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_composite_dropout(tn_tensor *input, double p, bool train, tn_tensor **out)
{
    TN_AUTO(tn_tensor) factor = NULL;
    TN_TRY(noise(input, p, train, &factor));
    if (factor)
        return tn_mul(input, factor, out);
    *out = tn_tensor_ref(input);
    return TN_OK;
}

tn_status tni_composite_dropout_(tn_tensor *self, double p, bool train)
{
    TN_AUTO(tn_tensor) factor = NULL;
    TN_TRY(noise(self, p, train, &factor));
    return factor ? tn_mul_(self, factor) : TN_OK;
}
