/* SPDX-License-Identifier: MIT */
/* types.c: dtype, layout, memory_format and Size: plain values that are the same object each time.
 */
#include "tnpy.h"

#include <string.h>

typedef struct constant_object {
    PyObject_HEAD int value;
    const char *name;
} constant_object;

static PyTypeObject *dtype_type, *layout_type, *format_type;
static PyObject *dtypes[TN_DTYPE_LIMIT], *formats[4], *strided;
PyTypeObject *tnpy_Size;

static PyObject *constant(PyTypeObject *type, int value, const char *name)
{
    constant_object *o = PyObject_New(constant_object, type);
    if (o) {
        o->value = value;
        o->name = name;
    }
    return (PyObject *)o;
}

static void constant_dealloc(PyObject *o)
{
    PyTypeObject *type = Py_TYPE(o);
    PyObject_Free(o);
    Py_DECREF(type);
}

static PyObject *constant_repr(PyObject *o)
{
    return PyUnicode_FromFormat("%s.%s", tnpy_module_name(), ((constant_object *)(void *)o)->name);
}

/* Pickled by name: it is an attribute of the module that its type says. */
static PyObject *constant_reduce(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    return PyUnicode_FromString(((constant_object *)(void *)o)->name);
}

static PyObject *constant_same(PyObject *o, PyObject *args)
{
    (void)args;
    return Py_NewRef(o);
}

/* ---- dtype ---- */

PyObject *tnpy_dtype(tn_dtype dtype)
{
    PyObject *o = dtype >= 0 && dtype < TN_DTYPE_LIMIT ? dtypes[dtype] : NULL;
    return Py_NewRef(o ? o : Py_None);
}

int tnpy_is_dtype(PyObject *o)
{
    return Py_TYPE(o) == dtype_type || o == (PyObject *)&PyFloat_Type ||
           o == (PyObject *)&PyLong_Type || o == (PyObject *)&PyBool_Type ||
           o == (PyObject *)&PyComplex_Type;
}

static tn_dtype complex_of(tn_dtype d)
{
    switch (d) {
    case TN_DTYPE_F32:
    case TN_DTYPE_BF16:
        return TN_DTYPE_C64;
    case TN_DTYPE_F64:
        return TN_DTYPE_C128;
    case TN_DTYPE_C64:
    case TN_DTYPE_C128:
        return d;
    default:
        return TN_DTYPE_NONE;
    }
}

int tnpy_dtype_of(PyObject *o, tn_dtype *out)
{
    if (TNPY_LIKELY(Py_TYPE(o) == dtype_type)) {
        *out = (tn_dtype)((constant_object *)(void *)o)->value;
        return 0;
    }
    if (o == (PyObject *)&PyFloat_Type)
        *out = TN_DTYPE_F64;
    else if (o == (PyObject *)&PyLong_Type)
        *out = TN_DTYPE_I64;
    else if (o == (PyObject *)&PyBool_Type)
        *out = TN_DTYPE_BOOL;
    else if (o == (PyObject *)&PyComplex_Type)
        *out = TN_DTYPE_C128;
    else {
        char name[128];
        PyErr_Format(PyExc_TypeError, "expected a dtype, but got %s",
                     tnpy_type_name(o, name, sizeof name));
        return -1;
    }
    return 0;
}

static tn_dtype value_of(PyObject *o)
{
    return (tn_dtype)((constant_object *)(void *)o)->value;
}

static PyObject *dtype_is_floating(PyObject *o, void *closure)
{
    (void)closure;
    return PyBool_FromLong(tn_dtype_is_floating(value_of(o)));
}

static PyObject *dtype_is_complex(PyObject *o, void *closure)
{
    (void)closure;
    return PyBool_FromLong(tn_dtype_is_complex(value_of(o)));
}

