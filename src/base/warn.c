/* SPDX-License-Identifier: MIT */
/* base/warn.c: see warn.h. */
#include "base/warn.h"
#include <stdarg.h>
#include <stdio.h>

static _Atomic(const tn_warnings *) listener;

tn_status tn_set_warnings(const tn_warnings *to)
{
    TN_CHECK(!to || (to->size >= sizeof *to && to->tell), TN_INVALID,
             "tn_set_warnings: size and tell must be set");
    atomic_store_explicit(&listener, to, memory_order_release);
    return TN_OK;
}

bool tni_somebody_listens(void)
{
    return atomic_load_explicit(&listener, memory_order_acquire) != NULL;
}

tn_status tni_warn(const char *format, ...)
{
    const tn_warnings *to = atomic_load_explicit(&listener, memory_order_acquire);
    char text[1024];
    va_list args;
    if (!to)
        return TN_OK;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return to->tell(to->ctx, text);
}
