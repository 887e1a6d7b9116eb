/* SPDX-License-Identifier: MIT */
/* cpu/kern/fourier.c: Fourier transforms, see cpu/fourier.h. */
#include "cpu/fourier.h"
#include <string.h>
#include "cpu/kern/types.h"

#define T   float
#define SUF f32
#include "cpu/kern/fourier.inc"

#define T   double
#define SUF f64
#include "cpu/kern/fourier.inc"

const tni_fft_table TNI_KERN_NAME(tni_fft) = {transform_f32, transform_f64, kernel_f32, kernel_f64};
