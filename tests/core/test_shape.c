/* SPDX-License-Identifier: MIT */
/* tests/core/test_shape.c: the arithmetic of sizes and strides, against definitions that look at
 * every element, and against what the reference says of random layouts. */
#include "harness/test.h"

#include "core/tensor.h"

#include <stdio.h>
#include <string.h>

static const int8_t row_major[2][5] = {{3, 2, 1, 0}, {4, 3, 2, 1, 0}};
static const int8_t last_2d[4] = {1, 3, 2, 0};
static const int8_t last_3d[5] = {1, 4, 3, 2, 0};

static int64_t count(int n, const int64_t *sizes)
{
    int64_t product = 1;
    for (int d = 0; d < n; d++)
        product *= sizes[d];
    return product;
}

/* Offset of the k-th element when dimensions run in @p order, fastest first. */
static int64_t offset_of(int64_t k, int n, const int64_t *sizes, const int64_t *strides,
                         const int8_t *order)
{
    int64_t offset = 0;
    for (int i = 0; i < n; i++) {
        int d = order ? order[i] : n - 1 - i;
        offset += (k % sizes[d]) * strides[d];
        k /= sizes[d];
    }
    return offset;
}

/* Elements in this order lie one behind the other. */
static bool runs_in_order(int n, const int64_t *sizes, const int64_t *strides, const int8_t *order)
{
    int64_t numel = count(n, sizes);
    for (int64_t k = 0; k < numel; k++)
        if (offset_of(k, n, sizes, strides, order) != k)
            return false;
    return true;
}

/* Without elements order says nothing: then each stride must be the product of the faster sizes. */
static bool strides_are_products(int n, const int64_t *sizes, const int64_t *strides,
                                 const int8_t *order)
{
    for (int i = 0; i < n; i++) {
        int64_t product = 1;
        for (int j = 0; j < i; j++)
            product *= sizes[order[j]];
        if (sizes[order[i]] != 1 && strides[order[i]] != product)
            return false;
    }
    return true;
}

static bool last_by_definition(int n, const int64_t *sizes, const int64_t *strides,
                               const int8_t *order)
{
    return count(n, sizes) ? runs_in_order(n, sizes, strides, order)
                           : strides_are_products(n, sizes, strides, order);
}

/* Every place from 0 on is met exactly once. */
static bool dense_by_definition(int n, const int64_t *sizes, const int64_t *strides)
{
    enum { ROOM = 4096 };
    static bool met[ROOM];
    memset(met, 0, sizeof met);
    int64_t numel = count(n, sizes);
    for (int64_t k = 0; k < numel; k++) {
        int64_t offset = offset_of(k, n, sizes, strides, NULL);
        if (offset >= numel || met[offset])
            return false;
        met[offset] = true;
    }
    return true;
}

static uint32_t flags_by_definition(int n, const int64_t *sizes, const int64_t *strides)
{
    uint32_t flags = 0;
    if (runs_in_order(n, sizes, strides, NULL))
        flags |= TNI_CONTIGUOUS;
    if (n == 4 && last_by_definition(4, sizes, strides, last_2d))
        flags |= TNI_CHANNELS_LAST;
    if (n == 5 && last_by_definition(5, sizes, strides, last_3d))
        flags |= TNI_CHANNELS_LAST_3D;
    if (dense_by_definition(n, sizes, strides))
        flags |= TNI_DENSE;
    return flags;
}

static int below(int n)
{
    return (int)(test_random() % (uint64_t)n);
}

/* Mostly near something regular: a layout of random strides would be nothing special at all. */
static int random_layout(int64_t *sizes, int64_t *strides)
{
    int n = below(7);
    for (int d = 0; d < n; d++)
        sizes[d] = below(20) == 0 ? 0 : below(3) == 0 ? 1 : 1 + below(4);
    int8_t order[8];
    for (int i = 0; i < n; i++)
        order[i] = (int8_t)(n - 1 - i);
    int kind = below(4);
    if (kind == 0 && n == 4)
        memcpy(order, last_2d, 4);
    else if (kind == 0 && n == 5)
        memcpy(order, last_3d, 5);
    else if (kind < 3)
        for (int i = n - 1; i > 0; i--) {
            int j = below(i + 1);
            int8_t moved = order[i];
            order[i] = order[j];
            order[j] = moved;
        }
    int64_t step = 1;
    for (int i = 0; i < n; i++) {
        strides[order[i]] = step;
        step *= sizes[order[i]] > 1 ? sizes[order[i]] : 1;
        if (below(30) == 0)
            step += below(3);
    }
    for (int d = 0; d < n; d++)
        if (below(12) == 0)
            strides[d] = below(9);
    return n;
}

