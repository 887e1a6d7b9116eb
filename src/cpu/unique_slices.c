/* SPDX-License-Identifier: MIT */
/* cpu/unique_slices.c: different slices of a tensor, and runs of equal ones. Slices are rows of
 * float64 or int64, compared number by number. */
#include <string.h>
#include "cpu/ready.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

typedef struct table {
    const void *rows;
    int64_t n, width;
    bool floating;
} table;

static int compare_rows(const table *t, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < t->width; i++) {
        if (t->floating) {
            double x = ((const double *)t->rows)[a * t->width + i];
            double y = ((const double *)t->rows)[b * t->width + i];
            if (x != y)
                return x < y ? -1 : 1;
        } else {
            int64_t x = ((const int64_t *)t->rows)[a * t->width + i];
            int64_t y = ((const int64_t *)t->rows)[b * t->width + i];
            if (x != y)
                return x < y ? -1 : 1;
        }
    }
    return 0;
}

/* Put the rows x[0] to x[n - 1] in order, equal ones as they come; @p room has room for n. */
static void merge_sort(const table *t, int64_t *x, int64_t *room, int64_t n)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t start = 0; start < n; start += 2 * width) {
            int64_t a = start, middle = start + width < n ? start + width : n, b = middle;
            int64_t end = start + 2 * width < n ? start + 2 * width : n;
            for (int64_t i = start; i < end; i++) {
                bool left = a < middle && (b == end || compare_rows(t, x[a], x[b]) <= 0);
                room[i] = left ? x[a++] : x[b++];
            }
        }
        memcpy(x, room, (size_t)n * sizeof *x);
    }
}

/* Rows, @p order[0] to @p order[n - 1], as groups of equal neighbours. The first row of each group
 * goes to @p first, and the number of groups is returned. */
static int64_t group(const table *t, const int64_t *order, int64_t *first, int64_t *inverse,
                     int64_t *counts)
{
    int64_t groups = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (i == 0 || compare_rows(t, order[i - 1], order[i]) != 0) {
            first[groups] = order[i];
            counts[groups++] = 0;
        }
        inverse[order[i]] = groups - 1;
        counts[groups - 1]++;
    }
    return groups;
}

/* group, of rows of one number as they come. */
#define GROUP_LINE(name, T)                                                                       \
    static int64_t name(const T *x, int64_t n, int64_t *first, int64_t *inverse, int64_t *counts) \
    {                                                                                             \
        int64_t at = 0, start = 0;                                                                \
        first[0] = inverse[0] = 0;                                                                \
        for (int64_t i = 1; i < n; i++) {                                                         \
            int64_t other = x[i] != x[i - 1];                                                     \
            at += other;                                                                          \
            start += other * (i - start);                                                         \
            first[at] = start;                                                                    \
            inverse[i] = at;                                                                      \
        }                                                                                         \
        for (int64_t g = 0; g < at; g++)                                                          \
            counts[g] = first[g + 1] - first[g];                                                  \
        counts[at] = n - first[at];                                                               \
        return at + 1;                                                                            \
    }
GROUP_LINE(group_reals, double)
GROUP_LINE(group_wholes, int64_t)

static tn_status shortened(tn_tensor *whole, int64_t n, tn_tensor **out)
{
    TN_AUTO(tn_tensor) part = NULL;
    TN_TRY(tni_tensor_alias(whole, 1, &n, NULL, 0, &part));
    return tn_clone(part, TN_FORMAT_CONTIGUOUS, out);
}

