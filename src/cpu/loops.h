/* SPDX-License-Identifier: MIT */
/* cpu/loops.h: the tables of inner loops. Each family, a file of kern/, is compiled once for each
 * instruction set into tables of this form; isa.c picks the set when it is first asked. */
#ifndef TNI_CPU_LOOPS_H
#define TNI_CPU_LOOPS_H

#include "tenon/dtype.h"
#include "base/env.h"

/* One run: out[i] = f(in[0][i], in[1][i], …) for i < n. All are contiguous; out may be one of the
 * inputs, but not overlap them otherwise. @p ctx depends on the loop. */
typedef void (*tni_loop_fn)(void *out, const void *const *in, int64_t n, const void *ctx);
/* to[i] = from[i], converted. */
typedef void (*tni_cast_fn)(void *to, const void *from, int64_t n);
/* One element from n contiguous ones. */
typedef void (*tni_block_fn)(void *out, const void *x, int64_t n);
/* acc[j] = op(acc[j], x[j]) for j < n. */
typedef void (*tni_rows_fn)(void *acc, const void *x, int64_t n);

/* Note [Bool bytes]
 * A bool is a byte, and every byte but 0 is true: bytes come from files, from other libraries and
 * from views of integers, so that none is ruled out. Whoever reads one asks whether it is 0
 * (tni_truth), and never takes it for a number or compares two of them by their bits; a loop that
 * computes bools writes 0 or 1. What moves elements moves bytes as they are. A mask that is counted
 * and then followed must be read the same way both times: otherwise memory past the end is written.
 */
static inline uint8_t tni_truth(uint8_t byte)
{
    return byte != 0;
}

#define TNI_FAMILY_LOOPS 16
/* Tables have room for the dtypes below this number; no other has loops. See Note [Limited dtypes]
 * in iter/limited.c. */
#define TNI_LOOP_DTYPES 16
/* name, family, number in it. float16 and bfloat16 have no loops (but for WHERE): they are computed
 * in float32. */
