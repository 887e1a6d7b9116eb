/* SPDX-License-Identifier: MIT */
/* cli/cmd_demo.c: `tenon demo`: what Tenon does, shown by doing it. Each part is a user's program
 * in small; docs/user/c-api.md has the same as separate examples. */
#define _GNU_SOURCE /* program_invocation_name */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cli.h"
#include "demo.h"
#include "hops.h"
#include "tenon/dispatch.h"
#include "tenon/ops.h"
#include "term.h"

static int run_demo(const command *self, int argc, char **argv);

const command command_demo = {
    .name = "demo",
    .usage = "",
    .summary = "show what Tenon does: explain, trace, time, compute, extend, fit",
    .help =
        "Takes matmul of a meta tensor [2, 4, 16] with one of [16, 16], explains each dispatch of\n"
        "it, traces and times it; computes the same on the CPU; registers an operator at run "
        "time;\n"
        "and fits a small network to a curve. The trace goes to stderr, all else to stdout.\n",
    .run = run_demo,
};

static void heading(const char *text)
{
    styles st = term_styles(stdout);
    printf("\n%s== %s%s\n", st.bold, text, st.off);
}

/* x [2, 4, 16] and w [16, 16] on @p device, with values where the device has any. */
static tn_status make_operands(tn_device device, tn_tensor **x, tn_tensor **w)
{
    const int64_t x_sizes[] = {2, 4, 16}, w_sizes[] = {16, 16};
    tn_tensor_opts opts = tn_opts(TN_DTYPE_F32, device);
    tn_manual_seed(7);
    tn_status st = tn_randn(x_sizes, 3, &opts, x);
    if (st != TN_OK)
        return st;
    st = tn_randn(w_sizes, 2, &opts, w);
    if (st != TN_OK) {
        tn_tensor_unref(*x);
        *x = NULL;
    }
    return st;
}

/* ---- one call on the meta device ---- */

static tn_status explain_call(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *y;
    hop_list hops = {0};
    tn_status st = hops_start(&hops);
    if (st != TN_OK)
        return st;
    st = tn_matmul(x, w, &y);
    hops_stop();
    if (st == TN_OK) {
        hops_print(stdout, &hops);
        const int64_t *sizes = tn_tensor_sizes(y);
        printf("\nThe result has the sizes [%d, %d, %d], and no memory at all.\n", (int)sizes[0],
               (int)sizes[1], (int)sizes[2]);
        tn_tensor_unref(y);
    }
    hops_free(&hops);
    return st;
}

static tn_status trace_call(tn_tensor *x, tn_tensor *w)
{
    tn_tensor *y;
    fflush(stdout); /* the trace goes to stderr: keep the order */
    tn_set_dispatch_trace(true);
    tn_status st = tn_matmul(x, w, &y);
    tn_set_dispatch_trace(false);
    if (st == TN_OK)
        tn_tensor_unref(y);
    return st;
}

static tn_status time_call(tn_tensor *x, tn_tensor *w)
{
    enum { ROUNDS = 100, CALLS = 1000 };
    double best = INFINITY;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start = clock_ns();
        for (int i = 0; i < CALLS; i++) {
            tn_tensor *y;
            tn_status st = tn_matmul(x, w, &y);
            if (st != TN_OK)
                return st;
            tn_tensor_unref(y);
        }
        double ns = (double)(clock_ns() - start) / CALLS;
        best = ns < best ? ns : best;
    }
    printf("One call takes %.0f ns, result and all (best of %d rounds of %d calls).\n", best,
           ROUNDS, CALLS);
    return TN_OK;
}

static tn_status show_meta(void)
{
    tn_tensor *x, *w;
    tn_status st = make_operands(TN_META, &x, &w);
    if (st != TN_OK)
        return st;
    heading("matmul of meta [2, 4, 16] and [16, 16]: where each dispatch went, and why");
    st = explain_call(x, w);
    if (st == TN_OK) {
        heading("The same call, traced");
        st = trace_call(x, w);
    }
    if (st == TN_OK) {
        heading("The same call, timed");
        st = time_call(x, w);
    }
    tn_tensor_unref(x);
    tn_tensor_unref(w);
    return st;
}

/* ---- the same on the CPU ---- */

/* Largest distance of y from x @ w, computed here by the definition. All are contiguous float32. */
static double largest_error(const tn_tensor *x, const tn_tensor *w, const tn_tensor *y)
{
    const float *a = tn_tensor_data(x), *b = tn_tensor_data(w), *c = tn_tensor_data(y);
    double worst = 0;
    for (int i = 0; i < 2 * 4; i++) {
        for (int j = 0; j < 16; j++) {
            double sum = 0;
            for (int k = 0; k < 16; k++)
                sum += (double)a[16 * i + k] * (double)b[16 * k + j];
            worst = fmax(worst, fabs(sum - (double)c[16 * i + j]));
        }
    }
    return worst;
}

