/* SPDX-License-Identifier: MIT */
/* cpu/grid_sample.c: sampling planes and volumes at places that a grid says, and its gradients.
 * Weights and gradients are computed in float64, except for the place in elements, which is rounded
 * as PyTorch rounds it; samples are added up in float32, or float64.
 *
 * Places are taken BLOCK at a time: what they are made of is found once, then each channel is gone
 * through, so that what is read lies together. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/grid_place.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "gen/shapes.h"
#include "shape/index.h"

enum { LINEAR, NEAREST, BICUBIC };

#define BLOCK 64 /* places */
#define TAPS  16 /* of a place, at most */
#define GRAIN 16384

typedef struct job {
    const void *input; /* of samples: float32 or float64; of gradients: float64 */
    const double *grid, *grad;
    void *out;
    double *grad_input, *grad_grid;  /* those that are NULL are not wanted */
    int dims;                        /* 2 or 3 */
    int64_t channels, in[3], places; /* in: (depth,) height, width; places of the grid a sample */
    int64_t numel;                   /* elements of one channel */
    int mode, padding;
    bool align, single; /* single: the grid is float32 or less */
} job;

/* ---- taps: elements with weights, and the derivatives of these ---- */

typedef struct tap {
    int64_t at;
    double weight, slope[3]; /* in the order of job.in */
} tap;

static void cubic(double t, double w[4], double d[4])
{
    const double a = -0.75;
    for (int i = 0; i < 4; i++) {
        double x = fabs(t - (double)(i - 1)), sign = t < (double)(i - 1) ? -1 : 1;
        if (x <= 1) {
            w[i] = ((a + 2) * x - (a + 3)) * x * x + 1;
            d[i] = sign * (3 * (a + 2) * x - 2 * (a + 3)) * x;
        } else {
            w[i] = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
            d[i] = sign * ((3 * a * x - 10 * a) * x + 8 * a);
        }
    }
}

static int bicubic_taps(const job *j, const double place[2], const double slope[2], tap *taps)
{
    double wy[4], dy[4], wx[4], dx[4], unused = 1;
    double top = floor(place[0]), left = floor(place[1]);
    int n = 0;
    cubic(place[0] - top, wy, dy);
    cubic(place[1] - left, wx, dx);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            double py = tni_grid_padded(top - 1 + r, j->in[0], j->align, j->padding, true, &unused);
            double px =
                tni_grid_padded(left - 1 + c, j->in[1], j->align, j->padding, true, &unused);
            int64_t iy = (int64_t)py, ix = (int64_t)px;
            if (iy >= 0 && iy < j->in[0] && ix >= 0 && ix < j->in[1])
                taps[n++] = (tap){iy * j->in[1] + ix,
                                  wy[r] * wx[c],
                                  {dy[r] * wx[c] * slope[0], wy[r] * dx[c] * slope[1]}};
        }
    return n;
}

/* The corners around a place, or the nearest of them. */
static inline __attribute__((always_inline)) int corner_taps(const job *j, const int dims,
                                                             const bool slopes, const double *place,
                                                             const double *slope, tap *taps)
{
    bool nearest = j->mode == NEAREST;
    int64_t low[3];
    double share[3];
    int n = 0;
    for (int d = 0; d < dims; d++) {
        low[d] = (int64_t)(nearest ? nearbyint(place[d]) : place[d]);
        low[d] -= !nearest && (double)low[d] > place[d];
        share[d] = nearest ? 0 : place[d] - (double)low[d];
    }
    for (int corner = 0; corner < (nearest ? 1 : 1 << dims); corner++) {
        tap t = {0, 1, {0}};
        bool inside = true;
        double w[3], sign[3];
        for (int d = 0; d < dims; d++) {
            bool up = corner >> (dims - 1 - d) & 1;
            inside = inside && low[d] + up >= 0 && low[d] + up < j->in[d];
            t.at = t.at * j->in[d] + low[d] + up;
            w[d] = up ? share[d] : 1 - share[d];
            sign[d] = nearest ? 0 : up ? 1 : -1;
            t.weight *= w[d];
        }
        if (!inside)
            continue;
        for (int d = 0; d < dims && slopes; d++) {
            t.slope[d] = sign[d] * slope[d];
            for (int other = 0; other < dims; other++)
                t.slope[d] *= other == d ? 1 : w[other];
        }
        taps[n++] = t;
    }
    return n;
}

/* Whether a place in a plane is at infinity, or NaN, where that makes the sample NaN, as in
 * PyTorch: where its weights are computed from the place itself, and not from one inside. */
