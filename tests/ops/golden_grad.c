/* SPDX-License-Identifier: MIT */
/* tests/ops/golden_grad.c: the gradients of a golden case; see golden.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "ops/golden.h"
#include "tenon/autograd.h"

enum { MOST = 64 };

typedef struct seeded {
    tn_tensor *outputs[MOST], *seeds[MOST]; /* borrowed; owned */
    int n;
} seeded;

/* A tensor literal of the result's shape and dtype, on its device. */
static tn_status make_seed(const tn_tensor *t, tn_tensor **out)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s%s[", tni_is_meta(t) ? "meta " : "",
                     tn_dtype_name((tn_dtype)t->dtype));
    for (int d = 0; d < t->ndim; d++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%lld", d ? "," : "",
                      (long long)t->sizes[d]);
    snprintf(text + n, sizeof text - (size_t)n, "]");
    tn_value value;
    TN_TRY(tni_value_parse(text, NULL, &value));
    *out = value.u.tensor;
    return TN_OK;
}

static bool asked_for(const golden_case *c, int index)
{
    const char *list = golden_option(c, "seeds");
    if (!list)
        return true;
    for (char *end; *list && *list != ' '; list = *end == ',' ? end + 1 : end)
        if (strtol(list, &end, 10) == index)
            return true;
    return false;
}

static tn_status add_output(const golden_case *c, int index, tn_tensor *t, seeded *s)
{
    if (!t || !tn_tensor_requires_grad(t) || !asked_for(c, index))
        return TN_OK;
    if (s->n == MOST)
        return tni_fail(TN_INTERNAL, TNI_WHERE, "too many results");
    TN_TRY(make_seed(t, &s->seeds[s->n]));
    s->outputs[s->n++] = t;
    return TN_OK;
}

static void drop_seeds(seeded *s)
{
    for (int i = 0; i < s->n; i++)
        tn_tensor_unref(s->seeds[i]);
    s->n = 0;
}

/* Gradients of the gradients @p first, with respect to the arguments and then to the first seeds.
 */
static tn_status differentiate_again(const golden_call *call, const seeded *once,
                                     tn_tensor *const *first, tn_tensor **out)
{
    seeded again = {.n = 0};
    tn_tensor *inputs[2 * MOST];
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    tn_status status = TN_OK;
    int n = 0;
    opts.allow_unused = TN_BOOL_TRUE;
    for (int i = 0; i < call->n_wanted; i++)
        inputs[n++] = call->wanted[i];
    for (int i = 0; i < once->n; i++)
        inputs[n++] = once->seeds[i];
    const golden_case all = {.options = ""};
    for (int i = 0; i < call->n_wanted && status == TN_OK; i++)
        status = add_output(&all, i, first[i], &again);
    for (int i = 0; i < n; i++)
        out[i] = NULL;
    if (status == TN_OK && again.n > 0)
        status = tn_grad(again.outputs, again.n, inputs, n, again.seeds, &opts, out);
    drop_seeds(&again);
    return status;
}

tn_status golden_gradients(const golden_case *c, const golden_call *call, const tn_value *rets,
                           int n_rets, tn_value *out)
{
    seeded s = {.n = 0};
    tn_status status = TN_OK;
    const bool twice = golden_option(c, "twice") != NULL;
    int index = 0;
    for (int i = 0; i < n_rets && status == TN_OK; i++) {
        bool list = rets[i].tag == TN_TAG_TENSOR_LIST;
        uint32_t count = list ? rets[i].count : rets[i].tag == TN_TAG_TENSOR;
        for (uint32_t k = 0; k < count && status == TN_OK; k++)
            status = add_output(c, index++, list ? rets[i].u.tensors[k] : rets[i].u.tensor, &s);
    }
    int n = s.n > 0 ? call->n_wanted : 0;
    tn_tensor **grads = tni_alloc((size_t)(n + s.n ? n + s.n : 1) * sizeof *grads);
    if (status == TN_OK && !grads)
        status = tni_fail(TN_NOMEM, TNI_WHERE, "no memory for %d gradients", n);
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.allow_unused = TN_BOOL_TRUE;
    opts.create_graph = twice ? TN_BOOL_TRUE : TN_BOOL_FALSE;
    for (int i = 0; i < s.n && twice && status == TN_OK; i++)
        status = tn_tensor_set_requires_grad(s.seeds[i], true);
    if (status == TN_OK && n > 0)
        status = tn_grad(s.outputs, s.n, call->wanted, n, s.seeds, &opts, grads);
    if (status == TN_OK && n > 0 && twice) {
        tn_tensor *first[MOST];
        memcpy(first, grads, (size_t)n * sizeof *grads);
        status = differentiate_again(call, &s, first, grads);
        for (int i = 0; i < n; i++)
            tn_tensor_unref(first[i]);
        n += s.n;
    }
    drop_seeds(&s);
    if (status != TN_OK) {
        tni_free(grads);
        return status;
    }
    *out = tn_value_take_tensors(grads, n);
    return TN_OK;
}
