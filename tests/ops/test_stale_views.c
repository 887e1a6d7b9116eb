/* SPDX-License-Identifier: MIT */
/* tests/ops/test_stale_views.c: every operator that writes its first argument, called with a view
 * that was made without gradients and whose base has been written since. It is refused as what "is
 * being modified", whether or not the operator reads the view before it writes, and nothing is
 * written. */
#include <string.h>

#include "harness/test.h"
#include "ops/sampling.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

/* A view of the elements of @p t, of a base with a history, written after the view was made. */
static tn_tensor *stale_view(tn_tensor *t)
{
    tn_tensor *leaf = NULL, *base = NULL, *view = NULL;
    ASSERT_OK(tn_clone(t, TN_FORMAT_PRESERVE, &leaf));
    ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    ASSERT_OK(tn_clone(leaf, TN_FORMAT_PRESERVE, &base));
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_view_as(base, base, &view));
    tn_set_grad_enabled(true);
    ASSERT_OK(tn_mul_scalar_(base, tn_int(1)));
    tn_tensor_unref(leaf);
    tn_tensor_unref(base);
    return view;
}

/* What says something else of every view, or writes none of its elements; the diagonal is written
 * as a view of the view, in the reference too. */
static bool of_its_own_rule(const char *op)
{
    static const char *const ops[] = {"aten::detach_", "aten::resize_", "aten::set_",
                                      "aten::fill_diagonal_"};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        if (strncmp(op, ops[i], strlen(ops[i])) == 0)
            return true;
    }
    return false;
}

/* The operator that writes its first argument, of this sample: itself, or its in-place twin. */
static const char *writer(const tni_sample *s)
{
    if (s->status != TN_OK)
        return NULL;
    const char *op = s->inplace[0] ? s->inplace : s->op;
    tni_schema *schema = sample_schema(op);
    bool writes = schema->nargs && schema->args[0].is_write && !schema->args[0].is_out &&
                  schema->args[0].type->kind == TNI_TYPE_TENSOR;
    tni_schema_free(schema);
    return writes && !of_its_own_rule(op) ? op : NULL;
}

TEST(writing_a_stale_view_says_that_the_view_is_being_modified)
{
    int refused = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        const char *op = writer(s);
        if (!op)
            continue;
        bundle plain = sample_arguments(s), args = sample_arguments(s), rets = {0};
        tn_tensor *self = args.v[0].tag == TN_TAG_TENSOR ? args.v[0].u.tensor : NULL;
        /* Where the operator refuses these arguments anyhow, it may say so first. */
        bool fits = self && tn_dtype_is_floating((tn_dtype)self->dtype) && self->numel &&
                    sample_call(op, &plain, &rets) == TN_OK;
        bundle_clear(&rets);
        if (fits) {
            tn_tensor *view = stale_view(self);
            uint32_t before = 0, after = 0;
            tn_value_clear(&args.v[0]);
            args.v[0] = tn_value_tensor(view);
            EXPECT_OK(tn_tensor_version(view, &before));
            sample_note(s, op);
            EXPECT_FAIL(TN_INVALID,
                        "A view was created in no_grad mode and is being modified inplace with "
                        "grad mode enabled.",
                        sample_call(op, &args, &rets));
            EXPECT_OK(tn_tensor_version(view, &after));
            EXPECT_EQ_INT(after, before);
            tn_tensor_unref(view);
            refused++;
        }
        bundle_clear(&rets);
        bundle_clear(&args);
        bundle_clear(&plain);
    }
    EXPECT(refused > 200);
}
