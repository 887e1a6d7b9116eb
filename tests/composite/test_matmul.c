/* SPDX-License-Identifier: MIT */
/* tests/composite/test_matmul.c: which operators matmul and linear call. The sequences are those
 * that PyTorch 2.11 was seen to run below autograd, less the transpose with which it only asks
 * whether to fold, and with the CPU's rules on Meta too. */
#include <stdio.h>
#include <string.h>
#include "harness/test.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"

/* ---- watching ---- */

/* Names of the operators that composites called, down to the first that is none. */
typedef struct seen {
    int composites; /* how many are running */
    char text[1024];
} seen;

static bool is_composite(const char *name)
{
    static const char *const names[] = {"matmul", "matmul.out", "linear", "reshape", "contiguous"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static void watch(void *ctx, const tn_event *event)
{
    seen *s = ctx;
    if (event->kind == TN_EVENT_RETURN && event->depth == s->composites) {
        s->composites--;
        return;
    }
    if (event->kind != TN_EVENT_CALL || event->depth != s->composites + 1)
        return;
    const char *name = strchr(tn_op_name(event->op), ':') + 2;
    if (is_composite(name)) {
        s->composites++;
        return;
    }
    size_t n = strlen(s->text);
    snprintf(s->text + n, sizeof s->text - n, "%s%s", n ? " " : "", name);
}

/* ---- operands: "2,4,3" with letters behind ----
 * t: dimensions 0 and 1 swapped in memory; m: the last two; x: expanded from a leading 1; s: every
 * second row; g: requires grad. */

static tn_tensor *operand(const char *text, tn_device device)
{
    int64_t sizes[8], swap;
    int ndim = 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        sizes[ndim] = 0;
        while (*text >= '0' && *text <= '9')
            sizes[ndim] = sizes[ndim] * 10 + (*text++ - '0');
        ndim++;
        if (*text != ',')
            break;
    }
    tn_tensor *t = NULL, *u = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    int64_t memory[8];
    memcpy(memory, sizes, sizeof memory);
    int a = strchr(text, 'm') ? ndim - 2 : 0, b = strchr(text, 'm') ? ndim - 1 : 1;
    bool swapped = strpbrk(text, "tm") != NULL;
    if (swapped) {
        swap = memory[a];
        memory[a] = memory[b];
        memory[b] = swap;
    }
    if (strchr(text, 'x'))
        memory[0] = 1;
    if (strchr(text, 's'))
        memory[ndim - 2] *= 2;
    ASSERT_OK(tn_ones(memory, ndim, &opts, &t));
    if (swapped)
        ASSERT_OK(tn_transpose(t, a, b, &u));
    else if (strchr(text, 'x'))
        ASSERT_OK(tn_expand(t, sizes, ndim, false, &u));
    else if (strchr(text, 's'))
        ASSERT_OK(tn_slice(t, ndim - 2, tn_no_int(), tn_no_int(), 2, &u));
    if (u) {
        tn_tensor_unref(t);
        t = u;
    }
    if (strchr(text, 'g'))
        ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    return t;
}

typedef struct sequence {
    const char *a, *b, *bias; /* bias: linear; NULL: matmul; "": linear without one */
    const char *ops;
    const char *result;
} sequence;

static void expect_sequence(const sequence *c, tn_device device)
{
    char name[32], sizes[64] = "";
    test_note("%s @ %s on %s", c->a, c->b, tn_device_format(device, name, sizeof name));
    tn_tensor *a = operand(c->a, device), *b = operand(c->b, device), *out = NULL;
    tn_tensor *bias = c->bias && *c->bias ? operand(c->bias, device) : NULL;
    seen s = {0, ""};
    ASSERT_OK(tn_observe_thread(watch, &s));
    tn_status status = c->bias ? tn_linear(a, b, bias, &out) : tn_matmul(a, b, &out);
    ASSERT_OK(tn_observe_thread(NULL, NULL));
    ASSERT_OK(status);
    EXPECT_STR(s.text, c->ops);
    for (int i = 0; i < tn_tensor_ndim(out); i++)
        snprintf(sizes + strlen(sizes), sizeof sizes - strlen(sizes), "%s%lld", i ? "," : "",
                 (long long)tn_tensor_sizes(out)[i]);
    EXPECT_STR(sizes, c->result);
    EXPECT(tn_tensor_is_contiguous(out, TN_FORMAT_CONTIGUOUS));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(bias);
    tn_tensor_unref(out);
}

#define FOLD   "view mm _unsafe_view"
#define COPIED "clone _unsafe_view mm _unsafe_view"
#define BATCH  "expand view expand view bmm _unsafe_view"

static const sequence sequences[] = {
    /* both small */
    {"4", "4", NULL, "dot", ""},
    {"3,4", "4", NULL, "mv", "3"},
    {"4", "4,3", NULL, "unsqueeze mm squeeze_.dim", "3"},
    {"3,4", "4,2", NULL, "mm", "3,2"},
    /* a batch on the left */
    {"2,4,3", "3,5", NULL, FOLD, "2,4,5"},
    {"2,4,3s", "3,5", NULL, FOLD, "2,4,5"},
    {"2,4,3t", "3,5", NULL, BATCH, "2,4,5"},
    {"2,4,3x", "3,5", NULL, BATCH, "2,4,5"},
    {"2,4,3t", "3,5g", NULL, COPIED, "2,4,5"},
    {"2,4,3x", "3,5g", NULL, COPIED, "2,4,5"},
    {"2,4,3g", "3,5", NULL, FOLD, "2,4,5"},
    {"2,4,3tg", "3,5", NULL, BATCH, "2,4,5"},
    {"2,4,3", "3", NULL, "view mv _unsafe_view", "2,4"},
    {"2,4,3t", "3", NULL, "expand view expand view unsqueeze bmm squeeze.dim _unsafe_view", "2,4"},
    {"2,4,3t", "3g", NULL, "clone _unsafe_view mv _unsafe_view", "2,4"},
    {"2,2,4,3", "3,5", NULL, FOLD, "2,2,4,5"},
    /* a batch on the right */
    {"5,4", "2,4,3", NULL, BATCH, "2,5,3"},
    {"5,4g", "2,4,3", NULL,
     "transpose.int t clone _unsafe_view mm _unsafe_view transpose.int clone", "2,5,3"},
    {"5,4g", "2,4,3m", NULL, "transpose.int t view mm _unsafe_view transpose.int clone", "2,5,3"},
    {"4", "2,4,3", NULL, BATCH, "2,3"},
    {"4", "2,4,3m", NULL, "transpose.int view mv _unsafe_view", "2,3"},
    {"4g", "2,4,3", NULL, "transpose.int clone _unsafe_view mv _unsafe_view", "2,3"},
    /* without elements */
    {"3,5,0", "0,4", NULL, FOLD, "3,5,4"},
    {"0,4,3", "3,5", NULL, FOLD, "0,4,5"},
    {"0,4,3t", "3,5", NULL, FOLD, "0,4,5"},
    {"5,4", "0,4,3", NULL, BATCH, "0,5,3"},
    /* batches on both sides */
    {"2,4,3", "2,3,5", NULL, BATCH, "2,4,5"},
    {"2,4,3", "1,3,5", NULL, BATCH, "2,4,5"},
    {"2,4,3", "1,3,5g", NULL, "squeeze.dim " FOLD, "2,4,5"},
    {"1,4,3g", "2,3,5", NULL,
     "squeeze.dim transpose.int t clone _unsafe_view mm _unsafe_view transpose.int clone", "2,4,5"},
    {"2,1,4,3", "6,3,5", NULL,
     "expand clone _unsafe_view expand clone _unsafe_view bmm _unsafe_view", "2,6,4,5"},
    /* linear */
    {"2,3", "4,3", "4", "t addmm", "2,4"},
    {"2,3t", "4,3", "4", "t addmm", "2,4"},
    {"2,3", "4,3", "", "t mm", "2,4"},
    {"2,5,3", "4,3", "4", "view t addmm view", "2,5,4"},
    {"2,5,3", "4,3", "1,4", "squeeze view t addmm view", "2,5,4"},
    {"2,2,5,3", "4,3", "4", "view t addmm view", "2,2,5,4"},
    {"3", "4,3", "4", "view t addmm view", "4"},
    {"2,5,3", "4,3", "", "t " FOLD, "2,5,4"},
    {"3", "4,3", "", "t unsqueeze mm squeeze_.dim", "4"},
    {"2,5,3t", "4,3", "4", "t " BATCH " add_.Tensor", "2,5,4"},
    {"0,5,3t", "4,3", "4", "view t addmm view", "0,5,4"},
    {"5,3", "3", "", "t mv", "5"},
};

TEST(matmul_and_linear_call_the_operators_of_the_reference_on_cpu_and_meta)
{
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
        expect_sequence(&sequences[i], TN_CPU);
        expect_sequence(&sequences[i], TN_META);
    }
}

