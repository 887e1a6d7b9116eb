/* SPDX-License-Identifier: MIT */
/* composite/inner.c: names that PyTorch has for steps of other operators, and older names. */
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/geometry.h"
#include "tenon/ops.h"

/* ---- copies ---- */

tn_status tni_composite__conj_copy(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(self, TN_FORMAT_CONTIGUOUS, &copy));
    return tn_conj_physical(copy, out);
}

tn_status tni_composite__neg_view_copy(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(self, TN_FORMAT_CONTIGUOUS, &copy));
    return tn_neg(copy, out);
}

tn_status tni_kernel_lift_fresh_copy(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    return tn_clone(self, TN_FORMAT_CONTIGUOUS, out);
}

tn_status tni_composite__reshape_copy(tn_tensor *self, const int64_t *size, int64_t size_n,
                                      tn_tensor **out)
{
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(self, TN_FORMAT_CONTIGUOUS, &copy));
    return tn__unsafe_view(copy, size, size_n, out);
}

tn_status tni_composite__reshape_alias_copy(tn_tensor *self, const int64_t *size, int64_t size_n,
                                            const int64_t *stride, int64_t stride_n,
                                            tn_tensor **out)
{
    TN_AUTO(tn_tensor) seen = NULL;
    TN_TRY(tn__reshape_alias(self, size, size_n, stride, stride_n, &seen));
    return tn_clone(seen, TN_FORMAT_CONTIGUOUS, out);
}

/* ---- elements chosen ---- */

tn_status tni_composite__aminmax(tn_tensor *self, tn_tensor **out0, tn_tensor **out1)
{
    return tn_aminmax(self, (tn_opt_int){0}, false, out0, out1);
}

tn_status tni_composite__aminmax_dim(tn_tensor *self, int64_t dim, bool keepdim, tn_tensor **out0,
                                     tn_tensor **out1)
{
    return tn_aminmax(self, (tn_opt_int){.has = true, .value = dim}, keepdim, out0, out1);
}

tn_status tni_composite__unique(tn_tensor *self, bool sorted, bool return_inverse, tn_tensor **out0,
                                tn_tensor **out1)
{
    TN_AUTO(tn_tensor) counts = NULL;
    return tn__unique2(self, sorted, return_inverse, false, out0, out1, &counts);
}

tn_status tni_composite_unique_dim_consecutive(tn_tensor *self, int64_t dim, bool return_inverse,
                                               bool return_counts, tn_tensor **out0,
                                               tn_tensor **out1, tn_tensor **out2)
{
    (void)return_inverse; /* the reference gives both, whether they are asked for or not */
    (void)return_counts;
    return tn_unique_consecutive(self, true, true, (tn_opt_int){.has = true, .value = dim}, out0,
                                 out1, out2);
}

static tn_status check_truths(const tn_tensor *self, const char *op)
{
    TN_CHECK(self->dtype == TN_DTYPE_BOOL, TN_INVALID, "%s: expected a tensor of bool, but got %s",
             op, tni_dtype_text((tn_dtype)self->dtype));
    return TN_OK;
}

tn_status tni_composite__is_all_true(tn_tensor *self, tn_tensor **out)
{
    TN_TRY(check_truths(self, "_is_all_true"));
    return tn_all(self, out);
}

tn_status tni_composite__is_any_true(tn_tensor *self, tn_tensor **out)
{
    TN_TRY(check_truths(self, "_is_any_true"));
    return tn_any(self, out);
}

tn_status tni_composite_nonzero_numpy(tn_tensor *self, tn_tensor ***out, int64_t *out_n)
{
    const int64_t one = 1;
    TN_AUTO(tn_tensor) row = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_TRY(self->ndim ? tn_view(self, self->sizes, self->ndim, &row)
                      : tn_view(self, &one, 1, &row));
    TN_TRY(tn_nonzero(row, &places));
    return tn_unbind(places, 1, out, out_n);
}

tn_status tni_composite__unsafe_index(tn_tensor *self, tn_tensor *const *indices, int64_t indices_n,
                                      tn_tensor **out)
{
    return tn_index(self, indices, indices_n, out);
}

