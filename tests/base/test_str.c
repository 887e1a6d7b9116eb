/* SPDX-License-Identifier: MIT */
/* What base/str.h promises. */
#include "harness/test.h"

#include <string.h>
#include "base/alloc.h"
#include "base/str.h"

TEST(text_grows_by_pieces)
{
    tni_str s = TNI_STR_INIT;
    EXPECT_STR(tni_str_get(&s), "");
    tni_str_add(&s, "ab");
    tni_str_addn(&s, "cdef", 2);
    tni_str_addf(&s, "-%d-%s", 5, "x");
    EXPECT_STR(tni_str_get(&s), "abcd-5-x");
    EXPECT_EQ_INT(s.n, 8);
    EXPECT(!s.failed);
    tni_str_clear(&s);
    EXPECT_STR(tni_str_get(&s), "");
    EXPECT_EQ_INT(s.n, 0);
}

TEST(appending_nothing_gives_a_terminated_empty_text)
{
    tni_str s = TNI_STR_INIT;
    tni_str_addn(&s, NULL, 0);
    ASSERT(s.text != NULL);
    EXPECT_STR(s.text, "");
    tni_str_addf(&s, "%s", "");
    EXPECT_STR(s.text, "");
    tni_str_clear(&s);
}

TEST(formatted_text_of_any_length_is_whole)
{
    char piece[301];
    for (size_t n = 0; n <= 300; n++) {
        memset(piece, 'p', n);
        piece[n] = '\0';
        tni_str s = TNI_STR_INIT;
        for (int i = 0; i < 3; i++) {
            tni_str_addf(&s, "%s", piece);
            EXPECT_EQ_INT(s.n, (size_t)(i + 1) * n);
            EXPECT_EQ_INT(strlen(tni_str_get(&s)), s.n);
        }
        tni_str_clear(&s);
    }
}

TEST(long_text_is_kept)
{
    tni_str s = TNI_STR_INIT;
    for (int i = 0; i < 20000; i++)
        tni_str_addf(&s, "%05d,", i);
    EXPECT_EQ_INT(s.n, 120000);
    EXPECT_STR(tni_str_get(&s) + 119994, "19999,");
    tni_str_clear(&s);
}

TEST(taking_hands_the_buffer_over)
{
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, "mine");
    char *text = tni_str_take(&s);
    EXPECT_STR(text, "mine");
    EXPECT_STR(tni_str_get(&s), "");
    tni_str_add(&s, "next");
    EXPECT_STR(tni_str_get(&s), "next");
    EXPECT_STR(text, "mine");
    tni_free(text);
    tni_str_clear(&s);
    text = tni_str_take(&s);
    EXPECT_STR(text, "");
    tni_free(text);
}

TEST(a_failed_text_drops_what_follows_and_is_found_by_one_test)
{
    tni_str s = TNI_STR_INIT;
    tni_str_add(&s, "kept");
    int64_t before = tni_test_live;
    tni_alloc_watch(0, false);
    for (int i = 0; i < 50; i++)
        tni_str_add(&s, "0123456789");
    EXPECT(s.failed);
    EXPECT_STR(tni_str_get(&s), "");
    tni_str_addf(&s, "%d", 1);
    EXPECT(s.failed);
    EXPECT_EQ_INT(tni_alloc_tried(), 1);
    EXPECT(tni_str_take(&s) == NULL);
    EXPECT(!s.failed);
    EXPECT_EQ_INT(tni_test_live, before - 1);
    tni_str_add(&s, "usable again");
    EXPECT_STR(tni_str_get(&s), "usable again");
    tni_str_clear(&s);
}

TEST(text_leaks_nothing_whichever_allocation_fails)
{
    tn_status rc = TN_OK;
    int64_t before = tni_test_live;
    int rounds = 0;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tni_str s = TNI_STR_INIT;
        for (int i = 0; i < 40; i++) {
            tni_str_add(&s, "some words and ");
            tni_str_addf(&s, "%d numbers, ", i);
        }
        char *text = tni_str_take(&s);
        rc = text ? TN_OK : TN_NOMEM;
        tni_free(text);
        EXPECT_EQ_INT(tni_test_live, before);
        rounds++;
    }
    EXPECT(rounds > 3);
}
