/* SPDX-License-Identifier: MIT */
/* What base/env.h promises. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "harness/test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/env.h"

static const char name[] = "TENON_TEST_VARIABLE";

static void set(const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

TEST(an_empty_variable_is_an_unset_one)
{
    set(NULL);
    EXPECT(tni_env(name) == NULL);
    set("");
    EXPECT(tni_env(name) == NULL);
    set("x");
    EXPECT_STR(tni_env(name), "x");
    set("y");
    EXPECT_STR(tni_env(name), "y");
}

TEST(flags_understand_the_usual_words)
{
    static const char *const yes[] = {"1", "true", "on", "yes", "TRUE"};
    static const char *const no[] = {"0", "false", "off", "no", "Off", "", NULL};
    for (int other = 0; other < 2; other++) {
        for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
            set(yes[i]);
            EXPECT(tni_env_flag(name, other));
        }
        for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
            set(no[i]);
            EXPECT(!tni_env_flag(name, other));
        }
        set("mm");
        EXPECT_EQ_INT(tni_env_flag(name, other), other);
    }
}

TEST(numbers_out_of_range_or_with_rubbish_give_the_default)
{
    static const struct {
        const char *text;
        int64_t wanted;
    } cases[] = {{"5", 5},
                 {"1", 1},
                 {"10", 10},
                 {"0", 7},
                 {"11", 7},
                 {"-3", 7},
                 {"3x", 7},
                 {"x", 7},
                 {" 4", 4},
                 {"", 7},
                 {"4.5", 7},
                 {NULL, 7},
                 {"99999999999999999999", 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set(cases[i].text);
        test_note("value %s", cases[i].text ? cases[i].text : "unset");
        EXPECT_EQ_INT(tni_env_int(name, 1, 10, 7), cases[i].wanted);
    }
    set("99999999999999999999");
    EXPECT_EQ_INT(tni_env_int(name, 0, INT64_MAX, 7), 7);
}

static int count_on_one_processor(void *arg)
{
    (void)arg;
    cpu_set_t set_of_one;
    ASSERT(sched_getaffinity(0, sizeof set_of_one, &set_of_one) == 0);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &set_of_one))
        cpu++;
    CPU_ZERO(&set_of_one);
    CPU_SET((size_t)cpu, &set_of_one);
    ASSERT(sched_setaffinity(0, sizeof set_of_one, &set_of_one) == 0);
    EXPECT_EQ_INT(tni_cpu_count(), 1);
    return 0;
}

/* ---- complaints ---- */

typedef struct complaint {
    const char *variable, *value, *wanted;
    void (*ask)(const char *name);
} complaint;

static void ask_number(const char *variable)
{
    EXPECT_EQ_INT(tni_env_int(variable, 1, 10, 7), 7);
}

static void ask_flag(const char *variable)
{
    EXPECT(tni_env_flag(variable, true));
}

/* What is said on stderr when a variable is asked for three times; a process of its own. */
static int complain(void *arg)
{
    const complaint *c = arg;
    char said[512] = "";
    setenv(c->variable, c->value, 1);
    FILE *file = tmpfile();
    ASSERT(file && dup2(fileno(file), STDERR_FILENO) >= 0);
    for (int i = 0; i < 3; i++)
        c->ask(c->variable);
    fflush(stderr);
    ASSERT(pread(fileno(file), said, sizeof said - 1, 0) >= 0);
    return strcmp(said, c->wanted) == 0 ? 0 : 1;
}

TEST(a_value_that_is_not_understood_is_said_once_with_what_is_and_what_is_used)
{
    static const complaint cases[] = {
        {"TENON_TEST_0", "many",
         "tenon: TENON_TEST_0=many is not understood: it takes a whole number from 1 to 10; "
         "7 is used\n",
         ask_number},
        {"TENON_TEST_1", "11\033[2J\n",
         "tenon: TENON_TEST_1=11?[2J? is not understood: it takes a whole number from 1 to "
         "10; 7 is used\n",
         ask_number},
        {"TENON_TEST_2", "maybe",
         "tenon: TENON_TEST_2=maybe is not understood: it takes 1, true, on, yes, 0, false, "
         "off or no; it counts as 1\n",
         ask_flag},
        {"TENON_TEST_3", "1", "", ask_flag},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_note("%s", cases[i].wanted);
        EXPECT_EQ_INT(run_in_child(complain, (void *)(uintptr_t)&cases[i], 60), 0);
    }
}

TEST(processors_are_those_that_the_process_may_use)
{
    EXPECT(tni_cpu_count() >= 1);
    EXPECT_EQ_INT(run_in_child(count_on_one_processor, NULL, 20), 0);
}

TEST(the_instruction_set_can_be_lowered_and_not_raised)
{
    unsetenv("TENON_CPU");
    tni_isa best = tni_cpu_isa();
    EXPECT(best >= TNI_ISA_BASE && best <= TNI_ISA_AVX512);
    for (int i = TNI_ISA_BASE; i <= TNI_ISA_AVX512; i++) {
        setenv("TENON_CPU", tni_isa_name((tni_isa)i), 1);
        EXPECT_EQ_INT(tni_cpu_isa(), i < (int)best ? i : (int)best);
    }
    const char *const levels[] = {"v2", "x86-64-v2", "v3", "X86-64-V3", "v4", "x86-64-v4"};
    for (int i = 0; i < 6; i++) {
        setenv("TENON_CPU", levels[i], 1);
        EXPECT_EQ_INT(tni_cpu_isa(), i / 2 < (int)best ? i / 2 : (int)best);
    }
    setenv("TENON_CPU", "pentium", 1);
    EXPECT_EQ_INT(tni_cpu_isa(), best);
    unsetenv("TENON_CPU");
}

TEST(instruction_sets_have_the_names_that_lower_them)
{
    EXPECT_STR(tni_isa_name(TNI_ISA_BASE), "base");
    EXPECT_STR(tni_isa_name(TNI_ISA_AVX2), "avx2");
    EXPECT_STR(tni_isa_name(TNI_ISA_AVX512), "avx512");
    EXPECT_STR(tni_isa_name((tni_isa)9), "unknown");
}
