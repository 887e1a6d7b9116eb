/* SPDX-License-Identifier: MIT */
/* fit.c: does an argument fit a parameter? What fits is boxed on the C stack: nothing is allocated
 * for arguments of usual size. The rules are torch's: a bool is
 * no int, an int is a float, a tensor of one element is a number, and so on. */
#include "data.h"
#include "fit.h"
#include "override.h"

#include <stdlib.h>

/* Note [What a schema takes]
 * Functions choose among overloads, and are strict: True is no int, 1 no bool. An operator that is
 * called by its name has one schema and casts as Python does: a bool is an int, what has a truth is
 * a bool, an int may be the number of a dtype, layout or memory format. */

/* ---- room for lists ---- */

static void *take(tnpy_frame *f, size_t nbytes)
{
    nbytes = (nbytes + 15) & ~(size_t)15;
    if (TNPY_LIKELY(nbytes <= TNPY_ROOM - f->used)) {
        void *p = f->room + f->used;
        f->used += nbytes;
        return p;
    }
    void **block = malloc(nbytes + 16);
    if (!block) {
        PyErr_NoMemory();
        return NULL;
    }
    block[0] = f->heap;
    f->heap = block;
    return block + 2;
}

static void *take_list(tnpy_frame *f, Py_ssize_t n, size_t size)
{
    return take(f, (size_t)(n ? n : 1) * size);
}

void tnpy_frame_drop_slow(tnpy_frame *f)
{
    while (f->heap) {
        void *next = *(void **)f->heap;
        free(f->heap);
        f->heap = next;
    }
    for (int i = 0; i < f->n_made; i++)
        tn_tensor_unref(f->made[i]);
    f->n_made = 0;
    Py_CLEAR(f->held);
}

int tnpy_frame_hold(tnpy_frame *f, PyObject *o)
{
    if (!f->held) {
        f->held = o;
        return o ? 0 : -1;
    }
    PyObject *both = o ? PyTuple_Pack(2, f->held, o) : NULL;
    Py_XDECREF(o);
    if (!both)
        return -1;
    Py_DECREF(f->held);
    f->held = both;
    return 0;
}

/* ---- tensors ---- */

/* Is one of the tensors before @p v made of floating-point or complex numbers? */
static bool after_fractions(const tnpy_frame *f, const tn_value *v)
{
    for (const tn_value *a = f->v; a < v && a < f->v + TNPY_MAX_ARGS; a++)
        if (a->tag == TN_TAG_TENSOR && !tn_dtype_is_integral(tn_tensor_dtype(a->u.tensor), true))
            return true;
    return false;
}

static int number_as_tensor(tnpy_frame *f, PyObject *o, tn_value *out)
{
    tn_scalar s;
    if (tnpy_scalar_of(o, &s))
        return -1;
    if (TNPY_UNLIKELY(s.beyond) && after_fractions(f, out)) /* no integer tensor can hold it */
        s = tn_float(s.imag);
    if (f->n_made == TNPY_MAX_MADE)
        return 0;
    tn_status st = tn_tensor_from_number(s, &f->made[f->n_made]);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    *out = (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = f->made[f->n_made++]};
    return 1;
}

/* Its class is asked about the call. */
static void note_asking(tnpy_frame *f, PyObject *o)
{
    for (int i = 0; i < f->n_asking && i < TNPY_MAX_ASKING; i++)
        if (Py_TYPE(f->asking[i]) == Py_TYPE(o) && !PyType_Check(o))
            return;
    if (f->n_asking < TNPY_MAX_ASKING)
        f->asking[f->n_asking++] = o;
    else
        f->n_asking = TNPY_MANY_ASKING;
}

/* What the class of a tensor means for the call. */
static inline void note_class(tnpy_frame *f, PyObject *o)
{
    int kind = tnpy_overrides(o);
    if (TNPY_LIKELY(kind == TNPY_PLAIN))
        return;
    note_asking(f, o);
    if (kind == TNPY_CUSTOM || (f->kept && f->kept != Py_TYPE(o)))
        f->overridden = true; /* of several classes the Python way decides */
    f->kept = Py_TYPE(o);
}

/* Note [Strangers]
 * An object that is no tensor and has a __torch_function__ fits every parameter, whatever it wants:
 * its class is asked. It is looked for where nothing else fits, so that an int that has one is an
 * int; but among the elements of a list of numbers each is looked at, ints and tensors too. */
