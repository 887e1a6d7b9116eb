/* SPDX-License-Identifier: MIT */
/* composite/matmul.c: matmul in terms of dot, mv, mm and bmm.
 *
 * Note [Folding]
 * A batch of matrices times one matrix is one product of a taller matrix, if the batch can be laid
 * out as one: [2, 4, 16] @ [16, 16] becomes [8, 16] @ [16, 16]. T is the operand with more
 * dimensions, S the other; when T is on the right everything is transposed. should_fold says when:
 *   1. T has three or more dimensions, S one or two.
 *   2. S requires grad (and there is no out): always, even if T must be copied, because the other
 * route would give S a gradient for each element of the batch. Grad mode is not asked.
 *   3. Never for a matrix on the left: the result would have to be transposed and copied.
 *   4. T has no elements; or
 *   5. the leading dimensions of T collapse to one without a copy.
 * Everything else is broadcast to a batch on both sides and goes to bmm. */
#include "composite/out.h"
#include "core/state.h"
#include "core/tensor.h"
#include "dispatch/debug.h"
#include "gen/composites.h"
#include "shape/expand.h"
#include "shape/structured.h"
#include "tenon/ops.h"

static tn_status check_dims(const tn_tensor *a, const tn_tensor *b)
{
    TN_CHECK(a->ndim && b->ndim, TN_INVALID,
             "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a->ndim,
             b->ndim);
    return TN_OK;
}

/* Rule 5, for T as it is used: @p swapped means with its last two dimensions exchanged. */
static bool collapses(const tn_tensor *t, bool swapped)
{
    int last = t->ndim - 2; /* of the leading dimensions that count */
    for (int i = 0; i < last; i++) {
        int next = i + 1;
        if (swapped && next == last)
            next = t->ndim - 1;
        if (t->strides[i] != t->strides[next] * t->sizes[next])
            return false;
    }
    return true;
}

/* See Note [Folding]. */
static bool should_fold(const tn_tensor *a, const tn_tensor *b, bool has_out)
{
    bool swapped = b->ndim > a->ndim;
    const tn_tensor *t = swapped ? b : a, *s = swapped ? a : b;
    if (t->ndim < 3 || s->ndim > 2)
        return false;
    if (!has_out && tn_tensor_requires_grad(s))
        return true;
    if (a->ndim == 2)
        return false;
    return t->numel == 0 || collapses(t, swapped);
}

/* ---- stage lines ---- */

static TNI_COLD bool debugging(void)
{
    return tni_debug_on("aten::mm") || tni_debug_on("aten::matmul");
}

/* What the documents print of the operands, under their names for them. */
static void debug_operands(const tn_tensor *folded, const tn_tensor *t2)
{
    static const char label[] = "_matmul_impl";
    const struct {
        const char *name;
        const tn_tensor *tensor;
    } operands[] = {{"t1_folded.", folded}, {"t2->", t2}};
    char text[512];
    for (int i = 0; i < 2; i++)
        tni_debug_line(label, "%skey_set() = %s", operands[i].name,
                       tn_keyset_format(tni_keys(operands[i].tensor), text, sizeof text));
    for (int i = 0; i < 2; i++)
        tni_debug_line(label, "%shas_storage() = %d", operands[i].name,
                       operands[i].tensor->storage != NULL);
    for (int i = 0; i < 2; i++)
        tni_debug_line(label, "%sis_python_dispatch() = %d", operands[i].name,
                       tni_keyset_has(tni_keys(operands[i].tensor), TN_KEY_PYTHON));
}

static TNI_COLD void debug_before_mm(const tn_tensor *folded, const tn_tensor *t2)
{
    static const char label[] = "_matmul_impl";
    if (!debugging())
        return;
    bool grad = tn_grad_enabled();
    if (grad)
        tni_debug_line(label, "About to call at::mm WITHOUT NoGradGuard...");
    tni_debug_line(label, "Calling at::mm(t1_folded, *t2) instead...");
    debug_operands(folded, t2);
    tni_debug_line(label, "GradMode::is_enabled() = %d", grad);
    tni_debug_line(label, grad ? "Now calling at::mm..." : "Inside NoGradGuard, calling at::mm...");
    tni_debug_line("_matmul_impl STDERR", "=== CALLING at::mm NOW ===");
}

static TNI_COLD void debug_after_mm(tn_status status)
{
    if (!debugging())
        return;
    if (status == TN_OK)
        tni_debug_line("_matmul_impl", "at::mm RETURNED!");
    else
        tni_debug_line("_matmul_impl", "at::mm RETURNED an error: %s", tn_status_name(status));
}

