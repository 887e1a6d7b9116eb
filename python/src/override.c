/* SPDX-License-Identifier: MIT */
/* override.c: __torch_function__: the innermost mode first, then arguments whose classes override
 * it, those of a subclass before those of its base, otherwise from the left. */
#include "override.h"

#include <string.h>

_Thread_local int tnpy_function_off;

PyObject *tnpy_disabled_impl;
static PyObject *str_torch_function;

/* ---- who overrides ---- */

enum { UNKNOWN = -1 }; /* it could not be looked up just now: the call itself will say why */

static int kind_of(PyObject *whose)
{
    PyObject *own = PyObject_GetAttr(whose, str_torch_function);
    if (!own) {
        int none =
            PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_MemoryError);
        PyErr_Clear();
        return none ? TNPY_PLAIN : UNKNOWN;
    }
    int kind = TNPY_CUSTOM;
    if (own == tnpy_disabled_impl)
        kind = TNPY_PLAIN;
    else if (PyObject_TypeCheck(own, &PyCFunction_Type) &&
             PyCFunction_GetFunction(own) == (PyCFunction)(void (*)(void))tnpy_keep_class)
        kind = TNPY_KEEPS;
    Py_DECREF(own);
    return kind;
}

int tnpy_overrides_slow(tnpy_tensor_object *o)
{
    PyTypeObject *type = Py_TYPE((PyObject *)o);
    int kind = kind_of((PyObject *)type);
    if (kind == UNKNOWN)
        return TNPY_CUSTOM;
    o->overrides = (uint8_t)kind;
    o->looked = type;
    return o->overrides;
}

int tnpy_has_torch_function(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyUnicode_Type ||
        type == &PyTuple_Type || type == &PyList_Type || type == &PyBool_Type ||
        type == &PyDict_Type || type == &PyComplex_Type || type == &PySlice_Type ||
        type == &PyBytes_Type || type == &PySet_Type || type == &PyFrozenSet_Type ||
        type == &PyModule_Type || o == Py_None || o == Py_Ellipsis || o == Py_NotImplemented ||
        tnpy_is_dtype(o) || tnpy_is_device(o) || tnpy_is_format(o) || tnpy_is_numpy_scalar(o))
        return 0;
    return kind_of(o) != TNPY_PLAIN;
}

/* Nobody is while classes are not asked: a mode is not told of them then. */
static int overriding(PyObject *o)
{
    if (tnpy_function_off)
        return 0;
    return tnpy_is_tensor(o) ? tnpy_overrides(o) : tnpy_has_torch_function(o);
}

/* What a function in Python is asked with: a plain tensor is one of the classes, too. */
static int taking_part(PyObject *o)
{
    return overriding(o) || (Py_TYPE(o) == tnpy_Tensor && !tnpy_function_off);
}

/* What an argument counts as: its class, and a class itself. */
static PyTypeObject *class_of(PyObject *o)
{
    return PyType_Check(o) ? (PyTypeObject *)o : Py_TYPE(o);
}

/* Add @p o to the list, before the first whose class is a base of its own; once a class. */
static int add(PyObject *list, PyObject *o)
{
    Py_ssize_t n = PyList_Size(list), at = n;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTypeObject *other = class_of(PyList_GetItem(list, i));
        if (other == class_of(o))
            return 0;
        if (at == n && PyType_IsSubtype(class_of(o), other))
            at = i;
    }
    return PyList_Insert(list, at, o);
}

static int note(PyObject *list, PyObject *o, int (*asked)(PyObject *))
{
    return asked(o) ? add(list, o) : 0;
}

static int note_any(PyObject *list, PyObject *o, int (*asked)(PyObject *))
{
    if (!PyTuple_Check(o) && !PyList_Check(o))
        return note(list, o, asked);
    Py_ssize_t n = PySequence_Size(o);
    if (n < 0)
        return -1; /* a class of its own */
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(o, i);
        int failed = item ? note(list, item, asked) : -1;
        Py_XDECREF(item);
        if (failed)
            return -1;
    }
    return 0;
}

