/* SPDX-License-Identifier: MIT */
/* The matrix: every sample of every declaration, run in every way that must agree.
 *
 *   - Meta gives the CPU's sizes, strides, offset, dtype and aliasing, and fails with the same
 * status;
 *   - arguments in another memory layout give the same values;
 *   - the in-place and out variants give the function's values, write once (one version), and keep
 * the layout of an out of the right size; so does every operator that is declared to write;
 *   - error samples fail as declared, on the CPU and on Meta, and write nothing.
 * Consistency only: that the values are right is for the golden data (test_golden.c). */
#include <math.h>
#include <string.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "ops/sampling.h"
#include "tenon/ops.h"

/* ---- tensors in other clothes ---- */

typedef enum clothing { AS_IS, ON_META, TRANSPOSED, EVERY_SECOND } clothing;

/* The same values in other memory: dimensions in reverse order, or every second element. */
static tn_tensor *relaid(tn_tensor *t, clothing how)
{
    int64_t strides[TN_MAX_DIMS], step = how == EVERY_SECOND ? 2 : 1;
    for (int k = 0; k < t->ndim; k++) {
        int d = how == TRANSPOSED ? k : t->ndim - 1 - k;
        strides[d] = step;
        step *= t->sizes[d] ? t->sizes[d] : 1;
    }
    return sample_relaid(t, strides, (tn_dtype)t->dtype);
}

static tn_tensor *dress(tn_tensor *t, void *arg)
{
    clothing how = *(clothing *)arg;
    if (t->device.type == TN_DEVICE_META)
        return tn_tensor_ref(t);
    return how == ON_META ? sample_on_meta(t) : relaid(t, how);
}

static bundle arguments(const tni_sample *s, clothing how)
{
    bundle b = sample_arguments(s);
    tni_schema *schema = sample_schema(s->op);
    for (int i = 0; how == ON_META && i < b.n; i++) {
        const tni_schema_type *type = schema->args[i].type;
        /* A factory is told by its device argument. */
        if (b.v[i].tag == TN_TAG_DEVICE ||
            (b.v[i].tag == TN_TAG_NONE && type->kind == TNI_TYPE_OPTIONAL &&
             type->children[0]->kind == TNI_TYPE_DEVICE && schema->tensor_args == 0))
            b.v[i] = tn_value_device(TN_META);
    }
    tni_schema_free(schema);
    if (how != AS_IS)
        bundle_reform(&b, dress, &how);
    return b;
}

/* ---- comparing ---- */

static bool tolerant(const char *op) /* layouts may change the order of a sum */
{
    static const char *const names[] = {"mm",  "matmul", "linear", "dot",    "mv",
                                        "sum", "mean",   "outer",  "logits", "_loss"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strstr(op, names[i]))
            return true;
    }
    return false;
}

static void expect_same_values(tn_tensor *a, tn_tensor *b, bool exact)
{
    tn_tensor *x = NULL, *y = NULL;
    tn_tensor_opts plain = tn_opts(TN_DTYPE_C128, TN_CPU);
    ASSERT_OK(tn_empty(a->sizes, a->ndim, &plain, TN_FORMAT_CONTIGUOUS, &x));
    ASSERT_OK(tn_empty(b->sizes, b->ndim, &plain, TN_FORMAT_CONTIGUOUS, &y));
    ASSERT_OK(tn_copy_(x, a, false));
    ASSERT_OK(tn_copy_(y, b, false));
    const double *p = x->data, *q = y->data;
    double scale = a->dtype == TN_DTYPE_BF16 ? 2e-2 : a->dtype == TN_DTYPE_F16 ? 2e-3 : 1e-5;
    for (int64_t i = 0; p && i < 2 * x->numel; i++) {
        bool same = p[i] == q[i] || (isnan(p[i]) && isnan(q[i])) ||
                    (!exact && fabs(p[i] - q[i]) <= scale * (1 + fabs(q[i])));
        EXPECT(same);
        if (!same)
            break;
    }
    tn_tensor_unref(x);
    tn_tensor_unref(y);
}

static void expect_same_geometry(const tn_tensor *a, const tn_tensor *b)
{
    EXPECT_EQ_INT(a->ndim, b->ndim);
    EXPECT_EQ_INT(a->dtype, b->dtype);
    EXPECT_EQ_INT(a->offset, b->offset);
    for (int d = 0; a->ndim == b->ndim && d < a->ndim; d++) {
        EXPECT_EQ_INT(a->sizes[d], b->sizes[d]);
        EXPECT_EQ_INT(a->strides[d], b->strides[d]);
    }
}

