/* SPDX-License-Identifier: MIT */
/* No gradient is silently wrong because something was written after the call: for each sample of
 * each operator, each tensor that it was given and each that it gave is written in turn, without
 * recording, before the backward pass. Either that pass is refused, or the gradients are
 * those of a pass where nothing was written: the node did not need what was written. What was
 * released, or cannot be had for want of memory, is an error in the same way. */
#include <stdio.h>
#include <string.h>

#include "harness/test.h"
#include "autograd/subject.h"
#include "core/tensor.h"
#include "gen/samples.h"
#include "tenon/autograd.h"
#include "tenon/gradcheck.h"
#include "tenon/ops.h"

enum { PLACES = 2 * SUBJECT_MOST + TN_GRADCHECK_MAX_OUTPUTS };

/* A call with its results, and everything of it that can be written. */
typedef struct recorded {
    subject s;
    tn_value args[TNI_SCHEMA_MAX_ARGS];
    tn_tensor *results[TN_GRADCHECK_MAX_OUTPUTS]; /* owned */
    int64_t n_results;
    tn_tensor *places[PLACES]; /* borrowed */
    char names[PLACES][64];
    int n_places;
    tn_tensor *inputs[SUBJECT_MOST];              /* borrowed: those that require grad */
    tn_tensor *outputs[TN_GRADCHECK_MAX_OUTPUTS]; /* the same of the results */
    tn_tensor *seeds[TN_GRADCHECK_MAX_OUTPUTS];   /* owned: gradients of these */
    int64_t n_inputs, n_outputs;
} recorded;

static void add_place(recorded *r, tn_tensor *t, const char *name, int element)
{
    if (!t || t->device.type != TN_DEVICE_CPU)
        return;
    ASSERT(r->n_places < PLACES);
    snprintf(r->names[r->n_places], sizeof r->names[0], element < 0 ? "%s" : "%s[%d]", name,
             element);
    r->places[r->n_places++] = t;
}

static void add_places(recorded *r, const tn_value *v, const char *name)
{
    if (v->tag == TN_TAG_TENSOR)
        add_place(r, v->u.tensor, name, -1);
    for (uint32_t e = 0; v->tag == TN_TAG_TENSOR_LIST && e < v->count; e++)
        add_place(r, v->u.tensors[e], name, (int)e);
}

/* The gradient that a result is given, another number for each element. */
static tn_tensor *seed(const tn_tensor *t)
{
    tn_tensor *g = NULL;
    tn_tensor_opts opts = tn_opts((tn_dtype)t->dtype, TN_CPU);
    ASSERT_OK(tn_empty(t->sizes, t->ndim, &opts, TN_FORMAT_CONTIGUOUS, &g));
    double *values = g->data;
    ASSERT(t->dtype == TN_DTYPE_F64 || t->dtype == TN_DTYPE_C128);
    for (int64_t k = 0; k < g->numel * (t->dtype == TN_DTYPE_C128 ? 2 : 1); k++)
        values[k] = 0.3 + 0.17 * (double)(k % 11);
    return g;
}

/* Whether the sample can be recorded; only then must it be cleared. */
static bool recorded_make(recorded *r, const char *op, const char *args)
{
    memset(r, 0, sizeof *r);
    fate found = UNFIT;
    int64_t cost = 0;
    subject_make(&r->s, op, args);
    tn_status status = subject_settle(&r->s, &found, &cost);
    if (status != TN_OK || found != CHECKED || !subject_wants_any(&r->s)) {
        subject_clear(&r->s);
        return false;
    }
    ASSERT_OK(subject_call_with(&r->s, r->s.inputs, r->args, r->results, &r->n_results));
    for (int i = 0; i < r->s.schema->nargs; i++)
        add_places(r, &r->args[i], r->s.schema->args[i].name);
    for (int64_t i = 0; i < r->n_results; i++)
        add_place(r, r->results[i], "result", (int)i);
    for (int i = 0; i < r->s.n; i++)
        if (tn_tensor_requires_grad(r->s.inputs[i]))
            r->inputs[r->n_inputs++] = r->s.inputs[i];
    for (int64_t i = 0; i < r->n_results; i++)
        if (tn_tensor_requires_grad(r->results[i])) {
            r->seeds[r->n_outputs] = seed(r->results[i]);
            r->outputs[r->n_outputs++] = r->results[i];
        }
    return true;
}

