/* SPDX-License-Identifier: MIT */
/* method.c: methods of Tensor that are no operators, or whose arguments no schema describes. */
#include "dimname.h"
#include "tenon/names.h"
#include "grad.h"
#include "override.h"
#include "type.h"

#include <string.h>

/* Unless the class of the tensor or a mode wants to answer. */
#define OVERRIDE(name, args, kwargs)                                             \
    if (TNPY_UNLIKELY(tnpy_function_on(o) || tnpy_stranger_among(args, kwargs))) \
    return tnpy_override_method(o, name, args, kwargs)

/* A result, of the class of the tensor that it comes from. */
static PyObject *wrapped(PyObject *o, tn_status st, tn_tensor *out)
{
    return st == TN_OK ? tnpy_wrap_kept(tnpy_kept_class(o), out) : tnpy_raise(st);
}

/* ---- sizes ---- */

/* A call of size() or stride() with something else than one dimension. */
static PyObject *no_such_call(const char *name, PyObject *args, PyObject *kwargs)
{
    char type[128];
    PyObject *word, *value, *given = PyUnicode_FromString("");
    Py_ssize_t n = PyTuple_Size(args), at = 0;
    PyErr_Clear();
    for (Py_ssize_t i = 0; given && i < n; i++)
        PyUnicode_AppendAndDel(&given, PyUnicode_FromFormat("%s%s", i ? ", " : "",
                                                            tnpy_type_name(PyTuple_GetItem(args, i),
                                                                           type, sizeof type)));
    while (given && kwargs && PyDict_Next(kwargs, &at, &word, &value))
        PyUnicode_AppendAndDel(
            &given, PyUnicode_FromFormat("%s%U=%s%s", n ? ", " : "", word,
                                         tnpy_type_name(value, type, sizeof type), n ? "" : ", "));
    if (given)
        PyErr_Format(PyExc_TypeError,
                     "%s() received an invalid combination of arguments - got (%U), but expected "
                     "one of:\n * (int dim = None)\n * (name dim)\n",
                     name, given);
    Py_XDECREF(given);
    return NULL;
}

/* The dimension that size() or stride() is asked for: 1 where it is there, 0 where it is not, -1
 * with an error. */
static int dimension_asked(PyObject *o, const char *name, PyObject *args, PyObject *kwargs,
                           int64_t *out)
{
    static char *names[] = {"dim", NULL}, *numpy_names[] = {"axis", NULL};
    PyObject *dim = Py_None;
    bool axis = kwargs && PyDict_GetItemString(kwargs, "axis");
    int64_t d, size;
    bool parsed = PyArg_ParseTupleAndKeywords(args, kwargs, "|O", axis ? numpy_names : names, &dim);
    if (parsed && dim == Py_None)
        return 0;
    if (parsed && PyUnicode_Check(dim))
        return tnpy_find_name(tnpy_tensor(o), dim, out) ? -1 : 1;
    if (!parsed || PyBool_Check(dim) || tnpy_int_of(dim, &d)) {
        if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
            no_such_call(name, args, kwargs);
        return -1;
    }
    tn_tensor *t = tnpy_tensor(o);
    tn_status st = tn_tensor_size(t, d, &size);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    *out = d < 0 ? d + tn_tensor_ndim(t) : d;
    return 1;
}

static PyObject *size(PyObject *o, PyObject *args, PyObject *kwargs)
{
    OVERRIDE("size", args, kwargs);
    tn_tensor *t = tnpy_tensor(o);
    int64_t dim;
    int asked = dimension_asked(o, "size", args, kwargs, &dim);
    if (asked)
        return asked < 0 ? NULL : PyLong_FromLongLong(tn_tensor_sizes(t)[dim]);
    return tnpy_size(tn_tensor_sizes(t), tn_tensor_ndim(t));
}

static PyObject *stride(PyObject *o, PyObject *args, PyObject *kwargs)
{
    OVERRIDE("stride", args, kwargs);
    tn_tensor *t = tnpy_tensor(o);
    int64_t dim;
    int asked = dimension_asked(o, "stride", args, kwargs, &dim);
    if (asked)
        return asked < 0 ? NULL : PyLong_FromLongLong(tn_tensor_strides(t)[dim]);
    int n = tn_tensor_ndim(t);
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromLongLong(tn_tensor_strides(t)[i]));
    return tuple;
}

