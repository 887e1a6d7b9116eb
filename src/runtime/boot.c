/* SPDX-License-Identifier: MIT */
/* runtime/boot.c: the built-in operators and fallbacks, registered when the library is first used.
 *
 * The top of the layers: it alone knows every kernel. There are no static constructors; the
 * generated list names each kernel, so a missing one is a link error. */
#include "autograd/fallback.h"
#include "dispatch/builtin.h"
#include "dispatch/registry.h"
#include "fake/gate.h"
#include "fake/kernel.h"
#include "iter/limited.h"
#include "meta/fallback.h"
#include "names/kernel.h"

extern const tni_builtin_kernel tni_builtin_kernels[];
extern const size_t tni_builtin_kernel_count;

#define GATED_FALLBACK(key, fn, gate)                               \
    {                                                               \
        TN_KEY_##key, fn, #fn, "src/runtime/boot.c", __LINE__, gate \
    }
#define FALLBACK(key, fn) GATED_FALLBACK(key, fn, NULL)

static const tni_builtin_fallback fallbacks[] = {
    FALLBACK(META, tni_meta_fallback),
    FALLBACK(QUANTIZED_CPU, tni_limited_kernel),
    FALLBACK(QUANTIZED_META, tni_limited_kernel),
    FALLBACK(BACKEND_SELECT, tni_fallthrough_fn),
    GATED_FALLBACK(FAKE, tni_fake_kernel, &tni_fake_gate),
    FALLBACK(NAMED, tni_named_kernel),
    FALLBACK(ADINPLACE_OR_VIEW, tni_fallthrough_fn),
    FALLBACK(AUTOGRAD_OTHER, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_CPU, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_CUDA, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_XLA, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_MPS, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_XPU, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_HPU, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_LAZY, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_MTIA, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_MAIA, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_PRIVATE1, tni_autograd_fallback),
    FALLBACK(AUTOGRAD_META, tni_autograd_fallback),
    FALLBACK(AUTOCAST_CPU, tni_fallthrough_fn),
    FALLBACK(AUTOCAST_CUDA, tni_fallthrough_fn),
};

tn_status tni_boot(void)
{
    return tni_register_builtin(&(tni_builtins){
        .kernels = tni_builtin_kernels,
        .n_kernels = tni_builtin_kernel_count,
        .fallbacks = fallbacks,
        .n_fallbacks = sizeof fallbacks / sizeof fallbacks[0],
        .composite_guard = tni_autograd_composite,
    });
}
