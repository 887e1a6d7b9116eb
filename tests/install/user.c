/* SPDX-License-Identifier: MIT */
/* tests/install/user.c: the smallest program of a user's. */
#include <stdio.h>
#include <string.h>
#include <tenon/base.h>

int main(void)
{
    if (strcmp(tn_version(), TN_VERSION_STRING) != 0) {
        fprintf(stderr, "library %s, header %s\n", tn_version(), TN_VERSION_STRING);
        return 1;
    }
    return 0;
}
