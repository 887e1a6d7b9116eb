/* SPDX-License-Identifier: MIT */
/* explain.c: what is wrong with a call that fits no signature, in torch's words. When one signature
 * alone could have been meant, by the number of arguments, the message says what is wrong with it;
 * otherwise all of them are listed. */
#include "fit.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that is cut when it grows too long. */
typedef struct text {
    size_t n;
    char room[8192];
} text;

static __attribute__((format(printf, 2, 3))) void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->room + t->n, sizeof t->room - t->n, format, args);
    va_end(args);
    t->n += n < 0 ? 0 : (size_t)n;
    if (t->n >= sizeof t->room)
        t->n = sizeof t->room - 1;
}

static void cut(text *t, size_t n)
{
    t->n -= n;
    t->room[t->n] = 0;
}

static const char *utf8(PyObject *o)
{
    const char *found = PyUnicode_AsUTF8AndSize(o, NULL);
    if (!found)
        PyErr_Clear();
    return found ? found : "?";
}

/* ---- signatures ---- */

static const char *type_text(const tnpy_param *p, char *room, size_t n)
{
    static const char *const plain[] = {
        [TNPY_TENSOR] = "Tensor",
        [TNPY_TENSORS] = "tuple of Tensors",
        [TNPY_OPT_TENSORS] = "tuple of Tensors",
        [TNPY_INT] = "int",
        [TNPY_INTS] = "tuple of ints",
        [TNPY_FLOAT] = "float",
        [TNPY_FLOATS] = "tuple of floats",
        [TNPY_BOOL] = "bool",
        [TNPY_BOOLS] = "tuple of bools",
        [TNPY_SCALAR] = "Number",
        [TNPY_SCALARS] = "tuple of Scalars",
        [TNPY_STR] = "str",
    };
    static const char *const own[] = {
        [TNPY_DTYPE - TNPY_DTYPE] = "dtype",          [TNPY_LAYOUT - TNPY_DTYPE] = "layout",
        [TNPY_FORMAT - TNPY_DTYPE] = "memory_format", [TNPY_DEVICE - TNPY_DTYPE] = "device",
        [TNPY_GENERATOR - TNPY_DTYPE] = "Generator",  [TNPY_STORAGE - TNPY_DTYPE] = "Storage",
        [TNPY_STREAM - TNPY_DTYPE] = "Stream"};
    if (p->kind < TNPY_DTYPE)
        return plain[p->kind];
    snprintf(room, n, "%s.%s", tnpy_module_name(), own[p->kind - TNPY_DTYPE]);
    return room;
}

static const char *name_of(const tnpy_param *p)
{
    return tnpy_name_texts[p->name];
}

/* What Python sees of a signature: without self, with out= where a twin of it writes one. */
typedef struct view {
    const tnpy_sig *s;
    int first;    /* parameter that Python gives first */
    int outs;     /* how many tensors out= takes; 0: it takes none */
    int required; /* how many arguments must be given */
    int max;      /* and how many can be */
} view;

/* Does @p out take the arguments of @p s, and then tensors to write to? */
static int outs_of(const tnpy_sig *s, const tnpy_sig *out)
{
    if (!(out->flags & TNPY_SIG_OUT))
        return 0;
    int k = 0;
    for (int i = 0; i < s->n; i++) {
        const tnpy_param *p = &s->params[i];
        bool option = (s->flags & TNPY_SIG_OPTIONS) && (p->flags & TNPY_KEYWORD) &&
                      (p->kind == TNPY_DTYPE || p->kind == TNPY_LAYOUT || p->kind == TNPY_DEVICE ||
                       strcmp(name_of(p), "pin_memory") == 0);
        if (k < out->n && out->params[k].name == p->name && out->params[k].kind == p->kind)
            k++;
        else if (!option)
            return 0;
    }
    int n = 0;
    while (k < out->n && (out->params[k].flags & TNPY_OUT)) {
        k++;
        n++;
    }
    return k == out->n ? n : 0;
}

