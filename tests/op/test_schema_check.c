/* SPDX-License-Identifier: MIT */
/* tests/op/test_schema_check.c: kernels' signatures and boxed values against schemas. */
#include <string.h>
#include "base/alloc.h"
#include "core/tensor.h"
#include "harness/test.h"
#include "op/schema.h"

static tni_schema *parse(const char *text)
{
    tni_schema *schema = NULL;
    ASSERT_OK(tni_schema_parse(text, &schema));
    return schema;
}

TEST(a_signature_of_the_same_types_serves_the_schema)
{
    TN_AUTO(tni_schema)
    s = parse("test::foo(Tensor(a!) x, SymInt[2] n=1, *, ScalarType? d=None) -> Tensor(a!)");
    EXPECT_OK(tni_signature_check(s, "(Tensor, int[], ScalarType?) -> Tensor"));
    EXPECT_OK(tni_signature_check(s, "(Tensor, SymInt[], ScalarType?) -> Tensor"));
    EXPECT_OK(tni_signature_check(s, "(Tensor(b) y, int[3] m, ScalarType? e) -> (Tensor r)"));
}

TEST(a_signature_that_differs_is_refused_in_the_reference_s_words)
{
    TN_AUTO(tni_schema) s = parse("test::foo(Tensor x, Tensor y) -> Tensor");
    EXPECT_FAIL(TN_INVALID, "", tni_signature_check(s, "(Tensor) -> Tensor"));
    EXPECT_STR(tn_last_error(),
               "Inferred operator schema for a kernel function doesn't match the expected function "
               "schema.\n  operator: test::foo\n"
               "  expected schema: test::foo(Tensor x, Tensor y) -> Tensor\n"
               "  inferred schema: (Tensor _0) -> Tensor _0\n"
               "  reason: The number of arguments is different. 2 vs 1.");
    EXPECT_FAIL(TN_INVALID, "reason: The number of returns is different. 1 vs 2.",
                tni_signature_check(s, "(Tensor, Tensor) -> (Tensor, Tensor)"));
    EXPECT_FAIL(TN_INVALID, "reason: Type mismatch in argument 2: Tensor vs int.",
                tni_signature_check(s, "(Tensor, int) -> Tensor"));
    EXPECT_FAIL(TN_INVALID, "reason: Type mismatch in return 1: Tensor vs Tensor[].",
                tni_signature_check(s, "(Tensor, Tensor) -> Tensor[]"));
    EXPECT_FAIL(TN_INVALID, "(...)", tni_signature_check(s, "(Tensor, Tensor, ...) -> Tensor"));
    TN_AUTO(tni_schema) o = parse("f(int? x, Device d, Storage s) -> ()");
    EXPECT_FAIL(TN_INVALID, "argument 1: int? vs int",
                tni_signature_check(o, "(int, Device, Storage) -> ()"));
    EXPECT_FAIL(TN_INVALID, "argument 3: Storage vs Stream",
                tni_signature_check(o, "(int?, Device, Stream) -> ()"));
    EXPECT_FAIL(TN_INVALID, "argument 2: Device vs int",
                tni_signature_check(o, "(int?, int, Storage) -> ()"));
}

TEST(a_malformed_signature_is_refused)
{
    TN_AUTO(tni_schema) s = parse("f(Tensor x) -> Tensor");
    EXPECT_FAIL(TN_INVALID, "the signature is NULL", tni_signature_check(s, NULL));
    EXPECT_FAIL(TN_INVALID, "expected a type in signature '(Tenso) -> Tensor' at column 2",
                tni_signature_check(s, "(Tenso) -> Tensor"));
    EXPECT_FAIL(TN_INVALID, "a default value, which only schemas have",
                tni_signature_check(s, "(Tensor x=None) -> Tensor"));
    EXPECT_FAIL(TN_INVALID, "expected a type", tni_signature_check(s, "(*, Tensor) -> Tensor"));
    EXPECT_FAIL(TN_INVALID, "expected '('", tni_signature_check(s, "f(Tensor) -> Tensor"));
}

