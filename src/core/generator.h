/* SPDX-License-Identifier: MIT */
/* core/generator.h: taking random blocks from a generator. */
#ifndef TNI_CORE_GENERATOR_H
#define TNI_CORE_GENERATOR_H

#include "tenon/tensor.h"
#include "core/keys.h"

/* Take @p n_blocks Philox blocks: the seed, and the counter of the first of them. Nobody else gets
 * the same ones. @p g NULL: the default generator. */
tn_generator_state tni_generator_take(tn_generator *g, uint64_t n_blocks);
/* The counter alone, for callers that have the seed. */
uint64_t tni_generator_reserve(tn_generator *g, uint64_t n_blocks);
/* Keys that a generator adds to a call: none, for it is not bound to a device. */
tn_keyset tni_generator_keys(const tn_generator *g);

#endif
