/* SPDX-License-Identifier: MIT */
/* function.c: autograd.Function. A call makes a context, which forward, setup_context, backward and
 * jvp get, and which is what `grad_fn` shows of the node: the node holds the context, the context
 * knows the node as long as it lives. */
#include "function.h"
#include "override.h"

#include <string.h>

static PyTypeObject *FunctionBase, *FunctionClass;
struct tnpy_fn_names tnpy_fn;
/* Arguments of which a call is another one: slices of vmap, tensors made of tensors. NULL until
 * there are some. */
enum { N_KINDS = 2, DEPTH = 4 };
static PyObject *kind_types[N_KINDS], *kind_applies[N_KINDS];

int tnpy_is_function(PyObject *o)
{
    return PyObject_TypeCheck(o, FunctionBase);
}

/* ---- node and context ---- */

static void lock(tnpy_fn_object *o)
{
    while (atomic_flag_test_and_set_explicit(&o->lock, memory_order_acquire))
        ;
}

static void unlock(tnpy_fn_object *o)
{
    atomic_flag_clear_explicit(&o->lock, memory_order_release);
}

static void state_destroy(void *p)
{
    tnpy_fn_object *o = ((tnpy_fn_state *)p)->context;
    if (!o)
        return;
    lock(o);
    o->node = NULL;
    o->node_ended = 1;
    unlock(o);
    tnpy_drop(&o->link);
}

PyObject *tnpy_function_of(const tn_node *node)
{
    const tnpy_fn_state *state = tn_node_function_state(node, state_destroy);
    return state ? (PyObject *)state->context : NULL;
}

tn_node *tnpy_function_node(PyObject *self)
{
    tnpy_fn_object *o = (tnpy_fn_object *)self;
    lock(o);
    tn_node *node = tn_node_try_ref(o->node);
    unlock(o);
    return node;
}

/* ---- apply ---- */

/* The results in the place of what forward returned. */
/* What stands for a result: an input that was returned is a view now, which keeps its class as the
 * result of any function does. */
static PyObject *wrap_output(PyObject *given, tn_tensor *made)
{
    if (!made)
        return Py_NewRef(given);
    if (tnpy_is_tensor(given) && tnpy_tensor(given) != made)
        return tnpy_wrap_kept(tnpy_kept_class(given), tn_tensor_ref(made));
    return tnpy_wrap_borrowed(made);
}

static PyObject *wrap_outputs(PyObject *output, tn_tensor **made, int n)
{
    if (!PyTuple_Check(output))
        return wrap_output(output, made[0]);
    PyObject *all = PyTuple_New(n);
    for (int i = 0; i < n && all; i++) {
        PyObject *item = wrap_output(PyTuple_GetItem(output, i), made[i]);
        if (item)
            PyTuple_SetItem(all, i, item);
        else
            Py_CLEAR(all);
    }
    return all;
}

static int truth_of(PyObject *cls, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(cls, name);
    int truth = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return truth;
}

static bool has_own_jvp(PyObject *cls)
{
    PyObject *jvp = PyObject_GetAttr(cls, tnpy_fn.jvp);
    bool own = jvp && jvp != tnpy_fn.plain_jvp;
    Py_XDECREF(jvp);
    PyErr_Clear();
    return own;
}

static PyObject *run_call(tnpy_fn_call *c, int n)
{
    PyObject *name = PyObject_GetAttr(c->cls, tnpy_fn.name);
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    int once = text ? truth_of(c->cls, tnpy_fn.once) : -1;
    PyObject *result = NULL;
    if (once >= 0) {
        tn_function fn = TN_FUNCTION_INIT(text, tnpy_fn_on_forward, tnpy_fn_on_backward);
        fn.flags = once ? TN_FUNCTION_ONCE_DIFFERENTIABLE : 0;
        fn.state_size = sizeof(tnpy_fn_state);
        fn.state_destroy = state_destroy;
        if (TNPY_UNLIKELY(tn_forward_entered()) && has_own_jvp(c->cls))
            fn.jvp = tnpy_fn_on_jvp;
        tn_tensor **made = NULL;
        int n_made = 0;
        tn_status status = tn_function_apply_any(&fn, c, c->inputs, n, &made, &n_made);
        if (status == TN_OK) {
            result = wrap_outputs(c->output, made, n_made);
            tn_tensor_list_free(made, n_made);
        } else {
            tnpy_raise(status);
        }
    }
    Py_XDECREF(name);
    return result;
}

