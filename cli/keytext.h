/* SPDX-License-Identifier: MIT */
/* cli/keytext.h: key sets as people read them, and as JSON. */
#ifndef CLI_KEYTEXT_H
#define CLI_KEYTEXT_H

#include <stddef.h>

#include "json.h"
#include "tenon/dispatch.h"

enum { KEYTEXT_ROOM = 4096 }; /* enough for any set */

/* "Meta, ADInplaceOrView, AutogradMeta"; "none" for the empty set. Four or more neighbours are
 * written as "AutocastCPU .. AutocastPrivateUse1 (10)". A functionality with a slot for each
 * backend, in a set that names no backend, goes by its own name. */
char *keys_text(tn_keyset ks, char *buffer, size_t n);
/* All names, in a JSON array, lowest priority first. */
void keys_json(json *j, tn_keyset ks);
/* What a mask takes away. */
tn_keyset keys_not_in_mask(tn_keyset mask);

#endif
