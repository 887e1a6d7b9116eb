/* SPDX-License-Identifier: MIT */
/* python/src/construct.c: tensor() and as_tensor(), and the taking of arguments by functions that
 * are no operators. */
#include "dimname.h"
#include "data.h"
#include "override.h"
#include "tenon/fake.h"

/* ---- arguments ---- */

int tnpy_take(const tnpy_arguments *names, PyObject *const *args, Py_ssize_t n_args,
              PyObject *kwnames, PyObject **out)
{
    for (int i = 0; i < names->n; i++)
        out[i] = NULL;
    if (n_args > names->n_pos) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given",
                     names->function, names->n_pos, names->n_pos == 1 ? "" : "s", n_args,
                     n_args == 1 ? "was" : "were");
        return -1;
    }
    for (Py_ssize_t i = 0; i < n_args; i++)
        out[i] = args[i];
    Py_ssize_t n_kw = kwnames == NULL ? 0 : PyTuple_Size(kwnames);
    for (Py_ssize_t k = 0; k < n_kw; k++) {
        PyObject *key = PyTuple_GetItem(kwnames, k);
        int i = 0;
        while (i < names->n && PyUnicode_CompareWithASCIIString(key, names->names[i]) != 0)
            i++;
        if (i == names->n) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                         names->function, key);
            return -1;
        }
        if (out[i] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                         names->function, key);
            return -1;
        }
        out[i] = args[n_args + k];
    }
    for (int i = 0; i < names->n_min; i++)
        if (out[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing %d required positional arguments: \"%s\"",
                         names->function, names->n_min, names->names[i]);
            return -1;
        }
    return 0;
}

int tnpy_add_methods(PyMethodDef *methods, PyGetSetDef *properties)
{
    for (PyMethodDef *m = methods; m != NULL && m->ml_name != NULL; m++) {
        PyObject *d = PyDescr_NewMethod(tnpy_Tensor, m);
        if (d == NULL || PyObject_SetAttrString((PyObject *)tnpy_Tensor, m->ml_name, d) < 0) {
            Py_XDECREF(d);
            return -1;
        }
        Py_DECREF(d);
    }
    for (PyGetSetDef *g = properties; g != NULL && g->name != NULL; g++) {
        PyObject *d = PyDescr_NewGetSet(tnpy_Tensor, g);
        if (d == NULL || PyObject_SetAttrString((PyObject *)tnpy_Tensor, g->name, d) < 0) {
            Py_XDECREF(d);
            return -1;
        }
        Py_DECREF(d);
    }
    return 0;
}

/* ---- tensor(), as_tensor() ---- */

/* Takes a tensor, or the lifted memory of an array, to where it is wanted. */
static tn_tensor *bring(tn_tensor *t, tn_device device, tn_dtype dtype, bool copy)
{
    if (t == NULL)
        return NULL;
    tn_tensor *there = NULL;
    PyThreadState *state = tnpy_unlock();
    tn_status st = tn_to_device(t, device.type == TN_DEVICE_NONE ? tn_tensor_device(t) : device,
                                dtype == TN_DTYPE_NONE ? tn_tensor_dtype(t) : dtype, false, copy,
                                TN_FORMAT_NONE, &there);
    tn_tensor_unref(t);
    tnpy_lock(state);
    if (st != TN_OK)
        tnpy_raise(st);
    return there;
}

/* Takes fresh values, and moves and shows them. What goes to meta was made there, for all that
 * modes can see. */
static tn_tensor *lift(tn_tensor *t, tn_device device)
{
    if (tn_fake_mode_current()) /* which has to see it before it can pretend a device */
        return bring(tnpy_lifted(t), device, TN_DTYPE_NONE, false);
    if (t != NULL && device.type != TN_DEVICE_NONE && device.type != tn_tensor_device(t).type) {
        tn_tensor *there = NULL;
        tn_key_guard guard = tn_force_keys(0, tn_excluded_keys());
        tn_status st =
            tn_to_device(t, device, tn_tensor_dtype(t), false, false, TN_FORMAT_NONE, &there);
        tn_keys_restore(guard);
        tn_tensor_unref(t);
        if (st != TN_OK)
            tnpy_raise(st);
        t = there;
    }
    return tnpy_lifted(t);
}

