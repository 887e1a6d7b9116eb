/* SPDX-License-Identifier: MIT */
/* cpu/grid_sample3d.c: sampling volumes at places that a grid says, and its gradients. Everything
 * is computed in float64, except for the place in elements (grid_place.h). */
#include <math.h>
#include <string.h>
#include "base/pool.h"
#include "cpu/grid_place.h"
#include "cpu/ready.h"
#include "gen/cpu.h"
#include "gen/kernels.h"
#include "gen/shapes.h"

typedef struct job {
    const double *input, *grid, *grad;
    double *out, *grad_input, *grad_grid; /* those that are NULL are not wanted */
    int64_t channels, in[3], places; /* in: depth, height, width; places of the grid a sample */
    int padding;
    bool nearest, align, single; /* single: the grid is float32 or less */
} job;

/* An element with its weight, and the derivatives of this by depth, height and width. */
typedef struct tap {
    int64_t at;
    double weight, slope[3];
} tap;

/* What the place @p p of the grid, width first, is made of. */
static int taps_of(const job *j, const double *p, tap taps[8])
{
    double share[3], slope[3];
    int64_t low[3];
    for (int d = 0; d < 3; d++) {
        double x = tni_grid_place(p[2 - d], j->in[d], j->align, j->single, &slope[d]);
        x = tni_grid_padded(x, j->in[d], j->align, j->padding, &slope[d]);
        low[d] = (int64_t)(j->nearest ? nearbyint(x) : floor(x));
        share[d] = j->nearest ? 0 : x - (double)low[d];
    }
    int n = 0;
    for (int corner = 0; corner < (j->nearest ? 1 : 8); corner++) {
        tap t = {0, 1, {0, 0, 0}};
        bool inside = true;
        double w[3];
        for (int d = 0; d < 3; d++) {
            int up = corner >> (2 - d) & 1;
            int64_t i = low[d] + up;
            inside = inside && i >= 0 && i < j->in[d];
            t.at = t.at * j->in[d] + i;
            w[d] = up ? share[d] : 1 - share[d];
        }
        if (!inside)
            continue;
        t.weight = w[0] * w[1] * w[2];
        for (int d = 0; d < 3 && !j->nearest; d++)
            t.slope[d] =
                (corner >> (2 - d) & 1 ? 1 : -1) * w[(d + 1) % 3] * w[(d + 2) % 3] * slope[d];
        taps[n++] = t;
    }
    return n;
}

static tn_status forward(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t volume = j->in[0] * j->in[1] * j->in[2];
    tap taps[8];
    for (int64_t s = begin; s < end; s++)
        for (int64_t p = 0; p < j->places; p++) {
            int n = taps_of(j, j->grid + (s * j->places + p) * 3, taps);
            for (int64_t c = 0; c < j->channels; c++) {
                const double *x = j->input + (s * j->channels + c) * volume;
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
    int64_t volume = j->in[0] * j->in[1] * j->in[2];
    tap taps[8];
    for (int64_t s = begin; s < end; s++)
        for (int64_t p = 0; p < j->places; p++) {
            int n = taps_of(j, j->grid + (s * j->places + p) * 3, taps);
            double sum[3] = {0};
            for (int64_t c = 0; c < j->channels; c++) {
                int64_t at = (s * j->channels + c) * volume;
                double g = j->grad[(s * j->channels + c) * j->places + p];
                for (int t = 0; t < n; t++) {
                    if (j->grad_input)
                        j->grad_input[at + taps[t].at] += g * taps[t].weight;
                    for (int d = 0; d < 3; d++)
                        sum[d] += g * j->input[at + taps[t].at] * taps[t].slope[d];
                }
            }
            for (int d = 0; d < 3 && j->grad_grid; d++)
                j->grad_grid[(s * j->places + p) * 3 + 2 - d] = sum[d];
        }
    return TN_OK;
}

static job job_of(const tn_tensor *input, const tn_tensor *grid, int64_t mode, int64_t padding,
                  bool align, bool single)
{
    return (job){.input = input->data,
                 .grid = grid->data,
                 .channels = input->sizes[1],
                 .in = {input->sizes[2], input->sizes[3], input->sizes[4]},
                 .places = grid->sizes[1] * grid->sizes[2] * grid->sizes[3],
                 .nearest = mode == 1,
                 .padding = (int)padding,
                 .align = align,
                 .single = single};
}

tn_status tni_cpu_grid_sampler_3d(tn_tensor *input, tn_tensor *grid, int64_t interpolation_mode,
                                  int64_t padding_mode, bool align_corners, tn_tensor *out)
{
    TN_AUTO(tn_tensor) x = NULL;
    TN_AUTO(tn_tensor) places = NULL;
    TN_AUTO(tn_tensor) work = NULL;
    if (out->numel == 0)
        return TN_OK;
    TN_TRY(tni_ready(input, TN_DTYPE_F64, &x));
    TN_TRY(tni_ready(grid, TN_DTYPE_F64, &places));
    TN_TRY(tni_tensor_new(5, out->sizes, NULL, TN_DTYPE_F64, TN_CPU, &work));
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

tn_status tni_kernel_grid_sampler_3d_backward(tn_call *call, tn_tensor *grad_output,
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
    TN_TRY(tni_shape_grid_sampler_3d(&g, input, grid, interpolation_mode, padding_mode,
                                     align_corners));
    bool same = grad_output->ndim == 5 && grad_output->dtype == input->dtype;
    for (int d = 0; same && d < 5; d++)
        same = grad_output->sizes[d] == g.sizes[d];
    TN_CHECK(same, TN_INVALID, "grid_sampler_3d_backward: grad_output must look like the result");
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
