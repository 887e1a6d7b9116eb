/* SPDX-License-Identifier: MIT */
/* type.h: the parts that the type Tensor is made of. */
#ifndef TNPY_TYPE_H
#define TNPY_TYPE_H

#include "bind.h"

extern PyGetSetDef tnpy_tensor_getset[];          /* property.c */
extern PyMethodDef tnpy_default_override[];       /* keep_class.c */
extern PyMethodDef tnpy_tensor_methods[];         /* method.c */
extern const PyType_Slot tnpy_tensor_operators[]; /* operator.c */
extern const PyType_Slot tnpy_tensor_items[];     /* index.c */
PyObject *tnpy_repr(PyObject *o);                 /* values.c */
/* Find the operators that the number protocol calls. */
int tnpy_prepare_operators(void);
/* A tensor that requires grad becomes a number: say so, once. -1: the warning is an exception. */
int tnpy_warn_leaves_graph(PyObject *a);
/* The entry of a function's or a method's name; NULL: there is none. */
tnpy_entry *tnpy_find_entry(tnpy_entry *table, const char *name);

#endif