static tn_tensor *detached(tn_tensor *source)
{
    tn_tensor *plain = NULL;
    tn_status st = tn_detach(source, &plain);
    if (st != TN_OK)
        tnpy_raise(st);
    return plain;
}

/* Takes @p t; marks it and wraps it. */
static PyObject *finish(tn_tensor *t, bool requires_grad)
{
    if (t == NULL)
        return NULL;
    tn_status st = TN_OK;
    if (st == TN_OK && requires_grad) {
        tn_dtype dtype = tn_tensor_dtype(t);
        if (tn_dtype_is_floating(dtype) || tn_dtype_is_complex(dtype))
            st = tn_tensor_set_requires_grad(t, true);
        else
            st = tn_fail(TN_INVALID,
                         "Only Tensors of floating point and complex dtype can require gradients");
    }
    if (st != TN_OK) {
        tn_tensor_unref(t);
        return tnpy_raise(st);
    }
    return tnpy_wrap(t);
}

/* Whether it is an array whose memory is to be seen. A number of NumPy's has a buffer that nobody
 * may write, too: it is a number. */
static bool is_memory(PyObject *o)
{
    return tnpy_is_array(o) && !tnpy_is_number(o) && !tn_fake_mode_current();
}

static int given(PyObject *o)
{
    return o != NULL && o != Py_None;
}

static int wrong_type(const char *function, const char *argument, const char *wanted, PyObject *o)
{
    char name[128];
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", function, argument,
                 wanted, tnpy_type_name(o, name, sizeof name));
    return -1;
}

static int options_of(const char *function, PyObject *dtype, PyObject *device, tn_dtype *out_dtype,
                      tn_device *out_device)
{
    *out_dtype = TN_DTYPE_NONE;
    *out_device = TN_NO_DEVICE;
    if (given(dtype) && tnpy_dtype_of(dtype, out_dtype) < 0)
        return wrong_type(function, "dtype", "torch.dtype", dtype);
    if (!given(device) && tnpy_function_off < 2)
        *out_device = tnpy_default_device;
    if (given(device) && tnpy_device_of(device, out_device) < 0)
        return PyErr_ExceptionMatches(PyExc_TypeError)
                   ? wrong_type(function, "device", "torch.device", device)
                   : -1; /* a name that is no device's has its own text */
    return 0;
}

/* Is a mode on, or has one of the options a __torch_function__? The data has no say. */
static bool is_asked(PyObject *const *options, int n)
{
    return (tnpy_function_modes != 0 && tnpy_function_off < 2) || tnpy_stranger_in(options, n);
}

static PyObject *ask_options(tnpy_entry *e, PyObject *const *args, Py_ssize_t n, PyObject *kwnames,
                             PyObject *const *options, int n_options)
{
    PyObject *asking[8];
    int n_asking = 0;
    for (int i = 0; i < n_options; i++)
        if (tnpy_stranger_in(&options[i], 1))
            asking[n_asking++] = options[i];
    return tnpy_override_by(e, NULL, args, n, kwnames, asking, n_asking);
}

