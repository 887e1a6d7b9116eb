/* SPDX-License-Identifier: MIT */
/* bind.c: from a call in Python to an operator and back. A call is matched against the signatures
 * of its name in turn; the first that fits makes the boxed arguments, which lie on the C stack:
 * nothing is allocated for arguments of usual size. */
#include "bind.h"
#include "override.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ARGS = 64,   /* of a schema */
    ROOM = 1024,     /* bytes for lists */
    LONG_WORK = 8192 /* elements from which on others may use the interpreter meanwhile */
};

/* A call as CPython makes it. Of a method `self` is argument 0. */
typedef struct call {
    tnpy_entry *entry;
    PyObject *self;
    PyObject *const *args;
    int n; /* by position, self included */
    int n_keywords;
    PyObject *kwnames;
    bool numbers; /* a number may stand for a tensor */
} call;

/* What a match made. */
typedef struct frame {
    int64_t work; /* elements of the tensors */
    size_t used;  /* of `room` */
    void *heap;   /* longer lists: a chain of blocks */
    int n_made;   /* tensors made of numbers, to be released */
    bool overridden;
    bool requires_grad;
    tn_tensor *made[4];
    tn_value v[MAX_ARGS];
    char room[ROOM];
} frame;

PyObject *tnpy_str_out, *tnpy_str_requires_grad;

static void *take(frame *f, size_t nbytes)
{
    nbytes = (nbytes + 15) & ~(size_t)15;
    if (TNPY_LIKELY(nbytes <= ROOM - f->used)) {
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

static void drop(frame *f)
{
    while (TNPY_UNLIKELY(f->heap != NULL)) {
        void *next = *(void **)f->heap;
        free(f->heap);
        f->heap = next;
    }
    for (int i = 0; TNPY_UNLIKELY(i < f->n_made); i++)
        tn_tensor_unref(f->made[i]);
    f->n_made = 0;
}

/* ---- one argument: 1 it fits, 0 it does not, -1 an exception ---- */

static inline bool is_int(PyObject *o)
{
    return PyLong_Check(o) && !PyBool_Check(o);
}

static int give_tensor(frame *f, PyObject *o, tn_tensor *t, tn_value *out)
{
    f->work += tn_tensor_numel(t);
    f->overridden |= tnpy_overrides(o) != 0;
    *out = (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = t};
    return 1;
}

static int number_as_tensor(frame *f, PyObject *o, tn_value *out)
{
    tn_scalar s;
    if (tnpy_scalar_of(o, &s))
        return -1;
    if (f->n_made == 4)
        return 0;
    tn_status st = tn_tensor_from_number(s, &f->made[f->n_made]);
    if (st != TN_OK) {
        tnpy_raise(st);
        return -1;
    }
    *out = (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = f->made[f->n_made++]};
    return 1;
}

static int fit_tensor(const call *c, frame *f, PyObject *o, tn_value *out)
{
    if (TNPY_LIKELY(Py_TYPE(o) == tnpy_Tensor || tnpy_is_tensor(o))) {
        tn_tensor *t = ((tnpy_tensor_object *)(void *)o)->t;
        return t ? give_tensor(f, o, t, out) : 0;
    }
    if (c->numbers && tnpy_is_number(o))
        return number_as_tensor(f, o, out);
    if (tnpy_has_torch_function(o)) {
        f->overridden = true;
        *out = (tn_value){.tag = TN_TAG_NONE};
        return 1;
    }
    return 0;
}

static int fit_tensors(frame *f, PyObject *o, bool optional, tn_value *out)
{
    bool tuple = PyTuple_Check(o);
    if (!tuple && !PyList_Check(o))
        return 0;
    Py_ssize_t n = tuple ? PyTuple_Size(o) : PyList_Size(o);
    tn_tensor **list = take(f, (size_t)(n ? n : 1) * sizeof *list);
    if (!list)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i);
        if (optional && item == Py_None) {
            list[i] = NULL;
            continue;
        }
        list[i] = tnpy_tensor(item);
        if (!list[i]) {
            if (!tnpy_has_torch_function(item))
                return 0;
            f->overridden = true;
            continue;
        }
        f->work += tn_tensor_numel(list[i]);
        f->overridden |= tnpy_overrides(item) != 0;
    }
    *out = tn_value_tensors(list, n);
    return 1;
}

