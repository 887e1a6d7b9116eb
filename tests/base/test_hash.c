/* SPDX-License-Identifier: MIT */
/* What base/hash.h promises. */
#include "harness/test.h"

#include <stdio.h>
#include <string.h>
#include "base/alloc.h"
#include "base/hash.h"

enum { KEYS = 3000 };
static char keys[KEYS][24];
static int values[KEYS];

static void make_keys(void)
{
    for (int i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof keys[i], "aten::op%d", i);
}

TEST(an_empty_map_has_nothing)
{
    tni_map map = {0};
    size_t cursor = 0;
    const char *key;
    void *value;
    EXPECT(tni_map_get(&map, "x") == NULL);
    EXPECT(tni_map_remove(&map, "x") == NULL);
    EXPECT(!tni_map_next(&map, &cursor, &key, &value));
    tni_map_clear(&map);
}

TEST(what_was_put_is_found_by_equal_text)
{
    make_keys();
    tni_map map = {0};
    for (int i = 0; i < KEYS; i++)
        ASSERT_OK(tni_map_put(&map, keys[i], &values[i]));
    EXPECT_EQ_INT(map.n, KEYS);
    for (int i = 0; i < KEYS; i++) {
        char copy[16];
        strcpy(copy, keys[i]);
        EXPECT(tni_map_get(&map, copy) == &values[i]);
    }
    EXPECT(tni_map_get(&map, "aten::op") == NULL);
    EXPECT(tni_map_get(&map, "") == NULL);
    tni_map_clear(&map);
    EXPECT_EQ_INT(map.n, 0);
    EXPECT(tni_map_get(&map, keys[0]) == NULL);
    ASSERT_OK(tni_map_put(&map, keys[0], &values[0])); /* usable again */
    EXPECT(tni_map_get(&map, keys[0]) == &values[0]);
    tni_map_clear(&map);
}

TEST(the_empty_text_is_a_key)
{
    tni_map map = {0};
    ASSERT_OK(tni_map_put(&map, "", &values[0]));
    EXPECT(tni_map_get(&map, "") == &values[0]);
    EXPECT(tni_map_remove(&map, "") == &values[0]);
    EXPECT(tni_map_get(&map, "") == NULL);
    tni_map_clear(&map);
}

TEST(putting_again_replaces_the_value_and_borrows_the_new_key)
{
    tni_map map = {0};
    char first[] = "name", second[] = "name";
    ASSERT_OK(tni_map_put(&map, first, &values[0]));
    ASSERT_OK(tni_map_put(&map, second, &values[1]));
    strcpy(first, "gone");
    EXPECT_EQ_INT(map.n, 1);
    EXPECT(tni_map_get(&map, "name") == &values[1]);
    tni_map_clear(&map);
}

TEST(random_changes_agree_with_a_plain_array)
{
    make_keys();
    enum { FEW = 200 };
    void *wanted[FEW] = {NULL};
    size_t live = 0;
    tni_map map = {0};
    for (int step = 0; step < 20000; step++) {
        size_t i = test_random() % FEW;
        if (test_random() % 2) {
            live += !wanted[i];
            wanted[i] = &values[step % KEYS];
            ASSERT_OK(tni_map_put(&map, keys[i], wanted[i]));
        } else {
            EXPECT(tni_map_remove(&map, keys[i]) == wanted[i]);
            live -= wanted[i] != NULL;
            wanted[i] = NULL;
        }
        i = test_random() % FEW;
        EXPECT(tni_map_get(&map, keys[i]) == wanted[i]);
        EXPECT_EQ_INT(map.n, live);
        EXPECT(map.n <= map.used && map.used <= map.capacity);
    }
    EXPECT(map.capacity <= 1024); /* what was removed does not make the table grow for ever */
    tni_map_clear(&map);
}

TEST(every_entry_is_visited_once)
{
    make_keys();
    tni_map map = {0};
    for (int i = 0; i < 100; i++)
        ASSERT_OK(tni_map_put(&map, keys[i], &values[i]));
    for (int i = 0; i < 100; i += 3)
        tni_map_remove(&map, keys[i]);
    int seen[100] = {0};
    size_t cursor = 0;
    const char *key;
    void *value;
    while (tni_map_next(&map, &cursor, &key, &value)) {
        size_t i = (size_t)((int *)value - values);
        EXPECT_STR(key, keys[i]);
        seen[i]++;
    }
    for (int i = 0; i < 100; i++)
        EXPECT_EQ_INT(seen[i], i % 3 != 0);
    tni_map_clear(&map);
}

TEST(equal_bytes_have_equal_hashes_and_others_differ)
{
    char a[64], b[64];
    for (size_t n = 0; n < sizeof a; n++) {
        memset(a, 'q', sizeof a);
        memset(b, 'q', sizeof b);
        a[n] = 'x'; /* behind the bytes that count */
        EXPECT(tni_hash_bytes(a, n) == tni_hash_bytes(b, n));
        for (size_t i = 0; i < n; i++) {
            b[i] ^= 1;
            EXPECT(tni_hash_bytes(a, n) != tni_hash_bytes(b, n));
            b[i] ^= 1;
        }
        EXPECT(tni_hash_bytes(b, n) != tni_hash_bytes(b, n + 1 < sizeof b ? n + 1 : 0));
    }
    EXPECT(tni_hash_bytes("\0", 1) != tni_hash_bytes("\0\0", 2));
}

TEST(the_low_bits_of_hashes_are_spread)
{
    make_keys();
    int count[64] = {0};
    for (int i = 0; i < KEYS; i++)
        count[tni_hash_bytes(keys[i], strlen(keys[i])) % 64]++;
    for (int i = 0; i < 64; i++)
        EXPECT(count[i] > 15 && count[i] < 90); /* 47 on average */
}

TEST(a_map_is_unchanged_when_an_allocation_fails)
{
    make_keys();
    tn_status rc = TN_OK;
    int64_t before = tni_test_live;
    int rounds = 0;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        tni_map map = {0};
        int put = 0;
        do
            rc = tni_map_put(&map, keys[put], &values[put]);
        while (rc == TN_OK && ++put < 300);
        if (rc != TN_OK) {
            EXPECT_EQ_INT(rc, TN_NOMEM);
            EXPECT_EQ_INT(tn_last_status(), TN_NOMEM);
        }
        EXPECT_EQ_INT(map.n, put);
        for (int i = 0; i < 300; i++)
            EXPECT(tni_map_get(&map, keys[i]) == (i < put ? &values[i] : NULL));
        if (rc != TN_OK) { /* what is there can still be replaced: that needs no memory */
            for (int i = 0; i < put; i++)
                EXPECT_OK(tni_map_put(&map, keys[i], &values[0]));
        }
        tni_map_clear(&map);
        EXPECT_EQ_INT(tni_test_live, before);
        rounds++;
    }
    EXPECT(rounds > 4);
}
