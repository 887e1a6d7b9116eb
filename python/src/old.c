/* SPDX-License-Identifier: MIT */
/* old.c: calls in the order that arguments once had, which older programs still use: numbers first,
 * add(alpha, other) and addmm(beta, input, alpha, mat1, mat2). Only a call that fits nothing else
 * is looked at; it becomes the call of today, and the program is warned, once. */
#include "fit.h"

#include <string.h>

/* The numbers, and the tensors that follow them, as a warning names them. */
static const struct old_form {
    const char *name, *numbers[2], *tensors[2];
} forms[] = {
    {"add", {"alpha"}, {"other"}},
    {"sub", {"alpha"}, {"other"}},
    {"addcmul", {"value"}, {"tensor1", "tensor2"}},
    {"addcdiv", {"value"}, {"tensor1", "tensor2"}},
    {"addmm", {"beta", "alpha"}, {"mat1", "mat2"}},
    {"addmv", {"beta", "alpha"}, {"mat", "vec"}},
    {"addr", {"beta", "alpha"}, {"vec1", "vec2"}},
    {"addbmm", {"beta", "alpha"}, {"batch1", "batch2"}},
    {"baddbmm", {"beta", "alpha"}, {"batch1", "batch2"}},
};

static const struct old_form *form_of(const char *name)
{
    size_t length = strlen(name);
    if (length && name[length - 1] == '_')
        length--;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strlen(forms[i].name) == length && memcmp(forms[i].name, name, length) == 0)
            return &forms[i];
    return NULL;
}

bool tnpy_has_old_form(const char *name)
{
    return form_of(name) != NULL;
}

static bool is_number(PyObject *o)
{
    const tn_tensor *t = tnpy_tensor(o);
    return t ? tn_tensor_ndim(t) == 0 : PyNumber_Check(o) && !PySequence_Check(o);
}

int tnpy_take_old(const tnpy_call *c, tnpy_old_call *old)
{
    const struct old_form *form = form_of(c->entry->name);
    const int by_position = c->n - (c->self != NULL);
    if (!form || c->by_schema || by_position + c->n_keywords > TNPY_OLD_ARGS - 2)
        return 0;
    /* Where the numbers stand among the arguments by position, without self. */
    int places[2] = {c->self || form->numbers[1] ? 0 : 1, -1}, n_numbers = 1;
    if (by_position <= places[0] || !is_number(c->args[places[0]]))
        return 0;
    if (form->numbers[1]) {
        int second = c->self ? 1 : 2;
        if (by_position > second && is_number(c->args[second]) && !tnpy_tensor(c->args[second]))
            places[n_numbers++] = second;
    }
    old->call = *c;
    old->call.args = old->args;
    int n = 0;
    for (int i = 0; i < by_position; i++)
        if (i != places[0] && i != places[1])
            old->args[n++] = c->args[i];
    old->call.n = n + (c->self != NULL);
    for (int i = 0; i < c->n_keywords; i++)
        old->args[n++] = tnpy_keyword_value(c, i);
    PyObject *names = PyTuple_New(c->n_keywords + n_numbers);
    for (int i = 0; names && i < c->n_keywords + n_numbers; i++) {
        PyObject *name = i < c->n_keywords
                             ? Py_NewRef(PyTuple_GetItem(c->kwnames, i))
                             : PyUnicode_InternFromString(form->numbers[i - c->n_keywords]);
        if (!name)
            Py_CLEAR(names);
        else
            PyTuple_SetItem(names, i, name);
    }
    if (!names)
        return -1;
    for (int i = 0; i < n_numbers; i++)
        old->args[n++] = c->args[places[i]];
    old->call.kwnames = names;
    old->call.n_keywords += n_numbers;
    old->call.odd_keywords = tnpy_odd_keywords(names, old->call.n_keywords);
    old->n_numbers = n_numbers;
    return 1;
}

int tnpy_warn_old(const tnpy_call *c, const tnpy_old_call *old_call)
{
    const struct old_form *form = form_of(c->entry->name);
    const int n_numbers = old_call->n_numbers;
    static bool warned;
    if (warned)
        return 0;
    warned = true;
    char old[128] = "", now[128] = "";
    size_t n = 0, m = 0;
    const char *input = c->self ? "" : "Tensor input, ";
    const bool first = form->numbers[1] != NULL; /* the first number came before the input */
    n += (size_t)PyOS_snprintf(old, sizeof old, "%s", first ? "" : input);
    for (int i = 0; i < n_numbers; i++)
        n += (size_t)PyOS_snprintf(old + n, sizeof old - n, "Number %s, %s", form->numbers[i],
                                   first && i == 0 ? input : "");
    m += (size_t)PyOS_snprintf(now, sizeof now, "%s", input);
    for (int i = 0; i < 2 && form->tensors[i]; i++) {
        n += (size_t)PyOS_snprintf(old + n, sizeof old - n, "%sTensor %s", i ? ", " : "",
                                   form->tensors[i]);
        m += (size_t)PyOS_snprintf(now + m, sizeof now - m, "Tensor %s, ", form->tensors[i]);
    }
    PyOS_snprintf(now + m, sizeof now - m, "*");
    for (int i = 0; i < 2 && form->numbers[i]; i++) {
        m = strlen(now);
        PyOS_snprintf(now + m, sizeof now - m, ", Number %s = 1", form->numbers[i]);
    }
    const char *name = c->entry->name;
    return PyErr_WarnFormat(PyExc_UserWarning, 1,
                            "This overload of %s is deprecated:\n\t%s(%s)\nConsider using one of "
                            "the following signatures instead:\n\t%s(%s)",
                            name, name, old, name, now);
}