static void recorded_clear(recorded *r)
{
    subject_drop(r->results, r->n_results);
    subject_drop(r->seeds, r->n_outputs);
    for (int i = 0; i < r->s.schema->nargs; i++)
        tn_value_clear(&r->args[i]);
    subject_clear(&r->s);
}

/* Other values, of the kind that was there. A tensor that repeats elements cannot be written. */
static tn_status change(tn_tensor *t)
{
    tn_dtype dtype = (tn_dtype)t->dtype;
    tn_tensor *most = NULL;
    tn_scalar top = tn_int(0);
    if (dtype == TN_DTYPE_BOOL)
        return tn_logical_not_(t);
    if (tn_dtype_is_floating(dtype) || tn_dtype_is_complex(dtype)) {
        tn_status status = tn_mul_scalar_(t, tn_float(1.25));
        return status == TN_OK ? tn_add_scalar_(t, tn_float(0.4), tn_int(1)) : status;
    }
    if (t->numel == 0)
        return tn_zero_(t);
    ASSERT_OK(tn_max(t, &most)); /* indices stay in range: each becomes another one */
    ASSERT_OK(tn_item(most, &top));
    tn_tensor_unref(most);
    tn_status status = tn_add_scalar_(t, tn_int(1), tn_int(1));
    return status == TN_OK ? tn_remainder_scalar_(t, tn_int(top.v.i > 0 ? top.v.i + 1 : 1))
                           : status;
}

typedef enum manner { ONCE, KEEPING, AGAIN } manner; /* the graph is released, kept, recorded */

/* The gradients of what requires grad, one for each such input, NULL where it has none. */
static tn_status gradients(const recorded *r, manner how, tn_tensor **out, int64_t *n_out)
{
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.allow_unused = TN_BOOL_TRUE;
    opts.retain_graph = how == ONCE ? TN_BOOL_FALSE : TN_BOOL_TRUE;
    opts.create_graph = how == AGAIN ? TN_BOOL_TRUE : TN_BOOL_FALSE;
    tn_status status =
        tn_grad(r->outputs, r->n_outputs, r->inputs, r->n_inputs, r->seeds, &opts, out);
    *n_out = status == TN_OK ? r->n_inputs : 0;
    return status;
}

/* To rounding: where a view's history was rebuilt, sums are taken in another order. */
static bool is_same(tn_tensor *a, tn_tensor *b)
{
    if (!a || !b)
        return a == b;
    bool same = false;
    ASSERT_OK(tn_allclose(a, b, 1e-10, 1e-12, true, &same));
    return same;
}

typedef struct count {
    int refused, unneeded, unwritable;
} count;

/* Write the @p place of a fresh call, then ask for its gradients. */
static void check_place(const char *op, const char *args, int place, manner how,
                        tn_tensor *const *wanted, int64_t n_wanted, count *counts)
{
    recorded r;
    tn_tensor *found[SUBJECT_MOST];
    int64_t n_found = 0;
    ASSERT(recorded_make(&r, op, args));
    bool on = tn_set_grad_enabled(false);
    tn_status written = change(r.places[place]);
    tn_set_grad_enabled(on);
    tn_status status = written == TN_OK ? gradients(&r, how, found, &n_found) : TN_OK;
    const char *name = r.names[place];
    if (written != TN_OK) {
        counts->unwritable++;
    } else if (status != TN_OK) {
        counts->refused++;
        if (!strstr(tn_last_error(), "has been modified by an inplace operation") &&
            !strstr(tn_last_error(), "has been modified inplace"))
            test_wrong(__FILE__, __LINE__, "%s(%s), %s written: %s", op, args, name,
                       tn_last_error());
    } else {
        counts->unneeded++;
        for (int64_t i = 0; i < n_wanted; i++)
            if (!is_same(wanted[i], found[i]))
                test_wrong(__FILE__, __LINE__, "%s(%s), %s written: gradient %d is another", op,
                           args, name, (int)i);
    }
    printf("  %s: %s\n", name,
           written != TN_OK  ? "cannot be written"
           : status != TN_OK ? "refused"
                             : "not needed");
    subject_drop(found, n_found);
    recorded_clear(&r);
}

