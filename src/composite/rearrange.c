/* SPDX-License-Identifier: MIT */
/* composite/rearrange.c: joining, repeating, splitting and reshaping in terms of other operators.
 */
#include <string.h>
#include "core/at_hand.h"
#include "core/fake.h"
#include "core/names.h"
#include "core/tensor.h"
#include "core/scalar.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/expand.h"
#include "tenon/ops.h"

/* ---- hstack, vstack, dstack ---- */

/* Each tensor with at least @p ndim dimensions, then cat. */
static tn_status raised_cat(const char *name, tn_tensor *const *tensors, int64_t n, int ndim,
                            int64_t dim, tn_tensor **out)
{
    TN_CHECK(n > 0, TN_INVALID, "%s expects a non-empty TensorList", name);
    tn_tensor **raised = tni_calloc((size_t)n * sizeof *raised);
    TN_CHECK(raised, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    tn_status status = TN_OK;
    for (int64_t i = 0; i < n && status == TN_OK; i++) {
        const tn_tensor *t = tensors[i];
        int64_t sizes[3];
        if (t->ndim >= ndim) {
            raised[i] = tn_tensor_ref(tensors[i]);
            continue;
        }
        /* A vector is a row of a matrix, and stands in the middle of three dimensions. */
        for (int d = 0; d < ndim; d++)
            sizes[d] = 1;
        if (t->ndim == 1)
            sizes[ndim >= 2] = t->sizes[0];
        if (t->ndim == 2) {
            sizes[0] = t->sizes[0];
            sizes[1] = t->sizes[1];
        }
        status = tn_reshape(tensors[i], sizes, ndim, &raised[i]);
    }
    if (status == TN_OK) {
        if (dim < 0)
            dim = raised[0]->ndim == 1 ? 0 : 1;
        status = tn_cat(raised, n, dim, out);
    }
    tn_tensor_list_free(raised, n);
    return status;
}

tn_status tni_composite_hstack(tn_tensor *const *tensors, int64_t tensors_n, tn_tensor **out)
{
    return raised_cat("hstack", tensors, tensors_n, 1, -1, out);
}

tn_status tni_composite_vstack(tn_tensor *const *tensors, int64_t tensors_n, tn_tensor **out)
{
    return raised_cat("vstack", tensors, tensors_n, 2, 0, out);
}

tn_status tni_composite_dstack(tn_tensor *const *tensors, int64_t tensors_n, tn_tensor **out)
{
    return raised_cat("dstack", tensors, tensors_n, 3, 2, out);
}

/* ---- tile, repeat_interleave ---- */

tn_status tni_composite_tile(tn_tensor *self, const int64_t *dims, int64_t dims_n, tn_tensor **out)
{
    int64_t repeats[TN_MAX_DIMS];
    if (dims_n >= self->ndim)
        return tn_repeat(self, dims, dims_n, out);
    int64_t lead = self->ndim - dims_n;
    for (int d = 0; d < self->ndim; d++)
        repeats[d] = d < lead ? 1 : dims[d - lead];
    return tn_repeat(self, repeats, self->ndim, out);
}

/* Flattened where no dimension is given. */
static tn_status along(tn_tensor *self, tn_opt_int dim, tn_tensor **x, int *at)
{
    if (!dim.has) {
        *at = 0;
        return tn_reshape(self, &self->numel, 1, x);
    }
    TN_TRY(tni_wrap_dim(dim.value, self->ndim, at));
    *x = tn_tensor_ref(self);
    return TN_OK;
}

tn_status tni_composite_repeat_interleave_int(tn_tensor *self, int64_t repeats, tn_opt_int dim,
                                              tn_opt_int output_size, tn_tensor **out)
{
    int at;
    int64_t wanted, sizes[TN_MAX_DIMS];
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) wide = NULL;
    TN_AUTO(tn_tensor) expanded = NULL;
    TN_TRY(along(self, dim, &x, &at));
    TN_CHECK(repeats >= 0, TN_INVALID, "Repeats must be non-negative");
    TN_CHECK(x->ndim < TN_MAX_DIMS, TN_INVALID,
             "repeat_interleave: self has %d dimensions, at most %d are possible", x->ndim,
             TN_MAX_DIMS - 1);
    TN_CHECK(tni_i64_mul(x->ndim ? x->sizes[at] : 1, repeats, &wanted), TN_INVALID,
             "repeat_interleave: the result has more elements than 64 bits count");
    TN_CHECK(!output_size.has || output_size.value == wanted, TN_INVALID,
             "repeat_interleave: Invalid output_size, expected %lld but got %lld",
             (long long)wanted, (long long)output_size.value);
    if (x->ndim == 0) {
        TN_TRY(tn_expand(x, &repeats, 1, false, &expanded));
        return tn_clone(expanded, TN_FORMAT_CONTIGUOUS, out);
    }
    TN_TRY(tn_unsqueeze(x, at + 1, &wide));
    for (int d = 0; d < wide->ndim; d++)
        sizes[d] = d == at + 1 ? repeats : wide->sizes[d];
    TN_TRY(tn_expand(wide, sizes, wide->ndim, false, &expanded));
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tn_clone(expanded, TN_FORMAT_CONTIGUOUS, &copy));
    for (int d = 0; d < x->ndim; d++)
        sizes[d] = d == at ? wanted : x->sizes[d];
    return tn_reshape(copy, sizes, x->ndim, out);
}

