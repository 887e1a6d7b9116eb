/* SPDX-License-Identifier: MIT */
/* tests/op/test_schema_parse.c: what tni_schema_parse makes of a text, and what it refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/str.h"
#include "harness/test.h"
#include "op/schema.h"

static tni_schema *parse(const char *text)
{
    tni_schema *schema = NULL;
    test_note("%s", text);
    ASSERT_OK(tni_schema_parse(text, &schema));
    return schema;
}

static void refuse(const char *text, const char *message)
{
    tni_schema *schema = NULL;
    test_note("%s", text);
    EXPECT_FAIL(TN_INVALID, message, tni_schema_parse(text, &schema));
    EXPECT(schema == NULL);
}

TEST(a_name_has_a_namespace_a_name_and_an_overload)
{
    TN_AUTO(tni_schema) s = parse("aten::add.Tensor(Tensor self, Tensor other) -> Tensor");
    EXPECT_STR(s->name, "aten::add");
    EXPECT_STR(s->overload, "Tensor");
    EXPECT_STR(s->full, "aten::add.Tensor");
    TN_AUTO(tni_schema) bare = parse("add() -> ()");
    EXPECT_STR(bare->name, "add");
    EXPECT_STR(bare->overload, "");
    EXPECT_STR(bare->full, "add");
    EXPECT_EQ_INT(bare->nargs, 0);
    EXPECT_EQ_INT(bare->nrets, 0);
}

TEST(arguments_have_names_types_defaults_and_keyword_only_marks)
{
    TN_AUTO(tni_schema)
    s = parse("aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> "
              "Tensor(a!)");
    ASSERT_EQ_INT(s->nargs, 4);
    EXPECT_STR(s->args[0].name, "self");
    EXPECT(s->args[0].type->kind == TNI_TYPE_TENSOR && !s->args[0].type->alias);
    EXPECT(!s->args[1].keyword_only && !s->args[1].has_default);
    EXPECT(s->args[2].keyword_only && s->args[2].has_default && !s->args[2].is_out);
    EXPECT(s->args[2].type->kind == TNI_TYPE_SCALAR);
    EXPECT(s->args[2].default_value.tag == TN_TAG_INT && s->args[2].default_value.u.i == 1);
    EXPECT(s->args[3].is_write && s->args[3].is_out);
    EXPECT(s->args[3].type->alias && s->args[3].type->alias->write);
    EXPECT_STR(s->args[3].type->alias->before, "a");
    EXPECT_EQ_INT(s->nrets, 1);
    EXPECT_STR(s->rets[0].name, "");
}

TEST(tensor_and_generator_arguments_are_known_by_position)
{
    TN_AUTO(tni_schema)
    s = parse("f(int a, Tensor b, Tensor? c, Tensor[] d, Tensor?[] e, Tensor[][] g, Tensor[]? h, "
              "Generator i, Generator? j, Tensor[2] k, Dict(str, Tensor) l) -> ()");
    EXPECT_EQ_INT((int64_t)s->tensor_args, 0x21e);
    EXPECT_EQ_INT((int64_t)s->generator_args, 0x180);
}

TEST(writing_makes_mutable_and_a_plain_annotation_makes_a_view)
{
    TN_AUTO(tni_schema) view = parse("f(Tensor(a) x, int n) -> Tensor(a)");
    EXPECT(view->is_view && !view->is_mutable);
    TN_AUTO(tni_schema) list = parse("f(Tensor(a)[] x) -> Tensor(a)");
    EXPECT(list->is_view && !list->is_mutable);
    TN_AUTO(tni_schema) inplace = parse("f(Tensor(a!) x, Tensor(b) y) -> Tensor(a!)");
    EXPECT(!inplace->is_view && inplace->is_mutable && !inplace->args[0].is_out);
    TN_AUTO(tni_schema) elements = parse("f(Tensor(a!)[] x) -> ()");
    EXPECT(!elements->is_view && elements->is_mutable && elements->args[0].is_write);
    TN_AUTO(tni_schema) pure = parse("f(Tensor x) -> Tensor");
    EXPECT(!pure->is_view && !pure->is_mutable);
}

TEST(annotations_have_sets_before_and_after)
{
    TN_AUTO(tni_schema)
    s = parse("f(Tensor(a) p, Tensor(b|c!) q, Tensor(d -> *) r, Tensor(e! -> f | g) t, Tensor(*|h) "
              "u, Tensor! v, Tensor! w) -> ()");
    const tni_alias *a[7];
    for (int i = 0; i < 7; i++)
        a[i] = s->args[i].type->alias;
    EXPECT(!a[0]->write && a[1]->write && !a[2]->write && a[3]->write && !a[4]->write);
    EXPECT_STR(a[0]->after, "a");
    EXPECT_STR(a[1]->before, "b|c");
    EXPECT_STR(a[1]->after, "b|c");
    EXPECT_STR(a[2]->before, "d");
    EXPECT_STR(a[2]->after, "*");
    EXPECT_STR(a[3]->after, "f|g");
    EXPECT_STR(a[4]->before, "*");
    /* A bare mark is a set of its own, after the call too. */
    EXPECT(a[5]->write && a[6]->write);
    EXPECT(strcmp(a[5]->before, a[6]->before) != 0);
    EXPECT_STR(a[5]->before, a[5]->after);
}

