/* SPDX-License-Identifier: MIT */
/* tensor.c: the type Tensor: objects, their identity, and who owns whom. Its properties and plain
 * methods are in property.c, its operators in operator.c, the generated methods come from bind.c.
 */
#include "grad.h"
#include "opcall.h"
#include "type.h"

#include "tenon/mode.h"

#include <string.h>

/* Note [Who owns whom]
 * Usually the Python object owns a reference of the C tensor, and the C tensor knows its object
 * (its peer) without owning it: then `x.grad is x.grad`. When Python forgets the object while C
 * still holds the tensor (a leaf whose graph lives on, a .grad), a plain object may go: the next
 * one that is made is as good. An object with attributes, weak references or a class of its own may
 * not: then ownership turns round, the C tensor owns the object, and gives it back when somebody
 * asks for it again. When the last reference of the C tensor goes, on whatever thread, the object
 * is released (tnpy_release). */

PyTypeObject *tnpy_Tensor, *tnpy_Parameter;

int tnpy_is_tensor(PyObject *o)
{
    return PyObject_TypeCheck(o, tnpy_Tensor);
}

static tnpy_tensor_object *self_of(PyObject *o)
{
    return (tnpy_tensor_object *)(void *)o;
}

/* ---- making ---- */

static PyObject *attach(PyObject *o, tn_tensor *t)
{
    if (TNPY_UNLIKELY(!o)) {
        tn_tensor_unref(t);
        return NULL;
    }
    tnpy_tensor_object *self = self_of(o);
    self->t = t;
    tn_tensor_set_peer(t, self, NULL);
    return o;
}

PyObject *tnpy_wrap_as(PyTypeObject *type, tn_tensor *t)
{
    if (TNPY_LIKELY(type == tnpy_Tensor)) {
        tnpy_tensor_object *self = PyObject_GC_New(tnpy_tensor_object, tnpy_Tensor);
        if (self) {
            memset((char *)self + sizeof(PyObject), 0, sizeof *self - sizeof(PyObject));
            PyObject_GC_Track(self);
        }
        return attach((PyObject *)self, t);
    }
    if (TNPY_UNLIKELY(tnpy_type_dispatches(type)) && tnpy_handle(t)) {
        tn_tensor_unref(t);
        return NULL;
    }
    allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    return attach(alloc(type, 0), t);
}

/* CPython finalizes an object once, and keeps that in a bit of the collector's header, in front of
 * the object. An object that lived on must be asked again when it is forgotten the next time. The
 * bit is only touched where it is what PyObject_GC_IsFinalized reads; elsewhere an object lives on
 * once. */
static void may_finalize_again(PyObject *o)
{
    uintptr_t *header = (uintptr_t *)(void *)o - 1;
    if (!PyObject_GC_IsFinalized(o) || !(*header & 1))
        return;
    *header &= ~(uintptr_t)1;
    if (PyObject_GC_IsFinalized(o))
        *header |= 1;
}

PyObject *tnpy_wrap(tn_tensor *t)
{
    if (TNPY_UNLIKELY(!t))
        return Py_NewRef(Py_None);
    tnpy_tensor_object *known = tn_tensor_peer(t);
    if (!known)
        return tnpy_wrap_as(tnpy_Tensor, t);
    if (known->owned_by_c) {
        /* C's reference of the object becomes the caller's, t's becomes the object's. */
        known->owned_by_c = 0;
        may_finalize_again((PyObject *)known);
        tn_tensor_set_peer(t, known, NULL);
        return (PyObject *)known;
    }
    tn_tensor_unref(t); /* the object has one of its own */
    return Py_NewRef((PyObject *)known);
}

PyObject *tnpy_wrap_borrowed(tn_tensor *t)
{
    return tnpy_wrap(tn_tensor_ref(t));
}

