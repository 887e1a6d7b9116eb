/* SPDX-License-Identifier: MIT */
/* Numbers to and from text. */
#include "op/number.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C locale for this thread, until locale_leave. Nothing changes when there is none to be had.
 */
static locale_t locale_enter(locale_t *own)
{
    *own = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    return *own ? uselocale(*own) : (locale_t)0;
}

static void locale_leave(locale_t own, locale_t before)
{
    if (!own)
        return;
    uselocale(before);
    freelocale(own);
}

bool tni_number_double(const char *text, size_t n, double *out)
{
    char buffer[TNI_NUMBER_TEXT];
    if (n == 0 || n >= sizeof buffer)
        return false;
    /* strtod also reads "inf", "nan", hexadecimal numbers, signs and leading spaces. */
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        bool exponent_sign = (c == '+' || c == '-') && i > 0 && (buffer[i - 1] | 0x20) == 'e';
        if (!((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || exponent_sign))
            return false;
        buffer[i] = c;
    }
    buffer[n] = '\0';
    locale_t own, before = locale_enter(&own);
    char *end = NULL;
    double value = strtod(buffer, &end);
    locale_leave(own, before);
    if (end != buffer + n || isinf(value))
        return false;
    *out = value;
    return true;
}

bool tni_number_int(const char *text, size_t n, bool negative, int64_t *out)
{
    uint64_t value = 0, most = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    if (n == 0)
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value) || value > most)
            return false;
    }
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}

char *tni_number_format(double value, char *buffer)
{
    if (fabs(value) < 0x1p63 && (double)(int64_t)value == value) {
        const char *sign = value == 0 && signbit(value) ? "-" : "";
        snprintf(buffer, TNI_NUMBER_TEXT, "%s%lld.", sign, (long long)value);
        return buffer;
    }
    locale_t own, before = locale_enter(&own);
    snprintf(buffer, TNI_NUMBER_TEXT, "%.17g", value);
    locale_leave(own, before);
    if (!strpbrk(buffer, ".ein"))
        strcat(buffer, ".");
    return buffer;
}
