/* SPDX-License-Identifier: MIT */
/* tests/ops/test_apart.c: operators that write where an index says refuse an index or a source that
 * lies in what they write, in the words of the reference (seen to hold of PyTorch 2.11), and write
 * nothing then. Where the reference cannot tell, of strided tensors, all is read first. */
#include "harness/test.h"
#include "tenon/ops.h"

typedef tn_status (*writer)(tn_tensor *self, tn_tensor *index, tn_tensor *source);

static tn_status by_add(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_index_add_(self, 0, index, source, tn_int(1));
}
static tn_status by_copy(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_index_copy_(self, 0, index, source);
}
static tn_status by_reduce(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_index_reduce_(self, 0, index, source, "amax", true);
}
static tn_status by_put(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_put_(self, index, source, false);
}
static tn_status by_index_put(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_index_put_(self, &index, 1, source, true);
}
static tn_status by_scatter(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_scatter_(self, 0, index, source);
}
static tn_status by_scatter_reduce_old(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_scatter_src_reduce_(self, 0, index, source, "add");
}
static tn_status by_scatter_add(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_scatter_add_(self, 0, index, source);
}
static tn_status by_scatter_reduce(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    return tn_scatter_reduce_(self, 0, index, source, "sum", true);
}
static tn_status by_fill(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    (void)source;
    return tn_index_fill_(self, 0, index, tn_int(7));
}
static tn_status by_scatter_value(tn_tensor *self, tn_tensor *index, tn_tensor *source)
{
    (void)source;
    return tn_scatter_value_(self, 0, index, tn_int(7));
}

static const struct {
    const char *name;
    writer write;
    bool has_source;
} writers[] = {
    {"index_add_", by_add, true},
    {"index_copy_", by_copy, true},
    {"index_reduce_", by_reduce, true},
    {"put_", by_put, true},
    {"index_put_", by_index_put, true},
    {"scatter_", by_scatter, true},
    {"scatter_, reduce", by_scatter_reduce_old, true},
    {"scatter_add_", by_scatter_add, true},
    {"scatter_reduce_", by_scatter_reduce, true},
    {"index_fill_", by_fill, false},
    {"scatter_, value", by_scatter_value, false},
};
enum { WRITERS = sizeof writers / sizeof writers[0] };

static const char shared[] =
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a "
    "single memory location. Please clone() the tensor before performing the operation.";

/* 0, 1, 2, 0, 1, 2, …: any of them is an index. */
static tn_tensor *whole(tn_device device)
{
    tn_tensor *t = NULL;
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, device);
    ASSERT_OK(tn_empty((const int64_t[]){12}, 1, &opts, TN_FORMAT_CONTIGUOUS, &t));
    int64_t *v = tn_tensor_data(t);
    for (int i = 0; v && i < 12; i++)
        v[i] = i % 3;
    return t;
}

static tn_tensor *part(tn_tensor *t, int64_t from, int64_t to)
{
    tn_tensor *made = NULL;
    ASSERT_OK(tn_slice(t, 0, tn_some_int(from), tn_some_int(to), 1, &made));
    return made;
}

static void check(tn_device device)
{
    for (int i = 0; i < WRITERS; i++) {
        test_note("%s", writers[i].name);
        tn_tensor *base = whole(device), *other = whole(device);
        tn_tensor *self = part(base, 0, 4), *inside = part(base, 2, 5), *behind = part(base, 4, 7),
                  *same = part(base, 0, 3), *apart = part(other, 0, 3);
        if (writers[i].has_source) {
            EXPECT_FAIL(TN_INVALID, shared, writers[i].write(self, apart, inside));
            EXPECT_FAIL(TN_INVALID, shared, writers[i].write(self, apart, same));
        }
        EXPECT_FAIL(TN_INVALID, shared, writers[i].write(self, inside, apart));
        const int64_t *v = tn_tensor_data(base);
        for (int k = 0; v && k < 12; k++)
            EXPECT_EQ_INT(v[k], k % 3);
        EXPECT_OK(writers[i].write(self, behind, apart)); /* of one storage, and apart */
        EXPECT_OK(writers[i].write(self, apart, behind));
        tn_tensor *const all[] = {base, other, self, inside, behind, same, apart};
        for (int k = 0; k < 7; k++)
            tn_tensor_unref(all[k]);
    }
}

TEST(what_is_written_may_not_be_the_index_or_the_source)
{
    check(TN_CPU);
}

TEST(the_same_holds_of_meta_tensors)
{
    check(TN_META);
}

TEST(strided_sources_are_read_before_they_are_written)
{
    tn_tensor *base = whole(TN_CPU), *other = whole(TN_CPU), *self = NULL, *source = NULL;
    tn_tensor *index = part(other, 0, 3);
    ASSERT_OK(tn_slice(base, 0, tn_some_int(0), tn_some_int(6), 2, &self));   /* 0 2 1 */
    ASSERT_OK(tn_slice(base, 0, tn_some_int(2), tn_some_int(7), 2, &source)); /* 2 1 0 */
    EXPECT_OK(tn_index_add_(self, 0, index, source, tn_int(10)));
    const int64_t *v = tn_tensor_data(base);
    EXPECT_EQ_INT(v[0], 0 + 20);
    EXPECT_EQ_INT(v[2], 2 + 10);
    EXPECT_EQ_INT(v[4], 1 + 0);
    tn_tensor *const all[] = {base, other, self, source, index};
    for (int k = 0; k < 5; k++)
        tn_tensor_unref(all[k]);
}
