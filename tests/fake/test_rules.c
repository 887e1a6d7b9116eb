/* SPDX-License-Identifier: MIT */
/* Modes, factories, devices, and what is refused: by the reference's own answers (make_fake.py)
 * and, one by one, by the rules. Sees the public headers alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"

/* ---- devices ---- */

static tn_tensor *tensor_of(const char *kind) /* "cuda:1 1": device and dimensions */
{
    char device[16];
    tn_device d;
    snprintf(device, sizeof device, "%.*s", (int)strcspn(kind, " "), kind);
    ASSERT_OK(tn_device_parse(device, &d));
    return ones(atoi(strchr(kind, ' ') + 1), d);
}

static void expect_devices(const char *name, const char *a_kind, const char *b_kind,
                           const char *wanted)
{
    tn_op *op;
    tn_tensor *a = tensor_of(a_kind), *b = tensor_of(b_kind);
    tn_value args[] = {tn_value_tensor(a), tn_value_tensor(b)}, ret = tn_value_none();
    test_note("%s(%s, %s)", name, a_kind, b_kind);
    ASSERT_OK(tn_op_find(name, &op));
    uint32_t before = 0, after = 0;
    EXPECT_OK(tn_tensor_version(a, &before));
    if (strncmp(wanted, "error: ", 7) == 0) {
        EXPECT_FAIL(TN_INVALID, wanted + 7, tn_op_call(op, args, 2, &ret));
        EXPECT_OK(tn_tensor_version(a, &after));
        EXPECT_EQ_INT(after, before);
    } else {
        EXPECT_OK(tn_op_call(op, args, 2, &ret));
        EXPECT(tn_is_fake(ret.u.tensor));
        expect_device(ret.u.tensor, wanted);
    }
    tn_value_clear(&ret);
    UNREF(a, b);
}

TEST(devices_merge_as_the_reference_merges_them)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
#define DEVICES(op, a, b, wanted) expect_devices(op, a, b, wanted);
#define CONSTANT(name, wanted)
#include "golden/fake.inc"
#undef DEVICES
#undef CONSTANT
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(index_put_wants_values_where_self_is_or_a_number)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    const int64_t place[] = {0}, one[] = {1};
    tn_tensor *self = ones(1, cuda(0)), *values = NULL, *number = ones(0, TN_CPU), *index = NULL;
    ASSERT_OK(tn_tensor_from_data(place, 1, one, TN_DTYPE_I64, &index));
    ASSERT_OK(tn_ones(one, 1, NULL, &values));
    EXPECT_FAIL(TN_INVALID,
                "Mismatching aten.index_put_.default device between self (cuda:0) and values (cpu)",
                tn_index_put_(self, &index, 1, values, false));
    EXPECT_OK(tn_index_put_(self, &index, 1, number, false));
    tn_tensor *picked = NULL;
    EXPECT_OK(tn_index(self, &index, 1, &picked));
    expect_device(picked, "cuda:0");
    UNREF(self, values, number, index, picked);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(a_fake_tensor_moves_to_any_device)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *a = ones(2, cuda(3)), *b = NULL, *c = NULL;
    EXPECT_OK(tn_to_device(a, TN_CPU, TN_DTYPE_F16, false, false, TN_FORMAT_NONE, &b));
    expect_device(b, "cpu");
    EXPECT_EQ_INT(tn_tensor_dtype(b), TN_DTYPE_F16);
    EXPECT_OK(tn_to_device(b, cuda(-1), TN_DTYPE_F16, false, false, TN_FORMAT_NONE, &c));
    expect_device(c, "cuda:0");
    UNREF(a, b, c);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(each_tensor_of_a_list_has_its_own_device)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *here = ones(1, TN_CPU), *there = ones(1, cuda(0)), **made = NULL;
    int64_t n = 0;
    ASSERT_OK(tn__foreach_add((tn_tensor *[]){here, there}, 2, tn_int(1), &made, &n));
    expect_device(made[0], "cpu");
    expect_device(made[1], "cuda:0");
    EXPECT_OK(
        tn__foreach_copy_((tn_tensor *[]){there, there}, 2, (tn_tensor *[]){here, here}, 2, false));
    tn_tensor_list_free(made, n);
    UNREF(here, there);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* ---- factories ---- */

