/* SPDX-License-Identifier: MIT */
/* fake/inputs.h: what the arguments of one call have in common: mode, device, known values. */
#ifndef TNI_FAKE_INPUTS_H
#define TNI_FAKE_INPUTS_H

#include "dispatch/call.h"
#include "fake/mode.h"

typedef struct tni_fake_inputs {
    const tn_call *call;
    const tni_schema *schema;
    const tn_value *args;
    tn_fake_mode *mode;    /* of the thread, else of the arguments; NULL: neither */
    const tn_tensor *real; /* the first one that is neither fake nor a bare number */
    int fakes, constants;  /* how many are fake, and of those have known values */
    tn_device device;      /* theirs in common; none: no fake argument says */
    bool device_is_weak;   /* a 0-dim CPU tensor said it: any other device takes over */
    bool mixed;            /* some argument was on another */
} tni_fake_inputs;

/* Look at every tensor among the arguments.
 * @retval TN_INVALID  "Mixing fake modes NYI"; "Unhandled FakeTensor Device Propagation for
 * aten.add.Tensor, found two different devices cpu, cuda:0" */
TN_NODISCARD tn_status tni_fake_look(tni_fake_inputs *in);
/* Once all is known: a written argument must be on the common device, and the values of index_put
 * where self is. */
TN_NODISCARD tn_status tni_fake_check_devices(const tni_fake_inputs *in);

/* Whether the operator's declaration has this tag. */
bool tni_fake_has_tag(const tn_op *op, const char *tag);

/* Redispatch to @p keys with arguments that were checked on the way here. @p rets gets owned
 * values; on failure all are None. */
TN_NODISCARD tn_status tni_fake_go_on(tn_call *call, const tni_schema *schema, tn_keyset keys,
                                      const tn_value *args, tn_value *rets);

/* Visit the tensors of one boxed argument: a tensor, a list of tensors, or neither; NULLs are
 * skipped. *at starts at 0; NULL at the end. */
static inline tn_tensor *tni_next_tensor(const tn_value *v, uint32_t *at)
{
    if (v->tag == TN_TAG_TENSOR)
        return (*at)++ == 0 ? v->u.tensor : NULL;
    if (v->tag != TN_TAG_TENSOR_LIST)
        return NULL;
    while (*at < v->count) {
        tn_tensor *t = v->u.tensors[(*at)++];
        if (t)
            return t;
    }
    return NULL;
}

#endif