PyObject *tnpy_wrap_list(tn_tensor **list, int64_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (int64_t i = 0; tuple && i < n; i++) {
        PyObject *o = tnpy_wrap_borrowed(list[i]);
        if (!o)
            Py_CLEAR(tuple);
        else
            PyTuple_SetItem(tuple, i, o);
    }
    tn_tensor_list_free(list, n);
    return tuple;
}

void tnpy_swap(PyObject *a, PyObject *b)
{
    tnpy_tensor_object *one = (tnpy_tensor_object *)a, *two = (tnpy_tensor_object *)b;
    tn_tensor *t = one->t;
    one->t = two->t;
    two->t = t;
    /* Whoever calls holds both objects: each owns its tensor. */
    tn_tensor_set_peer(one->t, one, NULL);
    tn_tensor_set_peer(two->t, two, NULL);
}

/* ---- letting go ---- */

/* The last reference of a tensor that owned its object is gone. Any thread, perhaps without the
 * lock. */
static void peer_released(void *peer)
{
    tnpy_tensor_object *self = peer;
    self->t = NULL;
    self->owned_by_c = 0;
    tnpy_release((PyObject *)self);
}

/* Python has let go of the object: does it have to live on? Then it has a reference more than
 * before. */
static void finalize(PyObject *o)
{
    tnpy_tensor_object *self = self_of(o);
    tn_tensor *t = self->t;
    if (!t || self->owned_by_c || tn_tensor_use_count(t) < 2)
        return;
    if (Py_TYPE(o) == tnpy_Tensor && !self->dict && !self->weak)
        return;
    Py_INCREF(o);
    self->owned_by_c = 1;
    tn_tensor_set_peer(t, self, peer_released);
    tn_tensor_unref(t); /* may be the last after all: then the object is released again */
}

static void forget(tnpy_tensor_object *self)
{
    tn_tensor *t = self->t;
    if (!t)
        return;
    self->t = NULL;
    tn_tensor_set_peer(t, NULL, NULL);
    tn_tensor_unref(t);
}

static void dealloc(PyObject *o)
{
    tnpy_tensor_object *self = self_of(o);
    PyTypeObject *type = Py_TYPE(o);
    if (TNPY_UNLIKELY(self->dict || self->weak)) {
        if (type == tnpy_Tensor) { /* of a subclass this was done already */
            Py_SET_REFCNT(o, 1);
            finalize(o);
            Py_ssize_t left = Py_REFCNT(o) - 1;
            Py_SET_REFCNT(o, left);
            if (left > 0)
                return;
        }
    }
    PyObject_GC_UnTrack(o);
    if (TNPY_UNLIKELY(self->weak != NULL))
        PyObject_ClearWeakRefs(o);
    Py_CLEAR(self->dict);
    forget(self);
    PyObject_GC_Del(o);
    Py_DECREF(type);
}

/* Note [Garbage through C]
 * What hangs on a C tensor that nobody but its object keeps hangs on the object: a Python Function
 * that made it, hooks of a leaf, and those of a node that nobody else keeps. So do the hooks of a
 * node on the node's object. They may lead back to the object. A collector looks at objects
 * more than once and must see the same each time; who keeps a tensor can only change without the
 * lock while another thread is inside a call that gave it away. Then nothing is shown: what is
 * garbage waits for another collection. */
static int traverse(PyObject *o, visitproc visit, void *arg)
{
    tnpy_tensor_object *self = self_of(o);
    Py_VISIT(self->dict);
    if (self->t && !self->owned_by_c && tnpy_all_locked()) {
        tn_node *node = tn_tensor_own_node(self->t);
        PyObject *function = node ? tnpy_function_of(node) : NULL;
        Py_VISIT(function);
        int rc = tnpy_visit_node_hooks(node, visit, arg);
        rc = rc ? rc : tnpy_visit_hooks(self->t, visit, arg);
        if (rc)
            return rc;
    }
    Py_VISIT(Py_TYPE(o));
    return 0;
}

