/* SPDX-License-Identifier: MIT */
/* python/src/index.c: x[...] and x[...] = v, and iteration: what an index means, in PyTorch's
 * words and with its results. Integers, slices, None, Ellipsis and booleans are applied one after
 * the other as views; tensors, lists and arrays are collected and go to the operator `index` at the
 * end. */
#include "data.h"
#include "override.h"
#include "type.h"
#include "tenon/mode.h"

#include <string.h>

/* ---- what an index has become so far ---- */

typedef struct places {
    tn_tensor *at;                   /* owned: self, through the views so far */
    tn_tensor *indices[TN_MAX_DIMS]; /* owned; NULL takes all of the dimension */
    int n;                           /* room of `indices` that is used */
    int next;                        /* where in `indices` the next one goes */
    int64_t dim;                     /* the dimension of `at` that the next one is about: more than
                                      * `next` behind a mask of several dimensions */
    int64_t which;                   /* which of the indices it is: for messages */
} places;

static void places_start(places *p, tn_tensor *self)
{
    p->at = tn_tensor_ref(self);
    p->n = p->next = 0;
    p->dim = p->which = 0;
}

static void places_free(places *p)
{
    for (int i = 0; i < p->n; i++)
        tn_tensor_unref(p->indices[i]);
    tn_tensor_unref(p->at);
}

/* Replace the view by a new one. */
static int places_step(places *p, tn_status st, tn_tensor *view)
{
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    tn_tensor_unref(p->at);
    p->at = view;
    return 0;
}

/* Takes `index`, also when it fails. */
static int places_record(places *p, tn_tensor *index, int64_t dims)
{
    if (p->next >= TN_MAX_DIMS) {
        tn_tensor_unref(index);
        PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %d",
                     tn_tensor_ndim(p->at));
        return -1;
    }
    while (p->n < p->next)
        p->indices[p->n++] = NULL;
    p->indices[p->n++] = index;
    p->next = p->n;
    p->dim += dims;
    return 0;
}

static int select_at(places *p, int64_t index)
{
    int64_t ndim = tn_tensor_ndim(p->at);
    if (ndim == 0 && index == 0) {
        PyErr_SetString(PyExc_IndexError,
                        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                        "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
        return -1;
    }
    int64_t size = p->dim < ndim ? tn_tensor_sizes(p->at)[p->dim] : 0;
    if (index < -size || index >= size) {
        PyErr_Format(PyExc_IndexError,
                     "index %lld is out of bounds for dimension %lld with size %lld",
                     (long long)index, (long long)p->which, (long long)size);
        return -1;
    }
    tn_tensor *view = NULL;
    tn_status st = tn_select(p->at, p->dim, index, &view);
    return places_step(p, st, view);
}

static int select_object(places *p, PyObject *o)
{
    int64_t index = 0;
    if (tnpy_long_of(o, &index) < 0)
        return -1;
    return select_at(p, index);
}

/* `view_always`: a view also where nothing is left out. */
static int slice_at(places *p, PyObject *o, bool view_always)
{
    Py_ssize_t start = 0, stop = 0, step = 1;
    if (PySlice_Unpack(o, &start, &stop, &step) < 0)
        return -1;
    if (step <= 0) {
        PyErr_SetString(PyExc_ValueError, "step must be greater than zero");
        return -1;
    }
    int64_t ndim = tn_tensor_ndim(p->at);
    if (ndim == 0 || p->dim >= ndim) {
        PyErr_SetString(PyExc_IndexError, "slice() cannot be applied to a 0-dim tensor.");
        return -1;
    }
    int64_t size = tn_tensor_sizes(p->at)[p->dim];
    if (view_always || step != 1 || start != 0 || stop < size) {
        tn_tensor *view = NULL;
        tn_status st = tn_slice(p->at, p->dim, tn_some_int(start), tn_some_int(stop), step, &view);
        if (places_step(p, st, view) < 0)
            return -1;
    }
    p->dim++;
    p->next++;
    return 0;
}

static int unsqueeze_at(places *p)
{
    tn_tensor *view = NULL;
    tn_status st = tn_unsqueeze(p->at, p->dim, &view);
    return places_step(p, st, view);
}

/* A dimension of size 1 that is there (True) or empty (False). */
static int bool_at(places *p, bool on)
{
    if (unsqueeze_at(p) < 0)
        return -1;
    tn_tensor *index = NULL;
    int64_t zero = 0, size = on ? 1 : 0;
    tn_status st = tn_tensor_from_data(&zero, 1, &size, TN_DTYPE_I64, &index);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    return places_record(p, index, 1);
}

static bool is_mask(tn_dtype dtype)
{
    return dtype == TN_DTYPE_BOOL || dtype == TN_DTYPE_U8;
}

/* An index that is a tensor, or was made one; takes `t`, also when it fails. */
static int tensor_at(places *p, tn_tensor *t)
{
    tn_dtype dtype = tn_tensor_dtype(t);
    int64_t ndim = tn_tensor_ndim(t);
    if (ndim == 0 && tn_dtype_is_integral(dtype, true)) {
        tn_scalar value;
        tn_status st = tn_item(t, &value);
        tn_tensor_unref(t);
        if (st != TN_OK) {
            tnpy_raise(st);
            return -1;
        }
        return is_mask(dtype) ? bool_at(p, value.v.i != 0) : select_at(p, value.v.i);
    }
    if (dtype == TN_DTYPE_U8 &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
                     "torch.bool instead.",
                     1) < 0) {
        tn_tensor_unref(t);
        return -1;
    }
    return places_record(p, t, is_mask(dtype) ? ndim : 1);
}