static view view_of(const tnpy_entry *e, const tnpy_sig *s)
{
    view v = {s, e->method, 0, 0, 0};
    for (int i = 0; i < e->n && !v.outs && !(s->flags & TNPY_SIG_OUT); i++)
        v.outs = outs_of(s, &e->sigs[i]);
    for (int i = v.first; i < s->n; i++)
        v.required += !(s->params[i].flags & TNPY_DEFAULT);
    v.max = s->n - v.first + (v.outs > 0) + ((s->flags & TNPY_SIG_OPTIONS) != 0);
    return v;
}

/* Signatures that stand for themselves: not hidden, and no twin for out=. */
static bool is_shown(const tnpy_entry *e, const tnpy_sig *s)
{
    if (s->flags & TNPY_SIG_HIDDEN)
        return false;
    for (int i = 0; i < e->n; i++)
        if (&e->sigs[i] != s && outs_of(&e->sigs[i], s))
            return false;
    return true;
}

static void put_out(text *t, const view *v)
{
    put(t, "%s out = None, ", v->outs > 1 ? "tuple of Tensors" : "Tensor");
}

static void put_signature(text *t, const view *v)
{
    bool star = false, out = v->outs == 0;
    char room[64];
    put(t, "(");
    for (int i = v->first; i < v->s->n; i++) {
        const tnpy_param *p = &v->s->params[i];
        if (!star && (p->flags & TNPY_KEYWORD)) {
            put(t, "*, ");
            star = true;
        }
        if (!out && (v->s->flags & TNPY_SIG_OPTIONS) && p->kind == TNPY_DTYPE && star) {
            put_out(t, v);
            out = true;
        }
        put(t, "%s %s", type_text(p, room, sizeof room), name_of(p));
        if (p->text)
            put(t, " = %s", strcmp(name_of(p), "pin_memory") ? p->text : "False");
        put(t, ", ");
    }
    if (!star && (v->outs || (v->s->flags & TNPY_SIG_OPTIONS)))
        put(t, "*, ");
    if (!out)
        put_out(t, v);
    if (v->s->flags & TNPY_SIG_OPTIONS)
        put(t, "bool requires_grad = False, ");
    if (t->room[t->n - 1] == ' ')
        cut(t, 2);
    put(t, ")");
}

/* ---- what was given ---- */

static bool fits(const tnpy_call *c, const tnpy_param *p, PyObject *o, bool one)
{
    tnpy_frame f;
    tnpy_frame_begin(&f);
    tnpy_frame_forget(&f);
    tn_value value;
    int found = tnpy_fit(c, &f, p, o, one, &value);
    PyErr_Clear();
    tnpy_frame_drop(&f);
    return found == 1;
}

/* torch compares by name here: an int is no Number and no Tensor, and a tuple of ints one by its
 * elements. */
static bool shown_as_fitting(const tnpy_call *c, const tnpy_param *p, PyObject *o)
{
    if (p->kind == TNPY_SCALAR || (p->kind == TNPY_TENSOR && !tnpy_is_tensor(o)))
        return false;
    return fits(c, p, o, false);
}

static void put_given(text *t, const tnpy_call *c, const view *v)
{
    char name[128];
    int n = c->n - (c->self != NULL);
    put(t, "(");
    for (int i = 0; i < n; i++) {
        bool good = !v || (v->first + i < v->s->positional &&
                           shown_as_fitting(c, &v->s->params[v->first + i], c->args[i]));
        put(t, good ? "%s, " : "!%s!, ", tnpy_type_name(c->args[i], name, sizeof name));
    }
    for (int i = 0; i < c->n_keywords; i++)
        put(t, "%s=%s, ", utf8(PyTuple_GetItem(c->kwnames, i)),
            tnpy_type_name(tnpy_keyword_value(c, i), name, sizeof name));
    if (n)
        cut(t, 2);
    put(t, ")");
}

/* ---- one signature was meant ---- */

/* From the first one that is missing on, all that have no default are named, given or not. */
static bool missing(const tnpy_call *c, const view *v)
{
    text names = {0, ""};
    int n = 0;
    for (int i = c->n; i < v->s->n; i++) {
        const tnpy_param *p = &v->s->params[i];
        if ((p->flags & (TNPY_DEFAULT | TNPY_OUT)) ||
            (n == 0 && tnpy_keyword(c, tnpy_names[p->name])))
            continue;
        put(&names, "%s\"%s\"", n++ ? ", " : "", name_of(p));
    }
    if (n)
        PyErr_Format(PyExc_TypeError, "%s() missing %d required positional argument%s: %s",
                     c->entry->name, n, n == 1 ? "s" : "", names.room);
    return n;
}

