/* SPDX-License-Identifier: MIT */
/* tests/ops/test_wild.c: every sample of every declaration, in each of its forms, with up to four
 * wrong arguments at once (see wrong.h), and beside that with what callers mix: strided arguments,
 * arguments that share memory with each other or with what is written, other dtypes, names of
 * dimensions, leaves that require grad, tangents, fake tensors among real ones. A call may work or
 * be refused. It does not end the process or hang (the harness has a clock, the sanitizers look for
 * what it must not touch); one that is refused says why and has written nothing; what one that
 * works gave can be read, and so can its gradients; and on meta it works as well, with results of
 * the same sizes. There is a little memory: who asks for more is refused, as on a small machine.
 *
 * The same calls in every run. For others, or more of them:
 *   WILD_ROUNDS=100   calls a sample, instead of 6
 *   WILD_SEED=7       where the random numbers begin
 *   WILD_OP=foreach   only operators with this in their name
 *   WILD_TELL=1       each call is told before it is made: the last one is what ended the process
 *   WILD_SECONDS=0.3  what a call may take at most, instead of 5
 *   WILD_APART=1      each sample in a process of its own: what ends one does not hide the others
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/test.h"
#include <malloc.h>

#include "ops/wrong.h"
#include "tenon/autograd.h"
#include "tenon/fake.h"
#include "tenon/forward.h"
#include "tenon/names.h"
#include "tenon/ops.h"

enum { PARTS = 4, MOST_WRONG = 4, LARGEST = 1 << 22, MEMORY = 1 << 28, MOST_LEAVES = 64 };

/* ---- a machine of little memory ---- */

static _Atomic size_t in_use;

static void *take(void *ctx, size_t nbytes, size_t align)
{
    (void)ctx;
    if (nbytes > MEMORY || in_use > MEMORY - nbytes)
        return NULL;
    void *made = aligned_alloc(align, (nbytes + align - 1) & ~(align - 1));
    in_use += made ? malloc_usable_size(made) : 0;
    return made;
}

static void give(void *ctx, void *ptr)
{
    (void)ctx;
    in_use -= malloc_usable_size(ptr);
    free(ptr);
}

static void be_small(void)
{
    static const tn_allocator small = {.size = sizeof small, .alloc = take, .free = give};
    static bool done;
    if (!done)
        ASSERT_OK(tn_set_allocator(&small));
    done = true;
}

static tn_fake_mode *mode;

/* ---- what is done to arguments that fit ---- */

/* Another view of the memory of @p t, or itself. */
static tn_tensor *related(tn_tensor *t)
{
    tn_tensor *made = NULL;
    tn_status status = TN_OK;
    const int64_t two[] = {2, 2}, one[] = {1, 1};
    int64_t last = t->ndim ? t->sizes[t->ndim - 1] : 0;
    switch (wrong_pick(7)) {
    case 0:
        return tn_tensor_ref(t);
    case 1:
        status = tn_transpose(t, 0, -1, &made);
        break;
    case 2:
        status = last > 1 ? tn_narrow(t, -1, 0, last - 1, &made) : TN_INVALID;
        break;
    case 3: /* a place further */
        status = last > 1 ? tn_narrow(t, -1, 1, last - 1, &made) : TN_INVALID;
        break;
    case 4: /* windows that overlap */
        status = tn_as_strided(t, two, 2, one, 2, tn_no_int(), &made);
        break;
    case 5:
        status = tn_unsqueeze(t, 0, &made);
        break;
    default:
        status = tn_detach(t, &made);
    }
    return status == TN_OK ? made : tn_tensor_ref(t);
}

static tn_tensor *at_times_related(tn_tensor *t, void *arg)
{
    (void)arg;
    return wrong_pick(4) == 0 ? related(t) : tn_tensor_ref(t);
}

