/* SPDX-License-Identifier: MIT */
/* tests/ops/test_wrong.c: every sample of every declaration with one argument made wrong: numbers
 * out of every range, sizes and dtypes that do not fit, tensors that are missing, repeat elements
 * or are elsewhere, indices that point nowhere. The call may work or fail; it does not end the
 * process (the sanitizers look for what it must not touch), and one that fails has written
 * nothing. */
#include <math.h>
#include <string.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "ops/sampling.h"
#include "tenon/ops.h"

/* Sizes of which no memory could be had, or that are small: nothing between, which would be slow.
 */
static const int64_t numbers[] = {
    INT64_MIN, INT64_MIN + 1,    -(INT64_C(1) << 52), -7, -1, 0, 1, 2, 3, 5,
    INT64_MAX, INT64_C(1) << 52, INT64_C(1) << 62};
enum { NUMBERS = sizeof numbers / sizeof *numbers, PARTS = 4, ROUNDS = 6 };

/* Random numbers that depend on the sample alone: a new one does not change what others meet. */
static uint64_t state;

static void begin(const tni_sample *s)
{
    state = UINT64_C(14695981039346656037);
    for (const char *p = s->op; *p; p++)
        state = (state ^ (unsigned char)*p) * UINT64_C(1099511628211);
    for (const char *p = s->args; *p; p++)
        state = (state ^ (unsigned char)*p) * UINT64_C(1099511628211);
}

static uint64_t pick(uint64_t n)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static int64_t any_number(void)
{
    return numbers[pick(NUMBERS)];
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
    return floats[pick(sizeof floats / sizeof *floats)];
}

/* ---- tensors ---- */

static tn_tensor *fresh(int ndim, const int64_t *sizes, tn_dtype dtype, tn_device device)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, device);
    ASSERT_OK(tn_ones(sizes, ndim, &opts, &t));
    return t;
}

static void poke(tn_tensor *t)
{
    if (!t->data || !t->numel || !(t->flags & TNI_CONTIGUOUS))
        return;
    size_t at = (size_t)pick((uint64_t)t->numel);
    switch ((tn_dtype)t->dtype) {
    case TN_DTYPE_I64:
        ((int64_t *)t->data)[at] = any_number();
        break;
    case TN_DTYPE_I32:
        ((int32_t *)t->data)[at] = (int32_t)any_number();
        break;
    case TN_DTYPE_F32:
        ((float *)t->data)[at] = (float)any_float();
        break;
    case TN_DTYPE_F64:
        ((double *)t->data)[at] = any_float();
        break;
    default:
        break;
    }
}

