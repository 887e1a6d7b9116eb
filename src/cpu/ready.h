/* SPDX-License-Identifier: MIT */
/* cpu/ready.h: a CPU tensor as a contiguous one of another dtype, to read or to write. */
#ifndef TNI_CPU_READY_H
#define TNI_CPU_READY_H

#include "cpu/copy.h"

/* A new reference: @p t itself when it is contiguous and of @p dtype, else a copy. NULL gives NULL.
 */
TN_NODISCARD static inline tn_status tni_ready(tn_tensor *t, tn_dtype dtype,
                                               TN_OWNED tn_tensor **out)
{
    if (!t || (t->dtype == dtype && (t->flags & TNI_CONTIGUOUS))) {
        *out = t ? tn_tensor_ref(t) : NULL;
        return TN_OK;
    }
    TN_AUTO(tn_tensor) copy = NULL;
    TN_TRY(tni_tensor_new(t->ndim, t->sizes, NULL, dtype, t->device, &copy));
    if (t->numel)
        TN_TRY(tni_copy_cpu(copy, t));
    *out = TN_MOVE(copy);
    return TN_OK;
}

/* What @p out is computed in, a new reference: itself when it is contiguous and of @p dtype, else a
 * fresh tensor, which tni_work_back copies to it in the end. */
TN_NODISCARD static inline tn_status tni_work_of(tn_tensor *out, tn_dtype dtype,
                                                 TN_OWNED tn_tensor **work)
{
    if (out->dtype == dtype && (out->flags & TNI_CONTIGUOUS)) {
        *work = tn_tensor_ref(out);
        return TN_OK;
    }
    return tni_tensor_new(out->ndim, out->sizes, NULL, dtype, out->device, work);
}

TN_NODISCARD static inline tn_status tni_work_back(tn_tensor *out, tn_tensor *work)
{
    return work != out && out->numel ? tni_copy_cpu(out, work) : TN_OK;
}

#endif