/* ---- folding ---- */

/* Leading sizes of T and their product. Those of a tensor with elements cannot overflow; those of
 * one without may. */
static tn_status lead_of(const tn_tensor *t1, int64_t *sizes, int64_t *product)
{
    int lead = t1->ndim - 1;
    int64_t rows = 1;
    for (int i = 0; i < lead; i++) {
        sizes[i] = t1->sizes[i];
        rows = (int64_t)((uint64_t)rows * (uint64_t)sizes[i]);
    }
    *product = rows;
    if (TNI_UNLIKELY(t1->numel == 0))
        TN_CHECK(tni_numel(lead, sizes, product), TN_INVALID,
                 "matmul: the leading dimensions of an operand have too many elements");
    return TN_OK;
}

/* T @ S for T on the left: [..., k] @ [k, n] or [..., k] @ [k]. */
static tn_status fold(tn_tensor *t1, tn_tensor *t2, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS], rows;
    int lead = t1->ndim - 1;
    TN_AUTO(tn_tensor) folded = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_TRY(lead_of(t1, sizes, &rows));
    const int64_t flat[2] = {rows, t1->sizes[lead]};
    TN_TRY(tn_reshape(t1, flat, 2, &folded));
    if (t2->ndim == 1) {
        TN_TRY(tn_mv(folded, t2, &product));
        return tn__unsafe_view(product, sizes, lead, out);
    }
    if (tni_observing)
        debug_before_mm(folded, t2);
    tn_status status = tn_mm(folded, t2, &product);
    if (tni_observing)
        debug_after_mm(status);
    TN_TRY(status);
    sizes[lead] = t2->sizes[1];
    return tn__unsafe_view(product, sizes, lead + 1, out);
}

/* S @ T: computed as (T^T S^T)^T, matrix by matrix. */
static tn_status fold_swapped(tn_tensor *s, tn_tensor *t, tn_tensor **out)
{
    TN_AUTO(tn_tensor) t1 = NULL;
    TN_AUTO(tn_tensor) t2 = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) back = NULL;
    TN_TRY(tn_transpose(t, -2, -1, &t1));
    if (s->ndim == 1)
        return fold(t1, s, out);
    TN_TRY(tn_t(s, &t2));
    TN_TRY(fold(t1, t2, &product));
    TN_TRY(tn_transpose(product, -2, -1, &back));
    return tn_contiguous(back, TN_FORMAT_CONTIGUOUS, out);
}

/* ---- broadcasting ---- */

/* Both operands as batches of one size, and what the result looks like. */
typedef struct batches {
    tn_tensor *a, *b; /* owned: [P, n, m1] and [P, m2, p] */
    int ndim;         /* of the result */
    int64_t sizes[TN_MAX_DIMS];
    int64_t flat[3]; /* [P, n, p] */
} batches;

static void batches_clear(batches *x)
{
    tn_tensor_unref(x->a);
    tn_tensor_unref(x->b);
}

/* t.expand(batch + its own matrix).reshape([P] + matrix) */
static tn_status batch_operand(tn_tensor *t, int matrix_ndim, int batch_ndim, const int64_t *batch,
                               int64_t count, tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS], flat[3] = {count, 0, 0};
    for (int i = 0; i < batch_ndim; i++)
        sizes[i] = batch[i];
    for (int i = 0; i < matrix_ndim; i++)
        sizes[batch_ndim + i] = flat[1 + i] = t->sizes[t->ndim - matrix_ndim + i];
    TN_AUTO(tn_tensor) expanded = NULL;
    TN_TRY(tn_expand(t, sizes, batch_ndim + matrix_ndim, false, &expanded));
    return tn_reshape(expanded, flat, 1 + matrix_ndim, out);
}

/* A vector on the left is a row. */
static tn_status batch_row(tn_tensor *a, int batch_ndim, const int64_t *batch, int64_t count,
                           tn_tensor **out)
{
    int64_t sizes[TN_MAX_DIMS];
    const int64_t flat[3] = {count, 1, a->sizes[0]};
    for (int i = 0; i < batch_ndim; i++)
        sizes[i] = batch[i];
    sizes[batch_ndim] = 1;
    sizes[batch_ndim + 1] = a->sizes[0];
    TN_AUTO(tn_tensor) expanded = NULL;
    TN_TRY(tn_expand(a, sizes, batch_ndim + 2, false, &expanded));
    return tn_reshape(expanded, flat, 3, out);
}

