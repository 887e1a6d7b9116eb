/* SPDX-License-Identifier: MIT */
/* autocast/cache.h: casts of parameters that this thread keeps. */
#ifndef TNI_AUTOCAST_CACHE_H
#define TNI_AUTOCAST_CACHE_H

#include "core/tensor.h"

/* The cast of @p t to @p dtype that is kept, a new reference; NULL when there is none that may be
 * used. */
TN_OWNED tn_tensor *tni_cast_cache_get(const tn_tensor *t, tn_dtype dtype);
/* Keep @p cast. When there is no memory it is not kept. */
void tni_cast_cache_put(tn_tensor *t, tn_tensor *cast);
void tni_cast_cache_clear(void);

#endif
