/* SPDX-License-Identifier: MIT */
/* python/src/buffer.c: memory shared with other Python objects through the buffer protocol, which
 * NumPy speaks both ways: from_numpy(), frombuffer(), and a Tensor's own buffer. NumPy's C API is
 * not used, so that one binary serves every version of it and none is needed. */
#include "data.h"
#include "tenon/fake.h"
#include "tenon/storage.h"

#include <string.h>

/* ---- from a buffer ---- */

static PyObject *array_interface; /* the attribute's name */

int tnpy_is_array(PyObject *o)
{
    if (!PyObject_CheckBuffer(o) || PyByteArray_Check(o) || PyMemoryView_Check(o) ||
        PyBytes_Check(o))
        return 0;
    PyObject *mark = PyObject_GetAttr((PyObject *)Py_TYPE(o), array_interface);
    if (mark == NULL)
        PyErr_Clear();
    Py_XDECREF(mark);
    return mark != NULL;
}

/* The dtype of struct's format letter; NONE when there is none. *swapped: bytes the other way. */
static tn_dtype dtype_of_format(const char *format, Py_ssize_t itemsize, bool *swapped)
{
    *swapped = false;
    if (format == NULL)
        return itemsize == 1 ? TN_DTYPE_U8 : TN_DTYPE_NONE;
    if (*format == '>' || *format == '!')
        *swapped = true;
    if (strchr("@=<>!^", *format) != NULL && *format != '\0')
        format++;
    char letter = *format;
    bool is_complex = letter == 'Z';
    if (is_complex)
        letter = *++format;
    if (letter == '\0' || format[1] != '\0')
        return TN_DTYPE_NONE;
    if (itemsize == 1)
        *swapped = false;
    if (is_complex)
        return letter == 'f' ? TN_DTYPE_C64 : letter == 'd' ? TN_DTYPE_C128 : TN_DTYPE_NONE;
    switch (letter) {
    case '?':
        return TN_DTYPE_BOOL;
    case 'B':
        return TN_DTYPE_U8;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
        switch (itemsize) {
        case 1:
            return TN_DTYPE_I8;
        case 2:
            return TN_DTYPE_I16;
        case 4:
            return TN_DTYPE_I32;
        case 8:
            return TN_DTYPE_I64;
        default:
            return TN_DTYPE_NONE;
        }
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
        return itemsize == 2   ? TN_DTYPE_U16
               : itemsize == 4 ? TN_DTYPE_U32
               : itemsize == 8 ? TN_DTYPE_U64
                               : TN_DTYPE_NONE;
    case 'e':
        return TN_DTYPE_F16;
    case 'f':
        return TN_DTYPE_F32;
    case 'd':
        return itemsize == 8 ? TN_DTYPE_F64 : TN_DTYPE_NONE;
    default:
        return TN_DTYPE_NONE;
    }
}

static void refuse_dtype(PyObject *o)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError))
        return;
    PyErr_Clear();
    PyObject *dtype = PyObject_GetAttrString(o, "dtype");
    PyObject *type = dtype == NULL ? NULL : PyObject_GetAttrString(dtype, "type");
    PyObject *name = type == NULL ? NULL : PyObject_GetAttrString(type, "__name__");
    PyErr_Clear();
    if (name != NULL)
        PyErr_Format(PyExc_TypeError,
                     "can't convert np.ndarray of type numpy.%U. The only supported types are: "
                     "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
                     "uint64, uint32, uint16, uint8, and bool.",
                     name);
    else {
        char text[128];
        PyErr_Format(PyExc_TypeError, "can't convert a buffer of type %s to a tensor",
                     tnpy_type_name(o, text, sizeof text));
    }
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(dtype);
}

static void release_owner(void *ctx)
{
    tnpy_release((PyObject *)ctx);
}

/* Arrays and buffers are told of once each. */
static bool warned_of_array, warned_of_buffer;

static int warn_read_only(bool *warned, const char *text)
{
    if (*warned)
        return 0;
    *warned = true;
    return PyErr_WarnEx(PyExc_UserWarning, text, 1);
}