/* A vector on the right is a column. */
static tn_status batch_column(tn_tensor *b, int batch_ndim, const int64_t *batch, int64_t count,
                              tn_tensor **out)
{
    TN_AUTO(tn_tensor) rows = NULL;
    TN_TRY(batch_operand(b, 1, batch_ndim, batch, count, &rows));
    return tn_unsqueeze(rows, 2, out);
}

static tn_status batches_make(tn_tensor *a, tn_tensor *b, batches *x)
{
    int64_t batch[TN_MAX_DIMS], count;
    int batch_ndim;
    x->a = x->b = NULL;
    TN_TRY(tni_broadcast_sizes(a->ndim > 2 ? a->ndim - 2 : 0, a->sizes,
                               b->ndim > 2 ? b->ndim - 2 : 0, b->sizes, &batch_ndim, batch));
    TN_CHECK(tni_numel(batch_ndim, batch, &count), TN_INVALID,
             "matmul: the broadcast batch has too many elements");
    x->ndim = batch_ndim;
    for (int i = 0; i < batch_ndim; i++)
        x->sizes[i] = batch[i];
    x->flat[0] = count;
    x->flat[1] = a->ndim > 1 ? a->sizes[a->ndim - 2] : 1;
    x->flat[2] = b->ndim > 1 ? b->sizes[b->ndim - 1] : 1;
    if (a->ndim > 1)
        x->sizes[x->ndim++] = x->flat[1];
    if (b->ndim > 1)
        x->sizes[x->ndim++] = x->flat[2];
    tn_status status = a->ndim > 1 ? batch_operand(a, 2, batch_ndim, batch, count, &x->a)
                                   : batch_row(a, batch_ndim, batch, count, &x->a);
    if (status == TN_OK)
        status = b->ndim > 1 ? batch_operand(b, 2, batch_ndim, batch, count, &x->b)
                             : batch_column(b, batch_ndim, batch, count, &x->b);
    if (status != TN_OK)
        batches_clear(x);
    return status;
}

static tn_status batched(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    batches x;
    TN_TRY(batches_make(a, b, &x));
    TN_AUTO(tn_tensor) product = NULL;
    TN_AUTO(tn_tensor) squeezed = NULL;
    tn_status status = tn_bmm(x.a, x.b, &product);
    batches_clear(&x);
    TN_TRY(status);
    if (b->ndim == 1)
        TN_TRY(tn_squeeze_dim(product, -1, &squeezed));
    return tn__unsafe_view(squeezed ? squeezed : product, x.sizes, x.ndim, out);
}

/* A batch of one against a larger one, and the one requires grad: as a matrix it can be folded, and
 * its gradient is summed by the product instead of after it. */
static tn_tensor *lone_matrix(tn_tensor *a, tn_tensor *b)
{
    if (a->ndim != 3 || b->ndim != 3 || a->sizes[0] == b->sizes[0])
        return NULL;
    if (a->sizes[0] == 1 && tn_tensor_requires_grad(a))
        return a;
    if (b->sizes[0] == 1 && tn_tensor_requires_grad(b))
        return b;
    return NULL;
}

/* ---- matmul ---- */

static tn_status row_times_matrix(tn_tensor *a, tn_tensor *b, tn_tensor **out)
{
    TN_AUTO(tn_tensor) row = NULL;
    TN_AUTO(tn_tensor) product = NULL;
    TN_TRY(tn_unsqueeze(a, 0, &row));
    TN_TRY(tn_mm(row, b, &product));
    TN_TRY(tn_squeeze_dim_(product, 0));
    *out = TN_MOVE(product);
    return TN_OK;
}

tn_status tni_composite_matmul(tn_tensor *self, tn_tensor *other, tn_tensor **out)
{
    TN_TRY(check_dims(self, other));
    if (self->ndim <= 2 && other->ndim <= 2) {
        if (other->ndim == 2)
            return self->ndim == 2 ? tn_mm(self, other, out) : row_times_matrix(self, other, out);
        return self->ndim == 2 ? tn_mv(self, other, out) : tn_dot(self, other, out);
    }
    if (should_fold(self, other, false))
        return self->ndim > other->ndim ? fold(self, other, out) : fold_swapped(self, other, out);
    tn_tensor *lone = lone_matrix(self, other);
    if (!lone)
        return batched(self, other, out);
    /* As a matrix it still requires grad: rule 2. */
    TN_AUTO(tn_tensor) matrix = NULL;
    TN_TRY(tn_squeeze_dim(lone, 0, &matrix));
    return lone == self ? fold_swapped(matrix, other, out) : fold(self, matrix, out);
}

