/* SPDX-License-Identifier: MIT */
/* autograd/gradcheck.c: gradients beside central differences.
 *
 * Numbers are looked at one by one, as real coordinates: a complex element has two. The gradient of
 * coordinate k of a result for coordinate c of an input is then an ordinary partial derivative: a
 * backward pass with the seed 1 (or i, for an imaginary part) at k gives those for all c. */
#include "autograd/gradcheck_call.h"

#include <math.h>
#include <string.h>
#include "base/alloc.h"
#include "base/status.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

enum { MOST = TN_GRADCHECK_MAX_OUTPUTS };

typedef struct output_list {
    tn_tensor *v[MOST];
    int64_t n;
} output_list;

static void outputs_clear(output_list *o)
{
    for (int64_t i = 0; i < o->n; i++)
        tn_tensor_unref(o->v[i]);
    o->n = 0;
}
#define AUTO_OUTPUTS __attribute__((cleanup(outputs_clear))) output_list

typedef struct check {
    tn_gradcheck_fn fn;
    void *ctx;
    tn_tensor *const *inputs;
    int64_t n_inputs;
    tn_gradcheck_opts opts;
    /* Inputs that require grad, and which they are. */
    tn_tensor **wanted;
    int64_t *which, n_wanted;
    int64_t *counts; /* of each, its coordinates at the start */
    /* Results that are checked, in the order of the first call, and which they are. */
    int64_t checked[MOST], n_checked, n_outputs;
    int64_t n_in, n_out; /* coordinates, in all */
    double *quotients;   /* [n_in][n_out] */
} check;

/* ---- coordinates ---- */

