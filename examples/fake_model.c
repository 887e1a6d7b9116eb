/* SPDX-License-Identifier: MIT */
/* fake_model.c: plan the memory of a model without running it.
 *
 * Inside a fake mode the code of a model is what it always is, but its tensors pretend their device
 * and have no memory: GPT-2, on a GPU that need not be here, with as large a batch as you like,
 * takes a moment and a few kilobytes. Each result says how many bytes it would take, and what would
 * be refused is refused with the same words. */
#include <stdio.h>
#include <tenon/fake.h>
#include <tenon/ops.h>

enum { LAYERS = 12, HEADS = 12, WIDTH = 768, WORDS = 50257, LENGTH = 1024 };

typedef struct plan {
    size_t parameters, activations, largest;
    tn_tensor_opts opts; /* where the model would be */
} plan;

static tn_tensor *parameter(plan *p, int64_t rows, int64_t columns)
{
    const int64_t size[] = {rows, columns};
    tn_tensor *t = columns ? tnx_empty(size, 2, &p->opts, TN_FORMAT_NONE)
                           : tnx_empty(size, 1, &p->opts, TN_FORMAT_NONE);
    p->parameters += tn_tensor_nbytes(t);
    return t;
}

/* What a backward pass would want to find again. */
static tn_tensor *kept(plan *p, tn_tensor *t)
{
    size_t n = tn_tensor_nbytes(t);
    p->activations += n;
    p->largest = n > p->largest ? n : p->largest;
    return t;
}

static tn_tensor *norm(plan *p, tn_tensor *x)
{
    const int64_t width[] = {WIDTH};
    tn_tensor *w = parameter(p, WIDTH, 0), *b = parameter(p, WIDTH, 0);
    return kept(p, tnx_layer_norm(x, width, 1, w, b, 1e-5, true));
}

static tn_tensor *linear(plan *p, tn_tensor *x, int64_t from, int64_t to)
{
    return kept(p, tnx_linear(x, parameter(p, to, from), parameter(p, to, 0)));
}

/* Columns [i * WIDTH, (i + 1) * WIDTH) of @p qkv as [batch, heads, length, width of a head]. */
static tn_tensor *heads(tn_tensor *qkv, int64_t batch, int i)
{
    const int64_t size[] = {batch, LENGTH, HEADS, WIDTH / HEADS};
    tn_tensor *part = tnx_slice(qkv, 2, tn_some_int(i * WIDTH), tn_some_int((i + 1) * WIDTH), 1);
    return tnx_transpose(tnx_view(part, size, 4), 1, 2);
}

static tn_tensor *block(plan *p, tn_tensor *x, int64_t batch)
{
    const int64_t size[] = {batch, LENGTH, WIDTH};
    const tn_opt_float scale = {0};
    tn_tensor *qkv = linear(p, norm(p, x), WIDTH, 3 * WIDTH);
    tn_tensor *a =
        tnx_scaled_dot_product_attention(heads(qkv, batch, 0), heads(qkv, batch, 1),
                                         heads(qkv, batch, 2), NULL, 0, true, scale, false);
    a = tnx_reshape(tnx_transpose(kept(p, a), 1, 2), size, 3);
    x = kept(p, tnx_add(x, linear(p, a, WIDTH, WIDTH), tn_int(1)));
    tn_tensor *h = kept(p, tnx_gelu(linear(p, norm(p, x), WIDTH, 4 * WIDTH), "tanh"));
    return kept(p, tnx_add(x, linear(p, h, 4 * WIDTH, WIDTH), tn_int(1)));
}

static tn_tensor *model(plan *p, int64_t batch)
{
    const int64_t size[] = {batch, LENGTH}, flat[] = {batch * LENGTH, WORDS},
                  all[] = {batch * LENGTH};
    tn_tensor_opts ids = tn_opts(TN_DTYPE_I64, p->opts.device);
    tn_tensor *text = tnx_empty(size, 2, &ids, TN_FORMAT_NONE);
    tn_tensor *words = parameter(p, WORDS, WIDTH), *places = parameter(p, LENGTH, WIDTH);
    tn_tensor *x = tnx_add(
        tnx_embedding(words, text, -1, false, false),
        tnx_embedding(places, tnx_arange(tn_int(LENGTH), &ids), -1, false, false), tn_int(1));
    for (int i = 0; i < LAYERS; i++)
        x = block(p, x, batch);
    tn_tensor *logits = kept(p, tnx_linear(norm(p, x), words, NULL));
    return tnx_cross_entropy_loss(tnx_view(logits, flat, 2), tnx_view(text, all, 1), NULL, 1, -100,
                                  0);
}

/* Plan for a batch of this size; prints what it would take. */
static tn_status plan_batch(tn_device device, int64_t batch)
{
    const double mega = 1e6;
    tn_scope *scope;
    plan p = {.opts = tn_opts(TN_DTYPE_F32, device)};
    tn_status status = tn_scope_enter(&scope);
    if (status != TN_OK)
        return status;
    tn_tensor *loss = tn_scope_keep(model(&p, batch));
    status = tn_scope_leave(scope);
    if (status == TN_OK) {
        char *text;
        status = tn_tensor_to_string(loss, &text);
        if (status == TN_OK) {
            printf("batch %3lld: parameters %.0f MB, activations %.0f MB, the largest %.0f MB; "
                   "loss %s\n",
                   (long long)batch, (double)p.parameters / mega, (double)p.activations / mega,
                   (double)p.largest / mega, text);
            tn_string_free(text);
        }
    }
    tn_tensor_unref(loss);
    return status;
}

int main(void)
{
    const tn_device gpu = TN_DEVICE_INIT(TN_DEVICE_CUDA, 0);
    tn_fake_mode *mode;
    if (tn_fake_mode_new(NULL, &mode) != TN_OK) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_fake_guard guard = tn_fake_enter(mode);
    tn_status status = TN_OK;
    for (int64_t batch = 1; batch <= 256 && status == TN_OK; batch *= 16)
        status = plan_batch(gpu, batch);
    if (status != TN_OK)
        fprintf(stderr, "%s\n", tn_last_error());

    /* Mistakes show here too, before anything is spent: these are on two devices. */
    tn_tensor *a = NULL, *b = NULL, *y = NULL;
    tn_tensor_opts on_gpu = tn_opts(TN_DTYPE_F32, gpu);
    if (status == TN_OK)
        status = tn_ones((int64_t[]){2, 2}, 2, NULL, &a);
    if (status == TN_OK)
        status = tn_ones((int64_t[]){2, 2}, 2, &on_gpu, &b);
    bool refused = status == TN_OK && tn_mm(a, b, &y) != TN_OK;
    printf("%s\n", refused ? tn_last_error() : "this should have been refused");
    tn_tensor_unref(a);
    tn_tensor_unref(b);
    tn_fake_leave(guard);
    tn_fake_mode_unref(mode);
    return status == TN_OK && refused ? 0 : 1;
}