/* The same elements with channels last, or the first dimension innermost. */
static tn_tensor *turned(tn_tensor *t)
{
    int64_t order[TN_MAX_DIMS], back[TN_MAX_DIMS];
    tn_tensor *seen = NULL, *laid = NULL, *made = NULL;
    for (int d = 0; d < t->ndim; d++)
        order[d] = t->ndim > 2 ? (d == 0 ? 0 : d == t->ndim - 1 ? 1 : d + 1) : t->ndim - 1 - d;
    for (int d = 0; d < t->ndim; d++)
        back[order[d]] = d;
    ASSERT_OK(tn_permute(t, order, t->ndim, &seen));
    ASSERT_OK(tn_clone(seen, TN_FORMAT_CONTIGUOUS, &laid));
    ASSERT_OK(tn_permute(laid, back, t->ndim, &made));
    tn_tensor_unref(seen);
    tn_tensor_unref(laid);
    return made;
}

/* The same elements, each second one of memory. */
static tn_tensor *strided(tn_tensor *t, void *arg)
{
    int64_t sizes[TN_MAX_DIMS];
    tn_tensor *wide = NULL, *made = NULL;
    (void)arg;
    if (t->ndim == 0 || t->numel == 0 || t->numel > 10000 || t->device.type != TN_DEVICE_CPU)
        return tn_tensor_ref(t);
    if (wrong_pick(3) == 0)
        return turned(t);
    for (int d = 0; d < t->ndim; d++)
        sizes[d] = t->sizes[d];
    sizes[t->ndim - 1] *= 2;
    wide = wrong_fresh(t->ndim, sizes, (tn_dtype)t->dtype, TN_CPU);
    ASSERT_OK(tn_slice(wide, -1, tn_some_int(1), tn_no_int(), 2, &made));
    ASSERT_OK(tn_copy_(made, t, false));
    tn_tensor_unref(wide);
    return made;
}

static tn_tensor *faked(tn_tensor *t, void *arg)
{
    const bool *mixed = arg;
    tn_tensor *made = NULL;
    if ((*mixed && wrong_pick(4) == 0) || tn_fake_from_real(mode, t, &made) != TN_OK)
        return tn_tensor_ref(t);
    return made;
}

/* What has a history: a copy, a view, or one of several views, which may not be written. Takes
 * @p leaf over. */
static tn_tensor *followed(tn_tensor *leaf)
{
    tn_tensor *made = NULL, *whole = NULL, **parts = NULL;
    int64_t n = 0;
    tn_status status = TN_OK;
    switch (wrong_pick(3)) {
    case 0:
        status = tn_clone(leaf, TN_FORMAT_PRESERVE, &made);
        break;
    case 1:
        status = tn_alias(leaf, &made);
        break;
    default:
        status = tn_unsqueeze(leaf, 0, &whole);
        if (status == TN_OK)
            status = tn_unbind(whole, 0, &parts, &n);
        if (status == TN_OK)
            made = tn_tensor_ref(parts[0]);
        tn_tensor_list_free(parts, n);
        tn_tensor_unref(whole);
    }
    if (status != TN_OK) /* as many dimensions as there can be */
        return leaf;
    tn_tensor_unref(leaf);
    return made;
}

static tn_tensor *at_times_leaf(tn_tensor *t, void *arg)
{
    tn_tensor *made = NULL;
    (void)arg;
    if (wrong_pick(2) || tn_detach(t, &made) != TN_OK)
        return tn_tensor_ref(t);
    if (tn_tensor_set_requires_grad(made, true) == TN_OK)
        return wrong_pick(3) ? made : followed(made);
    tn_tensor_unref(made);
    return tn_tensor_ref(t);
}

static tn_tensor *converted(tn_tensor *t, void *arg)
{
    const int *both = arg;
    tn_tensor *made = NULL;
    if (t->dtype != both[0] || t->numel > LARGEST ||
        tn_to_dtype(t, (tn_dtype)both[1], false, true, TN_FORMAT_PRESERVE, &made) != TN_OK)
        return tn_tensor_ref(t);
    return made;
}

/* All floating-point arguments, or all integers, of another dtype. */
static void convert(bundle *args)
{
    static const int from[] = {TN_DTYPE_F32, TN_DTYPE_F64, TN_DTYPE_I64};
    int both[2] = {from[wrong_pick(3)], wrong_dtype()};
    bundle_reform(args, converted, both);
}

