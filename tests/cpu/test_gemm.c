/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_gemm.c: what cpu/gemm.h promises: right for every dtype, size and layout in each
 * instruction set, the same bits for any number of threads, and nothing read that must not be. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/scalar.h"
#include "cpu/gemm_kernels.h"
#include "cpu/loops.h"
#include "harness/test.h"
#include "tenon/ops.h"

#define ROOM 20000

/* A matrix with elements of its own, laid out in one of these ways. */
enum {
    ROWS,
    COLUMNS,
    SPREAD_ROWS,
    SPREAD_COLUMNS,
    SPREAD_BOTH,
    REPEATED_ROW,
    REPEATED_COLUMN,
    WAYS
};

static tni_matrix laid_out(const void *data, int way, int64_t rows, int64_t columns)
{
    tni_matrix x = {data, 0, 0, 0};
    int64_t step = way == SPREAD_BOTH ? 2 : 1;
    int64_t extra = way == SPREAD_ROWS || way == SPREAD_COLUMNS || way == SPREAD_BOTH ? 3 : 0;
    bool by_columns = way == COLUMNS || way == SPREAD_COLUMNS;
    x.row = by_columns ? step : columns * step + extra;
    x.col = by_columns ? rows * step + extra : step;
    if (way == REPEATED_ROW)
        x.row = 0;
    if (way == REPEATED_COLUMN)
        x.col = 0;
    return x;
}

static int64_t at(const tni_matrix *x, int64_t i, int64_t j)
{
    return i * x->row + j * x->col;
}

static tn_scalar element(const tni_matrix *x, tn_dtype dtype, int64_t i, int64_t j)
{
    return tni_scalar_load(dtype,
                           (const char *)x->data + (size_t)at(x, i, j) * tn_dtype_size(dtype));
}

/* Small whole numbers: sums are exact, in any order and in every dtype. */
static void fill(void *data, tn_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t value = (int64_t)(test_random() % 5) - 2;
        tn_scalar s = tn_dtype_is_complex(dtype)
                          ? tn_complex((double)value, (double)(test_random() % 3) - 1)
                          : tn_int(dtype == TN_DTYPE_U8 ? value + 2 : value);
        tni_scalar_store(s, dtype, (char *)data + (size_t)i * tn_dtype_size(dtype));
    }
}

static void expect_product(tn_dtype dtype, const tni_gemm_args *g, int64_t alpha, int64_t beta,
                           const void *d_before)
{
    tni_matrix d = g->d;
    d.data = d_before;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j++) {
            double re = 0, im = 0;
            for (int64_t p = 0; p < g->k; p++) {
                tn_scalar x = element(&g->a, dtype, i, p), y = element(&g->b, dtype, p, j);
                double xr = tn_scalar_to_double(x), yr = tn_scalar_to_double(y);
                re += xr * yr - x.imag * y.imag;
                im += xr * y.imag + x.imag * yr;
            }
            re *= (double)alpha;
            im *= (double)alpha;
            if (beta) {
                tn_scalar kept = element(&d, dtype, i, j);
                re += (double)beta * tn_scalar_to_double(kept);
                im += (double)beta * kept.imag;
            }
            tn_scalar got = element(&g->c, dtype, i, j), wanted = tn_float(re);
            if (!tn_dtype_is_complex(dtype)) { /* as the dtype has it: rounded or wrapped */
                unsigned char bytes[16];
                tni_scalar_store(tn_dtype_is_integral(dtype, true) ? tn_int((int64_t)re)
                                                                   : tn_float(re),
                                 dtype, bytes);
                wanted = tni_scalar_load(dtype, bytes);
                im = 0;
            }
            EXPECT_NEAR(tn_scalar_to_double(got), tn_scalar_to_double(wanted), 0);
            EXPECT_NEAR(got.imag, im, 0);
            if (tn_scalar_to_double(got) != tn_scalar_to_double(wanted))
                test_end();
        }
    }
}

static const tn_dtype dtypes[] = {TN_DTYPE_F32, TN_DTYPE_F64,  TN_DTYPE_C64, TN_DTYPE_C128,
                                  TN_DTYPE_F16, TN_DTYPE_BF16, TN_DTYPE_I64, TN_DTYPE_I32,
                                  TN_DTYPE_I16, TN_DTYPE_I8,   TN_DTYPE_U8};

