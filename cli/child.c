/* SPDX-License-Identifier: MIT */
/* cli/child.c: a process of our own, its time and its output. */
#define _GNU_SOURCE
#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tenon/dispatch.h"
#include "tenon/recorder.h"
#include "term.h"

enum { MOST_OUTPUT = 64 * 1024 };

bool child_own_path(char *path, size_t n)
{
    ssize_t length = readlink("/proc/self/exe", path, n - 1);
    if (length <= 0 || (size_t)length >= n - 1)
        return false;
    path[length] = '\0';
    return true;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool child_folder(const char *beside, const char *from_bin, char *path, size_t n)
{
    char own[CHILD_PATH];
    if (!child_own_path(own, sizeof own))
        return false;
    char *slash = strrchr(own, '/');
    if (!slash)
        return false;
    *slash = '\0';
    const char *const places[] = {from_bin, beside};
    for (int i = 0; i < 2; i++) {
        int length = snprintf(path, n, "%s/%s", own, places[i]);
        if (length > 0 && (size_t)length < n && is_folder(path))
            return true;
    }
    return false;
}

/* ---- running ---- */

/* True when the child ended within @p ns. */
static bool wait_until(pid_t pid, uint64_t ns)
{
    uint64_t begin = clock_ns();
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    for (;;) {
        uint64_t spent = clock_ns() - begin;
        if (spent >= ns)
            break;
        uint64_t left = (ns - spent) / 1000000 + 1;
        int ms = left > 60000 ? 60000 : (int)left;
        if (fd >= 0) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            if (poll(&p, 1, ms) == 1)
                break;
        } else { /* a kernel without pidfd: look now and then */
            siginfo_t info = {0};
            if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid)
                break;
            usleep(1000);
        }
    }
    if (fd >= 0)
        close(fd);
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

/* The number of the process group in a stat line; 0 when there is none. */
static int group_of(const char *pid)
{
    char path[64], text[512];
    int group = 0;
    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t n = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end && sscanf(name_end + 1, " %*c %*d %d", &group) == 1 ? group : 0;
}

/* What the doctor says about those of the group that use Tenon, one after the other: what hangs may
 * be a program that a script started. NULL: none does. */
static char *ask_doctor(pid_t group)
{
    char *all = NULL;
    size_t n = 0;
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        char *text = NULL;
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' || group_of(entry->d_name) != group ||
            tn_doctor_process(atoi(entry->d_name), NULL, &text) != TN_OK)
            continue;
        char *more = realloc(all, n + strlen(text) + 1);
        if (more) {
            all = more;
            memcpy(all + n, text, strlen(text) + 1);
            n += strlen(text);
        }
        tn_string_free(text);
    }
    if (dir)
        closedir(dir);
    tn_clear_error();
    return all;
}

/* Room for MOST_OUTPUT bytes and a NUL; the last of the file. */
static void read_tail(int fd, char *text)
{
    off_t size = lseek(fd, 0, SEEK_END);
    off_t from = size > MOST_OUTPUT ? size - MOST_OUTPUT : 0;
    size_t n = 0;
    while (n < MOST_OUTPUT) {
        ssize_t got = pread(fd, text + n, MOST_OUTPUT - n, from + (off_t)n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    text[n] = '\0';
}

static void become(char *const *argv, int output, int failure)
{
    setpgid(0, 0); /* so that what it starts ends with it */
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execvp(argv[0], argv);
    int error = errno;
    (void)!write(failure, &error, sizeof error);
    _exit(127);
}

static bool failed(child_result *r, const char *why)
{
    static char text[256];
    snprintf(text, sizeof text, "%s", why);
    *r = (child_result){.output = text};
    return false;
}

bool child_run(char *const *argv, double seconds, child_result *r)
{
    int failure[2];
    char *text = malloc(MOST_OUTPUT + 1);
    FILE *file = tmpfile();
    if (!text || !file || pipe2(failure, O_CLOEXEC) != 0) {
        free(text);
        if (file)
            fclose(file);
        return failed(r, "no room for its output");
    }
    fflush(stdout);
    fflush(stderr);
    uint64_t begin = clock_ns();
    pid_t pid = fork();
    if (pid == 0)
        become(argv, fileno(file), failure[1]);
    close(failure[1]);
    int error = pid < 0 ? errno : 0;
    if (pid > 0 && read(failure[0], &error, sizeof error) == (ssize_t)sizeof error)
        waitpid(pid, NULL, 0);
    close(failure[0]);
    if (error) {
        free(text);
        fclose(file);
        return failed(r, strerror(error));
    }
    bool ended = wait_until(pid, (uint64_t)(seconds * 1e9));
    uint64_t took = clock_ns() - begin;
    char *doctor = ended ? NULL : ask_doctor(pid);
    if (!ended)
        kill(-pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    read_tail(fileno(file), text);
    fclose(file);
    *r = (child_result){.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                        .timed_out = !ended,
                        .nanoseconds = took,
                        .output = text,
                        .doctor = doctor};
    return true;
}

void child_free(child_result *r)
{
    free(r->output);
    free(r->doctor);
    r->output = r->doctor = NULL;
}
