/* SPDX-License-Identifier: MIT */
/* dispatch.c: __torch_dispatch__: modes, which are the library's (tenon/mode.h) with a Python
 * object behind each, and classes of tensors whose calls go to them. */
#include "opcall.h"

#include "grad.h"
#include "override.h"

#include "tenon/mode.h"

#include <string.h>

static PyObject *str_torch_dispatch;
static PyObject *disabled_impl; /* what a class has that sees nothing */

/* ---- which classes ---- */

int tnpy_type_dispatches(PyTypeObject *type)
{
    if (type == tnpy_Tensor || !str_torch_dispatch)
        return 0;
    PyObject *own = PyObject_GetAttr((PyObject *)type, str_torch_dispatch);
    if (!own) { /* what exists and cannot be bound just now is one of its own */
        int none = PyErr_ExceptionMatches(PyExc_AttributeError);
        PyErr_Clear();
        return !none;
    }
    int found = own != disabled_impl && own != Py_None;
    Py_DECREF(own);
    return found;
}

static int is_asked(PyObject *o)
{
    return tnpy_is_tensor(o) && tnpy_type_dispatches(Py_TYPE(o));
}

/* ---- asking ---- */

/* What a __torch_dispatch__ is shown as. Labels stay: a frame of another thread may have one. */
enum { MOST_LABELS = 1024 };
static PyObject *labels; /* address of a code object -> (that object, capsule of its label) */

static PyObject *make_label(PyObject *method)
{
    PyObject *module = PyImport_ImportModule("tenon._place");
    PyObject *place = module ? PyObject_CallMethod(module, "of", "O", method) : NULL;
    PyObject *capsule = NULL;
    const char *name, *file;
    int line;
    tn_call_label *label;
    if (place && PyArg_ParseTuple(place, "ssi", &name, &file, &line)) {
        if (tn_call_label_new(name, file, line, &label) != TN_OK)
            tn_clear_error();
        else if (!(capsule = PyCapsule_New(label, NULL, NULL)))
            tn_call_label_free(label);
    }
    Py_XDECREF(module);
    Py_XDECREF(place);
    return capsule;
}

/* The label of @p method, whose code is @p code; NULL: none. */
static const tn_call_label *label_of(PyObject *code, PyObject *method)
{
    PyObject *key = PyLong_FromVoidPtr(code);
    PyObject *known = key ? PyDict_GetItemWithError(labels, key) : NULL;
    if (key && !known && !PyErr_Occurred() && PyDict_Size(labels) < MOST_LABELS) {
        PyObject *capsule = make_label(method);
        PyObject *pair = capsule ? PyTuple_Pack(2, code, capsule) : NULL;
        if (pair && PyDict_SetItem(labels, key, pair) == 0)
            known = pair; /* the dict has it */
        else if (capsule)
            tn_call_label_free(PyCapsule_GetPointer(capsule, NULL));
        Py_XDECREF(capsule);
        Py_XDECREF(pair);
    }
    Py_XDECREF(key);
    return known ? PyCapsule_GetPointer(PyTuple_GetItem(known, 1), NULL) : NULL;
}

/* Say who answers @p call. What cannot be found out is not said. */
static void show(tn_call *call, PyObject *method)
{
    PyObject *function = PyObject_GetAttrString(method, "__func__");
    PyObject *code = function ? PyObject_GetAttrString(function, "__code__") : NULL;
    if (code && (labels || (labels = PyDict_New())))
        tn_call_set_label(call, label_of(code, method));
    PyErr_Clear();
    Py_XDECREF(function);
    Py_XDECREF(code);
}

static PyObject *ask(tn_call *call, PyObject *who, PyObject *func, PyObject *types, PyObject *args,
                     PyObject *kwargs)
{
    PyObject *method = PyObject_GetAttr(who, str_torch_dispatch);
    if (!method)
        return NULL;
    show(call, method);
    PyObject *result = PyObject_CallFunctionObjArgs(method, func, types, args, kwargs, NULL);
    Py_DECREF(method);
    return result;
}