TEST(flags_are_the_definition_on_random_layouts)
{
    int seen[16] = {0};
    for (int i = 0; i < 20000; i++) {
        int64_t sizes[8], strides[8];
        int n = random_layout(sizes, strides);
        uint32_t flags = tni_geometry_flags(n, sizes, strides);
        char a[128], b[128];
        test_note("sizes %s strides %s", tni_format_sizes(n, sizes, a, sizeof a),
                  tni_format_sizes(n, strides, b, sizeof b));
        ASSERT_EQ_INT(flags, flags_by_definition(n, sizes, strides));
        seen[flags]++;
    }
    test_note("after all");
    EXPECT(seen[0] > 100 && seen[TNI_DENSE] > 100 && seen[TNI_DENSE | TNI_CHANNELS_LAST] > 20 &&
           seen[TNI_DENSE | TNI_CHANNELS_LAST_3D] > 20 &&
           seen[TNI_CONTIGUOUS | TNI_DENSE | TNI_CHANNELS_LAST] > 20);
}

typedef struct layout_row {
    int ndim;
    int64_t sizes[5], strides[5];
    int contiguous, last_2d, last_3d, dense, format;
    int64_t kept[5];
} layout_row;

static const layout_row rows[] = {
#include "golden/layouts.inc"
};

TEST(layouts_are_judged_as_the_reference_does)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const layout_row *r = &rows[i];
        tn_tensor *t = NULL;
        char a[128], b[128];
        test_note("sizes %s strides %s", tni_format_sizes(r->ndim, r->sizes, a, sizeof a),
                  tni_format_sizes(r->ndim, r->strides, b, sizeof b));
        ASSERT_OK(tni_tensor_new(r->ndim, r->sizes, r->strides, TN_DTYPE_F32, TN_META, &t));
        EXPECT_EQ_INT(tn_tensor_is_contiguous(t, TN_FORMAT_CONTIGUOUS), r->contiguous);
        EXPECT_EQ_INT(tn_tensor_is_contiguous(t, TN_FORMAT_CHANNELS_LAST), r->last_2d);
        EXPECT_EQ_INT(tn_tensor_is_contiguous(t, TN_FORMAT_CHANNELS_LAST_3D), r->last_3d);
        EXPECT_EQ_INT(tn_tensor_is_non_overlapping_and_dense(t), r->dense);
        EXPECT_EQ_INT(tni_suggest_format(t), r->format);
        int64_t kept[TN_MAX_DIMS];
        tni_preserve_strides(t, kept);
        for (int d = 0; d < r->ndim; d++)
            EXPECT_EQ_INT(kept[d], r->kept[d]);
        tn_tensor_unref(t);
    }
}

TEST(fresh_strides_of_a_format_are_contiguous_in_it)
{
    int64_t strides[5];
    const int64_t sizes[5] = {2, 3, 4, 5, 6};
    ASSERT_OK(tni_format_strides(TN_FORMAT_CHANNELS_LAST, 4, sizes, strides));
    EXPECT(tni_geometry_flags(4, sizes, strides) & TNI_CHANNELS_LAST);
    ASSERT_OK(tni_format_strides(TN_FORMAT_CHANNELS_LAST_3D, 5, sizes, strides));
    EXPECT(tni_geometry_flags(5, sizes, strides) & TNI_CHANNELS_LAST_3D);
    ASSERT_OK(tni_format_strides(TN_FORMAT_CONTIGUOUS, 5, sizes, strides));
    EXPECT(runs_in_order(5, sizes, strides, row_major[1]));
    tni_contiguous_strides(4, (int64_t[]){2, 0, 3, 1}, strides);
    EXPECT(strides[3] == 1 && strides[2] == 1 && strides[1] == 3 && strides[0] == 3);
    EXPECT_FAIL(TN_INVALID, "required rank 4 tensor to use channels_last format",
                tni_format_strides(TN_FORMAT_CHANNELS_LAST, 3, sizes, strides));
    EXPECT_FAIL(TN_INVALID, "required rank 5 tensor to use channels_last_3d format",
                tni_format_strides(TN_FORMAT_CHANNELS_LAST_3D, 4, sizes, strides));
    EXPECT_FAIL(TN_INVALID, "unsupported memory format",
                tni_format_strides(TN_FORMAT_PRESERVE, 4, sizes, strides));
}

