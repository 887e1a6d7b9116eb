/* SPDX-License-Identifier: MIT */
/* tests/core/test_keys.c: what tenon/dispatch.h and core/keys.h promise about keys and key sets. */
#include "harness/test.h"

#include "core/keys.h"

#include <stdio.h>
#include <string.h>

/* The specification's table, written down again: functionality, first slot, one slot a backend. */
static const struct {
    const char *name;
    unsigned slot;
    bool per_backend;
} table[] = {
    {"Undefined", 0, false},
    {"Dense", 1, true},
    {"FPGA", 17, false},
    {"Vulkan", 18, false},
    {"Metal", 19, false},
    {"Quantized", 20, true},
    {"CustomRNGKeyId", 36, false},
    {"MkldnnCPU", 37, false},
    {"Sparse", 38, true},
    {"SparseCsr", 54, true},
    {"NestedTensor", 70, true},
    {"BackendSelect", 86, false},
    {"Python", 87, false},
    {"Fake", 88, false},
    {"FuncTorchDynamicLayerBackMode", 89, false},
    {"Functionalize", 90, false},
    {"Named", 91, false},
    {"Conjugate", 92, false},
    {"Negative", 93, false},
    {"ZeroTensor", 94, false},
    {"ADInplaceOrView", 95, false},
    {"AutogradOther", 96, false},
    {"AutogradFunctionality", 97, true},
    {"AutogradNestedTensor", 113, false},
    {"Tracer", 114, false},
    {"AutocastCPU", 115, false},
    {"AutocastMTIA", 116, false},
    {"AutocastMAIA", 117, false},
    {"AutocastXPU", 118, false},
    {"AutocastIPU", 119, false},
    {"AutocastHPU", 120, false},
    {"AutocastXLA", 121, false},
    {"AutocastMPS", 122, false},
    {"AutocastCUDA", 123, false},
    {"AutocastPrivateUse1", 124, false},
    {"FuncTorchBatched", 125, false},
    {"BatchedNestedTensor", 126, false},
    {"FuncTorchVmapMode", 127, false},
    {"Batched", 128, false},
    {"VmapMode", 129, false},
    {"FuncTorchGradWrapper", 130, false},
    {"DeferredInit", 131, false},
    {"PythonTLSSnapshot", 132, false},
    {"FuncTorchDynamicLayerFrontMode", 133, false},
    {"TESTING_ONLY_GenericWrapper", 134, false},
    {"TESTING_ONLY_GenericMode", 135, false},
    {"PreDispatch", 136, false},
    {"PythonDispatcher", 137, false},
};
static const char *const backends[16] = {
    "CPU", "CUDA", "HIP",  "XLA",  "MPS",         "IPU",         "XPU",         "HPU",
    "VE",  "Lazy", "MTIA", "MAIA", "PrivateUse1", "PrivateUse2", "PrivateUse3", "Meta"};

static void slot_name(unsigned slot, char *buffer, size_t n)
{
    size_t f = sizeof table / sizeof *table - 1;
    while (table[f].slot > slot)
        f--;
    const char *prefix = table[f].name;
    if (strcmp(prefix, "Dense") == 0)
        prefix = "";
    if (strcmp(prefix, "AutogradFunctionality") == 0)
        prefix = "Autograd";
    snprintf(buffer, n, "%s%s", prefix, table[f].per_backend ? backends[slot - table[f].slot] : "");
}

TEST(each_of_the_138_slots_has_the_key_of_the_specification)
{
    for (unsigned slot = 0; slot < 138; slot++) {
        char want[64];
        slot_name(slot, want, sizeof want);
        test_note("slot %u", slot);
        tn_key key = tni_slot_key(slot);
        EXPECT_STR(tn_key_name(key), want);
        EXPECT(tni_key_is_runtime(key) && !tni_key_is_alias(key) && !tni_key_is_per_backend(key));
        EXPECT_EQ_INT(tni_key_slot(key), slot);
        EXPECT_EQ_INT(tn_keyset_slot(tn_keyset_of(key)), slot);
        EXPECT_EQ_INT(tn_keyset_highest(tn_keyset_of(key)), key);
        tn_key parsed = TN_KEY_NONE;
        EXPECT_OK(tn_key_parse(want, &parsed));
        EXPECT_EQ_INT(parsed, key);
    }
    EXPECT_EQ_INT(sizeof table / sizeof *table, 48);
    EXPECT_EQ_INT(tni_slot_key(138), TN_KEY_UNDEFINED);
}

