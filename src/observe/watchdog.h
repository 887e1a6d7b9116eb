/* SPDX-License-Identifier: MIT */
/* observe/watchdog.h: a thread that notices when another one does not move. */
#ifndef TNI_OBSERVE_WATCHDOG_H
#define TNI_OBSERVE_WATCHDOG_H

#include "tenon/recorder.h"
#include "base/status.h"

/* What its thread is called. */
#define TNI_WATCHDOG_NAME "tenon-watch"

/* How a thread is asked to stop: the dispatcher's business. See tni_flight_request. */
void tni_watchdog_set_interrupt(void (*fn)(uint32_t tid, uint64_t request));
/* The program exits. Once the watchdog has said that it ends it, nothing else does: this does not
 * come back then. */
void tni_watchdog_finish(void);
/* TENON_HANG_TIMEOUT and TENON_HANG_ACTION. A value that makes no sense is told once, on stderr. */
void tni_watchdog_from_environment(void);
/* Around fork(): it is neither being started nor being stopped. */
void tni_watchdog_before_fork(void);
void tni_watchdog_after_fork(void);
/* The latter in the child: its thread is not there. True when one is wanted. */
bool tni_watchdog_forked(void);
/* Start it again with what it was started with. */
void tni_watchdog_restart(void);

#endif
