/* SPDX-License-Identifier: MIT */
/* cpu/equal.c: whether two tensors are equal as a whole. */
#include <string.h>
#include "cpu/run.h"
#include "gen/kernels.h"
#include "tenon/ops.h"

tn_status tni_kernel_equal(tn_call *call, tn_tensor *self, tn_tensor *other, bool *out)
{
    (void)call;
    TN_CHECK(!tni_is_meta(self) && !tni_is_meta(other), TN_UNSUPPORTED,
             "aten::equal cannot be answered for meta tensors: they have no data");
    if (self->ndim != other->ndim ||
        memcmp(self->sizes, other->sizes, (size_t)self->ndim * sizeof self->sizes[0]) != 0) {
        *out = false;
        return TN_OK;
    }
    static const tni_pointwise_attr differ = {"equal", TNI_PW_BOOL, TNI_LAYOUT_OPERANDS,
                                              TNI_PW_UNSIGNED | TNI_PW_FLOAT8, "equal_cpu"};
    const tni_operand operands[] = {{.tensor = self}, {.tensor = other}};
    TN_AUTO(tn_tensor) different = NULL;
    tni_iter it;
    TN_TRY(tni_iter_begin(&it, &differ, operands, 2, NULL, TNI_ITER_NEW));
    tn_status status = tni_run(&it, TNI_LOOP_NE, TNI_RUN_BOOL_RESULT, NULL);
    TN_TRY(tni_iter_end(&it, status, &different));
    const uint8_t *d = different->data;
    *out = !different->numel || !memchr(d, 1, (size_t)different->numel);
    return TN_OK;
}