static int refuse_index(PyObject *o)
{
    char name[128];
    PyErr_Format(
        PyExc_IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
        "valid indices (got %s)",
        tnpy_type_name(o, name, sizeof name));
    return -1;
}

/* One index; `skip`: how many dimensions an Ellipsis stands for. */
static int one_at(places *p, PyObject *o, int64_t skip)
{
    if (o == Py_None) {
        if (unsqueeze_at(p) < 0)
            return -1;
        p->dim++;
        p->next++;
        return 0;
    }
    if (o == Py_Ellipsis) {
        p->dim += skip;
        p->next += (int)skip;
        return 0;
    }
    if (PyBool_Check(o))
        return bool_at(p, o == Py_True);
    if (PyLong_Check(o))
        return select_object(p, o);
    if (PySlice_Check(o))
        return slice_at(p, o, false);
    tn_tensor *t = tnpy_tensor(o);
    if (t != NULL)
        return tensor_at(p, tn_tensor_ref(t));
    if (PySequence_Check(o)) {
        t = tnpy_index_tensor(o);
        return t == NULL ? -1 : tensor_at(p, t);
    }
    if (tnpy_is_numpy_bool(o)) {
        int on = PyObject_IsTrue(o);
        return on < 0 ? -1 : bool_at(p, on);
    }
    if (PyIndex_Check(o))
        return select_object(p, o);
    return refuse_index(o);
}

/* How many dimensions of the tensor one index takes. */
static int64_t dims_of(PyObject *o)
{
    if (o == Py_None || o == Py_Ellipsis || PyBool_Check(o))
        return 0;
    tn_tensor *t = tnpy_tensor(o);
    if (t != NULL && is_mask(tn_tensor_dtype(t)))
        return tn_tensor_ndim(t);
    return 1;
}

/* A list as long as this is one of numbers, whatever is in it. */
enum { LIST_OF_NUMBERS = 32 };

/* A list is a tuple of indices when it has a slice, None, Ellipsis, tensor or list in it. NumPy did
 * so once; both warn. -1: an exception. */
static int list_is_tuple(PyObject *o)
{
    if (!PySequence_Check(o) || PyUnicode_Check(o) || PyBytes_Check(o) || tnpy_tensor(o) != NULL)
        return 0;
    if (!PyList_Check(o)) /* arrays, ranges and what else has items that are all alike */
        return 0;
    Py_ssize_t n = PyList_Size(o);
    if (n >= LIST_OF_NUMBERS)
        return 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyList_GetItem(o, i);
        if (item == NULL)
            return -1;
        if (item == Py_None || item == Py_Ellipsis || PySlice_Check(item) ||
            tnpy_tensor(item) != NULL || PySequence_Check(item))
            return PyErr_WarnEx(
                       PyExc_UserWarning,
                       "Using a non-tuple sequence for multidimensional indexing is "
                       "deprecated and will be changed in pytorch 2.9; use x[tuple(seq)] "
                       "instead of x[seq]. In pytorch 2.9 this will be interpreted as "
                       "tensor index, x[torch.tensor(seq)], which will result either in an "
                       "error or a different result",
                       1) < 0
                       ? -1
                       : 1;
    }
    return 0;
}

