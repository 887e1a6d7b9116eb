/* SPDX-License-Identifier: MIT */
/* scalar.c: numbers and lists of numbers, both ways. */
#include "tnpy.h"

#include <string.h>

/* NumPy's scalars are no ints. Their types are static objects of a module `numpy`, and convert by
 * the number protocol: nothing of NumPy is needed. What a type is, is looked up once. */
enum { NOT_NUMPY = 0, NUMPY_BOOL, NUMPY_INT, NUMPY_FLOAT, NUMPY_COMPLEX, MAX_KNOWN = 64 };
static struct {
    PyTypeObject *type;
    int kind;
} known[MAX_KNOWN];
static int n_known;

static int kind_by_name(const char *name)
{
    static const struct {
        const char *start;
        int kind;
    } kinds[] = {{"bool", NUMPY_BOOL},  {"int", NUMPY_INT},        {"uint", NUMPY_INT},
                 {"long", NUMPY_INT},   {"ulong", NUMPY_INT},      {"float", NUMPY_FLOAT},
                 {"half", NUMPY_FLOAT}, {"complex", NUMPY_COMPLEX}};
    if (strncmp(name, "numpy.", 6))
        return NOT_NUMPY;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strncmp(name + 6, kinds[i].start, strlen(kinds[i].start)) == 0)
            return kinds[i].kind;
    return NOT_NUMPY;
}

static int numpy_kind(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE)
        return NOT_NUMPY;
    for (int i = 0; i < n_known; i++)
        if (known[i].type == type)
            return known[i].kind;
    char name[128];
    int kind = kind_by_name(tnpy_type_name(o, name, sizeof name));
    if (n_known < MAX_KNOWN) {
        known[n_known].type = type;
        known[n_known++].kind = kind;
    }
    return kind;
}

int tnpy_is_numpy_scalar(PyObject *o)
{
    return numpy_kind(o) != NOT_NUMPY;
}

int tnpy_is_numpy_bool(PyObject *o)
{
    return numpy_kind(o) == NUMPY_BOOL;
}

int tnpy_is_number(PyObject *o)
{
    if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o))
        return 1;
    tn_tensor *t = tnpy_tensor(o);
    if (t)
        return tn_tensor_ndim(t) == 0 && !tn_tensor_requires_grad(t);
    return tnpy_is_numpy_scalar(o);
}

static int scalar_of_long(PyObject *o, tn_scalar *out)
{
    int over = 0;
    long long i = PyLong_AsLongLongAndOverflow(o, &over);
    if (over > 0) {
        unsigned long long u = PyLong_AsUnsignedLongLong(o);
        if (!PyErr_Occurred()) {
            *out = tn_uint(u);
            return 0;
        }
        PyErr_Clear();
    }
    if (over) {
        PyErr_SetString(PyExc_OverflowError, over > 0 ? "int too big to convert"
                                                      : "can't convert negative int to unsigned");
        return -1;
    }
    if (i == -1 && PyErr_Occurred())
        return -1;
    *out = tn_int(i);
    return 0;
}

static int scalar_of_tensor(tn_tensor *t, tn_scalar *out)
{
    tn_status st = tn_item(t, out);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    return 0;
}

static int scalar_of_numpy(PyObject *o, tn_scalar *out)
{
    int kind = numpy_kind(o);
    if (kind == NUMPY_BOOL) {
        int truth = PyObject_IsTrue(o);
        *out = tn_bool(truth > 0);
        return truth < 0 ? -1 : 0;
    }
    if (kind == NUMPY_COMPLEX) {
        PyObject *z = PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, o, NULL);
        if (!z)
            return -1;
        *out = tn_complex(PyComplex_RealAsDouble(z), PyComplex_ImagAsDouble(z));
        Py_DECREF(z);
        return 0;
    }
    if (PyIndex_Check(o)) {
        PyObject *i = PyNumber_Index(o);
        int failed = i ? scalar_of_long(i, out) : -1;
        Py_XDECREF(i);
        return failed;
    }
    PyObject *x = PyNumber_Float(o);
    if (!x)
        return -1;
    *out = tn_float(PyFloat_AsDouble(x));
    Py_DECREF(x);
    return 0;
}

int tnpy_scalar_of(PyObject *o, tn_scalar *out)
{
    if (PyFloat_Check(o)) {
        *out = tn_float(PyFloat_AsDouble(o));
        return 0;
    }
    if (PyBool_Check(o)) {
        *out = tn_bool(o == Py_True);
        return 0;
    }
    if (PyLong_Check(o))
        return scalar_of_long(o, out);
    if (PyComplex_Check(o)) {
        *out = tn_complex(PyComplex_RealAsDouble(o), PyComplex_ImagAsDouble(o));
        return 0;
    }
    tn_tensor *t = tnpy_tensor(o);
    if (t)
        return scalar_of_tensor(t, out);
    if (tnpy_is_numpy_scalar(o))
        return scalar_of_numpy(o, out);
    char name[128];
    PyErr_Format(PyExc_TypeError, "expected a number, but got %s",
                 tnpy_type_name(o, name, sizeof name));
    return -1;
}

PyObject *tnpy_scalar(tn_scalar s)
{
    switch (s.kind) {
    case TN_SCALAR_FLOAT:
        return PyFloat_FromDouble(s.v.f);
    case TN_SCALAR_BOOL:
        return PyBool_FromLong(s.v.i != 0);
    case TN_SCALAR_COMPLEX:
        return PyComplex_FromDoubles(s.v.f, s.imag);
    default:
        return s.beyond ? PyLong_FromUnsignedLongLong((uint64_t)s.v.i) : PyLong_FromLongLong(s.v.i);
    }
}

int tnpy_int_of(PyObject *o, int64_t *out)
{
    PyObject *i = PyLong_Check(o) ? Py_NewRef(o) : PyNumber_Index(o);
    if (!i)
        return -1;
    int over = 0;
    long long value = PyLong_AsLongLongAndOverflow(i, &over);
    Py_DECREF(i);
    if (over) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return -1;
    }
    if (value == -1 && PyErr_Occurred())
        return -1;
    *out = value;
    return 0;
}

int tnpy_ints_of(PyObject *o, int64_t *room, int max)
{
    if (!PyTuple_Check(o) && !PyList_Check(o)) {
        char name[128];
        PyErr_Format(PyExc_TypeError, "expected a tuple of ints, but got %s",
                     tnpy_type_name(o, name, sizeof name));
        return -1;
    }
    Py_ssize_t n = PySequence_Size(o);
    if (n > max) {
        PyErr_Format(PyExc_RuntimeError, "expected at most %d numbers, but got %zd", max, n);
        return -1;
    }
    bool tuple = PyTuple_Check(o);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = Py_XNewRef(tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i));
        int bad = item ? tnpy_int_of(item, &room[i]) : -1; /* the list may have become shorter */
        Py_XDECREF(item);
        if (bad)
            return -1;
    }
    return (int)n;
}
