/* SPDX-License-Identifier: MIT */
/* composite/create.c: factories, on any device: allocate, then fill by the operator that the device
 * has for it. */
#include "core/device.h"
#include "core/scalar.h"
#include "core/state.h"
#include "core/tensor.h"
#include "dispatch/call.h"
#include "gen/kernels.h"
#include "gen/redispatch.h"
#include "iter/range.h"
#include "tenon/ops.h"

/* ---- options ---- */

/* What is wanted, with nothing left open. */
typedef struct wanted {
    tn_dtype dtype;
    tn_device device;
} wanted;

static tn_status read_options(const tn_tensor_opts *opts, tn_dtype dtype, tn_device device,
                              wanted *out)
{
    out->dtype = dtype;
    out->device = device;
    if (!opts)
        return TN_OK;
    if (opts->dtype != TN_DTYPE_NONE)
        out->dtype = (tn_dtype)opts->dtype;
    if (opts->device.type != TN_DEVICE_NONE)
        out->device = opts->device;
    TN_CHECK(opts->layout == TN_LAYOUT_NONE || opts->layout == TN_LAYOUT_STRIDED, TN_UNSUPPORTED,
             "layout %d is not supported, expected strided", (int)opts->layout);
    TN_CHECK(opts->pin_memory != TN_BOOL_TRUE, TN_UNSUPPORTED,
             "pin_memory is not supported: no device here reads pinned memory");
    return TN_OK;
}

static tn_status read_plain(const tn_tensor_opts *opts, wanted *out)
{
    return read_options(opts, TN_DTYPE_NONE, TN_CPU, out);
}

static tn_status read_like(const tn_tensor_opts *opts, const tn_tensor *self, wanted *out)
{
    return read_options(opts, (tn_dtype)self->dtype, self->device, out);
}

static tn_status check_count(int64_t n)
{
    TN_CHECK(n <= TN_MAX_DIMS, TN_INVALID,
             "a tensor of %lld dimensions is not possible, expected 0 to %d", (long long)n,
             TN_MAX_DIMS);
    return TN_OK;
}

static bool has_negative(const int64_t *size, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (size[i] < 0)
            return true;
    return false;
}

static tn_dtype default_of(tn_dtype dtype)
{
    return dtype == TN_DTYPE_NONE ? tn_default_dtype() : dtype;
}

/* ---- memory ---- */

/* What the operators of this part give: memory as it was found, or marked (tn_set_fill_empty). */
static tn_status unset(tn_status status, tn_tensor **out)
{
    if (TNI_UNLIKELY(tn_fill_empty()) && status == TN_OK)
        tni_fill_unset(*out, 0);
    return status;
}

tn_status tni_kernel_empty(tn_call *call, const int64_t *size, int64_t size_n,
                           const tn_tensor_opts *opts, tn_memory_format memory_format,
                           tn_tensor **out)
{
    (void)call;
    wanted w;
    TN_TRY(read_plain(opts, &w));
    TN_TRY(check_count(size_n));
    w.dtype = default_of(w.dtype);
    if (TNI_LIKELY(memory_format <= TN_FORMAT_CONTIGUOUS) || has_negative(size, size_n))
        return unset(tni_tensor_new((int)size_n, size, NULL, w.dtype, w.device, out), out);
    int64_t strides[TN_MAX_DIMS];
    TN_CHECK(memory_format != TN_FORMAT_PRESERVE, TN_INVALID, "unsupported memory format Preserve");
    TN_TRY(tni_format_strides(memory_format, (int)size_n, size, strides));
    return unset(tni_tensor_new((int)size_n, size, strides, w.dtype, w.device, out), out);
}

tn_status tni_kernel_empty_strided(tn_call *call, const int64_t *size, int64_t size_n,
                                   const int64_t *stride, int64_t stride_n,
                                   const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    wanted w;
    TN_TRY(read_plain(opts, &w));
    TN_TRY(check_count(size_n));
    TN_CHECK(size_n == stride_n, TN_INVALID,
             "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
             (long long)size_n, (long long)stride_n);
    return unset(tni_tensor_new((int)size_n, size, size_n ? stride : NULL, default_of(w.dtype),
                                w.device, out),
                 out);
}