static tn_tensor *at_times_named(tn_tensor *t, void *arg)
{
    static const char *const known[] = {NULL, "N", "C", "H", "W", NULL};
    const char *names[TN_MAX_DIMS];
    tn_tensor *made = NULL;
    (void)arg;
    if (wrong_pick(3) == 0 || tn_alias(t, &made) != TN_OK)
        return tn_tensor_ref(t);
    uint64_t begin = wrong_pick(3);
    for (int d = 0; d < made->ndim; d++)
        names[d] = wrong_pick(4) ? known[(begin + (uint64_t)d) % 6] : NULL;
    if (tn_tensor_set_names(made, names, made->ndim) == TN_OK)
        return made;
    tn_tensor_unref(made);
    return tn_tensor_ref(t);
}

static tn_tensor *at_times_dual(tn_tensor *t, void *arg)
{
    tn_tensor *along = NULL, *made = NULL;
    (void)arg;
    if (wrong_pick(2) || t->numel > LARGEST ||
        tn_full_like(t, tn_float(0.5), NULL, TN_FORMAT_PRESERVE, &along) != TN_OK)
        return tn_tensor_ref(t);
    tn_status status = tn_make_dual(t, along, &made);
    tn_tensor_unref(along);
    return status == TN_OK ? made : tn_tensor_ref(t);
}

/* ---- a call ---- */

typedef struct wild {
    const char *op;
    tni_schema *schema;
    bundle args;
    bool fake, leaves, dual;
    bool plain; /* separate tensors of the CPU, of which nothing is followed */
    char how[256];
} wild;

static void tell(wild *w, const char *what)
{
    size_t n = strlen(w->how);
    snprintf(w->how + n, sizeof w->how - n, " %s", what);
}

static tn_tensor *any_place(tn_tensor *first)
{
    const int64_t sizes[] = {(int64_t)wrong_pick(4), 3, 2, 2};
    tn_dtype dtype = first && wrong_pick(4) ? (tn_dtype)first->dtype
                     : wrong_pick(2)        ? TN_DTYPE_F32
                                            : wrong_dtype();
    if (first && wrong_pick(3) == 0)
        return related(first);
    tn_tensor *t = wrong_fresh((int)wrong_pick(4), sizes, dtype, TN_CPU);
    tn_tensor *other = wrong_pick(3) == 0 ? wrong_tensor(t) : NULL;
    if (!other)
        return t;
    tn_tensor_unref(t);
    return other;
}

static void give_places(wild *w)
{
    tn_tensor *first = NULL;
    for (int i = 0; i < w->args.n && !first; i++)
        first = w->args.v[i].tag == TN_TAG_TENSOR ? w->args.v[i].u.tensor : NULL;
    for (int k = 0; k < w->schema->nargs; k++) {
        if (!w->schema->args[k].is_out)
            continue;
        if (w->schema->args[k].type->kind == TNI_TYPE_TENSOR) {
            w->args.v[k] = tn_value_take_tensor(any_place(first));
            continue;
        }
        uint32_t n = (uint32_t)wrong_pick(4);
        tn_tensor **list = tni_alloc((n + 1) * sizeof *list);
        for (uint32_t i = 0; i < n; i++)
            list[i] = any_place(first);
        w->args.v[k] = tn_value_take_tensors(list, n);
    }
}

static void make_wrong(wild *w)
{
    bool list = false;
    for (uint64_t n = w->schema->nargs ? wrong_pick(MOST_WRONG + 1) : 0; n; n--) {
        int at = (int)wrong_pick((uint64_t)w->schema->nargs);
        const tni_schema_arg *arg = &w->schema->args[at];
        bool is_list = wrong_kind(arg->type) == TNI_TYPE_LIST;
        if (is_list && list)
            continue;
        list |= is_list;
        tn_value wrong = wrong_value(&w->args.v[at], arg);
        tn_value_clear(&w->args.v[at]);
        w->args.v[at] = wrong;
        tell(w, arg->name);
    }
}

