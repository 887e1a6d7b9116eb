/* SPDX-License-Identifier: MIT */
/* composite/stat.c: variances and norms by their older names, in terms of `correction` and
 * linalg_vector_norm; the mean without NaN; the cosine of an angle. */
#include "core/state.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/index.h"
#include "tenon/ops.h"

/* ---- variances ---- */

tn_status tni_composite_var(tn_tensor *self, bool unbiased, tn_tensor **out)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_var(self, NULL, 0, &correction, false, out);
}

tn_status tni_composite_var_dim(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool unbiased,
                                bool keepdim, tn_tensor **out)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_var(self, dim, dim_n, &correction, keepdim, out);
}

tn_status tni_composite_std(tn_tensor *self, bool unbiased, tn_tensor **out)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_std(self, NULL, 0, &correction, false, out);
}

tn_status tni_composite_std_dim(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool unbiased,
                                bool keepdim, tn_tensor **out)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_std(self, dim, dim_n, &correction, keepdim, out);
}

tn_status tni_composite_var_mean(tn_tensor *self, bool unbiased, tn_tensor **out0, tn_tensor **out1)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_var_mean(self, NULL, 0, &correction, false, out0, out1);
}

tn_status tni_composite_var_mean_dim(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                     bool unbiased, bool keepdim, tn_tensor **out0,
                                     tn_tensor **out1)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_var_mean(self, dim, dim_n, &correction, keepdim, out0, out1);
}

tn_status tni_composite_std_mean(tn_tensor *self, bool unbiased, tn_tensor **out0, tn_tensor **out1)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_std_mean(self, NULL, 0, &correction, false, out0, out1);
}

tn_status tni_composite_std_mean_dim(tn_tensor *self, const int64_t *dim, int64_t dim_n,
                                     bool unbiased, bool keepdim, tn_tensor **out0,
                                     tn_tensor **out1)
{
    tn_scalar correction = tn_int(unbiased);
    return tn_std_mean(self, dim, dim_n, &correction, keepdim, out0, out1);
}

/* ---- norms ---- */

static tn_status norm(tn_tensor *self, const tn_scalar *p, const int64_t *dim, int64_t dim_n,
                      bool keepdim, tn_dtype dtype, tn_tensor **out)
{
    tn_dtype have = (tn_dtype)self->dtype;
    TN_CHECK(dtype != TN_DTYPE_NONE || !tn_dtype_is_integral(have, true), TN_INVALID,
             "norm(): input dtype should be either floating point or complex. Got %s instead.",
             tni_dtype_text(have));
    TN_CHECK(dtype == TN_DTYPE_NONE || !tn_dtype_is_integral(dtype, true), TN_INVALID,
             "norm(): the desired output dtype should be either floating point or complex. Got %s "
             "instead.",
             tni_dtype_text(dtype));
    return tn_linalg_vector_norm(self, p ? *p : tn_int(2), dim, dim_n, keepdim, dtype, out);
}

tn_status tni_kernel_norm_scalar(tn_call *call, tn_tensor *self, tn_scalar p, tn_tensor **out)
{
    (void)call;
    return norm(self, &p, NULL, 0, false, TN_DTYPE_NONE, out);
}

tn_status tni_kernel_norm_dim(tn_call *call, tn_tensor *self, const tn_scalar *p,
                              const int64_t *dim, int64_t dim_n, bool keepdim, tn_tensor **out)
{
    (void)call;
    return norm(self, p, dim, dim_n, keepdim, TN_DTYPE_NONE, out);
}

tn_status tni_kernel_norm_dim_dtype(tn_call *call, tn_tensor *self, const tn_scalar *p,
                                    const int64_t *dim, int64_t dim_n, bool keepdim, tn_dtype dtype,
                                    tn_tensor **out)
{
    (void)call;
    return norm(self, p, dim, dim_n, keepdim, dtype, out);
}

tn_status tni_kernel_norm_dtype(tn_call *call, tn_tensor *self, const tn_scalar *p, tn_dtype dtype,
                                tn_tensor **out)
{
    (void)call;
    return norm(self, p, NULL, 0, false, dtype, out);
}

