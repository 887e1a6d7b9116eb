/* SPDX-License-Identifier: MIT */
/* tests/opgen/test_generated.c: what generated wrappers, adaptors and glue kernels do, in which
 * order, and what they leave behind when something fails. */
#include <string.h>
#include "fakes.h"
#include "core/state.h"
#include "core/tensor.h"
#include "harness/test.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"

static tn_tensor *tensor_on(tn_device device)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_new(1, (int64_t[]){2}, NULL, TN_DTYPE_F32, device, &t));
    return t;
}

static tn_tensor *tensor(void)
{
    return tensor_on(TN_CPU);
}

static uint32_t version(const tn_tensor *t)
{
    uint32_t v = 0;
    ASSERT_OK(tn_tensor_version(t, &v));
    return v;
}

static tn_op *op(const char *name)
{
    tn_op *found = NULL;
    ASSERT_OK(tn_op_find(name, &found));
    return found;
}

/* ---- typed calls ---- */

TEST(structured_runs_shape_then_computation)
{
    tn_tensor *a = tensor(), *out = NULL;
    fake_reset();
    ASSERT_OK(tn_mm(a, a, &out));
    EXPECT_STR(fake_log(), "shape_mm cpu_mm");
    EXPECT_EQ_INT(tn_tensor_use_count(out), 1);
    tn_tensor_unref(out);
    tn_tensor_unref(a);
}

TEST(meta_runs_the_shape_alone)
{
    tn_tensor *a = tensor_on(TN_META), *out = NULL;
    fake_reset();
    ASSERT_OK(tn_mm(a, a, &out));
    EXPECT_STR(fake_log(), "shape_mm check_meta");
    EXPECT_EQ_INT(tn_tensor_device(out).type, TN_DEVICE_META);
    fake_reset();
    ASSERT_OK(tn_mm_out(a, a, out));
    EXPECT_STR(fake_log(), "shape_mm out_check check_meta out_prepare:2");
    tn_tensor_unref(out);
    tn_tensor_unref(a);
}

TEST(out_prepares_computes_finishes_and_counts_one_write)
{
    tn_tensor *a = tensor(), *out = tensor();
    uint32_t before = version(out);
    fake_reset();
    ASSERT_OK(tn_mm_out(a, a, out));
    EXPECT_STR(fake_log(), "shape_mm out_prepare:2 cpu_mm out_finish");
    EXPECT_EQ_INT(version(out), before + 1);
    EXPECT_EQ_INT(tn_tensor_use_count(out), 1);
    tn_tensor_unref(out);
    tn_tensor_unref(a);
}

TEST(in_place_gives_the_other_inputs_and_counts_one_write)
{
    tn_tensor *a = tensor(), *b = tensor();
    uint32_t before = version(a);
    fake_reset();
    ASSERT_OK(tn_addmm_(a, b, b, tn_int(1), tn_float(2)));
    EXPECT_STR(fake_log(), "shape_addmm:0,1 inplace_prepare:2 cpu_addmm out_finish");
    EXPECT_EQ_INT(version(a), before + 1);
    EXPECT_EQ_INT(version(b), before);
    tn_tensor_unref(b);
    tn_tensor_unref(a);
}

TEST(pointwise_checks_plans_runs_and_ends_in_each_mode)
{
    tn_tensor *a = tensor(), *out = NULL;
    fake_reset();
    ASSERT_OK(tn_add(a, a, tn_int(3), &out));
    EXPECT_STR(fake_log(), "check_add iter_begin:2,0,0 cpu_add:3 iter_end");
    fake_reset();
    ASSERT_OK(tn_add_(a, out, tn_int(1)));
    EXPECT_STR(fake_log(), "check_add iter_begin:2,0,1 cpu_add:1 iter_end");
    fake_reset();
    ASSERT_OK(tn_add_out(a, a, tn_int(1), out));
    EXPECT_STR(fake_log(), "check_add iter_begin:2,0,2 cpu_add:1 iter_end");
    fake_reset();
    ASSERT_OK(tn_add_scalar_(a, tn_float(0.5), tn_int(1)));
    EXPECT_STR(fake_log(), "check_add_scalar iter_begin:2,0,1 cpu_add:1 iter_end");
    tn_tensor_unref(out);
    tn_tensor_unref(a);
}

