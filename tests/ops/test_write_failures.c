/* SPDX-License-Identifier: MIT */
/* tests/ops/test_write_failures.c: every operator that writes an argument, called from its samples
 * while each allocation of the call fails in turn, with gradients recorded and with tangents, on
 * tensors, on views, on duals. After a call that failed each tensor is as it was, or as a call that
 * succeeds leaves it: its elements, its sizes, its gradient and its tangent. Or, when it is
 * neither, whoever asks for what was lost is told. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include "base/alloc.h"
#include "ops/sampling.h"
#include "tenon/autograd.h"
#include "tenon/forward.h"
#include "tenon/ops.h"

enum { MOST = 16, LARGEST = 200, SAMPLES = 1, STATE = 16384 };

typedef struct way {
    const char *name;
    bool recorded, on_view, dual_self, dual_others;
    bool deep; /* with so many dimensions that they need memory of their own */
} way;
static const way ways[] = {
    {"recorded", .recorded = true},
    {"recorded, on a view", .recorded = true, .on_view = true},
    {"with a tangent", .dual_self = true, .dual_others = true},
    {"with a tangent, on a view", .dual_self = true, .dual_others = true, .on_view = true},
    {"beside tangents", .dual_others = true},
    {"beside tangents, on a view", .dual_others = true, .on_view = true},
    {"recorded, with a tangent", .recorded = true, .dual_self = true, .dual_others = true},
    {"recorded, with a tangent, on a view", true, true, true, true, false},
    {"recorded, deep", .recorded = true, .deep = true},
    {"recorded, on a view, deep", .recorded = true, .on_view = true, .deep = true},
    {"with a tangent, deep", .dual_self = true, .dual_others = true, .deep = true},
    {"with a tangent, on a view, deep", false, true, true, true, true},
};

/* ---- a call in the making ---- */

/* The same elements behind dimensions of one. */
static tn_tensor *deepened(tn_tensor *t)
{
    enum { DEEP = 9 };
    int64_t sizes[DEEP];
    tn_tensor *made = NULL;
    if (t->ndim >= DEEP)
        return tn_tensor_ref(t);
    for (int d = 0; d < DEEP; d++)
        sizes[d] = d < DEEP - t->ndim ? 1 : t->sizes[d - (DEEP - t->ndim)];
    ASSERT_OK(tn_reshape(t, sizes, DEEP, &made));
    return made;
}

typedef struct scene {
    const way *way;
    bundle args;
    tn_tensor *leaves[MOST];              /* owned; what requires grad */
    tn_tensor *roots[MOST], *given[MOST]; /* owned; what is written, and what shows it */
    int n_leaves, n_written;
    bool written; /* of the argument being made */
} scene;

static bool may_move(const tn_tensor *t)
{
    return tn_dtype_is_floating((tn_dtype)t->dtype) || tn_dtype_is_complex((tn_dtype)t->dtype);
}

static tn_tensor *with_tangent(tn_tensor *t)
{
    tn_tensor *along = NULL, *dual = NULL;
    ASSERT_OK(tn_full_like(t, tn_float(0.5), NULL, TN_FORMAT_PRESERVE, &along));
    ASSERT_OK(tn_make_dual(t, along, &dual));
    tn_tensor_unref(along);
    tn_tensor_unref(t);
    return dual;
}

static tn_tensor *make_argument(tn_tensor *t, void *arg)
{
    scene *s = arg;
    const way *w = s->way;
    tn_tensor *x = NULL, *made = NULL;
    bool inexact = may_move(t);
    if (w->deep && s->written) {
        tn_tensor *deep = deepened(t);
        ASSERT_OK(tn_clone(deep, TN_FORMAT_PRESERVE, &x));
        tn_tensor_unref(deep);
    } else {
        ASSERT_OK(tn_clone(t, TN_FORMAT_PRESERVE, &x));
    }
    if (inexact && w->recorded && s->n_leaves < MOST) {
        ASSERT_OK(tn_tensor_set_requires_grad(x, true));
        s->leaves[s->n_leaves++] = tn_tensor_ref(x);
    }
    if (!s->written)
        return inexact && w->dual_others ? with_tangent(x) : x;
    ASSERT_OK(tn_clone(x, TN_FORMAT_PRESERVE, &made));
    tn_tensor_unref(x);
    if (inexact && w->dual_self)
        made = with_tangent(made);
    ASSERT(s->n_written < MOST);
    s->roots[s->n_written] = tn_tensor_ref(made);
    if (w->on_view) {
        tn_tensor *view = NULL;
        ASSERT_OK(tn_alias(made, &view));
        tn_tensor_unref(made);
        made = view;
    }
    s->given[s->n_written++] = tn_tensor_ref(made);
    return made;
}