TEST(factories_give_fake_tensors_of_the_asked_device_also_where_it_does_not_exist)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    const int64_t size[] = {3};
    tn_tensor_opts on_cuda = tn_opts(TN_DTYPE_F32, cuda(-1)), none = TN_TENSOR_OPTS_INIT;
    tn_tensor *made[8] = {NULL};
    EXPECT_OK(tn_empty(size, 1, &on_cuda, TN_FORMAT_NONE, &made[0]));
    EXPECT_OK(tn_zeros(size, 1, &on_cuda, &made[1]));
    EXPECT_OK(tn_full(size, 1, tn_float(2), &on_cuda, &made[2]));
    EXPECT_OK(tn_arange(tn_int(3), &on_cuda, &made[3]));
    EXPECT_OK(tn_randn(size, 1, &on_cuda, &made[4]));
    EXPECT_OK(tn_zeros_like(made[0], NULL, TN_FORMAT_NONE, &made[5]));
    EXPECT_OK(tn_new_ones(made[0], size, 1, NULL, &made[6]));
    EXPECT_OK(tn_ones(size, 1, &none, &made[7]));
    for (int i = 0; i < 8; i++) {
        EXPECT(tn_is_fake(made[i]));
        EXPECT(tn_fake_mode_of(made[i]) == mode);
        EXPECT(tn_tensor_data(made[i]) == NULL);
        EXPECT_EQ_INT(tn_tensor_numel(made[i]), 3);
        EXPECT_EQ_INT(tn_tensor_storage_nbytes(made[i]), 12);
        expect_device(made[i], i < 7 ? "cuda:0" : "cpu");
        char name[32];
        EXPECT_STR(tn_device_format(tn_fake_device(made[i]), name, sizeof name),
                   i < 7 ? "cuda:0" : "cpu");
    }
    tn_keyset keys = tn_tensor_keys(made[0]);
    char text[160];
    EXPECT_STR(tn_keyset_format(keys, text, sizeof text),
               "DispatchKeySet(CUDA, Fake, ADInplaceOrView, AutogradCUDA, AutocastCUDA)");
    unref_all(made, 8);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(random_factories_take_nothing_from_a_generator)
{
    tn_fake_mode *mode = new_mode(false);
    tn_manual_seed(5);
    tn_generator_state before = tn_generator_get_state(tn_default_generator());
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *a = NULL, *b = NULL;
    EXPECT_OK(tn_randn((int64_t[]){4}, 1, NULL, &a));
    EXPECT_OK(tn_bernoulli(a, NULL, &b));
    tn_fake_leave(guard);
    tn_generator_state after = tn_generator_get_state(tn_default_generator());
    EXPECT_EQ_INT(after.counter, before.counter);
    UNREF(a, b);
    tn_fake_mode_unref(mode);
}

TEST(factories_refuse_what_they_refuse_outside)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *t = NULL;
    tn_tensor_opts wrong = tn_opts(TN_DTYPE_F32, (tn_device)TN_DEVICE_INIT(99, 0));
    EXPECT_FAIL(TN_INVALID, "Trying to create tensor with negative dimension -1: [-1]",
                tn_empty((int64_t[]){-1}, 1, NULL, TN_FORMAT_NONE, &t));
    EXPECT_FAIL(TN_DEVICE, "cannot make a tensor on device",
                tn_empty((int64_t[]){1}, 1, &wrong, TN_FORMAT_NONE, &t));
    EXPECT_FAIL(TN_INVALID, "Storage size calculation overflowed",
                tn_empty((int64_t[]){INT64_MAX, 4}, 2, NULL, TN_FORMAT_NONE, &t));
    EXPECT(t == NULL);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* ---- modes ---- */

TEST(modes_nest_and_leave_the_thread_as_it_was)
{
    tn_keyset included = tn_included_keys();
    tn_fake_mode *a = new_mode(false), *b = new_mode(false);
    EXPECT(tn_fake_mode_current() == NULL);
    tn_fake_guard outer = tn_fake_enter(a), again = tn_fake_enter(a), inner = tn_fake_enter(b);
    tn_tensor *t = ones(1, TN_CPU);
    EXPECT(tn_fake_mode_of(t) == b);
    tn_fake_guard off = tn_fake_enter(NULL);
    tn_tensor *real = ones(1, TN_CPU);
    EXPECT(!tn_is_fake(real) && tn_fake_mode_current() == NULL);
    tn_fake_leave(off);
    tn_fake_leave(inner);
    EXPECT(tn_fake_mode_current() == a);
    tn_fake_leave(again);
    tn_fake_leave(outer);
    EXPECT(tn_fake_mode_current() == NULL);
    EXPECT(tn_included_keys() == included);
    UNREF(t, real);
    tn_fake_mode_unref(a);
    tn_fake_mode_unref(b);
}

