/* SPDX-License-Identifier: MIT */
/* tests/cpu/test_spectrum.c: eigenvalues and singular values by our own algorithms are what they
 * are by definition. What a library computes: test_lapack.c. */
#include "cpu/factor.h"
#include "harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef tni_cd cd;

static cd *some(int64_t m, int64_t n, bool complex_too)
{
    cd *a = malloc((size_t)(m * n) * sizeof *a);
    uint64_t state = 0x9e3779b97f4a7c15u + (uint64_t)(m * 131 + n);
    for (int64_t i = 0; i < m * n; i++) {
        double part[2];
        for (int p = 0; p < 2; p++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            part[p] = (double)(state >> 40) / (1 << 23) - 1.0;
        }
        a[i] = CMPLX(part[0], complex_too ? part[1] : 0.0);
    }
    return a;
}

static cd *copy(const cd *a, int64_t count)
{
    cd *to = malloc((size_t)count * sizeof *to);
    return memcpy(to, a, (size_t)count * sizeof *to);
}

/* The largest difference from the identity of V^H V, V [n, k] in columns. */
static double skew(const cd *v, int64_t n, int64_t k)
{
    double most = 0;
    for (int64_t p = 0; p < k; p++)
        for (int64_t q = 0; q < k; q++) {
            cd sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += conj(v[i * k + p]) * v[i * k + q];
            most = fmax(most, cabs(sum - (p == q)));
        }
    return most;
}

/* The largest element of A V - V diag(values), all [n, n]. */
static double residue(const cd *a, const cd *v, const cd *values, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            cd sum = 0;
            for (int64_t k = 0; k < n; k++)
                sum += a[i * n + k] * v[k * n + j];
            most = fmax(most, cabs(sum - v[i * n + j] * values[j]));
        }
    return most;
}

static const int64_t sizes[] = {1, 2, 7, 15, 16, 17, 40, 67};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

TEST(hermitian_matrices_have_orthonormal_eigenvectors_and_values_in_order)
{
    for (int z = 0; z < 2 * N_SIZES; z++) {
        int64_t n = sizes[z / 2];
        cd *a = some(n, n, z % 2), *v = some(n, n, true), *values = some(1, n, true);
        double *found = malloc((size_t)n * sizeof *found);
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++) {
                a[i * n + j] = i == j ? creal(a[i * n + i]) : a[i * n + j];
                a[j * n + i] = conj(a[i * n + j]);
            }
        cd *work = copy(a, n * n);
        tni_factor_hermitian(work, n, found, v);
        for (int64_t i = 0; i < n; i++) {
            values[i] = found[i];
            EXPECT(i == 0 || found[i - 1] <= found[i]);
        }
        EXPECT(skew(v, n, n) < 1e-13 * (double)n);
        EXPECT(residue(a, v, values, n) < 1e-13 * (double)n);
        free(work), free(a), free(v), free(values), free(found);
    }
}

static void check_singular(int64_t m, int64_t n, bool complex_too, bool poor)
{
    int64_t k = m < n ? m : n, larger = m < n ? n : m;
    cd *a = some(m, n, complex_too), *u = some(m, k, true), *v = some(n, k, true);
    cd *room = some(larger, k, true);
    double *s = malloc((size_t)k * sizeof *s), most = 0;
    for (int64_t i = 0; poor && i < m; i++) /* a column that another has already */
        a[i * n + n - 1] = a[i * n];
    cd *work = copy(a, m * n);
    tni_factor_singular(work, m, n, u, s, v, room);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            cd sum = 0;
            for (int64_t p = 0; p < k; p++)
                sum += u[i * k + p] * s[p] * conj(v[j * k + p]);
            most = fmax(most, cabs(sum - a[i * n + j]));
        }
    for (int64_t p = 0; p < k; p++)
        EXPECT(s[p] >= 0 && (p == 0 || s[p - 1] >= s[p]));
    EXPECT(most < 1e-13 * (double)larger);
    EXPECT(skew(u, m, k) < 1e-13 * (double)larger);
    EXPECT(skew(v, n, k) < 1e-13 * (double)larger);
    free(a), free(u), free(v), free(room), free(s), free(work);
}

