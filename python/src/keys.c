/* SPDX-License-Identifier: MIT */
/* keys.c: dispatch keys, sets of them, the thread's sets, and what an operator's table says. Keys
 * and sets are numbers here; tenon/_dispatch_keys.py makes the classes that users see. */
#include "opcall.h"

#include <string.h>

static PyObject *set_object(tn_keyset ks)
{
    return PyLong_FromUnsignedLongLong(ks);
}

/* The next number of a tuple of them; -1 with an exception. */
static int set_at(PyObject *args, Py_ssize_t i, tn_keyset *out)
{
    PyObject *o = i < PyTuple_Size(args) ? PyTuple_GetItem(args, i) : NULL;
    if (!o) {
        PyErr_SetString(PyExc_TypeError, "a number is missing");
        return -1;
    }
    *out = PyLong_AsUnsignedLongLong(o);
    return PyErr_Occurred() ? -1 : 0;
}

static int key_at(PyObject *args, Py_ssize_t i, tn_key *out)
{
    tn_keyset number;
    if (set_at(args, i, &number) < 0)
        return -1;
    if (number >= TN_KEY_LIMIT) {
        PyErr_SetString(PyExc_ValueError, "not a dispatch key");
        return -1;
    }
    *out = (tn_key)number;
    return 0;
}