TEST(element_and_byte_counts_do_not_overflow_silently)
{
    int64_t n = -7;
    size_t bytes = 7;
    EXPECT(tni_numel(0, NULL, &n) && n == 1);
    EXPECT(tni_numel(3, (int64_t[]){2, 0, 5}, &n) && n == 0);
    EXPECT(tni_numel(2, (int64_t[]){INT64_MAX, 1}, &n) && n == INT64_MAX);
    EXPECT(!tni_numel(2, (int64_t[]){INT64_MAX, 2}, &n));
    EXPECT(!tni_numel(3, (int64_t[]){INT64_MAX, 2, 0}, &n)); /* its strides cannot be written */
    EXPECT(tni_required_bytes(2, (int64_t[]){3, 4}, (int64_t[]){4, 1}, 5, 4, &bytes));
    EXPECT_EQ_INT(bytes, 4 * (5 + 12));
    EXPECT(tni_required_bytes(2, (int64_t[]){3, 0}, (int64_t[]){4, 1}, 5, 4, &bytes));
    EXPECT_EQ_INT(bytes, 0);
    EXPECT(tni_required_bytes(0, NULL, NULL, 2, 8, &bytes) && bytes == 24);
    EXPECT(!tni_required_bytes(1, (int64_t[]){3}, (int64_t[]){INT64_MAX}, 0, 1, &bytes));
    EXPECT(!tni_required_bytes(1, (int64_t[]){INT64_MAX}, (int64_t[]){1}, 0, 8, &bytes));
    EXPECT(!tni_required_bytes(1, (int64_t[]){2}, (int64_t[]){1}, INT64_MAX, 1, &bytes));
}

TEST(a_dimension_wraps_and_a_wrong_one_names_its_range)
{
    int d = 77;
    EXPECT_OK(tni_wrap_dim(-1, 3, &d));
    EXPECT_EQ_INT(d, 2);
    EXPECT_OK(tni_wrap_dim(0, 0, &d));
    EXPECT_EQ_INT(d, 0);
    EXPECT_OK(tni_wrap_dim(-1, 0, &d));
    EXPECT_EQ_INT(d, 0);
    EXPECT_FAIL(TN_INDEX, "Dimension out of range (expected to be in range of [-2, 1], but got 5)",
                tni_wrap_dim(5, 2, &d));
    EXPECT_FAIL(TN_INDEX, "Dimension out of range (expected to be in range of [-1, 0], but got -2)",
                tni_wrap_dim(-2, 0, &d));
    EXPECT_FAIL(TN_INDEX, "but got -9223372036854775808)", tni_wrap_dim(INT64_MIN, 2, &d));
    EXPECT_EQ_INT(d, 0);
}

TEST(sizes_as_text_are_cut_when_they_do_not_fit)
{
    char text[64];
    EXPECT_STR(tni_format_sizes(2, (int64_t[]){2, 3}, text, sizeof text), "[2, 3]");
    EXPECT_STR(tni_format_sizes(0, NULL, text, sizeof text), "[]");
    EXPECT_STR(tni_format_sizes(1, (int64_t[]){-1}, text, sizeof text), "[-1]");
    EXPECT_STR(tni_format_sizes(8, (int64_t[]){111, 222, 333, 444, 555, 666, 777, 888}, text, 20),
               "[111, 222, ...]");
    int64_t sizes[64];
    for (int i = 0; i < 64; i++)
        sizes[i] = INT64_MIN;
    for (size_t n = 0; n < sizeof text; n++) {
        memset(text, 'x', sizeof text);
        tni_format_sizes(64, sizes, text, n);
        EXPECT(text[n] == 'x' && (n == 0 || strlen(text) < n));
    }
}