tn_status tni_composite_repeat_interleave_tensor(tn_tensor *self, tn_tensor *repeats,
                                                 tn_opt_int dim, tn_opt_int output_size,
                                                 tn_tensor **out)
{
    int at;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) each = NULL;
    TN_AUTO(tn_tensor) index = NULL;
    TN_TRY(along(self, dim, &x, &at));
    TN_CHECK(repeats->ndim <= 1, TN_INVALID, "repeats must be 0-dim or 1-dim tensor");
    int64_t size = x->ndim ? x->sizes[at] : 1;
    if (repeats->ndim == 0 || repeats->sizes[0] == 1) {
        TN_AUTO(tn_tensor) one = NULL;
        TN_TRY(tn_reshape(repeats, (const int64_t[]){1}, 1, &one));
        TN_TRY(tn_expand(one, &size, 1, false, &each));
    } else {
        TN_CHECK(repeats->sizes[0] == size, TN_INVALID,
                 "repeats must have the same size as input along dim, but got repeats.size(0) = "
                 "%lld and input.size(%lld) = %lld",
                 (long long)repeats->sizes[0], (long long)(dim.has ? dim.value : 0),
                 (long long)size);
        each = tn_tensor_ref(repeats);
    }
    TN_TRY(tn_repeat_interleave(each, output_size, &index));
    return tn_index_select(x, at, index, out);
}

/* ---- tensor_split ---- */

static tn_status check_split(const tn_tensor *self)
{
    TN_CHECK(self->ndim > 0, TN_INVALID,
             "tensor_split expected at least a 1-dimensional tensor, but got a tensor with %d dims",
             self->ndim);
    return TN_OK;
}