TEST(annotations_of_a_list_and_of_its_elements_are_apart)
{
    TN_AUTO(tni_schema) s = parse("f(Tensor(a)[](b!)? x, Tensor(c)[2](d) y) -> ()");
    const tni_schema_type *x = s->args[0].type;
    EXPECT(x->kind == TNI_TYPE_OPTIONAL && !x->alias);
    EXPECT_STR(x->children[0]->alias->before, "b");
    EXPECT_STR(x->children[0]->children[0]->alias->before, "a");
    const tni_schema_type *y = s->args[1].type;
    EXPECT(y->kind == TNI_TYPE_LIST && s->args[1].fixed_n == 2);
    EXPECT_STR(y->alias->before, "d");
}

TEST(types_nest)
{
    TN_AUTO(tni_schema)
    s = parse("prim::f(Dict(str, (int, Tensor)[])? a, Union(int, float[]) b, Future(t) c, "
              "__torch__.torch.classes.q.Params d, int??[] e) -> ((int, int))");
    const tni_schema_type *a = s->args[0].type->children[0];
    EXPECT(a->kind == TNI_TYPE_DICT && a->n_children == 2);
    EXPECT(a->children[1]->children[0]->kind == TNI_TYPE_TUPLE);
    EXPECT(s->args[1].type->kind == TNI_TYPE_UNION && s->args[1].type->n_children == 2);
    EXPECT(s->args[2].type->kind == TNI_TYPE_FUTURE);
    EXPECT_STR(s->args[2].type->name, "Future");
    EXPECT(s->args[2].type->children[0]->kind == TNI_TYPE_VARIABLE);
    EXPECT(s->args[3].type->kind == TNI_TYPE_CLASS);
    EXPECT_STR(s->args[3].type->name, "__torch__.torch.classes.q.Params");
    EXPECT(s->args[4].type->children[0]->children[0]->kind == TNI_TYPE_INT); /* ?? is ? */
    EXPECT_EQ_INT(s->nrets, 1);
    EXPECT(s->rets[0].type->kind == TNI_TYPE_TUPLE && s->rets[0].type->n_children == 2);
}

TEST(names_that_stand_for_other_types_become_those)
{
    TN_AUTO(tni_schema) s = parse("f(Dimname a, DeviceIndex b, ConstQuantizerPtr c, None d) -> ()");
    EXPECT(s->args[0].type->kind == TNI_TYPE_STRING);
    EXPECT(s->args[1].type->kind == TNI_TYPE_INT);
    EXPECT(s->args[2].type->kind == TNI_TYPE_INT);
    EXPECT(s->args[3].type->kind == TNI_TYPE_NONE);
}

