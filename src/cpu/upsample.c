/* SPDX-License-Identifier: MIT */
/* cpu/upsample.c: upsampling and its gradients.
 *
 * Along each dimension a place of the result is a sum of one (nearest), two (linear) or four
 * (cubic) places of the input, with weights that a table has. A line of the result is first the sum
 * of some lines of the input, then the sum along it; the gradient goes the same way back. With
 * channels last an element of a line is all channels of a place. */
#include <math.h>
#include <string.h>
#include "base/alloc.h"
#include "base/pool.h"
#include "cpu/places.h"
#include "cpu/ready.h"
#include "cpu/taps.h"
#include "gen/cpu.h"
#include "shape/upsample.h"

#define GRAIN 32768
#define MOST  4 /* places that one place is made of */

/* Of one dimension: place o of the result is the sum over t of weight[o * taps + t] times place
 * from[o * taps + t] of the input. */
typedef struct table {
    int taps;
    int64_t *from;
    double *weight;
    float *narrow; /* the same */
} table;

typedef struct upsample_job {
    tni_upsample u;
    table t[3];
    tn_dtype dtype;
    int64_t itemsize;
    int64_t inner; /* elements of a place: channels, when they are last */
    int64_t planes;
    int bits[3]; /* of bytes: those of a weight behind the point */
    const char *x;
    char *out;
} upsample_job;

/* ---- tables ---- */

/* The reference computes places in float, and in double for double and bytes. */
static bool is_wide(const upsample_job *j)
{
    return (j->dtype == TN_DTYPE_F64 || j->dtype == TN_DTYPE_U8) &&
           j->u.mode >= TNI_UPSAMPLE_LINEAR;
}

static double step_of(const upsample_job *j, int i)
{
    const tni_upsample *u = &j->u;
    bool wide = is_wide(j);
    double in = (double)u->in[i], out = (double)u->out[i], step;
    if (u->align) {
        if (u->out[i] < 2)
            return 0;
        return wide ? (in - 1) / (out - 1) : (double)((float)(in - 1) / (float)(out - 1));
    }
    if (u->scale[i] > 0)
        step = 1 / u->scale[i];
    else
        return wide ? in / out : (double)((float)in / (float)out);
    return wide ? step : (double)(float)step;
}

static double place_of(const upsample_job *j, double step, int64_t o)
{
    bool wide = is_wide(j);
    double from;
    if (j->u.mode == TNI_UPSAMPLE_NEAREST || j->u.align)
        return wide ? step * (double)o : (double)((float)step * (float)o);
    if (wide)
        from = step * ((double)o + 0.5);
    else
        from = (double)((float)step * ((float)o + 0.5f));
    if (j->u.mode == TNI_UPSAMPLE_NEAREST_EXACT)
        return from;
    from = wide ? from - 0.5 : (double)((float)from - 0.5f);
    return from < 0 && j->u.mode != TNI_UPSAMPLE_CUBIC ? 0 : from;
}

static int64_t within(int64_t p, int64_t n)
{
    return p < 0 ? 0 : p < n ? p : n - 1;
}

