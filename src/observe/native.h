/* SPDX-License-Identifier: MIT */
/* observe/native.h: native stacks of threads of this process, without another program's help. */
#ifndef TNI_OBSERVE_NATIVE_H
#define TNI_OBSERVE_NATIVE_H

#include "base/str.h"

enum { TNI_NATIVE_FRAMES = 40 };

/* Load what a stack needs, while nothing hangs yet. */
void tni_native_prepare(void);
/* What a signal may do to a thread that sleeps in a call of the system, which it may end. */
typedef enum tni_asking {
    TNI_ASK,         /* that is known */
    TNI_ASK_AWAKE,   /* nothing: who sleeps is not asked */
    TNI_ASK_FOR_GOOD /* nothing: the process is about to be ended, it stays in its handler */
} tni_asking;
/* The stack of thread @p tid, the innermost first, by a signal to it (TNI_LOOK_SIGNAL). The number
 * of frames; 0: *why says why there are none. One caller at a time. */
int tni_native_stack(uint32_t tid, tni_asking how, void *frames[TNI_NATIVE_FRAMES],
                     const char **why);
/* A line for each, with function, file and offset. Takes no lock that a stuck thread may hold. */
void tni_native_add(tni_str *s, void *const *frames, int n);

#endif