static void wrong_type(const tnpy_call *c, const tnpy_param *p, PyObject *o, int position)
{
    char name[128], type[64], where[32] = "";
    if (position)
        snprintf(where, sizeof where, " (position %d)", position);
    const char *want = type_text(p, type, sizeof type);
    bool sequence = PyTuple_Check(o) || PyList_Check(o);
    PyObject *item = sequence && p->kind == TNPY_INTS && PySequence_Size(o) > 0
                         ? PySequence_GetItem(o, 0)
                         : NULL;
    if (item)
        PyErr_Format(PyExc_TypeError,
                     "%s(): argument '%s'%s must be %s, but found element of type %s at pos 0",
                     c->entry->name, name_of(p), where, want,
                     tnpy_type_name(item, name, sizeof name));
    else
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s'%s must be %s, not %s", c->entry->name,
                     name_of(p), where, want, tnpy_type_name(o, name, sizeof name));
    Py_XDECREF(item);
}

static bool too_many(const tnpy_call *c, const view *v)
{
    int max = v->s->positional - v->first, n = c->n - v->first;
    if (n <= max || (v->s->flags & TNPY_SIG_LIST))
        return false;
    if (v->required != max)
        PyErr_Format(PyExc_TypeError,
                     "%s() takes from %d to %d positional arguments but %d were given",
                     c->entry->name, v->required, max, n);
    else
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %d %s given",
                     c->entry->name, max, max == 1 ? "" : "s", n, n == 1 ? "was" : "were");
    return true;
}

static bool known_keyword(const tnpy_call *c, const view *v, PyObject *given, int *at)
{
    tnpy_call one = *c;
    PyObject *names = PyTuple_Pack(1, given);
    if (!names) {
        PyErr_Clear();
        return true;
    }
    one.kwnames = names;
    one.n_keywords = 1;
    bool found = false;
    for (int i = v->first; i < v->s->n && !found; i++)
        if (tnpy_keyword(&one, tnpy_names[v->s->params[i].name])) {
            *at = i;
            found = true;
        }
    if (!found && (v->outs || (v->s->flags & TNPY_SIG_OUT)))
        found = PyUnicode_CompareWithASCIIString(given, "out") == 0;
    if (!found && (v->s->flags & TNPY_SIG_OPTIONS))
        found = PyUnicode_CompareWithASCIIString(given, "requires_grad") == 0;
    Py_DECREF(names);
    return found;
}

static bool bad_keyword(const tnpy_call *c, const view *v)
{
    for (int k = 0; k < c->n_keywords; k++) {
        PyObject *given = PyTuple_GetItem(c->kwnames, k);
        int at = -1;
        if (!known_keyword(c, v, given, &at)) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'",
                         c->entry->name, given);
            return true;
        }
        if (at >= 0 && at < c->n) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%U'",
                         c->entry->name, given);
            return true;
        }
    }
    return false;
}

/* Sets the exception, and says whether it did. */
static bool explain_one(const tnpy_call *c, const view *v)
{
    if (too_many(c, v))
        return true;
    bool list = v->s->flags & TNPY_SIG_LIST;
    for (int i = v->first; i < c->n && i < v->s->positional; i++) {
        PyObject *o = c->args[i - v->first];
        if (!fits(c, &v->s->params[i], o, list)) {
            wrong_type(c, &v->s->params[i], o, i - v->first + 1);
            return true;
        }
    }
    if (missing(c, v))
        return true;
    for (int i = c->n; i < v->s->n; i++) {
        const tnpy_param *p = &v->s->params[i];
        PyObject *o = p->flags & TNPY_OUT ? NULL : tnpy_keyword(c, tnpy_names[p->name]);
        if (o && !fits(c, p, o, false)) {
            wrong_type(c, p, o, 0);
            return true;
        }
    }
    if (bad_keyword(c, v))
        return true;
    PyObject *out =
        v->outs == 1 || (v->s->flags & TNPY_SIG_OUT) ? tnpy_keyword(c, tnpy_str_out) : NULL;
    static const tnpy_param tensor = {.kind = TNPY_TENSOR, .flags = TNPY_OPTIONAL};
    if (out && !fits(c, &tensor, out, false)) {
        char name[128];
        PyErr_Format(PyExc_TypeError, "%s(): argument 'out' must be Tensor, not %s", c->entry->name,
                     tnpy_type_name(out, name, sizeof name));
        return true;
    }
    return false;
}