static void set_up(scene *s, const way *w, const tni_sample *sample, const tni_schema *schema)
{
    *s = (scene){.way = w, .args = sample_arguments(sample)};
    for (int i = 0; i < s->args.n; i++) {
        bundle one = {.v = {s->args.v[i]}, .n = 1};
        s->written = schema->args[i].is_write;
        bundle_reform(&one, make_argument, s);
        s->args.v[i] = one.v[0];
    }
}

static void drop(tn_tensor **list, int n)
{
    for (int i = 0; i < n; i++)
        tn_tensor_unref(list[i]);
}

static void clear(scene *s)
{
    bundle_clear(&s->args);
    drop(s->leaves, s->n_leaves);
    drop(s->roots, s->n_written);
    drop(s->given, s->n_written);
}

/* ---- what can be seen of what is written ---- */

typedef struct state {
    unsigned char bytes[STATE];
    size_t n;
    bool lost; /* something was refused because a write was lost */
} state;

static void put(state *s, const void *bytes, size_t n)
{
    ASSERT(s->n + n <= STATE);
    if (n)
        memcpy(s->bytes + s->n, bytes, n);
    s->n += n;
}

static void put_refusal(state *s, tn_status status)
{
    s->lost = s->lost || strstr(tn_last_error(), "of that write is not known");
    put(s, &status, sizeof status);
}

static void put_elements(state *s, tn_tensor *t)
{
    tn_tensor *plain = NULL, *dense = NULL;
    int64_t none = t ? t->ndim : -1;
    put(s, &none, sizeof none);
    if (!t)
        return;
    put(s, t->sizes, (size_t)t->ndim * sizeof *t->sizes);
    ASSERT_OK(tn_detach(t, &plain));
    ASSERT_OK(tn_clone(plain, TN_FORMAT_CONTIGUOUS, &dense));
    put(s, dense->data, (size_t)dense->numel * tn_dtype_size((tn_dtype)dense->dtype));
    tn_tensor_unref(plain);
    tn_tensor_unref(dense);
}

static void put_tangent(state *s, tn_tensor *t)
{
    tn_tensor *tangent = NULL, *zeros = NULL;
    tn_status status = tn_tensor_tangent(t, &tangent);
    if (status != TN_OK) {
        put_refusal(s, status);
        return;
    }
    if (!tangent && may_move(t)) /* the same */
        ASSERT_OK(tn_zeros_like(t, NULL, TN_FORMAT_NONE, &zeros));
    put_elements(s, tangent ? tangent : zeros);
    tn_tensor_unref(tangent);
    tn_tensor_unref(zeros);
}

/* The sum of the elements, or of their squares' sizes when they are complex. */
static tn_status sum_of(tn_tensor *t, tn_tensor **out)
{
    TN_AUTO(tn_tensor) whole = NULL;
    TN_AUTO(tn_tensor) square = NULL;
    TN_AUTO(tn_tensor) real = NULL;
    TN_TRY(tn_sum(t, TN_DTYPE_NONE, &whole));
    if (!tn_dtype_is_complex((tn_dtype)t->dtype)) {
        *out = TN_MOVE(whole);
        return TN_OK;
    }
    TN_TRY(tn_view_as_real(whole, &real));
    return tn_sum(real, TN_DTYPE_NONE, out);
}

static void put_gradients(state *s, const scene *c, tn_tensor *t)
{
    tn_tensor *sum = NULL, *grads[MOST] = {NULL};
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.allow_unused = opts.retain_graph = TN_BOOL_TRUE;
    if (!may_move(t) || !c->n_leaves || !tn_tensor_requires_grad(t))
        return;
    tn_status status = sum_of(t, &sum);
    if (status == TN_OK)
        status = tn_grad(&sum, 1, c->leaves, c->n_leaves, NULL, &opts, grads);
    tn_tensor_unref(sum);
    if (status != TN_OK)
        put_refusal(s, status);
    for (int i = 0; status == TN_OK && i < c->n_leaves; i++)
        put_elements(s, grads[i]);
    drop(grads, c->n_leaves);
}

static void look(const scene *c, int i, state *s)
{
    tn_tensor *both[] = {c->roots[i], c->given[i]};
    s->n = 0;
    s->lost = false;
    for (int k = 0; k < (both[0] == both[1] ? 1 : 2); k++) {
        put_elements(s, both[k]);
        if (c->way->dual_self || c->way->dual_others)
            put_tangent(s, both[k]);
        put_gradients(s, c, both[k]);
    }
}

static bool same(const state *a, const state *b)
{
    return a->n == b->n && memcmp(a->bytes, b->bytes, a->n) == 0;
}