static PyObject *tensor_function(PyObject *module, PyObject *const *args, Py_ssize_t n,
                                 PyObject *kwnames)
{
    (void)module;
    static const tnpy_arguments names = {
        "tensor", 1, 1, 6, {"data", "dtype", "device", "requires_grad", "pin_memory", "names"}};
    static tnpy_entry entry = {.name = "tensor"};
    PyObject *a[6];
    tn_dtype dtype;
    tn_device device;
    if (tnpy_take(&names, args, n, kwnames, a) < 0)
        return NULL;
    if (TNPY_UNLIKELY(is_asked(a + 1, 5)))
        return ask_options(&entry, args, n, kwnames, a + 1, 5);
    if (options_of(names.function, a[1], a[2], &dtype, &device) < 0)
        return NULL;
    if (a[3] != NULL && !PyBool_Check(a[3])) {
        wrong_type(names.function, "requires_grad", "bool", a[3]);
        return NULL;
    }
    if (a[5] != NULL && a[5] != Py_None && !PyTuple_Check(a[5]) && !PyList_Check(a[5])) {
        wrong_type(names.function, "names", "tuple of names", a[5]);
        return NULL;
    }
    tn_tensor *source = tnpy_tensor(a[0]);
    if (source != NULL) {
        if (PyErr_WarnEx(PyExc_UserWarning,
                         "To copy construct from a tensor, it is recommended to use "
                         "sourceTensor.detach().clone() or "
                         "sourceTensor.detach().clone().requires_grad_(True), rather than "
                         "torch.tensor(sourceTensor).",
                         1) < 0)
            return NULL;
        if (device.type == TN_DEVICE_NONE)
            device = tn_tensor_device(source);
    }
    tn_tensor *t;
    if (source != NULL && tn_included_keys() != 0)
        t = bring(detached(source), device, dtype, true);
    else if (is_memory(a[0]) && tn_included_keys() != 0)
        t = bring(tnpy_lifted(tnpy_from_buffer(a[0])), device, dtype, true);
    else
        t = lift(tnpy_from_data(a[0], dtype), device);
    PyObject *made = finish(t, a[3] == Py_True);
    if (made != NULL && a[5] != NULL && a[5] != Py_None &&
        tnpy_set_names(tnpy_tensor(made), a[5], NULL) < 0)
        Py_CLEAR(made);
    return made;
}

static PyObject *as_tensor_function(PyObject *module, PyObject *const *args, Py_ssize_t n,
                                    PyObject *kwnames)
{
    (void)module;
    static const tnpy_arguments names = {"as_tensor", 1, 1, 3, {"data", "dtype", "device"}};
    static tnpy_entry entry = {.name = "as_tensor"};
    PyObject *a[3];
    tn_dtype dtype;
    tn_device device;
    if (tnpy_take(&names, args, n, kwnames, a) < 0)
        return NULL;
    if (TNPY_UNLIKELY(is_asked(a + 1, 2)))
        return ask_options(&entry, args, n, kwnames, a + 1, 2);
    if (options_of(names.function, a[1], a[2], &dtype, &device) < 0)
        return NULL;
    tn_tensor *source = tnpy_tensor(a[0]);
    if (source != NULL) {
        tn_device here = tn_tensor_device(source);
        bool same_device = device.type == TN_DEVICE_NONE ||
                           (device.type == here.type &&
                            (device.index < 0 || here.index < 0 || device.index == here.index));
        if ((dtype == TN_DTYPE_NONE || dtype == tn_tensor_dtype(source)) && same_device)
            return Py_NewRef(a[0]);
        tn_tensor *out = NULL;
        PyThreadState *state = tnpy_unlock();
        tn_status st = tn_to_device(source, same_device ? here : device,
                                    dtype == TN_DTYPE_NONE ? tn_tensor_dtype(source) : dtype, false,
                                    false, TN_FORMAT_NONE, &out);
        tnpy_lock(state);
        return st == TN_OK ? tnpy_wrap(out) : tnpy_raise(st);
    }
    if (is_memory(a[0])) {
        if (tnpy_warn_read_only(a[0]) < 0)
            return NULL;
        return finish(bring(tnpy_lifted(tnpy_from_buffer(a[0])), device, dtype, false), false);
    }
    return finish(lift(tnpy_from_data(a[0], dtype), device), false);
}

static PyMethodDef functions[] = {
    {"tensor", (PyCFunction)(void (*)(void))tensor_function, METH_FASTCALL | METH_KEYWORDS,
     "tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False)\n--\n\n"
     "A new tensor with a copy of data: a number, nested sequences of numbers, an array or a "
     "tensor."},
    {"as_tensor", (PyCFunction)(void (*)(void))as_tensor_function, METH_FASTCALL | METH_KEYWORDS,
     "as_tensor(data, dtype=None, device=None)\n--\n\n"
     "Like tensor(), but a tensor is returned as it is and the memory of an array is shared, where "
     "dtype and device allow."},
    {NULL, NULL, 0, NULL}};

int tnpy_add_data(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