static int clear(PyObject *o)
{
    tnpy_tensor_object *self = self_of(o);
    Py_CLEAR(self->dict);
    if (self->t && !self->owned_by_c) {
        tn_node_clear_hooks(tn_tensor_own_node(self->t));
        tn_tensor_clear_hooks(self->t);
    }
    return 0;
}

/* ---- Tensor(…) ---- */

/* Tensor(2, 3), Tensor([1., 2.]): the older constructors, in the default dtype. What takes data is
 * tenon.tensor. */
static PyObject *make(PyObject *args, PyObject *kwargs)
{
    PyObject *module = PyImport_ImportModule("tenon");
    PyObject *f = module ? PyObject_GetAttrString(module, "_legacy_tensor") : NULL;
    PyObject *o = f ? PyObject_Call(f, args, kwargs) : NULL;
    Py_XDECREF(f);
    Py_XDECREF(module);
    return o;
}

static PyObject *new (PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *plain = make(args, kwargs);
    if (!plain || type == tnpy_Tensor)
        return plain;
    /* Of another tensor it is a view, with its history; what was made of numbers is nobody's. */
    tn_tensor *t = tnpy_tensor(plain), *mine = NULL;
    tn_status st = !t                     ? TN_INVALID
                   : tn_tensor_is_view(t) ? tn_alias(t, &mine)
                                          : tn_detach(t, &mine);
    Py_DECREF(plain);
    return st == TN_OK ? tnpy_wrap_as(type, mine) : tnpy_raise(st);
}

/* _make_subclass(cls, data, require_grad=False): a new object of a class over data without history.
 */
int tnpy_check_subclass(PyObject *cls)
{
    if (PyType_Check(cls) && PyType_IsSubtype((PyTypeObject *)cls, tnpy_Tensor))
        return 0;
    PyErr_SetString(PyExc_TypeError,
                    "Creating a Tensor subclass from a class that does not inherit from Tensor is "
                    "not possible. Make sure your class inherits from Tensor.");
    return -1;
}

static PyObject *make_subclass(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"cls",
                            "data",
                            "require_grad",
                            "dispatch_sizes_strides_policy",
                            "dispatch_device",
                            "dispatch_layout",
                            "device_for_backend_keys",
                            NULL};
    PyObject *type, *data, *policy = NULL, *device = NULL;
    int grad = 0, unused[2];
    (void)cls;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|pOppO:_make_subclass", names, &type, &data,
                                     &grad, &policy, &unused[0], &unused[1], &device))
        return NULL;
    tn_tensor *t = tnpy_tensor(data), *alias;
    if (tnpy_check_subclass(type))
        return NULL;
    if (!t) {
        char name[128];
        PyErr_Format(PyExc_TypeError,
                     "_make_subclass(): argument 'data' (position 2) must be Tensor, not %s",
                     tnpy_type_name(data, name, sizeof name));
        return NULL;
    }
    tn_call_modes_guard modes = tn_call_modes_off(); /* making an object is no call */
    tn_status st = tn_detach(t, &alias);
    tn_call_modes_restore(modes);
    if (st != TN_OK)
        return tnpy_raise(st);
    tn_dtype dtype = tn_tensor_dtype(alias);
    if (grad && !tn_dtype_is_floating(dtype) && !tn_dtype_is_complex(dtype)) {
        tn_tensor_unref(alias);
        PyErr_SetString(PyExc_RuntimeError,
                        "Only Tensors of floating point and complex dtype can require gradients");
        return NULL;
    }
    if (grad && (st = tn_tensor_set_requires_grad(alias, true)) != TN_OK) {
        tn_tensor_unref(alias);
        return tnpy_raise(st);
    }
    return tnpy_wrap_as((PyTypeObject *)type, alias);
}

