/* SPDX-License-Identifier: MIT */
/* composite/signal.c: Fourier transforms in windows along a signal, and back. */
#include <stdarg.h>
#include <stdio.h>
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

enum { NO_FACTOR, ROOT, COUNT };

/* One call: what it was asked, with the defaults in their places. */
typedef struct frames {
    const char *op;
    const tn_tensor *signal, *window;
    int64_t n_fft, hop, length; /* of the window, which is centred in n_fft points */
    bool center, normalized, return_complex;
    tn_opt_bool onesided, align_to_window;
    tn_opt_int result_length;
} frames;

#define CALL_TEXT 512

/* As the reference calls a tensor of a dtype: torch.FloatTensor, CPUComplexFloatType. */
static void class_name(tn_dtype dtype, char *room, size_t n)
{
    bool named = !tn_dtype_is_complex(dtype) && dtype != TN_DTYPE_BF16 && dtype != TN_DTYPE_BOOL;
    snprintf(room, n, named ? "torch.%sTensor" : "CPU%sType", tni_dtype_text(dtype));
}

static const char *flag(tn_opt_bool b)
{
    return b == TN_BOOL_NONE ? "None" : b == TN_BOOL_TRUE ? "1" : "0";
}

/* The call as messages begin with it. */
static const char *call_text(const frames *f, char *room, size_t n)
{
    char sizes[TNI_SIZES_TEXT], class[48], window[TNI_SIZES_TEXT + 64] = "None",
                                                                   length[32] = "None";
    if (f->window) {
        class_name((tn_dtype)f->window->dtype, class, sizeof class);
        snprintf(window, sizeof window, "%s{%s}", class,
                 tni_format_sizes(f->window->ndim, f->window->sizes, sizes, sizeof sizes));
    }
    if (f->result_length.has)
        snprintf(length, sizeof length, "%lld", (long long)f->result_length.value);
    class_name((tn_dtype)f->signal->dtype, class, sizeof class);
    tni_format_sizes(f->signal->ndim, f->signal->sizes, sizes, sizeof sizes);
    int used = snprintf(
        room, n, "%s(%s%s, n_fft=%lld, hop_length=%lld, win_length=%lld, window=%s, ", f->op, class,
        sizes, (long long)f->n_fft, (long long)f->hop, (long long)f->length, window);
    size_t at = (size_t)used < n ? (size_t)used : n - 1;
    if (f->op[0] == 'i')
        snprintf(room + at, n - at,
                 "center=%d, normalized=%d, onesided=%s, length=%s, return_complex=%d)", f->center,
                 f->normalized, flag(f->onesided), length, f->return_complex);
    else
        snprintf(room + at, n - at,
                 "normalized=%d, onesided=%s, return_complex=%d, align_to_window=%s)",
                 f->normalized, flag(f->onesided), f->return_complex, flag(f->align_to_window));
    return room;
}

#define CHECK(condition, ...)              \
    do {                                   \
        if (TNI_UNLIKELY(!(condition)))    \
            return refuse(f, __VA_ARGS__); \
    } while (0)