static bool is_complex(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

static int64_t coordinates(const tn_tensor *t)
{
    return t->numel * (is_complex(t) ? 2 : 1);
}

/* Where row-major element @p k lies. */
static void *element(const tn_tensor *t, int64_t k)
{
    int64_t at = t->offset;
    for (int d = t->ndim - 1; d >= 0; d--) {
        at += k % t->sizes[d] * t->strides[d];
        k /= t->sizes[d];
    }
    return (char *)t->storage->data + (size_t)at * tni_itemsize(t);
}

static double coordinate(const tn_tensor *t, int64_t c)
{
    bool complex = is_complex(t);
    tn_scalar s = tni_scalar_load((tn_dtype)t->dtype, element(t, complex ? c / 2 : c));
    if (complex)
        return c % 2 ? s.imag : s.v.f;
    return tn_scalar_to_double(s);
}

static void set_coordinate(tn_tensor *t, int64_t c, double value)
{
    double *at = element(t, is_complex(t) ? c / 2 : c); /* float64 or complex128 */
    at[is_complex(t) ? c % 2 : 0] = value;
}

/* ---- the function ---- */

tn_status tni_gradcheck_call(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs,
                             int64_t n_inputs, tn_tensor **outputs, int64_t *n_outputs)
{
    int64_t n = 0;
    memset(outputs, 0, MOST * sizeof *outputs);
    *n_outputs = 0;
    TN_TRY(fn(ctx, inputs, n_inputs, outputs, &n)); /* of its results it took care itself */
    bool fit = n >= 0 && n <= MOST;
    int64_t i = 0, held = fit ? n : MOST;
    while (fit && i < n && outputs[i] && outputs[i]->device.type == TN_DEVICE_CPU &&
           (outputs[i]->numel == 0 || (outputs[i]->storage && outputs[i]->storage->data)))
        i++;
    if (fit && i == n) {
        *n_outputs = n;
        return TN_OK;
    }
    for (int64_t k = 0; k < held; k++)
        tn_tensor_unref(outputs[k]);
    TN_CHECK(fit, TN_INVALID, "gradcheck: %lld results, at most %d fit", (long long)n, MOST);
    TN_FAIL(TN_INVALID, "gradcheck: result %lld is not a dense tensor on the CPU", (long long)i);
}

/* The input that the function did not leave as it was (numbers are put back into it), -1: none. */
static int64_t changed_input(const check *k)
{
    for (int64_t i = 0; i < k->n_wanted; i++) {
        const tn_tensor *t = k->wanted[i];
        if (coordinates(t) != k->counts[i] || tni_itemsize(t) < sizeof(double) ||
            (t->numel > 0 && !t->storage->data))
            return k->which[i];
    }
    return -1;
}

static tn_status run(const check *k, output_list *out)
{
    TN_TRY(tni_gradcheck_call(k->fn, k->ctx, k->inputs, k->n_inputs, out->v, &out->n));
    int64_t changed = changed_input(k);
    TN_CHECK(changed < 0, TN_INVALID, "gradcheck: the function changes its input %lld",
             (long long)changed);
    return TN_OK;
}

/* Coordinates of the checked results, one after the other. */
static tn_status read_outputs(const check *k, double *to)
{
    AUTO_OUTPUTS out = {.n = 0};
    int64_t n = 0;
    TN_TRY(run(k, &out));
    TN_CHECK(out.n == k->n_outputs, TN_INVALID,
             "gradcheck: the function gave %lld results, now %lld", (long long)k->n_outputs,
             (long long)out.n);
    for (int64_t i = 0; i < k->n_checked; i++)
        n += coordinates(out.v[k->checked[i]]);
    TN_CHECK(n == k->n_out, TN_INVALID, "gradcheck: the results change their sizes");
    for (int64_t i = 0; i < k->n_checked; i++) {
        const tn_tensor *t = out.v[k->checked[i]];
        for (int64_t c = 0; c < coordinates(t); c++)
            *to++ = coordinate(t, c);
    }
    return TN_OK;
}

/* One row of difference quotients: input coordinate @p c of @p t moved both ways. */
static tn_status measure(const check *k, tn_tensor *t, int64_t c, double *row, double *other)
{
    const double eps = k->opts.eps, at = coordinate(t, c);
    set_coordinate(t, c, at + eps);
    tn_status status = read_outputs(k, row);
    if (status == TN_OK) {
        set_coordinate(t, c, at - eps);
        status = read_outputs(k, other);
    }
    if (status == TN_OK || changed_input(k) < 0)
        set_coordinate(t, c, at);
    for (int64_t i = 0; status == TN_OK && i < k->n_out; i++) /* infinities that stay do not move */
        row[i] = row[i] == other[i] ? 0 : (row[i] - other[i]) / (2 * eps);
    return status;
}

static tn_status measure_all(check *k)
{
    int64_t n = 0, nbytes = 0; /* one row more, for the other side */
    if (!__builtin_mul_overflow(k->n_in + 1, k->n_out, &n) &&
        !__builtin_mul_overflow(n + 1, (int64_t)sizeof(double), &nbytes))
        k->quotients = tni_alloc((size_t)nbytes);
    TN_CHECK(k->quotients, TN_NOMEM, "gradcheck: no memory for %lld by %lld derivatives",
             (long long)k->n_in, (long long)k->n_out);
    double *row = k->quotients, *other = k->quotients + (size_t)k->n_in * (size_t)k->n_out;
    for (int64_t i = 0; i < k->n_wanted; i++)
        for (int64_t c = 0; c < coordinates(k->wanted[i]); c++, row += k->n_out)
            TN_TRY(measure(k, k->wanted[i], c, row, other));
    return TN_OK;
}

/* ---- gradients ---- */

/* Gradients for all wanted inputs, NULL where undefined, into @p grads. */
static tn_status backward(const check *k, tn_tensor *const *results, int64_t n,
                          tn_tensor *const *seeds, tn_tensor **grads)
{
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    opts.allow_unused = TN_BOOL_TRUE;
    return tn_grad(results, n, k->wanted, k->n_wanted, seeds, &opts, grads);
}

static void release(tn_tensor **list, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        tn_tensor_unref(list[i]);
        list[i] = NULL;
    }
}

static bool differ(const tn_tensor *a, const tn_tensor *b, double tolerance)
{
    const tn_tensor *t = a ? a : b;
    for (int64_t c = 0; t && c < coordinates(t); c++) {
        double x = a ? coordinate(a, c) : 0, y = b ? coordinate(b, c) : 0;
        if (!(fabs(x - y) <= tolerance) && !(isnan(x) && isnan(y)) && x != y)
            return true;
    }
    return false;
}

