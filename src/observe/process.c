/* SPDX-License-Identifier: MIT */
/* observe/process.c: what the system tells about another process: where its record is, and what its
 * threads are doing, from /proc, with no more rights than its user has. */
#define _GNU_SOURCE
#include "observe/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool tni_proc_read(const char *path, char *to, size_t n)
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

bool tni_proc_line(const char *text, const char *name, const char **at)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, n) == 0 && line[n] == ':') {
            *at = line + n + 1;
            return true;
        }
    }
    return false;
}

uint32_t tni_proc_own_number(const char *status_path)
{
    char text[4096];
    const char *at;
    uint32_t number = 0;
    if (!tni_proc_read(status_path, text, sizeof text) || !tni_proc_line(text, "NSpid", &at))
        return 0;
    for (char *end; *at && *at != '\n'; at = end) { /* the last of them */
        unsigned long n = strtoul(at, &end, 10);
        if (end == at)
            break;
        number = (uint32_t)n;
    }
    return number;
}

static bool is_record_of(int fd, uint32_t own, bool *same)
{
    tni_flight_header h;
    if (pread(fd, &h, sizeof h, 0) < (ssize_t)sizeof h ||
        memcmp(h.magic, TNI_FLIGHT_MAGIC, sizeof h.magic) != 0)
        return false;
    *same = !own || h.pid == own;
    return true;
}

static bool is_known(const tni_process_records *r, const struct stat *st)
{
    for (int i = 0; i < r->n; i++) {
        struct stat known;
        if (fstat(r->fd[i], &known) == 0 && known.st_dev == st->st_dev &&
            known.st_ino == st->st_ino)
            return true;
    }
    return false;
}

/* The descriptors of the process that are its records, opened here. A process may also have the
 * record of another open: of its parent, or one that it reads. */
static void find_records(int pid, DIR *dir, tni_process_records *out, bool *foreign, bool *denied)
{
    char path[64], link[256];
    struct dirent *entry;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    uint32_t own = tni_proc_own_number(path);
    while ((entry = readdir(dir)) != NULL && out->n < TNI_PROCESS_RECORDS) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/fd/%.16s", pid, entry->d_name);
        ssize_t n = readlink(path, link, sizeof link - 1);
        struct stat st;
        *denied = *denied || (n < 0 && (errno == EACCES || errno == EPERM));
        if (n <= 0 || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || is_known(out, &st))
            continue;
        int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        bool same = false, record = fd >= 0 && is_record_of(fd, own, &same);
        if (record && same) {
            out->fd[out->n++] = fd;
            continue;
        }
        *foreign = *foreign || record;
        if (fd >= 0)
            close(fd);
    }
}

void tni_proc_name(int pid, char *to, size_t n)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", pid);
    if (!tni_proc_read(path, to, n))
        to[0] = '\0';
    to[strcspn(to, "\n")] = '\0';
    tni_plain_text(to, strlen(to));
}

void tni_process_close(tni_process_records *records)
{
    for (int i = 0; i < records->n; i++)
        close(records->fd[i]);
    records->n = 0;
}

/* State of a process and, when @p pid is a thread of another, that process in *group. */
static char process_state(int pid, int *group)
{
    char path[64], text[4096];
    const char *at;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    errno = 0;
    if (!tni_proc_read(path, text, sizeof text))
        return errno == EACCES || errno == EPERM ? '?' : 'X'; /* some systems hide other people's */
    *group = tni_proc_line(text, "Tgid", &at) ? (int)strtol(at, NULL, 10) : pid;
    if (!tni_proc_line(text, "State", &at))
        return 'X';
    while (*at == ' ' || *at == '\t')
        at++;
    return *at;
}

/* A process that ends loses its descriptors a moment before it is seen to have ended. Before it
 * loses them it is marked (PF_EXITING), and on a busy machine the moment is long. */
