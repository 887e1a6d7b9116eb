/* SPDX-License-Identifier: MIT */
/* tests/op/test_literal.c: arguments as people write them, and the tensors they stand for. */
#include <math.h>
#include <string.h>
#include "base/alloc.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "harness/test.h"
#include "op/schema.h"

/* A value of the type of the only argument of "f(TYPE x) -> ()"; NULL: of no type. */
static tn_status read(const char *text, const char *type, tn_value *out)
{
    char schema[256] = "aten::f(";
    TN_AUTO(tni_schema) s = NULL;
    test_note("%s as %s", text, type ? type : "anything");
    if (!type)
        return tni_value_parse(text, NULL, out);
    strcat(strcat(schema, type), " x) -> ()");
    ASSERT_OK(tni_schema_parse(schema, &s));
    return tni_value_parse(text, s->args[0].type, out);
}

static tn_value value(const char *text, const char *type)
{
    tn_value v = {0};
    ASSERT_OK(read(text, type, &v));
    return v;
}

static tn_tensor *tensor(const char *text)
{
    tn_value v = value(text, "Tensor");
    ASSERT(v.tag == TN_TAG_TENSOR && (v.flags & TN_VALUE_OWNED));
    return v.u.tensor;
}

static void refuse(const char *text, const char *type, const char *message)
{
    tn_value v = {.tag = 77};
    EXPECT_FAIL(TN_INVALID, message, read(text, type, &v));
    EXPECT_EQ_INT(v.tag, 77);
}

TEST(numbers_are_read_as_their_type_wants)
{
    EXPECT(value("3", NULL).tag == TN_TAG_INT && value("-3", "int").u.i == -3);
    EXPECT(value("3", "float").tag == TN_TAG_FLOAT && value("3", "float?").u.f == 3);
    EXPECT(value("2.5", NULL).u.f == 2.5 && value("1e-3", "Scalar").u.f == 1e-3);
    EXPECT(value("-9223372036854775808", NULL).u.i == INT64_MIN);
    EXPECT(isinf(value("inf", "float").u.f) && value("-inf", NULL).u.f < 0);
    EXPECT(isnan(value("nan", "Scalar").u.f));
    tn_value z = value("1-2j", NULL);
    EXPECT(z.tag == TN_TAG_COMPLEX && z.u.z.re == 1 && z.u.z.im == -2);
    z = value("-1.5+.5j", "Scalar");
    EXPECT(z.u.z.re == -1.5 && z.u.z.im == 0.5);
    z = value("2", "complex");
    EXPECT(z.tag == TN_TAG_COMPLEX && z.u.z.re == 2 && z.u.z.im == 0);
    EXPECT(value("True", NULL).tag == TN_TAG_BOOL && value("False", "bool").u.i == 0);
    EXPECT(value("None", "int?").tag == TN_TAG_NONE);
    EXPECT(value("2", "int[2]").tag == TN_TAG_INT);
}

TEST(words_are_dtypes_formats_devices_or_texts_as_their_type_wants)
{
    EXPECT(value("float32", NULL).u.i == TN_DTYPE_F32);
    EXPECT(value("torch.bfloat16", "ScalarType?").u.i == TN_DTYPE_BF16);
    EXPECT(value("i64", "ScalarType").u.i == TN_DTYPE_I64);
    EXPECT(value("channels_last", "MemoryFormat").u.i == TN_FORMAT_CHANNELS_LAST);
    EXPECT(value("torch.contiguous_format", NULL).u.i == TN_FORMAT_CONTIGUOUS);
    EXPECT(value("strided", "Layout").u.i == TN_LAYOUT_STRIDED);
    tn_value d = value("meta", NULL);
    EXPECT(d.tag == TN_TAG_DEVICE && d.u.device.type == TN_DEVICE_META);
    d = value("cuda:1", "Device");
    EXPECT(d.tag == TN_TAG_DEVICE && d.u.device.index == 1);
    EXPECT(value("'cpu'", "Device?").tag == TN_TAG_DEVICE);
    tn_value s = value("float32", "str");
    EXPECT_STR(s.u.text, "float32");
    tn_value_clear(&s);
    s = value("'a, \\'b'", NULL);
    EXPECT(s.tag == TN_TAG_STRING && s.count == 5);
    EXPECT_STR(s.u.text, "a, 'b");
    tn_value_clear(&s);
}

