/* SPDX-License-Identifier: MIT */
/* grad_mode.c: no_grad, enable_grad, set_grad_enabled and inference_mode, for with statements and
 * as decorators. Blocks of them stand in inner loops, so that entering and leaving is done here;
 * decorating is rare, and done in tenon/_grad_mode.py. */
#include "tnpy.h"

#include <string.h>

typedef struct mode_object {
    PyObject_HEAD bool mode; /* what it switches to */
    bool prev;               /* what it was before, once entered */
    bool entered;
    tn_inference_guard guard;
} mode_object;

/* How often this thread switched recording off. A transform that records a function asks whether
 * the function did. */
static _Thread_local unsigned long switched_off;

static bool set_grad(bool on)
{
    switched_off += !on;
    return tn_set_grad_enabled(on);
}

static PyObject *times_switched_off(PyObject *module, PyObject *nothing)
{
    (void)module;
    (void)nothing;
    return PyLong_FromUnsignedLong(switched_off);
}

enum { NO_GRAD, ENABLE_GRAD, SET_GRAD, INFERENCE, N_KINDS };
static PyTypeObject *types[N_KINDS];

static mode_object *mode_of(PyObject *o)
{
    return (mode_object *)(void *)o;
}

static PyObject *make(PyTypeObject *type, int kind, bool mode, bool prev)
{
    mode_object *o;
    if (TNPY_LIKELY(type == types[kind])) {
        o = PyObject_New(mode_object, type);
    } else {
        allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
        o = mode_of(allocate(type, 0));
    }
    if (!o)
        return NULL;
    o->mode = mode;
    o->prev = prev;
    o->entered = false;
    return (PyObject *)o;
}

static void mode_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(o);
    Py_DECREF(type);
}

/* A class of the user's may have an __init__ of its own, and call this one with anything. */
static int mode_init(PyObject *o, PyObject *args, PyObject *kwargs)
{
    (void)o;
    (void)args;
    (void)kwargs;
    return 0;
}

/* @p mode in front of @p function; takes the mode. */
static PyObject *decorated(PyObject *mode, PyObject *function)
{
    if (!mode)
        return NULL;
    PyObject *module = PyImport_ImportModule("tenon._grad_mode");
    PyObject *made = module ? PyObject_CallMethod(module, "decorate", "OO", mode, function) : NULL;
    Py_XDECREF(module);
    Py_DECREF(mode);
    return made;
}

static PyObject *new_of(PyTypeObject *type, int kind, PyObject *args, PyObject *kwargs)
{
    if (TNPY_LIKELY(PyTuple_Size(args) == 0 && !kwargs))
        return make(type, kind, kind == ENABLE_GRAD, false);
    static char *names[] = {"orig_func", NULL};
    PyObject *function = Py_None;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, kind == NO_GRAD ? "|O:no_grad" : "|O:enable_grad", names, &function))
        return NULL;
    PyObject *o = make(type, kind, kind == ENABLE_GRAD, false);
    return function == Py_None ? o : decorated(o, function);
}

static PyObject *no_grad_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_of(type, NO_GRAD, args, kwargs);
}

static PyObject *enable_grad_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    return new_of(type, ENABLE_GRAD, args, kwargs);
}

static PyObject *set_grad_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"mode", NULL};
    PyObject *mode = NULL;
    if (TNPY_LIKELY(PyTuple_Size(args) == 1 && !kwargs))
        mode = PyTuple_GetItem(args, 0);
    else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:set_grad_enabled", names, &mode))
        return NULL;
    if (!PyBool_Check(mode)) {
        char name[128];
        PyErr_Format(PyExc_TypeError,
                     "set_grad_enabled(): argument 'enabled' (position 1) must be bool, not %s",
                     tnpy_type_name(mode, name, sizeof name));
        return NULL;
    }
    PyObject *o = make(type, SET_GRAD, mode == Py_True, false);
    if (o)
        mode_of(o)->prev = set_grad(mode == Py_True);
    return o;
}

static PyObject *inference_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"mode", NULL};
    PyObject *mode = Py_True;
    if ((PyTuple_Size(args) || kwargs) &&
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|O:inference_mode", names, &mode))
        return NULL;
    if (PyBool_Check(mode))
        return make(type, INFERENCE, mode == Py_True, false);
    return decorated(make(type, INFERENCE, true, false), mode);
}

/* ---- with ---- */

static PyObject *grad_enter(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    mode_of(o)->prev = set_grad(mode_of(o)->mode);
    return Py_NewRef(Py_None);
}

/* What was before is what was when it was made. */
static PyObject *set_grad_enter(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    set_grad(mode_of(o)->mode);
    return Py_NewRef(Py_None);
}

static PyObject *inference_enter(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    mode_object *m = mode_of(o);
    switched_off += m->mode;
    m->guard = tn_inference_enter(m->mode);
    m->entered = true;
    return Py_NewRef(Py_None);
}

static int check_exit(Py_ssize_t n)
{
    if (TNPY_LIKELY(n == 3))
        return 0;
    PyErr_Format(PyExc_TypeError, "__exit__() takes 3 arguments (%zd given)", n);
    return -1;
}

static PyObject *grad_exit(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    (void)args;
    if (check_exit(n))
        return NULL;
    tn_set_grad_enabled(mode_of(o)->prev);
    return Py_NewRef(Py_None);
}

