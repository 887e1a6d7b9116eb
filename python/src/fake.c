/* SPDX-License-Identifier: MIT */
/* fake.c: fake tensors and their modes, for python/tenon/_subclasses. */
#include "opcall.h"

#include "tenon/fake.h"

#include <string.h>

typedef struct mode_object {
    PyObject_HEAD tn_fake_mode *mode;
    PyObject *owner; /* the FakeTensorMode, borrowed: it has us */
} mode_object;

static PyTypeObject *mode_type;
/* {address: the object}, borrowed both: an object takes itself off. */
static PyObject *known;

static mode_object *self_of(PyObject *o)
{
    return (mode_object *)(void *)o;
}

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    int allow = 0;
    if (!PyArg_ParseTuple(args, "|p:_FakeMode", &allow))
        return NULL;
    tn_fake_opts opts = TN_FAKE_OPTS_INIT;
    opts.allow_non_fake_inputs = allow != 0;
    tn_fake_mode *mode;
    tn_status st = tn_fake_mode_new(&opts, &mode);
    if (st != TN_OK)
        return tnpy_raise(st);
    mode_object *self = PyObject_New(mode_object, type);
    PyObject *key = self ? PyLong_FromVoidPtr(mode) : NULL;
    PyObject *value = key ? PyLong_FromVoidPtr(self) : NULL;
    if (self) {
        self->mode = mode;
        self->owner = NULL;
    } else {
        tn_fake_mode_unref(mode);
    }
    if (!value || PyDict_SetItem(known, key, value))
        Py_CLEAR(self);
    Py_XDECREF(key);
    Py_XDECREF(value);
    return (PyObject *)self;
}

static void let_go(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    PyObject *error[3]; /* what is being raised stays */
    PyErr_Fetch(&error[0], &error[1], &error[2]);
    PyObject *key = PyLong_FromVoidPtr(self_of(o)->mode);
    if (!key || PyDict_DelItem(known, key))
        PyErr_Clear();
    Py_XDECREF(key);
    PyErr_Restore(error[0], error[1], error[2]);
    tn_fake_mode_unref(self_of(o)->mode);
    PyObject_Free(o);
    Py_DECREF(type);
}

/* What a mode of C is in Python: the FakeTensorMode that made it, else None. */
static PyObject *owner_of(tn_fake_mode *mode)
{
    PyObject *key = mode ? PyLong_FromVoidPtr(mode) : NULL;
    PyObject *value = key ? PyDict_GetItemWithError(known, key) : NULL;
    Py_XDECREF(key);
    mode_object *self = value ? PyLong_AsVoidPtr(value) : NULL;
    return Py_NewRef(self && self->owner ? self->owner : Py_None);
}

static PyObject *belongs_to(PyObject *o, PyObject *owner)
{
    self_of(o)->owner = owner;
    return Py_NewRef(Py_None);
}

static const char fake_guard[] = "tenon.fake_guard";

/* A guard, for leave(). */
static PyObject *enter_mode(tn_fake_mode *mode)
{
    void *room;
    PyObject *capsule = tnpy_guard_new(fake_guard, sizeof(tn_fake_guard), &room);
    if (capsule)
        *(tn_fake_guard *)room = tn_fake_enter(mode);
    return capsule;
}

static PyObject *enter(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    return enter_mode(self_of(o)->mode);
}

static PyObject *enter_none(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return enter_mode(NULL);
}

static PyObject *leave(PyObject *self, PyObject *capsule)
{
    (void)self;
    tn_fake_guard *guard = PyCapsule_GetPointer(capsule, fake_guard);
    if (!guard)
        return NULL;
    tn_fake_leave(*guard);
    *guard = (tn_fake_guard){NULL, 0};
    return Py_NewRef(Py_None);
}

static PyObject *from_tensor(PyObject *o, PyObject *real)
{
    tn_tensor *t = tnpy_tensor(real), *fake;
    if (!t) {
        PyErr_SetString(PyExc_TypeError, "from_tensor(): expected a Tensor");
        return NULL;
    }
    tn_status st = tn_fake_from_real(self_of(o)->mode, t, &fake);
    return st == TN_OK ? tnpy_wrap(fake) : tnpy_raise(st);
}

