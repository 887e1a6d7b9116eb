/* SPDX-License-Identifier: MIT */
/* autograd/backward.c: the public ways to start a backward pass: what they check and default. */
#include "tenon/autograd.h"
#include "autograd/accumulate.h"
#include "autograd/engine.h"
#include "core/state.h"

#include <string.h>
#include "tenon/ops.h"

/* Edges and gradients of a pass, owned until it ends. Few of each lie here. */
enum { FEW = 4 };
typedef struct request {
    tni_edge *roots, *targets;
    tn_tensor **seeds;
    uint32_t n_roots, n_targets;
    tni_edge few_roots[FEW], few_targets[FEW];
    tn_tensor *few_seeds[FEW];
} request;

static void request_end(request *r)
{
    for (uint32_t i = 0; i < r->n_roots; i++) {
        tn_tensor_unref(r->seeds[i]);
        tni_node_unref(r->roots[i].node);
    }
    for (uint32_t i = 0; i < r->n_targets; i++)
        tni_node_unref(r->targets[i].node);
    if (r->roots != r->few_roots)
        tni_free(r->roots);
    if (r->seeds != r->few_seeds)
        tni_free(r->seeds);
    if (r->targets != r->few_targets)
        tni_free(r->targets);
}

static tn_status request_begin(request *r, int64_t n_roots, int64_t n_targets)
{
    memset(r, 0, sizeof *r); /* request_end follows also when this fails */
    TN_CHECK(n_roots >= 0 && n_roots < INT32_MAX && n_targets >= 0 && n_targets < INT32_MAX,
             TN_INVALID, "a backward pass from %lld tensors to %lld", (long long)n_roots,
             (long long)n_targets);
    r->roots = n_roots > FEW ? tni_calloc((size_t)n_roots * sizeof *r->roots) : r->few_roots;
    r->seeds = n_roots > FEW ? tni_calloc((size_t)n_roots * sizeof *r->seeds) : r->few_seeds;
    r->targets =
        n_targets > FEW ? tni_calloc((size_t)n_targets * sizeof *r->targets) : r->few_targets;
    TN_CHECK(r->roots && r->seeds && r->targets, TN_NOMEM, "cannot begin a backward pass");
    r->n_roots = (uint32_t)n_roots;
    r->n_targets = (uint32_t)n_targets;
    return TN_OK;
}

/* ---- where gradients enter ---- */

static tn_status check_seed(int64_t i, const tn_tensor *t, const tn_tensor *grad)
{
    char got[TNI_SIZES_TEXT], wanted[TNI_SIZES_TEXT];
    TN_CHECK(t->ndim == grad->ndim &&
                 memcmp(t->sizes, grad->sizes, (size_t)t->ndim * sizeof *t->sizes) == 0,
             TN_INVALID,
             "Mismatch in shape: grad_output[%lld] has a shape of torch.Size(%s) and "
             "output[%lld] has a shape of torch.Size(%s).",
             (long long)i, tni_format_sizes(grad->ndim, grad->sizes, got, sizeof got), (long long)i,
             tni_format_sizes(t->ndim, t->sizes, wanted, sizeof wanted));
    tn_dtype has = (tn_dtype)grad->dtype, wants = (tn_dtype)t->dtype;
    TN_CHECK(
        tn_dtype_is_complex(has) == tn_dtype_is_complex(wants), TN_INVALID,
        "For complex Tensors, both grad_output and output are required to have the same dtype. "
        "Mismatch in dtype: grad_output[%lld] has a dtype of torch.%s and output[%lld] has a "
        "dtype of torch.%s.",
        (long long)i, tn_dtype_name(has), (long long)i, tn_dtype_name(wants));
    return TN_OK;
}

/* One, for a tensor of one element. */
static tn_status make_seed(tn_tensor *t, tn_tensor **out)
{
    TN_CHECK(t->numel == 1, TN_INVALID, "grad can be implicitly created only for scalar outputs");
    TN_CHECK(tn_dtype_is_floating((tn_dtype)t->dtype), TN_INVALID,
             "grad can be implicitly created only for real scalar outputs but got torch.%s",
             tn_dtype_name((tn_dtype)t->dtype));
    tn_tensor_opts opts = TN_TENSOR_OPTS_INIT;
    opts.pin_memory = TN_BOOL_FALSE;
    return tn_ones_like(t, &opts, TN_FORMAT_PRESERVE, out);
}

