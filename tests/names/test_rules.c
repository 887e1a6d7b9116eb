/* SPDX-License-Identifier: MIT */
/* What operators make of names: rules, refusals, gradients, and every allocation failing. Names and
 * texts are PyTorch 2.11's; a table of many more is asked from Python (named_cases.py). */
#include "kit.h"

static tn_tensor *out;
#define GIVES(wanted, call)                   \
    do {                                      \
        out = NULL;                           \
        tn_status status_ = (call);           \
        expect_names(status_, out, (wanted)); \
    } while (0)
#define REFUSES(text, call)             \
    do {                                \
        out = NULL;                     \
        expect_refused((call), (text)); \
        EXPECT(out == NULL);            \
    } while (0)

TEST(elementwise_operators_match_names_from_the_right)
{
    tn_tensor *nc = named("NC"), *c = named("C"), *n = named("N"), *none = named("--"),
              *half = named("N-"), *other = named("-N");
    GIVES("NC", tn_add(nc, nc, tn_int(1), &out));
    GIVES("NC", tn_add(none, nc, tn_int(1), &out));
    GIVES("NC", tn_mul(c, nc, &out));
    GIVES("NC", tn_exp(nc, &out));
    GIVES("NC", tn_lt_scalar(nc, tn_int(1), &out));
    GIVES("--", tn_add(none, none, tn_int(1), &out));
    REFUSES("Error when attempting to broadcast dims ['N', 'C'] and dims ['N']: dim 'C' and dim "
            "'N' are at the same "
            "position from the right but do not match.",
            tn_add(nc, n, tn_int(1), &out));
    REFUSES("Misaligned dims when attempting to broadcast dims [None, 'N'] and dims ['N', None]: "
            "dim 'N' appears in a "
            "different position from the right across both lists.",
            tn_add(half, other, tn_int(1), &out));
    UNREF(nc, c, n, none, half, other);
}

TEST(reductions_drop_the_names_of_what_they_reduce)
{
    tn_tensor *t = named("NCH"), *indices = NULL;
    GIVES("NH", tn_sum_dim(t, (int64_t[]){-2}, 1, false, TN_DTYPE_NONE, &out));
    GIVES("NCH", tn_sum_dim(t, (int64_t[]){-2}, 1, true, TN_DTYPE_NONE, &out));
    GIVES("C", tn_mean_dim(t, (int64_t[]){0, 2}, 2, false, TN_DTYPE_NONE, &out));
    GIVES("", tn_sum_dim(t, NULL, 0, false, TN_DTYPE_NONE, &out));
    GIVES("", tn_sum(t, TN_DTYPE_NONE, &out));
    out = NULL;
    ASSERT_OK(tn_max_dim(t, 0, false, &out, &indices));
    expect_names(TN_OK, out, "CH");
    expect_names(TN_OK, indices, "CH");
    GIVES("NCH", tn_softmax(t, 1, TN_DTYPE_NONE, &out));
    GIVES("NCH", tn_cumsum(t, 1, TN_DTYPE_NONE, &out));
    EXPECT_EQ_INT(tn_cumsum(t, 3, TN_DTYPE_NONE, &out), TN_INDEX);
    EXPECT_EQ_INT(tn_sum_dim(t, (int64_t[]){3}, 1, false, TN_DTYPE_NONE, &out), TN_INDEX);
    tn_tensor_unref(t);
}

TEST(products_keep_the_outer_names)
{
    tn_tensor *nc = named("NC"), *cd = named("CD"), *cn = named("CN"), *bnc = named("BNC"),
              *xcd = named("XCD"), *c = named("C"), *none = named("--"), *d = named("D");
    GIVES("ND", tn_mm(nc, cd, &out));
    GIVES("N-", tn_mm(nc, none, &out));
    GIVES("--", tn_mm(none, none, &out));
    GIVES("N", tn_mv(nc, c, &out));
    GIVES("", tn_dot(c, c, &out));
    GIVES("BND", tn_matmul(bnc, cd, &out));
    GIVES("ND", tn_addmm(d, nc, cd, tn_int(1), tn_int(1), &out));
    REFUSES("Matrix multiplying Tensor['N', 'C'] with Tensor['C', 'N'] would produce output tensor "
            "with duplicate names "
            "['N', 'N']. Please rename the input tensors with `Tensor.rename` to prevent this.",
            tn_mm(nc, cn, &out));
    REFUSES("matmul: Expected 'B' (index 0 of ['B', 'N', 'C']) to match 'X' (index 0 of ['X', 'C', "
            "'D']) but they do not "
            "match.",
            tn_bmm(bnc, xcd, &out));
    REFUSES(
        "Error when attempting to broadcast dims ['N', 'D'] and dims ['C']: dim 'D' and dim 'C'",
        tn_addmm(c, nc, cd, tn_int(1), tn_int(1), &out));
    UNREF(nc, cd, cn, bnc, xcd, c, none, d);
}

