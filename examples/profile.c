/* SPDX-License-Identifier: MIT */
/* profile.c: where the time of a program goes. A few steps of training with ranges of its own,
 * while a second thread computes something else; then a table, and a file to open when one is
 * named:
 *
 *   ./profile run.html      a page     ./profile run.json      for Perfetto */
#include <pthread.h>
#include <stdio.h>
#include <tenon/autograd.h>
#include <tenon/ops.h>
#include <tenon/profiler.h>

enum { STEPS = 4, BATCH = 64, WIDTH = 96 };

static tn_tensor *first, *second;

static tn_status make_weights(void)
{
    const int64_t sizes[] = {WIDTH, WIDTH};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_status status = tn_randn(sizes, 2, &opts, &first);
    if (status == TN_OK)
        status = tn_randn(sizes, 2, &opts, &second);
    if (status == TN_OK)
        status = tn_tensor_set_requires_grad(first, true);
    return status == TN_OK ? tn_tensor_set_requires_grad(second, true) : status;
}

static tn_status forward_and_backward(tn_tensor *x)
{
    tn_status status = tn_profiler_range_begin("forward");
    if (status != TN_OK)
        return status;
    tn_tensor *hidden = tnx_gelu(tnx_linear(x, first, NULL), "none");
    tn_tensor *loss = tnx_mean(tnx_mul(tnx_linear(hidden, second, NULL), hidden), TN_DTYPE_NONE);
    status = tn_profiler_range_end();
    if (status == TN_OK && loss)
        status = tn_profiler_range_begin("backward");
    if (status == TN_OK && loss)
        status = tn_tensor_backward(loss);
    return status == TN_OK ? tn_profiler_range_end() : status;
}

static tn_status step(void)
{
    const int64_t sizes[] = {BATCH, WIDTH};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_scope *scope;
    tn_status status = tn_scope_enter(&scope);
    if (status != TN_OK)
        return status;
    status = tn_profiler_range_begin("step");
    if (status == TN_OK)
        status = forward_and_backward(tnx_randn(sizes, 2, &opts));
    bool was = tn_set_grad_enabled(false);
    if (status == TN_OK) {
        tnx_add_(first, tn_tensor_grad(first), tn_float(-0.01));
        tnx_add_(second, tn_tensor_grad(second), tn_float(-0.01));
        status = tn_profiler_range_end();
    }
    tn_set_grad_enabled(was);
    tn_status left = tn_scope_leave(scope);
    return status != TN_OK ? status : left;
}

/* The other thread: it is in the profile without asking. */
static void *sort_numbers(void *arg)
{
    const int64_t sizes[] = {20000};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_scope *scope;
    (void)arg;
    if (tn_scope_enter(&scope) != TN_OK)
        return NULL;
    tn_tensor *numbers = tnx_randn(sizes, 1, &opts);
    for (int i = 0; i < STEPS; i++)
        tnx_sum(tnx_exp(tnx_neg(tnx_mul(numbers, numbers))), TN_DTYPE_NONE);
    (void)!tn_scope_leave(scope);
    return NULL;
}

static tn_status show(const char *path)
{
    tn_profile *profile;
    char *table;
    tn_status status = tn_profiler_stop(&profile);
    if (status != TN_OK)
        return status;
    status = tn_profile_table(profile, 12, &table);
    if (status == TN_OK) {
        fputs(table, stdout);
        tn_string_free(table);
    }
    if (status == TN_OK && path)
        status = tn_profile_write(profile, path);
    tn_profile_free(profile);
    return status;
}

int main(int argc, char **argv)
{
    tn_profiler_options options = TN_PROFILER_OPTIONS_INIT;
    options.shapes = options.memory = options.stack = true;
    pthread_t other;
    tn_status status = make_weights();
    if (status == TN_OK)
        status = tn_profiler_start(&options);
    bool two = status == TN_OK && pthread_create(&other, NULL, sort_numbers, NULL) == 0;
    for (int i = 0; status == TN_OK && i < STEPS; i++)
        status = step();
    if (two)
        pthread_join(other, NULL);
    if (status == TN_OK)
        status = show(argc > 1 ? argv[1] : NULL);
    if (status != TN_OK)
        fprintf(stderr, "profile: %s\n", tn_last_error());
    tn_tensor_unref(first);
    tn_tensor_unref(second);
    return status == TN_OK ? 0 : 1;
}
