/* SPDX-License-Identifier: MIT */
/* hooks.c: Python functions as hooks of tensors and nodes, and as saved-tensor hooks. A hook takes
 * the interpreter lock for its call; its exception ends the pass and comes out of it as it was. */
#include "grad.h"
#include "override.h"

#include <string.h>

/* The Python function of a hook. */
static PyObject *function_of(const void *ctx)
{
    return ((const tnpy_held *)ctx)->object;
}

/* ---- handles ---- */

typedef struct handle_object {
    PyObject_HEAD tn_hook *hook; /* NULL once it was removed */
    uint64_t id;
} handle_object;

static PyTypeObject *Handle;
static uint64_t last_id;

PyObject *tnpy_hook_handle(tn_hook *hook)
{
    handle_object *o = (handle_object *)PyType_GenericAlloc(Handle, 0);
    if (!o) {
        tn_hook_remove(hook);
        return NULL;
    }
    o->hook = hook;
    o->id = last_id++;
    return (PyObject *)o;
}

static void handle_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tn_hook_unref(((handle_object *)self)->hook);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *handle_remove(PyObject *self, PyObject *unused)
{
    (void)unused;
    handle_object *o = (handle_object *)self;
    tn_hook *hook = o->hook;
    o->hook = NULL;
    tn_hook_remove(hook);
    Py_RETURN_NONE;
}

static PyObject *handle_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

static PyObject *handle_exit(PyObject *self, PyObject *args)
{
    return handle_remove(self, args);
}

