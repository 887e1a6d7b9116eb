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
            for (int64_t d = 0; d < (i < 2 ? 6 : 14); d++) {
                tn_tensor *s = NULL;
                int64_t dim = d % 2;
                if (d < 4)
                    ASSERT_OK(tn_sum_dim(d < 2 ? t : u, &dim, 1, false, TN_DTYPE_NONE, &s));
                else if (d == 4)
                    ASSERT_OK(tn_mean(u, TN_DTYPE_NONE, &s));
                else if (d == 5)
                    ASSERT_OK(tn_sum(t, TN_DTYPE_NONE, &s));
                else if (d < 10)
                    ASSERT_OK(tn_linalg_vector_norm(t, tn_float(d < 8 ? 2 : 1), &dim, 1, false,
                                                    TN_DTYPE_NONE, &s));
                else if (d < 12)
                    ASSERT_OK(tn_logsumexp(t, &dim, 1, false, &s));
                else
                    ASSERT_OK(tn_prod_dim_int(t, dim, false, TN_DTYPE_NONE, &s));
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
    enum { ROOM = 1 << 27 };
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

/* What a reduction of plain numbers is, one after the other in double precision. */
static double plainly(int what, const float *x, int64_t n, int64_t stride)
{
    double r = what == 3 ? 1 : what == 4 ? -(double)INFINITY : 0, sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i * stride];
        switch (what) {
        case 0: /* norm */
        case 1:
            r += what ? fabs(v) : v * v;
            break;
        case 2: /* nansum */
            r += isnan(v) ? 0 : v;
            break;
        case 3: /* prod */
            r *= v;
            break;
        default: /* amax, logsumexp */
            r = v > r || isnan(v) ? v : r;
        }
        sum += exp(v);
    }
    return what == 0 ? sqrt(r) : what == 5 ? log(sum) : r;
}

static tn_tensor *reduced(int what, tn_tensor *t, int64_t dim)
{
    tn_tensor *s = NULL;
    switch (what) {
    case 0:
    case 1:
        ASSERT_OK(tn_linalg_vector_norm(t, tn_float(2 - what), &dim, 1, false, TN_DTYPE_NONE, &s));
        break;
    case 2:
        ASSERT_OK(tn_nansum(t, &dim, 1, false, TN_DTYPE_NONE, &s));
        break;
    case 3:
        ASSERT_OK(tn_prod_dim_int(t, dim, false, TN_DTYPE_NONE, &s));
        break;
    case 4:
        ASSERT_OK(tn_amax(t, &dim, 1, false, &s));
        break;
    default:
        ASSERT_OK(tn_logsumexp(t, &dim, 1, false, &s));
    }
    return s;
}

TEST(reductions_of_any_length_are_those_of_plain_loops)
{
    const int64_t lengths[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 129, 1023, 1025};
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            for (int what = 0; what < 6; what++)
                for (int half = 0; half < 2; half++)
                    for (int64_t dim = 0; dim < 2; dim++) {
                        int64_t n = lengths[k], sizes[] = {dim ? 9 : n, dim ? n : 9};
                        tn_tensor *given = uniform(2, sizes, half ? TN_DTYPE_BF16 : TN_DTYPE_F32);
                        tn_tensor *t = NULL, *s = NULL, *got = NULL;
                        ASSERT_OK(
                            tn_to_dtype(given, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &t));
                        ASSERT_OK(tn_add_scalar(t, tn_float(0.5), tn_int(1), &got));
                        float *x = got->data;
                        if (what == 2 || (what >= 4 && k % 2))
                            x[got->numel / 2] = NAN;
                        if (half)
                            ASSERT_OK(
                                tn_to_dtype(got, TN_DTYPE_BF16, false, false, TN_FORMAT_NONE, &s));
                        tn_tensor *r = reduced(what, half ? s : got, dim), *wide = NULL, *y = NULL;
                        ASSERT_OK(
                            tn_to_dtype(r, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &wide));
                        if (half)
                            ASSERT_OK(
                                tn_to_dtype(s, TN_DTYPE_F32, false, false, TN_FORMAT_NONE, &y));
                        const float *from = half ? y->data : got->data;
                        for (int64_t i = 0; i < 9; i++) {
                            double want = plainly(what, from + i * (dim ? n : 1), n, dim ? 1 : 9);
                            double have = (double)((const float *)wide->data)[i];
                            test_note("%d of %lld along %lld, half %d", what, (long long)n,
                                      (long long)dim, half);
                            if (isnan(want) || isinf((float)want))
                                EXPECT(isnan(want) ? isnan(have) : isinf(have));
                            else
                                EXPECT_NEAR(have, want, fabs(want) * (half ? 4e-3 : 2e-6) + 1e-6);
                        }
                        tn_tensor *all[] = {given, t, s, got, r, wide, y};
                        for (size_t i = 0; i < 7; i++)
                            tn_tensor_unref(all[i]);
                    }
    }
    tni_cpu_use(TNI_ISA_AVX512);
}

