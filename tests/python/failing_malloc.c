/* SPDX-License-Identifier: MIT */
/* A library to load before others (LD_PRELOAD): malloc and its family, of which one call fails on
 * demand. test_memory.py has it fail in turn each allocation that the extension makes, by itself or
 * through the functions of CPython that it calls. What the interpreter allocates for Python code is
 * left alone: CPython 3.11 itself does not survive all of that. What fails and is counted are calls
 * of the thread that asked. */
#define _GNU_SOURCE /* RTLD_NEXT, dladdr1 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

int failing_prepare(const char *extension);
void failing_arm(long n);
long failing_disarm(void);
long failing_live(void);

/* Their prototypes, without those of stdlib.h, which have attributes of their own. */
void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);
void *aligned_alloc(size_t align, size_t n);
void *memalign(size_t align, size_t n);
int posix_memalign(void **out, size_t align, size_t n);
void free(void *p);

#define LOCAL static _Thread_local __attribute__((tls_model("initial-exec")))
LOCAL int on, asking;
LOCAL long left; /* calls until the one that fails */
LOCAL long tried;
static atomic_long live;

/* Where the extension is, and the interpreter's loop. */
static struct range {
    uintptr_t from, to;
} extension_at, loop_at;

static int is_in(struct range r, void *p)
{
    return (uintptr_t)p >= r.from && (uintptr_t)p < r.to;
}

static int note_object(struct dl_phdr_info *info, size_t size, void *name)
{
    (void)size;
    if (!strstr(info->dlpi_name, name))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            extension_at.from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            extension_at.to = extension_at.from + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

/* To be called once the extension is loaded. 0, or what was not found. */
int failing_prepare(const char *extension)
{
    void *warm[2]; /* the first backtrace of a process loads a library */
    backtrace(warm, 2);
    char name[256] = "";
    strncat(name, extension, sizeof name - 1);
    dl_iterate_phdr(note_object, name);
    void *loop = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    if (!extension_at.from)
        return 1;
    if (!loop || !dladdr1(loop, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
        return 2;
    loop_at = (struct range){(uintptr_t)loop, (uintptr_t)loop + symbol->st_size};
    return 0;
}

/* Is the extension nearer than the interpreter's loop? */
static int is_extensions(void)
{
    void *at[64];
    asking = 1;
    int n = backtrace(at, 64), found = 0;
    asking = 0;
    for (int i = 0; i < n && !found && !is_in(loop_at, at[i]); i++)
        found = is_in(extension_at, at[i]);
    return found;
}

/* Fail the call number @p n from here on, counted from 0. */
void failing_arm(long n)
{
    tried = 0;
    left = n;
    on = 1;
}

/* How many calls there were since, the one that failed included. */
long failing_disarm(void)
{
    on = 0;
    return tried;
}

/* Blocks of all threads that were taken and not given back. */
long failing_live(void)
{
    return live;
}

static int fails(void)
{
    if (!on || asking || !is_extensions())
        return 0;
    tried++;
    if (left-- != 0)
        return 0;
    errno = ENOMEM;
    return 1;
}

/* The next in the order of loading: the C library's, or a sanitizer's. */
static struct {
    __typeof__(&malloc) malloc;
    __typeof__(&calloc) calloc;
    __typeof__(&realloc) realloc;
    __typeof__(&aligned_alloc) aligned_alloc;
    __typeof__(&memalign) memalign;
    __typeof__(&posix_memalign) posix_memalign;
    __typeof__(&free) free;
} next;
static int looking; /* before there is a second thread */

static int found(void)
{
    static int all;
    if (all || looking)
        return all;
    looking = 1;
#define FIND(name) *(void **)(void *)&next.name = dlsym(RTLD_NEXT, #name)
    FIND(malloc);
    FIND(calloc);
    FIND(realloc);
    FIND(aligned_alloc);
    FIND(memalign);
    FIND(posix_memalign);
    FIND(free);
    looking = 0;
    return all = 1;
}

/* What dlsym itself wants before it has found the others: zeros, and never given back. */
static _Alignas(64) char early[16384];
static size_t early_used;

static void *take_early(size_t n)
{
    size_t at = early_used;
    early_used += (n + 63) / 64 * 64;
    return early_used <= sizeof early ? early + at : NULL;
}

static int is_early(const void *p)
{
    return (const char *)p >= early && (const char *)p < early + sizeof early;
}

static void *took(void *p)
{
    live += p != NULL;
    return p;
}

void *malloc(size_t n)
{
    if (!found())
        return take_early(n);
    return fails() ? NULL : took(next.malloc(n));
}

void *calloc(size_t n, size_t size)
{
    if (!found())
        return take_early(n * size);
    return fails() ? NULL : took(next.calloc(n, size));
}

void *realloc(void *p, size_t n)
{
    if (!found() || is_early(p))
        return NULL;
    if (fails())
        return NULL;
    return p ? next.realloc(p, n) : took(next.malloc(n));
}

void *aligned_alloc(size_t align, size_t n)
{
    return !found() || fails() ? NULL : took(next.aligned_alloc(align, n));
}

void *memalign(size_t align, size_t n)
{
    return !found() || fails() ? NULL : took(next.memalign(align, n));
}

int posix_memalign(void **out, size_t align, size_t n)
{
    if (!found() || fails())
        return ENOMEM;
    int rc = next.posix_memalign(out, align, n);
    live += rc == 0;
    return rc;
}

void free(void *p)
{
    if (!found() || is_early(p))
        return;
    live -= p != NULL;
    next.free(p);
}
