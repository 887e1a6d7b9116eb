/* SPDX-License-Identifier: MIT */
/**
 * @file  tenon/fake.h
 * @brief Fake tensors: run a program for its shapes, dtypes, strides and devices, without memory.
 *
 * A fake tensor says that it is on a device, which need not exist, and has no data. Every operator
 * that works on the Meta device works on it, with the checks and texts of the real one, and gives
 * fake tensors; views, versions and gradients are tracked as for any tensor. What depends on values
 * fails, unless they are known: see tn_fake_constant.
 *
 * A fake tensor belongs to a mode. While a thread is inside a mode, factories and
 * tn_tensor_from_data give fake tensors of it. Operators on fake tensors work outside it too.
 *
 * Modes are counted handles; any number of threads may be inside one, and convert tensors, at once.
 */
#ifndef TN_FAKE_H
#define TN_FAKE_H

#include "tenon/base.h"
#include "tenon/dtype.h"
#include "tenon/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_fake_mode tn_fake_mode;

/** Options of a mode. Start from TN_FAKE_OPTS_INIT; NULL means the same. */
typedef struct tn_fake_opts {
    uint32_t size;                  /**< sizeof(tn_fake_opts) */
    uint32_t allow_non_fake_inputs; /**< 1: a real argument is converted; 0: it is refused */
} tn_fake_opts;

#define TN_FAKE_OPTS_INIT       \
    {                           \
        sizeof(tn_fake_opts), 0 \
    }

/** @retval TN_NOMEM  @retval TN_INVALID  the options are malformed */
TN_API TN_NODISCARD tn_status tn_fake_mode_new(const tn_fake_opts *opts,
                                               TN_OWNED tn_fake_mode **out);
/** Add a reference and return @p mode. NULL gives NULL. */
TN_API TN_OWNED tn_fake_mode *tn_fake_mode_ref(tn_fake_mode *mode);
/** Drop a reference. Its tensors hold references of their own. NULL does nothing. */
TN_API void tn_fake_mode_unref(TN_STOLEN tn_fake_mode *mode);

/** What tn_fake_enter changed; give it back to tn_fake_leave, on the same thread, in reverse order.
 */
typedef struct tn_fake_guard {
    tn_fake_mode *mode;
    uint64_t included;
} tn_fake_guard;
/** Enter @p mode on this thread; NULL: no mode, until the guard is left. Modes nest, the innermost
 *  counts. The guard holds a reference of what it returns to. */
TN_API tn_fake_guard tn_fake_enter(tn_fake_mode *mode);
TN_API void tn_fake_leave(TN_STOLEN tn_fake_guard guard);
/** The mode this thread is in, else NULL. */
TN_API TN_BORROWED tn_fake_mode *tn_fake_mode_current(void);

/**
 * The fake tensor of @p mode that stands for @p real.
 *
 * It has the same sizes, strides, offset, dtype, device, keys, version and requires-grad flag, and
 * a converted `.grad`. A view is a view of its converted base, made the same way; a leaf stays one;
 * a result of recorded calls has a history at which a backward pass fails. Asking again gives the
 * same tensor as long as somebody holds it. Tensors that share a storage or count writes together
 * do so as fakes too, in whatever order they are converted. A fake tensor of
 * @p mode gives itself.
 * @retval TN_NOMEM  @retval TN_INVALID  an argument is NULL
 */
TN_API TN_NODISCARD tn_status tn_fake_from_real(tn_fake_mode *mode, tn_tensor *real,
                                                TN_OWNED tn_tensor **out);

/** NULL gives false. */
TN_API bool tn_is_fake(const tn_tensor *t);
/** The device that a fake tensor pretends to be on (tn_tensor_device says the same); none for a
 *  real tensor or NULL. */
TN_API tn_device tn_fake_device(const tn_tensor *t);
/** The mode of a fake tensor; NULL for a real one. */
TN_API TN_BORROWED tn_fake_mode *tn_fake_mode_of(const tn_tensor *t);

/**
 * What is known of a fake tensor's values: a real CPU tensor with them, or NULL.
 *
 * Known are the values of a tensor of at most one element that tn_tensor_from_data or
 * tn_tensor_from_scalar made inside a mode, and what operators compute from such alone (random ones
 * aside): so tn_item works on them. Writing something unknown forgets them, for all views.
 * @param out  a copy, which the caller owns; NULL when nothing is known
 * @retval TN_NOMEM  @retval TN_INVALID  @p t is not fake
 */
TN_API TN_NODISCARD tn_status tn_fake_constant(tn_tensor *t, TN_OWNED tn_tensor **out);

#ifdef __cplusplus
}
#endif
#endif
