/* SPDX-License-Identifier: MIT */
/* override.h: __torch_function__, of classes and of modes. For plain tensors with no mode on it
 * costs a comparison of type pointers and a load. */
#ifndef TNPY_OVERRIDE_H
#define TNPY_OVERRIDE_H

#include "bind.h"

/* What a class of tensors does with calls (tnpy_overrides). */
enum {
    TNPY_PLAIN = 0,  /* nothing: Tensor itself, or it switched this off (as Parameter does) */
    TNPY_CUSTOM = 1, /* it has a __torch_function__ of its own, which is called */
    TNPY_KEEPS = 2,  /* it has Tensor's: results are of the class. Done in C */
};

/* How many function modes have to be asked, on this thread; see Note [Devices on the stack]. */
extern _Thread_local int tnpy_function_modes;
/* 0: all is asked; 1: classes are not; 2: nor are modes. */
extern _Thread_local int tnpy_function_off;

/* Has a call with @p self to be offered to its class, or to a mode? */
static inline bool tnpy_function_on(PyObject *self)
{
    if (TNPY_LIKELY(Py_TYPE(self) == tnpy_Tensor && !tnpy_function_modes))
        return false;
    return (tnpy_function_modes && tnpy_function_off < 2) ||
           (tnpy_overrides(self) == TNPY_CUSTOM && !tnpy_function_off);
}

/* The arguments, also those in lists, for which @p asked says yes: one of each class, those of
 * subclasses before those of their bases. @p kwargs may be NULL. */
PyObject *tnpy_handlers(PyObject *args, PyObject *kwargs, int (*asked)(PyObject *));
/* The classes of what is in a list, as a tuple. */
PyObject *tnpy_types_of(PyObject *list);
/* Whether an object that is no Tensor has a __torch_function__, of its own or of its class. Sets no
 * exception. */
int tnpy_has_torch_function(PyObject *o);
/* Is one of the arguments an object that is no tensor and is asked, wherever it stands? Both may be
 * NULL. See Note [Strangers]. */
bool tnpy_stranger_among_slow(PyObject *args, PyObject *kwargs);
static inline bool tnpy_stranger_among(PyObject *args, PyObject *kwargs)
{
    return ((args && PyTuple_Size(args)) || kwargs) && tnpy_stranger_among_slow(args, kwargs);
}
/* The same of arguments taken by a function that is written by hand: those that are there. */
bool tnpy_stranger_in(PyObject *const *args, int n);
/* Ask the mode, then the arguments, in torch's order. @p kwargs may be NULL. */
PyObject *tnpy_override_call(PyObject *func, PyObject *args, PyObject *kwargs);
/* The same, where only those of @p relevant, a tuple, are asked. */
PyObject *tnpy_override_among(PyObject *func, PyObject *relevant, PyObject *args);
/* The same for a call of a function, or of a method (@p self not NULL), as CPython makes it. */
PyObject *tnpy_override(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                        PyObject *kwnames);
/* The same, where it is known who is asked: one object a class, in the order of the parameters. */
PyObject *tnpy_override_by(tnpy_entry *e, PyObject *self, PyObject *const *args, Py_ssize_t n,
                           PyObject *kwnames, PyObject *const *asking, int n_asking);
/* The same for a call of an operator (tenon.ops), whose arguments need not fit: is anybody asked
 * about one with these, and asking them. */
bool tnpy_operator_asks(PyObject *args);
PyObject *tnpy_override_operator(PyObject *func, PyObject *args, PyObject *kwargs);
/* The same for a method that is written by hand; @p args and @p kwargs may be NULL: it takes none.
 */
PyObject *tnpy_override_method(PyObject *self, const char *name, PyObject *args, PyObject *kwargs);
/* The same, where @p self alone is asked, whatever its class. */
PyObject *tnpy_override_self(PyObject *func, PyObject *self, PyObject *args, PyObject *kwargs);
/* The same for reading an attribute, and for setting one (0 or -1; @p value NULL: deleting). */
PyObject *tnpy_override_get(PyObject *self, const char *name);
int tnpy_override_set(PyObject *self, const char *name, PyObject *value);

/* The class that results of a call with @p self get; NULL: Tensor. */
static inline PyTypeObject *tnpy_kept_class(PyObject *self)
{
    if (TNPY_LIKELY(Py_TYPE(self) == tnpy_Tensor) || tnpy_function_off ||
        tnpy_overrides(self) != TNPY_KEEPS)
        return NULL;
    return Py_TYPE(self);
}
/* tnpy_wrap, of that class (NULL: Tensor). */
PyObject *tnpy_wrap_kept(PyTypeObject *kept, TN_STOLEN tn_tensor *t);
/* An object, which may be an argument of another class, as one of that class; takes @p o. */
PyObject *tnpy_as_kept(PyTypeObject *kept, PyObject *o);

/* The stack of function modes (mode_stack.c). A device stands for the mode that gives factories
 * that device. */
int tnpy_mode_push(PyObject *mode);
PyObject *tnpy_mode_pop(void);
/* Is there one, if only a device? */
bool tnpy_any_mode(void);
/* The innermost mode, which is off until it is on again: while it answers. */
PyObject *tnpy_mode_off(void);
int tnpy_mode_on_again(PyObject *mode);

/* What a class has for a __torch_function__ that switched it off. */
extern PyObject *tnpy_disabled_impl;
/* Tensor.__torch_function__: call, and give results of the class (keep_class.c). */
PyObject *tnpy_keep_class(PyObject *cls, PyObject *args, PyObject *kwargs);
/* What a class has in its place that is treated as plain. */
PyObject *tnpy_run_disabled(PyObject *self, PyObject *args, PyObject *kwargs);
int tnpy_add_keep_class(PyObject *module);

#endif
