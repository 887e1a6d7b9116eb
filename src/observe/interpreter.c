/* SPDX-License-Identifier: MIT */
/* observe/interpreter.c: who has the lock of a Python interpreter, by the memory of the process.
 *
 * Note [Python's lock]
 * A thread that wants the interpreter sleeps at a condition of glibc's, a few milliseconds at a
 * time. Before the condition lie, in every Python since 3.8: how long it sleeps, the state of the
 * thread that had the lock last, whether somebody has it, how often it has changed hands. Since
 * 3.11 the state of a thread has two words one behind the other: where glibc describes the thread,
 * which begins with its own address and has it again as third word, and the thread's number. All of
 * that must be so; of anything else nothing is said. */
#include <string.h>

#include "observe/proc.h"

typedef struct lock_words {
    uint64_t interval; /* in microseconds */
    uint64_t holder;   /* the state of a thread */
    int32_t locked;
    uint32_t unused;
    uint64_t turn;
} lock_words;

/* Where thread @p tid is described by glibc? */
static bool is_description(int pid, uint64_t at)
{
    uint64_t words[3];
    return at % 16 == 0 && tni_proc_memory(pid, at, words, sizeof words) && words[0] == at &&
           words[2] == at;
}

/* The thread of the state at @p at; 0: it is none. */
static uint32_t thread_of(int pid, uint64_t at)
{
    enum { WORDS = 40 };
    const uint64_t most_tids = 1u << 22;
    uint64_t state[WORDS];
    if (at % 8 || !tni_proc_memory(pid, at, state, sizeof state))
        return 0;
    for (int i = 0; i + 1 < WORDS; i++) {
        if (state[i] > most_tids && state[i + 1] && state[i + 1] < most_tids &&
            is_description(pid, state[i]))
            return (uint32_t)state[i + 1];
    }
    return 0;
}

bool tni_proc_interpreter(int pid, uint64_t at, uint32_t *holder, uint64_t *turn)
{
    /* Which of the two words at its end it is: a condition begins at a multiple of eight. */
    const uint64_t condition = at - (at % 8 ? 44 : 40), most_interval = 1000000000;
    lock_words words;
    if (at < 4096 || !tni_proc_memory(pid, condition - sizeof words, &words, sizeof words) ||
        words.locked != 1 || !words.interval || words.interval > most_interval || !words.holder)
        return false;
    *holder = thread_of(pid, words.holder);
    *turn = words.turn;
    return *holder != 0;
}
