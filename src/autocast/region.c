/* SPDX-License-Identifier: MIT */
/* autocast/region.c: regions, and the thread's switches: the key is excluded or not, the dtype of
 * each device, whether casts are kept. */
#include "tenon/autocast.h"

#include "autocast/cache.h"
#include "tenon/dispatch.h"

enum { CPU, CUDA, N_DEVICES };
enum { WAS_ENABLED = 1, WAS_CACHING = 2 };

/* All zero is the default. */
static _Thread_local struct {
    int8_t dtype[N_DEVICES]; /* 0: the device's usual one; else the dtype and 1 */
    bool no_cache;
    int nesting;
} state;

static int place_of(tn_device_type device)
{
    return device == TN_DEVICE_CPU ? CPU : device == TN_DEVICE_CUDA ? CUDA : -1;
}

static tn_key key_of(tn_device_type device)
{
    return device == TN_DEVICE_CPU ? TN_KEY_AUTOCAST_CPU : TN_KEY_AUTOCAST_CUDA;
}

static tn_status check_device(tn_device_type device)
{
    TN_CHECK(place_of(device) >= 0, TN_INVALID,
             "autocast is for the CPU and for CUDA, not for device type %d", (int)device);
    return TN_OK;
}

bool tn_autocast_enabled(tn_device_type device)
{
    return place_of(device) >= 0 && !tn_keyset_has(tn_excluded_keys(), key_of(device));
}

tn_status tn_set_autocast_enabled(tn_device_type device, bool on)
{
    TN_TRY(check_device(device));
    tn_set_key_excluded(key_of(device), !on);
    return TN_OK;
}

tn_dtype tn_autocast_dtype(tn_device_type device)
{
    int place = place_of(device);
    if (place < 0)
        return TN_DTYPE_NONE;
    if (state.dtype[place])
        return (tn_dtype)(state.dtype[place] - 1);
    return place == CPU ? TN_DTYPE_BF16 : TN_DTYPE_F16;
}

tn_status tn_set_autocast_dtype(tn_device_type device, tn_dtype dtype)
{
    TN_TRY(check_device(device));
    TN_CHECK(dtype == TN_DTYPE_BF16 || dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_F32, TN_INVALID,
             "autocast computes in float16 or bfloat16, not in %s",
             tn_dtype_valid(dtype) ? tn_dtype_name(dtype) : "no dtype");
    state.dtype[place_of(device)] = (int8_t)(dtype + 1);
    return TN_OK;
}

bool tn_autocast_cache_enabled(void)
{
    return !state.no_cache;
}

bool tn_set_autocast_cache_enabled(bool on)
{
    bool old = !state.no_cache;
    state.no_cache = !on;
    return old;
}

void tn_autocast_clear_cache(void)
{
    tni_cast_cache_clear();
}

int tn_autocast_nesting(int change)
{
    state.nesting += change;
    if (state.nesting < 0)
        state.nesting = 0;
    if (state.nesting == 0 && change < 0)
        tni_cast_cache_clear();
    return state.nesting;
}

tn_status tn_autocast_enter(tn_device_type device, bool enabled, tn_dtype dtype, bool cache,
                            tn_autocast_guard *out)
{
    TN_CHECK(out, TN_INVALID, "tn_autocast_enter: out is NULL");
    TN_TRY(check_device(device));
    tn_autocast_guard guard = {.device = (int16_t)device,
                               .dtype = (int8_t)tn_autocast_dtype(device)};
    if (tn_autocast_enabled(device))
        guard.flags |= WAS_ENABLED;
    if (tn_autocast_cache_enabled())
        guard.flags |= WAS_CACHING;
    if (dtype != TN_DTYPE_NONE)
        TN_TRY(tn_set_autocast_dtype(device, dtype));
    TN_TRY(tn_set_autocast_enabled(device, enabled));
    tn_set_autocast_cache_enabled(cache);
    tn_autocast_nesting(1);
    *out = guard;
    return TN_OK;
}

void tn_autocast_leave(tn_autocast_guard guard)
{
    tn_device_type device = (tn_device_type)guard.device;
    if (place_of(device) < 0)
        return;
    tn_autocast_nesting(-1);
    tn_set_autocast_cache_enabled(guard.flags & WAS_CACHING);
    tn_status status = tn_set_autocast_dtype(device, (tn_dtype)guard.dtype);
    if (status == TN_OK)
        status = tn_set_autocast_enabled(device, guard.flags & WAS_ENABLED);
    (void)status; /* a guard has what was valid */
}