TEST(grad_mode_does_not_change_the_way)
{
    const sequence c = {"2,4,3t", "3,5g", NULL, COPIED, "2,4,5"};
    bool was = tn_set_grad_enabled(false);
    expect_sequence(&c, TN_CPU);
    (void)tn_set_grad_enabled(was);
}

/* ---- the truth table of folding ---- */

/* Whether a product into or without out folds: mm or mv is called, not bmm. */
static bool folds(const char *a_text, const char *b_text, bool has_out, tn_device device)
{
    tn_tensor *a = operand(a_text, device), *b = operand(b_text, device), *out = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    seen s = {0, ""};
    if (has_out)
        ASSERT_OK(tn_empty((int64_t[]){0}, 1, &opts, TN_FORMAT_NONE, &out));
    bool was = tn_set_grad_enabled(false); /* out= refuses gradients */
    ASSERT_OK(tn_observe_thread(watch, &s));
    tn_status status = has_out ? tn_matmul_out(a, b, out) : tn_matmul(a, b, &out);
    ASSERT_OK(tn_observe_thread(NULL, NULL));
    (void)tn_set_grad_enabled(was);
    ASSERT_OK(status);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(out);
    return strstr(s.text, "bmm") == NULL;
}

TEST(folding_follows_its_truth_table)
{
    /* layout of the batch, whether it has elements, whether its leading dimensions collapse */
    static const struct {
        const char *name;
        const char *left, *right; /* as the left operand, and as the right one */
        bool empty, left_collapses, right_collapses;
    } batches[] = {
        {"contiguous", "2,4,3", "2,3,4", false, true, false},
        {"permuted", "2,4,3t", "2,3,4t", false, false, true}, /* strides 4, 1 and 8 once swapped */
        {"matrices transposed", "2,4,3m", "2,3,4m", false, false, true},
        {"expanded", "2,4,3x", "2,3,4x", false, false, false},
        {"empty", "0,4,3", "0,3,4", true, true, true},
        {"empty, permuted", "0,4,3t", "0,3,4t", true, true, true},
    };
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        for (int bits = 0; bits < 32; bits++) {
            bool vector = bits & 1, grad = bits & 2, has_out = bits & 4, right = bits & 8;
            tn_device device = bits & 16 ? TN_META : TN_CPU;
            char small[16];
            snprintf(small, sizeof small, "%s%s",
                     vector  ? "3"
                     : right ? "5,3"
                             : "3,5",
                     grad ? "g" : "");
            bool collapses = right ? batches[i].right_collapses : batches[i].left_collapses;
            bool wanted =
                (grad && !has_out) || (!(right && !vector) && (batches[i].empty || collapses));
            const char *a = right ? small : batches[i].left;
            const char *b = right ? batches[i].right : small;
            test_note("%s: %s @ %s, out=%d", batches[i].name, a, b, has_out);
            EXPECT_EQ_INT(folds(a, b, has_out, device), wanted);
        }
    }
}

