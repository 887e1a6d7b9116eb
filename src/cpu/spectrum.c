/* SPDX-License-Identifier: MIT */
/* cpu/spectrum.c: eigenvalues and singular values. Hermitian matrices and singular values by
 * Jacobi's rotations, general matrices by the QR algorithm on a Hessenberg matrix. See factor.h. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "cpu/factor.h"

typedef tni_cd cd;

static inline cd times(cd a, cd b)
{
    double ar = creal(a), ai = cimag(a), br = creal(b), bi = cimag(b);
    return CMPLX(ar * br - ai * bi, ar * bi + ai * br);
}

static inline double square(cd a)
{
    return creal(a) * creal(a) + cimag(a) * cimag(a);
}

enum { SWEEPS = 60 };

/* The rotation that makes [[p, x], [conj(x), q]] diagonal: c, and s with the phase of x. */
static void rotation(double p, double q, cd x, double *c, cd *s)
{
    double size = sqrt(square(x)), theta = (q - p) / (2.0 * size);
    double t = copysign(1.0, theta) / (fabs(theta) + sqrt(theta * theta + 1.0));
    *c = 1.0 / sqrt(t * t + 1.0);
    *s = x / size * (t * *c);
}

static void swap_columns(cd *v, int64_t n, int64_t columns, int64_t i, int64_t j)
{
    for (int64_t r = 0; r < n; r++) {
        cd t = v[r * columns + i];
        v[r * columns + i] = v[r * columns + j];
        v[r * columns + j] = t;
    }
}

/* Columns p and q become c p - conj(s) q and s p + c q. */
static void turn(cd *v, int64_t rows, int64_t columns, int64_t p, int64_t q, double c, cd s)
{
    for (int64_t r = 0; r < rows; r++) {
        cd x = v[r * columns + p], y = v[r * columns + q];
        v[r * columns + p] = c * x - times(conj(s), y);
        v[r * columns + q] = times(s, x) + c * y;
    }
}

/* The largest component of a column real and positive: eigenvectors have a phase to choose. */
static void settle(cd *v, int64_t n, int64_t columns, int64_t j)
{
    int64_t best = 0;
    for (int64_t r = 1; r < n; r++)
        if (square(v[r * columns + j]) > square(v[best * columns + j]) * (1.0 + 1e-9))
            best = r;
    cd x = v[best * columns + j];
    double size = sqrt(square(x));
    for (int64_t r = 0; size > 0.0 && r < n; r++)
        v[r * columns + j] = times(v[r * columns + j], conj(x) / size);
}

/* The unit matrix; none where @p v is NULL. */
static void unit(cd *v, int64_t n)
{
    for (int64_t i = 0; v && i < n; i++)
        for (int64_t j = 0; j < n; j++)
            v[i * n + j] = i == j ? 1.0 : 0.0;
}

void tni_factor_hermitian(cd *a, int64_t n, double *values, cd *v)
{
    unit(v, n);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool turned = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                cd x = a[p * n + q];
                double pp = creal(a[p * n + p]), qq = creal(a[q * n + q]), c;
                if (sqrt(square(x)) <= 0.25 * DBL_EPSILON * sqrt(fabs(pp * qq)) ||
                    square(x) < DBL_MIN)
                    continue;
                cd s;
                rotation(pp, qq, x, &c, &s);
                turned = true;
                turn(a, n, n, p, q, c, s);
                for (int64_t j = 0; j < n; j++) { /* rows: the adjoint of the same */
                    cd y = a[p * n + j], z = a[q * n + j];
                    a[p * n + j] = c * y - times(s, z);
                    a[q * n + j] = times(conj(s), y) + c * z;
                }
                a[p * n + q] = a[q * n + p] = 0.0;
                if (v)
                    turn(v, n, n, p, q, c, s);
            }
        if (!turned)
            break;
    }
    for (int64_t i = 0; i < n; i++)
        values[i] = creal(a[i * n + i]);
    for (int64_t i = 0; i < n; i++) {
        int64_t least = i;
        for (int64_t j = i + 1; j < n; j++)
            if (values[j] < values[least])
                least = j;
        if (least != i) {
            double t = values[i];
            values[i] = values[least];
            values[least] = t;
            if (v)
                swap_columns(v, n, n, i, least);
        }
        if (v)
            settle(v, n, n, i);
    }
}