static bool is_stranger(const tnpy_call *c, tnpy_frame *f, PyObject *o)
{
    if (Py_TYPE(o) == &PyLong_Type || Py_TYPE(o) == tnpy_Tensor || c->by_schema ||
        tnpy_function_off || tnpy_tensor(o) || !tnpy_has_torch_function(o))
        return false;
    note_asking(f, o);
    return f->overridden = true;
}

static bool looks_asking(const tnpy_call *c, tnpy_frame *f, PyObject *item)
{
    if (!tnpy_tensor(item))
        return is_stranger(c, f, item);
    if (c->by_schema || tnpy_function_off || tnpy_overrides(item) == TNPY_PLAIN)
        return false;
    note_class(f, item);
    return true;
}

/* An element of a list of numbers that is no int or float itself; see Note [Strangers]. It is kept:
 * another one's __index__ may take it out of the list. */
static bool asks(const tnpy_call *c, tnpy_frame *f, PyObject *item)
{
    int before = f->n_asking;
    bool found = looks_asking(c, f, item);
    if (f->n_asking != before && f->n_asking <= TNPY_MAX_ASKING &&
        tnpy_frame_hold(f, Py_NewRef(item))) {
        PyErr_Clear(); /* no memory to keep it: they are all looked for again */
        f->n_asking = TNPY_MANY_ASKING;
    }
    return found;
}

static int fit_tensor(const tnpy_call *c, tnpy_frame *f, PyObject *o, tn_value *out)
{
    tn_tensor *t = tnpy_tensor(o);
    if (t) {
        f->work += tn_tensor_numel(t);
        note_class(f, o);
        *out = (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = t};
        return 1;
    }
    if (!c->numbers || !tnpy_is_number(o))
        return 0;
    if (!PyLong_CheckExact(o) && !PyFloat_CheckExact(o) && is_stranger(c, f, o)) {
        *out = (tn_value){.tag = TN_TAG_NONE};
        return 1; /* it stands for a tensor, and so does what is asked */
    }
    return number_as_tensor(f, o, out);
}

/* The number of a parameter as messages count it: from 0, without self. */
static int place(const tnpy_call *c, const tnpy_param *p)
{
    for (int i = 0; i < c->entry->n; i++) {
        const tnpy_sig *s = &c->entry->sigs[i];
        if (p >= s->params && p < s->params + s->n)
            return (int)(p - s->params) - (c->self != NULL);
    }
    return 0;
}

static int fit_tensors(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *o,
                       tn_value *out)
{
    bool tuple = PyTuple_Check(o), optional = p->kind == TNPY_OPT_TENSORS;
    if (!tuple && !PyList_Check(o))
        return 0;
    if (!tuple) { /* others may change a list while the tensors in it are used */
        o = PyList_AsTuple(o);
        if (tnpy_frame_hold(f, o))
            return -1;
    }
    Py_ssize_t n = PyTuple_Size(o);
    tn_tensor **list = take_list(f, n, sizeof *list);
    if (!list)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_GetItem(o, i);
        list[i] = NULL;
        if (optional && item == Py_None)
            continue;
        list[i] = tnpy_tensor(item);
        if (list[i]) {
            f->work += tn_tensor_numel(list[i]);
            note_class(f, item);
        } else if (!is_stranger(c, f, item)) {
            char name[128];
            PyErr_Format(PyExc_TypeError,
                         "expected Tensor as element %zd in argument %d, but got %s", i,
                         place(c, p), tnpy_type_name(item, name, sizeof name));
            return -1;
        }
    }
    *out = (tn_value){.tag = TN_TAG_TENSOR_LIST, .count = (uint32_t)n, .u.tensors = list};
    return 1;
}

/* ---- integers ---- */

/* An int itself first: what else is one takes a call to find out. */
static inline bool is_int(PyObject *o)
{
    return TNPY_LIKELY(PyLong_CheckExact(o)) || (PyLong_Check(o) && !PyBool_Check(o));
}

static inline int give_int(PyObject *o, int64_t *out)
{
    int over = 0;
    long long i = PyLong_AsLongLongAndOverflow(o, &over);
    if (TNPY_UNLIKELY(over)) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return -1;
    }
    if (TNPY_UNLIKELY(i == -1) && PyErr_Occurred())
        return -1;
    *out = i;
    return 1;
}

/* An object that says that it is an integer: NumPy's, or a tensor of one. Where @p one is allowed,
 * that may have dimensions: sizes come out of `randint(1, 9, (1,))`. */