static PyObject *is_fake(PyObject *self, PyObject *o)
{
    (void)self;
    tn_tensor *t = tnpy_tensor(o);
    return PyBool_FromLong(t && tn_is_fake(t));
}

static PyObject *mode_of(PyObject *self, PyObject *o)
{
    (void)self;
    tn_tensor *t = tnpy_tensor(o);
    return owner_of(t ? tn_fake_mode_of(t) : NULL);
}

static PyObject *current(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return owner_of(tn_fake_mode_current());
}

static PyObject *constant(PyObject *self, PyObject *o)
{
    (void)self;
    tn_tensor *t = tnpy_tensor(o), *known_values = NULL;
    tn_status st = t && tn_is_fake(t) ? tn_fake_constant(t, &known_values) : TN_OK;
    return st == TN_OK ? tnpy_wrap(known_values) : tnpy_raise(st);
}

tn_status tnpy_needs_values(void)
{
    return tn_fail(TN_INVALID, "aten._local_scalar_dense.default: its result depends on values, "
                               "which a fake tensor does not have");
}

/* ---- attributes that only fake tensors have ---- */

static tn_tensor *fake_of(PyObject *o, const char *name)
{
    tn_tensor *t = tnpy_tensor(o);
    if (t && tn_is_fake(t))
        return t;
    char type[128];
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%s'",
                 tnpy_type_name(o, type, sizeof type), name);
    return NULL;
}

static PyObject *get_device(PyObject *o, void *closure)
{
    (void)closure;
    tn_tensor *t = fake_of(o, "fake_device");
    return t ? tnpy_device(tn_fake_device(t)) : NULL;
}

static PyObject *get_mode(PyObject *o, void *closure)
{
    (void)closure;
    tn_tensor *t = fake_of(o, "fake_mode");
    return t ? owner_of(tn_fake_mode_of(t)) : NULL;
}

static PyObject *get_constant(PyObject *o, void *closure)
{
    (void)closure;
    return fake_of(o, "constant") ? constant(NULL, o) : NULL;
}

static PyGetSetDef attributes[] = {
    {"fake_device", get_device, NULL, "Of a fake tensor: the device that it pretends.", NULL},
    {"fake_mode", get_mode, NULL, "Of a fake tensor: its mode.", NULL},
    {"constant", get_constant, NULL, "Of a fake tensor: its values, where they are known.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static int add_attributes(void)
{
    for (PyGetSetDef *d = attributes; d->name; d++) {
        PyObject *made = PyDescr_NewGetSet(tnpy_Tensor, d);
        if (!made || PyObject_SetAttrString((PyObject *)tnpy_Tensor, d->name, made)) {
            Py_XDECREF(made);
            return -1;
        }
        Py_DECREF(made);
    }
    return 0;
}

static PyMethodDef methods[] = {
    {"belongs_to", belongs_to, METH_O, NULL},
    {"enter", enter, METH_NOARGS, NULL},
    {"from_tensor", from_tensor, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot slots[] = {
    {Py_tp_new, make},
    {Py_tp_dealloc, let_go},
    {Py_tp_methods, methods},
    {0, NULL},
};
static PyType_Spec spec = {"tenon._C._FakeMode", sizeof(mode_object), 0, Py_TPFLAGS_DEFAULT, slots};

static PyMethodDef functions[] = {
    {"_fake_enter_none", enter_none, METH_NOARGS, NULL},
    {"_fake_leave", leave, METH_O, NULL},
    {"_is_fake", is_fake, METH_O, "_is_fake(o) -> bool"},
    {"_fake_mode_of", mode_of, METH_O, NULL},
    {"_fake_mode_current", current, METH_NOARGS, NULL},
    {"_fake_constant", constant, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_fake(PyObject *module)
{
    known = PyDict_New();
    mode_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!known || !mode_type || add_attributes() ||
        PyModule_AddObjectRef(module, "_FakeMode", (PyObject *)mode_type))
        return -1;
    return PyModule_AddFunctions(module, functions);
}