static int give_int(PyObject *o, int64_t *out)
{
    int over = 0;
    long long i = PyLong_AsLongLongAndOverflow(o, &over);
    if (over) {
        PyErr_SetString(PyExc_RuntimeError, "Overflow when unpacking long long");
        return -1;
    }
    if (i == -1 && PyErr_Occurred())
        return -1;
    *out = i;
    return 1;
}

/* An object that says that it is an integer: NumPy's, or a tensor of one. */
static int fit_index(PyObject *o, int64_t *out)
{
    tn_tensor *t = tnpy_tensor(o);
    if (t && (tn_tensor_ndim(t) || tn_tensor_requires_grad(t) ||
              !tn_dtype_is_integral(tn_tensor_dtype(t), false)))
        return 0;
    if (PyBool_Check(o) || PyFloat_Check(o) || !PyIndex_Check(o))
        return 0;
    PyObject *i = PyNumber_Index(o);
    if (!i)
        return -1;
    int found = give_int(i, out);
    Py_DECREF(i);
    return found;
}

static int fit_int(PyObject *o, tn_value *out)
{
    out->tag = TN_TAG_INT;
    out->flags = 0;
    return TNPY_LIKELY(is_int(o)) ? give_int(o, &out->u.i) : fit_index(o, &out->u.i);
}

static int fit_ints(frame *f, PyObject *o, int size, bool one, tn_value *out)
{
    bool tuple = PyTuple_Check(o);
    if (tuple || PyList_Check(o)) {
        Py_ssize_t n = tuple ? PyTuple_Size(o) : PyList_Size(o);
        int64_t *list = take(f, (size_t)(n ? n : 1) * sizeof *list);
        if (!list)
            return -1;
        for (Py_ssize_t i = 0; i < n; i++) {
            PyObject *item = tuple ? PyTuple_GetItem(o, i) : PyList_GetItem(o, i);
            int found =
                TNPY_LIKELY(is_int(item)) ? give_int(item, &list[i]) : fit_index(item, &list[i]);
            if (found != 1)
                return found;
        }
        *out = (tn_value){.tag = TN_TAG_INT_LIST, .count = (uint32_t)n, .u.ints = list};
        return 1;
    }
    if (size == 0 && !one)
        return 0;
    int64_t i;
    int found = is_int(o) ? give_int(o, &i) : fit_index(o, &i);
    if (found != 1)
        return found;
    int n = size > 0 ? size : 1;
    int64_t *list = take(f, (size_t)n * sizeof *list);
    if (!list)
        return -1;
    for (int k = 0; k < n; k++)
        list[k] = i;
    *out = (tn_value){.tag = TN_TAG_INT_LIST, .count = (uint32_t)n, .u.ints = list};
    return 1;
}

/* All positional arguments from @p first on as one list: x.view(2, 3). */
static int fit_rest(const call *c, frame *f, int first, tn_value *out)
{
    int n = c->n - first;
    int64_t *list = take(f, (size_t)(n ? n : 1) * sizeof *list);
    if (!list)
        return -1;
    for (int i = 0; i < n; i++) {
        PyObject *item = c->args[first - (c->self != NULL) + i];
        int found =
            TNPY_LIKELY(is_int(item)) ? give_int(item, &list[i]) : fit_index(item, &list[i]);
        if (found != 1)
            return found;
    }
    *out = (tn_value){.tag = TN_TAG_INT_LIST, .count = (uint32_t)n, .u.ints = list};
    return 1;
}

static int fit_float(PyObject *o, double *out)
{
    if (PyFloat_Check(o) || PyLong_Check(o)) {
        *out = PyFloat_AsDouble(o);
        return *out == -1.0 && PyErr_Occurred() ? -1 : 1;
    }
    if (!tnpy_is_number(o))
        return 0;
    tn_scalar s;
    if (tnpy_scalar_of(o, &s))
        return -1;
    if (s.kind == TN_SCALAR_COMPLEX)
        return 0;
    *out = tn_scalar_to_double(s);
    return 1;
}

