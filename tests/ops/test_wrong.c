/* SPDX-License-Identifier: MIT */
/* tests/ops/test_wrong.c: every sample of every declaration with one argument made wrong: numbers
 * out of every range, sizes and dtypes that do not fit, tensors that are missing, repeat elements
 * or are elsewhere, indices that point nowhere. The call may work or fail; it does not end the
 * process (the sanitizers look for what it must not touch), and one that fails has written
 * nothing. */
#include <string.h>

#include "harness/test.h"
#include "ops/wrong.h"
#include "tenon/ops.h"

enum { PARTS = 4, ROUNDS = 6 };

/* A tensor to write: empty, of some size, or one that repeats its element. */
static tn_tensor *target(const bundle *args)
{
    static const int64_t sizes[] = {2, 3};
    const tn_tensor *first = NULL;
    for (int i = 0; i < args->n && !first; i++)
        first = args->v[i].tag == TN_TAG_TENSOR ? args->v[i].u.tensor : NULL;
    tn_dtype dtype = first ? (tn_dtype)first->dtype : TN_DTYPE_F32;
    tn_tensor *made =
        wrong_fresh((int)wrong_pick(3), wrong_pick(2) ? sizes : (const int64_t[]){0, 2}, dtype,
                    first ? first->device : TN_CPU);
    tn_tensor *wrong = wrong_pick(2) ? wrong_tensor(made) : NULL;
    if (!wrong)
        return made;
    tn_tensor_unref(made);
    return wrong;
}

static void try_wrong(const tni_sample *s)
{
    wrong_kept all[WRONG_KEPT];
    bundle rets = {0};
    uint64_t form = wrong_pick(4);
    const char *op = form == 1 && s->inplace[0] ? s->inplace
                     : form == 2 && s->out[0]   ? s->out
                                                : s->op;
    tni_schema *schema = sample_schema(op);
    bundle args = op == s->out ? sample_arguments_of(s, op) : sample_arguments(s);
    for (int k = 0; op == s->out && k < schema->nargs; k++)
        if (schema->args[k].is_out && schema->args[k].type->kind == TNI_TYPE_TENSOR)
            args.v[k] = tn_value_take_tensor(target(&args));
    if (schema->nargs) {
        int at = (int)wrong_pick((uint64_t)schema->nargs);
        tn_value wrong = wrong_value(&args.v[at], &schema->args[at]);
        tn_value_clear(&args.v[at]);
        args.v[at] = wrong;
        test_note("%s:%d: %s(%s), with another %s", s->file, s->line, op, s->args,
                  schema->args[at].name);
    }
    int n = wrong_keep(&args, all);
    tn_status status = sample_call(op, &args, &rets);
    if (status != TN_OK) {
        EXPECT(tn_last_error()[0] != 0);
        EXPECT(status != TN_INTERNAL);
        if (!wrong_unwritten(all, n))
            test_wrong(__FILE__, __LINE__, "a refusal changed %s: %s", wrong_change(all, n),
                       tn_last_error());
    }
    wrong_forget(all, n);
    bundle_clear(&rets);
    bundle_clear(&args);
    tni_schema_free(schema);
}

static void try_part(int part)
{
    for (int i = part; i < tni_num_samples; i += PARTS) {
        wrong_begin(&tni_samples[i], 0);
        for (int k = 0; k < ROUNDS; k++)
            try_wrong(&tni_samples[i]);
    }
}

TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_1)
{
    try_part(0);
}
TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_2)
{
    try_part(1);
}
TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_3)
{
    try_part(2);
}
TEST(a_wrong_argument_is_an_error_or_works_and_an_error_writes_nothing_4)
{
    try_part(3);
}

/* ---- devices ---- */

static tn_tensor *moved(tn_tensor *t)
{
    return t->device.type == TN_DEVICE_META
               ? wrong_fresh(t->ndim, t->sizes, (tn_dtype)t->dtype, TN_CPU)
               : sample_on_meta(t);
}

/* The results that have memory are those of @p plain, bit for bit. */
static bool computed_alike(const bundle *rets, const bundle *plain)
{
    bool alike = true;
    for (int i = 0; alike && i < rets->n; i++) {
        tn_tensor *a = rets->v[i].tag == TN_TAG_TENSOR ? rets->v[i].u.tensor : NULL;
        tn_tensor *b = i < plain->n ? plain->v[i].u.tensor : NULL;
        tn_tensor *x = NULL, *y = NULL;
        if (!a || a->device.type != TN_DEVICE_CPU)
            continue;
        if (!b || a->numel != b->numel || a->dtype != b->dtype)
            return false;
        ASSERT_OK(tn_clone(a, TN_FORMAT_CONTIGUOUS, &x));
        ASSERT_OK(tn_clone(b, TN_FORMAT_CONTIGUOUS, &y));
        size_t nbytes = (size_t)x->numel * tn_dtype_size((tn_dtype)x->dtype);
        alike = nbytes == 0 || memcmp(x->data, y->data, nbytes) == 0;
        tn_tensor_unref(x);
        tn_tensor_unref(y);
    }
    return alike;
}