PyObject *tnpy_handlers(PyObject *args, PyObject *kwargs, int (*asked)(PyObject *))
{
    PyObject *list = PyList_New(0);
    Py_ssize_t n = PyTuple_Size(args), at = 0;
    for (Py_ssize_t i = 0; list && i < n; i++)
        if (note_any(list, PyTuple_GetItem(args, i), asked))
            Py_CLEAR(list);
    PyObject *name, *value;
    while (list && kwargs && PyDict_Next(kwargs, &at, &name, &value))
        if (note_any(list, value, asked))
            Py_CLEAR(list);
    return list;
}

static bool is_stranger(PyObject *o)
{
    return Py_TYPE(o) != tnpy_Tensor && !PyLong_Check(o) && !PyUnicode_Check(o) &&
           !tnpy_function_off && !tnpy_is_tensor(o) && tnpy_has_torch_function(o);
}

bool tnpy_stranger_in(PyObject *const *args, int n)
{
    for (int i = 0; i < n; i++)
        if (TNPY_UNLIKELY(args[i] != NULL) && is_stranger(args[i]))
            return true;
    return false;
}

bool tnpy_stranger_among_slow(PyObject *args, PyObject *kwargs)
{
    PyObject *name, *value;
    Py_ssize_t n = args ? PyTuple_Size(args) : 0, at = 0;
    for (Py_ssize_t i = 0; i < n; i++)
        if (is_stranger(PyTuple_GetItem(args, i)))
            return true;
    while (kwargs && PyDict_Next(kwargs, &at, &name, &value))
        if (is_stranger(value))
            return true;
    return false;
}

/* ---- asking ---- */

/* @p kwargs may be NULL: then it is not given at all. */
static PyObject *ask(PyObject *who, PyObject *func, PyObject *types, PyObject *args,
                     PyObject *kwargs)
{
    PyObject *method = PyObject_GetAttr(who, str_torch_function);
    if (!method)
        return NULL;
    PyObject *all = PyTuple_Pack(kwargs ? 4 : 3, func, types, args, kwargs);
    PyObject *result = all ? tnpy_call_user(method, all) : NULL;
    Py_XDECREF(all);
    Py_DECREF(method);
    return result;
}

/* -1 where a mode's __torch_function__ is a class method, which would get everything but the mode.
 */
static int refuse_class_method(PyObject *mode)
{
    PyObject *method = PyObject_GetAttr(mode, str_torch_function);
    PyObject *bound = method ? PyObject_GetAttrString(method, "__self__") : NULL;
    PyErr_Clear(); /* what has no such attribute is called, and says itself what is wrong */
    int is_class = bound == (PyObject *)Py_TYPE(mode);
    Py_XDECREF(bound);
    Py_XDECREF(method);
    if (is_class)
        PyErr_SetString(
            PyExc_RuntimeError,
            "Defining your mode's `__torch_function__` as a classmethod is not supported, please "
            "make it a plain method");
    return -is_class;
}

/* The innermost mode, with itself off. */
static PyObject *ask_mode(PyObject *func, PyObject *types, PyObject *args, PyObject *kwargs)
{
    PyObject *mode = tnpy_mode_off();
    if (!mode)
        return NULL;
    PyObject *result = refuse_class_method(mode) ? NULL : ask(mode, func, types, args, kwargs);
    if (tnpy_mode_on_again(mode))
        Py_CLEAR(result);
    Py_DECREF(mode);
    return result;
}

PyObject *tnpy_types_of(PyObject *list)
{
    Py_ssize_t n = PyList_Size(list);
    PyObject *types = PyTuple_New(n);
    for (Py_ssize_t i = 0; types && i < n; i++)
        PyTuple_SetItem(types, i, Py_NewRef((PyObject *)class_of(PyList_GetItem(list, i))));
    return types;
}

/* A function of C as a user writes it, "torch.add"; others as they say themselves. */
static PyObject *shown_name(PyObject *func)
{
    if (!PyCFunction_Check(func))
        return PyObject_Str(func);
    PyObject *name = PyObject_GetAttrString(func, "__name__");
    PyObject *text = name ? PyUnicode_FromFormat("torch.%U", name) : NULL;
    Py_XDECREF(name);
    return text;
}

