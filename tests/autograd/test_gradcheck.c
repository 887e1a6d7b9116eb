/* SPDX-License-Identifier: MIT */
/* Every derivative, first, second, third and in forward mode, beside difference quotients: each
 * sample of each operator, its floating arguments in float64, at points where the function has a
 * derivative. The in-place variants too, on a copy of what they write. Values at other points are
 * for the golden data (tests/ops/test_golden.c); here the oracle is the definition. */
#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "autograd/forward.h"
#include "autograd/forward_check.h"
#include "autograd/order_check.h"
#include "autograd/subject.h"
#include "gen/samples.h"
#include "tenon/autograd.h"
#include "tenon/dispatch.h"
#include "tenon/gradcheck.h"
#include "tenon/ops.h"

enum { LARGEST = 250000 };

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
    {"aten::_aminmax", "the reference has none"},
    {"aten::_aminmax.dim", "the reference has none"},
    {"aten::embedding_renorm", "the reference has none"},
    {"aten::embedding_renorm_", "the reference has none"},
    {"aten::bincount", "the reference has none"},
    {"aten::nextafter", "the reference has none"},
    {"aten::nextafter_", "the reference has none"},
    {"aten::heaviside", "the reference has none"},
    {"aten::heaviside_", "the reference has none"},
    {"aten::special_airy_ai", "the reference has none"},
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
    {"tenon::_eigenvalues", "called where nobody asks for one, see linalg_eigvals"},
    {"tenon::_least_squares", "called where nobody asks for one, see linalg_lstsq"},
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
        return forward_check(subject_call, s, s->inputs, s->n);
    if (what == THIRD)
        return order_check(subject_call, s, s->inputs, s->n, 3);
    return what == SECOND ? tn_gradgradcheck(subject_call, s, s->inputs, s->n, NULL, NULL)
                          : tn_gradcheck(subject_call, s, s->inputs, s->n, NULL);
}

static fate check_sample(const char *op, const char *args, order what)
{
    subject s;
    subject_make(&s, op, args);
    fate found = UNFIT;
    int64_t cost = 0;
    tn_status status = subject_settle(&s, &found, &cost);
    if (status == TN_UNSUPPORTED && strstr(tn_last_error(), "derivative for"))
        found = REFUSED;
    else if (status != TN_OK || !subject_wants_any(&s))
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
