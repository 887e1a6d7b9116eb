/* SPDX-License-Identifier: MIT */
/* tests/autograd/test_kept.c: what nodes keep besides single tensors, by name. */
#include "kit.h"

#include <string.h>

#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "tenon/saved_hooks.h"

/* TN_TAG_NONE and a failed test when there is none of that name. */
static tn_value kept(tn_tensor *of, const char *name)
{
    tn_node *node = NULL;
    tn_value value = tn_value_none();
    tn_status status = tn_tensor_grad_fn(of, &node);
    EXPECT(status == TN_OK && node);
    bool found = false;
    for (uint32_t i = 0; node && tn_node_kept_name(node, i); i++)
        if (strcmp(tn_node_kept_name(node, i), name) == 0) {
            found = true;
            status = tn_node_kept(node, i, &value);
            EXPECT(status == TN_OK);
        }
    EXPECT(found);
    return value;
}

TEST(arguments_and_sizes_are_there_by_their_names)
{
    const int64_t sizes[] = {2, 3}, dims[] = {-1};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *x = NULL, *y = NULL;
    ASSERT_OK(tn_ones(sizes, 2, &opts, &x));
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    ASSERT_OK(tn_sum_dim(x, dims, 1, true, TN_DTYPE_NONE, &y));
    tn_value v = kept(y, "dim");
    EXPECT(v.tag == TN_TAG_INT_LIST && v.count == 1 && v.u.ints[0] == -1);
    v = kept(y, "keepdim");
    EXPECT(v.tag == TN_TAG_BOOL && v.u.i == 1);
    v = kept(y, "self_sym_sizes");
    EXPECT(v.tag == TN_TAG_INT_LIST && v.count == 2 && v.u.ints[0] == 2 && v.u.ints[1] == 3);
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    EXPECT(tn_node_kept_name(node, 3) == NULL && tn_node_kept_name(NULL, 0) == NULL);
    EXPECT_FAIL(TN_INDEX, "there is no kept value 3: SumBackward1 has fewer",
                tn_node_kept(node, 3, &v));
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_node_kept(node, 0, NULL));
    tn_tensor_unref(TN_MOVE(y));
    ASSERT_OK(tn_leaky_relu(x, tn_float(0.25), &y));
    v = kept(y, "negative_slope");
    EXPECT(v.tag == TN_TAG_FLOAT && v.u.f == 0.25);
    tn_tensor_unref(y);
    tn_tensor_unref(x);
}

TEST(lists_of_tensors_are_owned_and_go_with_what_was_saved)
{
    kit_warm_up();
    tn_tensor *x = kit_leaf(2, 1), *at = NULL, *y = NULL, *sum = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    ASSERT_OK(tn_zeros((int64_t[]){3}, 1, &opts, &at));
    ASSERT_OK(tn_index(x, (tn_tensor *[]){at}, 1, &y));
    tn_value v = kept(y, "indices");
    EXPECT(v.tag == TN_TAG_TENSOR_LIST && v.count == 1 && v.u.tensors[0] == at);
    tn_value_clear(&v);
    tn_node *node = NULL;
    ASSERT_OK(tn_tensor_grad_fn(y, &node));
    uint32_t i = 0;
    while (strcmp(tn_node_kept_name(node, i), "indices") != 0)
        i++;
    int64_t before = tni_test_live;
    tn_status rc;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_node_kept(node, i, &v);
        if (rc == TN_OK)
            tn_value_clear(&v);
        tn_clear_error();
        EXPECT(tni_test_live <= before);
    }
    ASSERT_OK(tn_sum(y, TN_DTYPE_NONE, &sum));
    EXPECT_OK(tn_tensor_backward(sum));
    EXPECT_FAIL(TN_INVALID, "a second time", tn_node_kept(node, i, &v));
    v = kept(y, "self_sym_sizes"); /* numbers stay */
    EXPECT(v.tag == TN_TAG_INT_LIST);
    tn_tensor_unref(sum);
    tn_tensor_unref(y);
    tn_tensor_unref(at);
    tn_tensor_unref(x);
}