/* The indices, held within the dimensions that they are of: those that a mask leaves out may lead
 * anywhere. Of the scope. */
static tn_status clamped(tn_tensor *self, tn_tensor *const *indices, int64_t n, tn_tensor **made)
{
    TN_CHECK(n <= self->ndim, TN_INDEX, "too many indices for tensor of dimension %d (got %lld)",
             self->ndim, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        const tn_scalar low = tn_int(-self->sizes[i]), high = tn_int(self->sizes[i] - 1);
        made[i] = indices[i] ? tnx_clamp(indices[i], &low, &high) : NULL;
    }
    return TN_OK;
}

/* What stands for a tensor without elements: the number, once along each dimension that is indexed.
 * Of the scope. */
static tn_tensor *one_of_each(tn_tensor *self, tn_tensor *const *indices, int64_t n, tn_scalar fill)
{
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++)
        sizes[d] = d < n && indices[d] ? 1 : self->sizes[d];
    return tnx_new_full(self, sizes, self->ndim, fill, NULL);
}

tn_status tni_composite__unsafe_masked_index(tn_tensor *self, tn_tensor *mask,
                                             tn_tensor *const *indices, int64_t indices_n,
                                             tn_scalar fill, tn_tensor **out)
{
    tn_tensor *within[TN_MAX_DIMS];
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    if (self->numel == 0)
        self = one_of_each(self, indices, indices_n, fill);
    tn_status status = self ? clamped(self, indices, indices_n, within) : TN_OK;
    tn_tensor *made = NULL;
    if (self && status == TN_OK)
        made = tnx_masked_fill(tnx_index(self, within, indices_n), tnx_logical_not(mask), fill);
    tn_status left = tni_leave(scope, made, out);
    return status != TN_OK ? status : left;
}

tn_status tni_composite__unsafe_masked_index_put_accumulate(tn_tensor *self, tn_tensor *mask,
                                                            tn_tensor *const *indices,
                                                            int64_t indices_n, tn_tensor *values,
                                                            tn_tensor **out)
{
    tn_tensor *within[TN_MAX_DIMS];
    tn_scope *scope;
    if (self->numel == 0)
        return tn_clone(self, TN_FORMAT_NONE, out);
    TN_TRY(tn_scope_enter(&scope));
    tn_status status = clamped(self, indices, indices_n, within);
    tn_tensor *made = NULL;
    if (status == TN_OK)
        made = tnx_index_put(self, within, indices_n,
                             tnx_masked_fill(values, tnx_logical_not(mask), tn_int(0)), true);
    tn_status left = tni_leave(scope, made, out);
    return status != TN_OK ? status : left;
}

/* ---- sizes ---- */

tn_status tni_composite_numpy_t(tn_tensor *self, tn_tensor **out)
{
    int64_t dims[TN_MAX_DIMS];
    for (int d = 0; d < self->ndim; d++)
        dims[d] = self->ndim - 1 - d;
    return tn_permute(self, dims, self->ndim, out);
}

tn_status tni_composite_mh(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(self->ndim != 1, TN_INVALID,
             "tensor.mH is only supported on matrices or batches of matrices. Got %d-D tensor.",
             self->ndim);
    return self->ndim ? tn_matrix_adjoint(self, out) : tn_conj(self, out);
}

tn_status tni_composite_matrix_h(tn_tensor *self, tn_tensor **out)
{
    TN_CHECK(self->ndim == 0 || self->ndim == 2, TN_INVALID,
             "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.%s", self->ndim,
             self->ndim > 2 ? " For batches of matrices, consider using tensor.mH" : "");
    return self->ndim ? tn_matrix_adjoint(self, out) : tn_conj(self, out);
}

/* ---- joined ---- */