TEST(lists_are_typed_by_their_elements_or_by_their_type)
{
    tn_value v = value("[1, -2]", NULL);
    EXPECT(v.tag == TN_TAG_INT_LIST && v.count == 2 && v.u.ints[1] == -2);
    tn_value_clear(&v);
    v = value("(1, 2.5,)", NULL);
    EXPECT(v.tag == TN_TAG_FLOAT_LIST && v.u.floats[0] == 1);
    tn_value_clear(&v);
    v = value("[1, 2]", "float[]");
    EXPECT(v.tag == TN_TAG_FLOAT_LIST && v.u.floats[1] == 2);
    tn_value_clear(&v);
    v = value("[True, False, True]", "bool[3]");
    EXPECT(v.tag == TN_TAG_BOOL_LIST && v.count == 3 && !v.u.bools[1]);
    tn_value_clear(&v);
    v = value("[f32[2], None]", "Tensor?[]");
    EXPECT(v.tag == TN_TAG_TENSOR_LIST && v.u.tensors[0] && !v.u.tensors[1]);
    tn_value_clear(&v);
    v = value("[]", "Tensor[]");
    EXPECT(v.tag == TN_TAG_TENSOR_LIST && v.count == 0);
    v = value("[]", NULL);
    EXPECT(v.tag == TN_TAG_INT_LIST && v.count == 0);
    v = value("[1, 'a', [2, 3]]", NULL);
    EXPECT(v.tag == TN_TAG_LIST && v.u.values[2].tag == TN_TAG_INT_LIST);
    tn_value_clear(&v);
    v = value("(1, 2)", "(int, float)");
    EXPECT(v.tag == TN_TAG_LIST && v.u.values[1].tag == TN_TAG_FLOAT);
    tn_value_clear(&v);
    v = value("[1, 2]", "Scalar[]");
    EXPECT(v.tag == TN_TAG_LIST && v.u.values[1].tag == TN_TAG_INT);
    tn_value_clear(&v);
    v = value("[[1], [2, 3]]", "int[][]");
    EXPECT(v.tag == TN_TAG_LIST && v.u.values[1].count == 2);
    tn_value_clear(&v);
}

/* The element at a row-major index. */
static double element(const tn_tensor *t, int64_t k)
{
    int64_t at = 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
        at += k % t->sizes[d] * t->strides[d];
        k /= t->sizes[d];
    }
    const char *data = t->data;
    tn_scalar s = tni_scalar_load((tn_dtype)t->dtype, data + at * (int64_t)tni_itemsize(t));
    return tn_scalar_to_double(s);
}

static void expect_values(const char *text, const double *wanted, int64_t n)
{
    tn_tensor *t = tensor(text);
    ASSERT(t->numel >= n);
    for (int64_t k = 0; k < n; k++)
        EXPECT_NEAR(element(t, k), wanted[k], 0);
    tn_tensor_unref(t);
}

static const double floats[] = {-0.875, -0.125, 0.625, 1.375, 2.125, -2.25};

TEST(values_follow_the_written_pattern)
{
    static const double ints[] = {-3, -4, -5, 5, 4, 3, 2, 1, 0, -1, -2, -3};
    static const double bytes[] = {3, 2, 1, 0, 9, 8};
    static const double bools[] = {1, 0, 1, 0};
    expect_values("f32[2,3]", floats, 6);
    expect_values("f64[6]", floats, 6);
    expect_values("f16[6]", floats, 6);
    expect_values("bf16[6]", floats, 6);
    expect_values("c64[6]", floats, 6); /* real parts */
    expect_values("i8[12]", ints, 12);
    expect_values("int16[12]", ints, 12);
    expect_values("i32[12]", ints, 12);
    expect_values("i64[3,4]", ints, 12);
    expect_values("u8[6]", bytes, 6);
    expect_values("bool[4]", bools, 4);
    expect_values("f32[]", floats, 1);
    tn_tensor *z = tensor("c128[41]");
    const double *data = z->data;
    EXPECT(data[0] == -0.875 && data[1] == data[2 * 7]); /* F(0) + F(7) i */
    tn_tensor_unref(z);
}

