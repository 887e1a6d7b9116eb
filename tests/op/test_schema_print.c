/* SPDX-License-Identifier: MIT */
/* tests/op/test_schema_print.c: schemas print in the reference's canonical form, and what is
 * printed reads back as an equal schema. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/str.h"
#include "harness/test.h"
#include "op/equal.h"
#include "op/number.h"
#include "op/schema.h"

/* Parse, print, compare with @p wanted, parse again, compare the two. */
static void prints(const char *text, const char *wanted)
{
    TN_AUTO(tni_schema) schema = NULL;
    TN_AUTO(tni_schema) again = NULL;
    char *printed = NULL;
    test_note("%s", text);
    ASSERT_OK(tni_schema_parse(text, &schema));
    ASSERT_OK(tni_schema_print(schema, &printed));
    EXPECT_STR(printed, wanted);
    ASSERT_OK(tni_schema_parse(printed, &again));
    EXPECT(equal_schema(schema, again));
    tni_free(printed);
}

static void prints_itself(const char *text)
{
    prints(text, text);
}

TEST(canonical_schemas_print_as_they_are)
{
    prints_itself("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
    prints_itself("f(Tensor(a!) self) -> Tensor(a!)");
    prints_itself("f(Tensor(a)[] x) -> Tensor(a)");
    prints_itself("f(Tensor(a)[](b!)? x, Tensor(c! -> d|e)[2](f)? y) -> ()");
    prints_itself("f(int[2] stride=1, int[3]? x=None) -> (Tensor a, Tensor b)");
    prints_itself("f(Tensor(a) x) -> Tensor(a) y");
    prints_itself("f() -> ()");
    prints_itself("f() -> ((int, int))");
    prints_itself("f() -> ((str, int)[])");
    prints_itself("f((int, int)? x) -> (int, int)");
    prints_itself("f(int x, *, int y, ...) -> (int, ...)");
    prints_itself("f(...) -> ...");
    prints_itself("f(int?[]? x) -> int[3]");
    prints_itself("aten::as_tensor(Tensor(a) data) -> Tensor(b|a)");
}

TEST(loose_texts_print_canonically)
{
    prints(" f ( int x=- 5 , * , Tensor(a  !->b) y )->( )",
           "f(int x=-5, *, Tensor(a! -> b) y) -> ()");
    prints("f() -> (int)", "f() -> int");
    prints("f(int??[] x) -> ()", "f(int?[] x) -> ()");
    prints("f(int x, *) -> ()", "f(int x) -> ()");
    prints("f(Dimname x) -> None", "f(str x) -> NoneType");
    prints("f(Tensor(a|*) x) -> ()", "f(Tensor(*) x) -> ()");
    prints("f(Tensor(a -> a) x) -> ()", "f(Tensor(a) x) -> ()");
}

TEST(defaults_print_as_the_reference_prints_them)
{
    prints("f(float x=1) -> ()", "f(float x=1.) -> ()");
    prints("f(float x=1e-5) -> ()", "f(float x=1.0000000000000001e-05) -> ()");
    prints("f(float x=.1) -> ()", "f(float x=0.10000000000000001) -> ()");
    prints("f(float x=1e17, float y=1e20) -> ()",
           "f(float x=100000000000000000., float y=1e+20) -> ()");
    prints("f(float? x=1) -> ()", "f(float? x=1) -> ()");
    prints("f(Scalar x=2.5e3) -> ()", "f(Scalar x=2500.) -> ()");
    prints("f(int[2] x=[1,1]) -> ()", "f(int[2] x=1) -> ()");
    prints("f(int[1] x=1) -> ()", "f(int[1] x=[1]) -> ()");
    prints("f(SymInt[2] x=1) -> ()", "f(SymInt[2] x=[1, 1]) -> ()");
    prints("f(float[2] x=1) -> ()", "f(float[2] x=[1., 1.]) -> ()");
    prints("f(bool[2] x=True) -> ()", "f(bool[2] x=[True, True]) -> ()");
    prints("f(int[2]? x=1) -> ()", "f(int[2]? x=1) -> ()");
    prints("f(ScalarType x=float32) -> ()", "f(ScalarType x=6) -> ()");
    prints("f(int x=Mean) -> ()", "f(int x=1) -> ()");
    prints("f(str x='a\\'\"\\n\\a\\\\') -> ()", "f(str x=\"a\\'\\\"\\n\\a\\\\\") -> ()");
}

TEST(defaults_that_the_reference_cannot_read_back_print_so_that_we_can)
{
    prints("f(Device d='cuda:1') -> ()", "f(Device d=\"cuda:1\") -> ()");
    prints("f(int[] x=[1,1]) -> ()", "f(int[] x=[1, 1]) -> ()");
    prints("f(int[3] x=[1,1]) -> ()", "f(int[3] x=[1, 1]) -> ()");
    prints("f(complex x=2, complex y=2j, complex z=0) -> ()",
           "f(complex x=2., complex y=2.j, complex z=0.j) -> ()");
    prints("f(complex[2] x=[1., -0.]) -> ()", "f(complex[2] x=[1., -0.]) -> ()");
    prints("f(float x=-0., Scalar y=-0j) -> ()", "f(float x=-0., Scalar y=-0.j) -> ()");
    prints("f(str x='\xc3\xa9\x01') -> ()", "f(str x=\"\\303\\251\\001\") -> ()");
    prints("f(Tensor! x, Tensor! y) -> ()", "f(Tensor! x, Tensor! y) -> ()");
    prints("f((Tensor(a!), int) x) -> ()", "f((Tensor(a!), int) x) -> ()");
}

TEST(numbers_read_and_write_in_every_locale)
{
    double value;
    char buffer[TNI_NUMBER_TEXT];
    const char *const names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!setlocale(LC_NUMERIC, names[i]))
            continue;
        EXPECT(tni_number_double("1.5", 3, &value) && value == 1.5);
        EXPECT_STR(tni_number_format(0.1, buffer), "0.10000000000000001");
        setlocale(LC_NUMERIC, "C");
    }
}

