/* SPDX-License-Identifier: MIT */
/* match.c: does a call fit a signature? Arguments by position go to fit.c one by one; keywords are
 * found here, NumPy's words for them too, and out= and the options of factories are checked. */
#include "data.h"
#include "fit.h"

#include <string.h>

PyObject *tnpy_str_out, *tnpy_str_requires_grad;

/* ---- keywords ---- */

/* NumPy's words for the same things, and what Python has to write for one of its own words. */
static bool is_alias(PyObject *given, PyObject *name)
{
    static const struct {
        const char *name, *aliases[4];
    } known[] = {{"dim", {"axis"}},
                 {"keepdim", {"keepdims"}},
                 {"input", {"x", "a", "x1"}},
                 {"other", {"x2"}},
                 {"from", {"from_"}}};
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        if (PyUnicode_CompareWithASCIIString(name, known[k].name))
            continue;
        for (int i = 0; i < 4 && known[k].aliases[i]; i++)
            if (PyUnicode_CompareWithASCIIString(given, known[k].aliases[i]) == 0)
                return true;
    }
    return false;
}

/* Names that stand in a program are interned, as ours are: the same text is the same object. */
static PyObject *keyword_by_identity(const tnpy_call *c, PyObject *name)
{
    for (int i = 0; i < c->n_keywords; i++)
        if (PyTuple_GetItem(c->kwnames, i) == name)
            return tnpy_keyword_value(c, i);
    return NULL;
}

PyObject *tnpy_keyword(const tnpy_call *c, PyObject *name)
{
    PyObject *found = keyword_by_identity(c, name);
    for (int i = 0; !found && i < c->n_keywords; i++) {
        PyObject *given = PyTuple_GetItem(c->kwnames, i);
        if (PyUnicode_Compare(given, name) == 0 || is_alias(given, name))
            found = tnpy_keyword_value(c, i);
    }
    return found;
}

/* A name that means something beyond the parameter that is called so. */
static bool is_special(const char *name)
{
    static const char *const special[] = {
        "out", "requires_grad", "dtype",   "layout", "device", "pin_memory", "x", "a", "x1",
        "x2",  "axis",          "keepdims"};
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strcmp(name, special[i]) == 0)
            return true;
    return false;
}

/* The interned names of parameters, by address. */
enum { SLOTS = 2048 };
static PyObject *plain[SLOTS];

static size_t slot_of(PyObject *name)
{
    return ((uintptr_t)name >> 4) * 0x9e3779b97f4a7c15u >> 53;
}

bool tnpy_odd_keywords(PyObject *kwnames, int n)
{
    for (int i = 0; i < n; i++) {
        PyObject *name = PyTuple_GetItem(kwnames, i);
        size_t k = slot_of(name);
        while (plain[k] && plain[k] != name)
            k = (k + 1) % SLOTS;
        if (!plain[k])
            return true;
    }
    return false;
}

int tnpy_prepare_names(void)
{
    for (int i = 0; i < tnpy_num_names; i++) {
        PyObject *name = tnpy_names[i] = PyUnicode_InternFromString(tnpy_name_texts[i]);
        if (!name)
            return -1;
        if (i >= SLOTS / 2 || is_special(tnpy_name_texts[i]))
            continue;
        size_t k = slot_of(name);
        while (plain[k])
            k = (k + 1) % SLOTS;
        plain[k] = name;
    }
    tnpy_str_out = PyUnicode_InternFromString("out");
    tnpy_str_requires_grad = PyUnicode_InternFromString("requires_grad");
    return tnpy_str_out && tnpy_str_requires_grad ? 0 : -1;
}

/* tnpy_fit, with a plain tensor seen at once. */
static inline int fit(const tnpy_call *c, tnpy_frame *f, const tnpy_param *p, PyObject *o, bool one,
                      tn_value *out)
{
    if (TNPY_LIKELY(p->kind == TNPY_TENSOR && Py_TYPE(o) == tnpy_Tensor)) {
        tn_tensor *t = ((tnpy_tensor_object *)(void *)o)->t;
        f->work += tn_tensor_numel(t);
        *out = (tn_value){.tag = TN_TAG_TENSOR, .u.tensor = t};
        return t != NULL;
    }
    return tnpy_fit(c, f, p, o, one, out);
}

/* out=, one tensor or a sequence of them, to the last arguments. */
static int fit_out(const tnpy_call *c, tnpy_frame *f, const tnpy_sig *s, PyObject *out)
{
    int first = s->n;
    while (first > 0 && (s->params[first - 1].flags & TNPY_OUT))
        first--;
    int n = s->n - first;
    if (n == 1)
        return tnpy_fit(c, f, &s->params[first], out, false, &f->v[first]);
    if (!PyTuple_Check(out) && !PyList_Check(out))
        return tnpy_fit_stranger(c, f, out, &f->v[first]);
    if (PySequence_Size(out) != n)
        return 0;
    out = PySequence_Tuple(out);
    if (tnpy_frame_hold(f, out))
        return -1;
    for (int i = 0; i < n; i++) {
        int found =
            tnpy_fit(c, f, &s->params[first + i], PyTuple_GetItem(out, i), false, &f->v[first + i]);
        if (found != 1)
            return found;
    }
    return 1;
}

