/* SPDX-License-Identifier: MIT */
/* composite/out.c: see out.h. */
#include "composite/out.h"
#include "core/tensor.h"
#include "iter/iter.h"
#include "shape/geometry.h"
#include "shape/structured.h"
#include "tenon/autograd.h"
#include "tenon/ops.h"

/* What a tensor that takes @p made must look like. */
static void fresh_geometry(const tn_tensor *made, tni_geometry *g)
{
    tni_geometry_copy(g, made);
    g->offset = 0;
    g->has_strides = false;
}

static bool is_trained_leaf(const tn_tensor *t)
{
    return tn_tensor_requires_grad(t) && !(t->flags & TNI_HAS_GRAD_FN);
}

tn_status tni_check_leaf(tn_tensor *out)
{
    if (!out || !tn_grad_enabled())
        return TN_OK;
    if (TNI_UNLIKELY(out->flags & TNI_VIEW_CREATION) && tn_tensor_requires_grad(out))
        return tn_copy_(out, out, false); /* refused, in the words of who knows how it was made */
    TN_CHECK(
        !out->view_base || !is_trained_leaf(out->view_base), TN_INVALID,
        "a view of a leaf Variable that requires grad is being used in an in-place operation.");
    TN_CHECK(!is_trained_leaf(out), TN_INVALID,
             "a leaf Variable that requires grad is being used in an in-place operation.");
    return TN_OK;
}

tn_status tni_check_still(const char *op, tn_tensor *const *tensors, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        TN_CHECK(!tensors[i] || !tni_moves(tensors[i]), TN_UNSUPPORTED,
                 "Trying to use forward AD with %s_out that does not support it because it is an "
                 "out= function",
                 op);
    return TN_OK;
}

tn_status tni_check_real(const tn_tensor *made, const tn_tensor *out)
{
    TN_CHECK(!tni_is_fake(made) || tni_is_fake(out), TN_INVALID,
             "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
             "'allow_non_fake_inputs'.");
    return TN_OK;
}

/* What @p out must look like: the dtype is its own where the result can be cast to it. */
static tn_status wanted(const tn_tensor *made, tn_tensor *out, tni_geometry *g)
{
    TN_CHECK(made, TN_INVALID,
             "Expected out tensor to have dtype nullptr (uninitialized), but got %s instead",
             out ? tni_dtype_cpp((tn_dtype)out->dtype) : "nothing");
    if (out)
        TN_TRY(tni_check_writable(made, out)); /* what tn_copy_ would refuse */
    fresh_geometry(made, g);
    if (out && out->dtype != made->dtype) { /* cast, as what it is made of would */
        TN_TRY(tni_check_cast((tn_dtype)made->dtype, (tn_dtype)out->dtype));
        g->dtype = (tn_dtype)out->dtype;
    }
    return TN_OK;
}

static tn_status take(const char *op, tn_tensor *made, tn_tensor *out, bool as_it_lies)
{
    tni_geometry g;
    TN_AUTO(tn_tensor) beside = NULL;
    tn_tensor *const both[] = {made, out};
    TN_TRY(wanted(made, out, &g));
    g.has_strides = as_it_lies && (made->flags & TNI_DENSE) != 0;
    TN_TRY(tni_check_still(op, both, 2));
    TNI_OUT_KEPT kept;
    tni_out_keep(&kept, out, &g);
    TN_TRY(tni_out_prepare(op, &g, out, NULL, 0, &beside));
    TN_TRY(tn_copy_(out, made, false));
    kept.out = NULL;
    return TN_OK;
}

tn_status tni_out_take(const char *op, tn_tensor *made, tn_tensor *out)
{
    return take(op, made, out, false);
}

tn_status tni_out_take_pointwise(const char *op, tn_tensor *made, tn_tensor *out)
{
    return take(op, made, out, true);
}

tn_status tni_out_take_fresh(const char *op, tn_tensor *made, tn_tensor *out)
{
    tni_geometry g;
    TN_TRY(wanted(made, out, &g));
    TN_TRY(tni_out_check(op, &g, out));
    TNI_OUT_KEPT kept;
    tni_out_keep(&kept, out, &g);
    TN_TRY(tni_tensor_resize(out, g.ndim, g.sizes));
    TN_TRY(tn_copy_(out, made, false));
    kept.out = NULL;
    return TN_OK;
}

