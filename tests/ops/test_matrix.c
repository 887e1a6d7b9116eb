/* SPDX-License-Identifier: MIT */
/* The matrix, beyond the samples as they stand: every sample in every dtype, with expanded, sliced
 * and channels-last arguments, with arguments of no elements and of no dimensions, grown until its
 * work is cut over threads, and in every instruction set.
 *
 *   - Meta agrees with the CPU: status, and sizes, strides, offset, dtype and aliasing of results;
 *   - a layout changes no value;
 *   - one thread and several give the same bits, and so do the instruction sets, but for products
 *     of matrices.
 * Consistency only: that the values are right is for the golden data (test_golden.c). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "cpu/loops.h"
#include "ops/sampling.h"
#include "tenon/ops.h"

/* ---- forms of a tensor ---- */

static tn_tensor *in_dtype(tn_tensor *t, void *arg)
{
    const tn_dtype *change = arg; /* from, to */
    if (t->dtype != change[0] || t->device.type != TN_DEVICE_CPU)
        return tn_tensor_ref(t);
    return sample_relaid(t, NULL, change[1]);
}

static tn_tensor *on_meta(tn_tensor *t, void *arg)
{
    (void)arg;
    return sample_on_meta(t);
}

static tn_tensor *contiguous(tn_tensor *t, void *arg)
{
    (void)arg;
    return t->device.type == TN_DEVICE_CPU ? sample_relaid(t, NULL, (tn_dtype)t->dtype)
                                           : tn_tensor_ref(t);
}

/* A tensor over the same memory that is nobody's view, as the one on Meta is not; it may stand for
 * a number if @p from does. */
static tn_tensor *as_argument(tn_tensor *stolen, const tn_tensor *from)
{
    tn_tensor *made = NULL;
    ASSERT_OK(tni_tensor_over(stolen->storage, stolen->ndim, stolen->sizes, stolen->strides,
                              stolen->offset, (tn_dtype)stolen->dtype,
                              tni_tensor_keys_for(TN_DEVICE_CPU, false), TN_CPU, &made));
    tn_tensor_unref(stolen);
    made->flags |= from->flags & TNI_WRAPPED_NUMBER;
    return made;
}

/* One row, or one column, in place of all. */
static tn_tensor *expanded(tn_tensor *t, void *arg)
{
    int d = *(int *)arg ? t->ndim - 1 : 0;
    tn_tensor *one = NULL, *all = NULL;
    if (t->ndim == 0 || t->sizes[d] == 0 || t->device.type != TN_DEVICE_CPU)
        return tn_tensor_ref(t);
    ASSERT_OK(tn_narrow(t, d, 0, 1, &one));
    ASSERT_OK(tn_expand(one, t->sizes, t->ndim, false, &all));
    tn_tensor_unref(one);
    return as_argument(all, t);
}

/* A part of something larger, beginning inside of it. */
static tn_tensor *sliced(tn_tensor *t, void *arg)
{
    (void)arg;
    tn_tensor *larger = NULL, *part = NULL, *next;
    int64_t sizes[TN_MAX_DIMS];
    if (t->device.type != TN_DEVICE_CPU || t->numel == 0) /* room for a result has no values */
        return tn_tensor_ref(t);
    for (int d = 0; d < t->ndim; d++)
        sizes[d] = t->sizes[d] + 2;
    tn_tensor_opts opts = tn_opts((tn_dtype)t->dtype, TN_CPU);
    ASSERT_OK(tn_ones(sizes, t->ndim, &opts, &larger));
    part = tn_tensor_ref(larger);
    for (int d = 0; d < t->ndim; d++) {
        ASSERT_OK(tn_narrow(part, d, 1, t->sizes[d], &next));
        tn_tensor_unref(part);
        part = next;
    }
    ASSERT_OK(tn_copy_(part, t, false));
    tn_tensor_unref(larger);
    return as_argument(part, t);
}

static tn_tensor *channels_last(tn_tensor *t, void *arg)
{
    (void)arg;
    tn_tensor *made = NULL;
    if (t->device.type != TN_DEVICE_CPU || (t->ndim != 4 && t->ndim != 5))
        return tn_tensor_ref(t);
    ASSERT_OK(
        tn_clone(t, t->ndim == 4 ? TN_FORMAT_CHANNELS_LAST : TN_FORMAT_CHANNELS_LAST_3D, &made));
    return as_argument(made, t);
}

