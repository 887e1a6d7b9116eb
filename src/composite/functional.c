/* SPDX-License-Identifier: MIT */
/* composite/functional.c: operators that write their argument, as functions that write a copy, or a
 * tensor that looks like it where every element is written. */
#include <inttypes.h>

#include "base/alloc.h"
#include "composite/leave.h"
#include "core/tensor.h"
#include "gen/composites.h"
#include "gen/kernels.h"
#include "shape/geometry.h"
#include "tenon/ops.h"

/* ---- filled ---- */

/* FILL writes `x`, a tensor like `self`. */
#define FILLED(FILL)                                       \
    (void)call;                                            \
    TN_AUTO(tn_tensor) x = NULL;                           \
    TN_TRY(tn_empty_like(self, NULL, TN_FORMAT_NONE, &x)); \
    TN_TRY(FILL);                                          \
    *out = TN_MOVE(x);                                     \
    return TN_OK

tn_status tni_kernel_zero(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    FILLED(tn_zero_(x));
}

tn_status tni_kernel_uniform(tn_call *call, tn_tensor *self, double from, double to,
                             tn_generator *generator, tn_tensor **out)
{
    FILLED(tn_uniform_(x, from, to, generator));
}

tn_status tni_kernel_random(tn_call *call, tn_tensor *self, tn_generator *generator,
                            tn_tensor **out)
{
    FILLED(tn_random_(x, generator));
}

tn_status tni_kernel_random_from(tn_call *call, tn_tensor *self, int64_t from, tn_opt_int to,
                                 tn_generator *generator, tn_tensor **out)
{
    FILLED(tn_random_from_(x, from, to, generator));
}

tn_status tni_kernel_random_to(tn_call *call, tn_tensor *self, int64_t to, tn_generator *generator,
                               tn_tensor **out)
{
    FILLED(tn_random_to_(x, to, generator));
}

tn_status tni_kernel_cauchy(tn_call *call, tn_tensor *self, double median, double sigma,
                            tn_generator *generator, tn_tensor **out)
{
    FILLED(tn_cauchy_(x, median, sigma, generator));
}

tn_status tni_kernel_exponential(tn_call *call, tn_tensor *self, double lambd,
                                 tn_generator *generator, tn_tensor **out)
{
    FILLED(tn_exponential_(x, lambd, generator));
}

tn_status tni_kernel_geometric(tn_call *call, tn_tensor *self, double p, tn_generator *generator,
                               tn_tensor **out)
{
    FILLED(tn_geometric_(x, p, generator));
}

tn_status tni_kernel_log_normal(tn_call *call, tn_tensor *self, double mean, double std,
                                tn_generator *generator, tn_tensor **out)
{
    FILLED(tn_log_normal_(x, mean, std, generator));
}

/* ---- written in places ---- */

tn_status tni_composite__index_put_impl(tn_tensor *self, tn_tensor *const *indices,
                                        int64_t indices_n, tn_tensor *values, bool accumulate,
                                        bool unsafe, tn_tensor **out)
{
    (void)unsafe;
    return tn_index_put(self, indices, indices_n, values, accumulate, out);
}

tn_status tni_composite__unsafe_index_put(tn_tensor *self, tn_tensor *const *indices,
                                          int64_t indices_n, tn_tensor *values, bool accumulate,
                                          tn_tensor **out)
{
    return tn_index_put(self, indices, indices_n, values, accumulate, out);
}

/* The rows that are too long, shortened: of all that `ids` names. */
static tn_tensor *shortened(tn_tensor *self, tn_tensor *ids, double max_norm, double norm_type)
{
    const tn_scalar p = tn_float(norm_type);
    const int64_t last = 1;
    tn_tensor *rows = tnx_index_select(self, 0, ids);
    tn_tensor *norms = tnx_norm_scalaropt_dim(rows, &p, &last, 1, true);
    tn_tensor *scale = tnx_mul_scalar(
        tnx_reciprocal(tnx_add_scalar(norms, tn_float(1e-7), tn_int(1))), tn_float(max_norm));
    return tnx_where(tnx_gt_scalar(norms, tn_float(max_norm)), tnx_mul(rows, scale), rows);
}