/* Does it choose along one dimension, and stand alone? Of a tensor without dimensions such an index
 * is refused in words of its own. */
static bool is_one_place(PyObject *index)
{
    if (PyLong_Check(index) || PySlice_Check(index))
        return true;
    const tn_tensor *t = tnpy_tensor(index);
    return t != NULL ? tn_tensor_ndim(t) == 0 : PyIndex_Check(index) && !PySequence_Check(index);
}

/* 0 with `p` to be freed by places_free, also on failure (-1). */
static int places_find(places *p, tn_tensor *self, PyObject *index)
{
    places_start(p, self);
    PyObject *tuple = NULL;
    if (PyTuple_Check(index))
        tuple = Py_NewRef(index);
    else {
        int is_tuple = list_is_tuple(index);
        if (is_tuple < 0)
            return -1;
        tuple = is_tuple ? PySequence_Tuple(index) : PyTuple_Pack(1, index);
        if (tuple == NULL)
            return -1;
    }
    Py_ssize_t n = PyTuple_Size(tuple);
    int64_t taken = 0, ndim = tn_tensor_ndim(self);
    for (Py_ssize_t i = 0; i < n; i++)
        taken += dims_of(PyTuple_GetItem(tuple, i));
    int bad = 0;
    if (taken > ndim && (ndim > 0 || !is_one_place(index))) {
        PyErr_Format(PyExc_IndexError, "too many indices for tensor of dimension %lld",
                     (long long)ndim);
        bad = -1;
    }
    for (Py_ssize_t i = 0; i < n && bad == 0; i++) {
        p->which = i;
        bad = one_at(p, PyTuple_GetItem(tuple, i), ndim > taken ? ndim - taken : 0);
    }
    Py_DECREF(tuple);
    return bad;
}

/* ---- __torch_function__ ---- */

/* Has an object a __torch_function__ that is asked, or its class a say in what comes out? */
static bool is_asked(PyObject *o)
{
    if (Py_TYPE(o) == tnpy_Tensor || PyLong_CheckExact(o) || PySlice_Check(o) || o == Py_None ||
        o == Py_Ellipsis)
        return false;
    return tnpy_is_tensor(o) ? tnpy_overrides(o) : tnpy_has_torch_function(o);
}

/* Is one of a sequence asked? Of those in a sequence in it, where it is `deep`? */
static bool one_is_asked(PyObject *o, bool deep)
{
    bool list = PyList_Check(o);
    Py_ssize_t n = list ? PyList_Size(o) : PyTuple_Size(o);
    if (list && n >= LIST_OF_NUMBERS)
        return false;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = list ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);
        if (item == NULL || PyLong_CheckExact(item) || PySlice_Check(item))
            continue;
        bool sequence = deep && (PyList_Check(item) || PyTuple_Check(item));
        if (sequence ? one_is_asked(item, false) : is_asked(item))
            return true;
    }
    return false;
}

/* Does a mode, or the class of an object, want to see the call? `index` and `value` may be NULL.
 * What stands in a tuple or a list of indices counts, and in a sequence in it; what stands in a
 * slice, or in a sequence of values, does not. */
static bool seen_by_others(PyObject *self, PyObject *index, PyObject *value)
{
    if (TNPY_UNLIKELY(tnpy_function_modes != 0) && tnpy_function_off < 2)
        return true;
    if (Py_TYPE(self) == tnpy_Tensor && value == NULL && index != NULL &&
        (PyLong_CheckExact(index) || Py_TYPE(index) == tnpy_Tensor))
        return false; /* what most calls are */
    if (TNPY_UNLIKELY(tnpy_function_off))
        return false;
    if (is_asked(self) || (value != NULL && is_asked(value)))
        return true;
    if (index == NULL)
        return false;
    if (!PyList_Check(index) && !PyTuple_Check(index))
        return (!PyLong_Check(index) || PyBool_Check(index)) && is_asked(index);
    return one_is_asked(index, true);
}

