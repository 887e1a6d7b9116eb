/* SPDX-License-Identifier: MIT */
/* cpu/grid_sample.c: sampling planes at places that a grid says, and its gradients. Everything is
 * computed in float64, except for the place in elements, which is rounded as PyTorch rounds it. */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/grid_place.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "gen/shapes.h"

enum { BILINEAR, NEAREST, BICUBIC };

typedef struct job {
    const double *input, *grid, *grad;
    double *out, *grad_input, *grad_grid; /* those that are NULL are not wanted */
    int64_t channels, in[2], places;      /* in: height, width; places of the grid a sample */
    int mode, padding;
    bool align, single; /* single: the grid is float32 or less */
} job;

/* ---- places ---- */

/* From [-1, 1] to elements; @p slope gets the derivative. */
static double unnormalize(const job *j, double x, int64_t size, double *slope)
{
    return tni_grid_place(x, size, j->align, j->single, slope);
}

/* A place that may be outside, as the padding sees it. */
static double padded(const job *j, double x, int64_t size, double *slope)
{
    return tni_grid_padded(x, size, j->align, j->padding, slope);
}

static bool inside(const job *j, int64_t y, int64_t x)
{
    return y >= 0 && y < j->in[0] && x >= 0 && x < j->in[1];
}

/* ---- taps: elements with weights, and the derivatives of these ---- */

typedef struct tap {
    int64_t at;
    double weight, dy, dx;
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

static int bicubic_taps(const job *j, double y, double x, double slope_y, double slope_x, tap *taps)
{
    double wy[4], dy[4], wx[4], dx[4], unused = 1;
    double top = floor(y), left = floor(x);
    int n = 0;
    cubic(y - top, wy, dy);
    cubic(x - left, wx, dx);
    for (int r = 0; r < 4; r++)
        for (int c = 0; c < 4; c++) {
            double py = padded(j, top - 1 + r, j->in[0], &unused);
            double px = padded(j, left - 1 + c, j->in[1], &unused);
            int64_t iy = (int64_t)py, ix = (int64_t)px;
            if (inside(j, iy, ix))
                taps[n++] = (tap){iy * j->in[1] + ix, wy[r] * wx[c], dy[r] * wx[c] * slope_y,
                                  wy[r] * dx[c] * slope_x};
        }
    return n;
}

/* What the place number @p p of the grid is made of. */
static int taps_of(const job *j, const double *p, tap taps[16])
{
    double slope_x, slope_y;
    double x = unnormalize(j, p[0], j->in[1], &slope_x);
    double y = unnormalize(j, p[1], j->in[0], &slope_y);
    if (j->mode == BICUBIC) {
        bool finite = fabs(x) < 0x1p31 && fabs(y) < 0x1p31;
        return finite ? bicubic_taps(j, y, x, slope_y, slope_x, taps) : 0;
    }
    x = padded(j, x, j->in[1], &slope_x);
    y = padded(j, y, j->in[0], &slope_y);
    if (j->mode == NEAREST) {
        int64_t iy = (int64_t)nearbyint(y), ix = (int64_t)nearbyint(x);
        taps[0] = (tap){iy * j->in[1] + ix, 1, 0, 0};
        return inside(j, iy, ix);
    }
    int64_t top = (int64_t)floor(y), left = (int64_t)floor(x);
    double fy = y - (double)top, fx = x - (double)left;
    int n = 0;
    for (int r = 0; r < 2; r++)
        for (int c = 0; c < 2; c++)
            if (inside(j, top + r, left + c))
                taps[n++] =
                    (tap){(top + r) * j->in[1] + left + c, (r ? fy : 1 - fy) * (c ? fx : 1 - fx),
                          (r ? 1 : -1) * (c ? fx : 1 - fx) * slope_y,
                          (r ? fy : 1 - fy) * (c ? 1 : -1) * slope_x};
    return n;
}

/* ---- samples ---- */

static tn_status forward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t plane = j->in[0] * j->in[1];
    tap taps[16];
    for (int64_t s = begin; s < end; s++)
        for (int64_t p = 0; p < j->places; p++) {
            int n = taps_of(j, j->grid + (s * j->places + p) * 2, taps);
            for (int64_t c = 0; c < j->channels; c++) {
                const double *x = j->input + (s * j->channels + c) * plane;
                double sum = 0;
                for (int t = 0; t < n; t++)
                    sum += x[taps[t].at] * taps[t].weight;
                j->out[(s * j->channels + c) * j->places + p] = sum;
            }
        }
    return TN_OK;
}