static void compare_tensors(const char *op, const bundle *a_args, tn_tensor *a,
                            const bundle *b_args, tn_tensor *b, clothing how)
{
    if (!a || !b) {
        EXPECT(a == b);
        return;
    }
    if (how == ON_META) {
        EXPECT(b->device.type == TN_DEVICE_META);
        EXPECT(tn_tensor_data(b) == NULL);
        expect_same_geometry(a, b);
        EXPECT_EQ_INT(sample_shares_with(b_args, b), sample_shares_with(a_args, a));
        return;
    }
    EXPECT_EQ_INT(a->ndim, b->ndim);
    EXPECT_EQ_INT(a->dtype, b->dtype);
    for (int d = 0; a->ndim == b->ndim && d < a->ndim; d++)
        EXPECT_EQ_INT(a->sizes[d], b->sizes[d]);
    if (!sample_uninitialised(op) && a->device.type == TN_DEVICE_CPU)
        expect_same_values(a, b, !tolerant(op));
}

static void compare(const char *op, const bundle *a_args, const bundle *a, const bundle *b_args,
                    const bundle *b, clothing how)
{
    EXPECT_EQ_INT(a->n, b->n);
    for (int i = 0; i < a->n && i < b->n; i++) {
        const tn_value *x = &a->v[i], *y = &b->v[i];
        EXPECT_EQ_INT(x->tag, y->tag);
        if (x->tag == TN_TAG_TENSOR)
            compare_tensors(op, a_args, x->u.tensor, b_args, y->u.tensor, how);
        EXPECT_EQ_INT(x->tag == TN_TAG_TENSOR_LIST ? x->count : 0,
                      y->tag == TN_TAG_TENSOR_LIST ? y->count : 0);
        for (uint32_t k = 0; x->tag == TN_TAG_TENSOR_LIST && k < x->count && k < y->count; k++)
            compare_tensors(op, a_args, x->u.tensors[k], b_args, y->u.tensors[k], how);
    }
}

/* ---- the tests ---- */

static void run_clothed(clothing how, const char *what)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK || (how == ON_META && sample_needs_data(s->op)))
            continue;
        if (how != ON_META && sample_looks_at_memory(s->op))
            continue;
        sample_note(s, what);
        bundle a = arguments(s, AS_IS), b = arguments(s, how), x = {0}, y = {0};
        EXPECT_OK(sample_call(s->op, &a, &x));
        EXPECT_OK(sample_call(s->op, &b, &y));
        compare(s->op, &a, &x, &b, &y, how);
        bundle_clear(&x);
        bundle_clear(&y);
        bundle_clear(&a);
        bundle_clear(&b);
    }
}

TEST(there_are_samples_of_every_operator)
{
    tn_op **ops;
    size_t n;
    ASSERT_OK(tn_op_list(&ops, &n));
    for (size_t i = 0; i < n; i++) {
        const char *name = tn_op_name(ops[i]);
        /* No literal is a storage or a stream: tests/ops/test_set.c has these. */
        bool found = strncmp(name, "aten::", 6) != 0 || strstr(name, "source_Storage") != NULL ||
                     strcmp(name, "aten::record_stream") == 0;
        for (int k = 0; k < tni_num_samples && !found; k++)
            found = strcmp(tni_samples[k].op, name) == 0 ||
                    strcmp(tni_samples[k].inplace, name) == 0 ||
                    strcmp(tni_samples[k].out, name) == 0;
        test_note("%s", name);
        EXPECT(found);
    }
    tn_op_list_free(ops);
}

TEST(meta_agrees_with_the_cpu_in_sizes_strides_dtype_and_aliasing)
{
    run_clothed(ON_META, "on meta");
}

TEST(transposed_arguments_give_the_same_values)
{
    run_clothed(TRANSPOSED, "transposed");
}

TEST(strided_arguments_give_the_same_values)
{
    run_clothed(EVERY_SECOND, "every second element");
}

TEST(error_samples_fail_as_declared_on_cpu_and_meta)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status == TN_OK)
            continue;
        for (clothing how = AS_IS; how <= ON_META; how++) {
            bool data_error = strstr(s->text, "ZeroDivision") || sample_needs_data(s->op) ||
                              strstr(s->text, "is out of bounds for dimension 0") ||
                              strstr(s->text, "index out of range in self") ||
                              strstr(s->text, "tried to access index") ||
                              strstr(s->text, "number of ones in mask");
            /* What is about data, or about Meta itself, is another question there. */
            if (how == ON_META && (data_error || strstr(s->args, "meta")))
                continue;
            sample_note(s, how == ON_META ? "on meta" : "on the CPU");
            bundle args = arguments(s, how), rets = {0};
            EXPECT_FAIL(s->status, s->text, sample_call(s->op, &args, &rets));
            bundle_clear(&args);
        }
    }
}

