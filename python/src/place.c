/* SPDX-License-Identifier: MIT */
/* place.c: calling a user's function so that the doctor can say which one it is: "F.forward
 * (train.py:12)". Kernels and modes have their places from where they are registered; this is for
 * functions that run outside of operators. */
#include "tnpy.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tenon/recorder.h"

/* By the code, which lives as long as the program, or by the type of what has none. Under the
 * interpreter's lock. The text is copied when a call begins: another may take its place. */
enum { PLACES = 64 };
static struct {
    PyObject *key; /* owned */
    char text[40];
} places[PLACES];

/* The end of a text, from behind the last of @p mark before the last @p n; all when there is none.
 */
static const char *tail(const char *text, char mark, int n)
{
    const char *at = text + strlen(text);
    while (at > text && (at[-1] != mark || --n > 0))
        at--;
    return at;
}

static const char *text_of(PyObject *o, const char *attribute, PyObject **owned)
{
    *owned = PyObject_GetAttrString(o, attribute);
    const char *text =
        *owned && PyUnicode_Check(*owned) ? PyUnicode_AsUTF8AndSize(*owned, NULL) : NULL;
    PyErr_Clear();
    return text ? text : "";
}

static void describe(PyObject *fn, PyObject *key, bool has_code, char *to, size_t room)
{
    PyObject *name_object, *file_object = NULL, *line_object = NULL;
    const char *name = text_of(has_code ? fn : key, "__qualname__", &name_object);
    char place[40] = "";
    if (has_code) {
        const char *file = tail(text_of(key, "co_filename", &file_object), '/', 1);
        line_object = PyObject_GetAttrString(key, "co_firstlineno");
        long line = line_object ? PyLong_AsLong(line_object) : 0;
        PyErr_Clear();
        snprintf(place, sizeof place, " (%.24s:%ld)", file, line);
    }
    /* The last two parts of the name, and of a long one its beginning: that reads. */
    name = tail(name, '.', strstr(name, "<locals>.") == tail(name, '.', 2) ? 1 : 2);
    size_t n = strlen(name), left = room - 1 - strlen(place);
    bool is_cut = n > left && left > 2;
    n = is_cut ? left - 2 : n < left ? n : left;
    memcpy(to, name, n);
    memcpy(to + n, "..", is_cut ? 2 : 0);
    memcpy(to + n + (is_cut ? 2 : 0), place, strlen(place) + 1);
    Py_XDECREF(name_object);
    Py_XDECREF(file_object);
    Py_XDECREF(line_object);
}

/* Forgets that an attribute is missing. To say so Python formats a text, and formatting looks for
 * signals: what a handler raised then (Ctrl+C) is no answer to the question, and stays set. */
static bool only_missing(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return false;
    PyErr_Clear();
    return true;
}

/* The function inside of what wraps one, as functools does; NULL when there is none. */
static PyObject *inside_of(PyObject *fn)
{
    PyObject *name_object;
    bool is_partial =
        !strcmp(text_of((PyObject *)Py_TYPE(fn), "__name__", &name_object), "partial");
    PyObject *inside = PyObject_GetAttrString(fn, is_partial ? "func" : "__wrapped__");
    Py_XDECREF(name_object);
    (void)only_missing();
    return inside;
}

/* NULL: an exception is set. */
static const char *place_of(PyObject *fn)
{
    static PyObject *s_code;
    if (!s_code && !(s_code = PyUnicode_InternFromString("__code__"))) {
        PyErr_Clear();
        return "";
    }
    PyObject *code = PyObject_GetAttr(fn, s_code), *inside = NULL;
    if (!code) {
        inside = only_missing() ? inside_of(fn) : NULL;
        code = inside ? PyObject_GetAttr(inside, s_code) : NULL;
        if (!only_missing()) {
            Py_XDECREF(code);
            Py_XDECREF(inside);
            return NULL;
        }
        fn = code ? inside : fn;
    }
    PyObject *key = code ? code : Py_NewRef((PyObject *)Py_TYPE(fn));
    size_t at = ((uintptr_t)key >> 4) % PLACES;
    if (places[at].key != key) {
        char text[sizeof places[at].text];
        describe(fn, key, code != NULL, text, sizeof text);
        PyObject *old = places[at].key;
        memcpy(places[at].text, text, sizeof text);
        places[at].key = Py_NewRef(key);
        Py_XDECREF(old);
    }
    Py_DECREF(key);
    Py_XDECREF(inside);
    return places[at].text;
}

PyObject *tnpy_call_user(PyObject *fn, PyObject *args)
{
    return tnpy_call_named(fn, fn, args);
}

PyObject *tnpy_call_named(PyObject *named, PyObject *fn, PyObject *args)
{
    const char *place = place_of(named);
    if (!place)
        return NULL;
    tn_code_begin(place);
    PyObject *result = PyObject_Call(fn, args, NULL);
    tn_code_end(place);
    return result;
}

PyObject *tnpy_call_hook(PyObject *fn, PyObject *first, PyObject *second)
{
    const char *place = place_of(fn);
    if (!place)
        return NULL;
    tn_code_begin(place);
    PyObject *result = PyObject_CallFunctionObjArgs(fn, first, second, NULL);
    tn_code_end(place);
    return result;
}
