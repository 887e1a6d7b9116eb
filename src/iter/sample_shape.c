/* SPDX-License-Identifier: MIT */
/* iter/sample_shape.c: what choices by weight give. */
#include "gen/shapes.h"
#include "shape/expand.h"
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
    TN_CHECK(n <= INT64_C(1) << 24, TN_INVALID, "number of categories cannot exceed 2^24");
    bool no_rows = self->ndim == 2 && self->sizes[0] == 0;
    TN_CHECK(!replacement || n > 0 || no_rows, TN_INVALID,
             "invalid multinomial distribution (sum of probabilities <= 0)");
    TN_CHECK(replacement || num_samples <= n, TN_INVALID,
             "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    TN_CHECK(n <= 1 << 24, TN_INVALID, "number of categories cannot exceed 2^24");
    tni_geometry_sizes_of(g, self);
    g->dtype = TN_DTYPE_I64;
    g->sizes[self->ndim - 1] = num_samples;
    return TN_OK;
}

/* ---- distributions with tensors of parameters ---- */

static tn_status like_parameters(tni_geometry *g, const tn_tensor *self, const char *kernel)
{
    TN_CHECK(tn_dtype_is_floating((tn_dtype)self->dtype), TN_UNSUPPORTED,
             "\"%s\" not implemented for '%s'", kernel, tni_dtype_text((tn_dtype)self->dtype));
    tni_geometry_sizes_of(g, self);
    return TN_OK;
}

tn_status tni_shape_poisson(tni_geometry *g, tn_tensor *self, tn_generator *generator)
{
    (void)generator;
    return like_parameters(g, self, "poisson_cpu");
}

tn_status tni_shape_standard_gamma(tni_geometry *g, tn_tensor *self, tn_generator *generator)
{
    (void)generator;
    return like_parameters(g, self, "gamma_cpu");
}

tn_status tni_shape_sample_dirichlet(tni_geometry *g, tn_tensor *self, tn_generator *generator)
{
    (void)generator;
    return like_parameters(g, self, "dirichlet");
}

tn_status tni_shape_binomial(tni_geometry *g, tn_tensor *count, tn_tensor *prob,
                             tn_generator *generator)
{
    const tn_tensor *both[] = {count, prob};
    static const char *const names[] = {"count", "prob"};
    (void)generator;
    for (int i = 0; i < 2; i++)
        TN_CHECK(tn_dtype_is_floating((tn_dtype)both[i]->dtype), TN_VALUE,
                 "binomial only supports floating-point dtypes for %s, got: %s", names[i],
                 tni_dtype_text((tn_dtype)both[i]->dtype));
    TN_CHECK(count->dtype == prob->dtype, TN_INVALID, "Found dtype %s but expected %s",
             tni_dtype_text((tn_dtype)prob->dtype), tni_dtype_text((tn_dtype)count->dtype));
    TN_TRY(tni_same_device(count, prob));
    tni_geometry_sizes_of(g, count);
    return tni_broadcast_sizes(count->ndim, count->sizes, prob->ndim, prob->sizes, &g->ndim,
                               g->sizes);
}
