/* SPDX-License-Identifier: MIT */
/* tests/ops/wrong.c: see wrong.h. */
#include "ops/wrong.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "harness/test.h"
#include "tenon/ops.h"

/* Sizes of which no memory could be had, or that are small: nothing between, which would be slow.
 */
static const int64_t numbers[] = {INT64_MIN,
                                  INT64_MIN + 1,
                                  -(INT64_C(1) << 52),
                                  -7,
                                  -1,
                                  0,
                                  1,
                                  2,
                                  3,
                                  5,
                                  INT64_MAX,
                                  INT64_C(1) << 52,
                                  INT64_C(1) << 62,
                                  -3,
                                  -2,
                                  4,
                                  7,
                                  64,
                                  INT64_MAX - 1,
                                  INT64_MAX / 2,
                                  -(INT64_C(1) << 62),
                                  INT32_MIN - INT64_C(1)};
enum { NUMBERS = sizeof numbers / sizeof *numbers, MODEST = 1 << 12 };

/* Random numbers that depend on the sample alone: a new one does not change what others meet. */
static uint64_t state;

void wrong_begin(const tni_sample *s, uint64_t turn)
{
    state = UINT64_C(14695981039346656037) ^ turn;
    for (const char *p = s->op; *p; p++)
        state = (state ^ (unsigned char)*p) * UINT64_C(1099511628211);
    for (const char *p = s->args; *p; p++)
        state = (state ^ (unsigned char)*p) * UINT64_C(1099511628211);
}

uint64_t wrong_pick(uint64_t n)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static int64_t any_number(void)
{
    return numbers[wrong_pick(NUMBERS)];
}

static double any_float(void)
{
    static const double floats[] = {(double)NAN,
                                    (double)INFINITY,
                                    -(double)INFINITY,
                                    0.0,
                                    -0.0,
                                    -1.0,
                                    0.5,
                                    2.0,
                                    1e300,
                                    -1e300,
                                    1e-320,
                                    9.3e18};
    return floats[wrong_pick(sizeof floats / sizeof *floats)];
}

/* ---- tensors ---- */

tn_tensor *wrong_fresh(int ndim, const int64_t *sizes, tn_dtype dtype, tn_device device)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, device);
    ASSERT_OK(tn_ones(sizes, ndim, &opts, &t));
    return t;
}

static void poke_one(tn_tensor *t, size_t at)
{
    switch ((tn_dtype)t->dtype) {
    case TN_DTYPE_I64:
    case TN_DTYPE_U64:
        ((int64_t *)t->data)[at] = any_number();
        break;
    case TN_DTYPE_I32:
    case TN_DTYPE_U32:
        ((int32_t *)t->data)[at] = (int32_t)any_number();
        break;
    case TN_DTYPE_I16:
    case TN_DTYPE_U16:
        ((int16_t *)t->data)[at] = (int16_t)any_number();
        break;
    case TN_DTYPE_F16:
    case TN_DTYPE_BF16: /* NaN, infinities, the largest and the smallest number among them */
        ((uint16_t *)t->data)[at] =
            (uint16_t)(wrong_pick(2) ? wrong_pick(4) * 0x3fff + wrong_pick(2)
                                     : wrong_pick(1 << 16));
        break;
    case TN_DTYPE_I8:
    case TN_DTYPE_U8:
        ((int8_t *)t->data)[at] = (int8_t)any_number();
        break;
    case TN_DTYPE_BOOL:
        ((bool *)t->data)[at] = wrong_pick(2);
        break;
    case TN_DTYPE_F32:
        ((float *)t->data)[at] = (float)any_float();
        break;
    case TN_DTYPE_F64:
        ((double *)t->data)[at] = any_float();
        break;
    case TN_DTYPE_C64:
        ((float *)t->data)[2 * at + wrong_pick(2)] = (float)any_float();
        break;
    case TN_DTYPE_C128:
        ((double *)t->data)[2 * at + wrong_pick(2)] = any_float();
        break;
    default:
        break;
    }
}

