/* SPDX-License-Identifier: MIT */
/* dispatch/device.c: an out-of-tree device claims a slot. */
#include "base/alloc.h"
#include "core/device.h"
#include "dispatch/call.h"

/* The library's autograd fallback serves the first free slot from the start, as in the reference;
 * the others get it with the device, so that an operator without an autograd kernel works on each
 * alike. */
static tn_status prepare(tn_device_type type)
{
    tn_key key = tni_backend_autograd_key(type);
    unsigned slot = tni_key_slot(key), first = tni_key_slot(TN_KEY_AUTOGRAD_PRIVATE1);
    tni_record *record = tni_calloc(sizeof *record);
    TN_CHECK(record, TN_NOMEM, "cannot allocate the autograd fallback of a device");
    tn_status status = TN_OK;
    tni_lock();
    const tni_record *shared = tni_registry_.fallbacks[first];
    while (shared && shared->next)
        shared = shared->next; /* the oldest is the library's own */
    if (!shared || tni_registry_.fallbacks[slot]) {
        tni_unlock_only();
        tni_free(record);
        return TN_OK;
    }
    *record = *shared;
    record->kernel.record = record;
    record->key = key;
    record->next = NULL;
    tni_registry_.fallbacks[slot] = record;
    status = tni_table_publish_all(false);
    if (status != TN_OK)
        tni_registry_.fallbacks[slot] = NULL;
    tni_unlock_only(); /* the list of devices is locked, too */
    if (status != TN_OK)
        tni_free(record);
    return status;
}

tn_status tn_device_register(const char *name, const tn_device_vtable *vtable, tn_device_type *out)
{
    TN_TRY(tni_ready());
    TN_TRY(tni_device_claim(name, vtable, prepare, out));
    tni_flight_backend(*out, name);
    return TN_OK;
}