TEST(no_float_is_zero_and_both_signs_occur)
{
    tn_tensor *t = tensor("f32[41]");
    int negative = 0;
    for (int k = 0; k < 41; k++) {
        EXPECT(element(t, k) != 0);
        negative += element(t, k) < 0;
    }
    EXPECT_EQ_INT(negative, 20);
    tn_tensor_unref(t);
}

static void expect_strides(const char *text, const int64_t *strides, int64_t offset)
{
    tn_tensor *t = tensor(text);
    for (int d = 0; d < t->ndim; d++)
        EXPECT_EQ_INT(t->strides[d], strides[d]);
    EXPECT_EQ_INT(t->offset, offset);
    tn_tensor_unref(t);
}

TEST(modifiers_change_memory_and_not_values)
{
    expect_strides("f32[2,3]", (int64_t[]){3, 1}, 0);
    expect_strides("f32[2,3].t", (int64_t[]){1, 2}, 0);
    expect_strides("f32[4,2,3].t", (int64_t[]){6, 1, 2}, 0);
    expect_strides("f32[2,3].strided", (int64_t[]){6, 2}, 0);
    expect_strides("f32[2,3].expanded", (int64_t[]){0, 1}, 0);
    expect_strides("f32[2,3].offset", (int64_t[]){3, 1}, 1);
    expect_strides("f32[2,3].strided.offset", (int64_t[]){6, 2}, 1);
    expect_strides("f32[2,3,4,5].cl", (int64_t[]){60, 1, 15, 3}, 0);
    expect_strides("f32[2,3,4,5,6].cl", (int64_t[]){360, 1, 90, 18, 3}, 0);
    expect_values("f32[2,3].t", floats, 6);
    expect_values("f32[2,3].strided", floats, 6);
    expect_values("f32[2,3].t.offset", floats, 6);
    expect_values("f32[1,2,1,3].cl", floats, 6);
    expect_values("f32[3,2].expanded", (double[]){-0.875, -0.125, -0.875, -0.125, -0.875, -0.125},
                  6);
    expect_values("i64[2,2].strided=7", (double[]){7, 7, 7, 7}, 4);
    expect_values("f32[2]=-inf", (double[]){(double)-INFINITY, (double)-INFINITY}, 2);
    expect_values("bool[2]=False", (double[]){0, 0}, 2);
}

TEST(memory_between_elements_is_filled_too)
{
    tn_tensor *t = tensor("u8[2].strided.offset");
    const uint8_t *memory = t->storage->data;
    ASSERT_EQ_INT(t->storage->nbytes, 5);
    EXPECT(memory[0] == 0x7f && memory[1] == 3 && memory[2] == 0x7f && memory[3] == 2 &&
           memory[4] == 0x7f);
    tn_tensor_unref(t);
    t = tensor("bool[2].strided");
    memory = t->storage->data;
    EXPECT(memory[1] == 1 && memory[3] == 1);
    tn_tensor_unref(t);
}

TEST(tensors_without_elements_and_on_meta_have_a_shape)
{
    tn_tensor *t = tensor("f32[0,3].strided");
    EXPECT_EQ_INT(t->numel, 0);
    tn_tensor_unref(t);
    t = tensor("f32[0,3].expanded.offset");
    EXPECT_EQ_INT(t->numel, 0);
    tn_tensor_unref(t);
    t = tensor("meta f32[2,4,16].grad");
    EXPECT(tni_is_meta(t) && t->data == NULL && t->ndim == 3 && tn_tensor_requires_grad(t));
    EXPECT(tn_keyset_has(t->keys, TN_KEY_META) && tn_keyset_has(t->keys, TN_KEY_AUTOGRAD_META));
    tn_tensor_unref(t);
    t = tensor("meta bf16[1000000,1000000,1000].t");
    EXPECT_EQ_INT(t->numel, INT64_C(1000000000000000));
    tn_tensor_unref(t);
    t = tensor("cpu float64[3]");
    EXPECT(t->dtype == TN_DTYPE_F64 && !tn_tensor_requires_grad(t));
    tn_tensor_unref(t);
}

