/* SPDX-License-Identifier: MIT */
/* cpu/factor_real.c: the factorisations of factor.h for matrices without imaginary parts, in half
 * the room and without half the work. Rows are what all loops run over; large matrices are worked
 * on in halves, most of whose work is a matrix product. */
#include "cpu/factor_real.h"
#include <math.h>
#include <string.h>
#include "cpu/factor_rows.h"
#include "cpu/gemm.h"

/* Rows or columns that are worked on one by one; what they change elsewhere is a matrix product.
 * Results depend on it, not on how many threads there are. */
enum { BLOCK = 32, BEHIND = 64 };

/* Half of what is larger than a block, in whole blocks. */
static int64_t half_of(int64_t n)
{
    return (n / 2 + BLOCK - 1) / BLOCK * BLOCK;
}

#define T       double
#define NAME(x) x##_f64
#define ROWS    (&tni_cpu_kernels()->factor_rows->f64)
#define DTYPE   TN_DTYPE_F64
#include "cpu/factor_blocks.inc"

#define T       float
#define NAME(x) x##_f32
#define ROWS    (&tni_cpu_kernels()->factor_rows->f32)
#define DTYPE   TN_DTYPE_F32
#include "cpu/factor_blocks.inc"

const tni_real_blocks *tni_real_blocks_of(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F64 ? &blocks_f64 : dtype == TN_DTYPE_F32 ? &blocks_f32 : NULL;
}

/* ---- doubles among complex ones ---- */

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

/* Rows of @p a [length, n] minus v times (v^T times them) times tau; v has a 1 first and lies
 * @p step apart. @p sum: room for n numbers. */
static void reflect(const double *v, int64_t step, double tau, double *a, int64_t stride,
                    int64_t length, int64_t n, double *sum)
{
    const tni_factor_rows_f64 *rows = &tni_cpu_kernels()->factor_rows->f64;
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
