/* SPDX-License-Identifier: MIT */
/* composite/fourier.c: Fourier transforms by their usual names, of one dimension and of several,
 * and in windows along a signal. All come down to _fft_c2c, _fft_r2c and _fft_c2r. */
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

static tn_status one_dim(const tn_tensor *self, tn_opt_int n, int64_t dim, transform *x)
{
    int d;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(self->ndim > 0, TN_INDEX, "Dimension specified as %lld but tensor has no dimensions",
             (long long)dim);
    x->n = 1;
    x->dims[0] = d;
    x->sizes[0] = n.has ? n.value : self->sizes[d];
    TN_CHECK(x->sizes[0] >= 1, TN_INVALID, "Invalid number of data points (%lld) specified",
             (long long)x->sizes[0]);
    return TN_OK;
}

static tn_status several_dims(const tn_tensor *self, const int64_t *s, int64_t s_n,
                              const int64_t *dim, int64_t dim_n, transform *x)
{
    uint64_t seen = 0;
    TN_CHECK(!dim || !s || dim_n == s_n, TN_INVALID,
             "When given, dim and shape arguments must have the same length");
    x->n = dim ? dim_n : s ? s_n : self->ndim;
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

static tn_status check_halves(const tn_tensor *self)
{
    TN_CHECK(self->dtype != TN_DTYPE_F16 && self->dtype != TN_DTYPE_BF16, TN_INVALID,
             "Unsupported dtype %s", tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

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

/* Half of the last dimension; @p hermitian: of the inverse, conjugate. */
static tn_status real_to_complex(const char *name, tn_tensor *self, const transform *x,
                                 const char *norm, tn_tensor **out)
{
    bool hermitian = name[0] == 'i';
    int64_t how;
    tn_scope *scope;
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)self->dtype), TN_INVALID,
             "%s expects a %s input tensor, but got %s", name,
             strcmp(name, "rfftn") == 0 ? "real-valued" : "real",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_TRY(check_halves(self));
    TN_CHECK(x->n > 0, TN_INVALID, "rfftn must transform at least one axis");
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
    TN_TRY(check_halves(self));
    TN_CHECK(x.n > 0, TN_INVALID, "irfftn must transform at least one axis");
    TN_TRY(factor(norm, hermitian, &how));
    int64_t size = given ? x.sizes[last] : 2 * (x.sizes[last] - 1);
    TN_CHECK(size >= 1, TN_INVALID, "Invalid number of data points (%lld) specified",
             (long long)size);
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
    transform x;
    TN_TRY(one_dim(self, n, dim, &x));
    return complex_to_complex(self, &x, norm, true, out);
}

tn_status tni_composite_fft_ifft(ONE)
{
    transform x;
    TN_TRY(one_dim(self, n, dim, &x));
    return complex_to_complex(self, &x, norm, false, out);
}

tn_status tni_composite_fft_rfft(ONE)
{
    transform x;
    TN_TRY(one_dim(self, n, dim, &x));
    return real_to_complex("rfft", self, &x, norm, out);
}

tn_status tni_composite_fft_ihfft(ONE)
{
    transform x;
    TN_TRY(one_dim(self, n, dim, &x));
    return real_to_complex("ihfft", self, &x, norm, out);
}

tn_status tni_composite_fft_irfft(ONE)
{
    transform x;
    TN_TRY(one_dim(self, n, dim, &x));
    return complex_to_real(self, x, n.has, norm, false, out);
}

tn_status tni_composite_fft_hfft(ONE)
{
    transform x;
    TN_TRY(one_dim(self, n, dim, &x));
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

/* ---- windows along a signal ---- */

typedef struct frames {
    int64_t hop, length; /* of the window, which is centred in n_fft points */
} frames;

static tn_status frames_of(const char *op, int64_t n_fft, tn_opt_int hop, tn_opt_int length,
                           const tn_tensor *window, frames *f)
{
    f->hop = hop.has ? hop.value : n_fft / 4;
    f->length = length.has ? length.value : n_fft;
    TN_CHECK(n_fft > 0, TN_INVALID, "%s: expected n_fft > 0, but got n_fft=%lld", op,
             (long long)n_fft);
    TN_CHECK(f->hop > 0, TN_INVALID, "%s: expected hop_length > 0, but got hop_length=%lld", op,
             (long long)f->hop);
    TN_CHECK(f->length > 0 && f->length <= n_fft, TN_INVALID,
             "%s: expected 0 < win_length <= n_fft, but got win_length=%lld", op,
             (long long)f->length);
    TN_CHECK(!window || (window->ndim == 1 && window->numel == f->length), TN_INVALID,
             "%s: expected a 1D window tensor of size equal to win_length=%lld, but got window "
             "with size [%lld]",
             op, (long long)f->length, (long long)(window ? window->numel : 0));
    return TN_OK;
}

/* The window of n_fft points; NULL: ones everywhere. */
static tn_tensor *wide_window(tn_tensor *like, tn_tensor *window, int64_t n_fft, frames f)
{
    if (f.length == n_fft)
        return window;
    tn_tensor *w = window ? window : tnx_new_full(like, &f.length, 1, tn_int(1), NULL);
    int64_t left = (n_fft - f.length) / 2;
    return tnx_constant_pad_nd(w, (const int64_t[]){left, n_fft - f.length - left}, 2, tn_int(0));
}

tn_status tni_composite_stft_center(tn_tensor *self, int64_t n_fft, tn_opt_int hop_length,
                                    tn_opt_int win_length, tn_tensor *window, bool center,
                                    const char *pad_mode, bool normalized, tn_opt_bool onesided,
                                    tn_opt_bool return_complex, tn_opt_bool align_to_window,
                                    tn_tensor **out)
{
    frames f;
    tn_scope *scope;
    bool complex = tn_dtype_is_complex((tn_dtype)self->dtype) ||
                   (window && tn_dtype_is_complex((tn_dtype)window->dtype));
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype) ||
                 tn_dtype_is_complex((tn_dtype)self->dtype),
             TN_INVALID, "stft: expected a tensor of floating point or complex values");
    TN_CHECK(self->ndim == 1 || self->ndim == 2, TN_INVALID, "stft: expected a 1D or 2D tensor");
    TN_CHECK(
        return_complex != TN_BOOL_NONE || complex, TN_INVALID,
        "stft requires the return_complex parameter be given for real inputs, and will further "
        "require that return_complex=True in a future PyTorch release.");
    TN_CHECK(align_to_window != TN_BOOL_TRUE, TN_UNSUPPORTED,
             "stft: align_to_window is not supported");
    TN_TRY(frames_of("stft", n_fft, hop_length, win_length, window, &f));
    int64_t length = self->sizes[self->ndim - 1] + (center ? n_fft / 2 * 2 : 0);
    TN_CHECK(n_fft <= length, TN_INVALID, "stft: expected 0 < n_fft < %lld, but got n_fft=%lld",
             (long long)length, (long long)n_fft);
    bool half = onesided != TN_BOOL_NONE ? onesided == TN_BOOL_TRUE : !complex;
    TN_CHECK(!(half && complex), TN_INVALID,
             "Cannot have onesided output if window or input is complex");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = self;
    if (center) {
        const int64_t pad[] = {n_fft / 2, n_fft / 2};
        x = self->ndim == 1 ? tnx_unsqueeze(tnx_unsqueeze(x, 0), 0) : tnx_unsqueeze(x, 1);
        x = tnx_pad(x, pad, 2, pad_mode, (tn_opt_float){0});
        x = tnx_reshape(x,
                        self->ndim == 1 ? (const int64_t[]){length}
                                        : (const int64_t[]){self->sizes[0], length},
                        self->ndim);
    }
    tn_tensor *w = wide_window(self, window, n_fft, f);
    x = tnx_unfold(x, -1, n_fft, f.hop);
    if (w)
        x = tnx_mul(x, w);
    const int64_t last = self->ndim; /* [batch,] frames, points */
    int64_t how = normalized ? ROOT : NO_FACTOR;
    x = complex ? tnx__fft_c2c(complex_of(x), &last, 1, how, true)
                : tnx__fft_r2c(x, &last, 1, how, half);
    x = tnx_transpose(x, -2, -1);
    bool pairs = return_complex == TN_BOOL_FALSE && !complex;
    return tni_leave(scope, pairs ? tnx_view_as_real(x) : x, out);
}

