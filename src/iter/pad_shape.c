/* SPDX-License-Identifier: MIT */
/* iter/pad_shape.c: what padding with a tensor's own values gives: mirrored at the edges
 * (reflection) or with the edges repeated (replication), in one to three dimensions. */
#include "gen/shapes.h"
#include "shape/index.h"

/* One of the six operators. */
typedef struct kind {
    const char *name; /* "reflection_pad2d" */
    int dims;         /* that are padded, the last ones */
    bool mirrored;
} kind;

static const kind reflection1 = {"reflection_pad1d", 1, true};
static const kind reflection2 = {"reflection_pad2d", 2, true};
static const kind reflection3 = {"reflection_pad3d", 3, true};
static const kind replication1 = {"replication_pad1d", 1, false};
static const kind replication2 = {"replication_pad2d", 2, false};
static const kind replication3 = {"replication_pad3d", 3, false};

/* A batch may be empty, nothing else may. */
static tn_status check_input(const kind *k, const tn_tensor *self, const int64_t *padding,
                             int64_t padding_n)
{
    char text[TNI_SIZES_TEXT];
    TN_CHECK(padding_n == 2 * k->dims, TN_INVALID,
             "padding size is expected to be %d, but got: %lld", 2 * k->dims, (long long)padding_n);
    bool valid = self->ndim == k->dims + 1 || self->ndim == k->dims + 2;
    for (int d = self->ndim - k->dims - 1; valid && d < self->ndim; d++)
        valid = self->sizes[d] != 0;
    TN_CHECK(
        valid, TN_INVALID,
        "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and other non-zero "
        "dimensions for input, but got: %s",
        k->dims + 1, k->dims + 2, tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    for (int i = 0; k->mirrored && i < k->dims; i++) {
        int d = self->ndim - 1 - i;
        int64_t size = self->sizes[d];
        TN_CHECK(
            padding[2 * i] < size && padding[2 * i + 1] < size, TN_INVALID,
            "Argument #%d: Padding size should be less than the corresponding input dimension, "
            "but got: padding (%lld, %lld) at dimension %d of input %s",
            4 + 2 * i, (long long)padding[2 * i], (long long)padding[2 * i + 1], d,
            tni_format_sizes(self->ndim, self->sizes, text, sizeof text));
    }
    return TN_OK;
}

/* The sizes of the padded dimensions, the last one first. */
static tn_status padded_sizes(const kind *k, const tn_tensor *self, const int64_t *padding,
                              int64_t *sizes)
{
    bool positive = true;
    for (int i = 0; i < k->dims; i++) {
        int64_t size = self->sizes[self->ndim - 1 - i];
        TN_CHECK(tni_i64_add(size, padding[2 * i], &sizes[i]) &&
                     tni_i64_add(sizes[i], padding[2 * i + 1], &sizes[i]),
                 TN_INVALID, "%s: size and padding add up to more than 64 bits hold", k->name);
        positive &= sizes[i] >= 1;
    }
    int last = self->ndim - 1;
    TN_CHECK(positive || k->dims < 3, TN_INVALID,
             "input (D: %lld H: %lld, W: %lld) is too small. Calculated output D: %lld H: %lld W: "
             "%lld",
             (long long)self->sizes[last - 2], (long long)self->sizes[last - 1],
             (long long)self->sizes[last], (long long)sizes[2], (long long)sizes[1],
             (long long)sizes[0]);
    TN_CHECK(positive || k->dims == 2, TN_INVALID,
             "input (W: %lld) is too small. Calculated output W: %lld",
             (long long)self->sizes[last], (long long)sizes[0]);
    TN_CHECK(positive, TN_INVALID,
             "input (H: %lld, W: %lld) is too small. Calculated output H: %lld W: %lld",
             (long long)self->sizes[last - 1], (long long)self->sizes[last], (long long)sizes[1],
             (long long)sizes[0]);
    return TN_OK;
}

/* Volumes without a batch have four dimensions, as a batch of planes has, and pass for one. */
static tn_status use_format_of(tni_geometry *g, const kind *k, const tn_tensor *self)
{
    bool looks = k->dims == 3 || (k->dims == 2 && self->ndim == 4);
    tn_memory_format format = looks ? tni_suggest_format(self) : TN_FORMAT_CONTIGUOUS;
    g->has_strides = format != TN_FORMAT_CONTIGUOUS;
    return g->has_strides ? tni_format_strides(format, g->ndim, g->sizes, g->strides) : TN_OK;
}

static tn_status forward(const kind *k, tni_geometry *g, const tn_tensor *self,
                         const int64_t *padding, int64_t padding_n)
{
    int64_t sizes[3];
    TN_TRY(check_input(k, self, padding, padding_n));
    TN_TRY(padded_sizes(k, self, padding, sizes));
    TN_CHECK(self->dtype != TN_DTYPE_BOOL, TN_UNSUPPORTED, "\"%s\" not implemented for 'Bool'",
             k->name);
    tni_geometry_sizes_of(g, self);
    for (int i = 0; i < k->dims; i++)
        g->sizes[g->ndim - 1 - i] = sizes[i];
    return use_format_of(g, k, self);
}

static tn_status backward(const kind *k, tni_geometry *g, const tn_tensor *grad,
                          const tn_tensor *self, const int64_t *padding, int64_t padding_n)
{
    static const char *const names[] = {"width", "height", "depth"};
    int64_t sizes[3];
    TN_TRY(tni_same_device(grad, self));
    TN_TRY(check_input(k, self, padding, padding_n));
    TN_TRY(padded_sizes(k, self, padding, sizes));
    TN_CHECK(grad->ndim == self->ndim, TN_INVALID,
             "%s_backward: grad_output must have %d dimensions, but has %d", k->name, self->ndim,
             grad->ndim);
    for (int i = 0; i < k->dims; i++) {
        int64_t got = grad->sizes[grad->ndim - 1 - i];
        TN_CHECK(got == sizes[i], TN_INVALID, "%s %s unexpected. Expected: %lld%s Got: %lld",
                 k->dims != 2 && k->mirrored ? "grad_output" : "gradOutput", names[i],
                 (long long)sizes[i], k->dims == 1 && !k->mirrored ? "" : ",", (long long)got);
    }
    for (int d = 0; d < self->ndim - k->dims; d++)
        TN_CHECK(grad->sizes[d] == self->sizes[d], TN_INVALID,
                 "%s_backward: size %lld of grad_output at dimension %d must be that of self, %lld",
                 k->name, (long long)grad->sizes[d], d, (long long)self->sizes[d]);
    TN_CHECK(grad->dtype == self->dtype, TN_INVALID, "expected scalar type %s but found %s",
             tni_dtype_text((tn_dtype)grad->dtype), tni_dtype_text((tn_dtype)self->dtype));
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_UNSUPPORTED,
             "\"%s_backward\" not implemented for '%s'", k->name,
             tni_dtype_text((tn_dtype)self->dtype));
    tni_geometry_sizes_of(g, self);
    return use_format_of(g, k, self);
}

#define PAIR(NAME, KIND)                                                                 \
    tn_status tni_shape_##NAME(tni_geometry *g, tn_tensor *self, const int64_t *padding, \
                               int64_t padding_n)                                        \
    {                                                                                    \
        return forward(&(KIND), g, self, padding, padding_n);                            \
    }                                                                                    \
    tn_status tni_shape_##NAME##_backward(tni_geometry *g, tn_tensor *grad_output,       \
                                          tn_tensor *self, const int64_t *padding,       \
                                          int64_t padding_n)                             \
    {                                                                                    \
        return backward(&(KIND), g, grad_output, self, padding, padding_n);              \
    }
PAIR(reflection_pad1d, reflection1)
PAIR(reflection_pad2d, reflection2)
PAIR(reflection_pad3d, reflection3)
PAIR(replication_pad1d, replication1)
PAIR(replication_pad2d, replication2)
PAIR(replication_pad3d, replication3)
