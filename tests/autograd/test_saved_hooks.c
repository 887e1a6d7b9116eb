/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_saved_hooks.c: what is kept in place of saved tensors. */
#include "kit.h"

#include <string.h>

#include "autograd/saved.h"
#include "tenon/saved_hooks.h"

typedef struct log {
    int packed, unpacked, dropped, destroyed;
    bool writes, returns_none, grad_enabled;
} log;

/* Keeps the double of the tensor, so that what comes back can be told apart. */
static tn_status pack(void *ctx, tn_tensor *t, void **out)
{
    log *l = ctx;
    l->packed++;
    l->grad_enabled = l->grad_enabled || tn_grad_enabled();
    if (l->writes)
        return tn_zero_(t);
    tn_tensor *twice = NULL;
    tn_status status = tn_mul_scalar(t, tn_float(2), &twice);
    if (status == TN_OK)
        *out = twice;
    return status;
}

static tn_status unpack(void *ctx, void *packed, tn_tensor **out)
{
    log *l = ctx;
    l->unpacked++;
    *out = l->returns_none ? NULL : tn_tensor_ref(packed);
    return TN_OK;
}

static void drop(void *ctx, void *packed)
{
    ((log *)ctx)->dropped++;
    tn_tensor_unref(packed);
}

static void destroy(void *ctx)
{
    ((log *)ctx)->destroyed++;
}

static tn_saved_hooks hooks_of(log *l)
{
    return (tn_saved_hooks){sizeof(tn_saved_hooks), 0, pack, unpack, drop, l, destroy};
}

TEST(what_hooks_give_back_is_what_backward_uses)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *a = NULL, *z = NULL;
    ASSERT_OK(kit_scale(y, &a));
    EXPECT(!tn_saved_hooks_on());
    ASSERT_OK(tn_saved_hooks_push(&hooks));
    EXPECT(tn_saved_hooks_on());
    ASSERT_OK(kit_mul(x, a, &z));
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT(!tn_saved_hooks_on());
    EXPECT_EQ_INT(l.packed, 2);
    EXPECT(!l.grad_enabled);
    EXPECT_EQ_INT(l.destroyed, 0);
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_EQ_INT(l.unpacked, 2);
    EXPECT_NEAR(kit_grad(x, 0), 20, 0);
    EXPECT_NEAR(kit_grad(y, 0), 12, 0);
    EXPECT_EQ_INT(l.dropped, 2);
    EXPECT_EQ_INT(l.destroyed, 1);
    tn_tensor_unref(z);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(the_topmost_pair_packs)
{
    log outer = {0}, inner = {0};
    tn_saved_hooks a = hooks_of(&outer), b = hooks_of(&inner);
    tn_tensor *x = kit_leaf(1, 3), *y = NULL, *z = NULL;
    ASSERT_OK(tn_saved_hooks_push(&a));
    ASSERT_OK(tn_saved_hooks_push(&b));
    ASSERT_OK(kit_mul(x, x, &y));
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_EQ_INT(inner.packed, 2);
    EXPECT_EQ_INT(outer.packed, 0);
    ASSERT_OK(kit_mul(x, x, &z));
    EXPECT_EQ_INT(outer.packed, 2);
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_FAIL(TN_INVALID, "no saved-tensor hooks", tn_saved_hooks_pop());
    tn_tensor_unref(y);
    EXPECT_EQ_INT(inner.destroyed, 1);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(outer.destroyed, 1);
}

static tn_status pack_and_pop(void *ctx, tn_tensor *t, void **out)
{
    if (((log *)ctx)->packed == 0)
        TN_TRY(tn_saved_hooks_pop());
    return pack(ctx, t, out);
}

TEST(a_pair_may_be_popped_while_it_packs)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    for (int writes = 0; writes < 2; writes++) {
        log l = {.writes = writes};
        tn_saved_hooks hooks = hooks_of(&l);
        hooks.pack = pack_and_pop;
        tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *a = NULL, *z = NULL;
        ASSERT_OK(kit_scale(y, &a));
        ASSERT_OK(tn_saved_hooks_push(&hooks));
        tn_status status = kit_mul(x, a, &z);
        EXPECT_EQ_INT(status, writes ? TN_INVALID : TN_OK);
        EXPECT_EQ_INT(l.packed, 1);
        tn_tensor_unref(z);
        EXPECT_EQ_INT(l.dropped, 1);
        EXPECT_EQ_INT(l.destroyed, 1);
        tn_tensor_unref(a);
        tn_tensor_unref(x);
        tn_tensor_unref(y);
    }
    EXPECT_EQ_INT(tni_test_live, before);
}

