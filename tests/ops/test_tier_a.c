/* SPDX-License-Identifier: MIT */
/* tests/ops/test_tier_a.c: every operator of tests/ops/tier_a.txt, a list made from the reference's
 * own table, is there: with the reference's schema, with kernels for the CPU and Meta, and with
 * results of the reference that test_golden compares. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/test.h"
#include "ops/golden.h"

/* ---- operators that golden cases show at work ---- */

typedef struct shown {
    char name[96];
    bool values;
} shown;

typedef struct shown_list {
    shown *at;
    size_t n, room;
} shown_list;

static shown *find_shown(const shown_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->at[i].name, name) == 0)
            return &list->at[i];
    return NULL;
}

static void add_case(shown_list *list, const golden_case *c)
{
    shown *found = find_shown(list, c->op);
    if (c->exception)
        return;
    if (!found && list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 256;
        shown *more = realloc(list->at, room * sizeof *more);
        if (!more)
            return;
        list->at = more;
        list->room = room;
    }
    if (!found) {
        found = &list->at[list->n++];
        snprintf(found->name, sizeof found->name, "%s", c->op);
        found->values = false;
    }
    /* A number stands where a tensor's geometry would; without results there is "-". */
    bool tensors = strchr(c->results, '[') != NULL;
    bool values = (!tensors || c->values[strspn(c->values, " ;")]) && !golden_option(c, "values");
    found->values = found->values || values;
}

static void read_cases(shown_list *list)
{
    char folder[1024], path[2048];
    const char *root = getenv("TENON_SOURCE_DIR");
    snprintf(folder, sizeof folder, "%s/tests/golden/data", root ? root : ".");
    DIR *dir = opendir(folder);
    if (!dir) {
        test_wrong(folder, 0, "cannot open it; set TENON_SOURCE_DIR");
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        golden_file file;
        size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 4, ".txt") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (golden_open(path, &file))
            for (int i = 0; i < file.n_cases; i++)
                add_case(list, &file.cases[i]);
        golden_close(&file);
    }
    closedir(dir);
}

/* ---- one line of the list ---- */

/* Whether the operator itself has something to run for a key: a fallback that serves every operator
 * does not count. */
static bool has_kernel(const tn_op *op, tn_key key)
{
    tn_slot_info info = {.size = sizeof info};
    return tn_op_slot(op, tn_keyset_slot(tn_keyset_of(key)), &info) == TN_OK && info.valid &&
           !info.fallthrough && strcmp(info.provenance, "backend fallback") != 0;
}

enum { ABSENT, OTHER_SCHEMA, NO_CPU, NO_META, NO_CASE, NO_VALUES, PROBLEMS };
static const char *const problem_texts[PROBLEMS] = {
    [ABSENT] = "not there",           [OTHER_SCHEMA] = "another schema",
    [NO_CPU] = "nothing for the CPU", [NO_META] = "nothing for Meta",
    [NO_CASE] = "no golden case",     [NO_VALUES] = "no golden case with values",
};

/* Names by problem: all of them, so that one run says what is left to do. */
typedef struct problem_list {
    FILE *to[PROBLEMS];
    char *names[PROBLEMS];
    size_t lengths[PROBLEMS];
} problem_list;

static void check_line(const shown_list *list, const char *word, const char *schema,
                       problem_list *problems)
{
    char name[96], full[128], *ours = NULL;
    tn_op *op;
    if (sscanf(schema, "aten::%95[^(]", name) != 1) {
        test_wrong(schema, 0, "not a schema of aten");
        return;
    }
    snprintf(full, sizeof full, "aten::%s", name);
    if (tn_op_find(full, &op) != TN_OK || tn_op_schema(op, &ours) != TN_OK) {
        fprintf(problems->to[ABSENT], " %s", name);
        return;
    }
    const shown *found = find_shown(list, name);
    bool values = found && (found->values || strcmp(word, "geometry") == 0);
    const bool wrong[PROBLEMS] = {
        [OTHER_SCHEMA] = strcmp(ours, schema) != 0,
        [NO_CPU] = !has_kernel(op, TN_KEY_CPU),
        [NO_META] = strcmp(word, "dynamic") != 0 && !has_kernel(op, TN_KEY_META),
        [NO_CASE] = !found,
        [NO_VALUES] = found && !values,
    };
    tn_string_free(ours);
    for (int i = 0; i < PROBLEMS; i++)
        if (wrong[i])
            fprintf(problems->to[i], " %s", name);
}

TEST(every_listed_operator_is_there_with_cpu_meta_and_results_of_the_reference)
{
    char path[1024], line[4096];
    const char *root = getenv("TENON_SOURCE_DIR");
    shown_list list = {NULL, 0, 0};
    problem_list problems;
    read_cases(&list);
    snprintf(path, sizeof path, "%s/tests/ops/tier_a.txt", root ? root : ".");
    FILE *file = fopen(path, "r");
    ASSERT(file != NULL);
    for (int i = 0; i < PROBLEMS; i++)
        ASSERT((problems.to[i] = open_memstream(&problems.names[i], &problems.lengths[i])));
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *schema = strchr(line, ' ');
        if (line[0] == '#' || !schema)
            continue;
        *schema = 0;
        check_line(&list, line, schema + 1, &problems);
        lines++;
    }
    fclose(file);
    free(list.at);
    EXPECT(lines > 800); /* the list itself is there */
    for (int i = 0; i < PROBLEMS; i++) {
        fclose(problems.to[i]);
        if (problems.lengths[i] > 0)
            test_wrong(path, 0, "%s:%s", problem_texts[i], problems.names[i]);
        free(problems.names[i]);
    }
}
