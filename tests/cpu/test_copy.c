/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_copy.c: copy_ of large and awkward tensors, and to and from a device that only
 * knows how to move bytes. */
#include <stdlib.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/counted.h"
#include "harness/test.h"
#include "tenon/ops.h"

TEST(transposed_copies_of_any_size_and_element_put_each_where_it_belongs)
{
    const tn_dtype dtypes[] = {TN_DTYPE_I8, TN_DTYPE_I16, TN_DTYPE_F32, TN_DTYPE_I64};
    const int64_t shapes[][3] = {{1, 33, 65}, {3, 100, 31}, {1, 700, 513}, {40, 5, 64}, {2, 32, 32},
                                 {64, 7, 4},  {5, 16, 4},   {3, 301, 3},   {2, 3, 301}, {7, 35, 6},
                                 {9, 10, 37}, {3, 4, 5},    {4, 13, 7},    {6, 19, 18}};
    const int n_shapes = sizeof shapes / sizeof shapes[0];
    for (int d = 0; d < 4; d++)
        for (int s = 0; s < n_shapes; s++) {
            const int64_t *sizes = shapes[s];
            tn_tensor *t = counted(3, sizes, dtypes[d]), *u = NULL, *c = NULL, *wide = NULL;
            ASSERT_OK(tn_transpose(t, 1, 2, &u));
            ASSERT_OK(tn_clone(u, TN_FORMAT_CONTIGUOUS, &c));
            ASSERT_OK(tn_to_dtype(c, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &wide));
            const int64_t *x = wide->data;
            bool right = true;
            for (int64_t b = 0; b < sizes[0]; b++)
                for (int64_t j = 0; j < sizes[2]; j++)
                    for (int64_t i = 0; i < sizes[1]; i++) {
                        int64_t value = (b * sizes[1] + i) * sizes[2] + j;
                        int64_t kept = dtypes[d] == TN_DTYPE_I8    ? (int8_t)value
                                       : dtypes[d] == TN_DTYPE_I16 ? (int16_t)value
                                                                   : value;
                        right &= *x++ == kept;
                    }
            test_note("%s [%d, %d, %d]", tn_dtype_name(dtypes[d]), (int)sizes[0], (int)sizes[1],
                      (int)sizes[2]);
            EXPECT(right);
            tn_tensor_unref(t);
            tn_tensor_unref(u);
            tn_tensor_unref(c);
            tn_tensor_unref(wide);
        }
}