/* ---- singular values: columns made orthogonal two by two ---- */

void tni_factor_complete(cd *w, int64_t m, int64_t k, int64_t j)
{
    for (int64_t e = 0; e < m; e++) {
        double size = 0.0;
        for (int64_t r = 0; r < m; r++)
            w[r * k + j] = r == e ? 1.0 : 0.0;
        for (int twice = 0; twice < 2; twice++)
            for (int64_t i = 0; i < j; i++) {
                cd dot = 0.0;
                for (int64_t r = 0; r < m; r++)
                    dot += times(conj(w[r * k + i]), w[r * k + j]);
                for (int64_t r = 0; r < m; r++)
                    w[r * k + j] -= times(dot, w[r * k + i]);
            }
        for (int64_t r = 0; r < m; r++)
            size += square(w[r * k + j]);
        if (size > 0.1 / (double)m) {
            for (int64_t r = 0; r < m; r++)
                w[r * k + j] /= sqrt(size);
            return;
        }
    }
}

/* For m >= n: @p a [m, n] becomes U with its singular values in @p s, @p v [n, n]. Where @p v is
 * NULL only the values are right. */
static void tall(cd *a, int64_t m, int64_t n, double *s, cd *v)
{
    unit(v, n);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool turned = false;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++) {
                double pp = 0.0, qq = 0.0, c;
                cd x = 0.0, t;
                for (int64_t r = 0; r < m; r++) {
                    pp += square(a[r * n + p]);
                    qq += square(a[r * n + q]);
                    x += times(conj(a[r * n + p]), a[r * n + q]);
                }
                if (sqrt(square(x)) <= DBL_EPSILON * sqrt(pp * qq) || square(x) < DBL_MIN)
                    continue;
                rotation(pp, qq, x, &c, &t);
                turned = true;
                turn(a, m, n, p, q, c, t);
                if (v)
                    turn(v, n, n, p, q, c, t);
            }
        if (!turned)
            break;
    }
    for (int64_t j = 0; j < n; j++) {
        double sum = 0.0;
        for (int64_t r = 0; r < m; r++)
            sum += square(a[r * n + j]);
        s[j] = sqrt(sum);
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t most = i;
        for (int64_t j = i + 1; j < n; j++)
            if (s[j] > s[most])
                most = j;
        if (most != i) {
            double t = s[i];
            s[i] = s[most];
            s[most] = t;
            swap_columns(a, m, n, i, most);
            if (v)
                swap_columns(v, n, n, i, most);
        }
    }
    for (int64_t j = 0; v && j < n; j++) {
        if (s[j] > DBL_EPSILON * s[0] * 1e-3 && s[j] > 0.0)
            for (int64_t r = 0; r < m; r++)
                a[r * n + j] /= s[j];
        else
            tni_factor_complete(a, m, n, j);
    }
}

void tni_factor_singular(cd *a, int64_t m, int64_t n, cd *u, double *s, cd *v, cd *work)
{
    int64_t k = m < n ? m : n;
    if (k == 0)
        return;
    if (m >= n) {
        memcpy(u, a, (size_t)(m * n) * sizeof *u);
        tall(u, m, n, s, v);
        return;
    }
    for (int64_t i = 0; i < m; i++) /* A^H = V S U^H */
        for (int64_t j = 0; j < n; j++)
            work[j * m + i] = conj(a[i * n + j]);
    tall(work, n, m, s, v ? u : NULL);
    if (v)
        memcpy(v, work, (size_t)(n * k) * sizeof *v);
}

/* ---- any matrix ---- */

