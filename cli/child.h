/* SPDX-License-Identifier: MIT */
/* cli/child.h: running another program: under a timeout with its output kept, and finding the ones
 * that are installed with this command. */
#ifndef CLI_CHILD_H
#define CLI_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHILD_PATH = 4096 };

typedef struct child_result {
    int status; /* exit status, or 128 + the signal that ended it */
    bool timed_out;
    uint64_t nanoseconds;
    char *output; /* of both streams, cut to the last 64 KiB, ended by NUL; owned */
    char *doctor; /* of one that was killed: where it was, for people; NULL: not known; owned */
} child_result;

/* Run @p argv to its end, or kill it and all that it started after @p seconds. False: it could not
 * be started, and r->output is a static text that says why. */
bool child_run(char *const *argv, double seconds, child_result *r);
void child_free(child_result *r);

/* The folder of this command, as the system knows it. */
bool child_own_path(char *path, size_t n);
/* A folder beside this command (the build tree), or @p from_bin seen from there (an installed one).
 */
bool child_folder(const char *beside, const char *from_bin, char *path, size_t n);

#endif