TEST(short_rows_and_rows_read_backwards_put_each_element_where_it_belongs)
{
    const tn_dtype dtypes[] = {TN_DTYPE_I8, TN_DTYPE_I16, TN_DTYPE_F32, TN_DTYPE_I64};
    const int64_t lengths[] = {1, 15, 16, 17, 255, 257, 1030}, last = 1;
    for (int d = 0; d < 4; d++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
            for (int64_t by = 1; by <= 9; by += 2) {
                int64_t n = lengths[l], sizes[] = {3, n};
                tn_tensor *t = counted(2, sizes, dtypes[d]), *r = NULL, *f = NULL;
                tn_tensor *wide = NULL, *back = NULL;
                ASSERT_OK(tn_repeat_interleave_self_int(t, by, tn_some_int(1), tn_no_int(), &r));
                ASSERT_OK(tn_flip(r, &last, 1, &f));
                ASSERT_OK(tn_to_dtype(r, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &wide));
                ASSERT_OK(tn_to_dtype(f, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &back));
                const int64_t *x = wide->data, *y = back->data, m = n * by;
                bool right = wide->numel == 3 * m, turned = back->numel == 3 * m;
                for (int64_t i = 0; i < 3 * m && right; i++) {
                    int64_t value = i / by;
                    right &= x[i] == (dtypes[d] == TN_DTYPE_I8    ? (int8_t)value
                                      : dtypes[d] == TN_DTYPE_I16 ? (int16_t)value
                                                                  : value);
                    turned &= y[i / m * m + (m - 1 - i % m)] == x[i];
                }
                test_note("%s [3, %d] by %d", tn_dtype_name(dtypes[d]), (int)n, (int)by);
                EXPECT(right);
                EXPECT(turned);
                tn_tensor_unref(t);
                tn_tensor_unref(r);
                tn_tensor_unref(f);
                tn_tensor_unref(wide);
                tn_tensor_unref(back);
            }
}

TEST(out_of_range_floats_become_the_integers_that_x86_gives)
{
    const float x[] = {3e9f, -3e9f, 1e30f, -1e30f, 300.0f, -1.0f};
    const int32_t as_i32[] = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN, 300, -1};
    const uint8_t as_u8[] = {0, 0, 0, 0, 44, 255};
    const int64_t n = 6;
    tn_tensor *t = NULL, *a = NULL, *b = NULL;
    ASSERT_OK(tn_tensor_from_data(x, 1, &n, TN_DTYPE_F32, &t));
    ASSERT_OK(tn_to_dtype(t, TN_DTYPE_I32, false, false, TN_FORMAT_NONE, &a));
    ASSERT_OK(tn_to_dtype(t, TN_DTYPE_U8, false, false, TN_FORMAT_NONE, &b));
    EXPECT(memcmp(a->data, as_i32, sizeof as_i32) == 0);
    EXPECT(memcmp(b->data, as_u8, sizeof as_u8) == 0);
    tn_tensor_unref(t);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

/* ---- a device whose memory is the host's, xor-ed, so that nobody can read it by mistake ---- */

static int moves_in, moves_out;

static tn_status toy_alloc(void *ctx, tn_device device, size_t nbytes, void **out)
{
    (void)ctx;
    (void)device;
    *out = malloc(nbytes ? nbytes : 1);
    return *out ? TN_OK : tn_fail(TN_NOMEM, "toy: no memory");
}

static void toy_free(void *ctx, tn_device device, void *ptr, size_t nbytes)
{
    (void)ctx;
    (void)device;
    (void)nbytes;
    free(ptr);
}

static tn_status toy_to_host(void *ctx, tn_device device, void *host, const void *ptr,
                             size_t nbytes)
{
    (void)ctx;
    (void)device;
    moves_out++;
    for (size_t i = 0; i < nbytes; i++)
        ((uint8_t *)host)[i] = ((const uint8_t *)ptr)[i] ^ 0x5a;
    return TN_OK;
}

static tn_status toy_from_host(void *ctx, tn_device device, void *ptr, const void *host,
                               size_t nbytes)
{
    (void)ctx;
    (void)device;
    moves_in++;
    for (size_t i = 0; i < nbytes; i++)
        ((uint8_t *)ptr)[i] = ((const uint8_t *)host)[i] ^ 0x5a;
    return TN_OK;
}

static tn_device toy(void)
{
    static tn_device_type type = TN_DEVICE_NONE;
    const tn_device_vtable v = {.size = sizeof v,
                                .alloc = toy_alloc,
                                .free = toy_free,
                                .to_host = toy_to_host,
                                .from_host = toy_from_host};
    if (type == TN_DEVICE_NONE)
        ASSERT_OK(tn_device_register("toy", &v, &type));
    return TN_DEVICE_INIT(type, 0);
}

static void expect_same(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *x = NULL, *y = NULL;
    ASSERT_OK(tn_contiguous(a, TN_FORMAT_CONTIGUOUS, &x));
    ASSERT_OK(tn_contiguous(b, TN_FORMAT_CONTIGUOUS, &y));
    EXPECT(x->numel == y->numel && x->dtype == y->dtype &&
           memcmp(x->data, y->data, tn_tensor_nbytes(x)) == 0);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

TEST(tensors_travel_to_a_device_and_back)
{
    const int64_t sizes[] = {4, 6};
    tn_tensor *t = counted(2, sizes, TN_DTYPE_F32), *there = NULL, *back = NULL, *u = NULL;
    tn_tensor_opts to_toy = tn_opts(TN_DTYPE_NONE, toy()), to_cpu = tn_opts(TN_DTYPE_NONE, TN_CPU);
    ASSERT_OK(tn__to_copy(t, &to_toy, false, TN_FORMAT_NONE, &there));
    EXPECT_EQ_INT(there->device.type, to_toy.device.type);
    ASSERT_OK(tn__to_copy(there, &to_cpu, false, TN_FORMAT_NONE, &back));
    expect_same(t, back);
    tn_tensor_unref(back);
    /* A transposed view comes back as it looks; the other dtype is made on the way. */
    ASSERT_OK(tn_t(there, &u));
    to_cpu.dtype = TN_DTYPE_I64;
    ASSERT_OK(tn__to_copy(u, &to_cpu, false, TN_FORMAT_NONE, &back));
    tn_tensor *wanted = NULL, *cpu_t = NULL;
    ASSERT_OK(tn_t(t, &cpu_t));
    ASSERT_OK(tn_to_dtype(cpu_t, TN_DTYPE_I64, false, false, TN_FORMAT_NONE, &wanted));
    expect_same(wanted, back);
    tn_scalar s;
    tn_tensor *row = NULL, *one = NULL;
    ASSERT_OK(tn_select(there, 0, 2, &row));
    ASSERT_OK(tn_select(row, 0, 3, &one));
    ASSERT_OK(tn_item(one, &s));
    EXPECT_NEAR(tn_scalar_to_double(s), 15, 0);
    tn_tensor *all[] = {t, there, back, u, wanted, cpu_t, row, one};
    for (int i = 0; i < 8; i++)
        tn_tensor_unref(all[i]);
}

TEST(writing_part_of_a_device_tensor_leaves_the_rest)
{
    const int64_t sizes[] = {4, 6}, n = 4;
    tn_tensor *zeros = NULL, *there = NULL, *column = NULL, *values = counted(1, &n, TN_DTYPE_I64);
    tn_tensor_opts to_toy = tn_opts(TN_DTYPE_NONE, toy()), to_cpu = tn_opts(TN_DTYPE_NONE, TN_CPU);
    ASSERT_OK(tn_full(sizes, 2, tn_float(9), NULL, &zeros));
    ASSERT_OK(tn__to_copy(zeros, &to_toy, false, TN_FORMAT_NONE, &there));
    ASSERT_OK(tn_select(there, 1, 2, &column));
    ASSERT_OK(tn_copy_(column, values, false));
    tn_tensor *back = NULL;
    ASSERT_OK(tn__to_copy(there, &to_cpu, false, TN_FORMAT_NONE, &back));
    const float *x = back->data;
    for (int i = 0; i < 24; i++)
        EXPECT_NEAR(x[i], i % 6 == 2 ? i / 6 : 9, 0);
    tn_tensor *all[] = {zeros, there, column, values, back};
    for (int i = 0; i < 5; i++)
        tn_tensor_unref(all[i]);
}

TEST(a_copy_between_devices_leaks_nothing_whichever_allocation_fails)
{
    const int64_t sizes[] = {4, 6};
    tn_tensor *t = counted(2, sizes, TN_DTYPE_F32), *there = NULL, *u = NULL;
    tn_tensor_opts to_toy = tn_opts(TN_DTYPE_NONE, toy());
    ASSERT_OK(tn__to_copy(t, &to_toy, false, TN_FORMAT_NONE, &there));
    ASSERT_OK(tn_t(t, &u));
    const int64_t back[] = {6, 4};
    tn_tensor *v = NULL;
    ASSERT_OK(tn_view(there, back, 2, &v));
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_copy_(v, u, false);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && tni_test_live == before);
    }
    EXPECT(tni_test_live == before);
    tn_tensor *all[] = {t, there, u, v};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(all[i]);
}
