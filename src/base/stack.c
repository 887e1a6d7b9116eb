/* SPDX-License-Identifier: MIT */
/* base/stack.c: where a thread's stack ends, and going on elsewhere: see Note [More stack]. */
#define _GNU_SOURCE /* pthread_getattr_np */
#include "base/stack.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#    define WITH_ASAN 1
#elif defined(__has_feature)
#    if __has_feature(address_sanitizer)
#        define WITH_ASAN 1
#    endif
#endif
#ifdef WITH_ASAN
#    include <sanitizer/common_interface_defs.h>
#endif

/* The stack that this thread is on, and what its other fresh stacks take. */
static _Thread_local struct {
    uintptr_t low, high; /* high 0: nobody asked yet */
    size_t taken;
} stack;

static __attribute__((cold, noinline)) void find_stack(void)
{
    pthread_attr_t attributes;
    void *low = NULL;
    size_t nbytes = 0;
    stack.high = 1; /* not known: no frame is there */
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &low, &nbytes) == 0) {
        stack.low = (uintptr_t)low;
        stack.high = (uintptr_t)low + nbytes;
    }
    pthread_attr_destroy(&attributes);
}

size_t tni_stack_left(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (__builtin_expect(stack.high == 0, 0))
        find_stack();
    return here >= stack.low && here < stack.high ? here - stack.low : SIZE_MAX;
}

#if defined(__x86_64__) && defined(__linux__)

enum { GUARD = 64 * 1024, NBYTES = 16 * 1024 * 1024 };

/* fn(ctx) with the stack pointer at top, which is a multiple of 16. The frame is found through rbp
 * while fn runs, so that unwinders come out on the caller's stack. */
void tni_stack_switch(void *top, void (*fn)(void *ctx), void *ctx);
__asm__(".pushsection .text\n"
        "    .p2align 4\n"
        "    .globl tni_stack_switch\n"
        "    .hidden tni_stack_switch\n"
        "    .type tni_stack_switch, @function\n"
        "tni_stack_switch:\n"
        "    .cfi_startproc\n"
        "    pushq %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    movq %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    movq %rdi, %rsp\n"
        "    movq %rdx, %rdi\n"
        "    callq *%rsi\n"
        "    movq %rbp, %rsp\n"
        "    popq %rbp\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    retq\n"
        "    .cfi_endproc\n"
        "    .size tni_stack_switch, .-tni_stack_switch\n"
        ".popsection\n");

typedef struct visit {
    void (*fn)(void *ctx);
    void *ctx;
    const void *from; /* the stack that we come from */
    size_t from_nbytes;
} visit;

/* On the fresh stack. */
static void arrive(void *ctx)
{
    visit *v = ctx;
#    ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(NULL, &v->from, &v->from_nbytes);
#    endif
    v->fn(v->ctx);
#    ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(NULL, v->from, v->from_nbytes);
#    endif
}

bool tni_stack_call(size_t limit, void (*fn)(void *ctx), void *ctx)
{
    if (limit < NBYTES || stack.taken > limit - NBYTES)
        return false;
    char *memory = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    if (mprotect(memory, GUARD, PROT_NONE) != 0) {
        munmap(memory, NBYTES);
        return false;
    }
    visit v = {.fn = fn, .ctx = ctx};
    uintptr_t low = stack.low, high = stack.high;
    stack.low = (uintptr_t)memory + GUARD;
    stack.high = (uintptr_t)memory + NBYTES;
    stack.taken += NBYTES;
#    ifdef WITH_ASAN
    void *fake = NULL;
    __sanitizer_start_switch_fiber(&fake, memory + GUARD, NBYTES - GUARD);
#    endif
    tni_stack_switch(memory + NBYTES, arrive, &v);
#    ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(fake, NULL, NULL);
#    endif
    stack.taken -= NBYTES;
    stack.low = low;
    stack.high = high;
    munmap(memory, NBYTES);
    return true;
}

#else

bool tni_stack_call(size_t limit, void (*fn)(void *ctx), void *ctx)
{
    (void)limit, (void)fn, (void)ctx;
    return false;
}

#endif
