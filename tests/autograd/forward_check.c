/* SPDX-License-Identifier: MIT */
#include "autograd/forward_check.h"

#include <math.h>
#include "base/status.h"
#include "core/tensor.h"
#include "tenon/autograd.h"
#include "tenon/forward.h"
#include "tenon/ops.h"

enum { MOST = 64 };

typedef struct run {
    tn_gradcheck_fn fn;
    void *ctx;
    tn_tensor *const *inputs;
    int64_t n_inputs, n;
    tn_tensor *directions[MOST]; /* NULL: that input does not move */
    tn_tensor *outputs[MOST], *tangents[MOST];
} run;

static void drop(tn_tensor **list, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        tn_tensor_unref(list[i]);
        list[i] = NULL;
    }
}

static bool complex(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

/* How many real numbers its elements are. */
static int64_t numbers(const tn_tensor *t)
{
    return complex(t) ? 2 * t->numel : t->numel;
}

/* Numbers that look random and stay the same. */
static tn_status direction_for(const tn_tensor *t, int64_t seed, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts((tn_dtype)t->dtype, TN_CPU);
    TN_TRY(tn_empty(t->sizes, t->ndim, &opts, TN_FORMAT_CONTIGUOUS, out));
    double *v = (*out)->data;
    for (int64_t i = 0; i < numbers(t); i++)
        v[i] = sin(1.3 * (double)(i + 1) + 2.1 * (double)(seed + 1));
    return TN_OK;
}

/* The function of dual numbers, inside the level. */
static tn_status push(run *r)
{
    tn_tensor *given[MOST] = {NULL};
    tn_status status = TN_OK;
    for (int64_t i = 0; i < r->n_inputs && status == TN_OK; i++) {
        if (r->directions[i])
            status = tn_make_dual(r->inputs[i], r->directions[i], &given[i]);
        else
            given[i] = tn_tensor_ref(r->inputs[i]);
    }
    r->n = 0;
    if (status == TN_OK)
        status = r->fn(r->ctx, given, r->n_inputs, r->outputs, &r->n);
    for (int64_t i = 0; i < r->n && status == TN_OK; i++)
        status = tn_tensor_tangent(r->outputs[i], &r->tangents[i]);
    drop(given, r->n_inputs);
    return status;
}

static tn_status forward(run *r)
{
    TN_TRY(tn_forward_enter());
    tn_status status = push(r);
    tn_status left = tn_forward_leave();
    return status != TN_OK ? status : left;
}

/* Outputs at the point moved by @p step along the directions. */
static tn_status moved(const run *r, double step, tn_tensor **outputs)
{
    tn_tensor *given[MOST] = {NULL};
    tn_status status = TN_OK;
    for (int64_t i = 0; i < r->n_inputs && status == TN_OK; i++) {
        if (r->directions[i])
            status = tn_add(r->inputs[i], r->directions[i], tn_float(step), &given[i]);
        else
            given[i] = tn_tensor_ref(r->inputs[i]);
    }
    int64_t n = 0;
    if (status == TN_OK)
        status = r->fn(r->ctx, given, r->n_inputs, outputs, &n);
    drop(given, r->n_inputs);
    return status;
}

/* Elements in row-major order, in double precision. */
static tn_status flat(tn_tensor *t, tn_tensor **out)
{
    TN_AUTO(tn_tensor) plain = NULL;
    TN_AUTO(tn_tensor) wide = NULL;
    TN_TRY(tn_detach(t, &plain));
    TN_TRY(tn_to_dtype(plain, complex(t) ? TN_DTYPE_C128 : TN_DTYPE_F64, false, true,
                       TN_FORMAT_NONE, &wide));
    return tn_clone(wide, TN_FORMAT_CONTIGUOUS, out);
}

static tn_status compare(tn_tensor *tangent, tn_tensor *high, tn_tensor *low, double step,
                         int64_t k)
{
    TN_AUTO(tn_tensor) t = NULL;
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_TRY(flat(high, &a));
    TN_TRY(flat(low, &b));
    if (tangent)
        TN_TRY(flat(tangent, &t));
    TN_CHECK(!tangent || numbers(t) == numbers(a), TN_INVALID,
             "output %lld: the tangent has another size", (long long)k);
    for (int64_t i = 0; i < numbers(a); i++) {
        double want = (((double *)a->data)[i] - ((double *)b->data)[i]) / (2 * step);
        double got = t ? ((double *)t->data)[i] : 0;
        TN_CHECK(fabs(got - want) <= 1e-5 + 1e-4 * fabs(want), TN_INVALID,
                 "output %lld element %lld: tangent %.10g, difference quotient %.10g", (long long)k,
                 (long long)i, got, want);
    }
    return TN_OK;
}

static bool differentiable(const tn_tensor *t)
{
    return tn_dtype_is_floating((tn_dtype)t->dtype) || complex(t);
}

static tn_status beside_differences(const run *r)
{
    const double step = 1e-6;
    tn_tensor *high[MOST] = {NULL}, *low[MOST] = {NULL};
    bool on = tn_set_grad_enabled(false);
    tn_status status = moved(r, step, high);
    if (status == TN_OK)
        status = moved(r, -step, low);
    for (int64_t k = 0; k < r->n && status == TN_OK; k++)
        if (differentiable(r->outputs[k]) && (k == 0 || r->tangents[k]))
            status = compare(r->tangents[k], high[k], low[k], step, k);
    tn_set_grad_enabled(on);
    drop(high, MOST);
    drop(low, MOST);
    return status;
}

static tn_status inner(tn_tensor *a, tn_tensor *b, double *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) y = NULL;
    TN_TRY(flat(a, &x));
    TN_TRY(flat(b, &y));
    for (int64_t i = 0; i < numbers(x); i++)
        *out += ((double *)x->data)[i] * ((double *)y->data)[i];
    return TN_OK;
}

