/* SPDX-License-Identifier: MIT */
/* autograd/keep.c: what formulas need besides tensors: values kept in nodes, numbers, gradients
 * that did not come. */
#include "autograd/record.h"

#include <string.h>
#include "tenon/ops.h"

/* ---- keeping ---- */

tn_status tni_keep_ints(tni_ints *to, const int64_t *v, int64_t n)
{
    if (!v)
        return TN_OK;
    size_t nbytes = (size_t)n * sizeof *v;
    to->v = nbytes <= sizeof to->room ? to->room : tni_alloc(nbytes);
    TN_CHECK(to->v, TN_NOMEM, "cannot keep %lld numbers for the backward pass", (long long)n);
    memcpy(to->v, v, nbytes);
    to->n = n;
    return TN_OK;
}

tn_status tni_keep_shapes(tni_ints *to, tn_tensor *const *list, int64_t n)
{
    int64_t total = n;
    for (int64_t i = 0; i < n; i++)
        total += list[i]->ndim;
    size_t nbytes = (size_t)total * sizeof *to->v;
    to->v = nbytes <= sizeof to->room ? to->room : tni_alloc(nbytes);
    TN_CHECK(to->v, TN_NOMEM, "cannot keep %lld shapes for the backward pass", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        to->v[to->n++] = list[i]->ndim;
        for (int d = 0; d < list[i]->ndim; d++)
            to->v[to->n++] = list[i]->sizes[d];
    }
    return TN_OK;
}

tn_status tni_keep_tensors(tni_saved_list *to, tn_tensor *const *list, int64_t n)
{
    TN_CHECK(n <= TN_MAX_DIMS, TN_UNSUPPORTED, "cannot keep more than %d tensors of a list",
             TN_MAX_DIMS);
    to->v = tni_calloc((size_t)n * sizeof *to->v);
    TN_CHECK(to->v || n == 0, TN_NOMEM, "cannot keep %lld tensors for the backward pass",
             (long long)n);
    to->n = n;
    for (int64_t i = 0; i < n; i++)
        TN_TRY(tni_saved_fill(&to->v[i], list[i], false, false));
    return TN_OK;
}

tni_kept_scalar tni_keep_scalar(const tn_scalar *s)
{
    return s ? (tni_kept_scalar){*s, true} : (tni_kept_scalar){.has = false};
}

tni_kept_string tni_keep_string(const char *text)
{
    tni_kept_string kept = {.has = text != NULL};
    for (size_t i = 0; text && text[i] && i + 1 < sizeof kept.text; i++)
        kept.text[i] = text[i];
    return kept;
}

tni_kept_bools tni_keep_bools(const bool *v, int64_t n)
{
    tni_kept_bools kept = {.n = 0};
    for (; kept.n < n && kept.n < sizeof kept.v; kept.n++)
        kept.v[kept.n] = v[kept.n];
    return kept;
}

tni_kept_floats tni_keep_floats(const double *v, int64_t n)
{
    tni_kept_floats kept = {.has = v != NULL};
    for (; v && kept.n < n && kept.n < sizeof kept.v / sizeof *kept.v; kept.n++)
        kept.v[kept.n] = v[kept.n];
    return kept;
}

tn_tensor_opts tni_opts_of(const tn_tensor *t)
{
    return tn_opts(tn_tensor_dtype(t), tn_tensor_device(t));
}

/* ---- numbers ---- */

static double re(tn_scalar s)
{
    return tn_scalar_to_double(s);
}

static double im(tn_scalar s)
{
    return s.kind == TN_SCALAR_COMPLEX ? s.imag : 0;
}

static bool integral(tn_scalar s)
{
    return s.kind == TN_SCALAR_INT || s.kind == TN_SCALAR_BOOL;
}

static tn_scalar make(double real, double imag, bool complex)
{
    return complex ? tn_complex(real, imag) : tn_float(real);
}

static bool any_complex(tn_scalar a, tn_scalar b)
{
    return a.kind == TN_SCALAR_COMPLEX || b.kind == TN_SCALAR_COMPLEX;
}

/* Integers wrap, as elements do. */
static int64_t wrap(uint64_t v)
{
    return (int64_t)v;
}

tn_scalar tni_scalar_add(tn_scalar a, tn_scalar b)
{
    if (integral(a) && integral(b))
        return tn_int(wrap((uint64_t)a.v.i + (uint64_t)b.v.i));
    return make(re(a) + re(b), im(a) + im(b), any_complex(a, b));
}

tn_scalar tni_scalar_sub(tn_scalar a, tn_scalar b)
{
    if (integral(a) && integral(b))
        return tn_int(wrap((uint64_t)a.v.i - (uint64_t)b.v.i));
    return make(re(a) - re(b), im(a) - im(b), any_complex(a, b));
}

tn_scalar tni_scalar_neg(tn_scalar a)
{
    return tni_scalar_sub(tn_int(0), a);
}

tn_scalar tni_scalar_mul(tn_scalar a, tn_scalar b)
{
    if (integral(a) && integral(b))
        return tn_int(wrap((uint64_t)a.v.i * (uint64_t)b.v.i));
    return make(re(a) * re(b) - im(a) * im(b), re(a) * im(b) + im(a) * re(b), any_complex(a, b));
}

tn_scalar tni_scalar_div(tn_scalar a, tn_scalar b)
{
    double norm = re(b) * re(b) + im(b) * im(b);
    if (!any_complex(a, b))
        return tn_float(re(a) / re(b));
    return tn_complex((re(a) * re(b) + im(a) * im(b)) / norm,
                      (im(a) * re(b) - re(a) * im(b)) / norm);
}

/* ---- gradients ---- */

tn_tensor *tni_defined_grad(const tni_backward *b, uint32_t i)
{
    if (b->grads[i] || tni_scope_failed())
        return b->grads[i];
    const tni_input *in = &b->node->inputs[i];
    if (in->dtype == TN_DTYPE_NONE)
        return NULL;
    tn_tensor_opts opts = tn_opts((tn_dtype)in->dtype, in->device);
    return tnx_zeros(tni_input_sizes(in), in->ndim, &opts);
}

void tni_take_results(tni_backward *b, tn_status status, const uint8_t *edges, tn_tensor **made,
                      int n)
{
    if (status != TN_OK) {
        (void)tni_scope_result(status, NULL);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (!made[i])
            continue;
        tn_tensor *result = tni_scope_result(TN_OK, made[i]);
        if (tni_backward_needs(b, edges[i]))
            b->results[edges[i]] = result;
    }
}
