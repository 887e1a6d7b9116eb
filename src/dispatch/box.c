/* SPDX-License-Identifier: MIT */
/* dispatch/box.c: conversions between typed arguments and boxed values, one function a type. */
#include "dispatch/box.h"

#include <string.h>

/* ---- refusing typed arguments ---- */

/* Also before the library has booted: a NULL argument is refused before anything else happens. */
static const char *name_of(const tn_op *op)
{
    return op->name ? op->name : tni_op_defs[op - tni_builtin_ops].name;
}

/* Of an argument; positions after the last are results. */
static const char *argument_name(const tn_op *op, int position)
{
    const tni_schema *schema =
        tni_ready() == TN_OK ? tni_op_get_schema((tn_op *)(uintptr_t)op) : NULL;
    if (!schema)
        return "?";
    if (position < schema->nargs)
        return schema->args[position].name;
    const tni_schema_arg *result = &schema->rets[position - schema->nargs];
    return position - schema->nargs < schema->nrets && result->name[0] ? result->name : "out";
}

tn_status tni_bad_list_argument(const tn_op *op, int position, const void *list, int64_t n)
{
    const char *argument = argument_name(op, position);
    TN_CHECK(n >= 0, TN_INVALID, "%s: argument '%s' has %lld elements", name_of(op), argument,
             (long long)n);
    TN_CHECK(list, TN_INVALID, "%s: argument '%s' must be a list of %lld elements, not NULL",
             name_of(op), argument, (long long)n);
    int64_t at = 0;
    while (at < n && ((tn_tensor *const *)list)[at])
        at++;
    TN_FAIL(TN_INVALID, "%s: element %lld of argument '%s' must be a tensor, not NULL", name_of(op),
            (long long)at, argument);
}

tn_status tni_bad_opts_argument(const tn_op *op, const tn_tensor_opts *opts)
{
    TN_FAIL(TN_INVALID,
            "%s: opts->size is %u, wanted %zu: begin with tn_opts() or TN_TENSOR_OPTS_INIT",
            name_of(op), opts->size, sizeof *opts);
}

tn_status tni_bad_dtype_argument(const tn_op *op, int position, int dtype)
{
    TN_FAIL(TN_TYPE, "%s: argument '%s': %d is not a dtype", name_of(op),
            argument_name(op, position), dtype);
}

tn_status tni_bad_format_argument(const tn_op *op, int position, int format)
{
    TN_FAIL(TN_INVALID, "%s: argument '%s': unsupported memory format option %d", name_of(op),
            argument_name(op, position), format);
}

tn_status tni_bad_scalar_argument(const tn_op *op, int position, const tn_scalar *x)
{
    TN_FAIL(TN_TYPE, "%s: argument '%s': %d is not a kind of scalar", name_of(op),
            argument_name(op, position), (int)x->kind);
}

tn_status tni_null_string_argument(const tn_op *op, int position)
{
    TN_FAIL(TN_INVALID, "%s: argument '%s' must be a string, not NULL", name_of(op),
            argument_name(op, position));
}

tn_status tni_null_storage_argument(const tn_op *op, int position)
{
    TN_FAIL(TN_INVALID, "%s: argument '%s' must be a storage, not NULL", name_of(op),
            argument_name(op, position));
}

tn_status tni_null_pointer(const tn_op *op, const uint8_t *positions, const void *const *pointers)
{
    int i = 0;
    while (pointers[i])
        i++;
    TN_FAIL(TN_INVALID, "%s: argument '%s' must not be NULL", name_of(op),
            argument_name(op, positions[i]));
}

/* ---- boxing ---- */

tn_value tni_box_opt_int(tn_opt_int x)
{
    return x.has ? tn_value_int(x.value) : tn_value_none();
}

tn_value tni_box_opt_float(tn_opt_float x)
{
    return x.has ? tn_value_float(x.value) : tn_value_none();
}

tn_value tni_box_opt_bool(tn_opt_bool x)
{
    return x == TN_BOOL_NONE ? tn_value_none() : tn_value_bool(x == TN_BOOL_TRUE);
}