TEST(well_known_slots_and_numbers_hold)
{
    EXPECT_EQ_INT(tni_key_slot(TN_KEY_CPU), 1);
    EXPECT_EQ_INT(tni_key_slot(TN_KEY_CUDA), 2);
    EXPECT_EQ_INT(tni_key_slot(TN_KEY_META), 16);
    EXPECT_EQ_INT(tni_key_slot(TN_KEY_AUTOGRAD_OTHER), 96);
    EXPECT_EQ_INT(tni_key_slot(TN_KEY_AUTOGRAD_CPU), 97);
    EXPECT_EQ_INT(tni_key_slot(TN_KEY_AUTOGRAD_META), 112);
    EXPECT_EQ_INT(TN_KEY_CPU, 49);
    EXPECT_EQ_INT(TN_KEY_AUTOGRAD_META, 149);
    EXPECT_EQ_INT(TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL, 155);
    EXPECT(tn_keyset_full_after(TN_KEY_AUTOGRAD_OTHER) == UINT64_C(0x4000000fffffffff));
    EXPECT(TNI_KS_AFTER_AUTOGRAD == UINT64_C(0x4000000fffffffff));
    EXPECT(TNI_KS_AFTER_ADINPLACE_OR_VIEW == UINT64_C(0x40000007ffffffff));
    EXPECT(TNI_KS_AFTER_FUNCTIONALIZE == UINT64_C(0x400000003fffffff));
    EXPECT(TNI_DEFAULT_INCLUDED == UINT64_C(0x804000000));
    EXPECT(TNI_DEFAULT_EXCLUDED == UINT64_C(0x3ff0000000000));
    EXPECT(TNI_KS_FULL == UINT64_C(0x7fffffffffffffff));
}

TEST(a_functionality_without_a_backend_indexes_the_cpu_slot_and_prints_a_sentinel)
{
    EXPECT_EQ_INT(tn_keyset_slot(tn_keyset_of(TN_KEY_DENSE)), 1);
    EXPECT_EQ_INT(tn_keyset_slot(tn_keyset_of(TN_KEY_AUTOGRAD_FUNCTIONALITY)), 97);
    tn_key key = tn_keyset_highest(tn_keyset_of(TN_KEY_AUTOGRAD_FUNCTIONALITY));
    EXPECT_STR(tn_key_name(key), "AutogradUndefined");
    EXPECT(!tni_key_is_runtime(key));
    char text[64];
    EXPECT_STR(tn_keyset_format(tn_keyset_of(TN_KEY_AUTOGRAD_FUNCTIONALITY), text, sizeof text),
               "DispatchKeySet()");
}

TEST(removing_a_key_keeps_backend_bits)
{
    tn_keyset ks = tn_keyset_of(TN_KEY_CPU) | tn_keyset_of(TN_KEY_AUTOGRAD_CUDA);
    EXPECT(ks == (tn_keyset_of(TN_KEY_CUDA) | tn_keyset_of(TN_KEY_AUTOGRAD_CPU)));
    tn_keyset without = tn_keyset_remove(ks, TN_KEY_CUDA);
    EXPECT(without == (tn_keyset_of(TN_KEY_AUTOGRAD_CUDA) | 1));
    EXPECT(tn_keyset_has(without, TN_KEY_AUTOGRAD_CPU));
    EXPECT(!tn_keyset_has(without, TN_KEY_CPU));
    EXPECT(tn_keyset_remove_backend(without, 0) == tn_keyset_of(TN_KEY_AUTOGRAD_CUDA));
    EXPECT(tn_keyset_remove_backend(ks, 16) == ks && tn_keyset_remove_backend(ks, -1) == ks);
    EXPECT(tn_keyset_add(0, TN_KEY_META) == UINT64_C(0x18000));
    EXPECT(tn_keyset_of(TN_KEY_UNDEFINED) == 0 && tn_keyset_of(TN_KEY_AUTOGRAD) == 0);
    EXPECT(tn_keyset_of(TN_KEY_NONE) == 0);
}

