/* SPDX-License-Identifier: MIT */
/* tests/names/kit.h: what the tests of named tensors share. */
#ifndef TESTS_NAMES_KIT_H
#define TESTS_NAMES_KIT_H

#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/forward.h"
#include "tenon/names.h"
#include "tenon/ops.h"

#define NONE ((const char *)NULL)

/* Ones whose dimensions have size 2 and are called as the letters of @p text say, '-' being no
 * name: "N-W". */
static inline tn_tensor *named(const char *text)
{
    static const char letters[] =
        "A\0B\0C\0D\0E\0F\0G\0H\0I\0J\0K\0L\0M\0N\0O\0P\0Q\0R\0S\0T\0U\0V\0W\0X";
    const int64_t twos[] = {2, 2, 2, 2, 2, 2, 2, 2};
    const char *names[8];
    int n = (int)strlen(text);
    tn_tensor *t = NULL;
    for (int i = 0; i < n; i++)
        names[i] = text[i] == '-' ? NULL : &letters[2 * (text[i] - 'A')];
    ASSERT_OK(tn_ones(twos, n, NULL, &t));
    ASSERT_OK(tn_tensor_set_names(t, names, n));
    return t;
}

/* The names in that form. */
static inline const char *names_of(const tn_tensor *t)
{
    static char text[TN_MAX_DIMS + 1];
    int n = tn_tensor_ndim(t);
    for (int i = 0; i < n; i++)
        text[i] = tn_tensor_name(t, i) ? tn_tensor_name(t, i)[0] : '-';
    text[n] = '\0';
    return text;
}

/* What was made is called so; and let go of. */
static inline void expect_names(tn_status status, tn_tensor *made, const char *wanted)
{
    ASSERT_OK(status);
    EXPECT_STR(names_of(made), wanted);
    EXPECT_EQ_INT(tn_tensor_has_names(made), strspn(wanted, "-") != strlen(wanted));
    EXPECT_EQ_INT(tn_keyset_has(tn_tensor_keys(made), TN_KEY_NAMED), tn_tensor_has_names(made));
    tn_tensor_unref(made);
}

static inline void expect_refused(tn_status status, const char *text)
{
    EXPECT_EQ_INT(status, TN_INVALID);
    EXPECT(strstr(tn_last_error(), text) != NULL);
    if (!strstr(tn_last_error(), text))
        test_note("%s", tn_last_error());
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
