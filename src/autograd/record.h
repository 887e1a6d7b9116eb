/* SPDX-License-Identifier: MIT */
/* autograd/record.h: what generated autograd kernels and formulas call.
 *
 * A kernel that records begins a node with the call's differentiable arguments, keeps what the
 * formulas need, runs the call below autograd, and ties the results to the node. Until then nothing
 * is visible to anybody: a failure leaves no trace. */
#ifndef TNI_AUTOGRAD_RECORD_H
#define TNI_AUTOGRAD_RECORD_H

#include "autograd/inplace.h"
#include "autograd/saved.h"
#include "core/scope.h"
#include "core/state.h"
#include "dispatch/call.h"
#include "dispatch/library.h"

#define tni_recording (!tni_tls.no_grad)
/* The recording half of a kernel: out of the way of calls that record nothing. */
#define TNI_COLD_PATH __attribute__((noinline))

static inline bool tni_any_requires_grad(tn_tensor *const *list, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (tni_requires_grad(list[i]))
            return true;
    return false;
}

/* ---- recording ---- */

/* A node of @p cls. @p inputs are the class's n_edges arguments that have a gradient, then others
 * that it saves; @p list are further arguments, one edge each. Saves what live edges need.
 * @p rewritten: bit i: the call will write inputs[i], whose old value is saved as a copy. Some
 * tensors may be NULL. */
TN_NODISCARD tn_status tni_record_begin(const tni_node_class *cls, tn_tensor *const *inputs,
                                        tn_tensor *const *list, int64_t list_n, uint32_t n_results,
                                        uint32_t rewritten, TN_OWNED tni_node **out);
/* A kernel of ours makes its results. One from outside may hand an argument back, whose own history
 * would become that of this call: refused. The @p n @p inputs are those of tni_record_begin.
 * @retval TN_INVALID  "aten::exp returned its argument …" */
TN_NODISCARD tn_status tni_check_made_slow(const tn_call *call, tn_tensor *const *inputs, int n,
                                           const tn_tensor *t);
TN_NODISCARD static inline tn_status tni_check_made(const tn_call *call, tn_tensor *const *inputs,
                                                    int n, const tn_tensor *t)
{
    return tni_foreign_kernels() ? tni_check_made_slow(call, inputs, n, t) : TN_OK;
}
/* @p t is result @p i of the call. Only floating and complex results have a gradient; NULL: a
 * result that was not asked for. */
TN_NODISCARD tn_status tni_record_result(tni_node *node, uint32_t i, tn_tensor *t);
/* The same for a call that has one result, when nothing more is done with the node: *node is given
 * away when that can be, which spares counting up and down. */
TN_NODISCARD tn_status tni_record_only_result(tni_node **node, tn_tensor *t);
/* The results are a list. On failure it is freed. */
TN_NODISCARD tn_status tni_record_list(tni_node *node, tn_tensor **list, int64_t n);
/* @p t was written by the call. On failure it stays written, and every backward pass that comes to
 * the write is refused. */
TN_NODISCARD tn_status tni_record_written(tni_node *node, tn_tensor *t);
/* @p t lies otherwise since the call, which wrote none of its elements. On failure every backward
 * pass that comes there is refused, as above. */
TN_NODISCARD tn_status tni_record_moved(tni_node **node, tn_tensor *t);
/* Save a result, after its history was set. */
TN_NODISCARD tn_status tni_record_save(tni_node *node, uint32_t slot, tn_tensor *t);
/* The same for a result that the call has written: on failure as tni_record_written. */
TN_NODISCARD tn_status tni_record_save_written(tni_node *node, uint32_t slot, tn_tensor *t);

/* ---- what cannot be recorded ---- */

/* "<op>(): functions with out=... arguments don't support automatic differentiation, but one of the
 * arguments requires grad." */
