/* SPDX-License-Identifier: MIT */
/* Arguments and results across the boxed and the typed convention: the cross product of the
 * reference's KernelFunction_test.cpp, every type of the schema language there and back, in-place
 * and out identities, stacks, and what is refused. */
#include "dispatch/kit.h"

#include <stdio.h>
#include <string.h>
#include "tenon/kernels.h"
#include "tenon/ops.h"

static tn_keyset device_keys(void)
{
    return tn_keyset_of(TN_KEY_PRIVATE1); /* no built-in kernel is in the way */
}

/* Straight to the backend: without the layer that counts writes and tracks views. */
static tn_key_guard to_the_backend(void)
{
    return tn_exclude_keys(tn_keyset_of(TN_KEY_ADINPLACE_OR_VIEW));
}

/* The ways to call. */
typedef enum way { TYPED, ARRAY, STACK, WAYS } way;
static const char *const way_names[WAYS] = {"typed", "array", "stack"};

/* Call with boxed arguments, either way; rets get owned values. */
static tn_status call_boxed(way how, tn_op *op, const tn_value *args, int nargs, tn_value *rets)
{
    if (how == ARRAY)
        return tn_op_call(op, args, nargs, rets);
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, tn_value_int(77))); /* not an argument */
    for (int i = 0; i < nargs; i++)
        ASSERT_OK(tn_stack_push(&stack, args[i]));
    tn_status st = tn_op_call_boxed(op, &stack);
    if (st == TN_OK) {
        int nrets = tn_op_num_returns(op);
        EXPECT_EQ_INT(stack.n, 1 + nrets);
        for (int i = nrets; i-- > 0;)
            rets[i] = tn_stack_pop(&stack);
    } else {
        EXPECT_EQ_INT(stack.n, 1 + nargs);
    }
    EXPECT_EQ_INT(stack.values[0].u.i, 77);
    tn_stack_clear(&stack);
    return st;
}

/* ---- kernels of both kinds, with and without a context, called in every way ---- */

static struct seen {
    tn_tensor *self, *other, *out;
    double alpha;
    void *ctx;
    int runs;
} seen;

static void see(tn_call *call, tn_tensor *self, tn_tensor *other, double alpha)
{
    seen.self = self;
    seen.other = other;
    seen.alpha = alpha;
    seen.ctx = tn_call_context(call);
    seen.runs++;
    EXPECT_EQ_INT(tn_keyset_highest(tn_call_keys(call)), TN_KEY_PRIVATE1);
    EXPECT_EQ_INT(tn_dispatch_depth(), 1);
}

static tn_status add_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    EXPECT_EQ_INT(args[2].tag, TN_TAG_FLOAT);
    EXPECT_EQ_INT(tn_call_num_arguments(call), 3);
    EXPECT_EQ_INT(tn_call_num_returns(call), 1);
    see(call, args[0].u.tensor, args[1].u.tensor, args[2].u.f);
    seen.out = kit_tensor(device_keys());
    rets[0] = tn_value_take_tensor(seen.out);
    return TN_OK;
}

static tn_status add_typed(tn_call *call, tn_tensor *self, tn_tensor *other, tn_scalar alpha,
                           tn_tensor **out)
{
    see(call, self, other, alpha.v.f);
    *out = seen.out = kit_tensor(device_keys());
    return TN_OK;
}

TEST(boxed_and_typed_kernels_with_and_without_context_are_called_in_every_way)
{
    for (int variant = 0; variant < 4; variant++) {
        bool typed = variant & 1, with_context = variant & 2;
        kit k = kit_open();
        tn_library *aten;
        int context;
        tn_kernel boxed = TN_KERNEL_INIT(add_boxed);
        tn_kernel kernel = typed ? tn_kernel_add(add_typed, __FILE__, __LINE__) : boxed;
        kernel.ctx = with_context ? &context : NULL;
        ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
        ASSERT_OK(tn_library_impl(aten, "add.Tensor", TN_KEY_NONE, &kernel, NULL));
        tn_tensor *a = kit_tensor(device_keys()), *b = kit_tensor(device_keys());
        for (way how = 0; how < WAYS; how++) {
            test_note("%s kernel, %s context, %s call", typed ? "typed" : "boxed",
                      with_context ? "with" : "without", way_names[how]);
            tn_value args[3] = {tn_value_tensor(a), tn_value_tensor(b), tn_value_float(4)}, ret;
            tn_tensor *out = NULL;
            seen = (struct seen){0};
            if (how == TYPED) {
                ASSERT_OK(tn_add(a, b, tn_float(4), &out));
            } else {
                ASSERT_OK(call_boxed(how, kit_op("aten::add.Tensor"), args, 3, &ret));
                EXPECT_EQ_INT(ret.tag, TN_TAG_TENSOR);
                EXPECT_EQ_INT(ret.flags, TN_VALUE_OWNED);
                out = ret.u.tensor;
            }
            EXPECT(seen.self == a && seen.other == b && seen.alpha == 4.0);
            EXPECT(seen.ctx == kernel.ctx);
            EXPECT_EQ_INT(seen.runs, 1);
            EXPECT(out == seen.out);
            EXPECT_EQ_INT(kit_refs(out), 1);
            EXPECT_EQ_INT(kit_refs(a), 1);
            EXPECT_EQ_INT(tn_dispatch_depth(), 0);
            tn_tensor_unref(out);
        }
        tn_tensor_unref(a);
        tn_tensor_unref(b);
        tn_library_close(aten);
        kit_close(&k);
    }
}

static tn_status count_runs(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)rets;
    ++*(int *)tn_call_context(call);
    EXPECT_EQ_INT(args[1].u.i, 3);
    EXPECT_EQ_INT(args[2].u.i, 4);
    return TN_OK;
}

static tn_status five(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    rets[0] = tn_value_int(args[1].u.i == 3 && args[2].u.i == 4 ? 5 : -1);
    return TN_OK;
}