tn_status tni_composite_flatten_dense_tensors(tn_tensor *const *tensors, int64_t tensors_n,
                                              tn_tensor **out)
{
    const int64_t all = -1;
    tn_tensor **flat = tni_alloc((size_t)(tensors_n ? tensors_n : 1) * sizeof *flat);
    tn_scope *scope;
    TN_CHECK(flat, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)tensors_n);
    tn_status status = tn_scope_enter(&scope);
    if (status == TN_OK) {
        for (int64_t i = 0; i < tensors_n; i++)
            flat[i] = tnx_reshape(tensors[i], &all, 1);
        status = tni_leave(scope, tnx_cat(flat, tensors_n, 0), out);
    }
    tni_free(flat);
    return status;
}

tn_status tni_composite_unflatten_dense_tensors(tn_tensor *flat, tn_tensor *const *tensors,
                                                int64_t tensors_n, tn_tensor ***out, int64_t *out_n)
{
    tn_tensor **list = tni_alloc((size_t)(tensors_n ? tensors_n : 1) * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)tensors_n);
    int64_t at = 0;
    for (int64_t i = 0; i < tensors_n; i++) {
        TN_AUTO(tn_tensor) piece = NULL;
        tn_status status = tn_narrow(flat, 0, at, tensors[i]->numel, &piece);
        if (status == TN_OK)
            status = tn_view(piece, tensors[i]->sizes, tensors[i]->ndim, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
        at += tensors[i]->numel;
    }
    *out = list;
    *out_n = tensors_n;
    return TN_OK;
}

static tn_status check_chunks(tn_tensor *const *tensors, int64_t n, int64_t dim, int64_t num_chunks,
                              int *at)
{
    TN_CHECK(num_chunks >= 1, TN_INVALID, "_chunk_cat expects positive num_chunks");
    TN_CHECK(n > 0, TN_INVALID, "_chunk_cat expects a non-empty input tensor list");
    const tn_tensor *first = tensors[0];
    for (int64_t i = 1; dim < 0 && i < n; i++)
        TN_CHECK(tensors[i]->ndim == first->ndim, TN_INVALID,
                 "_chunk_cat expects non-negative dim when input tensors have different ndims");
    TN_TRY(tni_wrap_dim(dim, first->ndim, at));
    for (int64_t i = 0; i < n; i++) {
        const tn_tensor *t = tensors[i];
        TN_CHECK(t->numel > 0, TN_INVALID, "_chunk_cat expects non-empty tensor");
        TN_CHECK(t->dtype == first->dtype, TN_INVALID,
                 "_chunk_cat expects all input tensors with the same dtype");
        TN_CHECK(t->ndim > *at, TN_INVALID, "_chunk_cat expects dim < ndim for all input tensors");
        for (int d = 0; d < *at; d++)
            TN_CHECK(t->sizes[d] == first->sizes[d], TN_INVALID,
                     "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
    }
    return TN_OK;
}

/* Rows of equal length from dimension @p at on, with zeros behind the last. Of the scope. */
static tn_tensor *rows_of(tn_tensor *t, int at, int64_t num_chunks)
{
    int64_t left = t->sizes[at] % num_chunks, sizes[TN_MAX_DIMS], pad[2 * TN_MAX_DIMS] = {0};
    if (left) {
        int last = t->ndim - 1 - at; /* dimensions behind it, which pad names first */
        pad[2 * last + 1] = num_chunks - left;
        t = tnx_constant_pad_nd(t, pad, 2 * (last + 1), tn_int(0));
        if (!t)
            return NULL;
    }
    for (int d = 0; d < at; d++)
        sizes[d] = t->sizes[d];
    sizes[at] = num_chunks;
    sizes[at + 1] = -1;
    return tnx_reshape(t, sizes, at + 2);
}

tn_status tni_composite__chunk_cat(tn_tensor *const *tensors, int64_t tensors_n, int64_t dim,
                                   int64_t num_chunks, tn_tensor **out)
{
    int at;
    tn_scope *scope;
    TN_TRY(check_chunks(tensors, tensors_n, dim, num_chunks, &at));
    TN_CHECK(at + 2 <= TN_MAX_DIMS, TN_INVALID, "_chunk_cat: the result would have %d dimensions",
             at + 2);
    tn_tensor **rows = tni_alloc((size_t)tensors_n * sizeof *rows);
    TN_CHECK(rows, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)tensors_n);
    tn_status status = tn_scope_enter(&scope);
    if (status == TN_OK) {
        for (int64_t i = 0; i < tensors_n; i++)
            rows[i] = rows_of(tensors[i], at, num_chunks);
        status = tni_leave(scope, tnx_cat(rows, tensors_n, at + 1), out);
    }
    tni_free(rows);
    return status;
}

