/* SPDX-License-Identifier: MIT */
/* composite/einsum.c: sums of products, said in letters. Operands are permuted to one order of
 * dimensions, those of the result first; then they are multiplied pair by pair, and a pair that
 * shares dimensions to sum over becomes one batched matrix product. */
#include <stdio.h>
#include <string.h>
#include "core/tensor.h"
#include "gen/composites.h"
#include "tenon/ops.h"

#define LABELS   52
#define ELLIPSIS 52 /* the label that stands for "..." */

/* One operand's letters, or those of the result. */
typedef struct letters {
    int n;
    uint8_t label[TN_MAX_DIMS];
    bool ellipsis;
} letters;

typedef struct plan {
    int64_t n; /* operands */
    int ellipsis_ndim;
    int64_t sizes[LABELS]; /* of each label; 0: not seen yet, see `seen` */
    bool seen[LABELS];
    int place[LABELS]; /* in the common order; -1: none */
    int ellipsis_place, out_ndim, ndim;
} plan;

static int label_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    return c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}
static char letter_of(int label)
{
    return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

/* ---- reading ---- */

/* Letters up to ',', "->" or the end. @p operand: its number, -1 for the result. */
static tn_status read_letters(const char *equation, size_t *at, int64_t operand, letters *out)
{
    char where[48];
    if (operand < 0)
        snprintf(where, sizeof where, "output");
    else
        snprintf(where, sizeof where, "operand %lld", (long long)operand);
    out->n = 0;
    out->ellipsis = false;
    for (;; (*at)++) {
        char c = equation[*at];
        if (c == ' ')
            continue;
        if (!c || (operand >= 0 && (c == ',' || (c == '-' && equation[*at + 1] == '>'))))
            return TN_OK;
        TN_CHECK(out->n < TN_MAX_DIMS, TN_INVALID, "einsum(): more than %d subscripts for %s",
                 TN_MAX_DIMS, where);
        if (c == '.') {
            TN_CHECK(!out->ellipsis, TN_INVALID, "einsum(): found '.' for %s %s", where,
                     operand < 0 ? "but an ellipsis (...) was already found"
                                 : "for which an ellipsis was already found");
            TN_CHECK(strncmp(equation + *at, "...", 3) == 0, TN_INVALID,
                     "einsum(): found '.' for %s that is not part of any ellipsis%s", where,
                     operand < 0 ? " (...)" : "");
            *at += 2;
            out->ellipsis = true;
            out->label[out->n++] = ELLIPSIS;
            continue;
        }
        int label = label_of(c);
        TN_CHECK(
            label >= 0, TN_INVALID,
            "einsum(): invalid subscript given at index %zu in the equation string, subscripts "
            "must be in [a-zA-Z]",
            *at);
        out->label[out->n++] = (uint8_t)label;
    }
}

/* Sizes of labels and of what "..." covers, over all operands. */
static tn_status measure(plan *p, const letters *l, const tn_tensor *t, int64_t operand,
                         int64_t *ellipsis_sizes)
{
    int named = l->n - l->ellipsis;
    TN_CHECK(l->ellipsis ? named <= t->ndim : named == t->ndim, TN_INVALID,
             "einsum(): the number of subscripts in the equation (%d) %s the number of dimensions "
             "(%d) for operand %lld%s",
             named, l->ellipsis ? "is more than" : "does not match", t->ndim, (long long)operand,
             l->ellipsis ? "" : " and no ellipsis was given");
    int dim = 0, first[LABELS];
    for (int label = 0; label < LABELS; label++)
        first[label] = -1;
    for (int i = 0; i < l->n; i++) {
        int label = l->label[i];
        if (label == ELLIPSIS) {
            int covered = t->ndim - named;
            if (covered > p->ellipsis_ndim) { /* align at the end */
                memmove(ellipsis_sizes + (covered - p->ellipsis_ndim), ellipsis_sizes,
                        (size_t)p->ellipsis_ndim * sizeof *ellipsis_sizes);
                for (int d = 0; d < covered - p->ellipsis_ndim; d++)
                    ellipsis_sizes[d] = 1;
                p->ellipsis_ndim = covered;
            }
            for (int d = 0; d < covered; d++) {
                int64_t *have = &ellipsis_sizes[p->ellipsis_ndim - covered + d],
                        size = t->sizes[dim++];
                TN_CHECK(
                    size == *have || size == 1 || *have == 1, TN_INVALID,
                    "einsum(): dimension %d covered by ellipsis in operand %lldhas size %lld "
                    "which does not broadcast with previously seen ellipsis with size %lld for "
                    "the respective dimension",
                    d, (long long)operand, (long long)size, (long long)*have);
                *have = *have == 1 ? size : *have;
            }
            continue;
        }
        int64_t size = t->sizes[dim];
        if (first[label] >= 0) {
            TN_CHECK(size == t->sizes[first[label]], TN_INVALID,
                     "einsum(): subscript %c is repeated for operand %lld but the sizes don't "
                     "match, %lld != %lld",
                     letter_of(label), (long long)operand, (long long)size,
                     (long long)t->sizes[first[label]]);
            dim++;
            continue;
        }
        first[label] = dim++;
        if (!p->seen[label]) {
            p->seen[label] = true;
            p->sizes[label] = size;
            continue;
        }
        TN_CHECK(size == p->sizes[label] || size == 1 || p->sizes[label] == 1, TN_INVALID,
                 "einsum(): subscript %c has size %lld for operand %lld which does not broadcast "
                 "with previously seen size %lld",
                 letter_of(label), (long long)size, (long long)operand, (long long)p->sizes[label]);
        p->sizes[label] = p->sizes[label] == 1 ? size : p->sizes[label];
    }
    return TN_OK;
}

/* The order of dimensions: the result's, then those that are summed over. */
static tn_status place_output(plan *p, const letters *out)
{
    for (int i = 0; i < out->n; i++) {
        int label = out->label[i];
        if (label == ELLIPSIS) {
            p->ellipsis_place = p->ndim;
            p->ndim += p->ellipsis_ndim;
            continue;
        }
        TN_CHECK(p->place[label] < 0, TN_INVALID,
                 "einsum(): output subscript %c appears more than once in the output",
                 letter_of(label));
        TN_CHECK(p->seen[label], TN_INVALID,
                 "einsum(): output subscript %c does not appear in the equation for any input "
                 "operand",
                 letter_of(label));
        p->place[label] = p->ndim++;
    }
    return TN_OK;
}

/* Without "->": "..." and then, in the order of the alphabet, letters that occur once. */
static void imply_output(plan *p, const letters *operands, letters *out)
{
    int count[LABELS] = {0};
    out->n = 0;
    out->ellipsis = true;
    out->label[out->n++] = ELLIPSIS;
    for (int64_t k = 0; k < p->n; k++)
        for (int i = 0; i < operands[k].n; i++)
            if (operands[k].label[i] != ELLIPSIS)
                count[operands[k].label[i]]++;
    for (int label = 0; label < LABELS; label++)
        if (count[label] == 1)
            out->label[out->n++] = (uint8_t)label;
}

static tn_status place_all(plan *p, const letters *out)
{
    for (int label = 0; label < LABELS; label++)
        p->place[label] = -1;
    p->ndim = 0;
    p->ellipsis_place = -1;
    TN_TRY(place_output(p, out));
    p->out_ndim = p->ndim;
    if (p->ellipsis_place < 0) {
        p->ellipsis_place = p->ndim;
        p->ndim += p->ellipsis_ndim;
    }
    for (int label = 0; label < LABELS; label++)
        if (p->seen[label] && p->place[label] < 0)
            p->place[label] = p->ndim++;
    TN_CHECK(p->ndim <= TN_MAX_DIMS, TN_INVALID,
             "einsum(): %d different subscripts, at most %d are possible", p->ndim, TN_MAX_DIMS);
    return TN_OK;
}

/* ---- operands in the common order ---- */

/* Diagonals for letters that repeat, one dimension for each place, of size 1 where it is missing.
 */
static tn_status align(const plan *p, const letters *l, tn_tensor *operand, tn_tensor **out)
{
    TN_AUTO(tn_tensor) t = tn_tensor_ref(operand);
    int64_t dim_at[TN_MAX_DIMS], order[TN_MAX_DIMS];
    int dim = 0, named = l->n - l->ellipsis, covered = operand->ndim - named;
    for (int k = 0; k < p->ndim; k++)
        dim_at[k] = -1;
    for (int i = 0; i < l->n; i++) {
        int label = l->label[i];
        if (label == ELLIPSIS) {
            for (int d = 0; d < covered; d++)
                dim_at[p->ellipsis_place + p->ellipsis_ndim - covered + d] = dim++;
            continue;
        }
        int64_t first = dim_at[p->place[label]];
        if (first < 0) {
            dim_at[p->place[label]] = dim++;
            continue;
        }
        TN_AUTO(tn_tensor) diagonal = NULL;
        tn_tensor *moved = NULL;
        TN_TRY(tn_diagonal(t, 0, first, dim, &diagonal));
        TN_TRY(tn_movedim_int(diagonal, -1, first, &moved));
        tn_tensor_unref(t);
        t = moved;
    }
    for (int k = 0; k < p->ndim; k++) {
        if (dim_at[k] < 0) {
            tn_tensor *wider = NULL;
            TN_TRY(tn_unsqueeze(t, dim, &wider));
            tn_tensor_unref(t);
            t = wider;
            dim_at[k] = dim++;
        }
        order[k] = dim_at[k];
    }
    return tn_permute(t, order, p->ndim, out);
}

/* ---- products ---- */

typedef struct dims {
    int n;
    int64_t dim[TN_MAX_DIMS];
    int64_t size;
} dims;

static void dims_add(dims *d, int64_t dim, int64_t size)
{
    d->dim[d->n++] = dim;
    d->size *= size;
}

static int put(int64_t *list, int n, const dims *d)
{
    for (int i = 0; i < d->n; i++)
        list[n++] = d->dim[i];
    return n;
}

/* Multiply two tensors of the same number of dimensions and sum over those marked in @p summed,
 * which both have; they stay with size 1. */
/* Whether the first dimension that one of the two has alone is the right one's. */
static bool right_leads(const tn_tensor *left, const tn_tensor *right, uint64_t summed)
{
    for (int d = 0; d < left->ndim; d++)
        if (!(summed >> d & 1) && (left->sizes[d] != 1) != (right->sizes[d] != 1))
            return right->sizes[d] != 1;
    return false;
}

static tn_status pair(tn_tensor *left, tn_tensor *right, uint64_t summed, bool may_turn,
                      tn_tensor **out)
{
    if (!summed)
        return tn_mul(left, right, out);
    if (may_turn && right_leads(left, right, summed)) { /* the product then lies as it is wanted */
        tn_tensor *other = left;
        left = right;
        right = other;
    }
    dims both = {.size = 1}, lo = {.size = 1}, ro = {.size = 1}, sum = {.size = 1};
    int ndim = left->ndim;
    for (int d = 0; d < ndim; d++) {
        bool in_left = left->sizes[d] != 1, in_right = right->sizes[d] != 1;
        if (summed >> d & 1)
            dims_add(&sum, d, left->sizes[d]);
        else if (in_left && in_right)
            dims_add(&both, d, left->sizes[d]);
        else if (in_left)
            dims_add(&lo, d, left->sizes[d]);
        else
            dims_add(&ro, d, right->sizes[d]);
    }
    int64_t a_order[TN_MAX_DIMS], b_order[TN_MAX_DIMS], made[TN_MAX_DIMS], back[TN_MAX_DIMS];
    int64_t sizes[TN_MAX_DIMS];
    put(a_order, put(a_order, put(a_order, put(a_order, 0, &both), &lo), &sum), &ro);
    put(b_order, put(b_order, put(b_order, put(b_order, 0, &both), &sum), &ro), &lo);
    put(made, put(made, put(made, put(made, 0, &both), &lo), &sum), &ro);
    for (int i = 0; i < ndim; i++) {
        int64_t d = made[i];
        back[d] = i;
        sizes[i] = summed >> d & 1 ? 1 : left->sizes[d] != 1 ? left->sizes[d] : right->sizes[d];
    }
    TN_AUTO(tn_tensor) a = NULL;
    TN_AUTO(tn_tensor) b = NULL;
    TN_AUTO(tn_tensor) a3 = NULL;
    TN_AUTO(tn_tensor) b3 = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) shaped = NULL;
    TN_TRY(tn_permute(left, a_order, ndim, &a));
    TN_TRY(tn_permute(right, b_order, ndim, &b));
    TN_TRY(tn_reshape(a, (const int64_t[]){both.size, lo.size, sum.size}, 3, &a3));
    TN_TRY(tn_reshape(b, (const int64_t[]){both.size, sum.size, ro.size}, 3, &b3));
    TN_TRY(tn_bmm(a3, b3, &product));
    TN_TRY(tn_view(product, sizes, ndim, &shaped));
    return tn_permute(shaped, back, ndim, out);
}