TEST(ints_arrive_and_results_of_none_and_one_come_back)
{
    kit k = kit_open();
    int runs = 0;
    tn_op *none = kit_def_with(&k, "none(Tensor x, int a, int b) -> ()", count_runs, &runs);
    tn_op *one = kit_def_with(&k, "one(Tensor x, int a, int b) -> int", five, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value args[3] = {tn_value_tensor(t), tn_value_int(3), tn_value_int(4)}, ret;
    for (way how = ARRAY; how < WAYS; how++) {
        EXPECT_OK(call_boxed(how, none, args, 3, NULL));
        EXPECT_OK(call_boxed(how, one, args, 3, &ret));
        EXPECT_EQ_INT(ret.tag, TN_TAG_INT);
        EXPECT_EQ_INT(ret.u.i, 5);
    }
    EXPECT_EQ_INT(runs, 2);
    tn_tensor_unref(t);
    kit_close(&k);
}

static tn_status several(tn_call *call, const tn_value *args, tn_value *rets)
{
    static const int64_t ints[] = {1, 2, 3};
    (void)call;
    EXPECT_OK(tn_value_copy(&args[0], &rets[0]));
    rets[1] = tn_value_ints(ints, 3); /* borrowed: the dispatcher makes it own a copy */
    rets[2] = tn_value_none();
    rets[3] = tn_value_string("text");
    tn_tensor *list[2] = {args[0].u.tensor, args[0].u.tensor};
    tn_value borrowed = tn_value_tensors(list, 2);
    return tn_value_copy(&borrowed, &rets[4]);
}

TEST(several_results_of_different_types_come_back_owned)
{
    kit k = kit_open();
    tn_op *op =
        kit_def_with(&k, "many(Tensor x) -> (Tensor, int[], float?, str, Tensor[])", several, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    for (way how = ARRAY; how < WAYS; how++) {
        tn_value arg = tn_value_tensor(t), r[5];
        ASSERT_OK(call_boxed(how, op, &arg, 1, r));
        EXPECT(r[0].u.tensor == t);
        EXPECT(r[1].count == 3 && r[1].u.ints[2] == 3);
        EXPECT_EQ_INT(r[2].tag, TN_TAG_NONE);
        EXPECT_STR(r[3].u.text, "text");
        EXPECT(r[4].count == 2 && r[4].u.tensors[1] == t);
        EXPECT_EQ_INT(kit_refs(t), 4);
        for (int i = 0; i < 5; i++) {
            EXPECT(r[i].tag == TN_TAG_NONE || (r[i].flags & TN_VALUE_OWNED));
            tn_value_clear(&r[i]);
        }
        EXPECT_EQ_INT(kit_refs(t), 1);
    }
    tn_tensor_unref(t);
    kit_close(&k);
}

/* ---- typed calls of kernels that are only boxed ---- */

static int list_shape; /* how the kernel below returns its list */

static tn_status split_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_EQ_INT(args[1].tag, TN_TAG_INT_LIST);
    EXPECT(args[1].count == 2 && args[1].u.ints[1] == 5);
    EXPECT_EQ_INT(args[2].u.i, -1);
    tn_tensor *tensors[2] = {args[0].u.tensor, args[0].u.tensor};
    tn_value values[2] = {args[0], args[0]};
    tn_value list = {.tag = TN_TAG_LIST, .count = 2, .u.values = values};
    switch (list_shape) {
    case 0:
        list = tn_value_tensors(tensors, 2);
        return tn_value_copy(&list, &rets[0]);
    case 1:
        return tn_value_copy(&list, &rets[0]);
    case 2:
        rets[0] = tn_value_tensors(tensors, 2); /* dangles when the kernel has returned */
        return tn_fail(TN_VALUE, "no list today");
    default:
        rets[0] = tn_value_ints(NULL, 0); /* an empty list of another kind */
        return TN_OK;
    }
}

TEST(a_typed_call_unpacks_the_list_of_a_boxed_kernel)
{
    kit k = kit_open();
    tn_library *aten;
    tn_kernel kernel = TN_KERNEL_INIT(split_boxed);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
    ASSERT_OK(tn_library_impl(aten, "split_with_sizes", TN_KEY_NONE, &kernel, NULL));
    tn_tensor *t = kit_tensor(device_keys());
    tn_key_guard guard = to_the_backend();
    for (list_shape = 0; list_shape < 4; list_shape++) {
        test_note("shape %d", list_shape);
        const int64_t sizes[] = {4, 5};
        tn_tensor *untouched[1] = {NULL}, **out = untouched;
        int64_t n = -1;
        if (list_shape == 2) {
            EXPECT_FAIL(TN_VALUE, "no list today", tn_split_with_sizes(t, sizes, 2, -1, &out, &n));
            EXPECT(out == untouched && n == -1);
            continue;
        }
        ASSERT_OK(tn_split_with_sizes(t, sizes, 2, -1, &out, &n));
        EXPECT_EQ_INT(n, list_shape == 3 ? 0 : 2);
        for (int64_t i = 0; i < n; i++)
            EXPECT(out[i] == t);
        tn_tensor_list_free(out, n);
        EXPECT_EQ_INT(kit_refs(t), 1);
    }
    tn_keys_restore(guard);
    tn_tensor_unref(t);
    tn_library_close(aten);
    kit_close(&k);
}

static tn_status item_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)args;
    rets[0] = *(const tn_value *)tn_call_context(call);
    return TN_OK;
}

