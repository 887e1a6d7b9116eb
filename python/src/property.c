/* SPDX-License-Identifier: MIT */
/* property.c: what can be asked of a Tensor as an attribute. */
#include "dimname.h"
#include "grad.h"
#include "override.h"
#include "type.h"

#define GETTER(name)                                         \
    static PyObject *get_##name(PyObject *o, void *closure); \
    static PyObject *get_##name(PyObject *o, void *closure)
/* The attribute's tensor, unless its class or a mode wants to answer. */
#define TENSOR(name)                        \
    (void)closure;                          \
    if (TNPY_UNLIKELY(tnpy_function_on(o))) \
        return tnpy_override_get(o, name);  \
    tn_tensor *t __attribute__((unused)) = tnpy_tensor(o)
#define TENSOR_SET(name)                          \
    (void)closure;                                \
    if (TNPY_UNLIKELY(tnpy_function_on(o)))       \
        return tnpy_override_set(o, name, value); \
    tn_tensor *t __attribute__((unused)) = tnpy_tensor(o)

/* A result, of the class of the tensor that it comes from. */
static PyObject *wrapped(PyObject *o, tn_status st, tn_tensor *out)
{
    return st == TN_OK ? tnpy_wrap_kept(tnpy_kept_class(o), out) : tnpy_raise(st);
}

GETTER(shape)
{
    TENSOR("shape");
    return tnpy_size(tn_tensor_sizes(t), tn_tensor_ndim(t));
}

GETTER(dtype)
{
    TENSOR("dtype");
    return tnpy_dtype(tn_tensor_dtype(t));
}

GETTER(device)
{
    TENSOR("device");
    return tnpy_device(tn_tensor_device(t));
}

GETTER(layout)
{
    TENSOR("layout");
    return tnpy_layout(tn_tensor_layout(t));
}

GETTER(ndim)
{
    TENSOR("ndim");
    return PyLong_FromLong(tn_tensor_ndim(t));
}

GETTER(itemsize)
{
    TENSOR("itemsize");
    return PyLong_FromSize_t(tn_dtype_size(tn_tensor_dtype(t)));
}

GETTER(nbytes)
{
    TENSOR("nbytes");
    return PyLong_FromSize_t(tn_tensor_nbytes(t));
}

GETTER(requires_grad)
{
    TENSOR("requires_grad");
    return PyBool_FromLong(tn_tensor_requires_grad(t));
}

static int set_requires_grad(PyObject *o, PyObject *value, void *closure)
{
    TENSOR_SET("requires_grad");
    if (!value || !PyBool_Check(value)) {
        PyErr_SetString(PyExc_RuntimeError, "requires_grad must be a bool");
        return -1;
    }
    bool on = value == Py_True;
    tn_node *node = NULL;
    tn_status st = tn_tensor_grad_fn(t, &node);
    if (node) {
        PyErr_Format(PyExc_RuntimeError,
                     "you can only change requires_grad flags of leaf variables.%s",
                     on ? ""
                        : " If you want to use a computed variable in a subgraph that doesn't "
                          "require differentiation use var_no_grad = var.detach().");
        return -1;
    }
    tn_dtype dtype = tn_tensor_dtype(t);
    if (on && !tn_dtype_is_floating(dtype) && !tn_dtype_is_complex(dtype)) {
        PyErr_SetString(PyExc_RuntimeError, "only Tensors of floating point and complex dtype can "
                                            "require gradients");
        return -1;
    }
    if (st == TN_OK)
        st = tn_tensor_set_requires_grad(t, on);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    return 0;
}

/* Of a view whose history must not be rebuilt there is no answer. */
GETTER(is_leaf)
{
    TENSOR("is_leaf");
    tn_node *node = NULL;
    if (tn_tensor_is_view(t)) {
        tn_status st = tn_tensor_grad_fn(t, &node);
        return st == TN_OK ? PyBool_FromLong(!node) : tnpy_raise(st);
    }
    return PyBool_FromLong(tn_tensor_is_leaf(t));
}

GETTER(retains_grad)
{
    TENSOR("retains_grad");
    return PyBool_FromLong(tn_tensor_retains_grad(t) && !tn_tensor_is_leaf(t));
}

GETTER(grad_dtype)
{
    TENSOR("grad_dtype");
    if (!tn_tensor_is_leaf(t)) {
        PyErr_SetString(PyExc_RuntimeError, "grad_dtype can only be accessed on leaf tensors.");
        return NULL;
    }
    return tnpy_dtype(tn_tensor_dtype(t));
}