tn_value tni_box_opt_scalar(const tn_scalar *x)
{
    return x ? tn_value_scalar(*x) : tn_value_none();
}

tn_value tni_box_opt_ints(const int64_t *x, int64_t n)
{
    return x ? tn_value_ints(x, n) : tn_value_none();
}

tn_value tni_box_opt_floats(const double *x, int64_t n)
{
    return x ? tn_value_floats(x, n) : tn_value_none();
}

void tni_list_room_clear(tni_list_room *room)
{
    tni_block_free(room->block, room->nbytes);
}

/* NULL, with the error record filled, when there is no memory. */
static void *room_for(tni_list_room *room, int64_t n, size_t size)
{
    size_t nbytes;
    if (!tni_size_mul((size_t)n, size, &nbytes))
        nbytes = SIZE_MAX;
    if (nbytes <= sizeof room->small)
        return room->small;
    room->block = nbytes == SIZE_MAX ? NULL : tni_block_alloc(nbytes);
    room->nbytes = nbytes;
    if (!room->block)
        (void)tni_fail(TN_NOMEM, TNI_WHERE, "cannot allocate a list of %lld numbers", (long long)n);
    return room->block;
}

tn_value tni_box_scalars(const tn_scalar *x, int64_t n, tni_list_room *room)
{
    tn_value *values = room_for(room, n, sizeof *values);
    if (!values)
        return tn_value_none();
    for (int64_t i = 0; i < n; i++)
        values[i] = tn_value_scalar(x[i]);
    return (tn_value){.tag = TN_TAG_LIST, .count = (uint32_t)n, .u.values = values};
}

tn_value tni_box_string(const char *x)
{
    return x ? tn_value_string(x) : tn_value_none();
}

tn_value tni_box_storage(tn_storage *x)
{
    tn_value v = tn_value_none();
    v.tag = TN_TAG_POINTER;
    v.u.pointer = x;
    return v;
}

tn_value tni_box_stream(void *x)
{
    tn_value v = tn_value_none();
    v.tag = TN_TAG_POINTER;
    v.u.pointer = x;
    return v;
}

tn_value tni_box_generator(tn_generator *x)
{
    return x ? tn_value_generator(x) : tn_value_none();
}

tn_value tni_box_number(int x)
{
    return x == -1 ? tn_value_none() : tn_value_int(x);
}

tn_value tni_box_device(tn_device x)
{
    return x.type == TN_DEVICE_NONE ? tn_value_none() : tn_value_device(x);
}

void tni_box_opts(const tn_tensor_opts *opts, tn_value *four)
{
    const tn_tensor_opts none = TN_TENSOR_OPTS_INIT;
    const tn_tensor_opts *o = opts ? opts : &none;
    four[0] = tni_box_number(o->dtype);
    four[1] = tni_box_number(o->layout);
    four[2] = tni_box_device(o->device);
    four[3] = tni_box_opt_bool((tn_opt_bool)o->pin_memory);
}

/* ---- unboxing ---- */

static bool is_none(const tn_value *v)
{
    return v->tag == TN_TAG_NONE || (v->tag == TN_TAG_TENSOR && !v->u.tensor);
}

tn_status tni_unbox_fail(const tn_call *call, const tn_value *v, int argument, const char *wanted)
{
    const char *found = is_none(v) ? "None" : tn_tag_name((tn_tag)v->tag);
    TN_FAIL(TN_TYPE, "%s: argument '%s' must be %s, not %s", name_of(call->op),
            argument_name(call->op, argument), wanted, found);
}

/* Lists: the tag that is wanted, or an empty list of another kind. */
static bool is_list(const tn_value *v, tn_tag tag)
{
    return v->tag == tag ||
           (v->count == 0 && v->tag >= TN_TAG_TENSOR_LIST && v->tag <= TN_TAG_LIST);
}

