/* SPDX-License-Identifier: MIT */
/* observe/children.c: the children of a process: a thread may wait for one of them, and it may be
 * the one that hangs. */
#include "observe/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank(const tni_seen_child *child)
{
    return child->in_operator ? 2 : child->has_record ? 1 : 0;
}

static void add_child(tni_seen *seen, int pid)
{
    tni_seen_child child = {.pid = (uint32_t)pid};
    child.has_record = tni_proc_has_record(pid, &child.in_operator);
    tni_proc_name(pid, child.name, sizeof child.name);
    uint32_t n = seen->n_children++;
    uint32_t at = n < TNI_SEEN_CHILDREN ? n : TNI_SEEN_CHILDREN;
    while (at > 0 && rank(&seen->children[at - 1]) < rank(&child)) {
        if (at < TNI_SEEN_CHILDREN)
            seen->children[at] = seen->children[at - 1];
        at--;
    }
    if (at < TNI_SEEN_CHILDREN)
        seen->children[at] = child;
}

/* By the lists that the system keeps; false: it keeps none. */
static bool add_listed(int pid, tni_seen *seen)
{
    char path[96], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    bool listed = false;
    while (dir && (entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", pid, entry->d_name);
        if (!tni_proc_read(path, text, sizeof text))
            continue;
        listed = true;
        for (char *at = text, *end; *at; at = end) {
            long child = strtol(at, &end, 10);
            if (end == at || !isspace((unsigned char)*end))
                break; /* the end, or a number that was cut */
            add_child(seen, (int)child);
            end++;
        }
    }
    if (dir)
        closedir(dir);
    return listed;
}

/* By asking every process for its parent. */
static void add_found(int pid, tni_seen *seen)
{
    char path[64], text[4096];
    DIR *dir = opendir("/proc");
    struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL) {
        const char *at;
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%.16s/status", entry->d_name);
        if (tni_proc_read(path, text, sizeof text) && tni_proc_line(text, "PPid", &at) &&
            strtol(at, NULL, 10) == pid)
            add_child(seen, (int)strtol(entry->d_name, NULL, 10));
    }
    if (dir)
        closedir(dir);
}

void tni_proc_children(int pid, tni_seen *seen)
{
    seen->n_children = 0;
    if (!add_listed(pid, seen))
        add_found(pid, seen);
}
