/* SPDX-License-Identifier: MIT */
/* python/src/dlpack.c: DLPack in Python's clothes: __dlpack__ and from_dlpack() with their
 * capsules, and the table of C functions behind the type attribute __dlpack_c_exchange_api__, with
 * which compiled code exchanges tensors without Python calls. */
#include "data.h"
#include "override.h"

#include <stdlib.h>
#include <string.h>

/* ---- the structs of DLPack 1.3, from the specification of its ABI ---- */

typedef struct dl_version {
    uint32_t major, minor;
} dl_version;

typedef struct dl_device {
    int32_t type, id;
} dl_device;

typedef struct dl_dtype {
    uint8_t code, bits;
    uint16_t lanes;
} dl_dtype;

typedef struct dl_tensor {
    void *data;
    dl_device device;
    int32_t ndim;
    dl_dtype dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

struct DLManagedTensor {
    dl_tensor tensor;
    void *ctx;
    void (*deleter)(struct DLManagedTensor *self);
};

struct DLManagedTensorVersioned {
    dl_version version;
    void *ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    dl_tensor tensor;
};

typedef struct DLManagedTensor dl_old;
typedef struct DLManagedTensorVersioned dl_managed;

enum { DL_CPU = 1, DL_CUDA = 2 };
#define DL_FLAG_COPIED (UINT64_C(1) << 1)

typedef struct dl_exchange_api {
    dl_version version;
    void *previous;
    int (*allocate)(dl_tensor *prototype, dl_managed **out, void *error_ctx,
                    void (*set_error)(void *error_ctx, const char *kind, const char *message));
    int (*from_object)(void *object, dl_managed **out);
    int (*to_object)(dl_managed *tensor, void **out);
    int (*view_object)(void *object, dl_tensor *out);
    int (*current_stream)(int32_t device_type, int32_t device_id, void **out);
} dl_exchange_api;

_Static_assert(sizeof(dl_tensor) == 48 && sizeof(dl_old) == 64 && sizeof(dl_managed) == 80,
               "DLPack ABI");

/* ---- capsules ---- */

static const char versioned_name[] = "dltensor_versioned";
static const char old_name[] = "dltensor";

/* A capsule that nobody took is renamed by nobody: then what is in it is still ours to free. */
static void drop_versioned(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, versioned_name))
        return;
    dl_managed *m = PyCapsule_GetPointer(capsule, versioned_name);
    if (m != NULL && m->deleter != NULL)
        m->deleter(m);
}

static void drop_old(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, old_name))
        return;
    dl_old *m = PyCapsule_GetPointer(capsule, old_name);
    if (m != NULL && m->deleter != NULL)
        m->deleter(m);
}

static void old_deleter(dl_old *m)
{
    dl_managed *inner = m->ctx;
    inner->deleter(inner);
    free(m);
}

static PyObject *refuse(tn_status st)
{
    if (st == TN_UNSUPPORTED) {
        PyErr_SetString(PyExc_BufferError, tn_last_error());
        return NULL;
    }
    return tnpy_raise(st);
}

/* Describe a tensor; NULL with an exception. */
static dl_managed *describe(tn_tensor *t)
{
    if (tn_tensor_requires_grad(t)) {
        PyErr_SetString(PyExc_BufferError,
                        "Can't export tensors that require gradient, use tensor.detach()");
        return NULL;
    }
    dl_managed *m = NULL;
    tn_status st = tn_to_dlpack(t, &m);
    if (st != TN_OK)
        refuse(st);
    return st == TN_OK ? m : NULL;
}

/* The DLPack number of a device, or -1. */
static int device_number(tn_device device)
{
    return device.type == TN_DEVICE_CPU ? DL_CPU : device.type == TN_DEVICE_CUDA ? DL_CUDA : -1;
}

static PyObject *dlpack_device(PyObject *self, PyObject *args)
{
    (void)args;
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return tnpy_override_method(self, "__dlpack_device__", NULL, NULL);
    tn_device device = tn_tensor_device(tnpy_tensor(self));
    int number = device_number(device);
    if (number < 0) {
        char text[32];
        PyErr_Format(PyExc_ValueError, "Unknown device type %s for Dlpack",
                     tn_device_format(device, text, sizeof text));
        return NULL;
    }
    return Py_BuildValue("(ii)", number, device.index < 0 ? 0 : device.index);
}

