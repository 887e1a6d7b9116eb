/* SPDX-License-Identifier: MIT */
/* Times Tenon's small calls, from C, on one thread. The peer's program times the same calls. */
#include <stdlib.h>

#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/fake.h"
#include "tenon/ops.h"
#include "tenon/recorder.h"
#include "timer.h"

static void must(tn_status st)
{
    if (st == TN_OK)
        return;
    fprintf(stderr, "bench: %s\n", tn_last_error());
    exit(1);
}

static tn_tensor *randn(int ndim, const int64_t *sizes, tn_device device)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_tensor *t;
    must(tn_randn(sizes, ndim, &opts, &t));
    return t;
}

static tn_status boxed_noop(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    (void)args;
    (void)rets;
    return TN_OK;
}

static tn_op *custom_noop(void)
{
    static tn_library *lib;
    tn_kernel kernel = TN_KERNEL_INIT(boxed_noop);
    tn_op *op;
    must(tn_library_open(TN_LIBRARY_DEF, "bench", TN_KEY_NONE, __FILE__, __LINE__, &lib));
    must(tn_library_def(lib, "noop(Tensor a, Tensor b) -> ()", &kernel, NULL));
    must(tn_op_find("bench::noop", &op));
    return op;
}

/* The calls of the meta rows on tensors that pretend a device which need not be here. */
static void fake_calls(const char *only)
{
    const int64_t s4[] = {4}, s16[] = {16, 16}, s3[] = {2, 4, 16};
    const tn_device device = TN_DEVICE_INIT(TN_DEVICE_CUDA, 0);
    tn_fake_mode *mode;
    must(tn_fake_mode_new(NULL, &mode));
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_tensor *a = randn(1, s4, device), *b = randn(1, s4, device), *r;
    tn_tensor *m3 = randn(3, s3, device), *m2 = randn(2, s16, device);
    BENCH("fake_add", must(tn_add(a, b, tn_int(1), &r)); tn_tensor_unref(r););
    BENCH("fake_matmul_3d2d", must(tn_matmul(m3, m2, &r)); tn_tensor_unref(r););
    tn_tensor *all[] = {a, b, m3, m2};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_unref(all[i]);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
}

/* The same calls with the flight recorder off, and on. */
static void recorded_calls(const char *only, tn_tensor *a, tn_tensor *b, tn_op *noop)
{
    tn_value args[2] = {tn_value_tensor(a), tn_value_tensor(b)};
    tn_tensor *r;
    must(tn_recorder_set(false));
    BENCH("typed_recorder_off", must(tn__noop(a, b)););
    BENCH("boxed_recorder_off", must(tn_op_call(noop, args, 2, NULL)););
    BENCH("add4_recorder_off", must(tn_add(a, b, tn_int(1), &r)); tn_tensor_unref(r););
    must(tn_recorder_set(true));
    BENCH("typed_recorder_on", must(tn__noop(a, b)););
    BENCH("boxed_recorder_on", must(tn_op_call(noop, args, 2, NULL)););
    BENCH("add4_recorder_on", must(tn_add(a, b, tn_int(1), &r)); tn_tensor_unref(r););
}

enum { CHAIN = 1000 };

/* x + b + b + …: CHAIN nodes. */
static tn_tensor *chain(tn_tensor *x, tn_tensor *b)
{
    tn_tensor *y = tn_tensor_ref(x);
    for (int i = 0; i < CHAIN; i++) {
        tn_tensor *next;
        must(tn_add(y, b, tn_int(1), &next));
        tn_tensor_unref(y);
        y = next;
    }
    return y;
}