#define TNI_LOOP_LIST(X)                                                                    \
    X(ADD, 0, 0)                                                                            \
    X(ADD_SCALED, 0, 1) /* a + s * b; ctx: s, of the dtype */                               \
    X(SUB, 0, 2)                                                                            \
    X(MUL, 0, 3)                                                                            \
    X(DIV, 0, 4)                                                                            \
    X(DIV_TRUNC, 0, 5)                                                                      \
    X(DIV_FLOOR, 0, 6)                                                                      \
    X(MAXIMUM, 0, 7)                                                                        \
    X(MINIMUM, 0, 8)                                                                        \
    X(NEG, 0, 9)                                                                            \
    X(ABS, 0, 10)                                                                           \
    X(RELU, 0, 11)                                                                          \
    X(RECIPROCAL, 0, 12)                                                                    \
    X(ADD_PAST, 0, 13) /* ADD, SUB, MUL and EXP past the caches, where the … */           \
    X(SUB_PAST, 0, 14) /* … instruction set has it: see tni_loop_past */                  \
    X(MUL_PAST, 0, 15)                                                                      \
    X(SQRT, 1, 0)                                                                           \
    X(RSQRT, 1, 1)                                                                          \
    X(EXP, 1, 2)                                                                            \
    X(LOG, 1, 3)                                                                            \
    X(SIGMOID, 1, 4)                                                                        \
    X(TANH, 1, 5)                                                                           \
    X(EXP_PAST, 1, 6)                                                                       \
    X(EQ, 2, 0) /* the result of this family is bool … */                                 \
    X(NE, 2, 1)                                                                             \
    X(LT, 2, 2)                                                                             \
    X(LE, 2, 3)                                                                             \
    X(GT, 2, 4)                                                                             \
    X(GE, 2, 5)                                                                             \
    X(LOGICAL_NOT, 2, 6)                                                                    \
    X(WHERE, 2, 7) /* … but for this one; in[0] is bool */                                \
    X(SIN, 3, 0)                                                                            \
    X(COS, 3, 1)                                                                            \
    X(TAN, 3, 2)                                                                            \
    X(ASIN, 3, 3)                                                                           \
    X(ACOS, 3, 4)                                                                           \
    X(ATAN, 3, 5)                                                                           \
    X(SINH, 3, 6)                                                                           \
    X(COSH, 3, 7)                                                                           \
    X(ASINH, 3, 8)                                                                          \
    X(ACOSH, 3, 9)                                                                          \
    X(ATANH, 3, 10)                                                                         \
    X(LOG1P, 3, 11)                                                                         \
    X(EXPM1, 3, 12)                                                                         \
    X(LOG2, 3, 13)                                                                          \
    X(LOG10, 3, 14)                                                                         \
    X(EXP2, 3, 15)                                                                          \
    X(POW, 4, 0)                                                                            \
    X(ERF, 4, 1)                                                                            \
    X(ERFC, 4, 2)                                                                           \
    X(ATAN2, 4, 3)                                                                          \
    X(HYPOT, 4, 4)                                                                          \
    X(LOGADDEXP, 4, 5)                                                                      \
    X(ERFINV, 4, 6)                                                                         \
    X(LGAMMA, 4, 7)                                                                         \
    X(LOGIT, 4, 8) /* ctx: a double, below 0: no clamp */                                   \
    X(XLOGY, 4, 9)                                                                          \
    X(GELU, 5, 0) /* _B: backward; in[0] is the gradient */                                 \
    X(GELU_TANH, 5, 1)                                                                      \
    X(GELU_B, 5, 2)                                                                         \
    X(GELU_TANH_B, 5, 3)                                                                    \
    X(SILU, 5, 4)                                                                           \
    X(SILU_B, 5, 5)                                                                         \
    X(MISH, 5, 6)                                                                           \
    X(MISH_B, 5, 7)                                                                         \
    X(LOG_SIGMOID, 5, 8)                                                                    \
    X(GLU, 5, 10)                                                                           \
    X(LOG_SIGMOID_B, 5, 9) /* ctx: TNI_LOOP_PARAMETERS doubles, here and below */           \
    X(GLU_GATE_B, 5, 11)                                                                    \
    X(ELU, 5, 12)                                                                           \
    X(ELU_B, 5, 13)                                                                         \
    X(SOFTPLUS, 5, 14)                                                                      \
    X(SOFTPLUS_B, 5, 15)                                                                    \
    X(EXP_MINUS_ABS, 6, 0)                                                                  \
    X(ELU_RESULT_B, 6, 1)                                                                   \
    X(BCE, 6, 2)                                                                            \
    X(BCE_B, 6, 3)                                                                          \
    X(SOFTSHRINK, 6, 4)                                                                     \
    X(HARDSHRINK, 6, 5)                                                                     \
    X(FLOOR, 7, 0) /* from here on the same for every instruction set */                    \
    X(CEIL, 7, 1)                                                                           \
    X(ROUND, 7, 2)                                                                          \
    X(TRUNC, 7, 3)                                                                          \
    X(FRAC, 7, 4)                                                                           \
    X(ROUND_DECIMALS, 7, 5)                                                                 \
    X(LEAKY, 7, 6)                                                                          \
    X(LEAKY_B, 7, 7)                                                                        \
    X(HARDSWISH, 7, 8)                                                                      \
    X(HARDSWISH_B, 7, 9)                                                                    \
    X(HARDSIGMOID, 7, 10)                                                                   \
    X(HARDSIGMOID_B, 7, 11)                                                                 \
    X(HARDTANH_B, 7, 12)                                                                    \
    X(PRELU, 7, 13)                                                                         \
    X(PRELU_B, 7, 14)                                                                       \
    X(PRELU_WEIGHT_B, 7, 15)                                                                \
    X(SIGMOID_B, 8, 0)                                                                      \
    X(TANH_B, 8, 1)                                                                         \
    X(LERP, 8, 2)                                                                           \
    X(ADDCMUL, 8, 3) /* a + s * b * c; ctx: s, of the dtype */                              \
    X(ADDCDIV, 8, 4) /* a + s * b / c; likewise */                                          \
    X(CLAMP, 8, 5)                                                                          \
    X(CLAMP_TO, 8, 6) /* ctx: doubles for floats, int64 for integers, likewise THRESHOLD */ \
    X(THRESHOLD, 8, 7)                                                                      \
    X(THRESHOLD_B, 8, 8)                                                                    \
    X(SIGN, 8, 9)                                                                           \
    X(FMAX, 8, 10)                                                                          \
    X(FMIN, 8, 11)                                                                          \
    X(NAN_TO_NUM, 8, 12)                                                                    \
    X(REMAINDER, 8, 13)                                                                     \
    X(FMOD, 8, 14)                                                                          \
    X(POW_WHOLE, 8, 15) /* integers */                                                      \
    X(BIT_AND, 9, 0)                                                                        \
    X(BIT_OR, 9, 1)                                                                         \
    X(BIT_XOR, 9, 2)                                                                        \
    X(BIT_NOT, 9, 3)                                                                        \
    X(SHIFT_LEFT, 9, 4)                                                                     \
    X(SHIFT_RIGHT, 9, 5)                                                                    \
    X(LOGICAL_AND, 9, 6) /* bool results, to ISINF */                                       \
    X(LOGICAL_OR, 9, 7)                                                                     \
    X(LOGICAL_XOR, 9, 8)                                                                    \
    X(ISNAN, 9, 9)                                                                          \
    X(ISINF, 9, 10)                                                                         \
    X(SQUARE, 9, 11)                                                                        \
    X(CUBE, 9, 12)                                                                          \
    X(INVERSE_SQUARE, 9, 13)                                                                \
    X(CONJ, 9, 14)                                                                          \
    X(MSE, 10, 0)                                                                           \
    X(MSE_B, 10, 1)                                                                         \
    X(SMOOTH_L1, 10, 2)                                                                     \
    X(SMOOTH_L1_B, 10, 3)                                                                   \
    X(HUBER, 10, 4)                                                                         \
    X(HUBER_B, 10, 5)                                                                       \
    X(DIGAMMA, 11, 1)                                                                       \
    X(I0, 11, 3)                                                                            \
    X(I0E, 11, 4)                                                                           \
    X(I1, 11, 5)                                                                            \
    X(I1E, 11, 6)                                                                           \
    X(NDTRI, 11, 7)                                                                         \
    X(LOG_NDTR, 11, 8)                                                                      \
    X(ERFCX, 11, 9)                                                                         \
    X(SINC, 11, 10)                                                                         \
    X(ENTR, 11, 11)                                                                         \
    X(J0, 11, 12)                                                                           \
    X(J1, 11, 13)                                                                           \
    X(Y0, 11, 14)                                                                           \
    X(Y1, 11, 15)                                                                           \
    X(K0, 12, 0)                                                                            \
    X(K1, 12, 1)                                                                            \
    X(K0E, 12, 2)                                                                           \
    X(K1E, 12, 3)                                                                           \
    X(SPHERICAL_J0, 12, 4)                                                                  \
    X(AIRY_AI, 12, 5)                                                                       \
    X(POLYGAMMA, 12, 6)                                                                     \
    X(LOGADDEXP2, 12, 7)                                                                    \
    X(XLOG1PY, 12, 9)                                                                       \
    X(ZETA, 12, 10)                                                                         \
    X(IGAMMA, 12, 11)                                                                       \
    X(IGAMMAC, 12, 12)                                                                      \
    X(GAMMA_SLOPE, 12, 13)                                                                  \
    X(DIRICHLET_SLOPE, 12, 14)                                                              \
    X(SIGNBIT, 12, 15)                                                                      \
    X(CHEBYSHEV_T, 13, 0)                                                                   \
    X(CHEBYSHEV_U, 13, 1)                                                                   \
    X(CHEBYSHEV_V, 13, 2)                                                                   \
    X(CHEBYSHEV_W, 13, 3)                                                                   \
    X(HERMITE, 13, 4)                                                                       \
    X(HERMITE_E, 13, 5)                                                                     \
    X(LAGUERRE, 13, 6)                                                                      \
    X(LEGENDRE, 13, 7)                                                                      \
    X(COPYSIGN, 13, 8)                                                                      \
    X(NEXTAFTER, 13, 9)                                                                     \
    X(HEAVISIDE, 13, 10)                                                                    \
    X(GCD, 13, 11)                                                                          \
    X(LCM, 13, 12)

