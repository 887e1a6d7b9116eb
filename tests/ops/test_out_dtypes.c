/* SPDX-License-Identifier: MIT */
/* The matrix of given results: every out variant over every sample, computed in each inexact dtype
 * and given a result of each other one. What is written is the function's result, cast; or, where
 * the operator computes in the dtype that it writes, the function's with that dtype. A result that
 * cannot be cast is refused, and then nothing was written. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "ops/sampling.h"
#include "tenon/ops.h"

static const tn_dtype inexact[] = {TN_DTYPE_F32,  TN_DTYPE_F64, TN_DTYPE_F16,
                                   TN_DTYPE_BF16, TN_DTYPE_C64, TN_DTYPE_C128};
enum { N_INEXACT = sizeof inexact / sizeof *inexact };

static bool is_inexact(tn_dtype d)
{
    return tn_dtype_is_floating(d) || tn_dtype_is_complex(d);
}

static tn_tensor *in_dtype(tn_tensor *t, void *arg)
{
    const tn_dtype *change = arg; /* from, to */
    if (t->dtype != change[0] || t->device.type != TN_DEVICE_CPU)
        return tn_tensor_ref(t);
    return sample_relaid(t, NULL, change[1]);
}

/* The dtype of the first inexact tensor among the arguments. */
static tn_dtype main_dtype(const bundle *b)
{
    for (int i = 0; i < b->n; i++)
        for (uint32_t k = 0; k < (b->v[i].tag == TN_TAG_TENSOR_LIST ? b->v[i].count : 1u); k++) {
            const tn_tensor *t = b->v[i].tag == TN_TAG_TENSOR_LIST ? b->v[i].u.tensors[k]
                                 : b->v[i].tag == TN_TAG_TENSOR    ? b->v[i].u.tensor
                                                                   : NULL;
            if (t && is_inexact((tn_dtype)t->dtype))
                return (tn_dtype)t->dtype;
        }
    return TN_DTYPE_NONE;
}

/* Numbers that are drawn in another dtype are other numbers; nobody wrote others. */
static bool has_no_values(const char *op)
{
    static const char *const parts[] = {"rand",        "normal",   "bernoulli", "multinomial",
                                        "uniform",     "poisson",  "binomial",  "_standard_gamma",
                                        "dirichlet",   "dropout",  "rrelu",     "cauchy",
                                        "exponential", "geometric"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(op, parts[i]))
            return true;
    return sample_uninitialised(op);
}

/* What says that the dtype is the reason: each operator in the words of the reference. */
static bool is_about_the_dtype(const char *text)
{
    static const char *const parts[] = {"can't be cast",
                                        "dtype",
                                        "scalar type",
                                        "scalar_type",
                                        "expects a complex",
                                        "expects a floating",
                                        "Expected out type",
                                        "not implemented for",
                                        "not supported for complex",
                                        "floating-point and boolean"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strstr(text, parts[i]))
            return true;
    return false;
}

/* Are these, cast to the dtype of @p given, its values? */
static bool same_values(tn_tensor *given, tn_tensor *wanted)
{
    tn_tensor *cast = NULL;
    if (given->ndim != wanted->ndim || given->numel != wanted->numel)
        return false;
    tn_tensor *made = sample_relaid(given, NULL, TN_DTYPE_C128);
    cast = sample_relaid(wanted, NULL, (tn_dtype)given->dtype);
    tn_tensor *values = sample_relaid(cast, NULL, TN_DTYPE_C128);
    const double *p = made->data, *q = values->data;
    bool same = true;
    for (int64_t i = 0; same && i < 2 * made->numel; i++)
        same = p[i] == q[i] || (isnan(p[i]) && isnan(q[i]));
    tn_tensor_unref(cast);
    tn_tensor_unref(made);
    tn_tensor_unref(values);
    return same;
}

/* The function's result, with this dtype where it takes one: factories, and what computes in the
 * dtype that it writes. NULL: it takes none, or not that. */