/* Nothing of the first, or of the last dimension. */
static tn_tensor *emptied(tn_tensor *t, void *arg)
{
    tn_tensor *none = NULL, *made;
    if (t->ndim == 0 || t->device.type != TN_DEVICE_CPU)
        return tn_tensor_ref(t);
    ASSERT_OK(tn_narrow(t, *(int *)arg ? t->ndim - 1 : 0, 0, 0, &none));
    made = contiguous(none, NULL);
    tn_tensor_unref(none);
    return as_argument(made, t);
}

/* Its first element, without dimensions. */
static tn_tensor *a_point(tn_tensor *t, void *arg)
{
    (void)arg;
    tn_tensor *one = tn_tensor_ref(t), *next;
    if (t->numel == 0 || t->device.type != TN_DEVICE_CPU)
        return one;
    while (one->ndim) {
        ASSERT_OK(tn_select(one, 0, 0, &next));
        tn_tensor_unref(one);
        one = next;
    }
    next = contiguous(one, NULL);
    tn_tensor_unref(one);
    return as_argument(next, t);
}

/* Repeated along its first, or last, dimension. */
typedef struct growth {
    bool last;
    int64_t times;
} growth;

static tn_tensor *grown(tn_tensor *t, void *arg)
{
    const growth *g = arg;
    tn_tensor *made = NULL;
    int64_t times[TN_MAX_DIMS];
    if (t->ndim == 0 || t->device.type != TN_DEVICE_CPU)
        return tn_tensor_ref(t);
    for (int d = 0; d < t->ndim; d++)
        times[d] = d == (g->last ? t->ndim - 1 : 0) ? g->times : 1;
    ASSERT_OK(tn_repeat(t, times, t->ndim, &made));
    return as_argument(made, t);
}

/* ---- comparing ---- */

static void expect_same_geometry(const tn_tensor *cpu, const tn_tensor *meta)
{
    bool same = cpu->ndim == meta->ndim && cpu->dtype == meta->dtype && cpu->offset == meta->offset;
    for (int d = 0; same && d < cpu->ndim; d++)
        same = cpu->sizes[d] == meta->sizes[d] && cpu->strides[d] == meta->strides[d];
    if (same)
        return;
    char a[4][TNI_SIZES_TEXT];
    test_wrong(__FILE__, __LINE__, "CPU gives %s%s %s at %lld, Meta %s%s %s at %lld",
               tn_dtype_name((tn_dtype)cpu->dtype),
               tni_format_sizes(cpu->ndim, cpu->sizes, a[0], sizeof a[0]),
               tni_format_sizes(cpu->ndim, cpu->strides, a[1], sizeof a[1]), (long long)cpu->offset,
               tn_dtype_name((tn_dtype)meta->dtype),
               tni_format_sizes(meta->ndim, meta->sizes, a[2], sizeof a[2]),
               tni_format_sizes(meta->ndim, meta->strides, a[3], sizeof a[3]),
               (long long)meta->offset);
}

