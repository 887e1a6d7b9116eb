/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_gemm_large.c: products that are computed over copies in blocks
 * (cpu/gemm_packed.h): right in every layout and instruction set, the same bits for any number of
 * threads, nothing left behind when memory is short. */
#include <stdlib.h>
#include <string.h>
#include "cpu/gemm_packed.h"
#include "cpu/loops.h"
#include "harness/test.h"

/* Sizes at which a product is cut along its rows, its columns, the terms of its sums, and into no
 * whole panels; with sums so short that B is not copied, and so long that its copy is not kept; and
 * of few rows; with rows of A that share the lines of a way of the first-level cache. */
static const int64_t sizes[][3] = {
    {1030, 70, 130}, {99, 2070, 60}, {101, 83, 1300},  {300, 200, 150},  {24, 1100, 61},
    {9, 300, 1100},  {64, 500, 400}, {100, 66, 16400}, {115, 410, 1024}, {40, 301, 1024},
};
enum { CASES = sizeof sizes / sizeof *sizes, ROOM = 1100 * 2100 };

typedef struct operands {
    float *a, *b, *c, *d;
} operands;

static float *numbers(void)
{
    float *x = aligned_alloc(64, ROOM * sizeof *x);
    ASSERT(x != NULL);
    for (int64_t i = 0; i < ROOM; i++) /* whole: sums are exact in any order */
        x[i] = (float)(test_random() % 5) - 2;
    return x;
}

static operands make(void)
{
    return (operands){numbers(), numbers(), numbers(), numbers()};
}

static void release(operands *o)
{
    free(o->a);
    free(o->b);
    free(o->c);
    free(o->d);
}

/* Rows or columns contiguous. */
static tni_matrix laid_out(const float *data, bool by_columns, int64_t rows, int64_t columns)
{
    return (tni_matrix){data, by_columns ? 1 : columns, by_columns ? rows : 1, 0};
}

static tni_gemm_args product(const operands *o, int which, int layout)
{
    tni_gemm_args g = {
        .m = sizes[which][0], .n = sizes[which][1], .k = sizes[which][2], .batch = 1};
    g.a = laid_out(o->a, layout & 1, g.m, g.k);
    g.b = laid_out(o->b, layout & 2, g.k, g.n);
    g.c = laid_out(o->c, false, g.m, g.n);
    g.d = (tni_matrix){o->d, 0, 1, 0}; /* one row for all, as a bias is */
    return g;
}

static bool is_right(const tni_gemm_args *g, float alpha, float beta)
{
    const float *a = g->a.data, *b = g->b.data, *c = g->c.data, *d = g->d.data;
    for (int64_t i = 0; i < g->m; i++) {
        for (int64_t j = 0; j < g->n; j += 1 + j % 7) {
            float sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += a[i * g->a.row + p * g->a.col] * b[p * g->b.row + j * g->b.col];
            if (c[i * g->c.row + j] != alpha * sum + beta * d[i * g->d.row + j])
                return false;
        }
    }
    return true;
}

TEST(large_products_are_right_in_every_layout_and_instruction_set)
{
    operands o = make();
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if ((int)tni_cpu_use((tni_isa)isa) != isa)
            continue;
        for (int which = 0; which < CASES; which++) {
            for (int layout = 0; layout < 4; layout++) {
                int beta = (which + layout) % 2;
                tni_gemm_args g = product(&o, which, layout);
                test_note("%s %lldx%lldx%lld layout %d beta %d", tni_isa_name((tni_isa)isa),
                          (long long)g.m, (long long)g.n, (long long)g.k, layout, beta);
                ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(2), tn_int(beta)));
                EXPECT(is_right(&g, 2, (float)beta));
            }
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
    release(&o);
}

