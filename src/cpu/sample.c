/* SPDX-License-Identifier: MIT */
/* cpu/sample.c: random numbers that are no uniform or normal reals: coins, whole numbers,
 * exponential numbers, permutations, choices by weight. As in random.c, element i of a tensor, in
 * row-major order, comes from fixed words of the generator's stream, so that the values depend
 * neither on threads nor on strides. Words are taken last, when nothing can fail any more. */
#include <math.h>
#include "base/pool.h"
#include "core/generator.h"
#include "cpu/move.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "iter/iter.h"
#include "iter/random.h"

#define GRAIN 16384 /* a multiple of PIECE */
#define PIECE 512

/* Fills elements [begin, begin + n), n <= PIECE, from words of the stream. */
typedef struct job job;
typedef void (*piece_fn)(const job *j, int64_t begin, int64_t n);
struct job {
    piece_fn piece;
    const tni_kernels *kernels;
    tn_generator_state state;
    tn_dtype dtype;
    char *data;
    uint64_t threshold;    /* bernoulli: of 2^32 */
    const double *p;       /* bernoulli with a probability for each element */
    tni_whole_range range; /* random_ */
    double scale;          /* exponential_ */
};

static tn_status run_pieces(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t i = begin; i < end; i += PIECE)
        j->piece(j, i, end - i < PIECE ? end - i : PIECE);
    return TN_OK;
}

static void *place(const job *j, int64_t i)
{
    return j->data + (size_t)i * tni_dtype_size(j->dtype);
}

/* Words of element @p begin and those after it, @p each (1 or 2) an element. */
static void words(const job *j, int64_t begin, int64_t n, int each, uint32_t *w)
{
    j->kernels->random->words(w, j->state.seed, j->state.counter + (uint64_t)(begin * each / 4),
                              (n * each + 3) / 4);
}

/* @p each: words an element. */
static tn_status fill(tn_tensor *self, job *j, int each, tn_generator *generator)
{
    TN_AUTO(tn_tensor) run = NULL;
    if (self->numel == 0)
        return TN_OK;
    TN_TRY(tni_work_of(self, (tn_dtype)self->dtype, &run));
    j->kernels = tni_cpu_kernels();
    j->dtype = (tn_dtype)self->dtype;
    j->data = run->data;
    j->state = tni_generator_take(generator, ((uint64_t)self->numel * (uint64_t)each + 3) / 4);
    TN_TRY(tni_pool_for(self->numel, GRAIN, run_pieces, j));
    return tni_work_back(self, run);
}

/* ---- bernoulli ---- */

static void coins(const job *j, int64_t begin, int64_t n)
{
    uint32_t w[PIECE];
    uint8_t flags[PIECE];
    words(j, begin, n, 1, w);
    if (j->p)
        for (int64_t i = 0; i < n; i++)
            flags[i] = (double)w[i] * 0x1p-32 < j->p[begin + i];
    else
        for (int64_t i = 0; i < n; i++)
            flags[i] = w[i] < j->threshold;
    tni_convert(j->kernels, j->dtype, place(j, begin), TN_DTYPE_BOOL, flags, n);
}

tn_status tni_kernel_bernoulli_float_(tn_call *call, tn_tensor *self, double p,
                                      tn_generator *generator)
{
    (void)call;
    TN_TRY(tni_check_bernoulli(self, p));
    if (tni_is_meta(self))
        return TN_OK;
    job j = {.piece = coins, .threshold = (uint64_t)(p * 0x1p32)};
    return fill(self, &j, 1, generator);
}

tn_status tni_kernel_bernoulli_tensor_(tn_call *call, tn_tensor *self, tn_tensor *p,
                                       tn_generator *generator)
{
    (void)call;
    TN_AUTO(tn_tensor) run = NULL;
    TN_TRY(tni_check_bernoulli_tensor(self, p));
    if (tni_is_meta(self))
        return TN_OK;
    TN_TRY(tni_tensor_new(self->ndim, self->sizes, NULL, TN_DTYPE_F64, TN_CPU, &run));
    TN_TRY(tni_copy_cpu(run, p));
    const double *x = run->data;
    for (int64_t i = 0; i < run->numel; i++)
        TN_CHECK(x[i] >= 0 && x[i] <= 1, TN_INVALID,
                 "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (p is %g)", x[i]);
    job j = {.piece = coins, .p = x};
    return fill(self, &j, 1, generator);
}

