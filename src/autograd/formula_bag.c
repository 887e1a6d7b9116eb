/* SPDX-License-Identifier: MIT */
/* autograd/formula_bag.c: gradients of bags of embeddings: those that are operators
 * (composite/bag.c), of what the forward pass kept. See formula.c. */
#include "gen/gradients.h"

#include "tenon/ops.h"

enum { SUM, MEAN, LARGEST };

/* Indices behind the last bag are in one more, of which @p of has a row of zeros then. */
static tn_tensor *with_none(tn_tensor *of, bool ends)
{
    static const int64_t pads[] = {0, 0, 0, 1};
    int64_t dims = of ? of->ndim : 0;
    return ends ? tnx_constant_pad_nd(of, pads + (dims == 1 ? 2 : 0), 2 * dims, tn_int(0)) : of;
}

/* The forward pass takes indices of another dtype than its offsets. */
static tn_tensor *as_bags(tn_tensor *indices, const tn_tensor *bag_of)
{
    return tnx_to_dtype(indices, (tn_dtype)bag_of->dtype, false, false, TN_FORMAT_NONE);
}

tn_tensor *tni_grad_bag_weight(tn_tensor *grad, tn_tensor *indices, tn_tensor *bag_of,
                               tn_tensor *bag_size, tn_tensor *from, const int64_t *sizes,
                               int64_t ndim, bool by_frequency, int64_t mode, tn_tensor *scale,
                               bool ends, int64_t padding)
{
    (void)ndim;
    ends = ends && mode != LARGEST; /* which says itself where its elements came from */
    return tnx__embedding_bag_dense_backward(with_none(grad, ends), as_bags(indices, bag_of),
                                             bag_of, with_none(bag_size, ends), from, sizes[0],
                                             by_frequency, mode, scale, padding);
}

tn_tensor *tni_grad_bag_scale(tn_tensor *grad, tn_tensor *weight, tn_tensor *indices,
                              tn_tensor *bag_of, bool ends, int64_t padding)
{
    /* Every index has a bag: nobody looks where they begin. */
    tn_tensor *ids = as_bags(indices, bag_of);
    return tnx__embedding_bag_per_sample_weights_backward(with_none(grad, ends), weight, ids, ids,
                                                          bag_of, SUM, padding);
}