TEST(a_typed_call_unpacks_every_kind_of_scalar)
{
    static const struct {
        tn_tag tag;
        tn_scalar_kind kind;
    } kinds[] = {{TN_TAG_INT, TN_SCALAR_INT},
                 {TN_TAG_FLOAT, TN_SCALAR_FLOAT},
                 {TN_TAG_BOOL, TN_SCALAR_BOOL},
                 {TN_TAG_COMPLEX, TN_SCALAR_COMPLEX}};
    tn_value values[] = {tn_value_int(7), tn_value_float(2.5), tn_value_bool(true),
                         tn_value_scalar(tn_complex(1, -2))};
    for (size_t i = 0; i < 4; i++) {
        kit k = kit_open();
        tn_library *aten;
        tn_kernel kernel = TN_KERNEL_INIT(item_boxed);
        kernel.ctx = &values[i];
        ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
        ASSERT_OK(tn_library_impl(aten, "_local_scalar_dense", TN_KEY_NONE, &kernel, NULL));
        tn_tensor *t = kit_tensor(device_keys());
        tn_scalar s;
        ASSERT_OK(tn__local_scalar_dense(t, &s));
        EXPECT_EQ_INT(s.kind, kinds[i].kind);
        EXPECT(values[i].tag == TN_TAG_FLOAT || values[i].tag == TN_TAG_COMPLEX
                   ? s.v.f == values[i].u.f
                   : s.v.i == values[i].u.i);
        EXPECT(values[i].tag != TN_TAG_COMPLEX || s.imag == -2);
        tn_tensor_unref(t);
        tn_library_close(aten);
        kit_close(&k);
    }
}

/* ---- in-place and out ---- */

typedef enum reply { RETURNS_ARGUMENT, RETURNS_NONE, RETURNS_ANOTHER, RETURNS_NUMBER } reply;

static tn_status write_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    const int *reply_and_position = tn_call_context(call);
    const tn_value *written = &args[reply_and_position[1]];
    switch ((reply)reply_and_position[0]) {
    case RETURNS_ARGUMENT:
        return tn_value_copy(written, &rets[0]);
    case RETURNS_NONE:
        return TN_OK;
    case RETURNS_ANOTHER:
        rets[0] = tn_value_take_tensor(kit_tensor(device_keys()));
        return TN_OK;
    case RETURNS_NUMBER:
        rets[0] = tn_value_int(1);
        return TN_OK;
    }
    return TN_OK;
}

/* Call aten::add_.Tensor or aten::add.out; *result is what a boxed call left, NULL for a typed one.
 */
static tn_status call_writing(way how, bool out, tn_tensor *a, tn_tensor *b, tn_tensor *c,
                              tn_tensor **result)
{
    tn_value args[4] = {tn_value_tensor(a), tn_value_tensor(b), tn_value_int(1),
                        tn_value_tensor(c)},
             ret = tn_value_none();
    tn_status st;
    if (how == TYPED)
        st = out ? tn_add_out(a, b, tn_int(1), c) : tn_add_(a, b, tn_int(1));
    else
        st = call_boxed(how, kit_op(out ? "aten::add.out" : "aten::add_.Tensor"), args, out ? 4 : 3,
                        &ret);
    *result = ret.tag == TN_TAG_TENSOR ? ret.u.tensor : NULL;
    return st;
}

TEST(writing_operators_give_back_the_callers_own_tensor_or_refuse)
{
    tn_tensor *a = kit_tensor(device_keys()), *b = kit_tensor(device_keys());
    tn_tensor *c = kit_tensor(device_keys());
    tn_key_guard guard = to_the_backend();
    for (int variant = 0; variant < 8; variant++) {
        int context[2] = {variant / 2, variant % 2 ? 3 : 0};
        bool out = variant % 2;
        tn_library *aten;
        tn_kernel kernel = TN_KERNEL_INIT(write_boxed);
        kernel.ctx = context;
        ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
        ASSERT_OK(
            tn_library_impl(aten, out ? "add.out" : "add_.Tensor", TN_KEY_NONE, &kernel, NULL));
        for (way how = 0; how < WAYS; how++) {
            tn_tensor *result;
            test_note("%s, reply %d, %s", out ? "out" : "in place", context[0], way_names[how]);
            if (context[0] >= RETURNS_ANOTHER) {
                EXPECT_FAIL(TN_INVALID, out ? "written argument 'out'" : "written argument 'self'",
                            call_writing(how, out, a, b, c, &result));
                EXPECT_CONTAINS(tn_last_error(), out ? "aten::add.out" : "aten::add_.Tensor");
                EXPECT(result == NULL);
            } else {
                EXPECT_OK(call_writing(how, out, a, b, c, &result));
                EXPECT(how == TYPED || result == (out ? c : a));
                tn_tensor_unref(result);
            }
            EXPECT_EQ_INT(kit_refs(a) + kit_refs(b) + kit_refs(c), 3);
        }
        tn_library_close(aten);
    }
    tn_keys_restore(guard);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(c);
}

static tn_status two_out(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    return tn_value_copy(&args[2], &rets[1]); /* the first is filled in */
}

TEST(several_out_arguments_come_back_each_in_its_place)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k,
                             "two(Tensor x, *, Tensor(a!) p, Tensor(b!) q) -> "
                             "(Tensor(a!), Tensor(b!))",
                             two_out, NULL);
    tn_tensor *t[3];
    tn_value args[3], rets[2];
    for (int i = 0; i < 3; i++) {
        t[i] = kit_tensor(kit_keys(TN_KEY_CPU));
        args[i] = tn_value_tensor(t[i]);
    }
    for (way how = ARRAY; how < WAYS; how++) {
        ASSERT_OK(call_boxed(how, op, args, 3, rets));
        EXPECT(rets[0].u.tensor == t[1] && rets[1].u.tensor == t[2]);
        tn_value_clear(&rets[0]);
        tn_value_clear(&rets[1]);
    }
    for (int i = 0; i < 3; i++) {
        EXPECT_EQ_INT(kit_refs(t[i]), 1);
        tn_tensor_unref(t[i]);
    }
    kit_close(&k);
}

/* ---- every type there and back ---- */

static bool same_value(const tn_value *a, const tn_value *b);

static bool same_values(const tn_value *a, const tn_value *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!same_value(&a[i], &b[i]))
            return false;
    }
    return true;
}

