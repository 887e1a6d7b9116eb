/* SPDX-License-Identifier: MIT */
/* observe/native.c: native stacks of threads of this process.
 *
 * Note [Asking a thread for its stack]
 * A thread is asked by SIGURG: what nobody handles is ignored, so a thread that answers late, or
 * after the handler has gone, comes to no harm, and one that blocks the signal is not asked. When
 * the program handles SIGURG itself nobody is asked. Before the process is ended a thread that
 * sleeps in the system does not come back from the handler: pause() and its like would return, and
 * the program go on. It has no lock of ours or of the allocator, because it sleeps in neither. The
 * handler only walks its stack; names are looked up by the one who asked, in the files themselves:
 * the loader's lock may be what everybody waits for. */
#define _GNU_SOURCE /* tgkill */
#include "observe/native.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "base/mark.h"

/* ---- asking ---- */

enum { NOBODY, ASKED, ANSWERING, ANSWERED };

static struct {
    _Atomic int state;
    _Atomic pid_t tid;
    _Atomic bool stay; /* in the handler */
    int n;
    void *frames[TNI_NATIVE_FRAMES];
} question;

void tni_native_prepare(void)
{
    void *frames[2];
    (void)backtrace(frames, 2); /* the first one loads a library */
}

static void answer(int number)
{
    (void)number;
    int error = errno, asked = ASKED;
    if (atomic_load(&question.tid) == gettid() &&
        atomic_compare_exchange_strong(&question.state, &asked, ANSWERING)) {
        question.n = backtrace(question.frames, TNI_NATIVE_FRAMES);
        bool stay = atomic_load(&question.stay); /* the next thread's question has its own */
        atomic_store(&question.state, ANSWERED);
        for (int i = 0; stay && i < 3000; i++)
            nanosleep(&(struct timespec){0, 10000000}, NULL);
    }
    errno = error;
}

/* What the kernel says of a thread; "" where it says nothing. */
static void read_task(uint32_t tid, const char *file, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/%s", tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
}

static bool blocks_signal(uint32_t tid)
{
    char text[4096];
    read_task(tid, "status", text, sizeof text);
    const char *line = strstr(text, "\nSigBlk:");
    return !line || (strtoull(line + 8, NULL, 16) >> (TNI_LOOK_SIGNAL - 1) & 1);
}

/* In a call of the system that a signal may end; waiting for a lock goes on by itself. */
static bool sleeps_in_system(uint32_t tid)
{
    char text[256];
    read_task(tid, "syscall", text, sizeof text);
    return isdigit((unsigned char)text[0]) && strtol(text, NULL, 10) != SYS_futex;
}

static bool wait_for_answer(void)
{
    for (int i = 0; i < 100 && atomic_load(&question.state) != ANSWERED; i++)
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    /* Who has not begun to answer may not begin any more. */
    int asked = ASKED;
    return !atomic_compare_exchange_strong(&question.state, &asked, NOBODY) &&
           atomic_load(&question.state) == ANSWERED;
}

int tni_native_stack(uint32_t tid, tni_asking how, void *frames[TNI_NATIVE_FRAMES],
                     const char **why)
{
    struct sigaction ours = {.sa_handler = answer, .sa_flags = SA_RESTART}, old;
    *why = "the program handles SIGURG itself";
    if (atomic_load(&question.state) == ANSWERING) {
        *why = "another thread has not answered yet";
        return 0;
    }
    if (sigaction(TNI_LOOK_SIGNAL, NULL, &old) != 0 || (old.sa_flags & SA_SIGINFO) ||
        (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN))
        return 0;
    *why = "it is not there any more, or takes no signals";
    if (blocks_signal(tid))
        return 0;
    bool sleeps = how != TNI_ASK && sleeps_in_system(tid);
    *why = "it sleeps, and a signal may end that";
    if (sleeps && how == TNI_ASK_AWAKE)
        return 0;
    atomic_store(&question.stay, sleeps);
    atomic_store(&question.tid, (pid_t)tid);
    atomic_store(&question.state, ASKED);
    sigaction(TNI_LOOK_SIGNAL, &ours, NULL);
    bool answered = tgkill(getpid(), (pid_t)tid, TNI_LOOK_SIGNAL) == 0 && wait_for_answer();
    sigaction(TNI_LOOK_SIGNAL, &old, NULL);
    if (!answered) {
        *why = "it did not answer in time";
        return 0;
    }
    /* Without the handler itself, and the system's way into it. */
    int skipped = question.n > 2 ? 2 : 0, n = question.n - skipped;
    memcpy(frames, question.frames + skipped, (size_t)n * sizeof *frames);
    atomic_store(&question.state, NOBODY);
    return n;
}

/* ---- naming ---- */

typedef struct mapped {
    const unsigned char *bytes;
    size_t nbytes;
} mapped;