#define TNI_NUM_FAMILIES    14
#define TNI_LOOP_PARAMETERS 4

typedef enum tni_loop {
#define X(name, family, number) TNI_LOOP_##name = (family)*TNI_FAMILY_LOOPS + (number),
    TNI_LOOP_LIST(X)
#undef X
} tni_loop;

/* Note [Sums]
 * A sum is the same number whatever the instruction set and the number of threads: elements are
 * taken in blocks of TNI_SUM_BLOCK; within one, lane l of the lanes in 128 bytes adds elements l, l
 * + lanes, …, and the lanes are added up in halves; the sums of blocks are added in order, in
 * double precision. Each chunk of blocks that threads share out is such a sum, and so is the sum of
 * the chunks; how long a chunk is depends on the number of elements alone. */
#define TNI_SUM_BLOCK 1024

typedef tni_loop_fn tni_loop_table[TNI_FAMILY_LOOPS][TNI_LOOP_DTYPES];
typedef tni_cast_fn tni_cast_table[TNI_LOOP_DTYPES][TNI_LOOP_DTYPES]; /* from, to */

/* Reductions by dtype. Sums: i64, f32, f64, c64, c128. Extremes: any but halves and complex. */
typedef struct tni_reduce_table {
    tni_block_fn sum_block[TNI_LOOP_DTYPES]; /* n <= TNI_SUM_BLOCK */
    tni_rows_fn sum_rows[TNI_LOOP_DTYPES];
    tni_block_fn max_block[TNI_LOOP_DTYPES], min_block[TNI_LOOP_DTYPES]; /* n > 0 */
    tni_rows_fn max_rows[TNI_LOOP_DTYPES], min_rows[TNI_LOOP_DTYPES];
    /* Of float32 and float64: sums of squares, of sizes, of what is not NaN. */
    tni_block_fn square_block[TNI_LOOP_DTYPES], size_block[TNI_LOOP_DTYPES],
        known_block[TNI_LOOP_DTYPES];
    tni_rows_fn square_rows[TNI_LOOP_DTYPES], size_rows[TNI_LOOP_DTYPES],
        known_rows[TNI_LOOP_DTYPES];
    /* The sum of x * y of up to TNI_SUM_BLOCK elements, of float32 and float64. */
    void (*dot_block[TNI_LOOP_DTYPES])(void *out, const void *x, const void *y, int64_t n);
    /* Products: of float32 and float64 in double precision, of i64. */
    tni_block_fn product_block[TNI_LOOP_DTYPES];
    tni_rows_fn product_rows[TNI_LOOP_DTYPES];
} tni_reduce_table;