static bool same_value(const tn_value *a, const tn_value *b)
{
    if (a->tag != b->tag || a->count != b->count)
        return false;
    if (a->tag >= TN_TAG_TENSOR_LIST && a->tag <= TN_TAG_DICT && a->count == 0)
        return true;
    switch ((tn_tag)a->tag) {
    case TN_TAG_NONE:
        return true;
    case TN_TAG_FLOAT:
        return a->u.f == b->u.f;
    case TN_TAG_COMPLEX:
        return a->u.z.re == b->u.z.re && a->u.z.im == b->u.z.im;
    case TN_TAG_STRING:
        return strcmp(a->u.text, b->u.text) == 0;
    case TN_TAG_DEVICE:
        return a->u.device.type == b->u.device.type && a->u.device.index == b->u.device.index;
    case TN_TAG_TENSOR_LIST:
        return memcmp(a->u.tensors, b->u.tensors, a->count * sizeof(tn_tensor *)) == 0;
    case TN_TAG_INT_LIST:
        return memcmp(a->u.ints, b->u.ints, a->count * sizeof(int64_t)) == 0;
    case TN_TAG_FLOAT_LIST:
        return memcmp(a->u.floats, b->u.floats, a->count * sizeof(double)) == 0;
    case TN_TAG_BOOL_LIST:
        return memcmp(a->u.bools, b->u.bools, a->count * sizeof(bool)) == 0;
    case TN_TAG_LIST:
        return same_values(a->u.values, b->u.values, a->count);
    case TN_TAG_DICT:
        return same_values(a->u.values, b->u.values, 2 * (size_t)a->count);
    default:
        return a->u.pointer == b->u.pointer; /* one word: tensor, generator, int, bool, handle */
    }
}

static tn_status echo(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    return tn_value_copy(&args[1], &rets[0]);
}

static tn_status echo_as_it_is(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    rets[0] = args[1]; /* whatever the flags say, it belongs to the caller */
    return TN_OK;
}

static tn_value list_of(const tn_value *values, uint32_t n)
{
    return (tn_value){.tag = TN_TAG_LIST, .count = n, .u.values = values};
}

static tn_value dict_of(const tn_value *values, uint32_t n)
{
    return (tn_value){.tag = TN_TAG_DICT, .count = n, .u.values = values};
}

TEST(values_of_every_schema_type_go_through_a_boxed_operator_and_come_back)
{
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_generator *g;
    ASSERT_OK(tn_generator_new(1, &g));
    tn_tensor *const tensors[2] = {t, t}, *const with_none[3] = {t, NULL, t};
    const int64_t ints[3] = {1, -2, INT64_MAX};
    const double floats[2] = {0.5, -1e300};
    const bool bools[3] = {true, false, true};
    tn_value texts[2] = {tn_value_string("a"), tn_value_string("")};
    tn_value rows[2] = {tn_value_ints(ints, 3), tn_value_ints(ints, 0)};
    tn_value pair[2] = {tn_value_int(1), tn_value_string("x")};
    tn_value numbers[4] = {tn_value_string("one"), tn_value_int(1), tn_value_string("two"),
                           tn_value_int(2)};
    tn_value by_name[2] = {tn_value_string("t"), tn_value_tensor(t)};
    tn_value lists_by_name[2] = {tn_value_string("n"), tn_value_ints(ints, 3)};
    tn_value list_of_dicts[2] = {dict_of(numbers, 2), dict_of(NULL, 0)};
    tn_value handle = {.tag = TN_TAG_POINTER, .u.pointer = &handle};
    const struct {
        const char *type;
        tn_value value;
    } cases[] = {
        {"int", tn_value_int(INT64_MIN)},
        {"SymInt", tn_value_int(3)},
        {"float", tn_value_float(2.5)},
        {"bool", tn_value_bool(true)},
        {"complex", tn_value_scalar(tn_complex(1, -1))},
        {"Scalar", tn_value_int(4)},
        {"Scalar", tn_value_float(4.5)},
        {"Scalar", tn_value_bool(false)},
        {"Scalar", tn_value_scalar(tn_complex(0, 1))},
        {"str", tn_value_string("text with \"quotes\"")},
        {"Device", tn_value_device(TN_META)},
        {"ScalarType", tn_value_int(TN_DTYPE_BF16)},
        {"Layout", tn_value_int(TN_LAYOUT_STRIDED)},
        {"MemoryFormat", tn_value_int(TN_FORMAT_PRESERVE)},
        {"Generator", tn_value_generator(g)},
        {"Generator?", tn_value_none()},
        {"Tensor", tn_value_tensor(t)},
        {"Tensor?", tn_value_tensor(t)},
        {"Tensor?", tn_value_none()},
        {"Tensor[]", tn_value_tensors(tensors, 2)},
        {"Tensor[]", tn_value_tensors(NULL, 0)},
        {"Tensor?[]", tn_value_tensors(with_none, 3)},
        {"int[]", tn_value_ints(ints, 3)},
        {"int[]", tn_value_ints(NULL, 0)},
        {"int[]?", tn_value_none()},
        {"float[]", tn_value_floats(floats, 2)},
        {"bool[]", tn_value_bools(bools, 3)},
        {"int?", tn_value_int(0)},
        {"int?", tn_value_none()},
        {"float?", tn_value_float(-0.25)},
        {"bool?", tn_value_bool(false)},
        {"Scalar?", tn_value_none()},
        {"str?", tn_value_string("")},
        {"Device?", tn_value_none()},
        {"ScalarType?", tn_value_none()},
        {"str[]", list_of(texts, 2)},
        {"int[][]", list_of(rows, 2)},
        {"(int, str)", list_of(pair, 2)},
        {"Dict(str, int)", dict_of(numbers, 2)},
        {"Dict(str, int)", dict_of(NULL, 0)},
        {"Dict(str, Tensor)", dict_of(by_name, 1)},
        {"Dict(str, int[])", dict_of(lists_by_name, 1)},
        {"Dict(str, int)[]", list_of(list_of_dicts, 2)},
        {"Any", tn_value_float(1)},
        {"Storage", handle},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int variant = 0; variant < 4; variant++) {
            kit k = kit_open();
            char schema[96];
            way how = variant & 1 ? STACK : ARRAY;
            snprintf(schema, sizeof schema, "echo(Tensor t, %s x) -> (%s)", cases[i].type,
                     cases[i].type);
            test_note("%s %s, %s", cases[i].type, tn_tag_name((tn_tag)cases[i].value.tag),
                      way_names[how]);
            tn_op *op = kit_def_with(&k, schema, variant & 2 ? echo_as_it_is : echo, NULL);
            tn_value args[2] = {tn_value_tensor(t), cases[i].value}, ret;
            ASSERT_OK(call_boxed(how, op, args, 2, &ret));
            EXPECT(same_value(&ret, &cases[i].value));
            EXPECT(ret.tag == TN_TAG_NONE || (ret.flags & TN_VALUE_OWNED));
            tn_value_clear(&ret);
            EXPECT_EQ_INT(kit_refs(t), 1);
            kit_close(&k);
        }
    }
    tn_generator_unref(g);
    tn_tensor_unref(t);
}