static int fit_index(PyObject *o, bool one, int64_t *out)
{
    tn_tensor *t = tnpy_tensor(o);
    if (t && ((tn_tensor_ndim(t) && !(one && tn_tensor_numel(t) == 1)) ||
              tn_tensor_requires_grad(t) || !tn_dtype_is_integral(tn_tensor_dtype(t), false)))
        return 0;
    if (PyBool_Check(o) || PyFloat_Check(o) || !PyIndex_Check(o) || tnpy_is_numpy_bool(o))
        return 0; /* older NumPys' bools have __index__ and are no integers all the same */
    int off = tnpy_function_off;
    tnpy_function_off = t ? 2 : off; /* a tensor is read: nobody is asked about that */
    PyObject *i = PyNumber_Index(o);
    tnpy_function_off = off;
    if (!i) { /* an array of several numbers has __index__ too, and refuses */
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    int found = give_int(i, out);
    Py_DECREF(i);
    return found;
}

static inline int fit_int(const tnpy_call *c, PyObject *o, bool one, int64_t *out)
{
    if (TNPY_LIKELY(is_int(o)) || (c->by_schema && PyBool_Check(o)))
        return give_int(o, out);
    return fit_index(o, one, out);
}

/* A size by itself: a tensor of one element is meant as a tensor first where it has dimensions, see
 * Note [Tensors for numbers]. */
static inline int fit_size(const tnpy_call *c, tnpy_frame *f, PyObject *o, int64_t *out)
{
    int found = fit_int(c, o, c->tensors, out);
    if (TNPY_UNLIKELY(found == 0) && tnpy_tensor(o))
        f->refused = true;
    return found;
}

/* A list is one by its first element; what is wrong behind that is an error and no mismatch, unless
 * somebody is asked about the call, who may know better. */
static int bad_item(const tnpy_call *c, const tnpy_frame *f, const tnpy_param *p, PyObject *item,
                    Py_ssize_t i)
{
    if (i == 0)
        return 0;
    if (f->overridden || (tnpy_function_modes && tnpy_function_off < 2))
        return 1;
    char name[128];
    PyErr_Format(PyExc_TypeError,
                 "%s(): argument '%U' failed to unpack the object at pos %zd with error \"type "
                 "must be tuple of ints,but got %s\"",
                 c->entry->name, tnpy_names[p->name], i + 1,
                 tnpy_type_name(item, name, sizeof name));
    return -1;
}

/* An item that could not be read: what an int64 cannot hold is told with its place. */
static int bad_int(const tnpy_call *c, const tnpy_param *p, Py_ssize_t i)
{
    if (PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError,
                     "%s(): argument '%U' failed to unpack the object at pos %zd with error "
                     "\"Overflow when unpacking long long\"",
                     c->entry->name, tnpy_names[p->name], i + 1);
    }
    return -1;
}

static int fit_item(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *item,
                    Py_ssize_t i, int64_t *out)
{
    *out = 0;
    if (asks(c, f, item) && f->overridden)
        return 1;
    int found = fit_int(c, item, true, out);
    return found < 0 ? bad_int(c, p, i) : found;
}

static int fit_ints(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *o, bool one,
                    tn_value *out)
{
    bool tuple = PyTuple_CheckExact(o) || PyTuple_Check(o);
    if (tuple || PyList_Check(o)) {
        Py_ssize_t n = tuple ? PyTuple_Size(o) : PyList_Size(o);
        int64_t *list = take_list(f, n, sizeof *list);
        if (!list)
            return -1;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *item = tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i);
            if (TNPY_LIKELY(item && PyLong_CheckExact(item))) {
                if (TNPY_UNLIKELY(give_int(item, &list[i]) != 1))
                    return bad_int(c, p, i);
                continue;
            }
            if (!item) /* an item's __index__ made the list shorter: an IndexError */
                return -1;
            Py_INCREF(item);
            int found = fit_item(c, f, p, item, i, &list[i]);
            for (Py_ssize_t k = i + 1; found == 0 && i > 0 && k < n; k++)
                asks(c, f, tuple ? PyTuple_GetItem(o, k) : PyList_GetItem(o, k));
            if (!found)
                found = bad_item(c, f, p, item, i);
            Py_DECREF(item);
            if (found != 1)
                return found;
        }
        *out = (tn_value){.tag = TN_TAG_INT_LIST, .count = (uint32_t)n, .u.ints = list};
        return 1;
    }
    if (p->size == 0 && !one)
        return 0;
    int64_t i = 0;
    if (p->size == 0 && !PyLong_CheckExact(o) && asks(c, f, o) && f->overridden) {
        *out = (tn_value){.tag = TN_TAG_NONE};
        return 1; /* the one of a list: x.view(n) */
    }
    int found = fit_size(c, f, o, &i);
    if (found != 1)
        return found && p->size == 0 ? bad_int(c, p, 0) : found;
    int n = p->size > 0 ? p->size : 1;
    int64_t *list = take_list(f, n, sizeof *list);
    if (!list)
        return -1;
    for (int k = 0; k < n; k++)
        list[k] = i;
    *out = (tn_value){.tag = TN_TAG_INT_LIST, .count = (uint32_t)n, .u.ints = list};
    return 1;
}

