/* SPDX-License-Identifier: MIT */
/* tests/dispatch/watch.c: see watch.h. */
#include "dispatch/watch.h"

#include <stdio.h>
#include <unistd.h>
#include "gen/redispatch.h"
#include "tenon/kernels.h"
#include "tenon/ops.h"

/* ---- stderr ---- */

static int real_stderr = -1;
static FILE *caught;

static void release_stderr(void)
{
    if (real_stderr < 0)
        return;
    fflush(stderr);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    real_stderr = -1;
    tn_set_dispatch_trace(false);
    (void)!tn_set_dispatch_debug(NULL);
}

void catch_stderr(void)
{
    caught = tmpfile();
    ASSERT(caught != NULL);
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    dup2(fileno(caught), STDERR_FILENO);
    test_at_end(release_stderr);
}

const char *caught_text(void)
{
    static char text[262144];
    release_stderr();
    rewind(caught);
    size_t n = fread(text, 1, sizeof text - 1, caught);
    text[n] = '\0';
    fclose(caught);
    return text;
}

/* ---- kernels of aten::neg on a device: every convention once ---- */

static tn_keyset below(tn_call *call)
{
    tn_keyset ks = tn_call_keys(call);
    return ks & tn_keyset_full_after(tn_keyset_highest(ks));
}

static tn_status redispatch_typed(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    return tni_re_neg(call, below(call), self, out);
}

static tn_status redispatch_boxed(tn_call *call, const tn_value *args, tn_value *rets)
{
    return tn_call_redispatch(call, below(call), args, rets);
}

/* Calls t::inner boxed. */
static tn_status backend(tn_call *call, tn_tensor *self, tn_tensor **out)
{
    tn_value arg = tn_value_tensor(self), ret;
    (void)call;
    tn_key_guard guard =
        tn_exclude_keys(tn_keyset_of(TN_KEY_TRACER) | tn_keyset_of(TN_KEY_AUTOGRAD_FUNCTIONALITY));
    tn_status st = tn_op_call(kit_op("t::inner"), &arg, 1, &ret);
    tn_keys_restore(guard);
    if (st == TN_OK)
        *out = ret.u.tensor;
    return st;
}

stack_of_layers layers_open(void)
{
    stack_of_layers l = {.k = kit_open()};
    tn_kernel tracer = TN_KERNEL_INIT(redispatch_boxed);
    tn_kernel autograd = tn_kernel_neg(redispatch_typed, "x.c", 1);
    tn_kernel device = tn_kernel_neg(backend, "x.c", 2);
    kit_def(&l.k, "inner(Tensor x) -> Tensor");
    kit_impl(&l.k, "inner", TN_KEY_PRIVATE1, "i");
    ASSERT_OK(tn_library_open(TN_LIBRARY_IMPL, "aten", TN_KEY_NONE, "x.c", 1, &l.aten));
    ASSERT_OK(tn_library_impl(l.aten, "neg", TN_KEY_TRACER, &tracer, NULL));
    ASSERT_OK(tn_library_impl(l.aten, "neg", TN_KEY_AUTOGRAD_PRIVATE1, &autograd, NULL));
    ASSERT_OK(tn_library_impl(l.aten, "neg", TN_KEY_PRIVATE1, &device, NULL));
    l.t = kit_tensor(kit_keys(TN_KEY_PRIVATE1) | tn_keyset_of(TN_KEY_TRACER) |
                     tn_keyset_of(TN_KEY_AUTOGRAD_PRIVATE1));
    return l;
}

void layers_close(stack_of_layers *l)
{
    tn_tensor_unref(l->t);
    tn_library_close(l->aten);
    kit_close(&l->k);
}

tn_status negate(const stack_of_layers *l)
{
    tn_tensor *out = NULL;
    tn_status st = tn_neg(l->t, &out);
    tn_tensor_unref(out);
    return st;
}

/* ---- a listening observer ---- */

events_seen seen;

void observe(void *ctx, const tn_event *event)
{
    EXPECT(ctx == &seen);
    EXPECT_EQ_INT(event->size, sizeof *event);
    if (seen.n == MOST_EVENTS)
        return;
    seen.first_arg[seen.n] = event->n_args ? event->arg_keys[0] : 0;
    seen.events[seen.n++] = *event;
}

void stop_observing(void)
{
    (void)!tn_observe_thread(NULL, NULL);
}

void start_observing(tn_observer_fn fn)
{
    seen.n = 0;
    ASSERT_OK(tn_observe_thread(fn, &seen));
    test_at_end(stop_observing);
}
