/* SPDX-License-Identifier: MIT */
/* generator.c: tenon.Generator and the process's own generator. */
#include "tnpy.h"

#include <string.h>
#include <sys/random.h>

typedef struct generator_object {
    PyObject_HEAD tn_generator *g;
} generator_object;

static PyTypeObject *generator_type;

/* Of `type`, which is Generator or a class below it. Takes `g`. */
static PyObject *generator_as(PyTypeObject *type, TN_STOLEN tn_generator *g)
{
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *o = allocate(type, 0);
    if (!o)
        tn_generator_unref(g);
    else
        ((generator_object *)(void *)o)->g = g;
    return o;
}

PyObject *tnpy_generator(tn_generator *g)
{
    return generator_as(generator_type, g);
}

tn_generator *tnpy_generator_of(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    return type == generator_type || PyType_IsSubtype(type, generator_type)
               ? ((generator_object *)(void *)o)->g
               : NULL;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"device", NULL};
    PyObject *device = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", names, &device))
        return NULL;
    tn_device d = TN_CPU;
    if (device && device != Py_None && tnpy_device_of(device, &d))
        return NULL;
    if (d.type != TN_DEVICE_CPU) {
        char room[32];
        PyErr_Format(PyExc_RuntimeError,
                     "Device type %s is not supported for torch.Generator() api.",
                     tn_device_format(d, room, sizeof room));
        return NULL;
    }
    tn_generator *g;
    tn_status st = tn_generator_new(67280421310721ULL, &g); /* torch's seed of a new generator */
    return st == TN_OK ? generator_as(type, g) : tnpy_raise(st);
}

static void generator_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    tn_generator_unref(((generator_object *)(void *)o)->g);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(o);
    Py_DECREF(type);
}

static int seed_of(PyObject *o, uint64_t *out)
{
    PyObject *i = PyNumber_Long(o);
    if (!i)
        return -1;
    int over = 0;
    long long value = PyLong_AsLongLongAndOverflow(i, &over);
    *out = (uint64_t)value;
    if (over) {
        *out = PyLong_AsUnsignedLongLong(i);
        if (PyErr_Occurred()) {
            PyErr_Clear();
            PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        }
    }
    Py_DECREF(i);
    return PyErr_Occurred() ? -1 : 0;
}

static tn_generator *of_self(PyObject *self)
{
    tn_generator *g = self ? tnpy_generator_of(self) : NULL;
    return g ? g : tn_default_generator();
}

static PyObject *manual_seed(PyObject *self, PyObject *o)
{
    uint64_t seed;
    if (seed_of(o, &seed))
        return NULL;
    tn_generator_seed(of_self(self), seed);
    if (tnpy_generator_of(self))
        return Py_NewRef(self);
    return tnpy_generator(tn_generator_ref(tn_default_generator()));
}