static tn_status unpack_and_fail(void *ctx, void *packed, tn_tensor **out)
{
    TN_TRY(unpack(ctx, packed, out));
    return tn_fail(TN_VALUE, "no more");
}

TEST(what_a_failed_unpacking_gives_is_let_go)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    hooks.unpack = unpack_and_fail;
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(tn_saved_hooks_push(&hooks));
    ASSERT_OK(kit_mul(x, x, &z));
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_FAIL(TN_VALUE, "no more", tn_tensor_backward(z));
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(saved_values_have_the_names_of_the_declaration)
{
    tn_tensor *x = kit_leaf(1, 3), *z = NULL, *e = NULL;
    ASSERT_OK(tn_mul(x, x, &z));
    ASSERT_OK(tn_exp(x, &e));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(e, &node));
    EXPECT_STR(tn_node_saved_name(node, 0), "result");
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    const char *first = tn_node_saved_name(node, 0), *second = tn_node_saved_name(node, 1);
    EXPECT(first && second && strcmp(first, second) != 0);
    EXPECT(strcmp(first, "self") == 0 || strcmp(first, "other") == 0);
    EXPECT(tn_node_saved_name(node, 2) == NULL && tn_node_saved_name(NULL, 0) == NULL);
    tn_tensor_unref(e);
    tn_tensor_unref(z);
    tn_tensor_unref(x);
}

/* What is unpacked has the history of what was saved: leaves lead to their accumulators, results of
 * others to their nodes. The counter is not looked at. */
TEST(unpacked_values_are_tied_to_the_graph_again_and_not_checked)
{
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *z = NULL, *got = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(tn_saved_hooks_push(&hooks));
    ASSERT_OK(kit_mul(x, a, &z));
    ASSERT_OK(tn_saved_hooks_pop());
    tn_set_grad_enabled(false);
    ASSERT_OK(tn_zero_(a));
    tn_set_grad_enabled(true);
    tn_node *node = NULL, *wanted = NULL, *found = NULL;
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    ASSERT_OK(tn_node_saved(node, 1, &got));
    ASSERT_OK(tn_tensor_grad_fn(a, &wanted));
    ASSERT_OK(tn_tensor_grad_fn(got, &found));
    EXPECT(found == wanted);
    EXPECT_NEAR(kit_at(got, 0), 12, 0);
    tn_tensor_unref(got);
    ASSERT_OK(tn_node_saved(node, 0, &got));
    EXPECT(tn_tensor_requires_grad(got) && tn_tensor_is_leaf(got) && got != x);
    tni_edge mine, theirs;
    ASSERT_OK(tni_gradient_edge(got, &mine));
    ASSERT_OK(tni_gradient_edge(x, &theirs));
    EXPECT(mine.node == theirs.node);
    tni_node_unref(mine.node);
    tni_node_unref(theirs.node);
    EXPECT(tn_node_saved_name(node, 0) == NULL); /* made by hand: nothing was declared */
    EXPECT_FAIL(TN_INDEX, "there is no saved value 2", tn_node_saved(node, 2, &got));
    tn_tensor_unref(got);
    tn_tensor_unref(z);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

TEST(bad_hooks_are_found_out)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log l = {.writes = true};
    tn_saved_hooks hooks = hooks_of(&l);
    hooks.drop = NULL;
    tn_tensor *x = kit_leaf(1, 3), *z = NULL;
    ASSERT_OK(tn_saved_hooks_push(&hooks));
    EXPECT_FAIL(TN_INVALID,
                "A saved tensor pack hook is modifying its input in place. Tensors provided as "
                "input to pack hook can not be modified by in-place operations as this can lead to "
                "unexpected side-effects. Please open an issue if you need to perform in-place "
                "operations on the input to a pack hook.",
                kit_mul(x, x, &z));
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_EQ_INT(l.destroyed, 1);
    l = (log){.returns_none = true};
    hooks = hooks_of(&l);
    ASSERT_OK(tn_saved_hooks_push(&hooks));
    ASSERT_OK(kit_mul(x, x, &z));
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_FAIL(TN_TYPE,
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                "NoneType",
                tn_tensor_backward(z));
    tn_tensor_unref(z);
    hooks.unpack = NULL;
    EXPECT_FAIL(TN_INVALID, "saved-tensor hooks need", tn_saved_hooks_push(&hooks));
    EXPECT_FAIL(TN_INVALID, "saved-tensor hooks need", tn_saved_hooks_push(NULL));
    tn_tensor_unref(x);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(hooks_can_be_disabled_with_a_message)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    char *old = NULL, *older = NULL;
    ASSERT_OK(tn_saved_hooks_disable("no hooks here", &older));
    EXPECT(older == NULL);
    EXPECT_FAIL(TN_INVALID, "no hooks here", tn_saved_hooks_push(&hooks));
    ASSERT_OK(tn_saved_hooks_disable("nor there", &old));
    EXPECT_STR(old, "no hooks here");
    tn_string_free(old);
    EXPECT_FAIL(TN_INVALID, "nor there", tn_saved_hooks_push(&hooks));
    ASSERT_OK(tn_saved_hooks_disable(NULL, NULL));
    ASSERT_OK(tn_saved_hooks_push(&hooks));
    EXPECT_FAIL(TN_INVALID, "too late", tn_saved_hooks_disable("too late", NULL));
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_EQ_INT(l.destroyed, 1);
    EXPECT_EQ_INT(tni_test_live, before);
}

