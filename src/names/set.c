/* SPDX-License-Identifier: MIT */
/* names/set.c: naming the dimensions of a tensor. */
#include "autograd/meta.h"
#include "base/warn.h"
#include "names/set.h"
#include "tenon/names.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static tn_status check_name(const char *name)
{
    bool good = is_letter(name[0]);
    for (const char *c = name; *c && good; c++)
        good = is_letter(*c) || (*c >= '0' && *c <= '9');
    TN_CHECK(good, TN_INVALID,
             "Invalid name: a valid identifier contains only digits, alphabetical characters, "
             "and/or underscore and starts with a non-digit. got: '%s'.",
             name);
    return TN_OK;
}

tn_status tni_names_check_distinct(const char *const *names, int n)
{
    char text[TNI_NAMES_TEXT];
    for (int i = 0; i < n; i++)
        for (int k = 0; names[i] && k < i; k++)
            TN_CHECK(!tni_name_equal(names[i], names[k]), TN_INVALID,
                     "Cannot construct a tensor with duplicate names. Got names: %s.",
                     tni_names_format(names, n, text));
    return TN_OK;
}

tn_status tni_names_check_device(const tn_tensor *t)
{
    TN_CHECK(t->device.type != TN_DEVICE_META, TN_INVALID,
             "NYI: named tensors only support CPU, CUDA, XPU or privateuseone tensors.");
    return TN_OK;
}

static tn_status check(const tn_tensor *t, const char *const *names, int n)
{
    char text[TNI_NAMES_TEXT];
    for (int i = 0; i < n; i++)
        if (names[i])
            TN_TRY(check_name(names[i]));
    TN_CHECK(n == t->ndim, TN_INVALID,
             "Number of names (%d) and number of dimensions in tensor (%d) do not match. Attempted "
             "to create a tensor with names %s",
             n, t->ndim, tni_names_format(names, n, text));
    TN_TRY(tni_names_check_distinct(names, n));
    return tni_names_check_device(t);
}

bool tni_names_any(const char *const *names, int n)
{
    bool any = false;
    for (int i = 0; names && i < n; i++)
        any |= names[i] != NULL;
    return any;
}

tn_status tn_tensor_set_names(tn_tensor *t, const char *const *names, int n)
{
    TN_CHECK(t && n >= 0 && n <= TN_MAX_DIMS && (names || n == 0 || n == t->ndim), TN_INVALID,
             "tn_tensor_set_names: t is NULL, or there are %d names, expected one a dimension", n);
    if (!names) {
        tni_names_drop(t);
        return TN_OK;
    }
    TN_TRY(check(t, names, n));
    if (!tni_names_any(names, n)) {
        tni_names_drop(t);
        return TN_OK;
    }
    TNI_WARN_ONCE("Named tensors and all their associated APIs are an experimental feature and "
                  "subject to change. Please do not use them for anything important until they are "
                  "released as stable.");
    TN_AUTO(tni_names) made = NULL;
    tni_grad_meta *meta;
    TN_TRY(tni_names_new(names, n, &made));
    TN_TRY(tni_meta_get(t, &meta));
    tni_meta_set_names(t, made);
    return TN_OK;
}