static PyObject *dlpack(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    static const tnpy_arguments names = {
        "__dlpack__", 0, 1, 4, {"stream", "max_version", "dl_device", "copy"}};
    static tnpy_entry entry = {.name = "__dlpack__", .method = 1};
    if (TNPY_UNLIKELY(tnpy_function_on(self)))
        return tnpy_override(&entry, self, args, n, kwnames);
    PyObject *a[4];
    if (tnpy_take(&names, args, n, kwnames, a) < 0)
        return NULL;
    tn_tensor *t = tnpy_tensor(self);
    long major = 0;
    if (a[1] != NULL && a[1] != Py_None) {
        PyObject *first = PySequence_GetItem(a[1], 0);
        major = first == NULL ? -1 : PyLong_AsLong(first);
        Py_XDECREF(first);
        if (PyErr_Occurred())
            return NULL;
    }
    if (a[0] != NULL && a[0] != Py_None && tn_tensor_device(t).type == TN_DEVICE_CPU) {
        long stream = PyLong_AsLong(a[0]);
        if (stream == -1 && PyErr_Occurred())
            return NULL;
        if (stream != -1) {
            PyErr_SetString(PyExc_AssertionError, "stream should be None on cpu.");
            return NULL;
        }
    }
    if (a[2] != NULL && a[2] != Py_None) {
        int type = 0, id = 0;
        PyObject *pair = PySequence_Tuple(a[2]);
        int ok = pair != NULL && PyArg_ParseTuple(pair, "ii", &type, &id);
        Py_XDECREF(pair);
        if (!ok)
            return NULL;
        if (type != device_number(tn_tensor_device(t))) {
            PyErr_SetString(PyExc_BufferError,
                            "the tensor lies on another device than dl_device asks for");
            return NULL;
        }
    }
    int copy = a[3] == NULL || a[3] == Py_None ? 0 : PyObject_IsTrue(a[3]);
    if (copy < 0)
        return NULL;
    tn_tensor *source = tn_tensor_ref(t);
    if (copy && !tn_tensor_requires_grad(t)) {
        tn_tensor *fresh = NULL;
        tn_status st = tn_clone(t, TN_FORMAT_NONE, &fresh);
        tn_tensor_unref(source);
        if (st != TN_OK)
            return tnpy_raise(st);
        source = fresh;
    }
    dl_managed *m = describe(source);
    tn_tensor_unref(source);
    if (m == NULL)
        return NULL;
    if (copy)
        m->flags |= DL_FLAG_COPIED;
    PyObject *capsule = NULL;
    if (major >= 1) {
        capsule = PyCapsule_New(m, versioned_name, drop_versioned);
    } else {
        dl_old *old = malloc(sizeof *old);
        if (old == NULL)
            PyErr_NoMemory();
        else {
            old->tensor = m->tensor;
            old->ctx = m;
            old->deleter = old_deleter;
            capsule = PyCapsule_New(old, old_name, drop_old);
            if (capsule == NULL)
                free(old);
        }
    }
    if (capsule == NULL)
        m->deleter(m);
    return capsule;
}

/* ---- from others ---- */

static PyObject *from_capsule(PyObject *capsule)
{
    tn_tensor *out = NULL;
    tn_status st = TN_OK;
    if (PyCapsule_IsValid(capsule, versioned_name)) {
        st = tn_from_dlpack(PyCapsule_GetPointer(capsule, versioned_name), &out);
        if (st == TN_OK)
            PyCapsule_SetName(capsule, "used_dltensor_versioned");
    } else if (PyCapsule_IsValid(capsule, old_name)) {
        st = tn_from_dlpack_legacy(PyCapsule_GetPointer(capsule, old_name), &out);
        if (st == TN_OK)
            PyCapsule_SetName(capsule, "used_dltensor");
    } else {
        const char *name = PyCapsule_GetName(capsule);
        PyErr_Clear();
        PyErr_Format(PyExc_RuntimeError,
                     "from_dlpack received an invalid capsule. Note that DLTensor capsules can be "
                     "consumed only once, so you might have already constructed a tensor from it "
                     "once. (its name is '%s')",
                     name == NULL ? "" : name);
        return NULL;
    }
    return st == TN_OK ? tnpy_wrap(out) : refuse(st);
}