static PyObject *dtype_is_signed(PyObject *o, void *closure)
{
    (void)closure;
    tn_dtype d = value_of(o);
    bool is_unsigned = d == TN_DTYPE_U8 || d == TN_DTYPE_BOOL ||
                       (TN_DTYPE_IS_LIMITED(d) && !tn_dtype_is_floating(d));
    return PyBool_FromLong(!is_unsigned);
}

static PyObject *dtype_itemsize(PyObject *o, void *closure)
{
    (void)closure;
    return PyLong_FromSize_t(tn_dtype_size(value_of(o)));
}

/* The name that errors have for a dtype of whole numbers. */
static const char *whole_name(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_BOOL:
        return "Bool";
    case TN_DTYPE_U8:
        return "Byte";
    case TN_DTYPE_I8:
        return "Char";
    case TN_DTYPE_I16:
        return "Short";
    case TN_DTYPE_I32:
        return "Int";
    case TN_DTYPE_I64:
        return "Long";
    case TN_DTYPE_U16:
        return "UInt16";
    case TN_DTYPE_U32:
        return "UInt32";
    default:
        return "UInt64";
    }
}

static PyObject *dtype_to_complex(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    tn_dtype d = complex_of(value_of(o));
    if (d == TN_DTYPE_NONE && value_of(o) == TN_DTYPE_F16) {
        PyErr_SetString(PyExc_RuntimeError, "ComplexHalf is not supported");
        return NULL;
    }
    if (d == TN_DTYPE_NONE && tn_dtype_is_integral(value_of(o), true)) {
        PyErr_Format(PyExc_RuntimeError, "Unknown Complex ScalarType for %s",
                     whole_name(value_of(o)));
        return NULL;
    }
    return tnpy_dtype(d == TN_DTYPE_NONE ? TN_DTYPE_C64 : d);
}

static PyObject *dtype_to_real(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    tn_dtype d = value_of(o);
    return tnpy_dtype(d == TN_DTYPE_C64 ? TN_DTYPE_F32 : d == TN_DTYPE_C128 ? TN_DTYPE_F64 : d);
}