tn_status tni_unbox_tensors(const tn_call *call, const tn_value *v, int argument,
                            tn_tensor *const **out, int64_t *n)
{
    if (!is_list(v, TN_TAG_TENSOR_LIST))
        return tni_unbox_fail(call, v, argument, "Tensor[]");
    for (uint32_t i = 0; i < v->count; i++)
        TN_CHECK(v->u.tensors[i], TN_TYPE,
                 "%s: element %u of argument '%s' must be Tensor, not None", name_of(call->op), i,
                 argument_name(call->op, argument));
    *out = v->u.tensors;
    *n = v->count;
    return TN_OK;
}

tn_status tni_unbox_opt_tensors(const tn_call *call, const tn_value *v, int argument,
                                tn_tensor *const **out, int64_t *n)
{
    if (!is_list(v, TN_TAG_TENSOR_LIST))
        return tni_unbox_fail(call, v, argument, "Tensor?[]");
    *out = v->u.tensors;
    *n = v->count;
    return TN_OK;
}

tn_status tni_unbox_int(const tn_call *call, const tn_value *v, int argument, int64_t *out)
{
    if (v->tag != TN_TAG_INT)
        return tni_unbox_fail(call, v, argument, "int");
    *out = v->u.i;
    return TN_OK;
}

tn_status tni_unbox_opt_int(const tn_call *call, const tn_value *v, int argument, tn_opt_int *out)
{
    if (v->tag != TN_TAG_INT && !is_none(v))
        return tni_unbox_fail(call, v, argument, "int?");
    *out = v->tag == TN_TAG_INT ? tn_some_int(v->u.i) : tn_no_int();
    return TN_OK;
}

static tn_status unbox_ints(const tn_call *call, const tn_value *v, int argument,
                            const char *wanted, int64_t *room, int64_t size, const int64_t **out,
                            int64_t *n)
{
    static const int64_t nothing[1];
    if (v->tag == TN_TAG_INT && room) {
        for (int64_t i = 0; i < size; i++)
            room[i] = v->u.i;
        *out = room;
        *n = size;
        return TN_OK;
    }
    if (!is_list(v, TN_TAG_INT_LIST))
        return tni_unbox_fail(call, v, argument, wanted);
    *out = v->count ? v->u.ints : nothing;
    *n = v->count;
    return TN_OK;
}

tn_status tni_unbox_ints(const tn_call *call, const tn_value *v, int argument, int64_t *room,
                         int64_t size, const int64_t **out, int64_t *n)
{
    return unbox_ints(call, v, argument, "int[]", room, size, out, n);
}

tn_status tni_unbox_opt_ints(const tn_call *call, const tn_value *v, int argument, int64_t *room,
                             int64_t size, const int64_t **out, int64_t *n)
{
    *out = NULL;
    *n = 0;
    return is_none(v) ? TN_OK : unbox_ints(call, v, argument, "int[]?", room, size, out, n);
}

tn_status tni_unbox_float(const tn_call *call, const tn_value *v, int argument, double *out)
{
    if (v->tag != TN_TAG_FLOAT && v->tag != TN_TAG_INT)
        return tni_unbox_fail(call, v, argument, "float");
    *out = v->tag == TN_TAG_FLOAT ? v->u.f : (double)v->u.i;
    return TN_OK;
}

tn_status tni_unbox_opt_float(const tn_call *call, const tn_value *v, int argument,
                              tn_opt_float *out)
{
    if (v->tag != TN_TAG_FLOAT && v->tag != TN_TAG_INT && !is_none(v))
        return tni_unbox_fail(call, v, argument, "float?");
    *out = v->tag == TN_TAG_FLOAT ? tn_some_float(v->u.f)
           : v->tag == TN_TAG_INT ? tn_some_float((double)v->u.i)
                                  : tn_no_float();
    return TN_OK;
}

tn_status tni_unbox_floats(const tn_call *call, const tn_value *v, int argument, const double **out,
                           int64_t *n)
{
    static const double nothing[1];
    if (!is_list(v, TN_TAG_FLOAT_LIST))
        return tni_unbox_fail(call, v, argument, "float[]");
    *out = v->count ? v->u.floats : nothing;
    *n = v->count;
    return TN_OK;
}

