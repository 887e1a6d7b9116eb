/* SPDX-License-Identifier: MIT */
/* cli/demo_fit.c: fits y = w2 tanh(w1 x + b1) + b2 to a curve. Gradients are written by hand, with
 * the scope face of the API: results belong to the scope of a step, and a step is checked once. */
#include "demo.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tenon/ops.h"
#include "tenon/tensor.h"
#include "term.h"

enum { POINTS = 128, UNITS = 48, STEPS = 3000, COLUMNS = 64, ROWS = 10 };
static const double learning_rate = 0.02, momentum = 0.9;

/* Parameters and their velocities, in this order. */
enum { W1, B1, W2, B2, PARAMETERS };
typedef struct network {
    tn_tensor *value[PARAMETERS], *velocity[PARAMETERS];
} network;

static double curve(double x)
{
    return sin(2 * x) + x / 2;
}

static tn_status make_data(tn_tensor **x, tn_tensor **target)
{
    float xs[POINTS], ys[POINTS];
    const int64_t sizes[] = {POINTS, 1};
    for (int i = 0; i < POINTS; i++) {
        double at = -3.0 + 6.0 * i / (POINTS - 1);
        xs[i] = (float)at;
        ys[i] = (float)curve(at);
    }
    tn_status st = tn_tensor_from_data(xs, 2, sizes, TN_DTYPE_F32, x);
    if (st == TN_OK)
        st = tn_tensor_from_data(ys, 2, sizes, TN_DTYPE_F32, target);
    return st;
}

static void network_free(network *net)
{
    for (int i = 0; i < PARAMETERS; i++) {
        tn_tensor_unref(net->value[i]);
        tn_tensor_unref(net->velocity[i]);
    }
}

static tn_status network_new(network *net)
{
    static const int64_t sizes[PARAMETERS][2] = {{1, UNITS}, {1, UNITS}, {UNITS, 1}, {1, 1}};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, TN_CPU);
    tn_status st = TN_OK;
    memset(net, 0, sizeof *net);
    tn_manual_seed(1);
    for (int i = 0; i < PARAMETERS && st == TN_OK; i++) {
        st = tn_randn(sizes[i], 2, &opts, &net->value[i]);
        if (st == TN_OK)
            st = tn_zeros(sizes[i], 2, &opts, &net->velocity[i]);
    }
    return st;
}

static tn_tensor *predict(const network *net, tn_tensor *x, tn_tensor **hidden)
{
    *hidden = tnx_tanh(tnx_addmm(net->value[B1], x, net->value[W1], tn_int(1), tn_int(1)));
    return tnx_addmm(net->value[B2], *hidden, net->value[W2], tn_int(1), tn_int(1));
}

/* Sum over the rows, as a matrix of one row. */
static tn_tensor *column_sums(tn_tensor *t)
{
    const int64_t rows[] = {0};
    return tnx_sum_dim(t, rows, 1, true, TN_DTYPE_NONE);
}

/* One step of gradient descent; the loss before it. */
static tn_status step(network *net, tn_tensor *x, tn_tensor *target, double *loss)
{
    tn_scope *scope;
    tn_status st = tn_scope_enter(&scope);
    if (st != TN_OK)
        return st;
    tn_tensor *h, *y = predict(net, x, &h);
    tn_tensor *error = tnx_sub(y, target, tn_int(1));
    tn_tensor *mean = tnx_mean(tnx_mul(error, error), TN_DTYPE_NONE);

    tn_tensor *back = tnx_mm(error, tnx_t(net->value[W2]));
    back = tnx_sub(back, tnx_mul(back, tnx_mul(h, h)), tn_int(1)); /* tanh' = 1 - tanh^2 */
    tn_tensor *gradients[PARAMETERS] = {
        [W1] = tnx_mm(tnx_t(x), back),
        [B1] = column_sums(back),
        [W2] = tnx_mm(tnx_t(h), error),
        [B2] = column_sums(error),
    };
    const double scale = 2.0 / POINTS; /* of the mean of squares */
    for (int i = 0; i < PARAMETERS; i++) {
        tnx_mul_scalar_(net->velocity[i], tn_float(momentum));
        tnx_add_(net->velocity[i], gradients[i], tn_float(scale));
        tnx_sub_(net->value[i], net->velocity[i], tn_float(learning_rate));
    }
    tn_scalar value = tn_float(0);
    if (tn_scope_status(scope) == TN_OK)
        st = tn_item(mean, &value);
    *loss = tn_scalar_to_double(value);
    tn_status inside = tn_scope_leave(scope);
    return inside != TN_OK ? inside : st;
}

/* ---- drawing ---- */

/* log10 of the loss over the steps. */
static void draw_losses(const double *losses)
{
    double low = INFINITY, high = -INFINITY;
    for (int c = 0; c < COLUMNS; c++) {
        low = fmin(low, losses[c]);
        high = fmax(high, losses[c]);
    }
    double height = high > low ? high - low : 1;
    for (int r = 0; r < ROWS; r++) {
        char line[COLUMNS + 1];
        for (int c = 0; c < COLUMNS; c++) {
            int row = (int)lround((high - losses[c]) / height * (ROWS - 1));
            line[c] = row == r ? '*' : ' ';
        }
        line[COLUMNS] = '\0';
        printf("  %8.1e |%s\n", pow(10, high - height * r / (ROWS - 1)), line);
    }
    printf("  %8s +", "loss");
    for (int c = 0; c < COLUMNS; c++)
        putchar('-');
    printf(" step %d\n", STEPS);
}

static tn_status print_points(const network *net, tn_tensor *x)
{
    tn_scope *scope;
    tn_status st = tn_scope_enter(&scope);
    if (st != TN_OK)
        return st;
    tn_tensor *hidden, *y = predict(net, x, &hidden);
    if (tn_scope_status(scope) == TN_OK) {
        const float *xs = tn_tensor_data(x), *ys = tn_tensor_data(y);
        printf("\n  %8s %10s %10s\n", "x", "curve", "network");
        for (int i = 0; i < POINTS; i += (POINTS - 1) / 6)
            printf("  %8.3f %10.4f %10.4f\n", (double)xs[i], curve((double)xs[i]), (double)ys[i]);
    }
    return tn_scope_leave(scope);
}

static tn_status fit(network *net, tn_tensor *x, tn_tensor *target)
{
    double losses[COLUMNS], loss = 0;
    uint64_t start = clock_ns();
    for (int i = 0; i < STEPS; i++) {
        tn_status st = step(net, x, target, &loss);
        if (st != TN_OK) {
            progress_end();
            return st;
        }
        losses[(long)i * COLUMNS / STEPS] = log10(loss);
        if (i % 50 == 0) {
            char note[64];
            snprintf(note, sizeof note, "step %d, loss %.5f", i, loss);
            progress_show(i, STEPS, note);
        }
    }
    progress_end();
    char took[32];
    draw_losses(losses);
    printf("  %d steps in %s; mean squared error %.2e\n", STEPS,
           time_text(clock_ns() - start, took, sizeof took), loss);
    return print_points(net, x);
}

tn_status demo_fit(void)
{
    network net;
    tn_tensor *x = NULL, *target = NULL;
    tn_status st = network_new(&net);
    if (st == TN_OK)
        st = make_data(&x, &target);
    if (st == TN_OK)
        st = fit(&net, x, target);
    tn_tensor_unref(x);
    tn_tensor_unref(target);
    network_free(&net);
    return st;
}