/* ---- whole numbers ---- */

static inline uint64_t below(uint64_t word, uint64_t range)
{
    return range ? (uint64_t)(((unsigned __int128)word * range) >> 64) : word;
}

static void wholes(const job *j, int64_t begin, int64_t n)
{
    uint32_t w[2 * PIECE];
    int64_t x[PIECE];
    words(j, begin, n, 2, w);
    for (int64_t i = 0; i < n; i++)
        x[i] = (int64_t)((uint64_t)j->range.from +
                         below((uint64_t)w[2 * i] << 32 | w[2 * i + 1], j->range.range));
    tni_convert(j->kernels, j->dtype, place(j, begin), TN_DTYPE_I64, x, n);
}

static tn_status fill_wholes(tn_tensor *self, tni_whole_range range, tn_generator *generator)
{
    if (tni_is_meta(self))
        return TN_OK;
    job j = {.piece = wholes, .range = range};
    return fill(self, &j, 2, generator);
}

tn_status tni_kernel_random_(tn_call *call, tn_tensor *self, tn_generator *generator)
{
    (void)call;
    tni_whole_range range;
    TN_TRY(tni_check_random_all(self, &range));
    return fill_wholes(self, range, generator);
}

tn_status tni_kernel_random_from_(tn_call *call, tn_tensor *self, int64_t from, tn_opt_int to,
                                  tn_generator *generator)
{
    (void)call;
    tni_whole_range range;
    TN_TRY(tni_check_random(self, from, to, &range));
    return fill_wholes(self, range, generator);
}

tn_status tni_kernel_random_to_(tn_call *call, tn_tensor *self, int64_t to, tn_generator *generator)
{
    return tni_kernel_random_from_(call, self, 0, tn_some_int(to), generator);
}

/* ---- exponential numbers ---- */

static void exponentials(const job *j, int64_t begin, int64_t n)
{
    uint32_t w[2 * PIECE];
    double x[PIECE], logs[PIECE];
    words(j, begin, n, 2, w);
    /* 1 - u is never 0. */
    for (int64_t i = 0; i < n; i++)
        x[i] = 1 - (double)(((uint64_t)w[2 * i] << 32 | w[2 * i + 1]) >> 11) * 0x1p-53;
    tni_loop_find(j->kernels, TNI_LOOP_LOG, TN_DTYPE_F64)(logs, (const void *const[]){x}, n, NULL);
    for (int64_t i = 0; i < n; i++)
        x[i] = 0 - logs[i] * j->scale;
    if (j->dtype == TN_DTYPE_F64 || j->dtype == TN_DTYPE_F32) {
        tni_convert(j->kernels, j->dtype, place(j, begin), TN_DTYPE_F64, x, n);
        return;
    }
    float single[PIECE];
    tni_convert(j->kernels, TN_DTYPE_F32, single, TN_DTYPE_F64, x, n);
    tni_convert(j->kernels, j->dtype, place(j, begin), TN_DTYPE_F32, single, n);
}

tn_status tni_kernel_exponential_(tn_call *call, tn_tensor *self, double lambd,
                                  tn_generator *generator)
{
    (void)call;
    TN_TRY(tni_check_exponential(self, lambd));
    if (tni_is_meta(self))
        return TN_OK;
    job j = {.piece = exponentials, .scale = 1 / lambd};
    return fill(self, &j, 2, generator);
}

/* ---- permutations ---- */

/* Swap each number with one at or after its place. */
static void shuffle(int64_t *x, int64_t n, tn_generator_state state)
{
    const tni_kernels *kernels = tni_cpu_kernels();
    uint32_t w[2 * PIECE];
    for (int64_t i = 0; i < n; i++) {
        if (i % PIECE == 0) {
            int64_t m = n - i < PIECE ? n - i : PIECE;
            kernels->random->words(w, state.seed, state.counter + (uint64_t)(i / 2), (m + 1) / 2);
        }
        int64_t k = i % PIECE;
        uint64_t word = (uint64_t)w[2 * k] << 32 | w[2 * k + 1];
        int64_t at = i + (int64_t)below(word, (uint64_t)(n - i)), moved = x[i];
        x[i] = x[at];
        x[at] = moved;
    }
}