static void move_one(const tni_sample *s, const tni_schema *schema, int at)
{
    wrong_kept all[WRONG_KEPT];
    bundle args = sample_arguments(s), rets = {0}, plain = {0};
    tn_value *v = &args.v[at];
    if (v->tag == TN_TAG_TENSOR && v->u.tensor) {
        tn_tensor *other = moved(v->u.tensor);
        bool without_values = other->device.type == TN_DEVICE_META;
        tn_value_clear(v);
        *v = tn_value_take_tensor(other);
        test_note("%s:%d: %s(%s), %s on another device", s->file, s->line, s->op, s->args,
                  schema->args[at].name);
        int n = wrong_keep(&args, all);
        if (sample_call(s->op, &args, &rets) != TN_OK) {
            EXPECT(wrong_unwritten(all, n));
        } else if (without_values && !sample_uninitialised(s->op)) {
            bundle before = sample_arguments(s);
            (void)sample_call(s->op, &before, &plain); /* values may be what it refuses */
            EXPECT(computed_alike(&rets, &plain));
            bundle_clear(&before);
        }
        wrong_forget(all, n);
    }
    bundle_clear(&rets);
    bundle_clear(&plain);
    bundle_clear(&args);
}

/* And what has no values has no say in those of a result. */
TEST(each_argument_may_be_on_another_device_than_the_others)
{
    for (int i = 0; i < tni_num_samples; i++) {
        tni_schema *schema = sample_schema(tni_samples[i].op);
        for (int at = 0; at < schema->nargs; at++)
            move_one(&tni_samples[i], schema, at);
        tni_schema_free(schema);
    }
}

/* ---- lists to write ---- */

static tn_tensor *zeros(int64_t rows)
{
    tn_tensor *t = wrong_fresh(2, (const int64_t[]){rows, 2}, TN_DTYPE_F32, TN_CPU);
    ASSERT_OK(tn_zero_(t));
    return t;
}

/* So is one of several views of what requires grad. */
TEST(a_list_with_a_view_that_may_not_be_written_is_left_as_it_was)
{
    tn_tensor *leaf = zeros(2), *twice = NULL, **parts = NULL;
    int64_t n_parts = 0;
    wrong_kept all[WRONG_KEPT];
    bundle args = {.n = 1};
    ASSERT_OK(tn_tensor_set_requires_grad(leaf, true));
    ASSERT_OK(tn_add(leaf, leaf, tn_int(1), &twice));
    ASSERT_OK(tn_unbind(twice, 0, &parts, &n_parts));
    tn_tensor *list[] = {zeros(1), parts[0]};
    args.v[0] = tn_value_tensors(list, 2);
    int n = wrong_keep(&args, all);
    EXPECT_FAIL(TN_INVALID, "Output 0 of UnbindBackward0 is a view and is being modified inplace",
                tn__foreach_add_(list, 2, tn_int(1)));
    EXPECT(wrong_unwritten(all, n));
    wrong_forget(all, n);
    tn_tensor_list_free(parts, n_parts);
    tn_tensor_unref(list[0]);
    tn_tensor_unref(twice);
    tn_tensor_unref(leaf);
}

/* The last one cannot be written: a leaf that requires grad. */
TEST(a_list_with_a_leaf_among_what_is_written_is_left_as_it_was)
{
    const int64_t lengths[] = {2, 1};
    tn_tensor *self = wrong_fresh(2, (const int64_t[]){3, 2}, TN_DTYPE_F32, TN_CPU);
    tn_tensor *outs[] = {zeros(2), zeros(1)};
    wrong_kept all[WRONG_KEPT];
    bundle args = {.n = 1};
    ASSERT_OK(tn_tensor_set_requires_grad(outs[1], true));
    args.v[0] = tn_value_tensors(outs, 2);
    int n = wrong_keep(&args, all);
    EXPECT_FAIL(TN_INVALID, "a leaf Variable that requires grad",
                tn_split_copy_tensor_out(self, 2, 0, outs, 2));
    EXPECT(wrong_unwritten(all, n));
    EXPECT_FAIL(TN_INVALID, "a leaf Variable that requires grad",
                tn_split_with_sizes_copy_out(self, lengths, 2, 0, outs, 2));
    EXPECT(wrong_unwritten(all, n));
    wrong_forget(all, n);
    tn_tensor_unref(self);
    tn_tensor_unref(outs[0]);
    tn_tensor_unref(outs[1]);
}