/* _key_numbers(): {name: number} of every key */
static PyObject *key_numbers(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *dict = PyDict_New();
    for (int key = 0; dict && key < TN_KEY_LIMIT; key++) {
        const char *name = tn_key_name((tn_key)key);
        tn_key again;
        if (tn_key_parse(name, &again) != TN_OK || (int)again != key)
            continue; /* a number between two groups */
        PyObject *number = PyLong_FromLong(key);
        if (!number || PyDict_SetItemString(dict, name, number) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

#define SET_OF_SET_AND_KEY(name, f)                                \
    static PyObject *name(PyObject *module, PyObject *args)        \
    {                                                              \
        (void)module;                                              \
        tn_keyset ks;                                              \
        tn_key key;                                                \
        if (set_at(args, 0, &ks) < 0 || key_at(args, 1, &key) < 0) \
            return NULL;                                           \
        return f;                                                  \
    }
SET_OF_SET_AND_KEY(keyset_add, set_object(tn_keyset_add(ks, key)))
SET_OF_SET_AND_KEY(keyset_remove, set_object(tn_keyset_remove(ks, key)))
SET_OF_SET_AND_KEY(keyset_has, PyBool_FromLong(tn_keyset_has(ks, key)))

#define SET_OF_KEY(name, f)                                           \
    static PyObject *name(PyObject *module, PyObject *args)           \
    {                                                                 \
        (void)module;                                                 \
        tn_key key;                                                   \
        return key_at(args, 0, &key) < 0 ? NULL : set_object(f(key)); \
    }
SET_OF_KEY(keyset_of, tn_keyset_of)
SET_OF_KEY(keyset_after, tn_keyset_full_after)
SET_OF_KEY(keyset_of_alias, tn_keyset_of_alias)

static PyObject *keyset_highest(PyObject *module, PyObject *args)
{
    (void)module;
    tn_keyset ks;
    return set_at(args, 0, &ks) < 0 ? NULL : PyLong_FromLong((long)tn_keyset_highest(ks));
}

static PyObject *keyset_text(PyObject *module, PyObject *args)
{
    (void)module;
    tn_keyset ks;
    char text[2048];
    if (set_at(args, 0, &ks) < 0)
        return NULL;
    return PyUnicode_FromString(tn_keyset_format(ks, text, sizeof text));
}

static PyObject *tensor_keys(PyObject *module, PyObject *o)
{
    (void)module;
    tn_tensor *t = tnpy_tensor(o);
    if (!t) {
        PyErr_SetString(PyExc_TypeError, "expected a Tensor");
        return NULL;
    }
    return set_object(tn_tensor_keys(t));
}

/* ---- the thread's sets ---- */

static PyObject *thread_keys(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("KK", (unsigned long long)tn_included_keys(),
                         (unsigned long long)tn_excluded_keys());
}

/* _set_thread_keys(included, excluded) */
static PyObject *set_thread_keys(PyObject *module, PyObject *args)
{
    (void)module;
    tn_keyset included, excluded;
    if (set_at(args, 0, &included) < 0 || set_at(args, 1, &excluded) < 0)
        return NULL;
    tn_key_guard before = tn_force_keys(included, excluded);
    (void)before;
    return Py_NewRef(Py_None);
}

/* ---- operators ---- */

static tn_op *operator_at(PyObject *args, Py_ssize_t i)
{
    PyObject *o = PyTuple_Size(args) > i ? PyTuple_GetItem(args, i) : NULL;
    const char *name = o ? PyUnicode_AsUTF8AndSize(o, NULL) : NULL;
    tn_op *op;
    if (!name) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "the name of an operator is missing");
        return NULL;
    }
    if (tn_op_find(name, &op) == TN_OK)
        return op;
    PyErr_Format(PyExc_RuntimeError, "operator %s does not exist", name);
    return NULL;
}

/* _operator_dump(name, table): its kernels, or its table, as text */
static PyObject *operator_dump(PyObject *module, PyObject *args)
{
    (void)module;
    tn_op *op = operator_at(args, 0);
    if (!op)
        return NULL;
    int table = PyTuple_Size(args) > 1 && PyObject_IsTrue(PyTuple_GetItem(args, 1)) == 1;
    char *text = NULL;
    tn_status st = table ? tn_op_dump_table(op, &text) : tn_op_dump_state(op, &text);
    if (st != TN_OK)
        return tnpy_raise(st);
    PyObject *o = PyUnicode_FromString(text);
    tn_string_free(text);
    return o;
}

/* _operator_slot(name, key): (has a kernel, falls through, where it comes from) of a runtime key */
static PyObject *operator_slot(PyObject *module, PyObject *args)
{
    (void)module;
    tn_op *op = operator_at(args, 0);
    tn_key key;
    if (!op || key_at(args, 1, &key) < 0)
        return NULL;
    tn_slot_info info = {.size = sizeof info};
    tn_status st = tn_op_slot(op, tn_keyset_slot(tn_keyset_of(key)), &info);
    if (st != TN_OK)
        return tnpy_raise(st);
    return Py_BuildValue("OOs", info.valid ? Py_True : Py_False,
                         info.fallthrough ? Py_True : Py_False, info.provenance);
}

static PyObject *check_invariants(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    tn_status st = tn_check_invariants();
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

static PyMethodDef functions[] = {
    {"_key_numbers", key_numbers, METH_NOARGS, NULL},
    {"_keyset_of", keyset_of, METH_VARARGS, NULL},
    {"_keyset_add", keyset_add, METH_VARARGS, NULL},
    {"_keyset_remove", keyset_remove, METH_VARARGS, NULL},
    {"_keyset_has", keyset_has, METH_VARARGS, NULL},
    {"_keyset_after", keyset_after, METH_VARARGS, NULL},
    {"_keyset_of_alias", keyset_of_alias, METH_VARARGS, NULL},
    {"_keyset_highest", keyset_highest, METH_VARARGS, NULL},
    {"_keyset_text", keyset_text, METH_VARARGS, NULL},
    {"_tensor_keys", tensor_keys, METH_O, NULL},
    {"_thread_keys", thread_keys, METH_NOARGS, NULL},
    {"_set_thread_keys", set_thread_keys, METH_VARARGS, NULL},
    {"_operator_dump", operator_dump, METH_VARARGS, NULL},
    {"_operator_slot", operator_slot, METH_VARARGS, NULL},
    {"_dispatch_check_all_invariants", check_invariants, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_keys(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
