/* SPDX-License-Identifier: MIT */
/* names/rules.c: the rules that are one thought each; products are in rules_product.c. */
#include "names/rules.h"

/* ---- what rules read ---- */

const tn_value *tni_name_argument(const tni_naming *to, const char *name)
{
    for (int i = 0; i < to->schema->nargs; i++)
        if (strcmp(to->schema->args[i].name, name) == 0)
            return &to->args[i];
    return NULL;
}

const tn_tensor *tni_name_operand(const tni_naming *to, int i)
{
    for (int a = 0; a < to->schema->nargs; a++)
        if (to->args[a].tag == TN_TAG_TENSOR && to->args[a].u.tensor &&
            !to->schema->args[a].is_out && i-- == 0)
            return to->args[a].u.tensor;
    return NULL;
}

void tni_name_put(tni_naming *to, tni_name_list list)
{
    to->given = true;
    to->n = list.n;
    for (int i = 0; i < list.n; i++)
        to->names[i] = tni_name_at(list, i);
}

/* Dimensions that an argument means, as bits; without such an argument, @p all. */
static tn_status bits_of(const tn_value *v, int ndim, uint64_t all, uint64_t *out)
{
    int dim;
    if (!v || v->tag == TN_TAG_NONE || (v->tag == TN_TAG_INT_LIST && v->count == 0)) {
        *out = all;
        return TN_OK;
    }
    *out = 0;
    for (uint32_t i = 0; i < (v->tag == TN_TAG_INT ? 1 : v->count); i++) {
        TN_TRY(tni_wrap_dim(v->tag == TN_TAG_INT ? v->u.i : v->u.ints[i], ndim, &dim));
        *out |= UINT64_C(1) << dim;
    }
    return TN_OK;
}

/* Names without the dimensions in @p bits. */
static void put_without(tni_naming *to, tni_name_list list, uint64_t bits)
{
    to->given = true;
    for (int i = 0; i < list.n; i++)
        if (!(bits >> i & 1))
            to->names[to->n++] = tni_name_at(list, i);
}

/* ---- the rules ---- */

static tn_status none(tni_naming *to)
{
    (void)to;
    return TN_OK;
}

/* Operands that are broadcast together. A named result given to unnamed operands is refused. */
static tn_status unify(tni_naming *to)
{
    const tn_tensor *t;
    to->given = true;
    for (int i = 0; (t = tni_name_operand(to, i)) != NULL; i++)
        if (i == 0)
            tni_name_put(to, tni_name_list_of(t));
        else
            TN_TRY(tni_name_unify(to, tni_name_list_of(t), "broadcast"));
    return TN_OK;
}

static tn_status same(tni_naming *to)
{
    tni_name_put(to, tni_name_list_of(tni_name_operand(to, 0)));
    return TN_OK;
}

/* Sums over dimensions, and what takes one place of a dimension. */
static tn_status reduce(tni_naming *to)
{
    const tn_tensor *self = tni_name_operand(to, 0);
    const tn_value *keep = tni_name_argument(to, "keepdim");
    uint64_t bits;
    if (keep && keep->u.i)
        return same(to);
    TN_TRY(bits_of(tni_name_argument(to, "dim"), self->ndim, UINT64_MAX, &bits));
    put_without(to, tni_name_list_of(self), bits);
    return TN_OK;
}

static tn_status transpose(tni_naming *to)
{
    const tn_tensor *self = tni_name_operand(to, 0);
    const tn_value *first = tni_name_argument(to, "dim0"), *second;
    int a = 0, b = self->ndim > 1 ? 1 : 0;
    if (first && (second = tni_name_argument(to, "dim1")) != NULL) {
        TN_TRY(tni_wrap_dim(first->u.i, self->ndim, &a));
        TN_TRY(tni_wrap_dim(second->u.i, self->ndim, &b));
    }
    TN_TRY(same(to));
    if (self->ndim == 0)
        return TN_OK;
    const char *name = to->names[a];
    to->names[a] = to->names[b];
    to->names[b] = name;
    return TN_OK;
}

/* New dimensions come in front, without names. */
static tn_status expand(tni_naming *to)
{
    tni_name_list list = tni_name_list_of(tni_name_operand(to, 0));
    int n = (int)tni_name_argument(to, "size")->count;
    if (n > TN_MAX_DIMS || n < list.n)
        return TN_OK; /* the operator says what is wrong */
    to->given = true;
    to->n = n;
    for (int i = 0; i < n; i++)
        to->names[i] = i < n - list.n ? NULL : tni_name_at(list, i - (n - list.n));
    return TN_OK;
}

