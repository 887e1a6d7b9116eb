/* SPDX-License-Identifier: MIT */
/* tests/autograd/duals.h: dual tensors for tests of forward mode. */
#ifndef TNI_TEST_AUTOGRAD_DUALS_H
#define TNI_TEST_AUTOGRAD_DUALS_H

#include "autograd/kit.h"
#include "tenon/forward.h"

/* @p primal with this slope in every element. */
static inline tn_tensor *dual(tn_tensor *primal, float slope)
{
    tn_tensor *tangent = kit_vector(primal->numel, slope), *out = NULL;
    ASSERT_OK(tn_make_dual(primal, tangent, &out));
    tn_tensor_unref(tangent);
    return out;
}

/* Element of the tangent; NaN: there is none. */
static inline float slope(tn_tensor *t, int64_t i)
{
    tn_tensor *tangent = NULL;
    ASSERT_OK(tn_tensor_tangent(t, &tangent));
    float value = kit_at(tangent, i);
    tn_tensor_unref(tangent);
    return value;
}

static inline void drop2(tn_tensor *a, tn_tensor *b)
{
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

#endif