/* The strides that NumPy shows of an array; the ones in its buffer are others where a dimension has
 * at most one element. NULL without an exception: it has none to show. */
static PyObject *strides_shown(PyObject *o, const Py_buffer *view)
{
    bool plain = true;
    for (int i = 0; i < view->ndim && view->shape != NULL; i++)
        plain &= view->shape[i] > 1;
    if (plain || !tnpy_is_array(o))
        return NULL;
    PyObject *strides = PyObject_GetAttrString(o, "strides");
    if (strides != NULL && PyTuple_Check(strides) && PyTuple_Size(strides) == view->ndim)
        return strides;
    Py_XDECREF(strides);
    PyErr_Clear();
    return NULL;
}

/* Sizes and strides of a view, in elements; the strides of a tensor are never negative. Where a
 * dimension has at most one element any stride does: the array's where a tensor can have it. */
static int layout_of(const Py_buffer *view, PyObject *shown, int64_t *sizes, int64_t *strides)
{
    int64_t contiguous = 1;
    for (int i = view->ndim - 1; i >= 0; i--) {
        int64_t size = view->shape == NULL ? view->len / view->itemsize : view->shape[i];
        sizes[i] = size;
        int64_t bytes = view->strides == NULL ? contiguous * view->itemsize : view->strides[i];
        if (shown != NULL && (size <= 1 || view->len == 0)) {
            bytes = PyLong_AsLongLong(PyTuple_GetItem(shown, i));
            PyErr_Clear();
        }
        if (size <= 1 && (shown == NULL || bytes < 0 || bytes % view->itemsize != 0))
            bytes = contiguous * view->itemsize;
        if (bytes < 0) {
            PyErr_SetString(
                PyExc_ValueError,
                "At least one stride in the given numpy array is negative, and tensors "
                "with negative strides are not currently supported. (You can probably "
                "work around this by making a copy of your array  with array.copy().) ");
            return -1;
        }
        if (bytes % view->itemsize != 0) {
            PyErr_SetString(PyExc_ValueError,
                            "given numpy array strides not a multiple of the element byte size. "
                            "Copy the numpy array to reallocate the memory.");
            return -1;
        }
        strides[i] = bytes / view->itemsize;
        contiguous *= size > 0 ? size : 1;
    }
    return 0;
}

/* Do elements of @p dtype lie where the processor wants them? A tensor's always do. */
static bool is_aligned(const void *data, tn_dtype dtype)
{
    size_t size = tn_dtype_size(dtype);
    return (uintptr_t)data % (tn_dtype_is_complex(dtype) ? size / 2 : size) == 0;
}

/* Of an array whose memory is not aligned: one whose memory is. NULL: an exception is set. */
static tn_tensor *from_copy(PyObject *array)
{
    PyObject *copy = PyObject_CallMethod(array, "copy", NULL);
    tn_tensor *out = copy == NULL ? NULL : tnpy_from_buffer(copy);
    Py_XDECREF(copy);
    return out;
}

static tn_tensor *from_view(PyObject *o, PyObject *owner, const Py_buffer *view)
{
    int64_t sizes[TN_MAX_DIMS], strides[TN_MAX_DIMS];
    bool swapped;
    tn_dtype dtype = dtype_of_format(view->format, view->itemsize, &swapped);
    if (dtype == TN_DTYPE_NONE) {
        refuse_dtype(o);
        return NULL;
    }
    if (swapped) {
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array has byte order different from the native byte order. "
                        "Conversion between byte orders is currently not supported.");
        return NULL;
    }
    if (view->ndim > TN_MAX_DIMS || view->suboffsets != NULL) {
        PyErr_SetString(PyExc_ValueError, "the buffer has a form that no tensor can have");
        return NULL;
    }
    if (!is_aligned(view->buf, dtype) && tnpy_is_array(o))
        return from_copy(o);
    PyObject *shown = strides_shown(o, view);
    int bad = layout_of(view, shown, sizes, strides);
    Py_XDECREF(shown);
    if (bad < 0)
        return NULL;
    tn_tensor *out = NULL;
    tn_status st = tn_tensor_from_blob(view->buf, view->ndim, sizes, strides, dtype, release_owner,
                                       owner, &out);
    if (st != TN_OK) {
        tnpy_raise(st);
        return NULL;
    }
    Py_INCREF(owner); /* the tensor's, given back by release_owner */
    return out;
}

