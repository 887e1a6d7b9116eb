/* SPDX-License-Identifier: MIT */
/* A library that passes for OpenBLAS, and whose product never comes back on a pool worker. */
#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))
SHOWN void cblas_cgemm(void);
SHOWN void cblas_zgemm(void);
SHOWN void openblas_set_num_threads(int n);
SHOWN const char *openblas_get_corename(void);

static _Atomic int came;

void cblas_cgemm(void)
{
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    if (strncmp(name, "tenon-", 6) != 0) {
        while (!atomic_load(&came)) /* the worker must take its part */
            usleep(1000);
        return;
    }
    atomic_store(&came, 1);
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