/* All are resized before the first is written. */
static tn_status bring(const char *op, tn_tensor *const *made, tn_tensor *const *outs, int n,
                       int all)
{
    tni_geometry g;
    TN_AUTO(tn_tensor) beside = NULL;
    if (n == 0)
        return tni_outs_apart(outs - all, all);
    TN_TRY(wanted(*made, *outs, &g));
    TNI_OUT_KEPT kept;
    tni_out_keep(&kept, *outs, &g);
    TN_TRY(tni_out_prepare(op, &g, *outs, NULL, 0, &beside));
    TN_TRY(bring(op, made + 1, outs + 1, n - 1, all));
    TN_TRY(tn_copy_(*outs, *made, false));
    kept.out = NULL;
    return TN_OK;
}

tn_status tni_out_take_all(const char *op, tn_tensor *const *made, tn_tensor *const *outs, int n)
{
    for (int i = 0; i < n; i++) {
        tni_geometry g;
        TN_TRY(wanted(made[i], outs[i], &g));
        TN_TRY(tni_out_check(op, &g, outs[i]));
    }
    return bring(op, made, outs, n, n);
}

/* All are resized before the first is written; what was resized is as it was when one cannot be. */
static tn_status bring_list(const char *op, tn_tensor *const *made, tn_tensor *const *outs,
                            tni_out_kept *kept, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        tni_geometry g;
        TN_AUTO(tn_tensor) beside = NULL;
        fresh_geometry(made[i], &g);
        tni_out_keep(&kept[i], outs[i], &g);
        TN_TRY(tni_out_prepare(op, &g, outs[i], NULL, 0, &beside));
    }
    TN_TRY(tni_outs_apart(outs, n));
    for (int64_t i = 0; i < n; i++)
        TN_TRY(tn_copy_(outs[i], made[i], false));
    return TN_OK;
}

tn_status tni_out_take_list(const char *op, const char *form, tn_tensor *const *made, int64_t n,
                            tn_tensor *const *outs, int64_t n_outs)
{
    TN_CHECK(n == n_outs, TN_INVALID, "%s() expected an out= argument of size %lld, got size %lld",
             form, (long long)n, (long long)n_outs);
    for (int64_t i = 0; i < n; i++) {
        tni_geometry g;
        TN_TRY(tni_check_writable(made[i], outs[i]));
        fresh_geometry(made[i], &g);
        TN_TRY(tni_out_check(op, &g, outs[i]));
    }
    tni_out_kept *kept = tni_calloc((size_t)n * sizeof *kept);
    TN_CHECK(kept || n == 0, TN_NOMEM, "out of memory");
    tn_status status = bring_list(op, made, outs, kept, n);
    for (int64_t i = n;
         status != TN_OK && i-- > 0;) /* the last one first: they may share a storage */
        tni_out_restore(&kept[i]);
    tni_free(kept);
    return status;
}

tn_status tni_inplace_begin(tn_tensor *self, tn_tensor **out)
{
    if (tn_grad_enabled())
        /* Of a view that must not be written no gradient will be asked for: either nothing here
         * requires grad, or writing it is refused, which says so better than reading it would. */
        return self->flags & TNI_VIEW_CREATION ? tn_detach(self, out)
                                               : tn_clone(self, TN_FORMAT_PRESERVE, out);
    *out = tn_tensor_ref(self);
    return TN_OK;
}

tn_status tni_inplace_take(tn_tensor *made, tn_tensor *self)
{
    char a[TNI_SIZES_TEXT], b[TNI_SIZES_TEXT];
    bool same = made->ndim == self->ndim;
    for (int d = 0; same && d < self->ndim; d++)
        same = made->sizes[d] == self->sizes[d];
    TN_CHECK(same, TN_INVALID, "output with shape %s doesn't match the broadcast shape %s",
             tni_format_sizes(self->ndim, self->sizes, a, sizeof a),
             tni_format_sizes(made->ndim, made->sizes, b, sizeof b));
    TN_TRY(tni_check_cast((tn_dtype)made->dtype, (tn_dtype)self->dtype));
    return tn_copy_(self, made, false);
}

/* ---- results that are no views ---- */

void tni_leave_own_base(tn_tensor *t)
{
    if (tni_strong_count(&t->object) != 1 || tni_strong_count(&t->view_base->object) != 1)
        return; /* an argument itself, or a view of what somebody has */
    if (t->view_base->flags & TNI_HAS_TANGENT)
        return; /* which is where its own is */
    t->flags &= ~(uint32_t)(TNI_VIEW_CREATION | TNI_NO_TANGENT);
    tn_tensor_unref(TN_MOVE(t->view_base));
}