TEST(a_schema_can_be_inferred_from_a_signature)
{
    TN_AUTO(tni_schema) s = NULL;
    char *text = NULL;
    ASSERT_OK(tni_schema_infer("test::foo.bar", "(Tensor, int[]?) -> (Tensor, int)", &s));
    ASSERT_OK(tni_schema_print(s, &text));
    EXPECT_STR(text, "test::foo.bar(Tensor _0, int[]? _1) -> (Tensor _0, int _1)");
    EXPECT_STR(s->name, "test::foo");
    EXPECT_EQ_INT((int64_t)s->tensor_args, 1);
    tni_free(text);
    tni_schema *none = NULL;
    EXPECT_FAIL(TN_INVALID, "the name of the operator is NULL",
                tni_schema_infer(NULL, "() -> ()", &none));
    EXPECT_FAIL(TN_INVALID, "the signature is NULL", tni_schema_infer("f", NULL, &none));
    EXPECT_FAIL(TN_INVALID, "in operator name 'f(x)'", tni_schema_infer("f(x)", "() -> ()", &none));
    EXPECT_FAIL(TN_INVALID, "legal overload", tni_schema_infer("f.default", "() -> ()", &none));
    EXPECT(none == NULL);
}

/* Whether @p v fits the type of the only argument of "f(TYPE x) -> ()". */
static bool fits(tn_value v, const char *type)
{
    char text[256] = "aten::f(";
    strcat(strcat(text, type), " x) -> ()");
    test_note("%s", text);
    TN_AUTO(tni_schema) s = parse(text);
    return tni_value_fits(&v, s->args[0].type);
}

static bool arg_fits(tn_value v, const char *type)
{
    char text[256] = "aten::f(";
    strcat(strcat(text, type), " x) -> ()");
    test_note("%s", text);
    TN_AUTO(tni_schema) s = parse(text);
    return tni_arg_fits(&v, &s->args[0]);
}

TEST(numbers_fit_where_they_lose_nothing)
{
    EXPECT(fits(tn_value_int(1), "int") && fits(tn_value_int(1), "SymInt"));
    EXPECT(fits(tn_value_int(1), "float") && fits(tn_value_int(1), "Scalar"));
    EXPECT(fits(tn_value_int(1), "complex") && fits(tn_value_int(6), "ScalarType"));
    EXPECT(fits(tn_value_int(0), "Layout") && fits(tn_value_int(0), "MemoryFormat"));
    EXPECT(!fits(tn_value_int(1), "bool") && !fits(tn_value_int(1), "Tensor"));
    EXPECT(fits(tn_value_float(1), "float") && fits(tn_value_float(1), "Scalar"));
    EXPECT(!fits(tn_value_float(1), "int") && fits(tn_value_float(1), "complex"));
    EXPECT(fits(tn_value_bool(true), "bool") && fits(tn_value_bool(true), "Scalar"));
    EXPECT(!fits(tn_value_bool(true), "int") && !fits(tn_value_bool(true), "float"));
    tn_value z = tn_value_scalar(tn_complex(1, 2));
    EXPECT(fits(z, "complex") && fits(z, "Scalar") && !fits(z, "float"));
    EXPECT(fits(tn_value_string("x"), "str") && !fits(tn_value_string("x"), "Device"));
    EXPECT(fits(tn_value_device(TN_CPU), "Device") && !fits(tn_value_device(TN_CPU), "int"));
}

TEST(none_fits_optionals_alone)
{
    EXPECT(fits(tn_value_none(), "int?") && fits(tn_value_none(), "Tensor?"));
    EXPECT(fits(tn_value_none(), "None") && fits(tn_value_tensor(NULL), "Tensor?"));
    EXPECT(!fits(tn_value_none(), "int") && !fits(tn_value_none(), "Tensor"));
    EXPECT(!fits(tn_value_tensor(NULL), "Tensor"));
    EXPECT(!fits(tn_value_generator(NULL), "Generator"));
    EXPECT(fits(tn_value_generator(NULL), "Generator?"));
    EXPECT(fits(tn_value_int(1), "int?") && !fits(tn_value_float(1), "int?"));
}

TEST(tensors_and_lists_of_them_fit)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(0, NULL, NULL, TN_DTYPE_F32, TN_CPU, &t));
    tn_tensor *both[] = {t, NULL};
    EXPECT(fits(tn_value_tensor(t), "Tensor") && fits(tn_value_tensor(t), "Tensor?"));
    EXPECT(!fits(tn_value_tensor(t), "Scalar") && !fits(tn_value_tensor(t), "Tensor[]"));
    EXPECT(fits(tn_value_tensors(both, 1), "Tensor[]"));
    EXPECT(!fits(tn_value_tensors(both, 2), "Tensor[]"));
    EXPECT(fits(tn_value_tensors(both, 2), "Tensor?[]"));
    EXPECT(!fits(tn_value_tensors(both, 1), "int[]"));
    EXPECT(fits(tn_value_tensors(NULL, 0), "Tensor[]"));
    tn_tensor_unref(t);
}

