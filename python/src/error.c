/* SPDX-License-Identifier: MIT */
/* error.c: failures of the library as exceptions, and back. */
#include "tnpy.h"

#include <stdio.h>
#include <string.h>

PyObject *tnpy_OutOfMemoryError;
static PyObject *LinAlgError;
static char module_text[64] = "tenon";

/* The exception of Python code that C called, until the status that it became arrives. C may get
 * over a failure and fail for another reason later: an exception belongs to a message that has its
 * text. */
static _Thread_local PyObject *pending[3];
static _Thread_local char pending_text[512];

const char *tnpy_module_name(void)
{
    return module_text;
}

static PyObject *class_of(tn_status st)
{
    switch (st) {
    case TN_VALUE:
        return PyExc_ValueError;
    case TN_TYPE:
        return PyExc_TypeError;
    case TN_INDEX:
        return PyExc_IndexError;
    case TN_NOMEM:
        return tnpy_OutOfMemoryError ? tnpy_OutOfMemoryError : PyExc_MemoryError;
    case TN_UNSUPPORTED:
        return PyExc_NotImplementedError;
    case TN_RECURSION:
        return PyExc_RecursionError;
    case TN_LINALG: /* numbers are to blame: programs catch it and go on */
        return LinAlgError ? LinAlgError : PyExc_RuntimeError;
    default:
        return PyExc_RuntimeError;
    }
}

void tnpy_forget(void)
{
    PyObject *old[3] = {pending[0], pending[1], pending[2]};
    pending[0] = pending[1] = pending[2] = NULL;
    for (int i = 0; i < 3; i++)
        Py_XDECREF(old[i]);
}

/* What depends on values that a fake tensor does not have: torch has classes for it. */
static bool raise_of_fake(const char *text)
{
    PyObject *module = PyImport_ImportModule("tenon._subclasses.fake_tensor");
    PyObject *made = module ? PyObject_CallMethod(module, "_exception", "s", text) : NULL;
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    else
        PyErr_Clear();
    Py_XDECREF(module);
    Py_XDECREF(made);
    return made != NULL;
}

PyObject *tnpy_raise(tn_status st)
{
    if (TNPY_UNLIKELY(pending[0] != NULL)) {
        PyObject *type = pending[0], *value = pending[1], *trace = pending[2];
        pending[0] = pending[1] = pending[2] = NULL;
        if (strstr(tn_last_error(), pending_text)) {
            PyErr_Restore(type, value, trace);
            return NULL;
        }
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    }
    const char *text = tn_last_error();
    if (TNPY_UNLIKELY(strstr(text, "a fake tensor does not have") != NULL) && raise_of_fake(text))
        return NULL;
    if (strncmp(text, "Please convert all Tensors to FakeTensors", 41) == 0 ||
        strncmp(text, "Can't call metadata mutating ops on non-Fake", 44) == 0 ||
        strcmp(text, "Mixing fake modes NYI") == 0) {
        PyErr_SetString(PyExc_AssertionError, text);
        return NULL;
    }
    if (st == TN_DEVICE &&
        strstr(text, "on device cuda")) /* nobody provides one: in torch's words */
        text = "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU "
               "and installed a "
               "driver from http://www.nvidia.com/Download/index.aspx";
    PyErr_SetString(class_of(st), text);
    return NULL;
}

/* ---- calls that never end ---- */

/* Note [Whose limit comes first]
 * Python ends calls inside each other at 1000, before the dispatcher does at 1024 dispatches, and
 * says only that there were too many. The cycle is added to its text where the exception first
 * leaves Python code that the library called: there the frames are still open. */
enum { FRAMES = 96 };
static const char cycle_mark[] = "go round in this cycle:";

/* The codes of the innermost Python frames, counted references. */
static int open_codes(PyObject **codes, int most)
{
    int n = 0;
    PyObject *frame = Py_XNewRef((PyObject *)PyEval_GetFrame());
    while (frame && frame != Py_None && n < most) {
        PyObject *back = PyObject_GetAttrString(frame, "f_back");
        codes[n++] = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        Py_DECREF(frame);
        frame = back;
    }
    Py_XDECREF(frame);
    PyErr_Clear();
    return n;
}

static int code_cycle(PyObject *const *codes, int n)
{
    for (int period = 1; period <= n / 3; period++) {
        int i = 0;
        while (i < 2 * period && codes[i] == codes[i + period])
            i++;
        if (i == 2 * period)
            return period;
    }
    return 0;
}

/* The same as tn_dispatch_cycle, of Python functions: Function.apply is no dispatch. */
static int python_cycle(char *text, size_t room)
{
    PyObject *codes[FRAMES];
    int n = open_codes(codes, FRAMES), period = code_cycle(codes, n);
    size_t at = 0;
    text[0] = '\0';
    for (int i = period - 1; i >= 0 && at < room; i--) {
        PyObject *name = PyObject_GetAttrString(codes[i], "co_qualname");
        PyObject *file = PyObject_GetAttrString(codes[i], "co_filename");
        PyObject *line = PyObject_GetAttrString(codes[i], "co_firstlineno");
        PyObject *hop = name && file && line ? PyUnicode_FromFormat("  %U (%U:%S)%s", name, file,
                                                                    line, i ? " ->\n" : "")
                                             : NULL;
        const char *utf8 = hop ? PyUnicode_AsUTF8AndSize(hop, NULL) : NULL;
        at += (size_t)snprintf(text + at, room - at, "%s", utf8 ? utf8 : "");
        Py_XDECREF(name);
        Py_XDECREF(file);
        Py_XDECREF(line);
        Py_XDECREF(hop);
        PyErr_Clear();
    }
    for (int i = 0; i < n; i++)
        Py_DECREF(codes[i]);
    return period;
}

