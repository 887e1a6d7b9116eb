/* SPDX-License-Identifier: MIT */
/* Tables as users see them: the worked examples of the reference's test_dispatch.py, its dumps, and
 * the masks of keys that fall through. dispatch/oracle compares the rules themselves with a model.
 */
#include "dispatch/kit.h"
#include "dispatch/registry.h"

#include <string.h>

static const tn_key columns[8] = {
    TN_KEY_UNDEFINED,      TN_KEY_CPU,          TN_KEY_CUDA,          TN_KEY_XLA,
    TN_KEY_AUTOGRAD_OTHER, TN_KEY_AUTOGRAD_CPU, TN_KEY_AUTOGRAD_CUDA, TN_KEY_AUTOGRAD_XLA};

typedef struct worked_example {
    const char *title;
    struct {
        tn_key key;
        const char *letter;
    } kernels[6];
    const char *row[8]; /* "f": the library's autograd fallback; "-": missing; "!": ambiguous */
} worked_example;

static const worked_example examples[] = {
    {"computed_table",
     {{TN_KEY_CPU, "c"},
      {TN_KEY_XLA, "x"},
      {TN_KEY_COMPOSITE_IMPLICIT, "m"},
      {TN_KEY_AUTOGRAD, "a"},
      {TN_KEY_AUTOGRAD_CPU, "d"}},
     {"m", "c", "m", "x", "m", "d", "m", "a"}},
    {"cpu_math",
     {{TN_KEY_CPU, "c"}, {TN_KEY_COMPOSITE_IMPLICIT, "m"}},
     {"m", "c", "m", "m", "m", "f", "m", "m"}},
    {"math", {{TN_KEY_COMPOSITE_IMPLICIT, "m"}}, {"m", "m", "m", "m", "m", "m", "m", "m"}},
    {"autograd", {{TN_KEY_AUTOGRAD, "a"}}, {"-", "-", "-", "-", "a", "a", "a", "a"}},
    {"cpu_autograd_math",
     {{TN_KEY_CPU, "c"}, {TN_KEY_COMPOSITE_IMPLICIT, "m"}, {TN_KEY_AUTOGRAD, "a"}},
     {"m", "c", "m", "m", "m", "a", "m", "m"}},
    {"ambiguous_autogradother",
     {{TN_KEY_COMPOSITE_IMPLICIT, "m"}, {TN_KEY_FPGA, "g"}},
     {"m", "m", "m", "m", "!", "m", "m", "m"}},
    {"cpu_defaultbackend",
     {{TN_KEY_CPU, "c"}, {TN_KEY_COMPOSITE_EXPLICIT, "e"}},
     {"e", "c", "e", "e", "f", "f", "f", "f"}},
    {"cpu_autograd_defaultbackend",
     {{TN_KEY_CPU, "c"}, {TN_KEY_AUTOGRAD, "a"}, {TN_KEY_COMPOSITE_EXPLICIT, "e"}},
     {"e", "c", "e", "e", "a", "a", "a", "a"}},
    {"cpu_autograd_math_defaultbackend",
     {{TN_KEY_CPU, "c"},
      {TN_KEY_AUTOGRAD, "a"},
      {TN_KEY_COMPOSITE_IMPLICIT, "m"},
      {TN_KEY_COMPOSITE_EXPLICIT, "e"}},
     {"e", "c", "e", "e", "a", "a", "a", "a"}},
};

static void expect_row(const char *op, const worked_example *e)
{
    for (int i = 0; i < 8; i++) {
        test_note("%s, %s", e->title, tn_key_name(columns[i]));
        const char *want = e->row[i];
        const char *got = kit_slot(op, columns[i]);
        if (want[0] == 'f')
            EXPECT_STR(got, "tni_autograd_fallback");
        else if (want[0] == '!')
            EXPECT_STR(got, "");
        else
            EXPECT_STR(got, want);
    }
}

