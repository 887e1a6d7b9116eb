/* SPDX-License-Identifier: MIT */
/* core/value.c: boxed values: making them without copying, copying them deeply, and releasing them.
 */
#include "base/alloc.h"
#include "base/status.h"
#include "tenon/dispatch.h"

#include <string.h>

/* Lists within lists beyond this are refused: a borrowed value may even contain itself. */
enum { MAX_NESTING = 128 };

static const char *const tag_names[] = {
    [TN_TAG_NONE] = "None",
    [TN_TAG_TENSOR] = "Tensor",
    [TN_TAG_INT] = "int",
    [TN_TAG_FLOAT] = "float",
    [TN_TAG_BOOL] = "bool",
    [TN_TAG_COMPLEX] = "complex",
    [TN_TAG_STRING] = "str",
    [TN_TAG_DEVICE] = "Device",
    [TN_TAG_GENERATOR] = "Generator",
    [TN_TAG_TENSOR_LIST] = "Tensor[]",
    [TN_TAG_INT_LIST] = "int[]",
    [TN_TAG_FLOAT_LIST] = "float[]",
    [TN_TAG_BOOL_LIST] = "bool[]",
    [TN_TAG_LIST] = "list",
    [TN_TAG_DICT] = "Dict",
    [TN_TAG_POINTER] = "pointer",
};

const char *tn_tag_name(tn_tag tag)
{
    size_t i = (size_t)tag;
    return i < sizeof tag_names / sizeof *tag_names ? tag_names[i] : "unknown";
}

/* ---- borrowing ---- */

tn_value tn_value_none(void)
{
    return (tn_value){.tag = TN_TAG_NONE};
}

tn_value tn_value_tensor(tn_tensor *t)
{
    return (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = t};
}

tn_value tn_value_int(int64_t i)
{
    return (tn_value){.tag = TN_TAG_INT, .u.i = i};
}

tn_value tn_value_float(double f)
{
    return (tn_value){.tag = TN_TAG_FLOAT, .u.f = f};
}

tn_value tn_value_bool(bool b)
{
    return (tn_value){.tag = TN_TAG_BOOL, .u.i = b};
}

tn_value tn_value_scalar(tn_scalar s)
{
    switch (s.kind) {
    case TN_SCALAR_INT:
        return (tn_value){.tag = TN_TAG_INT, .count = s.beyond != 0, .u.i = s.v.i};
    case TN_SCALAR_FLOAT:
        return tn_value_float(s.v.f);
    case TN_SCALAR_BOOL:
        return tn_value_bool(s.v.i != 0);
    case TN_SCALAR_COMPLEX:
        return (tn_value){.tag = TN_TAG_COMPLEX, .u.z = {s.v.f, s.imag}};
    default:
        return tn_value_none();
    }
}

tn_value tn_value_device(tn_device d)
{
    return (tn_value){.tag = TN_TAG_DEVICE, .u.device = d};
}

