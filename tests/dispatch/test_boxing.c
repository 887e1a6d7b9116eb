/* SPDX-License-Identifier: MIT */
/* Calls across the boxed and the typed convention: the cross product of the reference's
 * KernelFunction_test.cpp, lists and scalars of boxed kernels, in-place and out identities, and
 * calls with keys of their own. */
#include "dispatch/ways.h"

#include "tenon/kernels.h"
#include "tenon/ops.h"

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

/* ---- calls with keys ---- */

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