/* ---- a device of its own ---- */

static tn_status toy_alloc(void *ctx, tn_device device, size_t nbytes, void **out)
{
    (void)ctx;
    (void)device;
    *out = tni_alloc(nbytes);
    return *out ? TN_OK : tn_fail(TN_NOMEM, "the toy is full");
}

static void toy_free(void *ctx, tn_device device, void *ptr, size_t nbytes)
{
    (void)ctx;
    (void)device;
    (void)nbytes;
    tni_free(ptr);
}

/* The toy's memory holds every byte inverted, so that touching it directly shows. */
static tn_status toy_copy(void *ctx, tn_device device, void *to, const void *from, size_t nbytes)
{
    (void)ctx;
    (void)device;
    for (size_t i = 0; i < nbytes; i++)
        ((uint8_t *)to)[i] = (uint8_t) ~((const uint8_t *)from)[i];
    return TN_OK;
}

TEST(a_registered_device_gets_its_values_by_its_own_copy)
{
    tn_device_vtable vtable = {.size = sizeof vtable,
                               .alloc = toy_alloc,
                               .free = toy_free,
                               .to_host = toy_copy,
                               .from_host = toy_copy};
    tn_device_type type;
    ASSERT_OK(tn_device_register("toy", &vtable, &type));
    tn_tensor *t = tensor("toy u8[4].offset");
    uint8_t host[5];
    ASSERT_OK(toy_copy(NULL, t->device, host, t->storage->data, sizeof host));
    EXPECT(host[0] == 0x7f && host[1] == 3 && host[2] == 2 && host[3] == 1 && host[4] == 0);
    tn_tensor_unref(t);
    t = tensor("toy:1 f32[2,2].t");
    EXPECT(t->device.type == type && t->device.index == 1);
    tn_tensor_unref(t);
    tn_value v = {0};
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_value_parse("toy f32[8,8].strided", NULL, &v);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && v.tag == TN_TAG_NONE && tni_test_live == before);
    }
    tn_value_clear(&v);
    EXPECT(tni_test_live == before);
}