TEST(views_carry_names_along)
{
    tn_tensor *t = named("NCH"), **list = NULL;
    int64_t n = 0;
    GIVES("HCN", tn_transpose(t, 0, 2, &out));
    GIVES("NH", tn_select(t, 1, 0, &out));
    GIVES("NCH", tn_slice(t, 1, tn_some_int(0), tn_some_int(1), 1, &out));
    GIVES("H-", tn_diagonal(t, 0, 0, 1, &out));
    GIVES("-NCH", tn_expand(t, (int64_t[]){5, 2, 2, 2}, 4, false, &out));
    GIVES("NCH", tn_squeeze(t, &out));
    GIVES("NCH", tn_squeeze_dim(t, 1, &out));
    GIVES("NCH", tn_detach(t, &out));
    GIVES("----", tn_as_strided(t, (int64_t[]){1, 1, 1, 1}, 4, (int64_t[]){1, 1, 1, 1}, 4,
                                tn_no_int(), &out));
    ASSERT_OK(tn_unbind(t, 0, &list, &n));
    EXPECT_EQ_INT(n, 2);
    EXPECT_STR(names_of(list[1]), "CH");
    tn_tensor_list_free(list, n);
    REFUSES("aten::view is not yet supported with named tensors. Please drop names via `tensor = "
            "tensor.rename(None)`, call "
            "the op with an unnamed tensor, and set names on the result of the operation.",
            tn_view(t, (int64_t[]){8}, 1, &out));
    tn_tensor_unref(t);
}

TEST(what_is_written_gets_names_or_has_the_same)
{
    tn_tensor *nc = named("NC"), *none = named("--"), *nd = named("ND"), *half = named("N-"),
              *small = named("N");
    ASSERT_OK(tn_add_(none, nc, tn_int(1)));
    EXPECT_STR(names_of(none), "NC");
    expect_refused(tn_add_(half, nc, tn_int(1)),
                   "Name mismatch: specified out tensor with names ['N', None] are not the same as "
                   "the computed output names "
                   "['N', 'C']. Please rename the out tensor's dims with `Tensor.rename`.");
    EXPECT(((const float *)tn_tensor_const_data(half))[0] == 1.0f);
    expect_refused(tn_mul_out(nc, nc, nd),
                   "Name mismatch: specified out tensor with names ['N', 'D']");
    expect_refused(tn_mul_out(nc, nc, small), "Cannot resize named tensor");
    ASSERT_OK(tn_tensor_set_names(nd, NULL, 0));
    ASSERT_OK(tn_mul_out(nc, nc, nd));
    EXPECT_STR(names_of(nd), "NC");
    ASSERT_OK(tn_zero_(nc));
    ASSERT_OK(tn_copy_(nc, nd, false));
    EXPECT_STR(names_of(nc), "NC");
    UNREF(nc, none, nd, half, small);
}

TEST(equal_compares_names_too)
{
    tn_tensor *nc = named("NC"), *same = named("NC"), *none = named("--");
    bool are;
    ASSERT_OK(tn_equal(nc, same, &are));
    EXPECT(are);
    ASSERT_OK(tn_equal(nc, none, &are));
    EXPECT(!are);
    UNREF(nc, same, none);
}

TEST(an_operator_of_somebody_else_refuses_names)
{
    tn_library *library = NULL;
    tn_op *op = NULL;
    tn_tensor *t = named("N");
    tn_value arg = tn_value_tensor(t), ret = tn_value_none();
    ASSERT_OK(
        tn_library_open(TN_LIBRARY_DEF, "named_test", TN_KEY_NONE, __FILE__, __LINE__, &library));
    ASSERT_OK(tn_library_def(library, "mine(Tensor x) -> Tensor", NULL, NULL));
    ASSERT_OK(tn_op_find("named_test::mine", &op));
    expect_refused(tn_op_call(op, &arg, 1, &ret),
                   "named_test::mine is not yet supported with named tensors.");
    tn_library_close(library);
    tn_tensor_unref(t);
}

