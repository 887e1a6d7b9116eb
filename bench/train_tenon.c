/* SPDX-License-Identifier: MIT */
/* Times whole training steps: forward, loss, backward, update. */
#define BENCH_SAMPLES   3
#define BENCH_SAMPLE_NS 1e8
#define BENCH_FIRST     1
#include "timer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include "tenon/autograd.h"
#include "tenon/ops.h"

enum { MAX_PARAMETERS = 128 };

static tn_tensor *parameters[MAX_PARAMETERS];
static int n_parameters;

static void must(tn_status st)
{
    if (st == TN_OK)
        return;
    fprintf(stderr, "bench: %s\n", tn_last_error());
    exit(1);
}

#define SIZES(...) \
    (const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)

/* A parameter of the model: normal with this deviation; 0: all one value. */
static tn_tensor *parameter(const int64_t *sizes, int64_t ndim, double deviation, double value)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *t;
    must(tn_full(sizes, ndim, tn_float(value), &opts, &t));
    if (deviation > 0)
        must(tn_normal_(t, 0, deviation, NULL));
    must(tn_tensor_set_requires_grad(t, true));
    return parameters[n_parameters++] = t;
}

static void forget_model(void)
{
    while (n_parameters > 0)
        tn_tensor_unref(parameters[--n_parameters]);
}

static tn_tensor *randint(int64_t high, const int64_t *sizes, int64_t ndim)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *t;
    must(tn_randint(high, sizes, ndim, &opts, &t));
    return t;
}

typedef struct linear {
    tn_tensor *weight, *bias;
} linear;

static linear new_linear(int64_t in, int64_t out)
{
    return (linear){parameter(SIZES(out, in), 1 / sqrt((double)in), 0),
                    parameter(SIZES(out), 0, 0)};
}

static tn_tensor *apply(linear l, tn_tensor *x)
{
    return tnx_linear(x, l.weight, l.bias);
}

static tn_tensor *cross_entropy(tn_tensor *logits, tn_tensor *targets)
{
    return tnx_cross_entropy_loss(logits, targets, NULL, 1 /* mean */, -100, 0.0);
}

/* ---- 784-512-512-10, SGD ---- */

static linear mlp[3];

static void mlp_step(tn_tensor *x, tn_tensor *y)
{
    tn_scope *scope;
    must(tn_scope_enter(&scope));
    tn_tensor *h = tnx_relu(apply(mlp[0], x));
    h = tnx_relu(apply(mlp[1], h));
    must(tn_tensor_backward(cross_entropy(apply(mlp[2], h), y)));
    bool grad = tn_set_grad_enabled(false);
    for (int i = 0; i < n_parameters; i++) {
        must(tn_add_(parameters[i], tn_tensor_grad(parameters[i]), tn_float(-0.01)));
        must(tn_tensor_set_grad(parameters[i], NULL));
    }
    tn_set_grad_enabled(grad);
    must(tn_scope_leave(scope));
}

static void bench_mlp(const char *only)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_tensor *x, *y = randint(10, SIZES(64));
    must(tn_randn(SIZES(64, 784), &opts, &x));
    mlp[0] = new_linear(784, 512);
    mlp[1] = new_linear(512, 512);
    mlp[2] = new_linear(512, 10);
    BENCH("mlp_train_step_B64", mlp_step(x, y););
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    forget_model();
}

/* ---- 6 layers, 384 wide, 6 heads, 65 characters, AdamW ---- */

enum { LAYERS = 6, WIDTH = 384, HEADS = 6, VOCABULARY = 65, BATCH = 4, LENGTH = 256 };

typedef struct norm {
    tn_tensor *weight, *bias;
} norm;
typedef struct block {
    norm before_attention, before_mlp;
    linear qkv, projection, up, down;
} block;
static struct gpt {
    tn_tensor *tokens, *positions;
    block blocks[LAYERS];
    norm last;
    linear head;
} gpt;
static tn_tensor *first_moments[MAX_PARAMETERS], *second_moments[MAX_PARAMETERS];
static tn_tensor *steps[MAX_PARAMETERS];

static norm new_norm(void)
{
    return (norm){parameter(SIZES(WIDTH), 0, 1), parameter(SIZES(WIDTH), 0, 0)};
}

static tn_tensor *normed(norm n, tn_tensor *x)
{
    return tnx_layer_norm(x, SIZES(WIDTH), n.weight, n.bias, 1e-5, true);
}

