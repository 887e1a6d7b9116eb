/* SPDX-License-Identifier: MIT */
/* Growing text: append, print, hand over. */
#include "base/str.h"

#include <stdio.h>
#include <string.h>
#include "base/alloc.h"

enum { FIRST_CAPACITY = 64 };

/* Room for @p extra more characters and the NUL. */
static bool reserve(tni_str *s, size_t extra)
{
    size_t wanted;
    if (s->failed)
        return false;
    if (!tni_size_add(s->n, extra, &wanted) || !tni_size_add(wanted, 1, &wanted)) {
        s->failed = true;
        return false;
    }
    if (wanted <= s->capacity)
        return true;
    size_t capacity = s->capacity ? s->capacity : FIRST_CAPACITY;
    while (capacity < wanted) {
        if (!tni_size_mul(capacity, 2, &capacity))
            capacity = wanted;
    }
    char *text = tni_realloc(s->text, s->text ? s->n + 1 : 0, capacity);
    if (!text) {
        s->failed = true;
        return false;
    }
    s->text = text;
    s->capacity = capacity;
    return true;
}

void tni_str_addn(tni_str *s, const char *text, size_t n)
{
    if (!reserve(s, n))
        return;
    if (n)
        memcpy(s->text + s->n, text, n);
    s->n += n;
    s->text[s->n] = '\0';
}

void tni_str_add(tni_str *s, const char *text)
{
    tni_str_addn(s, text, strlen(text));
}

void tni_str_vaddf(tni_str *s, const char *format, va_list args)
{
    if (s->failed)
        return;
    va_list again;
    va_copy(again, args);
    size_t room = s->capacity - s->n;
    int n = vsnprintf(s->text ? s->text + s->n : NULL, s->text ? room : 0, format, args);
    if (n < 0) {
        s->failed = true;
    } else if (s->text && (size_t)n < room) {
        s->n += (size_t)n;
    } else if (reserve(s, (size_t)n)) {
        vsnprintf(s->text + s->n, (size_t)n + 1, format, again);
        s->n += (size_t)n;
    }
    va_end(again);
}

void tni_str_addf(tni_str *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tni_str_vaddf(s, format, args);
    va_end(args);
}

const char *tni_str_get(const tni_str *s)
{
    return s->text && !s->failed ? s->text : "";
}

char *tni_str_take(tni_str *s)
{
    if (!s->text)
        tni_str_add(s, "");
    char *text = s->failed ? NULL : s->text;
    if (!text)
        tni_free(s->text);
    *s = (tni_str)TNI_STR_INIT;
    return text;
}

void tni_str_clear(tni_str *s)
{
    tni_free(s->text);
    *s = (tni_str)TNI_STR_INIT;
}