TEST(two_results_come_in_order)
{
    tn_tensor *a = tensor(), *values = NULL, *indices = NULL;
    fake_reset();
    ASSERT_OK(tn_max(a, 1, true, &values, &indices));
    EXPECT_STR(fake_log(), "shape_max_dim:1,1 cpu_max_dim");
    EXPECT_EQ_INT(tn_tensor_numel(values), 2);
    EXPECT_EQ_INT(tn_tensor_numel(indices), 3);
    fake_reset();
    ASSERT_OK(tn_max_out(a, 0, false, values, indices));
    EXPECT_STR(fake_log(),
               "shape_max_dim:0,0 out_check out_check out_prepare:1 out_prepare:1 cpu_max_dim "
               "out_finish out_finish");
    EXPECT_EQ_INT(version(values), 1);
    EXPECT_EQ_INT(version(indices), 1);
    tn_tensor_unref(values);
    tn_tensor_unref(indices);
    tn_tensor_unref(a);
}

TEST(a_view_shares_memory_and_writes_with_its_base)
{
    tn_tensor *a = tensor(), *view = NULL;
    fake_reset();
    ASSERT_OK(tn_t(a, &view));
    EXPECT_STR(fake_log(), "view_t view_made");
    EXPECT(tn_tensor_shares_storage(a, view));
    EXPECT_EQ_INT(tn_tensor_storage_offset(view), 1);
    ASSERT_OK(tn_fill_(view, tn_int(1)));
    EXPECT_EQ_INT(version(a), 1);
    tn_tensor_unref(view);
    tn_tensor_unref(a);
}

TEST(a_view_in_place_changes_the_geometry_and_counts_one_write)
{
    tn_tensor *a = tensor();
    fake_reset();
    ASSERT_OK(tn_t_(a));
    EXPECT_STR(fake_log(), "view_t");
    EXPECT_EQ_INT(tn_tensor_storage_offset(a), 1);
    EXPECT_EQ_INT(version(a), 1);
    tn_tensor_unref(a);
}

TEST(each_view_of_a_list_is_marked)
{
    tn_tensor *a = tensor(), **list = NULL;
    int64_t n = 0;
    fake_reset();
    ASSERT_OK(tn_split(a, 1, 0, &list, &n));
    EXPECT_STR(fake_log(), "split:1,0 multi_view_made multi_view_made");
    ASSERT_EQ_INT(n, 2);
    tn_tensor_list_free(list, n);
    tn_tensor_unref(a);
}

TEST(each_result_is_marked_with_its_own_base)
{
    tn_tensor *a = tensor(), *b = tensor(), *x = NULL, *y = NULL;
    fake_reset();
    ASSERT_OK(tn_pair_views(a, b, &x, &y));
    EXPECT_STR(fake_log(), "pair_views view_made view_made");
    ASSERT_OK(tn_fill_(y, tn_int(0)));
    EXPECT_EQ_INT(version(a), 0);
    EXPECT_EQ_INT(version(b), 1);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(every_written_argument_is_counted_also_lists_and_optional_ones)
{
    tn_tensor *self = tensor(), *running = tensor(), *s0 = tensor(), *s1 = tensor(), *out = NULL;
    tn_tensor *const state[] = {s0, s1};
    ASSERT_OK(tn_norm_(self, running, state, 2, &out));
    EXPECT_EQ_INT(version(self), 1);
    EXPECT_EQ_INT(version(running), 1);
    EXPECT_EQ_INT(version(s0), 1);
    EXPECT_EQ_INT(version(s1), 1);
    tn_tensor_unref(out);
    out = NULL;
    ASSERT_OK(tn_norm_(self, NULL, NULL, 0, &out));
    EXPECT_EQ_INT(version(self), 2);
    tn_tensor_unref(out);
    tn_tensor_unref(self);
    tn_tensor_unref(running);
    tn_tensor_unref(s0);
    tn_tensor_unref(s1);
}

TEST(a_factory_selects_its_backend_and_an_out_variant_takes_options_from_out)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_META);
    fake_reset();
    ASSERT_OK(tn_empty((int64_t[]){4, 5}, 2, NULL, TN_FORMAT_NONE, &t));
    EXPECT_STR(fake_log(), "select size:4,5 opts:-1,-1,-1,-1,-1");
    tn_tensor_unref(t);
    fake_reset();
    ASSERT_OK(tn_empty(NULL, 0, &opts, TN_FORMAT_NONE, &t));
    EXPECT_STR(fake_log(), "select empty_meta");
    tn_tensor_unref(t);
    t = tensor();
    fake_reset();
    ASSERT_OK(tn_arange_out(tn_int(0), tn_int(2), tn_int(1), t));
    EXPECT_STR(fake_log(), "shape_arange:6 out_prepare:0 cpu_arange:0,2,1 out_finish");
    tn_tensor_unref(t);
}

