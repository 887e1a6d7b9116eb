/* SPDX-License-Identifier: MIT */
/* autograd/gradgradcheck.c: second derivatives: tn_gradcheck of a backward pass. */
#include "autograd/gradcheck_call.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

enum { MOST = TN_GRADCHECK_MAX_OUTPUTS };

typedef struct twice {
    tn_gradcheck_fn fn;
    void *ctx;
    int64_t n_inputs;
} twice;

static void release(tn_tensor **list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        tn_tensor_unref(list[i]);
}

/* Keep what requires grad, let the rest go. */
static int64_t keep_recorded(tn_tensor **list, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++)
        if (tn_tensor_requires_grad(list[i]))
            list[kept++] = list[i];
        else
            tn_tensor_unref(list[i]);
    return kept;
}

/* Inputs of the function, then gradients of its results, to gradients of its inputs. */
static tn_status gradients(void *ctx, tn_tensor *const *inputs, int64_t n_inputs,
                           tn_tensor **outputs, int64_t *n_outputs)
{
    const twice *t = ctx;
    tn_tensor *results[MOST], *wanted[MOST], *grads[MOST];
    int64_t n = 0, n_wanted = 0;
    TN_TRY(tni_gradcheck_call(t->fn, t->ctx, inputs, t->n_inputs, results, &n));
    n = keep_recorded(results, n);
    for (int64_t i = 0; i < t->n_inputs && n_wanted < MOST; i++)
        if (inputs[i] && tn_tensor_requires_grad(inputs[i]))
            wanted[n_wanted++] = inputs[i];
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.create_graph = TN_BOOL_TRUE;
    opts.allow_unused = TN_BOOL_TRUE;
    tn_status status = TN_OK;
    if (n != n_inputs - t->n_inputs)
        status = tni_fail(TN_INVALID, TNI_WHERE,
                          "gradgradcheck: %lld results require grad, there are gradients for %lld",
                          (long long)n, (long long)(n_inputs - t->n_inputs));
    if (status == TN_OK)
        status = tn_grad(results, n, wanted, n_wanted, inputs + t->n_inputs, &opts, grads);
    release(results, n);
    TN_TRY(status);
    *n_outputs = 0;
    for (int64_t i = 0; i < n_wanted; i++)
        if (grads[i])
            outputs[(*n_outputs)++] = grads[i];
    return TN_OK;
}

/* A gradient of @p result with values between -1 and 1 that follow no pattern. */
static tn_status make_up(const tn_tensor *result, uint64_t seed, tn_tensor **out)
{
    tn_tensor_opts opts = tn_opts((tn_dtype)result->dtype, TN_CPU);
    bool complex = tn_dtype_is_complex((tn_dtype)result->dtype);
    TN_TRY(tn_zeros(result->sizes, result->ndim, &opts, out));
    for (int64_t i = 0; i < result->numel; i++) {
        double v[2];
        for (int j = 0; j < 2; j++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            v[j] = (double)(seed >> 40) / (double)(1 << 23) - 1.0;
        }
        tni_scalar_store(complex ? tn_complex(v[0], v[1]) : tn_float(v[0]), (tn_dtype)result->dtype,
                         (char *)(*out)->data + (size_t)i * tni_itemsize(*out));
    }
    return tn_tensor_set_requires_grad(*out, true);
}

/* Gradients for each result that requires grad into @p out. */
static tn_status make_seeds(const twice *t, tn_tensor *const *inputs, tn_tensor **out, int64_t *n)
{
    tn_tensor *results[MOST];
    int64_t count = 0;
    TN_TRY(tni_gradcheck_call(t->fn, t->ctx, inputs, t->n_inputs, results, &count));
    count = keep_recorded(results, count);
    tn_status status = TN_OK;
    for (*n = 0; *n < count && status == TN_OK; ++*n) {
        out[*n] = NULL;
        status = make_up(results[*n], (uint64_t)*n + 1, &out[*n]);
    }
    release(results, count);
    if (status != TN_OK)
        release(out, *n);
    return status;
}

tn_status tn_gradgradcheck(tn_gradcheck_fn fn, void *ctx, tn_tensor *const *inputs,
                           int64_t n_inputs, tn_tensor *const *grad_outputs,
                           const tn_gradcheck_opts *opts)
{
    TN_CHECK(fn && (inputs || n_inputs == 0) && n_inputs >= 0 && n_inputs <= MOST, TN_INVALID,
             "gradgradcheck: a function and up to %d inputs are wanted", MOST);
    twice t = {fn, ctx, n_inputs};
    tn_tensor *all[2 * MOST], *seeds[MOST];
    int64_t n = 0;
    TN_TRY(make_seeds(&t, inputs, seeds, &n));
    for (int64_t i = 0; i < n_inputs; i++)
        all[i] = inputs[i];
    for (int64_t i = 0; i < n; i++)
        all[n_inputs + i] = grad_outputs ? grad_outputs[i] : seeds[i];
    tn_status status = tn_gradcheck(gradients, &t, all, n_inputs + n, opts);
    release(seeds, n);
    return status;
}