/* self[index], or self[index] = value where there is a value, for those who want to see it. */
static PyObject *ask_others(PyObject *self, PyObject *index, PyObject *value)
{
    static PyObject *get, *set; /* what they get as `func` */
    PyObject **func = value ? &set : &get;
    if (!*func)
        *func =
            PyObject_GetAttrString((PyObject *)tnpy_Tensor, value ? "__setitem__" : "__getitem__");
    if (!*func)
        return NULL;
    PyObject *args = value ? PyTuple_Pack(3, self, index, value) : PyTuple_Pack(2, self, index);
    PyObject *items = PyList_Check(index) || PyTuple_Check(index) ? PySequence_List(index)
                                                                  : Py_BuildValue("[O]", index);
    PyObject *asked = NULL, *result = NULL;
    if (args && items && PyList_Insert(items, 0, self) == 0 &&
        (!value || PyList_Check(value) || PyTuple_Check(value) || PyList_Append(items, value) == 0))
        asked = PyList_AsTuple(items);
    if (asked)
        result = tnpy_override_among(*func, asked, args);
    Py_XDECREF(args);
    Py_XDECREF(items);
    Py_XDECREF(asked);
    return result;
}

/* ---- reading ---- */

static PyObject *subscript(PyObject *object, PyObject *index)
{
    tn_tensor *self = tnpy_tensor(object);
    if (TNPY_UNLIKELY(seen_by_others(object, index, NULL)))
        return ask_others(object, index, NULL);
    tn_tensor *out = NULL;
    tn_status st = TN_OK;
    if (PyLong_CheckExact(index)) {
        long long i = PyLong_AsLongLong(index);
        if (i != -1 || !PyErr_Occurred()) {
            if (tn_tensor_ndim(self) > 0) {
                int64_t size = tn_tensor_sizes(self)[0];
                if (i >= -size && i < size) {
                    st = tn_select(self, 0, i, &out);
                    return st == TN_OK ? tnpy_wrap(out) : tnpy_raise(st);
                }
            }
        } else
            PyErr_Clear(); /* the long way says it in other words */
    }
    places p;
    int bad;
    if (PySlice_Check(index)) {
        places_start(&p, self);
        bad = slice_at(&p, index, true);
    } else
        bad = places_find(&p, self, index);
    if (bad < 0) {
        places_free(&p);
        return NULL;
    }
    if (p.n == 0) {
        if (p.at == self)
            st = tn_alias(self, &out);
        else
            out = tn_tensor_ref(p.at);
    } else {
        PyThreadState *state = tnpy_unlock();
        st = tn_index(p.at, p.indices, p.n, &out);
        tnpy_lock(state);
    }
    places_free(&p);
    return st == TN_OK ? tnpy_wrap(out) : tnpy_raise(st);
}

/* ---- what is assigned ---- */

static bool is_half(tn_dtype dtype)
{
    return dtype == TN_DTYPE_F16 || dtype == TN_DTYPE_BF16;
}

/* What the dtype cannot hold is refused before the index is looked at, also where it chooses
 * nothing; a number that is too large for half a float becomes infinite. */
static tn_status check_number(tn_scalar number, tn_dtype dtype)
{
    if (!is_half(dtype))
        return tn_scalar_check(number, dtype);
    return number.kind == TN_SCALAR_COMPLEX ? tn_scalar_check(number, TN_DTYPE_F64) : TN_OK;
}

/* What is assigned: a number, or a tensor (owned). */
typedef struct value {
    tn_tensor *tensor;
    tn_scalar number;
} value;

/* Does a mode, or the tensor's class, see what is done with it? */
static bool is_seen(const tn_tensor *t)
{
    return tn_call_mode_count() != 0 || tn_tensor_is_handled(t);
}

/* They see a tensor of the number, made before anything is indexed. */
static int number_fits(value *v, const tn_tensor *self)
{
    tn_status st = check_number(v->number, tn_tensor_dtype(self));
    bool shown = st == TN_OK && is_seen(self) && !is_half(tn_tensor_dtype(self));
    if (shown)
        st = tn_tensor_from_scalar(v->number, tn_tensor_dtype(self), &v->tensor);
    if (st != TN_OK)
        tnpy_raise(st);
    else if (shown && !(v->tensor = tnpy_lifted(v->tensor)))
        return -1;
    return st == TN_OK ? 0 : -1;
}