/* ---- out= ---- */

TEST(a_given_output_that_no_view_covers_gets_the_result)
{
    tn_tensor *a = operand("2,4,3", TN_CPU), *b = operand("3,5", TN_CPU),
              *c = operand("2,3,5", TN_CPU);
    tn_tensor *out = operand("2,4,5t", TN_CPU);
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(tn_zero_(out));
        ASSERT_OK(tn_matmul_out(a, i ? c : b, out));
        const float *data = tn_tensor_data(out);
        for (int k = 0; k < 40; k++)
            EXPECT_NEAR(data[k], 3, 0);
        EXPECT_EQ_INT(tn_tensor_strides(out)[0], 5); /* and keeps its strides */
    }
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(c);
    tn_tensor_unref(out);
}

TEST(a_given_vector_keeps_its_strides)
{
    tn_tensor *a = operand("3", TN_CPU), *b = operand("3,2", TN_CPU), *wide = operand("4", TN_CPU);
    tn_tensor *out = NULL;
    ASSERT_OK(tn_slice(wide, 0, tn_no_int(), tn_no_int(), 2, &out));
    ASSERT_OK(tn_matmul_out(a, b, out));
    const float *data = tn_tensor_data(wide);
    for (int i = 0; i < 4; i++)
        EXPECT_NEAR(data[i], i % 2 ? 1 : 3, 0);
    EXPECT(tn_tensor_ndim(out) == 1 && tn_tensor_strides(out)[0] == 2);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(wide);
    tn_tensor_unref(out);
}