TEST(statistics_of_no_elements_are_left_as_they_were_when_one_is_a_leaf)
{
    const int64_t three = 3;
    tn_tensor *input = wrong_fresh(3, (const int64_t[]){0, 3, 2}, TN_DTYPE_F32, TN_CPU);
    tn_tensor *both[2], *out = NULL;
    wrong_kept all[WRONG_KEPT];
    bundle args = {.n = 2};
    for (int i = 0; i < 2; i++) {
        both[i] = wrong_fresh(1, &three, TN_DTYPE_F32, TN_CPU);
        args.v[i] = tn_value_tensor(both[i]);
    }
    ASSERT_OK(tn_tensor_set_requires_grad(both[1], true));
    int n = wrong_keep(&args, all);
    EXPECT_FAIL(TN_INVALID, "a leaf Variable that requires grad",
                tn_instance_norm(input, NULL, NULL, both[0], both[1], true, 0.1, 1e-5, true, &out));
    EXPECT(wrong_unwritten(all, n));
    wrong_forget(all, n);
    tn_tensor_unref(input);
    tn_tensor_unref(both[0]);
    tn_tensor_unref(both[1]);
}

TEST(batches_of_what_has_no_elements_take_no_time)
{
    const int64_t sizes[] = {INT64_MAX / 16, 2, 0};
    tn_tensor *a = wrong_fresh(3, sizes, TN_DTYPE_F64, TN_CPU);
    tn_tensor *u = NULL, *s = NULL, *v = NULL, *q = NULL, *r = NULL;
    EXPECT_WITHIN_SECONDS(1, EXPECT_OK(tn__linalg_svd(a, false, true, NULL, &u, &s, &v)));
    EXPECT_WITHIN_SECONDS(1, EXPECT_OK(tn_linalg_qr(a, "reduced", &q, &r)));
    tn_tensor *rows = wrong_fresh(2, (const int64_t[]){INT64_MAX / 16, 0}, TN_DTYPE_F32, TN_CPU);
    EXPECT_WITHIN_SECONDS(1, EXPECT_OK(tn_fill_diagonal_(rows, tn_int(2), true)));
    tn_tensor *sums = NULL;
    EXPECT_WITHIN_SECONDS(1, EXPECT_OK(tn_cumsum(rows, 1, TN_DTYPE_NONE, &sums)));
    tn_tensor *const made[] = {a, u, s, v, q, r, rows, sums};
    for (int i = 0; i < 8; i++)
        tn_tensor_unref(made[i]);
}

/* As many steps as there are rows, where no step has anything to compute. */
TEST(steps_over_what_has_no_numbers_take_no_time)
{
    const int64_t rows = INT64_C(1) << 40, sizes[] = {rows, 3};
    tn_tensor *x = wrong_fresh(2, sizes, TN_DTYPE_F32, TN_META), *steps = NULL, *wide = NULL;
    EXPECT_WITHIN_SECONDS(1, ASSERT_OK(tn_diff(x, rows / 2, 0, NULL, NULL, &steps)));
    EXPECT_EQ_INT(steps->sizes[0], rows / 2);
    EXPECT_EQ_INT(steps->sizes[1], 3);
    EXPECT_WITHIN_SECONDS(1, EXPECT_OK(tn_fill_diagonal_(x, tn_int(2), true)));
    tn_tensor *y = wrong_fresh(2, (const int64_t[]){1, 3}, TN_DTYPE_F32, TN_CPU), *angle = NULL;
    ASSERT_OK(tn_expand(y, sizes, 2, false, &wide)); /* one row, again and again */
    EXPECT_WITHIN_SECONDS(1, EXPECT_OK(tn_fill_diagonal_(wide, tn_int(2), true)));
    for (int i = 0; i < 3; i++)
        EXPECT(((const float *)y->data)[i] == 2);
    EXPECT_WITHIN_SECONDS(1, EXPECT_FAIL(TN_INVALID, "same device, but found at least two devices",
                                         tn_cosine_similarity(x, y, 0, 1e-8, &angle)));
    /* Nor does a step that failed lead to the next one. */
    EXPECT_WITHIN_SECONDS(
        1, EXPECT_FAIL(TN_INVALID, "two devices", tn_diff(y, rows, 0, x, NULL, &angle)));
    tn_tensor *const made[] = {x, y, steps, wide};
    for (int i = 0; i < 4; i++)
        tn_tensor_unref(made[i]);
}

