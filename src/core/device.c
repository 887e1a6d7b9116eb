/* SPDX-License-Identifier: MIT */
/* core/device.c: the registry of devices: which names exist, who claimed which number, and how a
 * device is read and written as text. A claim lasts as long as the process, because tensors and
 * keys keep the number. */
#include "core/device.h"

#include "base/mark.h"
#include "base/status.h"
#include "core/keys.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MAX_CHARS = 15 };

/* ASCII alone, whatever the locale. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

/* An entry is written under the lock and published by `ready`, so that readers need no lock. */
typedef struct device_entry {
    _Atomic bool ready;
    char name[NAME_MAX_CHARS + 1]; /* "": the built-in name */
    tn_device_vtable vtable;
} device_entry;

static struct {
    pthread_mutex_t lock;
    device_entry entries[TNI_NUM_BACKENDS];
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

void tni_device_lock(void)
{
    tni_mutex_lock(&registry.lock, "the list of devices");
}

void tni_device_unlock(void)
{
    tni_mutex_unlock(&registry.lock);
}

static const char *const builtin_names[TNI_NUM_BACKENDS] = {
    "cpu",           "cuda",          "hip",
    "xla",           "mps",           "ipu",
    "xpu",           "hpu",           "ve",
    "lazy",          "mtia",          "maia",
    "privateuseone", "privateusetwo", "privateusethree",
    "meta",
};

static bool is_ready(int type)
{
    return type >= 0 && type < TNI_NUM_BACKENDS &&
           atomic_load_explicit(&registry.entries[type].ready, memory_order_acquire);
}

static bool is_private(int type)
{
    return type >= TN_DEVICE_PRIVATE1 && type <= TN_DEVICE_PRIVATE3;
}

const tn_device_vtable *tni_device_vtable(tn_device device)
{
    return is_ready(device.type) ? &registry.entries[device.type].vtable : NULL;
}

const char *tni_device_type_name(int type)
{
    if (type < 0 || type >= TNI_NUM_BACKENDS)
        return "invalid";
    if (is_ready(type) && registry.entries[type].name[0])
        return registry.entries[type].name;
    return builtin_names[type];
}

const char *tni_device_builtin_name(int type)
{
    return type < 0 || type >= TNI_NUM_BACKENDS ? "invalid" : builtin_names[type];
}

bool tni_device_usable(tn_device device)
{
    return device.type == TN_DEVICE_CPU || device.type == TN_DEVICE_META || is_ready(device.type);
}

/* ---- claiming ---- */

static tn_status check_vtable(const char *function, const tn_device_vtable *vtable)
{
    TN_CHECK(vtable, TN_INVALID, "%s: vtable is NULL", function);
    TN_CHECK(vtable->size == sizeof(tn_device_vtable), TN_INVALID,
             "%s: vtable->size is %u, expected %zu", function, vtable->size,
             sizeof(tn_device_vtable));
    TN_CHECK(vtable->flags == 0, TN_INVALID, "%s: vtable->flags is %u, expected 0", function,
             vtable->flags);
    const char *missing = !vtable->alloc       ? "alloc"
                          : !vtable->free      ? "free"
                          : !vtable->to_host   ? "to_host"
                          : !vtable->from_host ? "from_host"
                                               : NULL;
    TN_CHECK(!missing, TN_INVALID, "%s: vtable->%s is NULL", function, missing);
    return TN_OK;
}

static tn_status check_name(const char *name)
{
    TN_CHECK(name, TN_INVALID, "tn_device_register: name is NULL");
    size_t n = strlen(name);
    bool good = n >= 1 && n <= NAME_MAX_CHARS && is_letter(name[0]);
    for (size_t i = 0; good && i < n; i++)
        good = is_word(name[i]);
    TN_CHECK(good, TN_INVALID,
             "tn_device_register: the name '%.40s' is malformed: expected a letter, then letters, "
             "digits or '_', at most %d characters",
             name, NAME_MAX_CHARS);
    return TN_OK;
}

/* A name that a device or a key already answers to would make texts ambiguous. */
static tn_status check_free(const char *name)
{
    for (int i = 0; i < TNI_NUM_BACKENDS; i++)
        TN_CHECK(strcmp(name, tni_device_type_name(i)) != 0 && strcmp(name, builtin_names[i]) != 0,
                 TN_INVALID, "tn_device_register: a device named '%s' exists already", name);
    for (int k = 0; k < TN_KEY_LIMIT; k++)
        TN_CHECK(strcmp(name, tn_key_name((tn_key)k)) != 0, TN_INVALID,
                 "tn_device_register: the name '%s' is taken by a dispatch key", name);
    return TN_OK;
}

static void publish(int type, const char *name, const tn_device_vtable *vtable)
{
    device_entry *e = &registry.entries[type];
    snprintf(e->name, sizeof e->name, "%s", name);
    e->vtable = *vtable;
    atomic_store_explicit(&e->ready, true, memory_order_release);
}

static tn_status claim(const char *name, const tn_device_vtable *vtable,
                       tn_status (*prepare)(tn_device_type type), tn_device_type *out)
{
    TN_TRY(check_free(name));
    for (int type = TN_DEVICE_PRIVATE1; type <= TN_DEVICE_PRIVATE3; type++) {
        if (is_ready(type))
            continue;
        TN_TRY(prepare((tn_device_type)type));
        publish(type, name, vtable);
        tni_backend_rename(type, registry.entries[type].name);
        *out = (tn_device_type)type;
        return TN_OK;
    }
    TN_FAIL(TN_INVALID,
            "tn_device_register: no slot is free for '%s': %s, %s and %s are registered", name,
            tni_device_type_name(TN_DEVICE_PRIVATE1), tni_device_type_name(TN_DEVICE_PRIVATE2),
            tni_device_type_name(TN_DEVICE_PRIVATE3));
}

tn_status tni_device_claim(const char *name, const tn_device_vtable *vtable,
                           tn_status (*prepare)(tn_device_type type), tn_device_type *out)
{
    TN_TRY(check_name(name));
    TN_TRY(check_vtable("tn_device_register", vtable));
    TN_CHECK(out, TN_INVALID, "tn_device_register: out is NULL");
    tni_mutex_lock(&registry.lock, "the list of devices");
    tn_status status = claim(name, vtable, prepare, out);
    tni_mutex_unlock(&registry.lock);
    return status;
}

tn_status tni_device_install(tn_device_type type, const tn_device_vtable *vtable)
{
    TN_TRY(check_vtable("tni_device_install", vtable));
    TNI_REQUIRE(type > TN_DEVICE_CPU && type < TN_DEVICE_META && !is_private(type));
    tni_mutex_lock(&registry.lock, "the list of devices");
    bool taken = is_ready(type);
    if (!taken)
        publish(type, "", vtable);
    tni_mutex_unlock(&registry.lock);
    TN_CHECK(!taken, TN_INVALID, "the device %s is installed already", builtin_names[type]);
    return TN_OK;
}

/* ---- text ---- */

/* Devices that a text may name: all of the built-in ones, whether this machine has them or not,
 * because programs compare against them; and the private ones that somebody claimed. */
static bool is_nameable(int type)
{
    return !is_private(type) || is_ready(type);
}

static tn_status unknown_type(const char *text)
{
    char known[256];
    size_t at = 0;
    for (int i = 0; i < TNI_NUM_BACKENDS; i++)
        if (is_nameable(i))
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "",
                                   tni_device_type_name(i));
    TN_FAIL(TN_INVALID, "Expected one of %s device type at start of device string: %.100s", known,
            text);
}

