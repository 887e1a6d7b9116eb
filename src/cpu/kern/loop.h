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
