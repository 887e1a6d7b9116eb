/* SPDX-License-Identifier: MIT */
/* Each allocation failing in turn, in every public function of tenon/dispatch.h that allocates: the
 * right status, nothing leaked, nothing half registered. */
#include "dispatch/kit.h"

#include <string.h>
#include "base/alloc.h"
#include "tenon/ops.h"

/* What the caches of this process hold is made now, not while allocations are counted. */
static void warm_up(void)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x, int n=1) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_library_def(k.defs, "other(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    EXPECT_OK(kit_call("t::op", kit_keys(TN_KEY_CPU)));
    kit_close(&k);
    EXPECT_OK(tn_check_invariants());
}

/* Run @p body, which sets rc and undoes what it did when it succeeded. */
#define EACH_FAILING(...)                          \
    do {                                           \
        tn_status rc = TN_INTERNAL;                \
        int64_t before_ = tni_test_live;           \
        WITH_EACH_ALLOCATION_FAILING(rc)           \
        {                                          \
            __VA_ARGS__;                           \
            if (rc != TN_OK)                       \
                EXPECT_EQ_INT(rc, TN_NOMEM);       \
            EXPECT_EQ_INT(tni_test_live, before_); \
        }                                          \
        EXPECT_OK(tn_check_invariants());          \
    } while (0)

TEST(opening_a_library)
{
    warm_up();
    tn_library *lib = NULL;
    EACH_FAILING({
        rc = tn_library_open(TN_LIBRARY_DEF, "faulty", TN_KEY_NONE, "f.c", 1, &lib);
        EXPECT(rc == TN_OK || lib == NULL);
        tn_library_close(lib);
        lib = NULL;
    });
}

TEST(defining_an_operator_with_a_kernel)
{
    warm_up();
    kit k = kit_open();
    tn_kernel kernel = kit_kernel("c");
    kernel.signature = "(Tensor, int) -> Tensor";
    const char *tags[] = {"core", "pointwise"};
    tn_registration *r = NULL;
    EACH_FAILING({
        rc = tn_library_def_ex(k.defs, "op(Tensor x, int n=1) -> Tensor", &kernel,
                               TN_ALIAS_PURE_FUNCTION, tags, 2, &r);
        tn_op *op;
        if (rc != TN_OK)
            EXPECT(r == NULL && tn_op_find("t::op", &op) != TN_OK);
        tn_registration_undo(r);
        r = NULL;
    });
    kit_close(&k);
}

TEST(registering_a_kernel_and_a_fallback)
{
    warm_up();
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x, int n=1) -> Tensor", NULL, NULL));
    tn_kernel kernel = kit_kernel("c");
    tn_registration *r = NULL;
    EACH_FAILING({
        rc = tn_library_impl(k.impls, "op", TN_KEY_CPU, &kernel, &r);
        EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), rc == TN_OK ? "c" : "-");
        tn_registration_undo(r);
        r = NULL;
    });
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "-");
    EACH_FAILING({
        rc = tn_library_fallback(k.fallbacks, TN_KEY_XLA, &kernel, &r);
        EXPECT_STR(kit_slot("t::op", TN_KEY_XLA), rc == TN_OK ? "c" : "-");
        tn_registration_undo(r);
        r = NULL;
    });
    kit_close(&k);
}

TEST(undoing_takes_effect_although_there_is_no_memory_at_all)
{
    warm_up();
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x, int n=1) -> Tensor", NULL, NULL));
    tn_kernel fallback = kit_kernel("F"), through = tn_kernel_fallthrough("x.c", 1);
    tn_registration *f, *t;
    ASSERT_OK(tn_library_fallback(k.fallbacks, TN_KEY_XLA, &fallback, &f));
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_AUTOGRAD_CPU, &through, &t));
    tn_registration *c = kit_impl_handle(&k, "op", TN_KEY_CPU, "c");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    tni_alloc_watch(0, true);
    tn_registration_undo(c);
    tn_registration_undo(f);
    tn_registration_undo(t);
    tni_alloc_unwatch();
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "-");
    EXPECT_STR(kit_slot("t::op", TN_KEY_XLA), "-");
    EXPECT_OK(tn_check_invariants());
    EXPECT_FAIL(TN_UNSUPPORTED, "Could not run", kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    kit_impl(&k, "op", TN_KEY_CPU, "d");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "d");
    kit_close(&k);
}