/* ---- matmul into a given tensor ---- */

static bool same_sizes(const tn_tensor *t, int ndim, const int64_t *sizes)
{
    if (t->ndim != ndim)
        return false;
    for (int i = 0; i < ndim; i++) {
        if (t->sizes[i] != sizes[i])
            return false;
    }
    return true;
}

/* Give @p out these sizes. Its user is told; what is written afterwards counts as the one write. */
static tn_status make_room(tn_tensor *out, int ndim, const int64_t *sizes)
{
    if (same_sizes(out, ndim, sizes))
        return TN_OK;
    TN_TRY(tni_out_tell(out, ndim, sizes));
    uint64_t saved = tni_exclude(&tni_tls, TNI_BELOW_ADINPLACE_OR_VIEW);
    tn_status status = tn_resize_(out, sizes, ndim, TN_FORMAT_NONE);
    tni_tls.excluded_xor = saved;
    return status;
}

/* True when computing cannot fail but for memory, so that @p out may be resized before: it is
 * neither operand, whose sizes would change with it. */
static bool goes_together(const tn_tensor *a, const tn_tensor *b, const tn_tensor *out)
{
    return out != a && out != b && a->dtype == b->dtype && a->dtype == out->dtype &&
           a->dtype != TN_DTYPE_BOOL && a->device.type == b->device.type &&
           a->device.index == b->device.index && a->device.type == out->device.type &&
           a->device.index == out->device.index && tni_is_fake(a) == tni_is_fake(b) &&
           tni_is_fake(a) == tni_is_fake(out) &&
           a->sizes[a->ndim - 1] == b->sizes[b->ndim > 1 ? b->ndim - 2 : 0];
}

static TNI_COLD tn_status refuse_out(tn_tensor *a, tn_tensor *b, tn_tensor *out)
{
    /* The operands speak first. */
    TN_AUTO(tn_tensor) result = NULL;
    TN_TRY(tni_composite_matmul(a, b, &result));
    char want[32], have[32];
    TN_CHECK(out->dtype == result->dtype, TN_INVALID,
             "Expected out tensor to have dtype %s, but got %s instead",
             tni_dtype_cpp((tn_dtype)result->dtype), tni_dtype_cpp((tn_dtype)out->dtype));
    TN_CHECK(out->device.type == result->device.type && out->device.index == result->device.index,
             TN_INVALID, "Expected out tensor to have device %s, but got %s instead",
             tn_device_format(result->device, want, sizeof want),
             tn_device_format(out->device, have, sizeof have));
    /* Operands without elements of a dtype that has no products: nothing to compute. Or a real
     * tensor beside fake ones. */
    return tni_out_take("matmul", result, out);
}

/* Make @p out a tensor of these sizes and see it as @p flat. When no view does that, *out_flat is a
 * fresh tensor: then the result must be copied back. */
static tn_status out_as(tn_tensor *out, int ndim, const int64_t *sizes, int flat_ndim,
                        const int64_t *flat, tn_tensor **out_flat)
{
    TN_TRY(make_room(out, ndim, sizes));
    return tn_reshape(out, flat, flat_ndim, out_flat);
}

static tn_status copy_back(tn_tensor *out, tn_tensor *flat)
{
    if (flat->storage == out->storage)
        return TN_OK;
    TN_AUTO(tn_tensor) shaped = NULL;
    TN_TRY(tn__unsafe_view(flat, out->sizes, out->ndim, &shaped));
    return tn_copy_(out, shaped, false);
}

/* What is resized gets its sizes back when the product turns out to be none. */
static void keep(tni_out_kept *kept, tn_tensor *out, int ndim, const int64_t *sizes)
{
    tni_geometry g = {.ndim = ndim};
    for (int d = 0; d < ndim; d++)
        g.sizes[d] = sizes[d];
    tni_out_keep(kept, out, &g);
}