TEST(owned_arguments_stay_the_callers_when_a_kernel_hands_them_back)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k, "echo(Tensor t, int[] x) -> int[]", echo_as_it_is, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    const int64_t ints[2] = {5, 6};
    tn_value args[2] = {tn_value_tensor(t)}, borrowed = tn_value_ints(ints, 2), ret;
    ASSERT_OK(tn_value_copy(&borrowed, &args[1]));
    ASSERT_OK(tn_op_call(op, args, 2, &ret));
    EXPECT(ret.u.ints != args[1].u.ints);
    EXPECT_EQ_INT(ret.u.ints[1], 6);
    tn_value_clear(&args[1]);
    tn_value_clear(&ret);
    tn_tensor_unref(t);
    kit_close(&k);
}

static tn_status kinds_of(tn_call *call, const tn_value *args, tn_value *rets)
{
    char *text = tn_call_context(call);
    text[0] = '\0';
    for (int i = 1; i < tn_call_num_arguments(call); i++)
        snprintf(text + strlen(text), 64 - strlen(text), "%s ", tn_tag_name((tn_tag)args[i].tag));
    rets[0] = tn_value_float(args[1].u.f);
    EXPECT(args[4].count == 2 && args[4].u.ints[0] == args[4].u.ints[1]);
    EXPECT(args[5].count == 0 || args[5].u.floats[1] == 2.0);
    EXPECT(args[6].count == 0 || (args[6].u.tensors[0] && !args[6].u.tensors[1]));
    return TN_OK;
}

TEST(a_boxed_kernel_sees_the_types_of_its_schema_whatever_number_the_caller_gave)
{
    char text[64];
    kit k = kit_open();
    tn_op *op = kit_def_with(&k,
                             "op(Tensor t, float f, float? g=1, complex z=2, int[2] n=3, "
                             "float[] fs=[], Tensor?[]? ts=None) -> float",
                             kinds_of, text);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    const int64_t ints[2] = {1, 2};
    tn_value values[2] = {tn_value_tensor(t), tn_value_none()};
    for (way how = ARRAY; how < WAYS; how++) {
        tn_value args[7] = {tn_value_tensor(t), tn_value_int(3), tn_value_int(4),
                            tn_value_int(5),    tn_value_int(6), tn_value_ints(ints, 2),
                            list_of(values, 2)},
                 ret;
        test_note("%s", way_names[how]);
        ASSERT_OK(call_boxed(how, op, args, 7, &ret));
        EXPECT_STR(text, "float float complex int[] float[] Tensor[] ");
        EXPECT(ret.tag == TN_TAG_FLOAT && ret.u.f == 3.0);
    }
    tn_value few[2] = {tn_value_tensor(t), tn_value_int(3)}, ret;
    ASSERT_OK(tn_op_call(op, few, 2, &ret));
    EXPECT_STR(text, "float float complex int[] float[] None ");
    tn_tensor_unref(t);
    kit_close(&k);
}

/* ---- defaults ---- */

static tn_status see_defaults(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)rets;
    EXPECT_EQ_INT(args[1].u.i, 2);
    EXPECT(args[2].u.f == 0.5);
    EXPECT_STR(args[3].u.text, "sum");
    EXPECT_EQ_INT(args[4].tag, TN_TAG_NONE);
    EXPECT(args[5].tag == TN_TAG_INT_LIST && args[5].count == 2 && args[5].u.ints[1] == 7);
    EXPECT(args[6].tag == TN_TAG_BOOL && args[6].u.i == 1);
    for (int i = 0; i < 7; i++)
        EXPECT_EQ_INT(args[i].flags, 0); /* a kernel must not release them */
    return TN_OK;
}

TEST(missing_arguments_take_their_defaults)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k,
                             "op(Tensor x, int n=2, float f=0.5, str how=\"sum\", Tensor? w=None, "
                             "int[2] p=[6, 7], *, bool flag=True) -> ()",
                             see_defaults, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value args[2] = {tn_value_tensor(t), tn_value_int(2)};
    EXPECT_OK(tn_op_call(op, args, 1, NULL));
    EXPECT_OK(tn_op_call(op, args, 2, NULL));
    EXPECT_FAIL(TN_INVALID, "t::op: missing value for argument 'x' (position 0)",
                tn_op_call(op, args, 0, NULL));
    tn_tensor_unref(t);
    kit_close(&k);
}

/* ---- stacks ---- */

static tn_status fail_after_writing(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    EXPECT_OK(tn_value_copy(&args[0], &rets[0])); /* against the rules; must not leak */
    return tn_fail(TN_VALUE, "the kernel refuses");
}