TEST(boxed_calls_with_arrays_and_stacks)
{
    warm_up();
    kit k = kit_open();
    tn_op *op;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x, int n=1) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    ASSERT_OK(tn_op_find("t::op", &op));
    tn_tensor *x = kit_tensor(kit_keys(TN_KEY_CPU));
    tn_value arg = tn_value_tensor(x), ret = tn_value_none();
    EACH_FAILING({
        kit_log_clear();
        rc = tn_op_call(op, &arg, 1, &ret);
        tn_value_clear(&ret);
    });
    EACH_FAILING({
        tn_stack stack = TN_STACK_INIT;
        kit_log_clear();
        rc = tn_stack_push(&stack, tn_value_tensor(x));
        if (rc == TN_OK)
            rc = tn_stack_push(&stack, tn_value_int(2));
        if (rc == TN_OK) {
            rc = tn_op_call_boxed(op, &stack);
            EXPECT_EQ_INT(stack.n, rc == TN_OK ? 1 : 2); /* as before, or the result */
        }
        tn_stack_clear(&stack);
    });
    tn_tensor_unref(x);
    kit_close(&k);
}

static tn_status pass_on(tn_call *call, const tn_value *args, tn_value *rets)
{
    return tn_call_redispatch(call, tn_keyset_of(TN_KEY_CPU), args, rets);
}

static tn_status pass_on_by_stack(tn_call *call, const tn_value *args, tn_value *rets)
{
    tn_stack stack = TN_STACK_INIT;
    tn_status st = TN_OK;
    for (int i = 0; st == TN_OK && i < tn_call_num_arguments(call); i++)
        st = tn_stack_push(&stack, args[i]);
    if (st == TN_OK)
        st = tn_op_redispatch_boxed(call, tn_keyset_of(TN_KEY_CPU), &stack);
    for (int i = tn_call_num_returns(call); st == TN_OK && i-- > 0;)
        rets[i] = tn_stack_pop(&stack);
    tn_stack_clear(&stack);
    return st;
}

/* Returns things that are only borrowed: each is copied. */
static tn_status lend(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    for (int i = 0; i < 4; i++)
        rets[i] = args[i];
    return TN_OK;
}

TEST(arguments_that_are_brought_into_form_and_results_that_are_copied)
{
    warm_up();
    kit k = kit_open();
    tn_op *op = kit_def(&k, "forms(Tensor x, float[] f, int[3] n, Tensor?[] ts, str s=\"x\") -> "
                            "(Tensor, float[], int[], Tensor?[])");
    tn_kernel kernel = TN_KERNEL_INIT(lend), layer = TN_KERNEL_INIT(pass_on);
    tn_kernel by_stack = TN_KERNEL_INIT(pass_on_by_stack);
    ASSERT_OK(tn_library_impl(k.impls, "forms", TN_KEY_CPU, &kernel, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "forms", TN_KEY_TRACER, &layer, NULL));
    ASSERT_OK(tn_library_impl(k.impls, "forms", TN_KEY_VMAP_MODE, &by_stack, NULL));
    tn_tensor *x = kit_tensor(kit_keys(TN_KEY_CPU));
    const int64_t ints[2] = {1, 2};
    tn_value list[2] = {tn_value_tensor(x), tn_value_none()};
    const tn_value args[4] = {tn_value_tensor(x),
                              tn_value_ints(ints, 2),
                              tn_value_int(7),
                              {.tag = TN_TAG_LIST, .count = 2, .u.values = list}};
    const tn_keyset above[] = {0, tn_keyset_of(TN_KEY_TRACER), tn_keyset_of(TN_KEY_VMAP_MODE)};
    for (int layers = 0; layers < 3; layers++) {
        tn_key_guard guard = tn_include_keys(above[layers]);
        EACH_FAILING({
            tn_value rets[4] = {{.tag = TN_TAG_INT, .u.i = 5}};
            rc = tn_op_call(op, args, 4, rets);
            if (rc != TN_OK)
                EXPECT_EQ_INT(rets[0].u.i, 5); /* untouched */
            else
                EXPECT(rets[1].u.floats[1] == 2.0 && rets[2].u.ints[2] == 7 && rets[3].count == 2);
            for (int i = 0; rc == TN_OK && i < 4; i++)
                tn_value_clear(&rets[i]);
            EXPECT_EQ_INT(kit_refs(x), 1);
        });
        tn_keys_restore(guard);
    }
    EACH_FAILING({
        tn_stack stack = TN_STACK_INIT;
        rc = TN_OK;
        for (int i = 0; rc == TN_OK && i < 4; i++)
            rc = tn_stack_push(&stack, args[i]);
        if (rc == TN_OK)
            rc = tn_stack_push(&stack, tn_value_string("text"));
        if (rc == TN_OK) {
            rc = tn_op_call_for_key(op, TN_KEY_CPU, &stack);
            EXPECT_EQ_INT(stack.n, rc == TN_OK ? 4 : 5);
        }
        tn_stack_clear(&stack);
        EXPECT_EQ_INT(kit_refs(x), 1);
    });
    EACH_FAILING({
        tn_value rets[4];
        rc = tn_op_call_with_keys(op, tn_keyset_of(TN_KEY_CPU), args, 4, rets);
        for (int i = 0; rc == TN_OK && i < 4; i++)
            tn_value_clear(&rets[i]);
        EXPECT_EQ_INT(kit_refs(x), 1);
    });
    tn_tensor_unref(x);
    kit_close(&k);
}