static int fit_bool(PyObject *o, bool *out)
{
    if (TNPY_LIKELY(PyBool_Check(o))) {
        *out = o == Py_True;
        return 1;
    }
    tn_tensor *t = tnpy_tensor(o);
    if (!(!t && tnpy_is_numpy_bool(o)) &&
        (!t || tn_tensor_ndim(t) || tn_tensor_dtype(t) != TN_DTYPE_BOOL))
        return 0;
    int truth = PyObject_IsTrue(o);
    if (truth < 0)
        return -1;
    *out = truth;
    return 1;
}

static int fit_scalar(PyObject *o, tn_value *out)
{
    if (!tnpy_is_number(o))
        return 0;
    tn_scalar s;
    if (tnpy_scalar_of(o, &s))
        return -1;
    *out = tn_value_scalar(s);
    return 1;
}

static int fit_list(frame *f, PyObject *o, int kind, int size, tn_value *out)
{
    bool sequence = PyTuple_Check(o) || PyList_Check(o);
    if (!sequence && !(size > 0 && kind == TNPY_FLOATS))
        return 0;
    Py_ssize_t n = sequence ? PySequence_Size(o) : size;
    tn_value *values = take(f, (size_t)(n ? n : 1) * sizeof *values);
    if (!values)
        return -1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = sequence ? PySequence_GetItem(o, i) : Py_NewRef(o);
        if (!item)
            return -1;
        int found;
        if (kind == TNPY_FLOATS)
            found = fit_float(item, &((double *)(void *)values)[i]);
        else if (kind == TNPY_BOOLS)
            found = fit_bool(item, &((bool *)(void *)values)[i]);
        else
            found = fit_scalar(item, &values[i]);
        Py_DECREF(item);
        if (found != 1)
            return found;
    }
    *out = (tn_value){.count = (uint32_t)n, .u.values = values};
    out->tag = kind == TNPY_FLOATS  ? TN_TAG_FLOAT_LIST
               : kind == TNPY_BOOLS ? TN_TAG_BOOL_LIST
                                    : TN_TAG_LIST;
    return 1;
}

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

static int fit_plain(const tnpy_param *p, PyObject *o, tn_value *out)
{
    switch (p->kind) {
    case TNPY_DTYPE: {
        if (!tnpy_is_dtype(o))
            return 0;
        tn_dtype d;
        if (tnpy_dtype_of(o, &d))
            return -1;
        *out = tn_value_int(d);
        return 1;
    }
    case TNPY_LAYOUT: {
        tn_layout l;
        if (!tnpy_is_layout(o))
            return 0;
        if (tnpy_layout_of(o, &l))
            return -1;
        *out = tn_value_int(l);
        return 1;
    }
    case TNPY_FORMAT: {
        tn_memory_format m;
        if (!tnpy_is_format(o))
            return 0;
        if (tnpy_format_of(o, &m))
            return -1;
        *out = tn_value_int(m);
        return 1;
    }
    case TNPY_DEVICE: {
        tn_device d;
        if (!tnpy_is_device(o) && !PyUnicode_Check(o) && !is_int(o))
            return 0;
        if (tnpy_device_of(o, &d))
            return -1;
        *out = tn_value_device(d);
        return 1;
    }
    default: {
        tn_generator *g = tnpy_generator_of(o);
        if (!g)
            return 0;
        *out = tn_value_generator(g);
        return 1;
    }
    }
}