static void *room(void)
{
    void *p = aligned_alloc(64, ROOM * 16);
    ASSERT(p != NULL);
    return p;
}

static int pick(int n)
{
    return (int)(test_random() % (uint64_t)n);
}

typedef struct rooms {
    void *a, *b, *c, *d, *before;
} rooms;

static rooms open_rooms(void)
{
    return (rooms){room(), room(), room(), room(), room()};
}

static void close_rooms(rooms *r)
{
    free(r->a);
    free(r->b);
    free(r->c);
    free(r->d);
    free(r->before);
}

/* @p g lies in @p r, which gets new numbers. */
static void expect_product_of_new(rooms *r, tn_dtype dtype, const tni_gemm_args *g, int64_t alpha,
                                  int64_t beta)
{
    fill(r->a, dtype, ROOM);
    fill(r->b, dtype, ROOM);
    fill(r->c, dtype, ROOM);
    fill(r->d, dtype, ROOM);
    memcpy(r->before, g->d.data, ROOM * tn_dtype_size(dtype));
    ASSERT_OK(tni_gemm(dtype, g, tn_int(alpha), tn_int(beta)));
    expect_product(dtype, g, alpha, beta, r->before);
}

TEST(products_are_right_in_every_dtype_layout_and_instruction_set)
{
    rooms r = open_rooms();
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if ((int)tni_cpu_use((tni_isa)isa) != isa)
            continue;
        for (int i = 0; i < 600; i++) {
            tn_dtype dtype = dtypes[i < 300 ? pick(2) : pick(11)];
            int limit = i % 10 == 0 ? 70 : 20;
            int ways[4] = {pick(WAYS), pick(WAYS), pick(REPEATED_ROW), pick(WAYS)};
            tni_gemm_args g = {.m = pick(limit), .n = pick(limit), .k = pick(limit), .batch = 1};
            int64_t alpha = pick(3), beta = pick(3);
            test_note("%s %s %lldx%lldx%lld, layouts %d %d %d %d, alpha %lld, beta %lld",
                      tni_isa_name((tni_isa)isa), tn_dtype_name(dtype), (long long)g.m,
                      (long long)g.n, (long long)g.k, ways[0], ways[1], ways[2], ways[3],
                      (long long)alpha, (long long)beta);
            g.a = laid_out(r.a, ways[0], g.m, g.k);
            g.b = laid_out(r.b, ways[1], g.k, g.n);
            g.c = laid_out(r.c, ways[2], g.m, g.n);
            g.d = i % 3 ? laid_out(r.d, ways[3], g.m, g.n) : g.c;
            expect_product_of_new(&r, dtype, &g, alpha, beta);
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
    close_rooms(&r);
}

/* Long sums of halves have kernels of their own, with blocks of several forms and tiles. */
TEST(long_sums_of_halves_are_right_in_every_layout_and_instruction_set)
{
    rooms r = open_rooms();
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if ((int)tni_cpu_use((tni_isa)isa) != isa)
            continue;
        for (int i = 0; i < 60; i++) {
            tn_dtype dtype = i % 2 ? TN_DTYPE_F16 : TN_DTYPE_BF16;
            bool large = i % 5 == 0; /* more than a tile */
            int limit = large ? 80 : 20, ways = large ? SPREAD_ROWS : WAYS;
            tni_gemm_args g = {.m = 1 + pick(limit), .n = 1 + pick(limit), .batch = 1};
            g.k = 192 + pick(large ? 20 : 200);
            if (i % 7 == 0)
                g.m = 1;
            int64_t alpha = 1 + pick(2), beta = pick(3);
            test_note("%s %s %lldx%lldx%lld", tni_isa_name((tni_isa)isa), tn_dtype_name(dtype),
                      (long long)g.m, (long long)g.n, (long long)g.k);
            g.a = laid_out(r.a, pick(ways), g.m, g.k);
            g.b = laid_out(r.b, pick(ways), g.k, g.n);
            g.c = laid_out(r.c, pick(REPEATED_ROW), g.m, g.n);
            g.d = i % 3 ? laid_out(r.d, pick(WAYS), g.m, g.n) : g.c;
            expect_product_of_new(&r, dtype, &g, alpha, beta);
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
    close_rooms(&r);
}

TEST(each_entry_of_a_batch_is_a_product)
{
    void *a = room(), *b = room(), *c = room(), *before = room();
    for (int i = 0; i < 60; i++) {
        tn_dtype dtype = dtypes[pick(11)];
        tni_gemm_args g = {
            .m = 1 + pick(6), .n = 1 + pick(6), .k = 1 + pick(6), .batch = 1 + pick(9)};
        g.a = laid_out(a, pick(WAYS), g.m, g.k);
        g.b = laid_out(b, pick(WAYS), g.k, g.n);
        g.c = g.d = laid_out(c, pick(REPEATED_ROW), g.m, g.n);
        g.a.batch = pick(2) ? 200 : 0; /* one matrix for all entries is fine */
        g.b.batch = 210;
        g.c.batch = g.d.batch = 220;
        fill(a, dtype, ROOM);
        fill(b, dtype, ROOM);
        fill(c, dtype, ROOM);
        memcpy(before, c, ROOM * tn_dtype_size(dtype));
        ASSERT_OK(tni_gemm(dtype, &g, tn_int(2), tn_int(1)));
        for (int64_t e = 0; e < g.batch; e++) {
            size_t size = tn_dtype_size(dtype);
            tni_gemm_args one = g;
            one.a.data = (char *)a + (size_t)(e * g.a.batch) * size;
            one.b.data = (char *)b + (size_t)(e * g.b.batch) * size;
            one.c.data = (char *)c + (size_t)(e * g.c.batch) * size;
            expect_product(dtype, &one, 2, 1, (char *)before + (size_t)(e * g.c.batch) * size);
        }
    }
    free(a);
    free(b);
    free(c);
    free(before);
}

TEST(what_lies_between_the_elements_of_a_result_is_not_touched)
{
    float *a = room(), *b = room(), *c = room();
    for (int way = SPREAD_ROWS; way <= SPREAD_BOTH; way++) {
        for (int n = 1; n < 40; n += 3) {
            tni_gemm_args g = {.m = 7, .n = n, .k = 5, .batch = 1};
            g.a = laid_out(a, ROWS, g.m, g.k);
            g.b = laid_out(b, ROWS, g.k, g.n);
            g.c = g.d = laid_out(c, way, g.m, g.n);
            fill(a, TN_DTYPE_F32, ROOM);
            fill(b, TN_DTYPE_F32, ROOM);
            for (int i = 0; i < ROOM; i++)
                c[i] = -77;
            ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(0)));
            for (int64_t i = 0; i < g.m; i++) {
                for (int64_t j = 0; j < g.n; j++)
                    c[at(&g.c, i, j)] = -77;
            }
            for (int i = 0; i < ROOM; i++)
                ASSERT(c[i] == -77);
        }
    }
    free(a);
    free(b);
    free(c);
}

