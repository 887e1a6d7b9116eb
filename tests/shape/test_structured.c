/* SPDX-License-Identifier: MIT */
/* tests/shape/test_structured.c: what shape/structured.h promises about given results. */
#include <string.h>
#include "harness/test.h"
#include "shape/structured.h"
#include "tenon/ops.h"

static tn_tensor *make(int ndim, const int64_t *sizes, tn_dtype dtype, tn_device device)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(ndim, sizes, NULL, dtype, device, &t));
    return t;
}

static tn_tensor *view(tn_tensor *base, int ndim, const int64_t *sizes, const int64_t *strides,
                       int64_t offset)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_alias(base, ndim, sizes, strides, offset, &t));
    return t;
}

static tni_geometry matrix(int64_t rows, int64_t columns)
{
    tni_geometry g;
    memset(&g, 0x55, sizeof g); /* only what is set may be read */
    g.ndim = 2;
    g.dtype = TN_DTYPE_F32;
    g.device = TN_CPU;
    g.has_strides = false;
    g.offset = 0;
    g.sizes[0] = rows;
    g.sizes[1] = columns;
    return g;
}

TEST(an_out_of_the_right_sizes_is_used_with_its_own_strides)
{
    tni_geometry g = matrix(2, 3);
    TN_AUTO(tn_tensor) base = make(2, (int64_t[]){3, 2}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) out = view(base, 2, (int64_t[]){2, 3}, (int64_t[]){1, 2}, 0);
    TN_AUTO(tn_tensor) target = NULL;
    ASSERT_OK(tni_out_prepare("mm", &g, out, NULL, 0, &target));
    EXPECT(!target);
    EXPECT_EQ_INT(out->strides[0], 1);
    EXPECT_OK(tni_out_finish(out, target));
}

TEST(an_out_of_other_sizes_is_resized)
{
    tni_geometry g = matrix(2, 3);
    TN_AUTO(tn_tensor) empty = make(1, (int64_t[]){0}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) large = make(1, (int64_t[]){50}, TN_DTYPE_F32, TN_CPU);
    tn_tensor *outs[] = {empty, large};
    for (int i = 0; i < 2; i++) {
        TN_AUTO(tn_tensor) target = NULL;
        ASSERT_OK(tni_out_prepare("mm", &g, outs[i], NULL, 0, &target));
        EXPECT(!target && outs[i]->ndim == 2 && outs[i]->sizes[0] == 2 && outs[i]->sizes[1] == 3 &&
               (outs[i]->flags & TNI_CONTIGUOUS) && outs[i]->data);
    }
}

TEST(a_refused_out_is_as_it_was)
{
    tni_geometry g = matrix(2, 3);
    TN_AUTO(tn_tensor) wrong = make(1, (int64_t[]){5}, TN_DTYPE_F64, TN_CPU);
    TN_AUTO(tn_tensor) meta = make(1, (int64_t[]){5}, TN_DTYPE_F32, TN_META);
    tn_tensor *target = NULL;
    EXPECT_FAIL(TN_INVALID, "Expected out tensor to have dtype float, but got double instead",
                tni_out_prepare("mm", &g, wrong, NULL, 0, &target));
    EXPECT_FAIL(TN_INVALID, "Expected out tensor to have device cpu, but got meta instead",
                tni_out_prepare("mm", &g, meta, NULL, 0, &target));
    EXPECT(wrong->ndim == 1 && wrong->sizes[0] == 5 && meta->sizes[0] == 5 && !target);
}