static void poke(tn_tensor *t)
{
    if (!t->data || !t->numel || !(t->flags & TNI_CONTIGUOUS))
        return;
    for (uint64_t n = 1 + wrong_pick(2) * wrong_pick(4); n; n--)
        poke_one(t, (size_t)wrong_pick((uint64_t)t->numel));
}

tn_dtype wrong_dtype(void)
{
    static const tn_dtype dtypes[] = {TN_DTYPE_U8,   TN_DTYPE_I8,  TN_DTYPE_I16,  TN_DTYPE_I32,
                                      TN_DTYPE_I64,  TN_DTYPE_F16, TN_DTYPE_F32,  TN_DTYPE_F64,
                                      TN_DTYPE_BF16, TN_DTYPE_C64, TN_DTYPE_C128, TN_DTYPE_BOOL,
                                      TN_DTYPE_U16,  TN_DTYPE_U64, TN_DTYPE_U32,  TN_DTYPE_F8E4M3};
    return dtypes[wrong_pick(sizeof dtypes / sizeof *dtypes)];
}

tn_tensor *wrong_tensor(tn_tensor *t)
{
    int64_t sizes[TN_MAX_DIMS + 1] = {0};
    int ndim = t ? t->ndim : 1;
    tn_dtype dtype = t ? (tn_dtype)t->dtype : TN_DTYPE_F32;
    tn_device device = t ? t->device : TN_CPU;
    tn_tensor *made = NULL;
    for (int d = 0; t && d < ndim; d++) /* large ones once: they may move to where memory is */
        sizes[d] = t->sizes[d] <= MODEST ? t->sizes[d] : 1;
    switch (wrong_pick(11)) {
    case 0:
        return NULL;
    case 1:
        ndim = 0;
        break;
    case 2:
        if (ndim)
            sizes[wrong_pick((uint64_t)ndim)] = (int64_t)wrong_pick(4);
        break;
    case 3:
        if (ndim < 7)
            sizes[ndim++] = (int64_t)wrong_pick(3);
        break;
    case 4:
        if (ndim)
            ndim--;
        break;
    case 5:
        dtype = wrong_dtype();
        break;
    case 6:
        device = device.type == TN_DEVICE_META ? TN_CPU : TN_META;
        break;
    case 8: /* many dimensions: more than lie in a tensor, or as many as there can be */
        for (int most = wrong_pick(2) ? TN_MAX_DIMS : 9; ndim < most;)
            sizes[ndim++] = 1;
        break;
    case 9: /* more elements than memory has, without any */
        device = TN_META;
        if (ndim)
            sizes[wrong_pick((uint64_t)ndim)] = INT64_C(1) << 40;
        break;
    case 10: /* none, of a size that cannot be multiplied */
        for (int d = 0; d < ndim; d++)
            sizes[d] = d == 0 ? INT64_MAX / 16 : d == ndim - 1 ? 0 : 1;
        if (ndim == 1)
            sizes[0] = 0;
        break;
    default: /* every element is one */
        made = wrong_fresh(0, NULL, dtype, device);
        for (int d = 0; d < ndim; d++)
            sizes[d] = sizes[d] ? sizes[d] : 1;
        tn_tensor *wide = NULL;
        ASSERT_OK(tn_expand(made, sizes, ndim, false, &wide));
        tn_tensor_unref(made);
        return wide;
    }
    made = wrong_fresh(ndim, sizes, dtype, device);
    return made;
}

/* The same tensor with one element out of every range, where it has such. */
static tn_tensor *poked(tn_tensor *t)
{
    tn_tensor *made = NULL;
    if (t->device.type != TN_DEVICE_CPU)
        return tn_tensor_ref(t);
    ASSERT_OK(tn_clone(t, TN_FORMAT_CONTIGUOUS, &made));
    poke(made);
    return made;
}

/* ---- arguments ---- */

static int64_t lists[64];
static double float_list[64];
static tn_value scalar_list[64];
static bool bool_list[8];

