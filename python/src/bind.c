/* SPDX-License-Identifier: MIT */
/* bind.c: from a call in Python to an operator and back: the signatures of its name are tried in
 * turn, the first that fits is called, and what comes back becomes Python objects. */
#include "dimname.h"
#include "fit.h"
#include "override.h"
#include "type.h"

#include "tenon/mode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RETS = 8 };

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

static PyObject *from_value(tn_value *v, PyTypeObject *kept)
{
    PyObject *o = NULL;
    switch (v->tag) {
    case TN_TAG_TENSOR:
        o = tnpy_wrap_kept(kept, v->u.tensor);
        return kept ? tnpy_as_kept(kept, o) : o;
    case TN_TAG_NONE:
        return Py_NewRef(Py_None);
    case TN_TAG_TENSOR_LIST: {
        tn_tensor *const *list = v->u.tensors;
        o = PyTuple_New((Py_ssize_t)v->count);
        for (uint32_t i = 0; o && i < v->count; i++) {
            PyObject *item = tnpy_wrap_kept(kept, tn_tensor_ref(list[i]));
            if (!item)
                Py_CLEAR(o);
            else
                PyTuple_SetItem(o, (Py_ssize_t)i, item);
        }
        break;
    }
    case TN_TAG_INT:
        o = v->count ? PyLong_FromUnsignedLongLong((uint64_t)v->u.i) : PyLong_FromLongLong(v->u.i);
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
    case TN_TAG_FLOAT_LIST:
        o = PyList_New((Py_ssize_t)v->count);
        for (uint32_t i = 0; o && i < v->count; i++)
            PyList_SetItem(o, (Py_ssize_t)i, PyFloat_FromDouble(v->u.floats[i]));
        break;
    case TN_TAG_BOOL_LIST:
        o = PyList_New((Py_ssize_t)v->count);
        for (uint32_t i = 0; o && i < v->count; i++)
            PyList_SetItem(o, (Py_ssize_t)i, PyBool_FromLong(v->u.bools[i]));
        break;
    default:
        PyErr_Format(PyExc_TypeError, "a result of type %s has no form in Python",
                     tn_tag_name((tn_tag)v->tag));
    }
    tn_value_clear(v);
    return o;
}

PyObject *tnpy_from_value(tn_value *v)
{
    return from_value(v, NULL);
}

/* "torch.return_types.max(\nvalues=…,\nindices=…)" */
static PyObject *named_repr(PyObject *o, PyObject *nothing)
{
    (void)nothing;
    PyObject *type = (PyObject *)Py_TYPE(o);
    PyObject *module = PyObject_GetAttrString(type, "__module__"),
             *name = PyObject_GetAttrString(type, "__name__");
    PyObject *fields = PyObject_GetAttrString(type, "__match_args__");
    PyObject *text =
        module && name && fields ? PyUnicode_FromFormat("%U.%U(\n", module, name) : NULL;
    Py_ssize_t n = fields ? PyTuple_Size(fields) : 0;
    for (Py_ssize_t i = 0; text && i < n; i++) {
        PyObject *item = PyTuple_GetItem(o, i);
        PyObject *next = PyUnicode_FromFormat("%U%U=%R%s", text, PyTuple_GetItem(fields, i), item,
                                              i + 1 < n ? ",\n" : ")");
        Py_DECREF(text);
        text = next;
    }
    Py_XDECREF(module);
    Py_XDECREF(name);
    Py_XDECREF(fields);
    return text;
}

static PyMethodDef named_repr_def = {"__repr__", named_repr, METH_NOARGS, NULL};

/* One that a function or method of this name has already, with the same fields. */
static PyTypeObject *known_type(const tnpy_entry *e, int i)
{
    tnpy_entry *tables[] = {tnpy_function_entries, tnpy_method_entries};
    for (int t = 0; t < 2; t++) {
        tnpy_entry *other = tnpy_find_entry(tables[t], e->name);
        for (int k = 0; other && other->types && k < other->n; k++) {
            if (!other->types[k] || other->sigs[k].n_rets != e->sigs[i].n_rets)
                continue;
            bool same = true;
            for (int r = 0; r < e->sigs[i].n_rets; r++)
                same = same && strcmp(other->sigs[k].results[r], e->sigs[i].results[r]) == 0;
            if (same)
                return other->types[k];
        }
    }
    return NULL;
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
    PyTypeObject *known = known_type(e, i);
    if (known) {
        e->types[i] = (PyTypeObject *)Py_NewRef((PyObject *)known);
        return known;
    }
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
    PyTypeObject *type = PyStructSequence_NewType(&desc);
    PyObject *repr = type ? PyDescr_NewMethod(type, &named_repr_def) : NULL;
    if (repr && PyObject_SetAttrString((PyObject *)type, "__repr__", repr) == 0)
        e->types[i] = (PyTypeObject *)Py_NewRef((PyObject *)type);
    Py_XDECREF(repr);
    Py_XDECREF((PyObject *)type);
    return e->types[i];
}

