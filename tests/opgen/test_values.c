/* SPDX-License-Identifier: MIT */
/* tests/opgen/test_values.c: which boxed values adaptors accept, and what they say about the
 * others. */
#include <stdio.h>
#include "fakes.h"
#include "core/tensor.h"
#include "dispatch/box.h"
#include "harness/test.h"

/* A frame without a dispatch: adaptors need the operator's names alone. */
static tn_call *frame(void)
{
    static tn_call made;
    if (!made.op)
        (void)!tn_op_find("my::everything", &made.op);
    return &made;
}

TEST(an_int_passes_for_a_float_and_for_a_scalar)
{
    tn_value v = tn_value_int(3);
    double f = 0;
    tn_opt_float of = tn_no_float();
    tn_scalar s = tn_float(0);
    ASSERT_OK(tni_unbox_float(frame(), &v, 0, &f));
    ASSERT_OK(tni_unbox_opt_float(frame(), &v, 0, &of));
    ASSERT_OK(tni_unbox_scalar(frame(), &v, 0, &s));
    EXPECT_NEAR(f, 3, 0);
    EXPECT(of.has && of.value > 2.5);
    EXPECT(s.kind == TN_SCALAR_INT && s.v.i == 3);
}

TEST(a_bool_passes_for_a_scalar_and_not_for_an_int_or_a_float)
{
    tn_value v = tn_value_bool(true);
    int64_t i = 0;
    double f = 0;
    tn_scalar s = tn_int(0);
    ASSERT_OK(tni_unbox_scalar(frame(), &v, 0, &s));
    EXPECT_EQ_INT(s.kind, TN_SCALAR_BOOL);
    EXPECT_FAIL(TN_TYPE, "must be int, not", tni_unbox_int(frame(), &v, 0, &i));
    EXPECT_FAIL(TN_TYPE, "must be float, not", tni_unbox_float(frame(), &v, 0, &f));
}

TEST(one_int_stands_for_a_sized_list_alone)
{
    tn_value v = tn_value_int(5);
    int64_t room[3] = {0}, n = 0;
    const int64_t *list = NULL;
    ASSERT_OK(tni_unbox_ints(frame(), &v, 0, room, 3, &list, &n));
    EXPECT(list == room && n == 3 && room[0] == 5 && room[2] == 5);
    ASSERT_OK(tni_unbox_opt_ints(frame(), &v, 0, room, 1, &list, &n));
    EXPECT_EQ_INT(n, 1);
    EXPECT_FAIL(TN_TYPE, "my::everything: argument 'a' must be int[], not",
                tni_unbox_ints(frame(), &v, 0, NULL, 0, &list, &n));
}

TEST(none_is_null_and_an_empty_list_is_not)
{
    tn_value none = tn_value_none(), empty = tn_value_ints(NULL, 0);
    const int64_t *list = &(int64_t){0};
    const double *floats = &(double){0};
    int64_t n = 9;
    ASSERT_OK(tni_unbox_opt_ints(frame(), &none, 0, NULL, 0, &list, &n));
    EXPECT(list == NULL && n == 0);
    ASSERT_OK(tni_unbox_opt_ints(frame(), &empty, 0, NULL, 0, &list, &n));
    EXPECT(list != NULL && n == 0);
    ASSERT_OK(tni_unbox_opt_floats(frame(), &none, 0, &floats, &n));
    EXPECT(floats == NULL);
    ASSERT_OK(tni_unbox_opt_floats(frame(), &empty, 0, &floats, &n));
    EXPECT(floats != NULL && n == 0);
}

TEST(an_empty_list_of_one_kind_is_an_empty_list_of_another)
{
    tn_value empty = tn_value_floats(NULL, 0);
    const int64_t *ints = NULL;
    const bool *bools = NULL;
    tn_tensor *const *tensors = NULL;
    int64_t n = 9;
    ASSERT_OK(tni_unbox_ints(frame(), &empty, 0, NULL, 0, &ints, &n));
    EXPECT_EQ_INT(n, 0);
    ASSERT_OK(tni_unbox_tensors(frame(), &empty, 0, &tensors, &n));
    ASSERT_OK(tni_unbox_opt_tensors(frame(), &empty, 0, &tensors, &n));
    ASSERT_OK(tni_unbox_bools(frame(), &empty, 0, &bools, &n));
    EXPECT_EQ_INT(n, 0);
}