TEST(a_failing_call_leaves_the_stack_and_the_results_as_they_were)
{
    kit k = kit_open();
    tn_op *op =
        kit_def_with(&k, "op(Tensor x, int[] n) -> (Tensor, Tensor)", fail_after_writing, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    const int64_t ints[] = {1, 2};
    tn_value args[2] = {tn_value_tensor(t), tn_value_ints(ints, 2)};
    tn_value rets[2] = {tn_value_int(8), tn_value_int(9)};
    EXPECT_FAIL(TN_VALUE, "the kernel refuses", tn_op_call(op, args, 2, rets));
    EXPECT(rets[0].u.i == 8 && rets[1].u.i == 9);
    EXPECT_EQ_INT(kit_refs(t), 1);
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, tn_value_string("below")));
    ASSERT_OK(tn_stack_push(&stack, args[0]));
    ASSERT_OK(tn_stack_push(&stack, args[1]));
    EXPECT_FAIL(TN_VALUE, "the kernel refuses", tn_op_call_boxed(op, &stack));
    EXPECT_EQ_INT(stack.n, 3);
    EXPECT_STR(stack.values[0].u.text, "below");
    EXPECT(stack.values[1].u.tensor == t && stack.values[2].u.ints[1] == 2);
    EXPECT_EQ_INT(kit_refs(t), 2);
    tn_stack_clear(&stack);
    tn_tensor_unref(t);
    kit_close(&k);
}

TEST(a_stack_with_too_few_values_is_refused)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k, "op(Tensor x, int n) -> ()", count_runs, NULL);
    tn_stack stack = TN_STACK_INIT;
    EXPECT_FAIL(TN_INVALID, "t::op: takes 2 arguments, but the stack holds 0 values",
                tn_op_call_boxed(op, &stack));
    ASSERT_OK(tn_stack_push(&stack, tn_value_int(1)));
    EXPECT_FAIL(TN_INVALID, "but the stack holds 1 values", tn_op_call_boxed(op, &stack));
    EXPECT_EQ_INT(stack.n, 1);
    tn_stack_clear(&stack);
    kit_close(&k);
}

static tn_status twenty(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    for (int i = 0; i < 20; i++)
        rets[i] = tn_value_int(i);
    return TN_OK;
}

TEST(a_stack_grows_when_there_are_more_results_than_arguments)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k,
                             "op(Tensor x) -> (int, int, int, int, int, int, int, int, int, int, "
                             "int, int, int, int, int, int, int, int, int, int)",
                             twenty, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value arg = tn_value_tensor(t), rets[20];
    for (way how = ARRAY; how < WAYS; how++) {
        ASSERT_OK(call_boxed(how, op, &arg, 1, rets));
        for (int i = 0; i < 20; i++)
            EXPECT_EQ_INT(rets[i].u.i, i);
    }
    tn_tensor_unref(t);
    kit_close(&k);
}

/* ---- refusals ---- */

TEST(a_wrong_argument_is_named_with_what_was_found_and_what_was_wanted)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k,
                             "op(Tensor x, int n, int[] list, Tensor[] ts, str? s=None, "
                             "float[] fs=[]) -> ()",
                             see_defaults, NULL);
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_tensor *const with_none[2] = {t, NULL};
    const int64_t ints[2] = {1, 2};
    const tn_value good[6] = {tn_value_tensor(t),     tn_value_int(1),
                              tn_value_ints(ints, 2), tn_value_tensors(with_none, 1),
                              tn_value_none(),        tn_value_floats(NULL, 0)};
    const struct {
        int at;
        tn_value value;
        const char *text;
    } cases[] = {
        {0, tn_value_int(1), "t::op: argument 'x' (position 0) must be Tensor, not int"},
        {0, tn_value_none(), "t::op: argument 'x' (position 0) must be Tensor, not None"},
        {0, tn_value_tensor(NULL), "t::op: argument 'x' (position 0) must be Tensor, not None"},
        {1, tn_value_float(1), "t::op: argument 'n' (position 1) must be int, not float"},
        {1, tn_value_tensor(t), "t::op: argument 'n' (position 1) must be int, not Tensor"},
        {2, tn_value_int(1), "t::op: argument 'list' (position 2) must be int[], not int"},
        {2, tn_value_tensors(with_none, 1), "argument 'list' (position 2) must be int[]"},
        {2, tn_value_ints(NULL, 3), "argument 'list' (position 2) must be int[]"},
        {3, tn_value_tensors(with_none, 2), "argument 'ts' (position 3) must be Tensor[]"},
        {3, tn_value_tensors(NULL, 2), "argument 'ts' (position 3) must be Tensor[]"},
        {4, tn_value_int(3), "t::op: argument 's' (position 4) must be str?, not int"},
        {5, (tn_value){.tag = 99},
         "t::op: argument 'fs' (position 5) must be float[], not unknown"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (way how = ARRAY; how < WAYS; how++) {
            tn_value args[6];
            if (how == STACK && (cases[i].value.tag == 99 || !cases[i].value.u.pointer))
                continue; /* tn_stack_push has refused it already, or made it None */
            memcpy(args, good, sizeof good);
            args[cases[i].at] = cases[i].value;
            test_note("case %zu, %s", i, way_names[how]);
            EXPECT_FAIL(TN_TYPE, cases[i].text, call_boxed(how, op, args, 6, NULL));
        }
    }
    EXPECT_FAIL(TN_INVALID, "t::op: takes 6 arguments, but 7 were given",
                tn_op_call(op, good, 7, NULL));
    EXPECT_FAIL(TN_INVALID, "t::op: takes 6 arguments, but -1 were given",
                tn_op_call(op, good, -1, NULL));
    EXPECT_FAIL(TN_INVALID, "missing value for argument 'list' (position 2)",
                tn_op_call(op, good, 2, NULL));
    EXPECT_EQ_INT(kit_refs(t), 1);
    tn_tensor_unref(t);
    kit_close(&k);
}

static tn_status says_cpu(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call, (void)args;
    rets[0] = tn_value_int(1);
    return TN_OK;
}

static tn_status says_meta(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    rets[0] = tn_value_int(10 + args[1].u.i);
    return TN_OK;
}

/* Goes on to itself, not having looked at its call. */
static tn_status goes_on(tn_call *call, const tn_value *args, tn_value *rets)
{
    return tn_op_call_with_keys(tn_call_op(call), tn_call_keys(call), args, 2, rets);
}

