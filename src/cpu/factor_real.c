/* SPDX-License-Identifier: MIT */
/* cpu/factor_real.c: the factorisations of factor.h for matrices without imaginary parts, in half
 * the room and without half the work. Rows are what all loops run over; large matrices are worked
 * on in blocks, most of whose work is a matrix product. */
#include "cpu/factor_real.h"
#include <math.h>
#include <string.h>
#include "cpu/factor_rows.h"
#include "cpu/gemm.h"

/* Rows or columns that are worked on one by one; what they change elsewhere is a matrix product.
 * Results depend on it, not on how many threads there are. */
enum { BLOCK = 32, BEHIND = 64 };

/* @p c [m, n], whose rows are @p step apart, minus @p a [m, k] times @p b [k, n]. */
static tn_status subtract_product(tni_matrix a, tni_matrix b, double *c, int64_t step, int64_t m,
                                  int64_t n, int64_t k)
{
    const tni_matrix to = {c, step, 1, 0};
    const tni_gemm_args g = {.m = m, .n = n, .k = k, .batch = 1, .a = a, .b = b, .c = to, .d = to};
    return tni_gemm(TN_DTYPE_F64, &g, tn_float(-1.0), tn_float(1.0));
}

bool tni_real_only(const tni_cd *a, int64_t n)
{
    const double *x = (const double *)a;
    for (int64_t i = 0; i < n; i++)
        if (x[2 * i + 1] != 0.0)
            return false;
    return true;
}

void tni_real_pack(tni_cd *a, int64_t n)
{
    double *x = (double *)a;
    for (int64_t i = 1; i < n; i++)
        x[i] = x[2 * i];
}

void tni_real_unpack(tni_cd *a, int64_t n)
{
    double *x = (double *)a;
    for (int64_t i = n - 1; i >= 0; i--) {
        x[2 * i] = x[i];
        x[2 * i + 1] = 0.0;
    }
}

/* Rows @p first to @p end of a triangle, of which those before them, as they are solved, have been
 * taken away. @p b has rows of @p k numbers, @p step apart. */
static void substitute(tni_real_view a, int64_t first, int64_t end, double *b, int64_t step,
                       int64_t k, bool upper, bool unit)
{
    const tni_factor_rows *rows = tni_cpu_kernels()->factor_rows;
    for (int64_t s = first; s < end; s++) {
        int64_t i = upper ? first + end - 1 - s : s, from = upper ? i + 1 : first;
        rows->subtract_all(b + i * step, b + from * step, step,
                           a.data + i * a.row + from * a.column, a.column,
                           upper ? end - i - 1 : i - first, k);
        double d = a.data[i * (a.row + a.column)];
        for (int64_t c = 0; !unit && c < k; c++)
            b[i * step + c] /= d;
    }
}

static void exchange(double *a, double *b, int64_t n)
{
    for (int64_t j = 0; j < n; j++) {
        double t = a[j];
        a[j] = b[j];
        b[j] = t;
    }
}

/* Columns @p first to @p end of the rows from there on, which are taken from the columns up to
 * @p until; whole rows are changed over. */
static void lu_columns(double *a, int64_t m, int64_t n, int64_t first, int64_t end, int64_t until,
                       int32_t *pivots, bool pivot, int32_t *info)
{
    const tni_factor_rows *rows = tni_cpu_kernels()->factor_rows;
    for (int64_t i = first; i < end; i++) {
        int64_t best = i;
        for (int64_t r = i + 1; pivot && r < m; r++)
            if (fabs(a[r * n + i]) > fabs(a[best * n + i]))
                best = r;
        pivots[i] = (int32_t)(best + 1);
        if (best != i)
            exchange(a + i * n, a + best * n, n);
        double *from = a + i * n + i;
        if (from[0] == 0.0)
            *info = *info ? *info : (int32_t)(i + 1);
        else
            rows->eliminate(from + n, n, m - i - 1, from + 1, from[0], until - i - 1);
    }
}

tn_status tni_real_lu(double *a, int64_t m, int64_t n, int32_t *pivots, bool pivot, int32_t *info)
{
    int64_t k = m < n ? m : n;
    *info = 0;
    /* Without pivots what stands below a 0 is no factor: it takes nothing from the columns behind.
     */
    if (k <= BLOCK || !pivot) {
        lu_columns(a, m, n, 0, k, n, pivots, pivot, info);
        return TN_OK;
    }
    for (int64_t first = 0; first < k; first += BLOCK) {
        int64_t end = k - first < BLOCK ? k : first + BLOCK, behind = n - end;
        double *corner = a + first * n + first;
        lu_columns(a, m, n, first, end, end, pivots, pivot, info);
        if (!behind)
            break;
        substitute((tni_real_view){corner, n, 1}, 0, end - first, a + first * n + end, n, behind,
                   false, true);
        if (end < m)
            TN_TRY(subtract_product((tni_matrix){a + end * n + first, n, 1, 0},
                                    (tni_matrix){a + first * n + end, n, 1, 0}, a + end * n + end,
                                    n, m - end, behind, end - first));
    }
    return TN_OK;
}

/* The lower factor over @p a [n, n], whose rows are @p step apart. Returns 0, or the order of the
 * first leading minor that is not positive, where it stops. */