static PyObject *wrap_results(tnpy_entry *e, int i, tn_value *rets, PyTypeObject *kept)
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
        PyObject *item = from_value(&rets[k], kept);
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
static bool is_long(const tnpy_sig *s, const tnpy_frame *f)
{
    if (!(s->flags & TNPY_SIG_FACTORY))
        return f->work >= TNPY_LONG_WORK;
    int64_t n = 1;
    for (int i = 0; i < s->n; i++) {
        if (s->params[i].kind != TNPY_INTS)
            continue;
        for (uint32_t k = 0; k < f->v[i].count; k++)
            n = n >= TNPY_LONG_WORK || f->v[i].u.ints[k] >= TNPY_LONG_WORK ? TNPY_LONG_WORK
                                                                           : n * f->v[i].u.ints[k];
        return n >= TNPY_LONG_WORK;
    }
    return true;
}

static tn_status run(tn_op *op, const tnpy_sig *s, const tn_value *v, tn_value *rets)
{
    return s->direct ? s->direct(v, rets) : tn_op_call(op, v, s->n, rets);
}

/* The device of a factory that nobody named. normal() is no factory for PyTorch, which gives it no
 * default. */
static void default_device(const tnpy_entry *e, const tnpy_sig *s, tnpy_frame *f)
{
    if (strcmp(e->name, "normal") == 0)
        return;
    for (int k = 0; k < s->n; k++)
        if (s->params[k].kind == TNPY_DEVICE && f->v[k].tag == TN_TAG_NONE)
            f->v[k] = tn_value_device(tnpy_default_device);
}

/* Does a mode, or the class of the first argument, see the call? */
static bool is_seen(const tn_value *first)
{
    return tn_call_mode_count() != 0 ||
           (first->tag == TN_TAG_TENSOR && tn_tensor_is_handled(first->u.tensor));
}

/* What it sees of options that nobody gave: where PyTorch's functions put what they make, and that
 * it is not pinned. */
static void show_options(const tnpy_sig *s, tnpy_frame *f)
{
    for (int k = 0; k + 1 < s->n; k++) {
        if (s->params[k].kind != TNPY_DEVICE || s->params[k + 1].kind != TNPY_BOOL)
            continue;
        if (f->v[k].tag == TN_TAG_NONE && (s->flags & TNPY_SIG_FACTORY))
            f->v[k] = tn_value_device(TN_CPU);
        if (f->v[k + 1].tag == TN_TAG_NONE)
            f->v[k + 1] = (tn_value){.tag = TN_TAG_BOOL};
    }
}

