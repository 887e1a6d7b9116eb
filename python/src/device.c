/* SPDX-License-Identifier: MIT */
/* device.c: tenon.device, also as a context manager, and the default device. */
#include "override.h"

#include <stdio.h>
#include <string.h>

typedef struct device_object {
    PyObject_HEAD tn_device d;
} device_object;

static PyTypeObject *device_type;
static PyObject *cpu_device, *meta_device;

static PyObject *make(PyTypeObject *type, tn_device d)
{
    device_object *o = PyObject_New(device_object, type);
    if (o)
        o->d = d;
    return (PyObject *)o;
}

PyObject *tnpy_device(tn_device d)
{
    if (d.index == -1 && d.type == TN_DEVICE_CPU)
        return Py_NewRef(cpu_device);
    if (d.index == -1 && d.type == TN_DEVICE_META)
        return Py_NewRef(meta_device);
    return make(device_type, d);
}

int tnpy_is_device(PyObject *o)
{
    return Py_TYPE(o) == device_type;
}

/* "cpu:1" and the like: there is one CPU, which answers to every number. */
static bool is_some_cpu(const char *text, tn_device *out)
{
    if (strncmp(text, "cpu:", 4) != 0 || text[4] < '1' || text[4] > '9')
        return false;
    int64_t index = 0;
    for (text += 4; *text >= '0' && *text <= '9' && index <= INT8_MAX; text++)
        index = index * 10 + (*text - '0');
    *out = TN_DEVICE_INIT(TN_DEVICE_CPU, index);
    return *text == '\0' && index <= INT8_MAX;
}

static int parse(PyObject *o, tn_device *out)
{
    const char *text = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!text)
        return -1;
    if (is_some_cpu(text, out))
        return 0;
    tn_status st = tn_device_parse(text, out);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    return 0;
}

int tnpy_device_of(PyObject *o, tn_device *out)
{
    if (TNPY_LIKELY(Py_TYPE(o) == device_type)) {
        *out = ((device_object *)(void *)o)->d;
        return 0;
    }
    if (PyUnicode_Check(o))
        return parse(o, out);
    if (PyLong_Check(o) && !PyBool_Check(o)) { /* a number is an accelerator's */
        int64_t i;
        if (tnpy_int_of(o, &i))
            return -1;
        if (i < 0 || i > INT16_MAX) {
            PyErr_SetString(PyExc_RuntimeError, i < 0 ? "Device index must not be negative"
                                                      : "Device index is too large");
            return -1;
        }
        *out = TN_DEVICE_INIT(TN_DEVICE_CUDA, i);
        return 0;
    }
    char name[128];
    PyErr_Format(PyExc_TypeError, "expected a device, but got %s",
                 tnpy_type_name(o, name, sizeof name));
    return -1;
}

static PyObject *refuse(PyObject *what)
{
    char name[128] = "", why[256] = "";
    if (what)
        snprintf(why, sizeof why,
                 "      didn't match because some of the arguments have invalid types: (!%s!)\n",
                 tnpy_type_name(what, name, sizeof name));
    PyErr_Format(PyExc_TypeError,
                 "device() received an invalid combination of arguments - got (%s), but expected "
                 "one of:\n * (%s.device device)\n%s * (str type, int index = -1)\n",
                 name, tnpy_module_name(), why);
    return NULL;
}

/* The index beside a type, which says none itself. */
static int index_of(PyObject *what, PyObject *index, int64_t *out)
{
    if (!PyLong_Check(index) || PyBool_Check(index)) {
        char name[128];
        PyErr_Format(PyExc_TypeError, "device(): argument 'index' (position 2) must be int, not %s",
                     tnpy_type_name(index, name, sizeof name));
        return -1;
    }
    const char *text = PyUnicode_Check(what) ? PyUnicode_AsUTF8AndSize(what, NULL) : "";
    if (!text || tnpy_int_of(index, out))
        return -1;
    if (strchr(text, ':')) {
        PyErr_Format(PyExc_RuntimeError,
                     "type (string) must not include an index because index was passed explicitly: "
                     "%S",
                     what);
        return -1;
    }
    if (*out < 0 || *out > INT16_MAX) {
        PyErr_SetString(PyExc_RuntimeError, *out < 0 ? "Device index must not be negative"
                                                     : "Device index is too large");
        return -1;
    }
    return 0;
}