static int fit(const call *c, frame *f, const tnpy_param *p, PyObject *o, bool one, tn_value *out)
{
    if (p->kind == TNPY_TENSOR && TNPY_LIKELY(Py_TYPE(o) == tnpy_Tensor)) {
        tn_tensor *t = ((tnpy_tensor_object *)(void *)o)->t;
        if (TNPY_LIKELY(t != NULL)) {
            f->work += tn_tensor_numel(t);
            *out = (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = t};
            return 1;
        }
    }
    if (o == Py_None) {
        if (p->flags & TNPY_OPTIONAL)
            *out = (tn_value){.tag = TN_TAG_NONE};
        else if (p->value.tag == TN_TAG_INT_LIST && p->value.count == 0 &&
                 (p->flags & TNPY_DEFAULT))
            *out = p->value; /* torch shows such a default as None */
        else
            return 0;
        return 1;
    }
    switch (p->kind) {
    case TNPY_TENSOR:
        return fit_tensor(c, f, o, out);
    case TNPY_TENSORS:
    case TNPY_OPT_TENSORS:
        return fit_tensors(f, o, p->kind == TNPY_OPT_TENSORS, out);
    case TNPY_INT:
        return fit_int(o, out);
    case TNPY_INTS:
        return fit_ints(f, o, p->size, one, out);
    case TNPY_FLOAT: {
        double x;
        int found = fit_float(o, &x);
        if (found == 1)
            *out = tn_value_float(x);
        return found;
    }
    case TNPY_BOOL: {
        bool b;
        int found = fit_bool(o, &b);
        if (found == 1)
            *out = tn_value_bool(b);
        return found;
    }
    case TNPY_SCALAR:
        return fit_scalar(o, out);
    case TNPY_FLOATS:
    case TNPY_BOOLS:
    case TNPY_SCALARS:
        return fit_list(f, o, p->kind, p->size, out);
    case TNPY_STR:
        return fit_text(o, out);
    default:
        return fit_plain(p, o, out);
    }
}

/* ---- keywords ---- */

static PyObject *keyword_value(const call *c, int i)
{
    return c->args[c->n - (c->self != NULL) + i];
}

static bool same_name(PyObject *a, PyObject *b)
{
    return a == b || PyUnicode_Compare(a, b) == 0;
}

/* NumPy's words for the same things. */
static bool is_alias(PyObject *given, PyObject *name)
{
    static const struct {
        const char *name, *aliases[4];
    } known[] = {{"dim", {"axis"}},
                 {"keepdim", {"keepdims"}},
                 {"input", {"x", "a", "x1"}},
                 {"other", {"x2"}}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        if (PyUnicode_CompareWithASCIIString(name, known[k].name))
            continue;
        for (int i = 0; i < 4 && known[k].aliases[i]; i++)
            if (PyUnicode_CompareWithASCIIString(given, known[k].aliases[i]) == 0)
                return true;
    }
    return false;
}

static PyObject *keyword(const call *c, PyObject *name)
{
    for (int i = 0; i < c->n_keywords; i++)
        if (PyTuple_GetItem(c->kwnames, i) == name)
            return keyword_value(c, i);
    for (int i = 0; i < c->n_keywords; i++) {
        PyObject *given = PyTuple_GetItem(c->kwnames, i);
        if (same_name(given, name) || is_alias(given, name))
            return keyword_value(c, i);
    }
    return NULL;
}

/* out=, one tensor or a sequence of them, to the last arguments. */
static int fit_out(const call *c, frame *f, const tnpy_sig *s, PyObject *out)
{
    int first = s->n;
    while (first > 0 && (s->params[first - 1].flags & TNPY_OUT))
        first--;
    int n = s->n - first;
    if (n == 1)
        return fit(c, f, &s->params[first], out, false, &f->v[first]);
    if (!PyTuple_Check(out) && !PyList_Check(out))
        return 0;
    if (PySequence_Size(out) != n) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'out' must be tuple of %d Tensors, not %zd",
                     c->entry->name, n, PySequence_Size(out));
        return -1;
    }
    for (int i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(out, i);
        if (!item)
            return -1;
        int found = fit(c, f, &s->params[first + i], item, false, &f->v[first + i]);
        Py_DECREF(item); /* the sequence has it */
        if (found != 1)
            return found;
    }
    return 1;
}