/* Gradients have the dtype of their tensor: that may be said, and nothing else. */
static int set_grad_dtype(PyObject *o, PyObject *value, void *closure)
{
    TENSOR_SET("grad_dtype");
    if (!value || !tn_tensor_is_leaf(t)) {
        PyErr_SetString(PyExc_RuntimeError, value ? "grad_dtype can only be set on leaf tensors."
                                                  : "grad_dtype cannot be deleted");
        return -1;
    }
    PyObject *own = tnpy_dtype(tn_tensor_dtype(t));
    if (!own)
        return -1;
    int rc = value == own ? 0 : -1;
    if (rc < 0 && value != Py_None && Py_TYPE(value) != Py_TYPE(own)) {
        PyObject *type = PyType_GetName(Py_TYPE(value));
        PyErr_Format(PyExc_RuntimeError, "grad_dtype must be a torch.dtype or None, but got %U",
                     type);
        Py_XDECREF(type);
    } else if (rc < 0) {
        PyErr_Format(PyExc_NotImplementedError,
                     "grad_dtype: gradients of another dtype than their tensor's (%S for a tensor "
                     "of %S) are not implemented",
                     value, own);
    }
    Py_DECREF(own);
    return rc;
}

GETTER(output_nr)
{
    TENSOR("output_nr");
    return PyLong_FromUnsignedLong(tn_tensor_output_nr(t));
}

/* Somebody expects a gradient where none is kept. */
static int warn_of_no_leaf(tn_tensor *t)
{
    if (tn_tensor_is_leaf(t) || tn_tensor_retains_grad(t) || !tn_tensor_requires_grad(t))
        return 0;
    return PyErr_WarnEx(
        PyExc_UserWarning,
        "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad "
        "attribute won't be populated during autograd.backward(). If you indeed want the .grad "
        "field to be populated for a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. "
        "If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor "
        "instead. See github.com/pytorch/pytorch/pull/30531 for more information.",
        1);
}

GETTER(grad)
{
    TENSOR("grad");
    tn_tensor *grad = tn_tensor_grad_ref(t); /* other threads may be replacing it */
    if (TNPY_UNLIKELY(!grad) && warn_of_no_leaf(t) < 0)
        return NULL;
    return tnpy_wrap(grad);
}

static int set_grad(PyObject *o, PyObject *value, void *closure)
{
    TENSOR_SET("grad");
    tn_tensor *grad = value && value != Py_None ? tnpy_tensor(value) : NULL;
    if (value && value != Py_None && !grad) {
        char name[128];
        PyErr_Format(PyExc_TypeError,
                     "assigned grad expected to be a Tensor or None but got grad of type %s",
                     tnpy_type_name(value, name, sizeof name));
        return -1;
    }
    tn_status st = tn_tensor_set_grad(t, grad);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    return 0;
}

GETTER(data)
{
    TENSOR("data");
    tn_tensor *out = NULL;
    /* What a class with a __torch_dispatch__ is made of, it alone knows. */
    bool asks = tn_keyset_has(tn_tensor_keys(t), TN_KEY_PYTHON);
    tn_status st = asks ? tn_detach(t, &out) : tn_tensor_data_alias(t, &out);
    return wrapped(o, st, out);
}

static int set_data(PyObject *o, PyObject *value, void *closure)
{
    TENSOR_SET("data");
    if (tnpy_differentiation_refuses("mutating directly with `.data` inside functorch transform is "
                                     "not allowed."))
        return -1;
    if (!value) {
        PyErr_SetString(PyExc_RuntimeError,
                        "Deleting tensor data is not allowed. Delete tensor instead!");
        return -1;
    }
    tn_tensor *source = tnpy_tensor(value);
    if (!source) {
        char name[128];
        PyErr_Format(PyExc_TypeError, "Variable data has to be a tensor, but got %s",
                     tnpy_type_name(value, name, sizeof name));
        return -1;
    }
    tn_status st = tn_tensor_set_data(t, source);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    return 0;
}

GETTER(version)
{
    TENSOR("_version");
    uint32_t version;
    tn_status st = tn_tensor_version(t, &version);
    return st == TN_OK ? PyLong_FromUnsignedLong(version) : tnpy_raise(st);
}

GETTER(cdata)
{
    TENSOR("_cdata");
    return PyLong_FromVoidPtr(t);
}

GETTER(base)
{
    TENSOR("_base");
    return tnpy_wrap_borrowed(tn_tensor_base(t));
}

