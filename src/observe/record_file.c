/* SPDX-License-Identifier: MIT */
/* observe/record_file.c: the files that TENON_RECORD asks for.
 *
 * Note [Names of records]
 * A record is mapped, so a file that somebody else shortens ends the program that maps it. Hence no
 * file is ever shortened that may be in use: who has one holds a lock on it, who finds the name
 * taken adds its own number to it (several programs may have inherited one environment), and what
 * an ended program has left is unlinked, not emptied.
 *
 * A child made by fork() gets a file at once, while it has one thread, and its name, PATH.PID, with
 * its first call: most children only go on to run another program, and leave nothing. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "observe/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/env.h"

static struct {
    char pattern[1024]; /* as it was when this process, or its parent, made its record */
    char path[1024 + 16];
    bool unnamed;
    int why; /* an errno: there is none although one was asked for */
} file;

bool tni_record_path(const char *pattern, bool own, char *to, size_t room)
{
    const char *mark = strstr(pattern, "%p");
    int n = mark  ? snprintf(to, room, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(),
                             mark + 2)
            : own ? snprintf(to, room, "%s.%d", pattern, (int)getpid())
                  : snprintf(to, room, "%s", pattern);
    return n > 0 && (size_t)n < room;
}

enum { FREE, IN_USE, NO_FILE };

/* Make sure that nothing of that name is there, unless it is in use or something else than a file.
 */
static int clear_name(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? FREE : NO_FILE;
    struct stat st;
    bool is_file = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    int found = !is_file                                                 ? NO_FILE
                : flock(fd, LOCK_EX | LOCK_NB) != 0 || unlink(path) != 0 ? IN_USE
                                                                         : FREE;
    close(fd);
    errno = is_file ? EBUSY : ENOTSUP;
    return found;
}

static int open_named(const char *path, int *found)
{
    *found = clear_name(path);
    if (*found != FREE)
        return -1;
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0)
        (void)!flock(fd, LOCK_EX | LOCK_NB);
    else
        *found = errno == EEXIST ? IN_USE : NO_FILE;
    return fd;
}

/* A file in the folder of @p path that nobody can see yet. */
static int open_unnamed(const char *path)
{
    char folder[sizeof file.path];
    const char *slash = strrchr(path, '/');
    size_t n = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    memcpy(folder, path, n);
    folder[n] = '\0';
    int fd = open(n ? folder : ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void)!flock(fd, LOCK_EX | LOCK_NB);
    return fd;
}

/* Whole, because the program may go to another folder before it forks. */
static bool remember_pattern(const char *wanted)
{
    char folder[sizeof file.pattern] = "";
    if (!wanted || (wanted[0] != '/' && !getcwd(folder, sizeof folder)))
        return false;
    int n =
        snprintf(file.pattern, sizeof file.pattern, "%s%s%s", folder, folder[0] ? "/" : "", wanted);
    bool fits = n > 0 && (size_t)n < sizeof file.pattern;
    if (!fits) {
        file.pattern[0] = '\0';
        errno = ENAMETOOLONG;
    }
    return fits;
}

/* The file that was asked for; another beside it when it is in use. */
static int open_first(void)
{
    int found = NO_FILE, fd = -1;
    if (tni_record_path(file.pattern, false, file.path, sizeof file.path))
        fd = open_named(file.path, &found);
    if (found == IN_USE && tni_record_path(file.pattern, true, file.path, sizeof file.path))
        fd = open_named(file.path, &found);
    return fd;
}

static void give_up(int why)
{
    file.pattern[0] = '\0'; /* then none for children either */
    file.why = why;
}

int tni_record_file_open(bool in_child)
{
    file.unnamed = false;
    if (!in_child) {
        const char *wanted = tni_env("TENON_RECORD");
        if (!wanted)
            return -1;
        int fd = remember_pattern(wanted) ? open_first() : -1;
        if (fd < 0)
            give_up(errno);
        return fd;
    }
    if (!file.pattern[0] || !tni_record_path(file.pattern, true, file.path, sizeof file.path))
        return -1;
    int fd = open_unnamed(file.path), found;
    file.unnamed = fd >= 0;
    return fd >= 0 ? fd : open_named(file.path, &found); /* some file systems have none such */
}

void tni_record_file_drop(int why)
{
    if (!file.unnamed)
        (void)!unlink(file.path);
    file.unnamed = false;
    give_up(why);
}

const char *tni_record_file_missing(const char **why)
{
    *why = file.why == ENOTSUP ? "it is no ordinary file" : strerror(file.why);
    return file.why ? tni_env("TENON_RECORD") : NULL;
}

bool tni_record_file_unnamed(void)
{
    return file.unnamed;
}

void tni_record_file_publish(int fd)
{
    char self[64];
    if (!file.unnamed)
        return;
    file.unnamed = false;
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    if (clear_name(file.path) == FREE)
        (void)!linkat(AT_FDCWD, self, AT_FDCWD, file.path, AT_SYMLINK_FOLLOW);
}

bool tni_record_file_may_have(uint64_t nbytes)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           nbytes <= limit.rlim_cur;
}