int tnpy_fit_rest(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, int first, tn_value *out)
{
    int n = c->n - first;
    PyObject *const *items = c->args + first - (c->self != NULL);
    int64_t *list = take_list(f, n, sizeof *list);
    if (!list)
        return -1;
    for (int i = 0; i < n; i++) {
        int found = TNPY_LIKELY(PyLong_CheckExact(items[i]))
                        ? give_int(items[i], &list[i]) == 1 ? 1 : bad_int(c, p, i)
                        : fit_item(c, f, p, items[i], i, &list[i]);
        for (int k = i + 1; found == 0 && i > 0 && k < n; k++)
            asks(c, f, items[k]);
        if (found == 0)
            found = bad_item(c, f, p, items[i], i);
        if (TNPY_UNLIKELY(found != 1))
            return found;
    }
    *out = (tn_value){.tag = TN_TAG_INT_LIST, .count = (uint32_t)n, .u.ints = list};
    return 1;
}

/* ---- other numbers ---- */

/* Note [Tensors for numbers]
 * A tensor of one element serves as a number, which reads it: that fails where its value is not
 * known, and is not what was meant where another overload takes the tensor. So all signatures are
 * tried with tensors as tensors first, and once more only if one of them wanted a number. */
static bool serves(const tnpy_call *c, tnpy_frame *f, PyObject *o)
{
    if (!tnpy_is_number(o))
        return false;
    if (c->tensors || !tnpy_tensor(o))
        return true;
    f->refused = true;
    return false;
}

static int fit_float(const tnpy_call *c, tnpy_frame *f, PyObject *o, double *out)
{
    if (PyFloat_Check(o) || PyLong_Check(o)) {
        *out = PyFloat_AsDouble(o);
        return *out == -1.0 && PyErr_Occurred() ? -1 : 1;
    }
    if (!serves(c, f, o))
        return 0;
    tn_scalar s;
    if (tnpy_scalar_of(o, &s))
        return -1;
    if (s.kind == TN_SCALAR_COMPLEX)
        return 0;
    *out = tn_scalar_to_double(s);
    return 1;
}

int tnpy_fit_bool(const tnpy_call *c, PyObject *o, bool *out)
{
    if (TNPY_LIKELY(PyBool_Check(o))) {
        *out = o == Py_True;
        return 1;
    }
    if (!c->by_schema || (!tnpy_tensor(o) && !PyNumber_Check(o)))
        return 0; /* a tensor or NumPy's bool may be meant for another overload, or be a mistake */
    int truth = PyObject_IsTrue(o);
    if (truth < 0)
        return -1;
    *out = truth;
    return 1;
}

static int fit_scalar(const tnpy_call *c, tnpy_frame *f, PyObject *o, tn_value *out)
{
    if (TNPY_LIKELY(PyFloat_CheckExact(o))) {
        *out = (tn_value){.tag = TN_TAG_FLOAT, .u.f = PyFloat_AsDouble(o)};
        return 1;
    }
    if (!serves(c, f, o))
        return 0;
    tn_scalar s;
    if (tnpy_scalar_of(o, &s))
        return -1;
    *out = tn_value_scalar(s);
    return 1;
}

