/* SPDX-License-Identifier: MIT */
/* dimname.c: names of dimensions: given, asked for, and found in calls. Which operator takes names
 * where is in tenon/_dimension_names.py: such calls fit no signature, and so come here last. */
#include "dimname.h"
#include "override.h"

#include "tenon/names.h"

PyObject *tnpy_names_of(const tn_tensor *t)
{
    int n = tn_tensor_ndim(t);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        const char *name = tn_tensor_name(t, i);
        PyObject *item = name ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
        if (!item) {
            Py_DECREF(tuple);
            return NULL;
        }
        PyTuple_SetItem(tuple, i, item);
    }
    return tuple;
}

/* The texts of a tuple or list; TypeError or RuntimeError where it holds others. */
static int texts_of(PyObject *tuple, const char **texts, const char *wrong)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
        PyObject *item = PyTuple_GetItem(tuple, i);
        if (item != Py_None && !PyUnicode_Check(item)) {
            if (wrong)
                PyErr_SetString(PyExc_RuntimeError, wrong);
            else
                PyErr_SetString(PyExc_TypeError, "expected None or string for Dimname");
            return -1;
        }
        texts[i] = NULL;
        if (item != Py_None && !(texts[i] = PyUnicode_AsUTF8AndSize(item, NULL)))
            return -1;
    }
    return 0;
}

int tnpy_set_names(tn_tensor *t, PyObject *names, const char *wrong)
{
    const char *texts[TN_MAX_DIMS];
    tn_status st;
    if (names == Py_None) {
        st = tn_tensor_set_names(t, NULL, 0);
    } else {
        if (!PyTuple_Check(names) && !PyList_Check(names)) {
            PyErr_SetString(wrong ? PyExc_RuntimeError : PyExc_TypeError,
                            wrong ? wrong : "names: want a tuple of names");
            return -1;
        }
        PyObject *tuple = PySequence_Tuple(names);
        if (!tuple)
            return -1;
        Py_ssize_t n = PyTuple_Size(tuple);
        if (n > TN_MAX_DIMS || texts_of(tuple, texts, wrong)) {
            if (n > TN_MAX_DIMS)
                PyErr_Format(PyExc_RuntimeError,
                             "Number of names (%zd) and number of dimensions in tensor (%d) do not "
                             "match.",
                             n, tn_tensor_ndim(t));
            Py_DECREF(tuple);
            return -1;
        }
        st = tn_tensor_set_names(t, texts, (int)n);
        Py_DECREF(tuple);
    }
    if (st == TN_OK)
        return 0;
    tnpy_raise(st);
    return -1;
}

int tnpy_find_name(const tn_tensor *t, PyObject *name, int64_t *out)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    int dim;
    if (!text)
        return -1;
    tn_status st = tn_tensor_find_name(t, text, &dim);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    *out = dim;
    return 0;
}

/* ---- calls ---- */

/* A text, or a sequence that begins with one, or with a pair that does. */
static bool is_name(PyObject *o, int depth)
{
    if (PyUnicode_Check(o))
        return true;
    PyObject *first = NULL;
    if (PyTuple_Check(o) && PyTuple_Size(o) > 0)
        first = PyTuple_GetItem(o, 0);
    else if (PyList_Check(o) && PyList_Size(o) > 0)
        first = PyList_GetItem(o, 0);
    return first && depth > 0 && is_name(first, depth - 1);
}

static bool has_names(const tnpy_call *c)
{
    int n = c->n - (c->self != NULL);
    for (int i = 0; i < n + c->n_keywords; i++)
        if (is_name(c->args[i], 2))
            return true;
    for (int k = 0; k < c->n_keywords; k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(c->kwnames, k), "names") == 0)
            return true;
    return false;
}

static PyObject *call_python(const tnpy_call *c)
{
    int has_self = c->self != NULL;
    PyObject *module = PyImport_ImportModule("tenon._dimension_names");
    PyObject *call = module ? PyObject_GetAttrString(module, "call") : NULL;
    PyObject *args = PyTuple_New(c->n), *kwargs = PyDict_New(), *result = NULL;
    bool good = call && args && kwargs;
    for (int i = 0; good && i < c->n; i++)
        PyTuple_SetItem(args, i, Py_NewRef(i < has_self ? c->self : c->args[i - has_self]));
    for (int k = 0; good && k < c->n_keywords; k++)
        good =
            PyDict_SetItem(kwargs, PyTuple_GetItem(c->kwnames, k), tnpy_keyword_value(c, k)) == 0;
    if (good)
        result = PyObject_CallFunction(call, "siOO", c->entry->name, has_self, args, kwargs);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    Py_XDECREF(call);
    Py_XDECREF(module);
    return result;
}

int tnpy_call_with_names(const tnpy_call *c, PyObject **out)
{
    if (!has_names(c))
        return 0;
    *out = call_python(c);
    if (*out == Py_Ellipsis) { /* a class or a mode is asked before names are looked up */
        Py_DECREF(*out);
        *out = tnpy_override(c->entry, c->self, c->args, c->n - (c->self != NULL), c->kwnames);
        return 1;
    }
    if (*out != Py_NotImplemented)
        return 1;
    Py_CLEAR(*out);
    return 0;
}

/* ---- for tenon._dimension_names ---- */

/* _alias(tensor): a view of all of it. */
static PyObject *alias(PyObject *module, PyObject *tensor)
{
    (void)module;
    tn_tensor *t = tnpy_tensor(tensor), *out = NULL;
    if (!t)
        return PyErr_Format(PyExc_TypeError, "_alias(): want a Tensor");
    tn_status st = tn_alias(t, &out);
    return st == TN_OK ? tnpy_wrap_kept(tnpy_kept_class(tensor), out) : tnpy_raise(st);
}

/* _set_names(tensor, names) */
static PyObject *set_names(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *tensor, *names;
    if (!PyArg_ParseTuple(args, "OO:_set_names", &tensor, &names))
        return NULL;
    tn_tensor *t = tnpy_tensor(tensor);
    if (!t)
        return PyErr_Format(PyExc_TypeError, "_set_names(): want a Tensor");
    return tnpy_set_names(t, names, NULL) ? NULL : Py_NewRef(tensor);
}

/* _ignore_names(on) -> bool: whether this thread takes named tensors for unnamed ones. */
static PyObject *ignore_names(PyObject *module, PyObject *on)
{
    (void)module;
    bool before = (tn_excluded_keys() & tn_keyset_of(TN_KEY_NAMED)) != 0;
    tn_set_key_excluded(TN_KEY_NAMED, PyObject_IsTrue(on) == 1);
    return PyBool_FromLong(before);
}

static PyMethodDef functions[] = {
    {"_alias", alias, METH_O, "_alias(tensor) -> Tensor"},
    {"_set_names", set_names, METH_VARARGS, "_set_names(tensor, names) -> Tensor"},
    {"_ignore_names", ignore_names, METH_O, "_ignore_names(on) -> bool"},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_names(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
