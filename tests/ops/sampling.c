/* SPDX-License-Identifier: MIT */
/* tests/ops/sampling.c: see the header. */
#include "sampling.h"

#include <string.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "tenon/ops.h"

/* ---- bundles ---- */

void bundle_clear(bundle *b)
{
    for (int i = 0; i < b->n; i++)
        tn_value_clear(&b->v[i]);
    b->n = 0;
}

bool bundle_has_tensors(const bundle *b)
{
    for (int i = 0; i < b->n; i++)
        if ((b->v[i].tag == TN_TAG_TENSOR && b->v[i].u.tensor) ||
            (b->v[i].tag == TN_TAG_TENSOR_LIST && b->v[i].count))
            return true;
    return false;
}

void bundle_reform(bundle *b, tn_tensor *(*form)(tn_tensor *t, void *arg), void *arg)
{
    for (int i = 0; i < b->n; i++) {
        tn_value *v = &b->v[i];
        if (v->tag == TN_TAG_TENSOR && v->u.tensor) {
            tn_tensor *made = form(v->u.tensor, arg);
            tn_value_clear(v);
            *v = tn_value_take_tensor(made);
        } else if (v->tag == TN_TAG_TENSOR_LIST) {
            uint32_t n = v->count;
            tn_tensor **list = tni_alloc((n + 1) * sizeof *list);
            for (uint32_t k = 0; k < n; k++)
                list[k] = v->u.tensors[k] ? form(v->u.tensors[k], arg) : NULL;
            tn_value_clear(v);
            *v = tn_value_take_tensors(list, n);
        }
    }
}

bundle bundle_copy(const bundle *b)
{
    bundle made = {.n = b->n};
    for (int i = 0; i < b->n; i++)
        ASSERT_OK(tn_value_copy(&b->v[i], &made.v[i]));
    return made;
}

/* ---- samples ---- */

tni_schema *sample_schema(const char *op)
{
    tn_op *handle;
    tni_schema *schema;
    char *text;
    ASSERT_OK(tn_op_find(op, &handle));
    ASSERT_OK(tn_op_schema(handle, &text));
    ASSERT_OK(tni_schema_parse(text, &schema));
    tn_string_free(text);
    return schema;
}

bundle sample_arguments(const tni_sample *s)
{
    bundle b = {0};
    tni_schema *schema = sample_schema(s->op);
    ASSERT_OK(tni_args_parse(schema, s->args, b.v));
    b.n = schema->nargs;
    tni_schema_free(schema);
    return b;
}

bundle sample_arguments_of(const tni_sample *s, const char *out)
{
    bundle all = sample_arguments(s), b = {0};
    tni_schema *from = sample_schema(s->op), *to = sample_schema(out);
    b.n = to->nargs;
    for (int k = 0; k < to->nargs; k++) {
        b.v[k] = tn_value_none();
        for (int i = 0; i < from->nargs; i++) {
            if (strcmp(from->args[i].name, to->args[k].name) == 0) {
                b.v[k] = all.v[i];
                all.v[i] = tn_value_none();
            }
        }
    }
    bundle_clear(&all);
    tni_schema_free(from);
    tni_schema_free(to);
    return b;
}

tn_value sample_place_for(const tn_value *result,
                          tn_tensor *(*make)(const tn_tensor *like, int kind), int kind)
{
    if (result->tag != TN_TAG_TENSOR_LIST)
        return tn_value_take_tensor(
            make(result->tag == TN_TAG_TENSOR ? result->u.tensor : NULL, kind));
    tn_tensor **list = tni_alloc((result->count + 1) * sizeof *list);
    for (uint32_t k = 0; k < result->count; k++)
        list[k] = make(result->u.tensors[k], kind);
    return tn_value_take_tensors(list, result->count);
}

tn_status sample_call(const char *op, const bundle *args, bundle *rets)
{
    tn_op *handle;
    tn_status st = tn_op_find(op, &handle);
    if (st != TN_OK)
        return st;
    tn_manual_seed(7);
    st = tn_op_call(handle, args->v, args->n, rets->v);
    rets->n = st == TN_OK ? tn_op_num_returns(handle) : 0;
    return st;
}

void sample_note(const tni_sample *s, const char *what)
{
    test_note("%s:%d: %s(%s), %s", s->file, s->line, s->op, s->args, what);
}

/* ---- tensors in another form ---- */

enum { KEPT_FLAGS = TNI_WRAPPED_NUMBER | TNI_REQUIRES_GRAD };

tn_tensor *sample_on_meta(const tn_tensor *t)
{
    tni_storage *s = NULL;
    tn_tensor *m = NULL;
    ASSERT_OK(tni_storage_new(TN_META, t->storage->nbytes, &s));
    tn_keyset keys = tni_tensor_keys_for(TN_DEVICE_META, tn_tensor_is_inference(t));
    ASSERT_OK(tni_tensor_over(s, t->ndim, t->sizes, t->strides, t->offset, (tn_dtype)t->dtype, keys,
                              TN_META, &m));
    tni_storage_unref(s);
    m->flags |= t->flags & KEPT_FLAGS;
    return m;
}

tn_tensor *sample_relaid(tn_tensor *t, const int64_t *strides, tn_dtype dtype)
{
    tn_tensor *r = NULL;
    ASSERT_OK(tni_tensor_new(t->ndim, t->sizes, strides, dtype, TN_CPU, &r));
    ASSERT_OK(tn_copy_(r, t, false));
    r->flags |= t->flags & KEPT_FLAGS;
    atomic_store(r->versions, 0);
    return r;
}

/* ---- what is known of operators ---- */

int sample_shares_with(const bundle *args, const tn_tensor *t)
{
    for (int i = 0; i < args->n; i++)
        if (args->v[i].tag == TN_TAG_TENSOR && args->v[i].u.tensor &&
            tn_tensor_shares_storage(args->v[i].u.tensor, t))
            return i;
    return -1;
}

bool sample_uninitialised(const char *op)
{
    return strstr(op, "empty") != NULL || strstr(op, "resize_") != NULL;
}

static bool is_one_of(const char *op, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(op, *names) == 0)
            return true;
    return false;
}

static bool has_one_of(const char *op, const char *const *parts)
{
    for (; *parts; parts++)
        if (strstr(op, *parts))
            return true;
    return false;
}

bool sample_needs_data(const char *op)
{
    static const char *const parts[] = {
        "item",          "_local_scalar_dense", "ctc_loss.Tensor", "::nonzero", "::_unique",
        "masked_select", "_sequence",           ".data",           "::unique",  NULL};
    static const char *const names[] = {"aten::equal",
                                        "aten::_ctc_loss_backward.Tensor",
                                        "aten::where",
                                        "aten::narrow.Tensor",
                                        "aten::allclose",
                                        "aten::bincount",
                                        "aten::argwhere",
                                        "aten::masked_scatter_backward",
                                        "aten::is_nonzero",
                                        "aten::tensor_split.tensor_indices_or_sections",
                                        NULL};
    return has_one_of(op, parts) || is_one_of(op, names);
}

bool sample_looks_at_memory(const char *op)
{
    static const char *const parts[] = {"strided",      "_reshape_alias", "resize_",
                                        "_unsafe_view", "storage_offset", NULL};
    static const char *const names[] = {"aten::view",
                                        "aten::view_as_complex",
                                        "aten::_linalg_det",
                                        "aten::view_as_complex_copy",
                                        "aten::_linalg_slogdet",
                                        NULL};
    return has_one_of(op, parts) || is_one_of(op, names);
}