static int fit_list(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *o,
                    tn_value *out)
{
    bool sequence = PyTuple_Check(o) || PyList_Check(o);
    if (!sequence && !(p->size > 0 && p->kind == TNPY_FLOATS))
        return 0;
    Py_ssize_t n = sequence ? PySequence_Size(o) : p->size;
    tn_value *values = take_list(f, n, sizeof *values);
    if (!values)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = sequence ? PySequence_GetItem(o, i) : Py_NewRef(o);
        if (!item)
            return -1;
        int found;
        if (p->kind != TNPY_BOOLS && !PyFloat_CheckExact(item) && asks(c, f, item) && f->overridden)
            found = 1;
        else if (p->kind == TNPY_FLOATS)
            found = fit_float(c, f, item, &((double *)(void *)values)[i]);
        else if (p->kind == TNPY_BOOLS)
            found = tnpy_fit_bool(c, item, &((bool *)(void *)values)[i]);
        else /* a tensor is no number here: lists of tensors have overloads of their own */
            found = tnpy_tensor(item) ? 0 : fit_scalar(c, f, item, &values[i]);
        Py_DECREF(item);
        if (found != 1)
            return found;
    }
    *out = (tn_value){.count = (uint32_t)n, .u.values = values};
    out->tag = p->kind == TNPY_FLOATS  ? TN_TAG_FLOAT_LIST
               : p->kind == TNPY_BOOLS ? TN_TAG_BOOL_LIST
                                       : TN_TAG_LIST;
    return 1;
}

/* ---- texts and constants ---- */

static int fit_text(PyObject *o, tn_value *out)
{
    if (!PyUnicode_Check(o))
        return 0;
    Py_ssize_t n;
    const char *text = PyUnicode_AsUTF8AndSize(o, &n);
    if (!text)
        return -1;
    *out = (tn_value){.tag = TN_TAG_STRING, .count = (uint32_t)n, .u.text = text};
    return 1;
}

/* A constant by its number; the numbers are torch's. */
static int fit_number_of(const tnpy_param *p, PyObject *o, tn_value *out)
{
    int64_t i;
    if (give_int(o, &i) != 1)
        return -1;
    bool known = p->kind == TNPY_DTYPE ? i >= 0 && i < TN_DTYPE_LIMIT && tn_dtype_valid((tn_dtype)i)
                 : p->kind == TNPY_LAYOUT ? i == 0
                                          : i >= 0 && i <= TN_FORMAT_CHANNELS_LAST_3D;
    *out = (tn_value){.tag = TN_TAG_INT, .u.i = i};
    return known;
}

static int fit_constant(const tnpy_call *c, const tnpy_param *p, PyObject *o, tn_value *out)
{
    if (c->by_schema && is_int(o))
        return fit_number_of(p, o, out);
    tn_dtype dtype;
    tn_layout layout;
    tn_memory_format format;
    int failed, number;
    if (p->kind == TNPY_DTYPE) {
        if (!tnpy_is_dtype(o))
            return 0;
        failed = tnpy_dtype_of(o, &dtype);
        number = failed ? 0 : (int)dtype;
    } else if (p->kind == TNPY_LAYOUT) {
        if (!tnpy_is_layout(o))
            return 0;
        failed = tnpy_layout_of(o, &layout);
        number = failed ? 0 : (int)layout;
    } else {
        if (!tnpy_is_format(o))
            return 0;
        failed = tnpy_format_of(o, &format);
        number = failed ? 0 : (int)format;
    }
    *out = (tn_value){.tag = TN_TAG_INT, .u.i = number};
    return failed ? -1 : 1;
}

static int fit_device(PyObject *o, tn_value *out)
{
    tn_device d;
    if (!tnpy_is_device(o) && !PyUnicode_Check(o) && !is_int(o))
        return 0;
    if (tnpy_device_of(o, &d))
        return -1;
    *out = tn_value_device(d);
    return 1;
}

static int fit_generator(PyObject *o, tn_value *out)
{
    tn_generator *g = tnpy_generator_of(o);
    if (!g)
        return 0;
    *out = tn_value_generator(g);
    return 1;
}

/* Whether a storage of elements has those of the tensor that is to get it; bytes are any. */
static bool is_of_dtype(const tn_value *self, PyObject *storage)
{
    PyObject *o = PyObject_GetAttrString(storage, "dtype");
    PyErr_Clear();
    tn_dtype dtype;
    bool fits = !o || !tnpy_is_dtype(o) || self->tag != TN_TAG_TENSOR || tnpy_dtype_of(o, &dtype) ||
                dtype == tn_tensor_dtype(self->u.tensor);
    if (!fits)
        PyErr_Format(PyExc_RuntimeError,
                     "Expected a Storage of type %s or an UntypedStorage, but got type %s for "
                     "argument 1 'storage'",
                     tn_dtype_name(tn_tensor_dtype(self->u.tensor)), tn_dtype_name(dtype));
    Py_XDECREF(o);
    return fits;
}