static tn_status check_permutation(int64_t n, tn_dtype dtype)
{
    static const struct {
        tn_dtype dtype;
        int64_t most;
    } limits[] = {{TN_DTYPE_F16, 2049},
                  {TN_DTYPE_BF16, 257},
                  {TN_DTYPE_F32, 16777217},
                  {TN_DTYPE_F64, INT64_C(9007199254740993)}};
    TN_CHECK(n >= 0, TN_INVALID, "n must be non-negative, got%lld", (long long)n);
    TN_CHECK(dtype != TN_DTYPE_BOOL && !tn_dtype_is_complex(dtype), TN_UNSUPPORTED,
             "\"randperm\" not implemented for '%s'", tni_dtype_text(dtype));
    if (tn_dtype_is_integral(dtype, false))
        return tni_check_number(tn_int(n > 0 ? n - 1 : 0), dtype); /* the largest of them */
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        TN_CHECK(dtype != limits[i].dtype || n <= limits[i].most, TN_INVALID,
                 "n cannot be greater than %lld for %s type.", (long long)limits[i].most,
                 tni_dtype_text(dtype));
    return TN_OK;
}

tn_status tni_kernel_randperm_generator_out(tn_call *call, int64_t n, tn_generator *generator,
                                            tn_tensor *out)
{
    (void)call;
    TN_AUTO(tn_tensor) order = NULL;
    TN_TRY(check_permutation(n, (tn_dtype)out->dtype));
    TN_TRY(tni_check_internal_overlap(out));
    if (out->ndim != 1 || out->sizes[0] != n)
        TN_TRY(tni_tensor_resize(out, 1, &n));
    if (tni_is_meta(out) || n == 0)
        return TN_OK;
    TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_I64, TN_CPU, &order));
    int64_t *x = order->data;
    for (int64_t i = 0; i < n; i++)
        x[i] = i;
    shuffle(x, n, tni_generator_take(generator, ((uint64_t)n + 1) / 2));
    return tni_copy_cpu(out, order);
}

/* ---- choices by weight ---- */

typedef struct keyed {
    double key;
    int64_t index;
} keyed;

static bool before(keyed a, keyed b)
{
    return a.key < b.key || (a.key == b.key && a.index < b.index);
}

static void sift(keyed *heap, int64_t n, int64_t i)
{
    for (;;) {
        int64_t least = i;
        for (int64_t k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
            least = before(heap[k], heap[least]) ? k : least;
        if (least == i)
            return;
        keyed moved = heap[i];
        heap[i] = heap[least];
        heap[least] = moved;
        i = least;
    }
}

/* The first @p k of n numbered things in the order of their keys. */
static void first_few(keyed *heap, int64_t n, int64_t k, int64_t *out)
{
    for (int64_t i = n / 2 - 1; i >= 0; i--)
        sift(heap, n, i);
    for (int64_t i = 0; i < k; i++) {
        out[i] = heap[0].index;
        heap[0] = heap[--n];
        sift(heap, n, 0);
    }
}

static double uniform_at(const uint32_t *w)
{
    return (double)(((uint64_t)w[0] << 32 | w[1]) >> 11) * 0x1p-53;
}

/* Waiting times of n things with these rates: the first to come are a choice without repeats. */
static void draw_race(const double *p, int64_t n, int64_t k, const tni_kernels *kernels,
                      tn_generator_state state, uint64_t first, keyed *heap, int64_t *out)
{
    uint32_t w[2 * PIECE];
    double x[PIECE], logs[PIECE];
    for (int64_t i = 0; i < n; i += PIECE) {
        int64_t m = n - i < PIECE ? n - i : PIECE;
        kernels->random->words(w, state.seed, state.counter + first + (uint64_t)(i / 2),
                               (m + 1) / 2);
        for (int64_t r = 0; r < m; r++)
            x[r] = 1 - uniform_at(w + 2 * r);
        tni_loop_find(kernels, TNI_LOOP_LOG, TN_DTYPE_F64)(logs, (const void *const[]){x}, m, NULL);
        for (int64_t r = 0; r < m; r++)
            heap[i + r] = (keyed){p[i + r] > 0 ? -logs[r] / p[i + r] : (double)INFINITY, i + r};
    }
    first_few(heap, n, k, out);
}

/* Where each of k numbers of [0, total) falls among the running sums. */
static void draw_repeated(const double *sums, int64_t n, int64_t k, const tni_kernels *kernels,
                          tn_generator_state state, uint64_t first, int64_t *out)
{
    uint32_t w[2 * PIECE];
    for (int64_t i = 0; i < k; i++) {
        if (i % PIECE == 0) {
            int64_t m = k - i < PIECE ? k - i : PIECE;
            kernels->random->words(w, state.seed, state.counter + first + (uint64_t)(i / 2),
                                   (m + 1) / 2);
        }
        double at = uniform_at(w + 2 * (i % PIECE)) * sums[n - 1];
        int64_t low = 0, high = n - 1; /* the first sum that is greater */
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (sums[middle] > at)
                high = middle;
            else
                low = middle + 1;
        }
        /* Rounding may have carried `at` to the end: the last thing that has a weight is meant. */
        while (low > 0 && sums[low] == sums[low - 1])
            low--;
        out[i] = low;
    }
}

