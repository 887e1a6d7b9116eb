/* SPDX-License-Identifier: MIT */
/* composite/complex.c: complex numbers in terms of other operators. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* There is no conjugate that is only marked as such: a complex tensor is computed at once. */
tn_status tni_composite_conj(tn_tensor *self, tn_tensor **out)
{
    if (tn_dtype_is_complex((tn_dtype)self->dtype))
        return tn_conj_physical(self, out);
    *out = tn_tensor_ref(self);
    return TN_OK;
}