/* ---- several could have been ---- */

/* Does the text of the signature have a "*"? */
static bool has_star(const view *v)
{
    for (int i = v->first; i < v->s->n; i++)
        if (v->s->params[i].flags & TNPY_KEYWORD)
            return true;
    return v->outs || (v->s->flags & TNPY_SIG_OPTIONS);
}

/* Only then is it worth saying which of them are of the wrong type. The reference counts what
   stands between the commas of the signature, "*" among it. */
static bool counts_agree(const tnpy_call *c, const view *v)
{
    return c->n - v->first + c->n_keywords == v->max + has_star(v);
}

/* The keywords that the only signature does not know, and whether there are any. */
static bool put_unknown(text *t, const tnpy_call *c, const view *v)
{
    int n = 0, at;
    for (int k = 0; k < c->n_keywords; k++) {
        PyObject *given = PyTuple_GetItem(c->kwnames, k);
        if (!known_keyword(c, v, given, &at))
            put(t, "%s%s", n++ ? ", " : "unrecognized keyword arguments: ", utf8(given));
    }
    return n;
}

static void put_reason(text *t, const tnpy_call *c, const view *v)
{
    if (!counts_agree(c, v))
        return;
    put(t, "      didn't match because some of the ");
    if (c->n_keywords) {
        put(t, "keywords were incorrect: ");
        for (int i = 0; i < c->n_keywords; i++)
            put(t, "%s%s", i ? ", " : "", utf8(PyTuple_GetItem(c->kwnames, i)));
    } else {
        put(t, "arguments have invalid types: ");
        put_given(t, c, v);
    }
    put(t, "\n");
}

void tnpy_explain(const tnpy_call *c)
{
    if (PyErr_Occurred())
        return;
    const tnpy_entry *e = c->entry;
    int given = c->n - (c->self != NULL) + c->n_keywords, shown = 0, plausible = 0;
    view one = {NULL, 0, 0, 0, 0}, only = one;
    for (int i = 0; i < e->n; i++) {
        if (!is_shown(e, &e->sigs[i]))
            continue;
        view v = view_of(e, &e->sigs[i]);
        shown++;
        only = v;
        bool keywords_miss =
            c->n - v.first > v.s->positional - v.first && v.required > v.s->positional - v.first;
        if (given >= v.required && given <= v.max && !keywords_miss) {
            plausible++;
            one = v;
        }
    }
    if (c->self && shown == 1 && only.max == 0) { /* the interpreter's own words */
        PyErr_Format(PyExc_TypeError,
                     c->n_keywords ? "TensorBase.%s() takes no keyword arguments"
                                   : "TensorBase.%s() takes no arguments (%d given)",
                     e->name, c->n - 1);
        return;
    }
    if (shown == 1 && !tnpy_has_old_form(e->name))
        one = only;
    if ((plausible == 1 || (shown == 1 && one.s)) && explain_one(c, &one))
        return;
    text t;
    t.n = 0;
    put(&t, "%s() received an invalid combination of arguments - got ", e->name);
    if (shown == 1 && put_unknown(&t, c, &only)) {
        PyErr_SetString(PyExc_TypeError, t.room);
        return;
    }
    put_given(&t, c, shown == 1 && counts_agree(c, &only) ? &only : NULL);
    put(&t, ", but expected %s", shown == 1 ? "" : "one of:\n");
    for (int i = 0; i < e->n; i++) {
        if (!is_shown(e, &e->sigs[i]))
            continue;
        view v = view_of(e, &e->sigs[i]);
        if (shown > 1)
            put(&t, " * ");
        put_signature(&t, &v);
        if (shown > 1) {
            put(&t, "\n");
            put_reason(&t, c, &v);
        }
    }
    PyErr_SetString(PyExc_TypeError, t.room);
}