TEST(a_call_with_keys_takes_them_as_they_are)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x, int n=5) -> int");
    tn_kernel cpu = TN_KERNEL_INIT(says_cpu), meta = TN_KERNEL_INIT(says_meta);
    tn_kernel above = TN_KERNEL_INIT(goes_on);
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &cpu, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_META, &meta, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_TRACER, &above, NULL));
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value arg = tn_value_tensor(t), ret;
    ASSERT_OK(tn_op_call_with_keys(op, tn_keyset_of(TN_KEY_META), &arg, 1, &ret));
    EXPECT_EQ_INT(ret.u.i, 15); /* the default is filled in */
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_CPU));
    ASSERT_OK(tn_op_call_with_keys(op, tn_keyset_of(TN_KEY_CPU), &arg, 1, &ret));
    EXPECT_EQ_INT(ret.u.i, 1);
    tn_keys_restore(guard);
    tn_keyset both = tn_keyset_add(tn_keyset_of(TN_KEY_CPU), TN_KEY_TRACER);
    EXPECT_FAIL(TN_RECURSION, "redispatch does not lower the key",
                tn_op_call_with_keys(op, both, &arg, 1, &ret));
    tn_tensor_unref(t);
    kit_close(&k);
}

static tn_status calls_itself_for_cpu(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)rets;
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, args[0]));
    tn_status st = tn_op_call_for_key(tn_call_op(call), TN_KEY_CPU, &stack);
    tn_stack_clear(&stack);
    return st;
}

TEST(a_call_for_a_key_is_told_by_that_key)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x) -> int");
    tn_kernel cpu = TN_KERNEL_INIT(calls_itself_for_cpu);
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_CPU, &cpu, NULL));
    tn_tensor *t = kit_tensor(tn_keyset_add(kit_keys(TN_KEY_CPU), TN_KEY_AUTOGRAD_CPU));
    tn_value arg = tn_value_tensor(t);
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, arg));
    EXPECT_FAIL(TN_RECURSION, "op [CPU] in ", tn_op_call_for_key(op, TN_KEY_CPU, &stack));
    tn_stack_clear(&stack);
    tn_tensor_unref(t);
    kit_close(&k);
}

