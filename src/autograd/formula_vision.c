/* SPDX-License-Identifier: MIT */
/* autograd/formula_vision.c: gradients of windows as columns and of Fourier transforms, written by
 * hand. See formula.c. */
#include "gen/gradients.h"

#include "tenon/ops.h"

/* ---- windows ---- */

tn_tensor *tni_grad_im2col_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                    const int64_t *kernel, int64_t kernel_n,
                                    const int64_t *dilation, int64_t dilation_n,
                                    const int64_t *padding, int64_t padding_n,
                                    const int64_t *stride, int64_t stride_n)
{
    return tnx_col2im(grad, sizes + ndim - 2, 2, kernel, kernel_n, dilation, dilation_n, padding,
                      padding_n, stride, stride_n);
}

/* ---- Fourier transforms: the adjoint is the transform the other way round ---- */

/* What was left out of a real signal's spectrum had no say: zeros. The engine takes the real part.
 */
tn_tensor *tni_grad_fft_r2c_gradient(tn_tensor *grad, const int64_t *sizes, int64_t ndim,
                                     const int64_t *dim, int64_t dim_n, int64_t normalization,
                                     bool onesided)
{
    if (!grad || dim_n == 0)
        return grad;
    int64_t last = dim[dim_n - 1] < 0 ? dim[dim_n - 1] + ndim : dim[dim_n - 1];
    int64_t missing = sizes[last] - grad->sizes[last];
    if (onesided && missing > 0) {
        int64_t pad[2 * TN_MAX_DIMS] = {0};
        pad[2 * (ndim - 1 - last) + 1] = missing;
        grad = tnx_constant_pad_nd(grad, pad, 2 * (ndim - last), tn_int(0));
    }
    return tnx__fft_c2c(grad, dim, dim_n, normalization, false);
}

/* Each number but the first, and the middle one of an even length, stands for two. */
tn_tensor *tni_grad_fft_c2r_gradient(tn_tensor *grad, const int64_t *dim, int64_t dim_n,
                                     int64_t normalization, int64_t last_dim_size)
{
    tn_tensor *spectrum = tnx__fft_r2c(grad, dim, dim_n, normalization, true);
    if (!spectrum || dim_n == 0)
        return spectrum;
    int64_t last = dim[dim_n - 1] < 0 ? dim[dim_n - 1] + spectrum->ndim : dim[dim_n - 1];
    int64_t length = spectrum->sizes[last], twice = last_dim_size - length;
    if (twice <= 0)
        return spectrum;
    tn_tensor *parts[] = {
        tnx_narrow(spectrum, last, 0, 1),
        tnx_mul_scalar(tnx_narrow(spectrum, last, 1, twice), tn_int(2)),
        tnx_narrow(spectrum, last, 1 + twice, length - 1 - twice),
    };
    return tni_scope_failed() ? NULL : tnx_cat(parts, 3, last);
}