static tn_status empty_like(tn_tensor *self, const tn_tensor_opts *opts, tn_memory_format format,
                            tn_tensor **out)
{
    wanted w;
    int64_t strides[TN_MAX_DIMS];
    TN_TRY(read_like(opts, self, &w));
    if (format == TN_FORMAT_CONTIGUOUS)
        return tni_tensor_new(self->ndim, self->sizes, NULL, w.dtype, w.device, out);
    if (format == TN_FORMAT_NONE || format == TN_FORMAT_PRESERVE)
        tni_preserve_strides(self, strides);
    else
        TN_TRY(tni_format_strides(format, self->ndim, self->sizes, strides));
    return tni_tensor_new(self->ndim, self->sizes, strides, w.dtype, w.device, out);
}

tn_status tni_kernel_empty_like(tn_call *call, tn_tensor *self, const tn_tensor_opts *opts,
                                tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    return unset(empty_like(self, opts, memory_format, out), out);
}

static tn_status new_empty(tn_tensor *self, const int64_t *size, int64_t size_n,
                           const tn_tensor_opts *opts, tn_tensor **out)
{
    wanted w;
    TN_TRY(read_like(opts, self, &w));
    TN_TRY(check_count(size_n));
    return tni_tensor_new((int)size_n, size, NULL, w.dtype, w.device, out);
}

tn_status tni_kernel_new_empty(tn_call *call, tn_tensor *self, const int64_t *size, int64_t size_n,
                               const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return unset(new_empty(self, size, size_n, opts, out), out);
}

tn_status tni_kernel_new_empty_strided(tn_call *call, tn_tensor *self, const int64_t *size,
                                       int64_t size_n, const int64_t *stride, int64_t stride_n,
                                       const tn_tensor_opts *opts, tn_tensor **out)
{
    wanted w;
    TN_TRY(read_like(opts, self, &w));
    tn_tensor_opts all = tn_opts(w.dtype, w.device);
    return tni_kernel_empty_strided(call, size, size_n, stride, stride_n, &all, out);
}

/* ---- one number all over ---- */

/* Fill a fresh tensor: nobody has seen it yet, so nothing is counted or recorded. */
static tn_status fill_fresh(TN_STOLEN tn_tensor *fresh, tn_scalar value, tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = fresh;
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    bool zero = value.kind == TN_SCALAR_INT && value.v.i == 0;
    tn_status status = zero ? tn_zero_(t) : tn_fill_(t, value);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(t);
    return TN_OK;
}

static tn_status full(const int64_t *size, int64_t size_n, tn_scalar value, tn_dtype otherwise,
                      const tn_tensor_opts *opts, tn_tensor **out)
{
    wanted w;
    tn_tensor *t = NULL;
    TN_TRY(read_options(opts, otherwise, TN_CPU, &w));
    TN_TRY(check_count(size_n));
    TN_TRY(tni_tensor_new((int)size_n, size, NULL, w.dtype, w.device, &t));
    return fill_fresh(t, value, out);
}

tn_status tni_kernel_zeros(tn_call *call, const int64_t *size, int64_t size_n,
                           const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    TN_CHECK(!has_negative(size, size_n), TN_INVALID,
             "zeros: Dimension size must be non-negative.");
    return full(size, size_n, tn_int(0), tn_default_dtype(), opts, out);
}

tn_status tni_kernel_ones(tn_call *call, const int64_t *size, int64_t size_n,
                          const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return full(size, size_n, tn_int(1), tn_default_dtype(), opts, out);
}

tn_status tni_kernel_full(tn_call *call, const int64_t *size, int64_t size_n, tn_scalar fill_value,
                          const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return full(size, size_n, fill_value, tni_scalar_dtype(fill_value), opts, out);
}

