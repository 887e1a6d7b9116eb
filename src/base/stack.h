/* SPDX-License-Identifier: MIT */
/* base/stack.h: how much stack a thread has left, and calling a function on a stack of its own.
 *
 * Note [More stack]
 * What nests as deep as a user's program wants (a backward pass inside a hook of another) would end
 * where the thread's stack ends. A call on a fresh stack goes on instead: it is an ordinary nested
 * call of the same thread that returns to its caller, only its frames lie in other memory. So
 * thread-local state, locks and the order of things are as ever, nobody waits for anybody, and
 * unwinders, who follow the frame pointer over the change, see one stack. */
#ifndef TNI_BASE_STACK_H
#define TNI_BASE_STACK_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes between the caller's frame and the end of the stack it is on. SIZE_MAX: not known, as on a
 * stack that the embedder switched to. */
size_t tni_stack_left(void);

/* Call @p fn on a fresh stack and give that back afterwards. All stacks of a thread that are in use
 * at a time take at most @p limit bytes. false: @p fn was not called, for there is no memory, the
 * limit is reached, or this processor is not one whose stack we know how to change. */
bool tni_stack_call(size_t limit, void (*fn)(void *ctx), void *ctx);

#endif
