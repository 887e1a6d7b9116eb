/* SPDX-License-Identifier: MIT */
/* The matrix: every sample of every declaration on fake tensors, beside the same call on real ones:
 * the results agree in sizes, strides, offset, dtype, device, aliasing and version, and what is
 * refused is refused with the same status and text. What depends on values fails, and says so. */
#include <string.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "ops/sampling.h"
#include "tenon/fake.h"

/* What stands for a real tensor: a fake on the same device, a fake on CUDA, or a meta tensor. */
typedef enum clothing { AS_FAKE, AS_CUDA, AS_META } clothing;

static const tn_device cuda = TN_DEVICE_INIT(TN_DEVICE_CUDA, 0);

static tn_tensor *over(tni_storage *storage, const tn_tensor *t, tn_device device, tn_keyset more)
{
    tn_tensor *made = NULL;
    tn_keyset keys = tni_tensor_keys_for(device.type, false) | more;
    ASSERT_OK(tni_tensor_over(storage, t->ndim, t->sizes, t->strides, t->offset, (tn_dtype)t->dtype,
                              keys, device, &made));
    made->flags |= t->flags & (TNI_WRAPPED_NUMBER | TNI_REQUIRES_GRAD);
    return made;
}

typedef struct dressing {
    clothing how;
    tn_fake_mode *mode;
} dressing;

static tn_tensor *dressed(tn_tensor *t, void *arg)
{
    const dressing *d = arg;
    tn_tensor *f = NULL, *made;
    if (d->how == AS_META)
        return sample_on_meta(t);
    ASSERT_OK(tn_fake_from_real(d->mode, t, &f));
    if (d->how == AS_FAKE)
        return f;
    made = over(f->storage, t, cuda, TNI_KS_FAKE);
    tn_tensor_unref(f);
    return made;
}

static bundle translated(const bundle *real, clothing how, tn_fake_mode *mode)
{
    bundle b = bundle_copy(real);
    bundle_reform(&b, dressed, &(dressing){how, mode});
    return b;
}

static void compare_tensors(const bundle *real_args, const tn_tensor *real, const bundle *fake_args,
                            const tn_tensor *fake, clothing how)
{
    EXPECT((real == NULL) == (fake == NULL));
    if (!real || !fake)
        return;
    EXPECT(tn_is_fake(fake));
    EXPECT(tn_tensor_data(fake) == NULL);
    tn_device device = how == AS_CUDA ? cuda : real->device;
    EXPECT_EQ_INT(fake->device.type, device.type);
    EXPECT_EQ_INT(fake->device.index, device.index);
    EXPECT(fake->keys == (tni_tensor_keys_for(device.type, false) | TNI_KS_FAKE));
    EXPECT_EQ_INT(fake->dtype, real->dtype);
    EXPECT_EQ_INT(fake->offset, real->offset);
    EXPECT_EQ_INT(fake->ndim, real->ndim);
    for (int d = 0; fake->ndim == real->ndim && d < real->ndim; d++) {
        EXPECT_EQ_INT(fake->sizes[d], real->sizes[d]);
        EXPECT_EQ_INT(fake->strides[d], real->strides[d]);
    }
    EXPECT_EQ_INT(sample_shares_with(fake_args, fake), sample_shares_with(real_args, real));
    uint32_t a = 0, b = 0;
    EXPECT_OK(tn_tensor_version(real, &a));
    EXPECT_OK(tn_tensor_version(fake, &b));
    EXPECT_EQ_INT(b, a);
}

static void compare(const bundle *real_args, const bundle *real, const bundle *fake_args,
                    const bundle *fake, clothing how)
{
    EXPECT_EQ_INT(fake->n, real->n);
    for (int i = 0; i < real->n && i < fake->n; i++) {
        const tn_value *x = &real->v[i], *y = &fake->v[i];
        EXPECT_EQ_INT(y->tag, x->tag);
        if (x->tag != y->tag)
            continue;
        if (x->tag == TN_TAG_TENSOR)
            compare_tensors(real_args, x->u.tensor, fake_args, y->u.tensor, how);
        EXPECT_EQ_INT(y->tag == TN_TAG_TENSOR_LIST ? y->count : 0,
                      x->tag == TN_TAG_TENSOR_LIST ? x->count : 0);
        for (uint32_t k = 0; x->tag == TN_TAG_TENSOR_LIST && k < x->count && k < y->count; k++)
            compare_tensors(real_args, x->u.tensors[k], fake_args, y->u.tensors[k], how);
    }
}

/* The last call needed values, and Meta cannot do it either: then the failure is right. That these
 * operators fail at all is tested one by one in test_rules.c. */
static bool needs_values(const tni_sample *s, const bundle *real)
{
    bundle rets = {0};
    if (!strstr(tn_last_error(), "depends on values"))
        return false;
    bundle b = translated(real, AS_META, NULL);
    tn_status status = sample_call(s->op, &b, &rets);
    bool other = status != TN_OK && (s->status == TN_OK || !strstr(tn_last_error(), s->text));
    bundle_clear(&rets);
    bundle_clear(&b);
    return other;
}