/* ---- one sample ---- */

static state before[MOST], after[MOST], now;
static int n_calls, n_refused, n_failures, n_lost;

static void enter(const way *w)
{
    if (w->dual_self || w->dual_others)
        ASSERT_OK(tn_forward_enter());
}

static void leave(const way *w)
{
    if (w->dual_self || w->dual_others)
        ASSERT_OK(tn_forward_leave());
}

static void look_at_all(const scene *s, state *to)
{
    for (int i = 0; i < s->n_written; i++)
        look(s, i, &to[i]);
}

/* False: the call is refused so. */
static bool learn(const way *w, const tni_sample *sample, const tni_schema *schema)
{
    scene s;
    bundle rets = {0};
    enter(w);
    set_up(&s, w, sample, schema);
    look_at_all(&s, before);
    tn_status status = s.n_written ? sample_call(sample->op, &s.args, &rets) : TN_INVALID;
    if (status == TN_OK)
        look_at_all(&s, after);
    bundle_clear(&rets);
    clear(&s);
    leave(w);
    return status == TN_OK;
}

/* False: no allocation failed. */
static bool fail_one(const way *w, const tni_sample *sample, const tni_schema *schema,
                     int64_t failing)
{
    scene s;
    bundle rets = {0};
    enter(w);
    set_up(&s, w, sample, schema);
    tni_alloc_watch(failing, false);
    tn_status status = sample_call(sample->op, &s.args, &rets);
    bool failed = tni_alloc_tried() > failing;
    tni_alloc_watch(-1, false);
    if (!failed)
        EXPECT_OK(status);
    for (int i = 0; failed && i < s.n_written; i++) {
        look(&s, i, &now);
        n_failures++;
        n_lost += now.lost;
        if (status == TN_OK ? !same(&now, &after[i])
                            : !now.lost && !same(&now, &before[i]) && !same(&now, &after[i]))
            test_wrong(__FILE__, __LINE__, "%s, argument %d, allocation %d of %s(%s): half done",
                       w->name, i, (int)failing, sample->op, sample->args);
    }
    bundle_clear(&rets);
    clear(&s);
    leave(w);
    return failed;
}

static void check(const tni_sample *sample, const tni_schema *schema)
{
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        sample_note(sample, ways[k].name);
        n_calls++;
        if (!learn(&ways[k], sample, schema)) {
            n_refused++;
            continue;
        }
        for (int64_t failing = 0; failing < 500; failing++)
            if (!fail_one(&ways[k], sample, schema, failing))
                break;
    }
}

/* Are there few elements, and is something written that is not a result that is given? */
static bool is_wanted(const tni_sample *sample, const tni_schema *schema)
{
    bool writes = false;
    for (int i = 0; i < schema->nargs; i++) {
        writes = writes || schema->args[i].is_write;
        if (schema->args[i].is_out)
            return false;
    }
    if (!writes)
        return false;
    bundle args = sample_arguments(sample);
    bool small = true;
    for (int i = 0; i < args.n; i++) {
        const tn_value *v = &args.v[i];
        if (v->tag == TN_TAG_TENSOR && v->u.tensor)
            small =
                small && v->u.tensor->numel <= LARGEST && v->u.tensor->device.type == TN_DEVICE_CPU;
        small = small && (v->tag != TN_TAG_TENSOR_LIST || v->count <= 3);
    }
    bundle_clear(&args);
    return small;
}

/* The sample as one of the operator that writes: itself, or its in-place variant. */
static tni_sample as_writer(const tni_sample *sample)
{
    tni_sample made = *sample;
    if (*sample->inplace)
        made.op = sample->inplace;
    return made;
}

TEST(a_write_for_which_memory_runs_out_is_made_or_not_or_told_of)
{
    const char *only = getenv("TENON_TEST_OP"), *last = "";
    int of_this = 0, n_ops = 0;
    for (int i = 0; i < tni_num_samples; i++) {
        const tni_sample sample = as_writer(&tni_samples[i]);
        if (sample.status != TN_OK || (only && strcmp(only, sample.op) != 0))
            continue;
        if (strcmp(last, sample.op) != 0)
            of_this = 0;
        last = sample.op;
        if (of_this >= SAMPLES)
            continue;
        tni_schema *schema = sample_schema(sample.op);
        if (is_wanted(&sample, schema)) {
            n_ops += of_this++ == 0;
            check(&sample, schema);
        }
        tni_schema_free(schema);
    }
    printf("%d operators, %d calls, %d refused; %d looks after a failure, %d lost\n", n_ops,
           n_calls, n_refused, n_failures, n_lost);
    EXPECT(only || n_ops > 200);
}
