/* SPDX-License-Identifier: MIT */
/* A profile shown: averages, the table, traces and pages, and what is left out of them. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile_kit.h"
#include "observe/profile.h"

TEST(a_trace_of_too_many_events_has_the_longest_and_says_so)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2), *out = NULL;
    start(false, false, true);
    for (int i = 0; i < 100; i++) {
        ASSERT_OK(tn_neg(a, &out));
        tn_tensor_unref(out);
    }
    tn_profile *p = stop();
    tni_str text = TNI_STR_INIT;
    tni_prof_show_chrome(p, 50, NULL, &text);
    ASSERT(!text.failed);
    int slices = 0;
    for (const char *at = tni_str_get(&text); (at = strstr(at, "{\"ph\":\"X\"")); at++)
        slices++;
    EXPECT(slices <= 50 && slices > 20);
    EXPECT_CONTAINS(tni_str_get(&text), "shorter events left out");
    tni_str_clear(&text);
    tn_profile_free(p);
    tn_tensor_unref(a);
}

/* ---- averages ---- */

static tn_profile_average average(const tn_profile *p, const char *name)
{
    tn_profile_average a = {.size = sizeof a};
    for (size_t i = 0; i < tn_profile_num_averages(p); i++) {
        ASSERT_OK(tn_profile_get_average(p, i, &a));
        if (strcmp(a.name, name) == 0)
            return a;
    }
    test_wrong(__FILE__, __LINE__, "no average of %s", name);
    test_end();
}

TEST(averages_count_calls_and_share_out_all_of_the_time)
{
    const int64_t three[] = {2, 4, 16};
    tn_tensor *a = tensor(TN_META, 3, three), *b = matrix(TN_META, 16, 16), *out = NULL;
    start(false, false, true);
    for (int i = 0; i < 5; i++) {
        ASSERT_OK(tn_matmul(a, b, &out));
        tn_tensor_unref(out);
    }
    tn_profile *p = stop();
    uint64_t self = 0, whole = 0, before = UINT64_MAX;
    for (size_t i = 0; i < tn_profile_num_averages(p); i++) {
        tn_profile_average x = {.size = sizeof x};
        ASSERT_OK(tn_profile_get_average(p, i, &x));
        EXPECT(x.self_ns <= before);
        before = x.self_ns;
        self += x.self_ns;
        EXPECT(x.min_ns <= x.mean_ns && x.mean_ns <= x.max_ns);
        EXPECT(x.self_ns <= x.total_ns);
    }
    for (size_t i = 0; i < tn_profile_num_events(p); i++)
        whole += event(p, i).depth == 0 ? event(p, i).duration_ns : 0;
    EXPECT_EQ_INT(self, whole);
    EXPECT_EQ_INT(average(p, "aten::matmul").calls, 5);
    EXPECT_EQ_INT(average(p, "aten::mm").calls, 5); /* its redispatches are not calls */
    EXPECT_EQ_INT(average(p, "aten::matmul").total_ns, whole);
    tn_profile_average x = {.size = sizeof x};
    EXPECT_FAIL(TN_INDEX, "none is 99", tn_profile_get_average(p, 99, &x));
    x.size = 1;
    EXPECT_FAIL(TN_INVALID, "out->size", tn_profile_get_average(p, 0, &x));
    tn_profile_event e = {.size = sizeof e};
    EXPECT_FAIL(TN_INDEX, "none is 9999", tn_profile_get_event(p, 9999, &e));
    tn_profile_thread t = {.size = sizeof t};
    EXPECT_FAIL(TN_INDEX, "none is 7", tn_profile_get_thread(p, 7, &t));
    char *table = NULL;
    ASSERT_OK(tn_profile_table(p, 2, &table));
    EXPECT_CONTAINS(table, "and 3 more\n");
    EXPECT_CONTAINS(table, "events on 1 thread in ");
    tn_string_free(table);
    tn_profile_free(p);
    tn_tensor_unref(a);
    tn_tensor_unref(b);
}

/* ---- files ---- */

TEST(the_ending_of_a_name_says_what_is_written)
{
    char folder[] = "/tmp/tenon_profile_XXXXXX", path[128];
    ASSERT(mkdtemp(folder) != NULL);
    tn_tensor *a = matrix(TN_CPU, 2, 2), *out = NULL;
    start(true, true, true);
    ASSERT_OK(tn_profiler_range_begin("</script>\"\\\x01\xff é"));
    ASSERT_OK(tn_neg(a, &out));
    ASSERT_OK(tn_profiler_range_end());
    tn_profile *p = stop();
    static const struct {
        const char *name, *begins, *has;
    } files[] = {
        {"a.json", "{\"displayTimeUnit\"", "\\u003c/script\\u003e\\\"\\\\\\u0001\\ufffd é"},
        {"a.html", "<!DOCTYPE html>", "\\u003c/script\\u003e\\\"\\\\\\u0001\\ufffd é"},
        {"a.txt", "name ", "aten::neg"},
    };
    static char text[1 << 20];
    for (size_t i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i].name);
        ASSERT_OK(tn_profile_write(p, path));
        FILE *file = fopen(path, "r");
        ASSERT(file != NULL);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        EXPECT_EQ_INT(strncmp(text, files[i].begins, strlen(files[i].begins)), 0);
        EXPECT_CONTAINS(text, files[i].has);
        unlink(path);
    }
    EXPECT_FAIL(TN_VALUE, "ends in .html, .json or .txt", tn_profile_write(p, "a.jpg"));
    EXPECT_FAIL(TN_VALUE, "ends in .html, .json or .txt", tn_profile_write(p, ".html"));
    EXPECT_FAIL(TN_INVALID, "No such file", tn_profile_write(p, "/nonexistent/a.html"));
    EXPECT_FAIL(TN_INVALID, "must not be NULL", tn_profile_write(NULL, "a.html"));
    EXPECT_EQ_INT(rmdir(folder), 0); /* nothing is left beside it */
    tn_profile_free(p);
    tn_profile_free(NULL);
    tn_tensor_unref(a);
    tn_tensor_unref(out);
}