/* A storage is seen through a tensor of its bytes, see tenon/storage.py. */
static int fit_storage(const tnpy_frame *f, PyObject *o, tn_value *out)
{
    PyObject *untyped = PyObject_GetAttrString(o, "_untyped_storage");
    PyErr_Clear();
    if (untyped && !is_of_dtype(&f->v[0], o)) {
        Py_DECREF(untyped);
        return -1;
    }
    PyObject *bytes = PyObject_GetAttrString(untyped ? untyped : o, "_flat");
    PyErr_Clear();
    tn_tensor *t = bytes ? tnpy_tensor(bytes) : NULL;
    tn_storage *s = tn_tensor_storage(t);
    if (s)
        *out = (tn_value){.tag = TN_TAG_POINTER, .u.pointer = s};
    tn_storage_unref(s); /* the object holds it for the time of the call */
    Py_XDECREF(bytes);
    Py_XDECREF(untyped);
    return s != NULL;
}

/* A stream of tenon/_streams.py, by its number. */
static int fit_stream(PyObject *o, tn_value *out)
{
    PyObject *number = PyObject_GetAttrString(o, "_stream_number");
    PyErr_Clear();
    if (!number) {
        PyErr_SetString(PyExc_RuntimeError, "unknown parameter type");
        return -1;
    }
    void *stream = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    if (!stream && PyErr_Occurred())
        return -1;
    *out = (tn_value){.tag = TN_TAG_POINTER, .u.pointer = stream};
    return 1;
}

static int fit_none(const tnpy_param *p, tn_value *out)
{
    if (p->flags & TNPY_OPTIONAL)
        *out = (tn_value){.tag = TN_TAG_NONE};
    else if (p->value.tag == TN_TAG_INT_LIST && p->value.count == 0 && (p->flags & TNPY_DEFAULT))
        *out = p->value; /* torch shows such a default as None */
    else
        return 0;
    return 1;
}

/* ---- one argument ---- */

static inline int fit_kind(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *o,
                           bool one, tn_value *out)
{
    int found;
    double x;
    bool b;
    switch (p->kind) {
    case TNPY_TENSOR:
        return fit_tensor(c, f, o, out);
    case TNPY_TENSORS:
    case TNPY_OPT_TENSORS:
        return fit_tensors(c, f, p, o, out);
    case TNPY_INT:
        *out = (tn_value){.tag = TN_TAG_INT};
        if (!PyLong_Check(o) && !(p->flags & TNPY_SIZE) && is_stranger(c, f, o))
            return 1; /* even if it has an __index__ */
        return p->flags & TNPY_SIZE ? fit_size(c, f, o, &out->u.i)
                                    : fit_int(c, o, false, &out->u.i);
    case TNPY_INTS:
        return fit_ints(c, f, p, o, one, out);
    case TNPY_FLOAT:
        found = fit_float(c, f, o, &x);
        if (found == 1)
            *out = (tn_value){.tag = TN_TAG_FLOAT, .u.f = x};
        return found;
    case TNPY_BOOL:
        found = tnpy_fit_bool(c, o, &b);
        if (found == 1)
            *out = (tn_value){.tag = TN_TAG_BOOL, .u.i = b};
        return found;
    case TNPY_SCALAR:
        return fit_scalar(c, f, o, out);
    case TNPY_FLOATS:
    case TNPY_BOOLS:
    case TNPY_SCALARS:
        return fit_list(c, f, p, o, out);
    case TNPY_STR:
        return fit_text(o, out);
    case TNPY_DEVICE:
        return fit_device(o, out);
    case TNPY_GENERATOR:
        return fit_generator(o, out);
    case TNPY_STORAGE:
        return fit_storage(f, o, out);
    case TNPY_STREAM:
        return fit_stream(o, out);
    default:
        return fit_constant(c, p, o, out);
    }
}

int tnpy_fit(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *o, bool one,
             tn_value *out)
{
    if (o == Py_None && p->kind != TNPY_STREAM)
        return fit_none(p, out);
    int found = fit_kind(c, f, p, o, one, out);
    return TNPY_LIKELY(found != 0) ? found : tnpy_fit_stranger(c, f, o, out);
}

int tnpy_fit_stranger(const tnpy_call *c, tnpy_frame *f, PyObject *o, tn_value *out)
{
    if (!is_stranger(c, f, o))
        return 0;
    *out = (tn_value){.tag = TN_TAG_NONE};
    return 1;
}
