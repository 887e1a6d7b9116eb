/* SPDX-License-Identifier: MIT */
/* cpu/pad.c: padding with a tensor's own values, and its gradients. Each row and each column of the
 * padded tensor comes from one of the input: two lists say which. */
#include "base/pool.h"
#include "cpu/move.h"
#include "cpu/pick.h"
#include "gen/cpu.h"
#include "tenon/ops.h"

#define GRAIN 16384
#define BLOCK 512

/* `inner` is the tensor without padding, `outer` the one with it. Strides are in bytes. A block is
 * the padded dimensions: rows of columns; the rows of a block of three dimensions are those of all
 * its slabs, one after the other. */
typedef struct job {
    bool backward;
    tni_combine_fn add;
    size_t itemsize;
    const tn_tensor *inner, *outer;
    int lead;     /* dimensions of a block's number */
    int64_t rows; /* of a padded block */
    int64_t columns;
    const int64_t *row_from, *row_to; /* byte offsets in `inner` and `outer`; NULL for one row */
    const int64_t *column_from;
    int64_t outer_column;
} job;

/* Which element of n the padded place i shows. */
static int64_t source(int64_t i, int64_t before, int64_t n, bool mirrored)
{
    int64_t k = i - before;
    if (k >= 0 && k < n)
        return k;
    if (!mirrored)
        return k < 0 ? 0 : n - 1;
    return k < 0 ? -k : 2 * (n - 1) - k;
}

static tn_status sources(int64_t size, int64_t before, int64_t n, int64_t stride, bool mirrored,
                         tn_tensor **out)
{
    TN_TRY(tni_tensor_new(1, &size, NULL, TN_DTYPE_I64, TN_CPU, out));
    int64_t *at = (*out)->data;
    for (int64_t i = 0; i < size; i++)
        at[i] = source(i, before, n, mirrored) * stride;
    return TN_OK;
}

static void row(const job *j, char *inner, char *outer)
{
    _Alignas(16) char raw[BLOCK * 16];
    for (int64_t i = 0; i < j->columns; i += BLOCK) {
        int64_t m = j->columns - i < BLOCK ? j->columns - i : BLOCK;
        char *run = outer + i * j->outer_column;
        if (j->backward) {
            tni_gather(raw, run, m, j->outer_column, j->itemsize);
            j->add(inner, j->column_from + i, raw, m);
        } else if (j->outer_column == (int64_t)j->itemsize) {
            tni_pick(run, inner, j->column_from + i, m, j->itemsize);
        } else {
            tni_pick(raw, inner, j->column_from + i, m, j->itemsize);
            tni_scatter(run, raw, m, j->outer_column, j->itemsize);
        }
    }
}

static tn_status blocks(int64_t begin, int64_t end, void *arg)
{
    const job *j = arg;
    int64_t item = (int64_t)j->itemsize;
    for (int64_t u = begin; u < end; u++) {
        int64_t rest = u, from = 0, to = 0;
        for (int d = j->lead - 1; d >= 0; d--) {
            int64_t k = rest % j->inner->sizes[d];
            rest /= j->inner->sizes[d];
            from += k * j->inner->strides[d] * item;
            to += k * j->outer->strides[d] * item;
        }
        for (int64_t r = 0; r < j->rows; r++)
            row(j, (char *)j->inner->data + from + (j->row_from ? j->row_from[r] : 0),
                (char *)j->outer->data + to + (j->row_to ? j->row_to[r] : 0));
    }
    return TN_OK;
}

/* Offsets of all rows of a block in both tensors: of the slab they are in, and in that. */
static tn_status row_offsets(const tn_tensor *inner, const tn_tensor *outer, const int64_t *padding,
                             int dims, bool mirrored, tn_tensor **from, tn_tensor **to)
{
    int at = inner->ndim - 2;
    int64_t item = (int64_t)tni_itemsize(inner), h = outer->sizes[at];
    int64_t slabs = dims == 3 ? outer->sizes[at - 1] : 1, rows = slabs * h;
    TN_TRY(tni_tensor_new(1, &rows, NULL, TN_DTYPE_I64, TN_CPU, from));
    TN_TRY(tni_tensor_new(1, &rows, NULL, TN_DTYPE_I64, TN_CPU, to));
    int64_t *f = (*from)->data, *t = (*to)->data;
    for (int64_t r = 0; r < rows; r++) {
        int64_t y = source(r % h, padding[2], inner->sizes[at], mirrored);
        f[r] = y * inner->strides[at] * item;
        t[r] = r % h * outer->strides[at] * item;
        if (dims == 3) {
            int64_t z = source(r / h, padding[4], inner->sizes[at - 1], mirrored);
            f[r] += z * inner->strides[at - 1] * item;
            t[r] += r / h * outer->strides[at - 1] * item;
        }
    }
    return TN_OK;
}

static tn_status run(tn_tensor *inner, tn_tensor *outer, const int64_t *padding, int dims,
                     bool mirrored, bool backward)
{
    TN_AUTO(tn_tensor) row_from = NULL;
    TN_AUTO(tn_tensor) row_to = NULL;
    TN_AUTO(tn_tensor) column_from = NULL;
    int last = inner->ndim - 1;
    int64_t item = (int64_t)tni_itemsize(inner), count = 1;
    job j = {.backward = backward,
             .add = tni_combine_find(TNI_COMBINE_ADD, (tn_dtype)inner->dtype),
             .itemsize = (size_t)item,
             .inner = inner,
             .outer = outer,
             .lead = inner->ndim - dims,
             .rows = 1,
             .columns = outer->sizes[last],
             .outer_column = outer->strides[last] * item};
    TN_TRY(sources(j.columns, padding[0], inner->sizes[last], inner->strides[last] * item, mirrored,
                   &column_from));
    j.column_from = column_from->data;
    if (dims > 1) {
        TN_TRY(row_offsets(inner, outer, padding, dims, mirrored, &row_from, &row_to));
        j.rows = row_from->numel;
        j.row_from = row_from->data;
        j.row_to = row_to->data;
    }
    if (backward)
        TN_TRY(tn_zero_(inner));
    for (int d = 0; d < j.lead; d++)
        count *= inner->sizes[d];
    int64_t each = j.rows * j.columns, grain = each < GRAIN ? GRAIN / each : 1;
    return count ? tni_pool_for(count, grain, blocks, &j) : TN_OK;
}

#define PAIR(NAME, DIMS, MIRRORED)                                                                 \
    tn_status tni_cpu_##NAME(tn_tensor *self, const int64_t *padding, int64_t padding_n,           \
                             tn_tensor *out)                                                       \
    {                                                                                              \
        (void)padding_n;                                                                           \
        return run(self, out, padding, DIMS, MIRRORED, false);                                     \
    }                                                                                              \
    tn_status tni_cpu_##NAME##_backward(tn_tensor *grad_output, tn_tensor *self,                   \
                                        const int64_t *padding, int64_t padding_n, tn_tensor *out) \
    {                                                                                              \
        (void)self;                                                                                \
        (void)padding_n;                                                                           \
        return run(out, grad_output, padding, DIMS, MIRRORED, true);                               \
    }
PAIR(reflection_pad1d, 1, true)
PAIR(reflection_pad2d, 2, true)
PAIR(reflection_pad3d, 3, true)
PAIR(replication_pad1d, 1, false)
PAIR(replication_pad2d, 2, false)
PAIR(replication_pad3d, 3, false)