tn_status tni_kernel_scalar_tensor(tn_call *call, tn_scalar s, const tn_tensor_opts *opts,
                                   tn_tensor **out)
{
    (void)call;
    return full(NULL, 0, s, tn_default_dtype(), opts, out);
}

static tn_status full_like(tn_tensor *self, tn_scalar value, const tn_tensor_opts *opts,
                           tn_memory_format format, tn_tensor **out)
{
    tn_tensor *t = NULL;
    TN_TRY(empty_like(self, opts, format, &t));
    return fill_fresh(t, value, out);
}

tn_status tni_kernel_zeros_like(tn_call *call, tn_tensor *self, const tn_tensor_opts *opts,
                                tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    return full_like(self, tn_int(0), opts, memory_format, out);
}

tn_status tni_kernel_ones_like(tn_call *call, tn_tensor *self, const tn_tensor_opts *opts,
                               tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    return full_like(self, tn_int(1), opts, memory_format, out);
}

tn_status tni_kernel_full_like(tn_call *call, tn_tensor *self, tn_scalar fill_value,
                               const tn_tensor_opts *opts, tn_memory_format memory_format,
                               tn_tensor **out)
{
    (void)call;
    return full_like(self, fill_value, opts, memory_format, out);
}

static tn_status new_full(tn_tensor *self, const int64_t *size, int64_t size_n, tn_scalar value,
                          const tn_tensor_opts *opts, tn_tensor **out)
{
    tn_tensor *t = NULL;
    TN_TRY(new_empty(self, size, size_n, opts, &t));
    return fill_fresh(t, value, out);
}

tn_status tni_kernel_new_zeros(tn_call *call, tn_tensor *self, const int64_t *size, int64_t size_n,
                               const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return new_full(self, size, size_n, tn_int(0), opts, out);
}

tn_status tni_kernel_new_ones(tn_call *call, tn_tensor *self, const int64_t *size, int64_t size_n,
                              const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return new_full(self, size, size_n, tn_int(1), opts, out);
}

tn_status tni_kernel_new_full(tn_call *call, tn_tensor *self, const int64_t *size, int64_t size_n,
                              tn_scalar fill_value, const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return new_full(self, size, size_n, fill_value, opts, out);
}

/* ---- counting ---- */