static const char *part(const tn_tensor *t, int64_t c)
{
    return !is_complex(t) ? "" : c % 2 ? ", imaginary part" : ", real part";
}

static int64_t place(const tn_tensor *t, int64_t c)
{
    return is_complex(t) ? c / 2 : c;
}

/* Gradients of output coordinate @p c of checked result @p o beside the quotients; @p column is the
 * coordinate's number among all. */
static tn_status compare(const check *k, int64_t o, const tn_tensor *result, int64_t c,
                         int64_t column, tn_tensor *const *grads)
{
    const double *row = k->quotients;
    for (int64_t i = 0; i < k->n_wanted; i++) {
        const tn_tensor *t = k->wanted[i];
        for (int64_t e = 0; e < coordinates(t); e++, row += k->n_out) {
            double want = row[column], got = grads[i] ? coordinate(grads[i], e) : 0;
            if (fabs(got - want) <= k->opts.atol + k->opts.rtol * fabs(want) || got == want)
                continue;
            TN_FAIL(
                TN_INVALID,
                "Jacobian mismatch for output %lld with respect to input %lld, at output "
                "element %lld%s and input element %lld%s: numerical: %.10g, analytical: %.10g%s",
                (long long)k->checked[o], (long long)k->which[i], (long long)place(result, c),
                part(result, c), (long long)place(t, e), part(t, e), want, got,
                grads[i] ? "" : " (undefined)");
        }
    }
    return TN_OK;
}

static tn_status same_again(const check *k, int64_t o, const tn_tensor *result, int64_t c,
                            tn_tensor *const *grads, tn_tensor *const *again)
{
    for (int64_t i = 0; i < k->n_wanted; i++)
        TN_CHECK(
            !differ(grads[i], again[i], k->opts.nondeterminism), TN_INVALID,
            "Backward is not reentrant, i.e., running backward with same input and grad_output "
            "multiple times gives different values, although analytical gradient matches "
            "numerical gradient. The tolerance for nondeterminism was %g. (output %lld, "
            "element %lld%s, input %lld)",
            k->opts.nondeterminism, (long long)k->checked[o], (long long)place(result, c),
            part(result, c), (long long)k->which[i]);
    return TN_OK;
}

/* Each coordinate of one result in turn. @p grads: room for two lists. */
static tn_status check_result(const check *k, int64_t o, tn_tensor *result, int64_t first,
                              tn_tensor **grads)
{
    TN_AUTO(tn_tensor) seed = NULL;
    tn_tensor_opts opts = tn_opts((tn_dtype)result->dtype, TN_CPU);
    TN_TRY(tn_zeros(result->sizes, result->ndim, &opts, &seed));
    for (int64_t c = 0; c < coordinates(result); c++) {
        tn_scalar one = is_complex(result) && c % 2 ? tn_complex(0, 1) : tn_float(1);
        void *at = element(seed, place(result, c));
        tni_scalar_store(one, (tn_dtype)result->dtype, at);
        tn_status status = backward(k, &result, 1, &seed, grads);
        if (status == TN_OK)
            status = compare(k, o, result, c, first + c, grads);
        if (status == TN_OK)
            status = backward(k, &result, 1, &seed, grads + k->n_wanted);
        if (status == TN_OK)
            status = same_again(k, o, result, c, grads, grads + k->n_wanted);
        release(grads, 2 * k->n_wanted);
        TN_TRY(status);
        tni_scalar_store(tn_int(0), (tn_dtype)result->dtype, at);
    }
    tn_status status = backward(k, &result, 1, &seed, grads);
    for (int64_t i = 0; status == TN_OK && i < k->n_wanted; i++)
        if (differ(grads[i], NULL, 0))
            status = tni_fail(TN_INVALID, TNI_WHERE,
                              "backward not multiplied by grad_output: a zero gradient of output "
                              "%lld gives one for input %lld that is not zero",
                              (long long)k->checked[o], (long long)k->which[i]);
    release(grads, k->n_wanted);
    return status;
}