static PyObject *seed(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    uint64_t value = 0;
    if (getrandom(&value, sizeof value, 0) != (ssize_t)sizeof value)
        return PyErr_SetFromErrno(PyExc_OSError);
    value &= 0x1fffffffffffffULL; /* torch's seeds fit a double */
    tn_generator_seed(of_self(self), value);
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *initial_seed(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    return PyLong_FromUnsignedLongLong(tn_generator_get_state(of_self(self)).seed);
}

static PyObject *get_state(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    tn_generator_state state = tn_generator_get_state(of_self(self));
    tn_tensor *t;
    tn_status st = tn_tensor_from_data(&state, 1, &(int64_t){sizeof state}, TN_DTYPE_U8, &t);
    return st == TN_OK ? tnpy_wrap(t) : tnpy_raise(st);
}

static PyObject *set_state(PyObject *self, PyObject *o)
{
    tn_tensor *t = tnpy_tensor(o);
    if (!t) {
        char name[128];
        PyErr_Format(PyExc_TypeError, "expected a torch.ByteTensor, but got %s",
                     tnpy_type_name(o, name, sizeof name));
        return NULL;
    }
    tn_generator_state state;
    if (tn_tensor_dtype(t) != TN_DTYPE_U8) {
        PyErr_SetString(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
        return NULL;
    }
    if (tn_tensor_nbytes(t) != sizeof state || !tn_tensor_const_data(t) ||
        !tn_tensor_is_contiguous(t, TN_FORMAT_CONTIGUOUS)) {
        PyErr_SetString(PyExc_RuntimeError, "RNG state is wrong size");
        return NULL;
    }
    memcpy(&state, tn_tensor_const_data(t), sizeof state);
    tn_generator_set_state(of_self(self), state);
    return tnpy_generator_of(self) ? Py_NewRef(self) : Py_NewRef(Py_None);
}

static PyObject *clone_state(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    tn_generator *g;
    tn_status st = tn_generator_new(0, &g);
    if (st != TN_OK)
        return tnpy_raise(st);
    tn_generator_set_state(g, tn_generator_get_state(of_self(self)));
    return tnpy_generator(g);
}

/* For pickle and copy: another generator that goes on from here. */
static PyObject *reduce(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    tn_generator_state state = tn_generator_get_state(of_self(self));
    PyObject *bytes = PyBytes_FromStringAndSize((const char *)&state, sizeof state);
    return bytes ? Py_BuildValue("O()N", (PyObject *)Py_TYPE(self), bytes) : NULL;
}

static PyObject *take_state(PyObject *self, PyObject *o)
{
    tn_generator_state state;
    char *from;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(o, &from, &size) < 0)
        return NULL;
    if (size != (Py_ssize_t)sizeof state) {
        PyErr_SetString(PyExc_RuntimeError, "RNG state is wrong size");
        return NULL;
    }
    memcpy(&state, from, sizeof state);
    tn_generator_set_state(of_self(self), state);
    return Py_NewRef(Py_None);
}

static PyObject *get_device(PyObject *self, void *closure)
{
    (void)self;
    (void)closure;
    return tnpy_device(TN_CPU);
}

static PyObject *repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%s._C.Generator object at %p>", tnpy_module_name(), (void *)self);
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    tn_generator *x = tnpy_generator_of(a), *y = tnpy_generator_of(b);
    if (!x || !y || (op != Py_EQ && op != Py_NE))
        return Py_NewRef(Py_NotImplemented);
    return PyBool_FromLong((x == y) == (op == Py_EQ));
}

static Py_hash_t hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)tnpy_generator_of(self) >> 4);
}

static PyMethodDef methods[] = {
    {"manual_seed", manual_seed, METH_O, "manual_seed(seed) -> Generator"},
    {"seed", seed, METH_NOARGS, "seed() -> int\n\nA seed from the system."},
    {"initial_seed", initial_seed, METH_NOARGS, "initial_seed() -> int"},
    {"get_state", get_state, METH_NOARGS, "get_state() -> Tensor"},
    {"set_state", set_state, METH_O, "set_state(state)"},
    {"clone_state", clone_state, METH_NOARGS, "clone_state() -> Generator"},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"__setstate__", take_state, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"device", get_device, NULL, "device of the generator", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, generator_new},
    {Py_tp_dealloc, generator_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_repr, repr},
    {Py_tp_richcompare, compare},
    {Py_tp_hash, hash},
    {Py_tp_doc, "Generator(device='cpu')\n\nRandom numbers: a seed and a counter."},
    {0, NULL},
};
static PyType_Spec spec = {"tenon.Generator", sizeof(generator_object), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

static PyMethodDef functions[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed(seed) -> Generator\n\nSeed the default generator."},
    {"seed", seed, METH_NOARGS, "seed() -> int"},
    {"initial_seed", initial_seed, METH_NOARGS, "initial_seed() -> int"},
    {"get_rng_state", get_state, METH_NOARGS, "get_rng_state() -> Tensor"},
    {"set_rng_state", set_state, METH_O, "set_rng_state(new_state)"},
    {NULL, NULL, 0, NULL},
};

int tnpy_add_generator(PyObject *module)
{
    generator_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (!generator_type || PyModule_AddObjectRef(module, "Generator", (PyObject *)generator_type))
        return -1;
    PyObject *standard = tnpy_generator(tn_generator_ref(tn_default_generator()));
    if (!standard || PyModule_AddObjectRef(module, "default_generator", standard)) {
        Py_XDECREF(standard);
        return -1;
    }
    Py_DECREF(standard);
    return PyModule_AddFunctions(module, functions);
}
