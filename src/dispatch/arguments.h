/* SPDX-License-Identifier: MIT */
/* dispatch/arguments.h: boxed arguments as a boxed kernel may rely on them. */
#ifndef TNI_DISPATCH_ARGUMENTS_H
#define TNI_DISPATCH_ARGUMENTS_H

#include "core/tensor.h"
#include "dispatch/registry.h"

/* Note [What a boxed kernel sees]
 * Every argument has the tag that its type in the schema names, whatever the caller gave: a `float`
 * is TN_TAG_FLOAT also when an int was given, an `int[2]` is a TN_TAG_INT_LIST also for one number,
 * a `Tensor[]` a TN_TAG_TENSOR_LIST also for a list of values. And none is marked as owned: it
 * belongs to the caller, so that a kernel may hand it back as it is. Callers mostly give exactly
 * that, and then the kernel gets the caller's array. */
typedef struct tni_arguments {
    const tn_value *values; /* schema->nargs of them: the caller's array, or `room` */
    tn_value *room;         /* place for schema->nargs values */
    uint64_t made;          /* bit i: room[i] holds memory of its own */
} tni_arguments;

/* Check @p nargs given values against the schema and fill in defaults. @p a->room is set by the
 * caller. Afterwards, also on failure, call tni_arguments_done.
 * @retval TN_INVALID  too many, or one without a default is missing
 * @retval TN_TYPE     one does not fit */
TN_NODISCARD tn_status tni_arguments_take(tni_arguments *a, const tn_op *op,
                                          const tni_schema *schema, const tn_value *given,
                                          int nargs);
/* Whether all of them are there and have the form that a kernel may rely on, for operators of
 * tensors and numbers; *keys gets the tensors' keys. */
static inline bool tni_arguments_fit(const tni_schema *schema, const tn_value *given,
                                     tn_keyset *keys)
{
    tn_keyset ks = 0;
    for (int i = 0; i < schema->nargs; i++) {
        const tn_value *v = &given[i];
        switch (schema->args[i].type->kind) {
        case TNI_TYPE_TENSOR:
            if (v->tag != TN_TAG_TENSOR || v->flags != 0 || !v->u.tensor)
                return false;
            ks |= tni_keys(v->u.tensor);
            break;
        case TNI_TYPE_INT:
            if (v->tag != TN_TAG_INT)
                return false;
            break;
        case TNI_TYPE_FLOAT:
            if (v->tag != TN_TAG_FLOAT)
                return false;
            break;
        case TNI_TYPE_BOOL:
            if (v->tag != TN_TAG_BOOL)
                return false;
            break;
        default:
            return false;
        }
    }
    *keys = ks;
    return true;
}

void tni_arguments_drop(tni_arguments *a);
static inline void tni_arguments_done(tni_arguments *a)
{
    if (TNI_UNLIKELY(a->made))
        tni_arguments_drop(a);
}

#endif
