/* SPDX-License-Identifier: MIT */
/* tests/core/test_value.c: boxed values and the stack. */
#include "harness/test.h"

#include "core/tensor.h"

#include <string.h>

static tn_tensor *make(void)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(0, NULL, NULL, TN_DTYPE_F32, TN_CPU, &t));
    return t;
}

TEST(constructors_borrow)
{
    tn_tensor *t = make();
    tn_value v = tn_value_tensor(t);
    EXPECT(v.tag == TN_TAG_TENSOR && v.flags == 0 && v.u.tensor == t);
    EXPECT_EQ_INT(tn_tensor_use_count(t), 1);
    tn_value_clear(&v); /* borrowed: nothing is released */
    EXPECT(v.tag == TN_TAG_NONE && tn_tensor_use_count(t) == 1);
    tn_value_clear(NULL);

    EXPECT(tn_value_none().tag == TN_TAG_NONE);
    EXPECT(tn_value_int(-5).u.i == -5 && tn_value_float(0.5).u.f == 0.5);
    EXPECT(tn_value_bool(true).tag == TN_TAG_BOOL && tn_value_bool(true).u.i == 1);
    v = tn_value_scalar(tn_complex(1, 2));
    EXPECT(v.tag == TN_TAG_COMPLEX && v.u.z.re == 1 && v.u.z.im == 2);
    EXPECT(tn_value_scalar(tn_bool(true)).tag == TN_TAG_BOOL);
    EXPECT(tn_value_scalar((tn_scalar){.kind = 9}).tag == TN_TAG_NONE);
    EXPECT(tn_value_device(TN_META).u.device.type == TN_DEVICE_META);
    v = tn_value_string("sum");
    EXPECT(v.tag == TN_TAG_STRING && v.count == 3);
    EXPECT(tn_value_string(NULL).tag == TN_TAG_NONE);
    int64_t ints[] = {1, 2};
    EXPECT(tn_value_ints(ints, 2).u.ints == ints && tn_value_ints(ints, -1).count == 0);
    EXPECT(tn_value_ints(ints, INT64_MAX).count == UINT32_MAX);
    tn_tensor_unref(t);
}

TEST(a_scalar_comes_back_from_a_value)
{
    static const tn_scalar scalars[] = {
        {TN_SCALAR_INT, 0, {.i = 3}, 0},
        {TN_SCALAR_FLOAT, 0, {.f = 2.5}, 0},
        {TN_SCALAR_BOOL, 0, {.i = 1}, 0},
        {TN_SCALAR_COMPLEX, 0, {.f = 1}, -1},
    };
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        tn_value v = tn_value_scalar(scalars[i]);
        tn_scalar s;
        ASSERT_OK(tn_value_to_scalar(&v, &s));
        EXPECT(s.kind == scalars[i].kind && s.v.i == scalars[i].v.i && s.imag == scalars[i].imag);
    }
    tn_value text = tn_value_string("1");
    tn_scalar s = tn_int(7);
    EXPECT_FAIL(TN_TYPE, "expected a number (int, float, bool or complex), got str",
                tn_value_to_scalar(&text, &s));
    EXPECT_FAIL(TN_INVALID, "value is NULL", tn_value_to_scalar(NULL, &s));
    EXPECT_EQ_INT(s.v.i, 7);
}

TEST(every_tag_has_a_name)
{
    for (int i = 0; i <= TN_TAG_POINTER; i++)
        EXPECT(tn_tag_name((tn_tag)i) != NULL && strcmp(tn_tag_name((tn_tag)i), "unknown") != 0);
    EXPECT_STR(tn_tag_name(TN_TAG_TENSOR_LIST), "Tensor[]");
    EXPECT_STR(tn_tag_name((tn_tag)99), "unknown");
}

