/* SPDX-License-Identifier: MIT */
/* tests/composite/test_debug.c: stage lines of matrix products: each is printed where it happens,
 * and only then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "harness/test.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"

static char text[1 << 16];

/* What the call prints to stderr. */
static const char *printed(const char *filter, bool meta, int ndim)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, meta ? TN_META : TN_CPU);
    tn_tensor *a = NULL, *b = NULL, *out = NULL;
    ASSERT_OK(tn_ones((const int64_t[]){2, 4, 16} + (3 - ndim), ndim, &opts, &a));
    ASSERT_OK(tn_ones((int64_t[]){16, 16}, 2, &opts, &b));
    FILE *file = tmpfile();
    ASSERT(file != NULL);
    fflush(stderr);
    int kept = dup(2);
    dup2(fileno(file), 2);
    tn_status filtered = tn_set_dispatch_debug(filter);
    tn_status status = tn_matmul(a, b, &out);
    tn_status cleared = tn_set_dispatch_debug(NULL);
    fflush(stderr);
    dup2(kept, 2);
    close(kept);
    rewind(file);
    size_t n = fread(text, 1, sizeof text - 1, file);
    text[n] = 0;
    fclose(file);
    ASSERT_OK(filtered);
    ASSERT_OK(status);
    ASSERT_OK(cleared);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(out);
    return text;
}

/* The lines occur in this order. */
static void expect_order(const char *haystack, const char *const *lines)
{
    for (; *lines; lines++) {
        const char *found = strstr(haystack, *lines);
        if (!found) {
            test_wrong(__FILE__, __LINE__, "no line '%s' after what came before it", *lines);
            return;
        }
        haystack = found + strlen(*lines);
    }
}

TEST(the_stages_of_a_folded_product_on_meta_are_printed_in_order)
{
    const char *out = printed("mm", true, 3);
    expect_order(out,
                 (const char *const[]){
                     "[DEBUG _matmul_impl] About to call at::mm WITHOUT NoGradGuard...\n",
                     "[DEBUG _matmul_impl] t1_folded.key_set() = DispatchKeySet(Meta, "
                     "ADInplaceOrView, AutogradMeta)\n",
                     "[DEBUG _matmul_impl] t2->key_set() = DispatchKeySet(Meta, ADInplaceOrView, "
                     "AutogradMeta)\n",
                     "[DEBUG _matmul_impl] t1_folded.has_storage() = 1\n",
                     "[DEBUG _matmul_impl] GradMode::is_enabled() = 1\n",
                     "[DEBUG Dispatcher::call] op=aten::mm\n",
                     "[DEBUG TORCH_META_FUNC(mm)] ========== ENTERED MM META FUNCTION "
                     "==========\n",
                     "[DEBUG TORCH_META_FUNC(mm)] self shape: [8, 16]\n",
                     "[DEBUG TORCH_META_FUNC(mm)] mat2 shape: [16, 16]\n",
                     "[DEBUG TORCH_META_FUNC(mm)] Meta function complete\n",
                     "[DEBUG _matmul_impl] at::mm RETURNED!\n", NULL});
    EXPECT(!strstr(out, "mm_out_cpu")); /* Meta computes nothing */
    EXPECT(!strstr(out, "Inside NoGradGuard"));
}

TEST(on_the_cpu_the_shape_comes_first_and_then_the_computation)
{
    expect_order(
        printed("mm", false, 3),
        (const char *const[]){"[DEBUG TORCH_META_FUNC(mm)] Meta function complete\n",
                              "[DEBUG TORCH_IMPL_FUNC(mm_out_cpu)] ========== ENTERED",
                              "[DEBUG TORCH_IMPL_FUNC(mm_out_cpu)] CPU function complete\n",
                              "[DEBUG _matmul_impl] at::mm RETURNED!\n", NULL});
}

TEST(two_matrices_do_not_pass_the_fold)
{
    const char *out = printed("mm", true, 2);
    EXPECT(!strstr(out, "_matmul_impl"));
    EXPECT_CONTAINS(out, "[DEBUG TORCH_META_FUNC(mm)] self shape: [4, 16]\n");
}

TEST(a_filter_that_names_neither_prints_nothing_of_them)
{
    EXPECT(!strstr(printed("addmm", true, 3), "_matmul_impl"));
    EXPECT(!strstr(printed("addmm", true, 3), "TORCH_META_FUNC"));
    EXPECT_STR(printed(NULL, true, 3), "");
}
