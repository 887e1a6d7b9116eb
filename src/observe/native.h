/* SPDX-License-Identifier: MIT */
/* observe/native.h: native stacks of threads of this process, without another program's help. */
#ifndef TNI_OBSERVE_NATIVE_H
#define TNI_OBSERVE_NATIVE_H

#include "base/str.h"

enum { TNI_NATIVE_FRAMES = 40 };

/* Load what a stack needs, while nothing hangs yet. */
void tni_native_prepare(void);
/* The stack of thread @p tid, the innermost first, by a signal to it (TNI_LOOK_SIGNAL). The number
 * of frames; 0: *why says why there are none. One caller at a time. @p for_good: the process is
 * about to be ended; a thread that the signal would wake stays in its handler. */
int tni_native_stack(uint32_t tid, bool for_good, void *frames[TNI_NATIVE_FRAMES],
                     const char **why);
/* A line for each, with function, file and offset. Takes no lock that a stuck thread may hold. */
void tni_native_add(tni_str *s, void *const *frames, int n);

#endif