/* Weights of four neighbours for a place @p t after the second: a cubic with a = -0.75. */
static void cubic_weights(double t, double *w)
{
    const double a = -0.75;
    double x = t + 1;
    w[0] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    x = 1 - t;
    w[2] = ((a + 2) * x - (a + 3)) * x * x + 1;
    x = 2 - t;
    w[3] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* By the sizes alone, whatever the scales say, as the reference: a dimension that linear upsampling
 * leaves as long as it was is the same (and takes nothing from neighbours, be they NaN); for
 * nearest upsampling in two dimensions also one that is doubled. Returns how many places of the
 * result are one place of the input then, otherwise 0. */
static int64_t repeats(const upsample_job *j, int i)
{
    const tni_upsample *u = &j->u;
    bool flat = u->mode == TNI_UPSAMPLE_NEAREST && u->spatial == 2;
    if (u->out[i] == u->in[i] && (flat || u->mode == TNI_UPSAMPLE_LINEAR))
        return 1;
    return flat && u->out[i] == 2 * u->in[i] ? 2 : 0;
}

static void fill_table(const upsample_job *j, int i, const table *t)
{
    int64_t n = j->u.in[i], each = repeats(j, i);
    for (int64_t o = 0; each && o < j->u.out[i]; o++) {
        t->from[o] = o / each;
        t->weight[o] = 1;
    }
    if (each)
        return;
    double step = step_of(j, i);
    for (int64_t o = 0; o < j->u.out[i]; o++) {
        double place = place_of(j, step, o), least = floor(place);
        int64_t p = least < (double)n ? (int64_t)least : n - 1, *from = t->from + o * t->taps;
        double *weight = t->weight + o * t->taps;
        if (t->taps == 1) {
            from[0] = within(p, n);
            weight[0] = 1;
        } else if (t->taps == 2) {
            p = within(p, n);
            double after = place - (double)p;
            after = after < 0 ? 0 : after > 1 ? 1 : after;
            from[0] = p;
            from[1] = p + (p < n - 1);
            weight[0] = 1 - after;
            weight[1] = after;
        } else {
            for (int k = 0; k < 4; k++)
                from[k] = within(p - 1 + k, n);
            double after = place - (double)p;
            cubic_weights(after < 0 ? 0 : after > 1 ? 1 : after, weight);
        }
    }
}

static tn_status make_tables(upsample_job *j)
{
    static const int taps[] = {1, 1, 2, 4};
    int64_t all = 0;
    for (int i = 0; i < 3; i++) {
        bool one = repeats(j, i) || (j->u.in[i] == 1 && j->u.out[i] == 1);
        j->t[i].taps = one ? 1 : taps[j->u.mode];
        all += j->u.out[i] * j->t[i].taps;
    }
    char *room = tni_alloc((size_t)all * (sizeof(int64_t) + sizeof(double) + sizeof(float)));
    TN_CHECK(room, TN_NOMEM, "cannot allocate memory for the places of upsampling");
    int64_t *from = (int64_t *)(void *)room;
    double *weight = (double *)(void *)(room + (size_t)all * sizeof(int64_t));
    float *narrow = (float *)(void *)(weight + all);
    for (int i = 0; i < 3; i++) {
        j->t[i].from = from;
        j->t[i].weight = weight;
        j->t[i].narrow = narrow;
        fill_table(j, i, &j->t[i]);
        int64_t n = j->u.out[i] * j->t[i].taps;
        for (int64_t k = 0; k < n; k++)
            narrow[k] = (float)weight[k];
        from += n;
        weight += n;
        narrow += n;
    }
    return TN_OK;
}

/* ---- one line ---- */

/* Which lines of the input line (o0, o1) of the result is made of: how many, and for each its
 * beginning, in elements, and its weight. */
static int lines_of(const upsample_job *j, int64_t o0, int64_t o1, int64_t *from, double *weight)
{
    const table *a = &j->t[0], *b = &j->t[1];
    int n = 0;
    for (int p = 0; p < a->taps; p++) {
        for (int q = 0; q < b->taps; q++, n++) {
            int64_t line = a->from[o0 * a->taps + p] * j->u.in[1] + b->from[o1 * b->taps + q];
            from[n] = line * j->u.in[2] * j->inner;
            weight[n] = a->weight[o0 * a->taps + p] * b->weight[o1 * b->taps + q];
        }
    }
    return n;
}

static void move_line(const upsample_job *j, char *out, const char *line)
{
    const int64_t *from = j->t[2].from;
    int64_t n = j->u.out[2];
    size_t bytes = (size_t)(j->inner * j->itemsize);
    switch (bytes) {
    case 4: /* several channels of bytes may begin anywhere */
        for (int64_t o = 0; o < n; o++)
            memcpy(out + o * 4, line + from[o] * 4, 4);
        break;
    case 2:
        for (int64_t o = 0; o < n; o++)
            memcpy(out + o * 2, line + from[o] * 2, 2);
        break;
    default:
        for (int64_t o = 0; o < n; o++, out += bytes)
            memcpy(out, line + (size_t)from[o] * bytes, bytes);
    }
}

#define WEIGHTS_f32(t) ((t)->narrow)
#define WEIGHTS_f64(t) ((t)->weight)
/* Both layouts add in the same order, without fused steps: they give the same bits. */
#define LINES(T, S)                                                                              \
    static void line_##S(const upsample_job *j, T *out, const T *x, int64_t o0, int64_t o1,      \
                         T *side)                                                                \
    {                                                                                            \
        const table *t = &j->t[2];                                                               \
        const T zero = 0;                                                                        \
        int64_t from[MOST * MOST];                                                               \
        double wide[MOST * MOST];                                                                \
        T weight[MOST * MOST];                                                                   \
        int n = lines_of(j, o0, o1, from, wide);                                                 \
        for (int i = 0; i < n; i++)                                                              \
            weight[i] = (T)wide[i];                                                              \
        tni_cpu_kernels()->taps->S.sum(side, x, from, weight, n, j->u.in[2] * j->inner, &zero);  \
        const T *w = WEIGHTS_##S(t);                                                             \
        const int64_t *at = t->from;                                                             \
        if (t->taps != 2 || j->inner > 1) {                                                      \
            tni_cpu_kernels()->places->S.mix(out, side, at, w, t->taps, j->u.out[2], j->inner);  \
            return;                                                                              \
        }                                                                                        \
        for (int64_t o = 0; o < j->u.out[2]; o++)                                                \
            out[o] = w[2 * o] * side[at[2 * o]] + w[2 * o + 1] * side[at[2 * o + 1]];            \
    }                                                                                            \
    /* x is the gradient of a line of the result, out of a plane of the input. */                \
    static void line_back_##S(const upsample_job *j, T *out, const T *x, int64_t o0, int64_t o1, \
                              T *side)                                                           \
    {                                                                                            \
        const table *t = &j->t[2];                                                               \
        int64_t from[MOST * MOST], width = j->u.in[2] * j->inner;                                \
        double weight[MOST * MOST];                                                              \
        int n = lines_of(j, o0, o1, from, weight);                                               \
        if (t->taps == 1 && n == 1 && j->inner == 1) { /* nearest: sums of neighbours */         \
            for (int64_t o = 0; o < j->u.out[2];) {                                              \
                int64_t place = t->from[o];                                                      \
                T sum = x[o++];                                                                  \
                while (o < j->u.out[2] && t->from[o] == place)                                   \
                    sum += x[o++];                                                               \
                out[from[0] + place] += sum;                                                     \
            }                                                                                    \
            return;                                                                              \
        }                                                                                        \
        const tni_mix_loops *loops = &tni_cpu_kernels()->places->S;                              \
        memset(side, 0, (size_t)width * sizeof(T));                                              \
        loops->spread(side, x, t->from, WEIGHTS_##S(t), t->taps, j->u.out[2], j->inner);         \
        for (int i = 0; i < n; i++)                                                              \
            loops->add_scaled(out + from[i], side, weight[i], width);                            \
    }
LINES(float, f32)
LINES(double, f64)

/* ---- planes ---- */

static tn_status forward_lines(int64_t begin, int64_t end, void *arg)
{
    const upsample_job *j = arg;
    const tni_upsample *u = &j->u;
    int64_t lines = u->out[0] * u->out[1], width = u->in[2] * j->inner;
    int64_t in = u->in[0] * u->in[1] * width, out = u->out[2] * j->inner;
    bool moves = u->mode <= TNI_UPSAMPLE_NEAREST_EXACT;
    size_t nbytes = moves ? 0 : (size_t)(width * j->itemsize);
    char *side = tni_block_alloc(nbytes);
    TN_CHECK(side, TN_NOMEM, "cannot allocate %zu bytes for a line of upsampling", nbytes);
    for (int64_t i = begin; i < end; i++) {
        const char *x = j->x + i / lines * in * j->itemsize;
        char *to = j->out + i * out * j->itemsize;
        int64_t o0 = i % lines / u->out[1], o1 = i % u->out[1];
        if (moves)
            move_line(j, to,
                      x + (j->t[0].from[o0] * u->in[1] + j->t[1].from[o1]) * width * j->itemsize);
        else if (j->dtype == TN_DTYPE_F64)
            line_f64(j, (double *)(void *)to, (const double *)(const void *)x, o0, o1,
                     (double *)(void *)side);
        else
            line_f32(j, (float *)(void *)to, (const float *)(const void *)x, o0, o1,
                     (float *)(void *)side);
    }
    tni_block_free(side, nbytes);
    return TN_OK;
}

static tn_status backward_planes(int64_t begin, int64_t end, void *arg)
{
    const upsample_job *j = arg;
    const tni_upsample *u = &j->u;
    int64_t width = u->in[2] * j->inner, in = u->in[0] * u->in[1] * width;
    int64_t line = u->out[2] * j->inner, out = u->out[0] * u->out[1] * line;
    size_t nbytes = (size_t)(width * j->itemsize);
    char *side = tni_block_alloc(nbytes);
    TN_CHECK(side, TN_NOMEM, "cannot allocate %zu bytes for a line of upsampling", nbytes);
    for (int64_t i = begin; i < end; i++) {
        char *to = j->out + i * in * j->itemsize;
        memset(to, 0, (size_t)(in * j->itemsize));
        for (int64_t o = 0; o < u->out[0] * u->out[1]; o++) {
            const char *x = j->x + (i * out + o * line) * j->itemsize;
            if (j->dtype == TN_DTYPE_F64)
                line_back_f64(j, (double *)(void *)to, (const double *)(const void *)x,
                              o / u->out[1], o % u->out[1], (double *)(void *)side);
            else
                line_back_f32(j, (float *)(void *)to, (const float *)(const void *)x, o / u->out[1],
                              o % u->out[1], (float *)(void *)side);
        }
    }
    tni_block_free(side, nbytes);
    return TN_OK;
}

/* ---- bytes ---- */

/* Weights of bytes are whole numbers, of as many bits as 16 hold; returns how many of them stand
 * behind the point. Places beyond an end are that end, once. */
static int whole_weights(const table *t, int64_t outs)
{
    double most = 0;
    int64_t n = outs * t->taps;
    int bits = 0;
    for (int64_t i = n - 1; i >= 0; i--)
        if (i % t->taps && t->from[i] == t->from[i - 1]) {
            t->weight[i - 1] += t->weight[i];
            t->weight[i] = 0;
        }
    for (int64_t i = 0; i < n; i++)
        most = t->weight[i] > most ? t->weight[i] : most;
    while (bits < 22 && (int)(0.5 + most * (double)(1 << (bits + 1))) < 1 << 15)
        bits++;
    for (int64_t i = 0; i < n; i++)
        t->narrow[i] = (float)round(t->weight[i] * (double)(1 << bits));
    return bits;
}

/* The sum for place @p o of the bytes at @p x, @p step apart. */
static uint8_t byte_at(const table *t, int bits, const uint8_t *x, int64_t step, int64_t o)
{
    int64_t sum = (int64_t)1 << (bits - 1);
    for (int k = 0; k < t->taps; k++)
        sum += (int64_t)t->narrow[o * t->taps + k] * x[t->from[o * t->taps + k] * step];
    sum >>= bits;
    return sum < 0 ? 0 : sum > 255 ? 255 : (uint8_t)sum;
}

/* Along lines, rounded, then across them. */
static tn_status byte_planes(int64_t begin, int64_t end, void *arg)
{
    const upsample_job *j = arg;
    const tni_upsample *u = &j->u;
    int64_t high = u->in[1], wide = u->in[2], out = u->out[2];
    size_t nbytes = (size_t)(high * out);
    uint8_t *side = tni_block_alloc(nbytes);
    TN_CHECK(side, TN_NOMEM, "cannot allocate %zu bytes for a plane of upsampling", nbytes);
    for (int64_t i = begin; i < end; i++) {
        const uint8_t *x = (const uint8_t *)j->x + i * high * wide;
        uint8_t *to = (uint8_t *)j->out + i * u->out[1] * out;
        for (int64_t p = 0; p < high * out; p++)
            side[p] = byte_at(&j->t[2], j->bits[2], x + p / out * wide, 1, p % out);
        for (int64_t p = 0; p < u->out[1] * out; p++)
            to[p] = byte_at(&j->t[1], j->bits[1], side + p % out, out, p / out);
    }
    tni_block_free(side, nbytes);
    return TN_OK;
}

/* ---- operators ---- */

/* Channels last in memory: the same memory as planes of longer elements. */
static tn_status turned(const tn_tensor *t, bool last, tn_tensor **out)
{
    int64_t sizes[5], strides[5];
    int n = t->ndim;
    for (int d = 0; d < n; d++) {
        int from = !last || d == 0 ? d : d == n - 1 ? 1 : d + 1;
        sizes[d] = t->sizes[from];
        strides[d] = t->strides[from];
    }
    return tni_tensor_alias(t, n, sizes, strides, t->offset, out);
}

/* From @p x, of the result's sizes when @p back, to @p out. */
static tn_status run(const tni_upsample_args *a, tn_tensor *x, tn_tensor *out, bool back)
{
    upsample_job j;
    const tn_tensor *whole = back ? out : x;
    TN_TRY(tni_upsample_check(a, whole->sizes, whole->ndim, &j.u));
    if (out->numel == 0)
        return TN_OK;
    bool moves = !back && a->mode <= TNI_UPSAMPLE_NEAREST_EXACT;
    bool half = x->dtype == TN_DTYPE_F16 || x->dtype == TN_DTYPE_BF16;
    bool bytes = !moves && x->dtype == TN_DTYPE_U8;
    bool last = !bytes && tni_suggest_format(out) != TN_FORMAT_CONTIGUOUS;
    j.dtype = half && !moves ? TN_DTYPE_F32 : (tn_dtype)x->dtype;
    j.itemsize = (int64_t)tn_dtype_size(j.dtype);
    j.inner = last ? j.u.channels : 1;
    j.planes = last ? j.u.batch : j.u.batch * j.u.channels;
    TN_AUTO(tn_tensor) x_turned = NULL;
    TN_AUTO(tn_tensor) ready = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    TN_TRY(turned(x, last, &x_turned));
    TN_TRY(tni_ready(x_turned, j.dtype, &ready));
    TN_TRY(turned(out, last, &to));
    TN_TRY(tni_work_of(to, j.dtype, &work));
    j.x = ready->data;
    j.out = work->data;
    TN_TRY(make_tables(&j));
    for (int i = 1; bytes && i < 3; i++)
        j.bits[i] = whole_weights(&j.t[i], j.u.out[i]);
    int64_t lines = j.u.out[0] * j.u.out[1], line = j.u.out[2] * j.inner;
    bool planes = back || bytes;
    int64_t n = planes ? j.planes : j.planes * lines, each = planes ? lines * line : line;
    tn_status status = tni_pool_for(n, each < GRAIN ? GRAIN / each : 1,
                                    back    ? backward_planes
                                    : bytes ? byte_planes
                                            : forward_lines,
                                    &j);
    tni_free(j.t[0].from);
    TN_TRY(status);
    return tni_work_back(to, work);
}

#define ARGS(n, mode_, align_, ...)                                                              \
    {                                                                                            \
        .mode = TNI_UPSAMPLE_##mode_, .spatial = n, .align = align_, .output_size = output_size, \
        .output_size_n = output_size_n, .scale = {__VA_ARGS__},                                  \
    }
#define UPSAMPLE(name_, n, mode_, ALIGN, align_, SCALES, ...)                               \
    tn_status tni_cpu_upsample_##name_(tn_tensor *self, const int64_t *output_size,         \
                                       int64_t output_size_n, ALIGN SCALES, tn_tensor *out) \
    {                                                                                       \
        tni_upsample_args a = ARGS(n, mode_, align_, __VA_ARGS__);                          \
        return run(&a, self, out, false);                                                   \
    }                                                                                       \
    tn_status tni_cpu_upsample_##name_##_backward(                                          \
        tn_tensor *grad_output, const int64_t *output_size, int64_t output_size_n,          \
        const int64_t *input_size, int64_t input_size_n, ALIGN SCALES, tn_tensor *out)      \
    {                                                                                       \
        tni_upsample_args a = ARGS(n, mode_, align_, __VA_ARGS__);                          \
        (void)input_size;                                                                   \
        (void)input_size_n;                                                                 \
        return run(&a, grad_output, out, true);                                             \
    }

