/* SPDX-License-Identifier: MIT */
/* python/src/data.c: tensors from Python's numbers, nested sequences and arrays: which sizes and
 * which dtype they mean, with PyTorch's rules and error texts. */
#include "data.h"

#include "opcall.h"
#include "tenon/fake.h"
#include "tenon/mode.h"

#include <math.h>
#include <string.h>

/* ---- names ---- */

const char *tnpy_legacy_name(tn_dtype dtype)
{
    switch (dtype) {
#define X(name, number, bytes, category, py, text, cpp) \
    case TN_DTYPE_##name:                               \
        return text;
        TN_DTYPE_LIST(X)
#undef X
    default:
        return "";
    }
}

int tnpy_long_of(PyObject *o, int64_t *out)
{
    PyObject *number = PyLong_Check(o) ? Py_NewRef(o) : PyNumber_Index(o);
    if (number == NULL)
        return -1;
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow != 0) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return -1;
    }
    if (value == -1 && PyErr_Occurred())
        return -1;
    *out = value;
    return 0;
}

/* ---- what a piece of data is ---- */

enum kind { KIND_NUMBER, KIND_TENSOR, KIND_ARRAY, KIND_SEQUENCE, KIND_OTHER };

static enum kind kind_of(PyObject *o)
{
    if (PyFloat_CheckExact(o) || PyLong_CheckExact(o) || PyBool_Check(o) || PyComplex_CheckExact(o))
        return KIND_NUMBER;
    if (PyList_Check(o) || PyTuple_Check(o))
        return KIND_SEQUENCE;
    if (tnpy_tensor(o) != NULL)
        return KIND_TENSOR;
    if (PyUnicode_Check(o) || PyBytes_Check(o))
        return KIND_OTHER;
    if (tnpy_is_array(o))
        return KIND_ARRAY;
    if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o))
        return KIND_NUMBER;
    if (PySequence_Check(o))
        return KIND_SEQUENCE;
    return KIND_OTHER;
}

/* A new list or tuple with the items of a sequence. */
static PyObject *items_of(PyObject *o)
{
    if (PyList_Check(o) || PyTuple_Check(o))
        return Py_NewRef(o);
    return PySequence_List(o);
}

static Py_ssize_t items_count(PyObject *items)
{
    return PyList_Check(items) ? PyList_Size(items) : PyTuple_Size(items);
}

/* A new reference: the list may change while its items run code. NULL when it became shorter. */
static PyObject *items_get(PyObject *items, Py_ssize_t i)
{
    PyObject *item = PyList_Check(items) ? PyList_GetItem(items, i) : PyTuple_GetItem(items, i);
    return Py_XNewRef(item);
}

static int too_many(PyObject *o)
{
    char name[128];
    PyErr_Format(PyExc_ValueError, "too many dimensions '%s'",
                 tnpy_type_name(o, name, sizeof name));
    return -1;
}

/* What has a length but no first item is no sequence of numbers: a table whose columns have names
 * answers KeyError. Errors of another kind are kept, an interrupt above all. */
static void no_shape(PyObject *o)
{
    char name[128];
    if (PyErr_ExceptionMatches(PyExc_Exception))
        PyErr_Format(PyExc_ValueError, "could not determine the shape of object type '%s'",
                     tnpy_type_name(o, name, sizeof name));
}

/* The sizes that the first items suggest: how many, or -1. */
static int sizes_of(PyObject *data, int64_t *sizes)
{
    int n = 0;
    PyObject *o = Py_NewRef(data);
    for (;;) {
        enum kind kind = kind_of(o);
        if (kind == KIND_OTHER && PyUnicode_Check(o)) {
            too_many(o);
            break;
        }
        if (kind == KIND_ARRAY) {
            tn_tensor *t = tnpy_from_buffer(o);
            int ndim = tn_tensor_ndim(t);
            if (t == NULL)
                break;
            if (n + ndim > TN_MAX_DIMS) {
                tn_tensor_unref(t);
                too_many(o);
                break;
            }
            for (int i = 0; i < ndim; i++)
                sizes[n++] = tn_tensor_sizes(t)[i];
            tn_tensor_unref(t);
            Py_DECREF(o);
            return n;
        }
        if (kind != KIND_SEQUENCE) {
            Py_DECREF(o);
            return n;
        }
        Py_ssize_t length = PySequence_Size(o);
        if (length < 0)
            break;
        if (n == TN_MAX_DIMS) {
            too_many(o);
            break;
        }
        sizes[n++] = length;
        if (length == 0) {
            Py_DECREF(o);
            return n;
        }
        PyObject *first = PySequence_GetItem(o, 0);
        if (first == NULL) {
            no_shape(o);
            break;
        }
        Py_DECREF(o);
        o = first;
    }
    Py_DECREF(o);
    return -1;
}

