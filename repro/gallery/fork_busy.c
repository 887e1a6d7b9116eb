/* SPDX-License-Identifier: MIT */
/* fork() while other threads are at work. The child has one thread, and must be able to go on: it
 * calls operators, with a record of its own. */
#include <stdatomic.h>
#include <sys/wait.h>

#include "gallery.h"

static atomic_int calls[3]; /* of each thread */

static void *work(void *arg)
{
    atomic_int *done = arg;
    tn_tensor *x = ones(1 << 16, TN_CPU), *y = ones(1 << 16, TN_CPU);
    for (;;) {
#if defined(__SANITIZE_ADDRESS__)
        /* Its malloc(), unlike the C library's, does not get over a fork: work without. */
        must(tn_add_out(x, x, tn_int(1), y));
#else
        tn_tensor_unref(y);
        must(tn_add(x, x, tn_int(1), &y));
#endif
        atomic_fetch_add(done, 1);
    }
    return NULL;
}

int main(void)
{
    limit_life();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, &calls[i]);
    /* At work: the thread sanitizer's pthread_once() does not get over a fork in the middle of it,
     * as the C library's does. */
    for (int i = 0; i < 3; i++)
        while (atomic_load(&calls[i]) == 0)
            usleep(1000);
    pid_t child = fork();
    if (child == 0) {
        limit_life();
        ready();
        work(&calls[0]);
    }
    int status;
    waitpid(child, &status, 0);
    return 0;
}
