/* SPDX-License-Identifier: MIT */
/* autograd/formula_view.c: gradients of views that are described by geometry alone. */
#include "autograd/formula_view.h"
#include "autograd/formula.h"

#include "core/scope.h"
#include "tenon/ops.h"

/* Dimensions that matter: more than one element, which lie at different places. */
typedef struct layout {
    int64_t n;
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    int64_t offset;
} layout;

static bool any_empty(const int64_t *sizes, int64_t n)
{
    for (int64_t d = 0; d < n; d++)
        if (sizes[d] == 0)
            return true;
    return false;
}

bool tni_may_overlap(int64_t n, const int64_t *sizes, const int64_t *strides)
{
    int64_t order[TN_MAX_DIMS], reach = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = i;
        for (; at > 0 && strides[order[at - 1]] > strides[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int64_t i = 0; i < n; i++) {
        int64_t size = sizes[order[i]], stride = strides[order[i]];
        if (size > 1 && stride <= reach)
            return true;
        reach += stride * (size - 1);
    }
    return false;
}

static bool may_overlap(const layout *l)
{
    return tni_may_overlap(l->n, l->sizes, l->strides);
}

/* Elements of storage that the layout reaches. */
static int64_t extent(const layout *l)
{
    int64_t last = l->offset;
    for (int64_t d = 0; d < l->n; d++)
        last += (l->sizes[d] - 1) * l->strides[d];
    return last + 1;
}

/* The place in storage of each element, as one row. */
static tn_tensor *places(const layout *l, int64_t n, tn_device device)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, device);
    tn_tensor *all = tnx_arange(tn_int(n), &opts);
    all = tnx_as_strided(all, l->sizes, l->n, l->strides, l->n, tn_some_int(l->offset));
    return tnx_reshape(all, (int64_t[]){-1}, 1);
}

static void keep(layout *l, int64_t size, int64_t stride)
{
    l->sizes[l->n] = size;
    l->strides[l->n++] = stride;
}

/* The layout of the view, and its gradient without the dimensions that do not matter. */
static tn_tensor *drop_dims(tn_tensor *grad, const int64_t *size, const int64_t *stride, int64_t n,
                            layout *out)
{
    int64_t repeated[TN_MAX_DIMS], n_repeated = 0;
    for (int64_t d = 0; d < n; d++) {
        if (size[d] > 1 && stride[d] != 0)
            keep(out, size[d], stride[d]);
        else if (size[d] > 1)
            repeated[n_repeated++] = d;
    }
    if (n_repeated)
        grad = tnx_sum_dim(grad, repeated, n_repeated, true, TN_DTYPE_NONE);
    return out->n == n ? grad : tnx_reshape(grad, out->sizes, out->n);
}

tn_tensor *tni_grad_as_strided_backward(tn_tensor *grad, const int64_t *input_sizes,
                                        int64_t input_sizes_n, const int64_t *input_strides,
                                        int64_t input_strides_n, int64_t input_offset,
                                        const int64_t *size, int64_t size_n, const int64_t *stride,
                                        int64_t stride_n, tn_opt_int offset)
{
    (void)stride_n;
    if (!grad || tni_scope_failed())
        return NULL;
    if (any_empty(input_sizes, input_sizes_n) || any_empty(size, size_n))
        return tnx_new_zeros(grad, input_sizes, input_sizes_n, NULL);
    layout in, out;
    in.n = out.n = 0;
    for (int64_t d = 0; d < input_sizes_n; d++)
        if (input_sizes[d] != 1)
            keep(&in, input_sizes[d], input_strides[d]);
    grad = drop_dims(grad, size, stride, size_n, &out);
    /* What lies before both is of no interest. */
    int64_t out_offset = offset.has ? offset.value : input_offset;
    int64_t first = input_offset < out_offset ? input_offset : out_offset;
    in.offset = input_offset - first;
    out.offset = out_offset - first;
    int64_t n = extent(&in) > extent(&out) ? extent(&in) : extent(&out);

    tn_tensor *all = tnx_new_zeros(grad, (int64_t[]){n}, 1, NULL);
    /* By numbers too where Python stands for the elements: a view of them has no place that a write
     * through it could be recorded with. */
    if (may_overlap(&out) || tni_stands_for_others(grad)) {
        tn_tensor *rows = places(&out, n, tn_tensor_device(grad));
        all = tnx_index_add(all, 0, rows, tnx_reshape(grad, (int64_t[]){-1}, 1), tn_int(1));
    } else {
        (void)tnx_copy_(
            tnx_as_strided(all, out.sizes, out.n, out.strides, out.n, tn_some_int(out.offset)),
            grad, false);
    }
    if (may_overlap(&in)) {
        tn_tensor *rows = places(&in, n, tn_tensor_device(grad));
        tn_tensor *count = tnx_zeros_like(all, NULL, TN_FORMAT_NONE);
        int64_t n_rows = tn_tensor_numel(rows);
        tn_tensor_opts opts = tn_opts(tn_tensor_dtype(all), tn_tensor_device(all));
        count = tnx_index_add(count, 0, rows, tnx_ones(&n_rows, 1, &opts), tn_int(1));
        all = tnx_div(all, count); /* NaN where the input does not look */
    }
    return tnx_as_strided(all, input_sizes, input_sizes_n, input_strides, input_strides_n,
                          tn_some_int(in.offset));
}
