/* SPDX-License-Identifier: MIT */
/* observe/layout.h: where the parts of a record that this version writes lie. Readers take these
 * offsets from the header. */
#ifndef TNI_OBSERVE_LAYOUT_H
#define TNI_OBSERVE_LAYOUT_H

#include "observe/flight.h"

#define TNI_AT_THREADS ((uint64_t)TNI_FLIGHT_PAGE)
#define TNI_AT_NAMES   (TNI_AT_THREADS + TNI_FLIGHT_THREADS * sizeof(uint64_t))
#define TNI_AT_TEXT    (TNI_AT_NAMES + TNI_FLIGHT_NAMES * sizeof(tni_flight_name))
#define TNI_AT_BLOCKS  (TNI_AT_TEXT + (uint64_t)TNI_FLIGHT_TEXT)

_Static_assert(sizeof(tni_flight_header) <= TNI_FLIGHT_PAGE, "the header has a page");
_Static_assert(sizeof(tni_flight_frame) == 192, "a frame and what it describes: three cache lines");
_Static_assert(TNI_AT_BLOCKS % TNI_FLIGHT_PAGE == 0, "blocks begin with a page");

#endif