static bool is_ending(int pid)
{
    const unsigned exiting = 4;
    int group;
    for (int i = 0; i < 10; i++) {
        char path[64], text[1024];
        unsigned flags = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        const char *rest = tni_proc_read(path, text, sizeof text) ? strrchr(text, ')') : NULL;
        if (rest && sscanf(rest + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & exiting)
            return true;
        char state = process_state(pid, &group);
        if (state == 'Z' || state == 'X')
            return true;
        nanosleep(&(struct timespec){0, 3000000}, NULL);
    }
    return false;
}

/* Why nothing can be read. */
static tn_status refuse(int pid, int why, const char *name, const struct stat *st)
{
    TN_CHECK(why != ENOENT && why != ESRCH && !is_ending(pid), TN_INVALID,
             "process %d has just ended", pid);
    TN_CHECK(st->st_uid == geteuid(), TN_UNSUPPORTED,
             "process %d (%s) belongs to another user (%u, and you are %u): ask as that user", pid,
             name, (unsigned)st->st_uid, (unsigned)geteuid());
    TN_FAIL(TN_UNSUPPORTED,
            "process %d (%s) may not be read: %s. It is a kernel thread, runs with other rights "
            "than yours (setuid, another user namespace), or has made itself undumpable",
            pid, name, strerror(why));
}

tn_status tni_process_open(int pid, tni_process_records *out)
{
    char path[64], name[32];
    TN_CHECK(pid > 0, TN_INVALID, "%d is not the number of a process", pid);
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", pid);
    TN_CHECK(stat(path, &st) == 0, TN_INVALID, "there is no process %d", pid);
    tni_proc_name(pid, name, sizeof name);
    int group = pid;
    char state = process_state(pid, &group);
    TN_CHECK(group == pid, TN_INVALID, "%d (%s) is a thread of process %d: ask for that", pid, name,
             group);
    TN_CHECK(state != 'Z' && state != 'X', TN_INVALID, "process %d (%s) has ended%s", pid, name,
             state == 'Z' ? ", and its parent has not waited for it yet" : " just now");
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    if (!dir)
        return refuse(pid, errno, name, &st);
    bool foreign = false, denied = false;
    out->n = 0;
    find_records(pid, dir, out, &foreign, &denied);
    closedir(dir);
    if (out->n > 0)
        return TN_OK;
    if (denied)
        return refuse(pid, EACCES, name, &st);
    TN_CHECK(!is_ending(pid), TN_INVALID, "process %d ended while it was being looked at", pid);
    TN_CHECK(!foreign, TN_INVALID,
             "process %d (%s) has the record of another process open, and none of its own: it was "
             "made without fork()'s handlers, or only reads that record",
             pid, name);
    TN_FAIL(TN_INVALID,
            "process %d (%s) has no record: it does not use Tenon, has not called an operator yet, "
            "runs with TENON_RECORDER=0, got no memory for it (ulimit -f), or has closed all its "
            "descriptors",
            pid, name);
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

uint32_t tni_proc_our_number(int pid, uint32_t tid)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    uint32_t found = 0;
    while (dir && !found && (entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/status", pid, entry->d_name);
        if (tni_proc_own_number(path) == tid)
            found = (uint32_t)strtoul(entry->d_name, NULL, 10);
    }
    if (dir)
        closedir(dir);
    return found;
}

/* The child that a call of the system waits for, by its number and arguments; 0: any, or it is
 * another call. */
static uint32_t child_in(const char *text)
{
    long number;
    unsigned long first = 0, second = 0;
    if (sscanf(text, "%ld 0x%lx 0x%lx", &number, &first, &second) < 3)
        return 0;
    int pid = number == SYS_wait4                      ? (int)first
              : number == SYS_waitid && first == P_PID ? (int)second
                                                       : 0;
    return pid > 0 ? (uint32_t)pid : 0;
}

static void look_at_thread(int pid, bool other_numbers, tni_seen_thread *t)
{
    char path[96], text[1024];
    uint32_t tid = other_numbers ? tni_proc_our_number(pid, t->block.tid) : t->block.tid;
    snprintf(path, sizeof path, "/proc/%d/task/%u/stat", pid, tid);
    uint64_t ticks;
    if (!tni_proc_read(path, text, sizeof text) || !parse_stat(text, &t->state, &ticks))
        return;
    t->alive = true;
    t->cpu_ns = ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    snprintf(path, sizeof path, "/proc/%d/task/%u/schedstat", pid, tid);
    if (tni_proc_read(path, text, sizeof text) && isdigit((unsigned char)text[0])) {
        char *end;
        t->cpu_ns = strtoull(text, &end, 10);
        t->queued_ns = strtoull(end, NULL, 10);
    }
    snprintf(path, sizeof path, "/proc/%d/task/%u/comm", pid, tid);
    if (tni_proc_read(path, text, sizeof text))
        snprintf(t->comm, sizeof t->comm, "%.*s", (int)strcspn(text, "\n"), text);
    tni_plain_text(t->comm, sizeof t->comm);
    snprintf(path, sizeof path, "/proc/%d/task/%u/wchan", pid, tid);
    if (tni_proc_read(path, text, sizeof text) && strcmp(text, "0") != 0)
        snprintf(t->wchan, sizeof t->wchan, "%.31s", text);
    snprintf(path, sizeof path, "/proc/%d/task/%u/syscall", pid, tid);
    if (tni_proc_read(path, text, sizeof text) && isdigit((unsigned char)text[0])) {
        t->syscall = strtoll(text, NULL, 10);
        if (!other_numbers)
            t->child = child_in(text);
    }
    t->waits_for_child =
        strcmp(t->wchan, "do_wait") == 0 || t->syscall == SYS_wait4 || t->syscall == SYS_waitid;
}

bool tni_proc_is_python(int pid)
{
    char path[64], line[768];
    snprintf(path, sizeof path, "/proc/%d/maps", pid);
    FILE *maps = fopen(path, "re");
    bool found = false;
    while (maps && !found && fgets(line, sizeof line, maps))
        found = strstr(line, "/libpython") || strstr(line, "/python3");
    if (maps)
        fclose(maps);
    return found;
}

static bool is_in_operators(const tni_seen *seen)
{
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        if (seen->threads[i].depth || seen->threads[i].block.n_passes)
            return true;
    }
    return false;
}

bool tni_proc_has_record(int pid, bool *in_operator)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    *in_operator = false;
    if (!dir)
        return false;
    tni_process_records records = {.n = 0};
    bool foreign = false, denied = false;
    find_records(pid, dir, &records, &foreign, &denied);
    closedir(dir);
    bool found = records.n > 0;
    for (int i = 0; i < records.n && !*in_operator; i++) {
        tni_seen child;
        if (tni_seen_read(records.fd[i], false, &child) != TN_OK)
            tn_clear_error();
        else
            *in_operator = is_in_operators(&child);
        tni_seen_clear(&child);
    }
    tni_process_close(&records);
    return found;
}