TEST(null_handles_are_refused_by_name)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x) -> Tensor");
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value arg = tn_value_tensor(t), ret;
    tn_stack stack = TN_STACK_INIT;
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call(NULL, &arg, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'args' must not be NULL", tn_op_call(op, NULL, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'rets' must not be NULL", tn_op_call(op, &arg, 1, NULL));
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call_boxed(NULL, &stack));
    EXPECT_FAIL(TN_INVALID, "'stack' must not be NULL", tn_op_call_boxed(op, NULL));
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call_for_key(NULL, TN_KEY_CPU, &stack));
    EXPECT_FAIL(TN_INVALID, "'stack' must not be NULL", tn_op_call_for_key(op, TN_KEY_CPU, NULL));
    EXPECT_FAIL(TN_INVALID, "999 is not a dispatch key",
                tn_op_call_for_key(op, (tn_key)999, &stack));
    EXPECT_FAIL(TN_INVALID, "'op' must not be NULL", tn_op_call_with_keys(NULL, 0, &arg, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'args' must not be NULL", tn_op_call_with_keys(op, 0, NULL, 1, &ret));
    EXPECT_FAIL(TN_INVALID, "'call' must not be NULL", tn_call_redispatch(NULL, 0, &arg, &ret));
    EXPECT_FAIL(TN_INVALID, "'call' must not be NULL", tn_op_redispatch_boxed(NULL, 0, &stack));
    EXPECT_FAIL(TN_INVALID, "must not be NULL", tn_op_parse_arguments(NULL, NULL, 0, &arg));
    EXPECT_FAIL(TN_INVALID, "must not be NULL", tn_op_parse_arguments(op, NULL, 1, &arg));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_find("t::op", NULL));
    EXPECT_FAIL(TN_INVALID, "'name'", tn_op_find(NULL, &op));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_schema(op, NULL));
    EXPECT_FAIL(TN_INVALID, "'op'", tn_op_schema(NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "'out_n'", tn_op_list((tn_op ***)&op, NULL));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_dump_state(op, NULL));
    EXPECT_FAIL(TN_INVALID, "'op'", tn_op_dump_table(NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_op_slot(op, 0, NULL));
    tn_slot_info info;
    EXPECT_FAIL(TN_INDEX, "slot must be below 138, not 138", tn_op_slot(op, 138, &info));
    EXPECT_FAIL(TN_INVALID, "listener", tn_add_listener(NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "'out'", tn_find_dangling(NULL));
    EXPECT_STR(tn_op_name(NULL), "");
    EXPECT_STR(tn_op_doc(NULL), "");
    EXPECT(!tn_op_has_schema(NULL));
    EXPECT_EQ_INT(tn_op_num_arguments(NULL), 0);
    EXPECT_EQ_INT(tn_op_num_returns(NULL), 0);
    EXPECT_EQ_INT(tn_op_mask(NULL, 0), 0);
    EXPECT_EQ_INT(tn_op_table_bytes(NULL), 0);
    EXPECT(tn_call_op(NULL) == NULL && tn_call_context(NULL) == NULL && tn_call_keys(NULL) == 0);
    EXPECT(tn_call_num_arguments(NULL) == 0 && tn_call_num_returns(NULL) == 0);
    tn_op_list_free(NULL);
    EXPECT_FAIL(TN_INVALID, "aten::mm: argument 'self' must not be NULL", tn_mm(NULL, t, &t));
    EXPECT_FAIL(TN_INVALID, "aten::mm: argument 'mat2' must not be NULL", tn_mm(t, NULL, &t));
    EXPECT_FAIL(TN_INVALID, "aten::mm: ", tn_mm(t, t, NULL));
    tn_tensor_unref(t);
    kit_close(&k);
}

typedef struct answer {
    tn_value values[2];
} answer;

static tn_status answers(tn_call *call, const tn_value *args, tn_value *rets)
{
    const answer *a = tn_call_context(call);
    (void)args;
    for (int i = 0; i < 2; i++) {
        if (tn_value_copy(&a->values[i], &rets[i]) != TN_OK)
            return tn_last_status();
    }
    return TN_OK;
}

TEST(a_kernels_result_that_does_not_fit_the_schema_is_refused_and_released)
{
    tn_tensor *t = kit_tensor(kit_keys(TN_KEY_CPU));
    const struct {
        const char *returns;
        tn_value values[2];
        const char *text;
    } cases[] = {
        {"(Tensor, Tensor)", {tn_value_tensor(t), tn_value_none()}, "result 1 is None"},
        {"(Tensor, int)", {tn_value_tensor(t), tn_value_float(1)}, "result 1 is float"},
        {"(Tensor, int[])", {tn_value_tensor(t), tn_value_int(1)}, "result 1 is int"},
        {"(int, Tensor)", {tn_value_tensor(t), tn_value_tensor(t)}, "result 0 is Tensor"},
        {"(Tensor[], Tensor)", {tn_value_tensor(t), tn_value_tensor(t)}, "result 0 is Tensor"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit k = kit_open();
        char schema[96];
        answer a = {{cases[i].values[0], cases[i].values[1]}};
        snprintf(schema, sizeof schema, "op(Tensor x) -> %s", cases[i].returns);
        tn_op *op = kit_def_with(&k, schema, answers, &a);
        tn_value arg = tn_value_tensor(t), rets[2];
        for (way how = ARRAY; how < WAYS; how++) {
            test_note("%s, %s", cases[i].returns, way_names[how]);
            EXPECT_FAIL(TN_TYPE, cases[i].text, call_boxed(how, op, &arg, 1, rets));
            EXPECT_CONTAINS(tn_last_error(), "t::op");
            EXPECT_EQ_INT(kit_refs(t), 1);
        }
        kit_close(&k);
    }
    tn_tensor_unref(t);
}

static tn_status wrong_for_add(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    rets[0] = tn_value_int(1);
    return TN_OK;
}

TEST(a_typed_call_refuses_a_boxed_kernels_wrong_result_and_leaves_out_alone)
{
    tn_library *aten;
    tn_kernel kernel = TN_KERNEL_INIT(wrong_for_add);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
    ASSERT_OK(tn_library_impl(aten, "add.Tensor", TN_KEY_NONE, &kernel, NULL));
    tn_tensor *t = kit_tensor(device_keys()), *out = t;
    EXPECT_FAIL(TN_TYPE, "aten::add.Tensor: the kernel's result 0 is int",
                tn_add(t, t, tn_int(1), &out));
    EXPECT(out == t);
    tn_library_close(aten);
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run 'aten::add.Tensor'", tn_add(t, t, tn_int(1), &out));
    EXPECT(out == t);
    tn_tensor_unref(t);
}

static tn_status negate_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    *out = tn_tensor_ref(self);
    return TN_OK;
}

static tn_status negate_in_place(tn_call *call, tn_tensor *self)
{
    (void)call;
    (void)self;
    return TN_OK;
}

TEST(a_typed_kernel_made_for_another_operator_is_refused)
{
    /* neg and neg_ read the same as signatures, (Tensor) -> Tensor, and are different in C: called
     * as one another they would write through a pointer that nobody passed. */
    tn_library *aten;
    tn_kernel functional = tn_kernel_neg(negate_typed, __FILE__, __LINE__);
    tn_kernel in_place = tn_kernel_neg_(negate_in_place, __FILE__, __LINE__);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
    EXPECT_FAIL(TN_INVALID, "aten::neg",
                tn_library_impl(aten, "neg", TN_KEY_NONE, &in_place, NULL));
    EXPECT_CONTAINS(tn_last_error(), "tn_kernel_neg");
    EXPECT_FAIL(TN_INVALID, "aten::neg_",
                tn_library_impl(aten, "neg_", TN_KEY_NONE, &functional, NULL));
    EXPECT_OK(tn_library_impl(aten, "neg", TN_KEY_NONE, &functional, NULL));
    EXPECT_OK(tn_library_impl(aten, "neg_", TN_KEY_NONE, &in_place, NULL));
    tn_tensor *t = kit_tensor(device_keys()), *out = NULL;
    EXPECT_OK(tn_neg(t, &out));
    EXPECT(out == t);
    tn_key_guard guard = to_the_backend();
    EXPECT_OK(tn_neg_(t));
    tn_keys_restore(guard);
    tn_tensor_unref(out);
    tn_tensor_unref(t);
    tn_library_close(aten);
}

TEST(a_typed_kernel_serves_a_custom_operator_and_its_identities_are_checked_too)
{
    kit k = kit_open();
    tn_kernel kernel = tn_kernel_neg(negate_typed, __FILE__, __LINE__);
    ASSERT_OK(tn_library_def(k.defs, "same(Tensor x) -> Tensor", &kernel, NULL));
    EXPECT_OK(kit_call("t::same", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
}

/* ---- arguments as people write them ---- */

TEST(written_arguments_are_parsed_with_names_and_defaults)
{
    kit k = kit_open();
    tn_op *op = kit_def_with(&k, "op(Tensor x, int n, float f=0.5, *, str how=\"sum\") -> ()",
                             see_defaults, NULL);
    const char *texts[] = {"f32[2]", "how='max'", "n=7"};
    tn_value args[4];
    ASSERT_OK(tn_op_parse_arguments(op, texts, 3, args));
    EXPECT_EQ_INT(args[0].tag, TN_TAG_TENSOR);
    EXPECT_EQ_INT(args[1].u.i, 7);
    EXPECT(args[2].u.f == 0.5);
    EXPECT_STR(args[3].u.text, "max");
    for (int i = 0; i < 4; i++)
        tn_value_clear(&args[i]);
    EXPECT_FAIL(TN_INVALID, "'m'",
                tn_op_parse_arguments(op, (const char *[]){"f32[2]", "m=7"}, 2, args));
    EXPECT_FAIL(TN_INVALID, "'n'", tn_op_parse_arguments(op, texts, 1, args));
    EXPECT_FAIL(TN_INVALID, "", tn_op_parse_arguments(op, (const char *[]){"f32[2", "1"}, 2, args));
    kit_close(&k);
}