TEST(singular_values_and_vectors_give_the_matrix_again)
{
    for (int z = 0; z < 2 * N_SIZES; z++) {
        int64_t n = sizes[z / 2];
        check_singular(n, n, z % 2, false);
        check_singular(n + 9, n, z % 2, false);
        check_singular(n, n + 20, z % 2, false);
        check_singular(n + 1, n + 1, z % 2, true);
    }
}

/* The largest difference between the first n of two lists. */
static double apart(const double *x, const double *y, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i] - y[i]));
    return most;
}

TEST(values_alone_are_those_that_come_with_vectors)
{
    for (int z = 0; z < 6 * N_SIZES; z++) {
        int64_t m = sizes[z / 6], n = z / 2 % 3 == 0 ? m : z / 2 % 3 == 1 ? m + 9 : (m + 1) / 2;
        int64_t k = m < n ? m : n, most = m < n ? n : m;
        cd *a = some(m, n, z % 2), *b = copy(a, m * n), *h = some(m, m, z % 2);
        cd *u = some(most, k, true), *v = some(most, k, true), *work = some(most, k, true);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j <= i; j++)
                h[i * m + j] = i == j ? creal(h[i * m + i]) : conj(h[j * m + i]);
        cd *g = copy(h, m * m), *w = some(m, m, true);
        double *with = malloc((size_t)most * sizeof *with);
        double *alone = malloc((size_t)most * sizeof *alone);
        tni_factor_singular(a, m, n, u, with, v, work);
        tni_factor_singular(b, m, n, u, alone, NULL, work);
        test_note("%lld x %lld", (long long)m, (long long)n);
        EXPECT(apart(with, alone, k) < 1e-12 * (double)most);
        tni_factor_hermitian(h, m, with, w);
        tni_factor_hermitian(g, m, alone, NULL);
        EXPECT(apart(with, alone, m) < 1e-12 * (double)most);
        void *all[] = {a, b, h, u, v, work, g, w, with, alone};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            free(all[i]);
    }
}

TEST(general_matrices_have_eigenvectors_of_length_1)
{
    for (int z = 0; z < 2 * N_SIZES; z++) {
        int64_t n = sizes[z / 2];
        cd *a = some(n, n, z % 2), *v = some(n, n, true), *values = some(1, n, true);
        cd *work = copy(a, n * n), *room = some(n, n, true);
        EXPECT_EQ_INT(tni_factor_general(work, n, values, v, room), 0);
        EXPECT(residue(a, v, values, n) < 1e-12 * (double)n);
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t i = 0; i < n; i++)
                sum += cabs(v[i * n + j]) * cabs(v[i * n + j]);
            EXPECT(fabs(sum - 1) < 1e-12);
        }
        free(a), free(v), free(values), free(work), free(room);
    }
}

TEST(a_matrix_with_a_nan_or_an_infinity_comes_to_an_end)
{
    const double strange[] = {NAN, INFINITY};
    for (int z = 0; z < 2; z++) {
        enum { N = 20 };
        cd *a = some(N, N, false), *v = some(N, N, true), *values = some(1, N, true);
        cd *u = some(N, N, true), *room = some(N, N, true);
        double found[N];
        a[N + 3] = a[3 * N + 1] = strange[z];
        cd *work = copy(a, N * N);
        tni_factor_hermitian(work, N, found, v);
        memcpy(work, a, N * N * sizeof *a);
        tni_factor_singular(work, N, N, u, found, v, room);
        memcpy(work, a, N * N * sizeof *a);
        (void)tni_factor_general(work, N, values, v, room);
        free(a), free(v), free(values), free(u), free(room), free(work);
    }
}
