/* SPDX-License-Identifier: MIT */
/* cpu/square.h: four rows of four numbers of 32 bits, or eight of eight of 16, turned in registers.
 */
#ifndef TNI_CPU_SQUARE_H
#define TNI_CPU_SQUARE_H

#include <stdint.h>
#include <string.h>

typedef uint32_t tni_four __attribute__((vector_size(16)));

/* Row i of @p to is column i of @p from. Rows are so many bytes apart; they do not overlap. */
static inline void tni_turn_four(void *to, int64_t to_apart, const void *from, int64_t from_apart)
{
    tni_four a, b, c, d;
    const char *x = from;
    char *o = to;
    memcpy(&a, x, sizeof a);
    memcpy(&b, x + from_apart, sizeof b);
    memcpy(&c, x + 2 * from_apart, sizeof c);
    memcpy(&d, x + 3 * from_apart, sizeof d);
    tni_four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    tni_four cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    tni_four ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    tni_four cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    a = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    b = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    c = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
    d = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
    memcpy(o, &a, sizeof a);
    memcpy(o + to_apart, &b, sizeof b);
    memcpy(o + 2 * to_apart, &c, sizeof c);
    memcpy(o + 3 * to_apart, &d, sizeof d);
}

typedef uint16_t tni_eight __attribute__((vector_size(16)));

/* Row i of @p to is column i of @p from, of eight rows of eight halves. */
static inline void tni_turn_eight(void *to, int64_t to_apart, const void *from, int64_t from_apart)
{
    tni_eight a[8], b[8];
    for (int i = 0; i < 8; i++)
        memcpy(&a[i], (const char *)from + i * from_apart, sizeof a[i]);
    /* Three times, rows that are four apart are shuffled into each other. */
    for (int step = 0; step < 3; step++) {
        for (int i = 0; i < 4; i++) {
            b[2 * i] = __builtin_shufflevector(a[i], a[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
            b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
        }
        memcpy(a, b, sizeof a);
    }
    for (int i = 0; i < 8; i++)
        memcpy((char *)to + i * to_apart, &a[i], sizeof a[i]);
}

/* n x m numbers of @p size bytes: row y of @p to, of n numbers, is column y of @p from. Squares
 * have 16 / size rows, which @p turn turns; the last ones of either side end with it: what they
 * share with those before is turned twice. Every caller's @p size and @p turn are constants. */
__attribute__((always_inline)) static inline void tni_turn_squares(
    void *to, int64_t to_apart, const void *from, int64_t from_apart, int64_t n, int64_t m,
    int64_t size, void (*turn)(void *, int64_t, const void *, int64_t))
{
    char *o = to;
    const char *x = from;
    const int64_t side = 16 / size;
    if (n < side || m < side) {
        for (int64_t i = 0; i < n; i++)
            for (int64_t y = 0; y < m; y++)
                memcpy(o + y * to_apart + i * size, x + i * from_apart + y * size, (size_t)size);
        return;
    }
    for (int64_t i = 0; i < n; i += side) {
        int64_t row = i + side <= n ? i : n - side;
        for (int64_t y = 0; y < m; y += side) {
            int64_t column = y + side <= m ? y : m - side;
            turn(o + column * to_apart + row * size, to_apart, x + row * from_apart + column * size,
                 from_apart);
        }
    }
}

static inline void tni_turn_words(void *to, int64_t to_apart, const void *from, int64_t from_apart,
                                  int64_t n, int64_t m)
{
    tni_turn_squares(to, to_apart, from, from_apart, n, m, 4, tni_turn_four);
}

static inline void tni_turn_halves(void *to, int64_t to_apart, const void *from, int64_t from_apart,
                                   int64_t n, int64_t m)
{
    tni_turn_squares(to, to_apart, from, from_apart, n, m, 2, tni_turn_eight);
}

#endif
