/* SPDX-License-Identifier: MIT */
/* A library that passes for OpenBLAS, and whose product never comes back on a pool worker. */
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
SHOWN void cblas_cgemm(void);
SHOWN void cblas_zgemm(void);
SHOWN void openblas_set_num_threads(int n);
SHOWN const char *openblas_get_corename(void);

void cblas_cgemm(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "tenon-", 6) != 0) {
        static int calls;
        usleep(calls++ ? 0 : 200000); /* time for the worker to take its part */
        return;
    }
    usleep(300000); /* the caller has done its own part */
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    for (;;)
        pause();
}

void cblas_zgemm(void) {}

void openblas_set_num_threads(int n)
{
    (void)n;
}

const char *openblas_get_corename(void)
{
    return "Haswell";
}
