/* SPDX-License-Identifier: MIT */
/* base/clock.c: finding the kernel's own clock function: see Note [The coarse clock].
 *
 * The kernel maps a small shared object into every process and says where in the auxiliary vector.
 * It is read as the ELF file that it is; whatever looks unusual leaves the C library's function in
 * place. */
#include "base/clock.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

_Atomic(tni_clock_fn) tni_clock = clock_gettime;

typedef struct image {
    const char *base; /* what addresses in it are counted from */
    const ElfW(Sym) * symbols;
    const char *names;
    size_t n; /* symbols */
} image;

/* Addresses of a kernel's image are not relocated, those of other loaders may be. */
static const char *place(const image *im, ElfW(Addr) address)
{
    return address >= (uintptr_t)im->base ? (const char *)address : im->base + address;
}

/* How many symbols a table of the newer form covers: past the end of its furthest chain. */
static size_t symbols_of_gnu_hash(const uint32_t *table)
{
    const uint32_t nbuckets = table[0], first = table[1], words = table[2];
    const uint32_t *buckets = table + 4 + words * (sizeof(ElfW(Addr)) / sizeof *table);
    const uint32_t *chains = buckets + nbuckets;
    uint32_t last = 0;
    for (uint32_t i = 0; i < nbuckets; i++)
        last = buckets[i] > last ? buckets[i] : last;
    if (last < first)
        return first;
    while (!(chains[last - first] & 1))
        last++;
    return last + 1;
}

static bool read_dynamic(image *im, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            im->symbols = (const ElfW(Sym) *)(const void *)place(im, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_STRTAB)
            im->names = place(im, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_HASH) /* buckets, then chains: one for each symbol */
            im->n = ((const uint32_t *)(const void *)place(im, entry->d_un.d_ptr))[1];
        else if (entry->d_tag == DT_GNU_HASH && !im->n) /* newer images have this one alone */
            im->n =
                symbols_of_gnu_hash((const uint32_t *)(const void *)place(im, entry->d_un.d_ptr));
    }
    return im->symbols && im->names && im->n;
}

static bool read_image(const char *at, image *im)
{
    const ElfW(Ehdr) *head = (const ElfW(Ehdr) *)(const void *)at;
    if (memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(const void *)(at + head->e_phoff);
    const ElfW(Dyn) *dynamic = NULL;
    im->base = NULL;
    for (int i = 0; i < head->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && !im->base)
            im->base = at + segments[i].p_offset - segments[i].p_vaddr;
        else if (segments[i].p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)(const void *)(at + segments[i].p_offset);
    }
    return im->base && dynamic && read_dynamic(im, dynamic);
}

void tni_clock_find(void)
{
    const char *at = (const char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    image im = {0};
    if (!at || !read_image(at, &im))
        return;
    for (size_t i = 0; i < im.n; i++) {
        const char *name = im.names + im.symbols[i].st_name;
        if (im.symbols[i].st_shndx == SHN_UNDEF || (strcmp(name, "__vdso_clock_gettime") != 0 &&
                                                    strcmp(name, "__kernel_clock_gettime") != 0))
            continue;
        const void *address = im.base + im.symbols[i].st_value;
        tni_clock_fn fn;
        memcpy(&fn, &address, sizeof fn);
        struct timespec ts;
        if (fn(CLOCK_MONOTONIC_COARSE, &ts) == 0)
            atomic_store_explicit(&tni_clock, fn, memory_order_relaxed);
        return;
    }
}
