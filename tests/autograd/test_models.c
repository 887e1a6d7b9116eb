/* SPDX-License-Identifier: MIT */
/* Whole models: the loss and the gradient of every parameter are what PyTorch 2.11 gives
 * (make_models.py, which builds the same models from the same numbers). */
#include "harness/test.h"

#include <math.h>
#include "tenon/autograd.h"
#include "tenon/ops.h"

#include "models.inc"

#define LENGTH(array) ((int64_t)(sizeof(array) / sizeof *(array)))
#define DIMS(...)     (const int64_t[]){__VA_ARGS__}, LENGTH(((int64_t[]){__VA_ARGS__}))

enum { MAX_PARAMS = 32 };

/* Parameters in the order in which they are asked for. */
typedef struct model {
    tn_tensor *params[MAX_PARAMS];
    int n;
} model;

static tn_tensor *fill(int64_t seed, const int64_t *sizes, int64_t ndim)
{
    float values[256];
    tn_tensor *t = NULL;
    int64_t n = 1;
    for (int64_t d = 0; d < ndim; d++)
        n *= sizes[d];
    ASSERT(n <= LENGTH(values));
    for (int64_t k = 0; k < n; k++)
        values[k] = (float)((7919 * k + 104729 * seed + 13) % 41 - 20) / 32;
    ASSERT_OK(tn_tensor_from_data(values, (int)ndim, sizes, TN_DTYPE_F32, &t));
    return tn_scope_own(t);
}

static tn_tensor *param(model *m, const int64_t *sizes, int64_t ndim)
{
    ASSERT(m->n < MAX_PARAMS);
    tn_tensor *t = fill(m->n + 1, sizes, ndim);
    ASSERT_OK(tn_tensor_set_requires_grad(t, true));
    m->params[m->n++] = t;
    return t;
}

static tn_tensor *integers(const int64_t *values, const int64_t *sizes, int64_t ndim)
{
    tn_tensor *t = NULL;
    ASSERT_OK(tn_tensor_from_data(values, (int)ndim, sizes, TN_DTYPE_I64, &t));
    return tn_scope_own(t);
}

static tn_tensor *linear(model *m, tn_tensor *x, int64_t out, int64_t in)
{
    tn_tensor *weight = param(m, DIMS(out, in));
    return tnx_linear(x, weight, param(m, DIMS(out)));
}

static tn_tensor *norm(model *m, tn_tensor *x, int64_t width)
{
    tn_tensor *weight = param(m, DIMS(width));
    return tnx_layer_norm(x, &width, 1, weight, param(m, DIMS(width)), 1e-5, true);
}

static tn_tensor *cross_entropy(tn_tensor *scores, const int64_t *targets, int64_t n)
{
    return tnx_cross_entropy_loss(scores, integers(targets, &n, 1), NULL, 1, -100, 0);
}

/* ---- models ---- */

static tn_tensor *mlp(model *m)
{
    tn_tensor *h = tnx_tanh(linear(m, fill(0, DIMS(4, 3)), 5, 3));
    h = tnx_relu(linear(m, h, 6, 5));
    return cross_entropy(linear(m, h, 3, 6), DIMS(0, 2, 1, 2));
}

static tn_tensor *convolve(model *m, tn_tensor *x, int64_t out, int64_t in, int64_t padding)
{
    tn_tensor *weight = param(m, DIMS(out, in, 3, 3));
    return tnx_conv2d(x, weight, param(m, DIMS(out)), DIMS(1), DIMS(padding), DIMS(1), 1);
}

static tn_tensor *cnn(model *m)
{
    tn_tensor *h = tnx_relu(convolve(m, fill(0, DIMS(2, 1, 8, 8)), 2, 1, 1));
    h = tnx_max_pool2d(h, DIMS(2), NULL, 0, DIMS(0), DIMS(1), false);
    h = convolve(m, h, 3, 2, 0);
    tn_tensor *weight = param(m, DIMS(3));
    h = tnx_batch_norm(h, weight, param(m, DIMS(3)), NULL, NULL, true, 0.1, 1e-5, true);
    h = tnx_flatten(tnx_relu(h), 1, -1);
    return cross_entropy(linear(m, h, 2, 12), DIMS(1, 0));
}

/* One third of what comes out of a layer, as heads. */
static tn_tensor *heads(tn_tensor *qkv, int64_t which)
{
    tn_tensor *part = tnx_narrow(qkv, 2, 8 * which, 8);
    return tnx_transpose(tnx_view(part, DIMS(2, 5, 2, 4)), 1, 2);
}

