/* SPDX-License-Identifier: MIT */
/* composite/fourier.c: Fourier transforms by their usual names, of one dimension and of several.
 * All come down to _fft_c2c, _fft_r2c and _fft_c2r. */
#include <string.h>
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

enum { NO_FACTOR, ROOT, COUNT };

/* What the results are divided by. */
static tn_status factor(const char *norm, bool forward, int64_t *out)
{
    if (!norm || strcmp(norm, "backward") == 0)
        *out = forward ? NO_FACTOR : COUNT;
    else if (strcmp(norm, "forward") == 0)
        *out = forward ? COUNT : NO_FACTOR;
    else if (strcmp(norm, "ortho") == 0)
        *out = ROOT;
    else
        TN_FAIL(TN_INVALID, "Invalid normalization mode: \"%s\"", norm);
    return TN_OK;
}

/* ---- arguments ---- */

/* A transform: which dimensions, how many points each. */
typedef struct transform {
    int64_t dims[TN_MAX_DIMS], sizes[TN_MAX_DIMS];
    int64_t n;
} transform;

static tn_tensor *floating(tn_tensor *t)
{
    if (!tn_dtype_is_integral((tn_dtype)t->dtype, true))
        return t;
    return tnx_to_dtype(t, tn_default_dtype(), false, false, TN_FORMAT_NONE);
}

static tn_tensor *complex_of(tn_tensor *t)
{
    if (!t || tn_dtype_is_complex((tn_dtype)t->dtype))
        return t;
    tn_dtype dtype = t->dtype == TN_DTYPE_F64 ? TN_DTYPE_C128 : TN_DTYPE_C64;
    return tnx_to_dtype(t, dtype, false, false, TN_FORMAT_NONE);
}

/* @p t cut or filled up with zeros along the dimensions. */
static tn_tensor *resized(tn_tensor *t, const transform *x)
{
    int64_t pad[2 * TN_MAX_DIMS] = {0};
    bool grows = false;
    int ndim = t ? t->ndim : 0;
    for (int64_t i = 0; t && i < x->n; i++) {
        int64_t d = x->dims[i], have = t->sizes[d];
        if (x->sizes[i] < have)
            t = tnx_slice(t, d, tn_some_int(0), tn_some_int(x->sizes[i]), 1);
        else if (x->sizes[i] > have) {
            pad[2 * (ndim - 1 - d) + 1] = x->sizes[i] - have;
            grows = true;
        }
    }
    return grows ? tnx_constant_pad_nd(t, pad, 2 * ndim, tn_int(0)) : t;
}