TEST(wrong_literals_are_refused)
{
    refuse("", NULL, "expected a value in argument text '' at column 1, found the end");
    refuse("1 2", NULL, "expected the end");
    refuse("[1, 2", NULL, "expected ',' or ']'");
    refuse("[1,]", NULL, "expected a value");
    refuse("-x", NULL, "expected a number");
    refuse("1+2", NULL, "expected an imaginary part");
    refuse("1e999", NULL, "the number 1e999 is out of range");
    refuse("9223372036854775808", NULL, "is out of range");
    refuse("g32[2]", NULL, "expected a dtype");
    refuse("nowhere f32[2]", NULL, "nowhere");
    refuse("cuda: f32[2]", NULL, "expected the index of a device");
    refuse("cuda:1.5", NULL, "Invalid device string");
    refuse("f32[-1]", NULL, "expected the size of a dimension");
    refuse("f32[2.5]", NULL, "expected the size of a dimension");
    refuse("f32[2,]", NULL, "expected the size of a dimension");
    refuse("f32[2].x", NULL, "expected t, strided, expanded, cl, offset or grad");
    refuse("f32[2].t", NULL, "a tensor of 1 dimensions cannot be .t, which takes at least 2");
    refuse("f32[].strided", NULL, "cannot be .strided");
    refuse("f32[].expanded", NULL, "cannot be .expanded");
    refuse("f32[2,2].cl", NULL, "cannot be .cl");
    refuse("f32[2,2].t.strided", NULL, "one of .t, .strided, .expanded and .cl at most");
    refuse("f32[2]='x'", NULL, "expected a number to fill the tensor with");
    refuse("f32[2]=f32[2]", NULL, "expected a number to fill the tensor with");
    refuse("i64[2].grad", NULL, "only Tensors of floating point dtype can require gradients");
    refuse("f32[4611686018427387904,4]", NULL, "Storage size calculation overflowed");
    refuse("f32[4611686018427387904,4].t", NULL, "Storage size calculation overflowed");
    refuse("f32[9223372036854775807].strided", NULL, "Storage size calculation overflowed");
    refuse("f32[4611686018427387904,4].expanded", NULL, "Storage size calculation overflowed");
    refuse("f32[0,4611686018427387904,4].t", NULL, "Storage size calculation overflowed");
    refuse("2.5", "int",
           "Expected a value of type 'int' but instead found type 'float'. Value: '2.5'");
    refuse("f32[2] ", "int", "but instead found type 'Tensor'. Value: 'f32[2]'");
    refuse("None", "Tensor", "Expected a value of type 'Tensor'");
    refuse("[None]", "Tensor[]", "Expected a value of type 'Tensor[]'");
    refuse("'x'", "int", "found type 'str'");
    refuse("float32", "int", "expected a value");
    refuse("cpu", "Tensor", "found type 'Device'");
    tn_value v;
    EXPECT_FAIL(TN_INVALID, "the argument text is NULL", tni_value_parse(NULL, NULL, &v));
    char deep[200];
    memset(deep, '[', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    refuse(deep, NULL, "lists within lists deeper than 32");
}

TEST(a_tensor_has_sixty_four_dimensions_at_most)
{
    char text[400] = "f32[1";
    for (int i = 1; i < 64; i++)
        strcat(text, ",1");
    strcat(text, "]");
    tn_tensor *t = tensor(text);
    EXPECT_EQ_INT(t->ndim, 64);
    tn_tensor_unref(t);
    strcpy(text + strlen(text) - 1, ",1]");
    refuse(text, NULL, "a tensor of more than 64 dimensions");
}

/* ---- arguments of a call ---- */

static tni_schema *sum(void)
{
    tni_schema *s = NULL;
    ASSERT_OK(
        tni_schema_parse("aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, "
                         "*, ScalarType? dtype=None) -> Tensor",
                         &s));
    return s;
}

static void clear(tn_value *args, int n)
{
    for (int i = 0; i < n; i++)
        tn_value_clear(&args[i]);
}

TEST(arguments_come_by_position_by_name_and_by_default)
{
    TN_AUTO(tni_schema) s = sum();
    tn_value args[4];
    ASSERT_OK(tni_args_parse(s, "f32[2,3], [0, 1], dtype=float64", args));
    EXPECT(args[0].tag == TN_TAG_TENSOR);
    EXPECT(args[1].tag == TN_TAG_INT_LIST && args[1].count == 2);
    EXPECT(args[2].tag == TN_TAG_BOOL && args[2].u.i == 0);
    EXPECT(args[3].tag == TN_TAG_INT && args[3].u.i == TN_DTYPE_F64);
    clear(args, 4);
    ASSERT_OK(tni_args_parse(s, "keepdim=True, dim=None, self=f32[2]=0", args));
    EXPECT(args[0].tag == TN_TAG_TENSOR && args[1].tag == TN_TAG_NONE && args[2].u.i == 1);
    clear(args, 4);
    TN_AUTO(tni_schema) none = NULL;
    ASSERT_OK(tni_schema_parse("f() -> ()", &none));
    EXPECT_OK(tni_args_parse(none, "", args));
}

TEST(one_number_for_a_sized_list_becomes_the_list)
{
    TN_AUTO(tni_schema) s = NULL;
    tn_value args[5];
    ASSERT_OK(tni_schema_parse("f(int[2] a, int[3] b=4, SymInt[1]? c=None, float[2] d=1, "
                               "bool[2] e=True) -> ()",
                               &s));
    ASSERT_OK(tni_args_parse(s, "7, c=5", args));
    EXPECT(args[0].tag == TN_TAG_INT_LIST && args[0].count == 2 && args[0].u.ints[1] == 7);
    EXPECT(args[1].tag == TN_TAG_INT_LIST && args[1].count == 3 && args[1].u.ints[2] == 4);
    EXPECT(args[2].tag == TN_TAG_INT_LIST && args[2].count == 1 && args[2].u.ints[0] == 5);
    EXPECT(args[3].tag == TN_TAG_FLOAT_LIST && args[3].count == 2 && args[3].u.floats[1] == 1);
    EXPECT(args[4].tag == TN_TAG_BOOL_LIST && args[4].count == 2 && args[4].u.bools[1]);
    clear(args, 5);
}

TEST(wrong_arguments_are_refused_in_the_reference_s_words)
{
    TN_AUTO(tni_schema) s = sum();
    TN_AUTO(tni_schema) mm = NULL;
    ASSERT_OK(tni_schema_parse("aten::mm(Tensor self, Tensor mat2) -> Tensor", &mm));
    tn_value args[4] = {{.tag = 77}};
    EXPECT_FAIL(TN_INVALID, "", tni_args_parse(mm, "f32[2,2]", args));
    EXPECT_STR(tn_last_error(), "aten::mm() is missing value for argument 'mat2'. Declaration: "
                                "aten::mm(Tensor self, Tensor mat2) -> Tensor");
    EXPECT_FAIL(
        TN_INVALID,
        "aten::mm() expected at most 2 argument(s) but received 4 argument(s). Declaration: "
        "aten::mm(Tensor self, Tensor mat2) -> Tensor",
        tni_args_parse(mm, "f32[2], f32[2], [1, 2], f32[2,2]", args));
    EXPECT_FAIL(TN_INVALID, "aten::sum() takes 3 positional argument(s) but 4 was/were given.",
                tni_args_parse(s, "f32[2], [0], True, float32", args));
    EXPECT_FAIL(TN_INVALID, "Unknown keyword argument 'dims' for operator 'aten::sum.dim_IntList'.",
                tni_args_parse(s, "f32[2], dims=0", args));
    EXPECT_FAIL(TN_INVALID, "got multiple values for argument 'self'",
                tni_args_parse(mm, "f32[2], self=f32[2]", args));
    EXPECT_FAIL(TN_INVALID, "a positional argument follows a keyword argument",
                tni_args_parse(mm, "self=f32[2], f32[2]", args));
    EXPECT_FAIL(
        TN_INVALID,
        "aten::sum() Expected a value of type 'int[1]?' for argument 'dim' but instead found "
        "type 'float'.\nPosition: 1\nValue: '1.5'\nDeclaration: aten::sum.dim_IntList(",
        tni_args_parse(s, "f32[2], 1.5 , True", args));
    EXPECT_FAIL(TN_INVALID, "expected a value", tni_args_parse(mm, "f32[2], ", args));
    EXPECT_FAIL(TN_INVALID, "expected the end", tni_args_parse(mm, "f32[2] f32[2]", args));
    EXPECT_EQ_INT(args[0].tag, 77);
}

TEST(reading_leaks_nothing_whichever_allocation_fails)
{
    TN_AUTO(tni_schema) s = NULL;
    ASSERT_OK(tni_schema_parse("aten::f(Tensor[] a, str b, (int, str)[] e, int[2] c=1, "
                               "Tensor? d=None, *, float[] g) -> ()",
                               &s));
    tn_value args[6] = {{0}};
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_args_parse(
            s, "[f32[2,3].t, f16[3].offset], 'text', [(1, 'x'), (2, 'y')], g=[1, 2]", args);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && args[0].tag == TN_TAG_NONE && tni_test_live == before);
    }
    clear(args, 6);
    EXPECT(tni_test_live == before);
    WITH_EACH_ALLOCATION_FAILING(rc)
    { /* also where the answer is no */
        rc = tni_args_parse(s, "[f32[2,3].t], 'text', [(1, 2)], g=[1, 2]", args);
        EXPECT(rc == TN_NOMEM || rc == TN_INVALID);
        EXPECT(tni_test_live == before);
        rc = rc == TN_INVALID ? TN_OK : rc;
    }
}
