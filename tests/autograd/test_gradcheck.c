/* SPDX-License-Identifier: MIT */
/* Every derivative, first, second, third and in forward mode, beside difference quotients: each
 * sample of each operator, its floating arguments in float64, at points where the function has a
 * derivative. The in-place variants too, on a copy of what they write. Values at other points are
 * for the golden data (tests/ops/test_golden.c); here the oracle is the definition. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "autograd/forward.h"
#include "autograd/forward_check.h"
#include "autograd/order_check.h"
#include "core/tensor.h"
#include "gen/samples.h"
#include "op/schema.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/gradcheck.h"
#include "tenon/ops.h"

enum { MOST = 32, LARGEST = 250000 };

/* ---- what is not checked, and why ---- */

typedef struct exception {
    const char *op, *why;
} exception;

/* The derivative with respect to one argument takes another one to be a function of it: only that
 * there is one, of each order. */
static const exception follows[] = {
    {"aten::native_layer_norm_backward", "mean and rstd follow the input"},
    {"aten::native_batch_norm_backward", "mean and rstd follow the input"},
    {"aten::native_group_norm_backward", "mean and rstd follow the input"},
    {"aten::log_sigmoid_backward", "the buffer follows the input"},
    {"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
     "out and logsumexp follow the inputs"},
    {"aten::nll_loss_backward", "the total weight follows the target"},
    {"aten::nll_loss2d_backward", "the total weight follows the target"},
    {"aten::_ctc_loss_backward", "loss and forward variables follow the log probabilities"},
    {"aten::_ctc_loss_backward.Tensor", "loss and forward variables follow the log probabilities"},
};
/* Samples where the derivative is a convention, or the reference has none either. */
static const exception samples[] = {
    {"i64[2,4]=2, f32[2,4]", "which of several writes to one place wins"},
    {"i32[3,3]=1, f32[4,5]", "scatter wants a source of the index's shape"},
    {"i32[3,3]=1, f16[4,5]", "scatter wants a source of the index's shape"},
    {"i64[0], f32[2]", "scatter wants a source of the index's shape"},
    {"bf16[6,4], i64[]=0, 0", "the padding row of an embedding has no gradient"},
    {"cholesky(c128", "the diagonal is taken as complex, by convention"},
    {"eigh(", "one triangle counts, and the gradient is that of a symmetric matrix"},
    {"eigvalsh(", "the same"},
    {"linalg_eig(", "the phase of eigenvectors is a convention: see test_spectra.c"},
    {"_linalg_svd(f64[3,2], True", "the gradient of all singular vectors is refused"},
    {"f32[2,3,5,6], [0,2]", "the backward operator refuses no elements"},
};
static bool left_out(const char *op, const char *args)
{
    char text[1024];
    snprintf(text, sizeof text, "%s(%s)", op, args);
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++)
        if (strstr(text, samples[i].op))
            return true;
    return false;
}

/* Not a function of their arguments, or not for gradients. */
static const exception unset[] = {
    {"aten::detach", "cuts the graph"},
    {"aten::detach_", "cuts the graph"},
    {"aten::detach_copy", "cuts the graph"},
    {"aten::empty_like", "uninitialised"},
    {"aten::new_empty", "uninitialised"},
    {"aten::new_empty_strided", "uninitialised"},
    {"aten::resize_", "uninitialised"},
    {"aten::normal.*", "random numbers carry no gradient"},
    {"aten::_standard_gamma", "the gradient is that of the distribution, not of the sampler"},
    {"aten::_sample_dirichlet", "the gradient is that of the distribution, not of the sampler"},
    {"aten::histogram.bin_ct", "its edges follow the input, and count for nothing"},
};