static tn_status answer_mode(void *ctx, tn_call *call, const tn_value *args, tn_value *rets);

static int push_mode(PyObject *mode)
{
    tnpy_held *held = tnpy_hold(mode);
    tn_call_mode *made;
    if (!held)
        return -1;
    tn_status st = tn_call_mode_new(answer_mode, held, tnpy_drop_any, &made);
    if (st != TN_OK) {
        tnpy_drop(held);
    } else {
        st = tn_call_mode_push(made);
        tn_call_mode_unref(made);
    }
    if (st != TN_OK)
        tnpy_raise(st);
    return st == TN_OK ? 0 : -1;
}

/* A mode that leaves a call to the classes of its arguments is on while they answer: it sees what
 * they are made of. */
static PyObject *ask_classes(tn_call *call, PyObject *mode, PyObject *list, PyObject *func,
                             PyObject *types, PyObject *args, PyObject *kwargs)
{
    if (mode && push_mode(mode) < 0)
        return NULL;
    PyObject *result = Py_NewRef(Py_NotImplemented);
    Py_ssize_t n = PyList_Size(list);
    for (Py_ssize_t i = 0; i < n && result == Py_NotImplemented; i++) {
        Py_DECREF(result);
        result = ask(call, (PyObject *)Py_TYPE(PyList_GetItem(list, i)), func, types, args, kwargs);
    }
    if (mode)
        tn_call_mode_unref(tn_call_mode_pop());
    return result;
}

/* @p mode may be NULL. */
static PyObject *ask_all(tn_call *call, PyObject *mode, PyObject *func, PyObject *args,
                         PyObject *kwargs)
{
    PyObject *list = tnpy_handlers(args, kwargs, is_asked),
             *types = list ? tnpy_types_of(list) : NULL;
    PyObject *result = !types ? NULL
                       : mode ? ask(call, mode, func, types, args, kwargs)
                              : Py_NewRef(Py_NotImplemented);
    Py_ssize_t n = types ? PyList_Size(list) : 0;
    if (n && result == Py_NotImplemented) {
        Py_DECREF(result);
        result = ask_classes(call, mode, list, func, types, args, kwargs);
    }
    if (result == Py_NotImplemented) {
        Py_CLEAR(result);
        PyObject *asked = PyObject_Repr(mode && !n ? mode : types);
        if (asked)
            PyErr_Format(
                PyExc_TypeError,
                "Multiple dispatch failed for '%s._ops.%S'; all __torch_dispatch__ handlers "
                "returned NotImplemented:\n\n  - %U",
                tnpy_module_name(), func, asked);
        Py_XDECREF(asked);
    }
    Py_XDECREF(list);
    Py_XDECREF(types);
    return result;
}

static tn_status answer(PyObject *mode, tn_call *call, const tn_value *args, tn_value *rets)
{
    tnpy_operator *o = tnpy_operator_of(tn_call_op(call));
    PyObject *tuple = NULL, *kwargs = NULL, *result = NULL;
    if (o && tnpy_arguments_to_python(o, args, &tuple, &kwargs) == 0)
        result = ask_all(call, mode, o->overload, tuple, kwargs);
    tn_status st = result ? tnpy_results_of(o, result, rets) : tnpy_failed();
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    Py_XDECREF(result);
    return st;
}

static tn_status answer_mode(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    PyGILState_STATE lock = tnpy_lock_any();
    PyObject *mode = Py_NewRef(((tnpy_held *)ctx)->object);
    tn_status st = answer(mode, call, args, rets);
    Py_DECREF(mode);
    tnpy_unlock_any(lock);
    return st;
}

static tn_status answer_tensor(void *ctx, tn_call *call, const tn_value *args, tn_value *rets)
{
    (void)ctx;
    PyGILState_STATE lock = tnpy_lock_any();
    tn_status st = answer(NULL, call, args, rets);
    tnpy_unlock_any(lock);
    return st;
}

/* ---- the stack, for Python ---- */

