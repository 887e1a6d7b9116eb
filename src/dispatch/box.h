/* SPDX-License-Identifier: MIT */
/* dispatch/box.h: between typed arguments and boxed values; included by generated code.
 *
 * tni_box_… make borrowed values of typed arguments. tni_unbox_… read typed arguments from boxed
 * ones, borrowing; they fail with TN_TYPE and a message that names operator, argument, what was
 * found and what was wanted. tni_take_… move typed results out of boxed ones. */
#ifndef TNI_DISPATCH_BOX_H
#define TNI_DISPATCH_BOX_H

#include "core/dtype.h"
#include "dispatch/call.h"

/* Boxed entries of the built-in operators' typed kernels, indexed by TNI_OP_…; gen/boxing.c. */
extern const tn_boxed_fn tni_op_unbox[];

/* ---- refusing typed arguments ---- */

static inline bool tni_bad_list(const void *list, int64_t n)
{
    return n < 0 || (n > 0 && !list);
}
/* The same, and no tensor in it may be NULL. */
static inline bool tni_bad_tensor_list(tn_tensor *const *list, int64_t n)
{
    if (tni_bad_list(list, n))
        return true;
    for (int64_t i = 0; i < n; i++) {
        if (!list[i])
            return true;
    }
    return false;
}
/* Options that do not begin with their own size: nobody knows what is in them. */
static inline bool tni_bad_opts(const tn_tensor_opts *opts)
{
    return opts && opts->size != sizeof *opts;
}
/* Numbers that stand for no dtype, memory format or kind of scalar. */
static inline bool tni_bad_dtype(tn_dtype dtype)
{
    return dtype != TN_DTYPE_NONE && !tni_dtype_ok((int)dtype);
}
static inline bool tni_bad_format(tn_memory_format format)
{
    return (int)format < TN_FORMAT_NONE || (int)format > TN_FORMAT_CHANNELS_LAST_3D;
}
static inline bool tni_bad_scalar(const tn_scalar *x)
{
    return x && (unsigned)x->kind > TN_SCALAR_COMPLEX;
}
/* Fail for what one of these refused. */
TNI_COLD tn_status tni_bad_list_argument(const tn_op *op, int position, const void *list,
                                         int64_t n);
TNI_COLD tn_status tni_bad_opts_argument(const tn_op *op, const tn_tensor_opts *opts);
TNI_COLD tn_status tni_bad_dtype_argument(const tn_op *op, int position, int dtype);
TNI_COLD tn_status tni_bad_format_argument(const tn_op *op, int position, int format);
TNI_COLD tn_status tni_bad_scalar_argument(const tn_op *op, int position, const tn_scalar *x);
TNI_COLD tn_status tni_null_string_argument(const tn_op *op, int position);
TNI_COLD tn_status tni_null_storage_argument(const tn_op *op, int position);
/* Fail for the first NULL of @p pointers; @p positions are theirs, results after the arguments. */
TNI_COLD tn_status tni_null_pointer(const tn_op *op, const uint8_t *positions,
                                    const void *const *pointers);

/* ---- boxing ---- */

/* NULL is None. */
static inline tn_value tni_box_tensor(tn_tensor *t)
{
    return (tn_value){.tag = t ? TN_TAG_TENSOR : TN_TAG_NONE, .u.tensor = t};
}
tn_value tni_box_opt_int(tn_opt_int x);
tn_value tni_box_opt_float(tn_opt_float x);
tn_value tni_box_opt_bool(tn_opt_bool x);
tn_value tni_box_opt_scalar(const tn_scalar *x);
tn_value tni_box_opt_ints(const int64_t *x, int64_t n);
tn_value tni_box_opt_floats(const double *x, int64_t n);
/* Numbers have one form in typed lists and another in boxed ones: memory for the one that is made.
 */
typedef struct tni_list_room {
    void *block; /* NULL: `small` does */
    size_t nbytes;
    _Alignas(16) unsigned char small[512];
} tni_list_room;
void tni_list_room_clear(tni_list_room *room);
#define TNI_LIST_ROOM __attribute__((cleanup(tni_list_room_clear))) tni_list_room
/* None, and the error record says so, when there is no memory. */
tn_value tni_box_scalars(const tn_scalar *x, int64_t n, tni_list_room *room);
tn_value tni_box_string(const char *x);
tn_value tni_box_generator(tn_generator *x);
tn_value tni_box_storage(tn_storage *x);
/* What a device knows its stream by; NULL is one, too. */
tn_value tni_box_stream(void *x);
/* A dtype, layout or memory format; negative is None. */
tn_value tni_box_number(int x);
tn_value tni_box_device(tn_device x);
/* dtype, layout, device, pin_memory. */
void tni_box_opts(const tn_tensor_opts *opts, tn_value *four);

/* ---- unboxing: @p argument is the position in the schema, for messages ---- */

TNI_COLD tn_status tni_unbox_fail(const tn_call *call, const tn_value *v, int argument,
                                  const char *wanted);

static inline tn_status tni_unbox_tensor(const tn_call *call, const tn_value *v, int argument,
                                         tn_tensor **out)
{
    if (TNI_UNLIKELY(v->tag != TN_TAG_TENSOR || !v->u.tensor))
        return tni_unbox_fail(call, v, argument, "Tensor");
    *out = v->u.tensor;
    return TN_OK;
}
static inline tn_status tni_unbox_opt_tensor(const tn_call *call, const tn_value *v, int argument,
                                             tn_tensor **out)
{
    if (TNI_UNLIKELY(v->tag != TN_TAG_TENSOR && v->tag != TN_TAG_NONE))
        return tni_unbox_fail(call, v, argument, "Tensor?");
    *out = v->tag == TN_TAG_TENSOR ? v->u.tensor : NULL;
    return TN_OK;
}
/* An empty list of any kind is an empty list of every kind. */
TN_NODISCARD tn_status tni_unbox_tensors(const tn_call *call, const tn_value *v, int argument,
                                         tn_tensor *const **out, int64_t *n);
