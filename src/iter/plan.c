/* SPDX-License-Identifier: MIT */
/* iter/plan.c: planning an elementwise operation. Most calls are of tensors that are contiguous and
 * alike: those are recognised first and cost next to nothing. */
#include "iter/layout.h"

#include <string.h>
#include "core/device.h"
#include "shape/expand.h"
#include "shape/geometry.h"
#include "shape/structured.h"

#define BIT(dtype) (1u << (TN_DTYPE_##dtype))
static const unsigned fractional =
    BIT(F16) | BIT(BF16) | BIT(F32) | BIT(F64) | BIT(C64) | BIT(C128);
static const unsigned complex_ones = BIT(C64) | BIT(C128);

/* ---- the short way ---- */

static inline bool same_sizes(const tn_tensor *a, const tn_tensor *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->sizes[d] != b->sizes[d])
            return false;
    return true;
}

/* A bare number leaves the dtype of a tensor alone. */
static inline bool number_fits(unsigned dtype_bit, int kind)
{
    if (dtype_bit & complex_ones)
        return true;
    if (dtype_bit & fractional)
        return kind != TN_SCALAR_COMPLEX;
    return dtype_bit != BIT(BOOL) && (kind == TN_SCALAR_INT || kind == TN_SCALAR_BOOL);
}

/* Strides are the contiguous ones to the letter; those of size-1 dimensions may differ in a tensor
 * that counts as contiguous, and then a number beside it makes the general rule see them. */
static inline bool plain_strides(const tn_tensor *t)
{
    int64_t wanted = 1;
    for (int d = t->ndim - 1; d >= 0; d--) {
        if (t->strides[d] != wanted)
            return false;
        wanted *= t->sizes[d];
    }
    return t->numel != 0;
}

/* Flags, number of dimensions, dtype and type of device lie side by side: one word says most of
 * what two tensors must have in common. */
_Static_assert(offsetof(tn_tensor, ndim) == offsetof(tn_tensor, flags) + 4 &&
                   offsetof(tn_tensor, dtype) == offsetof(tn_tensor, flags) + 5 &&
                   offsetof(tn_tensor, device) == offsetof(tn_tensor, flags) + 6,
               "the word of a tensor's kind");