/* Sum @p *t over the dimensions in @p which; they stay. */
static tn_status sum_away(tn_tensor **t, uint64_t which)
{
    int64_t list[TN_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < (*t)->ndim; d++)
        if (which >> d & 1)
            list[n++] = d;
    if (n == 0)
        return TN_OK;
    tn_tensor *less = NULL;
    TN_TRY(tn_sum_dim(*t, list, n, true, TN_DTYPE_NONE, &less));
    tn_tensor_unref(*t);
    *t = less;
    return TN_OK;
}

/* Replace operands i and j of the list by their product: at the front, or, with a path, at the end.
 */
static tn_status contract(const plan *p, tn_tensor **list, int64_t *n, int64_t i, int64_t j,
                          bool at_end, int *count)
{
    uint64_t sum = 0, sum_a = 0, sum_b = 0;
    TN_AUTO(tn_tensor) a = tn_tensor_ref(list[i]);
    TN_AUTO(tn_tensor) b = tn_tensor_ref(list[j]);
    for (int d = p->out_ndim; d < p->ndim; d++) {
        bool in_a = a->sizes[d] != 1, in_b = b->sizes[d] != 1;
        if (in_a && in_b) {
            if (--count[d] == 1) {
                sum |= UINT64_C(1) << d;
                count[d] = 0;
            }
        } else if (count[d] == 1 && (in_a || in_b)) {
            *(in_a ? &sum_a : &sum_b) |= UINT64_C(1) << d;
            count[d] = 0;
        }
    }
    tn_tensor *product = NULL, *x = TN_MOVE(a), *y = TN_MOVE(b);
    tn_status status = sum_away(&x, sum_a);
    if (status == TN_OK)
        status = sum_away(&y, sum_b);
    if (status == TN_OK)
        status = pair(x, y, sum, !(sum_a | sum_b), &product);
    tn_tensor_unref(x);
    tn_tensor_unref(y);
    TN_TRY(status);
    tn_tensor_unref(list[i]);
    tn_tensor_unref(list[j]);
    int64_t kept = 0, high = i > j ? i : j, low = i > j ? j : i;
    for (int64_t k = 0; k < *n; k++)
        if (k != high && k != low)
            list[kept++] = list[k];
    if (!at_end) {
        memmove(list + 1, list, (size_t)kept * sizeof *list);
        list[0] = product;
    } else {
        list[kept] = product;
    }
    *n = kept + 1;
    return TN_OK;
}