static tn_status add_roots(request *r, tn_tensor *const *tensors, tn_tensor *const *grads)
{
    for (uint32_t i = 0; i < r->n_roots; i++) {
        TN_CHECK(tensors[i], TN_INVALID, "element %u of tensors is NULL", i);
        tn_tensor *grad = grads ? grads[i] : NULL;
        if (grad) {
            TN_TRY(check_seed(i, tensors[i], grad));
            r->seeds[i] = tn_tensor_ref(grad);
        } else if (tni_requires_grad(tensors[i])) {
            TN_TRY(make_seed(tensors[i], &r->seeds[i]));
        }
    }
    for (uint32_t i = 0; i < r->n_roots; i++) {
        TN_TRY(tni_gradient_edge(tensors[i], &r->roots[i]));
        TN_CHECK(r->roots[i].node, TN_INVALID,
                 "element %u of tensors does not require grad and does not have a grad_fn", i);
    }
    return TN_OK;
}

/* Where the gradient of @p input arrives; nowhere when no graph can lead to it. */
static tn_status target_of(tn_tensor *input, tni_edge *out)
{
    tni_node *node = NULL;
    uint32_t output = 0;
    TN_TRY(tni_grad_fn(input, &node, &output));
    *out = node ? (tni_edge){tni_node_ref(node), output}
                : (tni_edge){tni_accumulator_if_any(input), 0};
    return TN_OK;
}

static bool is_true(int32_t option, bool otherwise)
{
    return option == TN_BOOL_NONE ? otherwise : option != TN_BOOL_FALSE;
}

/* The pass that a request is for, with the options (tn_opt_bool) of whoever asked. */
static tni_execute pass_of(const request *r, int32_t retain_graph, int32_t create_graph)
{
    bool create = is_true(create_graph, false);
    return (tni_execute){.roots = r->roots,
                         .seeds = r->seeds,
                         .n_roots = r->n_roots,
                         .keep_graph = is_true(retain_graph, create),
                         .create_graph = create,
                         .targets = r->targets,
                         .n_targets = r->n_targets};
}

/* ---- backward ---- */

static tn_status backward(request *r, tn_tensor *const *tensors, tn_tensor *const *grads,
                          const tn_backward_opts *opts)
{
    TN_TRY(add_roots(r, tensors, grads));
    for (uint32_t i = 0; i < r->n_targets; i++) {
        TN_CHECK(opts->inputs[i], TN_INVALID, "element %u of inputs is NULL", i);
        TN_TRY(tn_tensor_retain_grad(opts->inputs[i]));
        TN_TRY(target_of(opts->inputs[i], &r->targets[i]));
    }
    const tni_execute what = pass_of(r, opts->retain_graph, opts->create_graph);
    return tni_execute_pass(&what);
}

tn_status tn_backward(tn_tensor *const *tensors, int64_t n, tn_tensor *const *grads,
                      const tn_backward_opts *opts)
{
    static const tn_backward_opts defaults = TN_BACKWARD_OPTS_INIT;
    tn_backward_opts o = defaults;
    TN_CHECK(tensors || n == 0, TN_INVALID, "tn_backward: tensors is NULL");
    if (opts) {
        TN_CHECK(opts->size == sizeof o, TN_INVALID, "tn_backward: opts has %u bytes, wanted %zu",
                 opts->size, sizeof o);
        o = *opts;
    }
    TN_CHECK(o.inputs || o.n_inputs == 0, TN_INVALID,
             "tn_backward: inputs is NULL, n_inputs is %lld", (long long)o.n_inputs);
    TN_CHECK(!o.inputs || o.n_inputs > 0, TN_INVALID,
             "`inputs` argument to `backward()` cannot be empty.");
    request r;
    tn_status status = request_begin(&r, n, o.inputs ? o.n_inputs : 0);
    if (status == TN_OK)
        status = n ? backward(&r, tensors, grads, &o) : TN_OK;
    request_end(&r);
    return status;
}

tn_status tn_tensor_backward(tn_tensor *t)
{
    TN_CHECK(t, TN_INVALID, "tn_tensor_backward: t is NULL");
    return tn_backward(&t, 1, NULL, NULL);
}