/* The capsule of an object with __dlpack__, asked for as the standard of today says and, where the
 * object is older than that, as the one before. */
static PyObject *capsule_of(PyObject *o, PyObject *device, PyObject *copy)
{
    PyObject *method = PyObject_GetAttrString(o, "__dlpack__");
    if (method == NULL) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError))
            PyErr_Format(PyExc_RuntimeError,
                         "from_dlpack received an invalid capsule. Note that DLTensor capsules can "
                         "be consumed only once, so you might have already constructed a tensor "
                         "from it once. (it is %R)",
                         (PyObject *)Py_TYPE(o));
        return NULL;
    }
    PyObject *none = PyTuple_New(0), *kw = Py_BuildValue("{s:(ii)}", "max_version", 1, 0);
    PyObject *capsule = NULL;
    if (none != NULL && kw != NULL &&
        (device == NULL || PyDict_SetItemString(kw, "dl_device", device) == 0) &&
        (copy == NULL || PyDict_SetItemString(kw, "copy", copy) == 0)) {
        capsule = PyObject_Call(method, none, kw);
        if (capsule == NULL && device == NULL && copy == NULL &&
            PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            capsule = PyObject_Call(method, none, NULL);
        }
    }
    Py_XDECREF(none);
    Py_XDECREF(kw);
    Py_DECREF(method);
    return capsule;
}

static PyObject *from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t n,
                             PyObject *kwnames)
{
    (void)module;
    static const tnpy_arguments names = {"from_dlpack", 1, 1, 3, {"ext_tensor", "device", "copy"}};
    PyObject *a[3];
    if (tnpy_take(&names, args, n, kwnames, a) < 0)
        return NULL;
    if (PyCapsule_CheckExact(a[0]))
        return from_capsule(a[0]);
    PyObject *dl_device_object = NULL;
    if (a[1] != NULL && a[1] != Py_None) {
        tn_device device;
        if (tnpy_device_of(a[1], &device) < 0)
            return NULL;
        dl_device_object =
            Py_BuildValue("(ii)", device_number(device), device.index < 0 ? 0 : (int)device.index);
        if (dl_device_object == NULL)
            return NULL;
    }
    PyObject *capsule =
        capsule_of(a[0], dl_device_object, a[2] == NULL || a[2] == Py_None ? NULL : a[2]);
    Py_XDECREF(dl_device_object);
    if (capsule == NULL)
        return NULL;
    PyObject *out = NULL;
    if (PyCapsule_CheckExact(capsule))
        out = from_capsule(capsule);
    else
        PyErr_SetString(PyExc_TypeError, "__dlpack__ did not return a capsule");
    Py_DECREF(capsule);
    return out;
}

/* ---- the exchange interface in C ---- */