tn_status tni_composite_stft(tn_tensor *self, int64_t n_fft, tn_opt_int hop_length,
                             tn_opt_int win_length, tn_tensor *window, bool normalized,
                             tn_opt_bool onesided, tn_opt_bool return_complex,
                             tn_opt_bool align_to_window, tn_tensor **out)
{
    return tni_composite_stft_center(self, n_fft, hop_length, win_length, window, false, "constant",
                                     normalized, onesided, return_complex, align_to_window, out);
}

/* Frames [batch, points, frames] added up where they overlap: [batch, length]. */
static tn_tensor *overlapped(tn_tensor *frames_, int64_t n_fft, int64_t hop, int64_t length)
{
    const int64_t size[] = {1, length}, kernel[] = {1, n_fft}, one[] = {1, 1}, none[] = {0, 0},
                  stride[] = {1, hop};
    tn_tensor *t = tnx_col2im(frames_, size, 2, kernel, 2, one, 2, none, 2, stride, 2);
    return tnx_squeeze_dim(tnx_squeeze_dim(t, 1), 1);
}

tn_status tni_composite_istft(tn_tensor *self, int64_t n_fft, tn_opt_int hop_length,
                              tn_opt_int win_length, tn_tensor *window, bool center,
                              bool normalized, tn_opt_bool onesided, tn_opt_int length,
                              bool return_complex, tn_tensor **out)
{
    frames f;
    tn_scope *scope;
    TN_CHECK(tn_dtype_is_complex((tn_dtype)self->dtype), TN_INVALID,
             "istft requires a complex-valued input tensor matching the output from stft with "
             "return_complex=True.");
    TN_CHECK(self->ndim == 2 || self->ndim == 3, TN_INVALID,
             "istft: expected a tensor with 2 or 3 dimensions");
    TN_CHECK(self->numel > 0, TN_INVALID, "istft: input tensor cannot be empty.");
    TN_CHECK(!return_complex, TN_UNSUPPORTED, "istft: a complex result is not supported");
    TN_TRY(frames_of("istft", n_fft, hop_length, win_length, window, &f));
    int64_t bins = self->sizes[self->ndim - 2], count = self->sizes[self->ndim - 1];
    bool half = onesided != TN_BOOL_NONE ? onesided == TN_BOOL_TRUE : bins != n_fft;
    TN_CHECK(bins == (half ? n_fft / 2 + 1 : n_fft), TN_INVALID,
             "istft: expected the frequency dimension (3rd to the last) of the input tensor to "
             "match n_fft %s2 + 1 when onesided=%s, but got %lld",
             half ? "/ " : "", half ? "True" : "False", (long long)bins);
    int64_t whole = n_fft + f.hop * (count - 1), start = center ? n_fft / 2 : 0;
    int64_t end = length.has ? start + length.value : center ? whole - n_fft / 2 : whole;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = self->ndim == 2 ? tnx_unsqueeze(self, 0) : self;
    x = tnx_transpose(x, 1, 2); /* batch, frames, bins */
    const int64_t last = 2;
    int64_t how = normalized ? ROOT : COUNT;
    if (!half)
        x = tnx_slice(x, -1, tn_some_int(0), tn_some_int(n_fft / 2 + 1), 1);
    x = tnx__fft_c2r(x, &last, 1, how, n_fft);
    tn_tensor *w = NULL;
    if (x) {
        w = window ? window : tnx_new_full(x, &f.length, 1, tn_int(1), NULL);
        tn_tensor *wide = wide_window(x, w, n_fft, f);
        w = wide;
    }
    tn_tensor *y = overlapped(tnx_transpose(tnx_mul(x, w), 1, 2), n_fft, f.hop, whole);
    tn_tensor *squares =
        tnx_expand(tnx_unsqueeze(tnx_mul(w, w), -1), (const int64_t[]){1, n_fft, count}, 3, false);
    tn_tensor *weight =
        overlapped(tnx_contiguous(squares, TN_FORMAT_CONTIGUOUS), n_fft, f.hop, whole);
    int64_t stop = end < whole ? end : whole;
    y = tnx_slice(y, -1, tn_some_int(start), tn_some_int(stop), 1);
    weight = tnx_slice(weight, -1, tn_some_int(start), tn_some_int(stop), 1);
    y = tnx_div(y, weight);
    if (end > whole)
        y = tnx_constant_pad_nd(y, (const int64_t[]){0, end - whole}, 2, tn_int(0));
    return tni_leave(scope, self->ndim == 2 ? tnx_squeeze_dim(y, 0) : y, out);
}