/* ---- grad ---- */

/* Zeros for an input that was not used. Of a pass that is recorded they are a leaf, so that who
 * differentiates again need not tell them from other gradients. */
static tn_status zero_gradient(tn_tensor *input, bool create_graph, tn_tensor **out)
{
    TN_AUTO(tn_tensor) zeros = NULL;
    TN_TRY(tn_zeros_like(input, NULL, TN_FORMAT_PRESERVE, &zeros));
    if (create_graph)
        TN_TRY(tn_tensor_set_requires_grad(zeros, true));
    *out = TN_MOVE(zeros);
    return TN_OK;
}

static tn_status fill_unused(tn_tensor *const *inputs, int64_t n, bool allow, bool materialize,
                             bool create_graph, tn_tensor **grads)
{
    for (int64_t i = 0; i < n; i++) {
        if (grads[i])
            continue;
        TN_CHECK(allow, TN_INVALID,
                 "One of the differentiated Tensors appears to not have been used in the graph. "
                 "Set allow_unused=True if this is the desired behavior.");
        if (materialize)
            TN_TRY(zero_gradient(inputs[i], create_graph, &grads[i]));
    }
    return TN_OK;
}

static tn_status grad(request *r, tn_tensor *const *outputs, tn_tensor *const *inputs,
                      tn_tensor *const *grad_outputs, const tn_grad_opts *opts, tn_tensor **grads)
{
    TN_TRY(add_roots(r, outputs, grad_outputs));
    for (uint32_t i = 0; i < r->n_targets; i++) {
        TN_CHECK(inputs[i], TN_INVALID, "element %u of inputs is NULL", i);
        TN_CHECK(tni_requires_grad(inputs[i]), TN_INVALID,
                 "One of the differentiated Tensors does not require grad");
        TN_TRY(target_of(inputs[i], &r->targets[i]));
    }
    bool materialize = is_true(opts->materialize_grads, false);
    tni_execute what = pass_of(r, opts->retain_graph, opts->create_graph);
    what.captured = grads;
    TN_TRY(tni_execute_pass(&what));
    return fill_unused(inputs, r->n_targets, is_true(opts->allow_unused, materialize), materialize,
                       what.create_graph, grads);
}

tn_status tn_grad(tn_tensor *const *outputs, int64_t n_outputs, tn_tensor *const *inputs,
                  int64_t n_inputs, tn_tensor *const *grad_outputs, const tn_grad_opts *opts,
                  tn_tensor **out)
{
    static const tn_grad_opts defaults = TN_GRAD_OPTS_INIT;
    tn_grad_opts o = defaults;
    TN_CHECK(outputs || n_outputs == 0, TN_INVALID, "tn_grad: outputs is NULL");
    TN_CHECK(inputs && n_inputs > 0, TN_VALUE, "grad requires non-empty inputs.");
    TN_CHECK(out, TN_INVALID, "tn_grad: out is NULL");
    if (opts) {
        TN_CHECK(opts->size == sizeof o, TN_INVALID, "tn_grad: opts has %u bytes, wanted %zu",
                 opts->size, sizeof o);
        o = *opts;
    }
    TN_CHECK(!is_true(o.materialize_grads, false) || o.allow_unused != TN_BOOL_FALSE, TN_VALUE,
             "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
             "allow_unused=False.");
    request r;
    tn_tensor *few[FEW] = {NULL};
    tn_tensor **grads = few;
    tn_status status = request_begin(&r, n_outputs, n_inputs);
    if (status == TN_OK && n_inputs > FEW) {
        grads = tni_calloc((size_t)n_inputs * sizeof *grads);
        if (!grads)
            status =
                tni_fail(TN_NOMEM, TNI_WHERE, "cannot note %lld gradients", (long long)n_inputs);
    }
    if (status == TN_OK)
        status = grad(&r, outputs, inputs, grad_outputs, &o, grads);
    request_end(&r);
    bool have_room = grads && (grads != few || n_inputs <= FEW);
    for (int64_t i = 0; have_room && i < n_inputs; i++) {
        if (status == TN_OK)
            out[i] = grads[i];
        else
            tn_tensor_unref(grads[i]);
    }
    if (grads != few)
        tni_free(grads);
    return status;
}