void tni_process_look(int pid, tni_seen *seen)
{
    char path[64], text[1024];
    seen->pid = pid;
    seen->now = tni_coarse_ns();
    tni_proc_name(pid, seen->process_name, sizeof seen->process_name);
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    uint64_t ticks;
    if (!tni_proc_read(path, text, sizeof text) || !parse_stat(text, &seen->process_state, &ticks))
        seen->process_state = 'X';
    snprintf(path, sizeof path, "/proc/%d/task/%d/wchan", pid, pid);
    if (tni_proc_read(path, text, sizeof text) && strcmp(text, "0") != 0)
        snprintf(seen->process_wchan, sizeof seen->process_wchan, "%.31s", text);
    bool other_numbers = seen->head.pid != (uint32_t)pid, is_idle = !is_in_operators(seen);
    bool ask_children = is_idle;
    for (uint32_t i = 0; i < seen->n_threads; i++) {
        look_at_thread(pid, other_numbers, &seen->threads[i]);
        ask_children = ask_children || seen->threads[i].waits_for_child;
    }
    if (pid == (int)getpid())
        return; /* the watchdog looks often, and asks for more when it has something to tell */
    seen->is_python = tni_proc_is_python(pid);
    if (ask_children)
        tni_proc_children(pid, seen);
    tni_proc_sleepers(pid, seen);
}