/* What is not given by position: by keyword, or by default. */
static int fit_keywords(const call *c, frame *f, const tnpy_sig *s, int from)
{
    int used = 0;
    for (int i = from; i < s->n; i++) {
        const tnpy_param *p = &s->params[i];
        if (p->flags & TNPY_OUT)
            continue;
        PyObject *o = c->n_keywords ? keyword(c, tnpy_names[p->name]) : NULL;
        if (o) {
            used++;
            int found = fit(c, f, p, o, false, &f->v[i]);
            if (found != 1)
                return found;
        } else if (p->flags & TNPY_DEFAULT) {
            f->v[i] = p->value;
        } else {
            return 0;
        }
    }
    if (!c->n_keywords)
        return !(s->flags & TNPY_SIG_OUT);
    PyObject *out = keyword(c, tnpy_str_out);
    if (out) {
        used++;
        if ((s->flags & TNPY_SIG_OUT) == 0 && out != Py_None)
            return 0;
    }
    if (s->flags & TNPY_SIG_OUT) {
        int found = out && out != Py_None ? fit_out(c, f, s, out) : 0;
        if (found != 1)
            return found;
    }
    if (used == c->n_keywords)
        return 1;
    PyObject *grad = keyword(c, tnpy_str_requires_grad);
    if (grad && (s->flags & (TNPY_SIG_OPTIONS | TNPY_SIG_OUT))) {
        used++;
        int found = grad == Py_None ? 1 : fit_bool(grad, &f->requires_grad);
        if (found != 1)
            return found;
    }
    if (s->flags &
        TNPY_SIG_OUT) { /* options of a factory are checked against out: they may be given */
        static const char *const options[] = {"dtype", "layout", "device", "pin_memory"};
        for (int k = 0; k < c->n_keywords; k++)
            for (int i = 0; i < 4; i++)
                used += PyUnicode_CompareWithASCIIString(PyTuple_GetItem(c->kwnames, k),
                                                         options[i]) == 0 &&
                        keyword_value(c, k) == Py_None;
    }
    return used == c->n_keywords;
}

static int match(const call *c, frame *f, const tnpy_sig *s)
{
    f->used = 0;
    f->work = 0;
    f->overridden = f->requires_grad = false;
    int first = c->self != NULL;
    bool list = s->positional == first + 1 && s->params[first].kind == TNPY_INTS &&
                s->params[first].size == 0;
    int n = c->n;
    if (n > s->positional) {
        if (!list)
            return 0;
        int found = first ? fit(c, f, &s->params[0], c->self, false, &f->v[0]) : 1;
        if (found == 1)
            found = fit_rest(c, f, first, &f->v[first]);
        if (found != 1)
            return found;
        n = first + 1;
    } else {
        if (first) {
            int found = fit(c, f, &s->params[0], c->self, false, &f->v[0]);
            if (found != 1)
                return found;
        }
        for (int i = first; i < n; i++) {
            int found = fit(c, f, &s->params[i], c->args[i - first], list, &f->v[i]);
            if (found != 1)
                return found;
        }
    }
    if (n == s->n && !c->n_keywords)
        return 1;
    return fit_keywords(c, f, s, n);
}

/* ---- calling ---- */

static tn_op *op_of(tnpy_entry *e, int i)
{
    if (TNPY_LIKELY(e->ops && e->ops[i]))
        return e->ops[i];
    if (!e->ops) {
        e->ops = calloc(e->n, sizeof(tn_op *));
        if (!e->ops) {
            PyErr_NoMemory();
            return NULL;
        }
    }
    tn_status st = tn_op_find(e->sigs[i].op, &e->ops[i]);
    if (st != TN_OK) {
        e->ops[i] = NULL;
        tnpy_raise(st);
    }
    return e->ops[i];
}

