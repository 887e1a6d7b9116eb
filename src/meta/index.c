/* SPDX-License-Identifier: MIT */
/* meta/index.c: indexing meta tensors: where the number of results depends on values, there is no
 * answer. */
#include "gen/kernels.h"
#include "shape/index.h"
#include "shape/structured.h"

static TNI_COLD tn_status unknown_count(void)
{
    TN_FAIL(
        TN_UNSUPPORTED,
        "The register_meta function for torch.nonzero() raises unimplemented by default, as a "
        "correct data-independent implementation does not exist. This implementation returns a "
        "fake value, assuming all elements of the tensor are non-zero. To enable this "
        "registration, please set 'torch.fx.experimental._config.meta_nonzero_assume_all_nonzero' "
        "to True.");
}

tn_status tni_kernel_nonzero_meta(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    (void)call;
    (void)self;
    (void)out;
    return unknown_count();
}

tn_status tni_kernel_nonzero_out_meta(tn_call *call, tn_tensor *self, tn_tensor *out)
{
    (void)call;
    (void)self;
    (void)out;
    return unknown_count();
}

static tn_status index_geometry(tn_tensor *self, tn_tensor *const *indices, int64_t n,
                                tni_geometry *g)
{
    tni_index_plan plan;
    TN_TRY(tni_check_indices(self, indices, n));
    for (int64_t i = 0; i < n; i++)
        if (tni_is_mask(indices[i]))
            return unknown_count();
    TN_TRY(tni_index_plan_make(self, indices, n, &plan));
    tni_index_geometry(&plan, self, indices, g);
    return TN_OK;
}

tn_status tni_kernel_index_meta(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                                int64_t indices_n, tn_tensor **out)
{
    (void)call;
    tni_geometry g;
    TN_TRY(index_geometry(self, indices, indices_n, &g));
    return tni_tensor_from_geometry(&g, out);
}

tn_status tni_kernel_index_out_meta(tn_call *call, tn_tensor *self, tn_tensor *const *indices,
                                    int64_t indices_n, tn_tensor *out)
{
    (void)call;
    tni_geometry g;
    TN_AUTO(tn_tensor) beside = NULL;
    TN_TRY(tni_same_device(self, out));
    TN_CHECK(self->dtype == out->dtype, TN_INVALID,
             "index_out: self (%s) and result (%s) must have the same scalar type",
             tni_dtype_text((tn_dtype)self->dtype), tni_dtype_text((tn_dtype)out->dtype));
    TN_TRY(index_geometry(self, indices, indices_n, &g));
    return tni_out_prepare("index", &g, out, &self, 1, &beside);
}