static tn_value wrong_ints(const tn_value *v)
{
    uint32_t n = v->tag == TN_TAG_INT_LIST ? v->count : 0;
    n = n > 60 ? 60 : n;
    for (uint32_t i = 0; i < n; i++)
        lists[i] = v->u.ints[i];
    switch (wrong_pick(7)) {
    case 0:
        n = 0;
        break;
    case 5: /* one of them twice */
        if (n)
            lists[wrong_pick(n)] = lists[wrong_pick(n)];
        break;
    case 6: /* all of them, or more than there are dimensions */
        n = wrong_pick(2) ? n : 1 + (uint32_t)wrong_pick(63);
        for (uint32_t i = 0; i < n; i++)
            lists[i] = wrong_pick(3) ? lists[0] : any_number();
        break;
    case 1:
        lists[n++] = any_number();
        break;
    case 2:
        n -= n > 0;
        break;
    default:
        if (n)
            lists[wrong_pick(n)] = any_number();
        else
            lists[n++] = any_number();
    }
    return tn_value_ints(lists, n);
}

static tn_value wrong_scalar(void)
{
    return wrong_pick(3) == 0   ? tn_value_int(any_number())
           : wrong_pick(3) == 0 ? tn_value_scalar(tn_complex(any_float(), any_float()))
           : wrong_pick(5) == 0 ? tn_value_bool(wrong_pick(2))
                                : tn_value_float(any_float());
}

/* As many numbers as @p v has, or about as many. */
static tn_value wrong_scalars(const tn_value *v)
{
    uint32_t n = v->tag == TN_TAG_LIST ? v->count : 0;
    n = wrong_pick(3) ? n : (uint32_t)wrong_pick(4);
    n = n > 60 ? 60 : n;
    for (uint32_t i = 0; i < n; i++)
        scalar_list[i] = wrong_scalar();
    return (tn_value){.tag = TN_TAG_LIST, .count = n, .u.values = scalar_list};
}

tni_type_kind wrong_kind(const tni_schema_type *type)
{
    while (type->kind == TNI_TYPE_OPTIONAL)
        type = type->children[0];
    return type->kind;
}

tn_value wrong_value(const tn_value *v, const tni_schema_arg *arg)
{
    static const char *const words[] = {"",          "sum",      "mean",     "none",  "%s%n",
                                        "ij,jk->ik", "reflect",  "constant", "same",  "valid",
                                        "complete",  "bilinear", "amax",     "floor", "circular"};
    static tn_tensor *two[2];
    tni_type_kind kind = wrong_kind(arg->type);
    switch (kind) {
    case TNI_TYPE_TENSOR:
        if (v->tag == TN_TAG_TENSOR && v->u.tensor && wrong_pick(3) == 0)
            return tn_value_take_tensor(poked(v->u.tensor));
        tn_tensor *t = wrong_tensor(v->tag == TN_TAG_TENSOR ? v->u.tensor : NULL);
        return t ? tn_value_take_tensor(t) : tn_value_none();
    case TNI_TYPE_INT:
    case TNI_TYPE_SYMINT:
        return tn_value_int(any_number());
    case TNI_TYPE_FLOAT:
        return tn_value_float(any_float());
    case TNI_TYPE_BOOL:
        return tn_value_bool(wrong_pick(2));
    case TNI_TYPE_SCALAR:
        return wrong_scalar();
    case TNI_TYPE_STRING:
        return tn_value_string(words[wrong_pick(sizeof words / sizeof *words)]);
    case TNI_TYPE_SCALAR_TYPE:
    case TNI_TYPE_LAYOUT:
    case TNI_TYPE_MEMORY_FORMAT:
        return tn_value_int(wrong_pick(4) ? (int64_t)wrong_pick(24) : any_number());
    case TNI_TYPE_LIST:
        switch (wrong_kind(arg->type->kind == TNI_TYPE_OPTIONAL
                               ? arg->type->children[0]->children[0]
                               : arg->type->children[0])) {
        case TNI_TYPE_INT:
        case TNI_TYPE_SYMINT:
            return wrong_ints(v);
        case TNI_TYPE_FLOAT:
            float_list[0] = any_float();
            float_list[1] = any_float();
            return tn_value_floats(float_list, (int64_t)wrong_pick(3));
        case TNI_TYPE_SCALAR:
            return wrong_scalars(v);
        case TNI_TYPE_BOOL:
            for (int i = 0; i < 8; i++)
                bool_list[i] = wrong_pick(2);
            return tn_value_bools(bool_list, (int64_t)wrong_pick(5));
        case TNI_TYPE_TENSOR:
            if (v->tag != TN_TAG_TENSOR_LIST || v->count == 0 || wrong_pick(3) == 0)
                return tn_value_tensors(two, (int64_t)wrong_pick(2));
            tn_tensor **list = tni_alloc((v->count + 1) * sizeof *list);
            uint32_t other = (uint32_t)wrong_pick(v->count);
            bool twice = wrong_pick(4) == 0;
            for (uint32_t i = 0; i < v->count; i++)
                list[i] = i != other ? tn_tensor_ref(v->u.tensors[i])
                          : twice    ? tn_tensor_ref(v->u.tensors[(i + 1) % v->count])
                                     : wrong_tensor(v->u.tensors[i]);
            return tn_value_take_tensors(list, v->count);
        default:
            return tn_value_none();
        }
    default:
        return tn_value_none();
    }
}