static inline bool nowhere(const job *j, const double *place)
{
    bool own = j->mode == BICUBIC || (j->mode == LINEAR && j->padding == TNI_GRID_ZEROS);
    return j->dims == 2 && own && !(isfinite(place[0]) && isfinite(place[1]));
}

/* What the place @p p of the grid, width first, is made of; the derivatives of it when
 * @p slopes. */
static inline __attribute__((always_inline)) int taps_of(const job *j, const bool slopes,
                                                         const double *p, tap taps[TAPS])
{
    double place[3], slope[3];
    for (int d = 0; d < j->dims; d++)
        place[d] = tni_grid_place(p[j->dims - 1 - d], j->in[d], j->align, j->single, &slope[d]);
    if (nowhere(j, place)) {
        taps[0] = (tap){0, NAN, {NAN, NAN}};
        return 1;
    }
    if (j->mode == BICUBIC)
        return bicubic_taps(j, place, slope, taps);
    for (int d = 0; d < j->dims; d++)
        place[d] =
            tni_grid_padded(place[d], j->in[d], j->align, j->padding, j->dims == 2, &slope[d]);
    return j->dims == 2 ? corner_taps(j, 2, slopes, place, slope, taps)
                        : corner_taps(j, 3, slopes, place, slope, taps);
}

/* Most places: in a plane, between four elements of it. The same taps as above, without the way
 * there; false for all others. */
static inline bool square_of(const job *j, const double *p, int64_t at[4], double weight[4])
{
    double place[2], share[2], unused;
    int64_t low[2];
    if (j->dims != 2 || j->mode != LINEAR)
        return false;
    for (int d = 0; d < 2; d++) {
        place[d] = tni_grid_place(p[1 - d], j->in[d], j->align, j->single, &unused);
        place[d] = tni_grid_padded(place[d], j->in[d], j->align, j->padding, true, &unused);
        low[d] = (int64_t)place[d];
        share[d] = place[d] - (double)low[d];
    }
    if (!(place[0] >= 0 && low[0] + 1 < j->in[0] && place[1] >= 0 && low[1] + 1 < j->in[1]))
        return false;
    for (int i = 0; i < 4; i++) {
        at[i] = (low[0] + i / 2) * j->in[1] + low[1] + i % 2;
        weight[i] = (i / 2 ? share[0] : 1 - share[0]) * (i % 2 ? share[1] : 1 - share[1]);
    }
    return true;
}

/* ---- samples ---- */

static int64_t blocks_of(const job *j)
{
    return (j->places + BLOCK - 1) / BLOCK;
}

/* The places of block @p i of all samples: of sample *s, from *first on. */
static int places_of(const job *j, int64_t i, int64_t *s, int64_t *first)
{
    *s = i / blocks_of(j);
    *first = i % blocks_of(j) * BLOCK;
    return (int)(j->places - *first < BLOCK ? j->places - *first : BLOCK);
}

/* Places [0, n) of N channels: what taps say is read once for all of them. */
#define CHANNELS(T, N)                                                           \
    for (; c + (N) <= j->channels; c += (N)) {                                   \
        const T *x = (const T *)j->input + (s * j->channels + c) * j->numel;     \
        T *out = (T *)j->out + (s * j->channels + c) * j->places + first;        \
        for (int b = 0; b < n; b++) {                                            \
            const int64_t *from = at[b];                                         \
            const T *w = weight[b];                                              \
            if (taps[b] == 4) {                                                  \
                const T *p0 = x + from[0], *p1 = x + from[1], *p2 = x + from[2], \
                        *p3 = x + from[3];                                       \
                T *to = out + b;                                                 \
                for (int k = 0; k < (N); k++) {                                  \
                    *to = *p0 * w[0] + *p1 * w[1] + *p2 * w[2] + *p3 * w[3];     \
                    p0 += numel;                                                 \
                    p1 += numel;                                                 \
                    p2 += numel;                                                 \
                    p3 += numel;                                                 \
                    to += places;                                                \
                }                                                                \
                continue;                                                        \
            }                                                                    \
            T sum[N] = {0};                                                      \
            for (int t = 0; t < taps[b]; t++)                                    \
                for (int k = 0; k < (N); k++)                                    \
                    sum[k] += x[k * numel + from[t]] * w[t];                     \
            for (int k = 0; k < (N); k++)                                        \
                out[k * places + b] = sum[k];                                    \
        }                                                                        \
    }