/* Results differ by at most @p part of their size; 0: not at all. */
static void expect_same_values(tn_tensor *a, tn_tensor *b, double part)
{
    tn_tensor *x = NULL, *y = NULL;
    EXPECT_EQ_INT(a->dtype, b->dtype);
    EXPECT_EQ_INT(a->ndim, b->ndim);
    if (a->ndim != b->ndim || memcmp(a->sizes, b->sizes, sizeof(int64_t) * (size_t)a->ndim) != 0) {
        test_wrong(__FILE__, __LINE__, "the sizes differ");
        return;
    }
    tn_tensor_opts plain = tn_opts(TN_DTYPE_C128, TN_CPU);
    ASSERT_OK(tn_empty(a->sizes, a->ndim, &plain, TN_FORMAT_CONTIGUOUS, &x));
    ASSERT_OK(tn_empty(b->sizes, b->ndim, &plain, TN_FORMAT_CONTIGUOUS, &y));
    ASSERT_OK(tn_copy_(x, a, false));
    ASSERT_OK(tn_copy_(y, b, false));
    const double *p = x->data, *q = y->data;
    for (int64_t i = 0; p && i < 2 * x->numel; i++) {
        if (p[i] == q[i] || (isnan(p[i]) && isnan(q[i])) ||
            fabs(p[i] - q[i]) <= part * (1 + fabs(q[i])))
            continue;
        test_wrong(__FILE__, __LINE__, "element %lld is %a (%g) and %a (%g)", (long long)(i / 2),
                   p[i], p[i], q[i], q[i]);
        break;
    }
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

/* The tensors of two calls' results in pairs; @p each gets no NULL. */
typedef void pair_fn(const bundle *args[2], tn_tensor *a, tn_tensor *b, double part);

static void compare_pair(const bundle *args[2], tn_tensor *a, tn_tensor *b, double part,
                         pair_fn *each)
{
    EXPECT((a == NULL) == (b == NULL));
    if (a && b)
        each(args, a, b, part);
}

static void compare(const bundle *args[2], const bundle *a, const bundle *b, double part,
                    pair_fn *each)
{
    EXPECT_EQ_INT(a->n, b->n);
    for (int i = 0; i < a->n && i < b->n; i++) {
        const tn_value *x = &a->v[i], *y = &b->v[i];
        EXPECT_EQ_INT(x->tag, y->tag);
        if (x->tag != y->tag)
            continue;
        if (x->tag == TN_TAG_TENSOR)
            compare_pair(args, x->u.tensor, y->u.tensor, part, each);
        if (x->tag != TN_TAG_TENSOR_LIST)
            continue;
        EXPECT_EQ_INT(x->count, y->count);
        for (uint32_t k = 0; k < x->count && k < y->count; k++)
            compare_pair(args, x->u.tensors[k], y->u.tensors[k], part, each);
    }
}

static void on_both_devices(const bundle *args[2], tn_tensor *cpu, tn_tensor *meta, double part)
{
    (void)part;
    if (cpu->device.type == TN_DEVICE_META) /* a sample that names the device */
        return;
    EXPECT(meta->device.type == TN_DEVICE_META);
    expect_same_geometry(cpu, meta);
    EXPECT_EQ_INT(sample_shares_with(args[1], meta), sample_shares_with(args[0], cpu));
}

static void in_two_ways(const bundle *args[2], tn_tensor *a, tn_tensor *b, double part)
{
    (void)args;
    if (a->device.type == TN_DEVICE_CPU)
        expect_same_values(a, b, part);
}

/* A failure that only somebody who sees the values can find. */
static bool is_about_values(const char *text)
{
    static const char *const parts[] = {
        "ZeroDivision",
        "out of range",
        "out of bounds",
        "singular",
        "is zero and using it on lu_solve",
        "allocated size does not match",
        "cannot be broadcast to indexing result",
        "without overflow",
        "number of ones in mask",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]))
            return true;
    return false;
}

/* The call on the CPU and on Meta: both succeed and agree, or both fail in the same way. */
static void expect_meta_agrees(const tni_sample *s, const bundle *real)
{
    bundle meta = bundle_copy(real), x = {0}, y = {0};
    char text[512];
    bundle_reform(&meta, on_meta, NULL);
    tn_status on_cpu = sample_call(s->op, real, &x);
    snprintf(text, sizeof text, "%s", on_cpu == TN_OK ? "success" : tn_last_error());
    tn_status there = sample_call(s->op, &meta, &y);
    if (on_cpu != there && (there != TN_OK || !is_about_values(text)))
        test_wrong(__FILE__, __LINE__, "on the CPU: %s; on Meta: %s", text,
                   there == TN_OK ? "success" : tn_last_error());
    if (on_cpu == there)
        compare((const bundle *[]){real, &meta}, &x, &y, 0, on_both_devices);
    bundle_clear(&x);
    bundle_clear(&y);
    bundle_clear(&meta);
}

/* ---- every sample, in another form ---- */

typedef struct form {
    const char *name;
    tn_tensor *(*make)(tn_tensor *t, void *arg);
    int arg;
} form;

static bundle formed(const tni_sample *s, const form *f)
{
    bundle b = sample_arguments(s);
    int arg = f->arg;
    bundle_reform(&b, f->make, &arg);
    return b;
}

static bool is_right(const tni_sample *s)
{
    return s->status == TN_OK;
}

