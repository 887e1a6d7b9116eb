/* SPDX-License-Identifier: MIT */
/* Every byte but 0 is true, whoever made the bytes: see Note [Bool bytes] in cpu/loops.h. Each
 * sample of each operator is called with bools in which a true is 1, then with bools in which it is
 * 2, 0x80 or 0xff, and the results must agree, on every instruction set. That the first result is
 * right is for the golden data. */
#include <math.h>
#include <string.h>

#include "harness/test.h"
#include "cpu/loops.h"
#include "ops/sampling.h"
#include "tenon/ops.h"

/* ---- bools, clean and not ---- */

/* Which tensors of a call become bools: those that are, all, or one of them. */
enum { AS_THEY_ARE = -2, ALL_OF_THEM = -1 };

typedef struct change {
    int which, seen;
    bool dirty, any;
} change;

static const uint8_t truths[] = {2, 0xff, 1, 0x80, 3, 0xfe, 4};

static void make_dirty(tn_tensor *t)
{
    uint8_t *bytes = t->data;
    for (int64_t i = 0; i < t->numel; i++)
        if (bytes[i])
            bytes[i] = truths[i % (int64_t)sizeof truths];
}

static tn_tensor *as_bool(tn_tensor *t, void *arg)
{
    change *c = arg;
    int number = c->seen++;
    bool chosen = c->which == ALL_OF_THEM || c->which == number;
    if (t->device.type != TN_DEVICE_CPU || (t->dtype != TN_DTYPE_BOOL && !chosen))
        return tn_tensor_ref(t);
    tn_tensor *made = sample_relaid(t, NULL, TN_DTYPE_BOOL);
    c->any = true;
    if (c->dirty)
        make_dirty(made);
    return made;
}

/* @retval false  no tensor of this call is a bool */
static bool arguments(const tni_sample *s, int which, bool dirty, bundle *out, int *tensors)
{
    change c = {.which = which, .dirty = dirty};
    *out = sample_arguments(s);
    bundle_reform(out, as_bool, &c);
    *tensors = c.seen;
    return c.any;
}

/* ---- comparing ---- */

static bool same_tensor(tn_tensor *a, tn_tensor *b)
{
    tn_tensor *x = NULL, *y = NULL;
    if (!a || !b)
        return a == b;
    if (a->device.type != TN_DEVICE_CPU)
        return true;
    bool same = a->ndim == b->ndim && a->dtype == b->dtype;
    for (int d = 0; same && d < a->ndim; d++)
        same = a->sizes[d] == b->sizes[d];
    if (!same)
        return false;
    tn_tensor_opts plain = tn_opts(TN_DTYPE_C128, TN_CPU);
    ASSERT_OK(tn_empty(a->sizes, a->ndim, &plain, TN_FORMAT_CONTIGUOUS, &x));
    ASSERT_OK(tn_empty(b->sizes, b->ndim, &plain, TN_FORMAT_CONTIGUOUS, &y));
    ASSERT_OK(tn_copy_(x, a, false));
    ASSERT_OK(tn_copy_(y, b, false));
    const double *p = x->data, *q = y->data;
    for (int64_t i = 0; p && same && i < 2 * x->numel; i++)
        same = p[i] == q[i] || (isnan(p[i]) && isnan(q[i]));
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    return same;
}

static bool same_value(const tn_value *x, const tn_value *y)
{
    if (x->tag != y->tag)
        return false;
    switch (x->tag) {
    case TN_TAG_TENSOR:
        return same_tensor(x->u.tensor, y->u.tensor);
    case TN_TAG_TENSOR_LIST:
        for (uint32_t k = 0; k < x->count && x->count == y->count; k++)
            if (!same_tensor(x->u.tensors[k], y->u.tensors[k]))
                return false;
        return x->count == y->count;
    case TN_TAG_BOOL:
    case TN_TAG_INT:
        return x->u.i == y->u.i;
    case TN_TAG_FLOAT:
        return x->u.f == y->u.f || (isnan(x->u.f) && isnan(y->u.f));
    default:
        return true;
    }
}

/* Who shows bytes as they are, or memory that nobody wrote. */
static bool shows_bytes(const char *op)
{
    return sample_uninitialised(op) || strstr(op, "view.dtype") || strstr(op, "view_copy.dtype") ||
           strstr(op, "_new_zeros_with_same_feature_meta");
}