/* One argument takes the place of another. */
static void relate_two(bundle *args)
{
    int a = args->n ? (int)wrong_pick((uint64_t)args->n) : 0;
    int b = args->n ? (int)wrong_pick((uint64_t)args->n) : 0;
    if (a == b || args->v[a].tag != TN_TAG_TENSOR || !args->v[a].u.tensor ||
        args->v[b].tag != TN_TAG_TENSOR)
        return;
    tn_tensor *t = related(args->v[a].u.tensor);
    tn_value_clear(&args->v[b]);
    args->v[b] = tn_value_take_tensor(t);
}

static void mix(wild *w)
{
    w->plain = true;
    if (wrong_pick(6) == 0) {
        convert(&w->args);
        tell(w, "+dtype");
    }
    if (wrong_pick(4) == 0) {
        bundle_reform(&w->args, strided, NULL);
        tell(w, "+strided");
    }
    if (wrong_pick(4) == 0) {
        bundle_reform(&w->args, at_times_related, NULL);
        relate_two(&w->args);
        w->plain = false;
        tell(w, "+related");
    }
    if (wrong_pick(12) == 0) {
        bundle_reform(&w->args, at_times_named, NULL);
        w->plain = false;
        tell(w, "+names");
    }
    if (wrong_pick(4) == 0) {
        bundle_reform(&w->args, at_times_leaf, NULL);
        w->leaves = true;
        tell(w, "+leaves");
    }
    w->fake = wrong_pick(6) == 0;
    bool mixed = wrong_pick(4) == 0;
    if (w->fake) {
        bundle_reform(&w->args, faked, &mixed);
        tell(w, mixed ? "+some fake" : "+fake");
    }
    w->dual = wrong_pick(8) == 0;
    if (w->dual) {
        ASSERT_OK(tn_forward_enter());
        bundle_reform(&w->args, at_times_dual, NULL);
        tell(w, "+duals");
    }
    w->plain = w->plain && !w->fake && !w->dual && !w->leaves;
}

static void read_all(const bundle *b)
{
    for (int i = 0; i < b->n; i++) {
        const tn_value *v = &b->v[i];
        uint32_t n = v->tag == TN_TAG_TENSOR ? 1 : v->tag == TN_TAG_TENSOR_LIST ? v->count : 0;
        for (uint32_t k = 0; k < n; k++) {
            tn_tensor *t = v->tag == TN_TAG_TENSOR ? v->u.tensor : v->u.tensors[k], *copy = NULL;
            if (t && t->numel <= LARGEST && tn_clone(t, TN_FORMAT_CONTIGUOUS, &copy) == TN_OK)
                tn_tensor_unref(copy);
        }
    }
}

static bool has_large(const bundle *b)
{
    bool large = false;
    for (int i = 0; i < b->n; i++) {
        const tn_value *v = &b->v[i];
        large |= v->tag == TN_TAG_TENSOR && v->u.tensor && v->u.tensor->numel > LARGEST;
        large |= v->tag == TN_TAG_TENSOR_LIST && v->count > 10000;
        for (uint32_t k = 0; v->tag == TN_TAG_TENSOR_LIST && k < v->count; k++)
            large |= v->u.tensors[k] && v->u.tensors[k]->numel > LARGEST;
    }
    return large;
}

/* ---- its gradients ---- */

typedef struct gathered {
    tn_tensor *v[MOST_LEAVES]; /* borrowed */
    int n;
} gathered;

static void gather_one(tn_tensor *t, gathered *all)
{
    for (int i = 0; i < all->n; i++)
        if (all->v[i] == t)
            return;
    if (t && all->n < MOST_LEAVES && tn_tensor_requires_grad(t))
        all->v[all->n++] = t;
}

static gathered gather(const bundle *b)
{
    gathered all = {.n = 0};
    for (int i = 0; i < b->n; i++) {
        const tn_value *v = &b->v[i];
        if (v->tag == TN_TAG_TENSOR)
            gather_one(v->u.tensor, &all);
        for (uint32_t k = 0; v->tag == TN_TAG_TENSOR_LIST && k < v->count; k++)
            gather_one(v->u.tensors[k], &all);
    }
    return all;
}

