/* SPDX-License-Identifier: MIT */
/* cpu/fourier.h: Fourier transforms of several lines side by side. Compiled for each instruction
 * set (kern/fourier.c), for float32 and float64; cpu/fft.c makes the plans and cuts the work. */
#ifndef TNI_CPU_FOURIER_H
#define TNI_CPU_FOURIER_H

#include "cpu/loops.h"

#define TNI_FFT_FACTORS 64
#define TNI_FFT_LANES   16 /* lines at a time, at most */
#define TNI_FFT_PRIME   31 /* lengths with greater primes become convolutions */

typedef enum tni_fft_kind {
    TNI_FFT_COMPLEX, /* complex lines to complex ones */
    TNI_FFT_TO_HALF, /* real ones to the first half of a spectrum, and one more when it is even */
    TNI_FFT_TO_REAL, /* and back */
} tni_fft_kind;

/* Tables are of the real type that is computed in, complex numbers as pairs. */
typedef struct tni_fft_plan {
    tni_fft_kind kind;
    bool inverse;
    int64_t n;      /* numbers of a line that is real, or of both complex ones */
    int64_t length; /* of the complex transform: half of an even real line, else n */
    int64_t padded; /* of the convolution that does it; 0 when the length has small factors */
    int n_factors;  /* of the length, or of padded */
    int factors[TNI_FFT_FACTORS];
    const void *roots;          /* exp(-2 pi i k / N): N is the length, or padded */
    const void *chirp, *kernel; /* exp(-pi i k k / length); its conjugate, padded and transformed */
    const void *turns;          /* exp(-2 pi i k / n), k <= length / 2: for halves of even lines */
    double factor;              /* what results are multiplied by */
} tni_fft_plan;

/* @p lanes lines: line l begins at in + in_at[l], elements are in_step apart, counted in elements;
 * likewise out. All is read before anything is written. @p room: tni_fft_room numbers. */
typedef struct tni_fft_lines {
    const void *in;
    void *out;
    int64_t in_at[TNI_FFT_LANES], out_at[TNI_FFT_LANES], in_step, out_step;
    int lanes;
} tni_fft_lines;

/* Numbers that the transform of so many lines works in. */
static inline int64_t tni_fft_room(const tni_fft_plan *p, int lanes)
{
    return 4 * lanes * ((p->padded ? p->padded : p->length) + 1);
}

typedef struct tni_fft_table {
    void (*f32)(const tni_fft_plan *p, const tni_fft_lines *lines, void *room);
    void (*f64)(const tni_fft_plan *p, const tni_fft_lines *lines, void *room);
    /* The kernel of a plan whose chirp is there; @p room as for one line. */
    void (*kernel_f32)(const tni_fft_plan *p, void *kernel, void *room);
    void (*kernel_f64)(const tni_fft_plan *p, void *kernel, void *room);
} tni_fft_table;

#define X(isa) extern const tni_fft_table tni_fft_##isa;
TNI_KERN_LIST(X)
#undef X

#endif