static tn_status backward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t plane = j->in[0] * j->in[1];
    tap taps[16];
    for (int64_t s = begin; s < end; s++)
        for (int64_t p = 0; p < j->places; p++) {
            int n = taps_of(j, j->grid + (s * j->places + p) * 2, taps);
            double dy = 0, dx = 0;
            for (int64_t c = 0; c < j->channels; c++) {
                int64_t at = (s * j->channels + c) * plane;
                double g = j->grad[(s * j->channels + c) * j->places + p];
                for (int t = 0; t < n; t++) {
                    double x = j->input[at + taps[t].at];
                    if (j->grad_input)
                        j->grad_input[at + taps[t].at] += g * taps[t].weight;
                    dy += g * x * taps[t].dy;
                    dx += g * x * taps[t].dx;
                }
            }
            if (j->grad_grid) {
                j->grad_grid[(s * j->places + p) * 2] = dx;
                j->grad_grid[(s * j->places + p) * 2 + 1] = dy;
            }
        }
    return TN_OK;
}

static job job_of(const tn_tensor *input, const tn_tensor *grid, int64_t mode, int64_t padding,
                  bool align, bool single)
{
    return (job){.input = input->data,
                 .grid = grid->data,
                 .channels = input->sizes[1],
                 .in = {input->sizes[2], input->sizes[3]},
                 .places = grid->sizes[1] * grid->sizes[2],
                 .mode = (int)mode,
                 .padding = (int)padding,
                 .align = align,
                 .single = single};
}

tn_status tni_cpu_grid_sampler_2d(tn_tensor *input, tn_tensor *grid, int64_t interpolation_mode,
                                  int64_t padding_mode, bool align_corners, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(input, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(grid, TN_DTYPE_F64, &places));
    TN_TRY(tni_tensor_new(4, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &work));
    job j = job_of(x, places, interpolation_mode, padding_mode, align_corners,
                   grid->dtype != TN_DTYPE_F64);
    j.out = work->data;
    TN_TRY(tni_pool_for(input->sizes[0], 1, forward, &j));
    return tni_copy_cpu(out, work);
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

tn_status tni_kernel_grid_sampler_2d_backward(tn_call *call, tn_tensor *grad_output,
                                              tn_tensor *input, tn_tensor *grid,
                                              int64_t interpolation_mode, int64_t padding_mode,
                                              bool align_corners, const bool *output_mask,
                                              int64_t output_mask_n, tn_tensor **out0,
                                              tn_tensor **out1)
{
    tni_geometry g;
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) grad = NULL;
    TN_AUTO(tn_tensor) to_input = NULL;
    TN_AUTO(tn_tensor) to_grid = NULL;
    TN_AUTO(tn_tensor) input_work = NULL;
    TN_AUTO(tn_tensor) grid_work = NULL;
    (void)call;
    TN_CHECK(output_mask_n == 2, TN_INVALID, "output_mask must have 2 elements, but has %lld",
             (long long)output_mask_n);
    TN_TRY(tni_shape_grid_sampler_2d(&g, input, grid, interpolation_mode, padding_mode,
                                     align_corners));
    bool same = grad_output->ndim == 4 && grad_output->dtype == input->dtype;
    for (int d = 0; same && d < 4; d++)
        same = grad_output->sizes[d] == g.sizes[d];
    TN_CHECK(same, TN_INVALID, "grid_sampler_2d_backward: grad_output must look like the result");
    TN_TRY(gradient(input, output_mask[0], &to_input, &input_work));
    TN_TRY(gradient(grid, output_mask[1], &to_grid, &grid_work));
    if (!tni_is_meta(input) && grad_output->numel) {
        TN_TRY(tni_ready(input, TN_DTYPE_F64, &x));
        TN_TRY(tni_ready(grid, TN_DTYPE_F64, &places));
        TN_TRY(tni_ready(grad_output, TN_DTYPE_F64, &grad));
        job j = job_of(x, places, interpolation_mode, padding_mode, align_corners,
                       grid->dtype != TN_DTYPE_F64);
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