/* `count` has 32 bits: a longer list or text is cut, never read beyond its end. */
static uint32_t count_of(int64_t n)
{
    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

tn_value tn_value_string(const char *text)
{
    if (!text)
        return tn_value_none();
    return (tn_value){
        .tag = TN_TAG_STRING, .count = count_of((int64_t)strlen(text)), .u.text = text};
}

tn_value tn_value_generator(tn_generator *g)
{
    return (tn_value){.tag = TN_TAG_GENERATOR, .u.generator = g};
}

tn_value tn_value_tensors(tn_tensor *const *tensors, int64_t n)
{
    return (tn_value){.tag = TN_TAG_TENSOR_LIST, .count = count_of(n), .u.tensors = tensors};
}

tn_value tn_value_ints(const int64_t *ints, int64_t n)
{
    return (tn_value){.tag = TN_TAG_INT_LIST, .count = count_of(n), .u.ints = ints};
}

tn_value tn_value_floats(const double *floats, int64_t n)
{
    return (tn_value){.tag = TN_TAG_FLOAT_LIST, .count = count_of(n), .u.floats = floats};
}

tn_value tn_value_bools(const bool *bools, int64_t n)
{
    return (tn_value){.tag = TN_TAG_BOOL_LIST, .count = count_of(n), .u.bools = bools};
}

/* ---- owning ---- */

tn_value tn_value_take_tensor(tn_tensor *t)
{
    tn_value v = tn_value_tensor(t);
    v.flags = TN_VALUE_OWNED;
    return v;
}

tn_value tn_value_take_tensors(tn_tensor **tensors, int64_t n)
{
    tn_value v = tn_value_tensors(tensors, n);
    v.flags = TN_VALUE_OWNED;
    return v;
}

/* The arrays of an owned value are its own, so dropping const is right there. */
static void *own_array(const void *array)
{
    return (void *)(uintptr_t)array;
}

static void clear_all(tn_value *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tn_value_clear(&values[i]);
    tni_free(values);
}

void tn_value_clear(tn_value *value)
{
    if (!value)
        return;
    tn_value v = *value;
    *value = tn_value_none();
    if (!(v.flags & TN_VALUE_OWNED))
        return;
    switch ((tn_tag)v.tag) {
    case TN_TAG_TENSOR:
        tn_tensor_unref(v.u.tensor);
        break;
    case TN_TAG_GENERATOR:
        tn_generator_unref(v.u.generator);
        break;
    case TN_TAG_TENSOR_LIST:
        tn_tensor_list_free(own_array(v.u.tensors), v.count);
        break;
    case TN_TAG_STRING:
        tni_free(own_array(v.u.text));
        break;
    case TN_TAG_INT_LIST:
    case TN_TAG_FLOAT_LIST:
    case TN_TAG_BOOL_LIST:
        tni_free(own_array(v.u.pointer));
        break;
    case TN_TAG_LIST:
        clear_all(own_array(v.u.values), v.count);
        break;
    case TN_TAG_DICT:
        clear_all(own_array(v.u.values), 2 * (size_t)v.count);
        break;
    case TN_TAG_NONE:
    case TN_TAG_INT:
    case TN_TAG_FLOAT:
    case TN_TAG_BOOL:
    case TN_TAG_COMPLEX:
    case TN_TAG_DEVICE:
    case TN_TAG_POINTER:
        break;
    }
}

/* ---- copying ---- */

/* @p n elements of @p size bytes; an empty list needs no memory and copies to NULL. */
static tn_status copy_array(const void *from, size_t n, size_t size, void **out)
{
    *out = NULL;
    if (n == 0)
        return TN_OK;
    TN_CHECK(from, TN_INVALID, "tn_value_copy: a list of %zu elements has a NULL array", n);
    size_t nbytes;
    void *to = tni_size_mul(n, size, &nbytes) ? tni_alloc(nbytes) : NULL;
    TN_CHECK(to, TN_NOMEM, "cannot copy a list of %zu elements", n);
    memcpy(to, from, nbytes);
    *out = to;
    return TN_OK;
}

static tn_status copy_at(const tn_value *from, int depth, tn_value *out);

static tn_status copy_values(const tn_value *from, size_t n, int depth, void **out)
{
    void *array;
    TN_TRY(copy_array(from, n, sizeof *from, &array));
    tn_value *values = array;
    for (size_t i = 0; i < n; i++) {
        tn_status status = copy_at(&from[i], depth + 1, &values[i]);
        if (status != TN_OK) {
            clear_all(values, i);
            return status;
        }
    }
    *out = values;
    return TN_OK;
}

static tn_status copy_at(const tn_value *from, int depth, tn_value *out)
{
    TN_CHECK(depth < MAX_NESTING, TN_RECURSION, "tn_value_copy: lists are nested more than %d deep",
             MAX_NESTING);
    tn_value v = *from;
    void *array = NULL;
    switch ((tn_tag)v.tag) {
    case TN_TAG_TENSOR:
        tn_tensor_ref(v.u.tensor);
        break;
    case TN_TAG_GENERATOR:
        tn_generator_ref(v.u.generator);
        break;
    case TN_TAG_STRING: {
        char *text = v.u.text ? tni_strndup(v.u.text, v.count) : NULL;
        TN_CHECK(text || !v.u.text, TN_NOMEM, "cannot copy a text of %u characters", v.count);
        v.u.text = text;
        break;
    }
    case TN_TAG_TENSOR_LIST:
        TN_TRY(copy_array(v.u.tensors, v.count, sizeof(tn_tensor *), &array));
        v.u.tensors = array;
        for (uint32_t i = 0; i < v.count; i++)
            tn_tensor_ref(v.u.tensors[i]);
        break;
    case TN_TAG_INT_LIST:
        TN_TRY(copy_array(v.u.ints, v.count, sizeof(int64_t), &array));
        v.u.ints = array;
        break;
    case TN_TAG_FLOAT_LIST:
        TN_TRY(copy_array(v.u.floats, v.count, sizeof(double), &array));
        v.u.floats = array;
        break;
    case TN_TAG_BOOL_LIST:
        TN_TRY(copy_array(v.u.bools, v.count, sizeof(bool), &array));
        v.u.bools = array;
        break;
    case TN_TAG_LIST:
        TN_TRY(copy_values(v.u.values, v.count, depth, &array));
        v.u.values = array;
        break;
    case TN_TAG_DICT:
        TN_TRY(copy_values(v.u.values, 2 * (size_t)v.count, depth, &array));
        v.u.values = array;
        break;
    case TN_TAG_NONE:
    case TN_TAG_INT:
    case TN_TAG_FLOAT:
    case TN_TAG_BOOL:
    case TN_TAG_COMPLEX:
    case TN_TAG_DEVICE:
    case TN_TAG_POINTER:
        break;
    default:
        TN_FAIL(TN_INVALID, "tn_value_copy: %u is not the tag of a value", v.tag);
    }
    v.flags = TN_VALUE_OWNED;
    *out = v;
    return TN_OK;
}

tn_status tn_value_copy(const tn_value *from, tn_value *out)
{
    TN_CHECK(from && out, TN_INVALID, "tn_value_copy: %s is NULL", from ? "out" : "from");
    return copy_at(from, 0, out);
}

tn_status tn_value_to_scalar(const tn_value *value, tn_scalar *out)
{
    TN_CHECK(value && out, TN_INVALID, "tn_value_to_scalar: %s is NULL", value ? "out" : "value");
    switch ((tn_tag)value->tag) {
    case TN_TAG_INT:
        *out = value->count ? tn_uint((uint64_t)value->u.i) : tn_int(value->u.i);
        return TN_OK;
    case TN_TAG_FLOAT:
        *out = tn_float(value->u.f);
        return TN_OK;
    case TN_TAG_BOOL:
        *out = tn_bool(value->u.i != 0);
        return TN_OK;
    case TN_TAG_COMPLEX:
        *out = tn_complex(value->u.z.re, value->u.z.im);
        return TN_OK;
    default:
        TN_FAIL(TN_TYPE, "expected a number (int, float, bool or complex), got %s",
                tn_tag_name((tn_tag)value->tag));
    }
}
