/* SPDX-License-Identifier: MIT */
/* The matrix: every sample of every declaration on fake tensors, beside the same call on real ones:
 * the results agree in sizes, strides, offset, dtype, device, aliasing and version, and what is
 * refused is refused with the same status and text. What depends on values fails, and says so. */
#include <string.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "core/tensor.h"
#include "gen/samples.h"
#include "op/schema.h"
#include "tenon/dispatch.h"
#include "tenon/fake.h"

enum { MOST = TNI_SCHEMA_MAX_ARGS };

typedef struct bundle {
    tn_value v[MOST];
    int n;
} bundle;

static void bundle_clear(bundle *b)
{
    for (int i = 0; i < b->n; i++)
        tn_value_clear(&b->v[i]);
    b->n = 0;
}

static bundle real_arguments(const tni_sample *s)
{
    bundle b = {0};
    tn_op *op;
    tni_schema *schema;
    char *text;
    ASSERT_OK(tn_op_find(s->op, &op));
    ASSERT_OK(tn_op_schema(op, &text));
    ASSERT_OK(tni_schema_parse(text, &schema));
    tn_string_free(text);
    ASSERT_OK(tni_args_parse(schema, s->args, b.v));
    b.n = schema->nargs;
    tni_schema_free(schema);
    return b;
}

static tn_tensor *fake_of(tn_fake_mode *mode, tn_tensor *t)
{
    tn_tensor *f = NULL;
    if (t)
        ASSERT_OK(tn_fake_from_real(mode, t, &f));
    return f;
}

static tn_tensor *meta_of(tn_tensor *t);

/* With fake tensors of @p mode, or meta tensors when that is NULL. */
static bundle translated(const bundle *real, tn_fake_mode *mode)
{
    bundle b = {.n = real->n};
    for (int i = 0; i < real->n; i++) {
        const tn_value *v = &real->v[i];
        if (v->tag == TN_TAG_TENSOR) {
            b.v[i] = tn_value_take_tensor(mode ? fake_of(mode, v->u.tensor) : meta_of(v->u.tensor));
        } else if (v->tag == TN_TAG_TENSOR_LIST) {
            tn_tensor **list = tni_alloc((v->count + 1) * sizeof *list);
            for (uint32_t k = 0; k < v->count; k++)
                list[k] = mode ? fake_of(mode, v->u.tensors[k]) : meta_of(v->u.tensors[k]);
            b.v[i] = tn_value_take_tensors(list, v->count);
        } else {
            ASSERT_OK(tn_value_copy(v, &b.v[i]));
        }
    }
    return b;
}

static tn_status call(const char *name, const bundle *args, bundle *rets)
{
    tn_op *op;
    ASSERT_OK(tn_op_find(name, &op));
    tn_status st = tn_op_call(op, args->v, args->n, rets->v);
    rets->n = st == TN_OK ? tn_op_num_returns(op) : 0;
    return st;
}

static int shares_with(const bundle *args, const tn_tensor *t)
{
    for (int i = 0; i < args->n; i++)
        if (args->v[i].tag == TN_TAG_TENSOR && args->v[i].u.tensor &&
            tn_tensor_shares_storage(args->v[i].u.tensor, t))
            return i;
    return -1;
}

static void compare_tensors(const bundle *real_args, const tn_tensor *real, const bundle *fake_args,
                            const tn_tensor *fake)
{
    EXPECT((real == NULL) == (fake == NULL));
    if (!real || !fake)
        return;
    EXPECT(tn_is_fake(fake));
    EXPECT(tn_tensor_data(fake) == NULL);
    EXPECT_EQ_INT(fake->device.type, real->device.type);
    EXPECT_EQ_INT(fake->device.index, real->device.index);
    EXPECT(fake->keys == (real->keys | TNI_KS_FAKE));
    EXPECT_EQ_INT(fake->dtype, real->dtype);
    EXPECT_EQ_INT(fake->offset, real->offset);
    EXPECT_EQ_INT(fake->ndim, real->ndim);
    for (int d = 0; fake->ndim == real->ndim && d < real->ndim; d++) {
        EXPECT_EQ_INT(fake->sizes[d], real->sizes[d]);
        EXPECT_EQ_INT(fake->strides[d], real->strides[d]);
    }
    EXPECT_EQ_INT(shares_with(fake_args, fake), shares_with(real_args, real));
    uint32_t a = 0, b = 0;
    EXPECT_OK(tn_tensor_version(real, &a));
    EXPECT_OK(tn_tensor_version(fake, &b));
    EXPECT_EQ_INT(b, a);
}