/* Digits without a leading zero, nothing behind them. */
static bool is_index(const char *digits)
{
    if (digits[0] == '\0' || (digits[0] == '0' && digits[1] != '\0'))
        return false;
    for (; *digits; digits++)
        if (*digits < '0' || *digits > '9')
            return false;
    return true;
}

tn_status tn_device_parse(const char *text, tn_device *out)
{
    TN_CHECK(text && out, TN_INVALID, "tn_device_parse: %s is NULL", text ? "out" : "text");
    TN_CHECK(text[0], TN_INVALID, "Device string must not be empty");
    size_t n = strcspn(text, ":");
    TN_CHECK(n > 0, TN_INVALID, "Invalid device string: '%.100s'", text);
    for (size_t i = 0; i < n; i++)
        TN_CHECK(is_word(text[i]), TN_INVALID, "Invalid device string: '%.100s'", text);

    int type = 0;
    while (type < TNI_NUM_BACKENDS &&
           !(is_nameable(type) && strlen(tni_device_type_name(type)) == n &&
             memcmp(text, tni_device_type_name(type), n) == 0))
        type++;
    int64_t index = -1;
    if (text[n] == ':') {
        const char *digits = text + n + 1;
        TN_CHECK(is_index(digits), TN_INVALID, "Invalid device string: '%.100s'", text);
        index = 0;
        for (; *digits && index <= INT16_MAX; digits++)
            index = index * 10 + (*digits - '0');
    }
    if (type == TNI_NUM_BACKENDS)
        return unknown_type(text);
    TN_CHECK(index <= INT16_MAX, TN_INVALID,
             "Could not parse device index '%.40s' in device string '%.100s'", text + n + 1, text);
    TN_CHECK(type != TN_DEVICE_CPU || index <= 0, TN_INVALID,
             "CPU device index must be -1 or zero, got %lld", (long long)index);
    *out = TN_DEVICE_INIT(type, index);
    return TN_OK;
}

char *tn_device_format(tn_device device, char *buffer, size_t n)
{
    if (!buffer || n == 0)
        return buffer;
    if (device.index < 0)
        snprintf(buffer, n, "%s", tni_device_type_name(device.type));
    else
        snprintf(buffer, n, "%s:%d", tni_device_type_name(device.type), device.index);
    return buffer;
}