/* How many calls with bools there were. */
static int check_sample(const tni_sample *s)
{
    int calls = 0, tensors = 1;
    for (int which = AS_THEY_ARE; which < tensors; which++) {
        bundle clean, dirty, x = {0}, y = {0};
        if (tensors == 1 && which == 0) { /* the same as all of them */
            break;
        }
        bool any = arguments(s, which, false, &clean, &tensors);
        arguments(s, which, true, &dirty, &tensors);
        tn_status want = any ? sample_call(s->op, &clean, &x) : TN_INVALID;
        if (want == TN_OK) {
            sample_note(s, which == AS_THEY_ARE   ? "bool bytes"
                           : which == ALL_OF_THEM ? "all tensors bool"
                                                  : "one tensor bool");
            calls++;
            EXPECT_OK(sample_call(s->op, &dirty, &y));
            EXPECT_EQ_INT(x.n, y.n);
            for (int i = 0; i < x.n && i < y.n; i++)
                EXPECT(same_value(&x.v[i], &y.v[i]));
        }
        bundle_clear(&x);
        bundle_clear(&y);
        bundle_clear(&clean);
        bundle_clear(&dirty);
    }
    return calls;
}

static void check_all(void)
{
    int calls = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status == TN_OK && !shows_bytes(s->op))
            calls += check_sample(s);
    }
    EXPECT(calls > 1000); /* otherwise this test looked at nothing */
}

TEST(each_operator_takes_any_byte_but_0_for_true)
{
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++)
        if (tni_cpu_use((tni_isa)isa) == (tni_isa)isa)
            check_all();
    tni_cpu_use(TNI_ISA_AVX512);
}

/* ---- many bytes: whole vectors, several chunks of a count, several threads ---- */

enum { MANY = 100003 };

typedef tn_status (*asked)(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out);

static tn_status ask_sum(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    (void)numbers;
    return tn_sum(mask, TN_DTYPE_NONE, out);
}
static tn_status ask_nonzero(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    (void)numbers;
    return tn_nonzero(mask, out);
}
static tn_status ask_select(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    return tn_masked_select(numbers, mask, out);
}
static tn_status ask_index(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    return tn_index(numbers, &mask, 1, out);
}
static tn_status ask_put(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    TN_AUTO(tn_tensor) values = NULL;
    TN_TRY(tn_masked_select(numbers, mask, &values));
    TN_TRY(tn_neg(values, out));
    tn_tensor_unref(values);
    values = *out;
    *out = NULL;
    return tn_index_put(numbers, &mask, 1, values, false, out);
}
static tn_status ask_scatter(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    return tn_masked_scatter(numbers, mask, numbers, out);
}
static tn_status ask_fill(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    return tn_masked_fill(numbers, mask, tn_float(-1), out);
}
static tn_status ask_running(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    (void)numbers;
    return tn_cumsum(mask, 0, TN_DTYPE_NONE, out);
}
static tn_status ask_place(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    (void)numbers;
    TN_AUTO(tn_tensor) smallest = NULL;
    return tn_min_dim(mask, 0, false, &smallest, out);
}
static tn_status ask_product(tn_tensor *mask, tn_tensor *numbers, tn_tensor **out)
{
    return tn_mul(numbers, mask, out);
}

TEST(masks_of_many_bytes_are_counted_as_they_are_followed)
{
    static const asked questions[] = {ask_sum,   ask_nonzero, ask_select, ask_index,
                                      ask_put,   ask_scatter, ask_fill,   ask_running,
                                      ask_place, ask_product};
    const int64_t n = MANY;
    tn_tensor *clean = NULL, *dirty = NULL, *numbers = NULL;
    ASSERT_OK(tni_tensor_new(1, &n, NULL, TN_DTYPE_BOOL, TN_CPU, &clean));
    ASSERT_OK(tni_tensor_new(1, &n, NULL, TN_DTYPE_BOOL, TN_CPU, &dirty));
    ASSERT_OK(tni_tensor_new(1, &n, NULL, TN_DTYPE_F32, TN_CPU, &numbers));
    for (int64_t i = 0; i < n; i++) {
        ((uint8_t *)clean->data)[i] = i % 3 != 1;
        ((float *)numbers->data)[i] = (float)(i + 1);
    }
    memcpy(dirty->data, clean->data, (size_t)n);
    make_dirty(dirty);
    for (int isa = TNI_ISA_BASE; isa <= TNI_ISA_AVX512; isa++) {
        if (tni_cpu_use((tni_isa)isa) != (tni_isa)isa)
            continue;
        for (size_t q = 0; q < sizeof questions / sizeof questions[0]; q++) {
            tn_tensor *x = NULL, *y = NULL;
            test_note("question %zu, %s", q, tni_isa_name((tni_isa)isa));
            ASSERT_OK(questions[q](clean, numbers, &x));
            ASSERT_OK(questions[q](dirty, numbers, &y));
            EXPECT(same_tensor(x, y));
            tn_tensor_unref(x);
            tn_tensor_unref(y);
        }
    }
    tni_cpu_use(TNI_ISA_AVX512);
    tn_tensor_unref(clean);
    tn_tensor_unref(dirty);
    tn_tensor_unref(numbers);
}
