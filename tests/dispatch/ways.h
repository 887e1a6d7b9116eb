/* SPDX-License-Identifier: MIT */
/* tests/dispatch/ways.h: the ways to call an operator, and operators of a device that no built-in
 * kernel serves. */
#ifndef TEST_DISPATCH_WAYS_H
#define TEST_DISPATCH_WAYS_H

#include "dispatch/kit.h"

typedef enum way { TYPED, ARRAY, STACK, WAYS } way;
extern const char *const way_names[WAYS];

/* Call with boxed arguments, in an array or on a stack; @p rets get owned values. */
tn_status call_boxed(way how, tn_op *op, const tn_value *args, int nargs, tn_value *rets);

/* Keys of a tensor for which no built-in kernel is in the way. */
tn_keyset device_keys(void);
/* Straight to the backend: without the layer that counts writes and tracks views. */
tn_key_guard to_the_backend(void);

#endif