/* ---- what was there before ---- */

enum { KEPT_BYTES = 1 << 20 };

static int keep(const tn_tensor *t, wrong_kept *all, int n)
{
    if (!t || !t->storage || n == WRONG_KEPT)
        return n;
    wrong_kept *k = &all[n];
    k->t = t;
    k->ndim = t->ndim;
    memcpy(k->sizes, t->sizes, (size_t)t->ndim * sizeof *t->sizes);
    memcpy(k->strides, t->strides, (size_t)t->ndim * sizeof *t->strides);
    k->offset = t->offset;
    k->dtype = t->dtype;
    k->flags = t->flags;
    k->storage = t->storage;
    k->nbytes = t->storage->nbytes;
    k->grad_fn = t->grad_fn;
    k->version = t->versions ? *t->versions : 0;
    k->bytes = t->storage->data && k->nbytes <= KEPT_BYTES ? k->nbytes : 0;
    k->copy = tni_alloc(k->bytes + 1);
    ASSERT(k->copy != NULL);
    if (k->bytes)
        memcpy(k->copy, t->storage->data, k->bytes);
    return n + 1;
}

int wrong_keep(const bundle *args, wrong_kept *all)
{
    int n = 0;
    for (int i = 0; i < args->n; i++) {
        if (args->v[i].tag == TN_TAG_TENSOR)
            n = keep(args->v[i].u.tensor, all, n);
        for (uint32_t k = 0; args->v[i].tag == TN_TAG_TENSOR_LIST && k < args->v[i].count; k++)
            n = keep(args->v[i].u.tensors[k], all, n);
    }
    return n;
}

/* What of a tensor has changed; NULL: nothing. */
static const char *change_of(const wrong_kept *k)
{
    const tn_tensor *t = k->t;
    if (t->dtype != k->dtype || t->ndim != k->ndim ||
        memcmp(t->sizes, k->sizes, (size_t)k->ndim * sizeof *k->sizes) != 0)
        return "its sizes";
    if (t->offset != k->offset ||
        memcmp(t->strides, k->strides, (size_t)k->ndim * sizeof *k->strides) != 0)
        return "its strides";
    if (t->storage != k->storage || t->storage->nbytes < k->nbytes)
        return "its storage";
    if (k->bytes && memcmp(k->copy, t->storage->data, k->bytes) != 0)
        return "its elements";
    if (t->storage->nbytes != k->nbytes)
        return "the size of its storage";
    if (t->flags != k->flags || t->grad_fn != k->grad_fn)
        return "its history";
    return (t->versions ? *t->versions : 0) != k->version ? "its version" : NULL;
}

const char *wrong_change(const wrong_kept *all, int n)
{
    const char *changed = NULL;
    for (int i = 0; i < n && !changed; i++)
        changed = change_of(&all[i]);
    return changed ? changed : "";
}

bool wrong_unwritten(const wrong_kept *all, int n)
{
    return wrong_change(all, n)[0] == 0;
}

void wrong_forget(wrong_kept *all, int n)
{
    for (int i = 0; i < n; i++)
        tni_free(all[i].copy);
}