#define ONE     tn_opt_float scales
#define TWO     tn_opt_float scales_h, tn_opt_float scales_w
#define THREE   tn_opt_float scales_d, tn_opt_float scales_h, tn_opt_float scales_w
#define CORNERS bool align_corners,

UPSAMPLE(nearest1d, 1, NEAREST, , false, ONE, scales)
UPSAMPLE(nearest2d, 2, NEAREST, , false, TWO, scales_h, scales_w)
UPSAMPLE(nearest3d, 3, NEAREST, , false, THREE, scales_d, scales_h, scales_w)
UPSAMPLE(nearest_exact1d, 1, NEAREST_EXACT, , false, ONE, scales)
UPSAMPLE(nearest_exact2d, 2, NEAREST_EXACT, , false, TWO, scales_h, scales_w)
UPSAMPLE(nearest_exact3d, 3, NEAREST_EXACT, , false, THREE, scales_d, scales_h, scales_w)
UPSAMPLE(linear1d, 1, LINEAR, CORNERS, align_corners, ONE, scales)
UPSAMPLE(bilinear2d, 2, LINEAR, CORNERS, align_corners, TWO, scales_h, scales_w)
UPSAMPLE(trilinear3d, 3, LINEAR, CORNERS, align_corners, THREE, scales_d, scales_h, scales_w)
UPSAMPLE(bicubic2d, 2, CUBIC, CORNERS, align_corners, TWO, scales_h, scales_w)
