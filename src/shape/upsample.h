/* SPDX-License-Identifier: MIT */
/* shape/upsample.h: upsampling over one, two or three dimensions, checked. */
#ifndef TNI_SHAPE_UPSAMPLE_H
#define TNI_SHAPE_UPSAMPLE_H

#include "core/tensor.h"

typedef enum tni_upsample_mode {
    TNI_UPSAMPLE_NEAREST,
    TNI_UPSAMPLE_NEAREST_EXACT, /* places are those of centres */
    TNI_UPSAMPLE_LINEAR,
    TNI_UPSAMPLE_CUBIC,
    TNI_UPSAMPLE_SMOOTH_LINEAR, /* over as many places as the result skips */
    TNI_UPSAMPLE_SMOOTH_CUBIC,
} tni_upsample_mode;

/* Three spatial dimensions always: those that are missing stand in front, with a size of one. */
typedef struct tni_upsample {
    tni_upsample_mode mode;
    bool align; /* corners */
    int spatial;
    int64_t batch, channels;
    int64_t in[3], out[3];
    double scale[3]; /* 0: by the sizes */
} tni_upsample;

/* What an operator was given; the scales of its spatial dimensions. */
typedef struct tni_upsample_args {
    tni_upsample_mode mode;
    int spatial;
    const char *name;
    bool align;
    const int64_t *output_size;
    int64_t output_size_n;
    tn_opt_float scale[3];
} tni_upsample_args;

/* @p sizes: those of the input.
 * @retval TN_INVALID, TN_UNSUPPORTED  with the texts of the reference */
TN_NODISCARD tn_status tni_upsample_check(const tni_upsample_args *a, const int64_t *sizes,
                                          int64_t ndim, tni_upsample *out);

#endif
