/* SPDX-License-Identifier: MIT */
/* python/src/values.c: the values of a tensor as Python objects: item(), tolist(), and the methods
 * by which NumPy and the array API find their way in. */
#include "opcall.h"
#include "data.h"
#include "override.h"
#include "type.h"

#include <string.h>

/* ---- numbers ---- */

/* Each dtype of real numbers, the type of its elements, and what makes a number of one. */
#define REAL_NUMBERS(X)                       \
    X(BOOL, uint8_t, PyBool_FromLong)         \
    X(U8, uint8_t, PyLong_FromLong)           \
    X(I8, int8_t, PyLong_FromLong)            \
    X(I16, int16_t, PyLong_FromLong)          \
    X(I32, int32_t, PyLong_FromLong)          \
    X(I64, int64_t, PyLong_FromLong)          \
    X(U16, uint16_t, PyLong_FromLong)         \
    X(U32, uint32_t, PyLong_FromUnsignedLong) \
    X(U64, uint64_t, PyLong_FromUnsignedLong) \
    X(F32, float, PyFloat_FromDouble)         \
    X(F64, double, PyFloat_FromDouble)
_Static_assert(sizeof(long) == sizeof(int64_t), "the makers above take a long");

/* The element at `at`. Half precision floats never come here, see plain_of. */
static PyObject *number_at(const char *at, tn_dtype dtype)
{
    switch (dtype) {
#define ONE(name, type, make)     \
    case TN_DTYPE_##name: {       \
        type v;                   \
        memcpy(&v, at, sizeof v); \
        return make(v);           \
    }
        REAL_NUMBERS(ONE)
#undef ONE
    case TN_DTYPE_C64: {
        float v[2];
        memcpy(v, at, sizeof v);
        return PyComplex_FromDoubles(v[0], v[1]);
    }
    case TN_DTYPE_C128: {
        double v[2];
        memcpy(v, at, sizeof v);
        return PyComplex_FromDoubles(v[0], v[1]);
    }
    default:
        PyErr_SetString(PyExc_TypeError, "a tensor of this dtype has no Python numbers");
        return NULL;
    }
}