TEST(in_place_variants_write_the_functions_result_once)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK || !s->inplace[0])
            continue;
        bundle a = arguments(s, AS_IS), b = arguments(s, EVERY_SECOND), x = {0}, y = {0};
        tn_tensor *self = b.v[0].u.tensor;
        sample_note(s, "in place");
        EXPECT_OK(sample_call(s->op, &a, &x));
        const tn_tensor *want = x.n ? x.v[0].u.tensor : NULL;
        bool fits = want && want->dtype == self->dtype && want->ndim == self->ndim &&
                    memcmp(want->sizes, self->sizes, sizeof(int64_t) * (size_t)self->ndim) == 0;
        if (fits && !sample_shares_with(&a, want)) {
            bundle_clear(&x);
            bundle_clear(&a);
            bundle_clear(&b);
            continue; /* an in-place view: tests/shape */
        }
        if (fits) {
            uint32_t version = 0;
            EXPECT_OK(sample_call(s->inplace, &b, &y));
            EXPECT(y.n == 1 && y.v[0].u.tensor == self);
            expect_same_values(x.v[0].u.tensor, self, !tolerant(s->op));
            EXPECT_OK(tn_tensor_version(self, &version));
            EXPECT_EQ_INT(version, 1);
        }
        bundle_clear(&x);
        bundle_clear(&y);
        bundle_clear(&a);
        bundle_clear(&b);
    }
}

/* Room for an out: nothing, the right size in odd strides, or the wrong size. */
static tn_tensor *make_out(const tn_tensor *like, int kind)
{
    tn_tensor *t = NULL;
    const int64_t zero[] = {0}, seven[] = {7};
    if (kind == 1 && !tni_is_meta(like))
        t = relaid((tn_tensor *)(uintptr_t)like, EVERY_SECOND);
    else
        ASSERT_OK(tni_tensor_new(1, kind == 0 ? zero : seven, NULL, (tn_dtype)like->dtype,
                                 like->device, &t));
    return t;
}

TEST(out_variants_write_the_functions_result_once_and_keep_a_fitting_layout)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK || !s->out[0])
            continue;
        bundle a = arguments(s, AS_IS), x = {0};
        sample_note(s, "out");
        EXPECT_OK(sample_call(s->op, &a, &x));
        tn_tensor *want = x.n == 1 && x.v[0].tag == TN_TAG_TENSOR ? x.v[0].u.tensor : NULL;
        for (int kind = 0; want && kind < 3; kind++) {
            bundle b = sample_arguments_of(s, s->out), y = {0};
            tn_tensor *out = make_out(want, kind);
            int64_t stride = out->ndim ? out->strides[out->ndim - 1] : 0;
            uint32_t version = 0;
            b.v[b.n - 1] = tn_value_tensor(out); /* one result: the last argument */
            EXPECT_OK(sample_call(s->out, &b, &y));
            EXPECT(y.n == 1 && y.v[0].u.tensor == out);
            EXPECT_EQ_INT(out->ndim, want->ndim);
            if (out->ndim == want->ndim && !sample_uninitialised(s->op) && !tni_is_meta(out))
                expect_same_values(want, out, !tolerant(s->op));
            if (kind == 1 && out->ndim && out->numel && !tni_is_meta(out))
                EXPECT_EQ_INT(out->strides[out->ndim - 1], stride);
            EXPECT_OK(tn_tensor_version(out, &version));
            EXPECT_EQ_INT(version, 1);
            bundle_clear(&y);
            bundle_clear(&b);
            tn_tensor_unref(out);
        }
        bundle_clear(&x);
        bundle_clear(&a);
    }
}

TEST(out_variants_of_operators_over_lists_write_every_result)
{
    int seen = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK || !s->out[0])
            continue;
        bundle a = arguments(s, AS_IS), x = {0};
        sample_note(s, "out");
        EXPECT_OK(sample_call(s->op, &a, &x));
        bool list = x.n == 1 && x.v[0].tag == TN_TAG_TENSOR_LIST;
        for (int kind = 0; list && kind < 3; kind++) {
            bundle b = sample_arguments_of(s, s->out), y = {0};
            tn_value *place = &b.v[b.n - 1];
            *place = sample_place_for(&x.v[0], make_out, kind);
            EXPECT_OK(sample_call(s->out, &b, &y));
            EXPECT_EQ_INT(y.n, 0);
            for (int64_t k = 0; k < (int64_t)x.v[0].count; k++)
                expect_same_values(x.v[0].u.tensors[k], place->u.tensors[k], !tolerant(s->op));
            bundle_clear(&y);
            bundle_clear(&b);
            seen++;
        }
        if (list && x.v[0].count > 1) { /* one too few is refused */
            bundle b = sample_arguments_of(s, s->out), y = {0};
            b.v[b.n - 1] = tn_value_tensors(x.v[0].u.tensors, x.v[0].count - 1);
            EXPECT_EQ_INT(sample_call(s->out, &b, &y), TN_INVALID);
            EXPECT(strstr(tn_last_error(), "expected an out= argument of size") != NULL);
            bundle_clear(&b);
        }
        bundle_clear(&x);
        bundle_clear(&a);
    }
    EXPECT(seen > 100);
}

