/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/autocast.h
 * @brief Autocast: matrix products in a smaller floating dtype, what needs range in float32.
 *
 * While a thread is inside, operators that their declaration marks get their floating arguments in
 * another dtype: `lower` ones (products, convolutions) in the region's dtype, `float32` ones
 * (losses, FFT) in float32, `promote` ones (cat) in the widest of their arguments. float64 is left
 * alone, as is every operator that is not marked. Casts are recorded, so gradients come back in the
 * dtype of the parameter.
 *
 * State belongs to the thread; a region is left on the thread that entered it, in reverse order.
 */
#ifndef TN_AUTOCAST_H
#define TN_AUTOCAST_H

#include "tenon/base.h"
#include "tenon/dtype.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What tn_autocast_enter changed; give it back to tn_autocast_leave. */
typedef struct tn_autocast_guard {
    int16_t device; /**< tn_device_type */
    int8_t dtype;
    uint8_t flags;
} tn_autocast_guard;

/**
 * Enter a region for tensors of @p device: TN_DEVICE_CPU or TN_DEVICE_CUDA.
 *
 * @param enabled  false: no autocast inside, also when the thread is in a region already
 * @param dtype    float16 or bfloat16; NONE: what is set (tn_set_autocast_dtype)
 * @param cache    keep casts of parameters (leaves that require grad) until the outermost region is
 *                 left
 * @retval TN_INVALID  another device or dtype
 */
TN_API TN_NODISCARD tn_status tn_autocast_enter(tn_device_type device, bool enabled, tn_dtype dtype,
                                                bool cache, tn_autocast_guard *out);
TN_API void tn_autocast_leave(tn_autocast_guard guard);

/** Whether calls of this thread with tensors of @p device are cast. */
TN_API bool tn_autocast_enabled(tn_device_type device);
/** Not scoped: switch it. @retval TN_INVALID  another device */
TN_API TN_NODISCARD tn_status tn_set_autocast_enabled(tn_device_type device, bool on);
/** What `lower` operators compute in on this thread: bfloat16 on the CPU, float16 on CUDA, unless
 *  set; NONE for another device. */
TN_API tn_dtype tn_autocast_dtype(tn_device_type device);
/** @retval TN_INVALID  another device, or neither float16, bfloat16 nor float32 */
TN_API TN_NODISCARD tn_status tn_set_autocast_dtype(tn_device_type device, tn_dtype dtype);
/** Whether casts of parameters are kept. */
TN_API bool tn_autocast_cache_enabled(void);
/** Returns what it was. */
TN_API bool tn_set_autocast_cache_enabled(bool on);
/** Forget casts that this thread keeps. */
TN_API void tn_autocast_clear_cache(void);
/** How many regions this thread is in, after adding @p change (1, -1 or 0). At 0 kept casts are
 *  forgotten. For those who switch by hand. */
TN_API int tn_autocast_nesting(int change);

#ifdef __cplusplus
}
#endif
#endif
