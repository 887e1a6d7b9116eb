/* SPDX-License-Identifier: MIT */
/* tests/dispatch/ways.c: see ways.h. */
#include "dispatch/ways.h"

const char *const way_names[WAYS] = {"typed", "array", "stack"};

tn_status call_boxed(way how, tn_op *op, const tn_value *args, int nargs, tn_value *rets)
{
    if (how == ARRAY)
        return tn_op_call(op, args, nargs, rets);
    tn_stack stack = TN_STACK_INIT;
    ASSERT_OK(tn_stack_push(&stack, tn_value_int(77))); /* not an argument */
    for (int i = 0; i < nargs; i++)
        ASSERT_OK(tn_stack_push(&stack, args[i]));
    tn_status st = tn_op_call_boxed(op, &stack);
    if (st == TN_OK) {
        int nrets = tn_op_num_returns(op);
        EXPECT_EQ_INT(stack.n, 1 + nrets);
        for (int i = nrets; i-- > 0;)
            rets[i] = tn_stack_pop(&stack);
    } else {
        EXPECT_EQ_INT(stack.n, 1 + nargs);
    }
    EXPECT_EQ_INT(stack.values[0].u.i, 77);
    tn_stack_clear(&stack);
    return st;
}

tn_keyset device_keys(void)
{
    return tn_keyset_of(TN_KEY_PRIVATE1);
}

tn_key_guard to_the_backend(void)
{
    return tn_exclude_keys(tn_keyset_of(TN_KEY_ADINPLACE_OR_VIEW));
}
