/* SPDX-License-Identifier: MIT */
/* op/number.h: numbers as text, the same in every locale: a program that embeds the library may
 * have chosen one in which the decimal point is a comma. */
#ifndef TNI_OP_NUMBER_H
#define TNI_OP_NUMBER_H

#include "base/status.h"

#define TNI_NUMBER_TEXT 64 /* longest number that is read, and room for any that is written */

/* @p n characters of digits, point and exponent. False: not a number from end to end, too long, or
 * larger than a double can be. Too small for a double gives 0. */
bool tni_number_double(const char *text, size_t n, double *out);
/* Digits alone. False: something else, or not in the range of int64 once negated. */
bool tni_number_int(const char *text, size_t n, bool negative, int64_t *out);
/* A finite double as schemas print it: "1.", "-0.", "0.10000000000000001", "1e+20". Always has a
 * point or an exponent, and reads back as the same bits. Returns @p buffer of TNI_NUMBER_TEXT. */
char *tni_number_format(double value, char *buffer);

#endif