/* u · (J v) and (J^T u) · v, for the first output. */
static tn_status beside_backward(const run *r)
{
    tn_tensor *result = r->outputs[0], *wanted[MOST], *grads[MOST] = {NULL};
    int64_t places[MOST], n = 0;
    double left = 0, right = 0;
    if (!tn_tensor_requires_grad(result) || !r->tangents[0])
        return TN_OK;
    for (int64_t i = 0; i < r->n_inputs; i++)
        if (r->directions[i]) {
            places[n] = i;
            wanted[n++] = r->inputs[i];
        }
    TN_AUTO(tn_tensor) u = NULL;
    TN_TRY(direction_for(result, 7, &u));
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.allow_unused = TN_BOOL_TRUE;
    tn_status status = tn_grad(&result, 1, wanted, n, &u, &opts, grads);
    if (status == TN_OK)
        status = inner(u, r->tangents[0], &left);
    for (int64_t i = 0; i < n && status == TN_OK; i++)
        if (grads[i])
            status = inner(grads[i], r->directions[places[i]], &right);
    drop(grads, n);
    TN_TRY(status);
    TN_CHECK(fabs(left - right) <= 1e-9 + 1e-9 * fabs(left), TN_INVALID,
             "u.(Jv) = %.15g, (J^T u).v = %.15g", left, right);
    return TN_OK;
}

static tn_status one_run(run *r)
{
    tn_status status = forward(r);
    if (status == TN_OK && r->n > 0) {
        status = beside_differences(r);
        if (status == TN_OK && tn_grad_enabled())
            status = beside_backward(r);
    }
    drop(r->outputs, MOST);
    drop(r->tangents, MOST);
    return status;
}

tn_status forward_check(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs, int64_t n_inputs)
{
    run r = {.fn = fn, .ctx = ctx, .inputs = inputs, .n_inputs = n_inputs};
    tn_status status = TN_OK;
    for (int64_t i = 0; i < n_inputs && status == TN_OK; i++)
        if (tn_tensor_requires_grad(inputs[i]))
            status = direction_for(inputs[i], i, &r.directions[i]);
    if (status == TN_OK)
        status = one_run(&r);
    if (status == TN_OK) {
        bool on = tn_set_grad_enabled(false);
        status = one_run(&r);
        tn_set_grad_enabled(on);
    }
    drop(r.directions, MOST);
    return status;
}
