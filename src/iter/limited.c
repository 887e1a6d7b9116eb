/* SPDX-License-Identifier: MIT */
/* iter/limited.c: what stands between tensors of limited dtypes and kernels that do not know them.
 */
#include "iter/limited.h"

#include "core/tensor.h"
#include "dispatch/registry.h"
#include "op/def.h"

/* Note [Limited dtypes]
 * uint16, uint32, uint64 and the float8 kinds are for keeping and exchanging numbers. They have no
 * loops: elements are moved by their size, or computed with as int64 or float32 (cpu/run.h), and
 * cpu/move.c converts them. Most kernels choose by dtype among those that have loops and must never
 * meet another. So a tensor of such a dtype carries the functionality Quantized beside Dense. Its
 * slots lie above the device's own, and hold this kernel unless an operator is composite or
 * somebody registers one: what the declaration's line `takes` does not name is refused before any
 * memory is looked at, and no other tensor pays for the question. Elementwise operators are let
 * through: what counts there is the common dtype, which planning finds (iter/plan.c). */

typedef struct found {
    unsigned kinds; /* TNI_OP_TAKES_… */
    tn_dtype first;
} found;

static void look(found *f, const tn_tensor *t)
{
    if (!t || !TN_DTYPE_IS_LIMITED(t->dtype))
        return;
    if (!f->kinds)
        f->first = (tn_dtype)t->dtype;
    f->kinds |=
        tni_dtype_is_float8((tn_dtype)t->dtype) ? TNI_OP_TAKES_FLOAT8 : TNI_OP_TAKES_UNSIGNED;
}

tn_status tni_limited_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    const tn_op *op = tn_call_op(call);
    const tni_op_def *def = op->builtin;
    found f = {0, TN_DTYPE_NONE};
    int n = tn_op_num_arguments(op);
    for (int i = 0; i < n; i++)
        if (args[i].tag == TN_TAG_TENSOR)
            look(&f, args[i].u.tensor);
        else if (args[i].tag == TN_TAG_TENSOR_LIST)
            for (uint32_t k = 0; k < args[i].count; k++)
                look(&f, args[i].u.tensors[k]);
    bool taken = !def || (def->flags & TNI_OP_POINTWISE) || !(f.kinds & ~def->flags);
    TN_CHECK(taken, TN_UNSUPPORTED, "\"%s\" not implemented for '%s'", def->label,
             tni_dtype_text(f.first));
    return tn_call_redispatch(call, tn_keyset_remove(tn_call_keys(call), TN_KEY_QUANTIZED), args,
                              rets);
}