TEST(defaults_are_values_of_the_right_kind)
{
    TN_AUTO(tni_schema)
    s = parse("f(int a=-5, float b=1, float c=-1.5e-3, bool d=True, str e='x\\'\\n\\x41\\101', "
              "Device f='meta', Tensor? g=None, complex h=2j, complex i=3, Scalar j=1e3, "
              "float? k=1, Device? l=\"cpu\", int m=-9223372036854775808, Tensor n=None) -> ()");
    const tni_schema_arg *a = s->args;
    EXPECT(a[0].default_value.tag == TN_TAG_INT && a[0].default_value.u.i == -5);
    EXPECT(a[1].default_value.tag == TN_TAG_FLOAT && a[1].default_value.u.f == 1.0);
    EXPECT(a[2].default_value.tag == TN_TAG_FLOAT && a[2].default_value.u.f == -1.5e-3);
    EXPECT(a[3].default_value.tag == TN_TAG_BOOL && a[3].default_value.u.i == 1);
    EXPECT(a[4].default_value.tag == TN_TAG_STRING && a[4].default_value.count == 5);
    EXPECT_STR(a[4].default_value.u.text, "x'\nAA");
    EXPECT(a[5].default_value.tag == TN_TAG_DEVICE &&
           a[5].default_value.u.device.type == TN_DEVICE_META);
    EXPECT(a[6].has_default && a[6].default_value.tag == TN_TAG_NONE);
    EXPECT(a[7].default_value.tag == TN_TAG_COMPLEX && a[7].default_value.u.z.im == 2);
    EXPECT(a[8].default_value.tag == TN_TAG_COMPLEX && a[8].default_value.u.z.re == 3);
    EXPECT(a[9].default_value.tag == TN_TAG_FLOAT && a[9].default_value.u.f == 1000);
    EXPECT(a[10].default_value.tag == TN_TAG_INT); /* as in the reference */
    EXPECT(a[11].default_value.tag == TN_TAG_DEVICE);
    EXPECT(a[12].default_value.u.i == INT64_MIN);
    EXPECT(a[13].has_default && a[13].default_value.tag == TN_TAG_NONE);
}

TEST(words_stand_for_numbers_in_defaults)
{
    TN_AUTO(tni_schema)
    s = parse(
        "f(int a=Mean, MemoryFormat b=contiguous_format, Layout c=strided, ScalarType d=long, "
        "ScalarType e=float, ScalarType? f=complex, ScalarType g=bfloat16) -> ()");
    const int64_t wanted[] = {1, 0, 0, TN_DTYPE_I64, TN_DTYPE_F32, TN_DTYPE_C64, TN_DTYPE_BF16};
    for (int i = 0; i < s->nargs; i++) {
        EXPECT(s->args[i].default_value.tag == TN_TAG_INT);
        EXPECT_EQ_INT(s->args[i].default_value.u.i, wanted[i]);
    }
}

TEST(a_sized_list_of_equal_ints_is_one_int)
{
    TN_AUTO(tni_schema)
    s = parse("f(int[2] a=1, int[2] b=[1, 1], SymInt[3] c=0, int[2] d=[1, 2], int[1] e=[7], "
              "int[2] g=[], int[] h=[4, 4], float[2] i=1, bool[2] j=True, float[] k=[1, 2.5], "
              "complex[] l=[1j, 2], int[2]? m=None, int[2]? n=3, int[2] o=[1]) -> ()");
    const tni_schema_arg *a = s->args;
    EXPECT(a[0].default_value.tag == TN_TAG_INT && a[0].default_value.u.i == 1);
    EXPECT(a[1].default_value.tag == TN_TAG_INT && a[1].default_value.u.i == 1);
    EXPECT(a[2].default_value.tag == TN_TAG_INT && a[2].default_value.u.i == 0);
    EXPECT(a[3].default_value.tag == TN_TAG_INT_LIST && a[3].default_value.count == 2);
    EXPECT(a[3].default_value.u.ints[1] == 2);
    EXPECT(a[4].default_value.tag == TN_TAG_INT && a[4].default_value.u.i == 7);
    EXPECT(a[5].default_value.tag == TN_TAG_INT_LIST && a[5].default_value.count == 0);
    EXPECT(a[6].default_value.tag == TN_TAG_INT_LIST && a[6].default_value.count == 2);
    EXPECT(a[7].default_value.tag == TN_TAG_FLOAT_LIST && a[7].default_value.count == 2);
    EXPECT(a[7].default_value.u.floats[0] == 1 && a[7].default_value.u.floats[1] == 1);
    EXPECT(a[8].default_value.tag == TN_TAG_BOOL_LIST && a[8].default_value.u.bools[1]);
    EXPECT(a[9].default_value.tag == TN_TAG_FLOAT_LIST && a[9].default_value.u.floats[1] == 2.5);
    EXPECT(a[10].default_value.tag == TN_TAG_LIST);
    EXPECT(a[10].default_value.u.values[1].tag == TN_TAG_COMPLEX);
    EXPECT(a[11].default_value.tag == TN_TAG_NONE);
    EXPECT(a[12].default_value.tag == TN_TAG_INT && a[12].default_value.u.i == 3);
    EXPECT(a[13].default_value.tag == TN_TAG_INT_LIST && a[13].default_value.count == 1);
}