/* The corner y[0, :, :4] as text. */
static tn_status corner_text(tn_tensor *y, char **out)
{
    tn_tensor *first = NULL, *corner = NULL;
    tn_status st = tn_select(y, 0, 0, &first);
    if (st == TN_OK)
        st = tn_slice(first, 1, tn_no_int(), tn_some_int(4), 1, &corner);
    if (st == TN_OK)
        st = tn_tensor_to_string(corner, out);
    tn_tensor_unref(corner);
    tn_tensor_unref(first);
    return st;
}

static tn_status show_cpu(void)
{
    tn_tensor *x, *w, *y = NULL;
    char *text;
    tn_status st = make_operands(TN_CPU, &x, &w);
    if (st != TN_OK)
        return st;
    heading("The same call on the CPU, with values");
    st = tn_matmul(x, w, &y);
    if (st == TN_OK)
        st = corner_text(y, &text);
    if (st == TN_OK) {
        printf("y[0, :, :4] = %s\n", text);
        printf("The largest distance from the sum of products by definition is %.1e.\n",
               largest_error(x, w, y));
        tn_string_free(text);
    }
    tn_tensor_unref(y);
    tn_tensor_unref(w);
    tn_tensor_unref(x);
    return st;
}

/* ---- an operator of one's own ---- */

/* demo::shifted_square(Tensor x, float by=1.0) -> Tensor: (x + by)^2, out of operators that exist,
 * so that it works on every device. */
static tn_status shifted_square(tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)call;
    tn_tensor *by = NULL, *shifted = NULL, *out = NULL;
    tn_status st = tn_tensor_from_scalar(tn_float(args[1].u.f), TN_DTYPE_F32, &by);
    if (st == TN_OK)
        st = tn_add(args[0].u.tensor, by, tn_int(1), &shifted);
    if (st == TN_OK)
        st = tn_mul(shifted, shifted, &out);
    if (st == TN_OK)
        rets[0] = tn_value_take_tensor(out);
    tn_tensor_unref(shifted);
    tn_tensor_unref(by);
    return st;
}

static tn_status call_by_name(const char *name, const char *argument)
{
    tn_op *op;
    tn_value args[2], result;
    char *text;
    tn_status st = tn_op_find(name, &op);
    if (st == TN_OK)
        st = tn_op_parse_arguments(op, &argument, 1, args);
    if (st != TN_OK)
        return st;
    st = tn_op_call(op, args, 2, &result);
    tn_value_clear(&args[0]);
    tn_value_clear(&args[1]);
    if (st != TN_OK)
        return st;
    st = tn_tensor_to_string(result.u.tensor, &text);
    if (st == TN_OK) {
        printf("%s(%s) = %s\n", name, argument, text);
        tn_string_free(text);
    }
    tn_value_clear(&result);
    return st;
}

static tn_status show_custom(void)
{
    tn_library *lib;
    tn_kernel kernel = TN_KERNEL_INIT(shifted_square);
    heading("An operator registered at run time");
    tn_status st = tn_library_open(TN_LIBRARY_DEF, "demo", TN_KEY_NONE, __FILE__, __LINE__, &lib);
    if (st != TN_OK)
        return st;
    st = tn_library_def(lib, "shifted_square(Tensor x, float by=1.0) -> Tensor", &kernel, NULL);
    if (st == TN_OK)
        st = call_by_name("demo::shifted_square", "f32[3]=2");
    if (st == TN_OK)
        st = call_by_name("demo::shifted_square", "meta f32[3]");
    tn_library_close(lib);
    if (st != TN_OK)
        return st;
    if (call_by_name("demo::shifted_square", "f32[3]=2") == TN_OK)
        return tn_fail(TN_INTERNAL, "demo::shifted_square outlived its library");
    printf("After its library was closed: %s\n", tn_last_error());
    return TN_OK;
}

static int run_demo(const command *self, int argc, char **argv)
{
    int n = take_options(self, argc, argv, NULL, 0);
    if (n < 0)
        return EXIT_USAGE;
    if (n > 0)
        return usage_error(self, "takes no argument");
    printf("%s", tn_build_info());
    if (show_meta() != TN_OK || show_cpu() != TN_OK || show_custom() != TN_OK)
        return library_error(self);
    heading("A network of 48 tanh units, fitted to sin(2x) + x/2 by gradient descent");
    if (demo_fit() != TN_OK)
        return library_error(self);
    const char *me = program_invocation_name; /* as it was called: build/tenon is not in PATH */
    printf("\nTry: %s explain aten::linear 'meta f32[2,4,16]' 'meta f32[8,16]' 'meta f32[8]'\n"
           "     %s ops aten::mm\n"
           "     %s help\n",
           me, me, me);
    return EXIT_OK;
}