/* Pieces from each of @p starts to the next; the last one goes to the end. */
static tn_status split_at(tn_tensor *self, int64_t dim, const int64_t *starts, int64_t n,
                          tn_tensor ***out, int64_t *out_n)
{
    tn_tensor **list = tni_calloc((size_t)n * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        tn_opt_int start = i ? tn_some_int(starts[i]) : tn_some_int(0);
        tn_opt_int end = i + 1 < n ? tn_some_int(starts[i + 1]) : tn_no_int();
        tn_status status = tn_slice(self, dim, start, end, 1, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = list;
    *out_n = n;
    return TN_OK;
}

tn_status tni_composite_tensor_split_indices(tn_tensor *self, const int64_t *indices,
                                             int64_t indices_n, int64_t dim, tn_tensor ***out,
                                             int64_t *out_n)
{
    int at;
    TN_TRY(check_split(self));
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    int64_t *starts = tni_alloc((size_t)(indices_n + 1) * sizeof *starts);
    TN_CHECK(starts, TN_NOMEM, "cannot allocate a list of %lld places", (long long)indices_n + 1);
    starts[0] = 0;
    for (int64_t i = 0; i < indices_n; i++)
        starts[i + 1] = indices[i];
    tn_status status = split_at(self, at, starts, indices_n + 1, out, out_n);
    tni_free(starts);
    return status;
}

tn_status tni_composite_tensor_split_sections(tn_tensor *self, int64_t sections, int64_t dim,
                                              tn_tensor ***out, int64_t *out_n)
{
    int at;
    size_t nbytes;
    TN_TRY(check_split(self));
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    TN_CHECK(sections > 0, TN_INVALID, "number of sections must be larger than 0, got %lld",
             (long long)sections);
    TN_CHECK(tni_size_mul((size_t)sections, sizeof(int64_t), &nbytes), TN_INVALID,
             "%lld sections are too many", (long long)sections);
    int64_t *starts = tni_alloc(nbytes);
    TN_CHECK(starts, TN_NOMEM, "cannot allocate a list of %lld places", (long long)sections);
    int64_t size = self->sizes[at], each = size / sections, longer = size % sections;
    for (int64_t i = 0; i < sections; i++)
        starts[i] = i * each + (i < longer ? i : longer);
    tn_status status = split_at(self, at, starts, sections, out, out_n);
    tni_free(starts);
    return status;
}

tn_status tni_composite_tensor_split_tensor(tn_tensor *self, tn_tensor *tensor_indices_or_sections,
                                            int64_t dim, tn_tensor ***out, int64_t *out_n)
{
    tn_tensor *by = tensor_indices_or_sections;
    TN_AUTO(tn_tensor) plain = NULL;
    char name[32];
    TN_TRY(check_split(self));
    TN_CHECK(by->dtype == TN_DTYPE_I64, TN_INVALID,
             "tensor_split expected tensor_indices_or_sections to have dtype of long, but got %s",
             tni_dtype_text((tn_dtype)by->dtype));
    TN_CHECK(by->ndim <= 1, TN_INVALID,
             "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
             "one-dimensional tensor, but got a tensor with %d dims",
             by->ndim);
    if (tni_is_fake(by))
        return tni_fake_needs_values("aten._local_scalar_dense.default");
    TN_CHECK(by->device.type == TN_DEVICE_CPU, TN_INVALID,
             "tensor_split expected tensor_indices_or_sections to be on cpu, but it's on %s",
             tn_device_format(by->device, name, sizeof name));
    TN_TRY(tn_contiguous(by, TN_FORMAT_CONTIGUOUS, &plain));
    TN_CHECK(tni_is_at_hand(plain), TN_INVALID, TNI_NOT_AT_HAND);
    const int64_t *numbers = plain->data;
    return by->ndim == 0 ? tn_tensor_split(self, numbers[0], dim, out, out_n)
                         : tn_tensor_split_indices(self, numbers, by->numel, dim, out, out_n);
}

/* ---- broadcasting lists ---- */

tn_status tni_composite_broadcast_to(tn_tensor *self, const int64_t *size, int64_t size_n,
                                     tn_tensor **out)
{
    return tn_expand(self, size, size_n, false, out);
}

tn_status tni_composite_broadcast_tensors(tn_tensor *const *tensors, int64_t tensors_n,
                                          tn_tensor ***out, int64_t *out_n)
{
    int ndim = 0;
    int64_t sizes[TN_MAX_DIMS], merged[TN_MAX_DIMS];
    for (int64_t i = 0; i < tensors_n; i++) {
        int both;
        TN_TRY(
            tni_broadcast_sizes(ndim, sizes, tensors[i]->ndim, tensors[i]->sizes, &both, merged));
        ndim = both;
        for (int d = 0; d < ndim; d++)
            sizes[d] = merged[d];
    }
    tn_tensor **list = tni_calloc((size_t)tensors_n * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)tensors_n);
    for (int64_t i = 0; i < tensors_n; i++) {
        if (tensors[i]->ndim == ndim &&
            (ndim == 0 || memcmp(tensors[i]->sizes, sizes, (size_t)ndim * sizeof *sizes) == 0)) {
            list[i] = tn_tensor_ref(tensors[i]); /* as it is, no view of it */
            continue;
        }
        tn_status status = tn_expand(tensors[i], sizes, ndim, false, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, i);
            return status;
        }
    }
    *out = list;
    *out_n = tensors_n;
    return TN_OK;
}

static tn_status check_grid(tn_tensor *const *tensors, int64_t n)
{
    TN_CHECK(n > 0, TN_INVALID, "meshgrid expects a non-empty TensorList");
    TN_CHECK(n <= TN_MAX_DIMS, TN_INVALID, "meshgrid: a grid has at most %d dimensions, got %lld",
             TN_MAX_DIMS, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        TN_CHECK(tensors[i]->ndim <= 1, TN_INVALID,
                 "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a tensor of "
                 "%d dimensions",
                 tensors[i]->ndim);
        TN_CHECK(tensors[i]->dtype == tensors[0]->dtype, TN_INVALID,
                 "meshgrid expects all tensors to have the same dtype");
        TN_CHECK(tensors[i]->device.type == tensors[0]->device.type &&
                     tensors[i]->device.index == tensors[0]->device.index,
                 TN_INVALID, "meshgrid expects all tensors to have the same device");
    }
    return TN_OK;
}