tn_status tni_unbox_opt_floats(const tn_call *call, const tn_value *v, int argument,
                               const double **out, int64_t *n)
{
    *out = NULL;
    *n = 0;
    return is_none(v) ? TN_OK : tni_unbox_floats(call, v, argument, out, n);
}

tn_status tni_unbox_bool(const tn_call *call, const tn_value *v, int argument, bool *out)
{
    if (v->tag != TN_TAG_BOOL)
        return tni_unbox_fail(call, v, argument, "bool");
    *out = v->u.i != 0;
    return TN_OK;
}

tn_status tni_unbox_opt_bool(const tn_call *call, const tn_value *v, int argument, tn_opt_bool *out)
{
    if (v->tag != TN_TAG_BOOL && !is_none(v))
        return tni_unbox_fail(call, v, argument, "bool?");
    *out = v->tag != TN_TAG_BOOL ? TN_BOOL_NONE : v->u.i ? TN_BOOL_TRUE : TN_BOOL_FALSE;
    return TN_OK;
}

tn_status tni_unbox_bools(const tn_call *call, const tn_value *v, int argument, const bool **out,
                          int64_t *n)
{
    if (!is_list(v, TN_TAG_BOOL_LIST))
        return tni_unbox_fail(call, v, argument, "bool[]");
    *out = v->u.bools;
    *n = v->count;
    return TN_OK;
}

static bool is_scalar(const tn_value *v)
{
    return v->tag == TN_TAG_INT || v->tag == TN_TAG_FLOAT || v->tag == TN_TAG_BOOL ||
           v->tag == TN_TAG_COMPLEX;
}

tn_status tni_unbox_scalar(const tn_call *call, const tn_value *v, int argument, tn_scalar *out)
{
    if (!is_scalar(v))
        return tni_unbox_fail(call, v, argument, "Scalar");
    return tn_value_to_scalar(v, out);
}

tn_status tni_unbox_scalars(const tn_call *call, const tn_value *v, int argument,
                            tni_list_room *room, const tn_scalar **out, int64_t *n)
{
    if (!is_list(v, TN_TAG_LIST))
        return tni_unbox_fail(call, v, argument, "Scalar[]");
    tn_scalar *list = room_for(room, v->count, sizeof *list);
    if (!list)
        return TN_NOMEM;
    for (uint32_t i = 0; i < v->count; i++) {
        if (!is_scalar(&v->u.values[i]))
            return tni_unbox_fail(call, v, argument, "Scalar[]");
        TN_TRY(tn_value_to_scalar(&v->u.values[i], &list[i]));
    }
    *out = list;
    *n = v->count;
    return TN_OK;
}

tn_status tni_unbox_opt_scalar(const tn_call *call, const tn_value *v, int argument,
                               tn_scalar *room, const tn_scalar **out)
{
    *out = NULL;
    if (is_none(v))
        return TN_OK;
    if (!is_scalar(v))
        return tni_unbox_fail(call, v, argument, "Scalar?");
    *out = room;
    return tn_value_to_scalar(v, room);
}

tn_status tni_unbox_string(const tn_call *call, const tn_value *v, int argument, const char **out)
{
    if (v->tag != TN_TAG_STRING)
        return tni_unbox_fail(call, v, argument, "str");
    *out = v->u.text;
    return TN_OK;
}

tn_status tni_unbox_opt_string(const tn_call *call, const tn_value *v, int argument,
                               const char **out)
{
    if (v->tag != TN_TAG_STRING && !is_none(v))
        return tni_unbox_fail(call, v, argument, "str?");
    *out = v->tag == TN_TAG_STRING ? v->u.text : NULL;
    return TN_OK;
}

