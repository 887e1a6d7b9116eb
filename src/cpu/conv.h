/* SPDX-License-Identifier: MIT */
/* cpu/conv.h: the parts that convolutions and their gradients share.
 *
 * Note [Windows]
 * What a convolution reads of its input, padding included, is a window. It is copied once, with
 * zeros where there is no input, so that nothing after it asks where the edges are: kernel element
 * t of place q is at start(q) + offset[t]. A strided convolution would step over the last
 * dimension; with channels first its window has each line split by residue, so that the elements
 * that neighbouring places read are neighbours.
 *
 * A transposed convolution with strides takes, at one place, only from those kernel elements that
 * hit the input: which they are depends on the place's residue. So it is as many convolutions as
 * there are residues, without strides, each with some of the kernel: its phases. Any other
 * convolution has one phase. Phases without kernel elements are not listed: what is nowhere
 * computed is the bias. */
#ifndef TNI_CPU_CONV_H
#define TNI_CPU_CONV_H

#include "cpu/gemm.h"
#include "shape/conv.h"

typedef struct tni_phase {
    int64_t first_tap, taps; /* in the window's lists */
    int64_t first[3];        /* its first place of the result */
    int64_t count[3], places;
} tni_phase;

typedef struct tni_window {
    const tni_conv *c;
    int64_t itemsize;
    int64_t in_each, out_each;     /* channels of a group */
    int64_t in_places, out_places; /* of one channel */
    int64_t kernel_places;
    int64_t low[3], size[3]; /* of the window, in places of the input */
    int64_t split, run;      /* residues of a line, and elements of each */
    int64_t places;          /* of one channel of the window */
    int64_t channel, place;  /* steps in the window, in elements: to the next channel, place */
    bool gaps;               /* some places have no phase */
    int64_t phases;
    tni_phase *phase;
    int64_t *kernel; /* kernel elements, phase by phase */
    int64_t *offset; /* of each, in elements */
    char *copy;      /* the window of all images */
} tni_window;

/* @p input: contiguous, [batch, channels, places] or [batch, places, channels], of @p dtype.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_window_open(tni_window *w, const tni_conv *c, tn_dtype dtype,
                                       const void *input);
void tni_window_close(tni_window *w);
/* Where the channels of @p group of image @p n begin in the window. */
const char *tni_window_at(const tni_window *w, int64_t n, int64_t group);
/* Where elements of a phase lie in the window, from tni_window_at(w, 0, group) on. Channels first:
 * rows are (channel, tap), columns places of all images; channels last: rows are places of all
 * images, columns (tap, channel). Give out->at to tni_free.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_window_tables(const tni_window *w, const tni_phase *phase,
                                         tni_gathered *out);

/* Elements of a table one after the other: rows [first, first + rows), of each the columns [begin,
 * begin + n), of @p size bytes. For dtypes whose products take no tables. */
void tni_window_write(char *to, int64_t size, const char *data, const tni_gathered *x,
                      int64_t first, int64_t rows, int64_t begin, int64_t n);

/* @p t with its channels where the computation wants them: itself, or an alias. */
TN_NODISCARD tn_status tni_conv_turn(const tni_conv *c, tn_tensor *t, TN_OWNED tn_tensor **out);
/* The same, contiguous and of @p dtype, to read. */
TN_NODISCARD tn_status tni_conv_ready(const tni_conv *c, tn_tensor *t, tn_dtype dtype,
                                      TN_OWNED tn_tensor **out);
/* The same of a result: what is computed in @p work goes to @p turned with tni_work_back. */
TN_NODISCARD tn_status tni_conv_work(const tni_conv *c, tn_tensor *out, tn_dtype dtype,
                                     TN_OWNED tn_tensor **turned, TN_OWNED tn_tensor **work);
/* A weight as [groups, out, in, kernel...], or [groups, out, kernel..., in] when @p last. */
TN_NODISCARD tn_status tni_conv_weight(const tni_conv *c, bool last, const tn_tensor *weight,
                                       TN_OWNED tn_tensor **out);
/* Whether the input is its own window, and each place sees one element of it. */
bool tni_conv_pointwise(const tni_conv *c);
/* Whether places are skipped and each seen place sees one element: then the convolution is one of
 * the seen places alone, which tni_conv_thin_input gives, with @p c changed to it. */
bool tni_conv_thin(const tni_conv *c);
TN_NODISCARD tn_status tni_conv_thin_input(tni_conv *c, const tn_tensor *input,
                                           TN_OWNED tn_tensor **out);
/* float16 and bfloat16 are computed in float32. */
static inline tn_dtype tni_conv_dtype(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16 ? TN_DTYPE_F32 : dtype;
}

/* The computation of a checked convolution, forward; @p bias may be NULL.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_conv_run(const tni_conv *c, tn_tensor *input, tn_tensor *weight,
                                    tn_tensor *bias, tn_tensor *out);

/* Whether Winograd's algorithm pays. */
bool tni_conv_winograd(const tni_conv *c, tn_dtype dtype);
/* *done: whether all results are finite. If not, nothing that is in @p out counts.
 * @retval TN_NOMEM */
TN_NODISCARD tn_status tni_winograd_run(const tni_conv *c, tn_tensor *input, tn_tensor *weight,
                                        tn_tensor *bias, tn_tensor *out, bool *done);

/* One channel of input makes each channel of the result, and there are as many groups. */
bool tni_conv_depthwise(const tni_conv *c, tn_dtype dtype);
TN_NODISCARD tn_status tni_depth_run(const tni_conv *c, tn_tensor *input, tn_tensor *weight,
                                     tn_tensor *bias, tn_tensor *out);
/* The gradient of the weight of a convolution that is not transposed. */
TN_NODISCARD tn_status tni_depth_weight(const tni_conv *c, tn_tensor *input, tn_tensor *grad,
                                        tn_tensor *out);

/* The kernel covers the whole input, or the whole result of a transposed convolution:
 * cpu/conv_whole.c. */
bool tni_conv_whole(const tni_conv *c);
TN_NODISCARD tn_status tni_whole_run(const tni_conv *c, tn_tensor *input, tn_tensor *weight,
                                     tn_tensor *bias, tn_tensor *out);
/* The gradient of the weight of a convolution that is not transposed. */
TN_NODISCARD tn_status tni_whole_weight(const tni_conv *c, tn_tensor *input, tn_tensor *grad,
                                        tn_tensor *out);

#endif