TEST(a_tensor_keeps_its_mode_alive)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *t = ones(1, cuda(0)), *u = NULL;
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
    EXPECT_OK(tn_add(t, t, tn_int(1), &u));
    EXPECT(tn_fake_mode_of(u) == tn_fake_mode_of(t));
    UNREF(t, u);
}

TEST(operators_on_fake_tensors_work_outside_the_mode)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *t = ones(2, cuda(0)), *u = NULL, *v = NULL;
    tn_fake_leave(guard);
    EXPECT_OK(tn_matmul(t, t, &u));
    EXPECT_OK(tn_add_scalar(u, tn_float(1), tn_int(1), &v));
    EXPECT(tn_is_fake(v));
    expect_device(v, "cuda:0");
    UNREF(t, u, v);
    tn_fake_mode_unref(mode);
}

TEST(two_modes_do_not_mix)
{
    tn_fake_mode *a = new_mode(false), *b = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(a);
    tn_tensor *x = ones(1, TN_CPU), *y, *z = NULL;
    tn_fake_leave(guard);
    guard = tn_fake_enter(b);
    y = ones(1, TN_CPU);
    EXPECT_FAIL(TN_INVALID, "Mixing fake modes NYI", tn_add(x, y, tn_int(1), &z));
    EXPECT_FAIL(TN_INVALID, "Mixing fake modes NYI", tn_add(x, x, tn_int(1), &z));
    tn_fake_leave(guard);
    EXPECT_FAIL(TN_INVALID, "Mixing fake modes NYI", tn_add(y, x, tn_int(1), &z));
    UNREF(x, y);
    tn_fake_mode_unref(a);
    tn_fake_mode_unref(b);
}

TEST(the_key_without_a_mode_is_refused)
{
    tn_tensor *x = ones(1, TN_CPU), *z = NULL;
    tn_key_guard guard = tn_include_keys(tn_keyset_of(TN_KEY_FAKE));
    EXPECT_FAIL(TN_INVALID, "this thread is in no fake mode", tn_neg(x, &z));
    tn_keys_restore(guard);
    UNREF(x);
}

TEST(malformed_options_and_null_arguments_are_refused)
{
    tn_fake_mode *mode = NULL;
    tn_fake_opts small = {1, 0}, large = {sizeof large, 7};
    EXPECT_FAIL(TN_INVALID, "opts->size is 1", tn_fake_mode_new(&small, &mode));
    EXPECT_FAIL(TN_INVALID, "allow_non_fake_inputs is 7", tn_fake_mode_new(&large, &mode));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_fake_mode_new(NULL, NULL));
    tn_tensor *t = NULL, *real = ones(1, TN_CPU);
    EXPECT_FAIL(TN_INVALID, "mode is NULL", tn_fake_from_real(NULL, real, &t));
    EXPECT_FAIL(TN_INVALID, "t is not a fake tensor", tn_fake_constant(real, &t));
    EXPECT_FAIL(TN_INVALID, "t is NULL", tn_fake_constant(NULL, &t));
    EXPECT(!tn_is_fake(NULL) && !tn_is_fake(real) && tn_fake_mode_of(real) == NULL);
    EXPECT(tn_fake_device(real).type == TN_DEVICE_NONE);
    tn_fake_mode_unref(NULL);
    EXPECT(tn_fake_mode_ref(NULL) == NULL);
    UNREF(real);
}

/* ---- real tensors ---- */

#define CONVERT_FIRST                                                                     \
    "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with " \
    "'allow_non_fake_inputs'. Found in "