/* Whether so many writes, other than one, are the reference's too: sizes it has already, a history
 * it does not have, noise that is not needed; and two diagonals of a tall matrix. */
static bool counts_otherwise(const char *op, uint32_t writes)
{
    static const char *const may_write_nothing[] = {"aten::resize_", "aten::detach_",
                                                    "aten::empty.out", "aten::rrelu_with_noise",
                                                    "aten::rrelu_with_noise.out"};
    for (size_t i = 0; i < sizeof may_write_nothing / sizeof *may_write_nothing; i++) {
        if (writes == 0 && strcmp(op, may_write_nothing[i]) == 0)
            return true;
    }
    return writes == 2 && strcmp(op, "aten::fill_diagonal_") == 0;
}

static void expect_one_write(const tni_schema *schema, const bundle *b, const uint32_t *before)
{
    for (int k = 0; k < schema->nargs; k++) {
        uint32_t after = 0;
        if (!schema->args[k].is_write || b->v[k].tag != TN_TAG_TENSOR || !b->v[k].u.tensor)
            continue;
        EXPECT_OK(tn_tensor_version(b->v[k].u.tensor, &after));
        if (!counts_otherwise(schema->full, after - before[k]))
            EXPECT_EQ_INT(after - before[k], 1);
    }
}

/* Call @p op, whose results go to @p kind of tensors where it takes them as arguments; kind 3 is
 * what @p b has. Clears @p b. */
static void call_and_count(const char *op, bundle *b, const bundle *results, int kind)
{
    tni_schema *schema = sample_schema(op);
    uint32_t before[TNI_SCHEMA_MAX_ARGS] = {0};
    bundle y = {0};
    b->n = schema->nargs;
    for (int k = 0, r = 0; k < schema->nargs; k++) {
        if (kind < 3 && schema->args[k].is_out && r < results->n) {
            tn_value_clear(&b->v[k]);
            b->v[k] = sample_place_for(&results->v[r++], make_out, kind);
        }
        if (schema->args[k].is_write && b->v[k].tag == TN_TAG_TENSOR && b->v[k].u.tensor)
            EXPECT_OK(tn_tensor_version(b->v[k].u.tensor, &before[k]));
    }
    EXPECT_OK(sample_call(op, b, &y));
    expect_one_write(schema, b, before);
    bundle_clear(&y);
    bundle_clear(b);
    tni_schema_free(schema);
}

TEST(what_a_call_is_declared_to_write_counts_exactly_one_write)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        tni_schema *schema = s->status == TN_OK ? sample_schema(s->op) : NULL;
        bool writes = schema && schema->is_mutable;
        const char *out = writes ? s->op : s->out[0] ? s->out : NULL;
        tni_schema_free(schema);
        if (!out || s->status != TN_OK)
            continue;
        bundle a = arguments(s, AS_IS), x = {0};
        sample_note(s, "counting writes");
        EXPECT_OK(sample_call(s->op, &a, &x));
        bool all = true; /* a result that a mask leaves out cannot be given a place */
        for (int r = 0; r < x.n; r++)
            all &= x.v[r].tag != TN_TAG_TENSOR || x.v[r].u.tensor;
        for (int kind = 0; all && kind < (writes ? 4 : 3); kind++) {
            bundle b = writes ? arguments(s, AS_IS) : sample_arguments_of(s, out);
            call_and_count(out, &b, &x, kind);
        }
        bundle_clear(&x);
        bundle_clear(&a);
    }
}

TEST(each_allocation_failing_in_any_operator_leaks_nothing)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK)
            continue;
        sample_note(s, "allocations failing");
        bundle args = arguments(s, AS_IS), rets = {0};
        EXPECT_OK(sample_call(s->op, &args, &rets)); /* what is made once is made now */
        bundle_clear(&rets);
        tn_status rc = TN_INTERNAL;
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = sample_call(s->op, &args, &rets);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && tni_test_live == before);
        }
        bundle_clear(&rets);
        EXPECT_EQ_INT(tni_test_live, before);
        bundle_clear(&args);
    }
}
