/* SPDX-License-Identifier: MIT */
/* cpu/lapack_blocks.c: factorisations by LAPACK in blocks: what a block changes elsewhere is a
 * matrix product, which all threads share. See lapack.h. */
#include "cpu/gemm.h"
#include "cpu/lapack.h"

/* Columns that are left to the library alone. Results depend on it, not on how many threads there
 * are. */
enum { WIDTH = 256, SOLVED = 64 };

/* Element (i, j) of a matrix whose columns are @p lead apart. */
static void *at(const tni_lapack *lib, const void *a, int64_t lead, int64_t i, int64_t j)
{
    return (char *)(uintptr_t)a + (size_t)(j * lead + i) * lib->item;
}

/* @p c [m, n] minus @p a [m, k] times @p b [k, n], all by columns that are @p lead apart: the
 * product, by rows, of the transposed. */
static tn_status subtract_product(const tni_lapack *lib, const void *a, const void *b, void *c,
                                  int64_t lead, int64_t m, int64_t n, int64_t k)
{
    const tni_matrix to = {c, lead, 1, 0};
    const tni_gemm_args g = {.m = n,
                             .n = m,
                             .k = k,
                             .batch = 1,
                             .a = {b, lead, 1, 0},
                             .b = {a, lead, 1, 0},
                             .c = to,
                             .d = to};
    return tni_gemm(lib->dtype, &g, tn_float(-1.0), tn_float(1.0));
}

tn_status tni_lapack_lu(const tni_lapack *lib, int64_t m, int64_t n, void *a, int32_t *pivots,
                        int32_t *info)
{
    int64_t k = m < n ? m : n;
    *info = 0;
    if (k <= WIDTH) {
        lib->lu((int)m, (int)n, a, (int)m, pivots, info);
        return TN_OK;
    }
    for (int64_t first = 0; first < k; first += WIDTH) {
        int64_t width = k - first < WIDTH ? k - first : WIDTH, end = first + width;
        int32_t zero = 0;
        lib->lu((int)(m - first), (int)width, at(lib, a, m, first, first), (int)m, pivots + first,
                &zero);
        if (zero && !*info)
            *info = (int32_t)first + zero;
        for (int64_t i = first; i < end; i++)
            pivots[i] += (int32_t)first;
        lib->exchange((int)first, a, (int)m, (int)first + 1, (int)end, pivots);
        if (end == n)
            break;
        lib->exchange((int)(n - end), at(lib, a, m, 0, end), (int)m, (int)first + 1, (int)end,
                      pivots);
        lib->triangle("LLNU", (int)width, (int)(n - end), at(lib, a, m, first, first), (int)m,
                      at(lib, a, m, first, end), (int)m);
        if (end < m)
            TN_TRY(subtract_product(lib, at(lib, a, m, end, first), at(lib, a, m, first, end),
                                    at(lib, a, m, end, end), m, m - end, n - end, width));
    }
    return TN_OK;
}

/* ---- triangles: in halves, whose product takes most of the time ---- */

typedef struct triangle {
    const tni_lapack *lib;
    const void *a; /* by columns, or by rows */
    void *b;       /* by columns */
    int64_t n, k;
    bool by_rows, upper, unit;
} triangle;

/* Rows @p first to @p end, from which those that were solved before have been taken. */
static tn_status solve_rows(const triangle *t, int64_t first, int64_t end)
{
    const tni_lapack *lib = t->lib;
    int64_t n = t->n, size = end - first;
    if (size <= SOLVED) {
        const char how[] = {'L', t->upper != t->by_rows ? 'U' : 'L', t->by_rows ? 'T' : 'N',
                            t->unit ? 'U' : 'N'};
        lib->triangle(how, (int)size, (int)t->k, at(lib, t->a, n, first, first), (int)n,
                      at(lib, t->b, n, first, 0), (int)n);
        return TN_OK;
    }
    int64_t middle = first + (size / 2 + SOLVED - 1) / SOLVED * SOLVED;
    int64_t low = t->upper ? middle : first, high = t->upper ? end : middle; /* come first */
    int64_t from = t->upper ? first : middle, to = t->upper ? middle : end;
    TN_TRY(solve_rows(t, low, high));
    const void *factor = t->by_rows ? at(lib, t->a, n, low, from) : at(lib, t->a, n, from, low);
    const tni_matrix x = {at(lib, t->b, n, from, 0), n, 1, 0};
    const tni_gemm_args g = {.m = t->k, /* by rows, the product of the transposed */
                             .n = to - from,
                             .k = high - low,
                             .batch = 1,
                             .a = {at(lib, t->b, n, low, 0), n, 1, 0},
                             .b = {factor, t->by_rows ? 1 : n, t->by_rows ? n : 1, 0},
                             .c = x,
                             .d = x};
    TN_TRY(tni_gemm(lib->dtype, &g, tn_float(-1.0), tn_float(1.0)));
    return solve_rows(t, from, to);
}

tn_status tni_lapack_triangle(const tni_lapack *lib, int64_t n, const void *a, bool by_rows,
                              bool upper, bool unit, void *b, int64_t k)
{
    const triangle t = {lib, a, b, n, k, by_rows, upper, unit};
    return n && k ? solve_rows(&t, 0, n) : TN_OK;
}

tn_status tni_lapack_solve(const tni_lapack *lib, int64_t n, const void *lu, const int32_t *pivots,
                           void *b, int64_t k)
{
    lib->exchange((int)k, b, (int)n, 1, (int)n, pivots);
    TN_TRY(tni_lapack_triangle(lib, n, lu, false, false, true, b, k));
    return tni_lapack_triangle(lib, n, lu, false, true, false, b, k);
}
