// SPDX-License-Identifier: MIT
// The same calls as bench_tenon.c through libtorch's C++ API, on one thread, built when libtorch is there.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>
#include <torch/torch.h>
#include <torch/version.h>

#include "timer.h"

static void noop(const at::Tensor &, const at::Tensor &) {}

TORCH_LIBRARY(bench, m)
{
    m.def("noop(Tensor a, Tensor b) -> ()", &noop);
}

static const int CHAIN = 1000;

static at::Tensor chain(const at::Tensor &x, const at::Tensor &b)
{
    at::Tensor y = x;
    for (int i = 0; i < CHAIN; i++)
        y = at::add(y, b);
    return y;
}

static void gradients(const char *only)
{
    at::AutoGradMode grad(true);
    auto f32 = at::TensorOptions().dtype(at::kFloat);
    auto meta = f32.device(at::kMeta);
    at::Tensor x = at::randn({4}, f32), y = at::randn({4}, f32), b = at::randn({4}, f32);
    at::Tensor m3 = at::empty({2, 4, 16}, meta), w = at::empty({16, 16}, meta), v = at::empty({16}, meta);
    at::Tensor seed = at::randn({4}, f32);
    for (at::Tensor *t : {&x, &y, &m3, &w, &v})
        t->requires_grad_(true);
    BENCH("add4_grad", at::Tensor r = at::add(x, y););
    BENCH("meta_matmul_3d2d_grad", at::Tensor r = at::matmul(m3, w););
    BENCH("meta_linear_grad", at::Tensor r = at::linear(m3, w, v););
    BENCH_EACH("forward_grad_per_node", CHAIN, chain(x, b););
    at::Tensor last = chain(x, b);
    BENCH_EACH("backward_per_node", CHAIN, last.backward(seed, /*retain_graph=*/true););
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : nullptr;
    if (only && strcmp(only, "--version") == 0) {
        printf("libtorch %s\n", TORCH_VERSION);
        return 0;
    }
    at::set_num_threads(1);
    at::NoGradGuard no_grad;
    auto f32 = at::TensorOptions().dtype(at::kFloat);
    auto meta = f32.device(at::kMeta);
    at::Tensor a = at::randn({4}, f32), b = at::randn({4}, f32), c = at::empty({4}, f32);
    at::Tensor m = at::randn({16, 16}, f32), w = at::randn({16, 16}, f32);
    at::Tensor ma = at::empty({4}, meta), mb = at::empty({4}, meta);
    at::Tensor m3 = at::empty({2, 4, 16}, meta), m2 = at::empty({16, 16}, meta);
    auto op = c10::Dispatcher::singleton().findSchemaOrThrow("bench::noop", "");
    auto typed = op.typed<void(const at::Tensor &, const at::Tensor &)>();

    BENCH("add4_nograd", at::Tensor r = at::add(a, b););
    BENCH("add4_out", at::add_out(c, a, b););
    BENCH("empty4", at::Tensor r = at::empty({4}, f32););
    BENCH("view", at::Tensor r = a.view({2, 2}););
    BENCH("mm16_nograd", at::Tensor r = at::mm(m, w););
    BENCH("meta_add", at::Tensor r = at::add(ma, mb););
    BENCH("meta_matmul_3d2d", at::Tensor r = at::matmul(m3, m2););
    BENCH("dispatch_only_typed", typed.call(a, b););
    BENCH("dispatch_only_boxed", torch::jit::Stack stack; stack.reserve(2); stack.emplace_back(a);
          stack.emplace_back(b); op.callBoxed(stack););
    gradients(only);
    return 0;
}