TEST(a_double_survives_its_text)
{
    char buffer[TNI_NUMBER_TEXT];
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = test_random();
        double value, back = 0;
        memcpy(&value, &bits, sizeof value);
        if (i % 4 == 0) /* whole numbers, where the format changes */
            value = (double)(int64_t)(bits >> (bits & 63));
        if (!isfinite(value))
            continue;
        tni_number_format(fabs(value), buffer);
        test_note("%s", buffer);
        ASSERT(tni_number_double(buffer, strlen(buffer), &back));
        value = fabs(value);
        ASSERT(memcmp(&value, &back, sizeof value) == 0);
        ASSERT(strpbrk(buffer, ".e") != NULL);
    }
    EXPECT(!tni_number_double("inf", 3, &(double){0}));
    EXPECT(!tni_number_double("0x10", 4, &(double){0}));
    EXPECT(!tni_number_double("1e400", 5, &(double){0}));
    EXPECT(!tni_number_double("1 ", 2, &(double){0}));
}

static FILE *open_schemas(void)
{
    const char *root = getenv("TENON_SOURCE_DIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/op/schemas.txt", root ? root : ".");
    return fopen(path, "r");
}

TEST(schemas_of_the_reference_print_as_the_reference_prints_them)
{
    FILE *file = open_schemas();
    char line[2048];
    int n = 0;
    ASSERT(file != NULL);
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (line[0] == '#')
            continue;
        prints_itself(line);
        n++;
    }
    fclose(file);
    EXPECT(n > 200);
}

/* ---- random schemas ---- */

static unsigned below(unsigned n)
{
    return (unsigned)(test_random() % n);
}

