/* SPDX-License-Identifier: MIT */
/* opvalue.c: boxed values as Python objects, and Python objects as boxed values, by the kinds of an
 * operator's schema: the arguments of a kernel in Python, and the results of both sides. */
#include "opcall.h"

#include "tenon/fake.h"
#include "tenon/mode.h"

#include <string.h>

static PyObject *no_default; /* among the defaults of an operator: this argument has none */

/* ---- from C to Python ---- */

static PyObject *list_of(const tn_value *v, int kind);

static PyObject *to_python(const tn_value *v, int kind)
{
    switch ((tn_tag)v->tag) {
    case TN_TAG_NONE:
        return Py_NewRef(Py_None);
    case TN_TAG_TENSOR:
        return tnpy_wrap_borrowed(v->u.tensor);
    case TN_TAG_INT:
        if (kind == TNPY_DTYPE)
            return tnpy_dtype((tn_dtype)v->u.i);
        if (kind == TNPY_LAYOUT)
            return tnpy_layout((tn_layout)v->u.i);
        if (kind == TNPY_FORMAT)
            return tnpy_format((tn_memory_format)v->u.i);
        return PyLong_FromLongLong(v->u.i);
    case TN_TAG_BOOL:
        return PyBool_FromLong(v->u.i != 0);
    case TN_TAG_FLOAT:
        return PyFloat_FromDouble(v->u.f);
    case TN_TAG_COMPLEX:
        return PyComplex_FromDoubles(v->u.z.re, v->u.z.im);
    case TN_TAG_STRING:
        return PyUnicode_FromStringAndSize(v->u.text, (Py_ssize_t)v->count);
    case TN_TAG_DEVICE:
        return tnpy_device(v->u.device);
    case TN_TAG_GENERATOR:
        return tnpy_generator(tn_generator_ref(v->u.generator));
    case TN_TAG_TENSOR_LIST:
    case TN_TAG_INT_LIST:
    case TN_TAG_FLOAT_LIST:
    case TN_TAG_BOOL_LIST:
    case TN_TAG_LIST:
        return list_of(v, kind);
    default:
        PyErr_Format(PyExc_TypeError, "a value of type %s has no form in Python",
                     tn_tag_name((tn_tag)v->tag));
        return NULL;
    }
}

static PyObject *list_of(const tn_value *v, int kind)
{
    PyObject *list = PyList_New((Py_ssize_t)v->count);
    for (uint32_t i = 0; list && i < v->count; i++) {
        PyObject *item;
        switch ((tn_tag)v->tag) {
        case TN_TAG_TENSOR_LIST:
            item = tnpy_wrap_borrowed(v->u.tensors[i]);
            break;
        case TN_TAG_INT_LIST:
            item = PyLong_FromLongLong(v->u.ints[i]);
            break;
        case TN_TAG_FLOAT_LIST:
            item = PyFloat_FromDouble(v->u.floats[i]);
            break;
        case TN_TAG_BOOL_LIST:
            item = PyBool_FromLong(v->u.bools[i]);
            break;
        default:
            item = to_python(&v->u.values[i], kind);
        }
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, (Py_ssize_t)i, item);
    }
    return list;
}

PyObject *tnpy_results_to_python(const tnpy_operator *o, tn_value *rets)
{
    PyObject *result = o->n_rets == 1 ? to_python(&rets[0], o->params[o->n_args].kind)
                       : o->n_rets    ? PyTuple_New(o->n_rets)
                                      : Py_NewRef(Py_None);
    for (int i = 0; result && o->n_rets > 1 && i < o->n_rets; i++) {
        PyObject *item = to_python(&rets[i], o->params[o->n_args + i].kind);
        if (!item)
            Py_CLEAR(result);
        else
            PyTuple_SetItem(result, i, item);
    }
    for (int i = 0; i < o->n_rets; i++)
        tn_value_clear(&rets[i]);
    return result;
}

int tnpy_is_default(PyObject *value, PyObject *fallback)
{
    if (fallback == no_default)
        return 0;
    if (value == fallback)
        return 1;
    if (value == Py_None || fallback == Py_None || tnpy_is_tensor(value))
        return 0;
    if (tnpy_is_dtype(value) && PyLong_Check(fallback)) { /* a schema has their numbers */
        tn_dtype dtype;
        return tnpy_dtype_of(value, &dtype) ? -1 : PyLong_AsLong(fallback) == (long)dtype;
    }
    if (Py_TYPE(value) != Py_TYPE(fallback) && PyNumber_Check(value) && PyNumber_Check(fallback))
        return 0; /* 1.0 is another step than 1 */
    return PyObject_RichCompareBool(value, fallback, Py_EQ);
}

/* A bare number stands as a tensor among the arguments of operators that take it so; Python gets
 * the number back. It is read where it lies: .item() would be another call for the mode. */
static PyObject *number_of(const tn_tensor *t)
{
    const void *data = tn_tensor_const_data(t);
    switch (tn_tensor_dtype(t)) {
    case TN_DTYPE_F64:
        return PyFloat_FromDouble(*(const double *)data);
    case TN_DTYPE_C128:
        return PyComplex_FromDoubles(((const double *)data)[0], ((const double *)data)[1]);
    case TN_DTYPE_I64:
        return PyLong_FromLongLong(*(const int64_t *)data);
    case TN_DTYPE_BOOL:
        return PyBool_FromLong(*(const bool *)data);
    default:
        return NULL;
    }
}