TEST(integers_stand_behind_the_shapes_when_they_are_asked_for)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2), *out = NULL;
    const int64_t sizes[] = {4, 1};
    for (int i = 0; i < 2; i++) {
        tn_profiler_options o = TN_PROFILER_OPTIONS_INIT;
        o.shapes = true;
        o.integers = i == 1;
        ASSERT_OK(tn_profiler_start(&o));
        ASSERT_OK(tn_reshape(a, sizes, 2, &out));
        tn_tensor_unref(out);
        ASSERT_OK(tn_unsqueeze(a, -1, &out));
        tn_tensor_unref(out);
        tn_profile *p = stop();
        size_t last = tn_profile_num_events(p) - 1;
        while (strcmp(event(p, last).name, "aten::unsqueeze") != 0)
            last--;
        EXPECT_STR(event(p, 0).shapes, i ? "float32[2, 2], int[4, 1]" : "float32[2, 2]");
        EXPECT_STR(event(p, last).shapes, i ? "float32[2, 2], int[-1]" : "float32[2, 2]");
        char *trace = NULL;
        ASSERT_OK(tn_profile_trace(p, NULL, &trace));
        EXPECT_CONTAINS(trace, "\"Input Dims\":[[2, 2]]");
        EXPECT(!strstr(trace, "\"Input Dims\":[[2, 2],"));
        tn_string_free(trace);
        tn_profile_free(p);
    }
    tn_tensor_unref(a);
}

TEST(a_trace_may_speak_as_torchs_do)
{
    tn_tensor *a = matrix(TN_CPU, 2, 2), *out = NULL;
    start(true, false, false);
    ASSERT_OK(tn_profiler_range_begin("part.one"));
    ASSERT_OK(tn_add(a, a, tn_int(1), &out));
    tn_tensor_unref(out);
    ASSERT_OK(tn_profiler_range_end());
    ASSERT_OK(tn_profiler_range_begin("")); /* is left out */
    ASSERT_OK(tn_profiler_range_end());
    tn_profile *p = stop();
    char *trace = NULL;
    ASSERT_OK(tn_profile_trace(p, "\"job\": 7", &trace));
    EXPECT_CONTAINS(trace, "\"cat\":\"cpu_op\",\"name\":\"aten::add\"");
    EXPECT_CONTAINS(trace, "\"cat\":\"user_annotation\",\"name\":\"part.one\"");
    EXPECT_CONTAINS(trace, "\"Input Dims\":[[2, 2],[2, 2]]");
    EXPECT_CONTAINS(trace, "\n],\n\"job\": 7}\n");
    EXPECT(!strstr(trace, "\"name\":\"\""));
    tn_string_free(trace);
    EXPECT_FAIL(TN_INVALID, "'out' must not be NULL", tn_profile_trace(p, NULL, NULL));
    EXPECT_FAIL(TN_INVALID, "'profile' must not be NULL", tn_profile_trace(NULL, NULL, &trace));
    tn_profile_free(p);
    tn_tensor_unref(a);
}

TEST(an_empty_profile_can_be_shown)
{
    char path[] = "/tmp/tenon_profile_XXXXXX.html";
    int fd = mkstemps(path, 5);
    ASSERT(fd >= 0);
    close(fd);
    start(true, true, true);
    tn_profile *p = stop();
    EXPECT_EQ_INT(tn_profile_num_events(p), 0);
    EXPECT_OK(tn_profile_write(p, path));
    unlink(path);
    char *table = NULL;
    EXPECT_OK(tn_profile_table(p, 0, &table));
    tn_string_free(table);
    tn_profile_free(p);
}

TEST(a_name_of_any_characters_is_one_row_of_the_table)
{
    char name[400];
    start(false, false, false);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    const char *const names[] = {"two\nlines\tand\033[2J more", "\xc3\xa9t\xc3\xa9 \xff", "", name};
    for (int i = 0; i < 4; i++) {
        ASSERT_OK(tn_profiler_range_begin(names[i]));
        ASSERT_OK(tn_profiler_range_end());
    }
    tn_profile *p = stop();
    char *table = NULL;
    ASSERT_OK(tn_profile_table(p, 0, &table));
    int lines = 0;
    for (const char *c = table; *c; c++) {
        lines += *c == '\n';
        EXPECT((unsigned char)*c >= 0x20 || *c == '\n');
    }
    EXPECT_EQ_INT(lines, 6);
    EXPECT_CONTAINS(table, "two?lines?and?[2J more ");
    EXPECT_CONTAINS(table, "\xc3\xa9t\xc3\xa9 ? ");
    EXPECT_CONTAINS(table, "xxx...  range");
    tn_string_free(table);
    tn_profile_free(p);
}
