/* SPDX-License-Identifier: MIT */
/* tests/iter/test_overlap.c: the overlap checks, against every pair of elements. */
#include "harness/test.h"
#include "iter/iter.h"

#define STORAGE 40

static tn_tensor *over(tni_storage *s, int ndim, const int64_t *sizes, const int64_t *strides,
                       int64_t offset)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tni_tensor_over(s, ndim, sizes, strides, offset, TN_DTYPE_F32,
                              tni_tensor_keys_for(TN_DEVICE_CPU, false), TN_CPU, &t));
    return t;
}

/* How often each element of the storage is reached. */
static void count(const tn_tensor *t, int *times)
{
    for (int i = 0; i < STORAGE; i++)
        times[i] = 0;
    for (int64_t k = 0; k < t->numel; k++) {
        int64_t at = t->offset, rest = k;
        for (int d = 0; d < t->ndim; d++) {
            at += rest % t->sizes[d] * t->strides[d];
            rest /= t->sizes[d];
        }
        times[at]++;
    }
}

static tn_tensor *random_view(tni_storage *s)
{
    int64_t sizes[3], strides[3];
    for (;;) {
        int ndim = (int)(test_random() % 4);
        int64_t last = 0, offset = (int64_t)(test_random() % 8);
        for (int d = 0; d < ndim; d++) {
            sizes[d] = (int64_t)(test_random() % 4) + (test_random() % 9 != 0);
            strides[d] = (int64_t)(test_random() % 8);
            last += (sizes[d] - 1) * strides[d];
        }
        if (offset + last >= 0 && offset + last < STORAGE)
            return over(s, ndim, sizes, strides, offset);
    }
}

TEST(internal_overlap_is_found_in_any_two_dimensions_and_never_invented)
{
    tni_storage *s = NULL;
    ASSERT_OK(tni_storage_new(TN_CPU, STORAGE * 4, &s));
    int found = 0, missed = 0;
    for (int i = 0; i < 20000; i++) {
        tn_tensor *t = random_view(s);
        int times[STORAGE];
        bool real = false;
        count(t, times);
        for (int k = 0; k < STORAGE; k++)
            real |= times[k] > 1;
        bool refused = tni_check_internal_overlap(t) != TN_OK;
        EXPECT(!refused || real);
        found += refused;
        if (real && !refused) {
            missed++;
            EXPECT(t->ndim == 3); /* only three dimensions together can hide it */
        }
        tn_tensor_unref(t);
    }
    EXPECT(found > 1000);
    EXPECT(missed * 2 < found);
    tni_storage_unref(s);
}

TEST(overlap_with_an_input_is_refused_or_the_input_is_read_first)
{
    tni_storage *s = NULL;
    ASSERT_OK(tni_storage_new(TN_CPU, STORAGE * 4, &s));
    int refused = 0, first = 0, free_pairs = 0;
    for (int i = 0; i < 40000; i++) {
        tn_tensor *a = random_view(s), *b = random_view(s);
        int in_a[STORAGE], in_b[STORAGE];
        bool share = false, same = a->ndim == b->ndim && a->offset == b->offset, copy_first = false;
        count(a, in_a);
        count(b, in_b);
        for (int k = 0; k < STORAGE; k++)
            share |= in_a[k] && in_b[k];
        for (int d = 0; same && d < a->ndim; d++)
            same =
                a->sizes[d] == b->sizes[d] && (a->sizes[d] < 2 || a->strides[d] == b->strides[d]);
        if (tni_check_overlap(a, b, &copy_first) != TN_OK) {
            EXPECT(share && !same);
            refused++;
        } else if (copy_first) {
            first++;
        } else {
            EXPECT(!share || same);
            free_pairs++;
        }
        tn_tensor_unref(a);
        tn_tensor_unref(b);
    }
    EXPECT(refused > 100 && first > 100 && free_pairs > 100);
    tni_storage_unref(s);
}

TEST(neighbouring_columns_need_no_copy)
{
    tni_storage *s = NULL;
    ASSERT_OK(tni_storage_new(TN_CPU, STORAGE * 4, &s));
    const int64_t sizes[] = {4, 2}, strides[] = {5, 1};
    bool copy_first = true;
    tn_tensor *left = over(s, 2, sizes, strides, 0), *right = over(s, 2, sizes, strides, 2);
    tn_tensor *across = over(s, 2, sizes, strides, 1);
    EXPECT_OK(tni_check_overlap(left, right, &copy_first));
    EXPECT(!copy_first);
    EXPECT_OK(tni_check_overlap(left, across, &copy_first));
    EXPECT(copy_first);
    tn_tensor_unref(left);
    tn_tensor_unref(right);
    tn_tensor_unref(across);
    tni_storage_unref(s);
}