static tn_tensor *computed_in(const tni_sample *s, const bundle *args, tn_dtype dtype, int which)
{
    tni_schema *schema = sample_schema(s->op);
    bundle b = bundle_copy(args), x = {0};
    tn_tensor *found = NULL;
    for (int i = 0; i < schema->nargs; i++)
        if (strcmp(schema->args[i].name, "dtype") == 0) {
            b.v[i] = tn_value_int(dtype);
            if (sample_call(s->op, &b, &x) == TN_OK)
                found = tn_tensor_ref(x.v[which].u.tensor);
        }
    bundle_clear(&x);
    bundle_clear(&b);
    tni_schema_free(schema);
    return found;
}

static void expect_cast(const tni_sample *s, const bundle *args, const bundle *results, int which,
                        tn_dtype dtype, tn_dtype change[2])
{
    bundle b = sample_arguments_of(s, s->out), y = {0};
    tni_schema *schema = sample_schema(s->out);
    tn_tensor *out = NULL, *wanted = results->v[which].u.tensor;
    uint32_t version = 0;
    char what[96];
    if (change[0] != TN_DTYPE_NONE)
        bundle_reform(&b, in_dtype, change);
    for (int k = 0, r = 0; k < schema->nargs; k++)
        if (schema->args[k].is_out && r < results->n) {
            tn_tensor *like = results->v[r].u.tensor, *room = NULL;
            tn_dtype own = r == which ? dtype : (tn_dtype)like->dtype;
            ASSERT_OK(tni_tensor_new(like->ndim, like->sizes, NULL, own, TN_CPU, &room));
            out = r++ == which ? room : out;
            b.v[k] = tn_value_take_tensor(room);
        }
    snprintf(what, sizeof what, "of %s into %s",
             change[0] == TN_DTYPE_NONE ? "no tensor" : tn_dtype_name(change[1]),
             tn_dtype_name(dtype));
    sample_note(s, what);
    tn_status status = sample_call(s->out, &b, &y);
    if (status != TN_OK) {
        if (!is_about_the_dtype(tn_last_error()))
            test_wrong(__FILE__, __LINE__, "refused: %s", tn_last_error());
        EXPECT_OK(tn_tensor_version(out, &version));
        EXPECT_EQ_INT(version, 0);
    } else if (!has_no_values(s->op)) {
        bool loses = tn_dtype_is_complex((tn_dtype)wanted->dtype) && !tn_dtype_is_complex(dtype);
        tn_tensor *other = computed_in(s, args, dtype, which);
        if ((loses || !same_values(out, wanted)) && (!other || !same_values(out, other)))
            test_wrong(__FILE__, __LINE__, "%s",
                       loses ? "complex numbers in a real tensor" : "other values");
        tn_tensor_unref(other);
    }
    tni_schema_free(schema);
    bundle_clear(&y);
    bundle_clear(&b);
}

static bool all_are_tensors(const bundle *results)
{
    for (int r = 0; r < results->n; r++)
        if (results->v[r].tag != TN_TAG_TENSOR || !results->v[r].u.tensor ||
            results->v[r].u.tensor->device.type != TN_DEVICE_CPU)
            return false;
    return true;
}

TEST(a_result_given_in_another_dtype_is_the_functions_cast)
{
    int ran = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (s->status != TN_OK || !s->out[0])
            continue;
        bundle plain = sample_arguments(s);
        tn_dtype from = main_dtype(&plain);
        bundle_clear(&plain);
        for (int d = 0; d < (from == TN_DTYPE_NONE ? 1 : N_INEXACT); d++) {
            tn_dtype change[2] = {from, inexact[d]};
            bundle a = sample_arguments(s), x = {0};
            if (from != TN_DTYPE_NONE)
                bundle_reform(&a, in_dtype, change);
            if (sample_call(s->op, &a, &x) == TN_OK && all_are_tensors(&x))
                for (int r = 0; r < x.n; r++) {
                    tn_dtype made = (tn_dtype)x.v[r].u.tensor->dtype;
                    for (int k = 0; is_inexact(made) && k < N_INEXACT; k++)
                        if (inexact[k] != made) {
                            expect_cast(s, &a, &x, r, inexact[k], change);
                            ran++;
                        }
                }
            bundle_clear(&x);
            bundle_clear(&a);
        }
    }
    EXPECT(ran > 10000);
}
