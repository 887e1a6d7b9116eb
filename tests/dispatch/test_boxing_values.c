/* SPDX-License-Identifier: MIT */
/* Boxed values: every type of the schema language there and back, the forms that a kernel sees,
 * defaults, and arguments as people write them. */
#include "dispatch/ways.h"

#include <stdio.h>
#include <string.h>

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