TEST(sizes_of_nothing_are_multiplied_by_nobody)
{
    const int64_t huge = INT64_MAX / 16, rows[] = {4, huge, 0}, points[] = {3, huge, 0, 2};
    tn_tensor *x = wrong_fresh(3, rows, TN_DTYPE_F64, TN_CPU), *y = NULL, *z = NULL;
    ASSERT_OK(tn_exp(x, &y)); /* strides in bytes */
    tn_tensor *signal = wrong_fresh(4, points, TN_DTYPE_F32, TN_CPU);
    tn_status status = tn_fft_fft(signal, tn_no_int(), -1, NULL, &z);
    EXPECT(status == TN_OK || status == TN_INVALID);
    tn_tensor *weight = wrong_fresh(1, (const int64_t[]){0}, TN_DTYPE_F32, TN_CPU), *normal = NULL;
    tn_tensor *image = wrong_fresh(3, (const int64_t[]){huge, 0, 2}, TN_DTYPE_F32, TN_META);
    tn_tensor *channels = wrong_fresh(1, &huge, TN_DTYPE_F32, TN_META);
    EXPECT(tn_instance_norm(image, channels, NULL, NULL, NULL, true, 0.1, 1e-5, true, &normal) !=
           TN_OK);
    tn_tensor *const made[] = {x, y, z, signal, weight, image, channels};
    for (int i = 0; i < 7; i++)
        tn_tensor_unref(made[i]);
}

TEST(a_batch_of_more_matrices_than_can_be_counted_is_refused)
{
    const int64_t sizes[] = {1, INT64_C(1) << 40, 3};
    tn_tensor *a = wrong_fresh(3, sizes, TN_DTYPE_F32, TN_META), *q = NULL, *r = NULL;
    EXPECT_FAIL(TN_INVALID, "overflow", tn_linalg_qr(a, "complete", &q, &r));
    tn_tensor_unref(a);
}

TEST(a_sum_of_nothing_multiplies_no_strides)
{
    const int64_t sizes[] = {4, 4, INT64_MAX / 16, 0};
    tn_tensor *a = wrong_fresh(4, sizes, TN_DTYPE_F64, TN_CPU), *sum = NULL;
    ASSERT_OK(tn_linalg_vector_norm(a, tn_int(2), NULL, 0, false, TN_DTYPE_NONE, &sum));
    EXPECT(*(const double *)sum->data == 0);
    tn_tensor_unref(a);
    tn_tensor_unref(sum);
}

/* Two channels of bytes, side by side, from an odd address on. */
TEST(bytes_are_resized_wherever_they_begin)
{
    const int64_t n = 41, sizes[] = {1, 2, 4, 5}, strides[] = {40, 1, 10, 2};
    tn_tensor *x = wrong_fresh(4, (const int64_t[]){1, 2, 2, 2}, TN_DTYPE_U8, TN_CPU);
    tn_tensor *flat = wrong_fresh(1, &n, TN_DTYPE_U8, TN_CPU), *laid = NULL, *out = NULL;
    ASSERT_OK(tn_contiguous(x, TN_FORMAT_CHANNELS_LAST, &laid));
    ASSERT_OK(tn_zero_(flat));
    ASSERT_OK(tn_as_strided(flat, sizes, 4, strides, 4, tn_some_int(1), &out));
    ASSERT_OK(tn_upsample_nearest2d_out(laid, sizes + 2, 2, tn_no_float(), tn_no_float(), out));
    for (int64_t i = 0; i < n; i++)
        EXPECT(((const uint8_t *)flat->data)[i] == (i > 0));
    tn_tensor_unref(x);
    tn_tensor_unref(laid);
    tn_tensor_unref(flat);
    tn_tensor_unref(out);
}

/* One tensor for two results that want other sizes, of which the last is its own. */
TEST(a_tensor_that_stands_for_two_results_keeps_its_strides)
{
    tn_tensor *a = wrong_fresh(2, (const int64_t[]){2, 3}, TN_DTYPE_F64, TN_CPU);
    tn_tensor *both = wrong_fresh(2, (const int64_t[]){2, 3}, TN_DTYPE_F64, TN_CPU);
    wrong_kept all[WRONG_KEPT];
    bundle args = {.n = 1};
    args.v[0] = tn_value_tensor(both);
    int n = wrong_keep(&args, all);
    EXPECT_FAIL(TN_INVALID, "some elements of two written-to tensors",
                tn_linalg_qr_out(a, "complete", both, both));
    EXPECT(wrong_unwritten(all, n));
    wrong_forget(all, n);
    tn_tensor_unref(a);
    tn_tensor_unref(both);
}