#define FORWARD(T, NAME)                                                        \
    static tn_status forward_##NAME(int64_t begin, int64_t end, void *arg)      \
    {                                                                           \
        const job *j = arg;                                                     \
        const int64_t numel = j->numel, places = j->places;                     \
        int64_t at[BLOCK][TAPS], s, first;                                      \
        T weight[BLOCK][TAPS];                                                  \
        int taps[BLOCK];                                                        \
        for (int64_t i = begin; i < end; i++) {                                 \
            int n = places_of(j, i, &s, &first);                                \
            for (int b = 0; b < n; b++) {                                       \
                const double *p = j->grid + (s * places + first + b) * j->dims; \
                double square[4];                                               \
                taps[b] = 4;                                                    \
                if (square_of(j, p, at[b], square)) {                           \
                    for (int t = 0; t < 4; t++)                                 \
                        weight[b][t] = (T)square[t];                            \
                    continue;                                                   \
                }                                                               \
                tap of[TAPS];                                                   \
                taps[b] = taps_of(j, false, p, of);                             \
                for (int t = 0; t < taps[b]; t++) {                             \
                    at[b][t] = of[t].at;                                        \
                    weight[b][t] = (T)of[t].weight;                             \
                }                                                               \
            }                                                                   \
            int64_t c = 0;                                                      \
            CHANNELS(T, 4)                                                      \
            CHANNELS(T, 1)                                                      \
        }                                                                       \
        return TN_OK;                                                           \
    }
FORWARD(float, f32)
FORWARD(double, f64)

/* One block of a sample's places. */
static void backward_block(const job *j, int64_t i)
{
    tap taps[BLOCK][TAPS];
    int taps_n[BLOCK];
    double sums[BLOCK][3] = {{0}};
    int64_t s, first;
    int n = places_of(j, i, &s, &first);
    for (int b = 0; b < n; b++)
        taps_n[b] = taps_of(j, true, j->grid + (s * j->places + first + b) * j->dims, taps[b]);
    for (int64_t c = 0; c < j->channels; c++) {
        int64_t plane = (s * j->channels + c) * j->numel;
        const double *x = (const double *)j->input + plane;
        const double *grad = j->grad + (s * j->channels + c) * j->places + first;
        double *to = j->grad_input ? j->grad_input + plane : NULL;
        for (int b = 0; b < n; b++)
            for (int t = 0; t < taps_n[b]; t++) {
                const tap *of = &taps[b][t];
                if (to && !isnan(of->weight)) /* what is nowhere has no element */
                    to[of->at] += grad[b] * of->weight;
                for (int d = 0; d < j->dims && j->grad_grid && j->mode != NEAREST; d++)
                    sums[b][d] += grad[b] * x[of->at] * of->slope[d];
            }
    }
    for (int b = 0; b < n && j->grad_grid; b++)
        for (int d = 0; d < j->dims; d++)
            j->grad_grid[(s * j->places + first + b) * j->dims + j->dims - 1 - d] = sums[b][d];
}

/* Samples, for places of one sample may share elements. */
static tn_status backward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    for (int64_t i = begin * blocks_of(j); i < end * blocks_of(j); i++)
        backward_block(j, i);
    return TN_OK;
}

static job job_of(const tn_tensor *input, const tn_tensor *grid, int64_t mode, int64_t padding,
                  bool align, bool single)
{
    job j = {.input = input->data,
             .grid = grid->data,
             .dims = input->ndim - 2,
             .channels = input->sizes[1],
             .places = 1,
             .numel = 1,
             .mode = (int)mode,
             .padding = (int)padding,
             .align = align,
             .single = single};
    for (int d = 0; d < j.dims; d++) {
        j.in[d] = input->sizes[2 + d];
        j.numel *= j.in[d];
        j.places *= grid->sizes[1 + d];
    }
    return j;
}

static tn_status sample(tn_tensor *input, tn_tensor *grid, int64_t mode, int64_t padding,
                        bool align, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    if (out->numel == 0)
        return TN_OK;
    bool wide = input->dtype == TN_DTYPE_F64;
    tn_dtype dtype = wide ? TN_DTYPE_F64 : TN_DTYPE_F32;
    TN_TRY(tni_ready(input, dtype, &x));
    TN_TRY(tni_ready(grid, TN_DTYPE_F64, &places));
    TN_TRY(tni_work_of(out, dtype, &work));
    job j = job_of(x, places, mode, padding, align, grid->dtype != TN_DTYPE_F64);
    j.out = work->data;
    TN_TRY(tni_pool_for(input->sizes[0] * blocks_of(&j), GRAIN / (BLOCK * (j.channels + 8)) + 1,
                        wide ? forward_f64 : forward_f32, &j));
    return tni_work_back(out, work);
}