/* .T of torch: all dimensions in reverse order. */
static PyObject *reversed(PyObject *o)
{
    tn_tensor *t = tnpy_tensor(o);
    int n = tn_tensor_ndim(t);
    int64_t dims[TN_MAX_DIMS];
    for (int i = 0; i < n; i++)
        dims[i] = n - 1 - i;
    tn_tensor *out = NULL;
    tn_status st = tn_permute(t, dims, n, &out);
    return wrapped(o, st, out);
}

/* The last two dimensions exchanged; there are two, or none. */
static PyObject *transposed(PyObject *o)
{
    tn_tensor *t = tnpy_tensor(o), *out = NULL;
    if (tn_tensor_ndim(t) < 2)
        return reversed(o);
    tn_status st = tn_transpose(t, -2, -1, &out);
    return wrapped(o, st, out);
}

static bool warned_of_T;

GETTER(T)
{
    TENSOR("T");
    int n = tn_tensor_ndim(t);
    if (TNPY_UNLIKELY(n != 2 && n != 0 && !warned_of_T)) {
        warned_of_T = true;
        if (PyErr_WarnEx(
                PyExc_UserWarning,
                "The use of `x.T` on tensors of dimension other than 2 to reverse their shape "
                "is deprecated and it will throw an error in a future release. Consider "
                "`x.mT` to transpose batches of matrices or `x.permute(*torch.arange(x.ndim "
                "- 1, -1, -1))` to reverse the dimensions of a tensor.",
                1) < 0)
            return NULL;
    }
    return reversed(o);
}

static int at_least_matrix(tn_tensor *t, const char *name)
{
    if (tn_tensor_ndim(t) != 1) /* numbers are their own */
        return 0;
    PyErr_Format(PyExc_RuntimeError,
                 "tensor.%s is only supported on matrices or batches of matrices. Got %d-D tensor.",
                 name, tn_tensor_ndim(t));
    return -1;
}

GETTER(mT)
{
    TENSOR("mT");
    return at_least_matrix(t, "mT") ? NULL : transposed(o);
}

static PyObject *conjugated(PyObject *transposed)
{
    if (!transposed)
        return NULL;
    tn_tensor *t = tnpy_tensor(transposed), *out = NULL;
    if (!tn_dtype_is_complex(tn_tensor_dtype(t)))
        return transposed;
    tn_status st = tn_conj(t, &out);
    PyObject *result = wrapped(transposed, st, out);
    Py_DECREF(transposed);
    return result;
}

GETTER(H)
{
    TENSOR("H");
    if (tn_tensor_ndim(t) != 2 && tn_tensor_ndim(t) != 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.%s",
                     tn_tensor_ndim(t),
                     tn_tensor_ndim(t) > 2 ? " For batches of matrices, consider using tensor.mH"
                                           : "");
        return NULL;
    }
    return conjugated(transposed(o));
}

GETTER(mH)
{
    TENSOR("mH");
    return at_least_matrix(t, "mH") ? NULL : conjugated(transposed(o));
}

GETTER(real)
{
    TENSOR("real");
    tn_tensor *out = NULL;
    if (!tn_dtype_is_complex(tn_tensor_dtype(t)))
        return Py_NewRef(o);
    tn_status st = tn_real(t, &out);
    return wrapped(o, st, out);
}

GETTER(imag)
{
    TENSOR("imag");
    tn_tensor *out = NULL;
    tn_status st = tn_imag(t, &out);
    return wrapped(o, st, out);
}