/* @p swapped: the first two tensors go along the other's dimension. */
static tn_status grid(tn_tensor *const *tensors, int64_t n, bool swapped, tn_tensor ***out,
                      int64_t *out_n)
{
    TN_TRY(check_grid(tensors, n));
    int64_t sizes[TN_MAX_DIMS];
    swapped &= n > 1;
    for (int64_t i = 0; i < n; i++)
        sizes[i] = tensors[swapped && i < 2 ? 1 - i : i]->numel;
    tn_tensor **list = tni_calloc((size_t)n * sizeof *list);
    TN_CHECK(list, TN_NOMEM, "cannot allocate a list of %lld tensors", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        TN_AUTO(tn_tensor) view = NULL;
        int64_t shape[TN_MAX_DIMS];
        for (int64_t d = 0; d < n; d++)
            shape[d] = 1;
        shape[swapped && i < 2 ? 1 - i : i] = tensors[i]->numel;
        tn_status status = tn_view(tensors[i], shape, n, &view);
        if (status == TN_OK)
            status = tn_expand(view, sizes, n, false, &list[i]);
        if (status != TN_OK) {
            tn_tensor_list_free(list, n);
            return status;
        }
    }
    *out = list;
    *out_n = n;
    return TN_OK;
}

tn_status tni_composite_meshgrid(tn_tensor *const *tensors, int64_t tensors_n, tn_tensor ***out,
                                 int64_t *out_n)
{
    return grid(tensors, tensors_n, false, out, out_n);
}

tn_status tni_composite_meshgrid_indexing(tn_tensor *const *tensors, int64_t tensors_n,
                                          const char *indexing, tn_tensor ***out, int64_t *out_n)
{
    bool xy = indexing[0] == 'x' && indexing[1] == 'y' && !indexing[2];
    bool ij = indexing[0] == 'i' && indexing[1] == 'j' && !indexing[2];
    TN_CHECK(xy || ij, TN_INVALID,
             "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s",
             indexing);
    return grid(tensors, tensors_n, xy, out, out_n);
}

/* ---- other shapes ---- */

tn_status tni_composite_swapdims(tn_tensor *self, int64_t dim0, int64_t dim1, tn_tensor **out)
{
    return tn_transpose(self, dim0, dim1, out);
}

tn_status tni_composite_ravel(tn_tensor *self, tn_tensor **out)
{
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(tn_contiguous(self, TN_FORMAT_CONTIGUOUS, &run));
    return tn_view(run, (const int64_t[]){-1}, 1, out);
}

tn_status tni_composite_unflatten(tn_tensor *self, int64_t dim, const int64_t *sizes,
                                  int64_t sizes_n, tn_tensor **out)
{
    char text[TNI_SIZES_TEXT];
    int at, unknown = -1;
    int64_t shape[TN_MAX_DIMS], product = 1;
    bool fits = true;
    TN_TRY(tni_wrap_dim(dim, self->ndim, &at));
    TN_CHECK(sizes_n > 0, TN_INVALID, "unflatten: sizes must be non-empty");
    TN_CHECK(!tni_names_of(self), TN_INVALID,
             "unflatten: input is a named tensor but no names were given for unflattened sizes");
    TN_CHECK(self->ndim > 0, TN_INVALID, "unflatten: self must have at least 1 dimension");
    TN_CHECK(self->ndim - 1 + sizes_n <= TN_MAX_DIMS, TN_INVALID,
             "unflatten: the result would have %lld dimensions, at most %d are possible",
             (long long)(self->ndim - 1 + sizes_n), TN_MAX_DIMS);
    for (int64_t i = 0; i < sizes_n; i++) {
        shape[at + i] = sizes[i];
        if (sizes[i] == -1) {
            TN_CHECK(unknown < 0, TN_INVALID,
                     "unflatten got an unexpected error:\nonly one dimension can be inferred");
            unknown = at + (int)i;
            continue;
        }
        fits = fits && sizes[i] >= 0 && tni_i64_mul(product, sizes[i], &product);
    }
    if (unknown >= 0) {
        fits = fits && product > 0 && self->sizes[at] % product == 0;
        shape[unknown] = fits ? self->sizes[at] / product : 0;
    } else {
        fits = fits && product == self->sizes[at];
    }
    TN_CHECK(fits, TN_INVALID,
             "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%lld) in the "
             "input tensor",
             tni_format_sizes((int)sizes_n, sizes, text, sizeof text), at,
             (long long)self->sizes[at]);
    for (int d = 0; d < self->ndim; d++)
        if (d != at)
            shape[d < at ? d : d - 1 + (int)sizes_n] = self->sizes[d];
    return tn_view(self, shape, self->ndim - 1 + sizes_n, out);
}