/* A line for each class that was asked. */
static PyObject *asked_lines(PyObject *types)
{
    PyObject *text = PyUnicode_FromString("");
    Py_ssize_t n = PyTuple_Size(types);
    for (Py_ssize_t i = 0; text && i < n; i++) {
        PyObject *longer =
            PyUnicode_FromFormat("%U  - tensor subclass %S\n", text, PyTuple_GetItem(types, i));
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

static PyObject *nobody(PyObject *func, PyObject *types)
{
    PyObject *name = shown_name(func), *lines = name ? asked_lines(types) : NULL;
    if (lines)
        PyErr_Format(PyExc_TypeError,
                     "Multiple dispatch failed for '%U'; all __torch_function__ handlers returned "
                     "NotImplemented:\n\n%U\nFor more information, try re-running with "
                     "TORCH_LOGS=not_implemented",
                     name, lines);
    Py_XDECREF(name);
    Py_XDECREF(lines);
    return NULL;
}

/* The same of a function of Python's. */
static PyObject *nobody_in_python(PyObject *func, PyObject *types)
{
    PyObject *module = PyObject_GetAttrString(func, "__module__");
    PyObject *name = module ? PyObject_GetAttrString(func, "__name__") : NULL;
    PyObject *list = name ? PySequence_List(types) : NULL;
    if (list)
        PyErr_Format(PyExc_TypeError,
                     "no implementation found for '%S.%S' on types that implement "
                     "__torch_function__: %R",
                     module, name, list);
    Py_XDECREF(module);
    Py_XDECREF(name);
    Py_XDECREF(list);
    return NULL;
}

static PyObject *ask_all(PyObject *func, PyObject *list, PyObject *types, PyObject *args,
                         PyObject *kwargs, bool of_python)
{
    if (tnpy_any_mode() && tnpy_function_off < 2) { /* a device, too, gives it and steps aside */
        PyObject *result = ask_mode(func, types, args, kwargs);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    Py_ssize_t n = tnpy_function_off ? 0 : PyList_Size(list);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *result = ask(PyList_GetItem(list, i), func, types, args, kwargs);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    return of_python ? nobody_in_python(func, types) : nobody(func, types);
}

/* Takes the list of who is asked. */
static PyObject *call_as(PyObject *func, PyObject *list, PyObject *args, PyObject *kwargs,
                         bool of_python)
{
    PyObject *types = list ? tnpy_types_of(list) : NULL;
    PyObject *result = types ? ask_all(func, list, types, args, kwargs, of_python) : NULL;
    Py_XDECREF(list);
    Py_XDECREF(types);
    return result;
}

static PyObject *call_of(PyObject *func, PyObject *list, PyObject *args, PyObject *kwargs)
{
    return call_as(func, list, args, kwargs, false);
}

PyObject *tnpy_override_call(PyObject *func, PyObject *args, PyObject *kwargs)
{
    if (kwargs && PyDict_Size(kwargs) == 0)
        kwargs = NULL; /* as torch: not given at all */
    return call_of(func, tnpy_handlers(args, kwargs, overriding), args, kwargs);
}

PyObject *tnpy_override_among(PyObject *func, PyObject *relevant, PyObject *args)
{
    return call_of(func, tnpy_handlers(relevant, NULL, overriding), args, NULL);
}

/* Note [Who has no arguments]
 * Where there is nothing but `self` to look at, methods and attributes do not look: its class is
 * told to a mode even if it is Tensor. Where there are arguments, those that are asked are told. */
PyObject *tnpy_override_self(PyObject *func, PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *list = PyList_New(0);
    if (list && PyList_Append(list, self))
        Py_CLEAR(list);
    return call_of(func, list, args, kwargs);
}

/* ---- functions that are Python's in PyTorch ---- */

/* Whether arguments of this function are told in one form, however they are given. */
static bool has_form(const char *name)
{
    static const char *const names[] = {
        "split", "norm",  "unflatten", "unique",   "unique_consecutive",
        "stft",  "istft", "__repr__",  "__array__"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static PyObject *override_first(PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *first = PyTuple_GetSlice(args, 0, 1);
    PyObject *result =
        first ? call_as(func, tnpy_handlers(first, NULL, taking_part), args, kwargs, true) : NULL;
    Py_XDECREF(first);
    return result;
}

/* A call in that form, of which the first argument is asked; @p kwargs may be NULL. */
static PyObject *override_in_form(const char *name, PyObject *func, PyObject *args,
                                  PyObject *kwargs)
{
    PyObject *given = kwargs ? Py_NewRef(kwargs) : PyDict_New(), *result = NULL;
    PyObject *module = given ? PyImport_ImportModule("tenon._asking") : NULL;
    PyObject *form =
        module ? PyObject_CallMethod(module, "in_one_form", "sOO", name, args, given) : NULL;
    PyObject *words = given;
    if (form && (form == Py_None ||
                 PyArg_ParseTuple(form, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &words)))
        result = override_first(func, args, words);
    Py_XDECREF(form);
    Py_XDECREF(module);
    Py_XDECREF(given);
    return result;
}

/* ---- calls of generated functions ---- */

/* What overrides get as `func`: tenon.add, or Tensor.add. */
static PyObject *function_of(tnpy_entry *e)
{
    if (e->function)
        return e->function;
    PyObject *module =
        e->method ? Py_NewRef((PyObject *)tnpy_Tensor) : PyImport_ImportModule("tenon");
    e->function = module ? PyObject_GetAttrString(module, e->name) : NULL;
    if (!e->function && module && !e->method) { /* one that tenon itself does not show */
        PyErr_Clear();
        PyObject *nn = PyImport_ImportModule("tenon._C");
        PyObject *all = nn ? PyObject_GetAttrString(nn, "_nn") : NULL;
        e->function = all ? PyObject_GetAttrString(all, e->name) : NULL;
        Py_XDECREF(all);
        Py_XDECREF(nn);
    }
    Py_XDECREF(module);
    return e->function;
}

static PyObject *first_of(PyObject *tuple)
{
    return PyTuple_Size(tuple) ? PyTuple_GetItem(tuple, 0) : NULL;
}

/* Takes the list of who is asked; NULL: all arguments are. */
static PyObject *override_with(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                               PyObject *kwnames, PyObject *list)
{
    PyObject *func = function_of(e);
    if (!func) {
        Py_XDECREF(list);
        return NULL;
    }
    int first = self != NULL;
    Py_ssize_t n_keywords = kwnames ? PyTuple_Size(kwnames) : 0;
    PyObject *tuple = PyTuple_New(n + first), *kwargs = PyDict_New(), *result = NULL;
    if (!tuple || !kwargs)
        goto out;
    if (first)
        PyTuple_SetItem(tuple, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < n; i++)
        PyTuple_SetItem(tuple, i + first, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; i < n_keywords; i++)
        if (PyDict_SetItem(kwargs, PyTuple_GetItem(kwnames, i), args[n + i]))
            goto out;
    bool of_first = !list || PyList_Size(list) == 0 || PyList_GetItem(list, 0) == first_of(tuple);
    result = of_first && has_form(e->name) ? override_in_form(e->name, func, tuple, kwargs)
             : list ? call_of(func, Py_NewRef(list), tuple, n_keywords ? kwargs : NULL)
                    : tnpy_override_call(func, tuple, kwargs);
out:
    Py_XDECREF(tuple);
    Py_XDECREF(kwargs);
    Py_XDECREF(list);
    return result;
}

PyObject *tnpy_override(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                        PyObject *kwnames)
{
    return override_with(e, self, args, n, kwnames, NULL);
}

PyObject *tnpy_override_by(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                           PyObject *kwnames, PyObject *const *asking, int n_asking)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n_asking; i++)
        if (add(list, asking[i]))
            Py_CLEAR(list);
    return list ? override_with(e, self, args, n, kwnames, list) : NULL;
}

/* ---- calls of operators ---- */

/* An argument of an operator: itself, and in a sequence those before the first that is no tensor.
 * 1: somebody is asked, who is added to the list, if there is one; -1: an exception. */
static int note_operand(PyObject *list, PyObject *o)
{
    int found = overriding(o) != 0;
    if (found && (!list || add(list, o)))
        return list ? -1 : 1;
    if (!PyTuple_Check(o) && !PyList_Check(o))
        return found;
    bool tuple = PyTuple_Check(o); /* whatever __len__ it has */
    for (Py_ssize_t i = 0; i < (tuple ? PyTuple_Size(o) : PyList_Size(o)); i++) {
        PyObject *item = tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i);
        if (!item)
            return -1;
        if (overriding(item)) {
            found = 1;
            if (!list || add(list, item))
                return list ? -1 : 1;
        } else if (!tnpy_is_tensor(item)) {
            break;
        }
    }
    return found;
}

bool tnpy_operator_asks(PyObject *args)
{
    if (TNPY_UNLIKELY(tnpy_function_modes != 0) && tnpy_function_off < 2)
        return true;
    Py_ssize_t n = tnpy_function_off ? 0 : PyTuple_Size(args);
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *o = PyTuple_GetItem(args, i);
        if (Py_TYPE(o) != tnpy_Tensor && !PyLong_CheckExact(o) && note_operand(NULL, o))
            return true;
    }
    return false;
}

PyObject *tnpy_override_operator(PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *list = PyList_New(0), *name, *value;
    Py_ssize_t n = PyTuple_Size(args), at = 0;
    for (Py_ssize_t i = 0; list && i < n; i++)
        if (note_operand(list, PyTuple_GetItem(args, i)) < 0)
            Py_CLEAR(list);
    while (list && PyDict_Next(kwargs, &at, &name, &value))
        if (note_operand(list, value) < 0)
            Py_CLEAR(list);
    return list ? call_of(func, list, args, kwargs) : NULL;
}

/* ---- methods and attributes written by hand ---- */

/* Methods that are functions of Python's in torch: these give keywords to whom they ask even where
 * there are none, and count plain tensors among the types. */
static bool is_of_python(const char *name)
{
    static const char *const names[] = {"__rsub__",      "__rtruediv__",
                                        "__floordiv__",  "__rfloordiv__",
                                        "__rmod__",      "__rlshift__",
                                        "__rrshift__",   "__pow__",
                                        "__ipow__",      "__rpow__",
                                        "__rmatmul__",   "__len__",
                                        "__contains__",  "__deepcopy__",
                                        "__reduce_ex__", "__reversed__",
                                        "__format__",    "__repr__",
                                        "__setstate__",  "__array__",
                                        "__dlpack__",    "__dlpack_device__",
                                        "align_to",      "backward",
                                        "dim_order",     "is_shared",
                                        "module_load",   "refine_names",
                                        "register_hook", "register_post_accumulate_grad_hook",
                                        "rename",        "rename_",
                                        "resize",        "resize_as",
                                        "share_memory_", "storage",
                                        "storage_type",  "unflatten"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* Methods whose arguments are not looked at; see Note [Who has no arguments]. */
static bool asks_self_alone(const char *name)
{
    return strcmp(name, "new") == 0 || strcmp(name, "new_tensor") == 0 ||
           strcmp(name, "apply_") == 0 || strcmp(name, "get_device") == 0 ||
           strcmp(name, "untyped_storage") == 0;
}

static PyObject *method_of_python(PyObject *func, PyObject *args, PyObject *kwargs)
{
    PyObject *given = kwargs ? Py_NewRef(kwargs) : PyDict_New();
    PyObject *result =
        given ? call_as(func, tnpy_handlers(args, given, taking_part), args, given, true) : NULL;
    Py_XDECREF(given);
    return result;
}

PyObject *tnpy_override_method(PyObject *self, const char *name, PyObject *args, PyObject *kwargs)
{
    PyObject *func = PyObject_GetAttrString((PyObject *)tnpy_Tensor, name);
    Py_ssize_t n = args ? PyTuple_Size(args) : 0;
    PyObject *all = func ? PyTuple_New(n + 1) : NULL, *result = NULL;
    if (all) {
        PyTuple_SetItem(all, 0, Py_NewRef(self));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(args, i)));
        result = has_form(name)       ? override_in_form(name, func, all, kwargs)
                 : is_of_python(name) ? method_of_python(func, all, kwargs)
                 : (args || kwargs) && !asks_self_alone(name)
                     ? tnpy_override_call(func, all, kwargs)
                     : tnpy_override_self(func, self, all, kwargs);
    }
    Py_XDECREF(all);
    Py_XDECREF(func);
    return result;
}

static PyObject *attribute(PyObject *self, const char *name, const char *what, PyObject *value)
{
    PyObject *descriptor = PyObject_GetAttrString((PyObject *)tnpy_Tensor, name);
    PyObject *func = descriptor ? PyObject_GetAttrString(descriptor, what) : NULL;
    PyObject *args = func ? value ? PyTuple_Pack(2, self, value) : PyTuple_Pack(1, self) : NULL;
    PyObject *result = args ? tnpy_override_self(func, self, args, NULL) : NULL;
    Py_XDECREF(descriptor);
    Py_XDECREF(func);
    Py_XDECREF(args);
    return result;
}

PyObject *tnpy_override_get(PyObject *self, const char *name)
{
    return attribute(self, name, "__get__", NULL);
}

int tnpy_override_set(PyObject *self, const char *name, PyObject *value)
{
    PyObject *result = attribute(self, name, value ? "__set__" : "__delete__", value);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

/* ---- for Python: questions ---- */

static PyObject *is_enabled(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyBool_FromLong(tnpy_function_off == 0);
}

static PyObject *is_all_disabled(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return PyBool_FromLong(tnpy_function_off == 2);
}

static bool any_overrides(PyObject *o)
{
    return tnpy_function_off == 0 && overriding(o);
}

/* _has_torch_function(args): one of a sequence; a mode counts. */
static PyObject *has_torch_function(PyObject *self, PyObject *args)
{
    (void)self;
    bool found = tnpy_function_modes && tnpy_function_off < 2;
    Py_ssize_t n = PySequence_Size(args);
    if (n < 0) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_SetString(PyExc_TypeError, "expected a sequence");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < n && !found; i++) {
        PyObject *item = PySequence_GetItem(args, i);
        if (!item)
            return NULL;
        found = any_overrides(item);
        Py_DECREF(item);
    }
    return PyBool_FromLong(found);
}

static PyObject *has_torch_function_unary(PyObject *self, PyObject *o)
{
    (void)self;
    return PyBool_FromLong((tnpy_function_modes && tnpy_function_off < 2) || any_overrides(o));
}

static PyObject *has_torch_function_variadic(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)self;
    bool found = tnpy_function_modes && tnpy_function_off < 2;
    for (Py_ssize_t i = 0; i < n && !found; i++)
        found = any_overrides(args[i]);
    return PyBool_FromLong(found);
}