static tn_status squeeze(tni_naming *to)
{
    const tn_tensor *self = tni_name_operand(to, 0);
    uint64_t bits;
    TN_TRY(bits_of(tni_name_argument(to, "dim"), self->ndim, UINT64_MAX, &bits));
    for (int i = 0; i < self->ndim; i++)
        if (self->sizes[i] != 1)
            bits &= ~(UINT64_C(1) << i);
    put_without(to, tni_name_list_of(self), bits);
    return TN_OK;
}

/* Two dimensions become one, which comes last and has no name yet. */
static tn_status diagonal(tni_naming *to)
{
    const tn_tensor *self = tni_name_operand(to, 0);
    uint64_t first, second;
    TN_TRY(bits_of(tni_name_argument(to, "dim1"), self->ndim, 0, &first));
    TN_TRY(bits_of(tni_name_argument(to, "dim2"), self->ndim, 0, &second));
    put_without(to, tni_name_list_of(self), first | second);
    to->names[to->n++] = NULL;
    return TN_OK;
}

static tn_status cat(tni_naming *to)
{
    const tn_value *list = tni_name_argument(to, "tensors");
    for (uint32_t i = 0; i < list->count; i++)
        if (i == 0)
            tni_name_put(to, tni_name_list_of(list->u.tensors[i]));
        else if (list->u.tensors[i]->ndim != to->n)
            TN_FAIL(TN_INVALID, "Tensors must have same number of dimensions: got %d and %d", to->n,
                    list->u.tensors[i]->ndim);
        else
            TN_TRY(tni_name_unify(to, tni_name_list_of(list->u.tensors[i]), "cat"));
    return TN_OK;
}

/* A mask is broadcast to the tensor, never the tensor to the mask. */
static tn_status mask(tni_naming *to)
{
    const tn_tensor *self = tni_name_operand(to, 0), *by = tni_name_operand(to, 1);
    char a[TNI_NAMES_TEXT], b[TNI_NAMES_TEXT];
    TN_CHECK(by->ndim <= self->ndim, TN_INVALID,
             "%s: attempted to broadcast Tensor%s to Tensor%s but the number of dims (%d) must be "
             "less than or equal to the number of dims in the tensor (%d)",
             to->schema->name + strlen("aten::"), tni_names_format_of(by, a),
             tni_names_format_of(self, b), by->ndim, self->ndim);
    TN_TRY(same(to));
    return tni_name_unify(to, tni_name_list_of(by), "broadcast");
}

/* What a mask selects is a row of its own. */
static tn_status masked(tni_naming *to)
{
    TN_TRY(unify(to));
    to->given = false;
    return TN_OK;
}

/* Tensors whose names differ are not equal. */
static tn_status equal(tni_naming *to)
{
    tni_name_list a = tni_name_list_of(tni_name_operand(to, 0));
    tni_name_list b = tni_name_list_of(tni_name_operand(to, 1));
    bool are = a.n == b.n;
    for (int i = 0; are && i < a.n; i++)
        are = tni_name_equal(tni_name_at(a, i), tni_name_at(b, i));
    to->known = !are;
    to->result = tn_value_bool(false);
    return TN_OK;
}

const tni_name_rule_fn tni_name_rules[TNI_NUM_NAME_RULES] = {
    [TNI_NAMES_NONE] = none,
    [TNI_NAMES_UNIFY] = unify,
    [TNI_NAMES_SAME] = same,
    [TNI_NAMES_REDUCE] = reduce,
    [TNI_NAMES_TRANSPOSE] = transpose,
    [TNI_NAMES_EXPAND] = expand,
    [TNI_NAMES_SQUEEZE] = squeeze,
    [TNI_NAMES_DIAGONAL] = diagonal,
    [TNI_NAMES_PRODUCT] = tni_name_product,
    [TNI_NAMES_DISTANCE] = tni_name_distance,
    [TNI_NAMES_CAT] = cat,
    [TNI_NAMES_MASK] = mask,
    [TNI_NAMES_MASKED] = masked,
    [TNI_NAMES_EQUAL] = equal,
};