/* To zeros below the first subdiagonal, by reflections, gathered in @p z. */
static void to_hessenberg(cd *a, int64_t n, cd *z)
{
    unit(z, n);
    for (int64_t k = 0; k + 2 < n; k++) {
        double size = 0.0;
        for (int64_t r = k + 1; r < n; r++)
            size += square(a[r * n + k]);
        size = sqrt(size);
        if (size == 0.0)
            continue;
        cd first = a[(k + 1) * n + k];
        double head = sqrt(square(first));
        cd phase = head > 0.0 ? first / head : 1.0;
        /* v = x + phase |x| e, H = 1 - 2 v v^H / |v|^2 */
        cd v0 = first + phase * size;
        double norm = size * size + 2.0 * size * head + size * size; /* |v|^2 */
        for (int pass = 0; pass < 3; pass++) {
            for (int64_t j = 0; j < n; j++) {
                cd sum = 0.0;
                for (int64_t r = k + 1; r < n; r++) {
                    cd x = r == k + 1 ? v0 : a[r * n + k];
                    cd y = pass == 0 ? a[r * n + j] : pass == 1 ? a[j * n + r] : z[j * n + r];
                    sum += pass == 0 ? times(conj(x), y) : times(x, y);
                }
                sum *= 2.0 / norm;
                for (int64_t r = k + 1; r < n; r++) {
                    cd x = r == k + 1 ? v0 : a[r * n + k];
                    if (pass == 0) {
                        if (j != k) /* that column is the reflector, until the end */
                            a[r * n + j] -= times(sum, x);
                    } else if (pass == 1) {
                        a[j * n + r] -= times(sum, conj(x));
                    } else {
                        z[j * n + r] -= times(sum, conj(x));
                    }
                }
            }
        }
        a[(k + 1) * n + k] = -phase * size;
        for (int64_t r = k + 2; r < n; r++)
            a[r * n + k] = 0.0;
    }
}

/* Rows and columns i, i + 1 turned by [[c, s], [-conj(s), c]]. */
static void givens(cd x, cd y, double *c, cd *s)
{
    double size = sqrt(square(x) + square(y)), head = sqrt(square(x));
    if (size == 0.0) {
        *c = 1.0;
        *s = 0.0;
    } else if (head == 0.0) {
        *c = 0.0;
        *s = conj(y) / size;
    } else {
        *c = head / size;
        *s = times(x / head, conj(y)) / size;
    }
}

static cd shift_of(const cd *a, int64_t n, int64_t hi)
{
    cd p = a[(hi - 1) * n + hi - 1], q = a[(hi - 1) * n + hi], r = a[hi * n + hi - 1],
       t = a[hi * n + hi];
    cd half = 0.5 * (p - t), root = csqrt(times(half, half) + times(q, r));
    cd low = 0.5 * (p + t) - root, high = 0.5 * (p + t) + root;
    return square(low - t) < square(high - t) ? low : high;
}

/* To a triangle; @p z gathers the rotations. Returns what is left undone. */
static int64_t to_triangle(cd *a, int64_t n, cd *z)
{
    int64_t hi = n - 1, tries = 0;
    while (hi > 0) {
        int64_t lo = hi;
        for (; lo > 0; lo--) {
            double around = sqrt(square(a[(lo - 1) * n + lo - 1])) + sqrt(square(a[lo * n + lo]));
            if (sqrt(square(a[lo * n + lo - 1])) <= DBL_EPSILON * around ||
                square(a[lo * n + lo - 1]) < DBL_MIN) {
                a[lo * n + lo - 1] = 0.0;
                break;
            }
        }
        if (lo == hi) {
            hi--;
            tries = 0;
            continue;
        }
        if (++tries > 300)
            return hi + 1;
        cd shift = tries % 11 == 10 ? a[hi * n + hi] + sqrt(square(a[hi * n + hi - 1]))
                                    : shift_of(a, n, hi);
        cd x = a[lo * n + lo] - shift, y = a[(lo + 1) * n + lo];
        for (int64_t k = lo; k < hi; k++) { /* the bulge goes down the subdiagonal */
            double c;
            cd s;
            if (k > lo) {
                x = a[k * n + k - 1];
                y = a[(k + 1) * n + k - 1];
            }
            givens(x, y, &c, &s);
            for (int64_t j = k > lo ? k - 1 : k; j < n; j++) {
                cd u = a[k * n + j], w = a[(k + 1) * n + j];
                a[k * n + j] = c * u + times(s, w);
                a[(k + 1) * n + j] = c * w - times(conj(s), u);
            }
            int64_t last = k + 2 < hi ? k + 2 : hi;
            for (int64_t i = 0; i <= last; i++) {
                cd u = a[i * n + k], w = a[i * n + k + 1];
                a[i * n + k] = c * u + times(conj(s), w);
                a[i * n + k + 1] = c * w - times(s, u);
            }
            for (int64_t i = 0; i < n; i++) {
                cd u = z[i * n + k], w = z[i * n + k + 1];
                z[i * n + k] = c * u + times(conj(s), w);
                z[i * n + k + 1] = c * w - times(s, u);
            }
            if (k > lo)
                a[(k + 1) * n + k - 1] = 0.0;
        }
    }
    return 0;
}

