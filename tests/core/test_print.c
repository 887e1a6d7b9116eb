/* SPDX-License-Identifier: MIT */
/* tests/core/test_print.c: tensors as text: the reference's own texts, and our additions. */
#include "harness/test.h"

#include "core/print.h"
#include "core/scalar.h"
#include "core/tensor.h"

#include <locale.h>
#include <string.h>

typedef struct print_row {
    const char *dtype;
    int ndim;
    int64_t sizes[4], strides[4];
    double ramp[3]; /* element i of the storage is i * ramp[0] / ramp[1] + ramp[2] */
    const unsigned char *data;
    const char *text;
} print_row;

static const print_row rows[] = {
#include "golden/print.inc"
};

static tn_tensor *from_row(const print_row *r)
{
    tn_tensor *t = NULL;
    tn_dtype dtype = tn_dtype_parse(r->dtype);
    ASSERT_OK(tni_tensor_new(r->ndim, r->sizes, r->strides, dtype, TN_CPU, &t));
    size_t size = tn_dtype_size(dtype), n = t->storage->nbytes / size;
    if (r->data && n)
        memcpy(t->storage->data, r->data, t->storage->nbytes);
    for (size_t i = 0; !r->data && i < n; i++)
        tni_scalar_store(tn_float((double)i * r->ramp[0] / r->ramp[1] + r->ramp[2]), dtype,
                         (char *)t->storage->data + i * size);
    return t;
}

static void prints(const tn_tensor *t, const tni_print_options *options, const char *want)
{
    tni_str s = TNI_STR_INIT;
    ASSERT_OK(tni_tensor_format(t, options, &s));
    EXPECT_STR(tni_str_get(&s), want);
    tni_str_clear(&s);
}

TEST(tensors_print_as_the_reference_prints_them)
{
    EXPECT(sizeof rows / sizeof *rows > 50);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_tensor *t = from_row(&rows[i]);
        test_note("row %zu", i);
        prints(t, &(tni_print_options){"torch.", NULL, false}, rows[i].text);
        tn_tensor_unref(t);
    }
}

TEST(printing_leaks_nothing_whichever_allocation_fails)
{
    tn_tensor *t = from_row(&rows[26]);
    char *text = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_tensor_to_string(t, &text);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && text == NULL && tni_test_live == before);
    }
    EXPECT(text != NULL);
    tn_string_free(text);
    tn_tensor_unref(t);
    EXPECT_FAIL(TN_INVALID, "t is NULL", tn_tensor_to_string(NULL, &text));
}

TEST(what_stands_behind_the_values_can_be_added_to)
{
    tn_tensor *t = NULL;
    int64_t sizes[] = {2, 4, 16};
    ASSERT_OK(tni_tensor_new(3, sizes, NULL, TN_DTYPE_F32, TN_META, &t));
    prints(t, NULL, "tensor(..., device='meta', size=(2, 4, 16))");
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    prints(t, NULL, "tensor(..., device='meta', size=(2, 4, 16), requires_grad=True)");
    prints(t, &(tni_print_options){"", "MulBackward0", false},
           "tensor(..., device='meta', size=(2, 4, 16), grad_fn=<MulBackward0>)");
    tn_tensor_unref(t);
    ASSERT_OK(tni_tensor_new(1, sizes, NULL, TN_DTYPE_I64, TN_META, &t));
    prints(t, &(tni_print_options){"tenon.", NULL, false},
           "tensor(..., device='meta', size=(2,), dtype=tenon.int64)");
    t->device = TN_CPU; /* a fake tensor */
    prints(t, NULL, "tensor(..., size=(2,), dtype=int64)");
    tn_tensor_unref(t);
    ASSERT_OK(tn_tensor_from_data((double[]){1, 2.5}, 1, sizes, TN_DTYPE_F64, &t));
    ASSERT_OK(tn_set_default_dtype(TN_DTYPE_F64));
    prints(t, NULL, "tensor([1.0000, 2.5000])");
    ASSERT_OK(tn_set_default_dtype(TN_DTYPE_F32));
    prints(t, NULL, "tensor([1.0000, 2.5000], dtype=float64)");
    tn_tensor_unref(t);
}

TEST(the_locale_does_not_change_the_text)
{
    static const char *const with_comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    const char *found = NULL;
    for (size_t i = 0; !found && i < sizeof with_comma / sizeof *with_comma; i++)
        found = setlocale(LC_NUMERIC, with_comma[i]);
    if (!found)
        SKIP("no locale with a decimal comma is installed");
    tn_tensor *t = NULL;
    ASSERT_OK(tn_tensor_from_scalar(tn_float(1.5), TN_DTYPE_NONE, &t));
    prints(t, NULL, "tensor(1.5000)");
    tn_tensor_unref(t);
    setlocale(LC_NUMERIC, "C");
}