TEST(logsumexp_across_lines_keeps_infinities_and_nan)
{
    const int64_t sizes[] = {3, 70}, dim = 0;
    tn_tensor *t = uniform(2, sizes, TN_DTYPE_F32), *s = NULL;
    float *x = t->data;
    x[70 + 3] = INFINITY;
    for (int r = 0; r < 3; r++)
        x[70 * r + 5] = -INFINITY;
    x[4] = -INFINITY;
    x[6] = INFINITY;
    x[140 + 6] = NAN;
    ASSERT_OK(tn_logsumexp(t, &dim, 1, false, &s));
    const float *y = s->data;
    EXPECT(isinf(y[3]) && y[3] > 0);
    EXPECT(isinf(y[5]) && y[5] < 0);
    EXPECT(isfinite(y[4]));
    EXPECT(isnan(y[6]));
    tn_tensor_unref(s);
    tn_tensor_unref(t);
}

TEST(a_dot_product_is_that_of_a_plain_loop_whatever_the_threads)
{
    const int64_t lengths[] = {1, 63, 64, 65, 1024, 1025, 32768, 32769, 200001};
    const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_BF16, TN_DTYPE_F16};
    for (size_t k = 0; k < 9; k++)
        for (size_t d = 0; d < 4; d++) {
            tn_tensor *t = uniform(1, &lengths[k], dtypes[d]), *wide = NULL, *s = NULL,
                      *small = NULL;
            double want = 0, first = 0;
            ASSERT_OK(tn_mul_scalar(t, tn_float(0.125), &small));
            ASSERT_OK(tn_to_dtype(small, TN_DTYPE_F64, false, false, TN_FORMAT_NONE, &wide));
            for (int64_t i = 0; i < lengths[k]; i++)
                want += ((double *)wide->data)[i] * ((double *)wide->data)[i];
            for (int threads = 1; threads <= 3; threads += 2) {
                ASSERT_OK(tn_set_num_threads(threads));
                ASSERT_OK(tn_dot(small, small, &s));
                test_note("%lld of dtype %zu, %d threads", (long long)lengths[k], d, threads);
                EXPECT_NEAR(item(s), want, want * (d == 1 ? 1e-12 : d == 0 ? 1e-6 : 8e-3));
                EXPECT(threads == 1 || item(s) == first);
                first = item(s);
                tn_tensor_unref(s);
            }
            tn_tensor_unref(t);
            tn_tensor_unref(small);
            tn_tensor_unref(wide);
        }
}

/* Of integers, whose columns are summed without totals of double; a sum of some rows goes before,
 * so that what it left behind would be seen. */
TEST(columns_of_no_rows_sum_to_nothing)
{
    const int64_t some[] = {3, 5}, none[] = {0, 5}, dim = 0;
    const tn_dtype dtypes[] = {TN_DTYPE_U8, TN_DTYPE_I32, TN_DTYPE_I64, TN_DTYPE_BOOL,
                               TN_DTYPE_F32};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        const tn_tensor_opts opts = tn_opts(dtypes[k], TN_CPU);
        tn_tensor *rows = NULL, *no_rows = NULL, *sums = NULL, *nothing = NULL, *largest = NULL;
        ASSERT_OK(tn_ones(some, 2, &opts, &rows));
        ASSERT_OK(tn_ones(none, 2, &opts, &no_rows));
        ASSERT_OK(tn_sum_dim(rows, &dim, 1, false, TN_DTYPE_NONE, &sums));
        ASSERT_OK(tn_sum_dim(no_rows, &dim, 1, false, TN_DTYPE_NONE, &nothing));
        ASSERT_OK(tn_max(nothing, &largest));
        EXPECT(item(largest) == 0);
        tn_tensor_unref(rows);
        tn_tensor_unref(no_rows);
        tn_tensor_unref(sums);
        tn_tensor_unref(nothing);
        tn_tensor_unref(largest);
    }
}