/* ---- padding ---- */

tn_status tni_composite__pad_circular(tn_tensor *self, const int64_t *pad, int64_t pad_n,
                                      tn_tensor **out)
{
    const long long batched = 2 * ((long long)self->ndim - 2), n = pad_n;
    TN_CHECK(n == batched || n == batched + 2, TN_INVALID,
             "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be "
             "equivalent to padding of length %lld or %lld respectively but got %lld",
             batched + 2, batched, n);
    return tn_pad(self, pad, pad_n, "circular", (tn_opt_float){0}, out);
}

tn_status tni_composite__pad_enum(tn_tensor *self, const int64_t *pad, int64_t pad_n, int64_t mode,
                                  tn_opt_float value, tn_tensor **out)
{
    static const char *const modes[] = {"reflect", "replicate", "circular", "constant"};
    TN_CHECK(mode >= 0 && mode < 4, TN_INVALID, "_pad_enum: mode is 0 to 3, but got %lld",
             (long long)mode);
    return tn_pad(self, pad, pad_n, modes[mode], value, out);
}

/* ---- sums and products ---- */

tn_status tni_composite__add_relu(tn_tensor *self, tn_tensor *other, tn_scalar alpha,
                                  tn_tensor **out)
{
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_add(self, other, alpha, &sum));
    return tn_relu(sum, out);
}

tn_status tni_composite__add_relu_scalar(tn_tensor *self, tn_scalar other, tn_scalar alpha,
                                         tn_tensor **out)
{
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_add_scalar(self, other, alpha, &sum));
    return tn_relu(sum, out);
}

tn_status tni_composite__addmm_activation(tn_tensor *self, tn_tensor *mat1, tn_tensor *mat2,
                                          tn_scalar beta, tn_scalar alpha, bool use_gelu,
                                          tn_tensor **out)
{
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_addmm(self, mat1, mat2, beta, alpha, &sum));
    return use_gelu ? tn_gelu(sum, "none", out) : tn_relu(sum, out);
}

tn_status tni_composite__int_mm(tn_tensor *self, tn_tensor *mat2, tn_tensor **out)
{
    tn_tensor *const both[] = {self, mat2};
    static const char *const names[] = {"self", "mat2"};
    for (int i = 0; i < 2; i++)
        TN_CHECK(both[i]->ndim == 2, TN_INVALID,
                 "int_mm_out_cpu: Expected %s to be of dimension 2 but got %d", names[i],
                 both[i]->ndim);
    TN_CHECK(self->sizes[1] == mat2->sizes[0], TN_INVALID,
             "int_mm_out_cpu: self.size(1) needs to match mat2.size(0) but got %lld and %lld",
             (long long)self->sizes[1], (long long)mat2->sizes[0]);
    for (int i = 0; i < 2; i++)
        TN_CHECK(both[i]->dtype == TN_DTYPE_I8, TN_INVALID,
                 "int_mm_out_cpu: Expected %s dtype to be of type int8 but got %s", names[i],
                 tni_dtype_cpp((tn_dtype)both[i]->dtype));
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *a = tnx_to_dtype(self, TN_DTYPE_I32, false, false, TN_FORMAT_NONE);
    tn_tensor *b = tnx_to_dtype(mat2, TN_DTYPE_I32, false, false, TN_FORMAT_NONE);
    return tni_leave(scope, tnx_mm(a, b), out);
}

tn_status tni_composite__euclidean_dist(tn_tensor *x1, tn_tensor *x2, tn_tensor **out)
{
    return tn_cdist(x1, x2, 2.0, (tn_opt_int){0}, out);
}
