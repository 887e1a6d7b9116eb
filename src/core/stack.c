/* SPDX-License-Identifier: MIT */
/* core/stack.c: the stack of owned values that boxed calls take their arguments from. */
#include "base/alloc.h"
#include "base/status.h"
#include "tenon/dispatch.h"

#if defined(TN_STRESS) && TN_STRESS
enum { FIRST_CAPACITY = 1 };
#else
enum { FIRST_CAPACITY = 8 };
#endif

static tn_status grow(tn_stack *stack)
{
    size_t capacity = stack->capacity ? 2 * stack->capacity : FIRST_CAPACITY;
    tn_value *values =
        tni_realloc(stack->values, stack->capacity * sizeof(tn_value), capacity * sizeof(tn_value));
    TN_CHECK(values, TN_NOMEM, "cannot grow a stack to %zu values", capacity);
    stack->values = values;
    stack->capacity = capacity;
    return TN_OK;
}

tn_status tn_stack_push(tn_stack *stack, tn_value value)
{
    tn_status status = TN_OK;
    if (!stack)
        status = tni_fail(TN_INVALID, TNI_WHERE, "tn_stack_push: stack is NULL");
    else if (stack->n == stack->capacity)
        status = grow(stack);
    if (status == TN_OK && !(value.flags & TN_VALUE_OWNED))
        status = tn_value_copy(&value, &value);
    if (status != TN_OK) {
        tn_value_clear(&value);
        return status;
    }
    stack->values[stack->n++] = value;
    return TN_OK;
}

tn_value tn_stack_pop(tn_stack *stack)
{
    if (!stack || stack->n == 0)
        return tn_value_none();
    return stack->values[--stack->n];
}

void tn_stack_drop(tn_stack *stack, size_t n)
{
    while (stack && n-- > 0 && stack->n > 0)
        tn_value_clear(&stack->values[--stack->n]);
}

void tn_stack_clear(tn_stack *stack)
{
    if (!stack)
        return;
    tn_stack_drop(stack, stack->n);
    tni_free(stack->values);
    *stack = (tn_stack)TN_STACK_INIT;
}
