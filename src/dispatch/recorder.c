/* SPDX-License-Identifier: MIT */
/* dispatch/recorder.c: the recorder's switch, and threads that the watchdog wants to stop. */
#include "tenon/recorder.h"
#include "dispatch/debug.h"
#include "observe/record_file.h"
#include "observe/watchdog.h"

bool tn_recorder_on(void)
{
    return tni_ready() == TN_OK && (tni_watch_bits() & TNI_WATCH_RECORD) != 0;
}

tn_status tn_recorder_set(bool on)
{
    TN_TRY(tni_ready());
    TN_CHECK(tni_flight_head(), TN_UNSUPPORTED,
             "there is no record: TENON_RECORDER=0, or the system gave no memory for one");
    tni_flight_set_on(on);
    tni_watch(TNI_WATCH_RECORD, on);
    return TN_OK;
}

/* ---- interrupts ---- */

/* The bit stays while some thread has not heard yet; whoever passes here last takes it away. */
static void interrupt(uint32_t tid, uint64_t request)
{
    if (tni_flight_interrupt(tid, request))
        tni_watch(TNI_WATCH_INTERRUPT, true);
}

/* In a child made by fork(): what waits for its first dispatch. */
static _Atomic bool restart_wanted;

tn_status tni_interrupted(void)
{
    if (atomic_exchange(&restart_wanted, false)) {
        tni_watch(TNI_WATCH_INTERRUPT, false);
        tni_flight_publish();
        tni_watchdog_restart();
    }
    bool mine = tni_take_interrupt();
    if (atomic_load(&tni_interrupts) <= 0) {
        tni_watch(TNI_WATCH_INTERRUPT, false);
        if (atomic_load(&tni_interrupts) > 0) /* one came just now */
            tni_watch(TNI_WATCH_INTERRUPT, true);
    }
    TN_CHECK(!mine, TN_TIMEOUT,
             "interrupted by the watchdog: this thread had not moved for too long "
             "(TENON_HANG_TIMEOUT, TENON_HANG_ACTION=raise)");
    return TN_OK;
}

void tni_recorder_boot(void)
{
    tni_flight_start();
    if (tni_flight_head())
        tni_watch(TNI_WATCH_RECORD, true);
    tni_watchdog_set_interrupt(interrupt);
}

void tni_recorder_forked(void)
{
    tni_flight_forked();
    bool watched = tni_watchdog_forked();
    if (watched || tni_record_file_unnamed()) { /* neither thread nor file yet */
        atomic_store(&restart_wanted, true);
        tni_watch(TNI_WATCH_INTERRUPT, true);
    }
}