static int value_of(value *v, tn_tensor *self, PyObject *o)
{
    v->tensor = tn_tensor_ref(tnpy_tensor(o));
    if (v->tensor != NULL)
        return 0;
    int64_t i;
    if (PyLong_CheckExact(o)) {
        if (tnpy_int_of(o, &i) < 0)
            return -1;
        v->number = tn_int(i);
        return number_fits(v, self);
    }
    if (PyBool_Check(o) || PyLong_Check(o) || PyFloat_Check(o) || PyComplex_Check(o) ||
        (PyIndex_Check(o) && !PySequence_Check(o)))
        return tnpy_scalar_of(o, &v->number) < 0 ? -1 : number_fits(v, self);
    if ((PySequence_Check(o) || PyObject_CheckBuffer(o)) && !PyUnicode_Check(o) &&
        !PyBytes_Check(o)) {
        v->tensor = tnpy_lifted(tnpy_from_data(o, tn_tensor_dtype(self)));
        return v->tensor == NULL ? -1 : 0;
    }
    char name[128];
    PyErr_Format(PyExc_TypeError, "can't assign a %s to a torch.%sTensor",
                 tnpy_type_name(o, name, sizeof name), tnpy_legacy_name(tn_tensor_dtype(self)));
    return -1;
}

/* Leading dimensions of size 1 do not count: x[0] = ones(1, 1, 4) is legal. Replaces *t. */
static tn_status strip_ones(tn_tensor **t, int64_t limit)
{
    int64_t ndim = tn_tensor_ndim(*t), skip = 0;
    const int64_t *sizes = tn_tensor_sizes(*t);
    if (ndim <= limit)
        return TN_OK;
    while (skip < ndim && sizes[skip] == 1)
        skip++;
    if (skip == 0)
        return TN_OK;
    tn_tensor *view = NULL;
    tn_status st = tn_view(*t, sizes + skip, ndim - skip, &view);
    if (st == TN_OK) {
        tn_tensor_unref(*t);
        *t = view;
    }
    return st;
}

/* ---- writing ---- */

/* With a gradient, a tensor without dimensions is filled in where there are some, and copied where
 * there are none: that is what the result shows as its function. */
static tn_status assign_point(tn_tensor *at, tn_tensor *point)
{
    return tn_tensor_ndim(at) == 0 ? tn_copy_(at, point, false) : tn_fill_tensor_(at, point);
}

/* A number that is too large for half a float becomes infinite here, though filling refuses it. */
static tn_status assign_number(tn_tensor *at, tn_scalar number)
{
    bool grad = tn_tensor_requires_grad(at);
    tn_status st = grad ? TN_OK : tn_fill_(at, number);
    if (!grad &&
        (st != TN_INVALID || number.kind == TN_SCALAR_COMPLEX || !is_half(tn_tensor_dtype(at))))
        return st;
    tn_tensor *point = NULL;
    st = grad ? tn_tensor_from_scalar(number, tn_tensor_dtype(at), &point)
              : tn_tensor_from_number(number, &point);
    if (st == TN_OK)
        st = grad ? assign_point(at, point) : tn_copy_(at, point, false);
    tn_tensor_unref(point);
    return st;
}

static tn_status assign_view(tn_tensor *at, value *v)
{
    if (v->tensor == NULL)
        return assign_number(at, v->number);
    int64_t ndim = tn_tensor_ndim(at);
    bool point = tn_tensor_ndim(v->tensor) == 0;
    tn_status st = strip_ones(&v->tensor, ndim);
    if (st != TN_OK)
        return st;
    if (ndim == tn_tensor_ndim(v->tensor) && memcmp(tn_tensor_sizes(at), tn_tensor_sizes(v->tensor),
                                                    (size_t)ndim * sizeof(int64_t)) == 0)
        return tn_copy_(at, v->tensor, false);
    bool grad = tn_tensor_requires_grad(at) || tn_tensor_requires_grad(v->tensor);
    if (point && (grad || is_seen(at)) && tn_tensor_device(v->tensor).type == TN_DEVICE_CPU)
        return assign_point(at, v->tensor);
    tn_tensor *wide = NULL;
    st = tn_expand(v->tensor, tn_tensor_sizes(at), ndim, false, &wide);
    if (st == TN_OK)
        st = tn_copy_(at, wide, false);
    tn_tensor_unref(wide);
    return st;
}