static tn_status check_halves(const tn_tensor *self)
{
    TN_CHECK(self->dtype != TN_DTYPE_F16 && self->dtype != TN_DTYPE_BF16, TN_INVALID,
             "Unsupported dtype %s", tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

/* What becomes half a spectrum has no imaginary part. */
static tn_status check_real(const char *name, const tn_tensor *self)
{
    if (!tn_dtype_is_complex((tn_dtype)self->dtype))
        return TN_OK;
    TN_CHECK(strcmp(name, "ihfftn") != 0, TN_INVALID,
             "Only supports floating-point dtypes, but found: %s",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_FAIL(TN_INVALID, "%s expects a %s input tensor, but got %s", name,
            strcmp(name, "rfftn") == 0 ? "real-valued" : "real",
            tni_dtype_text((tn_dtype)self->dtype));
}

/* @p to_real: the size of the result is checked by who computes it. */
static tn_status one_dim(const tn_tensor *self, tn_opt_int n, int64_t dim, bool to_real,
                         transform *x)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(self->ndim > 0, TN_INDEX, "Dimension specified as %lld but tensor has no dimensions",
             (long long)dim);
    TN_TRY(check_halves(self));
    x->n = 1;
    x->dims[0] = d;
    x->sizes[0] = n.has ? n.value : self->sizes[d];
    TN_CHECK(x->sizes[0] >= 1 || to_real, TN_INVALID,
             "Invalid number of data points (%lld) specified", (long long)x->sizes[0]);
    return TN_OK;
}

static tn_status several_dims(const tn_tensor *self, const int64_t *s, int64_t s_n,
                              const int64_t *dim, int64_t dim_n, transform *x)
{
    uint64_t seen = 0;
    TN_CHECK(!dim || !s || dim_n == s_n, TN_INVALID,
             "When given, dim and shape arguments must have the same length");
    x->n = dim ? dim_n : s ? s_n : self->ndim;
    TN_CHECK(!dim || dim_n == 0 || self->ndim > 0, TN_INDEX,
             "Dimension specified as %lld but tensor has no dimensions", (long long)dim[0]);
    TN_CHECK(x->n <= self->ndim, TN_INVALID,
             "Got shape with %lld values but input tensor only has %d dimensions.", (long long)x->n,
             self->ndim);
    for (int64_t i = 0; i < x->n; i++) {
        int d = (int)(self->ndim - x->n + i);
        if (dim)
            TN_TRY(tni_wrap_dim(dim[i], self->ndim, &d));
        TN_CHECK(!(seen >> d & 1), TN_INVALID, "FFT dims must be unique");
        seen |= UINT64_C(1) << d;
        x->dims[i] = d;
        x->sizes[i] = s && s[i] != -1 ? s[i] : self->sizes[d];
        TN_CHECK(x->sizes[i] > 0, TN_INVALID, "Invalid number of data points (%lld) specified",
                 (long long)x->sizes[i]);
    }
    return TN_OK;
}

/* ---- transforms ---- */

static tn_status complex_to_complex(tn_tensor *self, const transform *x, const char *norm,
                                    bool forward, tn_tensor **out)
{
    int64_t how;
    tn_scope *scope;
    TN_TRY(check_halves(self));
    TN_TRY(factor(norm, forward, &how));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *t = resized(complex_of(floating(self)), x);
    return tni_leave(scope, tnx__fft_c2c(t, x->dims, x->n, how, forward), out);
}

/* Along one dimension the spectrum of a real line is half of the work, and the inverse of it but
 * for a factor its conjugate. */
static tn_status along_one(tn_tensor *self, tn_opt_int n, int64_t dim, const char *norm,
                           bool forward, tn_tensor **out)
{
    transform x;
    int64_t how;
    tn_scope *scope;
    TN_TRY(one_dim(self, n, dim, false, &x));
    if (tn_dtype_is_complex((tn_dtype)self->dtype))
        return complex_to_complex(self, &x, norm, forward, out);
    TN_TRY(check_halves(self));
    TN_TRY(factor(norm, forward, &how));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *t = tnx__fft_r2c(resized(floating(self), &x), x.dims, 1, how, false);
    return tni_leave(scope, forward ? t : tnx_conj_physical_(t), out);
}

/* Half of the last dimension; @p hermitian: of the inverse, conjugate. */
static tn_status real_to_complex(const char *name, tn_tensor *self, const transform *x,
                                 const char *norm, tn_tensor **out)
{
    bool hermitian = name[0] == 'i';
    int64_t how;
    tn_scope *scope;
    TN_TRY(check_real(name, self));
    TN_TRY(check_halves(self));
    TN_CHECK(x->n > 0, TN_INVALID, "%s must transform at least one axis", name);
    TN_TRY(factor(norm, !hermitian, &how));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *t = resized(floating(self), x);
    if (!hermitian)
        return tni_leave(scope, tnx__fft_r2c(t, x->dims, x->n, how, true), out);
    t = tnx_conj_physical(tnx__fft_r2c(t, x->dims + x->n - 1, 1, how, true));
    if (x->n > 1)
        t = tnx__fft_c2c(t, x->dims, x->n - 1, how, false);
    return tni_leave(scope, t, out);
}

/* @p x->sizes of the last dimension is that of the result. */
static tn_status complex_to_real(tn_tensor *self, transform x, bool given, const char *norm,
                                 bool hermitian, tn_tensor **out)
{
    int64_t how, last = x.n - 1;
    tn_scope *scope;
    TN_CHECK(x.n > 0, TN_INVALID, "%s must transform at least one axis",
             hermitian ? "hfftn" : "irfftn");
    int64_t size = given ? x.sizes[last] : 2 * (x.sizes[last] - 1);
    TN_CHECK(size >= 1, TN_INVALID, "Invalid number of data points (%lld) specified",
             (long long)size);
    TN_TRY(check_halves(self));
    TN_TRY(factor(norm, hermitian, &how));
    x.sizes[last] = size / 2 + 1;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *t = resized(complex_of(floating(self)), &x);
    if (!hermitian)
        return tni_leave(scope, tnx__fft_c2r(t, x.dims, x.n, how, size), out);
    if (last > 0)
        t = tnx__fft_c2c(t, x.dims, last, how, true);
    return tni_leave(scope, tnx__fft_c2r(tnx_conj_physical(t), x.dims + last, 1, how, size), out);
}

#define ONE tn_tensor *self, tn_opt_int n, int64_t dim, const char *norm, tn_tensor **out
#define MANY                                                                           \
    tn_tensor *self, const int64_t *s, int64_t s_n, const int64_t *dim, int64_t dim_n, \
        const char *norm, tn_tensor **out

tn_status tni_composite_fft_fft(ONE)
{
    return along_one(self, n, dim, norm, true, out);
}

tn_status tni_composite_fft_ifft(ONE)
{
    return along_one(self, n, dim, norm, false, out);
}

tn_status tni_composite_fft_rfft(ONE)
{
    transform x;
    TN_TRY(check_real("rfft", self));
    TN_TRY(one_dim(self, n, dim, false, &x));
    return real_to_complex("rfft", self, &x, norm, out);
}

tn_status tni_composite_fft_ihfft(ONE)
{
    transform x;
    TN_TRY(check_real("ihfft", self));
    TN_TRY(one_dim(self, n, dim, false, &x));
    return real_to_complex("ihfft", self, &x, norm, out);
}

tn_status tni_composite_fft_irfft(ONE)
{
    transform x;
    TN_TRY(one_dim(self, n, dim, true, &x));
    return complex_to_real(self, x, n.has, norm, false, out);
}

tn_status tni_composite_fft_hfft(ONE)
{
    transform x;
    TN_TRY(one_dim(self, n, dim, true, &x));
    return complex_to_real(self, x, n.has, norm, true, out);
}

tn_status tni_composite_fft_fftn(MANY)
{
    transform x;
    TN_TRY(several_dims(self, s, s_n, dim, dim_n, &x));
    return complex_to_complex(self, &x, norm, true, out);
}

tn_status tni_composite_fft_ifftn(MANY)
{
    transform x;
    TN_TRY(several_dims(self, s, s_n, dim, dim_n, &x));
    return complex_to_complex(self, &x, norm, false, out);
}

tn_status tni_composite_fft_rfftn(MANY)
{
    transform x;
    TN_TRY(check_real("rfftn", self));
    TN_TRY(several_dims(self, s, s_n, dim, dim_n, &x));
    return real_to_complex("rfftn", self, &x, norm, out);
}

tn_status tni_composite_fft_ihfftn(MANY)
{
    transform x;
    TN_TRY(several_dims(self, s, s_n, dim, dim_n, &x));
    return real_to_complex("ihfftn", self, &x, norm, out);
}

static bool last_given(const int64_t *s, int64_t s_n)
{
    return s && s_n > 0 && s[s_n - 1] != -1;
}

tn_status tni_composite_fft_irfftn(MANY)
{
    transform x;
    TN_TRY(several_dims(self, s, s_n, dim, dim_n, &x));
    return complex_to_real(self, x, last_given(s, s_n), norm, false, out);
}

tn_status tni_composite_fft_hfftn(MANY)
{
    transform x;
    TN_TRY(several_dims(self, s, s_n, dim, dim_n, &x));
    return complex_to_real(self, x, last_given(s, s_n), norm, true, out);
}

/* ---- order of frequencies ---- */

static tn_status shift(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool back,
                       tn_tensor **out)
{
    int64_t dims[TN_MAX_DIMS], by[TN_MAX_DIMS], n = dim ? dim_n : self->ndim;
    TN_CHECK(n <= TN_MAX_DIMS, TN_INVALID, "too many dimensions");
    for (int64_t i = 0; i < n; i++) {
        int d = (int)i;
        if (dim)
            TN_TRY(tni_wrap_dim(dim[i], self->ndim, &d));
        dims[i] = d;
        by[i] = self->ndim ? (back ? (self->sizes[d] + 1) / 2 : self->sizes[d] / 2) : 0;
    }
    return tn_roll(self, by, n, dims, n, out);
}

tn_status tni_composite_fft_fftshift(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                     tn_tensor **out)
{
    return shift(self, dim, dim_n, false, out);
}

tn_status tni_composite_fft_ifftshift(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                      tn_tensor **out)
{
    return shift(self, dim, dim_n, true, out);
}