static tn_status fold_out(tn_tensor *a, tn_tensor *b, tn_tensor *out)
{
    TN_AUTO(tn_tensor) swapped = NULL;
    TN_AUTO(tn_tensor) folded = NULL;
    TN_AUTO(tn_tensor) flat = NULL;
    tn_tensor *t1 = a, *t2 = b;
    if (b->ndim > a->ndim) { /* then a is a vector: rule 3 */
        TN_TRY(tn_transpose(b, -2, -1, &swapped));
        t1 = swapped;
        t2 = a;
    }
    int64_t sizes[TN_MAX_DIMS], rows;
    int lead = t1->ndim - 1;
    TN_TRY(lead_of(t1, sizes, &rows));
    TN_TRY(tn_reshape(t1, (const int64_t[]){rows, t1->sizes[lead]}, 2, &folded));
    TNI_OUT_KEPT kept;
    if (t2->ndim == 1) {
        keep(&kept, out, lead, sizes);
        TN_TRY(out_as(out, lead, sizes, 1, &rows, &flat));
        TN_TRY(tn_mv_out(folded, t2, flat));
        TN_TRY(copy_back(out, flat));
        kept.out = NULL;
        return TN_OK;
    }
    sizes[lead] = t2->sizes[1];
    keep(&kept, out, lead + 1, sizes);
    TN_TRY(out_as(out, lead + 1, sizes, 2, (const int64_t[]){rows, t2->sizes[1]}, &flat));
    if (tni_observing)
        debug_before_mm(folded, t2);
    tn_status status = tn_mm_out(folded, t2, flat);
    if (tni_observing)
        debug_after_mm(status);
    TN_TRY(status);
    TN_TRY(copy_back(out, flat));
    kept.out = NULL;
    return TN_OK;
}

static tn_status batched_out(tn_tensor *a, tn_tensor *b, tn_tensor *out)
{
    batches x;
    TN_TRY(batches_make(a, b, &x));
    TN_AUTO(tn_tensor) flat = NULL;
    TNI_OUT_KEPT kept;
    keep(&kept, out, x.ndim, x.sizes);
    tn_status status = out_as(out, x.ndim, x.sizes, 3, x.flat, &flat);
    if (status == TN_OK)
        status = tn_bmm_out(x.a, x.b, flat);
    batches_clear(&x);
    TN_TRY(status);
    TN_TRY(copy_back(out, flat));
    kept.out = NULL;
    return TN_OK;
}

static tn_status row_times_matrix_out(tn_tensor *a, tn_tensor *b, tn_tensor *out)
{
    TN_AUTO(tn_tensor) row = NULL;
    TN_AUTO(tn_tensor) out_row = NULL;
    TN_TRY(tn_unsqueeze(a, 0, &row));
    if (out->ndim == 1 && out->sizes[0] == b->sizes[1]) {
        TN_TRY(tn_unsqueeze(out, 0, &out_row));
        return tn_mm_out(row, b, out_row);
    }
    TN_TRY(tn_mm_out(row, b, out));
    return tn_squeeze_dim_(out, 0);
}

static tn_status small_out(tn_tensor *a, tn_tensor *b, tn_tensor *out)
{
    if (b->ndim == 2)
        return a->ndim == 2 ? tn_mm_out(a, b, out) : row_times_matrix_out(a, b, out);
    return a->ndim == 2 ? tn_mv_out(a, b, out) : tn_dot_out(a, b, out);
}

tn_status tni_composite_matmul_out(tn_tensor *self, tn_tensor *other, tn_tensor *out)
{
    TN_TRY(check_dims(self, other));
    TN_CHECK(
        !tn_grad_enabled() || !(tn_tensor_requires_grad(self) || tn_tensor_requires_grad(other) ||
                                tn_tensor_requires_grad(out)),
        TN_INVALID,
        "matmul(): functions with out=... arguments don't support automatic differentiation, but "
        "one of the arguments requires grad.");
    if (self->ndim <= 2 && other->ndim <= 2)
        return small_out(self, other, out);
    if (!goes_together(self, other, out))
        return refuse_out(self, other, out);
    bool folds = should_fold(self, other, true);
    tn_tensor *const all[] = {self, other, out};
    TN_TRY(tni_check_still(!folds                                ? "bmm"
                           : self->ndim == 1 || other->ndim == 1 ? "mv"
                                                                 : "mm",
                           all, 3)); /* before anything is resized */
    if (folds)
        return fold_out(self, other, out);
    tn_tensor *lone = lone_matrix(self, other);
    if (!lone)
        return batched_out(self, other, out);
    TN_AUTO(tn_tensor) matrix = NULL;
    TN_TRY(tn_squeeze_dim(lone, 0, &matrix));
    return tni_composite_matmul_out(lone == self ? matrix : self, lone == self ? other : matrix,
                                    out);
}