static int api_allocate(dl_tensor *prototype, dl_managed **out, void *error_ctx,
                        void (*set_error)(void *error_ctx, const char *kind, const char *message))
{
    static const struct {
        dl_dtype dtype;
        tn_dtype ours;
    } known[] = {
        {{1, 8, 1}, TN_DTYPE_U8},        {{0, 8, 1}, TN_DTYPE_I8},
        {{0, 16, 1}, TN_DTYPE_I16},      {{0, 32, 1}, TN_DTYPE_I32},
        {{0, 64, 1}, TN_DTYPE_I64},      {{2, 16, 1}, TN_DTYPE_F16},
        {{2, 32, 1}, TN_DTYPE_F32},      {{2, 64, 1}, TN_DTYPE_F64},
        {{4, 16, 1}, TN_DTYPE_BF16},     {{5, 64, 1}, TN_DTYPE_C64},
        {{5, 128, 1}, TN_DTYPE_C128},    {{6, 8, 1}, TN_DTYPE_BOOL},
        {{1, 16, 1}, TN_DTYPE_U16},      {{1, 32, 1}, TN_DTYPE_U32},
        {{1, 64, 1}, TN_DTYPE_U64},      {{10, 8, 1}, TN_DTYPE_F8E4M3},
        {{11, 8, 1}, TN_DTYPE_F8E4M3UZ}, {{12, 8, 1}, TN_DTYPE_F8E5M2},
        {{13, 8, 1}, TN_DTYPE_F8E5M2UZ},
    };
    tn_tensor_opts opts = tn_opts(TN_DTYPE_NONE, TN_CPU);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (memcmp(&known[i].dtype, &prototype->dtype, sizeof prototype->dtype) == 0)
            opts.dtype = known[i].ours;
    if (opts.dtype == TN_DTYPE_NONE || prototype->device.type != DL_CPU) {
        set_error(error_ctx, "BufferError", "no tensor of this dtype or device");
        return -1;
    }
    tn_tensor *t = NULL;
    tn_status st = tn_empty(prototype->shape, prototype->ndim, &opts, TN_FORMAT_CONTIGUOUS, &t);
    if (st == TN_OK)
        st = tn_to_dlpack(t, out);
    tn_tensor_unref(t);
    if (st != TN_OK) {
        set_error(error_ctx, st == TN_NOMEM ? "MemoryError" : "BufferError", tn_last_error());
        return -1;
    }
    return 0;
}

static tn_tensor *api_tensor(void *object)
{
    tn_tensor *t = object == NULL ? NULL : tnpy_tensor((PyObject *)object);
    if (t == NULL)
        PyErr_SetString(PyExc_TypeError, "expected a Tensor");
    return t;
}

static int api_from_object(void *object, dl_managed **out)
{
    tn_tensor *t = api_tensor(object);
    dl_managed *m = t == NULL ? NULL : describe(t);
    if (m == NULL)
        return -1;
    *out = m;
    return 0;
}

static int api_to_object(dl_managed *tensor, void **out)
{
    tn_tensor *t = NULL;
    tn_status st = tn_from_dlpack(tensor, &t);
    PyObject *o = st == TN_OK ? tnpy_wrap(t) : refuse(st);
    if (st != TN_OK && tensor->deleter != NULL)
        tensor->deleter(tensor); /* stolen, also when it fails */
    *out = o;
    return o == NULL ? -1 : 0;
}

/* Borrowed: valid while the object lives and is not changed. Sizes and strides are the tensor's. */
static int api_view_object(void *object, dl_tensor *out)
{
    tn_tensor *t = api_tensor(object);
    dl_managed *m = t == NULL ? NULL : describe(t);
    if (m == NULL)
        return -1;
    *out = m->tensor;
    out->shape = (int64_t *)(uintptr_t)tn_tensor_sizes(t);
    out->strides = (int64_t *)(uintptr_t)tn_tensor_strides(t);
    m->deleter(m);
    return 0;
}

static int api_current_stream(int32_t device_type, int32_t device_id, void **out)
{
    (void)device_type;
    (void)device_id;
    *out = NULL;
    return 0;
}

static const dl_exchange_api exchange_api = {{1, 3},
                                             NULL,
                                             api_allocate,
                                             api_from_object,
                                             api_to_object,
                                             api_view_object,
                                             api_current_stream};

static PyMethodDef functions[] = {
    {"from_dlpack", (PyCFunction)(void (*)(void))from_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "from_dlpack(ext_tensor, *, device=None, copy=None)\n--\n\n"
     "A tensor over the memory of an object with __dlpack__, or of a DLPack capsule."},
    {NULL, NULL, 0, NULL}};

static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))dlpack, METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__(*, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule over the memory of the tensor."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};

int tnpy_add_dlpack(PyObject *module)
{
    if (PyModule_AddFunctions(module, functions) < 0 || tnpy_add_methods(methods, NULL) < 0)
        return -1;
    PyObject *api = PyCapsule_New((void *)(uintptr_t)&exchange_api, "dlpack_exchange_api", NULL);
    int bad = api == NULL ||
              PyObject_SetAttrString((PyObject *)tnpy_Tensor, "__dlpack_c_exchange_api__", api) < 0;
    Py_XDECREF(api);
    return bad ? -1 : 0;
}