static PyObject *inference_exit(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
    (void)args;
    if (check_exit(n))
        return NULL;
    mode_object *m = mode_of(o);
    if (!m->entered) {
        PyErr_SetString(PyExc_RuntimeError, "inference_mode is left, but was not entered");
        return NULL;
    }
    m->entered = false;
    tn_inference_leave(m->guard);
    return Py_NewRef(Py_None);
}

/* ---- decorating ---- */

static PyObject *mode_call(PyObject *o, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"orig_func", NULL};
    PyObject *function;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", names, &function))
        return NULL;
    return decorated(Py_NewRef(o), function);
}

/* The switch was thrown when it was made, and was not meant for here. */
static PyObject *set_grad_call(PyObject *o, PyObject *args, PyObject *kwargs)
{
    tn_set_grad_enabled(mode_of(o)->prev);
    return mode_call(o, args, kwargs);
}

static PyObject *clone(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    return PyObject_CallNoArgs((PyObject *)Py_TYPE(o));
}

static PyObject *clone_with_mode(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    return PyObject_CallFunctionObjArgs((PyObject *)Py_TYPE(o),
                                        mode_of(o)->mode ? Py_True : Py_False, NULL);
}

static PyObject *set_grad_repr(PyObject *o)
{
    PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__module__");
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "__qualname__");
    PyObject *text = module && name ? PyUnicode_FromFormat("%S.%S(mode=%s)", module, name,
                                                           mode_of(o)->mode ? "True" : "False")
                                    : NULL;
    Py_XDECREF(module);
    Py_XDECREF(name);
    return text;
}

/* ---- the types ---- */

static PyObject *get_mode(PyObject *o, void *closure)
{
    (void)closure;
    return PyBool_FromLong(mode_of(o)->mode);
}

static PyObject *get_prev(PyObject *o, void *closure)
{
    (void)closure;
    return PyBool_FromLong(mode_of(o)->prev);
}

static PyGetSetDef with_prev[] = {
    {"prev", get_prev, NULL, "Whether calls were recorded before.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyGetSetDef with_mode_and_prev[] = {
    {"mode", get_mode, NULL, "What it switches to.", NULL},
    {"prev", get_prev, NULL, "Whether calls were recorded before.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
static PyGetSetDef with_mode[] = {
    {"mode", get_mode, NULL, "What it switches to.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

#define FAST(f) (PyCFunction)(void (*)(void))(f)
static PyMethodDef grad_methods[] = {
    {"__enter__", grad_enter, METH_NOARGS, NULL},
    {"__exit__", FAST(grad_exit), METH_FASTCALL, NULL},
    {"clone", clone, METH_NOARGS, "clone()\n--\n\nAnother of the kind."},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef set_grad_methods[] = {
    {"__enter__", set_grad_enter, METH_NOARGS, NULL},
    {"__exit__", FAST(grad_exit), METH_FASTCALL, NULL},
    {"clone", clone_with_mode, METH_NOARGS, "clone()\n--\n\nAnother of the kind."},
    {NULL, NULL, 0, NULL},
};
static PyMethodDef inference_methods[] = {
    {"__enter__", inference_enter, METH_NOARGS, NULL},
    {"__exit__", FAST(inference_exit), METH_FASTCALL, NULL},
    {"clone", clone_with_mode, METH_NOARGS, "clone()\n--\n\nAnother of the kind."},
    {NULL, NULL, 0, NULL},
};

/* What follows the text: further slots, each with its comma. */
#define SLOTS(name, make_one, call, methods, attributes, text, ...)                     \
    static PyType_Slot name##_slots[] = {                                               \
        {Py_tp_new, make_one}, {Py_tp_init, mode_init},  {Py_tp_dealloc, mode_dealloc}, \
        {Py_tp_call, call},    {Py_tp_methods, methods}, {Py_tp_getset, attributes},    \
        {Py_tp_doc, text},     __VA_ARGS__{0, NULL},                                    \
    }
SLOTS(no_grad, no_grad_new, mode_call, grad_methods, with_prev,
      "no_grad()\n\nInside, nothing is recorded for gradients.", );
SLOTS(enable_grad, enable_grad_new, mode_call, grad_methods, with_prev,
      "enable_grad()\n\nInside, calls are recorded for gradients.", );
SLOTS(set_grad, set_grad_new, set_grad_call, set_grad_methods, with_mode_and_prev,
      "set_grad_enabled(mode)\n\nSwitch recording at once; as a with statement, until its end.",
      {Py_tp_repr, set_grad_repr}, );
SLOTS(inference, inference_new, mode_call, inference_methods, with_mode,
      "inference_mode(mode=True)\n\nInside, nothing is recorded, and what is made can never take "
      "part in gradients.", );

static PyType_Spec specs[N_KINDS] = {
#define SPEC(name, slots)                                         \
    {                                                             \
        "tenon.autograd.grad_mode." name, sizeof(mode_object), 0, \
            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots       \
    }
    SPEC("no_grad", no_grad_slots),
    SPEC("enable_grad", enable_grad_slots),
    SPEC("set_grad_enabled", set_grad_slots),
    SPEC("inference_mode", inference_slots),
};

static PyMethodDef functions[] = {
    {"_times_switched_off", times_switched_off, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_grad_mode(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions))
        return -1;
    for (int i = 0; i < N_KINDS; i++) {
        types[i] = (PyTypeObject *)PyType_FromSpec(&specs[i]);
        const char *name = strrchr(specs[i].name, '.') + 1;
        if (!types[i] || PyModule_AddObjectRef(module, name, (PyObject *)types[i]))
            return -1;
    }
    return 0;
}