TEST(iterating_over_the_full_set_visits_slots_1_to_137_in_order)
{
    unsigned cursor = 0, slot = 0;
    tn_key key = TN_KEY_NONE;
    while (tni_keyset_next(TNI_KS_FULL, &cursor, &key))
        EXPECT_EQ_INT(tni_key_slot(key), ++slot);
    EXPECT_EQ_INT(slot, 137);
    EXPECT(!tni_keyset_next(TNI_KS_FULL, &cursor, &key));
}

TEST(iteration_of_random_sets_is_the_definition)
{
    for (int round = 0; round < 2000; round++) {
        tn_keyset ks = test_random() & test_random() & TNI_KS_FULL;
        unsigned cursor = 0;
        tn_key key = TN_KEY_NONE;
        for (unsigned slot = 1; slot < 138; slot++) {
            tn_key candidate = tni_slot_key(slot);
            if (!tn_keyset_has(ks, candidate))
                continue;
            ASSERT(tni_keyset_next(ks, &cursor, &key));
            ASSERT_EQ_INT(key, candidate);
        }
        ASSERT(!tni_keyset_next(ks, &cursor, &key));
        /* The last one visited is the highest, where the highest has a backend. */
        if (tni_key_is_runtime(tni_keyset_highest(ks)))
            ASSERT_EQ_INT(tni_keyset_highest(ks), key);
    }
}

static int count_keys(tn_keyset ks)
{
    int n = 0;
    unsigned cursor = 0;
    for (tn_key key; tni_keyset_next(ks, &cursor, &key);)
        n++;
    return n;
}

TEST(an_alias_fills_as_many_runtime_keys_as_the_specification_says)
{
    EXPECT_EQ_INT(count_keys(tn_keyset_of_alias(TN_KEY_AUTOGRAD)), 18);
    EXPECT_EQ_INT(count_keys(tn_keyset_of_alias(TN_KEY_COMPOSITE_EXPLICIT)), 69);
    EXPECT_EQ_INT(count_keys(tn_keyset_of_alias(TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL)), 47);
    EXPECT_EQ_INT(count_keys(tn_keyset_of_alias(TN_KEY_COMPOSITE_IMPLICIT)), 103);
    EXPECT_EQ_INT(count_keys(tn_keyset_of_alias(TN_KEY_COMPOSITE_IMPLICIT_NESTED)), 17);
    EXPECT_EQ_INT(count_keys(tn_keyset_of_alias(TN_KEY_FUNCTORCH_BATCHED_DECOMPOSITION)), 1);
    EXPECT(
        !tni_keyset_has(tn_keyset_of_alias(TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL), TN_KEY_XLA));
    EXPECT(
        !tni_keyset_has(tn_keyset_of_alias(TN_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL), TN_KEY_LAZY));
    EXPECT(tn_keyset_of_alias(TN_KEY_META) == tn_keyset_of(TN_KEY_META));
    for (int k = TN_KEY_AUTOGRAD; k < TN_KEY_LIMIT; k++)
        EXPECT(tni_key_is_alias((tn_key)k) && !tni_key_is_runtime((tn_key)k));
}

TEST(every_name_parses_back_and_a_wrong_one_is_named)
{
    tn_key key;
    for (int k = 0; k < TN_KEY_LIMIT; k++) {
        const char *name = tn_key_name((tn_key)k);
        if (k >= 48 && k < 150 && tni_key_backend((tn_key)k) < 0)
            continue; /* a sentinel is no key */
        EXPECT_OK(tn_key_parse(name, &key));
        EXPECT_EQ_INT(key, k);
    }
    key = TN_KEY_NONE;
    EXPECT_FAIL(TN_INVALID, "could not parse dispatch key: Autogradd",
                tn_key_parse("Autogradd", &key));
    EXPECT_FAIL(TN_INVALID, "name is NULL", tn_key_parse(NULL, &key));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_key_parse("CPU", NULL));
    EXPECT_EQ_INT(key, TN_KEY_NONE);
    EXPECT_STR(tn_key_name(TN_KEY_NONE), "Unknown");
    EXPECT_STR(tn_key_name(TN_KEY_LIMIT), "Unknown");
}

