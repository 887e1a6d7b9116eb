/* SPDX-License-Identifier: MIT */
#include "autograd/order_check.h"

#include <math.h>
#include "base/status.h"
#include "core/tensor.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

enum { MOST = 64 };

typedef struct run {
    tn_gradcheck_fn fn;
    void *ctx;
    int64_t n_inputs;
} run;

static bool complex(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

static bool inexact(const tn_tensor *t)
{
    return complex(t) || tn_dtype_is_floating((tn_dtype)t->dtype);
}

static void drop(tn_tensor **list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        tn_tensor_unref(list[i]);
}

/* Numbers that look random and stay the same. */
static tn_status direction_for(const tn_tensor *t, int64_t seed, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts((tn_dtype)t->dtype, TN_CPU);
    tn_dtype wide = complex(t) ? TN_DTYPE_C128 : TN_DTYPE_F64;
    TN_AUTO(tn_tensor) made = NULL;
    opts.dtype = wide;
    TN_TRY(tn_empty(t->sizes, t->ndim, &opts, TN_FORMAT_CONTIGUOUS, &made));
    for (int64_t i = 0; i < made->numel * (complex(t) ? 2 : 1); i++)
        ((double *)made->data)[i] = sin(1.3 * (double)(i + 1) + 2.1 * (double)(seed + 1));
    return tn_to_dtype(made, (tn_dtype)t->dtype, false, false, TN_FORMAT_NONE, out);
}

/* Adds the product of @p t with a direction, real and imaginary parts apart, to *sum; recorded. */
static tn_status add_along(tn_tensor *t, int64_t seed, tn_tensor **sum)
{
    TN_AUTO(tn_tensor) along = NULL;
    TN_AUTO(tn_tensor) t_parts = NULL;
    TN_AUTO(tn_tensor) along_parts = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) one = NULL;
    TN_TRY(direction_for(t, seed, &along));
    if (complex(t)) {
        TN_AUTO(tn_tensor) plain = NULL;
        TN_TRY(tn_resolve_conj(t, &plain));
        TN_TRY(tn_view_as_real(plain, &t_parts));
        TN_TRY(tn_view_as_real(along, &along_parts));
    } else {
        t_parts = tn_tensor_ref(t);
        along_parts = tn_tensor_ref(along);
    }
    TN_TRY(tn_mul(t_parts, along_parts, &product));
    TN_TRY(tn_sum(product, TN_DTYPE_F64, &one));
    if (!*sum) {
        *sum = TN_MOVE(one);
        return TN_OK;
    }
    tn_tensor *more = NULL;
    TN_TRY(tn_add(*sum, one, tn_int(1), &more));
    tn_tensor_unref(*sum);
    *sum = more;
    return TN_OK;
}

/* A number that is linear in the derivative of an order; NULL: that is zero. */
static tn_status derivative(const run *r, tn_tensor *const *inputs, int order, tn_tensor **out)
{
    tn_tensor *list[MOST], *wanted[MOST];
    int64_t n = 0;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_AUTO(tn_tensor) lower = NULL;
    tn_status status = TN_OK;
    if (order == 0) {
        TN_TRY(r->fn(r->ctx, inputs, r->n_inputs, list, &n));
    } else {
        TN_TRY(derivative(r, inputs, order - 1, &lower));
        if (!lower || !tn_tensor_requires_grad(lower)) {
            *out = NULL;
            return TN_OK;
        }
        for (int64_t i = 0; i < r->n_inputs; i++)
            if (tn_tensor_requires_grad(inputs[i]))
                wanted[n++] = inputs[i];
        tn_grad_opts opts = TN_GRAD_OPTS_INIT;
        opts.create_graph = TN_BOOL_TRUE;
        opts.allow_unused = TN_BOOL_TRUE;
        TN_TRY(tn_grad(&lower, 1, wanted, n, NULL, &opts, list));
    }
    for (int64_t i = 0; status == TN_OK && i < n; i++)
        if (list[i] && inexact(list[i]) && (order > 0 || tn_tensor_requires_grad(list[i])))
            status = add_along(list[i], 20 * order + i, &sum);
    drop(list, n);
    TN_TRY(status);
    *out = TN_MOVE(sum);
    return TN_OK;
}

static double number(const tn_tensor *t)
{
    return t ? *(const double *)t->data : 0;
}

/* The derivative @p step further along the directions. */
static tn_status moved(const run *r, tn_tensor *const *inputs, int order, double step, double *out)
{
    tn_tensor *given[MOST] = {NULL};
    int64_t n = 0;
    TN_AUTO(tn_tensor) made = NULL;
    tn_status status = TN_OK;
    for (; n < r->n_inputs && status == TN_OK; n++) {
        TN_AUTO(tn_tensor) along = NULL;
        TN_AUTO(tn_tensor) plain = NULL;
        given[n] = NULL;
        if (!tn_tensor_requires_grad(inputs[n])) {
            given[n] = tn_tensor_ref(inputs[n]);
            continue;
        }
        status = direction_for(inputs[n], 20 * order + 20 + n, &along);
        if (status == TN_OK)
            status = tn_detach(inputs[n], &plain);
        if (status == TN_OK)
            status = tn_add(plain, along, tn_float(step), &given[n]);
        if (status == TN_OK)
            status = tn_tensor_set_requires_grad(given[n], true);
    }
    if (status == TN_OK)
        status = derivative(r, given, order, &made);
    drop(given, n);
    TN_TRY(status);
    *out = number(made);
    return TN_OK;
}

tn_status order_check(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                      int order)
{
    const double step = 1e-5;
    run r = {fn, ctx, n_inputs};
    TN_AUTO(tn_tensor) lower = NULL;
    double ahead, behind, found = 0;
    TN_CHECK(n_inputs <= MOST && order > 0, TN_INVALID, "order_check: too many inputs");
    TN_TRY(derivative(&r, inputs, order - 1, &lower));
    if (lower && tn_tensor_requires_grad(lower)) {
        for (int64_t i = 0; i < n_inputs; i++) {
            TN_AUTO(tn_tensor) sum = NULL;
            tn_tensor *grad = NULL;
            if (!tn_tensor_requires_grad(inputs[i]))
                continue;
            tn_grad_opts opts = TN_GRAD_OPTS_INIT;
            opts.retain_graph = TN_BOOL_TRUE;
            opts.allow_unused = TN_BOOL_TRUE;
            TN_TRY(tn_grad(&lower, 1, &inputs[i], 1, NULL, &opts, &grad));
            if (!grad)
                continue;
            tn_status status = add_along(grad, 20 * order + i, &sum);
            tn_tensor_unref(grad);
            TN_TRY(status);
            found += number(sum);
        }
    }
    TN_TRY(moved(&r, inputs, order - 1, step, &ahead));
    TN_TRY(moved(&r, inputs, order - 1, -step, &behind));
    double wanted = (ahead - behind) / (2 * step);
    double scale = 1 + fabs(found) + fabs(wanted) + 1e-3 * (fabs(ahead) + fabs(behind));
    TN_CHECK(fabs(found - wanted) <= 1e-4 * scale, TN_INVALID,
             "derivative of order %d: %.10g, difference quotient %.10g", order, found, wanted);
    return TN_OK;
}