/* A result like @p like, and the float64 tensor of zeros that it is computed in. */
static tn_status gradient(const tn_tensor *like, bool wanted, tn_tensor **out, tn_tensor **work)
{
    if (!wanted)
        return TN_OK;
    TN_TRY(tni_tensor_new(like->ndim, like->sizes, NULL, (tn_dtype)like->dtype, like->device, out));
    if (tni_is_meta(like))
        return TN_OK;
    TN_TRY(tni_tensor_new(like->ndim, like->sizes, NULL, TN_DTYPE_F64, TN_CPU, work));
    if (like->numel)
        memset((*work)->data, 0, (size_t)like->numel * sizeof(double));
    return TN_OK;
}

/* @p g: what the forward gives. */
static tn_status sample_backward(const char *name, const tni_geometry *g, tn_tensor *grad_output,
                                 tn_tensor *input, tn_tensor *grid, int64_t mode, int64_t padding,
                                 bool align, const bool *output_mask, tn_tensor **out0,
                                 tn_tensor **out1)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) grad = NULL;
    TN_AUTO(tn_tensor) to_input = NULL;
    TN_AUTO(tn_tensor) to_grid = NULL;
    TN_AUTO(tn_tensor) input_work = NULL;
    TN_AUTO(tn_tensor) grid_work = NULL;
    TN_TRY(tni_same_device(input, grad_output));
    bool same = grad_output->ndim == g->ndim && grad_output->dtype == input->dtype;
    for (int d = 0; same && d < g->ndim; d++)
        same = grad_output->sizes[d] == g->sizes[d];
    TN_CHECK(same, TN_INVALID, "%s: grad_output must look like the result", name);
    TN_TRY(gradient(input, output_mask[0], &to_input, &input_work));
    TN_TRY(gradient(grid, output_mask[1], &to_grid, &grid_work));
    if (!tni_is_meta(input) && grad_output->numel) {
        TN_TRY(tni_ready(input, TN_DTYPE_F64, &x));
        TN_TRY(tni_ready(grid, TN_DTYPE_F64, &places));
        TN_TRY(tni_ready(grad_output, TN_DTYPE_F64, &grad));
        job j = job_of(x, places, mode, padding, align, grid->dtype != TN_DTYPE_F64);
        j.grad = grad->data;
        j.grad_input = input_work ? input_work->data : NULL;
        j.grad_grid = grid_work ? grid_work->data : NULL;
        TN_TRY(tni_pool_for(input->sizes[0], 1, backward, &j));
    }
    if (input_work && input->numel)
        TN_TRY(tni_copy_cpu(to_input, input_work));
    if (grid_work && grid->numel)
        TN_TRY(tni_copy_cpu(to_grid, grid_work));
    *out0 = TN_MOVE(to_input);
    *out1 = TN_MOVE(to_grid);
    return TN_OK;
}

#define SAMPLER(n)                                                                                 \
    tn_status tni_cpu_grid_sampler_##n##d(tn_tensor *input, tn_tensor *grid,                       \
                                          int64_t interpolation_mode, int64_t padding_mode,        \
                                          bool align_corners, tn_tensor *out)                      \
    {                                                                                              \
        return sample(input, grid, interpolation_mode, padding_mode, align_corners, out);          \
    }                                                                                              \
    tn_status tni_kernel_grid_sampler_##n##d_backward(                                             \
        tn_call *call, tn_tensor *grad_output, tn_tensor *input, tn_tensor *grid,                  \
        int64_t interpolation_mode, int64_t padding_mode, bool align_corners,                      \
        const bool *output_mask, int64_t output_mask_n, tn_tensor **out0, tn_tensor **out1)        \
    {                                                                                              \
        tni_geometry g;                                                                            \
        (void)call;                                                                                \
        TN_TRY(tni_check_mask_length(output_mask_n, 2));                                           \
        TN_TRY(tni_shape_grid_sampler_##n##d(&g, input, grid, interpolation_mode, padding_mode,    \
                                             align_corners));                                      \
        return sample_backward("grid_sampler_" #n "d_backward", &g, grad_output, input, grid,      \
                               interpolation_mode, padding_mode, align_corners, output_mask, out0, \
                               out1);                                                              \
    }

SAMPLER(2)
SAMPLER(3)