/* Without a derivative, in the reference either. */
static const exception never[] = {
    {"aten::floor_divide", "the reference has none"},
    {"aten::floor_divide.Scalar", "the reference has none"},
    {"aten::floor_divide_.Tensor", "the reference has none"},
    {"aten::floor_divide_.Scalar", "the reference has none"},
    {"aten::remainder.Scalar_Tensor", "the reference has none"},
    {"aten::copy", "the reference has none"},
    {"aten::linalg_ldl_factor", "the reference has none"},
    {"aten::linalg_ldl_factor_ex", "the reference has none"},
    {"aten::linalg_ldl_solve", "the reference has none"},
    {"aten::logspace.Scalar_Tensor", "the reference has none"},
    {"aten::logspace.Tensor_Scalar", "the reference has none"},
    {"aten::logspace.Tensor_Tensor", "the reference has none"},
    {"aten::linspace.Scalar_Tensor", "the reference has none"},
    {"aten::linspace.Tensor_Scalar", "the reference has none"},
    {"aten::linspace.Tensor_Tensor", "the reference has none"},
    {"aten::scatter.value_reduce", "the reference has none"},
    {"aten::scatter_.value_reduce", "the reference has none"},
    {"aten::_unique2", "the reference has none"},
    {"aten::unique_dim", "the reference has none"},
    {"aten::unique_consecutive", "the reference has none"},
    {"aten::aminmax", "the reference has none"},
    {"aten::bincount", "the reference has none"},
    {"aten::nextafter", "the reference has none"},
    {"aten::nextafter_", "the reference has none"},
    {"aten::heaviside", "the reference has none"},
    {"aten::heaviside_", "the reference has none"},
    {"aten::special_bessel_*", "the reference has none"},
    {"aten::special_modified_bessel_*", "the reference has none"},
    {"aten::special_scaled_modified_bessel_*", "the reference has none"},
    {"aten::special_spherical_bessel_j0", "the reference has none"},
    {"aten::special_shifted_chebyshev_*", "the reference has none"},
    {"aten::special_chebyshev_*", "the reference has none"},
    {"aten::special_hermite_*", "the reference has none"},
    {"aten::special_laguerre_*", "the reference has none"},
    {"aten::special_legendre_*", "the reference has none"},
    {"aten::special_zeta.other_scalar", "the reference has none"},
    {"aten::geqrf", "the reference has none"},
    {"aten::set_*", "the reference has none"},
    {"aten::_fused_sgd_*", "a step of an optimiser"},
    {"aten::_fused_adam*", "a step of an optimiser"},
};
static bool listed(const exception *list, size_t n, const char *op)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(list[i].op, op) == 0 || (list[i].op[strlen(list[i].op) - 1] == '*' &&
                                            strncmp(list[i].op, op, strlen(list[i].op) - 1) == 0))
            return true;
    return false;
}
#define LISTED(list, op) listed(list, sizeof list / sizeof list[0], op)

/* ---- points ---- */

/* Where an operator is smooth, when that is not everywhere between the kinks at multiples of 1/8.
 */
static const struct {
    const char *name;
    double low, high;
} domains[] = {
    {"log", 0.3, 2.5},     {"log2", 0.3, 2.5},      {"log10", 0.3, 2.5},
    {"log1p", -0.6, 2.5},  {"sqrt", 0.3, 2.5},      {"rsqrt", 0.3, 2.5},
    {"pow", 0.3, 2.5},     {"acosh", 1.3, 2.5},     {"asin", -0.8, 0.8},
    {"acos", -0.8, 0.8},   {"atanh", -0.8, 0.8},    {"binary_cross_entropy", 0.1, 0.9},
    {"xlogy", 0.3, 2.5},   {"logit", 0.2, 0.8},     {"binary_cross_entropy_backward", 0.1, 0.9},
    {"lgamma", 0.3, 2.5},  {"kl_div", 0.3, 2.5},    {"digamma", 0.3, 2.5},
    {"erfinv", -0.8, 0.8}, {"bernoulli", 0.1, 0.9}, {"special_ndtri", 0.2, 0.8},
};

/* "sqrt" of "aten::sqrt_" and of "aten::sqrt.out" */
static bool is_called(const char *op, const char *name)
{
    const char *colon = strstr(op, "::");
    const char *start = colon ? colon + 2 : op;
    size_t n = strcspn(start, ".");
    n -= n > 1 && start[n - 1] == '_';
    return strlen(name) == n && strncmp(start, name, n) == 0;
}