static PyMethodDef handle_methods[] = {
    {"remove", handle_remove, METH_NOARGS, "remove()\n--\n\nTake the hook away."},
    {"__enter__", handle_enter, METH_NOARGS, NULL},
    {"__exit__", handle_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
static PyMemberDef handle_members[] = {
    {"id", T_ULONGLONG, offsetof(handle_object, id), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};
static PyType_Slot handle_slots[] = {
    {Py_tp_dealloc, handle_dealloc},
    {Py_tp_methods, handle_methods},
    {Py_tp_members, handle_members},
    {0, NULL},
};
static PyType_Spec handle_spec = {
    .name = "tenon._C._HookHandle",
    .basicsize = sizeof(handle_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = handle_slots,
};

/* ---- calling ---- */

static void name_of(PyObject *fn, char *buffer, size_t n)
{
    PyObject *name = PyObject_GetAttrString(fn, "__name__");
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    PyErr_Clear();
    strncpy(buffer, text ? text : "<unknown>", n - 1);
    buffer[n - 1] = '\0';
    Py_XDECREF(name);
}

/* "torch.DoubleTensor", but "CPUComplexDoubleType": complex ones have no type of the old kind. */
static PyObject *type_text(tn_tensor *t)
{
    PyObject *object = tnpy_wrap_borrowed(t);
    PyObject *type = object ? PyObject_CallMethod(object, "type", NULL) : NULL;
    Py_XDECREF(object);
    const char *text = type ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
    const char *complex = text ? strstr(text, "Complex") : NULL;
    if (!complex || strlen(complex) < 6 || strlen(complex) > 60)
        return type;
    char name[64];
    PyOS_snprintf(name, sizeof name, "CPU%.*sType", (int)(strlen(complex) - strlen("Tensor")),
                  complex);
    PyObject *other = PyUnicode_FromString(name);
    Py_DECREF(type);
    return other;
}

/* A hook changes values, never what kind of tensor a gradient is. */
static bool may_replace(PyObject *fn, tn_tensor *was, tn_tensor *now)
{
    char name[128];
    if (!was) {
        PyErr_SetString(PyExc_RuntimeError, "can't replace a None gradient with a non-None value");
        return false;
    }
    name_of(fn, name, sizeof name);
    if (tn_tensor_dtype(was) != tn_tensor_dtype(now)) {
        PyObject *from = type_text(was), *to = type_text(now);
        if (from && to)
            PyErr_Format(PyExc_RuntimeError,
                         "hook '%s' has changed the type of value (was %S got %S)", name, from, to);
        Py_XDECREF(from);
        Py_XDECREF(to);
        return false;
    }
    bool same = tn_tensor_ndim(was) == tn_tensor_ndim(now);
    for (int d = 0; same && d < tn_tensor_ndim(was); d++)
        same = tn_tensor_sizes(was)[d] == tn_tensor_sizes(now)[d];
    if (!same)
        PyErr_Format(PyExc_RuntimeError, "hook '%s' has changed the size of value", name);
    return same;
}

/* What a hook returned in place of gradient @p was (NULL: undefined); None: nothing. */
static tn_status take_result(PyObject *fn, tn_tensor *was, PyObject *result, tn_tensor **out)
{
    if (!result)
        return tnpy_failed();
    if (result == Py_None)
        return TN_OK;
    tn_tensor *t = tnpy_tensor(result);
    if (t && !may_replace(fn, was, t))
        return tnpy_failed();
    if (t) {
        *out = tn_tensor_ref(t);
        return TN_OK;
    }
    PyObject *name = PyType_GetName(Py_TYPE(result));
    PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%U'", name);
    Py_XDECREF(name);
    return tnpy_failed();
}

static tn_status tensor_hook(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *arg = tnpy_wrap_borrowed(grad);
    PyObject *result = arg ? tnpy_call_hook(function_of(ctx), arg, NULL) : NULL;
    Py_XDECREF(arg);
    tn_status status = take_result(function_of(ctx), grad, result, out);
    Py_XDECREF(result);
    tnpy_unlock_any(state);
    return status;
}

static tn_status accumulated_hook(void *ctx, tn_tensor *t)
{
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *arg = tnpy_wrap_borrowed(t);
    PyObject *result = arg ? tnpy_call_hook(function_of(ctx), arg, NULL) : NULL;
    tn_status status = TN_OK;
    if (!result || (result != Py_None && result != arg)) {
        if (result && tnpy_tensor(result)) {
            PyErr_SetString(PyExc_RuntimeError,
                            "Tensor post accumulate grad hooks should return None.");
        } else if (result) {
            PyObject *name = PyType_GetName(Py_TYPE(result));
            PyErr_Format(PyExc_TypeError, "expected Variable, but hook returned '%U'", name);
            Py_XDECREF(name);
        }
        status = tnpy_failed();
    }
    Py_XDECREF(arg);
    Py_XDECREF(result);
    tnpy_unlock_any(state);
    return status;
}

static PyObject *wrap_tuple(tn_tensor *const *list, int64_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int64_t i = 0; i < n && tuple; i++) {
        PyObject *item = tnpy_wrap_borrowed(list[i]);
        if (item)
            PyTuple_SetItem(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* A tuple of tensors and None, in place of @p n gradients. */
static tn_status take_results(PyObject *fn, PyObject *result, tn_tensor *const *was, int64_t n,
                              tn_tensor **out)
{
    if (!result)
        return tnpy_failed();
    if (result == Py_None)
        return TN_OK;
    if (!PyTuple_Check(result)) {
        PyObject *type = PyType_GetName(Py_TYPE(result));
        PyErr_Format(PyExc_TypeError, "expected tuple, but hook returned '%U'", type);
        Py_XDECREF(type);
        return tnpy_failed();
    }
    if (PyTuple_Size(result) != n) {
        char name[128];
        name_of(fn, name, sizeof name);
        PyErr_Format(PyExc_RuntimeError,
                     "hook '%s' has returned an incorrect number of values (got %zd, but expected "
                     "%lld)",
                     name, PyTuple_Size(result), (long long)n);
        return tnpy_failed();
    }
    for (int64_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(result, i);
        tn_status status = take_result(fn, was[i], item, &out[i]);
        if (status != TN_OK)
            return status;
        if (item == Py_None && was[i])
            out[i] = TN_NO_GRADIENT;
    }
    return TN_OK;
}

/* How many gradients a node is shown as having: the results behind its last one with a gradient,
 * whole numbers that say where something was found, have none. */
int64_t tnpy_shown_inputs(const tn_node *node, int64_t n)
{
    tn_node_input in = {.size = sizeof in};
    while (n > 1 && tn_node_get_input(node, (uint32_t)(n - 1), &in) != TN_OK)
        n--;
    tn_clear_error();
    return n;
}

static tn_status pre_hook(void *ctx, tn_node *node, tn_tensor *const *grads, int64_t n,
                          tn_tensor **out)
{
    n = tnpy_shown_inputs(node, n);
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *arg = wrap_tuple(grads, n);
    PyObject *result = arg ? tnpy_call_hook(function_of(ctx), arg, NULL) : NULL;
    Py_XDECREF(arg);
    tn_status status = take_results(function_of(ctx), result, grads, n, out);
    Py_XDECREF(result);
    tnpy_unlock_any(state);
    return status;
}

static tn_status post_hook(void *ctx, tn_node *node, tn_tensor *const *results, int64_t n_results,
                           tn_tensor *const *grads, int64_t n_grads, tn_tensor **out)
{
    n_grads = tnpy_shown_inputs(node, n_grads);
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *made = wrap_tuple(results, n_results), *given = wrap_tuple(grads, n_grads);
    PyObject *result = made && given ? tnpy_call_hook(function_of(ctx), made, given) : NULL;
    Py_XDECREF(made);
    Py_XDECREF(given);
    tn_status status = take_results(function_of(ctx), result, results, n_results, out);
    Py_XDECREF(result);
    tnpy_unlock_any(state);
    return status;
}

/* ---- adding ---- */

/* The hook is added: it holds its function. */
static PyObject *added(tn_status status, tnpy_held *fn, tn_hook *hook)
{
    if (status != TN_OK) {
        tnpy_drop(fn);
        return tnpy_raise(status);
    }
    return tnpy_hook_handle(hook);
}

/* The tensor of @p o, which must require grad. */
static tn_tensor *tensor_with_grad(PyObject *o)
{
    tn_tensor *t = tnpy_tensor(o);
    if (t && tn_tensor_requires_grad(t))
        return t;
    PyErr_SetString(PyExc_RuntimeError,
                    "cannot register a hook on a tensor that doesn't require gradient");
    return NULL;
}

/* The class of a tensor, or a mode, is told that a hook is added. */
static PyObject *told(PyObject *self, const char *method, PyObject *fn)
{
    PyObject *args = PyTuple_Pack(1, fn);
    PyObject *result = args ? tnpy_override_method(self, method, args, NULL) : NULL;
    Py_XDECREF(args);
    return result;
}

static PyObject *register_hook(PyObject *self, PyObject *fn)
{
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return told(self, "register_hook", fn);
    tn_tensor *t = tensor_with_grad(self);
    tn_hook *hook = NULL;
    if (!t)
        return NULL;
    tnpy_held *held = tnpy_hold(fn);
    if (!held)
        return NULL;
    tn_status status = tn_tensor_add_hook(t, tensor_hook, held, tnpy_drop_any, &hook);
    return added(status, held, hook);
}

static tn_status only_mark(void *ctx, tn_tensor *grad, tn_tensor **out)
{
    (void)ctx, (void)grad, (void)out;
    return TN_OK;
}

/* _mark_gradient(tensor): a handle of a hook that does nothing, for _hook_in_pass. It holds nothing
 * of Python, so that hooks may hold it. */
static PyObject *mark_gradient(PyObject *module, PyObject *tensor)
{
    (void)module;
    tn_hook *hook = NULL;
    tn_status status = tn_tensor_add_hook(tnpy_tensor(tensor), only_mark, NULL, NULL, &hook);
    return status == TN_OK ? tnpy_hook_handle(hook) : tnpy_raise(status);
}

/* _hook_in_pass(handle): whether the pass of this thread comes by what the hook is on */
static PyObject *hook_in_pass(PyObject *module, PyObject *handle)
{
    (void)module;
    if (!PyObject_TypeCheck(handle, Handle)) {
        PyErr_SetString(PyExc_TypeError, "expected the handle of a hook");
        return NULL;
    }
    return PyBool_FromLong(tn_hook_in_pass(((handle_object *)handle)->hook));
}

static PyObject *register_post_accumulate_grad_hook(PyObject *self, PyObject *fn)
{
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return told(self, "register_post_accumulate_grad_hook", fn);
    tn_tensor *t = tensor_with_grad(self);
    tn_hook *hook = NULL;
    if (!t)
        return NULL;
    tn_node *node = NULL;
    tn_status known = tn_tensor_grad_fn(t, &node);
    if (known != TN_OK)
        return tnpy_raise(known);
    if (node) {
        PyErr_SetString(PyExc_RuntimeError,
                        "post accumulate grad hooks cannot be registered on non-leaf tensors");
        return NULL;
    }
    tnpy_held *held = tnpy_hold(fn);
    if (!held)
        return NULL;
    tn_status status =
        tn_tensor_add_accumulated_hook(t, accumulated_hook, held, tnpy_drop_any, &hook);
    return added(status, held, hook);
}

static PyObject *add_to_node(PyObject *self, PyObject *fn, bool before)
{
    tn_node *node = tnpy_node_of(self);
    tn_hook *hook = NULL;
    if (!node)
        return NULL;
    tnpy_held *held = tnpy_hold(fn);
    if (!held) {
        tn_node_unref(node);
        return NULL;
    }
    tn_status status = before ? tn_node_add_pre_hook(node, pre_hook, held, tnpy_drop_any, &hook)
                              : tn_node_add_post_hook(node, post_hook, held, tnpy_drop_any, &hook);
    tn_node_unref(node);
    return added(status, held, hook);
}

PyObject *tnpy_node_register_hook(PyObject *self, PyObject *fn)
{
    return add_to_node(self, fn, false);
}

PyObject *tnpy_node_register_prehook(PyObject *self, PyObject *fn)
{
    return add_to_node(self, fn, true);
}

/* ---- collecting garbage ---- */

typedef struct visitor {
    visitproc visit;
    void *arg;
} visitor;

static int visit_hook(void *ctx, void *arg)
{
    const visitor *v = arg;
    PyObject *fn = ctx ? function_of(ctx) : NULL;
    return fn ? v->visit(fn, v->arg) : 0;
}

int tnpy_visit_hooks(const tn_tensor *t, visitproc visit, void *arg)
{
    visitor v = {visit, arg};
    return tn_tensor_visit_hooks(t, tnpy_drop_any, visit_hook, &v);
}

int tnpy_visit_node_hooks(tn_node *node, visitproc visit, void *arg)
{
    visitor v = {visit, arg};
    return tn_node_visit_hooks(node, tnpy_drop_any, visit_hook, &v);
}

/* ---- saved-tensor hooks: ctx is a tuple (pack, unpack) ---- */

static tn_status saved_pack(void *ctx, tn_tensor *t, void **out)
{
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *arg = tnpy_wrap_borrowed(t);
    PyObject *packed = arg ? tnpy_call_hook(PyTuple_GetItem(function_of(ctx), 0), arg, NULL) : NULL;
    Py_XDECREF(arg);
    tnpy_held *held = packed ? tnpy_hold(packed) : NULL;
    Py_XDECREF(packed);
    tn_status status = held ? TN_OK : tnpy_failed();
    if (held)
        *out = held;
    tnpy_unlock_any(state);
    return status;
}

static tn_status saved_unpack(void *ctx, void *packed, tn_tensor **out)
{
    PyGILState_STATE state = tnpy_lock_any();
    PyObject *result =
        tnpy_call_hook(PyTuple_GetItem(function_of(ctx), 1), ((tnpy_held *)packed)->object, NULL);
    tn_tensor *t = result ? tnpy_tensor(result) : NULL;
    tn_status status = TN_OK;
    if (t) {
        *out = tn_tensor_ref(t);
    } else {
        if (result) {
            PyObject *name = PyType_GetName(Py_TYPE(result));
            PyErr_Format(
                PyExc_TypeError,
                "Output of saved tensor unpack_hook expected to be a Tensor but got result "
                "of type %U",
                name);
            Py_XDECREF(name);
        }
        status = tnpy_failed();
    }
    Py_XDECREF(result);
    tnpy_unlock_any(state);
    return status;
}

static void saved_drop(void *ctx, void *packed)
{
    (void)ctx;
    tnpy_drop(packed);
}

tn_saved_hooks tnpy_saved_hooks_of(tnpy_held *pair)
{
    return (tn_saved_hooks){sizeof(tn_saved_hooks), 0, saved_pack, saved_unpack, saved_drop, pair,
                            tnpy_drop_any};
}

/* _push_saved_hooks(pack, unpack) */
static PyObject *push_saved_hooks(PyObject *module, PyObject *args)
{
    (void)module;
    if (PyTuple_Size(args) != 2) {
        PyErr_SetString(PyExc_TypeError, "expected a pack and an unpack hook");
        return NULL;
    }
    tnpy_held *pair = tnpy_hold(args);
    if (!pair)
        return NULL;
    tn_saved_hooks hooks = tnpy_saved_hooks_of(pair);
    tn_status status = tn_saved_hooks_push(&hooks);
    if (status != TN_OK) {
        tnpy_drop(pair);
        return tnpy_raise(status);
    }
    Py_RETURN_NONE;
}

static PyObject *pop_saved_hooks(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    tn_status status = tn_saved_hooks_pop();
    if (status != TN_OK)
        return tnpy_raise(status);
    Py_RETURN_NONE;
}

static PyObject *saved_hooks_on(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tn_saved_hooks_on());
}

/* _disable_saved_hooks(message or None): the message so far */
static PyObject *disable_saved_hooks(PyObject *module, PyObject *message)
{
    (void)module;
    const char *text = message == Py_None ? NULL : PyUnicode_AsUTF8AndSize(message, NULL);
    if (!text && message != Py_None)
        return NULL;
    char *old = NULL;
    tn_status status = tn_saved_hooks_disable(text, &old);
    if (status != TN_OK)
        return tnpy_raise(status);
    PyObject *result = old ? PyUnicode_FromString(old) : Py_NewRef(Py_None);
    tn_string_free(old);
    return result;
}

static PyMethodDef functions[] = {
    {"_push_saved_hooks", push_saved_hooks, METH_VARARGS, NULL},
    {"_pop_saved_hooks", pop_saved_hooks, METH_NOARGS, NULL},
    {"_saved_hooks_on", saved_hooks_on, METH_NOARGS, NULL},
    {"_disable_saved_hooks", disable_saved_hooks, METH_O, NULL},
    {"_mark_gradient", mark_gradient, METH_O, NULL},
    {"_hook_in_pass", hook_in_pass, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMethodDef tensor_methods[] = {
    {"register_hook", register_hook, METH_O,
     "register_hook(hook)\n--\n\nCall hook(grad) with the gradient in every pass that reaches the "
     "tensor; a tensor that it returns takes the gradient's place."},
    {"register_post_accumulate_grad_hook", register_post_accumulate_grad_hook, METH_O,
     "register_post_accumulate_grad_hook(hook)\n--\n\nCall hook(tensor) after a gradient was added "
     "to its `.grad`."},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_hooks(PyObject *module)
{
    Handle = (PyTypeObject *)PyType_FromSpec(&handle_spec);
    if (!Handle || PyModule_AddObjectRef(module, "_HookHandle", (PyObject *)Handle) < 0)
        return -1;
    for (PyMethodDef *m = tensor_methods; m->ml_name; m++) {
        PyObject *d = PyDescr_NewMethod(tnpy_Tensor, m);
        if (!d || PyObject_SetAttrString((PyObject *)tnpy_Tensor, m->ml_name, d) < 0)
            return -1;
        Py_DECREF(d);
    }
    return PyModule_AddFunctions(module, functions);
}