/* @p drawn: one after the other, which has words of its own for what it finds. */
static tn_status check_weights(const double *p, int64_t rows, int64_t n, bool drawn)
{
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            double x = p[r * n + i];
            TN_CHECK(!drawn || x >= 0, TN_INVALID,
                     "invalid multinomial distribution (encountering probability entry < 0)");
            TN_CHECK(!drawn || x < (double)INFINITY, TN_INVALID,
                     "invalid multinomial distribution (encountering probability entry = infinity "
                     "or NaN)");
            TN_CHECK(x >= 0 && x < (double)INFINITY, TN_INVALID,
                     "probability tensor contains either `inf`, `nan` or element < 0");
            sum += x;
        }
        TN_CHECK(sum > 0, TN_INVALID,
                 "invalid multinomial distribution (sum of probabilities <= 0)");
    }
    return TN_OK;
}

tn_status tni_cpu_multinomial(tn_tensor *self, int64_t num_samples, bool replacement,
                              tn_generator *generator, tn_tensor *out)
{
    int64_t n = self->sizes[self->ndim - 1], rows = self->ndim == 2 ? self->sizes[0] : 1;
    TN_AUTO(tn_tensor) weights = NULL;
    TN_AUTO(tn_tensor) chosen = NULL;
    TN_AUTO(tn_tensor) room = NULL;
    if (rows == 0)
        return TN_OK;
    TN_TRY(tni_tensor_new(self->ndim, self->sizes, NULL, TN_DTYPE_F64, TN_CPU, &weights));
    TN_TRY(tni_copy_cpu(weights, self));
    TN_TRY(tni_tensor_new(out->ndim, out->sizes, NULL, TN_DTYPE_I64, TN_CPU, &chosen));
    if (!replacement)
        TN_TRY(tni_tensor_new(1, &n, NULL, TN_DTYPE_C128, TN_CPU, &room)); /* n keyed */
    double *p = weights->data;
    TN_TRY(check_weights(p, rows, n, replacement && num_samples > 1));
    uint64_t blocks = ((uint64_t)(replacement ? num_samples : n) + 1) / 2;
    tn_generator_state state = tni_generator_take(generator, blocks * (uint64_t)rows);
    const tni_kernels *kernels = tni_cpu_kernels();
    for (int64_t r = 0; r < rows; r++) {
        int64_t *to = (int64_t *)chosen->data + r * num_samples;
        if (!replacement) {
            draw_race(p + r * n, n, num_samples, kernels, state, blocks * (uint64_t)r, room->data,
                      to);
            continue;
        }
        for (int64_t i = 1; i < n; i++)
            p[r * n + i] += p[r * n + i - 1];
        draw_repeated(p + r * n, n, num_samples, kernels, state, blocks * (uint64_t)r, to);
    }
    return tni_copy_cpu(out, chosen);
}