/* Whether the options of a factory are those of what it writes; -1 with an exception if not. */
static int check_options(PyObject *name, PyObject *value, const tn_tensor *out)
{
    tn_dtype dtype;
    tn_device device;
    if (value == Py_None)
        return 0;
    if (PyUnicode_CompareWithASCIIString(name, "dtype") == 0 && tnpy_is_dtype(value)) {
        if (tnpy_dtype_of(value, &dtype) || dtype == tn_tensor_dtype(out))
            return PyErr_Occurred() ? -1 : 0;
        PyErr_Format(PyExc_RuntimeError, "dtype %s does not match dtype of out parameter (%s)",
                     tnpy_legacy_name(dtype), tnpy_legacy_name(tn_tensor_dtype(out)));
        return -1;
    }
    if (PyUnicode_CompareWithASCIIString(name, "device") != 0 ||
        (!tnpy_is_device(value) && !PyUnicode_Check(value)))
        return 0;
    if (tnpy_device_of(value, &device))
        return -1;
    if (device.type == tn_tensor_device(out).type)
        return 0;
    char a[32], b[32];
    tn_device here = tn_tensor_device(out);
    device.index = here.index = -1;
    PyErr_Format(PyExc_RuntimeError,
                 "device type %s does not match device type of out parameter (%s)",
                 tn_device_format(device, a, sizeof a), tn_device_format(here, b, sizeof b));
    return -1;
}

/* Whether one of the overloads writes to out=: methods and in-place functions have none. */
static bool takes_out(const tnpy_entry *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->sigs[i].flags & TNPY_SIG_OUT)
            return true;
    return false;
}

/* Keywords that are no arguments of the operator: out=None, requires_grad=, and options of a
 * factory that writes out=, which must be those of `out`. How many; -1: one does not fit, or an
 * exception. */
static int other_keywords(const tnpy_call *c, tnpy_frame *f, const tnpy_sig *s)
{
    int used = 0;
    PyObject *out = tnpy_keyword(c, tnpy_str_out);
    if (out && !(s->flags & TNPY_SIG_OUT)) {
        if (out != Py_None || !takes_out(c->entry))
            return -1;
        used++;
    }
    PyObject *grad = s->flags & (TNPY_SIG_OPTIONS | TNPY_SIG_OUT)
                         ? tnpy_keyword(c, tnpy_str_requires_grad)
                         : NULL;
    if (grad) {
        tn_value none;
        if (grad != Py_None && tnpy_fit_bool(c, grad, &f->requires_grad) != 1 &&
            !tnpy_fit_stranger(c, f, grad, &none))
            return -1;
        used++;
    }
    if (!(s->flags & TNPY_SIG_OUT))
        return used;
    static const char *const options[] = {"dtype", "layout", "device", "pin_memory"};
    const tn_tensor *given = out ? tnpy_tensor(out) : NULL;
    for (int k = 0; k < c->n_keywords; k++) {
        PyObject *name = PyTuple_GetItem(c->kwnames, k);
        for (int i = 0; i < 4; i++) {
            if (PyUnicode_CompareWithASCIIString(name, options[i]))
                continue;
            used++;
            tn_value none;
            PyObject *value = tnpy_keyword_value(c, k);
            if (!tnpy_fit_stranger(c, f, value, &none) && given &&
                check_options(name, value, given))
                return -1;
        }
    }
    return used;
}

/* What is not given by position: by keyword, or by default. */
static int fit_keywords(const tnpy_call *c, tnpy_frame *f, const tnpy_sig *s, int from,
                        bool by_identity)
{
    int used = 0;
    for (int i = from; i < s->n; i++) {
        const tnpy_param *p = &s->params[i];
        PyObject *o = NULL;
        if (p->flags & TNPY_OUT) {
            PyObject *out = tnpy_keyword(c, tnpy_str_out);
            int found = out && out != Py_None ? fit_out(c, f, s, out) : 0;
            if (found != 1)
                return found;
            used++;
            break;
        }
        if (c->n_keywords) {
            PyObject *name = tnpy_names[p->name];
            o = by_identity ? keyword_by_identity(c, name) : tnpy_keyword(c, name);
        }
        if (o) {
            used++;
            int found = fit(c, f, p, o, false, &f->v[i]);
            if (found != 1)
                return found;
        } else if (p->flags & TNPY_DEFAULT) {
            f->v[i] = p->value;
        } else if (!by_identity || !c->odd_keywords) {
            return 0;
        } else {
            return fit_keywords(c, f, s, from, false);
        }
    }
    if (used == c->n_keywords)
        return 1;
    if (!c->odd_keywords)
        return 0;
    if (by_identity)
        return fit_keywords(c, f, s, from, false);
    int others = other_keywords(c, f, s);
    if (others < 0 && PyErr_Occurred())
        return -1;
    return others >= 0 && used + others == c->n_keywords;
}

/* ---- a call ---- */

int tnpy_match(const tnpy_call *c, tnpy_frame *f, const tnpy_sig *s)
{
    tnpy_frame_forget(f);
    int first = c->self != NULL, n = c->n;
    bool list = s->flags & TNPY_SIG_LIST;
    int found = 1;
    if (n > s->positional && !list)
        return 0;
    if (first)
        found = fit(c, f, &s->params[0], c->self, false, &f->v[0]);
    if (n > s->positional) {
        if (found == 1 && tnpy_fit_stranger(c, f, c->args[0], &f->v[first]))
            return s->n == s->positional; /* it is the list, and nobody looks at the others */
        if (found == 1)
            found = tnpy_fit_rest(c, f, &s->params[first], first, &f->v[first]);
        n = first + 1;
    } else {
        for (int i = first; found == 1 && i < n; i++)
            found = fit(c, f, &s->params[i], c->args[i - first], list, &f->v[i]);
    }
    if (found != 1 || (n == s->n && !c->n_keywords))
        return found;
    return fit_keywords(c, f, s, n, true);
}