TEST(meta_agrees_in_every_dtype)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        bundle plain = sample_arguments(s);
        tn_dtype change[2] = {TN_DTYPE_NONE, TN_DTYPE_NONE};
        for (int k = plain.n - 1; k >= 0; k--)
            if (plain.v[k].tag == TN_TAG_TENSOR && plain.v[k].u.tensor)
                change[0] = (tn_dtype)plain.v[k].u.tensor->dtype;
        bundle_clear(&plain);
        if (!is_right(s) || change[0] == TN_DTYPE_NONE || sample_needs_data(s->op))
            continue;
        for (int d = 0; d < TN_DTYPE_LIMIT; d++) {
            if (!tn_dtype_valid((tn_dtype)d))
                continue;
            change[1] = (tn_dtype)d;
            bundle b = sample_arguments(s);
            bundle_reform(&b, in_dtype, change);
            sample_note(s, tn_dtype_name(change[1]));
            expect_meta_agrees(s, &b);
            bundle_clear(&b);
        }
    }
}

static void run_on_both(const form *forms, size_t n)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        for (size_t k = 0; is_right(s) && !sample_needs_data(s->op) && k < n; k++) {
            bundle b = formed(s, &forms[k]);
            sample_note(s, forms[k].name);
            if (bundle_has_tensors(&b))
                expect_meta_agrees(s, &b);
            bundle_clear(&b);
        }
    }
}

static const form layouts[] = {
    {"the first dimension expanded", expanded, 0},
    {"the last dimension expanded", expanded, 1},
    {"sliced", sliced, 0},
    {"channels last", channels_last, 0},
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

TEST(meta_agrees_in_every_layout)
{
    run_on_both(layouts, N_LAYOUTS);
}

TEST(meta_agrees_on_tensors_without_elements)
{
    static const form none[] = {{"nothing of the first dimension", emptied, 0},
                                {"nothing of the last dimension", emptied, 1}};
    run_on_both(none, 2);
}

TEST(meta_agrees_on_tensors_without_dimensions)
{
    static const form point[] = {{"without dimensions", a_point, 0}};
    run_on_both(point, 1);
}

/* ---- values ---- */

/* The order of sums in a product of matrices may follow the layout and the instruction set; so may
 * the rounding of the weights of cubic polynomials. */
static bool multiplies(const char *op)
{
    static const char *const parts[] = {"mm",     "matmul", "linear",    "dot",  "mv",     "outer",
                                        "logits", "_loss",  "conv",      "lstm", "gru",    "rnn",
                                        "linalg", "einsum", "attention", "pinv", "bicubic"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(op, parts[i]))
            return true;
    return false;
}

static double allowed(const char *op, const bundle *results)
{
    double part = 0;
    for (int i = 0; multiplies(op) && i < results->n; i++)
        if (results->v[i].tag == TN_TAG_TENSOR && results->v[i].u.tensor) {
            int dtype = results->v[i].u.tensor->dtype;
            double here = dtype == TN_DTYPE_BF16 ? 2e-2 : dtype == TN_DTYPE_F16 ? 2e-3 : 1e-5;
            part = here > part ? here : part;
        }
    return part;
}

static bool writes(const tni_sample *s)
{
    tni_schema *schema = sample_schema(s->op);
    bool some = strstr(s->op, "instance_norm") != NULL; /* running statistics */
    for (int i = 0; i < schema->nargs; i++)
        some = some || schema->args[i].is_write;
    tni_schema_free(schema);
    return some;
}

/* Running statistics of a batch that is trained with, which the schema does not say are written: in
 * any layout whose elements do not share memory. */
static void own_statistics(const tni_sample *s, bundle *b)
{
    if (strcmp(s->op, "aten::native_batch_norm") != 0 && strcmp(s->op, "aten::batch_norm") != 0)
        return;
    for (int i = 3; i < 5; i++)
        if (b->v[5].u.i && b->v[i].tag == TN_TAG_TENSOR && b->v[i].u.tensor) {
            bundle one = {.n = 1, .v = {b->v[i]}};
            bundle_reform(&one, contiguous, NULL);
            b->v[i] = one.v[0];
        }
}

TEST(a_layout_changes_no_value)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (!is_right(s) || sample_looks_at_memory(s->op) || sample_uninitialised(s->op) ||
            writes(s))
            continue;
        for (int k = 0; k < N_LAYOUTS; k++) {
            bundle a = formed(s, &layouts[k]), b, x = {0}, y = {0};
            own_statistics(s, &a);
            b = bundle_copy(&a);
            bundle_reform(&b, contiguous, NULL);
            sample_note(s, layouts[k].name);
            EXPECT_EQ_INT(sample_call(s->op, &a, &x), sample_call(s->op, &b, &y));
            compare((const bundle *[]){&a, &b}, &x, &y, allowed(s->op, &x), in_two_ways);
            bundle_clear(&x);
            bundle_clear(&y);
            bundle_clear(&a);
            bundle_clear(&b);
        }
    }
}