TEST(none_passes_for_what_is_optional)
{
    tn_value none = tn_value_none();
    tn_tensor *t = (tn_tensor *)&frame;
    tn_opt_int i = tn_some_int(1);
    tn_opt_float f = tn_some_float(1);
    tn_opt_bool b = TN_BOOL_TRUE;
    tn_scalar room = tn_int(0);
    const tn_scalar *s = &room;
    const char *text = "x";
    tn_dtype dtype = TN_DTYPE_F32;
    tn_layout layout = TN_LAYOUT_STRIDED;
    tn_memory_format format = TN_FORMAT_PRESERVE;
    tn_device device = TN_CPU;
    tn_generator *generator = (tn_generator *)&frame;
    ASSERT_OK(tni_unbox_opt_tensor(frame(), &none, 0, &t));
    ASSERT_OK(tni_unbox_opt_int(frame(), &none, 0, &i));
    ASSERT_OK(tni_unbox_opt_float(frame(), &none, 0, &f));
    ASSERT_OK(tni_unbox_opt_bool(frame(), &none, 0, &b));
    ASSERT_OK(tni_unbox_opt_scalar(frame(), &none, 0, &room, &s));
    ASSERT_OK(tni_unbox_opt_string(frame(), &none, 0, &text));
    ASSERT_OK(tni_unbox_opt_dtype(frame(), &none, 0, &dtype));
    ASSERT_OK(tni_unbox_opt_layout(frame(), &none, 0, &layout));
    ASSERT_OK(tni_unbox_opt_format(frame(), &none, 0, &format));
    ASSERT_OK(tni_unbox_opt_device(frame(), &none, 0, &device));
    ASSERT_OK(tni_unbox_opt_generator(frame(), &none, 0, &generator));
    EXPECT(!t && !i.has && !f.has && b == TN_BOOL_NONE && !s && !text && !generator);
    EXPECT(dtype == TN_DTYPE_NONE && layout == TN_LAYOUT_NONE && format == TN_FORMAT_NONE);
    EXPECT_EQ_INT(device.type, TN_DEVICE_NONE);
}

TEST(a_tensor_argument_is_no_none_and_no_list_with_holes)
{
    tn_value none = tn_value_none(), null = {.tag = TN_TAG_TENSOR};
    tn_tensor *t = NULL, *const hole[] = {NULL};
    tn_value list = tn_value_tensors(hole, 1);
    tn_tensor *const *tensors = NULL;
    int64_t n = 0;
    EXPECT_FAIL(TN_TYPE, "my::everything: argument 'a' must be Tensor, not None",
                tni_unbox_tensor(frame(), &none, 0, &t));
    EXPECT_FAIL(TN_TYPE, "must be Tensor, not None", tni_unbox_tensor(frame(), &null, 0, &t));
    EXPECT_FAIL(TN_TYPE, "my::everything: element 0 of argument 'a' must be Tensor, not None",
                tni_unbox_tensors(frame(), &list, 0, &tensors, &n));
    ASSERT_OK(tni_unbox_opt_tensors(frame(), &list, 0, &tensors, &n));
    EXPECT_EQ_INT(n, 1);
}

TEST(numbers_that_name_no_dtype_layout_or_format_are_refused)
{
    static const int64_t wrong[] = {-1, 8, 16, INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    tn_dtype dtype;
    tn_layout layout;
    tn_memory_format format;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tn_value v = tn_value_int(wrong[i]);
        EXPECT_FAIL(TN_TYPE, "must be ScalarType, not the number",
                    tni_unbox_dtype(frame(), &v, 0, &dtype));
        EXPECT_FAIL(TN_TYPE, "must be Layout, not the number",
                    tni_unbox_layout(frame(), &v, 0, &layout));
        EXPECT_FAIL(TN_TYPE, "must be MemoryFormat?, not the number",
                    tni_unbox_opt_format(frame(), &v, 0, &format));
    }
}

