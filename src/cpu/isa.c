/* SPDX-License-Identifier: MIT */
/* cpu/isa.c: which kernels this machine runs. */
#include <stdatomic.h>
#include "cpu/attention.h"
#include "cpu/factor_rows.h"
#include "cpu/fourier.h"
#include "cpu/halves.h"
#include "cpu/loops.h"
#include "cpu/optim.h"
#include "cpu/places.h"
#include "cpu/rows.h"
#include "cpu/taps.h"
#include "cpu/winograd.h"

#if defined(__x86_64__)
#    define TNI_HAS_VARIANTS 1
#else
#    define TNI_HAS_VARIANTS 0
#endif

#define X(isa)                                                                                     \
    static const tni_kernels kernels_##isa = {                                                     \
        {&tni_arith_##isa, &tni_maths_##isa, &tni_compare_##isa, &tni_special_##isa,               \
         &tni_special2_##isa, &tni_act_##isa, &tni_act2_##isa, &tni_simple_##isa,                  \
         &tni_simple2_##isa, &tni_bits_##isa, &tni_loss_##isa, &tni_rare, &tni_rare2, &tni_rare3}, \
        &tni_cast_##isa,                                                                           \
        tni_copy_##isa,                                                                            \
        &tni_reduce_##isa,                                                                         \
        &tni_random_##isa,                                                                         \
        &tni_gemm_##isa,                                                                           \
        &tni_halves_##isa,                                                                         \
        &tni_rows_##isa,                                                                           \
        &tni_taps_##isa,                                                                           \
        &tni_places_##isa,                                                                         \
        tni_winograd_##isa,                                                                        \
        &tni_attention_##isa,                                                                      \
        &tni_optim_##isa,                                                                          \
        &tni_fft_##isa,                                                                            \
        &tni_factor_rows_##isa,                                                                    \
    };
#if TNI_HAS_VARIANTS
TNI_KERN_LIST(X)
static const tni_kernels *const by_isa[] = {
    [TNI_ISA_BASE] = &kernels_base,
    [TNI_ISA_AVX2] = &kernels_avx2,
    [TNI_ISA_AVX512] = &kernels_avx512,
};
#else
X(base)
static const tni_kernels *const by_isa[] = {[TNI_ISA_BASE] = &kernels_base};
#endif
#undef X

/* NULL until first asked. Threads that ask at the same time store the same pointer. */
static _Atomic(const tni_kernels *) chosen;

static const tni_kernels *choose(tni_isa isa)
{
    size_t n = sizeof by_isa / sizeof by_isa[0];
    const tni_kernels *kernels = by_isa[(size_t)isa < n ? (size_t)isa : n - 1];
    atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    return kernels;
}

const tni_kernels *tni_cpu_kernels(void)
{
    const tni_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    return TNI_LIKELY(kernels != NULL) ? kernels : choose(tni_cpu_isa());
}

tni_isa tni_cpu_use(tni_isa isa)
{
    if (isa > tni_cpu_isa())
        isa = tni_cpu_isa();
    choose(isa);
    return isa;
}
