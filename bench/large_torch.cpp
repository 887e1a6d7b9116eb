// SPDX-License-Identifier: MIT
// The same calls as large_tenon.c through libtorch's C++ API, on OMP_NUM_THREADS threads.
#define BENCH_SAMPLES   5
#define BENCH_SAMPLE_NS 2e7
#define BENCH_FIRST     1
#include "timer.h"

#include <cstdlib>
#include <torch/torch.h>

#define TIME(name, call) BENCH(name, at::Tensor r = call;)

static void memory(const char *only)
{
    auto a = at::randn({4194304}), b = at::randn({4194304});
    auto rows = at::randn({4096, 1024}), square = at::randn({2048, 2048});
    auto weight = at::randn({1024}), bias = at::randn({1024});
    TIME("add_4M", at::add(a, b));
    TIME("sum_4M", at::sum(a));
    TIME("exp_4M", at::exp(a));
    TIME("gelu_4M", at::gelu(a));
    TIME("softmax_4096x1024", at::softmax(rows, -1));
    TIME("layer_norm_4096x1024", at::layer_norm(rows, {1024}, weight, bias));
    auto logits = at::randn({4096, 1000}), targets = at::randint(1000, {4096}, at::kLong);
    TIME("cross_entropy", at::cross_entropy_loss(logits, targets));
    auto table = at::randn({50257, 768}), tokens = at::randint(50257, {4, 1024}, at::kLong);
    TIME("embedding", at::embedding(table, tokens));
    auto picks = at::randint(4096, {4096}, at::kLong);
    TIME("index_select", at::index_select(rows, 0, picks));
    TIME("cat", at::cat({rows, rows}, 1));
    auto turned = square.t();
    TIME("transpose_copy_2048", turned.clone(at::MemoryFormat::Contiguous));
}

static void products(const char *only)
{
    for (int64_t n : {16, 64, 256, 1024, 2048}) {
        auto name = "mm_" + std::to_string(n);
        auto a = at::randn({n, n}), b = at::randn({n, n});
        TIME(name.c_str(), at::mm(a, b));
        if (n <= 64) {
            name += "_out";
            auto there = at::randn({n, n});
            BENCH(name.c_str(), at::mm_out(there, a, b););
        }
    }
    auto a = at::randn({64, 128, 64}), b = at::randn({64, 64, 128});
    TIME("bmm_64x128x64", at::bmm(a, b));
    struct {
        const char *name;
        int64_t in, out, size, kernel, stride, padding;
    } convs[] = {{"conv2d_resnet_3x3_56", 64, 64, 56, 3, 1, 1},
                 {"conv2d_resnet_1x1_28", 512, 128, 28, 1, 1, 0},
                 {"conv2d_resnet_3x3_14_s2", 256, 256, 28, 3, 2, 1}};
    for (auto &c : convs) {
        auto x = at::randn({8, c.in, c.size, c.size}), w = at::randn({c.out, c.in, c.kernel, c.kernel});
        TIME(c.name, at::conv2d(x, w, {}, {c.stride, c.stride}, {c.padding, c.padding}));
    }
}

static void attention(const char *only)
{
    auto q = at::randn({1, 12, 1024, 64}), k = at::randn({1, 12, 1024, 64}), v = at::randn({1, 12, 1024, 64});
    TIME("sdpa_causal_T1024", std::get<0>(at::_scaled_dot_product_attention(q, k, v, {}, 0.0, false, true)));
}

static void small(const char *only)
{
    auto a = at::randn({8, 16}), v = at::randn({64}), weight = at::randn({16}), bias = at::randn({16});
    TIME("softmax_8x16", at::softmax(a, -1));
    TIME("layer_norm_8x16", at::layer_norm(a, {16}, weight, bias));
    TIME("sum_64", at::sum(v));
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : nullptr;
    if (const char *n = getenv("OMP_NUM_THREADS"))
        at::set_num_threads(atoi(n));
    at::NoGradGuard no_grad;
    memory(only);
    products(only);
    attention(only);
    small(only);
    return 0;
}