static PyMethodDef dtype_methods[] = {
    {"__reduce__", constant_reduce, METH_NOARGS, NULL},
    {"__copy__", constant_same, METH_NOARGS, NULL},
    {"__deepcopy__", constant_same, METH_O, NULL},
    {"to_complex", dtype_to_complex, METH_NOARGS, "to_complex() -> dtype"},
    {"to_real", dtype_to_real, METH_NOARGS, "to_real() -> dtype"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef dtype_getset[] = {
    {"is_floating_point", dtype_is_floating, NULL, NULL, NULL},
    {"is_complex", dtype_is_complex, NULL, NULL, NULL},
    {"is_signed", dtype_is_signed, NULL, NULL, NULL},
    {"itemsize", dtype_itemsize, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot dtype_slots[] = {
    {Py_tp_dealloc, constant_dealloc}, {Py_tp_repr, constant_repr},
    {Py_tp_methods, dtype_methods},    {Py_tp_getset, dtype_getset},
    {Py_tp_doc, "Type of elements"},   {0, NULL},
};
static PyType_Spec dtype_spec = {"tenon.dtype", sizeof(constant_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 dtype_slots};

/* ---- layout, memory_format ---- */

static PyMethodDef constant_methods[] = {
    {"__reduce__", constant_reduce, METH_NOARGS, NULL},
    {"__copy__", constant_same, METH_NOARGS, NULL},
    {"__deepcopy__", constant_same, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot constant_slots[] = {
    {Py_tp_dealloc, constant_dealloc},
    {Py_tp_repr, constant_repr},
    {Py_tp_methods, constant_methods},
    {0, NULL},
};
static PyType_Spec layout_spec = {"tenon.layout", sizeof(constant_object), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  constant_slots};
static PyType_Spec format_spec = {"tenon.memory_format", sizeof(constant_object), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  constant_slots};

PyObject *tnpy_layout(tn_layout layout)
{
    return Py_NewRef(layout == TN_LAYOUT_STRIDED ? strided : Py_None);
}

int tnpy_is_layout(PyObject *o)
{
    return Py_TYPE(o) == layout_type;
}

int tnpy_layout_of(PyObject *o, tn_layout *out)
{
    if (!tnpy_is_layout(o)) {
        PyErr_SetString(PyExc_TypeError, "expected a layout");
        return -1;
    }
    if (((constant_object *)(void *)o)->value != TN_LAYOUT_STRIDED) {
        PyErr_Format(PyExc_NotImplementedError, "tensors of layout %R are not supported", o);
        return -1;
    }
    *out = TN_LAYOUT_STRIDED;
    return 0;
}

PyObject *tnpy_format(tn_memory_format format)
{
    return Py_NewRef(format >= 0 && format < 4 ? formats[format] : Py_None);
}

int tnpy_is_format(PyObject *o)
{
    return Py_TYPE(o) == format_type;
}

int tnpy_format_of(PyObject *o, tn_memory_format *out)
{
    if (!tnpy_is_format(o)) {
        PyErr_SetString(PyExc_TypeError, "expected a memory_format");
        return -1;
    }
    *out = (tn_memory_format)((constant_object *)(void *)o)->value;
    return 0;
}

/* ---- Size ---- */

static allocfunc size_alloc;

PyObject *tnpy_size(const int64_t *sizes, int n)
{
    PyObject *o = size_alloc(tnpy_Size, n);
    for (int i = 0; o && i < n; i++) {
        PyObject *item = PyLong_FromLongLong(sizes[i]);
        if (!item)
            Py_CLEAR(o);
        else
            PyTuple_SetItem(o, i, item);
    }
    return o;
}

static PyObject *size_of_tuple(PyObject *tuple)
{
    if (!tuple || !PyTuple_Check(tuple))
        return tuple;
    PyObject *o = PyObject_CallFunctionObjArgs((PyObject *)tnpy_Size, tuple, NULL);
    Py_DECREF(tuple);
    return o;
}

static PyObject *size_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    newfunc base = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    PyObject *self = base(type, args, kwargs);
    Py_ssize_t n = self ? PyTuple_Size(self) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(self, i);
        if (PyLong_Check(item))
            continue;
        PyObject *index = PyIndex_Check(item) ? PyNumber_Index(item) : NULL;
        if (!index) {
            char name[128];
            PyErr_Format(PyExc_TypeError, "%s.Size() takes an iterable of 'int' (item %zd is '%s')",
                         tnpy_module_name(), i, tnpy_type_name(item, name, sizeof name));
            Py_DECREF(self);
            return NULL;
        }
        PyTuple_SetItem(self, i, index);
    }
    return self;
}

static PyObject *size_repr(PyObject *o)
{
    PyObject *list = PySequence_List(o);
    if (!list)
        return NULL;
    PyObject *text = PyUnicode_FromFormat("%s.Size(%R)", tnpy_module_name(), list);
    Py_DECREF(list);
    return text;
}

static PyObject *size_numel(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(o); i++)
        n *= PyLong_AsLongLong(PyTuple_GetItem(o, i));
    return PyErr_Occurred() ? NULL : PyLong_FromLongLong(n);
}

static PyObject *size_concat(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(b)) {
        PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(b), "__name__");
        if (name)
            PyErr_Format(PyExc_TypeError, "can only concatenate tuple (not %U) to torch.Size",
                         name);
        Py_XDECREF(name);
        return NULL;
    }
    binaryfunc base = (binaryfunc)PyType_GetSlot(&PyTuple_Type, Py_sq_concat);
    return size_of_tuple(base(a, b));
}

/* With a plain tuple on the left, whose own concatenation would give a plain one. */
static PyObject *size_add(PyObject *a, PyObject *b)
{
    if (!PyTuple_Check(a) || !PyTuple_Check(b))
        Py_RETURN_NOTIMPLEMENTED;
    return size_concat(a, b);
}

static PyObject *size_repeat(PyObject *a, Py_ssize_t n)
{
    ssizeargfunc base = (ssizeargfunc)PyType_GetSlot(&PyTuple_Type, Py_sq_repeat);
    return size_of_tuple(base(a, n));
}

static PyObject *size_subscript(PyObject *a, PyObject *key)
{
    binaryfunc base = (binaryfunc)PyType_GetSlot(&PyTuple_Type, Py_mp_subscript);
    PyObject *found = base(a, key);
    return PySlice_Check(key) ? size_of_tuple(found) : found;
}

static PyObject *size_reduce(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    PyObject *list = PySequence_List(o);
    PyObject *tuple = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return tuple ? Py_BuildValue("(O(N))", tnpy_Size, tuple) : NULL;
}

static PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS,
     "numel() -> int\n\nHow many elements a tensor of this size has."},
    {"__reduce__", size_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot size_slots[] = {
    {Py_tp_new, size_new},
    {Py_tp_repr, size_repr},
    {Py_tp_methods, size_methods},
    {Py_nb_add, size_add},
    {Py_sq_concat, size_concat},
    {Py_sq_repeat, size_repeat},
    {Py_mp_subscript, size_subscript},
    {Py_tp_doc, "Size(iterable)\n\nSizes of a tensor: a tuple."},
    {0, NULL},
};
static PyType_Spec size_spec = {"tenon.Size", 0, 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
                                size_slots};

/* ---- functions ---- */

static PyObject *get_default_dtype(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return tnpy_dtype(tn_default_dtype());
}

static PyObject *set_default_dtype(PyObject *self, PyObject *o)
{
    (void)self;
    tn_dtype d;
    if (!tnpy_is_dtype(o)) {
        PyErr_SetString(
            PyExc_TypeError,
            "invalid dtype object: only floating-point types are supported as the default type");
        return NULL;
    }
    if (tnpy_dtype_of(o, &d))
        return NULL;
    if (!tn_dtype_is_floating(d)) {
        PyErr_Format(PyExc_TypeError,
                     "only floating-point types are supported as the default type");
        return NULL;
    }
    tn_status st = tn_set_default_dtype(d);
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

static int two_dtypes(const char *name, PyObject *a, const char *first, PyObject *b,
                      const char *second, tn_dtype *x, tn_dtype *y)
{
    for (int i = 0; i < 2; i++)
        if (!tnpy_is_dtype(i ? b : a)) {
            char type[128];
            PyErr_Format(PyExc_TypeError,
                         "%s(): argument '%s' (position %d) must be %s.dtype, not %s", name,
                         i ? second : first, i + 1, tnpy_module_name(),
                         tnpy_type_name(i ? b : a, type, sizeof type));
            return -1;
        }
    return tnpy_dtype_of(a, x) || tnpy_dtype_of(b, y) ? -1 : 0;
}

static PyObject *promote_types(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *a, *b;
    tn_dtype x, y;
    if (!PyArg_ParseTuple(args, "OO:promote_types", &a, &b) ||
        two_dtypes("promote_types", a, "type1", b, "type2", &x, &y))
        return NULL;
    tn_status st = tn_promote_two_types(x, y, &x);
    return st == TN_OK ? tnpy_dtype(x) : tnpy_raise(st);
}

/* bool < integers < floats < complex: a value may go up, not down. */
static int category(tn_dtype d)
{
    return tn_dtype_is_complex(d) ? 3 : tn_dtype_is_floating(d) ? 2 : d == TN_DTYPE_BOOL ? 0 : 1;
}

static PyObject *can_cast(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    static char *names[] = {"from_", "to", NULL};
    PyObject *a, *b;
    tn_dtype from, to;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:can_cast", names, &a, &b) ||
        two_dtypes("can_cast", a, "from_", b, "to", &from, &to))
        return NULL;
    return PyBool_FromLong(category(from) <= category(to));
}

static PyObject *set_fill_empty(PyObject *self, PyObject *on)
{
    (void)self;
    tn_set_fill_empty(on == Py_True);
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"_set_fill_empty", set_fill_empty, METH_O,
     "_set_fill_empty(on)\n\nWhether memory that nobody wrote is marked."},
    {"get_default_dtype", get_default_dtype, METH_NOARGS, "get_default_dtype() -> dtype"},
    {"set_default_dtype", set_default_dtype, METH_O,
     "set_default_dtype(d)\n\nWhat a bare float becomes."},
    {"promote_types", promote_types, METH_VARARGS, "promote_types(type1, type2) -> dtype"},
    {"can_cast", (PyCFunction)(void (*)(void))can_cast, METH_VARARGS | METH_KEYWORDS,
     "can_cast(from_, to) -> bool"},
    {NULL, NULL, 0, NULL},
};

static int add_dtypes(PyObject *module)
{
    static const struct {
        const char *name;
        tn_dtype dtype;
    } names[] = {
#define X(name, number, bytes, category, py, text, cpp) {py, TN_DTYPE_##name},
        TN_DTYPE_LIST(X)
#undef X
            {"float", TN_DTYPE_F32},
        {"double", TN_DTYPE_F64},
        {"half", TN_DTYPE_F16},
        {"long", TN_DTYPE_I64},
        {"int", TN_DTYPE_I32},
        {"short", TN_DTYPE_I16},
        {"cfloat", TN_DTYPE_C64},
        {"cdouble", TN_DTYPE_C128},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tn_dtype d = names[i].dtype;
        if (!dtypes[d])
            dtypes[d] = constant(dtype_type, d, names[i].name);
        if (!dtypes[d] || PyModule_AddObjectRef(module, names[i].name, dtypes[d]))
            return -1;
    }
    return 0;
}

static int add_constants(PyObject *module)
{
    static const struct {
        const char *name;
        int layout;
    } layouts[] = {{"strided", TN_LAYOUT_STRIDED},
                   {"sparse_coo", 1},
                   {"sparse_csr", 2},
                   {"sparse_csc", 4},
                   {"sparse_bsr", 5},
                   {"sparse_bsc", 6},
                   {"_mkldnn", 3},
                   {"jagged", 7}};
    static const char *const names[] = {"contiguous_format", "preserve_format", "channels_last",
                                        "channels_last_3d"};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        PyObject *o = constant(layout_type, layouts[i].layout, layouts[i].name);
        if (!o || PyModule_AddObjectRef(module, layouts[i].name, o))
            return -1;
        if (layouts[i].layout == TN_LAYOUT_STRIDED)
            strided = Py_NewRef(o);
        Py_DECREF(o);
    }
    for (int i = 0; i < 4; i++) {
        formats[i] = constant(format_type, i, names[i]);
        if (!formats[i] || PyModule_AddObjectRef(module, names[i], formats[i]))
            return -1;
    }
    return 0;
}

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec, const char *name)
{
    PyObject *type = PyType_FromSpec(spec);
    if (type && PyModule_AddObjectRef(module, name, type))
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}

int tnpy_add_types(PyObject *module)
{
    dtype_type = add_type(module, &dtype_spec, "dtype");
    layout_type = add_type(module, &layout_spec, "layout");
    format_type = add_type(module, &format_spec, "memory_format");
    if (!dtype_type || !layout_type || !format_type || add_dtypes(module) || add_constants(module))
        return -1;
    PyObject *bases = PyTuple_Pack(1, &PyTuple_Type);
    tnpy_Size = bases ? (PyTypeObject *)PyType_FromSpecWithBases(&size_spec, bases) : NULL;
    Py_XDECREF(bases);
    if (!tnpy_Size || PyModule_AddObjectRef(module, "Size", (PyObject *)tnpy_Size))
        return -1;
    size_alloc = (allocfunc)PyType_GetSlot(tnpy_Size, Py_tp_alloc);
    return PyModule_AddFunctions(module, functions);
}