/* One thread's part, however its operands come: which way is chosen depends on caches and sizes. */
static void read_each_way(const tni_gemm_large *kernel, const operands *o, int which)
{
    static const float two = 2, one = 1;
    for (int way = 0; way < 9; way++) {
        const tni_gemm_reads reads = (tni_gemm_reads)(way / 3);
        const tni_gemm_copies copies = (tni_gemm_copies)(way % 3);
        const tni_gemm_args g = product(o, which, 0);
        test_note("%lldx%lldx%lld reads %d copies %d", (long long)g.m, (long long)g.n,
                  (long long)g.k, (int)reads, (int)copies);
        const bool keeps = copies != TNI_GEMM_COPY;
        void *room = aligned_alloc(
            64, (tni_gemm_deep_room(kernel, &g, keeps, reads, sizeof(float)) + 63) / 64 * 64);
        ASSERT(room != NULL);
        if (copies == TNI_GEMM_KEPT)
            kernel->run(&g, &one, NULL, room, TNI_GEMM_COPY_KEEP, reads);
        kernel->run(&g, &two, &one, room, copies, reads);
        EXPECT(is_right(&g, 2, 1));
        free(room);
    }
}

TEST(large_products_are_right_however_their_rows_are_read_and_copied)
{
    operands o = make();
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if ((int)tni_cpu_use((tni_isa)isa) != isa)
            continue;
        for (int which = 0; which < CASES; which++)
            read_each_way(&tni_cpu_kernels()->gemm->large[TN_DTYPE_F32], &o, which);
    }
    tni_cpu_use(TNI_ISA_AVX512);
    release(&o);
}

TEST(each_way_of_a_large_product_is_taken)
{
    operands o = make();
    tni_gemm_args rows = product(&o, 0, 2);
    tni_gemm_args few = product(&o, 4, 2), lying = product(&o, 4, 0);
    const tni_gemm_large *kernel = &tni_cpu_kernels()->gemm->large[TN_DTYPE_F32];
    EXPECT(tni_gemm_choose_way(kernel, &rows, NULL) == TNI_GEMM_BY_ROWS);
    EXPECT(tni_gemm_choose_way(kernel, &few, NULL) == TNI_GEMM_TURNED);
    EXPECT(tni_gemm_choose_way(kernel, &lying, NULL) == TNI_GEMM_TILES);
    release(&o);
}

static double *doubled(const float *x, int64_t n)
{
    double *to = malloc((size_t)n * sizeof *to);
    ASSERT(to != NULL);
    for (int64_t i = 0; i < n; i++)
        to[i] = (double)x[i];
    return to;
}

TEST(large_products_of_doubles_are_right_in_every_layout_and_instruction_set)
{
    operands o = make();
    for (int i = 0; i < 3 * CASES * 4; i++) {
        tni_isa isa = (tni_isa)(TNI_ISA_BASE + i % 3);
        if (tni_cpu_use(isa) != isa)
            continue;
        const int which = i / 12, layout = i / 3 % 4, beta = (which + layout + i) % 2;
        tni_gemm_args single = product(&o, which, layout), g = single;
        double *a = doubled(o.a, g.m * g.k), *b = doubled(o.b, g.k * g.n);
        double *c = doubled(o.c, g.m * g.n), *d = doubled(o.d, g.n);
        g.a.data = a;
        g.b.data = b;
        g.c.data = c;
        g.d.data = d;
        ASSERT_OK(tni_gemm(TN_DTYPE_F64, &g, tn_int(2), tn_int(beta)));
        for (int64_t at = 0; at < g.m * g.n; at++)
            o.c[at] = (float)c[at]; /* sums of small whole numbers: exact in both */
        test_note("%s %lldx%lldx%lld layout %d beta %d", tni_isa_name(isa), (long long)g.m,
                  (long long)g.n, (long long)g.k, layout, beta);
        EXPECT(is_right(&single, 2, (float)beta));
        free(a);
        free(b);
        free(c);
        free(d);
    }
    tni_cpu_use(TNI_ISA_AVX512);
    release(&o);
}

TEST(threads_copy_for_themselves_where_what_they_copy_is_small)
{
    int threads = tn_num_threads();
    const tni_gemm_packed few = {.m = 500, .n = 64, .k = 400},
                          more = {.m = 500, .n = 96, .k = 1100};
    ASSERT_OK(tn_set_num_threads(2));
    EXPECT(tni_gemm_is_apart(&few));
    EXPECT(!tni_gemm_is_apart(&more));
    ASSERT_OK(tn_set_num_threads(8)); /* too few rows for each */
    EXPECT(!tni_gemm_is_apart(&few));
    ASSERT_OK(tn_set_num_threads(threads));
}