/* A new context of the class's own type, for these inputs. */
static tnpy_fn_object *new_context(PyObject *cls, tn_tensor *const *inputs, Py_ssize_t n)
{
    PyObject *type = PyObject_GetAttr(cls, tnpy_fn.backward_cls);
    PyObject *needs = type ? PyTuple_New(n) : NULL;
    tnpy_fn_object *o = NULL;
    if (needs && PyType_Check(type))
        o = (tnpy_fn_object *)PyType_GenericAlloc((PyTypeObject *)type, 0);
    Py_XDECREF(type);
    if (!o) {
        Py_XDECREF(needs);
        return NULL;
    }
    bool all = true;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyTuple_SetItem(needs, i, PyBool_FromLong(tn_tensor_requires_grad(inputs[i])));
        all = all && inputs[i];
    }
    if (!all) {
        o->tensor_args = PyBytes_FromStringAndSize(NULL, n);
        if (!o->tensor_args) {
            Py_DECREF(needs);
            Py_DECREF((PyObject *)o);
            return NULL;
        }
        for (Py_ssize_t i = 0; i < n; i++)
            PyBytes_AsString(o->tensor_args)[i] = inputs[i] != NULL;
    }
    o->link = (tnpy_held){(PyObject *)o, NULL, 1};
    o->needs_input_grad = needs;
    o->materialize = 1;
    return o;
}

static PyObject *apply_to(PyObject *cls, PyObject *args, PyObject *setup)
{
    tn_tensor **inputs = NULL;
    int n = tnpy_fn_tensors_of(args, &inputs);
    if (n < 0)
        return NULL;
    tnpy_fn_object *o = new_context(cls, inputs, n);
    PyObject *result = NULL;
    if (o) {
        tnpy_fn_call c = {.cls = cls, .args = args, .context = o, .inputs = inputs, .setup = setup};
        int n_tensors = 0;
        for (int i = 0; i < n; i++)
            if (inputs[i])
                inputs[n_tensors++] = inputs[i];
        result = run_call(&c, n_tensors);
        Py_XDECREF(c.output);
        Py_CLEAR(o->to_save);
        Py_CLEAR(o->for_forward);
        Py_CLEAR(o->dirty);
        Py_CLEAR(o->non_differentiable);
        Py_DECREF((PyObject *)o);
    }
    PyMem_Free(inputs);
    return result;
}

/* Defaults of forward are arguments too, for setup_context and for gradients. */
static PyObject *bind_defaults(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *bind = PyObject_GetAttr(cls, tnpy_fn.bind);
    PyObject *all = bind ? PyObject_CallFunctionObjArgs(bind, args, kwargs, NULL) : NULL;
    Py_XDECREF(bind);
    if (all && !PyTuple_Check(all)) {
        PyErr_SetString(PyExc_TypeError, "arguments of forward could not be bound");
        Py_CLEAR(all);
    }
    return all;
}

static PyObject *apply_plainly(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyObject *setup = PyObject_GetAttr(cls, tnpy_fn.setup);
    if (!setup)
        return NULL;
    if (setup == tnpy_fn.plain_setup)
        Py_CLEAR(setup);
    PyObject *result = NULL;
    if (setup) {
        PyObject *all = bind_defaults(cls, args, kwargs ? kwargs : Py_None);
        if (all)
            result = apply_to(cls, all, setup);
        Py_XDECREF(all);
        Py_DECREF(setup);
    } else if (kwargs && PyDict_Size(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "apply() takes no keyword arguments");
    } else {
        result = apply_to(cls, args, NULL);
    }
    return result;
}

/* Whether a tensor of the type is among arguments, also in tuples and lists of them. */
static bool has_kind(PyObject *o, PyObject *type, int depth)
{
    if (PyObject_TypeCheck(o, (PyTypeObject *)type))
        return true;
    bool tuple = PyTuple_Check(o), found = false;
    if (depth == 0 || (!tuple && !PyList_Check(o)))
        return false;
    Py_ssize_t n = tuple ? PyTuple_Size(o) : PyList_Size(o);
    for (Py_ssize_t i = 0; i < n && !found; i++)
        found = has_kind(tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i), type, depth - 1);
    return found;
}

static PyObject *function_apply(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    for (int i = 0; i < N_KINDS; i++) {
        if (TNPY_LIKELY(!kind_types[i]) || !has_kind(args, kind_types[i], DEPTH))
            continue;
        PyObject *result = PyObject_CallFunctionObjArgs(kind_applies[i], cls, args,
                                                        kwargs ? kwargs : Py_None, NULL);
        if (result != Py_NotImplemented)
            return result;
        Py_DECREF(result);
    }
    return apply_plainly(cls, args, kwargs);
}

/* ---- types ---- */

static int fn_traverse(PyObject *self, visitproc visit, void *arg)
{
    tnpy_fn_object *o = (tnpy_fn_object *)self;
    Py_VISIT(o->dict);
    Py_VISIT(o->to_save);
    Py_VISIT(o->for_forward);
    Py_VISIT(o->dirty);
    Py_VISIT(o->non_differentiable);
    Py_VISIT(o->needs_given);
    Py_VISIT(Py_TYPE(self));
    return 0;
}