/* Off the multiples of 1/8 by 0.02 to 0.05, by another amount for each element and argument, so
 * that no two are equal; then into the operator's domain. */
static double moved(const char *op, double v, int64_t k, int argument)
{
    double whole;
    double share = modf(0.618 * (double)(k + 1) + 0.377 * (double)(argument + 1), &whole);
    if (!isfinite(v))
        v = 0.5;
    v += 0.02 + 0.03 * share;
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++)
        if (is_called(op, domains[i].name))
            return domains[i].low +
                   (domains[i].high - domains[i].low) * (0.5 + 0.48 * sin(1.7 * v + 0.3 * share));
    return v;
}

static bool is_complex(const tn_tensor *t)
{
    return tn_dtype_is_complex((tn_dtype)t->dtype);
}

/* The same values, moved, dense, in float64 or complex128; requires grad. */
static tn_tensor *leaf(const char *op, tn_tensor *t, int argument)
{
    tn_tensor *x = NULL;
    tn_tensor_opts opts = tn_opts(is_complex(t) ? TN_DTYPE_C128 : TN_DTYPE_F64, TN_CPU);
    ASSERT_OK(tn_empty(t->sizes, t->ndim, &opts, TN_FORMAT_CONTIGUOUS, &x));
    bool on = tn_set_grad_enabled(false);
    ASSERT_OK(tn_copy_(x, t, false));
    tn_set_grad_enabled(on);
    double *values = x->data;
    for (int64_t k = 0; k < x->numel * (is_complex(t) ? 2 : 1); k++)
        values[k] = moved(op, values[k], k, argument);
    ASSERT_OK(tn_tensor_set_requires_grad(x, true));
    return x;
}

/* ---- an operator with its arguments, as a function of some of them ---- */

typedef struct subject {
    tn_op *op;
    tni_schema *schema;
    tn_value args[TNI_SCHEMA_MAX_ARGS];
    tn_tensor *inputs[MOST];           /* owned; those that require grad are checked */
    int argument[MOST], element[MOST]; /* which argument, which element of a list or -1 */
    int n;
} subject;

static void add_input(subject *s, const char *op, int argument, int e, tn_tensor *t)
{
    if (!t)
        return;
    if (!(tn_dtype_is_floating((tn_dtype)t->dtype) || is_complex(t)) ||
        t->device.type != TN_DEVICE_CPU)
        return;
    ASSERT(s->n < MOST);
    s->inputs[s->n] = leaf(op, t, argument + e + 1);
    s->argument[s->n] = argument;
    s->element[s->n++] = e;
}

static bool is_dtype(const tni_schema_type *type)
{
    return type->kind == TNI_TYPE_SCALAR_TYPE ||
           (type->kind == TNI_TYPE_OPTIONAL && is_dtype(type->children[0]));
}

static void subject_make(subject *s, const char *op, const char *args)
{
    char *text;
    memset(s, 0, sizeof *s);
    ASSERT_OK(tn_op_find(op, &s->op));
    ASSERT_OK(tn_op_schema(s->op, &text));
    ASSERT_OK(tni_schema_parse(text, &s->schema));
    tn_string_free(text);
    ASSERT_OK(tni_args_parse(s->schema, args, s->args));
    for (int i = 0; i < s->schema->nargs; i++) {
        tn_value *v = &s->args[i];
        if (v->tag == TN_TAG_TENSOR)
            add_input(s, op, i, -1, v->u.tensor);
        for (uint32_t e = 0; v->tag == TN_TAG_TENSOR_LIST && e < v->count; e++)
            add_input(s, op, i, (int)e, v->u.tensors[e]);
        if (v->tag == TN_TAG_INT && is_dtype(s->schema->args[i].type))
            v->u.i = tn_dtype_is_floating((tn_dtype)v->u.i)  ? TN_DTYPE_F64
                     : tn_dtype_is_complex((tn_dtype)v->u.i) ? TN_DTYPE_C128
                                                             : v->u.i;
    }
}

