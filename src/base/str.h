/* SPDX-License-Identifier: MIT */
/* base/str.h: growing text. A failed append sets `failed` and drops further text; test it once. */
#ifndef TNI_BASE_STR_H
#define TNI_BASE_STR_H

#include <stdarg.h>
#include "base/status.h"

typedef struct tni_str {
    char *text; /* NUL-terminated once something was appended; NULL before */
    size_t n;
    size_t capacity;
    bool failed;
} tni_str;

/* clang-format off */
#define TNI_STR_INIT {NULL, 0, 0, false}
/* clang-format on */
void tni_str_add(tni_str *s, const char *text);
void tni_str_addn(tni_str *s, const char *text, size_t n);
void tni_str_addf(tni_str *s, const char *format, ...) TN_PRINTF(2, 3);
void tni_str_vaddf(tni_str *s, const char *format, va_list args);
/* The text so far, "" when empty or failed. */
const char *tni_str_get(const tni_str *s);
/* Hand the buffer over (tni_free it), an empty one when nothing was appended; NULL when failed.
 * Leaves @p s as TNI_STR_INIT. */
char *tni_str_take(tni_str *s);
void tni_str_clear(tni_str *s);

#endif