TN_NODISCARD tn_status tni_unbox_opt_tensors(const tn_call *call, const tn_value *v, int argument,
                                             tn_tensor *const **out, int64_t *n);
TN_NODISCARD tn_status tni_unbox_int(const tn_call *call, const tn_value *v, int argument,
                                     int64_t *out);
TN_NODISCARD tn_status tni_unbox_opt_int(const tn_call *call, const tn_value *v, int argument,
                                         tn_opt_int *out);
/* @p room has @p size places for the copies of a single int; NULL: the list has no fixed size and a
 * single int is refused. */
TN_NODISCARD tn_status tni_unbox_ints(const tn_call *call, const tn_value *v, int argument,
                                      int64_t *room, int64_t size, const int64_t **out, int64_t *n);
/* None gives NULL, an empty list does not. */
TN_NODISCARD tn_status tni_unbox_opt_ints(const tn_call *call, const tn_value *v, int argument,
                                          int64_t *room, int64_t size, const int64_t **out,
                                          int64_t *n);
/* An int passes for a float. */
TN_NODISCARD tn_status tni_unbox_float(const tn_call *call, const tn_value *v, int argument,
                                       double *out);
TN_NODISCARD tn_status tni_unbox_opt_float(const tn_call *call, const tn_value *v, int argument,
                                           tn_opt_float *out);
TN_NODISCARD tn_status tni_unbox_floats(const tn_call *call, const tn_value *v, int argument,
                                        const double **out, int64_t *n);
TN_NODISCARD tn_status tni_unbox_opt_floats(const tn_call *call, const tn_value *v, int argument,
                                            const double **out, int64_t *n);
TN_NODISCARD tn_status tni_unbox_bool(const tn_call *call, const tn_value *v, int argument,
                                      bool *out);
TN_NODISCARD tn_status tni_unbox_opt_bool(const tn_call *call, const tn_value *v, int argument,
                                          tn_opt_bool *out);
TN_NODISCARD tn_status tni_unbox_bools(const tn_call *call, const tn_value *v, int argument,
                                       const bool **out, int64_t *n);
TN_NODISCARD tn_status tni_unbox_scalar(const tn_call *call, const tn_value *v, int argument,
                                        tn_scalar *out);
/* *out is NULL or @p room. */
TN_NODISCARD tn_status tni_unbox_scalars(const tn_call *call, const tn_value *v, int argument,
                                         tni_list_room *room, const tn_scalar **out, int64_t *n);
TN_NODISCARD tn_status tni_unbox_opt_scalar(const tn_call *call, const tn_value *v, int argument,
                                            tn_scalar *room, const tn_scalar **out);
TN_NODISCARD tn_status tni_unbox_string(const tn_call *call, const tn_value *v, int argument,
                                        const char **out);
TN_NODISCARD tn_status tni_unbox_opt_string(const tn_call *call, const tn_value *v, int argument,
                                            const char **out);
TN_NODISCARD tn_status tni_unbox_dtype(const tn_call *call, const tn_value *v, int argument,
                                       tn_dtype *out);
TN_NODISCARD tn_status tni_unbox_opt_dtype(const tn_call *call, const tn_value *v, int argument,
                                           tn_dtype *out);
TN_NODISCARD tn_status tni_unbox_layout(const tn_call *call, const tn_value *v, int argument,
                                        tn_layout *out);
TN_NODISCARD tn_status tni_unbox_opt_layout(const tn_call *call, const tn_value *v, int argument,
                                            tn_layout *out);
TN_NODISCARD tn_status tni_unbox_format(const tn_call *call, const tn_value *v, int argument,
                                        tn_memory_format *out);
TN_NODISCARD tn_status tni_unbox_opt_format(const tn_call *call, const tn_value *v, int argument,
                                            tn_memory_format *out);
TN_NODISCARD tn_status tni_unbox_device(const tn_call *call, const tn_value *v, int argument,
                                        tn_device *out);
TN_NODISCARD tn_status tni_unbox_opt_device(const tn_call *call, const tn_value *v, int argument,
                                            tn_device *out);
TN_NODISCARD tn_status tni_unbox_storage(const tn_call *call, const tn_value *v, int argument,
                                         tn_storage **out);
TN_NODISCARD tn_status tni_unbox_stream(const tn_call *call, const tn_value *v, int argument,
                                        void **out);
TN_NODISCARD tn_status tni_unbox_opt_generator(const tn_call *call, const tn_value *v, int argument,
                                               tn_generator **out);
/* dtype, layout, device, pin_memory from four values; *out is @p room. */
TN_NODISCARD tn_status tni_unbox_opts(const tn_call *call, const tn_value *four, int argument,
                                      tn_tensor_opts *room, const tn_tensor_opts **out);

/* ---- results of a boxed kernel ---- */

/* tni_run_boxed has checked them against the schema and made them own what they hold. */
TN_OWNED tn_tensor *tni_take_tensor(tn_value *v);
/* A list of tensors may come as a list of values: make result @p at an array of tensors. On failure
 * all
 * @p n results are released. @retval TN_NOMEM */
TN_NODISCARD tn_status tni_settle_list(tn_value *rets, int n, int at);
TN_OWNED tn_tensor **tni_take_tensors(tn_value *v, int64_t *n);
tn_scalar tni_take_scalar(const tn_value *v);
int64_t tni_take_int(const tn_value *v);
double tni_take_float(const tn_value *v);
bool tni_take_bool(const tn_value *v);
tn_dtype tni_take_dtype(const tn_value *v);

#endif