TEST(beta_0_does_not_read_what_is_added_and_alpha_0_not_the_product)
{
    float *a = room(), *b = room(), *c = room(), *d = room();
    for (int n = 1; n <= 60; n += 7) {
        tni_gemm_args g = {.m = n, .n = n, .k = n, .batch = 1};
        g.a = laid_out(a, ROWS, n, n);
        g.b = laid_out(b, COLUMNS, n, n);
        g.c = laid_out(c, ROWS, n, n);
        g.d = laid_out(d, ROWS, n, n);
        for (int i = 0; i < n * n; i++) {
            a[i] = b[i] = 1;
            c[i] = d[i] = NAN;
        }
        ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_float(1), tn_float(0)));
        for (int i = 0; i < n * n; i++)
            ASSERT(c[i] == (float)n);
        for (int i = 0; i < n * n; i++) {
            a[i] = NAN;
            d[i] = 3;
        }
        ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_float(0), tn_float(2)));
        for (int i = 0; i < n * n; i++)
            ASSERT(c[i] == 6);
    }
    free(a);
    free(b);
    free(c);
    free(d);
}

/* Rows with rows, few on one side: no copy of B is made. Operands end where their memory does. */
TEST(thin_products_are_right_and_the_same_for_any_number_of_threads)
{
    static const int a_ways[] = {ROWS, SPREAD_ROWS, REPEATED_ROW};
    static const int b_ways[] = {COLUMNS, SPREAD_COLUMNS, REPEATED_COLUMN};
    int threads = tn_num_threads();
    for (int i = 0; i < 36; i++) {
        tni_isa isa = (tni_isa)(TNI_ISA_BASE + i % 3);
        if (tni_cpu_use(isa) != isa)
            continue;
        tn_dtype dtype = dtypes[i / 3 % 2];
        size_t size = tn_dtype_size(dtype);
        int64_t few = 2 + pick(17), many = 2 + pick(38), batch = 1 + pick(2);
        tni_gemm_args g = {.m = i % 4 ? many : few, .n = i % 4 ? few : many, .batch = batch};
        g.k = (i % 2 ? 240 : 1020) + pick(40) + (i % 5 == 0 ? 1100 : 0);
        int64_t a_n = g.m * (g.k + 3), b_n = g.n * (g.k + 3), c_n = g.m * g.n * 2 + 3 * g.m + 120;
        char *a = malloc((size_t)(batch * a_n) * size), *b = malloc((size_t)(batch * b_n) * size);
        char *c[2] = {malloc((size_t)(batch * c_n) * size), malloc((size_t)(batch * c_n) * size)};
        char *before = malloc((size_t)(batch * c_n) * size);
        ASSERT(a && b && c[0] && c[1] && before);
        fill(a, dtype, batch * a_n);
        fill(b, dtype, batch * b_n);
        fill(before, dtype, batch * c_n);
        g.a = laid_out(a, a_ways[pick(3)], g.m, g.k);
        g.b = laid_out(b, b_ways[pick(3)], g.k, g.n);
        g.a.batch = a_n;
        g.b.batch = b_n;
        int64_t alpha = 1 + pick(2), beta = pick(3);
        int way = pick(REPEATED_ROW);
        for (int t = 0; t < 2; t++) {
            memcpy(c[t], before, (size_t)(batch * c_n) * size);
            g.c = laid_out(c[t], way, g.m, g.n);
            g.c.batch = c_n;
            g.d = g.c;
            ASSERT_OK(tn_set_num_threads(t ? 4 : 1));
            ASSERT_OK(tni_gemm(dtype, &g, tn_int(alpha), tn_int(beta)));
        }
        EXPECT(memcmp(c[0], c[1], (size_t)(batch * c_n) * size) == 0);
        for (int64_t e = 0; e < batch; e++) {
            tni_gemm_args one = g;
            one.a.data = a + (size_t)(e * a_n) * size;
            one.b.data = b + (size_t)(e * b_n) * size;
            one.c.data = c[1] + (size_t)(e * c_n) * size;
            expect_product(dtype, &one, alpha, beta, before + (size_t)(e * c_n) * size);
        }
        free(a);
        free(b);
        free(c[0]);
        free(c[1]);
        free(before);
    }
    ASSERT_OK(tn_set_num_threads(threads));
    tni_cpu_use(TNI_ISA_AVX512);
}

