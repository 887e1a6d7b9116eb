/* SPDX-License-Identifier: MIT */
/* composite/order.c: other names of extremes and sorting. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

tn_status tni_composite_max_other(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    return tn_maximum(self, other, out);
}

tn_status tni_composite_min_other(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    return tn_minimum(self, other, out);
}

tn_status tni_composite_argsort(tn_tensor *self, int64_t dim, bool descending, tn_tensor **out)
{
    TN_AUTO(tn_tensor) values = NULL;
    return tn_sort(self, dim, descending, &values, out);
}

tn_status tni_composite_argsort_stable(tn_tensor *self, bool stable, int64_t dim, bool descending,
                                       tn_tensor **out)
{
    TN_AUTO(tn_tensor) values = NULL;
    return tn_sort_stable(self, stable ? TN_BOOL_TRUE : TN_BOOL_FALSE, dim, descending, &values,
                          out);
}