static void compare(const bundle *real_args, const bundle *real, const bundle *fake_args,
                    const bundle *fake)
{
    EXPECT_EQ_INT(fake->n, real->n);
    for (int i = 0; i < real->n && i < fake->n; i++) {
        const tn_value *x = &real->v[i], *y = &fake->v[i];
        EXPECT_EQ_INT(y->tag, x->tag);
        if (x->tag != y->tag)
            continue;
        if (x->tag == TN_TAG_TENSOR)
            compare_tensors(real_args, x->u.tensor, fake_args, y->u.tensor);
        EXPECT_EQ_INT(y->tag == TN_TAG_TENSOR_LIST ? y->count : 0,
                      x->tag == TN_TAG_TENSOR_LIST ? x->count : 0);
        for (uint32_t k = 0; x->tag == TN_TAG_TENSOR_LIST && k < x->count && k < y->count; k++)
            compare_tensors(real_args, x->u.tensors[k], fake_args, y->u.tensors[k]);
    }
}

static void note(const tni_sample *s)
{
    test_note("%s:%d: %s(%s)", s->file, s->line, s->op, s->args);
}

static tn_tensor *meta_of(tn_tensor *t)
{
    tni_storage *storage = NULL;
    tn_tensor *m = NULL;
    if (!t)
        return NULL;
    ASSERT_OK(tni_storage_new(TN_META, t->storage->nbytes, &storage));
    ASSERT_OK(tni_tensor_over(storage, t->ndim, t->sizes, t->strides, t->offset, (tn_dtype)t->dtype,
                              tni_tensor_keys_for(TN_DEVICE_META, false), TN_META, &m));
    tni_storage_unref(storage);
    m->flags |= t->flags & TNI_WRAPPED_NUMBER;
    return m;
}

/* The last call needed values, and Meta cannot do it either: then the failure is right. That these
 * operators fail at all is tested one by one in test_rules.c. */
static bool needs_values(const tni_sample *s, const bundle *real)
{
    bundle rets = {0};
    if (!strstr(tn_last_error(), "depends on values"))
        return false;
    bundle b = translated(real, NULL);
    tn_status status = call(s->op, &b, &rets);
    bool other = status != TN_OK && (s->status == TN_OK || !strstr(tn_last_error(), s->text));
    bundle_clear(&rets);
    bundle_clear(&b);
    return other;
}

TEST(fake_results_look_like_real_ones_for_every_sample)
{
    tn_fake_mode *mode;
    int needed_values = 0;
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK)
            continue;
        note(s);
        bundle real = real_arguments(s), x = {0}, y = {0};
        bundle fake = translated(&real, mode);
        EXPECT_OK(call(s->op, &real, &x));
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status status = call(s->op, &fake, &y);
        tn_fake_leave(guard);
        if (status != TN_OK && needs_values(s, &real)) {
            needed_values++;
        } else {
            EXPECT_OK(status);
            compare(&real, &x, &fake, &y);
        }
        bundle_clear(&x);
        bundle_clear(&y);
        bundle_clear(&real);
        bundle_clear(&fake);
    }
    EXPECT(needed_values > 5 && needed_values < tni_num_samples / 20);
    tn_fake_mode_unref(mode);
}

TEST(error_samples_are_refused_as_declared)
{
    tn_fake_mode *mode;
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        bool about_values = strstr(s->text, "ZeroDivision") ||
                            strstr(s->text, "is out of bounds for dimension 0") ||
                            strstr(s->text, "index out of range in self") ||
                            strstr(s->text, "tried to access index") ||
                            strstr(s->text, "number of ones in mask");
        if (s->status == TN_OK || about_values || strstr(s->args, "meta"))
            continue;
        note(s);
        bundle real = real_arguments(s), y = {0};
        bundle fake = translated(&real, mode);
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status status = call(s->op, &fake, &y);
        tn_fake_leave(guard);
        if (status == TN_OK || !strstr(tn_last_error(), "depends on values")) {
            EXPECT_EQ_INT(status, s->status);
            EXPECT_CONTAINS(tn_last_error(), s->text);
        } else {
            EXPECT(strstr(tn_last_error(), s->text) || needs_values(s, &real));
        }
        bundle_clear(&y);
        bundle_clear(&real);
        bundle_clear(&fake);
    }
    tn_fake_mode_unref(mode);
}

TEST(each_allocation_failing_leaks_nothing)
{
    tn_fake_mode *mode;
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK)
            continue;
        note(s);
        bundle real = real_arguments(s), rets = {0};
        bundle fake = translated(&real, mode);
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status wanted = call(s->op, &fake, &rets); /* what is made once is made now */
        bundle_clear(&rets);
        tn_status rc = TN_INTERNAL;
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = call(s->op, &fake, &rets);
            if (rc != TN_OK)
                EXPECT((rc == TN_NOMEM || rc == wanted) && tni_test_live == before);
            if (rc == wanted)
                rc = TN_OK;
        }
        bundle_clear(&rets);
        EXPECT_EQ_INT(tni_test_live, before);
        tn_fake_leave(guard);
        bundle_clear(&real);
        bundle_clear(&fake);
    }
    tn_fake_mode_unref(mode);
}