static bool is_real(const cd *a, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (cimag(a[i]) != 0.0)
            return false;
    return true;
}

/* Column @p j, and its value, as those of a real matrix that are real themselves. */
static void drop_imaginary(cd *values, cd *v, int64_t n, int64_t j)
{
    double size = 0.0;
    values[j] = creal(values[j]);
    for (int64_t r = 0; r < n; r++)
        size += creal(v[r * n + j]) * creal(v[r * n + j]);
    for (int64_t r = 0; r < n; r++)
        v[r * n + j] = size > 0.0 ? creal(v[r * n + j]) / sqrt(size) : creal(v[r * n + j]);
}

/* Column @p from put before column @p to, which is not behind it. */
static void move_column(cd *values, cd *v, int64_t n, int64_t from, int64_t to)
{
    for (; from > to; from--) {
        cd t = values[from];
        values[from] = values[from - 1];
        values[from - 1] = t;
        swap_columns(v, n, n, from, from - 1);
    }
}

/* A real matrix has real eigenvalues and pairs of conjugates: as such, the one above the axis first
 * and the other behind it, which is what LAPACK gives and what people read. */
static void pair_up(cd *values, cd *v, int64_t n)
{
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, sqrt(square(values[i])));
    for (int64_t i = 0; i < n; i++) {
        int64_t mate = i;
        double best = INFINITY;
        for (int64_t j = i + 1; j < n; j++) {
            double apart = square(values[j] - conj(values[i]));
            if (cimag(values[j]) * cimag(values[i]) < 0.0 && apart < best) {
                best = apart;
                mate = j;
            }
        }
        double off = fabs(cimag(values[i]));
        if (mate == i || off <= 16.0 * DBL_EPSILON * largest || best > off * off) {
            drop_imaginary(values, v, n, i);
            continue;
        }
        move_column(values, v, n, mate, i + 1);
        bool below = cimag(values[i]) < 0.0;
        for (int64_t r = 0; r < n; r++) {
            cd x = v[r * n + i];
            v[r * n + i] = below ? conj(x) : x;
            v[r * n + i + 1] = below ? x : conj(x);
        }
        values[i] = below ? conj(values[i]) : values[i];
        values[i + 1] = conj(values[i]);
        i++;
    }
}

int64_t tni_factor_general(cd *a, int64_t n, cd *values, cd *v, cd *z)
{
    bool real = is_real(a, n * n);
    to_hessenberg(a, n, z);
    int64_t left = to_triangle(a, n, z);
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        values[i] = a[i * n + i];
        for (int64_t j = i; j < n; j++)
            largest = fmax(largest, sqrt(square(a[i * n + j])));
    }
    double small = fmax(DBL_EPSILON * largest, DBL_MIN);
    for (int64_t k = 0; k < n; k++) { /* of the triangle, from below, then turned back */
        /* v[:, k] serves as room for the triangle's vector. */
        for (int64_t i = n - 1; i >= 0; i--) {
            if (i > k) {
                v[i * n + k] = 0.0;
            } else if (i == k) {
                v[i * n + k] = 1.0;
            } else {
                cd sum = 0.0;
                for (int64_t j = i + 1; j <= k; j++)
                    sum += times(a[i * n + j], v[j * n + k]);
                cd d = values[i] - values[k];
                v[i * n + k] = -sum / (sqrt(square(d)) < small ? (cd)small : d);
            }
        }
    }
    for (int64_t k = 0; k < n; k++) {
        double size = 0.0;
        for (int64_t i = 0; i < n; i++) /* row i of z times the column, into a's column */
            a[i * n + k] = 0.0;
        for (int64_t j = 0; j <= k; j++)
            for (int64_t i = 0; i < n; i++)
                a[i * n + k] += times(z[i * n + j], v[j * n + k]);
        for (int64_t i = 0; i < n; i++)
            size += square(a[i * n + k]);
        for (int64_t i = 0; i < n; i++)
            v[i * n + k] = a[i * n + k] / sqrt(size);
        settle(v, n, n, k);
    }
    if (real && !left)
        pair_up(values, v, n);
    return left;
}