tn_status tni_composite_nanmean(tn_tensor *self, const int64_t *dim, int64_t dim_n, bool keepdim,
                                tn_dtype dtype, tn_tensor **out)
{
    tn_dtype have = (tn_dtype)self->dtype;
    TN_CHECK(!tn_dtype_is_integral(have, true), TN_INVALID,
             "nanmean(): expected input to have floating point or complex dtype but got %s",
             tni_dtype_text(have));
    TN_AUTO(tn_tensor) there = NULL;
    TN_AUTO(tn_tensor) count = NULL;
    TN_AUTO(tn_tensor) sum = NULL;
    TN_TRY(tn_nansum(self, dim, dim_n, keepdim, dtype, &sum));
    TN_TRY(tn_eq(self, self, &there));
    TN_TRY(tn_sum_dim(there, dim, dim_n, keepdim, TN_DTYPE_NONE, &count));
    return tn_div(sum, count, out);
}

/* ---- cosine ---- */

/* @p x over its length along @p dim, which is at least @p eps: the bound takes no part in
 * gradients, as in the reference. */
static tn_status direction(tn_tensor *x, tn_dtype dtype, int64_t dim, double eps, tn_tensor **out)
{
    TN_AUTO(tn_tensor) floats = NULL;
    TN_AUTO(tn_tensor) length = NULL;
    TN_AUTO(tn_tensor) bounded = NULL;
    if (tn_dtype_is_integral((tn_dtype)x->dtype, true))
        TN_TRY(tn_to_dtype(x, dtype, false, false, TN_FORMAT_NONE, &floats));
    else
        floats = tn_tensor_ref(x);
    TN_TRY(tn_linalg_vector_norm(floats, tn_int(2), &dim, 1, true, TN_DTYPE_NONE, &length));
    TN_TRY(tn_clone(length, TN_FORMAT_PRESERVE, &bounded));
    bool before = tn_set_grad_enabled(false);
    tn_status status = tn_clamp_min_(bounded, tn_float(eps));
    (void)tn_set_grad_enabled(before);
    TN_TRY(status);
    return tn_div(floats, bounded, out);
}

tn_status tni_composite_cosine_similarity(tn_tensor *x1, tn_tensor *x2, int64_t dim, double eps,
                                          tn_tensor **out)
{
    tn_dtype dtype = tn_promote_types((tn_dtype)x1->dtype, (tn_dtype)x2->dtype);
    TN_CHECK(tn_dtype_is_floating(dtype), TN_INVALID,
             "expected common dtype to be floating point, yet common dtype is %s",
             tni_dtype_text(dtype));
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) unit1 = NULL;
    TN_AUTO(tn_tensor) unit2 = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_TRY(
        tni_same_device(x1, x2)); /* before one is compared that takes long, in the other's sizes */
    /* Both in the sizes that they broadcast to, so that `dim` means the same in both. */
    int ndim = x1->ndim > x2->ndim ? x1->ndim : x2->ndim;
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        int i = d - (ndim - x1->ndim), k = d - (ndim - x2->ndim);
        int64_t m = i < 0 ? 1 : x1->sizes[i], n = k < 0 ? 1 : x2->sizes[k];
        TN_CHECK(m == n || m == 1 || n == 1, TN_INVALID,
                 "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                 "non-singleton dimension %d",
                 (long long)m, (long long)n, d);
        sizes[d] = m == 1 ? n : m;
    }
    TN_TRY(tn_expand(x1, sizes, ndim, false, &a));
    TN_TRY(tn_expand(x2, sizes, ndim, false, &b));
    TN_TRY(direction(a, dtype, dim, eps, &unit1));
    TN_TRY(direction(b, dtype, dim, eps, &unit2));
    TN_TRY(tn_mul(unit1, unit2, &product));
    return tn_sum_dim(product, &dim, 1, false, TN_DTYPE_NONE, out);
}