static PyObject *numel(PyObject *o, PyObject *nothing)
{
    OVERRIDE("numel", NULL, NULL);
    (void)nothing;
    return PyLong_FromLongLong(tn_tensor_numel(tnpy_tensor(o)));
}

static PyObject *dim(PyObject *o, PyObject *nothing)
{
    OVERRIDE("dim", NULL, NULL);
    (void)nothing;
    return PyLong_FromLong(tn_tensor_ndim(tnpy_tensor(o)));
}

static PyObject *storage_offset(PyObject *o, PyObject *nothing)
{
    OVERRIDE("storage_offset", NULL, NULL);
    (void)nothing;
    return PyLong_FromLongLong(tn_tensor_storage_offset(tnpy_tensor(o)));
}

static PyObject *element_size(PyObject *o, PyObject *nothing)
{
    OVERRIDE("element_size", NULL, NULL);
    (void)nothing;
    return PyLong_FromSize_t(tn_dtype_size(tn_tensor_dtype(tnpy_tensor(o))));
}

static PyObject *data_ptr(PyObject *o, PyObject *nothing)
{
    OVERRIDE("data_ptr", NULL, NULL);
    (void)nothing;
    return PyLong_FromVoidPtr(tn_tensor_data(tnpy_tensor(o)));
}

/* The only argument of method @p name, by its name alone. */
static int format_keyword(PyObject *args, PyObject *kwargs, const char *name, tn_memory_format *out)
{
    Py_ssize_t n = PyTuple_Size(args), at = 0;
    PyObject *word, *format;
    if (n) {
        PyErr_Format(PyExc_TypeError, "%s() takes 0 positional arguments but %zd %s given", name, n,
                     n == 1 ? "was" : "were");
        return -1;
    }
    while (kwargs && PyDict_Next(kwargs, &at, &word, &format)) {
        if (PyUnicode_CompareWithASCIIString(word, "memory_format")) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", name,
                         word);
            return -1;
        }
        if (format != Py_None && tnpy_format_of(format, out))
            return -1;
    }
    return 0;
}

static PyObject *is_contiguous(PyObject *o, PyObject *args, PyObject *kwargs)
{
    OVERRIDE("is_contiguous", args, kwargs);
    tn_memory_format format = TN_FORMAT_CONTIGUOUS;
    if (format_keyword(args, kwargs, "is_contiguous", &format))
        return NULL;
    return PyBool_FromLong(tn_tensor_is_contiguous(tnpy_tensor(o), format));
}

static PyObject *is_floating_point(PyObject *o, PyObject *nothing)
{
    OVERRIDE("is_floating_point", NULL, NULL);
    (void)nothing;
    return PyBool_FromLong(tn_dtype_is_floating(tn_tensor_dtype(tnpy_tensor(o))));
}

static PyObject *is_complex(PyObject *o, PyObject *nothing)
{
    OVERRIDE("is_complex", NULL, NULL);
    (void)nothing;
    return PyBool_FromLong(tn_dtype_is_complex(tn_tensor_dtype(tnpy_tensor(o))));
}

static PyObject *is_signed(PyObject *o, PyObject *nothing)
{
    OVERRIDE("is_signed", NULL, NULL);
    (void)nothing;
    tn_dtype d = tn_tensor_dtype(tnpy_tensor(o));
    bool is_unsigned = d == TN_DTYPE_U8 || d == TN_DTYPE_BOOL || d == TN_DTYPE_U16 ||
                       d == TN_DTYPE_U32 || d == TN_DTYPE_U64;
    return PyBool_FromLong(!is_unsigned);
}

static PyObject *is_inference(PyObject *o, PyObject *nothing)
{
    OVERRIDE("is_inference", NULL, NULL);
    (void)nothing;
    return PyBool_FromLong(tn_tensor_is_inference(tnpy_tensor(o)));
}

