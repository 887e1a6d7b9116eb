/* SPDX-License-Identifier: MIT */
/* cli/keytext.c: walks over a key set as tenon/dispatch.h lays it out: backend components are bits
 * 0 to 15, functionality f is bit 15+f, and a functionality marked "per backend" has one key for
 * each backend of the set. */
#include "keytext.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FUNCTIONALITIES = 48, BACKENDS = 16, NOT_PER_BACKEND = -1 };

/* The first instance (that of the CPU) of each functionality. */
static int first_instance(int functionality)
{
    switch (functionality) {
    case TN_KEY_DENSE:
        return TN_KEY_CPU;
    case TN_KEY_QUANTIZED:
        return TN_KEY_QUANTIZED_CPU;
    case TN_KEY_SPARSE:
        return TN_KEY_SPARSE_CPU;
    case TN_KEY_SPARSE_CSR:
        return TN_KEY_SPARSE_CSR_CPU;
    case TN_KEY_NESTED_TENSOR:
        return TN_KEY_NESTED_TENSOR_CPU;
    case TN_KEY_AUTOGRAD_FUNCTIONALITY:
        return TN_KEY_AUTOGRAD_CPU;
    default:
        return NOT_PER_BACKEND;
    }
}

/* Fill @p keys with the keys of the set, lowest first; returns how many. */
static int list_keys(tn_keyset ks, tn_key keys[TN_KEY_LIMIT])
{
    int n = 0;
    tn_keyset backends = ks & ((UINT64_C(1) << BACKENDS) - 1);
    for (int f = 1; f < FUNCTIONALITIES; f++) {
        if (!(ks >> (15 + f) & 1))
            continue;
        int first = first_instance(f);
        if (first == NOT_PER_BACKEND || !backends) {
            keys[n++] = (tn_key)f;
            continue;
        }
        for (int b = 0; b < BACKENDS; b++) {
            if (backends >> b & 1)
                keys[n++] = (tn_key)(first + b);
        }
    }
    return n;
}

static void append(char *buffer, size_t n, const char *format, ...) TN_PRINTF(3, 4);
static void append(char *buffer, size_t n, const char *format, ...)
{
    size_t at = strlen(buffer);
    va_list args;
    va_start(args, format);
    vsnprintf(buffer + at, n - at, format, args);
    va_end(args);
}

char *keys_text(tn_keyset ks, char *buffer, size_t n)
{
    enum { RUN = 4 };
    tn_key keys[TN_KEY_LIMIT];
    int count = list_keys(ks, keys);
    snprintf(buffer, n, "%s", count ? "" : "none");
    for (int i = 0; i < count;) {
        int end = i + 1;
        while (end < count && keys[end] == keys[end - 1] + 1)
            end++;
        append(buffer, n, "%s%s", i ? ", " : "", tn_key_name(keys[i]));
        if (end - i < RUN) {
            i++;
            continue;
        }
        append(buffer, n, " .. %s (%d)", tn_key_name(keys[end - 1]), end - i);
        i = end;
    }
    return buffer;
}

void keys_json(json *j, tn_keyset ks)
{
    tn_key keys[TN_KEY_LIMIT];
    int n = list_keys(ks, keys);
    json_one_line(j);
    json_array(j);
    for (int i = 0; i < n; i++)
        json_string(j, tn_key_name(keys[i]));
    json_array_end(j);
}

tn_keyset keys_not_in_mask(tn_keyset mask)
{
    /* Backend bits are never masked: what falls through is a functionality. */
    tn_keyset functionalities = (UINT64_C(1) << 63) - (UINT64_C(1) << BACKENDS);
    return functionalities & ~mask;
}