static PyObject *as_subclass(PyObject *self, PyObject *cls)
{
    if (tnpy_check_subclass(cls))
        return NULL;
    tn_tensor *t = tnpy_tensor(self), *alias;
    tn_call_modes_guard modes = tn_call_modes_off();
    tn_status st = tn_alias(t, &alias);
    tn_call_modes_restore(modes);
    return st == TN_OK ? tnpy_wrap_as((PyTypeObject *)cls, alias) : tnpy_raise(st);
}

static Py_hash_t hash(PyObject *o)
{
    Py_hash_t h = (Py_hash_t)(uintptr_t)o; /* id(), as scripts expect */
    return h == -1 ? -2 : h;
}

static PyMethodDef own_methods[] = {
    {"_make_subclass", (PyCFunction)(void (*)(void))make_subclass,
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, "_make_subclass(cls, data, require_grad=False)"},
    {"as_subclass", as_subclass, METH_O,
     "as_subclass(cls) -> Tensor\n\nThe same elements as an object of another class."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(tnpy_tensor_object, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(tnpy_tensor_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

/* ---- the type ---- */

/* Methods of a table, where the type has no such name yet. */
static int add_methods(PyMethodDef *defs)
{
    for (; defs->ml_name; defs++) {
        if (PyObject_HasAttrString((PyObject *)tnpy_Tensor, defs->ml_name) &&
            defs->ml_name[0] != '_')
            continue;
        PyObject *method = PyDescr_NewMethod(tnpy_Tensor, defs);
        if (!method || PyObject_SetAttrString((PyObject *)tnpy_Tensor, defs->ml_name, method)) {
            Py_XDECREF(method);
            return -1;
        }
        Py_DECREF(method);
    }
    return 0;
}

static int add_class_methods(void)
{
    for (PyMethodDef *def = tnpy_default_override; def->ml_name; def++) {
        PyObject *method = PyDescr_NewClassMethod(tnpy_Tensor, def);
        if (!method || PyObject_SetAttrString((PyObject *)tnpy_Tensor, def->ml_name, method)) {
            Py_XDECREF(method);
            return -1;
        }
        Py_DECREF(method);
    }
    return 0;
}

static int gather(PyType_Slot *all, int n, const PyType_Slot *some)
{
    while (some->slot)
        all[n++] = *some++;
    return n;
}

int tnpy_add_tensor(PyObject *module)
{
    static const PyType_Slot own[] = {
        {Py_tp_new, new},
        {Py_tp_dealloc, dealloc},
        {Py_tp_finalize, finalize},
        {Py_tp_traverse, traverse},
        {Py_tp_clear, clear},
        {Py_tp_repr, tnpy_repr},
        {Py_tp_hash, hash},
        {Py_tp_members, members},
        {Py_tp_methods, own_methods},
        {Py_tp_getset, tnpy_tensor_getset},
        {Py_tp_doc, "A tensor."},
        {0, NULL},
    };
    PyType_Slot all[80];
    int n = gather(all, 0, own);
    n = gather(all, n, tnpy_tensor_operators);
    n = gather(all, n, tnpy_tensor_items);
    all[n] = (PyType_Slot){0, NULL};
    PyType_Spec spec = {"tenon.Tensor", sizeof(tnpy_tensor_object), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, all};
    tnpy_Tensor = (PyTypeObject *)PyType_FromSpec(&spec);
    PyObject *name =
        PyUnicode_FromString("Tensor"); /* messages then name it as they name a Python class */
    if (!name || !tnpy_Tensor ||
        PyObject_SetAttrString((PyObject *)tnpy_Tensor, "__name__", name)) {
        Py_XDECREF(name);
        return -1;
    }
    Py_DECREF(name);
    if (PyModule_AddObjectRef(module, "Tensor", (PyObject *)tnpy_Tensor) ||
        PyModule_AddObjectRef(module, "TensorBase", (PyObject *)tnpy_Tensor))
        return -1;
    return add_class_methods() || add_methods(tnpy_tensor_methods) || add_methods(tnpy_methods) ||
                   tnpy_prepare_operators()
               ? -1
               : 0;
}
