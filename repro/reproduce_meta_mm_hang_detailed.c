/* SPDX-License-Identifier: MIT */
/* repro/reproduce_meta_mm_hang_detailed.c: the same hang with diagnostics of its own: what the
 * tensors are, every step by name, and after five seconds without an end a report instead of
 * silence. The steps cover what the report holds responsible: gradients, folding, threads, views.
 */
#include <pthread.h>

#include "repro.h"

enum { TIMEOUT_S = 60 };

/* ---- the timeout ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static bool done;

/* A thread of its own: a signal handler could do little, and a stuck main thread nothing. */
static void *watch(void *arg)
{
    (void)arg;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += TIMEOUT_S;
    pthread_mutex_lock(&lock);
    int rc = 0;
    while (!done && rc == 0)
        rc = pthread_cond_timedwait(&finished, &lock, &until);
    pthread_mutex_unlock(&lock);
    if (done)
        return NULL;
    printf("\nTIMEOUT after %d s in step: %s\n"
           "  process %d still runs; `tenon doctor %d` says what each thread does\n"
           "  TENON_DISPATCH_DEBUG=mm prints every stage, and `tenon diagnose` reads them\n",
           TIMEOUT_S, repro_step, (int)getpid(), (int)getpid());
    fflush(stdout);
    _exit(2);
}

static void step(const char *name)
{
    repro_step = name;
    printf("step: %s\n", name);
    fflush(stdout); /* seen before it hangs */
}

/* ---- the steps ---- */

typedef struct operands {
    tn_tensor *a, *b;
} operands;

static tn_status product(void *ctx, tn_tensor **out)
{
    const operands *x = ctx;
    return tn_matmul(x->a, x->b, out);
}

static void describe(const char *name, const tn_tensor *t)
{
    char shape[64], keys[256];
    printf("  %s: shape %s, keys %s, requires_grad %d\n", name, shape_text(t, shape, sizeof shape),
           tn_keyset_format(tn_tensor_keys(t), keys, sizeof keys), tn_tensor_requires_grad(t));
}

static void multiply(const operands *x, const char *what)
{
    char text[64];
    tn_tensor *out = NULL;
    step(what);
    must(product((void *)(uintptr_t)x, &out), what);
    expect(is_2_4_16(out), "the result must be [2, 4, 16]");
    printf("  result %s\n", shape_text(out, text, sizeof text));
    tn_tensor_unref(out);
}

static void backward(const operands *x)
{
    const int64_t three[] = {2, 4, 16};
    tn_tensor *out = NULL, *seed = randn(3, three, TN_META);
    step("backward through the folded product");
    must(tn_tensor_set_requires_grad(x->b, true), "requires_grad");
    must(product((void *)(uintptr_t)x, &out), "matmul with a gradient");
    must(tn_backward(&out, 1, &seed, NULL), "backward");
    const tn_tensor *grad = tn_tensor_grad(x->b);
    expect(grad && tn_tensor_ndim(grad) == 2, "the weight must have a gradient");
    tn_tensor_unref(seed);
    tn_tensor_unref(out);
    must(tn_tensor_set_requires_grad(x->b, false), "requires_grad");
}

static void *on_a_thread(void *arg)
{
    (void)time_product(product, arg, "matmul on a thread");
    return NULL;
}

static void on_threads(operands *x)
{
    pthread_t threads[8];
    step("the same call on 8 threads at once");
    for (int i = 0; i < 8; i++)
        expect(pthread_create(&threads[i], NULL, on_a_thread, x) == 0, "a thread");
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const int64_t three[] = {2, 4, 16}, two[] = {16, 16};
    pthread_t watcher;
    expect(pthread_create(&watcher, NULL, watch, NULL) == 0, "a thread");
    printf("tenon %s, process %d, timeout %d s\n", tn_version(), (int)getpid(), TIMEOUT_S);

    operands x = {randn(3, three, TN_META), randn(2, two, TN_META)};
    describe("a", x.a);
    describe("b", x.b);
    multiply(&x, "3D x 2D, gradients on");
    bool was = tn_set_grad_enabled(false);
    multiply(&x, "3D x 2D, gradients off (the keys are the same)");
    tn_set_grad_enabled(was);
    backward(&x);
    on_threads(&x);
    step("time of one call");
    timing t = time_product(product, &x, "3D x 2D");
    tn_tensor_unref(x.a);
    tn_tensor_unref(x.b);

    pthread_mutex_lock(&lock);
    done = true;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&lock);
    pthread_join(watcher, NULL);
    return verdict(t);
}