/* ---- inside a pass ---- */

typedef struct change {
    const tn_saved_hooks *push; /* else pops, or disables */
    bool pop;
    const char *disable;
    bool fail;
    int on; /* what the hook found */
} change;

static tn_status on_grad(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)grad;
    (void)out;
    change *c = ctx;
    c->on = tn_saved_hooks_on();
    if (c->push)
        TN_TRY(tn_saved_hooks_push(c->push));
    if (c->pop)
        TN_TRY(tn_saved_hooks_pop());
    if (c->disable)
        TN_TRY(tn_saved_hooks_disable(c->disable, NULL));
    return c->fail ? tn_fail(TN_INVALID, "this hook fails") : TN_OK;
}

/* A pass whose first node makes the change and whose second one looks. */
static tn_status changing_pass(change *first, change *second)
{
    tn_tensor *x = kit_leaf(1, 3), *a = NULL, *b = NULL;
    tn_status status = kit_scale(x, &a);
    if (status == TN_OK)
        status = kit_scale(a, &b);
    if (status == TN_OK)
        status = tn_tensor_add_hook(b, on_grad, first, NULL, NULL);
    if (status == TN_OK)
        status = tn_tensor_add_hook(a, on_grad, second, NULL, NULL);
    if (status == TN_OK)
        status = tn_tensor_backward(b);
    tn_tensor_unref(b);
    tn_tensor_unref(a);
    tn_tensor_unref(x);
    return status;
}

TEST(hooks_that_are_pushed_in_a_turn_are_gone_with_it)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    change first = {.push = &hooks}, second = {0};
    ASSERT_OK(changing_pass(&first, &second));
    EXPECT(!second.on);
    EXPECT(!tn_saved_hooks_on());
    EXPECT_EQ_INT(l.destroyed, 1);
    first.fail = true;
    EXPECT_FAIL(TN_INVALID, "this hook fails", changing_pass(&first, &second));
    EXPECT(!tn_saved_hooks_on());
    EXPECT_EQ_INT(l.destroyed, 2);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(hooks_that_are_popped_in_a_turn_are_there_again)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log outer = {0}, inner = {0};
    tn_saved_hooks a = hooks_of(&outer), b = hooks_of(&inner);
    ASSERT_OK(tn_saved_hooks_push(&a));
    ASSERT_OK(tn_saved_hooks_push(&b));
    change first = {.pop = true}, second = {.pop = true};
    ASSERT_OK(changing_pass(&first, &second));
    first.fail = true;
    EXPECT_FAIL(TN_INVALID, "this hook fails", changing_pass(&first, &second));
    EXPECT_EQ_INT(inner.destroyed, 0);
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_EQ_INT(inner.destroyed, 1);
    EXPECT_EQ_INT(outer.destroyed, 0);
    first = (change){.pop = true};
    ASSERT_OK(changing_pass(&first, &(change){0})); /* the last one: the stack is empty meanwhile */
    ASSERT_OK(tn_saved_hooks_pop());
    EXPECT_EQ_INT(outer.destroyed, 1);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(hooks_that_are_disabled_in_a_turn_are_allowed_again)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    change first = {.disable = "not here"}, second = {.push = &hooks};
    ASSERT_OK(changing_pass(&first, &second));
    ASSERT_OK(tn_saved_hooks_disable("nor there", NULL));
    ASSERT_OK(changing_pass(&first, &(change){0}));
    EXPECT_FAIL(TN_INVALID, "nor there", tn_saved_hooks_push(&hooks));
    ASSERT_OK(tn_saved_hooks_disable(NULL, NULL));
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(a_pass_with_hooks_leaks_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    change c = {.disable = "not here"};
    tn_tensor *x = kit_leaf(1, 3), *a = NULL;
    ASSERT_OK(kit_scale(x, &a));
    ASSERT_OK(tn_tensor_add_hook(a, on_grad, &c, NULL, NULL));
    ASSERT_OK(tn_saved_hooks_disable("nor there", NULL));
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_backward(&a, 1, NULL, &opts);
        tn_status cleared = tn_tensor_set_grad(x, NULL);
        EXPECT(cleared == TN_OK);
        EXPECT_FAIL(TN_INVALID, "nor there", tn_saved_hooks_push(&hooks));
        EXPECT(tni_test_live <= before);
    }
    ASSERT_OK(tn_saved_hooks_disable(NULL, NULL));
    tn_tensor_unref(a);
    tn_tensor_unref(x);
}