TEST(results_that_are_no_tensors_come_back)
{
    tn_tensor *a = tensor();
    bool same = false;
    int64_t size = 0;
    double scale = 0;
    tn_dtype dtype = TN_DTYPE_NONE;
    tn_scalar item = tn_int(0);
    ASSERT_OK(tn_is_same_size(a, a, &same));
    ASSERT_OK(tn_size(a, 0, &size));
    ASSERT_OK(tn_q_scale(a, &scale));
    ASSERT_OK(tn_common_type(TN_DTYPE_F32, TN_DTYPE_F64, &dtype));
    ASSERT_OK(tn_item(a, &item));
    EXPECT(same && size == 2 && dtype == TN_DTYPE_F64);
    EXPECT_NEAR(scale, 0.5, 0);
    EXPECT_EQ_INT(item.kind, TN_SCALAR_COMPLEX);
    tn_tensor_unref(a);
}

TEST(null_arguments_and_results_are_refused_by_name)
{
    tn_tensor *a = tensor(), *out = NULL;
    tn_tensor *const hole[] = {a, NULL};
    EXPECT_FAIL(TN_INVALID, "aten::mm: argument 'mat2'", tn_mm(a, NULL, &out));
    EXPECT_FAIL(TN_INVALID, "aten::mm: argument 'out' must not be NULL", tn_mm(a, a, NULL));
    EXPECT_FAIL(TN_INVALID, "aten::cat: element 1 of argument 'tensors' must be a tensor, not NULL",
                tn_cat(hole, 2, 0, &out));
    EXPECT_FAIL(TN_INVALID, "aten::cat: argument 'tensors' must be a list of 2 elements, not NULL",
                tn_cat(NULL, 2, 0, &out));
    EXPECT_FAIL(TN_INVALID, "aten::cat: argument 'tensors' has -1 elements",
                tn_cat(hole, -1, 0, &out));
    EXPECT_FAIL(TN_INVALID,
                "aten::empty.memory_format: argument 'size' must be a list of 1 elements",
                tn_empty(NULL, 1, NULL, TN_FORMAT_NONE, &out));
    EXPECT(out == NULL);
    tn_tensor_unref(a);
}

TEST(options_that_do_not_begin_with_their_size_are_refused)
{
    const int64_t size = 2;
    tn_tensor *out = NULL;
    tn_tensor_opts zeros;
    memset(&zeros, 0, sizeof zeros); /* {0}: else this would ask for uint8 */
    EXPECT_FAIL(TN_INVALID, "aten::empty.memory_format: opts->size is 0, wanted",
                tn_empty(&size, 1, &zeros, TN_FORMAT_NONE, &out));
    tn_tensor_opts newer = TN_TENSOR_OPTS_INIT;
    newer.size += 8;
    EXPECT_FAIL(TN_INVALID, "begin with tn_opts() or TN_TENSOR_OPTS_INIT",
                tn_empty(&size, 1, &newer, TN_FORMAT_NONE, &out));
    EXPECT(out == NULL);
}

/* ---- failures ---- */