TEST(a_result_that_is_cast_is_computed_beside_an_out_of_another_dtype)
{
    tni_geometry g = matrix(2, 3);
    TN_AUTO(tn_tensor) same = make(1, (int64_t[]){0}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) wide = make(1, (int64_t[]){5}, TN_DTYPE_F64, TN_CPU);
    TN_AUTO(tn_tensor) meta = make(1, (int64_t[]){5}, TN_DTYPE_F64, TN_META);
    TN_AUTO(tn_tensor) whole = make(1, (int64_t[]){5}, TN_DTYPE_I64, TN_CPU);
    TN_AUTO(tn_tensor) first = NULL;
    TN_AUTO(tn_tensor) beside = NULL;
    TN_AUTO(tn_tensor) nowhere = NULL;
    tn_tensor *none = NULL;
    ASSERT_OK(tni_out_prepare_cast("max", &g, same, NULL, 0, &first));
    EXPECT(!first && same->ndim == 2);
    ASSERT_OK(tni_out_prepare_cast("max", &g, wide, NULL, 0, &beside));
    EXPECT(beside && beside != wide && beside->dtype == TN_DTYPE_F32 && wide->ndim == 1);
    for (int i = 0; i < 6; i++)
        ((float *)beside->data)[i] = (float)i + 0.5f;
    ASSERT_OK(tni_out_finish(wide, beside));
    EXPECT(wide->ndim == 2 && wide->dtype == TN_DTYPE_F64 && ((double *)wide->data)[5] == 5.5);
    g.device = TN_META;
    ASSERT_OK(tni_out_prepare_cast("max", &g, meta, NULL, 0, &nowhere));
    EXPECT(!nowhere && meta->ndim == 2 && meta->dtype == TN_DTYPE_F64);
    g.device = TN_CPU;
    EXPECT_FAIL(TN_INVALID, "result type Float can't be cast to the desired output type Long",
                tni_out_prepare_cast("max", &g, whole, NULL, 0, &none));
    EXPECT(whole->ndim == 1 && !none);
}

TEST(an_out_of_another_dtype_is_refused_in_the_words_of_the_operator)
{
    TN_AUTO(tn_tensor) same = make(1, (int64_t[]){2}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) wide = make(1, (int64_t[]){2}, TN_DTYPE_F64, TN_CPU);
    TN_AUTO(tn_tensor) whole = make(1, (int64_t[]){2}, TN_DTYPE_I64, TN_CPU);
    ASSERT_OK(tni_check_exact(TN_DTYPE_F32, same, "no"));
    ASSERT_OK(tni_check_exact(TN_DTYPE_F32, NULL, "no"));
    ASSERT_OK(tni_check_float(TN_DTYPE_F32, wide, "no"));
    EXPECT_FAIL(TN_INVALID, "not Long", tni_check_float(TN_DTYPE_F32, whole, "not %g"));
    ASSERT_OK(tni_check_safe(TN_INVALID, TN_DTYPE_F32, wide, "no"));
    EXPECT_FAIL(TN_INVALID, "f: Double (double) is not Float (float)",
                tni_check_exact(TN_DTYPE_F32, wide, "f: %g (%G) is not %w (%W)"));
    EXPECT_FAIL(TN_TYPE, "Long 5%", tni_check_safe(TN_TYPE, TN_DTYPE_F32, whole, "%g 5%"));
}

TEST(an_out_that_repeats_elements_is_refused)
{
    tni_geometry g = matrix(2, 3);
    TN_AUTO(tn_tensor) base = make(1, (int64_t[]){3}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) out = view(base, 2, (int64_t[]){2, 3}, (int64_t[]){0, 1}, 0);
    tn_tensor *target = NULL;
    EXPECT_FAIL(TN_INVALID,
                "more than one element of the written-to tensor refers to a single memory location",
                tni_out_prepare("mm", &g, out, NULL, 0, &target));
    EXPECT_FAIL(TN_INVALID,
                "more than one element of the written-to tensor refers to a single memory location",
                tni_inplace_prepare("addmm", &g, out, NULL, 0, &target));
    EXPECT(!target);
}

TEST(an_out_whose_dimensions_meet_is_refused_and_one_that_interleaves_is_not)
{
    tni_geometry g = matrix(3, 3);
    TN_AUTO(tn_tensor) base = make(1, (int64_t[]){40}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) meets = view(base, 2, (int64_t[]){3, 3}, (int64_t[]){2, 1}, 0);
    TN_AUTO(tn_tensor) interleaves = view(base, 2, (int64_t[]){3, 3}, (int64_t[]){4, 3}, 0);
    TN_AUTO(tn_tensor) target = NULL;
    EXPECT_FAIL(TN_INVALID, "more than one element of the written-to tensor",
                tni_out_prepare("mm", &g, meets, NULL, 0, &target));
    ASSERT_OK(tni_out_prepare("mm", &g, interleaves, NULL, 0, &target));
    EXPECT(!target);
}

TEST(memory_shared_through_two_storages_counts_too)
{
    float memory[8] = {0};
    const int64_t sizes[] = {2, 2};
    tni_geometry g = matrix(2, 2);
    tn_tensor *out = NULL, *input = NULL, *target = NULL;
    ASSERT_OK(tn_tensor_from_blob(memory, 2, sizes, NULL, TN_DTYPE_F32, NULL, NULL, &out));
    ASSERT_OK(tn_tensor_from_blob(memory + 3, 2, sizes, NULL, TN_DTYPE_F32, NULL, NULL, &input));
    ASSERT_OK(tni_out_prepare("mm", &g, out, &input, 1, &target));
    EXPECT(target && target != out);
    tn_tensor_unref(target);
    tn_tensor_unref(input);
    tn_tensor_unref(out);
}