/* Every order of registering, and every order of undoing, gives the same table for the same set. */
static void permute_and_expect(const worked_example *e, int n, int *order, int fixed)
{
    if (fixed < n) {
        for (int i = fixed; i < n; i++) {
            int swap = order[fixed];
            order[fixed] = order[i];
            order[i] = swap;
            permute_and_expect(e, n, order, fixed + 1);
            order[i] = order[fixed];
            order[fixed] = swap;
        }
        return;
    }
    kit k = kit_open();
    tn_registration *handles[6];
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    for (int i = 0; i < n; i++)
        handles[i] =
            kit_impl_handle(&k, "op", e->kernels[order[i]].key, e->kernels[order[i]].letter);
    expect_row("t::op", e);
    EXPECT_OK(tn_check_invariants());
    for (int i = 0; i < n; i++) { /* undo in another order than registered */
        tn_registration_undo(handles[(i + 1) % n]);
        EXPECT_OK(tn_check_invariants());
    }
    EXPECT_STR(kit_slot("t::op", TN_KEY_CPU), "-");
    kit_close(&k);
}

TEST(worked_examples_of_the_reference_hold_in_every_order)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        int n = 0, order[6];
        while (n < 6 && examples[i].kernels[n].letter)
            order[n] = n, n++;
        permute_and_expect(&examples[i], n, order, 0);
    }
}

TEST(fallthrough_at_autogradcpu_wins_over_math_when_the_cpu_has_a_kernel)
{
    kit k = kit_open();
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    tn_kernel through = tn_kernel_fallthrough("x.c", 1);
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_AUTOGRAD_CPU, &through, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "m");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "c");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CUDA)));
    EXPECT_STR(kit_log, "m");
    kit_close(&k);
}

TEST(a_fallthrough_of_one_backend_is_masked_for_that_backend_alone)
{
    kit k = kit_open();
    tn_op *op;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_op_find("t::op", &op));
    tn_kernel through = tn_kernel_fallthrough("x.c", 1);
    ASSERT_OK(tn_library_impl(k.impls, "op", TN_KEY_AUTOGRAD_CPU, &through, NULL));
    kit_impl(&k, "op", TN_KEY_AUTOGRAD_META, "M");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    tn_keyset autograd = tn_keyset_of(TN_KEY_AUTOGRAD_CPU) & ~TNI_BACKEND_MASK;
    EXPECT((tn_op_mask(op, tn_keyset_of(TN_KEY_CPU)) & autograd) == 0);
    EXPECT((tn_op_mask(op, tn_keyset_of(TN_KEY_META)) & autograd) != 0);
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "c");
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_META)));
    EXPECT_STR(kit_log, "M");
    /* The mask is chosen after the thread's sets were applied: Meta from there counts. */
    tn_key_guard guard = tn_include_keys(tn_keyset_of(TN_KEY_META));
    EXPECT_OK(kit_call("t::op", kit_keys_grad(TN_KEY_CPU)));
    EXPECT_STR(kit_log, "M");
    tn_keys_restore(guard);
    kit_close(&k);
}

