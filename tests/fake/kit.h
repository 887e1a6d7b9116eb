/* SPDX-License-Identifier: MIT */
/* tests/fake/kit.h: what the tests of fake tensors share. */
#ifndef TESTS_FAKE_KIT_H
#define TESTS_FAKE_KIT_H

#include "harness/test.h"
#include "tenon/fake.h"
#include "tenon/ops.h"

static inline tn_fake_mode *new_mode(bool allow_non_fake_inputs)
{
    tn_fake_opts opts = TN_FAKE_OPTS_INIT;
    opts.allow_non_fake_inputs = allow_non_fake_inputs;
    tn_fake_mode *mode = NULL;
    ASSERT_OK(tn_fake_mode_new(&opts, &mode));
    return mode;
}

static inline tn_device cuda(int index)
{
    return (tn_device)TN_DEVICE_INIT(TN_DEVICE_CUDA, index);
}

/* Ones of size [2], [2, 2] …, or of no dimension; fake inside a mode. */
static inline tn_tensor *ones(int ndim, tn_device device)
{
    const int64_t twos[] = {2, 2, 2, 2};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t = NULL;
    ASSERT_OK(tn_ones(twos, ndim, &opts, &t));
    return t;
}

static inline void expect_device(const tn_tensor *t, const char *wanted)
{
    char name[32];
    EXPECT_STR(tn_device_format(tn_tensor_device(t), name, sizeof name), wanted);
}

static inline void unref_all(tn_tensor **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tn_tensor_unref(list[i]);
}
#define UNREF(...)                          \
    unref_all((tn_tensor *[]){__VA_ARGS__}, \
              sizeof((tn_tensor *[]){__VA_ARGS__}) / sizeof(tn_tensor *))

#endif