static int fn_clear(PyObject *self)
{
    tnpy_fn_object *o = (tnpy_fn_object *)self;
    Py_CLEAR(o->dict);
    Py_CLEAR(o->to_save);
    Py_CLEAR(o->for_forward);
    Py_CLEAR(o->dirty);
    Py_CLEAR(o->non_differentiable);
    Py_CLEAR(o->needs_input_grad);
    Py_CLEAR(o->needs_given);
    Py_CLEAR(o->tensor_args);
    return 0;
}

static void fn_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    PyTypeObject *type = Py_TYPE(self);
    if (((tnpy_fn_object *)self)->weak)
        PyObject_ClearWeakRefs(self);
    fn_clear(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyObject *fn_repr(PyObject *self)
{
    PyObject *name = PyType_GetName(Py_TYPE(self));
    PyObject *text = name ? PyUnicode_FromFormat("<%s.autograd.function.%U object at %p>",
                                                 tnpy_module_name(), name, (void *)self)
                          : NULL;
    Py_XDECREF(name);
    return text;
}

static PyType_Slot fn_slots[] = {
    {Py_tp_dealloc, fn_dealloc},      {Py_tp_traverse, fn_traverse},
    {Py_tp_clear, fn_clear},          {Py_tp_repr, fn_repr},
    {Py_tp_methods, tnpy_fn_methods}, {Py_tp_getset, tnpy_fn_getset},
    {Py_tp_members, tnpy_fn_members}, {0, NULL},
};
static PyType_Spec fn_spec = {
    .name = "tenon._C._FunctionBase",
    .basicsize = sizeof(tnpy_fn_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = fn_slots,
};

static PyMethodDef class_methods[] = {
    {"apply", (PyCFunction)(void (*)(void))function_apply,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "apply(*args)\n--\n\nCall the function; its results have the gradient that backward gives."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot class_slots[] = {{Py_tp_methods, class_methods}, {0, NULL}};
static PyType_Spec class_spec = {
    .name = "tenon._C._FunctionClass",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = class_slots,
};

/* _set_function_defaults(setup_context, backward, vjp, jvp): those of the class Function itself */
static PyObject *set_function_defaults(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *setup, *backward, *vjp, *jvp;
    if (!PyArg_ParseTuple(args, "OOOO", &setup, &backward, &vjp, &jvp))
        return NULL;
    tnpy_fn_put(&tnpy_fn.plain_backward, Py_NewRef(backward));
    tnpy_fn_put(&tnpy_fn.plain_setup, Py_NewRef(setup));
    tnpy_fn_put(&tnpy_fn.plain_vjp, Py_NewRef(vjp));
    tnpy_fn_put(&tnpy_fn.plain_jvp, Py_NewRef(jvp));
    Py_RETURN_NONE;
}

/* _set_function_kind(which, type, apply): where an argument of a function is of the type,
 * apply(cls, args, kwargs or None) is called; NotImplemented: it is an argument like others. 0 are
 * slices of vmap, 1 tensors made of tensors. */
static PyObject *set_function_kind(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *type, *apply;
    int which;
    if (!PyArg_ParseTuple(args, "iO!O", &which, &PyType_Type, &type, &apply))
        return NULL;
    if (which < 0 || which >= N_KINDS) {
        PyErr_SetString(PyExc_ValueError, "there is no such kind of arguments");
        return NULL;
    }
    tnpy_fn_put(&kind_applies[which], Py_NewRef(apply));
    tnpy_fn_put(&kind_types[which], Py_NewRef(type));
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"_set_function_kind", set_function_kind, METH_VARARGS, NULL},
    {"_set_function_defaults", set_function_defaults, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int add_names(void)
{
    static const struct {
        PyObject **slot;
        const char *text;
    } names[] = {
        {&tnpy_fn.backward_cls, "_backward_cls"},
        {&tnpy_fn.forward, "forward"},
        {&tnpy_fn.backward, "backward"},
        {&tnpy_fn.vjp, "vjp"},
        {&tnpy_fn.jvp, "jvp"},
        {&tnpy_fn.setup, "setup_context"},
        {&tnpy_fn.once, "_once_differentiable"},
        {&tnpy_fn.bind, "_bind_arguments"},
        {&tnpy_fn.name, "__name__"},
        {&tnpy_fn.forward_cls, "_forward_cls"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!(*names[i].slot = PyUnicode_InternFromString(names[i].text)))
            return -1;
    return 0;
}

int tnpy_add_function(PyObject *module)
{
    FunctionBase = (PyTypeObject *)PyType_FromSpec(&fn_spec);
    FunctionClass = (PyTypeObject *)PyType_FromSpec(&class_spec);
    if (!FunctionBase || !FunctionClass || add_names() < 0 ||
        tnpy_add_node_parts(FunctionBase) < 0 ||
        PyModule_AddObjectRef(module, "_FunctionBase", (PyObject *)FunctionBase) < 0 ||
        PyModule_AddObjectRef(module, "_FunctionClass", (PyObject *)FunctionClass) < 0)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