/* The gradients of @p of, and at times theirs. */
static void differentiate(const gathered *of, const gathered *by, int times)
{
    tn_tensor *grads[MOST_LEAVES] = {NULL}, *given[MOST_LEAVES] = {NULL};
    tn_grad_opts opts = TN_GRAD_OPTS_INIT;
    opts.allow_unused = TN_BOOL_TRUE;
    opts.create_graph = times > 1 ? TN_BOOL_TRUE : TN_BOOL_FALSE;
    bool made = of->n > 0 && by->n > 0;
    for (int i = 0; i < of->n; i++)
        made = made && of->v[i]->numel <= LARGEST &&
               tn_ones_like(of->v[i], NULL, TN_FORMAT_PRESERVE, &given[i]) == TN_OK;
    if (made) {
        tn_status status = tn_grad(of->v, of->n, by->v, by->n, given, &opts, grads);
        EXPECT(status != TN_INTERNAL);
        EXPECT(status == TN_OK || tn_last_error()[0] != 0);
        gathered next = {.n = 0};
        for (int i = 0; status == TN_OK && i < by->n; i++) {
            tn_tensor *copy = NULL;
            if (!grads[i])
                continue;
            EXPECT(grads[i]->ndim == by->v[i]->ndim &&
                   memcmp(grads[i]->sizes, by->v[i]->sizes,
                          (size_t)by->v[i]->ndim * sizeof(int64_t)) == 0);
            if (grads[i]->numel <= LARGEST &&
                tn_clone(grads[i], TN_FORMAT_CONTIGUOUS, &copy) == TN_OK)
                tn_tensor_unref(copy);
            gather_one(grads[i], &next);
        }
        if (times > 1)
            differentiate(&next, by, times - 1);
    }
    for (int i = 0; i < MOST_LEAVES; i++) {
        tn_tensor_unref(given[i]);
        tn_tensor_unref(grads[i]);
    }
}

/* ---- the same on meta ---- */

static tn_tensor *on_meta(tn_tensor *t, void *arg)
{
    bool *fits = arg;
    *fits = *fits && t->device.type == TN_DEVICE_CPU;
    return *fits ? sample_on_meta(t) : tn_tensor_ref(t);
}

static bool alike(const tn_tensor *a, const tn_tensor *b)
{
    if (!a || !b)
        return a == b;
    return a->ndim == b->ndim && a->dtype == b->dtype &&
           memcmp(a->sizes, b->sizes, (size_t)a->ndim * sizeof *a->sizes) == 0;
}

/* What masks show, and how many bins there are, is in the values. */
static bool is_known_without_values(const char *op)
{
    return !sample_needs_data(op) && !strstr(op, "bincount") && !strstr(op, "one_hot") &&
           !strstr(op, "repeat_interleave") && strncmp(op, "aten::index", 11) != 0;
}

static void compare_on_meta(const wild *w, const bundle *rets, const bundle *twin, tn_status status)
{
    bundle made = {0};
    tn_status other = sample_call(w->op, twin, &made);
    if (status == TN_OK) {
        EXPECT_STR(other == TN_OK ? "" : tn_last_error(), "");
        for (int i = 0; other == TN_OK && i < rets->n; i++)
            EXPECT(rets->v[i].tag != TN_TAG_TENSOR || made.v[i].tag != TN_TAG_TENSOR ||
                   alike(rets->v[i].u.tensor, made.v[i].u.tensor));
    }
    bundle_clear(&made);
}

