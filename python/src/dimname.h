/* SPDX-License-Identifier: MIT */
/* dimname.h: names where dimensions are wanted. */
#ifndef TNPY_DIMNAME_H
#define TNPY_DIMNAME_H

#include "fit.h"

/* The RuntimeError of a name that a tensor's dimensions do not have. */
void tnpy_no_such_dimension(PyObject *tensor, PyObject *name);

/* Of a call that fits no signature: when a name stands where PyTorch takes one, set its error, and
 * say so. */
bool tnpy_explain_dimname(const tnpy_call *c);

/* The call without `names=None`, where PyTorch takes names of dimensions: 1 when there was one, 0
 * when not, -1 with an exception. The caller frees @p room (PyMem_Free) and the `kwnames` of @p
 * out. */
int tnpy_without_names(const tnpy_call *c, tnpy_call *out, PyObject ***room);

#endif
