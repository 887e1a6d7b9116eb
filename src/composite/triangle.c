/* SPDX-License-Identifier: MIT */
/* composite/triangle.c: matrices and indices that follow from the diagonal: eye, tril_indices,
 * triu_indices, and linspace, which like them makes its numbers from none. */
#include "composite/range.h"
#include "core/at_hand.h"
#include "core/state.h"
#include "core/tensor.h"
#include "gen/kernels.h"
#include "iter/iter.h"
#include "shape/structured.h"
#include "tenon/ops.h"

/* ---- eye ---- */

static tn_status check_eye(int64_t n, int64_t m)
{
    TN_CHECK(n >= 0, TN_INVALID, "n must be greater or equal to 0, got %lld", (long long)n);
    TN_CHECK(m >= 0, TN_INVALID, "m must be greater or equal to 0, got %lld", (long long)m);
    return TN_OK;
}

static tn_status write_eye(tn_tensor *out)
{
    TN_AUTO(tn_tensor) diagonal = NULL;
    TN_TRY(tn_zero_(out));
    TN_TRY(tn_diagonal(out, 0, 0, 1, &diagonal));
    return tn_fill_(diagonal, tn_int(1));
}

static tn_status eye(int64_t n, int64_t m, const tn_tensor_opts *opts, tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(check_eye(n, m));
    TN_TRY(tn_empty((const int64_t[]){n, m}, 2, opts, TN_FORMAT_NONE, &t));
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = write_eye(t);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_kernel_eye(tn_call *call, int64_t n, const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return eye(n, n, opts, out);
}

tn_status tni_kernel_eye_m(tn_call *call, int64_t n, int64_t m, const tn_tensor_opts *opts,
                           tn_tensor **out)
{
    (void)call;
    return eye(n, m, opts, out);
}

tn_status tni_kernel_eye_m_out(tn_call *call, int64_t n, int64_t m, tn_tensor *out)
{
    (void)call;
    TN_TRY(check_eye(n, m));
    TN_TRY(tni_check_internal_overlap(out));
    TN_TRY(tni_tensor_resize(out, 2, (const int64_t[]){n, m}));
    return write_eye(out);
}

tn_status tni_kernel_eye_out(tn_call *call, int64_t n, tn_tensor *out)
{
    return tni_kernel_eye_m_out(call, n, n, out);
}

/* ---- indices of a triangle ---- */

static int64_t clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* How many elements of a matrix lie on or below diagonal number @p offset, which is within its
 * sizes. */
static __int128 count_below(int64_t row, int64_t col, int64_t offset)
{
    /* Rows [first, full) have one element more each, those from `full` on have all. */
    int64_t first = offset < 0 ? -offset : 0;
    if (first > row)
        return 0;
    __int128 reach = (__int128)col - offset;
    int64_t full = reach > row ? row : reach < first ? first : (int64_t)reach;
    __int128 n = full - first;
    __int128 sum = n * (first + offset + 1) + n * (n - 1) / 2;
    return sum + (__int128)(row - full) * col;
}

/* Rows of a matrix with, in each, the columns [begin, end) that belong to the triangle. Rows that
 * have none are not visited: there may be more of them than can be counted. */
static void write_triangle(int64_t row, int64_t col, int64_t offset, bool lower, int64_t n,
                           int64_t *out)
{
    int64_t at = 0;
    for (int64_t r = lower && offset < 0 && n > 0 ? -offset : 0; at < n && r < row; r++) {
        int64_t cut = clamp(r + offset + (lower ? 1 : 0), 0, col);
        int64_t begin = lower ? 0 : cut, end = lower ? cut : col;
        for (int64_t c = begin; c < end; c++, at++) {
            out[at] = r;
            out[n + at] = c;
        }
    }
}

static tn_status triangle(const char *name, bool lower, int64_t row, int64_t col, int64_t offset,
                          const tn_tensor_opts *opts, tn_tensor **out)
{
    tn_tensor_opts o = opts ? *opts : (tn_tensor_opts)TN_TENSOR_OPTS_INIT;
    if (o.dtype == TN_DTYPE_NONE)
        o.dtype = TN_DTYPE_I64;
    TN_CHECK(row >= 0, TN_INVALID, "row must be non-negative, got%lld", (long long)row);
    TN_CHECK(col >= 0, TN_INVALID, "col must be non-negative, got%lld", (long long)col);
    TN_CHECK(o.dtype == TN_DTYPE_I64 || o.dtype == TN_DTYPE_I32, TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", name, tni_dtype_text(o.dtype));
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) host = NULL;
    offset = clamp(offset, -row, col < INT64_MAX ? col + 1 : col);
    __int128 n = count_below(row, col, clamp(lower ? offset : offset - 1, -row, col));
    n = lower ? n : (__int128)row * col - n;
    TN_CHECK(n <= INT64_MAX / 16, TN_INVALID, "%s: the triangle has too many elements", name);
    const int64_t sizes[2] = {2, (int64_t)n};
    TN_TRY(tn_empty(sizes, 2, &o, TN_FORMAT_NONE, &t));
    if (!tni_is_hollow(t)) {
        TN_TRY(tni_tensor_new(2, sizes, NULL, TN_DTYPE_I64, TN_CPU, &host));
        write_triangle(row, col, offset, lower, sizes[1], host->data);
        uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
        tn_status status = tn_copy_(t, host, false);
        tni_tls.excluded_xor = saved;
        TN_TRY(status);
    }
    *out = TN_MOVE(t);
    return TN_OK;
}

tn_status tni_kernel_tril_indices(tn_call *call, int64_t row, int64_t col, int64_t offset,
                                  const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return triangle("tril_indices", true, row, col, offset, opts, out);
}

tn_status tni_kernel_triu_indices(tn_call *call, int64_t row, int64_t col, int64_t offset,
                                  const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    return triangle("triu_indices", false, row, col, offset, opts, out);
}

/* ---- linspace ---- */

tn_status tni_range_opts(const char *op, tn_scalar start, tn_scalar end, int64_t steps,
                         const tn_tensor_opts *opts, tn_tensor_opts *out)
{
    tn_tensor_opts o = opts ? *opts : (tn_tensor_opts)TN_TENSOR_OPTS_INIT;
    TN_CHECK(steps >= 0, TN_INVALID, "number of steps must be non-negative");
    if (start.kind == TN_SCALAR_COMPLEX || end.kind == TN_SCALAR_COMPLEX) {
        tn_dtype found = tni_dtype_to_complex(tn_default_dtype());
        TN_CHECK(o.dtype == TN_DTYPE_NONE || tn_dtype_is_complex(o.dtype), TN_INVALID,
                 "torch.%s(): inferred dtype %s can't be safely cast to passed dtype %s", op,
                 tni_dtype_cpp(found), tni_dtype_text(o.dtype));
        if (o.dtype == TN_DTYPE_NONE)
            o.dtype = found;
    }
    *out = o;
    return TN_OK;
}

tn_status tni_kernel_linspace(tn_call *call, tn_scalar start, tn_scalar end, int64_t steps,
                              const tn_tensor_opts *opts, tn_tensor **out)
{
    (void)call;
    tn_tensor_opts o;
    TN_TRY(tni_range_opts("linspace", start, end, steps, opts, &o));
    TN_AUTO(tn_tensor) t = NULL;
    TN_TRY(tn_empty(&steps, 1, &o, TN_FORMAT_NONE, &t));
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tn_linspace_out(start, end, steps, t);
    tni_tls.excluded_xor = saved;
    TN_TRY(status);
    *out = TN_MOVE(t);
    return TN_OK;
}

/* A 0-dim tensor, or a number. */
typedef struct end_point {
    tn_tensor *t; /* NULL for a number */
    tn_scalar number;
} end_point;

/* On meta only the number's kind is known, which is all that meta wants. */
static tn_status read_number(end_point *p, bool to_meta)
{
    if (!p->t)
        return TN_OK;
    if (!tni_is_meta(p->t) || (!to_meta && !tni_is_fake(p->t)))
        return tn_item(p->t, &p->number);
    tn_dtype dtype = (tn_dtype)p->t->dtype;
    p->number = tn_dtype_is_complex(dtype)    ? tn_complex(0, 0)
                : tn_dtype_is_floating(dtype) ? tn_float(0)
                                              : tn_int(0);
    return TN_OK;
}

static TNI_COLD tn_status not_numbers(const char *op, const tn_tensor *start, const tn_tensor *end)
{
    if (start && end)
        TN_FAIL(TN_INVALID,
                "%s only supports 0-dimensional start and end tensors, but got start with %d "
                "dimension(s) and end with %d dimension(s).",
                op, start->ndim, end->ndim);
    TN_FAIL(TN_INVALID,
            "%s only supports 0-dimensional start and end tensors, but got %s with %d "
            "dimension(s).",
            op, start ? "start" : "end", start ? start->ndim : end->ndim);
}

/* Numbers between, or powers of @p base where there is one. */
static tn_status between(tn_call *call, end_point start, end_point end, int64_t steps,
                         const double *base, const tn_tensor_opts *opts, tn_tensor **out)
{
    tn_tensor_opts o = opts ? *opts : (tn_tensor_opts)TN_TENSOR_OPTS_INIT;
    if ((start.t && start.t->ndim) || (end.t && end.t->ndim))
        return not_numbers(base ? "logspace" : "linspace", start.t, end.t);
    bool from_meta = (start.t && tni_is_meta(start.t)) || (end.t && tni_is_meta(end.t));
    if (o.device.type == TN_DEVICE_NONE && from_meta)
        o.device = TN_META;
    TN_TRY(read_number(&start, o.device.type == TN_DEVICE_META));
    TN_TRY(read_number(&end, o.device.type == TN_DEVICE_META));
    return base ? tni_kernel_logspace(call, start.number, end.number, steps, *base, &o, out)
                : tni_kernel_linspace(call, start.number, end.number, steps, &o, out);
}

tn_status tni_kernel_linspace_tensor_tensor(tn_call *call, tn_tensor *start, tn_tensor *end,
                                            int64_t steps, const tn_tensor_opts *opts,
                                            tn_tensor **out)
{
    return between(call, (end_point){.t = start}, (end_point){.t = end}, steps, NULL, opts, out);
}

tn_status tni_kernel_linspace_tensor_scalar(tn_call *call, tn_tensor *start, tn_scalar end,
                                            int64_t steps, const tn_tensor_opts *opts,
                                            tn_tensor **out)
{
    return between(call, (end_point){.t = start}, (end_point){.number = end}, steps, NULL, opts,
                   out);
}

tn_status tni_kernel_linspace_scalar_tensor(tn_call *call, tn_scalar start, tn_tensor *end,
                                            int64_t steps, const tn_tensor_opts *opts,
                                            tn_tensor **out)
{
    return between(call, (end_point){.number = start}, (end_point){.t = end}, steps, NULL, opts,
                   out);
}

tn_status tni_kernel_logspace_tensor_tensor(tn_call *call, tn_tensor *start, tn_tensor *end,
                                            int64_t steps, double base, const tn_tensor_opts *opts,
                                            tn_tensor **out)
{
    return between(call, (end_point){.t = start}, (end_point){.t = end}, steps, &base, opts, out);
}

tn_status tni_kernel_logspace_tensor_scalar(tn_call *call, tn_tensor *start, tn_scalar end,
                                            int64_t steps, double base, const tn_tensor_opts *opts,
                                            tn_tensor **out)
{
    return between(call, (end_point){.t = start}, (end_point){.number = end}, steps, &base, opts,
                   out);
}

tn_status tni_kernel_logspace_scalar_tensor(tn_call *call, tn_scalar start, tn_tensor *end,
                                            int64_t steps, double base, const tn_tensor_opts *opts,
                                            tn_tensor **out)
{
    return between(call, (end_point){.number = start}, (end_point){.t = end}, steps, &base, opts,
                   out);
}