static tn_tensor *wrong_tensor(tn_tensor *t)
{
    static const tn_dtype dtypes[] = {TN_DTYPE_U8,  TN_DTYPE_I8,  TN_DTYPE_I32, TN_DTYPE_I64,
                                      TN_DTYPE_F16, TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_BF16,
                                      TN_DTYPE_C64, TN_DTYPE_BOOL};
    int64_t sizes[TN_MAX_DIMS + 1] = {0};
    int ndim = t ? t->ndim : 1;
    tn_dtype dtype = t ? (tn_dtype)t->dtype : TN_DTYPE_F32;
    tn_device device = t ? t->device : TN_CPU;
    tn_tensor *made = NULL;
    for (int d = 0; t && d < ndim; d++)
        sizes[d] = t->sizes[d];
    switch (pick(8)) {
    case 0:
        return NULL;
    case 1:
        ndim = 0;
        break;
    case 2:
        if (ndim)
            sizes[pick((uint64_t)ndim)] = (int64_t)pick(4);
        break;
    case 3:
        if (ndim < 7)
            sizes[ndim++] = (int64_t)pick(3);
        break;
    case 4:
        if (ndim)
            ndim--;
        break;
    case 5:
        dtype = dtypes[pick(sizeof dtypes / sizeof *dtypes)];
        break;
    case 6:
        device = device.type == TN_DEVICE_META ? TN_CPU : TN_META;
        break;
    default: /* every element is one */
        made = fresh(0, NULL, dtype, device);
        for (int d = 0; d < ndim; d++)
            sizes[d] = sizes[d] ? sizes[d] : 1;
        tn_tensor *wide = NULL;
        ASSERT_OK(tn_expand(made, sizes, ndim, false, &wide));
        tn_tensor_unref(made);
        return wide;
    }
    made = fresh(ndim, sizes, dtype, device);
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

static tn_value wrong_ints(const tn_value *v)
{
    uint32_t n = v->tag == TN_TAG_INT_LIST ? v->count : 0;
    n = n > 60 ? 60 : n;
    for (uint32_t i = 0; i < n; i++)
        lists[i] = v->u.ints[i];
    switch (pick(5)) {
    case 0:
        n = 0;
        break;
    case 1:
        lists[n++] = any_number();
        break;
    case 2:
        n -= n > 0;
        break;
    default:
        if (n)
            lists[pick(n)] = any_number();
        else
            lists[n++] = any_number();
    }
    return tn_value_ints(lists, n);
}

static tni_type_kind kind_of(const tni_schema_type *type)
{
    while (type->kind == TNI_TYPE_OPTIONAL)
        type = type->children[0];
    return type->kind;
}

static tn_value wrong_value(const tn_value *v, const tni_schema_arg *arg)
{
    static const char *const words[] = {"", "sum", "mean", "none", "%s%n", "ij,jk->ik", "reflect"};
    static tn_tensor *two[2];
    tni_type_kind kind = kind_of(arg->type);
    switch (kind) {
    case TNI_TYPE_TENSOR:
        if (v->tag == TN_TAG_TENSOR && v->u.tensor && pick(3) == 0)
            return tn_value_take_tensor(poked(v->u.tensor));
        tn_tensor *t = wrong_tensor(v->tag == TN_TAG_TENSOR ? v->u.tensor : NULL);
        return t ? tn_value_take_tensor(t) : tn_value_none();
    case TNI_TYPE_INT:
    case TNI_TYPE_SYMINT:
        return tn_value_int(any_number());
    case TNI_TYPE_FLOAT:
        return tn_value_float(any_float());
    case TNI_TYPE_BOOL:
        return tn_value_bool(pick(2));
    case TNI_TYPE_SCALAR:
        return pick(3) == 0   ? tn_value_int(any_number())
               : pick(3) == 0 ? tn_value_scalar(tn_complex(any_float(), any_float()))
                              : tn_value_float(any_float());
    case TNI_TYPE_STRING:
        return tn_value_string(words[pick(7)]);
    case TNI_TYPE_SCALAR_TYPE:
    case TNI_TYPE_LAYOUT:
    case TNI_TYPE_MEMORY_FORMAT:
        return tn_value_int(pick(4) ? (int64_t)pick(24) : any_number());
    case TNI_TYPE_LIST:
        switch (kind_of(arg->type->kind == TNI_TYPE_OPTIONAL ? arg->type->children[0]->children[0]
                                                             : arg->type->children[0])) {
        case TNI_TYPE_INT:
        case TNI_TYPE_SYMINT:
            return wrong_ints(v);
        case TNI_TYPE_FLOAT:
            float_list[0] = any_float();
            float_list[1] = any_float();
            return tn_value_floats(float_list, (int64_t)pick(3));
        case TNI_TYPE_TENSOR:
            if (v->tag != TN_TAG_TENSOR_LIST || v->count == 0 || pick(3) == 0)
                return tn_value_tensors(two, (int64_t)pick(2));
            tn_tensor **list = tni_alloc((v->count + 1) * sizeof *list);
            uint32_t other = (uint32_t)pick(v->count);
            for (uint32_t i = 0; i < v->count; i++)
                list[i] =
                    i == other ? wrong_tensor(v->u.tensors[i]) : tn_tensor_ref(v->u.tensors[i]);
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
typedef struct kept {
    const tn_tensor *t;
    int ndim;
    int64_t sizes[TN_MAX_DIMS];
    size_t bytes;
    char *copy;
} kept;

static int keep(const tn_tensor *t, kept *all, int n)
{
    if (!t || !t->storage || t->storage->nbytes > KEPT_BYTES || n == 64)
        return n;
    all[n].t = t;
    all[n].ndim = t->ndim;
    memcpy(all[n].sizes, t->sizes, (size_t)t->ndim * sizeof *t->sizes);
    all[n].bytes = t->storage->data ? t->storage->nbytes : 0;
    all[n].copy = tni_alloc(all[n].bytes + 1);
    if (all[n].bytes)
        memcpy(all[n].copy, t->storage->data, all[n].bytes);
    return n + 1;
}

static int keep_all(const bundle *args, kept *all)
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

static bool unwritten(const kept *all, int n)
{
    bool same = true;
    for (int i = 0; i < n; i++)
        same &=
            all[i].t->ndim == all[i].ndim &&
            memcmp(all[i].t->sizes, all[i].sizes, (size_t)all[i].ndim * sizeof *all[i].sizes) ==
                0 &&
            (!all[i].bytes || (all[i].t->storage->nbytes >= all[i].bytes &&
                               memcmp(all[i].copy, all[i].t->storage->data, all[i].bytes) == 0));
    return same;
}

/* A tensor to write: empty, of some size, or one that repeats its element. */
static tn_tensor *target(const bundle *args)
{
    static const int64_t sizes[] = {2, 3};
    const tn_tensor *first = NULL;
    for (int i = 0; i < args->n && !first; i++)
        first = args->v[i].tag == TN_TAG_TENSOR ? args->v[i].u.tensor : NULL;
    tn_dtype dtype = first ? (tn_dtype)first->dtype : TN_DTYPE_F32;
    tn_tensor *made = fresh((int)pick(3), pick(2) ? sizes : (const int64_t[]){0, 2}, dtype,
                            first ? first->device : TN_CPU);
    tn_tensor *wrong = pick(2) ? wrong_tensor(made) : NULL;
    if (!wrong)
        return made;
    tn_tensor_unref(made);
    return wrong;
}

static void try_wrong(const tni_sample *s)
{
    kept all[64];
    bundle rets = {0};
    uint64_t form = pick(4);
    const char *op = form == 1 && s->inplace[0] ? s->inplace
                     : form == 2 && s->out[0]   ? s->out
                                                : s->op;
    tni_schema *schema = sample_schema(op);
    bundle args = op == s->out ? sample_arguments_of(s, op) : sample_arguments(s);
    for (int k = 0; op == s->out && k < schema->nargs; k++)
        if (schema->args[k].is_out && schema->args[k].type->kind == TNI_TYPE_TENSOR)
            args.v[k] = tn_value_take_tensor(target(&args));
    if (schema->nargs) {
        int at = (int)pick((uint64_t)schema->nargs);
        tn_value wrong = wrong_value(&args.v[at], &schema->args[at]);
        tn_value_clear(&args.v[at]);
        args.v[at] = wrong;
        test_note("%s:%d: %s(%s), with another %s", s->file, s->line, op, s->args,
                  schema->args[at].name);
    }
    int n = keep_all(&args, all);
    tn_status status = sample_call(op, &args, &rets);
    if (status != TN_OK) {
        EXPECT(tn_last_error()[0] != 0);
        EXPECT(status != TN_INTERNAL);
        EXPECT(unwritten(all, n));
    }
    for (int i = 0; i < n; i++)
        tni_free(all[i].copy);
    bundle_clear(&rets);
    bundle_clear(&args);
    tni_schema_free(schema);
}

static void try_part(int part)
{
    for (int i = part; i < tni_num_samples; i += PARTS) {
        begin(&tni_samples[i]);
        for (int k = 0; k < ROUNDS; k++)
            try_wrong(&tni_samples[i]);
    }
}

TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_1)
{
    try_part(0);
}
TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_2)
{
    try_part(1);
}
TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_3)
{
    try_part(2);
}
TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_4)
{
    try_part(3);
}