TEST(one_saved_value_can_have_hooks_of_its_own)
{
    kit_warm_up();
    int64_t before = tni_test_live;
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    tn_tensor *x = kit_leaf(1, 3), *y = kit_leaf(1, 5), *z = NULL;
    ASSERT_OK(kit_mul(x, y, &z));
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(z, &node));
    ASSERT_OK(tn_node_saved_register_hooks(node, 1, &hooks));
    EXPECT_EQ_INT(l.packed, 1);
    EXPECT_FAIL(TN_INVALID,
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: "
                "only one pair of hooks is allowed at a time.",
                tn_node_saved_register_hooks(node, 1, &hooks));
    EXPECT_OK(tn_tensor_backward(z));
    EXPECT_NEAR(kit_grad(x, 0), 10, 0);
    EXPECT_NEAR(kit_grad(y, 0), 3, 0);
    EXPECT_EQ_INT(l.destroyed, 1);
    EXPECT_FAIL(TN_INVALID,
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward.",
                tn_node_saved_register_hooks(node, 0, &hooks));
    tn_tensor_unref(z);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    EXPECT_EQ_INT(tni_test_live, before);
}

TEST(nothing_cannot_have_hooks)
{
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    tn_tensor *x = kit_leaf(1, 3), *z = kit_vector(1, 0);
    static const tni_node_class cls = {
        .name = "Empty", .data_nbytes = sizeof(tni_saved), .n_saved = 1};
    TN_AUTO(tni_node) node = NULL;
    ASSERT_OK(tni_node_new(&cls, 0, 1, &node));
    EXPECT_FAIL(TN_INVALID, "Calling register_hooks on a saved tensor with value None is forbidden",
                tn_node_saved_register_hooks(node, 0, &hooks));
    tn_tensor *got = x;
    ASSERT_OK(tn_node_saved(node, 0, &got));
    EXPECT(got == NULL);
    tn_tensor_unref(x);
    tn_tensor_unref(z);
}

TEST(packing_leaks_nothing_whichever_allocation_fails)
{
    kit_warm_up();
    log l = {0};
    tn_saved_hooks hooks = hooks_of(&l);
    tn_tensor *x = kit_leaf(1, 3), *y = NULL;
    ASSERT_OK(kit_mul(x, x, &y));
    tn_tensor_unref(y);
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        y = NULL;
        rc = tn_saved_hooks_push(&hooks);
        if (rc == TN_OK) {
            rc = kit_mul(x, x, &y);
            tn_status popped = tn_saved_hooks_pop();
            EXPECT(popped == TN_OK);
        }
        if (rc == TN_OK)
            rc = tn_tensor_backward(y);
        tn_tensor_unref(y);
        tn_status cleared = tn_tensor_set_grad(x, NULL);
        EXPECT(cleared == TN_OK);
        EXPECT(tni_test_live <= before);
    }
    tn_tensor_unref(x);
}