TEST(a_set_is_written_from_low_to_high_and_cut_when_it_does_not_fit)
{
    char text[128], little[8];
    EXPECT_STR(tn_keyset_format(tni_tensor_keys_for(15, false), text, sizeof text),
               "DispatchKeySet(Meta, ADInplaceOrView, AutogradMeta)");
    EXPECT_STR(tn_keyset_format(0, text, sizeof text), "DispatchKeySet()");
    EXPECT_STR(tn_keyset_format(tn_keyset_of(TN_KEY_CPU), little, sizeof little), "Dispatc");
    char guarded[5] = {'x', 'x', 'x', 'x', 'x'};
    for (size_t n = 0; n < sizeof guarded; n++) {
        tn_keyset_format(TNI_KS_FULL, guarded, n);
        EXPECT(guarded[n] == 'x');
    }
    EXPECT(tn_keyset_format(1, NULL, 0) == NULL);
}

TEST(a_fresh_tensor_carries_the_keys_of_the_specification)
{
    EXPECT(tni_tensor_keys_for(15, false) == UINT64_C(0x2800018000));
    char text[128];
    EXPECT_STR(tn_keyset_format(tni_tensor_keys_for(0, false), text, sizeof text),
               "DispatchKeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)");
    EXPECT_STR(tn_keyset_format(tni_tensor_keys_for(0, true), text, sizeof text),
               "DispatchKeySet(CPU, AutocastCPU)");
    EXPECT_STR(tn_keyset_format(tni_tensor_keys_for(15, true), text, sizeof text),
               "DispatchKeySet(Meta)");
    EXPECT_STR(tn_keyset_format(tni_tensor_keys_for(2, false), text, sizeof text),
               "DispatchKeySet(HIP, ADInplaceOrView, AutogradOther)");
    EXPECT(tni_tensor_keys_for(-1, false) == 0 && tni_tensor_keys_for(16, false) == 0);
}

TEST(the_table_of_fresh_keys_follows_from_autograd_and_autocast_keys)
{
    for (int b = 0; b < 16; b++) {
        tn_keyset plain = tni_key_set((tn_key)(TN_KEY_CPU + b)) | tni_backend_autocast_set(b);
        EXPECT(tni_tensor_keys_for(b, true) == plain);
        EXPECT(tni_tensor_keys_for(b, false) ==
               (plain | TNI_KS_ADINPLACE_OR_VIEW | tni_key_set(tni_backend_autograd_key(b))));
    }
    EXPECT_EQ_INT(tni_backend_autograd_key(-1), TN_KEY_AUTOGRAD_OTHER);
    EXPECT_EQ_INT(tni_backend_autograd_key(8), TN_KEY_AUTOGRAD_OTHER);
    EXPECT_EQ_INT(tni_backend_autograd_key(15), TN_KEY_AUTOGRAD_META);
    EXPECT(tni_backend_autocast_set(15) == 0 && tni_backend_autocast_set(99) == 0);
    EXPECT(tni_backend_autocast_set(12) == tni_key_set(TN_KEY_AUTOCAST_PRIVATE1));
}

TEST(full_after_keeps_lower_keys_all_backends_and_the_python_dispatcher)
{
    for (int f = 1; f < 48; f++) {
        tn_keyset after = tn_keyset_full_after((tn_key)f);
        for (int g = 1; g < 48; g++)
            EXPECT_EQ_INT((after & TNI_FBIT(g)) != 0, g < f || g == TN_KEY_PYTHON_DISPATCHER);
        EXPECT((after & TNI_BACKEND_MASK) == TNI_BACKEND_MASK);
    }
    EXPECT(tn_keyset_full_after(TN_KEY_META) == tn_keyset_full_after(TN_KEY_DENSE));
    EXPECT(tn_keyset_full_after(TN_KEY_UNDEFINED) == TNI_FBIT(TN_KEY_PYTHON_DISPATCHER));
}
