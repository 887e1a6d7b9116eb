/* SPDX-License-Identifier: MIT */
/* opcall.h: operators as Python objects (tenon.ops), and values between the two languages by the
 * kinds of a schema. Everything here wants the interpreter lock. */
#ifndef TNPY_OPCALL_H
#define TNPY_OPCALL_H

#include "fit.h"

/* An operator as Python calls it: `tenon.ops.aten.mm.default` has one. */
typedef struct tnpy_operator {
    PyObject_HEAD tn_op *op;
    PyObject *overload; /* the OpOverload, borrowed: it has us, and both stay */
    tnpy_param *params; /* of arguments, then of results */
    PyObject *defaults; /* a tuple: of each argument its default, or the mark for none */
    tnpy_entry entry;   /* of one signature, for messages */
    tnpy_sig sig;
    char *name;
    int n_args, n_rets, n_positional;
} tnpy_operator;

/* The object of an operator, borrowed. */
tnpy_operator *tnpy_operator_of(tn_op *op);
/* Boxed arguments as Python sees them in a kernel: what equals its default is left out, keywords
 * stand apart. */
int tnpy_arguments_to_python(const tnpy_operator *o, const tn_value *args, PyObject **tuple,
                             PyObject **kwargs);
/* Whether an argument is what it would be if nobody had given it; -1: an exception. */
int tnpy_is_default(PyObject *value, PyObject *fallback);
/* What a call gave, as Python sees it. The values are cleared. */
PyObject *tnpy_results_to_python(const tnpy_operator *o, tn_value *rets);
/* What a Python kernel gave, as results of the operator: owned values. */
tn_status tnpy_results_of(const tnpy_operator *o, PyObject *result, tn_value *rets);
/* A registered kernel in Python: tn_call_context is the function (a tnpy_held). */
tn_status tnpy_python_kernel(tn_call *call, const tn_value *args, tn_value *rets);

/* The failure of reading values that are not there (fake.c). */
tn_status tnpy_needs_values(void);

/* Does a class of tensors have a __torch_dispatch__ of its own? (dispatch.c) */
int tnpy_type_dispatches(PyTypeObject *type);
/* Whether @p cls is a class of tensors; -1 with torch's TypeError. */
int tnpy_check_subclass(PyObject *cls);
/* From now on calls with @p t go to its class. 0, or -1. */
int tnpy_handle(tn_tensor *t);

int tnpy_add_opcall(PyObject *module);
int tnpy_add_opvalue(PyObject *module);
int tnpy_add_dispatch(PyObject *module);
int tnpy_add_library(PyObject *module);
int tnpy_add_fake(PyObject *module);
int tnpy_add_keys(PyObject *module);

#endif