TEST(large_products_do_not_depend_on_the_number_of_threads)
{
    operands o = make();
    int threads = tn_num_threads();
    for (int64_t i = 0; i < ROOM; i++) /* now sums are rounded */
        o.a[i] += (float)(test_random() % 1000) * 0.001f;
    float *kept = malloc(ROOM * sizeof *kept);
    ASSERT(kept != NULL);
    for (int which = 0; which < CASES; which++) {
        for (int layout = 0; layout < 4; layout++) {
            tni_gemm_args g = product(&o, which, layout);
            ASSERT_OK(tn_set_num_threads(1));
            ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(layout & 1)));
            memcpy(kept, o.c, (size_t)(g.m * g.n) * sizeof *kept);
            for (int n = 2; n <= 9; n += 1 + n / 4) { /* 2, 3, 4, 6, 8: the cut is another */
                ASSERT_OK(tn_set_num_threads(n));
                ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(layout & 1)));
                EXPECT(memcmp(kept, o.c, (size_t)(g.m * g.n) * sizeof *kept) == 0);
            }
        }
    }
    ASSERT_OK(tn_set_num_threads(threads));
    free(kept);
    release(&o);
}

/* B as runs of seven elements, nine apart, and a batch of two. */
enum { GATHER_M = 61, GATHER_N = 700, GATHER_K = 530, GATHER_ROW = GATHER_N / 7 * 9 + 5 };

TEST(large_products_of_a_gathered_operand_are_right_for_any_number_of_threads)
{
    operands o = make();
    int threads = tn_num_threads();
    static int64_t at[GATHER_K], line[GATHER_N / 7];
    for (int64_t i = 0; i < GATHER_K; i++)
        at[i] = i * GATHER_ROW;
    for (int64_t i = 0; i < GATHER_N / 7; i++)
        line[i] = i * 9;
    const tni_gathered gathered = {at, line, 7};
    const int64_t b_batch = GATHER_K * (int64_t)GATHER_ROW + 3;
    const tni_gemm_args g = {.m = GATHER_M,
                             .n = GATHER_N,
                             .k = GATHER_K,
                             .batch = 2,
                             .a = {o.a, GATHER_K, 1, GATHER_M * GATHER_K},
                             .b = {.data = o.b, .batch = b_batch},
                             .gather_b = &gathered,
                             .c = {o.c, GATHER_N, 1, GATHER_M * GATHER_N},
                             .d = {o.c, GATHER_N, 1, GATHER_M * GATHER_N}};
    ASSERT(2 * b_batch + TNI_GATHER_SLACK < ROOM);
    for (int n = 1; n <= 4; n++) {
        ASSERT_OK(tn_set_num_threads(n));
        ASSERT_OK(tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(0)));
        for (int64_t e = 0; e < 2; e++) {
            for (int64_t j = 0; j < GATHER_N; j += 1 + j % 5) {
                const float *b = o.b + e * b_batch + j / 7 * 9 + j % 7;
                for (int64_t i = 0; i < GATHER_M; i++) {
                    const float *a = o.a + (e * GATHER_M + i) * GATHER_K;
                    float sum = 0;
                    for (int64_t p = 0; p < GATHER_K; p++)
                        sum += a[p] * b[p * GATHER_ROW];
                    EXPECT(o.c[(e * GATHER_M + i) * GATHER_N + j] == sum);
                }
            }
        }
    }
    ASSERT_OK(tn_set_num_threads(threads));
    release(&o);
}

TEST(a_large_product_leaks_nothing_whichever_allocation_fails)
{
    operands o = make();
    int threads = tn_num_threads();
    ASSERT_OK(tn_set_num_threads(1));
    for (int which = 2; which < 2 * CASES; which++) {
        tni_gemm_args g = product(&o, which % CASES, which < CASES ? 2 : 3);
        tn_status rc = TN_INTERNAL;
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = tni_gemm(TN_DTYPE_F32, &g, tn_int(1), tn_int(0));
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && tni_test_live == before);
        }
        EXPECT(tni_test_live == before);
    }
    ASSERT_OK(tn_set_num_threads(threads));
    release(&o);
}