static int64_t elements(const bundle *b)
{
    int64_t most = 0;
    for (int i = 0; i < b->n; i++)
        for (uint32_t k = 0; k < (b->v[i].tag == TN_TAG_TENSOR_LIST ? b->v[i].count : 1u); k++) {
            const tn_tensor *t = b->v[i].tag == TN_TAG_TENSOR_LIST ? b->v[i].u.tensors[k]
                                 : b->v[i].tag == TN_TAG_TENSOR    ? b->v[i].u.tensor
                                                                   : NULL;
            most = t && t->numel > most ? t->numel : most;
        }
    return most;
}

/* The arguments grown until one of them has more elements than a piece of work takes; false:
 * there is no such call, or its result is enormous. */
static bool grow(const tni_sample *s, bool last, bundle *b)
{
    enum { TOO_MANY = 4000000 };
    int64_t enough = test_sanitized() || test_thread_sanitized() ? 36000 : 70000;
    /* Squares and cubes of it, in the result or on the way there. */
    if (strstr(s->op, "combinations") || strstr(s->op, "multilabel") ||
        (strstr(s->op, "embedding_bag") && strstr(s->op, "backward")))
        return false;
    *b = sample_arguments(s);
    growth g = {.last = last, .times = enough / (elements(b) + 1) + 1};
    bundle_reform(b, grown, &g);
    bundle meta = bundle_copy(b), x = {0};
    bundle_reform(&meta, on_meta, NULL);
    bool fits =
        bundle_has_tensors(b) && sample_call(s->op, &meta, &x) == TN_OK && elements(&x) <= TOO_MANY;
    bundle_clear(&meta);
    bundle_clear(&x);
    if (!fits)
        bundle_clear(b);
    return fits;
}

TEST(several_threads_give_the_bits_of_one)
{
    int before = tn_num_threads(), ran = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        for (int last = 0; is_right(s) && !sample_uninitialised(s->op) && last < 2; last++) {
            bundle a, b, x = {0}, y = {0};
            sample_note(s, last ? "long rows" : "many rows");
            if (!grow(s, last, &a))
                continue;
            b = bundle_copy(&a);
            bundle_reform(&b, contiguous, NULL); /* of its own, where a call writes */
            EXPECT_OK(tn_set_num_threads(1));
            tn_status alone = sample_call(s->op, &a, &x);
            EXPECT_OK(tn_set_num_threads(3));
            EXPECT_EQ_INT(sample_call(s->op, &b, &y), alone);
            compare((const bundle *[]){&a, &b}, &x, &y, 0, in_two_ways);
            bundle_clear(&x);
            bundle_clear(&y);
            bundle_clear(&a);
            bundle_clear(&b);
            ran++;
        }
    }
    EXPECT(ran > tni_num_samples / 2);
    EXPECT_OK(tn_set_num_threads(before));
}

TEST(every_instruction_set_gives_the_values_of_the_first)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        bundle a, b, first = {0}, y = {0};
        tn_status wanted = TN_OK;
        if (!is_right(s) || sample_uninitialised(s->op) || !grow(s, true, &a))
            continue;
        for (tni_isa isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
            if (tni_cpu_use(isa) != isa)
                continue; /* this machine does not have it */
            sample_note(s, tni_isa_name(isa));
            b = bundle_copy(&a);
            bundle_reform(&b, contiguous, NULL); /* of its own, where a call writes */
            tn_status status = sample_call(s->op, &b, isa == TNI_ISA_BASE ? &first : &y);
            if (isa == TNI_ISA_BASE)
                wanted = status;
            EXPECT_EQ_INT(status, wanted);
            if (isa != TNI_ISA_BASE)
                compare((const bundle *[]){&a, &b}, &y, &first, allowed(s->op, &first),
                        in_two_ways);
            bundle_clear(&y);
            bundle_clear(&b);
        }
        bundle_clear(&first);
        bundle_clear(&a);
    }
    tni_cpu_use(TNI_ISA_AVX512);
}
