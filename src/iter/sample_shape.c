/* SPDX-License-Identifier: MIT */
/* iter/sample_shape.c: what choices by weight give. */
#include "gen/shapes.h"
#include "shape/index.h"

tn_status tni_shape_multinomial(tni_geometry *g, tn_tensor *self, int64_t num_samples,
                                bool replacement, tn_generator *generator)
{
    (void)generator;
    TN_CHECK(self->ndim == 1 || self->ndim == 2, TN_INVALID, "prob_dist must be 1 or 2 dim");
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_INVALID,
             "multinomial only supports floating-point dtypes for input, got: %s",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_CHECK(num_samples > 0, TN_INVALID, "cannot sample n_sample <= 0 samples");
    int64_t n = self->sizes[self->ndim - 1];
    TN_CHECK((replacement && n > 0) || num_samples <= n, TN_INVALID,
             "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    tni_geometry_sizes_of(g, self);
    g->dtype = TN_DTYPE_I64;
    g->sizes[self->ndim - 1] = num_samples;
    return TN_OK;
}
