/* SPDX-License-Identifier: MIT */
/* python/src/storage.c: what tenon/storage.py needs of C: the bytes behind a tensor as a tensor of
 * their own, and tensors over such bytes. */
#include "data.h"

/* _storage_bytes(t): a uint8 tensor over all of the storage of t. */
static PyObject *storage_bytes(PyObject *module, PyObject *o)
{
    (void)module;
    tn_tensor *t = tnpy_tensor(o);
    if (t == NULL) {
        PyErr_SetString(PyExc_TypeError, "expected a Tensor");
        return NULL;
    }
    int64_t n = (int64_t)(tn_tensor_storage_nbytes(t) / tn_dtype_size(tn_tensor_dtype(t)));
    int64_t one = 1;
    (void)tn_tensor_const_data(t); /* elements are given out, as by data_ptr() */
    tn_tensor *plain = NULL, *flat = NULL, *bytes = NULL, *out = NULL;
    tn_status st = tn_detach(t, &plain);
    if (st == TN_OK)
        st = tn_as_strided(plain, &n, 1, &one, 1, tn_some_int(0), &flat);
    if (st == TN_OK)
        st = tn_view_dtype(flat, TN_DTYPE_U8, &bytes);
    if (st == TN_OK)
        st = tn_detach(bytes, &out); /* no base: it stands for the storage, not for t */
    tn_tensor_unref(plain);
    tn_tensor_unref(flat);
    tn_tensor_unref(bytes);
    return st == TN_OK ? tnpy_wrap(out) : tnpy_raise(st);
}

/* _storage_id(t): a number that tensors over one storage share, and no others that live. */
static PyObject *storage_id(PyObject *module, PyObject *o)
{
    (void)module;
    tn_tensor *t = tnpy_tensor(o);
    if (t == NULL) {
        PyErr_SetString(PyExc_TypeError, "expected a Tensor");
        return NULL;
    }
    tn_storage *s = tn_tensor_storage(t);
    PyObject *number = PyLong_FromVoidPtr(s);
    tn_storage_unref(s); /* the tensor holds it */
    return number;
}

/* Sizes or strides of a Python sequence; how many, or -1. */
static int64_t ints_of(PyObject *o, int64_t *room)
{
    return tnpy_ints_of(o, room, TN_MAX_DIMS);
}

/* _storage_view(bytes, dtype, offset, size, stride): a tensor over them; size None: all in a row.
 */
static PyObject *storage_view(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *o, *dtype_object, *size, *stride;
    long long offset = 0;
    if (!PyArg_ParseTuple(args, "OOLOO", &o, &dtype_object, &offset, &size, &stride))
        return NULL;
    tn_dtype dtype;
    tn_tensor *bytes = tnpy_tensor(o);
    if (bytes == NULL || tn_tensor_dtype(bytes) != TN_DTYPE_U8 || tn_tensor_ndim(bytes) != 1) {
        PyErr_SetString(PyExc_TypeError, "expected a tensor of bytes");
        return NULL;
    }
    if (tnpy_dtype_of(dtype_object, &dtype) < 0)
        return NULL;
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS], itemsize = (int64_t)tn_dtype_size(dtype);
    int64_t whole = tn_tensor_numel(bytes) / itemsize, ndim = 1, n_strides = 0;
    if (size == Py_None) {
        sizes[0] = offset < whole ? whole - offset : 0;
        strides[0] = 1;
        n_strides = 1;
    } else {
        ndim = ints_of(size, sizes);
        if (ndim < 0)
            return NULL;
        if (stride != Py_None) {
            n_strides = ints_of(stride, strides);
            if (n_strides < 0)
                return NULL;
        } else {
            n_strides = ndim;
            int64_t step = 1;
            for (int64_t i = ndim - 1; i >= 0; i--) {
                strides[i] = step;
                if (sizes[i] > 0 && __builtin_mul_overflow(step, sizes[i], &step)) {
                    PyErr_SetString(PyExc_ValueError, "the sizes are too large");
                    return NULL;
                }
            }
        }
    }
    tn_tensor *cut = NULL, *typed = NULL, *view = NULL, *out = NULL;
    tn_status st = tn_slice(bytes, 0, tn_some_int(0), tn_some_int(whole * itemsize), 1, &cut);
    if (st == TN_OK)
        st = tn_view_dtype(cut, dtype, &typed);
    if (st == TN_OK)
        st = tn_as_strided(typed, sizes, ndim, strides, n_strides, tn_some_int(offset), &view);
    if (st == TN_OK)
        st = tn_detach(view, &out);
    tn_tensor_unref(cut);
    tn_tensor_unref(typed);
    tn_tensor_unref(view);
    return st == TN_OK ? tnpy_wrap(out) : tnpy_raise(st);
}

/* _set_data(t, source): t becomes another name for the elements of source. */
static PyObject *set_data(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO", &a, &b))
        return NULL;
    tn_tensor *t = tnpy_tensor(a), *source = tnpy_tensor(b);
    if (t == NULL || source == NULL) {
        PyErr_SetString(PyExc_TypeError, "expected two Tensors");
        return NULL;
    }
    tn_status st = tn_tensor_set_data(t, source);
    if (st != TN_OK)
        return tnpy_raise(st);
    return Py_NewRef(Py_None);
}

/* _swap_tensor_impl(a, b): each object becomes the other's tensor; who holds an object in Python
 * sees the other tensor from then on, who holds a tensor in C sees the other object. */
static PyObject *swap_tensors(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *a, *b;
    if (!PyArg_ParseTuple(args, "OO", &a, &b))
        return NULL;
    if (!tnpy_tensor(a) || !tnpy_tensor(b)) {
        PyErr_SetString(PyExc_TypeError, "expected two Tensors");
        return NULL;
    }
    tnpy_swap(a, b);
    return Py_NewRef(Py_None);
}

/* _storage_resize(bytes, n): change the size of the storage behind them, and theirs. */
static PyObject *storage_resize(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *o;
    long long n = 0;
    if (!PyArg_ParseTuple(args, "OL", &o, &n))
        return NULL;
    tn_tensor *bytes = tnpy_tensor(o);
    if (bytes == NULL || n < 0) {
        PyErr_SetString(PyExc_ValueError, "expected a tensor of bytes and a size");
        return NULL;
    }
    tn_storage *s = tn_tensor_storage(bytes);
    tn_status st = TN_OK;
    if (tn_storage_use_count(s) == 2) { /* nobody else looks at it: it may move */
        tn_storage_unref(s);
        st = tn_resize_(bytes, &(int64_t){n}, 1, TN_FORMAT_NONE);
    } else {
        st = tn_storage_resize(s, (size_t)n);
        if (st == TN_OK)
            st = tn_set_storage_(bytes, s);
        tn_storage_unref(s);
    }
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

static PyMethodDef functions[] = {{"_storage_resize", storage_resize, METH_VARARGS, NULL},
                                  {"_storage_bytes", storage_bytes, METH_O, NULL},
                                  {"_storage_view", storage_view, METH_VARARGS, NULL},
                                  {"_storage_id", storage_id, METH_O, NULL},
                                  {"_set_data", set_data, METH_VARARGS, NULL},
                                  {"_swap_tensor_impl", swap_tensors, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};

int tnpy_add_storage(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
