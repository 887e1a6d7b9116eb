/* SPDX-License-Identifier: MIT */
/* anomaly.c: anomaly mode from Python. A node that is made while it is on notes the Python stack;
 * the message of a failure in its turn goes on with that. */
#include "grad.h"

#include <stdatomic.h>
#include <string.h>

static PyObject *format_stack; /* traceback.format_stack */

/* As much of the end of the stack as there is room for: whole lines. */
static void write_tail(const char *text, size_t length, char *buffer, size_t n)
{
    const char *from = text;
    if (length >= n) {
        from = text + length - (n - 1);
        const char *line = strstr(from, "\n  File ");
        from = line ? line + 1 : from;
    }
    strcpy(buffer, from);
}

static void trace(void *ctx, char *buffer, size_t n)
{
    (void)ctx;
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *type, *value, *where;
    PyErr_Fetch(&type, &value, &where);
    PyObject *lines = PyObject_CallNoArgs(format_stack);
    PyObject *empty = lines ? PyUnicode_FromString("") : NULL;
    PyObject *text = empty ? PyUnicode_Join(empty, lines) : NULL;
    Py_ssize_t length = 0;
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
    if (utf8)
        write_tail(utf8, (size_t)length, buffer, n);
    Py_XDECREF(text);
    Py_XDECREF(empty);
    Py_XDECREF(lines);
    PyErr_Clear();
    PyErr_Restore(type, value, where);
    tnpy_unlock_any(state);
}

/* A warning for the node that failed, and for each in whose turn that was recorded. */
static void warn_of_each(const char *text)
{
    while (*text) {
        const char *next = strstr(text, "\n\nPrevious calculation");
        size_t n = next ? (size_t)(next - text) : strlen(text);
        PyObject *one = PyUnicode_DecodeUTF8(text, (Py_ssize_t)n, "replace");
        const char *utf8 = one ? PyUnicode_AsUTF8AndSize(one, NULL) : NULL;
        if (!utf8 || PyErr_WarnEx(PyExc_UserWarning, utf8, 1) < 0)
            PyErr_Clear(); /* what failed matters more */
        Py_XDECREF(one);
        text += next ? n + 2 : n;
    }
}

void tnpy_note_anomaly(void)
{
    const char *trace_of = strstr(tn_last_error(), "\n\nError detected in ");
    if (!(tn_anomaly_mode() & TN_ANOMALY_TRACE) || !trace_of)
        return;
    PyObject *type, *value, *where;
    PyErr_Fetch(&type, &value, &where);
    PyErr_NormalizeException(&type, &value, &where);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (value)
        warn_of_each(trace_of + 2);
    if (utf8 && !strstr(utf8, trace_of)) { /* else the message has it already */
        PyObject *noted = PyObject_CallMethod(value, "add_note", "s", trace_of + 2);
        Py_XDECREF(noted);
    }
    Py_XDECREF(text);
    PyErr_Clear();
    PyErr_Restore(type, value, where);
}

/* What was last said of NaN, also while the mode is off. */
static atomic_bool looks_for_nan = true;

/* _set_anomaly(on, check_nan, forward bits) */
static PyObject *set_anomaly(PyObject *module, PyObject *args)
{
    (void)module;
    int on, check_nan;
    unsigned forward = 0;
    if (!PyArg_ParseTuple(args, "pp|I", &on, &check_nan, &forward))
        return NULL;
    if (on && !format_stack) {
        PyObject *traceback = PyImport_ImportModule("traceback");
        format_stack = traceback ? PyObject_GetAttrString(traceback, "format_stack") : NULL;
        Py_XDECREF(traceback);
        if (!format_stack)
            return NULL;
        tn_set_anomaly_tracer(trace, NULL);
    }
    uint32_t bits = on ? TN_ANOMALY_TRACE | (check_nan ? TN_ANOMALY_CHECK_NAN : 0) : 0;
    if (on)
        bits |= forward & (TN_ANOMALY_FORWARD_NAN | TN_ANOMALY_FORWARD_INF);
    tn_set_anomaly_mode(bits);
    atomic_store(&looks_for_nan, check_nan != 0);
    Py_RETURN_NONE;
}

static PyObject *is_anomaly(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tn_anomaly_mode() & TN_ANOMALY_TRACE);
}

static PyObject *is_check_nan(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    uint32_t mode = tn_anomaly_mode();
    bool on = mode & TN_ANOMALY_TRACE;
    return PyBool_FromLong(on ? (mode & TN_ANOMALY_CHECK_NAN) != 0 : atomic_load(&looks_for_nan));
}

/* The forward bits: 4 NaN, 8 Inf. */
static PyObject *forward_bits(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLong(tn_anomaly_mode() &
                                   (TN_ANOMALY_FORWARD_NAN | TN_ANOMALY_FORWARD_INF));
}

static PyMethodDef functions[] = {
    {"_anomaly_forward", forward_bits, METH_NOARGS, NULL},
    {"_set_anomaly", set_anomaly, METH_VARARGS, NULL},
    {"is_anomaly_enabled", is_anomaly, METH_NOARGS, "Whether anomaly mode is on."},
    {"is_anomaly_check_nan_enabled", is_check_nan, METH_NOARGS,
     "Whether anomaly mode looks for NaN, or would if it was on."},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_anomaly(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
