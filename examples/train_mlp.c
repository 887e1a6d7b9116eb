/* SPDX-License-Identifier: MIT */
/* train_mlp.c: tells two spirals apart. A network of three layers learns by Adam, from C alone. */
#include <math.h>
#include <stdio.h>
#include <tenon/autograd.h>
#include <tenon/ops.h>
#include <unistd.h>

enum { POINTS = 400, HIDDEN = 48, LAYERS = 3, PARAMS = 2 * LAYERS, STEPS = 250 };

/* What is learned, and what Adam remembers of each: the means of gradients and of their squares. */
static tn_tensor *params[PARAMS], *means[PARAMS], *squares[PARAMS];

static tn_status begin(void)
{
    const int64_t width[] = {2, HIDDEN, HIDDEN, 2};
    tn_scope *scope;
    tn_status status = tn_scope_enter(&scope);
    for (int i = 0; status == TN_OK && i < PARAMS; i++) {
        int64_t in = width[i / 2], sizes[] = {width[i / 2 + 1], in};
        double bound = 1 / sqrt((double)in); /* as torch.nn.Linear begins */
        tn_tensor *t = tnx_empty(sizes, i % 2 ? 1 : 2, NULL, TN_FORMAT_NONE);
        params[i] = tn_scope_keep(tnx_uniform_(t, -bound, bound, NULL));
        means[i] = tn_scope_keep(tnx_zeros_like(t, NULL, TN_FORMAT_NONE));
        squares[i] = tn_scope_keep(tnx_zeros_like(t, NULL, TN_FORMAT_NONE));
        status = params[i] ? tn_tensor_set_requires_grad(params[i], true) : tn_scope_status(scope);
    }
    tn_status left = tn_scope_leave(scope);
    return status != TN_OK ? status : left;
}

/* Points on two arms that wind around each other, and which arm each is on. */
static tn_status make_spirals(tn_tensor **points, tn_tensor **arms)
{
    float xy[POINTS][2];
    int64_t arm[POINTS];
    for (int i = 0; i < POINTS; i++) {
        double r = 0.1 + 0.9 * (i / 2) / (POINTS / 2), turn = 9 * r + (i % 2) * acos(-1);
        double off = 0.02 * (i * 37 % 11 - 5) / 5;
        xy[i][0] = (float)(r * cos(turn) + off);
        xy[i][1] = (float)(r * sin(turn) - off);
        arm[i] = i % 2;
    }
    tn_status status = tn_tensor_from_data(xy, 2, (int64_t[]){POINTS, 2}, TN_DTYPE_F32, points);
    if (status != TN_OK)
        return status;
    return tn_tensor_from_data(arm, 1, (int64_t[]){POINTS}, TN_DTYPE_I64, arms);
}

/* Calls nest, results belong to the scope that is open. */
static tn_tensor *scores(tn_tensor *x)
{
    for (int i = 0; i < LAYERS; i++) {
        x = tnx_linear(x, params[2 * i], params[2 * i + 1]);
        x = i + 1 < LAYERS ? tnx_tanh(x) : x;
    }
    return x;
}

static void adam(int step)
{
    const double rate = 0.02, keep = 0.9, keep_squares = 0.999;
    double fix = 1 - pow(keep, step), fix_squares = sqrt(1 - pow(keep_squares, step));
    for (int i = 0; i < PARAMS; i++) {
        tn_tensor *grad = tn_tensor_grad(params[i]);
        tnx_lerp_(means[i], grad, tn_float(1 - keep));
        tnx_addcmul_(tnx_mul_scalar_(squares[i], tn_float(keep_squares)), grad, grad,
                     tn_float(1 - keep_squares));
        tn_tensor *scale = tnx_div_scalar(tnx_sqrt(squares[i]), tn_float(fix_squares));
        tnx_addcdiv_(params[i], means[i], tnx_add_scalar(scale, tn_float(1e-8), tn_int(1)),
                     tn_float(-rate / fix));
    }
}

static void show(int step, double loss, double right)
{
    bool terminal = isatty(STDOUT_FILENO), last = step == STEPS;
    if (!terminal && !last && step % 50)
        return;
    int bar = 24 * step / STEPS;
    printf("%sstep %3d  loss %.4f  right %5.1f %%  [%.*s%*s]%s", terminal ? "\r" : "", step, loss,
           100 * right, bar, "########################", 24 - bar, "",
           terminal && !last ? "" : "\n");
    fflush(stdout);
}

/* One step over all points; *right is the share that was told apart. */
static tn_status train(tn_tensor *points, tn_tensor *arms, int step, double *right)
{
    tn_scope *scope;
    tn_status status = tn_scope_enter(&scope);
    if (status != TN_OK)
        return status;
    tn_tensor *out = scores(points);
    tn_tensor *loss = tnx_cross_entropy_loss(out, arms, NULL, 1, -100, 0);
    tn_scalar number = tn_float(0), share = tn_float(0);
    for (int i = 0; status == TN_OK && i < PARAMS; i++)
        status = tn_tensor_set_grad(params[i], NULL);
    if (status == TN_OK && loss)
        status = tn_tensor_backward(loss);
    if (status == TN_OK && loss) {
        bool before = tn_set_grad_enabled(false); /* what follows is not part of the model */
        adam(step);
        tn_tensor *hits = tnx_eq(tnx_argmax(out, tn_some_int(1), false), arms);
        tn_tensor *mean = tnx_mean(hits, TN_DTYPE_F32);
        if (mean && (status = tn_item(loss, &number)) == TN_OK)
            status = tn_item(mean, &share);
        (void)tn_set_grad_enabled(before);
    }
    show(step, number.v.f, *right = share.v.f);
    tn_status left = tn_scope_leave(scope);
    return status != TN_OK ? status : left;
}

int main(void)
{
    tn_tensor *points = NULL, *arms = NULL;
    double right = 0;
    tn_generator_seed(tn_default_generator(), 7);
    tn_status status = begin();
    if (status == TN_OK)
        status = make_spirals(&points, &arms);
    for (int step = 1; status == TN_OK && step <= STEPS; step++)
        status = train(points, arms, step, &right);
    if (status != TN_OK)
        fprintf(stderr, "train_mlp: %s\n", tn_last_error());
    tn_tensor_unref(points);
    tn_tensor_unref(arms);
    for (int i = 0; i < PARAMS; i++) {
        tn_tensor_unref(params[i]);
        tn_tensor_unref(means[i]);
        tn_tensor_unref(squares[i]);
    }
    return status == TN_OK && right > 0.95 ? 0 : 1;
}