static tn_status split_into_values(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_value list[2] = {args[0], args[0]};
    tn_value all = {.tag = TN_TAG_LIST, .count = 2, .u.values = list};
    return tn_value_copy(&all, &rets[0]);
}

TEST(a_typed_call_of_a_boxed_kernel)
{
    warm_up();
    tn_library *aten;
    tn_kernel kernel = TN_KERNEL_INIT(split_into_values);
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_PRIVATE1, "x.c", 1, &aten));
    ASSERT_OK(tn_library_impl(aten, "split_with_sizes", TN_KEY_NONE, &kernel, NULL));
    tn_op *op;
    ASSERT_OK(tn_op_find("aten::split_with_sizes", &op));
    EXPECT_EQ_INT(tn_op_num_returns(op), 1); /* parses its schema, once */
    tn_tensor *x = kit_tensor(kit_keys(TN_KEY_PRIVATE1));
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_ADINPLACE_OR_VIEW));
    const int64_t sizes[] = {1};
    EACH_FAILING({
        tn_tensor **out = NULL;
        int64_t n = -1;
        rc = tn_split_with_sizes(x, sizes, 1, 0, &out, &n);
        EXPECT(rc == TN_OK ? n == 2 : !out && n == -1);
        if (rc == TN_OK)
            tn_tensor_list_free(out, n);
        EXPECT_EQ_INT(kit_refs(x), 1);
    });
    tn_keys_restore(guard);
    tn_tensor_unref(x);
    tn_library_close(aten);
}

typedef struct new_thread {
    tn_op *op;
    tn_tensor *x;
    int64_t fail_at;
} new_thread;

static void call_on_new_thread(int i, void *arg)
{
    new_thread *n = arg;
    (void)i;
    tn_value v = tn_value_tensor(n->x), ret;
    tni_alloc_watch(n->fail_at, false);
    tn_status st = tn_op_call(n->op, &v, 1, &ret);
    tni_alloc_unwatch();
    if (st != TN_OK) {
        EXPECT_EQ_INT(st, TN_NOMEM);
        EXPECT_EQ_INT(tn_dispatch_depth(), 0);
        ASSERT_OK(tn_op_call(n->op, &v, 1, &ret)); /* when there is memory again */
    }
    tn_value_clear(&ret);
}

TEST(the_first_call_of_a_thread_can_be_tried_again)
{
    warm_up();
    kit k = kit_open();
    new_thread n = {kit_def(&k, "op(Tensor x) -> Tensor"), kit_tensor(kit_keys(TN_KEY_CPU)), 0};
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    for (; n.fail_at < 4; n.fail_at++)
        run_threads(1, call_on_new_thread, &n);
    EXPECT_OK(tn_check_invariants());
    tn_tensor_unref(n.x);
    kit_close(&k);
}

TEST(describing_and_listing)
{
    warm_up();
    tn_op *op, **ops = NULL;
    size_t n;
    char *text = NULL;
    ASSERT_OK(tn_op_find("aten::mm", &op));
    ASSERT_OK(tn_op_schema(op, &text));
    tn_string_free(text);
    typedef tn_status (*describe)(const tn_op *, char **);
    const describe all[] = {tn_op_schema, tn_op_dump_state, tn_op_dump_table};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        text = NULL;
        EACH_FAILING({
            rc = all[i](op, &text);
            EXPECT(rc == TN_OK || text == NULL);
            tn_string_free(text);
            text = NULL;
        });
    }
    EACH_FAILING({
        rc = tn_find_dangling(&text);
        tn_string_free(text);
        text = NULL;
    });
    EACH_FAILING({
        rc = tn_op_list(&ops, &n);
        tn_op_list_free(ops);
        ops = NULL;
    });
    EACH_FAILING({ rc = tn_check_invariants(); });
}

TEST(parsing_arguments)
{
    warm_up();
    tn_op *op;
    ASSERT_OK(tn_op_find("aten::addmm", &op));
    EXPECT_EQ_INT(tn_op_num_arguments(op), 5); /* parses its schema, once */
    const char *texts[] = {"f32[4]", "f32[2,3]", "f32[3,4].t", "alpha=2.5"};
    tn_value args[8];
    EACH_FAILING({
        rc = tn_op_parse_arguments(op, texts, 4, args);
        for (int i = 0; rc == TN_OK && i < tn_op_num_arguments(op); i++)
            tn_value_clear(&args[i]);
    });
}

static void ignore(void *ctx, tn_op *op)
{
    (void)ctx;
    (void)op;
}

TEST(listening_and_observing)
{
    warm_up();
    tn_listener l = {sizeof l, 0, ignore, ignore, NULL, NULL};
    tn_registration *r = NULL;
    EACH_FAILING({
        rc = tn_add_listener(&l, &r);
        EXPECT(rc == TN_OK || r == NULL);
        tn_registration_undo(r);
        r = NULL;
    });
}