TEST(a_failure_anywhere_leaves_out_and_the_thread_as_they_were)
{
    static const char *const stages[] = {"shape_mm", "cpu_mm"};
    tn_tensor *a = tensor();
    long live = tni_test_live;
    for (size_t i = 0; i < 2; i++) {
        tn_tensor *out = NULL;
        fake_reset();
        fake_fails(stages[i]);
        EXPECT_FAIL(TN_VALUE, "refuses", tn_mm(a, a, &out));
        EXPECT(out == NULL);
        EXPECT(tni_tls.excluded_xor == 0 && tni_tls.included_xor == 0);
        EXPECT_EQ_INT(tn_dispatch_depth(), 0);
        EXPECT_EQ_INT(tni_test_live, live);
    }
    EXPECT_STR(tn_last_error_op(), "aten::mm");
    tn_tensor_unref(a);
}

TEST(a_write_that_failed_is_not_counted)
{
    tn_tensor *a = tensor();
    fake_reset();
    fake_fails("cpu_add:1");
    EXPECT_FAIL(TN_VALUE, "refuses", tn_add_(a, a, tn_int(1)));
    EXPECT_EQ_INT(version(a), 0);
    tn_tensor_unref(a);
}

TEST(a_view_that_cannot_be_marked_is_released)
{
    tn_tensor *a = tensor(), *view = NULL, **list = NULL;
    int64_t n = -7;
    long live = tni_test_live;
    fake_reset();
    fake_fails("view_made");
    EXPECT_FAIL(TN_VALUE, "refuses", tn_t(a, &view));
    fake_reset();
    fake_fails("multi_view_made");
    EXPECT_FAIL(TN_VALUE, "refuses", tn_split(a, 1, 0, &list, &n));
    EXPECT(view == NULL && list == NULL && n == -7);
    EXPECT_EQ_INT(tni_test_live, live);
    EXPECT_EQ_INT(tn_tensor_use_count(a), 1);
    fake_reset();
    tn_tensor_unref(a);
}

TEST(glue_leaks_nothing_whichever_allocation_fails)
{
    tn_tensor *a = tensor();
    tn_status rc = TN_OK;
    fake_reset();
    ASSERT_OK(tn_nothing()); /* what a thread and the library need once is not counted */
    long live = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *x = NULL, *y = NULL, **list = NULL;
        int64_t n = 0;
        rc = tn_max(a, 0, false, &x, &y);
        if (rc == TN_OK)
            rc = tn_split(a, 1, 0, &list, &n);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && list == NULL && n == 0);
        tn_tensor_list_free(list, n);
        tn_tensor_unref(x);
        tn_tensor_unref(y);
        EXPECT_EQ_INT(tni_test_live, live);
    }
    tn_tensor_unref(a);
}

/* ---- boxed calls of typed kernels ---- */

TEST(a_boxed_call_runs_the_typed_kernel_and_owns_its_result)
{
    tn_tensor *a = tensor();
    tn_value args[] = {tn_value_tensor(a), tn_value_tensor(a)}, ret;
    fake_reset();
    ASSERT_OK(tn_op_call(op("aten::mm"), args, 2, &ret));
    EXPECT_STR(fake_log(), "shape_mm cpu_mm");
    ASSERT_EQ_INT(ret.tag, TN_TAG_TENSOR);
    EXPECT(ret.flags & TN_VALUE_OWNED);
    EXPECT_EQ_INT(tn_tensor_use_count(ret.u.tensor), 1);
    tn_value_clear(&ret);
    tn_tensor_unref(a);
}

TEST(a_boxed_call_that_writes_returns_a_reference_of_its_argument)
{
    tn_tensor *a = tensor(), *out = tensor();
    tn_value args[] = {tn_value_tensor(a), tn_value_tensor(a), tn_value_tensor(out)}, ret;
    ASSERT_OK(tn_op_call(op("aten::mm.out"), args, 3, &ret));
    EXPECT(ret.u.tensor == out && (ret.flags & TN_VALUE_OWNED));
    EXPECT_EQ_INT(tn_tensor_use_count(out), 2);
    tn_value_clear(&ret);
    ASSERT_OK(tn_op_call(op("aten::copy_"), args, 2, &ret));
    EXPECT(ret.u.tensor == a);
    tn_value_clear(&ret);
    EXPECT_EQ_INT(tn_tensor_use_count(a), 1);
    tn_tensor_unref(out);
    tn_tensor_unref(a);
}