/* A result that gets no gradient, beside one that gets zeros. */
static tn_status check_undefined(const check *k, tn_tensor *const *results, tn_tensor **grads)
{
    AUTO_OUTPUTS seeds = {.n = 0};
    AUTO_OUTPUTS zero = {.n = 0};
    tn_tensor *some[MOST], *ones[MOST], *all[MOST];
    for (int64_t i = 0; i < k->n_checked; i++) {
        TN_TRY(tn_ones_like(results[i], NULL, TN_FORMAT_NONE, &seeds.v[i]));
        seeds.n++;
        TN_TRY(tn_zeros_like(results[i], NULL, TN_FORMAT_NONE, &zero.v[i]));
        zero.n++;
    }
    for (int64_t skip = 0; skip < k->n_checked; skip++) {
        int64_t n = 0;
        for (int64_t i = 0; i < k->n_checked; i++) {
            all[i] = i == skip ? zero.v[i] : seeds.v[i];
            if (i == skip)
                continue;
            some[n] = results[i];
            ones[n++] = seeds.v[i];
        }
        tn_status status = backward(k, some, n, ones, grads);
        if (status == TN_OK)
            status = backward(k, results, k->n_checked, all, grads + k->n_wanted);
        for (int64_t i = 0; status == TN_OK && i < k->n_wanted; i++)
            if (differ(grads[i], grads[k->n_wanted + i], k->opts.atol))
                status = tni_fail(TN_INVALID, TNI_WHERE,
                                  "Expected backward function to handle undefined output grads: an "
                                  "undefined gradient of output %lld gives another one for input "
                                  "%lld than zeros do",
                                  (long long)k->checked[skip], (long long)k->which[i]);
        release(grads, 2 * k->n_wanted);
        TN_TRY(status);
    }
    return TN_OK;
}

/* No result requires grad: nothing may depend on the inputs. */
static tn_status check_constant(const check *k)
{
    const double *row = k->quotients;
    for (int64_t i = 0; i < k->n_wanted; i++)
        for (int64_t c = 0; c < coordinates(k->wanted[i]); c++)
            for (int64_t o = 0; o < k->n_out; o++, row++)
                TN_CHECK(fabs(*row) <= k->opts.atol, TN_INVALID,
                         "Numerical gradient for function expected to be zero: no output requires "
                         "grad, but input %lld has the derivative %.10g at element %lld",
                         (long long)k->which[i], *row, (long long)place(k->wanted[i], c));
    return TN_OK;
}

/* ---- the whole ---- */

static tn_status check_input(const tn_tensor *t, int64_t i)
{
    TN_CHECK(t->dtype == TN_DTYPE_F64 || t->dtype == TN_DTYPE_C128, TN_INVALID,
             "gradcheck: input %lld requires grad and is %s, wanted float64 or complex128",
             (long long)i, tn_dtype_name((tn_dtype)t->dtype));
    TN_CHECK(t->device.type == TN_DEVICE_CPU && (t->numel == 0 || (t->storage && t->storage->data)),
             TN_INVALID, "gradcheck: input %lld requires grad and is not on the CPU", (long long)i);
    for (int d = 0; d < t->ndim; d++)
        TN_CHECK(
            t->strides[d] != 0 || t->sizes[d] < 2, TN_INVALID,
            "The %lldth input has a dimension with stride 0. gradcheck only supports inputs "
            "that are non-overlapping to be able to compute the numerical gradients correctly.",
            (long long)i);
    return TN_OK;
}

static tn_status find_wanted(check *k)
{
    size_t n = (size_t)k->n_inputs;
    k->wanted = tni_alloc((n + 1) * sizeof *k->wanted);
    k->which = tni_alloc((n + 1) * sizeof *k->which);
    k->counts = tni_alloc((n + 1) * sizeof *k->counts);
    TN_CHECK(k->wanted && k->which && k->counts, TN_NOMEM, "gradcheck: no memory for %zu inputs",
             n);
    for (int64_t i = 0; i < k->n_inputs; i++) {
        tn_tensor *t = k->inputs[i];
        if (!t || !tn_tensor_requires_grad(t))
            continue;
        TN_TRY(check_input(t, i));
        k->which[k->n_wanted] = i;
        k->counts[k->n_wanted] = coordinates(t);
        k->wanted[k->n_wanted++] = t;
        k->n_in += coordinates(t);
    }
    TN_CHECK(
        k->n_wanted > 0, TN_INVALID,
        "gradcheck expects at least one input tensor to require gradient, but none of the them "
        "have requires_grad=True.");
    return TN_OK;
}