static PyObject *device_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", "index", NULL}, *typed[] = {"type", "index", NULL};
    PyObject *what = NULL, *index = Py_None;
    bool by_type = kwargs && PyDict_GetItemString(kwargs, "type");
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:device", by_type ? typed : names, &what,
                                     &index))
        return NULL;
    if (TNPY_UNLIKELY(tnpy_function_modes && tnpy_function_off < 2) ||
        tnpy_stranger_among(args, kwargs))
        return tnpy_override_call((PyObject *)device_type, args, kwargs);
    if (!what || (index == Py_None && !PyUnicode_Check(what) && !tnpy_is_device(what) &&
                  (!PyLong_Check(what) || PyBool_Check(what))))
        return refuse(what);
    if (index != Py_None && !PyUnicode_Check(what)) {
        char name[128];
        PyErr_Format(PyExc_TypeError, "device(): argument 'type' (position 1) must be str, not %s",
                     tnpy_type_name(what, name, sizeof name));
        return NULL;
    }
    tn_device d;
    int64_t i = -1;
    if (index != Py_None && index_of(what, index, &i))
        return NULL;
    if (tnpy_device_of(what, &d))
        return NULL;
    if (index != Py_None)
        d.index = (int16_t)i;
    return type == device_type ? tnpy_device(d) : make(type, d);
}

static void device_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    PyObject_Free(o);
    Py_DECREF(type);
}

static const char *kind_name(tn_device d, char *room, size_t n)
{
    d.index = -1;
    return tn_device_format(d, room, n);
}

static PyObject *device_repr(PyObject *o)
{
    tn_device d = ((device_object *)(void *)o)->d;
    char room[32];
    kind_name(d, room, sizeof room);
    return d.index < 0 ? PyUnicode_FromFormat("device(type='%s')", room)
                       : PyUnicode_FromFormat("device(type='%s', index=%d)", room, d.index);
}

static PyObject *device_str(PyObject *o)
{
    char room[32];
    return PyUnicode_FromString(
        tn_device_format(((device_object *)(void *)o)->d, room, sizeof room));
}

static Py_hash_t device_hash(PyObject *o)
{
    tn_device d = ((device_object *)(void *)o)->d;
    return (Py_hash_t)((uint32_t)(uint16_t)d.type << 16 | (uint16_t)d.index);
}

static PyObject *device_compare(PyObject *a, PyObject *b, int op)
{
    if (!tnpy_is_device(a) || !tnpy_is_device(b) || (op != Py_EQ && op != Py_NE))
        return Py_NewRef(Py_NotImplemented);
    tn_device x = ((device_object *)(void *)a)->d, y = ((device_object *)(void *)b)->d;
    bool same = x.type == y.type && x.index == y.index;
    return PyBool_FromLong(same == (op == Py_EQ));
}

static PyObject *device_get_type(PyObject *o, void *closure)
{
    (void)closure;
    char room[32];
    return PyUnicode_FromString(kind_name(((device_object *)(void *)o)->d, room, sizeof room));
}

static PyObject *device_get_index(PyObject *o, void *closure)
{
    (void)closure;
    tn_device d = ((device_object *)(void *)o)->d;
    return d.index < 0 ? Py_NewRef(Py_None) : PyLong_FromLong(d.index);
}

