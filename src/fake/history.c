/* SPDX-License-Identifier: MIT */
/* fake/history.c: giving a converted tensor the place that its original has: as the result of calls
 * that are not there to be differentiated, or as a view. */
#include "fake/history.h"

#include "autograd/meta.h"
#include "core/state.h"
#include "fake/mode.h"
#include "tenon/ops.h"

static tn_status refuse(tni_backward *b)
{
    (void)b;
    TN_FAIL(TN_INVALID, "Internal error: Tried to backward() through example input");
}

static const tni_node_class error_class = {
    .name = "Error", .apply = refuse, .flags = TNI_CLASS_RUN_UNDEFINED};

tn_status tni_fake_give_history(tn_tensor *fake)
{
    TN_AUTO(tni_node) node = NULL;
    TN_TRY(tni_node_new(&error_class, 0, 1, &node));
    TN_TRY(tni_node_set_input(node, 0, fake));
    return tni_set_grad_fn(fake, node, 0);
}

/* Views of another dtype show complex numbers as pairs of real ones, or pairs as complex numbers.
 */
static tn_status view_again(tn_tensor *base, const tn_tensor *like, tn_tensor **out)
{
    TN_AUTO(tn_tensor) other = NULL;
    int64_t sizes[TN_MAX_DIMS + 1], strides[TN_MAX_DIMS + 1]; /* as_strided refuses one too many */
    if (base->dtype != like->dtype && tn_dtype_is_complex((tn_dtype)base->dtype)) {
        TN_TRY(tn_view_as_real(base, &other));
        base = other;
    } else if (base->dtype != like->dtype && tn_dtype_is_complex((tn_dtype)like->dtype)) {
        int n = like->ndim;
        for (int d = 0; d < n; d++) {
            sizes[d] = like->sizes[d];
            strides[d] = 2 * like->strides[d];
        }
        sizes[n] = 2;
        strides[n] = 1;
        TN_TRY(tn_as_strided(base, sizes, n + 1, strides, n + 1, tn_some_int(2 * like->offset),
                             &other));
        return tn_view_as_complex(other, out);
    }
    return tn_as_strided(base, like->sizes, like->ndim, like->strides, like->ndim,
                         tn_some_int(like->offset), out);
}

tn_status tni_fake_view(tn_tensor *base, const tn_tensor *like, bool recorded, tn_tensor **out)
{
    /* The caller may be below autograd, in inference mode, or in another fake mode. */
    tni_state *s = &tni_tls;
    tni_fake_switch before = tni_fake_remember(s);
    uint8_t no_grad = s->no_grad, inference = s->inference;
    s->included_xor = s->excluded_xor = 0;
    s->fake_mode = NULL;
    s->faking = 0;
    s->no_grad = !recorded;
    s->inference = 0;
    tn_status status = view_again(base, like, out);
    s->no_grad = no_grad;
    s->inference = inference;
    tni_fake_return(s, before);
    return status;
}
