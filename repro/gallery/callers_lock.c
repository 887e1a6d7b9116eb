/* SPDX-License-Identifier: MIT */
/* A kernel waits on a lock that its caller holds. With the argument "two" two threads take two
 * locks in different order. */
#include "gallery.h"

static pthread_mutex_t model = PTHREAD_MUTEX_INITIALIZER, optimizer = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static tn_op *op;

static void take(pthread_mutex_t *lock, const char *name)
{
    if (pthread_mutex_trylock(lock) != 0) {
        tn_wait_begin(TN_WAIT_LOCK, lock, name);
        pthread_mutex_lock(lock);
        tn_wait_end();
    }
    tn_hold_begin(TN_WAIT_LOCK, lock, name);
}

static __thread bool takes_model;

static tn_status takes_lock(tn_call *frame, const tn_value *args, tn_value *rets)
{
    (void)frame;
    (void)args;
    (void)rets;
    ready();
    take(takes_model ? &model : &optimizer, takes_model ? "model" : "optimizer");
    return TN_OK;
}

static void *other_thread(void *arg)
{
    (void)arg;
    take(&optimizer, "optimizer");
    pthread_barrier_wait(&both);
    takes_model = true;
    (void)refused(call(op, ones(4, TN_CPU)));
    return NULL;
}

int main(int argc, char **argv)
{
    limit_life();
    op = plant("takes_lock", TN_KEY_CPU, takes_lock, "takes_lock", __LINE__);
    take(&model, "model");
    takes_model = true;
    if (argc > 1 && strcmp(argv[1], "two") == 0) {
        pthread_t thread;
        pthread_barrier_init(&both, NULL, 2);
        pthread_create(&thread, NULL, other_thread, NULL);
        pthread_barrier_wait(&both);
        takes_model = false;
    }
    return refused(call(op, ones(4, TN_CPU)));
}