static bool map_file(const char *path, mapped *out)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    void *at = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0
                   ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                   : MAP_FAILED;
    close(fd);
    if (at == MAP_FAILED)
        return false;
    *out = (mapped){at, (size_t)st.st_size};
    return true;
}

/* @p n elements of @p size at @p at, NULL when they are not all there. */
static const void *part(const mapped *m, uint64_t at, uint64_t n, uint64_t size)
{
    if (at > m->nbytes || (n && size > (m->nbytes - at) / n))
        return NULL;
    return m->bytes + at;
}

/* The address that the file gives to what lies at @p offset of it. */
static uint64_t address_in_file(const mapped *m, const Elf64_Ehdr *h, uint64_t offset)
{
    const Elf64_Phdr *p = part(m, h->e_phoff, h->e_phnum, sizeof *p);
    for (int i = 0; p && i < h->e_phnum; i++) {
        if (p[i].p_type == PT_LOAD && offset >= p[i].p_offset &&
            offset - p[i].p_offset < p[i].p_filesz)
            return offset - p[i].p_offset + p[i].p_vaddr;
    }
    return offset;
}

static const char *find_in(const mapped *m, const Elf64_Shdr *sections, int n,
                           const Elf64_Shdr *table, uint64_t address, uint64_t *behind)
{
    if (table->sh_link >= (uint32_t)n)
        return NULL;
    const Elf64_Shdr *strings = &sections[table->sh_link];
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const Elf64_Sym *symbols = part(m, table->sh_offset, count, sizeof *symbols);
    const char *text = part(m, strings->sh_offset, strings->sh_size, 1);
    if (!symbols || !text || !strings->sh_size || text[strings->sh_size - 1] != '\0')
        return NULL;
    for (uint64_t i = 0; i < count; i++) {
        const Elf64_Sym *s = &symbols[i];
        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_name >= strings->sh_size ||
            address < s->st_value || address - s->st_value >= s->st_size)
            continue;
        *behind = address - s->st_value;
        return text + s->st_name;
    }
    return NULL;
}

/* The function at @p offset of a file; false when it does not say. */
static bool find_function(const char *path, uint64_t offset, char *to, size_t room)
{
    mapped m;
    if (!map_file(path, &m))
        return false;
    const char *name = NULL;
    uint64_t behind = 0;
    const Elf64_Ehdr *h = part(&m, 0, 1, sizeof *h);
    if (h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64) {
        const Elf64_Shdr *sections = part(&m, h->e_shoff, h->e_shnum, sizeof *sections);
        uint64_t address = address_in_file(&m, h, offset);
        for (int pass = 0; sections && !name && pass < 2; pass++) {
            for (int i = 0; !name && i < h->e_shnum; i++) {
                if (sections[i].sh_type == (pass ? SHT_DYNSYM : SHT_SYMTAB))
                    name = find_in(&m, sections, h->e_shnum, &sections[i], address, &behind);
            }
        }
    }
    if (name)
        snprintf(to, room, "%.80s+0x%llx", name, (unsigned long long)behind);
    munmap((void *)(uintptr_t)m.bytes, m.nbytes);
    return name != NULL;
}

/* Which file lies at an address, and where in it; by the system's list. */
static bool find_file(FILE *maps, uintptr_t address, char path[512], uint64_t *offset)
{
    char line[768];
    rewind(maps);
    while (fgets(line, sizeof line, maps)) {
        unsigned long long begin, end, at;
        int n = 0;
        if (sscanf(line, "%llx-%llx %*4s %llx %*s %*s %n", &begin, &end, &at, &n) < 3 ||
            address < begin || address >= end)
            continue;
        *offset = address - begin + at;
        line[strcspn(line, "\n")] = '\0';
        snprintf(path, 512, "%s", n ? line + n : "");
        return true;
    }
    return false;
}

void tni_native_add(tni_str *s, void *const *frames, int n)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    for (int i = 0; i < n; i++) {
        char path[512] = "", function[128] = "";
        uint64_t offset = 0;
        uintptr_t address = (uintptr_t)frames[i];
        /* All but the innermost are where a call returns to: the call lies before. */
        bool found = maps && find_file(maps, address - (i ? 1 : 0), path, &offset);
        const char *slash = strrchr(path, '/');
        if (found && path[0] == '/' && find_function(path, offset, function, sizeof function))
            tni_str_addf(s, "    #%d %s (%s)\n", i, function, slash + 1);
        else if (found && path[0])
            tni_str_addf(s, "    #%d %s+0x%llx\n", i, slash ? slash + 1 : path,
                         (unsigned long long)offset);
        else
            tni_str_addf(s, "    #%d 0x%llx\n", i, (unsigned long long)address);
    }
    if (maps)
        fclose(maps);
}