TEST(variable_arguments_and_results_are_marked)
{
    TN_AUTO(tni_schema) s = parse("prim::f(int a, ...) -> (int, ...)");
    EXPECT(s->vararg && s->varret && s->nargs == 1 && s->nrets == 1);
    TN_AUTO(tni_schema) t = parse("prim::f(...) -> ...");
    EXPECT(t->vararg && t->varret && t->nargs == 0 && t->nrets == 0);
}

TEST(spaces_comments_and_newlines_in_brackets_mean_nothing)
{
    TN_AUTO(tni_schema)
    s = parse("\n f . out (\n Tensor ( a ! ) y , # of old\n int x = - 5\n) -> ( ) # end\n\n");
    EXPECT_STR(s->full, "f.out");
    EXPECT(s->args[0].is_write);
    EXPECT_EQ_INT(s->args[1].default_value.u.i, -5);
    refuse("f(int x)\n-> int", "expected '->'");
}

TEST(a_name_alone_is_no_schema_but_may_be_asked_for)
{
    tni_schema *schema = NULL;
    char *name = NULL;
    refuse("aten::mm", "expected '(' in schema 'aten::mm' at column 9, found the end");
    ASSERT_OK(tni_schema_parse_or_name(" aten::add.out \n", &schema, &name));
    EXPECT(schema == NULL);
    EXPECT_STR(name, "aten::add.out");
    tni_free(name);
    ASSERT_OK(tni_schema_parse_or_name("f.g(int x) -> int", &schema, &name));
    EXPECT(schema && schema->nargs == 1);
    EXPECT_STR(name, "f.g");
    tni_free(name);
    tni_schema_free(schema);
    schema = NULL;
    name = NULL;
    EXPECT_FAIL(TN_INVALID, "expected the end", tni_schema_parse_or_name("f x", &schema, &name));
    EXPECT_FAIL(TN_INVALID, "expected ',' or ')'",
                tni_schema_parse_or_name("f(int x", &schema, &name));
    EXPECT(schema == NULL && name == NULL);
}

TEST(errors_say_what_was_expected_where_and_what_was_found)
{
    refuse("f(Tenso x) -> ()",
           "expected a type in schema 'f(Tenso x) -> ()' at column 3, found 'Tenso'. unknown type "
           "specifier. Common valid schema types include Tensor, SymInt, int, float, bool, Scalar");
    refuse("f(int x) -> int junk junk",
           "expected the end in schema 'f(int x) -> int junk junk' at column 22, found 'junk'");
    refuse("", "expected the name of an operator in schema '' at column 1, found the end");
    refuse("f(int x", "expected ',' or ')' in schema 'f(int x' at column 8, found the end");
    refuse("f(int) -> ()", "expected the name of an argument");
    refuse("f(int x,) -> ()", "expected a type in schema 'f(int x,) -> ()' at column 9, found ')'");
    refuse("f(int x) -> ", "expected a type");
    refuse("f(int x)", "expected '->'");
    refuse("a::b::c(int x) -> ()", "expected '('");
    refuse("f(int x=) -> ()", "expected a default value");
    refuse("f(int x=-y) -> ()", "expected a number");
    refuse("f(int[ x) -> ()", "expected ']' or the size of a list");
    refuse("f(int[2 x) -> ()", "expected ']'");
    refuse("f(int x) -> (int, , int)", "expected a type");
    refuse("f(int True) -> ()", "expected the name of an argument");
    refuse("f(str s='abc) -> ()", "found a string that does not end");
    refuse("f(int \x01x) -> ()", "found '?'");
    refuse("f(int {x}) -> ()", "found '{'");
    refuse("f(Tensor?(a!) x) -> ()", "expected the name of an argument");
    refuse("f((int, int)(a) x) -> ()", "expected the name of an argument");
    refuse("f(Tensor(a! -> ) x) -> ()", "expected the name of an alias set");
    refuse("f(Tensor() x) -> ()", "expected the name of an alias set");
    refuse("f(Tensor(a x) -> ()", "expected ')' after an alias annotation");
    refuse("f(Dict(str) x) -> ()", "a Dict of 1 types, which takes 2");
    refuse("f(Future(int, int) x) -> ()", "a Future of 2 types, which takes 1");
    refuse("f(__torch__.torch.classes.a x) -> ()", "expected '.' in the name of a class");
    refuse("f(__torch__.tort.classes.a.B x) -> ()", "expected torch");
    EXPECT_FAIL(TN_INVALID, "the schema is NULL", tni_schema_parse(NULL, &(tni_schema *){NULL}));
}