static void subject_clear(subject *s)
{
    for (int i = 0; i < s->schema->nargs; i++)
        tn_value_clear(&s->args[i]);
    for (int i = 0; i < s->n; i++)
        tn_tensor_unref(s->inputs[i]);
    tni_schema_free(s->schema);
}

/* The gradient of a sequence loss is that for normalised log probabilities, its first argument. */
static bool is_normalised(const subject *s, int a)
{
    const char *op = tn_op_name(s->op);
    return a == 0 && (is_called(op, "ctc_loss") || is_called(op, "_ctc_loss"));
}

/* Argument @p a with the inputs in their places; one that is written is a copy. */
static tn_status fill_in(const subject *s, tn_tensor *const *inputs, int a, tn_value *out)
{
    const tn_value *v = &s->args[a];
    tn_tensor *list[MOST], *copies[MOST];
    int n_copies = 0;
    tn_status status = TN_OK;
    tn_value filled = *v;
    for (uint32_t e = 0; v->tag == TN_TAG_TENSOR_LIST && e < v->count; e++)
        list[e] = v->u.tensors[e];
    for (int i = 0; status == TN_OK && i < s->n; i++) {
        tn_tensor *given = inputs[i];
        if (s->argument[i] != a)
            continue;
        if (s->schema->args[a].is_write || is_normalised(s, a)) {
            status = is_normalised(s, a) ? tn_log_softmax(given, -1, TN_DTYPE_NONE, &given)
                                         : tn_clone(given, TN_FORMAT_NONE, &given);
            if (status != TN_OK)
                break;
            copies[n_copies++] = given;
        }
        if (s->element[i] >= 0)
            list[s->element[i]] = given;
        else
            filled = tn_value_tensor(given);
    }
    if (v->tag == TN_TAG_TENSOR_LIST)
        filled = tn_value_tensors(list, v->count);
    if (status == TN_OK)
        status = tn_value_copy(&filled, out);
    while (n_copies > 0)
        tn_tensor_unref(copies[--n_copies]);
    return status;
}

static void add_results(const tn_value *v, tn_tensor **outputs, int64_t *n_outputs)
{
    if (v->tag == TN_TAG_TENSOR && v->u.tensor)
        outputs[(*n_outputs)++] = tn_tensor_ref(v->u.tensor);
    for (uint32_t e = 0; v->tag == TN_TAG_TENSOR_LIST && e < v->count; e++)
        if (v->u.tensors[e] && *n_outputs < TN_GRADCHECK_MAX_OUTPUTS)
            outputs[(*n_outputs)++] = tn_tensor_ref(v->u.tensors[e]);
}

static tn_status call(void *ctx, tn_tensor *const *inputs, int64_t n_inputs, tn_tensor **outputs,
                      int64_t *n_outputs)
{
    (void)n_inputs;
    const subject *s = ctx;
    tn_value args[TNI_SCHEMA_MAX_ARGS], rets[8];
    memset(args, 0, sizeof args);
    memset(rets, 0, sizeof rets);
    tn_status status = TN_OK;
    for (int i = 0; status == TN_OK && i < s->schema->nargs; i++)
        status = fill_in(s, inputs, i, &args[i]);
    tn_manual_seed(7);
    if (status == TN_OK)
        status = tn_op_call(s->op, args, s->schema->nargs, rets);
    for (int i = 0; status == TN_OK && i < tn_op_num_returns(s->op); i++)
        add_results(&rets[i], outputs, n_outputs);
    if (status == TN_OK && tn_op_num_returns(s->op) == 0)
        add_results(&args[0], outputs, n_outputs); /* the list that it wrote */
    for (int i = 0; i < s->schema->nargs; i++)
        tn_value_clear(&args[i]);
    for (int i = 0; i < 8; i++)
        tn_value_clear(&rets[i]);
    return status;
}

/* ---- one sample ---- */