/* Calls that record gradients, and running them backwards. */
static void gradients(const char *only)
{
    const int64_t s4[] = {4}, s16[] = {16, 16}, s3[] = {2, 4, 16};
    bool was = tn_set_grad_enabled(true);
    tn_tensor *x = randn(1, s4, TN_CPU), *y = randn(1, s4, TN_CPU), *b = randn(1, s4, TN_CPU);
    tn_tensor *m3 = randn(3, s3, TN_META), *w = randn(2, s16, TN_META), *v = randn(1, s16, TN_META);
    tn_tensor *all[] = {x, y, m3, w, v, b}, *seed = randn(1, s4, TN_CPU), *r;
    for (size_t i = 0; i < 5; i++)
        must(tn_tensor_set_requires_grad(all[i], true));
    BENCH("add4_grad", must(tn_add(x, y, tn_int(1), &r)); tn_tensor_unref(r););
    BENCH("meta_matmul_3d2d_grad", must(tn_matmul(m3, w, &r)); tn_tensor_unref(r););
    BENCH("meta_linear_grad", must(tn_linear(m3, w, v, &r)); tn_tensor_unref(r););
    BENCH_EACH("forward_grad_per_node", CHAIN, tn_tensor_unref(chain(x, b)););
    tn_tensor *last = chain(x, b);
    tn_backward_opts opts = TN_BACKWARD_OPTS_INIT;
    opts.retain_graph = TN_BOOL_TRUE;
    BENCH_EACH("backward_per_node", CHAIN, must(tn_backward(&last, 1, &seed, &opts)););
    tn_tensor_unref(last);
    tn_tensor_unref(seed);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_unref(all[i]);
    tn_set_grad_enabled(was);
}

static void sizes_of_library(void)
{
    tn_op **ops;
    size_t n, bytes = 0;
    must(tn_op_list(&ops, &n));
    for (size_t i = 0; i < n; i++)
        bytes += tn_op_table_bytes(ops[i]);
    printf("table_bytes_per_op %.1f\n", (double)bytes / (double)n);
    tn_op_list_free(ops);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    must(tn_set_num_threads(1));
    tn_set_grad_enabled(false);
    const int64_t s4[] = {4}, s22[] = {2, 2}, s16[] = {16, 16}, s3[] = {2, 4, 16};
    tn_tensor *a = randn(1, s4, TN_CPU), *b = randn(1, s4, TN_CPU), *c = randn(1, s4, TN_CPU);
    tn_tensor *m = randn(2, s16, TN_CPU), *w = randn(2, s16, TN_CPU);
    tn_tensor *ma = randn(1, s4, TN_META), *mb = randn(1, s4, TN_META);
    tn_tensor *m3 = randn(3, s3, TN_META), *m2 = randn(2, s16, TN_META);
    tn_tensor_opts f32 = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_scalar one = tn_int(1);
    tn_op *noop = custom_noop();
    tn_value args[2] = {tn_value_tensor(a), tn_value_tensor(b)};
    tn_tensor *r;

    BENCH("add4_nograd", must(tn_add(a, b, one, &r)); tn_tensor_unref(r););
    BENCH("add4_out", must(tn_add_out(a, b, one, c)););
    BENCH("empty4", must(tn_empty(s4, 1, &f32, TN_FORMAT_NONE, &r)); tn_tensor_unref(r););
    BENCH("view", must(tn_view(a, s22, 2, &r)); tn_tensor_unref(r););
    BENCH("mm16_nograd", must(tn_mm(m, w, &r)); tn_tensor_unref(r););
    BENCH("meta_add", must(tn_add(ma, mb, one, &r)); tn_tensor_unref(r););
    BENCH("meta_matmul_3d2d", must(tn_matmul(m3, m2, &r)); tn_tensor_unref(r););
    BENCH("dispatch_only_typed", must(tn__noop(a, b)););
    BENCH("dispatch_only_boxed", must(tn_op_call(noop, args, 2, NULL)););
    if (tn_recorder_on())
        recorded_calls(only, a, b, noop);
    fake_calls(only);
    gradients(only);
    if (!only)
        sizes_of_library();

    tn_tensor *all[] = {a, b, c, m, w, ma, mb, m3, m2};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tn_tensor_unref(all[i]);
    return 0;
}