/* The memoryview is what holds the buffer: while it lives NumPy does not move the array. */
tn_tensor *tnpy_from_buffer(PyObject *o)
{
    PyObject *owner = PyMemoryView_FromObject(o);
    if (owner == NULL) {
        refuse_dtype(o);
        return NULL;
    }
    Py_buffer view;
    tn_tensor *out = NULL;
    if (PyObject_GetBuffer(owner, &view, PyBUF_FULL_RO) == 0) {
        out = from_view(o, owner, &view);
        PyBuffer_Release(&view);
    } else
        refuse_dtype(o);
    Py_DECREF(owner);
    return out;
}

int tnpy_warn_read_only(PyObject *array)
{
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_SIMPLE | PyBUF_STRIDES) < 0) {
        PyErr_Clear();
        return 0;
    }
    int readonly = view.readonly;
    PyBuffer_Release(&view);
    if (!readonly)
        return 0;
    return warn_read_only(&warned_of_array,
                          "The given NumPy array is not writable, and PyTorch does not support "
                          "non-writable tensors. This means writing to this tensor will result in "
                          "undefined behavior. You may want to copy the array to protect its data "
                          "or make it writable before converting it to a tensor. This type of "
                          "warning will be suppressed for the rest of this program.");
}

/* from_numpy promises that writes are seen on both sides: an array that can be written and that no
 * tensor can lie over is refused. What nobody writes may be copied. */
static int must_share(PyObject *array)
{
    Py_buffer view;
    if (PyObject_GetBuffer(array, &view, PyBUF_FULL_RO) < 0) {
        PyErr_Clear(); /* told of where the tensor is made */
        return 0;
    }
    bool swapped;
    tn_dtype dtype = dtype_of_format(view.format, view.itemsize, &swapped);
    bool refused = dtype != TN_DTYPE_NONE && !view.readonly && !is_aligned(view.buf, dtype);
    PyBuffer_Release(&view);
    if (refused)
        PyErr_SetString(PyExc_ValueError,
                        "given numpy array is not aligned for its dtype. Copy the "
                        "numpy array to reallocate the memory.");
    return refused ? -1 : 0;
}

static PyObject *from_numpy(PyObject *module, PyObject *o)
{
    (void)module;
    if (!tnpy_is_array(o) || tnpy_is_number(o)) {
        char name[128];
        PyErr_Format(PyExc_TypeError, "expected np.ndarray (got %s)",
                     tnpy_type_name(o, name, sizeof name));
        return NULL;
    }
    if (tnpy_warn_read_only(o) < 0 || must_share(o) < 0)
        return NULL;
    /* Inside a fake mode memory is not looked at: what it holds is known where it is one number. */
    tn_tensor *t = tnpy_lifted(tn_fake_mode_current() ? tnpy_from_data(o, TN_DTYPE_NONE)
                                                      : tnpy_from_buffer(o));
    return t == NULL ? NULL : tnpy_wrap(t);
}