typedef enum fate { CHECKED, CONSTANT, REFUSED, UNFIT, WRONG, LARGE, NOT_A_NUMBER, FATES } fate;

static void drop(tn_tensor **list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        tn_tensor_unref(list[i]);
}

/* What comes of a call, from its results. */
static fate judge(tn_tensor *const *results, int64_t n)
{
    fate found = CONSTANT;
    for (int64_t i = 0; i < n; i++) {
        const tn_tensor *t = results[i];
        if (t->device.type != TN_DEVICE_CPU)
            return UNFIT;
        if (tn_tensor_requires_grad(t))
            found = CHECKED;
    }
    for (int64_t i = 0; i < n; i++) {
        tn_tensor *sum = NULL;
        tn_scalar value = tn_int(0);
        if (results[i]->dtype != TN_DTYPE_F64 && results[i]->dtype != TN_DTYPE_C128)
            continue;
        if (found == CHECKED && !tn_tensor_requires_grad(results[i]))
            continue; /* takes no part */
        ASSERT_OK(tn_sum(results[i], TN_DTYPE_NONE, &sum));
        ASSERT_OK(tn_item(sum, &value));
        tn_tensor_unref(sum);
        if (!isfinite(value.v.f) || !isfinite(value.imag))
            found = NOT_A_NUMBER;
    }
    return found;
}

/* Call once; an argument that cannot have a gradient is told so, and the call repeated. */
static tn_status settle(subject *s, fate *out, int64_t *cost)
{
    for (;;) {
        tn_tensor *results[TN_GRADCHECK_MAX_OUTPUTS];
        int64_t n = 0, numbers = 0, given = 0;
        tn_status status = call(s, s->inputs, s->n, results, &n);
        if (status == TN_OK) {
            for (int64_t i = 0; i < n; i++)
                numbers += results[i]->numel;
            for (int i = 0; i < s->n; i++)
                given += s->inputs[i]->numel;
            *out = judge(results, n);
            drop(results, n);
            *cost = numbers * given;
            return TN_OK;
        }
        const char *said = strstr(tn_last_error(), "with respect to argument '");
        int i = 0;
        for (; said && i < s->n; i++) {
            const char *name = s->schema->args[s->argument[i]].name;
            said += i == 0 ? strlen("with respect to argument '") : 0;
            if (tn_tensor_requires_grad(s->inputs[i]) && strncmp(said, name, strlen(name)) == 0 &&
                said[strlen(name)] == '\'')
                break;
        }
        if (!said || i == s->n)
            return status;
        ASSERT_OK(tn_tensor_set_requires_grad(s->inputs[i], false));
    }
}

static bool wants_any(const subject *s)
{
    for (int i = 0; i < s->n; i++)
        if (tn_tensor_requires_grad(s->inputs[i]))
            return true;
    return false;
}

/* Whether the operator's declaration has a `jvp` line. */
static bool has_rule(const tn_op *op)
{
    for (int i = 0; i < tni_forward_n_rules; i++)
        if (op == &tni_builtin_ops[tni_forward_rules[i].op])
            return true;
    return false;
}

typedef enum order { FIRST, SECOND, THIRD, FORWARD } order;

/* Whether the last failure means that nobody wrote the derivative. */
static bool is_refusal(const tn_op *op, order what)
{
    if (what == FORWARD)
        return !has_rule(op) && strstr(tn_last_error(), "Trying to use forward AD");
    return strstr(tn_last_error(), "derivative for") &&
           strstr(tn_last_error(), "is not implemented");
}

static tn_status check_order(subject *s, order what)
{
    if (what == FORWARD)
        return forward_check(call, s, s->inputs, s->n);
    if (what == THIRD)
        return order_check(call, s, s->inputs, s->n, 3);
    return what == SECOND ? tn_gradgradcheck(call, s, s->inputs, s->n, NULL, NULL)
                          : tn_gradcheck(call, s, s->inputs, s->n, NULL);
}

