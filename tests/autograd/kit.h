/* SPDX-License-Identifier: MIT */
/* tests/autograd/kit.h: small graphs of nodes made by hand, so that the engine is tested apart from
 * the operators' formulas. */
#ifndef TNI_TEST_AUTOGRAD_KIT_H
#define TNI_TEST_AUTOGRAD_KIT_H

#include "harness/test.h"

#include "autograd/meta.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

/* Make what is made only once, before blocks are counted. */
void kit_warm_up(void);
/* A float32 vector; ends the test when it cannot be made. */
tn_tensor *kit_vector(int64_t n, float value);
tn_tensor *kit_leaf(int64_t n, float value);
/* Elements of a contiguous float32 tensor; of NULL: NaN. */
float kit_at(const tn_tensor *t, int64_t i);
/* `.grad` of @p t, element i. */
float kit_grad(const tn_tensor *t, int64_t i);

/* One recorded call: @p result becomes output 0 of a new node of @p cls with an edge to each input.
 * What the class saves is filled from the inputs, in order. */
tn_status kit_record(const tni_node_class *cls, tn_tensor *const *inputs, uint32_t n,
                     tn_tensor *result);

extern const tni_node_class kit_add_class, kit_mul_class, kit_scale_class;
/* Differentiable, each with a node of the classes above. */
tn_status kit_add(tn_tensor *a, tn_tensor *b, tn_tensor **out);
tn_status kit_mul(tn_tensor *a, tn_tensor *b, tn_tensor **out); /* saves both */
tn_status kit_scale(tn_tensor *a, tn_tensor **out);             /* times two */
/* Times one, @p n times over: a chain of n nodes with one edge each. Releases @p a. */
tn_status kit_chain(TN_STOLEN tn_tensor *a, int64_t n, tn_tensor **out);

/* A pass from @p t with @p seed for each of its elements; @p opts may be NULL. */
tn_status kit_backward_with(tn_tensor *t, float seed, const tn_backward_opts *opts);
/* The name of the node that made @p t; "" of a leaf. */
const char *kit_node_name(tn_tensor *t);
/* What a second pass over a graph is told. */
extern const char *const kit_second_time;

/* How often a node of kit had its turn since the program began. On this thread. */
extern _Thread_local int64_t kit_turns;

#endif
