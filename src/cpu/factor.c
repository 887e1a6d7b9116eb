/* SPDX-License-Identifier: MIT */
/* cpu/factor.c: LU, Cholesky and QR factorisations and triangular systems. See factor.h. */
#include "cpu/factor.h"
#include <math.h>
#include <string.h>
#include "cpu/factor_real.h"

typedef tni_cd cd;

/* Without the checks for infinities that the C language asks for. */
static inline cd times(cd a, cd b)
{
    double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
    return CMPLX(ar * br - ai * bi, ar * bi + ai * br);
}

static inline double square(cd a)
{
    return creal(a) * creal(a) + cimag(a) * cimag(a);
}

/* row -= factor * other, for n elements. */
static void subtract(cd *row, const cd *other, cd factor, int64_t n)
{
    for (int64_t j = 0; j < n; j++)
        row[j] -= times(factor, other[j]);
}

/* What LAPACK compares when it looks for a pivot. */
static double taxicab(cd x)
{
    return fabs(creal(x)) + fabs(cimag(x));
}

tn_status tni_factor_lu(cd *a, int64_t m, int64_t n, int32_t *pivots, bool pivot, int32_t *info)
{
    int64_t k = m < n ? m : n;
    *info = 0;
    if (tni_real_only(a, m * n)) {
        tni_real_pack(a, m * n);
        tn_status status = tni_real_blocks_of(TN_DTYPE_F64)->lu(a, m, n, pivots, pivot, info);
        tni_real_unpack(a, m * n);
        return status;
    }
    for (int64_t i = 0; i < k; i++) {
        int64_t best = i;
        for (int64_t r = i + 1; pivot && r < m; r++)
            if (taxicab(a[r * n + i]) > taxicab(a[best * n + i]))
                best = r;
        pivots[i] = (int32_t)(best + 1);
        if (best != i)
            for (int64_t j = 0; j < n; j++) {
                cd t = a[i * n + j];
                a[i * n + j] = a[best * n + j];
                a[best * n + j] = t;
            }
        cd d = a[i * n + i];
        if (creal(d) == 0.0 && cimag(d) == 0.0) {
            *info = *info ? *info : (int32_t)(i + 1);
            continue;
        }
        for (int64_t r = i + 1; r < m; r++) {
            cd f = a[r * n + i] / d;
            a[r * n + i] = f;
            if (creal(f) != 0.0 || cimag(f) != 0.0)
                subtract(a + r * n + i + 1, a + i * n + i + 1, f, n - i - 1);
        }
    }
    return TN_OK;
}

tn_status tni_factor_cholesky(cd *a, int64_t n, int32_t *info)
{
    *info = 0;
    if (tni_real_only(a, n * n)) {
        tni_real_pack(a, n * n);
        tn_status status = tni_real_blocks_of(TN_DTYPE_F64)->cholesky(a, n, info);
        tni_real_unpack(a, n * n);
        return status;
    }
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++) {
            cd s = a[i * n + j];
            for (int64_t k = 0; k < j; k++)
                s -= times(a[i * n + k], conj(a[j * n + k]));
            a[i * n + j] = s / creal(a[j * n + j]);
        }
        double d = creal(a[i * n + i]);
        for (int64_t k = 0; k < i; k++)
            d -= square(a[i * n + k]);
        a[i * n + i] = sqrt(d);
        if (!(d > 0.0)) {
            *info = (int32_t)(i + 1);
            break;
        }
    }
    for (int64_t i = 0; i < n; i++)
        memset(a + i * n + i + 1, 0, (size_t)(n - i - 1) * sizeof *a);
    return TN_OK;
}

/* rows i.. of column j of @p a minus v times (v^H times them) times tau; v has a 1 first. */
static void reflect_column(const cd *v, int64_t v_step, cd tau, cd *column, int64_t step,
                           int64_t length)
{
    cd sum = column[0];
    for (int64_t r = 1; r < length; r++)
        sum += times(conj(v[r * v_step]), column[r * step]);
    sum = times(tau, sum);
    column[0] -= sum;
    for (int64_t r = 1; r < length; r++)
        column[r * step] -= times(v[r * v_step], sum);
}

void tni_factor_reflect(cd *a, int64_t m, int64_t n, cd *tau)
{
    int64_t k = m < n ? m : n;
    if (tni_real_only(a, m * n)) { /* the other half of the memory is room */
        tni_real_pack(a, m * n);
        tni_real_reflect((double *)a, m, n, (double *)tau, (double *)a + m * n);
        tni_real_unpack(a, m * n);
        tni_real_unpack(tau, k);
        return;
    }
    for (int64_t i = 0; i < k; i++) {
        double below = 0.0;
        cd *x = a + i * n + i;
        for (int64_t r = 1; r < m - i; r++)
            below += square(x[r * n]);
        cd alpha = x[0];
        if (below == 0.0 && cimag(alpha) == 0.0) {
            tau[i] = 0.0;
            continue;
        }
        /* H^H x = beta e, with beta real and of the other sign, as LAPACK has it. */
        double beta = -copysign(sqrt(square(alpha) + below), creal(alpha));
        tau[i] = CMPLX((beta - creal(alpha)) / beta, -cimag(alpha) / beta);
        cd scale = 1.0 / (alpha - beta);
        for (int64_t r = 1; r < m - i; r++)
            x[r * n] = times(x[r * n], scale);
        x[0] = beta;
        for (int64_t j = 1; j < n - i; j++)
            reflect_column(x, n, conj(tau[i]), x + j, n, m - i);
    }
}

void tni_factor_product(const cd *a, int64_t m, int64_t n, const cd *tau, int64_t k, cd *q,
                        int64_t columns)
{
    if (tni_real_only(a, m * n) && tni_real_only(tau, k)) {
        tni_real_product(a, m, n, tau, k, (double *)q, columns, (double *)q + m * columns);
        tni_real_unpack(q, m * columns);
        return;
    }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < columns; j++)
            q[i * columns + j] = i == j ? 1.0 : 0.0;
    for (int64_t i = k - 1; i >= 0; i--)
        for (int64_t j = i; j < columns; j++) /* those before are 0 in all these rows */
            reflect_column(a + i * n + i, n, tau[i], q + i * columns + j, columns, m - i);
}

tn_status tni_factor_triangle(const cd *a, int64_t n, cd *b, int64_t k, bool upper, bool unit)
{
    if (tni_real_only(a, n * n) && tni_real_only(b, n * k)) {
        tni_real_pack(b, n * k);
        tn_status status = tni_real_blocks_of(TN_DTYPE_F64)
                               ->triangle((tni_real_view){a, 2 * n, 2}, n, b, k, upper, unit);
        tni_real_unpack(b, n * k);
        return status;
    }
    for (int64_t s = 0; s < n; s++) {
        int64_t i = upper ? n - 1 - s : s;
        for (int64_t j = upper ? i + 1 : 0; j < (upper ? n : i); j++)
            subtract(b + i * k, b + j * k, a[i * n + j], k);
        for (int64_t c = 0; !unit && c < k; c++)
            b[i * k + c] /= a[i * n + i];
    }
    return TN_OK;
}
