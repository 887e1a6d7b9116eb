/* SPDX-License-Identifier: MIT */
/* composite/pad.c: `pad`: which padding operator a mode means, and circular padding, which is made
 * of slices. */
#include <string.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

/* Copy indices [from, from + n) of dimension @p dim of @p out to those from @p to on. */
static tn_status wrap(tn_tensor *out, int dim, int64_t to, int64_t from, int64_t n)
{
    TN_AUTO(tn_tensor) target = NULL;
    TN_AUTO(tn_tensor) source = NULL;
    if (n <= 0)
        return TN_OK;
    TN_TRY(tn_slice(out, dim, tn_some_int(to), tn_some_int(to + n), 1, &target));
    TN_TRY(tn_slice(out, dim, tn_some_int(from), tn_some_int(from + n), 1, &source));
    return tn_copy_(target, source, false);
}

static tn_status circular(tn_tensor *self, const int64_t *pad, int64_t pad_n, tn_tensor **out)
{
    int ndim = self->ndim, padded = (int)(pad_n / 2);
    int64_t sizes[TN_MAX_DIMS];
    for (int d = 0; d < ndim; d++)
        sizes[d] = self->sizes[d];
    for (int i = 0; i < padded; i++) {
        int d = ndim - 1 - i;
        int64_t size = self->sizes[d], before = pad[2 * i], after = pad[2 * i + 1];
        TN_CHECK(before <= size && after <= size, TN_INVALID,
                 "Padding value causes wrapping around more than once.");
        TN_CHECK(before >= -size && after >= -size && size + before + after >= 0, TN_INVALID,
                 "Negative padding value is resulting in an empty dimension");
        /* What is left of the dimension is what there is to repeat. */
        int64_t rest = size + (before < 0 ? before : 0) + (after < 0 ? after : 0);
        TN_CHECK(before <= rest && after <= rest, TN_INVALID,
                 "Padding value causes wrapping around more than once: %lld of dimension %d, of "
                 "which the negative padding on its other side leaves %lld",
                 (long long)(before > after ? before : after), d, (long long)rest);
        sizes[d] = size + before + after;
    }
    TN_AUTO(tn_tensor) result = NULL;
    TN_AUTO(tn_tensor) to = NULL;
    TN_AUTO(tn_tensor) from = tn_tensor_ref(self);
    TN_TRY(tn_new_empty(self, sizes, ndim, NULL, &result));
    to = tn_tensor_ref(result);
    for (int i = 0; i < padded; i++) {
        int d = ndim - 1 - i;
        int64_t before = pad[2 * i], after = pad[2 * i + 1];
        int64_t out_end = sizes[d] - (after > 0 ? after : 0);
        int64_t in_end = self->sizes[d] + (after < 0 ? after : 0);
        tn_tensor *part = NULL;
        TN_TRY(
            tn_slice(to, d, tn_some_int(before > 0 ? before : 0), tn_some_int(out_end), 1, &part));
        tn_tensor_unref(to);
        to = part;
        TN_TRY(tn_slice(from, d, tn_some_int(before < 0 ? -before : 0), tn_some_int(in_end), 1,
                        &part));
        tn_tensor_unref(from);
        from = part;
    }
    TN_TRY(tn_copy_(to, from, false));
    /* From the first padded dimension to the last, so that corners are there when they are needed.
     */
    for (int i = padded - 1; i >= 0; i--) {
        int d = ndim - 1 - i;
        int64_t before = pad[2 * i] > 0 ? pad[2 * i] : 0;
        int64_t after = pad[2 * i + 1] > 0 ? pad[2 * i + 1] : 0;
        TN_TRY(wrap(result, d, 0, sizes[d] - before - after, before));
        TN_TRY(wrap(result, d, sizes[d] - after, before, after));
    }
    *out = TN_MOVE(result);
    return TN_OK;
}

tn_status tni_composite_pad(tn_tensor *self, const int64_t *pad, int64_t pad_n, const char *mode,
                            tn_opt_float value, tn_tensor **out)
{
    TN_CHECK(pad_n % 2 == 0, TN_INVALID, "Padding length must be divisible by 2");
    TN_CHECK(pad_n / 2 <= self->ndim, TN_INVALID,
             "Padding length should be less than or equal to two times the input dimension but got "
             "padding length %lld and input of dimension %d",
             (long long)pad_n, self->ndim);
    if (strcmp(mode, "constant") == 0)
        return tn_constant_pad_nd(self, pad, pad_n, tn_float(value.has ? value.value : 0), out);
    TN_CHECK(!value.has || value.value == 0, TN_INVALID,
             "Padding mode \"%s\" doesn't take in value argument", mode);
    int64_t dims = pad_n / 2;
    bool fits = dims >= 1 && dims <= 3 && (self->ndim == dims + 1 || self->ndim == dims + 2);
    bool reflect = strcmp(mode, "reflect") == 0, replicate = strcmp(mode, "replicate") == 0;
    if (fits && strcmp(mode, "circular") == 0)
        return circular(self, pad, pad_n, out);
    TN_CHECK(reflect || replicate || strcmp(mode, "circular") == 0, TN_UNSUPPORTED,
             "Unrecognised padding mode %s", mode);
    if (fits && dims == 1)
        return (reflect ? tn_reflection_pad1d : tn_replication_pad1d)(self, pad, pad_n, out);
    if (fits && dims == 2)
        return (reflect ? tn_reflection_pad2d : tn_replication_pad2d)(self, pad, pad_n, out);
    if (fits)
        return (reflect ? tn_reflection_pad3d : tn_replication_pad3d)(self, pad, pad_n, out);
    TN_FAIL(TN_UNSUPPORTED,
            "Padding size %lld is not supported for %dD input tensor.\nSupported combinations for "
            "non-constant padding:\n  - 2D or 3D input: padding size = 2 (pads last dimension)\n  "
            "- 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n  - 4D or 5D input: "
            "padding size = 6 (pads last 3 dimensions)",
            (long long)pad_n, self->ndim);
}