TEST(lists_fit_by_their_elements)
{
    int64_t ints[] = {1, 2};
    double floats[] = {1, 2};
    bool bools[] = {true};
    EXPECT(fits(tn_value_ints(ints, 2), "int[]") && fits(tn_value_ints(ints, 2), "SymInt[]?"));
    EXPECT(fits(tn_value_ints(ints, 2), "float[]") && fits(tn_value_ints(ints, 2), "Scalar[]"));
    EXPECT(!fits(tn_value_floats(floats, 2), "int[]") &&
           fits(tn_value_floats(floats, 2), "float[]"));
    EXPECT(fits(tn_value_bools(bools, 1), "bool[]") && !fits(tn_value_bools(bools, 1), "int[]"));
    EXPECT(fits(tn_value_ints(NULL, 0), "Tensor[]")); /* an empty list has no kind */
    EXPECT(fits(tn_value_ints(ints, 2), "(int, float)") && !fits(tn_value_ints(ints, 2), "(int)"));
    EXPECT(!fits(tn_value_ints(ints, 2), "int"));
    tn_value mixed[] = {tn_value_string("a"), tn_value_ints(ints, 2)};
    tn_value list = {.tag = TN_TAG_LIST, .count = 2, .u.values = mixed};
    EXPECT(fits(list, "(str, int[])") && !fits(list, "(str, str)") && !fits(list, "str[]"));
    tn_value dict = {.tag = TN_TAG_DICT, .count = 1, .u.values = mixed};
    EXPECT(fits(dict, "Dict(str, int[])") && !fits(dict, "Dict(str, str)"));
    EXPECT(!fits(list, "Dict(str, int[])"));
    EXPECT(fits(list, "Any") && fits(list, "t") && fits(list, "Union(int, (str, int[]))"));
    EXPECT(!fits(list, "Union(int, str)"));
}

TEST(one_int_fits_a_sized_list_of_ints)
{
    EXPECT(fits(tn_value_int(3), "int[2]") && !fits(tn_value_int(3), "float[2]"));
    EXPECT(!fits(tn_value_int(3), "int[][]") && !fits(tn_value_float(3), "int[2]"));
    EXPECT(arg_fits(tn_value_int(3), "int[2]") && arg_fits(tn_value_int(3), "int[1]?"));
    EXPECT(!arg_fits(tn_value_int(3), "int[]") && !arg_fits(tn_value_int(3), "int[]?"));
    EXPECT(arg_fits(tn_value_none(), "int[1]?") && !arg_fits(tn_value_none(), "int[1]"));
    EXPECT(!arg_fits(tn_value_bool(true), "int[2]") && !arg_fits(tn_value_bool(true), "bool[2]"));
    EXPECT(arg_fits(tn_value_ints((int64_t[]){1}, 1), "int[]"));
}

TEST(handles_fit_what_only_operators_understand)
{
    tn_value p = {.tag = TN_TAG_POINTER};
    EXPECT(fits(p, "Storage") && fits(p, "Stream") && fits(p, "Future(int)"));
    EXPECT(fits(p, "__torch__.torch.classes.a.B") && fits(p, "QScheme"));
    EXPECT(fits(tn_value_int(1), "QScheme") && !fits(tn_value_int(1), "Storage"));
    EXPECT(!fits(p, "Tensor"));
}

TEST(checking_leaks_nothing_whichever_allocation_fails)
{
    TN_AUTO(tni_schema) s = parse("test::foo(Tensor x, Dict(str, Tensor[])[] y) -> Tensor");
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_signature_check(s, "(Tensor, Dict(str, Tensor[])[]) -> Tensor");
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live == before);
    }
    /* Where the answer is no, it takes memory to say so. */
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_signature_check(s, "(Tensor, Dict(str, Tensor[])) -> Tensor");
        EXPECT(rc == TN_NOMEM || rc == TN_INVALID);
        EXPECT(tni_test_live == before);
        rc = rc == TN_INVALID ? TN_OK : rc;
    }
    EXPECT(tni_test_live == before);
}

TEST(inferring_leaks_nothing_whichever_allocation_fails)
{
    tni_schema *s = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_schema_infer("a::b.c", "(Tensor(a!)[], (int, str)) -> (Tensor, Tensor)", &s);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !s && tni_test_live == before);
    }
    tni_schema_free(s);
    EXPECT(tni_test_live == before);
}
