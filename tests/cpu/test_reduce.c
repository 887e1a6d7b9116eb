/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_reduce.c: sums are accurate, and the same number on every machine. */
#include <math.h>
#include <string.h>
#include "core/tensor.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

static tn_tensor *uniform(int ndim, const int64_t *sizes, tn_dtype dtype)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(dtype, TN_CPU);
    tn_manual_seed(7);
    ASSERT_OK(tn_rand(sizes, ndim, &opts, &t));
    return t;
}

static double item(tn_tensor *t)
{
    tn_scalar s;
    ASSERT_OK(tn_item(t, &s));
    return tn_scalar_to_double(s);
}

TEST(a_sum_of_2_to_24_tenths_is_off_by_less_than_one)
{
    const int64_t n = 1 << 24;
    tn_tensor *t = NULL, *s = NULL;
    ASSERT_OK(tn_full(&n, 1, tn_float(0.1), NULL, &t));
    ASSERT_OK(tn_sum(t, TN_DTYPE_NONE, &s));
    EXPECT_NEAR(item(s), (double)0.1f * (double)n, 1.0);
    tn_tensor_unref(t);
    tn_tensor_unref(s);
}

TEST(long_sums_keep_float_precision_in_every_layout)
{
    const int64_t sizes[] = {3000, 1400}, dims[] = {0, 1};
    tn_tensor *t = uniform(2, sizes, TN_DTYPE_F32), *u = NULL;
    ASSERT_OK(tn_t(t, &u));
    for (int layout = 0; layout < 2; layout++)
        for (int d = 0; d < 2; d++) {
            tn_tensor *x = layout ? u : t, *s = NULL;
            ASSERT_OK(tn_sum_dim(x, &dims[d], 1, false, TN_DTYPE_NONE, &s));
            for (int64_t i = 0; i < s->numel; i += 97) {
                double exact = 0;
                for (int64_t k = 0; k < x->sizes[d]; k++)
                    exact += (double)((float *)x->data)[i * x->strides[1 - d] + k * x->strides[d]];
                EXPECT_NEAR(((float *)s->data)[i], exact, exact * 3e-7);
            }
            tn_tensor_unref(s);
        }
    tn_tensor_unref(t);
    tn_tensor_unref(u);
}

/* Every reduction of several layouts, one after the other, as bytes. */
static size_t reduce_all(char *out, size_t room)
{
    const int64_t shapes[][2] = {{1, 200000}, {200000, 1}, {500, 400}, {70, 3}, {1025, 5}};
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_F16, TN_DTYPE_C64,
                               TN_DTYPE_BF16};
    size_t used = 0;
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++) {
            tn_tensor *t = uniform(2, shapes[i], dtypes[k]), *u = NULL;
            ASSERT_OK(tn_t(t, &u));
            for (int64_t d = 0; d < 6; d++) {
                tn_tensor *s = NULL;
                int64_t dim = d % 2;
                if (d < 4)
                    ASSERT_OK(tn_sum_dim(d < 2 ? t : u, &dim, 1, false, TN_DTYPE_NONE, &s));
                else if (d == 4)
                    ASSERT_OK(tn_mean(u, TN_DTYPE_NONE, &s));
                else
                    ASSERT_OK(tn_sum(t, TN_DTYPE_NONE, &s));
                size_t nbytes = (size_t)s->numel * tni_itemsize(s);
                if (used + nbytes <= room)
                    memcpy(out + used, s->data, nbytes);
                used += nbytes;
                tn_tensor_unref(s);
            }
            tn_tensor_unref(t);
            tn_tensor_unref(u);
        }
    return used;
}

TEST(sums_depend_neither_on_threads_nor_on_the_instruction_set)
{
    enum { ROOM = 1 << 25 };
    char *wanted = tni_alloc(ROOM), *got = tni_alloc(ROOM);
    ASSERT(wanted && got);
    size_t used = 0;
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++)
        for (int threads = 1; threads <= 3; threads += 2) {
            if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
                continue;
            ASSERT_OK(tn_set_num_threads(threads));
            test_note("%s, %d threads", tni_isa_name((tni_isa)isa), threads);
            size_t n = reduce_all(used ? got : wanted, ROOM);
            EXPECT(n <= ROOM);
            if (used)
                EXPECT(n == used && memcmp(wanted, got, n) == 0);
            used = n;
        }
    tni_free(wanted);
    tni_free(got);
    tni_cpu_use(TNI_ISA_AVX512);
}

TEST(extremes_of_many_elements_find_the_one)
{
    const int64_t sizes[] = {300, 401};
    tn_tensor *t = uniform(2, sizes, TN_DTYPE_F32), *s = NULL;
    ((float *)t->data)[77777] = 5;
    ((float *)t->data)[99999] = -5;
    ASSERT_OK(tn_amax(t, NULL, 0, false, &s));
    EXPECT_NEAR(item(s), 5, 0);
    tn_tensor_unref(s);
    ASSERT_OK(tn_amin(t, NULL, 0, false, &s));
    EXPECT_NEAR(item(s), -5, 0);
    tn_tensor_unref(s);
    for (int64_t dim = 0; dim < 2; dim++) {
        ASSERT_OK(tn_amax(t, &dim, 1, false, &s));
        int64_t at = dim ? 77777 / 401 : 77777 % 401;
        EXPECT_NEAR(((float *)s->data)[at], 5, 0);
        tn_tensor_unref(s);
    }
    ((float *)t->data)[123] = NAN;
    ASSERT_OK(tn_amax(t, NULL, 0, false, &s));
    EXPECT(isnan(item(s)));
    tn_tensor_unref(s);
    tn_tensor_unref(t);
}
