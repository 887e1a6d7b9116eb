/* SPDX-License-Identifier: MIT */
/* tests/base/test_stack.c: calls on a fresh stack are calls like any other. */
#include "harness/test.h"
#include "base/stack.h"

#include <execinfo.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Thread_local int thread_word;
static const size_t plenty = (size_t)256 << 20;

typedef struct seen {
    size_t left, here;
    int word, n_frames, level;
    void *frames[64];
} seen;

static __attribute__((noinline)) void look(void *ctx)
{
    seen *s = ctx;
    char room[4096];
    memset(room, s->level, sizeof room);
    s->here = (size_t)__builtin_frame_address(0);
    s->left = tni_stack_left();
    s->word = thread_word + (room[17] == s->level ? 0 : 1);
    s->n_frames = backtrace(s->frames, 64);
}

static __attribute__((noinline)) bool call(seen *s)
{
    return tni_stack_call(plenty, look, s);
}

TEST(what_is_left_is_known_and_shrinks)
{
    size_t left = tni_stack_left();
    EXPECT(left > 0 && left != SIZE_MAX);
    seen s = {.level = 3};
    look(&s);
    EXPECT(s.left < left && left - s.left < (size_t)1 << 20);
}

TEST(a_call_on_a_fresh_stack_returns_and_sees_its_thread)
{
    seen s = {.level = 3};
    thread_word = 42;
    size_t before = tni_stack_left();
    if (!call(&s)) {
        EXPECT(!"a fresh stack on this processor");
        return;
    }
    EXPECT_EQ_INT(s.word, 42);
    EXPECT(s.left > (size_t)8 << 20 && s.left != SIZE_MAX);
    size_t here = (size_t)__builtin_frame_address(0);
    size_t apart = here > s.here ? here - s.here : s.here - here;
    EXPECT(apart > (size_t)1 << 20);
    EXPECT_EQ_INT((int64_t)tni_stack_left(), (int64_t)before);
}

/* Who unwinds comes out where the call was made. */
TEST(unwinding_crosses_to_the_caller)
{
    void *mine[64];
    int n = backtrace(mine, 64);
    seen s = {.level = 3};
    if (!call(&s))
        return;
    /* The callers of this test are at the end of both. */
    EXPECT(n > 2 && s.n_frames > n);
    for (int i = 1; i < n && i < 4; i++)
        EXPECT(mine[n - i] == s.frames[s.n_frames - i]);
}

typedef struct chain {
    int left, reached;
    size_t limit;
} chain;

static void deeper(void *ctx)
{
    chain *c = ctx;
    c->reached++;
    if (--c->left > 0 && !tni_stack_call(c->limit, deeper, c))
        c->left = 0;
}

TEST(stacks_nest_up_to_the_limit)
{
    chain c = {.left = 1000, .limit = (size_t)64 << 20};
    size_t before = tni_stack_left();
    deeper(&c);
    EXPECT_EQ_INT(c.reached, 1 + 4);
    c = (chain){.left = 5, .limit = plenty};
    deeper(&c);
    EXPECT_EQ_INT(c.reached, 5);
    c = (chain){.left = 5, .limit = 0};
    deeper(&c);
    EXPECT_EQ_INT(c.reached, 1);
    EXPECT_EQ_INT((int64_t)tni_stack_left(), (int64_t)before);
}

static void fork_here(void *ctx)
{
    pid_t child = fork();
    if (child == 0) {
        seen s = {.level = 1};
        _exit(call(&s) && s.word == thread_word ? 7 : 8);
    }
    *(pid_t *)ctx = child;
}

TEST(a_child_goes_on_where_it_was_forked)
{
    pid_t child = -1;
    int status = 0;
    if (!tni_stack_call(plenty, fork_here, &child))
        return;
    ASSERT(child > 0 && waitpid(child, &status, 0) == child);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void on_a_thread(int i, void *arg)
{
    (void)arg;
    thread_word = i;
    for (int k = 0; k < 20; k++) {
        seen s = {.level = i};
        EXPECT(call(&s) && s.word == i);
    }
}

TEST(threads_have_stacks_of_their_own)
{
    run_threads(8, on_a_thread, NULL);
}