/* How random numbers are scaled: uniform ones are low + range * u below `high`, and `below` is the
 * number before it; normal ones have mean `low` and standard deviation `range`. */
typedef struct tni_random_scale {
    double low, range;
    int digits; /* random bits of a uniform float32 */
    float high_f32, below_f32;
    double high_f64, below_f64;
} tni_random_scale;

typedef struct tni_random_table {
    /* Blocks first, first + 1, … of the stream of a seed, four words each. */
    void (*words)(uint32_t *out, uint64_t seed, uint64_t first, int64_t n_blocks);
    /* One word makes a float32, two a float64. Normal numbers come in pairs: n is even. */
    void (*uniform_f32)(float *out, const uint32_t *w, int64_t n, const tni_random_scale *s);
    void (*uniform_f64)(double *out, const uint32_t *w, int64_t n, const tni_random_scale *s);
    void (*normal_f32)(float *out, const uint32_t *w, int64_t n, const tni_random_scale *s);
    void (*normal_f64)(double *out, const uint32_t *w, int64_t n, const tni_random_scale *s);
} tni_random_table;

typedef struct tni_kernels {
    const tni_loop_table *loops[TNI_NUM_FAMILIES];
    /* Not every pair has one: see tni_convert. */
    const tni_cast_table *casts;
    /* Bytes, in the widest registers: the C library's copies take a fifth longer on Zen 4. */
    void (*copy)(void *to, const void *from, size_t nbytes);
    const tni_reduce_table *reduce;
    const tni_random_table *random;
    const struct tni_gemm_table *gemm;           /* cpu/gemm_kernels.h */
    const struct tni_halves_table *halves;       /* cpu/halves.h */
    const struct tni_rows_table *rows;           /* cpu/rows.h */
    const struct tni_taps_table *taps;           /* cpu/taps.h */
    const struct tni_places_table *places;       /* cpu/places.h */
    const struct tni_winograd_loops *winograd;   /* by stride, cpu/winograd.h */
    const struct tni_attention_table *attention; /* cpu/attention.h */
    const struct tni_optim_table *optim;         /* cpu/optim.h */
    const struct tni_fft_table *fft;             /* cpu/fourier.h */
    const struct tni_factor_rows *factor_rows;   /* cpu/factor_rows.h */
} tni_kernels;