/* ---- devices ---- */

static tn_tensor *moved(tn_tensor *t)
{
    return t->device.type == TN_DEVICE_META ? fresh(t->ndim, t->sizes, (tn_dtype)t->dtype, TN_CPU)
                                            : sample_on_meta(t);
}

/* The results that have memory are those of @p plain, bit for bit. */
static bool computed_alike(const bundle *rets, const bundle *plain)
{
    bool alike = true;
    for (int i = 0; alike && i < rets->n; i++) {
        tn_tensor *a = rets->v[i].tag == TN_TAG_TENSOR ? rets->v[i].u.tensor : NULL;
        tn_tensor *b = i < plain->n ? plain->v[i].u.tensor : NULL;
        tn_tensor *x = NULL, *y = NULL;
        if (!a || a->device.type != TN_DEVICE_CPU)
            continue;
        if (!b || a->numel != b->numel || a->dtype != b->dtype)
            return false;
        ASSERT_OK(tn_clone(a, TN_FORMAT_CONTIGUOUS, &x));
        ASSERT_OK(tn_clone(b, TN_FORMAT_CONTIGUOUS, &y));
        size_t nbytes = (size_t)x->numel * tn_dtype_size((tn_dtype)x->dtype);
        alike = nbytes == 0 || memcmp(x->data, y->data, nbytes) == 0;
        tn_tensor_unref(x);
        tn_tensor_unref(y);
    }
    return alike;
}

static void move_one(const tni_sample *s, const tni_schema *schema, int at)
{
    kept all[64];
    bundle args = sample_arguments(s), rets = {0}, plain = {0};
    tn_value *v = &args.v[at];
    if (v->tag == TN_TAG_TENSOR && v->u.tensor) {
        tn_tensor *other = moved(v->u.tensor);
        bool without_values = other->device.type == TN_DEVICE_META;
        tn_value_clear(v);
        *v = tn_value_take_tensor(other);
        test_note("%s:%d: %s(%s), %s on another device", s->file, s->line, s->op, s->args,
                  schema->args[at].name);
        int n = keep_all(&args, all);
        if (sample_call(s->op, &args, &rets) != TN_OK) {
            EXPECT(unwritten(all, n));
        } else if (without_values && !sample_uninitialised(s->op)) {
            bundle before = sample_arguments(s);
            (void)sample_call(s->op, &before, &plain); /* values may be what it refuses */
            EXPECT(computed_alike(&rets, &plain));
            bundle_clear(&before);
        }
        for (int k = 0; k < n; k++)
            tni_free(all[k].copy);
    }
    bundle_clear(&rets);
    bundle_clear(&plain);
    bundle_clear(&args);
}

/* And what has no values has no say in those of a result. */
TEST(each_argument_may_be_on_another_device_than_the_others)
{
    for (int i = 0; i < tni_num_samples; i++) {
        tni_schema *schema = sample_schema(tni_samples[i].op);
        for (int at = 0; at < schema->nargs; at++)
            move_one(&tni_samples[i], schema, at);
        tni_schema_free(schema);
    }
}
