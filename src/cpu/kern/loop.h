/* SPDX-License-Identifier: MIT */
/* cpu/kern/loop.h: loops over one, two or three inputs, from an expression of x, y and z. TO is the
 * type of the result. In loops with parameters, `p` points to those that the operator gave. */
#ifndef TNI_CPU_KERN_LOOP_H
#define TNI_CPU_KERN_LOOP_H

#include "cpu/kern/types.h"

/* Where a loop is used by other files, they define LOOP_LINKAGE as nothing before. */
#ifndef LOOP_LINKAGE
#    define LOOP_LINKAGE static
#endif
#define LOOP_HEAD(name) \
    LOOP_LINKAGE void name(void *out, const void *const *in, int64_t n, const void *ctx)

#define LOOP1_TO(name, TO, T, expression)           \
    LOOP_HEAD(name)                                 \
    {                                               \
        TO *o = out;                                \
        const T *a = in[0];                         \
        (void)ctx;                                  \
        INDEPENDENT for (int64_t i = 0; i < n; i++) \
        {                                           \
            T x = a[i];                             \
            o[i] = (TO)(expression);                \
        }                                           \
    }
#define LOOP2_TO(name, TO, T, expression)           \
    LOOP_HEAD(name)                                 \
    {                                               \
        TO *o = out;                                \
        const T *a = in[0], *b = in[1];             \
        (void)ctx;                                  \
        INDEPENDENT for (int64_t i = 0; i < n; i++) \
        {                                           \
            T x = a[i], y = b[i];                   \
            o[i] = (TO)(expression);                \
        }                                           \
    }
#define LOOP1(name, T, expression) LOOP1_TO(name, T, T, expression)
#define LOOP2(name, T, expression) LOOP2_TO(name, T, T, expression)

/* The same for functions that take about as long as their operands take from memory: those are
 * asked for ahead, so that neither waits for the other. */
#define AHEAD_LOOP(T, ask, expression)                                                   \
    enum { SOME = 256 / (int)sizeof(T), LINE = 64 / (int)sizeof(T), AHEAD = 8 * SOME };  \
    int64_t first = 0;                                                                   \
    for (; first + SOME <= n; first += SOME) {                                           \
        for (int64_t k = first + AHEAD; k < first + AHEAD + SOME && k < n; k += LINE) {  \
            ask;                                                                         \
            __builtin_prefetch(o + k, 1);                                                \
        }                                                                                \
        INDEPENDENT for (int64_t i = first; i < first + SOME; i++) o[i] = (T)expression; \
    }                                                                                    \
    INDEPENDENT for (int64_t i = first; i < n; i++) o[i] = (T)expression;
#define LOOP1_AHEAD(name, T, f)                           \
    LOOP_HEAD(name)                                       \
    {                                                     \
        T *o = out;                                       \
        const T *a = in[0];                               \
        (void)ctx;                                        \
        AHEAD_LOOP(T, __builtin_prefetch(a + k), f(a[i])) \
    }
#define LOOP2_AHEAD(name, T, f)                                                            \
    LOOP_HEAD(name)                                                                        \
    {                                                                                      \
        T *o = out;                                                                        \
        const T *a = in[0], *b = in[1];                                                    \
        (void)ctx;                                                                         \
        AHEAD_LOOP(T, __builtin_prefetch(a + k); __builtin_prefetch(b + k), f(a[i], b[i])) \
    }

/* With parameters: an array of P. They are read before the loop, which then vectorises. */
#define PARAMETERS(P)           \
    P p[4];                     \
    for (int k = 0; k < 4; k++) \
        p[k] = (P)((const double *)ctx)[k];
#define LOOP1_WITH(name, T, expression)             \
    LOOP_HEAD(name)                                 \
    {                                               \
        T *o = out;                                 \
        const T *a = in[0];                         \
        PARAMETERS(T)                               \
        INDEPENDENT for (int64_t i = 0; i < n; i++) \
        {                                           \
            T x = a[i];                             \
            o[i] = (expression);                    \
        }                                           \
    }
#define LOOP2_WITH(name, T, expression)             \
    LOOP_HEAD(name)                                 \
    {                                               \
        T *o = out;                                 \
        const T *a = in[0], *b = in[1];             \
        PARAMETERS(T)                               \
        INDEPENDENT for (int64_t i = 0; i < n; i++) \
        {                                           \
            T x = a[i], y = b[i];                   \
            o[i] = (expression);                    \
        }                                           \
    }
#define LOOP3_WITH(name, T, expression)             \
    LOOP_HEAD(name)                                 \
    {                                               \
        T *o = out;                                 \
        const T *a = in[0], *b = in[1], *c = in[2]; \
        PARAMETERS(T)                               \
        INDEPENDENT for (int64_t i = 0; i < n; i++) \
        {                                           \
            T x = a[i], y = b[i], z = c[i];         \
            o[i] = (expression);                    \
        }                                           \
    }

#define ROW(NAME) [TNI_LOOP_##NAME % TNI_FAMILY_LOOPS]

#endif
