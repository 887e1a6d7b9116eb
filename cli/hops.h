/* SPDX-License-Identifier: MIT */
/* cli/hops.h: the dispatches of a call, as an observer of the thread hears of them.
 *
 * Nothing is worked out here: what a hop says is what the dispatcher reported, and what its table
 * held at that moment. */
#ifndef CLI_HOPS_H
#define CLI_HOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "tenon/dispatch.h"

typedef struct hop {
    tn_event event; /* event.arg_keys is a copy that the hop owns */
    tn_slot_info slot;
    bool slot_known;
    bool returned;
    tn_status status;
    uint64_t nanoseconds;
} hop;

typedef struct hop_list {
    hop *items;
    size_t n, capacity;
    bool incomplete; /* memory ran out: hops are missing */
} hop_list;

/* Watch this thread until hops_stop. @p list starts as {0}. */
TN_NODISCARD tn_status hops_start(hop_list *list);
void hops_stop(void);
void hops_free(hop_list *list);

/* "call", "redispatch", "callBoxed" or "redispatchBoxed". */
const char *hop_kind(const hop *h);
/* Print all of them, indented by depth. */
void hops_print(FILE *file, const hop_list *list);
/* An array of objects. */
void hops_json(json *j, const hop_list *list);

#endif