TEST(a_boxed_call_returns_lists_and_several_results)
{
    tn_tensor *a = tensor();
    tn_value args[] = {tn_value_tensor(a), tn_value_int(1)}, rets[2];
    ASSERT_OK(tn_op_call(op("aten::split.Tensor"), args, 2, rets));
    ASSERT_EQ_INT(rets[0].tag, TN_TAG_TENSOR_LIST);
    EXPECT_EQ_INT(rets[0].count, 2);
    EXPECT_EQ_INT(tn_tensor_use_count(rets[0].u.tensors[1]), 1);
    tn_value_clear(&rets[0]);
    ASSERT_OK(tn_op_call(op("aten::max.dim"), args, 2, rets));
    EXPECT_EQ_INT(tn_tensor_numel(rets[1].u.tensor), 3);
    EXPECT_EQ_INT(tn_tensor_use_count(rets[1].u.tensor), 1);
    tn_value_clear(&rets[0]);
    tn_value_clear(&rets[1]);
    ASSERT_OK(tn_op_call(op("my::nothing"), NULL, 0, NULL));
    EXPECT_EQ_INT(tn_tensor_use_count(a), 1);
    tn_tensor_unref(a);
}

/* ---- typed calls of boxed kernels ---- */

static struct {
    int calls, nargs;
    tn_value args[20]; /* borrowed; looked at while the call runs, tags afterwards */
    tn_value *give;
} boxed;

static tn_status boxed_kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    boxed.calls++;
    boxed.nargs = tn_op_num_arguments(tn_call_op(call));
    memcpy(boxed.args, args, (size_t)boxed.nargs * sizeof *args);
    for (int i = 0; i < tn_op_num_returns(tn_call_op(call)); i++)
        rets[i] = boxed.give[i];
    return TN_OK;
}

/* Passes everything on, boxed. */
static tn_status boxed_passage(tn_call *call, const tn_value *args, tn_value *rets)
{
    boxed.calls++;
    return tn_call_redispatch(call, tn_call_keys(call) & tn_keyset_full_after(TN_KEY_AUTOGRAD_CPU),
                              args, rets);
}

static tn_library *library_with(const char *name, tn_key key, tn_kernel kernel)
{
    tn_library *lib = NULL;
    const char *ns = strncmp(name, "my::", 4) == 0 ? "my" : "aten";
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, ns, key, __FILE__, __LINE__, &lib));
    ASSERT_OK(tn_library_impl(lib, strstr(name, "::") + 2, key, &kernel, NULL));
    memset(&boxed, 0, sizeof boxed);
    return lib;
}

