/* SPDX-License-Identifier: MIT */
/* dimname.c: names where dimensions are wanted. Dimensions have no names here, so that none is ever
 * found; operators that take names in PyTorch say so in its words. */
#include "dimname.h"

#include <stdio.h>
#include <string.h>

/* Operators that look a name up, and those that take one only to refuse it. */
static const char *const looking[] = {
    "cat",    "sum",        "mean",    "prod",   "std",          "var",      "median",
    "mode",   "nanmedian",  "min",     "max",    "logsumexp",    "softmax",  "log_softmax",
    "cumsum", "cumprod",    "cummax",  "cummin", "logcumsumexp", "unbind",   "kthvalue",
    "select", "index_fill", "squeeze", "concat", "transpose",    "std_mean", "var_mean",
};
static const char *const refusing[] = {
    "sort",    "argsort",     "all",       "any",        "index_select",
    "scatter", "scatter_add", "index_add", "index_copy", "gather",
};

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return true;
    return false;
}
#define IS_ONE_OF(name, list) is_one_of((name), (list), sizeof(list) / sizeof *(list))

void tnpy_no_such_dimension(PyObject *tensor, PyObject *name)
{
    tn_tensor *t = tensor ? tnpy_tensor(tensor) : NULL;
    char dims[TN_MAX_DIMS * 6 + 1] = "";
    size_t at = 0;
    for (int i = 0; t && i < tn_tensor_ndim(t); i++)
        at += (size_t)snprintf(dims + at, sizeof dims - at, "%sNone", i ? ", " : "");
    PyErr_Format(PyExc_RuntimeError, "Name '%U' not found in Tensor[%s].", name, dims);
}

/* A string, or the first of a list of strings; borrowed by the caller. NULL: neither. */
static PyObject *name_in(PyObject *o)
{
    if (PyUnicode_Check(o))
        return o;
    PyObject *first = NULL;
    if (PyTuple_Check(o) && PyTuple_Size(o) > 0)
        first = PyTuple_GetItem(o, 0);
    else if (PyList_Check(o) && PyList_Size(o) > 0)
        first = PyList_GetItem(o, 0);
    return first && PyUnicode_Check(first) ? first : NULL;
}

/* Whether a signature has a dimension at this place. */
static bool wants_dimension(const tnpy_call *c, int place)
{
    for (int i = 0; i < c->entry->n; i++) {
        const tnpy_sig *s = &c->entry->sigs[i];
        int at = place + c->entry->method;
        if (at < s->positional &&
            (s->params[at].kind == TNPY_INT || s->params[at].kind == TNPY_INTS) &&
            strncmp(tnpy_name_texts[s->params[at].name], "dim", 3) == 0)
            return true;
    }
    return false;
}

static PyObject *name_given(const tnpy_call *c)
{
    PyObject *found = NULL;
    int n = c->n - (c->self != NULL);
    for (int i = 0; i < n; i++)
        if (wants_dimension(c, i) && name_in(c->args[i]))
            found = name_in(c->args[i]); /* transpose looks its second name up first */
    for (int k = 0; k < c->n_keywords && !found; k++) {
        PyObject *word = PyTuple_GetItem(c->kwnames, k);
        if (PyUnicode_CompareWithASCIIString(word, "dim") == 0 ||
            PyUnicode_CompareWithASCIIString(word, "axis") == 0)
            found = name_in(c->args[n + k]);
    }
    return found;
}

int tnpy_without_names(const tnpy_call *c, tnpy_call *out, PyObject ***room)
{
    static const char *const named[] = {"ones", "zeros", "empty", "full", "rand", "randn"};
    int n = c->n - (c->self != NULL), at = -1, kept = 0;
    for (int k = 0; k < c->n_keywords; k++)
        if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(c->kwnames, k), "names") == 0)
            at = k;
    if (at < 0 || c->args[n + at] != Py_None || !IS_ONE_OF(c->entry->name, named))
        return 0;
    PyObject **args = PyMem_Malloc((size_t)(n + c->n_keywords) * sizeof(PyObject *));
    PyObject *words = PyTuple_New(c->n_keywords - 1);
    if (!args || !words) {
        PyMem_Free(args);
        Py_XDECREF(words);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(args, c->args, (size_t)n * sizeof(PyObject *));
    for (int k = 0; k < c->n_keywords; k++)
        if (k != at) {
            args[n + kept] = c->args[n + k];
            PyTuple_SetItem(words, kept++, Py_NewRef(PyTuple_GetItem(c->kwnames, k)));
        }
    *out = *c;
    out->args = *room = args;
    out->kwnames = words;
    out->n_keywords = kept;
    return 1;
}

bool tnpy_explain_dimname(const tnpy_call *c)
{
    const char *op = c->entry->name;
    bool looks = IS_ONE_OF(op, looking);
    if (!looks && !IS_ONE_OF(op, refusing))
        return false;
    PyObject *name = name_given(c), *tensor = c->self;
    if (!name)
        return false;
    if (!looks) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s: You passed a dimname (string) to this op in place of a dimension index "
                     "but it does not yet support this behavior. Please pass a dimension index to "
                     "work around this.",
                     op);
        return true;
    }
    if (!tensor && c->n > 0)
        tensor = c->args[0];
    if (tensor && PyList_Check(tensor))
        tensor = PyList_Size(tensor) ? PyList_GetItem(tensor, 0) : NULL;
    else if (tensor && PyTuple_Check(tensor))
        tensor = PyTuple_Size(tensor) ? PyTuple_GetItem(tensor, 0) : NULL;
    tnpy_no_such_dimension(tensor, name);
    return true;
}