/* Writes the part, a view: with a history, as copy_ does. */
static int set_part(PyObject *o, PyObject *value, PyObject *part, const char *name)
{
    (void)o;
    if (!part)
        return -1;
    PyObject *done = NULL;
    if (!value)
        PyErr_Format(PyExc_RuntimeError, "cannot delete attribute %s", name);
    else if (tnpy_tensor(value))
        done = PyObject_CallMethod(part, "copy_", "O", value);
    else
        done = PyObject_CallMethod(part, "fill_", "O", value);
    Py_DECREF(part);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static int set_real(PyObject *o, PyObject *value, void *closure)
{
    (void)closure;
    return set_part(o, value, get_real(o, NULL), "real");
}

static int set_imag(PyObject *o, PyObject *value, void *closure)
{
    (void)closure;
    return set_part(o, value, get_imag(o, NULL), "imag");
}

static PyObject *on_device(const tn_tensor *t, int type)
{
    return PyBool_FromLong(tn_tensor_device(t).type == type);
}

GETTER(is_cpu)
{
    TENSOR("is_cpu");
    return on_device(t, TN_DEVICE_CPU);
}

GETTER(is_cuda)
{
    TENSOR("is_cuda");
    return on_device(t, TN_DEVICE_CUDA);
}

GETTER(is_meta)
{
    TENSOR("is_meta");
    return on_device(t, TN_DEVICE_META);
}

/* Several attributes: their name is the closure. */
GETTER(never)
{
    const char *name = closure;
    TENSOR(name);
    return Py_NewRef(Py_False);
}

GETTER(names)
{
    TENSOR("names");
    return tnpy_names_of(t);
}

static int set_names(PyObject *o, PyObject *value, void *closure)
{
    TENSOR_SET("names");
    return tnpy_set_names(t, value ? value : Py_None,
                          "names must either be None or a tuple of dim names");
}

GETTER(name)
{
    TENSOR("name");
    return Py_NewRef(Py_None);
}

GETTER(dict)
{
    (void)closure;
    tnpy_tensor_object *self = (tnpy_tensor_object *)(void *)o;
    if (!self->dict)
        self->dict = PyDict_New();
    return Py_XNewRef(self->dict);
}

static int set_dict(PyObject *o, PyObject *value, void *closure)
{
    (void)closure;
    if (!value || !PyDict_Check(value)) {
        PyErr_SetString(PyExc_TypeError, "__dict__ must be set to a dictionary");
        return -1;
    }
    PyObject *before = ((tnpy_tensor_object *)(void *)o)->dict;
    ((tnpy_tensor_object *)(void *)o)->dict = Py_NewRef(value);
    Py_XDECREF(before);
    return 0;
}

PyGetSetDef tnpy_tensor_getset[] = {
    {"shape", get_shape, NULL, "Its sizes.", NULL},
    {"dtype", get_dtype, NULL, "Type of its elements.", NULL},
    {"device", get_device, NULL, "Where it lives.", NULL},
    {"layout", get_layout, NULL, NULL, NULL},
    {"ndim", get_ndim, NULL, "Number of dimensions.", NULL},
    {"itemsize", get_itemsize, NULL, "Bytes an element.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of all elements.", NULL},
    {"requires_grad", get_requires_grad, set_requires_grad, "Whether gradients are wanted.", NULL},
    {"is_leaf", get_is_leaf, NULL, "No operator made it.", NULL},
    {"retains_grad", get_retains_grad, NULL, NULL, NULL},
    {"grad_dtype", get_grad_dtype, set_grad_dtype, "The dtype of its gradient: its own.", NULL},
    {"output_nr", get_output_nr, NULL, NULL, NULL},
    {"grad", get_grad, set_grad, "What backward passes added up; None: nothing.", NULL},
    {"_grad", get_grad, set_grad, NULL, NULL},
    {"data", get_data, set_data, "The same elements without history.", NULL},
    {"_version", get_version, NULL, "How often it was written.", NULL},
    {"_cdata", get_cdata, NULL, "A number of its own: where it lies.", NULL},
    {"_base", get_base, NULL, "What it is a view of; None: nothing.", NULL},
    {"T", get_T, NULL, "Dimensions in reverse order.", NULL},
    {"mT", get_mT, NULL, "The last two dimensions exchanged.", NULL},
    {"H", get_H, NULL, "Transposed and conjugated.", NULL},
    {"mH", get_mH, NULL, "The last two dimensions exchanged, conjugated.", NULL},
    {"real", get_real, set_real, "Real parts.", NULL},
    {"imag", get_imag, set_imag, "Imaginary parts.", NULL},
    {"is_cpu", get_is_cpu, NULL, NULL, NULL},
    {"is_cuda", get_is_cuda, NULL, NULL, NULL},
    {"is_meta", get_is_meta, NULL, NULL, NULL},
    {"is_sparse", get_never, NULL, NULL, "is_sparse"},
    {"is_sparse_csr", get_never, NULL, NULL, "is_sparse_csr"},
    {"is_quantized", get_never, NULL, NULL, "is_quantized"},
    {"is_mkldnn", get_never, NULL, NULL, "is_mkldnn"},
    {"is_nested", get_never, NULL, NULL, "is_nested"},
    {"is_mps", get_never, NULL, NULL, "is_mps"},
    {"is_xpu", get_never, NULL, NULL, "is_xpu"},
    {"is_xla", get_never, NULL, NULL, "is_xla"},
    {"is_mtia", get_never, NULL, NULL, "is_mtia"},
    {"is_ipu", get_never, NULL, NULL, "is_ipu"},
    {"is_vulkan", get_never, NULL, NULL, "is_vulkan"},
    {"is_maia", get_never, NULL, NULL, "is_maia"},
    {"names", get_names, set_names, NULL, NULL},
    {"name", get_name, NULL, NULL, NULL},
    {"__dict__", get_dict, set_dict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};