static const char *pick(const char *const *words, unsigned n)
{
    return words[below(n)];
}
#define PICK(...)                            \
    pick((const char *const[]){__VA_ARGS__}, \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void random_alias(tni_str *s)
{
    static const char *const forms[] = {"(a)", "(a!)", "(a -> *)", "(b|a! -> c)", "(*)", "!"};
    if (below(4) == 0)
        tni_str_add(s, forms[below(6)]);
}

static void random_type(tni_str *s, int depth)
{
    switch (depth < 4 ? below(12) : 11) {
    case 0:
        tni_str_add(s, "(");
        for (unsigned i = 0, n = 1 + below(3); i < n; i++) {
            tni_str_add(s, i ? ", " : "");
            random_type(s, depth + 1);
        }
        tni_str_add(s, ")");
        break;
    case 1:
        tni_str_add(s, PICK("Future(", "Await(", "RRef("));
        random_type(s, depth + 1);
        tni_str_add(s, ")");
        break;
    case 2:
        tni_str_add(s, PICK("Dict(", "Union("));
        random_type(s, depth + 1);
        tni_str_add(s, ",");
        random_type(s, depth + 1);
        tni_str_add(s, ")");
        random_alias(s);
        break;
    case 3:
        tni_str_add(s, "__torch__.torch.classes.a.B");
        break;
    default:
        tni_str_add(s, PICK("Tensor", "Tensor", "Tensor", "int", "SymInt", "float", "bool",
                            "Scalar", "ScalarType", "str", "Device", "Layout", "MemoryFormat",
                            "Generator", "complex", "SymBool", "None", "NoneType", "Dimname", "Any",
                            "Storage", "Stream", "QScheme", "t", "tVal"));
        random_alias(s);
    }
    while (below(3) == 0) {
        bool optional = below(2);
        tni_str_add(s, optional ? "?" : "[]");
        if (!optional)
            random_alias(s);
    }
}

/* An argument with a default value, "TYPE x=VALUE", ready made: which values fit is the type's
 * business. */
static const char *random_default(void)
{
    return PICK("int %s=-1", "float %s=1e-5", "float %s=1e300", "Scalar %s=1", "Scalar %s=1.5",
                "Scalar %s=2j", "Scalar %s=True", "bool %s=False", "str %s='a\\n\"\\xff'",
                "str? %s=None", "Tensor? %s=None", "Tensor(a!)? %s=None", "int[2] %s=1",
                "int[2] %s=[1, 1]", "int[2] %s=[1, 2]", "int[1] %s=4", "SymInt[3] %s=0",
                "SymInt[] %s=[]", "int[] %s=[3, 3]", "float[2] %s=[-0., 0.]", "float[2] %s=.5",
                "bool[3] %s=[True, False, True]", "bool[3] %s=True", "complex[2] %s=[1j, 1]",
                "complex %s=-3", "ScalarType %s=long", "ScalarType? %s=half", "Device %s='cuda:7'",
                "Device? %s='meta'", "Layout %s=strided", "MemoryFormat? %s=contiguous_format",
                "int[2]? %s=None", "int[2]? %s=7", "Generator? %s=None", "Any %s=1", "int %s=Mean");
}

static void random_schema(tni_str *s)
{
    char name[16];
    bool keyword_only = false, defaults = false;
    tni_str_add(s, PICK("aten::f", "prim::f", "aten::f.out", "prim::_f_.Tensor"));
    tni_str_add(s, "(");
    for (unsigned i = 0, n = below(6); i < n; i++) {
        tni_str_add(s, i ? ", " : "");
        if (!keyword_only && below(4) == 0) {
            tni_str_add(s, "*, ");
            keyword_only = true;
        }
        snprintf(name, sizeof name, "x%u", i);
        if (below(2) || (defaults && !keyword_only)) {
            const char *form = random_default(), *mark = strstr(form, "%s");
            tni_str_addn(s, form, (size_t)(mark - form));
            tni_str_add(s, name);
            tni_str_add(s, mark + 2);
            defaults = true;
            continue;
        }
        random_type(s, 0);
        if (below(6) == 0)
            tni_str_add(s, PICK("[2]", "[1](a)", "[256]?", "[3](b!)?"));
        tni_str_addf(s, " %s", name);
    }
    tni_str_add(s, ") -> (");
    for (unsigned i = 0, n = below(4); i < n; i++) {
        tni_str_add(s, i ? ", " : "");
        random_type(s, 0);
        if (below(3) == 0)
            tni_str_addf(s, " r%u", i);
    }
    tni_str_add(s, ")");
}

TEST(every_schema_that_parses_prints_to_an_equal_one)
{
    for (int i = 0; i < 3000; i++) {
        tni_str s = TNI_STR_INIT;
        TN_AUTO(tni_schema) first = NULL;
        TN_AUTO(tni_schema) second = NULL;
        char *printed = NULL, *again = NULL;
        random_schema(&s);
        test_note("%s", tni_str_get(&s));
        ASSERT_OK(tni_schema_parse(tni_str_get(&s), &first));
        ASSERT_OK(tni_schema_print(first, &printed));
        ASSERT_OK(tni_schema_parse(printed, &second));
        EXPECT(equal_schema(first, second));
        ASSERT_OK(tni_schema_print(second, &again));
        EXPECT_STR(again, printed);
        tni_free(printed);
        tni_free(again);
        tni_str_clear(&s);
    }
}

TEST(a_signature_is_the_types_alone)
{
    TN_AUTO(tni_schema) s = NULL;
    char *text = NULL;
    ASSERT_OK(tni_schema_parse("f(Tensor(a!) self, int[2] stride=1, *, Tensor(b)[]? x=None) -> "
                               "(Tensor(a!) y, (int, str))",
                               &s));
    ASSERT_OK(tni_schema_signature(s, &text));
    EXPECT_STR(text, "(Tensor, int[], Tensor[]?) -> (Tensor, (int, str))");
    EXPECT_OK(tni_signature_check(s, text));
    tni_free(text);
}

TEST(printing_leaks_nothing_whichever_allocation_fails)
{
    TN_AUTO(tni_schema) s = NULL;
    ASSERT_OK(tni_schema_parse("aten::some_long_name.overload(Tensor(a!) self, int[2] stride=1, "
                               "float eps=1e-5, str mode='nearest', SymInt[3] pad=0) -> "
                               "(Tensor(a!) one, Tensor two)",
                               &s));
    tn_status rc = TN_INTERNAL;
    char *text = NULL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_schema_print(s, &text);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !text && tni_test_live == before);
    }
    tni_free(text);
    text = NULL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tni_schema_signature(s, &text);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !text && tni_test_live == before);
    }
    tni_free(text);
    EXPECT(tni_test_live == before);
}
