/* SPDX-License-Identifier: MIT */
/* composite/derived.c: pieces of tensors, products and distances in terms of other operators. */
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* ---- pieces ---- */

/* The dimension that "hsplit" and its kind cut. */
static tn_status cut_dim(char which, const tn_tensor *self, int *out)
{
    int least = which == 'h' ? 1 : which == 'v' ? 2 : 3;
    TN_CHECK(self->ndim >= least, TN_INVALID,
             "torch.%csplit requires a tensor with at least %d dimension, but got a tensor with %d "
             "dimensions!",
             which, least, self->ndim);
    *out = which == 'h' ? (self->ndim == 1 ? 0 : 1) : which == 'v' ? 0 : 2;
    return TN_OK;
}

static tn_status equal_pieces(char which, tn_tensor *self, int64_t sections, tn_tensor ***out,
                              int64_t *out_n)
{
    int d = 0;
    TN_TRY(cut_dim(which, self, &d));
    TN_CHECK(sections != 0 && self->sizes[d] % sections == 0, TN_INVALID,
             "torch.%csplit attempted to split along dimension %d, but the size of the dimension "
             "%lld is not divisible by the split_size %lld!",
             which, d, (long long)self->sizes[d], (long long)sections);
    return tn_tensor_split(self, sections, d, out, out_n);
}

static tn_status cut_pieces(char which, tn_tensor *self, const int64_t *indices, int64_t n,
                            tn_tensor ***out, int64_t *out_n)
{
    int d = 0;
    TN_TRY(cut_dim(which, self, &d));
    return tn_tensor_split_indices(self, indices, n, d, out, out_n);
}

#define SPLITS(NAME, WHICH)                                                                     \
    tn_status tni_composite_##NAME(tn_tensor *self, int64_t sections, tn_tensor ***out,         \
                                   int64_t *out_n)                                              \
    {                                                                                           \
        return equal_pieces(WHICH, self, sections, out, out_n);                                 \
    }                                                                                           \
    tn_status tni_composite_##NAME##_array(tn_tensor *self, const int64_t *indices,             \
                                           int64_t indices_n, tn_tensor ***out, int64_t *out_n) \
    {                                                                                           \
        return cut_pieces(WHICH, self, indices, indices_n, out, out_n);                         \
    }
SPLITS(hsplit, 'h')
SPLITS(vsplit, 'v')
SPLITS(dsplit, 'd')

tn_status tni_composite_moveaxis(tn_tensor *self, const int64_t *source, int64_t source_n,
                                 const int64_t *destination, int64_t destination_n, tn_tensor **out)
{
    return tn_movedim(self, source, source_n, destination, destination_n, out);
}

tn_status tni_composite_moveaxis_int(tn_tensor *self, int64_t source, int64_t destination,
                                     tn_tensor **out)
{
    return tn_movedim_int(self, source, destination, out);
}

/* ---- products ---- */

tn_status tni_composite_cartesian_prod(tn_tensor *const *tensors, int64_t tensors_n,
                                       tn_tensor **out)
{
    char text[TNI_SIZES_TEXT];
    for (int64_t i = 0; i < tensors_n; i++)
        TN_CHECK(tensors[i]->ndim == 1, TN_INVALID, "Expect a 1D vector, but got shape %s",
                 tni_format_sizes(tensors[i]->ndim, tensors[i]->sizes, text, sizeof text));
    if (tensors_n == 1) {
        *out = tn_tensor_ref(tensors[0]);
        return TN_OK;
    }
    tn_tensor **grids;
    int64_t n;
    TN_TRY(tn_meshgrid_indexing(tensors, tensors_n, "ij", &grids, &n));
    tn_status status = TN_OK;
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        tn_tensor *flat = NULL;
        status = tn_flatten(grids[i], 0, -1, &flat);
        if (status == TN_OK) {
            tn_tensor_unref(grids[i]);
            grids[i] = flat;
        }
    }
    if (status == TN_OK)
        status = tn_stack_tensors(grids, n, 1, out);
    tn_tensor_list_free(grids, n);
    return status;
}

tn_status tni_composite_kron(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    int n = self->ndim > other->ndim ? self->ndim : other->ndim;
    int64_t a[TN_MAX_DIMS], b[TN_MAX_DIMS], sizes[TN_MAX_DIMS];
    tn_scope *scope;
    TN_CHECK(2 * n <= TN_MAX_DIMS, TN_INVALID, "kron: too many dimensions");
    for (int i = 0; i < n; i++) {
        int own = i - (n - self->ndim), others = i - (n - other->ndim);
        a[2 * i] = own >= 0 ? self->sizes[own] : 1;
        b[2 * i + 1] = others >= 0 ? other->sizes[others] : 1;
        a[2 * i + 1] = b[2 * i] = 1;
        TN_CHECK(!__builtin_mul_overflow(a[2 * i], b[2 * i + 1], &sizes[i]), TN_INVALID,
                 "kron: the result is too large");
    }
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *product = tnx_mul(tnx_reshape(self, a, 2 * n), tnx_reshape(other, b, 2 * n));
    return tni_leave(scope, tnx_reshape(product, sizes, n), out);
}