TEST(a_typed_call_boxes_for_a_kernel_that_is_boxed_only)
{
    tn_library *lib = library_with("aten::mm", TN_KEY_CPU, (tn_kernel)TN_KERNEL_INIT(boxed_kernel));
    tn_tensor *a = tensor(), *b = tensor(), *out = NULL;
    tn_value give[] = {tn_value_take_tensor(tensor())};
    tn_tensor *given = give[0].u.tensor;
    boxed.give = give;
    ASSERT_OK(tn_mm(a, b, &out));
    EXPECT_EQ_INT(boxed.calls, 1);
    EXPECT(boxed.args[0].u.tensor == a && boxed.args[1].u.tensor == b);
    EXPECT(out == given && tn_tensor_use_count(out) == 1);
    tn_library_close(lib);
    tn_tensor_unref(out);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(a_boxed_kernel_that_writes_may_leave_its_result_out)
{
    tn_library *lib =
        library_with("aten::copy_", TN_KEY_CPU, (tn_kernel)TN_KERNEL_INIT(boxed_kernel));
    tn_tensor *a = tensor(), *b = tensor();
    tn_value give[] = {tn_value_none()};
    boxed.give = give;
    ASSERT_OK(tn_copy_(a, b, true));
    EXPECT_EQ_INT(boxed.args[2].tag, TN_TAG_BOOL);
    EXPECT_EQ_INT(tn_tensor_use_count(a), 1);
    tn_library_close(lib);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(a_boxed_result_of_the_wrong_type_is_refused_and_released)
{
    tn_library *lib = library_with("aten::mm", TN_KEY_CPU, (tn_kernel)TN_KERNEL_INIT(boxed_kernel));
    tn_tensor *a = tensor(), *out = NULL;
    long live = tni_test_live;
    tn_tensor **list = tni_calloc(sizeof *list);
    ASSERT(list != NULL);
    list[0] = tensor();
    tn_value give[] = {tn_value_take_tensors(list, 1)};
    boxed.give = give;
    EXPECT_FAIL(TN_TYPE, "aten::mm", tn_mm(a, a, &out));
    EXPECT(out == NULL);
    EXPECT_EQ_INT(tni_test_live, live);
    tn_library_close(lib);
    tn_tensor_unref(a);
}

TEST(a_list_of_tensors_may_come_as_a_list_of_values)
{
    tn_library *lib =
        library_with("aten::split.Tensor", TN_KEY_CPU, (tn_kernel)TN_KERNEL_INIT(boxed_kernel));
    tn_tensor *a = tensor(), *b = tensor(), **out = NULL;
    int64_t n = 0;
    tn_value both[] = {tn_value_tensor(b), tn_value_tensor(b)};
    tn_value give[] = {{.tag = TN_TAG_LIST, .count = 2, .u.values = both}};
    boxed.give = give;
    ASSERT_OK(tn_split(a, 1, 0, &out, &n));
    ASSERT_EQ_INT(n, 2);
    EXPECT(out[0] == b && out[1] == b);
    EXPECT_EQ_INT(tn_tensor_use_count(b), 3);
    tn_tensor_list_free(out, n);
    give[0] = tn_value_ints(NULL, 0);
    ASSERT_OK(tn_split(a, 1, 0, &out, &n));
    EXPECT_EQ_INT(n, 0);
    tn_tensor_list_free(out, n);
    tn_library_close(lib);
    EXPECT_EQ_INT(tn_tensor_use_count(b), 1);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

TEST(options_are_boxed_as_four_values)
{
    tn_library *lib = library_with("aten::empty.memory_format", TN_KEY_CPU,
                                   (tn_kernel)TN_KERNEL_INIT(boxed_kernel));
    tn_tensor *out = NULL;
    tn_value give[] = {tn_value_take_tensor(tensor())};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    opts.pin_memory = TN_BOOL_FALSE;
    boxed.give = give;
    ASSERT_OK(tn_empty((int64_t[]){3}, 1, &opts, TN_FORMAT_PRESERVE, &out));
    EXPECT_EQ_INT(boxed.nargs, 6);
    EXPECT_EQ_INT(boxed.args[0].tag, TN_TAG_INT_LIST);
    EXPECT(boxed.args[1].tag == TN_TAG_INT && boxed.args[1].u.i == TN_DTYPE_F64);
    EXPECT_EQ_INT(boxed.args[2].tag, TN_TAG_NONE);
    EXPECT(boxed.args[3].tag == TN_TAG_DEVICE && boxed.args[3].u.device.type == TN_DEVICE_CPU);
    EXPECT(boxed.args[4].tag == TN_TAG_BOOL && boxed.args[4].u.i == 0);
    EXPECT(boxed.args[5].tag == TN_TAG_INT && boxed.args[5].u.i == TN_FORMAT_PRESERVE);
    tn_library_close(lib);
    tn_tensor_unref(out);
}

/* Typed, boxed by the wrapper, passed on boxed, unboxed by the adaptor, typed. */
TEST(every_type_survives_boxing_and_unboxing)
{
    tn_library *lib = library_with("my::everything", TN_KEY_AUTOGRAD_CPU,
                                   (tn_kernel)TN_KERNEL_INIT(boxed_passage));
    tn_tensor *t = tensor();
    tn_tensor *const list[] = {NULL, t};
    tn_scalar s = tn_float(2.5);
    const double floats[] = {1.5};
    const bool bools[] = {true, false};
    fake_reset();
    ASSERT_OK(tn_everything(list, 2, (int64_t[]){7, 8}, 2, tn_some_float(0.25), TN_BOOL_TRUE, &s,
                            floats, 1, bools, 2, "text", "more", tn_some_int(9), (int64_t[]){4}, 1,
                            TN_DTYPE_F64, TN_FORMAT_CHANNELS_LAST, TN_META, floats, 0, t));
    EXPECT_EQ_INT(boxed.calls, 1);
    EXPECT_STR(fake_log(),
               "a=2! b=2:7 c=0.25 d=1 e=2.5 f=1:1.5 g=2:1 h=text i=more j=9 k=1:4 l=7 m=2 n=15 "
               "o=list:0 p=tensor");
    fake_reset();
    ASSERT_OK(tn_everything(&t, 1, NULL, 0, tn_no_float(), TN_BOOL_NONE, NULL, NULL, 0, NULL, 0, "",
                            NULL, tn_no_int(), NULL, 0, TN_DTYPE_BOOL, TN_FORMAT_NONE, TN_NO_DEVICE,
                            NULL, 0, NULL));
    EXPECT_EQ_INT(boxed.calls, 2);
    EXPECT_STR(fake_log(),
               "a=1 c=-1 d=-1 e=-1 f=0:0 g=0:0 h= i=- j=-1 k=0:0 l=11 m=-1 n=-1 o=-:0 p=-");
    tn_library_close(lib);
    tn_tensor_unref(t);
}

/* ---- the other faces ---- */

TEST(scope_functions_give_results_to_the_scope_and_stop_at_the_first_failure)
{
    tn_tensor *a = tensor();
    tn_scope *scope = NULL;
    long live = tni_test_live;
    ASSERT_OK(tn_scope_enter(&scope));
    fake_reset();
    tn_tensor *c = tnx_mm(tnx_add(a, a, tn_int(1)), tnx_t(a));
    EXPECT(c != NULL);
    EXPECT(tnx_add_(c, a, tn_int(1)) == c);
    EXPECT(tnx_mm_out(a, a, c) == c);
    fake_reset();
    fake_fails("shape_mm");
    EXPECT(tnx_mm(a, a) == NULL);
    fake_reset();
    EXPECT(tnx_add_(c, a, tn_int(1)) == NULL);
    EXPECT_STR(fake_log(), "");
    EXPECT_EQ_INT(tn_scope_leave(scope), TN_VALUE);
    EXPECT_CONTAINS(tn_last_error(), "shape_mm refuses");
    EXPECT_EQ_INT(tni_test_live, live);
    EXPECT_EQ_INT(tn_tensor_use_count(a), 1);
    tn_tensor_unref(a);
}

static tn_status my_mm(tn_call *call, tn_tensor *self, tn_tensor *mat2, tn_tensor **out)
{
    (void)call, (void)mat2;
    *out = tn_tensor_ref(self);
    return TN_OK;
}

TEST(a_typed_kernel_from_outside_serves_typed_and_boxed_calls)
{
    tn_library *lib = library_with("aten::mm", TN_KEY_CPU, tn_kernel_mm(my_mm, __FILE__, __LINE__));
    tn_tensor *a = tensor(), *out = NULL;
    tn_value args[] = {tn_value_tensor(a), tn_value_tensor(a)}, ret;
    ASSERT_OK(tn_mm(a, a, &out));
    EXPECT(out == a);
    ASSERT_OK(tn_op_call(op("aten::mm"), args, 2, &ret));
    EXPECT(ret.u.tensor == a);
    tn_value_clear(&ret);
    tn_tensor_unref(out);
    tn_library_close(lib);
    tn_tensor_unref(a);
}

static void count_event(void *ctx, const tn_event *event)
{
    int *counts = ctx;
    counts[event->kind]++;
    if (event->kind == TN_EVENT_CALL)
        EXPECT_EQ_INT(event->n_args, 2);
}

TEST(an_observer_hears_of_each_hop_and_the_result_is_the_same)
{
    tn_tensor *a = tensor(), *out = NULL;
    int counts[8] = {0};
    ASSERT_OK(tn_observe_thread(count_event, counts));
    fake_reset();
    ASSERT_OK(tn_mm(a, a, &out));
    ASSERT_OK(tn_observe_thread(NULL, NULL));
    EXPECT_STR(fake_log(), "shape_mm cpu_mm");
    EXPECT_EQ_INT(counts[TN_EVENT_CALL], 1);
    EXPECT_EQ_INT(counts[TN_EVENT_REDISPATCH], 1); /* from autograd to the CPU */
    EXPECT_EQ_INT(counts[TN_EVENT_RETURN], 2);
    tn_tensor_unref(out);
    tn_tensor_unref(a);
}
