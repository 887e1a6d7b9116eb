/* SPDX-License-Identifier: MIT */
/* cpu/factor_real.c: the factorisations of factor.h for matrices without imaginary parts, in half
 * the room and without half the work. Rows are what all loops run over. */
#include "cpu/factor_real.h"
#include <math.h>
#include <string.h>
#include "cpu/factor_rows.h"

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

int64_t tni_real_lu(double *a, int64_t m, int64_t n, int32_t *pivots, bool pivot)
{
    const tni_factor_rows *rows = tni_cpu_kernels()->factor_rows;
    int64_t k = m < n ? m : n, info = 0;
    for (int64_t i = 0; i < k; i++) {
        int64_t best = i;
        for (int64_t r = i + 1; pivot && r < m; r++)
            if (fabs(a[r * n + i]) > fabs(a[best * n + i]))
                best = r;
        pivots[i] = (int32_t)(best + 1);
        for (int64_t j = 0; best != i && j < n; j++) {
            double t = a[i * n + j];
            a[i * n + j] = a[best * n + j];
            a[best * n + j] = t;
        }
        double d = a[i * n + i];
        if (d == 0.0) {
            info = info ? info : i + 1;
            continue;
        }
        for (int64_t r = i + 1; r < m; r++) {
            double f = a[r * n + i] / d;
            a[r * n + i] = f;
            if (f != 0.0)
                rows->subtract(a + r * n + i + 1, a + i * n + i + 1, f, n - i - 1);
        }
    }
    return info;
}

int64_t tni_real_cholesky(double *a, int64_t n)
{
    const tni_factor_rows *rows = tni_cpu_kernels()->factor_rows;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++)
            a[i * n + j] = (a[i * n + j] - rows->dot(a + i * n, a + j * n, j)) / a[j * n + j];
        double d = a[i * n + i] - rows->dot(a + i * n, a + i * n, i);
        a[i * n + i] = sqrt(d);
        memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *a);
        if (!(d > 0.0))
            return i + 1;
    }
    return 0;
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
        reflect((const double *)(a + i * n + i), 2 * n, creal(tau[i]), q + i * columns, columns,
                m - i, columns, room);
}

void tni_real_triangle(const tni_cd *a, int64_t n, double *b, int64_t k, bool upper, bool unit)
{
    const tni_factor_rows *rows = tni_cpu_kernels()->factor_rows;
    for (int64_t s = 0; s < n; s++) {
        int64_t i = upper ? n - 1 - s : s, first = upper ? i + 1 : 0;
        rows->subtract_all(b + i * k, b + first * k, k, (const double *)(a + i * n + first), 2,
                           upper ? n - i - 1 : i, k);
        for (int64_t c = 0; !unit && c < k; c++)
            b[i * k + c] /= creal(a[i * n + i]);
    }
}
