/* SPDX-License-Identifier: MIT */
/* tests/ops/test_derivatives.c: every operator of tests/ops/derivatives.txt, a list that the
 * reference was asked for, has a derivative: golden data holds gradients of it, which test_golden
 * compares. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/test.h"
#include "ops/golden.h"

/* ---- operators with gradients in golden data ---- */

enum { MOST = 4096 };

static char shown[MOST][96];
static int n_shown;

static bool is_shown(const char *op)
{
    for (int i = 0; i < n_shown; i++)
        if (strcmp(shown[i], op) == 0)
            return true;
    return false;
}

static void read_file(const char *path)
{
    golden_file file;
    if (golden_open(path, &file))
        for (int i = 0; i < file.n_cases; i++) {
            const golden_case *c = &file.cases[i];
            bool tensors = c->grad && !c->exception && strchr(c->results, '[');
            if (tensors && !is_shown(c->op) && n_shown < MOST)
                snprintf(shown[n_shown++], sizeof shown[0], "%s", c->op);
        }
    golden_close(&file);
}

static void read_cases(const char *root)
{
    char folder[1024], path[2048];
    snprintf(folder, sizeof folder, "%s/tests/golden/data", root);
    DIR *dir = opendir(folder);
    if (!dir) {
        test_wrong(folder, 0, "cannot open it; set TENON_SOURCE_DIR");
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (strncmp(entry->d_name, "grad_", 5) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        read_file(path);
    }
    closedir(dir);
}

/* ---- the list ---- */

TEST(what_the_reference_differentiates_is_differentiated)
{
    char path[1024], line[256];
    const char *root = getenv("TENON_SOURCE_DIR");
    root = root ? root : ".";
    read_cases(root);
    snprintf(path, sizeof path, "%s/tests/ops/derivatives.txt", root);
    FILE *f = fopen(path, "r");
    ASSERT(f != NULL);
    int number = 0, wanted = 0;
    while (fgets(line, sizeof line, f)) {
        number++;
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "grad ", 5) != 0)
            continue;
        wanted++;
        if (!is_shown(line + 5))
            test_wrong(path, number, "%s: no gradients in golden data", line + 5);
    }
    fclose(f);
    printf("%d operators of the list, %d operators with gradients in golden data\n", wanted,
           n_shown);
    EXPECT(wanted > 300);
}