static PyObject *invoke(const tnpy_call *c, tnpy_frame *f, int i)
{
    tnpy_entry *e = c->entry;
    const tnpy_sig *s = &e->sigs[i];
    tn_op *op = NULL;
    if (TNPY_UNLIKELY(!s->direct) && !(op = op_of(e, i)))
        return NULL;
    if (TNPY_UNLIKELY(s->flags & TNPY_SIG_FACTORY) && tnpy_default_device.type != TN_DEVICE_NONE &&
        tnpy_function_off < 2)
        default_device(e, s, f);
    if (TNPY_UNLIKELY(s->flags & (TNPY_SIG_OPTIONS | TNPY_SIG_FACTORY)) && is_seen(&f->v[0]))
        show_options(s, f);
    tn_value rets[MAX_RETS];
    tn_status st;
    if (TNPY_UNLIKELY(is_long(s, f))) {
        PyThreadState *state = tnpy_unlock();
        st = run(op, s, f->v, rets);
        tnpy_lock(state);
    } else {
        st = run(op, s, f->v, rets);
    }
    if (TNPY_UNLIKELY(st != TN_OK))
        return tnpy_raise(st);
    if (TNPY_UNLIKELY(f->requires_grad) && s->n_rets == 1 && rets[0].tag == TN_TAG_TENSOR) {
        st = tn_tensor_set_requires_grad(rets[0].u.tensor, true);
        if (st != TN_OK) {
            tn_dtype dtype = tn_tensor_dtype(rets[0].u.tensor);
            tn_value_clear(&rets[0]);
            if (tn_dtype_is_floating(dtype) || tn_dtype_is_complex(dtype))
                return tnpy_raise(st);
            tn_clear_error();
            PyErr_SetString(
                PyExc_RuntimeError,
                "Only Tensors of floating point and complex dtype can require gradients");
            return NULL;
        }
    }
    PyTypeObject *kept = TNPY_UNLIKELY(f->kept != NULL) && !tnpy_function_off ? f->kept : NULL;
    if (TNPY_UNLIKELY(s->flags & TNPY_SIG_FIRST))
        return Py_NewRef(c->n ? c->args[0] : tnpy_keyword(c, tnpy_names[s->params[0].name]));
    if (TNPY_UNLIKELY(s->flags & TNPY_SIG_DTYPE))
        return tnpy_dtype((tn_dtype)rets[0].u.i);
    if (TNPY_LIKELY(s->n_rets == 1))
        return TNPY_LIKELY(rets[0].tag == TN_TAG_TENSOR && !kept) ? tnpy_wrap(rets[0].u.tensor)
                                                                  : from_value(&rets[0], kept);
    return wrap_results(e, i, rets, kept);
}

static bool is_overridden(const tnpy_frame *f)
{
    return (f->overridden && !tnpy_function_off) || (tnpy_function_modes && tnpy_function_off < 2);
}

static __attribute__((noinline)) PyObject *override_match(const tnpy_call *c, const tnpy_frame *f)
{
    PyObject *const *args = c->args;
    Py_ssize_t n = c->n - (c->self != NULL);
    if (f->n_asking == TNPY_MANY_ASKING)
        return tnpy_override(c->entry, c->self, args, n, c->kwnames);
    if (c->self && c->entry->n == 1 && c->entry->sigs[0].n == 1)
        return tnpy_override_by(c->entry, c->self, args, n, c->kwnames, &c->self, 1);
    return tnpy_override_by(c->entry, c->self, args, n, c->kwnames, f->asking,
                            tnpy_function_off ? 0 : f->n_asking);
}

/* The first signature that fits is called; @p refused: whether a tensor was not taken for a number.
 * Whether one does; if none, no exception is set. */
static inline bool try_each(tnpy_call *c, PyObject **out, bool *refused)
{
    tnpy_frame f;
    tnpy_frame_begin(&f);
    tnpy_entry *e = c->entry;
    c->numbers = e->numbers;
    for (int i = 0; i < e->n; i++) {
        int found = tnpy_match(c, &f, &e->sigs[i]);
        PyObject *result = NULL;
        if (TNPY_LIKELY(found == 1)) {
            if (TNPY_UNLIKELY(f.overridden || tnpy_function_modes) && is_overridden(&f))
                result = override_match(c, &f);
            else
                result = invoke(c, &f, i);
        }
        tnpy_frame_drop(&f);
        if (TNPY_LIKELY(found != 0)) {
            *out = result;
            return true;
        }
    }
    *refused = f.refused;
    return false;
}

/* See Note [Tensors for numbers]. */
static __attribute__((noinline)) bool try_again(tnpy_call *c, PyObject **out)
{
    bool refused;
    c->tensors = true;
    return try_each(c, out, &refused);
}

static inline bool try_all(tnpy_call *c, PyObject **out)
{
    bool refused = false;
    c->tensors = false;
    if (TNPY_LIKELY(try_each(c, out, &refused)))
        return true;
    return refused && try_again(c, out);
}

/* A call that fits no signature of today: one of an old order, one with names, or an error. */
static PyObject *perform_old(tnpy_call *c)
{
    tnpy_old_call old;
    PyObject *result = NULL;
    int taken = tnpy_take_old(c, &old);
    if (taken > 0) {
        bool called = tnpy_warn_old(c, &old) || try_all(&old.call, &result);
        Py_DECREF(old.call.kwnames);
        if (called)
            return result;
    }
    if (taken >= 0 && tnpy_call_with_names(c, &result))
        return result;
    if (taken >= 0)
        tnpy_explain(c);
    return NULL;
}

