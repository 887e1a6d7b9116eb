// SPDX-License-Identifier: MIT
// The same training steps as train_tenon.c with libtorch's modules and optimisers.
#define BENCH_SAMPLES   3
#define BENCH_SAMPLE_NS 1e8
#define BENCH_FIRST     1
#include "timer.h"

#include <cstdlib>
#include <cstring>
#include <sys/resource.h>
#include <torch/torch.h>

namespace nn = torch::nn;

static void bench_mlp(const char *only)
{
    nn::Sequential model(nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(), nn::Linear(512, 10));
    torch::optim::SGD optimizer(model->parameters(), 0.01);
    auto x = torch::randn({64, 784}), y = torch::randint(10, {64}, torch::kLong);
    BENCH("mlp_train_step_B64", for (auto &p : model->parameters()) p.mutable_grad().reset();
          nn::functional::cross_entropy(model->forward(x), y).backward(); optimizer.step(););
}

constexpr int64_t LAYERS = 6, WIDTH = 384, HEADS = 6, VOCABULARY = 65, BATCH = 4, LENGTH = 256;

struct BlockImpl : nn::Module {
    nn::LayerNorm before_attention{nn::LayerNormOptions({WIDTH})}, before_mlp{nn::LayerNormOptions({WIDTH})};
    nn::Linear qkv{WIDTH, 3 * WIDTH}, projection{WIDTH, WIDTH}, up{WIDTH, 4 * WIDTH}, down{4 * WIDTH, WIDTH};

    BlockImpl()
    {
        register_module("before_attention", before_attention);
        register_module("before_mlp", before_mlp);
        register_module("qkv", qkv);
        register_module("projection", projection);
        register_module("up", up);
        register_module("down", down);
    }

    torch::Tensor forward(torch::Tensor x)
    {
        auto parts = qkv(before_attention(x)).split(WIDTH, 2);
        auto heads = [](torch::Tensor t) { return t.view({BATCH, LENGTH, HEADS, WIDTH / HEADS}).transpose(1, 2); };
        auto y = std::get<0>(at::_scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]), {}, 0.0,
                                                               false, true));
        x = x + projection(y.transpose(1, 2).reshape({BATCH, LENGTH, WIDTH}));
        return x + down(torch::gelu(up(before_mlp(x))));
    }
};
TORCH_MODULE(Block);

struct GptImpl : nn::Module {
    nn::Embedding tokens{VOCABULARY, WIDTH}, positions{LENGTH, WIDTH};
    nn::ModuleList blocks;
    nn::LayerNorm last{nn::LayerNormOptions({WIDTH})};
    nn::Linear head{WIDTH, VOCABULARY};

    GptImpl()
    {
        for (int i = 0; i < LAYERS; i++)
            blocks->push_back(Block());
        register_module("tokens", tokens);
        register_module("positions", positions);
        register_module("blocks", blocks);
        register_module("last", last);
        register_module("head", head);
    }

    torch::Tensor forward(torch::Tensor ids, torch::Tensor places)
    {
        auto x = tokens(ids) + positions(places);
        for (auto &block : *blocks)
            x = block->as<Block>()->forward(x);
        return head(last(x)).view({BATCH * LENGTH, VOCABULARY});
    }
};
TORCH_MODULE(Gpt);

// The most memory that the process has held so far.
static double peak_bytes()
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

static void bench_gpt(const char *only)
{
    double before = peak_bytes();
    Gpt model;
    torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3).weight_decay(0.01));
    auto ids = torch::randint(VOCABULARY, {BATCH, LENGTH}, torch::kLong);
    auto targets = torch::randint(VOCABULARY, {BATCH * LENGTH}, torch::kLong);
    auto places = torch::arange(LENGTH);
    BENCH("char_gpt_train_step", for (auto &p : model->parameters()) p.mutable_grad().reset();
          nn::functional::cross_entropy(model->forward(ids, places), targets).backward(); optimizer.step(););
    printf("char_gpt_peak_bytes %.0f\n", peak_bytes() - before);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : nullptr;
    if (const char *n = getenv("OMP_NUM_THREADS"))
        at::set_num_threads(atoi(n));
    if (!only || strncmp(only, "char_gpt", 8) == 0)
        bench_gpt(only);
    if (!only || strncmp(only, "mlp", 3) == 0)
        bench_mlp(only);
    return 0;
}