TEST(c_types_are_refused_with_a_hint)
{
    refuse("f(double x) -> ()", "Use `float` instead of `double` in an operator's schema string. "
                                "`float` in schema corresponds to the double type in C");
    refuse("aten::f(int64_t x) -> ()",
           "Use `SymInt` or `int` instead of `int64_t` in an operator's "
           "schema string");
}

TEST(illegal_overload_names_are_refused)
{
    refuse("f.default(int x) -> ()", "default is not a legal overload name for aten operators");
    refuse("f.__x(int x) -> ()", "__x is not a legal overload name for aten operators");
    tni_schema_free(parse("f._x(int x) -> ()"));
    tni_schema_free(parse("__and__.Scalar(int x) -> ()"));
}

TEST(type_variables_are_for_aten_and_prim_alone)
{
    tni_schema_free(parse("aten::f(t[] x) -> t"));
    tni_schema_free(parse("prim::f(t x) -> t"));
    refuse("my::f(t x) -> ()", "unknown type specifier");
    refuse("f(t x) -> ()", "unknown type specifier");
}

TEST(a_positional_argument_without_default_may_not_follow_one_with)
{
    refuse("f(int x=1, int y) -> ()",
           "Non-default positional argument follows default argument. Parameter y");
    refuse("f(int x=1, int[] y, int z) -> ()", "Parameter z");
    tni_schema_free(parse("f(int x=1, int[] y) -> ()"));
    tni_schema_free(parse("f(int x=1, *, int y) -> ()"));
}

TEST(dots_are_last_and_exclude_defaults)
{
    refuse("f(..., int x) -> ()", "... must be the last element of the argument list");
    refuse("f(int x=1, ...) -> ()", "schemas with vararg (...) can't have default value args");
    refuse("f() -> (..., int)", "... must be the last element of the return list");
}

TEST(a_default_must_be_a_value_of_the_type)
{
    refuse("f(int x='abc') -> ()", "the default value ''abc'' is no value of type 'int'");
    refuse("f(int x=-1.5) -> ()", "the default value '-1.5' is no value of type 'int'");
    refuse("f(bool x=1) -> ()", "is no value of type 'bool'");
    refuse("f(int x=True) -> ()", "is no value of type 'int'");
    refuse("f(int x=None) -> ()", "is no value of type 'int'");
    refuse("f(Tensor? x=1) -> ()", "is no value of type 'Tensor?'");
    refuse("f(int[] x=1) -> ()", "is no value of type 'int[]'");
    refuse("f(int[2] x=None) -> ()", "is no value of type 'int[]'");
    refuse("f(int[2] x=1.5) -> ()", "is no value of type 'int[]'");
    refuse("f(int[] x=[1, 2.5]) -> ()", "the default value '2.5' is no value of type 'int'");
    refuse("f(str[] x=['a']) -> ()", "lists are only supported for float, int");
    refuse("f(SymInt?[8] x=-1) -> ()", "lists are only supported for float, int");
    refuse("f(Tensor[] x=[]) -> ()", "lists are only supported for float, int");
    refuse("f(int x=float32) -> ()", "invalid numeric default value");
    refuse("f(float[2] x=Mean) -> ()", "invalid numeric default value");
    refuse("f(MemoryFormat x=channels_last) -> ()", "invalid numeric default value");
    refuse("f(int x=9223372036854775808) -> ()", "the number 9223372036854775808 is out of range");
    refuse("f(float x=1e400) -> ()", "the number 1e400 is out of range");
    refuse("f(int x=0x10) -> ()", "expected ',' or ')'");
    refuse("f(str x='\\q') -> ()", "unknown escape '\\q' in a string");
    refuse("f(str x='\\400') -> ()", "unknown escape");
    refuse("f(str x='a\\0b') -> ()", "a NUL character in a string");
    refuse("f(Device x='nowhere') -> ()", "nowhere");
    refuse("f(int x=1) -> int y=2", "expected the end");
}

TEST(two_arguments_of_one_name_are_refused)
{
    refuse("f(int x, Tensor x) -> ()", "two arguments are named 'x'");
}

TEST(the_star_comes_once)
{
    refuse("f(int x, *, int y, *, int z) -> ()", "expected a type");
}

