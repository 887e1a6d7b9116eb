/* SPDX-License-Identifier: MIT */
/* composite/upsample.c: upsampling to a size or by factors, whichever is given. */
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* The sizes of the result, and the factors as the operators want them. */
static tn_status sizes_of(const tn_tensor *input, int n, const int64_t *size, int64_t size_n,
                          const double *factors, int64_t factors_n, int64_t *out,
                          tn_opt_float *scales)
{
    TN_CHECK(!size != !factors, TN_INVALID,
             "Must specify exactly one of output_size and scale_factors");
    int64_t given = size ? size_n : factors_n;
    TN_CHECK(given == input->ndim - 2, TN_INVALID,
             "Expected static_cast<int64_t>(%s->size()) == spatial_dimensions to be true, but got "
             "false.",
             size ? "output_size" : "scale_factors");
    TN_CHECK(given == n, TN_INVALID, "It is expected output_size equals to %d, but got size %lld",
             n, (long long)given);
    for (int i = 0; i < n; i++) {
        scales[i] = factors ? tn_some_float(factors[i]) : (tn_opt_float){0};
        if (size) {
            out[i] = size[i];
            continue;
        }
        double wanted = (double)input->sizes[2 + i] * factors[i];
        TN_CHECK(wanted > -0x1p62 && wanted < 0x1p62, TN_INVALID,
                 "value cannot be converted to type int64_t without overflow");
        out[i] = (int64_t)wanted;
    }
    return TN_OK;
}

#define UPSAMPLE(name, n, ALIGN, GIVEN, ...)                                                  \
    tn_status tni_composite_upsample_##name(                                                  \
        tn_tensor *input, const int64_t *output_size, int64_t output_size_n,                  \
        ALIGN const double *scale_factors, int64_t scale_factors_n, tn_tensor **out)          \
    {                                                                                         \
        int64_t size[3];                                                                      \
        tn_opt_float s[3];                                                                    \
        TN_TRY(sizes_of(input, n, output_size, output_size_n, scale_factors, scale_factors_n, \
                        size, s));                                                            \
        return UPSAMPLE_CALL(name)(input, size, n, GIVEN __VA_ARGS__, out);                   \
    }
#define UPSAMPLE_CALL(name)  call_##name
#define call_nearest1d       tn_upsample_nearest1d
#define call_nearest2d       tn_upsample_nearest2d
#define call_nearest3d       tn_upsample_nearest3d
#define call_nearest_exact1d tn__upsample_nearest_exact1d
#define call_nearest_exact2d tn__upsample_nearest_exact2d
#define call_nearest_exact3d tn__upsample_nearest_exact3d
#define call_linear1d        tn_upsample_linear1d
#define call_bilinear2d      tn_upsample_bilinear2d
#define call_trilinear3d     tn_upsample_trilinear3d
#define call_bicubic2d       tn_upsample_bicubic2d
#define call_bilinear2d_aa   tn__upsample_bilinear2d_aa
#define call_bicubic2d_aa    tn__upsample_bicubic2d_aa
#define CORNERS              bool align_corners,
#define THEM                 align_corners,

UPSAMPLE(nearest1d, 1, , , s[0])
UPSAMPLE(nearest2d, 2, , , s[0], s[1])
UPSAMPLE(nearest3d, 3, , , s[0], s[1], s[2])
UPSAMPLE(nearest_exact1d, 1, , , s[0])
UPSAMPLE(nearest_exact2d, 2, , , s[0], s[1])
UPSAMPLE(nearest_exact3d, 3, , , s[0], s[1], s[2])
UPSAMPLE(linear1d, 1, CORNERS, THEM, s[0])
UPSAMPLE(bilinear2d, 2, CORNERS, THEM, s[0], s[1])
UPSAMPLE(trilinear3d, 3, CORNERS, THEM, s[0], s[1], s[2])
UPSAMPLE(bicubic2d, 2, CORNERS, THEM, s[0], s[1])
UPSAMPLE(bilinear2d_aa, 2, CORNERS, THEM, s[0], s[1])
UPSAMPLE(bicubic2d_aa, 2, CORNERS, THEM, s[0], s[1])