static PyObject *is_view(PyObject *o, PyObject *nothing)
{
    OVERRIDE("_is_view", NULL, NULL);
    (void)nothing;
    return PyBool_FromLong(tn_tensor_is_view(tnpy_tensor(o)));
}

/* What no tensor is. */
#define NEVER(name)                                       \
    static PyObject *name(PyObject *o, PyObject *nothing) \
    {                                                     \
        OVERRIDE(#name, NULL, NULL);                      \
        (void)nothing;                                    \
        return Py_NewRef(Py_False);                       \
    }
NEVER(is_conj)
NEVER(is_neg)
NEVER(is_distributed)

static PyObject *has_names(PyObject *o, PyObject *nothing)
{
    OVERRIDE("has_names", NULL, NULL);
    (void)nothing;
    return PyBool_FromLong(tn_tensor_has_names(tnpy_tensor(o)));
}

/* ---- gradients ---- */

static PyObject *requires_grad_(PyObject *o, PyObject *args, PyObject *kwargs)
{
    OVERRIDE("requires_grad_", args, kwargs);
    static char *names[] = {"requires_grad", NULL};
    PyObject *on = Py_True;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:requires_grad_", names, &on))
        return NULL;
    if (!PyBool_Check(on)) {
        char name[128];
        PyErr_Format(PyExc_TypeError,
                     "requires_grad_(): argument 'requires_grad' (position 1) must be bool, not %s",
                     tnpy_type_name(on, name, sizeof name));
        return NULL;
    }
    if (tnpy_transform_refuses(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using "
            "torch.autograd.functional.* APIs) inside of a function being transformed by a "
            "functorch transform. This is unsupported, please attempt to use the functorch "
            "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside "
            "of a function being transformed instead."))
        return NULL;
    tn_tensor *t = tnpy_tensor(o);
    if (on == Py_True && !tn_tensor_is_leaf(t)) /* it does already */
        return Py_NewRef(o);
    if (tn_tensor_is_leaf(t)) { /* not the attribute: its messages are others */
        tn_status st = tn_tensor_set_requires_grad(t, on == Py_True);
        return st == TN_OK ? Py_NewRef(o) : tnpy_raise(st);
    }
    return PyObject_SetAttrString(o, "requires_grad", on) ? NULL : Py_NewRef(o);
}

static PyObject *retain_grad(PyObject *o, PyObject *nothing)
{
    OVERRIDE("retain_grad", NULL, NULL);
    (void)nothing;
    if (tnpy_transform_refuses(
            "You are attempting to call Tensor.retain_grad() inside of a function being "
            "transformed by a functorch transform. This is unsupported, please attempt to use the "
            "functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call retain_grad() "
            "outside of a function being transformed instead."))
        return NULL;
    tn_status st = tn_tensor_retain_grad(tnpy_tensor(o));
    return st == TN_OK ? Py_NewRef(Py_None) : tnpy_raise(st);
}

/* ---- other dtypes and devices ---- */

typedef struct target {
    tn_dtype dtype;
    tn_device device;
    tn_memory_format format;
    int non_blocking, copy;
} target;

static PyObject *convert(PyObject *o, const target *to)
{
    tn_tensor *t = tnpy_tensor(o);
    tn_tensor_opts opts = TN_TENSOR_OPTS_INIT;
    opts.dtype = to->dtype;
    opts.device = to->device;
    if (to->dtype == TN_DTYPE_NONE && to->device.type != TN_DEVICE_NONE) { /* as it is told */
        opts.dtype = tn_tensor_dtype(t);
        opts.layout = TN_LAYOUT_STRIDED;
    }
    tn_tensor *out = NULL;
    tn_status st;
    if (tn_tensor_numel(t) < TNPY_LONG_WORK) {
        st = tn_to(t, &opts, to->non_blocking, to->copy, to->format, &out);
    } else {
        PyThreadState *state = tnpy_unlock();
        st = tn_to(t, &opts, to->non_blocking, to->copy, to->format, &out);
        tnpy_lock(state);
    }
    return wrapped(o, st, out);
}

static const target SAME = {TN_DTYPE_NONE, {TN_DEVICE_NONE, -1}, TN_FORMAT_NONE, 0, 0};

/* to(dtype), to(device[, dtype]), to(other), each with non_blocking, copy and memory_format. */
static PyObject *to(PyObject *o, PyObject *args, PyObject *kwargs)
{
    OVERRIDE("to", args, kwargs);
    static char *by_dtype[] = {"dtype", "non_blocking", "copy", "memory_format", NULL};
    static char *by_device[] = {"device", "dtype", "non_blocking", "copy", "memory_format", NULL};
    static char *by_other[] = {"other", "non_blocking", "copy", "memory_format", NULL};
    PyObject *what = PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL, *dtype = Py_None,
             *device = Py_None, *format = Py_None;
    target to = SAME;
    tn_tensor *other = NULL;
    bool of_value = what && PyTuple_Size(args) == 1 && (PyBool_Check(what) || PyFloat_Check(what));
    if (of_value) /* a value stands for its own dtype, as PyTorch has it */
        what = (PyObject *)Py_TYPE(what);
    if (what ? tnpy_is_dtype(what)
             : kwargs && !PyDict_GetItemString(kwargs, "device") &&
                   PyDict_GetItemString(kwargs, "dtype")) {
        if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pp$O:to", by_dtype, &dtype,
                                         &to.non_blocking, &to.copy, &format))
            return NULL;
    } else if (what ? (other = tnpy_tensor(what)) != NULL
                    : kwargs && PyDict_GetItemString(kwargs, "other")) {
        if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|pp$O:to", by_other, &what,
                                         &to.non_blocking, &to.copy, &format))
            return NULL;
        other = tnpy_tensor(what);
    } else if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOpp$O:to", by_device, &device, &dtype,
                                            &to.non_blocking, &to.copy, &format)) {
        return NULL;
    }
    if (of_value)
        dtype = what;
    if (other && TNPY_UNLIKELY(tnpy_function_on(what)))
        return tnpy_override_method(o, "to", args, kwargs);
    if (other) {
        to.dtype = tn_tensor_dtype(other);
        to.device = tn_tensor_device(other);
    }
    if ((dtype != Py_None && tnpy_dtype_of(dtype, &to.dtype)) ||
        (device != Py_None && tnpy_device_of(device, &to.device)) ||
        (format != Py_None && tnpy_format_of(format, &to.format)))
        return NULL;
    return convert(o, &to);
}