static tn_status arange(tn_scalar start, tn_scalar end, tn_scalar step, const tn_tensor_opts *opts,
                        tn_tensor **out)
{
    wanted w;
    tni_range range;
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(read_options(opts, tni_range_dtype(start, end, step), TN_CPU, &w));
    TN_TRY(tni_range_check(start, end, step, w.dtype, &range));
    TN_TRY(tni_tensor_new(1, &range.n, NULL, w.dtype, w.device, &t));
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tn_arange_out(start, end, step, t);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_kernel_arange(tn_call *call, tn_scalar end, const tn_tensor_opts *opts,
                            tn_tensor **out)
{
    (void)call;
    return arange(tn_int(0), end, tn_int(1), opts, out);
}

tn_status tni_kernel_arange_start(tn_call *call, tn_scalar start, tn_scalar end,
                                  const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return arange(start, end, tn_int(1), opts, out);
}

tn_status tni_kernel_arange_start_step(tn_call *call, tn_scalar start, tn_scalar end,
                                       tn_scalar step, const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return arange(start, end, step, opts, out);
}

tn_status tni_kernel_arange_end_out(tn_call *call, tn_scalar end, tn_tensor *out)
{
    (void)call;
    return tn_arange_out(tn_int(0), end, tn_int(1), out);
}

/* ---- random numbers ---- */

static tn_status random_fresh(TN_STOLEN tn_tensor *fresh, bool normal, tn_generator *generator,
                              tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = fresh;
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = normal ? tn_normal_(t, 0, 1, generator) : tn_uniform_(t, 0, 1, generator);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(t);
    return TN_OK;
}

static tn_status random_sizes(const int64_t *size, int64_t size_n, tn_generator *generator,
                              const tn_tensor_opts *opts, bool normal, tn_tensor **out)
{
    wanted w;
    tn_tensor *t = NULL;
    TN_TRY(read_plain(opts, &w));
    TN_TRY(check_count(size_n));
    TN_TRY(tni_tensor_new((int)size_n, size, NULL, default_of(w.dtype), w.device, &t));
    return random_fresh(t, normal, generator, out);
}

static tn_status random_like(tn_tensor *self, const tn_tensor_opts *opts, tn_memory_format format,
                             bool normal, tn_generator *generator, tn_tensor **out)
{
    tn_tensor *t = NULL;
    TN_TRY(empty_like(self, opts, format, &t));
    return random_fresh(t, normal, generator, out);
}

tn_status tni_kernel_rand(tn_call *call, const int64_t *size, int64_t size_n,
                          const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return random_sizes(size, size_n, NULL, opts, false, out);
}

tn_status tni_kernel_randn(tn_call *call, const int64_t *size, int64_t size_n,
                           const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return random_sizes(size, size_n, NULL, opts, true, out);
}

tn_status tni_kernel_rand_generator(tn_call *call, const int64_t *size, int64_t size_n,
                                    tn_generator *generator, const tn_tensor_opts *opts,
                                    tn_tensor **out)
{
    (void)call;
    return random_sizes(size, size_n, generator, opts, false, out);
}

tn_status tni_kernel_randn_generator(tn_call *call, const int64_t *size, int64_t size_n,
                                     tn_generator *generator, const tn_tensor_opts *opts,
                                     tn_tensor **out)
{
    (void)call;
    return random_sizes(size, size_n, generator, opts, true, out);
}

tn_status tni_kernel_rand_like(tn_call *call, tn_tensor *self, const tn_tensor_opts *opts,
                               tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    return random_like(self, opts, memory_format, false, NULL, out);
}

tn_status tni_kernel_randn_like(tn_call *call, tn_tensor *self, const tn_tensor_opts *opts,
                                tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    return random_like(self, opts, memory_format, true, NULL, out);
}

tn_status tni_kernel_rand_like_generator(tn_call *call, tn_tensor *self, tn_generator *generator,
                                         const tn_tensor_opts *opts, tn_memory_format memory_format,
                                         tn_tensor **out)
{
    (void)call;
    return random_like(self, opts, memory_format, false, generator, out);
}

tn_status tni_kernel_randn_like_generator(tn_call *call, tn_tensor *self, tn_generator *generator,
                                          const tn_tensor_opts *opts,
                                          tn_memory_format memory_format, tn_tensor **out)
{
    (void)call;
    return random_like(self, opts, memory_format, true, generator, out);
}

tn_status tni_kernel_empty_out(tn_call *call, const int64_t *size, int64_t size_n,
                               tn_memory_format memory_format, tn_tensor *out)
{
    (void)call;
    TN_CHECK(memory_format == TN_FORMAT_NONE, TN_INVALID,
             "'memory_format' argument is incompatible with 'out' tensor argument");
    return tn_resize_(out, size, size_n, TN_FORMAT_NONE);
}

/* Nothing is written: the resizing counts, where it changes something. */
tn_status tni_kernel_empty_out_below(tn_call *call, const int64_t *size, int64_t size_n,
                                     tn_memory_format memory_format, tn_tensor *out)
{
    const _Atomic uint32_t *versions = out->versions;
    uint32_t before = versions ? atomic_load_explicit(versions, memory_order_relaxed) : 0;
    bool changes = out->ndim != size_n;
    for (int d = 0; !changes && d < out->ndim; d++)
        changes = out->sizes[d] != size[d];
    TN_TRY(tni_re_empty_out(call, call->keys & TNI_KS_AFTER_ADINPLACE_OR_VIEW, size, size_n,
                            memory_format, out));
    /* A fake tensor is resized below this layer, where nobody counts. */
    if (changes && versions && atomic_load_explicit(versions, memory_order_relaxed) == before)
        TN_TRY(tni_tensor_bump_version(out));
    return TN_OK;
}