TEST(a_copy_is_deep_and_leaks_nothing_whichever_allocation_fails)
{
    tn_tensor *t = make();
    tn_tensor *tensors[] = {t, NULL, t};
    const double floats[] = {0.5, 1.5};
    const bool bools[] = {true, false, true};
    const int64_t ints[] = {4, 5};
    tn_generator *g = NULL;
    ASSERT_OK(tn_generator_new(1, &g));
    tn_value pair[] = {tn_value_string("key"), tn_value_ints(ints, 2)};
    tn_value parts[] = {
        tn_value_tensors(tensors, 3),
        tn_value_floats(floats, 2),
        tn_value_bools(bools, 3),
        tn_value_generator(g),
        tn_value_tensor(t),
        tn_value_tensor(NULL),
        {.tag = TN_TAG_DICT, .count = 1, .u.values = pair},
        {.tag = TN_TAG_POINTER, .u.pointer = pair},
        tn_value_ints(NULL, 0),
        tn_value_float(1),
    };
    tn_value list = {.tag = TN_TAG_LIST, .count = sizeof parts / sizeof *parts, .u.values = parts};
    tn_value copy = tn_value_none();
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_value_copy(&list, &copy);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && copy.tag == TN_TAG_NONE && tni_test_live == before &&
                   tn_tensor_use_count(t) == 1);
    }
    EXPECT(copy.flags & TN_VALUE_OWNED);
    EXPECT_EQ_INT(tn_tensor_use_count(t), 4);
    const tn_value *in = copy.u.values;
    EXPECT(in[0].u.tensors != tensors && in[0].u.tensors[1] == NULL && in[0].u.tensors[2] == t);
    EXPECT(in[1].u.floats[1] == 1.5 && in[2].u.bools[2] && in[3].u.generator == g);
    EXPECT_STR(in[6].u.values[0].u.text, "key");
    EXPECT(in[6].u.values[1].u.ints[1] == 5 && in[6].u.values[1].u.ints != ints);
    EXPECT(in[7].u.pointer == pair);
    tn_value again = tn_value_none();
    ASSERT_OK(tn_value_copy(&copy, &again));
    tn_value_clear(&copy);
    EXPECT_EQ_INT(tn_tensor_use_count(t), 4);
    tn_value_clear(&again);
    EXPECT_EQ_INT(tn_tensor_use_count(t), 1);
    EXPECT_EQ_INT(tni_test_live, before);
    tn_generator_unref(g);
    tn_tensor_unref(t);
}

TEST(a_text_is_copied_to_its_count)
{
    tn_value part = {.tag = TN_TAG_STRING, .count = 3, .u.text = "meanwhile"}, copy;
    ASSERT_OK(tn_value_copy(&part, &copy));
    EXPECT_STR(copy.u.text, "mea");
    tn_value_clear(&copy);
}

TEST(hostile_values_are_refused)
{
    tn_value out = tn_value_int(7), self, bad = {.tag = 200};
    self = (tn_value){.tag = TN_TAG_LIST, .count = 1, .u.values = &self}; /* contains itself */
    EXPECT_FAIL(TN_RECURSION, "nested more than", tn_value_copy(&self, &out));
    EXPECT_FAIL(TN_INVALID, "200 is not the tag of a value", tn_value_copy(&bad, &out));
    tn_value holes = tn_value_ints(NULL, 3);
    EXPECT_FAIL(TN_INVALID, "a list of 3 elements has a NULL array", tn_value_copy(&holes, &out));
    EXPECT_FAIL(TN_INVALID, "from is NULL", tn_value_copy(NULL, &out));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_value_copy(&holes, NULL));
    EXPECT(out.tag == TN_TAG_INT && out.u.i == 7);
}

TEST(taking_a_tensor_or_a_list_owns_it)
{
    int64_t before = tni_test_live;
    tn_value v = tn_value_take_tensor(make());
    tn_value_clear(&v);
    tn_tensor **list = tni_alloc(2 * sizeof *list);
    list[0] = make();
    list[1] = make();
    v = tn_value_take_tensors(list, 2);
    EXPECT(v.count == 2 && (v.flags & TN_VALUE_OWNED));
    tn_value_clear(&v);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(a_stack_owns_what_is_pushed_and_gives_it_back_in_reverse)
{
    tn_tensor *t = make();
    tn_stack stack = TN_STACK_INIT;
    int64_t before = tni_test_live;
    tn_status rc = TN_INTERNAL;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = TN_OK;
        for (int i = 0; rc == TN_OK && i < 20; i++)
            rc = i % 2 ? tn_stack_push(&stack, tn_value_take_tensor(tn_tensor_ref(t)))
                       : tn_stack_push(&stack, tn_value_string("text"));
        if (rc != TN_OK) {
            EXPECT_EQ_INT(rc, TN_NOMEM);
            tn_stack_clear(&stack);
            EXPECT(tni_test_live == before && tn_tensor_use_count(t) == 1);
        }
    }
    EXPECT_EQ_INT(stack.n, 20);
    EXPECT_EQ_INT(tn_tensor_use_count(t), 11);
    tn_value top = tn_stack_pop(&stack);
    EXPECT(top.u.tensor == t && (top.flags & TN_VALUE_OWNED));
    tn_value_clear(&top);
    tn_stack_drop(&stack, 2);
    EXPECT(stack.n == 17 && tn_tensor_use_count(t) == 9);
    tn_stack_drop(&stack, 1000);
    EXPECT(stack.n == 0 && tn_stack_pop(&stack).tag == TN_TAG_NONE);
    tn_stack_clear(&stack);
    EXPECT(stack.values == NULL && stack.capacity == 0);
    EXPECT_EQ_INT(tni_test_live, before);
    EXPECT_FAIL(TN_INVALID, "stack is NULL",
                tn_stack_push(NULL, tn_value_take_tensor(tn_tensor_ref(t))));
    EXPECT_EQ_INT(tn_tensor_use_count(t), 1); /* taken, also when it fails */
    tn_stack_clear(NULL);
    tn_stack_drop(NULL, 1);
    EXPECT(tn_stack_pop(NULL).tag == TN_TAG_NONE);
    tn_tensor_unref(t);
}