PyObject *tnpy_from_value(tn_value *v)
{
    PyObject *o = NULL;
    switch (v->tag) {
    case TN_TAG_TENSOR:
        o = tnpy_wrap(v->u.tensor);
        return o;
    case TN_TAG_NONE:
        return Py_NewRef(Py_None);
    case TN_TAG_TENSOR_LIST: {
        tn_tensor *const *list = v->u.tensors;
        o = PyTuple_New((Py_ssize_t)v->count);
        for (uint32_t i = 0; o && i < v->count; i++) {
            PyObject *item = tnpy_wrap_borrowed(list[i]);
            if (!item)
                Py_CLEAR(o);
            else
                PyTuple_SetItem(o, (Py_ssize_t)i, item);
        }
        break;
    }
    case TN_TAG_INT:
        o = PyLong_FromLongLong(v->u.i);
        break;
    case TN_TAG_BOOL:
        o = PyBool_FromLong(v->u.i != 0);
        break;
    case TN_TAG_FLOAT:
        o = PyFloat_FromDouble(v->u.f);
        break;
    case TN_TAG_COMPLEX:
        o = PyComplex_FromDoubles(v->u.z.re, v->u.z.im);
        break;
    case TN_TAG_STRING:
        o = PyUnicode_FromStringAndSize(v->u.text, (Py_ssize_t)v->count);
        break;
    case TN_TAG_DEVICE:
        o = tnpy_device(v->u.device);
        break;
    case TN_TAG_INT_LIST:
        o = PyList_New((Py_ssize_t)v->count);
        for (uint32_t i = 0; o && i < v->count; i++)
            PyList_SetItem(o, (Py_ssize_t)i, PyLong_FromLongLong(v->u.ints[i]));
        break;
    default:
        PyErr_Format(PyExc_TypeError, "a result of type %s has no form in Python",
                     tn_tag_name((tn_tag)v->tag));
    }
    tn_value_clear(v);
    return o;
}

/* The type of named results: a struct sequence, as `torch.return_types.max`. */
static PyTypeObject *result_type(tnpy_entry *e, int i)
{
    if (!e->types)
        e->types = calloc(e->n, sizeof(PyTypeObject *));
    if (!e->types) {
        PyErr_NoMemory();
        return NULL;
    }
    if (e->types[i])
        return e->types[i];
    const tnpy_sig *s = &e->sigs[i];
    PyStructSequence_Field fields[9] = {{NULL, NULL}};
    for (int k = 0; k < s->n_rets && k < 8; k++)
        fields[k].name = s->results[k];
    char *name = malloc(strlen(e->name) + 32); /* stays with the type */
    if (!name) {
        PyErr_NoMemory();
        return NULL;
    }
    sprintf(name, "%s.return_types.%s", tnpy_module_name(), e->name);
    PyStructSequence_Desc desc = {name, NULL, fields, s->n_rets};
    e->types[i] = PyStructSequence_NewType(&desc);
    return e->types[i];
}

static PyObject *wrap_results(tnpy_entry *e, int i, tn_value *rets)
{
    const tnpy_sig *s = &e->sigs[i];
    if (s->n_rets == 0)
        return Py_NewRef(Py_None);
    PyObject *o = NULL;
    PyTypeObject *type = s->results ? result_type(e, i) : NULL;
    if (!s->results)
        o = PyTuple_New(s->n_rets);
    else if (type)
        o = PyStructSequence_New(type);
    bool good = o != NULL;
    for (int k = 0; k < s->n_rets; k++) {
        PyObject *item = tnpy_from_value(&rets[k]);
        good = good && item;
        if (!good)
            Py_XDECREF(item);
        else if (s->results)
            PyStructSequence_SetItem(o, k, item);
        else
            PyTuple_SetItem(o, k, item);
    }
    if (!good)
        Py_CLEAR(o);
    return o;
}

/* Whether others should have the interpreter meanwhile. */
static bool is_long(const tnpy_sig *s, const frame *f)
{
    if (!(s->flags & TNPY_SIG_FACTORY))
        return f->work >= LONG_WORK;
    int64_t n = 1;
    for (int i = 0; i < s->n; i++) {
        if (s->params[i].kind != TNPY_INTS)
            continue;
        for (uint32_t k = 0; k < f->v[i].count; k++)
            n = n >= LONG_WORK || f->v[i].u.ints[k] >= LONG_WORK ? LONG_WORK
                                                                 : n * f->v[i].u.ints[k];
        return n >= LONG_WORK;
    }
    return true;
}