static PyObject *push(PyObject *self, PyObject *mode)
{
    (void)self;
    return push_mode(mode) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *object_of(tn_call_mode *mode)
{
    tnpy_held *held = tn_call_mode_context(mode);
    return Py_NewRef(held ? held->object : Py_None);
}

static PyObject *pop(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    tn_call_mode *mode = tn_call_mode_pop();
    if (!mode) {
        PyErr_SetString(PyExc_RuntimeError, "no dispatch mode is on");
        return NULL;
    }
    PyObject *o = object_of(mode);
    tn_call_mode_unref(mode);
    return o;
}

static PyObject *length(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyLong_FromLong(tn_call_mode_count());
}

static PyObject *at(PyObject *self, PyObject *index)
{
    (void)self;
    int64_t i;
    if (tnpy_int_of(index, &i))
        return NULL;
    tn_call_mode *mode = i >= 0 && i < 1 << 20 ? tn_call_mode_at((int)i) : NULL;
    if (!mode) {
        PyErr_SetString(PyExc_IndexError, "there is no such mode");
        return NULL;
    }
    return object_of(mode);
}

static const char modes_guard[] = "tenon.call_modes_guard";

static PyObject *switch_off(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    void *room;
    PyObject *capsule = tnpy_guard_new(modes_guard, sizeof(tn_call_modes_guard), &room);
    if (capsule)
        *(tn_call_modes_guard *)room = tn_call_modes_off();
    return capsule;
}

static PyObject *restore(PyObject *self, PyObject *capsule)
{
    (void)self;
    tn_call_modes_guard *guard = PyCapsule_GetPointer(capsule, modes_guard);
    if (!guard)
        return NULL;
    tn_call_modes_restore(*guard);
    return Py_NewRef(Py_None);
}

/* No mode and no class is asked: the key Python is excluded. A guard, for the other. */
static PyObject *no_dispatch_enter(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_PYTHON));
    PyObject *o =
        Py_BuildValue("KK", (unsigned long long)guard.included, (unsigned long long)guard.excluded);
    if (!o)
        tn_keys_restore(guard);
    return o;
}

static PyObject *no_dispatch_leave(PyObject *self, PyObject *o)
{
    (void)self;
    unsigned long long included, excluded;
    if (!PyArg_ParseTuple(o, "KK", &included, &excluded))
        return NULL;
    tn_keys_restore((tn_key_guard){included, excluded});
    return Py_NewRef(Py_None);
}

/* ---- shells: Tensor._make_wrapper_subclass ---- */

enum { MAX_DIMS = 64 };

static PyObject *make_wrapper(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    static char *names[] = {"cls",
                            "size",
                            "strides",
                            "storage_offset",
                            "memory_format",
                            "dtype",
                            "layout",
                            "device",
                            "pin_memory",
                            "requires_grad",
                            "dispatch_sizes_strides_policy",
                            "dispatch_device",
                            "dispatch_layout",
                            NULL};
    PyObject *cls, *size, *strides = Py_None, *offset = NULL, *format = NULL, *dtype = Py_None,
                          *layout = NULL, *device = Py_None, *pin = NULL, *policy = NULL;
    int grad = 0, ignored[2];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OOOOOOOpOpp:_make_wrapper_subclass", names,
                                     &cls, &size, &strides, &offset, &format, &dtype, &layout,
                                     &device, &pin, &grad, &policy, &ignored[0], &ignored[1]))
        return NULL;
    if (tnpy_check_subclass(cls))
        return NULL;
    if (!tnpy_type_dispatches((PyTypeObject *)cls)) {
        PyObject *text = PyType_GetName((PyTypeObject *)cls);
        PyErr_Format(PyExc_TypeError, "%U must define __torch_dispatch__", text ? text : cls);
        Py_XDECREF(text);
        return NULL;
    }
    int64_t sizes[MAX_DIMS], steps[MAX_DIMS];
    int n = tnpy_ints_of(size, sizes, MAX_DIMS);
    int n_steps = n < 0 || strides == Py_None ? n : tnpy_ints_of(strides, steps, MAX_DIMS);
    if (n < 0 || n_steps < 0)
        return NULL;
    if (n_steps != n) {
        PyErr_SetString(PyExc_ValueError, "size and strides must be of the same length");
        return NULL;
    }
    tn_dtype d = tn_default_dtype();
    tn_device where = TN_CPU;
    if ((dtype != Py_None && tnpy_dtype_of(dtype, &d)) ||
        (device != Py_None && tnpy_device_of(device, &where)))
        return NULL;
    tn_tensor *t;
    tn_status st = tn_tensor_new_shell(n, sizes, strides == Py_None ? NULL : steps, d, where, &t);
    if (st != TN_OK)
        return tnpy_raise(st);
    if (grad && (st = tn_tensor_set_requires_grad(t, true)) != TN_OK) {
        tn_tensor_unref(t);
        return tnpy_raise(st);
    }
    return tnpy_wrap_as((PyTypeObject *)cls, t);
}