/* ---- gradients ---- */

TEST(gradients_have_no_names)
{
    tn_tensor *x = named("NC"), *w = named("CD"), *y = NULL, *s = NULL, *square = NULL,
              *total = NULL, *grad;
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_matmul(x, w, &y));
    ASSERT_OK(tn_softmax(y, 1, TN_DTYPE_NONE, &s));
    EXPECT_STR(names_of(s), "ND");
    ASSERT_OK(tn_mul(s, s, &square));
    ASSERT_OK(tn_mul_scalar_(square, tn_float(2)));
    ASSERT_OK(tn_sum(square, TN_DTYPE_NONE, &total));
    ASSERT_OK(tn_tensor_backward(total));
    grad = tn_tensor_grad(x);
    EXPECT_STR(names_of(grad), "--");
    EXPECT(!(tn_excluded_keys() & tn_keyset_of(TN_KEY_NAMED)));
    EXPECT_STR(names_of(x), "NC");
    UNREF(x, w, y, s, square, total);
}

TEST(forward_mode_refuses_names)
{
    tn_tensor *x = named("NC"), *t = named("--");
    ASSERT_OK(tn_forward_enter());
    REFUSES("is not yet supported with named tensors", tn_make_dual(x, t, &out));
    REFUSES("is not yet supported with named tensors", tn_make_dual(t, x, &out));
    ASSERT_OK(tn_forward_leave());
    UNREF(x, t);
}

TEST(inference_mode_has_names)
{
    tn_inference_guard guard = tn_inference_enter(true);
    tn_tensor *x = named("NC"), *w = named("CD");
    GIVES("ND", tn_matmul(x, w, &out));
    GIVES("NC", tn_softmax(x, 1, TN_DTYPE_NONE, &out));
    GIVES("N", tn_var(x, (int64_t[]){1}, 1, NULL, false, &out));
    REFUSES("aten::view is not yet supported", tn_reshape(x, (int64_t[]){4}, 1, &out));
    UNREF(x, w);
    tn_inference_leave(guard);
}

TEST(a_thread_may_look_away_from_names)
{
    tn_tensor *x = named("NC");
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_NAMED));
    EXPECT(!tn_tensor_has_names(x));
    GIVES("-", tn_view(x, (int64_t[]){4}, 1, &out));
    tn_keys_restore(guard);
    EXPECT_STR(names_of(x), "NC");
    tn_tensor_unref(x);
}

/* ---- memory ---- */

TEST(named_calls_survive_every_allocation_failing)
{
    tn_tensor *x = named("NC"), *w = named("CD");
    tn_status rc;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor *y = NULL, *s = NULL, *t = NULL;
        rc = tn_matmul(x, w, &y);
        if (rc == TN_OK)
            rc = tn_softmax(y, 1, TN_DTYPE_NONE, &s);
        if (rc == TN_OK)
            rc = tn_transpose(s, 0, 1, &t);
        if (rc == TN_OK)
            EXPECT_STR(names_of(t), "DN");
        else
            EXPECT_EQ_INT(rc, TN_NOMEM);
        UNREF(y, s, t);
        if (rc != TN_OK)
            EXPECT_EQ_INT(tni_test_live, before);
    }
    UNREF(x, w);
}

TEST(lists_and_pairs_survive_every_allocation_failing)
{
    tn_tensor *x = named("NC");
    tn_status rc;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tn_tensor **list = NULL, *values = NULL, *indices = NULL;
        int64_t n = 0;
        rc = tn_unbind(x, 0, &list, &n);
        if (rc == TN_OK)
            rc = tn_max_dim(x, 0, false, &values, &indices);
        if (rc != TN_OK)
            EXPECT_EQ_INT(rc, TN_NOMEM);
        tn_tensor_list_free(list, n);
        UNREF(values, indices);
        if (rc != TN_OK)
            EXPECT_EQ_INT(tni_test_live, before);
    }
    tn_tensor_unref(x);
}

TEST(nothing_is_written_where_names_find_no_memory)
{
    tn_tensor *x = named("--"), *y = named("NC");
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_add_(x, y, tn_int(1));
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && !tn_tensor_has_names(x) &&
                   ((const float *)tn_tensor_const_data(x))[0] == 1.0f);
    }
    EXPECT(((const float *)tn_tensor_const_data(x))[0] == 2.0f);
    EXPECT_STR(names_of(x), "NC");
    UNREF(x, y);
}