static void call_wild(wild *w)
{
    wrong_kept all[WRONG_KEPT];
    bundle rets = {0}, twin = {0};
    tn_fake_guard guard = {0};
    bool inside = w->fake && wrong_pick(2);
    int times = (int)wrong_pick(2) + 1;
    const char *patience = getenv("WILD_SECONDS");
    double seconds = patience ? atof(patience) : 5;
    bool compared = w->plain && is_known_without_values(w->op);
    if (compared) {
        twin = bundle_copy(&w->args);
        bundle_reform(&twin, on_meta, &compared);
    }
    gathered leaves = gather(&w->args);
    for (int i = 0; i < w->schema->nargs; i++) /* a leaf may be resized: whose gradient was that? */
        leaves.n = w->schema->args[i].is_out ? 0 : leaves.n;
    int n = wrong_keep(&w->args, all);
    if (inside)
        guard = tn_fake_enter(mode);
    tn_status status = TN_OK;
    test_time start = test_begin_time();
    status = sample_call(w->op, &w->args, &rets);
    if (!has_large(&rets) && !has_large(&w->args))
        EXPECT(test_within(start, seconds, w->op, __FILE__, __LINE__));
    char text[4096];
    snprintf(text, sizeof text, "%s", status == TN_OK ? "" : tn_last_error());
    if (status != TN_OK) {
        EXPECT(tn_last_error()[0] != 0);
        EXPECT(status != TN_INTERNAL);
        if (!wrong_unwritten(all, n))
            test_wrong(__FILE__, __LINE__, "a refusal changed %s: %s", wrong_change(all, n), text);
    } else {
        gathered results = gather(&rets);
        read_all(&rets);
        read_all(&w->args);
        if (!has_large(&rets) && !has_large(&w->args))
            differentiate(&results, &leaves, times);
    }
    if (inside)
        tn_fake_leave(guard);
    if (compared)
        compare_on_meta(w, &rets, &twin, status);
    wrong_forget(all, n);
    bundle_clear(&twin);
    bundle_clear(&rets);
}

static void try_wild(const tni_sample *s, bool loud)
{
    uint64_t form = wrong_pick(4);
    wild w = {.op = form == 1 && s->inplace[0] ? s->inplace
                    : form == 2 && s->out[0]   ? s->out
                                               : s->op};
    w.schema = sample_schema(w.op);
    w.args = w.op == s->out ? sample_arguments_of(s, w.op) : sample_arguments(s);
    if (w.op == s->out)
        give_places(&w);
    make_wrong(&w);
    mix(&w);
    test_note("%s:%d: %s(%s), wrong:%s", s->file, s->line, w.op, s->args, w.how);
    if (loud)
        fprintf(stderr, "%s:%d: %s(%s), wrong:%s\n", s->file, s->line, w.op, s->args, w.how);
    call_wild(&w);
    bundle_clear(&w.args);
    if (w.dual)
        ASSERT_OK(tn_forward_leave());
    tni_schema_free(w.schema);
}

/* ---- all of them ---- */

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void free_mode(void)
{
    tn_fake_mode_unref(mode);
    mode = NULL;
}

static int try_sample(void *arg)
{
    const tni_sample *s = arg;
    uint64_t rounds = setting("WILD_ROUNDS", 6), seed = setting("WILD_SEED", 1);
    bool loud = getenv("WILD_TELL") != NULL;
    for (uint64_t k = 0; k < rounds; k++) {
        wrong_begin(s, seed * UINT64_C(1000003) + k * 7919 + 1);
        try_wild(s, loud);
    }
    return 0;
}

static void try_part(int part)
{
    const char *only = getenv("WILD_OP");
    bool apart = getenv("WILD_APART") != NULL;
    be_small();
    ASSERT_OK(tn_fake_mode_new(NULL, &mode));
    test_at_end(free_mode);
    for (int i = part; i < tni_num_samples; i += PARTS) {
        if (only && !strstr(tni_samples[i].op, only))
            continue;
        tni_sample s = tni_samples[i];
        if (apart)
            EXPECT(try_in_child(try_sample, &s, 60) == 0);
        else
            try_sample(&s);
    }
}

TEST(a_wild_call_works_or_is_refused_and_a_refusal_writes_nothing_1)
{
    try_part(0);
}
TEST(a_wild_call_works_or_is_refused_and_a_refusal_writes_nothing_2)
{
    try_part(1);
}
TEST(a_wild_call_works_or_is_refused_and_a_refusal_writes_nothing_3)
{
    try_part(2);
}
TEST(a_wild_call_works_or_is_refused_and_a_refusal_writes_nothing_4)
{
    try_part(3);
}