TEST(a_real_tensor_is_refused_with_the_call_it_was_found_in)
{
    tn_fake_mode *mode = new_mode(false);
    tn_tensor *real = ones(1, TN_CPU), *number = ones(0, TN_CPU), *square = ones(2, TN_CPU);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *fake = ones(1, TN_CPU), *z = NULL, *pair[] = {fake, number};
    EXPECT_FAIL(TN_INVALID,
                CONVERT_FIRST
                "aten.add.Tensor(FakeTensor(..., size=(2,)), tensor([...], size=(2,)))",
                tn_add(fake, real, tn_int(1), &z));
    EXPECT_FAIL(TN_INVALID,
                CONVERT_FIRST
                "aten.add.Tensor(FakeTensor(..., size=(2,)), tensor(1., size=()), alpha=2)",
                tn_add(fake, number, tn_int(2), &z));
    EXPECT_FAIL(TN_INVALID,
                CONVERT_FIRST "aten.cat.default([FakeTensor(..., size=(2,)), tensor(1., size=())])",
                tn_cat(pair, 2, 0, &z));
    EXPECT_FAIL(TN_INVALID,
                CONVERT_FIRST "aten.sum.dim_IntList(tensor([...], size=(2,)), [0], True)",
                tn_sum_dim(real, (int64_t[]){0}, 1, true, TN_DTYPE_NONE, &z));
    EXPECT_FAIL(TN_INVALID, CONVERT_FIRST "aten.neg.default(tensor([...], size=(2, 2)))",
                tn_neg(square, &z));
    EXPECT_FAIL(TN_INVALID,
                "Can't call metadata mutating ops on non-Fake Tensor inputs. Found in "
                "aten.t_.default(tensor([...], size=(2, 2)))",
                tn_t_(square));
    tn_fake_leave(guard);
    EXPECT_FAIL(TN_INVALID,
                CONVERT_FIRST
                "aten.add.Tensor(FakeTensor(..., size=(2,)), tensor([...], size=(2,)))",
                tn_add(fake, real, tn_int(1), &z));
    EXPECT(z == NULL);
    UNREF(real, number, square, fake);
    tn_fake_mode_unref(mode);
}

