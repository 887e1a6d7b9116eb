/* SPDX-License-Identifier: MIT */
/* cpu/kern/factor_rows.c: see cpu/factor_rows.h. */
#include "cpu/factor_rows.h"
#include "cpu/kern/types.h"

static void subtract(double *row, const double *other, double f, int64_t n)
{
    INDEPENDENT for (int64_t i = 0; i < n; i++) row[i] -= f * other[i];
}

/* Some elements stay in registers while all others go by. */
static void subtract_all(double *row, const double *other, int64_t step, const double *f,
                         int64_t f_step, int64_t count, int64_t n)
{
    enum { HELD = 32 };
    int64_t i = 0;
    for (; i + HELD <= n; i += HELD) {
        double held[HELD];
        for (int l = 0; l < HELD; l++)
            held[l] = row[i + l];
        for (int64_t k = 0; k < count; k++) {
            const double factor = f[k * f_step], *x = other + k * step + i;
            for (int l = 0; l < HELD; l++)
                held[l] -= factor * x[l];
        }
        for (int l = 0; l < HELD; l++)
            row[i + l] = held[l];
    }
    for (int64_t k = 0; i < n && k < count; k++)
        subtract(row + i, other + k * step + i, f[k * f_step], n - i);
}

static void eliminate(double *row, int64_t step, int64_t count, const double *other, double d,
                      int64_t n)
{
    for (int64_t r = 0; r < count; r++, row += step) {
        double f = row[0] / d;
        row[0] = f;
        if (f != 0.0)
            subtract(row + 1, other, f, n);
    }
}

static double dot(const double *a, const double *b, int64_t n)
{
    enum { LANES = 8 };
    double sum[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++)
            sum[l] += a[i + l] * b[i + l];
    for (int l = 0; i + l < n; l++)
        sum[l] += a[i + l] * b[i + l];
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half; l++)
            sum[l] += sum[l + half];
    return sum[0];
}

const tni_factor_rows TNI_KERN_NAME(tni_factor_rows) = {subtract, subtract_all, eliminate, dot};
