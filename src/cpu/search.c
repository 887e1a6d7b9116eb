/* SPDX-License-Identifier: MIT */
/* cpu/search.c: searching in order, membership, counting. Numbers are compared as float64, or as
 * int64 where all of them are integers. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/ready.h"
#include "cpu/sort.h"
#include "gen/cpu.h"
#include "gen/kernels.h"

#define GRAIN 1024

static tn_dtype common_dtype(const tn_tensor *a, const tn_tensor *b)
{
    bool integral = tn_dtype_is_integral((tn_dtype)a->dtype, true) &&
                    tn_dtype_is_integral((tn_dtype)b->dtype, true);
    return integral ? TN_DTYPE_I64 : TN_DTYPE_F64;
}

/* ---- searchsorted ---- */

typedef struct search_job {
    const void *sequence, *values;
    const int64_t *sorter; /* NULL: the sequence is in order */
    int64_t *out;
    int64_t n, row;     /* numbers of a sequence; values that share one */
    bool shared, right; /* shared: one sequence for all rows */
} search_job;

/* The first place whose number is not less than v, or with `right` greater; numbers that compare as
 * neither count as less, which puts NaN last. */
#define SEARCH(T, NAME)                                                                         \
    static int64_t search_##NAME(const search_job *j, const T *x, const int64_t *at, T v)       \
    {                                                                                           \
        int64_t low = 0, high = j->n;                                                           \
        while (low < high) {                                                                    \
            int64_t middle = low + (high - low) / 2;                                            \
            T m = x[at ? at[middle] : middle];                                                  \
            if (j->right ? !(m > v) : !(m >= v))                                                \
                low = middle + 1;                                                               \
            else                                                                                \
                high = middle;                                                                  \
        }                                                                                       \
        return low;                                                                             \
    }                                                                                           \
    static tn_status some_##NAME(int64_t begin, int64_t end, void *arg)                         \
    {                                                                                           \
        const search_job *j = arg;                                                              \
        for (int64_t i = begin; i < end; i++) {                                                 \
            int64_t start = j->shared ? 0 : i / j->row * j->n;                                  \
            j->out[i] =                                                                         \
                search_##NAME(j, (const T *)j->sequence + start,                                \
                              j->sorter ? j->sorter + start : NULL, ((const T *)j->values)[i]); \
        }                                                                                       \
        return TN_OK;                                                                           \
    }
SEARCH(double, f64)
SEARCH(int64_t, i64)

tn_status tni_cpu_searchsorted(tn_tensor *sorted_sequence, tn_tensor *self, bool out_int32,
                               bool right, const char *side, tn_tensor *sorter, tn_tensor *out)
{
    tn_dtype dtype = common_dtype(sorted_sequence, self);
    TN_AUTO(tn_tensor) sequence = NULL;
    TN_AUTO(tn_tensor) values = NULL;
    TN_AUTO(tn_tensor) order = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    (void)out_int32;
    if (self->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(sorted_sequence, dtype, &sequence));
    TN_TRY(tni_ready(self, dtype, &values));
    TN_TRY(tni_ready(sorter, TN_DTYPE_I64, &order));
    TN_TRY(tni_tensor_new(self->ndim, self->sizes, NULL, TN_DTYPE_I64, TN_CPU, &places));
    search_job j = {.sequence = sequence->data,
                    .values = values->data,
                    .sorter = order ? order->data : NULL,
                    .out = places->data,
                    .n = sequence->sizes[sequence->ndim - 1],
                    .row = self->ndim ? self->sizes[self->ndim - 1] : 1,
                    .shared = sequence->ndim == 1,
                    .right = right || (side && strcmp(side, "right") == 0)};
    for (int64_t i = 0; order && i < order->numel; i++)
        TN_CHECK(j.sorter[i] >= 0 && j.sorter[i] < j.n, TN_INVALID,
                 "torch.searchsorted(): sorter index out of range");
    TN_TRY(tni_pool_for(self->numel, GRAIN, dtype == TN_DTYPE_F64 ? some_f64 : some_i64, &j));
    return tni_copy_cpu(out, places);
}

/* ---- isin ---- */

tn_status tni_cpu_isin(tn_tensor *elements, tn_tensor *test_elements, bool assume_unique,
                       bool invert, tn_tensor *out)
{
    tn_dtype dtype = common_dtype(elements, test_elements);
    int64_t n = test_elements->numel;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) set = NULL;
    TN_AUTO(tn_tensor) room = NULL;
    TN_AUTO(tn_tensor) found = NULL;
    (void)assume_unique;
    TN_TRY(tni_ready(elements, dtype, &x));
    TN_TRY(tni_ready(test_elements, dtype, &set));
    TN_TRY(tni_tensor_new(2, (const int64_t[]){n, 4}, NULL, TN_DTYPE_I64, TN_CPU, &room));
    TN_TRY(tni_tensor_new(x->ndim, x->sizes, NULL, TN_DTYPE_BOOL, TN_CPU, &found));
    tni_place *p = room->data;
    bool *yes = found->data;
    if (n) {
        tni_sort_keys(p, set->data, dtype, n, false);
        tni_sort_places(p, p + n, n);
    }
    for (int64_t i = 0; i < x->numel; i++) {
        tni_place one;
        int64_t low = 0, high = n;
        tni_sort_keys(&one, (const char *)x->data + (size_t)i * 8, dtype, 1, false);
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (p[middle].key < one.key)
                low = middle + 1;
            else
                high = middle;
        }
        bool nan = dtype == TN_DTYPE_F64 && isnan(((const double *)x->data)[i]);
        yes[i] = (low < n && p[low].key == one.key && !nan) != invert;
    }
    return x->numel ? tni_copy_cpu(out, found) : TN_OK;
}