static PyObject *frombuffer(PyObject *module, PyObject *const *args, Py_ssize_t n,
                            PyObject *kwnames)
{
    (void)module;
    static const tnpy_arguments names = {
        "frombuffer", 1, 1, 5, {"buffer", "dtype", "count", "offset", "requires_grad"}};
    PyObject *a[5];
    tn_dtype dtype;
    int64_t count = -1, offset = 0;
    if (tnpy_take(&names, args, n, kwnames, a) < 0)
        return NULL;
    if (a[1] == NULL) {
        PyErr_SetString(PyExc_TypeError,
                        "frombuffer() missing 1 required keyword-only argument: 'dtype'");
        return NULL;
    }
    if (tnpy_dtype_of(a[1], &dtype) < 0 || (a[2] != NULL && tnpy_long_of(a[2], &count) < 0) ||
        (a[3] != NULL && tnpy_long_of(a[3], &offset) < 0))
        return NULL;
    int requires_grad = a[4] == NULL ? 0 : PyObject_IsTrue(a[4]);
    if (requires_grad < 0)
        return NULL;
    if (!PyObject_CheckBuffer(a[0])) {
        PyErr_SetString(PyExc_ValueError, "object does not implement Python buffer protocol.");
        return NULL;
    }
    PyObject *owner = PyMemoryView_FromObject(a[0]);
    Py_buffer view;
    if (owner == NULL || PyObject_GetBuffer(owner, &view, PyBUF_SIMPLE) < 0) {
        Py_XDECREF(owner);
        return NULL;
    }
    int64_t size = (int64_t)tn_dtype_size(dtype), len = view.len;
    tn_tensor *out = NULL;
    if (len == 0 || count == 0)
        PyErr_Format(PyExc_ValueError, "both buffer length (%lld) and count (%lld) must not be 0",
                     (long long)len, (long long)count);
    else if (offset < 0 || offset >= len)
        PyErr_Format(PyExc_ValueError,
                     "offset (%lld bytes) must be non-negative and no greater than buffer length "
                     "(%lld bytes) minus 1",
                     (long long)offset, (long long)len);
    else if (count < 0 && (len - offset) % size != 0)
        PyErr_Format(PyExc_ValueError,
                     "buffer length (%lld bytes) after offset (%lld bytes) must be a multiple of "
                     "element size (%lld)",
                     (long long)(len - offset), (long long)offset, (long long)size);
    else if (count > 0 && count > (len - offset) / size)
        PyErr_Format(PyExc_ValueError,
                     "requested buffer length (%lld * %lld bytes) after offset (%lld bytes) must "
                     "not be greater than actual buffer length (%lld bytes)",
                     (long long)count, (long long)size, (long long)offset, (long long)len);
    else if (!view.readonly ||
             warn_read_only(
                 &warned_of_buffer,
                 "The given buffer is not writable, and PyTorch does not support "
                 "non-writable tensors. This means you can write to the underlying "
                 "(supposedly non-writable) buffer using the tensor. You may want to "
                 "copy the buffer to protect its data or make it writable before "
                 "converting it to a tensor. This type of warning will be suppressed for "
                 "the rest of this program.") == 0) {
        int64_t elements = count < 0 ? (len - offset) / size : count;
        char *data = (char *)view.buf + offset;
        PyObject *held = owner;
        Py_INCREF(held);
        if (view.readonly && !is_aligned(data, dtype)) { /* nobody writes it: a copy is as good */
            Py_DECREF(held);
            held = PyBytes_FromStringAndSize(data, elements * size);
            data = held == NULL ? NULL : PyBytes_AsString(held);
        }
        if (data == NULL) {
            PyBuffer_Release(&view);
            Py_DECREF(owner);
            return NULL;
        }
        tn_status st =
            tn_tensor_from_blob(data, 1, &elements, NULL, dtype, release_owner, held, &out);
        if (st != TN_OK)
            Py_DECREF(held);
        else {
            if (requires_grad)
                st = tn_tensor_set_requires_grad(out, true);
        }
        if (st != TN_OK) {
            tn_tensor_unref(out);
            out = NULL;
            tnpy_raise(st);
        }
    }
    PyBuffer_Release(&view);
    Py_DECREF(owner);
    return out == NULL ? NULL : tnpy_wrap(out);
}

/* ---- a tensor's buffer ---- */

static const char *format_of(tn_dtype dtype)
{
    switch (dtype) {
    case TN_DTYPE_U8:
        return "B";
    case TN_DTYPE_I8:
        return "b";
    case TN_DTYPE_I16:
        return "h";
    case TN_DTYPE_I32:
        return "i";
    case TN_DTYPE_I64:
        return sizeof(long) == 8 ? "l" : "q";
    case TN_DTYPE_F16:
        return "e";
    case TN_DTYPE_F32:
        return "f";
    case TN_DTYPE_F64:
        return "d";
    case TN_DTYPE_C64:
        return "Zf";
    case TN_DTYPE_C128:
        return "Zd";
    case TN_DTYPE_BOOL:
        return "?";
    case TN_DTYPE_U16:
        return "H";
    case TN_DTYPE_U32:
        return "I";
    case TN_DTYPE_U64:
        return sizeof(long) == 8 ? "L" : "Q";
    default:
        return NULL; /* bfloat16 and float8 have no letter */
    }
}