/* Numbers of an enumeration; a number that names nothing is refused here, not by kernels. */
static tn_status unbox_number(const tn_call *call, const tn_value *v, int argument,
                              const char *wanted, bool optional, bool (*valid)(int64_t), int *out)
{
    if (optional && is_none(v)) {
        *out = -1;
        return TN_OK;
    }
    if (v->tag != TN_TAG_INT)
        return tni_unbox_fail(call, v, argument, wanted);
    TN_CHECK(valid(v->u.i), TN_TYPE, "%s: argument '%s' must be %s, not the number %lld",
             name_of(call->op), argument_name(call->op, argument), wanted, (long long)v->u.i);
    *out = (int)v->u.i;
    return TN_OK;
}

static bool valid_dtype(int64_t i)
{
    return i >= 0 && i < TN_DTYPE_LIMIT && tn_dtype_valid((tn_dtype)i);
}

static bool valid_layout(int64_t i)
{
    return i == TN_LAYOUT_STRIDED;
}

static bool valid_format(int64_t i)
{
    return i >= TN_FORMAT_CONTIGUOUS && i <= TN_FORMAT_CHANNELS_LAST_3D;
}

tn_status tni_unbox_dtype(const tn_call *call, const tn_value *v, int argument, tn_dtype *out)
{
    int number = 0;
    TN_TRY(unbox_number(call, v, argument, "ScalarType", false, valid_dtype, &number));
    *out = (tn_dtype)number;
    return TN_OK;
}

tn_status tni_unbox_opt_dtype(const tn_call *call, const tn_value *v, int argument, tn_dtype *out)
{
    int number = 0;
    TN_TRY(unbox_number(call, v, argument, "ScalarType?", true, valid_dtype, &number));
    *out = (tn_dtype)number;
    return TN_OK;
}

tn_status tni_unbox_layout(const tn_call *call, const tn_value *v, int argument, tn_layout *out)
{
    int number = 0;
    TN_TRY(unbox_number(call, v, argument, "Layout", false, valid_layout, &number));
    *out = (tn_layout)number;
    return TN_OK;
}

tn_status tni_unbox_opt_layout(const tn_call *call, const tn_value *v, int argument, tn_layout *out)
{
    int number = 0;
    TN_TRY(unbox_number(call, v, argument, "Layout?", true, valid_layout, &number));
    *out = (tn_layout)number;
    return TN_OK;
}

tn_status tni_unbox_format(const tn_call *call, const tn_value *v, int argument,
                           tn_memory_format *out)
{
    int number = 0;
    TN_TRY(unbox_number(call, v, argument, "MemoryFormat", false, valid_format, &number));
    *out = (tn_memory_format)number;
    return TN_OK;
}

tn_status tni_unbox_opt_format(const tn_call *call, const tn_value *v, int argument,
                               tn_memory_format *out)
{
    int number = 0;
    TN_TRY(unbox_number(call, v, argument, "MemoryFormat?", true, valid_format, &number));
    *out = (tn_memory_format)number;
    return TN_OK;
}

tn_status tni_unbox_device(const tn_call *call, const tn_value *v, int argument, tn_device *out)
{
    if (v->tag != TN_TAG_DEVICE)
        return tni_unbox_fail(call, v, argument, "Device");
    *out = v->u.device;
    return TN_OK;
}

tn_status tni_unbox_opt_device(const tn_call *call, const tn_value *v, int argument, tn_device *out)
{
    if (v->tag != TN_TAG_DEVICE && !is_none(v))
        return tni_unbox_fail(call, v, argument, "Device?");
    *out = v->tag == TN_TAG_DEVICE ? v->u.device : TN_NO_DEVICE;
    return TN_OK;
}

tn_status tni_unbox_storage(const tn_call *call, const tn_value *v, int argument, tn_storage **out)
{
    if (v->tag != TN_TAG_POINTER || !v->u.pointer)
        return tni_unbox_fail(call, v, argument, "Storage");
    *out = v->u.pointer;
    return TN_OK;
}

tn_status tni_unbox_stream(const tn_call *call, const tn_value *v, int argument, void **out)
{
    if (v->tag != TN_TAG_POINTER)
        return tni_unbox_fail(call, v, argument, "Stream");
    *out = v->u.pointer;
    return TN_OK;
}