static tn_dtype complex_of_default(void)
{
    return tn_default_dtype() == TN_DTYPE_F64 ? TN_DTYPE_C128 : TN_DTYPE_C64;
}

/* NONE with an exception on failure; NONE without one: no number in it. */
static tn_dtype infer(PyObject *o, int depth)
{
    if (PyFloat_CheckExact(o))
        return tn_default_dtype();
    if (PyBool_Check(o))
        return TN_DTYPE_BOOL;
    if (PyLong_CheckExact(o))
        return TN_DTYPE_I64;
    switch (kind_of(o)) {
    case KIND_NUMBER:
        return PyComplex_Check(o) ? complex_of_default()
               : PyFloat_Check(o) ? tn_default_dtype()
                                  : TN_DTYPE_I64;
    case KIND_TENSOR:
        return tn_tensor_dtype(tnpy_tensor(o));
    case KIND_ARRAY: {
        tn_tensor *t = tnpy_from_buffer(o);
        tn_dtype dtype = t == NULL ? TN_DTYPE_NONE : tn_tensor_dtype(t);
        tn_tensor_unref(t);
        return dtype;
    }
    case KIND_SEQUENCE:
        break;
    default: {
        char name[128];
        tnpy_type_name(o, name, sizeof name);
        if (PyUnicode_Check(o) || PyBytes_Check(o))
            PyErr_Format(PyExc_TypeError, "new(): invalid data type '%s'", name);
        else
            PyErr_Format(PyExc_RuntimeError, "Could not infer dtype of %s", name);
        return TN_DTYPE_NONE;
    }
    }
    if (depth > TN_MAX_DIMS) {
        too_many(o);
        return TN_DTYPE_NONE;
    }
    PyObject *items = items_of(o);
    if (items == NULL)
        return TN_DTYPE_NONE;
    tn_dtype dtype = TN_DTYPE_NONE;
    for (Py_ssize_t i = 0; i < items_count(items); i++) {
        PyObject *item = items_get(items, i);
        tn_dtype one = item == NULL ? TN_DTYPE_NONE : infer(item, depth + 1);
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            dtype = TN_DTYPE_NONE;
            break;
        }
        if (dtype == TN_DTYPE_NONE)
            dtype = one;
        else if (one != TN_DTYPE_NONE && one != dtype)
            dtype = tn_promote_types(dtype, one);
    }
    Py_DECREF(items);
    return dtype;
}

/* ---- storing ---- */

typedef struct target {
    int64_t sizes[TN_MAX_DIMS];
    int ndim;
    tn_dtype dtype; /* what is stored: of short floats float32, converted at the end */
    size_t bytes;   /* an element */
    char *at;       /* where the next element goes */
} target;

static int refuse_range(tn_dtype dtype)
{
    PyErr_Format(PyExc_RuntimeError, "value cannot be converted to type %s without overflow",
                 tn_dtype_name(dtype));
    return -1;
}

