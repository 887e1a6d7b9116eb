/* SPDX-License-Identifier: MIT */
/* autograd/anomaly.c: what a user wants to know when a gradient is wrong: which call of the forward
 * pass the node belongs to, and which call was the first to make a NaN. */
#include "autograd/anomaly.h"
#include "tenon/autograd.h"
#include "autograd/extra.h"
#include "base/str.h"
#include "core/state.h"
#include "dispatch/call.h"

#include "tenon/ops.h"

_Atomic uint32_t tni_anomaly_bits;

/* Who can tell more about where a call comes from. */
static struct {
    tni_spin lock;
    tn_anomaly_tracer_fn fn;
    void *ctx;
} tracer;

uint32_t tn_anomaly_mode(void)
{
    return tni_anomaly();
}

uint32_t tn_set_anomaly_mode(uint32_t bits)
{
    return atomic_exchange_explicit(&tni_anomaly_bits, bits, memory_order_relaxed);
}

void tn_set_anomaly_tracer(tn_anomaly_tracer_fn fn, void *ctx)
{
    tni_spin_lock(&tracer.lock);
    tracer.fn = fn;
    tracer.ctx = ctx;
    tni_spin_unlock(&tracer.lock);
}

/* ---- where a node was made ---- */

/* The calls that this thread is in, outermost first; hops of one call are one line. */
static void add_frames(tni_str *text)
{
    const tn_op *last = NULL;
    for (uint32_t i = 0; i < tni_tls.depth; i++) {
        const tn_call *call = &tni_tls.frames[i];
        if (call->op != last)
            tni_str_addf(text, "  in %s\n", tn_op_name(call->op));
        last = call->op;
    }
}

static _Thread_local bool is_hushed;

bool tni_anomaly_hush(bool hushed)
{
    bool was = is_hushed;
    is_hushed = hushed;
    return was;
}

static void add_trace(tni_str *text)
{
    tni_spin_lock(&tracer.lock);
    tn_anomaly_tracer_fn fn = tracer.fn;
    void *ctx = tracer.ctx;
    tni_spin_unlock(&tracer.lock);
    if (!fn || is_hushed)
        return;
    char buffer[2048];
    buffer[0] = '\0';
    fn(ctx, buffer, sizeof buffer);
    buffer[sizeof buffer - 1] = '\0';
    tni_str_add(text, buffer);
}

tn_status tni_anomaly_note(tni_node *node)
{
    if (node->cls->flags & TNI_CLASS_ACCUMULATES)
        return TN_OK;
    tni_str text = TNI_STR_INIT;
    add_trace(&text);
    add_frames(&text);
    char *made = tni_str_take(&text);
    TN_CHECK(made, TN_NOMEM, "cannot write down where a node was made");
    struct tni_node_extra *extra = NULL;
    tn_status status = tni_node_extra_get(node, &extra);
    if (status != TN_OK) {
        tni_free(made);
        return status;
    }
    extra->made = made;
    extra->parent = tni_node_ref(tn_current_node());
    return TN_OK;
}

const char *tn_node_made_at(const tn_node *node)
{
    const struct tni_node_extra *extra =
        node ? atomic_load_explicit(&((tn_node *)(uintptr_t)node)->extra, memory_order_acquire)
             : NULL;
    return extra && extra->made ? extra->made : "";
}

static const tni_node *parent_of(const tni_node *node)
{
    const struct tni_node_extra *extra =
        atomic_load_explicit(&((tni_node *)(uintptr_t)node)->extra, memory_order_acquire);
    return extra ? extra->parent : NULL;
}

void tni_anomaly_explain(const tni_node *node, tn_status status)
{
    tni_str text = TNI_STR_INIT;
    const char *made = tn_node_made_at(node);
    if (made[0])
        tni_str_addf(
            &text, "\n\nError detected in %s. Traceback of forward call that caused the error:\n%s",
            node->cls->name, made);
    else
        tni_str_addf(
            &text,
            "\n\nError detected in %s. No forward pass information available. Enable detect "
            "anomaly during forward pass for more information.",
            node->cls->name);
    while ((node = parent_of(node)) != NULL)
        tni_str_addf(&text,
                     "\n\nPrevious calculation was induced by %s. Traceback of forward call that "
                     "induced the previous calculation:\n%s",
                     node->cls->name, tn_node_made_at(node));
    (void)tni_fail(status, tn_last_error_where(), "%s%s", tn_last_error(), tni_str_get(&text));
    tni_str_clear(&text);
}

/* ---- NaN and Inf ---- */

static tn_status any_of(tn_tensor *mask, bool *out)
{
    TN_AUTO(tn_tensor) any = NULL;
    tn_scalar answer;
    TN_TRY(tn_any(mask, &any));
    TN_TRY(tn_item(any, &answer));
    *out = tn_scalar_to_int(answer) != 0;
    return TN_OK;
}

/* Whether @p t has a NaN, or an Inf where @p infinities count. Of what has no values: no. */
static tn_status has_anomaly(tn_tensor *t, bool nans, bool infinities, bool *out)
{
    *out = false;
    if (t->numel == 0 || !t->data || tni_is_meta(t) || !tni_dtype_is_inexact((tn_dtype)t->dtype))
        return TN_OK;
    TN_AUTO(tn_tensor) mask = NULL;
    if (nans) {
        TN_TRY(tn_isnan(t, &mask));
        TN_TRY(any_of(mask, out));
    }
    if (*out || !infinities)
        return TN_OK;
    TN_AUTO(tn_tensor) inf_mask = NULL;
    TN_TRY(tn_isinf(t, &inf_mask));
    return any_of(inf_mask, out);
}

static tn_status look(tn_tensor *t, bool nans, bool infinities, bool *out)
{
    uint8_t no_grad = tni_tls.no_grad;
    tni_tls.no_grad = 1;
    tn_status status = has_anomaly(t, nans, infinities, out);
    tni_tls.no_grad = no_grad;
    return status;
}

tn_status tni_anomaly_check_backward(const tni_node *node, tn_tensor *const *results)
{
    for (uint32_t i = 0; i < node->n_edges; i++) {
        bool bad = false;
        if (results[i])
            TN_TRY(look(results[i], true, false, &bad));
        TN_CHECK(!bad, TN_INVALID, "Function '%s' returned nan values in its %uth output.",
                 node->cls->name, i);
    }
    return TN_OK;
}

tn_status tni_anomaly_check_forward(const tni_node *node, uint32_t output, tn_tensor *t)
{
    uint32_t mode = tni_anomaly();
    bool nan = false, inf = false;
    if (mode & TN_ANOMALY_FORWARD_NAN)
        TN_TRY(look(t, true, false, &nan));
    if (!nan && (mode & TN_ANOMALY_FORWARD_INF))
        TN_TRY(look(t, false, true, &inf));
    if (!nan && !inf)
        return TN_OK;
    const tn_call *call = tni_tls.depth ? &tni_tls.frames[tni_tls.depth - 1] : NULL;
    return tni_fail(TN_INVALID, TNI_WHERE, "%s made %s in its result %u, to be recorded as %s\n%s",
                    call ? tn_op_name(call->op) : "a call", nan ? "a NaN" : "an Inf", output,
                    node->cls->name, tn_node_made_at(node));
}