tn_status tni_unbox_opt_generator(const tn_call *call, const tn_value *v, int argument,
                                  tn_generator **out)
{
    if (v->tag != TN_TAG_GENERATOR && !is_none(v))
        return tni_unbox_fail(call, v, argument, "Generator?");
    *out = v->tag == TN_TAG_GENERATOR ? v->u.generator : NULL;
    return TN_OK;
}

tn_status tni_unbox_opts(const tn_call *call, const tn_value *four, int argument,
                         tn_tensor_opts *room, const tn_tensor_opts **out)
{
    tn_dtype dtype = TN_DTYPE_NONE;
    tn_layout layout = TN_LAYOUT_NONE;
    tn_opt_bool pin_memory = TN_BOOL_NONE;
    *room = (tn_tensor_opts)TN_TENSOR_OPTS_INIT;
    TN_TRY(tni_unbox_opt_dtype(call, &four[0], argument, &dtype));
    TN_TRY(tni_unbox_opt_layout(call, &four[1], argument + 1, &layout));
    TN_TRY(tni_unbox_opt_device(call, &four[2], argument + 2, &room->device));
    TN_TRY(tni_unbox_opt_bool(call, &four[3], argument + 3, &pin_memory));
    room->dtype = dtype;
    room->layout = layout;
    room->pin_memory = pin_memory;
    *out = room;
    return TN_OK;
}

/* ---- results of a boxed kernel ---- */

static tn_value take(tn_value *v)
{
    tn_value taken = *v;
    *v = tn_value_none();
    return taken;
}

tn_tensor *tni_take_tensor(tn_value *v)
{
    const tn_value taken = take(v);
    return taken.tag == TN_TAG_TENSOR ? taken.u.tensor : NULL;
}

/* A list of values that are all tensors, as an array of tensors; takes their references. */
static tn_status tensors_of_list(tn_value *v)
{
    size_t nbytes;
    tn_tensor **tensors = NULL;
    if (v->count > 0) {
        tensors = tni_size_mul(v->count, sizeof *tensors, &nbytes) ? tni_alloc(nbytes) : NULL;
        TN_CHECK(tensors, TN_NOMEM, "cannot allocate a list of %u tensors", v->count);
    }
    for (uint32_t i = 0; i < v->count; i++)
        tensors[i] = tn_tensor_ref(v->u.values[i].u.tensor);
    tn_value made = tn_value_take_tensors(tensors, v->count);
    tn_value_clear(v);
    *v = made;
    return TN_OK;
}

tn_status tni_settle_list(tn_value *rets, int n, int at)
{
    tn_value *v = &rets[at];
    tn_status status = TN_OK;
    if (v->tag == TN_TAG_LIST) {
        status = tensors_of_list(v);
    } else if (v->tag != TN_TAG_TENSOR_LIST) { /* an empty list of another kind */
        tn_value_clear(v);
        *v = tn_value_take_tensors(NULL, 0);
    }
    for (int i = 0; i < n && status != TN_OK; i++)
        tn_value_clear(&rets[i]);
    return status;
}

tn_tensor **tni_take_tensors(tn_value *v, int64_t *n)
{
    const tn_value taken = take(v);
    *n = taken.count;
    return (tn_tensor **)(uintptr_t)taken.u.tensors;
}

tn_scalar tni_take_scalar(const tn_value *v)
{
    switch ((tn_tag)v->tag) {
    case TN_TAG_FLOAT:
        return tn_float(v->u.f);
    case TN_TAG_BOOL:
        return tn_bool(v->u.i != 0);
    case TN_TAG_COMPLEX:
        return tn_complex(v->u.z.re, v->u.z.im);
    default:
        return tn_int(v->u.i);
    }
}

int64_t tni_take_int(const tn_value *v)
{
    return v->u.i;
}

double tni_take_float(const tn_value *v)
{
    return v->tag == TN_TAG_FLOAT ? v->u.f : (double)v->u.i;
}

bool tni_take_bool(const tn_value *v)
{
    return v->u.i != 0;
}

tn_dtype tni_take_dtype(const tn_value *v)
{
    return (tn_dtype)v->u.i;
}