static int store_integer(target *t, PyObject *o)
{
    int64_t v = 0;
    if (t->dtype == TN_DTYPE_U64 && PyLong_Check(o)) { /* numbers that an int64 has not */
        uint64_t u = PyLong_AsUnsignedLongLong(o);
        memcpy(t->at, &u, sizeof u);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (PyFloat_Check(o)) {
        double d = PyFloat_AsDouble(o);
        if (!(d >= -9223372036854775808.0 && d < 9223372036854775808.0))
            return refuse_range(t->dtype);
        v = (int64_t)d;
    } else if (tnpy_long_of(o, &v) < 0)
        return -1;
    switch (t->dtype) {
    case TN_DTYPE_U8:
        if (v < -255 || v > 255)
            return refuse_range(t->dtype);
        *(uint8_t *)t->at = (uint8_t)v;
        return 0;
    case TN_DTYPE_I8:
        if (v != (int8_t)v)
            return refuse_range(t->dtype);
        *(int8_t *)t->at = (int8_t)v;
        return 0;
    case TN_DTYPE_I16: {
        int16_t x = (int16_t)v;
        if (v != x)
            return refuse_range(t->dtype);
        memcpy(t->at, &x, sizeof x);
        return 0;
    }
    case TN_DTYPE_U16: {
        uint16_t x = (uint16_t)v;
        if (v < -UINT16_MAX || v > UINT16_MAX)
            return refuse_range(t->dtype);
        memcpy(t->at, &x, sizeof x);
        return 0;
    }
    case TN_DTYPE_U32: {
        uint32_t x = (uint32_t)v;
        if (v < -(int64_t)UINT32_MAX || v > UINT32_MAX)
            return refuse_range(t->dtype);
        memcpy(t->at, &x, sizeof x);
        return 0;
    }
    case TN_DTYPE_I32: {
        int32_t x = (int32_t)v;
        if (v != x)
            return refuse_range(t->dtype);
        memcpy(t->at, &x, sizeof x);
        return 0;
    }
    default:
        memcpy(t->at, &v, sizeof v);
        return 0;
    }
}

static int store_complex(target *t, PyObject *o)
{
    double re = 0, im = 0;
    if (PyComplex_Check(o)) {
        re = PyComplex_RealAsDouble(o);
        im = PyComplex_ImagAsDouble(o);
    } else
        re = PyFloat_AsDouble(o);
    if (PyErr_Occurred())
        return -1;
    if (t->dtype == TN_DTYPE_C64) {
        float z[2] = {(float)re, (float)im};
        memcpy(t->at, z, sizeof z);
    } else {
        double z[2] = {re, im};
        memcpy(t->at, z, sizeof z);
    }
    return 0;
}

/* One number, at t->at. */
static int store_number(target *t, PyObject *o)
{
    int bad = 0;
    switch (t->dtype) {
    case TN_DTYPE_F32:
    case TN_DTYPE_F64: {
        double d = PyFloat_AsDouble(o);
        if (d == -1.0 && PyErr_Occurred())
            return -1;
        if (t->dtype == TN_DTYPE_F64)
            memcpy(t->at, &d, sizeof d);
        else {
            float f = (float)d;
            memcpy(t->at, &f, sizeof f);
        }
        break;
    }
    case TN_DTYPE_BOOL:
        bad = PyObject_IsTrue(o);
        *(uint8_t *)t->at = bad > 0;
        bad = bad < 0 ? -1 : 0;
        break;
    case TN_DTYPE_C64:
    case TN_DTYPE_C128:
        bad = store_complex(t, o);
        break;
    default:
        bad = store_integer(t, o);
    }
    t->at += t->bytes;
    return bad;
}

static int refuse_length(target *t, int dim, int64_t got)
{
    PyErr_Format(PyExc_ValueError, "expected sequence of length %lld at dim %d (got %lld)",
                 (long long)t->sizes[dim], dim, (long long)got);
    return -1;
}

/* All elements of a tensor that stands where dimension `dim` begins. Takes it. */
static int store_tensor(target *t, tn_tensor *src, int dim)
{
    tn_tensor *flat = NULL, *cast = NULL;
    int bad = -1, ndim = tn_tensor_ndim(src);
    for (int i = 0; i < ndim && dim + i < t->ndim; i++)
        if (tn_tensor_sizes(src)[i] != t->sizes[dim + i]) {
            refuse_length(t, dim + i, tn_tensor_sizes(src)[i]);
            tn_tensor_unref(src);
            return -1;
        }
    if (dim + ndim != t->ndim) {
        PyErr_SetString(PyExc_TypeError, "not a sequence");
        tn_tensor_unref(src);
        return -1;
    }
    tn_status st = tn_to_dtype(src, t->dtype, false, false, TN_FORMAT_NONE, &cast);
    if (st == TN_OK)
        st = tn_contiguous(cast, TN_FORMAT_CONTIGUOUS, &flat);
    if (st == TN_OK) {
        size_t n = tn_tensor_nbytes(flat);
        if (n != 0 && !tn_tensor_const_data(flat)) {
            tnpy_raise(tnpy_needs_values());
            tn_tensor_unref(cast);
            tn_tensor_unref(flat);
            tn_tensor_unref(src);
            return -1;
        }
        if (n != 0)
            memcpy(t->at, tn_tensor_const_data(flat), n);
        t->at += n;
        bad = 0;
    } else
        tnpy_raise(st);
    tn_tensor_unref(flat);
    tn_tensor_unref(cast);
    tn_tensor_unref(src);
    return bad;
}

static int store(target *t, PyObject *o, int dim)
{
    if (dim == t->ndim) {
        enum kind kind = kind_of(o);
        if (kind == KIND_ARRAY) {
            tn_tensor *src = tnpy_from_buffer(o);
            return src == NULL ? -1 : store_tensor(t, src, dim);
        }
        return store_number(t, o);
    }
    enum kind kind = kind_of(o);
    if (kind == KIND_ARRAY) {
        tn_tensor *src = tnpy_from_buffer(o);
        return src == NULL ? -1 : store_tensor(t, src, dim);
    }
    if (kind != KIND_SEQUENCE) {
        PyErr_SetString(PyExc_TypeError, "not a sequence");
        return -1;
    }
    PyObject *items = items_of(o);
    if (items == NULL)
        return -1;
    int bad = 0;
    Py_ssize_t n = items_count(items);
    if (n != t->sizes[dim])
        bad = refuse_length(t, dim, n);
    if (dim + 1 == t->ndim && bad == 0 &&
        t->dtype == TN_DTYPE_F32) { /* the usual, without detours */
        for (Py_ssize_t i = 0; i < n && bad == 0; i++) {
            PyObject *item =
                PyList_Check(items) ? PyList_GetItem(items, i) : PyTuple_GetItem(items, i);
            if (item != NULL && PyFloat_CheckExact(item)) {
                float f = (float)PyFloat_AsDouble(item);
                memcpy(t->at, &f, sizeof f);
                t->at += sizeof f;
                continue;
            }
            Py_XINCREF(item);
            bad = item == NULL ? -1 : store(t, item, dim + 1);
            Py_XDECREF(item);
        }
        Py_DECREF(items);
        return bad;
    }
    for (Py_ssize_t i = 0; i < n && bad == 0; i++) {
        PyObject *item = items_get(items, i);
        bad = item == NULL ? -1 : store(t, item, dim + 1);
        Py_XDECREF(item);
    }
    Py_DECREF(items);
    return bad;
}

/* ---- from data ---- */

tn_tensor *tnpy_as_dtype(tn_tensor *t, tn_dtype dtype, bool copy)
{
    if (t == NULL || (!copy && (dtype == TN_DTYPE_NONE || tn_tensor_dtype(t) == dtype)))
        return t;
    tn_tensor *out = NULL;
    tn_dtype to = dtype == TN_DTYPE_NONE ? tn_tensor_dtype(t) : dtype;
    PyThreadState *state = tnpy_unlock();
    tn_status st = tn_to_dtype(t, to, false, copy, TN_FORMAT_PRESERVE, &out);
    tn_tensor_unref(t);
    tnpy_lock(state);
    if (st != TN_OK)
        tnpy_raise(st);
    return out;
}

/* The same where no mode sees it: values that are not yet anybody's. */
static tn_tensor *fresh_as_dtype(tn_tensor *t, tn_dtype dtype, bool copy)
{
    tn_key_guard guard = tn_force_keys(0, tn_excluded_keys());
    t = tnpy_as_dtype(t, dtype, copy);
    tn_keys_restore(guard);
    return t;
}

tn_tensor *tnpy_lifted(tn_tensor *t)
{
    if (!t || tn_included_keys() == 0 || tn_tensor_device(t).type == TN_DEVICE_META)
        return t;
    tn_tensor *lifted = NULL;
    tn_status st = tn_lift_fresh(t, &lifted);
    tn_tensor_unref(t);
    if (st != TN_OK)
        tnpy_raise(st);
    return lifted;
}

/* What the fake mode that is on makes of fresh values, unless other modes are on, who see them
 * first: tnpy_lifted. Takes the reference. */
static tn_tensor *pretended(tn_tensor *real)
{
    if (tn_call_mode_count() != 0)
        return real;
    tn_tensor *fake = NULL;
    tn_status st = tn_tensor_from_data(tn_tensor_const_data(real), tn_tensor_ndim(real),
                                       tn_tensor_sizes(real), tn_tensor_dtype(real), &fake);
    tn_tensor_unref(real);
    if (st != TN_OK)
        tnpy_raise(st);
    return fake;
}

/* A copy of an object of another library with __dlpack__. */
static tn_tensor *from_exporter(PyObject *o, tn_dtype dtype)
{
    PyObject *module = PyImport_ImportModule("tenon._C");
    PyObject *view = module ? PyObject_CallMethod(module, "from_dlpack", "O", o) : NULL;
    tn_tensor *out = view ? tnpy_from_data(view, dtype) : NULL;
    Py_XDECREF(view);
    Py_XDECREF(module);
    return out;
}

tn_tensor *tnpy_from_data(PyObject *o, tn_dtype dtype)
{
    tn_tensor *self = tnpy_tensor(o);
    if (self != NULL) {
        tn_tensor *plain = NULL;
        tn_status st = tn_detach(self, &plain);
        if (st != TN_OK)
            tnpy_raise(st);
        return tnpy_as_dtype(plain, dtype, true);
    }
    if (PyUnicode_Check(o) || PyBytes_Check(o)) {
        infer(o, 0);
        return NULL;
    }
    if (tnpy_is_array(o)) {
        if (!tn_fake_mode_current())
            return fresh_as_dtype(tnpy_from_buffer(o), dtype, true);
        tn_fake_guard real = tn_fake_enter(NULL);
        tn_tensor *copy = tnpy_as_dtype(tnpy_from_buffer(o), dtype, true);
        tn_fake_leave(real);
        return copy ? pretended(copy) : NULL;
    }
    if (!PyList_Check(o) && !PyTuple_Check(o) && !PyLong_Check(o) && !PyFloat_Check(o) &&
        PyObject_HasAttrString(o, "__dlpack__"))
        return from_exporter(o, dtype);
    target t;
    t.ndim = sizes_of(o, t.sizes);
    if (t.ndim < 0)
        return NULL;
    if (dtype == TN_DTYPE_NONE) {
        dtype = infer(o, 0);
        if (dtype == TN_DTYPE_NONE) {
            if (PyErr_Occurred())
                return NULL;
            dtype = tn_default_dtype();
        }
    }
    t.dtype = tnpy_plain_dtype(dtype);
    t.bytes = tn_dtype_size(t.dtype);
    /* Sizes come from the first items alone: room is taken only for what is really there. */
    tn_tensor *out = NULL;
    tn_tensor_opts opts = tn_opts(t.dtype, TN_CPU);
    tn_key_guard guard = tn_force_keys(0, tn_excluded_keys());
    tn_status st = tn_empty(t.sizes, t.ndim, &opts, TN_FORMAT_CONTIGUOUS, &out);
    tn_keys_restore(guard);
    if (st != TN_OK) {
        tnpy_raise(st);
        return NULL;
    }
    t.at = tn_tensor_data(out);
    if (store(&t, o, 0) < 0) {
        tn_tensor_unref(out);
        return NULL;
    }
    if (!tn_fake_mode_current())
        return fresh_as_dtype(out, dtype, false);
    tn_fake_guard real = tn_fake_enter(NULL);
    out = fresh_as_dtype(out, dtype, false);
    tn_fake_leave(real);
    return out ? pretended(out) : NULL;
}

tn_tensor *tnpy_index_tensor(PyObject *o)
{
    tn_tensor *t = tnpy_from_data(o, TN_DTYPE_NONE);
    if (t == NULL)
        return NULL;
    tn_dtype dtype = tn_tensor_dtype(t);
    bool mask = dtype == TN_DTYPE_BOOL || dtype == TN_DTYPE_U8;
    return tnpy_lifted(mask ? t : fresh_as_dtype(t, TN_DTYPE_I64, false));
}
