/* SPDX-License-Identifier: MIT */
/* observe/record_save.c: a copy of the record in a file, of a program that goes on. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "observe/layout.h"
#include "observe/record_file.h"

/* Page by page, without those that hold nothing: most of a record was never touched. */
static bool copy_file(int from, int to, uint64_t nbytes)
{
    static const char nothing[TNI_FLIGHT_PAGE];
    char page[TNI_FLIGHT_PAGE];
    for (uint64_t at = 0; at < nbytes; at += sizeof page) {
        ssize_t n = pread(from, page, sizeof page, (off_t)at);
        if (n < 0)
            return false;
        if (n == 0)
            break;
        if (memcmp(page, nothing, (size_t)n) != 0 && pwrite(to, page, (size_t)n, (off_t)at) != n)
            return false;
    }
    uint64_t now = tni_coarse_ns();
    return pwrite(to, &now, sizeof now, offsetof(tni_flight_header, saved_at)) == sizeof now &&
           ftruncate(to, (off_t)nbytes) == 0;
}

static bool is_same_file(int fd, const char *path)
{
    struct stat ours, theirs;
    return fstat(fd, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

tn_status tni_record_file_save(int from, uint64_t nbytes, const char *path)
{
    TN_CHECK(tni_record_file_may_have(nbytes), TN_INVALID, "tn_recorder_save: cannot write %s: %s",
             path, strerror(EFBIG));
    TN_CHECK(!is_same_file(from, path), TN_INVALID,
             "tn_recorder_save: %s is the live record of this program", path);
    char temporary[4096];
    int n = snprintf(temporary, sizeof temporary, "%s.%d.new", path, (int)getpid());
    TN_CHECK(n > 0 && (size_t)n < sizeof temporary, TN_INVALID,
             "tn_recorder_save: the path is too long");
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    TN_CHECK(fd >= 0, TN_INVALID, "tn_recorder_save: cannot write %s: %s", temporary,
             strerror(errno));
    bool fine = copy_file(from, fd, nbytes);
    int why = errno;
    fine = close(fd) == 0 && fine;
    if (fine && rename(temporary, path) == 0)
        return TN_OK;
    why = fine ? errno : why;
    unlink(temporary);
    TN_FAIL(TN_INVALID, "tn_recorder_save: cannot write %s: %s", path, strerror(why));
}
