/* SPDX-License-Identifier: MIT */
/* cpu/kern/lanes.h: how wide registers are, and the lanes that sums are written with: see Note
 * [Sums]. */
#ifndef TNI_CPU_KERN_LANES_H
#define TNI_CPU_KERN_LANES_H

/* Bytes of a vector register. Lanes are 128 bytes whatever it is. */
#if defined(__AVX512F__)
#    define REGISTER 64
#elif defined(__AVX2__)
#    define REGISTER 32
#else
#    define REGISTER 16
#endif
#define LANE_BYTES 128
#define REGISTERS  (LANE_BYTES / REGISTER)

/* A loop over a few registers, written out. */
#if defined(__clang__)
#    define UNROLL _Pragma("clang loop unroll(full)")
#else
#    define UNROLL _Pragma("GCC unroll 8")
#endif

#endif
