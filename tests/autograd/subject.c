/* SPDX-License-Identifier: MIT */
/* A sample of an operator as a function of its floating arguments: see subject.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "autograd/subject.h"
#include "core/tensor.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/gradcheck.h"
#include "tenon/ops.h"

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

/* ---- an operator with its arguments ---- */

static void add_input(subject *s, const char *op, int argument, int e, tn_tensor *t)
{
    if (!t)
        return;
    if (!(tn_dtype_is_floating((tn_dtype)t->dtype) || is_complex(t)) ||
        t->device.type != TN_DEVICE_CPU)
        return;
    ASSERT(s->n < SUBJECT_MOST);
    s->inputs[s->n] = leaf(op, t, argument + e + 1);
    s->argument[s->n] = argument;
    s->element[s->n++] = e;
}

static bool is_dtype(const tni_schema_type *type)
{
    return type->kind == TNI_TYPE_SCALAR_TYPE ||
           (type->kind == TNI_TYPE_OPTIONAL && is_dtype(type->children[0]));
}

void subject_make(subject *s, const char *op, const char *args)
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

void subject_clear(subject *s)
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
    tn_tensor *list[SUBJECT_MOST], *copies[SUBJECT_MOST];
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

tn_status subject_call_with(const subject *s, tn_tensor *const *inputs, tn_value *args,
                            tn_tensor **outputs, int64_t *n_outputs)
{
    tn_value rets[8];
    memset(args, 0, TNI_SCHEMA_MAX_ARGS * sizeof *args);
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
    for (int i = 0; i < 8; i++)
        tn_value_clear(&rets[i]);
    return status;
}

tn_status subject_call(void *ctx, tn_tensor *const *inputs, int64_t n_inputs, tn_tensor **outputs,
                       int64_t *n_outputs)
{
    (void)n_inputs;
    const subject *s = ctx;
    tn_value args[TNI_SCHEMA_MAX_ARGS];
    tn_status status = subject_call_with(s, inputs, args, outputs, n_outputs);
    for (int i = 0; i < s->schema->nargs; i++)
        tn_value_clear(&args[i]);
    return status;
}

/* ---- one sample ---- */

void subject_drop(tn_tensor **list, int64_t n)
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

/* The first input that the last refusal was about: the message names its argument, or says that the
 * operator has no derivative though it has one by other arguments. */
static int without_gradient(subject *s)
{
    static const char names[] = "with respect to argument '";
    const char *said = strstr(tn_last_error(), names);
    bool unsaid = strstr(tn_last_error(), "the derivative for '") != NULL;
    for (int i = 0; (said || unsaid) && i < s->n; i++) {
        const char *name = s->schema->args[s->argument[i]].name;
        size_t length = strlen(name);
        if (!tn_tensor_requires_grad(s->inputs[i]))
            continue;
        if (said && strncmp(said + sizeof names - 1, name, length) == 0 &&
            said[sizeof names - 1 + length] == '\'')
            return i;
        if (unsaid && s->n > 1) {
            tn_tensor *results[TN_GRADCHECK_MAX_OUTPUTS];
            int64_t n = 0;
            ASSERT_OK(tn_tensor_set_requires_grad(s->inputs[i], false));
            tn_status status = subject_call(s, s->inputs, s->n, results, &n);
            ASSERT_OK(tn_tensor_set_requires_grad(s->inputs[i], true));
            subject_drop(results, n);
            if (status == TN_OK)
                return i;
        }
    }
    return -1;
}

tn_status subject_settle(subject *s, fate *out, int64_t *cost)
{
    for (;;) {
        tn_tensor *results[TN_GRADCHECK_MAX_OUTPUTS];
        int64_t n = 0, numbers = 0, given = 0;
        tn_status status = subject_call(s, s->inputs, s->n, results, &n);
        if (status == TN_OK) {
            for (int64_t i = 0; i < n; i++)
                numbers += results[i]->numel;
            for (int i = 0; i < s->n; i++)
                given += s->inputs[i]->numel;
            *out = judge(results, n);
            subject_drop(results, n);
            *cost = numbers * given;
            return TN_OK;
        }
        int i = without_gradient(s);
        if (i < 0)
            return status;
        ASSERT_OK(tn_tensor_set_requires_grad(s->inputs[i], false));
    }
}

bool subject_wants_any(const subject *s)
{
    for (int i = 0; i < s->n; i++)
        if (tn_tensor_requires_grad(s->inputs[i]))
            return true;
    return false;
}
