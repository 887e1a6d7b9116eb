/* SPDX-License-Identifier: MIT */
/* tests/core/test_generator.c: Philox against the known answers of its authors, and the state of a
 * generator. */
#include "harness/test.h"

#include "core/generator.h"
#include "core/philox.h"

#include <string.h>

TEST(philox_gives_the_known_answers)
{
    /* Random123's kat_vectors for philox4x32, ten rounds. */
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } answers[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        tni_philox_block b = tni_philox4x32(answers[i].counter, answers[i].key);
        EXPECT(memcmp(b.word, answers[i].want, sizeof b.word) == 0);
        tni_philox_block c =
            tni_philox(answers[i].key[0] | (uint64_t)answers[i].key[1] << 32,
                       answers[i].counter[0] | (uint64_t)answers[i].counter[1] << 32,
                       answers[i].counter[2] | (uint64_t)answers[i].counter[3] << 32);
        EXPECT(memcmp(c.word, answers[i].want, sizeof c.word) == 0);
    }
}

TEST(uniform_numbers_lie_below_one)
{
    EXPECT(tni_uniform_float(UINT32_MAX) == 1.0f - 0x1p-24f && tni_uniform_float(0xff) == 0);
    EXPECT(tni_uniform_double(UINT32_MAX, UINT32_MAX) == 1.0 - 0x1p-53);
    EXPECT(tni_uniform_double(0x80000000, 0) == 0.5 && tni_uniform_float(0x80000000) == 0.5f);
}

TEST(a_generator_counts_the_blocks_taken_from_it)
{
    tn_generator *g = NULL;
    tn_status rc = TN_INTERNAL;
    int64_t before = tni_test_live;
    WITH_EACH_ALLOCATION_FAILING(rc)
    {
        rc = tn_generator_new(42, &g);
        if (rc != TN_OK)
            EXPECT(rc == TN_NOMEM && g == NULL && tni_test_live == before);
    }
    EXPECT_EQ_INT(tni_generator_reserve(g, 5), 0);
    tn_generator_state s = tni_generator_take(g, 7);
    EXPECT(s.seed == 42 && s.counter == 5);
    s = tn_generator_get_state(g);
    EXPECT(s.seed == 42 && s.counter == 12);
    tn_generator_seed(g, 9);
    EXPECT(tn_generator_get_state(g).seed == 9 && tn_generator_get_state(g).counter == 0);
    tn_generator_set_state(g, s);
    EXPECT(tn_generator_get_state(g).seed == 42 && tn_generator_get_state(g).counter == 12);
    EXPECT(tni_generator_keys(g) == 0);
    EXPECT(tn_generator_ref(g) == g);
    tn_generator_unref(g);
    tn_generator_unref(g);
    EXPECT_EQ_INT(tni_test_live, before);
    EXPECT_FAIL(TN_INVALID, "out is NULL", tn_generator_new(1, NULL));
    tn_generator_unref(NULL);
    EXPECT(tn_generator_ref(NULL) == NULL);
}

TEST(the_default_generator_is_always_there)
{
    tn_generator *g = tn_default_generator();
    ASSERT(g != NULL);
    EXPECT(tn_generator_get_state(NULL).seed == UINT64_C(67280421310721));
    tn_generator_unref(g); /* it is nobody's to free */
    tn_generator_unref(g);
    tn_manual_seed(5);
    EXPECT(tn_generator_get_state(g).seed == 5 && tn_generator_get_state(g).counter == 0);
    EXPECT_EQ_INT(tni_generator_reserve(NULL, 3), 0);
    EXPECT_EQ_INT(tni_generator_reserve(g, 3), 3);
    tn_generator_seed(NULL, UINT64_C(67280421310721));
}

/* ---- threads ---- */

enum { THREADS = 8, ROUNDS = 2000, EACH = 3 };

typedef struct shared {
    tn_generator *g;
    uint64_t first[THREADS][ROUNDS];
} shared;

static void take_many(int i, void *arg)
{
    shared *s = arg;
    for (int k = 0; k < ROUNDS; k++)
        s->first[i][k] = tni_generator_reserve(s->g, EACH);
}

TEST(no_two_threads_get_the_same_blocks)
{
    static shared s;
    static bool met[THREADS * ROUNDS];
    ASSERT_OK(tn_generator_new(0, &s.g));
    run_threads(THREADS, take_many, &s);
    memset(met, 0, sizeof met);
    for (int i = 0; i < THREADS; i++)
        for (int k = 0; k < ROUNDS; k++) {
            uint64_t at = s.first[i][k];
            ASSERT(at % EACH == 0 && at / EACH < THREADS * ROUNDS && !met[at / EACH]);
            met[at / EACH] = true;
        }
    tn_generator_unref(s.g);
}

static void seed_or_read(int i, void *arg)
{
    tn_generator *g = arg;
    for (uint64_t k = 0; k < ROUNDS; k++) {
        if (i < 2) { /* seed and counter belong together: the counter says which seed */
            tn_generator_set_state(g, (tn_generator_state){k, k << 32});
        } else {
            tn_generator_state s = i == 2 ? tni_generator_take(g, 1) : tn_generator_get_state(g);
            ASSERT(s.counter >> 32 == s.seed);
        }
    }
}

TEST(seed_and_counter_are_read_together)
{
    tn_generator *g = NULL;
    ASSERT_OK(tn_generator_new(0, &g));
    run_threads(4, seed_or_read, g);
    tn_generator_unref(g);
}
