/* SPDX-License-Identifier: MIT */
/* cpu/linalg_batch.c: copies of batches of matrices, and one after the other: see linalg.h. */
#include <string.h>
#include "base/pool.h"
#include "cpu/copy.h"
#include "cpu/linalg.h"

static tn_status some(int64_t begin, int64_t end, void *arg)
{
    const tni_linalg_job *j = arg;
    for (int64_t b = begin; b < end; b++)
        TN_TRY(j->one(j, b));
    return TN_OK;
}

/* Of matrices without elements there can be more than one could ever look at. */
static bool is_nothing(const tni_linalg_job *j)
{
    bool nothing = !j->info && !j->pivots;
    for (int i = 0; i < 2; i++)
        nothing &= !j->in[i] || j->in[i]->numel == 0;
    for (int i = 0; i < 3; i++)
        nothing &= !j->out[i] || j->out[i]->numel == 0;
    return nothing;
}

tn_status tni_linalg_run(tni_linalg_job *j, int64_t count)
{
    if (is_nothing(j))
        return TN_OK;
    return tni_pool_for(count, 1, some, j);
}

static void strides_by_columns(const tn_tensor *t, int64_t *strides)
{
    tni_contiguous_strides(t->ndim, t->sizes, strides);
    strides[t->ndim - 2] = 1;
    strides[t->ndim - 1] = tni_linalg_rows(t) ? tni_linalg_rows(t) : 1;
}

bool tni_linalg_by_columns(const tn_tensor *t)
{
    int64_t strides[TN_MAX_DIMS];
    strides_by_columns(t, strides);
    return memcmp(t->strides, strides, (size_t)t->ndim * sizeof *strides) == 0;
}

tn_status tni_linalg_room(const tn_tensor *like, tn_dtype dtype, bool by_columns, tn_tensor **out)
{
    int64_t strides[TN_MAX_DIMS];
    bool turned = by_columns && like->ndim >= 2;
    if (turned)
        strides_by_columns(like, strides);
    return tni_tensor_new(like->ndim, like->sizes, turned ? strides : NULL, dtype, TN_CPU, out);
}

tn_status tni_linalg_copy(tn_tensor *t, tn_dtype dtype, bool by_columns, tn_tensor **out)
{
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tni_linalg_room(t, dtype, by_columns, &made));
    TN_TRY(tni_linalg_take(made, t));
    *out = TN_MOVE(made);
    return TN_OK;
}

tn_status tni_linalg_take(tn_tensor *to, tn_tensor *from)
{
    return to->numel ? tni_copy_cpu(to, from) : TN_OK;
}

/* Whether what counts of matrices by columns is finite. */
static bool all_finite(const tni_lapack *lib, tni_linalg_part part, const tn_tensor *a)
{
    if (part == TNI_LINALG_ALL)
        return lib->finite(a->data, a->numel);
    int64_t n = tni_linalg_columns(a), all = tni_linalg_batches(a) * n;
    bool upper = part == TNI_LINALG_UPPER, good = true;
    for (int64_t c = 0; good && c < all; c++) {
        int64_t i = c % n, first = upper ? 0 : i, count = upper ? i + 1 : n - i;
        good = lib->finite((const char *)a->data + (size_t)(c * n + first) * lib->item, count);
    }
    return good;
}

tn_status tni_linalg_start(tni_linalg_form form, tn_tensor *A, const tni_lapack **lib,
                           tn_tensor **out)
{
    TN_AUTO(tn_tensor) a = NULL;
    *lib = NULL;
    if (A->numel)
        *lib =
            tni_lapack_for(form.use, (tn_dtype)A->dtype, tni_linalg_rows(A), tni_linalg_columns(A));
    if (*lib)
        TN_TRY(tni_linalg_copy(A, (*lib)->dtype, !form.turned, &a));
    if (*lib && all_finite(*lib, form.part, a)) {
        *out = TN_MOVE(a);
        return TN_OK;
    }
    *lib = NULL;
    return tni_linalg_copy(A, form.ours, form.turned, out);
}

int64_t tni_linalg_failed(const int32_t *info, int64_t n, int64_t *which)
{
    for (int64_t b = 0; b < n; b++)
        if (info[b]) {
            *which = b;
            return info[b];
        }
    return 0;
}