TEST(a_refused_output_is_not_resized)
{
    tn_tensor *a = operand("2,4,3", TN_CPU), *b = operand("3,5", TN_CPU),
              *bad = operand("4,5", TN_CPU);
    tn_tensor *out = operand("7", TN_CPU), *wide = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_empty((int64_t[]){7}, 1, &opts, TN_FORMAT_NONE, &wide));
    EXPECT_FAIL(TN_INVALID, "mat1 and mat2 shapes cannot be multiplied (8x3 and 4x5)",
                tn_matmul_out(a, bad, out));
    EXPECT_FAIL(TN_INVALID, "Expected out tensor to have dtype float, but got double instead",
                tn_matmul_out(a, b, wide));
    EXPECT_EQ_INT(tn_tensor_ndim(out), 1);
    EXPECT_EQ_INT(tn_tensor_ndim(wide), 1);
    ASSERT_OK(tn_tensor_set_requires_grad(out, true));
    EXPECT_FAIL(
        TN_INVALID,
        "matmul(): functions with out=... arguments don't support automatic differentiation, but "
        "one of the arguments requires grad.",
        tn_matmul_out(a, b, out));
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_tensor_unref(bad);
    tn_tensor_unref(out);
    tn_tensor_unref(wide);
}

/* ---- failing allocations ---- */

TEST(matmul_and_linear_leak_nothing_whichever_allocation_fails)
{
    static const char *const cases[][3] = {
        {"2,4,3", "3,5", ""},    {"2,4,3t", "3,5g", ""}, {"5,4g", "2,4,3", ""},
        {"2,4,3", "2,3,5", ""},  {"4", "2,4,3", ""},     {"2,4,3t", "3", ""},
        {"4", "4,3", ""},        {"2,5,3", "4,3", "4"},  {"2,5,3t", "4,3", "4"},
        {"2,5,3", "4,3", "1,4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_note("%s @ %s", cases[i][0], cases[i][1]);
        tn_tensor *a = operand(cases[i][0], TN_CPU), *b = operand(cases[i][1], TN_CPU), *out = NULL;
        tn_tensor *bias = *cases[i][2] ? operand(cases[i][2], TN_CPU) : NULL;
        ASSERT_OK(bias ? tn_linear(a, b, bias, &out) : tn_matmul(a, b, &out));
        tn_tensor_unref(out);
        out = NULL;
        tn_status rc = TN_INTERNAL;
        int64_t before = tni_test_live;
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = bias ? tn_linear(a, b, bias, &out) : tn_matmul(a, b, &out);
            if (rc != TN_OK)
                EXPECT(rc == TN_NOMEM && out == NULL && tni_test_live <= before);
        }
        tn_tensor_unref(out);
        /* Fewer: a leaf remembers where its last accumulator was until it makes a new one. */
        EXPECT(tni_test_live <= before);
        tn_tensor_unref(a);
        tn_tensor_unref(b);
        tn_tensor_unref(bias);
    }
}