/* Keep the first of those that are the same among @p count numbers from 0 to n - 1. How many stay,
 * -1: no memory. */
static int64_t keep_first(int64_t *id, int64_t count, int64_t n)
{
    bool *seen = tni_calloc((size_t)n * sizeof *seen);
    int64_t kept = 0;
    for (int64_t i = 0; seen && i < count; i++) {
        if (!seen[id[i]])
            id[kept++] = id[i];
        seen[id[i]] = true;
    }
    tni_free(seen);
    return seen ? kept : -1;
}

/* Which rows @p indices name, each once, in one dimension; they may count from the end. Of those
 * that are not there `select` speaks, of the least. */
static tn_status rows_named(tn_tensor *self, tn_tensor *indices, tn_tensor **out)
{
    const int64_t all[] = {-1}, n = self->sizes[0];
    tn_tensor *made = NULL;
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    tn_tensor *wide = tnx_to_dtype(indices, TN_DTYPE_I64, false, true, TN_FORMAT_CONTIGUOUS);
    TN_TRY(tni_leave(scope, tnx_reshape(wide, all, 1), &made));
    TN_AUTO(tn_tensor) ids = made;
    int64_t *id = tn_tensor_data(ids);
    const int64_t count = tni_is_meta(ids) ? 0 : ids->numel; /* index_select() refuses those */
    const int64_t *missing = NULL;
    for (int64_t i = 0; i < count; i++)
        if ((id[i] < -n || id[i] >= n) && (!missing || id[i] < *missing))
            missing = &id[i];
    if (missing) {
        TN_AUTO(tn_tensor) none = NULL;
        return tn_select(self, 0, *missing, &none);
    }
    for (int64_t i = 0; i < count; i++)
        id[i] += id[i] < 0 ? n : 0;
    int64_t kept = count == 0 ? ids->numel : keep_first(id, count, n);
    TN_CHECK(kept >= 0, TN_NOMEM, "embedding_renorm_: cannot allocate marks for %" PRId64 " rows",
             n);
    return tn_narrow(ids, 0, 0, kept, out);
}

tn_status tni_kernel_embedding_renorm_(tn_call *call, tn_tensor *self, tn_tensor *indices,
                                       double max_norm, double norm_type)
{
    (void)call;
    char text[TNI_TYPE_TEXT];
    TN_CHECK(self->ndim == 2, TN_INVALID,
             "Expected 2-dimensional tensor, but got %d-dimensional tensor for argument #1 'self' "
             "(while checking arguments for embedding_renorm_)",
             self->ndim);
    TN_CHECK(indices->dtype == TN_DTYPE_I64 || indices->dtype == TN_DTYPE_I32, TN_INVALID,
             "Expected tensor for argument #2 'indices' to have one of the following scalar types: "
             "Long, Int; but got %s instead (while checking arguments for embedding_renorm_)",
             tni_type_text((tn_dtype)indices->dtype, text));
    TN_CHECK(!tn_dtype_is_integral((tn_dtype)self->dtype, true), TN_INVALID,
             "norm(): input dtype should be either floating point or complex. Got %s instead.",
             tni_dtype_text((tn_dtype)self->dtype));
    TN_TRY(tni_check_internal_overlap(self));
    if (tni_is_meta(self))
        return TN_OK;
    TN_AUTO(tn_tensor) ids = NULL;
    TN_TRY(rows_named(self, indices, &ids));
    tn_tensor *made = NULL;
    tn_scope *scope;
    TN_TRY(tn_scope_enter(&scope));
    TN_TRY(tni_leave(scope, shortened(self, ids, max_norm, norm_type), &made));
    TN_AUTO(tn_tensor) rows = made;
    return tn_index_copy_(self, 0, ids, rows);
}

tn_status tni_kernel_embedding_renorm(tn_call *call, tn_tensor *self, tn_tensor *indices,
                                      double max_norm, double norm_type, tn_tensor **out)
{
    (void)call;
    TN_AUTO(tn_tensor) made = NULL;
    TN_TRY(tn_clone(self, TN_FORMAT_NONE, &made));
    TN_TRY(tn_embedding_renorm_(made, indices, max_norm, norm_type));
    *out = TN_MOVE(made);
    return TN_OK;
}