/* What a view holds on to: the memory (not the tensor, which may get other memory), and room for
 * its form. */
typedef struct held {
    tn_storage *storage;
    Py_ssize_t shape[TN_MAX_DIMS], strides[TN_MAX_DIMS];
} held;

int tnpy_get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    static char nothing[16];
    tn_tensor *t = tnpy_tensor(self);
    const char *format = t == NULL ? NULL : format_of(tn_tensor_dtype(t));
    view->obj = NULL;
    if (t == NULL || format == NULL || tn_tensor_device(t).type != TN_DEVICE_CPU ||
        tn_tensor_requires_grad(t) || (tn_tensor_data(t) == NULL && tn_tensor_numel(t) != 0)) {
        PyErr_SetString(PyExc_BufferError,
                        "this Tensor has no buffer: it needs memory of the CPU, a dtype that a "
                        "buffer can say, and no requires_grad");
        return -1;
    }
    bool contiguous = tn_tensor_is_contiguous(t, TN_FORMAT_CONTIGUOUS);
    if (!contiguous && (flags & PyBUF_STRIDES) != PyBUF_STRIDES) {
        PyErr_SetString(PyExc_BufferError, "the Tensor is not contiguous");
        return -1;
    }
    if (!contiguous && (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS) {
        PyErr_SetString(PyExc_BufferError, "the Tensor is not C-contiguous");
        return -1;
    }
    if (tn_tensor_ndim(t) > 1 && (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS) {
        PyErr_SetString(PyExc_BufferError, "the Tensor is not Fortran contiguous");
        return -1;
    }
    held *h = PyMem_Malloc(sizeof *h);
    if (h == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    int ndim = tn_tensor_ndim(t);
    Py_ssize_t itemsize = (Py_ssize_t)tn_dtype_size(tn_tensor_dtype(t));
    h->storage = tn_tensor_storage(t);
    for (int i = 0; i < ndim; i++) {
        h->shape[i] = (Py_ssize_t)tn_tensor_sizes(t)[i];
        h->strides[i] = (Py_ssize_t)tn_tensor_strides(t)[i] * itemsize;
    }
    view->buf = tn_tensor_data(t) == NULL ? nothing : tn_tensor_data(t);
    view->obj = Py_NewRef(self);
    view->len = (Py_ssize_t)tn_tensor_nbytes(t);
    view->itemsize = itemsize;
    view->readonly = 0;
    view->ndim = ndim;
    view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? (char *)(uintptr_t)format : NULL;
    view->shape = (flags & PyBUF_ND) == PyBUF_ND ? h->shape : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? h->strides : NULL;
    view->suboffsets = NULL;
    view->internal = h;
    return 0;
}

void tnpy_release_buffer(PyObject *self, Py_buffer *view)
{
    (void)self;
    held *h = view->internal;
    if (h != NULL) {
        tn_storage_unref(h->storage);
        PyMem_Free(h);
    }
}

static PyMethodDef functions[] = {
    {"from_numpy", from_numpy, METH_O,
     "from_numpy(ndarray)\n--\n\nA tensor over the memory of a NumPy array."},
    {"frombuffer", (PyCFunction)(void (*)(void))frombuffer, METH_FASTCALL | METH_KEYWORDS,
     "frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False)\n--\n\n"
     "A tensor of one dimension over the memory of an object with a buffer."},
    {NULL, NULL, 0, NULL}};

int tnpy_add_buffer(PyObject *module)
{
    array_interface = PyUnicode_InternFromString("__array_interface__");
    if (!array_interface)
        return -1;
    return PyModule_AddFunctions(module, functions);
}