/* Fractions, so that the order of sums shows. */
static void fill_fractions(void *data, tn_dtype dtype, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double x = (double)(test_random() % 2001) / 1000.0 - 1.0;
        tni_scalar_store(tn_float(x), dtype, (char *)data + (size_t)i * tn_dtype_size(dtype));
    }
}

/* The short way for contiguous matrices against the plan for any, whose rows of C lie apart. */
TEST(tiny_products_have_the_bits_of_planned_ones_and_write_nothing_else)
{
    for (int i = 0; i < 3 * 2 * 200; i++) {
        tni_isa isa = (tni_isa)(TNI_ISA_BASE + i % 3);
        if (tni_cpu_use(isa) != isa)
            continue;
        tn_dtype dtype = i / 3 % 2 ? TN_DTYPE_F64 : TN_DTYPE_F32;
        const size_t size = tn_dtype_size(dtype);
        const int64_t m = 2 + pick(32), n = 2 + pick(32), k = 1 + pick(32);
        test_note("%s %s %lldx%lldx%lld", tni_isa_name(isa), tn_dtype_name(dtype), (long long)m,
                  (long long)n, (long long)k);
        char *a = malloc((size_t)(m * k) * size), *b = malloc((size_t)(k * n) * size);
        char *c = malloc((size_t)(m * n) * size + 64),
             *spread = malloc((size_t)(m * (n + 3)) * size);
        ASSERT(a && b && c && spread && tni_gemm_is_tiny(m, n, k));
        fill_fractions(a, dtype, m * k);
        fill_fractions(b, dtype, k * n);
        memset(c, 0x5a, (size_t)(m * n) * size + 64);
        tni_cpu_kernels()->gemm->tiny[dtype](m, n, k, a, b, c);
        tni_gemm_args g = {.m = m, .n = n, .k = k, .batch = 1};
        g.a = laid_out(a, ROWS, m, k);
        g.b = laid_out(b, ROWS, k, n);
        g.c = g.d = laid_out(spread, SPREAD_ROWS, m, n);
        ASSERT_OK(tni_gemm_plain(dtype, &g));
        for (int64_t r = 0; r < m; r++)
            EXPECT(!memcmp(c + (size_t)(r * n) * size, spread + (size_t)(r * (n + 3)) * size,
                           (size_t)n * size));
        for (size_t q = 0; q < 64; q++)
            EXPECT(c[(size_t)(m * n) * size + q] == 0x5a);
        free(a);
        free(b);
        free(c);
        free(spread);
    }
    tni_cpu_use(TNI_ISA_AVX512);
}