TNI_COLD tn_status tni_refuse_out(const tn_call *call);
/* "derivative for aten::<op> is not implemented"; of an operator that declares so, "the derivative
 * for '<op>' is not implemented." */
TNI_COLD tn_status tni_refuse_operator(const tn_call *call);
/* The latter, when @p t requires grad: an argument that the operator declares so of. */
TN_NODISCARD tn_status tni_refuse_derivative(const tn_call *call, const tn_tensor *t);
/* The same, unless no result has a gradient anyway. Results are released when it fails. */
TNI_COLD tn_status tni_refuse_results(const tn_call *call, tn_status status,
                                      tn_tensor **const *results, int n);
TNI_COLD tn_status tni_refuse_list(const tn_call *call, tn_status status, tn_tensor ***list,
                                   int64_t *n);
/* "The function '<fn>' is not differentiable with respect to argument '<name>'. This input cannot
 * have requires_grad True." */
TN_NODISCARD tn_status tni_refuse_gradient(const tn_call *call, const char *name,
                                           const tn_tensor *t);
TN_NODISCARD tn_status tni_refuse_lists(const tn_call *call, const char *name,
                                        tn_tensor *const *list, int64_t n);

/* ---- keeping values that are no tensors ---- */

typedef struct tni_kept_scalar {
    tn_scalar value;
    bool has;
} tni_kept_scalar;
typedef struct tni_kept_string {
    char text[23]; /* names of modes; a longer one is none that a kernel knows */
    bool has;
} tni_kept_string;
typedef struct tni_kept_bools {
    bool v[7];
    uint8_t n;
} tni_kept_bools;
typedef struct tni_kept_floats {
    double v[5];
    uint8_t n;
    bool has;
} tni_kept_floats;

TN_NODISCARD tn_status tni_keep_ints(tni_ints *to, const int64_t *v, int64_t n);
/* For each tensor of a list its number of dimensions, then its sizes. */
TN_NODISCARD tn_status tni_keep_shapes(tni_ints *to, tn_tensor *const *list, int64_t n);
/* Save a list of tensors, some of which may be NULL. @retval TN_UNSUPPORTED  more than TN_MAX_DIMS
 */
TN_NODISCARD tn_status tni_keep_tensors(tni_saved_list *to, tn_tensor *const *list, int64_t n);
tni_kept_scalar tni_keep_scalar(const tn_scalar *s);
tni_kept_string tni_keep_string(const char *text);
tni_kept_bools tni_keep_bools(const bool *v, int64_t n);
tni_kept_floats tni_keep_floats(const double *v, int64_t n);
tn_tensor_opts tni_opts_of(const tn_tensor *t); /* dtype and device; NULL: none */

/* ---- formulas ---- */

/* A matrix whose columns lie one after the other: its gradient should too. */
static inline bool tni_column_major(const tn_tensor *t)
{
    return t->ndim == 2 && t->strides[0] == 1 && t->strides[1] == t->sizes[0];
}

tn_scalar tni_scalar_neg(tn_scalar a);
tn_scalar tni_scalar_add(tn_scalar a, tn_scalar b);
tn_scalar tni_scalar_sub(tn_scalar a, tn_scalar b);
tn_scalar tni_scalar_mul(tn_scalar a, tn_scalar b);
tn_scalar tni_scalar_div(tn_scalar a, tn_scalar b);

/* Gradient @p i, or zeros of the result's shape when it is undefined; belongs to the scope. */
TN_BORROWED tn_tensor *tni_defined_grad(const tni_backward *b, uint32_t i);
/* Gradients that one call computed, owned, go to the scope and to the edges that want them; a
 * failure sticks to the scope. */
void tni_take_results(tni_backward *b, tn_status status, const uint8_t *edges, tn_tensor **made,
                      int n);
static inline bool tni_any(const bool *mask, int n)
{
    for (int i = 0; i < n; i++)
        if (mask[i])
            return true;
    return false;
}

#endif