/* ---- bincount ---- */

tn_status tni_kernel_bincount(tn_call *call, tn_tensor *self, tn_tensor *weights, int64_t minlength,
                              tn_tensor **out)
{
    (void)call;
    TN_CHECK(minlength >= 0, TN_INVALID, "minlength should be >= 0");
    TN_CHECK(tn_dtype_is_integral((tn_dtype)self->dtype, false), TN_UNSUPPORTED,
             "\"bincount_cpu\" not implemented for '%s'", tni_dtype_text((tn_dtype)self->dtype));
    TN_CHECK(self->ndim == 1, TN_INVALID,
             "bincount only supports 1-d non-negative integral inputs.");
    TN_CHECK(!weights || (weights->ndim == 1 && weights->sizes[0] == self->sizes[0]), TN_INVALID,
             "weights should be 1-d and have the same length as input");
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) w = NULL;
    TN_AUTO(tn_tensor) sums = NULL;
    TN_TRY(tni_ready(self, TN_DTYPE_I64, &x));
    const int64_t *n = x->data;
    int64_t length = minlength;
    for (int64_t i = 0; i < x->numel; i++) {
        TN_CHECK(n[i] >= 0, TN_INVALID, "bincount only supports 1-d non-negative integral inputs.");
        TN_CHECK(n[i] < INT64_MAX, TN_INVALID,
                 "maximum value of input overflowed, it should be < "
                 "9223372036854775807 but got 9223372036854775807");
        length = n[i] + 1 > length ? n[i] + 1 : length;
    }
    /* No elements give counts, whatever the weights are. */
    bool weigh = weights && x->numel > 0;
    TN_TRY(tni_ready(weigh ? weights : NULL, TN_DTYPE_F64, &w));
    TN_TRY(tni_tensor_new(1, &length, NULL, weigh ? TN_DTYPE_F64 : TN_DTYPE_I64, TN_CPU, &sums));
    if (length)
        memset(sums->data, 0, (size_t)length * 8);
    for (int64_t i = 0; i < x->numel; i++)
        if (weigh)
            ((double *)sums->data)[n[i]] += ((const double *)w->data)[i];
        else
            ((int64_t *)sums->data)[n[i]]++;
    tn_dtype dtype = weigh && weights->dtype == TN_DTYPE_F32 ? TN_DTYPE_F32 : (tn_dtype)sums->dtype;
    return tni_ready(sums, dtype, out);
}

/* ---- histc ---- */

/* Which of n parts of [from, to] has x; -1: none. Computed as the reference does, in the dtype of
 * the elements; where that is too small for what is on the way, by halves. */
#define PART(T, NAME)                                             \
    static int64_t part_##NAME(T x, T from, T to, int64_t n)      \
    {                                                             \
        if (!(x >= from && x <= to))                              \
            return -1;                                            \
        T at = (x - from) * (T)n / (to - from);                   \
        if (!isfinite((x - from) * (T)n) || !isfinite(to - from)) \
            at = (x / 2 - from / 2) / (to / 2 - from / 2) * (T)n; \
        return at >= (T)n ? n - 1 : (int64_t)at;                  \
    }
PART(double, f64)
PART(float, f32)

/* A range for elements that are all alike: one more to each side, or as far as the dtype has
 * numbers. */
static void range_around(double value, bool wide, double *from, double *to)
{
    *from = wide ? value - 1 : (double)(float)(value - 1);
    *to = wide ? value + 1 : (double)(float)(value + 1);
    if (*from == *to) {
        *from = wide ? nextafter(value, (double)-INFINITY)
                     : (double)nextafterf((float)value, -INFINITY);
        *to =
            wide ? nextafter(value, (double)INFINITY) : (double)nextafterf((float)value, INFINITY);
        *from = isinf(*from) ? value : *from;
        *to = isinf(*to) ? value : *to;
    }
}

tn_status tni_cpu_histc(tn_tensor *self, int64_t bins, tn_scalar min, tn_scalar max, tn_tensor *out)
{
    bool wide = self->dtype == TN_DTYPE_F64;
    double from = tn_scalar_to_double(min), to = tn_scalar_to_double(max);
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) counts = NULL;
    TN_TRY(tni_ready(self, wide ? TN_DTYPE_F64 : TN_DTYPE_F32, &x));
    TN_TRY(tni_tensor_new(1, &bins, NULL, TN_DTYPE_I64, TN_CPU, &counts));
    int64_t *c = counts->data;
    memset(c, 0, (size_t)bins * sizeof *c);
    if (from == to && x->numel) {
        from = (double)INFINITY;
        to = (double)-INFINITY;
        for (int64_t i = 0; i < x->numel; i++) {
            double v = wide ? ((const double *)x->data)[i] : (double)((const float *)x->data)[i];
            from = isnan(v) || v < from ? v : from;
            to = isnan(v) || v > to ? v : to;
        }
        TN_CHECK(isfinite(from) && isfinite(to), TN_INVALID,
                 "torch.histc: range of [%g, %g] is not finite", from, to);
    }
    if (from == to)
        range_around(from, wide, &from, &to);
    for (int64_t i = 0; i < x->numel; i++) {
        int64_t at = wide ? part_f64(((const double *)x->data)[i], from, to, bins)
                          : part_f32(((const float *)x->data)[i], (float)from, (float)to, bins);
        if (at >= 0)
            c[at]++;
    }
    return tni_copy_cpu(out, counts);
}