static PyObject *perform(tnpy_call *c)
{
    PyObject *result;
    if (TNPY_UNLIKELY(!try_all(c, &result)))
        return perform_old(c);
    return TNPY_LIKELY(result != NULL) || c->n_keywords == 0 ? result : tnpy_try_sparse(c);
}

static inline void take_keywords(tnpy_call *c, PyObject *kwnames)
{
    c->kwnames = kwnames;
    c->n_keywords = 0;
    c->odd_keywords = false;
    if (kwnames) {
        c->n_keywords = (int)PyTuple_Size(kwnames);
        c->odd_keywords = tnpy_odd_keywords(kwnames, c->n_keywords);
    }
}

PyObject *tnpy_call_function(tnpy_entry *e, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    tnpy_call c;
    c.entry = e;
    c.self = NULL;
    c.args = args;
    c.n = (int)n;
    c.by_schema = false;
    take_keywords(&c, kwnames);
    return perform(&c);
}

PyObject *tnpy_call_method(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                           PyObject *kwnames)
{
    tnpy_call c;
    c.entry = e;
    c.self = self;
    c.args = args;
    c.n = (int)n + 1;
    c.by_schema = false;
    take_keywords(&c, kwnames);
    return perform(&c);
}

/* _return_type(name): the type of a function's named results, as tenon.return_types gives it. */
static PyObject *return_type(PyObject *self, PyObject *o)
{
    (void)self;
    const char *name = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!name)
        return NULL;
    for (tnpy_entry *e = tnpy_function_entries; e->name; e++)
        for (int i = 0; strcmp(e->name, name) == 0 && i < e->n; i++)
            if (e->sigs[i].results && !(e->sigs[i].flags & TNPY_SIG_OUT))
                return Py_XNewRef((PyObject *)result_type(e, i));
    return Py_NewRef(Py_None);
}

/* Packages tell PyTorch which of their parts are used; nobody listens here. */
static PyObject *log_api_usage(PyObject *module, PyObject *name)
{
    (void)module;
    if (!PyUnicode_Check(name))
        return PyErr_Format(PyExc_TypeError, "_log_api_usage_once(): the name of an event, a str");
    Py_RETURN_NONE;
}

static PyMethodDef own_functions[] = {
    {"_log_api_usage_once", log_api_usage, METH_O, "_log_api_usage_once(event) -> None"},
    {"_return_type", return_type, METH_O, "_return_type(name) -> type, or None"},
    {NULL, NULL, 0, NULL},
};

/* A name has one function, whichever module it is looked up in: a __torch_function__ compares what
 * it is given with torch.nn.functional.linear. */
static int share_functions(PyObject *nn, PyObject *functions)
{
    for (const tnpy_entry *e = tnpy_function_entries; e->name != NULL; e++) {
        PyObject *one = PyObject_GetAttrString(e->in_nn ? nn : functions, e->name);
        int failed =
            one == NULL || PyObject_SetAttrString(e->in_nn ? functions : nn, e->name, one) < 0;
        Py_XDECREF(one);
        if (failed)
            return -1;
    }
    return 0;
}

/* A module with every operator; `said` is the module that its functions name as theirs. */
static PyObject *functions_module(const char *said, const char *name)
{
    PyObject *made = PyModule_New(said);
    PyObject *text = made ? PyUnicode_FromString(name) : NULL;
    if (!text || PyModule_AddFunctions(made, tnpy_functions) ||
        PyObject_SetAttrString(made, "__name__", text))
        Py_CLEAR(made);
    Py_XDECREF(text);
    return made;
}

int tnpy_add_functions(PyObject *module)
{
    if (PyModule_AddFunctions(module, own_functions))
        return -1;
    if (tnpy_prepare_names())
        return -1;
    /* pickle finds a function by its module and name: the operators' is the package, where they are
     * names too. */
    PyObject *nn = functions_module("tenon._C._nn", "tenon._C._nn");
    PyObject *functions = functions_module("tenon", "tenon._C._VariableFunctions");
    int failed = !nn || !functions || share_functions(nn, functions) ||
                 PyModule_AddObjectRef(module, "_nn", nn) ||
                 PyDict_SetItemString(PyImport_GetModuleDict(), "tenon._C._nn", nn) ||
                 PyModule_AddObjectRef(module, "_VariableFunctions", functions) ||
                 PyModule_AddObjectRef(module, "_VariableFunctionsClass", functions);
    Py_XDECREF(nn);
    Py_XDECREF(functions);
    return failed ? -1 : 0;
}
