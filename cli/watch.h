/* SPDX-License-Identifier: MIT */
/* cli/watch.h: a text that is made anew again and again, on a terminal like top, elsewhere one
 * after the other. */
#ifndef TENON_CLI_WATCH_H
#define TENON_CLI_WATCH_H

#include "cli.h"
#include "tenon/dispatch.h"

/* Makes the text; owned by who asks: tn_string_free. */
typedef tn_status (*watch_fn)(void *ctx, char **out);

/* Until @p make fails (what it watched is gone: its message is printed, and the last text),
 * somebody presses q or ^C, or the reader goes. @p plain: never a screen. The first failure is an
 * error. What comes before the first empty line stays in sight, wrapped; the rest is cut to the
 * width. */
int watch(const command *self, watch_fn make, void *ctx, double seconds, bool plain);

#endif
