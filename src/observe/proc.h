/* SPDX-License-Identifier: MIT */
/* observe/proc.h: small files of /proc, for those who ask the system about a process. */
#ifndef TNI_OBSERVE_PROC_H
#define TNI_OBSERVE_PROC_H

#include "observe/reader.h"

/* Up to @p n - 1 bytes of a small file, ended; false when it cannot be read. */
bool tni_proc_read(const char *path, char *to, size_t n);
/* The line "NAME:" of a status file; false when it has none. *at is behind the colon. */
bool tni_proc_line(const char *text, const char *name, const char **at);
/* What process @p pid is called, without what a terminal would obey; "" when it is not there. */
void tni_proc_name(int pid, char *to, size_t n);
/* What a thread or process calls itself, by its status file: in a container that is another number
 * than ours. 0 when it cannot be told. */
uint32_t tni_proc_own_number(const char *status_path);
/* Our number for a thread of @p pid that calls itself @p tid; the same one outside of containers.
 * 0: it is not there. */
uint32_t tni_proc_our_number(int pid, uint32_t tid);
/* Whether it has a record that may be read; *in_operator: and a thread is in an operator. */
bool tni_proc_has_record(int pid, bool *in_operator);
/* Its first children into seen->children: those in an operator, those that have a record, others.
 */
void tni_proc_children(int pid, tni_seen *seen);
/* An interpreter's library or command is mapped. */
bool tni_proc_is_python(int pid);
/* @p n bytes of its memory; false when they cannot be read, all of them. */
bool tni_proc_memory(int pid, uint64_t at, void *to, size_t n);
/* Whether a thread that sleeps at the futex @p at waits for a Python interpreter's lock, which
 * thread *holder has, by its own number; *turn changes whenever another thread gets it. */
bool tni_proc_interpreter(int pid, uint64_t at, uint32_t *holder, uint64_t *turn);
/* Whom its threads sleep for, and those of them that have no place in the record. */
void tni_proc_sleepers(int pid, tni_seen *seen);

#endif