static PyObject *as_dtype(PyObject *o, PyObject *args, PyObject *kwargs, const char *name,
                          tn_dtype dtype)
{
    target to = SAME;
    to.dtype = dtype;
    if (format_keyword(args, kwargs, name, &to.format))
        return NULL;
    return convert(o, &to);
}

#define CASTS(X)      \
    X(float, F32)     \
    X(double, F64)    \
    X(half, F16)      \
    X(bfloat16, BF16) \
    X(long, I64)      \
    X(int, I32)       \
    X(short, I16)     \
    X(char, I8)       \
    X(byte, U8)       \
    X(bool, BOOL)     \
    X(cfloat, C64)    \
    X(cdouble, C128)

#define X(name, dtype)                                                        \
    static PyObject *to_##name(PyObject *o, PyObject *args, PyObject *kwargs) \
    {                                                                         \
        OVERRIDE(#name, args, kwargs);                                        \
        return as_dtype(o, args, kwargs, #name, TN_DTYPE_##dtype);            \
    }
CASTS(X)
#undef X

static PyObject *cpu(PyObject *o, PyObject *args, PyObject *kwargs)
{
    OVERRIDE("cpu", args, kwargs);
    target to = SAME;
    to.device = TN_CPU;
    if (format_keyword(args, kwargs, "cpu", &to.format))
        return NULL;
    return convert(o, &to);
}

static PyObject *is_nonzero(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    int truth = PyObject_IsTrue(o);
    return truth < 0 ? NULL : PyBool_FromLong(truth);
}

/* What is done already. */
#define SAME(name)                                        \
    static PyObject *name(PyObject *o, PyObject *nothing) \
    {                                                     \
        OVERRIDE(#name, NULL, NULL);                      \
        (void)nothing;                                    \
        return Py_NewRef(o);                              \
    }
SAME(resolve_conj)
SAME(resolve_neg)

static PyObject *to_complex_number(PyObject *o, PyObject *nothing)
{
    OVERRIDE("__complex__", NULL, NULL);
    (void)nothing;
    if (tn_tensor_numel(tnpy_tensor(o)) != 1) {
        PyErr_SetString(PyExc_ValueError,
                        "only one element tensors can be converted to Python scalars");
        return NULL;
    }
    if (tnpy_warn_leaves_graph(o))
        return NULL;
    PyObject *value = PyObject_CallMethod(o, "item", NULL);
    PyObject *z =
        value ? PyObject_CallFunctionObjArgs((PyObject *)&PyComplex_Type, value, NULL) : NULL;
    Py_XDECREF(value);
    return z;
}

static PyObject *use_count(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    return PyLong_FromUnsignedLong(tn_tensor_use_count(tnpy_tensor(o)));
}

#define WITH_KEYWORDS(f) (PyCFunction)(void (*)(void)) f, METH_VARARGS | METH_KEYWORDS

PyMethodDef tnpy_tensor_methods[] = {
    {"size", WITH_KEYWORDS(size), "size(dim=None) -> Size or int"},
    {"stride", WITH_KEYWORDS(stride), "stride(dim=None) -> tuple or int"},
    {"numel", numel, METH_NOARGS, "numel() -> int"},
    {"nelement", numel, METH_NOARGS, "nelement() -> int"},
    {"dim", dim, METH_NOARGS, "dim() -> int"},
    {"ndimension", dim, METH_NOARGS, "ndimension() -> int"},
    {"storage_offset", storage_offset, METH_NOARGS, "storage_offset() -> int"},
    {"element_size", element_size, METH_NOARGS, "element_size() -> int"},
    {"data_ptr", data_ptr, METH_NOARGS, "data_ptr() -> int\n\nAddress of the first element."},
    {"is_contiguous", WITH_KEYWORDS(is_contiguous),
     "is_contiguous(memory_format=contiguous_format) -> bool"},
    {"is_floating_point", is_floating_point, METH_NOARGS, "is_floating_point() -> bool"},
    {"is_complex", is_complex, METH_NOARGS, "is_complex() -> bool"},
    {"is_signed", is_signed, METH_NOARGS, "is_signed() -> bool"},
    {"is_inference", is_inference, METH_NOARGS, "is_inference() -> bool"},
    {"_is_view", is_view, METH_NOARGS, "_is_view() -> bool"},
    {"is_conj", is_conj, METH_NOARGS, "is_conj() -> bool"},
    {"is_neg", is_neg, METH_NOARGS, "is_neg() -> bool"},
    {"requires_grad_", WITH_KEYWORDS(requires_grad_),
     "requires_grad_(requires_grad=True) -> Tensor"},
    {"retain_grad", retain_grad, METH_NOARGS, "retain_grad()"},
    {"to", WITH_KEYWORDS(to), "to(dtype_or_device_or_other, …) -> Tensor"},
    {"is_nonzero", is_nonzero, METH_NOARGS, "is_nonzero() -> bool"},
    {"resolve_conj", resolve_conj, METH_NOARGS, "resolve_conj() -> Tensor"},
    {"resolve_neg", resolve_neg, METH_NOARGS, "resolve_neg() -> Tensor"},
    {"has_names", has_names, METH_NOARGS, "has_names() -> bool"},
    {"is_distributed", is_distributed, METH_NOARGS, "is_distributed() -> bool"},
    {"__complex__", to_complex_number, METH_NOARGS, NULL},
    {"_use_count", use_count, METH_NOARGS, NULL},
    {"cpu", WITH_KEYWORDS(cpu), "cpu() -> Tensor"},
#define X(name, dtype) {#name, WITH_KEYWORDS(to_##name), #name "() -> Tensor"},
    CASTS(X)
#undef X
        {NULL, NULL, 0, NULL},
};