/* ---- picking ---- */

tn_status tni_composite_take_along_dim(tn_tensor *self, tn_tensor *indices, tn_opt_int dim,
                                       tn_tensor **out)
{
    TN_CHECK(!dim.has || self->ndim == indices->ndim, TN_INVALID,
             "torch.take_along_dim(): input and indices should have the same number of dimensions, "
             "but got %d dimensions for input, and %d dimensions for indices",
             self->ndim, indices->ndim);
    TN_CHECK(indices->dtype == TN_DTYPE_I64, TN_INVALID,
             "torch.take_along_dim(): dtype of indices should be Long but got %s",
             tni_dtype_text((tn_dtype)indices->dtype));
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) index = NULL;
    TN_AUTO(tn_tensor) wrapped = NULL;
    if (!dim.has) {
        TN_TRY(tn_reshape(self, &self->numel, 1, &x));
        TN_TRY(tn_reshape(indices, &indices->numel, 1, &index));
        return tn_gather(x, 0, index, false, out);
    }
    int at, ndim;
    int64_t sizes[TN_MAX_DIMS], wide[TN_MAX_DIMS], own;
    TN_TRY(tni_wrap_dim(dim.value, self->ndim, &at));
    for (int d = 0; d < self->ndim; d++)
        sizes[d] = d == at ? indices->sizes[d] : self->sizes[d];
    TN_TRY(tni_broadcast_sizes(self->ndim, sizes, indices->ndim, indices->sizes, &ndim, wide));
    own = self->ndim ? self->sizes[at] : 1;
    TN_TRY(tn_remainder_scalar(indices, tn_int(own), &wrapped)); /* they count round and round */
    TN_TRY(tn_expand(wrapped, wide, ndim, false, &index));
    for (int d = 0; d < self->ndim; d++)
        wide[d] = d == at ? own : wide[d];
    TN_TRY(tn_expand(self, wide, ndim, false, &x));
    return tn_gather(x, at, index, false, out);
}

/* The largest element, which only who sees values can tell. */
static tn_status class_range(tn_tensor *self, int64_t *least, int64_t *most)
{
    TN_AUTO(tn_tensor) low = NULL;
    TN_AUTO(tn_tensor) high = NULL;
    tn_scalar a, b;
    TN_TRY(tn_amin(self, NULL, 0, false, &low));
    TN_TRY(tn_amax(self, NULL, 0, false, &high));
    TN_TRY(tn_item(low, &a));
    TN_TRY(tn_item(high, &b));
    *least = a.v.i;
    *most = b.v.i;
    return TN_OK;
}

tn_status tni_composite_one_hot(tn_tensor *self, int64_t num_classes, tn_tensor **out)
{
    TN_CHECK(self->dtype == TN_DTYPE_I64, TN_INVALID,
             "one_hot is only applicable to index tensor of type LongTensor.");
    TN_CHECK(self->ndim < TN_MAX_DIMS, TN_INVALID,
             "one_hot: self has %d dimensions, at most %d are possible", self->ndim,
             TN_MAX_DIMS - 1);
    int64_t sizes[TN_MAX_DIMS], least = 0, most = -1;
    if (self->numel == 0) {
        TN_CHECK(num_classes > 0, TN_INVALID,
                 "Can not infer total number of classes from empty tensor.");
    } else if (!tni_is_meta(self) || num_classes == -1) {
        TN_TRY(class_range(self, &least, &most));
    }
    TN_CHECK(least >= 0, TN_INVALID, "Class values must be non-negative.");
    if (num_classes == -1 && most < INT64_MAX)
        num_classes = most + 1;
    TN_CHECK(num_classes > most && num_classes > 0, TN_INVALID,
             "Class values must be smaller than num_classes.");
    for (int d = 0; d < self->ndim; d++)
        sizes[d] = self->sizes[d];
    sizes[self->ndim] = num_classes;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_NO_DEVICE);
    TN_AUTO(tn_tensor) zeros = NULL;
    TN_AUTO(tn_tensor) index = NULL;
    TN_TRY(tn_new_zeros(self, sizes, self->ndim + 1, &opts, &zeros));
    if (self->numel == 0) {
        *out = TN_MOVE(zeros);
        return TN_OK;
    }
    TN_TRY(tn_unsqueeze(self, -1, &index));
    return tn_scatter_value(zeros, -1, index, tn_int(1), out);
}