TEST(a_value_of_another_kind_is_named_with_what_was_wanted)
{
    tn_value text = tn_value_string("hello"), number = tn_value_int(1);
    char message[160];
    tn_tensor *t;
    tn_opt_int oi;
    bool b;
    tn_opt_bool ob;
    tn_scalar s;
    const tn_scalar *os;
    tn_device d;
    tn_generator *g;
    const char *str;
    const double *floats;
    int64_t n;
    (void)snprintf(message, sizeof message, "my::everything: argument 'a' must be int?, not %s",
                   tn_tag_name(TN_TAG_STRING));
    EXPECT_FAIL(TN_TYPE, message, tni_unbox_opt_int(frame(), &text, 0, &oi));
    tn_value tensor = {.tag = TN_TAG_TENSOR, .u.tensor = (tn_tensor *)&frame};
    EXPECT_FAIL(TN_TYPE, "must be int?, not Tensor", tni_unbox_opt_int(frame(), &tensor, 0, &oi));
    EXPECT_FAIL(TN_TYPE, "must be Tensor?, not", tni_unbox_opt_tensor(frame(), &text, 0, &t));
    EXPECT_FAIL(TN_TYPE, "must be bool, not", tni_unbox_bool(frame(), &number, 0, &b));
    EXPECT_FAIL(TN_TYPE, "must be bool?, not", tni_unbox_opt_bool(frame(), &number, 0, &ob));
    EXPECT_FAIL(TN_TYPE, "must be Scalar, not", tni_unbox_scalar(frame(), &text, 0, &s));
    EXPECT_FAIL(TN_TYPE, "must be Scalar?, not", tni_unbox_opt_scalar(frame(), &text, 0, &s, &os));
    EXPECT_FAIL(TN_TYPE, "must be Device, not", tni_unbox_device(frame(), &text, 0, &d));
    EXPECT_FAIL(TN_TYPE, "must be Device?, not", tni_unbox_opt_device(frame(), &text, 0, &d));
    EXPECT_FAIL(TN_TYPE, "must be Generator?, not", tni_unbox_opt_generator(frame(), &text, 0, &g));
    EXPECT_FAIL(TN_TYPE, "must be str, not", tni_unbox_string(frame(), &number, 0, &str));
    EXPECT_FAIL(TN_TYPE, "must be str?, not", tni_unbox_opt_string(frame(), &number, 0, &str));
    EXPECT_FAIL(TN_TYPE, "must be float[], not",
                tni_unbox_floats(frame(), &number, 0, &floats, &n));
}

TEST(options_name_the_one_that_is_wrong)
{
    tn_value four[4] = {tn_value_int(TN_DTYPE_F64), tn_value_none(), tn_value_device(TN_META),
                        tn_value_bool(true)};
    tn_tensor_opts room;
    const tn_tensor_opts *opts = NULL;
    ASSERT_OK(tni_unbox_opts(frame(), four, 0, &room, &opts));
    ASSERT(opts == &room);
    EXPECT(room.size == sizeof room && room.dtype == TN_DTYPE_F64 && room.layout == TN_LAYOUT_NONE);
    EXPECT(room.device.type == TN_DEVICE_META && room.pin_memory == TN_BOOL_TRUE);
    four[2] = tn_value_string("meta");
    EXPECT_FAIL(TN_TYPE, "must be Device?", tni_unbox_opts(frame(), four, 0, &room, &opts));
}

TEST(making_an_array_of_a_list_leaks_nothing_whichever_allocation_fails)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(0, NULL, NULL, TN_DTYPE_F32, TN_CPU, &t));
    tn_value borrowed[] = {tn_value_tensor(t)};
    tn_value list = {.tag = TN_TAG_LIST, .count = 1, .u.values = borrowed};
    long live = tni_test_live;
    tn_status rc = TN_OK;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_value rets[2] = {tn_value_none(), tn_value_take_tensor(tn_tensor_ref(t))};
        rc = tn_value_copy(&list, &rets[0]);
        if (rc == TN_OK)
            rc = tni_settle_list(rets, 2, 0);
        if (rc == TN_OK)
            EXPECT(rets[0].tag == TN_TAG_TENSOR_LIST && rets[0].u.tensors[0] == t);
        tn_value_clear(&rets[0]);
        tn_value_clear(&rets[1]);
        EXPECT_EQ_INT(tn_tensor_use_count(t), 1);
        EXPECT_EQ_INT(tni_test_live, live);
    }
    tn_tensor_unref(t);
}