/* The same, where it stands beside a fake tensor and has become one, whose value is known. NULL
 * without an exception: it is not. */
static PyObject *number_of_fake(tn_tensor *t)
{
    tn_tensor *known = NULL;
    tn_status st = tn_fake_constant(t, &known);
    if (st != TN_OK)
        return tnpy_raise(st);
    PyObject *number = known ? number_of(known) : NULL;
    tn_tensor_unref(known);
    return number;
}

static PyObject *argument_to_python(const tnpy_operator *o, const tn_value *v, int kind)
{
    if (o->entry.numbers && v->tag == TN_TAG_TENSOR && tn_tensor_is_number(v->u.tensor)) {
        tn_tensor *t = v->u.tensor;
        PyObject *number = tn_is_fake(t)             ? number_of_fake(t)
                           : tn_tensor_const_data(t) ? number_of(t)
                                                     : NULL;
        if (number || PyErr_Occurred())
            return number;
    }
    return to_python(v, kind);
}

int tnpy_arguments_to_python(const tnpy_operator *o, const tn_value *args, PyObject **tuple,
                             PyObject **kwargs)
{
    PyObject *list = PyList_New(0), *words = list ? PyDict_New() : NULL;
    PyObject *names = words && o->overload ? PyObject_GetAttrString(o->overload, "_names") : NULL;
    int failed = !names, shown = 0;
    for (int i = 0; !failed && i < o->n_args; i++) {
        PyObject *value = argument_to_python(o, &args[i], o->params[i].kind);
        int plain = value ? tnpy_is_default(value, PyTuple_GetItem(o->defaults, i)) : -1;
        failed = plain < 0;
        if (!failed && i < o->n_positional) {
            failed = PyList_Append(list, value);
            if (!plain)
                shown = i + 1; /* the last that has to be shown, and all before it */
        } else if (!failed && !plain) {
            failed = PyDict_SetItem(words, PyTuple_GetItem(names, i), value);
        }
        Py_XDECREF(value);
    }
    if (!failed)
        failed = PyList_SetSlice(list, shown, PyList_Size(list), NULL);
    *tuple = failed ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    Py_XDECREF(names);
    if (!*tuple) {
        Py_XDECREF(words);
        return -1;
    }
    *kwargs = words;
    return 0;
}

/* ---- from Python to C ---- */

static tn_status result_of(const tnpy_operator *o, int i, PyObject *item, tnpy_frame *f,
                           tn_value *out)
{
    tnpy_call c = {.entry = (tnpy_entry *)(uintptr_t)&o->entry, .tensors = true};
    tnpy_param p = o->params[o->n_args + i];
    if (p.flags & TNPY_OUT) { /* the argument that was written: None stands for it */
        *out = tn_value_none();
        return TN_OK;
    }
    p.flags |= TNPY_OPTIONAL; /* no gradient, no tensor: None is how Python says it */
    tn_value v;
    int found = tnpy_fit(&c, f, &p, item, false, &v);
    if (found < 0)
        return tnpy_failed();
    if (!found) {
        char name[128];
        PyErr_Format(
            PyExc_RuntimeError,
            "Unable to cast the result %d of %s, of type %s, to the type that its schema says", i,
            o->name, tnpy_type_name(item, name, sizeof name));
        return tnpy_failed();
    }
    return tn_value_copy(&v, out);
}

tn_status tnpy_results_of(const tnpy_operator *o, PyObject *result, tn_value *rets)
{
    if (o->n_rets == 0)
        return TN_OK;
    tnpy_frame f;
    tnpy_frame_begin(&f);
    tnpy_frame_forget(&f);
    tn_value made[TNPY_MAX_ARGS];
    int n = 0;
    tn_status st = TN_OK;
    if (o->n_rets == 1) {
        st = result_of(o, 0, result, &f, &made[0]);
        n = st == TN_OK;
    } else {
        PyObject *all = PySequence_Tuple(result);
        if (!all) {
            st = tnpy_failed();
        } else if (PyTuple_Size(all) != o->n_rets) {
            PyErr_Format(PyExc_RuntimeError, "Expected %d results of %s, but got %zd", o->n_rets,
                         o->name, PyTuple_Size(all));
            st = tnpy_failed();
        }
        while (st == TN_OK && n < o->n_rets) {
            st = result_of(o, n, PyTuple_GetItem(all, n), &f, &made[n]);
            n += st == TN_OK;
        }
        Py_XDECREF(all);
    }
    if (st == TN_OK)
        memcpy(rets, made, (size_t)n * sizeof *rets);
    else
        while (n > 0)
            tn_value_clear(&made[--n]);
    tnpy_frame_drop(&f);
    return st;
}

int tnpy_add_opvalue(PyObject *module)
{
    no_default = PyObject_CallNoArgs((PyObject *)&PyBaseObject_Type);
    return no_default ? PyModule_AddObjectRef(module, "_no_default", no_default) : -1;
}