/* @p t as a matrix: the dimensions in @p dims last, or first, the others in order. */
static tn_tensor *as_matrix(tn_tensor *t, const int64_t *dims, int64_t n, bool last, int64_t count)
{
    int64_t order[TN_MAX_DIMS], at = 0;
    uint64_t taken = 0;
    for (int64_t i = 0; i < n; i++)
        taken |= UINT64_C(1) << dims[i];
    for (int64_t i = 0; !last && i < n; i++)
        order[at++] = dims[i];
    for (int d = 0; d < t->ndim; d++)
        if (!(taken >> d & 1))
            order[at++] = d;
    for (int64_t i = 0; last && i < n; i++)
        order[at++] = dims[i];
    int64_t rest = count ? t->numel / count : 1;
    for (int d = 0; count == 0 && d < t->ndim; d++)
        rest *= taken >> d & 1 ? 1 : t->sizes[d];
    return tnx_reshape(tnx_permute(t, order, t->ndim),
                       last ? (const int64_t[]){rest, count} : (const int64_t[]){count, rest}, 2);
}

/* @p t, whose other side has one element along @p dim, summed up there; @p held keeps the sum. */
static tn_status summed(tn_tensor *t, int64_t dim, tn_tensor **held)
{
    tn_tensor *sum = NULL;
    TN_TRY(tn_sum_dim(t, &dim, 1, true, (tn_dtype)t->dtype, &sum));
    tn_tensor_unref(*held);
    *held = sum;
    return TN_OK;
}

tn_status tni_composite_tensordot(tn_tensor *self, tn_tensor *other, const int64_t *dims_self,
                                  int64_t dims_self_n, const int64_t *dims_other,
                                  int64_t dims_other_n, tn_tensor **out)
{
    int64_t a[TN_MAX_DIMS], b[TN_MAX_DIMS], sizes[2 * TN_MAX_DIMS], count = 1;
    uint64_t taken[2] = {0, 0};
    TN_AUTO(tn_tensor) own = NULL;
    TN_AUTO(tn_tensor) others = NULL;
    tn_scope *scope;
    TN_CHECK(dims_self_n == dims_other_n, TN_INVALID,
             "both dimension lists should have same length");
    TN_CHECK(self->dtype == other->dtype, TN_INVALID, "both inputs should have same dtype");
    TN_CHECK(dims_self_n <= TN_MAX_DIMS, TN_INVALID, "tensordot: too many dimensions");
    for (int64_t i = 0; i < dims_self_n; i++) {
        int d, e;
        TN_TRY(tni_wrap_dim(dims_self[i], self->ndim, &d));
        TN_TRY(tni_wrap_dim(dims_other[i], other->ndim, &e));
        TN_CHECK(self->ndim && other->ndim && !(taken[0] >> d & 1) && !(taken[1] >> e & 1),
                 TN_INVALID, "dim %d appears multiple times in the list of dims", d);
        if (self->sizes[d] != other->sizes[e] && self->sizes[d] == 1) {
            TN_TRY(summed(other, e, &others));
            other = others;
        } else if (self->sizes[d] != other->sizes[e] && other->sizes[e] == 1) {
            TN_TRY(summed(self, d, &own));
            self = own;
        }
        TN_CHECK(self->sizes[d] == other->sizes[e], TN_INVALID,
                 "contracted dimensions need to match, but first has size %lld in dim %lld and "
                 "second has size %lld in dim %lld",
                 (long long)self->sizes[d], (long long)dims_self[i], (long long)other->sizes[e],
                 (long long)dims_other[i]);
        taken[0] |= UINT64_C(1) << d;
        taken[1] |= UINT64_C(1) << e;
        a[i] = d;
        b[i] = e;
        count *= self->sizes[d];
    }
    int64_t n = 0;
    for (int d = 0; d < self->ndim; d++)
        if (!(taken[0] >> d & 1))
            sizes[n++] = self->sizes[d];
    for (int d = 0; d < other->ndim; d++)
        if (!(taken[1] >> d & 1))
            sizes[n++] = other->sizes[d];
    TN_CHECK(n <= TN_MAX_DIMS, TN_INVALID, "tensordot: too many dimensions");
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *product = tnx_mm(as_matrix(self, a, dims_self_n, true, count),
                                as_matrix(other, b, dims_self_n, false, count));
    return tni_leave(scope, tnx_reshape(product, sizes, n), out);
}

static tn_status check_inner(const tn_tensor *self, const tn_tensor *other)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    TN_CHECK(self->sizes[self->ndim - 1] == other->sizes[other->ndim - 1], TN_INVALID,
             "inner() the last dimension must match on both input tensors but got shapes %s and %s",
             tni_format_sizes(self->ndim, self->sizes, a, sizeof a),
             tni_format_sizes(other->ndim, other->sizes, b, sizeof b));
    return TN_OK;
}

tn_status tni_composite_inner(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    const int64_t last = -1;
    if (self->ndim == 0 || other->ndim == 0)
        return tn_mul(self, other, out);
    TN_TRY(check_inner(self, other));
    return tn_tensordot(self, other, &last, 1, &last, 1, out);
}

tn_status tni_composite_inner_out(tn_tensor *self, tn_tensor *other, tn_tensor *out)
{
    const int64_t last = -1;
    if (self->ndim == 0 || other->ndim == 0)
        return tn_mul_out(self, other, out);
    TN_TRY(check_inner(self, other));
    return tn_tensordot_out(self, other, &last, 1, &last, 1, out);
}

tn_status tni_composite_pairwise_distance(tn_tensor *x1, tn_tensor *x2, double p, double eps,
                                          bool keepdim, tn_tensor **out)
{
    tn_scope *scope;
    const int64_t last = -1;
    tn_scalar order = tn_float(p);
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *d = tnx_add_scalar(tnx_sub(x1, x2, tn_int(1)), tn_float(eps), tn_int(1));
    return tni_leave(scope, tnx_norm_scalaropt_dim(d, &order, &last, 1, keepdim), out);
}