/* What is left to be summed goes; of a product, dimensions of size 1 just disappear. One operand
 * alone is summed whatever its sizes: whole numbers become int64. */
static tn_status finish(const plan *p, tn_tensor *t, tn_tensor **out)
{
    int64_t list[TN_MAX_DIMS];
    bool single = p->n > 1;
    for (int d = p->out_ndim; d < p->ndim; d++) {
        list[d - p->out_ndim] = d;
        single &= t->sizes[d] == 1;
    }
    int n = p->ndim - p->out_ndim;
    if (n == 0) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    if (single) /* a view anew: dimensions of size 1 that stay have strides as of a fresh tensor */
        return tn_view(t, t->sizes, p->out_ndim, out);
    return tn_sum_dim(t, list, n, false, TN_DTYPE_NONE, out);
}

static tn_status multiply(const plan *p, tn_tensor **list, const int64_t *path, int64_t path_n,
                          tn_tensor **out)
{
    int count[TN_MAX_DIMS] = {0};
    int64_t n = p->n, steps = 0;
    for (int64_t k = 0; k < n; k++)
        for (int d = 0; d < p->ndim; d++)
            count[d] += list[k]->sizes[d] != 1;
    TN_CHECK(!path || path_n == (n > 1 ? 2 * (n - 1) : path_n), TN_INVALID,
             "einsum(): expected contraction path given in path parameter to have length %lld but "
             "got %lld",
             (long long)(2 * (n - 1)), (long long)path_n);
    tn_status status = TN_OK;
    while (n > 1 && status == TN_OK) {
        int64_t i = 0, j = 1;
        if (path) {
            i = path[steps++];
            j = path[steps++];
            TN_CHECK(i >= 0 && i < n && j >= 0 && j < n && i != j, TN_INVALID,
                     "einsum(): invalid contraction path, got (%lld, %lld) for %lld operands",
                     (long long)i, (long long)j, (long long)n);
        }
        status = contract(p, list, &n, i, j, path != NULL, count);
        for (int64_t k = n; status == TN_OK && k < p->n; k++)
            list[k] = NULL; /* moved forward */
    }
    TN_TRY(status);
    return finish(p, list[0], out);
}

