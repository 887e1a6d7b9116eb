/* SPDX-License-Identifier: MIT */
/* base/auto.h: release at the end of the scope, instead of a ladder of gotos.
 *
 *   TN_AUTO(tn_tensor) t = NULL;            // tn_tensor_unref(t) on every way out
 *   TN_TRY(tn_empty(…, &t));
 *   *out = TN_MOVE(t);                      // t is NULL now
 *
 * A type takes part by TNI_DEFINE_AUTO(type, function). */
#ifndef TNI_BASE_AUTO_H
#define TNI_BASE_AUTO_H

#define TN_AUTO(type) __attribute__((cleanup(tni_auto_##type))) type *
#define TN_MOVE(variable)                             \
    __extension__({                                   \
        __typeof__(variable) tni_moved_ = (variable); \
        (variable) = 0;                               \
        tni_moved_;                                   \
    })
#define TNI_DEFINE_AUTO(type, function)                                     \
    __attribute__((unused)) static inline void tni_auto_##type(type **slot) \
    {                                                                       \
        if (*slot)                                                          \
            function(*slot);                                                \
    }

#endif