/* The slices of @p self along @p dim, sorted first or as they come. @p shape: that of `inverse`. */
static tn_status slices(tn_tensor *self, int dim, bool sort, bool want_inverse, bool want_counts,
                        int shape_ndim, const int64_t *shape, tn_tensor **out0, tn_tensor **out1,
                        tn_tensor **out2)
{
    bool floating = tn_dtype_is_floating((tn_dtype)self->dtype);
    int64_t n = self->sizes[dim], none = 0;
    TN_AUTO(tn_tensor) moved = NULL;
    TN_AUTO(tn_tensor) rows = NULL;
    TN_AUTO(tn_tensor) order = NULL;
    TN_AUTO(tn_tensor) first = NULL;
    TN_AUTO(tn_tensor) inverse = NULL;
    TN_AUTO(tn_tensor) counts = NULL;
    TN_AUTO(tn_tensor) kept = NULL;
    TN_AUTO(tn_tensor) picked = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) lengths = NULL;
    TN_AUTO(tn_tensor) chosen = NULL;
    /* The other dimensions stay in their order, by which slices compare. */
    TN_TRY(tn_movedim_int(self, dim, 0, &moved));
    TN_TRY(tni_ready(moved, floating ? TN_DTYPE_F64 : TN_DTYPE_I64, &rows));
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &order));
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &first));
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &counts));
    TN_TRY(tni_tensor_new(shape_ndim, shape, NULL, TN_DTYPE_I64, TN_CPU, &inverse));
    int64_t *at = order->data;
    for (int64_t i = 0; i < n; i++)
        at[i] = i;
    table t = {rows->data, n, n ? self->numel / n : 0, floating};
    if (sort && n > 1)
        merge_sort(&t, at, first->data, n);
    bool line = !sort && t.width == 1 && n > 0;
    int64_t groups = !line      ? group(&t, at, first->data, inverse->data, counts->data)
                     : floating ? group_reals(t.rows, n, first->data, inverse->data, counts->data)
                                : group_wholes(t.rows, n, first->data, inverse->data, counts->data);
    TN_TRY(shortened(first, groups, &kept));
    TN_TRY(tn_index_select(moved, 0, kept, &picked));
    TN_TRY(tn_movedim_int(picked, 0, dim, &values));
    TN_TRY(shortened(counts, want_counts ? groups : 0, &lengths));
    if (want_inverse)
        chosen = tn_tensor_ref(inverse);
    else
        TN_TRY(tni_tensor_new(1, &none, NULL, TN_DTYPE_I64, TN_CPU, &chosen));
    *out0 = TN_MOVE(values);
    *out1 = TN_MOVE(chosen);
    *out2 = TN_MOVE(lengths);
    return TN_OK;
}

static tn_status check_dtype(const tn_tensor *self)
{
    TN_CHECK(!tn_dtype_is_complex((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"unique\" not implemented for '%s'", tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

static tn_status check_sizes(const tn_tensor *self, int dim)
{
    int others = 0;
    for (int d = 0; d < self->ndim; d++)
        others += d != dim && self->sizes[d] == 0;
    TN_CHECK(others == 0 || self->sizes[dim] != 0, TN_INVALID,
             "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    TN_CHECK(others == 0, TN_INVALID,
             "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
    return TN_OK;
}

tn_status tni_kernel_unique_dim(tn_call *call, tn_tensor *self, int64_t dim, bool sorted,
                                bool return_inverse, bool return_counts, tn_tensor **out0,
                                tn_tensor **out1, tn_tensor **out2)
{
    int d;
    (void)call;
    (void)sorted;
    (void)return_inverse; /* they come anyway */
    (void)return_counts;
    TN_TRY(check_dtype(self));
    TN_TRY(tni_wrap_dim(dim, self->ndim, &d));
    TN_CHECK(self->ndim > 0, TN_INVALID, "unique_dim: self must have at least one dimension");
    TN_TRY(check_sizes(self, d));
    return slices(self, d, true, true, true, 1, &self->sizes[d], out0, out1, out2);
}

tn_status tni_kernel_unique_consecutive(tn_call *call, tn_tensor *self, bool return_inverse,
                                        bool return_counts, tn_opt_int dim, tn_tensor **out0,
                                        tn_tensor **out1, tn_tensor **out2)
{
    (void)call;
    TN_TRY(check_dtype(self));
    if (dim.has) {
        int d;
        TN_CHECK(self->ndim > 0, TN_INDEX,
                 "Dimension specified as %lld but tensor has no dimensions", (long long)dim.value);
        TN_TRY(tni_wrap_dim(dim.value, self->ndim, &d));
        TN_TRY(check_sizes(self, d));
        return slices(self, d, false, return_inverse, return_counts, 1, &self->sizes[d], out0, out1,
                      out2);
    }
    TN_AUTO(tn_tensor) flat = NULL;
    TN_TRY(tn_reshape(self, (const int64_t[]){self->numel}, 1, &flat));
    return slices(flat, 0, false, return_inverse, return_counts, self->ndim, self->sizes, out0,
                  out1, out2);
}