/* The right edge of a matrix at the end of its memory: reading beyond would be seen by a sanitizer.
 */
TEST(nothing_is_read_beyond_the_end_of_an_operand)
{
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if ((int)tni_cpu_use((tni_isa)isa) != isa)
            continue;
        for (int i = 0; i < 200; i++) {
            int64_t m = 1 + pick(10), n = 1 + pick(40), k = 1 + pick(10);
            float *a = malloc((size_t)(m * k) * 4), *b = malloc((size_t)(k * n) * 4);
            float *c = malloc((size_t)(m * n) * 4);
            ASSERT(a && b && c);
            fill(a, TN_DTYPE_F32, m * k);
            fill(b, TN_DTYPE_F32, k * n);
            tni_gemm_args g = {.m = m, .n = n, .k = k, .batch = 1};
            g.a = laid_out(a, pick(2), m, k);
            g.b = laid_out(b, pick(2), k, n);
            g.c = g.d = laid_out(c, pick(2), m, n);
            ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(0)));
            expect_product(TN_DTYPE_F32, &g, 1, 0, c);
            free(a);
            free(b);
            free(c);
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
}

/* Such a product is shared out when workers happen to be awake, and is not when they sleep. */
TEST(small_products_do_not_depend_on_who_is_awake)
{
    enum { MOST = 80 * 1024 }; /* 250 x 300 is the largest */
    float *a = malloc(MOST * sizeof *a), *b = malloc(MOST * sizeof *b);
    float *c[2] = {malloc(MOST * sizeof *a), malloc(MOST * sizeof *a)};
    ASSERT(a && b && c[0] && c[1]);
    for (int i = 0; i < MOST; i++) {
        a[i] = (float)(test_random() % 1000) / 3.0f;
        b[i] = (float)(test_random() % 1000) / 7.0f;
    }
    static const int64_t sizes[][3] = {{64, 64, 64},  {97, 40, 130}, {128, 128, 128},
                                       {33, 65, 600}, {40, 64, 512}, {16, 300, 250}};
    int threads = tn_num_threads();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int layout = 0; layout < 4; layout++) {
            tni_gemm_args g = {.m = sizes[i][0], .n = sizes[i][1], .k = sizes[i][2], .batch = 1};
            g.a = laid_out(a, layout & 1 ? COLUMNS : ROWS, g.m, g.k);
            g.b = laid_out(b, layout & 2 ? COLUMNS : ROWS, g.k, g.n);
            g.c = g.d = laid_out(c[0], ROWS, g.m, g.n);
            ASSERT_OK(tn_set_num_threads(1));
            ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(0)));
            ASSERT_OK(tn_set_num_threads(2));
            for (int time = 0; time < 100; time++) { /* by then they are awake */
                g.c = g.d = laid_out(c[1], ROWS, g.m, g.n);
                ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(0)));
                EXPECT(memcmp(c[0], c[1], (size_t)(g.m * g.n) * sizeof *a) == 0);
            }
        }
    }
    ASSERT_OK(tn_set_num_threads(threads));
    free(a);
    free(b);
    free(c[0]);
    free(c[1]);
}