/* "f(int a0, int a1, …) -> …" with @p n of each. */
static char *many(int nargs, int nrets)
{
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, "f(");
    for (int i = 0; i < nargs; i++)
        tni_str_addf(&s, "%sint a%d", i ? ", " : "", i);
    tni_str_add(&s, ") -> (");
    for (int i = 0; i < nrets; i++)
        tni_str_addf(&s, "%sint", i ? ", " : "");
    tni_str_add(&s, ")");
    return tni_str_take(&s);
}

TEST(sixty_four_arguments_are_the_most)
{
    char *most = many(64, 64), *args = many(65, 1), *rets = many(1, 65);
    TN_AUTO(tni_schema) s = parse(most);
    EXPECT_EQ_INT(s->nargs, 64);
    EXPECT_EQ_INT(s->nrets, 64);
    refuse(args, "The schema has 65 arguments; at most 64 are supported");
    refuse(rets, "The schema has 65 returns; at most 64 are supported");
    tni_free(most);
    tni_free(args);
    tni_free(rets);
}

/* "f(" then @p open n times, a type, @p close n times, " x) -> ()". */
static char *nested(const char *open, const char *inner, const char *close, int n)
{
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, "f(");
    for (int i = 0; i < n; i++)
        tni_str_add(&s, open);
    tni_str_add(&s, inner);
    for (int i = 0; i < n; i++)
        tni_str_add(&s, close);
    tni_str_add(&s, " x) -> ()");
    return tni_str_take(&s);
}

TEST(types_nest_to_a_limit_and_never_overflow_the_stack)
{
    static const struct {
        const char *open, *close;
    } ways[] = {{"(", ")"}, {"", "[]"}, {"Dict(str, ", ")"}, {"Future(", ")"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char *most = nested(ways[i].open, "int", ways[i].close, TNI_SCHEMA_MAX_DEPTH - 1);
        char *more = nested(ways[i].open, "int", ways[i].close, TNI_SCHEMA_MAX_DEPTH);
        char *huge = nested(ways[i].open, "int", ways[i].close, 3000);
        tni_schema_free(parse(most));
        refuse(more, "a type that nests deeper than 32 levels");
        refuse(huge, "a type that nests deeper than 32 levels");
        tni_free(most);
        tni_free(more);
        tni_free(huge);
    }
    char *open = nested("(", "", "", 60000);
    refuse(open, "a type that nests deeper than 32 levels");
    tni_free(open);
}

/* "f(int xxx) -> ()" with a name of @p n characters. */
static char *named(int n)
{
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, "f(int ");
    for (int i = 0; i < n; i++)
        tni_str_add(&s, "x");
    tni_str_add(&s, ") -> ()");
    return tni_str_take(&s);
}

TEST(long_names_sizes_and_texts_are_refused)
{
    char *most = named(255), *more = named(256), *huge = named(70000);
    tni_schema_free(parse(most));
    refuse(more, "a name of 256 characters, at most 255 allowed");
    refuse(huge, "is too long: at most 65536 characters");
    refuse("f(int[0] x) -> ()", "the size of a list is 0, not 1 to 256");
    refuse("f(int[257] x) -> ()", "the size of a list is 257, not 1 to 256");
    refuse("f(int[2.5] x) -> ()", "the size of a list is 2.5");
    tni_free(most);
    tni_free(more);
    tni_free(huge);
}

TEST(a_long_schema_is_quoted_around_the_mistake)
{
    char *text = many(64, 1);
    char *place = strstr(text, "int a50");
    ASSERT(place != NULL);
    memcpy(place, "itn", 3);
    tni_schema *schema = NULL;
    EXPECT_FAIL(TN_INVALID, "in schema '...", tni_schema_parse(text, &schema));
    EXPECT_CONTAINS(tn_last_error(), "...' at column");
    EXPECT_CONTAINS(tn_last_error(), "itn a50");
    EXPECT(strlen(tn_last_error()) < 700);
    tni_free(text);
}

TEST(parsing_leaks_nothing_whichever_allocation_fails)
{
    static const char text[] =
        "aten::f.out(Tensor(a! -> b|c) self, (int, Dict(str, t))[]? x, "
        "__torch__.torch.classes.a.B q, int[2] stride=[1, 2], str s=\"text\", "
        "float[] k=[1., 2.5], complex[] z=[1j], *, Tensor! out) -> (Tensor(a) one, Future(int) "
        "two, ...)";
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    tni_schema *s = NULL;
    char *name = NULL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_schema_parse_or_name(text, &s, &name);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !s && !name && tni_test_live == before);
    }
    tni_schema_free(s);
    tni_free(name);
    EXPECT(tni_test_live == before);
}