TEST(a_result_that_shares_memory_with_an_input_is_computed_beside_it)
{
    tni_geometry g = matrix(2, 3);
    TN_AUTO(tn_tensor) base = make(1, (int64_t[]){12}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) out = view(base, 2, (int64_t[]){2, 3}, (int64_t[]){3, 1}, 0);
    TN_AUTO(tn_tensor) near = view(base, 2, (int64_t[]){2, 3}, (int64_t[]){3, 1}, 5);
    TN_AUTO(tn_tensor) far = view(base, 2, (int64_t[]){2, 3}, (int64_t[]){3, 1}, 6);
    float *data = base->data;
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;

    TN_AUTO(tn_tensor) apart = NULL;
    ASSERT_OK(tni_out_prepare("mm", &g, out, (tn_tensor *[]){far, NULL}, 2, &apart));
    EXPECT(!apart);

    TN_AUTO(tn_tensor) target = NULL;
    ASSERT_OK(tni_out_prepare("mm", &g, out, (tn_tensor *[]){far, near}, 2, &target));
    EXPECT(target && target != out && target->storage != out->storage);
    for (int i = 0; i < 6; i++)
        ((float *)target->data)[i] = (float)(100 + i);
    EXPECT_NEAR(data[0], 0, 0); /* nothing is written before the end */
    ASSERT_OK(tni_out_finish(out, target));
    for (int i = 0; i < 12; i++)
        EXPECT_NEAR(data[i], i < 6 ? 100 + i : i, 0);

    TN_AUTO(tn_tensor) inplace = NULL;
    ASSERT_OK(tni_inplace_prepare("addmm", &g, out, (tn_tensor *[]){near}, 1, &inplace));
    EXPECT(inplace && inplace != out);
}

TEST(an_in_place_result_must_already_look_right)
{
    tni_geometry g = matrix(2, 5);
    TN_AUTO(tn_tensor) row = make(2, (int64_t[]){1, 5}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) wide = make(2, (int64_t[]){2, 5}, TN_DTYPE_F64, TN_CPU);
    TN_AUTO(tn_tensor) meta = make(2, (int64_t[]){2, 5}, TN_DTYPE_F32, TN_META);
    tn_tensor *target = NULL;
    EXPECT_FAIL(
        TN_INVALID,
        "Bad in-place call: input tensor size [1, 5] and output tensor size [2, 5] should match",
        tni_inplace_prepare("addmm", &g, row, NULL, 0, &target));
    EXPECT_FAIL(
        TN_INVALID,
        "Bad in-place call: input tensor dtype double and output tensor dtype float should match",
        tni_inplace_prepare("addmm", &g, wide, NULL, 0, &target));
    EXPECT_FAIL(
        TN_INVALID,
        "Bad in-place call: input tensor device meta and output tensor device cpu should match",
        tni_inplace_prepare("addmm", &g, meta, NULL, 0, &target));
    EXPECT(!target);
}

TEST(a_missing_tensor_is_an_error)
{
    tni_geometry g = matrix(2, 5);
    tn_tensor *target = NULL;
    EXPECT_FAIL(TN_INVALID, "mm(): argument 'out'",
                tni_out_prepare("mm", &g, NULL, NULL, 0, &target));
    EXPECT_FAIL(TN_INVALID, "addmm(): argument 'self'",
                tni_inplace_prepare("addmm", &g, NULL, NULL, 0, &target));
}

TEST(products_into_a_shared_result_leak_nothing_whichever_allocation_fails)
{
    TN_AUTO(tn_tensor) base = make(1, (int64_t[]){600}, TN_DTYPE_F32, TN_CPU);
    TN_AUTO(tn_tensor) a = view(base, 2, (int64_t[]){20, 20}, (int64_t[]){20, 1}, 0);
    TN_AUTO(tn_tensor) b = view(base, 2, (int64_t[]){20, 20}, (int64_t[]){1, 20}, 100);
    memset(base->data, 0, 2400);
    ASSERT_OK(tn_mm_out(a, b, a)); /* once, so that what is made only once is there */
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_mm_out(a, b, a);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live == before);
    }
    EXPECT(tni_test_live == before);
}