static PyObject *item(PyObject *self, PyObject *args)
{
    (void)args;
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return tnpy_override_method(self, "item", NULL, NULL);
    tn_tensor *t = tnpy_tensor(self);
    if (tn_tensor_device(t).type == TN_DEVICE_META) {
        PyErr_SetString(PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
        return NULL;
    }
    tn_scalar value;
    tn_status st = tn_item(t, &value);
    return st == TN_OK ? tnpy_scalar(value) : tnpy_raise(st);
}

/* The numbers of one row; most of the time of a long list is spent here. */
static int fill_row(PyObject *list, int64_t n, const char *at, int64_t step, tn_dtype dtype)
{
    switch ((int)dtype) {
#define ROW(name, type, make)                                            \
    case TN_DTYPE_##name:                                                \
        for (int64_t i = 0; i < n; i++, at += step) {                    \
            type v;                                                      \
            memcpy(&v, at, sizeof v);                                    \
            PyObject *o = make(v);                                       \
            if (o == NULL || PyList_SetItem(list, (Py_ssize_t)i, o) < 0) \
                return -1;                                               \
        }                                                                \
        return 0;
        REAL_NUMBERS(ROW)
#undef ROW
    default:
        for (int64_t i = 0; i < n; i++, at += step) {
            PyObject *o = number_at(at, dtype);
            if (o == NULL || PyList_SetItem(list, (Py_ssize_t)i, o) < 0)
                return -1;
        }
        return 0;
    }
}

static PyObject *list_of(const tn_tensor *t, int dim, const char *at)
{
    tn_dtype dtype = tn_tensor_dtype(t);
    int ndim = (int)tn_tensor_ndim(t);
    if (dim == ndim)
        return number_at(at, dtype);
    int64_t n = tn_tensor_sizes(t)[dim];
    int64_t step = tn_tensor_strides(t)[dim] * (int64_t)tn_dtype_size(dtype);
    PyObject *list = PyList_New((Py_ssize_t)n);
    if (list != NULL && dim + 1 == ndim) {
        if (fill_row(list, n, at, step, dtype) < 0)
            Py_CLEAR(list);
        return list;
    }
    for (int64_t i = 0; i < n && list != NULL; i++) {
        PyObject *o = list_of(t, dim + 1, at + i * step);
        if (o == NULL || PyList_SetItem(list, (Py_ssize_t)i, o) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* A tensor on the CPU whose elements number_at can read; owned. */
static tn_status plain_of(tn_tensor *t, tn_tensor **out)
{
    tn_dtype dtype = tn_tensor_dtype(t);
    dtype = tnpy_plain_dtype(dtype);
    tn_tensor *plain = NULL;
    tn_status st = tn_detach(t, &plain);
    if (st == TN_OK)
        st = tn_to_device(plain, TN_CPU, dtype, false, false, TN_FORMAT_NONE, out);
    tn_tensor_unref(plain);
    return st;
}

/* The lists of a fake tensor of one element, whose value may be known. */
static PyObject *list_of_known(tn_tensor *t)
{
    tn_scalar value;
    tn_status st = tn_item(t, &value);
    PyObject *made = st == TN_OK ? tnpy_scalar(value) : tnpy_raise(st);
    for (int64_t d = 0; d < tn_tensor_ndim(t) && made; d++)
        made = Py_BuildValue("[N]", made);
    return made;
}

static PyObject *tolist(PyObject *self, PyObject *args)
{
    (void)args;
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return tnpy_override_method(self, "tolist", NULL, NULL);
    tn_tensor *t = tnpy_tensor(self), *plain = NULL;
    tn_dtype dtype = tn_tensor_dtype(t);
    if (TNPY_UNLIKELY(Py_TYPE(self) != tnpy_Tensor) && tnpy_type_dispatches(Py_TYPE(self))) {
        char name[128];
        PyErr_Format(PyExc_RuntimeError, ".tolist() is not supported for tensor subclasses, got %s",
                     tnpy_type_name(self, name, sizeof name));
        return NULL;
    }
    if (!tn_tensor_requires_grad(t) && dtype == tnpy_plain_dtype(dtype) &&
        tn_tensor_const_data(t) != NULL && tn_tensor_device(t).type == TN_DEVICE_CPU)
        plain = tn_tensor_ref(t);
    else {
        tn_status st = plain_of(t, &plain);
        if (st != TN_OK)
            return tnpy_raise(st);
    }
    if (TNPY_UNLIKELY(!tn_tensor_const_data(plain)) && tn_tensor_numel(plain)) {
        tn_tensor_unref(plain);
        return tn_tensor_numel(t) == 1 ? list_of_known(t) : tnpy_raise(tnpy_needs_values());
    }
    PyObject *list = list_of(plain, 0, tn_tensor_const_data(plain));
    tn_tensor_unref(plain);
    return list;
}

/* ---- NumPy ---- */

/* numpy.asarray of something with a buffer: no copy. */
static PyObject *as_array(PyObject *o)
{
    static PyObject *asarray; /* found once, kept */
    if (asarray == NULL) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        if (numpy == NULL) {
            if (PyErr_ExceptionMatches(PyExc_ImportError)) {
                PyErr_Clear();
                PyErr_SetString(PyExc_RuntimeError, "Numpy is not available");
            }
            return NULL;
        }
        asarray = PyObject_GetAttrString(numpy, "asarray");
        Py_DECREF(numpy);
        if (asarray == NULL)
            return NULL;
    }
    return PyObject_CallFunctionObjArgs(asarray, o, NULL);
}

static PyObject *numpy_method(PyObject *self, PyObject *const *args, Py_ssize_t n,
                              PyObject *kwnames)
{
    static const tnpy_arguments names = {"numpy", 0, 0, 1, {"force"}};
    static tnpy_entry entry = {.name = "numpy", .method = 1};
    if (TNPY_UNLIKELY(tnpy_function_on(self) ||
                      tnpy_stranger_in(args, (int)n + (kwnames ? (int)PyTuple_Size(kwnames) : 0))))
        return tnpy_override(&entry, self, args, n, kwnames);
    PyObject *a[1];
    if (tnpy_take(&names, args, n, kwnames, a) < 0)
        return NULL;
    int force = a[0] == NULL ? 0 : PyObject_IsTrue(a[0]);
    if (force < 0)
        return NULL;
    tn_tensor *t = tnpy_tensor(self);
    if (!tn_tensor_requires_grad(t) && !tn_tensor_const_data(t) && tn_tensor_numel(t) &&
        tn_tensor_device(t).type == TN_DEVICE_CPU) {
        PyErr_SetString(PyExc_RuntimeError, ".numpy() is not supported for tensor subclasses.");
        return NULL;
    }
    if (force) {
        tn_tensor *plain = NULL, *here = NULL;
        tn_status st = tn_detach(t, &plain);
        if (st == TN_OK)
            st = tn_to_device(plain, TN_CPU, tn_tensor_dtype(t), false, false, TN_FORMAT_NONE,
                              &here);
        tn_tensor_unref(plain);
        if (st != TN_OK)
            return tnpy_raise(st);
        PyObject *o = tnpy_wrap(here);
        PyObject *array = o == NULL ? NULL : numpy_method(o, NULL, 0, NULL);
        Py_XDECREF(o);
        return array;
    }
    if (tn_tensor_device(t).type != TN_DEVICE_CPU) {
        char device[32];
        PyErr_Format(PyExc_TypeError,
                     "can't convert %s device type tensor to numpy. Use Tensor.cpu() to copy the "
                     "tensor to host memory first.",
                     tn_device_format(tn_tensor_device(t), device, sizeof device));
        return NULL;
    }
    bool recorded = tn_tensor_requires_grad(t);
    if (recorded && tn_grad_enabled()) {
        PyErr_SetString(PyExc_RuntimeError, "Can't call numpy() on Tensor that requires grad. Use "
                                            "tensor.detach().numpy() instead.");
        return NULL;
    }
    static const struct {
        tn_dtype dtype;
        const char *text;
    } no_array[] = {{TN_DTYPE_BF16, "BFloat16"},
                    {TN_DTYPE_F8E5M2, "Float8_e5m2"},
                    {TN_DTYPE_F8E4M3, "Float8_e4m3fn"},
                    {TN_DTYPE_F8E5M2UZ, "Float8_e5m2fnuz"},
                    {TN_DTYPE_F8E4M3UZ, "Float8_e4m3fnuz"}};
    for (size_t i = 0; i < sizeof no_array / sizeof no_array[0]; i++)
        if (tn_tensor_dtype(t) == no_array[i].dtype) {
            PyErr_Format(PyExc_TypeError, "Got unsupported ScalarType %s", no_array[i].text);
            return NULL;
        }
    if (!recorded)
        return as_array(self);
    /* Nothing is recorded now, and the caller knows it: the array of the detached tensor, since a
     * tensor that requires grad lends nobody its memory. */
    tn_tensor *plain = NULL;
    tn_status st = tn_detach(t, &plain);
    if (st != TN_OK)
        return tnpy_raise(st);
    PyObject *lender = tnpy_wrap(plain);
    PyObject *array = lender == NULL ? NULL : as_array(lender);
    Py_XDECREF(lender);
    return array;
}

/* ---- methods whose body is in Python, loaded when first called ---- */

static PyObject *lazy(const char *module, const char *function, PyObject *self, PyObject *args,
                      PyObject *kwargs)
{
    PyObject *m = PyImport_ImportModule(module);
    PyObject *f = m == NULL ? NULL : PyObject_GetAttrString(m, function);
    Py_XDECREF(m);
    if (f == NULL)
        return NULL;
    Py_ssize_t n = args == NULL ? 0 : PyTuple_Size(args);
    PyObject *all = PyTuple_New(n + 1), *out = NULL;
    if (all != NULL) {
        PyTuple_SetItem(all, 0, Py_NewRef(self));
        for (Py_ssize_t i = 0; i < n; i++)
            PyTuple_SetItem(all, i + 1, Py_NewRef(PyTuple_GetItem(args, i)));
        out = PyObject_Call(f, all, kwargs);
        Py_DECREF(all);
    }
    Py_DECREF(f);
    return out;
}

PyObject *tnpy_repr(PyObject *self)
{
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return tnpy_override_method(self, "__repr__", NULL, NULL);
    return lazy("tenon._tensor_str", "_str", self, NULL, NULL);
}

int tnpy_contains(PyObject *self, PyObject *what)
{
    PyObject *args = PyTuple_Pack(1, what);
    PyObject *out = NULL;
    if (args != NULL)
        out = tnpy_function_on(self) ? tnpy_override_method(self, "__contains__", args, NULL)
                                     : lazy("tenon._exchange", "contains", self, args, NULL);
    int is = out == NULL ? -1 : PyObject_IsTrue(out);
    Py_XDECREF(args);
    Py_XDECREF(out);
    return is;
}

/* name of the method, module, function in it */
#define LAZY_METHODS(X)                                              \
    X(__array__, "tenon._exchange", "array")                         \
    X(__array_wrap__, "tenon._exchange", "array_wrap")               \
    X(__array_namespace__, "tenon._exchange", "array_namespace")     \
    X(__bytes__, "tenon._exchange", "as_bytes")                      \
    X(__format__, "tenon._tensor_str", "format_tensor")              \
    X(__repr__, "tenon._tensor_str", "_str")                         \
    X(__reduce_ex__, "tenon._pickling", "reduce_ex")                 \
    X(__setstate__, "tenon._pickling", "setstate")                   \
    X(__deepcopy__, "tenon._pickling", "deepcopy")                   \
    X(new_tensor, "tenon._exchange", "new_tensor")                   \
    X(new, "tenon._exchange", "new")                                 \
    X(type, "tenon._exchange", "type_of")                            \
    X(storage, "tenon.storage", "storage_of")                        \
    X(untyped_storage, "tenon.storage", "untyped_storage_of")        \
    X(_typed_storage, "tenon.storage", "typed_storage_of")           \
    X(storage_type, "tenon.storage", "storage_type_of")              \
    X(share_memory_, "tenon.storage", "share_memory_")               \
    X(is_shared, "tenon.storage", "is_shared")                       \
    X(pin_memory, "tenon.storage", "pin_memory")                     \
    X(apply_, "tenon._functional", "apply_")                         \
    X(map_, "tenon._functional", "map_")                             \
    X(norm, "tenon._functional", "norm")                             \
    X(nonzero, "tenon._functional", "nonzero")                       \
    X(unique, "tenon._functional", "unique")                         \
    X(unique_consecutive, "tenon._functional", "unique_consecutive") \
    X(get_device, "tenon._functional", "get_device")                 \
    X(cuda, "tenon._functional", "cuda")                             \
    X(to_dense, "tenon._functional", "to_dense")                     \
    X(__div__, "tenon._functional", "div")                           \
    X(__idiv__, "tenon._functional", "idiv")                         \
    X(__rdiv__, "tenon._functional", "rdiv")                         \
    X(resize, "tenon._functional", "resize")                         \
    X(resize_as, "tenon._functional", "resize_as")                   \
    X(resize_as_, "tenon._functional", "resize_as_")                 \
    X(coalesce, "tenon.sparse", "coalesce")                          \
    X(is_coalesced, "tenon.sparse", "is_coalesced")                  \
    X(indices, "tenon.sparse", "indices")                            \
    X(values, "tenon.sparse", "values")                              \
    X(_nnz, "tenon.sparse", "_nnz")                                  \
    X(_indices, "tenon.sparse", "_indices")                          \
    X(_values, "tenon.sparse", "_values")                            \
    X(crow_indices, "tenon.sparse", "crow_indices")                  \
    X(col_indices, "tenon.sparse", "col_indices")                    \
    X(sparse_dim, "tenon.sparse", "sparse_dim")                      \
    X(dense_dim, "tenon.sparse", "dense_dim")                        \
    X(to_sparse, "tenon.sparse", "to_sparse")                        \
    X(to_sparse_csr, "tenon.sparse", "to_sparse_csr")                \
    X(to_sparse_csc, "tenon.sparse", "to_sparse_csc")                \
    X(to_sparse_bsr, "tenon.sparse", "to_sparse_bsr")                \
    X(to_sparse_bsc, "tenon.sparse", "to_sparse_bsc")                \
    X(ccol_indices, "tenon.sparse", "ccol_indices")                  \
    X(row_indices, "tenon.sparse", "row_indices")                    \
    X(smm, "tenon.sparse", "smm")                                    \
    X(sspaddmm, "tenon.sparse", "sspaddmm")                          \
    X(sparse_mask, "tenon.sparse", "sparse_mask")                    \
    X(to_sparse_coo, "tenon.sparse", "to_sparse")                    \
    X(polygamma, "tenon._rare", "polygamma")                         \
    X(map2_, "tenon._functional", "map2_")                           \
    X(is_set_to, "tenon._rare", "is_set_to")                         \
    X(__reversed__, "tenon._rare", "reversed_")                      \
    X(dim_order, "tenon._rare", "dim_order")                         \
    X(module_load, "tenon._rare", "module_load")                     \
    X(rename_, "tenon._dimension_names", "rename_")                  \
    X(eig, "tenon._rare", "eig")                                     \
    X(solve, "tenon._rare", "solve")                                 \
    X(symeig, "tenon._rare", "symeig")                               \
    X(lstsq, "tenon._rare", "lstsq")                                 \
    X(lu, "tenon._rare", "lu")                                       \
    X(xpu, "tenon._rare", "xpu")                                     \
    X(dequantize, "tenon._rare", "dequantize")                       \
    X(to_padded_tensor, "tenon._rare", "to_padded_tensor")           \
    X(to_mkldnn, "tenon._rare", "to_mkldnn")                         \
    X(chalf, "tenon._rare", "chalf")                                 \
    X(reinforce, "tenon._rare", "reinforce")                         \
    X(refine_names, "tenon._dimension_names", "refine_names")        \
    X(align_to, "tenon._dimension_names", "align_to")                \
    X(align_as, "tenon._dimension_names", "align_as")                \
    X(rename, "tenon._dimension_names", "rename")                    \
    X(where, "tenon._functional", "where")

/* Has an argument a __torch_function__? Those that are data have no say. What is made anew is of
 * the tensor's class where that keeps it. */
static bool asks(const char *name, PyObject *self, PyObject *args, PyObject *kwargs)
{
    if (strncmp(name, "new", 3) == 0)
        return tnpy_kept_class(self) != NULL;
    return strcmp(name, "apply_") && strcmp(name, "type") && tnpy_stranger_among(args, kwargs);
}

#define X(name, module, function)                                                  \
    static PyObject *lazy_##name(PyObject *self, PyObject *args, PyObject *kwargs) \
    {                                                                              \
        if (tnpy_function_on(self) || asks(#name, self, args, kwargs))             \
            return tnpy_override_method(self, #name, args, kwargs);                \
        return lazy(module, function, self, args, kwargs);                         \
    }
LAZY_METHODS(X)
#undef X

static PyMethodDef methods[] = {
    {"item", item, METH_NOARGS, "item()\n--\n\nThe value of a tensor of one element, as a number."},
    {"tolist", tolist, METH_NOARGS, "tolist()\n--\n\nThe values as a number or nested lists."},
    {"numpy", (PyCFunction)(void (*)(void))numpy_method, METH_FASTCALL | METH_KEYWORDS,
     "numpy(*, force=False)\n--\n\nA NumPy array over the memory of the tensor."},
#define X(name, module, function) \
    {#name, (PyCFunction)(void (*)(void))lazy_##name, METH_VARARGS | METH_KEYWORDS, NULL},
    LAZY_METHODS(X)
#undef X
        {NULL, NULL, 0, NULL}};

static PyGetSetDef properties[] = {{NULL, NULL, NULL, NULL, NULL}};

int tnpy_add_values(PyObject *module)
{
    (void)module;
    PyObject *priority = PyLong_FromLong(1000);
    int bad = priority == NULL ||
              PyObject_SetAttrString((PyObject *)tnpy_Tensor, "__array_priority__", priority) < 0;
    Py_XDECREF(priority);
    return bad ? -1 : tnpy_add_methods(methods, properties);
}
