/* SPDX-License-Identifier: MIT */
/* observe/process.c: what the system tells about another process: where its record is, and what its
 * threads are doing, from /proc, with no more rights than its user has. */
#define _GNU_SOURCE
#include "observe/reader.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Up to @p n - 1 bytes of a small file, ended; false when it cannot be read. */
static bool read_file(const char *path, char *to, size_t n)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, to, n - 1);
    close(fd);
    to[got > 0 ? got : 0] = '\0';
    return got >= 0;
}

/* ---- finding the record ---- */

static bool begins_like_a_record(int fd)
{
    char magic[sizeof TNI_FLIGHT_MAGIC - 1];
    return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           memcmp(magic, TNI_FLIGHT_MAGIC, sizeof magic) == 0;
}

/* The descriptor of the process that is its record, opened here, or -1. @p files: among
 * ordinary files (TENON_RECORD), else among memfds. */
static int find_record(int pid, DIR *dir, bool files)
{
    char path[64], link[256];
    struct dirent *entry;
    rewinddir(dir);
    while ((entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/fd/%.16s", pid, entry->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        if (n <= 0)
            continue;
        link[n] = '\0';
        bool ours =
            strncmp(link, "/memfd:" TNI_FLIGHT_NAME, strlen("/memfd:" TNI_FLIGHT_NAME)) == 0;
        struct stat st;
        if (ours == files || (files && (stat(path, &st) != 0 || !S_ISREG(st.st_mode))))
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (fd < 0)
            continue;
        if (begins_like_a_record(fd))
            return fd;
        close(fd);
    }
    return -1;
}

static void process_name(int pid, char *to, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (!read_file(path, to, n))
        to[0] = '\0';
    to[strcspn(to, "\n")] = '\0';
}

tn_status tni_process_open(int pid, int *out)
{
    char path[64], name[32];
    TN_CHECK(pid > 0, TN_INVALID, "%d is not the number of a process", pid);
    snprintf(path, sizeof path, "/proc/%d", pid);
    struct stat st;
    TN_CHECK(stat(path, &st) == 0, TN_INVALID, "there is no process %d", pid);
    process_name(pid, name, sizeof name);
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    if (!dir) {
        int why = errno;
        TN_CHECK(why != ENOENT && why != ESRCH, TN_INVALID, "process %d has just ended", pid);
        TN_CHECK(st.st_uid == geteuid(), TN_UNSUPPORTED,
                 "process %d (%s) belongs to another user (%u, and you are %u): ask as that user",
                 pid, name, (unsigned)st.st_uid, (unsigned)geteuid());
        TN_FAIL(TN_UNSUPPORTED,
                "process %d (%s) may not be read: %s. It is a kernel thread, runs with other "
                "rights than yours, or has made itself undumpable",
                pid, name, strerror(why));
    }
    int fd = find_record(pid, dir, false);
    if (fd < 0)
        fd = find_record(pid, dir, true);
    closedir(dir);
    if (fd < 0 && stat(path, &st) != 0)
        TN_FAIL(TN_INVALID, "process %d ended while it was being looked at", pid);
    TN_CHECK(
        fd >= 0, TN_INVALID,
        "process %d (%s) has no record: it does not use Tenon, has not called an operator yet, "
        "or runs with TENON_RECORDER=0",
        pid, name);
    *out = fd;
    return TN_OK;
}

/* ---- threads ---- */

/* State, and processor time in clock ticks, of a stat line: what follows the last ')'. */
static bool parse_stat(const char *text, char *state, uint64_t *ticks)
{
    const char *p = strrchr(text, ')');
    unsigned long user, system;
    if (!p || sscanf(p + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", state, &user,
                     &system) != 3)
        return false;
    *ticks = user + system;
    return true;
}

static void look_at_thread(int pid, tni_seen_thread *t)
{
    char path[96], text[1024];
    uint32_t tid = t->block.tid;
    snprintf(path, sizeof path, "/proc/%d/task/%u/stat", pid, tid);
    uint64_t ticks;
    if (!read_file(path, text, sizeof text) || !parse_stat(text, &t->state, &ticks))
        return;
    t->alive = true;
    t->cpu_ns = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    snprintf(path, sizeof path, "/proc/%d/task/%u/schedstat", pid, tid);
    if (read_file(path, text, sizeof text) && isdigit((unsigned char)text[0]))
        t->cpu_ns = strtoull(text, NULL, 10);
    snprintf(path, sizeof path, "/proc/%d/task/%u/comm", pid, tid);
    if (read_file(path, text, sizeof text))
        snprintf(t->comm, sizeof t->comm, "%.*s", (int)strcspn(text, "\n"), text);
    snprintf(path, sizeof path, "/proc/%d/task/%u/wchan", pid, tid);
    if (read_file(path, text, sizeof text) && strcmp(text, "0") != 0)
        snprintf(t->wchan, sizeof t->wchan, "%.31s", text);
    snprintf(path, sizeof path, "/proc/%d/task/%u/syscall", pid, tid);
    if (read_file(path, text, sizeof text) && isdigit((unsigned char)text[0]))
        t->syscall = strtoll(text, NULL, 10);
}

void tni_process_look(int pid, tni_seen *seen)
{
    char path[64], text[1024];
    seen->pid = pid;
    seen->now = tni_coarse_ns();
    process_name(pid, seen->process_name, sizeof seen->process_name);
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    uint64_t ticks;
    if (!read_file(path, text, sizeof text) || !parse_stat(text, &seen->process_state, &ticks))
        seen->process_state = 'X';
    for (uint32_t i = 0; i < seen->n_threads; i++)
        look_at_thread(pid, &seen->threads[i]);
}