/* The kernels of this machine, or of the set that tni_cpu_use chose. */
const tni_kernels *tni_cpu_kernels(void);
/* For tests: from now on these kernels, as far as the machine has them. Returns what is used then.
 */
tni_isa tni_cpu_use(tni_isa isa);

/* NULL: there is no such loop. */
static inline tni_loop_fn tni_loop_find(const tni_kernels *k, tni_loop loop, tn_dtype dtype)
{
    if (TNI_UNLIKELY(dtype >= TNI_LOOP_DTYPES))
        return NULL;
    return (*k->loops[loop / TNI_FAMILY_LOOPS])[loop % TNI_FAMILY_LOOPS][dtype];
}

/* The loop that does the same and stores past the caches, straight from the registers, or NULL:
 * the result must lie on a multiple of its itemsize, and is in memory when the loop returns. */
static inline tni_loop_fn tni_loop_past(const tni_kernels *k, tni_loop loop, tn_dtype dtype)
{
    switch (loop) {
    case TNI_LOOP_ADD:
        return tni_loop_find(k, TNI_LOOP_ADD_PAST, dtype);
    case TNI_LOOP_SUB:
        return tni_loop_find(k, TNI_LOOP_SUB_PAST, dtype);
    case TNI_LOOP_MUL:
        return tni_loop_find(k, TNI_LOOP_MUL_PAST, dtype);
    case TNI_LOOP_EXP:
        return tni_loop_find(k, TNI_LOOP_EXP_PAST, dtype);
    default:
        return NULL;
    }
}

/* Names of what a file of kern/ defines, one set for each instruction set: TNI_KERN is base, avx2
 * or avx512, given by the build. */
#define TNI_KERN_LIST(X) X(base) X(avx2) X(avx512)
#define X(isa)                                                                        \
    extern const tni_loop_table tni_arith_##isa, tni_maths_##isa, tni_compare_##isa;  \
    extern const tni_loop_table tni_special_##isa, tni_special2_##isa, tni_act_##isa, \
        tni_act2_##isa;                                                               \
    extern const tni_loop_table tni_simple_##isa, tni_simple2_##isa, tni_bits_##isa,  \
        tni_loss_##isa;                                                               \
    extern const tni_cast_table tni_cast_##isa;                                       \
    void tni_copy_##isa(void *to, const void *from, size_t nbytes);                   \
    extern const tni_random_table tni_random_##isa;                                   \
    extern const tni_reduce_table tni_reduce_##isa;                                   \
    extern const struct tni_gemm_table tni_gemm_##isa;
TNI_KERN_LIST(X)
#undef X
/* compiled once */
extern const tni_loop_table tni_rare, tni_rare2, tni_rare3;
#define TNI_KERN_PASTE2(name, isa) name##_##isa
#define TNI_KERN_PASTE(name, isa)  TNI_KERN_PASTE2(name, isa)
#define TNI_KERN_NAME(name)        TNI_KERN_PASTE(name, TNI_KERN)

#endif