/* Tensor.__torch_dispatch__: what is asked nothing. */
static PyObject *run_disabled(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    static char *names[] = {"func", "types", "args", "kwargs", NULL};
    PyObject *func, *types, *a = NULL, *k = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:__torch_dispatch__", names, &func, &types,
                                     &a, &k))
        return NULL;
    PyObject *tuple = a ? PySequence_Tuple(a) : PyTuple_New(0);
    tn_key_guard guard = tn_exclude_keys(tn_keyset_of(TN_KEY_PYTHON));
    PyObject *result = tuple ? PyObject_Call(func, tuple, k == Py_None ? NULL : k) : NULL;
    tn_keys_restore(guard);
    Py_XDECREF(tuple);
    return result;
}

static PyMethodDef disabled_def = {
    "_disabled_torch_dispatch_impl", (PyCFunction)(void (*)(void))run_disabled,
    METH_VARARGS | METH_KEYWORDS, "For a class: its tensors are treated as plain ones."};
static PyMethodDef wrapper_def = {
    "_make_wrapper_subclass", (PyCFunction)(void (*)(void))make_wrapper,
    METH_VARARGS | METH_KEYWORDS,
    "_make_wrapper_subclass(cls, size, *, strides=None, dtype=None, device=None, "
    "requires_grad=False)\n\nA tensor of the class with this metadata and no memory."};

static PyMethodDef functions[] = {
    {"_push_on_torch_dispatch_stack", push, METH_O, NULL},
    {"_pop_torch_dispatch_stack", pop, METH_NOARGS, NULL},
    {"_len_torch_dispatch_stack", length, METH_NOARGS, NULL},
    {"_get_dispatch_stack_at", at, METH_O, NULL},
    {"_no_dispatch_enter", no_dispatch_enter, METH_NOARGS, NULL},
    {"_no_dispatch_leave", no_dispatch_leave, METH_O, NULL},
    {"_modes_off", switch_off, METH_NOARGS, NULL},
    {"_modes_restore", restore, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

/* Calls with tensors of such classes come here; told to the library when the first is made. */
int tnpy_handle(tn_tensor *t)
{
    static bool told;
    tn_status st = told ? TN_OK : tn_set_tensor_handler(answer_tensor, NULL);
    told = told || st == TN_OK;
    if (st == TN_OK)
        st = tn_tensor_set_handled(t, true);
    if (st != TN_OK)
        tnpy_raise(st);
    return st == TN_OK ? 0 : -1;
}

int tnpy_add_dispatch(PyObject *module)
{
    PyObject *tensor = (PyObject *)tnpy_Tensor;
    disabled_impl = PyCFunction_NewEx(&disabled_def, NULL, NULL);
    PyObject *wrapper = PyCFunction_NewEx(&wrapper_def, NULL, NULL);
    int failed = !disabled_impl || !wrapper ||
                 PyModule_AddObjectRef(module, disabled_def.ml_name, disabled_impl) ||
                 PyObject_SetAttrString(tensor, "__torch_dispatch__", disabled_impl) ||
                 PyObject_SetAttrString(tensor, wrapper_def.ml_name, wrapper);
    Py_XDECREF(wrapper);
    if (failed || !(str_torch_dispatch = PyUnicode_InternFromString("__torch_dispatch__")))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