TEST(a_mode_that_allows_real_tensors_converts_them)
{
    tn_fake_mode *mode = new_mode(true);
    tn_tensor *real = ones(2, TN_CPU);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *sum = NULL, *joined = NULL, *pair[] = {real, real};
    EXPECT_OK(tn_add(real, real, tn_int(1), &sum));
    EXPECT(tn_is_fake(sum));
    EXPECT_OK(tn_cat(pair, 2, 0, &joined));
    EXPECT(tn_is_fake(joined));
    EXPECT_FAIL(TN_INVALID, "Can't call metadata mutating ops on non-Fake Tensor inputs.",
                tn_t_(real));
    EXPECT_FAIL(TN_INVALID, "A real tensor cannot be written from inside a fake mode",
                tn_add_(real, sum, tn_int(1)));
    EXPECT_EQ_INT(tn_tensor_use_count(real), 1);
    UNREF(real, sum, joined);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* ---- values ---- */

TEST(what_depends_on_values_fails_and_names_the_operator)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *t = ones(1, TN_CPU), *n = ones(0, TN_CPU), *mask = NULL, *out[3] = {NULL};
    tn_scalar number;
    bool same;
    ASSERT_OK(tn_gt_scalar(t, tn_int(0), &mask));
    EXPECT_FAIL(TN_INVALID, "aten._local_scalar_dense.default", tn_item(n, &number));
    EXPECT_FAIL(TN_INVALID, "aten.nonzero.default", tn_nonzero(t, out));
    EXPECT_FAIL(TN_INVALID, "aten.nonzero.default", tn_index(t, &mask, 1, out));
    EXPECT_FAIL(TN_INVALID, "aten.masked_select.default", tn_masked_select(t, mask, out));
    EXPECT_FAIL(TN_INVALID, "aten._unique2.default",
                tn__unique2(t, true, false, false, out, out + 1, out + 2));
    EXPECT_FAIL(TN_INVALID, "aten.equal.default", tn_equal(t, t, &same));
    EXPECT(!out[0] && !out[1] && !out[2]);
    EXPECT_OK(tn_index_put_(t, &mask, 1, n, false)); /* needs no count */
    UNREF(t, n, mask);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

static tn_status no_meta(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    rets[0] = tn_value_take_tensor(tn_tensor_ref(args[0].u.tensor));
    return TN_OK;
}

TEST(an_operator_without_a_meta_kernel_says_what_to_register)
{
    tn_library *lib;
    tn_kernel kernel = TN_KERNEL_INIT(no_meta);
    tn_op *op;
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "faketest", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_def(lib, "same(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(lib, "same", TN_KEY_CPU, &kernel, NULL));
    ASSERT_OK(tn_op_find("faketest::same", &op));
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *t = ones(1, TN_CPU);
    tn_value arg = tn_value_tensor(t), ret;
    EXPECT_FAIL(TN_UNSUPPORTED, "there was no fake impl or Meta kernel registered",
                tn_op_call(op, &arg, 1, &ret));
    UNREF(t);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
    tn_library_close(lib);
}

static tn_status like_on_meta(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *t = args[0].u.tensor, *made = NULL;
    tn_tensor_opts opts = tn_opts(tn_tensor_dtype(t), TN_META);
    tn_status st = tn_empty(tn_tensor_sizes(t), tn_tensor_ndim(t), &opts, TN_FORMAT_NONE, &made);
    if (st == TN_OK)
        rets[0] = tn_value_take_tensor(made);
    return st;
}

TEST(a_meta_kernel_of_a_user_serves_fake_tensors)
{
    tn_library *lib;
    tn_kernel kernel = TN_KERNEL_INIT(like_on_meta);
    tn_op *op;
    ASSERT_OK(tn_library_open(TN_LIBRARY_DEF, "faketest", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_def(lib, "like(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_impl(lib, "like", TN_KEY_META, &kernel, NULL));
    ASSERT_OK(tn_op_find("faketest::like", &op));
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *t = ones(2, cuda(1));
    tn_value arg = tn_value_tensor(t), ret;
    ASSERT_OK(tn_op_call(op, &arg, 1, &ret));
    EXPECT(tn_is_fake(ret.u.tensor));
    expect_device(ret.u.tensor, "cuda:1");
    EXPECT(tn_tensor_keys(ret.u.tensor) == tn_tensor_keys(t));
    tn_value_clear(&ret);
    UNREF(t);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
    tn_library_close(lib);
}

/* ---- views, writes, texts ---- */

TEST(views_and_writes_are_tracked_as_for_real_tensors)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *t = ones(2, cuda(0)), *v = NULL, *u = NULL;
    uint32_t version = 0;
    ASSERT_OK(tn_view(t, (int64_t[]){4}, 1, &v));
    EXPECT(tn_tensor_shares_storage(t, v));
    EXPECT_OK(tn_add_(v, v, tn_int(1)));
    EXPECT_OK(tn_tensor_version(t, &version));
    EXPECT_EQ_INT(version, 1);
    EXPECT_OK(tn_detach(t, &u));
    EXPECT_OK(tn_zero_(u));
    EXPECT_OK(tn_tensor_version(v, &version));
    EXPECT_EQ_INT(version, 2);
    EXPECT_OK(tn_t_(t));
    EXPECT_OK(tn_tensor_version(v, &version));
    EXPECT_EQ_INT(version, 3);
    UNREF(t, v, u);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(inference_mode_makes_fake_inference_tensors)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *normal = ones(2, cuda(0)), *made = NULL, *product = NULL, *view = NULL;
    tn_inference_guard inference = tn_inference_enter(true);
    ASSERT_OK(tn_add(normal, normal, tn_int(1), &made));
    EXPECT(tn_tensor_is_inference(made) && tn_is_fake(made));
    ASSERT_OK(tn_matmul(made, made, &product)); /* a composite, met below autograd */
    EXPECT(tn_tensor_is_inference(product) && tn_is_fake(product));
    ASSERT_OK(tn_reshape(normal, (int64_t[]){4}, 1, &view));
    EXPECT(!tn_tensor_is_inference(view) && tn_tensor_shares_storage(view, normal));
    tn_inference_leave(inference);
    UNREF(normal, made, product, view);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

static void expect_text(tn_tensor *t, const char *wanted)
{
    char *text;
    ASSERT_OK(tn_tensor_to_string(t, &text));
    EXPECT_STR(text, wanted);
    tn_string_free(text);
}

TEST(a_fake_tensor_prints_as_the_references_does)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *a = ones(1, TN_CPU), *b = ones(1, cuda(0)), *c = NULL;
    expect_text(a, "FakeTensor(..., size=(2,))");
    EXPECT_OK(tn_tensor_set_requires_grad(b, true));
    expect_text(b, "FakeTensor(..., device='cuda:0', size=(2,), requires_grad=True)");
    ASSERT_OK(tn_arange(tn_int(3), NULL, &c));
    expect_text(c, "FakeTensor(..., size=(3,), dtype=int64)");
    UNREF(a, b, c);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

TEST(a_fake_tensor_is_not_exported)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *a = ones(1, TN_CPU), *b = ones(1, cuda(0));
    struct DLManagedTensorVersioned *m = NULL;
    EXPECT_FAIL(TN_UNSUPPORTED, "cannot export", tn_to_dlpack(a, &m));
    EXPECT_FAIL(TN_UNSUPPORTED, "cannot export", tn_to_dlpack(b, &m));
    UNREF(a, b);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* ---- asking why ---- */

typedef struct seen {
    bool fake, meta, cpu;
} seen;

static void see(void *ctx, const tn_event *event)
{
    seen *s = ctx;
    s->fake |= event->key == TN_KEY_FAKE && event->kind != TN_EVENT_RETURN;
    s->meta |= event->key == TN_KEY_META && event->kind != TN_EVENT_RETURN;
    s->cpu |= event->key == TN_KEY_CPU;
}

TEST(an_observer_sees_the_call_pass_the_fake_key)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *a = ones(2, TN_CPU), *b = NULL;
    seen s = {false, false, false};
    ASSERT_OK(tn_observe_thread(see, &s));
    EXPECT_OK(tn_mm(a, a, &b));
    ASSERT_OK(tn_observe_thread(NULL, NULL));
    EXPECT(s.fake && s.meta && !s.cpu);
    UNREF(a, b);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* ---- threads ---- */

typedef struct shared {
    tn_fake_mode *mode;
    tn_tensor *real;
    tn_tensor *fake[8];
} shared;

static void work(int i, void *arg)
{
    shared *s = arg;
    tn_fake_guard guard = tn_fake_enter(s->mode);
    ASSERT_OK(tn_fake_from_real(s->mode, s->real, &s->fake[i]));
    for (int k = 0; k < 200; k++) {
        tn_tensor *sum = NULL;
        EXPECT_OK(tn_add(s->fake[i], s->fake[i], tn_int(1), &sum));
        EXPECT(tn_fake_mode_of(sum) == s->mode);
        tn_tensor_unref(sum);
    }
    tn_fake_leave(guard);
    tn_tensor *outside = ones(1, TN_CPU);
    EXPECT(!tn_is_fake(outside));
    tn_tensor_unref(outside);
}

TEST(threads_enter_one_mode_and_convert_one_tensor_once)
{
    shared s = {.mode = new_mode(false), .real = ones(2, TN_CPU)};
    run_threads(8, work, &s);
    for (int i = 1; i < 8; i++)
        EXPECT(s.fake[i] == s.fake[0]);
    unref_all(s.fake, 8);
    UNREF(s.real);
    tn_fake_mode_unref(s.mode);
}

typedef struct family {
    tn_fake_mode *mode;
    tn_tensor *base, *views[4];
    tn_tensor *fake_base[8], *fake_view[8];
} family;

static void convert_family(int i, void *arg)
{
    family *f = arg;
    if (i % 2)
        ASSERT_OK(tn_fake_from_real(f->mode, f->base, &f->fake_base[i]));
    ASSERT_OK(tn_fake_from_real(f->mode, f->views[i / 2], &f->fake_view[i]));
    if (i % 2 == 0)
        ASSERT_OK(tn_fake_from_real(f->mode, f->base, &f->fake_base[i]));
}

TEST(threads_that_convert_views_of_one_base_find_one_base)
{
    for (int round = 0; round < 20; round++) {
        family f = {.mode = new_mode(false), .base = ones(2, TN_CPU)};
        for (int i = 0; i < 4; i++)
            ASSERT_OK(tn_view(f.base, (int64_t[]){4}, 1, &f.views[i]));
        run_threads(8, convert_family, &f);
        for (int i = 0; i < 8; i++) {
            EXPECT(f.fake_base[i] == f.fake_base[0]);
            EXPECT(tn_tensor_base(f.fake_view[i]) == f.fake_base[0]);
            EXPECT(tn_tensor_shares_storage(f.fake_view[i], f.fake_base[0]));
            EXPECT(f.fake_view[i] == f.fake_view[i ^ 1]);
        }
        unref_all(f.fake_base, 8);
        unref_all(f.fake_view, 8);
        unref_all(f.views, 4);
        UNREF(f.base);
        tn_fake_mode_unref(f.mode);
    }
}

TEST(a_number_that_is_no_dtype_is_not_taken_for_none)
{
    tn_fake_mode *mode = new_mode(false);
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *x = ones(2, TN_CPU), *y = NULL;
    EXPECT(tn_softmax(x, 0, (tn_dtype)-7, &y) == TN_TYPE);
    EXPECT(tn_to_dtype(x, (tn_dtype)-7, false, false, TN_FORMAT_NONE, &y) == TN_TYPE);
    EXPECT_OK(tn_softmax(x, 0, TN_DTYPE_NONE, &y));
    UNREF(x, y);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}
