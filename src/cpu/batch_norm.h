/* SPDX-License-Identifier: MIT */
/* cpu/batch_norm.h: batch normalisation where channels are the fastest dimension: rows, one for
 * each place of each sample, with a column for each channel. */
#ifndef TNI_CPU_BATCH_NORM_H
#define TNI_CPU_BATCH_NORM_H

#include "core/tensor.h"

/* Tensors of one element a channel may be NULL. */
typedef struct tni_norm_columns {
    const tn_tensor *x;
    bool training;
    double momentum, eps;
    const tn_tensor *weight, *bias;
    /* Forward: read in evaluation, moved in training. Backward: the mean, and one over the standard
     * deviation in training, else the variance. */
    tn_tensor *mean, *var;
    tn_tensor *save_mean, *save_rstd; /* forward, written in training */
    const tn_tensor *grad;            /* backward; else NULL */
    tn_tensor *out, *dweight, *dbias; /* out: the result, or the gradient of x, or NULL */
} tni_norm_columns;

/* Whether x, and what lies beside it, are such rows, and long enough for it to pay. */
bool tni_norm_columns_fit(const tni_norm_columns *c);
/* Backward where there is a gradient, else forward.
 * @retval TN_NOMEM  what is known of the channels did not fit into memory; nothing was written */
TN_NODISCARD tn_status tni_norm_columns_run(const tni_norm_columns *c);

#endif
