/* SPDX-License-Identifier: MIT */
/* cli/registrations.h: the kernels registered for an operator, and why a slot of its table holds
 * the one that it holds, in words. */
#ifndef CLI_REGISTRATIONS_H
#define CLI_REGISTRATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "tenon/dispatch.h"

enum { WHY_ROOM = 512 };

/* One registration. Texts point into the list. */
typedef struct registration {
    const char *key;
    bool alias, active; /* not active: a newer kernel for the same key stands before it */
    const char *file;   /* "" when unknown */
    int line;
    const char *signature; /* NULL when unknown */
    bool fallthrough, boxed, typed;
} registration;

typedef struct registration_list {
    char *text; /* tn_op_dump_state, cut into the texts below */
    const char *schema, *defined_at, *alias_analysis; /* NULL when the operator has no schema */
    registration *items;
    size_t n;
} registration_list;

/* What tn_op_dump_state says, as data. */
TN_NODISCARD tn_status registrations_read(const tn_op *op, registration_list *out);
void registrations_free(registration_list *list);

/* Why @p info sits in its slot: "registered directly to Meta". With @p many it is the first of
 * several slots that hold the same for the same reason. Returns @p buffer. */
char *slot_why(const tn_op *op, const tn_slot_info *info, bool many, char *buffer, size_t n);

#endif
