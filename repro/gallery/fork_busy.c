/* SPDX-License-Identifier: MIT */
/* fork() while other threads are at work. The child has one thread, and must be able to go on: it
 * calls operators, with a record of its own. */
#include <sys/wait.h>

#include "gallery.h"

static void *work(void *arg)
{
    (void)arg;
    tn_tensor *x = ones(1 << 16, TN_CPU), *y;
    for (;;) {
        must(tn_add(x, x, tn_int(1), &y));
        tn_tensor_unref(y);
    }
    return NULL;
}

int main(void)
{
    limit_life();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    usleep(50000);
    pid_t child = fork();
    if (child == 0) {
        limit_life();
        ready();
        work(NULL);
    }
    int status;
    waitpid(child, &status, 0);
    return 0;
}
