/* SPDX-License-Identifier: MIT */
/* saved_tensor.c: one value that a node saved, before it is unpacked (`grad_fn._raw_saved_self`):
 * a place to put hooks on. It holds its node. */
#include "grad.h"

#include <string.h>

typedef struct raw_object {
    PyObject_HEAD tn_node *node; /* strong */
    uint32_t at;
    bool of_function; /* one of a Python Function's */
} raw_object;

static PyTypeObject *SavedTensor;

PyObject *tnpy_saved_tensor(tn_node *node, uint32_t at, bool of_function)
{
    raw_object *o = (raw_object *)PyType_GenericAlloc(SavedTensor, 0);
    if (!o)
        return NULL;
    o->node = tn_node_ref(node);
    o->at = at;
    o->of_function = of_function;
    return (PyObject *)o;
}

static void raw_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    tn_node *node = ((raw_object *)self)->node;
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
    tn_node_unref(node);
}

static PyObject *register_hooks(PyObject *self, PyObject *args)
{
    raw_object *o = (raw_object *)self;
    if (PyTuple_Size(args) != 2 || !PyCallable_Check(PyTuple_GetItem(args, 0)) ||
        !PyCallable_Check(PyTuple_GetItem(args, 1))) {
        PyErr_SetString(PyExc_TypeError,
                        "register_hooks(): incompatible function arguments. The following argument "
                        "types are supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: "
                        "Callable, arg1: Callable) -> None");
        return NULL;
    }
    tnpy_held *pair = tnpy_hold(args);
    if (!pair)
        return NULL;
    tn_saved_hooks hooks = tnpy_saved_hooks_of(pair);
    tn_status status = o->of_function
                           ? tn_node_function_saved_register_hooks(o->node, (int)o->at, &hooks)
                           : tn_node_saved_register_hooks(o->node, o->at, &hooks);
    if (status != TN_OK) {
        tnpy_drop(pair);
        return tnpy_raise_pass(status);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"register_hooks", register_hooks, METH_VARARGS,
     "register_hooks(pack, unpack)\n--\n\nKeep what pack(tensor) returns; unpack gives a tensor "
     "back."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, raw_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};
static PyType_Spec spec = {
    .name = "tenon._C._autograd.SavedTensor",
    .basicsize = sizeof(raw_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = slots,
};

int tnpy_add_saved_tensor(PyObject *module)
{
    SavedTensor = (PyTypeObject *)PyType_FromSpec(&spec);
    return SavedTensor ? PyModule_AddObjectRef(module, "_SavedTensor", (PyObject *)SavedTensor)
                       : -1;
}