/* What is put on the stack of function modes: the device, or what modes see of it. */
static PyObject *device_enter(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    PyObject *module = NULL, *mode = NULL;
    if (tnpy_function_modes == 0)
        mode = Py_NewRef(o);
    else if ((module = PyImport_ImportModule("tenon.utils._device")))
        mode = PyObject_CallMethod(module, "DeviceContext", "O", o);
    int failed = !mode || tnpy_mode_push(mode);
    Py_XDECREF(module);
    Py_XDECREF(mode);
    return failed ? NULL : Py_NewRef(o);
}

static PyObject *device_exit(PyObject *o, PyObject *args)
{
    (void)o;
    (void)args;
    PyObject *mode = tnpy_mode_pop();
    if (!mode)
        return NULL;
    Py_DECREF(mode);
    return Py_NewRef(Py_None);
}

static PyObject *device_reduce(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    tn_device d = ((device_object *)(void *)o)->d;
    char room[32];
    kind_name(d, room, sizeof room);
    return d.index < 0 ? Py_BuildValue("(O(s))", device_type, room)
                       : Py_BuildValue("(O(si))", device_type, room, (int)d.index);
}

static PyMethodDef device_methods[] = {
    {"__enter__", device_enter, METH_NOARGS, "Make it the default device of factories."},
    {"__exit__", device_exit, METH_VARARGS, NULL},
    {"__reduce__", device_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef device_getset[] = {
    {"type", device_get_type, NULL, "\"cpu\", \"meta\", \"cuda\" …", NULL},
    {"index", device_get_index, NULL, "Which of them; None: not said.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot device_slots[] = {
    {Py_tp_new, device_new},
    {Py_tp_dealloc, device_dealloc},
    {Py_tp_repr, device_repr},
    {Py_tp_str, device_str},
    {Py_tp_hash, device_hash},
    {Py_tp_richcompare, device_compare},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_getset},
    {Py_tp_doc, "device(type, index=None)\n\nWhere tensors live. In a with statement: the default "
                "device of factories."},
    {0, NULL},
};

static PyType_Spec device_spec = {"tenon.device", sizeof(device_object), 0, Py_TPFLAGS_DEFAULT,
                                  device_slots};

/* ---- the default device ---- */

static PyObject *in_python(const char *function, PyObject *o)
{
    PyObject *module = PyImport_ImportModule("tenon.utils._device");
    PyObject *result = !module ? NULL
                       : o     ? PyObject_CallMethod(module, function, "O", o)
                               : PyObject_CallMethod(module, function, NULL);
    Py_XDECREF(module);
    return result;
}

static bool was_set; /* on any thread */

static PyObject *get_default_device(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    if (tnpy_default_device.type != TN_DEVICE_NONE)
        return tnpy_device(tnpy_default_device);
    if (tnpy_function_modes || was_set)
        return in_python("get_default_device", NULL);
    return tnpy_device(TN_CPU);
}

static PyObject *set_default_device(PyObject *self, PyObject *o)
{
    (void)self;
    was_set = true;
    return in_python("set_default_device", o);
}

static PyObject *context_device(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    bool none = tnpy_default_device.type == TN_DEVICE_NONE || tnpy_function_off == 2;
    return none ? Py_NewRef(Py_None) : tnpy_device(tnpy_default_device);
}

static PyMethodDef functions[] = {
    {"_context_device", context_device, METH_NOARGS,
     "_context_device() -> device or None\n\nWhat factories take that are given none."},
    {"get_default_device", get_default_device, METH_NOARGS, "get_default_device() -> device"},
    {"set_default_device", set_default_device, METH_O,
     "set_default_device(device)\n\nWhere factories put tensors; None: the CPU."},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_device(PyObject *module)
{
    device_type = (PyTypeObject *)PyType_FromSpec(&device_spec);
    if (!device_type || PyModule_AddObjectRef(module, "device", (PyObject *)device_type))
        return -1;
    cpu_device = make(device_type, TN_CPU);
    meta_device = make(device_type, TN_META);
    if (!cpu_device || !meta_device)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