static void name_cycle(PyObject *error)
{
    char cycle[1024];
    PyObject *text = PyObject_Str(error);
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    const char *what = "Dispatches", *advice = "\nA kernel must go on with a redispatch to a lower "
                                               "key, not by calling its own operator again.";
    if (utf8 && !strstr(utf8, cycle_mark)) {
        if (!tn_dispatch_cycle(cycle, sizeof cycle)) {
            what = "Calls of Python functions";
            advice = "";
            (void)python_cycle(cycle, sizeof cycle);
        }
        if (cycle[0]) {
            PyObject *args =
                Py_BuildValue("(N)", PyUnicode_FromFormat("%s. %s %s\n%s%s", utf8, what, cycle_mark,
                                                          cycle, advice));
            if (args)
                (void)PyObject_SetAttrString(error, "args", args);
            Py_XDECREF(args);
        }
    }
    PyErr_Clear(); /* no room for it here: the caller of this frame has more */
    Py_XDECREF(text);
}

tn_status tnpy_failed(void)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    if (!type)
        return tn_fail(TN_INTERNAL, "Python code failed without an exception");
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && PyErr_GivenExceptionMatches(value, PyExc_RecursionError))
        name_cycle(value);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(pending[i]);
    pending[0] = type;
    pending[1] = value;
    pending[2] = trace;
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (!utf8)
        PyErr_Clear();
    char name[128];
    if (!utf8 || !utf8[0])
        utf8 = value ? tnpy_type_name(value, name, sizeof name) : "Python code failed";
    snprintf(pending_text, sizeof pending_text, "%s", utf8);
    tn_status st = tn_fail(TN_INVALID, "%s", utf8);
    Py_XDECREF(text);
    return st;
}

const char *tnpy_type_name(PyObject *o, char *room, size_t n)
{
    PyTypeObject *type = Py_TYPE(o);
    PyObject *name = PyType_GetName(type);
    PyObject *module = NULL;
    if (!(PyType_GetFlags(type) & Py_TPFLAGS_HEAPTYPE))
        module = PyObject_GetAttrString((PyObject *)type, "__module__");
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const char *where =
        module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
    PyErr_Clear();
    static const char *const with_module[] = {"dtype", "device", "layout", "memory_format", "Size"};
    bool ours = false; /* texts are torch's, and its classes of these names show their module */
    for (size_t i = 0; !module && text && i < sizeof with_module / sizeof *with_module; i++)
        ours |= strcmp(text, with_module[i]) == 0;
    if (ours)
        snprintf(room, n, "torch.%s", text);
    else if (!module && text && strcmp(text, "Generator") == 0)
        snprintf(room, n, "torch._C.Generator");
    else if (where && strcmp(where, "builtins"))
        snprintf(room, n, "%s.%s", where, text ? text : "object");
    else
        snprintf(room, n, "%s", text ? text : "object");
    Py_XDECREF(name);
    Py_XDECREF(module);
    return room;
}

static PyObject *set_module_name(PyObject *self, PyObject *name)
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (!text)
        return NULL;
    if (strlen(text) >= sizeof module_text) {
        PyErr_SetString(PyExc_ValueError, "the name is too long");
        return NULL;
    }
    /* Types of the module say where they live. */
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(PyModule_GetDict(self), &at, &key, &value)) {
        PyObject *module = PyType_Check(value) ? PyObject_GetAttrString(value, "__module__") : NULL;
        bool ours = module && PyUnicode_Check(module) &&
                    PyUnicode_CompareWithASCIIString(module, module_text) == 0;
        PyErr_Clear();
        Py_XDECREF(module);
        if (ours && PyObject_SetAttrString(value, "__module__", name))
            return NULL;
    }
    strcpy(module_text, text);
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"_set_module_name", set_module_name, METH_O,
     "_set_module_name(name)\n\nThe name that types print in front of their own: \"tenon\", or "
     "\"torch\"."},
    {NULL, NULL, 0, NULL},
};

/* ---- warnings ---- */

static tn_status warn(void *ctx, const char *text)
{
    (void)ctx;
    if (!Py_IsInitialized())
        return TN_OK;
    PyGILState_STATE state = tnpy_lock_any();
    tn_status st = PyErr_WarnEx(PyExc_UserWarning, text, 1) < 0 ? tnpy_failed() : TN_OK;
    tnpy_unlock_any(state);
    return st;
}

int tnpy_add_error(PyObject *module)
{
    static const tn_warnings to = {.size = sizeof to, .tell = warn};
    tn_status st = tn_set_warnings(&to);
    if (st != TN_OK)
        return tnpy_raise(st) ? 0 : -1;
    tnpy_OutOfMemoryError = PyErr_NewExceptionWithDoc(
        "tenon.OutOfMemoryError", "Exception raised when device is out of memory",
        PyExc_RuntimeError, NULL);
    if (!tnpy_OutOfMemoryError ||
        PyModule_AddObjectRef(module, "OutOfMemoryError", tnpy_OutOfMemoryError))
        return -1;
    LinAlgError =
        PyErr_NewExceptionWithDoc("tenon._C._LinAlgError",
                                  "Error raised by torch.linalg function when the cause of error "
                                  "is a numerical inconsistency in the data.",
                                  PyExc_RuntimeError, NULL);
    if (!LinAlgError || PyModule_AddObjectRef(module, "_LinAlgError", LinAlgError))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