static int64_t cholesky_by_rows(double *a, int64_t n, int64_t step)
{
    const tni_factor_rows *rows = tni_cpu_kernels()->factor_rows;
    for (int64_t i = 0; i < n; i++) {
        double *row = a + i * step;
        for (int64_t j = 0; j < i; j++)
            row[j] = (row[j] - rows->dot(row, a + j * step, j)) / a[j * step + j];
        double d = row[i] - rows->dot(row, row, i);
        row[i] = sqrt(d);
        if (!(d > 0.0))
            return i + 1;
    }
    return 0;
}

/* @p to [n, m] is @p from [m, n] by columns; rows of both are @p step apart. */
static void transpose(double *to, const double *from, int64_t step, int64_t m, int64_t n)
{
    enum { TILE = 8 };
    for (int64_t first = 0; first < m; first += TILE)
        for (int64_t j = 0; j < n; j++)
            for (int64_t i = first; i < m && i < first + TILE; i++)
                to[j * step + i] = from[i * step + j];
}

/* What columns @p first to @p end of the factor, which stand as rows above the diagonal, take from
 * the lower triangle behind them. */
static tn_status cholesky_behind(double *a, int64_t n, int64_t first, int64_t end)
{
    const double *rows = a + first * n;
    for (int64_t i = end; i < n; i += BEHIND) {
        int64_t height = n - i < BEHIND ? n - i : BEHIND;
        TN_TRY(subtract_product((tni_matrix){rows + i, 1, n, 0}, (tni_matrix){rows + end, n, 1, 0},
                                a + i * n + end, n, height, i + height - end, end - first));
    }
    return TN_OK;
}

tn_status tni_real_cholesky(double *a, int64_t n, int32_t *info)
{
    *info = 0;
    for (int64_t first = 0; first < n && !*info; first += BLOCK) {
        int64_t width = n - first < BLOCK ? n - first : BLOCK, end = first + width;
        double *corner = a + first * n + first, *above = corner + width,
               *below = a + end * n + first;
        int64_t order = cholesky_by_rows(corner, width, n);
        if (order)
            *info = (int32_t)(first + order);
        if (order || end == n)
            break;
        transpose(above, below, n, n - end, width);
        substitute((tni_real_view){corner, n, 1}, 0, width, above, n, n - end, false, false);
        transpose(below, above, n, width, n - end);
        TN_TRY(cholesky_behind(a, n, first, end));
    }
    for (int64_t i = 0; i < n; i++)
        memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *a);
    return TN_OK;
}

/* Rows of @p a [length, n] minus v times (v^T times them) times tau; v has a 1 first and lies
 * @p step apart. @p sum: room for n numbers. */
static void reflect(const double *v, int64_t step, double tau, double *a, int64_t stride,
                    int64_t length, int64_t n, double *sum)
{
    const tni_factor_rows *rows = tni_cpu_kernels()->factor_rows;
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t r = 0; r < length; r++)
        rows->subtract(sum, a + r * stride, r ? -tau * v[r * step] : -tau, n);
    for (int64_t r = 0; r < length; r++)
        rows->subtract(a + r * stride, sum, r ? v[r * step] : 1.0, n);
}

void tni_real_reflect(double *a, int64_t m, int64_t n, double *tau, double *room)
{
    int64_t k = m < n ? m : n;
    for (int64_t i = 0; i < k; i++) {
        double below = 0.0, *x = a + i * n + i, alpha = x[0];
        for (int64_t r = 1; r < m - i; r++)
            below += x[r * n] * x[r * n];
        if (below == 0.0) {
            tau[i] = 0.0;
            continue;
        }
        double beta = -copysign(sqrt(alpha * alpha + below), alpha);
        tau[i] = (beta - alpha) / beta;
        double scale = 1.0 / (alpha - beta);
        for (int64_t r = 1; r < m - i; r++)
            x[r * n] *= scale;
        x[0] = beta;
        if (n - i > 1)
            reflect(x, n, tau[i], x + 1, n, m - i, n - i - 1, room);
    }
}

void tni_real_product(const tni_cd *a, int64_t m, int64_t n, const tni_cd *tau, int64_t k,
                      double *q, int64_t columns, double *room)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < columns; j++)
            q[i * columns + j] = i == j ? 1.0 : 0.0;
    for (int64_t i = k - 1; i >= 0; i--)
        if (i < columns) /* columns before are 0 in all these rows */
            reflect((const double *)(a + i * n + i), 2 * n, creal(tau[i]), q + i * columns + i,
                    columns, m - i, columns - i, room);
}

tn_status tni_real_triangle(tni_real_view a, int64_t n, double *b, int64_t k, bool upper, bool unit)
{
    for (int64_t done = 0; done < n && k; done += BLOCK) {
        int64_t width = n - done < BLOCK ? n - done : BLOCK;
        int64_t first = upper ? n - done - width : done, solved = upper ? n - done : 0;
        if (done)
            TN_TRY(subtract_product(
                (tni_matrix){a.data + first * a.row + solved * a.column, a.row, a.column, 0},
                (tni_matrix){b + solved * k, k, 1, 0}, b + first * k, k, width, k, done));
        substitute(a, first, first + width, b, k, k, upper, unit);
    }
    return TN_OK;
}