static void new_gpt(void)
{
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    gpt.tokens = parameter(SIZES(VOCABULARY, WIDTH), 0.02, 0);
    gpt.positions = parameter(SIZES(LENGTH, WIDTH), 0.02, 0);
    for (int i = 0; i < LAYERS; i++)
        gpt.blocks[i] = (block){new_norm(),
                                new_norm(),
                                new_linear(WIDTH, 3 * WIDTH),
                                new_linear(WIDTH, WIDTH),
                                new_linear(WIDTH, 4 * WIDTH),
                                new_linear(4 * WIDTH, WIDTH)};
    gpt.last = new_norm();
    gpt.head = new_linear(WIDTH, VOCABULARY);
    for (int i = 0; i < n_parameters; i++) {
        must(tn_zeros_like(parameters[i], NULL, TN_FORMAT_NONE, &first_moments[i]));
        must(tn_zeros_like(parameters[i], NULL, TN_FORMAT_NONE, &second_moments[i]));
        must(tn_zeros(NULL, 0, &opts, &steps[i]));
    }
}

static tn_tensor *heads(tn_tensor *x)
{
    return tnx_transpose(tnx_view(x, SIZES(BATCH, LENGTH, HEADS, WIDTH / HEADS)), 1, 2);
}

static tn_tensor *attention(const block *b, tn_tensor *x)
{
    tn_tensor **parts;
    int64_t n;
    must(tn_split(apply(b->qkv, x), WIDTH, 2, &parts, &n));
    tn_tensor *q = heads(parts[0]), *k = heads(parts[1]), *v = heads(parts[2]);
    tn_tensor *y = tnx_scaled_dot_product_attention(q, k, v, NULL, 0.0, true, tn_no_float(), false);
    y = tnx_reshape(tnx_transpose(y, 1, 2), SIZES(BATCH, LENGTH, WIDTH));
    y = apply(b->projection, y);
    tn_tensor_list_free(parts, n);
    return y;
}

static tn_tensor *forward(tn_tensor *tokens, tn_tensor *places)
{
    tn_tensor *x = tnx_add(tnx_embedding(gpt.tokens, tokens, -1, false, false),
                           tnx_embedding(gpt.positions, places, -1, false, false), tn_int(1));
    for (int i = 0; i < LAYERS; i++) {
        const block *b = &gpt.blocks[i];
        x = tnx_add(x, attention(b, normed(b->before_attention, x)), tn_int(1));
        tn_tensor *h = tnx_gelu(apply(b->up, normed(b->before_mlp, x)), "none");
        x = tnx_add(x, apply(b->down, h), tn_int(1));
    }
    return tnx_view(apply(gpt.head, normed(gpt.last, x)), SIZES(BATCH * LENGTH, VOCABULARY));
}

static void gpt_step(tn_tensor *tokens, tn_tensor *places, tn_tensor *targets)
{
    tn_scope *scope;
    tn_tensor *grads[MAX_PARAMETERS];
    must(tn_scope_enter(&scope));
    must(tn_tensor_backward(cross_entropy(forward(tokens, places), targets)));
    must(tn_scope_leave(scope));
    bool grad = tn_set_grad_enabled(false);
    int n = n_parameters;
    for (int i = 0; i < n; i++)
        grads[i] = tn_tensor_grad(parameters[i]);
    must(tn__fused_adamw_(parameters, n, grads, n, first_moments, n, second_moments, n, NULL, 0,
                          steps, n, 1e-3, 0.9, 0.999, 0.01, 1e-8, false, false, NULL, NULL));
    for (int i = 0; i < n; i++)
        must(tn_tensor_set_grad(parameters[i], NULL));
    tn_set_grad_enabled(grad);
}

/* The most memory that the process has held so far. */
static double peak_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss * 1024;
}

static void bench_gpt(const char *only)
{
    double before = peak_bytes();
    tn_tensor_opts opts = tn_opts(TN_DTYPE_I64, TN_CPU);
    tn_tensor *tokens = randint(VOCABULARY, SIZES(BATCH, LENGTH));
    tn_tensor *targets = randint(VOCABULARY, SIZES(BATCH * LENGTH)), *places;
    must(tn_arange(tn_int(LENGTH), &opts, &places));
    new_gpt();
    BENCH("char_gpt_train_step", gpt_step(tokens, places, targets););
    printf("char_gpt_peak_bytes %.0f\n", peak_bytes() - before);
    for (int i = 0; i < n_parameters; i++) {
        tn_tensor_unref(first_moments[i]);
        tn_tensor_unref(second_moments[i]);
        tn_tensor_unref(steps[i]);
    }
    tn_tensor *data[] = {tokens, targets, places};
    for (int i = 0; i < 3; i++)
        tn_tensor_unref(data[i]);
    forget_model();
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    if (!only || strncmp(only, "char_gpt", 8) == 0)
        bench_gpt(only);
    if (!only || strncmp(only, "mlp", 3) == 0)
        bench_mlp(only);
    return 0;
}