static PyObject *invoke(const call *c, frame *f, int i)
{
    tnpy_entry *e = c->entry;
    const tnpy_sig *s = &e->sigs[i];
    tn_op *op = op_of(e, i);
    if (!op)
        return NULL;
    if (TNPY_UNLIKELY(s->flags & TNPY_SIG_FACTORY) && tnpy_default_device.type != TN_DEVICE_NONE) {
        for (int k = 0; k < s->n; k++)
            if (s->params[k].kind == TNPY_DEVICE && f->v[k].tag == TN_TAG_NONE)
                f->v[k] = tn_value_device(tnpy_default_device);
    }
    tn_value rets[8];
    tn_status st;
    if (TNPY_UNLIKELY(is_long(s, f))) {
        PyThreadState *state = tnpy_unlock();
        st = tn_op_call(op, f->v, s->n, rets);
        tnpy_lock(state);
    } else {
        st = tn_op_call(op, f->v, s->n, rets);
    }
    if (TNPY_UNLIKELY(st != TN_OK))
        return tnpy_raise(st);
    if (TNPY_UNLIKELY(f->requires_grad) && s->n_rets == 1 && rets[0].tag == TN_TAG_TENSOR) {
        st = tn_tensor_set_requires_grad(rets[0].u.tensor, true);
        if (st != TN_OK) {
            tn_value_clear(&rets[0]);
            return tnpy_raise(st);
        }
    }
    return s->n_rets == 1 ? tnpy_from_value(&rets[0]) : wrap_results(e, i, rets);
}

static PyObject *perform(call *c)
{
    frame f;
    f.heap = NULL;
    f.n_made = 0;
    tnpy_entry *e = c->entry;
    PyObject *result = NULL;
    int found = 0;
    for (int pass = 0; pass < 2 && !found; pass++) {
        c->numbers = pass != 0;
        for (int i = 0; i < e->n && !found; i++) {
            found = match(c, &f, &e->sigs[i]);
            if (TNPY_LIKELY(found == 1)) {
                if (TNPY_UNLIKELY(f.overridden || tnpy_function_modes) && tnpy_function_enabled())
                    result =
                        tnpy_override(e, c->self, c->args, c->n - (c->self != NULL), c->kwnames);
                else
                    result = invoke(c, &f, i);
            }
            drop(&f);
        }
    }
    if (!found)
        tnpy_explain(e, c->self, c->args, c->n - (c->self != NULL), c->kwnames);
    return result;
}

PyObject *tnpy_call_function(tnpy_entry *e, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    call c = {.entry = e,
              .args = args,
              .n = (int)n,
              .n_keywords = kwnames ? (int)PyTuple_Size(kwnames) : 0,
              .kwnames = kwnames};
    return perform(&c);
}

PyObject *tnpy_call_method(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                           PyObject *kwnames)
{
    call c = {.entry = e,
              .self = self,
              .args = args,
              .n = (int)n + 1,
              .n_keywords = kwnames ? (int)PyTuple_Size(kwnames) : 0,
              .kwnames = kwnames};
    return perform(&c);
}

int tnpy_add_functions(PyObject *module)
{
    for (int i = 0; i < tnpy_num_names; i++) {
        tnpy_names[i] = PyUnicode_InternFromString(tnpy_name_texts[i]);
        if (!tnpy_names[i])
            return -1;
    }
    tnpy_str_out = PyUnicode_InternFromString("out");
    tnpy_str_requires_grad = PyUnicode_InternFromString("requires_grad");
    if (!tnpy_str_out || !tnpy_str_requires_grad)
        return -1;
    PyObject *nn = PyModule_New("tenon._C._nn");
    if (!nn || PyModule_AddFunctions(nn, tnpy_functions) ||
        PyModule_AddObjectRef(module, "_nn", nn)) {
        Py_XDECREF(nn);
        return -1;
    }
    Py_DECREF(nn);
    PyObject *functions = PyModule_New("tenon._C._VariableFunctions");
    if (!functions || PyModule_AddFunctions(functions, tnpy_functions) ||
        PyModule_AddObjectRef(module, "_VariableFunctions", functions)) {
        Py_XDECREF(functions);
        return -1;
    }
    Py_DECREF(functions);
    return 0;
}