TNI_COLD __attribute__((format(printf, 2, 3))) static tn_status refuse(const frames *f,
                                                                       const char *format, ...)
{
    char call[CALL_TEXT], why[CALL_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    TN_FAIL(TN_INVALID, "%s %s", call_text(f, call, sizeof call), why);
}

static tn_status check_window(const frames *f)
{
    char sizes[TNI_SIZES_TEXT];
    const tn_tensor *w = f->window;
    CHECK(!w || (w->ndim == 1 && w->numel == f->length),
          f->op[0] == 'i'
              ? ": Invalid window shape. window has to be 1D and length of `win_length`"
              : ": expected a 1D window tensor of size equal to win_length=%lld, but got window "
                "with size %s",
          (long long)f->length, w ? tni_format_sizes(w->ndim, w->sizes, sizes, sizeof sizes) : "");
    return TN_OK;
}

/* The window of n_fft points; NULL: ones everywhere. */
static tn_tensor *wide_window(tn_tensor *like, tn_tensor *window, const frames *f)
{
    if (f->length == f->n_fft)
        return window;
    tn_tensor *w = window ? window : tnx_new_full(like, &f->length, 1, tn_int(1), NULL);
    int64_t left = (f->n_fft - f->length) / 2;
    return tnx_constant_pad_nd(w, (const int64_t[]){left, f->n_fft - f->length - left}, 2,
                               tn_int(0));
}

static tn_tensor *complex_of(tn_tensor *t)
{
    if (!t || tn_dtype_is_complex((tn_dtype)t->dtype))
        return t;
    return tnx_to_dtype(t, tni_dtype_to_complex((tn_dtype)t->dtype), false, false, TN_FORMAT_NONE);
}

/* ---- forward ---- */

static tn_status check_signal(const frames *f)
{
    const tn_tensor *self = f->signal;
    tn_dtype dtype = (tn_dtype)self->dtype;
    CHECK(tn_dtype_is_floating(dtype) || tn_dtype_is_complex(dtype),
          ": expected a tensor of floating point or complex values");
    CHECK(self->ndim == 1 || self->ndim == 2, ": expected a 1D or 2D tensor");
    int64_t length = self->sizes[self->ndim - 1];
    CHECK(f->n_fft > 0 && f->n_fft <= length, ": expected 0 < n_fft < %lld, but got n_fft=%lld",
          (long long)length,
          (long long)(f->align_to_window == TN_BOOL_TRUE ? f->length : f->n_fft));
    CHECK(f->hop > 0, ": expected hop_length > 0, but got hop_length=%lld", (long long)f->hop);
    CHECK(f->length > 0 && f->length <= f->n_fft,
          ": expected 0 < win_length <= n_fft, but got win_length=%lld", (long long)f->length);
    return check_window(f);
}

/* Half of @p n, rounded down: also below zero. */
static int64_t half_of(int64_t n)
{
    return n / 2 - (n < 0 && n % 2 != 0);
}

/* @p self with n_fft / 2 points more at both ends. */
static tn_status centered(tn_tensor *self, int64_t n_fft, const char *mode, tn_tensor **out)
{
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    const int64_t pad[] = {half_of(n_fft), half_of(n_fft)}, line = -1;
    tn_tensor *x = self; /* of more dimensions, which are refused later */
    if (self->ndim < 2)
        x = tnx_reshape(self, (const int64_t[]){1, 1, self->numel}, 3);
    else if (self->ndim == 2)
        x = tnx_unsqueeze(self, 1);
    x = tnx_pad(x, pad, 2, mode, (tn_opt_float){0});
    if (x && self->ndim < 3)
        x = self->ndim < 2 ? tnx_reshape(x, &line, 1) : tnx_squeeze_dim(x, 1);
    return tni_leave(scope, x, out);
}

tn_status tni_composite_stft_center(tn_tensor *self, int64_t n_fft, tn_opt_int hop_length,
                                    tn_opt_int win_length, tn_tensor *window, bool center,
                                    const char *pad_mode, bool normalized, tn_opt_bool onesided,
                                    tn_opt_bool return_complex, tn_opt_bool align_to_window,
                                    tn_tensor **out)
{
    tn_scope *scope;
    TN_AUTO(tn_tensor) padded = NULL;
    bool complex = tn_dtype_is_complex((tn_dtype)self->dtype) ||
                   (window && tn_dtype_is_complex((tn_dtype)window->dtype));
    TN_CHECK(!center || align_to_window == TN_BOOL_NONE, TN_INVALID,
             "stft align_to_window should only be set when center = false");
    if (center)
        TN_TRY(centered(self, n_fft, pad_mode, &padded));
    tn_tensor *signal = center ? padded : self;
    const frames f = {.op = "stft",
                      .signal = signal,
                      .window = window,
                      .n_fft = n_fft,
                      .hop = hop_length.has ? hop_length.value : half_of(half_of(n_fft)),
                      .length = win_length.has ? win_length.value : n_fft,
                      .normalized = normalized,
                      .return_complex = return_complex == TN_BOOL_TRUE ||
                                        (return_complex == TN_BOOL_NONE && complex),
                      .onesided = onesided,
                      .align_to_window = align_to_window};
    TN_CHECK(
        return_complex != TN_BOOL_NONE || complex, TN_INVALID,
        "stft requires the return_complex parameter be given for real inputs, and will further "
        "require that return_complex=True in a future PyTorch release.");
    TN_TRY(check_signal(&f));
    bool half = onesided != TN_BOOL_NONE ? onesided == TN_BOOL_TRUE : !complex;
    TN_CHECK(!(half && complex), TN_INVALID,
             "Cannot have onesided output if window or input is complex");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *w = wide_window(signal, window, &f);
    tn_tensor *x = signal;
    if (align_to_window == TN_BOOL_TRUE && n_fft > f.length) { /* windows reach both ends */
        int64_t left = (n_fft - f.length) / 2;
        x = tnx_constant_pad_nd(x, (const int64_t[]){left, n_fft - f.length - left}, 2, tn_int(0));
    }
    x = tnx_unfold(x, -1, n_fft, f.hop);
    if (w)
        x = tnx_mul(x, w);
    const int64_t last = signal->ndim; /* [batch,] frames, points */
    int64_t how = normalized ? ROOT : NO_FACTOR;
    x = complex ? tnx__fft_c2c(complex_of(x), &last, 1, how, true)
                : tnx__fft_r2c(x, &last, 1, how, half);
    x = tnx_transpose(x, -2, -1);
    return tni_leave(scope, f.return_complex ? x : tnx_view_as_real(x), out);
}

tn_status tni_composite_stft(tn_tensor *self, int64_t n_fft, tn_opt_int hop_length,
                             tn_opt_int win_length, tn_tensor *window, bool normalized,
                             tn_opt_bool onesided, tn_opt_bool return_complex,
                             tn_opt_bool align_to_window, tn_tensor **out)
{
    return tni_composite_stft_center(self, n_fft, hop_length, win_length, window, false, "constant",
                                     normalized, onesided, return_complex, align_to_window, out);
}

/* ---- and back ---- */

/* Frames [batch, frames, points] added up where they overlap: [batch, length]. */
static tn_tensor *overlapped(tn_tensor *points, const frames *f, int64_t length)
{
    const int64_t size[] = {1, length}, kernel[] = {1, f->n_fft}, one[] = {1, 1}, none[] = {0, 0},
                  stride[] = {1, f->hop};
    tn_tensor *t =
        tnx_col2im(tnx_transpose(points, 1, 2), size, 2, kernel, 2, one, 2, none, 2, stride, 2);
    return tnx_squeeze_dim(tnx_squeeze_dim(t, 1), 1);
}

/* The same of complex numbers. */
static tn_tensor *overlapped_complex(tn_tensor *points, const frames *f, int64_t length)
{
    return tnx_make_complex(overlapped(tnx_real(points), f, length),
                            overlapped(tnx_imag(points), f, length));
}

static tn_status check_spectrum(const frames *f, bool half)
{
    const tn_tensor *self = f->signal;
    int64_t bins = self->sizes[self->ndim - 2];
    CHECK(self->numel > 0, ": input tensor cannot be empty.");
    CHECK(self->ndim == 2 || self->ndim == 3,
          ": expected a tensor with 2 or 3 dimensions, but got %d", self->ndim);
    if (half)
        CHECK(f->n_fft / 2 + 1 == bins,
              ": expected the frequency dimension (3rd to the last) of the input tensor to match "
              "n_fft / 2 + 1 when onesided=True, but got %lld",
              (long long)bins);
    else
        CHECK(f->n_fft == bins,
              ": expected the frequency dimension (3rd to the last) of the input tensor to match "
              "n_fft when onesided=False, but got %lld",
              (long long)bins);
    CHECK(0 < f->hop && f->hop <= f->length, ": expected 0 < hop_length <= win_length");
    CHECK(0 < f->length && f->length <= f->n_fft, ": expected 0 < win_length <= n_fft");
    return check_window(f);
}

/* Every point of the result lies under some window: else nothing says what it was. */
static tn_status check_weight(const frames *f, tn_tensor *weight)
{
    TN_AUTO(tn_tensor) size = NULL;
    TN_AUTO(tn_tensor) least = NULL;
    tn_scalar value;
    if (!weight || tni_is_meta(weight) || weight->numel == 0)
        return TN_OK;
    TN_TRY(tn_abs(weight, &size));
    TN_TRY(tn_min(size, &least));
    TN_TRY(tn_item(least, &value));
    CHECK(!(value.v.f < 1e-11), "window overlap add min: 1");
    return TN_OK;
}

/* The frames added up, and the squares of the windows that they were weighted with; both may be
 * there when it fails. */
static tn_status added_up(const frames *f, tn_tensor *self, tn_tensor *window, bool half,
                          int64_t start, int64_t stop, tn_tensor **sum, tn_tensor **weights)
{
    tn_scope *scope;
    int64_t count = self->sizes[self->ndim - 1], whole = f->n_fft + f->hop * (count - 1);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *x = self->ndim == 2 ? tnx_unsqueeze(self, 0) : self;
    x = tnx_transpose(x, 1, 2); /* batch, frames, bins */
    const int64_t last = 2;
    int64_t how = f->normalized ? ROOT : COUNT;
    if (f->return_complex) {
        x = tnx__fft_c2c(x, &last, 1, how, false);
    } else {
        if (!half)
            x = tnx_slice(x, -1, tn_some_int(0), tn_some_int(f->n_fft / 2 + 1), 1);
        x = tnx__fft_c2r(x, &last, 1, how, f->n_fft);
    }
    tn_tensor *w = NULL;
    if (x) {
        tn_tensor *plain = f->return_complex ? tnx_real(x) : x;
        w = wide_window(plain,
                        window ? window : tnx_new_full(plain, &f->length, 1, tn_int(1), NULL), f);
    }
    x = tnx_mul(x, w);
    tn_tensor *y = x && tn_dtype_is_complex((tn_dtype)x->dtype) ? overlapped_complex(x, f, whole)
                                                                : overlapped(x, f, whole);
    tn_tensor *squares = tnx_contiguous(tnx_expand(tnx_unsqueeze(tnx_mul(w, w), 0),
                                                   (const int64_t[]){1, count, f->n_fft}, 3, false),
                                        TN_FORMAT_CONTIGUOUS);
    tn_tensor *weight = squares && tn_dtype_is_complex((tn_dtype)squares->dtype)
                            ? overlapped_complex(squares, f, whole)
                            : overlapped(squares, f, whole);
    y = tnx_slice(y, -1, tn_some_int(start), tn_some_int(stop), 1);
    weight = tnx_slice(weight, -1, tn_some_int(start), tn_some_int(stop), 1);
    *sum = tn_scope_keep(y);
    *weights = tn_scope_keep(weight);
    return tn_scope_leave(scope);
}

tn_status tni_composite_istft(tn_tensor *self, int64_t n_fft, tn_opt_int hop_length,
                              tn_opt_int win_length, tn_tensor *window, bool center,
                              bool normalized, tn_opt_bool onesided, tn_opt_int length,
                              bool return_complex, tn_tensor **out)
{
    tn_scope *scope;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) weights = NULL;
    const frames f = {.op = "istft",
                      .signal = self,
                      .window = window,
                      .n_fft = n_fft,
                      .hop = hop_length.has ? hop_length.value : half_of(half_of(n_fft)),
                      .length = win_length.has ? win_length.value : n_fft,
                      .center = center,
                      .normalized = normalized,
                      .return_complex = return_complex,
                      .onesided = onesided,
                      .result_length = length};
    TN_CHECK(tn_dtype_is_complex((tn_dtype)self->dtype), TN_INVALID,
             "istft requires a complex-valued input tensor matching the output from stft with "
             "return_complex=True.");
    TN_CHECK(self->ndim >= 2, TN_INVALID,
             "istft: expected a tensor with 2 or 3 dimensions, but got %d", self->ndim);
    int64_t bins = self->sizes[self->ndim - 2], count = self->sizes[self->ndim - 1];
    bool half = onesided != TN_BOOL_NONE ? onesided == TN_BOOL_TRUE : bins != n_fft;
    TN_TRY(check_spectrum(&f, half));
    TN_CHECK(return_complex || !window || !tn_dtype_is_complex((tn_dtype)window->dtype), TN_INVALID,
             "Complex windows are incompatible with return_complex=False");
    TN_CHECK(!(return_complex && half), TN_INVALID,
             "Cannot have onesided output if window or input is complex");
    int64_t whole = n_fft + f.hop * (count - 1), start = center ? n_fft / 2 : 0;
    int64_t end = center ? whole - n_fft / 2 : whole;
    if (length.has && !tni_i64_add(start, length.value, &end))
        end = INT64_MAX; /* padding says that this is too long */
    TN_TRY(added_up(&f, self, window, half, start, end < whole ? end : whole, &sum, &weights));
    TN_TRY(check_weight(&f, weights));
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *y = tnx_div(sum, weights);
    if (end > whole)
        y = tnx_constant_pad_nd(y, (const int64_t[]){0, end - whole}, 2, tn_int(0));
    return tni_leave(scope, self->ndim == 2 ? tnx_squeeze_dim(y, 0) : y, out);
}