static tn_status assign_indices(places *p, value *v)
{
    tn_status st = TN_OK;
    tn_device device = tn_tensor_device(p->at);
    if (v->tensor == NULL) {
        st = tn_tensor_from_scalar(v->number, tn_tensor_dtype(p->at), &v->tensor);
        if (st == TN_OK && device.type != TN_DEVICE_CPU) {
            tn_tensor *there = NULL;
            st = tn_to_device(v->tensor, device, tn_tensor_dtype(p->at), false, false,
                              TN_FORMAT_NONE, &there);
            if (st == TN_OK) {
                tn_tensor_unref(v->tensor);
                v->tensor = there;
            }
        }
    }
    if (st == TN_OK)
        st = strip_ones(&v->tensor, 0);
    if (st == TN_OK)
        st = tn_index_put_(p->at, p->indices, p->n, v->tensor, false);
    return st;
}

/* `what` NULL: del, which is refused. */
static int assign(PyObject *object, PyObject *index, PyObject *what)
{
    tn_tensor *self = tnpy_tensor(object);
    if (what == NULL) {
        PyErr_SetString(PyExc_TypeError, "Tensor does not support deleting items");
        return -1;
    }
    if (TNPY_UNLIKELY(seen_by_others(object, index, what))) {
        PyObject *out = ask_others(object, index, what);
        Py_XDECREF(out);
        return out == NULL ? -1 : 0;
    }
    value v = {NULL, {0}};
    if (value_of(&v, self, what) < 0)
        return -1;
    if (index == Py_False) { /* nothing is chosen, and nothing is asked of what is assigned */
        tn_tensor_unref(v.tensor);
        return 0;
    }
    places p;
    int bad = places_find(&p, self, index == Py_True ? Py_None : index);
    tn_status st = TN_OK;
    if (bad == 0 && p.n == 0 && tn_tensor_numel(p.at) < 1024)
        st = assign_view(p.at, &v);
    else if (bad == 0) {
        PyThreadState *state = tnpy_unlock();
        st = p.n == 0 ? assign_view(p.at, &v) : assign_indices(&p, &v);
        tnpy_lock(state);
    }
    places_free(&p);
    tn_tensor_unref(v.tensor);
    if (bad == 0 && st != TN_OK) {
        tnpy_raise(st);
        bad = -1;
    }
    return bad;
}

/* ---- sequences ---- */

static PyObject *iter(PyObject *object)
{
    tn_tensor *self = tnpy_tensor(object);
    if (TNPY_UNLIKELY(
            seen_by_others(object, NULL, NULL))) { /* the class sees these, and gives its own */
        PyObject *dim = PyObject_CallMethod(object, "dim", NULL);
        int none = dim ? PyObject_Not(dim) : -1;
        Py_XDECREF(dim);
        if (none == 0) {
            PyObject *parts = PyObject_CallMethod(object, "unbind", "i", 0);
            PyObject *iterator = parts ? PyObject_GetIter(parts) : NULL;
            Py_XDECREF(parts);
            return iterator;
        }
        if (none < 0)
            return NULL;
    }
    if (tn_tensor_ndim(self) == 0) {
        PyErr_SetString(PyExc_TypeError, "iteration over a 0-d tensor");
        return NULL;
    }
    tn_tensor **list = NULL;
    int64_t n = 0;
    tn_status st = tn_unbind(self, 0, &list, &n);
    if (st != TN_OK)
        return tnpy_raise(st);
    PyObject *tuple = tnpy_wrap_list(list, n);
    PyObject *iterator = tuple == NULL ? NULL : PyObject_GetIter(tuple);
    Py_XDECREF(tuple);
    return iterator;
}

/* Only so that a tensor is a sequence to those who ask (NumPy, for lists of tensors): indexing
 * takes the other slot. */
static PyObject *item_at(PyObject *object, Py_ssize_t i)
{
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *item = index ? subscript(object, index) : NULL;
    Py_XDECREF(index);
    return item;
}

const PyType_Slot tnpy_tensor_items[] = {
    {Py_sq_item, item_at},
    {Py_mp_subscript, subscript},
    {Py_mp_ass_subscript, assign},
    {Py_tp_iter, iter},
    {Py_sq_contains, tnpy_contains},
    {Py_bf_getbuffer, tnpy_get_buffer},
    {Py_bf_releasebuffer, tnpy_release_buffer},
    {0, NULL},
};
