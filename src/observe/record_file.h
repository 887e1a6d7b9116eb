/* SPDX-License-Identifier: MIT */
/* observe/record_file.h: records in files: those that TENON_RECORD asks for (which name, whose, and
 * when), and copies that a program makes. */
#ifndef TNI_OBSERVE_RECORD_FILE_H
#define TNI_OBSERVE_RECORD_FILE_H

#include "base/status.h"

/* An empty file for the record of this process, -1 when none is wanted or to be had. A child made
 * by fork() gets one that has no name yet. In such a child it neither allocates nor waits. */
int tni_record_file_open(bool in_child);
/* There is no room for it: it goes, and children get none either. @p why is an errno. */
void tni_record_file_drop(int why);
/* A file was asked for and is not there: its name, and the reason in *why. Else NULL. */
const char *tni_record_file_missing(const char **why);
/* It has no name yet: publish gives it one. */
bool tni_record_file_unnamed(void);
void tni_record_file_publish(int fd);

/* @p pattern with %p as the number of this process; where there is none and @p own is wanted, with
 * the number behind it. False when there is no room. */
bool tni_record_path(const char *pattern, bool own, char *to, size_t room);

/* Whether a file may have @p nbytes. Who goes beyond the limit (ulimit -f) is ended by a signal,
 * also in memory. */
bool tni_record_file_may_have(uint64_t nbytes);
/* Copy the record in file @p from, of @p nbytes, to a file named @p path (record_save.c).
 * @retval TN_INVALID  it is the record's own file, or cannot be written */
TN_NODISCARD tn_status tni_record_file_save(int from, uint64_t nbytes, const char *path);

#endif
