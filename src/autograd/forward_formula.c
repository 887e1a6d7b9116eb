/* SPDX-License-Identifier: MIT */
/* autograd/forward_formula.c: what the formulas of `jvp` lines are made of: arguments as they are
 * boxed, and tangents. */
#include "autograd/forward.h"
#include "tenon/ops.h"

tn_tensor *tni_jvp_tangent(const tni_forward *f, int argument)
{
    tn_tensor *t = f->args[argument].u.tensor;
    if (f->tangents[argument] || !t)
        return f->tangents[argument];
    return tnx_zeros_like(t, NULL, TN_FORMAT_PRESERVE);
}

tn_tensor *tni_jvp_sum(tn_tensor *a, tn_tensor *b)
{
    return a && b ? tnx_add(a, b, tn_int(1)) : b;
}

tn_scalar tni_jvp_scalar(const tn_value *v)
{
    tn_scalar s = tn_int(0);
    return tn_value_to_scalar(v, &s) == TN_OK ? s : tn_int(0);
}

tn_dtype tni_jvp_dtype(const tn_value *v)
{
    return v->tag == TN_TAG_INT ? (tn_dtype)v->u.i : TN_DTYPE_NONE;
}

tn_opt_int tni_jvp_opt_int(const tn_value *v)
{
    return v->tag == TN_TAG_INT ? tn_some_int(v->u.i) : tn_no_int();
}

tn_opt_bool tni_jvp_opt_bool(const tn_value *v)
{
    return v->tag != TN_TAG_BOOL ? TN_BOOL_NONE : v->u.i ? TN_BOOL_TRUE : TN_BOOL_FALSE;
}

const tn_scalar *tni_jvp_opt_scalar(const tn_value *v, tn_scalar *room)
{
    if (v->tag == TN_TAG_NONE)
        return NULL;
    *room = tni_jvp_scalar(v);
    return room;
}
