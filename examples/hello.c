/* SPDX-License-Identifier: MIT */
/* hello.c: relu(x @ w.t() + b) with both faces of the C API, on the CPU and on the meta device. */
#include <stdio.h>
#include <tenon/ops.h>

/* Explicit: each call returns a status, each result is released. */
static tn_status layer(tn_tensor *x, tn_tensor *w, tn_tensor *b, tn_tensor **out)
{
    tn_tensor *h;
    tn_status status = tn_linear(x, w, b, &h);
    if (status != TN_OK)
        return status;
    status = tn_relu(h, out);
    tn_tensor_unref(h);
    return status;
}

/* In a scope: results belong to it, calls nest, and the first failure sticks until the end. */
static tn_status layer_in_scope(tn_tensor *x, tn_tensor *w, tn_tensor *b, tn_tensor **out)
{
    tn_scope *scope;
    tn_status status = tn_scope_enter(&scope);
    if (status != TN_OK)
        return status;
    tn_tensor *y = tn_scope_keep(tnx_relu(tnx_linear(x, w, b)));
    status = tn_scope_leave(scope);
    if (status == TN_OK)
        *out = y;
    return status;
}

static void show(const char *what, tn_status status, tn_tensor *y)
{
    char *text;
    if (status != TN_OK || tn_tensor_to_string(y, &text) != TN_OK) {
        printf("%s: error: %s\n", what, tn_last_error());
        return;
    }
    printf("%s: %s\n", what, text);
    tn_string_free(text);
    tn_tensor_unref(y);
}

int main(void)
{
    const float values[] = {1, -2, 3, -4, 5, -6};
    tn_tensor *x, *w, *b, *mx, *mw, *y = NULL;
    tn_tensor_opts meta = tn_opts(TN_DTYPE_F32, TN_META);
    if (tn_tensor_from_data(values, 2, (int64_t[]){2, 3}, TN_DTYPE_F32, &x) != TN_OK ||
        tn_ones((int64_t[]){4, 3}, 2, NULL, &w) != TN_OK ||
        tn_tensor_from_data(values, 1, (int64_t[]){4}, TN_DTYPE_F32, &b) != TN_OK ||
        tn_empty((int64_t[]){1000000, 3}, 2, &meta, TN_FORMAT_NONE, &mx) != TN_OK ||
        tn_empty((int64_t[]){4, 3}, 2, &meta, TN_FORMAT_NONE, &mw) != TN_OK) {
        fprintf(stderr, "%s\n", tn_last_error());
        return 1;
    }
    tn_status status = layer(x, w, b, &y);
    show("explicit", status, y);
    status = layer_in_scope(x, w, b, &y);
    show("in a scope", status, y);
    status = layer(mx, mw, NULL, &y); /* sizes without memory: a million rows cost nothing */
    show("on meta", status, y);
    status = layer_in_scope(x, b, NULL, &y); /* an error that says what was wrong */
    show("wrong sizes", status, y);

    tn_tensor *all[] = {x, w, b, mx, mw};
    for (int i = 0; i < 5; i++)
        tn_tensor_unref(all[i]);
    return status == TN_OK; /* the last one had to fail */
}