TEST(results_do_not_depend_on_the_number_of_threads)
{
    enum { N = 330 };
    size_t nbytes = (size_t)N * N * 16;
    char *a = malloc(nbytes), *b = malloc(nbytes), *c[2] = {malloc(nbytes), malloc(nbytes)};
    ASSERT(a && b && c[0] && c[1]);
    int threads = tn_num_threads();
    for (int which = 0; which < 4; which++) {
        tn_dtype dtype = dtypes[which];
        double scale = 1.0 / 3;
        for (int64_t i = 0; i < (int64_t)N * N; i++) {
            tni_scalar_store(tn_complex(scale * (double)(test_random() % 1000), 0.7), dtype,
                             a + (size_t)i * tn_dtype_size(dtype));
            tni_scalar_store(tn_complex(scale * (double)(test_random() % 1000), 0.3), dtype,
                             b + (size_t)i * tn_dtype_size(dtype));
        }
        for (int shape = 0; shape < 3; shape++) {
            tni_gemm_args g = {
                .m = shape == 1 ? 1 : N, .n = shape == 2 ? 1 : N, .k = N, .batch = 1};
            g.a = laid_out(a, COLUMNS, g.m, g.k);
            g.b = laid_out(b, ROWS, g.k, g.n);
            for (int t = 0; t < 2; t++) {
                g.c = g.d = laid_out(c[t], ROWS, g.m, g.n);
                ASSERT_OK(tn_set_num_threads(t ? 4 : 1));
                ASSERT_OK(tni_gemm(dtype, &g, tn_int(1), tn_int(0)));
            }
            EXPECT(memcmp(c[0], c[1], (size_t)(g.m * g.n) * tn_dtype_size(dtype)) == 0);
        }
    }
    ASSERT_OK(tn_set_num_threads(threads));
    free(a);
    free(b);
    free(c[0]);
    free(c[1]);
}

TEST(a_product_leaks_nothing_whichever_allocation_fails)
{
    void *a = room(), *b = room(), *c = room();
    static const int layouts[][3] = {
        {ROWS, ROWS, ROWS}, {COLUMNS, COLUMNS, ROWS}, {SPREAD_BOTH, SPREAD_BOTH, SPREAD_BOTH}};
    int threads = tn_num_threads();
    ASSERT_OK(tn_set_num_threads(1));
    for (int which = 0; which < 11; which++) {
        for (int way = 0; way < 3; way++) {
            for (int narrow = 0; narrow < 2; narrow++) {
                tni_gemm_args g = {
                    .m = 30, .n = narrow ? 1 : 70, .k = narrow ? 90 : 60, .batch = 2};
                g.a = laid_out(a, layouts[way][0], g.m, g.k);
                g.b = laid_out(b, layouts[way][1], g.k, g.n);
                g.c = g.d = laid_out(c, layouts[way][2], g.m, g.n);
                g.c.batch = g.d.batch = 9000;
                fill(a, dtypes[which], ROOM);
                fill(b, dtypes[which], ROOM);
                tn_status rc = TN_INTERNAL;
                ASSERT_OK(tni_gemm(dtypes[which], &g, tn_int(1), tn_int(0)));
                int64_t before = tni_test_live;
                WITH_EACH_ALLOCATION_FAILING(rc)
                {
                    rc = tni_gemm(dtypes[which], &g, tn_int(1), tn_int(0));
                    if (rc != TN_OK)
                        EXPECT(rc == TN_NOMEM && tni_test_live == before);
                }
                EXPECT(tni_test_live == before);
            }
        }
    }
    ASSERT_OK(tn_set_num_threads(threads));
    free(a);
    free(b);
    free(c);
}

TEST(products_of_float8_leak_nothing_whichever_allocation_fails)
{
    const tn_tensor_opts opts = tn_opts(TN_DTYPE_F8E4M3, TN_CPU);
    const int64_t left[] = {3, 4}, right[] = {4, 5}, whole[] = {3, 5};
    tn_tensor *a = NULL, *b = NULL, *c = NULL, *out = NULL;
    tn_status rc = TN_INTERNAL;
    ASSERT_OK(tn_ones(left, 2, &opts, &a));
    ASSERT_OK(tn_ones(right, 2, &opts, &b));
    ASSERT_OK(tn_ones(whole, 2, &opts, &c));
    ASSERT_OK(tn_addmm(c, a, b, tn_int(2), tn_int(3), &out)); /* what is made once */
    tn_tensor_unref(out);
    ASSERT_OK(tn_mm(a, b, &out));
    tn_tensor_unref(out);
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        out = NULL;
        rc = tn_addmm(c, a, b, tn_int(2), tn_int(3), &out);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !out);
        tn_tensor_unref(out);
        out = NULL;
        if (rc == TN_OK)
            rc = tn_mm(a, b, &out);
        tn_tensor_unref(out);
        EXPECT(tni_test_live <= before);
    }
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(c);
}
