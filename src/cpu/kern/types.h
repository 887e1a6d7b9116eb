/* SPDX-License-Identifier: MIT */
/* cpu/kern/types.h: what the loops are written with: element types, and conversions that are
 * defined for every value. */
#ifndef TNI_CPU_KERN_TYPES_H
#define TNI_CPU_KERN_TYPES_H

#include <math.h>
#include "cpu/loops.h"

typedef struct c64 {
    float re, im;
} c64;
typedef struct c128 {
    double re, im;
} c128;

/* An element is read before the same element is written: nothing else overlaps. */
#if defined(__clang__)
#    define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
/* Loops that call the C library cannot be vectorised, and need not be. */
#    pragma clang diagnostic ignored "-Wpass-failed"
#else
#    define INDEPENDENT _Pragma("GCC ivdep")
#endif

#endif
