/* SPDX-License-Identifier: MIT */
/* cpu/kern/factor_rows.c: see cpu/factor_rows.h. */
#include "cpu/factor_rows.h"
#include "cpu/kern/types.h"

#define T       float
#define NAME(x) x##_f32
#include "cpu/kern/factor_rows.inc"

#define T       double
#define NAME(x) x##_f64
#include "cpu/kern/factor_rows.inc"

const tni_factor_rows TNI_KERN_NAME(tni_factor_rows) = {
    {subtract_f32, subtract_all_f32, eliminate_f32, dot_f32},
    {subtract_f64, subtract_all_f64, eliminate_f64, dot_f64},
};