TEST(state_dump_lists_schema_and_kernels_newest_first)
{
    kit k = kit_open();
    tn_op *op;
    char *text = NULL;
    ASSERT_OK(tn_library_def(k.defs, "foo(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "foo", TN_KEY_CPU, "old");
    kit_impl(&k, "foo", TN_KEY_CPU, "new");
    kit_impl(&k, "foo", TN_KEY_AUTOGRAD, "a");
    ASSERT_OK(tn_op_find("t::foo", &op));
    ASSERT_OK(tn_op_dump_state(op, &text));
    EXPECT_CONTAINS(text, "name: t::foo\nschema: t::foo(Tensor x) -> Tensor\n"
                          "debug: registered at defs.c:10\nalias analysis kind: FROM_SCHEMA\n");
    EXPECT_CONTAINS(text, "CPU: registered at ");
    EXPECT_CONTAINS(text, "CPU (inactive): registered at ");
    EXPECT(strstr(text, "CPU: ") < strstr(text, "CPU (inactive): "));
    EXPECT_CONTAINS(text, "Autograd[alias]: registered at ");
    EXPECT_CONTAINS(text, ":: (none) [ boxed ]\n");
    tn_string_free(text);
    kit_close(&k);
}

TEST(state_dump_of_kernels_without_a_schema)
{
    kit k = kit_open();
    tn_op *op;
    char *text = NULL;
    kit_impl(&k, "foo", TN_KEY_CPU, "c");
    ASSERT_OK(tn_op_find("t::foo", &op));
    ASSERT_OK(tn_op_dump_state(op, &text));
    EXPECT_CONTAINS(text, "name: t::foo\nschema: (none)\nCPU: registered at ");
    tn_string_free(text);
    kit_close(&k);
}

TEST(table_dump_names_site_and_provenance)
{
    kit k = kit_open();
    tn_op *op;
    char *text = NULL;
    ASSERT_OK(tn_library_def(k.defs, "op(Tensor x) -> Tensor", NULL, NULL));
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    kit_impl(&k, "op", TN_KEY_COMPOSITE_IMPLICIT, "m");
    ASSERT_OK(tn_op_find("t::op", &op));
    ASSERT_OK(tn_op_dump_table(op, &text));
    EXPECT_CONTAINS(text, "Undefined: registered at ");
    EXPECT_CONTAINS(text, " [math kernel]\n");
    EXPECT_CONTAINS(text, "\nCPU: registered at ");
    EXPECT_CONTAINS(text, "\nADInplaceOrView: fallthrough registered at src/runtime/boot.c:");
    EXPECT_CONTAINS(text, " [backend fallback]\n");
    tn_string_free(text);
    kit_close(&k);
}

TEST(all_live_operators_satisfy_the_invariants)
{
    EXPECT_OK(tn_check_invariants());
}

TEST(core_has_no_dangling_kernels_and_one_is_found_when_there_is_one)
{
    char *text = NULL;
    ASSERT_OK(tn_find_dangling(&text));
    EXPECT_STR(text, "");
    tn_string_free(text);
    kit k = kit_open();
    kit_impl(&k, "lonely", TN_KEY_CPU, "c");
    ASSERT_OK(tn_find_dangling(&text));
    EXPECT_CONTAINS(text, "t::lonely: kernel c registered at ");
    tn_string_free(text);
    kit_close(&k);
}

TEST(a_table_takes_less_than_one_and_a_half_kilobytes)
{
    tn_op *op;
    ASSERT_OK(tn_op_find("aten::mm", &op));
    EXPECT(tn_op_table_bytes(op) < 1536);
}

TEST(a_table_that_differs_from_its_registrations_is_found)
{
    kit k = kit_open();
    tn_op *op = kit_def(&k, "op(Tensor x) -> Tensor");
    kit_impl(&k, "op", TN_KEY_CPU, "c");
    tni_table *t = op->table;
    ASSERT_OK(tn_check_invariants());
    const tni_kernel *kernel = t->slots[1];
    t->slots[1] = &tni_kernel_missing;
    EXPECT_FAIL(TN_INTERNAL,
                "the dispatch table of t::op differs from its registrations at slot 1 (CPU)",
                tn_check_invariants());
    t->slots[1] = kernel;
    kernel = t->hot[0].kernel;
    t->hot[0].kernel = &tni_kernel_missing;
    EXPECT_FAIL(TN_INTERNAL, "the dispatch table of t::op", tn_check_invariants());
    t->hot[0].kernel = kernel;
    t->backend_masks[3] ^= 1;
    EXPECT_FAIL(TN_INTERNAL, "the dispatch table of t::op", tn_check_invariants());
    t->backend_masks[3] ^= 1;
    EXPECT_OK(tn_check_invariants());
    kit_close(&k);
}