static bool has_numbers(const tn_tensor *t)
{
    return tni_dtype_is_inexact((tn_dtype)t->dtype);
}

/* Results that require grad; when there are none, all that could. */
static bool find_checked(check *k, const output_list *out)
{
    bool recorded = false;
    for (int64_t i = 0; i < out->n; i++)
        recorded = recorded || tn_tensor_requires_grad(out->v[i]);
    k->n_outputs = out->n;
    for (int64_t i = 0; i < out->n; i++)
        if (recorded ? tn_tensor_requires_grad(out->v[i]) : has_numbers(out->v[i])) {
            k->n_out += coordinates(out->v[i]);
            k->checked[k->n_checked++] = i;
        }
    return recorded;
}

static tn_status check_all(check *k)
{
    AUTO_OUTPUTS out = {.n = 0};
    tn_tensor *results[MOST];
    TN_CHECK(tn_grad_enabled(), TN_INVALID, "gradcheck: recording is off (tn_set_grad_enabled)");
    TN_TRY(find_wanted(k));
    TN_TRY(run(k, &out));
    bool recorded = find_checked(k, &out);
    TN_TRY(measure_all(k));
    if (!recorded)
        return check_constant(k);
    tn_tensor **grads = tni_calloc(2 * (size_t)k->n_wanted * sizeof *grads);
    TN_CHECK(grads, TN_NOMEM, "gradcheck: no memory for %lld gradients", (long long)k->n_wanted);
    tn_status status = TN_OK;
    int64_t first = 0;
    for (int64_t i = 0; status == TN_OK && i < k->n_checked; i++) {
        results[i] = out.v[k->checked[i]];
        status = check_result(k, i, results[i], first, grads);
        first += coordinates(results[i]);
    }
    if (status == TN_OK && k->n_checked > 1 && k->opts.undefined != TN_BOOL_FALSE)
        status = check_undefined(k, results, grads);
    tni_free(grads);
    return status;
}

static tn_status read_opts(const tn_gradcheck_opts *given, tn_gradcheck_opts *out)
{
    *out = (tn_gradcheck_opts)TN_GRADCHECK_OPTS_INIT;
    if (!given)
        return TN_OK;
    TN_CHECK(given->size == sizeof *given, TN_INVALID,
             "tn_gradcheck_opts: size is %u, wanted %zu; start from TN_GRADCHECK_OPTS_INIT",
             given->size, sizeof *given);
    TN_CHECK(given->eps > 0 && isfinite(given->eps), TN_INVALID,
             "tn_gradcheck_opts: eps is %g, wanted a number above 0", given->eps);
    TN_CHECK(given->atol >= 0 && given->rtol >= 0 && given->nondeterminism >= 0, TN_INVALID,
             "tn_gradcheck_opts: atol is %g, rtol %g, nondeterminism %g, wanted none below 0",
             given->atol, given->rtol, given->nondeterminism);
    *out = *given;
    return TN_OK;
}

tn_status tn_gradcheck(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                       const tn_gradcheck_opts *opts)
{
    TN_CHECK(fn && (inputs || n_inputs == 0) && n_inputs >= 0, TN_INVALID,
             "gradcheck: function and inputs are wanted");
    check k = {.fn = fn, .ctx = ctx, .inputs = inputs, .n_inputs = n_inputs};
    TN_TRY(read_opts(opts, &k.opts));
    tn_status status = check_all(&k);
    tni_free(k.wanted);
    tni_free(k.which);
    tni_free(k.counts);
    tni_free(k.quotients);
    return status;
}