/* ---- all ---- */

static tn_status read_all(plan *p, const char *equation, tn_tensor *const *tensors,
                          letters *operands)
{
    letters out;
    size_t at = 0;
    int64_t ellipsis_sizes[TN_MAX_DIMS];
    int64_t k = 0;
    for (;; k++) {
        TN_CHECK(k < p->n, TN_INVALID,
                 "einsum(): fewer operands were provided than specified in the equation");
        TN_TRY(read_letters(equation, &at, k, &operands[k]));
        if (equation[at] != ',')
            break;
        at++;
    }
    TN_CHECK(k + 1 == p->n, TN_INVALID,
             "einsum(): more operands were provided than specified in the equation");
    for (k = 0; k < p->n; k++)
        TN_TRY(measure(p, &operands[k], tensors[k], k, ellipsis_sizes));
    if (equation[at] == '-') {
        at += 2;
        TN_TRY(read_letters(equation, &at, -1, &out));
    } else {
        imply_output(p, operands, &out);
    }
    return place_all(p, &out);
}

tn_status tni_composite_einsum(const char *equation, tn_tensor *const *tensors, int64_t tensors_n,
                               const int64_t *path, int64_t path_n, tn_tensor **out)
{
    TN_CHECK(tensors_n > 0, TN_INVALID, "einsum(): must provide at least one operand");
    plan p = {.n = tensors_n};
    size_t nbytes = (size_t)tensors_n * (sizeof(letters) + sizeof(tn_tensor *));
    tn_tensor **list = tni_calloc(nbytes);
    TN_CHECK(list, TN_NOMEM, "einsum(): cannot allocate room for %lld operands",
             (long long)tensors_n);
    letters *operands = (letters *)(void *)(list + tensors_n);
    tn_status status = read_all(&p, equation, tensors, operands);
    for (int64_t k = 0; k < tensors_n && status == TN_OK; k++)
        status = align(&p, &operands[k], tensors[k], &list[k]);
    if (status == TN_OK)
        status = multiply(&p, list, path, path_n, out);
    for (int64_t k = 0; k < tensors_n; k++)
        tn_tensor_unref(list[k]);
    tni_free(list);
    return status;
}
