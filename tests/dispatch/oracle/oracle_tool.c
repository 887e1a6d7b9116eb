/* SPDX-License-Identifier: MIT */
/* Runs registrations that test_oracle.py writes to its standard input, and prints the resulting
 * tables.
 *
 *   impl KEY NAME      register a kernel called NAME for KEY of t::op; handles are numbered from 0
 *   fallback KEY NAME  register a whole-key fallback
 *   undo N             undo handle N
 *   table              print the 138 slots: "KEY NAME PROVENANCE" a line, then "."
 *   check              every stored table must equal what the registrations say
 *   reset              undo everything, handles start at 0 again */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/dispatch.h"

#define MOST 512

static tn_library *defs, *impls, *fallbacks;
static tn_registration *handles[MOST];
static int n_handles;

static void must(tn_status st, const char *what)
{
    if (st == TN_OK)
        return;
    printf("error %s: %s\n", what, tn_last_error());
    exit(1);
}

static tn_status kernel(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    return tn_value_copy(&args[0], &rets[0]);
}

static void open_all(void)
{
    must(tn_library_open(TN_LIBRARY_DEF, "t", TN_KEY_NONE, "oracle", 1, &defs), "open");
    must(tn_library_open(TN_LIBRARY_IMPL, "t", TN_KEY_NONE, "oracle", 2, &impls), "open");
    must(tn_library_open(TN_LIBRARY_IMPL, "_", TN_KEY_NONE, "oracle", 3, &fallbacks), "open");
    must(tn_library_def(defs, "op(Tensor x) -> Tensor", NULL, NULL), "def");
}

static void close_all(void)
{
    for (int i = 0; i < n_handles; i++)
        tn_registration_undo(handles[i]);
    n_handles = 0;
    tn_library_close(fallbacks);
    tn_library_close(impls);
    tn_library_close(defs);
}

static void print_table(void)
{
    tn_op *op;
    must(tn_op_find("t::op", &op), "find");
    for (unsigned slot = 0; slot < 138; slot++) {
        tn_slot_info info;
        must(tn_op_slot(op, slot, &info), "slot");
        printf("%s %s %s\n", tn_key_name(info.key), info.valid && info.name[0] ? info.name : "-",
               info.provenance);
    }
    printf(".\n");
    fflush(stdout);
}

int main(void)
{
    char line[256], word[32], key_name[128], name[64];
    open_all();
    while (fgets(line, sizeof line, stdin)) {
        int n = sscanf(line, "%31s %127s %63s", word, key_name, name);
        if (n >= 3 && (strcmp(word, "impl") == 0 || strcmp(word, "fallback") == 0)) {
            tn_key key;
            must(tn_key_parse(key_name, &key), "key");
            tn_kernel k = TN_KERNEL_INIT(kernel);
            k.name = name;
            if (strcmp(name, "fallthrough") == 0)
                k = tn_kernel_fallthrough("oracle", 4);
            if (n_handles == MOST)
                return 2;
            tn_registration **handle = &handles[n_handles++];
            must(word[0] == 'i' ? tn_library_impl(impls, "op", key, &k, handle)
                                : tn_library_fallback(fallbacks, key, &k, handle),
                 word);
        } else if (n >= 2 && strcmp(word, "undo") == 0) {
            int i = atoi(key_name);
            tn_registration_undo(handles[i]);
            handles[i] = NULL;
        } else if (strcmp(word, "table") == 0) {
            print_table();
        } else if (strcmp(word, "check") == 0) {
            must(tn_check_invariants(), "invariants");
        } else if (strcmp(word, "reset") == 0) {
            close_all();
            open_all();
        } else {
            printf("error unknown command %s", line);
            return 1;
        }
    }
    close_all();
    return 0;
}