static tn_tensor *gpt(model *m)
{
    tn_tensor *tokens = integers((int64_t[]){1, 4, 2, 6, 4, 0, 3, 3, 5, 1}, DIMS(2, 5));
    tn_tensor *words = param(m, DIMS(7, 8)), *places = param(m, DIMS(5, 8));
    tn_tensor *x = tnx_add(tnx_embedding(words, tokens, -1, false, false), places, tn_int(1));
    tn_tensor *qkv = linear(m, norm(m, x, 8), 24, 8);
    tn_tensor *a = tnx_scaled_dot_product_attention(heads(qkv, 0), heads(qkv, 1), heads(qkv, 2),
                                                    NULL, 0, true, tn_no_float(), false);
    a = tnx_reshape(tnx_transpose(a, 1, 2), DIMS(2, 5, 8));
    x = tnx_add(x, linear(m, a, 8, 8), tn_int(1));
    tn_tensor *h = tnx_gelu(linear(m, norm(m, x, 8), 16, 8), "tanh");
    x = norm(m, tnx_add(x, linear(m, h, 8, 16), tn_int(1)), 8);
    tn_tensor *scores = tnx_view(tnx_linear(x, words, NULL), DIMS(10, 7));
    return cross_entropy(scores, DIMS(4, 2, 6, 4, 1, 3, 3, 5, 1, 2));
}

static tn_tensor *lstm(model *m)
{
    tn_tensor *tokens = integers((int64_t[]){1, 4, 2, 0, 3, 3}, DIMS(2, 3));
    tn_tensor *x = tnx_embedding(param(m, DIMS(5, 3)), tokens, -1, false, false);
    tn_tensor *state = tnx_zeros(DIMS(1, 2, 4), NULL), *states[] = {state, state};
    tn_tensor *w_ih = param(m, DIMS(16, 3)), *w_hh = param(m, DIMS(16, 4));
    tn_tensor *b_ih = param(m, DIMS(16)), *b_hh = param(m, DIMS(16));
    tn_tensor *weights[] = {w_ih, w_hh, b_ih, b_hh}, *out[3] = {NULL};
    ASSERT_OK(tn_lstm(x, states, 2, weights, 4, true, 1, 0, true, false, true, &out[0], &out[1],
                      &out[2]));
    for (int i = 0; i < 3; i++)
        (void)tn_scope_own(out[i]);
    tn_tensor *scores = tnx_view(linear(m, out[0], 5, 4), DIMS(6, 5));
    return cross_entropy(scores, DIMS(4, 2, 0, 3, 3, 1));
}

/* ---- comparing ---- */

static void expect_values(tn_tensor *t, const float *wanted, int64_t n)
{
    t = tnx_contiguous(t, TN_FORMAT_CONTIGUOUS);
    ASSERT(t != NULL);
    ASSERT_EQ_INT(tn_tensor_numel(t), n);
    const float *have = tn_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        EXPECT_NEAR(have[i], wanted[i], 2e-6f + 2e-5f * fabsf(wanted[i]));
}

static void compare(tn_tensor *(*build)(model *), const float *loss, const float *grads, int64_t n)
{
    tn_scope *scope;
    model m = {.n = 0};
    int64_t at = 0;
    ASSERT_OK(tn_scope_enter(&scope));
    tn_tensor *result = build(&m);
    ASSERT_OK(tn_scope_status(scope));
    expect_values(tnx_detach(result), loss, 1);
    ASSERT_OK(tn_tensor_backward(result));
    for (int i = 0; i < m.n; i++) {
        test_note("parameter %d", i);
        int64_t numel = tn_tensor_numel(m.params[i]);
        ASSERT(at + numel <= n);
        expect_values(tn_tensor_grad(m.params[i]), grads + at, numel);
        at += numel;
    }
    EXPECT_EQ_INT(at, n);
    ASSERT_OK(tn_scope_leave(scope));
}

TEST(a_multilayer_perceptron_has_the_gradients_of_the_reference)
{
    compare(mlp, mlp_loss, mlp_grads, LENGTH(mlp_grads));
}

TEST(a_convolutional_network_has_the_gradients_of_the_reference)
{
    compare(cnn, cnn_loss, cnn_grads, LENGTH(cnn_grads));
}

TEST(a_transformer_has_the_gradients_of_the_reference)
{
    compare(gpt, gpt_loss, gpt_grads, LENGTH(gpt_grads));
}

TEST(a_recurrent_network_has_the_gradients_of_the_reference)
{
    compare(lstm, lstm_loss, lstm_grads, LENGTH(lstm_grads));
}