static inline uint64_t kind_word(const tn_tensor *t)
{
    uint64_t word;
    memcpy(&word, (const char *)t + offsetof(tn_tensor, flags), sizeof word);
    return word;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#    define FLAG_BITS(flags) ((uint64_t)(flags))
#    define REST_BITS        UINT64_C(0xffffffff00000000)
#else
#    define FLAG_BITS(flags) ((uint64_t)(flags) << 32)
#    define REST_BITS        UINT64_C(0x00000000ffffffff)
#endif

static inline bool is_plain(uint64_t kind)
{
    return (kind & FLAG_BITS(TNI_CONTIGUOUS | TNI_WRAPPED_NUMBER)) == FLAG_BITS(TNI_CONTIGUOUS);
}

/* Both contiguous, of one shape, dtype and device, given that @p a is plain. */
static inline bool same_kind(uint64_t kind, const tn_tensor *a, const tn_tensor *b)
{
    return ((kind ^ kind_word(b)) & (REST_BITS | FLAG_BITS(TNI_CONTIGUOUS | TNI_WRAPPED_NUMBER))) ==
               0 &&
           a->device.index == b->device.index && same_sizes(a, b);
}

/* One or two tensors and an output of one kind: the commonest calls. False: nothing was decided. */
static inline bool is_same(tni_iter *it, int rule, const tni_operand *in, int n,
                           const tn_tensor *given)
{
    const tn_tensor *a = in[0].tensor, *b = n == 2 ? in[1].tensor : a;
    if ((unsigned)n - 1 > 1 || !a || !b)
        return false;
    uint64_t kind = kind_word(a);
    if (!is_plain(kind) || TN_DTYPE_IS_LIMITED(a->dtype) || (b != a && !same_kind(kind, a, b)))
        return false;
    if (rule != TNI_PW_PROMOTE && (rule != TNI_PW_FLOAT || !((1u << a->dtype) & fractional)) &&
        (rule != TNI_PW_MAGNITUDE || ((1u << a->dtype) & TNI_PW_COMPLEX)))
        return false;
    if (given && given != a &&
        (!same_kind(kind, a, given) || given->storage == a->storage ||
         (b != given && given->storage == b->storage)))
        return false;
    if (given == a && b != a && given->storage == b->storage)
        return false;
    it->dtype = it->out_dtype = (tn_dtype)a->dtype;
    it->numel = a->numel;
    it->in_data[0] = a->data;
    it->in_data[1] = b->data;
    it->in_dtype[0] = it->in_dtype[1] = a->dtype;
    it->numbers = 0;
    it->flat = TNI_FLAT_SAME;
    return true;
}

static tn_dtype result_dtype(int rule, tn_dtype common)
{
    return rule == TNI_PW_BOOL        ? TN_DTYPE_BOOL
           : rule == TNI_PW_MAGNITUDE ? tni_dtype_to_real(common)
                                      : common;
}

/* A number that came as a tensor, and can be read: it is as good as a bare one. */
static inline bool is_number(const tn_tensor *t)
{
    return (t->flags & TNI_WRAPPED_NUMBER) && t->device.type == TN_DEVICE_CPU && t->data != NULL;
}

static inline int number_kind(tn_dtype dtype)
{
    return dtype == TN_DTYPE_C128 || dtype == TN_DTYPE_C64 ? TN_SCALAR_COMPLEX
           : tn_dtype_is_floating(dtype)                   ? TN_SCALAR_FLOAT
                                                           : TN_SCALAR_INT;
}

/* The same for more inputs, numbers that do not change the dtype, a condition, a bool result. */
static __attribute__((noinline)) bool is_flat(tni_iter *it, int rule, const tni_operand *in, int n,
                                              const tn_tensor *given)
{
    int lead = rule == TNI_PW_WHERE;
    const tn_tensor *first = in[lead].tensor;
    if (!first || TN_DTYPE_IS_LIMITED(first->dtype) ||
        (first->flags & (TNI_CONTIGUOUS | TNI_WRAPPED_NUMBER)) != TNI_CONTIGUOUS)
        return false;
    unsigned numbers = 0, dtype_bit = 1u << first->dtype;
    if (rule == TNI_PW_FLOAT && !(dtype_bit & fractional))
        return false;
    for (int i = 0; i < n; i++) {
        const tn_tensor *t = in[i].tensor;
        if (t && t != first && is_number(t)) {
            if (i < lead || !number_fits(dtype_bit, number_kind((tn_dtype)t->dtype)))
                return false;
            numbers |= 1u << i;
            it->in_data[i] = t->data;
            it->in_dtype[i] = t->dtype;
        } else if (t) {
            if (t != first &&
                ((t->flags & (TNI_CONTIGUOUS | TNI_WRAPPED_NUMBER)) != TNI_CONTIGUOUS ||
                 t->dtype != (i < lead ? TN_DTYPE_BOOL : first->dtype) ||
                 !tni_device_equal(t->device, first->device) || !same_sizes(t, first)))
                return false;
            if (given && given != t && given->storage == t->storage)
                return false;
            it->in_data[i] = t->data;
            it->in_dtype[i] = t->dtype;
        } else {
            if (!number_fits(dtype_bit, in[i].scalar.kind) || in[i].scalar.beyond)
                return false;
            numbers |= 1u << i;
            it->in_data[i] = &in[i].scalar.v;
            it->in_dtype[i] = in[i].scalar.kind == TN_SCALAR_COMPLEX ? TN_DTYPE_C128
                              : in[i].scalar.kind == TN_SCALAR_FLOAT ? TN_DTYPE_F64
                                                                     : TN_DTYPE_I64;
        }
    }
    it->dtype = (tn_dtype)first->dtype;
    it->out_dtype = result_dtype(rule, (tn_dtype)first->dtype);
    it->numbers = (uint8_t)numbers;
    it->numel = first->numel;
    it->flat = numbers ? TNI_FLAT_NUMBERS : TNI_FLAT_SAME;
    if (given)
        return (given->flags & TNI_CONTIGUOUS) && given->dtype == it->out_dtype &&
               tni_device_equal(given->device, first->device) && same_sizes(given, first);
    return !numbers || plain_strides(first);
}

/* ---- the general way ---- */

/* The first device that is not the CPU; 0-dim CPU inputs may stand beside any. */
static tn_status common_device(const tni_operand *in, int n, const tn_tensor *given, tn_device *out)
{
    char a[32], b[32];
    tn_device device = TN_CPU;
    if (given)
        device = given->device;
    for (int i = 0; i < n && device.type == TN_DEVICE_CPU; i++)
        if (in[i].tensor)
            device = in[i].tensor->device;
    TN_CHECK(
        !given || tni_device_equal(given->device, device), TN_INVALID,
        "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
        tn_device_format(device, a, sizeof a), tn_device_format(given->device, b, sizeof b));
    for (int i = 0; i < n; i++) {
        const tn_tensor *t = in[i].tensor;
        if (!t || tni_device_equal(t->device, device) ||
            (t->ndim == 0 && t->device.type == TN_DEVICE_CPU))
            continue;
        TN_FAIL(
            TN_INVALID,
            "Expected all tensors to be on the same device, but found at least two devices, %s and "
            "%s!",
            tn_device_format(device, a, sizeof a), tn_device_format(t->device, b, sizeof b));
    }
    *out = device;
    return TN_OK;
}

static tn_status common_dtype(tni_iter *it, const tni_operand *in, int n)
{
    int rule = it->attr->type_rule, skip = rule == TNI_PW_WHERE;
    it->dtype = tni_result_type(in + skip, n - skip);
    if (TNI_UNLIKELY(it->dtype == TN_DTYPE_NONE))
        return tni_refuse_promotion(in + skip, n - skip);
    if (rule == TNI_PW_SAME)
        for (int i = 0; i < n; i++)
            TN_CHECK(!in[i].tensor || in[i].tensor->dtype == it->dtype, TN_INVALID,
                     "Found dtype %s but expected %s",
                     tni_dtype_text((tn_dtype)in[i].tensor->dtype), tni_dtype_text(it->dtype));
    if (rule == TNI_PW_FLOAT && tn_dtype_is_integral(it->dtype, true))
        it->dtype = tn_default_dtype();
    TN_TRY(tni_check_limited(it->dtype, it->attr->takes, it->attr->label));
    it->out_dtype = result_dtype(rule, it->dtype);
    return TN_OK;
}

/* Memory that may not be written, or must be read before. */
static tn_status check_memory(tni_iter *it, const tni_operand *in, int n, const tn_tensor *given)
{
    if (!given)
        return TN_OK;
    TN_TRY(tni_check_internal_overlap(given));
    for (int i = 0; i < n; i++) {
        bool copy_first = false;
        if (in[i].tensor)
            TN_TRY(tni_check_overlap(given, in[i].tensor, &copy_first));
        it->copy_first |= (uint8_t)(copy_first << i);
    }
    return TN_OK;
}

/* Sizes of the result into it->sizes; *resize says that a given output must change its own. */
static tn_status common_sizes(tni_iter *it, const tni_operand *in, int n, const tn_tensor *given,
                              bool *alike, bool *resize)
{
    bool first = true, is_input = it->mode == TNI_ITER_INPLACE;
    *alike = true;
    it->ndim = 0;
    for (int i = 0; i < n; i++) {
        const tn_tensor *t = in[i].tensor;
        int ndim = t ? t->ndim : 0;
        if (!t && it->attr->layout != TNI_LAYOUT_OPERANDS)
            continue;
        is_input |= given && t == given;
        bool same = it->ndim == ndim;
        for (int d = 0; same && d < ndim; d++)
            same = it->sizes[d] == t->sizes[d];
        *alike &= first || same;
        if (!same) {
            int64_t *merged = it->strides[0]; /* not used yet */
            TN_TRY(tni_broadcast_sizes(it->ndim, it->sizes, ndim, t ? t->sizes : NULL, &it->ndim,
                                       merged));
            memcpy(it->sizes, merged, (size_t)it->ndim * sizeof it->sizes[0]);
        }
        first = false;
    }
    *resize = false;
    if (given) {
        bool same = given->ndim == it->ndim;
        for (int d = 0; same && d < it->ndim; d++)
            same = given->sizes[d] == it->sizes[d];
        if (!same && is_input) {
            char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
            TN_FAIL(TN_INVALID, "output with shape %s doesn't match the broadcast shape %s",
                    tni_format_sizes(given->ndim, given->sizes, a, sizeof a),
                    tni_format_sizes(it->ndim, it->sizes, b, sizeof b));
        }
        *resize = !same;
    }
    return TN_OK;
}

TNI_COLD tn_status tni_iter_check(const tni_operand *in, int n, const tn_tensor *given)
{
    static const tni_pointwise_attr attr = {.layout = TNI_LAYOUT_OPERANDS};
    tni_iter it;
    bool alike, resize;
    it.attr = &attr;
    it.mode = TNI_ITER_OUT;
    it.copy_first = 0;
    TN_TRY(check_memory(&it, in, n, given));
    return common_sizes(&it, in, n, given, &alike, &resize);
}

/* An input as it would lie in memory after conversion to the common dtype. The reference converts
 * first and lays the result out by what it then has; the walk itself reads the input where it is.
 */
typedef struct seen {
    const tn_tensor *t; /* NULL: a bare number, or no output yet */
    const int64_t *strides;
    uint32_t flags;
} seen;

static void see(seen *s, const tn_tensor *t, bool converted, int64_t *buffer)
{
    s->t = t;
    if (!t)
        return;
    s->strides = t->strides;
    s->flags = t->flags;
    if (converted && !(t->flags & TNI_DENSE)) {
        tni_preserve_strides(t, buffer);
        s->strides = buffer;
        s->flags = tni_geometry_flags(t->ndim, t->sizes, buffer);
    }
}

/* One row of byte strides in logical order; broadcast dimensions get 0. Those of a tensor without
 * elements may be too large to count in bytes: nothing is reached by them. */
static void put_strides(tni_iter *it, int row, const seen *s)
{
    const tn_tensor *t = s->t;
    int64_t itemsize = t ? (int64_t)tni_itemsize(t) : 0;
    int missing = it->ndim - (t ? t->ndim : 0);
    for (int d = 0; d < it->ndim; d++) {
        int own = d - missing;
        it->strides[row][d] = own < 0 || (t->sizes[own] == 1 && it->sizes[d] != 1)
                                  ? 0
                                  : (int64_t)((uint64_t)s->strides[own] * (uint64_t)itemsize);
    }
}

/* All operands have one shape: can they be walked as one run? Then the result has their layout.
 * NULL in *strides: contiguous. Row 0 is the output. */
static bool alike_layout(const seen *operands, int n, int64_t *buffer, const int64_t **strides)
{
    uint32_t common = TNI_GEOMETRY_FLAGS;
    const seen *first = NULL;
    bool same_strides = true;
    for (int i = 0; i <= n; i++) {
        const seen *s = &operands[i];
        if (!s->t)
            continue;
        common &= s->flags;
        if (!first)
            first = s;
        for (int d = 0; d < s->t->ndim; d++)
            same_strides &= s->strides[d] == first->strides[d];
    }
    *strides = NULL;
    if (!first || (common & TNI_CONTIGUOUS))
        return true;
    if (common & TNI_CHANNELS_LAST) {
        *strides = buffer;
        return tni_format_strides(TN_FORMAT_CHANNELS_LAST, first->t->ndim, first->t->sizes,
                                  buffer) == TN_OK;
    }
    *strides = first->strides;
    return (common & TNI_DENSE) && same_strides;
}

/* The result's strides by the general rule, and the walk. */
static void general_layout(tni_iter *it, const seen *operands, int n, int64_t *buffer,
                           const int64_t **strides)
{
    uint8_t perm[TN_MAX_DIMS];
    bool has_out = operands[0].t != NULL;
    for (int row = has_out ? 0 : 1; row <= n; row++)
        put_strides(it, row, &operands[row]);
    bool row_major = tni_iter_order(it, has_out, perm);
    tni_iter_permute(it, perm, has_out);
    *strides = NULL;
    if (has_out)
        return;
    int64_t next = 1;
    for (int d = 0; d < it->ndim; d++) {
        it->strides[0][d] = next * (int64_t)tni_dtype_size(it->out_dtype);
        buffer[perm[d]] = next;
        /* An overflow is found when the result is made. */
        next = (int64_t)((uint64_t)next * (uint64_t)it->sizes[d]);
    }
    if (!row_major)
        *strides = buffer;
}

/* Does the operator lay out a fresh result by itself? Then its strides, NULL for row-major. */
static bool own_layout(const tni_iter *it, const tn_tensor *first, int ndim, const int64_t *sizes,
                       int64_t *buffer, const int64_t **strides)
{
    if (it->attr->layout == TNI_LAYOUT_ROWS) {
        *strides = NULL;
        return true;
    }
    if (it->attr->layout != TNI_LAYOUT_FIRST || !first || first->ndim != ndim ||
        memcmp(first->sizes, sizes, (size_t)ndim * sizeof *sizes) != 0)
        return false;
    tni_preserve_strides(first, buffer);
    *strides = buffer;
    return true;
}

/* The walk over the operands where they are, once the output exists. */
static void walk_as_it_is(tni_iter *it, const tni_operand *in, int n, const tn_tensor *out)
{
    uint8_t perm[TN_MAX_DIMS];
    seen s;
    it->ndim = out->ndim;
    for (int d = 0; d < out->ndim; d++)
        it->sizes[d] = out->sizes[d];
    for (int row = 0; row <= n; row++) {
        see(&s, row == 0 ? out : in[row - 1].tensor, false, NULL);
        put_strides(it, row, &s);
    }
    tni_iter_order(it, true, perm);
    tni_iter_permute(it, perm, true);
    it->flat = TNI_NOT_FLAT;
}

/* The sizes are set row-major first, which may fail; strides of another dense layout need no more
 * memory and are put in their place. */
static tn_status resize_given(tn_tensor *given, int ndim, const int64_t *sizes,
                              const int64_t *strides)
{
    TN_TRY(tni_tensor_resize(given, ndim, sizes));
    if (!strides)
        return TN_OK;
    memcpy(given->strides, strides, (size_t)ndim * sizeof *strides);
    given->flags = (given->flags & ~(uint32_t)TNI_GEOMETRY_FLAGS) |
                   tni_geometry_flags(ndim, given->sizes, given->strides);
    return TN_OK;
}

static void put_inputs(tni_iter *it, const tni_operand *in, int n)
{
    for (int i = 0; i < n; i++) {
        const tn_tensor *t = in[i].tensor;
        if (!t || t->numel == 1)
            it->numbers |= (uint8_t)(1 << i);
        it->in_data[i] = t ? t->data : (const void *)&in[i].scalar.v;
        it->in_dtype[i] = t                                        ? t->dtype
                          : in[i].scalar.kind == TN_SCALAR_COMPLEX ? TN_DTYPE_C128
                          : in[i].scalar.kind == TN_SCALAR_FLOAT   ? TN_DTYPE_F64
                                                                   : TN_DTYPE_I64;
        if (TNI_UNLIKELY(!t && in[i].scalar.beyond) && !tn_dtype_is_integral(it->dtype, true)) {
            it->in_data[i] = &in[i].scalar.imag;
            it->in_dtype[i] = TN_DTYPE_F64;
        }
    }
}

static __attribute__((noinline)) tn_status begin_general(tni_iter *it, const tni_operand *in, int n,
                                                         tn_tensor *given)
{
    bool alike, resize;
    tn_device device;
    int64_t sizes[TN_MAX_DIMS], buffer[TN_MAX_DIMS];
    const int64_t *strides;
    it->numbers = it->copy_first = 0;
    TN_TRY(check_memory(it, in, n, given));
    TN_TRY(common_sizes(it, in, n, given, &alike, &resize));
    TN_TRY(common_device(in, n, given, &device));
    TN_TRY(common_dtype(it, in, n));
    if (given) {
        TN_TRY(tni_check_cast(it->out_dtype, (tn_dtype)given->dtype));
        it->out_dtype = (tn_dtype)given->dtype;
    }
    int ndim = it->ndim;
    for (int d = 0; d < ndim; d++)
        sizes[d] = it->sizes[d];
    seen operands[1 + TNI_ITER_INPUTS];
    int64_t converted[TNI_ITER_INPUTS][TN_MAX_DIMS];
    bool moved = false;
    see(&operands[0], resize ? NULL : given, false, NULL);
    for (int i = 0; i < n; i++) {
        const tn_tensor *t = in[i].tensor;
        bool is_condition = i == 0 && it->attr->type_rule == TNI_PW_WHERE;
        see(&operands[1 + i], t, t && t->dtype != it->dtype && !is_condition, converted[i]);
        moved |= t && operands[1 + i].strides != t->strides;
    }
    it->flat = alike && alike_layout(operands, n, buffer, &strides) ? TNI_FLAT : TNI_NOT_FLAT;
    if (it->flat == TNI_NOT_FLAT)
        general_layout(it, operands, n, buffer, &strides);
    /* What is flat stays so: only dimensions of size 1, or all of an empty tensor, then differ. */
    if (!given && own_layout(it, in[0].tensor, ndim, sizes, buffer, &strides))
        moved |= it->flat == TNI_NOT_FLAT || it->attr->layout == TNI_LAYOUT_ROWS;
    if (!given)
        TN_TRY(tni_tensor_new(ndim, sizes, strides, it->out_dtype, device, &given));
    else if (resize) {
        TN_TRY(tni_out_tell(given, ndim, sizes));
        tni_geometry_copy(&it->before, given);
        it->nbytes_before = given->storage->nbytes;
        TN_TRY(resize_given(given, ndim, sizes, strides));
        it->resized = true;
    }
    if (moved)
        walk_as_it_is(it, in, n, given);
    put_inputs(it, in, n);
    it->out = given;
    it->out_data = given->data;
    it->numel = given->numel;
    return TN_OK;
}

tn_status tni_iter_begin(tni_iter *it, const tni_pointwise_attr *attr, const tni_operand *operands,
                         int n, tn_tensor *given, int mode)
{
    it->attr = attr;
    it->n = n;
    it->mode = (uint8_t)mode;
    it->resized = false;
    if (TNI_UNLIKELY(!is_same(it, attr->type_rule, operands, n, given))) {
        TNI_REQUIRE(n >= 1 && n <= TNI_ITER_INPUTS);
        if (!is_flat(it, attr->type_rule, operands, n, given))
            return begin_general(it, operands, n, given);
    }
    if (!given) {
        const tn_tensor *like = operands[attr->type_rule == TNI_PW_WHERE].tensor;
        const int64_t *strides = attr->layout == TNI_LAYOUT_FIRST ? like->strides : NULL;
        TN_TRY(
            tni_tensor_new(like->ndim, like->sizes, strides, it->out_dtype, like->device, &given));
    }
    it->copy_first = 0;
    it->out = given;
    it->out_data = given->data;
    return TN_OK;
}

tn_status tni_iter_end(tni_iter *it, tn_status status, tn_tensor **out)
{
    if (it->mode == TNI_ITER_NEW) {
        if (TNI_LIKELY(status == TN_OK))
            *out = it->out;
        else
            tn_tensor_unref(it->out);
    } else if (TNI_UNLIKELY(status != TN_OK && it->resized)) {
        tni_tensor_put_back(it->out, &it->before, it->nbytes_before);
    }
    return status;
}