static fate check_sample(const char *op, const char *args, order what)
{
    subject s;
    subject_make(&s, op, args);
    fate found = UNFIT;
    int64_t cost = 0;
    tn_status status = settle(&s, &found, &cost);
    if (status == TN_UNSUPPORTED && strstr(tn_last_error(), "derivative for"))
        found = REFUSED;
    else if (status != TN_OK || !wants_any(&s))
        found = UNFIT;
    else if (cost > LARGEST && found != UNFIT)
        found = LARGE;
    if (status == TN_OK && (found == CHECKED || (found == CONSTANT && what == FIRST))) {
        status = check_order(&s, what);
        bool is_later = what == SECOND || what == THIRD; /* what has a derivative has all */
        if (status != TN_OK && is_refusal(s.op, what) && !is_later) {
            found = REFUSED;
        } else if (status != TN_OK && (is_refusal(s.op, what) || !LISTED(follows, op))) {
            found = WRONG;
            test_wrong(__FILE__, __LINE__, "%s(%s): %s", op, args, tn_last_error());
        }
    }
    subject_clear(&s);
    return found;
}

/* ---- all of them ---- */

typedef struct tally {
    char op[96];
    int count[FATES];
} tally;

static tally tallies[2048];
static int n_tallies;

static tally *tally_of(const char *op)
{
    for (int i = n_tallies - 1; i >= 0; i--)
        if (strcmp(tallies[i].op, op) == 0)
            return &tallies[i];
    ASSERT(n_tallies < (int)(sizeof tallies / sizeof tallies[0]));
    tally *t = &tallies[n_tallies++];
    memset(t, 0, sizeof *t);
    snprintf(t->op, sizeof t->op, "%s", op);
    return t;
}

static bool is_out(const char *op)
{
    return strstr(op, ".out") || strstr(op, "_out");
}

static void check_all(order what)
{
    n_tallies = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK || is_out(s->op) || left_out(s->op, s->args))
            continue;
        const char *ops[] = {s->op, s->inplace};
        for (int j = 0; j < 2 && ops[j][0]; j++) {
            if (LISTED(unset, ops[j]) || (what != THIRD && LISTED(follows, ops[j])))
                continue;
            test_note("%s:%d: %s(%s)", s->file, s->line, ops[j], s->args);
            tally_of(ops[j])->count[check_sample(ops[j], s->args, what)]++;
        }
    }
    int total[FATES] = {0}, ops = 0;
    for (int i = 0; i < n_tallies; i++) {
        const int *n = tallies[i].count;
        printf("%-48s %3d checked %3d constant %3d refused %3d too large\n", tallies[i].op,
               n[CHECKED], n[CONSTANT], n[REFUSED], n[LARGE]);
        /* At least one sample is small enough, and where the function is defined. */
        EXPECT(n[LARGE] + n[NOT_A_NUMBER] == 0 || n[CHECKED] + n[CONSTANT] + n[REFUSED] > 0);
        /* What is refused is listed, and what is listed is refused, whatever derivative is meant.
         */
        if ((n[REFUSED] > 0) != LISTED(never, tallies[i].op))
            test_wrong(__FILE__, __LINE__, "%s: %d samples refused", tallies[i].op, n[REFUSED]);
        ops += n[CHECKED] > 0;
        for (int k = 0; k < FATES; k++)
            total[k] += n[k];
    }
    printf("%d operators: %d samples checked, %d constant, %d refused, %d without a floating "
           "argument or result, %d wrong, %d too large, %d not a number\n",
           ops, total[CHECKED], total[CONSTANT], total[REFUSED], total[UNFIT], total[WRONG],
           total[LARGE], total[NOT_A_NUMBER]);
    EXPECT(total[CHECKED] > 500);
}

TEST(gradients_are_the_derivatives)
{
    check_all(FIRST);
}

TEST(gradients_of_gradients_are_the_second_derivatives)
{
    check_all(SECOND);
}

TEST(third_derivatives_are_those_of_the_second_ones)
{
    check_all(THIRD);
}

TEST(tangents_are_the_derivatives_along_a_direction)
{
    check_all(FORWARD);
}