static void check_call(const char *op, const char *args, manner how, count *counts)
{
    recorded r;
    tn_tensor *wanted[SUBJECT_MOST];
    int64_t n_wanted = 0;
    if (!recorded_make(&r, op, args))
        return;
    int n = r.n_places;
    tn_status status = gradients(&r, how, wanted, &n_wanted);
    recorded_clear(&r);
    if (status != TN_OK) /* a derivative that the sample does not have */
        return;
    printf("%s(%s)\n", op, args);
    for (int place = 0; place < n; place++)
        check_place(op, args, place, how, wanted, n_wanted, counts);
    subject_drop(wanted, n_wanted);
}

static bool is_usable(const tni_sample *s)
{
    return s->status == TN_OK && !strstr(s->op, ".out") && !strstr(s->op, "_out");
}

static void check_all(manner how)
{
    count counts = {0};
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (!is_usable(s))
            continue;
        const char *ops[] = {s->op, s->inplace};
        for (int j = 0; j < 2 && ops[j][0]; j++) {
            test_note("%s:%d: %s(%s)", s->file, s->line, ops[j], s->args);
            check_call(ops[j], s->args, how, &counts);
        }
    }
    printf("%d writes refused, %d not needed, %d not possible\n", counts.refused, counts.unneeded,
           counts.unwritable);
    EXPECT(counts.refused > 1000);
    EXPECT(counts.unneeded > 1000);
}

TEST(what_is_written_after_a_call_is_noticed_or_not_needed)
{
    check_all(ONCE);
}

TEST(what_is_written_after_a_call_is_noticed_where_gradients_are_recorded)
{
    check_all(AGAIN);
}

/* ---- graphs that were run, and memory that runs out ---- */

/* One sample of each operator will do. */
static bool is_first(int sample)
{
    return sample == 0 || strcmp(tni_samples[sample].op, tni_samples[sample - 1].op) != 0;
}

TEST(a_graph_that_was_run_is_refused_or_gives_the_same_again)
{
    int refused = 0, same = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        recorded r;
        tn_tensor *first[SUBJECT_MOST], *second[SUBJECT_MOST];
        int64_t n = 0, n_second = 0;
        if (!is_usable(s))
            continue;
        test_note("%s:%d: %s(%s)", s->file, s->line, s->op, s->args);
        if (!recorded_make(&r, s->op, s->args))
            continue;
        if (gradients(&r, ONCE, first, &n) == TN_OK) {
            tn_status status = gradients(&r, ONCE, second, &n_second);
            EXPECT(status == TN_OK ||
                   strstr(tn_last_error(), "backward through the graph a second"));
            for (int64_t k = 0; k < n_second; k++)
                EXPECT(is_same(first[k], second[k]));
            refused += status != TN_OK;
            same += status == TN_OK;
        }
        subject_drop(first, n);
        subject_drop(second, n_second);
        recorded_clear(&r);
    }
    printf("%d refused, %d the same\n", refused, same);
    EXPECT(refused > 500);
    EXPECT(same > 100);
}

static void check_memory(const char *op, const char *args, manner how)
{
    recorded r;
    tn_tensor *made[SUBJECT_MOST];
    int64_t n = 0;
    if (!recorded_make(&r, op, args))
        return;
    bool can = gradients(&r, how, made, &n) == TN_OK;
    subject_drop(made, n);
    int64_t before = tni_test_live;
    tn_status rc = TN_OK;
    if (can)
        WITH_EACH_ALLOCATION_FAILING(rc)
        {
            rc = gradients(&r, how, made, &n);
            subject_drop(made, n);
            EXPECT(rc == TN_OK || rc == TN_NOMEM);
            EXPECT(tni_test_live == before);
        }
    recorded_clear(&r);
}

TEST(a_pass_for_which_memory_runs_out_fails)
{
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample *s = &tni_samples[i];
        if (!is_usable(s) || !is_first(i))
            continue;
        test_note("%s:%d: %s(%s)", s->file, s->line, s->op, s->args);
        check_memory(s->op, s->args, KEEPING);
        check_memory(s->op, s->args, AGAIN);
    }
}