/* _override_call(func, args, kwargs); with `relevant`, what handle_torch_function does: these are
   asked, whatever the arguments are, and keyword arguments are always given. */
static PyObject *override_call(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *func, *a, *k = NULL, *relevant = NULL;
    if (!PyArg_ParseTuple(args, "OO!|O!O!:_override_call", &func, &PyTuple_Type, &a, &PyDict_Type,
                          &k, &PyTuple_Type, &relevant))
        return NULL;
    if (!relevant)
        return tnpy_override_call(func, a, k);
    return call_as(func, tnpy_handlers(relevant, NULL, taking_part), a, k, true);
}

static PyMethodDef disabled_def = {
    "_disabled_torch_function_impl", (PyCFunction)(void (*)(void))tnpy_run_disabled,
    METH_VARARGS | METH_KEYWORDS,
    "For a class: its tensors are treated as plain ones, and results are plain."};
static PyMethodDef functions[] = {
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, NULL},
    {"_is_torch_function_all_disabled", is_all_disabled, METH_NOARGS, NULL},
    {"_has_torch_function", has_torch_function, METH_O, "_has_torch_function(args) -> bool"},
    {"_has_torch_function_unary", has_torch_function_unary, METH_O,
     "_has_torch_function_unary(arg) -> bool"},
    {"_has_torch_function_variadic", (PyCFunction)(void (*)(void))has_torch_function_variadic,
     METH_FASTCALL, "_has_torch_function_variadic(*args) -> bool"},
    {"_override_call", override_call, METH_VARARGS,
     "_override_call(func, args, kwargs={}, relevant=args)\n\nAsk modes and arguments."},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_override(PyObject *module)
{
    str_torch_function = PyUnicode_InternFromString("__torch_function__");
    tnpy_disabled_impl = PyCFunction_NewEx(&disabled_def, NULL, NULL);
    if (!str_torch_function || !tnpy_disabled_impl ||
        PyModule_AddObjectRef(module, disabled_def.ml_name, tnpy_disabled_impl))
        return -1;
    if (tnpy_add_keep_class(module) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