/* A sample of the operator @p name, which is s->op or a variant of it, beside the real call. Gives
 * whether it needed values. */
static bool run_beside(const tni_sample *s, const char *name, const bundle *real, clothing how,
                       tn_fake_mode *mode, bool inside)
{
    bundle x = {0}, y = {0}, fake = translated(real, how, mode);
    bool needed_values = false;
    tn_status real_status = sample_call(name, real, &x);
    tn_fake_guard guard = tn_fake_enter(inside ? mode : NULL);
    tn_status status = sample_call(name, &fake, &y);
    tn_fake_leave(guard);
    if (real_status == TN_OK && status != TN_OK && needs_values(s, real)) {
        needed_values = true;
    } else {
        EXPECT_EQ_INT(status, real_status);
        if (status != real_status && status != TN_OK)
            EXPECT_OK(status); /* says what is wrong */
        compare(real, &x, &fake, &y, how);
    }
    bundle_clear(&x);
    bundle_clear(&y);
    bundle_clear(&fake);
    return needed_values;
}

static void run_samples(clothing how, bool inside)
{
    tn_fake_mode *mode;
    int needed_values = 0;
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        /* A device that is named stays what it is. */
        if (s->status != TN_OK || (how == AS_CUDA && strstr(s->args, "meta")))
            continue;
        sample_note(s, "fake");
        bundle real = sample_arguments(s);
        if (how != AS_CUDA || bundle_has_tensors(&real))
            needed_values += run_beside(s, s->op, &real, how, mode, inside);
        bundle_clear(&real);
    }
    EXPECT(needed_values > 5 && needed_values < tni_num_samples / 20);
    tn_fake_mode_unref(mode);
}

TEST(fake_results_look_like_real_ones_for_every_sample)
{
    run_samples(AS_FAKE, true);
}

TEST(fake_results_are_on_the_pretended_device_for_every_sample)
{
    run_samples(AS_CUDA, true);
}

TEST(fake_tensors_need_no_mode_around_them_for_any_sample)
{
    run_samples(AS_CUDA, false);
}

TEST(in_place_variants_write_and_refuse_as_real_ones_do)
{
    tn_fake_mode *mode;
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK || !s->inplace[0])
            continue;
        sample_note(s, "fake");
        bundle real = sample_arguments(s);
        run_beside(s, s->inplace, &real, AS_FAKE, mode, true);
        bundle_clear(&real);
    }
    tn_fake_mode_unref(mode);
}

/* A tensor without elements, of the dtype of a result; of float32 where there is none. */
static tn_tensor *empty_like_result(const tn_tensor *like, int kind)
{
    (void)kind;
    const int64_t none[] = {0};
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(1, none, NULL, like ? (tn_dtype)like->dtype : TN_DTYPE_F32,
                             like ? like->device : TN_CPU, &t));
    return t;
}

/* The arguments of the out variant: the function's without options, then tensors without elements
 * of the results' dtypes. */
static bundle out_arguments(const tni_sample *s, const bundle *results)
{
    bundle b = sample_arguments_of(s, s->out);
    tni_schema *schema = sample_schema(s->out);
    for (int k = 0, r = 0; k < b.n; k++)
        if (schema->args[k].is_out)
            b.v[k] = sample_place_for(&results->v[r++], empty_like_result, 0);
    tni_schema_free(schema);
    return b;
}

TEST(out_variants_resize_and_refuse_as_real_ones_do)
{
    tn_fake_mode *mode;
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        /* Another device is an option, which an out variant does not have. */
        if (s->status != TN_OK || !s->out[0] || strstr(s->args, "device="))
            continue;
        sample_note(s, "fake");
        bundle plain = sample_arguments(s), results = {0};
        ASSERT_OK(sample_call(s->op, &plain, &results));
        bundle real = out_arguments(s, &results), x = {0}, y = {0};
        bundle fake = translated(&real, AS_FAKE, mode);
        tn_status real_status = sample_call(s->out, &real, &x);
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status status = sample_call(s->out, &fake, &y);
        tn_fake_leave(guard);
        if (status == TN_OK || real_status != TN_OK || !needs_values(s, &plain)) {
            EXPECT_EQ_INT(status, real_status);
            compare(&real, &x, &fake, &y, AS_FAKE);
        }
        bundle_clear(&x);
        bundle_clear(&y);
        bundle_clear(&real);
        bundle_clear(&fake);
        bundle_clear(&plain);
        bundle_clear(&results);
    }
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
        sample_note(s, "fake");
        bundle real = sample_arguments(s), y = {0};
        bundle fake = translated(&real, AS_FAKE, mode);
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status status = sample_call(s->op, &fake, &y);
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
        sample_note(s, "fake");
        bundle real = sample_arguments(s), rets = {0};
        bundle fake = translated(&real, AS_FAKE, mode);
        tn_fake_guard guard = tn_fake_enter(mode);
        tn_status wanted = sample_call(s->op, &fake, &rets); /* what is made once is made now */
        bundle_clear(&rets);
        tn_status rc = TN_INTERNAL;
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = sample_call(s->op, &fake, &rets);
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
